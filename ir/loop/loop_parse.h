/* Inside the loop AST's parser: its state, and the functions that its files share.
 *
 * It is a recursive descent parser; nesting is bounded, so that hostile text cannot exhaust the stack. loop_parse.c
 * reads dims, expressions and declarations; loop_parse_statement.c reads the tree. The parser of schedule traces uses
 * the same functions for declarations. */
#ifndef UIR_IR_LOOP_PARSE_H
#define UIR_IR_LOOP_PARSE_H

#include "ir/loop/loop.h"

typedef struct uir_lparse_scope {
    const char *name;
    uir_symbol symbol;
} uir_lparse_scope;

typedef struct uir_lparser {
    uir_tokenizer tokens;
    uir_loop_function *function;
    uir_vector(uir_lparse_scope) loops; /* loop variables in scope, a stack */
    const uir_loop_statement *block;    /* whose iteration variables are in scope, or NULL */
    bool loop_variables;                /* loop variables are visible (axis.bind, where, if) */
    const uir_loop_monoid *monoid;      /* whose parameters are in scope, or NULL */
    uint32_t parameters;                /* how many of them: 0, the state, or with elements / the other state */
    bool combining;
    uint32_t depth;
} uir_lparser;

#define UIR_LPARSE_MAX_DEPTH 128
#define UIR_LPARSE(p)        (&(p)->tokens)

bool uir_lparse_is_name(const uir_token *token, const char *name);
uir_status uir_lparse_name(uir_lparser *p, const char **out_name);
/* Parses an expression over the visible names: sizes and tiles, iteration variables or loop variables. */
uir_status uir_lparse_dim(uir_lparser *p, uir_dim *out_dim);
uir_status uir_lparse_conditions(uir_lparser *p, uir_loop_statement *s);
/* Parses an access after the tensor's name. */
uir_status uir_lparse_access(uir_lparser *p, const uir_token *name, uir_loop_access *out_access);
uir_status uir_lparse_expression(uir_lparser *p, uint32_t *out_id);
/* Refuses a name that is already declared. */
uir_status uir_lparse_check_new_name(uir_lparser *p, const uir_token *name);
/* Parse a declaration after its first word: dim or tile, candidate, require. */
uir_status uir_lparse_sizes(uir_lparser *p, bool tile);
uir_status uir_lparse_candidate(uir_lparser *p);
uir_status uir_lparse_require(uir_lparser *p);
/* Parses statements up to and including the closing brace. */
uir_status uir_lparse_statements(uir_lparser *p, uint32_t *out_first);

#endif
