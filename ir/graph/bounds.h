/* Between which numbers the elements of an integer value lie, as far as what makes it tells.
 *
 * In: a value of a module of primitives, or of one that is being built. Out: dims, so that what is not known before the
 * model runs can still be compared with sizes that are not. */
#ifndef UIR_IR_BOUNDS_H
#define UIR_IR_BOUNDS_H

#include "ir/graph/graph.h"

/* NONE where nothing is known of that side. A value without elements has any bounds. */
typedef struct uir_bounds {
    uir_dim low, high; /* inclusive */
    bool attained;     /* if there are elements, one of them is `low` and one is `high` */
} uir_bounds;

/* Dims are made in module->dims. Work is bounded; of constants all elements are read. */
uir_bounds uir_value_bounds(uir_module *module, uir_value_id value);

/* Whether it is proved that nothing is wrong with what a CHECK_INDICES, there or not yet, looks at. */
bool uir_indices_are_inside(uir_module *module, uir_value_id indices, const uir_dim *low, const uir_dim *high,
                            uint32_t count);

#endif
