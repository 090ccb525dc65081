/* Decoders with caches, as the tests drive them: which ports are caches, and what the other inputs of a step hold.
 *
 * Inputs `past*` and outputs `present*`, in the order of the ports, are the caches: f32[batch, heads, past, channels].
 * Failures end the program. */
#ifndef UIR_TESTS_API_DECODER_H
#define UIR_TESTS_API_DECODER_H

#include "tools/run/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECODER_PORTS = 200, DECODER_RANK = 4, DECODER_POSITIONS = 256 /* that a table of them has at least */ };

typedef struct decoder_cache {
    size_t input, output;
    int64_t heads, channels;
    int64_t strides[DECODER_RANK]; /* for `capacity` rows */
    uint64_t bytes;                /* of the whole */
} decoder_cache;

static inline void decoder_must(uir_context *context, uir_status status, const char *what) {
    if (status == UIR_STATUS_OK) return;
    fprintf(stderr, "%s: %s\n", what, uir_status_text(status));
    for (size_t i = 0; context && i < uir_context_message_count(context); i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(context, i));
    exit(1);
}

/* Sets the strides of `capacity` rows. */
static inline void decoder_size_cache(decoder_cache *c, int64_t batch, int64_t capacity) {
    const int64_t strides[] = {c->heads * capacity * c->channels, capacity * c->channels, c->channels, 1};
    memcpy(c->strides, strides, sizeof strides);
    c->bytes = (uint64_t)(batch * strides[0]) * sizeof(float);
}

/* Returns their number; `caches` has DECODER_PORTS. */
static inline size_t decoder_find_caches(const uir_model *model, decoder_cache *caches) {
    size_t output = 0, count = 0;
    for (size_t i = 0; i < uir_model_input_count(model) && count < DECODER_PORTS; i++) {
        uir_port port = query_input(model, i);
        if (strncmp(port.name, "past", 4) || port.rank != DECODER_RANK || port.dtype != UIR_DTYPE_F32) continue;
        while (output < uir_model_output_count(model) &&
               strncmp(uir_model_get_output_name(model, output), "present", 7))
            output++;
        caches[count++] =
            (decoder_cache){.input = i, .output = output++, .heads = port.dims[1], .channels = port.dims[3]};
    }
    return count;
}

/* Values of a step's inputs that are no caches, by input: small token numbers, ones for masks. Returns their bytes. */
static inline uint64_t decoder_make_others(uir_context *context, const uir_model *model, int64_t batch, int64_t past,
                                           uir_value **values) {
    const uir_dim_binding dims[] = {{"batch", batch}, {"sequence", 1}, {"past", past}, {"total", past + 1}};
    uint64_t bytes = 0;
    for (size_t i = 0; i < uir_model_input_count(model); i++) {
        uir_port port = query_input(model, i);
        int64_t shape[16];
        if (!strncmp(port.name, "past", 4)) continue;
        decoder_must(context, uir_model_get_input_shape(model, i, dims, 4, shape), port.name);
        decoder_must(context, uir_value_create_tensor(context, port.dtype, port.rank, shape, &values[i]), port.name);
        int64_t *data = uir_value_get_data(values[i]);
        for (uint64_t k = 0; k < uir_value_get_element_count(values[i]) && port.dtype == UIR_DTYPE_I64; k++)
            data[k] = strstr(port.name, "mask")       ? 1
                      : strstr(port.name, "position") ? past % DECODER_POSITIONS
                                                      : (int64_t)(7 * k + 3 + (uint64_t)past);
        bytes += uir_value_get_byte_size(values[i]);
    }
    return bytes;
}

#endif
