/* What the tests of sequences share: a SequenceProto made by hand becomes a value, by way of a file. */
#ifndef UIR_TESTS_API_SEQUENCES_H
#define UIR_TESTS_API_SEQUENCES_H

#include "tests/frontend/make.h"
#include "uir/uir.h"

#include <stdlib.h>
#include <unistd.h>

enum { SEQUENCE_NAME = 1, SEQUENCE_ELEMENT_TYPE = 2, SEQUENCE_TENSOR = 3, SEQUENCE_OF_TENSORS = 1 };

/* Takes the bytes. NULL where loading fails. */
static inline uir_status sequence_of(uir_context *context, blob bytes, uir_value **out_value) {
    char path[64] = "/tmp/uir_sequence_XXXXXX.pb";
    int descriptor = mkstemps(path, 3);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes.data, bytes.length), bytes.length);
    close(descriptor);
    blob_free(&bytes);
    *out_value = NULL;
    uir_status status = uir_value_load_file(context, path, NULL, UIR_VALUE_SEQUENCE, out_value);
    unlink(path);
    return status;
}

/* A sequence of two tensors, by way of a file. */
static inline uir_value *make_sequence(uir_context *context, const char *name) {
    blob bytes = blob_new();
    put_text(&bytes, SEQUENCE_NAME, name);
    put_int(&bytes, SEQUENCE_ELEMENT_TYPE, SEQUENCE_OF_TENSORS);
    for (int i = 0; i < 2; i++) {
        float numbers[] = {(float)i, 5};
        blob tensor = make_tensor("", UIR_DTYPE_F32, 1, (int64_t[]){2});
        put_bytes(&tensor, TENSOR_RAW, numbers, sizeof numbers);
        put_message(&bytes, SEQUENCE_TENSOR, tensor);
    }
    uir_value *value;
    uir_status status = sequence_of(context, bytes, &value);
    if (status != UIR_STATUS_OK) assert_int_equal(status, UIR_STATUS_OUT_OF_MEMORY);
    return value;
}

#endif
