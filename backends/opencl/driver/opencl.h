/* The OpenCL driver: devices of OpenCL 1.2 and later, by the library that the system has.
 *
 * In: a program in OpenCL C, or its binary; requests. Out: a driver. The library is opened at run time, by
 * uir_driver_options.library or its usual name. A kernel's phase k is the function SYMBOL_phaseK. Its arguments: for
 * each pointer the buffer (__global) and the byte offset in it (ulong), then the dims and tiles (__global const long
 * *), then the first index (long). Each index is a work-group, of the size that the function requires. */
#ifndef UIR_BACKENDS_OPENCL_DRIVER_OPENCL_H
#define UIR_BACKENDS_OPENCL_DRIVER_OPENCL_H

#include "runtime/driver.h"

extern const uir_driver uir_opencl_driver;

#endif
