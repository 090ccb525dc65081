/* Writes ONNX files field by field, sound and unsound ones: what the tests of the frontend read.
 *
 * A blob is the contents of a message under construction. Field numbers are those of onnx.proto. */
#ifndef UIR_TESTS_FRONTEND_MAKE_H
#define UIR_TESTS_FRONTEND_MAKE_H

#include "frontend/frontend.h"
#include "frontend/wire.h"
#include "tests/base/support.h"

#include <string.h>

typedef uir_text blob;

static inline blob blob_new(void) {
    blob b;
    uir_allocator system = uir_allocator_system();
    uir_text_init(&b, &system);
    return b;
}
static inline void blob_free(blob *b) {
    uir_text_deinit(b);
}
static inline void put_int(blob *b, uint32_t field, int64_t value) {
    uir_wire_write_integer(b, field, value);
}
static inline void put_bytes(blob *b, uint32_t field, const void *data, size_t length) {
    uir_wire_write_bytes(b, field, data, length);
}
static inline void put_text(blob *b, uint32_t field, const char *text) {
    put_bytes(b, field, text, strlen(text));
}
/* Moves the child into a field of the parent. */
static inline void put_message(blob *b, uint32_t field, blob child) {
    put_bytes(b, field, child.data, child.length);
    blob_free(&child);
}

enum {
    MODEL_IR_VERSION = 1,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    MODEL_FUNCTION = 25,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE = 15,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_G = 6,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REF = 21,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_STRINGS = 6,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14,
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11,
    FUNCTION_OVERLOAD = 13,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    KIND_INT = 2,
    KIND_STRING = 3,
    KIND_TENSOR = 4,
    KIND_GRAPH = 5,
    KIND_INTS = 7
};

/* Puts each word of a comma separated list; "-" is the empty name. */
static inline void put_names(blob *b, uint32_t field, const char *list) {
    while (*list) {
        size_t length = strcspn(list, ",");
        bool empty = length == 1 && *list == '-';
        put_bytes(b, field, list, empty ? 0 : length);
        list += length + (list[length] == ',');
    }
}

/* Dims as text: "2,n,past+sequence"; numbers are fixed, "?" unknown; "" is a scalar, NULL declares no shape. */
static inline blob make_value(const char *name, int32_t dtype, const char *dims) {
    blob value = blob_new(), type = blob_new(), tensor = blob_new(), shape = blob_new();
    while (dims && *dims) {
        size_t length = strcspn(dims, ",");
        blob dim = blob_new();
        if (*dims >= '0' && *dims <= '9') {
            put_int(&dim, 1, atoi(dims));
        } else if (*dims != '?') {
            put_bytes(&dim, 2, dims, length);
        }
        put_message(&shape, 1, dim);
        dims += length + (dims[length] == ',');
    }
    put_int(&tensor, 1, dtype);
    if (dims)
        put_message(&tensor, 2, shape);
    else
        blob_free(&shape);
    put_message(&type, 1, tensor);
    put_text(&value, VALUE_NAME, name);
    put_message(&value, VALUE_TYPE, type);
    return value;
}

static inline blob make_node(const char *op, const char *name, const char *inputs, const char *outputs) {
    blob node = blob_new();
    put_names(&node, NODE_INPUT, inputs);
    put_names(&node, NODE_OUTPUT, outputs);
    put_text(&node, NODE_NAME, name);
    put_text(&node, NODE_OP, op);
    return node;
}

static inline blob make_attribute(const char *name, int kind) {
    blob attribute = blob_new();
    put_text(&attribute, ATTRIBUTE_NAME, name);
    put_int(&attribute, ATTRIBUTE_TYPE, kind);
    return attribute;
}
static inline blob make_int_attribute(const char *name, int64_t value) {
    blob attribute = make_attribute(name, KIND_INT);
    put_int(&attribute, ATTRIBUTE_I, value);
    return attribute;
}
static inline blob make_graph_attribute(const char *name, blob graph) {
    blob attribute = make_attribute(name, KIND_GRAPH);
    put_message(&attribute, ATTRIBUTE_G, graph);
    return attribute;
}
static inline blob make_reference(const char *name, int kind, const char *reference) {
    blob attribute = make_attribute(name, kind);
    put_text(&attribute, ATTRIBUTE_REF, reference);
    return attribute;
}

static inline blob make_tensor(const char *name, int32_t dtype, uint32_t rank, const int64_t *dims) {
    blob tensor = blob_new();
    for (uint32_t i = 0; i < rank; i++) put_int(&tensor, TENSOR_DIMS, dims[i]);
    put_int(&tensor, TENSOR_TYPE, dtype);
    put_text(&tensor, TENSOR_NAME, name);
    return tensor;
}

static inline blob make_opset(const char *domain, int64_t version) {
    blob opset = blob_new();
    put_text(&opset, OPSET_DOMAIN, domain);
    put_int(&opset, OPSET_VERSION, version);
    return opset;
}

static inline blob make_pair(const char *key, const char *value) {
    blob pair = blob_new();
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    return pair;
}

/* A model of IR version 10 and opset 20 around the graph. */
static inline blob make_model(blob graph) {
    blob model = blob_new();
    put_int(&model, MODEL_IR_VERSION, 10);
    put_message(&model, MODEL_OPSET, make_opset("", 20));
    put_message(&model, MODEL_GRAPH, graph);
    return model;
}

/* x -> one node of `op` -> y. */
static inline blob make_graph_of(blob node) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "2,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, node);
    return graph;
}

/* ---- loading what was made ---- */

typedef struct loaded {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *module;
    uir_status status;
} loaded;

/* In place: modules and tensors keep a pointer to the allocator. */
static inline void load_bytes(loaded *l, const void *data, size_t size, const char *folder) {
    *l = (loaded){.allocator = uir_allocator_system()};
    uir_diagnostics_init(&l->diagnostics, &l->allocator);
    uir_arena_init(&l->arena, &l->allocator);
    uir_onnx_source source = {.data = data, .size = size, .folder = folder};
    l->status = uir_onnx_load(&source, &l->allocator, &l->diagnostics, &l->arena, &l->info, &l->module);
}
/* Loads and frees the model's bytes: nothing may point into them. */
static inline void load_model(loaded *l, blob model, const char *folder) {
    load_bytes(l, model.data, model.length, folder);
    blob_free(&model);
}
static inline void unload(loaded *l) {
    uir_module_destroy(l->module);
    uir_arena_deinit(&l->arena);
    uir_diagnostics_deinit(&l->diagnostics);
}
static inline bool said(const loaded *l, const char *text) {
    for (const uir_diagnostic *d = l->diagnostics.first; d; d = d->next) {
        if (strstr(d->message, text)) return true;
    }
    return false;
}
/* Loads, expects this status and a message that contains the text, unloads. */
static inline void expect_failure(blob model, uir_status status, const char *text) {
    loaded l;
    load_model(&l, model, NULL);
    if (l.status != status || (text && !said(&l, text))) {
        for (const uir_diagnostic *d = l.diagnostics.first; d; d = d->next) print_message("  said: %s\n", d->message);
        fail_msg("status %s, expected %s with '%s'", uir_status_text(l.status), uir_status_text(status),
                 text ? text : "");
    }
    unload(&l);
}

/* ---- looking at modules ---- */

static inline const uir_graph_info *main_graph(const loaded *l) {
    return uir_graph_get(l->module, l->module->main);
}
static inline const uir_node_info *main_node(const loaded *l, uint32_t index) {
    return uir_node_get(l->module, main_graph(l)->nodes.data[index]);
}
static inline const char *value_name(const loaded *l, uir_value_id value) {
    return uir_string_text(&l->module->strings, uir_value_info_get(l->module, value)->name);
}

#endif
