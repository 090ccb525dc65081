/* Size constraints of a primitive that inference could not prove: only a run's sizes decide them.
 *
 * In: a node whose types are inferred. Out: its demands, one after the other. The interpreter asks them of each node
 * before it runs, the planner writes those that are not proved into the plan, whose runtime asks them when sizes become
 * known: so the same sizes are refused with the same words, whatever runs the model. */
#ifndef UIR_IR_DEMANDS_H
#define UIR_IR_DEMANDS_H

#include "base/dims/demand.h"
#include "ir/graph/graph.h"

/* `times` the product of the dims; no dims: a number. */
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
/* Visits the node's demands; changes nothing, so that runs on several threads may ask at once. The first status that is
 * not OK ends it and is returned. */
uir_status uir_demands_of(const uir_module *module, const uir_node_info *node, uir_demand_visit *visit, void *user);

/* Whether the node says that its two sizes are one, and nothing else. */
bool uir_is_equality(const uir_module *module, const uir_node_info *node);

/* A side's dims as a person reads them. */
void uir_demand_print(const uir_module *module, const uir_demand_term *term, uir_text *text);

#endif
