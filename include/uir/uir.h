/* uir: a tensor compiler and deployment runtime for ONNX models. The public C API.
 *
 * In: a model file or its bytes, input tensors. Out: output tensors, messages, statistics. Anything not in this header
 * is not API; tools.h beside it is for tools that look inside, and promises nothing. Nothing here prints, exits or
 * keeps global state; every object belongs to a context.
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
 * Two libraries have it: libuir, and libuir_rt, which opens packages (uir_model_open_package_file) and has no compiler:
 * there what compiles is UNSUPPORTED, and value files are tensors in .npy and .pb.
 *
 * Structures that grow. A structure whose first member is `struct_size` may get more members at its end in a later
 * version, never in what was padding before; every other structure stays as it is. Programs and libraries of different
 * versions work together by this:
 *   - Who makes the structure sets struct_size to its sizeof; UIR_INIT(&structure) zeroes it and does that. 0 is
 *     INVALID_ARGUMENT.
 *   - What is given to the library (options): zero is the default of each member. A smaller struct_size is that of an
 *     older version, whose missing members are defaults. A larger one is that of a newer version: INVALID_ARGUMENT if a
 *     byte beyond what the library knows is not zero, for it asks for what this library does not do.
 *   - What the library fills (`out_`): the members that fit in struct_size. Bytes beyond what the library knows become
 *     zeros; struct_size stays.
 *   - What is handed to a callback: struct_size is the library's. A member is there when it lies within.
 *
 * Objects: what a uir_..._create, _load or _open gives belongs to the caller until its uir_..._destroy, and is NULL
 * where the call failed. NULL may be given to every uir_..._destroy, which then does nothing. All other pointers that
 * come out of the library belong to it; how long each lives is said where it comes from. What goes in by pointer is
 * needed until the call returns, unless it says more. Objects of several contexts may be used together.
 *
 * What does not name a version has been there since 0.1.0.
 *
 * Threads: a context may be used from several threads when each works on its own models and sessions; one model may
 * have sessions on several threads; one session is used by one thread at a time. */
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
/* The header's, to be compared with the library's, uir_version_number(). */
#define UIR_VERSION_NUMBER (UIR_VERSION_MAJOR * 1000000 + UIR_VERSION_MINOR * 1000 + UIR_VERSION_PATCH)

#if defined(__GNUC__)
#define UIR_API         __attribute__((visibility("default")))
#define UIR_WARN_UNUSED __attribute__((warn_unused_result))
#else
#define UIR_API
#define UIR_WARN_UNUSED
#endif

/* Zeroes a structure that grows and sets its struct_size: uir_model_info info; UIR_INIT(&info); */
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

/* "ok"; what is no status has a text too. It lives as long as the program. */
UIR_API const char *uir_status_text(uir_status status);
UIR_API int uir_status_exit_code(uir_status status); /* of uir-run and the others, by the table */
/* Of the library that the program runs with: "0.1.0", which lives as long as the program, and UIR_VERSION_NUMBER as it
 * was then. */
UIR_API const char *uir_version(void);
UIR_API uint32_t uir_version_number(void);

typedef enum uir_severity { UIR_SEVERITY_NOTE, UIR_SEVERITY_WARNING, UIR_SEVERITY_ERROR } uir_severity;

/* Memory. One function does all: pointer NULL allocates, new_size 0 releases (returns NULL), else resizes. Blocks are
 * aligned to 64 bytes. It returns NULL on failure, leaving the old block valid, and may be called from several threads.
 */
typedef struct uir_allocator {
    void *(*resize)(void *user, void *pointer, size_t old_size, size_t new_size);
    void *user;
} uir_allocator;

/* Element types: ONNX's TensorProto.DataType numbers. */
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

UIR_API const char *uir_dtype_get_name(uir_dtype dtype); /* "f32"; lives as long as the program */

/* A string element; not zero terminated. */
typedef struct uir_string_view {
    const char *text;
    size_t length;
} uir_string_view;

/* ---- context ------------------------------------------------------------------------------------------------ */
typedef struct uir_context uir_context;
typedef struct uir_model uir_model;
typedef struct uir_session uir_session;
typedef struct uir_value uir_value;

/* `allocator`, which is copied, may be NULL: the C library's. All memory comes from it but what reading a picture takes
 * for itself. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_create(const uir_allocator *allocator, uir_context **out_context);
/* Models, sessions and values of the context must be destroyed before. Messages end with it. */
UIR_API void uir_context_destroy(uir_context *context);

/* Messages, oldest first: everything that was said since the last clear, by whichever thread; of more than 10000 the
 * first. Texts live until the next uir_context_clear_messages, or the context's end. */
typedef struct uir_message {
    size_t struct_size;
    uir_severity severity;
    uir_status status;
    const char *text; /* complete: place, node, what is wrong, hint */
    const char *node; /* ONNX node name or NULL */
    const char *op;   /* op or NULL */
} uir_message;
UIR_API size_t uir_context_message_count(const uir_context *context);
/* INVALID_ARGUMENT, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_get_message(const uir_context *context, size_t index,
                                                           uir_message *out_message);
/* Its text alone, which lives as long; "" past the end. */
UIR_API const char *uir_context_get_message_text(const uir_context *context, size_t index);
UIR_API void uir_context_clear_messages(uir_context *context);
/* Messages are handed to `hear` instead of being kept: by the thread that made the call they are of, before that call
 * returns. So threads that share a context, or a model, tell theirs apart. The message and its texts live until `hear`
 * returns; threads may be in it at once; it may use the context, but not the object that the call is about. NULL: what
 * comes is kept again. To be set while no other thread uses the context. */
UIR_API void uir_context_set_message_callback(uir_context *context,
                                              void (*hear)(void *user, const uir_message *message), void *user);

/* ---- limits -------------------------------------------------------------------------------------------------- */
#define UIR_NO_LIMIT UINT64_MAX
/* The members of uir_limits, in their order: UIR_LIMIT(constant, field, option, scale, base, per_byte, what, help). The
 * command line tools have --limit-OPTION, times `scale`; the default is `base` and `per_byte` for each byte of the
 * files that are read. */
#define UIR_LIMIT_TABLE(UIR_LIMIT)                                                                                     \
    UIR_LIMIT(MILLISECONDS, milliseconds, "seconds", 1000, UIR_NO_LIMIT, 0, "time",                                    \
              "ends a load, with its compile, or a run, after so long")                                                \
    UIR_LIMIT(MEMORY, memory, "memory", 1, 2ull << 30, 16, "bytes of memory", "alive at once, as in 500M or 8G")       \
    UIR_LIMIT(FILE_BYTES, file_bytes, "file-bytes", 1, 1ull << 44, 0, "bytes of files",                                \
              "of all files that a load reads")                                                                        \
    UIR_LIMIT(NODES, nodes, "nodes", 1, 1ull << 20, 0, "nodes", "of a model")                                          \
    UIR_LIMIT(DEPTH, depth, "depth", 1, 100, 0, "graphs in graphs", "of graphs in graphs, 100 at most")                \
    UIR_LIMIT(KERNELS, kernels, "kernels", 1, 1ull << 16, 0, "different kernels", "different ones of a model")         \
    UIR_LIMIT(WORK, work, "work", 1, UIR_NO_LIMIT, 0, "steps of the compiler",                                         \
              "steps of the compiler, some 10 million a second, the same on every machine")                            \
    UIR_LIMIT(FOLD_WORK, fold_work, "fold-work", 1, 1ull << 28, 64, "operations on constants",                         \
              "operations on constants at load; those beyond are left to each run")                                    \
    UIR_LIMIT(FOLD_BYTES, fold_bytes, "fold-bytes", 1, 256ull << 20, 64, "bytes of computed constants",                \
              "of constants computed at load, likewise")                                                               \
    UIR_LIMIT(ELEMENTS, elements, "elements", 1, 1ull << 40, 0, "elements of a value", "of one value")                 \
    UIR_LIMIT(COMPILER, compiler_milliseconds, "cc-seconds", 1000, 300000, 0,                                    \
              "milliseconds of a C compiler's processor time",                                                         \
              "of processor time, for each file that the C compiler is given (default 300)")
/* What one operation may take: a load, the writing of a package, or all that a session holds and each of its runs. 0 is
 * the default, which real models do not come near; UIR_NO_LIMIT is none. What needs more ends with UIR_STATUS_LIMIT and
 * a message that names the limit, what needed more, and how it is raised; nothing is left of it, as after a cancel. */
typedef struct uir_limits {
    size_t struct_size;
    uint64_t milliseconds; /* wall time, of a load with the compile of its kernels; default: none */
    uint64_t memory;       /* bytes alive at once of all that is allocated or mapped; compilers have what is left of
                              it, where it is given; default: 2 GiB and 16 for each byte of the model's files, or the
                              package; of sessions: none */
    uint64_t file_bytes;   /* of all files that are read; default: 16 TiB */
    uint64_t nodes;        /* of the model, functions inlined and bodies with them; default: 2^20 */
    uint64_t depth;        /* of graphs in graphs; default and greatest: 100 */
    uint64_t kernels;      /* different ones; default: 2^16 */
    uint64_t work;         /* steps of the compiler, each some 100 ns; the same on every machine; default: none */
    uint64_t fold_work;  /* operations on constants that are done once for all runs; what is beyond is left to each run;
                            default: 2^28 and 64 for each byte of the model's files */
    uint64_t fold_bytes; /* of constants that are computed, likewise; default: 256 MiB and 64 for each byte */
    uint64_t elements;   /* of one value; default: 2^40 */
    uint64_t compiler_milliseconds; /* of processor time, which each call of the C compiler may take, however busy the
                                       machine is; one that takes more is ended, and the VM runs the kernels; default:
                                       300 s */
} uir_limits;

/* Limits of the context's values: `memory` of all that are alive, default: none; `file_bytes` of each file that one is
 * read from; `elements`. Others do not apply. NULL: the defaults. INVALID_ARGUMENT once there are values. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_set_value_limits(uir_context *context, const uir_limits *limits);

/* ---- values -------------------------------------------------------------------------------------------------- */
typedef enum uir_value_kind { UIR_VALUE_TENSOR, UIR_VALUE_SEQUENCE, UIR_VALUE_OPTIONAL } uir_value_kind;

/* A tensor with zeroed storage, a string one of empty strings. `shape` has `rank` extents >= 0; it is copied.
 * INVALID_ARGUMENT for what is no type, or no shape. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_create_tensor(uir_context *context, uir_dtype dtype, uint32_t rank,
                                                           const int64_t *shape, uir_value **out_value);
/* Borrows `data` (row-major, packed), which must outlive the value. `size` in bytes must match exactly: else
 * INVALID_ARGUMENT. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_create_tensor_borrowed(uir_context *context, uir_dtype dtype,
                                                                    uint32_t rank, const int64_t *shape,
                                                                    const void *data, size_t size,
                                                                    uir_value **out_value);
/* Not of what is borrowed: elements of another value, outputs of a session. */
UIR_API void uir_value_destroy(uir_value *value);
UIR_API uir_value_kind uir_value_get_kind(const uir_value *value);
UIR_API uir_dtype uir_value_get_dtype(const uir_value *value); /* of a sequence: of its elements */
/* Of a tensor; else 0 and NULL. The shape and the data live as long as the value; data are row-major and packed, of
 * strings uir_string_view. */
UIR_API uint32_t uir_value_get_rank(const uir_value *value);
UIR_API const int64_t *uir_value_get_shape(const uir_value *value);
UIR_API uint64_t uir_value_get_element_count(const uir_value *value);
UIR_API size_t uir_value_get_byte_size(const uir_value *value);
UIR_API void *uir_value_get_data(uir_value *value);
/* Elements of a sequence, or of an optional (0 or 1): borrowed, they live as long as `value`. NULL past the end. */
UIR_API size_t uir_value_get_count(const uir_value *value);
UIR_API uir_value *uir_value_get_element(const uir_value *value, size_t index);
/* Element `index` of a tensor (row-major) as a double; booleans 0 or 1; strings, complex and what is not
 * there give 0. */
UIR_API double uir_value_get_double(const uir_value *value, uint64_t index);
/* Copies into element `index` of a string tensor; the view that was there ends. INVALID_ARGUMENT for another value, or
 * past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_set_string(uir_value *value, uint64_t index, const char *text,
                                                        size_t length);
/* Seeded uniform values: floats in [low, high), integers in [low, high], booleans 0 or 1; the same for the same seed.
 * INVALID_ARGUMENT for strings, complex, borrowed data and what is no tensor. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_fill_random(uir_value *value, uint64_t seed, double low, double high);

/* Files. The format is taken from the file's name: .pb (TensorProto, SequenceProto or OptionalProto as `expected`
 * says), .npy, .npz (`member` names the array), .png .jpg .jpeg .ppm .bmp (u8 [height, width, channels], without
 * alpha). `expected_kind` matters for .pb only. Raw bytes need uir_value_load_raw. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_load_file(uir_context *context, const char *path, const char *member,
                                                       uir_value_kind expected_kind, uir_value **out_value);
UIR_API UIR_WARN_UNUSED uir_status uir_value_load_raw(uir_context *context, const char *path, uir_dtype dtype,
                                                      uint32_t rank, const int64_t *shape, uir_value **out_value);
/* The name stored inside a .pb file this value came from; "" when none. Lives as long as the value. */
UIR_API const char *uir_value_get_name(const uir_value *value);
/* Writes .pb or .npy by the path's ending; `name` is stored in a .pb. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_save_file(uir_context *context, const uir_value *value, const char *path,
                                                       const char *name);

/* How two values compare: every element within atol + atol_relative * max|expected| + rtol * |expected|; NaN equals
 * NaN, an infinity equals itself; integers within `integers`; booleans, strings, dtype, kind and shape exactly. */
typedef struct uir_comparison {
    size_t struct_size;
    bool agree;
    double max_abs;       /* greatest |actual - expected| over finite pairs */
    double max_rel;       /* greatest of that over |expected|, where expected is not 0 */
    uint64_t differing;   /* elements out of tolerance */
    uint64_t first_index; /* of those, row-major */
    char text[256];       /* what differs, "" when they agree */
    uint64_t count;       /* elements compared; a complex one is two */
    double cosine; /* of the angle between the two, over finite pairs (two of zeros alone: 1, one: 0); NaN where there
                      is none */
    double rtol,
        atol; /* applied to the floats (to the last tensor of a sequence); atol in full, 0 where there is none */
} uir_comparison;
/* A negative rtol or atol_relative_to_max stands for what the expected dtype has by uir_dtype_get_tolerance. */
typedef struct uir_tolerance {
    size_t struct_size;
    double rtol, atol, atol_relative_to_max; /* of floats */
    double integers;
} uir_tolerance;
/* What results of a model may differ by where nobody states it: they are sums in another order of numbers that were
 * rounded before. f32: rtol 1e-3 and 1e-4 of the greatest magnitude; f16 and bf16: 4 epsilons of either (0.0039,
 * 0.031); f64: half its digits (2^-26, of either); floats of 8 bits and less: one epsilon of rtol, which is a
 * neighbour; complex: as its parts; all else exactly. */
UIR_API UIR_WARN_UNUSED uir_status uir_dtype_get_tolerance(uir_dtype dtype, uir_tolerance *out_tolerance);
/* `tolerance` NULL: as uir_dtype_get_tolerance says. OK whether or not they agree. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_compare(const uir_value *actual, const uir_value *expected,
                                                     const uir_tolerance *tolerance, uir_comparison *out_comparison);

/* ---- models -------------------------------------------------------------------------------------------------- */
typedef struct uir_dim_binding {
    const char *name; /* the symbolic dim's name in the model */
    int64_t value;
} uir_dim_binding;

typedef struct uir_model_options {
    size_t struct_size;
    /* Told how far the load is, and each uir_model_wait after it: `fraction`, of the whole, begins at 0, never falls,
     * and is 1 in the last call, when all is done; where something failed that call does not come. `stage` names what
     * is being done, and lives until the call returns. At most 100 calls of each, by the thread that loads or waits.
     * Returning true before the last call cancels. May be NULL. */
    bool (*progress)(void *user, const char *stage, double fraction);
    void *progress_user; /* lives, as what `progress` points to, as long as the model */
    /* What runs it: "cpu", "cpu:avx2" (a variant of it), "vm", "interpreter"; NULL: "cpu". A model that the device
     * cannot run as a whole is run by the interpreter: uir_model_info says why. */
    const char *device;
    bool wait; /* the load returns when the kernels are compiled; else the VM runs while they are */
    /* Compiled kernels are kept in a folder of their owner's: NULL: $XDG_CACHE_HOME/uir, else ~/.cache/uir. What goes
     * wrong with it is a warning. */
    const char *cache;
    bool no_cache;
    uint64_t cache_limit;                  /* bytes; 0: 8 GiB */
    const struct uir_debug_options *debug; /* of tools.h; NULL: none */
    /* A folder in which external data is looked for first; NULL: none. NOT_FOUND when it is not there. */
    const char *external_data;
    /* Values that become outputs of the model after its own, on every device: those called `keep`, or made by the nodes
     * so called (as in the file; a node without a name is called after its first output); or all that nodes of the main
     * graph make. INVALID_ARGUMENT for what is no such name. What is kept is computed and rounded as an output is. */
    const char *const *keep;
    size_t keep_count;
    bool keep_all; /* but strings, sequences and optionals, which are kept when they are named */
    /* For who only wants to know what the file holds: a model of which a part is not supported is loaded all the same,
     * with the ports that the file declares and the problems as messages; it can be asked about, and not run. */
    bool describe;
    bool no_fusion; /* no kernel computes more than one node of the model; a node may take several */
    /* Set by another thread or a signal handler it ends the load, or a uir_model_wait, soon with CANCELLED; as long as
     * it is set, so it ends the next ones. Nothing is left of a load that was cancelled but parts that the cache keeps.
     * Lives as long as the model. May be NULL. */
    const volatile bool *cancel;
    /* Files are mapped where nobody but the caller can change them (he owns them, and others may not write to them),
     * else copied. An owner who cuts a mapped file short during a run ends the process with SIGBUS; when a run begins,
     * a mapped file that was cut or written to is BAD_FILE. True: they are always copied, as is what the cache has, and
     * what becomes of them later is nothing to the model. */
    bool no_map;
    const uir_limits *limits; /* NULL: defaults; copied */
    /* Every operator is computed by the formula that defines it. Else convolutions of 3 x 3 may take Winograd's, of
     * fewer multiplications: results differ by rounding, and an infinity or NaN reaches up to three elements further.
     */
    bool exact;
    /* The kernels are made for `device`, which may be any that this build describes, "ascend", "cuda:sm_80", or NULL
     * for the first one of `device_text`, and are run by their interpreter: to see what such a machine would compute,
     * slowly, without one. uir_run_statistics says so. */
    bool interpret;
    const char *device_text;      /* descriptions of machines besides this build's; with `interpret`; NULL: none */
    const char *device_text_name; /* of their file, for messages; NULL: none */
    /* What products of f32 (matrices, convolutions) multiply: "f32", or NULL: that; "f16" or "bf16": factors are rounded
     * to it where the device's description says that it multiplies it (a CPU: constants alone), sums and results stay
     * f32; "auto": f16, or bf16 where a constant leaves its range, where the device multiplies that faster than f32.
     * INVALID_ARGUMENT for another word, and for a type of which the device multiplies nothing, as the interpreter.
     * Results beyond f16's 65504 become infinite where they are multiplied next. uir_model_info says what came of it. */
    const char *precision;
    bool strict; /* contradictions of declared shapes and faults of the compiler are errors; else warnings */
    /* Inputs that have a default in the file (ONNX: an initializer of an input's name) are constants of the model, which
     * its kernels are made for: all weights of files of IR versions before 4 are such. Those named here are inputs
     * instead, at their place among the others in the file's order, and have no default then. Other inputs' names
     * change nothing; INVALID_ARGUMENT for what is no input. uir_model_get_default lists them. */
    const char *const *overrides;
    size_t override_count;
} uir_model_options;

/* Loads, checks and prepares a model. Every problem found is a message; UIR_STATUS_UNSUPPORTED means all of them are
 * unsupported features. `options` may be NULL. External data lies, when all links have been followed, in the folder of
 * `path`, in that of its real path, or in the options' `external_data`; what lies elsewhere is refused. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_load_file(uir_context *context, const char *path,
                                                       const uir_model_options *options, uir_model **out_model);
/* The same from memory, which is copied where it is needed. `folder` is where external data lies, or NULL: in the
 * options' `external_data`, if anywhere. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_load_memory(uir_context *context, const void *data, size_t size,
                                                         const char *folder, const uir_model_options *options,
                                                         uir_model **out_model);
/* Its sessions must be destroyed before. */
UIR_API void uir_model_destroy(uir_model *model);
/* Waits until the kernels are compiled. DEVICE_FAILED with a message when that went wrong: the VM goes on running it.
 * The options' `progress` is told of it, with a fraction above 0 once this process has compiled a part. CANCELLED when
 * that or `cancel` says so: the compile has ended, and the VM goes on. Parts that are compiled by then, or when the
 * model is destroyed, are kept in the cache: the next load goes on from there. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_wait(uir_model *model);

/* ---- packages: models compiled ahead ------------------------------------------------------------------------- */
#define UIR_PACKAGE_MAGIC "UIRPACK\n" /* the first 8 bytes of the file */

typedef struct uir_package_open_options {
    size_t struct_size;
    bool trusted;                /* native code in the package may run in this process; else the VM runs its kernels */
    const char *device;          /* "cpu" or "vm"; NULL: "cpu" */
    bool no_map;                 /* as in uir_model_options */
    const uir_limits *limits;    /* of the opening; NULL: defaults */
    const volatile bool *cancel; /* as in uir_model_options, of the opening */
    /* Files of public keys (uir_package_make_key). Where there are any, the package has to be signed by one of them:
     * its native code may run then, and else it is not opened: BAD_FILE with a message, whatever `trusted` says. The
     * file is copied, and the bytes that are checked are those that are used. libsodium checks them, which libuir_rt
     * opens when it is asked to: UNSUPPORTED where that cannot be. */
    const char *const *trust;
    size_t trust_count;
} uir_package_open_options;

/* Opens a package as a model: no compiler is needed, or started. The file is mapped or copied, and validated; what it
 * holds of constants is checked when a run first needs them. It must not be changed while it is open (replacing it by
 * rename is fine). `options` may be NULL: not trusted. BAD_FILE for what is no package of this version. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_open_package_file(uir_context *context, const char *path,
                                                               const uir_package_open_options *options,
                                                               uir_model **out_model);

typedef struct uir_package_write_options {
    size_t struct_size;
    /* What it is to run on: "cpu", "cpu:avx2", "vm". The first decides how kernels are cut; each "cpu" adds native code
     * for its variant, and the VM's form is always there. None: "cpu". */
    const char *const *devices;
    size_t device_count;
    bool no_native;                                                   /* no native code: the VM runs it everywhere */
    bool (*progress)(void *user, const char *stage, double fraction); /* as in uir_model_options */
    void *progress_user;
    const volatile bool *cancel;    /* as in uir_model_options: what was written is gone */
    const uir_tolerance *tolerance; /* what its results may differ by, kept in the package; NULL: nothing is stated */
    const char *external_data;      /* as in uir_model_options */
    bool no_map;                    /* likewise */
    const uir_limits *limits;       /* NULL: defaults */
    const char *sign_key;           /* the file of a secret key, which signs the package; NULL: it is not signed */
    /* Kernels have the tiles that uir_model_tune_file (uir/tools.h) found best on this machine for the first device,
     * and kept in the cache: the package is as fast as it can be there, the same bytes only from the same cache, and
     * computes the same bits. A warning where nothing is kept for any kernel of it. */
    bool tuned;
    const char *cache; /* of `tuned`: as in uir_model_options */
    bool exact;        /* as in uir_model_options */
    const char *precision; /* likewise, of the first device */
    bool strict;           /* contradictions of declared shapes are errors, as faults of the compiler always are here */
    const char *const *overrides; /* as in uir_model_options: a package's inputs are what they are */
    size_t override_count;
} uir_package_write_options;

typedef struct uir_package_info {
    size_t struct_size;
    uint64_t size;         /* of the file, bytes */
    uint32_t kernel_count; /* different kernels */
    uint32_t native_count; /* variants of native code */
    double compile_ms;
} uir_package_info;

/* Compiles an ONNX file to a package: the same bytes for the same model, devices and compiler, wherever it is done. The
 * file appears whole or not at all. UNSUPPORTED, with a message for each, when there are nodes that no kernel computes.
 * `options` and `out_info` may be NULL. In libuir alone. */
UIR_API UIR_WARN_UNUSED uir_status uir_package_write_file(uir_context *context, const char *model_path,
                                                          const char *package_path,
                                                          const uir_package_write_options *options,
                                                          uir_package_info *out_info);

/* Makes a pair of keys: `path`, which is secret, signs, and is its owner's alone to read; and `path`.pub, which tells
 * whom to trust. IO_FAILED where either is there already. In libuir alone. */
UIR_API UIR_WARN_UNUSED uir_status uir_package_make_key(uir_context *context, const char *path);

/* Native code that lies in the model's package, by index; NOT_FOUND, without a message, past the last
 * and for a model that is no package. */
typedef struct uir_native_code {
    size_t struct_size;
    const char *isa; /* "avx2"; lives as long as the model */
    uint64_t size;   /* bytes */
    bool runs_here;  /* this machine can run it: it does when the package is trusted and opened for such a device */
} uir_native_code;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_native_code(const uir_model *model, size_t index,
                                                             uir_native_code *out_code);

/* A graph input or output. A dim is >= 0 when fixed, else -1 with a name or an expression in `dim_names`. */
typedef struct uir_port {
    size_t struct_size;
    const char *name; /* as long as the model, as all here */
    uir_value_kind kind;
    uir_dtype dtype;
    bool rank_known;
    uint32_t rank;
    const int64_t *dims;
    const char *const *dim_names; /* "batch", "past + sequence"; "" for a fixed one */
    /* An output that the model declares as a list of maps, one a row, all of the same keys (ZipMap of ai.onnx.ml), is
     * the tensor of their values, [rows, keys]. These are the keys by column, numbers among them as text; else NULL. */
    const char *const *keys;
    size_t key_count;
} uir_port;
UIR_API size_t uir_model_input_count(const uir_model *model);
UIR_API size_t uir_model_output_count(const uir_model *model);
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_input(const uir_model *model, size_t index, uir_port *out_port);
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_output(const uir_model *model, size_t index, uir_port *out_port);
/* Their names alone; "" past the end. They live as long as the model. */
UIR_API const char *uir_model_get_input_name(const uir_model *model, size_t index);
UIR_API const char *uir_model_get_output_name(const uir_model *model, size_t index);
/* The index of the one so named, letter for letter. NOT_FOUND, with a message that has the names there are, and
 * `out_index` as it was. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_find_input(const uir_model *model, const char *name, size_t *out_index);
UIR_API UIR_WARN_UNUSED uir_status uir_model_find_output(const uir_model *model, const char *name, size_t *out_index);
/* What the model's file says of itself and holds; of a package, the file that it was made from, where it was noted. All
 * texts here live as long as the model. */
typedef struct uir_model_contents {
    size_t struct_size;
    const char *producer_version, *domain, *graph; /* "" where the file says nothing */
    int64_t model_version;
    uint64_t parameter_count;      /* elements of initializers, in bodies too */
    uint64_t weight_bytes;         /* of these, as they lie in the file */
    uint64_t external_bytes;       /* of these, in files of external data */
    uint32_t function_count;       /* local functions */
    uint32_t package_version;      /* of the format; 0: it is no package */
    uint64_t package_weight_bytes; /* constants as kernels want them, in the package or its entry of the cache; 0: there
                                      is none */
    /* Of a package; "" for a model. Who signed it, by his public key in hexadecimal digits, "" where nobody did; whether
     * that was checked, by a key that the caller trusts. */
    const char *made_by; /* "uir 0.1.0" */
    const char *signed_by;
    bool signature_is_checked;
} uir_model_contents;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_contents(const uir_model *model, uir_model_contents *out_contents);
/* The opsets that the file imports, in its order; NOT_FOUND, without a message, past the last. */
typedef struct uir_opset {
    size_t struct_size;
    const char *domain; /* as in the file: "" and "ai.onnx" are one; lives as long as the model */
    int64_t version;
} uir_opset;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_opset(const uir_model *model, size_t index, uir_opset *out_opset);
/* The ops of the file's nodes, with those in bodies and, once for each local function, in functions; the most used
 * first. NOT_FOUND, without a message, past the last. */
typedef struct uir_op_count {
    size_t struct_size;
    const char *domain, *op; /* domain "": ai.onnx; both live as long as the model */
    uint64_t count;
} uir_op_count;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_op_count(const uir_model *model, size_t index,
                                                          uir_op_count *out_count);
/* Metadata of the file in its order; NOT_FOUND, without a message, past the last. */
typedef struct uir_metadata {
    size_t struct_size;
    const char *key, *value; /* live as long as the model */
} uir_metadata;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_metadata_at(const uir_model *model, size_t index,
                                                             uir_metadata *out_metadata);
/* Which node makes output `index`, and whether it is one for `keep` alone. NOT_FOUND, without a
 * message, past the end. */
typedef struct uir_output_maker {
    size_t struct_size;
    const char *node,
        *op;        /* as in the file; "" where no node makes it, or none is known. They live as long as the model */
    uint32_t place; /* of the node in the model's order, from 1; 0: unknown */
    bool is_kept;   /* the file has no such output */
} uir_output_maker;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_output_maker(const uir_model *model, size_t index,
                                                              uir_output_maker *out_maker);
/* The inputs that have a default in the file, in its order; NOT_FOUND, without a message, past the last. */
typedef struct uir_default {
    size_t struct_size;
    const char *name;   /* lives as long as the model */
    uint32_t place;     /* among all inputs that the file lists, those with a default too, from 0 */
    bool is_overridden; /* it is an input of this model; else a constant of it, and an input where `overrides` name it */
} uir_default;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_default(const uir_model *model, size_t index, uir_default *out_default);
/* The extents of input `index` (`out_dims` has room for its rank) when the named dims have the given values and every
 * other free dim is 1. NOT_FOUND with a message when a binding names no dim of the model's inputs. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_input_shape(const uir_model *model, size_t index,
                                                             const uir_dim_binding *bindings, size_t binding_count,
                                                             int64_t *out_dims);
/* Metadata ("character" -> "...") of the file, which lives as long as the model; NULL when the key is absent. */
UIR_API const char *uir_model_get_metadata(const uir_model *model, const char *key);
/* The tolerance that a package was written with; NOT_FOUND (and `out_tolerance` as it was), without a message, where
 * there is none. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_tolerance(const uir_model *model, uir_tolerance *out_tolerance);

typedef struct uir_model_info {
    size_t struct_size;
    const char *producer; /* this and the other texts live as long as the model */
    int64_t ir_version;
    int64_t opset; /* of ai.onnx */
    uint32_t onnx_node_count;
    uint32_t primitive_count;  /* after decomposition and clean-up */
    double load_ms;            /* reading and parsing */
    double compile_ms;         /* from there to kernels that run */
    const char *device;        /* "cpu", "vm" or "interpreter" */
    const char *why;           /* why the interpreter runs it though another device was asked for; "" otherwise */
    uint32_t kernel_count;     /* different kernels */
    uint32_t compiled_kernels; /* of these, compiled by this process by now */
    /* Where kernels run it: values between them whose elements lie in another order than their dims (images with their
     * channels innermost); places where one order becomes another, by kernels of their own or in others; convolutions
     * by Winograd's formula. */
    uint32_t laid_out_count, conversion_count, winograd_count;
    /* Likewise: the precision that was asked for, and of the products of f32 how many there are, how many multiply
     * halves of either type by it, and how many stay f32 since a constant is beyond these types' range. */
    const char *precision;
    uint32_t product_count, f16_count, bf16_count, out_of_range_count;
    /* Kernels that the compiler made and then refused itself: faults of its own, of which a warning tells. Smaller
     * kernels, or the interpreter, run their nodes. 0 where the load was `strict`. */
    uint32_t fault_count;
    const char *native_why; /* why its kernels will not be compiled, as the load found: it has said so; "" otherwise */
} uir_model_info;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_info(const uir_model *model, uir_model_info *out_info);

/* Empties the cache in the folder (NULL: the default one); `out_bytes`, which may be NULL: how much was freed. */
UIR_API UIR_WARN_UNUSED uir_status uir_context_clear_cache(uir_context *context, const char *folder,
                                                           uint64_t *out_bytes);

/* Names of the devices of this build, which live as long as the program; NULL past the end. */
UIR_API const char *uir_device_name(size_t index);

/* ---- sessions ------------------------------------------------------------------------------------------------ */
typedef struct uir_session_options {
    size_t struct_size;
    const char *device; /* NULL: the default */
    uint32_t threads;   /* 0: the cores that affinity and cgroup quota allow */
    /* The caller's threads in place of the session's own: runs task(context, i) once for every i < count (at most
     * `threads`), on any threads, at once or one after the other, and returns when all have ended. Called by the thread
     * that runs the session, as long as that lives. NULL: the session has threads of its own. */
    void (*parallel)(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context);
    void *parallel_user;
    bool trace;               /* each run keeps what each thread did when: uir_session_get_trace_slice in uir/tools.h */
    const uir_limits *limits; /* of each run, and of the memory that the session holds; NULL: defaults; copied */
    /* Each run of a model with `interpret` keeps what its kernels move, and how long their machine would take:
     * uir_session_get_estimate in uir/tools.h. */
    bool estimate;
} uir_session_options;

UIR_API UIR_WARN_UNUSED uir_status uir_session_create(uir_model *model, const uir_session_options *options,
                                                      uir_session **out_session);
UIR_API void uir_session_destroy(uir_session *session);
/* Binds an input, until another is bound. The session keeps no copy: `value` must live until the last run with it has
 * ended. dtype and shape are checked here;
 * dims that several inputs share are checked when the run starts. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_set_input(uir_session *session, size_t index, uir_value *value);
/* Binds an input to the caller's memory, which is read by every run until another is bound; nothing is copied here.
 * `shape` has `rank` extents >= 0. `strides`, per axis in elements and >= 0, may be NULL: packed, row-major.
 * `capacity`: the bytes behind `data` that may be read. The elements are read where they lie when they are packed, or
 * when the input is a cache that an output of the model appends to along one axis, the strides leave room behind each
 * stretch of that axis and are packed otherwise, and `capacity` covers that room; with other strides each run copies
 * them together. BAD_DATA for a shape that the model excludes, INVALID_ARGUMENT for a buffer too small, UNSUPPORTED for
 * what is no tensor of bytes. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_input(uir_session *session, size_t index, uint32_t rank,
                                                          const int64_t *shape, const int64_t *strides,
                                                          const void *data, size_t capacity);
/* Results of output `index` are written to the caller's `capacity` bytes of `data` by every run until another buffer is
 * bound; the output's value then borrows them. It may be the data of an input's value. NULL: memory of the session
 * again. A run whose result is larger fails with INVALID_ARGUMENT. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_output(uir_session *session, size_t index, void *data,
                                                           size_t capacity);
/* The same with strides, per axis in elements and >= 0, as many as the output's rank; no two elements may share a
 * place. A cache that grows in place: bind the input (`past`) and the output that appends to it (`present`) to the same
 * memory with the same strides, room for the greatest length among them, and a run writes the new rows and nothing
 * else. The value of such an output is a packed copy of it, made when it is asked for. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_output_strided(uir_session *session, size_t index, uint32_t rank,
                                                                   const int64_t *strides, void *data, size_t capacity);
/* The shape that output `index` has in a run with inputs of the given shapes, as many as the model has inputs, in their
 * order: as many extents as the output's rank, -1 where only data tell. Nothing runs, the session's inputs stay bound
 * and its outputs as they are. BAD_DATA with a message for shapes that a run would refuse; INVALID_ARGUMENT for another
 * number of shapes or no such output; UNSUPPORTED where an input or the output is no tensor, or the output's rank is
 * known after a run alone. */
typedef struct uir_input_shape {
    uint32_t rank;
    const int64_t *dims;
} uir_input_shape;
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_output_shape(uir_session *session,
                                                                const uir_input_shape *input_shapes, size_t input_count,
                                                                size_t index, int64_t *out_dims);
UIR_API UIR_WARN_UNUSED uir_status uir_session_run(uir_session *session);
/* Asks a run on another thread (or in a signal handler) to stop soon with UIR_STATUS_CANCELLED. Where none is running
 * the next one is; the end of that run ends the request. */
UIR_API void uir_session_cancel(uir_session *session);
/* Borrowed: it lives, with its shape and data, until the next run or the session's end; of an output that is bound, its
 * data lie in what it is bound to. INVALID_ARGUMENT before a run that went well. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_output(uir_session *session, size_t index, uir_value **out_value);

/* Facts of the last run. */
typedef struct uir_run_statistics {
    size_t struct_size;
    const char *ran_on; /* "interpreter", "vm", "cpu", "interpreter of ascend kernels"; lives as long as the model */
    double run_ms;
    uint64_t peak_bytes; /* of tensors alive at once */
    uint64_t interpreter_calls;
    uint64_t native_calls, vm_calls, vendor_calls, host_calls;
    uint64_t groups, kernels, phases; /* launches; different kernels among them; phases of the launches */
    uint64_t dram_bytes;              /* of the tensors that kernels read and wrote */
    uint64_t threads;                 /* that the session has */
} uir_run_statistics;
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_statistics(const uir_session *session,
                                                              uir_run_statistics *out_statistics);

#ifdef __cplusplus
}
#endif

#endif
