/* Kernels of texts, random ones, and those of every instruction, run by a backend and held to the interpreter, bit by
 * bit: the common part of the backends' programs.
 *
 * In: the program's arguments, SIZES [--device-file F] [--random N] [--instructions] FILE..., where a file has kernels
 * in a text, or is a folder of .igraph files. Out: kernels, and counts of runs at up to SIZES sizes each. */
#ifndef UIR_TESTS_BACKENDS_KERNELS_H
#define UIR_TESTS_BACKENDS_KERNELS_H

#include "tests/ir/kernel/campaign/harness.h"

enum { KERNEL_TESTS_MAX = 4096, KERNEL_TESTS_MAX_BUFFERS = 60, KERNEL_TESTS_MAX_DIMS = 30 };

typedef struct kernel_tests kernel_tests;
struct kernel_tests {
    harness h;
    uint32_t sizes, count;
    uir_igraph *kernels[KERNEL_TESTS_MAX];
    uint64_t passed, failed, skipped;
    /* Set by the program. */
    const char *machine;               /* that generated kernels are on, as "opencl:cpu"; NULL: the CPU */
    bool (*has_type)(uir_dtype dtype); /* kernels of other types are skipped */
    /* Executes kernel `index` of the batch on the case's buffers. */
    bool (*run)(kernel_tests *t, uint32_t index, harness_case *c);
    void (*also)(kernel_tests *t, uint32_t index, const harness_case *c); /* after each run; NULL: nothing */
    void *user;
};

/* False: too few arguments. */
bool kernel_tests_read(kernel_tests *t, int argc, char **argv);
void kernel_tests_fail(kernel_tests *t, const char *format, ...) UIR_PRINTF(2, 3);
/* Runs one kernel, number `index` of the batch. */
void kernel_tests_run(kernel_tests *t, const uir_igraph *igraph, uint32_t index);

#endif
