/* Memory planning on the chip: local buffers with disjoint lifetimes share storage. In: a kernel that is not yet
 * verified. Out: `over` of its pointers. */
#ifndef UIR_IR_IGRAPH_PLACES_H
#define UIR_IR_IGRAPH_PLACES_H

#include "ir/kernel/igraph.h"

/* Plans the buffers of unit scope, with all their instances; not single elements, which are registers. A kernel with
 * syncs in its text does not change. INVALID_ARGUMENT if the size of a buffer overflows. */
uir_status uir_igraph_share_places(uir_igraph *igraph);
/* Which of the buffers that can be doubled are. */
typedef enum uir_doubling {
    UIR_DOUBLE_NONE,
    UIR_DOUBLE_FITTING, /* those that fit once storage is shared, innermost loops first */
    UIR_DOUBLE_SCRATCH  /* all in the scratch space, whose slices can be made shorter; in others those that fit */
} uir_doubling;
/* Double buffering: a buffer that moves fill or empty in a loop gets two instances by that loop, so that pipes need not
 * wait for each other. Required: none of its values outlives an iteration. No effect on a device with fewer than two
 * pipes. Run it before storage is shared. */
uir_status uir_igraph_give_instances(uir_igraph *igraph, uir_doubling doubling);

#endif
