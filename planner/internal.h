/* What the planner's files share: the tables of the plan while they grow. Private to them. */
#ifndef UIR_PLANNER_INTERNAL_H
#define UIR_PLANNER_INTERNAL_H

#include "planner/planner.h"
#include "package/package.h"
#include "package/plan.h"

/* Which symbols an expression is over: the module's dims, or an iGraph's. Numbers are given as they are first used. */
typedef struct uir_pl_scope {
    uir_dims *dims;
    uint32_t *symbols; /* per symbol: its number + 1 */
    uint32_t symbol_count;
    bool grows;            /* unknown symbols get a number; else they are an error */
    uint32_t *expressions; /* per dim handle: expression + 1 */
    uint32_t expression_capacity;
} uir_pl_scope;

/* A constant as it lies in the weights. */
typedef struct uir_pl_piece {
    uint64_t size, hash, offset;
    uint32_t next; /* of the same bucket, + 1 */
} uir_pl_piece;

/* A constant that was packed, by where it came from and how it was laid out: variants of a kernel that want the same
 * share it. */
typedef struct uir_pl_packing {
    const int64_t *key;
    uint32_t length, constant;
    uint32_t next; /* of the same bucket, + 1 */
} uir_pl_packing;

typedef struct uir_pl_block {
    uir_vector(uir_plan_step) steps;
    uir_vector(uint32_t) inputs;
    uir_vector(uint32_t) outputs;
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
    uir_package_writer writer; /* in its weights until all is planned */
    bool dry;                  /* nothing is written */
    void *room;                /* where a constant is packed before it is written */
    size_t room_size;
    uint32_t *tensor_of;             /* per value: tensor + 1 */
    uint32_t *piece_of;              /* per value: constant + 1 */
    uir_vector(uir_pl_block) bodies; /* block 0 is the main graph's */
    uint32_t errors;
    bool *stands;        /* by origin of the module: a step is made for it */
    uint32_t *listed_at; /* by origin: where the last list of nodes has it */
#define UIR_PLAN_TABLE(type, field) uir_vector(type) field;
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
} planner;

/* ---- tables.c ---- */
uir_status uir_pl_init(planner *p);
void uir_pl_deinit(planner *p);
uir_status uir_pl_add_text(planner *p, const char *text, size_t length, uint32_t *out_text);
uir_status uir_pl_add_list(planner *p, const uint32_t *values, uint32_t count, uir_plan_list *out_list);
/* NONE for no dim. */
uir_status uir_pl_add_expression(planner *p, uir_pl_scope *scope, uir_dim dim, uint32_t *out_expression);
uir_status uir_pl_add_expressions(planner *p, uir_pl_scope *scope, const uir_dim *dims, uint32_t count,
                                  uir_plan_list *out_list);
/* The plan's number of a module's symbol. */
uir_status uir_pl_add_symbol(planner *p, uir_symbol symbol, uint32_t *out_symbol);
/* A symbol that only this plan has. */
uir_status uir_pl_add_fresh_dim(planner *p, uint32_t *out_expression);
uir_status uir_pl_add_number(planner *p, int64_t value, uint32_t *out_expression);
/* Bytes that are in the weights once, however often they are added. */
uir_status uir_pl_add_constant(planner *p, const void *data, uint64_t size, uint32_t *out_constant);
/* The same of a tensor packed for a pointer of the iGraph, done once for each layout; `values` binds its symbols. `key`
 * tells layouts apart. */
uir_status uir_pl_find_packing(planner *p, const int64_t *key, uint32_t length, uir_pl_packing **out_packing);
uir_status uir_pl_make_room(planner *p, size_t size);
/* Begins the package with its weights. */
uir_status uir_pl_begin(planner *p, const uir_package_sink *sink);
/* The rest of it. */
uir_status uir_pl_write(planner *p);

/* ---- kernels.c ---- */
uir_status uir_pl_add_kernels(planner *p);
/* Packs the constants of a launch, variant by variant; `used[k]`: some variant reads input k as it is. */
uir_status uir_pl_pack_constants(planner *p, const uir_node_info *node, uint32_t kernel, const uir_dim *sizes,
                                 uint32_t size_count, uir_plan_list *out_constants, bool *used);

/* ---- remark.c ---- */
/* Why the node's step is as it is: text for a person. */
uir_status uir_pl_add_remark(planner *p, const uir_node_info *node, uint32_t *out_text);

/* ---- nodes.c ---- */
/* Which nodes of the model's file the node stands for, the one that it is known by first. */
uir_status uir_pl_list_nodes(planner *p, const uir_node_info *node, uir_plan_list *out_list);
/* All nodes of the file, once there are all steps. */
uir_status uir_pl_add_nodes(planner *p);

/* ---- checks.c ---- */
/* What the node, or those of a group's body, demand of sizes and no proof gives, as checks of the plan's block. */
uir_status uir_pl_add_checks(planner *p, const uir_node_info *node, uint32_t block);

/* ---- steps.c ---- */
uir_status uir_pl_add_graphs(planner *p);
uir_status uir_pl_fail(planner *p, const uir_node_info *node, uir_status status, const char *format, ...)
    UIR_PRINTF(4, 5);

#endif
