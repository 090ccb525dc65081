/* Variants of a device's kernels for the sizes that its own do not fit. Between the iGraphs and what counts slack. */
#ifndef UIR_COMPILE_BESIDE_H
#define UIR_COMPILE_BESIDE_H

#include "compile/lower.h"

/* Adds variants for the host's machine, behind the device's own, to each kernel whose own variants are not proved to
 * fit all sizes; nothing without a host beside the device. A kernel that the host cannot have stays as it is. */
uir_status uir_lowering_add_host_variants(uir_lowering *lowering);

#endif
