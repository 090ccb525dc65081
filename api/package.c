/* Models from package files: no compiler, no graph. */
#include "backends/devices/devices.h"
#include "api/internal.h"
#include "api/trust.h"
#include "base/number.h"

#include <string.h>

/* ---- what such a model answers ---- */

static void destroy_nothing(uir_model *model) {
    (void)model; /* the package is the model's */
}

static uir_status wait_for_nothing(uir_call *call, uir_model *model) {
    (void)call, (void)model;
    return UIR_STATUS_OK;
}

static uint32_t count_none(const uir_model *model) {
    (void)model;
    return 0;
}

uir_status uir_api_get_package_shape(uir_call *call, const uir_model *model, size_t index,
                                     const uir_dim_binding *bindings, size_t binding_count, int64_t *out_dims) {
    const uir_allocator *allocator = &model->allocator;
    size_t size = (binding_count + 1) * sizeof(uir_package_dim);
    uir_package_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_allocate_zeroed(allocator, size));
    for (size_t i = 0; i < binding_count; i++) dims[i] = (uir_package_dim){bindings[i].name, bindings[i].value};
    uir_status status = uir_package_get_input_shape(model->package, index < UINT32_MAX ? (uint32_t)index : UINT32_MAX,
                                                    dims, binding_count, allocator, &call->diagnostics, out_dims);
    uir_release(allocator, dims, size);
    return status;
}

static uir_status check_files(uir_call *call, const uir_model *model, bool interpreted) {
    (void)interpreted;
    return uir_package_check_file(model->package, &call->diagnostics);
}

static const char *explain_vm(const uir_model *model) {
    return model->vm_why;
}

static const uir_model_table package_model = {
    .destroy = destroy_nothing,
    .wait = wait_for_nothing,
    .count_compiled = count_none,
    .check_files = check_files,
    .explain_vm = explain_vm,
    .get_input_shape = uir_api_get_package_shape,
};

/* ---- opening ---- */

static uir_status take_port(uir_model *model, const uir_package_port *from, uir_api_port *out) {
    uir_port port = {
        .name = from->name, .kind = UIR_VALUE_TENSOR, .dtype = from->dtype, .rank_known = true, .rank = from->rank};
    UIR_TRY(uir_api_port_init(model, &port, out));
    for (uint32_t i = 0; i < from->rank; i++) {
        out->dims[i] = from->dims[i];
        out->dim_names[i] = from->dim_names[i];
    }
    return UIR_STATUS_OK;
}

uir_status uir_api_take_package_ports(uir_model *model) {
    const uir_package *package = model->package;
    model->input_count = uir_package_input_count(package);
    model->output_count = uir_package_output_count(package);
    UIR_TRY_ALLOCATE(model->inputs,
                     uir_arena_allocate_array(&model->arena, (size_t)model->input_count + 1, sizeof *model->inputs));
    UIR_TRY_ALLOCATE(model->outputs,
                     uir_arena_allocate_array(&model->arena, (size_t)model->output_count + 1, sizeof *model->outputs));
    for (uint32_t i = 0; i < model->input_count; i++) {
        uir_package_port port = uir_package_get_input(package, i);
        UIR_TRY(take_port(model, &port, &model->inputs[i]));
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        uir_package_port port = uir_package_get_output(package, i);
        UIR_TRY(take_port(model, &port, &model->outputs[i]));
    }
    return UIR_STATUS_OK;
}

/* The device whose code runs: `row`, or the one whose format it falls back on. */
static const char *get_engine(const uir_device_row *row, const uir_package *package) {
    const uir_kernel_format *last = row->formats[uir_device_count_formats(row) - 1];
    if (uir_device_has_driver(row)) return row->name;
    return uir_device_is_native(row) && uir_package_is_native(package) ? row->name : last->name;
}

static uir_status open_into(uir_call *call, uir_model *model, const char *path,
                            const uir_package_open_options *options) {
    uir_diagnostics *diagnostics = &call->diagnostics;
    double start = uir_api_now_ms();
    const char *device = options->device;
    UIR_TRY(uir_api_take_opened(model, diagnostics, options->opened, &device));
    if (device && !strcmp(device, UIR_INTERPRETER_NAME))
        return uir_error_hint(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "load the model it was made from",
                              "a package has no graph that the interpreter could run");
    const uir_device_row *row = uir_device_find(device, NULL);
    if (!row) {
        const char *meant = uir_api_guess_device(device);
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "packages do not run on the device '%s'%s%s%s",
                         device, meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
    uir_package_options package = {
        .pictures = uir_api_pictures(), .trusted = options->trusted, .copy = options->no_map};
    model->no_fallback = options->no_fallback;
    UIR_TRY(uir_api_open_device(model, row, device, diagnostics, &package));
    uir_trust trust = {options->trust, options->trust_count, path, options->cancel};
    if (options->trust_count) package.vouch = uir_trust_vouch, package.vouch_user = &trust;
    UIR_TRY(uir_package_open_file(path, &package, &model->allocator, diagnostics, &model->package));
    UIR_TRY(uir_api_take_package_ports(model));
    UIR_TRY(uir_facts_read(model->package, &model->arena, &model->facts));
    UIR_TRY(uir_api_take_keys(model));
    model->is_file = true;
    model->is_vouched = package.vouch != NULL;
    const char *why = uir_package_explain_not_native(model->package);
    model->vm_why = !uir_device_is_native(row)                              ? "the requested device is the VM"
                    : !uir_package_get_facts(model->package).native_objects ? "the package holds no native code"
                    : !package.trusted && !package.vouch ? "the package is not trusted, so its native code is not used"
                    : *why                               ? why
                                                         : "this machine does not run the package's native code";
    model->info = (uir_model_info){.producer = model->facts.producer,
                                   .ir_version = model->facts.ir_version,
                                   .opset = model->facts.opset,
                                   .onnx_node_count = (uint32_t)model->facts.node_count,
                                   .primitive_count = (uint32_t)model->facts.primitive_count,
                                   .device = get_engine(row, model->package),
                                   .why = "",
                                   .kernel_count = uir_package_get_facts(model->package).kernels,
                                   .load_ms = uir_api_now_ms() - start};
    uir_facts_tell_kernels(&model->facts, &model->info);
    return uir_api_judge_fallbacks(model, diagnostics);
}

uir_status uir_model_open_package_file(uir_context *context, const char *path, const uir_package_open_options *options,
                                       uir_model **out_model) {
    static const char *const what = "opening a package";
    uir_call call;
    uir_package_open_options taken;
    *out_model = NULL;
    uir_call_begin(&call, context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_package_open_options, options, &taken);
    if (status == UIR_STATUS_OK) status = uir_model_create(&call, &package_model, taken.limits, out_model);
    if (status == UIR_STATUS_OK) {
        uir_budget *budget = &(*out_model)->budget;
        status = uir_budget_begin(budget, what, taken.cancel, NULL);
        if (status == UIR_STATUS_OK) status = open_into(&call, *out_model, path, &taken);
        status = uir_budget_end(budget, status, &call.diagnostics);
    }
    if (status != UIR_STATUS_OK) {
        uir_model_destroy(*out_model);
        *out_model = NULL;
    }
    return uir_call_end(&call, status, what);
}
