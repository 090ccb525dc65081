/* Statuses, diagnostics, edit distance. */
#include "support.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

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
        if (capacity == 0) continue;
        size_t kept = length < capacity - 1 ? length : capacity - 1;
        assert_memory_equal(buffer, expected, kept);
        assert_int_equal(buffer[kept], 0);
        assert_int_equal(buffer[capacity], 'z');
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
    assert_int_equal(uir_status_exit_code((uir_status)-1), uir_status_exit_code(UIR_STATUS_INTERNAL));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", UIR_VERSION_MAJOR, UIR_VERSION_MINOR, UIR_VERSION_PATCH);
    assert_string_equal(uir_version(), version);
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
    /* The caret counts what is shown. */
    uir_location line = {.file = "f", .line = 1, .column = 4, .line_text = "\x02\xc3\xa9Q"};
    uir_error(&diagnostics, UIR_STATUS_BAD_FILE, &line, "m");
    expect_format(diagnostics.last, "f:1:4: error: m\n    \\x02\xc3\xa9Q\n         ^");
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
    assert_true(strlen(last->message) < 5000);
    assert_true(strlen(last->location.node) < 5000);
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

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(report_some);
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
    char longer[80];
    memset(longer, 'a', 79);
    longer[79] = 0;
    assert_true(uir_edit_distance(longer, "a") > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test_setup_teardown(test_rendering, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_text_is_made_printable, begin, end),
        cmocka_unit_test_setup_teardown(test_long_text_is_cut, begin, end),
        cmocka_unit_test_setup_teardown(test_a_flood_is_only_counted, begin, end),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_edit_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
