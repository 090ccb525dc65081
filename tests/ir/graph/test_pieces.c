/* Large nodes over constants run in pieces: the same bits as when the module runs whole. */
#include "ir/graph/constants.h"
#include "tests/ir/graph/support.h"

#include <stdlib.h>

enum { LARGE = 1 << 20 };

/* Elements that differ from one another, of any dtype. */
static uir_value_id add_numbers(fixture *f, random_state *random, uir_dtype dtype, const int64_t *shape,
                                uint32_t rank) {
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(f->module->allocator, dtype, rank, shape, &tensor), UIR_STATUS_OK);
    for (uint64_t i = 0; i < tensor->element_count; i++)
        uir_dtype_store_integer(dtype, tensor->data, i, random_between(random, 0, 120), true, UIR_ROUND_NEAREST_EVEN);
    return uir_build_constant(&f->builder, tensor);
}

static void make_dims(fixture *f, const int64_t *shape, uint32_t rank, uir_dim *out_dims) {
    for (uint32_t d = 0; d < rank; d++) out_dims[d] = number(f, shape[d]);
}

static uir_tensor *run_in_pieces(fixture *f, uir_value_id value) {
    uir_tensor *tensor;
    assert_int_equal(
        uir_node_run_in_pieces(f->module, &f->allocator, uir_value_info_get(f->module, value)->producer, &tensor),
        UIR_STATUS_OK);
    return tensor;
}

/* The module's output, which is `value`, run both ways. */
static void expect_same(fixture *f, uir_value_id value) {
    uir_datum *whole;
    add_output(f, value);
    assert_int_equal(run_module(f, NULL, 0, &whole, 1), UIR_STATUS_OK);
    uir_tensor *tensor = run_in_pieces(f, value);
    assert_non_null(tensor);
    assert_true(tensor->mapped);
    assert_int_equal(tensor->dtype, whole->tensor->dtype);
    assert_int_equal(tensor->rank, whole->tensor->rank);
    assert_memory_equal(tensor->shape, whole->tensor->shape, tensor->rank * sizeof *tensor->shape);
    assert_int_equal(tensor->byte_size, whole->tensor->byte_size);
    assert_int_equal(memcmp(tensor->data, whole->tensor->data, tensor->byte_size), 0);
    uir_tensor_release(tensor);
    uir_datum_release(whole);
}

/* A random shape of 1 to 5 axes with somewhat more than LARGE elements. */
static uint32_t draw_shape(random_state *random, int64_t *shape) {
    uint32_t rank = (uint32_t)random_between(random, 1, 5), large = (uint32_t)random_between(random, 0, rank - 1);
    int64_t rest = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (d == large) continue;
        shape[d] = random_between(random, 1, random_between(random, 0, 3) ? 9 : 40);
        rest *= shape[d];
    }
    shape[large] = LARGE / rest + random_between(random, 1, 1 + LARGE / rest / 2);
    return rank;
}

/* The same elements in another shape: two axes that are neighbours joined, or one cut. */
static uir_value_id reshape_at_random(fixture *f, random_state *random, uir_value_id value, int64_t *shape,
                                      uint32_t *rank) {
    uir_dim dims[UIR_MAX_RANK];
    if (*rank > 1 && random_between(random, 0, 1)) {
        uint32_t at = (uint32_t)random_between(random, 0, *rank - 2);
        shape[at] *= shape[at + 1];
        memmove(shape + at + 1, shape + at + 2, (*rank - at - 2) * sizeof *shape);
        --*rank;
    } else {
        memmove(shape + 1, shape, *rank * sizeof *shape);
        shape[0] = 1;
        ++*rank;
    }
    make_dims(f, shape, *rank, dims);
    return uir_build_reshape(&f->builder, value, dims, *rank);
}

static uir_value_id broadcast_at_random(fixture *f, random_state *random, uir_dtype dtype, const int64_t *shape,
                                        uint32_t rank) {
    int64_t few[UIR_MAX_RANK];
    uir_dim dims[UIR_MAX_RANK];
    uint32_t from = (uint32_t)random_between(random, 0, rank - 1);
    for (uint32_t d = 0; d < rank; d++) few[d] = random_between(random, 0, 1) ? shape[d] : 1;
    make_dims(f, shape, rank, dims);
    return uir_build_broadcast(&f->builder, add_numbers(f, random, dtype, few + from, rank - from), dims, rank);
}

static uir_value_id transpose_at_random(fixture *f, random_state *random, uir_dtype dtype, const int64_t *shape,
                                        uint32_t rank) {
    int64_t perm[UIR_MAX_RANK], from[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t other = (uint32_t)random_between(random, 0, d);
        perm[d] = perm[other];
        perm[other] = d;
    }
    for (uint32_t d = 0; d < rank; d++) from[perm[d]] = shape[d];
    return uir_build_transpose(&f->builder, add_numbers(f, random, dtype, from, rank), perm);
}

static void test_random_nodes(void **state) {
    (void)state;
    static const uir_dtype dtypes[] = {UIR_DTYPE_F32, UIR_DTYPE_F16, UIR_DTYPE_F64, UIR_DTYPE_I8, UIR_DTYPE_U16};
    for (uint64_t seed = 1; seed <= fuzz_iterations(24); seed++) {
        random_state random = {seed * 0x9e3779b97f4a7c15u};
        fixture f;
        fixture_open(&f);
        int64_t shape[UIR_MAX_RANK];
        uint32_t rank = draw_shape(&random, shape);
        uir_dtype dtype = dtypes[random_between(&random, 0, 4)];
        uir_value_id moved = seed % 2 ? broadcast_at_random(&f, &random, dtype, shape, rank)
                                      : transpose_at_random(&f, &random, dtype, shape, rank);
        if (seed % 3) moved = reshape_at_random(&f, &random, moved, shape, &rank);
        uir_value_id plain = add_numbers(&f, &random, dtype, shape, rank);
        expect_same(&f, seed % 4 < 2 ? uir_build_binary(&f.builder, UIR_OP_SUB, plain, moved)
                                     : uir_build_binary(&f.builder, UIR_OP_LT, moved, plain));
        fixture_close(&f);
    }
}

static void test_one_operand(void **state) {
    (void)state;
    random_state random = {5};
    fixture f;
    fixture_open(&f);
    uir_value_id bytes = add_numbers(&f, &random, UIR_DTYPE_U8, (const int64_t[]){1031, 1, 1019}, 3);
    expect_same(&f, uir_build_cast(&f.builder, bytes, UIR_DTYPE_F32));
    fixture_close(&f);
    fixture_open(&f);
    expect_same(&f, transpose_at_random(&f, &random, UIR_DTYPE_F32, (const int64_t[]){3, 1031, 7, 61}, 4));
    fixture_close(&f);
}

/* What is run whole, or not at all. */
static void test_others(void **state) {
    (void)state;
    random_state random = {7};
    fixture f;
    fixture_open(&f);
    const int64_t large[] = {2, LARGE};
    uir_value_id a = broadcast_at_random(&f, &random, UIR_DTYPE_F32, (const int64_t[]){3, 4, LARGE / 4}, 3);
    uir_value_id two = uir_build_binary(&f.builder, UIR_OP_ADD, a, a);
    uir_value_id fours = add_numbers(&f, &random, UIR_DTYPE_U4, large, 2);
    uir_value_id small = add_numbers(&f, &random, UIR_DTYPE_F32, (const int64_t[]){1024}, 1);
    uir_value_id sum = uir_build_binary(&f.builder, UIR_OP_ADD, small, small);
    uir_value_id cast = uir_build_cast(&f.builder, fours, UIR_DTYPE_F32);
    assert_null(run_in_pieces(&f, two));
    assert_null(run_in_pieces(&f, cast));
    assert_null(run_in_pieces(&f, sum));
    uir_value_id plain = add_numbers(&f, &random, UIR_DTYPE_F32, large, 2);
    uir_value_id doubled = uir_build_binary(&f.builder, UIR_OP_ADD, plain, plain);
    const char *old = getenv("TMPDIR");
    char *kept = old ? strdup(old) : NULL;
    setenv("TMPDIR", "/nonexistent", 1);
    assert_null(run_in_pieces(&f, doubled));
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    expect_same(&f, doubled);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_nodes),
        cmocka_unit_test(test_one_operand),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
