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

/* Is one of the function's blocks used as a contraction: naive, or scheduled (and so for uir_contraction_kernel)? */
bool uir_contraction_matches(const uir_loop_function *function);
bool uir_contraction_is_scheduled(const uir_loop_function *function);

/* Blocks said to be contractions whose factors the device's mma does not take are so no more. Where none is left,
 * blocks that sum products along axes of their factors' own are contractions from now on, whatever operators they come
 * from: what they add becomes a product of two, what has no summed axis is multiplied with the finished sum.
 * `out_count`: how many. */
uir_status uir_contraction_classify(uir_loop_function *function, const uir_device *device, uint32_t *out_count);

/* Appends the variants; `choice` as for uir_lower_schedule; `steps` (may be NULL) says in words what was done.
 * UNSUPPORTED with a message where the function is no single contraction with elementwise work around it. */
uir_status uir_contraction_schedule(const uir_loop_function *function, const uir_device *device,
                                    uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                    uir_loop_list *out);

/* What uir_lower_kernel asks about a function with a scheduled contraction: the order and layout of its pointers, and
 * the block's instruction. */
struct uir_kernel;
void uir_contraction_describe(struct uir_kernel *kernel);
bool uir_contraction_is_mma(const struct uir_kernel *kernel, uint32_t block);
void uir_contraction_emit(struct uir_kernel *kernel, uint32_t block);

#endif
