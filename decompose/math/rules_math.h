/* Shared parts of the rules in rules_math_*.c.
 *
 * Operands that determine an op's structure (axes, starts, pads) may be known only at run time. The rules use constant
 * ones directly. With others they compute as data: a mask over the axes, vectors with one element per axis, sizes bound
 * at run time. */
#ifndef UIR_DECOMPOSE_RULES_MATH_H
#define UIR_DECOMPOSE_RULES_MATH_H

#include "decompose/rules.h"

static inline uir_dim uir_math_add(uir_rule_context *c, uir_dim a, uir_dim b) {
    return uir_dim_add(c->builder.module->dims, a, b);
}
static inline uir_dim uir_math_sub(uir_rule_context *c, uir_dim a, uir_dim b) {
    return uir_dim_sub(c->builder.module->dims, a, b);
}
static inline uir_dim uir_math_mul(uir_rule_context *c, uir_dim a, uir_dim b) {
    return uir_dim_mul(c->builder.module->dims, a, b);
}
static inline bool uir_math_is(uir_rule_context *c, uir_dim dim, int64_t value) {
    int64_t known;
    return uir_dim_is_const(c->builder.module->dims, dim, &known) && known == value;
}
/* A constant of the attribute's value: a tensor, a number or text of rank 0, or a list of rank 1 (i64, f32, string). */
uir_value_id uir_math_constant_of(uir_rule_context *context, const uir_attribute *attribute);
/* A binary primitive with an i64 constant as right operand. */
uir_value_id uir_math_with(uir_rule_context *context, uir_op op, uir_value_id a, int64_t value);
/* 0, 1, .. extent-1 as i64. */
uir_value_id uir_math_iota(uir_rule_context *context, uir_dim extent);
/* The extents of a value as an i64 tensor [rank]. */
uir_value_id uir_math_shape(uir_rule_context *context, uir_value_id value);
/* A value of rank 0 or 1 as i64 of rank 1. */
uir_value_id uir_math_vector(uir_rule_context *context, uir_value_id value);
/* A vector reshaped to extend along `axis` of rank `rank`; other extents are 1. */
uir_value_id uir_math_along(uir_rule_context *context, uir_value_id vector, uint32_t axis, uint32_t rank);
/* Whether the contents are known at compile time: constant, or symbolic elements. */
bool uir_math_known(uir_rule_context *context, uir_value_id value);
/* The number of elements of a rank 0 or 1 value when it is constant; -1 otherwise. */
int64_t uir_math_count(uir_rule_context *context, uir_value_id value);
/* Reshapes to the contents of an i64 tensor [rank]; unknown sizes are bound at run time. */
uir_value_id uir_math_reshape_to(uir_rule_context *context, uir_value_id value, uir_value_id shape);

/* Axes as data: i64 axes of -rank..rank-1 to bool [rank], true for each named axis. */
uir_value_id uir_math_axis_mask(uir_rule_context *context, uir_value_id axes, uint32_t rank);
/* One element per axis: values[k] at axes[k], `fallback` [rank] elsewhere. */
uir_value_id uir_math_per_axis(uir_rule_context *context, uir_value_id axes, uir_value_id values, uir_value_id fallback,
                               uint32_t rank);
/* Applies `step` along each axis in the mask, decided at run time axis by axis. `step` must keep the rank. */
uir_value_id uir_math_where_masked(uir_rule_context *context, uir_value_id value, uir_value_id mask, uint32_t rank,
                                   uir_value_id (*step)(uir_rule_context *context, uir_value_id value, uint32_t axis));
/* Elements `indices` (i64 [n], in range) of an axis. */
uir_value_id uir_math_take(uir_rule_context *context, uir_value_id value, uir_value_id indices, uint32_t axis);
/* Slices one axis to start .. start + size. */
uir_value_id uir_math_cut(uir_rule_context *context, uir_value_id value, uint32_t axis, uir_dim start, uir_dim size);
/* Inserts one axis of extent 1. */
uir_value_id uir_math_insert_axis(uir_rule_context *context, uir_value_id value, uint32_t axis);
/* Removes the axes in a bool [rank] mask (each of extent 1), `removed` of them. */
uir_value_id uir_math_drop_masked(uir_rule_context *context, uir_value_id value, uir_value_id mask, uint32_t removed);

/* Begins a loop body: a graph with inputs of the types, which the context's builder builds until the end. */
uir_status uir_math_begin_body(uir_rule_context *context, const uir_type *types, uint32_t count,
                               uir_graph_id *out_graph, uir_builder *out_saved);
uir_status uir_math_end_body(uir_rule_context *context, uir_builder saved, const uir_value_id *outputs, uint32_t count);
/* Makes a body with inputs of the types (iteration and condition first); its outputs: condition, carried, scanned. */
typedef uir_status (*uir_math_body)(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                    uir_graph_id *out_graph);
/* Replaces output `index` of a body by the result of `change`, called inside it. */
typedef uir_value_id uir_math_output_change(uir_rule_context *context, uir_value_id value, const void *user);
uir_status uir_math_change_output(uir_rule_context *context, uir_graph_id graph, uint32_t index,
                                  uir_math_output_change *change, const void *user);
/* A loop over such a body; the body is made again with wider types until its carried outputs have the types of its
 * inputs. */
uir_status uir_math_loop(uir_rule_context *context, uir_value_id trips, uir_value_id condition,
                         const uir_value_id *initial, uint32_t carried, uir_math_body maker, void *user,
                         uir_value_id *out_outputs, uint32_t output_count);

#endif
