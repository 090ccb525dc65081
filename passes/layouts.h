/* Layouts of a model's values, after the clean-up: chosen for the device that kernels are made for.
 *
 * In: a module of primitives that verifies; the context's device (NULL: there is none, nothing is done). Out: the same
 * module, with layouts of values and conversions between them; results are the same but for the order of sums. */
#ifndef UIR_PASSES_LAYOUTS_H
#define UIR_PASSES_LAYOUTS_H

#include "ir/graph/graph.h"

typedef enum uir_layout_rule {
#define UIR_LAYOUT_RULE(constant, name, purpose) UIR_LAYOUT_##constant,
#include "passes/layout_rules.def"
    UIR_LAYOUT_RULE_COUNT
} uir_layout_rule;
const char *uir_layout_rule_name(uir_layout_rule rule); /* NULL: there is none */

/* Images have their channels innermost, by those of the rules that the context does not leave out. */
uir_status uir_lay_out_images(uir_module *module, uir_pass_context *context);
/* What it did: values that lie in another order than their dims, and the nodes that go from one order to another, whether
 * as kernels of their own or as a part of one; and convolutions by Winograd's formula, after uir_choose_winograd. */
typedef struct uir_layout_counts {
    uint32_t values, conversions, winograd;
} uir_layout_counts;
uir_layout_counts uir_count_layouts(const uir_module *module);

/* One value [N, C, pixels..]. */
uir_status uir_lay_out_image(uir_module *module, uir_value_id value);

/* After it: convolutions of images that lie so, by fewer multiplications. Results differ by rounding. */
uir_status uir_choose_winograd(uir_module *module, uir_pass_context *context);

#endif
