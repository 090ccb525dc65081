/* Growable arrays that live in an arena.
 *
 *   uir_vector(int64_t) dims = {0};
 *   UIR_TRY(uir_vector_push(arena, &dims, 7));
 *   for (uint32_t i = 0; i < dims.count; i++) use(dims.data[i]);
 *
 * Growth copies within the arena (the old array is left behind), so a vector never needs to be released. */
#ifndef UIR_BASE_VECTOR_H
#define UIR_BASE_VECTOR_H

#include "base/arena.h"
#include "base/status.h"

#define uir_vector(type)                                                                                               \
    struct {                                                                                                           \
        type *data;                                                                                                    \
        uint32_t count, capacity;                                                                                      \
    }

/* Reserves capacity for `extra` more elements; UIR_STATUS_OUT_OF_MEMORY on failure. */
uir_status uir_vector_reserve_bytes(uir_arena *arena, void **data, uint32_t count, uint32_t *capacity, uint32_t extra,
                                    size_t element_size);

#define uir_vector_reserve(arena, vector, extra)                                                                       \
    uir_vector_reserve_bytes((arena), (void **)&(vector)->data, (vector)->count, &(vector)->capacity, (extra),         \
                             sizeof *(vector)->data)

/* Evaluates to a status; `value` is an expression of the element type (a compound literal needs parentheses). */
#define uir_vector_push(arena, vector, ...)                                                                            \
    (uir_vector_reserve((arena), (vector), 1) == UIR_STATUS_OK                                                         \
         ? ((vector)->data[(vector)->count++] = (__VA_ARGS__), UIR_STATUS_OK)                                          \
         : UIR_STATUS_OUT_OF_MEMORY)

#endif
