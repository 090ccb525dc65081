/* Pools where padding, sizes and attributes meet: nothing but negative numbers beside padding, other norms, unpooling
 * with uneven padding, pads that auto_pad overrules. */
#include "rig.h"

/* Padding never wins, and never has an index, however small the numbers are. */
static void test_padding_is_no_maximum(void **state) {
    (void)state;
    static const uir_dtype dtypes[] = {UIR_DTYPE_F32, UIR_DTYPE_F16, UIR_DTYPE_F64, UIR_DTYPE_I8};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        rig r;
        rig_init(&r, 19);
        rig_input(&r, dtypes[d], "1,1,L");
        rig_ints(&r, "kernel_shape", 1, (int64_t[]){3});
        rig_ints(&r, "pads", 2, (int64_t[]){2, 2});
        rig_decompose(&r, "", "MaxPool", 2);
        rig_give(&r, 0, dtypes[d], 3, (int64_t[]){1, 1, 3}, (double[]){-5, -3, -4});
        rig_run(&r);
        rig_expect_shape(&r, 0, 3, (int64_t[]){1, 1, 5});
        rig_expect(&r, 0, (double[]){-5, -3, -3, -3, -4}, 5, 0);
        rig_expect(&r, 1, (double[]){0, 1, 1, 1, 2}, 5, 0);
        rig_deinit(&r);
    }
}

static void test_norms(void **state) {
    (void)state;
    static const double wanted[][2] = {{7, 8}, {5, 5.6568542495}, {4.4979414453, 5.0396841996}};
    for (int64_t p = 1; p <= 3; p++) {
        rig r;
        rig_init(&r, 19);
        rig_input(&r, UIR_DTYPE_F32, "1,1,3");
        rig_ints(&r, "kernel_shape", 1, (int64_t[]){2});
        rig_int(&r, "p", p);
        rig_decompose(&r, "", "LpPool", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 3}, (double[]){-3, 4, -4});
        rig_run(&r);
        rig_expect(&r, 0, wanted[p - 1], 2, 1e-6);
        rig_deinit(&r);
    }
}

/* (3 - 1) * 2 + 2 - (1 + 0) = 5 elements. */
static void test_unpool_with_uneven_padding(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++) {
        rig r;
        rig_init(&r, 19);
        rig_input(&r, UIR_DTYPE_F32, "1,1,3");
        rig_input(&r, UIR_DTYPE_I64, "1,1,3");
        rig_ints(&r, "kernel_shape", 1, (int64_t[]){2});
        rig_ints(&r, "strides", 1, (int64_t[]){2});
        rig_ints(&r, "pads", 2, (int64_t[]){side == 0, side == 1});
        rig_decompose(&r, "", "MaxUnpool", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 3}, (double[]){7, 8, 9});
        rig_give(&r, 1, UIR_DTYPE_I64, 3, (int64_t[]){1, 1, 3}, (double[]){0, 2, 4});
        rig_run(&r);
        rig_expect_shape(&r, 0, 3, (int64_t[]){1, 1, 5});
        rig_expect(&r, 0, (double[]){7, 0, 8, 0, 9}, 5, 0);
        rig_deinit(&r);
    }
}

/* With auto_pad VALID there is no padding, whatever pads says. */
static void test_valid_means_no_padding(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 19);
    rig_input(&r, UIR_DTYPE_F32, "1,1,L");
    rig_ints(&r, "kernel_shape", 1, (int64_t[]){2});
    rig_text(&r, "auto_pad", "VALID");
    rig_ints(&r, "pads", 2, (int64_t[]){1, 1});
    rig_decompose(&r, "", "MaxPool", 1);
    rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 3}, (double[]){1, 3, 2});
    rig_run(&r);
    rig_expect_shape(&r, 0, 3, (int64_t[]){1, 1, 2});
    rig_expect(&r, 0, (double[]){3, 3}, 2, 0);
    rig_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_is_no_maximum),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_unpool_with_uneven_padding),
        cmocka_unit_test(test_valid_means_no_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
