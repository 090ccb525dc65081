/* Many models in one process: twelve models and packages of them are loaded, run and destroyed in random order, from
 * memory, from a file, from the cache, trusted and signed, by one thread and by four. Each answer is its own model's,
 * by native code.
 *
 *   uir-many [ROUNDS [SEED]]
 *
 * In: nothing but a C compiler. A round is a load or the end of a model, and a run. Out: a line for each failure, then
 * `N passed, M failed, S skipped`; a crash is for the caller to see. */
#include "small.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MODELS = 12, WIDTH = 24, ROWS = 3, SLOTS = 5, THREADS = 4, FORK_EVERY = 25 };

/* y = last(first(x) + w): the same sizes, names and symbols in all of them. */
typedef struct form {
    const char *first, *last;
    double (*of_first)(double), (*of_last)(double);
} form;

static double relu(double x) {
    return x > 0 ? x : 0;
}
static double negate(double x) {
    return -x;
}
static double reciprocal(double x) {
    return 1 / x;
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static const form forms[MODELS] = {
    {"Relu", "Neg", relu, negate},       {"Neg", "Relu", negate, relu},
    {"Abs", "Exp", fabs, exp},           {"Exp", "Neg", exp, negate},
    {"Tanh", "Relu", tanh, relu},        {"Relu", "Tanh", relu, tanh},
    {"Sigmoid", "Neg", sigmoid, negate}, {"Abs", "Floor", fabs, floor},
    {"Floor", "Abs", floor, fabs},       {"Exp", "Reciprocal", exp, reciprocal},
    {"Ceil", "Sigmoid", ceil, sigmoid},  {"Tanh", "Ceil", tanh, ceil},
};

static float weight(uint32_t model, uint32_t i) {
    return (float)(model + 1) * 0.125f + (float)i * 0.03125f;
}

static float input(uint32_t row, uint32_t i) {
    return ((float)((row * 31 + i * 7) % 17) - 8) * 0.25f;
}

static blob make_bytes(uint32_t m) {
    float weights[WIDTH];
    char dims[32];
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, (int64_t[]){WIDTH});
    for (uint32_t i = 0; i < WIDTH; i++) weights[i] = weight(m, i);
    snprintf(dims, sizeof dims, "rows,%d", WIDTH);
    put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    put_text(&graph, GRAPH_NAME, "one of many");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, dims));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node(forms[m].first, "first", "x", "a"));
    put_message(&graph, GRAPH_NODE, make_node("Add", "middle", "a,w", "b"));
    put_message(&graph, GRAPH_NODE, make_node(forms[m].last, "last", "b", "y"));
    return make_model(graph);
}

/* ---- the ways of a model into the process ---- */
typedef struct world {
    uir_context *context;
    const char *folder;
    const char *trust; /* the public key's file */
    blob bytes[MODELS];
    atomic_ulong passed, failed;
    uint32_t rounds;
} world;

static void place(const world *w, const char *kind, uint32_t m, char path[256]) {
    snprintf(path, 256, "%s/%s%u.%s", w->folder, kind, m, strcmp(kind, "model") ? "uir" : "onnx");
}

static uir_status from_memory(const world *w, uint32_t m, uir_model **out) {
    uir_model_options options = {.struct_size = sizeof options, .device = "cpu", .wait = true, .no_cache = true};
    return uir_model_load_memory(w->context, w->bytes[m].data, w->bytes[m].length, NULL, &options, out);
}

static uir_status from_file(const world *w, uint32_t m, uir_model **out) {
    char path[256];
    uir_model_options options = {.struct_size = sizeof options, .device = "cpu", .wait = true, .no_cache = true};
    place(w, "model", m, path);
    return uir_model_load_file(w->context, path, &options, out);
}

static uir_status from_cache(const world *w, uint32_t m, uir_model **out) {
    char path[256], cache[256];
    uir_model_options options = {.struct_size = sizeof options, .device = "cpu", .wait = true, .cache = cache};
    snprintf(cache, sizeof cache, "%s/cache", w->folder);
    place(w, "model", m, path);
    return uir_model_load_file(w->context, path, &options, out);
}

static uir_status trusted(const world *w, uint32_t m, uir_model **out) {
    char path[256];
    uir_package_open_options options = {.struct_size = sizeof options, .trusted = true, .no_map = m % 2};
    place(w, "plain", m, path);
    return uir_model_open_package_file(w->context, path, &options, out);
}

static uir_status signed_by_key(const world *w, uint32_t m, uir_model **out) {
    char path[256];
    uir_package_open_options options = {
        .struct_size = sizeof options, .trust = &w->trust, .trust_count = 1, .no_map = m % 2};
    place(w, "signed", m, path);
    return uir_model_open_package_file(w->context, path, &options, out);
}

/* `in_64`: how often; what compiles is rare. */
static const struct way {
    const char *name;
    uir_status (*load)(const world *w, uint32_t m, uir_model **out);
    uint32_t in_64;
} ways[] = {{"memory", from_memory, 6},
            {"file", from_file, 4},
            {"cache", from_cache, 20},
            {"trusted", trusted, 17},
            {"signed", signed_by_key, 17}};

/* ---- rounds ---- */
typedef struct slot {
    uir_model *model;
    uint32_t which;
    const struct way *way;
} slot;

typedef struct thread {
    world *w;
    uint64_t random;
    uint32_t threads;
    slot slots[SLOTS];
    pthread_t id;
} thread;

static uint32_t draw(thread *t, uint32_t below) {
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->random >> 33) % below;
}

static void report(world *w, const slot *s, const char *what) {
    if (atomic_fetch_add(&w->failed, 1) >= 10) return;
    fprintf(stderr, "model %u from %s: %s\n", s->which, s->way->name, what);
    for (size_t i = 0; i < uir_context_message_count(w->context) && i < 4; i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(w->context, i));
}

static const char *find_fault(const world *w, const slot *s) {
    (void)w;
    float x[ROWS * WIDTH], y[ROWS * WIDTH];
    const int64_t shape[] = {ROWS, WIDTH};
    uir_session_options options = {.struct_size = sizeof options, .threads = 1};
    uir_run_statistics statistics = {.struct_size = sizeof statistics};
    uir_session *session;
    uir_value *value;
    const char *fault = NULL;
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) x[i] = input(i / WIDTH, i % WIDTH);
    if (uir_session_create(s->model, &options, &session) != UIR_STATUS_OK) return "no session";
    if (uir_session_bind_input(session, 0, 2, shape, NULL, x, sizeof x) != UIR_STATUS_OK ||
        uir_session_run(session) != UIR_STATUS_OK || uir_session_get_output(session, 0, &value) != UIR_STATUS_OK ||
        uir_session_get_statistics(session, &statistics) != UIR_STATUS_OK) {
        fault = "no run";
    } else if (uir_value_get_byte_size(value) != sizeof y) {
        fault = "a result of another size";
    } else if (!statistics.native_calls || statistics.vm_calls) {
        fault = "native code did not run";
    } else {
        memcpy(y, uir_value_get_data(value), sizeof y);
        for (uint32_t i = 0; i < ROWS * WIDTH && !fault; i++) {
            const form *f = &forms[s->which];
            double right = f->of_last((float)f->of_first(x[i]) + weight(s->which, i % WIDTH));
            if (!(fabs(y[i] - right) <= 1e-5 * (1 + fabs(right)))) fault = "another model's answer";
        }
    }
    uir_session_destroy(session);
    return fault;
}

static void check(thread *t, const slot *s) {
    const char *fault = find_fault(t->w, s);
    if (fault)
        report(t->w, s, fault);
    else
        atomic_fetch_add(&t->w->passed, 1);
}

/* A child has the objects of its parent, and ends them without a trace here. */
static void check_in_child(thread *t) {
    int ended = 0;
    pid_t child = fork();
    if (child == 0) {
        for (uint32_t i = 0; i < SLOTS; i++) {
            if (t->slots[i].model && find_fault(t->w, &t->slots[i])) _exit(1);
            uir_model_destroy(t->slots[i].model);
        }
        _exit(0);
    }
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0)
        report(t->w, &(slot){.way = &ways[0]}, "a child of the process");
}

static void load(thread *t, slot *s) {
    uint32_t at = draw(t, 64), way = 0;
    while (at >= ways[way].in_64) at -= ways[way++].in_64;
    *s = (slot){.which = draw(t, MODELS), .way = &ways[way]};
    if (s->way->load(t->w, s->which, &s->model) == UIR_STATUS_OK) return;
    report(t->w, s, "not loaded");
    s->model = NULL;
}

static void *run_rounds(void *user) {
    thread *t = user;
    for (uint32_t round = 0; round < t->w->rounds; round++) {
        slot *s = &t->slots[draw(t, SLOTS)], *other = &t->slots[draw(t, SLOTS)];
        if (s->model) {
            uir_model_destroy(s->model);
            s->model = NULL;
        } else {
            load(t, s);
            if (s->model) check(t, s);
        }
        if (other->model) check(t, other);
        if (t->threads == 1 && round % FORK_EVERY == FORK_EVERY - 1) check_in_child(t);
    }
    for (uint32_t i = 0; i < SLOTS; i++) uir_model_destroy(t->slots[i].model);
    return NULL;
}

static void run_threads(world *w, uint32_t threads, uint64_t seed) {
    thread all[THREADS];
    for (uint32_t i = 0; i < threads; i++) {
        all[i] = (thread){.w = w, .random = seed * 1000 + threads * 10 + i, .threads = threads};
        if (pthread_create(&all[i].id, NULL, run_rounds, &all[i]) != 0) exit(2);
    }
    for (uint32_t i = 0; i < threads; i++) pthread_join(all[i].id, NULL);
}

/* ---- before and after ---- */
static int count_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static void make(world *w, const char *key) {
    char path[256];
    uir_package_write_options options = {.struct_size = sizeof options};
    if (uir_package_make_key(w->context, key) != UIR_STATUS_OK) exit(2);
    for (uint32_t m = 0; m < MODELS; m++) {
        char model[256];
        w->bytes[m] = make_bytes(m);
        place(w, "model", m, model);
        write_bytes(model, make_bytes(m));
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            options.sign_key = is_signed ? key : NULL;
            place(w, is_signed ? "signed" : "plain", m, path);
            if (uir_package_write_file(w->context, model, path, &options, NULL) != UIR_STATUS_OK) {
                report(w, &(slot){.which = m, .way = &ways[0]}, "not packed");
                exit(1);
            }
        }
    }
}

/* Files, and files in folders. */
static void remove_all(const char *folder) {
    DIR *directory = opendir(folder);
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;) {
        char path[600];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (unlink(path) != 0) remove_all(path);
    }
    if (directory) closedir(directory);
    rmdir(folder);
}

int main(int argc, char **argv) {
    char folder[] = "/tmp/uir-many-XXXXXX", key[64], trust[64];
    _Atomic size_t alive = 0;
    uir_allocator allocator = counting_allocator(&alive);
    world w = {.folder = mkdtemp(folder), .trust = trust, .rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 60};
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (!w.folder || uir_context_create(&allocator, &w.context) != UIR_STATUS_OK) return 2;
    snprintf(key, sizeof key, "%s/key", folder);
    snprintf(trust, sizeof trust, "%s/key.pub", folder);
    make(&w, key);
    int descriptors = count_descriptors();
    run_threads(&w, 1, seed);
    run_threads(&w, THREADS, seed);
    if (count_descriptors() != descriptors) report(&w, &(slot){.way = &ways[0]}, "descriptors are left open");
    uir_context_destroy(w.context);
    if (atomic_load(&alive)) {
        atomic_fetch_add(&w.failed, 1);
        fprintf(stderr, "%zu bytes are left\n", (size_t)atomic_load(&alive));
    }
    for (uint32_t m = 0; m < MODELS; m++) blob_free(&w.bytes[m]);
    remove_all(folder);
    printf("%lu passed, %lu failed, 0 skipped\n", atomic_load(&w.passed), atomic_load(&w.failed));
    return atomic_load(&w.failed) != 0;
}
