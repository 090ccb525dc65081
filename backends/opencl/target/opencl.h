/* The OpenCL target: describes machines, emits kernels, makes one program of all kernels.
 *
 * In: verified iGraphs `on opencl`. Out: a text in OpenCL C, which the driver of the device compiles. The arguments of
 * a kernel's phases: backends/opencl/driver/opencl.h. */
#ifndef UIR_BACKENDS_OPENCL_TARGET_OPENCL_H
#define UIR_BACKENDS_OPENCL_TARGET_OPENCL_H

#include "backends/source/target.h"

/* ---- the emitter ---- */
/* Appends what the kernels use, before the first of them. */
uir_status uir_opencl_emit_prelude(const uir_igraph *const *igraphs, uint32_t count, uir_text *text);
/* Appends one kernel; its phases are named after uir_c_symbol. UNSUPPORTED for an instruction without a snippet. */
uir_status uir_opencl_emit_kernel(const uir_igraph *igraph, uint32_t index, uir_text *text,
                                  uir_diagnostics *diagnostics);
/* Bytes of scratch of one unit, an expression over the kernel's symbols; NONE if it cannot be made. */
uir_dim uir_opencl_scratch_bytes(const uir_igraph *igraph);

/* ---- programs ---- */
/* The program of all kernels, each distinct one once: the object's bytes. The options' source_folder receives it in a
 * file, with kernels.txt, which lists its kernels; the input's folder has such a file, edited or not. INVALID_ARGUMENT
 * for a folder of other kernels. */
uir_status uir_opencl_build(const uir_allocator *allocator, const uir_target_build_options *options,
                            const uir_target_build_input *input, uir_diagnostics *diagnostics,
                            uir_target_object *out_object);

extern const uir_target uir_opencl_target; /* its row of backends.def */

#endif
