/* Sums of products that are contractions, by what the loops compute: whatever operators they were written with.
 *
 * What an update adds is taken apart into the terms of a product, through the values that it is computed from. Terms
 * without a summed axis are multiplied with the finished sum; the others become two factors, such that each has an axis
 * of its own besides one that is summed. */
#include "lower/schedule/contraction_classify.h"
#include "lower/internal.h"

#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { MOST_TERMS = 10, MOST_EXPRESSIONS = 4096 };

/* One of what is multiplied, and the update's iteration variables that it depends on, as bits. */
typedef struct term {
    uint32_t expression, iters;
    bool divides;
} term;

typedef struct classifier {
    uir_loop_function *f;
    uir_arena *arena;
    uint32_t block, init, update, finish; /* statements; NONE */
    uint32_t tensor;                      /* of the sums */
    uint32_t reduced;                     /* iteration variables */
    uint32_t deep;                        /* of these, those of more than one step */
    bool said;                            /* to be a contraction */
    uint32_t most;                        /* expressions that the function may have */
    term terms[MOST_TERMS];
    uint32_t count;
    bool given_up;
} classifier;

/* Does mma read what lies in memory, by way of a cache? Else tiles come to it by moves (levels.c). */
static bool reads_memory(const uir_machine *machine, uint32_t role) {
    int space = uir_machine_find_role(machine, role);
    return space >= 0 && (machine->spaces[space].is_cache || machine->spaces[space].roles & UIR_SPACE_MEMORY);
}

bool uir_contraction_multiplies(const uir_machine *machine, uir_dtype sums, uir_dtype factor, bool is_right) {
    return uir_machine_multiplies(machine, sums, factor, is_right) &&
           reads_memory(machine, is_right ? UIR_SPACE_RIGHT : UIR_SPACE_LEFT);
}

/* ---- what an update adds, in its own iteration variables ---- */
/* Blocks that store to the tensor; `out_block`: the last of them. */
static uint32_t count_writers(const uir_loop_function *f, uint32_t list, uint32_t tensor, uint32_t *out_block) {
    uint32_t count = 0;
    for (uint32_t id = list; id != NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK) {
            count += count_writers(f, s->first_child, tensor, out_block);
            continue;
        }
        for (uint32_t c = s->first_child; c != NONE; c = STATEMENT(f, c)->next) {
            for (uint32_t i = 0; i < STATEMENT(f, c)->target_count; i++) {
                if (STATEMENT(f, c)->targets[i].tensor != tensor) continue;
                *out_block = id;
                count++;
            }
        }
    }
    return count;
}

/* What the tensor's elements are: the store of a block that does nothing else, for all of them; NULL. */
static const uir_loop_statement *find_store(const uir_loop_function *f, uint32_t tensor) {
    const uir_loop_tensor *t = &f->tensors.data[tensor];
    uint32_t id;
    if (t->role != UIR_LOOP_ROLE_TEMP || count_writers(f, f->first, tensor, &id) != 1) return NULL;
    const uir_loop_statement *block = STATEMENT(f, id), *store = STATEMENT(f, block->first_child);
    if (store->kind != UIR_LOOP_STATEMENT_STORE || store->next != NONE || block->condition_count) return NULL;
    for (uint32_t d = 0; d < t->rank; d++) {
        const uir_loop_iter *iter = NULL;
        for (uint32_t i = 0; i < block->iter_count; i++)
            if (uir_dim_equal(store->targets[0].indices[d], uir_dim_symbol(f->dims, block->iters[i].symbol)))
                iter = &block->iters[i];
        if (!iter || iter->data || !uir_dim_equal(iter->extent, t->extents[d])) return NULL;
    }
    return store;
}

static uir_status expand(classifier *c, uint32_t id, uint32_t *out);

static uir_status expand_load(classifier *c, uir_loop_access load, const uir_loop_statement *store, uint32_t *out) {
    uir_loop_function *f = c->f;
    uint32_t count = uir_dims_symbol_count(f->dims), value;
    uir_dim *replacements;
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(c->arena, count + 1, sizeof *replacements));
    for (uint32_t d = 0; d < f->tensors.data[load.tensor].rank; d++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(f->dims, store->targets[0].indices[d], &symbol))
            replacements[symbol.id] = load.indices[d];
    }
    UIR_TRY(uir_loop_substitute(f, store->values[0], replacements, count, &value));
    return expand(c, value, out);
}

/* The expression without reads of what other blocks compute element by element. */
static uir_status expand(classifier *c, uint32_t id, uint32_t *out) {
    uir_loop_function *f = c->f;
    uir_loop_expression e = *EXPRESSION(f, id);
    bool changed = false;
    *out = id;
    if (f->expressions.count > c->most) return UIR_STATUS_UNSUPPORTED;
    if (e.kind == UIR_LOOP_LOAD) {
        const uir_loop_statement *store = e.has_fill ? NULL : find_store(f, e.load.tensor);
        return store ? expand_load(c, e.load, store, out) : UIR_STATUS_OK;
    }
    if (e.kind != UIR_LOOP_CALL) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < e.argument_count; i++) {
        uint32_t argument = e.arguments[i];
        UIR_TRY(expand(c, argument, &e.arguments[i]));
        changed |= e.arguments[i] != argument;
    }
    return changed ? uir_loop_add_expression(f, e, out) : UIR_STATUS_OK;
}

static void note_iter(void *user, uir_symbol symbol) {
    classifier *c = user;
    const uir_loop_statement *block = STATEMENT(c->f, c->block);
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].symbol.id == symbol.id) c->terms[c->count].iters |= 1u << i;
}

static void note_iters(classifier *c, uint32_t id) {
    const uir_loop_expression *e = EXPRESSION(c->f, id);
    if (e->kind == UIR_LOOP_INDEX) uir_dim_visit_symbols(c->f->dims, e->index, note_iter, c);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < c->f->tensors.data[e->load.tensor].rank; d++)
        uir_dim_visit_symbols(c->f->dims, e->load.indices[d], note_iter, c);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) note_iters(c, e->arguments[i]);
}

/* ---- terms ---- */
static void add_term(classifier *c, uint32_t expression, bool divides) {
    c->given_up |= c->count == MOST_TERMS;
    if (c->given_up) return;
    c->terms[c->count] = (term){expression, 0, divides};
    note_iters(c, expression);
    c->count++;
}

static bool is_product(const uir_loop_function *f, uint32_t id) {
    const uir_loop_expression *e = EXPRESSION(f, id);
    return e->kind == UIR_LOOP_CALL &&
           (e->op == UIR_OP_MUL || (e->op == UIR_OP_NEG && is_product(f, e->arguments[0])) ||
            (e->op == UIR_OP_DIV && uir_dtype_is_float(e->dtype)));
}

static uir_status take_apart(classifier *c, uint32_t id) {
    uir_loop_function *f = c->f;
    uir_loop_expression e = *EXPRESSION(f, id);
    uint32_t minus;
    if (!is_product(f, id)) {
        add_term(c, id, false);
        return UIR_STATUS_OK;
    }
    UIR_TRY(take_apart(c, e.arguments[0]));
    if (e.op == UIR_OP_MUL) return take_apart(c, e.arguments[1]);
    if (e.op == UIR_OP_DIV) {
        add_term(c, e.arguments[1], true);
        return UIR_STATUS_OK;
    }
    UIR_TRY(uir_loop_add_number(f, e.dtype, -1, -1, &minus));
    add_term(c, minus, false);
    return UIR_STATUS_OK;
}

/* ---- which terms go where ---- */
typedef struct parting {
    uint32_t first;  /* terms of the first factor, as bits; those of neither follow the sum */
    uint32_t second; /* of the second */
} parting;

static uint32_t iters_of(const classifier *c, uint32_t terms) {
    uint32_t iters = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (terms >> i & 1) iters |= c->terms[i].iters;
    return iters;
}

/* The expression of the one term; NONE: they are several. */
static uint32_t only_term(const classifier *c, uint32_t terms) {
    for (uint32_t i = 0; i < c->count; i++)
        if (terms == 1u << i) return c->terms[i].expression;
    return NONE;
}

/* May the factor of a matrix and a vector be packed ahead, or, where it is said to be a product, does a kept axis lie
 * together in it? (Summed row by row the latter take as long, or less where they are few.) */
static bool has_columns(const classifier *c, uint32_t terms) {
    uint32_t id = only_term(c, terms);
    const uir_loop_expression *e = id == NONE ? NULL : EXPRESSION(c->f, id);
    if (!e || e->kind != UIR_LOOP_LOAD || e->has_fill) return false;
    const uir_loop_tensor *t = &c->f->tensors.data[e->load.tensor];
    const uir_loop_statement *block = STATEMENT(c->f, c->block);
    if (t->constant) return true;
    for (uint32_t i = 0; c->said && t->rank && i < block->iter_count; i++)
        if (!(c->reduced >> i & 1) &&
            uir_dim_mentions(c->f->dims, e->load.indices[t->rank - 1], block->iters[i].symbol))
            return true;
    return false;
}

/* Of some summed axis tiles of depth are made, which both factors have. One that a single factor has is walked around
 * them; one that neither has nothing walks. The image's or the weights' own loops give a convolution's depth. */
static bool sums_both(const classifier *c, parting p) {
    uint32_t first = iters_of(c, p.first) & c->deep, second = iters_of(c, p.second) & c->deep;
    return uir_loop_is_used_as(c->f, c->block, UIR_LOOP_USE_CONVOLUTION) || !c->deep ||
           ((first & second) && (first | second) == c->deep);
}

/* Rows, columns and depth: some axis that the first factor alone has, one of the second alone, one that is summed. A
 * matrix times a vector is one where the matrix lies in columns; else it is read once, as it lies, and summed row by
 * row, as dots are. */
static bool is_contraction(const classifier *c, parting p) {
    uint32_t first = iters_of(c, p.first), second = iters_of(c, p.second);
    uint32_t rows = first & ~second & ~c->reduced, columns = second & ~first & ~c->reduced;
    if (!sums_both(c, p)) return false;
    if (!c->said && !(first & second & c->reduced)) return false;
    return rows && columns ? true : rows ? has_columns(c, p.first) : columns && has_columns(c, p.second);
}

static bool is_alone(const classifier *c, uint32_t terms, bool constant) {
    uint32_t id = only_term(c, terms);
    const uir_loop_expression *e = id == NONE ? NULL : EXPRESSION(c->f, id);
    return e && e->kind == UIR_LOOP_LOAD && (!constant || c->f->tensors.data[e->load.tensor].constant);
}

/* The less, the better: axes that factors are computed along; then constants and other tensors that are not read as
 * they are. */
static uint32_t cost_of(const classifier *c, parting p) {
    uint32_t axes = 0, whole = 0, first = iters_of(c, p.first), second = iters_of(c, p.second);
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes += (first >> i & 1) + (second >> i & 1);
    whole += is_alone(c, p.first, true) + is_alone(c, p.second, true);
    return axes * 16 + 12 - 4 * whole - is_alone(c, p.first, false) - is_alone(c, p.second, false);
}

static bool is_cheaper(const classifier *c, parting p, parting than) {
    return is_contraction(c, p) && (!than.first || cost_of(c, p) < cost_of(c, than));
}

/* No bits: there is none. */
static parting choose_parting(const classifier *c, uint32_t terms) {
    parting best = {0, 0};
    uint32_t lowest = terms & (0u - terms);
    for (uint32_t rest = (terms - 1) & terms; rest; rest = (rest - 1) & terms) {
        parting p = {rest, terms & ~rest};
        if ((rest & lowest) && is_cheaper(c, p, best)) best = p;
    }
    return best;
}

/* The axis that lies together in memory: the sums' last. */
static uint32_t last_axis(const classifier *c) {
    const uir_loop_function *f = c->f;
    const uir_loop_statement *block = STATEMENT(f, c->block);
    uint32_t rank = f->tensors.data[c->tensor].rank, axis = 0;
    uir_symbol symbol;
    if (!rank || !uir_dim_is_symbol(f->dims, STATEMENT(f, c->update)->targets[0].indices[rank - 1], &symbol)) return 0;
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].symbol.id == symbol.id) axis = 1u << i;
    return axis;
}

/* ---- rewriting ---- */
static uir_status multiply(classifier *c, uint32_t terms, uint32_t *out) {
    uir_loop_function *f = c->f;
    *out = NONE;
    for (uint32_t i = 0; i < c->count; i++) {
        const term *t = &c->terms[i];
        if (!(terms >> i & 1)) continue;
        uir_dtype dtype = EXPRESSION(f, t->expression)->dtype;
        uint32_t arguments[2] = {*out, t->expression};
        if (*out == NONE && t->divides) UIR_TRY(uir_loop_add_number(f, dtype, 1, 1, &arguments[0]));
        if (arguments[0] == NONE)
            *out = t->expression;
        else
            UIR_TRY(uir_loop_add_call(f, t->divides ? UIR_OP_DIV : UIR_OP_MUL, dtype, arguments, 2, out));
    }
    return UIR_STATUS_OK;
}

/* The monoid's finish of a sum, at a load of it. */
static uir_status finish_value(uir_loop_function *f, uint32_t id, uint32_t state, uint32_t *out) {
    uir_loop_expression e = *EXPRESSION(f, id);
    *out = e.kind == UIR_LOOP_PARAMETER ? state : id;
    if (e.kind != UIR_LOOP_CALL) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < e.argument_count; i++) UIR_TRY(finish_value(f, e.arguments[i], state, &e.arguments[i]));
    return uir_loop_add_expression(f, e, out);
}

/* The finished sum is multiplied with the terms: where it is finished. */
static uir_status multiply_after(classifier *c, uint32_t terms) {
    uir_loop_function *f = c->f;
    uir_loop_statement *finish = STATEMENT(f, c->finish);
    const uir_loop_statement *update = STATEMENT(f, c->update);
    uint32_t count = uir_dims_symbol_count(f->dims), value, with;
    uir_dim *replacements;
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(c->arena, count + 1, sizeof *replacements));
    for (uint32_t d = 0; d < f->tensors.data[c->tensor].rank; d++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(f->dims, update->targets[0].indices[d], &symbol))
            replacements[symbol.id] = EXPRESSION(f, finish->values[0])->load.indices[d];
    }
    UIR_TRY(finish_value(f, f->monoids.data[finish->monoid].finish[0], finish->values[0], &value));
    for (uint32_t i = 0; i < c->count; i++) {
        if (!(terms >> i & 1)) continue;
        UIR_TRY(uir_loop_substitute(f, c->terms[i].expression, replacements, count, &with));
        UIR_TRY(uir_loop_add_call(f, c->terms[i].divides ? UIR_OP_DIV : UIR_OP_MUL, EXPRESSION(f, value)->dtype,
                                  (uint32_t[]){value, with}, 2, &value));
    }
    finish = STATEMENT(f, c->finish);
    finish->kind = UIR_LOOP_STATEMENT_STORE;
    finish->monoid = 0;
    finish->values[0] = value;
    return UIR_STATUS_OK;
}

/* ---- a sum ---- */
static uint32_t only_statement(const uir_loop_function *f, uint32_t block) {
    uint32_t id = STATEMENT(f, block)->first_child;
    return id != NONE && STATEMENT(f, id)->next == NONE ? id : NONE;
}

static bool is_sum(const uir_loop_function *f, const uir_loop_statement *update) {
    if (update->kind != UIR_LOOP_STATEMENT_UPDATE || update->target_count != 1) return false;
    const uir_loop_monoid *m = &f->monoids.data[update->monoid];
    const uir_loop_expression *step = EXPRESSION(f, m->update[0]);
    return m->state_count == 1 && m->element_count == 1 && step->kind == UIR_LOOP_CALL && step->op == UIR_OP_ADD &&
           EXPRESSION(f, update->values[0])->dtype == m->state_dtypes[0] &&
           f->tensors.data[update->targets[0].tensor].role == UIR_LOOP_ROLE_TEMP;
}

/* The one finish of the sums, in a block of its own, of the sums' dtype. */
static uint32_t find_finish(const classifier *c, uint32_t list) {
    const uir_loop_function *f = c->f;
    for (uint32_t id = list; id != NONE; id = STATEMENT(f, id)->next) {
        uint32_t at = STATEMENT(f, id)->kind == UIR_LOOP_STATEMENT_BLOCK
                          ? only_statement(f, id)
                          : find_finish(c, STATEMENT(f, id)->first_child);
        if (at == NONE || STATEMENT(f, at)->kind != UIR_LOOP_STATEMENT_FINISH) continue;
        const uir_loop_statement *finish = STATEMENT(f, at);
        const uir_loop_expression *of = EXPRESSION(f, finish->values[0]);
        if (finish->value_count == 1 && finish->target_count == 1 && of->kind == UIR_LOOP_LOAD &&
            of->load.tensor == c->tensor && of->dtype == f->tensors.data[finish->targets[0].tensor].dtype)
            return at;
    }
    return NONE;
}

/* Do all axes of the sum that are not summed stand in its place, each by itself? */
static bool keeps_axes(const classifier *c) {
    const uir_loop_function *f = c->f;
    const uir_loop_statement *block = STATEMENT(f, c->block);
    const uir_loop_access *target = &STATEMENT(f, c->update)->targets[0];
    uint32_t seen = c->reduced;
    for (uint32_t d = 0; d < f->tensors.data[c->tensor].rank; d++)
        for (uint32_t i = 0; i < block->iter_count; i++)
            if (uir_dim_equal(target->indices[d], uir_dim_symbol(f->dims, block->iters[i].symbol))) seen |= 1u << i;
    return seen == (1u << block->iter_count) - 1;
}

static uir_status rewrite(classifier *c, parting p, uint32_t after) {
    uir_loop_function *f = c->f;
    uint32_t factors[2], value;
    if (iters_of(c, p.first) & last_axis(c) & ~iters_of(c, p.second)) p = (parting){p.second, p.first};
    UIR_TRY(multiply(c, p.first, &factors[0]));
    UIR_TRY(multiply(c, p.second, &factors[1]));
    UIR_TRY(uir_loop_add_call(f, UIR_OP_MUL, EXPRESSION(f, factors[0])->dtype, factors, 2, &value));
    STATEMENT(f, c->update)->values[0] = value;
    STATEMENT(f, c->block)->uses |= 1u << UIR_LOOP_USE_CONTRACTION;
    return after ? multiply_after(c, after) : UIR_STATUS_OK;
}

/* Does the device multiply the two factors, or what is cast in them? They become the terms. */
static uir_status find_multiplied(classifier *c, const uir_machine *machine, bool *out_is) {
    uir_loop_function *f = c->f;
    uir_dtype sums = f->tensors.data[STATEMENT(f, c->update)->targets[0].tensor].dtype;
    uint32_t value = STATEMENT(f, c->update)->values[0];
    *out_is = true;
    if (EXPRESSION(f, value)->kind != UIR_LOOP_CALL || EXPRESSION(f, value)->op != UIR_OP_MUL) return UIR_STATUS_OK;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t factor;
        UIR_TRY(expand(c, EXPRESSION(f, value)->arguments[k], &factor));
        add_term(c, factor, false);
        const uir_loop_expression *e = EXPRESSION(f, factor);
        bool is_cast = e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST;
        *out_is &= uir_contraction_multiplies(machine, sums, e->dtype, k) ||
                   (is_cast && uir_contraction_multiplies(machine, sums, EXPRESSION(f, e->arguments[0])->dtype, k));
    }
    return UIR_STATUS_OK;
}

static void note_reduced(classifier *c) {
    const uir_loop_statement *block = STATEMENT(c->f, c->block);
    int64_t extent;
    for (uint32_t i = 0; i < block->iter_count; i++) {
        bool one = uir_dim_is_const(c->f->dims, block->iters[i].extent, &extent) && extent == 1;
        c->reduced |= (uint32_t)block->iters[i].reduce << i;
        c->deep |= (uint32_t)(block->iters[i].reduce && !one) << i;
    }
}

/* UNSUPPORTED: it is none. */
static uir_status classify_block(uir_loop_function *f, uint32_t id, uir_arena *arena) {
    classifier c = {.f = f, .arena = arena, .block = id, .update = only_statement(f, id), .finish = NONE};
    const uir_loop_statement *block = STATEMENT(f, id);
    uint32_t value, inside = 0, all;
    if (c.update == NONE || !is_sum(f, STATEMENT(f, c.update)) || block->condition_count) return UIR_STATUS_UNSUPPORTED;
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].data) return UIR_STATUS_UNSUPPORTED;
    note_reduced(&c);
    c.tensor = STATEMENT(f, c.update)->targets[0].tensor;
    c.most = f->expressions.count + MOST_EXPRESSIONS;
    UIR_TRY(expand(&c, STATEMENT(f, c.update)->values[0], &value));
    UIR_TRY(take_apart(&c, value));
    if (c.given_up) return UIR_STATUS_UNSUPPORTED;
    all = (1u << c.count) - 1;
    c.finish = find_finish(&c, f->first);
    for (uint32_t i = 0; i < c.count; i++)
        if (c.terms[i].iters & c.reduced) inside |= 1u << i;
    if (c.finish == NONE || !keeps_axes(&c)) inside = all;
    parting p = choose_parting(&c, inside);
    return p.first ? rewrite(&c, p, all & ~inside) : UIR_STATUS_UNSUPPORTED;
}

/* What the device does not multiply is no contraction for it, nor is the only product of a group that is none by its
 * axes. */
static uir_status drop_use(uir_loop_function *f, uint32_t id, const uir_machine *machine, bool only, uir_arena *arena) {
    classifier c = {.f = f, .arena = arena, .block = id, .update = only_statement(f, id), .said = true};
    bool is = true;
    c.most = f->expressions.count + MOST_EXPRESSIONS;
    note_reduced(&c);
    uir_status status = c.update == NONE ? UIR_STATUS_OK : find_multiplied(&c, machine, &is);
    if (status == UIR_STATUS_OK && only && c.count == 2 && c.reduced &&
        !uir_loop_is_used_as(f, id, UIR_LOOP_USE_CONVOLUTION))
        is &= is_contraction(&c, (parting){1, 2});
    if (status == UIR_STATUS_OK && c.count == 2) is &= sums_both(&c, (parting){1, 2});
    if (!is) STATEMENT(f, id)->uses = 0;
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

/* Of the blocks that are said to be contractions, or of all others: how many there are. */
static uir_status classify(uir_loop_function *f, const uir_machine *machine, bool said, uint32_t list, uir_arena *arena,
                           uint32_t *count) {
    for (uint32_t id = list; id != NONE; id = STATEMENT(f, id)->next) {
        uir_status status = UIR_STATUS_OK;
        if (STATEMENT(f, id)->kind != UIR_LOOP_STATEMENT_BLOCK)
            UIR_TRY(classify(f, machine, said, STATEMENT(f, id)->first_child, arena, count));
        else if (uir_loop_is_used_as(f, id, UIR_LOOP_USE_CONTRACTION) != said)
            continue;
        else if (said)
            UIR_TRY(
                drop_use(f, id, machine, uir_loop_count_used_as(f, f->first, UIR_LOOP_USE_CONTRACTION) == 1, arena));
        else
            status = classify_block(f, id, arena);
        if (status != UIR_STATUS_UNSUPPORTED) UIR_TRY(status);
        if (STATEMENT(f, id)->kind == UIR_LOOP_STATEMENT_BLOCK)
            *count += uir_loop_is_used_as(f, id, UIR_LOOP_USE_CONTRACTION);
    }
    return UIR_STATUS_OK;
}

uir_status uir_contraction_classify(uir_loop_function *f, const uir_machine *machine, uint32_t *out_count) {
    uint32_t said = 0;
    uir_arena arena;
    *out_count = 0;
    uir_arena_init(&arena, &f->allocator);
    uir_status status = classify(f, machine, true, f->first, &arena, &said);
    if (status == UIR_STATUS_OK && !said) status = classify(f, machine, false, f->first, &arena, out_count);
    uir_arena_deinit(&arena);
    return status;
}
