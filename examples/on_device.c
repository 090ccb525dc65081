/* Runs a model with its inputs and outputs in a device's memory: an application of the C API.
 *
 *   uir-on-device MODEL.onnx DEVICE [RUNS]
 *
 * In: a model whose inputs and outputs have fixed sizes, free dims being 1; a device with memory of its own, as "null".
 * Inputs are random numbers, copied to the device once. Each run is submitted, polled and waited for; what it reads and
 * writes stays on the device. Out: the bytes that crossed the bus in the last run, and the first element of each
 * output. Exit codes are those of uir-run. */
#include <uir/device.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PORTS = 64, MOST_RANK = 16 };

typedef struct application {
    uir_context *context;
    uir_device *device;
    uir_model *model;
    uir_session *session;
    uir_value *values[2 * MOST_PORTS]; /* on the device: inputs, then outputs */
    size_t count;
} application;

/* A value of random numbers on the device. */
static uir_status make_input(application *a, size_t index) {
    uir_value *host = NULL, **value = &a->values[a->count];
    int64_t shape[MOST_RANK];
    uir_port port;
    UIR_INIT(&port);
    uir_status status = uir_model_get_input(a->model, index, &port);
    if (status == UIR_STATUS_OK) {
        status = uir_model_get_input_shape(a->model, index, NULL, 0, shape);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_value_create_tensor(a->context, port.dtype, port.rank, shape, &host);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_value_fill_random(host, index, 0, 1);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_value_create_on_device(a->device, port.dtype, port.rank, shape, value);
    }
    if (status == UIR_STATUS_OK) {
        a->count++;
        status = uir_value_write(*value, 0, uir_value_get_data(host), uir_value_get_byte_size(host));
    }
    uir_value_destroy(host);
    return status == UIR_STATUS_OK ? uir_session_set_input(a->session, index, *value) : status;
}

/* Memory for an output, of the size that a first run found. */
static uir_status make_output(application *a, size_t index) {
    uir_value *result, **value = &a->values[a->count];
    uir_status status = uir_session_get_output(a->session, index, &result);
    if (status == UIR_STATUS_OK) {
        status = uir_value_create_on_device(a->device, uir_value_get_dtype(result), uir_value_get_rank(result),
                                            uir_value_get_shape(result), value);
    }
    if (status != UIR_STATUS_OK) {
        return status;
    }
    a->count++;
    return uir_session_bind_output_value(a->session, index, 0, NULL, *value);
}

static uir_status run(application *a) {
    uir_status status = uir_session_submit(a->session);
    if (status != UIR_STATUS_OK) {
        return status;
    }
    while (!uir_session_poll(a->session)) {
        /* The program does something else. */
    }
    return uir_session_wait(a->session);
}

static uir_status tell(application *a, size_t outputs) {
    uir_run_statistics statistics;
    UIR_INIT(&statistics);
    uir_status status = uir_session_get_statistics(a->session, &statistics);
    printf("%llu bytes over the bus, by %s\n",
           (unsigned long long)(statistics.bytes_to_device + statistics.bytes_from_device), statistics.ran_on);
    for (size_t k = 0; k < outputs && status == UIR_STATUS_OK; k++) {
        uir_value *output;
        float first = 0;
        status = uir_session_get_output(a->session, k, &output);
        if (status == UIR_STATUS_OK && uir_value_get_byte_size(output) >= sizeof first) {
            status = uir_value_read(output, 0, &first, sizeof first);
        }
        if (status == UIR_STATUS_OK && uir_value_get_dtype(output) == UIR_DTYPE_F32) {
            printf("%s: %g\n", uir_model_get_output_name(a->model, k), (double)first);
        }
    }
    return status;
}

static uir_status use(application *a, const char *path, const char *device, int runs) {
    uir_model_options options;
    UIR_INIT(&options);
    uir_status status = uir_device_open(a->context, device, NULL, &a->device);
    options.opened = a->device;
    if (status == UIR_STATUS_OK) {
        status = uir_model_load_file(a->context, path, &options, &a->model);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_create(a->model, NULL, &a->session);
    }
    if (status != UIR_STATUS_OK) {
        return status;
    }
    size_t inputs = uir_model_input_count(a->model), outputs = uir_model_output_count(a->model);
    if (inputs > MOST_PORTS || outputs > MOST_PORTS) {
        return UIR_STATUS_UNSUPPORTED;
    }
    for (size_t i = 0; i < inputs && status == UIR_STATUS_OK; i++) {
        status = make_input(a, i);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_run(a->session);
    }
    for (size_t k = 0; k < outputs && status == UIR_STATUS_OK; k++) {
        status = make_output(a, k);
    }
    for (int i = 0; i < runs && status == UIR_STATUS_OK; i++) {
        status = run(a);
    }
    return status == UIR_STATUS_OK ? tell(a, outputs) : status;
}

int main(int argc, char **argv) {
    static application a;
    if (argc < 3) {
        fprintf(stderr, "usage: uir-on-device MODEL.onnx DEVICE [RUNS]\n");
        return uir_status_exit_code(UIR_STATUS_INVALID_ARGUMENT);
    }
    uir_status status = uir_context_create(NULL, &a.context);
    if (status == UIR_STATUS_OK) {
        status = use(&a, argv[1], argv[2], argc > 3 ? atoi(argv[3]) : 1);
    }
    for (size_t i = 0; a.context != NULL && i < uir_context_message_count(a.context); i++) {
        fprintf(stderr, "uir-on-device: %s\n", uir_context_get_message_text(a.context, i));
    }
    uir_session_destroy(a.session);
    for (size_t i = 0; i < a.count; i++) {
        uir_value_destroy(a.values[i]);
    }
    uir_model_destroy(a.model);
    uir_device_close(a.device);
    uir_context_destroy(a.context);
    return uir_status_exit_code(status);
}
