/* A trace read back: each line is a step in words, a row of the table below says how it is read and taken. */
#include "lower/schedule/schedule_internal.h"

#include "ir/loop/loop_parse.h"

#include <string.h>

typedef struct player {
    uir_schedule *s;
    uir_lparser parser; /* of the function: declarations, dims and layouts are said as in its text */
    uir_token step;     /* where the step that is taken begins */
} player;

static uir_status take_name(player *p, const char *what, const char **out) {
    return uir_tokenizer_expect_name(&p->parser.tokens, what, out);
}

static uir_status take_block(player *p, uint32_t *out_block) {
    const char *name;
    UIR_TRY(take_name(p, "a block's name", &name));
    *out_block = uir_schedule_find_block(p->s, name);
    return *out_block == UIR_LOOP_NONE ? uir_tokenizer_error(&p->parser.tokens, "unknown block '%s'", name)
                                       : UIR_STATUS_OK;
}

static uir_status take_tensor(player *p, uint32_t *out_tensor) {
    const char *name;
    UIR_TRY(take_name(p, "a tensor's name", &name));
    *out_tensor = uir_schedule_find_tensor(p->s, name);
    return *out_tensor == UIR_LOOP_NONE ? uir_tokenizer_error(&p->parser.tokens, "unknown tensor '%s'", name)
                                        : UIR_STATUS_OK;
}

/* "i of Y": the loop i around block Y. */
static uir_status take_loop(player *p, uint32_t *out_loop) {
    const char *name;
    uint32_t block, loops[UIR_SCHEDULE_MAX_DEPTH];
    UIR_TRY(take_name(p, "a loop's name", &name));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "of"));
    UIR_TRY(take_block(p, &block));
    uint32_t count = uir_schedule_loops(p->s, block, loops, UIR_SCHEDULE_MAX_DEPTH);
    for (uint32_t i = 0; i < count && i < UIR_SCHEDULE_MAX_DEPTH; i++) {
        *out_loop = loops[i];
        if (!strcmp(UIR_SCHEDULE_AT(p->s, loops[i])->name, name)) return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(&p->parser.tokens, "no loop '%s' around '%s'", name, UIR_SCHEDULE_AT(p->s, block)->name);
}

/* Names that the step made are said again by it: they are read and left. */
static uir_status take_made(player *p) {
    const char *name;
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, ":"));
    do UIR_TRY(take_name(p, "a name", &name));
    while (uir_tokenizer_accept(&p->parser.tokens, ","));
    return UIR_STATUS_OK;
}

static uir_status play_split(player *p) {
    uint32_t loop;
    uir_dim factor;
    UIR_TRY(take_loop(p, &loop));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "by"));
    UIR_TRY(uir_lparse_dim(&p->parser, &factor));
    UIR_TRY(take_made(p));
    return uir_schedule_split(p->s, loop, factor, NULL, NULL);
}

static uir_status play_extend(player *p) {
    uint32_t loop;
    uir_dim extent;
    UIR_TRY(take_loop(p, &loop));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "to"));
    UIR_TRY(uir_lparse_dim(&p->parser, &extent));
    UIR_TRY(take_made(p));
    return uir_schedule_extend(p->s, loop, extent);
}

static uir_status play_add_unit_loop(player *p) {
    uint32_t loop;
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "around"));
    UIR_TRY(take_loop(p, &loop));
    UIR_TRY(take_made(p));
    return uir_schedule_add_unit_loop(p->s, loop, NULL);
}

static uir_status take_loops(player *p, uint32_t *loops, uint32_t *out_count) {
    *out_count = 0;
    do {
        if (*out_count == UIR_SCHEDULE_MAX_DEPTH) return uir_tokenizer_error(&p->parser.tokens, "too many loops");
        UIR_TRY(take_loop(p, &loops[(*out_count)++]));
    } while (uir_tokenizer_accept(&p->parser.tokens, ","));
    return UIR_STATUS_OK;
}

static uir_status play_fuse(player *p) {
    uint32_t loops[2];
    UIR_TRY(take_loop(p, &loops[0]));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, ","));
    UIR_TRY(take_loop(p, &loops[1]));
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
    UIR_TRY(take_loop(p, &loops[0]));
    bool into = uir_tokenizer_accept(&p->parser.tokens, "into");
    if (!into) UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, ","));
    UIR_TRY(take_loop(p, &loops[1]));
    return into ? uir_schedule_merge_into(p->s, loops[0], loops[1])
                : uir_schedule_merge_loops(p->s, loops[0], loops[1]);
}

static uir_status play_mark(player *p) {
    uint32_t loop, kind = 0;
    const char *bound_to = NULL;
    UIR_TRY(take_loop(p, &loop));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "as"));
    while (kind < UIR_LOOP_KIND_COUNT &&
           !uir_tokenizer_accept(&p->parser.tokens, uir_loop_kind_word((uir_loop_kind)kind)))
        kind++;
    if (kind == UIR_LOOP_KIND_COUNT) return uir_tokenizer_error(&p->parser.tokens, "expected a loop's kind");
    if (kind == UIR_LOOP_BOUND) UIR_TRY(take_name(p, "the name that the loop is bound to", &bound_to));
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
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "at"));
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

static uir_status play_move_before(player *p) {
    uint32_t block, before;
    UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "before"));
    UIR_TRY(take_block(p, &before));
    return uir_schedule_move_before(p->s, block, before);
}

static uir_status play_rfactor(player *p) {
    uint32_t block, loop;
    UIR_TRY(take_block_at(p, &block, &loop));
    UIR_TRY(take_made(p));
    return uir_schedule_rfactor(p->s, block, loop, NULL, NULL, NULL);
}

static uir_status play_factor_out(player *p) {
    uint32_t block;
    UIR_TRY(take_block(p, &block));
    UIR_TRY(take_made(p));
    return uir_schedule_factor_out(p->s, block, NULL, NULL);
}

static uir_status play_roll(player *p) {
    uint32_t block, loop;
    UIR_TRY(take_block_at(p, &block, &loop));
    UIR_TRY(take_made(p));
    return uir_schedule_roll(p->s, block, loop, NULL, NULL);
}

static uir_status play_shrink(player *p) {
    uint32_t tensor;
    UIR_TRY(take_tensor(p, &tensor));
    return uir_schedule_shrink(p->s, tensor);
}

static uir_status play_annotate(player *p) {
    uint32_t block;
    UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "with"));
    if (p->parser.tokens.current.kind != UIR_TOKEN_STRING ||
        memchr(p->parser.tokens.current.text, 0, p->parser.tokens.current.length))
        return uir_tokenizer_error(&p->parser.tokens, "expected a string");
    const char *mark = p->parser.tokens.current.text;
    uir_tokenizer_advance(&p->parser.tokens);
    return uir_schedule_annotate(p->s, block, mark);
}

static uir_status play_set_scope(player *p) {
    uint32_t tensor;
    const char *space;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "to"));
    UIR_TRY(take_name(p, "a space", &space));
    return uir_schedule_set_scope(p->s, tensor, space);
}

static uir_status play_cache_read(player *p) {
    uint32_t tensor, block = UIR_LOOP_NONE;
    const char *space;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "for"));
    if (!uir_tokenizer_accept(&p->parser.tokens, "*")) UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "in"));
    UIR_TRY(take_name(p, "a space", &space));
    UIR_TRY(take_made(p));
    return uir_schedule_cache_read(p->s, tensor, block, space, NULL, NULL);
}

static uir_status play_cache_write(player *p) {
    uint32_t tensor;
    const char *space;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "in"));
    UIR_TRY(take_name(p, "a space", &space));
    UIR_TRY(take_made(p));
    return uir_schedule_cache_write(p->s, tensor, space, NULL, NULL);
}

static uir_status play_exchange(player *p) {
    uint32_t block;
    UIR_TRY(take_block(p, &block));
    return uir_schedule_exchange(p->s, block);
}

static uir_status play_use(player *p) {
    uint32_t block, use = 0;
    UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "as"));
    while (use < UIR_LOOP_USE_COUNT && !uir_tokenizer_accept(&p->parser.tokens, uir_loop_use_word((uir_loop_use)use)))
        use++;
    if (use == UIR_LOOP_USE_COUNT) return uir_tokenizer_error(&p->parser.tokens, "expected the use of a block");
    return uir_schedule_set_use(p->s, block, (uir_loop_use)use);
}

static uir_status play_classify(player *p) {
    return uir_schedule_classify(p->s);
}

static uir_status play_map(player *p) {
    uir_loop_class classes[UIR_LOOP_MAX_ITERS];
    uint32_t block, count = 0;
    UIR_TRY(take_block(p, &block));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "to"));
    uint32_t wanted = UIR_SCHEDULE_AT(p->s, block)->iter_count;
    do {
        uint32_t class = UIR_LOOP_CLASS_NONE + 1;
        while (class < UIR_LOOP_CLASS_COUNT &&
               !uir_tokenizer_accept(&p->parser.tokens, uir_loop_class_word((uir_loop_class) class)))
            class ++;
        if (class == UIR_LOOP_CLASS_COUNT || count == wanted)
            return uir_tokenizer_error(&p->parser.tokens, "expected a class for each of the %u variables of '%s'",
                                       wanted, UIR_SCHEDULE_AT(p->s, block)->name);
        classes[count++] = (uir_loop_class) class;
    } while (uir_tokenizer_accept(&p->parser.tokens, ","));
    if (count < wanted) return uir_tokenizer_error(&p->parser.tokens, "expected %u variables", wanted);
    return uir_schedule_set_classes(p->s, block, classes);
}

static uir_status take_iters(player *p, uint32_t block, uint32_t *iters, uint32_t *out_count) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(p->s, block);
    *out_count = 0;
    do {
        uint32_t i = 0;
        while (i < b->iter_count && !uir_tokenizer_accept(&p->parser.tokens, b->iters[i].name)) i++;
        if (i == b->iter_count || *out_count == UIR_LOOP_MAX_RANK)
            return uir_tokenizer_error(&p->parser.tokens, "expected a variable of '%s'", b->name);
        iters[(*out_count)++] = i;
    } while (uir_tokenizer_accept(&p->parser.tokens, ","));
    return UIR_STATUS_OK;
}

/* "0 of Y under its cast" */
static uir_status take_operand(player *p, uint32_t *out_block, uir_schedule_operand *out) {
    int64_t which;
    *out = (uir_schedule_operand){0};
    UIR_TRY(uir_tokenizer_expect_integer(&p->parser.tokens, &which));
    out->which = which < 0 || which > 2 ? 3 : (uint32_t)which;
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "of"));
    UIR_TRY(take_block(p, out_block));
    if (!uir_tokenizer_accept(&p->parser.tokens, "under")) return UIR_STATUS_OK;
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "its"));
    out->under_cast = true;
    return uir_tokenizer_expect(&p->parser.tokens, "cast");
}

static uir_status play_leave_out(player *p) {
    uir_schedule_operand operand;
    uint32_t block;
    int64_t dim;
    UIR_TRY(take_operand(p, &block, &operand));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "outside"));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "along"));
    UIR_TRY(uir_tokenizer_expect_integer(&p->parser.tokens, &dim));
    return uir_schedule_leave_out(p->s, block, operand.which,
                                  dim < 0 || dim > UIR_LOOP_MAX_RANK ? UIR_LOOP_MAX_RANK : (uint32_t)dim);
}

static uir_status play_take_operand(player *p) {
    uir_schedule_operand operand;
    uint32_t block, tensor, iters[UIR_LOOP_MAX_RANK], count = 0;
    UIR_TRY(take_operand(p, &block, &operand));
    if (uir_tokenizer_accept(&p->parser.tokens, "over")) UIR_TRY(take_iters(p, block, iters, &count));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "from"));
    UIR_TRY(take_tensor(p, &tensor));
    return uir_schedule_take_operand(p->s, block, &operand, iters, count, tensor);
}

static uir_status play_cache_operand(player *p) {
    uir_schedule_operand operand;
    uint32_t block, loop = UIR_LOOP_NONE, iters[UIR_LOOP_MAX_RANK], count = 0;
    const char *space;
    UIR_TRY(take_operand(p, &block, &operand));
    operand.guarded = uir_tokenizer_accept(&p->parser.tokens, "guarded");
    if (uir_tokenizer_accept(&p->parser.tokens, "over")) UIR_TRY(take_iters(p, block, iters, &count));
    if (uir_tokenizer_accept(&p->parser.tokens, "at")) UIR_TRY(take_loop(p, &loop));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "in"));
    UIR_TRY(take_name(p, "a space", &space));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "as"));
    UIR_TRY(take_name(p, "a name", &operand.name));
    return uir_schedule_cache_operand(p->s, block, &operand, iters, count, loop, space, NULL, NULL);
}

static uir_status play_arrange(player *p) {
    uint32_t tensor, dims[UIR_LOOP_MAX_RANK], count = 0;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "by"));
    if (uir_tokenizer_accept(&p->parser.tokens, "nothing")) return uir_schedule_arrange(p->s, tensor, dims, 0);
    do {
        int64_t dim = 0;
        bool one = uir_tokenizer_accept(&p->parser.tokens, "one");
        if (!one) UIR_TRY(uir_tokenizer_expect_integer(&p->parser.tokens, &dim));
        if (count == UIR_LOOP_MAX_RANK || dim < 0 || dim >= UIR_LOOP_MAX_RANK)
            return uir_tokenizer_error(&p->parser.tokens, "a tensor has at most %d dims", UIR_LOOP_MAX_RANK);
        dims[count++] = one ? UIR_LOOP_NONE : (uint32_t)dim;
    } while (uir_tokenizer_accept(&p->parser.tokens, ","));
    return uir_schedule_arrange(p->s, tensor, dims, count);
}

static uir_status play_pad(player *p) {
    uint32_t tensor;
    int64_t dim;
    uir_dim extent;
    UIR_TRY(uir_tokenizer_expect_integer(&p->parser.tokens, &dim));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "of"));
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "to"));
    UIR_TRY(uir_lparse_dim(&p->parser, &extent));
    return uir_schedule_pad(p->s, tensor, dim < 0 || dim > UIR_LOOP_MAX_RANK ? UIR_LOOP_MAX_RANK : (uint32_t)dim,
                            extent);
}

static uir_status take_layout_dim(void *user, uir_dim *out_dim) {
    return uir_lparse_dim(user, out_dim);
}

static uir_status play_set_layout(player *p) {
    uint32_t tensor;
    uir_layout layout;
    UIR_TRY(take_tensor(p, &tensor));
    UIR_TRY(uir_tokenizer_expect(&p->parser.tokens, "to"));
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(p->s, tensor);
    UIR_TRY(uir_layout_parse(&p->parser.tokens, take_layout_dim, &p->parser, t->extents, t->rank, &layout));
    return uir_schedule_set_layout(p->s, tensor, &layout);
}

/* What stands in the function's text as well. */
static uir_status play_tile(player *p) {
    return uir_lparse_sizes(&p->parser, true);
}

static uir_status play_candidate(player *p) {
    return uir_lparse_candidate(&p->parser);
}

static uir_status play_require(player *p) {
    return uir_lparse_require(&p->parser);
}

typedef struct verb {
    const char *words[3]; /* that the line begins with */
    uir_status (*play)(player *p);
} verb;

static const verb verbs[] = {
    {{"split"}, play_split},
    {{"extend"}, play_extend},
    {{"add", "unit", "loop"}, play_add_unit_loop},
    {{"fuse"}, play_fuse},
    {{"reorder"}, play_reorder},
    {{"merge"}, play_merge},
    {{"mark"}, play_mark},
    {{"inline"}, play_inline},
    {{"reverse", "inline"}, play_reverse_inline},
    {{"compute"}, play_compute},
    {{"reverse", "compute"}, play_reverse_compute},
    {{"move"}, play_move_before},
    {{"rfactor"}, play_rfactor},
    {{"factor", "out", "of"}, play_factor_out},
    {{"roll"}, play_roll},
    {{"shrink"}, play_shrink},
    {{"annotate"}, play_annotate},
    {{"set", "scope", "of"}, play_set_scope},
    {{"set", "layout", "of"}, play_set_layout},
    {{"arrange"}, play_arrange},
    {{"pad", "dim"}, play_pad},
    {{"exchange", "operands", "of"}, play_exchange},
    {{"leave", "out", "operand"}, play_leave_out},
    {{"use"}, play_use},
    {{"classify"}, play_classify},
    {{"map"}, play_map},
    {{"tile"}, play_tile},
    {{"candidate"}, play_candidate},
    {{"require"}, play_require},
    {{"cache", "operand"}, play_cache_operand},
    {{"take", "operand"}, play_take_operand},
    {{"cache", "read", "of"}, play_cache_read},
    {{"cache", "write", "of"}, play_cache_write},
};

/* The words are consumed only when all of them are there. */
static bool begins_with(player *p, const verb *v) {
    uir_tokenizer at = p->parser.tokens;
    for (uint32_t i = 0; i < 3 && v->words[i]; i++) {
        if (!uir_tokenizer_accept(&at, v->words[i])) return false;
    }
    p->parser.tokens = at;
    return true;
}

/* Up to the end, or the word `stop` (NULL: none). */
static uir_status play_all(player *p, const char *stop) {
    while (p->parser.tokens.current.kind != UIR_TOKEN_END && !(stop && uir_tokenizer_is(&p->parser.tokens, stop))) {
        size_t k = 0, count = sizeof verbs / sizeof verbs[0];
        p->step = p->parser.tokens.current;
        while (k < count && !begins_with(p, &verbs[k])) k++;
        if (k == count) return uir_tokenizer_error(&p->parser.tokens, "expected a step of a schedule");
        UIR_TRY(verbs[k].play(p));
    }
    const uir_loop_function *f = p->parser.function;
    if (f->tiles.count && !f->candidates.count)
        return uir_tokenizer_error(&p->parser.tokens, "the schedule has tiles, but no candidate that sets them");
    return UIR_STATUS_OK;
}

uir_status uir_schedule_replay(uir_schedule *schedule, const char *trace, size_t length) {
    player p = {.s = schedule, .parser = {.function = schedule->function}};
    uir_tokenizer_init(&p.parser.tokens, trace, length, NULL, &schedule->function->arena, schedule->diagnostics);
    return play_all(&p, NULL);
}

uir_status uir_schedule_replay_text(uir_schedule *schedule, uir_tokenizer *tokens, const char *stop) {
    player p = {.s = schedule, .parser = {.tokens = *tokens, .function = schedule->function}};
    p.parser.tokens.arena = &schedule->function->arena; /* names are the function's */
    (void)uir_schedule_set_mode(schedule, UIR_SCHEDULE_QUIET);
    uir_status status = play_all(&p, stop);
    if (status == UIR_STATUS_UNSUPPORTED)
        status = uir_tokenizer_error_at(&p.parser.tokens, &p.step, "%s", uir_schedule_why(schedule));
    p.parser.tokens.arena = tokens->arena;
    *tokens = p.parser.tokens;
    return status;
}
