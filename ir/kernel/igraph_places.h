/* Memory planning on the chip: local buffers with disjoint lifetimes share storage. In: a kernel, before it is verified. Out: its pointers'
 * `over`. */
#ifndef UIR_IR_IGRAPH_PLACES_H
#define UIR_IR_IGRAPH_PLACES_H

#include "ir/kernel/igraph.h"

/* What each unit has for itself, with all its instances; not single elements, which are no memory but registers.
 * A kernel whose text says where its pipes wait for each other is left as it is. INVALID_ARGUMENT where the size of a
 * buffer overflows. */
uir_status uir_igraph_share_places(uir_igraph *igraph);
/* Which of the buffers that may have two instances get them. */
typedef enum uir_doubling {
    UIR_DOUBLE_NONE,
    UIR_DOUBLE_FITTING, /* as far as there is room once places are shared, those of the innermost loops first */
    UIR_DOUBLE_SCRATCH  /* all that lie in the scratch space, whose slices can be made shorter; elsewhere as far as fits
                         */
} uir_doubling;
/* Double buffering: what moves bring to the chip or take from it, in a loop of which no value of it leaves an
 * iteration, gets two instances by that loop, so that pipes need not wait for each other. Nothing is done on a device
 * whose pipes do not run apart. Before places are shared. */
uir_status uir_igraph_give_instances(uir_igraph *igraph, uir_doubling doubling);

#endif
