/* A model on an OpenCL device by the stand-in of tests/drivers: what a start builds, and what each refused call gives.
 *
 *   test_opencl_builds STAND_IN.so [all]    (all: each call of each function, not the first, some in between and the
 *                                            last)
 *
 * PoCL's own cache is a new folder, which it takes when it is used first. */
#include "tests/base/support.h"
#include "tests/drivers/stand_in.h"
#include "backends/opencl/driver/library.h"
#include "uir/device.h"
#include "uir/uir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL "models/digits/digits.onnx"
#define INPUT "models/digits/test_data_set_0/input_0.pb"

static const char *stand_in_path;
static bool all;
static char pocl[64]; /* PoCL's cache */
static stand_in_refuse *refuse;
static stand_in_count *count_calls;
static stand_in_alive *get_alive;

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at) {
    (void)facts, (void)kind, (void)at;
    return remove(path);
}
static void remove_folder(const char *folder) {
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
static void make_folder(char folder[64]) {
    strcpy(folder, "/tmp/uir_opencl_XXXXXX");
    assert_non_null(mkdtemp(folder));
}

/* A start: the device opened, the model loaded, some runs. */
typedef struct start {
    uir_context *context;
    uir_device *device;
    uir_model *model;
    uir_session *session;
    uir_value *input;
    char origin[400];
} start;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        uir_status status_ = (call);                                                                                   \
        if (status_ != UIR_STATUS_OK) return status_;                                                                  \
    } while (0)

static uir_status load(start *s, const char *device, const char *cache) {
    const uir_device_options opening = {.struct_size = sizeof opening, .library = stand_in_path};
    uir_model_info info = {.struct_size = sizeof info};
    TRY(uir_device_open(s->context, device, &opening, &s->device));
    const uir_model_options loading = {.struct_size = sizeof loading,
                                       .opened = s->device,
                                       .cache = cache,
                                       .no_cache = !cache,
                                       .no_fallback = true,
                                       .wait = true};
    TRY(uir_model_load_file(s->context, MODEL, &loading, &s->model));
    TRY(uir_model_get_info(s->model, &info));
    snprintf(s->origin, sizeof s->origin, "%s", info.device_code);
    return uir_session_create(s->model, NULL, &s->session);
}

static uir_status run(start *s) {
    uir_value *output;
    TRY(uir_session_set_input(s->session, 0, s->input));
    TRY(uir_session_run(s->session));
    return uir_session_get_output(s->session, 0, &output);
}

/* `cache` NULL: none. Two runs. */
static uir_status begin(start *s, const char *cache) {
    *s = (start){.context = NULL};
    assert_int_equal(uir_context_create(NULL, &s->context), UIR_STATUS_OK);
    assert_int_equal(uir_value_load_file(s->context, INPUT, NULL, UIR_VALUE_TENSOR, &s->input), UIR_STATUS_OK);
    TRY(load(s, "opencl:gpu", cache));
    for (int i = 0; i < 2; i++) TRY(run(s));
    return UIR_STATUS_OK;
}

static void end(start *s) {
    uir_session_destroy(s->session);
    uir_model_destroy(s->model);
    uir_device_close(s->device);
    uir_value_destroy(s->input);
    uir_context_destroy(s->context);
    assert_int_equal(get_alive(), 0);
}

/* ---- the cache ---- */
static void start_once(const char *cache, const char *origin, uint64_t sources, uint64_t binaries) {
    start s;
    uir_status status = begin(&s, cache);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(s.context); i++)
        print_error("%s\n", uir_context_get_message_text(s.context, i));
    assert_int_equal(status, UIR_STATUS_OK);
    assert_memory_equal(s.origin, origin, strlen(origin));
    assert_int_equal(count_calls("clCreateProgramWithSource"), sources);
    assert_int_equal(count_calls("clCreateProgramWithBinary"), binaries);
    end(&s);
}

/* The second start builds nothing; where the kept code does not load, the program is built again. */
static void test_cache(void **state) {
    char cache[64];
    (void)state;
    make_folder(cache);
    refuse(NULL, 0);
    start_once(cache, "its source", 1, 0);
    refuse(NULL, 0);
    start_once(cache, "the cache", 0, 1);
    refuse("clCreateProgramWithBinary", 1);
    start_once(cache, "its source, since what the cache holds does not load", 1, 1);
    refuse(NULL, 0);
    start_once(cache, "the cache", 0, 1);
    remove_folder(cache);
}

/* ---- what a run compiles ---- */
static int objects;
static int count_object(const char *path, const struct stat *facts, int kind, struct FTW *at) {
    size_t length = strlen(path);
    (void)facts, (void)at;
    objects += kind == FTW_F && length > 3 && !strcmp(path + length - 3, ".so");
    return 0;
}
static int count_objects(const char *folder) {
    objects = 0;
    nftw(folder, count_object, 16, FTW_PHYS);
    return objects;
}

/* PoCL compiles a function when it is launched first. Those of work-items are launched by the load, also those that
 * only a run of other sizes needs, so that a run compiles none. */
static void test_runs_compile_nothing(void **state) {
    const int64_t shape[] = {5, 8, 8, 1};
    start s = {.context = NULL};
    int before = count_objects(pocl);
    (void)state;
    refuse(NULL, 0);
    assert_int_equal(uir_context_create(NULL, &s.context), UIR_STATUS_OK);
    assert_int_equal(load(&s, "opencl:cpu", NULL), UIR_STATUS_OK);
    int loaded = count_objects(pocl);
    assert_true(loaded > before);
    assert_int_equal(uir_value_create_tensor(s.context, UIR_DTYPE_U8, 4, shape, &s.input), UIR_STATUS_OK);
    assert_int_equal(run(&s), UIR_STATUS_OK);
    uir_value_destroy(s.input);
    assert_int_equal(uir_value_load_file(s.context, INPUT, NULL, UIR_VALUE_TENSOR, &s.input), UIR_STATUS_OK);
    assert_int_equal(run(&s), UIR_STATUS_OK);
    assert_int_equal(count_objects(pocl), loaded);
    end(&s);
}

/* ---- refusals ---- */
/* Facts that a device may lack, and releases, whose failure changes nothing. The code need not be saved. */
static bool is_optional(const char *function) {
    return !strncmp(function, "clRelease", 9) || !strcmp(function, "clGetDeviceInfo") ||
           !strcmp(function, "clGetPlatformInfo") || !strcmp(function, "clGetDeviceIDs") ||
           !strcmp(function, "clGetProgramInfo") || !strcmp(function, "clFinish") ||
           !strcmp(function, "clGetEventProfilingInfo");
}

static void refuse_call(const char *function, uint64_t call) {
    start s;
    refuse(function, call);
    uir_status status = begin(&s, NULL);
    bool was_made = count_calls(function) >= call;
    if (status != UIR_STATUS_OK && !uir_context_message_count(s.context))
        fail_msg("%s refused at call %d: no message", function, (int)call);
    if (status == UIR_STATUS_OK && was_made && !is_optional(function))
        fail_msg("%s refused at call %d: nobody noticed", function, (int)call);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_DEVICE_FAILED && status != UIR_STATUS_OUT_OF_MEMORY &&
        status != UIR_STATUS_BAD_FILE)
        fail_msg("%s refused at call %d: %s", function, (int)call, uir_status_text(status));
    end(&s);
}

static void test_each_call(void **state) {
#define NAME(result, name, parameters, arguments) #name,
    static const char *const names[] = {CL_FUNCTIONS(NAME)};
    enum { COUNT = sizeof names / sizeof *names };
    uint64_t counts[COUNT], refusals = 0;
    start s;
    (void)state;
    refuse(NULL, 0);
    assert_int_equal(begin(&s, NULL), UIR_STATUS_OK);
    for (int i = 0; i < COUNT; i++) counts[i] = count_calls(names[i]);
    end(&s);
    for (int i = 0; i < COUNT; i++)
        for (uint64_t call = 1; call <= counts[i]; call++) {
            if (!all && call > 1 && call < counts[i] && call % (counts[i] / 4 + 1)) continue;
            refuse_call(names[i], call);
            refusals++;
        }
    print_message("%d calls refused\n", (int)refusals);
    assert_true(refusals > 40);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache), cmocka_unit_test(test_runs_compile_nothing),
                                       cmocka_unit_test(test_each_call)};
    uir_context *context;
    uint32_t devices = 0;
    stand_in_path = argc > 1 ? argv[1] : "";
    all = argc > 2;
    make_folder(pocl);
    setenv("POCL_CACHE_DIR", pocl, 1);
    if (uir_context_create(NULL, &context) != UIR_STATUS_OK) return 2;
    uir_status status = uir_device_count(context, "opencl", NULL, &devices);
    uir_context_destroy(context);
    if (status != UIR_STATUS_OK || !devices) {
        remove_folder(pocl);
        printf("skip: needs opencl: a device that the OpenCL library finds\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    if (!stand_in_open(stand_in_path, &refuse, &count_calls, &get_alive)) return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder(pocl);
    return failed;
}
