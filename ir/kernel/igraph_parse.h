/* Inside the iGraph's parser: its state, and the functions that its files share.
 *
 * igraph_parse.c reads the header (symbols, pointers, tiling function) and the phases' tree; igraph_parse_iop.c reads
 * one instruction with its slices. Names are resolved lexically: `visible` is a stack of symbols. */
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

uir_status uir_iparse_show(uir_iparser *p, uint32_t symbol);
/* Only the first `count` symbols are visible from here on. */
void uir_iparse_hide(uir_iparser *p, uint32_t count);
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

#endif
