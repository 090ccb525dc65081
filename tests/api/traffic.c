/* What the launches of one run moved, by kernel: slices against tensors.
 *
 *   uir-traffic MODEL DEVICE [DATA]
 *
 * In: a folder with input_N.pb, or inputs of seeded values. Out: a line a launch: calls, phases, bytes of the tensors
 * it reads and writes, bytes that its slices move, the kernel's name, the node's; then a line `arena BYTES`: what lies
 * between kernels and in work pointers, by the cost of dims that are all 1. */
#include "uir/uir.h"
#include "tools/run/query.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 128, RANK = 16 };

static void must(uir_context *context, uir_status status, const char *what) {
    if (status == UIR_STATUS_OK) return;
    fprintf(stderr, "%s: %s\n", what, uir_status_text(status));
    for (size_t i = 0; context && i < uir_context_message_count(context); i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(context, i));
    exit(1);
}

static uir_value *make_input(uir_context *context, const uir_model *model, size_t i, const char *folder) {
    uir_port port = query_input(model, i);
    uir_value *value = NULL;
    int64_t shape[RANK];
    char path[4096];
    if (folder) {
        snprintf(path, sizeof path, "%s/input_%zu.pb", folder, i);
        must(context, uir_value_load_file(context, path, NULL, port.kind, &value), path);
        return value;
    }
    must(context, uir_model_get_input_shape(model, i, NULL, 0, shape), port.name);
    must(context, uir_value_create_tensor(context, port.dtype, port.rank, shape, &value), port.name);
    must(context, uir_value_fill_random(value, i + 1, 0, 1), port.name);
    return value;
}

int main(int argc, char **argv) {
    uir_context *context = NULL;
    uir_model *model;
    uir_session *session;
    uir_value *values[MOST] = {NULL};
    uir_node_statistics node;
    uir_cost cost = {.struct_size = sizeof cost};
    if (argc < 3) return 2;
    uir_model_options options = {.struct_size = sizeof options, .device = argv[2], .wait = true};
    must(context, uir_context_create(NULL, &context), "a context");
    must(context, uir_model_load_file(context, argv[1], &options, &model), argv[1]);
    must(context, uir_session_create(model, NULL, &session), "a session");
    for (size_t i = 0; i < uir_model_input_count(model) && i < MOST; i++) {
        values[i] = make_input(context, model, i, argc > 3 ? argv[3] : NULL);
        must(context, uir_session_set_input(session, i, values[i]), "an input");
    }
    must(context, uir_session_run(session), "a run");
    must(context, uir_session_count_traffic(session), "counting");
    for (size_t i = 0; query_node(session, i, &node); i++)
        printf("%llu %llu %llu %llu %s %s\n", (unsigned long long)node.calls, (unsigned long long)node.phases,
               (unsigned long long)node.tensor_bytes, (unsigned long long)node.dram_bytes, node.kernel, node.name);
    must(context, uir_session_get_cost(session, NULL, 0, &cost), "the cost");
    printf("arena %llu\n", (unsigned long long)cost.tensor_bytes);
    uir_session_destroy(session);
    for (int i = 0; i < MOST; i++) uir_value_destroy(values[i]);
    uir_model_destroy(model);
    uir_context_destroy(context);
    return 0;
}
