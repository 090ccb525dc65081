/* The one way memory is obtained.
 *
 * Everything in uir allocates through a uir_allocator, so that a caller can supply its own, count bytes, or make
 * any allocation fail. In: the public allocator struct of uir.h. Out: raw blocks, aligned to at least 64 bytes. */
#ifndef UIR_BASE_ALLOCATOR_H
#define UIR_BASE_ALLOCATOR_H

#include "uir/uir.h"

/* The C library's allocator (aligned_alloc and free). */
uir_allocator uir_allocator_system(void);

/* All return NULL on failure or when size overflows; size 0 gives a valid block. Blocks are 64-byte aligned. */
void *uir_allocate(const uir_allocator *allocator, size_t size);
void *uir_allocate_zeroed(const uir_allocator *allocator, size_t size);
void *uir_allocate_array(const uir_allocator *allocator, size_t count, size_t element_size);
/* Grows or shrinks; on failure NULL is returned and the old block stays valid. `old_size` as given at allocation. */
void *uir_reallocate(const uir_allocator *allocator, void *pointer, size_t old_size, size_t new_size);
void uir_release(const uir_allocator *allocator, void *pointer, size_t size);

#endif
