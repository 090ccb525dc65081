/* The tactic of contractions: a matmul or convolution with prologue and epilogue, as a tiled kernel around mma.
 *
 * In: a naive loop function with one block used as a contraction, and blocks of elementwise work before and after it.
 * The contraction updates the monoid sum with a product of two values; an operand may be constant. Out: scheduled
 * functions, each a variant with its `require`, the last one without.
 *
 * The result's axes have a class by the operands that they address: both or none (batch), A (m), B (n); k is the
 * reduction axis. One axis of m, n and k each is tiled; the others become outer loops. The kernel is output-stationary:
 * a tile of accumulators stays on the chip during the loop along k. The tile of operand A is copied with padded rows.
 * The tile of operand B is copied into panels of columns, unless operand B is constant and packed so. The epilogue is
 * done row by row on the finished tile.
 *
 * Several such blocks in one function are products that share operand A: they share the loops over its rows, and those
 * over columns as far as each has columns; a common epilogue may combine them. */
#ifndef UIR_LOWER_CONTRACTION_H
#define UIR_LOWER_CONTRACTION_H

#include "lower/lower.h"

/* Whether one of the naive function's blocks is used as a contraction, and none is empty at all sizes. */
bool uir_contraction_matches(const uir_loop_function *function);

/* Appends the variants; `choice` as for uir_lower_schedule; `steps` (may be NULL) gets a description of the steps.
 * UNSUPPORTED with a message if the function is not a single contraction with elementwise work around it. */
uir_status uir_contraction_schedule(const uir_loop_function *function, const uir_machine *machine,
                                    uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                    uir_loop_list *out);

#endif
