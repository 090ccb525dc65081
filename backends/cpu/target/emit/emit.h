/* The emitter's state and what its files share. Private to this folder.
 *
 * Expressions are built as strings in the emitter's arena and written line by line. Every helper takes an instruction's
 * slices at one place; nothing looks around in the kernel. */
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
        *forwarded; /* per pointer: the move not to be made, as caches are the chip's memory; NULL */
    bool *begins;   /* per instruction: mma whose sums are 0 before it, which a fill says that is not made */
    uint32_t next;  /* number for names of one block */
    bool streams;   /* the phase stores around the caches */
} emitter;

/* emit_text.c: what the prelude (prelude_vector.inc) calls a type, and a literal of it. */
const char *uir_c_type(uir_dtype dtype); /* "f32", "boolean" */
const char *uir_c_literal(emitter *e, uir_dtype dtype, double value);

/* emit_slice.c: where a slice's elements lie. */
#define INDEX_MAX UIR_IGRAPH_MAX_RANK
typedef struct access {
    const uir_islice *slice;
    const uir_ipointer *pointer;
    const char *type;
    const char *base;                     /* C expression of the instance's first element */
    const char *missing;                  /* condition under which nothing is outside through an index, or NULL */
    bool low[INDEX_MAX], high[INDEX_MAX]; /* per pointer dim: not proved to be >= 0, < extent */
} access;

void uir_access_init(emitter *e, const uir_islice *slice, bool unguarded, access *out);
bool uir_access_guarded(const access *a);
/* Coordinates in the pointer for an index per dim of the slice (C expressions). */
void uir_access_coordinates(emitter *e, const access *a, const char *const *index, const char **out_coordinates);
const char *uir_access_offset(emitter *e, const access *a, const char *const *coordinates);
/* The condition that the coordinates lie inside, "1" when proved; `skip`: a dim left out, or UINT32_MAX. */
const char *uir_access_inside(emitter *e, const access *a, const char *const *coordinates, uint32_t skip);
/* The same condition in two parts: where coordinates do not depend on the variable, and where they do. */
void uir_access_split_inside(emitter *e, const access *a, const char *const *coordinates, const char *variable,
                             const char **out_fixed, const char **out_moving);
/* A scalar read (the fill outside, or `otherwise` without one) or write of one element. */
const char *uir_access_read(emitter *e, const access *a, const char *const *index, const char *otherwise);
void uir_access_write(emitter *e, const access *a, const char *const *index, const char *value);

/* Along the slice's last dim: one element for all, consecutive ones, consecutive in blocks of 32, every
 * second one (of 32-bit types; read only), or anything. */
typedef enum along { ALONG_SPLAT, ALONG_UNIT, ALONG_PANEL, ALONG_SECOND, ALONG_ANY } along;
/* `out_dim`: the pointer dim that moves (UNIT, PANEL, SECOND). */
along uir_access_along_last(emitter *e, const access *a, uint32_t *out_dim);
/* C index expressions of a slice's dims for loop variables over `shape` (aligned at the end, 1 broadcasts). */
void uir_access_align(emitter *e, const uir_islice *slice, const uir_dim *shape, uint32_t shape_rank,
                      const char *const *loops, const char **out_index);
/* The slice's dims without leading ones that are 1, `keep` remain at least; returns how many were dropped. */
uint32_t uir_access_leading_ones(emitter *e, const uir_islice *slice, uint32_t keep);

/* A window whose rows and columns, its dims `first` and the next, each run along one dim of the pointer, a step of 1 at
 * a time, is a box: written down as one, with the dims that they are. NULL: it is none. */
const uir_islice *uir_emit_box_of_window(emitter *e, const uir_islice *window, uint32_t first, uint32_t *out_dims);

/* emit_run.c, emit_move.c, emit_reduce.c, emit_mma.c: instructions. */
/* The first `late` instructions of a run are of the turn before of the loop over `symbol`, which is called `before`. */
typedef struct overlap {
    uint32_t late, symbol;
    const char *before;
} overlap;
/* `overlap`: NULL where all instructions are of one turn. */
void uir_emit_run(emitter *e, const uir_iinstruction *const *instructions, uint32_t count, const uint32_t *dead,
                  uint32_t dead_count, const overlap *overlap);
bool uir_emit_move(emitter *e, const uir_iinstruction *instruction); /* false: a run will do */
void uir_emit_reduce(emitter *e, const uir_iinstruction *instruction);
void uir_emit_scan(emitter *e, const uir_iinstruction *instruction);
void uir_emit_mma(emitter *e, const uir_iinstruction *instruction);
/* Can the mma begin with sums of 0 itself? */
bool uir_emit_can_begin(emitter *e, const uir_iinstruction *instruction);
const char *uir_c_identity(emitter *e, uir_iop_code code, uir_dtype dtype);
const char *uir_c_operation(uir_iop_code code); /* "add" of reduce.add and scan.add */

/* The embedded text of prelude_*.inc and ir/kernel/interpret/kernel_math.inc. */
extern const char *const uir_cpu_prelude_parts[];
extern const size_t uir_cpu_prelude_sizes[];
extern const uint32_t uir_cpu_prelude_count;

#endif
