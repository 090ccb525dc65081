/* Which instances of blocks touch one element, and in what order they run.
 *
 * Two sites touch one element when all their indices are equal. The second one's variables are renamed (its twins), the
 * equations are asked of the prover: can the twin of a common loop's variable be greater, can it be less? A loop for
 * which neither can be is equal in all conflicting instances. Where all common loops are equal, the order is that of
 * the text. What the prover does not see is unknown, and unknown is refused. */
#include "lower/schedule/schedule_internal.h"

#include <string.h>

/* ---- sites ---- */
static uir_status add_access(uir_schedule *s, const uir_loop_access *access, const uir_substitution *values,
                             uir_site site, uir_sites *sites) {
    site.tensor = access->tensor;
    site.ordinal = sites->count;
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, access->tensor)->rank; d++) {
        site.at[d] = uir_substitute(s, values, access->indices[d]);
        if (!site.at[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return uir_vector_push(&s->scratch, sites, site);
}

static uir_status add_reads(uir_schedule *s, uint32_t id, const uir_substitution *values, uir_site site,
                            uir_sites *sites) {
    const uir_loop_expression *e = &s->function->expressions.data[id];
    if (e->kind == UIR_LOOP_LOAD) {
        site.filled = e->has_fill;
        return add_access(s, &e->load, values, site, sites);
    }
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        UIR_TRY(add_reads(s, e->arguments[i], values, site, sites));
    return UIR_STATUS_OK;
}

uir_status uir_sites_collect(uir_schedule *s, uint32_t block, uir_sites *sites) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    uir_substitution values = {0};
    uir_site site = {.block = block, .statement = block};
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (b->iters[i].data)
            UIR_TRY(add_access(s, b->iters[i].from, &values, site, sites));
        else
            UIR_TRY(uir_substitution_set(s, &values, b->iters[i].symbol, b->iters[i].value));
    }
    for (uint32_t id = b->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        const uir_loop_statement *statement = UIR_SCHEDULE_AT(s, id);
        bool state = statement->kind == UIR_LOOP_STATEMENT_UPDATE || statement->kind == UIR_LOOP_STATEMENT_COMBINE;
        site = (uir_site){.block = block, .statement = id};
        for (uint32_t i = 0; i < statement->value_count; i++)
            UIR_TRY(add_reads(s, statement->values[i], &values, site, sites));
        site.reduction = state;
        for (uint32_t i = 0; state && i < statement->target_count; i++)
            UIR_TRY(add_access(s, &statement->targets[i], &values, site, sites));
        site.write = true;
        for (uint32_t i = 0; i < statement->target_count; i++)
            UIR_TRY(add_access(s, &statement->targets[i], &values, site, sites));
    }
    return UIR_STATUS_OK;
}

static uir_status make_index(uir_schedule *s, uint32_t count, uint32_t **out) {
    UIR_TRY_ALLOCATE(*out, uir_arena_allocate_array(&s->scratch, count, sizeof **out));
    for (uint32_t i = 0; i < count; i++) (*out)[i] = UIR_LOOP_NONE;
    return UIR_STATUS_OK;
}

uir_status uir_sites_collect_all(uir_schedule *s, uint32_t statement, uir_sites *sites) {
    uint32_t count = uir_schedule_blocks(s, statement, NULL, 0), *blocks;
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks));
    uir_schedule_blocks(s, statement, blocks, count);
    UIR_TRY(make_index(s, s->function->tensors.count, &sites->of_tensor));
    UIR_TRY(make_index(s, s->function->statements.count, &sites->of_block));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = sites->count;
        UIR_TRY(uir_sites_collect(s, blocks[i], sites));
        for (uint32_t k = first; k < sites->count; k++) sites->data[k].ordinal -= first;
        sites->of_block[blocks[i]] = first;
    }
    for (uint32_t k = sites->count; k-- > 0;) {
        sites->data[k].next = sites->of_tensor[sites->data[k].tensor];
        sites->of_tensor[sites->data[k].tensor] = k;
    }
    return UIR_STATUS_OK;
}

/* ---- what holds at a place ---- */
static uir_status add_conditions(uir_schedule *s, const uir_loop_statement *statement, uir_conditions *list) {
    for (uint32_t i = 0; i < statement->condition_count; i++)
        UIR_TRY(uir_vector_push(&s->scratch, list, statement->conditions[i]));
    return UIR_STATUS_OK;
}

uir_status uir_order_given(uir_schedule *s, uint32_t statement, uir_conditions *list) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, statement, path);
    uir_dims *dims = s->function->dims;
    UIR_TRY(add_conditions(s, UIR_SCHEDULE_AT(s, statement), list));
    for (uint32_t k = 0; k < count; k++) {
        const uir_loop_statement *at = UIR_SCHEDULE_AT(s, path[k]);
        UIR_TRY(add_conditions(s, at, list));
        if (at->kind != UIR_LOOP_STATEMENT_FOR || uir_dim_is_const(dims, at->min, NULL)) continue;
        uir_condition begins = {UIR_RELATION_GE, uir_dim_symbol(dims, at->symbol), at->min};
        UIR_TRY(uir_vector_push(&s->scratch, list, begins));
    }
    for (uint32_t i = 0; i < s->function->requires_.count; i++)
        UIR_TRY(uir_vector_push(&s->scratch, list, s->function->requires_.data[i]));
    return UIR_STATUS_OK;
}

/* ---- conflicts ---- */
static uir_status find_twin(uir_schedule *s, uir_symbol symbol, const uir_substitution *twins, uir_dim *out_twin) {
    uir_dims *dims = s->function->dims;
    while (s->twins.count <= symbol.id) UIR_TRY(uir_vector_push(&s->arena, &s->twins, (uir_symbol){0}));
    if (!s->twins.data[symbol.id].id) {
        const char *name = uir_dims_symbol_name(dims, symbol);
        uir_symbol_facts facts = uir_dims_symbol_facts(dims, symbol);
        uir_symbol twin;
        if (facts.bound.id) facts.bound = uir_substitute(s, twins, facts.bound);
        UIR_TRY(uir_dims_add_symbol(dims, name, strlen(name), facts, &twin));
        s->twins.data[symbol.id].id = twin.id + 1;
    }
    *out_twin = uir_dim_symbol(dims, (uir_symbol){s->twins.data[symbol.id].id - 1});
    return out_twin->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

enum { MAX_EQUATIONS = 2 * UIR_LOOP_MAX_RANK };
typedef struct inquiry {
    uir_schedule *s;
    uir_dim left[MAX_EQUATIONS], right[MAX_EQUATIONS];
    uint32_t count;
    uir_conditions given;
} inquiry;

/* Equal quotients and equal remainders of one divisor: what is divided is equal. */
static void add_quotients(inquiry *q) {
    uir_dims *dims = q->s->function->dims;
    uint32_t count = q->count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count && q->count < MAX_EQUATIONS; k++) {
            uir_dim_node a = *uir_dim_get(dims, q->left[i]), b = *uir_dim_get(dims, q->right[i]);
            uir_dim_node c = *uir_dim_get(dims, q->left[k]), d = *uir_dim_get(dims, q->right[k]);
            if (a.kind != UIR_DIM_FLOORDIV || b.kind != a.kind || c.kind != UIR_DIM_MOD || d.kind != c.kind) continue;
            if (!uir_dim_equal(a.operands[0], c.operands[0]) || !uir_dim_equal(a.operands[1], c.operands[1])) continue;
            if (!uir_dim_equal(b.operands[0], d.operands[0]) || !uir_dim_equal(b.operands[1], d.operands[1])) continue;
            if (!uir_dim_equal(a.operands[1], b.operands[1])) continue;
            q->left[q->count] = a.operands[0];
            q->right[q->count++] = b.operands[0];
        }
    }
}

/* Does the equation say anything of the loop? */
static bool is_about(inquiry *q, uint32_t e, uir_dim loop, uir_dim twin) {
    uir_dims *dims = q->s->function->dims;
    uir_symbol a = {0}, b = {0};
    return uir_dim_is_symbol(dims, loop, &a) && uir_dim_is_symbol(dims, twin, &b) &&
           (uir_dim_uses(q->s, q->left[e], a) || uir_dim_uses(q->s, q->right[e], b));
}

/* No equation can hold when also `twin relation loop + offset`. */
static uir_status is_refuted(inquiry *q, uir_dim loop, uir_dim twin, uir_relation relation, int64_t offset,
                             bool *out_refuted) {
    uir_dims *dims = q->s->function->dims;
    uir_conditions with = {0};
    uir_condition extra = {relation, twin, uir_dim_add(dims, loop, uir_dim_const(dims, offset))};
    UIR_TRY(uir_vector_push(&q->s->scratch, &with, extra));
    for (uint32_t i = 0; i < q->given.count; i++) UIR_TRY(uir_vector_push(&q->s->scratch, &with, q->given.data[i]));
    *out_refuted = false;
    for (uint32_t e = 0; e < q->count && !*out_refuted; e++) {
        if (!is_about(q, e, loop, twin)) continue;
        *out_refuted = uir_order_proved(q->s, &with, q->left[e], UIR_RELATION_LT, q->right[e]) ||
                       uir_order_proved(q->s, &with, q->left[e], UIR_RELATION_GT, q->right[e]);
    }
    return UIR_STATUS_OK;
}

static bool is_never(inquiry *q) {
    for (uint32_t e = 0; e < q->count; e++) {
        if (uir_dim_equal(q->left[e], q->right[e])) continue;
        if (uir_order_proved(q->s, &q->given, q->left[e], UIR_RELATION_LT, q->right[e]) ||
            uir_order_proved(q->s, &q->given, q->left[e], UIR_RELATION_GT, q->right[e]))
            return true;
    }
    return false;
}

static uir_status make_equal(inquiry *q, uir_symbol symbol, uir_dim twin) {
    uir_substitution back = {0};
    const uir_dim_node *node = uir_dim_get(q->s->function->dims, twin);
    uir_symbol twin_symbol = {(uint32_t)node->value};
    UIR_TRY(uir_substitution_set(q->s, &back, twin_symbol, uir_dim_symbol(q->s->function->dims, symbol)));
    for (uint32_t e = 0; e < q->count; e++) {
        q->right[e] = uir_substitute(q->s, &back, q->right[e]);
        if (!q->right[e].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < q->given.count; i++) {
        q->given.data[i].left = uir_substitute(q->s, &back, q->given.data[i].left);
        q->given.data[i].right = uir_substitute(q->s, &back, q->given.data[i].right);
    }
    return UIR_STATUS_OK;
}

/* Where conditions on the loop leave one iteration, no equation need tell it. */
static uir_status is_pinned(inquiry *q, uir_dim loop, uir_dim twin, uir_direction *out) {
    uir_dims *dims = q->s->function->dims;
    uir_conditions about = {0};
    uir_symbol symbols[2];
    if (!uir_dim_is_symbol(dims, loop, &symbols[0]) || !uir_dim_is_symbol(dims, twin, &symbols[1]))
        return UIR_STATUS_OK;
    for (uint32_t i = 0; i < q->given.count; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (uir_dim_uses(q->s, q->given.data[i].left, symbols[k]) ||
                uir_dim_uses(q->s, q->given.data[i].right, symbols[k]))
                UIR_TRY(uir_vector_push(&q->s->scratch, &about, q->given.data[i]));
    if (about.count > 1 && uir_order_proved(q->s, &about, loop, UIR_RELATION_EQ, twin)) *out = UIR_DIRECTION_EQUAL;
    return UIR_STATUS_OK;
}

static uir_status find_direction(inquiry *q, uir_dim loop, uir_dim twin, uir_direction *out) {
    bool greater, less, equal;
    uir_dims *dims = q->s->function->dims;
    uir_dim apart = uir_dim_sub(dims, loop, twin), behind = uir_dim_sub(dims, twin, loop);
    for (uint32_t e = 0; e < q->count; e++) { /* the commonest case, without the prover */
        uir_dim difference = uir_dim_sub(dims, q->left[e], q->right[e]);
        if (!difference.id) return UIR_STATUS_OUT_OF_MEMORY;
        if (uir_dim_equal(difference, apart) || uir_dim_equal(difference, behind)) {
            *out = UIR_DIRECTION_EQUAL;
            return UIR_STATUS_OK;
        }
    }
    UIR_TRY(is_refuted(q, loop, twin, UIR_RELATION_GE, 1, &greater));
    UIR_TRY(is_refuted(q, loop, twin, UIR_RELATION_LE, -1, &less));
    if (greater && less) {
        *out = UIR_DIRECTION_EQUAL;
        return UIR_STATUS_OK;
    }
    *out = UIR_DIRECTION_ANY;
    if (!greater && !less) return is_pinned(q, loop, twin, out);
    UIR_TRY(is_refuted(q, loop, twin, UIR_RELATION_EQ, 0, &equal));
    if (less) *out = equal ? UIR_DIRECTION_BEFORE : UIR_DIRECTION_BEFORE_OR_EQUAL; /* the twin is y's: y is later */
    if (greater) *out = equal ? UIR_DIRECTION_AFTER : UIR_DIRECTION_AFTER_OR_EQUAL;
    return UIR_STATUS_OK;
}

/* A loop of one turn: both are in it. */
static bool turns_once(uir_schedule *s, uint32_t loop) {
    int64_t extent;
    return uir_dim_is_const(s->function->dims, UIR_SCHEDULE_AT(s, loop)->extent, &extent) && extent <= 1;
}

static uir_status add_equations(inquiry *q, const uir_site *x, const uir_site *y, const uir_substitution *twins) {
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(q->s, x->tensor)->rank; d++) {
        q->left[q->count] = x->at[d];
        q->right[q->count] = uir_substitute(q->s, twins, y->at[d]);
        if (!q->right[q->count++].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    UIR_TRY(uir_order_given(q->s, x->block, &q->given));
    uint32_t first = q->given.count;
    UIR_TRY(uir_order_given(q->s, y->block, &q->given));
    for (uint32_t i = first; i < q->given.count; i++) {
        q->given.data[i].left = uir_substitute(q->s, twins, q->given.data[i].left);
        q->given.data[i].right = uir_substitute(q->s, twins, q->given.data[i].right);
        if (!q->given.data[i].left.id || !q->given.data[i].right.id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return UIR_STATUS_OK;
}

uir_status uir_conflict_prove(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                              uir_conflict *out) {
    uint32_t px[UIR_SCHEDULE_MAX_DEPTH], py[UIR_SCHEDULE_MAX_DEPTH];
    uint32_t nx = uir_tree_path(s, x->block, px), ny = uir_tree_path(s, y->block, py);
    uir_dim twins_of[UIR_SCHEDULE_MAX_DEPTH];
    uir_substitution twins = {0};
    inquiry q = {.s = s};
    *out = (uir_conflict){0};
    bool common = true, held = equal_until != UIR_LOOP_NONE;
    uint32_t held_count = 0;
    for (uint32_t k = 0; k < ny; k++) {
        const uir_loop_statement *loop = UIR_SCHEDULE_AT(s, py[k]);
        common = common && k < nx && px[k] == py[k];
        held = held && py[k] != equal_until;
        if (loop->kind != UIR_LOOP_STATEMENT_FOR) continue;
        uir_dim twin;
        UIR_TRY(find_twin(s, loop->symbol, &twins, &twin));
        UIR_TRY(uir_substitution_set(s, &twins, loop->symbol, twin));
        if (!common) continue;
        twins_of[out->loop_count] = twin;
        out->loops[out->loop_count++] = py[k];
        if (held) held_count = out->loop_count;
    }
    const uir_loop_statement *block = UIR_SCHEDULE_AT(s, y->block);
    for (uint32_t i = 0; i < block->iter_count; i++) {
        uir_dim twin;
        if (!block->iters[i].data) continue;
        UIR_TRY(find_twin(s, block->iters[i].symbol, &twins, &twin));
        UIR_TRY(uir_substitution_set(s, &twins, block->iters[i].symbol, twin));
    }
    UIR_TRY(add_equations(&q, x, y, &twins));
    add_quotients(&q);
    for (uint32_t k = 0; k < held_count; k++)
        UIR_TRY(make_equal(&q, UIR_SCHEDULE_AT(s, out->loops[k])->symbol, twins_of[k]));
    for (uint32_t k = held_count; k < out->loop_count; k++) out->directions[k] = UIR_DIRECTION_ANY;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = held_count; k < out->loop_count; k++) {
            if (out->directions[k] == UIR_DIRECTION_EQUAL) continue;
            uir_symbol symbol = UIR_SCHEDULE_AT(s, out->loops[k])->symbol;
            if (turns_once(s, out->loops[k]))
                out->directions[k] = UIR_DIRECTION_EQUAL;
            else
                UIR_TRY(
                    find_direction(&q, uir_dim_symbol(s->function->dims, symbol), twins_of[k], &out->directions[k]));
            if (out->directions[k] != UIR_DIRECTION_EQUAL) continue;
            if (out->loops[k] == equal_until) return UIR_STATUS_OK; /* that is what is asked */
            UIR_TRY(make_equal(&q, symbol, twins_of[k]));
            again = true;
        }
    }
    out->never = never && is_never(&q);
    return UIR_STATUS_OK;
}

/* ---- order ---- */
static uir_order text_order(uir_schedule *s, const uir_site *x, const uir_site *y) {
    if (x->block == y->block)
        return x->ordinal == y->ordinal  ? UIR_ORDER_NEVER
               : x->ordinal < y->ordinal ? UIR_ORDER_BEFORE
                                         : UIR_ORDER_AFTER;
    return s->places.data[x->block] < s->places.data[y->block] ? UIR_ORDER_BEFORE : UIR_ORDER_AFTER;
}

/* Conflicts of instances that are in one iteration of `within`, and of all loops around it: with these held, what is
 * asked about begins with y's next loop. */
static uint32_t held_until(uir_schedule *s, const uir_site *y, uint32_t within) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, y->block, path);
    for (uint32_t k = 0; k + 1 < count; k++)
        if (path[k] == within) return path[k + 1];
    return y->block; /* no loop: all are held */
}

uir_status uir_order_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t within, bool never,
                          uir_order *out) {
    uir_conflict c;
    uint32_t until = within == UIR_LOOP_NONE ? UIR_LOOP_NONE : held_until(s, y, within);
    UIR_TRY(uir_conflict_find(s, x, y, until, never, &c));
    UIR_TRY(uir_tree_index(s));
    if (c.never) {
        *out = UIR_ORDER_NEVER;
        return UIR_STATUS_OK;
    }
    *out = text_order(s, x, y);
    for (uint32_t k = c.loop_count; k-- > 0;) {
        switch (c.directions[k]) {
        case UIR_DIRECTION_EQUAL:
            break;
        case UIR_DIRECTION_BEFORE:
            *out = UIR_ORDER_BEFORE;
            break;
        case UIR_DIRECTION_AFTER:
            *out = UIR_ORDER_AFTER;
            break;
        case UIR_DIRECTION_BEFORE_OR_EQUAL:
            *out = *out == UIR_ORDER_BEFORE || *out == UIR_ORDER_NEVER ? UIR_ORDER_BEFORE : UIR_ORDER_UNKNOWN;
            break;
        case UIR_DIRECTION_AFTER_OR_EQUAL:
            *out = *out == UIR_ORDER_AFTER || *out == UIR_ORDER_NEVER ? UIR_ORDER_AFTER : UIR_ORDER_UNKNOWN;
            break;
        case UIR_DIRECTION_ANY:
            *out = UIR_ORDER_UNKNOWN;
            break;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- orders before and after a change ---- */
static bool is_moved(uir_schedule *s, const uint32_t *moved, uint32_t count, uint32_t block) {
    for (uint32_t i = 0; i < count; i++)
        if (uir_tree_holds(s, moved[i], block)) return true;
    return false;
}

uir_status uir_orders_take(uir_schedule *s, const uint32_t *moved, uint32_t moved_count, uir_orders *orders) {
    uir_sites all = {0};
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &all));
    for (uint32_t i = 0; i < all.count; i++) {
        if (!is_moved(s, moved, moved_count, all.data[i].block)) continue;
        UIR_SITES_OF_TENSOR(&all, all.data[i].tensor, k) {
            const uir_site *x = &all.data[i], *y = &all.data[k];
            if ((!x->write && !y->write) || (orders->except && orders->except[x->tensor])) continue;
            if (is_moved(s, moved, moved_count, y->block)) continue;
            uir_order_record record = {.x = *x, .y = *y};
            UIR_TRY(uir_order_find(s, x, y, orders->within, false, &record.order));
            UIR_TRY(uir_vector_push(&s->scratch, orders, record));
        }
    }
    return UIR_STATUS_OK;
}

static const uir_site *find_site(const uir_sites *sites, const uir_site *like) {
    uint32_t first = sites->of_block[like->block], i = first + like->ordinal;
    bool found = first != UIR_LOOP_NONE && i < sites->count && sites->data[i].block == like->block;
    return found ? &sites->data[i] : NULL;
}

uir_status uir_orders_check(uir_schedule *s, const uir_orders *orders) {
    uir_sites all = {0};
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &all));
    for (uint32_t i = 0; i < orders->count; i++) {
        const uir_order_record *r = &orders->data[i];
        const uir_site *x = find_site(&all, &r->x), *y = find_site(&all, &r->y);
        uir_order now = UIR_ORDER_NEVER;
        if (!x || !y || r->order == UIR_ORDER_NEVER) continue;
        UIR_TRY(uir_order_find(s, x, y, orders->within, false, &now));
        if (now == UIR_ORDER_NEVER || (now == r->order && now != UIR_ORDER_UNKNOWN)) continue;
        UIR_TRY(uir_order_find(s, x, y, orders->within, true, &now));
        if (now == UIR_ORDER_NEVER) continue;
        return uir_step_refuse(
            s, "%s and %s touch the same elements of %s, and their order is %s", UIR_SCHEDULE_AT(s, x->block)->name,
            UIR_SCHEDULE_AT(s, y->block)->name, UIR_SCHEDULE_TENSOR(s, x->tensor)->name,
            r->order == UIR_ORDER_UNKNOWN || now == UIR_ORDER_UNKNOWN ? "not proved to stay" : "reversed");
    }
    return UIR_STATUS_OK;
}
