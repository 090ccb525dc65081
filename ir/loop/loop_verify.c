/* The loop AST's verifier: what can be proved wrong, or cannot be proved right where it must be, with block and line.
 */
#include "ir/loop/loop.h"

#include <stdio.h>
#include <string.h>

typedef struct verifier {
    const uir_loop_function *function;
    uir_diagnostics *diagnostics;
    uir_status status;
    uir_vector(uir_condition) given; /* what holds at the place: loop bounds, guards, domains */
    uir_arena scratch;
    bool *written; /* per tensor: something before stores to it */
    bool never;    /* a range around the place is empty: nothing is read there */
    const uir_loop_statement *block;
    const uir_loop_statement *at;
} verifier;

static void fail(verifier *v, const char *format, ...) UIR_PRINTF(2, 3);
static void fail(verifier *v, const char *format, ...) {
    char message[400], name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_location location = {.file = v->function->file, .line = v->at ? v->at->line : 0};
    snprintf(name, sizeof name, "%s%s%s", v->block ? "block " : "", v->block ? v->block->name : "",
             v->block ? ": " : "");
    v->status =
        uir_error(v->diagnostics, UIR_STATUS_BAD_FILE, &location, "@%s: %s%s", v->function->name, name, message);
}

static void assume(verifier *v, uir_dim left, uir_relation relation, uir_dim right) {
    uir_condition c = {relation, left, right};
    if (uir_vector_push(&v->scratch, &v->given, c) != UIR_STATUS_OK) v->status = UIR_STATUS_OUT_OF_MEMORY;
}

static bool proved(verifier *v, uir_dim left, uir_relation relation, uir_dim right) {
    return uir_dim_compare_given(v->function->dims, v->given.data, v->given.count, left, relation, right) == UIR_TRUE;
}

/* A loop's variable, or a block's. */
static void assume_range(verifier *v, uir_symbol symbol, uir_dim min, uir_dim extent) {
    uir_dims *dims = v->function->dims;
    uir_dim variable = uir_dim_symbol(dims, symbol);
    v->never = v->never || proved(v, extent, UIR_RELATION_LE, uir_dim_const(dims, 0));
    assume(v, variable, UIR_RELATION_GE, min);
    assume(v, variable, UIR_RELATION_LT, uir_dim_add(dims, min, extent));
}

static const char *show(verifier *v, uir_dim dim) {
    uir_text text;
    uir_text_init(&text, &v->function->allocator);
    uir_dim_print(v->function->dims, dim, &text);
    const char *copy = text.data ? uir_arena_copy_string(&v->scratch, text.data, text.length) : NULL;
    uir_text_deinit(&text);
    return copy ? copy : "?";
}

typedef struct skip_search {
    const uir_loop_statement *block;
    const char *found;
} skip_search;

static void find_skipped(void *user, uir_symbol symbol) {
    skip_search *s = user;
    for (uint32_t i = 0; i < s->block->iter_count; i++) {
        const uir_loop_iter *iter = &s->block->iters[i];
        if (iter->data && iter->mode == UIR_INDEX_SKIP && iter->symbol.id == symbol.id) s->found = iter->name;
    }
}

static void check_access(verifier *v, const uir_loop_access *access) {
    const uir_loop_tensor *t = &v->function->tensors.data[access->tensor];
    uir_dim zero = uir_dim_const(v->function->dims, 0);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!proved(v, access->indices[d], UIR_RELATION_GE, zero)) {
            fail(v, "index %s of '%s', dim %u, is not proved to be at least 0", show(v, access->indices[d]), t->name,
                 d);
        }
        if (!proved(v, access->indices[d], UIR_RELATION_LT, t->extents[d])) {
            fail(v, "index %s of '%s', dim %u, is not proved to be below %s", show(v, access->indices[d]), t->name, d,
                 show(v, t->extents[d]));
        }
    }
}

static void check_loads(verifier *v, uint32_t id) {
    const uir_loop_expression *e = &v->function->expressions.data[id];
    if (e->kind == UIR_LOOP_LOAD) {
        const uir_loop_tensor *t = &v->function->tensors.data[e->load.tensor];
        if (!e->has_fill) {
            skip_search search = {v->block, NULL};
            check_access(v, &e->load);
            for (uint32_t d = 0; v->block && d < t->rank; d++)
                uir_dim_visit_symbols(v->function->dims, e->load.indices[d], find_skipped, &search);
            if (search.found) fail(v, "'%s' is read at %s, which may be skipped: add a fill", t->name, search.found);
        }
        if (t->role != UIR_LOOP_ROLE_IN && !v->written[e->load.tensor] && !v->never)
            fail(v, "'%s' is read before anything is stored to it", t->name);
    }
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) check_loads(v, e->arguments[i]);
}

typedef struct reduce_search {
    const uir_loop_statement *block;
    const char *found;
} reduce_search;

static void find_reduce(void *user, uir_symbol symbol) {
    reduce_search *s = user;
    for (uint32_t i = 0; i < s->block->iter_count; i++) {
        if (s->block->iters[i].reduce && s->block->iters[i].symbol.id == symbol.id) s->found = s->block->iters[i].name;
    }
}

static void check_target(verifier *v, const uir_loop_access *access, uir_dtype dtype) {
    const uir_loop_tensor *t = &v->function->tensors.data[access->tensor];
    reduce_search search = {v->block, NULL};
    check_access(v, access);
    if (t->role == UIR_LOOP_ROLE_IN) fail(v, "'%s' is an input: nothing may be stored to it", t->name);
    if (dtype != UIR_DTYPE_NONE && t->dtype != dtype)
        fail(v, "%s is stored to '%s', which holds %s", uir_dtype_name(dtype), t->name, uir_dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++)
        uir_dim_visit_symbols(v->function->dims, access->indices[d], find_reduce, &search);
    if (search.found) fail(v, "'%s' is stored at the reduce iteration variable %s", t->name, search.found);
}

/* Arity and dtypes of what a monoid's statement is given, by kind. */
static void check_monoid(verifier *v, const uir_loop_statement *s) {
    const uir_loop_monoid *m = &v->function->monoids.data[s->monoid];
    const char *word = uir_loop_statement_get_row(s->kind)->word;
    bool finish = s->kind == UIR_LOOP_STATEMENT_FINISH;
    uint32_t targets = finish ? m->finish_count : m->state_count;
    uint32_t values = s->kind == UIR_LOOP_STATEMENT_INIT     ? 0
                      : s->kind == UIR_LOOP_STATEMENT_UPDATE ? m->element_count
                                                             : m->state_count;
    const uir_dtype *value_dtypes = s->kind == UIR_LOOP_STATEMENT_UPDATE ? m->element_dtypes : m->state_dtypes;
    if (s->target_count != targets) fail(v, "%s %s has %u targets, needs %u", word, m->name, s->target_count, targets);
    if (s->value_count != values) fail(v, "%s %s has %u values, needs %u", word, m->name, s->value_count, values);
    for (uint32_t i = 0; i < s->target_count && i < targets; i++) {
        check_target(v, &s->targets[i],
                     finish ? v->function->expressions.data[m->finish[i]].dtype : m->state_dtypes[i]);
        bool reads = s->kind == UIR_LOOP_STATEMENT_UPDATE || s->kind == UIR_LOOP_STATEMENT_COMBINE;
        if (reads && !v->written[s->targets[i].tensor] && !v->never) {
            fail(v, "the state '%s' is updated before init sets it to the identity",
                 v->function->tensors.data[s->targets[i].tensor].name);
        }
    }
    for (uint32_t i = 0; i < s->value_count && i < values; i++) {
        uir_dtype got = v->function->expressions.data[s->values[i]].dtype;
        if (got != value_dtypes[i])
            fail(v, "%s %s: value %u is %s, needs %s", word, m->name, i, uir_dtype_name(got),
                 uir_dtype_name(value_dtypes[i]));
    }
}

static void check_block_statement(verifier *v, const uir_loop_statement *s) {
    v->at = s;
    for (uint32_t i = 0; i < s->value_count; i++) check_loads(v, s->values[i]);
    if (s->kind == UIR_LOOP_STATEMENT_STORE)
        check_target(v, &s->targets[0], v->function->expressions.data[s->values[0]].dtype);
    else
        check_monoid(v, s);
    for (uint32_t i = 0; i < s->target_count; i++) v->written[s->targets[i].tensor] = true;
}

static void check_read(verifier *v, const uir_loop_iter *iter) {
    const uir_loop_tensor *t = &v->function->tensors.data[iter->from->tensor];
    check_access(v, iter->from);
    if (uir_dtype_get_class(t->dtype) != UIR_DTYPE_CLASS_SIGNED &&
        uir_dtype_get_class(t->dtype) != UIR_DTYPE_CLASS_UNSIGNED)
        fail(v, "%s is read from '%s', which holds %s, not integers", iter->name, t->name, uir_dtype_name(t->dtype));
    if (t->role != UIR_LOOP_ROLE_IN && !v->written[iter->from->tensor] && !v->never)
        fail(v, "'%s' is read before anything is stored to it", t->name);
}

typedef struct class_search {
    verifier *v;
    uir_loop_class other; /* what the factor's axes are not */
    const char *word;
} class_search;

static void find_other_class(void *user, uir_symbol symbol) {
    const class_search *s = user;
    const uir_loop_statement *block = s->v->block;
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].symbol.id == symbol.id && block->iters[i].part == s->other)
            fail(s->v, "%s is %s, but operand %s depends on it", block->iters[i].name, uir_loop_class_word(s->other),
                 s->word);
}

static void check_factor(class_search *s, uint32_t id) {
    const uir_loop_function *f = s->v->function;
    const uir_loop_expression *e = &f->expressions.data[id];
    if (e->kind == UIR_LOOP_INDEX) uir_dim_visit_symbols(f->dims, e->index, find_other_class, s);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < f->tensors.data[e->load.tensor].rank; d++)
        uir_dim_visit_symbols(f->dims, e->load.indices[d], find_other_class, s);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) check_factor(s, e->arguments[i]);
}

/* What a contraction's axes are said to be is so: the first factor does not depend on columns, nor the second on rows,
 * and what is summed is the depth. */
static void check_classes(verifier *v, const uir_loop_statement *s) {
    const uir_loop_function *f = v->function;
    bool classes = false;
    for (uint32_t i = 0; i < s->iter_count; i++) {
        uir_loop_class part = s->iters[i].part;
        classes |= part != UIR_LOOP_CLASS_NONE;
        if (part && (part == UIR_LOOP_CLASS_K) != s->iters[i].reduce)
            fail(v, "%s is %s, but %s", s->iters[i].name, uir_loop_class_word(part),
                 s->iters[i].reduce ? "a reduction axis" : "not a reduction axis");
    }
    if (!classes) return;
    const uir_loop_statement *update = s->first_child == UIR_LOOP_NONE ? NULL : &f->statements.data[s->first_child];
    const uir_loop_expression *product = update && update->value_count ? &f->expressions.data[update->values[0]] : NULL;
    if (!(s->uses >> UIR_LOOP_USE_CONTRACTION & 1) || !product || product->kind != UIR_LOOP_CALL ||
        product->op != UIR_OP_MUL) {
        fail(v, "axes have classes of a contraction, but the block is not a contraction");
        return;
    }
    check_factor(&(class_search){v, UIR_LOOP_CLASS_N, "A"}, product->arguments[0]);
    check_factor(&(class_search){v, UIR_LOOP_CLASS_M, "B"}, product->arguments[1]);
}

/* Used as fma, a block's sums are of products of floats. */
static void check_fma(verifier *v, const uir_loop_statement *s) {
    const uir_loop_function *f = v->function;
    if (!(s->uses >> UIR_LOOP_USE_FMA & 1)) return;
    for (uint32_t id = s->first_child; id != UIR_LOOP_NONE; id = f->statements.data[id].next) {
        const uir_loop_statement *update = &f->statements.data[id];
        if (update->kind != UIR_LOOP_STATEMENT_UPDATE) continue;
        const uir_loop_expression *product = update->value_count ? &f->expressions.data[update->values[0]] : NULL;
        if (uir_loop_monoid_get_op(f, &f->monoids.data[update->monoid]) != UIR_OP_ADD || !product ||
            product->kind != UIR_LOOP_CALL || product->op != UIR_OP_MUL ||
            !uir_iop_is_defined_for(UIR_IOP_FMA, product->dtype))
            fail(v, "the block is declared `as fma`, but does not sum products of floats");
    }
}

static void check_block(verifier *v, const uir_loop_statement *s) {
    uir_dims *dims = v->function->dims;
    uir_dim zero = uir_dim_const(dims, 0);
    v->block = s;
    for (uint32_t i = 0; i < s->condition_count; i++)
        assume(v, s->conditions[i].left, s->conditions[i].relation, s->conditions[i].right);
    for (uint32_t i = 0; i < s->iter_count; i++) {
        const uir_loop_iter *iter = &s->iters[i];
        if (iter->data) continue;
        if (!proved(v, iter->value, UIR_RELATION_GE, zero) || !proved(v, iter->value, UIR_RELATION_LT, iter->extent)) {
            fail(v, "%s = %s is not proved to stay in 0..%s-1: add a `where`", iter->name, show(v, iter->value),
                 show(v, iter->extent));
        }
    }
    /* Inside, an iteration variable is known by its domain alone: that is all a schedule keeps true. */
    for (uint32_t i = 0; i < s->iter_count; i++) {
        if (s->iters[i].data) check_read(v, &s->iters[i]);
        assume_range(v, s->iters[i].symbol, zero, s->iters[i].extent);
    }
    for (uint32_t id = s->first_child; id != UIR_LOOP_NONE; id = v->function->statements.data[id].next) {
        check_block_statement(v, &v->function->statements.data[id]);
    }
    check_classes(v, s);
    check_fma(v, s);
    v->block = NULL;
}

static void check_list(verifier *v, uint32_t id) {
    for (; id != UIR_LOOP_NONE; id = v->function->statements.data[id].next) {
        const uir_loop_statement *s = &v->function->statements.data[id];
        uint32_t mark = v->given.count;
        bool never = v->never;
        v->at = s;
        if (s->kind == UIR_LOOP_STATEMENT_BLOCK) {
            check_block(v, s);
        } else {
            for (uint32_t i = 0; i < s->condition_count; i++)
                assume(v, s->conditions[i].left, s->conditions[i].relation, s->conditions[i].right);
            if (s->kind == UIR_LOOP_STATEMENT_FOR) assume_range(v, s->symbol, s->min, s->extent);
            check_list(v, s->first_child);
        }
        v->given.count = mark;
        v->never = never;
    }
}

static uir_dim element_count(verifier *v, const uir_loop_tensor *tensor) {
    uir_dim product = uir_dim_const(v->function->dims, 1);
    for (uint32_t d = 0; d < tensor->rank; d++) product = uir_dim_mul(v->function->dims, product, tensor->extents[d]);
    return product;
}

/* An argument may have several tensors, which see its elements by other axes; a result has one. */
static void check_declarations(verifier *v) {
    const uir_loop_function *f = v->function;
    uir_dim zero = uir_dim_const(f->dims, 0);
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        uir_dtype_class class = uir_dtype_get_class(t->dtype);
        if (class == UIR_DTYPE_CLASS_STRING || class == UIR_DTYPE_CLASS_COMPLEX)
            fail(v, "tensor '%s': arithmetic on %s is not supported", t->name, uir_dtype_name(t->dtype));
        for (uint32_t d = 0; d < t->rank; d++) {
            if (!proved(v, t->extents[d], UIR_RELATION_GE, zero))
                fail(v, "tensor '%s': extent %s may be negative", t->name, show(v, t->extents[d]));
        }
        for (uint32_t j = 0; j < i; j++) {
            const uir_loop_tensor *other = &f->tensors.data[j];
            if (t->role == UIR_LOOP_ROLE_TEMP || other->role != t->role || other->index != t->index) continue;
            if (t->role == UIR_LOOP_ROLE_OUT)
                fail(v, "tensors '%s' and '%s' are the same result", other->name, t->name);
            else if (other->dtype != t->dtype ||
                     !proved(v, element_count(v, other), UIR_RELATION_EQ, element_count(v, t)))
                fail(v, "tensors '%s' and '%s' are the same argument, but not of one dtype and size", other->name,
                     t->name);
        }
    }
}

typedef uir_vector(const uir_loop_statement *) block_list;

static void collect_blocks(verifier *v, uint32_t id, block_list *blocks) {
    for (; id != UIR_LOOP_NONE; id = v->function->statements.data[id].next) {
        const uir_loop_statement *s = &v->function->statements.data[id];
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK)
            collect_blocks(v, s->first_child, blocks);
        else if (uir_vector_push(&v->scratch, blocks, s) != UIR_STATUS_OK)
            v->status = UIR_STATUS_OUT_OF_MEMORY;
    }
}

static void check_names(verifier *v) {
    block_list blocks = {0};
    collect_blocks(v, v->function->first, &blocks);
    for (uint32_t i = 0; i < blocks.count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            v->at = blocks.data[i];
            if (!strcmp(blocks.data[i]->name, blocks.data[j]->name))
                fail(v, "two blocks are named '%s'", blocks.data[i]->name);
        }
    }
    v->at = NULL;
}

/* A tiling function without a way to choose is none. */
static void check_tiles(verifier *v) {
    const uir_loop_function *f = v->function;
    if (f->tiles.count && !f->candidates.count) fail(v, "no candidate sets the tiles");
    for (uint32_t i = 0; i < f->requires_.count; i++)
        assume(v, f->requires_.data[i].left, f->requires_.data[i].relation, f->requires_.data[i].right);
}

uir_status uir_loop_verify(const uir_loop_function *function, uir_diagnostics *diagnostics) {
    verifier v = {.function = function, .diagnostics = diagnostics, .status = UIR_STATUS_OK};
    uir_arena_init(&v.scratch, &function->allocator);
    v.written = uir_arena_allocate_array(&v.scratch, function->tensors.count + 1, sizeof *v.written);
    if (v.written) {
        check_tiles(&v);
        check_declarations(&v);
        check_names(&v);
        check_list(&v, function->first);
        for (uint32_t i = 0; i < function->tensors.count; i++) {
            v.at = NULL;
            if (function->tensors.data[i].role == UIR_LOOP_ROLE_OUT && !v.written[i])
                fail(&v, "output '%s' is never stored to", function->tensors.data[i].name);
        }
    } else {
        v.status = UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_arena_deinit(&v.scratch);
    return v.status;
}
