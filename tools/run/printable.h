/* Escapes text from a model, so that printing it is safe; prints messages with such text. In: bytes up to a zero. Out:
 * printable UTF-8 in the caller's buffer. */
#ifndef UIR_TOOLS_RUN_PRINTABLE_H
#define UIR_TOOLS_RUN_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Control characters and invalid UTF-8 become \xNN; text that is too long is cut with "..."; NULL is "". Returns
 * `buffer`. */
const char *printable(const char *text, char *buffer, size_t capacity);

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif
/* Prints formatted text, escaped except for a newline at the end of the format. Returns the number of bytes without
 * that newline. */
int print_safely(FILE *stream, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints "uir-run: error: ..." on standard error, escaped; `hint` is a second line, or NULL. */
void complain(const char *hint, const char *format, ...) PRINTF_LIKE(2, 3);
/* The same with "uir-run: note: ...", for a fact that is not an error. */
void remark(const char *hint, const char *format, ...) PRINTF_LIKE(2, 3);
/* The first error of complain or keep_error, and its hint, for JSON: escaped, without the program's name; "" if
 * none. */
const char *first_error(void);
const char *first_hint(void);
/* Records a message of the library, "error: what\n  hint: what to do", as an error. */
void keep_error(const char *text);

#endif
