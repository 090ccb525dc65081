/* Inside lowering: builds loop ASTs from a group's body, for build*.c and the contractions'.
 *
 * A builder visits the body's nodes. Coordinates: while a block is being made, coord[axis] is its position along each
 * axis of ir/graph/axes.h; operands are read at these coordinates whatever their layout. A movement that is not an
 * output is not computed: a slice is its operand at other coordinates. */
#ifndef UIR_LOWER_INTERNAL_H
#define UIR_LOWER_INTERNAL_H

#include "ir/graph/axes.h"
#include "lower/lower.h"

#define UIR_LOWER_NONE UINT32_MAX

enum { UIR_CONTRACTION_MAX_PRODUCTS = 8 }; /* in one kernel, with their tiles on the chip at the same time */

/* The name of the device's first space with the role (UIR_SPACE_*); NULL: none, or no device. */
const char *uir_lower_space(const uir_machine *machine, uint32_t role);

/* ---- making loop ASTs (make.c) ---- */
/* A nest being made: first iteration variables, then statements, then uir_nest_end. */
typedef struct uir_nest {
    uir_loop_function *f;
    uir_arena *arena;
    const char *name; /* of the block */
    uir_loop_statement block;
    uint32_t first_statement, last_statement;
} uir_nest;

uir_status uir_loop_add_tensor(uir_loop_function *f, const char *name, uir_dtype dtype, uir_loop_role role,
                               uint32_t index, const uir_dim *extents, uint32_t rank, uint32_t *out_tensor);
uir_status uir_loop_add_expression(uir_loop_function *f, uir_loop_expression e, uint32_t *out_expression);
uir_status uir_loop_add_call(uir_loop_function *f, uir_op op, uir_dtype dtype, const uint32_t *arguments,
                             uint32_t count, uint32_t *out_expression);
uir_status uir_loop_add_number(uir_loop_function *f, uir_dtype dtype, double real, int64_t integer,
                               uint32_t *out_expression);
uir_status uir_loop_add_load(uir_loop_function *f, uint32_t tensor, const uir_dim *indices, uint32_t *out_expression);
/* A cast, or the expression itself if it has the dtype. */
uir_status uir_loop_add_cast(uir_loop_function *f, uint32_t expression, uir_dtype to, uint32_t *out_expression);

void uir_nest_begin(uir_nest *nest, uir_loop_function *f, uir_arena *arena, const char *name);
/* Adds an iteration variable; an extent of 1 adds none, and the value is 0. `axis`: of uir_loop_iter. */
uir_status uir_nest_add_iter(uir_nest *nest, const char *name, uint32_t axis, uir_dim extent, bool reduce,
                             uir_dim *out_value);
/* Adds an iteration variable read from data: from[indices] in 0..extent-1. */
uir_status uir_nest_add_read(uir_nest *nest, const char *name, uir_dim extent, const uir_loop_access *from,
                             uir_index_mode mode, uir_dim *out_value);
uir_status uir_nest_add_statement(uir_nest *nest, uir_loop_statement_kind kind, uint32_t monoid,
                                  const uir_loop_access *targets, uint32_t target_count, const uint32_t *values,
                                  uint32_t value_count);
/* Closes the block and its loops around; appends them to the function's list, or to that of `under`. `out_loops`,
 * unless NULL, gets the loops' ids in the order of the iteration variables. */
uir_status uir_nest_end(uir_nest *nest, uint32_t under, uint32_t *out_loops);

/* ---- monoids (monoids.c): finds or makes that of a reduction's op and its operand's dtype ---- */
uir_status uir_loop_get_monoid(uir_loop_function *f, uir_op op, bool last, uir_dtype dtype, uint32_t *out_monoid);

/* ---- groups (build.c) ---- */
/* A piece of an axis that a concatenation cuts. */
typedef struct uir_lower_piece {
    uint32_t operand; /* of the concat */
    uint32_t from;    /* piece of the operand's own cut; NONE: not cut */
    uir_dim offset, extent;
} uir_lower_piece;
typedef struct uir_lower_cut {
    uint32_t axis;
    const uir_lower_piece *pieces;
    uint32_t count;
} uir_lower_cut;

typedef struct uir_lower_value {
    uir_value_id value;
    uint32_t node;     /* index of its maker in the body */
    uint32_t cut;      /* NONE: computed whole */
    uint32_t *tensors; /* per piece; NULL: no tensor, its readers compute it */
    bool at_offset;    /* it is cut, but has one tensor: pieces are stored at their offsets */
} uir_lower_value;

typedef struct uir_lower_view { /* of a group's operand */
    uint32_t input;
    uint32_t tensor;
    const uint32_t *axes;
    uint32_t count;
} uir_lower_view;

typedef struct uir_lower_size {
    uir_dim outside, inside;
} uir_lower_size;

typedef struct uir_lower_builder uir_lower_builder;
/* Builds the whole group of one node. */
typedef uir_status uir_lower_alone(uir_lower_builder *b, uint32_t node);

struct uir_lower_builder {
    uir_module *module;
    uir_node_id group;
    uir_graph_id body;
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    uir_axes axes;
    uir_lower_alone *alone; /* a single node, built by its dims without axes; NULL: by axes */
    uir_loop_function *f;
    uir_dim *extents; /* per axis, in the function's dims */
    uir_dim *coord;   /* per axis: the block's coordinate; none: not in the block */
    uir_dim *local;   /* per cut axis: the coordinate in the piece */
    uint32_t piece;   /* the block's piece of the cut */
    uir_nest *nest;   /* being made; data-dependent coordinates are added to it */
    uir_vector(uir_lower_size) sizes;
    uir_vector(uir_dim) kernel_sizes; /* outside, in the order of the function's sizes */
    uir_vector(uir_lower_value) values;
    uir_vector(uir_lower_view) views;
    uir_vector(uir_lower_cut) cuts;
    uint32_t names; /* made so far */
};

/* UNSUPPORTED with a message about a node of the body (NONE: the group). */
uir_status uir_lower_refuse(uir_lower_builder *b, uint32_t node, const char *format, ...) UIR_PRINTF(3, 4);

/* A dim of the module as one of the function's: sums, and products by constants, are kept as such; every other part
 * becomes a size of the function. */
uir_status uir_lower_dim(uir_lower_builder *b, uir_dim dim, uir_dim *out_dim);
/* The same for an extent, which is never negative. */
uir_status uir_lower_extent(uir_lower_builder *b, uir_dim dim, uir_dim *out_dim);
/* Restricts the kernel to sizes for which this dim of the module is 0; only the run can tell. */
uir_status uir_lower_demand_zero(uir_lower_builder *b, uir_dim dim);

const uir_node_info *uir_lower_node_info(const uir_lower_builder *b, uint32_t node);
/* Index of the value among the body's inputs; NONE: not an input. */
uint32_t uir_lower_input_index(const uir_lower_builder *b, uir_value_id value);
bool uir_lower_is_gather(uir_op op);
bool uir_lower_is_movement(uir_op op); /* not computed unless it is an output */

/* The entry of a value of the body; NULL: not built yet, or not of the body. */
const uir_lower_value *uir_lower_find_value(const uir_lower_builder *b, uir_value_id value);
/* The value of operand `index` of a node of the body at the current coordinates. */
uir_status uir_lower_operand(uir_lower_builder *b, uint32_t node, uint32_t index, uint32_t *out_expression);
/* The only element of a constant. */
uir_status uir_lower_constant(uir_lower_builder *b, const uir_tensor *tensor, uint32_t *out_expression);
/* The result of the node at the current coordinates: elementwise and movements (build_expression.c). */
uir_status uir_lower_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression);
/* Adds the tensor of a result, declared over its axes: OUT, or TEMP if it is not an output or is also read inside.
 * Operands find it. */
uir_status uir_lower_add_result(uir_lower_builder *b, uint32_t node, uint32_t result, uint32_t *out_tensor);
/* The access that stores the value at the current coordinates. */
uir_status uir_lower_target(uir_lower_builder *b, uir_value_id value, uir_loop_access *out_access);
/* Adds iteration variables over axes, which set coord. */
uir_status uir_lower_iterate(uir_lower_builder *b, uir_axis_list axes, bool reduce);
/* Begins a nest called "b" and number and part, over the axes of list; `end` adds it to the function. */
uir_status uir_lower_begin_nest(uir_lower_builder *b, uir_nest *nest, uint32_t number, const char *part,
                                uir_axis_list list);
uir_status uir_lower_end_nest(uir_lower_builder *b, uir_nest *nest);
/* The builder of a node by its dims, as the only one of its group (build_alone.c). `related`: its dims have common
 * axes. NULL: it is built over its axes, or not at all. */
uir_lower_alone *uir_lower_find_alone(const uir_module *module, const uir_node_info *node, bool related);
/* Whether it handles layouts of the body's values. Otherwise they must be row-major. */
bool uir_lower_is_ordered_alone(uir_lower_alone *alone);
/* Builds reductions, arg and scans (build_reduce.c). */
uir_status uir_lower_reduction(uir_lower_builder *b, uint32_t node);
/* Windows (build_window.c): adds reduce iteration variables over the window, and sets the coordinates at which the
 * image is read. padded: they may be outside. */
bool uir_lower_is_window(uir_op op);
uir_status uir_lower_iterate_window(uir_lower_builder *b, uint32_t node, bool *out_padded);
/* The same for one spatial dim of the image, at position `place` in the window. */
uir_status uir_lower_window_dim(uir_lower_builder *b, uint32_t node, uint32_t dim, uir_dim place, bool *io_padded);
/* Sets the value of reads outside the image. */
uir_status uir_lower_fill_outside(uir_lower_builder *b, uint32_t node, uint32_t expression, double fill);
/* Translates layouts of operands and results to their tensors (build_layout.c). */
uir_status uir_lower_give_layouts(uir_lower_builder *b);
/* Builds matmul and convolution (contraction_build.c). */
uir_status uir_lower_contraction(uir_lower_builder *b, uint32_t node);

/* The tactics of all functions other than contractions (tactics.c); as uir_lower_schedule. */
uir_status uir_nest_schedule(const uir_loop_function *function, const uir_machine *machine,
                             uir_parameter_choice *choice, uir_diagnostics *diagnostics, uir_loop_list *out);

/* The number of reductions, products included, of a function that is not scheduled yet. */
uint32_t uir_lower_count_updates(const uir_loop_function *function);

#endif
