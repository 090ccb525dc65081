/* Facts of a model's file, as the frontend found them. */
#ifndef UIR_API_FACTS_ONNX_H
#define UIR_API_FACTS_ONNX_H

#include "api/facts.h"
#include "compile/compile.h"

/* Of a model that nothing was packaged of yet. Texts stay the compiled model's; lists lie in the arena. */
/* What layouts and the precision made of it, once there are kernels. */
void uir_facts_take_kernels(const uir_compile *compile, uir_facts *facts);
uir_status uir_facts_from_onnx(const uir_compile *compile, uir_arena *arena, uir_facts *out_facts);

#endif
