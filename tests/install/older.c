/* A program built with older, smaller structures, beside the library of today: what it asks for it gets, its members
 * lie where they lay, and nothing is written behind its structures. In: an ONNX model of one input, and a path for a
 * package of it. */
#include "older.h"

#include <stdio.h>
#include <string.h>

enum { OK = 0, FENCE = 64 };

/* A structure with a fence behind it. */
#define FENCED(type)                                                                                                   \
    struct {                                                                                                           \
        type it;                                                                                                       \
        unsigned char fence[FENCE];                                                                                    \
    }
#define BEGIN(fenced)                                                                                                  \
    (memset(&(fenced), 0xa5, sizeof(fenced)), memset(&(fenced).it, 0, sizeof(fenced).it),                              \
     (void)((fenced).it.struct_size = sizeof(fenced).it))

static int failures;
static void expect(bool good, const char *what) {
    if (!good) {
        printf("not so: %s\n", what);
        failures++;
    }
}
#define EXPECT(condition) expect(condition, #condition)

static bool holds(const unsigned char *fence) {
    for (size_t i = 0; i < FENCE; i++)
        if (fence[i] != 0xa5) return false;
    return true;
}
#define HOLDS(fenced) EXPECT((fenced).it.struct_size == sizeof(fenced).it && holds((fenced).fence))

static bool go_on(void *user, const char *stage, double fraction) {
    *(int *)user += *stage && fraction >= 0 && fraction <= 1;
    return false;
}

static void ask(const uir_model *model) {
    FENCED(uir_model_info) info;
    FENCED(uir_model_contents) contents;
    FENCED(uir_opset) opset;
    FENCED(uir_op_count) op;
    FENCED(uir_output_maker) maker;
    BEGIN(info), BEGIN(contents), BEGIN(opset), BEGIN(op), BEGIN(maker);
    EXPECT(uir_model_get_info(model, &info.it) == OK && info.it.onnx_node_count > 0 && info.it.opset > 0);
    EXPECT(uir_model_get_contents(model, &contents.it) == OK && contents.it.graph && contents.it.parameter_count > 0);
    EXPECT(uir_model_get_opset(model, 0, &opset.it) == OK && opset.it.domain);
    EXPECT(uir_model_get_op_count(model, 0, &op.it) == OK && *op.it.op && op.it.domain);
    EXPECT(uir_model_get_output_maker(model, 0, &maker.it) == OK && maker.it.node && *maker.it.op);
    HOLDS(info);
    HOLDS(contents);
    HOLDS(opset);
    HOLDS(op);
    HOLDS(maker);
}

/* The output is the session's. */
static uir_value *run(uir_model *model, uir_value *input, const char *device, uir_session **out_session) {
    FENCED(uir_session_options) options;
    FENCED(uir_run_statistics) statistics;
    uir_value *output = NULL;
    BEGIN(options), BEGIN(statistics);
    options.it.device = device;
    options.it.threads = 1;
    EXPECT(uir_session_create(model, &options.it, out_session) == OK);
    if (failures) return NULL;
    EXPECT(uir_session_set_input(*out_session, 0, input) == OK && uir_session_run(*out_session) == OK);
    EXPECT(uir_session_get_output(*out_session, 0, &output) == OK);
    EXPECT(uir_session_get_statistics(*out_session, &statistics.it) == OK && !strcmp(statistics.it.ran_on, "vm"));
    EXPECT(statistics.it.peak_bytes > 0);
    HOLDS(options);
    HOLDS(statistics);
    return output;
}

static void compare(const uir_value *actual, const uir_value *expected) {
    FENCED(uir_tolerance) tolerance;
    FENCED(uir_comparison) comparison;
    BEGIN(tolerance), BEGIN(comparison);
    EXPECT(uir_value_compare(actual, expected, &tolerance.it, &comparison.it) == OK && comparison.it.agree);
    EXPECT(comparison.it.differing == 0);
    HOLDS(tolerance);
    HOLDS(comparison);
}

int main(int argc, char **argv) {
    FENCED(uir_model_options) options;
    FENCED(uir_package_open_options) opening;
    FENCED(uir_package_write_options) writing;
    FENCED(uir_package_info) info;
    FENCED(uir_port) port;
    FENCED(uir_message) message;
    uir_context *context;
    uir_model *model = NULL, *package = NULL, *none = NULL;
    uir_session *session = NULL, *other = NULL;
    uir_value *input = NULL, *first, *second;
    int64_t dims[16];
    int asked = 0;
    if (argc != 3 || uir_context_create(NULL, &context) != OK) return 2;
    BEGIN(options), BEGIN(opening), BEGIN(writing), BEGIN(info), BEGIN(port), BEGIN(message);
    options.it.progress = go_on;
    options.it.progress_user = &asked;
    options.it.device = "vm";
    options.it.no_cache = true;
    writing.it.no_native = true;
    EXPECT(uir_context_get_message(context, 0, &message.it) == 2);
    HOLDS(message);
    EXPECT(uir_model_load_file(context, argv[1], &options.it, &model) == OK && asked > 0);
    EXPECT(uir_package_write_file(context, argv[1], argv[2], &writing.it, &info.it) == OK && info.it.size > 0);
    EXPECT(uir_model_open_package_file(context, argv[2], &opening.it, &package) == OK);
    if (!failures) {
        ask(model);
        EXPECT(uir_model_get_input(package, 0, &port.it) == OK && *port.it.name && port.it.rank_known);
        EXPECT(uir_model_get_input_shape(package, 0, NULL, 0, dims) == OK);
        EXPECT(uir_value_create_tensor(context, port.it.dtype, port.it.rank, dims, &input) == OK);
        EXPECT(uir_value_fill_random(input, 7, 0, 1) == OK);
        first = run(model, input, NULL, &session);
        second = run(package, input, "vm", &other);
        if (first && second) compare(first, second);
    }
    EXPECT(uir_model_load_file(context, "/nonexistent", &options.it, &none) != OK && !none);
    BEGIN(message);
    EXPECT(uir_context_get_message(context, 0, &message.it) == OK && message.it.severity == 2);
    EXPECT(message.it.status == 7 && strstr(message.it.text, "/nonexistent"));
    HOLDS(message);
    HOLDS(options);
    HOLDS(opening);
    HOLDS(writing);
    HOLDS(info);
    HOLDS(port);
    uir_session_destroy(session);
    uir_session_destroy(other);
    uir_value_destroy(input);
    uir_model_destroy(package);
    uir_model_destroy(model);
    uir_context_destroy(context);
    printf("%d failures\n", failures);
    return failures != 0;
}
