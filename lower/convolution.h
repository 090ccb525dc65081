/* Convolutions whose result has its pixels along the last dims: a product of the weights by windows of the image.
 *
 * In: a naive loop function with one contraction whose first factor reads windows of an image. Out: its variants. Rows
 * of the product are output channels, columns are pixels, so that neither the image nor the result is transposed. A
 * unit has a tile of channels and some lines of the result. It copies the windows of these lines for some channels of
 * the image on chip, a row for each element of the kernel and a column for each pixel, multiplies all its rows of
 * weights with them, and goes on to the next channels; what follows is done a channel at a time on the finished lines.
 * The first variant takes whole lines and as many as fit, the last one parts of a line. */
#ifndef UIR_LOWER_CONVOLUTION_H
#define UIR_LOWER_CONVOLUTION_H

#include "lower/lower.h"

/* As uir_contraction_schedule; `out_taken`: whether the function is of this kind. Where it is not, what is added is not
 * for all sizes: others must follow. */
uir_status uir_convolution_schedule(const uir_loop_function *function, const uir_device *device, uir_text *steps,
                                    uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_taken);

#endif
