/* In which dtype factors are multiplied, once the device is known: f32, or a half type that its `mma` takes.
 *
 * In: a module of primitives that verifies; the context's device and precision. Out: the same module, whose products of
 * f32 have factors that were rounded to the half type (casts there and back, which mma takes as the half type itself);
 * constants are of the half type. Sums, results and all else stay f32. */
#ifndef UIR_PASSES_PRECISION_H
#define UIR_PASSES_PRECISION_H

#include "ir/graph/graph.h"

typedef enum uir_precision {
#define UIR_PRECISION(constant, ...) UIR_PRECISION_##constant,
#include "passes/precisions.def"
    UIR_PRECISION_COUNT
} uir_precision;
const char *uir_precision_name(uir_precision precision); /* "f16" */
/* NULL is f32. INVALID_ARGUMENT with a message that has the words there are. */
uir_status uir_precision_find(const char *name, uir_diagnostics *diagnostics, uir_precision *out_precision);

/* Of a module's products (matrices and convolutions into sums of f32): how many there are, how many have factors that
 * are halves by the precision, and how many stayed as they were since a constant left the range. */
typedef struct uir_precision_counts {
    uint32_t products, f16, bf16, out_of_range;
} uir_precision_counts;

/* INVALID_ARGUMENT where a half type is named of which the device multiplies nothing. */
uir_status uir_choose_precision(uir_module *module, uir_pass_context *context);

/* A product whose factors are halves, by the precision or the model's own, which the machine multiplies faster than f32
 * or as it was asked to: no other formula takes its place. */
bool uir_precision_keeps(const uir_module *module, const uir_node_info *product, uir_precision precision,
                         const struct uir_device *device);

#endif
