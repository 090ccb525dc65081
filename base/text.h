/* Text: a growing buffer to print into, and the tokenizer of all textual IRs.
 *
 * After an allocation failure the buffer appends nothing more, and uir_text_status returns the error. The tokenizer
 * reads names, numbers, punctuation and quoted strings with line and column. Its input is length-delimited; embedded
 * zeros are rejected as characters. */
#ifndef UIR_BASE_TEXT_H
#define UIR_BASE_TEXT_H

#include "base/status.h"

typedef struct uir_text {
    uir_allocator allocator;
    char *data; /* zero terminated when not NULL */
    size_t length, capacity;
    bool failed; /* an allocation failed; text is incomplete */
} uir_text;

void uir_text_init(uir_text *text, const uir_allocator *allocator);
void uir_text_deinit(uir_text *text);
void uir_text_append(uir_text *text, const char *data, size_t length);
void uir_text_append_string(uir_text *text, const char *string);
/* Appends `fill` until length + `more` is a multiple of `unit`. */
void uir_text_append_until(uir_text *text, size_t more, size_t unit, char fill);
/* For integers and strings; the functions below print floating point, independent of the locale. */
void uir_text_append_format(uir_text *text, const char *format, ...) UIR_PRINTF(2, 3);
/* Appends "..." with \" \\ \n \r \t escaped and every byte outside printable ASCII as \xNN; the tokenizer reads it
 * back. */
void uir_text_append_quoted(uir_text *text, const char *data, size_t length);
/* Shortest decimal (or inf, -inf, nan) that reads back to the same double. Locale-free. */
void uir_text_append_double(uir_text *text, double value);
/* Shortest decimal that reads back to the same float. */
void uir_text_append_float(uir_text *text, float value);
uir_status uir_text_status(const uir_text *text);

typedef enum uir_token_kind {
    UIR_TOKEN_END,
    UIR_TOKEN_NAME,        /* [A-Za-z_][A-Za-z0-9_]* */
    UIR_TOKEN_PERCENT,     /* %name or %12; text excludes the % */
    UIR_TOKEN_AT,          /* @name or @12; text excludes the @ */
    UIR_TOKEN_INTEGER,     /* digits; `integer` holds the value. 2^63 is read only right after a '-', as INT64_MIN */
    UIR_TOKEN_REAL,        /* 1.5, 1e-3, 0x1.8p3; `real` holds the value */
    UIR_TOKEN_STRING,      /* "..." unescaped into the arena; may hold zeros */
    UIR_TOKEN_PUNCTUATION, /* one of the pairs named below, or a single character */
    UIR_TOKEN_ERROR        /* already reported */
} uir_token_kind;

typedef struct uir_token {
    uir_token_kind kind;
    const char *text; /* not zero terminated unless STRING */
    size_t length;
    int64_t integer;
    double real;
    uint32_t line, column;
    bool space_before; /* white space or start of line preceded it */
} uir_token;

typedef struct uir_tokenizer {
    const char *begin, *end, *at;
    uint32_t first_line, line;
    const char *line_begin;
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    const char *file;
    uir_token current; /* the token not yet consumed */
    uir_token previous;
} uir_tokenizer;

/* Reads the first token. Comments run from '#' to the end of the line. Punctuation of two characters: -> == != <= >= ..
 * :: && || */
void uir_tokenizer_init(uir_tokenizer *tokenizer, const char *text, size_t length, const char *file, uir_arena *arena,
                        uir_diagnostics *diagnostics);
/* The same for a part of a file that begins at its line `line`. */
void uir_tokenizer_init_part(uir_tokenizer *tokenizer, const char *text, size_t length, uint32_t line, const char *file,
                             uir_arena *arena, uir_diagnostics *diagnostics);
void uir_tokenizer_advance(uir_tokenizer *tokenizer);
/* Whether the current token is this punctuation or keyword. */
bool uir_tokenizer_is(const uir_tokenizer *tokenizer, const char *text);
/* Consumes it if it is. */
bool uir_tokenizer_accept(uir_tokenizer *tokenizer, const char *text);
/* Consumes it or reports "expected X, found Y". */
uir_status uir_tokenizer_expect(uir_tokenizer *tokenizer, const char *text);
/* Consumes an optional '-' and an INTEGER, INT64_MIN included; reports what it found otherwise. */
uir_status uir_tokenizer_expect_integer(uir_tokenizer *tokenizer, int64_t *out_value);
/* Consumes an optional '-' and an INTEGER, REAL, `inf` or `nan`: all that uir_text_append_double prints. */
uir_status uir_tokenizer_expect_double(uir_tokenizer *tokenizer, double *out_value);
/* Consumes a NAME and copies it, zero terminated, into the arena; `what` names it in the message. */
uir_status uir_tokenizer_expect_name(uir_tokenizer *tokenizer, const char *what, const char **out_name);
/* Reports UIR_STATUS_BAD_FILE at the current token, with the source line for the caret. For an ERROR token, reported
 * already, it only returns the status. */
uir_status uir_tokenizer_error(uir_tokenizer *tokenizer, const char *format, ...) UIR_PRINTF(2, 3);
uir_status uir_tokenizer_error_at(uir_tokenizer *tokenizer, const uir_token *token, const char *format, ...)
    UIR_PRINTF(3, 4);

#endif
