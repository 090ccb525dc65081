/* Sizes: postfix programs over symbols. */
#include "package/plan.h"

bool uir_plan_evaluate(const uir_plan *plan, uint32_t expression, const int64_t *values, const bool *bound,
                       int64_t *out_value) {
    const uir_plan_expression *e = &plan->expressions[expression];
    const uir_plan_operation *o = plan->operations + e->first;
    int64_t stack[UIR_PLAN_MAX_STACK];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (o[i].kind == UIR_DIM_CONST) {
            stack[depth++] = o[i].value;
        } else if (o[i].kind == UIR_DIM_SYMBOL) {
            if (bound && !bound[o[i].value]) return false;
            stack[depth++] = values[o[i].value];
        } else {
            depth--;
            if (!uir_dim_operate((uir_dim_kind)o[i].kind, stack[depth - 1], stack[depth], &stack[depth - 1]))
                return false;
        }
    }
    *out_value = stack[0];
    return true;
}

uint32_t uir_plan_plain_symbol(const uir_plan *plan, uint32_t expression) {
    const uir_plan_expression *e = &plan->expressions[expression];
    const uir_plan_operation *o = plan->operations + e->first;
    return e->count == 1 && o->kind == UIR_DIM_SYMBOL ? (uint32_t)o->value : UIR_PLAN_NONE;
}
