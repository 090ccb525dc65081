/* How far loads, waits, packages and checks are: one number that never falls, told in few calls; and how they are
 * stopped, by the answer to such a call or by a flag, with nothing left behind. */
#include "tests/api/small.h"
#include "tests/backends/cpu/here.h"
#include "uir/tools.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CALLS = 100, CALLS_KEPT = 200 };

/* What an operation told. */
typedef struct told {
    uint32_t calls;
    double fractions[CALLS_KEPT];
    char stages[CALLS_KEPT][32];
    pthread_t thread;
    bool elsewhere;      /* another thread called */
    uint32_t stop_at;    /* this call says stop; 0: none does */
    volatile bool *flag; /* that call sets it in place of it; NULL: it does not */
    uint32_t at_stop;    /* calls after it are none */
} told;

static bool hear(void *user, const char *stage, double fraction) {
    told *t = user;
    assert_true(t->calls < CALLS_KEPT);
    if (!t->calls) t->thread = pthread_self();
    t->elsewhere |= !pthread_equal(t->thread, pthread_self());
    snprintf(t->stages[t->calls], sizeof t->stages[0], "%s", stage);
    t->fractions[t->calls++] = fraction;
    if (t->calls != t->stop_at) return false;
    if (t->flag) __atomic_store_n(t->flag, true, __ATOMIC_RELAXED);
    return !t->flag;
}

static void check_told(const told *t, bool done) {
    assert_true(t->calls >= 1 && t->calls <= MOST_CALLS);
    assert_true(t->fractions[0] == 0 && !t->elsewhere);
    for (uint32_t i = 0; i < t->calls; i++) {
        bool last = i + 1 == t->calls;
        if (i && t->fractions[i] < t->fractions[i - 1]) fail_msg("%g after %g", t->fractions[i], t->fractions[i - 1]);
        assert_true(t->fractions[i] == 1 ? last : t->fractions[i] >= 0 && t->fractions[i] < 1);
        assert_true(*t->stages[i]);
    }
    assert_int_equal(t->fractions[t->calls - 1] == 1, done);
}

typedef struct world {
    char folder[64], cache[96], temporary[96], onnx[96], package[96];
    uir_context *context;
    uir_value *x;
} world;

/* A chain of products and curves, no two of one size: `count` kernels at least. */
static blob long_model(int count) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "long");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    for (int i = 0; i < count; i++) {
        char name[16], from[32], product[16], to[16];
        int64_t dims[2] = {3 + i, 4 + i};
        snprintf(name, sizeof name, "w%d", i);
        snprintf(from, sizeof from, i ? "v%d,w%d" : "x,w%d", i, i);
        snprintf(product, sizeof product, "p%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        size_t size = (size_t)(dims[0] * dims[1]) * sizeof(float);
        float *weights = calloc(1, size);
        blob tensor = make_tensor(name, UIR_DTYPE_F32, 2, dims);
        put_bytes(&tensor, TENSOR_RAW, weights, size);
        free(weights);
        put_message(&graph, GRAPH_INITIALIZER, tensor);
        put_message(&graph, GRAPH_NODE, make_node("MatMul", product, from, product));
        put_message(&graph, GRAPH_NODE, make_node("Tanh", to, product, to));
    }
    char last[16];
    snprintf(last, sizeof last, "v%d", count);
    put_message(&graph, GRAPH_OUTPUT, make_value(last, UIR_DTYPE_F32, NULL));
    return make_model(graph);
}

static void write_model(const char *path, blob bytes, size_t left_out) {
    bytes.length -= left_out;
    write_bytes(path, bytes);
}

/* What lies there, but for the cache's own entries. */
static int count_files(const char *folder, const char *prefix) {
    DIR *directory = opendir(folder);
    int count = 0;
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;)
        count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !strncmp(e->d_name, prefix, strlen(prefix));
    if (directory) closedir(directory);
    return count;
}

static int begin(void **state) {
    static world w;
    snprintf(w.folder, sizeof w.folder, "/tmp/uir-progress-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.cache, sizeof w.cache, "%s/cache", w.folder);
    snprintf(w.temporary, sizeof w.temporary, "%s/tmp", w.folder);
    snprintf(w.onnx, sizeof w.onnx, "%s/model.onnx", w.folder);
    snprintf(w.package, sizeof w.package, "%s/package.uir", w.folder);
    assert_int_equal(mkdir(w.temporary, 0700), 0);
    setenv("TMPDIR", w.temporary, 1);
    write_model(w.onnx, small_model(), 0);
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &w.x), UIR_STATUS_OK);
    *state = &w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    char command[128];
    uir_value_destroy(w->x);
    uir_context_destroy(w->context);
    snprintf(command, sizeof command, "rm -r '%s'", w->folder);
    return system(command);
}

/* Nothing of a build is left, nor of a file that was being written. */
static void check_nothing_is_left(const world *w) {
    assert_int_equal(count_files(w->temporary, ""), 0);
    assert_int_equal(count_files(w->cache, "tmp-"), 0);
    assert_int_equal(count_files(w->folder, "package.uir."), 0);
}

static void run(world *w, uir_model *model) {
    uir_session *session;
    uir_value *y;
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(session, 0, w->x), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    uir_session_destroy(session);
}

/* ---- operations ---- */
typedef struct operation {
    const char *name;
    const char *device;
    bool wait, cached;
    uir_status (*run)(world *w, const struct operation *o, told *t, const volatile bool *cancel);
    bool one_call; /* so little is done that nothing but its beginning and end is told */
} operation;

static uir_status load(world *w, const operation *o, told *t, const volatile bool *cancel) {
    uir_model_options options = {.struct_size = sizeof options,
                                 .progress = hear,
                                 .progress_user = t,
                                 .device = o->device,
                                 .wait = o->wait,
                                 .cache = w->cache,
                                 .no_cache = !o->cached,
                                 .cancel = cancel};
    uir_model *model;
    uir_status status = uir_model_load_file(w->context, w->onnx, &options, &model);
    assert_int_equal(!model, status != UIR_STATUS_OK);
    uint32_t calls = t->calls;
    if (model) run(w, model);
    uir_model_destroy(model);
    assert_int_equal(t->calls, calls); /* nothing is told but by the load */
    return status;
}

static uir_status write_package(world *w, const operation *o, told *t, const volatile bool *cancel) {
    uir_package_write_options options = {.struct_size = sizeof options,
                                         .no_native = !strcmp(o->device, "vm"),
                                         .progress = hear,
                                         .progress_user = t,
                                         .cancel = cancel};
    unlink(w->package);
    uir_status status = uir_package_write_file(w->context, w->onnx, w->package, &options, NULL);
    assert_int_equal(access(w->package, F_OK) == 0, status == UIR_STATUS_OK);
    return status;
}

static uir_status check(world *w, const operation *o, told *t, const volatile bool *cancel) {
    uir_model_check_options options = {
        .struct_size = sizeof options, .device = o->device, .progress = hear, .user = t, .cancel = cancel};
    return uir_model_check_file(w->context, w->onnx, &w->x, 1, &options);
}

static const operation operations[] = {
    {"interpreted", "interpreter", false, false, load, false},
    {"VM", "vm", false, false, load, false},
    {"compiled", "cpu", true, false, load, false},
    {"compiled beside", "cpu", false, false, load, false},
    {"stored", "cpu", true, true, load, false},
    {"from the cache", "cpu", true, true, load, true},
    {"package", "cpu", false, false, write_package, false},
    {"package of the VM", "vm", false, false, write_package, false},
    {"check", "vm", false, false, check, false},
};

static void fractions_never_fall(void **state) {
    world *w = *state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        told t = {0};
        uir_status status = operations[i].run(w, &operations[i], &t, NULL);
        if (status != UIR_STATUS_OK) fail_msg("%s: %s", operations[i].name, uir_status_text(status));
        check_told(&t, true);
        assert_true(operations[i].one_call ? t.calls == 2 : t.calls > 4);
    }
}

/* As many kernels, and as many nodes, as there are: the calls do not grow with them. */
static void calls_are_few_of_a_large_model(void **state) {
    world *w = *state;
    const operation lowered = {"VM", "vm", false, false, load, false},
                    checked = {"check", "vm", false, false, check, false};
    write_model(w->onnx, long_model(40), 0);
    told first = {0}, second = {0};
    assert_int_equal(load(w, &lowered, &first, NULL), UIR_STATUS_OK);
    assert_int_equal(check(w, &checked, &second, NULL), UIR_STATUS_OK);
    write_model(w->onnx, small_model(), 0);
    check_told(&first, true);
    check_told(&second, true);
    assert_true(first.calls > 30 && second.calls > 30); /* how far it is can be seen */
}

/* A model of texts, which no kernels can be made of: the interpreter takes the module as it was before the attempt. */
static void the_interpreter_takes_over(void **state) {
    world *w = *state;
    blob graph = blob_new();
    told t = {0};
    uir_model *model;
    put_text(&graph, GRAPH_NAME, "texts");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_STRING, "n"));
    put_message(&graph, GRAPH_NODE, make_node("StringConcat", "twice", "x,x", "y"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_STRING, NULL));
    blob bytes = make_model(graph);
    uir_model_options options = {
        .struct_size = sizeof options, .progress = hear, .progress_user = &t, .device = "vm", .no_cache = true};
    uir_model_info info = {.struct_size = sizeof info};
    assert_int_equal(uir_model_load_memory(w->context, bytes.data, bytes.length, NULL, &options, &model),
                     UIR_STATUS_OK);
    blob_free(&bytes);
    check_told(&t, true);
    assert_int_equal(uir_model_get_info(model, &info), UIR_STATUS_OK);
    assert_string_equal(info.device, "interpreter");
    assert_true(*info.why);
    uint32_t readings = 0;
    for (uint32_t i = 0; i < t.calls; i++) readings += !strcmp(t.stages[i], "decomposing");
    assert_int_equal(readings, 1); /* the file is not read again */
    uir_model_destroy(model);
}

static void what_fails_does_not_end_at_one(void **state) {
    world *w = *state;
    write_model(w->onnx, small_model(), 9);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        told t = {0};
        assert_true(operations[i].run(w, &operations[i], &t, NULL) != UIR_STATUS_OK);
        check_told(&t, false);
        check_nothing_is_left(w);
    }
    write_model(w->onnx, small_model(), 0);
    told t = {0};
    assert_int_equal(load(w, &operations[0], &t, NULL), UIR_STATUS_OK);
}

/* ---- stopping ---- */
/* Each call in turn says stop, by its answer or by the flag. It ends there, and the same context loads it afterwards.
 */
static void stop_everywhere(world *w, bool by_flag) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const operation *o = &operations[i];
        uint32_t stopped = 0;
        for (uint32_t at = 1;; at++) {
            volatile bool flag = false;
            told t = {.stop_at = at, .flag = by_flag ? &flag : NULL};
            if (o->cached && !o->one_call) /* as if for the first time */
                assert_int_equal(uir_context_clear_cache(w->context, w->cache, NULL), UIR_STATUS_OK);
            uir_context_clear_messages(w->context);
            uir_status status = o->run(w, o, &t, &flag);
            check_nothing_is_left(w);
            if (status == UIR_STATUS_OK) { /* the flag came when all was done */
                check_told(&t, true);
                if (t.calls < at || t.calls == t.stop_at) break;
                assert_true(by_flag);
                continue;
            }
            assert_int_equal(status, UIR_STATUS_CANCELLED);
            assert_int_equal(t.calls, at);
            check_told(&t, false);
            assert_true(has_message(w->context, "cancelled"));
            stopped++;
        }
        assert_true(stopped >= (o->one_call ? 0 : 3));
    }
    told t = {0};
    assert_int_equal(load(w, &operations[1], &t, NULL), UIR_STATUS_OK);
}

static void an_answer_stops_it(void **state) {
    stop_everywhere(*state, false);
}

static void the_flag_stops_it(void **state) {
    world *w = *state;
    stop_everywhere(w, true);
    volatile bool set = true; /* before it begins, too */
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        told t = {0};
        assert_int_equal(operations[i].run(w, &operations[i], &t, &set), UIR_STATUS_CANCELLED);
        assert_int_equal(t.calls, 0);
    }
    uir_extractor *extractor;
    assert_int_equal(uir_extractor_create(w->context, w->onnx, &w->x, 1, NULL, &set, &extractor), UIR_STATUS_CANCELLED);
    assert_null(extractor);
}

/* ---- waiting ---- */

static uir_model *load_beside(world *w, blob bytes, told *t, const volatile bool *cancel) {
    uir_model_options options = {.struct_size = sizeof options,
                                 .progress = t ? hear : NULL,
                                 .progress_user = t,
                                 .cache = w->cache,
                                 .no_cache = true,
                                 .cancel = cancel};
    uir_model *model;
    assert_int_equal(uir_model_load_memory(w->context, bytes.data, bytes.length, NULL, &options, &model),
                     UIR_STATUS_OK);
    blob_free(&bytes);
    return model;
}

static void a_wait_is_told_by_itself(void **state) {
    world *w = *state;
    told t = {0};
    uir_model *model = load_beside(w, small_model(), &t, NULL);
    check_told(&t, true);
    for (int again = 0; again < 2; again++) {
        t = (told){0};
        assert_int_equal(uir_model_wait(model), UIR_STATUS_OK);
        check_told(&t, true);
    }
    uir_model_destroy(model);
    uir_model_options options = {
        .struct_size = sizeof options, .progress = hear, .progress_user = &t, .device = "interpreter"};
    assert_int_equal(uir_model_load_file(w->context, w->onnx, &options, &model), UIR_STATUS_OK);
    t = (told){0};
    assert_int_equal(uir_model_wait(model), UIR_STATUS_OK); /* for nothing */
    check_told(&t, true);
    uir_model_destroy(model);
}

typedef struct canceller {
    volatile bool *flag;
    atomic_bool waiting;
} canceller;

static void *cancel_soon(void *user) {
    canceller *c = user;
    while (!atomic_load(&c->waiting)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    __atomic_store_n(c->flag, true, __ATOMIC_RELAXED);
    return NULL;
}

static bool note_wait(void *user, const char *stage, double fraction) {
    canceller *c = user;
    if (!strcmp(stage, "compiling kernels") && fraction < 1) atomic_store(&c->waiting, true);
    return false;
}

/* The compiler is one that does not end by itself. */
static void another_thread_ends_a_wait(void **state) {
    world *w = *state;
    char compiler[128];
    snprintf(compiler, sizeof compiler, "%s/slow-cc", w->folder);
    FILE *file = fopen(compiler, "w");
    fputs("#!/bin/sh\nexec sleep 1000\n", file);
    fclose(file);
    assert_int_equal(chmod(compiler, 0700), 0);
    setenv("CC", compiler, 1);
    for (int at_load = 0; at_load < 2; at_load++) {
        volatile bool flag = false;
        canceller c = {.flag = &flag};
        pthread_t thread;
        uir_model_options options = {.struct_size = sizeof options,
                                     .progress = note_wait,
                                     .progress_user = &c,
                                     .wait = at_load,
                                     .no_cache = true,
                                     .cancel = &flag};
        uir_model *model;
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &c), 0);
        uir_context_clear_messages(w->context);
        uir_status status = uir_model_load_file(w->context, w->onnx, &options, &model);
        assert_int_equal(status, at_load ? UIR_STATUS_CANCELLED : UIR_STATUS_OK);
        assert_int_equal(!model, at_load);
        if (model) {
            assert_int_equal(uir_model_wait(model), UIR_STATUS_CANCELLED);
            assert_int_equal(uir_model_wait(model), UIR_STATUS_CANCELLED); /* the compile has ended */
            run(w, model);                                                 /* on the VM */
        }
        assert_true(has_message(w->context, "cancelled"));
        pthread_join(thread, NULL);
        uir_model_destroy(model);
        check_nothing_is_left(w);
    }
    unsetenv("CC");
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fractions_never_fall),     cmocka_unit_test(calls_are_few_of_a_large_model),
        cmocka_unit_test(the_interpreter_takes_over), cmocka_unit_test(what_fails_does_not_end_at_one),
        cmocka_unit_test(an_answer_stops_it),       cmocka_unit_test(the_flag_stops_it),
        cmocka_unit_test(a_wait_is_told_by_itself), cmocka_unit_test(another_thread_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
