/* Allocator, arena, vector and interned strings. */
#include "support.h"

#include "base/intern.h"

#include <string.h>
#include <sys/resource.h>
#include <wchar.h>

static void test_system_allocator(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *block = uir_allocate(&allocator, size);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        memset(block, 0x5a, size);
        block = uir_reallocate(&allocator, block, size, size + 200);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(block[i], 0x5a);
        block = uir_reallocate(&allocator, block, size + 200, size);
        assert_non_null(block);
        for (size_t i = 0; i < size; i++) assert_int_equal(block[i], 0x5a);
        uir_release(&allocator, block, size);
    }
    unsigned char *zeroed = uir_allocate_zeroed(&allocator, 1000);
    for (size_t i = 0; i < 1000; i++) assert_int_equal(zeroed[i], 0);
    uir_release(&allocator, zeroed, 1000);
    assert_null(uir_allocate(&allocator, SIZE_MAX));
    assert_null(uir_allocate(&allocator, (size_t)PTRDIFF_MAX));
    assert_null(uir_allocate_array(&allocator, SIZE_MAX / 2, 3));
    assert_null(uir_allocate_array(&allocator, SIZE_MAX / 2 + 2, 2)); /* 2 once it wraps */
    uir_release(&allocator, NULL, 0);
    /* One that is not the system's never sees such a size. */
    failing_memory memory = {0};
    allocator = failing_allocator(&memory);
    assert_null(uir_allocate(&allocator, (size_t)PTRDIFF_MAX + 1));
    assert_null(uir_reallocate(&allocator, NULL, 0, (size_t)PTRDIFF_MAX + 1));
    assert_null(uir_allocate_array(&allocator, SIZE_MAX / 2 + 2, 2));
    assert_int_equal(memory.allocations, 0);
    char *block = uir_reallocate(&allocator, NULL, 0, 10);
    assert_non_null(block);
    assert_int_equal(memory.live_bytes, 10);
    block = uir_reallocate(&allocator, block, 10, 0);
    assert_non_null(block);
    uir_release(&allocator, block, 0);
    assert_int_equal(memory.live_bytes, 0);
}

/* From this size on a block begins with a page. */
enum { PAGE = 4096, LARGE = 16 * PAGE };

/* Blocks side by side, each grown or shrunk once: none lies over another, each keeps what it held. */
static void test_system_blocks_stay_apart(void **state) {
    (void)state;
    static const size_t sizes[] = {1,    16,        40,    63,        64,           65,        127,      128,
                                   1000, LARGE - 1, LARGE, LARGE + 1, LARGE + PAGE, 2 * LARGE, 3 * LARGE};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    uir_allocator allocator = uir_allocator_system();
    for (size_t from = 0; from < SIZES; from++) {
        unsigned char *blocks[SIZES];
        for (size_t i = 0; i < SIZES; i++) {
            blocks[i] = uir_allocate(&allocator, sizes[from]);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % (sizes[from] < LARGE ? 64 : PAGE), 0);
            memset(blocks[i], (int)i + 1, sizes[from]);
        }
        for (size_t i = 0; i < SIZES; i++) {
            blocks[i] = uir_reallocate(&allocator, blocks[i], sizes[from], sizes[i]);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % 64, 0);
            for (size_t k = 0; k < sizes[i] && k < sizes[from]; k++) assert_int_equal(blocks[i][k], i + 1);
            memset(blocks[i], (int)i + 1, sizes[i]);
        }
        for (size_t i = 0; i < SIZES; i++) {
            for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], i + 1);
            uir_release(&allocator, blocks[i], sizes[i]);
        }
    }
}

static long resident_kib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* What is released, and what a block leaves behind when it moves, can be had again. The address sanitizer, which holds
 * memory back, tells of leaks itself. */
static void test_system_blocks_are_given_back(void **state) {
    (void)state;
    enum { SIZE = 1 << 20, ROUNDS = 40 };
    uir_allocator allocator = uir_allocator_system();
    long before = resident_kib();
    for (int round = 0; round < ROUNDS; round++) {
        char *block = uir_allocate(&allocator, SIZE);
        assert_non_null(block);
        for (size_t at = 0; at < SIZE; at += PAGE) block[at] = 1;
        if (round % 2) {
            block = uir_reallocate(&allocator, block, SIZE, 100);
            assert_non_null(block);
        }
        uir_release(&allocator, block, round % 2 ? 100 : SIZE);
    }
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(resident_kib() - before < ROUNDS / 4 * (SIZE / 1024));
#else
    (void)before;
#endif
}

static void test_failure_keeps_the_old_block(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) /* which stops at a request it cannot serve: one that never gets there */
    const size_t too_much = PTRDIFF_MAX;
#else
    const size_t too_much = PTRDIFF_MAX - 2 * PAGE;
#endif
    uir_allocator system = uir_allocator_system();
    char *first = uir_allocate(&system, 10);
    strcpy(first, "kept");
    assert_null(uir_reallocate(&system, first, 10, too_much));
    assert_string_equal(first, "kept");
    uir_release(&system, first, 10);
    failing_memory memory = {.fail_at = 2};
    uir_allocator allocator = failing_allocator(&memory);
    char *block = uir_allocate(&allocator, 10);
    strcpy(block, "kept");
    assert_null(uir_reallocate(&allocator, block, 10, 100000));
    assert_string_equal(block, "kept");
    uir_release(&allocator, block, 10);
    assert_int_equal(memory.live_bytes, 0);
}

static void test_arena_blocks(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    random_state random = {fuzz_seed()};
    uir_arena arena;
    uir_arena_init(&arena, &allocator);
    for (int round = 0; round < 3; round++) {
        unsigned char *blocks[200];
        size_t sizes[200];
        for (int i = 0; i < 200; i++) {
            sizes[i] = (size_t)random_between(&random, 0, i % 20 == 0 ? 50000 : 200);
            blocks[i] = uir_arena_allocate(&arena, sizes[i]);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % (sizes[i] >= 64 ? 64 : 16), 0);
            for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], 0);
            memset(blocks[i], i + 1, sizes[i]);
        }
        for (int i = 0; i < 200; i++)
            for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], i + 1);
        uir_arena_reset(&arena);
        assert_int_equal(arena.used, 0);
    }
    assert_null(uir_arena_allocate(&arena, SIZE_MAX));
    assert_null(uir_arena_allocate_array(&arena, SIZE_MAX / 4, 8));
    assert_null(uir_arena_allocate_array(&arena, SIZE_MAX / 8 + 2, 8)); /* 8 once it wraps */
    assert_null(uir_arena_allocate_unset(&arena, SIZE_MAX / 8 + 2, 8));
    assert_non_null(uir_arena_allocate_unset(&arena, 3, 8));
    char *text = uir_arena_copy_string(&arena, "a\0b", 3);
    assert_memory_equal(text, "a\0b\0", 4);
    assert_memory_equal(uir_arena_copy(&arena, "xyz", 3), "xyz", 3);
    uir_arena_deinit(&arena);
    assert_int_equal(memory.live_bytes, 0);
}

/* Chunks double from 4 KiB to 64 KiB, so that little is asked for and little is left over. */
static void test_arena_growth(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_arena arena;
    uir_arena_init(&arena, &allocator);
    assert_non_null(uir_arena_allocate(&arena, 1));
    assert_int_equal(memory.live_bytes, 4096);
    while (arena.used < 10 << 20) {
        assert_non_null(uir_arena_allocate(&arena, 1000));
        assert_true(memory.live_bytes <= (int64_t)(arena.used + arena.used / 16 * 2 + (64 << 10)));
        if (arena.used < 1 << 18) assert_true(memory.live_bytes <= (int64_t)(3 * arena.used + 8192));
    }
    assert_true(memory.allocations <= 8 + (10 << 20) / (63 * 1008));
    uir_arena_deinit(&arena);
    assert_int_equal(memory.live_bytes, 0);
    assert_int_equal(arena.used, 0);
    /* As good as new. */
    assert_non_null(uir_arena_allocate(&arena, 100));
    uir_arena_deinit(&arena);
    assert_int_equal(memory.live_bytes, 0);
}

/* Of the chunks that are given up the largest is kept, whether it came first or last. */
static void test_arena_keeps_the_largest_chunk(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{3 << 20, 1000}, {1000, 3 << 20}, {1000, 4000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        failing_memory memory = {0};
        uir_allocator allocator = failing_allocator(&memory);
        uir_arena arena;
        uir_arena_init(&arena, &allocator);
        for (size_t k = 0; k < 2; k++) assert_non_null(uir_arena_allocate(&arena, sizes[i][k]));
        uir_arena_reset(&arena);
        assert_int_equal(memory.allocations, 2);
        for (int round = 0; round < 3; round++) {
            size_t larger = sizes[i][0] > sizes[i][1] ? sizes[i][0] : sizes[i][1];
            assert_non_null(uir_arena_allocate(&arena, larger));
            uir_arena_reset(&arena);
        }
        assert_int_equal(memory.allocations, 2);
        uir_arena_deinit(&arena);
        assert_int_equal(memory.live_bytes, 0);
    }
}

static void test_arena_marks(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_arena arena;
    uir_arena_init(&arena, &allocator);
    uir_arena_mark empty = uir_arena_get_mark(&arena);
    int *kept = uir_arena_allocate(&arena, sizeof *kept);
    *kept = 42;
    uir_arena_mark mark = uir_arena_get_mark(&arena);
    void *first = uir_arena_allocate(&arena, 100);
    size_t used = arena.used;
    uint64_t allocations = 0;
    for (int i = 0; i < 50; i++) {
        uir_arena_return_to(&arena, mark);
        assert_ptr_equal(uir_arena_allocate(&arena, 100), first);
        assert_int_equal(arena.used, used);
        for (int k = 0; k < 30; k++) assert_non_null(uir_arena_allocate(&arena, 1000));
        if (i == 2) allocations = memory.allocations;
    }
    /* Going back and forth over a chunk's end settles: the larger chunk is kept. */
    assert_true(memory.allocations - allocations <= 50 * 4);
    assert_int_equal(*kept, 42);
    uir_arena_return_to(&arena, empty);
    assert_int_equal(arena.used, 0);
    uir_arena_deinit(&arena);
    assert_int_equal(memory.live_bytes, 0);
}

/* Remembers the blocks that are alive. */
typedef struct watched_memory {
    char *blocks[64];
    size_t sizes[64];
} watched_memory;

static void *watched_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    watched_memory *memory = user;
    uir_allocator system = uir_allocator_system();
    void *block = system.resize(system.user, pointer, old_size, new_size);
    int slot = 0;
    while (memory->blocks[slot] != pointer) slot++;
    memory->blocks[slot] = block;
    memory->sizes[slot] = new_size;
    return block;
}

static bool lies_inside(const watched_memory *memory, const char *block, size_t size) {
    for (int i = 0; i < 64; i++)
        if (memory->blocks[i] && block >= memory->blocks[i] && block + size <= memory->blocks[i] + memory->sizes[i])
            return true;
    return false;
}

/* A chunk that was kept serves only what fits: blocks a little larger than those it was made for do not. */
static void test_arena_blocks_lie_in_their_chunks(void **state) {
    (void)state;
    watched_memory memory = {{0}, {0}};
    uir_allocator allocator = {watched_resize, &memory};
    for (size_t size = 4000; size < 9000; size += 500) {
        for (size_t more = 0; more <= 160; more += 8) {
            uir_arena arena;
            uir_arena_init(&arena, &allocator);
            for (size_t step = 0; step < 2; step++) {
                char *block = uir_arena_allocate(&arena, size + step * more);
                assert_non_null(block);
                assert_true(lies_inside(&memory, block, size + step * more));
                uir_arena_reset(&arena);
            }
            uir_arena_deinit(&arena);
        }
    }
}

/* A chunk made for one large block, filled up by small ones to its end: what is aligned to more goes elsewhere. */
static void test_arena_chunks_are_not_overrun(void **state) {
    (void)state;
    watched_memory memory = {{0}, {0}};
    uir_allocator allocator = {watched_resize, &memory};
    for (size_t large = 9000; large < 9000 + 64; large += 16) {
        for (int small = 0; small < 10; small++) {
            uir_arena arena;
            uir_arena_init(&arena, &allocator);
            for (int i = 0; i < small + 2; i++) {
                size_t size = i == 0 ? large : i <= small ? 16 : 64;
                char *block = uir_arena_allocate(&arena, size);
                assert_non_null(block);
                assert_true(lies_inside(&memory, block, size));
                assert_int_equal((uintptr_t)block % (size >= 64 ? 64 : 16), 0);
            }
            uir_arena_deinit(&arena);
        }
    }
}

static bool arena_copies(const uir_allocator *allocator) {
    static const char bytes[5000] = "abc";
    uir_arena arena;
    uir_arena_init(&arena, allocator);
    bool done = true;
    for (int i = 0; i < 3; i++) {
        const char *copy = uir_arena_copy(&arena, bytes, sizeof bytes);
        const char *string = uir_arena_copy_string(&arena, bytes, sizeof bytes);
        if (copy) assert_memory_equal(copy, bytes, sizeof bytes);
        if (string) assert_memory_equal(string, bytes, sizeof bytes);
        if (string) assert_int_equal(string[sizeof bytes], 0);
        done = done && copy && string;
    }
    assert_non_null(done ? uir_arena_copy(&arena, NULL, 0) : "");
    assert_string_equal(done ? uir_arena_copy_string(&arena, NULL, 0) : "", "");
    uir_arena_deinit(&arena);
    return done;
}

/* Every block counts, with what rounding up to 16 bytes adds to it. */
static void test_arena_counts_what_it_hands_out(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_arena arena;
    uir_arena_init(&arena, &allocator);
    size_t expected = 0;
    for (size_t size = 0; size < 100; size += 3) {
        assert_non_null(uir_arena_allocate(&arena, size));
        expected += size ? (size + 15) / 16 * 16 : 16;
        assert_int_equal(arena.used, expected);
    }
    uir_arena_deinit(&arena);
}

static void test_vector_growth(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_arena arena;
    uir_arena_init(&arena, &allocator);
    uir_vector(int64_t) numbers = {0};
    for (int64_t i = 0; i < 1000; i++) assert_int_equal(uir_vector_push(&arena, &numbers, i * i), UIR_STATUS_OK);
    assert_int_equal(numbers.count, 1000);
    for (int64_t i = 0; i < 1000; i++) assert_int_equal(numbers.data[i], i * i);
    struct pair {
        int a, b;
    };
    uir_vector(struct pair) pairs = {0};
    assert_int_equal(uir_vector_push(&arena, &pairs, ((struct pair){1, 2})), UIR_STATUS_OK);
    assert_int_equal(pairs.data[0].b, 2);
    assert_int_equal(uir_vector_reserve(&arena, &pairs, UINT32_MAX), UIR_STATUS_OUT_OF_MEMORY);
    assert_int_equal(uir_vector_reserve(&arena, &pairs, 100), UIR_STATUS_OK);
    assert_true(pairs.capacity >= 101);
    assert_int_equal(pairs.data[0].a, 1);
    uir_arena_deinit(&arena);
}

static void test_interned_strings(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_arena arena;
    uir_strings strings;
    uir_arena_init(&arena, &allocator);
    assert_int_equal(uir_strings_init(&strings, &arena), UIR_STATUS_OK);
    uir_string empty, first, second, found;
    assert_int_equal(uir_strings_intern(&strings, "", 0, &empty), UIR_STATUS_OK);
    assert_int_equal(empty.id, 0);
    assert_string_equal(uir_string_text(&strings, empty), "");
    /* Bytes, not C strings. */
    assert_int_equal(uir_strings_intern(&strings, "a\0b", 3, &first), UIR_STATUS_OK);
    assert_int_equal(uir_strings_intern(&strings, "a\0c", 3, &second), UIR_STATUS_OK);
    assert_int_not_equal(first.id, second.id);
    assert_int_equal(uir_string_length(&strings, first), 3);
    assert_memory_equal(uir_string_text(&strings, first), "a\0b\0", 4);
    uir_string many[2000];
    for (int i = 0; i < 2000; i++)
        assert_int_equal(uir_strings_intern_format(&strings, &many[i], "name_%d_%s", i, "x"), UIR_STATUS_OK);
    for (int i = 0; i < 2000; i++) {
        uir_string again;
        assert_int_equal(uir_strings_intern_format(&strings, &again, "name_%d_%s", i, "x"), UIR_STATUS_OK);
        assert_int_equal(again.id, many[i].id);
    }
    assert_true(uir_strings_find(&strings, "name_7_x", 8, &found));
    assert_int_equal(found.id, many[7].id);
    assert_false(uir_strings_find(&strings, "name_7_y", 8, &found));
    /* The first one is found after the table has grown, too. */
    assert_int_equal(uir_strings_intern(&strings, "", 0, &found), UIR_STATUS_OK);
    assert_int_equal(found.id, 0);
    assert_true(uir_strings_find(&strings, "", 0, &found));
    assert_int_equal(found.id, 0);
    /* Up to lengths beyond the formatting buffer. */
    char wide[1000];
    memset(wide, 'w', sizeof wide);
    for (int length = 0; length < (int)sizeof wide; length += length == 300 ? 600 : 1) {
        assert_int_equal(uir_strings_intern_format(&strings, &found, "%.*s", length, wide), UIR_STATUS_OK);
        assert_int_equal(uir_string_length(&strings, found), length);
        assert_memory_equal(uir_string_text(&strings, found), wide, length);
        assert_int_equal(uir_string_text(&strings, found)[length], 0);
    }
    assert_int_equal(uir_strings_intern(&strings, "x", UINT32_MAX, &found), UIR_STATUS_LIMIT);
    assert_int_equal(uir_strings_intern_format(&strings, &found, "%lc", (wint_t)0x20ac), /* not in the C locale */
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_false(uir_strings_find(&strings, "x", UINT32_MAX, &found));
    assert_int_not_equal(uir_hash("abc", 3, 0), uir_hash("abc", 3, 1));
    uir_arena_deinit(&arena);
}

static bool vector_and_strings(const uir_allocator *allocator) {
    uir_arena arena;
    uir_strings strings;
    uir_arena_init(&arena, allocator);
    uir_vector(int) numbers = {0};
    bool done = uir_strings_init(&strings, &arena) == UIR_STATUS_OK;
    for (int i = 0; i < 150 && done; i++) {
        uir_string string;
        done = uir_vector_push(&arena, &numbers, i) == UIR_STATUS_OK &&
               uir_strings_intern_format(&strings, &string, "%0400d", i % 100) == UIR_STATUS_OK;
        assert_true(!done || numbers.data[i] == i);
    }
    uir_arena_deinit(&arena);
    return done;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(vector_and_strings);
    run_with_failures(arena_copies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_allocator),
        cmocka_unit_test(test_failure_keeps_the_old_block),
        cmocka_unit_test(test_system_blocks_stay_apart),
        cmocka_unit_test(test_system_blocks_are_given_back),
        cmocka_unit_test(test_arena_blocks),
        cmocka_unit_test(test_arena_growth),
        cmocka_unit_test(test_arena_keeps_the_largest_chunk),
        cmocka_unit_test(test_arena_chunks_are_not_overrun),
        cmocka_unit_test(test_arena_marks),
        cmocka_unit_test(test_arena_blocks_lie_in_their_chunks),
        cmocka_unit_test(test_arena_counts_what_it_hands_out),
        cmocka_unit_test(test_vector_growth),
        cmocka_unit_test(test_interned_strings),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
