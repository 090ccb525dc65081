/* The iGraph: a kernel as a dataflow graph of device instructions over memory slices.
 *
 * In: text (docs/igraph.md is the reference), or a graph built by lowering. Out: a kernel that can be verified,
 * interpreted, and turned into bytecode or source. An iGraph knows a machine only through its uir_machine. Everything
 * is in flat arrays of one struct; expressions are dims (base/dims/dim.h) over the kernel's symbols. */
#ifndef UIR_IR_IGRAPH_H
#define UIR_IR_IGRAPH_H

#include "base/dims/dim.h"
#include "ir/machine/device.h"
#include "ir/machine/iops.h"
#include "ir/machine/layout.h"
#include "ir/machine/tiling.h"

/* Limits of one kernel. */
#define UIR_IGRAPH_MAX_DEPTH 48 /* of nested blocks */
#define UIR_IGRAPH_MAX_ITEMS 16384
#define UIR_IGRAPH_MAX_ATOMS 16 /* of one condition */

/* ---- symbols: every name an expression may use. Index = uir_symbol.id - first; kept in declaration order ---- */

typedef struct uir_isymbol {
    const char *name;
    uir_isymbol_kind kind;
    uir_symbol symbol;  /* in igraph->dims */
    uir_dim definition; /* LET, CONSTANT, DEVICE: the value; PARALLEL, LOOP, AXIS: the extent; INDEX: D */
} uir_isymbol;

/* ---- pointers ---- */
_Static_assert(UIR_LAYOUT_MAX_RANK == UIR_IGRAPH_MAX_RANK && UIR_LAYOUT_MAX_MODES == UIR_IGRAPH_MAX_MODES,
               "a pointer can hold any layout");

typedef struct uir_ipointer {
    const char *name;
    uint32_t space; /* index into the device's spaces */
    uir_dtype dtype;
    uint32_t rank;
    uir_dim extents[UIR_IGRAPH_MAX_RANK];
    uir_layout layout;
    uir_ipointer_role role;
    uint32_t role_index;  /* IN, OUT, CONST: argument number */
    uint32_t instances;   /* 1, or N of xN */
    uint32_t by_loop;     /* symbol index (into symbols) of the loop of `xN by l`; UINT32_MAX: none */
    uir_dim element_span; /* elements of one instance's storage: 1 + sum (size-1)*stride; below 0 counts as 0 */
    uint32_t tied;        /* OUT: the IN pointer that it is an alias of, with its initial contents; UINT32_MAX: none */
    uint32_t over;        /* LOCAL: the pointer whose storage it shares; UINT32_MAX: it has its own */
    uint32_t line;        /* of the source text, 0 when built */
} uir_ipointer;

/* ---- slices ---- */
typedef struct uir_islice_axis {
    uint32_t symbol; /* AXIS symbol (index into symbols): 0 <= axis < extent */
    uir_dim extent;
    uint32_t dim; /* the slice's dim that it belongs to; axes of one dim form a group, row-major, last fastest */
} uir_islice_axis;

typedef struct uir_islice {
    uint32_t pointer;
    bool window;                         /* coordinates over own axes; else start:count per dim */
    bool whole;                          /* written without brackets */
    uint32_t rank;                       /* of the slice: box: the pointer's; window: number of groups */
    uir_dim starts[UIR_IGRAPH_MAX_RANK]; /* box: start; window: the coordinate expression, per POINTER dim */
    uir_dim counts[UIR_IGRAPH_MAX_RANK]; /* extents of the SLICE's dims (window: product of the group's extents) */
    uir_islice_axis *axes;               /* window only; owned by the kernel, used by this slice only */
    uint32_t axis_count;
    bool has_fill;
    double fill; /* exact for every dtype's values used (integers up to 2^53) */
    bool block;  /* repeats along its last dim (32-byte block broadcast) */
} uir_islice;

/* ---- instructions ---- */

typedef struct uir_iinstruction {
    uir_iop_code code;
    uir_dtype dtype;            /* of the instruction (COMPARE: of the operands; CAST: from; MMA: of c) */
    uir_dtype dtype_b, dtype_c; /* CAST: dtype_b is to; MMA: a and b */
    uir_iaxis axis;
    uir_scope scope; /* UNIT or GROUP */
    uir_islice slices[UIR_IOP_MAX_SLICES];
    uint32_t slice_count;
    bool accumulate;         /* `acc` */
    bool exclusive;          /* SCAN */
    bool saturate;           /* CAST */
    bool stream;             /* the kernel does not read its results: stores may bypass caches that are too small */
    double immediate;        /* FILL: the value */
    uint32_t immediate_mask; /* bit k: operand k (0-based) is `immediates[k]`, and slices lack it */
    double immediates[3];
    uir_dim start; /* IOTA */
    bool has_scratch;
    uir_islice scratch;          /* REDUCE: `scratch %w` */
    uint32_t sync_from, sync_to; /* SYNC: pipes or unit kinds */
    uint32_t sync_kind;          /* UIR_SYNC_* */
    uint32_t sync_pointer;       /* UINT32_MAX: none */
    uint32_t sync_distance;
    uint32_t legal_row; /* set by the verifier: the device's row that allows it */
    uint32_t unguarded; /* set by the verifier: bit k, slice k is proved inside its pointer's extents */
} uir_iinstruction;
enum { UIR_SYNC_PIPES, UIR_SYNC_GROUP, UIR_SYNC_DEVICE, UIR_SYNC_KINDS, UIR_SYNC_UNIT };

/* ---- the tree ---- */
typedef struct uir_iitem {
    uir_iitem_kind kind;
    uir_iguard guard; /* `when` of a loop or instruction, the condition of an if */
    uint32_t symbol;  /* LOOP, LET, INDEX */
    uir_dim extent;   /* LOOP */
    bool named_ends;  /* LOOP: first() or last() of the loop is used, so that the loop runs max(1, extent) times */
    struct {
        uir_islice slice;
        uir_index_mode mode;
        uir_dim limit;
    } index;              /* INDEX: slice of one element; 0..limit-1 */
    uint32_t instruction; /* INSTRUCTION */
    uint32_t *dead;       /* RUN: pointers whose contents are undefined after the run */
    uint32_t dead_count;
    uint32_t first_child, next; /* item indices; UINT32_MAX: none */
    uint32_t line;              /* of the source text, 0 when built */
} uir_iitem;

typedef struct uir_ibody {
    uint32_t unit_kind;   /* index; a phase without `on` has one body of kind 0 */
    uint32_t unit_symbol; /* `on vector u:2`: PARALLEL symbol u of that many units, or UINT32_MAX */
    uint32_t unit_count;
    uint32_t first_item;
} uir_ibody;

typedef struct uir_iparallel {
    uint32_t symbol;
    uir_dim extent;
    uir_scope scope; /* GROUP: the index picks the group; UNIT: a unit (within the group when both are present) */
} uir_iparallel;

typedef struct uir_iphase {
    uir_iparallel parallel[4];
    uint32_t parallel_count;
    uir_ibody bodies[UIR_MACHINE_MAX_UNIT_KINDS];
    uint32_t body_count;
    bool has_kinds; /* written with `on kind { }` */
} uir_iphase;

typedef struct uir_igraph {
    uir_arena arena;
    uir_allocator allocator; /* of everything below */
    uir_dims *dims;          /* owned */
    const char *name;
    const uir_machine *machine; /* borrowed */
    bool synchronised;          /* `igraph @k on d synchronised`: the verifier requires syncs */
    uir_vector(uir_isymbol) symbols;
    uir_vector(uir_condition) requires_;
    uir_vector(uir_ipointer) pointers;
    uir_vector(uir_iinstruction) instructions;
    uir_vector(uir_iitem) items;
    uir_vector(uir_iphase) phases;
    uir_vector(uir_icandidate) candidates;
    const char *file; /* for messages; may be NULL */
} uir_igraph;

/* ---- creation, text ---- */
uir_status uir_igraph_create(const uir_allocator *allocator, const char *name, const uir_machine *machine,
                             uir_igraph **out_igraph);
void uir_igraph_destroy(uir_igraph *igraph); /* NULL is fine */
/* Parses exactly one kernel. BAD_FILE with messages of line, column and caret. */
uir_status uir_igraph_parse(const uir_allocator *allocator, const uir_machine_list *devices, const char *text,
                            size_t length, const char *file, uir_diagnostics *diagnostics, uir_igraph **out_igraph);
/* Parses all kernels of a text: the variants of one kernel, or several. */
typedef struct uir_igraph_list {
    uir_igraph **igraphs;
    uint32_t count, capacity;
    uir_allocator allocator;
} uir_igraph_list;
uir_status uir_igraph_parse_list(const uir_allocator *allocator, const uir_machine_list *devices, const char *text,
                                 size_t length, const char *file, uir_diagnostics *diagnostics,
                                 uir_igraph_list *out_list);
/* The same for a part of a file that begins at line `line`. */
uir_status uir_igraph_parse_part(const uir_allocator *allocator, const uir_machine_list *devices, const char *text,
                                 size_t length, uint32_t line, const char *file, uir_diagnostics *diagnostics,
                                 uir_igraph_list *out_list);
/* Takes ownership of the kernel; after a failure, the kernel is destroyed. */
uir_status uir_igraph_list_add(uir_igraph_list *list, uir_igraph *igraph);
void uir_igraph_list_deinit(uir_igraph_list *list); /* destroys the kernels */
void uir_igraph_print(const uir_igraph *igraph, uir_text *text);
/* Copies the kernel with symbols in the order of first use in its text; unused ones are left out. INTERNAL if a symbol
 * is used outside its scope. */
uir_status uir_igraph_clone(const uir_igraph *igraph, const uir_allocator *allocator, uir_igraph **out_igraph);

/* ---- building ---- */
/* Adds a symbol to the kernel and to its dims. `facts` NULL: those of the kind and of `definition` (an axis is bounded
 * by its extent). Symbols of the kernel are made only here, so that index and uir_symbol.id agree. */
uir_status uir_igraph_add_symbol(uir_igraph *igraph, const char *name, size_t length, uir_isymbol_kind kind,
                                 const uir_symbol_facts *facts, uir_dim definition, uint32_t *out_index);
/* The dim that is the symbol. */
uir_dim uir_igraph_symbol_dim(const uir_igraph *igraph, uint32_t symbol);
/* Value of a name that the device defines: a space's capacity in bytes, `cores`; false if unknown. */
bool uir_igraph_device_value(const uir_machine *machine, const char *name, size_t length, int64_t *out_value);
/* The pipe of an instruction of a verified kernel, by its legal row; -1: in order with all pipes. */
int32_t uir_igraph_get_pipe(const uir_igraph *igraph, const uir_iinstruction *instruction);
/* The first row of the device's table from `from` on by which a unit of the kind may execute the instruction on its
 * slices; -1: none. */
int uir_igraph_find_legal(const uir_igraph *igraph, const uir_iinstruction *instruction, uint32_t unit_kind, int from);
/* Finishes the layout and sets element_span; INVALID_ARGUMENT if an expression overflows. */
uir_status uir_igraph_finish_pointer(uir_igraph *igraph, uir_ipointer *pointer);
/* The pointer that owns a pointer's storage: itself, or the one it is `over`. */
static inline uint32_t uir_igraph_place(const uir_igraph *igraph, uint32_t pointer) {
    uint32_t over = igraph->pointers.data[pointer].over;
    return over == UINT32_MAX ? pointer : over;
}
/* Whether two pointers share storage: a write to one makes the other's contents undefined. */
static inline bool uir_igraph_share_place(const uir_igraph *igraph, uint32_t a, uint32_t b) {
    return a != b && uir_igraph_place(igraph, a) == uir_igraph_place(igraph, b);
}
/* Bytes of one instance of a pointer, and of all instances; NONE if they overflow. */
uir_dim uir_igraph_instance_bytes(const uir_igraph *igraph, uint32_t pointer);
uir_dim uir_igraph_pointer_bytes(const uir_igraph *igraph, uint32_t pointer);
/* The placement of a window's last dim in a pointer of this layout (not `given`: row-major).
 *   ROW: contiguous in the device's memory.
 *   ACROSS: as a column of a matrix; the slice's last dim but one is contiguous and runs along the rows. Outside the
 *     device's memory, rows begin at the space's alignment.
 *   APART: otherwise. */
typedef enum uir_iwindow_lie { UIR_IWINDOW_ROW, UIR_IWINDOW_ACROSS, UIR_IWINDOW_APART } uir_iwindow_lie;
uir_iwindow_lie uir_igraph_window_lie(const uir_igraph *igraph, const uir_islice *window, const uir_layout *layout,
                                      uint32_t rank, const uir_space *space, uir_dtype dtype);
/* A slice of the whole pointer. */
void uir_igraph_whole_slice(const uir_igraph *igraph, uint32_t pointer, uir_islice *out_slice);

/* The index, into symbols, of a name (the first so named), or of a uir_symbol; UINT32_MAX if absent. */
uint32_t uir_igraph_find_symbol(const uir_igraph *igraph, const char *name, size_t length);
uint32_t uir_igraph_symbol_index(const uir_igraph *igraph, uir_symbol symbol);

/* ---- verifier (ir/kernel/verify/igraph_verify*.c) ----
 * Reports all errors; sets legal_row, unguarded. BAD_FILE: the kernel has an error, or lacks a proof. LIMIT: a proof
 * would need too much effort, and no error was found. */
uir_status uir_igraph_verify(uir_igraph *igraph, uir_diagnostics *diagnostics);

/* ---- the tiling function and sizes ---- */
/* Evaluates the tiling function, from the values of all DIM symbols in declaration order to the values of the TILE
 * symbols. The cheapest candidate for `workers` (1 and up) is chosen among those whose guard and the requires hold.
 * NOT_FOUND if no candidate is allowed; INVALID_ARGUMENT if a dim breaks its facts. */
uir_status uir_igraph_choose_tiles(const uir_igraph *igraph, const int64_t *dim_values, int64_t workers,
                                   int64_t *out_tiles, uir_diagnostics *diagnostics);
/* Makes an environment for uir_dim_evaluate: `values[symbol.id]` of dims, tiles, constants, device values and header
 * lets; the array has uir_dims_symbol_count entries. Checks facts and requires. */
uir_status uir_igraph_bind(const uir_igraph *igraph, const int64_t *dim_values, const int64_t *tile_values,
                           int64_t *values, bool *bound, uir_diagnostics *diagnostics);
uint32_t uir_igraph_count_symbols(const uir_igraph *igraph, uir_isymbol_kind kind);

/* ---- passes ---- */
/* Groups maximal sequences of elementwise instructions into RUN items (docs/igraph.md), and finds the pointers that are
 * dead after each run. */
uir_status uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics);

/* The poisoning interpreter, which defines the semantics of an iGraph. Faults: an undefined element that reaches a
 * stored one, an access out of bounds without a guard rule, two units writing one element, a missing sync. */
uir_status uir_igraph_interpret(const uir_igraph *igraph, const uir_kernel_arguments *arguments,
                                const volatile bool *cancel, uir_diagnostics *diagnostics);

/* The memory model of a synchronised kernel: the order of instructions on parallel pipes.
 *
 * A unit's program is its body with all loops unrolled: one sequence of instructions and syncs. Each pipe executes its
 * own instructions of that sequence in order, one after the other; only syncs order a pipe with others. All pipes see
 * the effects of a finished instruction at once. Guarantees at each point of the program:
 *   sync.A.B %p          later instructions of B begin only when A has finished all earlier ones that touch %p or its
 *                        shared storage; without %p: all earlier ones. In a loop this includes earlier iterations.
 *   sync.A.B %p dist d   in iteration i of the innermost loop: as above, but for A's instructions up to the end of the
 *                        last executed iteration before i whose index is i modulo d: i - d, or one of an earlier run of
 *                        the loop. Without such an iteration, B continues. So a buffer of n instances by that loop
 *                        needs a d that divides n.
 *   index                reads when all earlier instructions that touch its operand's storage have finished; later
 *                        instructions begin after it
 *   no pipe, a barrier   begins when all earlier instructions have finished; later ones begin after it
 * A pair A.B has a limited number of flags (`flags` of the description). A wait with a distance holds d flags while its
 * loop runs, one per iteration in flight. The other waits share one, each from its point in A's sequence to that in
 * B's. The end of a phase orders everything. */
typedef struct uir_interleaving {
    uint64_t seed;        /* chooses the next pipe among those that are ready, one instruction at a time */
    int32_t delayed_pipe; /* chosen only if no other pipe is ready; -1: none is delayed */
    bool elements_alone;  /* an access out of order is no fault by itself: only wrong contents show it */
} uir_interleaving;
/* Interprets a verified kernel with its pipes interleaved in such an order, instead of program order. One more fault is
 * an access out of order. An instruction must not access an element that a later instruction of the program has
 * changed, or write an element that a later instruction has read. Without pipes, the result is that of
 * uir_igraph_interpret. */
uir_status uir_igraph_interpret_interleaved(const uir_igraph *igraph, const uir_kernel_arguments *arguments,
                                            const uir_interleaving *interleaving, const volatile bool *cancel,
                                            uir_diagnostics *diagnostics);

/* Copies a row-major tensor into a pointer's layout and back. Packing zeroes the layout's padding. `values`: the
 * environment of uir_igraph_bind. */
uir_status uir_igraph_pack(const uir_igraph *igraph, uint32_t pointer, const int64_t *values, const void *row_major,
                           void *packed);
uir_status uir_igraph_unpack(const uir_igraph *igraph, uint32_t pointer, const int64_t *values, const void *packed,
                             void *row_major);

#endif
