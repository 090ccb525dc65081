/* NVIDIA sm_90 (H100 SXM) as a uir_device. In: nothing; it is data. Out: what kernels for it may assume. */
#ifndef UIR_BACKENDS_CUDA_TARGET_DESCRIPTION_H
#define UIR_BACKENDS_CUDA_TARGET_DESCRIPTION_H

#include "ir/device.h"

const uir_device *uir_cuda_sm90_device(void);

#endif
