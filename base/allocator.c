#include "base/budget.h"

#include <stdlib.h>
#include <string.h>

/* Large blocks begin with a page, as files that are mapped do: a load that follows a store and lies a page and a little
 * before it waits for the store on machines that compare the low bits of addresses first. */
enum { BLOCK_ALIGNMENT = 64, PAGE = 4096, LARGE = 16 * PAGE };

static size_t alignment_of(size_t size) {
    return size < LARGE ? BLOCK_ALIGNMENT : PAGE;
}

static size_t round_up(size_t size) {
    size_t alignment = alignment_of(size);
    return (size + alignment - 1) & ~(alignment - 1);
}

/* The contract of uir_allocator.resize reads new_size 0 as "release", so an empty block is one byte. */
static size_t real_size(size_t size) {
    return size ? size : 1;
}

static void *system_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    (void)user;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    if (new_size > PTRDIFF_MAX - PAGE) return NULL;
    if (pointer && round_up(old_size) == round_up(new_size)) return pointer;
    /* realloc would not keep the alignment. */
    void *block = aligned_alloc(alignment_of(new_size), round_up(new_size));
    if (block && pointer) {
        memcpy(block, pointer, old_size < new_size ? old_size : new_size);
        free(pointer);
    }
    return block;
}

uir_allocator uir_allocator_system(void) {
    return (uir_allocator){system_resize, NULL};
}

void *uir_allocate(const uir_allocator *allocator, size_t size) {
    if (size > PTRDIFF_MAX) return NULL;
    return allocator->resize(allocator->user, NULL, 0, real_size(size));
}

/* A large block is cleared piece by piece: the first touch of a page is the system's work, and takes time. */
void *uir_allocate_zeroed(const uir_allocator *allocator, size_t size) {
    enum { PIECE = 16 << 20 };
    char *block = uir_allocate(allocator, size);
    for (size_t at = 0, all = real_size(size); block && at < all; at += PIECE) {
        if (at && uir_budget_is_over(uir_budget_of(allocator))) {
            uir_release(allocator, block, size);
            return NULL;
        }
        memset(block + at, 0, all - at < PIECE ? all - at : PIECE);
    }
    return block;
}

void *uir_allocate_array(const uir_allocator *allocator, size_t count, size_t element_size) {
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size)) return NULL;
    return uir_allocate(allocator, size);
}

void *uir_reallocate(const uir_allocator *allocator, void *pointer, size_t old_size, size_t new_size) {
    if (new_size > PTRDIFF_MAX) return NULL;
    return allocator->resize(allocator->user, pointer, pointer ? real_size(old_size) : 0, real_size(new_size));
}

void uir_release(const uir_allocator *allocator, void *pointer, size_t size) {
    if (pointer) allocator->resize(allocator->user, pointer, real_size(size), 0);
}
