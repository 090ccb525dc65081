#include "tests/lower/schedule/random_steps.h"

enum { STEPS = 24 };

static uint32_t below(random_walk *w, uint32_t limit) {
    *w->state = *w->state * 6364136223846793005u + 1442695040888963407u;
    return limit ? (uint32_t)((*w->state >> 33) % limit) : 0;
}

static uint32_t any_block(random_walk *w) {
    uint32_t blocks[64], count = uir_schedule_blocks(w->schedule, UIR_LOOP_NONE, blocks, 64);
    return count ? blocks[below(w, count < 64 ? count : 64)] : 0;
}

static uint32_t any_loop_of(random_walk *w, uint32_t block) {
    uint32_t loops[32], count = uir_schedule_loops(w->schedule, block, loops, 32);
    return count ? loops[below(w, count < 32 ? count : 32)] : UIR_LOOP_NONE;
}

static uint32_t any_tensor(random_walk *w) {
    return below(w, w->function->tensors.count);
}

/* The block of an update, if one is found soon. */
static uint32_t any_update(random_walk *w) {
    uint32_t block = any_block(w);
    for (int k = 0; k < 8; k++) {
        const uir_loop_statement *statements = w->function->statements.data;
        if (statements[statements[block].first_child].kind == UIR_LOOP_STATEMENT_UPDATE) break;
        block = any_block(w);
    }
    return block;
}

static uint32_t tensor_of(random_walk *w, uint32_t block, bool written) {
    uint32_t found = UIR_LOOP_NONE, seen = 0;
    for (uint32_t i = 0; i < w->function->tensors.count; i++) {
        uint32_t blocks[64], count = written ? uir_schedule_writers(w->schedule, i, blocks, 64)
                                             : uir_schedule_readers(w->schedule, i, blocks, 64);
        for (uint32_t k = 0; k < count && k < 64; k++)
            if (blocks[k] == block && below(w, ++seen) == 0) found = i;
    }
    return found;
}

static uint32_t neighbour(random_walk *w, uint32_t block, bool consumer) {
    uint32_t tensor = tensor_of(w, block, consumer), blocks[64], count;
    if (tensor == UIR_LOOP_NONE) return block;
    count = consumer ? uir_schedule_readers(w->schedule, tensor, blocks, 64)
                     : uir_schedule_writers(w->schedule, tensor, blocks, 64);
    return count ? blocks[below(w, count < 64 ? count : 64)] : block;
}

static uir_status try_split(random_walk *w) {
    uir_dims *dims = w->function->dims;
    uint32_t loop = any_loop_of(w, any_block(w)), kind = below(w, 8);
    uint32_t tiles = w->function->tiles.count, sizes = w->function->sizes.count;
    uir_dim factor = uir_dim_const(dims, below(w, 5));
    if (kind == 0 && tiles) factor = uir_dim_symbol(dims, w->function->tiles.data[below(w, tiles)].symbol);
    if (kind == 1 && sizes) factor = uir_dim_symbol(dims, w->function->sizes.data[below(w, sizes)].symbol);
    return uir_schedule_split(w->schedule, loop, factor, NULL, NULL);
}

static uir_status try_fuse(random_walk *w) {
    uint32_t loop = any_loop_of(w, any_block(w));
    if (loop == UIR_LOOP_NONE) return UIR_STATUS_UNSUPPORTED;
    return uir_schedule_fuse(w->schedule, loop, w->function->statements.data[loop].first_child, NULL);
}

static uir_status try_reorder(random_walk *w) {
    uint32_t loops[32], count = uir_schedule_loops(w->schedule, any_block(w), loops, 32);
    if (count > 32) count = 32;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = below(w, i), kept = loops[i - 1];
        loops[i - 1] = loops[k];
        loops[k] = kept;
    }
    return uir_schedule_reorder(w->schedule, loops, count > 2 && below(w, 2) ? 2 : count);
}

static uir_status merge_with(random_walk *w, uir_status (*merge)(uir_schedule *, uint32_t, uint32_t)) {
    uint32_t first[32], second[32], a = any_block(w);
    uint32_t b = below(w, 3) ? neighbour(w, a, true) : any_block(w);
    uint32_t m = uir_schedule_loops(w->schedule, a, first, 32), n = uir_schedule_loops(w->schedule, b, second, 32),
             k = 0;
    while (k < m && k < n && first[k] == second[k]) k++;
    if (k == m || k == n) return UIR_STATUS_UNSUPPORTED;
    return merge(w->schedule, first[k], second[k]);
}

static uir_status try_merge(random_walk *w) {
    return merge_with(w, uir_schedule_merge_loops);
}

static uir_status try_merge_into(random_walk *w) {
    return merge_with(w, uir_schedule_merge_into);
}

static uir_status try_kind(random_walk *w) {
    uir_loop_kind kind = (uir_loop_kind)below(w, UIR_LOOP_KIND_COUNT);
    return uir_schedule_set_kind(w->schedule, any_loop_of(w, any_block(w)), kind,
                                 kind == UIR_LOOP_BOUND ? "group" : NULL);
}

static uir_status try_inline(random_walk *w) {
    return uir_schedule_inline(w->schedule, any_block(w));
}

static uir_status try_reverse_inline(random_walk *w) {
    return uir_schedule_reverse_inline(w->schedule, any_block(w));
}

static uir_status try_compute_at(random_walk *w) {
    uint32_t block = any_block(w);
    return uir_schedule_compute_at(w->schedule, block, any_loop_of(w, neighbour(w, block, true)));
}

static uir_status try_reverse_compute_at(random_walk *w) {
    uint32_t block = any_block(w);
    return uir_schedule_reverse_compute_at(w->schedule, block, any_loop_of(w, neighbour(w, block, false)));
}

static uir_status try_shrink(random_walk *w) {
    return uir_schedule_shrink(w->schedule, any_tensor(w));
}

static uir_status try_rfactor(random_walk *w) {
    uint32_t block = any_update(w);
    return uir_schedule_rfactor(w->schedule, block, any_loop_of(w, block), NULL, NULL, NULL);
}

static uir_status try_factorise(random_walk *w) {
    uint32_t block = any_update(w);
    return uir_schedule_factorise_reduction(w->schedule, block, any_loop_of(w, block),
                                            uir_dim_const(w->function->dims, 1 + below(w, 4)), NULL, NULL, NULL);
}

static uir_status try_annotate(random_walk *w) {
    return uir_schedule_annotate(w->schedule, any_block(w), "seen");
}

static uir_status try_cache_read(random_walk *w) {
    uint32_t block = any_block(w);
    return uir_schedule_cache_read(w->schedule, tensor_of(w, block, false), block, w->space, NULL, NULL);
}

static uir_status try_cache_write(random_walk *w) {
    return uir_schedule_cache_write(w->schedule, any_tensor(w), w->space, NULL, NULL);
}

static uir_status try_set_scope(random_walk *w) {
    return uir_schedule_set_scope(w->schedule, any_tensor(w), below(w, 2) ? "dram" : w->space);
}

static uir_dim rather_longer(random_walk *w, uir_dim extent) {
    return uir_dim_add(w->function->dims, extent, uir_dim_const(w->function->dims, below(w, 4)));
}

static uir_status try_extend(random_walk *w) {
    uint32_t loop = any_loop_of(w, any_block(w));
    if (loop == UIR_LOOP_NONE) return UIR_STATUS_UNSUPPORTED;
    return uir_schedule_extend(w->schedule, loop, rather_longer(w, w->function->statements.data[loop].extent));
}

static uir_status try_unit_loop(random_walk *w) {
    return uir_schedule_add_unit_loop(w->schedule, any_loop_of(w, any_block(w)), NULL);
}

static uir_status try_move_before(random_walk *w) {
    return uir_schedule_move_before(w->schedule, any_block(w), any_block(w));
}

static uir_status try_pad(random_walk *w) {
    uint32_t tensor = any_tensor(w), rank = w->function->tensors.data[tensor].rank, dim = below(w, rank);
    if (!rank) return UIR_STATUS_UNSUPPORTED;
    return uir_schedule_pad(w->schedule, tensor, dim, rather_longer(w, w->function->tensors.data[tensor].extents[dim]));
}

static void shuffle(random_walk *w, uint32_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) numbers[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = below(w, i), kept = numbers[i - 1];
        numbers[i - 1] = numbers[k];
        numbers[k] = kept;
    }
}

static uir_status try_arrange(random_walk *w) {
    uint32_t tensor = any_tensor(w), count = w->function->tensors.data[tensor].rank, dims[UIR_LOOP_MAX_RANK + 1];
    shuffle(w, dims, count);
    if (below(w, 4) == 0) dims[count++] = UIR_LOOP_NONE;
    if (count && below(w, 4) == 0) count--;
    return uir_schedule_arrange(w->schedule, tensor, dims, count);
}

/* Dims one inside the other in any order, perhaps apart. */
static uir_status try_set_layout(random_walk *w) {
    uint32_t tensor = any_tensor(w), dims[UIR_LOOP_MAX_RANK];
    const uir_loop_tensor *t = &w->function->tensors.data[tensor];
    uir_dim strides[UIR_LOOP_MAX_RANK], reach = uir_dim_const(w->function->dims, 1 + below(w, 2));
    uir_layout layout = {0};
    shuffle(w, dims, t->rank);
    for (uint32_t i = 0; i < t->rank; i++) {
        strides[dims[i]] = reach;
        reach = uir_dim_mul(w->function->dims, reach, rather_longer(w, t->extents[dims[i]]));
    }
    uir_layout_set_strides(&layout, t->extents, strides, t->rank);
    return uir_schedule_set_layout(w->schedule, tensor, &layout);
}

static uir_schedule_operand any_operand(random_walk *w) {
    return (uir_schedule_operand){.which = below(w, 2), .guarded = below(w, 4) == 0, .name = "ahead"};
}

static uint32_t any_iters(random_walk *w, uint32_t block, uint32_t *iters) {
    uint32_t count = w->function->statements.data[block].iter_count;
    shuffle(w, iters, count);
    return below(w, 3) ? count : below(w, count + 1);
}

static uir_status try_cache_operand(random_walk *w) {
    uint32_t block = any_update(w), iters[UIR_LOOP_MAX_ITERS], count = any_iters(w, block, iters);
    uir_schedule_operand operand = any_operand(w);
    uint32_t loop = below(w, 3) ? any_loop_of(w, block) : UIR_LOOP_NONE;
    return uir_schedule_cache_operand(w->schedule, block, &operand, iters, count, loop, w->space, NULL, NULL);
}

static uir_status try_exchange(random_walk *w) {
    return uir_schedule_exchange(w->schedule, any_update(w));
}

static uir_status try_leave_out(random_walk *w) {
    uint32_t blocks[32], count = uir_schedule_blocks(w->schedule, UIR_LOOP_NONE, blocks, 32), first = below(w, 32);
    uir_status status = UIR_STATUS_UNSUPPORTED;
    if (count > 32) count = 32;
    for (uint32_t k = 0; k < 4 * count && status == UIR_STATUS_UNSUPPORTED; k++)
        status = uir_schedule_leave_out(w->schedule, blocks[(first + k / 4) % count], k / 2 % 2, k % 2);
    return status;
}

const random_step random_step_rows[RANDOM_STEPS] = {
    {"split", try_split, 2},
    {"fuse", try_fuse, 3},
    {"reorder", try_reorder, 6},
    {"merge loops", try_merge, 8},
    {"merge into", try_merge_into, 8},
    {"set kind", try_kind, 3},
    {"inline", try_inline, 3},
    {"reverse inline", try_reverse_inline, 3},
    {"compute at", try_compute_at, 8},
    {"reverse compute at", try_reverse_compute_at, 8},
    {"shrink", try_shrink, 7},
    {"rfactor", try_rfactor, 8},
    {"factorise reduction", try_factorise, 6},
    {"annotate", try_annotate, 1},
    {"cache read", try_cache_read, 1},
    {"cache write", try_cache_write, 1},
    {"set scope", try_set_scope, 2},
    {"extend", try_extend, 1},
    {"unit loop", try_unit_loop, 1},
    {"move before", try_move_before, 2},
    {"pad", try_pad, 2},
    {"arrange", try_arrange, 2},
    {"set layout", try_set_layout, 2},
    {"cache operand", try_cache_operand, 2},
    {"exchange", try_exchange, 1},
    {"leave out", try_leave_out, 4},
};

uint32_t random_step_choose(random_walk *w) {
    uint32_t total = 0, at;
    for (uint32_t i = 0; i < RANDOM_STEPS; i++) total += random_step_rows[i].weight;
    at = below(w, total);
    for (uint32_t i = 0; i < RANDOM_STEPS; i++) {
        if (at < random_step_rows[i].weight) return i;
        at -= random_step_rows[i].weight;
    }
    return 0;
}

uir_loop_function *random_steps(const uir_loop_function *naive, const uir_machine *machine, uint64_t seed,
                                uir_diagnostics *diagnostics, uir_text *trace) {
    uint64_t state = seed * 2654435761u + 12345;
    random_walk w = {.state = &state, .space = "sram"};
    uir_text text;
    uir_text_init(&text, &naive->allocator);
    uir_loop_print(naive, &text);
    uir_status status = uir_loop_parse(&naive->allocator, text.data, text.length, "steps", diagnostics, &w.function);
    uir_text_deinit(&text);
    if (status == UIR_STATUS_OK) status = uir_schedule_create(w.function, machine, diagnostics, &w.schedule);
    if (status == UIR_STATUS_OK) uir_schedule_set_mode(w.schedule, UIR_SCHEDULE_QUIET);
    for (int k = 0; k < STEPS && status == UIR_STATUS_OK; k++) {
        status = random_step_rows[random_step_choose(&w)].attempt(&w);
        if (status == UIR_STATUS_UNSUPPORTED) status = UIR_STATUS_OK;
    }
    if (status == UIR_STATUS_OK) status = uir_loop_verify(w.function, diagnostics);
    if (w.schedule && uir_schedule_trace(w.schedule)->data)
        uir_text_append(trace, uir_schedule_trace(w.schedule)->data, uir_schedule_trace(w.schedule)->length);
    uir_schedule_destroy(w.schedule);
    if (status == UIR_STATUS_OK) return w.function;
    uir_loop_function_destroy(w.function);
    return NULL;
}
