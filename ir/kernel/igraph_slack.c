#include "ir/kernel/igraph_slack.h"

#include <stdio.h>
#include <string.h>

/* ---- layouts ---- */
typedef struct padder {
    uir_igraph *g;
    const uir_islack *slack;
    uir_dim by;            /* the new dim */
    uir_dim *replacements; /* `growing` by growing + slack */
    uint32_t count;
} padder;

/* A mode within one stretch keeps its stride; one from stretch to stretch counts the slack: stride = k * time * inner
 * grows by k * slack * inner. */
static bool pad_mode(padder *p, uir_mode *mode, uir_dim *within) {
    uir_dims *dims = p->g->dims;
    uir_dim grown = uir_dim_substitute(dims, mode->stride, p->replacements, p->count);
    if (!grown.id) return false;
    if (uir_dim_equal(grown, mode->stride)) {
        uir_dim last = uir_dim_mul(dims, uir_dim_sub(dims, mode->size, uir_dim_const(dims, 1)), mode->stride);
        *within = uir_dim_add(dims, *within, last);
        return within->id != 0;
    }
    uir_dim added = uir_dim_sub(dims, grown, mode->stride), left = uir_dim_mul(dims, mode->stride, p->by),
            right = uir_dim_mul(dims, p->slack->time, added);
    if (!left.id || !uir_dim_equal(left, right)) return false;
    mode->stride = grown;
    return true;
}

static bool pad_pointer(padder *p, uir_ipointer *pointer, uir_status *out_status) {
    uir_dims *dims = p->g->dims;
    uir_dim within = uir_dim_const(dims, 1),
            stretch = uir_dim_mul(dims, p->slack->time, uir_dim_const(dims, p->slack->inner));
    bool plain = true;
    if (pointer->layout.swizzle.bits) return false;
    for (uint32_t d = 0; d < pointer->rank; d++) {
        plain &= pointer->layout.mode_count[d] == 1;
        for (uint32_t m = 0; m < pointer->layout.mode_count[d]; m++)
            if (!pad_mode(p, &pointer->layout.modes[d][m], &within)) return false;
    }
    if (!uir_dim_equal(within, stretch) && uir_dim_compare(dims, within, UIR_RELATION_LE, stretch) != UIR_TRUE)
        return false;
    pointer->layout.given = true;
    pointer->layout.split |= !plain;
    *out_status = uir_igraph_finish_pointer(p->g, pointer);
    return *out_status == UIR_STATUS_OK;
}

bool uir_igraph_add_slack(uir_igraph *g, const uir_islack *slack, uir_status *out_status) {
    char name[32];
    uint32_t symbol, number = 0;
    padder p = {.g = g, .slack = slack};
    do {
        snprintf(name, sizeof name, "slack%u", number++);
    } while (uir_igraph_find_symbol(g, name, strlen(name)) != UINT32_MAX);
    *out_status = uir_igraph_add_symbol(g, name, strlen(name), UIR_ISYMBOL_DIM, NULL, UIR_DIM_NONE, &symbol);
    if (*out_status != UIR_STATUS_OK) return false;
    p.by = uir_igraph_symbol_dim(g, symbol);
    p.count = uir_dims_symbol_count(g->dims);
    p.replacements = uir_arena_allocate_array(&g->arena, (size_t)p.count + 1, sizeof *p.replacements);
    if (!p.replacements || !p.by.id) {
        *out_status = UIR_STATUS_OUT_OF_MEMORY;
        return false;
    }
    uir_isymbol *growing = &g->symbols.data[slack->growing];
    p.replacements[growing->symbol.id] = uir_dim_add(g->dims, uir_igraph_symbol_dim(g, slack->growing), p.by);
    bool any = false;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        uir_ipointer *pointer = &g->pointers.data[i];
        if (pointer->role == UIR_IPOINTER_CONST && slack->role == UIR_IPOINTER_IN &&
            pointer->role_index == slack->index)
            return false;
        if (pointer->role != slack->role || pointer->role_index != slack->index) continue;
        if (pointer->tied != UINT32_MAX || !pad_pointer(&p, pointer, out_status)) return false;
        any = true;
    }
    return any;
}

/* ---- copies ---- */
static bool same_place(const uir_islice *a, const uir_islice *b) {
    if (a->window || b->window || a->whole || b->whole || a->rank != b->rank || a->has_fill || b->has_fill ||
        a->block || b->block)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!uir_dim_equal(a->starts[d], b->starts[d]) || !uir_dim_equal(a->counts[d], b->counts[d])) return false;
    }
    return true;
}

/* Adds the pair when it is new. */
static bool note_copy(uir_icopy *copies, uint32_t *count, uint32_t capacity, uir_icopy copy) {
    for (uint32_t i = 0; i < *count; i++) {
        if (copies[i].from == copy.from && copies[i].to == copy.to) return true;
    }
    if (*count == capacity) return false;
    copies[(*count)++] = copy;
    return true;
}

/* Whether the items under this one move operands to results, each to its own coordinates, and nothing else. */
static bool only_copies(const uir_igraph *g, uint32_t item, uir_icopy *copies, uint32_t *count, uint32_t capacity) {
    const uir_iitem *i = &g->items.data[item];
    if (i->kind == UIR_IITEM_INSTRUCTION) {
        const uir_iinstruction *in = &g->instructions.data[i->instruction];
        if (uir_iop_get_row(in->code)->family != UIR_IOP_FAMILY_MOVE || in->slice_count != 2) return false;
        const uir_ipointer *to = &g->pointers.data[in->slices[0].pointer],
                           *from = &g->pointers.data[in->slices[1].pointer];
        if (to->role != UIR_IPOINTER_OUT || from->role != UIR_IPOINTER_IN || to->dtype != from->dtype) return false;
        return same_place(&in->slices[0], &in->slices[1]) &&
               note_copy(copies, count, capacity, (uir_icopy){in->slices[1].pointer, in->slices[0].pointer});
    }
    if (i->kind != UIR_IITEM_LOOP && i->kind != UIR_IITEM_IF && i->kind != UIR_IITEM_RUN) return false;
    for (uint32_t c = i->first_child; c != UINT32_MAX; c = g->items.data[c].next) {
        if (!only_copies(g, c, copies, count, capacity)) return false;
    }
    return i->first_child != UINT32_MAX;
}

static bool copies_pair(const uir_igraph *g, uint32_t item, uint32_t in, uint32_t out) {
    uir_icopy copy;
    uint32_t count = 0;
    return only_copies(g, item, &copy, &count, 1) && count == 1 && g->pointers.data[copy.from].role_index == in &&
           g->pointers.data[copy.to].role_index == out;
}

static bool has_relation(const uir_igraph *g, const uir_iguard *guard, uint32_t symbol) {
    if (guard->count != 1 || guard->atoms[0].kind != UIR_IATOM_RELATION) return false;
    const uir_condition *c = &guard->atoms[0].condition;
    int64_t right;
    return c->relation == UIR_RELATION_EQ && uir_dim_equal(c->left, uir_igraph_symbol_dim(g, symbol)) &&
           uir_dim_is_const(g->dims, c->right, &right) && right == 0;
}

/* The parallel axis that sets copies apart: the first, of extent 2. */
static bool find_half(const uir_igraph *g, const uir_iphase *phase, uint32_t *out_symbol) {
    int64_t extent;
    if (!phase->parallel_count || phase->body_count != 1 || phase->has_kinds ||
        !uir_dim_is_const(g->dims, phase->parallel[0].extent, &extent) || extent != 2)
        return false;
    *out_symbol = phase->parallel[0].symbol;
    return true;
}

uint32_t uir_igraph_find_copies(const uir_igraph *g, uint32_t id, uir_icopy *out_copies, uint32_t capacity) {
    const uir_iphase *phase = &g->phases.data[id];
    uint32_t half, count = 0, first = phase->bodies[0].first_item;
    if (!find_half(g, phase, &half) || first == UINT32_MAX) return 0;
    const uir_iitem *copies = &g->items.data[first];
    if (copies->kind != UIR_IITEM_IF || !has_relation(g, &copies->guard, half)) return 0;
    for (uint32_t i = copies->next; i != UINT32_MAX; i = g->items.data[i].next) {
        const uir_iitem *other = &g->items.data[i];
        int64_t right;
        if (other->kind != UIR_IITEM_IF || other->guard.count != 1 ||
            other->guard.atoms[0].kind != UIR_IATOM_RELATION ||
            other->guard.atoms[0].condition.relation != UIR_RELATION_EQ ||
            !uir_dim_equal(other->guard.atoms[0].condition.left, uir_igraph_symbol_dim(g, half)) ||
            !uir_dim_is_const(g->dims, other->guard.atoms[0].condition.right, &right) || right != 1)
            return 0;
    }
    for (uint32_t c = copies->first_child; c != UINT32_MAX; c = g->items.data[c].next) {
        if (!only_copies(g, c, out_copies, &count, capacity)) return 0;
    }
    return count;
}

/* ---- splitting ---- */
static bool reads_result(const uir_igraph *g, uint32_t item, uint32_t out) {
    const uir_iitem *i = &g->items.data[item];
    if (i->kind == UIR_IITEM_INSTRUCTION) {
        const uir_iinstruction *in = &g->instructions.data[i->instruction];
        for (uint32_t s = in->accumulate ? 0 : 1; s < in->slice_count; s++) {
            const uir_ipointer *p = &g->pointers.data[in->slices[s].pointer];
            if (p->role == UIR_IPOINTER_OUT && p->role_index == out) return true;
        }
        return uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_SYNC;
    }
    for (uint32_t c = i->first_child; c != UINT32_MAX; c = g->items.data[c].next) {
        if (reads_result(g, c, out)) return true;
    }
    return false;
}

static uir_status add_if(uir_igraph *g, uint32_t symbol, int64_t value, uint32_t first_child, uint32_t *out_item) {
    uir_iatom *atom;
    UIR_TRY_ALLOCATE(atom, uir_arena_allocate_array(&g->arena, 1, sizeof *atom));
    *atom =
        (uir_iatom){.kind = UIR_IATOM_RELATION,
                    .condition = {UIR_RELATION_EQ, uir_igraph_symbol_dim(g, symbol), uir_dim_const(g->dims, value)}};
    *out_item = g->items.count;
    uir_iitem item = {.kind = UIR_IITEM_IF, .guard = {atom, 1}, .first_child = first_child, .next = UINT32_MAX};
    return uir_vector_push(&g->arena, &g->items, item);
}

static uir_status split_phase(uir_igraph *g, uint32_t id, uint32_t in, uint32_t out) {
    uint32_t first = g->phases.data[id].bodies[0].first_item, copies = UINT32_MAX, others = UINT32_MAX, symbol, half;
    uint32_t *copy_end = &copies, *other_end = &others;
    uir_icopy found[16];
    bool done = find_half(g, &g->phases.data[id], &half) && uir_igraph_find_copies(g, id, found, 16) > 0;
    if (done) { /* further pairs go over from the second half */
        uint32_t second = g->items.data[first].next;
        if (second == UINT32_MAX) return UIR_STATUS_OK;
        copy_end = &g->items.data[first].first_child;
        while (*copy_end != UINT32_MAX) copy_end = &g->items.data[*copy_end].next;
        first = g->items.data[second].first_child;
        other_end = &g->items.data[second].first_child;
    } else if (g->phases.data[id].parallel_count >= 4 || g->phases.data[id].has_kinds) {
        return UIR_STATUS_OK;
    }
    uint32_t moved = 0, kept = 0;
    for (uint32_t i = first; i != UINT32_MAX; i = g->items.data[i].next) {
        bool copy = copies_pair(g, i, in, out);
        if (!copy && reads_result(g, i, out)) return UIR_STATUS_OK;
        moved += copy;
        kept += !copy;
    }
    if (!moved || !kept) return UIR_STATUS_OK;
    for (uint32_t i = first, next; i != UINT32_MAX; i = next) {
        next = g->items.data[i].next;
        uint32_t **end = copies_pair(g, i, in, out) ? &copy_end : &other_end;
        g->items.data[i].next = UINT32_MAX;
        **end = i;
        *end = &g->items.data[i].next;
    }
    *other_end = UINT32_MAX;
    if (done) return UIR_STATUS_OK;
    char name[32];
    uint32_t number = 0, one, two;
    do {
        snprintf(name, sizeof name, "half%u", number++);
    } while (uir_igraph_find_symbol(g, name, strlen(name)) != UINT32_MAX);
    uir_dim extent = uir_dim_const(g->dims, 2);
    UIR_TRY(uir_igraph_add_symbol(g, name, strlen(name), UIR_ISYMBOL_PARALLEL, NULL, extent, &symbol));
    UIR_TRY(add_if(g, symbol, 0, copies, &one));
    UIR_TRY(add_if(g, symbol, 1, others, &two));
    g->items.data[one].next = two;
    uir_iphase *phase = &g->phases.data[id];
    memmove(phase->parallel + 1, phase->parallel, phase->parallel_count * sizeof *phase->parallel);
    phase->parallel[0] = (uir_iparallel){symbol, extent, UIR_SCOPE_GROUP};
    phase->parallel_count++;
    phase->bodies[0].first_item = one;
    return UIR_STATUS_OK;
}

uir_status uir_igraph_split_copies(uir_igraph *g, uint32_t in, uint32_t out) {
    for (uint32_t i = 0; i < g->phases.count; i++) {
        if (g->phases.data[i].body_count == 1) UIR_TRY(split_phase(g, i, in, out));
    }
    return UIR_STATUS_OK;
}
