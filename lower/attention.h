/* Attention: a product, softmax along its columns, and a product with what that gives, as one kernel that streams.
 *
 * In: a naive loop function with two contractions of which the second one's first factor is the softmax of what the
 * first one leads to (NaNs may be replaced in it). Out: one scheduled function for all sizes.
 *
 * A unit has a tile of rows (queries). It walks the columns (keys) by tiles: their scores, a row's greatest so far, the
 * exponentials against it, and their sum; what was summed before is scaled by how much the greatest has grown (the
 * monoid of logsumexp and of sums weighted by softmax: M. Milakov, N. Gimelshein, "Online normalizer calculation for
 * softmax", 2018). The second product is summed tile by tile, and divided once at the end. Scores are never in the
 * device's memory, and nothing depends on how many keys there are. */
#ifndef UIR_LOWER_ATTENTION_H
#define UIR_LOWER_ATTENTION_H

#include "lower/lower.h"

/* Are there two contractions and reductions between them? */
bool uir_attention_matches(const uir_loop_function *function);
/* As uir_contraction_schedule. */
uir_status uir_attention_schedule(const uir_loop_function *function, const uir_device *device,
                                  uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                  uir_loop_list *out);

#endif
