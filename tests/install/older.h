/* What a program was built with that saw a header before 0.1.0 was done: the same structures, and each ends earlier. It
 * stays as it is, whatever becomes of uir.h: what a library of today makes of such a program is what it is for. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct uir_context uir_context;
typedef struct uir_model uir_model;
typedef struct uir_session uir_session;
typedef struct uir_value uir_value;

typedef struct uir_message {
    size_t struct_size;
    int severity, status;
    const char *text;
} uir_message;
typedef struct uir_comparison {
    size_t struct_size;
    bool agree;
    double max_abs, max_rel;
    uint64_t differing;
} uir_comparison;
typedef struct uir_tolerance {
    size_t struct_size;
    double rtol, atol;
} uir_tolerance;
typedef struct uir_model_options {
    size_t struct_size;
    bool (*progress)(void *user, const char *stage, double fraction);
    void *progress_user;
    const char *device;
    bool wait;
    const char *cache;
    bool no_cache;
} uir_model_options;
typedef struct uir_package_open_options {
    size_t struct_size;
    bool trusted;
} uir_package_open_options;
typedef struct uir_package_write_options {
    size_t struct_size;
    const char *const *devices;
    size_t device_count;
    bool no_native;
} uir_package_write_options;
typedef struct uir_package_info {
    size_t struct_size;
    uint64_t size;
} uir_package_info;
typedef struct uir_port {
    size_t struct_size;
    const char *name;
    int kind, dtype;
    bool rank_known;
    uint32_t rank;
} uir_port;
typedef struct uir_model_contents {
    size_t struct_size;
    const char *producer_version, *domain, *graph;
    int64_t model_version;
    uint64_t parameter_count;
} uir_model_contents;
typedef struct uir_opset {
    size_t struct_size;
    const char *domain;
} uir_opset;
typedef struct uir_op_count {
    size_t struct_size;
    const char *domain, *op;
} uir_op_count;
typedef struct uir_output_maker {
    size_t struct_size;
    const char *node, *op;
} uir_output_maker;
typedef struct uir_model_info {
    size_t struct_size;
    const char *producer;
    int64_t ir_version, opset;
    uint32_t onnx_node_count;
} uir_model_info;
typedef struct uir_session_options {
    size_t struct_size;
    const char *device;
    uint32_t threads;
} uir_session_options;
typedef struct uir_run_statistics {
    size_t struct_size;
    const char *ran_on;
    double run_ms;
    uint64_t peak_bytes;
} uir_run_statistics;

int uir_context_create(const void *allocator, uir_context **out_context);
void uir_context_destroy(uir_context *context);
int uir_context_get_message(const uir_context *context, size_t index, uir_message *out_message);
int uir_value_create_tensor(uir_context *context, int dtype, uint32_t rank, const int64_t *shape,
                            uir_value **out_value);
void uir_value_destroy(uir_value *value);
int uir_value_fill_random(uir_value *value, uint64_t seed, double low, double high);
int uir_value_compare(const uir_value *actual, const uir_value *expected, const uir_tolerance *tolerance,
                      uir_comparison *out_comparison);
int uir_model_load_file(uir_context *context, const char *path, const uir_model_options *options,
                        uir_model **out_model);
void uir_model_destroy(uir_model *model);
int uir_model_open_package_file(uir_context *context, const char *path, const uir_package_open_options *options,
                                uir_model **out_model);
int uir_package_write_file(uir_context *context, const char *model_path, const char *package_path,
                           const uir_package_write_options *options, uir_package_info *out_info);
int uir_model_get_input(const uir_model *model, size_t index, uir_port *out_port);
int uir_model_get_contents(const uir_model *model, uir_model_contents *out_contents);
int uir_model_get_opset(const uir_model *model, size_t index, uir_opset *out_opset);
int uir_model_get_op_count(const uir_model *model, size_t index, uir_op_count *out_count);
int uir_model_get_output_maker(const uir_model *model, size_t index, uir_output_maker *out_maker);
int uir_model_get_info(const uir_model *model, uir_model_info *out_info);
int uir_model_get_input_shape(const uir_model *model, size_t index, const void *bindings, size_t binding_count,
                              int64_t *out_dims);
int uir_session_create(uir_model *model, const uir_session_options *options, uir_session **out_session);
void uir_session_destroy(uir_session *session);
int uir_session_set_input(uir_session *session, size_t index, uir_value *value);
int uir_session_run(uir_session *session);
int uir_session_get_output(uir_session *session, size_t index, uir_value **out_value);
int uir_session_get_statistics(const uir_session *session, uir_run_statistics *out_statistics);
