/* The command line of uir-run and related programs. In: argv. Out: a struct with one field per row of the program's
 * options.def. */
#ifndef UIR_TOOLS_RUN_OPTIONS_H
#define UIR_TOOLS_RUN_OPTIONS_H

#include "program.h"
#include "uir/tools.h"
#include <stdio.h>

typedef struct option_list {
    const char **items; /* borrowed from argv */
    size_t count;
} option_list;

#define FIELD_FLAG(name)   bool name;
#define FIELD_ACTION(name) bool name;
#define FIELD_TEXT(name)   const char *name;
#define FIELD_WORD(name)   const char *name; /* "" without a value */
#define FIELD_LIST(name)   option_list name;
#define FIELD_REAL(name)                                                                                               \
    double name;                                                                                                       \
    bool has_##name;
#define FIELD_COUNT(name)                                                                                              \
    int64_t name;                                                                                                      \
    bool has_##name;
#define FIELD_SIZE(name) FIELD_COUNT(name) /* bytes */
typedef struct run_options {
    const char *model;
    uir_limits limits; /* --limit-... */
#define OPTION(long_name, argument, kind, field, help) FIELD_##kind(field)
#include PROGRAM_OPTIONS
#undef OPTION
} run_options;

/* Fills `out_options`. Prints the problem of a wrong command line to standard error and returns INVALID_ARGUMENT. */
uir_status options_parse(int argc, char **argv, run_options *out_options);
void options_free(run_options *options);
/* Prints `text` between the columns `indent` and `width`, starting at the current `column`, and a newline. */
void print_wrapped(FILE *stream, const char *text, int column, int indent, int width);
/* Prints the help, wrapped to `width` columns. */
void options_print_help(FILE *stream, int width);

/* "a=b": the position of the '='; NULL with a message that names the option. */
const char *options_split(const char *option, const char *text);
/* Parse a number that is the whole string; false for any other text. */
bool parse_count(const char *text, int64_t *out_value);
bool parse_real(const char *text, double *out_value);
/* The candidate nearest to `text` if it is near enough to be meant, else NULL. */
const char *nearest(const char *text, const char *(*candidate)(void *user, size_t index), void *user);

#endif
