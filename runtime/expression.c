/* Sizes: postfix programs over symbols. */
#include "runtime/plan.h"

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
} /* b > 0 */

static bool apply(uint32_t kind, int64_t a, int64_t b, int64_t *out) {
    switch ((uir_dim_kind)kind) {
    case UIR_DIM_ADD:
        return !__builtin_add_overflow(a, b, out);
    case UIR_DIM_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case UIR_DIM_MIN:
        return *out = a < b ? a : b, true;
    case UIR_DIM_MAX:
        return *out = a > b ? a : b, true;
    case UIR_DIM_FLOORDIV:
        return b > 0 && (*out = floor_divide(a, b), true);
    case UIR_DIM_CEILDIV:
        return b > 0 && (*out = floor_divide(a, b) + (a % b != 0), true);
    case UIR_DIM_MOD:
        return b > 0 && (*out = a - floor_divide(a, b) * b, true);
    case UIR_DIM_CONST:
    case UIR_DIM_SYMBOL:
        break;
    }
    return false;
}

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
            if (!apply(o[i].kind, stack[depth - 1], stack[depth], &stack[depth - 1])) return false;
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
