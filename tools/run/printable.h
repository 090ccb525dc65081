/* Text from a model made safe to show. In: bytes up to a zero. Out: printable UTF-8 in the caller's buffer. */
#ifndef UIR_TOOLS_RUN_PRINTABLE_H
#define UIR_TOOLS_RUN_PRINTABLE_H

#include <stddef.h>

/* Control characters, invalid UTF-8 and what does not fit become \xNN or are cut with "..."; NULL is "". Returns
 * `buffer`. */
const char *printable(const char *text, char *buffer, size_t capacity);

#endif
