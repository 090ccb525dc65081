/* Objects of kernels: which kernels are equal, and the symbols of all. */
#include "backends/source/target.h"

#include <string.h>

void uir_target_object_deinit(uir_target_object *object) {
    if (object->bytes) uir_release(&object->allocator, object->bytes, object->size);
    if (object->symbols)
        uir_release(&object->allocator, object->symbols, ((size_t)object->symbol_count + 1) * sizeof *object->symbols);
    *object = (uir_target_object){.allocator = object->allocator};
}

/* The text without the name, which has no part in what a kernel does. */
static uir_status print_nameless(const uir_igraph *igraph, uir_text *text) {
    uir_igraph nameless = *igraph;
    nameless.name = "kernel";
    uir_igraph_print(&nameless, text);
    return uir_text_status(text);
}

typedef struct seen {
    size_t begin, length;
    uint32_t first; /* iGraph */
} seen;

static uir_status find_among(seen *known, uir_text *texts, const uir_igraph *const *igraphs, uint32_t count,
                             uint32_t *first) {
    uint32_t known_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t begin = texts->length, length;
        uint32_t k = 0;
        UIR_TRY(print_nameless(igraphs[i], texts));
        length = texts->length - begin;
        while (k < known_count &&
               (known[k].length != length || memcmp(texts->data + known[k].begin, texts->data + begin, length) != 0))
            k++;
        if (k == known_count) known[known_count++] = (seen){begin, length, i};
        first[i] = known[k].first;
    }
    return UIR_STATUS_OK;
}

uir_status uir_target_find_equals(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                                  uint32_t *first) {
    size_t size = ((size_t)count + 1) * sizeof(seen);
    uir_text texts;
    seen *known;
    UIR_TRY_ALLOCATE(known, uir_allocate_zeroed(allocator, size));
    uir_text_init(&texts, allocator);
    uir_status status = find_among(known, &texts, igraphs, count, first);
    uir_text_deinit(&texts);
    uir_release(allocator, known, size);
    return status;
}

uir_status uir_target_name_first(const uir_allocator *allocator, const uir_igraph *const *igraphs,
                                 const uint32_t *first, uint32_t count, uir_target_object *object) {
    UIR_TRY_ALLOCATE(object->symbols, uir_allocate_array(allocator, (size_t)count + 1, sizeof *object->symbols));
    object->symbol_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uir_c_symbol(igraphs[first[i]], first[i], object->symbols[i]);
        object->function_count += first[i] == i;
    }
    return UIR_STATUS_OK;
}

uir_status uir_target_name_symbols(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                                   uir_target_object *out_object) {
    size_t size = ((size_t)count + 1) * sizeof(uint32_t);
    uint32_t *first;
    *out_object = (uir_target_object){.allocator = *allocator};
    UIR_TRY_ALLOCATE(first, uir_allocate_zeroed(allocator, size));
    uir_status status = uir_target_find_equals(allocator, igraphs, count, first);
    if (status == UIR_STATUS_OK) status = uir_target_name_first(allocator, igraphs, first, count, out_object);
    uir_release(allocator, first, size);
    if (status != UIR_STATUS_OK) uir_target_object_deinit(out_object);
    return status;
}
