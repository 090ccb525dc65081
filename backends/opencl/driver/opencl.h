/* The OpenCL driver: devices of OpenCL 1.2 and later, by the library that the system has.
 *
 * In: a program in OpenCL C, or its binary; requests. Out: a driver. The library is opened at run time, by
 * uir_driver_options.library or its usual name. A kernel's phase k is the function
 *
 *   __kernel __attribute__((reqd_work_group_size(T, 1, 1))) void SYMBOL_phaseK(
 *       __global uchar *p0, ulong o0, ..., __global const long *symbols, long begin, long end,
 *       __global uchar *scratch, ulong scratch_size, __local uchar *shared)
 *
 *   p0, o0        for each pointer the buffer, and the byte of it where the pointer's memory begins
 *   symbols       the dims, then the tiles
 *   begin, end    work-group g of G executes the indices from begin + (end - begin) * g / G up to that of g + 1
 *   scratch       T = 1: work-group g's scratch begins at byte g * scratch_size
 *   scratch_size  bytes of a unit's scratch, a multiple of 64
 *   shared        T > 1: scratch_size bytes of local memory
 *
 * T = 1: a few work-groups for each compute unit share the indices. T > 1: a work-group executes one index, unless the
 * indices are more than a launch can have. With begin = end a function of T = 1 returns before it reads anything: the
 * load launches it so on a CPU, whose library compiles it then. Programs are compiled with UIR_LANES (4, 8 or 16 floats
 * of a vector), and with UIR_HAS_F64 where the device has doubles. */
#ifndef UIR_BACKENDS_OPENCL_DRIVER_OPENCL_H
#define UIR_BACKENDS_OPENCL_DRIVER_OPENCL_H

#include "runtime/driver.h"

extern const uir_driver uir_opencl_driver;

#endif
