/* A scheduled loop AST as the text of an iGraph, which is then read and verified. */
#include "lower/kernel.h"

#include "lower/contraction.h"

#include <stdio.h>
#include <string.h>

enum { MOST_UNROLLED = 64 };

/* ---- small things ---- */
void uir_kernel_refuse(uir_kernel *k, const char *format, ...) {
    char message[300];
    va_list arguments;
    if (k->status != UIR_STATUS_OK) return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_location location = {.file = k->f->file};
    k->status = uir_error(k->diagnostics, UIR_STATUS_UNSUPPORTED, &location, "@%s: %s%s%s", k->f->name,
                          k->block ? k->block : "", k->block ? ": " : "", message);
}

const char *uir_kernel_copy(uir_kernel *k, const char *text) {
    const char *copy = text ? uir_arena_copy_string(k->arena, text, strlen(text)) : NULL;
    if (!copy && k->status == UIR_STATUS_OK) k->status = UIR_STATUS_OUT_OF_MEMORY;
    return copy ? copy : "";
}

const char *uir_kernel_print_dim(uir_kernel *k, uir_dim dim) {
    uir_text text;
    if (!dim.id) {
        if (k->status == UIR_STATUS_OK) k->status = UIR_STATUS_OUT_OF_MEMORY;
        return "";
    }
    uir_text_init(&text, &k->f->allocator);
    uir_dim_print(k->dims, dim, &text);
    const char *copy = uir_kernel_copy(k, text.data);
    uir_text_deinit(&text);
    return copy;
}

void uir_kernel_line(uir_kernel *k, const char *format, ...) {
    char line[4000];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line) {
        uir_kernel_refuse(k, "an instruction is too long to write");
        return;
    }
    for (uint32_t i = 0; i < k->depth; i++) uir_text_append_string(&k->body, "  ");
    uir_text_append_string(&k->body, line);
    uir_text_append_string(&k->body, "\n");
}

/* ---- symbols ---- */
static bool grow_symbols(uir_kernel *k, uint32_t count) {
    if (count <= k->symbol_capacity) return true;
    uint32_t capacity = count * 2 + 64;
    uir_dim *replaced = uir_arena_allocate_array(k->arena, capacity, sizeof *replaced);
    uint8_t *in_scope = uir_arena_allocate_array(k->arena, capacity, 1);
    if (!replaced || !in_scope) {
        k->status = UIR_STATUS_OUT_OF_MEMORY;
        return false;
    }
    if (k->symbol_capacity) {
        memcpy(replaced, k->replaced, k->symbol_capacity * sizeof *replaced);
        memcpy(in_scope, k->in_scope, k->symbol_capacity);
    }
    k->replaced = replaced;
    k->in_scope = in_scope;
    k->symbol_capacity = capacity;
    return true;
}

uir_symbol uir_kernel_new_symbol(uir_kernel *k, const char *prefix, uir_dim extent) {
    char name[24];
    uir_symbol symbol = {0};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    if (k->status != UIR_STATUS_OK) return symbol;
    snprintf(name, sizeof name, "%s%u", prefix, k->names++);
    k->status = uir_dims_add_symbol(k->dims, name, strlen(name), facts, &symbol);
    if (k->status == UIR_STATUS_OK && grow_symbols(k, uir_dims_symbol_count(k->dims))) k->in_scope[symbol.id] = 1;
    return symbol;
}

void uir_kernel_replace(uir_kernel *k, uir_symbol symbol, uir_dim by) {
    if (k->status == UIR_STATUS_OK) k->replaced[symbol.id] = by;
}

uir_dim uir_kernel_substitute(uir_kernel *k, uir_dim dim) {
    if (k->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    uir_dim result = uir_dim_substitute(k->dims, dim, k->replaced, uir_dims_symbol_count(k->dims));
    if (!result.id) k->status = UIR_STATUS_OUT_OF_MEMORY;
    return result;
}

bool uir_kernel_split_lanes(uir_kernel *k, uir_dim dim, uir_dim *out_base, int64_t *out_coefficients) {
    uint32_t count = uir_dims_symbol_count(k->dims);
    if (k->status != UIR_STATUS_OK) return true;
    uir_dim *replaced = uir_arena_allocate_array(k->arena, count + 1, sizeof *replaced);
    if (!replaced) {
        k->status = UIR_STATUS_OUT_OF_MEMORY;
        return true;
    }
    uir_dim zero = uir_dim_const(k->dims, 0), one = uir_dim_const(k->dims, 1);
    for (uint32_t l = 0; l < k->lane_count; l++) replaced[k->lanes[l].symbol.id] = zero;
    *out_base = uir_dim_substitute(k->dims, dim, replaced, count);
    uir_dim sum = *out_base;
    for (uint32_t l = 0; l < k->lane_count; l++) {
        replaced[k->lanes[l].symbol.id] = one;
        uir_dim step = uir_dim_sub(k->dims, uir_dim_substitute(k->dims, dim, replaced, count), *out_base);
        replaced[k->lanes[l].symbol.id] = zero;
        if (!step.id) return false;
        if (!uir_dim_is_const(k->dims, step, &out_coefficients[l])) return false;
        sum = uir_dim_add(k->dims, sum, uir_dim_mul(k->dims, step, uir_dim_symbol(k->dims, k->lanes[l].symbol)));
    }
    return uir_dim_equal(sum, dim);
}

typedef struct scope_check {
    const uir_kernel *k;
    bool all;
} scope_check;

static void check_scope(void *user, uir_symbol symbol) {
    scope_check *c = user;
    if (symbol.id >= c->k->symbol_capacity || !c->k->in_scope[symbol.id]) c->all = false;
}

static bool is_in_scope(const uir_kernel *k, uir_dim dim) {
    scope_check c = {k, true};
    uir_dim_visit_symbols(k->dims, dim, check_scope, &c);
    return c.all;
}

/* ---- conditions ---- */
static const uir_loop_statement *statement(const uir_kernel *k, uint32_t id) {
    return &k->f->statements.data[id];
}

static uir_condition substitute_condition(uir_kernel *k, uir_condition c) {
    return (uir_condition){c.relation, uir_kernel_substitute(k, c.left), uir_kernel_substitute(k, c.right)};
}

static bool same_condition(uir_condition a, uir_condition b) {
    return a.relation == b.relation && uir_dim_equal(a.left, b.left) && uir_dim_equal(a.right, b.right);
}

static bool is_given(const uir_kernel *k, uir_condition c) {
    for (uint32_t i = 0; i < k->given.count; i++)
        if (same_condition(k->given.data[i], c)) return true;
    return uir_dim_compare(k->dims, c.left, c.relation, c.right) == UIR_TRUE;
}

static void give(uir_kernel *k, uir_condition c) {
    if (k->status == UIR_STATUS_OK) k->status = uir_vector_push(k->arena, &k->given, c);
}

/* The first block under a statement. */
static uint32_t first_block(const uir_kernel *k, uint32_t id) {
    while (id != UIR_LOOP_NONE && statement(k, id)->kind != UIR_LOOP_STATEMENT_BLOCK)
        id = statement(k, id)->first_child;
    return id;
}

static bool every_block_has(uir_kernel *k, uint32_t list, uir_condition c) {
    for (uint32_t id = list; id != UIR_LOOP_NONE; id = statement(k, id)->next) {
        const uir_loop_statement *s = statement(k, id);
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK) {
            if (!every_block_has(k, s->first_child, c)) return false;
            continue;
        }
        bool found = false;
        for (uint32_t i = 0; i < s->condition_count && !found; i++)
            found = same_condition(substitute_condition(k, s->conditions[i]), c);
        if (!found) return false;
    }
    return true;
}

static bool mentions_lane(const uir_kernel *k, uir_dim dim);

/* What every block of a list wants and can be said here, as " when a < b and ..."; given from here on. */
static const char *hoist(uir_kernel *k, uint32_t list, const char *word) {
    uint32_t block = first_block(k, list);
    uir_text text;
    bool any = false;
    if (block == UIR_LOOP_NONE || k->status != UIR_STATUS_OK) return "";
    uir_text_init(&text, &k->f->allocator);
    for (uint32_t i = 0; i < statement(k, block)->condition_count; i++) {
        uir_condition c = substitute_condition(k, statement(k, block)->conditions[i]);
        if (k->status != UIR_STATUS_OK || is_given(k, c) || !is_in_scope(k, c.left) || !is_in_scope(k, c.right))
            continue;
        if (mentions_lane(k, c.left) || mentions_lane(k, c.right) || !every_block_has(k, list, c)) continue;
        uir_text_append_format(&text, "%s%s %s %s", any ? " and " : word, uir_kernel_print_dim(k, c.left),
                               uir_relation_text(c.relation), uir_kernel_print_dim(k, c.right));
        any = true;
        give(k, c);
    }
    const char *copy = any ? uir_kernel_copy(k, text.data) : "";
    uir_text_deinit(&text);
    return copy;
}

typedef struct lane_check {
    const uir_kernel *k;
    bool found;
} lane_check;

static void check_lane(void *user, uir_symbol symbol) {
    lane_check *c = user;
    for (uint32_t l = 0; l < c->k->lane_count; l++)
        if (c->k->lanes[l].symbol.id == symbol.id) c->found = true;
}

static bool mentions_lane(const uir_kernel *k, uir_dim dim) {
    lane_check c = {k, false};
    uir_dim_visit_symbols(k->dims, dim, check_lane, &c);
    return c.found;
}

/* base + lane < bound: the lane's count. */
static void clip(uir_kernel *k, uir_condition c) {
    uir_dim difference = uir_dim_sub(k->dims, c.right, c.left), base;
    int64_t coefficients[UIR_KERNEL_MAX_LANES];
    uint32_t lane = UIR_LOWER_NONE, lanes = 0;
    bool good = c.relation == UIR_RELATION_LT || c.relation == UIR_RELATION_LE;
    good = good && difference.id && uir_kernel_split_lanes(k, difference, &base, coefficients);
    for (uint32_t l = 0; good && l < k->lane_count; l++) {
        if (!coefficients[l]) continue;
        lanes++;
        lane = l;
    }
    if (!good || lanes != 1 || coefficients[lane] > 0) {
        uir_kernel_refuse(k, "a condition on what is vectorised is no bound");
        return;
    }
    /* right - left = base - s*lane > 0 (or >= 0): lane < ceildiv(base, s), or ceildiv(base + 1, s). */
    if (c.relation == UIR_RELATION_LE) base = uir_dim_add(k->dims, base, uir_dim_const(k->dims, 1));
    base = uir_dim_ceildiv(k->dims, base, uir_dim_const(k->dims, -coefficients[lane]));
    k->lanes[lane].count = uir_dim_min(k->dims, k->lanes[lane].count, base);
    if (!k->lanes[lane].count.id && k->status == UIR_STATUS_OK) k->status = UIR_STATUS_OUT_OF_MEMORY;
}

/* ---- blocks ---- */
/* The primitive that a monoid of one state is: update is op(state, element); NONE when it is more. */
static uir_op simple_monoid(const uir_kernel *k, const uir_loop_monoid *m) {
    static const uir_op ops[] = {UIR_OP_ADD, UIR_OP_MUL, UIR_OP_MAX, UIR_OP_MIN, UIR_OP_OR, UIR_OP_AND};
    if (m->state_count != 1 || m->element_count != 1) return UIR_OP_NONE;
    const uir_loop_expression *u = &k->f->expressions.data[m->update[0]];
    if (u->kind != UIR_LOOP_CALL || u->argument_count != 2) return UIR_OP_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        const uir_loop_expression *a = &k->f->expressions.data[u->arguments[i]];
        if (a->kind != UIR_LOOP_PARAMETER || a->integer != i) return UIR_OP_NONE;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i] == u->op) return u->op;
    return UIR_OP_NONE;
}

static const struct {
    uir_op op;
    const char *reduce;
} reduce_rows[] = {{UIR_OP_ADD, "add"}, {UIR_OP_MUL, "mul"}, {UIR_OP_MAX, "max"},
                   {UIR_OP_MIN, "min"}, {UIR_OP_OR, "max"},  {UIR_OP_AND, "min"}};

/* One state taken over a lane by the machine's reduction. */
static void reduce_lanes(uir_kernel *k, const uir_loop_statement *s, uir_op op, uint32_t value, uint32_t lanes,
                         bool fresh) {
    uint32_t all = (1u << k->lane_count) - 1, reduced = all & ~lanes, lane = 0;
    const char *name = "add", *target = uir_kernel_slice(k, &s->targets[0], false, 0, &(uint32_t){0});
    char mnemonic[64];
    uir_dtype dtype = k->f->tensors.data[s->targets[0].tensor].dtype;
    while (!(reduced >> lane & 1)) lane++;
    if (reduced != 1u << lane || lane + 2 < k->lane_count) {
        uir_kernel_refuse(k, "a reduction over more than one dim of a slice");
        return;
    }
    for (size_t i = 0; i < sizeof reduce_rows / sizeof *reduce_rows; i++)
        if (reduce_rows[i].op == op) name = reduce_rows[i].reduce;
    const char *axis = lane + 1 == k->lane_count ? "row" : "col";
    if (dtype == UIR_DTYPE_BOOL) { /* as bytes */
        value = uir_kernel_materialise(k, uir_kernel_cast(k, value, UIR_DTYPE_U8), all);
        snprintf(mnemonic, sizeof mnemonic, "reduce.%s.%s.unit.u8", name, axis);
        value = uir_kernel_instruct(k, mnemonic, UIR_DTYPE_U8, lanes, &value, 1, "");
        value = uir_kernel_cast(k, value, UIR_DTYPE_BOOL);
        if (!fresh) {
            uint32_t old = uir_kernel_slice_value(k, dtype, lanes, target);
            value = uir_kernel_call(k, op, dtype, (uint32_t[]){old, value}, 2);
        }
        uir_kernel_store(k, target, lanes, dtype, value);
        return;
    }
    value = uir_kernel_materialise(k, value, all);
    snprintf(mnemonic, sizeof mnemonic, "reduce.%s.%s.unit.%s", name, axis, uir_dtype_name(dtype));
    if (k->pointers[s->targets[0].tensor].rank > (k->lane_count < 2 ? 2 : k->lane_count)) {
        /* A state of more dims than the row has: by way of one that has its dims. */
        value = uir_kernel_instruct(k, mnemonic, dtype, lanes, &value, 1, "");
        if (!fresh) {
            uint32_t old = uir_kernel_slice_value(k, dtype, lanes, target);
            value = uir_kernel_call(k, op, dtype, (uint32_t[]){old, value}, 2);
        }
        uir_kernel_store(k, target, lanes, dtype, value);
        return;
    }
    uir_kernel_instruct_to(k, mnemonic, target, &value, 1, fresh ? "" : "acc");
}

/* An output that the kernel does not read itself. */
static bool leaves(const uir_loop_function *f, uint32_t tensor) {
    return f->tensors.data[tensor].role == UIR_LOOP_ROLE_OUT && !uir_loop_list_reads(f, f->first, tensor);
}

static void store_all(uir_kernel *k, const uir_loop_statement *s, const uint32_t *values) {
    for (uint32_t t = 0; t < s->target_count; t++) {
        uint32_t lanes;
        const char *target = uir_kernel_slice(k, &s->targets[t], false, 0, &lanes);
        uir_dtype dtype = k->f->tensors.data[s->targets[t].tensor].dtype;
        if (k->status != UIR_STATUS_OK) return;
        if (k->values.data[values[t]].lanes & ~lanes) {
            uir_kernel_refuse(k, "several elements are stored to one place");
            return;
        }
        uir_kernel_store(k, target, lanes, dtype, values[t]);
        if (k->status == UIR_STATUS_OK && leaves(k->f, s->targets[t].tensor))
            k->instructions.data[k->instructions.count - 1].stream = true;
    }
}

/* update and combine: the state as it is, and what is taken in. */
static void step_monoid(uir_kernel *k, const uir_loop_statement *s, const uint32_t *expressions, const uint32_t *taken,
                        uint32_t taken_count) {
    const uir_loop_monoid *m = &k->f->monoids.data[s->monoid];
    uint32_t parameters[2 * UIR_LOOP_MAX_STATE], results[UIR_LOOP_MAX_STATE];
    for (uint32_t i = 0; i < m->state_count; i++) {
        uint32_t lanes;
        const char *text = uir_kernel_slice(k, &s->targets[i], false, 0, &lanes);
        parameters[i] = uir_kernel_slice_value(k, m->state_dtypes[i], lanes, text);
    }
    for (uint32_t i = 0; i < taken_count; i++) parameters[m->state_count + i] = taken[i];
    k->parameters = parameters;
    for (uint32_t i = 0; i < m->state_count; i++) results[i] = uir_kernel_expression(k, expressions[i]);
    k->parameters = NULL;
    store_all(k, s, results);
}

static void emit_statement(uir_kernel *k, const uir_loop_statement *s, bool fresh) {
    const uir_loop_monoid *m = s->kind == UIR_LOOP_STATEMENT_STORE ? NULL : &k->f->monoids.data[s->monoid];
    uint32_t values[UIR_LOOP_MAX_STATE] = {0}, lanes;
    uir_kernel_begin_block(k);
    for (uint32_t i = 0; i < s->value_count; i++) values[i] = uir_kernel_expression(k, s->values[i]);
    if (k->status != UIR_STATUS_OK) return;
    switch (s->kind) {
    case UIR_LOOP_STATEMENT_STORE:
        store_all(k, s, values);
        break;
    case UIR_LOOP_STATEMENT_INIT:
        for (uint32_t i = 0; i < m->state_count; i++) values[i] = uir_kernel_expression(k, m->identity[i]);
        store_all(k, s, values);
        break;
    case UIR_LOOP_STATEMENT_FINISH:
        k->parameters = values;
        uint32_t results[UIR_LOOP_MAX_STATE];
        for (uint32_t i = 0; i < m->finish_count; i++) results[i] = uir_kernel_expression(k, m->finish[i]);
        k->parameters = NULL;
        store_all(k, s, results);
        break;
    default:
        uir_kernel_slice(k, &s->targets[0], false, 0, &lanes);
        uir_op op = simple_monoid(k, m);
        if (lanes != (1u << k->lane_count) - 1 && op != UIR_OP_NONE)
            reduce_lanes(k, s, op, values[0], lanes, fresh);
        else if (lanes != (1u << k->lane_count) - 1)
            uir_kernel_refuse(k, "the machine has no reduction that is %s", m->name);
        else
            step_monoid(k, s, s->kind == UIR_LOOP_STATEMENT_UPDATE ? m->update : m->combine, values, s->value_count);
    }
    uir_kernel_end_block(k);
}

/* Iteration variables read from data: indices of the iGraph. */
static void read_iters(uir_kernel *k, const uir_loop_statement *s) {
    for (uint32_t i = 0; i < s->iter_count && k->status == UIR_STATUS_OK; i++) {
        const uir_loop_iter *iter = &s->iters[i];
        uint32_t lanes;
        if (!iter->data) continue;
        const char *slice = uir_kernel_slice(k, &iter->from, false, 0, &lanes);
        if (lanes) {
            uir_kernel_refuse(k, "what is vectorised reads its position from data");
            return;
        }
        uir_dim limit = uir_kernel_substitute(k, iter->extent);
        uir_symbol symbol = uir_kernel_new_symbol(k, "g", limit);
        uir_kernel_line(k, "index %s = %s in 0..%s %s", uir_dims_symbol_name(k->dims, symbol), slice,
                        uir_kernel_print_dim(k, uir_dim_sub(k->dims, limit, uir_dim_const(k->dims, 1))),
                        uir_loop_mode_word(iter->mode));
        uir_kernel_replace(k, iter->symbol, uir_dim_symbol(k->dims, symbol));
    }
}

static void emit_block(uir_kernel *k, uint32_t id) {
    const uir_loop_statement *s = statement(k, id);
    uint32_t mark = k->given.count;
    uir_kernel_lane kept[UIR_KERNEL_MAX_LANES];
    memcpy(kept, k->lanes, sizeof kept);
    k->block = s->name;
    for (uint32_t i = 0; i < s->condition_count && k->status == UIR_STATUS_OK; i++) {
        uir_condition c = substitute_condition(k, s->conditions[i]);
        if (is_given(k, c)) continue;
        if (mentions_lane(k, c.left) || mentions_lane(k, c.right)) clip(k, c);
    }
    /* What is left says where the block is at all. */
    uir_text text;
    uir_text_init(&text, &k->f->allocator);
    bool guarded = false;
    for (uint32_t i = 0; i < s->condition_count && k->status == UIR_STATUS_OK; i++) {
        uir_condition c = substitute_condition(k, s->conditions[i]);
        if (is_given(k, c) || mentions_lane(k, c.left) || mentions_lane(k, c.right)) continue;
        uir_text_append_format(&text, "%s%s %s %s", guarded ? " and " : "if ", uir_kernel_print_dim(k, c.left),
                               uir_relation_text(c.relation), uir_kernel_print_dim(k, c.right));
        guarded = true;
    }
    if (guarded) {
        uir_kernel_line(k, "%s {", text.data ? text.data : "");
        k->depth++;
    }
    uir_text_deinit(&text);
    for (uint32_t i = 0; i < s->iter_count; i++)
        if (!s->iters[i].data) uir_kernel_replace(k, s->iters[i].symbol, uir_kernel_substitute(k, s->iters[i].value));
    read_iters(k, s);
    if (uir_contraction_is_mma(k, id)) {
        uir_contraction_emit(k, id);
    } else {
        for (uint32_t c = s->first_child; c != UIR_LOOP_NONE && k->status == UIR_STATUS_OK; c = statement(k, c)->next)
            emit_statement(k, statement(k, c), k->fresh[id]);
    }
    if (guarded) {
        k->depth--;
        uir_kernel_line(k, "}");
    }
    memcpy(k->lanes, kept, sizeof kept);
    k->given.count = mark;
    k->block = NULL;
}

/* ---- the tree ---- */
bool uir_kernel_is_one(const uir_kernel *k, uir_dim extent) {
    int64_t value;
    return uir_dim_is_const(k->dims, extent, &value) && value == 1;
}

/* The only block under vectorised loops, each the only statement of the one around it; NONE otherwise. */
static uint32_t vectorised_block(const uir_kernel *k, uint32_t id) {
    while (id != UIR_LOOP_NONE && statement(k, id)->kind == UIR_LOOP_STATEMENT_FOR) {
        if (statement(k, id)->loop_kind != UIR_LOOP_VECTORISED) return UIR_LOOP_NONE;
        id = statement(k, id)->first_child;
        if (id != UIR_LOOP_NONE && statement(k, id)->next != UIR_LOOP_NONE) return UIR_LOOP_NONE;
    }
    return id != UIR_LOOP_NONE && statement(k, id)->kind == UIR_LOOP_STATEMENT_BLOCK ? id : UIR_LOOP_NONE;
}

/* Does a block under the statement write the tensor? */
static bool writes(const uir_kernel *k, uint32_t id, uint32_t tensor) {
    const uir_loop_statement *s = statement(k, id);
    for (uint32_t t = 0; t < s->target_count; t++)
        if (s->targets[t].tensor == tensor) return true;
    for (uint32_t c = s->first_child; c != UIR_LOOP_NONE; c = statement(k, c)->next)
        if (writes(k, c, tensor)) return true;
    return false;
}

/* An init before the reduction, which then starts from nothing by itself. */
static bool starts_next(uir_kernel *k, uint32_t id) {
    uint32_t init = vectorised_block(k, id), next = statement(k, id)->next;
    if (init == UIR_LOOP_NONE || statement(k, statement(k, init)->first_child)->kind != UIR_LOOP_STATEMENT_INIT)
        return false;
    uint32_t state = statement(k, statement(k, init)->first_child)->targets[0].tensor;
    while (next != UIR_LOOP_NONE && !writes(k, next, state)) next = statement(k, next)->next;
    if (next == UIR_LOOP_NONE || statement(k, next)->kind != UIR_LOOP_STATEMENT_FOR) return false;
    uint32_t update = vectorised_block(k, next);
    if (update == UIR_LOOP_NONE || uir_contraction_is_mma(k, update)) return false;
    const uir_loop_statement *a = statement(k, statement(k, init)->first_child),
                             *b = statement(k, statement(k, update)->first_child);
    if (a->kind != UIR_LOOP_STATEMENT_INIT ||
        (b->kind != UIR_LOOP_STATEMENT_UPDATE && b->kind != UIR_LOOP_STATEMENT_COMBINE) || a->next != UIR_LOOP_NONE ||
        b->next != UIR_LOOP_NONE || a->monoid != b->monoid || a->targets[0].tensor != b->targets[0].tensor)
        return false;
    if (simple_monoid(k, &k->f->monoids.data[a->monoid]) == UIR_OP_NONE) return false;
    /* Over a vectorised loop that is reduced: the update has a loop more than the init. */
    uint32_t init_loops = 0, update_loops = 0;
    for (uint32_t i = id; i != init; i = statement(k, i)->first_child)
        init_loops += !uir_kernel_is_one(k, statement(k, i)->extent);
    for (uint32_t i = next; i != update; i = statement(k, i)->first_child)
        update_loops += !uir_kernel_is_one(k, statement(k, i)->extent);
    if (update_loops != init_loops + 1) return false;
    k->fresh[update] = true;
    return true;
}

static void emit_list(uir_kernel *k, uint32_t id);

static void emit_vectorised(uir_kernel *k, const uir_loop_statement *s) {
    uir_dim extent = uir_kernel_substitute(k, s->extent), least = uir_kernel_substitute(k, s->min);
    if (uir_kernel_is_one(k, extent)) {
        uir_kernel_replace(k, s->symbol, least);
        emit_list(k, s->first_child);
        return;
    }
    if (k->lane_count == UIR_KERNEL_MAX_LANES) {
        uir_kernel_refuse(k, "more than %d vectorised loops", UIR_KERNEL_MAX_LANES);
        return;
    }
    uir_symbol symbol = uir_kernel_new_symbol(k, "w", extent);
    uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_symbol(k->dims, symbol)));
    k->lanes[k->lane_count++] = (uir_kernel_lane){symbol, extent, extent};
    emit_list(k, s->first_child);
    k->lane_count--;
}

static void emit_loop(uir_kernel *k, const uir_loop_statement *s) {
    uir_dim extent = uir_kernel_substitute(k, s->extent), least = uir_kernel_substitute(k, s->min);
    uint32_t mark = k->given.count;
    if (k->lane_count) {
        uir_kernel_refuse(k, "a loop stands in a vectorised one");
        return;
    }
    if (uir_kernel_is_one(k, extent)) {
        uir_kernel_replace(k, s->symbol, least);
        emit_list(k, s->first_child);
        return;
    }
    int64_t times;
    if (s->loop_kind == UIR_LOOP_UNROLLED && uir_dim_is_const(k->dims, extent, &times) && times <= MOST_UNROLLED) {
        for (int64_t i = 0; i < times && k->status == UIR_STATUS_OK; i++) {
            uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_const(k->dims, i)));
            emit_list(k, s->first_child);
        }
        return;
    }
    uir_symbol symbol = uir_kernel_new_symbol(k, "l", extent);
    uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_symbol(k->dims, symbol)));
    const char *guard = hoist(k, s->first_child, " when ");
    uir_kernel_line(k, "loop %s : %s%s {", uir_dims_symbol_name(k->dims, symbol), uir_kernel_print_dim(k, extent),
                    guard);
    k->depth++;
    emit_list(k, s->first_child);
    k->depth--;
    uir_kernel_line(k, "}");
    if (k->status == UIR_STATUS_OK) k->in_scope[symbol.id] = 0;
    k->given.count = mark;
}

static void emit_if(uir_kernel *k, const uir_loop_statement *s) {
    uir_text text;
    uint32_t mark = k->given.count;
    uir_text_init(&text, &k->f->allocator);
    for (uint32_t i = 0; i < s->condition_count; i++) {
        uir_condition c = substitute_condition(k, s->conditions[i]);
        uir_text_append_format(&text, "%s%s %s %s", i ? " and " : "if ", uir_kernel_print_dim(k, c.left),
                               uir_relation_text(c.relation), uir_kernel_print_dim(k, c.right));
        give(k, c);
    }
    uir_kernel_line(k, "%s {", text.data ? text.data : "");
    uir_text_deinit(&text);
    k->depth++;
    emit_list(k, s->first_child);
    k->depth--;
    uir_kernel_line(k, "}");
    k->given.count = mark;
}

/* A list as far as `end`. */
static void emit_until(uir_kernel *k, uint32_t id, uint32_t end) {
    for (; id != end && k->status == UIR_STATUS_OK; id = statement(k, id)->next) {
        const uir_loop_statement *s = statement(k, id);
        if (starts_next(k, id)) continue;
        if (s->kind == UIR_LOOP_STATEMENT_BLOCK)
            emit_block(k, id);
        else if (s->kind == UIR_LOOP_STATEMENT_IF)
            emit_if(k, s);
        else if (s->loop_kind == UIR_LOOP_VECTORISED)
            emit_vectorised(k, s);
        else
            emit_loop(k, s);
    }
}

static void emit_list(uir_kernel *k, uint32_t id) {
    emit_until(k, id, UIR_LOOP_NONE);
}

/* ---- phases ---- */
static bool is_parallel(const uir_loop_statement *s) {
    return s->kind == UIR_LOOP_STATEMENT_FOR && (s->loop_kind == UIR_LOOP_PARALLEL || s->loop_kind == UIR_LOOP_BOUND);
}

/* A top statement and those after it that share no parallel loop: one unit does them in order. */
static uint32_t emit_phase(uir_kernel *k, uint32_t id) {
    uint32_t axes = 0, list = id, mark = k->given.count, next = UIR_LOOP_NONE;
    uir_text parallel;
    uir_text_init(&parallel, &k->f->allocator);
    uir_kernel_line(k, "phase {");
    k->depth++;
    while (is_parallel(statement(k, list)) && axes < 4) {
        const uir_loop_statement *s = statement(k, list);
        uir_dim extent = uir_kernel_substitute(k, s->extent), least = uir_kernel_substitute(k, s->min);
        if (axes && s->next != UIR_LOOP_NONE) break; /* beside others under an outer axis */
        if (!uir_kernel_is_one(k, extent)) {
            uir_symbol symbol = uir_kernel_new_symbol(k, "p", extent);
            uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_symbol(k->dims, symbol)));
            uir_text_append_format(&parallel, "%s%s : %s", axes ? ", " : "parallel ",
                                   uir_dims_symbol_name(k->dims, symbol), uir_kernel_print_dim(k, extent));
            axes++;
        } else {
            uir_kernel_replace(k, s->symbol, least);
        }
        if (next == UIR_LOOP_NONE && list == id) next = s->next;
        list = s->first_child;
        if (list == UIR_LOOP_NONE || k->status != UIR_STATUS_OK) break;
    }
    if (axes) uir_kernel_line(k, "%s group", parallel.data ? parallel.data : "");
    uir_text_deinit(&parallel);
    if (list == id) { /* no axis: this statement and its plain neighbours */
        for (next = id; next != UIR_LOOP_NONE && !is_parallel(statement(k, next)); next = statement(k, next)->next) {
        }
    }
    const char *guard = list == id ? "" : hoist(k, list, "if ");
    if (guard[0]) {
        uir_kernel_line(k, "%s {", guard);
        k->depth++;
    }
    emit_until(k, list, list == id ? next : UIR_LOOP_NONE);
    if (guard[0]) {
        k->depth--;
        uir_kernel_line(k, "}");
    }
    k->depth--;
    uir_kernel_line(k, "}");
    k->given.count = mark;
    return next;
}

/* ---- all of it ---- */
static void begin(uir_kernel *k) {
    const uir_loop_function *f = k->f;
    uir_text_init(&k->body, &f->allocator);
    k->pointers = uir_arena_allocate_array(k->arena, f->tensors.count + 1, sizeof *k->pointers);
    k->fresh = uir_arena_allocate_array(k->arena, f->statements.count + 1, sizeof *k->fresh);
    if (!k->pointers || !k->fresh) k->status = UIR_STATUS_OUT_OF_MEMORY;
    if (k->status != UIR_STATUS_OK || !grow_symbols(k, uir_dims_symbol_count(k->dims))) return;
    for (uint32_t i = 0; i < f->sizes.count; i++) k->in_scope[f->sizes.data[i].symbol.id] = 1;
    for (uint32_t i = 0; i < f->tiles.count; i++) k->in_scope[f->tiles.data[i].symbol.id] = 1;
    for (uint32_t i = 0; i < f->tensors.count; i++) uir_kernel_describe_pointer(k, i);
    uir_contraction_describe(k);
    k->depth = 1;
}

static uir_status read_kernel(uir_kernel *k, const uir_text *text, const uir_allocator *allocator,
                              uir_igraph_list *out) {
    uir_device_list devices = {&k->device, 1};
    uir_igraph *igraph;
    UIR_TRY(uir_igraph_parse(allocator, &devices, text->data, text->length, k->f->name, k->diagnostics, &igraph));
    uir_status status = uir_igraph_verify(igraph, k->diagnostics);
    if (status == UIR_STATUS_OK) return uir_igraph_list_add(out, igraph);
    uir_igraph_destroy(igraph);
    return status;
}

uir_status uir_lower_kernel_text(const uir_loop_function *f, const uir_device *device, uir_diagnostics *diagnostics,
                                 uir_text *text) {
    uir_arena arena;
    uir_arena_init(&arena, &f->allocator);
    uir_kernel k = {.f = f, .device = device, .dims = f->dims, .arena = &arena, .diagnostics = diagnostics};
    begin(&k);
    uir_kernel_check_dtypes(&k);
    for (uint32_t id = f->first; id != UIR_LOOP_NONE && k.status == UIR_STATUS_OK;) id = emit_phase(&k, id);
    if (k.status == UIR_STATUS_OK) {
        uir_kernel_write_header(&k, text);
        uir_text_append(text, k.body.data ? k.body.data : "", k.body.length);
        uir_text_append_string(text, "}\n");
    }
    if (k.status == UIR_STATUS_OK) k.status = uir_text_status(&k.body);
    if (k.status == UIR_STATUS_OK) k.status = uir_text_status(text);
    uir_text_deinit(&k.body);
    uir_arena_deinit(&arena);
    return k.status;
}

uir_status uir_lower_kernel(const uir_loop_function *f, const uir_device *device, const uir_allocator *allocator,
                            uir_diagnostics *diagnostics, uir_igraph_list *out) {
    uir_text text;
    uir_kernel k = {.f = f, .device = device, .diagnostics = diagnostics};
    uir_text_init(&text, allocator);
    uir_status status = uir_lower_kernel_text(f, device, diagnostics, &text);
    if (status == UIR_STATUS_OK) status = read_kernel(&k, &text, allocator, out);
    uir_text_deinit(&text);
    return status;
}
