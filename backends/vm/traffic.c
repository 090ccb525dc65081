/* What a kernel moves: its slices of device memory, summed over everything that would run. */
#include "backends/vm/machine.h"

#include <string.h>

/* Elements of the slice that lie in its tensor. */
static uint64_t count_elements(const vm_view *view) {
    uint64_t elements = view->offsets ? 0 : 1;
    if (view->total == 0) return 0;
    for (int64_t i = 0; view->offsets && i < view->total; i++) elements += view->offsets[i] >= 0;
    for (uint32_t d = 0; !view->offsets && d < view->rank; d++) elements *= (uint64_t)uir_vm_dim_inside(&view->dims[d]);
    return elements;
}

void uir_vm_count_view(vm_machine *machine, uint32_t slice, const vm_view *view) {
    if (machine->kernel->pointers[machine->kernel->slices[slice].pointer].role != UIR_IPOINTER_LOCAL)
        *machine->traffic += count_elements(view) * view->size;
}

/* An operand that is the one before it is read once. */
static bool is_repeated(const vm_machine *machine, const vm_instruction *in, uint32_t operand) {
    for (uint32_t i = 1; i < operand; i++) {
        if (!memcmp(&machine->kernel->slices[in->slices[i]], &machine->kernel->slices[in->slices[operand]],
                    sizeof(vm_slice)))
            return true;
    }
    return false;
}

/* An operation for each element of the largest slice; two for each product that is added. Moves compute nothing. */
static uir_status count_operations(vm_machine *machine, const vm_instruction *in, uir_iop_family family) {
    uint64_t most = 0, shared = in->code == UIR_IOP_FMA ? 2 : 1;
    if (!machine->flops || family == UIR_IOP_FAMILY_MOVE || family == UIR_IOP_FAMILY_FILL ||
        family == UIR_IOP_FAMILY_BROADCAST || family == UIR_IOP_FAMILY_SYNC)
        return UIR_STATUS_OK;
    for (uint32_t i = 0; i < in->slice_count; i++) {
        const vm_view *view;
        UIR_TRY(uir_vm_view_bind(machine, in->slices[i], &view));
        uint64_t elements = count_elements(view);
        if (family == UIR_IOP_FAMILY_MMA && i == 1 && view->rank) /* m x k */
            shared = 2 * (uint64_t)view->dims[view->rank - 1].count;
        if (elements > most && (family != UIR_IOP_FAMILY_MMA || i == 0)) most = elements;
    }
    *machine->flops += most * shared;
    return UIR_STATUS_OK;
}

/* A result that is gone on from is read as well. */
uir_status uir_vm_count_instruction(vm_machine *machine, const vm_instruction *in) {
    uir_iop_family family = uir_iop_get_row((uir_iop_code)in->code)->family;
    bool reads_result = in->flags & VM_FLAG_ACCUMULATE || family == UIR_IOP_FAMILY_MMA;
    uir_vm_forget(machine);
    UIR_TRY(uir_vm_count(machine, 1));
    UIR_TRY(count_operations(machine, in, family));
    uir_vm_forget(machine);
    for (uint32_t i = 0; i < in->slice_count; i++) {
        const vm_view *view;
        if (is_repeated(machine, in, i)) continue;
        UIR_TRY(uir_vm_view_bind(machine, in->slices[i], &view));
        uir_vm_count_view(machine, in->slices[i], view);
        if (i == 0 && reads_result) uir_vm_count_view(machine, in->slices[i], view);
    }
    return UIR_STATUS_OK;
}
