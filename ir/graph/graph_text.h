/* The graph's text, shared by its printer and parser.
 *
 *   module opset 17
 *   size N min 1
 *   constant %w: f32[3] = [1, 2.5, -0]
 *   graph "main" (%x: f32[N, 3]) {
 *       %sum: f32[N] = reduce_sum(%x) {axes = [1], keep = 0} name "node_4" from "ReduceSum"
 *       bind_dims(%count) {dims = [K]}
 *       %y: f32[N] = if(%c) {then = graph "then" () { return %sum }, else = graph "else" () { ... }}
 *       return %y
 *   }
 *
 * A value is `%name`, followed by its name in quotes where that is not a plain one; a result that is absent and an
 * operand that is absent are `none`. A value that does not lie row-major has its layout behind the type (ir/machine/layout.h):
 * `%h: f32[N, 64, 14]:(896, 1, 64)`. After these, `{N, 3}` is what a shape-carrying value is known to hold. ONNX ops
 * are written `onnx "Conv" 11 (...)` (with the domain first when it is not ai.onnx) and give each attribute's kind:
 * `{group: int = 1}`. Numbers are exact: a NaN that is not the usual one is nan(bits). Constants too long to write out
 * are `hash "..."`. */
#ifndef UIR_IR_GRAPH_TEXT_H
#define UIR_IR_GRAPH_TEXT_H

#include "ir/graph/graph.h"

/* Of dtype, shape and contents. */
uint64_t uir_tensor_hash(const uir_tensor *tensor);
/* The bits of an element as an unsigned number; up to 64. */
uint64_t uir_element_bits(const uir_tensor *tensor, uint64_t index);
void uir_set_element_bits(uir_tensor *tensor, uint64_t index, uint64_t bits);
/* Elements as written: complex numbers are two floats of half the width. */
uir_tensor uir_tensor_as_written(const uir_tensor *tensor);

/* A constant that repeats one element may be written `splat x` up to this many elements. */
enum { UIR_MAX_SPLAT = 1 << 24 };

#endif
