/* Rows of legal instructions for descriptions that are written in C: masks of dtypes, and rows whose operands are in
 * any space of a machine with memory, one space on the chip and registers, by one pipe. */
#ifndef UIR_BACKENDS_SOURCE_LEGAL_ROWS_H
#define UIR_BACKENDS_SOURCE_LEGAL_ROWS_H

#include "ir/machine/device.h"

#define SPACES   7u
#define D(name)  (1u << UIR_DTYPE_##name)
#define INTEGERS (D(I8) | D(U8) | D(I16) | D(U16) | D(I32) | D(U32) | D(I64) | D(U64))
#define ROW_RIGHT(name, of, others, right)                                                                             \
    {                                                                                                                  \
        .iop = name, .dtypes = of, .spaces_result = SPACES, .spaces_operand = SPACES, .unit_kinds = 1, .pipe = -1,     \
        .dtypes_other = others, .dtypes_right = right                                                                  \
    }
#define ROW_OTHER(name, of, others) ROW_RIGHT(name, of, others, 0)
#define ROW(name, of)               ROW_RIGHT(name, of, 0, 0)

#endif
