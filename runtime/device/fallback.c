/* Steps that the host executes because the device cannot: which there are, and the bytes that are copied for them. */
#include "package/fallback.h"
#include "runtime/internal.h"

bool uir_package_has_device(const uir_package *p) {
    return p->plan.devices_count > 0;
}

uir_status uir_package_refuse_fallbacks(const uir_package *p, uir_diagnostics *diagnostics) {
    return uir_plan_refuse_fallbacks(&p->plan, &p->allocator, diagnostics);
}

uir_package_fallbacks uir_package_count_fallbacks(const uir_package *p) {
    uir_plan_fallbacks count = uir_plan_count_fallbacks(&p->plan);
    return (uir_package_fallbacks){count.groups, count.operators};
}

void uir_package_describe_fallbacks(const uir_package *p, const char *after, uir_text *text) {
    uir_plan_describe_fallbacks(&p->plan, after, text);
}

/* The first step of the host that reads the tensor because the device cannot; NONE: none. */
static uint32_t find_reader(const uir_runtime *r, uint32_t root) {
    const uir_plan *p = r->plan;
    for (uint32_t i = 0; i < p->steps_count; i++) {
        for (uint32_t k = 0; k < p->steps[i].inputs.count && uir_plan_is_fallback(p, i); k++) {
            uint32_t t = uir_plan_get_word(p, p->steps[i].inputs, k);
            if (t != UIR_PLAN_NONE && r->analysis->tensors[t].root == root) return i;
        }
    }
    return UIR_PLAN_NONE;
}

uint64_t uir_rt_count_fallback_bytes(const uir_runtime *r, uint32_t step) {
    const uir_plan *p = r->plan;
    uint64_t bytes = 0;
    if (!uir_plan_is_fallback(p, step)) return 0;
    for (uint32_t i = 0; i < p->steps_count; i++) {
        if (p->steps[i].kind != UIR_PLAN_STEP_COPY || !r->steps[i].calls) continue;
        uint32_t from = uir_plan_get_word(p, p->steps[i].inputs, 0), to = uir_plan_get_word(p, p->steps[i].outputs, 0);
        const uir_rt_tensor_info *source = &r->analysis->tensors[r->analysis->tensors[from].root];
        if (uir_plan_get_domain(p, from) == uir_plan_get_domain(p, to)) continue;
        bool is_upload = uir_plan_get_domain(p, to) == UIR_PLAN_ON_DEVICE;
        uint32_t owner = is_upload ? source->writer : find_reader(r, r->analysis->tensors[to].root);
        if (owner == step) bytes += r->tensors[from].span * r->steps[i].calls;
    }
    return bytes;
}
