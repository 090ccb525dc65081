/* Which local pointers mirror an argument. One walk in program order: a move makes its pointer known
 * for the rest of its list of items; whatever touches the pointer otherwise rules it out. */
#include "ir/kernel/igraph_forwarding.h"

#include "ir/kernel/igraph_runs.h"

#define NONE UINT32_MAX

typedef struct search {
    const uir_igraph *igraph;
    const uir_iinstruction **moves; /* per pointer */
    bool *known;                    /* per pointer: its move comes before, in this list or one around it */
    uint32_t *trail;                /* pointers in the order in which they became known */
    uint32_t length;
} search;

static bool has_plain_rows(const uir_igraph *igraph, const uir_islice *slice) {
    const uir_ipointer *p = &igraph->pointers.data[slice->pointer];
    int64_t stride;
    return !slice->window && !slice->has_fill && !slice->block && p->rank > 0 && p->instances == 1 &&
           !p->layout.swizzle.bits && p->layout.mode_count[p->rank - 1] == 1 &&
           uir_dim_is_const(igraph->dims, p->layout.modes[p->rank - 1][0].stride, &stride) && stride == 1;
}

static bool is_written(const uir_igraph *igraph, uint32_t pointer) {
    for (uint32_t i = 0; i < igraph->instructions.count; i++) {
        const uir_iinstruction *in = &igraph->instructions.data[i];
        if (in->slice_count && in->slices[0].pointer == pointer) return true;
    }
    for (uint32_t i = 0; i < igraph->pointers.count; i++)
        if (igraph->pointers.data[i].tied == pointer) return true;
    return false;
}

static bool is_mirrored(const uir_igraph *igraph, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1];
    if (uir_iop_get_row(in->code)->family != UIR_IOP_FAMILY_MOVE || in->slice_count != 2) return false;
    uir_ipointer_role role = igraph->pointers.data[from->pointer].role;
    if (igraph->pointers.data[to->pointer].role != UIR_IPOINTER_LOCAL || to->rank != from->rank ||
        (role != UIR_IPOINTER_IN && role != UIR_IPOINTER_CONST) || in->unguarded != 3 || !has_plain_rows(igraph, to) ||
        !has_plain_rows(igraph, from) || is_written(igraph, from->pointer))
        return false;
    for (uint32_t d = 0; d < to->rank; d++)
        if (!uir_dim_equal(to->counts[d], from->counts[d])) return false;
    return true;
}

/* The only write of each pointer, if it fills a mirror. */
static void find_moves(search *s) {
    const uir_igraph *g = s->igraph;
    for (uint32_t i = 0; i < g->instructions.count; i++) {
        const uir_iinstruction *in = &g->instructions.data[i];
        if (!in->slice_count) continue;
        uint32_t pointer = in->slices[0].pointer;
        s->moves[pointer] = !s->known[pointer] && is_mirrored(g, in) ? in : NULL;
        s->known[pointer] = true; /* written already */
    }
    for (uint32_t i = 0; i < g->pointers.count; i++) s->known[i] = false;
}

static void rule_out(search *s, uint32_t pointer) {
    s->moves[pointer] = NULL;
}

static void see_instruction(search *s, const uir_iinstruction *in, bool guarded) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    bool product = family == UIR_IOP_FAMILY_MMA;
    for (uint32_t k = in->accumulate || product ? 0 : 1; k < in->slice_count; k++) {
        const uir_islice *slice = &in->slices[k];
        const uir_iinstruction *move = s->moves[slice->pointer];
        if (!move) continue;
        if (product || !s->known[slice->pointer] || !uir_islice_equal(slice, &move->slices[0]))
            rule_out(s, slice->pointer);
    }
    if (in->has_scratch) rule_out(s, in->scratch.pointer);
    if (!in->slice_count || s->moves[in->slices[0].pointer] != in) return;
    if (guarded)
        rule_out(s, in->slices[0].pointer);
    else
        s->known[in->slices[0].pointer] = true, s->trail[s->length++] = in->slices[0].pointer;
}

static void see_items(search *s, uint32_t first) {
    for (uint32_t i = first; i != NONE; i = s->igraph->items.data[i].next) {
        const uir_iitem *item = &s->igraph->items.data[i];
        uint32_t before = s->length;
        switch (item->kind) {
        case UIR_IITEM_INSTRUCTION:
            see_instruction(s, &s->igraph->instructions.data[item->instruction], item->guard.count > 0);
            break;
        case UIR_IITEM_INDEX:
            rule_out(s, item->index.slice.pointer);
            break;
        case UIR_IITEM_LET:
            break;
        case UIR_IITEM_RUN:
        case UIR_IITEM_LOOP:
        case UIR_IITEM_IF:
            see_items(s, item->first_child);
            if (item->kind == UIR_IITEM_RUN && item->guard.count == 0) break; /* steps of this list */
            while (s->length > before) s->known[s->trail[--s->length]] = false;
            break;
        }
    }
}

uir_status uir_igraph_find_forwarded(const uir_igraph *igraph, const uir_iinstruction **out_moves) {
    uint32_t count = igraph->pointers.count;
    search s = {.igraph = igraph, .moves = out_moves};
    uir_arena scratch;
    for (uint32_t i = 0; i < count; i++) out_moves[i] = NULL;
    uir_arena_init(&scratch, &igraph->allocator);
    s.known = uir_arena_allocate_array(&scratch, count + 1, sizeof *s.known);
    s.trail = uir_arena_allocate_array(&scratch, count + 1, sizeof *s.trail);
    uir_status status = s.known && s.trail ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    if (status == UIR_STATUS_OK) {
        find_moves(&s);
        for (uint32_t p = 0; p < igraph->phases.count; p++) {
            for (uint32_t b = 0; b < igraph->phases.data[p].body_count; b++) {
                see_items(&s, igraph->phases.data[p].bodies[b].first_item);
                while (s.length > 0) s.known[s.trail[--s.length]] = false;
            }
        }
    }
    uir_arena_deinit(&scratch);
    return status;
}
