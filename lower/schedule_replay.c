/* A trace read back: each line is a step in words, a row of the table below says how it is read and taken. */
#include "lower/schedule_internal.h"

#include <string.h>

typedef struct player {
    uir_schedule *s;
    uir_tokenizer tokens;
} player;

static uir_status take_name(player *p, const char *what, const char **out) {
    return uir_tokenizer_expect_name(&p->tokens, what, out);
}

static uir_status take_block(player *p, uint32_t *out_block) {
    const char *name;
    UIR_TRY(take_name(p, "a block's name", &name));
    *out_block = uir_schedule_find_block(p->s, name);
    return *out_block == UIR_LOOP_NONE ? uir_tokenizer_error(&p->tokens, "there is no block '%s'", name)
                                       : UIR_STATUS_OK;
}

static uir_status take_tensor(player *p, uint32_t *out_tensor) {
    const char *name;
    UIR_TRY(take_name(p, "a tensor's name", &name));
    *out_tensor = uir_schedule_find_tensor(p->s, name);
    return *out_tensor == UIR_LOOP_NONE ? uir_tokenizer_error(&p->tokens, "there is no tensor '%s'", name)
                                        : UIR_STATUS_OK;
}

/* "i of Y": the loop i around block Y. */
static uir_status take_loop(player *p, uint32_t *out_loop) {
    const char *name;
    uint32_t block, loops[UIR_SCHEDULE_MAX_DEPTH];
    UIR_TRY(take_name(p, "a loop's name", &name));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "of"));
    UIR_TRY(take_block(p, &block));
    uint32_t count = uir_schedule_loops(p->s, block, loops, UIR_SCHEDULE_MAX_DEPTH);
    for (uint32_t i = 0; i < count && i < UIR_SCHEDULE_MAX_DEPTH; i++) {
        *out_loop = loops[i];
        if (!strcmp(UIR_SCHEDULE_AT(p->s, loops[i])->name, name)) return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(&p->tokens, "no loop '%s' stands around '%s'", name, UIR_SCHEDULE_AT(p->s, block)->name);
}

static uir_dim resolve(void *user, const char *name, size_t length) {
    const player *p = user;
    const uir_loop_function *f = p->s->function;
    for (uint32_t i = 0; i < f->sizes.count; i++)
        if (strlen(f->sizes.data[i].name) == length && !memcmp(f->sizes.data[i].name, name, length))
            return uir_dim_symbol(f->dims, f->sizes.data[i].symbol);
    for (uint32_t i = 0; i < f->tiles.count; i++)
        if (strlen(f->tiles.data[i].name) == length && !memcmp(f->tiles.data[i].name, name, length))
            return uir_dim_symbol(f->dims, f->tiles.data[i].symbol);
    return UIR_DIM_NONE;
}

/* Names that the step made are said again by it: they are read and left. */
static uir_status take_made(player *p) {
    const char *name;
    UIR_TRY(uir_tokenizer_expect(&p->tokens, ":"));
    do UIR_TRY(take_name(p, "a name", &name));
    while (uir_tokenizer_accept(&p->tokens, ","));
    return UIR_STATUS_OK;
}

static uir_status play_split(player *p) {
    uint32_t loop;
    uir_dim factor;
    UIR_TRY(take_loop(p, &loop));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "by"));
    UIR_TRY(uir_dim_parse(p->s->function->dims, &p->tokens, resolve, p, &factor));
    UIR_TRY(take_made(p));
    return uir_schedule_split(p->s, loop, factor, NULL, NULL);
}

static uir_status take_loops(player *p, uint32_t *loops, uint32_t *out_count) {
    *out_count = 0;
    do {
        if (*out_count == UIR_SCHEDULE_MAX_DEPTH) return uir_tokenizer_error(&p->tokens, "too many loops");
        UIR_TRY(take_loop(p, &loops[(*out_count)++]));
    } while (uir_tokenizer_accept(&p->tokens, ","));
    return UIR_STATUS_OK;
}

static uir_status take_pair(player *p, uint32_t *loops) {
    UIR_TRY(take_loop(p, &loops[0]));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, ","));
    return take_loop(p, &loops[1]);
}

static uir_status play_fuse(player *p) {
    uint32_t loops[2];
    UIR_TRY(take_pair(p, loops));
    UIR_TRY(take_made(p));
    return uir_schedule_fuse(p->s, loops[0], loops[1], NULL);
}

static uir_status play_reorder(player *p) {
    uint32_t loops[UIR_SCHEDULE_MAX_DEPTH], count;
    UIR_TRY(take_loops(p, loops, &count));
    return uir_schedule_reorder(p->s, loops, count);
}

static uir_status play_merge(player *p) {
    uint32_t loops[2];
    UIR_TRY(take_pair(p, loops));
    return uir_schedule_merge_loops(p->s, loops[0], loops[1]);
}

static uir_status play_mark(player *p) {
    uint32_t loop, kind = 0;
    const char *bound_to = NULL;
    UIR_TRY(take_loop(p, &loop));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "as"));
    while (kind < UIR_LOOP_KIND_COUNT && !uir_tokenizer_accept(&p->tokens, uir_loop_kind_word((uir_loop_kind)kind)))
        kind++;
    if (kind == UIR_LOOP_KIND_COUNT) return uir_tokenizer_error(&p->tokens, "expected a loop's kind");
    if (kind == UIR_LOOP_BOUND) UIR_TRY(take_name(p, "what the loop is bound to", &bound_to));
    return uir_schedule_set_kind(p->s, loop, (uir_loop_kind)kind, bound_to);
}

static uir_status play_inline(player *p) {
    uint32_t block;
    UIR_TRY(take_block(p, &block));
    return uir_schedule_inline(p->s, block);
}

static uir_status play_reverse_inline(player *p) {
    uint32_t block;
    UIR_TRY(take_block(p, &block));
    return uir_schedule_reverse_inline(p->s, block);
}

static uir_status take_block_at(player *p, uint32_t *block, uint32_t *loop) {
    UIR_TRY(take_block(p, block));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "at"));
    return take_loop(p, loop);
}

static uir_status play_compute(player *p) {
    uint32_t block, loop;
    UIR_TRY(take_block_at(p, &block, &loop));
    return uir_schedule_compute_at(p->s, block, loop);
}

static uir_status play_reverse_compute(player *p) {
    uint32_t block, loop;
    UIR_TRY(take_block_at(p, &block, &loop));
    return uir_schedule_reverse_compute_at(p->s, block, loop);
}

static uir_status play_rfactor(player *p) {
    uint32_t block, loop;
    UIR_TRY(take_block_at(p, &block, &loop));
    UIR_TRY(take_made(p));
    return uir_schedule_rfactor(p->s, block, loop, NULL, NULL, NULL);
}

static uir_status play_shrink(player *p) {
    uint32_t tensor;
    UIR_TRY(take_tensor(p, &tensor));
    return uir_schedule_shrink(p->s, tensor);
}

static uir_status play_annotate(player *p) {
    uint32_t block;
    UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "with"));
    if (p->tokens.current.kind != UIR_TOKEN_STRING || memchr(p->tokens.current.text, 0, p->tokens.current.length))
        return uir_tokenizer_error(&p->tokens, "expected a string");
    const char *mark = p->tokens.current.text;
    uir_tokenizer_advance(&p->tokens);
    return uir_schedule_annotate(p->s, block, mark);
}

static uir_status play_set_scope(player *p) {
    uint32_t tensor;
    const char *space;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "to"));
    UIR_TRY(take_name(p, "a space", &space));
    return uir_schedule_set_scope(p->s, tensor, space);
}

static uir_status play_cache_read(player *p) {
    uint32_t tensor, block = UIR_LOOP_NONE;
    const char *space;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "for"));
    if (!uir_tokenizer_accept(&p->tokens, "*")) UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "in"));
    UIR_TRY(take_name(p, "a space", &space));
    UIR_TRY(take_made(p));
    return uir_schedule_cache_read(p->s, tensor, block, space, NULL, NULL);
}

static uir_status play_cache_write(player *p) {
    uint32_t tensor;
    const char *space;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->tokens, "in"));
    UIR_TRY(take_name(p, "a space", &space));
    UIR_TRY(take_made(p));
    return uir_schedule_cache_write(p->s, tensor, space, NULL, NULL);
}

typedef struct verb {
    const char *words[3]; /* that the line begins with */
    uir_status (*play)(player *p);
} verb;

static const verb verbs[] = {
    {{"split"}, play_split},
    {{"fuse"}, play_fuse},
    {{"reorder"}, play_reorder},
    {{"merge"}, play_merge},
    {{"mark"}, play_mark},
    {{"inline"}, play_inline},
    {{"reverse", "inline"}, play_reverse_inline},
    {{"compute"}, play_compute},
    {{"reverse", "compute"}, play_reverse_compute},
    {{"rfactor"}, play_rfactor},
    {{"shrink"}, play_shrink},
    {{"annotate"}, play_annotate},
    {{"set", "scope", "of"}, play_set_scope},
    {{"cache", "read", "of"}, play_cache_read},
    {{"cache", "write", "of"}, play_cache_write},
};

/* The words are consumed only when all of them are there. */
static bool begins_with(player *p, const verb *v) {
    uir_tokenizer at = p->tokens;
    for (uint32_t i = 0; i < 3 && v->words[i]; i++) {
        if (!uir_tokenizer_accept(&at, v->words[i])) return false;
    }
    p->tokens = at;
    return true;
}

static uir_status play_all(player *p) {
    while (p->tokens.current.kind != UIR_TOKEN_END) {
        size_t k = 0, count = sizeof verbs / sizeof verbs[0];
        while (k < count && !begins_with(p, &verbs[k])) k++;
        if (k == count) return uir_tokenizer_error(&p->tokens, "expected a step of a schedule");
        UIR_TRY(verbs[k].play(p));
    }
    return UIR_STATUS_OK;
}

uir_status uir_schedule_replay(uir_schedule *schedule, const char *trace, size_t length) {
    player p = {.s = schedule};
    uir_arena arena;
    uir_arena_init(&arena, &schedule->allocator);
    uir_tokenizer_init(&p.tokens, trace, length, NULL, &arena, schedule->diagnostics);
    uir_status status = play_all(&p);
    uir_arena_deinit(&arena);
    return status;
}
