/* The loop AST's tables and life. */
#include "ir/loop.h"

#include <string.h>

static const char *const kind_words[] = {
#define UIR_LOOP_KIND(constant, word) word,
#include "ir/loop.def"
};

static const uir_loop_statement_row statement_rows[] = {
#define UIR_LOOP_STATEMENT(constant, word, children, place) {word, children, place},
#include "ir/loop.def"
};

static const char *const mode_words[] = {
    [UIR_INDEX_CLAMP] = "clamp", [UIR_INDEX_WRAP] = "wrap", [UIR_INDEX_SKIP] = "skip"};

const char *uir_loop_mode_word(uir_index_mode mode) {
    return mode <= UIR_INDEX_SKIP ? mode_words[mode] : NULL;
}

const char *uir_loop_kind_word(uir_loop_kind kind) {
    return (unsigned)kind < UIR_LOOP_KIND_COUNT ? kind_words[kind] : "?";
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
