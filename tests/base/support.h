/* What the tests of base/ share: cmocka, seeded random numbers, iteration counts, an allocator that counts and fails.
 */
#ifndef UIR_TESTS_BASE_SUPPORT_H
#define UIR_TESTS_BASE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocator.h"

/* xorshift64*: the same numbers on every machine. */
typedef struct random_state {
    uint64_t state;
} random_state;

static inline uint64_t random_next(random_state *r) {
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545f4914f6cdd1du;
}

/* Uniform in [low, high]. */
static inline int64_t random_between(random_state *r, int64_t low, int64_t high) {
    return low + (int64_t)(random_next(r) % ((uint64_t)(high - low) + 1));
}

static inline uint64_t environment_number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* UIR_FUZZ_ITERATIONS scales every random test: it is the total of the default campaign, `otherwise` in an optimised
 * build and a share of it in the others (tests/CMakeLists.txt). */
static inline uint64_t fuzz_iterations(uint64_t otherwise) {
    return environment_number("UIR_FUZZ_ITERATIONS", otherwise / UIR_TEST_SHARE);
}
static inline uint64_t fuzz_seed(void) {
    return environment_number("UIR_FUZZ_SEED", 1);
}

/* Counts live bytes; allocation number `fail_at` (from 1) and all later ones fail; 0: none does. Behind every block
 * lies a guard that holds its size: a write past the end shows, and so does a size that is not the block's. */
typedef struct failing_memory {
    uint64_t allocations, fail_at;
    int64_t live_bytes;
} failing_memory;

typedef struct memory_guard {
    uint64_t size, pattern;
} memory_guard;

static inline memory_guard guard_of(size_t size) {
    return (memory_guard){size, 0xa55a3cc3f00f9669u ^ size};
}

static inline void *failing_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    failing_memory *memory = user;
    uir_allocator system = uir_allocator_system();
    memory_guard guard = guard_of(old_size);
    if (pointer)
        assert_memory_equal((char *)pointer + old_size, &guard, sizeof guard);
    else
        assert_int_equal(old_size, 0);
    assert_true(new_size <= PTRDIFF_MAX);
    if (new_size && ++memory->allocations >= memory->fail_at && memory->fail_at) return NULL;
    if (new_size > (size_t)1 << 40) return NULL; /* the sanitizers stop at such a request */
    char *block = system.resize(system.user, pointer, pointer ? old_size + sizeof guard : 0,
                                new_size ? new_size + sizeof guard : 0);
    guard = guard_of(new_size);
    if (block) memcpy(block + new_size, &guard, sizeof guard);
    if (block || !new_size) memory->live_bytes += (int64_t)new_size - (int64_t)old_size;
    return block;
}

static inline uir_allocator failing_allocator(failing_memory *memory) {
    return (uir_allocator){failing_resize, memory};
}

/* Runs `body` with the first, second, ... allocation failing until none does. It returns whether it got through, as
 * it must when nothing failed and cannot when something did; either way nothing may stay allocated. */
static inline void run_with_failures(bool (*body)(const uir_allocator *allocator)) {
    for (uint64_t fail_at = 1;; fail_at++) {
        failing_memory memory = {.fail_at = fail_at};
        uir_allocator allocator = failing_allocator(&memory);
        bool done = body(&allocator);
        assert_int_equal(memory.live_bytes, 0);
        assert_int_equal(done, memory.allocations < fail_at);
        if (done) return;
        assert_true(fail_at < 100000);
    }
}

#endif
