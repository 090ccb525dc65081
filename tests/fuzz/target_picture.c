/* Pictures: as value files, and as the operator ImageDecoder reads them. */
#include "io/full/formats.h"
#include "image/decode.h"
#include "image/full/all.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const formats[] = {"RGB", "BGR", "Grayscale"};
    fuzz_case c;
    uir_tensor *tensor = NULL;
    uir_pixels pixels;
    const char *problem = NULL;
    fuzz_begin(&c);
    uir_status status = uir_picture_read(&c.allocator, &c.diagnostics, "fuzz.png", data, size, &tensor);
    fuzz_require_told(&c, status);
    fuzz_count(status == UIR_STATUS_OK);
    if (status == UIR_STATUS_OK) uir_tensor_release(tensor);
    const uir_image_options options = {.format = formats[size % 3], .extras = &uir_image_all};
    status = uir_image_decode(&c.allocator, data, size, &options, &pixels, &problem);
    if (status == UIR_STATUS_OK)
        uir_pixels_release(&c.allocator, &pixels);
    else
        fuzz_require(problem || status == UIR_STATUS_OUT_OF_MEMORY, "a picture is refused without a reason");
    fuzz_end(&c);
    return 0;
}
