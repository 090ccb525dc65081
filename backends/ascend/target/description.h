/* The Ascend 910B1 as a uir_device. In: nothing; it is data. Out: what kernels for it may assume. */
#ifndef UIR_BACKENDS_ASCEND_TARGET_DESCRIPTION_H
#define UIR_BACKENDS_ASCEND_TARGET_DESCRIPTION_H

#include "ir/device.h"

const uir_device *uir_ascend_910b1_device(void);

#endif
