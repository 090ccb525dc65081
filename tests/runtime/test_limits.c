/* The machine's limits: what a go is said to take is all that it takes, so that goes of several threads can be timed
 * from outside. */
#include "backends/cpu/driver/limits.h"
#include "tests/base/support.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 64 << 20, GOES = 5 };
static const double flops = 4e8;

typedef enum kind { MULTIPLY, READ, COPY, KINDS } kind;

typedef struct buffers {
    char *from, *to;
} buffers;

static size_t count_ways(kind kind) {
    return kind == MULTIPLY ? uir_cpu_limit_multiply_add_ways()
           : kind == READ   ? uir_cpu_limit_read_ways()
                            : uir_cpu_limit_copy_ways();
}

static double go(kind kind, size_t way, const buffers *b) {
    return kind == MULTIPLY ? uir_cpu_limit_multiply_add(way, flops)
           : kind == READ   ? uir_cpu_limit_read(way, b->from, BYTES)
                            : uir_cpu_limit_copy(way, b->to, b->from, BYTES);
}

static void test_nothing_but_the_way_runs(void **state) {
    buffers b = {aligned_alloc(4096, BYTES), aligned_alloc(4096, BYTES)};
    (void)state;
    assert_non_null(b.from);
    assert_non_null(b.to);
    memset(b.from, 1, BYTES);
    memset(b.to, 1, BYTES);
    for (int k = 0; k < KINDS; k++) {
        size_t ways = count_ways((kind)k);
        assert_true(ways > 0);
        for (size_t way = 0; way < ways; way++) {
            double least = 1e30; /* of the goes: what is beside the time that they say, as a share of it */
            for (int i = 0; i < GOES; i++) {
                double start = uir_cpu_limit_now(), said = go((kind)k, way, &b);
                double share = (uir_cpu_limit_now() - start) / said;
                if (share < least) least = share;
            }
            if (least > 1.2) print_error("kind %d, way %zu: takes %.2f times what it says\n", k, way, least);
            assert_true(least <= 1.2);
        }
    }
    free(b.from);
    free(b.to);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_but_the_way_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
