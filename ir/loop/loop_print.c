/* Text of the loop AST. */
#include "ir/loop/loop.h"

#include <string.h>

typedef struct printer {
    const uir_loop_function *function;
    const uir_loop_monoid *monoid; /* whose parameters are in scope */
    bool combining;                /* parameters after the state are the other state's */
    uir_text *text;
} printer;

static void put(printer *p, const char *s) {
    uir_text_append_string(p->text, s);
}

static void indent(printer *p, uint32_t depth) {
    for (uint32_t i = 0; i < depth; i++) put(p, "  ");
}

static void print_dim(printer *p, uir_dim dim) {
    uir_dim_print(p->function->dims, dim, p->text);
}

static void print_dims(printer *p, const uir_dim *dims, uint32_t count) {
    put(p, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) put(p, ", ");
        print_dim(p, dims[i]);
    }
    put(p, "]");
}

static void print_access(printer *p, const uir_loop_access *access) {
    const uir_loop_tensor *tensor = &p->function->tensors.data[access->tensor];
    put(p, tensor->name);
    print_dims(p, access->indices, tensor->rank);
}

static const char *parameter_name(const printer *p, int64_t number) {
    const uir_loop_monoid *m = p->monoid;
    if (number < m->state_count) return m->state_names[number];
    return p->combining ? m->other_names[number - m->state_count] : m->element_names[number - m->state_count];
}

static void print_expression(printer *p, uint32_t id) {
    const uir_loop_expression *e = &p->function->expressions.data[id];
    switch (e->kind) {
    case UIR_LOOP_CONSTANT:
        uir_text_append_format(p->text, "%s(", uir_dtype_name(e->dtype));
        if (uir_dtype_is_float(e->dtype)) {
            uir_text_append_double(p->text, e->real);
        } else {
            uir_text_append_format(p->text, "%lld", (long long)e->integer);
        }
        put(p, ")");
        break;
    case UIR_LOOP_INDEX:
        put(p, "index(");
        print_dim(p, e->index);
        put(p, ")");
        break;
    case UIR_LOOP_LOAD:
        print_access(p, &e->load);
        if (e->has_fill) {
            put(p, " fill ");
            uir_text_append_double(p->text, e->fill);
        }
        break;
    case UIR_LOOP_PARAMETER:
        put(p, parameter_name(p, e->integer));
        break;
    case UIR_LOOP_CALL:
        put(p, uir_op_get_row(e->op)->name);
        if (e->op == UIR_OP_CAST || e->op == UIR_OP_BIT_CAST)
            uir_text_append_format(p->text, ".%s%s", uir_dtype_name(e->dtype), e->overflows ? ".overflow" : "");
        put(p, "(");
        for (uint32_t i = 0; i < e->argument_count; i++) {
            if (i) put(p, ", ");
            print_expression(p, e->arguments[i]);
        }
        put(p, ")");
        break;
    }
}

static void print_expressions(printer *p, const uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) put(p, ", ");
        print_expression(p, ids[i]);
    }
}

static void print_typed_names(printer *p, const char *const *names, const uir_dtype *dtypes, uint32_t count) {
    put(p, "(");
    for (uint32_t i = 0; i < count; i++) {
        uir_text_append_format(p->text, "%s%s : %s", i ? ", " : "", names[i], uir_dtype_name(dtypes[i]));
    }
    put(p, ")");
}

static void print_monoid(printer *p, const uir_loop_monoid *m) {
    p->monoid = m;
    uir_text_append_format(p->text, "  monoid %s ", m->name);
    print_typed_names(p, m->state_names, m->state_dtypes, m->state_count);
    if (m->commutative) put(p, " commutative");
    put(p, " {\n    identity ");
    print_expressions(p, m->identity, m->state_count);
    put(p, "\n    update ");
    print_typed_names(p, m->element_names, m->element_dtypes, m->element_count);
    put(p, " ");
    print_expressions(p, m->update, m->state_count);
    put(p, "\n    combine ");
    print_typed_names(p, m->other_names, m->state_dtypes, m->state_count);
    put(p, " ");
    p->combining = true;
    print_expressions(p, m->combine, m->state_count);
    p->combining = false;
    put(p, "\n    finish ");
    print_expressions(p, m->finish, m->finish_count);
    put(p, "\n  }\n");
    p->monoid = NULL;
}

static void print_condition(printer *p, const uir_condition *c) {
    print_dim(p, c->left);
    uir_text_append_format(p->text, " %s ", uir_relation_text(c->relation));
    print_dim(p, c->right);
}

static void print_conditions(printer *p, const uir_loop_statement *s) {
    for (uint32_t i = 0; i < s->condition_count; i++) {
        if (i) put(p, " and ");
        print_condition(p, &s->conditions[i]);
    }
}

static void print_accesses(printer *p, const uir_loop_access *accesses, uint32_t count) {
    put(p, "(");
    for (uint32_t i = 0; i < count; i++) {
        if (i) put(p, ", ");
        print_access(p, &accesses[i]);
    }
    put(p, ")");
}

static void print_bind(printer *p, const uir_loop_statement *s, uint32_t depth) {
    uint32_t bound = 0;
    while (bound < s->iter_count && !s->iters[bound].data) bound++;
    if (bound) {
        indent(p, depth);
        for (uint32_t i = 0; i < bound; i++) uir_text_append_format(p->text, "%s%s", i ? ", " : "", s->iters[i].name);
        put(p, " = axis.bind(");
        for (uint32_t i = 0; i < bound; i++) {
            if (i) put(p, ", ");
            print_dim(p, s->iters[i].value);
        }
        put(p, ") : ");
        for (uint32_t i = 0; i < bound; i++) {
            if (i) put(p, ", ");
            if (s->iters[i].reduce) put(p, "reduce ");
            print_dim(p, s->iters[i].extent);
            if (s->iters[i].axis) uir_text_append_format(p->text, " along %u", s->iters[i].axis);
            if (s->iters[i].part) uir_text_append_format(p->text, " is %s", uir_loop_class_word(s->iters[i].part));
        }
        put(p, "\n");
    }
    for (uint32_t i = bound; i < s->iter_count; i++) {
        indent(p, depth);
        uir_text_append_format(p->text, "%s = axis.read(", s->iters[i].name);
        print_access(p, s->iters[i].from);
        put(p, s->iters[i].reduce ? ") : reduce " : ") : ");
        print_dim(p, s->iters[i].extent);
        uir_text_append_format(p->text, " %s\n", uir_loop_mode_word(s->iters[i].mode));
    }
}

static void print_list(printer *p, uint32_t id, uint32_t depth);

static void print_head(printer *p, const uir_loop_statement *s) {
    switch (s->kind) {
    case UIR_LOOP_STATEMENT_FOR:
        put(p, uir_loop_kind_word(s->loop_kind));
        if (s->loop_kind == UIR_LOOP_BOUND) uir_text_append_format(p->text, "(%s)", s->bound_to);
        uir_text_append_format(p->text, " for (%s, ", s->name);
        print_dim(p, s->min);
        put(p, ", ");
        print_dim(p, s->extent);
        put(p, ")");
        break;
    case UIR_LOOP_STATEMENT_IF:
        put(p, "if ");
        print_conditions(p, s);
        break;
    case UIR_LOOP_STATEMENT_BLOCK:
        uir_text_append_format(p->text, "ScheduleBlock(%s)", s->name);
        break;
    case UIR_LOOP_STATEMENT_STORE:
        print_access(p, &s->targets[0]);
        put(p, " = ");
        print_expression(p, s->values[0]);
        break;
    default: /* the monoid's statements differ by their word alone */
        uir_text_append_format(p->text, "%s %s ", uir_loop_statement_get_row(s->kind)->word,
                               p->function->monoids.data[s->monoid].name);
        print_accesses(p, s->targets, s->target_count);
        if (s->value_count) {
            put(p, " with (");
            print_expressions(p, s->values, s->value_count);
            put(p, ")");
        }
        break;
    }
}

static void print_statement(printer *p, const uir_loop_statement *s, uint32_t depth) {
    indent(p, depth);
    print_head(p, s);
    if (!uir_loop_statement_get_row(s->kind)->children) {
        put(p, "\n");
        return;
    }
    put(p, " {\n");
    if (s->kind == UIR_LOOP_STATEMENT_BLOCK && s->iter_count) print_bind(p, s, depth + 1);
    if (s->kind == UIR_LOOP_STATEMENT_BLOCK && s->condition_count) {
        indent(p, depth + 1);
        put(p, "where ");
        print_conditions(p, s);
        put(p, "\n");
    }
    for (uint32_t use = 0; use < UIR_LOOP_USE_COUNT; use++) {
        if (!(s->uses >> use & 1)) continue;
        indent(p, depth + 1);
        uir_text_append_format(p->text, "as %s\n", uir_loop_use_word(use));
    }
    for (uint32_t i = 0; i < s->annotation_count; i++) {
        indent(p, depth + 1);
        put(p, "annotate ");
        uir_text_append_quoted(p->text, s->annotations[i], strlen(s->annotations[i]));
        put(p, "\n");
    }
    print_list(p, s->first_child, depth + 1);
    indent(p, depth);
    put(p, "}\n");
}

static void print_list(printer *p, uint32_t id, uint32_t depth) {
    for (; id != UIR_LOOP_NONE; id = p->function->statements.data[id].next)
        print_statement(p, &p->function->statements.data[id], depth);
}

static void print_size(printer *p, const char *word, int64_t least, const uir_loop_size *size) {
    uir_symbol_facts facts = uir_dims_symbol_facts(p->function->dims, size->symbol);
    uir_text_append_format(p->text, "%s %s", word, size->name);
    if (facts.max != UIR_DIM_UNBOUNDED) {
        uir_text_append_format(p->text, " in %lld..%lld", (long long)facts.min, (long long)facts.max);
    } else if (facts.min != least) {
        uir_text_append_format(p->text, " in %lld..", (long long)facts.min);
    }
    if (facts.multiple_of > 1) uir_text_append_format(p->text, " mult %lld", (long long)facts.multiple_of);
    put(p, "\n");
}

static void print_candidate(printer *p, const uir_icandidate *c) {
    put(p, "candidate ");
    for (uint32_t i = 0; i < p->function->tiles.count; i++) {
        uir_text_append_format(p->text, "%s%s = ", i ? ", " : "", p->function->tiles.data[i].name);
        print_dim(p, c->tiles[i]);
    }
    for (uint32_t i = 0; i < c->guard.count; i++) {
        put(p, i ? " and " : " when ");
        print_condition(p, &c->guard.atoms[i].condition);
    }
    if (c->cost.id) {
        put(p, " cost ");
        print_dim(p, c->cost);
    }
    if (c->units.id) {
        put(p, " units ");
        print_dim(p, c->units);
    }
    put(p, "\n");
}

static void print_tensor(printer *p, const uir_loop_tensor *t) {
    uir_text_append_format(p->text, "  tensor %s : %s ", t->name, uir_dtype_name(t->dtype));
    print_dims(p, t->extents, t->rank);
    if (t->layout) uir_layout_print(t->layout, t->rank, p->function->dims, p->text);
    if (t->role == UIR_LOOP_ROLE_TEMP) {
        uir_text_append_format(p->text, " temp %s\n", t->space ? t->space : UIR_LOOP_MEMORY);
    } else {
        uir_text_append_format(p->text, " %s %u%s\n", t->role == UIR_LOOP_ROLE_IN ? "in" : "out", t->index,
                               t->constant ? " constant" : "");
    }
}

void uir_loop_print_tile(const uir_loop_function *function, uint32_t tile, uir_text *text) {
    printer p = {function, NULL, false, text};
    print_size(&p, "tile", 1, &function->tiles.data[tile]);
}

void uir_loop_print_require(const uir_loop_function *function, uint32_t require, uir_text *text) {
    printer p = {function, NULL, false, text};
    put(&p, "require ");
    print_condition(&p, &function->requires_.data[require]);
    put(&p, "\n");
}

void uir_loop_print_candidate(const uir_loop_function *function, uint32_t candidate, uir_text *text) {
    printer p = {function, NULL, false, text};
    print_candidate(&p, &function->candidates.data[candidate]);
}

void uir_loop_print(const uir_loop_function *function, uir_text *text) {
    printer p = {function, NULL, false, text};
    uir_text_append_format(text, "func @%s {\n", function->name);
    for (uint32_t i = 0; i < function->sizes.count; i++) {
        indent(&p, 1);
        print_size(&p, "dim", 0, &function->sizes.data[i]);
    }
    for (uint32_t i = 0; i < function->tiles.count; i++) {
        indent(&p, 1);
        uir_loop_print_tile(function, i, text);
    }
    for (uint32_t i = 0; i < function->requires_.count; i++) {
        indent(&p, 1);
        uir_loop_print_require(function, i, text);
    }
    for (uint32_t i = 0; i < function->candidates.count; i++) {
        indent(&p, 1);
        uir_loop_print_candidate(function, i, text);
    }
    for (uint32_t i = 0; i < function->tensors.count; i++) print_tensor(&p, &function->tensors.data[i]);
    for (uint32_t i = 0; i < function->monoids.count; i++) print_monoid(&p, &function->monoids.data[i]);
    print_list(&p, function->first, 1);
    put(&p, "}\n");
}
