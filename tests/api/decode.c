/* Decoding steps of a model with caches, once with packed copies and once in place: the same bits, and in place nothing
 * but the new rows of the caches is written.
 *
 *   uir-decode MODEL.onnx [DEVICE]
 *
 * Inputs `past*` and outputs `present*`, in the order of the ports, are the caches: [batch, heads, past, channels]. In
 * place each stretch has room for 64 pages of rows, the rows of the past fill whole pages, and these cannot be written
 * while the step runs. Out: lines of what agrees; `N passed, M failed, S skipped`. */
#include "tests/api/decoder.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MOST = DECODER_PORTS, RANK = DECODER_RANK, BATCH = 2, STEPS = 3 };

typedef struct cache {
    decoder_cache base;
    int64_t shape[RANK];
    float *memory;
} cache;

typedef struct world {
    uir_context *context;
    uir_model *model;
    cache caches[MOST];
    size_t cache_count;
    int64_t past;
    uint32_t passed, failed;
} world;

static void check(world *w, bool fine, const char *what, int step) {
    printf("%s step %d: %s\n", fine ? "ok  " : "FAIL", step, what);
    *(fine ? &w->passed : &w->failed) += 1;
}

static void must(world *w, uir_status status, const char *what) {
    decoder_must(w->context, status, what);
}

static void find_caches(world *w) {
    static decoder_cache found[MOST];
    long page = sysconf(_SC_PAGESIZE);
    w->cache_count = decoder_find_caches(w->model, found);
    for (size_t k = 0; k < w->cache_count; k++) {
        cache *c = &w->caches[k];
        c->base = found[k];
        w->past = page / (int64_t)sizeof(float) / c->base.channels;
        decoder_size_cache(&c->base, BATCH, 64 * w->past);
        memcpy(c->shape, (int64_t[]){BATCH, c->base.heads, w->past, c->base.channels}, sizeof c->shape);
        c->memory = mmap(NULL, c->base.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (c->memory == MAP_FAILED) exit(1);
    }
}

/* The rows of the past, which are whole pages in the first step. */
static void protect(const world *w, int protection) {
    for (size_t k = 0; k < w->cache_count; k++) {
        const cache *c = &w->caches[k];
        for (int64_t stretch = 0; stretch < BATCH * c->shape[1]; stretch++)
            mprotect(c->memory + stretch * c->base.strides[1], (size_t)(w->past * c->shape[3]) * sizeof(float),
                     protection);
    }
}

static void copy_rows(const cache *c, float *packed, int64_t rows, bool to_packed) {
    for (int64_t stretch = 0; stretch < BATCH * c->shape[1]; stretch++) {
        float *inside = c->memory + stretch * c->base.strides[1], *outside = packed + stretch * rows * c->shape[3];
        memcpy(to_packed ? outside : inside, to_packed ? inside : outside,
               (size_t)(rows * c->shape[3]) * sizeof(float));
    }
}

static void set_others(world *w, uir_session *a, uir_session *b, int64_t past, uir_value **values) {
    (void)decoder_make_others(w->context, w->model, BATCH, past, values);
    for (size_t i = 0; i < uir_model_input_count(w->model); i++) {
        if (!values[i]) continue;
        must(w, uir_session_set_input(a, i, values[i]), "an input");
        must(w, uir_session_set_input(b, i, values[i]), "an input");
    }
}

static bool same_outputs(world *w, uir_session *a, uir_session *b) {
    for (size_t k = 0; k < uir_model_output_count(w->model); k++) {
        uir_value *x, *y;
        must(w, uir_session_get_output(a, k, &x), "an output");
        must(w, uir_session_get_output(b, k, &y), "an output");
        if (uir_value_get_byte_size(x) != uir_value_get_byte_size(y) ||
            memcmp(uir_value_get_data(x), uir_value_get_data(y), uir_value_get_byte_size(x)))
            return false;
    }
    return true;
}

static void step(world *w, uir_session *packed, uir_session *placed, int number) {
    uir_value *values[MOST] = {NULL};
    int64_t past = w->past;
    uint64_t past_bytes = 0;
    set_others(w, packed, placed, past, values);
    for (size_t k = 0; k < w->cache_count; k++) {
        cache *c = &w->caches[k];
        c->shape[2] = past;
        must(w, uir_value_create_tensor(w->context, UIR_DTYPE_F32, RANK, c->shape, &values[c->base.input]), "a cache");
        copy_rows(c, uir_value_get_data(values[c->base.input]), past, true);
        past_bytes += uir_value_get_byte_size(values[c->base.input]);
        must(w, uir_session_set_input(packed, c->base.input, values[c->base.input]), "a cache");
        must(w,
             uir_session_bind_input(placed, c->base.input, RANK, c->shape, c->base.strides, c->memory, c->base.bytes),
             "a cache");
        must(w,
             uir_session_bind_output_strided(placed, c->base.output, RANK, c->base.strides, c->memory, c->base.bytes),
             "a cache");
    }
    must(w, uir_session_run(packed), "a packed run");
    if (number == 0) protect(w, PROT_READ);
    must(w, uir_session_run(placed), "a run in place");
    if (number == 0) protect(w, PROT_READ | PROT_WRITE);
    uint64_t most = query_statistics(packed).dram_bytes, least = query_statistics(placed).dram_bytes;
    check(w, same_outputs(w, packed, placed), "the outputs are the same bits", number);
    check(w, most - least == 2 * past_bytes, "the past is neither read nor written to be copied", number);
    if (most - least != 2 * past_bytes)
        printf("     bytes: packed %llu, in place %llu, of the past %llu\n", (unsigned long long)most,
               (unsigned long long)least, (unsigned long long)past_bytes);
    for (int i = 0; i < MOST; i++) uir_value_destroy(values[i]);
    w->past++;
}

int main(int argc, char **argv) {
    world w = {0};
    uir_model_options options = {.struct_size = sizeof options, .device = argc > 2 ? argv[2] : "cpu", .wait = true};
    uir_session *packed, *placed;
    if (argc < 2) return 2;
    must(&w, uir_context_create(NULL, &w.context), "a context");
    must(&w, uir_model_load_file(w.context, argv[1], &options, &w.model), argv[1]);
    find_caches(&w);
    must(&w, uir_session_create(w.model, NULL, &packed), "a session");
    must(&w, uir_session_create(w.model, NULL, &placed), "a session");
    for (size_t k = 0; k < w.cache_count; k++)
        for (size_t i = 0; i < w.caches[k].base.bytes / sizeof(float); i++)
            w.caches[k].memory[i] = (float)((i * 2654435761u + k * 97) % 2000) / 1000.0f - 1;
    check(&w, w.cache_count > 0, "the model has caches", 0);
    for (int i = 0; i < STEPS; i++) step(&w, packed, placed, i);
    uir_session_destroy(packed);
    uir_session_destroy(placed);
    uir_model_destroy(w.model);
    uir_context_destroy(w.context);
    printf("%u passed, %u failed, 0 skipped\n", w.passed, w.failed);
    return w.failed ? 1 : 0;
}
