/* The shapes that a package's inputs have for given dims. */
#include "runtime/internal.h"

#include <string.h>

/* Marks the bindings that the expression's symbols take, which have their values from then on. */
static void bind_symbols(const uir_plan *plan, uint32_t expression, const uir_package_dim *dims, size_t count,
                         int64_t *values, bool *used) {
    const uir_plan_expression *e = &plan->expressions[expression];
    for (uint32_t i = 0; i < e->count; i++) {
        const uir_plan_operation *o = &plan->operations[e->first + i];
        if (o->kind != UIR_DIM_SYMBOL) continue;
        const char *name = uir_plan_get_text(plan, plan->symbols[o->value].name);
        for (size_t k = 0; k < count; k++) {
            if (strcmp(name, dims[k].name)) continue;
            values[o->value] = dims[k].value;
            used[k] = true;
        }
    }
}

static uir_status evaluate(const uir_package *p, uint32_t index, const uir_package_dim *dims, size_t count,
                           int64_t *values, bool *used, uir_diagnostics *diagnostics, int64_t *out_dims) {
    const uir_plan *plan = &p->plan;
    if (index >= plan->inputs_count)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the model has no input %u", index);
    for (uint32_t i = 0; i < plan->symbols_count; i++) values[i] = 1;
    for (uint32_t i = 0; i < plan->inputs_count; i++) {
        uir_plan_list extents = plan->tensors[plan->inputs[i].tensor].extents;
        for (uint32_t d = 0; d < extents.count; d++)
            bind_symbols(plan, uir_plan_get_word(plan, extents, d), dims, count, values, used);
    }
    for (size_t k = 0; k < count; k++) {
        if (!used[k])
            return uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL, "no input has a dim '%s'", dims[k].name);
        if (dims[k].value < 0)
            return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the dim '%s' cannot be %lld",
                             dims[k].name, (long long)dims[k].value);
    }
    uir_plan_list extents = plan->tensors[plan->inputs[index].tensor].extents;
    for (uint32_t d = 0; d < extents.count; d++) {
        if (!uir_plan_evaluate(plan, uir_plan_get_word(plan, extents, d), values, NULL, &out_dims[d]) ||
            out_dims[d] < 0)
            return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "dim %u of input '%s' has no value for these dims", d,
                             uir_plan_get_text(plan, plan->inputs[index].name));
    }
    return UIR_STATUS_OK;
}

uir_status uir_package_get_input_shape(const uir_package *package, uint32_t index, const uir_package_dim *dims,
                                       size_t count, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                       int64_t *out_dims) {
    uir_arena scratch;
    uir_arena_init(&scratch, allocator);
    int64_t *values = uir_arena_allocate_array(&scratch, (size_t)package->plan.symbols_count + 1, sizeof *values);
    bool *used = uir_arena_allocate_array(&scratch, count + 1, sizeof *used);
    uir_status status = values && used ? evaluate(package, index, dims, count, values, used, diagnostics, out_dims)
                                       : UIR_STATUS_OUT_OF_MEMORY;
    uir_arena_deinit(&scratch);
    return status;
}
