/* The syntax tree of a pattern: regex_parse.c makes it, regex.c compiles it to a program. */
#ifndef UIR_BASE_REGEX_INTERNAL_H
#define UIR_BASE_REGEX_INTERNAL_H

#include "base/regex.h"
#include "base/vector.h"

typedef struct uir_regex_range {
    uint32_t first, last;
} uir_regex_range;

typedef struct uir_regex_set {
    uir_vector(uir_regex_range) ranges;
    bool negated, fold; /* fold: either case */
} uir_regex_set;

typedef enum uir_regex_kind {
    UIR_REGEX_EMPTY,
    UIR_REGEX_SET,
    UIR_REGEX_TEXT_BEGIN,
    UIR_REGEX_TEXT_END,
    UIR_REGEX_LINE_BEGIN,
    UIR_REGEX_LINE_END,
    UIR_REGEX_WORD_EDGE,
    UIR_REGEX_NO_WORD_EDGE,
    UIR_REGEX_SEQUENCE,
    UIR_REGEX_CHOICE,
    UIR_REGEX_REPEAT
} uir_regex_kind;

typedef struct uir_regex_node {
    uir_regex_kind kind;
    struct uir_regex_node *child, *next; /* children are a list */
    uir_regex_set *set;
    int min, max; /* max -1: unbounded */
} uir_regex_node;

/* The tree of a whole pattern; see uir_regex_compile. */
uir_status uir_regex_parse(uir_arena *arena, const char *pattern, size_t length, const uir_regex_node **out_tree,
                           const char **out_problem, size_t *out_place);

#endif
