/* The tactic of convolutions whose image and result are channels-last, and of those of few channels.
 *
 * Pixels are rows and channels columns: mma reads the windows where they lie, whatever their strides and dilations, and
 * nothing is copied; what lies outside the image is its fill. A unit has some lines of some pixels, for as many columns
 * as a tile has, whose sums stay on chip; what follows is done line by line. Few channels stay where they are: pixels
 * are columns, output channels or lines are rows, and taps are added one after the other. */
#ifndef UIR_LOWER_WINDOWS_H
#define UIR_LOWER_WINDOWS_H

#include "lower/lower.h"

/* As uir_contraction_schedule. `out_taken`: the function is such a convolution, else nothing is done. */
uir_status uir_windows_schedule(const uir_loop_function *function, const uir_device *device, uir_text *steps,
                                uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_taken);

#endif
