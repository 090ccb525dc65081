/* What sizes must be to each other when a model runs, as a message: one spelling, whoever finds it broken. */
#ifndef UIR_BASE_DEMAND_H
#define UIR_BASE_DEMAND_H

#include "base/dim.h"

#include <stddef.h>

/* One side of a demand: what it is called, the dims that it is made of as text, its value. */
typedef struct uir_demand_side {
    const char *name, *dims; /* "dim 2 of operand 1"; "height floordiv 16": the number itself, or "", is not shown */
    int64_t value;
} uir_demand_side;

/* "dim 2 of operand 1 is 5 (ceildiv(height, 16)) and must be 4, as dim 2 of operand 0 (height floordiv 16)".
 * `also`: another value that the left side may have; NULL: none. Cuts what is longer than the buffer. */
void uir_demand_describe(uir_demand_side left, uir_relation relation, const int64_t *also, uir_demand_side right,
                         char *buffer, size_t capacity);

#endif
