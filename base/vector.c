#include "base/vector.h"

#include <string.h>

uir_status uir_vector_reserve_bytes(uir_arena *arena, void **data, uint32_t count, uint32_t *capacity, uint32_t extra,
                                    size_t element_size) {
    uint32_t needed;
    if (__builtin_add_overflow(count, extra, &needed)) return UIR_STATUS_OUT_OF_MEMORY;
    if (needed <= *capacity) return UIR_STATUS_OK;
    uint64_t grown = (uint64_t)*capacity + *capacity / 2 + 4;
    if (grown < needed) grown = needed;
    if (grown > UINT32_MAX) grown = UINT32_MAX;
    void *block = uir_arena_allocate_array(arena, (size_t)grown, element_size);
    if (!block) return UIR_STATUS_OUT_OF_MEMORY;
    /* `data` is really a pointer to T *; going through bytes keeps that within C's aliasing rules. */
    void *old;
    memcpy(&old, data, sizeof old);
    if (count) memcpy(block, old, (size_t)count * element_size);
    memcpy(data, &block, sizeof block);
    *capacity = (uint32_t)grown;
    return UIR_STATUS_OK;
}
