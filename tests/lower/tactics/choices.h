/* The cases of choices.txt: sizes, constants and a graph, or a function of loops. */
#ifndef UIR_TESTS_LOWER_CHOICES_H
#define UIR_TESTS_LOWER_CHOICES_H

#include "tests/base/golden.h"

#include <stdio.h>
#include <string.h>

#define CHOICES "tests/lower/tactics/choices.txt"

static inline bool choice_is_function(const char *input) {
    return !strncmp(input, "func ", 5);
}

/* What stands before the line that begins with "(" are lines of the module, the rest is its graph. */
static inline void choice_write_module(const char *input, char *out, size_t capacity) {
    const char *graph = input;
    while (*graph && *graph != '(') graph = strchr(graph, '\n') + 1;
    snprintf(out, capacity, "module opset 20\n%.*sgraph \"g\" %s", (int)(graph - input), input, graph);
}

#endif
