/* Regular expressions in RE2's syntax, matched against whole texts in time proportional to pattern times text.
 *
 * In: a pattern. Out: a program that lives in an arena. Unsupported syntax: Unicode classes (\p) and single bytes (\C).
 * Back references and lookaround, which RE2 lacks, are errors as there. */
#ifndef UIR_BASE_REGEX_H
#define UIR_BASE_REGEX_H

#include "base/arena.h"
#include "base/status.h"

typedef struct uir_regex uir_regex;

/* BAD_FILE or UNSUPPORTED, with the problem in *out_problem and its offset in the pattern in *out_place. */
uir_status uir_regex_compile(uir_arena *arena, const char *pattern, size_t length, uir_regex **out_regex,
                             const char **out_problem, size_t *out_place);
/* Whether all of the text matches. The arena keeps the scratch memory. */
uir_status uir_regex_match(const uir_regex *regex, uir_arena *arena, const char *text, size_t length,
                           bool *out_matches);

#endif
