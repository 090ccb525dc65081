/* Chooses the dtype of products' operands for a device: f32, or a half type that its `mma` supports.
 *
 * In: a module of primitives that verifies; the context's machine and precision. Out: the same module, with operands of
 * f32 products rounded to the half type (casts there and back, which mma does itself); constants have the half type.
 * Sums, results and all other values remain f32. */
#ifndef UIR_PASSES_PRECISION_H
#define UIR_PASSES_PRECISION_H

#include "ir/graph/graph.h"

typedef enum uir_precision {
#define UIR_PRECISION(constant, ...) UIR_PRECISION_##constant,
#include "passes/precisions.def"
    UIR_PRECISION_COUNT
} uir_precision;
const char *uir_precision_name(uir_precision precision); /* "f16" */
/* NULL is f32. INVALID_ARGUMENT with a message that lists the names. */
uir_status uir_precision_find(const char *name, uir_diagnostics *diagnostics, uir_precision *out_precision);

/* Counts of a module's products (matrices and convolutions with f32 sums): all, those with half operands by the
 * precision, and those unchanged because a constant is out of range. */
typedef struct uir_precision_counts {
    uint32_t products, f16, bf16, out_of_range;
} uir_precision_counts;

/* Applies the context's precision. INVALID_ARGUMENT for a half type that the device does not multiply. */
uir_status uir_choose_precision(uir_module *module, uir_pass_context *context);

/* Whether no other formula may replace a product: its operands are halves, by the precision or in the model, and the
 * machine multiplies them faster than f32 or the precision requested them. */
bool uir_precision_keeps(const uir_module *module, const uir_node_info *product, uir_precision precision,
                         const struct uir_machine *machine);

#endif
