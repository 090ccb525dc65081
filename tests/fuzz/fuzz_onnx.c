/* Mutates given ONNX files and loads them: no crash, no hang, no leak, and never a failure without a message.
 *
 * fuzz_onnx [--iterations N] [--seed S] [--only I] [--frontend] [FILE...]
 *
 * Each iteration is a function of seed and number alone: --only I repeats one. By default a file goes through the whole
 * load of the public API (reading, decomposition, clean-up), with --frontend only through the reader. External data is
 * looked for beside each file. Exit code 0 when nothing was found. */
#include "api/internal.h"
#include "frontend/frontend.h"
#include "frontend/wire.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A load of a damaged file may take this long and this much. */
#define MAX_SECONDS 20
#define MAX_BYTES   ((int64_t)3 << 30)

typedef struct memory {
    int64_t live, peak;
} memory;

static void *counted_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    memory *memory = user;
    uir_allocator system = uir_allocator_system();
    int64_t change = (int64_t)new_size - (pointer ? (int64_t)old_size : 0);
    if (new_size && (new_size > (size_t)MAX_BYTES || memory->live + change > MAX_BYTES)) return NULL;
    void *block = system.resize(system.user, pointer, old_size, new_size);
    if (block || !new_size) memory->live += change;
    if (memory->live > memory->peak) memory->peak = memory->live;
    return block;
}

typedef struct sample {
    const char *path;
    char folder[1024];
    uint8_t *data;
    size_t size;
} sample;

static uint64_t random_state;
static uint64_t random_next(void) {
    uint64_t x = random_state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}
static size_t random_below(size_t limit) {
    return limit ? (size_t)(random_next() % limit) : 0;
}

static bool read_sample(const char *path, sample *out) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return false;
    long size = ftell(file);
    rewind(file);
    const char *slash = strrchr(path, '/');
    snprintf(out->folder, sizeof out->folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    out->path = path;
    out->size = size > 0 ? (size_t)size : 0;
    out->data = malloc(out->size + 1);
    bool good = out->data && fread(out->data, 1, out->size, file) == out->size;
    fclose(file);
    return good && out->size > 0;
}

/* A place in a file and the messages around it, whose lengths can follow when bytes are put in or taken out there. */
typedef struct location {
    size_t at;
    uint32_t depth;
    struct {
        size_t length_at;
        uint32_t length_size;
        uint64_t length;
    } around[12];
} location;

/* A place that means something: the start of a random field, found by going down through what reads as messages. */
static location random_place(const uint8_t *data, size_t size) {
    location place = {0};
    uir_wire_reader reader = {data, data + size};
    const uint8_t *found = data;
    if (random_below(8) == 0) {
        place.at = random_below(size);
        return place;
    }
    for (;;) {
        size_t skip = random_below(1 + random_below(300));
        uir_wire_field field, chosen = {0};
        for (size_t i = 0; i <= skip && reader.at != reader.end; i++) {
            if (uir_wire_next(&reader, &field)) break;
            chosen = field;
        }
        if (!chosen.start) break;
        found = chosen.start;
        bool deeper = chosen.type == UIR_WIRE_BYTES && chosen.length > 0 && place.depth < 12 && random_below(5) > 0;
        if (!deeper) break;
        uint32_t length_size = uir_wire_varint_size(chosen.length);
        place.around[place.depth].length_at = (size_t)(chosen.data - data) - length_size;
        place.around[place.depth].length_size = length_size;
        place.around[place.depth++].length = chosen.length;
        reader = (uir_wire_reader){chosen.data, chosen.data + chosen.length};
        found = chosen.data;
    }
    place.at = (size_t)(found - data) + random_below(6);
    if (place.at >= size) place.at = size - 1;
    return place;
}

/* Files over this size spend their iterations on weights. */
#define MAX_FILE ((size_t)3 << 20)

/* The models at hand, when none is named. Paths stay allocated until the program ends. */
static size_t find_samples(sample **out_samples) {
    static glob_t found;
    size_t count = 0;
    glob("models/*/*.onnx", 0, NULL, &found);
    glob("build/models/*/model.onnx", GLOB_APPEND, NULL, &found);
    *out_samples = calloc(found.gl_pathc + 1, sizeof **out_samples);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        sample *at = &(*out_samples)[count];
        if (read_sample(found.gl_pathv[i], at) && at->size <= MAX_FILE) {
            count++;
        } else {
            free(at->data);
        }
    }
    return count;
}

typedef struct buffer {
    uint8_t *data;
    size_t size, capacity;
} buffer;

/* Replaces `removed` bytes at the place by `count` others, mostly with the lengths around it put right. */
static void splice(buffer *b, const location *place, size_t removed, const uint8_t *bytes, size_t count) {
    if (removed > b->size - place->at) removed = b->size - place->at;
    if (b->size - removed + count > b->capacity) return;
    for (uint32_t i = 0; i < place->depth && random_below(30) > 0; i++) {
        uint64_t length = place->around[i].length + count;
        length = length > removed ? length - removed : 0;
        uint32_t size = place->around[i].length_size;
        if (uir_wire_varint_size(length) > size) return;
        for (uint32_t n = 0; n < size; n++, length >>= 7) {
            b->data[place->around[i].length_at + n] = (uint8_t)((length & 0x7f) | (n + 1 < size ? 0x80 : 0));
        }
    }
    memmove(b->data + place->at + count, b->data + place->at + removed, b->size - place->at - removed);
    if (count) memcpy(b->data + place->at, bytes, count);
    b->size = b->size - removed + count;
}

/* A whole field of a file, bounded in size. */
static const uint8_t *random_field(const sample *from, size_t *out_size) {
    location place = random_place(from->data, from->size);
    uir_wire_reader reader = {from->data + place.at, from->data + from->size};
    uir_wire_field field;
    for (int tries = 0; tries < 6; tries++) {
        reader.at = from->data + (place.at >= (size_t)tries ? place.at - (size_t)tries : 0);
        if (!uir_wire_next(&reader, &field) && reader.at - field.start < 2000) {
            *out_size = (size_t)(reader.at - field.start);
            return field.start;
        }
    }
    *out_size = 1;
    return from->data + place.at;
}

static void mutate(buffer *b, const sample *samples, size_t sample_count) {
    static const uint8_t telling[] = {0x00, 0x01, 0x02, 0x07, 0x08, 0x10, 0x7f, 0x80, 0xfe, 0xff};
    static const uint8_t longs[][10] = {{0xff, 0xff, 0xff, 0xff, 0x07},
                                        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
                                        {0x80, 0x80, 0x80, 0x80, 0x10}};
    if (b->size == 0) return;
    location place = random_place(b->data, b->size);
    size_t size;
    uint8_t bytes[10];
    const uint8_t *piece;
    switch (random_below(9)) {
    case 0:
        b->data[place.at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        b->data[place.at] = telling[random_below(sizeof telling)];
        break;
    case 2:
        b->data[place.at] = (uint8_t)random_next();
        break;
    case 3:
        splice(b, &place, 1 + random_below(8), NULL, 0);
        break;
    case 4:
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)random_next();
        splice(b, &place, 0, bytes, 1 + random_below(sizeof bytes));
        break;
    case 5:
        splice(b, &place, 1, longs[random_below(3)], 10 - 5 * random_below(2));
        break;
    case 6: /* a field of some file put in, or in the place of another */
        piece = random_field(&samples[random_below(sample_count)], &size);
        splice(b, &place, random_below(2) ? size : 0, piece, size);
        break;
    case 7:
        b->data[place.at] = (uint8_t)(b->data[place.at] + (random_below(2) ? 1 : -1));
        break;
    default:
        if (random_below(20) == 0) b->size = place.at; /* cut */
        break;
    }
}

static bool has_faults(const uir_model *model) {
    uir_model_info info = {.struct_size = sizeof info};
    return uir_model_get_info(model, &info) != UIR_STATUS_OK || info.fault_count > 0;
}

/* Whether the load went well, or failed with a message (or without memory for one), without a fault of the compiler. */
static bool load_whole(const uir_allocator *allocator, const buffer *b, const char *folder, uint64_t *good) {
    uir_context *context;
    uir_model *model;
    if (uir_context_create(allocator, &context) != UIR_STATUS_OK) return true;
    uir_status status = uir_model_load_memory(context, b->data, b->size, folder, NULL, &model);
    bool told = status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || uir_context_message_count(context) > 0;
    *good += status == UIR_STATUS_OK;
    told = told && status != UIR_STATUS_INTERNAL && !(status == UIR_STATUS_OK && has_faults(model));
    if (status == UIR_STATUS_OK) uir_model_destroy(model);
    uir_context_destroy(context);
    return told;
}

static bool load_frontend(const uir_allocator *allocator, const buffer *b, const char *folder, uint64_t *good) {
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *module = NULL;
    uir_diagnostics_init(&diagnostics, allocator);
    uir_arena_init(&arena, allocator);
    uir_onnx_source source = {.data = b->data, .size = b->size, .folder = folder};
    uir_status status = uir_onnx_load(&source, allocator, &diagnostics, &arena, &info, &module);
    bool told = status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || diagnostics.error_count > 0;
    if (status == UIR_STATUS_OK) uir_module_destroy(module);
    *good += status == UIR_STATUS_OK;
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    return told;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void release_samples(sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) free(samples[i].data);
    free(samples);
}

int main(int argc, char **argv) {
    uint64_t iterations = 1000, seed = 1, only = UINT64_MAX, failures = 0, largest = 0, good = 0;
    bool frontend = false;
    unsetenv("UIR_STRICT"); /* a damaged file may contradict itself and be loaded all the same */
    sample *samples = calloc((size_t)argc, sizeof *samples);
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--iterations") && more) {
            iterations = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--seed") && more) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--only") && more) {
            only = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--frontend")) {
            frontend = true;
        } else if (read_sample(argv[i], &samples[count])) {
            count++;
        } else {
            fprintf(stderr, "fuzz_onnx: cannot read %s\n", argv[i]);
            release_samples(samples, count + 1);
            return 2;
        }
    }
    if (!count) {
        free(samples);
        count = find_samples(&samples);
    }
    if (!count) {
        free(samples);
        fprintf(stderr, "usage: fuzz_onnx [--iterations N] [--seed S] [--only I] [--frontend] FILE...\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        if (samples[i].size > largest) largest = samples[i].size;
    }
    buffer b = {.capacity = largest + 4096};
    b.data = malloc(b.capacity);
    double slowest = 0;
    int64_t peak = 0;
    bool shows = isatty(STDERR_FILENO);
    for (uint64_t i = only == UINT64_MAX ? 0 : only; i < (only == UINT64_MAX ? iterations : only + 1); i++) {
        if (shows && i % 20 == 0)
            fprintf(stderr, "\r%llu of %llu\033[K", (unsigned long long)i, (unsigned long long)iterations);
        random_state = seed * UINT64_C(0xD1342543DE82EF95) + i;
        const sample *sample = &samples[random_below(count)];
        memcpy(b.data, sample->data, sample->size);
        b.size = sample->size;
        for (size_t m = 1 + random_below(1 + random_below(6)); m-- > 0;) mutate(&b, samples, count);
        /* In a block of its own size: a sanitizer then sees a read past the end. */
        buffer exact = {malloc(b.size ? b.size : 1), b.size, b.size};
        memcpy(exact.data, b.data, b.size);
        memory memory = {0, 0};
        uir_allocator allocator = {counted_resize, &memory};
        alarm(3 * MAX_SECONDS); /* a hang ends the program by a signal */
        double start = seconds();
        bool told = (frontend ? load_frontend : load_whole)(&allocator, &exact, sample->folder, &good);
        double took = seconds() - start;
        alarm(0);
        free(exact.data);
        if (took > slowest) slowest = took;
        if (memory.peak > peak) peak = memory.peak;
        if (memory.live || !told || took > MAX_SECONDS) {
            failures++;
            printf("iteration %llu (%s): %lld bytes leaked, %s, %.1f s\n", (unsigned long long)i, sample->path,
                   (long long)memory.live, told ? "told" : "no message", took);
        }
    }
    if (shows) fprintf(stderr, "\r\033[K");
    printf("%llu mutations of %zu files, seed %llu: %llu failures; %llu loaded; slowest %.2f s, at most %lld MiB\n",
           (unsigned long long)(only == UINT64_MAX ? iterations : 1), count, (unsigned long long)seed,
           (unsigned long long)failures, (unsigned long long)good, slowest, (long long)(peak >> 20));
    release_samples(samples, count);
    free(b.data);
    return failures > 0;
}
