/* Runs one group of a module by its kernel as some stage left it, on given operands.
 *
 * In: kernels and a group with the values that a run of the module has for it. Out: its results, by a loop AST's
 * interpreter or by whatever runs iGraphs. What an edited text's kernel asks of the group that is not there is an error
 * that names both. */
#ifndef UIR_COMPILE_LAUNCH_H
#define UIR_COMPILE_LAUNCH_H

#include "compile/kernel.h"
#include "compile/compile.h"
#include "ir/kernel/igraph_estimate.h"

typedef struct uir_launcher uir_launcher;
/* `cancel` may be NULL; `threads` for what can use them. The kernels must outlive the launcher. */
uir_status uir_launcher_create(const uir_lowering *lowering, const volatile bool *cancel, uint32_t threads,
                               const uir_allocator *allocator, uir_launcher **out_launcher);
void uir_launcher_destroy(uir_launcher *launcher); /* NULL is fine */

enum { UIR_LAUNCH_MAX_SIZES = 64 };
typedef struct uir_launch {
    uir_launcher *launcher;
    const uir_node_values *values;
    const uir_node_info *node;
    const uir_lowering_kernel *kernel;
    const char *name; /* the ONNX node's */
    int64_t sizes[UIR_LAUNCH_MAX_SIZES];
    uint32_t size_count;  /* of the group */
    uint32_t slack_count; /* dims of its iGraphs after those: 0, as tensors are packed here */
} uir_launch;

/* False for what is no group with a kernel, or one whose sizes are not known. */
bool uir_launch_find(uir_launcher *launcher, const uir_node_values *values, uir_launch *out_launch);

/* The kernel as a stage left it, by the first variant that is for these sizes; NOT_FOUND, saying so, when none is.
 * `outputs`: room for each of the group's results, row-major. */
uir_status uir_launch_naive(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
uir_status uir_launch_scheduled(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
uir_status uir_launch_interpreted(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
uir_status uir_launch_vm(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
uir_status uir_launch_native(const uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
/* Its iGraph. `runner` as for uir_kernel_runner_create; it is made once for each kernel. */
uir_status uir_launch_igraph(const uir_launch *launch, const char *runner, void *const *outputs,
                             uir_diagnostics *diagnostics);
/* What that moves at these sizes, and how long its machine would take: modelled. `out_device`: whose spaces it is by.
 */
uir_status uir_launch_estimate(const uir_launch *launch, uir_diagnostics *diagnostics, const uir_device **out_device,
                               uir_estimate *out_estimate);

#endif
