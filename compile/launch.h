/* Runs one group of a module by its kernel, as some stage left it, on given operands.
 *
 * In: kernels, and a group with its values in a run of the module. Out: its results, by the interpreter of loop ASTs or
 * a runner of iGraphs. If a kernel of an edited text does not fit the group, BAD_DATA with a message that names
 * both. */
#ifndef UIR_COMPILE_LAUNCH_H
#define UIR_COMPILE_LAUNCH_H

#include "compile/kernel.h"
#include "compile/compile.h"
#include "ir/kernel/igraph_estimate.h"

typedef struct uir_launcher uir_launcher;
/* `cancel` may be NULL; `threads` for runners that use several. The kernels must outlive the launcher. */
uir_status uir_launcher_create(const uir_lowering *lowering, const volatile bool *cancel, uint32_t threads,
                               const uir_allocator *allocator, uir_launcher **out_launcher);
void uir_launcher_destroy(uir_launcher *launcher); /* NULL is fine */
/* Kernels of the code are run as they are there, by runners made from now on; it must outlive the launcher. */
void uir_launcher_use(uir_launcher *launcher, const uir_kernel_code *code);

enum { UIR_LAUNCH_MAX_SIZES = 64 };
typedef struct uir_launch {
    uir_launcher *launcher;
    const uir_node_values *values;
    const uir_node_info *node;
    const uir_lowering_kernel *kernel;
    const char *name; /* of the ONNX node */
    int64_t sizes[UIR_LAUNCH_MAX_SIZES];
    uint32_t size_count;  /* of the group */
    uint32_t slack_count; /* dims of its iGraphs after the sizes: 0, since tensors are contiguous here */
} uir_launch;

/* False for a node that is not a group with a kernel, or whose sizes are unknown. */
bool uir_launch_find(uir_launcher *launcher, const uir_node_values *values, uir_launch *out_launch);

/* Run the kernel as a stage left it, by the first variant for these sizes; NOT_FOUND with a message if none fits.
 * `outputs`: buffers for the group's results, row-major. */
uir_status uir_launch_naive(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
uir_status uir_launch_scheduled(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
/* Runs its iGraph. `runner` as for uir_kernel_runner_create; created once for each kernel. */
uir_status uir_launch_igraph(const uir_launch *launch, const char *runner, void *const *outputs,
                             uir_diagnostics *diagnostics);
/* Estimates traffic and time at these sizes on the machine model. `out_device`: the device whose spaces are counted. */
uir_status uir_launch_estimate(const uir_launch *launch, uir_diagnostics *diagnostics, const uir_machine **out_device,
                               uir_estimate *out_estimate);

#endif
