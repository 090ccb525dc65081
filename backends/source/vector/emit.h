/* Prints kernels whose unit is one thread with vectors: its state and functions.
 *
 * In: a verified kernel, and what the printed language has of its own (a dialect). Out: a function for each phase, in C
 * that calls the vector functions of a prelude by name (v_add_f32). Expressions are built as strings in the emitter's
 * arena and written line by line. Helpers see only one instruction and its slices, not the rest of the kernel. */
#ifndef UIR_BACKENDS_SOURCE_VECTOR_EMIT_H
#define UIR_BACKENDS_SOURCE_VECTOR_EMIT_H

#include "backends/source/source.h"
#include "ir/kernel/igraph_forwarding.h"
#include "ir/kernel/igraph_runs.h"

/* A language that the text is printed in: C, or one like it. */
typedef struct uir_vector_dialect uir_vector_dialect;

typedef struct emitter {
    uir_c_writer c;
    const uir_vector_dialect *dialect;
    uir_diagnostics *diagnostics;
    const char **pointers; /* C name of each pointer */
    const uir_iinstruction *
        *forwarded; /* per pointer: the move that is elided, since caches are the chip's memory; NULL */
    bool *begins;   /* per instruction: mma that begins with sums of 0, instead of a fill before it */
    uint32_t next;  /* number for names of one block */
    bool streams;   /* the phase has non-temporal stores */
} emitter;

struct uir_vector_dialect {
    const char *memory;  /* in front of the type that a pointer to a kernel's memory points to: "__global "; "" */
    const char *lanes;   /* in names of loads and stores of a local array: "lanes_" in v_load_lanes_f32; "" */
    bool has_one_memory; /* a pointer may point to local arrays too; else such arrays are in the kernel's scratch memory
                          */
    bool has_streams;    /* stores that bypass caches */
    bool has_cancel;     /* a phase returns early once `*cancel` is set */
    bool casts_bits;     /* a cast of vectors keeps the bits: (v_i32)x; else v_bits_f32_i32(x) */
    /* Prints the phase's head, opens its body, and declares `begin` and `end`, the flat indices to execute; `symbols`;
     * `scratch`, bytes of memory of its own, from which `arrays` is UIR_VECTOR_ARRAY_BYTES of them unless there is one
     * memory. */
    void (*open_phase)(emitter *e, const char *symbol, uint32_t phase);
    /* Declares `on_chip`: the place of local pointers in that memory. */
    void (*declare_local)(emitter *e);
    const char *(*argument)(emitter *e, uint32_t number); /* an expression: the address of a pointer in device memory */
};
/* Bytes for local arrays of a dialect that has them in scratch memory. */
enum { UIR_VECTOR_ARRAY_BYTES = 65536 };

/* Appends one kernel; its functions are named after uir_c_symbol. */
uir_status uir_vector_emit(const uir_igraph *igraph, const uir_vector_dialect *dialect, uint32_t index, uir_text *text,
                           uir_diagnostics *diagnostics);
/* Bytes of local pointers, each with a place of its own and rounded up to 64; NONE if the expression cannot be made. */
uir_dim uir_vector_local_bytes(const uir_igraph *igraph);
/* Declares a local array, or, of a dialect with several memories, a pointer to `place` among `arrays`. */
void uir_emit_array(emitter *e, const char *type, const char *name, int64_t count, uint32_t place);

/* emit_text.c: names of types in the prelude (prelude_vector.inc), and literals. */
const char *uir_c_type(uir_dtype dtype); /* "f32", "boolean" */
const char *uir_c_literal(emitter *e, uir_dtype dtype, double value);
/* The vector that an elementwise instruction computes from the operands `x`; `row`, `column`: indices of its first
 * element along the last two dims. */
const char *uir_emit_compute(emitter *e, const uir_iinstruction *instruction, const char *const x[3], const char *row,
                             const char *column);

/* emit_slice.c: addresses of a slice's elements. */
#define INDEX_MAX UIR_IGRAPH_MAX_RANK
typedef struct access {
    const uir_islice *slice;
    const uir_ipointer *pointer;
    const char *type;
    const char *base;                     /* C expression of the instance's first element */
    const char *missing;                  /* condition that no data index is outside, or NULL */
    bool low[INDEX_MAX], high[INDEX_MAX]; /* per pointer dim: not proved to be >= 0, < extent */
} access;

void uir_access_init(emitter *e, const uir_islice *slice, bool unguarded, access *out);
bool uir_access_guarded(const access *a);
/* Coordinates in the pointer for an index per dim of the slice (C expressions). */
void uir_access_coordinates(emitter *e, const access *a, const char *const *index, const char **out_coordinates);
const char *uir_access_offset(emitter *e, const access *a, const char *const *coordinates);
/* The condition that the coordinates are inside, NULL if proved; `skip`: a dim left out, or UINT32_MAX. */
const char *uir_access_inside(emitter *e, const access *a, const char *const *coordinates, uint32_t skip);
/* The same condition in two parts: coordinates that do not depend on the variable ("1" if proved), and those that do
 * (NULL if proved). */
void uir_access_split_inside(emitter *e, const access *a, const char *const *coordinates, const char *variable,
                             const char **out_fixed, const char **out_moving);
/* Reads (outside: the fill, else `otherwise`) or writes one element. */
const char *uir_access_read(emitter *e, const access *a, const char *const *index, const char *otherwise);
void uir_access_write(emitter *e, const access *a, const char *const *index, const char *value);

/* Pattern along the slice's last dim: one element for all, consecutive, consecutive in blocks of 32, every second one
 * (of 32-bit types; read only), or any. */
typedef enum along { ALONG_SPLAT, ALONG_UNIT, ALONG_PANEL, ALONG_SECOND, ALONG_ANY } along;
/* `out_dim`: the pointer dim that moves (UNIT, PANEL, SECOND). */
along uir_access_along_last(emitter *e, const access *a, uint32_t *out_dim);
/* C index expressions of a slice's dims for loop variables over `shape` (aligned at the end, 1 broadcasts). */
void uir_access_align(emitter *e, const uir_islice *slice, const uir_dim *shape, uint32_t shape_rank,
                      const char *const *loops, const char **out_index);
/* The last of these indices: one element for all, the loop's own variable, or another expression of it. */
typedef enum place { PLACE_ONE, PLACE_LOOP, PLACE_OTHER } place;
place uir_access_last(emitter *e, const uir_islice *slice, const uir_dim *shape, uint32_t shape_rank);
/* Drops leading dims of extent 1, down to `keep` dims; returns how many were dropped. */
uint32_t uir_access_leading_ones(emitter *e, const uir_islice *slice, uint32_t keep);

/* Converts a window to a box, if its rows and columns, its dims `first` and the next, each step by 1 along one dim of
 * the pointer. `out_dims`: those dims. NULL: not possible. */
const uir_islice *uir_emit_box_of_window(emitter *e, const uir_islice *window, uint32_t first, uint32_t *out_dims);

/* emit_run.c, emit_move.c, emit_reduce.c, emit_mma.c: instructions. */
/* Software pipelining: the first `late` instructions of a run belong to the iteration before of the loop over `symbol`,
 * whose value is then `before`. */
typedef struct overlap {
    uint32_t late, symbol;
    const char *before;
} overlap;
/* `overlap`: NULL if all instructions are of one iteration. */
void uir_emit_run(emitter *e, const uir_iinstruction *const *instructions, uint32_t count, const uint32_t *dead,
                  uint32_t dead_count, const overlap *overlap);
bool uir_emit_move(emitter *e, const uir_iinstruction *instruction); /* false: to be emitted as a run */
void uir_emit_reduce(emitter *e, const uir_iinstruction *instruction);
void uir_emit_scan(emitter *e, const uir_iinstruction *instruction);
void uir_emit_mma(emitter *e, const uir_iinstruction *instruction);
/* Whether the mma can begin with sums of 0 itself. */
bool uir_emit_can_begin(emitter *e, const uir_iinstruction *instruction);
const char *uir_c_identity(emitter *e, uir_iop_code code, uir_dtype dtype);
const char *uir_c_operation(uir_iop_code code); /* "add" of reduce.add and scan.add */

#endif
