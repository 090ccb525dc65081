/* The tactic of convolutions whose image and result are channels-last, and of those of few channels.
 *
 * Implicit im2col: pixels are rows and channels columns, and mma reads the windows in place, with any strides and
 * dilations, without a copy; reads outside the image are its fill. The tactic is output-stationary: a
 * unit keeps on the chip the accumulators of some lines of some pixels, for a tile's columns. The epilogue is done line
 * by line. With few channels, their layout is
 * kept: pixels are columns, output channels or lines are rows, and taps are added one after the other. */
#ifndef UIR_LOWER_WINDOWS_H
#define UIR_LOWER_WINDOWS_H

#include "lower/lower.h"

/* As uir_contraction_schedule. `out_taken`: whether the function is such a convolution; else it is not scheduled. */
uir_status uir_windows_schedule(const uir_loop_function *function, const uir_machine *machine, uir_text *steps,
                                uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_taken);

#endif
