/* Files that change while a model is open: mapped where nobody but their owner can do that, and asked about before each
 * run; copied where others can, or where the caller says so, and then nothing to the model. */
#include "tests/api/small.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WEIGHTS = 200000 }; /* more than a page, and more than what the cache always hashes */

typedef struct world {
    uir_context *context;
    uir_value *x; /* zeros */
    char folder[64], model[96], data[96], package[96], cache[96];
} world;

/* What a model's bytes are read from while it runs. */
typedef struct row {
    const char *name;
    const char *device; /* NULL: the package */
    bool cached, external;
} row;
static const row rows[] = {{"package", NULL, false, false},
                           {"model's file", "interpreter", false, false},
                           {"external data", "interpreter", false, true},
                           {"package in the cache", "vm", true, true}};
enum { ROWS = sizeof rows / sizeof *rows };

static void write_model(const world *w, bool external) {
    float *weights = malloc(WEIGHTS * sizeof *weights);
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, (int64_t[]){WEIGHTS});
    assert_non_null(weights);
    for (int i = 0; i < WEIGHTS; i++) weights[i] = (float)(i % 1000 + 7);
    if (external) {
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", "data.bin"));
        put_int(&tensor, TENSOR_LOCATION, 1);
        FILE *file = fopen(w->data, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(weights, sizeof *weights, WEIGHTS, file), WEIGHTS);
        fclose(file);
    } else {
        put_bytes(&tensor, TENSOR_RAW, weights, WEIGHTS * sizeof *weights);
    }
    free(weights);
    put_text(&graph, GRAPH_NAME, "sum");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "200000"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("Add", "the addition", "x,w", "y"));
    write_bytes(w->model, make_model(graph));
}

static void empty_folder(const char *path) {
    DIR *directory = opendir(path);
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;)
        if (e->d_name[0] != '.') unlinkat(dirfd(directory), e->d_name, 0);
    if (directory) closedir(directory);
}

static int begin(void **state) {
    static world w;
    snprintf(w.folder, sizeof w.folder, "/tmp/uir-changed-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.model, sizeof w.model, "%s/model.onnx", w.folder);
    snprintf(w.data, sizeof w.data, "%s/data.bin", w.folder);
    snprintf(w.package, sizeof w.package, "%s/model.uir", w.folder);
    snprintf(w.cache, sizeof w.cache, "%s/cache", w.folder);
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 1, (int64_t[]){WEIGHTS}, &w.x), UIR_STATUS_OK);
    *state = &w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    empty_folder(w->cache);
    rmdir(w->cache);
    empty_folder(w->folder);
    uir_value_destroy(w->x);
    uir_context_destroy(w->context);
    return rmdir(w->folder);
}

static void expect_ok(const world *w, uir_status status) {
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(w->context); i++)
        print_error("%s\n", uir_context_get_message_text(w->context, i));
    assert_int_equal(status, UIR_STATUS_OK);
}

/* The file that matters, made anew; its path. */
static const char *make_file(const world *w, const row *r, char path[400]) {
    uir_package_write_options packing = {.struct_size = sizeof packing, .no_native = true};
    write_model(w, r->external);
    snprintf(path, 400, "%s", r->external ? w->data : r->device ? w->model : w->package);
    if (!r->device) expect_ok(w, uir_package_write_file(w->context, w->model, w->package, &packing, NULL));
    return path;
}

static uir_model *open_model(const world *w, const row *r, bool no_map) {
    uir_package_open_options package = {.struct_size = sizeof package, .no_map = no_map};
    uir_model_options options = {.struct_size = sizeof options,
                                 .device = r->device,
                                 .cache = w->cache,
                                 .no_cache = !r->cached,
                                 .no_map = no_map};
    uir_model *model;
    expect_ok(w, r->device ? uir_model_load_file(w->context, w->model, &options, &model)
                           : uir_model_open_package_file(w->context, w->package, &package, &model));
    return model;
}

static uir_session *open_session(const world *w, uir_model *model) {
    uir_session *session;
    expect_ok(w, uir_session_create(model, NULL, &session));
    expect_ok(w, uir_session_set_input(session, 0, w->x));
    return session;
}

static void expect_answer(const world *w, uir_session *session) {
    uir_value *y;
    expect_ok(w, uir_session_run(session));
    expect_ok(w, uir_session_get_output(session, 0, &y));
    for (int i = 0; i < WEIGHTS; i += 991) assert_true(uir_value_get_double(y, (uint64_t)i) == (double)(i % 1000 + 7));
}

/* The largest file of the cache: the package. */
static void find_entry(const world *w, char path[400]) {
    off_t most = 0;
    DIR *directory = opendir(w->cache);
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        struct stat about;
        if (e->d_name[0] == '.' || fstatat(dirfd(directory), e->d_name, &about, 0) != 0 || about.st_size <= most)
            continue;
        most = about.st_size;
        snprintf(path, 400, "%s/%s", w->cache, e->d_name);
    }
    closedir(directory);
    assert_true(most > (off_t)(WEIGHTS * sizeof(float)));
}

static bool is_mapped(const char *path) {
    char line[1000];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) skip();
    while (fgets(line, sizeof line, maps)) found |= strstr(line, path) != NULL;
    fclose(maps);
    return found;
}

/* Cut or written to between two runs, a mapped file is an error, which says so; one that was replaced is not. */
static void a_mapped_file_is_asked_before_a_run(void **state) {
    world *w = *state;
    for (int i = 0; i < ROWS; i++) {
        for (int way = 0; way < 4; way++) {
            char path[400], other[420];
            struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
            make_file(w, &rows[i], path);
            uir_model *model = open_model(w, &rows[i], false);
            uir_session *session = open_session(w, model);
            if (rows[i].cached) find_entry(w, path);
            assert_true(is_mapped(path));
            expect_answer(w, session);
            snprintf(other, sizeof other, "%s.other", path);
            if (way == 0) assert_int_equal(truncate(path, 0), 0);
            if (way == 1) assert_int_equal(truncate(path, 5000), 0);
            if (way == 2) assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0); /* as a write does */
            if (way == 3) {
                FILE *file = fopen(other, "wb");
                assert_non_null(file);
                fclose(file);
                assert_int_equal(rename(other, path), 0);
                expect_answer(w, session);
            } else {
                for (int again = 0; again < 2; again++) {
                    uir_context_clear_messages(w->context);
                    assert_int_equal(uir_session_run(session), UIR_STATUS_BAD_FILE);
                    assert_true(has_message(w->context, "has changed since"));
                }
            }
            uir_session_destroy(session);
            uir_model_destroy(model);
            empty_folder(w->cache);
        }
    }
}

/* What is copied, because the caller says so or because others may write to it, is not the file any more. */
static void a_copied_file_may_be_cut(void **state) {
    world *w = *state;
    static const mode_t modes[] = {0600, 0620, 0602, 0666};
    for (int i = 0; i < ROWS; i++) {
        for (int m = 0; m < 4; m++) {
            char path[400];
            make_file(w, &rows[i], path);
            assert_int_equal(chmod(path, modes[m]), 0);
            if (rows[i].cached && m) continue; /* nobody writes to an entry but its owner */
            uir_model *model = open_model(w, &rows[i], m == 0);
            uir_session *session = open_session(w, model);
            if (rows[i].cached) find_entry(w, path);
            assert_false(is_mapped(path));
            assert_int_equal(truncate(path, 0), 0);
            expect_answer(w, session);
            expect_answer(w, session);
            uir_session_destroy(session);
            uir_model_destroy(model);
            empty_folder(w->cache);
        }
    }
}

/* Cut and filled with other bytes, again and again, while runs go on. */
typedef struct cutter {
    const char *path;
    uint32_t cuts;
    bool end;
} cutter;

static void *cut(void *user) {
    cutter *c = user;
    while (!__atomic_load_n(&c->end, __ATOMIC_RELAXED)) {
        int fd = open(c->path, O_WRONLY | O_TRUNC);
        if (fd < 0 || pwrite(fd, "junk", 4, 4096) != 4) return NULL;
        close(fd);
        __atomic_add_fetch(&c->cuts, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void a_copied_file_may_be_cut_during_runs(void **state) {
    world *w = *state;
    for (int i = 0; i < ROWS; i++) {
        char path[400];
        pthread_t thread;
        make_file(w, &rows[i], path);
        uir_model *model = open_model(w, &rows[i], true);
        uir_session *session = open_session(w, model);
        if (rows[i].cached) find_entry(w, path);
        cutter c = {.path = path};
        assert_int_equal(pthread_create(&thread, NULL, cut, &c), 0);
        for (int run = 0; run < 50 || __atomic_load_n(&c.cuts, __ATOMIC_RELAXED) < 20; run++) expect_answer(w, session);
        __atomic_store_n(&c.end, true, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        uir_session_destroy(session);
        uir_model_destroy(model);
        empty_folder(w->cache);
    }
}

/* A file that is somebody else's is copied, whatever its mode. */
static void the_file_of_another_is_copied(void **state) {
    world *w = *state;
    if (geteuid() != 0) skip(); /* none can be made */
    for (int i = 0; i < ROWS; i++) {
        char path[400];
        make_file(w, &rows[i], path);
        if (rows[i].cached) continue;
        assert_int_equal(chown(path, 12345, 12345), 0);
        uir_model *model = open_model(w, &rows[i], false);
        uir_session *session = open_session(w, model);
        assert_false(is_mapped(path));
        assert_int_equal(truncate(path, 0), 0);
        expect_answer(w, session);
        uir_session_destroy(session);
        uir_model_destroy(model);
    }
}

/* The bytes that were found signed are those that are used: a copy, which the file cannot change any more. */
static void what_was_signed_is_what_runs(void **state) {
    world *w = *state;
    char key[120], trusted[128];
    const char *const keys[] = {trusted};
    uir_model *model;
    write_model(w, false);
    snprintf(key, sizeof key, "%s/key", w->folder);
    snprintf(trusted, sizeof trusted, "%s.pub", key);
    expect_ok(w, uir_package_make_key(w->context, key));
    uir_package_write_options packing = {.struct_size = sizeof packing, .no_native = true, .sign_key = key};
    uir_package_open_options opening = {.struct_size = sizeof opening, .trust = keys, .trust_count = 1};
    expect_ok(w, uir_package_write_file(w->context, w->model, w->package, &packing, NULL));
    uir_status status = uir_model_open_package_file(w->context, w->package, &opening, &model);
    if (status == UIR_STATUS_UNSUPPORTED) skip(); /* libsodium cannot be opened by this program */
    expect_ok(w, status);
    uir_session *session = open_session(w, model);
    assert_false(is_mapped(w->package));
    assert_int_equal(truncate(w->package, 0), 0);
    expect_answer(w, session);
    uir_session_destroy(session);
    uir_model_destroy(model);
}

/* Who may write to a folder can give any file a name there. In a folder of the caller's own nobody else can. */
static void a_data_file_of_several_names_is_in_the_callers_folder(void **state) {
    world *w = *state;
    uir_model_options options = {.struct_size = sizeof options, .device = "interpreter"};
    uir_model *model;
    char other[120];
    write_model(w, true);
    snprintf(other, sizeof other, "%s/other", w->folder);
    assert_int_equal(link(w->data, other), 0);
    expect_ok(w, uir_model_load_file(w->context, w->model, &options, &model));
    uir_model_destroy(model);
    if (geteuid() != 0) skip(); /* no folder of somebody else's can be made */
    assert_int_equal(chown(w->folder, 12345, 12345), 0);
    uir_context_clear_messages(w->context);
    assert_int_equal(uir_model_load_file(w->context, w->model, &options, &model), UIR_STATUS_BAD_FILE);
    assert_true(has_message(w->context, "hard links"));
    assert_int_equal(unlink(other), 0);
    expect_ok(w, uir_model_load_file(w->context, w->model, &options, &model));
    uir_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mapped_file_is_asked_before_a_run, begin, end),
        cmocka_unit_test_setup_teardown(a_copied_file_may_be_cut, begin, end),
        cmocka_unit_test_setup_teardown(a_copied_file_may_be_cut_during_runs, begin, end),
        cmocka_unit_test_setup_teardown(the_file_of_another_is_copied, begin, end),
        cmocka_unit_test_setup_teardown(what_was_signed_is_what_runs, begin, end),
        cmocka_unit_test_setup_teardown(a_data_file_of_several_names_is_in_the_callers_folder, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
