/* Statuses, diagnostics, edit distance. */
#include "support.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

static uir_diagnostics diagnostics;

static int begin(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics_init(&diagnostics, &allocator);
    return 0;
}

static int end(void **state) {
    (void)state;
    uir_diagnostics_deinit(&diagnostics);
    return 0;
}

static void expect_format(const uir_diagnostic *diagnostic, const char *expected) {
    char buffer[1024];
    size_t length = uir_diagnostic_format(diagnostic, buffer, sizeof buffer);
    assert_string_equal(buffer, expected);
    assert_int_equal(length, strlen(expected));
    /* Cut anywhere, it says how much it needs and stays terminated. */
    for (size_t capacity = 0; capacity < length + 2; capacity++) {
        memset(buffer, 'z', sizeof buffer);
        assert_int_equal(uir_diagnostic_format(diagnostic, buffer, capacity), length);
        assert_int_equal(buffer[capacity], 'z');
        if (capacity == 0) continue;
        size_t kept = length < capacity - 1 ? length : capacity - 1;
        assert_memory_equal(buffer, expected, kept);
        assert_int_equal(buffer[kept], 0);
    }
}

static void test_tables(void **state) {
    (void)state;
    assert_string_equal(uir_status_text(UIR_STATUS_OK), "ok");
    assert_int_equal(uir_status_exit_code(UIR_STATUS_OK), 0);
    assert_int_equal(uir_status_exit_code(UIR_STATUS_DIFFERENT), 1);
    assert_int_equal(uir_status_exit_code(UIR_STATUS_BAD_FILE), 3);
    assert_int_equal(uir_status_exit_code(UIR_STATUS_UNSUPPORTED), 4);
    for (int i = 0; i < UIR_STATUS_COUNT; i++) assert_true(strlen(uir_status_text((uir_status)i)) > 0);
    assert_string_equal(uir_status_text((uir_status)999), "unknown status");
    assert_string_equal(uir_status_text(UIR_STATUS_COUNT), "unknown status");
    assert_int_equal(uir_status_exit_code(UIR_STATUS_COUNT), uir_status_exit_code(UIR_STATUS_INTERNAL));
    assert_int_equal(uir_status_exit_code((uir_status)-1), uir_status_exit_code(UIR_STATUS_INTERNAL));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", UIR_VERSION_MAJOR, UIR_VERSION_MINOR, UIR_VERSION_PATCH);
    assert_string_equal(uir_version(), version);
    assert_int_equal(uir_version_number(), UIR_VERSION_NUMBER);
    assert_int_equal(uir_version_number() / 1000000, UIR_VERSION_MAJOR);
    assert_int_equal(uir_version_number() / 1000 % 1000, UIR_VERSION_MINOR);
    assert_int_equal(uir_version_number() % 1000, UIR_VERSION_PATCH);
}

/* Another program's words keep their lines; what a terminal acts on does not stay. */
static void test_quotes(void **state) {
    (void)state;
    uir_location location = {.quote = "k.c:1: error: no\n\n  x\x1b[31m\t;\r\n  ^~\n\n"};
    assert_int_equal(uir_error_hint(&diagnostics, UIR_STATUS_DEVICE_FAILED, &location, "mend it", "cc failed"),
                     UIR_STATUS_DEVICE_FAILED);
    expect_format(diagnostics.last, "error: cc failed\n    k.c:1: error: no\n    \n      x\\x1b[31m ;\\x0d\n      ^~"
                                    "\n  hint: mend it");
    location.quote = "\n\n";
    (void)!uir_error(&diagnostics, UIR_STATUS_DEVICE_FAILED, &location, "cc failed");
    expect_format(diagnostics.last, "error: cc failed");
}

static void test_rendering(void **state) {
    (void)state;
    uir_location text = {.file = "k.igraph", .line = 3, .column = 5, .line_text = "  ab cd"};
    assert_int_equal(uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &text, "expected '%s'", "{"), UIR_STATUS_BAD_FILE);
    expect_format(diagnostics.last, "k.igraph:3:5: error: expected '{'\n      ab cd\n        ^");
    uir_location binary = {.file = "m.onnx", .offset = 77, .has_offset = true};
    uir_error_hint(&diagnostics, UIR_STATUS_BAD_FILE, &binary, "export it again", "the field is cut");
    expect_format(diagnostics.last, "m.onnx: at byte 77: error: the field is cut\n  hint: export it again");
    uir_location node = {.node = "conv1", .op = "Conv"};
    uir_warning(&diagnostics, &node, "slow");
    expect_format(diagnostics.last, "warning: node 'conv1' (Conv): slow");
    uir_error(&diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.op = "Foo"}, "unknown op");
    expect_format(diagnostics.last, "error: Foo: unknown op");
    uir_error(&diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "plain");
    expect_format(diagnostics.last, "error: plain");
    assert_int_equal(diagnostics.count, 5);
    assert_int_equal(diagnostics.error_count, 4);
    assert_int_equal(diagnostics.first->status, UIR_STATUS_BAD_FILE);
    static const struct {
        uir_location location;
        const char *text;
    } rows[] = {
        {{.line = 7}, "line 7: error: m"},
        {{.line = 7, .column = 2}, "line 7: error: m"},
        {{.file = "f"}, "f: error: m"},
        {{.file = "f", .line = 7}, "f:7: error: m"},
        {{.file = "f", .column = 2}, "f: error: m"},
        {{.file = "f", .line = 7, .column = 2}, "f:7:2: error: m"},
        {{.node = "n"}, "error: node 'n': m"},
        {{.node = "", .op = "Op"}, "error: Op: m"},
        {{.node = "n", .op = ""}, "error: node 'n': m"},
        {{.node = "", .op = ""}, "error: m"},
        {{.op = "C"}, "error: C: m"},
        {{.has_offset = true}, "at byte 0: error: m"},
        {{.offset = 5}, "error: m"},
        {{.line_text = "abc"}, "error: m\n    abc"},
        {{.line_text = "abc", .column = 1}, "error: m\n    abc\n    ^"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &rows[i].location, "m");
        expect_format(diagnostics.last, rows[i].text);
    }
    assert_int_equal(uir_error(NULL, UIR_STATUS_LIMIT, NULL, "nobody listens"), UIR_STATUS_LIMIT);
    uir_diagnostics_clear(&diagnostics);
    assert_int_equal(diagnostics.count, 0);
    assert_null(diagnostics.first);
}

static void test_hostile_text_is_made_printable(void **state) {
    (void)state;
    uir_location location = {.node = "a\x1b[31m\n\xff\xc3\xa9\xc2\x9b\xed\xa0\x80", .op = "x\ty"};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &location, "name %s", "\x01\x7f");
    expect_format(diagnostics.last,
                  "error: node 'a\\x1b[31m\\x0a\\xff\xc3\xa9\\xc2\\x9b\\xed\\xa0\\x80' (x y): name \\x01\\x7f");
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = "f\x1b"}, "%s", "100%d %s");
    expect_format(diagnostics.last, "f\\x1b: error: 100%d %s");
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, NULL, "%lc", (wint_t)0x20ac); /* no character of the C locale */
    expect_format(diagnostics.last, "error: ");
    /* The caret counts what is shown. */
    uir_location tab = {.file = "f", .line = 1, .column = 3, .line_text = "\taQ"};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &tab, "m");
    expect_format(diagnostics.last, "f:1:3: error: m\n     aQ\n      ^");
    uir_location line = {.file = "f", .line = 1, .column = 4, .line_text = "\x02\xc3\xa9Q"};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &line, "m");
    expect_format(diagnostics.last, "f:1:4: error: m\n    \\x02\xc3\xa9Q\n         ^");
}

/* The length of the well-formed, printable character at `text`, 0 when there is none: by its code point. */
static size_t character_length(const unsigned char *text, size_t left) {
    static const uint32_t least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
    size_t length = text[0] >> 7 == 0 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : text[0] >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > left) return 0;
    uint32_t point = length == 1 ? text[0] : text[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) return 0;
        point = point << 6 | (text[i] & 63u);
    }
    return point < least[length] || point > 0x10ffff || point >> 11 == 0x1b || point == 0x7f ? 0 : length;
}

/* Every lead byte before bytes at the edges of what may follow, whole and cut short. */
static void test_characters(void **state) {
    (void)state;
    static const unsigned char edges[] = {'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    enum { EDGES = sizeof edges };
    for (unsigned lead = 1; lead < 256; lead++) {
        for (size_t rest = 0; rest < EDGES * EDGES * EDGES; rest++) {
            size_t second = rest / EDGES / EDGES, third = rest / EDGES % EDGES, fourth = rest % EDGES;
            if (lead < 0xc0 && third + fourth) continue;
            const char text[5] = {(char)lead, (char)edges[second], (char)edges[third], (char)edges[fourth], 0};
            char expected[20];
            size_t length = lead < 0xc0 || third + fourth == 0 ? 1 + rest % 4 : 4, at = 0;
            for (size_t i = 0; i < length;) {
                size_t character = character_length((const unsigned char *)text + i, length - i);
                if (text[i] == '\t')
                    expected[at++] = ' ';
                else if (character == 0)
                    at += (size_t)snprintf(expected + at, sizeof expected - at, "\\x%02x", (unsigned char)text[i]);
                memcpy(expected + at, text + i, character);
                at += character;
                i += character ? character : 1;
            }
            expected[at] = 0;
            uir_error(&diagnostics, UIR_STATUS_BAD_FILE, NULL, "%.*s", (int)length, text);
            assert_string_equal(diagnostics.last->message, expected);
            uir_diagnostics_clear(&diagnostics);
        }
    }
}

/* Of a long line 160 bytes around the column; the caret stands under the column's byte wherever that is. */
static void test_line_windows(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 100, 159, 160, 161, 162, 240, 500};
    char line[501], rest[520];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t k = 0; k < lengths[i]; k++) line[k] = (char)('!' + k % 89);
        line[lengths[i]] = 0;
        snprintf(rest, sizeof rest, "%s\nthe next line", line);
        for (uint32_t column = 0; column < lengths[i] + 3; column++) {
            for (uint32_t skipped = 0; skipped < 30; skipped += 13) {
                uir_location location = {.file = "f",
                                         .line = 1,
                                         .column = column ? column + skipped : 0,
                                         .line_text = skipped ? rest : line,
                                         .line_text_skipped = skipped};
                uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &location, "m");
                size_t at = column ? column - 1 : 0, begin = 0, shown = lengths[i];
                if (at > lengths[i]) at = lengths[i];
                if (lengths[i] > 160) {
                    begin = at > 80 ? at - 80 : 0;
                    shown = lengths[i] - begin < 160 ? lengths[i] - begin : 160;
                }
                assert_int_equal(strlen(diagnostics.last->location.line_text), shown);
                assert_memory_equal(diagnostics.last->location.line_text, line + begin, shown);
                assert_int_equal(diagnostics.last->caret, at - begin);
                uir_diagnostics_clear(&diagnostics);
            }
        }
    }
    /* A character that the window's end cuts is none. */
    line[0] = 'a';
    for (size_t k = 0; k < 200; k++) memcpy(line + 1 + 2 * k, "\xc3\xa9", 2);
    line[401] = 0;
    uir_location cut = {.file = "f", .line = 1, .column = 1, .line_text = line};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &cut, "m");
    assert_int_equal(strlen(diagnostics.last->location.line_text), 159 + 4);
    assert_string_equal(diagnostics.last->location.line_text + 159, "\\xc3");
    /* A column in what was left out before the text is shown at its begin. */
    uir_location location = {.file = "f", .line = 1, .column = 5, .line_text = "abc", .line_text_skipped = 9};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &location, "m");
    expect_format(diagnostics.last, "f:1:5: error: m\n    abc\n    ^");
}

/* What is cleared leaves no memory behind, and a sink starts anew. */
static void test_clearing(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_diagnostics sink;
    uir_diagnostics_init(&sink, &allocator);
    for (int i = 0; i < 300; i++) {
        uir_error(&sink, UIR_STATUS_BAD_FILE, NULL, "%01000d", i);
        uir_diagnostics_clear(&sink);
    }
    assert_true(memory.live_bytes <= 16384);
    char longest[4096]; /* that takes four times its length when printed */
    memset(longest, 1, sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    for (int i = 0; i < 3; i++) {
        uir_error(&sink, UIR_STATUS_BAD_FILE, NULL, "%s", longest);
        assert_int_equal(strlen(sink.last->message), 4 * strlen(longest));
    }
    uir_diagnostics_clear(&sink);
    sink.limit = 1;
    for (int i = 0; i < 2; i++) uir_error(&sink, UIR_STATUS_BAD_FILE, NULL, "%d", i);
    assert_int_equal(sink.dropped, 1);
    uir_diagnostics_deinit(&sink);
    assert_int_equal(memory.live_bytes, 0);
    assert_int_equal(sink.count + sink.dropped + sink.error_count, 0);
    assert_null(sink.first);
    uir_diagnostics_init(&sink, &allocator);
    for (int i = 0; i < 1010; i++) uir_warning(&sink, NULL, "%d", i);
    assert_int_equal(sink.count, 1000);
    assert_int_equal(sink.dropped, 10);
    assert_int_equal(sink.error_count, 0);
    assert_string_equal(sink.last->message, "999");
    uir_diagnostics_clear(&sink);
    assert_int_equal(sink.count + sink.dropped, 0);
    uir_diagnostics_deinit(&sink);
    assert_int_equal(memory.live_bytes, 0);
}

static void test_long_text_is_cut(void **state) {
    (void)state;
    char *wide = malloc(100001);
    memset(wide, 'n', 100000);
    wide[100000] = 0;
    wide[50000] = 'X';
    uir_location line = {.file = "f", .line = 1, .column = 50001, .line_text = wide, .node = wide};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &line, "%s", wide);
    const uir_diagnostic *last = diagnostics.last;
    assert_int_equal(strlen(last->message), 4095);
    assert_int_equal(strlen(last->location.node), 4096);
    assert_true(strlen(last->location.line_text) < 400);
    assert_int_equal(last->location.line_text[last->caret], 'X');
    free(wide);
}

static void test_a_flood_is_only_counted(void **state) {
    (void)state;
    diagnostics.limit = 3;
    for (int i = 0; i < 10; i++) uir_error(&diagnostics, UIR_STATUS_BAD_FILE, NULL, "problem %d", i);
    assert_int_equal(diagnostics.count, 3);
    assert_int_equal(diagnostics.dropped, 7);
    assert_int_equal(diagnostics.error_count, 10);
    assert_string_equal(diagnostics.last->message, "problem 2");
}

static bool report_some(const uir_allocator *allocator) {
    uir_diagnostics sink;
    uir_diagnostics_init(&sink, allocator);
    uir_location location = {.file = "f", .line = 1, .column = 1, .node = "n", .op = "o", .line_text = "text"};
    for (int i = 0; i < 20; i++)
        assert_int_equal(uir_error_hint(&sink, UIR_STATUS_BAD_FILE, &location, "hint", "%01000d", i),
                         UIR_STATUS_BAD_FILE);
    assert_int_equal(sink.error_count, 20);
    assert_int_equal(sink.count + sink.dropped, 20);
    uint32_t listed = 0;
    for (const uir_diagnostic *d = sink.first; d; d = d->next) {
        char buffer[64];
        uir_diagnostic_format(d, buffer, sizeof buffer);
        listed++;
    }
    assert_int_equal(listed, sink.count);
    bool done = sink.dropped == 0;
    uir_diagnostics_deinit(&sink);
    return done;
}

static bool report_lines(const uir_allocator *allocator) {
    uir_diagnostics sink;
    uir_diagnostics_init(&sink, allocator);
    char line[151];
    memset(line, 'x', 150);
    line[150] = 0;
    uir_location location = {.line = 1, .column = 1, .line_text = line};
    for (int i = 0; i < 20; i++) uir_error(&sink, UIR_STATUS_BAD_FILE, &location, "m");
    for (const uir_diagnostic *d = sink.first; d; d = d->next) assert_string_equal(d->location.line_text, line);
    bool done = sink.dropped == 0;
    uir_diagnostics_deinit(&sink);
    return done;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(report_lines);
    run_with_failures(report_some);
}

static const char *get_word(void *user, size_t index) {
    return ((const char *const *)user)[index];
}

static void test_nearest(void **state) {
    (void)state;
    const char *words[] = {"cpu", "vm", "null", "", "interpreter", NULL};
    assert_string_equal(uir_find_nearest("nul", get_word, words), "null");
    assert_string_equal(uir_find_nearest("interpetrer", get_word, words), "interpreter");
    assert_string_equal(uir_find_nearest("cpv", get_word, words), "cpu");
    assert_string_equal(uir_find_nearest("vm", get_word, words), "vm");
    assert_null(uir_find_nearest("opencl", get_word, words));
    assert_null(uir_find_nearest("", get_word, words + 5));
}

static void test_edit_distance(void **state) {
    (void)state;
    assert_int_equal(uir_edit_distance("", ""), 0);
    assert_int_equal(uir_edit_distance("abc", ""), 3);
    assert_int_equal(uir_edit_distance("", "abcd"), 4);
    assert_int_equal(uir_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(uir_edit_distance("--divece", "--device"), 2);
    assert_int_equal(uir_edit_distance("abcd", "abdc"), 1);
    assert_int_equal(uir_edit_distance("ca", "abc"), 3); /* alignment: no edit between swapped letters */
    assert_int_equal(uir_edit_distance("ab", "ba"), 1);
    assert_int_equal(uir_edit_distance("abcdef", "badcfe"), 3);
    assert_int_equal(uir_edit_distance("abab", "baba"), 2);
    assert_int_equal(uir_edit_distance("abc", "cab"), 2);
    assert_int_equal(uir_edit_distance("xab", "yba"), 2);
    assert_int_equal(uir_edit_distance("aab", "aba"), 1);
    assert_int_equal(uir_edit_distance("abxx", "xxab"), 4);
    /* Long words are not compared. */
    char word[66], other[66];
    memset(word, 'a', 65);
    memset(other, 'b', 65);
    word[64] = word[65] = other[64] = other[65] = 0;
    assert_int_equal(uir_edit_distance(word, other), 64);
    assert_int_equal(uir_edit_distance(word, "a"), 63);
    word[64] = 'a';
    assert_true(uir_edit_distance(word, "a") > 1000);
    assert_true(uir_edit_distance("a", word) > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test_setup_teardown(test_rendering, begin, end),
        cmocka_unit_test_setup_teardown(test_quotes, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_text_is_made_printable, begin, end),
        cmocka_unit_test_setup_teardown(test_characters, begin, end),
        cmocka_unit_test_setup_teardown(test_line_windows, begin, end),
        cmocka_unit_test(test_clearing),
        cmocka_unit_test_setup_teardown(test_long_text_is_cut, begin, end),
        cmocka_unit_test_setup_teardown(test_a_flood_is_only_counted, begin, end),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_edit_distance),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
