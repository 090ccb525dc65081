/* The planner: writes a package from a module of fused groups.
 *
 * In: a module whose graphs hold group nodes (each numbering its kernel, and the values of the kernel's dims),
 * reshapes, dim_values, bind_dims, if, loop, and host ops; the iGraphs of each kernel, verified; optionally native
 * objects. Out: a package (package/package.h), the same bytes for the same input everywhere. Every node of another kind
 * is reported as an error, unless options leave it to the opener. */
#ifndef UIR_PLANNER_PLANNER_H
#define UIR_PLANNER_PLANNER_H

#include "ir/graph/graph.h"
#include "ir/kernel/igraph.h"
#include "package/package.h"

/* A kernel, the one that groups number by its place: its variants, in the order in which they are tried. All have the
 * same dims. */
typedef struct uir_plan_source {
    const char *name;
    const uir_igraph_list *variants;
    uint32_t domains; /* bits, 1u << uir_plan_domain: where its code can run; without a device: the host's */
    uint32_t own;     /* the variants of which that is so, the first ones; the others are the host's. 0: all */
    const char *why;  /* why its groups have no kernel of the device; NULL: they have */
} uir_plan_source;

/* A shared object for one instruction set, or the program that a device's driver compiles. `symbols` and `scratch` have
 * an entry per variant, kernel by kernel in the order of the sources. */
typedef struct uir_plan_object {
    const char *isa;
    const void *bytes; /* NULL: attached to the opened package later */
    size_t size;
    /* Phases are <symbol>_phase<k>; NULL: the object lacks that variant. If `bytes` is NULL, the array may be NULL: the
     * names then come with the object. */
    const char *const *symbols;
} uir_plan_object;

typedef struct uir_plan_options {
    const uir_plan_object *objects;
    uint32_t object_count;
    /* With objects: bytes of scratch that a unit needs, per variant, an expression over the variant's symbols; NONE: no
     * object has the variant. */
    const uir_dim *scratch;
    /* Appends a kernel's bytecode. UNSUPPORTED is an error only for a kernel that no object has. */
    uir_status (*encode)(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes);
    const char *device;         /* name of the device with memory of its own that launches are for; NULL: the host */
    const char *chip;           /* its chip; NULL: any */
    bool no_fallback;           /* refuses steps that are the host's because the device cannot execute them */
    bool custom;                /* leaves nodes without a kernel or host operator to the package's opener */
    const char *const *reasons; /* by node: why no kernel computes it, or NULL */
    uint32_t reason_count;
    /* Of the package's inputs and outputs in their order; NULL: the names of the values, which passes may change. */
    const char *const *input_names;
    const char *const *output_names;
    const char *const *metadata; /* key, value, key, value ...; NULL: none */
    uint32_t metadata_count;     /* pairs */
} uir_plan_options;

/* The engine of a node when a package runs. */
typedef enum uir_plan_maker {
    UIR_PLAN_BY_KERNEL, /* a group's kernel */
    UIR_PLAN_BY_STEPS,  /* a step of the plan without computation on tensors: views, dims, control flow, checks */
    UIR_PLAN_BY_HOST,   /* a host operator of the runtime */
    UIR_PLAN_BY_OPENER  /* the opener of the package */
} uir_plan_maker;
uir_plan_maker uir_plan_find_maker(const uir_node_info *node);

/* Writes the package's bytes, weights first, each constant as soon as it is packed: memory holds at most one packed
 * constant. `sink` NULL: plans nothing, and only reports the nodes that no kernel, step or host operator computes. */
uir_status uir_plan_build(const uir_module *module, const uir_plan_source *sources, uint32_t source_count,
                          const uir_plan_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                          const uir_package_sink *sink);

#endif
