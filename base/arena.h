/* Arena: many small allocations, one release.
 *
 * In: an allocator. Out: zeroed blocks that live until the arena is reset or deinitialised. Growth is by chunks; a
 * mark taken earlier can be returned to, which scratch uses between passes. */
#ifndef UIR_BASE_ARENA_H
#define UIR_BASE_ARENA_H

#include "base/budget.h"

typedef struct uir_arena_chunk uir_arena_chunk;

typedef struct uir_arena {
    uir_allocator allocator;
    uir_arena_chunk *chunks; /* newest first */
    uir_arena_chunk *spare;  /* at most one, kept when returning to a mark */
    size_t used;             /* bytes handed out, for statistics */
    uir_budget *budget;      /* of the allocator; NULL: none */
    uint32_t unspent;        /* steps that the budget does not know of yet */
} uir_arena;

/* A state of the arena to return to: later allocations are then forgotten. */
typedef struct uir_arena_mark {
    uir_arena_chunk *chunk;
    size_t chunk_used, used;
} uir_arena_mark;

/* The most steps of work between two reports to the budget. */
enum { UIR_ARENA_UNSPENT = 4096 };

void uir_arena_init(uir_arena *arena, const uir_allocator *allocator);
void uir_arena_deinit(uir_arena *arena);
/* Forgets every allocation, keeps one chunk for reuse. */
void uir_arena_reset(uir_arena *arena);
uir_arena_mark uir_arena_get_mark(const uir_arena *arena);
/* Marks are returned to in the reverse order of taking them; a reset makes them all invalid. */
void uir_arena_return_to(uir_arena *arena, uir_arena_mark mark);

/* Counts steps of work in the budget of the arena's allocator; CANCELLED once its operation has to stop. To be called
 * by loops that allocate nothing, or do much work per iteration: every allocation counts already. */
uir_status uir_arena_tell_budget(uir_arena *arena);
static inline uir_status uir_arena_spend(uir_arena *arena, uint32_t steps) {
    if (steps < UIR_ARENA_UNSPENT - arena->unspent) {
        arena->unspent += steps;
        return UIR_STATUS_OK;
    }
    arena->unspent = steps < UIR_ARENA_UNSPENT ? arena->unspent + steps : steps;
    return uir_arena_tell_budget(arena);
}

/* Zeroed, 16-byte aligned (64 when size >= 64). NULL when memory is exhausted or count * size overflows. */
void *uir_arena_allocate(uir_arena *arena, size_t size);
void *uir_arena_allocate_array(uir_arena *arena, size_t count, size_t element_size);
/* The same, uninitialised: for memory that is written before it is read. */
void *uir_arena_allocate_unset(uir_arena *arena, size_t count, size_t element_size);
/* Copies `size` bytes into the arena. */
void *uir_arena_copy(uir_arena *arena, const void *data, size_t size);
/* Copies a string of `length` bytes and adds a terminating zero (the bytes themselves may hold zeros). */
char *uir_arena_copy_string(uir_arena *arena, const char *text, size_t length);

#endif
