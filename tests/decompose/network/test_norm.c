/* Norms and softmax: exactness where it is hard (large offsets, halves, empty rows), both meanings of softmax, losses.
 */
#include "rig.h"

/* A variance of values far from zero: E[x^2] - E[x]^2 would be lost in f32, and negative now and then. */
static void test_two_passes(void **state) {
    (void)state;
    static const char *const ops[] = {"LayerNormalization", "InstanceNormalization", "GroupNormalization"};
    for (size_t i = 0; i < 3; i++) {
        rig r;
        rig_init(&r, 21);
        rig_input(&r, UIR_DTYPE_F32, "1,1,N");
        int64_t one = 1;
        rig_constant(&r, UIR_DTYPE_F32, 1, &one, (double[]){1});
        rig_constant(&r, UIR_DTYPE_F32, 1, &one, (double[]){0});
        rig_float(&r, "epsilon", 0);
        if (i == 2) rig_int(&r, "num_groups", 1);
        rig_decompose(&r, "", ops[i], 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 4}, (double[]){16777210, 16777214, 16777210, 16777214});
        rig_run(&r);
        rig_expect(&r, 0, (double[]){-1, 1, -1, 1}, 4, 1e-6);
        rig_deinit(&r);
    }
}

static void test_layer_norm_outputs(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 17);
    rig_input(&r, UIR_DTYPE_F16, "B,S,4");
    rig_constant(&r, UIR_DTYPE_F16, 1, (int64_t[]){4}, (double[]){1, 2, 1, 2});
    rig_constant(&r, UIR_DTYPE_F16, 1, (int64_t[]){4}, (double[]){0, 0, 1, 1});
    rig_float(&r, "epsilon", 0);
    rig_decompose(&r, "", "LayerNormalization", 3);
    /* The squares do not fit in f16. */
    rig_give(&r, 0, UIR_DTYPE_F16, 3, (int64_t[]){1, 1, 4}, (double[]){-1000, 1000, -1000, 1000});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){-1, 2, 0, 3}, 4, 0);
    rig_expect(&r, 1, (double[]){0}, 1, 0);
    rig_expect(&r, 2, (double[]){0.001}, 1, 1e-6);
    rig_give(&r, 0, UIR_DTYPE_F16, 3, (int64_t[]){3, 0, 4}, NULL);
    rig_run(&r);
    rig_expect_shape(&r, 1, 3, (int64_t[]){3, 0, 1});
    rig_deinit(&r);
}

static void test_batch_norm(void **state) {
    (void)state;
    for (int training = 0; training < 2; training++) {
        rig r;
        rig_init(&r, 15);
        rig_input(&r, UIR_DTYPE_F32, "N,2,L");
        const int64_t two = 2;
        rig_constant(&r, UIR_DTYPE_F32, 1, &two, (double[]){1, 2});
        rig_constant(&r, UIR_DTYPE_F32, 1, &two, (double[]){0, 10});
        rig_constant(&r, UIR_DTYPE_F32, 1, &two, (double[]){1, 0});
        rig_constant(&r, UIR_DTYPE_F32, 1, &two, (double[]){4, 1});
        rig_float(&r, "epsilon", 0);
        rig_float(&r, "momentum", 0.5);
        if (training) rig_int(&r, "training_mode", 1);
        rig_decompose(&r, "", "BatchNormalization", training ? 3 : 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){2, 2, 1}, (double[]){1, 2, 5, 4});
        rig_run(&r);
        if (!training) {
            rig_expect(&r, 0, (double[]){0, 14, 2, 18}, 4, 1e-6);
        } else { /* means 3 and 3, variances 4 and 1 */
            rig_expect(&r, 0, (double[]){-1, 8, 1, 12}, 4, 1e-6);
            rig_expect(&r, 1, (double[]){2, 1.5}, 2, 1e-6);
            rig_expect(&r, 2, (double[]){4, 1}, 2, 1e-6);
        }
        rig_deinit(&r);
    }
}

/* Before opset 13 all axes from `axis` on are one row. */
static void test_softmax(void **state) {
    (void)state;
    const double x[4] = {1000, 1000, 1000, 1000};
    for (int opset = 11; opset <= 13; opset += 2) {
        rig r;
        rig_init(&r, opset);
        rig_input(&r, UIR_DTYPE_F32, "N,A,B");
        rig_int(&r, "axis", 1);
        rig_decompose(&r, "", "Softmax", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 2, 2}, x);
        rig_run(&r);
        double each = opset == 11 ? 0.25 : 0.5;
        rig_expect(&r, 0, (double[]){each, each, each, each}, 4, 1e-6);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){2, 0, 3}, NULL);
        rig_run(&r);
        rig_expect_shape(&r, 0, 3, (int64_t[]){2, 0, 3});
        rig_deinit(&r);
    }
}

static void test_log_softmax(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 13);
    rig_input(&r, UIR_DTYPE_F32, "N");
    rig_decompose(&r, "", "LogSoftmax", 1);
    rig_give(&r, 0, UIR_DTYPE_F32, 1, (int64_t[]){3}, (double[]){0, -200, 0});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){-0.69314718, -200.69315, -0.69314718}, 3, 1e-6);
    rig_deinit(&r);
}

static void test_hardmax(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 13);
    rig_input(&r, UIR_DTYPE_F32, "N,C");
    rig_decompose(&r, "", "Hardmax", 1);
    rig_give(&r, 0, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, (double[]){1, 3, 3, -1, -2, -3});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){0, 1, 0, 1, 0, 0}, 6, 0);
    rig_deinit(&r);
}

/* An ignored element's infinite loss must not reach the mean. */
static void test_ignored_loss(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 13);
    rig_input(&r, UIR_DTYPE_F32, "N,C");
    rig_input(&r, UIR_DTYPE_I64, "N");
    rig_constant(&r, UIR_DTYPE_F32, 1, (int64_t[]){2}, (double[]){1, 3});
    rig_int(&r, "ignore_index", -100);
    rig_decompose(&r, "", "NegativeLogLikelihoodLoss", 1);
    rig_give(&r, 0, UIR_DTYPE_F32, 2, (int64_t[]){3, 2}, (double[]){-1, -2, -INFINITY, 0, -4, -8});
    rig_give(&r, 1, UIR_DTYPE_I64, 1, (int64_t[]){3}, (double[]){0, -100, 1});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){(1 * 1 + 3 * 8) / 4.0}, 1, 1e-6);
    rig_deinit(&r);
}

/* Dropout at inference hands its input on; its mask is all ones. */
static void test_dropout(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 13);
    rig_input(&r, UIR_DTYPE_F32, "N");
    rig_decompose(&r, "", "Dropout", 2);
    rig_give(&r, 0, UIR_DTYPE_F32, 1, (int64_t[]){2}, (double[]){3, 4});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){3, 4}, 2, 0);
    rig_expect(&r, 1, (double[]){1, 1}, 2, 0);
    rig_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_passes),   cmocka_unit_test(test_layer_norm_outputs),
        cmocka_unit_test(test_batch_norm),   cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_log_softmax),  cmocka_unit_test(test_hardmax),
        cmocka_unit_test(test_ignored_loss), cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
