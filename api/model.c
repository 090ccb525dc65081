/* Models: their life, and what a caller may ask about one. */
#include "api/internal.h"
#include "package/package.h"

#include <string.h>

uir_status uir_model_create(uir_call *call, const uir_model_table *table, const uir_limits *limits,
                            uir_model **out_model) {
    uir_context *context = call->context;
    uir_model *model;
    uir_limits taken;
    UIR_TRY(uir_api_take_limits(&call->diagnostics, limits, &taken));
    UIR_TRY_ALLOCATE(model, uir_allocate_zeroed(&context->allocator, sizeof *model));
    model->context = context;
    model->table = table;
    uir_budget_init(&model->budget, &context->allocator, &taken);
    model->allocator = uir_budget_allocator(&model->budget);
    uir_arena_init(&model->arena, &model->allocator);
    *out_model = model;
    return UIR_STATUS_OK;
}

void uir_model_destroy(uir_model *model) {
    if (!model) return;
    model->table->destroy(model);
    uir_package_close(model->package);
    uir_api_release_device(model->device);
    uir_arena_deinit(&model->arena);
    uir_budget_deinit(&model->budget);
    uir_release(&model->context->allocator, model, sizeof *model);
}

uir_status uir_model_wait(uir_model *model) {
    uir_call call;
    uir_call_begin(&call, model->context);
    return uir_call_end(&call, model->table->wait(&call, model), "compiling the kernels");
}

uir_status uir_api_port_init(uir_model *model, const uir_port *port, uir_api_port *out_port) {
    size_t room = (size_t)port->rank + 1;
    UIR_TRY_ALLOCATE(out_port->dims, uir_arena_allocate_array(&model->arena, room, sizeof *out_port->dims));
    UIR_TRY_ALLOCATE(out_port->dim_names, uir_arena_allocate_array(&model->arena, room, sizeof *out_port->dim_names));
    out_port->port = *port;
    out_port->port.dims = out_port->dims;
    out_port->port.dim_names = out_port->dim_names;
    return UIR_STATUS_OK;
}

uir_status uir_api_take_keys(uir_model *model) {
    for (uint32_t i = 0; i < model->output_count; i++) {
        const char **keys;
        size_t count = 0;
        for (uint32_t k = 0; k < model->facts.keys.count; k++) count += model->facts.keys.data[k].output == i;
        if (!count) continue;
        UIR_TRY_ALLOCATE(keys, uir_arena_allocate_array(&model->arena, count, sizeof *keys));
        model->outputs[i].port.keys = keys;
        model->outputs[i].port.key_count = count;
        for (uint32_t k = 0; k < model->facts.keys.count; k++)
            if (model->facts.keys.data[k].output == i) *keys++ = model->facts.keys.data[k].key;
    }
    return UIR_STATUS_OK;
}

/* ---- questions ---- */

size_t uir_model_input_count(const uir_model *model) {
    return model->input_count;
}
size_t uir_model_output_count(const uir_model *model) {
    return model->output_count;
}

/* One structure of what a model is asked. */
#define ANSWER(model, type, known, out) answer(model, #type, known, sizeof(type), (1 ? (out) : (type *)NULL))
static uir_status answer(const uir_model *model, const char *type, const void *known, size_t size, void *out) {
    uir_call call;
    uir_call_begin(&call, model->context);
    return uir_call_end(&call, uir_struct_give(&call.diagnostics, type, known, size, out), "querying a model");
}

uir_status uir_model_get_info(const uir_model *model, uir_model_info *out_info) {
    uir_model_info info = model->info;
    info.compiled_kernels = model->table->count_compiled(model);
    if (!info.native_why) info.native_why = "";
    info.device_code = model->package ? uir_package_get_code_origin(model->package) : "";
    return ANSWER(model, uir_model_info, &info, out_info);
}

/* One of a model's inputs, or outputs. */
static uir_status give_port(const uir_model *model, const uir_api_port *ports, uint32_t count, const char *kind,
                            size_t index, uir_port *out_port) {
    static const uir_port none = {.name = ""};
    uir_call call;
    uir_call_begin(&call, model->context);
    uir_status status =
        UIR_STRUCT_GIVE(&call.diagnostics, uir_port, index < count ? &ports[index].port : &none, out_port);
    if (status == UIR_STATUS_OK && index >= count)
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "the model has no %s %zu: it has %u, counted from 0", kind, index, count);
    return uir_call_end(&call, status, "querying a model");
}

uir_status uir_model_get_input(const uir_model *model, size_t index, uir_port *out_port) {
    return give_port(model, model->inputs, model->input_count, "input", index, out_port);
}

uir_status uir_model_get_output(const uir_model *model, size_t index, uir_port *out_port) {
    return give_port(model, model->outputs, model->output_count, "output", index, out_port);
}

const char *uir_model_get_input_name(const uir_model *model, size_t index) {
    return index < model->input_count ? model->inputs[index].port.name : "";
}

const char *uir_model_get_output_name(const uir_model *model, size_t index) {
    return index < model->output_count ? model->outputs[index].port.name : "";
}

/* ---- by name ---- */

enum { NAMES_SHOWN = 20 };

typedef struct named_ports {
    const uir_api_port *ports;
    uint32_t count;
} named_ports;

static const char *get_port_name(void *user, size_t index) {
    const named_ports *named = user;
    return index < named->count ? named->ports[index].port.name : NULL;
}

static uir_status refuse_name(uir_call *call, const uir_api_port *ports, uint32_t count, const char *kind,
                              const char *name) {
    named_ports named = {ports, count};
    const char *meant = uir_find_nearest(name, get_port_name, &named);
    uir_text names;
    uir_text_init(&names, &call->context->allocator);
    for (uint32_t i = 0; i < count && i < NAMES_SHOWN; i++)
        uir_text_append_format(&names, "%s'%s'", i ? ", " : "", ports[i].port.name);
    if (count > NAMES_SHOWN) uir_text_append_format(&names, " and %u more", count - NAMES_SHOWN);
    uir_status status = uir_text_status(&names);
    if (status == UIR_STATUS_OK)
        status = uir_error(&call->diagnostics, UIR_STATUS_NOT_FOUND, NULL, "the model has no %s '%s'; it has %s%s%s%s",
                           kind, name, count ? names.data : "none", meant ? "; did you mean '" : "", meant ? meant : "",
                           meant ? "'?" : "");
    uir_text_deinit(&names);
    return status;
}

static uir_status find_port(const uir_model *model, const uir_api_port *ports, uint32_t count, const char *kind,
                            const char *name, size_t *out_index) {
    uir_call call;
    for (uint32_t i = 0; name && i < count; i++) {
        if (strcmp(ports[i].port.name, name) != 0) continue;
        *out_index = i;
        return UIR_STATUS_OK;
    }
    uir_call_begin(&call, model->context);
    uir_status status =
        name ? refuse_name(&call, ports, count, kind, name)
             : uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the name of the %s is NULL", kind);
    return uir_call_end(&call, status, "querying a model");
}

uir_status uir_model_find_input(const uir_model *model, const char *name, size_t *out_index) {
    return find_port(model, model->inputs, model->input_count, "input", name, out_index);
}

uir_status uir_model_find_output(const uir_model *model, const char *name, size_t *out_index) {
    return find_port(model, model->outputs, model->output_count, "output", name, out_index);
}

/* ---- what the file holds ---- */

uir_status uir_model_get_native_code(const uir_model *model, size_t index, uir_native_code *out_code) {
    uir_package_native native;
    if (!model->is_file || index > UINT32_MAX || !uir_package_get_native(model->package, (uint32_t)index, &native))
        return UIR_STATUS_NOT_FOUND;
    const uir_native_code code = {.isa = native.isa, .size = native.size, .runs_here = native.runs_here};
    return ANSWER(model, uir_native_code, &code, out_code);
}

uir_status uir_model_get_tolerance(const uir_model *model, uir_tolerance *out_tolerance) {
    if (!model->facts.has_tolerance) return UIR_STATUS_NOT_FOUND;
    return ANSWER(model, uir_tolerance, &model->facts.tolerance, out_tolerance);
}

uir_status uir_model_get_contents(const uir_model *model, uir_model_contents *out_contents) {
    const uir_facts *f = &model->facts;
    const uir_model_contents contents = {
        .producer_version = f->producer_version,
        .domain = f->domain,
        .graph = f->graph,
        .model_version = f->model_version,
        .parameter_count = (uint64_t)f->parameter_count,
        .weight_bytes = (uint64_t)f->weight_bytes,
        .external_bytes = (uint64_t)f->external_bytes,
        .function_count = (uint32_t)f->function_count,
        .package_version = model->is_file ? uir_package_get_facts(model->package).version : 0,
        .package_weight_bytes = model->package ? uir_package_get_facts(model->package).weight_bytes : 0,
        .made_by = model->is_file ? uir_package_get_maker(model->package) : "",
        .signed_by = model->is_file ? uir_package_get_signer(model->package) : "",
        .signature_is_checked = model->is_vouched};
    return ANSWER(model, uir_model_contents, &contents, out_contents);
}

uir_status uir_model_get_opset(const uir_model *model, size_t index, uir_opset *out_opset) {
    if (index >= model->facts.opsets.count) return UIR_STATUS_NOT_FOUND;
    const uir_facts_opset *opset = &model->facts.opsets.data[index];
    const uir_opset given = {.domain = opset->domain, .version = opset->version};
    return ANSWER(model, uir_opset, &given, out_opset);
}

uir_status uir_model_get_op_count(const uir_model *model, size_t index, uir_op_count *out_count) {
    if (index >= model->facts.ops.count) return UIR_STATUS_NOT_FOUND;
    const uir_facts_op *op = &model->facts.ops.data[index];
    const uir_op_count given = {.domain = op->domain, .op = op->name, .count = (uint64_t)op->count};
    return ANSWER(model, uir_op_count, &given, out_count);
}

uir_status uir_model_get_metadata_at(const uir_model *model, size_t index, uir_metadata *out_metadata) {
    if (index >= model->facts.metadata.count) return UIR_STATUS_NOT_FOUND;
    const uir_facts_pair *pair = &model->facts.metadata.data[index];
    const uir_metadata given = {.key = pair->key, .value = pair->value};
    return ANSWER(model, uir_metadata, &given, out_metadata);
}

uir_status uir_model_get_default(const uir_model *model, size_t index, uir_default *out_default) {
    if (index >= model->facts.defaults.count) return UIR_STATUS_NOT_FOUND;
    const uir_facts_default *row = &model->facts.defaults.data[index];
    const uir_default found = {
        .name = row->name, .place = (uint32_t)row->place, .is_overridden = row->is_overridden != 0};
    return ANSWER(model, uir_default, &found, out_default);
}

uir_status uir_model_get_output_maker(const uir_model *model, size_t index, uir_output_maker *out_maker) {
    uir_output_maker maker = {.node = "", .op = ""};
    if (index >= model->output_count) return UIR_STATUS_NOT_FOUND;
    if (index < model->facts.outputs.count) {
        const uir_facts_output *output = &model->facts.outputs.data[index];
        maker = (uir_output_maker){
            .node = output->node, .op = output->op, .place = (uint32_t)output->place, .is_kept = output->is_kept != 0};
    }
    return ANSWER(model, uir_output_maker, &maker, out_maker);
}

const char *uir_model_get_metadata(const uir_model *model, const char *key) {
    for (uint32_t i = 0; i < model->facts.metadata.count; i++)
        if (!strcmp(model->facts.metadata.data[i].key, key)) return model->facts.metadata.data[i].value;
    return NULL;
}

uir_status uir_model_get_input_shape(const uir_model *model, size_t index, const uir_dim_binding *bindings,
                                     size_t binding_count, int64_t *out_dims) {
    uir_call call;
    uir_call_begin(&call, model->context);
    uir_status status = model->is_description
                            ? uir_error_hint(&call.diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                                             "use uir_model_get_input for the declared shape",
                                             "the model is not supported: shapes of its inputs cannot be computed")
                            : model->table->get_input_shape(&call, model, index, bindings, binding_count, out_dims);
    return uir_call_end(&call, status, "getting a shape");
}
