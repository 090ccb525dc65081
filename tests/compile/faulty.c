/* Stands between the stages of a program's compile and lower/, fusion/ and ir/: plants faults of the compiler.
 *
 * UIR_PLANTED=STAGE[:PART] makes the stage refuse what it made, as its verifier would: all of it, or kernels whose name
 * holds PART; at the stage `loop`, where kernels have no names yet, PART is the least number of nodes of a group.
 * `device`: the null device executes no kernel, without a word. */
#include "fusion/fusion.h"
#include "ir/kernel/igraph.h"
#include "lower/lower.h"
#include "runtime/driver.h"

#include <stdlib.h>
#include <string.h>

/* What is planted in the stage: NULL for nothing, "" for all. */
static const char *find_planted(const char *stage) {
    const char *planted = getenv("UIR_PLANTED");
    size_t length = strlen(stage);
    if (!planted || strncmp(planted, stage, length) != 0) return NULL;
    return planted[length] == ':' ? planted + length + 1 : planted[length] ? NULL : "";
}

static bool is_victim(const char *stage, const char *name) {
    const char *part = find_planted(stage);
    return part && strstr(name, part);
}

static uir_status refuse(uir_diagnostics *diagnostics) {
    return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "a planted refusal");
}

uir_status __real_uir_fuse(uir_module *module, const uir_fusion_options *options, uir_diagnostics *diagnostics);
uir_status __wrap_uir_fuse(uir_module *module, const uir_fusion_options *options, uir_diagnostics *diagnostics);
uir_status __wrap_uir_fuse(uir_module *module, const uir_fusion_options *options, uir_diagnostics *diagnostics) {
    uir_status status = __real_uir_fuse(module, options, diagnostics);
    return status == UIR_STATUS_OK && find_planted("fusion") ? refuse(diagnostics) : status;
}

static uint32_t count_nodes(const uir_module *module, uir_node_id group) {
    const uir_attribute *body = uir_node_find_attribute(module, uir_node_get(module, group), "body");
    return uir_graph_get(module, body->value.graph)->nodes.count;
}

uir_status __real_uir_lower_build(uir_module *module, uir_node_id group, const char *name,
                                  const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                  uir_loop_function **out_function);
uir_status __wrap_uir_lower_build(uir_module *module, uir_node_id group, const char *name,
                                  const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                  uir_loop_function **out_function);
uir_status __wrap_uir_lower_build(uir_module *module, uir_node_id group, const char *name,
                                  const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                  uir_loop_function **out_function) {
    const char *least = find_planted("loop");
    if (least && count_nodes(module, group) >= strtoul(least, NULL, 10)) return refuse(diagnostics);
    return __real_uir_lower_build(module, group, name, allocator, diagnostics, out_function);
}

uir_status __real_uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                                     uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                     uir_loop_list *out);
uir_status __wrap_uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                                     uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                     uir_loop_list *out);
uir_status __wrap_uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                                     uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                     uir_loop_list *out) {
    uir_status status = __real_uir_lower_schedule(function, machine, choice, steps, diagnostics, out);
    return status == UIR_STATUS_OK && is_victim("schedule", function->name) ? refuse(diagnostics) : status;
}

uir_status __real_uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                                   const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out);
uir_status __wrap_uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                                   const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out);
uir_status __wrap_uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                                   const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out) {
    uir_status status = __real_uir_lower_kernel(function, machine, allocator, diagnostics, out);
    return status == UIR_STATUS_OK && is_victim("igraph", function->name) ? refuse(diagnostics) : status;
}

uir_status __real_uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics);
uir_status __wrap_uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics);
uir_status __wrap_uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics) {
    uir_status status = __real_uir_igraph_form_runs(igraph, diagnostics);
    return status == UIR_STATUS_OK && is_victim("runs", igraph->name) ? refuse(diagnostics) : status;
}

/* ---- the null device ---- */
uir_status __real_uir_null_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                                  uint32_t phase_count, uir_diagnostics *diagnostics);
uir_status __wrap_uir_null_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                                  uint32_t phase_count, uir_diagnostics *diagnostics);
uir_status __wrap_uir_null_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                                  uint32_t phase_count, uir_diagnostics *diagnostics) {
    return find_planted("device") ? UIR_STATUS_OK
                                  : __real_uir_null_launch(queue, launch, phase, phase_count, diagnostics);
}
