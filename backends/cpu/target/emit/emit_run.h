/* A run while it is emitted: shared by emit_run.c and emit_abreast.c. */
#ifndef UIR_BACKENDS_CPU_TARGET_EMIT_RUN_H
#define UIR_BACKENDS_CPU_TARGET_EMIT_RUN_H

#include "backends/cpu/target/emit/emit.h"

typedef struct operand {
    access access;
    along along;
    uint32_t dim;      /* the pointer dim that moves along the last dim */
    const char *name;  /* prefix of this access's variables */
    bool guarded;      /* along the last dim */
    bool used;         /* touches memory */
    const char *blank; /* of a row that is there or not as a whole: what is read, or written, in its place; NULL: it is
                          no such row */
    uint32_t row;      /* of rows abreast: the first that touches these elements */
    bool moves;        /* its address is chosen for each step of rows abreast */
} operand;

/* Elements that stand for a row outside; `fill`: NULL where they are only written. */
typedef struct blank {
    const char *type, *fill, *name;
} blank;

enum { MOST_BLANK = 2048, BLANKS = 4, ABREAST = 4 };

typedef struct value {
    const uir_islice *slice;
    const char *name;
    uint32_t block; /* the body in which it was declared */
    bool late;      /* of the turn before */
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
    bool interleaved;    /* whole blocks compute UIR_INTERLEAVE vectors in step */
    uint32_t abreast;    /* rows that are computed together; the instructions are each row's, in turn */
    const uir_iinstruction *const *originals; /* of rows abreast: the run's own instructions */
    const overlap *overlap;
    const char *turn; /* what the loop's symbol is called outside the turn before */
    blank blanks[BLANKS];
    uint32_t blank_count;
} run;

/* How much of a row a body computes: UIR_INTERLEAVE vectors, a vector, what there is of one. */

/* ---- emit_run.c ---- */
/* Where the operands of a run lie, and what is stored; false: memory ran out. */
bool uir_run_begin(run *r);
/* Slice k of instruction `at`. What is not proved to be inside is asked of the run's own slices: rows behind the last
 * are not touched. */
void uir_run_begin_access(run *r, uint32_t at, uint32_t k, access *out);
/* The slice's index with another variable along the last dim. */
const char **uir_run_index_last(run *r, const operand *o, const char *last, const char **out);
int64_t uir_run_longest_row(const run *r); /* elements */

/* ---- emit_abreast.c ---- */
/* `out`: the run with rows abreast; false: that gains nothing, or the run cannot be told so. */
bool uir_run_set_abreast(const run *plain, run *out);
/* Declares and chooses the addresses of a step's rows. */
void uir_run_emit_addresses(run *r);
/* As uir_islice_equal; windows of rows abreast too. */
bool uir_run_same_elements(const emitter *e, const uir_islice *a, const uir_islice *b);
bool uir_run_moves_with_row(emitter *e, const uir_islice *slice);

#endif
