/* Layouts as values: text, what is refused, where elements lie. */
#include "tests/base/support.h"

#include "ir/machine/layout.h"

#include <string.h>

typedef struct fixture {
    uir_allocator allocator;
    uir_arena arena;
    uir_diagnostics diagnostics;
    uir_dims *dims;
    uir_symbol symbol;
    uir_dim n; /* the size N */
} fixture;

static void open_fixture(fixture *f) {
    f->allocator = uir_allocator_system();
    uir_arena_init(&f->arena, &f->allocator);
    uir_diagnostics_init(&f->diagnostics, &f->allocator);
    assert_int_equal(uir_dims_create(&f->allocator, &f->dims), UIR_STATUS_OK);
    assert_int_equal(uir_dims_add_symbol(f->dims, "N", 1, UIR_SYMBOL_FACTS_SIZE, &f->symbol), UIR_STATUS_OK);
    f->n = uir_dim_symbol(f->dims, f->symbol);
}

static void close_fixture(fixture *f) {
    uir_dims_destroy(f->dims);
    uir_diagnostics_deinit(&f->diagnostics);
    uir_arena_deinit(&f->arena);
}

typedef struct reading {
    fixture *f;
    uir_tokenizer tokens;
} reading;

static uir_dim find_size(void *user, const char *name, size_t length) {
    return length == 1 && *name == 'N' ? ((fixture *)user)->n : UIR_DIM_NONE;
}

static uir_status read_dim(void *user, uir_dim *out_dim) {
    reading *r = user;
    return uir_dim_parse(r->f->dims, &r->tokens, find_size, r->f, out_dim);
}

/* The layout of a tensor [N, 64]. */
static uir_status read_layout(fixture *f, const char *text, uir_layout *out_layout) {
    reading r = {.f = f};
    uir_dim extents[2] = {f->n, uir_dim_const(f->dims, 64)};
    uir_tokenizer_init(&r.tokens, text, strlen(text), "text", &f->arena, &f->diagnostics);
    UIR_TRY(uir_layout_parse(&r.tokens, read_dim, &r, extents, 2, out_layout));
    return uir_layout_finish(out_layout, extents, 2, f->dims).id ? UIR_STATUS_OK : UIR_STATUS_LIMIT;
}

static bool prove(void *user, uir_dim left, uir_relation relation, uir_dim right) {
    return uir_dim_compare(((fixture *)user)->dims, left, relation, right) == UIR_TRUE;
}

static const char *fault_of(fixture *f, const uir_layout *layout, uint32_t *out_dim) {
    uir_dim extents[2] = {f->n, uir_dim_const(f->dims, 64)};
    return uir_layout_find_fault(layout, extents, 2, f->dims, prove, f, out_dim);
}

static void texts(void **state) {
    static const char *const list[] = {"",
                                       ":(64, 1)",
                                       ":(1, N)",
                                       ":(72, 1)",
                                       ":(N, (32, 2)):(32, (1, N*32))",
                                       ":(64, 1) xor (3, 2, 3)",
                                       ":((16, ceildiv(N, 16)), 64):((64, 1024), 1) xor (2, 0, 4)"};
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        uir_layout layout;
        uir_text text;
        uint32_t dim;
        open_fixture(&f);
        assert_int_equal(read_layout(&f, list[i], &layout), UIR_STATUS_OK);
        uir_text_init(&text, &f.allocator);
        uir_layout_print(&layout, 2, f.dims, &text);
        assert_string_equal(text.data ? text.data : "", list[i]);
        assert_null(fault_of(&f, &layout, &dim));
        uir_text_deinit(&text);
        close_fixture(&f);
    }
}

static void refusals(void **state) {
    static const struct {
        const char *text, *why;
    } list[] = {
        {":(64, 1) xor (0, 0, 1)", "a swizzle is bits, base, shift"},
        {":(64, 1) xor (3, 0, 2)", "a swizzle's shift is at least its bits"},
        {":(64, 1) xor (8, 9, 8)", "at most 24 together"},
        {":(64, 1) xor (8, 8)", "expected"},
        {":(N, (32, 2)):(32, 1)", "its sizes and strides differ in number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        uir_layout layout;
        open_fixture(&f);
        assert_int_equal(read_layout(&f, list[i].text, &layout), UIR_STATUS_BAD_FILE);
        assert_non_null(strstr(f.diagnostics.first->message, list[i].why));
        close_fixture(&f);
    }
}

static void faults(void **state) {
    static const struct {
        const char *text, *why;
        uint32_t dim;
    } list[] = {
        {":(63, 1)", "different addresses", 2},
        {":(64, 0)", "different addresses", 2},
        {":(N, (32, 1)):(32, (1, N*32))", "hold the extent", 1},
        {":((N, 1), 64):((64, 0), 1)", "a size is not proved", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        uir_layout layout;
        uint32_t dim;
        open_fixture(&f);
        assert_int_equal(read_layout(&f, list[i].text, &layout), UIR_STATUS_OK);
        const char *why = fault_of(&f, &layout, &dim);
        if (!why || !strstr(why, list[i].why)) fail_msg("%s: %s", list[i].text, why ? why : "no fault");
        assert_int_equal(dim, list[i].dim);
        close_fixture(&f);
    }
}

/* Element (r, c) of [N, 64] by each layout, N = 24. */
static int64_t place_rows(int64_t r, int64_t c) {
    return r * 72 + c;
}
static int64_t place_columns(int64_t r, int64_t c) {
    return c * 24 + r;
}
static int64_t place_panels(int64_t r, int64_t c) {
    return c % 32 + 32 * r + c / 32 * 24 * 32;
}
static int64_t place_swizzled(int64_t r, int64_t c) {
    return r * 64 + (c ^ (r % 8) << 2);
}

static void packing(void **state) {
    static const struct {
        const char *text;
        int64_t (*place)(int64_t r, int64_t c);
        int64_t span;
    } list[] = {{":(72, 1)", place_rows, 23 * 72 + 64},
                {":(1, N)", place_columns, 24 * 64},
                {":(N, (32, 2)):(32, (1, N*32))", place_panels, 24 * 64},
                {":(64, 1) xor (3, 2, 4)", place_swizzled, 24 * 64},
                {":(66, 1) xor (5, 1, 5)", NULL, 25 * 64}};
    enum { ROWS = 24, COLUMNS = 64, MOST = 4096 };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        uir_layout layout;
        uir_bound_layout bound;
        int64_t values[1] = {ROWS};
        float from[ROWS * COLUMNS], packed[MOST], back[ROWS * COLUMNS];
        open_fixture(&f);
        assert_int_equal(read_layout(&f, list[i].text, &layout), UIR_STATUS_OK);
        uir_dim extents[2] = {f.n, uir_dim_const(f.dims, COLUMNS)};
        assert_int_equal(uir_layout_bind(&layout, extents, 2, f.dims, values, NULL, 1, &bound), UIR_STATUS_OK);
        assert_int_equal(bound.span, list[i].span);
        for (int k = 0; k < ROWS * COLUMNS; k++) from[k] = (float)(k + 1);
        assert_int_equal(uir_layout_pack(&bound, UIR_DTYPE_F32, &f.allocator, from, packed), UIR_STATUS_OK);
        for (int64_t r = 0; list[i].place && r < ROWS; r++)
            for (int64_t c = 0; c < COLUMNS; c++)
                if (packed[list[i].place(r, c)] != from[r * COLUMNS + c])
                    fail_msg("%s: (%d, %d) is elsewhere", list[i].text, (int)r, (int)c);
        uint32_t filled = 0;
        for (int64_t k = 0; k < bound.span; k++) filled += packed[k] != 0;
        assert_int_equal(filled, ROWS * COLUMNS);
        assert_int_equal(uir_layout_unpack(&bound, UIR_DTYPE_F32, &f.allocator, packed, back), UIR_STATUS_OK);
        assert_memory_equal(from, back, sizeof from);
        close_fixture(&f);
    }
}

/* Orders of [N, 4, 8, 2], and what is none: padded, split, swizzled. */
static void orders(void **state) {
    static const uint32_t given[][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {2, 0, 1, 3}, {1, 2, 0, 3}};
    fixture f;
    uint32_t order[4];
    (void)state;
    open_fixture(&f);
    const uir_dim extents[4] = {f.n, uir_dim_const(f.dims, 4), uir_dim_const(f.dims, 8), uir_dim_const(f.dims, 2)};
    assert_true(uir_layout_find_order(NULL, extents, 4, f.dims, order));
    assert_memory_equal(order, given[0], sizeof order);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        uir_layout layout;
        uir_layout_set_order(&layout, extents, given[i], 4, f.dims);
        assert_true(uir_layout_find_order(&layout, extents, 4, f.dims, order));
        assert_memory_equal(order, given[i], sizeof order);
    }
    uir_layout padded, split, swizzled;
    uir_layout_set_order(&padded, extents, given[1], 4, f.dims);
    split = swizzled = padded;
    padded.modes[0][0].stride = uir_dim_const(f.dims, 40);
    assert_false(uir_layout_find_order(&padded, extents, 4, f.dims, order));
    split.modes[2][0] = (uir_mode){uir_dim_const(f.dims, 4), uir_dim_const(f.dims, 4)};
    split.modes[2][1] = (uir_mode){uir_dim_const(f.dims, 2), uir_dim_const(f.dims, 16)};
    split.mode_count[2] = 2;
    assert_false(uir_layout_find_order(&split, extents, 4, f.dims, order));
    swizzled.swizzle = (uir_swizzle){2, 2, 2};
    assert_false(uir_layout_find_order(&swizzled, extents, 4, f.dims, order));
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(refusals), cmocka_unit_test(faults),
                                       cmocka_unit_test(packing), cmocka_unit_test(orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
