/* Digests: what Python's hashlib.blake2b makes of the same bytes, whatever the number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cache/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE UIR_DIGEST_PIECE
#define LARGE (3 * PIECE + 5)

static uint8_t *make_bytes(void) {
    uint8_t *bytes = malloc(LARGE);
    uint32_t seed = 1;
    assert_non_null(bytes);
    for (size_t i = 0; i < LARGE; i++) bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    return bytes;
}

static void expect_text(const uir_digest *digest, const char *expected) {
    char text[UIR_DIGEST_TEXT_SIZE];
    uir_digest_print(digest, text);
    assert_string_equal(text, expected);
}

/* blake2b(data, digest_size=32) */
static void of_few_bytes(void **state) {
    (void)state;
    uir_digest digest = uir_digest_make("", 0);
    expect_text(&digest, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    digest = uir_digest_make("abc", 3);
    expect_text(&digest, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

/* blake2b(size in 8 bytes + those of the pieces, person=b"uir pieces"); of a piece with person=b"uir piece" */
static const struct {
    uint64_t size;
    const char *digest;
} trees[] = {{0, "9847d5afd4f5db2066107cc79dd2b1ffe2d614fec6fa2d2f97797e17538b2c30"},
             {1, "55ccec82d5ef4d5b781f5dcf896160c2f042afdd819329f02517ceb104450fe1"},
             {PIECE - 1, "e042f6d903542bad0f60212d7606845974107d9fa8c1b7a0b0b3ee70efadd510"},
             {PIECE, "555d9f588ebd37eedd78a3c1498375ec3198b70b9f9552d4ca8a22d312a09695"},
             {PIECE + 1, "668cc031f83ba40fec4bc095f474c82400d1d7f1b6636243b3785f2563e39db5"},
             {LARGE, "c3a09c5755e42b0e3e25cc8eb9d07349c313312ce96941fbbbf65bf88041d3a5"}};

static void of_trees(void **state) {
    (void)state;
    static const uint32_t threads[] = {0, 1, 2, 3, 7, 1000};
    uir_allocator allocator = uir_allocator_system();
    uint8_t *bytes = make_bytes();
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(write(fileno(file), bytes, LARGE), LARGE);
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            uir_digest_options options = {.threads = threads[t]};
            uir_digest digest;
            assert_int_equal(uir_digest_of_memory(bytes, trees[i].size, &options, &allocator, &digest), UIR_STATUS_OK);
            expect_text(&digest, trees[i].digest);
            memset(&digest, 0, sizeof digest);
            assert_int_equal(uir_digest_of_file(fileno(file), trees[i].size, &options, &allocator, &digest),
                             UIR_STATUS_OK);
            expect_text(&digest, trees[i].digest);
        }
    }
    fclose(file);
    free(bytes);
}

/* A file that is shorter than it was is no file of that size, and no signal; one that cannot be read likewise. */
static void a_file_cut_short_is_told(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uint8_t *bytes = make_bytes();
    FILE *file = tmpfile();
    uir_digest digest;
    assert_non_null(file);
    assert_int_equal(write(fileno(file), bytes, LARGE), LARGE);
    for (uint32_t threads = 1; threads < 4; threads++) {
        uir_digest_options options = {.threads = threads};
        assert_int_equal(ftruncate(fileno(file), LARGE - 1), 0);
        assert_int_equal(uir_digest_of_file(fileno(file), LARGE, &options, &allocator, &digest), UIR_STATUS_IO_FAILED);
        assert_int_equal(uir_digest_of_file(fileno(file), LARGE - 1, &options, &allocator, &digest), UIR_STATUS_OK);
        assert_int_equal(uir_digest_of_file(-1, LARGE, &options, &allocator, &digest), UIR_STATUS_IO_FAILED);
    }
    fclose(file);
    free(bytes);
}

/* Asked to stop before it began, or without memory, it says so. */
static void *refuse(void *user, void *pointer, size_t old_size, size_t new_size) {
    (void)user, (void)pointer, (void)old_size, (void)new_size;
    return NULL;
}

static void it_ends_when_asked_to(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system(), none = {refuse, NULL};
    volatile bool cancel = false;
    uint8_t *bytes = make_bytes();
    uir_digest_options options = {.threads = 2, .cancel = &cancel};
    uir_digest digest;
    assert_int_equal(uir_digest_of_memory(bytes, LARGE, &options, &none, &digest), UIR_STATUS_OUT_OF_MEMORY);
    assert_int_equal(uir_digest_of_memory(bytes, LARGE, &options, &allocator, &digest), UIR_STATUS_OK);
    cancel = true;
    assert_int_equal(uir_digest_of_memory(bytes, LARGE, &options, &allocator, &digest), UIR_STATUS_CANCELLED);
    free(bytes);
}

static void texts_are_read_back(void **state) {
    (void)state;
    char text[UIR_DIGEST_TEXT_SIZE];
    uir_digest digest = uir_digest_make("x", 1), read;
    uir_digest_print(&digest, text);
    assert_int_equal(strlen(text), 64);
    assert_true(uir_digest_parse(text, 64, &read));
    assert_memory_equal(&digest, &read, sizeof read);
    assert_false(uir_digest_parse(text, 63, &read));
    assert_false(uir_digest_parse(text, 65, &read));
    for (size_t i = 0; i < 64; i++) {
        for (const char *wrong = "gAF/: \n"; *wrong; wrong++) {
            char kept = text[i];
            text[i] = *wrong;
            assert_false(uir_digest_parse(text, 64, &read));
            text[i] = kept;
        }
        text[i] = text[i] == '0' ? '1' : '0';
        assert_true(uir_digest_parse(text, 64, &read));
        assert_memory_not_equal(&digest, &read, sizeof read);
        uir_digest_print(&digest, text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_few_bytes),
        cmocka_unit_test(of_trees),
        cmocka_unit_test(a_file_cut_short_is_told),
        cmocka_unit_test(it_ends_when_asked_to),
        cmocka_unit_test(texts_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
