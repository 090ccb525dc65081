/* Memory and work that run out: whichever allocation fails, and however few steps of the compiler there are, what was
 * begun ends by itself, with the status that says so or with the right answer, and leaves nothing.
 *
 *   uir-exhaust MODEL FOLDER memory ACTION FIRST STEP COUNT   the allocations FIRST, FIRST + STEP ... fail, one in each
 * try uir-exhaust MODEL FOLDER draw ACTION SEED COUNT           COUNT allocations drawn by the seed uir-exhaust MODEL
 * FOLDER work ACTION COUNT BEFORE         COUNT limits of work, and the last BEFORE before the need
 *
 * COUNT 0: all. In: a model and a folder for the cache and packages, kept between calls. A try that takes 60 s of wall
 * time is endless. Out: a line for each of the first tries that failed, then
 * `N passed, M failed`. Tries are in a process of their own, which goes on behind one that ends it. */
#include "uir/uir.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRY_S = 60, INPUTS = 16, RANK = 16, REPORTED = 10 };

/* ---- memory that fails once ---- */
typedef struct memory {
    atomic_ulong asked, fail_at; /* 0: never */
    atomic_llong alive;
} memory;

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    memory *m = user;
    void *block = NULL;
    if (new_size && atomic_fetch_add(&m->asked, 1) + 1 == atomic_load(&m->fail_at)) return NULL;
    if (new_size && posix_memalign(&block, 64, new_size) != 0) return NULL;
    if (block && pointer) memcpy(block, pointer, old_size < new_size ? old_size : new_size);
    free(pointer);
    atomic_fetch_add(&m->alive, (long long)new_size - (long long)(pointer ? old_size : 0));
    return block;
}

/* ---- what is tried ---- */
typedef struct attempt {
    const char *model, *folder;
    memory memory;
    uir_limits limits;
    uint64_t sum; /* of the results, where the status is OK */
    char message[200];
    uir_context *context;
} attempt;

static uir_status set_inputs(attempt *a, const uir_model *model, uir_session *session, uir_value **values) {
    for (size_t i = 0; i < uir_model_input_count(model) && i < INPUTS; i++) {
        uir_port port = {.struct_size = sizeof port};
        int64_t shape[RANK];
        uir_status status = uir_model_get_input(model, i, &port);
        if (status == UIR_STATUS_OK) status = uir_model_get_input_shape(model, i, NULL, 0, shape);
        if (status == UIR_STATUS_OK)
            status = uir_value_create_tensor(a->context, port.dtype, port.rank, shape, &values[i]);
        if (status == UIR_STATUS_OK) status = uir_value_fill_random(values[i], i + 1, 0, 1);
        if (status == UIR_STATUS_OK) status = uir_session_set_input(session, i, values[i]);
        if (status != UIR_STATUS_OK) return status;
    }
    return UIR_STATUS_OK;
}

static uint64_t add_bytes(uint64_t sum, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++) sum = (sum ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return sum;
}

/* What it was given is given back in any case. */
static uir_status run(attempt *a, uir_model *model) {
    uir_session_options options = {.struct_size = sizeof options, .threads = 1, .limits = &a->limits};
    uir_value *values[INPUTS] = {NULL};
    uir_session *session = NULL;
    uir_status status = uir_session_create(model, &options, &session);
    if (status == UIR_STATUS_OK) status = set_inputs(a, model, session, values);
    if (status == UIR_STATUS_OK) status = uir_session_run(session);
    a->sum = 14695981039346656037u;
    for (size_t i = 0; status == UIR_STATUS_OK && i < uir_model_output_count(model); i++) {
        uir_value *value;
        status = uir_session_get_output(session, i, &value);
        if (status == UIR_STATUS_OK)
            a->sum = add_bytes(a->sum, uir_value_get_data(value), uir_value_get_byte_size(value));
    }
    uir_session_destroy(session);
    for (size_t i = 0; i < INPUTS; i++) uir_value_destroy(values[i]);
    return status;
}

static uir_status load_and_run(attempt *a, const uir_model_options *options) {
    uir_model *model = NULL;
    uir_status status = uir_model_load_file(a->context, a->model, options, &model);
    if (status == UIR_STATUS_OK) status = run(a, model);
    uir_model_destroy(model);
    return status;
}

static uir_status interpret(attempt *a) {
    return load_and_run(a, &(uir_model_options){.struct_size = sizeof(uir_model_options),
                                                .device = "interpreter",
                                                .no_cache = true,
                                                .limits = &a->limits});
}

static uir_status compile(attempt *a) {
    return load_and_run(a, &(uir_model_options){.struct_size = sizeof(uir_model_options),
                                                .device = "vm",
                                                .no_cache = true,
                                                .no_map = true,
                                                .limits = &a->limits});
}

/* From the cache, native code included, once an action has filled it; without a compiler (main). */
static uir_status start_again(attempt *a) {
    char cache[1024];
    snprintf(cache, sizeof cache, "%s/cache", a->folder);
    return load_and_run(
        a, &(uir_model_options){
               .struct_size = sizeof(uir_model_options), .device = "cpu", .cache = cache, .limits = &a->limits});
}

static uir_status fill_cache(attempt *a) {
    char cache[1024];
    uir_model *model = NULL;
    snprintf(cache, sizeof cache, "%s/cache", a->folder);
    uir_model_options options = {
        .struct_size = sizeof options, .device = "cpu", .cache = cache, .wait = true, .limits = &a->limits};
    uir_status status = uir_model_load_file(a->context, a->model, &options, &model);
    uir_model_destroy(model);
    return status;
}

static uir_status pack(attempt *a) {
    static const char *const devices[] = {"vm"};
    char path[1024];
    uir_package_write_options options = {
        .struct_size = sizeof options, .devices = devices, .device_count = 1, .no_native = true, .limits = &a->limits};
    snprintf(path, sizeof path, "%s/package.uir", a->folder);
    a->sum = 0;
    return uir_package_write_file(a->context, a->model, path, &options, NULL);
}

static uir_status open_and_run(attempt *a) {
    char path[1024];
    uir_model *model = NULL;
    uir_package_open_options options = {.struct_size = sizeof options, .limits = &a->limits};
    snprintf(path, sizeof path, "%s/package.uir", a->folder);
    uir_status status = uir_model_open_package_file(a->context, path, &options, &model);
    if (status == UIR_STATUS_OK) status = run(a, model);
    uir_model_destroy(model);
    return status;
}

static const struct action {
    const char *name;
    uir_status (*function)(attempt *a), (*first)(attempt *a); /* `first`: what it needs to be there; NULL: nothing */
} actions[] = {{"interpret", interpret, NULL},
               {"compile", compile, NULL},
               {"again", start_again, fill_cache},
               {"pack", pack, NULL},
               {"open", open_and_run, pack}};

static uir_status try(attempt *a, uir_status (*function)(attempt *a)) {
    uir_allocator allocator = {resize, &a->memory};
    uir_status status = uir_context_create(&allocator, &a->context);
    a->message[0] = 0;
    if (status != UIR_STATUS_OK) return status;
    status = function(a);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(a->context) && !a->message[0]; i++)
        snprintf(a->message, sizeof a->message, "%s", uir_context_get_message_text(a->context, i));
    uir_context_destroy(a->context);
    return status;
}

/* ---- tries in a process of their own ---- */
typedef struct shared {
    uint64_t at; /* the try that goes on */
    uint64_t passed, failed;
} shared;

typedef struct plan {
    const char *model, *folder;
    const struct action *action;
    bool work;
    const uint64_t *values; /* NULL: first, first + step ... */
    uint64_t first, step, count;
    uint64_t sum; /* of the right answer */
    shared *shared;
} plan;

static uint64_t value_of(const plan *p, uint64_t n) {
    return p->values ? p->values[n] : p->first + n * p->step;
}

static void report(const plan *p, uint64_t n, const char *what) {
    if (p->shared->failed++ < REPORTED)
        fprintf(stderr, "%s: %s, %s %llu: %s\n", p->model, p->action->name, p->work ? "work" : "allocation",
                (unsigned long long)value_of(p, n), what);
}

static attempt begin(const plan *p, uint64_t value) {
    attempt a = {.model = p->model, .folder = p->folder, .limits = {.struct_size = sizeof(uir_limits)}};
    atomic_store(&a.memory.fail_at, p->work ? 0 : value);
    if (p->work) a.limits.work = value;
    return a;
}

/* True: the value is past all that is needed. */
static bool check(const plan *p, uint64_t n) {
    char what[400];
    attempt a = begin(p, value_of(p, n));
    alarm(TRY_S);
    uir_status status = try(&a, p->action->function), wanted = p->work ? UIR_STATUS_LIMIT : UIR_STATUS_OUT_OF_MEMORY;
    alarm(0);
    if (status != UIR_STATUS_OK && status != wanted) {
        snprintf(what, sizeof what, "ends as '%s': %s", uir_status_text(status), a.message);
        report(p, n, what);
    } else if (atomic_load(&a.memory.alive)) {
        snprintf(what, sizeof what, "%lld bytes are left", (long long)atomic_load(&a.memory.alive));
        report(p, n, what);
    } else if (status == UIR_STATUS_OK && a.sum != p->sum) {
        report(p, n, "the answer is wrong");
    } else {
        p->shared->passed++;
    }
    return !p->work && !p->count && atomic_load(&a.memory.asked) < value_of(p, n);
}

static void check_from(const plan *p, uint64_t first) {
    for (uint64_t n = first; !p->count || n < p->count; n++) {
        p->shared->at = n;
        if (check(p, n)) break;
    }
}

static void check_all(const plan *p) {
    for (uint64_t first = 0; !p->count || first < p->count;) {
        int ended;
        char what[64];
        pid_t child = fork();
        if (child == 0) {
            check_from(p, first);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &ended, 0) != child) {
            report(p, first, "no process for it");
            return;
        }
        if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return;
        snprintf(what, sizeof what, WIFSIGNALED(ended) ? "ended by signal %d" : "ended with %d",
                 WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
        report(p, p->shared->at, what);
        first = p->shared->at + 1;
        if (p->shared->failed > 1000) return;
    }
}

/* ---- which values ---- */
static uint64_t draw(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 16;
}

/* The least limit by which the action is done. */
static uint64_t find_need(const plan *p) {
    uint64_t least = 1, most = (uint64_t)1 << 40;
    while (least < most) {
        uint64_t middle = least + (most - least) / 2;
        attempt a = begin(p, middle);
        if (try(&a, p->action->function) == UIR_STATUS_OK)
            most = middle;
        else
            least = middle + 1;
    }
    return most;
}

/* Spread by their logarithm up to the need and half as much again, then those right before it. */
static uint64_t *choose_limits(const plan *p, uint64_t count, uint64_t before, uint64_t *out_count) {
    uint64_t need = find_need(p), *values = calloc(count + before + 1, sizeof *values), at = 0;
    if (!values) return NULL;
    for (uint64_t i = 0; i < count; i++) {
        double value = pow((double)need * 1.5, (double)(i + 1) / (double)count);
        values[at++] = value < 1 ? 1 : (uint64_t)value;
    }
    for (uint64_t i = 1; i <= before && i < need; i++) values[at++] = need - i;
    values[at++] = need;
    *out_count = at;
    return values;
}

static uint64_t number(char **argv, int argc, int at) {
    return at < argc ? strtoull(argv[at], NULL, 10) : 0;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    plan p = {.model = argv[1], .folder = argv[2], .work = !strcmp(argv[3], "work")};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(actions[i].name, argv[4])) p.action = &actions[i];
    if (!p.action) return 2;
    p.shared = mmap(NULL, sizeof *p.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.shared == MAP_FAILED) return 2;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    attempt a = begin(&p, 0);
    a.limits.work = 0;
    uir_status status = p.action->first ? try(&a, p.action->first) : UIR_STATUS_OK;
    setenv("CC", "/bin/false", 1); /* from here on native code comes from the cache, or not at all */
    if (status == UIR_STATUS_OK) {
        a = begin(&p, 0);
        a.limits.work = 0;
        status = try(&a, p.action->function);
    }
    p.sum = a.sum;
    uint64_t total = atomic_load(&a.memory.asked), *values = NULL;
    if (status != UIR_STATUS_OK) {
        fprintf(stderr, "%s: %s: %s: %s\n", p.model, p.action->name, uir_status_text(status), a.message);
        printf("0 passed, 1 failed\n");
        return 1;
    }
    if (p.work) {
        values = choose_limits(&p, number(argv, argc, 5), number(argv, argc, 6), &p.count);
    } else if (!strcmp(argv[3], "draw")) {
        uint64_t random = number(argv, argc, 5);
        p.count = number(argv, argc, 6);
        values = calloc(p.count + 1, sizeof *values);
        for (uint64_t i = 0; values && i < p.count; i++) values[i] = 1 + draw(&random) % total;
    } else {
        p.first = number(argv, argc, 5);
        p.step = number(argv, argc, 6) ? number(argv, argc, 6) : 1;
        p.count = number(argv, argc, 7);
    }
    p.values = values;
    check_all(&p);
    free(values);
    printf("%llu of %llu allocations\n", (unsigned long long)p.shared->passed, (unsigned long long)total);
    printf("%llu passed, %llu failed\n", (unsigned long long)p.shared->passed, (unsigned long long)p.shared->failed);
    return p.shared->failed != 0;
}
