/* Nodes that the host computes because the model's device cannot: said once, or refused. */
#include "api/internal.h"

uir_status uir_api_judge_fallbacks(uir_model *model, uir_diagnostics *diagnostics) {
    uir_text text;
    if (!model->package || !uir_package_has_device(model->package)) return UIR_STATUS_OK;
    uir_package_fallbacks count = uir_package_count_fallbacks(model->package);
    model->info.host_group_count = count.groups;
    model->info.host_operator_count = count.operators;
    if (!count.groups && !count.operators) return UIR_STATUS_OK;
    if (model->no_fallback) return uir_package_refuse_fallbacks(model->package, diagnostics);
    uir_text_init(&text, &model->allocator);
    uir_text_append_string(&text, "the host computes ");
    uir_package_describe_fallbacks(model->package, ", since the device cannot:", &text);
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) uir_warning(diagnostics, NULL, "%s", text.data);
    uir_text_deinit(&text);
    return status;
}
