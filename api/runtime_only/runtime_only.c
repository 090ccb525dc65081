/* What libuir_rt answers where libuir compiles. */
#include "backends/devices/devices.h"
#include "api/internal.h"
#include "io/small/formats.h"

#include <string.h>

/* ---- models ---- */

static uir_status refuse(uir_context *context, const char *what, const char *path) {
    uir_call call;
    uir_call_begin(&call, context);
    uir_location place = {.file = path};
    uir_status status = uir_error_hint(&call.diagnostics, UIR_STATUS_UNSUPPORTED, path ? &place : NULL,
                                       "make a package of the model with uir-pack, and open that",
                                       "%s requires the compiler, which this library does not contain", what);
    return uir_call_end(&call, status, what);
}

uir_status uir_model_load_file(uir_context *context, const char *path, const uir_model_options *options,
                               uir_model **out_model) {
    (void)options;
    *out_model = NULL;
    return refuse(context, "loading an ONNX model", path);
}

uir_status uir_model_load_memory(uir_context *context, const void *data, size_t size, const char *folder,
                                 const uir_model_options *options, uir_model **out_model) {
    (void)data, (void)size, (void)folder, (void)options;
    *out_model = NULL;
    return refuse(context, "loading an ONNX model", NULL);
}

uir_status uir_package_write_file(uir_context *context, const char *model_path, const char *package_path,
                                  const uir_package_write_options *options, uir_package_info *out_info) {
    (void)package_path, (void)options, (void)out_info;
    return refuse(context, "writing a package", model_path);
}

uir_status uir_package_make_key(uir_context *context, const char *path) {
    uir_call call;
    uir_call_begin(&call, context);
    uir_status status = uir_error_hint(&call.diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.file = path},
                                       "run uir-pack --make-key", "this library cannot make keys");
    return uir_call_end(&call, status, "making a key");
}

uir_status uir_model_check_file(uir_context *context, const char *path, uir_value *const *inputs, size_t input_count,
                                const uir_model_check_options *options) {
    (void)inputs, (void)input_count, (void)options;
    return refuse(context, "checking a model", path);
}

uir_status uir_model_tune_file(uir_context *context, const char *path, const uir_model_tune_options *options,
                               uir_tune_result *out_result) {
    (void)options, (void)out_result;
    return refuse(context, "tuning a model", path);
}

uir_status uir_extractor_create(uir_context *context, const char *path, uir_value *const *inputs, size_t input_count,
                                const char *external_data, const volatile bool *cancel, uir_extractor **out_extractor) {
    (void)inputs, (void)input_count, (void)external_data, (void)cancel;
    *out_extractor = NULL;
    return refuse(context, "extracting parts of a model", path);
}

/* There are no parts that the following could be asked of. */
void uir_extractor_destroy(uir_extractor *extractor) {
    (void)extractor;
}
size_t uir_extractor_node_count(const uir_extractor *extractor) {
    (void)extractor;
    return 0;
}
uir_status uir_extractor_get_node(const uir_extractor *extractor, size_t index, uir_extractor_node *out_node) {
    (void)extractor, (void)index, (void)out_node;
    return UIR_STATUS_UNSUPPORTED;
}
uir_status uir_extractor_set_expected(uir_extractor *extractor, size_t output, const uir_value *value) {
    (void)extractor, (void)output, (void)value;
    return UIR_STATUS_UNSUPPORTED;
}
uir_status uir_extractor_prune(uir_extractor *extractor, const char *output, bool *nodes) {
    (void)extractor, (void)output, (void)nodes;
    return UIR_STATUS_UNSUPPORTED;
}
uir_status uir_extractor_write(uir_extractor *extractor, const uir_subgraph *subgraph, const char *model_path,
                               const char *data_folder) {
    (void)extractor, (void)subgraph, (void)model_path, (void)data_folder;
    return UIR_STATUS_UNSUPPORTED;
}
const char *uir_extractor_get_output_name(const uir_extractor *extractor, size_t index) {
    (void)extractor, (void)index;
    return NULL;
}
size_t uir_extractor_input_count(const uir_extractor *extractor) {
    (void)extractor;
    return 0;
}

uir_status uir_context_clear_cache(uir_context *context, const char *folder, uint64_t *out_bytes) {
    (void)out_bytes;
    return refuse(context, "emptying the cache", folder);
}

uir_status uir_op_get_info(size_t index, uir_op_info *out_info) {
    (void)index, (void)out_info;
    return UIR_STATUS_NOT_FOUND;
}

const char *uir_op_get_engine(size_t index) {
    (void)index;
    return NULL;
}

const char *uir_device_name(size_t index) {
    const uir_device_row *row = uir_device_get(index);
    return row ? row->name : NULL;
}

uir_status uir_device_list_add_machines(uir_call *call, uir_device_list *list) {
    (void)call, (void)list;
    return UIR_STATUS_OK;
}

/* ---- value files ---- */

const struct uir_image_extras *uir_api_pictures(void) {
    return NULL;
}

#define FORMATS uir_io_small_formats
#include "api/value_files.inc"
