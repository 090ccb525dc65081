/* A pattern is parsed to a tree, the tree becomes a program of few instructions, and all its threads run abreast over
 * the text (Thompson 1968): no pattern makes that slower than program times text. */
#include "base/regex_internal.h"
#include "base/utf8.h"

enum { MOST_INSTRUCTIONS = 100000 };

typedef enum opcode { MATCH, STEP, CHECK, JUMP, FORK } opcode;

typedef struct instruction {
    opcode op;
    uir_regex_kind check;
    uint32_t to, other;
    const uir_regex_set *set;
} instruction;

struct uir_regex {
    uir_vector(instruction) program;
};

typedef struct emitter {
    uir_arena *arena;
    uir_regex *regex;
    uir_status status;
    uint32_t work; /* nodes, those that put nothing too */
} emitter;

static uint32_t put(emitter *e, instruction what) {
    if (e->regex->program.count >= MOST_INSTRUCTIONS) e->status = UIR_STATUS_LIMIT;
    if (e->status == UIR_STATUS_OK) e->status = uir_vector_push(e->arena, &e->regex->program, what);
    return e->status == UIR_STATUS_OK ? e->regex->program.count - 1 : 0;
}

static void emit(emitter *e, const uir_regex_node *n);

/* Positions that wait for the end are a list through their targets, 0 its end. */
static void land(emitter *e, uint32_t waiting, bool other) {
    while (e->status == UIR_STATUS_OK && waiting) {
        instruction *at = &e->regex->program.data[waiting];
        uint32_t *target = other ? &at->other : &at->to, next = *target;
        *target = e->regex->program.count;
        waiting = next;
    }
}

static void emit_choice(emitter *e, const uir_regex_node *n) {
    uint32_t waiting = 0;
    for (const uir_regex_node *child = n->child; child && e->status == UIR_STATUS_OK; child = child->next) {
        uint32_t fork = child->next ? put(e, (instruction){.op = FORK}) : 0;
        if (child->next && e->status == UIR_STATUS_OK) e->regex->program.data[fork].to = fork + 1;
        emit(e, child);
        if (!child->next) break;
        waiting = put(e, (instruction){.op = JUMP, .to = waiting});
        if (e->status == UIR_STATUS_OK) e->regex->program.data[fork].other = e->regex->program.count;
    }
    land(e, waiting, false);
}

static void emit_repeat(emitter *e, const uir_regex_node *n) {
    for (int i = 0; i < n->min && e->status == UIR_STATUS_OK; i++) emit(e, n->child);
    uint32_t waiting = 0;
    for (int i = n->min; i < n->max && e->status == UIR_STATUS_OK; i++) {
        waiting = put(e, (instruction){.op = FORK, .to = e->regex->program.count + 1, .other = waiting});
        emit(e, n->child);
    }
    land(e, waiting, true);
    if (n->max >= 0) return;
    uint32_t fork = put(e, (instruction){.op = FORK, .to = e->regex->program.count + 1});
    emit(e, n->child);
    put(e, (instruction){.op = JUMP, .to = fork});
    if (e->status == UIR_STATUS_OK) e->regex->program.data[fork].other = e->regex->program.count;
}

static void emit(emitter *e, const uir_regex_node *n) {
    if (++e->work > 10 * MOST_INSTRUCTIONS) e->status = UIR_STATUS_LIMIT;
    if (n->kind == UIR_REGEX_SET)
        put(e, (instruction){.op = STEP, .set = n->set});
    else if (n->kind == UIR_REGEX_CHOICE)
        emit_choice(e, n);
    else if (n->kind == UIR_REGEX_REPEAT)
        emit_repeat(e, n);
    else if (n->kind == UIR_REGEX_SEQUENCE)
        for (const uir_regex_node *child = n->child; child && e->status == UIR_STATUS_OK; child = child->next)
            emit(e, child);
    else if (n->kind != UIR_REGEX_EMPTY)
        put(e, (instruction){.op = CHECK, .check = n->kind});
}

uir_status uir_regex_compile(uir_arena *arena, const char *pattern, size_t length, uir_regex **out_regex,
                             const char **out_problem, size_t *out_place) {
    const uir_regex_node *tree;
    UIR_TRY(uir_regex_parse(arena, pattern, length, &tree, out_problem, out_place));
    emitter e = {.arena = arena};
    UIR_TRY_ALLOCATE(e.regex, uir_arena_allocate(arena, sizeof *e.regex));
    put(&e, (instruction){.op = JUMP, .to = 1}); /* so that no list of waiting positions holds 0 */
    emit(&e, tree);
    put(&e, (instruction){.op = MATCH});
    *out_regex = e.regex;
    if (e.status == UIR_STATUS_LIMIT) *out_problem = "its repetitions make it too large";
    return e.status;
}

/* ---- the run ---- */

typedef struct threads {
    uint32_t *list, *place; /* sparse set: place[pc] < count and list[place[pc]] == pc */
    uint32_t count;
} threads;

typedef struct position {
    bool first, last;
    uint32_t before, after;
} position;

static bool in_ranges(const uir_regex_set *s, uint32_t c) {
    for (uint32_t i = 0; i < s->ranges.count; i++)
        if (c >= s->ranges.data[i].first && c <= s->ranges.data[i].last) return true;
    return false;
}

static bool accepts(const uir_regex_set *s, uint32_t c) {
    bool found = in_ranges(s, c);
    if (!found && s->fold) found = in_ranges(s, uir_code_point_to_lower(c)) || in_ranges(s, uir_code_point_to_upper(c));
    return found != s->negated;
}

static bool is_word(bool there, uint32_t c) {
    return there && ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_');
}

static bool holds(uir_regex_kind check, const position *at) {
    bool edge = is_word(!at->first, at->before) != is_word(!at->last, at->after);
    switch (check) {
    case UIR_REGEX_TEXT_BEGIN:
        return at->first;
    case UIR_REGEX_TEXT_END:
        return at->last;
    case UIR_REGEX_LINE_BEGIN:
        return at->first || at->before == '\n';
    case UIR_REGEX_LINE_END:
        return at->last || at->after == '\n';
    case UIR_REGEX_WORD_EDGE:
        return edge;
    default:
        return !edge;
    }
}

/* Adds a thread and all that it reaches without a character. `stack` has room for each instruction twice. */
static void follow(const uir_regex *r, threads *t, uint32_t *stack, uint32_t from, const position *at) {
    uint32_t depth = 0;
    stack[depth++] = from;
    while (depth) {
        uint32_t pc = stack[--depth];
        if (t->place[pc] < t->count && t->list[t->place[pc]] == pc) continue;
        t->place[pc] = t->count;
        t->list[t->count++] = pc;
        const instruction *i = &r->program.data[pc];
        if (i->op == JUMP || i->op == FORK) stack[depth++] = i->to;
        if (i->op == FORK) stack[depth++] = i->other;
        if (i->op == CHECK && holds(i->check, at)) stack[depth++] = pc + 1;
    }
}

uir_status uir_regex_match(const uir_regex *regex, uir_arena *arena, const char *text, size_t length,
                           bool *out_matches) {
    uint32_t size = regex->program.count, *memory, *stack;
    UIR_TRY_ALLOCATE(memory, uir_arena_allocate_array(arena, (size_t)size * 6 + 2, sizeof *memory));
    threads now = {memory, memory + size, 0}, next = {memory + 2 * (size_t)size, memory + 3 * (size_t)size, 0};
    stack = memory + 4 * (size_t)size;
    position at = {.first = true, .last = length == 0};
    size_t place = 0, width = 0;
    if (length) at.after = uir_utf8_decode(text, length, &width);
    follow(regex, &now, stack, 0, &at);
    while (place < length && now.count) {
        uint32_t c = at.after;
        place += width;
        at = (position){.before = c, .last = place == length};
        if (!at.last) at.after = uir_utf8_decode(text + place, length - place, &width);
        next.count = 0;
        for (uint32_t i = 0; i < now.count; i++) {
            const instruction *run = &regex->program.data[now.list[i]];
            if (run->op == STEP && accepts(run->set, c)) follow(regex, &next, stack, now.list[i] + 1, &at);
        }
        threads swap = now;
        now = next;
        next = swap;
    }
    *out_matches = false;
    for (uint32_t i = 0; i < now.count && place == length; i++)
        *out_matches = *out_matches || regex->program.data[now.list[i]].op == MATCH;
    return UIR_STATUS_OK;
}
