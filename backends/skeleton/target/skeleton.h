/* The skeleton of a backend: emits kernels for an imaginary machine (tests/backends/skeleton/machine).
 *
 * In: a verified iGraph of any device. Out: C. To be copied for a real machine: docs/porting.md. */
#ifndef UIR_BACKENDS_SKELETON_TARGET_SKELETON_H
#define UIR_BACKENDS_SKELETON_TARGET_SKELETON_H

#include "backends/source/target.h"

/* Appends the kernel, `void kINDEX_NAME(const int64_t *sizes, void *const *arguments)`: values of dims and then tiles,
 * and all pointers of device memory in order. Appends its tiling function, `int kINDEX_NAME_choose(const int64_t
 * *sizes, int64_t workers, int64_t *tiles)`, 0 if the kernel does not support the dims. UNSUPPORTED for operations
 * without an instruction. */
uir_status uir_skeleton_emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics);

extern const uir_target uir_skeleton_target; /* its row of backends.def */

#endif
