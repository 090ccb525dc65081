/* Memory allocation, for every block in uir.
 *
 * In: the public allocator struct of uir.h, so that a caller can supply their own, count bytes, or make any allocation
 * fail. Out: raw blocks, aligned to at least 64 bytes. */
#ifndef UIR_BASE_ALLOCATOR_H
#define UIR_BASE_ALLOCATOR_H

#include "uir/uir.h"

/* The C library's allocator (aligned_alloc and free). */
uir_allocator uir_allocator_system(void);

/* All return NULL on failure or when a size overflows; size 0 returns a valid block. Blocks are 64-byte aligned. */
void *uir_allocate(const uir_allocator *allocator, size_t size);
void *uir_allocate_zeroed(const uir_allocator *allocator, size_t size);
void *uir_allocate_array(const uir_allocator *allocator, size_t count, size_t element_size);
/* Grows or shrinks; on failure it returns NULL and the old block stays valid. `old_size` is that of the allocation. */
void *uir_reallocate(const uir_allocator *allocator, void *pointer, size_t old_size, size_t new_size);
void uir_release(const uir_allocator *allocator, void *pointer, size_t size);

#endif
