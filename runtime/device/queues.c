/* The requests of a run: which queue takes them, what waits for what, and the end of all of them. */
#include "runtime/internal.h"

#include <string.h>

enum { FIRST = UIR_PLAN_QUEUE_COMPUTE, COUNT = UIR_PLAN_QUEUE_COUNT, JOIN_POINTS = 8 };

static const uir_driver *driver_of(const uir_runtime *r) {
    return r->queues.driver;
}

/* ---- failures ---- */
/* `awaited`: the step that was waited for, where the driver does not know which failed; it or one before it did. */
static uir_status fail(uir_runtime *r, const uir_driver_failure *failure, uint32_t awaited) {
    r->queues.is_lost |= failure->is_lost;
    if (failure->step >= r->plan->steps_count && awaited < r->plan->steps_count)
        return uir_rt_fail_step(r, awaited, UIR_STATUS_DEVICE_FAILED, "device %s: %s, here or at an earlier node",
                                r->package->device.facts->name, failure->text);
    if (failure->step < r->plan->steps_count)
        return uir_rt_fail_step(r, failure->step, UIR_STATUS_DEVICE_FAILED, "device %s: %s",
                                r->package->device.facts->name, failure->text);
    return uir_error(r->diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "device %s: %s", r->package->device.facts->name,
                     failure->text);
}

/* ---- life ---- */
uir_status uir_rt_queues_create(uir_runtime *r) {
    if (!r->plan->devices_count) return UIR_STATUS_OK;
    r->queues.driver = r->package->device.driver;
    UIR_TRY_ALLOCATE(r->queues.points,
                     uir_arena_allocate_array(&r->arena, (size_t)r->plan->steps_count + 1, sizeof *r->queues.points));
    return UIR_STATUS_OK;
}

/* A queue of the plan is the device's own as far as it has so many; the copies share one before they share the
 * kernels'. */
uint32_t uir_rt_find_owner(const uir_runtime *r, uint32_t queue) {
    uint32_t count = r->package->device.facts->queue_count;
    return queue - FIRST < count ? queue : count > 1 ? (uint32_t)UIR_PLAN_QUEUE_UPLOAD : (uint32_t)FIRST;
}

static uir_status open_queues(uir_runtime *r) {
    uir_rt_queues *q = &r->queues;
    for (uint32_t i = FIRST; i < COUNT; i++) {
        uint32_t owner = uir_rt_find_owner(r, i);
        if (q->queues[i]) continue;
        if (owner != i)
            q->queues[i] = q->queues[owner];
        else
            UIR_TRY(driver_of(r)->create_queue(r->package->device.device,
                                               r->analysis->awaited_count + JOIN_POINTS + uir_rt_times_points(r), NULL,
                                               r->diagnostics, &q->queues[i]));
        q->waited[i] = 0;
    }
    return UIR_STATUS_OK;
}

/* Each queue of the device once. */
static bool is_own(const uir_runtime *r, uint32_t queue) {
    return r->queues.queues[queue] && uir_rt_find_owner(r, queue) == queue;
}

/* ---- waits ---- */
void uir_rt_note_request(uir_runtime *r, uint32_t queue) {
    uint32_t owner = uir_rt_find_owner(r, queue);
    r->queues.has_news[owner] = true;
    r->queues.is_pending |= owner == FIRST;
}

/* On the watch's thread. */
static void ring(void *user) {
    uir_runtime *r = user;
    __atomic_store_n(&r->queues.is_late, true, __ATOMIC_RELAXED);
    __atomic_store_n(&r->cancel, true, __ATOMIC_RELAXED); /* what a wait polls, and kernels that can be interrupted */
}

static uir_status give_up(uir_runtime *r, uint64_t limit) {
    r->queues.is_late = false;
    r->queues.is_lost = true;
    __atomic_store_n(&r->cancel, false, __ATOMIC_RELAXED);
    driver_of(r)->give_up(r->package->device.device);
    return uir_budget_refuse_for(uir_budget_of(&r->allocator), UIR_LIMIT_DEVICE_TIME, limit, "a wait for its kernels",
                                 r->diagnostics);
}

/* Within the limit of time; `cancel`: polled, NULL: nothing ends the wait but that. */
static uir_status wait_for_point(uir_runtime *r, uint32_t owner, uint64_t point, const volatile bool *cancel,
                                 uir_driver_failure *failure) {
    uint64_t limit = uir_budget_get_limit(uir_budget_of(&r->allocator), UIR_LIMIT_DEVICE_TIME);
    uir_driver_queue *queue = r->queues.queues[owner];
    if (limit == UIR_NO_LIMIT) return driver_of(r)->wait(queue, point, cancel, failure);
    UIR_TRY(uir_watch_start(&r->queues.watch, limit, ring, r));
    uir_status status = driver_of(r)->wait(queue, point, cancel ? cancel : &r->queues.is_late, failure);
    uir_watch_stop(&r->queues.watch);
    return r->queues.is_late ? give_up(r, limit) : status;
}

static uir_status wait_until(uir_runtime *r, uint32_t queue, uint64_t point, uint32_t awaited) {
    uir_driver_failure failure = {.step = UIR_PLAN_NONE};
    uint32_t owner = uir_rt_find_owner(r, queue);
    if (point <= r->queues.waited[owner]) return UIR_STATUS_OK;
    r->statistics.waits++;
    uir_status status = wait_for_point(r, owner, point, &r->cancel, &failure);
    if (status == UIR_STATUS_OK) r->queues.waited[owner] = point;
    return status == UIR_STATUS_DEVICE_FAILED ? fail(r, &failure, awaited) : status;
}

uir_status uir_rt_wait(uir_runtime *r, uint32_t queue, uint64_t point) {
    return wait_until(r, queue, point, UIR_PLAN_NONE);
}

static uir_status wait_for_step(uir_runtime *r, uir_plan_queue queue, uint32_t step) {
    uir_rt_queues *q = &r->queues;
    uir_plan_queue its = uir_plan_get_queue(r->plan, step);
    if (!q->points[step]) return UIR_STATUS_OK;
    if (queue == UIR_PLAN_QUEUE_HOST) return wait_until(r, its, q->points[step], step);
    if (q->queues[queue] == q->queues[its]) return UIR_STATUS_OK;
    return driver_of(r)->follow(q->queues[queue], q->queues[its], q->points[step], r->diagnostics);
}

static bool is_in_body(const uir_runtime *r, uint32_t waited, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t block = r->analysis->steps[waited].block;
    const uir_plan_step_row *row = uir_plan_get_step_row(s->kind);
    return (row->target == UIR_PLAN_OF_BLOCK && s->target == block) ||
           (row->other == UIR_PLAN_OF_BLOCK && s->other == block);
}

uir_status uir_rt_mark(uir_runtime *r, uint32_t queue, uint64_t *out_point) {
    return driver_of(r)->mark(r->queues.queues[queue], r->diagnostics, out_point);
}

/* The compute queue follows the others. */
static uir_status gather(uir_runtime *r) {
    uir_rt_queues *q = &r->queues;
    uint64_t point;
    for (uint32_t i = FIRST + 1; i < COUNT; i++) {
        if (!is_own(r, i) || !q->has_news[i]) continue;
        UIR_TRY(uir_rt_mark(r, i, &point));
        UIR_TRY(driver_of(r)->follow(q->queues[FIRST], q->queues[i], point, r->diagnostics));
        q->has_news[i] = false;
        uir_rt_note_request(r, FIRST);
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_spread(uir_runtime *r, uint32_t step) {
    uir_rt_queues *q = &r->queues;
    uint64_t point = 0;
    if (!r->plan->devices_count || !uir_rt_is_on_device(r, step)) return UIR_STATUS_OK;
    if (r->analysis->steps[step].is_awaited || q->has_news[FIRST]) UIR_TRY(uir_rt_mark(r, FIRST, &point));
    if (r->analysis->steps[step].is_awaited) q->points[step] = point;
    for (uint32_t i = FIRST + 1; i < COUNT && q->has_news[FIRST]; i++)
        if (is_own(r, i)) UIR_TRY(driver_of(r)->follow(q->queues[i], q->queues[FIRST], point, r->diagnostics));
    q->has_news[FIRST] = false;
    return UIR_STATUS_OK;
}

uir_status uir_rt_begin_step(uir_runtime *r, uint32_t step) {
    uir_plan_list waits = uir_plan_get_waits(r->plan, step);
    uir_plan_queue queue =
        uir_plan_has_bodies(&r->plan->steps[step]) ? UIR_PLAN_QUEUE_HOST : uir_plan_get_queue(r->plan, step);
    /* Behind the last request of the run, the wait for its end serves all. */
    if (waits.count && r->analysis->steps[step].block == 0 && step > r->analysis->last_request) return uir_rt_drain(r);
    for (uint32_t i = 0; i < waits.count; i++) {
        uint32_t waited = uir_plan_get_word(r->plan, waits, i);
        if (!is_in_body(r, waited, step)) UIR_TRY(wait_for_step(r, queue, waited));
    }
    if (!uir_plan_has_bodies(&r->plan->steps[step]) || !uir_rt_is_on_device(r, step)) return UIR_STATUS_OK;
    UIR_TRY(gather(r));
    return uir_rt_spread(r, step);
}

uir_status uir_rt_end_body(uir_runtime *r, uint32_t step, uint32_t block) {
    uir_plan_list waits = uir_plan_get_waits(r->plan, step);
    if (!r->plan->devices_count || !uir_rt_is_on_device(r, step)) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < waits.count; i++) {
        uint32_t waited = uir_plan_get_word(r->plan, waits, i);
        if (r->analysis->steps[waited].block == block) UIR_TRY(wait_for_step(r, UIR_PLAN_QUEUE_HOST, waited));
    }
    return gather(r);
}

uir_status uir_rt_end_step(uir_runtime *r, uint32_t step) {
    if (!uir_rt_is_on_device(r, step) || uir_plan_has_bodies(&r->plan->steps[step]) ||
        !r->analysis->steps[step].is_awaited)
        return UIR_STATUS_OK;
    return uir_rt_mark(r, uir_plan_get_queue(r->plan, step), &r->queues.points[step]);
}

uir_status uir_rt_begin_turn(uir_runtime *r, uint32_t step, uint32_t *out_kept) {
    uir_rt_loop *loop = &r->loops[r->analysis->steps[step].index];
    *out_kept = (uint32_t)(loop->turns % RT_TURNS);
    return loop->turns++ && !*out_kept && uir_rt_is_on_device(r, step) ? uir_rt_drain(r) : UIR_STATUS_OK;
}

/* ---- the end of queues ---- */
/* Waits for what is in a queue as long as the limit of time allows; without a limit destroy_queue does. */
static void empty(uir_runtime *r, uint32_t queue) {
    uir_driver_failure failure;
    uint64_t point;
    if (!is_own(r, queue) || uir_budget_get_limit(uir_budget_of(&r->allocator), UIR_LIMIT_DEVICE_TIME) == UIR_NO_LIMIT)
        return;
    uir_diagnostics *diagnostics = r->diagnostics;
    r->diagnostics = NULL; /* the failure that closes the queues was told */
    if (driver_of(r)->mark(r->queues.queues[queue], NULL, &point) == UIR_STATUS_OK)
        (void)wait_for_point(r, queue, point, NULL, &failure);
    r->diagnostics = diagnostics;
}

/* Waits for what is in them, whatever becomes of it. */
void uir_rt_queues_close(uir_runtime *r) {
    for (uint32_t i = FIRST; i < COUNT && !r->queues.is_lost; i++) empty(r, i);
    for (uint32_t i = COUNT; i-- > FIRST;) {
        if (is_own(r, i)) driver_of(r)->destroy_queue(r->queues.queues[i]);
        r->queues.queues[i] = NULL;
        r->queues.has_news[i] = false;
    }
    r->queues.is_pending = r->queues.is_zero = r->queues.is_timed = false;
}

void uir_rt_queues_destroy(uir_runtime *r) {
    uir_rt_queues_close(r);
    uir_rt_times_destroy(r);
    uir_watch_deinit(&r->queues.watch);
    for (uint32_t i = 0; i < 2; i++) uir_rt_buffer_release(r, &r->queues.workspaces[i]);
}

/* ---- copies ---- */
void uir_rt_count_copy(uir_runtime *r, uint32_t queue, bool from_device, bool to_device, uint64_t bytes) {
    if (!bytes) return;
    uir_rt_note_request(r, queue);
    if (!from_device && to_device) r->statistics.bytes_to_device += bytes;
    if (from_device && !to_device) r->statistics.bytes_from_device += bytes;
}

static uir_status submit_copy(uir_runtime *r, uir_plan_queue queue, const uir_driver_copy *copy) {
    uint64_t bytes = copy->rows * copy->row_bytes;
    uint64_t point;
    if (!bytes) return UIR_STATUS_OK;
    UIR_TRY(uir_rt_times_begin(r, queue, &point));
    UIR_TRY(driver_of(r)->copy(r->queues.queues[queue], copy, r->diagnostics));
    r->queues.last_step = copy->step;
    UIR_TRY(uir_rt_times_end(r, (uir_rt_request){queue, copy->step, point, 0, bytes}));
    uir_rt_count_copy(r, queue, copy->from.buffer != NULL, copy->to.buffer != NULL, bytes);
    return UIR_STATUS_OK;
}

uir_status uir_rt_copy(uir_runtime *r, uint32_t step, uir_plan_queue queue, const uir_region *to,
                       const uir_region *from, uint64_t bytes) {
    if (!bytes) return UIR_STATUS_OK;
    if (queue == UIR_PLAN_QUEUE_HOST) {
        memmove(to->host, from->host, (size_t)bytes);
        return UIR_STATUS_OK;
    }
    const uir_driver_copy copy = {*from, *to, 1, bytes, bytes, bytes, step};
    return submit_copy(r, queue, &copy);
}

/* The bytes of a port's tensor: the rows between its slack. */
static uir_driver_copy describe_rows(const uir_runtime *r, uint32_t step, uint32_t tensor) {
    const uir_rt_tensor_info *info = &r->analysis->tensors[tensor];
    const int64_t *shape = uir_rt_shape(r, tensor);
    uint32_t rank = uir_rt_rank(r, tensor);
    uint64_t slack = info->slack == UIR_PLAN_NONE || info->slack_axis == UIR_PLAN_NONE
                         ? 0
                         : (uint64_t)r->values[info->slack],
             inner = uir_dtype_bits((uir_dtype)r->plan->tensors[tensor].dtype) / 8;
    uir_driver_copy copy = {.rows = 1, .row_bytes = r->tensors[tensor].bytes, .step = step};
    if (slack && copy.row_bytes) {
        for (uint32_t d = info->slack_axis + 1; d < rank; d++) inner *= (uint64_t)shape[d];
        copy.row_bytes = inner * (uint64_t)shape[info->slack_axis];
        copy.rows = r->tensors[tensor].bytes / copy.row_bytes;
        copy.from_pitch = copy.to_pitch = copy.row_bytes + inner * slack;
    }
    return copy;
}

bool uir_rt_is_bound_there(const uir_runtime *r, uint32_t tensor) {
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    bool is_input = t->storage == UIR_PLAN_STORAGE_INPUT;
    return (is_input ? &r->bound_inputs[t->index].at : &r->bound_outputs[t->index].at)->buffer != NULL;
}

uir_status uir_rt_device_copy(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t from = uir_plan_get_word(r->plan, s->inputs, 0), to = uir_plan_get_word(r->plan, s->outputs, 0);
    if (uir_rt_is_bound_there(r, from)) return UIR_STATUS_OK;
    uir_driver_copy copy = describe_rows(r, step, from);
    UIR_TRY(uir_rt_locate(r, from, &copy.from));
    UIR_TRY(uir_rt_locate(r, to, &copy.to));
    r->statistics.copies++;
    return submit_copy(r, uir_plan_get_queue(r->plan, step), &copy);
}

uir_status uir_rt_device_place_input(uir_runtime *r, uint32_t input, uint32_t tensor) {
    uir_rt_buffer *own = &r->device_inputs[input];
    if (r->inputs[input].buffer) {
        uir_rt_place_tensor(r, tensor, r->inputs[input]);
        return UIR_STATUS_OK;
    }
    UIR_TRY(uir_rt_buffer_grow(r, own, UIR_PLAN_ON_DEVICE, r->tensors[tensor].span, tensor));
    uir_rt_place_tensor(r, tensor, uir_rt_in_buffer(own, 0, own->capacity));
    return UIR_STATUS_OK;
}

/* ---- a run ---- */
uir_status uir_rt_drain(uir_runtime *r) {
    uint64_t point;
    if (!r->plan->devices_count) return UIR_STATUS_OK;
    UIR_TRY(gather(r));
    if (!r->queues.is_pending) return UIR_STATUS_OK;
    UIR_TRY(uir_rt_mark(r, FIRST, &point));
    UIR_TRY(wait_until(r, FIRST, point, r->queues.last_step));
    r->queues.is_pending = false;
    return UIR_STATUS_OK;
}

/* Inputs that the caller has on the device and steps of the host read. */
static uir_status fetch_inputs(uir_runtime *r) {
    for (uint32_t i = 0; i < r->plan->inputs_count; i++) {
        if (!r->inputs[i].buffer || !r->analysis->is_host_input[i]) continue;
        const uir_region to = uir_rt_on_host(r->staged[i].data, r->staged[i].capacity);
        UIR_TRY(uir_rt_copy(r, UIR_PLAN_NONE, UIR_PLAN_QUEUE_DOWNLOAD, &to, &r->inputs[i], r->inputs[i].size));
    }
    return uir_rt_drain(r);
}

static uir_status begin(uir_runtime *r) {
    uir_rt_queues *q = &r->queues;
    UIR_TRY(open_queues(r));
    if (!q->has_weights) {
        UIR_TRY(uir_rt_device_need_weights(r));
        r->statistics = (uir_runtime_statistics){0}; /* the constants' copy is no run's */
        for (uint32_t i = 0; i < r->analysis->epochs.count; i++) r->epochs[i].valid = false;
        q->has_weights = true;
    }
    UIR_TRY(uir_rt_times_begin_run(r));
    return fetch_inputs(r);
}

uir_status uir_rt_queues_begin(uir_runtime *r) {
    uir_rt_queues *q = &r->queues;
    memset(q->points, 0, r->plan->steps_count * sizeof *q->points);
    for (uint32_t i = 0; i < r->analysis->loop_count; i++) r->loops[i].turns = 0; /* no request is pending */
    if (q->is_lost)
        return uir_error_hint(r->diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "open the device and the model again",
                              "device %s was lost in an earlier run", r->package->device.facts->name);
    uir_status status = begin(r);
    if (status != UIR_STATUS_OK) uir_rt_queues_close(r);
    return status;
}

/* Results that the caller wants on the device and steps of the host wrote, or that lie elsewhere there. */
static uir_status give_outputs(uir_runtime *r) {
    for (uint32_t k = 0; k < r->plan->outputs_count; k++) {
        const uir_rt_binding *given = &r->bound_outputs[k];
        uint32_t tensor = uir_plan_get_home_tensor(r->plan, true, k);
        bool is_there = uir_plan_get_domain(r->plan, tensor) == UIR_PLAN_ON_DEVICE;
        uir_region from;
        if (!given->at.buffer || (is_there && !r->copied_out[k])) continue;
        if (given->strided && !given->in_place)
            return uir_error(r->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                             "output '%s': no kernel writes a buffer of the device with these strides",
                             uir_plan_get_text(r->plan, r->plan->outputs[k].name));
        UIR_TRY(uir_rt_locate(r, tensor, &from));
        uir_plan_queue queue = from.buffer ? UIR_PLAN_QUEUE_COMPUTE : UIR_PLAN_QUEUE_UPLOAD;
        uir_driver_copy copy = describe_rows(r, UIR_PLAN_NONE, tensor);
        copy.from = from;
        copy.to = given->at;
        UIR_TRY(submit_copy(r, queue, &copy));
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_queues_end(uir_runtime *r, uir_status status) {
    if (status == UIR_STATUS_OK) status = give_outputs(r);
    if (status == UIR_STATUS_OK) status = uir_rt_drain(r);
    if (status == UIR_STATUS_OK) uir_rt_times_end_run(r);
    if (status != UIR_STATUS_OK) uir_rt_queues_close(r);
    return status;
}
