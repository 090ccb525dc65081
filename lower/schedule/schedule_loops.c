/* Loops: split, fuse, reorder, merge, kinds. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

static uir_status need_loop(uir_schedule *s, uint32_t loop) {
    if (uir_tree_reachable(s, loop, UIR_LOOP_STATEMENT_FOR)) return UIR_STATUS_OK;
    return uir_step_refuse(s, "statement %u is not a loop", loop);
}

static uir_status make_name(uir_schedule *s, const char *base, const char *end, uint32_t place, const char **out) {
    char name[200];
    snprintf(name, sizeof name, "%.150s%s", base, end);
    return uir_tree_loop_name(s, name, place, out);
}

static uir_status guard_blocks(uir_schedule *s, uint32_t statement, uir_relation relation, uir_dim left,
                               uir_dim right) {
    uint32_t count = uir_schedule_blocks(s, statement, NULL, 0), *blocks;
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks));
    uir_schedule_blocks(s, statement, blocks, count);
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_tree_add_condition(s, blocks[i], relation, left, right));
    return UIR_STATUS_OK;
}

static uir_symbol_facts range_facts(uir_dims *dims, uir_dim min, uir_dim extent) {
    int64_t least, greatest;
    uir_dim_bounds(dims, min, &least, &greatest);
    return (uir_symbol_facts){least, UIR_DIM_UNBOUNDED, 1, uir_dim_add(dims, min, extent)};
}

/* ---- split ---- */
static uir_status split(uir_schedule *s, uint32_t loop, uir_dim factor, uint32_t *out_inner) {
    uir_dims *dims = s->function->dims;
    UIR_TRY(need_loop(s, loop));
    if (!factor.id || !uir_dim_is_of_sizes(s, factor)) return uir_step_refuse(s, "a factor must be made of sizes only");
    uir_conditions given = {0};
    UIR_TRY(uir_order_given(s, loop, &given));
    if (!uir_order_proved(s, &given, factor, UIR_RELATION_GE, uir_dim_const(dims, 1)))
        return uir_step_refuse(s, "the factor %s is not proved to be at least 1", uir_step_dim_text(s, factor));
    uir_loop_statement old = *UIR_SCHEDULE_AT(s, loop);
    const char *outer_name, *inner_name, *text = uir_step_loop_text(s, loop);
    UIR_TRY(make_name(s, old.name, "_o", loop, &outer_name));
    UIR_TRY(make_name(s, old.name, "_i", loop, &inner_name));
    uir_dim zero = uir_dim_const(dims, 0), blocks = uir_dim_ceildiv(dims, old.extent, factor);
    uint32_t inner;
    uir_symbol outer_symbol;
    UIR_TRY(uir_tree_add_loop(s, inner_name, zero, factor, &inner));
    UIR_TRY(uir_dims_add_symbol(dims, outer_name, strlen(outer_name), range_facts(dims, zero, blocks), &outer_symbol));
    uir_loop_statement *outer_loop = UIR_SCHEDULE_AT(s, loop), *inner_loop = UIR_SCHEDULE_AT(s, inner);
    uir_dim within = uir_dim_add(dims, uir_dim_mul(dims, uir_dim_symbol(dims, outer_symbol), factor),
                                 uir_dim_symbol(dims, inner_loop->symbol));
    inner_loop->first_child = old.first_child;
    outer_loop->first_child = inner;
    outer_loop->name = outer_name;
    outer_loop->symbol = outer_symbol;
    outer_loop->min = zero;
    outer_loop->extent = blocks;
    s->indexed = false;
    uir_substitution values = {0};
    UIR_TRY(uir_substitution_set(s, &values, old.symbol, uir_dim_add(dims, old.min, within)));
    UIR_TRY(uir_tree_substitute(s, inner, &values));
    bool exact = uir_order_proved(s, &given, uir_dim_mul(dims, blocks, factor), UIR_RELATION_EQ, old.extent);
    if (!exact) UIR_TRY(guard_blocks(s, inner, UIR_RELATION_LT, within, old.extent));
    UIR_TRY(uir_region_check_binds(s, loop));
    uir_step_say(s, "split %s by %s: %s, %s", text, uir_step_dim_text(s, factor), outer_name, inner_name);
    *out_inner = inner;
    return UIR_STATUS_OK;
}

uir_status uir_schedule_split(uir_schedule *schedule, uint32_t loop, uir_dim factor, uint32_t *out_outer,
                              uint32_t *out_inner) {
    uint32_t inner = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, split(schedule, loop, factor, &inner)));
    uir_step_give(schedule, out_outer, loop);
    uir_step_give(schedule, out_inner, inner);
    return UIR_STATUS_OK;
}

/* ---- extend ---- */
static uir_status extend(uir_schedule *s, uint32_t loop, uir_dim extent) {
    uir_dims *dims = s->function->dims;
    uir_conditions given = {0};
    UIR_TRY(need_loop(s, loop));
    if (!extent.id || !uir_dim_is_of_sizes(s, extent))
        return uir_step_refuse(s, "an extent must be made of sizes only");
    UIR_TRY(uir_order_given(s, loop, &given));
    uir_loop_statement old = *UIR_SCHEDULE_AT(s, loop);
    if (!uir_order_proved(s, &given, extent, UIR_RELATION_GE, old.extent))
        return uir_step_refuse(s, "%s is not proved to be at least as long as %s", uir_step_dim_text(s, extent),
                               old.name);
    const char *name, *text = uir_step_loop_text(s, loop);
    uir_symbol symbol;
    UIR_TRY(make_name(s, old.name, "_e", loop, &name));
    UIR_TRY(uir_dims_add_symbol(dims, name, strlen(name), range_facts(dims, old.min, extent), &symbol));
    UIR_SCHEDULE_AT(s, loop)->name = name;
    UIR_SCHEDULE_AT(s, loop)->symbol = symbol;
    UIR_SCHEDULE_AT(s, loop)->extent = extent;
    s->indexed = false;
    uir_substitution values = {0};
    UIR_TRY(uir_substitution_set(s, &values, old.symbol, uir_dim_symbol(dims, symbol)));
    for (uint32_t id = old.first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next)
        UIR_TRY(uir_tree_substitute(s, id, &values));
    if (!uir_order_proved(s, &given, extent, UIR_RELATION_EQ, old.extent))
        UIR_TRY(guard_blocks(s, loop, UIR_RELATION_LT, uir_dim_symbol(dims, symbol),
                             uir_dim_add(dims, old.min, old.extent)));
    UIR_TRY(uir_region_check_binds(s, loop));
    uir_step_say(s, "extend %s to %s: %s", text, uir_step_dim_text(s, extent), name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_extend(uir_schedule *schedule, uint32_t loop, uir_dim extent) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, extend(schedule, loop, extent));
}

/* ---- unit loops ---- */
static uir_status add_unit_loop(uir_schedule *s, uint32_t loop, uint32_t *out_loop) {
    const char *name;
    UIR_TRY(need_loop(s, loop));
    const char *text = uir_step_loop_text(s, loop);
    UIR_TRY(make_name(s, UIR_SCHEDULE_AT(s, loop)->name, "_u", loop, &name));
    UIR_TRY(
        uir_tree_add_loop(s, name, uir_dim_const(s->function->dims, 0), uir_dim_const(s->function->dims, 1), out_loop));
    uint32_t *link = uir_tree_link(s, loop);
    UIR_SCHEDULE_AT(s, *out_loop)->next = UIR_SCHEDULE_AT(s, loop)->next;
    UIR_SCHEDULE_AT(s, *out_loop)->first_child = loop;
    UIR_SCHEDULE_AT(s, loop)->next = UIR_LOOP_NONE;
    *link = *out_loop;
    s->indexed = false;
    uir_step_say(s, "add unit loop around %s: %s", text, name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_add_unit_loop(uir_schedule *schedule, uint32_t loop, uint32_t *out_loop) {
    uint32_t made = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, add_unit_loop(schedule, loop, &made)));
    uir_step_give(schedule, out_loop, made);
    return UIR_STATUS_OK;
}

/* ---- fuse ---- */
static uir_status fuse(uir_schedule *s, uint32_t outer, uint32_t inner) {
    uir_dims *dims = s->function->dims;
    UIR_TRY(need_loop(s, outer));
    UIR_TRY(need_loop(s, inner));
    uir_loop_statement o = *UIR_SCHEDULE_AT(s, outer), i = *UIR_SCHEDULE_AT(s, inner);
    if (o.first_child != inner || i.next != UIR_LOOP_NONE)
        return uir_step_refuse(s, "%s is not the only statement in %s", i.name, o.name);
    if (o.loop_kind != i.loop_kind || o.loop_kind == UIR_LOOP_BOUND)
        return uir_step_refuse(s, "%s and %s are of different kinds", o.name, i.name);
    if (uir_schedule_is_reduce(s, outer) != uir_schedule_is_reduce(s, inner))
        return uir_step_refuse(s, "only one of %s and %s is a reduction loop", o.name, i.name);
    if (uir_dim_uses(s, i.min, o.symbol) || uir_dim_uses(s, i.extent, o.symbol))
        return uir_step_refuse(s, "the range of %s depends on %s", i.name, o.name);
    char base[200];
    const char *name, *first = uir_step_loop_text(s, outer), *second = uir_step_loop_text(s, inner);
    snprintf(base, sizeof base, "%.70s_%.70s", o.name, i.name);
    UIR_TRY(make_name(s, base, "_f", outer, &name));
    uir_dim one = uir_dim_const(dims, 1), zero = uir_dim_const(dims, 0);
    uir_conditions given = {0};
    UIR_TRY(uir_order_given(s, inner, &given));
    bool positive = uir_order_proved(s, &given, i.extent, UIR_RELATION_GE, one);
    uir_dim divisor = positive ? i.extent : uir_dim_max(dims, i.extent, one);
    uir_dim extent = uir_dim_mul(dims, o.extent, i.extent);
    if (!extent.id || !divisor.id) return UIR_STATUS_OUT_OF_MEMORY;
    uir_symbol symbol;
    UIR_TRY(uir_dims_add_symbol(dims, name, strlen(name), range_facts(dims, zero, extent), &symbol));
    uir_dim variable = uir_dim_symbol(dims, symbol);
    uir_substitution values = {0};
    UIR_TRY(uir_substitution_set(s, &values, o.symbol,
                                 uir_dim_add(dims, o.min, uir_dim_floordiv(dims, variable, divisor))));
    UIR_TRY(uir_substitution_set(s, &values, i.symbol, uir_dim_add(dims, i.min, uir_dim_mod(dims, variable, divisor))));
    uir_loop_statement *fused = UIR_SCHEDULE_AT(s, outer);
    fused->first_child = i.first_child;
    s->indexed = false;
    for (uint32_t id = i.first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next)
        UIR_TRY(uir_tree_substitute(s, id, &values));
    fused->name = name;
    fused->symbol = symbol;
    fused->min = zero;
    fused->extent = extent;
    if (!positive) UIR_TRY(guard_blocks(s, outer, UIR_RELATION_GE, i.extent, one));
    UIR_TRY(uir_region_check_binds(s, outer));
    uir_step_say(s, "fuse %s, %s: %s", first, second, name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_fuse(uir_schedule *schedule, uint32_t outer, uint32_t inner, uint32_t *out_fused) {
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, fuse(schedule, outer, inner)));
    uir_step_give(schedule, out_fused, outer);
    return UIR_STATUS_OK;
}

/* ---- what iterations have for themselves ---- */
static bool is_shared(const uir_schedule *s, const char *space) {
    int index = s->machine && space ? uir_machine_find_space(s->machine, space, strlen(space)) : -1;
    return !space || (index >= 0 && s->machine->spaces[index].scope == UIR_SCOPE_DEVICE);
}

typedef enum privacy { PRIVACY_UNASKED, PRIVACY_NO, PRIVACY_YES } privacy;

/* Each iteration of the loop writes all that it reads of the tensor, and nothing else looks at it: each may have a
 * tensor of its own. */
static uir_status prove_private(uir_schedule *s, const uir_sites *sites, uint32_t loop, uint32_t tensor, bool *out) {
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor);
    *out = t->role == UIR_LOOP_ROLE_TEMP && !is_shared(s, t->space);
    UIR_SITES_OF_TENSOR(sites, tensor, i) {
        const uir_site *read = &sites->data[i];
        if (!*out) return UIR_STATUS_OK;
        *out = uir_tree_holds(s, loop, read->block);
        if (read->write) continue;
        bool covered = false;
        UIR_SITES_OF_TENSOR(sites, tensor, k) {
            const uir_site *write = &sites->data[k];
            if (*out && !covered && write->write && !write->reduction)
                UIR_TRY(uir_region_covers(s, write, read, &covered));
        }
        *out = *out && covered;
    }
    return UIR_STATUS_OK;
}

/* ---- reorder ---- */
typedef struct nest {
    uint32_t before[UIR_SCHEDULE_MAX_DEPTH], after[UIR_SCHEDULE_MAX_DEPTH];
    uint32_t count;
} nest;

static bool is_listed(const uint32_t *loops, uint32_t count, uint32_t loop) {
    for (uint32_t i = 0; i < count; i++)
        if (loops[i] == loop) return true;
    return false;
}

/* From the topmost of the loops down to the last of them, all of a perfect nest. */
static uir_status find_nest(uir_schedule *s, const uint32_t *loops, uint32_t count, nest *out) {
    uint32_t top = loops[0], found = 0;
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(need_loop(s, loops[i]));
        if (is_listed(loops, i, loops[i])) return uir_step_refuse(s, "a loop is named twice");
        if (uir_tree_holds(s, loops[i], top)) top = loops[i];
    }
    for (uint32_t at = top;; at = UIR_SCHEDULE_AT(s, at)->first_child) {
        if (out->count == UIR_SCHEDULE_MAX_DEPTH || !uir_tree_reachable(s, at, UIR_LOOP_STATEMENT_FOR) ||
            (at != top && UIR_SCHEDULE_AT(s, at)->next != UIR_LOOP_NONE))
            return uir_step_refuse(s, "the loops are not perfectly nested");
        out->before[out->count++] = at;
        found += is_listed(loops, count, at);
        if (found == count) break;
    }
    uint32_t next = 0;
    for (uint32_t k = 0; k < out->count; k++)
        out->after[k] = is_listed(loops, count, out->before[k]) ? loops[next++] : out->before[k];
    return UIR_STATUS_OK;
}

static uint32_t place_of(const uint32_t *list, uint32_t count, uint32_t loop) {
    uint32_t k = 0;
    while (k < count && list[k] != loop) k++;
    return k;
}

static uir_status check_ranges(uir_schedule *s, const nest *n) {
    for (uint32_t a = 0; a < n->count; a++) {
        for (uint32_t b = a; b < n->count; b++) {
            const uir_loop_statement *outer = UIR_SCHEDULE_AT(s, n->after[a]), *inner = UIR_SCHEDULE_AT(s, n->after[b]);
            if (uir_dim_uses(s, outer->min, inner->symbol) || uir_dim_uses(s, outer->extent, inner->symbol))
                return uir_step_refuse(s, "the range of %s depends on %s", outer->name, inner->name);
        }
    }
    return UIR_STATUS_OK;
}

/* Loops that are not equal in conflicting instances keep their order among themselves, unless each iteration of the
 * inner one has what they conflict over for itself. `sites`: the function's. */
static uir_status check_conflict(uir_schedule *s, const uir_sites *sites, const nest *n, const uir_site *x,
                                 const uir_site *y) {
    uir_conflict c;
    bool own;
    UIR_TRY(uir_conflict_find(s, x, y, UIR_LOOP_NONE, true, &c));
    if (c.never) return UIR_STATUS_OK;
    for (uint32_t a = 0; a < c.loop_count; a++) {
        uint32_t pa = place_of(n->after, n->count, c.loops[a]);
        if (c.directions[a] == UIR_DIRECTION_EQUAL || pa == n->count) continue;
        for (uint32_t b = a + 1; b < c.loop_count; b++) {
            uint32_t pb = place_of(n->after, n->count, c.loops[b]);
            if (c.directions[b] == UIR_DIRECTION_EQUAL || pb == n->count || pa < pb) continue;
            bool update = x->reduction && y->reduction && x->statement == y->statement;
            if (update && s->function->monoids.data[UIR_SCHEDULE_AT(s, x->statement)->monoid].commutative) continue;
            UIR_TRY(prove_private(s, sites, c.loops[b], x->tensor, &own));
            if (own) continue;
            if (update)
                return uir_step_refuse(
                    s, "the order of %s and %s matters to the reduction %s: its monoid is not commutative",
                    UIR_SCHEDULE_AT(s, c.loops[a])->name, UIR_SCHEDULE_AT(s, c.loops[b])->name,
                    UIR_SCHEDULE_AT(s, x->block)->name);
            return uir_step_refuse(s, "%s and %s pass elements of %s across %s and %s",
                                   UIR_SCHEDULE_AT(s, x->block)->name, UIR_SCHEDULE_AT(s, y->block)->name,
                                   UIR_SCHEDULE_TENSOR(s, x->tensor)->name, UIR_SCHEDULE_AT(s, c.loops[a])->name,
                                   UIR_SCHEDULE_AT(s, c.loops[b])->name);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status reorder(uir_schedule *s, const uint32_t *loops, uint32_t count) {
    nest n = {.count = 0};
    uir_sites sites = {0};
    if (count < 2) return uir_step_refuse(s, "reorder requires two loops or more");
    UIR_TRY(find_nest(s, loops, count, &n));
    UIR_TRY(check_ranges(s, &n));
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    for (uint32_t i = 0; i < sites.count; i++) {
        if (!sites.data[i].write || !uir_tree_holds(s, n.before[0], sites.data[i].block)) continue;
        UIR_SITES_OF_TENSOR(&sites, sites.data[i].tensor, k)
        if (uir_tree_holds(s, n.before[0], sites.data[k].block))
            UIR_TRY(check_conflict(s, &sites, &n, &sites.data[i], &sites.data[k]));
    }
    uint32_t *link = uir_tree_link(s, n.before[0]), next = UIR_SCHEDULE_AT(s, n.before[0])->next;
    uint32_t body = UIR_SCHEDULE_AT(s, n.before[n.count - 1])->first_child;
    char list[600] = "";
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", uir_step_loop_text(s, loops[i]));
    }
    *link = n.after[0];
    for (uint32_t k = 0; k < n.count; k++) {
        uir_loop_statement *loop = UIR_SCHEDULE_AT(s, n.after[k]);
        loop->next = k ? UIR_LOOP_NONE : next;
        loop->first_child = k + 1 < n.count ? n.after[k + 1] : body;
    }
    s->indexed = false;
    uir_step_say(s, "reorder %s", list);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_reorder(uir_schedule *schedule, const uint32_t *loops, uint32_t count) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, reorder(schedule, loops, count));
}

/* ---- merge ---- */
/* Loops below get other names where they would stand in a loop of the same one. */
static uir_status rename_below(uir_schedule *s, uint32_t id, const char *taken) {
    for (; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        if (UIR_SCHEDULE_AT(s, id)->kind == UIR_LOOP_STATEMENT_BLOCK) continue;
        if (UIR_SCHEDULE_AT(s, id)->kind == UIR_LOOP_STATEMENT_FOR && !strcmp(UIR_SCHEDULE_AT(s, id)->name, taken)) {
            uir_dims *dims = s->function->dims;
            uir_loop_statement *loop = UIR_SCHEDULE_AT(s, id);
            uir_symbol before = loop->symbol;
            const char *name;
            uir_substitution values = {0};
            UIR_TRY(uir_tree_loop_name(s, loop->name, id, &name));
            UIR_TRY(uir_dims_add_symbol(dims, name, strlen(name), range_facts(dims, loop->min, loop->extent),
                                        &loop->symbol));
            UIR_TRY(uir_substitution_set(s, &values, before, uir_dim_symbol(dims, loop->symbol)));
            loop->name = name;
            for (uint32_t child = loop->first_child; child != UIR_LOOP_NONE; child = UIR_SCHEDULE_AT(s, child)->next)
                UIR_TRY(uir_tree_substitute(s, child, &values));
        }
        UIR_TRY(rename_below(s, UIR_SCHEDULE_AT(s, id)->first_child, taken));
    }
    return UIR_STATUS_OK;
}

/* `goes`, whose body becomes part of what `stays` repeats: at its end, or, where the loop that goes is the first of the
 * two, at its beginning. */
static uir_status merge(uir_schedule *s, uint32_t a, uint32_t b, bool into) {
    UIR_TRY(need_loop(s, a));
    UIR_TRY(need_loop(s, b));
    uir_loop_statement *first = UIR_SCHEDULE_AT(s, a), *second = UIR_SCHEDULE_AT(s, b);
    const char *first_text = uir_step_loop_text(s, a), *second_text = uir_step_loop_text(s, b);
    if (a == b || uir_schedule_parent(s, a) != uir_schedule_parent(s, b) || s->places.data[a] > s->places.data[b])
        return uir_step_refuse(s, "%s is not before %s in one list", first_text, second_text);
    uir_conditions given = {0};
    UIR_TRY(uir_order_given(s, a, &given));
    if (!uir_order_proved(s, &given, first->min, UIR_RELATION_EQ, second->min) ||
        !uir_order_proved(s, &given, first->extent, UIR_RELATION_EQ, second->extent))
        return uir_step_refuse(s, "the ranges of %s and %s are not proved equal", first_text, second_text);
    if (first->loop_kind != second->loop_kind || first->loop_kind == UIR_LOOP_BOUND)
        return uir_step_refuse(s, "%s and %s are of different kinds", first_text, second_text);
    uir_orders orders = {.within = uir_schedule_parent(s, a)};
    uint32_t goes = into ? a : b, stays = into ? b : a;
    UIR_TRY(uir_orders_take(s, &goes, 1, &orders));
    uir_loop_statement *gone = UIR_SCHEDULE_AT(s, goes), *kept = UIR_SCHEDULE_AT(s, stays);
    uir_substitution values = {0};
    UIR_TRY(uir_substitution_set(s, &values, gone->symbol, uir_dim_symbol(s->function->dims, kept->symbol)));
    uint32_t body = gone->first_child;
    for (uint32_t id = body; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next)
        UIR_TRY(uir_tree_substitute(s, id, &values));
    UIR_TRY(rename_below(s, body, kept->name));
    *uir_tree_link(s, goes) = gone->next;
    gone->next = gone->first_child = UIR_LOOP_NONE;
    uint32_t moved = body, after = UIR_LOOP_NONE; /* what has another variable now */
    if (into) after = kept->first_child;
    uint32_t *end = into ? &body : &kept->first_child;
    while (*end != UIR_LOOP_NONE) end = &UIR_SCHEDULE_AT(s, *end)->next;
    *end = into ? kept->first_child : body;
    if (into) kept->first_child = body;
    s->indexed = false;
    UIR_TRY(uir_orders_check(s, &orders));
    for (uint32_t id = moved; id != after; id = UIR_SCHEDULE_AT(s, id)->next) UIR_TRY(uir_region_check_binds(s, id));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "merge %s%s %s", first_text, into ? " into" : ",", second_text);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_merge_loops(uir_schedule *schedule, uint32_t a, uint32_t b) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, merge(schedule, a, b, false));
}

uir_status uir_schedule_merge_into(uir_schedule *schedule, uint32_t a, uint32_t b) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, merge(schedule, a, b, true));
}

/* ---- kinds ---- */
static uir_status is_private(uir_schedule *s, const uir_sites *sites, uint32_t loop, uint32_t tensor, privacy *known,
                             bool *out) {
    if (*known == PRIVACY_UNASKED) {
        UIR_TRY(prove_private(s, sites, loop, tensor, out));
        *known = *out ? PRIVACY_YES : PRIVACY_NO;
    }
    *out = *known == PRIVACY_YES;
    return UIR_STATUS_OK;
}

/* Do two sites touch an element in one iteration of the loop alone, if at all? */
static uir_status touch_apart(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t loop, bool *out) {
    *out = false;
    for (uint32_t never = 0; never < 2 && !*out; never++) {
        uir_conflict c;
        UIR_TRY(uir_conflict_find(s, x, y, loop, never, &c));
        *out = c.never;
        for (uint32_t l = 0; l < c.loop_count; l++)
            *out |= c.loops[l] == loop && c.directions[l] == UIR_DIRECTION_EQUAL;
    }
    return UIR_STATUS_OK;
}

/* `sites`: the function's. `tensor`: the one that is looked at; NONE: all. */
static uir_status check_free(uir_schedule *s, const uir_sites *sites, uint32_t loop, uir_loop_kind kind,
                             uint32_t tensor) {
    uint32_t first = uir_tree_first_block(s, loop);
    privacy *own;
    UIR_TRY_ALLOCATE(own, uir_arena_allocate_array(&s->scratch, s->function->tensors.count + 1, sizeof *own));
    for (uint32_t i = first == UIR_LOOP_NONE ? sites->count : sites->of_block[first];
         i < sites->count && uir_tree_holds(s, loop, sites->data[i].block); i++) {
        const uir_site *x = &sites->data[i];
        if (!x->write || (tensor != UIR_LOOP_NONE && x->tensor != tensor)) continue;
        UIR_SITES_OF_TENSOR(sites, x->tensor, k) {
            const uir_site *y = &sites->data[k];
            bool apart = false;
            if (!uir_tree_holds(s, loop, y->block)) continue;
            if (kind == UIR_LOOP_VECTORISED && x->reduction && y->reduction && x->statement == y->statement) continue;
            /* What a unit works on is the likelier answer of a tensor that units do not share. */
            if (kind != UIR_LOOP_VECTORISED) UIR_TRY(is_private(s, sites, loop, x->tensor, &own[x->tensor], &apart));
            if (!apart) UIR_TRY(touch_apart(s, x, y, loop, &apart));
            if (!apart) UIR_TRY(is_private(s, sites, loop, x->tensor, &own[x->tensor], &apart));
            if (apart) continue;
            return uir_step_refuse(s, "iterations of %s share elements of %s: %s writes what %s %s",
                                   UIR_SCHEDULE_AT(s, loop)->name, UIR_SCHEDULE_TENSOR(s, x->tensor)->name,
                                   UIR_SCHEDULE_AT(s, x->block)->name, UIR_SCHEDULE_AT(s, y->block)->name,
                                   y->write ? "writes" : "reads");
        }
    }
    return UIR_STATUS_OK;
}

static bool is_marked(uir_loop_kind kind) {
    return kind == UIR_LOOP_PARALLEL || kind == UIR_LOOP_BOUND || kind == UIR_LOOP_VECTORISED;
}

static uir_status check_marked(uir_schedule *s, const uir_sites *sites, uint32_t id, uint32_t tensor) {
    for (; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        uir_loop_statement statement = *UIR_SCHEDULE_AT(s, id);
        if (statement.kind == UIR_LOOP_STATEMENT_BLOCK) continue;
        if (statement.kind == UIR_LOOP_STATEMENT_FOR && is_marked(statement.loop_kind))
            UIR_TRY(check_free(s, sites, id, statement.loop_kind, tensor));
        UIR_TRY(check_marked(s, sites, statement.first_child, tensor));
    }
    return UIR_STATUS_OK;
}

uir_status uir_loops_check_marked(uir_schedule *s, uint32_t tensor) {
    uir_sites sites = {0};
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    return check_marked(s, &sites, s->function->first, tensor);
}

static uir_status set_kind(uir_schedule *s, uint32_t loop, uir_loop_kind kind, const char *bound_to) {
    UIR_TRY(need_loop(s, loop));
    if ((kind == UIR_LOOP_BOUND) != (bound_to != NULL))
        return uir_step_refuse(s, "a bound loop, and no other, requires a name to be bound to");
    if (is_marked(kind)) {
        uir_sites sites = {0};
        UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
        UIR_TRY(check_free(s, &sites, loop, kind, UIR_LOOP_NONE));
    }
    const char *name = NULL;
    if (bound_to) UIR_TRY_ALLOCATE(name, uir_arena_copy_string(&s->function->arena, bound_to, strlen(bound_to)));
    UIR_SCHEDULE_AT(s, loop)->loop_kind = kind;
    UIR_SCHEDULE_AT(s, loop)->bound_to = name;
    uir_step_say(s, "mark %s as %s%s%s", uir_step_loop_text(s, loop), uir_loop_kind_word(kind), name ? " " : "",
                 name ? name : "");
    return UIR_STATUS_OK;
}

uir_status uir_schedule_set_kind(uir_schedule *schedule, uint32_t loop, uir_loop_kind kind, const char *bound_to) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, set_kind(schedule, loop, kind, bound_to));
}
