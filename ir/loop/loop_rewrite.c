/* Expressions of a loop function made anew: with other symbols, or with what is stored in place of its loads. */
#include "ir/loop/loop.h"

#define EXPRESSION(f, id) (&(f)->expressions.data[id])

typedef struct rewriter {
    uir_loop_function *f;
    const uir_dim *replacements;
    uint32_t count;
    uint32_t tensor; /* loads of it become `value`, stored at `indices`; NONE: no */
    uint32_t value;
    const uir_dim *indices;
} rewriter;

static uir_status rewrite(const rewriter *r, uint32_t id, uint32_t *out);

/* What is stored to a tensor, at the place of a load. */
static uir_status expand(const rewriter *r, const uir_loop_expression *load, uint32_t *out) {
    uir_loop_function *f = r->f;
    uint32_t rank = f->tensors.data[r->tensor].rank, count = uir_dims_symbol_count(f->dims);
    uir_dim *replacements;
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(&f->arena, count + 1, sizeof *replacements));
    for (uint32_t d = 0; d < rank; d++) {
        uir_symbol symbol;
        if (!uir_dim_is_symbol(f->dims, r->indices[d], &symbol)) return UIR_STATUS_UNSUPPORTED;
        replacements[symbol.id] = load->load.indices[d];
    }
    rewriter inner = {f, replacements, count, UIR_LOOP_NONE, 0, NULL};
    return rewrite(&inner, r->value, out);
}

static uir_status rewrite(const rewriter *r, uint32_t id, uint32_t *out) {
    uir_loop_function *f = r->f;
    uir_loop_expression e = *EXPRESSION(f, id);
    bool changed = false;
    if (e.kind == UIR_LOOP_CALL) {
        for (uint32_t i = 0; i < e.argument_count; i++) {
            uint32_t argument = e.arguments[i];
            UIR_TRY(rewrite(r, argument, &e.arguments[i]));
            changed |= argument != e.arguments[i];
        }
    } else if (e.kind == UIR_LOOP_INDEX && r->replacements) {
        e.index = uir_dim_substitute(f->dims, e.index, r->replacements, r->count);
        if (!e.index.id) return UIR_STATUS_OUT_OF_MEMORY;
        changed = true;
    } else if (e.kind == UIR_LOOP_LOAD) {
        uint32_t rank = f->tensors.data[e.load.tensor].rank;
        for (uint32_t d = 0; d < rank && r->replacements; d++) {
            e.load.indices[d] = uir_dim_substitute(f->dims, e.load.indices[d], r->replacements, r->count);
            if (!e.load.indices[d].id) return UIR_STATUS_OUT_OF_MEMORY;
            changed = true;
        }
        if (e.load.tensor == r->tensor) return e.has_fill ? UIR_STATUS_UNSUPPORTED : expand(r, &e, out);
    }
    *out = id;
    if (!changed) return UIR_STATUS_OK;
    *out = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

uir_status uir_loop_substitute(uir_loop_function *f, uint32_t expression, const uir_dim *replacements, uint32_t count,
                               uint32_t *out_expression) {
    rewriter r = {f, replacements, count, UIR_LOOP_NONE, 0, NULL};
    return rewrite(&r, expression, out_expression);
}

uir_status uir_loop_inline(uir_loop_function *f, uint32_t expression, uint32_t tensor, uint32_t value,
                           const uir_dim *indices, uint32_t *out_expression) {
    rewriter r = {f, NULL, 0, tensor, value, indices};
    return rewrite(&r, expression, out_expression);
}
