/* Inside the prover of the iGraph's verifier: the room of one proof, a matrix of facts over monomials. */
#ifndef UIR_IR_IGRAPH_PROVE_H
#define UIR_IR_IGRAPH_PROVE_H

#include "ir/kernel/verify/igraph_term.h"

#define UIR_PROVER_MAX_ROWS      112
#define UIR_PROVER_MAX_COLUMNS   280
#define UIR_PROVER_MAX_ENTRIES   6000
#define UIR_PROVER_MAX_VARIABLES 64
#define UIR_PROVER_ROW_TABLE     512

typedef struct uir_prover_entry {
    uint32_t row;
    int64_t coefficient;
} uir_prover_entry;

typedef struct uir_prover_room {
    /* The last column is the right side, the last row the sum to be reduced. */
    double table[UIR_PROVER_MAX_ROWS + 1][UIR_PROVER_MAX_COLUMNS + 1];
    uir_monomial rows[UIR_PROVER_MAX_ROWS]; /* coefficient unused */
    uint16_t row_table[UIR_PROVER_ROW_TABLE];
    uint32_t row_count;
    uint32_t column_start[UIR_PROVER_MAX_COLUMNS + 1], column_count;
    uir_prover_entry entries[UIR_PROVER_MAX_ENTRIES];
    uint32_t basis[UIR_PROVER_MAX_ROWS]; /* column, or UINT32_MAX while the row has its artificial one */
    uint32_t variables[UIR_PROVER_MAX_VARIABLES], variable_count;
    uint64_t assumed;                     /* a hash of the assumptions that were taken */
    double scale[UIR_PROVER_MAX_COLUMNS]; /* of the columns in the table */
    bool full;
    bool wide, omitted; /* large bounds are taken; some were left out */
    bool missed;        /* some assumptions were taken for what is inside a quotient alone */
    uint64_t random;
    int64_t values[UIR_PROVER_MAX_VARIABLES]; /* of a trial point */
    uint8_t state[UIR_PROVER_MAX_VARIABLES];
} uir_prover;

/* ---- igraph_prove_simplex.c ---- */
/* Whether a combination of columns was found that is the constant -1, as far as floating point tells. */
bool uir_prover_solve(uir_terms *t, uir_prover *p);
/* Whether the combination found, in integers, is a negative constant. */
bool uir_prover_certify(uir_prover *p);

/* ---- igraph_prove_counterexample.c ---- */
/* Whether a trial point satisfies every column, the negated goal among them. */
bool uir_prover_has_counterexample(uir_terms *t, uir_prover *p);

#endif
