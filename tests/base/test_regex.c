/* Regular expressions: what matches, what is refused and where, hostile patterns, and random ones against sets of
 * places. */
#include "support.h"

#include "base/regex.h"
#include "base/text.h"

#include <stdio.h>

typedef struct compiled {
    uir_allocator allocator;
    uir_arena arena;
    uir_regex *regex;
    const char *problem;
    size_t place;
} compiled;

static uir_status compile(compiled *c, const char *pattern, size_t length) {
    c->allocator = uir_allocator_system();
    uir_arena_init(&c->arena, &c->allocator);
    c->problem = NULL;
    c->place = 0;
    return uir_regex_compile(&c->arena, pattern, length, &c->regex, &c->problem, &c->place);
}

static bool matches(compiled *c, const char *text, size_t length) {
    bool result = false;
    assert_int_equal(uir_regex_match(c->regex, &c->arena, text, length, &result), UIR_STATUS_OK);
    return result;
}

#define T(text) text, sizeof(text) - 1

static void test_what_matches(void **state) {
    static const struct {
        const char *pattern;
        size_t pattern_length;
        const char *text;
        size_t length;
        bool matches;
    } rows[] = {
        {T(""), T(""), true},
        {T(""), T("a"), false},
        {T("abc"), T("abc"), true},
        {T("abc"), T("abcd"), false}, /* the whole text, not a part */
        {T("abc"), T("xabc"), false},
        {T("a*"), T(""), true},
        {T("a|"), T(""), true},
        {T("a|b|cd"), T("cd"), true},
        {T("a|b|cd"), T("bd"), false},
        {T("(a|b)*c"), T("ababc"), true},
        {T("a{2,3}"), T("a"), false},
        {T("a{2,3}"), T("aaa"), true},
        {T("a{2,3}"), T("aaaa"), false},
        {T("a{2,}"), T("aaaaaa"), true},
        {T("a{0}"), T(""), true},
        {T("a{,2}"), T("a{,2}"), true}, /* no count: braces */
        {T("a{x"), T("a{x"), true},
        {T("[^a-c]+"), T("def"), true},
        {T("[^a-c]+"), T("dbf"), false},
        {T("[]a-]+"), T("]-a"), true},
        {T("[a\\]]"), T("]"), true},
        {T("[[:alpha:]_]+"), T("ab_C"), true},
        {T("[[:^digit:]]"), T("5"), false},
        {T("\\d+\\.\\D*"), T("12.x"), true},
        {T("[^\\s\\d]+"), T("ab"), true},
        {T("[^\\s\\d]+"), T("a b"), false},
        {T("[\\D]"), T("7"), false},
        {T("."), T("\n"), false},
        {T("(?s)."), T("\n"), true},
        {T("(?i)straSSE"), T("STRASSE"), true},
        {T("(?i)[a-c]+"), T("AbC"), true},
        {T("(?i)\xc3\xa4"), T("\xc3\x84"), true},
        {T("(?i:a)b"), T("Ab"), true},
        {T("(?i:a)b"), T("AB"), false}, /* the flag ends with its group */
        {T("(?i)a(?-i)b"), T("AB"), false},
        {T("(?m)a$\\n^b"), T("a\nb"), true},
        {T("a$\\n^b"), T("a\nb"), false},
        {T("^a$"), T("a"), true},
        {T("\\Aa\\z"), T("a"), true},
        {T("a\\b.\\bb"), T("a b"), true},
        {T("a\\bb"), T("ab"), false},
        {T("a\\Bb"), T("ab"), true},
        {T("\\Qa.*b\\E+"), T("a.*bb"), true}, /* the last quoted letter is repeated */
        {T("\\Qab\\E{2}c"), T("abbc"), true},
        {T("\\Qab\\E{2}c"), T("ababc"), false},
        {T("\\Qa.*b\\E"), T("a.*b"), true},
        {T("\\Qa.*"), T("a.*"), true},
        {T("(?P<n>a)(?<m>b)"), T("ab"), true},
        {T("a+?b??c*?"), T("aab"), true},
        {T("\\x41\\x{1F600}"), T("A\xf0\x9f\x98\x80"), true},
        {T("\\0\\012"), T("\0\n"), true},
        {T("a*\0b"), T("aa\0b"), true}, /* a zero is a character */
        {T("a\0*"), T("a\0\0\0"), true},
        {T("..."), T("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), true}, /* characters, not bytes */
        {T("."), T("\xc3\xa4"), true},
        {T(".."), T("\xc3\xa4"), false},
        {T("."), T("\xff"), true}, /* a stray byte is one character */
        {T("..."), T("\xe2\x82q"), true},
        {T("[\xc3\xa4-\xc3\xbc]"), T("\xc3\xb6"), true},
        {T("(()|a)+"), T("aa"), true},
        {T("(a*)*"), T("aaa"), true},
        {T("(a*)+b"), T("aaab"), true},
        {T("((a|b)?c?)*"), T("abcacb"), true},
        {T("\\*\\_\\ "), T("*_ "), true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compiled c;
        if (compile(&c, rows[i].pattern, rows[i].pattern_length) != UIR_STATUS_OK)
            fail_msg("row %zu: '%s': %s at %zu", i, rows[i].pattern, c.problem, c.place);
        if (matches(&c, rows[i].text, rows[i].length) != rows[i].matches)
            fail_msg("row %zu: '%s' and '%s'", i, rows[i].pattern, rows[i].text);
        uir_arena_deinit(&c.arena);
    }
}

static void test_what_is_refused(void **state) {
    static const struct {
        const char *pattern, *problem;
        size_t place;
        uir_status status;
    } rows[] = {
        {"a(b", "without an end", 3, UIR_STATUS_BAD_FILE},
        {"a)b", "without a (", 1, UIR_STATUS_BAD_FILE},
        {"*a", "nothing to repeat", 1, UIR_STATUS_BAD_FILE},
        {"a|+", "nothing to repeat", 3, UIR_STATUS_BAD_FILE},
        {"(?", "no flag", 2, UIR_STATUS_BAD_FILE},
        {"(?z)", "no flag", 3, UIR_STATUS_BAD_FILE},
        {"(?=a)", "no flag", 3, UIR_STATUS_BAD_FILE},
        {"(?<=a)b", "behind", 3, UIR_STATUS_BAD_FILE},
        {"(?<!a)b", "behind", 3, UIR_STATUS_BAD_FILE},
        {"(?P<name", "without an end", 8, UIR_STATUS_BAD_FILE},
        {"[a", "without an end", 2, UIR_STATUS_BAD_FILE},
        {"[", "without an end", 1, UIR_STATUS_BAD_FILE},
        {"[z-a]", "ends before it begins", 4, UIR_STATUS_BAD_FILE},
        {"[a-\\d]", "ends in a class", 5, UIR_STATUS_BAD_FILE},
        {"[[:nothing:]]", "class", 3, UIR_STATUS_BAD_FILE},
        {"[[:alpha", "class", 3, UIR_STATUS_BAD_FILE},
        {"a\\", "escape", 2, UIR_STATUS_BAD_FILE},
        {"(a)\\1", "escape", 5, UIR_STATUS_BAD_FILE},
        {"\\y", "escape", 2, UIR_STATUS_BAD_FILE},
        {"\\x4", "hexadecimal", 3, UIR_STATUS_BAD_FILE},
        {"\\x{110000}", "hexadecimal", 10, UIR_STATUS_BAD_FILE},
        {"\\x{41", "hexadecimal", 5, UIR_STATUS_BAD_FILE},
        {"\\pL", "not supported", 2, UIR_STATUS_UNSUPPORTED},
        {"\\C", "not supported", 2, UIR_STATUS_UNSUPPORTED},
        {"a**", "repetition of a repetition", 2, UIR_STATUS_BAD_FILE},
        {"a{1001}", "over 1000", 7, UIR_STATUS_BAD_FILE},
        {"a{3,2}", "decreases", 6, UIR_STATUS_BAD_FILE},
        {"((a{1000}){1000}){1000}", "too large", 0, UIR_STATUS_LIMIT},
        {"(((((){1000}){1000}){1000}){1000}){1000}", "too large", 0, UIR_STATUS_LIMIT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compiled c;
        uir_status status = compile(&c, rows[i].pattern, strlen(rows[i].pattern));
        if (status != rows[i].status || !c.problem || !strstr(c.problem, rows[i].problem))
            fail_msg("'%s': %s: %s", rows[i].pattern, uir_status_text(status), c.problem ? c.problem : "no message");
        if (rows[i].place && c.place != rows[i].place) fail_msg("'%s': at %zu", rows[i].pattern, c.place);
        uir_arena_deinit(&c.arena);
    }
}

/* What takes a matcher that tries one way after the other longer than the age of the world. */
static void test_catastrophes(void **state) {
    static const char *const patterns[] = {"(a*)*b",         "(a+)+b",           "(a|a)*b",          "(a|aa)+b",
                                           "(.*)*(.*)*b",    "(a?){500}a{500}b", "((a*)*)*b",        "(a*a*a*a*a*)*b",
                                           "(a{1,20}){20}b", "(.*a){25}b",       "(?:(?:a?)*)*(a)*b"};
    enum { LENGTH = 3000 };
    (void)state;
    char *text = malloc(LENGTH + 1);
    assert_non_null(text);
    memset(text, 'a', LENGTH);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        compiled c;
        assert_int_equal(compile(&c, patterns[i], strlen(patterns[i])), UIR_STATUS_OK);
        text[LENGTH] = 'c';
        assert_false(matches(&c, text, LENGTH));
        assert_false(matches(&c, text, LENGTH + 1));
        text[LENGTH] = 'b';
        bool whole = !strstr(patterns[i], "{500}") && !strstr(patterns[i], "{1,20}");
        assert_int_equal(matches(&c, text, LENGTH + 1), whole);
        uir_arena_deinit(&c.arena);
    }
    free(text);
}

static void test_deep_groups(void **state) {
    char pattern[3001];
    (void)state;
    compiled c;
    memset(pattern, '(', 1500);
    memset(pattern + 1500, ')', 1500);
    assert_int_equal(compile(&c, pattern, 3000), UIR_STATUS_LIMIT);
    assert_non_null(strstr(c.problem, "too deep"));
    uir_arena_deinit(&c.arena);
    assert_int_equal(compile(&c, pattern + 1400, 200), UIR_STATUS_OK);
    assert_true(matches(&c, "", 0));
    uir_arena_deinit(&c.arena);
}

/* Any bytes: a program, or a message. */
static void test_any_bytes(void **state) {
    static const char alphabet[] = "ab()[]{}|*+?^$.\\-,:09xdDsQEiP<>=!\n\xc3\xa4\xff\x80";
    (void)state;
    random_state r = {fuzz_seed() * 77 + 1};
    for (uint64_t i = fuzz_iterations(20000); i--;) {
        char pattern[24], text[8];
        size_t length = (size_t)random_between(&r, 0, sizeof pattern),
               size = (size_t)random_between(&r, 0, sizeof text);
        for (size_t k = 0; k < length; k++) pattern[k] = alphabet[random_between(&r, 0, sizeof alphabet - 1)];
        for (size_t k = 0; k < size; k++) text[k] = alphabet[random_between(&r, 0, sizeof alphabet - 1)];
        compiled c;
        uir_status status = compile(&c, pattern, length);
        if (status == UIR_STATUS_OK)
            (void)matches(&c, text, size);
        else
            assert_true(c.problem && c.place <= length);
        uir_arena_deinit(&c.arena);
    }
}

/* ---- random patterns against the places where each part may end ---- */

typedef enum kind { LETTER, ANY, NOTHING, SEQUENCE, CHOICE, REPEAT } kind;
typedef struct tree {
    kind kind;
    char letter;
    struct tree *a, *b;
    int least, most; /* most -1: any number */
} tree;

static tree *grow(random_state *r, tree *nodes, int *count, int depth) {
    tree *t = &nodes[(*count)++];
    *t = (tree){.kind = (kind)random_between(r, LETTER, depth ? REPEAT : NOTHING)};
    t->letter = (char)random_between(r, 'a', 'b');
    if (t->kind >= SEQUENCE) t->a = grow(r, nodes, count, depth - 1);
    if (t->kind == SEQUENCE || t->kind == CHOICE) t->b = grow(r, nodes, count, depth - 1);
    t->least = (int)random_between(r, 0, 2);
    t->most = random_between(r, 0, 1) ? -1 : t->least + (int)random_between(r, 0, 2);
    return t;
}

static void print_tree(const tree *t, uir_text *out) {
    if (t->kind == LETTER) uir_text_append_format(out, "%c", t->letter);
    if (t->kind == ANY) uir_text_append_string(out, ".");
    if (t->kind < SEQUENCE) return;
    uir_text_append_string(out, "(");
    print_tree(t->a, out);
    uir_text_append_string(out, t->kind == CHOICE ? "|" : t->kind == REPEAT ? "){" : "");
    if (t->kind == REPEAT) {
        uir_text_append_format(out, "%d,", t->least);
        if (t->most >= 0) uir_text_append_format(out, "%d", t->most);
        uir_text_append_string(out, "}");
        return;
    }
    print_tree(t->b, out);
    uir_text_append_string(out, ")");
}

/* Bit i: place i of the text. */
static uint32_t ends(const tree *t, const char *text, int length, uint32_t begins) {
    uint32_t result = 0, now = begins;
    switch (t->kind) {
    case NOTHING:
        return begins;
    case SEQUENCE:
        return ends(t->b, text, length, ends(t->a, text, length, begins));
    case CHOICE:
        return ends(t->a, text, length, begins) | ends(t->b, text, length, begins);
    case REPEAT:
        for (int i = 0; i < t->least; i++) now = ends(t->a, text, length, now);
        result = now;
        for (int i = 0; i < (t->most < 0 ? length + 1 : t->most - t->least); i++) {
            now = ends(t->a, text, length, now);
            result |= now;
        }
        return result;
    default:
        for (int i = 0; i < length; i++)
            if (begins >> i & 1 && (t->kind == ANY || text[i] == t->letter)) result |= 1u << (i + 1);
        return result;
    }
}

static void test_random_patterns(void **state) {
    (void)state;
    random_state r = {fuzz_seed() * 131 + 5};
    uint64_t found = 0, total = fuzz_iterations(4000);
    uir_allocator allocator = uir_allocator_system();
    for (uint64_t i = total; i--;) {
        tree nodes[64];
        int count = 0;
        const tree *t = grow(&r, nodes, &count, 4);
        uir_text pattern;
        uir_text_init(&pattern, &allocator);
        print_tree(t, &pattern);
        assert_int_equal(uir_text_status(&pattern), UIR_STATUS_OK);
        compiled c;
        assert_int_equal(compile(&c, pattern.data ? pattern.data : "", pattern.length), UIR_STATUS_OK);
        for (int k = 0; k < 12; k++) {
            char text[8];
            int length = (int)random_between(&r, 0, sizeof text);
            for (int j = 0; j < length; j++) text[j] = (char)random_between(&r, 'a', 'b');
            bool expected = ends(t, text, length, 1) >> length & 1;
            found += expected;
            if (matches(&c, text, (size_t)length) != expected)
                fail_msg("'%s' and '%.*s': not %d", pattern.data, length, text, expected);
        }
        uir_arena_deinit(&c.arena);
        uir_text_deinit(&pattern);
    }
    assert_true(found > total / 2 && found < 11 * total);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_matches), cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_catastrophes), cmocka_unit_test(test_deep_groups),
        cmocka_unit_test(test_any_bytes),    cmocka_unit_test(test_random_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
