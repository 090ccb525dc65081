/* Recognises sums of products that are contractions: the analysis behind the primitive *classify*
 * (lower/schedule/schedule.h). */
#ifndef UIR_LOWER_CONTRACTION_CLASSIFY_H
#define UIR_LOWER_CONTRACTION_CLASSIFY_H

#include "ir/machine/device.h"
#include "ir/loop/loop.h"

/* Unmarks contractions with operands that the device's mma does not support. If no contraction is left, marks blocks
 * that sum products along axes, whatever operators the products come from. Each operand must have an axis of its own
 * besides a reduction axis. Each summed value becomes a product of two operands; terms without a reduction axis
 * multiply the finished sum. `*out_count`: the number of newly marked blocks. */
uir_status uir_contraction_classify(uir_loop_function *function, const uir_machine *machine, uint32_t *out_count);

/* Whether mma multiplies an operand of dtype `factor` into accumulators of dtype `sums`, and reads the operand in
 * memory or through a cache. `is_right`: operand B; else operand A. */
bool uir_contraction_multiplies(const uir_machine *machine, uir_dtype sums, uir_dtype factor, bool is_right);

#endif
