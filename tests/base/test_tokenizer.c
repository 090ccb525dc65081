/* Tokenizer: what a token is, where it ends, what is said of it. */
#include "support.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reading {
    uir_allocator allocator;
    uir_arena arena;
    uir_diagnostics diagnostics;
    uir_tokenizer tokenizer;
} reading;

static void read_text(reading *r, const char *text, size_t length) {
    r->allocator = uir_allocator_system();
    uir_arena_init(&r->arena, &r->allocator);
    uir_diagnostics_init(&r->diagnostics, &r->allocator);
    uir_tokenizer_init(&r->tokenizer, text, length, "t", &r->arena, &r->diagnostics);
}

static void end_reading(reading *r) {
    uir_diagnostics_deinit(&r->diagnostics);
    uir_arena_deinit(&r->arena);
}

static uir_token expect_token(reading *r, uir_token_kind kind, const char *text, uint32_t line, uint32_t column) {
    uir_token token = r->tokenizer.current;
    assert_int_equal(token.kind, kind);
    assert_int_equal(token.length, strlen(text));
    assert_memory_equal(token.text, text, token.length);
    assert_int_equal(token.line, line);
    assert_int_equal(token.column, column);
    uir_tokenizer_advance(&r->tokenizer);
    return token;
}

static void test_tokens(void **state) {
    (void)state;
    reading r;
    const char *text =
        "igraph @k # note ->\n  %x0:12 0..16 1.5e3 0x1F 0x1.8p1 a->b<=c 2e %5 % \"s\\\"\\x41\\0\" x.y 1.";
    read_text(&r, text, strlen(text));
    assert_true(expect_token(&r, UIR_TOKEN_NAME, "igraph", 1, 1).space_before);
    assert_true(expect_token(&r, UIR_TOKEN_AT, "k", 1, 8).space_before);
    assert_true(expect_token(&r, UIR_TOKEN_PERCENT, "x0", 2, 3).space_before);
    assert_false(expect_token(&r, UIR_TOKEN_PUNCTUATION, ":", 2, 6).space_before);
    assert_int_equal(expect_token(&r, UIR_TOKEN_INTEGER, "12", 2, 7).integer, 12);
    expect_token(&r, UIR_TOKEN_INTEGER, "0", 2, 10);
    expect_token(&r, UIR_TOKEN_PUNCTUATION, "..", 2, 11);
    expect_token(&r, UIR_TOKEN_INTEGER, "16", 2, 13);
    assert_true(expect_token(&r, UIR_TOKEN_REAL, "1.5e3", 2, 16).real == 1500);
    assert_int_equal(expect_token(&r, UIR_TOKEN_INTEGER, "0x1F", 2, 22).integer, 31);
    assert_true(expect_token(&r, UIR_TOKEN_REAL, "0x1.8p1", 2, 27).real == 3);
    expect_token(&r, UIR_TOKEN_NAME, "a", 2, 35);
    expect_token(&r, UIR_TOKEN_PUNCTUATION, "->", 2, 36);
    expect_token(&r, UIR_TOKEN_NAME, "b", 2, 38);
    expect_token(&r, UIR_TOKEN_PUNCTUATION, "<=", 2, 39);
    expect_token(&r, UIR_TOKEN_NAME, "c", 2, 41);
    expect_token(&r, UIR_TOKEN_INTEGER, "2", 2, 43);
    expect_token(&r, UIR_TOKEN_NAME, "e", 2, 44);
    expect_token(&r, UIR_TOKEN_PERCENT, "5", 2, 46);
    expect_token(&r, UIR_TOKEN_PUNCTUATION, "%", 2, 49);
    assert_int_equal(r.tokenizer.current.kind, UIR_TOKEN_STRING);
    assert_int_equal(r.tokenizer.current.length, 4);
    assert_memory_equal(r.tokenizer.current.text, "s\"A\0", 4);
    uir_tokenizer_advance(&r.tokenizer);
    expect_token(&r, UIR_TOKEN_NAME, "x", 2, 63);
    expect_token(&r, UIR_TOKEN_PUNCTUATION, ".", 2, 64);
    expect_token(&r, UIR_TOKEN_NAME, "y", 2, 65);
    expect_token(&r, UIR_TOKEN_INTEGER, "1", 2, 67);
    expect_token(&r, UIR_TOKEN_PUNCTUATION, ".", 2, 68);
    expect_token(&r, UIR_TOKEN_END, "", 2, 69);
    expect_token(&r, UIR_TOKEN_END, "", 2, 69);
    assert_int_equal(r.diagnostics.count, 0);
    end_reading(&r);
}

/* A text's tokens, spelled: kind and text of each, apart by spaces. */
static void expect_tokens(const char *text, size_t length, const char *expected) {
    static const char kinds[] = "enpairs.!"; /* in the order of uir_token_kind */
    char found[400];
    size_t at = 0;
    reading r;
    read_text(&r, text, length);
    found[0] = 0;
    for (;; uir_tokenizer_advance(&r.tokenizer)) {
        const uir_token *token = &r.tokenizer.current;
        if (token->kind == UIR_TOKEN_END || token->kind == UIR_TOKEN_ERROR) break;
        at += (size_t)snprintf(found + at, sizeof found - at, "%s%c:%.*s", at ? " " : "", kinds[token->kind],
                               (int)token->length, token->text);
        assert_true(at < sizeof found);
    }
    if (r.tokenizer.current.kind == UIR_TOKEN_ERROR) snprintf(found + at, sizeof found - at, "%s!", at ? " " : "");
    assert_string_equal(found, expected);
    end_reading(&r);
}

static void test_token_forms(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"1e5", "r:1e5"},
        {"1E+5", "r:1E+5"},
        {"1e-5", "r:1e-5"},
        {"1e+", "i:1 n:e .:+"},
        {"1e-x", "i:1 n:e .:- n:x"},
        {"1.e5", "i:1 .:. n:e5"},
        {"1.5e", "r:1.5 n:e"},
        {"1.5.5", "r:1.5 .:. i:5"},
        {"1..5", "i:1 .:.. i:5"},
        {"1...5", "i:1 .:.. .:. i:5"},
        {"0x", "i:0 n:x"},
        {"0xg", "i:0 n:xg"},
        {"0X1F", "i:0X1F"},
        {"0xfg", "i:0xf n:g"},
        {"00x1", "i:00 n:x1"},
        {"1x1", "i:1 n:x1"},
        {"0x1.8", "r:0x1.8"},
        {"0x1.p1", "i:0x1 .:. n:p1"},
        {"0x1.g", "i:0x1 .:. n:g"},
        {"0x1P-3", "r:0x1P-3"},
        {"0x1p+a", "i:0x1 n:p .:+ n:a"},
        {"0x1e5", "i:0x1e5"},
        {"1p3", "i:1 n:p3"},
        {"1a", "i:1 n:a"},
        {"-1", ".:- i:1"},
        {"-9223372036854775808", ".:- i:9223372036854775808"},
        {"-0x8000000000000000", ".:- i:0x8000000000000000"},
        {"->9223372036854775807", ".:-> i:9223372036854775807"},
        {"->9223372036854775808", ".:-> !"},
        {"+9223372036854775808", ".:+ !"},
        {"x9223372036854775808", "n:x9223372036854775808"},
        {"\"-\"9223372036854775808", "s:- !"},
        {"0x8000000000000000", "!"},
        {"0x7FFFFFFFFFFFFFFF", "i:0x7FFFFFFFFFFFFFFF"},
        {"92233720368547758070", "!"},
        {"18446744073709551616", "!"},
        {"9223372036854775808.5", "r:9223372036854775808.5"},
        {"%a@b%1@2", "p:a a:b p:1 a:2"},
        {"%%a", ".:% p:a"},
        {"@ a", ".:@ n:a"},
        {"a#b\nc", "n:a n:c"},
        {"a#", "n:a"},
        {"#\n#b\n", ""},
        {"\r\t a\r\tb", "n:a n:b"},
        {"\"\\n\\r\\t\\\\\\\"\\x4a\\x4A\\xe9\"", "s:\n\r\t\\\"JJ\xe9"},
        {"\"a\"\"b\"", "s:a s:b"},
        {"\"\\x4g\"", "!"},
        {"\"\\xg4\"", "!"},
        {"\"\\x\"", "!"},
        {"\"\\a\"", "!"},
        {"\"\\q41\"", "!"},
        {"01f", "i:01 n:f"},
        {"0.5", "r:0.5"},
        {"0-1", "i:0 .:- i:1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_tokens(rows[i][0], strlen(rows[i][0]), rows[i][1]);
    expect_tokens("\"\\\0\"", 4, "!");
    reading r;
    int64_t value;
    static const struct {
        const char *text;
        int64_t value;
    } integers[] = {{"0x8", 8}, {"0xaF09", 0xaf09}, {"-0x8000000000000000", INT64_MIN},
                    {"0x", 0},  {"007", 7},         {"- 3", -3}};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        read_text(&r, integers[i].text, strlen(integers[i].text));
        assert_int_equal(uir_tokenizer_expect_integer(&r.tokenizer, &value), UIR_STATUS_OK);
        assert_true(value == integers[i].value);
        end_reading(&r);
    }
}

/* What each byte is to what stands before and after it. */
static void test_token_bytes(void **state) {
    (void)state;
    static const char *const pairs[] = {"->", "==", "!=", "<=", ">=", "..", "::", "&&", "||"};
    for (int c = 0x21; c < 0x7f; c++) {
        bool digit = strchr("0123456789", c), hexadecimal = strchr("0123456789abcdefABCDEF", c);
        bool name = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", c);
        const char texts[][5] = {{'a', (char)c, 0}, {'1', (char)c, 0}, {'0', 'x', '1', (char)c, 0}};
        const bool goes_on[] = {name, digit, hexadecimal};
        for (size_t i = 0; i < 3; i++) {
            reading r;
            size_t length = strlen(texts[i]);
            read_text(&r, texts[i], length);
            assert_int_equal(r.tokenizer.current.length, goes_on[i] ? length : length - 1);
            end_reading(&r);
        }
        for (int d = 0x21; d < 0x7f; d++) {
            if (name || strchr("\"#%@", c)) continue;
            const char two[] = {(char)c, (char)d, 0};
            size_t expected = 1;
            for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
                if (strcmp(two, pairs[i]) == 0) expected = 2;
            reading r;
            read_text(&r, two, 2);
            assert_int_equal(r.tokenizer.current.kind, UIR_TOKEN_PUNCTUATION);
            assert_int_equal(r.tokenizer.current.length, expected);
            end_reading(&r);
            read_text(&r, two, 1);
            assert_int_equal(r.tokenizer.current.length, 1);
            end_reading(&r);
        }
    }
}

/* What lies beyond the end is not looked at: cut anywhere, a text reads the same whatever follows. */
static void test_the_end_is_the_end(void **state) {
    (void)state;
    static const char *const texts[] = {"0x1f.8p+12 1.5e-3 2..3", "->a==%b@c::12", "\"a\\\"\\x41\\n\" # b\nc"};
    static const char after[] = "0fx.ep+-=\"\\\n>%a41n\"";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t length = 0; length <= strlen(texts[i]); length++) {
            char first[200], bytes[60];
            for (size_t from = 0; from + 4 < sizeof after; from++) {
                char found[200];
                size_t at = 0;
                memcpy(bytes, texts[i], length);
                memcpy(bytes + length, after + from, 4);
                reading r;
                read_text(&r, bytes, length);
                for (;; uir_tokenizer_advance(&r.tokenizer)) {
                    const uir_token *token = &r.tokenizer.current;
                    at += (size_t)snprintf(found + at, sizeof found - at, "%d:%.*s,", (int)token->kind,
                                           (int)token->length, token->text);
                    assert_true(at < sizeof found);
                    if (token->kind == UIR_TOKEN_END) break;
                }
                end_reading(&r);
                if (from == 0)
                    memcpy(first, found, sizeof first);
                else
                    assert_string_equal(found, first);
            }
        }
    }
}

/* A token that cannot be read takes the rest of its line with it where its own end is unknown. */
static void test_reading_goes_on(void **state) {
    (void)state;
    reading r;
    static const char text[] = "\"a b\nc \x01 d \"\\q\" e\nf \"";
    read_text(&r, text, sizeof text - 1);
    static const struct {
        uir_token_kind kind;
        char first;
        uint32_t line;
    } expected[] = {{UIR_TOKEN_ERROR, '"', 1}, {UIR_TOKEN_NAME, 'c', 2}, {UIR_TOKEN_ERROR, 1, 2},
                    {UIR_TOKEN_NAME, 'd', 2},  {UIR_TOKEN_ERROR, 0, 2},  {UIR_TOKEN_NAME, 'f', 3},
                    {UIR_TOKEN_ERROR, '"', 3}, {UIR_TOKEN_END, '\0', 3}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(r.tokenizer.current.kind, expected[i].kind);
        assert_int_equal(r.tokenizer.current.line, expected[i].line);
        if (expected[i].first) assert_int_equal(r.tokenizer.current.text[0], expected[i].first);
        uir_tokenizer_advance(&r.tokenizer);
    }
    assert_int_equal(r.diagnostics.count, 4);
    end_reading(&r);
}

/* Whatever token is complained of, at once or later: its line, and the caret under it. */
static void test_errors_show_their_line(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 10, 100, 127, 128, 129, 160, 254, 255, 256, 257, 300, 700};
    enum { LENGTHS = sizeof lengths / sizeof *lengths, LAST = 7 };
    char text[4000];
    size_t length = 0;
    for (size_t i = 0; i < LENGTHS; i++) { /* lines of letters, each ending in a number */
        for (size_t k = 0; k < lengths[i]; k++) text[length++] = k % 7 == 6 ? ' ' : (char)('a' + k % 26);
        length += (size_t)snprintf(text + length, sizeof text - length, i + 1 < LENGTHS ? " %d\n" : " %d", LAST);
    }
    reading r;
    read_text(&r, text, length);
    uir_tokenizer_init_part(&r.tokenizer, text, length, 41, "t", &r.arena, &r.diagnostics);
    static uir_token tokens[1000];
    size_t count = 0;
    for (; r.tokenizer.current.kind != UIR_TOKEN_END; uir_tokenizer_advance(&r.tokenizer), count++) {
        tokens[count] = r.tokenizer.current;
        for (size_t later = 0; later < 2; later++) {
            const uir_token *token = &tokens[later ? count / 2 : count];
            const char *begin = text, *end;
            for (uint32_t line = 41; line < token->line; line++) begin = strchr(begin, '\n') + 1;
            end = strchr(begin, '\n') ? strchr(begin, '\n') : text + length;
            if (later)
                uir_tokenizer_error_at(&r.tokenizer, token, "no");
            else
                uir_tokenizer_error(&r.tokenizer, "no");
            const uir_diagnostic *d = r.diagnostics.last;
            size_t shown = strlen(d->location.line_text);
            assert_string_equal(d->message, "no");
            assert_int_equal(d->location.line, token->line);
            assert_int_equal(d->location.column, token->text - begin + 1);
            const char *from = token->text - d->caret;
            assert_true(from >= begin && from + shown <= end);
            assert_memory_equal(d->location.line_text, from, shown);
            size_t whole = (size_t)(end - begin);
            assert_true(shown == whole || shown >= 80);
            if (whole <= 128) assert_int_equal(shown, whole);
            uir_diagnostics_clear(&r.diagnostics);
        }
    }
    uir_tokenizer_error(&r.tokenizer, "no");
    assert_int_equal(r.diagnostics.last->location.column, lengths[LENGTHS - 1] + 3);
    assert_int_equal(r.diagnostics.last->location.line_text[r.diagnostics.last->caret - 1], '0' + LAST);
    end_reading(&r);
    /* A zero does not end the line. */
    read_text(&r, "a\0b", 3);
    uir_tokenizer_advance(&r.tokenizer);
    assert_string_equal(r.diagnostics.last->location.line_text, "a b");
    end_reading(&r);
}

/* A string there is no memory for: said so, and not read as another token. */
static bool read_strings(const uir_allocator *allocator) {
    char text[2003];
    memset(text, 'x', sizeof text);
    text[0] = text[2000] = '"';
    text[2001] = ' ';
    reading r;
    r.allocator = uir_allocator_system();
    uir_arena_init(&r.arena, allocator);
    uir_diagnostics_init(&r.diagnostics, &r.allocator);
    bool done = true;
    for (int i = 0; i < 10 && done; i++) {
        uir_tokenizer_init(&r.tokenizer, text, sizeof text, "t", &r.arena, &r.diagnostics);
        done = r.tokenizer.current.kind == UIR_TOKEN_STRING;
        assert_int_equal(r.tokenizer.current.kind, done ? UIR_TOKEN_STRING : UIR_TOKEN_ERROR);
        assert_int_equal(r.diagnostics.count, !done);
        if (!done) assert_int_equal(r.diagnostics.last->status, UIR_STATUS_OUT_OF_MEMORY);
        uir_tokenizer_advance(&r.tokenizer);
        assert_int_equal(r.tokenizer.current.kind, done ? UIR_TOKEN_NAME : UIR_TOKEN_END);
    }
    end_reading(&r);
    return done;
}

static void test_strings_without_memory(void **state) {
    (void)state;
    run_with_failures(read_strings);
}

static void test_what_was_found(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"", "expected 'x', found the end"},
        {"\"x\"", "expected 'x', found a string"},
        {"%x", "expected 'x', found '%x'"},
        {"@x", "expected 'x', found '@x'"},
        {"12", "expected 'x', found '12'"},
        {"->", "expected 'x', found '->'"},
        {"xx", "expected 'x', found 'xx'"},
        {"abcdefghijabcdefghijabcdefghijabcdefghij", "expected 'x', found 'abcdefghijabcdefghijabcdefghijabcdefghij'"},
        {"abcdefghijabcdefghijabcdefghijabcdefghijk", "expected 'x', found 'abcdefghijabcdefghijabcdefghijabcdefghij'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reading r;
        int64_t integer;
        double real;
        read_text(&r, rows[i][0], strlen(rows[i][0]));
        assert_false(uir_tokenizer_is(&r.tokenizer, "x"));
        assert_false(uir_tokenizer_accept(&r.tokenizer, "x"));
        assert_int_equal(uir_tokenizer_expect(&r.tokenizer, "x"), UIR_STATUS_BAD_FILE);
        assert_string_equal(r.diagnostics.last->message, rows[i][1]);
        bool number = strcmp(rows[i][0], "12") == 0;
        assert_int_equal(uir_tokenizer_expect_integer(&r.tokenizer, &integer),
                         number ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE);
        if (!number) assert_int_equal(uir_tokenizer_expect_double(&r.tokenizer, &real), UIR_STATUS_BAD_FILE);
        if (!number) assert_memory_equal(r.diagnostics.last->message, "expected a number", 17);
        end_reading(&r);
    }
    reading r;
    const char *name;
    read_text(&r, "x y", 3);
    assert_true(uir_tokenizer_is(&r.tokenizer, "x"));
    assert_false(uir_tokenizer_is(&r.tokenizer, "x y"));
    assert_false(uir_tokenizer_is(&r.tokenizer, ""));
    assert_int_equal(uir_tokenizer_expect(&r.tokenizer, "x"), UIR_STATUS_OK);
    assert_int_equal(uir_tokenizer_expect_name(&r.tokenizer, "a name", &name), UIR_STATUS_OK);
    assert_string_equal(name, "y");
    assert_int_equal(r.diagnostics.count, 0);
    end_reading(&r);
}

static void test_helpers(void **state) {
    (void)state;
    reading r;
    const char *text = "dim -9223372036854775808 -7 5 -1.5 nan -inf 3 name }";
    read_text(&r, text, strlen(text));
    int64_t integer;
    double real;
    const char *name;
    assert_true(uir_tokenizer_is(&r.tokenizer, "dim"));
    assert_false(uir_tokenizer_is(&r.tokenizer, "di"));
    assert_true(uir_tokenizer_accept(&r.tokenizer, "dim"));
    assert_int_equal(r.tokenizer.previous.length, 3);
    assert_int_equal(uir_tokenizer_expect_integer(&r.tokenizer, &integer), UIR_STATUS_OK);
    assert_true(integer == INT64_MIN);
    assert_int_equal(uir_tokenizer_expect_integer(&r.tokenizer, &integer), UIR_STATUS_OK);
    assert_int_equal(integer, -7);
    assert_int_equal(uir_tokenizer_expect_integer(&r.tokenizer, &integer), UIR_STATUS_OK);
    assert_int_equal(integer, 5);
    assert_int_equal(uir_tokenizer_expect_double(&r.tokenizer, &real), UIR_STATUS_OK);
    assert_true(real == -1.5);
    assert_int_equal(uir_tokenizer_expect_double(&r.tokenizer, &real), UIR_STATUS_OK);
    assert_true(real != real);
    assert_int_equal(uir_tokenizer_expect_double(&r.tokenizer, &real), UIR_STATUS_OK);
    assert_true(real == -INFINITY);
    assert_int_equal(uir_tokenizer_expect_double(&r.tokenizer, &real), UIR_STATUS_OK);
    assert_true(real == 3);
    assert_int_equal(uir_tokenizer_expect_name(&r.tokenizer, "a name", &name), UIR_STATUS_OK);
    assert_string_equal(name, "name");
    assert_int_equal(uir_tokenizer_expect_name(&r.tokenizer, "a name", &name), UIR_STATUS_BAD_FILE);
    assert_string_equal(r.diagnostics.last->message, "expected a name, found '}'");
    assert_int_equal(uir_tokenizer_expect(&r.tokenizer, "{"), UIR_STATUS_BAD_FILE);
    assert_string_equal(r.diagnostics.last->message, "expected '{', found '}'");
    assert_int_equal(r.diagnostics.last->location.column, 52);
    end_reading(&r);
}

static void expect_error(const char *text, size_t length, const char *message, uint32_t line, uint32_t column) {
    reading r;
    read_text(&r, text, length);
    while (r.tokenizer.current.kind != UIR_TOKEN_END && r.tokenizer.current.kind != UIR_TOKEN_ERROR)
        uir_tokenizer_advance(&r.tokenizer);
    assert_int_equal(r.tokenizer.current.kind, UIR_TOKEN_ERROR);
    assert_int_equal(r.diagnostics.count, 1);
    assert_string_equal(r.diagnostics.last->message, message);
    assert_int_equal(r.diagnostics.last->location.line, line);
    assert_int_equal(r.diagnostics.last->location.column, column);
    /* Said once. */
    assert_int_equal(uir_tokenizer_expect(&r.tokenizer, "x"), UIR_STATUS_BAD_FILE);
    assert_int_equal(r.diagnostics.count, 1);
    end_reading(&r);
}

static void test_bad_text(void **state) {
    (void)state;
    const char *escapes = "the string has an escape other than \\\" \\\\ \\n \\r \\t \\0 \\xNN";
    expect_error("a\n \x01", 4, "byte 0x01 is not allowed here", 2, 2);
    expect_error("a\0b", 3, "byte 0x00 is not allowed here", 1, 2);
    expect_error("\x7f", 1, "byte 0x7f is not allowed here", 1, 1);
    expect_error("\x80", 1, "byte 0x80 is not allowed here", 1, 1);
    expect_error("\x1f", 1, "byte 0x1f is not allowed here", 1, 1);
    expect_error("\xff", 1, "byte 0xff is not allowed here", 1, 1);
    expect_error("x \"ab", 5, "the string is not closed", 1, 3);
    expect_error("\"ab\\\"", 5, "the string is not closed", 1, 1);
    expect_error("\"a\nb\"", 5, "the string is not closed", 1, 1);
    expect_error("\"\\", 2, "the string is not closed", 1, 1);
    expect_error("\"\\q\"", 4, escapes, 1, 1);
    expect_error("\"\\x4\"", 5, escapes, 1, 1);
    expect_error("9223372036854775808", 19, "the integer does not fit in 64 bits", 1, 1);
    expect_error("- 9223372036854775808", 21, "the integer does not fit in 64 bits", 1, 3);
    expect_error("-9223372036854775809", 20, "the integer does not fit in 64 bits", 1, 2);
    expect_error("0x10000000000000000", 19, "the integer does not fit in 64 bits", 1, 1);
}

static void test_quoted_text_reads_back(void **state) {
    (void)state;
    uir_allocator system = uir_allocator_system();
    uir_text edges;
    uir_text_init(&edges, &system);
    uir_text_append_quoted(&edges, "\x1f ~\x7f\xff", 5);
    assert_string_equal(edges.data, "\"\\x1f ~\\x7f\\xff\"");
    uir_text_deinit(&edges);
    random_state random = {fuzz_seed()};
    for (int i = 0; i < 200; i++) {
        reading r;
        uir_text text;
        char bytes[40];
        size_t length = (size_t)random_between(&random, 0, sizeof bytes);
        for (size_t k = 0; k < length; k++) bytes[k] = (char)random_next(&random);
        uir_allocator allocator = uir_allocator_system();
        uir_text_init(&text, &allocator);
        uir_text_append_quoted(&text, bytes, length);
        read_text(&r, text.data, text.length);
        assert_int_equal(r.tokenizer.current.kind, UIR_TOKEN_STRING);
        assert_int_equal(r.tokenizer.current.length, length);
        assert_memory_equal(r.tokenizer.current.text, bytes, length);
        assert_int_equal(r.tokenizer.current.text[length], 0);
        end_reading(&r);
        uir_text_deinit(&text);
    }
}

/* Any bytes: the tokenizer ends, and reads nothing outside (under the address sanitizer). */
static void test_random_bytes(void **state) {
    (void)state;
    static const char likely[] = "\"\\x0eEp.-+#\n%@a1f_ ->=<|&:";
    random_state random = {fuzz_seed()};
    for (uint64_t i = 0; i < fuzz_iterations(20000) / 4; i++) {
        reading r;
        size_t length = (size_t)random_between(&random, 0, 24);
        char *bytes = malloc(length + 1);
        for (size_t k = 0; k < length; k++)
            bytes[k] = random_next(&random) % 8 ? likely[random_next(&random) % (sizeof likely - 1)]
                                                : (char)random_next(&random);
        char *exact = realloc(bytes, length ? length : 1);
        read_text(&r, exact, length);
        size_t tokens = 0;
        for (; r.tokenizer.current.kind != UIR_TOKEN_END; tokens++) {
            assert_true(tokens <= length);
            uir_tokenizer_advance(&r.tokenizer);
        }
        end_reading(&r);
        free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_token_forms),
        cmocka_unit_test(test_token_bytes),
        cmocka_unit_test(test_the_end_is_the_end),
        cmocka_unit_test(test_reading_goes_on),
        cmocka_unit_test(test_errors_show_their_line),
        cmocka_unit_test(test_what_was_found),
        cmocka_unit_test(test_strings_without_memory),
        cmocka_unit_test(test_helpers),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_quoted_text_reads_back),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
