#include "base/text.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

static const char *const pairs[] = {"->", "==", "!=", "<=", ">=", "..", "::", "&&", "||"};

/* The C library's ctype functions ask the locale. */
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_name(char c) {
    return is_name_start(c) || is_digit(c);
}
static bool is_hexadecimal(char c) {
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static char peek(const uir_tokenizer *tokenizer, const char *at) {
    return at < tokenizer->end ? *at : 0;
}

static void skip_space(uir_tokenizer *t) {
    for (; t->at < t->end; t->at++) {
        if (*t->at == '\n') {
            t->line++;
            t->line_begin = t->at + 1;
        } else if (*t->at == '#') {
            const char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
            t->at = (newline ? newline : t->end) - 1;
        } else if (*t->at != ' ' && *t->at != '\t' && *t->at != '\r') {
            return;
        }
    }
}

static void read_name(uir_tokenizer *t, uir_token *token, uir_token_kind kind) {
    token->kind = kind;
    token->text = t->at;
    while (t->at < t->end && is_name(*t->at)) t->at++;
    token->length = (size_t)(t->at - token->text);
}

/* The end of the number that begins at `at`; says whether it is a real one. "1..4" is 1 and a range. */
static const char *number_end(const uir_tokenizer *t, const char *at, bool *out_real) {
    bool hexadecimal = *at == '0' && (peek(t, at + 1) | 0x20) == 'x' && is_hexadecimal(peek(t, at + 2));
    bool (*digit)(char) = hexadecimal ? is_hexadecimal : is_digit;
    *out_real = false;
    if (hexadecimal) at += 2;
    while (digit(peek(t, at))) at++;
    if (peek(t, at) == '.' && digit(peek(t, at + 1))) {
        *out_real = true;
        at++;
        while (digit(peek(t, at))) at++;
    }
    if ((peek(t, at) | 0x20) == (hexadecimal ? 'p' : 'e')) {
        const char *exponent = at + 1;
        if (peek(t, exponent) == '-' || peek(t, exponent) == '+') exponent++;
        if (is_digit(peek(t, exponent))) {
            *out_real = true;
            for (at = exponent; is_digit(peek(t, at));) at++;
        }
    }
    return at;
}

static bool read_integer(const char *text, size_t length, uint64_t limit, uint64_t *out_value) {
    uint64_t base = 10, value = 0;
    if (length > 2 && (text[1] | 0x20) == 'x') {
        base = 16;
        text += 2;
        length -= 2;
    }
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = is_digit(text[i]) ? (uint64_t)(text[i] - '0') : (uint64_t)((text[i] | 0x20) - 'a' + 10);
        if (value > (limit - digit) / base) return false;
        value = value * base + digit;
    }
    *out_value = value;
    return true;
}

static void read_number(uir_tokenizer *t, uir_token *token) {
    bool real;
    token->text = t->at;
    t->at = number_end(t, t->at, &real);
    token->length = (size_t)(t->at - token->text);
    if (real) {
        token->kind = UIR_TOKEN_REAL;
        uir_double_from_text(token->text, token->length, &token->real);
        return;
    }
    bool negated = t->current.kind == UIR_TOKEN_PUNCTUATION && t->current.text[0] == '-' && t->current.length == 1 &&
                   !token->space_before;
    uint64_t value;
    if (!read_integer(token->text, token->length, (uint64_t)INT64_MAX + negated, &value)) {
        uir_tokenizer_error_at(t, token, "the integer does not fit in 64 bits");
        token->kind = UIR_TOKEN_ERROR;
        return;
    }
    token->kind = UIR_TOKEN_INTEGER;
    token->integer = (int64_t)value;
    token->real = (double)value;
}

static int hexadecimal_value(char c) {
    return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

static uir_status read_string_body(uir_tokenizer *t, uir_token *token) {
    const char *close = t->at + 1;
    while (close < t->end && *close != '"' && *close != '\n') close += *close == '\\' && close + 1 < t->end ? 2 : 1;
    if (close >= t->end || *close != '"') return uir_tokenizer_error_at(t, token, "the string is not closed");
    char *out;
    out = uir_arena_allocate(t->arena, (size_t)(close - t->at));
    if (!out) return UIR_STATUS_OUT_OF_MEMORY;
    token->text = out;
    for (const char *at = t->at + 1; at < close; at++) {
        static const char escapes[] = "\"\"\\\\n\nr\rt\t0\0"; /* pairs: letter, meaning */
        if (*at != '\\') {
            *out++ = *at;
            continue;
        }
        at++;
        size_t i = 0;
        while (i + 1 < sizeof escapes && escapes[i] != *at) i += 2;
        if (i + 1 < sizeof escapes) {
            *out++ = escapes[i + 1];
        } else if (*at == 'x' && is_hexadecimal(at[1]) && is_hexadecimal(at[2])) { /* the closing quote is no digit */
            *out++ = (char)(hexadecimal_value(at[1]) * 16 + hexadecimal_value(at[2]));
            at += 2;
        } else {
            return uir_tokenizer_error_at(t, token,
                                          "the string has an escape other than \\\" \\\\ \\n \\r \\t \\0 \\xNN");
        }
    }
    token->length = (size_t)(out - token->text);
    t->at = close + 1;
    return UIR_STATUS_OK;
}

static void read_string(uir_tokenizer *t, uir_token *token) {
    token->kind = UIR_TOKEN_STRING;
    token->text = t->at;
    token->length = 1;
    uir_status status = read_string_body(t, token);
    if (status == UIR_STATUS_OK) return;
    if (status == UIR_STATUS_OUT_OF_MEMORY) uir_error(t->diagnostics, status, NULL, "out of memory");
    token->kind = UIR_TOKEN_ERROR;
    const char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
    t->at = newline ? newline : t->end;
}

static void read_punctuation(uir_tokenizer *t, uir_token *token) {
    token->kind = UIR_TOKEN_PUNCTUATION;
    token->text = t->at;
    token->length = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (t->end - t->at >= 2 && memcmp(t->at, pairs[i], 2) == 0) token->length = 2;
    unsigned char byte = (unsigned char)*t->at;
    t->at += token->length;
    if (byte < 0x20 || byte >= 0x7f) {
        uir_tokenizer_error_at(t, token, "byte 0x%02x is not allowed here", byte);
        token->kind = UIR_TOKEN_ERROR;
    }
}

void uir_tokenizer_advance(uir_tokenizer *t) {
    const char *before = t->at;
    skip_space(t);
    uir_token token = {.text = t->at, .line = t->line, .column = (uint32_t)(t->at - t->line_begin) + 1};
    token.space_before = t->at != before || t->at == t->begin;
    char c = peek(t, t->at), next = peek(t, t->at + 1);
    if (t->at == t->end) {
        token.kind = UIR_TOKEN_END;
    } else if (is_name_start(c)) {
        read_name(t, &token, UIR_TOKEN_NAME);
    } else if ((c == '%' || c == '@') && is_name(next)) {
        t->at++;
        read_name(t, &token, c == '%' ? UIR_TOKEN_PERCENT : UIR_TOKEN_AT);
    } else if (is_digit(c)) {
        read_number(t, &token);
    } else if (c == '"') {
        read_string(t, &token);
    } else {
        read_punctuation(t, &token);
    }
    t->previous = t->current;
    t->current = token;
}

void uir_tokenizer_init(uir_tokenizer *tokenizer, const char *text, size_t length, const char *file, uir_arena *arena,
                        uir_diagnostics *diagnostics) {
    uir_tokenizer_init_part(tokenizer, text, length, 1, file, arena, diagnostics);
}

void uir_tokenizer_init_part(uir_tokenizer *tokenizer, const char *text, size_t length, uint32_t line, const char *file,
                             uir_arena *arena, uir_diagnostics *diagnostics) {
    *tokenizer = (uir_tokenizer){.begin = text,
                                 .end = text + length,
                                 .at = text,
                                 .first_line = line,
                                 .line = line,
                                 .line_begin = text,
                                 .arena = arena,
                                 .diagnostics = diagnostics,
                                 .file = file};
    uir_tokenizer_advance(tokenizer);
}

bool uir_tokenizer_is(const uir_tokenizer *tokenizer, const char *text) {
    const uir_token *token = &tokenizer->current;
    return (token->kind == UIR_TOKEN_NAME || token->kind == UIR_TOKEN_PUNCTUATION) && strlen(text) == token->length &&
           memcmp(text, token->text, token->length) == 0;
}

bool uir_tokenizer_accept(uir_tokenizer *tokenizer, const char *text) {
    if (!uir_tokenizer_is(tokenizer, text)) return false;
    uir_tokenizer_advance(tokenizer);
    return true;
}

/* "expected X, found Y". */
static uir_status report_found(uir_tokenizer *tokenizer, const char *expected) {
    const uir_token *token = &tokenizer->current;
    int length = token->length > 40 ? 40 : (int)token->length;
    if (token->kind == UIR_TOKEN_END) return uir_tokenizer_error(tokenizer, "expected %s, found the end", expected);
    if (token->kind == UIR_TOKEN_STRING) return uir_tokenizer_error(tokenizer, "expected %s, found a string", expected);
    const char *prefix = token->kind == UIR_TOKEN_PERCENT ? "%" : token->kind == UIR_TOKEN_AT ? "@" : "";
    return uir_tokenizer_error(tokenizer, "expected %s, found '%s%.*s'", expected, prefix, length, token->text);
}

uir_status uir_tokenizer_expect(uir_tokenizer *tokenizer, const char *text) {
    if (uir_tokenizer_accept(tokenizer, text)) return UIR_STATUS_OK;
    char expected[64];
    snprintf(expected, sizeof expected, "'%s'", text);
    return report_found(tokenizer, expected);
}

uir_status uir_tokenizer_expect_integer(uir_tokenizer *tokenizer, int64_t *out_value) {
    bool negative = uir_tokenizer_accept(tokenizer, "-");
    if (tokenizer->current.kind != UIR_TOKEN_INTEGER) return report_found(tokenizer, "an integer");
    uint64_t value = (uint64_t)tokenizer->current.integer;
    *out_value = (int64_t)(negative ? 0 - value : value);
    uir_tokenizer_advance(tokenizer);
    return UIR_STATUS_OK;
}

uir_status uir_tokenizer_expect_double(uir_tokenizer *tokenizer, double *out_value) {
    bool negative = uir_tokenizer_accept(tokenizer, "-");
    const uir_token *token = &tokenizer->current;
    bool number = token->kind == UIR_TOKEN_INTEGER || token->kind == UIR_TOKEN_REAL;
    if (!number && !uir_tokenizer_is(tokenizer, "inf") && !uir_tokenizer_is(tokenizer, "nan"))
        return report_found(tokenizer, "a number");
    double value = token->real;
    if (!number) uir_double_from_text(token->text, token->length, &value);
    *out_value = negative ? -value : value;
    uir_tokenizer_advance(tokenizer);
    return UIR_STATUS_OK;
}

uir_status uir_tokenizer_expect_name(uir_tokenizer *tokenizer, const char *what, const char **out_name) {
    if (tokenizer->current.kind != UIR_TOKEN_NAME) return report_found(tokenizer, what);
    UIR_TRY_ALLOCATE(*out_name,
                     uir_arena_copy_string(tokenizer->arena, tokenizer->current.text, tokenizer->current.length));
    uir_tokenizer_advance(tokenizer);
    return UIR_STATUS_OK;
}

static uir_status report(uir_tokenizer *t, const uir_token *token, const char *format, va_list arguments) {
    if (token->kind == UIR_TOKEN_ERROR) return UIR_STATUS_BAD_FILE;
    char message[512], line_text[256];
    vsnprintf(message, sizeof message, format, arguments);

    /* The token's line: nearly always the current one; a token kept for later needs a search. */
    const char *begin = t->line_begin, *end;
    if (token->line != t->line) {
        begin = t->begin;
        for (uint32_t line = t->first_line; line < token->line && begin < t->end; line++) {
            const char *newline = memchr(begin, '\n', (size_t)(t->end - begin));
            begin = newline ? newline + 1 : t->end;
        }
    }
    end = begin < t->end ? memchr(begin, '\n', (size_t)(t->end - begin)) : NULL;
    if (!end) end = t->end;
    /* Of a very long line the part around the column. */
    size_t skipped = 0, column = token->column ? token->column - 1 : 0;
    if (column >= sizeof line_text / 2) skipped = column - sizeof line_text / 2;
    if (skipped > (size_t)(end - begin)) skipped = (size_t)(end - begin);
    size_t length = (size_t)(end - begin) - skipped;
    if (length >= sizeof line_text) length = sizeof line_text - 1;
    memcpy(line_text, begin + skipped, length);
    for (size_t i = 0; i < length; i++)
        if (line_text[i] == 0) line_text[i] = ' ';
    line_text[length] = 0;

    uir_location location = {.file = t->file, .line = token->line, .column = token->column, .line_text = line_text};
    location.line_text_skipped = (uint32_t)skipped;
    return uir_error(t->diagnostics, UIR_STATUS_BAD_FILE, &location, "%s", message);
}

uir_status uir_tokenizer_error(uir_tokenizer *tokenizer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    uir_status status = report(tokenizer, &tokenizer->current, format, arguments);
    va_end(arguments);
    return status;
}

uir_status uir_tokenizer_error_at(uir_tokenizer *tokenizer, const uir_token *token, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    uir_status status = report(tokenizer, token, format, arguments);
    va_end(arguments);
    return status;
}
