/* Internal declarations of the emitter of runs: a run while it is emitted. */
#ifndef UIR_BACKENDS_SOURCE_VECTOR_EMIT_RUN_H
#define UIR_BACKENDS_SOURCE_VECTOR_EMIT_RUN_H

#include "backends/source/vector/emit.h"

typedef struct operand {
    access access;
    along along;
    uint32_t dim;      /* the pointer dim that moves along the last dim */
    const char *name;  /* prefix of this access's variables */
    bool guarded;      /* along the last dim */
    bool used;         /* touches memory */
    const char *blank; /* buffer for a row that is outside as a whole, read or written instead; NULL: not such a row */
    uint32_t row;      /* unroll-and-jam: the first row that uses these elements */
    bool moves;        /* unroll-and-jam: its address is chosen for each step of rows */
} operand;

/* The buffer for a row outside; `fill`: NULL if only written. */
typedef struct blank {
    const char *type, *fill, *name;
} blank;

enum { MOST_BLANK = 2048, BLANKS = 4, ABREAST = 4, BLANK_BYTES = MOST_BLANK * 8 };
_Static_assert((int)BLANKS *(int)BLANK_BYTES <= (int)UIR_VECTOR_ARRAY_BYTES, "blank rows have storage of their own");

typedef struct value {
    const uir_islice *slice;
    const char *name;
    uint32_t block; /* the body that declares it */
    bool late;      /* of the iteration before */
} value;

typedef struct run {
    emitter *e;
    const uir_iinstruction *const *instructions;
    uint32_t count, reductions;
    const uint32_t *dead;
    uint32_t dead_count;
    const uir_dim *shape;
    uint32_t rank;
    const char *loops[INDEX_MAX + 1]; /* k0 .. , "j" */
    operand *operands;                /* per instruction UIR_IOP_MAX_SLICES */
    value *values;
    uint32_t value_count, block;
    bool guarded, exact; /* exact: the last dim is a multiple of the block and nothing is guarded */
    bool single;         /* the last dim is 1 */
    bool interleaved;    /* whole blocks interleave UIR_INTERLEAVE vectors */
    uint32_t abreast;    /* rows computed together (unroll-and-jam); instruction i of row r at i * abreast + r */
    const uir_iinstruction *const *originals; /* with unroll-and-jam: the run's own instructions */
    const overlap *overlap;
    const char *turn; /* value of the loop's symbol, except in the iteration before */
    blank blanks[BLANKS];
    uint32_t blank_count;
} run;

/* ---- emit_run.c ---- */
/* Prepares the accesses of a run, and determines the stores; false: out of memory. */
bool uir_run_begin(run *r);
/* Slice k of instruction `at`. Guards are those of the run's own slices: rows behind the last are not touched. */
void uir_run_begin_access(run *r, uint32_t at, uint32_t k, access *out);
/* The slice's index with another variable along the last dim. */
const char **uir_run_index_last(run *r, const operand *o, const char *last, const char **out);
int64_t uir_run_longest_row(const run *r); /* elements */

/* ---- emit_abreast.c ---- */
/* Unroll-and-jam: `out` computes several rows together; false: no gain, or not possible. */
bool uir_run_set_abreast(const run *plain, run *out);
/* Declares and chooses the addresses of a step's rows. */
void uir_run_emit_addresses(run *r);
/* As uir_islice_equal, also for windows of rows computed together. */
bool uir_run_same_elements(const emitter *e, const uir_islice *a, const uir_islice *b);
bool uir_run_moves_with_row(emitter *e, const uir_islice *slice);

#endif
