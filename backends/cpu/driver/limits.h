/* Measures the roofline of this machine: the greatest rates of multiply-adds, memory reads and copies. The code is
 * independent of the emitter and its prelude.
 *
 * In: nothing, or buffers whose pages have been touched. Out: seconds of one pass on one thread, which the caller
 * repeats and compares; or the rates of several threads together. */
#ifndef UIR_BACKENDS_CPU_DRIVER_LIMITS_H
#define UIR_BACKENDS_CPU_DRIVER_LIMITS_H

#include "base/status.h"

/* Processor time of this thread in seconds, without other processes. */
double uir_cpu_limit_now(void);

/* Each limit is measured in several ways. `way` selects one, 0 .. the number of ways - 1; the fastest way gives the
 * limit. The time excludes set-up; buffers begin at a page. */

/* Seconds for `flops` floating point operations in fused multiply-adds of f32 (multiply and add on machines without the
 * instruction). */
size_t uir_cpu_limit_multiply_add_ways(void);
double uir_cpu_limit_multiply_add(size_t way, double flops);
/* Seconds to read `bytes` once. */
size_t uir_cpu_limit_read_ways(void);
double uir_cpu_limit_read(size_t way, const void *data, size_t bytes);
/* Seconds to copy: by memcpy, by vectors, by vectors with non-temporal stores. */
size_t uir_cpu_limit_copy_ways(void);
double uir_cpu_limit_copy(size_t way, void *to, const void *from, size_t bytes);

/* Measures `threads` threads at once, in a fraction of a second. The results are rates of f32 operations in fused
 * multiply-adds, and of bytes read from memory, of more than the last-level cache. Other processes reduce the rates by
 * their memory traffic only: their processor time is excluded. LIMIT if a thread cannot be started. */
uir_status uir_cpu_measure_limits(const uir_allocator *allocator, uint32_t threads, double *out_flops_per_second,
                                  double *out_bytes_per_second);

#endif
