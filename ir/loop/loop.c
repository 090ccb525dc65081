/* The loop AST's tables and life. */
#include "ir/loop/loop.h"

#include <string.h>

static const char *const kind_words[] = {
#define UIR_LOOP_KIND(constant, word) word,
#include "ir/loop/loop.def"
};

static const char *const use_words[] = {
#define UIR_LOOP_USE(constant, word) word,
#include "ir/loop/loop.def"
};

static const char *const class_words[] = {
    "",
#define UIR_LOOP_CLASS(constant, word) word,
#include "ir/loop/loop.def"
};

static const uir_loop_statement_row statement_rows[] = {
#define UIR_LOOP_STATEMENT(constant, word, children, place) {word, children, place},
#include "ir/loop/loop.def"
};

static const char *const mode_words[] = {
    [UIR_INDEX_CLAMP] = "clamp", [UIR_INDEX_WRAP] = "wrap", [UIR_INDEX_SKIP] = "skip"};

const char *uir_loop_mode_word(uir_index_mode mode) {
    return mode <= UIR_INDEX_SKIP ? mode_words[mode] : NULL;
}

const char *uir_loop_kind_word(uir_loop_kind kind) {
    return (unsigned)kind < UIR_LOOP_KIND_COUNT ? kind_words[kind] : "?";
}

const char *uir_loop_use_word(uir_loop_use use) {
    return (unsigned)use < UIR_LOOP_USE_COUNT ? use_words[use] : "?";
}

const char *uir_loop_class_word(uir_loop_class of) {
    return (unsigned)of < UIR_LOOP_CLASS_COUNT ? class_words[of] : "?";
}

const uir_loop_statement_row *uir_loop_statement_get_row(uir_loop_statement_kind kind) {
    return (unsigned)kind < UIR_LOOP_STATEMENT_COUNT ? &statement_rows[kind] : &statement_rows[0];
}

uir_status uir_loop_function_create(const uir_allocator *allocator, const char *name,
                                    uir_loop_function **out_function) {
    uir_loop_function *function;
    *out_function = NULL;
    UIR_TRY_ALLOCATE(function, uir_allocate_zeroed(allocator, sizeof *function));
    function->allocator = *allocator;
    uir_arena_init(&function->arena, &function->allocator);
    function->first = UIR_LOOP_NONE;
    function->name = uir_arena_copy_string(&function->arena, name, strlen(name));
    if (!function->name || uir_dims_create(allocator, &function->dims) != UIR_STATUS_OK) {
        uir_loop_function_destroy(function);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    *out_function = function;
    return UIR_STATUS_OK;
}

void uir_loop_function_destroy(uir_loop_function *function) {
    if (!function) return;
    uir_allocator allocator = function->allocator;
    if (function->dims) uir_dims_destroy(function->dims);
    uir_arena_deinit(&function->arena);
    uir_release(&allocator, function, sizeof *function);
}

bool uir_loop_expression_reads(const uir_loop_function *function, uint32_t expression, uint32_t tensor) {
    const uir_loop_expression *e = &function->expressions.data[expression];
    if (e->kind == UIR_LOOP_LOAD) return e->load.tensor == tensor;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (uir_loop_expression_reads(function, e->arguments[i], tensor)) return true;
    return false;
}

bool uir_loop_block_reads(const uir_loop_function *function, uint32_t block, uint32_t tensor) {
    for (uint32_t id = function->statements.data[block].first_child; id != UIR_LOOP_NONE;) {
        const uir_loop_statement *s = &function->statements.data[id];
        for (uint32_t i = 0; i < s->value_count; i++)
            if (uir_loop_expression_reads(function, s->values[i], tensor)) return true;
        id = s->next;
    }
    return false;
}

bool uir_loop_is_used_as(const uir_loop_function *function, uint32_t block, uir_loop_use use) {
    return function->statements.data[block].uses >> use & 1;
}

uint32_t uir_loop_count_used_as(const uir_loop_function *function, uint32_t first, uir_loop_use use) {
    uint32_t count = 0;
    for (uint32_t id = first; id != UIR_LOOP_NONE; id = function->statements.data[id].next) {
        const uir_loop_statement *s = &function->statements.data[id];
        count += s->kind == UIR_LOOP_STATEMENT_BLOCK ? uir_loop_is_used_as(function, id, use)
                                                     : uir_loop_count_used_as(function, s->first_child, use);
    }
    return count;
}

bool uir_loop_list_reads(const uir_loop_function *function, uint32_t first, uint32_t tensor) {
    for (uint32_t id = first; id != UIR_LOOP_NONE; id = function->statements.data[id].next) {
        const uir_loop_statement *s = &function->statements.data[id];
        for (uint32_t i = 0; i < s->iter_count; i++)
            if (s->iters[i].data && s->iters[i].from->tensor == tensor) return true;
        for (uint32_t i = 0; i < s->value_count; i++)
            if (uir_loop_expression_reads(function, s->values[i], tensor)) return true;
        if (uir_loop_statement_get_row(s->kind)->children && uir_loop_list_reads(function, s->first_child, tensor))
            return true;
    }
    return false;
}

uir_op uir_loop_monoid_get_op(const uir_loop_function *function, const uir_loop_monoid *monoid) {
    if (monoid->state_count != 1 || monoid->element_count != 1) return UIR_OP_NONE;
    const uir_loop_expression *update = &function->expressions.data[monoid->update[0]];
    if (update->kind != UIR_LOOP_CALL || update->argument_count != 2) return UIR_OP_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        const uir_loop_expression *argument = &function->expressions.data[update->arguments[i]];
        if (argument->kind != UIR_LOOP_PARAMETER || argument->integer != i) return UIR_OP_NONE;
    }
    return update->op;
}
