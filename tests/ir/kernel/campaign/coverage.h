/* Which instructions, dtypes and ways of writing slices a campaign's kernels contained.
 *
 * In: verified kernels. Out: a table, and the list of what the device allows and no kernel had. Plain numbers, so that
 * processes can share one and sums are sums of the fields. */
#ifndef UIR_TESTS_IGRAPH_COVERAGE_H
#define UIR_TESTS_IGRAPH_COVERAGE_H

#include "ir/kernel/igraph.h"

enum { COVERAGE_DTYPES = 32 };

/* Features that are no instructions: COVERAGE_FEATURE(constant, words). */
#define COVERAGE_FEATURES(F)                                                                                           \
    F(WINDOW, "window slice")                                                                                          \
    F(BOX_FILL, "box with fill")                                                                                       \
    F(WINDOW_FILL, "window with fill")                                                                                 \
    F(NEGATIVE, "coordinate that may be negative")                                                                     \
    F(BLOCK, "block operand")                                                                                          \
    F(STREAM, "stream")                                                                                                \
    F(IMMEDIATE, "number as operand")                                                                                  \
    F(ACCUMULATE, "reduction with acc")                                                                                \
    F(EXCLUSIVE, "exclusive scan")                                                                                     \
    F(SATURATE, "saturating cast")                                                                                     \
    F(INSTANCES, "buffer xN by loop")                                                                                  \
    F(SPLIT_MODES, "layout with split modes")                                                                          \
    F(STRIDES, "layout that is not row-major")                                                                         \
    F(PLACES, "buffer over another")                                                                                   \
    F(TIED, "tied output")                                                                                             \
    F(WORK, "work pointer")                                                                                            \
    F(RANK_0, "pointer of rank 0")                                                                                     \
    F(RANK_1, "pointer of rank 1")                                                                                     \
    F(RANK_3, "pointer of rank 3")                                                                                     \
    F(RANK_4, "pointer of rank 4 or more")                                                                             \
    F(OUTPUTS, "several outputs")                                                                                      \
    F(PHASES, "several phases")                                                                                        \
    F(AXES, "several parallel axes")                                                                                   \
    F(NO_AXES, "phase without parallel axes")                                                                          \
    F(NESTED, "nested loops")                                                                                          \
    F(LOOP_WHEN, "loop with when")                                                                                     \
    F(IF, "if block")                                                                                                  \
    F(WHEN, "instruction with when")                                                                                   \
    F(LET, "let in a body")                                                                                            \
    F(FIRST, "first(l)")                                                                                               \
    F(LAST, "last(l)")                                                                                                 \
    F(NOT_FIRST, "not first(l) or not last(l)")                                                                        \
    F(INDEX_CLAMP, "index clamp")                                                                                      \
    F(INDEX_WRAP, "index wrap")                                                                                        \
    F(INDEX_SKIP, "index skip")                                                                                        \
    F(RUN, "run of several instructions")                                                                              \
    F(DEAD, "slice that lives inside a run")

enum {
#define F(constant, words) COVERAGE_##constant,
    COVERAGE_FEATURES(F)
#undef F
        COVERAGE_FEATURE_COUNT
};

typedef struct coverage {
    uint32_t iops[UIR_IOP_COUNT][3][COVERAGE_DTYPES];    /* by axis and dtype; mma's dtype is c's */
    uint32_t casts[3][COVERAGE_DTYPES][COVERAGE_DTYPES]; /* plain, saturate, bits; from, to */
    uint32_t mma[COVERAGE_DTYPES][COVERAGE_DTYPES];      /* a, b */
    uint32_t features[COVERAGE_FEATURE_COUNT];
    uint32_t kernels;
} coverage;

void coverage_add(coverage *c, const uir_igraph *igraph);
void coverage_merge(coverage *c, const coverage *other);
/* Prints the table to standard output; returns how many things that `machine` allows were in no kernel. */
uint32_t coverage_print(const coverage *c, const uir_machine *machine);

#endif
