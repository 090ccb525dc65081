/* The embedded texts of prelude_*.inc and of the project's mathematical functions, in the order of a program. */
#ifndef UIR_BACKENDS_OPENCL_TARGET_PRELUDE_H
#define UIR_BACKENDS_OPENCL_TARGET_PRELUDE_H

#include <stddef.h>
#include <stdint.h>

extern const char *const uir_opencl_prelude_parts[];
extern const size_t uir_opencl_prelude_sizes[];
extern const uint32_t uir_opencl_prelude_count;

#endif
