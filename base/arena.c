#include "base/arena.h"

#include <string.h>

/* Under the address sanitizer what the arena has not handed out is poisoned, so that overruns inside a chunk show. */
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif
#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#define ARENA_GAP 16 /* between blocks, so that an overrun does not reach the next one */
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ARENA_GAP                                  0
#endif

/* What many small allocations ask for at once: little enough to fit where a chunk of another arena was, so that what
 * lives long does not keep the room of what is gone from being used again. */
enum { HEADER_SIZE = 64, CHUNK_MIN = 4096, CHUNK_MAX = 1 << 16 };

struct uir_arena_chunk {
    uir_arena_chunk *next;
    size_t size; /* of the whole block, header included */
    size_t used; /* header included */
};
_Static_assert(sizeof(struct uir_arena_chunk) <= HEADER_SIZE, "the first block must be 64-byte aligned");

void uir_arena_init(uir_arena *arena, const uir_allocator *allocator) {
    *arena = (uir_arena){.allocator = *allocator, .budget = uir_budget_of(allocator)};
}

uir_status uir_arena_tell_budget(uir_arena *arena) {
    uint32_t steps = arena->unspent;
    arena->unspent = 0;
    return uir_budget_spend(arena->budget, steps);
}

static void release_chunk(uir_arena *arena, uir_arena_chunk *chunk) {
    if (!chunk) return;
    ASAN_UNPOISON_MEMORY_REGION(chunk, chunk->size);
    uir_release(&arena->allocator, chunk, chunk->size);
}

static void clear_chunk(uir_arena_chunk *chunk, size_t used) {
    chunk->used = used;
    ASAN_POISON_MEMORY_REGION((char *)chunk + used, chunk->size - used);
}

void uir_arena_deinit(uir_arena *arena) {
    if (arena->unspent) (void)uir_arena_tell_budget(arena);
    for (uir_arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        release_chunk(arena, chunk);
    }
    release_chunk(arena, arena->spare);
    arena->chunks = arena->spare = NULL;
    arena->used = 0;
}

/* Takes the newest chunk off the list; it becomes the spare one if it is the larger. */
static void retire_newest(uir_arena *arena) {
    uir_arena_chunk *chunk = arena->chunks;
    arena->chunks = chunk->next;
    if (arena->spare && arena->spare->size >= chunk->size) {
        release_chunk(arena, chunk);
        return;
    }
    release_chunk(arena, arena->spare);
    clear_chunk(chunk, HEADER_SIZE);
    arena->spare = chunk;
}

void uir_arena_reset(uir_arena *arena) {
    uir_arena_return_to(arena, (uir_arena_mark){0});
}

uir_arena_mark uir_arena_get_mark(const uir_arena *arena) {
    return (uir_arena_mark){arena->chunks, arena->chunks ? arena->chunks->used : 0, arena->used};
}

void uir_arena_return_to(uir_arena *arena, uir_arena_mark mark) {
    while (arena->chunks != mark.chunk) retire_newest(arena);
    if (mark.chunk) clear_chunk(mark.chunk, mark.chunk_used);
    arena->used = mark.used;
}

static uir_arena_chunk *add_chunk(uir_arena *arena, size_t needed) {
    uir_arena_chunk *chunk = arena->spare;
    if (chunk && chunk->size >= needed) {
        arena->spare = NULL;
    } else {
        size_t size = arena->chunks ? arena->chunks->size : CHUNK_MIN / 2;
        size = size >= CHUNK_MAX / 2 ? CHUNK_MAX : size * 2;
        if (size < needed) size = needed;
        chunk = uir_allocate(&arena->allocator, size);
        if (!chunk) return NULL;
        chunk->size = size;
        clear_chunk(chunk, HEADER_SIZE);
    }
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

static void *take(uir_arena *arena, size_t size) {
    enum { BYTES_A_STEP = 256 };
    size_t steps = 1 + size / BYTES_A_STEP;
    if (size > PTRDIFF_MAX / 2) return NULL;
    if (uir_arena_spend(arena, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX) != UIR_STATUS_OK) return NULL;
    size_t alignment = size >= 64 ? 64 : 16;
    size_t rounded = ((size ? size : 1) + 15) & ~(size_t)15;
    uir_arena_chunk *chunk = arena->chunks;
    size_t at = chunk ? (chunk->used + ARENA_GAP + alignment - 1) & ~(alignment - 1) : 0;
    if (!chunk || at > chunk->size || chunk->size - at < rounded) {
        chunk = add_chunk(arena, HEADER_SIZE + 64 + rounded);
        if (!chunk) return NULL;
        at = HEADER_SIZE;
    }
    chunk->used = at + rounded;
    arena->used += rounded;
    char *block = (char *)chunk + at;
    ASAN_UNPOISON_MEMORY_REGION(block, size ? size : 1);
    return block;
}

void *uir_arena_allocate(uir_arena *arena, size_t size) {
    void *block = take(arena, size);
    return block ? memset(block, 0, size ? size : 1) : NULL;
}

void *uir_arena_allocate_array(uir_arena *arena, size_t count, size_t element_size) {
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size)) return NULL;
    return uir_arena_allocate(arena, size);
}

void *uir_arena_allocate_unset(uir_arena *arena, size_t count, size_t element_size) {
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size)) return NULL;
    return take(arena, size);
}

void *uir_arena_copy(uir_arena *arena, const void *data, size_t size) {
    void *block = uir_arena_allocate(arena, size);
    if (block && size) memcpy(block, data, size);
    return block;
}

char *uir_arena_copy_string(uir_arena *arena, const char *text, size_t length) {
    if (length >= PTRDIFF_MAX / 2) return NULL;
    char *block = uir_arena_allocate(arena, length + 1);
    if (block && length) memcpy(block, text, length);
    return block;
}
