/* The compile checked stage by stage: the public face of compile/check. */
#include "api/internal.h"
#include "compile/check.h"

static void forward(void *user, const uir_check_report *report) {
    const uir_model_check_options *options = user;
    uir_check_line line = {.struct_size = sizeof line,
                           .stage = report->stage,
                           .kernel = report->kernel,
                           .node = report->node,
                           .agrees = report->agrees,
                           .checked = report->checked,
                           .skipped = report->skipped,
                           .text = report->text};
    if (options->report) options->report(options->user, &line);
}

static uir_status check(uir_call *call, const uir_allocator *allocator, uir_operation *operation, const char *path,
                        uir_value *const *inputs, size_t input_count, const uir_model_check_options *options) {
    const uir_onnx_overrides overrides = {options->overrides, options->override_count};
    uir_onnx_source source = {
        .path = path, .external_data = options->external_data, .no_map = options->no_map, .overrides = &overrides};
    uir_check_options check = {.device = options->device,
                               .exact = options->exact,
                               .strict = options->strict,
                               .source = options->source,
                               .limit = options->all ? UINT64_MAX : 0,
                               .rtol = options->rtol,
                               .atol_relative = options->atol_relative,
                               .cancel = options->cancel,
                               .report = forward,
                               .progress = uir_operation_whole(operation),
                               .user = (void *)(uintptr_t)options};
    uir_tolerance f16 = {.struct_size = sizeof f16}, bf16 = {.struct_size = sizeof bf16};
    UIR_TRY(uir_dtype_get_tolerance(UIR_DTYPE_F16, &f16));
    UIR_TRY(uir_dtype_get_tolerance(UIR_DTYPE_BF16, &bf16));
    check.f16_tolerance = f16.rtol;
    check.bf16_tolerance = bf16.rtol;
    UIR_TRY(uir_precision_find(options->precision, &call->diagnostics, &check.precision));
    for (size_t i = 0; i < input_count; i++) UIR_TRY(uir_value_check_on_host(call, inputs[i], "a value of an input"));
    uir_datum **datums;
    size_t size = (input_count + 1) * sizeof *datums;
    UIR_TRY_ALLOCATE(datums, uir_allocate_zeroed(allocator, size));
    for (size_t i = 0; i < input_count; i++) datums[i] = inputs[i]->datum;
    uir_status status = uir_check(&source, datums, (uint32_t)input_count, &check, allocator, &call->diagnostics);
    uir_release(allocator, datums, size);
    bool done = status == UIR_STATUS_OK || status == UIR_STATUS_DIFFERENT;
    return done && uir_operation_finish(operation) == UIR_STATUS_CANCELLED ? UIR_STATUS_CANCELLED : status;
}

uir_status uir_model_check_file(uir_context *context, const char *path, uir_value *const *inputs, size_t input_count,
                                const uir_model_check_options *options) {
    uir_call call;
    uir_model_check_options taken;
    uir_limits limits;
    uir_budget budget;
    uir_call_begin(&call, context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_model_check_options, options, &taken);
    if (status == UIR_STATUS_OK) status = uir_api_take_limits(&call.diagnostics, taken.limits, &limits);
    uir_budget_init(&budget, &context->allocator, status == UIR_STATUS_OK ? &limits : NULL);
    uir_allocator allocator = uir_budget_allocator(&budget);
    uir_operation operation = {.tell = taken.progress, .user = taken.user, .cancel = taken.cancel, .budget = &budget};
    if (status == UIR_STATUS_OK) status = uir_budget_begin(&budget, "checking the model", taken.cancel, NULL);
    if (status == UIR_STATUS_OK) status = check(&call, &allocator, &operation, path, inputs, input_count, &taken);
    status = uir_budget_end(&budget, status, &call.diagnostics);
    uir_budget_deinit(&budget);
    if (status == UIR_STATUS_DIFFERENT) { /* which the report has told */
        uir_diagnostics_deinit(&call.diagnostics);
        return status;
    }
    return uir_call_end(&call, status, "checking the model");
}
