/* What the tests of the graph IR share: a module with its diagnostics, tensors from lists, running and comparing. */
#ifndef UIR_TESTS_GRAPH_SUPPORT_H
#define UIR_TESTS_GRAPH_SUPPORT_H

#include "tests/base/support.h"

#include "ir/graph/build.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fixture {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_module *module;
    uir_graph_id graph;
    uir_builder builder;
} fixture;

static inline void fixture_open(fixture *f) {
    f->allocator = uir_allocator_system();
    uir_diagnostics_init(&f->diagnostics, &f->allocator);
    assert_int_equal(uir_module_create(&f->allocator, &f->diagnostics, &f->module), UIR_STATUS_OK);
    assert_int_equal(uir_module_add_graph(f->module, (uir_graph_id){0}, "main", &f->graph), UIR_STATUS_OK);
    f->module->main = f->graph;
    uir_builder_init(&f->builder, f->module, f->graph);
}

static inline void fixture_close(fixture *f) {
    uir_module_destroy(f->module);
    uir_diagnostics_deinit(&f->diagnostics);
}

/* The last message, or "". */
static inline const char *last_message(const fixture *f) {
    return f->diagnostics.last ? f->diagnostics.last->message : "";
}

static inline void print_messages(const uir_diagnostics *diagnostics) {
    for (const uir_diagnostic *d = diagnostics->first; d; d = d->next) {
        char text[1024];
        uir_diagnostic_format(d, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
}

static inline uir_dim make_size(fixture *f, const char *name) {
    uir_symbol symbol;
    assert_int_equal(uir_dims_add_symbol(f->module->dims, name, strlen(name), UIR_SYMBOL_FACTS_SIZE, &symbol),
                     UIR_STATUS_OK);
    return uir_dim_symbol(f->module->dims, symbol);
}

static inline uir_dim number(fixture *f, int64_t value) {
    return uir_dim_const(f->module->dims, value);
}

static inline uir_value_id add_input(fixture *f, const char *name, uir_dtype dtype, const uir_dim *dims,
                                     uint32_t rank) {
    uir_value_id value;
    uir_type type = {UIR_VALUE_TENSOR, dtype, true, rank, dims};
    assert_int_equal(uir_module_add_value(f->module, name, type, &value), UIR_STATUS_OK);
    assert_int_equal(uir_graph_add_input(f->module, f->graph, value), UIR_STATUS_OK);
    return value;
}

static inline void add_output(fixture *f, uir_value_id value) {
    if (f->builder.status != UIR_STATUS_OK) print_messages(&f->diagnostics);
    assert_int_equal(f->builder.status, UIR_STATUS_OK);
    assert_int_equal(uir_graph_add_output(f->module, f->graph, value), UIR_STATUS_OK);
}

/* A tensor of a shape given as dims ended by -1, its elements from doubles. */
static inline uir_tensor *make_tensor_of(const uir_allocator *allocator, uir_dtype dtype, const int64_t *shape,
                                         const double *values) {
    uint32_t rank = 0;
    while (shape[rank] >= 0) rank++;
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(allocator, dtype, rank, shape, &tensor), UIR_STATUS_OK);
    for (uint64_t i = 0; i < tensor->element_count; i++)
        uir_dtype_store_double(dtype, tensor->data, i, values[i], UIR_ROUND_NEAREST_EVEN);
    return tensor;
}
#define SHAPE(...)  ((const int64_t[]){__VA_ARGS__, -1})
#define SCALAR      ((const int64_t[]){-1})
#define VALUES(...) ((const double[]){__VA_ARGS__})

static inline uir_value_id add_constant(fixture *f, uir_dtype dtype, const int64_t *shape, const double *values) {
    return uir_build_constant(&f->builder, make_tensor_of(f->module->allocator, dtype, shape, values));
}

static inline uir_datum *make_datum(const uir_allocator *allocator, uir_tensor *tensor) {
    uir_datum *datum;
    assert_int_equal(uir_datum_create_tensor(allocator, tensor, &datum), UIR_STATUS_OK);
    return datum;
}

/* Runs the module on tensors (taken over); outputs as datums. */
static inline uir_status run_module(fixture *f, uir_tensor **inputs, uint32_t input_count, uir_datum **outputs,
                                    uint32_t output_count) {
    uir_datum *datums[16];
    for (uint32_t i = 0; i < input_count; i++) datums[i] = make_datum(&f->allocator, inputs[i]);
    uir_status status = uir_module_interpret(f->module, &f->allocator, &f->diagnostics, NULL, datums, input_count,
                                             outputs, output_count, NULL);
    for (uint32_t i = 0; i < input_count; i++) uir_datum_release(datums[i]);
    return status;
}

/* Verifies, runs and compares the only output with a shape and values (NaN equals NaN). */
static inline void expect_output(fixture *f, uir_tensor **inputs, uint32_t input_count, uir_dtype dtype,
                                 const int64_t *shape, const double *values) {
    uir_datum *output = NULL;
    uir_status status = uir_module_verify(f->module, &f->diagnostics);
    if (status == UIR_STATUS_OK) status = run_module(f, inputs, input_count, &output, 1);
    if (status != UIR_STATUS_OK) print_messages(&f->diagnostics);
    assert_int_equal(status, UIR_STATUS_OK);
    const uir_tensor *tensor = output->tensor;
    uint32_t rank = 0;
    while (shape[rank] >= 0) rank++;
    assert_int_equal(tensor->dtype, dtype);
    assert_int_equal(tensor->rank, rank);
    for (uint32_t d = 0; d < rank; d++) assert_int_equal(tensor->shape[d], shape[d]);
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        double actual = uir_dtype_load_double(dtype, tensor->data, i), expected = values[i];
        if (isnan(expected) ? isnan(actual) : actual == expected && signbit(actual) == signbit(expected)) continue;
        if (fabs(actual - expected) <= 1e-6 * fabs(expected)) continue;
        fail_msg("element %d is %.9g, not %.9g", (int)i, actual, expected);
    }
    uir_datum_release(output);
}

#endif
