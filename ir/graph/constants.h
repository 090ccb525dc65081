/* Constant folding: runs primitives on constants, for rules while a graph is built and for folding passes
 * afterwards. */
#ifndef UIR_IR_CONSTANTS_H
#define UIR_IR_CONSTANTS_H

#include "ir/graph/graph.h"

/* Whether the node's results depend on its operands only: no effect, no randomness, no subgraph, no symbolic dims. */
bool uir_node_is_pure(const uir_module *module, const uir_node_info *node);
/* The number of elements of a tensor type with constant dims; false for other types. */
bool uir_type_element_count(const uir_module *module, const uir_type *type, uint64_t *out_count);
/* The same with the shape: `out_shape` has the type's rank and may be NULL. */
bool uir_type_find_shape(const uir_module *module, const uir_type *type, int64_t *out_shape, uint64_t *out_count);
/* Runs a node on constants (`inputs[i]` NULL: an absent operand). `out_outputs`, cleared by the caller, get owned
 * tensors. They stay NULL if the node cannot run on these operands (an index out of range: the run will report it). */
uir_status uir_node_run_on_constants(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                                     uir_tensor *const *inputs, uir_arena *scratch, uir_tensor **out_outputs);
/* The same by pieces for a large elementwise node, broadcast or transpose of constants; the result is stored in a file.
 * An elementwise node may have one operand broadcast or transposed, and each reshaped. NULL with OK for other nodes, or
 * without space for a file. */
uir_status uir_node_run_in_pieces(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                                  uir_tensor **out_output);
/* Charges the cost of folding the node to the allocator's budget. False, and nothing charged, if it exceeds the
 * budget. */
bool uir_node_take_fold(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                        uir_tensor *const *inputs);

#endif
