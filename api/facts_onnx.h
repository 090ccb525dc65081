/* Facts of a model's file, from the frontend's info. */
#ifndef UIR_API_FACTS_ONNX_H
#define UIR_API_FACTS_ONNX_H

#include "api/facts.h"
#include "compile/compile.h"

/* Adds the counts of layouts, precision and faults, once there are kernels. */
void uir_facts_take_kernels(const uir_compile *compile, uir_facts *facts);
/* Facts of a compiled model without a package. Texts belong to `compile`; lists live in the arena. */
uir_status uir_facts_from_onnx(const uir_compile *compile, uir_arena *arena, uir_facts *out_facts);

#endif
