/* A pattern in RE2's syntax to a tree. */
#include "base/regex_internal.h"
#include "base/utf8.h"

#include <string.h>

enum { MOST_DEPTH = 200, MOST_REPEATS = 1000 };

typedef struct parser {
    uir_arena *arena;
    const char *pattern, *problem;
    size_t length, at;
    uir_status status;
    int depth;
    bool fold, dot_newline, multiline;
    uir_regex_node spare; /* stands for what could not be made */
    uir_regex_set spare_set;
} parser;

static void fail(parser *p, uir_status status, const char *problem) {
    if (p->status != UIR_STATUS_OK) return;
    p->status = status;
    p->problem = problem;
}

static bool more(const parser *p) {
    return p->status == UIR_STATUS_OK && p->at < p->length;
}

static bool accept(parser *p, char c) {
    if (!more(p) || p->pattern[p->at] != c) return false;
    p->at++;
    return true;
}

static bool accept_text(parser *p, const char *text) {
    size_t length = strlen(text);
    if (!more(p) || p->length - p->at < length || memcmp(p->pattern + p->at, text, length)) return false;
    p->at += length;
    return true;
}

static uint32_t take(parser *p) {
    size_t length = 0;
    if (!more(p)) return 0;
    uint32_t code_point = uir_utf8_decode(p->pattern + p->at, p->length - p->at, &length);
    p->at += length;
    return code_point;
}

static void *allocate(parser *p, size_t size) {
    void *memory = uir_arena_allocate(p->arena, size);
    if (!memory) fail(p, UIR_STATUS_OUT_OF_MEMORY, "out of memory");
    return memory;
}

static uir_regex_node *new_node(parser *p, uir_regex_kind kind) {
    uir_regex_node *made = allocate(p, sizeof *made);
    if (!made) return &p->spare;
    made->kind = kind;
    return made;
}

static uir_regex_node *new_set(parser *p) {
    uir_regex_node *made = new_node(p, UIR_REGEX_SET);
    uir_regex_set *s = allocate(p, sizeof *s);
    if (p->status != UIR_STATUS_OK) s = &p->spare_set;
    s->fold = p->fold;
    made->set = s;
    return made;
}

static void add_range(parser *p, uir_regex_set *s, uint32_t first, uint32_t last) {
    if (p->status == UIR_STATUS_OK &&
        uir_vector_push(p->arena, &s->ranges, (uir_regex_range){first, last}) != UIR_STATUS_OK)
        fail(p, UIR_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* The classes of Perl and POSIX, as pairs of first and last; the text's own terminator ends them. */
static const struct {
    const char *name, *pairs;
} classes[] = {{"d", "09"},           {"w", "09AZaz__"},   {"s", "\t\n\f\r  "}, {"alnum", "09AZaz"},
               {"alpha", "AZaz"},     {"ascii", "\1\177"}, {"blank", "\t\t  "}, {"cntrl", "\1\37\177\177"},
               {"digit", "09"},       {"graph", "!~"},     {"lower", "az"},     {"print", " ~"},
               {"punct", "!/:@[`{~"}, {"space", "\t\r  "}, {"upper", "AZ"},     {"word", "09AZaz__"},
               {"xdigit", "09AFaf"}};

/* Adds a class to a set, or all that is not in it. */
static bool add_class(parser *p, uir_regex_set *s, const char *name, size_t length, bool negated) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) != length || memcmp(classes[i].name, name, length)) continue;
        uint32_t next = 0;
        for (const char *pair = classes[i].pairs; *pair; pair += 2) {
            uint32_t first = (unsigned char)pair[0], last = (unsigned char)pair[1];
            if (!negated) add_range(p, s, first, last);
            if (negated && first > next) add_range(p, s, next, first - 1);
            next = last + 1;
        }
        if (negated) add_range(p, s, next, 0x10ffff);
        return true;
    }
    return false;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static uint32_t take_hex(parser *p) {
    uint32_t value = 0;
    bool braces = accept(p, '{');
    int digits = 0;
    while (more(p) && hex_digit(p->pattern[p->at]) >= 0 && digits < (braces ? 8 : 2)) {
        value = value * 16 + (uint32_t)hex_digit(p->pattern[p->at++]);
        digits++;
    }
    if ((braces && !accept(p, '}')) || (braces ? digits < 1 : digits != 2) || value > 0x10ffff)
        fail(p, UIR_STATUS_BAD_FILE, "invalid hexadecimal escape");
    return value;
}

/* After a backslash: true with a character, or with a class that went into `s`. */
static bool take_escape(parser *p, uir_regex_set *s, uint32_t *out_character) {
    static const char letters[] = "aftnrv", values[] = "\a\f\t\n\r\v";
    uint32_t c = take(p);
    const char *letter = c && c < 128 ? strchr(letters, (int)c) : NULL;
    char name = (char)(c | 0x20);
    if (c < 128 && (c == 'D' || c == 'W' || c == 'S' || c == 'd' || c == 'w' || c == 's')) {
        add_class(p, s, &name, 1, c < 'a');
        return false;
    }
    *out_character = letter ? (uint32_t)values[letter - letters] : c == 'x' ? take_hex(p) : c;
    if (letter || c == 'x') return true;
    if (c == '0') {
        *out_character = 0;
        for (int i = 0; i < 2 && more(p) && p->pattern[p->at] >= '0' && p->pattern[p->at] <= '7'; i++)
            *out_character = *out_character * 8 + (uint32_t)(p->pattern[p->at++] - '0');
        return true;
    }
    if (c == 'p' || c == 'P' || c == 'C') fail(p, UIR_STATUS_UNSUPPORTED, "\\p, \\P and \\C are not supported");
    if (!c || (c < 128 && ((c >= '1' && c <= '9') || (name >= 'a' && name <= 'z'))))
        fail(p, UIR_STATUS_BAD_FILE, "unknown escape");
    return true;
}

static uir_regex_node *parse_set(parser *p) {
    uir_regex_node *made = new_set(p);
    uir_regex_set *s = made->set;
    s->negated = accept(p, '^');
    for (bool first = true; more(p) && (first || p->pattern[p->at] != ']'); first = false) {
        bool negated = accept_text(p, "[:^");
        if (negated || accept_text(p, "[:")) {
            const char *name = p->pattern + p->at, *end = memchr(name, ':', p->length - p->at);
            if (!end || !add_class(p, s, name, (size_t)(end - name), negated))
                fail(p, UIR_STATUS_BAD_FILE, "unknown class of characters");
            else
                p->at += (size_t)(end - name) + 1;
            if (!accept(p, ']')) fail(p, UIR_STATUS_BAD_FILE, "a class of characters without an end");
            continue;
        }
        uint32_t from = take(p), to;
        if (from == '\\' && !take_escape(p, s, &from)) continue;
        to = from;
        if (p->at + 1 < p->length && p->pattern[p->at] == '-' && p->pattern[p->at + 1] != ']') {
            p->at++;
            to = take(p);
            if (to == '\\' && !take_escape(p, s, &to)) fail(p, UIR_STATUS_BAD_FILE, "a range ends in a class");
        }
        if (to < from) fail(p, UIR_STATUS_BAD_FILE, "a range that ends before it begins");
        add_range(p, s, from, to);
    }
    if (!accept(p, ']')) fail(p, UIR_STATUS_BAD_FILE, "a set of characters without an end");
    return made;
}

static uir_regex_node *parse_choice(parser *p);

/* After "(?": flags, for the rest of the group or for a group of their own. */
static bool parse_flags(parser *p) {
    bool on = true;
    while (more(p)) {
        char c = p->pattern[p->at++];
        if (c == ':') return true;
        if (c == ')') return false;
        if (c == '-' && on)
            on = false;
        else if (c == 'i')
            p->fold = on;
        else if (c == 's')
            p->dot_newline = on;
        else if (c == 'm')
            p->multiline = on;
        else if (c != 'U')
            break;
    }
    fail(p, UIR_STATUS_BAD_FILE, "no flag or name follows (?");
    return true;
}

static uir_regex_node *parse_group(parser *p) {
    bool fold = p->fold, dot_newline = p->dot_newline, multiline = p->multiline;
    if (accept_text(p, "?P<") || accept_text(p, "?<")) {
        if (more(p) && (p->pattern[p->at] == '=' || p->pattern[p->at] == '!'))
            fail(p, UIR_STATUS_BAD_FILE, "lookbehind is not supported");
        while (more(p) && p->pattern[p->at] != '>') p->at++;
        if (!accept(p, '>')) fail(p, UIR_STATUS_BAD_FILE, "a name without an end");
    } else if (accept(p, '?')) {
        if (!parse_flags(p)) return new_node(p, UIR_REGEX_EMPTY); /* which stay on */
    }
    if (++p->depth > MOST_DEPTH) fail(p, UIR_STATUS_LIMIT, "groups are nested too deep");
    uir_regex_node *inside = parse_choice(p);
    p->depth--;
    if (!accept(p, ')')) fail(p, UIR_STATUS_BAD_FILE, "a group without an end");
    p->fold = fold;
    p->dot_newline = dot_newline;
    p->multiline = multiline;
    return inside;
}

static uir_regex_node *parse_atom(parser *p) {
    uint32_t c = take(p);
    if (c == '(') return parse_group(p);
    if (c == '[') return parse_set(p);
    if (c == '^') return new_node(p, p->multiline ? UIR_REGEX_LINE_BEGIN : UIR_REGEX_TEXT_BEGIN);
    if (c == '$') return new_node(p, p->multiline ? UIR_REGEX_LINE_END : UIR_REGEX_TEXT_END);
    if (c == '*' || c == '+' || c == '?') fail(p, UIR_STATUS_BAD_FILE, "nothing to repeat");
    if (c == '\\') {
        if (accept(p, 'b')) return new_node(p, UIR_REGEX_WORD_EDGE);
        if (accept(p, 'B')) return new_node(p, UIR_REGEX_NO_WORD_EDGE);
        if (accept(p, 'A')) return new_node(p, UIR_REGEX_TEXT_BEGIN);
        if (accept(p, 'z')) return new_node(p, UIR_REGEX_TEXT_END);
    }
    uir_regex_node *made = new_set(p);
    if (c == '.') {
        made->set->negated = true;
        if (!p->dot_newline) add_range(p, made->set, '\n', '\n');
    } else if (c != '\\' || take_escape(p, made->set, &c)) {
        add_range(p, made->set, c, c);
    }
    return made;
}

static int take_number(parser *p) {
    int value = 0;
    size_t begin = p->at;
    while (more(p) && p->pattern[p->at] >= '0' && p->pattern[p->at] <= '9' && value <= MOST_REPEATS)
        value = value * 10 + p->pattern[p->at++] - '0';
    return p->at == begin ? -1 : value;
}

/* "{2}", "{2,}", "{2,3}"; anything else is a brace. */
static bool take_counts(parser *p, int *out_min, int *out_max) {
    size_t begin = p->at;
    if (!accept(p, '{')) return false;
    *out_min = *out_max = take_number(p);
    if (*out_min >= 0 && accept(p, ',')) *out_max = take_number(p);
    if (*out_min < 0 || !accept(p, '}')) {
        p->at = begin;
        return false;
    }
    if (*out_min > MOST_REPEATS || *out_max > MOST_REPEATS || (*out_max >= 0 && *out_max < *out_min))
        fail(p, UIR_STATUS_BAD_FILE, "a count is over 1000 or decreases");
    return true;
}

/* What follows an atom: how often it is there. */
static uir_regex_node *parse_repeat(parser *p, uir_regex_node *what) {
    int min = 0, max = -1;
    size_t begin = p->at;
    bool counted = take_counts(p, &min, &max);
    if (!counted && accept(p, '?'))
        max = 1;
    else if (!counted && accept(p, '+'))
        min = 1;
    else if (!counted && !accept(p, '*'))
        return what;
    accept(p, '?'); /* as few as can be: the same texts match */
    if (more(p) && p->at > begin && memchr("*+?", p->pattern[p->at], 3))
        fail(p, UIR_STATUS_BAD_FILE, "a repetition of a repetition");
    uir_regex_node *made = new_node(p, UIR_REGEX_REPEAT);
    made->child = what;
    made->min = min;
    made->max = max;
    return made;
}

/* Each character stands for itself; what follows the end repeats the last. */
static void parse_quoted(parser *p, uir_regex_node ***tail) {
    uir_regex_node **last = NULL;
    bool ended = false;
    while (more(p) && !(ended = accept_text(p, "\\E"))) {
        uint32_t c = take(p);
        uir_regex_node *made = new_set(p);
        add_range(p, made->set, c, c);
        last = *tail;
        *last = made;
        *tail = &made->next;
    }
    if (!ended || !last) return;
    *last = parse_repeat(p, *last);
    if (p->status == UIR_STATUS_OK) *tail = &(*last)->next;
}

static uir_regex_node *parse_sequence(parser *p) {
    uir_regex_node *made = new_node(p, UIR_REGEX_SEQUENCE), **tail = &made->child;
    while (more(p) && p->pattern[p->at] != '|' && p->pattern[p->at] != ')') {
        if (accept_text(p, "\\Q")) {
            parse_quoted(p, &tail);
            continue;
        }
        *tail = parse_repeat(p, parse_atom(p));
        if (p->status == UIR_STATUS_OK) tail = &(*tail)->next;
    }
    return made;
}

static uir_regex_node *parse_choice(parser *p) {
    uir_regex_node *made = new_node(p, UIR_REGEX_CHOICE), **tail = &made->child;
    do {
        *tail = parse_sequence(p);
        if (p->status == UIR_STATUS_OK) tail = &(*tail)->next;
    } while (accept(p, '|'));
    return made;
}

uir_status uir_regex_parse(uir_arena *arena, const char *pattern, size_t length, const uir_regex_node **out_tree,
                           const char **out_problem, size_t *out_place) {
    parser p = {.arena = arena, .pattern = pattern, .length = length};
    *out_tree = parse_choice(&p);
    if (p.status == UIR_STATUS_OK && p.at < length) fail(&p, UIR_STATUS_BAD_FILE, "a ) without a (");
    *out_problem = p.problem;
    *out_place = p.at;
    return p.status;
}
