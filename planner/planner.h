/* The planner: a module of fused groups to the bytes of a package.
 *
 * In: a module whose graphs hold group nodes (each naming its kernel and the values of the kernel's dims), reshapes,
 * dim_values, bind_dims, if, loop, and host ops; the iGraphs of each kernel, verified; optionally native objects. Out:
 * a package (package/package.h): the same bytes for the same input, wherever and whenever. A node of another kind is an
 * error that names it; all such nodes are reported. */
#ifndef UIR_PLANNER_PLANNER_H
#define UIR_PLANNER_PLANNER_H

#include "ir/graph/graph.h"
#include "ir/kernel/igraph.h"
#include "package/package.h"

/* What a group's attribute `kernel` names: its variants, in the order in which they are tried. All have the same dims.
 */
typedef struct uir_plan_source {
    const char *name;
    const uir_igraph_list *variants;
} uir_plan_source;

/* A shared object for one instruction set. `symbols` and `scratch` have an entry per variant, kernel by kernel in the
 * order of the sources. */
typedef struct uir_plan_object {
    const char *isa;
    const void *bytes; /* NULL: it will be attached to the opened package later */
    size_t size;
    /* Phases are <symbol>_phase<k>; NULL: the object lacks that variant. The array may be NULL where `bytes` is: then
     * the names are given with the object. */
    const char *const *symbols;
} uir_plan_object;

typedef struct uir_plan_options {
    const uir_plan_object *objects;
    uint32_t object_count;
    /* With objects: bytes of scratch that a thread needs, per variant, an expression over the variant's symbols. */
    const uir_dim *scratch;
    bool custom; /* nodes that no kernel and no host operator computes are left to the package's opener */
    const char *const *reasons; /* by node: why no kernel computes it, or NULL */
    uint32_t reason_count;
    /* Of the package's inputs and outputs in their order; NULL: what the values are called, which passes may change. */
    const char *const *input_names;
    const char *const *output_names;
    const char *const *metadata; /* key, value, key, value ...; NULL: none */
    uint32_t metadata_count;     /* pairs */
} uir_plan_options;

/* Who does a node's work when a package runs. */
typedef enum uir_plan_maker {
    UIR_PLAN_BY_KERNEL, /* of a group that has one */
    UIR_PLAN_BY_STEPS,  /* a step of the plan that computes nothing of tensors: views, dims, control flow, checks */
    UIR_PLAN_BY_HOST,   /* a host operator of the runtime */
    UIR_PLAN_BY_OPENER  /* neither: whoever opened the package */
} uir_plan_maker;
uir_plan_maker uir_plan_find_maker(const uir_module *module, const uir_node_info *node);

/* Hands the package's bytes over, the weights first and each constant as soon as it is packed, so that no more than one
 * of them is held here. `sink` NULL: only looks whether there is a package, and says why not. `options` may be NULL. */
uir_status uir_plan_build(const uir_module *module, const uir_plan_source *sources, uint32_t source_count,
                          const uir_plan_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                          const uir_package_sink *sink);

#endif
