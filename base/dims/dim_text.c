/* Dims as text, both ways. */
#include "base/dims/dim_internal.h"

#include <string.h>

enum { PARSE_DEPTH_MAX = 100 };

static const char *const relation_texts[] = {
    [UIR_RELATION_EQ] = "==", [UIR_RELATION_NE] = "!=", [UIR_RELATION_LT] = "<",
    [UIR_RELATION_LE] = "<=", [UIR_RELATION_GT] = ">",  [UIR_RELATION_GE] = ">=",
};

const char *uir_relation_text(uir_relation relation) {
    return relation_texts[relation];
}

bool uir_relation_find(const char *text, uir_relation *out_relation) {
    for (uint32_t i = 0; i < sizeof relation_texts / sizeof *relation_texts; i++) {
        if (strcmp(relation_texts[i], text) != 0) continue;
        *out_relation = (uir_relation)i;
        return true;
    }
    return false;
}

/* The kinds written as calls. Those with a builder take two operands, min and max one or more. */
typedef struct call_row {
    const char *name;
    uir_dim_kind kind;
    uir_dim (*build)(uir_dims *dims, uir_dim a, uir_dim b);
    bool infix; /* read between its operands as well, binding as `*` does */
} call_row;

static const call_row calls[] = {
    {"floordiv", UIR_DIM_FLOORDIV, uir_dim_floordiv, true},
    {"ceildiv", UIR_DIM_CEILDIV, uir_dim_ceildiv, true},
    {"mod", UIR_DIM_MOD, uir_dim_mod, true},
    {"min", UIR_DIM_MIN, NULL, false},
    {"max", UIR_DIM_MAX, NULL, false},
    {"align", UIR_DIM_MUL, uir_dim_align, false}, /* read only: what it builds prints as a product */
};

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static bool is_plain_name(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) return false;
    }
    return length > 0;
}

static void print_sum(const uir_dims *dims, uir_dim dim, uir_text *text);

static void print_atom(const uir_dims *dims, uir_dim dim, uir_text *text) {
    const uir_dim_node *node = &dim_at(dims, dim)->node;
    if (node->kind == UIR_DIM_CONST) {
        uir_text_append_format(text, "%lld", (long long)node->value);
        return;
    }
    if (node->kind == UIR_DIM_SYMBOL) {
        const dim_symbol *symbol = &dims->symbols.data[node->value];
        if (is_plain_name(symbol->name, symbol->length))
            uir_text_append(text, symbol->name, symbol->length);
        else
            uir_text_append_quoted(text, symbol->name, symbol->length);
        return;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].kind != node->kind) continue;
        uir_text_append_format(text, "%s(", calls[i].name);
        for (uint32_t k = 0; k < node->count; k++) {
            if (k) uir_text_append_string(text, ", ");
            print_sum(dims, node->operands[k], text);
        }
        uir_text_append_string(text, ")");
        return;
    }
}

/* A product or atom, its sign written apart: "-" or " - " or " + " before it. */
static void print_term(const uir_dims *dims, uir_dim dim, bool first, uir_text *text) {
    const uir_dim_node *node = &dim_at(dims, dim)->node;
    bool product = node->kind == UIR_DIM_MUL;
    uint32_t factors = product ? node->count : 1;
    int64_t coefficient = 1;
    bool constant = uir_dim_is_const(dims, product ? node->operands[factors - 1] : dim, &coefficient);
    bool negative = constant && coefficient < 0;
    uir_text_append_string(text, first ? (negative ? "-" : "") : negative ? " - " : " + ");
    for (uint32_t i = 0; product && i < factors - constant; i++) {
        if (i) uir_text_append_string(text, "*");
        print_atom(dims, node->operands[i], text);
    }
    uint64_t magnitude = negative ? 0 - (uint64_t)coefficient : (uint64_t)coefficient;
    if (!constant && !product) print_atom(dims, dim, text);
    if (constant && !(product && magnitude == 1))
        uir_text_append_format(text, "%s%llu", product ? "*" : "", (unsigned long long)magnitude);
}

/* "M - p*tr" rather than "-p*tr + M": the first positive term, if it is no constant, goes before all others. */
static uint32_t leading_term(const uir_dims *dims, const uir_dim_node *sum) {
    for (uint32_t i = 0; i < sum->count; i++) {
        const uir_dim_node *node = &dim_at(dims, sum->operands[i])->node;
        int64_t coefficient = 1;
        if (node->kind == UIR_DIM_CONST) break;
        if (node->kind == UIR_DIM_MUL) uir_dim_is_const(dims, node->operands[node->count - 1], &coefficient);
        if (coefficient > 0) return i;
    }
    return 0;
}

static void print_sum(const uir_dims *dims, uir_dim dim, uir_text *text) {
    const uir_dim_node *node = &dim_at(dims, dim)->node;
    if (node->kind != UIR_DIM_ADD) {
        print_term(dims, dim, true, text);
        return;
    }
    uint32_t first = leading_term(dims, node);
    print_term(dims, node->operands[first], true, text);
    for (uint32_t i = 0; i < node->count; i++)
        if (i != first) print_term(dims, node->operands[i], false, text);
}

void uir_dim_print(const uir_dims *dims, uir_dim dim, uir_text *text) {
    if (dim.id)
        print_sum(dims, dim, text);
    else
        uir_text_append_string(text, "?");
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

typedef struct parser {
    uir_dims *dims;
    uir_tokenizer *tokenizer;
    uir_dim_resolve resolve;
    void *user;
    uint32_t depth;
} parser;

static uir_status parse_sum(parser *p, uir_dim *out_dim);

/* A builder's result, or why there is none. */
static uir_status check_built(parser *p, const uir_token *token, uir_dim dim) {
    if (dim.id) return UIR_STATUS_OK;
    if (p->dims->out_of_memory)
        return uir_error(p->tokenizer->diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL, "out of memory");
    return uir_tokenizer_error_at(p->tokenizer, token, "the expression overflows or is too large");
}

static uir_status parse_call(parser *p, const call_row *call, uir_dim *out_dim) {
    uir_token name = p->tokenizer->previous;
    uir_dim operands[DIM_OPERANDS_MAX];
    uint32_t count = 0, most = call->build ? 2 : DIM_OPERANDS_MAX;
    UIR_TRY(uir_tokenizer_expect(p->tokenizer, "("));
    do {
        if (count == most) return uir_tokenizer_error(p->tokenizer, "%s expects at most %u operands", call->name, most);
        UIR_TRY(parse_sum(p, &operands[count++]));
    } while (uir_tokenizer_accept(p->tokenizer, ","));
    if (call->build && count != 2) return uir_tokenizer_error(p->tokenizer, "%s expects two operands", call->name);
    UIR_TRY(uir_tokenizer_expect(p->tokenizer, ")"));
    *out_dim = call->build ? call->build(p->dims, operands[0], operands[1])
                           : uir_dim_extreme(p->dims, call->kind, operands, count);
    return check_built(p, &name, *out_dim);
}

static uir_status parse_name(parser *p, uir_dim *out_dim) {
    uir_tokenizer *tokenizer = p->tokenizer;
    uir_token name = tokenizer->current;
    uir_tokenizer_advance(tokenizer);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (name.kind == UIR_TOKEN_NAME && uir_tokenizer_is(tokenizer, "(") && strlen(calls[i].name) == name.length &&
            memcmp(calls[i].name, name.text, name.length) == 0)
            return parse_call(p, &calls[i], out_dim);
    *out_dim = p->resolve(p->user, name.text, name.length);
    if (out_dim->id) return UIR_STATUS_OK;
    return uir_tokenizer_error_at(tokenizer, &name, "'%.*s' is not a known size",
                                  name.length > 60 ? 60 : (int)name.length, name.text);
}

static uir_status parse_atom(parser *p, uir_dim *out_dim) {
    uir_tokenizer *tokenizer = p->tokenizer;
    const uir_token *token = &tokenizer->current;
    if (token->kind == UIR_TOKEN_INTEGER) {
        *out_dim = uir_dim_const(p->dims, token->integer);
        uir_tokenizer_advance(tokenizer);
        return check_built(p, &tokenizer->previous, *out_dim);
    }
    if (token->kind == UIR_TOKEN_NAME || token->kind == UIR_TOKEN_STRING) return parse_name(p, out_dim);
    if (uir_tokenizer_accept(tokenizer, "(")) {
        UIR_TRY(parse_sum(p, out_dim));
        return uir_tokenizer_expect(tokenizer, ")");
    }
    return uir_tokenizer_error(tokenizer, "expected a size: a number, a name or '('");
}

/* At `*`, `/` or the name of a call of two operands, which may stand between them too: `i mod 12`. */
static uir_dim (*find_infix(const parser *p))(uir_dims *dims, uir_dim a, uir_dim b) {
    if (uir_tokenizer_is(p->tokenizer, "*")) return uir_dim_mul;
    if (uir_tokenizer_is(p->tokenizer, "/")) return uir_dim_floordiv;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].infix && uir_tokenizer_is(p->tokenizer, calls[i].name)) return calls[i].build;
    return NULL;
}

static uir_status parse_product(parser *p, uir_dim *out_dim) {
    UIR_TRY(parse_atom(p, out_dim));
    for (;;) {
        uir_dim (*build)(uir_dims *, uir_dim, uir_dim) = find_infix(p);
        if (!build) return UIR_STATUS_OK;
        uir_token sign = p->tokenizer->current;
        uir_dim operand;
        uir_tokenizer_advance(p->tokenizer);
        UIR_TRY(parse_atom(p, &operand));
        *out_dim = build(p->dims, *out_dim, operand);
        UIR_TRY(check_built(p, &sign, *out_dim));
    }
}

/* A product with a sign. "-9223372036854775808" and "-x*9223372036854775808" have a coefficient whose magnitude is no
 * int64; the tokenizer reads the first as INT64_MIN, which is its own negation modulo 2^64. */
static uir_status parse_signed(parser *p, bool negative, uir_dim *out_dim) {
    uir_token sign = p->tokenizer->current;
    int64_t value;
    UIR_TRY(parse_product(p, out_dim));
    if (!negative) return UIR_STATUS_OK;
    if (uir_dim_is_const(p->dims, *out_dim, &value) && value == INT64_MIN) return UIR_STATUS_OK;
    *out_dim = uir_dim_sub(p->dims, uir_dim_const(p->dims, 0), *out_dim);
    return check_built(p, &sign, *out_dim);
}

static uir_status parse_terms(parser *p, uir_dim *out_dim) {
    UIR_TRY(parse_signed(p, uir_tokenizer_accept(p->tokenizer, "-"), out_dim));
    for (;;) {
        bool minus = uir_tokenizer_is(p->tokenizer, "-");
        if (!minus && !uir_tokenizer_is(p->tokenizer, "+")) return UIR_STATUS_OK;
        uir_token sign = p->tokenizer->current;
        uir_dim operand;
        uir_tokenizer_advance(p->tokenizer);
        UIR_TRY(parse_signed(p, minus, &operand));
        *out_dim = uir_dim_add(p->dims, *out_dim, operand);
        UIR_TRY(check_built(p, &sign, *out_dim));
    }
}

static uir_status parse_sum(parser *p, uir_dim *out_dim) {
    if (p->depth == PARSE_DEPTH_MAX) return uir_tokenizer_error(p->tokenizer, "the expression is nested too deeply");
    p->depth++;
    uir_status status = parse_terms(p, out_dim);
    p->depth--;
    return status;
}

uir_status uir_dim_parse(uir_dims *dims, uir_tokenizer *tokenizer, uir_dim_resolve resolve, void *user,
                         uir_dim *out_dim) {
    parser p = {dims, tokenizer, resolve, user, 0};
    *out_dim = UIR_DIM_NONE;
    uir_dim dim;
    dims->out_of_memory = false;
    UIR_TRY(parse_sum(&p, &dim));
    *out_dim = dim;
    return UIR_STATUS_OK;
}
