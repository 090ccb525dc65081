/* The public C API of uir, a tensor compiler and deployment runtime for ONNX models.
 *
 * In: a model file or its bytes, input tensors. Out: output tensors, messages, statistics. This header is API,
 * and device.h beside it, for devices with memory of their own; tools.h is for tools that inspect the compiler, and
 * promises nothing. The library never prints or exits and
 * keeps no global state. Every object belongs to a context.
 *
 *   uir_context *context;
 *   uir_model *model;
 *   uir_session *session;
 *   uir_context_create(NULL, &context);
 *   if (uir_model_load_file(context, "model.onnx", NULL, &model) == UIR_STATUS_OK &&
 *       uir_session_create(model, NULL, &session) == UIR_STATUS_OK) {
 *       uir_session_set_input(session, 0, value);
 *       uir_session_run(session);
 *       uir_session_get_output(session, 0, &output);
 *   }
 *
 * Libraries. libuir and libuir_rt have this API. libuir_rt opens packages (uir_model_open_package_file) and has no
 * compiler: functions that compile return UNSUPPORTED there, and value files are tensors in .npy and .pb.
 *
 * Growing structures. A structure whose first member is `struct_size` may get more members at its end in a later
 * version, never in former padding. Every other structure stays as it is. Programs and libraries of different versions
 * work together by these rules:
 *   - The creator of a structure sets struct_size to its sizeof; UIR_INIT(&structure) zeroes it and does that. A
 *     struct_size of 0 is INVALID_ARGUMENT.
 *   - Structures that the library reads (options): zero is the default of each member. A smaller struct_size is that of
 *     an older version, whose missing members have their defaults. A larger one is that of a newer version:
 *     INVALID_ARGUMENT if a byte beyond the members that the library knows is not zero, since the library does not
 *     know the request.
 *   - Structures that the library fills (`out_`): it fills the members that fit in struct_size, zeroes bytes beyond the
 *     members that it knows, and keeps struct_size.
 *   - Structures passed to a callback: struct_size is the library's. A member is present if it is within struct_size.
 *
 * Ownership. The caller owns each object that a uir_..._create, _load or _open function returns, until its
 * uir_..._destroy. The object is NULL if the call failed. Every uir_..._destroy accepts NULL and then does nothing. The
 * library owns all other pointers that it returns; each function states their lifetime. Memory passed by pointer must
 * be valid until the call returns, unless a comment states more. Objects of several contexts may be used together.
 *
 * Versions. Names without a version exist since 0.1.0.
 *
 * Threads. Several threads may use one context if each works on its own models and sessions. One model may have
 * sessions on several threads. A session is used by one thread at a time, but for uir_session_cancel. */
#ifndef UIR_UIR_H
#define UIR_UIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UIR_VERSION_MAJOR 0
#define UIR_VERSION_MINOR 1
#define UIR_VERSION_PATCH 0
/* Version of the header, to compare with uir_version_number(), that of the library. */
#define UIR_VERSION_NUMBER (UIR_VERSION_MAJOR * 1000000 + UIR_VERSION_MINOR * 1000 + UIR_VERSION_PATCH)

#if defined(__GNUC__)
#define UIR_API         __attribute__((visibility("default")))
#define UIR_WARN_UNUSED __attribute__((warn_unused_result))
#else
#define UIR_API
#define UIR_WARN_UNUSED
#endif

/* Zeroes a growing structure and sets its struct_size: uir_model_info info; UIR_INIT(&info); */
#define UIR_INIT(structure)                                                                                            \
    (memset((structure), 0, sizeof *(structure)), (void)((structure)->struct_size = sizeof *(structure)))

/* Statuses. UIR_STATUS(constant, value, text, exit code of the command line tools) */
#define UIR_STATUS_TABLE(UIR_STATUS)                                                                                   \
    UIR_STATUS(OK, 0, "ok", 0)                                                                                         \
    UIR_STATUS(DIFFERENT, 1, "outputs differ", 1)                                                                      \
    UIR_STATUS(INVALID_ARGUMENT, 2, "invalid argument", 2)                                                             \
    UIR_STATUS(BAD_FILE, 3, "bad file", 3)                                                                             \
    UIR_STATUS(UNSUPPORTED, 4, "unsupported", 4)                                                                       \
    UIR_STATUS(DEVICE_FAILED, 5, "device or toolchain failed", 5)                                                      \
    UIR_STATUS(OUT_OF_MEMORY, 6, "out of memory", 5)                                                                   \
    UIR_STATUS(NOT_FOUND, 7, "not found", 3)                                                                           \
    UIR_STATUS(IO_FAILED, 8, "input or output failed", 5)                                                              \
    UIR_STATUS(BAD_DATA, 9, "data does not fit the model", 3)                                                          \
    UIR_STATUS(LIMIT, 10, "a limit was reached", 3)                                                                    \
    UIR_STATUS(CANCELLED, 11, "cancelled", 5)                                                                          \
    UIR_STATUS(INTERNAL, 12, "internal error", 5)

#define UIR_STATUS_ENUM(constant, value, text, exit_code) UIR_STATUS_##constant = value,
typedef enum uir_status_code { UIR_STATUS_TABLE(UIR_STATUS_ENUM) UIR_STATUS_COUNT } uir_status_code;
#undef UIR_STATUS_ENUM
typedef uir_status_code uir_status;

/* Text of a status, as "ok"; a number that is not a status has a text too. It lives as long as the program. */
UIR_API const char *uir_status_text(uir_status status);
/* Exit code of the command line tools for a status, by the table. */
UIR_API int uir_status_exit_code(uir_status status);
/* Version of the running library: "0.1.0", which lives as long as the program. */
UIR_API const char *uir_version(void);
/* The same as a number: UIR_VERSION_NUMBER of the header that the library was compiled with. */
UIR_API uint32_t uir_version_number(void);

typedef enum uir_severity { UIR_SEVERITY_NOTE, UIR_SEVERITY_WARNING, UIR_SEVERITY_ERROR } uir_severity;

/* A memory allocator. */
typedef struct uir_allocator {
    /* Allocates if `pointer` is NULL, releases if `new_size` is 0 (and returns NULL), else resizes. Blocks are aligned
     * to 64 bytes. Returns NULL on failure; the old block stays valid. May be called from several threads. */
    void *(*resize)(void *user, void *pointer, size_t old_size, size_t new_size);
    void *user; /* first argument of `resize` */
} uir_allocator;

/* Element types, numbered as ONNX's TensorProto.DataType. */
typedef enum uir_dtype {
    UIR_DTYPE_NONE = 0,
    UIR_DTYPE_F32 = 1,
    UIR_DTYPE_U8 = 2,
    UIR_DTYPE_I8 = 3,
    UIR_DTYPE_U16 = 4,
    UIR_DTYPE_I16 = 5,
    UIR_DTYPE_I32 = 6,
    UIR_DTYPE_I64 = 7,
    UIR_DTYPE_STRING = 8,
    UIR_DTYPE_BOOL = 9,
    UIR_DTYPE_F16 = 10,
    UIR_DTYPE_F64 = 11,
    UIR_DTYPE_U32 = 12,
    UIR_DTYPE_U64 = 13,
    UIR_DTYPE_C64 = 14,
    UIR_DTYPE_C128 = 15,
    UIR_DTYPE_BF16 = 16,
    UIR_DTYPE_F8E4M3FN = 17,
    UIR_DTYPE_F8E4M3FNUZ = 18,
    UIR_DTYPE_F8E5M2 = 19,
    UIR_DTYPE_F8E5M2FNUZ = 20,
    UIR_DTYPE_U4 = 21,
    UIR_DTYPE_I4 = 22,
    UIR_DTYPE_F4E2M1 = 23,
    UIR_DTYPE_F8E8M0 = 24,
    UIR_DTYPE_U2 = 25,
    UIR_DTYPE_I2 = 26,
    UIR_DTYPE_COUNT = 27
} uir_dtype;
/* Name of an element type, as "f32"; it lives as long as the program. */
UIR_API const char *uir_dtype_get_name(uir_dtype dtype);

/* A string element, not zero terminated. */
typedef struct uir_string_view {
    const char *text;
    size_t length;
} uir_string_view;

/* ---- context ------------------------------------------------------------------------------------------------ */
typedef struct uir_context uir_context;
typedef struct uir_model uir_model;
typedef struct uir_session uir_session;
typedef struct uir_value uir_value;
typedef struct uir_device uir_device;

/* Creates a context. `allocator` (NULL: the C library's) is copied and gives all memory but decoders' and drivers'. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_create(const uir_allocator *allocator, uir_context **out_context);
/* Destroys a context and its messages. Its models, sessions, values and devices must be destroyed or closed before. */
UIR_API void uir_context_destroy(uir_context *context);

/* A message of a context. A context keeps the messages of all threads since the last clear, oldest first; of more than
 * 10000 the first. Texts live until the next uir_context_clear_messages, or until the context is destroyed. */
typedef struct uir_message {
    size_t struct_size;
    uir_severity severity;
    uir_status status;
    const char *text; /* the whole message: place, node, problem, hint */
    const char *node; /* name of the ONNX node, or NULL */
    const char *op;   /* its op, or NULL */
} uir_message;
UIR_API size_t uir_context_message_count(const uir_context *context);
/* Message `index`; INVALID_ARGUMENT, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_get_message(const uir_context *context, size_t index,
                                                           uir_message *out_message);
/* Text of message `index`, with the same lifetime; "" past the end. */
UIR_API const char *uir_context_get_message_text(const uir_context *context, size_t index);
UIR_API void uir_context_clear_messages(uir_context *context);
/* Passes messages to `hear` instead of keeping them. The thread whose call caused a message calls `hear`, before that
 * call returns: threads that share a context or a model can tell their messages apart. The message and its texts live
 * until `hear` returns. Several threads may call `hear` at once. It may use the context, but not the object of the
 * call. NULL: the context keeps messages again. To be called while no other thread uses the context. */
UIR_API void uir_context_set_message_callback(uir_context *context,
                                              void (*hear)(void *user, const uir_message *message), void *user);

/* ---- limits -------------------------------------------------------------------------------------------------- */
#define UIR_NO_LIMIT UINT64_MAX
/* The members of uir_limits, in their order: UIR_LIMIT(constant, field, option, scale, base, per_byte, what, help). The
 * command line tools multiply the value of --limit-OPTION by `scale`. The default is `base` plus `per_byte` for each
 * byte of the files that are read. */
#define UIR_LIMIT_TABLE(UIR_LIMIT)                                                                                     \
    UIR_LIMIT(MILLISECONDS, milliseconds, "seconds", 1000, UIR_NO_LIMIT, 0, "time",                                    \
              "wall time of a load with its compile, or of a run")                                                     \
    UIR_LIMIT(MEMORY, memory, "memory", 1, 2ull << 30, 16, "bytes of memory",                                          \
              "bytes allocated at once, as in 500M or 8G")                                                             \
    UIR_LIMIT(FILE_BYTES, file_bytes, "file-bytes", 1, 1ull << 44, 0, "bytes of files",                                \
              "total size of the files that a load reads")                                                             \
    UIR_LIMIT(NODES, nodes, "nodes", 1, 1ull << 20, 0, "nodes", "nodes of a model")                                    \
    UIR_LIMIT(DEPTH, depth, "depth", 1, 100, 0, "levels of nested graphs", "levels of nested graphs, at most 100")     \
    UIR_LIMIT(KERNELS, kernels, "kernels", 1, 1ull << 16, 0, "different kernels", "different kernels of a model")      \
    UIR_LIMIT(WORK, work, "work", 1, UIR_NO_LIMIT, 0, "steps of the compiler",                                         \
              "steps of the compiler, about 10 million a second, the same on every machine")                           \
    UIR_LIMIT(FOLD_WORK, fold_work, "fold-work", 1, 1ull << 28, 64, "operations on constants",                         \
              "operations on constants at load; each run does the others")                                             \
    UIR_LIMIT(FOLD_BYTES, fold_bytes, "fold-bytes", 1, 256ull << 20, 64, "bytes of computed constants",                \
              "bytes of constants computed at load; each run computes the others")                                     \
    UIR_LIMIT(ELEMENTS, elements, "elements", 1, 1ull << 40, 0, "elements of a value", "elements of one value")        \
    UIR_LIMIT(COMPILER, compiler_milliseconds, "cc-seconds", 1000, 300000, 0,                                          \
              "milliseconds of a C compiler's processor time",                                                         \
              "processor time of the C compiler for each file (default 300)")                                          \
    UIR_LIMIT(DEVICE_MEMORY, device_memory, "device-memory", 1, UIR_NO_LIMIT, 0, "bytes of device memory",             \
              "bytes of a device's own memory that a run holds at once, with the weights, as in 500M or 8G")           \
    UIR_LIMIT(DEVICE_TIME, device_milliseconds, "wait-seconds", 1000, UIR_NO_LIMIT, 0,                                 \
              "milliseconds of one wait for a device", "time of one wait for a device, beyond which it is given up")
/* Limits of one operation: of a load, of the writing of a package, or of a session with each of its runs. 0 is the
 * default, which real models do not come near; UIR_NO_LIMIT is no limit. An operation beyond a limit ends with
 * UIR_STATUS_LIMIT. Its message names the limit, the work that exceeded it, and how to raise it. The operation leaves
 * nothing behind, as after a cancel. */
typedef struct uir_limits {
    size_t struct_size;
    /* Wall time, of a load with the compile of its kernels; default: none. */
    uint64_t milliseconds;
    /* Bytes allocated or mapped at once. If it is given, compiler processes may use the rest. Default: 2 GiB plus 16
     * for each byte of the model's files, or of the package; of sessions: none. */
    uint64_t memory;
    uint64_t file_bytes; /* total size of the files that are read; default: 16 TiB */
    uint64_t nodes;      /* nodes of the model, with those of bodies and of inlined functions; default: 2^20 */
    uint64_t depth;      /* levels of nested graphs; default and maximum: 100 */
    uint64_t kernels;    /* different kernels; default: 2^16 */
    uint64_t work;       /* steps of the compiler, each about 100 ns, the same on every machine; default: none */
    /* Operations on constants that the load does once for all runs; each run does the others. Default: 2^28 plus 64 for
     * each byte of the model's files. */
    uint64_t fold_work;
    /* Bytes of the constants that the load computes; each run computes the others. Default: 256 MiB plus 64 for each
     * byte of the model's files. */
    uint64_t fold_bytes;
    uint64_t elements; /* elements of one value; default: 2^40 */
    /* Processor time of each call of the C compiler, however busy the machine is. A call beyond it is ended, and the VM
     * runs the kernels. Default: 300 s. */
    uint64_t compiler_milliseconds;
    /* Bytes of memory of a device with memory of its own. Of a session: those that it holds at once, with the model's
     * weights, which sessions share; the `device_bytes` of uir_run_statistics is enough for the same runs of a new
     * session. Of a load: the weights. Default: none. */
    uint64_t device_memory;
    /* Time of one wait for a device, in a run. A device that takes longer is given up: it is lost for all sessions. */
    uint64_t device_milliseconds;
} uir_limits;

/* Sets limits of the context's values: `memory` of all existing values (default: none), `file_bytes` of each value
 * file, `elements`, and `device_memory` of all values on devices. Other members do not apply. NULL: the defaults.
 * INVALID_ARGUMENT if the context has values. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_set_value_limits(uir_context *context, const uir_limits *limits);

/* ---- values -------------------------------------------------------------------------------------------------- */
typedef enum uir_value_kind { UIR_VALUE_TENSOR, UIR_VALUE_SEQUENCE, UIR_VALUE_OPTIONAL } uir_value_kind;

/* Creates a tensor of zeros or empty strings. `shape` has `rank` extents >= 0; it is copied. INVALID_ARGUMENT for an
 * invalid type or shape. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_create_tensor(uir_context *context, uir_dtype dtype, uint32_t rank,
                                                           const int64_t *shape, uir_value **out_value);
/* Creates a tensor that borrows `data` (row-major, packed), which must outlive the value. INVALID_ARGUMENT if `size`,
 * in bytes, does not match exactly. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_create_tensor_borrowed(uir_context *context, uir_dtype dtype,
                                                                    uint32_t rank, const int64_t *shape,
                                                                    const void *data, size_t size,
                                                                    uir_value **out_value);
/* Destroys a value; not for borrowed values, which are elements of another value and outputs of a session. */
UIR_API void uir_value_destroy(uir_value *value);
UIR_API uir_value_kind uir_value_get_kind(const uir_value *value);
UIR_API uir_dtype uir_value_get_dtype(const uir_value *value); /* of a sequence: of its elements */
/* Of a tensor; of other values 0 and NULL. Shape and data live as long as the value. Data is row-major and packed;
 * elements of strings are uir_string_view. */
UIR_API uint32_t uir_value_get_rank(const uir_value *value);
UIR_API const int64_t *uir_value_get_shape(const uir_value *value);
UIR_API uint64_t uir_value_get_element_count(const uir_value *value);
UIR_API size_t uir_value_get_byte_size(const uir_value *value);
UIR_API void *uir_value_get_data(uir_value *value);
/* Elements of a sequence, or of an optional (0 or 1), borrowed: they live as long as `value`. NULL past the end. */
UIR_API size_t uir_value_get_count(const uir_value *value);
UIR_API uir_value *uir_value_get_element(const uir_value *value, size_t index);
/* Element `index` of a tensor (row-major) as a double. Booleans are 0 or 1; strings, complex numbers and elements past
 * the end are 0. */
UIR_API double uir_value_get_double(const uir_value *value, uint64_t index);
/* Copies a text into element `index` of a string tensor; the former view of the element becomes invalid.
 * INVALID_ARGUMENT for other values, or past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_set_string(uir_value *value, uint64_t index, const char *text,
                                                        size_t length);
/* Fills a tensor with uniform values from a seed: floats in [low, high), integers in [low, high], booleans 0 or 1.
 * INVALID_ARGUMENT for strings, complex numbers, borrowed data and values other than tensors. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_fill_random(uir_value *value, uint64_t seed, double low, double high);

/* Reads a value from a file. The ending of its name is the format: .pb (TensorProto, SequenceProto or OptionalProto, by
 * `expected_kind`), .npy, .npz (`member` names the array), .png .jpg .jpeg .ppm .bmp (u8 [height, width, channels],
 * without alpha). Formats other than .pb ignore `expected_kind`. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_load_file(uir_context *context, const char *path, const char *member,
                                                       uir_value_kind expected_kind, uir_value **out_value);
/* Reads a tensor from a file of raw bytes. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_load_raw(uir_context *context, const char *path, uir_dtype dtype,
                                                      uint32_t rank, const int64_t *shape, uir_value **out_value);
/* The name in the .pb file that the value was read from; "" if there is none. It lives as long as the value. */
UIR_API const char *uir_value_get_name(const uir_value *value);
/* Writes a value as .pb or .npy, by the ending of the path; a .pb stores `name`. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_save_file(uir_context *context, const uir_value *value, const char *path,
                                                       const char *name);

/* Result of a comparison of two values. Floats agree within atol + atol_relative_to_max * max|expected| + rtol *
 * |expected|; NaN equals NaN, an infinity equals itself. Integers agree within `integers`. Booleans, strings, dtype,
 * kind and shape must be equal. */
typedef struct uir_comparison {
    size_t struct_size;
    bool agree;
    double max_abs;       /* greatest |actual - expected| of finite pairs */
    double max_rel;       /* greatest |actual - expected| / |expected| of finite pairs with expected != 0 */
    uint64_t differing;   /* elements out of tolerance */
    uint64_t first_index; /* index of the first of these, row-major */
    char text[256];       /* the difference; "" if the values agree */
    uint64_t count;       /* elements compared; a complex number counts as two */
    /* Cosine of the angle between the values, over finite pairs. 1 if all elements are zero, 0 if those of one are;
     * NaN: none. */
    double cosine;
    /* The tolerance of the floats, of a sequence that of its last tensor; 0 if there is none.
     * rtol: that of uir_tolerance, or the default.
     * atol: the whole absolute part, with atol_relative_to_max * max|expected|. */
    double rtol, atol;
} uir_comparison;
/* A tolerance. A negative rtol or atol_relative_to_max is replaced by that of the expected dtype
 * (uir_dtype_get_tolerance). */
typedef struct uir_tolerance {
    size_t struct_size;
    double rtol, atol, atol_relative_to_max; /* of floats */
    double integers;                         /* greatest difference of integers */
} uir_tolerance;
/* Default tolerance of a dtype, for results that are sums of rounded numbers in another order.
 *   - f32: rtol 1e-3, atol_relative_to_max 1e-4
 *   - f16, bf16: 4 epsilons (0.0039, 0.031) for both
 *   - f64: 2^-26, half of its digits, for both
 *   - floats of 8 bits and less: rtol of one epsilon, which is a neighbour
 *   - complex: that of its parts
 *   - others: exact */
UIR_API UIR_WARN_UNUSED uir_status uir_dtype_get_tolerance(uir_dtype dtype, uir_tolerance *out_tolerance);
/* Compares two values; OK whether or not they agree. `tolerance` NULL: the default of the dtype. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_compare(const uir_value *actual, const uir_value *expected,
                                                     const uir_tolerance *tolerance, uir_comparison *out_comparison);

/* ---- models -------------------------------------------------------------------------------------------------- */
/* A size for a symbolic dim. */
typedef struct uir_dim_binding {
    const char *name; /* name of the dim in the model */
    int64_t value;
} uir_dim_binding;

/* Options of a load. Pointers may be NULL, the default. */
typedef struct uir_model_options {
    size_t struct_size;
    /* Reports the progress of the load, and of each uir_model_wait after it, in at most 100 calls each. The thread that
     * loads or waits makes the calls. Returning true before the last call cancels.
     * stage: name of the current work; it lives until the call returns.
     * fraction: of the whole; begins at 0, never falls, and is 1 in the last call, after all work. A failed operation
     * makes no call with 1. */
    bool (*progress)(void *user, const char *stage, double fraction);
    void *progress_user; /* first argument of `progress`; both must live as long as the model */
    /* Device that runs the model: "cpu", "cpu:avx2" (a variant), "vm", "null" (a simulation, for tests; "null:f32", a
     * chip of it), "interpreter";
     * NULL: "cpu". The interpreter runs a model that the device cannot run as a whole: uir_model_info has the reason.
     */
    const char *device;
    bool wait; /* the load returns after the kernels are compiled; else the VM runs the model until they are */
    /* Folder of compiled kernels, owned by the user; NULL: $XDG_CACHE_HOME/uir, else ~/.cache/uir. Failures of the
     * cache are warnings. */
    const char *cache;
    bool no_cache;
    uint64_t cache_limit;                  /* bytes; 0: 8 GiB */
    const struct uir_debug_options *debug; /* of tools.h; NULL: none */
    /* Folder that is searched first for external data; NULL: none. NOT_FOUND if the folder does not exist. */
    const char *external_data;
    /* Names of values, or of nodes, whose values become outputs after the model's own, on every device. Names are those
     * of the file; a node without a name has that of its first output. INVALID_ARGUMENT for an unknown name. Kept
     * values are computed and rounded as outputs are. */
    const char *const *keep;
    size_t keep_count;
    /* Keeps the values of all nodes of the main graph but strings, sequences and optionals, which `keep` can name. */
    bool keep_all;
    /* Loads a model for inspection, even if a part of it is not supported. The model has the ports that the file
     * declares, problems are messages, and it cannot be run. */
    bool describe;
    bool no_fusion; /* no kernel computes more than one node of the model; a node may have several kernels */
    /* A flag that another thread or a signal handler may set. While it is set, the load and each uir_model_wait soon
     * end with CANCELLED. A cancelled load leaves nothing behind but finished parts in the cache. Must live as long as
     * the model. */
    const volatile bool *cancel;
    /* True: files and cache entries are always copied, and later changes of the files do not affect the model. False:
     * files that only the caller can change are mapped (the caller owns them, and others cannot write to them); others
     * are copied. Truncating a mapped file during a run ends the process with SIGBUS. A run returns BAD_FILE if a
     * mapped file was truncated or written to before it. */
    bool no_map;
    const uir_limits *limits; /* NULL: defaults; copied */
    /* True: every operator is computed by the formula that defines it. False: convolutions of 3 x 3 may use Winograd's
     * formula, with fewer multiplications. Its results differ by rounding, and an infinity or NaN reaches up to three
     * elements further. */
    bool exact;
    /* Compiles the kernels for `device` and runs them on the kernels' interpreter, slowly, without the machine. The
     * device may be any that this build describes, as "ascend" or "cuda:sm_80"; NULL: the first of `device_text`. The
     * `ran_on` of uir_run_statistics names it. */
    bool interpret;
    const char *device_text;      /* descriptions of further machines, with `interpret`; NULL: none */
    const char *device_text_name; /* name of their file, for messages; NULL: none */
    /* Operand type of products of f32 (matrices, convolutions). uir_model_info has the result.
     * "f32", NULL: f32.
     * "f16", "bf16": rounds operands to this type if the device multiplies it by its description (a CPU: constants
     * only). Sums and results stay f32. Results beyond f16's 65504 become infinite as operands of a later product.
     * "auto": f16, or bf16 if a constant is out of f16's range, if the device multiplies it faster than f32.
     * INVALID_ARGUMENT for other words, and for a type that the device does not multiply, as the interpreter. */
    const char *precision;
    bool strict; /* contradictions of declared shapes and faults of the compiler are errors; else warnings */
    /* Names of inputs with a default (ONNX: an initializer of an input's name) that stay inputs, without the default,
     * at their place in the file's order. All other inputs with a default become constants of the model, and kernels
     * are compiled for their values; files of IR versions before 4 list all weights so. Names of inputs
     * without a default change nothing. INVALID_ARGUMENT for other names. uir_model_get_default lists the inputs with a
     * default. */
    const char *const *overrides;
    size_t override_count;
    /* An opened device, which runs the model and stays open for it; `device` is then NULL or its name. NULL: `device`
     * is opened for this model alone. INVALID_ARGUMENT for another name, and with `interpret`. */
    uir_device *opened;
    /* UNSUPPORTED, with the first nodes, if a device with memory of its own cannot compute a node. False: the host
     * does, with copies and one warning. Nodes that only compute sizes and conditions are the host's on all devices. */
    bool no_fallback;
} uir_model_options;
/* Loads, checks and prepares a model. Every problem is a message; UIR_STATUS_UNSUPPORTED means that all of them are
 * unsupported features. `options` may be NULL. External data must be in the folder of `path`, in that of its real path,
 * or in the options' `external_data`, after all links are followed. Files elsewhere are refused. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_load_file(uir_context *context, const char *path,
                                                       const uir_model_options *options, uir_model **out_model);
/* Loads a model from memory, which is copied as needed. `folder` has the external data; NULL: only the options'
 * `external_data` may have it. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_load_memory(uir_context *context, const void *data, size_t size,
                                                         const char *folder, const uir_model_options *options,
                                                         uir_model **out_model);
/* Destroys a model. Its sessions must be destroyed before. */
UIR_API void uir_model_destroy(uir_model *model);
/* Waits until the kernels are compiled. The options' `progress` reports it, with a fraction above 0 once this process
 * has compiled a part. DEVICE_FAILED, with a message, if the compile failed; CANCELLED if `progress` or `cancel` ended
 * it. The VM then continues to run the model. Compiled parts are kept in the cache, also if the model is destroyed: the
 * next load continues from there. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_wait(uir_model *model);

/* ---- packages: models compiled ahead ------------------------------------------------------------------------- */
#define UIR_PACKAGE_MAGIC "UIRPACK\n" /* the first 8 bytes of a package */
/* Options to open a package. */
typedef struct uir_package_open_options {
    size_t struct_size;
    bool trusted;                /* native code in the package may run in this process; else the VM runs its kernels */
    const char *device;          /* "cpu", "vm", or the device of the package, as "null"; NULL: "cpu" */
    bool no_map;                 /* as in uir_model_options */
    const uir_limits *limits;    /* of opening the package; NULL: defaults */
    const volatile bool *cancel; /* as in uir_model_options, while the package is opened */
    /* Files of public keys (uir_package_make_key). If there are any, the package must be signed with one of them; else
     * it is not opened, whatever `trusted` is: BAD_FILE with a message. The native code of a signed package may run.
     * The file is copied, and the checked bytes are used. libsodium checks the signature; libuir_rt loads it when
     * needed. UNSUPPORTED if it cannot be loaded. */
    const char *const *trust;
    size_t trust_count;
    uir_device *opened; /* as in uir_model_options */
    bool no_fallback;   /* as in uir_model_options */
} uir_package_open_options;
/* Opens a package as a model, without a compiler. The file is mapped or copied, and validated; its constants are
 * checked when a run first reads them. It must not change while it is open (replacing it by rename is fine). `options`
 * may be NULL: not trusted. BAD_FILE if the file is not a package of this version. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_open_package_file(uir_context *context, const char *path,
                                                               const uir_package_open_options *options,
                                                               uir_model **out_model);

/* Options to write a package. */
typedef struct uir_package_write_options {
    size_t struct_size;
    /* Devices of the package: "cpu", "cpu:avx2", "vm"; none: "cpu". The first decides the tile sizes. Each "cpu" adds
     * native code for its variant. The VM's form is always included. */
    const char *const *devices;
    size_t device_count;
    bool no_native;                                                   /* no native code: the VM runs the package */
    bool (*progress)(void *user, const char *stage, double fraction); /* as in uir_model_options */
    void *progress_user;
    const volatile bool *cancel;    /* as in uir_model_options; a cancelled write leaves no file */
    const uir_tolerance *tolerance; /* tolerance of the results, stored in the package; NULL: none */
    const char *external_data;      /* as in uir_model_options */
    bool no_map;                    /* likewise */
    const uir_limits *limits;       /* NULL: defaults */
    const char *sign_key;           /* file of the secret key that signs the package; NULL: unsigned */
    /* Uses the tile sizes that uir_model_tune_file (uir/tools.h) found best on this machine for the first device, and
     * stored in the cache. Results are the same bits; the package's bytes depend on the cache. A warning if the cache
     * has no tuning record for any of its kernels. */
    bool tuned;
    const char *cache;     /* with `tuned`, as in uir_model_options */
    bool exact;            /* as in uir_model_options */
    const char *precision; /* as in uir_model_options, for the first device */
    bool strict;           /* contradictions of declared shapes are errors; faults of the compiler always are, here */
    const char *const *overrides; /* as in uir_model_options; inputs of a package cannot be overridden later */
    size_t override_count;
    bool no_fallback; /* as in uir_model_options: no file is written */
} uir_package_write_options;

/* Facts of a written package. */
typedef struct uir_package_info {
    size_t struct_size;
    uint64_t size;         /* bytes of the file */
    uint32_t kernel_count; /* different kernels */
    uint32_t native_count; /* variants of native code */
    double compile_ms;     /* time of the compile */
    bool has_program;      /* of the kernels, which the device's own compiler builds when the package is opened */
} uir_package_info;
/* Compiles an ONNX file to a package. The same model, devices and compiler produce the same bytes on every machine. The
 * file is written whole or not at all. UNSUPPORTED, with a message for each, if nodes have no kernel. `options` and
 * `out_info` may be NULL. Only in libuir. */
UIR_API UIR_WARN_UNUSED uir_status uir_package_write_file(uir_context *context, const char *model_path,
                                                          const char *package_path,
                                                          const uir_package_write_options *options,
                                                          uir_package_info *out_info);

/* Writes a key pair: the secret key `path`, which signs and which only its owner can read, and the public key
 * `path`.pub, which checks signatures. IO_FAILED if either file exists. Only in libuir. */
UIR_API UIR_WARN_UNUSED uir_status uir_package_make_key(uir_context *context, const char *path);

/* Native code in a package. */
typedef struct uir_native_code {
    size_t struct_size;
    const char *isa; /* "avx2"; lives as long as the model */
    uint64_t size;   /* bytes */
    bool runs_here;  /* this machine can run it, if the package is trusted and opened for its device */
} uir_native_code;
/* Native code of the model's package, by index; NOT_FOUND, without a message, past the last and for models that are not
 * packages. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_native_code(const uir_model *model, size_t index,
                                                             uir_native_code *out_code);

/* An input or output of a model. Its texts and arrays live as long as the model. */
typedef struct uir_port {
    size_t struct_size;
    const char *name;
    uir_value_kind kind;
    uir_dtype dtype;
    bool rank_known;
    uint32_t rank;
    const int64_t *dims;          /* extents; -1: free */
    const char *const *dim_names; /* names or expressions of free dims, as "batch" or "past + sequence"; else "" */
    /* Keys of the columns, numbers among them as text; NULL: none. An output that the model declares as a list of maps
     * of the same keys (ZipMap of ai.onnx.ml) has them. It is the tensor [rows, keys] of the maps' values. */
    const char *const *keys;
    size_t key_count;
} uir_port;
UIR_API size_t uir_model_input_count(const uir_model *model);
UIR_API size_t uir_model_output_count(const uir_model *model);
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_input(const uir_model *model, size_t index, uir_port *out_port);
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_output(const uir_model *model, size_t index, uir_port *out_port);
/* Names of inputs and outputs; "" past the end. They live as long as the model. */
UIR_API const char *uir_model_get_input_name(const uir_model *model, size_t index);
UIR_API const char *uir_model_get_output_name(const uir_model *model, size_t index);
/* Index of the input or output of exactly this name. NOT_FOUND, with a message that lists the names; `out_index` is
 * then unchanged. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_find_input(const uir_model *model, const char *name, size_t *out_index);
UIR_API UIR_WARN_UNUSED uir_status uir_model_find_output(const uir_model *model, const char *name, size_t *out_index);
/* Contents of the model's file; of a package, those noted of the file that it was made from. Texts live as long as the
 * model. */
typedef struct uir_model_contents {
    size_t struct_size;
    const char *producer_version, *domain, *graph; /* "" if the file has none */
    int64_t model_version;
    uint64_t parameter_count; /* elements of initializers, including those in bodies */
    uint64_t weight_bytes;    /* bytes of these initializers in the file's form */
    uint64_t external_bytes;  /* bytes of these in files of external data */
    uint32_t function_count;  /* local functions */
    uint32_t package_version; /* version of the package format; 0: not a package */
    /* Bytes of constants in the kernels' layouts, in the package or its cache entry; 0: neither exists. */
    uint64_t package_weight_bytes;
    const char *made_by;       /* of a package: "uir 0.1.0"; else "" */
    const char *signed_by;     /* of a package: the public key of its signature in hexadecimal digits; "": unsigned */
    bool signature_is_checked; /* the signature was checked with a key that the caller trusts */
} uir_model_contents;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_contents(const uir_model *model, uir_model_contents *out_contents);
/* An opset that the file imports. */
typedef struct uir_opset {
    size_t struct_size;
    const char *domain; /* as in the file: "" and "ai.onnx" are the same; lives as long as the model */
    int64_t version;
} uir_opset;
/* Opset `index`, in the file's order; NOT_FOUND, without a message, past the last. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_opset(const uir_model *model, size_t index, uir_opset *out_opset);
/* How many nodes of the file have an op: nodes of bodies count, and those of each local function once. */
typedef struct uir_op_count {
    size_t struct_size;
    const char *domain, *op; /* domain "": ai.onnx; both live as long as the model */
    uint64_t count;
} uir_op_count;
/* Op `index`, the most used first; NOT_FOUND, without a message, past the last. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_op_count(const uir_model *model, size_t index,
                                                          uir_op_count *out_count);
/* A pair of the file's metadata. */
typedef struct uir_metadata {
    size_t struct_size;
    const char *key, *value; /* live as long as the model */
} uir_metadata;
/* Pair `index`, in the file's order; NOT_FOUND, without a message, past the last. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_metadata_at(const uir_model *model, size_t index,
                                                             uir_metadata *out_metadata);
/* The node that computes an output. */
typedef struct uir_output_maker {
    size_t struct_size;
    /* Name and op as in the file; "": none, or unknown. They live as long as the model. */
    const char *node, *op;
    uint32_t place; /* of the node in the model's order, from 1; 0: unknown */
    bool is_kept;   /* an output by `keep` only, not in the file */
} uir_output_maker;
/* The node of output `index`; NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_output_maker(const uir_model *model, size_t index,
                                                              uir_output_maker *out_maker);
/* An input with a default in the file. */
typedef struct uir_default {
    size_t struct_size;
    const char *name;   /* lives as long as the model */
    uint32_t place;     /* among all inputs that the file lists, including those with a default, from 0 */
    bool is_overridden; /* an input of this model, by `overrides`; else a constant */
} uir_default;
/* Input `index` of those with a default, in the file's order; NOT_FOUND, without a message, past the last. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_default(const uir_model *model, size_t index,
                                                         uir_default *out_default);
/* Extents of input `index` for the given sizes of named dims; other free dims are 1. `out_dims` has as many elements as
 * the input's rank. NOT_FOUND, with a message, for a binding of an unknown dim. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_input_shape(const uir_model *model, size_t index,
                                                             const uir_dim_binding *bindings, size_t binding_count,
                                                             int64_t *out_dims);
/* Value of a metadata key ("character" -> "...") of the file; NULL if it is absent. It lives as long as the model. */
UIR_API const char *uir_model_get_metadata(const uir_model *model, const char *key);
/* The tolerance that a package was written with. NOT_FOUND, without a message, if there is none; `out_tolerance` is
 * then unchanged. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_tolerance(const uir_model *model, uir_tolerance *out_tolerance);

/* Facts of a loaded model. Texts live as long as the model. */
typedef struct uir_model_info {
    size_t struct_size;
    const char *producer;
    int64_t ir_version;
    int64_t opset; /* of ai.onnx */
    uint32_t onnx_node_count;
    uint32_t primitive_count;  /* primitives after decomposition and clean-up */
    double load_ms;            /* time of reading and parsing */
    double compile_ms;         /* time from there to kernels that run */
    const char *device;        /* "cpu", "vm", "null", "opencl" or "interpreter" */
    const char *why;           /* why the interpreter runs the model instead of the requested device; else "" */
    uint32_t kernel_count;     /* different kernels */
    uint32_t compiled_kernels; /* those that this process has compiled so far */
    /* Layouts and formulas of a model that kernels run; 0 on the interpreter.
     * laid_out_count: intermediate tensors in a layout other than row-major (images: channels-last).
     * conversion_count: layout conversions, by kernels of their own or within others.
     * winograd_count: convolutions by Winograd's formula. */
    uint32_t laid_out_count, conversion_count, winograd_count;
    const char *precision; /* the requested precision */
    /* Products of f32 of a model that kernels run; 0 on the interpreter. product_count: all of them.
     * f16_count, bf16_count: those whose operands have this type by `precision`.
     * out_of_range_count: those that stay f32, since a constant is out of the range of these types. */
    uint32_t product_count, f16_count, bf16_count, out_of_range_count;
    /* Kernels that the compiler refused itself, each a fault of the compiler, with a warning. Smaller kernels, or the
     * interpreter, run their nodes. 0 after a `strict` load. */
    uint32_t fault_count;
    const char *native_why; /* why the kernels cannot be compiled, which the load has reported; else "" */
    /* Of a device with memory of its own: groups of nodes, and host operators, that the host computes because the
     * device cannot, with a warning at the load. Those that only compute sizes and conditions are not counted. */
    uint32_t host_group_count, host_operator_count;
    const char *device_code; /* what a driver that compiles kernels made them of: "its source", "the cache"; else "" */
} uir_model_info;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_info(const uir_model *model, uir_model_info *out_info);

/* Empties the cache in `folder`; NULL: the default one. `out_bytes` gets the freed bytes; it may be NULL. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_clear_cache(uir_context *context, const char *folder,
                                                           uint64_t *out_bytes);

/* Name of a device of this build, which lives as long as the program; NULL past the end. */
UIR_API const char *uir_device_name(size_t index);

/* ---- sessions ------------------------------------------------------------------------------------------------ */
/* Options of a session. */
typedef struct uir_session_options {
    size_t struct_size;
    const char *device; /* NULL: the default */
    uint32_t threads;   /* 0: the cores that affinity and cgroup quota allow */
    /* Runs the session's work on the caller's threads; NULL: the session has its own. It calls task(context, i) once
     * for each i < count (at most `threads`), on any threads, in parallel or in sequence. It returns after all have
     * ended. The thread that runs the session calls it, as long as the session lives. */
    void (*parallel)(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context);
    void *parallel_user;      /* first argument of `parallel` */
    bool trace;               /* each run records its steps by thread: uir_session_get_trace_slice in uir/tools.h */
    const uir_limits *limits; /* of each run, and of the session's memory; NULL: defaults; copied */
    /* Each run of a model with `interpret` estimates its kernels' traffic and time on their machine:
     * uir_session_get_estimate in uir/tools.h. */
    bool estimate;
    /* Each run on a device with queues records when these execute its steps, as slices of queues:
     * uir_session_get_trace_slice in uir/tools.h. `trace` does so too. */
    bool queue_times;
} uir_session_options;
/* Creates a session, which runs the model. `options` may be NULL. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_create(uir_model *model, const uir_session_options *options,
                                                      uir_session **out_session);
/* Waits for a run in flight. */
UIR_API void uir_session_destroy(uir_session *session);
/* Binds an input to a value, until another is bound. The session keeps no copy: `value` must live until the last run
 * with it has ended. The call checks dtype and shape; the run checks dims that several inputs share. A value of the
 * model's device is read there, without a copy; its memory stays until another is bound. INVALID_ARGUMENT for a value
 * of another device. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_set_input(uir_session *session, size_t index, uir_value *value);
/* Binds an input to the caller's memory, which every run reads until another is bound; the call copies nothing.
 *   - shape: `rank` extents >= 0.
 *   - strides: per axis, in elements, >= 0; NULL: packed, row-major.
 *   - capacity: bytes at `data` that may be read.
 * Packed elements are read in place. So is a cache that an output of the model appends to along one axis: its strides
 * are packed but for the capacity of that axis, and `capacity` covers it. With other strides each run copies the
 * elements. BAD_DATA for a shape that the model excludes; INVALID_ARGUMENT for a buffer that is too small; UNSUPPORTED
 * for inputs other than tensors of fixed-size elements. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_input(uir_session *session, size_t index, uint32_t rank,
                                                          const int64_t *shape, const int64_t *strides,
                                                          const void *data, size_t capacity);
/* Binds output `index` to the caller's `capacity` bytes at `data`. Every run writes the result there until another
 * buffer is bound, and the output's value borrows it. `data` may be that of an input's value. NULL: memory of the
 * session again. A run with a larger result fails with INVALID_ARGUMENT. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_output(uir_session *session, size_t index, void *data,
                                                           size_t capacity);
/* The same with strides, per axis in elements and >= 0, as many as the output's rank; no two elements may have the same
 * address. A cache grows in place if the input (`past`) and the output that appends to it (`present`) are bound to the
 * same memory with the same strides. Their capacity is for the greatest length. A run then writes only the new rows.
 * The value of such an output is a packed copy, made by uir_session_get_output. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_output_strided(uir_session *session, size_t index, uint32_t rank,
                                                                   const int64_t *strides, void *data, size_t capacity);
/* Shape of an input. */
typedef struct uir_input_shape {
    uint32_t rank;
    const int64_t *dims;
} uir_input_shape;
/* Shape of output `index` for inputs of the given shapes, one for each input of the model, in order. `out_dims` gets an
 * extent for each axis of the output, -1 if it depends on data. Nothing runs; bound inputs and outputs do not change.
 * BAD_DATA, with a message, for shapes that a run would refuse; INVALID_ARGUMENT for a wrong number of shapes or an
 * unknown output; UNSUPPORTED if an input or the output is not a tensor, or the output's rank depends on data. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_output_shape(uir_session *session,
                                                                const uir_input_shape *input_shapes, size_t input_count,
                                                                size_t index, int64_t *out_dims);
/* Runs the model on the bound inputs. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_run(uir_session *session);
/* Begins a run on the bound inputs and returns at once; a thread of the session, made by the first call, runs it. The
 * run is in flight until uir_session_wait. Until then only uir_session_poll, _wait, _cancel and _destroy may be called
 * for the session: others return INVALID_ARGUMENT with a message, as this one does. Inputs and the memory of outputs
 * must live until then. `parallel` of the session's options is called by the thread of the session. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_submit(uir_session *session);
/* Whether uir_session_wait would return at once: the submitted run has ended, or none is in flight. */
UIR_API bool uir_session_poll(const uir_session *session);
/* Waits for the submitted run to end; returns its status, and reports its messages, as uir_session_run would.
 * INVALID_ARGUMENT, with a message, if no run is in flight. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_wait(uir_session *session);
/* Makes a run on another thread, or in flight, end soon with UIR_STATUS_CANCELLED; a signal handler may call it. If no
 * run is active, the next one ends so. The request ends with that run; of a run in flight, with uir_session_wait. */
UIR_API void uir_session_cancel(uir_session *session);
/* Value of output `index`. It is borrowed and lives, with its shape and data, until the next run or the session's end.
 * Data of a bound output is in its buffer. INVALID_ARGUMENT before a successful run. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_output(uir_session *session, size_t index, uir_value **out_value);

/* Facts of the last run. */
typedef struct uir_run_statistics {
    size_t struct_size;
    /* Engine of the run: "interpreter", "vm", "cpu", "null", "interpreter of ascend kernels"; lives as long as the
     * model. */
    const char *ran_on;
    double run_ms;
    uint64_t peak_bytes;        /* greatest size of all tensors of the run at one time */
    uint64_t interpreter_calls; /* nodes that the interpreter computed */
    /* native_calls, vm_calls: kernels that ran as native code, and on the VM.
     * vendor_calls: calls of a vendor's library.
     * host_calls: nodes that host operators computed. */
    uint64_t native_calls, vm_calls, vendor_calls, host_calls;
    /* groups: launches of kernels.
     * kernels: different kernels.
     * phases: phases of all launches. */
    uint64_t groups, kernels, phases;
    uint64_t dram_bytes; /* bytes of the tensors that kernels read and wrote */
    uint64_t threads;    /* threads of the session */
    /* Of a device with memory of its own; else 0.
     * device_calls: kernels that it executed.
     * copies: copies between its memory and the host's, or within it.
     * waits: times that the host waited for it.
     * bytes_to_device, bytes_from_device: bytes of the copies between its memory and the host's.
     * device_bytes: the most of its memory that the session has held at once, with the model's weights. */
    uint64_t device_calls, copies, waits, bytes_to_device, bytes_from_device, device_bytes;
} uir_run_statistics;
/* Statistics of the last run. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_statistics(const uir_session *session,
                                                              uir_run_statistics *out_statistics);

#ifdef __cplusplus
}
#endif

#endif
