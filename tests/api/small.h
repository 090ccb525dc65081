/* What the tests of models share: a small model made by hand, and messages. */
#ifndef UIR_TESTS_API_SMALL_H
#define UIR_TESTS_API_SMALL_H

#include "tests/frontend/make.h"
#include "uir/uir.h"

#include <stdio.h>

/* y = Relu(x + w), x f32[batch, 3], w = [-1, 0, 1]; z = Neg(x). */
static inline blob small_model(void) {
    static const float weights[] = {-1, 0, 1};
    static const int64_t dims[] = {3};
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, dims);
    put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    put_text(&graph, GRAPH_NAME, "small");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, ""));
    put_message(&graph, GRAPH_OUTPUT, make_value("z", UIR_DTYPE_F32, ""));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("Add", "the addition", "x,w", "s"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "the end", "s", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "the other", "x", "z"));
    blob model = make_model(graph);
    put_message(&model, MODEL_METADATA, make_pair("author", "nobody"));
    return model;
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

#endif
