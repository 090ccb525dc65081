/* When the queues of a device executed the requests of a run: a point before and behind each, whose times are read
 * later.
 */
#include "runtime/internal.h"

enum { PENDING = 1024, POINTS_EACH = 4 };

uint32_t uir_rt_times_points(const uir_runtime *r) {
    return r->options.queue_times && r->package->device.driver->get_time ? PENDING * POINTS_EACH : 0;
}

static bool is_timed(const uir_runtime *r) {
    return r->queues.is_timed;
}

static uir_driver_queue *queue_of(const uir_runtime *r, uint32_t queue) {
    return r->queues.queues[queue];
}

/* ---- reading ---- */
static void keep(uir_runtime *r, const uir_rt_request *request, double begin, double end) {
    uir_rt_times *t = &r->queues.times;
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 256, size = sizeof *t->slices;
        uir_rt_queue_slice *grown = uir_reallocate(&r->allocator, t->slices, t->capacity * size, capacity * size);
        if (!grown) return;
        t->slices = grown;
        t->capacity = capacity;
    }
    t->slices[t->count++] = (uir_rt_queue_slice){*request, begin, end};
}

/* Whether the device knows it by now; one whose times it has forgotten is left out. */
static bool read_times(uir_runtime *r, const uir_rt_request *request) {
    const uir_driver *driver = r->queues.driver;
    double begin, end;
    if (!driver->get_time(queue_of(r, request->queue), request->end, &end)) return false;
    if (driver->get_time(queue_of(r, request->queue), request->begin, &begin)) keep(r, request, begin, end);
    return true;
}

static void read_all(uir_runtime *r) {
    uir_rt_times *t = &r->queues.times;
    uint32_t left = 0;
    if (!t->has_origin)
        t->has_origin = r->queues.driver->get_time(queue_of(r, UIR_PLAN_QUEUE_COMPUTE), t->origin_point, &t->origin);
    for (uint32_t i = 0; i < t->pending_count; i++)
        if (!read_times(r, &t->pending[i])) t->pending[left++] = t->pending[i];
    t->pending_count = left;
}

/* ---- marking ---- */
uir_status uir_rt_times_begin_run(uir_runtime *r) {
    uir_rt_times *t = &r->queues.times;
    t->count = 0;
    t->pending_count = 0;
    t->has_origin = false;
    if (!uir_rt_times_points(r)) return UIR_STATUS_OK;
    if (!t->pending) UIR_TRY_ALLOCATE(t->pending, uir_arena_allocate_array(&r->arena, PENDING, sizeof *t->pending));
    r->queues.is_timed = true;
    return r->queues.driver->mark(queue_of(r, UIR_PLAN_QUEUE_COMPUTE), r->diagnostics, &t->origin_point);
}

void uir_rt_times_end_run(uir_runtime *r) {
    if (is_timed(r)) read_all(r);
    r->queues.is_timed = false;
}

/* Waits for the oldest of more requests than can be kept; this wait is no wait of the plan. */
static uir_status make_room(uir_runtime *r) {
    uir_rt_times *t = &r->queues.times;
    uir_driver_failure failure;
    read_all(r);
    if (t->pending_count < PENDING) return UIR_STATUS_OK;
    uir_status status =
        r->queues.driver->wait(queue_of(r, t->pending[0].queue), t->pending[0].end, &r->cancel, &failure);
    read_all(r);
    if (t->pending_count == PENDING) t->pending_count--;
    return status == UIR_STATUS_DEVICE_FAILED ? UIR_STATUS_OK : status; /* the run's own wait says what failed */
}

uir_status uir_rt_times_begin(uir_runtime *r, uint32_t queue, uint64_t *out_point) {
    *out_point = 0;
    if (!is_timed(r)) return UIR_STATUS_OK;
    if (r->queues.times.pending_count == PENDING) UIR_TRY(make_room(r));
    return r->queues.driver->mark(queue_of(r, queue), r->diagnostics, out_point);
}

uir_status uir_rt_times_end(uir_runtime *r, uir_rt_request request) {
    uir_rt_times *t = &r->queues.times;
    if (!is_timed(r)) return UIR_STATUS_OK;
    UIR_TRY(r->queues.driver->mark(queue_of(r, request.queue), r->diagnostics, &request.end));
    t->pending[t->pending_count++] = request;
    return UIR_STATUS_OK;
}

/* ---- answers ---- */
const uir_rt_queue_slice *uir_rt_times_get(const uir_runtime *r, size_t index) {
    return index < r->queues.times.count ? &r->queues.times.slices[index] : NULL;
}

void uir_rt_times_destroy(uir_runtime *r) {
    uir_rt_times *t = &r->queues.times;
    if (t->slices) uir_release(&r->allocator, t->slices, t->capacity * sizeof *t->slices);
}
