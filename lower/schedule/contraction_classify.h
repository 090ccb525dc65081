/* Recognises sums of products that are contractions: the analysis behind the primitive *classify*
 * (lower/schedule/schedule.h). */
#ifndef UIR_LOWER_CONTRACTION_CLASSIFY_H
#define UIR_LOWER_CONTRACTION_CLASSIFY_H

#include "ir/machine/device.h"
#include "ir/loop/loop.h"

/* Unmarks contractions with operands that the device's mma does not support. If none is left, marks blocks that sum
 * products along axes of their operands' own, whatever operators they come from: each summed value becomes a product of
 * two operands, and terms without a reduction axis multiply the finished sum. `out_count`: the number of newly marked
 * blocks. */
uir_status uir_contraction_classify(uir_loop_function *function, const uir_machine *device, uint32_t *out_count);

/* Whether mma multiplies an operand of the dtype, A or (`is_right`) B, into accumulators of that dtype, and reads it in
 * memory or through a cache. */
bool uir_contraction_multiplies(const uir_machine *device, uir_dtype sums, uir_dtype factor, bool is_right);

#endif
