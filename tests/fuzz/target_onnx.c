/* ONNX files: reading, decomposition, clean-up, as `uir-run --can-run` does. */
#include "api/internal.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_case c;
    uir_context *context;
    uir_model *model = NULL;
    fuzz_begin(&c);
    if (uir_context_create(&c.allocator, &context) == UIR_STATUS_OK) {
        uir_model_options options = {.struct_size = sizeof options,
                                     .device = UIR_INTERPRETER_NAME,
                                     .no_cache = true,
                                     .describe = size % 2, /* both ways */
                                     .keep_all = size % 4 > 1,
                                     .cancel = &c.cancel};
        uir_status status = uir_model_load_memory(context, data, size, NULL, &options, &model);
        fuzz_require(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ||
                         uir_context_message_count(context) > 0,
                     "a failure without a message");
        uir_model_destroy(model);
        uir_context_destroy(context);
    }
    fuzz_end(&c);
    return 0;
}
