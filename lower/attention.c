/* Finding the softmax between two products, and the tactic that streams it. */
#include "lower/attention.h"
#include "lower/contraction_plan.h"

#include <float.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

/* ---- what stands in the function ---- */
typedef struct softmax {
    uir_loop_function *f;
    uint32_t scores;        /* tensor that softmax is of */
    uint32_t greatest, sum; /* update blocks */
    bool replaces_nan;
    double replacement;
    bool *left_out; /* by statement: blocks that are the softmax */
} softmax;

typedef struct reductions {
    uint32_t contractions, others;
} reductions;

static void count_updates(const uir_loop_function *f, uint32_t id, reductions *out) {
    for (; id != NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK) {
            count_updates(f, s->first_child, out);
        } else if (uir_loop_is_used_as(f, id, UIR_LOOP_USE_CONTRACTION)) {
            out->contractions++;
        } else if (s->first_child != NONE && STATEMENT(f, s->first_child)->kind == UIR_LOOP_STATEMENT_UPDATE) {
            out->others++;
        }
    }
}

bool uir_attention_matches(const uir_loop_function *function) {
    reductions r = {0};
    count_updates(function, function->first, &r);
    return r.contractions == 2 && r.others;
}

/* The block with a statement of the kind that stores to the tensor; NONE. */
static uint32_t find_block(const uir_loop_function *f, uint32_t id, uir_loop_statement_kind kind, uint32_t tensor) {
    for (; id != NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        uint32_t found = NONE;
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK)
            found = find_block(f, s->first_child, kind, tensor);
        else if (s->first_child != NONE && STATEMENT(f, s->first_child)->kind == kind &&
                 STATEMENT(f, s->first_child)->targets[0].tensor == tensor)
            found = id;
        if (found != NONE) return found;
    }
    return NONE;
}

/* The tensor that an expression loads; NONE: it is no load. */
static uint32_t loaded(const uir_loop_function *f, uint32_t expression) {
    const uir_loop_expression *e = EXPRESSION(f, expression);
    return e->kind == UIR_LOOP_LOAD && !e->has_fill ? e->load.tensor : NONE;
}

/* What is stored to a tensor, when it is a call of the op; that block is the softmax's. */
static const uir_loop_expression *take_call(softmax *s, uint32_t tensor, uir_op op) {
    uint32_t block = tensor == NONE ? NONE : find_block(s->f, s->f->first, UIR_LOOP_STATEMENT_STORE, tensor);
    if (block == NONE) return NULL;
    const uir_loop_expression *e = EXPRESSION(s->f, STATEMENT(s->f, STATEMENT(s->f, block)->first_child)->values[0]);
    if (e->kind != UIR_LOOP_CALL || e->op != op) return NULL;
    s->left_out[block] = true;
    return e;
}

/* The update block of the reduction that a tensor is the result of; what it takes in is loaded from `from`. */
static uint32_t take_reduction(softmax *s, uint32_t tensor, uir_op op, uint32_t *out_from) {
    uir_loop_function *f = s->f;
    uint32_t finish = tensor == NONE ? NONE : find_block(f, f->first, UIR_LOOP_STATEMENT_FINISH, tensor);
    if (finish == NONE) return NONE;
    const uir_loop_statement *end = STATEMENT(f, STATEMENT(f, finish)->first_child);
    const uir_loop_monoid *m = &f->monoids.data[end->monoid];
    const uir_loop_expression *step = EXPRESSION(f, m->update[0]);
    if (m->state_count != 1 || m->element_count != 1 || step->kind != UIR_LOOP_CALL || step->op != op) return NONE;
    uint32_t state = loaded(f, end->values[0]);
    uint32_t init = state == NONE ? NONE : find_block(f, f->first, UIR_LOOP_STATEMENT_INIT, state);
    uint32_t update = state == NONE ? NONE : find_block(f, f->first, UIR_LOOP_STATEMENT_UPDATE, state);
    if (init == NONE || update == NONE) return NONE;
    *out_from = loaded(f, STATEMENT(f, STATEMENT(f, update)->first_child)->values[0]);
    s->left_out[finish] = s->left_out[init] = s->left_out[update] = true;
    return update;
}

/* From the second product's first factor back to the scores. */
static bool find_softmax(softmax *s, uint32_t tensor) {
    uir_loop_function *f = s->f;
    const uir_loop_expression *e = take_call(s, tensor, UIR_OP_SELECT);
    if (e) { /* select(is_nan(p), number, p) */
        const uir_loop_expression *number = EXPRESSION(f, e->arguments[1]);
        uint32_t condition = loaded(f, e->arguments[0]), weights = loaded(f, e->arguments[2]);
        const uir_loop_expression *test = take_call(s, condition, UIR_OP_IS_NAN);
        if (number->kind != UIR_LOOP_CONSTANT || !test || loaded(f, test->arguments[0]) != weights) return false;
        s->replaces_nan = true;
        s->replacement = number->real;
        tensor = weights;
    }
    if (!(e = take_call(s, tensor, UIR_OP_DIV))) return false;
    uint32_t powers = loaded(f, e->arguments[0]), summed;
    s->sum = take_reduction(s, loaded(f, e->arguments[1]), UIR_OP_ADD, &summed);
    if (s->sum == NONE || summed != powers || !(e = take_call(s, powers, UIR_OP_EXP))) return false;
    if (!(e = take_call(s, loaded(f, e->arguments[0]), UIR_OP_SUB))) return false;
    s->scores = loaded(f, e->arguments[0]);
    uint32_t taken;
    s->greatest = take_reduction(s, loaded(f, e->arguments[1]), UIR_OP_MAX, &taken);
    return s->greatest != NONE && s->scores != NONE && taken == s->scores &&
           f->tensors.data[s->scores].dtype == UIR_DTYPE_F32;
}

/* ---- the plan ---- */
typedef struct attention {
    uir_contraction_plan *first, *second;
    uir_loop_function *f;
    softmax s;
    /* per row of the tile: its greatest score, the sum of exponentials; and of the row in work */
    uint32_t greatest, total, here, grown, part, scale;
    uint32_t names;
} attention;

static const uir_loop_iter *iter_of(const uir_contraction *c, uint32_t axis) {
    return &STATEMENT(c->f, c->update)->iters[axis];
}

/* The contraction's axis that is axis `of` of another one; NONE. */
static uint32_t find_axis(const uir_contraction *c, const uir_contraction *other, uint32_t of) {
    for (uint32_t i = 0; i < c->axis_count; i++)
        if (uir_loop_iter_is_same(iter_of(c, i), iter_of(other, of))) return i;
    return NONE;
}

static uint32_t count_class(const uir_contraction *c, uir_contraction_class class) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->axis_count; i++) count += c->axes[i].class == class;
    return count;
}

/* The keys: columns of the first product, summed over by the second, reduced in between. */
static uir_status check_axes(attention *a) {
    uir_contraction_plan *p = a->first, *q = a->second;
    uint32_t keys = p->sides[UIR_CONTRACTION_N].axis, summed = q->sides[UIR_CONTRACTION_K].axis,
             rows = p->sides[UIR_CONTRACTION_M].axis, outer = q->sides[UIR_CONTRACTION_M].axis;
    bool fine = count_class(&p->c, UIR_CONTRACTION_N) == 1 && count_class(&p->c, UIR_CONTRACTION_K) <= 1 &&
                count_class(&q->c, UIR_CONTRACTION_N) == 1 && count_class(&q->c, UIR_CONTRACTION_K) == 1;
    fine = fine && keys != NONE && summed != NONE && rows != NONE && outer != NONE;
    fine = fine && iter_of(&p->c, keys)->axis && iter_of(&p->c, keys)->axis == iter_of(&q->c, summed)->axis;
    fine = fine && uir_loop_iter_is_same(iter_of(&p->c, rows), iter_of(&q->c, outer));
    for (uint32_t k = 0; fine && k < 2; k++) {
        const uir_loop_statement *b = STATEMENT(a->f, k ? a->s.sum : a->s.greatest);
        uint32_t reduced = 0;
        for (uint32_t i = 0; i < b->iter_count; i++) {
            if (!b->iters[i].reduce) continue;
            reduced++;
            fine = fine && b->iters[i].axis == iter_of(&p->c, keys)->axis;
        }
        fine = fine && reduced == 1;
    }
    for (uint32_t i = 0; fine && i < p->c.axis_count; i++) {
        uint32_t class = p->c.axes[i].class;
        if (class == UIR_CONTRACTION_BATCH || class == UIR_CONTRACTION_M) fine = find_axis(&q->c, &p->c, i) != NONE;
    }
    for (uint32_t i = 0; fine && i < q->c.axis_count; i++) {
        uint32_t class = q->c.axes[i].class;
        if (class == UIR_CONTRACTION_BATCH || class == UIR_CONTRACTION_M) fine = find_axis(&p->c, &q->c, i) != NONE;
    }
    return fine ? UIR_STATUS_OK : uir_contraction_refuse(&p->c, "rows and keys of two products do not meet");
}

/* Rows by their name, whatever the class says is the longest. */
static void meet_rows(attention *a) {
    uir_contraction_plan *p = a->first, *q = a->second;
    uir_contraction_side *s = &q->sides[UIR_CONTRACTION_M];
    uint32_t rows = p->sides[UIR_CONTRACTION_M].axis;
    uint32_t same = rows == NONE ? NONE : find_axis(&q->c, &p->c, rows);
    if (same == NONE || q->c.axes[same].class != UIR_CONTRACTION_M) return;
    s->axis = same;
    s->extent = q->c.axes[same].extent;
}

/* ---- blocks ---- */
static uir_status add_expression(attention *a, uir_op op, uint32_t x, uint32_t y, uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_CALL,
                             .dtype = UIR_DTYPE_F32,
                             .op = op,
                             .arguments = {x, y},
                             .argument_count = y == NONE ? 1 : 2};
    if (y == NONE) e.arguments[1] = 0;
    *out = a->f->expressions.count;
    return uir_vector_push(&a->f->arena, &a->f->expressions, e);
}

static uir_status add_load(attention *a, uint32_t tensor, uir_dim row, uir_dim column, uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_LOAD, .dtype = UIR_DTYPE_F32};
    e.load = (uir_loop_access){.tensor = tensor, .indices = {row, column}};
    *out = a->f->expressions.count;
    return uir_vector_push(&a->f->arena, &a->f->expressions, e);
}

static uir_status add_number(attention *a, double value, uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_CONSTANT, .dtype = UIR_DTYPE_F32, .real = value};
    *out = a->f->expressions.count;
    return uir_vector_push(&a->f->arena, &a->f->expressions, e);
}

/* A block being made: where it stands, and along what it works. */
typedef struct making {
    uir_loop_statement block;
    uint32_t under;
    uir_dim row, column;
} making;

/* `row`: it works at a row of the tile; `class`: along which columns of the plan, vectorised (BATCH: none); `rows`: it
 * works on all rows, vectorised. */
static uir_status begin(attention *a, uir_contraction_plan *p, uint32_t under, bool rows, uint32_t class, bool reduce,
                        making *out) {
    uint32_t classes[2], count = 0;
    *out = (making){.block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE}, .under = under};
    if (rows) classes[count++] = UIR_CONTRACTION_M;
    if (class != UIR_CONTRACTION_BATCH) classes[count++] = class;
    UIR_TRY(uir_contraction_plan_open_tiles(p, classes, count, &out->under));
    UIR_TRY(uir_contraction_plan_local_index(p, &out->block, UIR_CONTRACTION_M, false, &out->row));
    if (class != UIR_CONTRACTION_BATCH)
        UIR_TRY(uir_contraction_plan_local_index(p, &out->block, class, reduce, &out->column));
    UIR_TRY(uir_contraction_plan_guard(p, &out->block, UIR_CONTRACTION_M));
    if (class != UIR_CONTRACTION_BATCH) UIR_TRY(uir_contraction_plan_guard(p, &out->block, class));
    return uir_contraction_plan_fresh_name(a->f, "softmax", &out->block.name);
}

static uir_status finish(attention *a, making *m, const uir_loop_statement *statement) {
    uint32_t id;
    UIR_TRY(uir_contraction_plan_add_statement(a->f, statement, &m->block.first_child));
    UIR_TRY(uir_contraction_plan_add_statement(a->f, &m->block, &id));
    uir_contraction_plan_append(a->f, m->under, id);
    return UIR_STATUS_OK;
}

static uir_status store(attention *a, making *m, uint32_t tensor, uir_dim row, uir_dim column, uint32_t value) {
    uir_loop_statement s = {
        .kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE, .target_count = 1, .value_count = 1};
    s.targets[0] = (uir_loop_access){.tensor = tensor, .indices = {row, column}};
    s.values[0] = value;
    return finish(a, m, &s);
}

static uir_dim zero(const attention *a) {
    return uir_dim_const(a->f->dims, 0);
}

/* A number in all rows of a tensor of the tile. */
static uir_status fill_rows(attention *a, uint32_t under, uint32_t tensor, double value) {
    making m;
    uint32_t number;
    UIR_TRY(begin(a, a->first, under, true, UIR_CONTRACTION_BATCH, false, &m));
    UIR_TRY(add_number(a, value, &number));
    return store(a, &m, tensor, m.row, zero(a), number);
}

/* tensor[0] = the reduction of a row. */
static uir_status reduce_row(attention *a, uint32_t under, uint32_t update, uint32_t into, uint32_t from, bool wide) {
    uir_loop_statement s = {.kind = UIR_LOOP_STATEMENT_INIT, .first_child = NONE, .next = NONE, .target_count = 1};
    making m;
    s.monoid = STATEMENT(a->f, STATEMENT(a->f, update)->first_child)->monoid;
    s.targets[0] = (uir_loop_access){.tensor = into, .indices = {zero(a), zero(a)}};
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_BATCH, false, &m));
    UIR_TRY(finish(a, &m, &s));
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_N, true, &m));
    s.kind = UIR_LOOP_STATEMENT_UPDATE;
    s.value_count = 1;
    UIR_TRY(add_load(a, from, wide ? m.row : m.column, m.column, &s.values[0]));
    return finish(a, &m, &s);
}

/* A row of scores becomes its exponentials; what was before is scaled. */
static uir_status place_row(attention *a, uint32_t under) {
    uir_dim at = zero(a);
    uint32_t scores = a->first->local[a->s.scores], x, y, value;
    making m;
    UIR_TRY(reduce_row(a, under, a->s.greatest, a->here, scores, false));
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_BATCH, false, &m));
    UIR_TRY(add_load(a, a->greatest, m.row, at, &x));
    UIR_TRY(add_load(a, a->here, at, at, &y));
    UIR_TRY(add_expression(a, UIR_OP_MAX, x, y, &value));
    UIR_TRY(store(a, &m, a->grown, at, at, value));
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_N, false, &m));
    UIR_TRY(add_load(a, scores, m.column, m.column, &x));
    UIR_TRY(add_load(a, a->grown, at, at, &y));
    UIR_TRY(add_expression(a, UIR_OP_SUB, x, y, &value));
    UIR_TRY(add_expression(a, UIR_OP_EXP, value, NONE, &value));
    UIR_TRY(store(a, &m, a->first->sums, m.row, m.column, value));
    UIR_TRY(reduce_row(a, under, a->s.sum, a->part, a->first->sums, true));
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_BATCH, false, &m));
    UIR_TRY(add_load(a, a->greatest, m.row, at, &x));
    UIR_TRY(add_load(a, a->grown, at, at, &y));
    UIR_TRY(add_expression(a, UIR_OP_SUB, x, y, &value));
    UIR_TRY(add_expression(a, UIR_OP_EXP, value, NONE, &value));
    UIR_TRY(store(a, &m, a->scale, at, at, value));
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_BATCH, false, &m));
    UIR_TRY(add_load(a, a->total, m.row, at, &x));
    UIR_TRY(add_load(a, a->scale, at, at, &y));
    UIR_TRY(add_expression(a, UIR_OP_MUL, x, y, &value));
    UIR_TRY(add_load(a, a->part, at, at, &y));
    UIR_TRY(add_expression(a, UIR_OP_ADD, value, y, &value));
    UIR_TRY(store(a, &m, a->total, m.row, at, value));
    UIR_TRY(begin(a, a->first, under, false, UIR_CONTRACTION_BATCH, false, &m));
    UIR_TRY(add_load(a, a->grown, at, at, &value));
    UIR_TRY(store(a, &m, a->greatest, m.row, at, value));
    UIR_TRY(begin(a, a->second, under, false, UIR_CONTRACTION_N, false, &m));
    UIR_TRY(add_load(a, a->second->sums, m.row, m.column, &x));
    UIR_TRY(add_load(a, a->scale, at, at, &y));
    UIR_TRY(add_expression(a, UIR_OP_MUL, x, y, &value));
    return store(a, &m, a->second->sums, m.row, m.column, value);
}

/* Sums by the sum of exponentials; where that is no number, or nothing, all weights are NaN. */
static uir_status place_division(attention *a, uint32_t under) {
    uint32_t x, y, value, test, number;
    making m;
    UIR_TRY(begin(a, a->second, under, false, UIR_CONTRACTION_N, false, &m));
    UIR_TRY(add_load(a, a->second->sums, m.row, m.column, &x));
    UIR_TRY(add_load(a, a->total, m.row, zero(a), &y));
    UIR_TRY(add_expression(a, UIR_OP_DIV, x, y, &value));
    if (a->s.replaces_nan) {
        UIR_TRY(add_number(a, 0, &number));
        UIR_TRY(add_expression(a, UIR_OP_DIV, number, y, &test));
        UIR_TRY(add_expression(a, UIR_OP_IS_NAN, test, NONE, &test));
        EXPRESSION(a->f, test)->dtype = UIR_DTYPE_BOOL;
        uir_loop_expression e = {.kind = UIR_LOOP_CALL,
                                 .dtype = UIR_DTYPE_F32,
                                 .op = UIR_OP_SELECT,
                                 .arguments = {test, number, value},
                                 .argument_count = 3};
        value = a->f->expressions.count;
        UIR_TRY(uir_vector_push(&a->f->arena, &a->f->expressions, e));
    }
    return store(a, &m, a->second->sums, m.row, m.column, value);
}

/* ---- the whole ---- */
/* Without keys a sum over them is 0, not 0 by 0. */
static uir_status place_empty(attention *a, uint32_t under) {
    uir_dim keys = a->first->sides[UIR_CONTRACTION_N].extent;
    uir_condition none = {UIR_RELATION_LT, keys, uir_dim_const(a->f->dims, 1)};
    uir_loop_statement branch = {
        .kind = UIR_LOOP_STATEMENT_IF, .first_child = NONE, .next = NONE, .condition_count = 1};
    uint32_t id;
    if (uir_dim_compare(a->f->dims, keys, UIR_RELATION_GE, none.right) == UIR_TRUE) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(branch.conditions, uir_arena_copy(&a->f->arena, &none, sizeof none));
    UIR_TRY(uir_contraction_plan_add_statement(a->f, &branch, &id));
    uir_contraction_plan_append(a->f, under, id);
    return fill_rows(a, id, a->total, 1);
}

static uir_status add_outer(attention *a, const char *name, uir_dim extent, uir_loop_kind kind, uint32_t *under,
                            uir_dim *out_at) {
    UIR_TRY(uir_contraction_plan_fresh_name(a->f, name, &name));
    return uir_contraction_plan_add_loop(a->f, name, kind, extent, *under, under, out_at);
}

static uir_status open_outer(attention *a, uint32_t *under) {
    uir_contraction_plan *p = a->first, *q = a->second;
    uir_contraction_side *m = &p->sides[UIR_CONTRACTION_M];
    uir_dim at = UIR_DIM_NONE;
    for (uint32_t pass = 0; pass < 2; pass++) { /* at most four are shared out; the rows' is the last of these */
        for (uint32_t i = 0, seen = 0; i < p->c.axis_count; i++) {
            uint32_t class = p->c.axes[i].class;
            if ((class != UIR_CONTRACTION_BATCH && class != UIR_CONTRACTION_M) || m->axis == i) continue;
            bool parallel = seen++ < 3;
            if (parallel != (pass == 0)) continue;
            UIR_TRY(add_outer(a, class == UIR_CONTRACTION_M ? "m" : "b", p->c.axes[i].extent,
                              parallel ? UIR_LOOP_PARALLEL : UIR_LOOP_SERIAL, under, &p->at[i]));
            q->at[find_axis(&q->c, &p->c, i)] = p->at[i];
        }
        if (pass) continue;
        UIR_TRY(add_outer(a, "mo", uir_dim_ceildiv(a->f->dims, m->extent, m->tile), UIR_LOOP_PARALLEL, under, &at));
        m->outer = q->sides[UIR_CONTRACTION_M].outer = at;
    }
    return UIR_STATUS_OK;
}

static uir_status place(attention *a) {
    uir_contraction_plan *p = a->first, *q = a->second;
    uir_contraction_side *n = &p->sides[UIR_CONTRACTION_N];
    uint32_t unit = NONE, inside, rows;
    a->f->first = NONE;
    UIR_TRY(open_outer(a, &unit));
    UIR_TRY(uir_contraction_plan_place_init(q, unit));
    UIR_TRY(fill_rows(a, unit, a->greatest, -FLT_MAX));
    UIR_TRY(fill_rows(a, unit, a->total, 0));
    UIR_TRY(place_empty(a, unit));
    if (p->copied[0]) UIR_TRY(uir_contraction_plan_place_copy(p, 0, unit));
    inside = unit;
    if (n->split) {
        UIR_TRY(
            add_outer(a, "no", uir_dim_ceildiv(a->f->dims, n->extent, n->tile), UIR_LOOP_SERIAL, &inside, &n->outer));
        q->sides[UIR_CONTRACTION_K].outer = n->outer;
    }
    UIR_TRY(uir_contraction_plan_place_init(p, inside));
    if (p->copied[1]) UIR_TRY(uir_contraction_plan_place_copy(p, 1, inside));
    UIR_TRY(uir_contraction_plan_place_update(p, inside));
    rows = inside;
    UIR_TRY(uir_contraction_plan_place_after_in_rows(p, &rows));
    q->sides[UIR_CONTRACTION_M].inner = p->sides[UIR_CONTRACTION_M].inner;
    UIR_TRY(place_row(a, rows));
    if (q->copied[1]) UIR_TRY(uir_contraction_plan_place_copy(q, 1, inside));
    UIR_TRY(uir_contraction_plan_place_update(q, inside));
    rows = unit;
    UIR_TRY(uir_contraction_plan_open_rows(q, &rows));
    UIR_TRY(place_division(a, rows));
    UIR_TRY(uir_contraction_plan_place_after(q, unit));
    return uir_contraction_plan_drop_tensors(q);
}

static uir_status make_rows(attention *a) {
    uir_dim one = uir_dim_const(a->f->dims, 1), m = a->first->sides[UIR_CONTRACTION_M].tile;
    uir_dim column[] = {m, one}, element[] = {one, one};
    UIR_TRY(uir_contraction_plan_add_tensor(a->first, UIR_SPACE_SCRATCH, "greatest", UIR_DTYPE_F32, column, 2,
                                            &a->greatest));
    UIR_TRY(uir_contraction_plan_add_tensor(a->first, UIR_SPACE_SCRATCH, "total", UIR_DTYPE_F32, column, 2, &a->total));
    UIR_TRY(uir_contraction_plan_add_tensor(a->first, UIR_SPACE_SCRATCH, "here", UIR_DTYPE_F32, element, 2, &a->here));
    UIR_TRY(
        uir_contraction_plan_add_tensor(a->first, UIR_SPACE_SCRATCH, "grown", UIR_DTYPE_F32, element, 2, &a->grown));
    UIR_TRY(uir_contraction_plan_add_tensor(a->first, UIR_SPACE_SCRATCH, "part", UIR_DTYPE_F32, element, 2, &a->part));
    return uir_contraction_plan_add_tensor(a->first, UIR_SPACE_SCRATCH, "scale", UIR_DTYPE_F32, element, 2, &a->scale);
}

static uir_status shape(attention *a, uir_arena *arena, uir_diagnostics *diagnostics) {
    uir_contraction_plan plans[2] = {*a->first, *a->second};
    uir_contraction_plans all = {plans, 2, 0};
    a->first = &plans[0], a->second = &plans[1];
    /* The second product first: its factor says where the softmax is. */
    UIR_TRY(uir_contraction_plan_choose(a->second, 1, NULL, arena, diagnostics));
    a->s.f = a->f;
    UIR_TRY_ALLOCATE(a->s.left_out, uir_arena_allocate_array(arena, a->f->statements.count + 1, sizeof *a->s.left_out));
    uint32_t weights = loaded(a->f, a->second->c.factors[0]);
    if (weights == NONE || !find_softmax(&a->s, weights))
        return uir_contraction_refuse(&a->second->c, "what is between two products is no softmax");
    UIR_TRY(uir_contraction_plan_choose(a->first, 0, a->s.left_out, arena, diagnostics));
    meet_rows(a);
    UIR_TRY(check_axes(a));
    for (uint32_t k = 0; k < 2; k++)
        if (plans[k].dtypes[0] != UIR_DTYPE_F32 || plans[k].dtypes[1] != UIR_DTYPE_F32)
            return uir_contraction_refuse(&plans[k].c, "products of other dtypes than f32 around a softmax");
    UIR_TRY(uir_contraction_plan_cross_outputs(a->second));
    a->first->copied[0] = !uir_contraction_plan_is_direct_a(a->first);
    a->first->copied[1] = !uir_contraction_plan_is_direct_b(a->first);
    a->second->copied[0] = a->second->given = true;
    a->second->copied[1] = !uir_contraction_plan_is_direct_b(a->second);
    UIR_TRY(uir_contraction_plan_choose_chain(a->first, a->second));
    UIR_TRY(uir_contraction_plans_allocate(&all, arena));
    UIR_TRY(uir_contraction_plans_make_tiles(&all, 0));
    UIR_TRY(uir_contraction_plans_make_tiles(&all, 1));
    a->second->copies[0] = a->first->sums;
    UIR_TRY(make_rows(a));
    const char *name = a->f->tensors.data[a->s.scores].name;
    uir_contraction_plan_say(a->first,
                             "%s: its columns are walked by tiles, the greatest of each row and the sum of its "
                             "exponentials go along",
                             name);
    uir_contraction_plan_say(a->first,
                             "%s: the second product is summed by the same tiles, scaled as the greatest grows, "
                             "and divided at the end",
                             a->f->tensors.data[a->second->c.tensor].name);
    return place(a);
}

uir_status uir_attention_schedule(const uir_loop_function *function, const uir_device *device,
                                  uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                  uir_loop_list *out) {
    uir_arena arena;
    uir_loop_function *f;
    UIR_TRY(uir_loop_clone(function, &f));
    uir_arena_init(&arena, &function->allocator);
    uir_contraction_plan plan = {
        .f = f, .device = device, .steps = steps, .choice = choice, .products = 1, .sides = {{.axis = NONE}}};
    uir_contraction_plan other = plan;
    attention a = {.first = &plan, .second = &other, .f = f};
    uir_status status = shape(&a, &arena, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_loop_verify(f, diagnostics);
    uir_arena_deinit(&arena);
    if (status == UIR_STATUS_OK) return uir_loop_list_add(out, f, NULL);
    uir_loop_function_destroy(f);
    return status;
}
