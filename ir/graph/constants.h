/* Running primitives on constants: what rules need while a graph is built and what folding passes do afterwards. */
#ifndef UIR_IR_CONSTANTS_H
#define UIR_IR_CONSTANTS_H

#include "ir/graph/graph.h"

/* Whether the node's results follow from its operands alone: no effect, no randomness, no subgraph, no symbolic dims.
 */
bool uir_node_is_pure(const uir_module *module, const uir_node_info *node);
/* The number of elements of a tensor type whose dims are all constant; false otherwise. */
bool uir_type_element_count(const uir_module *module, const uir_type *type, uint64_t *out_count);
/* The shape as well, `out_shape` of the type's rank; NULL is fine. */
bool uir_type_find_shape(const uir_module *module, const uir_type *type, int64_t *out_shape, uint64_t *out_count);
/* Runs a node on constants (`inputs[i]` NULL where the operand is absent). `out_outputs`, cleared by the caller, hold
 * owned tensors; they stay NULL when the node cannot be run on these operands (an index out of range: the run will say
 * so). */
uir_status uir_node_run_on_constants(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                                     uir_tensor *const *inputs, uir_arena *scratch, uir_tensor **out_outputs);
/* The same for a large elementwise node or transpose of constants, of which an elementwise node may read one broadcast or
 * transposed and each reshaped, by pieces: the result lies in a file. NULL, and nothing is wrong, where the node is no such
 * one, or there is no room for a file. */
uir_status uir_node_run_in_pieces(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                                  uir_tensor **out_output);
/* Takes of the allocator's budget what folding the node costs. False, and nothing is taken, where that is too much. */
bool uir_node_take_fold(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                        uir_tensor *const *inputs);

#endif
