/* Size constraints of a primitive that inference could not prove: only a run's sizes decide them.
 *
 * In: a node with inferred types. Out: its constraints, one after the other. The interpreter checks them before it runs
 * a node. The planner writes unproved ones into the plan, whose runtime checks them once sizes are known. So every
 * engine refuses the same sizes with the same message. */
#ifndef UIR_IR_DEMANDS_H
#define UIR_IR_DEMANDS_H

#include "base/dims/demand.h"
#include "ir/graph/graph.h"

/* `times` * the product of the dims; without dims, a number. */
typedef struct uir_demand_term {
    const uir_dim *dims;
    uint32_t count;
    int64_t times;
    char name[64];
} uir_demand_term;

typedef struct uir_demand {
    uir_demand_term left, right;
    uir_relation relation;
    bool or_one; /* the left side may be 1 as well */
} uir_demand;

typedef uir_status uir_demand_visit(void *user, const uir_demand *demand);
/* Visits the node's constraints. It changes nothing, so that several threads may call it at once. The first status
 * other than OK ends the visit and is returned. */
uir_status uir_demands_of(const uir_module *module, const uir_node_info *node, uir_demand_visit *visit, void *user);

/* Whether the node is only a check that two sizes are equal. */
bool uir_is_equality(const uir_module *module, const uir_node_info *node);

/* A side's dims in a message's spelling. */
void uir_demand_print(const uir_module *module, const uir_demand_term *term, uir_text *text);

#endif
