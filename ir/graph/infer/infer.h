/* Type inference of primitives: one function per row of ops_primitive.def.
 *
 * In: a node with its operands' types in the module. Out: its results' types, or a message about the error. The builder
 * runs it to type new nodes, and the verifier runs it again to compare.
 *
 * An inferred dim may be none: it depends on data. The builder then makes a fresh symbol, and the verifier accepts any
 * dim. The interpreter binds a plain symbol, or checks the dim in its place. The same holds for an unknown rank or
 * dtype. */
#ifndef UIR_IR_INFER_H
#define UIR_IR_INFER_H

#include "ir/graph/graph.h"

typedef struct uir_inference {
    const uir_module *module; /* dims are made in module->dims */
    uir_dims *dims;
    uir_arena *arena; /* for the results' dims */
    uir_diagnostics *diagnostics;
    uir_location location;
    const uir_node_info *node;
    const uir_op_row *row;
    uir_type *types; /* node->output_count of them, zeroed; the function sets them */
} uir_inference;

/* Infers node->output_count types, with dims in `arena`. BAD_FILE for a malformed node; UNSUPPORTED if an operand's
 * rank or dtype is unknown. */
uir_status uir_infer_node(const uir_module *module, uir_arena *arena, uir_diagnostics *diagnostics,
                          const uir_location *location, const uir_node_info *node, uir_type *out_types);

/* Fills the symbolic contents of the node's outputs where they follow from its operands' (shape arithmetic). */
uir_status uir_infer_elements(uir_module *module, uir_node_id node);

/* ---- shared by infer*.c ---- */
uir_status uir_infer_fail(uir_inference *inference, const char *format, ...) UIR_PRINTF(2, 3);
/* The type of operand `index`. */
const uir_type *uir_infer_operand(const uir_inference *inference, uint32_t index);
bool uir_infer_has(const uir_inference *inference, uint32_t index);
/* Sets output `index` to a tensor and returns storage for its `rank` dims; NULL if memory is exhausted. The node may
 * lack that output. */
uir_dim *uir_infer_result(uir_inference *inference, uint32_t index, uir_dtype dtype, uint32_t rank);
/* The same with the given dims. */
uir_status uir_infer_result_dims(uir_inference *inference, uint32_t index, uir_dtype dtype, const uir_dim *dims,
                                 uint32_t rank);
/* Fails if a dim is none, which means overflow. */
uir_status uir_infer_check_made(uir_inference *inference, const uir_dim *dims, uint32_t count);
bool uir_infer_equal(const uir_inference *inference, uir_dim a, uir_dim b);   /* provably */
bool uir_infer_unequal(const uir_inference *inference, uir_dim a, uir_dim b); /* provably */
/* The more precise of two dims that may be equal: a constant, else the first. */
uir_dim uir_infer_sharper(const uir_inference *inference, uir_dim a, uir_dim b);
uir_status uir_infer_axis(uir_inference *inference, const char *name, uint32_t rank, uint32_t *out_axis);
/* An INTS or DIMS attribute; it must have `count` elements. */
uir_status uir_infer_ints(uir_inference *inference, const char *name, uint32_t count, const int64_t **out_values);
uir_status uir_infer_dims(uir_inference *inference, const char *name, uint32_t count, const uir_dim **out_values);
/* Checks that operand `index` is a tensor of known rank and dtype, with a dtype class in `classes`. */
uir_status uir_infer_check_tensor(uir_inference *inference, uint32_t index, uint32_t classes);
/* Checks an optional operand: if present, a scalar of the dtype. */
uir_status uir_infer_check_scalar(uir_inference *inference, uint32_t index, uir_dtype dtype);

/* Whether elements start, start + step, ... (size of them) are all in 0..extent-1. */
static inline bool uir_slice_fits(int64_t start, int64_t size, int64_t step, int64_t extent) {
    if (size <= 0) return size == 0;
    if (start < 0 || start >= extent) return false;
    return size - 1 <= (step > 0 ? (extent - 1 - start) / step : start / -step);
}

#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    uir_status uir_infer_##infer(uir_inference *inference);
#include "ir/graph/ops.def"

#endif
