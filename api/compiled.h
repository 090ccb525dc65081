/* Models compiled in this process: declarations shared by the files of the API that only libuir has. */
#ifndef UIR_API_COMPILED_H
#define UIR_API_COMPILED_H

#include "api/internal.h"
#include "cache/cache.h"
#include "compile/compile.h"
#include "compile/kernel.h"

/* A model in the cache: what identifies it, and the entries found. */
typedef struct uir_model_cached {
    const char *path;          /* of the model; NULL: not cacheable */
    const char *external_data; /* folder given for it; NULL: none */
    uir_onnx_keep keep;        /* outputs kept besides the model's own */
    uir_onnx_overrides overrides;
    bool no_map;
    uir_text config;  /* all that determines the package besides the model's files */
    uir_text stamp;   /* of the model's file; empty: it changed too recently */
    uir_text content; /* digest of its bytes; empty: not read */
    int64_t began_s;  /* time of the first look at the model */
    bool known;       /* `key` is that of the package */
    uir_cache_key key;
    uir_cache_entry package, native; /* size 0: none */
    uir_cache_entry sources;         /* of native code still to be compiled; size 0: none */
    uir_cache_entry built;           /* code that the driver compiled in an earlier process; size 0: none */
} uir_model_cached;

/* A model on a device: its package, and the compile of its native code, which runs in the background. */
typedef struct uir_model_code {
    uir_text bytes;   /* of the package, if not in a cache */
    uir_cache *cache; /* NULL: none */
    uir_model_cached cached;
    const char *variant; /* of the native code */
    pthread_t thread;
    bool wanted;           /* to be compiled in the background, from the end of the load */
    pthread_mutex_t mutex; /* guards the members below */
    bool started, joined, done;
    const char *dump_source, *source; /* of the options; valid during the load only */
    bool overwrite_source;
    volatile bool cancel;
    uir_budget beside; /* of the background compile: its time limit */
    double fraction;
    uint32_t compiled;
    double compile_ms;
    uir_status status; /* of the compile */
    uir_diagnostics said;
} uir_model_code;

/* The origin of a model. */
typedef struct uir_model_source {
    uir_compile compile;
    uir_model_code *code; /* NULL: the interpreter runs the model */
    /* For interpreted kernels: the device descriptions, and the name that statistics give as the one that ran. */
    uir_compile_machines *devices;
    const char *ran_on;
    struct uir_settled_origin *settled; /* by origin; NULL: the package has them */
    bool *stands;                       /* by origin */
    /* Of the options, for uir_model_wait. */
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

/* Whether the options dump or replace the kernels' source, which bypasses the cache. */
static inline bool uir_model_wants_source(const uir_model_options *options) {
    return options->debug->dump_source || options->debug->source;
}

/* compile.c: creates the code, with the cache of the options. */
uir_status uir_model_code_create(uir_call *call, uir_model *model, const uir_model_options *options);
/* Makes the package for the device and opens it as model->package. UNSUPPORTED, with the reason among the call's
 * messages, if the device cannot run the model. */
uir_status uir_model_compile(uir_call *call, uir_model *model, const uir_model_options *options, uir_progress progress);
/* Resumes the compile of native code for a package from the cache, from its cached sources. */
uir_status uir_model_code_resume(uir_call *call, uir_model *model, const uir_model_options *options,
                                 uir_progress progress);
/* Starts the background compile; called after the load's operation has ended. */
uir_status uir_model_code_begin(uir_model *model);
void uir_model_code_destroy(uir_model *model);
uir_status uir_model_code_wait(uir_call *call, uir_model *model);
uint32_t uir_model_code_count(const uir_model *model);
const char *uir_model_code_explain_vm(const uir_model *model);

/* cached.c: opens the package that an earlier load left in the cache; NOT_FOUND, without a message, if none is valid.
 * `path` is the model's file. If native code is still to be compiled, cached.sources holds its sources. */
uir_status uir_model_open_cached(uir_call *call, uir_model *model, const char *path, const uir_model_options *options);
/* Identifies the package of a model that was read; sets cached.known if possible. */
uir_status uir_model_cached_identify(uir_model *model);
/* Stores the package in the cache; IO_FAILED or LIMIT, with a warning, on failure. */
uir_status uir_model_cached_store(uir_model *model, const uir_compile_contents *contents, uir_progress progress,
                                  uir_diagnostics *diagnostics);
/* Keeps in the cache what a driver compiles, by its program and the kind of device. */
uir_package_keeper uir_model_cached_keeper(uir_model *model);
/* Records the native code's key for the package. */
void uir_model_cached_link(uir_model *model, uir_cache_key native, uir_diagnostics *diagnostics);
/* Keeps the sources of the package's native code, until the entry `native` exists. Failures are silent. */
void uir_model_cached_keep_sources(uir_model *model, uir_cache_key native, const void *sources, size_t size);
void uir_model_cached_remove_sources(uir_model *model);
/* Sources found by uir_model_open_cached, and the key of the native code; false: none. */
bool uir_model_cached_get_sources(const uir_model *model, const void **out_sources, size_t *out_size,
                                  uir_cache_key *out_native);
void uir_model_cached_deinit(uir_model_code *code);

/* interpret.c */
/* Kernels for a described device, named by the options; sessions interpret them. */
uir_status uir_model_choose_described(uir_call *call, uir_model *model, const uir_model_options *options,
                                      const uir_machine **out_device);
uir_status uir_model_compile_described(uir_call *call, uir_model *model, uir_progress progress);
uir_status uir_session_interpret(uir_call *call, uir_session *session);
uir_status uir_model_find_interpreted_shape(uir_call *call, const uir_model *model, uir_datum *const *inputs,
                                            uint32_t output, int64_t *out_dims);
bool uir_session_get_interpreted(const uir_session *session, size_t index, uir_node_statistics *out_node);
bool uir_session_get_interpreted_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice);
/* Settles the fates of the file's nodes, for a model that the interpreter runs. */
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
