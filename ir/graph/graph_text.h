/* The graph's text format, shared by its printer and parser.
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
 * A value is `%name`, followed by its name in quotes if that is not a plain one. An absent result or operand is `none`.
 * A value that is not row-major has its layout behind the type (ir/machine/layout.h):
 * `%h: f32[N, 64, 14]:(896, 1, 64)`. Behind these, `{N, 3}` is the known contents of a shape-carrying value. ONNX ops
 * are written `onnx "Conv" 11 (...)` (with the domain first unless it is ai.onnx), with each attribute's kind:
 * `{group: int = 1}`. Numbers are exact: a NaN other than the usual one is nan(bits). Constants too long to write out
 * are `hash "..."`. */
#ifndef UIR_IR_GRAPH_TEXT_H
#define UIR_IR_GRAPH_TEXT_H

#include "ir/graph/graph.h"

/* Hash of dtype, shape and contents. */
uint64_t uir_tensor_hash(const uir_tensor *tensor);
/* The bits of an element as an unsigned number, up to 64 of them. */
uint64_t uir_element_bits(const uir_tensor *tensor, uint64_t index);
void uir_set_element_bits(uir_tensor *tensor, uint64_t index, uint64_t bits);
/* The tensor with elements as the text has them: a complex number is two floats of half the width. */
uir_tensor uir_tensor_as_written(const uir_tensor *tensor);

/* A constant that repeats one element may be written `splat x` up to this many elements. */
enum { UIR_MAX_SPLAT = 1 << 24 };

#endif
