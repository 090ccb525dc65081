#include "package/fallback.h"

enum { NAMED = 4 }; /* the others are counted */

static bool is_group(const uir_plan *plan, uint32_t step) {
    return plan->steps[step].kind == UIR_PLAN_STEP_LAUNCH;
}

uir_plan_fallbacks uir_plan_count_fallbacks(const uir_plan *plan) {
    uir_plan_fallbacks count = {0, 0};
    for (uint32_t i = 0; i < plan->steps_count; i++) {
        if (!uir_plan_is_fallback(plan, i)) continue;
        count.groups += is_group(plan, i);
        count.operators += !is_group(plan, i);
    }
    return count;
}

static void count_of(uir_text *text, uint32_t count, const char *what) {
    if (count) uir_text_append_format(text, "%u %s%s", count, what, count == 1 ? "" : "s");
}

void uir_plan_describe_fallbacks(const uir_plan *plan, const char *after, uir_text *text) {
    uir_plan_fallbacks count = uir_plan_count_fallbacks(plan);
    uint32_t named = 0;
    count_of(text, count.groups, "group");
    uir_text_append_string(text, count.groups && count.operators ? " and " : "");
    count_of(text, count.operators, "host operator");
    uir_text_append_string(text, after);
    for (uint32_t i = 0; i < plan->steps_count && named < NAMED; i++) {
        const uir_plan_step *s = &plan->steps[i];
        if (!uir_plan_is_fallback(plan, i)) continue;
        uir_text_append_format(text, "%s node '%s' (%s): %s", named++ ? ";" : "", uir_plan_get_text(plan, s->node),
                               uir_plan_get_text(plan, s->op), uir_plan_get_text(plan, plan->schedules[i].why));
    }
    if (count.groups + count.operators > named)
        uir_text_append_format(text, "; and %u more", count.groups + count.operators - named);
}

uir_status uir_plan_refuse_fallbacks(const uir_plan *plan, const uir_allocator *allocator,
                                     uir_diagnostics *diagnostics) {
    uir_plan_fallbacks count = uir_plan_count_fallbacks(plan);
    uir_text text;
    if (!count.groups && !count.operators) return UIR_STATUS_OK;
    uir_text_init(&text, allocator);
    uir_plan_describe_fallbacks(plan, " of the model:", &text);
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK)
        status =
            uir_error_hint(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                           "leave out --no-fallback (`no_fallback`), or choose another device",
                           "device %s cannot compute %s", uir_plan_get_text(plan, plan->devices[0].name), text.data);
    uir_text_deinit(&text);
    return status;
}
