/* Reads the statements of a loop AST's text: loops, conditions, blocks and what they do. */
#include "ir/loop/loop_parse.h"

#include <string.h>

#define PARSE UIR_LPARSE

static uir_status take_for(uir_lparser *p, uir_loop_kind kind, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_FOR;
    s->loop_kind = kind;
    if (kind == UIR_LOOP_BOUND) {
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
        UIR_TRY(uir_lparse_name(p, &s->bound_to));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "for"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    uir_token name = p->tokens.current;
    UIR_TRY(uir_lparse_name(p, &s->name));
    UIR_TRY(uir_lparse_check_new_name(p, &name));
    for (uint32_t i = 0; i < p->loops.count; i++) {
        if (!strcmp(p->loops.data[i].name, s->name))
            return uir_tokenizer_error_at(PARSE(p), &name, "an enclosing loop is also named '%s'", s->name);
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
    p->loop_variables = true;
    UIR_TRY(uir_lparse_dim(p, &s->min));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
    UIR_TRY(uir_lparse_dim(p, &s->extent));
    p->loop_variables = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    /* min <= variable < min + extent, so far as numbers can say it. */
    int64_t least, greatest;
    uir_dim_bounds(p->function->dims, s->min, &least, &greatest);
    uir_symbol_facts facts = {least, UIR_DIM_UNBOUNDED, 1, uir_dim_add(p->function->dims, s->min, s->extent)};
    UIR_TRY(uir_dims_add_symbol(p->function->dims, s->name, strlen(s->name), facts, &s->symbol));
    UIR_TRY(uir_vector_push(&p->function->arena, &p->loops, (uir_lparse_scope){s->name, s->symbol}));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    UIR_TRY(uir_lparse_statements(p, &s->first_child));
    p->loops.count--;
    return UIR_STATUS_OK;
}

static uir_status add_iter_symbol(uir_lparser *p, uir_loop_iter *iter) {
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter->extent};
    return uir_dims_add_symbol(p->function->dims, iter->name, strlen(iter->name), facts, &iter->symbol);
}

/* "axis." and the first name have been read: name = axis.read(T[indices]) : domain mode. */
static uir_status take_read(uir_lparser *p, const uir_token *name, uir_loop_statement *s) {
    if (s->iter_count == UIR_LOOP_MAX_ITERS)
        return uir_tokenizer_error(PARSE(p), "more than %d iteration variables", UIR_LOOP_MAX_ITERS);
    uir_loop_iter iter = {.data = true};
    UIR_TRY_ALLOCATE(iter.name, uir_arena_copy_string(&p->function->arena, name->text, name->length));
    for (uint32_t i = 0; i < s->iter_count; i++) {
        if (!strcmp(s->iters[i].name, iter.name))
            return uir_tokenizer_error_at(PARSE(p), name, "two iteration variables are named '%s'", iter.name);
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    uir_token tensor = p->tokens.current;
    if (tensor.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(PARSE(p), "expected a tensor");
    uir_tokenizer_advance(PARSE(p));
    uir_loop_access from = {0};
    UIR_TRY(uir_lparse_access(p, &tensor, &from));
    UIR_TRY_ALLOCATE(iter.from, uir_arena_copy(&p->function->arena, &from, sizeof from));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
    iter.reduce = uir_tokenizer_accept(PARSE(p), "reduce");
    const uir_loop_statement *block = p->block;
    p->block = NULL; /* a domain is over sizes alone */
    uir_status status = uir_lparse_dim(p, &iter.extent);
    p->block = block;
    UIR_TRY(status);
    int mode = UIR_INDEX_CLAMP;
    const char *word;
    while ((word = uir_loop_mode_word((uir_index_mode)mode)) && !uir_tokenizer_accept(PARSE(p), word)) mode++;
    if (!word) return uir_tokenizer_error(PARSE(p), "expected clamp, wrap or skip");
    iter.mode = (uir_index_mode)mode;
    UIR_TRY(add_iter_symbol(p, &iter));
    s->iters[s->iter_count++] = iter;
    return UIR_STATUS_OK;
}

static uir_status take_axis(uir_lparser *p, uint32_t *out_axis) {
    int64_t number = 0;
    uir_token token = p->tokens.current;
    UIR_TRY(uir_tokenizer_expect_integer(PARSE(p), &number));
    if (number < 1 || number > UINT32_MAX) return uir_tokenizer_error_at(PARSE(p), &token, "axes are numbered from 1");
    *out_axis = (uint32_t)number;
    return UIR_STATUS_OK;
}

/* `is` has been read. */
static uir_status take_class(uir_lparser *p, uir_loop_class *out) {
    for (int part = UIR_LOOP_CLASS_NONE + 1; part < UIR_LOOP_CLASS_COUNT; part++) {
        if (!uir_tokenizer_accept(PARSE(p), uir_loop_class_word((uir_loop_class)part))) continue;
        *out = (uir_loop_class)part;
        return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(PARSE(p), "expected the class of a contraction's axis: batch, m, n or k");
}

/* The first name has been read; names = axis.bind(values) : domains, or axis.read. */
static uir_status take_bind(uir_lparser *p, const uir_token *first, uir_loop_statement *s) {
    if (uir_tokenizer_accept(PARSE(p), "=")) {
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "axis"));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "."));
        if (uir_tokenizer_accept(PARSE(p), "read")) return take_read(p, first, s);
    } else if (!uir_tokenizer_is(PARSE(p), ",")) {
        return uir_tokenizer_expect(PARSE(p), "=");
    }
    if (s->iter_count)
        return uir_tokenizer_error_at(PARSE(p), first, "axis.bind must appear once, before any axis.read");
    UIR_TRY_ALLOCATE(s->iters[0].name, uir_arena_copy_string(&p->function->arena, first->text, first->length));
    s->iter_count = 1;
    bool several = uir_tokenizer_is(PARSE(p), ",");
    while (uir_tokenizer_accept(PARSE(p), ",")) {
        if (s->iter_count == UIR_LOOP_MAX_ITERS)
            return uir_tokenizer_error(PARSE(p), "more than %d iteration variables", UIR_LOOP_MAX_ITERS);
        UIR_TRY(uir_lparse_name(p, &s->iters[s->iter_count++].name));
    }
    for (uint32_t i = 0; i < s->iter_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (!strcmp(s->iters[i].name, s->iters[j].name))
                return uir_tokenizer_error_at(PARSE(p), first, "two iteration variables are named '%s'",
                                              s->iters[i].name);
        }
    }
    static const char *const words[] = {"=", "axis", ".", "bind", "("};
    for (size_t i = several ? 0 : 3; i < sizeof words / sizeof words[0]; i++)
        UIR_TRY(uir_tokenizer_expect(PARSE(p), words[i]));
    p->loop_variables = true;
    for (uint32_t i = 0; i < s->iter_count; i++) {
        if (i) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(uir_lparse_dim(p, &s->iters[i].value));
    }
    p->loop_variables = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
    for (uint32_t i = 0; i < s->iter_count; i++) {
        uir_loop_iter *iter = &s->iters[i];
        if (i) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        iter->reduce = uir_tokenizer_accept(PARSE(p), "reduce");
        UIR_TRY(uir_lparse_dim(p, &iter->extent));
        if (uir_tokenizer_accept(PARSE(p), "along")) UIR_TRY(take_axis(p, &iter->axis));
        if (uir_tokenizer_accept(PARSE(p), "is")) UIR_TRY(take_class(p, &iter->part));
        UIR_TRY(add_iter_symbol(p, iter));
    }
    return UIR_STATUS_OK;
}

static uir_status take_store(uir_lparser *p, const uir_token *name, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_STORE;
    s->target_count = s->value_count = 1;
    UIR_TRY(uir_lparse_access(p, name, &s->targets[0]));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "="));
    return uir_lparse_expression(p, &s->values[0]);
}

static uir_status take_monoid_statement(uir_lparser *p, uir_loop_statement_kind kind, uir_loop_statement *s) {
    s->kind = kind;
    uir_token name = p->tokens.current;
    for (s->monoid = 0; s->monoid < p->function->monoids.count &&
                        !uir_lparse_is_name(&name, p->function->monoids.data[s->monoid].name);)
        s->monoid++;
    if (name.kind != UIR_TOKEN_NAME || s->monoid == p->function->monoids.count) {
        return uir_tokenizer_error(PARSE(p), "no monoid '%.*s' is declared", (int)name.length, name.text);
    }
    uir_tokenizer_advance(PARSE(p));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    do {
        uir_token tensor = p->tokens.current;
        if (s->target_count == UIR_LOOP_MAX_STATE)
            return uir_tokenizer_error(PARSE(p), "more than %d targets", UIR_LOOP_MAX_STATE);
        if (tensor.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(PARSE(p), "expected a tensor");
        uir_tokenizer_advance(PARSE(p));
        UIR_TRY(uir_lparse_access(p, &tensor, &s->targets[s->target_count++]));
    } while (uir_tokenizer_accept(PARSE(p), ","));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    if (!uir_tokenizer_accept(PARSE(p), "with")) return UIR_STATUS_OK;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    do {
        if (s->value_count == UIR_LOOP_MAX_STATE)
            return uir_tokenizer_error(PARSE(p), "more than %d values", UIR_LOOP_MAX_STATE);
        UIR_TRY(uir_lparse_expression(p, &s->values[s->value_count++]));
    } while (uir_tokenizer_accept(PARSE(p), ","));
    return uir_tokenizer_expect(PARSE(p), ")");
}

/* A statement of a block whose first name has been read. */
static uir_status take_block_statement(uir_lparser *p, const uir_token *name, uir_loop_statement *s) {
    for (int k = 0; k < UIR_LOOP_STATEMENT_COUNT; k++) {
        const uir_loop_statement_row *row = uir_loop_statement_get_row((uir_loop_statement_kind)k);
        if (row->place == 'S' && k != UIR_LOOP_STATEMENT_STORE && uir_lparse_is_name(name, row->word) &&
            !uir_tokenizer_is(PARSE(p), "[")) {
            return take_monoid_statement(p, (uir_loop_statement_kind)k, s);
        }
    }
    return take_store(p, name, s);
}

static uir_status link_statement(uir_lparser *p, uir_loop_statement *s, uint32_t *first, uint32_t *last) {
    uint32_t id = p->function->statements.count;
    UIR_TRY(uir_vector_push(&p->function->arena, &p->function->statements, *s));
    if (*last == UIR_LOOP_NONE)
        *first = id;
    else
        p->function->statements.data[*last].next = id;
    *last = id;
    return UIR_STATUS_OK;
}

static uir_status take_use(uir_lparser *p, uir_loop_statement *s) {
    for (uint32_t use = 0; use < UIR_LOOP_USE_COUNT; use++) {
        if (!uir_tokenizer_accept(PARSE(p), uir_loop_use_word(use))) continue;
        s->uses |= 1u << use;
        return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(PARSE(p), "expected a use of a block: contraction, convolution, mma or fma");
}

static uir_status take_block(uir_lparser *p, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_BLOCK;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    UIR_TRY(uir_lparse_name(p, &s->name));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    uint32_t last = UIR_LOOP_NONE;
    uir_vector(const char *) annotations = {0};
    while (!uir_tokenizer_accept(PARSE(p), "}")) {
        uir_token name = p->tokens.current;
        if (name.kind != UIR_TOKEN_NAME)
            return uir_tokenizer_error(PARSE(p),
                                       "expected axis.bind, axis.read, where, annotate, or a statement of the block");
        uir_tokenizer_advance(PARSE(p));
        if (last == UIR_LOOP_NONE && !s->condition_count && !annotations.count &&
            (uir_tokenizer_is(PARSE(p), ",") || uir_tokenizer_is(PARSE(p), "="))) {
            UIR_TRY(take_bind(p, &name, s));
            p->block = s;
            continue;
        }
        if (last == UIR_LOOP_NONE && !s->condition_count && uir_lparse_is_name(&name, "where")) {
            p->loop_variables = true;
            UIR_TRY(uir_lparse_conditions(p, s));
            p->loop_variables = false;
            continue;
        }
        if (last == UIR_LOOP_NONE && uir_lparse_is_name(&name, "as") && p->tokens.current.kind == UIR_TOKEN_NAME) {
            UIR_TRY(take_use(p, s));
            continue;
        }
        if (last == UIR_LOOP_NONE && uir_lparse_is_name(&name, "annotate") &&
            p->tokens.current.kind == UIR_TOKEN_STRING) {
            if (memchr(p->tokens.current.text, 0, p->tokens.current.length))
                return uir_tokenizer_error(PARSE(p), "an annotation must not contain a zero byte");
            UIR_TRY(uir_vector_push(&p->function->arena, &annotations, p->tokens.current.text));
            s->annotations = annotations.data;
            s->annotation_count = annotations.count;
            uir_tokenizer_advance(PARSE(p));
            continue;
        }
        uir_loop_statement child = {.first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE, .line = name.line};
        p->block = s;
        UIR_TRY(take_block_statement(p, &name, &child));
        UIR_TRY(link_statement(p, &child, &s->first_child, &last));
    }
    p->block = NULL;
    return last == UIR_LOOP_NONE ? uir_tokenizer_error(PARSE(p), "block '%s' does nothing", s->name) : UIR_STATUS_OK;
}

static uir_status take_if(uir_lparser *p, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_IF;
    p->loop_variables = true;
    UIR_TRY(uir_lparse_conditions(p, s));
    p->loop_variables = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    return uir_lparse_statements(p, &s->first_child);
}

static uir_status take_statement(uir_lparser *p, uir_loop_statement *s) {
    for (int k = 0; k < UIR_LOOP_KIND_COUNT; k++) {
        if (uir_tokenizer_accept(PARSE(p), uir_loop_kind_word((uir_loop_kind)k)))
            return take_for(p, (uir_loop_kind)k, s);
    }
    if (uir_tokenizer_accept(PARSE(p), "if")) return take_if(p, s);
    if (uir_tokenizer_accept(PARSE(p), "ScheduleBlock")) return take_block(p, s);
    return uir_tokenizer_error(PARSE(p), "expected a loop, if or ScheduleBlock");
}

/* Up to and with the closing brace. */
uir_status uir_lparse_statements(uir_lparser *p, uint32_t *out_first) {
    uint32_t last = UIR_LOOP_NONE;
    *out_first = UIR_LOOP_NONE;
    if (++p->depth > UIR_LPARSE_MAX_DEPTH)
        return uir_tokenizer_error(PARSE(p), "nested deeper than %d", UIR_LPARSE_MAX_DEPTH);
    while (!uir_tokenizer_accept(PARSE(p), "}")) {
        uir_loop_statement s = {.first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE, .line = p->tokens.current.line};
        UIR_TRY(take_statement(p, &s));
        UIR_TRY(link_statement(p, &s, out_first, &last));
    }
    p->depth--;
    return UIR_STATUS_OK;
}
