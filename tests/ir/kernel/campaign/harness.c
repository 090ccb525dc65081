/* See harness.h. */
#include "harness.h"
#include "base/tensor.h"
#include "generate.h"
#include "ir/kernel/igraph_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The machine of the kernels that are about groups of many units. */
static uir_status add_warps(harness *h) {
    static const char path[] = "tests/ir/kernel/warps.device";
    char text[8192];
    const uir_machine *first;
    FILE *file = fopen(path, "rb");
    if (!file) return uir_error(&h->diagnostics, UIR_STATUS_NOT_FOUND, NULL, "%s is missing", path);
    size_t length = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    return uir_compile_machines_add(h->devices, text, length, path, &h->diagnostics, &first);
}

void harness_init(harness *h, uint64_t seed) {
    memset(h, 0, sizeof *h);
    h->allocator = uir_allocator_system();
    h->random = seed;
    uir_diagnostics_init(&h->diagnostics, &h->allocator);
    if (uir_compile_machines_create(&h->allocator, NULL, &h->diagnostics, &h->devices) != UIR_STATUS_OK ||
        add_warps(h) != UIR_STATUS_OK) {
        harness_say(h, "devices");
        exit(1);
    }
}

void harness_deinit(harness *h) {
    uir_compile_machines_destroy(h->devices);
    uir_diagnostics_deinit(&h->diagnostics);
}

void harness_say(harness *h, const char *where) {
    int shown = 0;
    for (const uir_diagnostic *d = h->diagnostics.first; d && shown < 5; d = d->next, shown++) {
        char text[1000];
        uir_diagnostic_format(d, text, sizeof text);
        fprintf(stderr, "%s: %s\n", where, text);
    }
    uir_diagnostics_clear(&h->diagnostics);
}

static bool clone_is_same(const uir_igraph *igraph, const uir_text *printed) {
    uir_text text;
    uir_igraph *copy = NULL;
    uir_text_init(&text, &igraph->allocator);
    bool same = uir_igraph_clone(igraph, &igraph->allocator, &copy) == UIR_STATUS_OK;
    if (same) uir_igraph_print(copy, &text);
    same = same && text.length == printed->length && !memcmp(text.data, printed->data, text.length);
    uir_igraph_destroy(copy);
    uir_text_deinit(&text);
    return same;
}

static bool print_is_stable(harness *h, const uir_igraph *igraph) {
    uir_text first, second;
    uir_igraph *again = NULL;
    uir_text_init(&first, &h->allocator);
    uir_text_init(&second, &h->allocator);
    uir_igraph_print(igraph, &first);
    bool same = uir_igraph_parse(&h->allocator, uir_compile_machines_get(h->devices), first.data, first.length,
                                 "printed", &h->diagnostics, &again) == UIR_STATUS_OK;
    if (same) uir_igraph_print(again, &second);
    same = same && first.length == second.length && !memcmp(first.data, second.data, first.length);
    same = same && clone_is_same(igraph, &first);
    uir_igraph_destroy(again);
    uir_text_deinit(&first);
    uir_text_deinit(&second);
    return same;
}

/* What is accepted is so, too, where buffers share places; every other kernel goes on as that. */
static uir_status share_places(harness *h, uir_igraph **igraph, const char *file) {
    uir_igraph *shared = NULL;
    UIR_TRY(uir_igraph_clone(*igraph, &h->allocator, &shared));
    uir_status status = uir_igraph_share_places(shared);
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(shared, &h->diagnostics);
    if (status == UIR_STATUS_OK && random_below(&h->random, 2)) {
        uir_igraph *alone = *igraph;
        *igraph = shared;
        shared = alone;
    } else if (status == UIR_STATUS_BAD_FILE) {
        h->failures++;
        harness_say(h, file);
    }
    uir_igraph_destroy(shared);
    return status == UIR_STATUS_LIMIT ? UIR_STATUS_OK : status;
}

uir_igraph *harness_read(harness *h, const char *text, size_t length, const char *file) {
    uir_igraph *igraph = NULL;
    uir_status status = uir_igraph_parse(&h->allocator, uir_compile_machines_get(h->devices), text, length, file,
                                         &h->diagnostics, &igraph);
    if (status == UIR_STATUS_OK && !print_is_stable(h, igraph)) {
        status = uir_error(&h->diagnostics, UIR_STATUS_INTERNAL, NULL,
                           "printed and parsed again, or copied, the text is another");
        h->failures++;
        harness_say(h, file);
    }
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(igraph, &h->diagnostics);
    if (status == UIR_STATUS_OK) status = share_places(h, &igraph, file);
    if (status == UIR_STATUS_OK) status = uir_igraph_form_runs(igraph, &h->diagnostics);
    if (status == UIR_STATUS_OK) return igraph;
    uir_igraph_destroy(igraph);
    return NULL;
}

/* ---- sizes ---- */
enum { MOST_SIZE = 300, MOST_TILE = 64, MOST_EDGES = 40, LARGEST = 20000 };

/* Sizes worth trying in one dim: primes, and what lies around the kernel's tiles. */
typedef struct size_list {
    int64_t values[MOST_EDGES];
    uint32_t count;
} size_list;

static void add_size(size_list *list, int64_t value) {
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->values[i] == value) return;
    }
    if (value >= 0 && list->count < MOST_EDGES) list->values[list->count++] = value;
}

/* The nearest value that the declaration allows; `at_most` keeps runs short. */
static int64_t fit_size(uir_symbol_facts facts, int64_t value, int64_t at_most) {
    if (value > at_most) value %= at_most + 1;
    if (value < facts.min) value = facts.min + value % 8;
    if (value > facts.max) value = facts.min + (value - facts.min) % (facts.max - facts.min + 1);
    if (value % facts.multiple_of) value += facts.multiple_of - value % facts.multiple_of;
    if (value > facts.max) value -= facts.multiple_of;
    return value < facts.min ? facts.min : value;
}

static int64_t random_size(harness *h) {
    static const int64_t interesting[] = {0,  1,  2,  3,  5,  7,  8,  11, 13, 15,  16,  17,  23,  29,  31, 32,
                                          33, 37, 47, 48, 61, 63, 64, 65, 97, 127, 128, 129, 191, 255, 257};
    if (random_below(&h->random, 3) == 0) return (int64_t)random_below(&h->random, 200);
    return interesting[random_below(&h->random, sizeof interesting / sizeof *interesting)];
}

/* The tiles of the sizes at hand, and the extents of on-chip pointers: at one less and one more the tails change. */
static void find_edges(const uir_igraph *igraph, harness_case *c, uint32_t tiles, size_list *out) {
    static const int64_t always[] = {0, 1, 2, 7, 13, 31, 61};
    int64_t edges[MOST_EDGES], value;
    uint32_t count = 0;
    for (uint32_t i = 0; i < tiles && count < MOST_EDGES; i++) edges[count++] = c->tiles[i];
    for (uint32_t i = 0; i < igraph->pointers.count; i++) {
        const uir_ipointer *p = &igraph->pointers.data[i];
        for (uint32_t d = 0; d < p->rank && p->role == UIR_IPOINTER_LOCAL && count < MOST_EDGES; d++) {
            if (uir_dim_evaluate(igraph->dims, p->extents[d], c->values, c->bound, c->symbol_count, &value) ==
                UIR_DIM_EVALUATED)
                edges[count++] = value;
        }
    }
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) add_size(out, always[i]);
    for (uint32_t i = 0; i < count; i++) {
        for (int64_t off = -1; off <= 1 && edges[i] > 2; off++) add_size(out, edges[i] + off);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (edges[i] > 2) add_size(out, 2 * edges[i] + 1);
    }
}

/* One try: the dims that `choose` gives, tiles by the tiling function or at random. */
static bool try_sizes(harness *h, const uir_igraph *igraph, harness_case *c, bool chosen) {
    uint32_t tile = 0;
    for (uint32_t i = 0; i < igraph->symbols.count; i++) {
        const uir_isymbol *s = &igraph->symbols.data[i];
        uir_symbol_facts facts = uir_dims_symbol_facts(igraph->dims, s->symbol);
        if (s->kind == UIR_ISYMBOL_TILE && tile < 32) c->tiles[tile++] = fit_size(facts, random_size(h), MOST_TILE);
    }
    if (chosen && uir_igraph_choose_tiles(igraph, c->dims, 1, c->tiles, NULL) != UIR_STATUS_OK) return false;
    return uir_igraph_bind(igraph, c->dims, c->tiles, c->values, c->bound, NULL) == UIR_STATUS_OK;
}

/* Sets the dims of a round. Round 0: the least; 1: ones; 2: primes; then for each dim in turn each of `edges` with the
 * others small or random; then all random. */
static void set_dims(harness *h, const uir_igraph *igraph, uint32_t round, const size_list *edges, harness_case *c) {
    static const int64_t primes[] = {13, 7, 29, 5, 17, 3, 37, 11};
    uint32_t dims = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_DIM), dim = 0;
    uint32_t step = round < 3 ? 0 : round - 3, systematic = edges && dims ? dims * edges->count : 0;
    bool one = round >= 3 && step < systematic;
    for (uint32_t i = 0; i < igraph->symbols.count && dim < 32; i++) {
        const uir_isymbol *s = &igraph->symbols.data[i];
        if (s->kind != UIR_ISYMBOL_DIM) continue;
        uir_symbol_facts facts = uir_dims_symbol_facts(igraph->dims, s->symbol);
        int64_t value = round == 0   ? 0
                        : round == 1 ? 1
                        : round == 2 ? primes[dim % 8]
                                     : random_size(h),
                most = MOST_SIZE;
        if (one && dim == step % dims) {
            /* The last edges first: those of the tiles. */
            value = edges->values[edges->count - 1 - step / dims];
            most = dims == 1 ? LARGEST : 2 * MOST_SIZE;
        } else if (round >= 3 && dims > 2) {
            most = 40; /* the work is a product of the dims */
        }
        c->dims[dim++] = fit_size(facts, value, most);
    }
}

static bool bind_sizes(harness *h, const uir_igraph *igraph, uint32_t round, harness_case *c) {
    size_list edges = {.count = 0};
    if (round >= 3) {
        uint32_t tiles = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_TILE);
        set_dims(h, igraph, 2, NULL, c);
        for (int tries = 0; tries < 8 && !edges.count; tries++) {
            if (try_sizes(h, igraph, c, tries < 4)) find_edges(igraph, c, tiles < 32 ? tiles : 32, &edges);
        }
    }
    for (int tries = 0; tries < 8; tries++) {
        set_dims(h, igraph, round, &edges, c);
        if (try_sizes(h, igraph, c, round % 2 == 0 || tries > 4)) return true;
    }
    return false;
}

/* ---- data ---- */
/* Small numbers of both signs and now and then an extreme one. */
static void fill_random(harness *h, uir_dtype dtype, void *data, uint64_t count) {
    static const double extremes[] = {
        0.0, -0.0, 1e30, -1e30, 1e-40, __builtin_inf(), -__builtin_inf(), __builtin_nan("")};
    bool real = uir_dtype_is_float(dtype);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t r = random_next(&h->random);
        if (real) {
            double x = ((double)(r >> 11) / 9007199254740992.0 - 0.5) * (r % 7 == 0 ? 100 : 4);
            if (r % 97 == 0) x = extremes[(r >> 8) % 8];
            uir_dtype_store_double(dtype, data, i, x, UIR_ROUND_NEAREST_EVEN);
        } else {
            int64_t x = r % 31 == 0 ? (int64_t)r : (int64_t)(r >> 32) % 64 - 16;
            uir_dtype_store_integer(dtype, data, i, x, false, UIR_ROUND_NEAREST_EVEN);
        }
    }
}

static bool evaluate(const harness_case *c, uir_dim dim, int64_t *out) {
    return uir_dim_evaluate(c->igraph->dims, dim, c->values, c->bound, c->symbol_count, out) == UIR_DIM_EVALUATED;
}

static bool shape_of(const harness_case *c, uint32_t pointer, int64_t *shape, uint64_t *count) {
    const uir_ipointer *p = &c->igraph->pointers.data[pointer];
    for (uint32_t d = 0; d < p->rank; d++) {
        if (!evaluate(c, p->extents[d], &shape[d])) return false;
    }
    return uir_shape_element_count(shape, p->rank, count);
}

static bool make_buffers(harness *h, harness_case *c) {
    for (uint32_t i = 0; i < c->igraph->pointers.count && c->count < 64; i++) {
        const uir_ipointer *p = &c->igraph->pointers.data[i];
        int64_t span = 0, shape[UIR_IGRAPH_MAX_RANK];
        uint64_t elements = 0;
        size_t row_bytes = 0, size = 0;
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        if (!evaluate(c, p->element_span, &span) || !shape_of(c, i, shape, &elements) || span > 1 << 24) return false;
        if (!uir_dtype_storage_size(p->dtype, span > 0 ? (uint64_t)span : 0, &size) ||
            !uir_dtype_storage_size(p->dtype, elements, &row_bytes))
            return false;
        uint32_t k = c->count++;
        c->pointer[k] = i;
        c->size[k] = size;
        c->initial[k] = uir_allocate_zeroed(&h->allocator, size);
        c->buffer[k] = uir_allocate_zeroed(&h->allocator, size);
        memset(c->initial[k], 0xA5, size);
        if (p->role != UIR_IPOINTER_IN && p->role != UIR_IPOINTER_CONST) continue;
        void *row_major = uir_allocate_zeroed(&h->allocator, row_bytes);
        fill_random(h, p->dtype, row_major, elements);
        bool packed = uir_igraph_pack(c->igraph, i, c->values, row_major, c->initial[k]) == UIR_STATUS_OK;
        uir_release(&h->allocator, row_major, row_bytes);
        if (!packed) return false;
    }
    /* A tied output begins as its input, whose layout it has. */
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t k = 0; k < c->count; k++) {
            if (c->igraph->pointers.data[c->pointer[i]].tied == c->pointer[k])
                memcpy(c->initial[i], c->initial[k], c->size[i] < c->size[k] ? c->size[i] : c->size[k]);
        }
    }
    return true;
}

static void begin_case(const uir_igraph *igraph, harness_case *c) {
    memset(c, 0, sizeof *c);
    c->igraph = igraph;
    c->symbol_count = uir_dims_symbol_count(igraph->dims);
    c->values = calloc(c->symbol_count + 1, sizeof *c->values);
    c->bound = calloc(c->symbol_count + 1, sizeof *c->bound);
}

bool harness_bind_to(harness *h, const uir_igraph *igraph, const int64_t *dims, const int64_t *tiles, harness_case *c) {
    uint32_t dim_count = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_DIM),
             tile_count = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_TILE);
    begin_case(igraph, c);
    for (uint32_t i = 0; i < dim_count && i < 32; i++) c->dims[i] = dims[i];
    for (uint32_t i = 0; i < tile_count && i < 32; i++) c->tiles[i] = tiles[i];
    if (uir_igraph_bind(igraph, c->dims, c->tiles, c->values, c->bound, &h->diagnostics) == UIR_STATUS_OK &&
        make_buffers(h, c))
        return true;
    harness_free(h, c);
    return false;
}

bool harness_bind(harness *h, const uir_igraph *igraph, uint32_t round, harness_case *c) {
    begin_case(igraph, c);
    if (bind_sizes(h, igraph, round, c) && make_buffers(h, c)) return true;
    harness_free(h, c);
    return false;
}

void harness_free(harness *h, harness_case *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        uir_release(&h->allocator, c->initial[i], c->size[i]);
        uir_release(&h->allocator, c->buffer[i], c->size[i]);
    }
    free(c->values);
    free(c->bound);
    c->values = NULL;
    c->bound = NULL;
    c->count = 0;
}

uir_kernel_arguments harness_arguments(harness_case *c) {
    return (uir_kernel_arguments){c->dims, c->tiles, c->buffer};
}

void harness_reset(harness_case *c) {
    for (uint32_t i = 0; i < c->count; i++) memcpy(c->buffer[i], c->initial[i], c->size[i]);
}

void *harness_outputs(harness *h, const harness_case *c, size_t *out_size) {
    size_t total = 0, sizes[64] = {0};
    int64_t shape[UIR_IGRAPH_MAX_RANK];
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t elements = 0;
        const uir_ipointer *p = &c->igraph->pointers.data[c->pointer[i]];
        if (p->role != UIR_IPOINTER_OUT || !shape_of(c, c->pointer[i], shape, &elements)) continue;
        (void)uir_dtype_storage_size(p->dtype, elements, &sizes[i]);
        total += sizes[i];
    }
    char *block = uir_allocate_zeroed(&h->allocator, total), *at = block;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->igraph->pointers.data[c->pointer[i]].role != UIR_IPOINTER_OUT) continue;
        (void)!uir_igraph_unpack(c->igraph, c->pointer[i], c->values, c->buffer[i], at);
        at += sizes[i];
    }
    *out_size = total;
    return block;
}

const char *harness_differ(const harness_case *c, const void *expected, const void *actual, char *buffer,
                           size_t capacity) {
    const char *a = expected, *b = actual;
    int64_t shape[UIR_IGRAPH_MAX_RANK];
    for (uint32_t i = 0; i < c->count; i++) {
        const uir_ipointer *p = &c->igraph->pointers.data[c->pointer[i]];
        uint64_t elements = 0;
        size_t size = 0;
        if (p->role != UIR_IPOINTER_OUT || !shape_of(c, c->pointer[i], shape, &elements)) continue;
        (void)uir_dtype_storage_size(p->dtype, elements, &size);
        for (uint64_t e = 0; e < elements && memcmp(a, b, size); e++) {
            uint32_t bits = uir_dtype_bits(p->dtype);
            if (uir_dtype_is_float(p->dtype)) {
                double x = uir_dtype_load_double(p->dtype, a, e), y = uir_dtype_load_double(p->dtype, b, e);
                if (x != x && y != y) continue;
            }
            if (bits >= 8 && !memcmp(a + e * (bits / 8), b + e * (bits / 8), bits / 8)) continue;
            if (bits < 8 && uir_dtype_load_integer(p->dtype, a, e) == uir_dtype_load_integer(p->dtype, b, e)) continue;
            double x = uir_dtype_is_float(p->dtype) ? uir_dtype_load_double(p->dtype, a, e)
                                                    : (double)uir_dtype_load_integer(p->dtype, a, e);
            double y = uir_dtype_is_float(p->dtype) ? uir_dtype_load_double(p->dtype, b, e)
                                                    : (double)uir_dtype_load_integer(p->dtype, b, e);
            snprintf(buffer, capacity, "%%%s element %llu: %.9g, expected %.9g", p->name, (unsigned long long)e, y, x);
            return buffer;
        }
        a += size;
        b += size;
    }
    return NULL;
}

void harness_describe(const harness_case *c, char *buffer, size_t capacity) {
    uint32_t dim = 0, tile = 0;
    size_t used = (size_t)snprintf(buffer, capacity, "@%s", c->igraph->name);
    for (uint32_t i = 0; i < c->igraph->symbols.count && used < capacity; i++) {
        const uir_isymbol *s = &c->igraph->symbols.data[i];
        if (s->kind == UIR_ISYMBOL_DIM)
            used += (size_t)snprintf(buffer + used, capacity - used, " %s=%lld", s->name, (long long)c->dims[dim++]);
        else if (s->kind == UIR_ISYMBOL_TILE)
            used += (size_t)snprintf(buffer + used, capacity - used, " %s=%lld", s->name, (long long)c->tiles[tile++]);
    }
}
