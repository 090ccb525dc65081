/* Well-formed UTF-8 per RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF; C0 and C1 controls are
 * escaped. */
#include "printable.h"
#include "program.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character at `s` (which ends in a zero), or 0 when it is not shown as it is. */
static size_t character_length(const unsigned char *s) {
    if (s[0] >= 0x20 && s[0] < 0x7f) return 1;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    if (n == 0) return 0;
    uint32_t code = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    return code >= least[n] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

const char *printable(const char *text, char *buffer, size_t capacity) {
    size_t used = 0;
    const unsigned char *s = (const unsigned char *)(text ? text : "");
    while (*s) {
        char piece[5] = {0};
        size_t n = character_length(s);
        if (n) {
            memcpy(piece, s, n);
        } else {
            snprintf(piece, sizeof piece, "\\x%02x", *s);
        }
        size_t m = strlen(piece);
        if (used + m + 4 > capacity) { /* room for "..." and the zero */
            if (used + 4 <= capacity) memcpy(buffer + used, "...", 3), used += 3;
            break;
        }
        memcpy(buffer + used, piece, m);
        used += m;
        s += n ? n : 1;
    }
    buffer[used] = 0;
    return buffer;
}

static char kept_error[4096], kept_hint[4096];

static void keep(const char *error, size_t length, const char *hint) {
    char raw[2048];
    if (*kept_error) return;
    snprintf(raw, sizeof raw, "%.*s", (int)(length < sizeof raw ? length : sizeof raw - 1), error);
    printable(raw, kept_error, sizeof kept_error);
    printable(hint, kept_hint, sizeof kept_hint);
}

const char *first_error(void) {
    return kept_error;
}

const char *first_hint(void) {
    return kept_hint;
}

void keep_error(const char *text) {
    static const char begin[] = "error: ", middle[] = "\n  hint: ";
    const char *hint = strstr(text, middle);
    size_t length = hint ? (size_t)(hint - text) : strlen(text);
    if (!strncmp(text, begin, sizeof begin - 1)) text += sizeof begin - 1, length -= sizeof begin - 1;
    keep(text, length, hint ? hint + sizeof middle - 1 : "");
}

static void say(const char *what, const char *hint, const char *raw) {
    char safe[4096];
    fprintf(stderr, PROGRAM ": %s: %s\n", what, printable(raw, safe, sizeof safe));
    if (hint) fprintf(stderr, "  %s\n", printable(hint, safe, sizeof safe));
}

int print_safely(FILE *stream, const char *format, ...) {
    char raw[2048], safe[4 * sizeof raw + 4];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(raw, sizeof raw, format, arguments) < 0) raw[0] = 0;
    va_end(arguments);
    size_t length = strlen(format), shown = strlen(raw);
    bool ends = length && format[length - 1] == '\n';
    if (ends && shown && raw[shown - 1] == '\n') raw[shown - 1] = 0;
    int printed = fprintf(stream, "%s", printable(raw, safe, sizeof safe));
    if (ends) fputc('\n', stream);
    return printed;
}

void complain(const char *hint, const char *format, ...) {
    char raw[2048];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(raw, sizeof raw, format, arguments) < 0) raw[0] = 0;
    va_end(arguments);
    keep(raw, strlen(raw), hint ? hint : "");
    say("error", hint, raw);
}

void remark(const char *hint, const char *format, ...) {
    char raw[2048];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(raw, sizeof raw, format, arguments) < 0) raw[0] = 0;
    va_end(arguments);
    say("note", hint, raw);
}
