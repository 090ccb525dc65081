/* What emitters have in common: an iGraph's names, expressions and conditions in the words of C.
 *
 * In: a kernel and what its symbols are called. Out: strings, which live as long as the writer's arena, and lines.
 * Where memory runs out a string is "0" and `failed` is set. The text may call uir_floordiv, uir_ceildiv, uir_mod (of
 * a divisor of at least 1), uir_min and uir_max of int64_t: what includes it has them. */
#ifndef UIR_BACKENDS_SOURCE_SOURCE_H
#define UIR_BACKENDS_SOURCE_SOURCE_H

#include "ir/igraph.h"

typedef struct uir_c_writer {
    const uir_igraph *igraph;
    uir_text *text;
    uir_arena arena;
    const char **symbols; /* C expression of each symbol */
    int indent;
    bool failed; /* memory ran out */
} uir_c_writer;

const char *uir_c_format(uir_c_writer *w, const char *format, ...) UIR_PRINTF(2, 3);
void uir_c_line(uir_c_writer *w, const char *format, ...) UIR_PRINTF(2, 3);
void uir_c_open(uir_c_writer *w, const char *format, ...) UIR_PRINTF(2, 3); /* "... {", one step in */
void uir_c_close(uir_c_writer *w);
/* Names come from hostile files: only [A-Za-z0-9_] pass, behind the prefix and '_'; `id` makes one that had other
 * letters another one than every other of this prefix. */
const char *uir_c_name(uir_c_writer *w, const char *prefix, const char *name, size_t id);
const char *uir_c_dim(uir_c_writer *w, uir_dim dim);
const char *uir_c_sum(uir_c_writer *w, const char *a, const char *b);
const char *uir_c_product(uir_c_writer *w, const char *a, const char *b);
/* The loops whose ends it names have their number of turns in SYMBOL_trips. NULL when there is none. */
const char *uir_c_condition(uir_c_writer *w, const uir_iguard *guard);
bool uir_c_dim_is(uir_c_writer *w, uir_dim dim, int64_t value);
bool uir_c_dim_at_least(uir_c_writer *w, uir_dim dim, int64_t value);
bool uir_c_dim_multiple_of(uir_c_writer *w, uir_dim dim, int64_t divisor);
/* An integer, in parentheses where it has a sign. */
const char *uir_c_integer(uir_c_writer *w, int64_t value);

#endif
