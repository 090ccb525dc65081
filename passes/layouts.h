/* Layout assignment: chooses layouts of a model's values for the device of its kernels, after the clean-up.
 *
 * In: a module of primitives that verifies; the context's device (NULL: nothing changes). Out: the same module, with
 * layouts of values and conversions between them; results are the same except for the order of sums. */
#ifndef UIR_PASSES_LAYOUTS_H
#define UIR_PASSES_LAYOUTS_H

#include "ir/graph/graph.h"

typedef enum uir_layout_rule {
#define UIR_LAYOUT_RULE(constant, name, purpose) UIR_LAYOUT_##constant,
#include "passes/layout_rules.def"
    UIR_LAYOUT_RULE_COUNT
} uir_layout_rule;
const char *uir_layout_rule_name(uir_layout_rule rule); /* NULL: unknown */

/* Makes images channels-last, by the rules that the context leaves enabled. */
uir_status uir_lay_out_images(uir_module *module, uir_pass_context *context);
/* Counts of the result: values with a layout other than row-major; nodes that convert a layout, as kernels of their own
 * or within one; and convolutions by Winograd's formula, after uir_choose_winograd. */
typedef struct uir_layout_counts {
    uint32_t values, conversions, winograd;
} uir_layout_counts;
uir_layout_counts uir_count_layouts(const uir_module *module);

/* Makes one value [N, C, pixels..] channels-last. */
uir_status uir_lay_out_image(uir_module *module, uir_value_id value);

/* To run after it: Winograd convolutions of channels-last images, with fewer multiplications. Results differ by
 * rounding. */
uir_status uir_choose_winograd(uir_module *module, uir_pass_context *context);

#endif
