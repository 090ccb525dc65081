/* The state of a VM run, shared by launch.c (sizes, memory), run.c (control), view.c (slices) and instruction.c
 * (arithmetic). Private to them. */
#ifndef UIR_BACKENDS_VM_MACHINE_H
#define UIR_BACKENDS_VM_MACHINE_H

#include "backends/vm/bytecode.h"
#include "backends/vm/routines.h"
#include "runtime/device.h"

enum { VM_CHUNK = 1024 }; /* elements of a row handled at once; a multiple of the lanes of a reduction */

typedef struct vm_memory {
    char *data;
    int64_t span; /* elements of one instance */
} vm_memory;

typedef struct vm_overflow vm_overflow; /* a block that the thread's scratch had no room for */

typedef struct vm_machine {
    const uir_vm_kernel *kernel;
    const vm_routines *routines;
    uir_diagnostics *diagnostics; /* NULL on a thread: the message is in scratch->failure */
    int64_t *values;              /* per symbol */
    bool *bound, *outside;
    int64_t *trips;
    vm_memory *memory;                /* per pointer */
    char *chunks[UIR_IOP_MAX_SLICES]; /* VM_CHUNK elements of up to 8 bytes each */
    /* What one instruction allocates: from `free_at` on in the thread's scratch, then in blocks of its own. */
    uir_driver_scratch *scratch;
    size_t free_at, used, beyond;
    vm_overflow *overflow;
    uint64_t
        *traffic; /* not NULL: nothing is computed, the bytes of device memory that would be touched are added up */
    uint64_t steps, step_limit;
    const volatile bool *cancel;
} vm_machine;

/* Says what went wrong, to the diagnostics or in the thread's scratch; returns `status`. */
uir_status uir_vm_report(vm_machine *machine, uir_status status, const char *format, ...) UIR_PRINTF(3, 4);
#define uir_vm_fail(machine, ...) uir_vm_report((machine), UIR_STATUS_BAD_DATA, __VA_ARGS__)
/* Memory of one instruction, 64-byte aligned, not zeroed; NULL when exhausted. */
void *uir_vm_allocate(vm_machine *machine, size_t count, size_t size);
/* Ends an instruction: what it allocated is gone. */
void uir_vm_forget(vm_machine *machine);
uir_status uir_vm_evaluate(vm_machine *machine, uint32_t expression, int64_t *out_value);
/* Counts work against the limit; CANCELLED or LIMIT when it is time to stop. */
uir_status uir_vm_count(vm_machine *machine, uint64_t steps);

/* Where the elements of one dim of a slice lie: index i is inside for low <= i < high, at base + i*stride or, when
 * `along` is not NULL, at along[i]. */
typedef struct vm_dim {
    int64_t count, low, high, base, stride;
    const int64_t *along;
} vm_dim;

/* A slice at one place. Every offset it can give has been checked against the memory's span. */
typedef struct vm_view {
    char *data;                   /* of the live instance */
    uint32_t pointer, size, rank; /* size: bytes of an element */
    uir_dtype dtype;
    vm_dim dims[VM_MAX_RANK];
    const int64_t *offsets; /* a window: per element of the slice, -1 outside; dims give counts only */
    int64_t total;
    unsigned char outside[8]; /* the element that reads outside give */
    bool block;
} vm_view;

uir_status uir_vm_view_bind(vm_machine *machine, uint32_t slice, vm_view *out_view);
/* `count` elements from column `start` of row `row` (rows count over all dims but the last) as contiguous memory: in
 * place where they lie so, else copied to `buffer`. */
const char *uir_vm_view_read(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer);
/* Where to compute elements of a row: in place when they lie contiguous and inside, else `buffer`; then
 * uir_vm_view_commit.
 */
char *uir_vm_view_target(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer);
void uir_vm_view_commit(const vm_view *view, int64_t row, int64_t start, int64_t count, const char *from);
static inline int64_t vm_view_columns(const vm_view *view) {
    return view->rank ? view->dims[view->rank - 1].count : 1;
}
int64_t uir_vm_view_rows(const vm_view *view);
/* A copy of the whole slice, row-major, in the scratch arena; NULL when memory is exhausted. */
char *uir_vm_view_copy(vm_machine *machine, const vm_view *view);

/* Adds what a slice of device memory moves. */
void uir_vm_count_view(vm_machine *machine, uint32_t slice, const vm_view *view);
uir_status uir_vm_count_instruction(vm_machine *machine, const vm_instruction *instruction);
/* Flat indices begin..end of a phase of the given axes. */
uir_status uir_vm_run_indices(vm_machine *machine, const vm_phase *phase, const int64_t *extents, int64_t begin,
                              int64_t end);
uir_status uir_vm_execute(vm_machine *machine, const vm_instruction *instruction);

#endif
