/* Regular expressions in RE2's syntax, matched against whole texts in time proportional to pattern times text.
 *
 * In: a pattern. Out: a program that lives in an arena. Left out of the syntax: Unicode classes (\p) and single bytes
 * (\C); what RE2 itself has not (references back, looking around) is an error as there. */
#ifndef UIR_BASE_REGEX_H
#define UIR_BASE_REGEX_H

#include "base/arena.h"
#include "base/status.h"

typedef struct uir_regex uir_regex;

/* BAD_FILE or UNSUPPORTED with *out_problem saying what, and *out_place where in the pattern. */
uir_status uir_regex_compile(uir_arena *arena, const char *pattern, size_t length, uir_regex **out_regex,
                             const char **out_problem, size_t *out_place);
/* Whether all of the text matches. The scratch memory is `arena`'s, and stays there. */
uir_status uir_regex_match(const uir_regex *regex, uir_arena *arena, const char *text, size_t length,
                           bool *out_matches);

#endif
