/* decompose: a graph of ONNX ops becomes a graph of primitives.
 *
 * In: the frontend's module. Out: a new module that holds only primitives, with every type inferred over symbolic dims;
 * the source module's values get the inferred types too, so that its text shows them. Each composite op has one rule, a
 * small function in a rules_*.c file named in rules.def; that rule is also the op's shape inference: its result's types
 * are those of the primitives it built. Every problem of a model is reported, not just the first. */
#ifndef UIR_DECOMPOSE_DECOMPOSE_H
#define UIR_DECOMPOSE_DECOMPOSE_H

#include "ir/graph/graph.h"

/* Constants are shared with (retained from) the source module, whose storage must outlive the result: the result takes
 * over `release_storage`. */
uir_status uir_decompose(uir_module *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_module **out_module);

/* Holds what the file declares of values against the types that uir_decompose wrote back. Another element type is BAD_FILE;
 * a shape that cannot be the one that the node makes is a warning, or `strict` BAD_FILE. */
uir_status uir_decompose_check_declared(const uir_module *source, bool strict, uir_diagnostics *diagnostics);

/* Whether the op has a rule (for --list-ops). */
bool uir_decompose_has_rule(uir_op op);
/* The host primitive that the op's rule rests on; NONE where kernels compute it. */
uir_op uir_decompose_host_primitive(uir_op op);
/* The one that it falls back to for operands that kernels cannot; NONE where they can any. */
uir_op uir_decompose_other_primitive(uir_op op);

#endif
