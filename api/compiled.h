/* Models that were compiled here: what the files of the API that libuir alone has share. */
#ifndef UIR_API_COMPILED_H
#define UIR_API_COMPILED_H

#include "api/internal.h"
#include "cache/cache.h"
#include "pipeline.h"
#include "pipeline_package.h"

/* A model on a device: the package and the compile of its native code, which goes on beside the runs. */
typedef struct uir_model_code {
    uir_packaging *packaging;
    uir_text bytes;   /* of the package */
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

/* What a model was made from: its origin. */
typedef struct uir_model_source {
    uir_module *module;   /* primitives, grouped where a device runs it */
    uir_model_code *code; /* NULL: the interpreter runs it */
    uir_onnx_info facts;
} uir_model_source;
static inline uir_model_source *uir_model_get_source(const uir_model *model) {
    return (uir_model_source *)model->origin;
}

/* compile.c: makes the code for the device and model->package; UNSUPPORTED, with the reason among the call's messages,
 * when that cannot run the model. */
uir_status uir_model_compile(uir_call *call, uir_model *model, const uir_model_options *options);
void uir_model_code_destroy(uir_model *model);
uir_status uir_model_code_wait(uir_call *call, uir_model *model);
uint32_t uir_model_code_count(const uir_model *model);

/* interpret.c */
uir_status uir_session_interpret(uir_call *call, uir_session *session);
bool uir_session_get_interpreted(const uir_session *session, size_t index, uir_node_statistics *out_node);

#endif
