/* Quantisation: rounding to even, saturation, zero points, axes, blocks that do not divide, packed 4-bit weights. */
#include "rig.h"

static void test_round_and_saturate(void **state) {
    (void)state;
    static const struct {
        uir_dtype dtype;
        double zero, wanted[6];
    } rows[] = {
        {UIR_DTYPE_U8, 128, {128, 130, 130, 132, 255, 0}},
        {UIR_DTYPE_I8, 0, {0, 2, 2, 4, 127, -128}},
        {UIR_DTYPE_I16, 7, {7, 9, 9, 11, 607, -593}},
        {UIR_DTYPE_U4, 1, {1, 3, 3, 5, 15, 0}},
        {UIR_DTYPE_I4, 0, {0, 2, 2, 4, 7, -8}},
        {UIR_DTYPE_F8E4M3FN, 0, {0.5, 1.5, 2.5, 3.5, 448, -448}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        rig_init(&r, 21);
        rig_input(&r, UIR_DTYPE_F32, "N");
        rig_constant(&r, UIR_DTYPE_F32, 0, NULL, (double[]){0.5});
        rig_constant(&r, rows[i].dtype, 0, NULL, &rows[i].zero);
        rig_decompose(&r, "", "QuantizeLinear", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 1, (int64_t[]){6}, (double[]){0.25, 0.75, 1.25, 1.75, 300, -300});
        rig_run(&r);
        rig_expect(&r, 0, rows[i].wanted, 6, 0);
        rig_deinit(&r);
    }
}

/* Blocks of 3 along an axis of 5. */
static void test_blocks(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 21);
    rig_input(&r, UIR_DTYPE_I8, "N,5");
    rig_constant(&r, UIR_DTYPE_F32, 2, (int64_t[]){2, 2}, (double[]){1, 10, 100, 1000});
    rig_constant(&r, UIR_DTYPE_I8, 2, (int64_t[]){2, 2}, (double[]){0, 1, 2, 3});
    rig_int(&r, "axis", -1);
    rig_int(&r, "block_size", 3);
    rig_decompose(&r, "", "DequantizeLinear", 1);
    rig_give(&r, 0, UIR_DTYPE_I8, 2, (int64_t[]){2, 5}, (double[]){1, 2, 3, 4, 5, 1, 2, 3, 4, -128});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){1, 2, 3, 30, 40, -100, 0, 100, 1000, -131000}, 10, 0);
    rig_deinit(&r);
}

static void test_dynamic(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 11);
    rig_input(&r, UIR_DTYPE_F32, "N");
    rig_decompose(&r, "", "DynamicQuantizeLinear", 3);
    rig_give(&r, 0, UIR_DTYPE_F32, 1, (int64_t[]){4}, (double[]){-51, 0, 102, 204});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){0, 51, 153, 255}, 4, 0);
    rig_expect(&r, 1, (double[]){1}, 1, 0);
    rig_expect(&r, 2, (double[]){51}, 1, 0);
    /* All zeros, and nothing at all: a scale that divides. */
    rig_give(&r, 0, UIR_DTYPE_F32, 1, (int64_t[]){2}, (double[]){0, 0});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){0, 0}, 2, 0);
    rig_expect(&r, 1, (double[]){1}, 1, 0);
    rig_give(&r, 0, UIR_DTYPE_F32, 1, (int64_t[]){0}, NULL);
    rig_run(&r);
    rig_expect(&r, 1, (double[]){1}, 1, 0);
    rig_deinit(&r);
}

/* (a - za)(b - zb) summed exactly; per row and per column zero points. */
static void test_matmul_integer(void **state) {
    (void)state;
    double a[6] = {255, 0, 7, 128, 3, 9}, b[6] = {-128, 127, 5, -7, 0, 100}, y[4];
    const double a_zero[2] = {255, 1}, b_zero[2] = {-128, 3};
    rig r;
    rig_init(&r, 10);
    rig_input(&r, UIR_DTYPE_U8, "M,K");
    rig_constant(&r, UIR_DTYPE_I8, 2, (int64_t[]){3, 2}, b);
    rig_constant(&r, UIR_DTYPE_U8, 1, (int64_t[]){2}, a_zero);
    rig_constant(&r, UIR_DTYPE_I8, 1, (int64_t[]){2}, b_zero);
    rig_decompose(&r, "", "MatMulInteger", 1);
    rig_give(&r, 0, UIR_DTYPE_U8, 2, (int64_t[]){2, 3}, a);
    rig_run(&r);
    for (int i = 0; i < 4; i++) {
        y[i] = 0;
        for (int k = 0; k < 3; k++) y[i] += (a[i / 2 * 3 + k] - a_zero[i / 2]) * (b[k * 2 + i % 2] - b_zero[i % 2]);
    }
    rig_expect(&r, 0, y, 4, 0);
    rig_deinit(&r);
}

/* Two columns, K = 5 in blocks of 4: nibbles low first, the middle of the range or packed zero points. */
static void test_n_bits(void **state) {
    (void)state;
    for (int zeros = 0; zeros < 2; zeros++) {
        double bytes[8], w[16], y[2] = {0, 0};
        for (int i = 0; i < 8; i++) bytes[i] = (i * 57 + 29) % 256;
        for (int i = 0; i < 16; i++) w[i] = (double)(((int)bytes[i / 2] >> (i % 2 * 4)) & 15);
        const double scales[4] = {1, 2, 0.5, 4}, packed[2] = {0x31, 0xF0}, zero[4] = {1, 3, 0, 15};
        const double x[5] = {1, -1, 2, 0.5, 3};
        rig r;
        rig_init(&r, 21);
        rig_input(&r, UIR_DTYPE_F32, "M,5");
        rig_constant(&r, UIR_DTYPE_U8, 3, (int64_t[]){2, 2, 2}, bytes);
        rig_constant(&r, UIR_DTYPE_F32, 1, (int64_t[]){4}, scales);
        if (zeros) rig_constant(&r, UIR_DTYPE_U8, 1, (int64_t[]){2}, packed);
        rig_int(&r, "K", 5);
        rig_int(&r, "N", 2);
        rig_int(&r, "block_size", 4);
        rig_int(&r, "bits", 4);
        rig_decompose(&r, "com.microsoft", "MatMulNBits", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 2, (int64_t[]){1, 5}, x);
        rig_run(&r);
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 5; k++) {
                int block = n * 2 + k / 4;
                y[n] += x[k] * (w[n * 8 + k] - (zeros ? zero[block] : 8)) * scales[block];
            }
        rig_expect(&r, 0, y, 2, 1e-6);
        rig_deinit(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_and_saturate), cmocka_unit_test(test_blocks), cmocka_unit_test(test_dynamic),
        cmocka_unit_test(test_matmul_integer),     cmocka_unit_test(test_n_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
