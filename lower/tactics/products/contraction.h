/* Contractions: a matmul or convolution with what comes before and after it, as a tiled kernel around mma.
 *
 * In: a naive loop function in which one block, used as a contraction, updates the monoid sum with a product of two
 * values (a factor may be constant), blocks of elementwise work before it and after it. Out: scheduled functions, each
 * a variant with its `require`, the last one without; and their iGraphs.
 *
 * The result's axes fall into classes by which factor they address: both or none (batch), the first (m), the second
 * (n); k is summed over. One axis of m, n and k each is tiled; the others become loops around. A block of the result
 * stays on chip while k is walked; the first factor's block is copied with padded rows, the second one's into panels of
 * columns where it is not constant and packed so already. What follows is done row by row on the finished block.
 *
 * Several such blocks in one function are products of one first factor: they share the loops over its rows, and those
 * over columns as far as each has some; what follows may join them. */
#ifndef UIR_LOWER_CONTRACTION_H
#define UIR_LOWER_CONTRACTION_H

#include "lower/lower.h"

/* Is one of the naive function's blocks used as a contraction? */
bool uir_contraction_matches(const uir_loop_function *function);

/* Appends the variants; `choice` as for uir_lower_schedule; `steps` (may be NULL) says in words what was done.
 * UNSUPPORTED with a message where the function is no single contraction with elementwise work around it. */
uir_status uir_contraction_schedule(const uir_loop_function *function, const uir_device *device,
                                    uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                    uir_loop_list *out);

#endif
