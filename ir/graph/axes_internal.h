/* Inside the axis analysis: the table of atoms and instances that axes.c relates and axes_join.c makes axes of. */
#ifndef UIR_IR_AXES_INTERNAL_H
#define UIR_IR_AXES_INTERNAL_H

#include "ir/graph/axes.h"

#define UIR_AXES_UNRELATED UIR_STATUS_UNSUPPORTED

typedef struct uir_axes_atom {
    uint32_t parent;     /* itself: a root */
    uint32_t slow, fast; /* a root that was split; NONE: a leaf */
    uir_dim extent;
    bool unsplittable;
} uir_axes_atom;

typedef uir_vector(uint32_t) uir_axes_atoms;

typedef struct uir_axes_instance {
    uir_axis_list *dims; /* atoms per dim as first made: one or none */
    uint32_t rank;
    uint32_t order[UIR_MAX_RANK + 1]; /* of the dims, as they lie in memory, slowest first */
    uir_axis_list list;               /* at the end: axes of the whole */
    uint32_t *dim_axes;               /* at the end: the one axis of each dim */
} uir_axes_instance;

typedef struct uir_axes_table {
    const uir_module *module;
    uir_arena *arena;
    const uir_node_id *nodes;
    uint32_t node_count;
    uir_vector(uir_axes_atom) atoms;
    uir_vector(uir_axes_instance) instances;
    uir_vector(uir_value_id) values; /* made inside; instance of the same index in value_instances */
    uir_vector(uint32_t) value_instances;
    uint32_t **operands;              /* per node, per operand: its instance */
    uir_vector(uir_value_id) outside; /* read, not made inside */
    uir_vector(uint32_t) outside_instances;
    uint32_t apart; /* of these, the value that has axes of its own at each place; ALL; NONE */
} uir_axes_table;

/* Appends the atoms that a dim of an instance is made of now, slowest first. */
uir_status uir_axes_push_dim(uir_axes_table *t, const uir_axes_instance *of, uint32_t dim, uir_axes_atoms *list);
/* ---- axes_join.c ---- */
/* Makes the axes of related atoms, and the lists of axes of all instances. */
uir_status uir_axes_finish(uir_axes_table *t, uir_axes *out_axes);

#endif
