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

static bool complaint_made;

void complain(const char *hint, const char *format, ...) {
    char raw[2048], safe[4096];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(raw, sizeof raw, format, arguments) < 0) raw[0] = 0;
    va_end(arguments);
    fprintf(stderr, PROGRAM ": error: %s\n", printable(raw, safe, sizeof safe));
    if (hint) fprintf(stderr, "  %s\n", printable(hint, safe, sizeof safe));
    complaint_made = true;
}

bool has_complained(void) {
    return complaint_made;
}
