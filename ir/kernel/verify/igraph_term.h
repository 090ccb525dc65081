/* Terms: integer polynomials and a prover of `term >= 0`, for the iGraph's verifier.
 *
 * In: dims of a kernel. Out: polynomials with integer coefficients over variables, interned, so that equal handles are
 * equal polynomials; and a prover of `term >= 0` under assumptions. A variable is a symbol of the kernel, a fresh one
 * (a copy of an index, a point), or floordiv / min / max of two terms. The facts about a variable are constant bounds
 * and axioms, terms that are at least 0. Term 0 is "unknown" (an overflow, or too large): operations on it are unknown,
 * and no claim about it is proved. */
#ifndef UIR_IR_IGRAPH_TERM_H
#define UIR_IR_IGRAPH_TERM_H

#include "ir/kernel/igraph.h"

typedef uint32_t uir_term;
#define UIR_TERM_UNKNOWN       0u
#define UIR_TERM_MAX_DEGREE    6
#define UIR_TERM_MAX_MONOMIALS 48
#define UIR_VARIABLE_NONE      UINT32_MAX

typedef struct uir_monomial {
    int64_t coefficient;
    uint32_t degree;
    uint32_t variables[UIR_TERM_MAX_DEGREE]; /* ascending, repeated for powers */
} uir_monomial;

typedef enum uir_variable_kind {
    UIR_VARIABLE_SYMBOL,
    UIR_VARIABLE_FRESH,
    UIR_VARIABLE_FLOORDIV,
    UIR_VARIABLE_MIN,
    UIR_VARIABLE_MAX
} uir_variable_kind;

typedef struct uir_variable {
    uir_variable_kind kind;
    uir_term a, b;      /* FLOORDIV, MIN, MAX */
    int64_t min, max;   /* inclusive; INT64_MIN, INT64_MAX: unknown */
    uir_term axioms[4]; /* each >= 0 */
    uint32_t axiom_count;
    uint64_t mentions; /* of a and b: see uir_term_node */
    uint32_t symbol;   /* SYMBOL: its index in the kernel */
} uir_variable;

typedef struct uir_term_node {
    const uir_monomial *monomials; /* by degree, then by variables; no zero coefficients */
    uint32_t count;
    uint64_t hash;
    uint64_t mentions; /* a bit per variable modulo 64, those inside floordiv, min and max included */
} uir_term_node;

typedef struct uir_terms {
    uir_arena *arena;
    uir_igraph *igraph;
    uir_vector(uir_term_node) nodes;
    uir_vector(uir_variable) variables;
    uint32_t *table; /* interning: node + 1, 0 free */
    uint32_t table_size;
    uir_term *of_dim; /* by dim id; grows */
    uint32_t of_dim_count;
    uint32_t *of_symbol;              /* variable of a kernel's symbol; UINT32_MAX: not made yet */
    uir_vector(uir_term) assumptions; /* a stack; each >= 0 */
    struct uir_proof_memo {
        uint64_t key;
        uir_term goal;
        bool proved;
    } * memo;
    uint64_t effort;        /* spent so far: a kernel that needs too much is rejected */
    uint64_t told;          /* the part of effort charged to the arena's budget */
    bool exhausted, failed; /* over the limit of effort or memory; out of memory or budget */
    bool thorough;          /* also uses assumptions that share a variable only inside a quotient, min or max: slow */
    struct uir_prover_room *room;
} uir_terms;

uir_status uir_terms_init(uir_terms *terms, uir_arena *arena, uir_igraph *igraph);

uir_term uir_term_const(uir_terms *terms, int64_t value);
uir_term uir_term_variable(uir_terms *terms, uint32_t variable);
/* A new variable with these bounds. Axioms may be added until the first proof about it. */
uint32_t uir_term_fresh(uir_terms *terms, int64_t min, int64_t max);
void uir_term_add_axiom(uir_terms *terms, uint32_t variable, uir_term axiom);
uir_term uir_term_add(uir_terms *terms, uir_term a, uir_term b);
uir_term uir_term_sub(uir_terms *terms, uir_term a, uir_term b);
uir_term uir_term_mul(uir_terms *terms, uir_term a, uir_term b);
uir_term uir_term_floordiv(uir_terms *terms, uir_term a, uir_term b);
uir_term uir_term_min(uir_terms *terms, uir_term a, uir_term b);
uir_term uir_term_max(uir_terms *terms, uir_term a, uir_term b);
/* The dim as a term, with lets, constants and the device's values replaced by their definitions. */
uir_term uir_term_of_dim(uir_terms *terms, uir_dim dim);
/* The variable of a symbol that is a size, tile, axis or index. */
uint32_t uir_term_of_symbol(uir_terms *terms, uint32_t symbol);

bool uir_term_is_const(const uir_terms *terms, uir_term term, int64_t *out_value);
bool uir_term_mentions(const uir_terms *terms, uir_term term, uint32_t variable);
/* Replaces variables by terms everywhere in the term. `from` and `to` have `count` entries. */
uir_term uir_term_substitute(uir_terms *terms, uir_term term, const uint32_t *from, const uir_term *to, uint32_t count);
/* term = *out_factor * variable + *out_rest, neither mentioning the variable; false if the term has no such form. */
bool uir_term_split(uir_terms *terms, uir_term term, uint32_t variable, uir_term *out_factor, uir_term *out_rest);
/* A lower bound of a - b, by the bounds of variables; INT64_MIN: none. */
int64_t uir_term_least_difference(const uir_terms *terms, uir_term a, uir_term b);
/* The least and greatest value, by constant bounds only. */
void uir_term_bounds(const uir_terms *terms, uir_term term, int64_t *out_min, int64_t *out_max);
/* The greatest number known to divide every value of the term. */
int64_t uir_term_divisor(const uir_terms *terms, uir_term term);

/* ---- proving (igraph_prove.c) ---- */
/* Whether the term is always >= 0, given the variables' facts and the assumptions. */
bool uir_term_prove(uir_terms *terms, uir_term term);
/* a <= b, a < b, a == b. */
bool uir_term_prove_le(uir_terms *terms, uir_term a, uir_term b);
bool uir_term_prove_lt(uir_terms *terms, uir_term a, uir_term b);
bool uir_term_prove_eq(uir_terms *terms, uir_term a, uir_term b);
/* Whether the assumptions contradict each other, so that the point is never reached. */
bool uir_term_prove_unreachable(uir_terms *terms);
void uir_term_assume(uir_terms *terms, uir_term term);
/* Charges effort, and memory allocated so far, against the limits of one verification. */
void uir_term_spend(uir_terms *terms, uint64_t effort);

#endif
