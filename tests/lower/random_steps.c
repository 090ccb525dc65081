#include "tests/lower/random_steps.h"

enum { STEPS = 24, MOST = 64 };

typedef struct walk {
    uir_loop_function *f;
    uir_schedule *s;
    uint64_t state;
} walk;

static uint32_t below(walk *w, uint32_t limit) {
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return limit ? (uint32_t)((w->state >> 33) % limit) : 0;
}

static uint32_t any_block(walk *w) {
    uint32_t blocks[MOST], count = uir_schedule_blocks(w->s, UIR_LOOP_NONE, blocks, MOST);
    return blocks[below(w, count < MOST ? count : MOST)];
}

static uint32_t any_loop(walk *w, uint32_t block) {
    uint32_t loops[MOST], count = uir_schedule_loops(w->s, block, loops, MOST);
    return count ? loops[below(w, count < MOST ? count : MOST)] : UIR_LOOP_NONE;
}

static uint32_t any_tensor(walk *w) {
    return below(w, w->f->tensors.count);
}

/* A block that reads what this one writes, or writes what it reads; itself when there is none. */
static uint32_t neighbour(walk *w, uint32_t block, bool reader) {
    for (int k = 0; k < 8; k++) {
        uint32_t tensor = any_tensor(w), these[MOST], others[MOST], found = MOST;
        uint32_t count =
            reader ? uir_schedule_writers(w->s, tensor, these, MOST) : uir_schedule_readers(w->s, tensor, these, MOST);
        for (uint32_t i = 0; i < count && i < MOST; i++)
            if (these[i] == block) found = i;
        if (found == MOST) continue;
        count = reader ? uir_schedule_readers(w->s, tensor, others, MOST)
                       : uir_schedule_writers(w->s, tensor, others, MOST);
        if (count) return others[below(w, count < MOST ? count : MOST)];
    }
    return block;
}

static uir_status try_split(walk *w) {
    uir_dim factor = uir_dim_const(w->f->dims, 1 + below(w, 5));
    return uir_schedule_split(w->s, any_loop(w, any_block(w)), factor, NULL, NULL);
}
static uir_status try_fuse(walk *w) {
    uint32_t loop = any_loop(w, any_block(w));
    if (loop == UIR_LOOP_NONE) return UIR_STATUS_UNSUPPORTED;
    return uir_schedule_fuse(w->s, loop, w->f->statements.data[loop].first_child, NULL);
}
static uir_status try_reorder(walk *w) {
    uint32_t loops[MOST], count = uir_schedule_loops(w->s, any_block(w), loops, MOST);
    if (count < 2 || count > MOST) return UIR_STATUS_UNSUPPORTED;
    uint32_t a = below(w, count), b = below(w, count), pair[2] = {loops[a > b ? a : b], loops[a > b ? b : a]};
    return a == b ? UIR_STATUS_UNSUPPORTED : uir_schedule_reorder(w->s, pair, 2);
}
static uir_status try_merge(walk *w) {
    uint32_t a = any_block(w), b = neighbour(w, a, true), first[MOST], second[MOST], k = 0;
    uint32_t m = uir_schedule_loops(w->s, a, first, MOST), n = uir_schedule_loops(w->s, b, second, MOST);
    while (k < m && k < n && first[k] == second[k]) k++;
    return k == m || k == n ? UIR_STATUS_UNSUPPORTED : uir_schedule_merge_loops(w->s, first[k], second[k]);
}
static uir_status try_kind(walk *w) {
    uir_loop_kind kind = (uir_loop_kind)below(w, UIR_LOOP_KIND_COUNT);
    return uir_schedule_set_kind(w->s, any_loop(w, any_block(w)), kind, kind == UIR_LOOP_BOUND ? "group" : NULL);
}
static uir_status try_inline(walk *w) {
    return uir_schedule_inline(w->s, any_block(w));
}
static uir_status try_reverse_inline(walk *w) {
    return uir_schedule_reverse_inline(w->s, any_block(w));
}
static uir_status try_compute_at(walk *w) {
    uint32_t block = any_block(w);
    return uir_schedule_compute_at(w->s, block, any_loop(w, neighbour(w, block, true)));
}
static uir_status try_reverse_compute_at(walk *w) {
    uint32_t block = any_block(w);
    return uir_schedule_reverse_compute_at(w->s, block, any_loop(w, neighbour(w, block, false)));
}
static uir_status try_shrink(walk *w) {
    return uir_schedule_shrink(w->s, any_tensor(w));
}
static uir_status try_rfactor(walk *w) {
    uint32_t block = any_block(w);
    return uir_schedule_rfactor(w->s, block, any_loop(w, block), NULL, NULL, NULL);
}
static uir_status try_factorise(walk *w) {
    uint32_t block = any_block(w);
    uir_dim factor = uir_dim_const(w->f->dims, 1 + below(w, 4));
    return uir_schedule_factorise_reduction(w->s, block, any_loop(w, block), factor, NULL, NULL, NULL);
}
static uir_status try_annotate(walk *w) {
    return uir_schedule_annotate(w->s, any_block(w), "seen");
}
static uir_status try_cache_read(walk *w) {
    uint32_t tensor = any_tensor(w), blocks[MOST], count = uir_schedule_readers(w->s, tensor, blocks, MOST);
    if (!count) return UIR_STATUS_UNSUPPORTED;
    return uir_schedule_cache_read(w->s, tensor, blocks[below(w, count < MOST ? count : MOST)], "sram", NULL, NULL);
}
static uir_status try_cache_write(walk *w) {
    return uir_schedule_cache_write(w->s, any_tensor(w), "sram", NULL, NULL);
}
static uir_status try_set_scope(walk *w) {
    return uir_schedule_set_scope(w->s, any_tensor(w), below(w, 2) ? "sram" : "dram");
}

static uir_status (*const steps[])(walk *) = {
    try_split,
    try_fuse,
    try_fuse,
    try_reorder,
    try_merge,
    try_merge,
    try_kind,
    try_inline,
    try_inline,
    try_reverse_inline,
    try_compute_at,
    try_compute_at,
    try_compute_at,
    try_reverse_compute_at,
    try_reverse_compute_at,
    try_shrink,
    try_shrink,
    try_rfactor,
    try_rfactor,
    try_factorise,
    try_annotate,
    try_cache_read,
    try_cache_write,
    try_set_scope,
};

uir_loop_function *random_steps(const uir_loop_function *naive, const uir_device *device, uint64_t seed,
                                uir_diagnostics *diagnostics, uir_text *trace) {
    walk w = {.state = seed * 2654435761u + 12345};
    uir_text text;
    uir_text_init(&text, &naive->allocator);
    uir_loop_print(naive, &text);
    uir_status status = uir_loop_parse(&naive->allocator, text.data, text.length, "steps", diagnostics, &w.f);
    uir_text_deinit(&text);
    if (status == UIR_STATUS_OK) status = uir_schedule_create(w.f, device, diagnostics, &w.s);
    if (status == UIR_STATUS_OK) uir_schedule_set_mode(w.s, UIR_SCHEDULE_QUIET);
    for (int k = 0; k < STEPS && status == UIR_STATUS_OK; k++) {
        status = steps[below(&w, sizeof steps / sizeof *steps)](&w);
        if (status == UIR_STATUS_UNSUPPORTED) status = UIR_STATUS_OK;
    }
    if (status == UIR_STATUS_OK) status = uir_loop_verify(w.f, diagnostics);
    if (w.s && uir_schedule_trace(w.s)->data)
        uir_text_append(trace, uir_schedule_trace(w.s)->data, uir_schedule_trace(w.s)->length);
    uir_schedule_destroy(w.s);
    if (status == UIR_STATUS_OK) return w.f;
    uir_loop_function_destroy(w.f);
    return NULL;
}
