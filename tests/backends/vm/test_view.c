/* Where the elements of a slice lie, whose dims go far to and fro and meet inside the memory: no part of the sum is
 * taken for a number. The undefined-behaviour sanitizer sees what goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/vm/machine.h"

#include <string.h>

#define HALF (INT64_C(1) << 62)

static void test_far_parts(void **state) {
    (void)state;
    float memory[8] = {0, 1, 2, 3, 4, 5, 6, 7}, buffer[4];
    vm_view view = {.data = (char *)memory,
                    .size = sizeof *memory,
                    .rank = 3,
                    .dtype = UIR_DTYPE_F32,
                    .total = 8,
                    .dims = {{2, 0, 2, HALF, 4, NULL}, {1, 0, 1, HALF, HALF, NULL}, {4, 0, 4, INT64_MIN, 1, NULL}}};
    for (int64_t row = 0; row < 2; row++)
        assert_memory_equal(uir_vm_view_read(&view, row, 0, 4, (char *)buffer), memory + 4 * row, sizeof buffer);
    /* One column is inside, the fifth element; the step to the next goes too far. */
    view.dims[0] = (vm_dim){2, 0, 2, 5, 0, NULL};
    view.dims[1] = (vm_dim){1, 0, 1, 0, 0, NULL};
    view.dims[2] = (vm_dim){4, 1, 2, -HALF, HALF, NULL};
    assert_ptr_equal(uir_vm_view_read(&view, 0, 0, 4, (char *)buffer), buffer);
    assert_memory_equal(buffer, ((float[]){0, 5, 0, 0}), sizeof buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_far_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
