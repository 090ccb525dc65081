/* What the iGraph campaigns share: sizes, data, runs on every engine, comparison of bits.
 *
 * In: verified kernels. Out: whether interpreter, VM and compiled code gave the same bits for the same data. */
#ifndef UIR_TESTS_IGRAPH_HARNESS_H
#define UIR_TESTS_IGRAPH_HARNESS_H

#include "backends/cpu/target/cpu.h"
#include "backends/vm/encode/encode.h"
#include "backends/vm/vm.h"
#include "ir/kernel/igraph.h"
#include "compile/kernel.h"

typedef struct harness {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_compile_machines *devices;
    uint64_t random;
    uint32_t failures;
} harness;

void harness_init(harness *h, uint64_t seed);
void harness_deinit(harness *h);
/* Prints what was said (to standard error) and forgets it. */
void harness_say(harness *h, const char *where);

/* Text to a verified kernel with its runs formed, print and parse checked on the way; NULL when parser or verifier
 * refuse. */
uir_igraph *harness_read(harness *h, const char *text, size_t length, const char *file);

/* A kernel bound to sizes with its data. */
typedef struct harness_case {
    const uir_igraph *igraph;
    int64_t dims[32], tiles[32], *values;
    bool *bound;
    uint32_t symbol_count, count; /* buffers: dram pointers in declaration order */
    uint32_t pointer[64];
    void *initial[64]; /* contents before a run; outputs and work hold a pattern */
    void *buffer[64];  /* of the latest run */
    size_t size[64];
} harness_case;

/* Sizes that the facts allow. Round 0: the least; 1: ones; 2: primes; then each dim in turn at primes and around the
 * tiles; then random ones. False when none were found. */
bool harness_bind(harness *h, const uir_igraph *igraph, uint32_t round, harness_case *out_case);
/* Given sizes: the values of all dims and tiles in declaration order. */
bool harness_bind_to(harness *h, const uir_igraph *igraph, const int64_t *dims, const int64_t *tiles,
                     harness_case *out_case);
void harness_free(harness *h, harness_case *c);
/* Restores the buffers; then an engine may run on them. */
uir_kernel_arguments harness_arguments(harness_case *c);
void harness_reset(harness_case *c);

/* Row-major copies of all outputs in one block of `*out_size` bytes, for comparing; the caller frees with uir_release.
 */
void *harness_outputs(harness *h, const harness_case *c, size_t *out_size);
/* The first element that differs, as text, or NULL: any NaN equals any NaN, all else bit for bit. */
const char *harness_differ(const harness_case *c, const void *expected, const void *actual, char *buffer,
                           size_t capacity);
void harness_describe(const harness_case *c, char *buffer, size_t capacity);

#endif
