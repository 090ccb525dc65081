/* Inside the iGraph's parser: its state, and the functions that its files share.
 *
 * igraph_parse.c reads the kernels of a text; igraph_parse_body.c a kernel's header (symbols, pointers, tiling
 * function) and the phases' tree; igraph_parse_iop.c one instruction with its slices. Names are resolved lexically
 * (igraph_parse_names.c): `visible` is a stack of symbols. */
#ifndef UIR_IR_IGRAPH_PARSE_H
#define UIR_IR_IGRAPH_PARSE_H

#include "base/intern.h"
#include "ir/kernel/igraph.h"

typedef struct uir_iparser {
    uir_igraph *igraph;
    uir_tokenizer *tokens;
    uir_diagnostics *diagnostics;
    uir_arena *scratch;
    uir_vector(uint32_t) visible;       /* symbols in scope, innermost last */
    uir_vector(uint32_t) hidden;        /* by index in `visible`: the index of the symbol that it hides */
    uir_names places;                   /* the last visible symbol of a name, by its index there */
    uir_names devices, loops, pointers; /* symbols of the device, loops of the kernel, pointers, by index */
    uir_names ends;                     /* loops named by first() or last() */
    uir_vector(struct uir_iparse_by {
        uint32_t pointer;
        uir_token name;
    }) by,
        over;          /* pointers whose loop, or whose owner of storage, is declared later */
    uir_token unknown; /* the last unknown name; kind END: none */
    uint32_t depth;
} uir_iparser;

/* Reads the braces of a kernel and all between them. */
uir_status uir_iparse_kernel_body(uir_iparser *p);
uir_status uir_iparse_show(uir_iparser *p, uint32_t symbol);
/* Only the first `count` symbols are visible from here on. */
void uir_iparse_hide(uir_iparser *p, uint32_t count);
/* The symbol that a visible name means; UINT32_MAX if none. */
uint32_t uir_iparse_find(const uir_iparser *p, const char *name, size_t length);
/* Consumes a name that nothing has yet; `what` it is to name, for the message. */
uir_status uir_iparse_expect_new_name(uir_iparser *p, const char *what, uir_token *out_name);
/* Declares a symbol, visible from here on. */
uir_status uir_iparse_add_symbol(uir_iparser *p, const uir_token *name, uir_isymbol_kind kind,
                                 const uir_symbol_facts *facts, uir_dim definition, uint32_t *out_symbol);
/* Parses a dim expression at the current token over the visible names; an unknown name gets a suggestion. */
uir_status uir_iparse_dim(uir_iparser *p, uir_dim *out_dim);
/* At a PERCENT token: consumes the pointer of that name; an unknown one is reported with the nearest name. */
uir_status uir_iparse_pointer(uir_iparser *p, uint32_t *out_pointer);
uir_status uir_iparse_slice(uir_iparser *p, uir_islice *out_slice);
uir_status uir_iparse_instruction(uir_iparser *p, uir_iinstruction *out);
static inline bool uir_iparse_token_is(const uir_token *token, const char *text, size_t length) {
    if (token->length != length) return false;
    for (size_t i = 0; i < length; i++)
        if (token->text[i] != text[i]) return false;
    return true;
}
/* The name among `count` candidates that is nearest to a token's text; NULL if none is near. */
const char *uir_iparse_nearest(const uir_token *token, const char *(*candidate)(const void *user, uint32_t index),
                               const void *user, uint32_t count);
/* Reports that a token is not a `what`, with the nearest candidate and all others; NULLs are not among them. */
uir_status uir_iparse_no_name(uir_iparser *p, const uir_token *token, const char *what,
                              const char *(*candidate)(const void *user, uint32_t index), const void *user,
                              uint32_t count);

#endif
