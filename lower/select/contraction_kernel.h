/* Hooks of uir_lower_kernel for a function with a scheduled contraction: the order of dims and layouts of its pointers,
 * and the block's instruction. */
#ifndef UIR_LOWER_CONTRACTION_KERNEL_H
#define UIR_LOWER_CONTRACTION_KERNEL_H

#include "lower/select/kernel.h"

void uir_contraction_describe(uir_kernel *kernel);
bool uir_contraction_is_mma(const uir_kernel *kernel, uint32_t block);
void uir_contraction_emit(uir_kernel *kernel, uint32_t block);

#endif
