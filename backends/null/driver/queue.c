/* The null device: queues. A request executes when a wait needs it, or earlier as the seed draws; never before those in
 * front of it, nor before the points that its queue follows. */
#include "backends/null/driver/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- life ---- */
uir_status uir_null_create_queue(uir_driver_device *device, uint32_t points, void *native, uir_diagnostics *diagnostics,
                                 uir_driver_queue **out_queue) {
    uir_driver_queue *queue;
    *out_queue = NULL;
    if (native) return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "device null has no native queues");
    UIR_TRY_ALLOCATE(queue, uir_allocate_zeroed(&device->allocator, sizeof *queue));
    queue->device = device;
    queue->point_count = points + 1;
    queue->times = uir_allocate_zeroed(&device->allocator, queue->point_count * sizeof *queue->times);
    if (!queue->times) {
        uir_release(&device->allocator, queue, sizeof *queue);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&device->lock);
    queue->priority = null_draw(device);
    queue->next = device->queues;
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
    *out_queue = queue;
    return UIR_STATUS_OK;
}

/* ---- the ring ---- */
static null_request *request_at(const uir_driver_queue *queue, uint32_t index) {
    return &queue->requests[(queue->first + index) % queue->capacity];
}

static uir_status grow(uir_driver_queue *queue) {
    const uir_allocator *allocator = &queue->device->allocator;
    uint32_t capacity = queue->capacity ? 2 * queue->capacity : 16;
    null_request *requests;
    UIR_TRY_ALLOCATE(requests, uir_allocate_zeroed(allocator, capacity * sizeof *requests));
    for (uint32_t i = 0; i < queue->capacity; i++) requests[i] = *request_at(queue, i);
    if (queue->requests) uir_release(allocator, queue->requests, queue->capacity * sizeof *requests);
    queue->requests = requests;
    queue->capacity = capacity;
    queue->first = 0;
    return UIR_STATUS_OK;
}

static uir_status ensure_array(const uir_allocator *allocator, void **data, uint32_t *capacity, uint32_t count,
                               size_t size) {
    void *grown;
    if (count <= *capacity) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(grown, uir_allocate(allocator, count * size));
    if (*data) uir_release(allocator, *data, *capacity * size);
    *data = grown;
    *capacity = count;
    return UIR_STATUS_OK;
}

/* Gives all places that hold no request room for any launch, so that later ones allocate nothing. */
static uir_status ensure_arrays(uir_driver_queue *queue) {
    const uir_driver_device *device = queue->device;
    for (uint32_t i = queue->count; i < queue->capacity; i++) {
        null_request *request = request_at(queue, i);
        UIR_TRY(ensure_array(&device->allocator, (void **)&request->pointers, &request->pointer_capacity,
                             device->most_pointers, sizeof *request->pointers));
        UIR_TRY(ensure_array(&device->allocator, (void **)&request->begins, &request->begin_capacity,
                             device->most_phases, sizeof *request->begins));
    }
    return UIR_STATUS_OK;
}

/* The place of the next request. */
static uir_status next_request(uir_driver_queue *queue, null_request_kind kind, null_request **out_request) {
    const uir_driver_device *device = queue->device;
    if (queue->count == queue->capacity) UIR_TRY(grow(queue));
    null_request *request = request_at(queue, queue->count);
    if (request->pointer_capacity < device->most_pointers || request->begin_capacity < device->most_phases)
        UIR_TRY(ensure_arrays(queue));
    request->kind = kind;
    request->submitted = queue->device->clock;
    *out_request = request;
    return UIR_STATUS_OK;
}

static void count_user(const uir_region *region, int change) {
    if (region->buffer) null_buffer_of(region)->pending += (uint32_t)change;
}

/* Adds `change` to the pending requests of every buffer that the request uses, and of the queue that it follows. */
static void count_users(const null_request *request, int change) {
    for (uint32_t i = 0; request->kind == NULL_LAUNCH && i < request->launch->pointer_count; i++)
        count_user(&request->pointers[i], change);
    if (request->kind == NULL_LAUNCH) count_user(&request->workspace, change);
    if (request->kind == NULL_COPY) count_user(&request->copy.from, change);
    if (request->kind == NULL_COPY && request->locked) request->locked->pending += (uint32_t)change;
    if (request->kind == NULL_COPY || request->kind == NULL_FILL) count_user(&request->copy.to, change);
    if (request->kind == NULL_FOLLOW) request->other->followers += (uint32_t)change;
}

/* ---- executing ---- */
static double time_of(const uir_driver_queue *queue, uint64_t point) {
    return point && point + queue->point_count > queue->marked ? queue->times[point % queue->point_count] : 0;
}

static bool is_device_memory(const uir_region *region) {
    return region->buffer && null_buffer_of(region)->storage->kind == UIR_MEMORY_DEVICE;
}

static void copy_rows(const uir_driver_copy *copy) {
    char *to = uir_null_address(&copy->to), *from = uir_null_address(&copy->from);
    for (uint64_t i = 0; i < copy->rows; i++)
        memmove(to + i * copy->to_pitch, from + i * copy->from_pitch, (size_t)copy->row_bytes);
}

static double duration_of(const null_request *request) {
    uint64_t bytes = request->copy.rows * request->copy.row_bytes;
    if (request->kind == NULL_LAUNCH)
        return NULL_LAUNCH_MS + (double)uir_null_launch_bytes(request) / NULL_BYTES_PER_MS_MEMORY;
    bool bus =
        !is_device_memory(&request->copy.to) || (request->kind == NULL_COPY && !is_device_memory(&request->copy.from));
    return NULL_COPY_MS + (double)bytes / (bus ? NULL_BYTES_PER_MS_BUS : NULL_BYTES_PER_MS_MEMORY);
}

static void fail(uir_driver_queue *queue, uint32_t step, const char *text) {
    queue->has_failed = true;
    queue->failure = (uir_driver_failure){.step = step, .is_lost = queue->device->is_lost};
    snprintf(queue->failure.text, sizeof queue->failure.text, "%s", text);
}

static bool is_blocked(const null_request *request) {
    return request->kind == NULL_FOLLOW && request->other->reached < request->point && !request->other->has_failed;
}

static void do_request(uir_driver_queue *queue, null_request *request) {
    char failure[200] = "";
    if (queue->clock < request->submitted) queue->clock = request->submitted;
    switch (request->kind) {
    case NULL_LAUNCH:
        if (uir_null_execute(queue->device, request, failure, sizeof failure) != UIR_STATUS_OK)
            fail(queue, request->launch->step, failure);
        queue->clock += duration_of(request);
        break;
    case NULL_COPY:
        copy_rows(&request->copy);
        queue->clock += duration_of(request);
        break;
    case NULL_FILL:
        memset(uir_null_address(&request->copy.to), request->value, (size_t)request->copy.to.size);
        queue->clock += duration_of(request);
        break;
    case NULL_MARK:
        queue->times[request->point % queue->point_count] = queue->clock;
        queue->reached = request->point;
        break;
    case NULL_FOLLOW:
        if (request->other->has_failed) {
            queue->has_failed = true;
            queue->failure = request->other->failure;
        } else if (queue->clock < time_of(request->other, request->point)) {
            queue->clock = time_of(request->other, request->point);
        }
        break;
    }
}

/* Executes the first request of a queue, which is not blocked. What follows a failure is dropped. */
static void execute_first(uir_driver_queue *queue) {
    null_request *request = request_at(queue, 0);
    if (queue->device->is_lost && !queue->has_failed) fail(queue, UINT32_MAX, queue->device->why_lost);
    if (!queue->has_failed) do_request(queue, request);
    count_users(request, -1);
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
}

/* The queue of the highest priority that is not blocked goes on. Now and then a priority is drawn anew: orders that a
 * few such changes decide are likely to occur (Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees
 * of Finding Bugs, 2010). */
static void execute_any(uir_driver_device *device) {
    uir_driver_queue *chosen = NULL;
    for (uir_driver_queue *queue = device->queues; queue; queue = queue->next) {
        if (!queue->count) continue;
        if (null_draw(device) % NULL_CHANGES == 0) queue->priority = null_draw(device);
        if (!is_blocked(request_at(queue, 0)) && (!chosen || queue->priority > chosen->priority)) chosen = queue;
    }
    if (chosen) execute_first(chosen);
}

static void execute_early(uir_driver_device *device) {
    for (uint32_t i = 0; i < 8 && null_draw(device) % 4 < device->eagerness; i++) execute_any(device);
}

/* The queue whose first request has to execute next, so that this one goes on. */
static uir_driver_queue *find_blocker(uir_driver_queue *queue) {
    while (queue->count && is_blocked(request_at(queue, 0))) queue = request_at(queue, 0)->other;
    return queue;
}

/* A queue with requests comes nearer to its end: by what it needs alone, or by whatever goes on. */
static void approach(uir_driver_queue *queue) {
    if (queue->device->is_lazy)
        execute_first(find_blocker(queue));
    else
        execute_any(queue->device);
}

void uir_null_destroy_queue(uir_driver_queue *queue) {
    if (!queue) return;
    uir_driver_device *device = queue->device;
    pthread_mutex_lock(&device->lock);
    while (queue->count) approach(queue);
    /* Requests of other queues name this one. */
    for (uir_driver_queue *other = device->queues; other && queue->followers; other = other->next)
        while (other->count && queue->followers) approach(other);
    uir_driver_queue **link = &device->queues;
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
    pthread_mutex_unlock(&device->lock);
    for (uint32_t i = 0; i < queue->capacity; i++) {
        null_request *request = &queue->requests[i];
        if (request->pointers)
            uir_release(&device->allocator, request->pointers, request->pointer_capacity * sizeof *request->pointers);
        if (request->begins)
            uir_release(&device->allocator, request->begins, request->begin_capacity * sizeof *request->begins);
    }
    if (queue->requests) uir_release(&device->allocator, queue->requests, queue->capacity * sizeof *queue->requests);
    uir_release(&device->allocator, queue->times, queue->point_count * sizeof *queue->times);
    uir_release(&device->allocator, queue, sizeof *queue);
}

/* ---- requests ---- */
static uir_status refuse_failed(const uir_driver_queue *queue, uir_diagnostics *diagnostics) {
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "device null: a request failed before: %s",
                     queue->has_failed ? queue->failure.text : queue->device->why_lost);
}

/* Ends a submission: the request counts, and the device may go on. */
static void submit(uir_driver_queue *queue, null_request *request) {
    queue->count++;
    count_users(request, 1);
    execute_early(queue->device);
}

static uir_status submit_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                                uint32_t phase_count, uir_diagnostics *diagnostics) {
    null_request *request;
    UIR_TRY(uir_driver_check_launch(queue->device, &queue->device->facts, launch, phase, phase_count, diagnostics));
    UIR_TRY(next_request(queue, NULL_LAUNCH, &request));
    request->launch = launch;
    request->phase = phase;
    request->phase_count = phase_count;
    request->workspace = launch->workspace_size ? launch->workspace : (uir_region){.buffer = NULL};
    if (launch->pointer_count)
        memcpy(request->pointers, launch->pointers, launch->pointer_count * sizeof *request->pointers);
    if (phase_count) memcpy(request->begins, launch->begins + phase, phase_count * sizeof *request->begins);
    submit(queue, request);
    return UIR_STATUS_OK;
}

void uir_null_forget_locked(uir_driver_device *device, const null_storage *storage) {
    for (uir_driver_queue *queue = device->queues; queue; queue = queue->next) {
        for (uint32_t i = 0; i < queue->count; i++) {
            null_request *request = request_at(queue, i);
            if (request->kind == NULL_COPY && request->locked == storage) request->locked = NULL;
        }
    }
}

/* The page-locked memory of one side of a copy; the other is the device's. */
static null_storage *find_locked(uir_driver_device *device, const uir_driver_copy *copy) {
    const uir_region *here = is_device_memory(&copy->from) ? &copy->to : &copy->from;
    null_storage *by_address = uir_null_find_locked(device, here);
    bool is_locked = by_address || (here->buffer && null_buffer_of(here)->storage->kind == UIR_MEMORY_STAGING);
    if (is_device_memory(&copy->from) != is_device_memory(&copy->to)) {
        device->copies.locked += is_locked;
        device->copies.pageable += !is_locked;
    }
    return by_address;
}

static uir_status submit_copy(uir_driver_queue *queue, const uir_driver_copy *copy, uir_diagnostics *diagnostics) {
    null_request *request;
    UIR_TRY(uir_driver_check_copy(queue->device, copy, diagnostics));
    UIR_TRY(next_request(queue, NULL_COPY, &request));
    request->copy = *copy;
    request->locked = find_locked(queue->device, copy);
    submit(queue, request);
    return UIR_STATUS_OK;
}

static uir_status submit_fill(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                              uir_diagnostics *diagnostics) {
    null_request *request;
    UIR_TRY(uir_driver_check_region(queue->device, region, "the destination of a fill", diagnostics));
    UIR_TRY(next_request(queue, NULL_FILL, &request));
    request->copy = (uir_driver_copy){.to = *region, .rows = 1, .row_bytes = region->size};
    request->value = value;
    submit(queue, request);
    return UIR_STATUS_OK;
}

static uir_status submit_mark(uir_driver_queue *queue, uint64_t *out_point) {
    null_request *request;
    UIR_TRY(next_request(queue, NULL_MARK, &request));
    *out_point = request->point = ++queue->marked;
    submit(queue, request);
    return UIR_STATUS_OK;
}

static uir_status submit_follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                                uir_diagnostics *diagnostics) {
    null_request *request;
    UIR_TRY(uir_driver_check_follow(queue->device, other->device, point, other->marked, diagnostics));
    if (other == queue) return UIR_STATUS_OK;
    UIR_TRY(next_request(queue, NULL_FOLLOW, &request));
    request->other = other;
    request->point = point;
    submit(queue, request);
    return UIR_STATUS_OK;
}

/* Holds the lock, unless the queue takes no requests any more. */
static bool begin_request(uir_driver_queue *queue) {
    pthread_mutex_lock(&queue->device->lock);
    if (!queue->has_failed && !queue->device->is_lost) return true;
    pthread_mutex_unlock(&queue->device->lock);
    return false;
}

static uir_status end_request(uir_driver_queue *queue, uir_status status, uir_diagnostics *diagnostics) {
    pthread_mutex_unlock(&queue->device->lock);
    if (status == UIR_STATUS_OUT_OF_MEMORY)
        return uir_error(diagnostics, status, NULL, "device null cannot allocate a request");
    return status;
}

uir_status uir_null_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                           uint32_t phase_count, uir_diagnostics *diagnostics) {
    if (!begin_request(queue)) return refuse_failed(queue, diagnostics);
    return end_request(queue, submit_launch(queue, launch, phase, phase_count, diagnostics), diagnostics);
}

uir_status uir_null_copy(uir_driver_queue *queue, const uir_driver_copy *copy, uir_diagnostics *diagnostics) {
    if (!begin_request(queue)) return refuse_failed(queue, diagnostics);
    return end_request(queue, submit_copy(queue, copy, diagnostics), diagnostics);
}

uir_status uir_null_fill(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                         uir_diagnostics *diagnostics) {
    if (!begin_request(queue)) return refuse_failed(queue, diagnostics);
    return end_request(queue, submit_fill(queue, region, value, diagnostics), diagnostics);
}

uir_status uir_null_mark(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point) {
    if (!begin_request(queue)) return refuse_failed(queue, diagnostics);
    return end_request(queue, submit_mark(queue, out_point), diagnostics);
}

uir_status uir_null_follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                           uir_diagnostics *diagnostics) {
    if (!begin_request(queue)) return refuse_failed(queue, diagnostics);
    return end_request(queue, submit_follow(queue, other, point, diagnostics), diagnostics);
}

/* ---- waiting ---- */
static bool is_cancelled(const volatile bool *cancel) {
    return cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED);
}

/* One step towards the point. False: there is an answer. */
static bool go_on(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel, uir_status *out_status,
                  uir_driver_failure *out_failure) {
    if (queue->has_failed) {
        *out_failure = queue->failure;
        *out_status = is_cancelled(cancel) ? UIR_STATUS_CANCELLED : UIR_STATUS_DEVICE_FAILED;
        return false;
    }
    if (queue->reached >= point) {
        double time = time_of(queue, point);
        if (queue->device->clock < time) queue->device->clock = time;
        *out_status = UIR_STATUS_OK;
        return false;
    }
    *out_status = UIR_STATUS_CANCELLED;
    if (is_cancelled(cancel)) return false;
    execute_early(queue->device);
    if (queue->count && queue->reached < point && !queue->has_failed) approach(queue);
    return true;
}

uir_status uir_null_wait(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                         uir_driver_failure *out_failure) {
    uir_status status = UIR_STATUS_OK;
    bool goes_on = true;
    *out_failure = (uir_driver_failure){.step = UINT32_MAX};
    if (point > queue->marked) {
        snprintf(out_failure->text, sizeof out_failure->text, "a wait for a point that was not marked");
        return UIR_STATUS_DEVICE_FAILED;
    }
    while (goes_on) {
        pthread_mutex_lock(&queue->device->lock);
        goes_on = go_on(queue, point, cancel, &status, out_failure);
        pthread_mutex_unlock(&queue->device->lock);
    }
    return status;
}

bool uir_null_get_time(uir_driver_queue *queue, uint64_t point, double *out_ms) {
    pthread_mutex_lock(&queue->device->lock);
    bool known = point && point <= queue->reached && point + queue->point_count > queue->marked;
    if (known) *out_ms = queue->times[point % queue->point_count];
    pthread_mutex_unlock(&queue->device->lock);
    return known;
}
