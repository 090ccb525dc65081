/* Steps that the host executes because the device cannot: launches of kernels that the device has not, and host
 * operators. Steps whose results are only sizes, conditions and operands of such steps are the host's by choice. */
#include "planner/internal.h"

#include <string.h>

typedef struct search {
    planner *p;
    bool *is_data; /* by root: read by the device, or by others than the host's steps */
    bool has_news;
} search;

static void mark(search *s, uint32_t tensor) {
    if (tensor == UIR_PLAN_NONE) return;
    bool *is_data = &s->is_data[uir_pl_find_root(s->p, tensor)];
    s->has_news |= !*is_data;
    *is_data = true;
}

static bool writes_data(const search *s, const uir_plan_step *step) {
    for (uint32_t k = 0; k < step->outputs.count; k++) {
        uint32_t t = uir_pl_get_word(s->p, step->outputs, k);
        if (t != UIR_PLAN_NONE && s->is_data[uir_pl_find_root(s->p, t)]) return true;
    }
    return false;
}

/* The operands from which data are made: of a loop all but its trips and condition, of a branch none. */
static void mark_operands(search *s, const uir_plan_step *step, uint32_t queue) {
    bool is_device = queue != UIR_PLAN_QUEUE_HOST && step->kind == UIR_PLAN_STEP_LAUNCH;
    uint32_t first = uir_plan_turns(step) ? 2 : 0;
    if (uir_plan_has_bodies(step) ? !first : !is_device && !writes_data(s, step)) return;
    for (uint32_t k = first; k < step->inputs.count; k++) mark(s, uir_pl_get_word(s->p, step->inputs, k));
}

static void mark_block(search *s, uint32_t block) {
    const uir_pl_block *b = &s->p->bodies.data[block];
    for (uint32_t i = b->steps.count; i-- > 0;) {
        const uir_plan_step *step = &b->steps.data[i];
        mark_operands(s, step, b->queues.data[i]);
        if (!uir_plan_has_bodies(step)) continue;
        for (uint32_t k = 0; k < (uir_plan_turns(step) ? 1u : 2u); k++) {
            uint32_t target = k ? step->other : step->target;
            const uir_pl_block *body = &s->p->bodies.data[target];
            for (uint32_t o = uir_plan_turns(step); o < body->outputs.count; o++) mark(s, body->outputs.data[o]);
            mark_block(s, target);
        }
    }
}

static bool is_needed(const search *s, const uir_plan_step *step, uint32_t queue) {
    if (queue != UIR_PLAN_QUEUE_HOST || (step->outputs.count && !writes_data(s, step))) return false;
    if (step->kind == UIR_PLAN_STEP_HOST) return true;
    return step->kind == UIR_PLAN_STEP_LAUNCH && !uir_pl_kernel_runs(s->p, step->target, UIR_PLAN_ON_DEVICE);
}

/* A host operator's remark is the reason. */
static uir_status find_why(planner *p, const uir_plan_step *step, uint32_t *out_why) {
    static const char none[] = "no kernel computes it";
    const char *why = step->kind == UIR_PLAN_STEP_LAUNCH ? p->sources[step->target].why : NULL;
    *out_why = step->remark;
    if (step->kind != UIR_PLAN_STEP_LAUNCH && p->texts.data[step->remark].count) return UIR_STATUS_OK;
    if (!why) why = none;
    return uir_pl_add_text(p, why, strlen(why), out_why);
}

uir_status uir_pl_find_fallbacks(planner *p) {
    search s = {.p = p, .has_news = true};
    UIR_TRY_ALLOCATE(s.is_data, uir_arena_allocate_array(&p->arena, (size_t)p->tensors.count + 1, sizeof *s.is_data));
    for (uint32_t t = 0; t < p->tensors.count; t++)
        s.is_data[t] = p->tensors.data[t].storage == UIR_PLAN_STORAGE_OUTPUT;
    while (s.has_news) {
        s.has_news = false;
        mark_block(&s, 0);
    }
    for (uint32_t b = 0; b < p->bodies.count; b++) {
        uir_pl_block *body = &p->bodies.data[b];
        for (uint32_t i = 0; i < body->steps.count; i++) {
            const uir_plan_step *step = &body->steps.data[i];
            uint32_t why = UIR_PLAN_NONE;
            if (is_needed(&s, step, body->queues.data[i])) UIR_TRY(find_why(p, step, &why));
            UIR_TRY(uir_vector_push(&p->arena, &body->whys, why));
        }
    }
    return UIR_STATUS_OK;
}
