/* Models on an OpenCL device by the stand-in of tests/drivers: what a start builds, and what each refused call gives.
 *
 *   test_opencl_builds STAND_IN.so [all] [MODEL...]    (all: each call of each function, not the first, some in between
 *                                                       and the last)
 *
 * In: the project's own model, and those of $UIR_MODELS_BUILT, or of build/models, that are named; without names,
 * digits alone, with `all` each of the table. PoCL's own cache is a new folder,
 * which it takes when it is used first. */
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

enum { PATH_SIZE = 512, INPUTS = 4 };

/* A model, and the chip that its kernels are for. */
typedef struct subject {
    const char *name, *device;
} subject;
static const subject subjects[] = {
    {"digits", "opencl:gpu"}, {"gru_seq", "opencl:cpu"}, {"lstm_classifier", "opencl:gpu"}, {"dlrm", "opencl:cpu"}};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static const char *stand_in_path;
static bool all, chosen[SUBJECTS];
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

/* ---- models ---- */
/* The subject's folder; false if it has none here. */
static bool find_subject(const subject *of, char folder[PATH_SIZE]) {
    const char *models = getenv("UIR_MODELS_BUILT");
    bool is_own = of == subjects;
    snprintf(folder, PATH_SIZE, "%s/%s", is_own ? "models" : models ? models : "build/models", of->name);
    return access(folder, R_OK) == 0;
}

static void name_file(const subject *of, const char *name, char path[PATH_SIZE]) {
    char folder[PATH_SIZE];
    (void)find_subject(of, folder);
    snprintf(path, PATH_SIZE, "%.300s/%.100s", folder, name);
}

/* A start: the device opened, the model loaded, some runs. */
typedef struct start {
    const subject *of;
    uir_context *context;
    uir_device *device;
    uir_model *model;
    uir_session *session;
    uir_value *inputs[INPUTS];
    size_t input_count;
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
    char path[PATH_SIZE];
    TRY(uir_device_open(s->context, device, &opening, &s->device));
    const uir_model_options loading = {.struct_size = sizeof loading,
                                       .opened = s->device,
                                       .cache = cache,
                                       .no_cache = !cache,
                                       .no_fallback = true,
                                       .wait = true};
    name_file(s->of, s->of == subjects ? "digits.onnx" : "model.onnx", path);
    TRY(uir_model_load_file(s->context, path, &loading, &s->model));
    TRY(uir_model_get_info(s->model, &info));
    snprintf(s->origin, sizeof s->origin, "%s", info.device_code);
    return uir_session_create(s->model, NULL, &s->session);
}

static void read_inputs(start *s) {
    char name[64], path[PATH_SIZE];
    for (s->input_count = 0; s->input_count < INPUTS; s->input_count++) {
        snprintf(name, sizeof name, "test_data_set_0/input_%zu.pb", s->input_count);
        name_file(s->of, name, path);
        if (access(path, R_OK) != 0) break;
        assert_int_equal(uir_value_load_file(s->context, path, NULL, UIR_VALUE_TENSOR, &s->inputs[s->input_count]),
                         UIR_STATUS_OK);
    }
    assert_true(s->input_count > 0);
}

static uir_status run(start *s) {
    uir_value *output;
    for (size_t i = 0; i < s->input_count; i++) TRY(uir_session_set_input(s->session, i, s->inputs[i]));
    TRY(uir_session_run(s->session));
    return uir_session_get_output(s->session, 0, &output);
}

/* `cache` NULL: none. Two runs. */
static uir_status begin(start *s, const subject *of, const char *cache) {
    *s = (start){.of = of};
    assert_int_equal(uir_context_create(NULL, &s->context), UIR_STATUS_OK);
    read_inputs(s);
    TRY(load(s, of->device, cache));
    for (int i = 0; i < 2; i++) TRY(run(s));
    return UIR_STATUS_OK;
}

static void end(start *s) {
    uir_session_destroy(s->session);
    uir_model_destroy(s->model);
    uir_device_close(s->device);
    for (size_t i = 0; i < s->input_count; i++) uir_value_destroy(s->inputs[i]);
    uir_context_destroy(s->context);
    assert_int_equal(get_alive(), 0);
}

/* ---- the cache ---- */
static void start_once(const char *cache, const char *origin, uint64_t sources, uint64_t binaries) {
    start s;
    uir_status status = begin(&s, subjects, cache);
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
    start s = {.of = subjects, .input_count = 1};
    int before = count_objects(pocl);
    (void)state;
    refuse(NULL, 0);
    assert_int_equal(uir_context_create(NULL, &s.context), UIR_STATUS_OK);
    assert_int_equal(load(&s, "opencl:cpu", NULL), UIR_STATUS_OK);
    int loaded = count_objects(pocl);
    assert_true(loaded > before);
    assert_int_equal(uir_value_create_tensor(s.context, UIR_DTYPE_U8, 4, shape, &s.inputs[0]), UIR_STATUS_OK);
    assert_int_equal(run(&s), UIR_STATUS_OK);
    uir_value_destroy(s.inputs[0]);
    read_inputs(&s);
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

/* What a message says instead of the function's name. The queue's failures are told by a wait, of requests before. */
static const struct {
    const char *function, *words;
} said[] = {{"clGetDeviceIDs", "finds no device"},
            {"clGetDeviceInfo", "cannot run kernels of chip"},
            {"clCreateBuffer", "of the device cannot be allocated"},
            {"clBuildProgram", "cannot build the OpenCL program"},
            {"clFlush", "OpenCL: CL_OUT_OF_RESOURCES"},
            {"clGetEventInfo", "OpenCL: CL_OUT_OF_RESOURCES"},
            {"clSetEventCallback", "OpenCL: CL_OUT_OF_RESOURCES"},
            {"clWaitForEvents", "OpenCL: CL_OUT_OF_RESOURCES"}};

static bool has_message(const start *s, const char *words) {
    size_t count = uir_context_message_count(s->context);
    for (size_t i = 0; i < count; i++)
        if (strstr(uir_context_get_message_text(s->context, i), words)) return true;
    return false;
}

static bool is_said(const start *s, const char *function) {
    bool is = has_message(s, function);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        is |= !strcmp(function, said[i].function) && has_message(s, said[i].words);
    bool is_launch = !strcmp(function, "clSetKernelArg") || !strcmp(function, "clEnqueueNDRangeKernel");
    return is && (!is_launch || (has_message(s, "node '") && has_message(s, "was not launched")));
}

/* Calls between the first and the last that are refused: with `all` each. How often an event is asked is a matter of
 * time. */
static bool is_refused(const char *function, uint64_t call, uint64_t count) {
    uint64_t step = !all ? count / 4 + 1 : !strcmp(function, "clGetEventInfo") ? count / 20 + 1 : 1;
    return call == 1 || call == count || call % step == 0;
}

static void refuse_call(const subject *of, const char *function, uint64_t call) {
    start s;
    refuse(function, call);
    uir_status status = begin(&s, of, NULL);
    bool was_made = count_calls(function) >= call;
    if (status != UIR_STATUS_OK && !is_said(&s, function))
        fail_msg("%s refused at call %d: another message, or none: %s", function, (int)call,
                 uir_context_message_count(s.context) ? uir_context_get_message_text(s.context, 0) : "");
    if (getenv("UIR_VERBOSE"))
        for (size_t i = 0; i < uir_context_message_count(s.context); i++)
            print_message("%s %d: %s\n", function, (int)call, uir_context_get_message_text(s.context, i));
    if (status == UIR_STATUS_OK && was_made && !is_optional(function))
        fail_msg("%s refused at call %d: nobody noticed", function, (int)call);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_DEVICE_FAILED && status != UIR_STATUS_OUT_OF_MEMORY &&
        status != UIR_STATUS_BAD_FILE)
        fail_msg("%s refused at call %d: %s", function, (int)call, uir_status_text(status));
    end(&s);
}

/* Of a subject: those of a load and two runs. */
static void refuse_calls(const subject *of) {
#define NAME(result, name, parameters, arguments) #name,
    static const char *const names[] = {CL_FUNCTIONS(NAME)};
    enum { COUNT = sizeof names / sizeof *names };
    uint64_t counts[COUNT], refusals = 0;
    start s;
    refuse(NULL, 0);
    assert_int_equal(begin(&s, of, NULL), UIR_STATUS_OK);
    for (int i = 0; i < COUNT; i++) counts[i] = count_calls(names[i]);
    end(&s);
    for (int i = 0; i < COUNT; i++)
        for (uint64_t call = 1; call <= counts[i]; call++) {
            if (!is_refused(names[i], call, counts[i])) continue;
            refuse_call(of, names[i], call);
            refusals++;
        }
    print_message("%s on %s: %d calls refused\n", of->name, of->device, (int)refusals);
    assert_true(refusals > 40);
}

static void test_each_call(void **state) {
    char folder[PATH_SIZE];
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        if (!chosen[i]) continue;
        if (find_subject(&subjects[i], folder))
            refuse_calls(&subjects[i]);
        else
            printf(
                "skip: needs models: %s is not there; script/test writes it out of the folder that UIR_MODELS names\n",
                folder);
    }
}

/* Whether the words are STAND_IN.so [all] [MODEL...]. */
static bool read_words(int argc, char **argv) {
    int named = 0;
    stand_in_path = argc > 1 ? argv[1] : "";
    for (int k = 2; k < argc; k++) {
        int i = 0;
        while (i < SUBJECTS && strcmp(argv[k], subjects[i].name) != 0) i++;
        if (i < SUBJECTS)
            named += chosen[i] = true;
        else if (!strcmp(argv[k], "all"))
            all = true;
        else
            return false;
    }
    for (int i = 0; i < SUBJECTS && !named; i++) chosen[i] = all || i == 0;
    return argc > 1;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache), cmocka_unit_test(test_runs_compile_nothing),
                                       cmocka_unit_test(test_each_call)};
    uir_context *context;
    uint32_t devices = 0;
    if (!read_words(argc, argv)) {
        fputs("test_opencl_builds STAND_IN.so [all] [MODEL...]\n", stderr);
        return 2;
    }
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
