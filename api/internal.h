/* What the files of the public API share: the structs behind its opaque handles.
 *
 * A context is used from several threads, so that no call writes messages to it directly: each call has a sink of its
 * own, whose messages are moved to the context under its lock when the call ends. */
#ifndef UIR_API_INTERNAL_H
#define UIR_API_INTERNAL_H

#include "base/datum.h"
#include "cache/cache.h"
#include "pipeline.h"
#include "pipeline_package.h"
#include "runtime/runtime.h"
#include <pthread.h>

struct uir_context {
    uir_allocator allocator;
    pthread_mutex_t mutex; /* guards what follows */
    uir_arena arena;
    uir_vector(uir_message) messages;
};

/* One call: its own sink, emptied into the context by uir_call_end. */
typedef struct uir_call {
    uir_context *context;
    uir_diagnostics diagnostics;
} uir_call;
void uir_call_begin(uir_call *call, uir_context *context);
/* What uir_call_end does, and the call goes on. */
uir_status uir_call_flush(uir_call *call, uir_status status, const char *what);
/* Returns `status`. A failure of which nothing was said gets a message naming `what` was being done. */
uir_status uir_call_end(uir_call *call, uir_status status, const char *what);

struct uir_value {
    uir_context *context;
    uir_datum *datum;            /* owned reference */
    char *name;                  /* owned, zero terminated; NULL: "" */
    struct uir_value **elements; /* of a list: wrappers owned by this one */
    uint32_t element_count;
};
/* Takes over the reference to `datum` on success. `name` is copied; NULL: none. */
uir_status uir_value_wrap(uir_context *context, uir_datum *datum, const char *name, uir_value **out_value);
/* The same for a tensor. */
uir_status uir_value_wrap_tensor(uir_context *context, uir_tensor *tensor, uir_value **out_value);

/* A graph input or output as a session checks it. */
typedef struct uir_api_port {
    uir_port port;
    int64_t *dims;
    const char **dim_names;
} uir_api_port;

/* A model on a device: the package and the compile of its native code, which goes on beside the runs. */
typedef struct uir_model_code {
    uir_packaging *packaging;
    uir_text bytes; /* of the package */
    uir_package *package;
    uir_cache *cache; /* NULL: none */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    bool started, joined, done;
    volatile bool cancel;
    bool (*progress)(void *user, const char *stage, double fraction); /* asked while a caller waits */
    void *progress_user;
    double fraction;
    uint32_t compiled;
    double compile_ms;
    uir_status status; /* of the compile */
    uir_diagnostics said;
} uir_model_code;

struct uir_model {
    uir_context *context;
    uir_arena arena;
    uir_module *module;   /* primitives, grouped where a device runs it */
    uir_model_code *code; /* NULL: the interpreter runs it */
    uir_onnx_info facts;
    uir_api_port *inputs, *outputs;
    uint32_t input_count, output_count;
    uir_model_info info;
};

/* compile.c: makes `model->code` for the device; UNSUPPORTED, with the reason among the call's messages, when that
 * cannot run the model. */
uir_status uir_model_compile(uir_call *call, uir_model *model, const uir_model_options *options);
void uir_model_code_destroy(uir_model *model);

/* npy.c, zip.c, image.c: readers of value files. Data is the whole file. */
uir_status uir_npy_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, uir_tensor **out_tensor);
/* Appends the bytes of an .npy file; types that numpy lacks are widened without loss. */
uir_status uir_npy_write(const uir_tensor *tensor, uir_diagnostics *diagnostics, const char *file, uir_text *out);
/* The member's bytes, to be released by the caller with uir_release(allocator, data, size). `member` NULL: the only
 * one. */
uir_status uir_zip_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, const char *member, uint8_t **out_data, size_t *out_size);
uir_status uir_image_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                          const uint8_t *data, size_t size, uir_tensor **out_tensor);
/* Raw deflate data into exactly `target_size` bytes; false when it is not that. */
bool uir_inflate(const uint8_t *data, size_t size, uint8_t *target, size_t target_size);


#endif
