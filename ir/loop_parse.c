/* Reads the loop AST's text by recursive descent; nesting is bounded, so hostile text cannot exhaust the stack. */
#include "ir/loop.h"

#include <string.h>

enum { DEEPEST = 128 };

typedef struct scope_name {
    const char *name;
    uir_symbol symbol;
} scope_name;

typedef struct parser {
    uir_tokenizer tokens;
    uir_loop_function *function;
    uir_vector(scope_name) loops;    /* loop variables in scope, a stack */
    const uir_loop_statement *block; /* whose iteration variables are in scope, or NULL */
    bool loop_variables;             /* loop variables are visible (axis.bind, where, if) */
    const uir_loop_monoid *monoid;   /* whose parameters are in scope, or NULL */
    uint32_t parameters;             /* how many of them: 0, the state, or with elements / the other state */
    bool combining;
    uint32_t depth;
} parser;

#define PARSE(p) (&(p)->tokens)

static bool is_name(const uir_token *token, const char *name) {
    return strlen(name) == token->length && !memcmp(name, token->text, token->length);
}

static uir_status take_name(parser *p, const char **out_name) {
    if (p->tokens.current.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(PARSE(p), "expected a name");
    UIR_TRY_ALLOCATE(*out_name,
                     uir_arena_copy_string(&p->function->arena, p->tokens.current.text, p->tokens.current.length));
    uir_tokenizer_advance(PARSE(p));
    return UIR_STATUS_OK;
}

static uir_status take_dtype(parser *p, uir_dtype *out_dtype) {
    const uir_token *token = &p->tokens.current;
    if (token->kind != UIR_TOKEN_NAME || !uir_dtype_from_name(token->text, token->length, out_dtype)) {
        return uir_tokenizer_error(PARSE(p), "expected a dtype such as f32");
    }
    uir_tokenizer_advance(PARSE(p));
    return UIR_STATUS_OK;
}

/* ---- dims ---- */
static uir_dim resolve(void *user, const char *name, size_t length) {
    parser *p = user;
    uir_dims *dims = p->function->dims;
    uir_token token = {.text = name, .length = length};
    if (p->block && !p->loop_variables) {
        for (uint32_t i = 0; i < p->block->iter_count; i++) {
            if (is_name(&token, p->block->iters[i].name)) return uir_dim_symbol(dims, p->block->iters[i].symbol);
        }
    }
    for (uint32_t i = p->loops.count; p->loop_variables && i-- > 0;) {
        if (is_name(&token, p->loops.data[i].name)) return uir_dim_symbol(dims, p->loops.data[i].symbol);
    }
    for (uint32_t i = 0; i < p->function->sizes.count; i++) {
        if (is_name(&token, p->function->sizes.data[i].name))
            return uir_dim_symbol(dims, p->function->sizes.data[i].symbol);
    }
    for (uint32_t i = 0; i < p->function->tiles.count; i++) {
        if (is_name(&token, p->function->tiles.data[i].name))
            return uir_dim_symbol(dims, p->function->tiles.data[i].symbol);
    }
    return UIR_DIM_NONE;
}

static uir_status take_dim(parser *p, uir_dim *out_dim) {
    return uir_dim_parse(p->function->dims, PARSE(p), resolve, p, out_dim);
}

static uir_status take_dims(parser *p, uir_dim *out_dims, uint32_t *out_count) {
    *out_count = 0;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "["));
    while (!uir_tokenizer_is(PARSE(p), "]")) {
        if (*out_count == UIR_LOOP_MAX_RANK)
            return uir_tokenizer_error(PARSE(p), "more than %d dims", UIR_LOOP_MAX_RANK);
        if (*out_count) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(take_dim(p, &out_dims[(*out_count)++]));
    }
    return uir_tokenizer_expect(PARSE(p), "]");
}

static uir_status take_condition(parser *p, uir_condition *out_condition) {
    static const char *const words[] = {"==", "!=", "<=", ">=", "<", ">"};
    static const uir_relation relations[] = {UIR_RELATION_EQ, UIR_RELATION_NE, UIR_RELATION_LE,
                                             UIR_RELATION_GE, UIR_RELATION_LT, UIR_RELATION_GT};
    size_t k = 0;
    UIR_TRY(take_dim(p, &out_condition->left));
    while (k < 6 && !uir_tokenizer_accept(PARSE(p), words[k])) k++;
    if (k == 6) return uir_tokenizer_error(PARSE(p), "expected one of == != <= >= < >");
    out_condition->relation = relations[k];
    return take_dim(p, &out_condition->right);
}

static uir_status take_conditions(parser *p, uir_loop_statement *s) {
    uir_vector(uir_condition) list = {0};
    do {
        uir_condition c;
        UIR_TRY(take_condition(p, &c));
        UIR_TRY(uir_vector_push(&p->function->arena, &list, c));
    } while (uir_tokenizer_accept(PARSE(p), "and"));
    s->conditions = list.data;
    s->condition_count = list.count;
    return UIR_STATUS_OK;
}

/* ---- expressions ---- */
static uint32_t find_tensor(const parser *p, const uir_token *token) {
    for (uint32_t i = 0; i < p->function->tensors.count; i++) {
        if (is_name(token, p->function->tensors.data[i].name)) return i;
    }
    return UIR_LOOP_NONE;
}

static const char *parameter_name(const parser *p, uint32_t number) {
    const uir_loop_monoid *m = p->monoid;
    if (number < m->state_count) return m->state_names[number];
    return p->combining ? m->other_names[number - m->state_count] : m->element_names[number - m->state_count];
}

static uir_dtype parameter_dtype(const parser *p, uint32_t number) {
    const uir_loop_monoid *m = p->monoid;
    return number < m->state_count || p->combining ? m->state_dtypes[number % m->state_count]
                                                   : m->element_dtypes[number - m->state_count];
}

/* The tensor's name has been consumed (`name`); its indices follow. */
static uir_status take_access(parser *p, const uir_token *name, uir_loop_access *out_access) {
    uint32_t rank;
    out_access->tensor = find_tensor(p, name);
    if (out_access->tensor == UIR_LOOP_NONE) {
        return uir_tokenizer_error_at(PARSE(p), name, "no tensor '%.*s' is declared", (int)name->length, name->text);
    }
    UIR_TRY(take_dims(p, out_access->indices, &rank));
    const uir_loop_tensor *tensor = &p->function->tensors.data[out_access->tensor];
    if (rank != tensor->rank)
        return uir_tokenizer_error_at(PARSE(p), name, "'%s' has %u dims, %u indices given", tensor->name, tensor->rank,
                                      rank);
    return UIR_STATUS_OK;
}

static uir_status take_expression(parser *p, uint32_t *out_id);

static uir_status take_constant(parser *p, uir_dtype dtype, uir_loop_expression *e) {
    e->kind = UIR_LOOP_CONSTANT;
    e->dtype = dtype;
    if (!uir_dtype_is_float(dtype)) return uir_tokenizer_expect_integer(PARSE(p), &e->integer);
    bool negative = uir_tokenizer_accept(PARSE(p), "-");
    const uir_token *token = &p->tokens.current;
    if (token->kind == UIR_TOKEN_REAL)
        e->real = token->real;
    else if (token->kind == UIR_TOKEN_INTEGER)
        e->real = (double)token->integer;
    else if (uir_tokenizer_is(PARSE(p), "inf"))
        e->real = (double)__builtin_inf();
    else if (uir_tokenizer_is(PARSE(p), "nan"))
        e->real = (double)__builtin_nan("");
    else
        return uir_tokenizer_error(PARSE(p), "expected a number");
    if (negative) e->real = -e->real;
    uir_tokenizer_advance(PARSE(p));
    return UIR_STATUS_OK;
}

/* Is the result's dtype a part of its name: cast.f16(x), bit_cast.i32(x)? */
static bool names_dtype(uir_op op) {
    return op == UIR_OP_CAST || op == UIR_OP_BIT_CAST;
}

/* Result dtype of an elementwise primitive, or an error at `name`. */
static uir_status type_call(parser *p, const uir_token *name, uir_loop_expression *e) {
    const uir_op_row *row = uir_op_get_row(e->op);
    uir_dtype dtypes[3] = {UIR_DTYPE_NONE};
    for (uint32_t i = 0; i < e->argument_count; i++) dtypes[i] = p->function->expressions.data[e->arguments[i]].dtype;
    if ((int)e->argument_count < row->min_inputs || (int)e->argument_count > row->max_inputs) {
        return uir_tokenizer_error_at(PARSE(p), name, "%s takes %d arguments, %u given", row->name, row->min_inputs,
                                      e->argument_count);
    }
    uint32_t first = e->op == UIR_OP_SELECT; /* its condition is bool whatever the others are */
    if (first && dtypes[0] != UIR_DTYPE_BOOL)
        return uir_tokenizer_error_at(PARSE(p), name, "select's condition must be bool");
    for (uint32_t i = first + 1; i < e->argument_count; i++) {
        if (dtypes[i] != dtypes[first]) {
            return uir_tokenizer_error_at(PARSE(p), name, "%s of %s and %s: cast one of them", row->name,
                                          uir_dtype_name(dtypes[first]), uir_dtype_name(dtypes[i]));
        }
    }
    if (e->op == UIR_OP_BIT_CAST && uir_dtype_bits(e->dtype) != uir_dtype_bits(dtypes[0]))
        return uir_tokenizer_error_at(PARSE(p), name, "%s and %s are not equally wide", uir_dtype_name(dtypes[0]),
                                      uir_dtype_name(e->dtype));
    if (!names_dtype(e->op)) e->dtype = row->traits & UIR_TRAIT_COMPARISON ? UIR_DTYPE_BOOL : dtypes[first];
    return UIR_STATUS_OK;
}

static uir_status take_call(parser *p, const uir_token *name, uir_loop_expression *e) {
    e->kind = UIR_LOOP_CALL;
    e->op = uir_op_find_primitive(name->text, name->length);
    const uir_op_row *row = uir_op_get_row(e->op);
    if (e->op == UIR_OP_NONE || !(row->traits & UIR_TRAIT_ELEMENTWISE) || (row->attributes[0] && !names_dtype(e->op))) {
        return uir_tokenizer_error_at(PARSE(p), name, "'%.*s' is no tensor, parameter or elementwise primitive",
                                      (int)name->length, name->text);
    }
    if (names_dtype(e->op)) {
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "."));
        UIR_TRY(take_dtype(p, &e->dtype));
        e->overflows = e->op == UIR_OP_CAST && uir_tokenizer_accept(PARSE(p), ".");
        if (e->overflows) UIR_TRY(uir_tokenizer_expect(PARSE(p), "overflow"));
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    while (!uir_tokenizer_is(PARSE(p), ")")) {
        if (e->argument_count == 3) return uir_tokenizer_error(PARSE(p), "more than 3 arguments");
        if (e->argument_count) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(take_expression(p, &e->arguments[e->argument_count++]));
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    return type_call(p, name, e);
}

static uir_status take_primary(parser *p, uir_loop_expression *e) {
    uir_token name = p->tokens.current;
    if (name.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(PARSE(p), "expected an expression");
    uir_tokenizer_advance(PARSE(p));
    uir_dtype dtype;
    bool call = uir_tokenizer_is(PARSE(p), "(");
    if (call && (is_name(&name, "index") || uir_dtype_from_name(name.text, name.length, &dtype))) {
        uir_tokenizer_advance(PARSE(p));
        if (is_name(&name, "index")) {
            e->kind = UIR_LOOP_INDEX;
            e->dtype = UIR_DTYPE_I64;
            UIR_TRY(take_dim(p, &e->index));
        } else {
            UIR_TRY(take_constant(p, dtype, e));
        }
        return uir_tokenizer_expect(PARSE(p), ")");
    }
    if (uir_tokenizer_is(PARSE(p), "[")) {
        if (p->monoid) return uir_tokenizer_error_at(PARSE(p), &name, "a monoid sees its parameters only, no tensors");
        e->kind = UIR_LOOP_LOAD;
        UIR_TRY(take_access(p, &name, &e->load));
        e->dtype = p->function->tensors.data[e->load.tensor].dtype;
        e->has_fill = uir_tokenizer_accept(PARSE(p), "fill");
        return e->has_fill ? uir_tokenizer_expect_double(PARSE(p), &e->fill) : UIR_STATUS_OK;
    }
    for (uint32_t i = 0; !call && p->monoid && i < p->parameters; i++) {
        if (!is_name(&name, parameter_name(p, i))) continue;
        e->kind = UIR_LOOP_PARAMETER;
        e->integer = i;
        e->dtype = parameter_dtype(p, i);
        return UIR_STATUS_OK;
    }
    return take_call(p, &name, e);
}

static uir_status take_expression(parser *p, uint32_t *out_id) {
    if (++p->depth > DEEPEST) return uir_tokenizer_error(PARSE(p), "nested deeper than %d", DEEPEST);
    uir_loop_expression e = {0};
    UIR_TRY(take_primary(p, &e));
    p->depth--;
    *out_id = p->function->expressions.count;
    return uir_vector_push(&p->function->arena, &p->function->expressions, e);
}

static uir_status take_expressions(parser *p, uint32_t *out_ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(take_expression(p, &out_ids[i]));
    }
    return UIR_STATUS_OK;
}

/* ---- declarations ---- */
static uir_status check_new_name(parser *p, const uir_token *name) {
    uir_dtype dtype;
    bool taken = find_tensor(p, name) != UIR_LOOP_NONE || uir_dtype_from_name(name->text, name->length, &dtype);
    for (uint32_t i = 0; i < p->function->sizes.count; i++) taken |= is_name(name, p->function->sizes.data[i].name);
    for (uint32_t i = 0; i < p->function->tiles.count; i++) taken |= is_name(name, p->function->tiles.data[i].name);
    for (uint32_t i = 0; i < p->function->monoids.count; i++) taken |= is_name(name, p->function->monoids.data[i].name);
    return taken ? uir_tokenizer_error_at(PARSE(p), name, "the name '%.*s' is taken", (int)name->length, name->text)
                 : UIR_STATUS_OK;
}

/* dim, or tile: of which the least is 1. Facts are those of every name before them in the row that has none of its
 * own. */
static uir_status take_sizes(parser *p, bool tile) {
    uint32_t waiting = tile ? p->function->tiles.count : p->function->sizes.count;
    do {
        uir_loop_size size;
        uir_token name = p->tokens.current;
        uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
        if (tile) facts.min = 1;
        UIR_TRY(take_name(p, &size.name));
        UIR_TRY(check_new_name(p, &name));
        bool given = uir_tokenizer_accept(PARSE(p), "in");
        if (given) {
            UIR_TRY(uir_tokenizer_expect_integer(PARSE(p), &facts.min));
            UIR_TRY(uir_tokenizer_expect(PARSE(p), ".."));
            if (p->tokens.current.kind == UIR_TOKEN_INTEGER)
                UIR_TRY(uir_tokenizer_expect_integer(PARSE(p), &facts.max));
        }
        if (uir_tokenizer_accept(PARSE(p), "mult")) {
            given = true;
            UIR_TRY(uir_tokenizer_expect_integer(PARSE(p), &facts.multiple_of));
        }
        if (facts.min < tile || facts.max < facts.min || facts.multiple_of < 1) {
            return uir_tokenizer_error_at(
                PARSE(p), &name,
                "a size is at least 0, a tile at least 1, its bounds in order, its multiple at least 1");
        }
        UIR_TRY(uir_dims_add_symbol(p->function->dims, size.name, strlen(size.name), facts, &size.symbol));
        if (tile)
            UIR_TRY(uir_vector_push(&p->function->arena, &p->function->tiles, size));
        else
            UIR_TRY(uir_vector_push(&p->function->arena, &p->function->sizes, size));
        const uir_loop_size *sizes = tile ? p->function->tiles.data : p->function->sizes.data;
        uint32_t count = tile ? p->function->tiles.count : p->function->sizes.count;
        for (; given && waiting < count; waiting++)
            uir_dims_set_symbol_facts(p->function->dims, sizes[waiting].symbol, facts);
    } while (uir_tokenizer_accept(PARSE(p), ","));
    return UIR_STATUS_OK;
}

static uir_status take_guard(parser *p, uir_iguard *guard) {
    uir_vector(uir_iatom) atoms = {0};
    do {
        uir_iatom atom = {.kind = UIR_IATOM_RELATION};
        UIR_TRY(take_condition(p, &atom.condition));
        UIR_TRY(uir_vector_push(&p->function->arena, &atoms, atom));
    } while (uir_tokenizer_accept(PARSE(p), "and"));
    *guard = (uir_iguard){atoms.data, atoms.count};
    return UIR_STATUS_OK;
}

static uir_status take_candidate(parser *p) {
    uir_loop_function *f = p->function;
    uir_icandidate c = {.line = p->tokens.previous.line};
    uint32_t given = 0;
    UIR_TRY_ALLOCATE(c.tiles, uir_arena_allocate_array(&f->arena, f->tiles.count + 1, sizeof *c.tiles));
    do {
        uint32_t tile = 0;
        while (tile < f->tiles.count && !uir_tokenizer_is(PARSE(p), f->tiles.data[tile].name)) tile++;
        if (tile == f->tiles.count) return uir_tokenizer_error(PARSE(p), "expected the name of a tile");
        if (c.tiles[tile].id) return uir_tokenizer_error(PARSE(p), "this tile is set twice");
        uir_tokenizer_advance(PARSE(p));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "="));
        UIR_TRY(take_dim(p, &c.tiles[tile]));
        given++;
    } while (uir_tokenizer_accept(PARSE(p), ","));
    if (given != f->tiles.count)
        return uir_tokenizer_error(PARSE(p), "a candidate sets every tile; declare tiles before it");
    if (uir_tokenizer_accept(PARSE(p), "when")) UIR_TRY(take_guard(p, &c.guard));
    if (uir_tokenizer_accept(PARSE(p), "cost")) {
        UIR_TRY(take_dim(p, &c.cost));
        if (uir_tokenizer_accept(PARSE(p), "units")) UIR_TRY(take_dim(p, &c.units));
    }
    return uir_vector_push(&f->arena, &f->candidates, c);
}

static uir_status take_require(parser *p) {
    uir_condition condition;
    UIR_TRY(take_condition(p, &condition));
    return uir_vector_push(&p->function->arena, &p->function->requires_, condition);
}

static uir_status take_layout_dim(void *user, uir_dim *out_dim) {
    return take_dim(user, out_dim);
}

static uir_status take_tensor(parser *p) {
    uir_loop_tensor t = {0};
    uir_token name = p->tokens.current;
    UIR_TRY(take_name(p, &t.name));
    UIR_TRY(check_new_name(p, &name));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
    UIR_TRY(take_dtype(p, &t.dtype));
    UIR_TRY(take_dims(p, t.extents, &t.rank));
    UIR_TRY(uir_layout_parse(PARSE(p), take_layout_dim, p, t.extents, t.rank, &t.layout));
    if (!uir_layout_finish(&t.layout, t.extents, t.rank, p->function->dims).id && t.layout.given)
        return uir_tokenizer_error_at(PARSE(p), &name, "the layout of '%s' overflows 64 bits", t.name);
    if (uir_tokenizer_accept(PARSE(p), "temp")) {
        t.role = UIR_LOOP_ROLE_TEMP;
        if (!uir_tokenizer_accept(PARSE(p), UIR_LOOP_MEMORY)) UIR_TRY(take_name(p, &t.space));
    } else {
        int64_t index = 0;
        t.role = uir_tokenizer_is(PARSE(p), "out") ? UIR_LOOP_ROLE_OUT : UIR_LOOP_ROLE_IN;
        if (!uir_tokenizer_accept(PARSE(p), "out")) UIR_TRY(uir_tokenizer_expect(PARSE(p), "in"));
        UIR_TRY(uir_tokenizer_expect_integer(PARSE(p), &index));
        if (index < 0 || index > 255) return uir_tokenizer_error_at(PARSE(p), &name, "an argument number is 0 to 255");
        t.index = (uint32_t)index;
        t.constant = t.role == UIR_LOOP_ROLE_IN && uir_tokenizer_accept(PARSE(p), "constant");
    }
    return uir_vector_push(&p->function->arena, &p->function->tensors, t);
}

/* "(a : f32, b : i64)"; `expected` names without dtypes when not SIZE_MAX. */
static uir_status take_typed_names(parser *p, const char **names, uir_dtype *dtypes, uint32_t *out_count) {
    *out_count = 0;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    while (!uir_tokenizer_is(PARSE(p), ")")) {
        if (*out_count == UIR_LOOP_MAX_STATE)
            return uir_tokenizer_error(PARSE(p), "more than %d parameters", UIR_LOOP_MAX_STATE);
        if (*out_count) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(take_name(p, &names[*out_count]));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
        UIR_TRY(take_dtype(p, &dtypes[(*out_count)++]));
    }
    return uir_tokenizer_expect(PARSE(p), ")");
}

static uir_status check_state(parser *p, const uir_loop_monoid *m, const uint32_t *values, const char *what) {
    for (uint32_t i = 0; i < m->state_count; i++) {
        uir_dtype got = p->function->expressions.data[values[i]].dtype;
        if (got != m->state_dtypes[i]) {
            return uir_tokenizer_error(PARSE(p), "%s of '%s': value %u is %s, the state is %s", what, m->name, i,
                                       uir_dtype_name(got), uir_dtype_name(m->state_dtypes[i]));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status take_monoid_body(parser *p, uir_loop_monoid *m) {
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "identity"));
    p->parameters = 0;
    UIR_TRY(take_expressions(p, m->identity, m->state_count));
    UIR_TRY(check_state(p, m, m->identity, "identity"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "update"));
    UIR_TRY(take_typed_names(p, m->element_names, m->element_dtypes, &m->element_count));
    p->parameters = m->state_count + m->element_count;
    UIR_TRY(take_expressions(p, m->update, m->state_count));
    UIR_TRY(check_state(p, m, m->update, "update"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "combine"));
    uir_dtype dtypes[UIR_LOOP_MAX_STATE];
    uint32_t count;
    UIR_TRY(take_typed_names(p, m->other_names, dtypes, &count));
    if (count != m->state_count || memcmp(dtypes, m->state_dtypes, count * sizeof *dtypes)) {
        return uir_tokenizer_error(PARSE(p), "combine of '%s' takes another state: the same dtypes", m->name);
    }
    p->combining = true;
    p->parameters = 2 * m->state_count;
    UIR_TRY(take_expressions(p, m->combine, m->state_count));
    UIR_TRY(check_state(p, m, m->combine, "combine"));
    p->combining = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "finish"));
    p->parameters = m->state_count;
    do {
        if (m->finish_count == UIR_LOOP_MAX_STATE)
            return uir_tokenizer_error(PARSE(p), "more than %d results", UIR_LOOP_MAX_STATE);
        UIR_TRY(take_expression(p, &m->finish[m->finish_count++]));
    } while (uir_tokenizer_accept(PARSE(p), ","));
    return uir_tokenizer_expect(PARSE(p), "}");
}

static uir_status take_monoid(parser *p) {
    uir_loop_monoid m = {0};
    uir_token name = p->tokens.current;
    UIR_TRY(take_name(p, &m.name));
    UIR_TRY(check_new_name(p, &name));
    UIR_TRY(take_typed_names(p, m.state_names, m.state_dtypes, &m.state_count));
    m.commutative = uir_tokenizer_accept(PARSE(p), "commutative");
    if (m.state_count == 0) return uir_tokenizer_error_at(PARSE(p), &name, "a monoid has at least one state value");
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    p->monoid = &m;
    uir_status status = take_monoid_body(p, &m);
    p->monoid = NULL;
    p->combining = false;
    UIR_TRY(status);
    return uir_vector_push(&p->function->arena, &p->function->monoids, m);
}

/* ---- statements ---- */
static uir_status take_statements(parser *p, uint32_t *out_first);

static uir_status take_for(parser *p, uir_loop_kind kind, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_FOR;
    s->loop_kind = kind;
    if (kind == UIR_LOOP_BOUND) {
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
        UIR_TRY(take_name(p, &s->bound_to));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "for"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    uir_token name = p->tokens.current;
    UIR_TRY(take_name(p, &s->name));
    UIR_TRY(check_new_name(p, &name));
    for (uint32_t i = 0; i < p->loops.count; i++) {
        if (!strcmp(p->loops.data[i].name, s->name))
            return uir_tokenizer_error_at(PARSE(p), &name, "a loop around this one is named '%s' too", s->name);
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
    p->loop_variables = true;
    UIR_TRY(take_dim(p, &s->min));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
    UIR_TRY(take_dim(p, &s->extent));
    p->loop_variables = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    /* min <= variable < min + extent, so far as numbers can say it. */
    int64_t least, greatest;
    uir_dim_bounds(p->function->dims, s->min, &least, &greatest);
    uir_symbol_facts facts = {least, UIR_DIM_UNBOUNDED, 1, uir_dim_add(p->function->dims, s->min, s->extent)};
    UIR_TRY(uir_dims_add_symbol(p->function->dims, s->name, strlen(s->name), facts, &s->symbol));
    UIR_TRY(uir_vector_push(&p->function->arena, &p->loops, (scope_name){s->name, s->symbol}));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    UIR_TRY(take_statements(p, &s->first_child));
    p->loops.count--;
    return UIR_STATUS_OK;
}

static uir_status add_iter_symbol(parser *p, uir_loop_iter *iter) {
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter->extent};
    return uir_dims_add_symbol(p->function->dims, iter->name, strlen(iter->name), facts, &iter->symbol);
}

/* "axis." and the first name have been read: name = axis.read(T[indices]) : domain mode. */
static uir_status take_read(parser *p, const uir_token *name, uir_loop_statement *s) {
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
    UIR_TRY(take_access(p, &tensor, &iter.from));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
    iter.reduce = uir_tokenizer_accept(PARSE(p), "reduce");
    const uir_loop_statement *block = p->block;
    p->block = NULL; /* a domain is over sizes alone */
    uir_status status = take_dim(p, &iter.extent);
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

static uir_status take_axis(parser *p, uint32_t *out_axis) {
    int64_t number = 0;
    uir_token token = p->tokens.current;
    UIR_TRY(uir_tokenizer_expect_integer(PARSE(p), &number));
    if (number < 1 || number > UINT32_MAX) return uir_tokenizer_error_at(PARSE(p), &token, "axes are numbered from 1");
    *out_axis = (uint32_t)number;
    return UIR_STATUS_OK;
}

/* The first name has been read; names = axis.bind(values) : domains, or axis.read. */
static uir_status take_bind(parser *p, const uir_token *first, uir_loop_statement *s) {
    if (uir_tokenizer_accept(PARSE(p), "=")) {
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "axis"));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), "."));
        if (uir_tokenizer_accept(PARSE(p), "read")) return take_read(p, first, s);
    } else if (!uir_tokenizer_is(PARSE(p), ",")) {
        return uir_tokenizer_expect(PARSE(p), "=");
    }
    if (s->iter_count) return uir_tokenizer_error_at(PARSE(p), first, "axis.bind is said once, before every axis.read");
    UIR_TRY_ALLOCATE(s->iters[0].name, uir_arena_copy_string(&p->function->arena, first->text, first->length));
    s->iter_count = 1;
    bool several = uir_tokenizer_is(PARSE(p), ",");
    while (uir_tokenizer_accept(PARSE(p), ",")) {
        if (s->iter_count == UIR_LOOP_MAX_ITERS)
            return uir_tokenizer_error(PARSE(p), "more than %d iteration variables", UIR_LOOP_MAX_ITERS);
        UIR_TRY(take_name(p, &s->iters[s->iter_count++].name));
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
        UIR_TRY(take_dim(p, &s->iters[i].value));
    }
    p->loop_variables = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
    for (uint32_t i = 0; i < s->iter_count; i++) {
        uir_loop_iter *iter = &s->iters[i];
        if (i) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        iter->reduce = uir_tokenizer_accept(PARSE(p), "reduce");
        UIR_TRY(take_dim(p, &iter->extent));
        if (uir_tokenizer_accept(PARSE(p), "along")) UIR_TRY(take_axis(p, &iter->axis));
        UIR_TRY(add_iter_symbol(p, iter));
    }
    return UIR_STATUS_OK;
}

static uir_status take_store(parser *p, const uir_token *name, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_STORE;
    s->target_count = s->value_count = 1;
    UIR_TRY(take_access(p, name, &s->targets[0]));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "="));
    return take_expression(p, &s->values[0]);
}

static uir_status take_monoid_statement(parser *p, uir_loop_statement_kind kind, uir_loop_statement *s) {
    s->kind = kind;
    uir_token name = p->tokens.current;
    for (s->monoid = 0;
         s->monoid < p->function->monoids.count && !is_name(&name, p->function->monoids.data[s->monoid].name);)
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
        UIR_TRY(take_access(p, &tensor, &s->targets[s->target_count++]));
    } while (uir_tokenizer_accept(PARSE(p), ","));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    if (!uir_tokenizer_accept(PARSE(p), "with")) return UIR_STATUS_OK;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    do {
        if (s->value_count == UIR_LOOP_MAX_STATE)
            return uir_tokenizer_error(PARSE(p), "more than %d values", UIR_LOOP_MAX_STATE);
        UIR_TRY(take_expression(p, &s->values[s->value_count++]));
    } while (uir_tokenizer_accept(PARSE(p), ","));
    return uir_tokenizer_expect(PARSE(p), ")");
}

/* A statement of a block whose first name has been read. */
static uir_status take_block_statement(parser *p, const uir_token *name, uir_loop_statement *s) {
    for (int k = 0; k < UIR_LOOP_STATEMENT_COUNT; k++) {
        const uir_loop_statement_row *row = uir_loop_statement_get_row((uir_loop_statement_kind)k);
        if (row->place == 'S' && k != UIR_LOOP_STATEMENT_STORE && is_name(name, row->word) &&
            !uir_tokenizer_is(PARSE(p), "[")) {
            return take_monoid_statement(p, (uir_loop_statement_kind)k, s);
        }
    }
    return take_store(p, name, s);
}

static uir_status link_statement(parser *p, uir_loop_statement *s, uint32_t *first, uint32_t *last) {
    uint32_t id = p->function->statements.count;
    UIR_TRY(uir_vector_push(&p->function->arena, &p->function->statements, *s));
    if (*last == UIR_LOOP_NONE)
        *first = id;
    else
        p->function->statements.data[*last].next = id;
    *last = id;
    return UIR_STATUS_OK;
}

static uir_status take_use(parser *p, uir_loop_statement *s) {
    for (uint32_t use = 0; use < UIR_LOOP_USE_COUNT; use++) {
        if (!uir_tokenizer_accept(PARSE(p), uir_loop_use_word(use))) continue;
        s->uses |= 1u << use;
        return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(PARSE(p), "a block is used as a contraction, as a convolution or as mma");
}

static uir_status take_block(parser *p, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_BLOCK;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    UIR_TRY(take_name(p, &s->name));
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
        if (last == UIR_LOOP_NONE && !s->condition_count && is_name(&name, "where")) {
            p->loop_variables = true;
            UIR_TRY(take_conditions(p, s));
            p->loop_variables = false;
            continue;
        }
        if (last == UIR_LOOP_NONE && is_name(&name, "as") && p->tokens.current.kind == UIR_TOKEN_NAME) {
            UIR_TRY(take_use(p, s));
            continue;
        }
        if (last == UIR_LOOP_NONE && is_name(&name, "annotate") && p->tokens.current.kind == UIR_TOKEN_STRING) {
            if (memchr(p->tokens.current.text, 0, p->tokens.current.length))
                return uir_tokenizer_error(PARSE(p), "an annotation holds no zero");
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

static uir_status take_if(parser *p, uir_loop_statement *s) {
    s->kind = UIR_LOOP_STATEMENT_IF;
    p->loop_variables = true;
    UIR_TRY(take_conditions(p, s));
    p->loop_variables = false;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    return take_statements(p, &s->first_child);
}

static uir_status take_statement(parser *p, uir_loop_statement *s) {
    for (int k = 0; k < UIR_LOOP_KIND_COUNT; k++) {
        if (uir_tokenizer_accept(PARSE(p), uir_loop_kind_word((uir_loop_kind)k)))
            return take_for(p, (uir_loop_kind)k, s);
    }
    if (uir_tokenizer_accept(PARSE(p), "if")) return take_if(p, s);
    if (uir_tokenizer_accept(PARSE(p), "ScheduleBlock")) return take_block(p, s);
    return uir_tokenizer_error(PARSE(p), "expected a loop, if or ScheduleBlock");
}

/* Up to and with the closing brace. */
static uir_status take_statements(parser *p, uint32_t *out_first) {
    uint32_t last = UIR_LOOP_NONE;
    *out_first = UIR_LOOP_NONE;
    if (++p->depth > DEEPEST) return uir_tokenizer_error(PARSE(p), "nested deeper than %d", DEEPEST);
    while (!uir_tokenizer_accept(PARSE(p), "}")) {
        uir_loop_statement s = {.first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE, .line = p->tokens.current.line};
        UIR_TRY(take_statement(p, &s));
        UIR_TRY(link_statement(p, &s, out_first, &last));
    }
    p->depth--;
    return UIR_STATUS_OK;
}

static uir_status take_function(parser *p) {
    for (;;) {
        if (uir_tokenizer_accept(PARSE(p), "dim"))
            UIR_TRY(take_sizes(p, false));
        else if (uir_tokenizer_accept(PARSE(p), "tile"))
            UIR_TRY(take_sizes(p, true));
        else if (uir_tokenizer_accept(PARSE(p), "candidate"))
            UIR_TRY(take_candidate(p));
        else if (uir_tokenizer_accept(PARSE(p), "require"))
            UIR_TRY(take_require(p));
        else if (uir_tokenizer_accept(PARSE(p), "tensor"))
            UIR_TRY(take_tensor(p));
        else if (uir_tokenizer_accept(PARSE(p), "monoid"))
            UIR_TRY(take_monoid(p));
        else
            break;
    }
    UIR_TRY(take_statements(p, &p->function->first));
    if (p->tokens.current.kind != UIR_TOKEN_END) return uir_tokenizer_error(PARSE(p), "expected the end of the text");
    return UIR_STATUS_OK;
}

static uir_status parse_into(parser *p, const char *text, size_t length, uint32_t line, const char *file,
                             uir_diagnostics *diagnostics) {
    uir_tokenizer_init_part(PARSE(p), text, length, line, file, &p->function->arena, diagnostics);
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "func"));
    if (p->tokens.current.kind != UIR_TOKEN_AT) return uir_tokenizer_error(PARSE(p), "expected @name");
    UIR_TRY_ALLOCATE(p->function->name,
                     uir_arena_copy_string(&p->function->arena, p->tokens.current.text, p->tokens.current.length));
    if (file) UIR_TRY_ALLOCATE(p->function->file, uir_arena_copy_string(&p->function->arena, file, strlen(file)));
    uir_tokenizer_advance(PARSE(p));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "{"));
    return take_function(p);
}

uir_status uir_loop_parse(const uir_allocator *allocator, const char *text, size_t length, const char *file,
                          uir_diagnostics *diagnostics, uir_loop_function **out_function) {
    return uir_loop_parse_part(allocator, text, length, 1, file, diagnostics, out_function);
}

uir_status uir_loop_parse_part(const uir_allocator *allocator, const char *text, size_t length, uint32_t line,
                               const char *file, uir_diagnostics *diagnostics, uir_loop_function **out_function) {
    parser p = {0};
    *out_function = NULL;
    UIR_TRY(uir_loop_function_create(allocator, "", &p.function));
    uir_status status = parse_into(&p, text, length, line, file, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_loop_function_destroy(p.function);
        return status;
    }
    *out_function = p.function;
    return UIR_STATUS_OK;
}
