/* What runs leave behind: nothing. A model's results are the same bits whatever ran before and whatever memory held,
 * and a run like the ones before it allocates nothing.
 *
 *   uir-steady MODEL DEVICE THREADS DATA_A DATA_B
 *
 * In: folders with input_N.pb. Session 1, in memory that was filled with ones, runs A, B, A; session 2, in memory of
 * zeros, runs B, A; both give the same bits for the same data. Then A is run ten times: every allocation of the
 * process, on any thread, is counted in the third run and in the tenth (but not under a sanitizer, which has its own).
 * Out: a line for each, then `N passed, M failed, S skipped`. */
#include "uir/uir.h"
#include "tools/run/query.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS 0
#endif
#endif
#ifndef COUNTS
#define COUNTS 1
#endif

/* ---- every allocation of the process ---- */
static atomic_ulong allocations;

#if COUNTS
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, size);
}
void *realloc(void *pointer, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(pointer, size);
}
void *memalign(size_t alignment, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
    *out = memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
    atomic_fetch_add(&allocations, 1);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}
#endif

/* ---- memory that was filled before ---- */
static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    void *fresh = NULL;
    if (new_size && posix_memalign(&fresh, 64, new_size)) return NULL;
    if (fresh) memset(fresh, *(const int *)user, new_size);
    if (fresh && pointer) memcpy(fresh, pointer, old_size < new_size ? old_size : new_size);
    free(pointer);
    return fresh;
}

enum { MOST = 128 };

typedef struct world {
    uir_context *context;
    uir_model *model;
    uir_session *session;
    uir_value *data[2][MOST]; /* inputs of A and of B */
} world;

typedef struct results {
    char *bytes[MOST];
    size_t sizes[MOST];
    size_t count;
} results;

static void must(const world *w, uir_status status, const char *what) {
    if (status == UIR_STATUS_OK) return;
    fprintf(stderr, "%s: %s\n", what, uir_status_text(status));
    for (size_t i = 0; w->context && i < uir_context_message_count(w->context); i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(w->context, i));
    exit(1);
}

static void open_world(world *w, char **argv, const int *pattern) {
    uir_allocator allocator = {resize, (void *)(uintptr_t)pattern};
    uir_model_options options = {.struct_size = sizeof options, .device = argv[2], .wait = true};
    uir_session_options session = {.struct_size = sizeof session, .threads = (uint32_t)atoi(argv[3])};
    must(w, uir_context_create(&allocator, &w->context), "a context");
    must(w, uir_model_load_file(w->context, argv[1], &options, &w->model), argv[1]);
    must(w, uir_session_create(w->model, &session, &w->session), "a session");
    for (int set = 0; set < 2; set++) {
        for (size_t i = 0; i < uir_model_input_count(w->model) && i < MOST; i++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/input_%zu.pb", argv[4 + set], i);
            must(w, uir_value_load_file(w->context, path, NULL, query_input(w->model, i).kind, &w->data[set][i]), path);
        }
    }
}

static void close_world(world *w) {
    uir_session_destroy(w->session);
    for (int set = 0; set < 2; set++)
        for (int i = 0; i < MOST; i++) uir_value_destroy(w->data[set][i]);
    uir_model_destroy(w->model);
    uir_context_destroy(w->context);
}

/* Inputs, the run, and where its outputs are. */
static void run(const world *w, int set) {
    uir_value *output;
    for (size_t i = 0; i < uir_model_input_count(w->model) && i < MOST; i++)
        must(w, uir_session_set_input(w->session, i, w->data[set][i]), "an input");
    must(w, uir_session_run(w->session), "a run");
    for (size_t k = 0; k < uir_model_output_count(w->model) && k < MOST; k++)
        must(w, uir_session_get_output(w->session, k, &output), "an output");
}

static void keep(const world *w, results *r) {
    r->count = uir_model_output_count(w->model) < MOST ? uir_model_output_count(w->model) : MOST;
    for (size_t k = 0; k < r->count; k++) {
        uir_value *output;
        must(w, uir_session_get_output(w->session, k, &output), "an output");
        r->sizes[k] = uir_value_get_byte_size(output);
        r->bytes[k] = malloc(r->sizes[k] + 1);
        if (!r->bytes[k]) exit(1);
        memcpy(r->bytes[k], uir_value_get_data(output), r->sizes[k]);
    }
}

static bool same(const results *a, const results *b) {
    for (size_t k = 0; k < a->count; k++) {
        if (a->sizes[k] != b->sizes[k] || memcmp(a->bytes[k], b->bytes[k], a->sizes[k])) return false;
    }
    return true;
}

static uint32_t passed, failed;
static void check(bool fine, const char *what) {
    printf("%s %s\n", fine ? "ok  " : "FAIL", what);
    *(fine ? &passed : &failed) += 1;
}

static void count_runs(const world *w) {
    unsigned long counts[11] = {0};
    check(atomic_load(&allocations) > 100, "allocations are counted");
    for (int i = 1; i <= 10; i++) {
        unsigned long before = atomic_load(&allocations);
        run(w, 0);
        counts[i] = atomic_load(&allocations) - before;
    }
    check(counts[3] == 0 && counts[10] == 0, "the third run and the tenth allocate nothing");
    if (counts[3] || counts[10]) printf("     %lu in the third, %lu in the tenth\n", counts[3], counts[10]);
}

int main(int argc, char **argv) {
    static const int ones = 0xff, zeros = 0;
    static results kept[5];
    world first = {0}, second = {0};
    if (argc != 6) return 2;
    open_world(&first, argv, &ones);
    for (int i = 0; i < 3; i++) {
        run(&first, i % 2);
        keep(&first, &kept[i]);
    }
    open_world(&second, argv, &zeros);
    for (int i = 0; i < 2; i++) {
        run(&second, 1 - i);
        keep(&second, &kept[3 + i]);
    }
    check(same(&kept[0], &kept[2]), "A is the same after B");
    check(same(&kept[1], &kept[3]), "B is the same in other memory");
    check(same(&kept[0], &kept[4]), "A is the same in other memory");
    if (COUNTS) count_runs(&second);
    close_world(&first);
    close_world(&second);
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < kept[i].count; k++) free(kept[i].bytes[k]);
    if (!COUNTS) printf("skip: a sanitizer allocates in its own way\n");
    printf("%u passed, %u failed, %d skipped\n", passed, failed, !COUNTS);
    return failed ? 1 : 0;
}
