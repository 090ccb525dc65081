/* Value files as programs read them: .npy, .npz, and the protos of .pb, which are written and read again. */
#include "io/full/formats.h"
#include "frontend/frontend.h"
#include "tests/fuzz/target.h"

#include <string.h>

static bool read_npy(fuzz_case *c, const uint8_t *data, size_t size) {
    uir_tensor *tensor = NULL;
    uir_status status = uir_npy_read(&c->allocator, &c->diagnostics, "fuzz.npy", data, size, &tensor);
    fuzz_require_told(c, status);
    if (status == UIR_STATUS_OK) {
        uir_text bytes;
        uir_text_init(&bytes, &c->allocator);
        fuzz_require_told(c, uir_npy_write(tensor, &c->diagnostics, "fuzz.npy", &bytes));
        uir_text_deinit(&bytes);
        uir_tensor_release(tensor);
    }
    return status == UIR_STATUS_OK;
}

static bool read_npz(fuzz_case *c, const uint8_t *data, size_t size) {
    static const char *const members[] = {NULL, "a"};
    bool good = false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        uint8_t *bytes;
        size_t length;
        uir_status status =
            uir_zip_read(&c->allocator, &c->diagnostics, "fuzz.npz", data, size, members[i], &bytes, &length);
        fuzz_require_told(c, status);
        if (status != UIR_STATUS_OK) continue;
        good |= read_npy(c, bytes, length);
        uir_release(&c->allocator, bytes, length);
    }
    return good;
}

/* What was read is written, read again and written again: the same bytes. */
static bool read_pb(fuzz_case *c, const uint8_t *data, size_t size, uir_value_kind kind) {
    uir_arena arena;
    const char *name = "";
    uir_datum *datum = NULL, *again = NULL;
    uir_text first, second;
    uir_arena_init(&arena, &c->allocator);
    uir_text_init(&first, &c->allocator);
    uir_text_init(&second, &c->allocator);
    uir_status status =
        uir_onnx_read_datum(&c->allocator, &c->diagnostics, "fuzz.pb", data, size, kind, &arena, &name, &datum);
    fuzz_require_told(c, status);
    if (status == UIR_STATUS_OK && uir_onnx_write_datum(datum, name, &first) == UIR_STATUS_OK) {
        status = uir_onnx_read_datum(&c->allocator, &c->diagnostics, "again.pb", first.data ? first.data : "",
                                     first.length, kind, &arena, &name, &again);
        fuzz_require(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY, "what was written cannot be read");
        if (status == UIR_STATUS_OK && uir_onnx_write_datum(again, name, &second) == UIR_STATUS_OK)
            fuzz_require(first.length == second.length && !memcmp(first.data, second.data, first.length),
                         "what was written is read as something else");
    }
    bool good = datum != NULL;
    uir_datum_release(again);
    uir_datum_release(datum);
    uir_text_deinit(&second);
    uir_text_deinit(&first);
    uir_arena_deinit(&arena);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uir_value_kind kinds[] = {UIR_VALUE_TENSOR, UIR_VALUE_SEQUENCE, UIR_VALUE_OPTIONAL};
    fuzz_case c;
    bool good = false;
    fuzz_begin(&c);
    if (size > 2 && !memcmp(data, "PK", 2)) {
        good = read_npz(&c, data, size);
    } else if (size > 1 && data[0] == 0x93) {
        good = read_npy(&c, data, size);
    } else {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) good |= read_pb(&c, data, size, kinds[i]);
    }
    fuzz_count(good);
    fuzz_end(&c);
    return 0;
}
