/* Random legal iGraphs for the CPU, as text.
 *
 * In: a seed. Out: a kernel that the verifier must accept and every runner must compute to the same bits. The families
 * are those of the zoo (rows with reductions, column blocks with accumulators, products, windows, gathers, transposes,
 * scans, two phases) and pointers that are read and written at once; the instructions and dtypes inside them random. */
#ifndef UIR_TESTS_IGRAPH_GENERATE_H
#define UIR_TESTS_IGRAPH_GENERATE_H

#include "base/text.h"

uint64_t random_next(uint64_t *state);                  /* splitmix64 */
uint32_t random_below(uint64_t *state, uint32_t count); /* 0..count-1 */

/* Appends the text of kernel number `seed`; its name is k<seed>. `in_place`: of the families that read and write one
 * pointer only. True: its slices are drawn freely, so that the verifier
 * may refuse it, for no other reason than that an operand overlaps the result. */
bool generate_igraph(uint64_t seed, bool in_place, uir_text *text);

#endif
