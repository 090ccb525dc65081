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

typedef struct vm_layout {
    int64_t extent;
    uint32_t modes;
    int64_t sizes[VM_MAX_MODES], strides[VM_MAX_MODES];
} vm_layout;

/* What stays the same in all of a launch. */
typedef struct vm_fixed {
    int64_t *values;    /* per expression */
    bool *known;        /* per expression: `values` has it */
    vm_layout *layouts; /* per pointer: VM_MAX_RANK */
    bool *laid_out;     /* per pointer: `layouts` has it */
} vm_fixed;

typedef struct vm_cached_view vm_cached_view; /* a slice as it was last bound, and when */
typedef struct vm_overflow vm_overflow;       /* a block that the thread's scratch had no room for */

typedef struct vm_machine {
    const uir_vm_kernel *kernel;
    const vm_routines *routines;
    uir_diagnostics *diagnostics; /* NULL on a thread: the message is in scratch->failure */
    int64_t *values;              /* per symbol */
    bool *bound, *outside;
    int64_t *trips;
    const vm_fixed *fixed;            /* NULL: nothing is known yet */
    vm_cached_view *views;            /* per slice */
    uint64_t clock;                   /* goes on whenever a symbol changes */
    uint64_t changed[64];             /* per bit of symbols: when one of them last did */
    vm_memory *memory;                /* per pointer */
    char *chunks[UIR_IOP_MAX_SLICES]; /* VM_CHUNK elements of up to 8 bytes each */
    /* What one instruction allocates: from `free_at` on in the thread's scratch, then in blocks of its own. */
    uir_driver_scratch *scratch;
    size_t free_at, used, beyond;
    vm_overflow *overflow;
    uint64_t
        *traffic;    /* not NULL: nothing is computed, the bytes of device memory that would be touched are added up */
    uint64_t *flops; /* with traffic: so are the operations; may be NULL */
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
/* The symbol has another value, or none. */
static inline void vm_touch(vm_machine *machine, uint32_t symbol) {
    machine->changed[symbol & 63] = ++machine->clock;
}
uir_status uir_vm_evaluate(vm_machine *machine, uint32_t expression, int64_t *out_value);
/* All expressions whose symbols are bound. */
void uir_vm_fix(vm_machine *machine, vm_fixed *fixed);
size_t uir_vm_views_size(const uir_vm_kernel *kernel);
void uir_vm_forget_views(vm_machine *machine);
uir_status uir_vm_bind_layout(vm_machine *machine, const vm_pointer *pointer, vm_layout *out_layouts);
/* Asked within an instruction too, chunk by chunk: its slices may have far more elements than any memory. */
static inline bool vm_is_cancelled(const vm_machine *machine) {
    return machine->cancel && __atomic_load_n(machine->cancel, __ATOMIC_RELAXED);
}
/* Counts work against the limit; CANCELLED or LIMIT when it is time to stop. */
uir_status uir_vm_count(vm_machine *machine, uint64_t steps);

/* Where the elements of one dim of a slice lie: index i is inside for low <= i < high, at base + i*stride or, when
 * `along` is not NULL, at along[i] unless that is VM_OUTSIDE. */
typedef struct vm_dim {
    int64_t count, low, high, base, stride;
    const int64_t *along;
} vm_dim;
#define VM_OUTSIDE INT64_MIN

/* A slice at one place. Every offset it can give has been checked against the memory's span. */
typedef struct vm_view {
    char *data;                   /* of the live instance; a window's first element */
    uint32_t pointer, size, rank; /* size: bytes of an element */
    uir_dtype dtype;
    bool block;
    const int64_t *offsets; /* per element of the slice, -1 outside; dims give counts only. NULL: dims tell */
    int64_t total;
    char *origin;             /* the first element when all are inside and every dim has a stride, else NULL */
    char *flat;               /* the same when they also follow each other row by row */
    const char *first, *last; /* with an origin: where the outermost elements are */
    unsigned char outside[8]; /* the element that reads outside give */
    vm_dim dims[VM_MAX_RANK];
} vm_view;

/* The view lives until the slice is bound again; its arrays until the instruction ends. */
uir_status uir_vm_view_bind(vm_machine *machine, uint32_t slice, const vm_view **out_view);
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
/* How many of a dim's indices are inside. */
int64_t uir_vm_dim_inside(const vm_dim *dim);
int64_t uir_vm_view_rows(const vm_view *view);
/* A copy of the whole slice, row-major, in the scratch arena. */
uir_status uir_vm_view_copy(vm_machine *machine, const vm_view *view, char **out_copy);

/* `count` elements whose places are `step` bytes apart, from or to contiguous ones. */
void uir_vm_gather(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size);
void uir_vm_scatter(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size);

/* Equal addresses element for element, so that computing in place is sound. */
bool uir_vm_same_place(const vm_view *a, const vm_view *b);
/* Whether a write to one can be seen in the other, but for computing in place. */
bool uir_vm_overlap(const vm_view *a, const vm_view *b);

double uir_vm_real(uint64_t bits);
void uir_vm_store_immediate(uir_dtype dtype, char *to, double value);

/* Adds what a slice of device memory moves. */
void uir_vm_count_view(vm_machine *machine, uint32_t slice, const vm_view *view);
uir_status uir_vm_count_instruction(vm_machine *machine, const vm_instruction *instruction);
/* Flat indices begin..end of a phase of the given axes. */
uir_status uir_vm_run_indices(vm_machine *machine, const vm_phase *phase, const int64_t *extents, int64_t begin,
                              int64_t end);
uir_status uir_vm_elementwise(vm_machine *machine, const vm_instruction *instruction, const uir_iop_row *row);
uir_status uir_vm_move(vm_machine *machine, const vm_instruction *instruction, const uir_iop_row *row);
uir_status uir_vm_mma(vm_machine *machine, const vm_instruction *instruction);
uir_status uir_vm_execute(vm_machine *machine, const vm_instruction *instruction);

#endif
