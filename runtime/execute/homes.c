/* Results of bodies that are written where the LOOP or IF has them, so that control flow copies nothing.
 *
 * The home of a tensor that a body returns is the next slot of the loop's carried value, or the buffer of the IF's
 * result, which may have a home itself. A tensor has a home if a step of that body writes it, into memory that the
 * runtime chooses; the first of several results with one tensor has it. All accesses to the memory of a home are behind
 * the earlier ones: package/order.c. */
#include "runtime/internal.h"

/* ---- what has a home ---- */
static bool may_have_home(const uir_plan *p, const uir_rt_analysis *a, uint32_t root, uint32_t block) {
    const uir_rt_tensor_info *info = &a->tensors[root];
    uint32_t storage = p->tensors[root].storage;
    if (info->writer == UIR_PLAN_NONE || a->steps[info->writer].block != block || info->home != UIR_PLAN_NONE)
        return false;
    return storage == UIR_PLAN_STORAGE_ARENA ||
           (storage == UIR_PLAN_STORAGE_OWN && !uir_plan_turns(&p->steps[info->writer]));
}

static uir_status find_homes(uir_arena *arena, const uir_plan *p, uir_rt_analysis *a, uint32_t step, uint32_t block) {
    const uir_plan_step *s = &p->steps[step];
    uint32_t first = uir_plan_turns(s), count = first ? s->inputs.count - 2 : s->outputs.count;
    uir_rt_block_info *b = &a->blocks[block];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t root = a->tensors[uir_plan_get_word(p, p->blocks[block].outputs, first + i)].root;
        uir_rt_tensor_info *info = &a->tensors[root];
        if (!may_have_home(p, a, root, block)) continue;
        info->home = step;
        info->home_index = i;
        if (p->tensors[root].storage == UIR_PLAN_STORAGE_OWN) continue; /* its step allocates it */
        UIR_TRY(info->epoch < b->first_epoch ? uir_vector_push(arena, &b->homed, root)
                                             : uir_vector_push(arena, &a->epochs.data[info->epoch].homed, root));
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_find_homes(uir_arena *arena, const uir_plan *plan, uir_rt_analysis *analysis) {
    for (uint32_t i = 0; i < plan->steps_count; i++) {
        const uir_plan_step *s = &plan->steps[i];
        if (!uir_plan_has_bodies(s)) continue;
        UIR_TRY(find_homes(arena, plan, analysis, i, s->target));
        if (!uir_plan_turns(s)) UIR_TRY(find_homes(arena, plan, analysis, i, s->other));
    }
    return UIR_STATUS_OK;
}

/* ---- where it is ---- */
static uir_rt_carried *carried_of(const uir_runtime *r, uint32_t step, uint32_t index) {
    return &r->loops[r->analysis->steps[step].index].carried[index];
}

uir_rt_buffer *uir_rt_home(const uir_runtime *r, uint32_t tensor) {
    const uir_rt_tensor_info *info = &r->analysis->tensors[tensor];
    while (info->home != UIR_PLAN_NONE) {
        const uir_plan_step *s = &r->plan->steps[info->home];
        if (uir_plan_turns(s)) {
            uir_rt_carried *carried = carried_of(r, info->home, info->home_index);
            return &carried->slots[carried->next];
        }
        tensor = uir_plan_get_word(r->plan, s->outputs, info->home_index);
        info = &r->analysis->tensors[tensor];
    }
    return &r->owned[tensor];
}

uir_status uir_rt_place_homed(uir_runtime *r, const uint32_t *tensors, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = tensors[i];
        uir_rt_buffer *home = uir_rt_home(r, t);
        uint64_t span = r->tensors[t].span;
        if (span) UIR_TRY(uir_rt_buffer_grow(r, home, uir_plan_get_domain(r->plan, t), span, t));
        uir_rt_place_tensor(r, t, uir_rt_in_buffer(home, 0, home->capacity));
    }
    return UIR_STATUS_OK;
}

/* ---- what a loop carries on ---- */
/* Whether the root is the port of carried value `index` of the loop. */
static bool is_port_of(const uir_runtime *r, uint32_t root, uint32_t loop, uint32_t index) {
    const uir_plan_step *s = &r->plan->steps[loop];
    return uir_plan_turns(s) && root == uir_plan_get_word(r->plan, r->plan->blocks[s->target].inputs, index + 2);
}

bool uir_rt_is_carried_on(const uir_runtime *r, uint32_t result, uint32_t inner) {
    const uir_rt_tensor_info *info = &r->analysis->tensors[result];
    return info->home != UIR_PLAN_NONE && is_port_of(r, r->analysis->tensors[inner].root, info->home, info->home_index);
}

bool uir_rt_copies_result(const uir_runtime *r, uint32_t step, uint32_t index, uint32_t inner) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t root = r->analysis->tensors[inner].root;
    const uir_rt_tensor_info *info = &r->analysis->tensors[root];
    if (info->home == step && info->home_index == index) return false;
    return uir_plan_turns(s) ? !is_port_of(r, root, step, index)
                             : !uir_rt_is_carried_on(r, uir_plan_get_word(r->plan, s->outputs, index), inner);
}
