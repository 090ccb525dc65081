/* Attention as one streaming kernel (online softmax): a product, a function of its rows, and a product with the result.
 *
 * In: a naive loop function with two contractions, of which the second one's operand A depends on the first one's sums.
 * Between them is elementwise work and reductions over the columns of the first: a sum as divisor, a maximum that is
 * subtracted before exponentials (softmax, with NaNs that may be replaced by 0), or none. Out: one scheduled function
 * for all sizes, and its trace.
 *
 * A unit has a tile of rows (queries). It loops over the columns (keys) by tiles: their scores, the function of these,
 * and the second product's sums. Sums over the keys are running ones. So is a maximum: when it grows, earlier sums are
 * rescaled (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018). The second product is
 * divided once at the end. If all keys are one tile, no state is carried. Scores are never in the device's memory, and
 * no buffer depends on the number of keys. */
#ifndef UIR_LOWER_ATTENTION_H
#define UIR_LOWER_ATTENTION_H

#include "lower/lower.h"

/* Whether the function has two contractions, the second one of values computed from the first. */
bool uir_attention_matches(const uir_loop_function *function);
/* As uir_contraction_schedule. */
uir_status uir_attention_schedule(const uir_loop_function *function, const uir_machine *machine,
                                  uir_parameter_choice *choice, uir_diagnostics *diagnostics, uir_loop_list *out);

#endif
