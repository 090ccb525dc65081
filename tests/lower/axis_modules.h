/* Modules of one primitive each: every primitive that kernels are made for, along each axis in turn, at extents 1 to 5.
 *
 * In: a number. Out: a module with a result, built through ir/graph/build.h. */
#ifndef UIR_TESTS_AXIS_MODULES_H
#define UIR_TESTS_AXIS_MODULES_H

#include "tests/ir/graph/support.h"

uint32_t axis_module_count(void);
/* False: there is nothing under this number (an operation has no such axis). `out_extent`: of the axis, which is the
 * size "N" in every other module and a number in the rest. */
bool axis_module_build(fixture *f, uint32_t number, int64_t *out_extent, char *out_name, size_t size);

#endif
