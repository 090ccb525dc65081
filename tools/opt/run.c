/* Runs a model of primitives, its groups by what a stage made of them, on data from files or a seed; compares. */
#define _POSIX_C_SOURCE 200809L
#include "opt.h"
#include "tools/run/printable.h"
#include "compile/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct value_run {
    const opt_options *options;
    const opt_program *program;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    uir_context *context;
    uir_launcher *launcher;
    const char *runner; /* NULL: none, see opt_program */
    uint32_t input_count, output_count;
    uir_datum **inputs, **outputs;
    int64_t *sizes; /* by symbol, of --dim and of what is made up */
    bool *known;
} value_run;

static const char *value_name(const value_run *r, uir_value_id value) {
    return uir_string_text(&r->program->module->strings, uir_value_info_get(r->program->module, value)->name);
}

static const uir_graph_info *main_graph(const value_run *r) {
    return uir_graph_get(r->program->module, r->program->module->main);
}

/* ---- public values and the IR's ---- */
static uir_status to_datum(value_run *r, uir_value *value, uir_datum **out_datum) {
    uir_tensor *tensor;
    if (uir_value_get_kind(value) != UIR_VALUE_TENSOR) {
        UIR_TRY(uir_datum_create_list(r->allocator, uir_value_get_kind(value), uir_value_get_dtype(value), out_datum));
        for (size_t i = 0; i < uir_value_get_count(value); i++) {
            uir_datum *element = NULL;
            uir_status status = to_datum(r, uir_value_get_element(value, i), &element);
            if (status == UIR_STATUS_OK) status = uir_datum_append(*out_datum, element);
            if (status == UIR_STATUS_OK) continue;
            uir_datum_release(element);
            uir_datum_release(*out_datum);
            *out_datum = NULL;
            return status;
        }
        return UIR_STATUS_OK;
    }
    UIR_TRY(uir_tensor_create(r->allocator, uir_value_get_dtype(value), uir_value_get_rank(value),
                              uir_value_get_shape(value), &tensor));
    const uir_string_view *views = uir_value_get_data(value);
    uir_status status = UIR_STATUS_OK;
    if (tensor->dtype != UIR_DTYPE_STRING && tensor->byte_size)
        memcpy(tensor->data, uir_value_get_data(value), tensor->byte_size);
    for (uint64_t i = 0; tensor->dtype == UIR_DTYPE_STRING && i < tensor->element_count && status == UIR_STATUS_OK; i++)
        status = uir_tensor_set_string(tensor, i, views[i].text, views[i].length);
    if (status == UIR_STATUS_OK) status = uir_datum_create_tensor(r->allocator, tensor, out_datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

/* ---- inputs ---- */
static uir_status load(value_run *r, const char *path, uir_value_kind kind, uir_datum **out_datum) {
    uir_value *value = NULL;
    uir_status status = uir_value_load_file(r->context, path, NULL, kind, &value);
    if (status == UIR_STATUS_OK) status = to_datum(r, value, out_datum);
    opt_report_context(r->context);
    uir_value_destroy(value);
    return status;
}

static uir_status check_names(value_run *r) {
    const uir_graph_info *graph = main_graph(r);
    for (size_t i = 0; i < r->options->inputs.count; i++) {
        const char *text = r->options->inputs.items[i];
        bool found = false;
        for (uint32_t k = 0; k < r->input_count && !found; k++) {
            const char *name = value_name(r, graph->inputs.data[k]);
            found = !strncmp(text, name, strlen(name)) && text[strlen(name)] == '=';
        }
        if (found) continue;
        print_safely(stderr, "uir-opt: error: --input %s: %s; the inputs are:", text,
                     strchr(text, '=') ? "unknown input" : "write NAME=FILE.npy");
        for (uint32_t k = 0; k < r->input_count; k++) print_safely(stderr, " %s", value_name(r, graph->inputs.data[k]));
        fputc('\n', stderr);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    return UIR_STATUS_OK;
}

/* Which sizes the inputs' extents name; others follow from data. */
static bool is_input_size(const value_run *r, uint32_t symbol) {
    const uir_graph_info *graph = main_graph(r);
    for (uint32_t k = 0; k < r->input_count; k++) {
        const uir_type *type = uir_value_type(r->program->module, graph->inputs.data[k]);
        for (uint32_t d = 0; type->rank_known && d < type->rank; d++) {
            uir_symbol used;
            if (uir_dim_is_symbol(r->program->module->dims, type->dims[d], &used) && used.id == symbol) return true;
        }
    }
    return false;
}

static uir_status take_dims(value_run *r) {
    const uir_dims *dims = r->program->module->dims;
    uint32_t count = uir_dims_symbol_count(dims);
    for (size_t i = 0; i < r->options->dims.count; i++) {
        const char *text = r->options->dims.items[i];
        opt_size size;
        bool found = false;
        if (!opt_read_size(text, &size)) return opt_usage("--dim: write NAME=NUMBER, not", text);
        for (uint32_t s = 0; s < count; s++) {
            const char *name = uir_dims_symbol_name(dims, (uir_symbol){s});
            if (!is_input_size(r, s) || !opt_size_is_of(&size, name)) continue;
            r->sizes[s] = size.value;
            r->known[s] = found = true;
        }
        if (found) continue;
        print_safely(stderr, "uir-opt: error: --dim %s: unknown dim; those of the inputs are:", text);
        for (uint32_t s = 0; s < count; s++)
            if (is_input_size(r, s)) print_safely(stderr, " %s", uir_dims_symbol_name(dims, (uir_symbol){s}));
        fputc('\n', stderr);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    return UIR_STATUS_OK;
}

static void bind_free(void *user, uir_symbol symbol) {
    value_run *r = user;
    if (r->known[symbol.id]) return;
    r->sizes[symbol.id] = opt_free_size(r->program->module->dims, symbol);
    r->known[symbol.id] = true;
}

static uir_status make_up(value_run *r, uint32_t index, uir_datum **out_datum) {
    uir_value_id id = main_graph(r)->inputs.data[index];
    const uir_module *module = r->program->module;
    const uir_type *type = uir_value_type(module, id);
    int64_t shape[UIR_MAX_RANK];
    uir_value *value = NULL;
    bool known = type->kind == UIR_VALUE_TENSOR && type->rank_known && type->dtype && type->dtype != UIR_DTYPE_STRING;
    for (uint32_t d = 0; known && d < type->rank; d++) {
        uir_dim_visit_symbols(module->dims, type->dims[d], bind_free, r);
        known = uir_dim_evaluate(module->dims, type->dims[d], r->sizes, r->known, uir_dims_symbol_count(module->dims),
                                 &shape[d]) == UIR_DIM_EVALUATED &&
                shape[d] >= 0;
    }
    if (!known) {
        complain("give its data by --data or --input", "input '%s' cannot be filled with random values",
                 value_name(r, id));
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    bool real = uir_dtype_is_float(type->dtype);
    uir_status status = uir_value_create_tensor(r->context, type->dtype, type->rank, shape, &value);
    if (status == UIR_STATUS_OK)
        status = uir_value_fill_random(value, (uint64_t)r->options->random * 1000 + index, real ? -1 : 0, real ? 1 : 7);
    if (status == UIR_STATUS_OK) status = to_datum(r, value, out_datum);
    opt_report_context(r->context);
    uir_value_destroy(value);
    return status;
}

static uir_status make_inputs(value_run *r) {
    const uir_graph_info *graph = main_graph(r);
    for (uint32_t i = 0; i < r->input_count; i++) {
        const char *name = value_name(r, graph->inputs.data[i]), *file = opt_given_file(r->options, name);
        uir_value_kind kind = uir_value_type(r->program->module, graph->inputs.data[i])->kind;
        char path[4096];
        if (!file && r->options->data) {
            if (!opt_find_file(r->options->data, "input", i, path, sizeof path)) {
                complain(NULL, "--data: '%s' has no input_%u.pb or .npy, for input '%s'", r->options->data, i, name);
                return UIR_STATUS_BAD_DATA;
            }
            file = path;
        }
        UIR_TRY(file ? load(r, file, kind, &r->inputs[i]) : make_up(r, i, &r->inputs[i]));
    }
    return UIR_STATUS_OK;
}

/* ---- running ---- */
/* Iteration by iteration up to the schedule, by the runner from then on. */
static uir_status launch(value_run *r, const uir_launch *l, void *const *outputs) {
    uir_stage stage = r->program->stage;
    if (stage <= UIR_STAGE_SCHEDULE) return uir_stage_get(stage)->launch(l, outputs, r->diagnostics);
    return uir_launch_igraph(l, r->runner, outputs, r->diagnostics);
}

static uir_status run_group(void *user, const uir_node_values *values, bool *out_ran) {
    value_run *r = user;
    uir_launch l;
    *out_ran = r->program->stage > UIR_STAGE_FUSION && uir_launch_find(r->launcher, values, &l);
    if (!*out_ran) return UIR_STATUS_OK;
    void **outputs;
    size_t size = ((size_t)l.node->output_count + 1) * sizeof *outputs;
    UIR_TRY_ALLOCATE(outputs, uir_allocate_zeroed(r->allocator, size));
    for (uint32_t i = 0; i < l.node->output_count; i++) outputs[i] = values->outputs[i]->tensor->data;
    uir_status status = launch(r, &l, outputs);
    uir_release(r->allocator, outputs, size);
    return status;
}

static uir_status interpret(value_run *r, const char *runner, uir_datum **outputs) {
    uir_interpreter_options options = {.cancel = &opt_stop.cancel, .user = r, .threads = (uint32_t)r->options->threads};
    r->runner = runner;
    if (r->program->stage >= UIR_STAGE_FUSION) options.run_group = run_group;
    opt_stop.polled = true;
    uir_status status = uir_module_interpret(r->program->module, r->allocator, r->diagnostics, &options, r->inputs,
                                             r->input_count, outputs, r->output_count, NULL);
    opt_stop.polled = false;
    return opt_stop.cancel ? UIR_STATUS_CANCELLED : status;
}

/* ---- outputs ---- */
/* Every bit; any NaN equals any NaN. */
static bool same(const uir_tensor *a, const uir_tensor *b) {
    if (a->byte_size != b->byte_size || a->dtype != b->dtype) return false;
    if (!a->byte_size || !memcmp(a->data, b->data, a->byte_size)) return true;
    if (!uir_dtype_is_float(a->dtype)) return false;
    for (uint64_t i = 0; i < a->element_count; i++) {
        double x = uir_dtype_load_double(a->dtype, a->data, i), y = uir_dtype_load_double(b->dtype, b->data, i);
        if (!(x != x && y != y) && !(x == y && !signbit(x) == !signbit(y))) return false;
    }
    return true;
}

static void release_all(uir_datum **datums, uint32_t count) {
    for (uint32_t i = 0; datums && i < count; i++) uir_datum_release(datums[i]);
}

static uir_status check(value_run *r) {
    uir_datum **wanted = calloc((size_t)r->output_count + 1, sizeof *wanted);
    if (!wanted) return UIR_STATUS_OUT_OF_MEMORY;
    uir_status status = interpret(r, "interpreter", wanted);
    bool differs = false;
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < r->output_count; i++) {
        const uir_datum *a = r->outputs[i], *b = wanted[i];
        if (a->kind != UIR_VALUE_TENSOR || a->tensor->dtype == UIR_DTYPE_STRING || same(a->tensor, b->tensor)) continue;
        complain(NULL, "output '%s' differs from the kernels' interpreter",
                 value_name(r, main_graph(r)->outputs.data[i]));
        differs = true;
    }
    if (status == UIR_STATUS_OK && !differs) puts("  agrees with the interpreter in every bit");
    release_all(wanted, r->output_count);
    free(wanted);
    return status == UIR_STATUS_OK && differs ? UIR_STATUS_DIFFERENT : status;
}

static uir_status show_outputs(value_run *r) {
    bool differs = false;
    const opt_results results = {r->options, r->context, r->program->home};
    if (r->options->save) UIR_TRY(opt_make_folder(r->options->save));
    for (uint32_t i = 0; i < r->output_count; i++) {
        const char *name = value_name(r, main_graph(r)->outputs.data[i]);
        if (r->outputs[i]->kind == UIR_VALUE_TENSOR) {
            opt_show_tensor(name, r->outputs[i]->tensor);
            UIR_TRY(opt_take_result(&results, i, name, r->outputs[i]->tensor, &differs));
        } else {
            print_safely(stdout, "  %s: %u values\n", name, r->outputs[i]->count);
            if (opt_has_expected(&results, i)) puts("    not compared: it is not a tensor");
        }
    }
    return differs ? UIR_STATUS_DIFFERENT : UIR_STATUS_OK;
}

static const char *describe(const opt_program *program) {
    return uir_stage_get(program->stage < UIR_STAGE_FUSION ? UIR_STAGE_PRIMITIVES : program->stage)->name;
}

static uir_status run_in(value_run *r) {
    const char *runner = r->program->runner;
    uint32_t symbols = uir_dims_symbol_count(r->program->module->dims);
    r->input_count = main_graph(r)->inputs.count;
    r->output_count = main_graph(r)->outputs.count;
    r->inputs = calloc((size_t)r->input_count + 1, sizeof *r->inputs);
    r->outputs = calloc((size_t)r->output_count + 1, sizeof *r->outputs);
    r->sizes = calloc((size_t)symbols + 1, sizeof *r->sizes);
    r->known = calloc((size_t)symbols + 1, sizeof *r->known);
    if (!r->inputs || !r->outputs || !r->sizes || !r->known) return UIR_STATUS_OUT_OF_MEMORY;
    if (r->options->check && !runner)
        return opt_usage("--check compares kernels: give --device vm or cpu, or --after igraph or a later stage", NULL);
    UIR_TRY(check_names(r));
    UIR_TRY(take_dims(r));
    UIR_TRY(make_inputs(r));
    if (r->program->stage >= UIR_STAGE_FUSION)
        UIR_TRY(uir_launcher_create(r->program->lowering, &opt_stop.cancel, (uint32_t)r->options->threads, r->allocator,
                                    &r->launcher));
    UIR_TRY(interpret(r, runner, r->outputs));
    print_safely(stdout, "%s by %s:\n", describe(r->program), runner ? runner : "the interpreter");
    uir_status status = show_outputs(r);
    if (r->options->check && (status == UIR_STATUS_OK || status == UIR_STATUS_DIFFERENT)) {
        uir_status checked = check(r);
        if (checked != UIR_STATUS_OK) status = checked;
    }
    return status;
}

uir_status opt_run_values(const opt_options *options, const opt_program *program, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics) {
    value_run r = {.options = options, .program = program, .allocator = allocator, .diagnostics = diagnostics};
    uir_status status = opt_create_context(options, &r.context);
    if (status == UIR_STATUS_OK) status = run_in(&r);
    uir_launcher_destroy(r.launcher);
    release_all(r.inputs, r.input_count);
    release_all(r.outputs, r.output_count);
    free(r.inputs);
    free(r.outputs);
    free(r.sizes);
    free(r.known);
    uir_context_destroy(r.context);
    return status;
}
