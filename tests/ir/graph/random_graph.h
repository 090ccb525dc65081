/* Random modules of primitives, and random inputs for them.
 *
 * In: a seed. Out: a module built through ir/graph/build.h, so it verifies, with symbolic sizes, zero and rank-0 shapes,
 * every element type, broadcasting that is only decided when sizes are known, control flow; inputs for a binding of the
 * sizes. */
#ifndef UIR_TESTS_RANDOM_GRAPH_H
#define UIR_TESTS_RANDOM_GRAPH_H

#include "tests/ir/graph/support.h"

enum { SIZE_COUNT = 3, MAX_POOL = 200 };

typedef struct generator {
    fixture *f;
    random_state random;
    uir_dim sizes[SIZE_COUNT];
    uir_value_id pool[MAX_POOL]; /* values that may be operands here */
    uint32_t pool_count;
    uint32_t depth;   /* of bodies */
    bool has_half;    /* something is computed in a type narrower than f32 */
    bool has_product; /* something is a contraction */
    bool simple_only; /* of ops: no control flow, data-dependent shapes */
    bool short_axes;  /* extents are 1 to 5, and more ops go along an axis */
} generator;

/* Builds into the fixture's main graph about `nodes` ops and a few outputs. */
void generate_module(generator *g, fixture *f, uint64_t seed, uint32_t nodes);

/* The same of simple ops along short axes: a running sum, a window, a slice of few elements is all of its axis. */
void generate_short_module(generator *g, fixture *f, uint64_t seed, uint32_t nodes);

/* Values of the sizes for binding `index`: one each, then 0, 1 and others. The last size broadcasts to the first: it
 * equals it or is 1. */
void choose_sizes(uint64_t seed, uint32_t index, int64_t *out_sizes);
uir_tensor *random_tensor(random_state *random, const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                          const int64_t *shape);
/* Inputs of the module for a binding. */
void random_inputs(const fixture *f, const generator *g, uint64_t seed, const int64_t *sizes, uir_datum **out_inputs);

#endif
