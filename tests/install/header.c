/* What C11 and C++17 make of the public headers: every function is there to link, every structure that grows begins by
 * its size, and a model runs. `functions.inc` and `structures.inc` hold a row for each; whoever builds this makes them
 * from the headers. In: an ONNX model of one input, or a package. */
#include <uir/device.h>
#include <uir/tools.h>
#include <uir/uir.h>

#include <stdio.h>

typedef void (*function)(void);
#define FUNCTION(name) (function) name,
static const function functions[] = {
#include <functions.inc>
};

#define STRUCTURE(type)                                                                                                \
    do {                                                                                                               \
        type structure;                                                                                                \
        UIR_INIT(&structure);                                                                                          \
        good &= structure.struct_size == sizeof structure;                                                             \
        count++;                                                                                                       \
    } while (0);
static bool begin_structures(size_t *out_count) {
    bool good = true;
    size_t count = 0;
#include <structures.inc>
    *out_count = count;
    return good;
}

static uir_status run(uir_context *context, const char *path) {
    uir_model *model = NULL;
    uir_session *session = NULL;
    uir_value *input = NULL, *output = NULL;
    uir_port port;
    int64_t dims[16];
    size_t length = strlen(path);
    bool package = length > 4 && !strcmp(path + length - 4, ".uir");
    uir_model_options options;
    UIR_INIT(&options);
    UIR_INIT(&port);
    options.device = "vm";
    options.no_cache = true;
    uir_status status = package ? uir_model_open_package_file(context, path, NULL, &model)
                                : uir_model_load_file(context, path, &options, &model);
    if (status == UIR_STATUS_OK) status = uir_model_get_input(model, 0, &port);
    if (status == UIR_STATUS_OK) status = uir_model_get_input_shape(model, 0, NULL, 0, dims);
    if (status == UIR_STATUS_OK) status = uir_value_create_tensor(context, port.dtype, port.rank, dims, &input);
    if (status == UIR_STATUS_OK) status = uir_session_create(model, NULL, &session);
    if (status == UIR_STATUS_OK) status = uir_session_set_input(session, 0, input);
    if (status == UIR_STATUS_OK) status = uir_session_run(session);
    if (status == UIR_STATUS_OK) status = uir_session_get_output(session, 0, &output);
    if (status == UIR_STATUS_OK)
        printf("%s %llu\n", uir_dtype_get_name(uir_value_get_dtype(output)),
               (unsigned long long)uir_value_get_element_count(output));
    uir_session_destroy(session);
    uir_value_destroy(input);
    uir_model_destroy(model);
    return status;
}

int main(int argc, char **argv) {
    uir_context *context;
    size_t count = sizeof functions / sizeof *functions, there = 0, structures;
    if (argc != 2 || uir_context_create(NULL, &context) != UIR_STATUS_OK) return 2;
    for (size_t i = 0; i < count; i++) there += functions[i] != NULL;
    if (there != count || !begin_structures(&structures) || uir_version_number() != UIR_VERSION_NUMBER) return 1;
    printf("%u functions, %u structures\n", (unsigned)count, (unsigned)structures);
    uir_status status = run(context, argv[1]);
    for (size_t i = 0; i < uir_context_message_count(context); i++)
        fprintf(stderr, "%s\n", uir_context_get_message_text(context, i));
    uir_context_destroy(context);
    return status == UIR_STATUS_OK ? 0 : 1;
}
