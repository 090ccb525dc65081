/* Runs: maximal sequences of elementwise instructions over one shape at one place, and what dies inside them.
 *
 * A local pointer is dead in every run when, wherever the kernel reads it, the same run has written that very slice
 * before: no other place then sees its contents. */
#include "ir/kernel/igraph_runs.h"

#include "ir/kernel/igraph_threads.h"

#include <string.h>

#define NONE UINT32_MAX

enum { LEAST = 4 /* rows or columns that are worth a copy of their own */ };

bool uir_islice_equal(const uir_islice *a, const uir_islice *b) {
    if (a->pointer != b->pointer || a->window || b->window || a->rank != b->rank || a->block != b->block ||
        a->has_fill != b->has_fill || (a->has_fill && memcmp(&a->fill, &b->fill, sizeof a->fill) != 0))
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!uir_dim_equal(a->starts[d], b->starts[d]) || !uir_dim_equal(a->counts[d], b->counts[d])) return false;
    }
    return true;
}

static bool is_one(const uir_igraph *igraph, uir_dim dim) {
    int64_t value;
    return uir_dim_is_const(igraph->dims, dim, &value) && value == 1;
}

/* Every dim of the operand is the result's (aligned at the end) or 1, or the last one repeats. */
static bool broadcasts(const uir_igraph *igraph, const uir_islice *operand, const uir_islice *result) {
    for (uint32_t d = 0; d < operand->rank; d++) {
        uint32_t from_end = operand->rank - d;
        if (is_one(igraph, operand->counts[d]) || (operand->block && from_end == 1)) continue;
        if (from_end > result->rank || !uir_dim_equal(operand->counts[d], result->counts[result->rank - from_end]))
            return false;
    }
    return true;
}

/* Elementwise: each result element needs one element (or a broadcast one) of each operand. */
static bool iinstruction_is_elementwise(const uir_igraph *igraph, const uir_iinstruction *in) {
    switch (uir_iop_get_row(in->code)->family) {
    case UIR_IOP_FAMILY_MOVE:
    case UIR_IOP_FAMILY_FILL:
    case UIR_IOP_FAMILY_IOTA:
    case UIR_IOP_FAMILY_UNARY:
    case UIR_IOP_FAMILY_BINARY:
    case UIR_IOP_FAMILY_COMPARE:
    case UIR_IOP_FAMILY_TERNARY:
    case UIR_IOP_FAMILY_CAST:
    case UIR_IOP_FAMILY_BROADCAST:
        break;
    default:
        return false;
    }
    if (in->scope != UIR_SCOPE_UNIT || in->slices[0].block) return false;
    for (uint32_t k = 1; k < in->slice_count; k++) {
        if (!broadcasts(igraph, &in->slices[k], &in->slices[0])) return false;
    }
    return true;
}

bool uir_iinstruction_ends_run(const uir_igraph *igraph, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1];
    if (uir_iop_get_row(in->code)->family != UIR_IOP_FAMILY_REDUCE || in->axis != UIR_IAXIS_ROW ||
        in->scope != UIR_SCOPE_UNIT || from->rank == 0)
        return false;
    if (to->rank + 1 < from->rank || to->rank > from->rank) return false;
    if (to->rank == from->rank && !is_one(igraph, to->counts[to->rank - 1])) return false;
    for (uint32_t d = 0; d + 1 < from->rank; d++) {
        if (!uir_dim_equal(to->counts[d], from->counts[d])) return false;
    }
    return true;
}

/* The slice whose dims are the run's loops. */
static const uir_islice *shape_of(const uir_iinstruction *in) {
    return &in->slices[uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_REDUCE ? 1 : 0];
}

/* Equal dims; leading ones do not count. */
static bool same_shape(const uir_igraph *igraph, const uir_islice *a, const uir_islice *b) {
    uint32_t i = a->rank, j = b->rank;
    while (i > 0 && j > 0) {
        i--, j--;
        if (!uir_dim_equal(a->counts[i], b->counts[j])) return false;
    }
    while (i > 0)
        if (!is_one(igraph, a->counts[--i])) return false;
    while (j > 0)
        if (!is_one(igraph, b->counts[--j])) return false;
    return true;
}

/* One of the two writes what the other touches through another slice, or through another pointer of its place. */
static bool conflicts(const uir_igraph *igraph, const uir_iinstruction *a, const uir_iinstruction *b) {
    for (uint32_t i = 0; i < a->slice_count; i++) {
        for (uint32_t j = 0; j < b->slice_count; j++) {
            bool written = i == 0 || j == 0;
            uint32_t p = a->slices[i].pointer, q = b->slices[j].pointer;
            if (written &&
                (p == q ? !uir_islice_equal(&a->slices[i], &b->slices[j]) : uir_igraph_share_place(igraph, p, q)))
                return true;
        }
    }
    return false;
}

static bool reads_result(const uir_iinstruction *reader, const uir_iinstruction *writer) {
    for (uint32_t k = reader->accumulate ? 0 : 1; k < reader->slice_count; k++) {
        if (reader->slices[k].pointer == writer->slices[0].pointer) return true;
    }
    return false;
}

bool uir_igraph_run_accepts(const uir_igraph *igraph, const uir_iinstruction *const *run, uint32_t count,
                            const uir_iinstruction *next) {
    bool reduces = uir_iop_get_row(next->code)->family == UIR_IOP_FAMILY_REDUCE;
    if (reduces ? !uir_iinstruction_ends_run(igraph, next) : !iinstruction_is_elementwise(igraph, next)) return false;
    /* Through two slices of one pointer, one of them written, elements would meet across blocks. */
    for (uint32_t k = 1; k < next->slice_count; k++) {
        if (next->slices[k].pointer == next->slices[0].pointer && !uir_islice_equal(&next->slices[k], &next->slices[0]))
            return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool earlier = uir_iop_get_row(run[i]->code)->family == UIR_IOP_FAMILY_REDUCE;
        if (earlier && (!reduces || reads_result(next, run[i]))) return false;
        if (earlier && next->slices[0].pointer == run[i]->slices[0].pointer) return false;
        if (!same_shape(igraph, shape_of(run[i]), shape_of(next)) || conflicts(igraph, run[i], next)) return false;
        /* A reduction's rows are the operand's own: no leading ones dropped. */
        if (reduces && shape_of(next)->rank != shape_of(run[i])->rank) return false;
    }
    return true;
}

/* ---- the pass ---- */
typedef struct runs {
    uir_igraph *igraph;
    bool *exposed; /* per pointer: read somewhere that did not write it first */
    const uir_iinstruction **members;
    uint32_t capacity;
} runs;

static const uir_iinstruction *member(const runs *r, uint32_t item) {
    const uir_iitem *it = &r->igraph->items.data[item];
    if (it->kind != UIR_IITEM_INSTRUCTION || it->guard.count > 0) return NULL;
    return &r->igraph->instructions.data[it->instruction];
}

/* Along a dim of the slice, counted from its end: do neighbours lie side by side? */
static bool are_side_by_side(const uir_igraph *igraph, const uir_islice *slice, uint32_t from_end) {
    const uir_ipointer *p = &igraph->pointers.data[slice->pointer];
    const uir_islice_axis *axis = NULL;
    uint32_t dim = slice->rank - from_end;
    if (slice->rank < from_end || (!slice->window && slice->rank > p->rank)) return false;
    for (uint32_t a = 0; slice->window && a < slice->axis_count; a++) {
        if (slice->axes[a].dim != dim) continue;
        if (axis) return false;
        axis = &slice->axes[a];
    }
    if (slice->window && !axis) return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t stride;
        if (axis ? !uir_dim_mentions(igraph->dims, slice->starts[d], (uir_symbol){axis->symbol}) : d != dim) continue;
        return p->layout.mode_count[d] == 1 && uir_dim_is_const(igraph->dims, p->layout.modes[d][0].stride, &stride) &&
               stride == 1;
    }
    return false;
}

/* A matrix that is copied with its rows and columns exchanged in memory: by itself it can be done in blocks. */
static bool turns(const uir_igraph *igraph, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1];
    if (uir_iop_get_row(in->code)->family != UIR_IOP_FAMILY_MOVE || in->slice_count != 2 || to->block || from->block)
        return false;
    for (uint32_t k = 1; k <= 2; k++) /* nothing is gained by columns of a few elements */
        for (uint32_t i = 0; i < 2; i++) {
            int64_t count;
            const uir_islice *slice = &in->slices[i];
            if (slice->rank < k ||
                (uir_dim_is_const(igraph->dims, slice->counts[slice->rank - k], &count) && count < LEAST))
                return false;
        }
    bool made = are_side_by_side(igraph, to, 1), given = are_side_by_side(igraph, from, 1);
    return made != given && are_side_by_side(igraph, made ? from : to, 2);
}

/* How many siblings from `first` on form a run; they are left in `members`. */
static uint32_t run_length(runs *r, uint32_t first) {
    uint32_t count = 0;
    for (uint32_t i = first; i != NONE && count < r->capacity; i = r->igraph->items.data[i].next) {
        const uir_iinstruction *in = member(r, i);
        if (!in || !uir_igraph_run_accepts(r->igraph, r->members, count, in)) break;
        if (count && uir_ithreads_count(r->igraph) > 1 && !uir_ithreads_go_alike(r->igraph, r->members[0], in)) break;
        if (count && (turns(r->igraph, in) || turns(r->igraph, r->members[count - 1]))) break;
        r->members[count++] = in;
    }
    return count;
}

/* Replaces each sequence by a RUN item that holds it; returns the new first of the list. */
static uir_status form(runs *r, uint32_t first, uint32_t *out_first) {
    uir_igraph *g = r->igraph;
    uint32_t previous = NONE;
    *out_first = first;
    for (uint32_t i = first; i != NONE;) {
        uint32_t count = run_length(r, i), at = i;
        if (count == 0) {
            uir_iitem_kind kind = g->items.data[i].kind;
            if (kind == UIR_IITEM_LOOP || kind == UIR_IITEM_IF) {
                uint32_t child;
                UIR_TRY(form(r, g->items.data[i].first_child, &child));
                g->items.data[i].first_child = child;
            }
        } else {
            uint32_t last = i;
            for (uint32_t k = 1; k < count; k++) last = g->items.data[last].next;
            uir_iitem run = {.kind = UIR_IITEM_RUN,
                             .first_child = i,
                             .next = g->items.data[last].next,
                             .line = g->items.data[i].line};
            run.symbol = run.instruction = NONE;
            g->items.data[last].next = NONE;
            UIR_TRY(uir_vector_push(&g->arena, &g->items, run));
            at = g->items.count - 1;
            if (previous == NONE)
                *out_first = at;
            else
                g->items.data[previous].next = at;
        }
        previous = at;
        i = g->items.data[at].next;
    }
    return UIR_STATUS_OK;
}

/* Reads of an instruction that nothing before it in its run has written. */
static void expose(const runs *r, const uir_iinstruction *in, const uir_iinstruction *const *before, uint32_t count) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    bool reads_first = in->accumulate || family == UIR_IOP_FAMILY_MMA;
    for (uint32_t k = reads_first ? 0 : 1; k < in->slice_count; k++) {
        bool written = false;
        for (uint32_t i = 0; i < count; i++) written |= uir_islice_equal(&before[i]->slices[0], &in->slices[k]);
        if (!written) r->exposed[in->slices[k].pointer] = true;
    }
}

static void find_exposed(runs *r, uint32_t first, bool in_run) {
    uint32_t count = 0;
    for (uint32_t i = first; i != NONE; i = r->igraph->items.data[i].next) {
        const uir_iitem *item = &r->igraph->items.data[i];
        switch (item->kind) {
        case UIR_IITEM_LOOP:
        case UIR_IITEM_IF:
            find_exposed(r, item->first_child, false);
            break;
        case UIR_IITEM_RUN:
            find_exposed(r, item->first_child, true);
            break;
        case UIR_IITEM_INDEX:
            r->exposed[item->index.slice.pointer] = true;
            break;
        case UIR_IITEM_INSTRUCTION: {
            const uir_iinstruction *in = &r->igraph->instructions.data[item->instruction];
            expose(r, in, r->members, in_run ? count : 0);
            if (in_run && count < r->capacity) r->members[count++] = in;
            break;
        }
        case UIR_IITEM_LET:
            break;
        }
    }
}

static uir_status find_dead(runs *r) {
    uir_igraph *g = r->igraph;
    for (uint32_t i = 0; i < g->items.count; i++) {
        if (g->items.data[i].kind != UIR_IITEM_RUN) continue;
        uint32_t *dead, count = 0, members = 0;
        for (uint32_t c = g->items.data[i].first_child; c != NONE; c = g->items.data[c].next) members++;
        UIR_TRY_ALLOCATE(dead, uir_arena_allocate_array(&g->arena, members + 1, sizeof *dead));
        for (uint32_t c = g->items.data[i].first_child; c != NONE; c = g->items.data[c].next) {
            if (g->items.data[c].kind != UIR_IITEM_INSTRUCTION) continue;
            const uir_iinstruction *in = &g->instructions.data[g->items.data[c].instruction];
            uint32_t pointer = in->slices[0].pointer;
            bool known = r->exposed[pointer] || g->pointers.data[pointer].role != UIR_IPOINTER_LOCAL;
            for (uint32_t k = 0; k < count; k++) known |= dead[k] == pointer;
            if (!known) dead[count++] = pointer;
        }
        g->items.data[i].dead = dead;
        g->items.data[i].dead_count = count;
    }
    return UIR_STATUS_OK;
}

uir_status uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics) {
    (void)diagnostics;
    runs r = {.igraph = igraph, .capacity = igraph->instructions.count};
    uir_arena scratch;
    uir_status status = UIR_STATUS_OK;
    uir_arena_init(&scratch, &igraph->allocator);
    r.exposed = uir_arena_allocate_array(&scratch, igraph->pointers.count + 1, sizeof *r.exposed);
    r.members = uir_arena_allocate_array(&scratch, r.capacity + 1, sizeof *r.members);
    if (!r.exposed || !r.members) status = UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t p = 0; p < igraph->phases.count && status == UIR_STATUS_OK; p++) {
        for (uint32_t b = 0; b < igraph->phases.data[p].body_count && status == UIR_STATUS_OK; b++) {
            uir_ibody *body = &igraph->phases.data[p].bodies[b];
            status = form(&r, body->first_item, &body->first_item);
        }
    }
    for (uint32_t p = 0; p < igraph->phases.count && status == UIR_STATUS_OK; p++) {
        for (uint32_t b = 0; b < igraph->phases.data[p].body_count; b++)
            find_exposed(&r, igraph->phases.data[p].bodies[b].first_item, false);
    }
    if (status == UIR_STATUS_OK) status = find_dead(&r);
    uir_arena_deinit(&scratch);
    return status;
}
