/* Decoding steps of a model with caches, once with packed copies and once in place: the same bits, and in place nothing
 * but the new rows of the caches is written.
 *
 *   uir-decode MODEL.onnx [DEVICE]
 *
 * Inputs `past*` and outputs `present*`, in the order of the ports, are the caches: [batch, heads, past, channels]. In
 * place each stretch has room for 64 pages of rows, the rows of the past fill whole pages, and these cannot be written
 * while the step runs. Out: lines of what agrees; `N passed, M failed, S skipped`. */
#include "uir/uir.h"
#include "tools/run/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 200, RANK = 4, BATCH = 2, STEPS = 3 };

typedef struct cache {
    size_t input, output;
    int64_t shape[RANK], strides[RANK];
    int64_t capacity; /* rows of a stretch */
    float *memory;
    size_t size;
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
    if (status == UIR_STATUS_OK) return;
    fprintf(stderr, "%s: %s\n", what, uir_status_text(status));
    for (size_t i = 0; w->context && i < uir_context_message_count(w->context); i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(w->context, i));
    exit(1);
}

static void find_caches(world *w) {
    size_t output = 0;
    long page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < uir_model_input_count(w->model) && w->cache_count < MOST; i++) {
        uir_port port = query_input(w->model, i);
        if (strncmp(port.name, "past", 4) || port.rank != RANK || port.dtype != UIR_DTYPE_F32) continue;
        while (output < uir_model_output_count(w->model) &&
               strncmp(uir_model_get_output_name(w->model, output), "present", 7))
            output++;
        cache *c = &w->caches[w->cache_count++];
        c->input = i;
        c->output = output++;
        int64_t rows = page / (int64_t)sizeof(float) / port.dims[3];
        w->past = rows;
        c->capacity = 64 * rows;
        memcpy(c->shape, (int64_t[]){BATCH, port.dims[1], rows, port.dims[3]}, sizeof c->shape);
        memcpy(c->strides,
               (int64_t[]){port.dims[1] * c->capacity * port.dims[3], c->capacity * port.dims[3], port.dims[3], 1},
               sizeof c->strides);
        c->size = (size_t)(BATCH * c->strides[0]) * sizeof(float);
        c->memory = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (c->memory == MAP_FAILED) exit(1);
    }
}

/* The rows of the past, which are whole pages in the first step. */
static void protect(const world *w, int protection) {
    for (size_t k = 0; k < w->cache_count; k++) {
        const cache *c = &w->caches[k];
        for (int64_t stretch = 0; stretch < BATCH * c->shape[1]; stretch++)
            mprotect(c->memory + stretch * c->strides[1], (size_t)(w->past * c->shape[3]) * sizeof(float), protection);
    }
}

static void copy_rows(const cache *c, float *packed, int64_t rows, bool to_packed) {
    for (int64_t stretch = 0; stretch < BATCH * c->shape[1]; stretch++) {
        float *inside = c->memory + stretch * c->strides[1], *outside = packed + stretch * rows * c->shape[3];
        memcpy(to_packed ? outside : inside, to_packed ? inside : outside,
               (size_t)(rows * c->shape[3]) * sizeof(float));
    }
}

/* Inputs that are no caches: small token numbers, ones for masks. */
static void set_others(world *w, uir_session *a, uir_session *b, int64_t past, uir_value **values) {
    uir_dim_binding dims[] = {{"batch", BATCH}, {"sequence", 1}, {"past", past}, {"total", past + 1}};
    for (size_t i = 0; i < uir_model_input_count(w->model); i++) {
        uir_port port = query_input(w->model, i);
        int64_t shape[16];
        if (!strncmp(port.name, "past", 4)) continue;
        must(w, uir_model_get_input_shape(w->model, i, dims, 4, shape), port.name);
        must(w, uir_value_create_tensor(w->context, port.dtype, port.rank, shape, &values[i]), port.name);
        int64_t *data = uir_value_get_data(values[i]);
        for (uint64_t k = 0; k < uir_value_get_element_count(values[i]) && port.dtype == UIR_DTYPE_I64; k++)
            data[k] = strstr(port.name, "mask")       ? 1
                      : strstr(port.name, "position") ? past
                                                      : (int64_t)(7 * k + 3 + (uint64_t)past);
        must(w, uir_session_set_input(a, i, values[i]), port.name);
        must(w, uir_session_set_input(b, i, values[i]), port.name);
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
        must(w, uir_value_create_tensor(w->context, UIR_DTYPE_F32, RANK, c->shape, &values[c->input]), "a cache");
        copy_rows(c, uir_value_get_data(values[c->input]), past, true);
        past_bytes += uir_value_get_byte_size(values[c->input]);
        must(w, uir_session_set_input(packed, c->input, values[c->input]), "a cache");
        must(w, uir_session_bind_input(placed, c->input, RANK, c->shape, c->strides, c->memory, c->size), "a cache");
        must(w, uir_session_bind_output_strided(placed, c->output, RANK, c->strides, c->memory, c->size), "a cache");
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
        for (size_t i = 0; i < w.caches[k].size / sizeof(float); i++)
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
