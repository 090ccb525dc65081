/* Decomposes a graph of ONNX ops into a graph of primitives.
 *
 * In: the frontend's module. Out: a new module of primitives only, with all types inferred over symbolic dims; the
 * source module's values get the inferred types too, so that its text shows them. Each composite op has one rule, a
 * small function in a rules_*.c file named in rules.def. The rule is also the op's shape inference: the types of its
 * results are those of the primitives it built. Every problem of a model is reported, not just the first. */
#ifndef UIR_DECOMPOSE_DECOMPOSE_H
#define UIR_DECOMPOSE_DECOMPOSE_H

#include "ir/graph/graph.h"

/* Constants are shared with (retained from) the source module. The result takes over the source's storage. */
uir_status uir_decompose(uir_module *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_module **out_module);

/* Compares the declared types of values with those that uir_decompose wrote back. Another element type is BAD_FILE. A
 * shape that the node cannot produce is a warning; if `strict`, BAD_FILE. */
uir_status uir_decompose_check_declared(const uir_module *source, bool strict, uir_diagnostics *diagnostics);

/* Whether the op has a rule (for --list-ops). */
bool uir_decompose_has_rule(uir_op op);
/* The host primitive that the op's rule always uses; NONE if kernels compute the op. */
uir_op uir_decompose_host_primitive(uir_op op);
/* The primitive that the rule falls back to for operands unsupported by kernels; NONE if kernels support all. */
uir_op uir_decompose_other_primitive(uir_op op);

#endif
