/* Which sums of products are contractions: the analysis behind the primitive *classify* (lower/schedule/schedule.h). */
#ifndef UIR_LOWER_CONTRACTION_CLASSIFY_H
#define UIR_LOWER_CONTRACTION_CLASSIFY_H

#include "ir/machine/device.h"
#include "ir/loop/loop.h"

/* Blocks said to be contractions whose factors the device's mma does not take are so no more. Where none is left,
 * blocks that sum products along axes of their factors' own are contractions from now on, whatever operators they come
 * from: what they add becomes a product of two, what has no summed axis is multiplied with the finished sum.
 * `out_count`: how many. */
uir_status uir_contraction_classify(uir_loop_function *function, const uir_device *device, uint32_t *out_count);

/* Does mma take a factor of the dtype, into sums of that dtype? */
bool uir_contraction_multiplies(const uir_device *device, uir_dtype sums, uir_dtype factor, bool is_right);

#endif
