/* Internal declarations of symbolic dims, for the files of base/dims only.
 *
 * An expression is interned in canonical form: a polynomial whose atoms are symbols and the other node kinds. The
 * files: dim.c (context, nodes), dim_polynomial.c (arithmetic on canonical sums), dim_build.c (builders), dim_bounds.c
 * (intervals, divisibility), dim_prove.c (comparison), dim_trial.c (trial points before it), dim_evaluate.c
 * (evaluation, substitution), dim_text.c. */
#ifndef UIR_BASE_DIM_INTERNAL_H
#define UIR_BASE_DIM_INTERNAL_H

#include "base/dims/dim.h"
#include "base/vector.h"

enum {
    DIM_DEPTH_MAX = 200,    /* of nested nodes: recursion over an expression is bounded by it */
    DIM_TREE_MAX = 1 << 20, /* nodes of an expression written out: bounds printing */
    DIM_TERMS_MAX = 1024,   /* of one sum */
    DIM_DEGREE_MAX = 64,    /* factors of one product */
    DIM_OPERANDS_MAX = 64   /* of one min or max */
};

typedef struct dim_node {
    uir_dim_node node;
    uir_dim self; /* the handle; a stable one-element operand list as well */
    uint32_t hash;
    uint32_t depth;
    uint32_t tree_size; /* nodes when written out as a tree */
    uint32_t symbol_count;
    const uint32_t *symbols; /* ids of the symbols inside, ascending */
    bool divides_by_unknown; /* some divisor was not known to be positive: evaluation may fail */
    /* Cached facts, valid while facts_version is the context's. */
    bool busy;
    uint32_t facts_version;
    int64_t min, max, multiple;
} dim_node;

typedef struct dim_symbol {
    const char *name;
    size_t length;
    uir_symbol_facts facts;
    uir_dim dim;
} dim_symbol;

struct uir_dims {
    uir_allocator allocator;
    uir_arena arena;
    uir_arena scratch;
    uir_vector(dim_node *) nodes; /* entry id - 1 */
    uir_vector(dim_symbol) symbols;
    uint32_t *table; /* open addressing over node ids, 0 = free */
    uint32_t table_size;
    uint32_t facts_version;
    bool out_of_memory; /* cause of the last builder's failure */
};

/* A term of a sum: coefficient * atoms[0] * ... Atoms are sorted and never CONST, ADD or MUL. */
typedef struct term {
    int64_t coefficient;
    uint32_t degree;
    const uir_dim *atoms;
} term;

/* A sum of terms with distinct monomials, none zero, in canonical order, the constant last. Lives in scratch. */
typedef struct polynomial {
    term *terms;
    uint32_t count;
} polynomial;

static inline dim_node *dim_at(const uir_dims *dims, uir_dim dim) {
    return dims->nodes.data[dim.id - 1];
}

/* Finds or adds a node; its operands must be canonical. */
uir_dim uir_dim_intern(uir_dims *dims, uir_dim_kind kind, int64_t value, const uir_dim *operands, uint32_t count);
/* MIN or MAX of all operands at once: pairs may share terms that all operands together do not. */
uir_dim uir_dim_extreme(uir_dims *dims, uir_dim_kind kind, const uir_dim *operands, uint32_t count);
/* A total order by structure and names, so that text does not depend on the order of creation. */
int uir_dim_order(const uir_dims *dims, uir_dim a, uir_dim b);
bool uir_dim_has_symbol(const dim_node *node, uint32_t symbol);
/* Scratch memory, not zeroed; the caller releases it by the arena's marks. NULL marks the context out of memory. */
void *uir_dim_scratch(uir_dims *dims, size_t count, size_t size);

/* Polynomials; all return false on overflow, a limit or exhausted memory. */
bool uir_polynomial_from_dim(uir_dims *dims, uir_dim dim, polynomial *out);
bool uir_polynomial_from_const(uir_dims *dims, int64_t value, polynomial *out);
bool uir_polynomial_add_scaled(uir_dims *dims, polynomial a, polynomial b, int64_t factor, polynomial *out);
bool uir_polynomial_multiply(uir_dims *dims, polynomial a, polynomial b, polynomial *out);
bool uir_polynomial_multiply_term(uir_dims *dims, polynomial a, term factor, polynomial *out);
/* a / b exactly, when b's atoms are among a's and the coefficient divides. */
bool uir_term_divide(uir_dims *dims, term a, term b, term *out);
/* The same monomial without one occurrence of the atom; false when it has none. */
bool uir_term_without(uir_dims *dims, term a, uir_dim atom, term *out);
bool uir_term_same_monomial(term a, term b);
uir_dim uir_polynomial_to_dim(uir_dims *dims, polynomial p);
static inline int64_t polynomial_constant(polynomial p) {
    return p.count && p.terms[p.count - 1].degree == 0 ? p.terms[p.count - 1].coefficient : 0;
}
static inline bool polynomial_is_const(polynomial p) {
    return p.count == 0 || (p.count == 1 && p.terms[0].degree == 0);
}

/* Intervals with INT64_MIN and INT64_MAX as infinities. */
typedef struct interval {
    int64_t min, max;
} interval;
interval uir_dim_interval(uir_dims *dims, uir_dim dim);
interval uir_term_interval(uir_dims *dims, term t);
interval uir_polynomial_interval(uir_dims *dims, polynomial p);
int64_t uir_term_multiple(uir_dims *dims, term t);
int64_t uir_integer_gcd(int64_t a, int64_t b);
int64_t uir_integer_floordiv(int64_t a, int64_t b); /* b >= 1 */
int64_t uir_integer_ceildiv(int64_t a, int64_t b);
int64_t uir_integer_mod(int64_t a, int64_t b);

/* Whether p >= 0 wherever it is defined; `steps` bounds the work. */
bool uir_prove_nonnegative(uir_dims *dims, polynomial p, uint32_t steps);

/* Samples how a and b compare at some bindings that the facts and the assumptions allow. Only a true member proves
 * anything. The caller releases the scratch memory. */
typedef struct uir_dim_signs {
    bool less, equal, greater;
} uir_dim_signs;
uir_dim_signs uir_dim_try_signs(uir_dims *dims, const uir_condition *assumptions, uint32_t count, uir_dim a, uir_dim b);

#endif
