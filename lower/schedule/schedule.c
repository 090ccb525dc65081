/* The life of a schedule, its steps and its trace; questions about the function. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- life ---- */
/* A block is full when each iteration variable is a loop of its own over the whole domain, and nothing guards it. */
static bool begins_full(uir_schedule *s, uint32_t block) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, block, path), used = 0;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    if (b->condition_count) return false;
    for (uint32_t k = 0; k < count; k++) {
        const uir_loop_statement *loop = UIR_SCHEDULE_AT(s, path[k]);
        if (loop->kind != UIR_LOOP_STATEMENT_FOR) return false;
        bool found = false;
        for (uint32_t i = 0; i < b->iter_count && !found; i++) {
            found = !b->iters[i].data &&
                    uir_dim_equal(b->iters[i].value, uir_dim_symbol(s->function->dims, loop->symbol)) &&
                    uir_dim_is_const(s->function->dims, loop->min, NULL) &&
                    uir_dim_equal(loop->min, uir_dim_const(s->function->dims, 0)) &&
                    uir_dim_compare(s->function->dims, loop->extent, UIR_RELATION_EQ, b->iters[i].extent) == UIR_TRUE;
        }
        if (!found) return false;
        used++;
    }
    uint32_t bound = 0;
    for (uint32_t i = 0; i < b->iter_count; i++) bound += !b->iters[i].data;
    return used == bound;
}

static uir_status begin(uir_schedule *s) {
    UIR_TRY(uir_tree_index(s));
    for (uint32_t i = 0; i < s->function->statements.count; i++) {
        bool full = s->places.data[i] && UIR_SCHEDULE_AT(s, i)->kind == UIR_LOOP_STATEMENT_BLOCK && begins_full(s, i);
        UIR_TRY(uir_vector_push(&s->arena, &s->full, full));
    }
    return UIR_STATUS_OK;
}

uir_status uir_schedule_create(uir_loop_function *function, const uir_machine *machine, uir_diagnostics *diagnostics,
                               uir_schedule **out_schedule) {
    uir_schedule *s;
    *out_schedule = NULL;
    UIR_TRY_ALLOCATE(s, uir_allocate_zeroed(&function->allocator, sizeof *s));
    s->allocator = function->allocator;
    uir_arena_init(&s->arena, &s->allocator);
    uir_arena_init(&s->scratch, &s->allocator);
    uir_text_init(&s->trace, &s->allocator);
    s->function = function;
    s->machine = machine;
    s->diagnostics = diagnostics;
    s->said_tiles = function->tiles.count;
    s->said_requires = function->requires_.count;
    s->said_candidates = function->candidates.count;
    uir_status status = begin(s);
    if (status != UIR_STATUS_OK) {
        if (status == UIR_STATUS_UNSUPPORTED)
            (void)uir_error(diagnostics, status, NULL, "@%s: %s", function->name, s->why);
        uir_schedule_destroy(s);
        return status;
    }
    *out_schedule = s;
    return UIR_STATUS_OK;
}

void uir_schedule_destroy(uir_schedule *schedule) {
    if (!schedule) return;
    uir_allocator allocator = schedule->allocator;
    uir_text_deinit(&schedule->trace);
    uir_arena_deinit(&schedule->scratch);
    uir_arena_deinit(&schedule->arena);
    uir_release(&allocator, schedule, sizeof *schedule);
}

uir_schedule_mode uir_schedule_set_mode(uir_schedule *schedule, uir_schedule_mode mode) {
    uir_schedule_mode before = schedule->mode;
    schedule->mode = mode;
    return before;
}

uir_loop_function *uir_schedule_function(const uir_schedule *schedule) {
    return schedule->function;
}

const char *uir_schedule_why(const uir_schedule *schedule) {
    return schedule->why;
}

/* ---- what the function got between the steps ---- */
static void say_declarations(uir_schedule *s, bool candidates) {
    const uir_loop_function *f = s->function;
    while (s->said_tiles < f->tiles.count) uir_loop_print_tile(f, s->said_tiles++, &s->trace);
    while (s->said_requires < f->requires_.count) uir_loop_print_require(f, s->said_requires++, &s->trace);
    while (candidates && s->said_candidates < f->candidates.count)
        uir_loop_print_candidate(f, s->said_candidates++, &s->trace);
}

const uir_text *uir_schedule_trace(uir_schedule *schedule) {
    say_declarations(schedule, true);
    return &schedule->trace;
}

/* ---- steps ---- */
static void *keep(uir_schedule *s, const void *data, size_t size) {
    void *copy = uir_arena_allocate(&s->scratch, size + 1); /* never of size 0 */
    if (copy && size) memcpy(copy, data, size);
    return copy;
}

uir_status uir_step_begin(uir_schedule *s) {
    if (s->depth++) return UIR_STATUS_OK;
    uir_loop_function *f = s->function;
    say_declarations(s, false);
    uir_arena_reset(&s->scratch);
    s->why[0] = 0;
    s->before = (uir_schedule_snapshot){.statement_count = f->statements.count,
                                        .tensor_count = f->tensors.count,
                                        .expression_count = f->expressions.count,
                                        .monoid_count = f->monoids.count,
                                        .full_count = s->full.count,
                                        .first = f->first,
                                        .trace_length = s->trace.length};
    s->before.statements = keep(s, f->statements.data, f->statements.count * sizeof *f->statements.data);
    s->before.tensors = keep(s, f->tensors.data, f->tensors.count * sizeof *f->tensors.data);
    s->before.full = keep(s, s->full.data, s->full.count * sizeof *s->full.data);
    if (s->before.statements && s->before.tensors && s->before.full) return uir_tree_index(s);
    s->depth = 0;
    return UIR_STATUS_OUT_OF_MEMORY;
}

static void take_back(uir_schedule *s) {
    uir_loop_function *f = s->function;
    const uir_schedule_snapshot *b = &s->before;
    memcpy(f->statements.data, b->statements, b->statement_count * sizeof *b->statements);
    memcpy(f->tensors.data, b->tensors, b->tensor_count * sizeof *b->tensors);
    memcpy(s->full.data, b->full, b->full_count * sizeof *b->full);
    f->statements.count = b->statement_count;
    f->tensors.count = b->tensor_count;
    f->expressions.count = b->expression_count;
    f->monoids.count = b->monoid_count;
    f->first = b->first;
    s->full.count = b->full_count;
    s->trace.length = b->trace_length;
    if (s->trace.data) s->trace.data[s->trace.length] = 0;
    s->indexed = false;
}

uir_status uir_step_end(uir_schedule *s, uir_status status) {
    if (--s->depth) return status;
    if (status == UIR_STATUS_OK && s->moved) status = uir_loops_check_marked(s, s->moved_tensor);
    s->moved = false;
    if (status == UIR_STATUS_OK) status = uir_text_status(&s->trace);
    if (status != UIR_STATUS_OK || s->mode == UIR_SCHEDULE_ASK) take_back(s);
    if (status == UIR_STATUS_UNSUPPORTED && s->mode == UIR_SCHEDULE_REPORT) {
        uir_location location = {.file = s->function->file};
        (void)uir_error(s->diagnostics, status, &location, "@%s: %s", s->function->name, s->why);
    }
    return status;
}

uir_status uir_step_refuse(uir_schedule *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->why, sizeof s->why, format, arguments);
    va_end(arguments);
    return UIR_STATUS_UNSUPPORTED;
}

void uir_step_moved(uir_schedule *s, uint32_t tensor) {
    s->moved_tensor = s->moved && s->moved_tensor != tensor ? UIR_LOOP_NONE : tensor;
    s->moved = true;
}

void uir_step_say(uir_schedule *s, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) s->trace.failed = true; /* names beyond all measure */
    uir_text_append_string(&s->trace, line);
    uir_text_append_string(&s->trace, "\n");
}

const char *uir_step_loop_text(uir_schedule *s, uint32_t loop) {
    char text[256];
    uint32_t block = uir_tree_first_block(s, loop);
    snprintf(text, sizeof text, "%s of %s", UIR_SCHEDULE_AT(s, loop)->name,
             block == UIR_LOOP_NONE ? "?" : UIR_SCHEDULE_AT(s, block)->name);
    const char *copy = uir_arena_copy_string(&s->scratch, text, strlen(text));
    return copy ? copy : "?";
}

const char *uir_step_dim_text(uir_schedule *s, uir_dim dim) {
    uir_text text;
    uir_text_init(&text, &s->allocator);
    uir_dim_print(s->function->dims, dim, &text);
    const char *copy = text.data ? uir_arena_copy_string(&s->scratch, text.data, text.length) : NULL;
    uir_text_deinit(&text);
    return copy ? copy : "?";
}

void uir_step_give(const uir_schedule *s, uint32_t *out, uint32_t value) {
    if (out) *out = s->mode == UIR_SCHEDULE_ASK && !s->depth ? UIR_LOOP_NONE : value;
}

/* ---- looking ---- */
uint32_t uir_schedule_find_tensor(const uir_schedule *schedule, const char *name) {
    const uir_loop_function *f = schedule->function;
    for (uint32_t i = 0; i < f->tensors.count; i++)
        if (!strcmp(f->tensors.data[i].name, name)) return i;
    return UIR_LOOP_NONE;
}

typedef bool (*block_test)(const uir_schedule *s, uint32_t block, const void *user);

static uint32_t list_blocks(const uir_schedule *s, uint32_t id, bool siblings, block_test test, const void *user,
                            uint32_t *out, uint32_t capacity, uint32_t count) {
    for (; id != UIR_LOOP_NONE; id = siblings ? UIR_SCHEDULE_AT(s, id)->next : UIR_LOOP_NONE) {
        const uir_loop_statement *statement = UIR_SCHEDULE_AT(s, id);
        if (statement->kind != UIR_LOOP_STATEMENT_BLOCK) {
            count = list_blocks(s, statement->first_child, true, test, user, out, capacity, count);
        } else if (!test || test(s, id, user)) {
            if (count < capacity) out[count] = id;
            count++;
        }
    }
    return count;
}

uint32_t uir_schedule_blocks(const uir_schedule *schedule, uint32_t statement, uint32_t *out_blocks,
                             uint32_t capacity) {
    bool all = statement == UIR_LOOP_NONE;
    return list_blocks(schedule, all ? schedule->function->first : statement, all, NULL, NULL, out_blocks, capacity, 0);
}

static bool has_name(const uir_schedule *s, uint32_t block, const void *user) {
    return !strcmp(UIR_SCHEDULE_AT(s, block)->name, user);
}

uint32_t uir_schedule_find_block(const uir_schedule *schedule, const char *name) {
    uint32_t found = UIR_LOOP_NONE;
    list_blocks(schedule, schedule->function->first, true, has_name, name, &found, 1, 0);
    return found;
}

static bool stores_to(const uir_schedule *s, uint32_t block, const void *user) {
    const uint32_t *tensor = user;
    for (uint32_t id = UIR_SCHEDULE_AT(s, block)->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next)
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->target_count; i++)
            if (UIR_SCHEDULE_AT(s, id)->targets[i].tensor == *tensor) return true;
    return false;
}

static bool reads_from(const uir_schedule *s, uint32_t block, const void *user) {
    const uint32_t *tensor = user;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].data && b->iters[i].from->tensor == *tensor) return true;
    for (uint32_t id = b->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        const uir_loop_statement *statement = UIR_SCHEDULE_AT(s, id);
        bool state = statement->kind == UIR_LOOP_STATEMENT_UPDATE || statement->kind == UIR_LOOP_STATEMENT_COMBINE;
        for (uint32_t i = 0; state && i < statement->target_count; i++)
            if (statement->targets[i].tensor == *tensor) return true;
        for (uint32_t i = 0; i < statement->value_count; i++)
            if (uir_loop_expression_reads(s->function, statement->values[i], *tensor)) return true;
    }
    return false;
}

uint32_t uir_schedule_writers(const uir_schedule *schedule, uint32_t tensor, uint32_t *out_blocks, uint32_t capacity) {
    return list_blocks(schedule, schedule->function->first, true, stores_to, &tensor, out_blocks, capacity, 0);
}

uint32_t uir_schedule_readers(const uir_schedule *schedule, uint32_t tensor, uint32_t *out_blocks, uint32_t capacity) {
    return list_blocks(schedule, schedule->function->first, true, reads_from, &tensor, out_blocks, capacity, 0);
}

static bool find_parent(const uir_schedule *s, uint32_t list, uint32_t above, uint32_t id, uint32_t *out) {
    for (; list != UIR_LOOP_NONE; list = UIR_SCHEDULE_AT(s, list)->next) {
        if (list == id) {
            *out = above;
            return true;
        }
        if (find_parent(s, UIR_SCHEDULE_AT(s, list)->first_child, list, id, out)) return true;
    }
    return false;
}

/* Between steps the index tells; what is in a block is not in it, and a step has the tree half changed. */
uint32_t uir_schedule_parent(const uir_schedule *schedule, uint32_t statement) {
    uir_schedule *s = (uir_schedule *)(uintptr_t)schedule; /* the index is made when it is asked for */
    uint32_t parent = UIR_LOOP_NONE;
    if (!s->depth && statement < s->function->statements.count && uir_tree_index(s) == UIR_STATUS_OK &&
        s->places.data[statement])
        return s->parents.data[statement];
    find_parent(schedule, schedule->function->first, UIR_LOOP_NONE, statement, &parent);
    return parent;
}

uint32_t uir_schedule_loops(const uir_schedule *schedule, uint32_t statement, uint32_t *out_loops, uint32_t capacity) {
    uint32_t count = 0, written = 0;
    for (uint32_t id = uir_schedule_parent(schedule, statement); id != UIR_LOOP_NONE;
         id = uir_schedule_parent(schedule, id))
        count += UIR_SCHEDULE_AT(schedule, id)->kind == UIR_LOOP_STATEMENT_FOR;
    for (uint32_t id = uir_schedule_parent(schedule, statement); id != UIR_LOOP_NONE;
         id = uir_schedule_parent(schedule, id)) {
        if (UIR_SCHEDULE_AT(schedule, id)->kind != UIR_LOOP_STATEMENT_FOR) continue;
        written++;
        if (count - written < capacity) out_loops[count - written] = id;
    }
    return count;
}

typedef struct symbol_search {
    uir_symbol symbol;
    bool found;
} symbol_search;

static void see_symbol(void *user, uir_symbol symbol) {
    symbol_search *search = user;
    search->found |= symbol.id == search->symbol.id;
}

static bool reduces_by(const uir_schedule *s, uint32_t block, const void *user) {
    symbol_search search = {*(const uir_symbol *)user, false};
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].reduce && !b->iters[i].data)
            uir_dim_visit_symbols(s->function->dims, b->iters[i].value, see_symbol, &search);
    return search.found;
}

bool uir_schedule_is_reduce(const uir_schedule *schedule, uint32_t loop) {
    uir_symbol symbol = UIR_SCHEDULE_AT(schedule, loop)->symbol;
    return list_blocks(schedule, loop, false, reduces_by, &symbol, NULL, 0, 0) > 0;
}
