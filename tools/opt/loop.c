/* Runs a loop function by itself: its inputs by number from a folder, by name from files, else random. */
#include "base/dims/demand.h"
#include "opt.h"
#include "tools/run/printable.h"
#include "tools/run/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct function_run {
    const opt_options *options;
    const uir_loop_function *function;
    uir_context *context;
    uir_diagnostics *diagnostics;
    int64_t *sizes, *values; /* in the order of declaration; by symbol */
    bool *known;
    uir_value **inputs;     /* by tensor; NULL: none is given */
    uir_tensor **arguments; /* by tensor; NULL: a TEMP */
} function_run;

static bool is_argument(const uir_loop_tensor *t) {
    return t->role != UIR_LOOP_ROLE_TEMP;
}

static uir_status take_dims(function_run *r) {
    const uir_loop_function *f = r->function;
    for (size_t i = 0; i < r->options->dims.count; i++) {
        const char *text = r->options->dims.items[i];
        opt_size size;
        bool found = false;
        if (!opt_read_size(text, &size)) return opt_usage("--dim: write NAME=NUMBER, not", text);
        for (uint32_t s = 0; s < f->sizes.count; s++) {
            if (!opt_size_is_of(&size, f->sizes.data[s].name)) continue;
            r->sizes[s] = size.value;
            found = true;
        }
        if (found) continue;
        print_safely(stderr, "uir-opt: error: --dim %s: unknown size; those of @%s are:", text, f->name);
        for (uint32_t s = 0; s < f->sizes.count; s++) print_safely(stderr, " %s", f->sizes.data[s].name);
        fputc('\n', stderr);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    return UIR_STATUS_OK;
}

static uir_status settle_sizes(function_run *r) {
    const uir_loop_function *f = r->function;
    for (uint32_t s = 0; s < f->sizes.count; s++) {
        uir_symbol_facts facts = uir_dims_symbol_facts(f->dims, f->sizes.data[s].symbol);
        if (r->sizes[s] < 0) r->sizes[s] = opt_free_size(f->dims, f->sizes.data[s].symbol);
        if (!uir_facts_hold(facts, r->sizes[s])) {
            complain(NULL, "@%s cannot run with %s=%lld", f->name, f->sizes.data[s].name, (long long)r->sizes[s]);
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        r->values[f->sizes.data[s].symbol.id] = r->sizes[s];
        r->known[f->sizes.data[s].symbol.id] = true;
    }
    return UIR_STATUS_OK;
}

static uir_status check_names(const function_run *r) {
    for (size_t i = 0; i < r->options->inputs.count; i++) {
        const char *text = r->options->inputs.items[i], *equals = strchr(text, '=');
        bool found = false;
        if (!equals) return opt_usage("--input: write NAME=FILE.npy, not", text);
        for (uint32_t t = 0; t < r->function->tensors.count; t++) {
            const uir_loop_tensor *tensor = &r->function->tensors.data[t];
            found = found || (tensor->role == UIR_LOOP_ROLE_IN && strlen(tensor->name) == (size_t)(equals - text) &&
                              !memcmp(tensor->name, text, (size_t)(equals - text)));
        }
        if (!found) return opt_usage("--input: the function has no input of the name in", text);
    }
    return UIR_STATUS_OK;
}

static uir_status misfit(const uir_loop_tensor *t, const int64_t *shape, const uir_value *value) {
    print_safely(stderr, "uir-opt: error: the file of %s has %s[", t->name, uir_dtype_name(uir_value_get_dtype(value)));
    for (uint32_t d = 0; d < uir_value_get_rank(value); d++)
        print_safely(stderr, "%s%lld", d ? "," : "", (long long)uir_value_get_shape(value)[d]);
    print_safely(stderr, "], not %s[", uir_dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++) print_safely(stderr, "%s%lld", d ? "," : "", (long long)shape[d]);
    fputs("]\n", stderr);
    return UIR_STATUS_BAD_DATA;
}

/* The file of an input, and sizes that its shape tells. */
static uir_status load_input(function_run *r, uint32_t index) {
    const uir_loop_function *f = r->function;
    const uir_loop_tensor *t = &f->tensors.data[index];
    const char *file = opt_given_file(r->options, t->name);
    char path[4096];
    if (!file && r->options->data) {
        if (!opt_find_file(r->options->data, "input", t->index, path, sizeof path)) {
            complain(NULL, "--data: '%s' has no input_%u.pb or .npy, for %s", r->options->data, t->index, t->name);
            return UIR_STATUS_BAD_DATA;
        }
        file = path;
    }
    if (!file) return UIR_STATUS_OK;
    uir_value *value = NULL;
    uir_status status = uir_value_load_file(r->context, file, NULL, UIR_VALUE_TENSOR, &value);
    opt_report_context(r->context);
    if (status != UIR_STATUS_OK) return status;
    r->inputs[index] = value;
    for (uint32_t d = 0; d < t->rank && d < uir_value_get_rank(value); d++) {
        uir_symbol symbol;
        if (!uir_dim_is_symbol(f->dims, t->extents[d], &symbol)) continue;
        for (uint32_t s = 0; s < f->sizes.count; s++)
            if (f->sizes.data[s].symbol.id == symbol.id && r->sizes[s] < 0) r->sizes[s] = uir_value_get_shape(value)[d];
    }
    return UIR_STATUS_OK;
}

static uir_status make_argument(function_run *r, uint32_t index) {
    const uir_loop_function *f = r->function;
    const uir_loop_tensor *t = &f->tensors.data[index];
    int64_t shape[UIR_LOOP_MAX_RANK];
    bool real = uir_dtype_is_float(t->dtype);
    for (uint32_t d = 0; d < t->rank; d++)
        if (uir_dim_evaluate(f->dims, t->extents[d], r->values, r->known, uir_dims_symbol_count(f->dims), &shape[d]) !=
                UIR_DIM_EVALUATED ||
            shape[d] < 0)
            return opt_usage("cannot compute the extents of", t->name);
    UIR_TRY(uir_tensor_create(&f->allocator, t->dtype, t->rank, shape, &r->arguments[index]));
    if (t->role != UIR_LOOP_ROLE_IN) return UIR_STATUS_OK;
    uir_tensor *tensor = r->arguments[index];
    uir_value *value = r->inputs[index];
    if (!value) {
        UIR_TRY(uir_value_create_tensor(r->context, t->dtype, t->rank, shape, &value));
        r->inputs[index] = value;
        UIR_TRY(
            uir_value_fill_random(value, (uint64_t)r->options->random * 1000 + t->index, real ? -1 : 0, real ? 1 : 7));
    }
    if (uir_value_get_dtype(value) != t->dtype || uir_value_get_rank(value) != t->rank ||
        (t->rank && memcmp(uir_value_get_shape(value), shape, t->rank * sizeof *shape) != 0))
        return misfit(t, shape, value);
    if (tensor->byte_size) memcpy(tensor->data, uir_value_get_data(value), tensor->byte_size);
    return UIR_STATUS_OK;
}

static uir_status show_outputs(function_run *r) {
    const opt_results results = {r->options, r->context, ""};
    bool differs = false;
    if (r->options->save) UIR_TRY(opt_make_folder(r->options->save));
    for (uint32_t i = 0; i < r->function->tensors.count; i++) {
        const uir_loop_tensor *t = &r->function->tensors.data[i];
        if (t->role != UIR_LOOP_ROLE_OUT) continue;
        opt_show_tensor(t->name, r->arguments[i]);
        UIR_TRY(opt_take_result(&results, t->index, t->name, r->arguments[i], &differs));
    }
    return differs ? UIR_STATUS_DIFFERENT : UIR_STATUS_OK;
}

static uir_status run_in(function_run *r, void **data) {
    const uir_loop_function *f = r->function;
    uint32_t count = 0;
    for (uint32_t s = 0; s < f->sizes.count; s++) r->sizes[s] = -1;
    UIR_TRY(take_dims(r));
    UIR_TRY(check_names(r));
    for (uint32_t i = 0; i < f->tensors.count; i++)
        if (f->tensors.data[i].role == UIR_LOOP_ROLE_IN) UIR_TRY(load_input(r, i));
    UIR_TRY(settle_sizes(r));
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        if (!is_argument(&f->tensors.data[i])) continue;
        UIR_TRY(make_argument(r, i));
        data[count++] = r->arguments[i]->data;
    }
    opt_stop.polled = true;
    uir_status status = uir_loop_interpret(f, r->sizes, data, &opt_stop.cancel, r->diagnostics);
    opt_stop.polled = false;
    if (opt_stop.cancel) return UIR_STATUS_CANCELLED;
    UIR_TRY(status);
    print_safely(stdout, "@%s by the loop interpreter:", f->name);
    for (uint32_t s = 0; s < f->sizes.count; s++)
        print_safely(stdout, " %s=%lld", f->sizes.data[s].name, (long long)r->sizes[s]);
    putchar('\n');
    return show_outputs(r);
}

uir_status opt_run_function(const opt_options *options, const uir_loop_function *function,
                            uir_diagnostics *diagnostics) {
    function_run r = {.options = options, .function = function, .diagnostics = diagnostics};
    uint32_t symbols = uir_dims_symbol_count(function->dims);
    void **data = calloc((size_t)function->tensors.count + 1, sizeof *data);
    r.sizes = calloc((size_t)function->sizes.count + 1, sizeof *r.sizes);
    r.values = calloc((size_t)symbols + 1, sizeof *r.values);
    r.known = calloc((size_t)symbols + 1, sizeof *r.known);
    r.inputs = calloc((size_t)function->tensors.count + 1, sizeof *r.inputs);
    r.arguments = calloc((size_t)function->tensors.count + 1, sizeof *r.arguments);
    uir_status status = UIR_STATUS_OUT_OF_MEMORY;
    if (data && r.sizes && r.values && r.known && r.inputs && r.arguments)
        status = opt_create_context(options, &r.context);
    if (status == UIR_STATUS_OK) status = run_in(&r, data);
    for (uint32_t i = 0; r.arguments && i < function->tensors.count; i++) uir_tensor_release(r.arguments[i]);
    for (uint32_t i = 0; r.inputs && i < function->tensors.count; i++) uir_value_destroy(r.inputs[i]);
    free(data);
    free(r.sizes);
    free(r.values);
    free(r.known);
    free(r.inputs);
    free(r.arguments);
    uir_context_destroy(r.context);
    return status;
}
