/* Text from a model made safe to show. In: bytes up to a zero. Out: printable UTF-8 in the caller's buffer. */
#ifndef UIR_TOOLS_RUN_PRINTABLE_H
#define UIR_TOOLS_RUN_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Control characters, invalid UTF-8 and what does not fit become \xNN or are cut with "..."; NULL is "". Returns
 * `buffer`. */
const char *printable(const char *text, char *buffer, size_t capacity);

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif
/* "uir-run: error: ..." on standard error, all of it made safe; `hint` is a second line, or NULL. */
void complain(const char *hint, const char *format, ...) PRINTF_LIKE(2, 3);
/* Whether anything was complained of. */
bool has_complained(void);

#endif
