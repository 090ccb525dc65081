/* Names in the text of an iGraph: scopes, look-up with suggestions, dim expressions over visible names. */
#include "ir/kernel/igraph_parse.h"

#include <string.h>

const char *uir_iparse_nearest(const uir_token *token, const char *(*candidate)(const void *user, uint32_t index),
                               const void *user, uint32_t count) {
    char name[65];
    if (token->length >= sizeof name) return NULL;
    memcpy(name, token->text, token->length);
    name[token->length] = 0;
    const char *best = NULL;
    uint32_t best_distance = (uint32_t)token->length / 3 + 2;
    for (uint32_t i = 0; i < count; i++) {
        const char *other = candidate(user, i);
        uint32_t distance = other ? uir_edit_distance(name, other) : UINT32_MAX;
        if (distance < best_distance) {
            best = other;
            best_distance = distance;
        }
    }
    return best;
}

/* "'vram' is not a memory space of cpu; did you mean sram?; known are: dram, sram, reg". Candidates that are NULL are
 * not among them. */
uir_status uir_iparse_no_name(uir_iparser *p, const uir_token *token, const char *what,
                              const char *(*candidate)(const void *user, uint32_t index), const void *user,
                              uint32_t count) {
    uir_text names;
    uir_text_init(&names, &p->scratch->allocator);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = candidate(user, i);
        if (!name) continue;
        if (names.length) uir_text_append_string(&names, ", ");
        uir_text_append_string(&names, name);
    }
    const char *near = uir_iparse_nearest(token, candidate, user, count);
    uir_status status = uir_tokenizer_error_at(p->tokens, token, "'%.*s' is not a %s%s%s%s; known %s: %s",
                                               (int)(token->length > 64 ? 64 : token->length), token->text, what,
                                               near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
                                               count == 1 ? "is" : "are", names.data ? names.data : "none");
    uir_text_deinit(&names);
    return status;
}
static const char *visible_name(const void *user, uint32_t index) {
    const uir_iparser *p = user;
    return p->igraph->symbols.data[p->visible.data[index]].name;
}

/* The symbol that a visible name means; UINT32_MAX when none. */
uint32_t uir_iparse_find(const uir_iparser *p, const char *name, size_t length) {
    uint32_t place = uir_names_get(&p->places, name, length);
    return place == UIR_NAMES_NONE ? UINT32_MAX : p->visible.data[place];
}

uir_status uir_iparse_show(uir_iparser *p, uint32_t symbol) {
    const char *name = p->igraph->symbols.data[symbol].name;
    size_t length = strlen(name);
    UIR_TRY(uir_vector_reserve(p->scratch, &p->visible, 1));
    UIR_TRY(uir_vector_push(p->scratch, &p->hidden, uir_names_get(&p->places, name, length)));
    uir_status status = uir_names_put(&p->places, p->scratch, name, length, p->visible.count);
    if (status != UIR_STATUS_OK) {
        p->hidden.count--;
        return status;
    }
    return uir_vector_push(p->scratch, &p->visible, symbol);
}

void uir_iparse_hide(uir_iparser *p, uint32_t count) {
    while (p->visible.count > count) {
        const char *name = visible_name(p, --p->visible.count);
        /* The name has a number already: nothing is allocated. */
        (void)!uir_names_put(&p->places, p->scratch, name, strlen(name), p->hidden.data[--p->hidden.count]);
    }
}

/* A name of the device that the kernel has used already. */
static uint32_t find_device_symbol(const uir_iparser *p, const char *name, size_t length) {
    return uir_names_get(&p->devices, name, length);
}

static uir_dim resolve(void *user, const char *name, size_t length) {
    uir_iparser *p = user;
    uint32_t symbol = uir_iparse_find(p, name, length);
    int64_t value;
    if (symbol == UINT32_MAX && uir_igraph_device_value(p->igraph->machine, name, length, &value)) {
        symbol = find_device_symbol(p, name, length);
        uir_dim definition = uir_dim_const(p->igraph->dims, value);
        if (symbol == UINT32_MAX && (uir_igraph_add_symbol(p->igraph, name, length, UIR_ISYMBOL_DEVICE, NULL,
                                                           definition, &symbol) != UIR_STATUS_OK ||
                                     uir_names_put(&p->devices, p->scratch, name, length, symbol) != UIR_STATUS_OK))
            return UIR_DIM_NONE;
    }
    if (symbol != UINT32_MAX) return uir_igraph_symbol_dim(p->igraph, symbol);
    p->unknown = (uir_token){.kind = UIR_TOKEN_NAME, .text = name, .length = length};
    return UIR_DIM_NONE;
}

uir_status uir_iparse_dim(uir_iparser *p, uir_dim *out_dim) {
    p->unknown.kind = UIR_TOKEN_END;
    uir_status status = uir_dim_parse(p->igraph->dims, p->tokens, resolve, p, out_dim);
    if (status == UIR_STATUS_OK && !out_dim->id)
        return uir_tokenizer_error(p->tokens, "the expression before this overflows 64 bits");
    if (status != UIR_STATUS_OK && p->unknown.kind == UIR_TOKEN_NAME) {
        const char *near = uir_iparse_nearest(&p->unknown, visible_name, p, p->visible.count);
        if (near)
            uir_error(p->diagnostics, status, NULL, "unknown name '%.*s'; did you mean '%s'?",
                      (int)(p->unknown.length > 64 ? 64 : p->unknown.length), p->unknown.text, near);
    }
    return status;
}

uir_status uir_iparse_expect_new_name(uir_iparser *p, const char *what, uir_token *out_name) {
    uir_token *token = &p->tokens->current;
    if (token->kind != UIR_TOKEN_NAME) return uir_tokenizer_error(p->tokens, "expected the name of %s", what);
    if (uir_iparse_find(p, token->text, token->length) != UINT32_MAX ||
        find_device_symbol(p, token->text, token->length) != UINT32_MAX)
        return uir_tokenizer_error(p->tokens, "the name '%.*s' is already used here", (int)token->length, token->text);
    *out_name = *token;
    uir_tokenizer_advance(p->tokens);
    return UIR_STATUS_OK;
}

uir_status uir_iparse_add_symbol(uir_iparser *p, const uir_token *name, uir_isymbol_kind kind,
                                 const uir_symbol_facts *facts, uir_dim definition, uint32_t *out_symbol) {
    UIR_TRY(uir_igraph_add_symbol(p->igraph, name->text, name->length, kind, facts, definition, out_symbol));
    return uir_iparse_show(p, *out_symbol);
}
