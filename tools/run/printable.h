/* Text from a model made safe to show. In: bytes up to a zero. Out: printable UTF-8 in the caller's buffer. */
#ifndef UIR_TOOLS_RUN_PRINTABLE_H
#define UIR_TOOLS_RUN_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Control characters, invalid UTF-8 and what does not fit become \xNN or are cut with "..."; NULL is "". Returns
 * `buffer`. */
const char *printable(const char *text, char *buffer, size_t capacity);

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif
/* Prints what the format makes with all of it made safe but the line's end that closes the format. Returns how many
 * bytes that were, without the line's end. */
int print_safely(FILE *stream, const char *format, ...) PRINTF_LIKE(2, 3);
/* "uir-run: error: ..." on standard error, all of it made safe; `hint` is a second line, or NULL. */
void complain(const char *hint, const char *format, ...) PRINTF_LIKE(2, 3);
/* "uir-run: note: ...", likewise, of what is no error by itself. */
void remark(const char *hint, const char *format, ...) PRINTF_LIKE(2, 3);
/* The first error that was told, by complain or keep_error, as a reader of JSON wants it: made safe, without the name of
 * the program; "" where none was. */
const char *first_error(void);
const char *first_hint(void);
/* Tells them of a message of the library, "error: what\n  hint: what to do". */
void keep_error(const char *text);

#endif
