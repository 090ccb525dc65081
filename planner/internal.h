/* Internal declarations of the planner: the tables of the plan under construction. */
#ifndef UIR_PLANNER_INTERNAL_H
#define UIR_PLANNER_INTERNAL_H

#include "planner/planner.h"
#include "package/package.h"
#include "package/plan.h"

/* The symbols of an expression: the module's dims, or an iGraph's. Symbols are numbered at their first use. */
typedef struct uir_pl_scope {
    uir_dims *dims;
    uint32_t *symbols; /* per symbol: its number + 1 */
    uint32_t symbol_count;
    bool grows;            /* unknown symbols get a number; else they are an error */
    uint32_t *expressions; /* per dim handle: expression + 1 */
    uint32_t expression_capacity;
} uir_pl_scope;

/* A constant in the weights. */
typedef struct uir_pl_piece {
    uint64_t size, hash, offset;
    uint32_t next; /* in the same bucket, + 1 */
} uir_pl_piece;

/* A packed constant, by its source and layout: kernel variants with the same layout share it. */
typedef struct uir_pl_packing {
    const int64_t *key;
    uint32_t length, constant;
    uint32_t next; /* in the same bucket, + 1 */
} uir_pl_packing;

typedef uir_vector(uint32_t) uir_pl_tensors;
typedef struct uir_pl_block {
    uir_vector(uir_plan_step) steps;
    uir_vector(uint32_t) queues; /* by step; empty without a device */
    uir_vector(uint32_t) whys;   /* by step: as in its schedule; empty without a device */
    uint32_t first_check;        /* of the checks at its end that are the device's tensors'; NONE: none */
    uint32_t last_download;      /* the last copy of what they check */
    uir_pl_tensors inputs, outputs;
} uir_pl_block;

typedef struct planner {
    const uir_module *module;
    const uir_plan_source *sources;
    uint32_t source_count;
    const uir_plan_options *options;
    uir_diagnostics *diagnostics;
    uir_allocator allocator;
    uir_arena arena;
    uir_pl_scope scope; /* of the module */
    uir_text characters, code;
    uint32_t *text_buckets; /* text + 1 */
    uir_vector(uint32_t) text_next;
    uint32_t text_bucket_count;
    uir_vector(uir_pl_piece) pieces; /* one per constant */
    uint32_t *piece_buckets;         /* by hash; piece + 1 */
    uir_vector(uir_pl_packing) packings;
    uint32_t *packing_buckets;
    uir_package_writer writer; /* writes its weights until all is planned */
    void *room;                /* buffer for packing a constant */
    size_t room_size;
    uint32_t *tensor_of;             /* per value: tensor + 1 */
    uint32_t *piece_of;              /* per value: constant + 1 */
    uir_vector(uir_pl_block) bodies; /* block 0 is the main graph's */
    uint32_t errors;
    bool *stands;        /* by origin of the module: whether a step computes it */
    uint32_t *listed_at; /* by origin: its position in the latest list of nodes */
#define UIR_PLAN_TABLE(type, field) uir_vector(type) field;
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
} planner;

/* ---- tables.c ---- */
uir_status uir_pl_init(planner *p);
void uir_pl_deinit(planner *p);
uir_status uir_pl_add_text(planner *p, const char *text, size_t length, uint32_t *out_text);
uir_status uir_pl_add_list(planner *p, const uint32_t *values, uint32_t count, uir_plan_list *out_list);
/* NONE for a dim NONE. */
uir_status uir_pl_add_expression(planner *p, uir_pl_scope *scope, uir_dim dim, uint32_t *out_expression);
uir_status uir_pl_add_expressions(planner *p, uir_pl_scope *scope, const uir_dim *dims, uint32_t count,
                                  uir_plan_list *out_list);
/* The plan's number of a module's symbol. */
uir_status uir_pl_add_symbol(planner *p, uir_symbol symbol, uint32_t *out_symbol);
/* Adds a symbol of the plan only. */
uir_status uir_pl_add_fresh_dim(planner *p, uint32_t *out_expression);
uir_status uir_pl_add_number(planner *p, int64_t value, uint32_t *out_expression);
/* Adds bytes to the weights, unless the same bytes are there already. */
uir_status uir_pl_add_constant(planner *p, const void *data, uint64_t size, uint32_t *out_constant);
/* Finds the packing of this key (source and layout), or adds one with constant NONE. Valid until the next call. */
uir_status uir_pl_find_packing(planner *p, const int64_t *key, uint32_t length, uir_pl_packing **out_packing);
/* The tables so far, as a plan. */
uir_plan uir_pl_view(const planner *p);
/* Grows `room` to `size` bytes. */
uir_status uir_pl_make_room(planner *p, size_t size);
/* Begins the package with its weights. */
uir_status uir_pl_begin(planner *p, const uir_package_sink *sink);
/* Lists the steps of all blocks as one table, with their schedules. */
uir_status uir_pl_flatten(planner *p);
/* Writes the other sections, and ends the package. */
uir_status uir_pl_write(planner *p);

/* ---- kernels.c ---- */
uir_status uir_pl_add_kernels(planner *p);
/* Packs the constants of a launch, variant by variant; `used[k]`: some variant reads input k unpacked. */
uir_status uir_pl_pack_constants(planner *p, const uir_node_info *node, uint32_t kernel, const uir_dim *sizes,
                                 uint32_t size_count, uir_plan_list *out_constants, bool *used);

/* ---- remark.c ---- */
/* The remark of the node's step, for people: what was fused, or why no kernel computes it. */
uir_status uir_pl_add_remark(planner *p, const uir_node_info *node, uint32_t *out_text);

/* ---- nodes.c ---- */
/* Lists the nodes of the model's file that the node computes, the main one first. */
uir_status uir_pl_list_nodes(planner *p, const uir_node_info *node, uir_plan_list *out_list);
/* Adds all nodes of the file; called after all steps. */
uir_status uir_pl_add_nodes(planner *p);

/* ---- checks.c ---- */
/* Adds the unproved constraints on sizes of the node, or of those in a group's body, as checks of the plan's block. */
uir_status uir_pl_add_checks(planner *p, const uir_node_info *node, uint32_t block);

/* ---- slack.c ---- */
/* The value that the output's elements are computed as: reshapes give the same ones. */
uir_value_id uir_pl_find_source(const uir_module *m, uir_value_id value);
/* The slack of operand `k` of the node, along `axis` (results follow the operands): the symbol of its port. */
uir_status uir_pl_add_port_slack(planner *p, const uir_node_info *node, int64_t k, int64_t axis, uint32_t *out);
/* Replaces the expressions of slack that ports hold by symbols; called after all steps. */
uir_status uir_pl_finish_slack(planner *p);

/* ---- symbols.c ---- */
/* Adds the symbols that the node mentions, as two attributes: their numbers in the module, and their sizes. */
uir_status uir_pl_add_symbols(planner *p, const uir_node_info *node);
/* Whether the sizes of the output `value` are known when its source is computed: a reshape may be to sizes that are
 * computed later. */
uir_status uir_pl_is_sized(planner *p, uir_value_id value, uir_value_id source, bool *out_sized);

/* ---- steps and tensors, as devices.c and place.c look at them ---- */
static inline uint32_t uir_pl_get_word(const planner *p, uir_plan_list list, uint32_t i) {
    return p->words.data[list.first + i].value;
}
/* The tensor that is no alias. */
static inline uint32_t uir_pl_find_root(const planner *p, uint32_t tensor) {
    const uir_plan_tensor *tensors = p->tensors.data;
    while (tensors[tensor].storage == UIR_PLAN_STORAGE_ALIAS) tensor = tensors[tensor].index;
    return tensor;
}

/* Whether the kernel's code can run in the domain. */
static inline bool uir_pl_kernel_runs(const planner *p, uint32_t kernel, uir_plan_domain domain) {
    return p->sources[kernel].domains >> domain & 1;
}

/* ---- place.c ---- */
/* Gives launches whose results the host waits for to the host where that is cheaper. */
uir_status uir_pl_choose_host_launches(planner *p);

/* ---- fallback.c ---- */
/* Finds the steps that are the host's because the device cannot execute them. */
uir_status uir_pl_find_fallbacks(planner *p);

/* ---- devices.c ---- */
/* Gives every tensor a domain and every step a queue; adds the copies between domains. Called after all steps; nothing
 * without a device. */
uir_status uir_pl_place(planner *p);
/* Adds the waits; called when all steps are in their table. */
uir_status uir_pl_add_waits(planner *p);

/* ---- steps.c ---- */
/* Every node that only the opener could run, in bodies as well, is an error. */
uir_status uir_pl_refuse_custom(planner *p, uir_graph_id graph);
uir_status uir_pl_add_graphs(planner *p);
uir_status uir_pl_fail(planner *p, const uir_node_info *node, uir_status status, const char *format, ...)
    UIR_PRINTF(4, 5);

#endif
