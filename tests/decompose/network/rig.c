/* See rig.h. */
#include "rig.h"

#include <stdio.h>

void rig_init(rig *r, int opset) {
    memset(r, 0, sizeof *r);
    r->allocator = uir_allocator_system();
    uir_diagnostics_init(&r->diagnostics, &r->allocator);
    assert_int_equal(uir_module_create(&r->allocator, &r->diagnostics, &r->source), UIR_STATUS_OK);
    r->source->opset = opset;
    assert_int_equal(uir_module_add_graph(r->source, (uir_graph_id){0}, "main", &r->source->main), UIR_STATUS_OK);
    uir_builder_init(&r->maker, r->source, r->source->main);
}

static void drop(uir_datum **datums) {
    for (uint32_t i = 0; i < RIG_MAX_VALUES; i++) {
        uir_datum_release(datums[i]);
        datums[i] = NULL;
    }
}

void rig_deinit(rig *r) {
    drop(r->given);
    drop(r->results);
    if (r->module) uir_module_destroy(r->module);
    uir_module_destroy(r->source);
    uir_diagnostics_deinit(&r->diagnostics);
}

/* The dim of a symbol by name, made at its first mention. */
static uir_dim symbol_dim(rig *r, const char *name, size_t length) {
    uir_dims *dims = r->source->dims;
    for (uint32_t i = 0; i < uir_dims_symbol_count(dims); i++) {
        const char *have = uir_dims_symbol_name(dims, (uir_symbol){i});
        if (strlen(have) == length && memcmp(have, name, length) == 0) return uir_dim_symbol(dims, (uir_symbol){i});
    }
    uir_symbol symbol;
    assert_int_equal(uir_dims_add_symbol(dims, name, length, UIR_SYMBOL_FACTS_SIZE, &symbol), UIR_STATUS_OK);
    return uir_dim_symbol(dims, symbol);
}

void rig_input(rig *r, uir_dtype dtype, const char *dims) {
    uir_dim parsed[8];
    uint32_t rank = 0;
    while (*dims) {
        size_t length = strcspn(dims, ",");
        bool number = *dims >= '0' && *dims <= '9';
        parsed[rank++] = number ? uir_dim_const(r->source->dims, atoi(dims)) : symbol_dim(r, dims, length);
        dims += length;
        if (*dims == ',') dims++;
    }
    uir_type type = {UIR_VALUE_TENSOR, dtype, true, rank, parsed};
    char name[32];
    snprintf(name, sizeof name, "in%u", r->input_count);
    uir_value_id value;
    assert_int_equal(uir_module_add_value(r->source, name, type, &value), UIR_STATUS_OK);
    assert_int_equal(uir_graph_add_input(r->source, r->source->main, value), UIR_STATUS_OK);
    r->inputs[r->input_count++] = value;
}

static uir_tensor *make_tensor(rig *r, uir_dtype dtype, uint32_t rank, const int64_t *shape, const double *values) {
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(&r->allocator, dtype, rank, shape, &tensor), UIR_STATUS_OK);
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        if (uir_dtype_is_float(dtype))
            uir_dtype_store_double(dtype, tensor->data, i, values[i], UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_integer(dtype, tensor->data, i, (int64_t)values[i], false, UIR_ROUND_NEAREST_EVEN);
    }
    return tensor;
}

void rig_constant(rig *r, uir_dtype dtype, uint32_t rank, const int64_t *shape, const double *values) {
    uir_value_id value;
    char name[32];
    snprintf(name, sizeof name, "in%u", r->input_count);
    uir_tensor *tensor = make_tensor(r, dtype, rank, shape, values);
    assert_int_equal(uir_module_add_constant(r->source, name, tensor, &value), UIR_STATUS_OK);
    r->inputs[r->input_count++] = value;
}

void rig_absent(rig *r) {
    r->inputs[r->input_count++] = (uir_value_id){0};
}

void rig_int(rig *r, const char *name, int64_t value) {
    r->attributes[r->attribute_count++] = uir_attribute_int(&r->maker, name, value);
}
void rig_float(rig *r, const char *name, double value) {
    r->attributes[r->attribute_count++] = uir_attribute_float(&r->maker, name, value);
}
void rig_text(rig *r, const char *name, const char *value) {
    r->attributes[r->attribute_count++] = uir_attribute_string(&r->maker, name, value);
}
void rig_ints(rig *r, const char *name, uint32_t count, const int64_t *values) {
    const int64_t *copy = uir_arena_copy(&r->source->arena, values, count * sizeof *values);
    assert_non_null(copy);
    r->attributes[r->attribute_count++] = uir_attribute_ints(&r->maker, name, copy, count);
}
void rig_texts(rig *r, const char *name, uint32_t count, const char *const *values) {
    uir_string strings[8];
    uir_attribute attribute = uir_attribute_string(&r->maker, name, "");
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(uir_strings_intern(&r->source->strings, values[i], strlen(values[i]), &strings[i]),
                         UIR_STATUS_OK);
    attribute.kind = UIR_ATTRIBUTE_STRINGS;
    attribute.count = count;
    attribute.value.strings = uir_arena_copy(&r->source->arena, strings, count * sizeof *strings);
    assert_non_null(attribute.value.strings);
    r->attributes[r->attribute_count++] = attribute;
}

uir_status rig_try(rig *r, const char *domain, const char *op, uint32_t wanted) {
    uir_value_id outputs[RIG_MAX_VALUES];
    for (uint32_t i = 0; i < wanted; i++) {
        char name[32];
        snprintf(name, sizeof name, "out%u", i);
        uir_type unknown = {UIR_VALUE_TENSOR, UIR_DTYPE_NONE, false, 0, NULL};
        assert_int_equal(uir_module_add_value(r->source, name, unknown, &outputs[i]), UIR_STATUS_OK);
        assert_int_equal(uir_graph_add_output(r->source, r->source->main, outputs[i]), UIR_STATUS_OK);
    }
    uir_node_info node = {.inputs = r->inputs,
                          .input_count = r->input_count,
                          .outputs = outputs,
                          .output_count = wanted,
                          .attributes = r->attributes,
                          .attribute_count = r->attribute_count};
    node.op = uir_op_find_onnx(domain, op);
    assert_int_not_equal(node.op, UIR_OP_NONE);
    node.since_version = uir_op_since_version(node.op, r->source->opset);
    assert_int_equal(uir_strings_intern(&r->source->strings, "tested", 6, &node.name), UIR_STATUS_OK);
    assert_int_equal(r->maker.status, UIR_STATUS_OK);
    uir_node_id id;
    assert_int_equal(uir_graph_add_node(r->source, r->source->main, &node, &id), UIR_STATUS_OK);
    r->output_count = wanted;
    return uir_decompose(r->source, &r->allocator, &r->diagnostics, &r->module);
}

const char *rig_messages(rig *r) {
    static char text[4096];
    size_t used = 0;
    text[0] = 0;
    for (const uir_diagnostic *d = r->diagnostics.first; d && used < sizeof text; d = d->next)
        used += uir_diagnostic_format(d, text + used, sizeof text - used);
    return text;
}

static void expect_ok(rig *r, uir_status status) {
    if (status != UIR_STATUS_OK) fail_msg("%s: %s", uir_status_text(status), rig_messages(r));
}

void rig_decompose(rig *r, const char *domain, const char *op, uint32_t wanted) {
    expect_ok(r, rig_try(r, domain, op, wanted));
    expect_ok(r, uir_module_verify(r->module, &r->diagnostics));
    expect_ok(r, uir_passes_run(r->module, uir_cleanup_passes, uir_cleanup_pass_count, NULL));
}

uint32_t rig_count(const rig *r, uir_op op) {
    const uir_graph_info *graph = uir_graph_get(r->module, r->module->main);
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->nodes.count; i++) count += uir_node_get(r->module, graph->nodes.data[i])->op == op;
    return count;
}

void rig_give(rig *r, uint32_t index, uir_dtype dtype, uint32_t rank, const int64_t *shape, const double *values) {
    uir_datum_release(r->given[index]);
    r->given[index] = NULL;
    uir_tensor *tensor = make_tensor(r, dtype, rank, shape, values);
    assert_int_equal(uir_datum_create_tensor(&r->allocator, tensor, &r->given[index]), UIR_STATUS_OK);
}

void rig_run(rig *r) {
    drop(r->results);
    uint32_t count = uir_graph_get(r->module, r->module->main)->inputs.count;
    uir_interpreter_options options = {.threads = 1};
    uint64_t peak;
    expect_ok(r, uir_module_interpret(r->module, &r->allocator, &r->diagnostics, &options, r->given, count, r->results,
                                      r->output_count, &peak));
}

double rig_get(const rig *r, uint32_t output, uint64_t index) {
    const uir_tensor *tensor = r->results[output]->tensor;
    assert_true(index < tensor->element_count);
    if (uir_dtype_is_float(tensor->dtype)) return uir_dtype_load_double(tensor->dtype, tensor->data, index);
    if (tensor->dtype == UIR_DTYPE_BOOL) return ((const uint8_t *)tensor->data)[index];
    return (double)uir_dtype_load_integer(tensor->dtype, tensor->data, index);
}

void rig_expect_shape(const rig *r, uint32_t output, uint32_t rank, const int64_t *shape) {
    const uir_tensor *tensor = r->results[output]->tensor;
    assert_int_equal(tensor->rank, rank);
    for (uint32_t i = 0; i < rank; i++) assert_int_equal(tensor->shape[i], shape[i]);
}

void rig_expect(const rig *r, uint32_t output, const double *values, uint64_t count, double tolerance) {
    assert_int_equal(r->results[output]->tensor->element_count, count);
    for (uint64_t i = 0; i < count; i++) {
        double got = rig_get(r, output, i), wanted = values[i];
        if (isnan(got) && isnan(wanted)) continue;
        if (!(fabs(got - wanted) <= tolerance * (1 + fabs(wanted))))
            fail_msg("output %u, element %llu: %.9g instead of %.9g", output, (unsigned long long)i, got, wanted);
    }
}

double rig_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 33) / 1073741824.0 - 1.0;
}

void rig_fill(uint64_t *state, double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) values[i] = (float)rig_random(state);
}
