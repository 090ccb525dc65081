/* The OpenCL target: prints kernels as OpenCL C 1.2.
 *
 * In: verified iGraphs `on opencl`. Out: the text of one program. A kernel's phase k is
 *   __kernel void <symbol>_phase<k>(__global uchar *p0, ulong o0, ..., __global const long *symbols, long begin, long
 *   end, __global uchar *scratch, ulong scratch_size, __local uchar *shared)
 *   p, o           the pointers in device memory in declaration order, each a buffer and an offset in bytes
 *   symbols        the DIM values, then the TILE values, in declaration order
 *   begin..end     the flat indices of the phase's parallel axes, row-major: work-group g of G executes those from
 *                  begin + (end - begin) * g / G on, up to those of g + 1
 *   scratch        of work-group g: scratch_size bytes from g * scratch_size on, if a unit is one work-item
 *   shared         scratch_size bytes, if a unit is a work-group
 * A phase begins after all indices of the preceding phase are done. */
#ifndef UIR_BACKENDS_OPENCL_TARGET_OPENCL_H
#define UIR_BACKENDS_OPENCL_TARGET_OPENCL_H

#include "base/text.h"
#include "ir/kernel/igraph.h"

/* Appends what precedes the kernels in a program: the parts of the prelude that they use. */
uir_status uir_opencl_emit_prelude(const uir_igraph *const *igraphs, uint32_t count, uir_text *text);
/* Appends one kernel; its functions are named after uir_c_symbol. */
uir_status uir_opencl_emit_kernel(const uir_igraph *igraph, uint32_t index, uir_text *text,
                                  uir_diagnostics *diagnostics);
/* Bytes of scratch that one unit needs, an expression over the kernel's symbols; NONE if the expression cannot be
 * made. */
uir_dim uir_opencl_scratch_bytes(const uir_igraph *igraph);

#endif
