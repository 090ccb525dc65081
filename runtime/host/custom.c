/* Nodes that the package leaves to its opener. */
#include "runtime/internal.h"

#include <string.h>

static uir_status fill_inputs(uir_runtime *r, uint32_t step, uir_arena *scratch, uir_custom_call *call) {
    const uir_plan_step *s = &r->plan->steps[step];
    uir_custom_tensor *inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(scratch, (size_t)s->inputs.count + 1, sizeof *inputs));
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        uint32_t tensor = uir_plan_get_word(r->plan, s->inputs, i);
        char *data;
        if (tensor == UIR_PLAN_NONE) continue;
        UIR_TRY(uir_rt_locate_host(r, tensor, &data));
        inputs[i] = (uir_custom_tensor){(uir_dtype)r->plan->tensors[tensor].dtype, uir_rt_rank(r, tensor),
                                        uir_rt_shape(r, tensor), data};
    }
    call->inputs = inputs;
    call->input_count = s->inputs.count;
    call->output_count = s->outputs.count;
    return UIR_STATUS_OK;
}

/* The symbols that have a value by now: those of results that data decides have none yet. */
static uir_status fill_symbols(uir_runtime *r, uint32_t step, uir_arena *scratch, uir_custom_call *call) {
    const uir_plan_attribute *ids = uir_rt_find_attribute(r, step, "symbols"),
                             *values = uir_rt_find_attribute(r, step, "values");
    if (!ids || !values || ids->kind != UIR_PLAN_INTEGERS || values->kind != UIR_PLAN_SIZES ||
        ids->count != values->count)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_FILE, "its dims are not listed");
    uir_custom_symbol *symbols;
    UIR_TRY_ALLOCATE(symbols, uir_arena_allocate_array(scratch, (size_t)ids->count + 1, sizeof *symbols));
    for (uint32_t i = 0; i < ids->count; i++) {
        int64_t value;
        if (!uir_plan_evaluate(r->plan, r->plan->words[values->first + i].value, r->values, r->bound, &value)) continue;
        symbols[call->symbol_count++] = (uir_custom_symbol){(uint32_t)r->plan->integers[ids->first + i].value, value};
    }
    call->symbols = symbols;
    return UIR_STATUS_OK;
}

uir_status uir_rt_run_custom(uir_runtime *r, uint32_t step) {
    uir_arena scratch;
    uir_custom_call call = {.node = (uint32_t)uir_rt_attribute_int(r, step, "node", 0),
                            .turn = r->steps[step].calls,
                            .cancel = &r->cancel,
                            .allocator = &r->allocator,
                            .diagnostics = r->diagnostics,
                            .runtime = r,
                            .step = step};
    uir_arena_init(&scratch, &r->allocator);
    uir_status status = fill_inputs(r, step, &scratch, &call);
    if (status == UIR_STATUS_OK) status = fill_symbols(r, step, &scratch, &call);
    if (status == UIR_STATUS_OK) status = r->package->custom(r->package->custom_user, &call);
    uir_arena_deinit(&scratch);
    return status;
}

uir_status uir_custom_call_give(const uir_custom_call *call, uint32_t output, const int64_t *shape, void **out_data) {
    char *data = NULL;
    if (output >= call->output_count) return UIR_STATUS_INVALID_ARGUMENT;
    UIR_TRY(uir_rt_give_host_output(call->runtime, call->step, output, shape, &data));
    *out_data = data;
    return UIR_STATUS_OK;
}
