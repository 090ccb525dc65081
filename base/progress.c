#include "base/progress.h"

#include <string.h>

/* Calls that tell of growth, and calls that tell of another stage alone; with the first, that of the first growth and
 * the last no more than all. */
enum { STEPS = 64, MOST_CHANGES = UIR_PROGRESS_MOST_CALLS - STEPS - 3 };
static const double almost = 1 - 1.0 / STEPS; /* 1 is the end's */

static bool is_asked_to_stop(const uir_operation *o) {
    return o->stopped || uir_budget_is_over(o->budget) || (o->cancel && __atomic_load_n(o->cancel, __ATOMIC_RELAXED));
}

uir_status uir_progress_tell(uir_progress progress, const char *stage, double fraction) {
    uir_operation *o = progress.operation;
    if (!o) return UIR_STATUS_OK;
    if (is_asked_to_stop(o)) return UIR_STATUS_CANCELLED;
    uir_budget_enter(o->budget, stage);
    if (!o->tell) return UIR_STATUS_OK;
    double part = fraction > 0 ? fraction < 1 ? fraction : 1 : 0,
           whole = progress.begin + part * (progress.end - progress.begin);
    if (whole > almost) whole = almost;
    if (whole < o->fraction) whole = o->fraction;
    bool grown = !o->stage || whole - o->fraction >= 1.0 / STEPS || (whole > 0 && o->fraction == 0);
    if (!grown) {
        if (!strcmp(stage, o->stage) || o->changes == MOST_CHANGES) return UIR_STATUS_OK;
        o->changes++;
    }
    o->stage = stage;
    o->fraction = whole;
    o->stopped = o->tell(o->user, stage, whole);
    return o->stopped ? UIR_STATUS_CANCELLED : UIR_STATUS_OK;
}

uir_status uir_operation_finish(uir_operation *o) {
    if (is_asked_to_stop(o)) return UIR_STATUS_CANCELLED;
    if (o->tell) (void)o->tell(o->user, "ready", 1);
    return UIR_STATUS_OK;
}
