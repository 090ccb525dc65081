/* The steps of a plan, one after the other. */
#include "base/dims/demand.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

uir_status uir_rt_fail_step(uir_runtime *r, uint32_t step, uir_status status, const char *format, ...) {
    const uir_plan_step *s = &r->plan->steps[step];
    uir_location where = uir_plan_get_location(r->plan, s->node, s->op);
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(r->diagnostics, status, &where, "%s", message);
}

static uint32_t input_of(const uir_runtime *r, uint32_t step, uint32_t k) {
    return uir_plan_get_word(r->plan, r->plan->steps[step].inputs, k);
}
static uint32_t output_of(const uir_runtime *r, uint32_t step, uint32_t k) {
    return uir_plan_get_word(r->plan, r->plan->steps[step].outputs, k);
}

/* ---- results whose shape a step finds ---- */
static int64_t *actual_shape(uir_runtime *r, uint32_t tensor) {
    return r->actual + r->analysis->tensors[tensor].shape;
}

/* Bytes of a tensor of this shape. */
static uir_status size_of_shape(uir_runtime *r, uint32_t step, uint32_t tensor, const int64_t *shape, size_t *out) {
    uint64_t count;
    if (uir_shape_element_count(shape, uir_rt_rank(r, tensor), &count) &&
        uir_dtype_storage_size((uir_dtype)r->plan->tensors[tensor].dtype, count, out))
        return uir_budget_check_elements(uir_budget_of(&r->allocator), count, r->diagnostics);
    return uir_rt_fail_step(r, step, UIR_STATUS_LIMIT, "its result is too large");
}

static uir_status learn_output(uir_runtime *r, uint32_t tensor, const int64_t *shape) {
    if (uir_rt_rank(r, tensor)) memcpy(actual_shape(r, tensor), shape, uir_rt_rank(r, tensor) * sizeof *shape);
    return uir_rt_learn_shape(r, tensor, shape);
}

static uir_status give_output(uir_runtime *r, uint32_t step, uint32_t k, const int64_t *shape, uir_region *out_region) {
    uint32_t tensor = output_of(r, step, k);
    uir_rt_buffer *owned = uir_rt_home(r, tensor);
    size_t bytes;
    if (r->plan->tensors[tensor].storage != UIR_PLAN_STORAGE_OWN) {
        UIR_TRY(uir_rt_check_shape(r, tensor, shape, "a result", NULL));
        return uir_rt_locate(r, tensor, out_region);
    }
    UIR_TRY(size_of_shape(r, step, tensor, shape, &bytes));
    UIR_TRY(uir_rt_buffer_grow(r, owned, uir_plan_get_domain(r->plan, tensor), bytes, tensor));
    *out_region = uir_rt_in_buffer(owned, 0, owned->capacity);
    uir_rt_place_tensor(r, tensor, *out_region);
    return learn_output(r, tensor, shape);
}

uir_status uir_rt_give_host_output(uir_runtime *r, uint32_t step, uint32_t k, const int64_t *shape, char **out_data) {
    uir_region at;
    UIR_TRY(give_output(r, step, k, shape, &at));
    *out_data = at.host;
    return UIR_STATUS_OK;
}

static uir_status rt_finish_outputs(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t epoch = r->analysis->steps[step].epoch;
    if (epoch != UIR_PLAN_NONE) UIR_TRY(uir_rt_enter_epoch(r, epoch));
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t tensor = output_of(r, step, i);
        if (tensor == UIR_PLAN_NONE || r->plan->tensors[tensor].storage != UIR_PLAN_STORAGE_OWN) continue;
        UIR_TRY(uir_rt_check_shape(r, tensor, actual_shape(r, tensor), "a result", NULL));
    }
    return UIR_STATUS_OK;
}

/* ---- simple steps ---- */
static uir_status run_copy(uir_runtime *r, uint32_t step) {
    uint32_t from = input_of(r, step, 0), to = output_of(r, step, 0);
    uir_region source, target;
    if (uir_plan_is_port_copy(r->plan, &r->plan->steps[step])) return uir_rt_device_copy(r, step);
    UIR_TRY(uir_rt_locate(r, from, &source));
    if (r->plan->tensors[to].storage == UIR_PLAN_STORAGE_OWN) {
        UIR_TRY(give_output(r, step, 0, uir_rt_shape(r, from), &target));
        UIR_TRY(rt_finish_outputs(r, step));
    }
    UIR_TRY(uir_rt_locate(r, to, &target));
    if (r->tensors[from].bytes != r->tensors[to].bytes)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "it copies %zu bytes to a tensor of %zu",
                                r->tensors[from].bytes, r->tensors[to].bytes);
    if (uir_rt_is_same_place(&source, &target) || !r->tensors[to].bytes) return UIR_STATUS_OK;
    r->statistics.copies++;
    size_t bytes = uir_plan_is_layout_copy(r->plan, &r->plan->steps[step]) ? r->tensors[to].span : r->tensors[to].bytes;
    return uir_rt_copy(r, step, uir_plan_get_queue(r->plan, step), &target, &source, bytes);
}

static uir_status run_host(uir_runtime *r, uint32_t step) {
    uir_rt_host_function *function = uir_rt_host_find(uir_plan_get_text(r->plan, r->plan->steps[step].target));
    UIR_TRY(function(r, step));
    r->statistics.host_calls++;
    return rt_finish_outputs(r, step);
}

static uir_status run_bind(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t tensor = input_of(r, step, 0), epoch = r->analysis->steps[step].epoch;
    int64_t elements = uir_rt_rank(r, tensor) ? uir_rt_shape(r, tensor)[0] : 1;
    char *data;
    UIR_TRY(uir_rt_locate_host(r, tensor, &data));
    if (elements != (int64_t)s->symbols.count)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "%lld values are bound to %u dims", (long long)elements,
                                s->symbols.count);
    for (uint32_t i = 0; i < s->symbols.count; i++) {
        int64_t value = uir_dtype_load_integer((uir_dtype)r->plan->tensors[tensor].dtype, data, i);
        uir_status status = uir_rt_bind_symbol(r, uir_plan_get_word(r->plan, s->symbols, i), value);
        if (status != UIR_STATUS_OK) return uir_rt_fail_step(r, step, status, "it sets a dim to an invalid value");
    }
    return epoch == UIR_PLAN_NONE ? UIR_STATUS_OK : uir_rt_enter_epoch(r, epoch);
}

static uir_status run_dims(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t tensor = output_of(r, step, 0);
    int64_t elements = uir_rt_rank(r, tensor) ? uir_rt_shape(r, tensor)[0] : 1, value;
    char *data;
    UIR_TRY(uir_rt_locate_host(r, tensor, &data));
    if (elements != (int64_t)s->values.count)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_FILE, "%u dims for %lld elements", s->values.count,
                                (long long)elements);
    for (uint32_t i = 0; i < s->values.count; i++) {
        if (!uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, s->values, i), r->values, r->bound, &value))
            return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "a dim has no value");
        uir_dtype_store_integer((uir_dtype)r->plan->tensors[tensor].dtype, data, i, value, false,
                                UIR_ROUND_NEAREST_EVEN);
    }
    return UIR_STATUS_OK;
}

/* The same words as the interpreter's (ir/graph/interpret/interpret_gather.c). */
static uir_status run_check(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t tensor = input_of(r, step, 0), bounds = s->values.count / 2;
    int64_t values[2 * UIR_PLAN_MAX_RANK];
    char *data, message[512];
    uint64_t at;
    UIR_TRY(uir_rt_locate_host(r, tensor, &data));
    for (uint32_t i = 0; i < s->values.count; i++)
        if (!uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, s->values, i), r->values, r->bound, &values[i]))
            return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "a dim has no value");
    uir_index_demand demand = {.dtype = (uir_dtype)r->plan->tensors[tensor].dtype,
                               .data = data,
                               .rank = uir_rt_rank(r, tensor),
                               .shape = uir_rt_shape(r, tensor),
                               .low = values,
                               .high = values + bounds,
                               .bounds = bounds,
                               .name = uir_plan_get_text(r->plan, s->target),
                               .ends = s->other != 0};
    if (uir_indices_hold(&demand, &at)) return UIR_STATUS_OK;
    uir_index_describe(&demand, at, message, sizeof message);
    return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "%s", message);
}

/* ---- bodies ---- */
/* The copies that a LOOP or IF makes of a tensor, unless it is there already. */
static uir_status copy_tensor(uir_runtime *r, uint32_t step, uint32_t tensor, const uir_region *to,
                              const uir_region *from, uint64_t bytes) {
    bool is_there = uir_plan_get_domain(r->plan, tensor) == UIR_PLAN_ON_DEVICE;
    if (!bytes || uir_rt_is_same_place(to, from)) return UIR_STATUS_OK;
    r->statistics.copies++;
    return uir_rt_copy(r, step, is_there ? UIR_PLAN_QUEUE_COMPUTE : UIR_PLAN_QUEUE_HOST, to, from, bytes);
}

static uir_status place_homed(uir_runtime *r, uint32_t block) {
    const uir_rt_block_info *info = &r->analysis->blocks[block];
    return uir_rt_place_homed(r, info->homed.data, info->homed.count);
}

/* ---- branches ---- */
static uir_status run_if(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uir_region from, to;
    char *condition;
    UIR_TRY(uir_rt_locate_host(r, input_of(r, step, 0), &condition));
    uint32_t id = r->tensors[input_of(r, step, 0)].bytes && *condition ? s->target : s->other;
    const uir_plan_block *block = &r->plan->blocks[id];
    uir_rt_forget_block(r, id);
    UIR_TRY(uir_rt_check_block(r, id));
    UIR_TRY(place_homed(r, id));
    UIR_TRY(uir_rt_run_block(r, id));
    UIR_TRY(uir_rt_end_body(r, step, id));
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t inner = uir_plan_get_word(r->plan, block->outputs, i), result = output_of(r, step, i);
        UIR_TRY(uir_rt_locate(r, inner, &from));
        if (uir_rt_is_carried_on(r, result, inner)) {
            uir_rt_place_tensor(r, result, from);
            UIR_TRY(learn_output(r, result, uir_rt_shape(r, inner)));
            continue;
        }
        UIR_TRY(give_output(r, step, i, uir_rt_shape(r, inner), &to));
        UIR_TRY(copy_tensor(r, step, inner, &to, &from, r->tensors[inner].bytes));
    }
    UIR_TRY(uir_rt_spread(r, step));
    uir_rt_forget_block(r, id);
    return rt_finish_outputs(r, step);
}

/* ---- loops ---- */
/* The shape of carried value i is that of the step's output. */
typedef struct loop_run {
    uir_runtime *r;
    uint32_t step, carried, scanned;
    const uir_plan_step *s;
    const uir_plan_block *block;
    uir_rt_loop *state;
} loop_run;

static void note_shape(loop_run *l, uint32_t i, uint32_t from) {
    uint32_t rank = uir_rt_rank(l->r, from);
    if (rank) memcpy(actual_shape(l->r, output_of(l->r, l->step, i)), uir_rt_shape(l->r, from), rank * sizeof(int64_t));
}

/* The next slot holds carried value i from now on. */
static void take_slot(uir_rt_carried *c) {
    const uir_rt_buffer *slot = &c->slots[c->next];
    c->at = uir_rt_in_buffer(slot, 0, slot->capacity);
    c->next ^= 1;
    c->is_given = false;
}

static uir_status fill_slot(loop_run *l, uint32_t i, uint32_t tensor, const uir_region *from, uint64_t bytes) {
    uir_rt_carried *c = &l->state->carried[i];
    uir_rt_buffer *slot = &c->slots[c->next];
    UIR_TRY(uir_rt_buffer_grow(l->r, slot, uir_plan_get_domain(l->r->plan, tensor), bytes, tensor));
    const uir_region to = uir_rt_in_buffer(slot, 0, slot->capacity);
    UIR_TRY(copy_tensor(l->r, l->step, tensor, &to, from, bytes));
    take_slot(c);
    return UIR_STATUS_OK;
}

/* The first turn reads the operand where it is, unless a queue may still copy from there when the loop has ended. */
static uir_status begin_carried(loop_run *l, uint32_t i) {
    uir_runtime *r = l->r;
    uir_rt_carried *c = &l->state->carried[i];
    uint32_t from = input_of(r, l->step, i + 2);
    UIR_TRY(uir_rt_locate(r, from, &c->at));
    c->is_given = true;
    c->next = 0;
    note_shape(l, i, from);
    if (!r->plan->devices_count || uir_plan_get_domain(r->plan, from) == UIR_PLAN_ON_DEVICE) return UIR_STATUS_OK;
    const uir_region at = c->at;
    return fill_slot(l, i, from, &at, r->tensors[from].bytes);
}

/* What the turn returns for carried value i: in its home, where the turn found it, or elsewhere. */
static uir_status take_carried(loop_run *l, uint32_t i) {
    uir_runtime *r = l->r;
    uir_rt_carried *c = &l->state->carried[i];
    uint32_t inner = uir_plan_get_word(r->plan, l->block->outputs, i + 1), root = r->analysis->tensors[inner].root;
    const uir_rt_tensor_info *info = &r->analysis->tensors[root];
    const uir_region home = uir_rt_in_buffer(&c->slots[c->next], 0, c->slots[c->next].capacity);
    uir_region from;
    UIR_TRY(uir_rt_locate(r, inner, &from));
    note_shape(l, i, inner);
    if (uir_rt_is_same_place(&from, &c->at)) return UIR_STATUS_OK;
    if (info->home != l->step || info->home_index != i || !uir_rt_is_same_place(&from, &home))
        return fill_slot(l, i, inner, &from, r->tensors[inner].bytes);
    take_slot(c);
    return UIR_STATUS_OK;
}

/* The body's inputs for this iteration: their places, then the symbols that their shapes teach. */
static uir_status bind_ports(loop_run *l) {
    uir_runtime *r = l->r;
    uint32_t id = l->s->target, epoch = r->analysis->blocks[id].epoch;
    uint32_t kept;
    uir_rt_forget_block(r, id);
    UIR_TRY(uir_rt_begin_turn(r, l->step, &kept));
    uir_rt_kept *turns = (uir_rt_kept *)(void *)l->state->kept.data;
    turns->iterations[kept] = l->state->iteration;
    turns->conditions[kept] = l->state->condition;
    uir_rt_place_tensor(r, uir_plan_get_word(r->plan, l->block->inputs, 0),
                        uir_rt_on_host(&turns->iterations[kept], sizeof(int64_t)));
    uir_rt_place_tensor(r, uir_plan_get_word(r->plan, l->block->inputs, 1),
                        uir_rt_on_host(&turns->conditions[kept], 1));
    for (uint32_t i = 0; i < l->carried; i++) {
        uint32_t port = uir_plan_get_word(r->plan, l->block->inputs, i + 2);
        uir_rt_place_tensor(r, port, l->state->carried[i].at);
        UIR_TRY(uir_rt_learn_shape(r, port, actual_shape(r, output_of(r, l->step, i))));
    }
    UIR_TRY(place_homed(r, id));
    if (epoch != UIR_PLAN_NONE) UIR_TRY(uir_rt_enter_epoch(r, epoch));
    for (uint32_t i = 0; i < l->carried; i++) {
        uint32_t port = uir_plan_get_word(r->plan, l->block->inputs, i + 2);
        UIR_TRY(uir_rt_check_shape(r, port, actual_shape(r, output_of(r, l->step, i)), "a value that a loop carries",
                                   NULL));
    }
    return UIR_STATUS_OK;
}

/* Room for `needed` bytes of a scanned output, contents kept. */
static uir_status grow_rows(loop_run *l, uint32_t tensor, uint64_t used, uint64_t needed, uint64_t expected) {
    uir_rt_buffer *buffer = &l->r->owned[tensor], grown = {0};
    if (needed <= buffer->capacity && (buffer->data || buffer->device)) return UIR_STATUS_OK;
    uint64_t size = expected > needed ? expected : needed * 2;
    UIR_TRY(uir_rt_buffer_grow(l->r, &grown, uir_plan_get_domain(l->r->plan, tensor), size, tensor));
    const uir_region from = uir_rt_in_buffer(buffer, 0, used), to = uir_rt_in_buffer(&grown, 0, size);
    uir_status status = copy_tensor(l->r, l->step, tensor, &to, &from, used);
    if (status == UIR_STATUS_OK && buffer->device) status = uir_rt_drain(l->r);
    if (status != UIR_STATUS_OK) {
        uir_rt_queues_close(l->r);
        uir_rt_buffer_release(l->r, &grown);
        return status;
    }
    uir_rt_buffer_release(l->r, buffer);
    *buffer = grown;
    return UIR_STATUS_OK;
}

static uir_status append_row(loop_run *l, uint32_t k, int64_t trips) {
    uir_runtime *r = l->r;
    uint32_t row = uir_plan_get_word(r->plan, l->block->outputs, 1 + l->carried + k),
             tensor = output_of(r, l->step, l->carried + k), rank = uir_rt_rank(r, row);
    int64_t *shape = actual_shape(r, tensor);
    uint64_t bytes = r->tensors[row].bytes, used, needed, expected = 0;
    uir_region from;
    if (l->state->iteration == 0 && rank) memcpy(shape + 1, uir_rt_shape(r, row), rank * sizeof *shape);
    shape[0] = l->state->iteration + 1;
    if (rank && memcmp(shape + 1, uir_rt_shape(r, row), rank * sizeof *shape))
        return uir_rt_fail_step(r, l->step, UIR_STATUS_BAD_DATA, "iteration %lld produces a row of another shape",
                                (long long)l->state->iteration);
    if (__builtin_mul_overflow(bytes, (uint64_t)l->state->iteration, &used) ||
        __builtin_add_overflow(used, bytes, &needed) || needed > SIZE_MAX / 4)
        return uir_rt_fail_step(r, l->step, UIR_STATUS_LIMIT, "its rows are too large");
    if (trips < INT64_MAX && __builtin_mul_overflow(bytes, (uint64_t)trips, &expected)) expected = 0;
    UIR_TRY(grow_rows(l, tensor, used, needed, expected));
    UIR_TRY(uir_rt_locate(r, row, &from));
    const uir_region to = uir_rt_in_buffer(&r->owned[tensor], used, bytes);
    return copy_tensor(r, l->step, row, &to, &from, bytes);
}

static uir_status iterate(loop_run *l, int64_t trips) {
    uir_runtime *r = l->r;
    char *condition;
    UIR_TRY(bind_ports(l));
    UIR_TRY(uir_rt_run_block(r, l->s->target));
    UIR_TRY(uir_rt_end_body(r, l->step, l->s->target));
    for (uint32_t i = 0; i < l->scanned; i++) UIR_TRY(append_row(l, i, trips));
    for (uint32_t i = 0; i < l->carried; i++) UIR_TRY(take_carried(l, i));
    UIR_TRY(uir_rt_spread(r, l->step));
    UIR_TRY(uir_rt_locate_host(r, uir_plan_get_word(r->plan, l->block->outputs, 0), &condition));
    l->state->condition = *condition != 0;
    l->state->iteration++;
    return UIR_STATUS_OK;
}

/* The extents of a row that no iteration gave: what the outer plan knows, 0 where it knows nothing. */
static void shape_of_nothing(loop_run *l, uint32_t tensor) {
    uir_plan_list extents = l->r->plan->tensors[tensor].extents;
    int64_t *shape = actual_shape(l->r, tensor);
    for (uint32_t d = 0; d < extents.count; d++) {
        if (!uir_plan_evaluate(l->r->plan, uir_plan_get_word(l->r->plan, extents, d), l->r->values, l->r->bound,
                               &shape[d]))
            shape[d] = 0;
    }
    if (extents.count) shape[0] = 0;
}

/* A result outlives the operand. */
static uir_status keep_given(loop_run *l) {
    uir_runtime *r = l->r;
    for (uint32_t i = 0; i < l->carried; i++) {
        uint32_t from = input_of(r, l->step, i + 2);
        const uir_region at = l->state->carried[i].at;
        if (l->state->carried[i].is_given) UIR_TRY(fill_slot(l, i, from, &at, r->tensors[from].bytes));
    }
    return uir_rt_spread(r, l->step);
}

static uir_status give_results(loop_run *l) {
    uir_runtime *r = l->r;
    UIR_TRY(keep_given(l));
    uir_rt_forget_block(r, l->s->target);
    for (uint32_t i = 0; i < l->carried + l->scanned; i++) {
        uint32_t tensor = output_of(r, l->step, i);
        const uir_rt_buffer *rows = &r->owned[tensor];
        if (i >= l->carried && l->state->iteration == 0) shape_of_nothing(l, tensor);
        uir_rt_place_tensor(r, tensor,
                            i < l->carried ? l->state->carried[i].at : uir_rt_in_buffer(rows, 0, rows->capacity));
        UIR_TRY(uir_rt_learn_shape(r, tensor, actual_shape(r, tensor)));
    }
    return rt_finish_outputs(r, l->step);
}

/* The shape of what a loop gives, where it is known before. */
static bool find_shape(const uir_runtime *r, uint32_t tensor, int64_t *out_shape) {
    uir_plan_list extents = r->plan->tensors[tensor].extents;
    for (uint32_t d = 0; d < extents.count; d++) {
        if (!uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, extents, d), r->values, r->bound, &out_shape[d]) ||
            out_shape[d] < 0)
            return false;
    }
    return true;
}

/* Whether no result has an element, however often the loop turns: then it does not. */
bool uir_rt_gives_nothing(const uir_runtime *r, uint32_t step) {
    uint32_t count = r->plan->steps[step].outputs.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tensor = output_of(r, step, i);
        int64_t shape[UIR_PLAN_MAX_RANK];
        uint64_t elements;
        if (!find_shape(r, tensor, shape) || !uir_shape_element_count(shape, uir_rt_rank(r, tensor), &elements) ||
            elements)
            return false;
    }
    return count > 0;
}

static uir_status give_nothing(loop_run *l) {
    for (uint32_t i = 0; i < l->carried + l->scanned; i++) {
        int64_t shape[UIR_PLAN_MAX_RANK];
        uir_region at;
        (void)find_shape(l->r, output_of(l->r, l->step, i), shape);
        UIR_TRY(give_output(l->r, l->step, i, shape, &at));
    }
    return rt_finish_outputs(l->r, l->step);
}

static uir_status run_loop(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    loop_run l = {.r = r,
                  .step = step,
                  .s = s,
                  .block = &r->plan->blocks[s->target],
                  .state = &r->loops[r->analysis->steps[step].index],
                  .carried = s->inputs.count - 2};
    int64_t trips = INT64_MAX;
    char *data;
    l.scanned = s->outputs.count - l.carried;
    if (uir_rt_gives_nothing(r, step)) return give_nothing(&l);
    UIR_TRY(uir_rt_buffer_grow(r, &l.state->kept, UIR_PLAN_ON_HOST, sizeof(uir_rt_kept), UIR_PLAN_NONE));
    l.state->condition = 1;
    l.state->iteration = 0;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t tensor = input_of(r, step, i);
        if (tensor == UIR_PLAN_NONE) continue;
        UIR_TRY(uir_rt_locate_host(r, tensor, &data));
        if (r->tensors[tensor].bytes == 0)
            return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "a bound has no value");
        if (i == 0)
            trips = uir_dtype_load_integer((uir_dtype)r->plan->tensors[tensor].dtype, data, 0);
        else
            l.state->condition = *data != 0;
    }
    for (uint32_t i = 0; i < l.carried; i++) UIR_TRY(begin_carried(&l, i));
    UIR_TRY(uir_rt_spread(r, step));
    if (trips > 0 && l.state->condition) UIR_TRY(uir_rt_check_block(r, s->target));
    while (l.state->iteration < trips && l.state->condition) {
        if (uir_rt_cancelled(r)) return UIR_STATUS_CANCELLED;
        UIR_TRY(iterate(&l, trips));
    }
    return give_results(&l);
}

/* ---- blocks ---- */
uir_status uir_rt_run_block(uir_runtime *r, uint32_t block) {
    static uir_status (*const runners[])(uir_runtime *, uint32_t) = {
        [UIR_PLAN_STEP_LAUNCH] = uir_rt_launch_run,
        [UIR_PLAN_STEP_COPY] = run_copy,
        [UIR_PLAN_STEP_HOST] = run_host,
        [UIR_PLAN_STEP_BIND] = run_bind,
        [UIR_PLAN_STEP_DIMS] = run_dims,
        [UIR_PLAN_STEP_CHECK] = run_check,
        [UIR_PLAN_STEP_LOOP] = run_loop,
        [UIR_PLAN_STEP_IF] = run_if,
    };
    const uir_plan_block *b = &r->plan->blocks[block];
    bool has_device = r->plan->devices_count != 0;
    for (uint32_t i = 0; i < b->step_count; i++) {
        uint32_t step = b->first_step + i;
        bool whole = r->options.trace && r->plan->steps[step].kind != UIR_PLAN_STEP_LAUNCH; /* those by thread */
        uint64_t start = r->options.measure || whole ? uir_rt_now() : 0;
        if (uir_rt_cancelled(r)) return UIR_STATUS_CANCELLED;
        if (has_device) UIR_TRY(uir_rt_begin_step(r, step));
        UIR_TRY(runners[r->plan->steps[step].kind](r, step));
        if (has_device) UIR_TRY(uir_rt_end_step(r, step));
        r->steps[step].calls++;
        uint64_t end = r->options.measure || whole ? uir_rt_now() : 0;
        if (r->options.measure) r->steps[step].nanoseconds += end - start;
        if (whole) uir_rt_trace(r, 0, (uir_rt_slice){start, end, step, 0, 0});
    }
    return UIR_STATUS_OK;
}
