/* A scheduled loop AST as an iGraph, which is then verified. */
#include "lower/select/kernel.h"

#include "ir/kernel/igraph_synchronise.h"
#include "lower/select/contraction_kernel.h"

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

void uir_kernel_fail(uir_kernel *k, uir_status status) {
    if (k->status == UIR_STATUS_OK) k->status = status;
}

/* What the builder answers: a kernel that is too large is refused. */
static void built(uir_kernel *k, uir_status status) {
    if (status == UIR_STATUS_LIMIT)
        uir_kernel_refuse(k, "the kernel has more than %d items, or blocks nested more than %d deep",
                          UIR_IGRAPH_MAX_ITEMS, UIR_IGRAPH_MAX_DEPTH);
    else
        uir_kernel_fail(k, status);
}

static void begin_item(uir_kernel *k, const uir_iitem *item) {
    if (k->status == UIR_STATUS_OK) built(k, uir_ibuilder_begin(&k->builder, item));
}

static void end_item(uir_kernel *k) {
    if (k->status == UIR_STATUS_OK) uir_ibuilder_end(&k->builder);
}

void uir_kernel_put(uir_kernel *k, const uir_iinstruction *instruction) {
    if (k->status == UIR_STATUS_OK) built(k, uir_ibuilder_add_instruction(&k->builder, instruction, NULL));
}

/* ---- symbols ---- */
static bool grow_scope(uir_kernel *k, uint32_t count) {
    if (count <= k->in_scope_count) return true;
    uint32_t capacity = count * 2 + 64;
    uint8_t *in_scope = uir_arena_allocate_array(k->arena, capacity, 1);
    if (!in_scope) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return false;
    }
    if (k->in_scope_count) memcpy(in_scope, k->in_scope, k->in_scope_count);
    k->in_scope = in_scope;
    k->in_scope_count = capacity;
    return true;
}

uir_symbol uir_kernel_new_symbol(uir_kernel *k, const char *prefix, uir_isymbol_kind kind, uir_dim extent) {
    char name[24];
    uint32_t index = 0;
    if (k->status != UIR_STATUS_OK) return (uir_symbol){0};
    int length = snprintf(name, sizeof name, "%s%u", prefix, k->names++);
    uir_kernel_fail(k, uir_igraph_add_symbol(k->graph, name, (size_t)length, kind, NULL, extent, &index));
    if (k->status == UIR_STATUS_OK && grow_scope(k, index + 1)) k->in_scope[index] = 1;
    return (uir_symbol){index};
}

void uir_kernel_replace(uir_kernel *k, uir_symbol symbol, uir_dim by) {
    if (!by.id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    if (k->status == UIR_STATUS_OK) k->replaced[symbol.id] = by;
}

static void forget(uir_kernel *k, uir_symbol symbol) {
    k->replaced[symbol.id] = UIR_DIM_NONE;
}

typedef struct knowledge {
    const uir_kernel *k;
    bool all;
} knowledge;

static void check_known(void *user, uir_symbol symbol) {
    knowledge *n = user;
    n->all = n->all && symbol.id < n->k->replaced_count && n->k->replaced[symbol.id].id;
}

/* Whether all that a dim of the function is made of is known where the walk is. */
static bool is_known(const uir_kernel *k, uir_dim dim) {
    knowledge n = {k, true};
    uir_dim_visit_symbols(k->f->dims, dim, check_known, &n);
    return n.all;
}

uir_dim uir_kernel_substitute(uir_kernel *k, uir_dim dim) {
    if (k->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    uir_dim result = uir_dim_copy(k->f->dims, dim, k->dims, k->replaced, k->replaced_count);
    if (!result.id) uir_kernel_fail(k, is_known(k, dim) ? UIR_STATUS_OUT_OF_MEMORY : UIR_STATUS_INTERNAL);
    return result;
}

typedef struct scope_check {
    const uir_kernel *k;
    bool all;
} scope_check;

static void check_scope(void *user, uir_symbol symbol) {
    scope_check *c = user;
    if (symbol.id >= c->k->in_scope_count || !c->k->in_scope[symbol.id]) c->all = false;
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

static bool is_known_condition(const uir_kernel *k, const uir_condition *c) {
    return is_known(k, c->left) && is_known(k, c->right);
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
            found = is_known_condition(k, &s->conditions[i]) &&
                    same_condition(substitute_condition(k, s->conditions[i]), c);
        if (!found) return false;
    }
    return true;
}

/* What was given since `mark`, as a guard. */
static uir_iguard guard_since(uir_kernel *k, uint32_t mark) {
    uint32_t count = k->given.count - mark;
    if (!count || k->status != UIR_STATUS_OK) return (uir_iguard){0};
    uir_iatom *atoms = uir_arena_allocate_array(&k->graph->arena, count, sizeof *atoms);
    if (!atoms) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return (uir_iguard){0};
    }
    for (uint32_t i = 0; i < count; i++)
        atoms[i] = (uir_iatom){.kind = UIR_IATOM_RELATION, .condition = k->given.data[mark + i]};
    return (uir_iguard){atoms, count};
}

/* What every block of a list wants and can be said here; given from here on. */
static uir_iguard hoist(uir_kernel *k, uint32_t list) {
    uint32_t block = first_block(k, list), mark = k->given.count;
    for (uint32_t i = 0; block != UIR_LOOP_NONE && i < statement(k, block)->condition_count; i++) {
        if (k->status != UIR_STATUS_OK || !is_known_condition(k, &statement(k, block)->conditions[i])) continue;
        uir_condition c = substitute_condition(k, statement(k, block)->conditions[i]);
        if (k->status != UIR_STATUS_OK || is_given(k, c) || !is_in_scope(k, c.left) || !is_in_scope(k, c.right))
            continue;
        if (uir_kernel_mentions_lane(k, c.left) || uir_kernel_mentions_lane(k, c.right) || !every_block_has(k, list, c))
            continue;
        give(k, c);
    }
    return guard_since(k, mark);
}

/* Opens an if, unless nothing is asked. */
static bool begin_if(uir_kernel *k, uir_iguard guard) {
    if (guard.count) begin_item(k, &(uir_iitem){.kind = UIR_IITEM_IF, .guard = guard, .symbol = UINT32_MAX});
    return guard.count != 0;
}

/* ---- blocks ---- */
/* Iteration variables read from data: indices of the iGraph. */
static void read_iters(uir_kernel *k, const uir_loop_statement *s) {
    for (uint32_t i = 0; i < s->iter_count && k->status == UIR_STATUS_OK; i++) {
        const uir_loop_iter *iter = &s->iters[i];
        uint32_t lanes;
        if (!iter->data) continue;
        const uir_islice *slice = uir_kernel_slice(k, iter->from, false, 0, &lanes);
        if (k->status != UIR_STATUS_OK) return;
        if (lanes) {
            uir_kernel_refuse(k, "the position of a vectorised access is read from data");
            return;
        }
        uir_dim limit = uir_kernel_substitute(k, iter->extent);
        uir_symbol symbol = uir_kernel_new_symbol(k, "g", UIR_ISYMBOL_INDEX, limit);
        uir_iitem item = {.kind = UIR_IITEM_INDEX, .symbol = symbol.id};
        item.index.slice = *slice;
        item.index.limit = limit;
        item.index.mode = iter->mode;
        if (k->status == UIR_STATUS_OK) built(k, uir_ibuilder_add(&k->builder, &item));
        uir_kernel_replace(k, iter->symbol, uir_dim_symbol(k->dims, symbol));
    }
}

static void emit_block(uir_kernel *k, uint32_t id) {
    const uir_loop_statement *s = statement(k, id);
    uint32_t mark = k->given.count;
    uir_kernel_lane kept[UIR_KERNEL_MAX_LANES];
    uir_dim *replaced = NULL;
    memcpy(kept, k->lanes, sizeof kept);
    k->block = s->name;
    for (uint32_t i = 0; i < s->condition_count && k->status == UIR_STATUS_OK; i++) {
        uir_condition c = substitute_condition(k, s->conditions[i]);
        if (is_given(k, c)) continue;
        if (uir_kernel_mentions_lane(k, c.left) || uir_kernel_mentions_lane(k, c.right)) uir_kernel_clip(k, c);
    }
    bool later = false;
    for (uint32_t l = 0; l < k->lane_count; l++) later |= k->lanes[l].first.id != 0;
    /* What is left says where the block is at all. */
    uint32_t clipped = k->given.count;
    for (uint32_t i = 0; i < s->condition_count && k->status == UIR_STATUS_OK; i++) {
        uir_condition c = substitute_condition(k, s->conditions[i]);
        if (is_given(k, c) || uir_kernel_mentions_lane(k, c.left) || uir_kernel_mentions_lane(k, c.right)) continue;
        give(k, c);
    }
    bool guarded = begin_if(k, guard_since(k, clipped));
    if (later) {
        replaced = uir_arena_copy(k->arena, k->replaced, k->replaced_count * sizeof *replaced);
        if (!replaced) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        uir_kernel_shift_lanes(k);
    }
    for (uint32_t i = 0; i < s->iter_count; i++)
        if (!s->iters[i].data) uir_kernel_replace(k, s->iters[i].symbol, uir_kernel_substitute(k, s->iters[i].value));
    read_iters(k, s);
    if (uir_contraction_is_mma(k, id)) {
        uir_contraction_emit(k, id);
    } else {
        for (uint32_t c = s->first_child; c != UIR_LOOP_NONE && k->status == UIR_STATUS_OK; c = statement(k, c)->next)
            uir_kernel_emit_statement(k, s, statement(k, c), k->fresh[id]);
    }
    if (guarded) end_item(k);
    memcpy(k->lanes, kept, sizeof kept);
    if (replaced) memcpy(k->replaced, replaced, k->replaced_count * sizeof *replaced);
    k->given.count = mark;
    k->block = NULL;
}

/* ---- the tree ---- */
bool uir_kernel_is_one(const uir_kernel *k, uir_dim extent) {
    int64_t value;
    return uir_dim_is_const(k->dims, extent, &value) && value == 1;
}

/* The same of a dim of the function. */
static bool turns_once(const uir_kernel *k, const uir_loop_statement *loop) {
    int64_t value;
    return uir_dim_is_const(k->f->dims, loop->extent, &value) && value == 1;
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
    if (uir_kernel_simple_monoid(k, &k->f->monoids.data[a->monoid]) == UIR_OP_NONE) return false;
    /* Over a vectorised loop that is reduced: the update has a loop more than the init. */
    uint32_t init_loops = 0, update_loops = 0;
    for (uint32_t i = id; i != init; i = statement(k, i)->first_child) init_loops += !turns_once(k, statement(k, i));
    for (uint32_t i = next; i != update; i = statement(k, i)->first_child)
        update_loops += !turns_once(k, statement(k, i));
    if (update_loops != init_loops + 1) return false;
    k->fresh[update] = true;
    return true;
}

static void emit_list(uir_kernel *k, uint32_t id);

static void emit_vectorised(uir_kernel *k, const uir_loop_statement *s) {
    uir_dim extent = uir_kernel_substitute(k, s->extent), least = uir_kernel_substitute(k, s->min);
    bool once = k->status == UIR_STATUS_OK && uir_kernel_is_one(k, extent);
    if (!once && k->lane_count == UIR_KERNEL_MAX_LANES)
        uir_kernel_refuse(k, "more than %d vectorised loops", UIR_KERNEL_MAX_LANES);
    if (k->status != UIR_STATUS_OK) return;
    if (!once) {
        uir_symbol symbol = uir_kernel_new_symbol(k, "w", UIR_ISYMBOL_AXIS, extent);
        least = uir_dim_add(k->dims, least, uir_dim_symbol(k->dims, symbol));
        k->lanes[k->lane_count++] = (uir_kernel_lane){symbol, extent, extent, UIR_DIM_NONE};
    }
    uir_kernel_replace(k, s->symbol, least);
    emit_list(k, s->first_child);
    forget(k, s->symbol);
    if (!once) k->lane_count--;
}

static void emit_unrolled(uir_kernel *k, const uir_loop_statement *s, uir_dim least, int64_t times) {
    for (int64_t i = 0; i < times && k->status == UIR_STATUS_OK; i++) {
        uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_const(k->dims, i)));
        emit_list(k, s->first_child);
    }
    forget(k, s->symbol);
}

static void emit_loop(uir_kernel *k, const uir_loop_statement *s) {
    uir_dim extent = uir_kernel_substitute(k, s->extent), least = uir_kernel_substitute(k, s->min);
    uint32_t mark = k->given.count;
    int64_t times;
    if (k->lane_count) uir_kernel_refuse(k, "a loop is inside a vectorised loop");
    if (k->status != UIR_STATUS_OK) return;
    bool counted = uir_dim_is_const(k->dims, extent, &times);
    if (counted && (times == 1 || (s->loop_kind == UIR_LOOP_UNROLLED && times <= MOST_UNROLLED))) {
        emit_unrolled(k, s, least, times);
        return;
    }
    uir_symbol symbol = uir_kernel_new_symbol(k, "l", UIR_ISYMBOL_LOOP, extent);
    uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_symbol(k->dims, symbol)));
    uir_iitem item = {.kind = UIR_IITEM_LOOP, .symbol = symbol.id, .extent = extent};
    item.guard = hoist(k, s->first_child);
    begin_item(k, &item);
    emit_list(k, s->first_child);
    end_item(k);
    forget(k, s->symbol);
    if (k->status == UIR_STATUS_OK) k->in_scope[symbol.id] = 0;
    k->given.count = mark;
}

static void emit_if(uir_kernel *k, const uir_loop_statement *s) {
    uint32_t mark = k->given.count;
    for (uint32_t i = 0; i < s->condition_count; i++) give(k, substitute_condition(k, s->conditions[i]));
    bool guarded = begin_if(k, guard_since(k, mark));
    emit_list(k, s->first_child);
    if (guarded) end_item(k);
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

/* Does a block under the statement multiply matrices? */
static bool multiplies(const uir_kernel *k, uint32_t id) {
    const uir_loop_statement *s = statement(k, id);
    if (s->kind == UIR_LOOP_STATEMENT_BLOCK) return uir_contraction_is_mma(k, id);
    for (uint32_t c = s->first_child; c != UIR_LOOP_NONE; c = statement(k, c)->next)
        if (multiplies(k, c)) return true;
    return false;
}

/* The kind of unit that does the statements of a phase: the one that multiplies matrices, where they are multiplied. */
static uint32_t kind_of(const uir_kernel *k, uint32_t id, uint32_t end) {
    bool found = false;
    for (; id != end && id != UIR_LOOP_NONE; id = statement(k, id)->next) found = found || multiplies(k, id);
    int space = found ? uir_machine_find_role(k->machine, UIR_SPACE_ACCUMULATORS) : -1;
    if (space < 0) return 0;
    for (uint32_t kind = 0; kind < k->machine->unit_kind_count; kind++)
        if (k->machine->spaces[space].unit_kinds >> kind & 1) return kind;
    return 0;
}

/* Whose work an index of a phase's axes is: where each unit keeps what it works on for itself, a unit's; else a
 * group's. A kind of unit that a group has one of is the group's. */
static uir_scope scope_of_axes(const uir_kernel *k) {
    int space = uir_machine_find_role(k->machine, UIR_SPACE_SCRATCH);
    bool alone = space >= 0 && k->machine->spaces[space].scope == UIR_SCOPE_UNIT && k->machine->units_per_group > 1;
    return alone && !k->unit_kind ? UIR_SCOPE_UNIT : UIR_SCOPE_GROUP;
}

/* A top statement and those after it that share no parallel loop: one unit does them in order. */
static uint32_t emit_phase(uir_kernel *k, uint32_t id) {
    uint32_t axes = 0, list = id, mark = k->given.count, next = UIR_LOOP_NONE;
    uir_iparallel parallel[4];
    uint32_t end = statement(k, id)->next;
    while (!is_parallel(statement(k, id)) && end != UIR_LOOP_NONE && !is_parallel(statement(k, end)))
        end = statement(k, end)->next;
    k->unit_kind = kind_of(k, id, end);
    while (is_parallel(statement(k, list)) && axes < 4) {
        const uir_loop_statement *s = statement(k, list);
        uir_dim extent = uir_kernel_substitute(k, s->extent), least = uir_kernel_substitute(k, s->min);
        if (axes && s->next != UIR_LOOP_NONE) break; /* beside others under an outer axis */
        if (k->status != UIR_STATUS_OK) return UIR_LOOP_NONE;
        if (!uir_kernel_is_one(k, extent)) {
            uir_symbol symbol = uir_kernel_new_symbol(k, "p", UIR_ISYMBOL_PARALLEL, extent);
            uir_kernel_replace(k, s->symbol, uir_dim_add(k->dims, least, uir_dim_symbol(k->dims, symbol)));
            parallel[axes++] = (uir_iparallel){symbol.id, extent, scope_of_axes(k)};
        } else {
            uir_kernel_replace(k, s->symbol, least);
        }
        if (next == UIR_LOOP_NONE && list == id) next = s->next;
        list = s->first_child;
        if (list == UIR_LOOP_NONE || k->status != UIR_STATUS_OK) break;
    }
    if (list == id) { /* no axis: this statement and its plain neighbours */
        for (next = id; next != UIR_LOOP_NONE && !is_parallel(statement(k, next)); next = statement(k, next)->next) {
        }
    }
    if (k->status == UIR_STATUS_OK) built(k, uir_ibuilder_begin_phase(&k->builder, parallel, axes, k->unit_kind));
    bool guarded = list != id && begin_if(k, hoist(k, list));
    emit_until(k, list, list == id ? next : UIR_LOOP_NONE);
    if (guarded) end_item(k);
    end_item(k);
    k->given.count = mark;
    return next;
}

/* ---- all of it ---- */
static void begin(uir_kernel *k) {
    const uir_loop_function *f = k->f;
    k->replaced_count = uir_dims_symbol_count(f->dims);
    k->replaced = uir_arena_allocate_array(k->arena, (size_t)k->replaced_count + 1, sizeof *k->replaced);
    k->pointers = uir_arena_allocate_array(k->arena, f->tensors.count + 1, sizeof *k->pointers);
    k->fresh = uir_arena_allocate_array(k->arena, f->statements.count + 1, sizeof *k->fresh);
    if (!k->pointers || !k->fresh || !k->replaced) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    if (k->status != UIR_STATUS_OK) return;
    uir_kernel_declare_sizes(k);
    if (k->status != UIR_STATUS_OK || !grow_scope(k, k->graph->symbols.count)) return;
    for (uint32_t i = 0; i < k->graph->symbols.count; i++) k->in_scope[i] = 1;
    for (uint32_t i = 0; i < f->tensors.count && k->status == UIR_STATUS_OK; i++) uir_kernel_describe_pointer(k, i);
    uir_contraction_describe(k);
}

static void build(uir_kernel *k, uir_arena *arena) {
    k->arena = arena;
    k->dims = k->graph->dims;
    uir_ibuilder_init(&k->builder, k->graph);
    begin(k);
    uir_kernel_check_dtypes(k);
    for (uint32_t id = k->f->first; id != UIR_LOOP_NONE && k->status == UIR_STATUS_OK;) id = emit_phase(k, id);
    if (k->status == UIR_STATUS_OK) uir_kernel_declare_pointers(k);
}

/* What lowering made in passing (symbols of lanes) is left behind by the clone. */
uir_status uir_lower_kernel_build(const uir_loop_function *f, const uir_machine *machine, uir_doubling doubling,
                                  const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                  uir_igraph **out_igraph) {
    uir_kernel k = {.f = f, .machine = machine, .diagnostics = diagnostics, .doubling = doubling, .tile_space = -1};
    uir_arena arena;
    *out_igraph = NULL;
    UIR_TRY(uir_igraph_create(allocator, f->name, machine, &k.graph));
    uir_arena_init(&arena, allocator);
    build(&k, &arena);
    if (k.status == UIR_STATUS_OK) k.status = uir_igraph_clone(k.graph, allocator, out_igraph);
    uir_arena_deinit(&arena);
    uir_igraph_destroy(k.graph);
    return k.status;
}

/* Verified, and where pipes run apart with their waits, which is verified again. */
static uir_status make_kernel(const uir_loop_function *f, const uir_machine *machine, uir_doubling doubling,
                              const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph **out_igraph) {
    UIR_TRY(uir_lower_kernel_build(f, machine, doubling, allocator, diagnostics, out_igraph));
    uir_status status = uir_igraph_verify(*out_igraph, diagnostics);
    if (status == UIR_STATUS_OK && uir_igraph_needs_syncs(machine)) {
        status = uir_igraph_synchronise(*out_igraph);
        if (status == UIR_STATUS_OK) status = uir_igraph_verify(*out_igraph, diagnostics);
    }
    if (status == UIR_STATUS_OK) return status;
    uir_igraph_destroy(*out_igraph);
    *out_igraph = NULL;
    return status;
}

uir_status uir_lower_kernel(const uir_loop_function *f, const uir_machine *machine, const uir_allocator *allocator,
                            uir_diagnostics *diagnostics, uir_igraph_list *out) {
    uir_igraph *igraph = NULL;
    uir_status status = UIR_STATUS_UNSUPPORTED;
    /* What has no room for two instances has one. */
    for (uir_doubling doubling = UIR_DOUBLE_SCRATCH; machine->pipe_count > 1 && doubling > UIR_DOUBLE_NONE;
         doubling--) {
        uir_diagnostics said;
        uir_diagnostics_init(&said, allocator);
        status = make_kernel(f, machine, doubling, allocator, &said, &igraph);
        uir_diagnostics_deinit(&said);
        if (status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED) return status;
        if (status == UIR_STATUS_OK) break;
    }
    if (status != UIR_STATUS_OK) UIR_TRY(make_kernel(f, machine, UIR_DOUBLE_NONE, allocator, diagnostics, &igraph));
    return uir_igraph_list_add(out, igraph);
}
