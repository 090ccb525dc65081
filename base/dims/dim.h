/* Symbolic dims: interned integer expressions with facts.
 *
 * A dim is a 32-bit handle to an expression over 64-bit integers: constants, symbols, +, *, floordiv, ceildiv, mod,
 * min, max. Tensor extents, loop extents, tile sizes, slice coordinates and index expressions of every IR are dims, so
 * one simplifier and one prover serve them all. Equal handles mean provably equal; the reverse is asked with
 * uir_dim_compare, whose UNKNOWN must be safe for every caller.
 *
 * A symbol is a run-time size, a tile size, an axis (loop) index or a value read from data. Its facts are inclusive
 * bounds and a divisor; an axis index also has a symbolic exclusive bound (its loop's extent).
 *
 * Subtraction is a + (-1)*b. Division and mod by a value below 1 are undefined: evaluation reports them. floordiv and
 * mod round toward minus infinity (mod is in [0, divisor)).
 *
 * Simplification is exact for every binding that the facts allow and for which the expression is defined. A division
 * whose divisor may be below 1 by the facts is kept as written, and no bound of such an expression is used to drop it.
 * Terms that cancel (x - x, 0*x) are dropped, defined or not. Text and proofs depend on the names of symbols and the
 * order of their declaration, never on the order in which expressions were made. */
#ifndef UIR_BASE_DIM_H
#define UIR_BASE_DIM_H

#include "base/intern.h"
#include "base/text.h"

typedef struct uir_dim {
    uint32_t id; /* 0 is "none" (absent), never a value */
} uir_dim;
#define UIR_DIM_NONE ((uir_dim){0})

typedef struct uir_symbol {
    uint32_t id; /* index into the context's symbols, from 0 */
} uir_symbol;

typedef enum uir_dim_kind {
    UIR_DIM_CONST,
    UIR_DIM_SYMBOL,
    UIR_DIM_ADD,
    UIR_DIM_MUL,
    UIR_DIM_FLOORDIV,
    UIR_DIM_CEILDIV,
    UIR_DIM_MOD,
    UIR_DIM_MIN,
    UIR_DIM_MAX
} uir_dim_kind;

/* A node. ADD, MUL, MIN, MAX are n-ary, flattened and sorted; the others have two operands. */
typedef struct uir_dim_node {
    uir_dim_kind kind;
    int64_t value;  /* CONST: the value; SYMBOL: the symbol's id */
    uint32_t count; /* operands */
    const uir_dim *operands;
} uir_dim_node;

#define UIR_DIM_UNBOUNDED INT64_MAX

typedef struct uir_symbol_facts {
    int64_t min;         /* inclusive */
    int64_t max;         /* inclusive; UIR_DIM_UNBOUNDED when unknown */
    int64_t multiple_of; /* >= 1 */
    uir_dim bound;       /* symbolic exclusive upper bound (value < bound), or none */
} uir_symbol_facts;

/* Facts of an unknown run-time size: 0 and up. */
#define UIR_SYMBOL_FACTS_SIZE ((uir_symbol_facts){0, UIR_DIM_UNBOUNDED, 1, {0}})

typedef struct uir_dims uir_dims; /* the context: owns expressions and symbols, all in one arena */

uir_status uir_dims_create(const uir_allocator *allocator, uir_dims **out_dims);
void uir_dims_destroy(uir_dims *dims);
/* A context of the same symbols and expressions, by the same handles. */
uir_status uir_dims_clone(const uir_dims *dims, const uir_allocator *allocator, uir_dims **out_clone);

/* Symbols. Names need not be unique; each call makes a new symbol. The name is kept as given. */
uir_status uir_dims_add_symbol(uir_dims *dims, const char *name, size_t length, uir_symbol_facts facts,
                               uir_symbol *out_symbol);
uint32_t uir_dims_symbol_count(const uir_dims *dims);
const char *uir_dims_symbol_name(const uir_dims *dims, uir_symbol symbol);
uir_symbol_facts uir_dims_symbol_facts(const uir_dims *dims, uir_symbol symbol);
/* Narrows the facts; existing expressions keep their form. */
void uir_dims_set_symbol_facts(uir_dims *dims, uir_symbol symbol, uir_symbol_facts facts);
/* A version that changes with each change of facts: a proof may then have another result. */
uint32_t uir_dims_facts_version(const uir_dims *dims);

/* Builders. They simplify. They return UIR_DIM_NONE on exhausted memory, on overflow of a constant, beyond a limit (200
 * levels, a million nodes written out, 1024 terms of a sum), and for an operand NONE: a chain of builders needs one
 * check at its end. */
uir_dim uir_dim_const(uir_dims *dims, int64_t value);
uir_dim uir_dim_symbol(uir_dims *dims, uir_symbol symbol);
uir_dim uir_dim_add(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_sub(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_mul(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_floordiv(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_ceildiv(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_mod(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_min(uir_dims *dims, uir_dim a, uir_dim b);
uir_dim uir_dim_max(uir_dims *dims, uir_dim a, uir_dim b);
/* ceildiv(a, b) * b. */
uir_dim uir_dim_align(uir_dims *dims, uir_dim a, uir_dim b);
/* The extent that two extents broadcast to: equal, or one of them 1: max(a,b) * min(1, min(a,b)). */
uir_dim uir_dim_broadcast(uir_dims *dims, uir_dim a, uir_dim b);

const uir_dim_node *uir_dim_get(const uir_dims *dims, uir_dim dim);           /* valid until the next builder call */
bool uir_dim_is_const(const uir_dims *dims, uir_dim dim, int64_t *out_value); /* out_value may be NULL */
static inline bool uir_dim_equal(uir_dim a, uir_dim b) {
    return a.id == b.id;
}

/* Proving. Bounds are inclusive, INT64_MIN / INT64_MAX when unknown; facts of symbols are used, including `bound`. */
void uir_dim_bounds(uir_dims *dims, uir_dim dim, int64_t *out_min, int64_t *out_max);
/* Greatest number known to divide the dim; at least 1; 0 for the constant 0. */
int64_t uir_dim_multiple(uir_dims *dims, uir_dim dim);

typedef enum uir_truth { UIR_FALSE, UIR_TRUE, UIR_UNKNOWN } uir_truth;
typedef enum uir_relation {
    UIR_RELATION_EQ,
    UIR_RELATION_NE,
    UIR_RELATION_LT,
    UIR_RELATION_LE,
    UIR_RELATION_GT,
    UIR_RELATION_GE
} uir_relation;

typedef struct uir_condition {
    uir_relation relation;
    uir_dim left, right;
} uir_condition;

/* TRUE: holds for every binding that the facts allow and for which both sides are defined; FALSE: for none; UNKNOWN
 * otherwise. Where the facts allow no binding at all (an axis of extent 0) both answers are right. Work is bounded. */
uir_truth uir_dim_compare(uir_dims *dims, uir_dim a, uir_relation relation, uir_dim b);
/* The same, given that all `assumptions` hold (guards around the query). */
uir_truth uir_dim_compare_given(uir_dims *dims, const uir_condition *assumptions, uint32_t assumption_count, uir_dim a,
                                uir_relation relation, uir_dim b);

/* Replaces symbols by dims (`replacements[symbol.id]`, NONE = keep; the array has `count` entries). */
uir_dim uir_dim_substitute(uir_dims *dims, uir_dim dim, const uir_dim *replacements, uint32_t count);
/* The same for a few symbols, as a list; its last entry for a symbol counts. */
typedef struct uir_dim_replacement {
    uir_symbol symbol;
    uir_dim by; /* NONE = keep */
} uir_dim_replacement;
uir_dim uir_dim_replace(uir_dims *dims, uir_dim dim, const uir_dim_replacement *replacements, uint32_t count);
/* Copies an expression to another context, its symbols replaced (`replacements[symbol.id]`). NONE if one that occurs
 * has no replacement. */
uir_dim uir_dim_copy(const uir_dims *from, uir_dim dim, uir_dims *to, const uir_dim *replacements, uint32_t count);
/* Calls back for every distinct symbol in the expression. */
void uir_dim_visit_symbols(const uir_dims *dims, uir_dim dim, void (*visit)(void *user, uir_symbol symbol), void *user);
bool uir_dim_mentions(const uir_dims *dims, uir_dim dim, uir_symbol symbol);

/* Evaluation. `values[symbol.id]`; a symbol at or beyond `count`, or with `bound[symbol.id]` false (bound may be NULL),
 * is unbound. Fails on an unbound symbol, overflow, or division by a value <= 0. */
typedef enum uir_dim_result { UIR_DIM_EVALUATED, UIR_DIM_UNBOUND, UIR_DIM_OVERFLOW, UIR_DIM_DIVISION } uir_dim_result;
uir_dim_result uir_dim_evaluate(const uir_dims *dims, uir_dim dim, const int64_t *values, const bool *bound,
                                uint32_t count, int64_t *out_value);
/* One operation on values. False: overflow, a divisor below 1, or a kind that is not an operation. */
bool uir_dim_operate(uir_dim_kind kind, int64_t a, int64_t b, int64_t *out_value);
bool uir_relation_holds(uir_relation relation, int64_t a, int64_t b);
/* Time of `units` of work, `cost` each, on `workers` (at least 1): at most INT64_MAX, 0 without units. */
int64_t uir_shared_cost(int64_t cost, int64_t units, int64_t workers);

/* Text: "ceildiv(M, tr)*4 + min(K, 3) - 1"; names that are not identifiers are quoted. Printing and parsing yield the
 * same handle. A callback resolves names, so that each IR scopes symbols its own way; it returns NONE for an unknown
 * name (the parser then reports it). */
typedef uir_dim (*uir_dim_resolve)(void *user, const char *name, size_t length);
void uir_dim_print(const uir_dims *dims, uir_dim dim, uir_text *text);
/* Parses at the tokenizer's current token: + - * / floordiv, ceildiv, mod, min, max, align, parentheses. `a / b` is
 * floordiv, to be used where the division is exact (unchecked). */
uir_status uir_dim_parse(uir_dims *dims, uir_tokenizer *tokenizer, uir_dim_resolve resolve, void *user,
                         uir_dim *out_dim);
const char *uir_relation_text(uir_relation relation); /* "<=" */
bool uir_relation_find(const char *text, uir_relation *out_relation);

#endif
