/* Shared parts of emitters: an iGraph's names, expressions and conditions as C.
 *
 * In: a kernel and the names of its symbols. Out: strings, which live as long as the writer's arena, and lines. Out of
 * memory, strings are "0" and `failed` is set. The text may call uir_floordiv, uir_ceildiv, uir_mod (of a divisor of at
 * least 1), uir_min and uir_max of int64_t, and uses UIR_LET for an unused or used `const int64_t`: its prelude defines
 * these. */
#ifndef UIR_BACKENDS_SOURCE_SOURCE_H
#define UIR_BACKENDS_SOURCE_SOURCE_H

#include "ir/kernel/igraph.h"

typedef struct uir_c_writer {
    const uir_igraph *igraph;
    uir_text *text;
    uir_arena arena;
    const char **symbols; /* C expression of each symbol */
    bool *may_miss;       /* per INDEX symbol: slices through it may be outside; then <symbol>_ok is declared */
    int indent;
    bool failed; /* out of memory */
} uir_c_writer;

/* Names all symbols of the writer's kernel: sizes n_NAME, indices i_NAME. */
uir_status uir_c_begin(uir_c_writer *w);

const char *uir_c_format(uir_c_writer *w, const char *format, ...) UIR_PRINTF(2, 3);
void uir_c_line(uir_c_writer *w, const char *format, ...) UIR_PRINTF(2, 3);
void uir_c_open(uir_c_writer *w, const char *format, ...) UIR_PRINTF(2, 3); /* "... {", indents */
void uir_c_close(uir_c_writer *w);
/* Names come from untrusted files: only [A-Za-z0-9_] are kept, after the prefix and '_'. If other letters were dropped,
 * `id` makes the name unique for its prefix. */
const char *uir_c_name(uir_c_writer *w, const char *prefix, const char *name, size_t id);
const char *uir_c_dim(uir_c_writer *w, uir_dim dim);
const char *uir_c_sum(uir_c_writer *w, const char *a, const char *b);
const char *uir_c_product(uir_c_writer *w, const char *a, const char *b);
/* The digits of a number by a size: "(a) / (b)", "(a) % (b)"; of "0" they are "0". */
const char *uir_c_quotient(uir_c_writer *w, const char *a, const char *b);
const char *uir_c_remainder(uir_c_writer *w, const char *a, const char *b);
/* "(a)", or "0". */
const char *uir_c_parenthesised(uir_c_writer *w, const char *a);
/* NULL without a condition. Loops whose ends it names have their trip count in SYMBOL_trips. */
const char *uir_c_condition(uir_c_writer *w, const uir_iguard *guard);
bool uir_c_dim_is(uir_c_writer *w, uir_dim dim, int64_t value);
bool uir_c_dim_at_least(uir_c_writer *w, uir_dim dim, int64_t value);
bool uir_c_dim_multiple_of(uir_c_writer *w, uir_dim dim, int64_t divisor);
/* Declares dims, tiles (the elements of `array` in this order), constants and named values of the header, as
 * UIR_LET. */
void uir_c_sizes(uir_c_writer *w, const char *array);
/* Declares an index read by the expression `read`: clamped, wrapped, or with a flag that slices through it are
 * outside. */
void uir_c_index(uir_c_writer *w, const uir_iitem *item, const char *read);
/* The condition that no index puts the slice outside; NULL: none can. */
const char *uir_c_missing(uir_c_writer *w, const uir_islice *slice);
/* Whether a symbol is a named value of the header. */
bool uir_c_is_header_let(const uir_igraph *igraph, uint32_t symbol);
/* choose.c: emits the tiling function, `int NAME(const int64_t *sizes, int64_t workers, int64_t *tiles)`: computes
 * tiles from dims; 0 if the kernel does not support them. Also calls uir_shared_cost; divisions set uir_undefined if
 * the divisor is below 1. */
void uir_c_choose(uir_c_writer *w, const char *name);
/* An integer, in parentheses if negative. */
const char *uir_c_integer(uir_c_writer *w, int64_t value);
/* A float's value in C, with math.h. */
const char *uir_c_real(uir_c_writer *w, double value);
/* Name of a kernel's function: kINDEX_NAME, of letters, digits and '_'. */
#define UIR_C_SYMBOL_SIZE 80
void uir_c_symbol(const uir_igraph *igraph, uint32_t index, char out[UIR_C_SYMBOL_SIZE]);

/* ---- tree.c ---- */
/* Items printed by the emitter itself: an instruction, and a symbol read from data (by uir_c_index). */
typedef struct uir_c_leaves {
    void *user;
    void (*instruction)(void *user, const uir_iinstruction *in);
    void (*index)(void *user, const uir_iitem *item);
    bool (*run)(void *user, const uir_iitem *run);     /* false: it is not printed as a whole; NULL: none is */
    void (*end_if)(void *user, const uir_iitem *item); /* behind all that an item's condition decides; may be NULL */
} uir_c_leaves;
/* Emits the items from `first` on, with their children. A run that is not printed as a whole is emitted as its
 * instructions. */
void uir_c_items(uir_c_writer *w, uint32_t first, const uir_c_leaves *leaves);
/* Number of groups of a phase, or of units per group. */
const char *uir_c_count(uir_c_writer *w, const uir_iphase *phase, bool groups);
/* Declares the parallel axes, from the number of the group and that of the unit in its group. */
void uir_c_parallel(uir_c_writer *w, const uir_iphase *phase, const char *group, const char *unit);

/* ---- view.c ---- */
/* A dim of a slice: index i = i0 + size0*(i1 + size1*(i2 + ...)) has the address offset i0*stride0 + i1*stride1 + ...;
 * the last mode's size is unused. Indices below `from` and from `until` on are outside; without `from` none is. */
typedef struct uir_c_view_dim {
    uir_dim count, from, until;
    uint32_t mode_count;
    uir_mode modes[UIR_IGRAPH_MAX_RANK];
} uir_c_view_dim;
typedef struct uir_c_view {
    uir_dim first; /* address of the element at 0, 0, ..., in elements */
    uint32_t rank;
    uir_c_view_dim dims[UIR_IGRAPH_MAX_RANK];
} uir_c_view;
/* Strides of a slice's elements in its pointer; `inside`: all are proved to be in its extents. False if strides cannot
 * describe them. */
bool uir_c_view_find(uir_c_writer *w, const uir_islice *slice, bool inside, uir_c_view *out);
/* Emits lines that fill the list NAME with the elements' addresses, row-major, OUTSIDE for elements outside. They call
 * make_list(COUNT) for its memory, and SWIZZLE(ADDRESS, BITS, BASE, SHIFT). */
void uir_c_list(uir_c_writer *w, const uir_islice *slice, bool inside, const char *name);

#endif
