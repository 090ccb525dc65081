/* What the tests of models share: small models made by hand, messages, memory that is counted. */
#ifndef UIR_TESTS_API_SMALL_H
#define UIR_TESTS_API_SMALL_H

#include "tests/frontend/make.h"
#include "uir/uir.h"

#include <stdatomic.h>
#include <stdio.h>

/* y = Relu(x + w), x f32[batch, 3], w = [-1, 0, 1]; z = Neg(x). */
static inline blob small_model(void) {
    static const float weights[] = {-1, 0, 1};
    static const int64_t dims[] = {3};
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, dims);
    put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    put_text(&graph, GRAPH_NAME, "small");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_INPUT, make_value("w", UIR_DTYPE_F32, "3")); /* which has a default */
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_OUTPUT, make_value("z", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("Add", "the addition", "x,w", "s"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "the end", "s", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "the other", "x", "z"));
    blob model = make_model(graph);
    put_message(&model, MODEL_METADATA, make_pair("author", "nobody"));
    return model;
}

enum { CACHE_HEADS = 2, CACHE_CHANNELS = 4 };

static inline blob make_append(const char *name, const char *inputs, const char *output) {
    blob concat = make_node("Concat", name, inputs, output);
    put_message(&concat, NODE_ATTRIBUTE, make_int_attribute("axis", 1));
    return concat;
}

/* Of f32[2, rows, 4]: present = past, then new, along the rows; total = the sum of present over the rows. */
static inline blob cache_model(void) {
    blob graph = blob_new(), axes = make_tensor("axes", UIR_DTYPE_I64, 1, (int64_t[]){1});
    int64_t axis = 1;
    put_bytes(&axes, TENSOR_RAW, &axis, sizeof axis);
    put_text(&graph, GRAPH_NAME, "cache");
    put_message(&graph, GRAPH_INPUT, make_value("past", UIR_DTYPE_F32, "2,p,4"));
    put_message(&graph, GRAPH_INPUT, make_value("new", UIR_DTYPE_F32, "2,n,4"));
    put_message(&graph, GRAPH_OUTPUT, make_value("present", UIR_DTYPE_F32, "2,t,4"));
    put_message(&graph, GRAPH_OUTPUT, make_value("total", UIR_DTYPE_F32, "2,1,4"));
    put_message(&graph, GRAPH_INITIALIZER, axes);
    put_message(&graph, GRAPH_NODE, make_append("append", "past,new", "present"));
    put_message(&graph, GRAPH_NODE, make_node("ReduceSum", "sum", "present,axes", "total"));
    return make_model(graph);
}

/* y = x, of these dims, doubled by a Loop: so many times, or, where NULL, for ever, as its condition stays true. */
static inline blob loop_model(const char *dims, const int64_t *trips) {
    static const bool always = true;
    blob body = blob_new(), graph = blob_new();
    blob node = make_node("Loop", "the loop", trips ? "trips,,x" : ",always,x", "y");
    blob tensor = trips ? make_tensor("trips", UIR_DTYPE_I64, 0, NULL) : make_tensor("always", UIR_DTYPE_BOOL, 0, NULL);
    if (trips)
        put_bytes(&tensor, TENSOR_RAW, trips, sizeof *trips);
    else
        put_bytes(&tensor, TENSOR_RAW, &always, sizeof always);
    put_text(&body, GRAPH_NAME, "body");
    put_message(&body, GRAPH_INPUT, make_value("i", UIR_DTYPE_I64, ""));
    put_message(&body, GRAPH_INPUT, make_value("go", UIR_DTYPE_BOOL, ""));
    put_message(&body, GRAPH_INPUT, make_value("v", UIR_DTYPE_F32, dims));
    put_message(&body, GRAPH_OUTPUT, make_value("go_on", UIR_DTYPE_BOOL, NULL));
    put_message(&body, GRAPH_OUTPUT, make_value("twice", UIR_DTYPE_F32, NULL));
    put_message(&body, GRAPH_NODE, make_node("Identity", "keep going", "go", "go_on"));
    put_message(&body, GRAPH_NODE, make_node("Add", "double", "v,v", "twice"));
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("body", body));
    put_text(&graph, GRAPH_NAME, "loop");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, dims));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, node);
    return make_model(graph);
}

/* The file is `bytes`, which are freed. */
static inline void write_bytes(const char *path, blob bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.length, file), bytes.length);
    fclose(file);
    blob_free(&bytes);
}

static inline bool has_message(uir_context *context, const char *text) {
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        if (strstr(uir_context_get_message_text(context, i), text)) return true;
    }
    return false;
}

static inline void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    _Atomic size_t *alive = user;
    uir_allocator system = uir_allocator_system();
    void *block = system.resize(system.user, pointer, old_size, new_size);
    if (block || !new_size) atomic_fetch_add(alive, new_size - old_size);
    return block;
}

/* Keeps in *alive how many bytes are not given back, whichever thread takes them. */
static inline uir_allocator counting_allocator(_Atomic size_t *alive) {
    return (uir_allocator){count_resize, alive};
}

#endif
