/* What the tests of symbolic dims share: a context with the symbols that kernels have, and text to ask with. */
#ifndef UIR_TESTS_BASE_DIM_WORLD_H
#define UIR_TESTS_BASE_DIM_WORLD_H

#include "tests/base/support.h"

#include "base/dims/dim.h"

#include <stdio.h>
#include <string.h>

typedef struct world {
    uir_allocator allocator;
    uir_dims *dims;
    uir_arena arena;
    uir_diagnostics diagnostics;
} world;

static inline uir_dim resolve(void *user, const char *name, size_t length) {
    const world *w = user;
    for (uint32_t i = 0; i < uir_dims_symbol_count(w->dims); i++) {
        const char *text = uir_dims_symbol_name(w->dims, (uir_symbol){i});
        if (strlen(text) == length && memcmp(text, name, length) == 0) return uir_dim_symbol(w->dims, (uir_symbol){i});
    }
    return UIR_DIM_NONE;
}

static inline uir_status read(world *w, const char *text, uir_dim *out_dim) {
    uir_tokenizer tokenizer;
    uir_tokenizer_init(&tokenizer, text, strlen(text), "t", &w->arena, &w->diagnostics);
    uir_status status = uir_dim_parse(w->dims, &tokenizer, resolve, w, out_dim);
    if (status == UIR_STATUS_OK && tokenizer.current.kind != UIR_TOKEN_END) return UIR_STATUS_BAD_FILE;
    return status;
}

static inline uir_dim parse(world *w, const char *text) {
    uir_dim dim;
    if (read(w, text, &dim) != UIR_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", text, w->diagnostics.last ? w->diagnostics.last->message : "?");
        fail();
    }
    return dim;
}

static inline uir_symbol add_symbol(world *w, const char *name, int64_t min, int64_t max, int64_t multiple,
                                    const char *bound) {
    uir_symbol symbol;
    uir_symbol_facts facts = {min, max, multiple, bound ? parse(w, bound) : UIR_DIM_NONE};
    assert_int_equal(uir_dims_add_symbol(w->dims, name, strlen(name), facts, &symbol), UIR_STATUS_OK);
    return symbol;
}

#define ANY UIR_DIM_UNBOUNDED

static inline int begin(void **state) {
    static world w;
    w.allocator = uir_allocator_system();
    uir_arena_init(&w.arena, &w.allocator);
    uir_diagnostics_init(&w.diagnostics, &w.allocator);
    assert_int_equal(uir_dims_create(&w.allocator, &w.dims), UIR_STATUS_OK);
    add_symbol(&w, "M", 0, ANY, 1, NULL);
    add_symbol(&w, "N", 0, ANY, 1, NULL);
    add_symbol(&w, "K", 0, ANY, 1, NULL);
    add_symbol(&w, "s", 1, ANY, 1, NULL);
    add_symbol(&w, "z", -5, 5, 1, NULL);
    add_symbol(&w, "tr", 1, 64, 1, NULL);
    add_symbol(&w, "tn", 1, ANY, 16, NULL);
    add_symbol(&w, "tm", 1, ANY, 12, NULL);
    add_symbol(&w, "tk", 1, ANY, 1, NULL);
    add_symbol(&w, "p", 0, ANY, 1, "ceildiv(M, tr)");
    add_symbol(&w, "r", 0, ANY, 1, "tr");
    add_symbol(&w, "l", 0, ANY, 1, "ceildiv(N, tn)");
    add_symbol(&w, "kk", 0, ANY, 1, "ceildiv(K, tk)");
    add_symbol(&w, "i", 0, ANY, 1, "tm/12");
    add_symbol(&w, "j", 0, ANY, 1, "tn/16");
    add_symbol(&w, "m", 0, ANY, 1, "M");
    add_symbol(&w, "a", 0, ANY, 1, "tm");
    add_symbol(&w, "kb", 0, ANY, 1, "tk");
    add_symbol(&w, "g", 0, ANY, 1, "M*N");
    *state = &w;
    return 0;
}

static inline int end(void **state) {
    world *w = *state;
    uir_dims_destroy(w->dims);
    uir_diagnostics_deinit(&w->diagnostics);
    uir_arena_deinit(&w->arena);
    return 0;
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
