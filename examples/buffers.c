/* Runs a model on memory of the caller's, without a copy: an application of the C API.
 *
 *   uir-buffers MODEL.onnx|PACKAGE.uir [RUNS]
 *
 * In: a model of tensors; free dims are 1, inputs zeros. Every input is read where the caller keeps it. The first run
 * says how large the outputs are; then each is given a buffer, and the runs after it write their results there. A
 * result may even go where an input lies, when it is of the same size: a cache of keys and values grows that way
 * without being moved. Out: where every tensor is, and the time of the runs. Exit codes are those of uir-run. */
#define _POSIX_C_SOURCE 200809L
#include <uir/uir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 64, MAX_RANK = 16 };

typedef struct tensors {
    uir_value *values[MOST]; /* of the inputs; they borrow */
    void *inputs[MOST], *outputs[MOST];
    size_t sizes[MOST];
} tensors;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* A package begins with its own magic. */
static uir_status open_model(uir_context *context, const char *path, uir_model **out_model) {
    char start[sizeof UIR_PACKAGE_MAGIC] = "";
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(start, 1, sizeof start - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    if (length == sizeof start - 1 && memcmp(start, UIR_PACKAGE_MAGIC, length) == 0) {
        return uir_model_open_package_file(context, path, NULL, out_model);
    }
    return uir_model_load_file(context, path, NULL, out_model);
}

/* Memory for input `index`, and a value that reads it there. A value of its own, made once, says how large it is. */
static uir_status bind_input(uir_context *context, uir_model *model, uir_session *session, size_t index, tensors *t) {
    uir_port port;
    int64_t shape[MAX_RANK];
    uir_value *sample = NULL;
    UIR_INIT(&port);
    uir_status status = uir_model_get_input(model, index, &port);
    if (status != UIR_STATUS_OK) {
        return status;
    }
    if (port.kind != UIR_VALUE_TENSOR || !port.rank_known || port.rank > MAX_RANK || port.dtype == UIR_DTYPE_STRING) {
        fprintf(stderr, "uir-buffers: input '%s' is no plain tensor of a known rank\n", port.name);
        return UIR_STATUS_UNSUPPORTED;
    }
    status = uir_model_get_input_shape(model, index, NULL, 0, shape);
    if (status == UIR_STATUS_OK) {
        status = uir_value_create_tensor(context, port.dtype, port.rank, shape, &sample);
    }
    if (status != UIR_STATUS_OK) {
        return status;
    }
    size_t size = uir_value_get_byte_size(sample);
    uir_value_destroy(sample);
    t->inputs[index] = calloc(size + 1, 1);
    if (t->inputs[index] == NULL) {
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    status = uir_value_create_tensor_borrowed(context, port.dtype, port.rank, shape, t->inputs[index], size,
                                              &t->values[index]);
    if (status == UIR_STATUS_OK) {
        status = uir_session_set_input(session, index, t->values[index]);
    }
    return status;
}

/* After a run: a buffer of the size of its result, in which all later results will lie. */
static uir_status bind_output(uir_session *session, size_t index, tensors *t) {
    uir_value *value = NULL;
    uir_status status = uir_session_get_output(session, index, &value);
    if (status != UIR_STATUS_OK) {
        return status;
    }
    t->sizes[index] = uir_value_get_byte_size(value);
    t->outputs[index] = malloc(t->sizes[index] + 1);
    if (t->outputs[index] == NULL) {
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    return uir_session_bind_output(session, index, t->outputs[index], t->sizes[index]);
}

static uir_status run(uir_context *context, uir_model *model, uir_session *session, int runs, tensors *t) {
    size_t inputs = uir_model_input_count(model), outputs = uir_model_output_count(model);
    uir_status status = inputs <= MOST && outputs <= MOST ? UIR_STATUS_OK : UIR_STATUS_UNSUPPORTED;
    for (size_t i = 0; i < inputs && status == UIR_STATUS_OK; i++) {
        status = bind_input(context, model, session, i, t);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_run(session);
    }
    for (size_t i = 0; i < outputs && status == UIR_STATUS_OK; i++) {
        status = bind_output(session, i, t);
    }
    double start = now_ms();
    for (int i = 0; i < runs && status == UIR_STATUS_OK; i++) {
        status = uir_session_run(session);
    }
    double each = (now_ms() - start) / runs;
    for (size_t i = 0; i < outputs && status == UIR_STATUS_OK; i++) {
        uir_value *value = NULL;
        status = uir_session_get_output(session, i, &value);
        if (status == UIR_STATUS_OK) {
            bool there = uir_value_get_data(value) == t->outputs[i];
            printf("output %s: %zu bytes, %s\n", uir_model_get_output_name(model, i), t->sizes[i],
                   there ? "where the caller wants them" : "ELSEWHERE");
            status = there ? UIR_STATUS_OK : UIR_STATUS_INTERNAL;
        }
    }
    if (status == UIR_STATUS_OK) {
        uir_run_statistics statistics;
        UIR_INIT(&statistics);
        status = uir_session_get_statistics(session, &statistics);
        printf("%d runs, %.3f ms each, by %s\n", runs, each, statistics.ran_on);
    }
    return status;
}

int main(int argc, char **argv) {
    static tensors t;
    int runs = argc == 3 ? atoi(argv[2]) : 10;
    if (argc < 2 || argc > 3 || runs < 1) {
        fprintf(stderr, "usage: uir-buffers MODEL.onnx|PACKAGE.uir [RUNS]\n");
        return uir_status_exit_code(UIR_STATUS_INVALID_ARGUMENT);
    }
    uir_context *context = NULL;
    uir_model *model = NULL;
    uir_session *session = NULL;
    uir_status status = uir_context_create(NULL, &context);
    if (status == UIR_STATUS_OK) {
        status = open_model(context, argv[1], &model);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_create(model, NULL, &session);
    }
    if (status == UIR_STATUS_OK) {
        status = run(context, model, session, runs, &t);
    }
    for (size_t i = 0; context != NULL && i < uir_context_message_count(context); i++) {
        fprintf(stderr, "uir-buffers: %s\n", uir_context_get_message_text(context, i));
    }
    uir_session_destroy(session);
    for (int i = 0; i < MOST; i++) {
        uir_value_destroy(t.values[i]);
        free(t.inputs[i]);
        free(t.outputs[i]);
    }
    uir_model_destroy(model);
    uir_context_destroy(context);
    return uir_status_exit_code(status);
}
