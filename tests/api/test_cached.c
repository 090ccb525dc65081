/* Models opened from the cache: the same as compiled, and never another's; whatever happens to the cache's files. */
#include "tests/backends/cpu/here.h"
#include "tests/frontend/make.h"
#include "tools/run/query.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WEIGHTS = 300, SETTLE_MS = 3100 };
static int rounds = 150; /* of damage: the first argument */

typedef struct world {
    uir_context *context;
    char folder[64], model[96], data[96], cache[96];
    const char *external_data; /* of the options */
} world;

/* y = x + w, with w in a file beside the model where `external`. */
static void write_model(const world *w, float first, bool external) {
    float weights[WEIGHTS];
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, (int64_t[]){WEIGHTS});
    for (int i = 0; i < WEIGHTS; i++) weights[i] = first + (float)i;
    if (external) {
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", "data.bin"));
        put_int(&tensor, TENSOR_LOCATION, 1);
        int fd = open(w->data, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, weights, sizeof weights), sizeof weights);
        close(fd);
    } else {
        put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    }
    put_text(&graph, GRAPH_NAME, "sum");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,300"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("Add", "the addition", "x,w", "y"));
    blob model = make_model(graph);
    put_message(&model, MODEL_METADATA, make_pair("author", "nobody"));
    int fd = open(w->model, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, model.data, model.length), model.length);
    close(fd);
    blob_free(&model);
}

static int begin(void **state) {
    static world w;
    snprintf(w.folder, sizeof w.folder, "/tmp/uir-cached-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.model, sizeof w.model, "%s/model.onnx", w.folder);
    snprintf(w.data, sizeof w.data, "%s/data.bin", w.folder);
    snprintf(w.cache, sizeof w.cache, "%s/cache", w.folder);
    w.external_data = NULL;
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    *state = &w;
    return 0;
}

static void empty_folder(const char *path) {
    DIR *directory = opendir(path);
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;) {
        if (e->d_name[0] != '.') unlinkat(dirfd(directory), e->d_name, 0);
    }
    if (directory) closedir(directory);
}

static int end(void **state) {
    world *w = *state;
    chmod(w->cache, 0700);
    empty_folder(w->cache);
    rmdir(w->cache);
    empty_folder(w->folder);
    rmdir(w->folder);
    uir_context_destroy(w->context);
    return 0;
}

static uir_model *load(world *w, const char *device) {
    uir_model_options options = {.struct_size = sizeof options,
                                 .device = device,
                                 .cache = w->cache,
                                 .wait = true,
                                 .external_data = w->external_data};
    uir_model *model;
    uir_status status = uir_model_load_file(w->context, w->model, &options, &model);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(w->context); i++)
        print_error("%s\n", uir_context_get_message_text(w->context, i));
    assert_int_equal(status, UIR_STATUS_OK);
    return model;
}

/* Of x = 1, on the device of the session's options. */
static float run(world *w, uir_model *model, const char *device) {
    uir_session_options options = {.struct_size = sizeof options, .threads = 1, .device = device};
    uir_session *session;
    uir_value *x, *y;
    assert_int_equal(uir_session_create(model, &options, &session), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w->context, UIR_DTYPE_F32, 2, (int64_t[]){2, WEIGHTS}, &x), UIR_STATUS_OK);
    for (int i = 0; i < 2 * WEIGHTS; i++) ((float *)uir_value_get_data(x))[i] = 1;
    assert_int_equal(uir_session_set_input(session, 0, x), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    float first = (float)uir_value_get_double(y, 0);
    for (int i = 0; i < 2 * WEIGHTS; i++)
        assert_true(uir_value_get_double(y, (uint64_t)i) == (double)first + i % WEIGHTS);
    uir_session_destroy(session);
    uir_value_destroy(x);
    return first;
}

static bool is_from_cache(const uir_model *model) {
    return query_info(model).compile_ms == 0;
}

static float load_and_run(world *w, const char *device, bool *out_cached) {
    uir_model *model = load(w, device);
    float first = run(w, model, NULL);
    if (out_cached) *out_cached = is_from_cache(model);
    uir_model_destroy(model);
    return first;
}

static void settle(void) {
    nanosleep(&(struct timespec){SETTLE_MS / 1000, SETTLE_MS % 1000 * 1000000L}, NULL);
}

static void a_cached_model_is_the_compiled_one(void **state) {
    world *w = *state;
    for (int native = 0; native < 2; native++) {
        const char *device = native ? "cpu" : "vm";
        write_model(w, 5, false);
        uir_model *made = load(w, device), *cached = load(w, device);
        uir_model_info a = query_info(made), b = query_info(cached);
        assert_false(is_from_cache(made));
        assert_true(is_from_cache(cached));
        assert_int_equal(b.compiled_kernels, 0);
        assert_int_equal(a.kernel_count, b.kernel_count);
        assert_int_equal(a.primitive_count, b.primitive_count);
        assert_int_equal(a.onnx_node_count, b.onnx_node_count);
        assert_int_equal(a.opset, b.opset);
        assert_int_equal(a.ir_version, b.ir_version);
        assert_string_equal(a.producer, b.producer);
        assert_string_equal(a.device, b.device);
        assert_string_equal(uir_model_get_metadata(cached, "author"), "nobody");
        assert_null(uir_model_get_metadata(cached, "reader"));
        uir_port from = query_input(made, 0), to = query_input(cached, 0);
        assert_true(from.rank == to.rank && from.dtype == to.dtype && from.dims[0] == to.dims[0]);
        assert_string_equal(from.dim_names[0], to.dim_names[0]);
        int64_t dims[2];
        assert_int_equal(uir_model_get_input_shape(cached, 0, &(uir_dim_binding){"batch", 7}, 1, dims), UIR_STATUS_OK);
        assert_true(dims[0] == 7 && dims[1] == WEIGHTS);
        assert_true(run(w, made, NULL) == 6 && run(w, cached, NULL) == 6);
        uir_model_destroy(made);
        assert_true(run(w, cached, NULL) == 6);
        /* The graph is read after all when somebody asks for it. */
        assert_true(run(w, cached, "interpreter") == 6);
        uir_model_destroy(cached);
    }
}

/* By the bytes while the file is new, by its stamp later; a copy is known by its bytes. */
static void a_model_is_known_by_stamp_or_bytes(void **state) {
    world *w = *state;
    bool cached;
    write_model(w, 1, true);
    assert_true(load_and_run(w, "vm", &cached) == 2 && !cached);
    assert_true(load_and_run(w, "vm", &cached) == 2 && cached);
    settle();
    for (int i = 0; i < 3; i++) assert_true(load_and_run(w, "vm", &cached) == 2 && cached);
    write_model(w, 1, true);
    assert_true(load_and_run(w, "vm", &cached) == 2 && cached);
}

/* A change of the model, or of the data alone, is seen, at once and later, and so is the way back. */
static void a_changed_model_is_another(void **state) {
    world *w = *state;
    bool cached;
    for (int external = 0; external < 2; external++) {
        write_model(w, 10, external);
        assert_true(load_and_run(w, "vm", NULL) == 11);
        settle();
        assert_true(load_and_run(w, "vm", &cached) == 11 && cached);
        write_model(w, 20, external);
        assert_true(load_and_run(w, "vm", &cached) == 21 && !cached);
        write_model(w, 30, external);
        assert_true(load_and_run(w, "vm", &cached) == 31 && !cached);
        write_model(w, 30, external);
        assert_true(load_and_run(w, "vm", &cached) == 31 && cached);
    }
    write_model(w, 40, true);
    assert_true(load_and_run(w, "vm", NULL) == 41);
    unlink(w->data);
    uir_model_options options = {.struct_size = sizeof options, .device = "vm", .cache = w->cache};
    uir_model *model;
    assert_int_not_equal(uir_model_load_file(w->context, w->model, &options, &model), UIR_STATUS_OK);
    uir_context_clear_messages(w->context);
}

/* The model's own file stays what it was, and the other one does not; whichever way the model is known. */
static void changed_data_alone_is_seen(void **state) {
    world *w = *state;
    bool cached;
    struct stat before, after;
    write_model(w, 10, true);
    settle();
    for (int i = 0; i < 3; i++) assert_true(load_and_run(w, "vm", &cached) == 11 && cached == (i > 0));
    assert_int_equal(stat(w->model, &before), 0);
    for (int i = 0; i < 2; i++) {
        float weights[WEIGHTS];
        for (int k = 0; k < WEIGHTS; k++) weights[k] = (float)(20 + 10 * i + k);
        int fd = open(w->data, O_WRONLY);
        assert_int_equal(write(fd, weights, sizeof weights), sizeof weights);
        close(fd);
        assert_true(load_and_run(w, "vm", &cached) == (float)(21 + 10 * i) && !cached);
        assert_true(load_and_run(w, "vm", &cached) == (float)(21 + 10 * i) && cached);
    }
    assert_int_equal(stat(w->model, &after), 0);
    assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

/* The data is what a link leads to, or what lies in the folder that the options name; both may change while every file
 * stays what it was. */
static void turned_links_are_seen(void **state) {
    world *w = *state;
    char path[160], other[160];
    bool cached;
    snprintf(path, sizeof path, "%s/other", w->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(other, sizeof other, "%s/other/data.bin", w->folder);
    write_model(w, 20, true);
    assert_int_equal(rename(w->data, other), 0);
    write_model(w, 10, true);
    snprintf(path, sizeof path, "%s/first", w->folder);
    assert_int_equal(rename(w->data, path), 0);
    assert_int_equal(symlink("first", w->data), 0);
    settle();
    for (int i = 0; i < 3; i++) assert_true(load_and_run(w, "vm", &cached) == 11 && cached == (i > 0));
    assert_true(unlink(w->data) == 0 && symlink("other/data.bin", w->data) == 0);
    for (int i = 0; i < 3; i++) assert_true(load_and_run(w, "vm", &cached) == 21 && cached == (i > 0));
    assert_true(unlink(w->data) == 0 && symlink("first", w->data) == 0);
    assert_true(load_and_run(w, "vm", NULL) == 11);
    for (int i = 0; i < 4; i++) { /* the same file of the model, with this folder and without it */
        char folder[96];
        snprintf(folder, sizeof folder, "%s/other", w->folder);
        w->external_data = i % 2 ? NULL : folder;
        assert_true(load_and_run(w, "vm", NULL) == (i % 2 ? 11 : 21));
    }
    uir_model *model = (w->external_data = "/nowhere/at/all", NULL);
    uir_model_options options = {.struct_size = sizeof options, .external_data = w->external_data, .cache = w->cache};
    assert_int_equal(uir_model_load_file(w->context, w->model, &options, &model), UIR_STATUS_NOT_FOUND);
    uir_context_clear_messages(w->context);
    unlink(other);
    snprintf(path, sizeof path, "%s/other", w->folder);
    rmdir(path);
}

/* A model from the cache has no graph; where the file is another by now, there is none to be read any more. */
static void another_file_is_not_interpreted(void **state) {
    world *w = *state;
    for (int later = 0; later < 2; later++) {
        write_model(w, 5, false);
        if (later) settle();
        uir_model_destroy(load(w, "vm"));
        uir_model *cached = load(w, "vm");
        assert_true(is_from_cache(cached));
        write_model(w, 6, false);
        uir_session_options options = {.struct_size = sizeof options, .device = "interpreter"};
        uir_session *session;
        uir_context_clear_messages(w->context);
        assert_int_equal(uir_session_create(cached, &options, &session), UIR_STATUS_UNSUPPORTED);
        assert_non_null(strstr(uir_context_get_message_text(w->context, 0), "the file has changed"));
        assert_true(run(w, cached, NULL) == 6); /* of the model that it was loaded from */
        uir_model_destroy(cached);
        uir_context_clear_messages(w->context);
    }
}

static void count_text(void *user, const char *stage, const char *text, size_t length) {
    (void)stage, (void)text;
    *(size_t *)user += length;
}

/* Whoever wants to see how a model is compiled has it compiled. */
static void looking_inside_needs_a_compiler(void **state) {
    world *w = *state;
    write_model(w, 5, false);
    uir_model_destroy(load(w, "vm"));
    for (int kind = 0; kind < 4; kind++) {
        size_t seen = 0;
        uir_debug_options debug = {.struct_size = sizeof debug};
        uir_model_options options = {
            .struct_size = sizeof options, .device = "vm", .cache = w->cache, .wait = true, .debug = &debug};
        if (kind == 1) debug.dump = "primitives", debug.dump_text = count_text, debug.dump_user = &seen;
        if (kind == 2) debug.round_trip = true;
        if (kind == 3) debug.dump_source = w->folder; /* there is none for the VM */
        uir_model *model;
        uir_status status = uir_model_load_file(w->context, w->model, &options, &model);
        assert_int_equal(status, kind == 3 ? UIR_STATUS_INVALID_ARGUMENT : UIR_STATUS_OK);
        assert_int_equal(seen > 0, kind == 1);
        if (kind < 3) assert_int_equal(is_from_cache(model), kind == 0);
        uir_model_destroy(model);
    }
    uir_context_clear_messages(w->context);
}

/* ---- what may happen to the files ---- */

static uint64_t next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Changes a byte of, cuts off, or removes one of the cache's files. */
static void damage(const world *w, uint64_t *seed) {
    char names[64][96], path[256];
    size_t count = 0;
    DIR *directory = opendir(w->cache);
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory)) != NULL && count < 64;) {
        if (e->d_name[0] != '.') snprintf(names[count++], sizeof names[0], "%.90s", e->d_name);
    }
    closedir(directory);
    if (!count) return;
    snprintf(path, sizeof path, "%s/%s", w->cache, names[next(seed) % count]);
    struct stat about;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    uint64_t kind = next(seed) % 16;
    off_t at = about.st_size ? (off_t)(next(seed) % (uint64_t)about.st_size) : 0;
    char byte = 0;
    if (kind == 0) {
        unlink(path);
    } else if (kind == 1) {
        assert_int_equal(ftruncate(fd, at), 0);
    } else if (about.st_size && pread(fd, &byte, 1, at) == 1) {
        byte = (char)(byte ^ (1 + next(seed) % 255));
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

/* Right each time, and the next start finds the cache in order. */
static void damaged_entries_cost_time_alone(void **state) {
    world *w = *state;
    uint64_t seed = 7;
    bool cached;
    write_model(w, 3, true);
    assert_true(load_and_run(w, "vm", NULL) == 4);
    for (int i = 0; i < rounds; i++) {
        damage(w, &seed);
        assert_true(load_and_run(w, "vm", NULL) == 4);
        assert_true(load_and_run(w, "vm", &cached) == 4 && cached);
        uir_context_clear_messages(w->context);
    }
}

static void a_cache_that_cannot_be_used_is_done_without(void **state) {
    world *w = *state;
    bool cached;
    write_model(w, 8, false);
    assert_true(load_and_run(w, "vm", NULL) == 9);
    chmod(w->cache, 0777); /* others could write to it */
    assert_true(load_and_run(w, "vm", &cached) == 9 && !cached);
    chmod(w->cache, 0500);
    assert_true(load_and_run(w, "vm", &cached) == 9 && cached);
    chmod(w->cache, 0700);
    uir_context_clear_messages(w->context);
    /* Less than the package takes. */
    uint64_t freed;
    assert_int_equal(uir_context_clear_cache(w->context, w->cache, &freed), UIR_STATUS_OK);
    assert_true(freed > 0);
    for (int i = 0; i < 2; i++) {
        uir_model_options options = {
            .struct_size = sizeof options, .device = "vm", .cache = w->cache, .cache_limit = 5000};
        uir_model *model;
        assert_int_equal(uir_model_load_file(w->context, w->model, &options, &model), UIR_STATUS_OK);
        assert_true(run(w, model, NULL) == 9);
        assert_false(is_from_cache(model));
        uir_model_destroy(model);
    }
}

int main(int argc, char **argv) {
    here_keep_what_runs();
    if (argc > 1) rounds = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cached_model_is_the_compiled_one, begin, end),
        cmocka_unit_test_setup_teardown(a_model_is_known_by_stamp_or_bytes, begin, end),
        cmocka_unit_test_setup_teardown(a_changed_model_is_another, begin, end),
        cmocka_unit_test_setup_teardown(changed_data_alone_is_seen, begin, end),
        cmocka_unit_test_setup_teardown(turned_links_are_seen, begin, end),
        cmocka_unit_test_setup_teardown(another_file_is_not_interpreted, begin, end),
        cmocka_unit_test_setup_teardown(looking_inside_needs_a_compiler, begin, end),
        cmocka_unit_test_setup_teardown(damaged_entries_cost_time_alone, begin, end),
        cmocka_unit_test_setup_teardown(a_cache_that_cannot_be_used_is_done_without, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
