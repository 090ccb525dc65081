/* Builds primitives with their types inferred.
 *
 * In: operands. Out: values whose types come from the op's one inference function (ir/graph/infer/infer.c), which the
 * verifier runs again. A builder is sticky: after the first failure every call does nothing and returns the none value,
 * so a rule of many steps checks once, at its end (`builder.status`). Messages are added to the module's diagnostics
 * with the node being decomposed. */
#ifndef UIR_IR_BUILD_H
#define UIR_IR_BUILD_H

#include "ir/graph/graph.h"

typedef struct uir_builder {
    uir_module *module;
    uir_graph_id graph;   /* nodes are appended to it */
    uir_string node_name; /* of the ONNX node being decomposed: copied to every primitive and message */
    uir_op origin;
    uint32_t source;
    uir_status status;
} uir_builder;

void uir_builder_init(uir_builder *builder, uir_module *module, uir_graph_id graph);
/* Later nodes get the origin of this node: its name, op and number. */
void uir_builder_stand_for(uir_builder *builder, const uir_node_info *node);

/* Records a failure with a message; returns the status. */
uir_status uir_builder_fail(uir_builder *builder, uir_status status, const char *format, ...) UIR_PRINTF(3, 4);

/* Builds any primitive with `output_count` results. `attributes` are made with the uir_attribute helpers below. For ops
 * with a data-dependent result type (NON_ZERO, IF, LOOP, SEQUENCE_AT, ...) inference makes fresh symbols; a caller may
 * refine the type. */
void uir_build_node(uir_builder *builder, uir_op op, const uir_value_id *inputs, uint32_t input_count,
                    const uir_attribute *attributes, uint32_t attribute_count, uir_value_id *out_outputs,
                    uint32_t output_count);

/* Attribute makers; names are interned. On exhausted memory the builder fails. */
uir_attribute uir_attribute_int(uir_builder *builder, const char *name, int64_t value);
uir_attribute uir_attribute_ints(uir_builder *builder, const char *name, const int64_t *values, uint32_t count);
uir_attribute uir_attribute_float(uir_builder *builder, const char *name, double value);
uir_attribute uir_attribute_string(uir_builder *builder, const char *name, const char *value);
uir_attribute uir_attribute_dims(uir_builder *builder, const char *name, const uir_dim *values, uint32_t count);
uir_attribute uir_attribute_dtype(uir_builder *builder, const char *name, uir_dtype value);
uir_attribute uir_attribute_graph(uir_builder *builder, const char *name, uir_graph_id value);

/* Elementwise with numpy broadcasting made explicit: BROADCAST nodes are added where dims are not provably equal. */
uir_value_id uir_build_unary(uir_builder *builder, uir_op op, uir_value_id a);
uir_value_id uir_build_binary(uir_builder *builder, uir_op op, uir_value_id a, uir_value_id b);
uir_value_id uir_build_select(uir_builder *builder, uir_value_id condition, uir_value_id a, uir_value_id b);
uir_value_id uir_build_cast(uir_builder *builder, uir_value_id a, uir_dtype to); /* `a` itself if it is `to` already */

/* Constants: a rank-0 value of a dtype; a value from a tensor (takes over the reference). */
uir_value_id uir_build_scalar(uir_builder *builder, uir_dtype dtype, double value);
uir_value_id uir_build_integer_scalar(uir_builder *builder, uir_dtype dtype, int64_t value);
uir_value_id uir_build_constant(uir_builder *builder, uir_tensor *tensor);
uir_value_id uir_build_integers(uir_builder *builder, uir_dtype dtype, const int64_t *values,
                                uint32_t count); /* rank 1 */

uir_value_id uir_build_reduce(uir_builder *builder, uir_op op, uir_value_id a, const int64_t *axes, uint32_t axis_count,
                              bool keep);
/* The broadcast of two extents. If one is a constant other than 1, it is the result: the other must equal it or be 1,
 * which the run of the broadcast checks. */
uir_dim uir_build_broadcast_extent(uir_builder *builder, uir_dim a, uir_dim b);
uir_value_id uir_build_broadcast(uir_builder *builder, uir_value_id a, const uir_dim *dims, uint32_t rank);
uir_value_id uir_build_reshape(uir_builder *builder, uir_value_id a, const uir_dim *dims, uint32_t rank);
uir_value_id uir_build_transpose(uir_builder *builder, uir_value_id a, const int64_t *perm);
uir_value_id uir_build_slice(uir_builder *builder, uir_value_id a, const uir_dim *starts, const uir_dim *sizes,
                             const int64_t *steps);
/* Sliding windows along these axes of `a`; the `window` elements of one are `dilations` apart. */
uir_value_id uir_build_windows(uir_builder *builder, uir_value_id a, const uir_dim *starts, const uir_dim *sizes,
                               const int64_t *steps, const int64_t *axes, const int64_t *window,
                               const int64_t *dilations, uint32_t count);
uir_value_id uir_build_pad(uir_builder *builder, uir_value_id a, uir_value_id pad_value, const uir_dim *low,
                           const uir_dim *high, const int64_t *interior);
uir_value_id uir_build_concat(uir_builder *builder, const uir_value_id *values, uint32_t count, int64_t axis);
uir_value_id uir_build_gather(uir_builder *builder, uir_value_id data, uir_value_id indices, int64_t axis);
uir_value_id uir_build_iota(uir_builder *builder, uir_dtype dtype, const uir_dim *dims, uint32_t rank, int64_t axis);
/* Batch dims are broadcast explicitly. Operands have rank 2 or more: reshape vectors first. */
uir_value_id uir_build_matmul(uir_builder *builder, uir_value_id a, uir_value_id b, uir_dtype to);
/* Inserts or removes axes of extent 1 (sorted, numbered as in the result; removing: as in the operand). */
uir_value_id uir_build_unsqueeze(uir_builder *builder, uir_value_id a, const int64_t *axes, uint32_t count);
uir_value_id uir_build_squeeze(uir_builder *builder, uir_value_id a, const int64_t *axes, uint32_t count);

/* Dims and values. */
uir_dim uir_build_extent(uir_builder *builder, uir_value_id a, uint32_t axis);
uir_value_id uir_build_dim_values(uir_builder *builder, const uir_dim *dims, uint32_t count, bool scalar,
                                  uir_dtype dtype);
/* The elements of an integer value of rank 0 or 1 as dims: known ones directly, else fresh symbols bound by a BIND_DIMS
 * node. The number of elements must be a constant (else UNSUPPORTED with a message). `min` is a fact of the fresh
 * symbols. */
const uir_dim *uir_build_value_as_dims(uir_builder *builder, uir_value_id a, int64_t min, uint32_t *out_count);
/* `a` with extent `extent` along `axis`, for a node that is valid only then. If the two are not provably equal, a
 * run-time check and a reshape are built. If they provably differ, the result is `a` and the node's inference reports
 * it. */
uir_value_id uir_build_expect(uir_builder *builder, uir_value_id a, uint32_t axis, uir_dim extent);
/* Fails the run unless left relates to right, or, with `or_one`, is 1. If the answer is known now, the builder fails or
 * the call does nothing. `of` and `as` are the names in messages; a number's may be "". */
void uir_build_check(uir_builder *builder, const char *of, uir_dim left, uir_relation relation, bool or_one,
                     const char *as, uir_dim right);
/* Fails the run unless the sizes are equal. */
void uir_build_equal_sizes(uir_builder *builder, uir_dim a, uir_dim b);
/* Fails the run unless the integer scalar has the value. `name` is the scalar's name in the message. */
void uir_build_demand(uir_builder *builder, uir_value_id number, int64_t value, const char *name, size_t length);
/* The value's constant tensor; NULL: not a constant. */
uir_tensor *uir_build_constant_of(uir_builder *builder, uir_value_id a);

#endif
