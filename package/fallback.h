/* Steps of a plan that are the host's because the device cannot execute them, for messages.
 *
 * In: a valid plan. Out: how many there are, the first of them with their reasons. A plan of the host alone has none.
 */
#ifndef UIR_PACKAGE_FALLBACK_H
#define UIR_PACKAGE_FALLBACK_H

#include "base/text.h"
#include "package/plan.h"

typedef struct uir_plan_fallbacks {
    uint32_t groups, operators; /* launches of the host's kernels; host operators */
} uir_plan_fallbacks;

uir_plan_fallbacks uir_plan_count_fallbacks(const uir_plan *plan);
/* Appends "2 groups and 1 host operator", `after`, " node 'a' (Exp): why; ...", with the first nodes of them. */
void uir_plan_describe_fallbacks(const uir_plan *plan, const char *after, uir_text *text);
/* UNSUPPORTED, with these words, if there are some. */
uir_status uir_plan_refuse_fallbacks(const uir_plan *plan, const uir_allocator *allocator,
                                     uir_diagnostics *diagnostics);

#endif
