/* A module and its kernels to a package. */
#include "planner/internal.h"

#include "package/fallback.h"

#include <string.h>

static uir_status add_metadata(planner *p) {
    for (uint32_t i = 0; i < p->options->metadata_count; i++) {
        const char *key = p->options->metadata[2 * i], *value = p->options->metadata[2 * i + 1];
        uir_plan_metadata m;
        UIR_TRY(uir_pl_add_text(p, key, strlen(key), &m.key));
        UIR_TRY(uir_pl_add_text(p, value, strlen(value), &m.value));
        UIR_TRY(uir_vector_push(&p->arena, &p->metadata, m));
    }
    return UIR_STATUS_OK;
}

static uir_status build(planner *p, const uir_package_sink *sink) {
    UIR_TRY(uir_pl_init(p));
    if (!p->options->custom) UIR_TRY(uir_pl_refuse_custom(p, p->module->main));
    if (!sink) return UIR_STATUS_OK;
    UIR_TRY(uir_pl_begin(p, sink));
    UIR_TRY(uir_pl_add_kernels(p));
    UIR_TRY(uir_pl_add_graphs(p));
    UIR_TRY(uir_pl_add_nodes(p));
    UIR_TRY(add_metadata(p));
    UIR_TRY(uir_pl_flatten(p));
    const uir_plan plan = uir_pl_view(p);
    if (p->options->no_fallback) UIR_TRY(uir_plan_refuse_fallbacks(&plan, &p->allocator, p->diagnostics));
    return uir_pl_write(p);
}

uir_status uir_plan_build(const uir_module *module, const uir_plan_source *sources, uint32_t source_count,
                          const uir_plan_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                          const uir_package_sink *sink) {
    planner p = {.module = module,
                 .sources = sources,
                 .source_count = source_count,
                 .options = options,
                 .diagnostics = diagnostics,
                 .allocator = *allocator};
    uir_status status = build(&p, sink);
    uir_pl_deinit(&p);
    return status;
}
