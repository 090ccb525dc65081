/* Reductions of much into little, across groups: each is cut into parts that groups reduce side by side, and a second
 * phase combines what they left in the device's memory. How large a part is depends on sizes alone, so that the order
 * of adding is the same whoever runs it. */
#include "lower/tactics/tactics.h"

#include <string.h>

enum {
    MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS,
    MOST_LOOPS = UIR_LOOP_MAX_ITERS,
    PART = 4 * UIR_TACTIC_TILE, /* elements of a part, about: long beside what it takes to begin one */
    ENOUGH = 64,                /* units: with so many all are busy without parts */
};

/* A reduction in its untouched nest. */
typedef struct reduction {
    uint32_t block, loops[MOST_LOOPS], count;
    uint32_t kept;    /* how many of the loops, the first, are the result's; the others are reduced */
    uint32_t longest; /* of those */
    bool columns;     /* of several results side by side, else rows */
} reduction;

static void bounds(const uir_tactic *t, const uint32_t *loops, uint32_t count, int64_t *out_low, int64_t *out_high) {
    uir_dim_bounds(t->f->dims, uir_tactic_product_of(t, loops, count), out_low, out_high);
}

static bool find_reduction(const uir_tactic *t, uint32_t block, reduction *out) {
    int64_t low, high, greatest = 0;
    *out = (reduction){.block = block};
    if (!uir_tactic_only_statement(t, block) || !uir_tactic_has_kind(t, block, UIR_LOOP_STATEMENT_UPDATE)) return false;
    out->count = uir_schedule_loops(t->s, block, out->loops, MOST_LOOPS);
    if (out->count > MOST_LOOPS) return false;
    while (out->kept < out->count && !uir_schedule_is_reduce(t->s, out->loops[out->kept])) out->kept++;
    for (uint32_t i = out->kept; i < out->count; i++) {
        if (!uir_schedule_is_reduce(t->s, out->loops[i])) return false;
        bounds(t, &out->loops[i], 1, &low, &high);
        if (low > greatest) out->longest = i, greatest = low;
    }
    if (!uir_tactic_has_columns(t, block, &out->columns)) return false;
    out->columns = out->columns && out->kept;
    return greatest > 0;
}

/* Elements of the longest loop that make a part: 0 where parts are not worth a second phase. */
static int64_t part_length(const uir_tactic *t, const reduction *r) {
    int64_t results, least_results, elements, length, high, width = 1;
    bounds(t, r->loops, r->kept, &least_results, &results);
    bounds(t, r->loops, r->count, &elements, &high);
    bounds(t, &r->loops[r->longest], 1, &length, &high);
    if (least_results != results || length != high || results < 1) return 0;
    if (r->columns) {
        bounds(t, &r->loops[r->kept - 1], 1, &width, &high);
        if (width > t->column) width = t->column;
    }
    int64_t reduced = elements / results, units = results / width;
    if (units >= ENOUGH || reduced * width < 2 * PART) return 0;
    int64_t step = reduced / length * width; /* elements that an index of the loop brings */
    int64_t part = step < PART ? PART / step : 1;
    return part <= length / 2 ? part : 0;
}

/* Loops of a nest over what the result has, over parts, and what comes within a part: the part's within those that say
 * where, a slice of columns last. Gives how many come down to the part. */
static uir_status order_nest(uir_tactic *t, const reduction *r, uint32_t block, uint32_t part, uint32_t *out_loops,
                             uint32_t *out_count) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS), n = 0;
    uint32_t order[MOST_LOOPS + 1], lane = UIR_LOOP_NONE;
    for (uint32_t i = 0; i < r->kept; i++) order[n++] = loops[i];
    if (r->columns) {
        lane = order[n - 1];
        if (uir_tactic_is_short(t, uir_tactic_at(t, lane)->extent, t->column))
            n--;
        else
            UIR_TRY(uir_schedule_split(t->s, lane, uir_tactic_number(t, t->column), &order[n - 1], &lane));
    }
    order[n++] = loops[part];
    *out_count = n;
    for (uint32_t i = r->kept; i < count; i++)
        if (i != part) order[n++] = loops[i];
    if (lane != UIR_LOOP_NONE) order[n++] = lane;
    memcpy(out_loops, order, *out_count * sizeof *order);
    if (n < 2 || (n == count && !memcmp(order, loops, n * sizeof *order))) return UIR_STATUS_OK;
    return uir_schedule_reorder(t->s, order, n);
}

/* The nests of the blocks, which stand side by side, become one down to the part. The second one is the reduction. */
static uir_status join_nests(uir_tactic *t, const reduction *r, const uint32_t *blocks, uint32_t count) {
    uint32_t first[MOST_LOOPS + 1], loops[MOST_LOOPS + 1], depth = 0;
    bool done;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *to = i ? loops : first;
        UIR_TRY(order_nest(t, r, blocks[i], i == 1 ? r->longest : r->kept, to, &depth));
        for (uint32_t k = 0; k < depth && i; k++) UIR_TRY(uir_schedule_merge_loops(t->s, first[k], loops[k]));
    }
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_tactic_vectorise_block(t, blocks[i], first[depth - 1]));
    for (uint32_t i = 0; i < depth && i < 4; i++) {
        UIR_TRY(uir_tactic_asked(uir_schedule_set_kind(t->s, first[i], UIR_LOOP_PARALLEL, NULL), &done));
        if (!done) break;
    }
    return UIR_STATUS_OK;
}

/* Partial states, in memory for those that combine them. */
static uir_status reduce_by_parts(uir_tactic *t, const reduction *r, int64_t length) {
    uint32_t outer, inner, combine, blocks[2 + UIR_LOOP_MAX_STATE] = {0, r->block}, states[UIR_LOOP_MAX_STATE];
    const char *memory = uir_lower_space(t->machine, UIR_SPACE_MEMORY);
    UIR_TRY(uir_schedule_split(t->s, r->loops[r->longest], uir_tactic_number(t, length), &outer, &inner));
    UIR_TRY(uir_schedule_rfactor(t->s, r->block, outer, &blocks[0], &combine, NULL));
    const uir_loop_statement *update = uir_tactic_only_statement(t, r->block);
    uint32_t count = update->target_count;
    for (uint32_t i = 0; i < count; i++) states[i] = update->targets[i].tensor;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t copied;
        UIR_TRY(uir_schedule_cache_read(t->s, states[i], combine, memory, &copied, &blocks[2 + i]));
    }
    t->stores[t->store_count++] = blocks[2];
    return join_nests(t, r, blocks, 2 + count);
}

static bool is_complete(const uir_tactic *t, uint32_t top) {
    for (uint32_t i = 0; i < t->store_count; i++)
        if (top == uir_tactic_top_of(t, t->stores[i])) return true;
    return false;
}

/* How many complete products stand before a nest. */
static uint32_t segment_of(const uir_tactic *t, uint32_t top) {
    uint32_t segment = 0;
    for (uint32_t id = t->f->first; id != UIR_LOOP_NONE && id != top; id = uir_tactic_at(t, id)->next)
        segment += is_complete(t, id);
    return segment;
}

bool uir_tactic_is_complete(const uir_tactic *t, uint32_t top) {
    if (!t->store_count) return false;
    return is_complete(t, top) || (t->products && t->segment != UIR_LOOP_NONE && segment_of(t, top) != t->segment);
}

bool uir_tactic_is_of_parts(const uir_tactic *t, uint32_t block) {
    return t->store_count && uir_tactic_is_complete(t, uir_tactic_top_of(t, block));
}

bool uir_tactic_leaves(const uir_tactic *t, uint32_t tensor) {
    uint32_t readers[MOST_BLOCKS], count;
    if (!uir_tactic_is_temp(t, tensor)) return true;
    if (!t->products) return false;
    count = uir_schedule_readers(t->s, tensor, readers, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (uir_tactic_is_of_parts(t, readers[i])) return true;
    return false;
}

bool uir_tactic_wants_parts(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    reduction r;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS && t->machine->has_device_barrier; i++)
        if (find_reduction(t, blocks[i], &r) && part_length(t, &r)) return true;
    return false;
}

uir_status uir_tactic_reduce_by_parts(uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS && t->store_count < UIR_TACTIC_PARTED; i++) {
        reduction r;
        int64_t length = find_reduction(t, blocks[i], &r) ? part_length(t, &r) : 0;
        if (length) UIR_TRY(reduce_by_parts(t, &r, length));
    }
    return UIR_STATUS_OK;
}
