/* Internal declarations of the VM: the state of a run, shared by launch.c (sizes, memory), run.c (control), view.c
 * (slices) and instruction.c (arithmetic). */
#ifndef UIR_BACKENDS_VM_MACHINE_H
#define UIR_BACKENDS_VM_MACHINE_H

#include "backends/vm/bytecode.h"
#include "backends/vm/routines.h"
#include "runtime/format.h"

enum { VM_CHUNK = 1024 }; /* elements of a row per step; a multiple of the lanes of a reduction */

typedef struct vm_memory {
    char *data;
    int64_t span; /* elements of one instance */
} vm_memory;

typedef struct vm_layout {
    int64_t extent;
    uint32_t modes;
    int64_t sizes[VM_MAX_MODES], strides[VM_MAX_MODES];
} vm_layout;

/* Values constant during a launch. */
typedef struct vm_fixed {
    int64_t *values;    /* per expression */
    bool *known;        /* per expression: `values` is set */
    vm_layout *layouts; /* per pointer: VM_MAX_RANK */
    bool *laid_out;     /* per pointer: `layouts` is set */
} vm_fixed;

typedef struct vm_cached_view vm_cached_view; /* a slice's last binding, and its time */
typedef struct vm_overflow vm_overflow;       /* a block beyond the thread's scratch */

typedef struct vm_machine {
    const uir_vm_kernel *kernel;
    const vm_routines *routines;
    uir_diagnostics *diagnostics; /* NULL on a thread: the message is in scratch->failure */
    int64_t *values;              /* per symbol */
    bool *bound, *outside;
    int64_t *trips;
    const vm_fixed *fixed;            /* NULL: not computed yet */
    vm_cached_view *views;            /* per slice */
    uint64_t clock;                   /* incremented when a symbol changes */
    uint64_t changed[64];             /* per bit of symbols: time of the last change */
    vm_memory *memory;                /* per pointer */
    char *chunks[UIR_IOP_MAX_SLICES]; /* VM_CHUNK elements of up to 8 bytes each */
    /* Allocations of one instruction: from `free_at` on in the thread's scratch, then separate blocks. */
    uir_kernel_scratch *scratch;
    size_t free_at, used, beyond;
    vm_overflow *overflow;
    uint64_t *traffic; /* not NULL: computes nothing, adds up the bytes of device memory of all slices */
    uint64_t *flops;   /* with traffic: adds up operations; may be NULL */
    uint64_t steps, step_limit;
    const volatile bool *cancel;
} vm_machine;

/* Reports a failure, to the diagnostics or in the thread's scratch; returns `status`. */
uir_status uir_vm_report(vm_machine *machine, uir_status status, const char *format, ...) UIR_PRINTF(3, 4);
#define uir_vm_fail(machine, ...) uir_vm_report((machine), UIR_STATUS_BAD_DATA, __VA_ARGS__)
/* Memory of one instruction, 64-byte aligned, not zeroed; NULL when exhausted. */
void *uir_vm_allocate(vm_machine *machine, size_t count, size_t size);
/* Releases the memory of an instruction. */
void uir_vm_forget(vm_machine *machine);
/* Marks a symbol's value as changed or unbound. */
static inline void vm_touch(vm_machine *machine, uint32_t symbol) {
    machine->changed[symbol & 63] = ++machine->clock;
}
uir_status uir_vm_evaluate(vm_machine *machine, uint32_t expression, int64_t *out_value);
/* Evaluates all expressions whose symbols are bound. */
void uir_vm_fix(vm_machine *machine, vm_fixed *fixed);
size_t uir_vm_views_size(const uir_vm_kernel *kernel);
void uir_vm_forget_views(vm_machine *machine);
uir_status uir_vm_bind_layout(vm_machine *machine, const vm_pointer *pointer, vm_layout *out_layouts);
/* Also polled within an instruction, per chunk: its slices may have far more elements than any memory. */
static inline bool vm_is_cancelled(const vm_machine *machine) {
    return machine->cancel && __atomic_load_n(machine->cancel, __ATOMIC_RELAXED);
}
/* Counts work against the limit; CANCELLED or LIMIT when the run has to stop. */
uir_status uir_vm_count(vm_machine *machine, uint64_t steps);

/* Addresses along one dim of a slice: index i is inside for low <= i < high, at base + i*stride; or, if `along` is not
 * NULL, at along[i] unless that is VM_OUTSIDE. */
typedef struct vm_dim {
    int64_t count, low, high, base, stride;
    const int64_t *along;
} vm_dim;
#define VM_OUTSIDE INT64_MIN

/* A bound slice. All its offsets have been checked against the memory's span. */
typedef struct vm_view {
    char *data;                   /* of the live instance; first element of a window */
    uint32_t pointer, size, rank; /* size: bytes of an element */
    uir_dtype dtype;
    bool block;
    const int64_t *offsets; /* per element of the slice, -1 outside; dims then have only counts. NULL: use the dims */
    int64_t total;
    char *origin;             /* first element, if all are inside and every dim has a stride; else NULL */
    char *flat;               /* the same if they are also contiguous, row-major */
    const char *first, *last; /* with an origin: the range of element addresses */
    unsigned char outside[8]; /* the value read outside */
    vm_dim dims[VM_MAX_RANK];
} vm_view;

/* The view lives until the slice is bound again; its arrays until the instruction ends. */
uir_status uir_vm_view_bind(vm_machine *machine, uint32_t slice, const vm_view **out_view);
/* Reads `count` elements from column `start` of row `row` (rows count over all dims but the last) as contiguous memory:
 * in place if possible, else copied to `buffer`. */
const char *uir_vm_view_read(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer);
/* Memory for results in a row: in place if contiguous and inside, else `buffer`; then call uir_vm_view_commit. */
char *uir_vm_view_target(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer);
void uir_vm_view_commit(const vm_view *view, int64_t row, int64_t start, int64_t count, const char *from);
static inline int64_t vm_view_columns(const vm_view *view) {
    return view->rank ? view->dims[view->rank - 1].count : 1;
}
/* Number of a dim's indices that are inside. */
int64_t uir_vm_dim_inside(const vm_dim *dim);
int64_t uir_vm_view_rows(const vm_view *view);
/* A copy of the whole slice, row-major, in the scratch arena. */
uir_status uir_vm_view_copy(vm_machine *machine, const vm_view *view, char **out_copy);

/* Copies `count` elements with stride `step` bytes from or to contiguous memory. */
void uir_vm_gather(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size);
void uir_vm_scatter(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size);

/* Whether addresses are equal element for element, so that computing in place is correct. */
bool uir_vm_same_place(const vm_view *a, const vm_view *b);
/* Whether a write to one may change the other, except for computing in place. */
bool uir_vm_overlap(const vm_view *a, const vm_view *b);

double uir_vm_real(uint64_t bits);
void uir_vm_store_immediate(uir_dtype dtype, char *to, double value);

/* Counts the bytes that a slice of device memory moves. */
void uir_vm_count_view(vm_machine *machine, uint32_t slice, const vm_view *view);
uir_status uir_vm_count_instruction(vm_machine *machine, const vm_instruction *instruction);
/* Runs flat indices begin..end of a phase with the given extents. */
uir_status uir_vm_run_indices(vm_machine *machine, const vm_phase *phase, const int64_t *extents, int64_t begin,
                              int64_t end);
uir_status uir_vm_elementwise(vm_machine *machine, const vm_instruction *instruction, const uir_iop_row *row);
uir_status uir_vm_move(vm_machine *machine, const vm_instruction *instruction, const uir_iop_row *row);
uir_status uir_vm_mma(vm_machine *machine, const vm_instruction *instruction);
uir_status uir_vm_execute(vm_machine *machine, const vm_instruction *instruction);

#endif
