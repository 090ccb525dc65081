/* The null device: a simulation that shows an order of requests that is not enforced.
 *
 * In: "null", "null:SEED" or "null:CHIP:SEED" (chips.h), kernel formats. Out: a driver whose device runs their kernels
 * in memory that the host cannot reach. Native handles are addresses without memory behind them. New memory holds a
 * pattern. A request executes when a wait needs it, or earlier: how much earlier, and in which order the queues go on,
 * is drawn from the seed. The seed also draws what the device can do. Times are modelled: each queue has a clock of its
 * own. */
#ifndef UIR_BACKENDS_NULL_DRIVER_NULL_H
#define UIR_BACKENDS_NULL_DRIVER_NULL_H

#include "runtime/driver.h"

extern const uir_driver uir_null_driver;

/* Copies so far between the device's memory and the host's: page-locked (UIR_MEMORY_STAGING), and any other. */
typedef struct uir_null_copies {
    uint64_t locked, pageable;
} uir_null_copies;
uir_null_copies uir_null_count_copies(uir_driver_device *device);

#endif
