/* What generate.c and generate_shapes.c share. */
#ifndef UIR_TESTS_IGRAPH_GENERATE_INTERNAL_H
#define UIR_TESTS_IGRAPH_GENERATE_INTERNAL_H

#include "generate.h"

#include <stdio.h>
#include <string.h>

typedef struct generator {
    uint64_t random;
    uir_text *text;
} generator;

#define PUT(g, ...) uir_text_append_format((g)->text, __VA_ARGS__)
#define PICK(g, ...)                                                                                                   \
    pick((g), (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static inline uint32_t below(generator *g, uint32_t count) {
    return random_below(&g->random, count);
}
static inline bool chance(generator *g, uint32_t percent) {
    return below(g, 100) < percent;
}
static inline const char *pick(generator *g, const char *const *words, size_t count) {
    return words[below(g, (uint32_t)count)];
}

/* Each appends the body of a kernel, the text between its braces. */
void generate_product(generator *g);
void generate_window(generator *g);
void generate_gather(generator *g);
void generate_transpose(generator *g);
void generate_columns(generator *g);
void generate_two_phases(generator *g);
void generate_layout(generator *g);
void generate_nested(generator *g);
void generate_scalar(generator *g);
void generate_shift(generator *g);
void generate_stencil(generator *g);
void generate_broadcast(generator *g);
void generate_running(generator *g);
void generate_in_place(generator *g); /* may draw slices that overlap */

#endif
