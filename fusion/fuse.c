/* The pass: each graph by itself, bodies of control flow too. */
#include "fusion/clusters.h"

const char *uir_fusion_rewrite_name(uir_fusion_rewrite rewrite) {
    static const char *const names[] = {
#define UIR_FUSION_REWRITE(constant, name, standard, purpose) name,
#include "fusion/fusion.def"
    };
    return names[rewrite];
}

const char *uir_fusion_clause_name(uir_fusion_clause clause) {
    static const char *const names[] = {
#define UIR_FUSION_CLAUSE(constant, name, purpose) name,
#include "fusion/fusion.def"
    };
    return names[clause];
}

uint32_t uir_fusion_standard_rewrites(void) {
    uint32_t bits = 0;
#define UIR_FUSION_REWRITE(constant, name, standard, purpose)                                                          \
    if (standard) bits |= 1u << UIR_FUSION_##constant;
#include "fusion/fusion.def"
    return bits;
}

uir_status uir_fuse_graph(uir_module *module, uir_graph_id graph, const uir_fusion_options *options,
                          uir_diagnostics *diagnostics, uir_arena *arena) {
    uir_clusters clusters;
    UIR_TRY(uir_clusters_init(&clusters, module, graph, options, arena));
    UIR_TRY(uir_clusters_rewrite(&clusters));
    return uir_clusters_emit(&clusters, diagnostics);
}

static bool has_groups(const uir_module *module) {
    for (uint32_t n = 1; n < module->nodes.count; n++)
        if (module->nodes.data[n].op == UIR_OP_GROUP) return true;
    return false;
}

uir_status uir_fuse(uir_module *module, const uir_fusion_options *options, uir_diagnostics *diagnostics) {
    static const uir_fusion_options none = {0};
    if (has_groups(module)) return UIR_STATUS_OK;
    uir_arena arena;
    uir_arena_init(&arena, module->allocator);
    uir_status status = UIR_STATUS_OK;
    uint32_t count = module->graphs.count; /* the bodies made below are none of ours */
    for (uint32_t g = 1; g < count && status == UIR_STATUS_OK; g++) {
        status = uir_fuse_graph(module, (uir_graph_id){g}, options ? options : &none, diagnostics, &arena);
        uir_arena_reset(&arena);
    }
    uir_arena_deinit(&arena);
    return status;
}
