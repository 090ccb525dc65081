/* One instruction: rows of its slices through the routine of its family. */
#include "backends/vm/machine.h"

#include <math.h>
#include <string.h>

static uir_status fill(vm_machine *machine, const vm_instruction *in) {
    const vm_view *to;
    char element[8] = {0};
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    if (to->total == 0) return UIR_STATUS_OK;
    uir_vm_store_immediate((uir_dtype)in->dtype, element, uir_vm_real(in->immediate));
    machine->routines->splat[to->size](machine->chunks[0], element, to->total < VM_CHUNK ? to->total : VM_CHUNK);
    int64_t rows = uir_vm_view_rows(to), columns = vm_view_columns(to);
    UIR_TRY(uir_vm_count(machine, (uint64_t)to->total / 16 + (uint64_t)rows));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
            uir_vm_view_commit(to, r, start, columns - start < VM_CHUNK ? columns - start : VM_CHUNK,
                               machine->chunks[0]);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status iota(vm_machine *machine, const vm_instruction *in) {
    const vm_view *to;
    int64_t begin;
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_evaluate(machine, in->start, &begin));
    if (to->total == 0) return UIR_STATUS_OK;
    int64_t rows = uir_vm_view_rows(to), columns = vm_view_columns(to),
            lines = to->rank > 1 ? to->dims[to->rank - 2].count : 1;
    uir_dtype dtype = (uir_dtype)in->dtype;
    bool real = uir_dtype_is_float(dtype);
    UIR_TRY(uir_vm_count(machine, (uint64_t)to->total / 4 + (uint64_t)rows));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
            for (int64_t j = 0; j < count; j++) {
                int64_t value =
                    (int64_t)((uint64_t)begin + (uint64_t)(in->axis == UIR_IAXIS_COL ? r % lines : start + j));
                if (real)
                    uir_dtype_store_double(dtype, machine->chunks[0], (uint64_t)j,
                                           dtype == UIR_DTYPE_F64 ? (double)value : (double)(float)value,
                                           UIR_ROUND_NEAREST_EVEN);
                else
                    uir_dtype_store_integer(dtype, machine->chunks[0], (uint64_t)j, value, false,
                                            UIR_ROUND_NEAREST_EVEN);
            }
            uir_vm_view_commit(to, r, start, count, machine->chunks[0]);
        }
    }
    return UIR_STATUS_OK;
}

/* ---- reductions and scans ---- */
static void store_identity(uint32_t code, uir_dtype dtype, char *to) {
    uir_iop_identity identity = uir_iop_get_monoid((uir_iop_code)code).identity;
    if (uir_dtype_is_float(dtype))
        uir_dtype_store_double(dtype, to, 0, uir_iop_identity_real(identity), UIR_ROUND_NEAREST_EVEN);
    else
        uir_dtype_store_integer(dtype, to, 0, uir_iop_identity_integer(identity, dtype), false, UIR_ROUND_NEAREST_EVEN);
}

/* Element `index` (row-major) of a view of few elements. */
static void read_element(const vm_view *v, int64_t index, char *out) {
    int64_t columns = vm_view_columns(v);
    memcpy(out, uir_vm_view_read(v, index / columns, index % columns, 1, out), v->size);
}

static void write_element(const vm_view *v, int64_t index, const char *element) {
    int64_t columns = vm_view_columns(v);
    uir_vm_view_commit(v, index / columns, index % columns, 1, element);
}

static uir_status reduce_rows(vm_machine *machine, const vm_instruction *in, const vm_view *to, const vm_view *from,
                              const char *copy) {
    uir_dtype dtype = (uir_dtype)in->dtype;
    vm_reduce *routine = machine->routines->reduce[in->code][dtype];
    vm_elementwise *combine =
        machine->routines->elementwise[uir_iop_get_monoid((uir_iop_code)in->code).operation][dtype];
    int64_t columns = vm_view_columns(from), rows = to->total;
    _Alignas(64) char lanes[UIR_REDUCE_LANES * 8];
    char identity[8] = {0}, old[8], *buffer = machine->chunks[1];
    if (!routine || !combine)
        return uir_vm_fail(machine, "this reduction is not defined for %s", uir_dtype_name(dtype));
    store_identity(in->code, dtype, identity);
    for (int64_t r = 0; r < rows; r++) {
        if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
        machine->routines->splat[to->size](lanes, identity, UIR_REDUCE_LANES);
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
            routine(lanes,
                    copy ? copy + (size_t)(r * columns + start) * from->size
                         : uir_vm_view_read(from, r, start, count, buffer),
                    count);
        }
        for (int s = UIR_REDUCE_LANES / 2; s > 0; s /= 2) combine(lanes, lanes, lanes + (size_t)s * to->size, NULL, s);
        if (in->flags & VM_FLAG_ACCUMULATE) {
            read_element(to, r, old);
            combine(lanes, old, lanes, NULL, 1);
        }
        write_element(to, r, lanes);
    }
    return UIR_STATUS_OK;
}

/* Rows in order into one row, for every group of rows. */
static uir_status reduce_columns(vm_machine *machine, const vm_instruction *in, const vm_view *to, const vm_view *from,
                                 const char *copy) {
    uir_dtype dtype = (uir_dtype)in->dtype;
    vm_elementwise *combine =
        machine->routines->elementwise[uir_iop_get_monoid((uir_iop_code)in->code).operation][dtype];
    int64_t columns = vm_view_columns(from), lines = from->dims[from->rank - 2].count,
            groups = columns ? to->total / columns : 0;
    char identity[8] = {0}, *sum = machine->chunks[0], *buffer = machine->chunks[1];
    if (!combine) return uir_vm_fail(machine, "this reduction is not defined for %s", uir_dtype_name(dtype));
    store_identity(in->code, dtype, identity);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
            machine->routines->splat[to->size](sum, identity, count);
            for (int64_t j = 0; in->flags & VM_FLAG_ACCUMULATE && j < count; j++)
                read_element(to, g * columns + start + j, sum + (size_t)j * to->size);
            for (int64_t i = 0; i < lines; i++) {
                if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
                int64_t r = g * lines + i;
                combine(sum, sum,
                        copy ? copy + (size_t)(r * columns + start) * from->size
                             : uir_vm_view_read(from, r, start, count, buffer),
                        NULL, count);
            }
            for (int64_t j = 0; j < count; j++) write_element(to, g * columns + start + j, sum + (size_t)j * to->size);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status check_lines(vm_machine *machine, const vm_view *lines, const vm_view *from, uint32_t axis) {
    uint32_t dim = axis == UIR_IAXIS_COL ? 2 : 1;
    if (from->rank < dim) return uir_vm_fail(machine, "a reduction along a dim that its slice lacks");
    int64_t count = from->dims[from->rank - dim].count;
    if (count && lines->total != from->total / count)
        return uir_vm_fail(machine, "a reduction of %lld lines into %lld", (long long)(from->total / count),
                           (long long)lines->total);
    return UIR_STATUS_OK;
}

static uir_status reduce(vm_machine *machine, const vm_instruction *in) {
    const vm_view *to, *from;
    char *copy = NULL;
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &from));
    UIR_TRY(check_lines(machine, to, from, in->axis));
    UIR_TRY(uir_vm_count(machine, (uint64_t)from->total / 16 + (uint64_t)to->total));
    if (to->pointer == from->pointer && (uir_vm_overlap(to, from) || uir_vm_same_place(to, from)) && from->total)
        UIR_TRY(uir_vm_view_copy(machine, from, &copy));
    if (in->axis != UIR_IAXIS_COL) return reduce_rows(machine, in, to, from, copy);
    if (vm_view_columns(from) != vm_view_columns(to) && to->total)
        return uir_vm_fail(machine, "a column reduction must keep its columns");
    return reduce_columns(machine, in, to, from, copy);
}

static uir_status scan(vm_machine *machine, const vm_instruction *in) {
    const vm_view *to, *from, *carry;
    vm_scan *routine = machine->routines->scan[in->code][in->dtype];
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &from));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[2], &carry));
    UIR_TRY(check_lines(machine, carry, from, in->axis));
    if (!routine) return uir_vm_fail(machine, "this scan is not defined for %s", uir_dtype_name((uir_dtype)in->dtype));
    if (to->total != from->total || in->axis == UIR_IAXIS_COL)
        return uir_vm_fail(machine, "a scan must run along rows and keep the number of elements");
    UIR_TRY(uir_vm_count(machine, (uint64_t)from->total));
    int64_t columns = vm_view_columns(from), rows = columns ? from->total / columns : 0;
    char *copy = NULL;
    if (uir_vm_overlap(to, from)) UIR_TRY(uir_vm_view_copy(machine, from, &copy));
    for (int64_t r = 0; r < rows; r++) {
        char sum[8];
        read_element(carry, r, sum);
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
            const char *x = copy ? copy + (size_t)(r * columns + start) * from->size
                                 : uir_vm_view_read(from, r, start, count, machine->chunks[1]);
            char *target = uir_vm_view_target(to, r, start, count, machine->chunks[0]);
            routine(target, x, sum, count, in->flags & VM_FLAG_EXCLUSIVE);
            uir_vm_view_commit(to, r, start, count, target);
        }
        write_element(carry, r, sum);
    }
    return UIR_STATUS_OK;
}

uir_status uir_vm_execute(vm_machine *machine, const vm_instruction *in) {
    const uir_iop_row *row = uir_iop_get_row((uir_iop_code)in->code);
    uir_vm_forget(machine);
    UIR_TRY(uir_vm_count(machine, 1));
    switch (row->family) {
    case UIR_IOP_FAMILY_MOVE:
        return uir_vm_move(machine, in, row);
    case UIR_IOP_FAMILY_FILL:
        return fill(machine, in);
    case UIR_IOP_FAMILY_IOTA:
        return iota(machine, in);
    case UIR_IOP_FAMILY_REDUCE:
        return reduce(machine, in);
    case UIR_IOP_FAMILY_SCAN:
        return scan(machine, in);
    case UIR_IOP_FAMILY_MMA:
        return uir_vm_mma(machine, in);
    case UIR_IOP_FAMILY_SYNC:
        return UIR_STATUS_OK;
    default:
        return uir_vm_elementwise(machine, in, row);
    }
}
