/* Random modules made to mislead fusion.
 *
 * In: a seed. Out: a module through ir/graph/build.h whose extents are equal although their axes differ, with reshapes before
 * and after reductions, unit axes, rank 0, transposes on the way, values with several consumers, ways around through a
 * third node, sizes bound from data; and inputs for it. The shapes that models are made of (softmax, norms, products
 * with what comes before and after, rotations, masks) come in whole, so that every rewrite has its chance. */
#ifndef UIR_TESTS_RANDOM_FUSION_H
#define UIR_TESTS_RANDOM_FUSION_H

#include "tests/ir/graph/support.h"

enum { FUSION_POOL = 160, FUSION_INPUTS = 6 };

typedef struct fusion_generator {
    fixture *f;
    random_state random;
    uir_dim sizes[3]; /* N, M, and one that data binds; none: not there */
    uir_value_id pool[FUSION_POOL];
    uint32_t count;
    bool in_body;
} fusion_generator;

void fusion_generate(fusion_generator *g, fixture *f, uint64_t seed);
/* Inputs for a binding of N and M; the data-bound size is what its input holds. */
void fusion_inputs(const fusion_generator *g, uint64_t seed, uint32_t binding, uir_datum **out_inputs);

#endif
