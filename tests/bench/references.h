/* Plain double references of the timed kernels: the checks of the bench. In: row-major inputs. Out: one element's
 * exact-enough value. */
#ifndef UIR_TESTS_BENCH_REFERENCES_H
#define UIR_TESTS_BENCH_REFERENCES_H

#include <stdint.h>

typedef struct bench_case bench_case;

/* The greatest error over the checked elements, relative to what a case's `scale` says. */
typedef double reference_function(const bench_case *c, const float *const *inputs, const float *output);

struct bench_case {
    const char *name;
    const char *file, *kernel; /* under tests/ir/kernel */
    int64_t dims[8];
    uint32_t dim_count;
    double flops;                  /* of the limit multiply-add; 0: not bound by it */
    double read_bytes, copy_bytes; /* of the limit reading, copying (read and written each) */
    double target;                 /* fraction of the limit that must be reached */
    double tolerance;
    reference_function *check;
};

reference_function check_product, check_convolution, check_softmax, check_layer_norm, check_chain;

#endif
