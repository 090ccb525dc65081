/* Decoding of pictures: their pixels are those that Pillow reads; what is cut off, damaged or boasts of a size ends
 * with a message, in memory bounded by the bytes that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/decode.h"
#include "image/full/all.h"

typedef struct picture {
    const char *name;
    const unsigned char *data;
    size_t size;
    int64_t height, width;
    uint32_t sum;
} picture;

#include "pictures.inc"

enum {
    GOOD_COUNT = sizeof good_pictures / sizeof *good_pictures,
    HUGE_COUNT = sizeof huge_pictures / sizeof *huge_pictures
};

/* ---- memory that is counted ---- */

typedef struct counted {
    size_t live, most;
} counted;

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    counted *c = user;
    c->live += new_size - old_size;
    if (c->live > c->most) c->most = c->live;
    if (new_size) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

static const uir_image_extras *extras = &uir_image_all; /* as of libuir; NULL: as of libuir_rt */

/* A picture in memory of its very size, so that a sanitizer sees a byte beyond. */
static uir_status decode(const unsigned char *data, size_t size, const char *format, counted *c, uir_pixels *out_pixels,
                         const char **out_problem) {
    uir_allocator allocator = {resize, c};
    const uir_image_options options = {.format = format, .extras = extras};
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    *c = (counted){0};
    uir_status status = uir_image_decode(&allocator, copy, size, &options, out_pixels, out_problem);
    free(copy);
    if (status != UIR_STATUS_OK) {
        assert_non_null(*out_problem);
        assert_true(strlen(*out_problem) > 10);
        assert_null(out_pixels->data);
        assert_int_equal(c->live, 0);
    }
    return status;
}

static void release(counted *c, uir_pixels *pixels) {
    uir_allocator allocator = {resize, c};
    uir_pixels_release(&allocator, pixels);
    assert_int_equal(c->live, 0);
}

/* A build without a library says so of its pictures. */
static bool is_left_out(const picture *p) {
    bool left_out = false;
#ifndef UIR_HAVE_JPEG
    left_out |= !strncmp(p->name, "JPEG", 4) != !strncmp(p->name, "JPEG 2000", 9) || strstr(p->name, "ive JPEG");
#endif
#ifndef UIR_HAVE_PNG
    left_out |= strstr(p->name, "PNG") != NULL;
#endif
#ifndef UIR_HAVE_TIFF
    left_out |= strstr(p->name, "TIFF") != NULL;
#endif
#ifndef UIR_HAVE_WEBP
    left_out |= strstr(p->name, "WebP") != NULL;
#endif
#ifndef UIR_HAVE_JPEG2000
    left_out |= strstr(p->name, "JPEG 2000") != NULL;
#endif
    (void)p;
    return left_out;
}

/* Adler-32 (RFC 1950). */
static uint32_t sum_of(const uint8_t *data, size_t size) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* ---- tests ---- */

static void test_pixels(void **state) {
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        uir_status status = decode(p->data, p->size, "RGB", &c, &pixels, &problem);
        assert_int_equal(status, is_left_out(p) ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OK);
        if (status != UIR_STATUS_OK) continue;
        assert_int_equal(pixels.height, p->height);
        assert_int_equal(pixels.width, p->width);
        assert_int_equal(pixels.channels, 3);
        if (sum_of(pixels.data, pixels.size) != p->sum) fail_msg("%s: other pixels", p->name);
        release(&c, &pixels);
    }
}

static void test_channels(void **state) {
    (void)state;
    counted c;
    uir_pixels rgb, bgr, gray;
    const char *problem;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        if (is_left_out(p)) continue;
        assert_int_equal(decode(p->data, p->size, "RGB", &c, &rgb, &problem), UIR_STATUS_OK);
        counted more;
        assert_int_equal(decode(p->data, p->size, "BGR", &more, &bgr, &problem), UIR_STATUS_OK);
        assert_int_equal(rgb.size, bgr.size);
        for (size_t k = 0; k < rgb.size; k++) assert_int_equal(bgr.data[k], rgb.data[k - k % 3 + 2 - k % 3]);
        release(&more, &bgr);
        assert_int_equal(decode(p->data, p->size, "Grayscale", &more, &gray, &problem), UIR_STATUS_OK);
        assert_int_equal(gray.channels, 1);
        assert_int_equal(gray.size * 3, rgb.size);
        for (size_t k = 0; k < gray.size; k++) {
            double luma = 0.299 * rgb.data[3 * k] + 0.587 * rgb.data[3 * k + 1] + 0.114 * rgb.data[3 * k + 2];
            assert_true(gray.data[k] > luma - 0.51 && gray.data[k] < luma + 0.51);
        }
        release(&more, &gray);
        release(&c, &rgb);
    }
    assert_false(uir_image_has_format("CMYK"));
}

typedef struct asked {
    uint32_t times, stop_at;
} asked;

static bool stops(const void *user) {
    asked *a = (asked *)(uintptr_t)user;
    return a->times++ >= a->stop_at;
}

/* Stopped at each moment in turn; nothing is left, and the pixels are as ever when it is too late. */
static void test_stopped(void **state) {
    (void)state;
    uir_pixels pixels;
    const char *problem;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        bool compressed = strstr(p->name, "JPEG") || strstr(p->name, "PNG");
        uir_status status = UIR_STATUS_CANCELLED;
        asked a = {0};
        if (is_left_out(p)) continue;
        for (uint32_t at = 0; status == UIR_STATUS_CANCELLED; at++) {
            counted c = {0};
            uir_allocator allocator = {resize, &c};
            a = (asked){.stop_at = at};
            const uir_image_options options = {.format = "RGB", .stops = stops, .user = &a, .extras = extras};
            status = uir_image_decode(&allocator, p->data, p->size, &options, &pixels, &problem);
            if (status == UIR_STATUS_OK) {
                if (sum_of(pixels.data, pixels.size) != p->sum) fail_msg("%s: other pixels", p->name);
                release(&c, &pixels);
            } else if (status != UIR_STATUS_CANCELLED || c.live) {
                fail_msg("%s, stopped at %u: %s, %zu bytes left", p->name, at, problem, c.live);
            }
        }
        if (a.times < (compressed ? 2 : 1)) fail_msg("%s: asked %u times", p->name, a.times);
    }
}

/* At every length short of the whole. What follows the pixels may be missing: the end marks of PNG and JPEG. */
static void test_cut_off(void **state) {
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        for (size_t size = 0; size < p->size; size++) {
            uir_status status = decode(p->data, size, "RGB", &c, &pixels, &problem);
            if (status == UIR_STATUS_OK) {
                if (p->size - size > 16 || sum_of(pixels.data, pixels.size) != p->sum)
                    fail_msg("%s: %zu of %zu bytes are taken for the whole", p->name, size, p->size);
                release(&c, &pixels);
            }
            assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_BAD_DATA || status == UIR_STATUS_UNSUPPORTED);
        }
    }
}

/* Each byte in turn with other values: a message, or pixels, but no harm, and memory by the bytes there are: PNG's
 * compression makes at most 1032 bytes of one, each of 8 pixels at most. */
static void test_damaged(void **state) {
    static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x55};
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        unsigned char *copy = malloc(p->size);
        assert_non_null(copy);
        memcpy(copy, p->data, p->size);
        for (size_t at = 0; at < p->size; at++) {
            for (size_t k = 0; k < sizeof changes; k++) {
                copy[at] ^= changes[k];
                uir_status status = decode(copy, p->size, k % 2 ? "RGB" : "Grayscale", &c, &pixels, &problem);
                if (status == UIR_STATUS_OK) release(&c, &pixels);
                assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_BAD_DATA ||
                            status == UIR_STATUS_UNSUPPORTED);
                assert_true(c.most <= p->size * 1032 * 8 * 4 + 4096);
                copy[at] ^= changes[k];
            }
        }
        free(copy);
    }
}

/* As the picture has them: one channel of gray, else three. */
static void test_own_channels(void **state) {
    (void)state;
    counted c, more;
    uir_pixels own, rgb;
    const char *problem;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        bool gray = strstr(p->name, "gray") || strstr(p->name, "one bit") || strstr(p->name, "PGM");
        if (is_left_out(p)) continue;
        assert_int_equal(decode(p->data, p->size, NULL, &c, &own, &problem), UIR_STATUS_OK);
        assert_int_equal(decode(p->data, p->size, "RGB", &more, &rgb, &problem), UIR_STATUS_OK);
        assert_int_equal(own.channels, gray ? 1 : 3);
        assert_int_equal(own.size, (size_t)(own.height * own.width * own.channels));
        for (size_t k = 0; k < rgb.size; k++) assert_int_equal(own.data[gray ? k / 3 : k], rgb.data[k]);
        release(&c, &own);
        release(&more, &rgb);
    }
}

/* The last scan of a progressive picture again and again: each is work for all its pixels, in few bytes. */
static void test_very_many_scans(void **state) {
    enum { MORE = 200 };
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    const picture *p = NULL;
    for (int i = 0; i < GOOD_COUNT; i++)
        if (!strcmp(good_pictures[i].name, "progressive JPEG")) p = &good_pictures[i];
    assert_non_null(p);
    if (is_left_out(p)) skip();
    size_t last = p->size - 2, begin = last; /* before the mark of the end */
    while (begin && (p->data[begin] != 0xff || p->data[begin + 1] != 0xda)) begin--;
    assert_true(begin > 0);
    unsigned char *many = malloc(p->size + MORE * (last - begin));
    assert_non_null(many);
    for (int scans = 1; scans <= MORE; scans += MORE - 1) {
        size_t size = begin;
        memcpy(many, p->data, begin);
        for (int i = 0; i < scans; i++, size += last - begin) memcpy(many + size, p->data + begin, last - begin);
        memcpy(many + size, p->data + last, 2);
        uir_status status = decode(many, size + 2, "RGB", &c, &pixels, &problem);
        assert_int_equal(status, scans == 1 ? UIR_STATUS_OK : UIR_STATUS_BAD_DATA);
        if (status == UIR_STATUS_OK)
            release(&c, &pixels);
        else
            assert_non_null(strstr(problem, "more than 100 scans"));
    }
    free(many);
}

static void test_boasting_headers(void **state) {
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    for (int i = 0; i < HUGE_COUNT; i++) {
        const picture *p = &huge_pictures[i];
        uir_status status = decode(p->data, p->size, "RGB", &c, &pixels, &problem);
        if (is_left_out(p)) continue;
        assert_int_equal(status, UIR_STATUS_BAD_DATA);
        if (!strstr(problem, "more pixels than its bytes can hold")) fail_msg("%s: %s", p->name, problem);
        assert_true(c.most < 1 << 16);
    }
}

static void test_what_is_no_picture(void **state) {
    static const struct {
        const char *data;
        size_t size;
        uir_status status;
        const char *problem;
    } rows[] = {{"", 0, UIR_STATUS_BAD_DATA, "not in a known picture format"},
                {"hello", 5, UIR_STATUS_BAD_DATA, "not in a known picture format"},
                {"P6", 2, UIR_STATUS_BAD_DATA, "header"},
                {"P6 4 4 0 ", 9, UIR_STATUS_BAD_DATA, "header"},
                {"P6 4 4 65536 ", 13, UIR_STATUS_BAD_DATA, "header"},
                {"P6 0 4 255 ", 11, UIR_STATUS_BAD_DATA, "has no pixels"},
                {"P6 65537 1 255 ", 15, UIR_STATUS_BAD_DATA, "over 65536"},
                {"P2 1 1 7 8", 10, UIR_STATUS_BAD_DATA, "exceeds the maximum"},
                {"P2 # no end of the line", 23, UIR_STATUS_BAD_DATA, "header"},
                {"P5 99999999999999999999 1 255 ", 30, UIR_STATUS_BAD_DATA, ""},
                {"BM", 2, UIR_STATUS_BAD_DATA, "header is too short"}};
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_status status = decode((const unsigned char *)rows[i].data, rows[i].size, "RGB", &c, &pixels, &problem);
        if (status != rows[i].status || !strstr(problem, rows[i].problem))
            fail_msg("row %zu: %s: %s", i, uir_status_text(status), problem);
    }
}

/* What libuir_rt lacks, whether this build has it or not: told by name, with the library that has it. */
static void test_without_extras(void **state) {
    (void)state;
    counted c;
    uir_pixels pixels;
    const char *problem;
    static const char *const names[] = {"TIFF", "WebP", "JPEG 2000"};
    uint32_t met[3] = {0};
    extras = NULL;
    for (int i = 0; i < GOOD_COUNT; i++) {
        const picture *p = &good_pictures[i];
        for (size_t k = 0; k < 3; k++) {
            if (!strstr(p->name, names[k])) continue;
            assert_int_equal(decode(p->data, p->size, "RGB", &c, &pixels, &problem), UIR_STATUS_UNSUPPORTED);
            if (!strstr(problem, names[k]) || !strstr(problem, "which only libuir decodes"))
                fail_msg("%s: %s", p->name, problem);
            met[k]++;
        }
    }
    extras = &uir_image_all;
    for (size_t k = 0; k < 3; k++) assert_true(met[k] > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels),           cmocka_unit_test(test_channels),
        cmocka_unit_test(test_without_extras),   cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_damaged),          cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_own_channels),     cmocka_unit_test(test_very_many_scans),
        cmocka_unit_test(test_boasting_headers), cmocka_unit_test(test_what_is_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
