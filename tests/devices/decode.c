/* Decoding steps with the caches in a device's memory: `uir-device-decode MODEL.onnx DEVICE STEPS`.
 *
 * In: a decoder with caches (tests/api/decoder.h), a device with memory of its own. Each cache is a value on the
 * device, bound as `past` and `present` with the strides of its capacity; the VM does the same in the host's memory.
 * Out: a line per failure, the bytes over the bus, `N passed, M failed, S skipped`. In each step the logits are the
 * VM's bits, and the bytes over the bus are those of the other inputs and outputs, and at most 4 KB, the same in each
 * step. */
#include "tests/api/decoder.h"
#include "uir/device.h"

enum { BATCH = 1, MOST_MORE = 4096 };

typedef struct side {
    uir_model *model;
    uir_session *session;
    uir_value *caches[DECODER_PORTS];
} side;

typedef struct world {
    uir_context *context;
    decoder_cache caches[DECODER_PORTS];
    size_t cache_count;
    side host, device;
    int64_t capacity;
    uint32_t passed, failed;
    uint64_t more; /* bytes over the bus besides inputs and outputs, in the first step */
} world;

static void must(const world *w, uir_status status, const char *what) {
    decoder_must(w->context, status, what);
}

static void tell(world *w, bool fine, const char *what, int64_t step) {
    *(fine ? &w->passed : &w->failed) += 1;
    if (!fine) printf("FAILED: step %lld: %s\n", (long long)step, what);
}

static void open_side(world *w, side *s, const char *path, const char *device) {
    const uir_model_options options = {.struct_size = sizeof options, .device = device, .wait = true, .no_cache = true};
    const uir_session_options one = {.struct_size = sizeof one, .threads = 1};
    must(w, uir_model_load_file(w->context, path, &options, &s->model), path);
    must(w, uir_session_create(s->model, &one, &s->session), "a session");
}

static void make_caches(world *w, side *s) {
    uir_device *device = uir_model_get_device(s->model);
    for (size_t k = 0; k < w->cache_count; k++) {
        decoder_cache *c = &w->caches[k];
        const int64_t shape[] = {BATCH, c->heads, w->capacity, c->channels};
        decoder_size_cache(c, BATCH, w->capacity);
        must(w,
             device ? uir_value_create_on_device(device, UIR_DTYPE_F32, DECODER_RANK, shape, &s->caches[k])
                    : uir_value_create_tensor(w->context, UIR_DTYPE_F32, DECODER_RANK, shape, &s->caches[k]),
             "a cache");
    }
}

static void run(const world *w, side *s, int64_t past, uir_value **others) {
    for (size_t i = 0; i < uir_model_input_count(s->model); i++)
        if (others[i]) must(w, uir_session_set_input(s->session, i, others[i]), "an input");
    for (size_t k = 0; k < w->cache_count; k++) {
        const decoder_cache *c = &w->caches[k];
        const int64_t shape[] = {BATCH, c->heads, past, c->channels};
        must(w, uir_session_bind_input_value(s->session, c->input, DECODER_RANK, shape, c->strides, s->caches[k]),
             "past");
        must(w, uir_session_bind_output_value(s->session, c->output, DECODER_RANK, c->strides, s->caches[k]),
             "present");
    }
    must(w, uir_session_run(s->session), "a step");
}

static bool is_cache(const world *w, size_t output) {
    for (size_t k = 0; k < w->cache_count; k++)
        if (w->caches[k].output == output) return true;
    return false;
}

/* Of the outputs that are no caches. Returns their bytes; `*out_same`: the host's are the same. */
static uint64_t compare(const world *w, bool *out_same) {
    uint64_t bytes = 0;
    *out_same = true;
    for (size_t i = 0; i < uir_model_output_count(w->host.model); i++) {
        uir_value *here, *there;
        if (is_cache(w, i)) continue;
        must(w, uir_session_get_output(w->host.session, i, &here), "an output");
        must(w, uir_session_get_output(w->device.session, i, &there), "an output");
        size_t size = uir_value_get_byte_size(there);
        *out_same &=
            size == uir_value_get_byte_size(here) && !memcmp(uir_value_get_data(here), uir_value_get_data(there), size);
        bytes += size;
    }
    return bytes;
}

static void step(world *w, int64_t past) {
    uir_value *others[DECODER_PORTS] = {NULL};
    bool same;
    uint64_t known = decoder_make_others(w->context, w->host.model, BATCH, past, others);
    run(w, &w->host, past, others);
    run(w, &w->device, past, others);
    known += compare(w, &same);
    const uir_run_statistics s = query_statistics(w->device.session);
    uint64_t crossed = s.bytes_to_device + s.bytes_from_device, more = crossed - known;
    tell(w, same, "the outputs are other bits than the VM's", past);
    if (past == 0) w->more = more;
    tell(w, crossed <= known + MOST_MORE && more == w->more, "other bytes went over the bus", past);
    if (past == 0 || past == w->capacity - 1 || more != w->more)
        printf("step %lld: %llu bytes over the bus, %llu of inputs and outputs; %llu waits\n", (long long)past + 1,
               (unsigned long long)crossed, (unsigned long long)known, (unsigned long long)s.waits);
    for (size_t i = 0; i < DECODER_PORTS; i++) uir_value_destroy(others[i]);
}

static bool same_caches(const world *w) {
    bool same = true;
    for (size_t k = 0; k < w->cache_count && same; k++) {
        size_t size = uir_value_get_byte_size(w->host.caches[k]);
        char *bytes = malloc(size);
        if (!bytes) exit(1);
        must(w, uir_value_read(w->device.caches[k], 0, bytes, size), "reading a cache");
        same = !memcmp(bytes, uir_value_get_data(w->host.caches[k]), size);
        free(bytes);
    }
    return same;
}

static void close_side(const world *w, side *s) {
    uir_session_destroy(s->session);
    for (size_t k = 0; k < w->cache_count; k++) uir_value_destroy(s->caches[k]);
    uir_model_destroy(s->model);
}

int main(int argc, char **argv) {
    static world w;
    if (argc != 4) return 2;
    w.capacity = atoi(argv[3]);
    must(&w, uir_context_create(NULL, &w.context), "a context");
    open_side(&w, &w.host, argv[1], "vm");
    open_side(&w, &w.device, argv[1], argv[2]);
    w.cache_count = decoder_find_caches(w.host.model, w.caches);
    tell(&w, w.cache_count > 0, "the model has no caches", 0);
    make_caches(&w, &w.host);
    make_caches(&w, &w.device);
    for (int64_t past = 0; past < w.capacity; past++) step(&w, past);
    tell(&w, same_caches(&w), "the caches are other bits than the VM's", w.capacity);
    close_side(&w, &w.host);
    close_side(&w, &w.device);
    uir_context_destroy(w.context);
    printf("%u passed, %u failed, 0 skipped\n", w.passed, w.failed);
    return w.failed || !w.passed;
}
