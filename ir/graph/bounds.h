/* Range analysis: bounds of the elements of an integer value, derived from the nodes that compute it.
 *
 * In: a value of a module of primitives, also of one under construction. Out: bounds as dims, so that values unknown
 * before a run can be compared with sizes unknown before it. */
#ifndef UIR_IR_BOUNDS_H
#define UIR_IR_BOUNDS_H

#include "ir/graph/graph.h"

/* NONE: no bound is known on that side. Any bounds hold for a value without elements. */
typedef struct uir_bounds {
    uir_dim low, high; /* inclusive */
    bool attained;     /* one of the elements, if any, equals `low`, and one equals `high` */
} uir_bounds;

/* Bounds of coordinates: of each of the `count` indices along the value's last axis, or of all elements if `count`
 * is 1. Dims are made in module->dims. Work is bounded; of a constant all elements are read. */
void uir_index_bounds(uir_module *module, uir_value_id indices, uint32_t count, uir_bounds *out_bounds);

/* Whether bounds of the elements are known and inside [low, high). */
bool uir_bounds_are_inside(uir_module *module, uir_bounds bounds, uir_dim low, uir_dim high);

/* Whether a CHECK_INDICES of these bounds, existing or planned, is proved to pass. */
bool uir_indices_are_inside(uir_module *module, uir_value_id indices, const uir_dim *low, const uir_dim *high,
                            uint32_t count);

#endif
