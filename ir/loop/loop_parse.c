/* Reads the loop AST's text: dims, expressions, and what is declared before the statements. */
#include "ir/loop/loop_parse.h"

#include <string.h>

#define PARSE UIR_LPARSE

bool uir_lparse_is_name(const uir_token *token, const char *name) {
    return strlen(name) == token->length && !memcmp(name, token->text, token->length);
}

uir_status uir_lparse_name(uir_lparser *p, const char **out_name) {
    if (p->tokens.current.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(PARSE(p), "expected a name");
    UIR_TRY_ALLOCATE(*out_name,
                     uir_arena_copy_string(&p->function->arena, p->tokens.current.text, p->tokens.current.length));
    uir_tokenizer_advance(PARSE(p));
    return UIR_STATUS_OK;
}

static uir_status take_dtype(uir_lparser *p, uir_dtype *out_dtype) {
    const uir_token *token = &p->tokens.current;
    if (token->kind != UIR_TOKEN_NAME || !uir_dtype_from_name(token->text, token->length, out_dtype)) {
        return uir_tokenizer_error(PARSE(p), "expected a dtype such as f32");
    }
    uir_tokenizer_advance(PARSE(p));
    return UIR_STATUS_OK;
}

/* ---- dims ---- */
static uir_dim resolve(void *user, const char *name, size_t length) {
    uir_lparser *p = user;
    uir_dims *dims = p->function->dims;
    uir_token token = {.text = name, .length = length};
    if (p->block && !p->loop_variables) {
        for (uint32_t i = 0; i < p->block->iter_count; i++) {
            if (uir_lparse_is_name(&token, p->block->iters[i].name))
                return uir_dim_symbol(dims, p->block->iters[i].symbol);
        }
    }
    for (uint32_t i = p->loops.count; p->loop_variables && i-- > 0;) {
        if (uir_lparse_is_name(&token, p->loops.data[i].name)) return uir_dim_symbol(dims, p->loops.data[i].symbol);
    }
    for (uint32_t i = 0; i < p->function->sizes.count; i++) {
        if (uir_lparse_is_name(&token, p->function->sizes.data[i].name))
            return uir_dim_symbol(dims, p->function->sizes.data[i].symbol);
    }
    for (uint32_t i = 0; i < p->function->tiles.count; i++) {
        if (uir_lparse_is_name(&token, p->function->tiles.data[i].name))
            return uir_dim_symbol(dims, p->function->tiles.data[i].symbol);
    }
    return UIR_DIM_NONE;
}

uir_status uir_lparse_dim(uir_lparser *p, uir_dim *out_dim) {
    return uir_dim_parse(p->function->dims, PARSE(p), resolve, p, out_dim);
}

static uir_status take_dims(uir_lparser *p, uir_dim *out_dims, uint32_t *out_count) {
    *out_count = 0;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "["));
    while (!uir_tokenizer_is(PARSE(p), "]")) {
        if (*out_count == UIR_LOOP_MAX_RANK)
            return uir_tokenizer_error(PARSE(p), "more than %d dims", UIR_LOOP_MAX_RANK);
        if (*out_count) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(uir_lparse_dim(p, &out_dims[(*out_count)++]));
    }
    return uir_tokenizer_expect(PARSE(p), "]");
}

static uir_status take_condition(uir_lparser *p, uir_condition *out_condition) {
    static const char *const words[] = {"==", "!=", "<=", ">=", "<", ">"};
    static const uir_relation relations[] = {UIR_RELATION_EQ, UIR_RELATION_NE, UIR_RELATION_LE,
                                             UIR_RELATION_GE, UIR_RELATION_LT, UIR_RELATION_GT};
    size_t k = 0;
    UIR_TRY(uir_lparse_dim(p, &out_condition->left));
    while (k < 6 && !uir_tokenizer_accept(PARSE(p), words[k])) k++;
    if (k == 6) return uir_tokenizer_error(PARSE(p), "expected one of == != <= >= < >");
    out_condition->relation = relations[k];
    return uir_lparse_dim(p, &out_condition->right);
}

uir_status uir_lparse_conditions(uir_lparser *p, uir_loop_statement *s) {
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
static uint32_t find_tensor(const uir_lparser *p, const uir_token *token) {
    for (uint32_t i = 0; i < p->function->tensors.count; i++) {
        if (uir_lparse_is_name(token, p->function->tensors.data[i].name)) return i;
    }
    return UIR_LOOP_NONE;
}

static const char *parameter_name(const uir_lparser *p, uint32_t number) {
    const uir_loop_monoid *m = p->monoid;
    if (number < m->state_count) return m->state_names[number];
    return p->combining ? m->other_names[number - m->state_count] : m->element_names[number - m->state_count];
}

static uir_dtype parameter_dtype(const uir_lparser *p, uint32_t number) {
    const uir_loop_monoid *m = p->monoid;
    return number < m->state_count || p->combining ? m->state_dtypes[number % m->state_count]
                                                   : m->element_dtypes[number - m->state_count];
}

/* The tensor's name has been consumed (`name`); its indices follow. */
uir_status uir_lparse_access(uir_lparser *p, const uir_token *name, uir_loop_access *out_access) {
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

static uir_status take_constant(uir_lparser *p, uir_dtype dtype, uir_loop_expression *e) {
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
static uir_status type_call(uir_lparser *p, const uir_token *name, uir_loop_expression *e) {
    const uir_op_row *row = uir_op_get_row(e->op);
    uir_dtype dtypes[3] = {UIR_DTYPE_NONE};
    for (uint32_t i = 0; i < e->argument_count; i++) dtypes[i] = p->function->expressions.data[e->arguments[i]].dtype;
    if ((int)e->argument_count < row->min_inputs || (int)e->argument_count > row->max_inputs) {
        return uir_tokenizer_error_at(PARSE(p), name, "%s expects %d arguments, %u given", row->name, row->min_inputs,
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

static uir_status take_call(uir_lparser *p, const uir_token *name, uir_loop_expression *e) {
    e->kind = UIR_LOOP_CALL;
    e->op = uir_op_find_primitive(name->text, name->length);
    const uir_op_row *row = uir_op_get_row(e->op);
    if (e->op == UIR_OP_NONE || !(row->traits & UIR_TRAIT_ELEMENTWISE) || (row->attributes[0] && !names_dtype(e->op))) {
        return uir_tokenizer_error_at(PARSE(p), name, "'%.*s' is not a tensor, parameter or elementwise primitive",
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
        UIR_TRY(uir_lparse_expression(p, &e->arguments[e->argument_count++]));
    }
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ")"));
    return type_call(p, name, e);
}

static uir_status take_primary(uir_lparser *p, uir_loop_expression *e) {
    uir_token name = p->tokens.current;
    if (name.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(PARSE(p), "expected an expression");
    uir_tokenizer_advance(PARSE(p));
    uir_dtype dtype;
    bool call = uir_tokenizer_is(PARSE(p), "(");
    if (call && (uir_lparse_is_name(&name, "index") || uir_dtype_from_name(name.text, name.length, &dtype))) {
        uir_tokenizer_advance(PARSE(p));
        if (uir_lparse_is_name(&name, "index")) {
            e->kind = UIR_LOOP_INDEX;
            e->dtype = UIR_DTYPE_I64;
            UIR_TRY(uir_lparse_dim(p, &e->index));
        } else {
            UIR_TRY(take_constant(p, dtype, e));
        }
        return uir_tokenizer_expect(PARSE(p), ")");
    }
    if (uir_tokenizer_is(PARSE(p), "[")) {
        if (p->monoid)
            return uir_tokenizer_error_at(PARSE(p), &name, "a monoid can read only its parameters, not tensors");
        e->kind = UIR_LOOP_LOAD;
        UIR_TRY(uir_lparse_access(p, &name, &e->load));
        e->dtype = p->function->tensors.data[e->load.tensor].dtype;
        e->has_fill = uir_tokenizer_accept(PARSE(p), "fill");
        return e->has_fill ? uir_tokenizer_expect_double(PARSE(p), &e->fill) : UIR_STATUS_OK;
    }
    for (uint32_t i = 0; !call && p->monoid && i < p->parameters; i++) {
        if (!uir_lparse_is_name(&name, parameter_name(p, i))) continue;
        e->kind = UIR_LOOP_PARAMETER;
        e->integer = i;
        e->dtype = parameter_dtype(p, i);
        return UIR_STATUS_OK;
    }
    return take_call(p, &name, e);
}

uir_status uir_lparse_expression(uir_lparser *p, uint32_t *out_id) {
    if (++p->depth > UIR_LPARSE_MAX_DEPTH)
        return uir_tokenizer_error(PARSE(p), "nested deeper than %d", UIR_LPARSE_MAX_DEPTH);
    uir_loop_expression e = {0};
    UIR_TRY(take_primary(p, &e));
    p->depth--;
    *out_id = p->function->expressions.count;
    return uir_vector_push(&p->function->arena, &p->function->expressions, e);
}

static uir_status take_expressions(uir_lparser *p, uint32_t *out_ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(uir_lparse_expression(p, &out_ids[i]));
    }
    return UIR_STATUS_OK;
}

/* ---- declarations ---- */
uir_status uir_lparse_check_new_name(uir_lparser *p, const uir_token *name) {
    uir_dtype dtype;
    bool taken = find_tensor(p, name) != UIR_LOOP_NONE || uir_dtype_from_name(name->text, name->length, &dtype);
    for (uint32_t i = 0; i < p->function->sizes.count; i++)
        taken |= uir_lparse_is_name(name, p->function->sizes.data[i].name);
    for (uint32_t i = 0; i < p->function->tiles.count; i++)
        taken |= uir_lparse_is_name(name, p->function->tiles.data[i].name);
    for (uint32_t i = 0; i < p->function->monoids.count; i++)
        taken |= uir_lparse_is_name(name, p->function->monoids.data[i].name);
    return taken ? uir_tokenizer_error_at(PARSE(p), name, "the name '%.*s' is taken", (int)name->length, name->text)
                 : UIR_STATUS_OK;
}

/* dim, or tile: of which the least is 1. Facts are those of every name before them in the row that has none of its
 * own. */
uir_status uir_lparse_sizes(uir_lparser *p, bool tile) {
    uint32_t waiting = tile ? p->function->tiles.count : p->function->sizes.count;
    do {
        uir_loop_size size;
        uir_token name = p->tokens.current;
        uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
        if (tile) facts.min = 1;
        UIR_TRY(uir_lparse_name(p, &size.name));
        UIR_TRY(uir_lparse_check_new_name(p, &name));
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

static uir_status take_guard(uir_lparser *p, uir_iguard *guard) {
    uir_vector(uir_iatom) atoms = {0};
    do {
        uir_iatom atom = {.kind = UIR_IATOM_RELATION};
        UIR_TRY(take_condition(p, &atom.condition));
        UIR_TRY(uir_vector_push(&p->function->arena, &atoms, atom));
    } while (uir_tokenizer_accept(PARSE(p), "and"));
    *guard = (uir_iguard){atoms.data, atoms.count};
    return UIR_STATUS_OK;
}

uir_status uir_lparse_candidate(uir_lparser *p) {
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
        UIR_TRY(uir_lparse_dim(p, &c.tiles[tile]));
        given++;
    } while (uir_tokenizer_accept(PARSE(p), ","));
    if (given != f->tiles.count)
        return uir_tokenizer_error(PARSE(p), "a candidate sets every tile; declare tiles before it");
    if (uir_tokenizer_accept(PARSE(p), "when")) UIR_TRY(take_guard(p, &c.guard));
    if (uir_tokenizer_accept(PARSE(p), "cost")) {
        UIR_TRY(uir_lparse_dim(p, &c.cost));
        if (uir_tokenizer_accept(PARSE(p), "units")) UIR_TRY(uir_lparse_dim(p, &c.units));
    }
    return uir_vector_push(&f->arena, &f->candidates, c);
}

uir_status uir_lparse_require(uir_lparser *p) {
    uir_condition condition;
    UIR_TRY(take_condition(p, &condition));
    return uir_vector_push(&p->function->arena, &p->function->requires_, condition);
}

static uir_status take_layout_dim(void *user, uir_dim *out_dim) {
    return uir_lparse_dim(user, out_dim);
}

static uir_status take_tensor(uir_lparser *p) {
    uir_loop_tensor t = {0};
    uir_layout layout;
    uir_token name = p->tokens.current;
    UIR_TRY(uir_lparse_name(p, &t.name));
    UIR_TRY(uir_lparse_check_new_name(p, &name));
    UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
    UIR_TRY(take_dtype(p, &t.dtype));
    UIR_TRY(take_dims(p, t.extents, &t.rank));
    UIR_TRY(uir_layout_parse(PARSE(p), take_layout_dim, p, t.extents, t.rank, &layout));
    if (layout.given) {
        if (!uir_layout_finish(&layout, t.extents, t.rank, p->function->dims).id)
            return uir_tokenizer_error_at(PARSE(p), &name, "the layout of '%s' overflows 64 bits", t.name);
        UIR_TRY_ALLOCATE(t.layout, uir_arena_copy(&p->function->arena, &layout, sizeof layout));
    }
    if (uir_tokenizer_accept(PARSE(p), "temp")) {
        t.role = UIR_LOOP_ROLE_TEMP;
        if (!uir_tokenizer_accept(PARSE(p), UIR_LOOP_MEMORY)) UIR_TRY(uir_lparse_name(p, &t.space));
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
static uir_status take_typed_names(uir_lparser *p, const char **names, uir_dtype *dtypes, uint32_t *out_count) {
    *out_count = 0;
    UIR_TRY(uir_tokenizer_expect(PARSE(p), "("));
    while (!uir_tokenizer_is(PARSE(p), ")")) {
        if (*out_count == UIR_LOOP_MAX_STATE)
            return uir_tokenizer_error(PARSE(p), "more than %d parameters", UIR_LOOP_MAX_STATE);
        if (*out_count) UIR_TRY(uir_tokenizer_expect(PARSE(p), ","));
        UIR_TRY(uir_lparse_name(p, &names[*out_count]));
        UIR_TRY(uir_tokenizer_expect(PARSE(p), ":"));
        UIR_TRY(take_dtype(p, &dtypes[(*out_count)++]));
    }
    return uir_tokenizer_expect(PARSE(p), ")");
}

static uir_status check_state(uir_lparser *p, const uir_loop_monoid *m, const uint32_t *values, const char *what) {
    for (uint32_t i = 0; i < m->state_count; i++) {
        uir_dtype got = p->function->expressions.data[values[i]].dtype;
        if (got != m->state_dtypes[i]) {
            return uir_tokenizer_error(PARSE(p), "%s of '%s': value %u is %s, the state is %s", what, m->name, i,
                                       uir_dtype_name(got), uir_dtype_name(m->state_dtypes[i]));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status take_monoid_body(uir_lparser *p, uir_loop_monoid *m) {
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
        return uir_tokenizer_error(PARSE(p), "combine of '%s' expects another state with the same dtypes", m->name);
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
        UIR_TRY(uir_lparse_expression(p, &m->finish[m->finish_count++]));
    } while (uir_tokenizer_accept(PARSE(p), ","));
    return uir_tokenizer_expect(PARSE(p), "}");
}

static uir_status take_monoid(uir_lparser *p) {
    uir_loop_monoid m = {0};
    uir_token name = p->tokens.current;
    UIR_TRY(uir_lparse_name(p, &m.name));
    UIR_TRY(uir_lparse_check_new_name(p, &name));
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

static uir_status take_function(uir_lparser *p) {
    for (;;) {
        if (uir_tokenizer_accept(PARSE(p), "dim"))
            UIR_TRY(uir_lparse_sizes(p, false));
        else if (uir_tokenizer_accept(PARSE(p), "tile"))
            UIR_TRY(uir_lparse_sizes(p, true));
        else if (uir_tokenizer_accept(PARSE(p), "candidate"))
            UIR_TRY(uir_lparse_candidate(p));
        else if (uir_tokenizer_accept(PARSE(p), "require"))
            UIR_TRY(uir_lparse_require(p));
        else if (uir_tokenizer_accept(PARSE(p), "tensor"))
            UIR_TRY(take_tensor(p));
        else if (uir_tokenizer_accept(PARSE(p), "monoid"))
            UIR_TRY(take_monoid(p));
        else
            break;
    }
    UIR_TRY(uir_lparse_statements(p, &p->function->first));
    if (p->tokens.current.kind != UIR_TOKEN_END) return uir_tokenizer_error(PARSE(p), "expected the end of the text");
    return UIR_STATUS_OK;
}

static uir_status parse_into(uir_lparser *p, const char *text, size_t length, uint32_t line, const char *file,
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
    uir_lparser p = {0};
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
