/* The skeleton of a backend: kernels as the text of a machine that does not exist (tests/backends/null/machine).
 *
 * In: a verified iGraph of any device. Out: C. To be copied for a machine that exists: docs/porting.md. */
#ifndef UIR_BACKENDS_NULL_TARGET_NULL_H
#define UIR_BACKENDS_NULL_TARGET_NULL_H

#include "ir/kernel/igraph.h"

/* Appends the kernel: `void kINDEX_NAME(const int64_t *sizes, void *const *arguments)`, of dims and then tiles and of
 * all pointers of the device's memory in their order; and its tiling function, `int kINDEX_NAME_choose(const int64_t
 * *sizes, int64_t workers, int64_t *tiles)`, 0 where it is not for these dims. UNSUPPORTED for what the machine has no
 * instruction for. */
uir_status uir_null_emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics);

#endif
