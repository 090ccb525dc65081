/* The host operators as a plan names them: what each reads and gives. */
#include "package/plan.h"

#include <string.h>

typedef enum presence { NO_TENSOR, NEEDED, MAYBE, ANY_NUMBER } presence;
enum { ANY = -1, ALIKE = -2, HOST_MAX_TENSORS = 5 };
typedef struct host_tensor {
    presence presence;
    int dtype, rank;
} host_tensor;
typedef struct host_row {
    const char *name;
    host_tensor operands[HOST_MAX_TENSORS + 1], results[HOST_MAX_TENSORS + 1]; /* the last is none */
} host_row;

static const host_row *get_rows(uint32_t *out_count) {
#define MANY                                                                                                           \
    { ANY_NUMBER, ANY, ANY }
#define TENSOR(dtype, rank)                                                                                            \
    { NEEDED, dtype, rank }
#define OPTIONAL(dtype, rank)                                                                                          \
    { MAYBE, dtype, rank }
#define TENSORS(...)                                                                                                   \
    { __VA_ARGS__ }
#define UIR_HOST_OP(text, call, operands, results) {text, TENSORS operands, TENSORS results},
    static const host_row rows[] = {
#include "package/host_ops.def"
    };
#undef TENSORS
#undef OPTIONAL
#undef TENSOR
#undef MANY
    *out_count = sizeof rows / sizeof rows[0];
    return rows;
}

uint32_t uir_plan_find_host_op(const char *name) {
    uint32_t count;
    const host_row *rows = get_rows(&count);
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(rows[i].name, name)) return i;
    return UIR_PLAN_NONE;
}

static bool is_kind(const uir_plan *plan, const uir_plan_step *step, host_tensor wanted, uint32_t tensor) {
    const uir_plan_tensor *t = &plan->tensors[tensor];
    bool alike = wanted.dtype == ALIKE || wanted.rank == ALIKE;
    const uir_plan_tensor *first = alike ? &plan->tensors[uir_plan_get_word(plan, step->inputs, 0)] : t;
    if (wanted.dtype == ALIKE ? t->dtype != first->dtype : wanted.dtype != ANY && t->dtype != (uint32_t)wanted.dtype)
        return false;
    return wanted.rank == ALIKE ? t->extents.count == first->extents.count
                                : wanted.rank == ANY || t->extents.count == (uint32_t)wanted.rank;
}

static const char *check_tensors(const uir_plan *plan, const uir_plan_step *step, const host_tensor *wanted,
                                 uir_plan_list list, uint32_t *out_at) {
    uint32_t *k = out_at;
    for (*k = 0; *k < list.count || wanted->presence == NEEDED; (*k)++) {
        uint32_t tensor = *k < list.count ? uir_plan_get_word(plan, list, *k) : UIR_PLAN_NONE;
        if (wanted->presence == ANY_NUMBER) return NULL;
        if (wanted->presence == NO_TENSOR) return "is one too many";
        if (tensor == UIR_PLAN_NONE && wanted->presence == NEEDED) return "is absent";
        if (tensor != UIR_PLAN_NONE && !is_kind(plan, step, *wanted, tensor)) return "has the wrong dtype or rank";
        wanted++;
    }
    return NULL;
}

const char *uir_plan_check_host_step(const uir_plan *plan, const uir_plan_step *step, bool *out_result,
                                     uint32_t *out_at) {
    uint32_t count;
    const host_row *row = &get_rows(&count)[uir_plan_find_host_op(uir_plan_get_text(plan, step->target))];
    *out_result = false;
    const char *what = check_tensors(plan, step, row->operands, step->inputs, out_at);
    if (what) return what;
    *out_result = true;
    return check_tensors(plan, step, row->results, step->outputs, out_at);
}
