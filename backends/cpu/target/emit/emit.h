/* Internal declarations of the emitter: its state and functions.
 *
 * Expressions are built as strings in the emitter's arena and written line by line. Helpers see only one instruction
 * and its slices, not the rest of the kernel. */
#ifndef UIR_BACKENDS_CPU_TARGET_EMIT_H
#define UIR_BACKENDS_CPU_TARGET_EMIT_H

#include "backends/cpu/target/cpu.h"
#include "backends/source/source.h"
#include "ir/kernel/igraph_forwarding.h"
#include "ir/kernel/igraph_runs.h"

typedef struct emitter {
    uir_c_writer c;
    uir_diagnostics *diagnostics;
    const char **pointers; /* C name of each pointer */
    const uir_iinstruction *
        *forwarded; /* per pointer: the move that is elided, since caches are the chip's memory; NULL */
    bool *begins;   /* per instruction: mma that begins with sums of 0, instead of a fill before it */
    uint32_t next;  /* number for names of one block */
    bool streams;   /* the phase has non-temporal stores */
} emitter;

/* emit_text.c: names of types in the prelude (prelude_vector.inc), and literals. */
const char *uir_c_type(uir_dtype dtype); /* "f32", "boolean" */
const char *uir_c_literal(emitter *e, uir_dtype dtype, double value);

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

/* The embedded text of prelude_*.inc and ir/kernel/interpret/kernel_math.inc. */
extern const char *const uir_cpu_prelude_parts[];
extern const size_t uir_cpu_prelude_sizes[];
extern const uint32_t uir_cpu_prelude_count;

#endif
