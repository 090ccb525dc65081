/* What the machine can do, measured by code of its own: nothing here comes from the emitter or its prelude.
 *
 * In: nothing, or buffers whose pages have been touched. Out: seconds of one go of one thread, which the caller repeats
 * and compares; or at once what so many threads can do together. */
#ifndef UIR_BACKENDS_CPU_DRIVER_LIMITS_H
#define UIR_BACKENDS_CPU_DRIVER_LIMITS_H

#include "base/status.h"

/* Seconds that this thread has run: what other processes take of the machine's time does not count. */
double uir_cpu_limit_now(void);

/* Each is measured in several ways, given by `way` (0 .. the number of ways - 1); the fastest one is the limit. A go
 * takes no time but what it gives; its buffers begin with a page. */

/* Seconds for `flops` floating point operations in fused multiply-adds of f32 (multiply and add where the machine has
 * no such instruction). */
size_t uir_cpu_limit_multiply_add_ways(void);
double uir_cpu_limit_multiply_add(size_t way, double flops);
/* Seconds to read `bytes` once. */
size_t uir_cpu_limit_read_ways(void);
double uir_cpu_limit_read(size_t way, const void *data, size_t bytes);
/* Seconds to copy, by memcpy, by vectors, and by vectors that store around the caches. */
size_t uir_cpu_limit_copy_ways(void);
double uir_cpu_limit_copy(size_t way, void *to, const void *from, size_t bytes);

typedef struct uir_cpu_limits {
    double flops_per_second; /* f32, in fused multiply-adds */
    double bytes_per_second; /* read from memory: of more than the last cache holds */
} uir_cpu_limits;
/* Of `threads` threads at once, in a fraction of a second. What other processes take of the machine meanwhile is not
 * counted, as far as they take time and not memory's. */
uir_status uir_cpu_measure_limits(const uir_allocator *allocator, uint32_t threads, uir_cpu_limits *out_limits);

#endif
