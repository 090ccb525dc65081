/* Models from ONNX files: loading, and what they answer. */
#include "api/compiled.h"
#include "api/facts_onnx.h"
#include "decompose/decompose.h"
#include "package/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- ports ---- */

static uir_status print_dim(const uir_module *module, uir_dim dim, uir_arena *arena, const char **out_text) {
    uir_symbol symbol;
    if (uir_dim_is_symbol(module->dims, dim, &symbol)) {
        const char *name = uir_dims_symbol_name(module->dims, symbol);
        UIR_TRY_ALLOCATE(*out_text, uir_arena_copy_string(arena, name, strlen(name)));
        return UIR_STATUS_OK;
    }
    uir_text text;
    uir_text_init(&text, module->allocator);
    uir_dim_print(module->dims, dim, &text);
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) {
        *out_text = uir_arena_copy_string(arena, text.data ? text.data : "", text.length);
        if (!*out_text) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_text_deinit(&text);
    return status;
}

static uir_status make_port(uir_model *model, const uir_type *type, const char *name, uir_api_port *out) {
    const uir_module *module = uir_model_get_source(model)->compile.primitives;
    uir_port port = {.name = name,
                     .kind = type->kind,
                     .dtype = type->dtype,
                     .rank_known = type->rank_known,
                     .rank = type->rank_known ? type->rank : 0};
    UIR_TRY(uir_api_port_init(model, &port, out));
    for (uint32_t i = 0; i < port.rank; i++) {
        out->dim_names[i] = "";
        if (uir_dim_is_const(module->dims, type->dims[i], &out->dims[i])) continue;
        out->dims[i] = -1;
        UIR_TRY(print_dim(module, type->dims[i], &model->arena, &out->dim_names[i]));
    }
    return UIR_STATUS_OK;
}

static uir_status make_ports(uir_model *model, const uir_value_id *values, uint32_t count, const char *const *names,
                             uir_api_port **out_ports) {
    UIR_TRY_ALLOCATE(*out_ports, uir_arena_allocate_array(&model->arena, count + 1, sizeof **out_ports));
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(make_port(model, uir_value_type(uir_model_get_source(model)->compile.primitives, values[i]), names[i],
                          &(*out_ports)[i]));
    }
    return UIR_STATUS_OK;
}

/* ---- loading ---- */

/* ---- reading and preparing ---- */

static uir_status describe(uir_model *model, const uir_compile *compile) {
    uir_model_source *from = uir_model_get_source(model);
    const uir_graph_info *main = uir_graph_get(from->compile.primitives, from->compile.primitives->main);
    model->input_count = main->inputs.count;
    model->output_count = main->outputs.count;
    UIR_TRY(make_ports(model, main->inputs.data, main->inputs.count, compile->info.input_names, &model->inputs));
    UIR_TRY(make_ports(model, main->outputs.data, main->outputs.count, compile->info.output_names, &model->outputs));
    UIR_TRY(uir_facts_from_onnx(compile, &model->arena, &model->facts));
    UIR_TRY(uir_api_take_keys(model));
    model->info = (uir_model_info){.producer = compile->info.producer,
                                   .ir_version = compile->info.ir_version,
                                   .opset = compile->onnx->opset,
                                   .onnx_node_count = compile->info.node_count,
                                   .primitive_count = (uint32_t)model->facts.primitive_count,
                                   .load_ms = compile->load_ms,
                                   .compile_ms = compile->compile_ms,
                                   .device = UIR_INTERPRETER_NAME,
                                   .why = "",
                                   .precision = uir_precision_name(UIR_PRECISION_F32)};
    return UIR_STATUS_OK;
}

/* What is known of a model that cannot be loaded. */
static uir_status copy_ports(uir_model *model, const uir_port *ports, uint32_t count, uir_api_port **out_ports) {
    UIR_TRY_ALLOCATE(*out_ports, uir_arena_allocate_array(&model->arena, (size_t)count + 1, sizeof **out_ports));
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(uir_api_port_init(model, &ports[i], &(*out_ports)[i]));
        for (uint32_t d = 0; d < ports[i].rank; d++) {
            (*out_ports)[i].dims[d] = ports[i].dims[d];
            (*out_ports)[i].dim_names[d] = ports[i].dim_names[d];
        }
    }
    return UIR_STATUS_OK;
}

static uir_status describe_file(uir_model *model, const uir_compile *compile) {
    const uir_onnx_info *info = &compile->info;
    UIR_TRY(uir_facts_from_onnx(compile, &model->arena, &model->facts));
    UIR_TRY(copy_ports(model, info->declared_inputs, info->declared_input_count, &model->inputs));
    UIR_TRY(copy_ports(model, info->declared_outputs, info->declared_output_count, &model->outputs));
    model->input_count = info->declared_input_count;
    model->output_count = info->declared_output_count;
    model->is_description = true;
    model->info = (uir_model_info){.producer = info->producer,
                                   .ir_version = info->ir_version,
                                   .opset = model->facts.opset,
                                   .onnx_node_count = info->node_count,
                                   .device = "",
                                   .why = "the model is not supported",
                                   .precision = uir_precision_name(UIR_PRECISION_F32)};
    return UIR_STATUS_OK;
}

static uir_status build(uir_call *call, uir_progress progress, bool describes, uir_model *model) {
    uir_compile *compile = &uir_model_get_source(model)->compile;
    const uir_compile_call read = {.diagnostics = &call->diagnostics, .progress = progress};
    uir_status status = uir_compile_run(compile, UIR_STAGE_CLEANED, &read);
    if (status == UIR_STATUS_UNSUPPORTED && describes && compile->info.described) return describe_file(model, compile);
    UIR_TRY(status);
    status = describe(model, compile);
    uir_compile_drop_onnx(compile);
    /* The sink of this call ends with it; a run brings its own. */
    compile->primitives->diagnostics = NULL;
    return status;
}

/* Does this build have a description of it? */
static bool is_described(uir_call *call, const char *device) {
    uir_diagnostics said;
    uir_compile_machines *devices = NULL;
    const uir_machine *found = NULL;
    uir_diagnostics_init(&said, &call->context->allocator);
    if (uir_compile_machines_create(&call->context->allocator, NULL, &said, &devices) == UIR_STATUS_OK)
        (void)!uir_compile_machines_find(devices, device, &said, &found);
    uir_compile_machines_destroy(devices);
    uir_diagnostics_deinit(&said);
    return found != NULL;
}

static uir_status check_device(uir_call *call, const uir_model_options *options) {
    const char *device = options->device;
    uir_text names;
    if (options->interpret || !device || !strcmp(device, UIR_INTERPRETER_NAME) || uir_device_find(device, NULL))
        return UIR_STATUS_OK;
    const char *meant = uir_api_guess_device(device);
    uir_text_init(&names, &call->context->allocator);
    for (size_t i = 0; uir_device_name(i); i++)
        uir_text_append_format(&names, "%s%s", i ? ", " : "", uir_device_name(i));
    uir_status status = uir_text_status(&names);
    if (status == UIR_STATUS_OK)
        status = uir_error_hint(
            &call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
            is_described(call, device)
                ? "use --interpret (`interpret`): it runs the device's kernels on the interpreter, slowly"
                : NULL,
            "no driver for device '%s' in this build; use one of %s%s%s%s", device, names.data,
            meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    uir_text_deinit(&names);
    return status;
}

/* Of primitives, or of kernels: no package is made. */
static bool wants_interpreter(const uir_model_options *options) {
    return options->interpret || (options->device && strcmp(options->device, UIR_INTERPRETER_NAME) == 0);
}

/* The last error: what ended the compile names the stage. */
static const char *find_reason(const uir_call *call, uir_status status) {
    const char *reason = uir_status_text(status);
    for (const uir_diagnostic *d = call->diagnostics.first; d; d = d->next)
        if (d->severity == UIR_SEVERITY_ERROR) reason = d->message;
    return reason;
}

/* What the compile's stages change of a model. */
typedef struct before_compile {
    uir_model_info info;
    uir_facts facts;
} before_compile;

/* The compiler has changed the module: the interpreter is given the clone that nothing was done to. */
static uir_status fall_back(uir_call *call, uir_model *model, const before_compile *before, uir_status status) {
    const char *reason = find_reason(call, status), *why;
    UIR_TRY_ALLOCATE(why, uir_arena_copy_string(&model->arena, reason, strlen(reason)));
    uir_diagnostics_clear(&call->diagnostics);
    uir_model_code_destroy(model);
    uir_compile_restore(&uir_model_get_source(model)->compile);
    model->info = before->info;
    model->facts = before->facts;
    model->info.why = why;
    model->info.fault_count = uir_lowering_is_fault(status);
    uir_warning(&call->diagnostics, NULL, "the interpreter runs the model, since no kernels could be made of it: %s%s",
                why, model->info.fault_count ? "; report this fault of the compiler" : "");
    return UIR_STATUS_OK;
}

/* Can the interpreter take over from a device for which the compile failed? Not where a part of the compile was asked
 * for itself. */
static bool may_fall_back(const uir_model_options *options) {
    const uir_device_row *row = uir_device_find(options->device, NULL);
    bool refuses = options->no_fallback && row && uir_device_has_driver(row);
    return !uir_model_wants_source(options) && !options->interpret && !refuses;
}

/* Nor from the package on. */
static bool can_fall_back(const uir_model *model, const uir_model_options *options, uir_status status) {
    const uir_compile *compile = &uir_model_get_source(model)->compile;
    if (model->package || !may_fall_back(options)) return false;
    return uir_lowering_is_refusal(status) ||
           (compile->options.isolates_faults && compile->next <= UIR_STAGE_RUNS && status == UIR_STATUS_INTERNAL);
}

/* On the device, or else on the interpreter. */
static uir_status build_code(uir_call *call, const uir_model_options *options, uir_progress progress,
                             uir_model *model) {
    uir_compile *compile = &uir_model_get_source(model)->compile;
    const before_compile before = {model->info, model->facts};
    if (wants_interpreter(options) && !options->interpret) return UIR_STATUS_OK;
    if (may_fall_back(options)) UIR_TRY(uir_compile_keep(compile));
    compile->primitives->diagnostics = &call->diagnostics;
    uir_status status = options->interpret ? uir_model_compile_described(call, model, progress)
                                           : uir_model_compile(call, model, options, progress);
    compile->primitives->diagnostics = NULL;
    if (can_fall_back(model, options, status)) return fall_back(call, model, &before, status);
    uir_compile_drop_kept(compile);
    return status;
}

/* ---- questions ---- */

/* ---- shapes for given dims ---- */

typedef struct binding_walk {
    const uir_dims *dims;
    const uir_dim_binding *bindings;
    size_t count;
    bool *used;      /* by binding */
    int64_t *values; /* by symbol */
} binding_walk;

static void bind_symbol(void *user, uir_symbol symbol) {
    binding_walk *walk = user;
    const char *name = uir_dims_symbol_name(walk->dims, symbol);
    for (size_t i = 0; i < walk->count; i++) {
        if (strcmp(name, walk->bindings[i].name) != 0) continue;
        walk->used[i] = true;
        walk->values[symbol.id] = walk->bindings[i].value;
    }
}

static void bind_input(const uir_module *module, uint32_t index, binding_walk *walk) {
    const uir_type *type = uir_value_type(module, uir_graph_get(module, module->main)->inputs.data[index]);
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        uir_dim_visit_symbols(walk->dims, type->dims[d], bind_symbol, walk);
}

static bool all_used(const binding_walk *walk) {
    for (size_t i = 0; i < walk->count; i++)
        if (!walk->used[i]) return false;
    return true;
}

/* The dims of input `index`; of the others only so many are looked at as tell that some input has each bound dim. */
static uir_status bind_inputs(uir_call *call, const uir_model *model, size_t index, binding_walk *walk) {
    const uir_module *module = uir_model_get_source(model)->compile.primitives;
    bind_input(module, (uint32_t)index, walk);
    for (uint32_t i = 0; i < model->input_count && !all_used(walk); i++) bind_input(module, i, walk);
    for (size_t i = 0; i < walk->count; i++) {
        if (!walk->used[i]) {
            return uir_error(&call->diagnostics, UIR_STATUS_NOT_FOUND, NULL, "no input has a dim '%s'",
                             walk->bindings[i].name);
        }
        if (walk->bindings[i].value < 0) {
            return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the dim '%s' cannot be %lld",
                             walk->bindings[i].name, (long long)walk->bindings[i].value);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status evaluate_shape(uir_call *call, const uir_model *model, size_t index, binding_walk *walk,
                                 int64_t *out_dims) {
    if (index >= model->input_count) {
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the model has no input %zu: it has %u, counted from 0", index, model->input_count);
    }
    uint32_t symbols = uir_dims_symbol_count(walk->dims);
    for (uint32_t i = 0; i < symbols; i++) walk->values[i] = 1;
    UIR_TRY(bind_inputs(call, model, index, walk));
    const uir_module *module = uir_model_get_source(model)->compile.primitives;
    const uir_graph_info *main = uir_graph_get(module, module->main);
    const uir_type *type = uir_value_type(module, main->inputs.data[index]);
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++) {
        if (uir_dim_evaluate(walk->dims, type->dims[d], walk->values, NULL, symbols, &out_dims[d]) !=
                UIR_DIM_EVALUATED ||
            out_dims[d] < 0) {
            return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "dim %u of input '%s' has no value for these dims", (unsigned)d,
                             model->inputs[index].port.name);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status get_input_shape(uir_call *call, const uir_model *model, size_t index, const uir_dim_binding *bindings,
                                  size_t binding_count, int64_t *out_dims) {
    uir_arena scratch;
    uir_arena_init(&scratch, &model->allocator);
    binding_walk walk = {
        .dims = uir_model_get_source(model)->compile.primitives->dims, .bindings = bindings, .count = binding_count};
    walk.used = uir_arena_allocate_array(&scratch, binding_count + 1, sizeof *walk.used);
    walk.values = uir_arena_allocate_array(&scratch, (size_t)uir_dims_symbol_count(walk.dims) + 1, sizeof *walk.values);
    uir_status status =
        walk.used && walk.values ? evaluate_shape(call, model, index, &walk, out_dims) : UIR_STATUS_OUT_OF_MEMORY;
    uir_arena_deinit(&scratch);
    return status;
}

/* ---- loading ---- */

void uir_model_destroy_source(uir_model *model) {
    uir_model_source *from = uir_model_get_source(model);
    if (!from) return;
    uir_model_code_destroy(model);
    uir_compile_deinit(&from->compile);
    uir_compile_machines_destroy(from->devices);
    uir_release(&model->allocator, from, sizeof *from);
}

/* A package is all that kernels read; of the model's own files the interpreter does. */
uir_status uir_model_check_files(uir_call *call, const uir_model *model, bool interpreted) {
    const uir_model_source *from = uir_model_get_source(model);
    if (interpreted) return uir_onnx_check_files(from->compile.primitives, &call->diagnostics);
    const uir_model_cached *cached = &from->code->cached;
    if (!cached->package.size || uir_cache_entry_is_unchanged(from->code->cache, &cached->package))
        return UIR_STATUS_OK;
    return uir_error_hint(&call->diagnostics, UIR_STATUS_BAD_FILE, NULL, "load the model again",
                          "the model's package in the cache has changed since it was loaded");
}

static const uir_model_table compiled_model = {
    .destroy = uir_model_destroy_source,
    .wait = uir_model_code_wait,
    .count_compiled = uir_model_code_count,
    .check_files = uir_model_check_files,
    .explain_vm = uir_model_code_explain_vm,
    .get_input_shape = get_input_shape,
    .interpret = uir_session_interpret,
    .find_shape = uir_model_find_interpreted_shape,
    .get_node_statistics = uir_session_get_interpreted,
    .get_slice = uir_session_get_interpreted_slice,
    .get_node = uir_model_find_node,
    .get_row_node = uir_session_find_row_node,
    .get_slice_node = uir_session_find_slice_node,
    .get_estimate = uir_session_find_estimate,
    .get_space_estimate = uir_session_find_space_estimate,
};

/* Are faults of the compiler errors: because the load is strict, or because $UIR_STRICT is 1, which tests set? */
static bool is_strict(bool asked) {
    const char *word = getenv("UIR_STRICT");
    return asked || (word && !strcmp(word, "1"));
}

/* The name of the device with that of its chip: of the device that is opened here, where the chip is left to it. */
static uir_status name_device(uir_call *call, uir_model *model, const char *device, const char **out_name) {
    const char *variant;
    const uir_device_row *row = uir_device_find(device, &variant);
    uir_package_options unused = {.trusted = true};
    uir_text name;
    bool leaves_chip = row && uir_target_leaves_chip(row, variant);
    if (leaves_chip) UIR_TRY(uir_api_open_device(model, row, device, &call->diagnostics, &unused));
    uir_text_init(&name, &model->allocator);
    if (leaves_chip)
        uir_text_append_format(&name, "%s:%s%s%s", row->name,
                               model->device->driver->get_facts(model->device->opened)->chip, variant ? ":" : "",
                               variant ? variant : "");
    else
        uir_text_append_string(&name, device);
    *out_name = uir_text_status(&name) == UIR_STATUS_OK
                    ? uir_arena_copy_string(&model->arena, name.data ? name.data : "", name.length)
                    : NULL;
    uir_text_deinit(&name);
    return *out_name ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

static uir_status begin_compile(uir_call *call, uir_model *model, const uir_onnx_source *source,
                                const uir_model_options *options) {
    uir_compile_options compile = {.within_nodes = options->no_fusion,
                                   .exact = options->exact,
                                   .isolates_faults = !is_strict(options->strict),
                                   .strict = options->strict,
                                   .check_text = options->debug->round_trip,
                                   .dump = options->debug->dump,
                                   .dump_text = options->debug->dump_text,
                                   .dump_user = options->debug->dump_user};
    if (options->device && !options->interpret) UIR_TRY(name_device(call, model, options->device, &compile.device));
    if (options->device && options->interpret)
        UIR_TRY_ALLOCATE(compile.device,
                         uir_arena_copy_string(&model->arena, options->device, strlen(options->device)));
    UIR_TRY(uir_precision_find(options->precision, &call->diagnostics, &compile.precision));
    if (wants_interpreter(options) && !options->interpret &&
        (compile.precision == UIR_PRECISION_F16 || compile.precision == UIR_PRECISION_BF16))
        return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "omit the precision, or name a device that has kernels",
                              "precision %s: the interpreter multiplies in the model's own types", options->precision);
    if (options->interpret) UIR_TRY(uir_model_choose_described(call, model, options, &compile.description));
    uir_compile_init(&uir_model_get_source(model)->compile, source, &compile, &model->allocator, &model->arena);
    return UIR_STATUS_OK;
}

static uir_status load_into(uir_call *call, uir_model *model, const uir_onnx_source *source,
                            const uir_model_options *options, uir_progress progress) {
    double read = options->interpret           ? 0.1
                  : wants_interpreter(options) ? 1
                  : options->wait              ? 0.03
                                               : 0.1; /* of the whole */
    UIR_TRY_ALLOCATE(model->origin, uir_allocate_zeroed(&model->allocator, sizeof(uir_model_source)));
    uir_model_source *from = uir_model_get_source(model);
    from->progress = options->progress;
    from->progress_user = options->progress_user;
    from->cancel = options->cancel;
    model->no_fallback = options->no_fallback;
    UIR_TRY(uir_progress_tell(progress, "reading", 0));
    UIR_TRY(check_device(call, options));
    UIR_TRY(begin_compile(call, model, source, options));
    if (wants_interpreter(options) && uir_model_wants_source(options))
        return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "leave out --dump-source and --source, or choose another device",
                              "no kernel sources: the interpreter runs without kernels");
    if (!wants_interpreter(options)) UIR_TRY(uir_model_code_create(call, model, options));
    if (source->path && !wants_interpreter(options)) {
        uir_status status = uir_model_open_cached(call, model, source->path, options);
        if (status == UIR_STATUS_OK && from->code->cached.sources.size)
            status = uir_model_code_resume(call, model, options, uir_progress_part(progress, read, 1));
        if (status != UIR_STATUS_NOT_FOUND) return status;
    }
    UIR_TRY(build(call, uir_progress_part(progress, 0, read), options->describe, model));
    if (model->is_description) return UIR_STATUS_OK;
    UIR_TRY(build_code(call, options, uir_progress_part(progress, read, 1), model));
    model->node_count = uir_model_get_source(model)->compile.primitives->nodes.count;
    return model->package ? UIR_STATUS_OK : uir_model_settle_nodes(model);
}

/* What lies in `out` points to `out_debug`: neither is NULL from here on. */
static uir_status take_options(uir_call *call, const uir_model_options *given, uir_model_options *out,
                               uir_debug_options *out_debug) {
    UIR_TRY(UIR_STRUCT_TAKE(&call->diagnostics, uir_model_options, given, out));
    UIR_TRY(UIR_STRUCT_TAKE(&call->diagnostics, uir_debug_options, out->debug, out_debug));
    out->debug = out_debug;
    return UIR_STATUS_OK;
}

static uir_status take_device(uir_call *call, uir_model *model, uir_model_options *options) {
    if (options->opened && options->interpret)
        return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "leave `opened` out, or `interpret`",
                              "an opened device runs no kernels of the kernels' interpreter");
    return uir_api_take_opened(model, &call->diagnostics, options->opened, &options->device);
}

/* Within its limits. */
static uir_status load_within(uir_call *call, uir_model *model, const uir_onnx_source *source,
                              const uir_model_options *options) {
    uir_budget *budget = &model->budget;
    uir_operation operation = {
        .tell = options->progress, .user = options->progress_user, .cancel = options->cancel, .budget = budget};
    uir_status status = uir_budget_begin(budget, "loading the model", options->cancel, NULL);
    if (status == UIR_STATUS_OK) status = load_into(call, model, source, options, uir_operation_whole(&operation));
    if (status == UIR_STATUS_OK) status = uir_api_judge_fallbacks(model, &call->diagnostics);
    if (status == UIR_STATUS_OK) status = uir_operation_finish(&operation);
    return uir_budget_end(budget, status, &call->diagnostics);
}

static uir_status load(uir_context *context, uir_onnx_source *source, const uir_model_options *options,
                       uir_model **out_model) {
    uir_call call;
    uir_model_options taken;
    uir_debug_options debug;
    uir_onnx_keep keep;
    uir_onnx_overrides overrides;
    *out_model = NULL;
    uir_call_begin(&call, context);
    uir_status status = take_options(&call, options, &taken, &debug);
    keep = (uir_onnx_keep){taken.keep_all, taken.keep, taken.keep_count};
    overrides = (uir_onnx_overrides){taken.overrides, taken.override_count};
    source->keep = &keep;
    source->overrides = &overrides;
    source->external_data = taken.external_data;
    source->no_map = taken.no_map;
    if (status == UIR_STATUS_OK) status = uir_model_create(&call, &compiled_model, taken.limits, out_model);
    if (status == UIR_STATUS_OK) status = take_device(&call, *out_model, &taken);
    if (status == UIR_STATUS_OK) status = load_within(&call, *out_model, source, &taken);
    if (status == UIR_STATUS_OK) status = uir_model_code_begin(*out_model);
    if (status != UIR_STATUS_OK) {
        uir_model_destroy(*out_model);
        *out_model = NULL;
    }
    return uir_call_end(&call, status, "loading a model");
}

uir_status uir_model_load_file(uir_context *context, const char *path, const uir_model_options *options,
                               uir_model **out_model) {
    uir_onnx_source source = {.path = path};
    return load(context, &source, options, out_model);
}

uir_status uir_model_load_memory(uir_context *context, const void *data, size_t size, const char *folder,
                                 const uir_model_options *options, uir_model **out_model) {
    uir_onnx_source source = {.data = data, .size = size, .folder = folder};
    return load(context, &source, options, out_model);
}

/* ---- ops ---- */

/* The ONNX op of that index; NONE past the end. */
static uir_op find_op(size_t index) {
    for (int op = 0; op < UIR_OP_COUNT; op++)
        if (uir_op_get_row((uir_op)op)->section == UIR_SECTION_ONNX && index-- == 0) return (uir_op)op;
    return UIR_OP_NONE;
}

uir_status uir_op_get_info(size_t index, uir_op_info *out_info) {
    uir_op op = find_op(index);
    const uir_op_row *row = uir_op_get_row(op);
    if (op == UIR_OP_NONE) return UIR_STATUS_NOT_FOUND;
    uir_op_info info = {.domain = row->domain,
                        .name = row->name,
                        .since_version = uir_op_since_version(op, INT_MAX),
                        .supported = uir_decompose_has_rule(op)};
    return UIR_STRUCT_GIVE(NULL, uir_op_info, &info, out_info);
}

static bool is_host(uir_op primitive) {
    return uir_plan_find_host_op(uir_op_name(primitive)) != UIR_PLAN_NONE;
}

const char *uir_op_get_engine(size_t index) {
    uir_op op = find_op(index), primitive = uir_decompose_host_primitive(op), other = uir_decompose_other_primitive(op);
    if (op == UIR_OP_NONE) return NULL;
    if (!uir_decompose_has_rule(op)) return "not supported";
    if (primitive != UIR_OP_NONE) return is_host(primitive) ? "host" : "interpreter";
    if (other == UIR_OP_NONE) return "kernels";
    return is_host(other) ? "kernels, else host" : "kernels, else interpreter";
}
