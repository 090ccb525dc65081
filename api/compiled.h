/* Models that were compiled here: what the files of the API that libuir alone has share. */
#ifndef UIR_API_COMPILED_H
#define UIR_API_COMPILED_H

#include "api/internal.h"
#include "cache/cache.h"
#include "compile/compile.h"
#include "compile/kernel.h"

/* What the cache knows a model by, and what it gave. */
typedef struct uir_model_cached {
    const char *path;          /* of the model; NULL: it is not one that the cache can know */
    const char *external_data; /* the folder named for it; NULL: none */
    uir_onnx_keep keep;        /* outputs besides the model's own */
    uir_onnx_overrides overrides;
    bool no_map;
    uir_text config;  /* what decides the package besides the model's files */
    uir_text stamp;   /* of the model's file; empty: it changed too lately */
    uir_text content; /* the same by its bytes; empty: not read */
    int64_t began_s;  /* when the model was first looked at */
    bool known;       /* `key` is the package's */
    uir_cache_key key;
    uir_cache_entry package, native; /* size 0: none */
    uir_cache_entry sources;         /* of native code that no start has finished yet; size 0: none */
} uir_model_cached;

/* A model on a device: the package and the compile of its native code, which goes on beside the runs. */
typedef struct uir_model_code {
    uir_text bytes;   /* of the package, where they are in no cache */
    uir_cache *cache; /* NULL: none */
    uir_model_cached cached;
    uir_cpu_variant variant; /* of the native code */
    pthread_t thread;
    bool wanted;           /* beside the runs, which the end of the load starts */
    pthread_mutex_t mutex; /* guards what follows */
    bool started, joined, done;
    const char *dump_source, *source; /* of the options; during the load alone */
    bool overwrite_source;
    volatile bool cancel;
    uir_budget beside; /* of the compile that goes on beside the runs: its time */
    double fraction;
    uint32_t compiled;
    double compile_ms;
    uir_status status; /* of the compile */
    uir_diagnostics said;
} uir_model_code;

/* What a model was made from: its origin. */
typedef struct uir_model_source {
    uir_compile compile;
    uir_model_code *code; /* NULL: the interpreter runs it */
    /* Of a model whose kernels are interpreted: the devices, one of which they are for, and who runs it. */
    uir_compile_devices *devices;
    const char *ran_on;
    struct uir_settled_origin *settled; /* by origin; NULL: the package knows */
    bool *stands;                       /* by origin */
    /* Of the options, for whoever waits. */
    bool (*progress)(void *user, const char *stage, double fraction);
    void *progress_user;
    const volatile bool *cancel;
} uir_model_source;
static inline uir_model_source *uir_model_get_source(const uir_model *model) {
    return (uir_model_source *)model->origin;
}

/* load.c */
void uir_model_destroy_source(uir_model *model);

uir_status uir_model_check_files(uir_call *call, const uir_model *model, bool interpreted);

/* Whether the options ask for kernels by their source, past the cache. */
static inline bool uir_model_wants_source(const uir_model_options *options) {
    return options->debug->dump_source || options->debug->source;
}

/* compile.c: the code, with the cache that the options ask for. */
uir_status uir_model_code_create(uir_call *call, uir_model *model, const uir_model_options *options);
/* Makes the package for the device, and model->package; UNSUPPORTED, with the reason among the call's messages, when
 * that cannot run the model. */
uir_status uir_model_compile(uir_call *call, uir_model *model, const uir_model_options *options, uir_progress progress);
/* Goes on with native code of a package out of the cache, from the sources that came with it. */
uir_status uir_model_code_resume(uir_call *call, uir_model *model, const uir_model_options *options,
                                 uir_progress progress);
/* What the load left to be compiled beside the runs: behind the end of its operation. */
uir_status uir_model_code_begin(uir_model *model);
void uir_model_code_destroy(uir_model *model);
uir_status uir_model_code_wait(uir_call *call, uir_model *model);
uint32_t uir_model_code_count(const uir_model *model);
const char *uir_model_code_explain_vm(const uir_model *model);

/* cached.c: opens the package that an earlier load has left in the cache; NOT_FOUND, without a message, when there is
 * none that serves. `path` is the model's file. Where no start has finished its native code, cached.sources has what it
 * is made of. */
uir_status uir_model_open_cached(uir_call *call, uir_model *model, const char *path, const uir_model_options *options);
/* Once the model was read: which package it is, cached.known when that can be told. */
uir_status uir_model_cached_identify(uir_model *model);
/* Makes the package an entry of the cache; IO_FAILED or LIMIT, with a warning, when that cannot be. */
uir_status uir_model_cached_store(uir_model *model, const uir_compile_contents *contents, uir_progress progress,
                                  uir_diagnostics *diagnostics);
/* The entry of the native code that belongs to the package. */
void uir_model_cached_link(uir_model *model, uir_cache_key native, uir_diagnostics *diagnostics);
/* The sources of the package's native code, which will have the key `native`, until that is there; silent where they
 * cannot be kept. */
void uir_model_cached_keep_sources(uir_model *model, uir_cache_key native, const void *sources, size_t size);
void uir_model_cached_remove_sources(uir_model *model);
/* Of what was opened: the sources, and the key of the native code. */
bool uir_model_cached_get_sources(const uir_model *model, const void **out_sources, size_t *out_size,
                                  uir_cache_key *out_native);
void uir_model_cached_deinit(uir_model_code *code);

/* interpret.c */
/* Kernels for the described device that the options name, for sessions to interpret. */
uir_status uir_model_choose_described(uir_call *call, uir_model *model, const uir_model_options *options,
                                      const uir_device **out_device);
uir_status uir_model_compile_described(uir_call *call, uir_model *model, uir_progress progress);
uir_status uir_session_interpret(uir_call *call, uir_session *session);
uir_status uir_model_find_interpreted_shape(uir_call *call, const uir_model *model, uir_datum *const *inputs,
                                            uint32_t output, int64_t *out_dims);
bool uir_session_get_interpreted(const uir_session *session, size_t index, uir_node_statistics *out_node);
bool uir_session_get_interpreted_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice);
/* What became of the file's nodes, of a model that the interpreter runs. */
uir_status uir_model_settle_nodes(uir_model *model);
bool uir_model_find_node(const uir_model *model, size_t index, uir_model_node *out_node);
bool uir_session_find_row_node(const uir_session *session, size_t row, size_t index, uint32_t *out_node,
                               bool *out_again);
bool uir_session_find_slice_node(const uir_session *session, size_t slice, size_t index, uint32_t *out_node,
                                 bool *out_again);
bool uir_session_find_estimate(const uir_session *session, size_t index, uir_machine_estimate *out_estimate);
bool uir_session_find_space_estimate(const uir_session *session, size_t index, size_t space,
                                     uir_space_estimate *out_estimate);

#endif
