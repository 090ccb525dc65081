/* What each kind of step reads, writes and runs, as a table: plan.h's rows. */
#include "package/plan.h"

const uir_plan_step_row *uir_plan_get_step_row(uint32_t kind) {
#define MANY UINT32_MAX
#define RANGE(least, most)                                                                                             \
    { least, most }
#define UIR_PLAN_STEP(constant, name, target, other, inputs, outputs, traits)                                          \
    {name, UIR_PLAN_OF_##target, UIR_PLAN_OF_##other, RANGE inputs, RANGE outputs, traits},
    static const uir_plan_step_row rows[] = {UIR_PLAN_STEPS(UIR_PLAN_STEP)};
#undef UIR_PLAN_STEP
#undef RANGE
#undef MANY
    return &rows[kind];
}
