/* Attention: a product, a function of its rows, and a product with what that gives, as one kernel that streams.
 *
 * In: a naive loop function with two contractions of which the second one's first factor depends on the first one's
 * sums. Between them is elementwise work and reductions over the columns of the first: a sum that divides, a greatest
 * that exponentials are taken against (softmax, with NaNs that may be replaced by 0), or none. Out: one scheduled
 * function for all sizes, and its trace.
 *
 * A unit has a tile of rows (queries). It walks the columns (keys) by tiles: their scores, what is made of them, and
 * the second product's sums. Sums over the keys go along; a greatest is a running one, and what was summed before is
 * scaled by how much it has grown (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018). The
 * second product is divided once at the end. Where all keys are one tile, nothing goes along. Scores are never in the
 * device's memory, and nothing depends on how many keys there are. */
#ifndef UIR_LOWER_ATTENTION_H
#define UIR_LOWER_ATTENTION_H

#include "lower/lower.h"

/* Are there two contractions, the second one of what is made of the first? */
bool uir_attention_matches(const uir_loop_function *function);
/* As uir_contraction_schedule. */
uir_status uir_attention_schedule(const uir_loop_function *function, const uir_device *device,
                                  uir_parameter_choice *choice, uir_diagnostics *diagnostics, uir_loop_list *out);

#endif
