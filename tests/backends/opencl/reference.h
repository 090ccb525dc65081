/* The results of the cases of tests/backends/opencl/cases.inc by the CPU's prelude.
 *
 * In: the operands. Out: COUNT * 8 bytes a case, zero before, and the case's type, a TYPE_ of cases.h. Returns how many
 * cases the section has, MOST_CASES at most. */
#ifndef UIR_TESTS_BACKENDS_OPENCL_REFERENCE_H
#define UIR_TESTS_BACKENDS_OPENCL_REFERENCE_H

#include "tests/backends/opencl/cases.h"

enum { MOST_CASES = 128 };
int reference_compute(int section, const unsigned char *in, unsigned char *out, int *kinds);

#endif
