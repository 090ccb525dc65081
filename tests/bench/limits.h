/* What the machine can do, measured by code of its own: nothing here comes from the emitter or its prelude.
 *
 * In: nothing, or buffers whose pages have been touched. Out: seconds of one go; the caller repeats and compares. One
 * thread. */
#ifndef UIR_TESTS_BENCH_LIMITS_H
#define UIR_TESTS_BENCH_LIMITS_H

#include <stddef.h>

/* Seconds that this thread has run: what other processes take of the machine's time does not count. */
double limit_now(void);

/* Seconds that the fastest of the known loops takes for `flops` floating point operations in fused multiply-adds of f32
 * (multiply and add where the machine has no such instruction). */
double limit_multiply_add(double flops);
/* Seconds to read `bytes` once, by the fastest of several loops, given by `way` (0 .. limit_read_ways() - 1). */
size_t limit_read_ways(void);
double limit_read(size_t way, const void *data, size_t bytes);
/* Seconds to copy, by memcpy, by vectors, and by vectors that store around the caches. */
size_t limit_copy_ways(void);
const char *limit_copy_name(size_t way);
double limit_copy(size_t way, void *to, const void *from, size_t bytes);

#endif
