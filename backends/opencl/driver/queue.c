/* The OpenCL driver: queues are in order; a point is the event of a marker. */
#include "backends/opencl/driver/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_NANOSECONDS = 1000000 }; /* between looks at flags that no event sets */

/* ---- bells ---- */
/* What events ring when they end, so that a wait sleeps until then. A callback may come when the queue is gone and the
 * device given up: who is last frees the bell, whose memory is therefore the system's. */
struct cl_bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    uint64_t rings; /* counted, so that none is missed */
    uint32_t users; /* the queue, and callbacks that have yet to come */
};

static cl_bell *create_bell(void) {
    pthread_condattr_t clock;
    uir_allocator system = uir_allocator_system();
    cl_bell *bell = uir_allocate_zeroed(&system, sizeof *bell);
    if (!bell) return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&bell->lock, NULL);
    pthread_cond_init(&bell->rung, &clock);
    pthread_condattr_destroy(&clock);
    bell->users = 1;
    return bell;
}

static void leave_bell(cl_bell *bell) {
    pthread_mutex_lock(&bell->lock);
    bool is_last = --bell->users == 0;
    pthread_mutex_unlock(&bell->lock);
    if (!is_last) return;
    pthread_cond_destroy(&bell->rung);
    pthread_mutex_destroy(&bell->lock);
    uir_allocator system = uir_allocator_system();
    uir_release(&system, bell, sizeof *bell);
}

/* On a thread of the library. */
static void ring(cl_handle event, int32_t state, void *user) {
    cl_bell *bell = user;
    (void)event, (void)state;
    pthread_mutex_lock(&bell->lock);
    bell->rings++;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->lock);
    leave_bell(bell);
}

static int32_t hang_bell(const cl_library *cl, cl_bell *bell, cl_handle event) {
    pthread_mutex_lock(&bell->lock);
    bell->users++;
    pthread_mutex_unlock(&bell->lock);
    int32_t error = cl->clSetEventCallback(event, CL_COMPLETE, ring, bell);
    if (error) leave_bell(bell);
    return error;
}

/* Until it has rung more than `rings` times, or it is time to look at flags. */
static void listen(cl_bell *bell, uint64_t rings) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += LOOK_NANOSECONDS;
    if (end.tv_nsec >= 1000000000) {
        end.tv_nsec -= 1000000000;
        end.tv_sec++;
    }
    pthread_mutex_lock(&bell->lock);
    if (bell->rings <= rings) pthread_cond_timedwait(&bell->rung, &bell->lock, &end);
    pthread_mutex_unlock(&bell->lock);
}

static uint64_t count_rings(cl_bell *bell) {
    pthread_mutex_lock(&bell->lock);
    uint64_t rings = bell->rings;
    pthread_mutex_unlock(&bell->lock);
    return rings;
}

/* ---- life ---- */
uir_status uir_opencl_create_queue(uir_driver_device *d, uint32_t points, void *native, uir_diagnostics *diagnostics,
                                   uir_driver_queue **out_queue) {
    uir_driver_queue *queue;
    int32_t error = 0;
    *out_queue = NULL;
    UIR_TRY_ALLOCATE(queue, uir_allocate_zeroed(&d->allocator, sizeof *queue));
    queue->device = d;
    queue->point_count = points + 1;
    queue->events = uir_allocate_zeroed(&d->allocator, queue->point_count * sizeof *queue->events);
    queue->bell = create_bell();
    bool has_memory = queue->events && queue->bell;
    if (has_memory && native) {
        error = d->cl.clRetainCommandQueue(native);
        queue->queue = error ? NULL : native;
    } else if (has_memory) {
        queue->queue = d->cl.clCreateCommandQueue(d->context, d->device, CL_QUEUE_PROFILING_ENABLE, &error);
    }
    if (has_memory && !error) {
        *out_queue = queue;
        return UIR_STATUS_OK;
    }
    if (queue->bell) leave_bell(queue->bell);
    if (queue->events) uir_release(&d->allocator, queue->events, queue->point_count * sizeof *queue->events);
    uir_release(&d->allocator, queue, sizeof *queue);
    return uir_opencl_fail(has_memory ? error : CL_OUT_OF_HOST_MEMORY, "clCreateCommandQueue", diagnostics);
}

/* The library ends what is still executed, and releases its objects then. */
static bool is_given_up(const uir_driver_device *device) {
    return __atomic_load_n(&device->is_given_up, __ATOMIC_RELAXED);
}

static const char why_lost[] = "the device was given up";

static uir_status check_there(const uir_driver_queue *queue, uir_diagnostics *diagnostics) {
    if (!is_given_up(queue->device)) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "OpenCL: %s", why_lost);
}

void uir_opencl_give_up(uir_driver_device *device) {
    __atomic_store_n(&device->is_given_up, true, __ATOMIC_RELAXED);
}

void uir_opencl_destroy_queue(uir_driver_queue *queue) {
    if (!queue) return;
    uir_driver_device *d = queue->device;
    if (!is_given_up(d)) d->cl.clFinish(queue->queue);
    for (uint32_t i = 0; i < queue->point_count; i++)
        if (queue->events[i]) d->cl.clReleaseEvent(queue->events[i]);
    d->cl.clReleaseCommandQueue(queue->queue);
    leave_bell(queue->bell);
    uir_release(&d->allocator, queue->events, queue->point_count * sizeof *queue->events);
    uir_release(&d->allocator, queue, sizeof *queue);
}

/* Calls the library; a failure is told with the function's name. */
#define CALL(queue, function, ...) ((queue)->called = #function, (queue)->device->cl.function(__VA_ARGS__))

static uir_status explain(const uir_driver_queue *queue, int32_t error, uir_diagnostics *diagnostics) {
    return error ? uir_opencl_fail(error, queue->called, diagnostics) : UIR_STATUS_OK;
}

/* ---- requests ---- */
/* A launch of one phase. */
typedef struct cl_request {
    const uir_driver_launch *launch;
    cl_phase *phase;
    int64_t begin, end;
    size_t groups;
} cl_request;

/* Sets an argument that is not so already. `value` NULL: local memory. */
static int32_t set_argument(uir_driver_queue *queue, const cl_phase *phase, uint32_t at, size_t size,
                            const void *value) {
    cl_argument *was = &phase->arguments[at], is = {.size = size};
    if (value) memcpy(&is.bits, value, size);
    if (was->size == size && was->bits == is.bits) return 0;
    was->size = 0;
    int32_t error = CALL(queue, clSetKernelArg, phase->kernel, at, size, value);
    if (!error) *was = is;
    return error;
}

static int32_t set_pointer(uir_driver_queue *queue, const cl_phase *phase, uint32_t at, const uir_region *region) {
    cl_handle memory = region->buffer ? cl_buffer_of(region)->memory : queue->device->nothing;
    uint64_t offset = region->buffer ? region->offset : 0;
    int32_t error = set_argument(queue, phase, at, sizeof memory, &memory);
    return error ? error : set_argument(queue, phase, at + 1, sizeof offset, &offset);
}

/* The work-item of a group has scratch in global memory, several have it in local memory. */
static int32_t set_scratch(uir_driver_queue *queue, const cl_request *request, uint32_t at) {
    enum { LEAST_LOCAL = 16 };
    const cl_prepared *p = request->launch->state;
    const uir_region *workspace = &request->launch->workspace;
    bool is_local = request->phase->group_size > 1;
    cl_handle memory = is_local || !workspace->buffer ? queue->device->nothing : cl_buffer_of(workspace)->memory;
    size_t local = is_local && p->scratch_size ? (size_t)p->scratch_size : LEAST_LOCAL;
    int32_t error = set_argument(queue, request->phase, at, sizeof memory, &memory);
    if (!error) error = set_argument(queue, request->phase, at + 1, sizeof p->scratch_size, &p->scratch_size);
    return error ? error : set_argument(queue, request->phase, at + 2, local, NULL);
}

static int32_t set_arguments(uir_driver_queue *queue, const cl_request *request) {
    const uir_driver_launch *launch = request->launch;
    const cl_kernel *kernel = cl_kernel_of(launch->kernel);
    const cl_prepared *p = launch->state;
    cl_phase *phase = request->phase;
    uint64_t age = __atomic_load_n(&queue->device->memory_age, __ATOMIC_RELAXED);
    uint32_t at = 0;
    int32_t error = 0;
    for (uint32_t i = 0; phase->memory_age != age && i < kernel->argument_count; i++) phase->arguments[i].size = 0;
    phase->memory_age = age;
    for (uint32_t i = 0; i < launch->pointer_count && !error; i++, at += 2)
        error = set_pointer(queue, phase, at, &launch->pointers[i]);
    if (!error) error = set_argument(queue, phase, at++, sizeof p->symbols, &p->symbols);
    if (!error) error = set_argument(queue, phase, at++, sizeof request->begin, &request->begin);
    if (!error) error = set_argument(queue, phase, at++, sizeof request->end, &request->end);
    return error ? error : set_scratch(queue, request, at);
}

static int32_t submit(uir_driver_queue *queue, const cl_request *request) {
    uir_driver_device *d = queue->device;
    size_t local = request->phase->group_size, global = request->groups * local;
    pthread_mutex_lock(&d->lock);
    int32_t error = set_arguments(queue, request);
    if (!error)
        error = CALL(queue, clEnqueueNDRangeKernel, queue->queue, request->phase->kernel, 1, NULL, &global, &local, 0,
                     NULL, NULL);
    pthread_mutex_unlock(&d->lock);
    return error;
}

uir_status uir_opencl_launch_nothing(uir_driver_device *d, const cl_kernel *kernel, cl_phase *phase,
                                     uir_diagnostics *diagnostics) {
    uint32_t count = kernel->base.pointer_count;
    uir_region *none;
    int32_t error = 0;
    UIR_TRY_ALLOCATE(none, uir_allocate_zeroed(&d->allocator, ((size_t)count + 1) * sizeof *none));
    cl_prepared prepared = {.symbols = d->nothing};
    const uir_driver_launch launch = {
        .kernel = &kernel->base, .pointer_count = count, .pointers = none, .state = &prepared};
    const cl_request request = {.launch = &launch, .phase = phase, .groups = 1};
    uir_driver_queue queue = {.device = d};
    queue.queue = CALL(&queue, clCreateCommandQueue, d->context, d->device, 0, &error);
    bool has_queue = !error;
    if (has_queue) error = submit(&queue, &request);
    if (!error) error = CALL(&queue, clFinish, queue.queue);
    if (has_queue) d->cl.clReleaseCommandQueue(queue.queue);
    uir_release(&d->allocator, none, ((size_t)count + 1) * sizeof *none);
    return explain(&queue, error, diagnostics);
}

/* A kernel's regions are in device memory, and the workspace begins a buffer. */
static uir_status check_memory(const uir_driver_launch *launch, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < launch->pointer_count; i++) {
        const uir_region *region = &launch->pointers[i];
        if (region->buffer && !cl_buffer_of(region)->memory)
            return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "pointer %u of a kernel is in staging memory", i);
    }
    const uir_region *workspace = &launch->workspace;
    if (!launch->workspace_size || (cl_buffer_of(workspace)->memory && !workspace->offset)) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "the workspace of a kernel does not begin a buffer of device memory");
}

uir_status uir_opencl_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                             uint32_t phase_count, uir_diagnostics *diagnostics) {
    uir_driver_device *d = queue->device;
    const cl_kernel *kernel = cl_kernel_of(launch->kernel);
    UIR_TRY(check_there(queue, diagnostics));
    UIR_TRY(uir_driver_check_launch(d, &d->facts, launch, phase, phase_count, diagnostics));
    UIR_TRY(check_memory(launch, diagnostics));
    for (uint32_t i = phase; i < phase + phase_count; i++) {
        cl_request request = {launch, &kernel->phases[i], launch->begins[i], launch->indices[i], 0};
        int64_t count = request.end - request.begin, product;
        if (count <= 0) continue;
        uint64_t groups = uir_opencl_count_groups(d, request.phase, count);
        if (__builtin_mul_overflow(count, (int64_t)groups, &product))
            return uir_error(diagnostics, UIR_STATUS_LIMIT, NULL, "kernel %s has too many parallel indices",
                             kernel->name);
        request.groups = (size_t)groups;
        UIR_TRY(explain(queue, submit(queue, &request), diagnostics));
    }
    return UIR_STATUS_OK;
}

/* A marker in the queue would be reached before the host copies: so between two places of the host it waits. */
static int32_t copy_on_host(uir_driver_queue *queue, const uir_driver_copy *c, char *to, const char *from) {
    int32_t error = CALL(queue, clFinish, queue->queue);
    for (uint64_t i = 0; i < c->rows && !error; i++)
        memmove(to + i * c->to_pitch, from + i * c->from_pitch, (size_t)c->row_bytes);
    return error;
}

static int32_t copy_stretch(uir_driver_queue *queue, const uir_driver_copy *c, char *to, const char *from) {
    size_t size = (size_t)c->row_bytes, at = (size_t)c->to.offset, of = (size_t)c->from.offset;
    if (from)
        return CALL(queue, clEnqueueWriteBuffer, queue->queue, cl_buffer_of(&c->to)->memory, 0, at, size, from, 0, NULL,
                    NULL);
    cl_handle source = cl_buffer_of(&c->from)->memory;
    if (to) return CALL(queue, clEnqueueReadBuffer, queue->queue, source, 0, of, size, to, 0, NULL, NULL);
    cl_handle target = cl_buffer_of(&c->to)->memory;
    return CALL(queue, clEnqueueCopyBuffer, queue->queue, source, target, of, at, size, 0, NULL, NULL);
}

/* Rows by their first byte and a pitch: a rectangle whose origin is a byte of the buffer. */
static int32_t copy_rows(uir_driver_queue *queue, const uir_driver_copy *c, char *to, const char *from) {
    size_t size[3] = {(size_t)c->row_bytes, (size_t)c->rows, 1}, zero[3] = {0}, at[3] = {(size_t)c->to.offset},
           of[3] = {(size_t)c->from.offset}, to_pitch = (size_t)c->to_pitch, from_pitch = (size_t)c->from_pitch;
    if (from)
        return CALL(queue, clEnqueueWriteBufferRect, queue->queue, cl_buffer_of(&c->to)->memory, 0, at, zero, size,
                    to_pitch, 0, from_pitch, 0, from, 0, NULL, NULL);
    cl_handle source = cl_buffer_of(&c->from)->memory;
    if (to)
        return CALL(queue, clEnqueueReadBufferRect, queue->queue, source, 0, of, zero, size, from_pitch, 0, to_pitch, 0,
                    to, 0, NULL, NULL);
    return CALL(queue, clEnqueueCopyBufferRect, queue->queue, source, cl_buffer_of(&c->to)->memory, of, at, size,
                from_pitch, 0, to_pitch, 0, 0, NULL, NULL);
}

/* One row after the other. */
static int32_t copy_each(uir_driver_queue *queue, const uir_driver_copy *c, char *to, const char *from) {
    int32_t error = 0;
    for (uint64_t i = 0; i < c->rows && !error; i++) {
        uir_driver_copy row = {.from = c->from, .to = c->to, .rows = 1, .row_bytes = c->row_bytes};
        row.from.offset += i * c->from_pitch;
        row.to.offset += i * c->to_pitch;
        error = copy_stretch(queue, &row, to ? to + i * c->to_pitch : NULL, from ? from + i * c->from_pitch : NULL);
    }
    return error;
}

uir_status uir_opencl_copy(uir_driver_queue *queue, const uir_driver_copy *c, uir_diagnostics *diagnostics) {
    uir_driver_device *d = queue->device;
    UIR_TRY(check_there(queue, diagnostics));
    UIR_TRY(uir_driver_check_copy(d, c, diagnostics));
    if (!c->rows || !c->row_bytes) return UIR_STATUS_OK;
    char *to = cl_host_of(&c->to), *from = cl_host_of(&c->from);
    /* A rectangle's origin is inside a row of it, and its pitch no less than a row. */
    bool is_rectangle = c->from_pitch >= c->row_bytes && c->to_pitch >= c->row_bytes &&
                        (from || c->from.offset + c->row_bytes <= c->from_pitch) &&
                        (to || c->to.offset + c->row_bytes <= c->to_pitch);
    int32_t error = to && from     ? copy_on_host(queue, c, to, from)
                    : c->rows == 1 ? copy_stretch(queue, c, to, from)
                    : is_rectangle ? copy_rows(queue, c, to, from)
                                   : copy_each(queue, c, to, from);
    return explain(queue, error, diagnostics);
}

uir_status uir_opencl_fill(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                           uir_diagnostics *diagnostics) {
    UIR_TRY(check_there(queue, diagnostics));
    UIR_TRY(uir_driver_check_region(queue->device, region, "the destination of a fill", diagnostics));
    if (!region->size) return UIR_STATUS_OK;
    char *host = cl_host_of(region);
    int32_t error = host ? CALL(queue, clFinish, queue->queue)
                         : CALL(queue, clEnqueueFillBuffer, queue->queue, cl_buffer_of(region)->memory, &value, 1,
                                (size_t)region->offset, (size_t)region->size, 0, NULL, NULL);
    UIR_TRY(explain(queue, error, diagnostics));
    if (host) memset(host, value, (size_t)region->size);
    return UIR_STATUS_OK;
}

/* ---- points ---- */
uir_status uir_opencl_mark(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point) {
    const cl_library *cl = &queue->device->cl;
    UIR_TRY(check_there(queue, diagnostics));
    cl_handle event = NULL, *place = &queue->events[(queue->marked + 1) % queue->point_count];
    int32_t error = cl->clEnqueueMarkerWithWaitList(queue->queue, 0, NULL, &event);
    if (error) return uir_opencl_fail(error, "clEnqueueMarkerWithWaitList", diagnostics);
    if (*place) cl->clReleaseEvent(*place);
    *place = event;
    *out_point = ++queue->marked;
    return UIR_STATUS_OK;
}

/* The event of a point; of an older one that of the oldest that is kept, which comes after it. NULL: no point. */
static cl_handle event_of(const uir_driver_queue *queue, uint64_t point) {
    if (!point || point > queue->marked) return NULL;
    if (point + queue->point_count <= queue->marked) point = queue->marked - queue->point_count + 1;
    return queue->events[point % queue->point_count];
}

uir_status uir_opencl_follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                             uir_diagnostics *diagnostics) {
    UIR_TRY(check_there(queue, diagnostics));
    UIR_TRY(uir_driver_check_follow(queue->device, other->device, point, other->marked, diagnostics));
    cl_handle event = event_of(other, point);
    if (other == queue || !event) return UIR_STATUS_OK;
    int32_t error = CALL(queue, clFlush, other->queue);
    if (!error) error = CALL(queue, clEnqueueBarrierWithWaitList, queue->queue, 1, &event, NULL);
    return explain(queue, error, diagnostics);
}

static void fail(uir_driver_failure *failure, int32_t error) {
    char text[32];
    *failure = (uir_driver_failure){.step = UINT32_MAX, .is_lost = true};
    snprintf(failure->text, sizeof failure->text, "OpenCL: %s", uir_opencl_error_name(error, text, sizeof text));
}

/* Until the event is over, or one of the flags is set; `cancel` NULL: there is none. */
static uir_status sleep_until(const uir_driver_queue *queue, cl_handle event, const volatile bool *cancel,
                              int32_t *out_error) {
    const cl_library *cl = &queue->device->cl;
    bool is_hung = false;
    for (*out_error = 0; !is_given_up(queue->device);) {
        uint64_t rings = count_rings(queue->bell);
        int32_t state = CL_COMPLETE;
        *out_error = cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (!*out_error && state < 0) *out_error = state;
        if (*out_error || state == CL_COMPLETE) return UIR_STATUS_OK;
        if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
        if (is_hung)
            listen(queue->bell, rings);
        else if ((*out_error = hang_bell(cl, queue->bell, event)) != 0)
            return UIR_STATUS_OK;
        is_hung = true;
    }
    return UIR_STATUS_OK;
}

uir_status uir_opencl_wait(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                           uir_driver_failure *out_failure) {
    const cl_library *cl = &queue->device->cl;
    cl_handle event = event_of(queue, point);
    *out_failure = (uir_driver_failure){.step = UINT32_MAX};
    if (point > queue->marked) {
        snprintf(out_failure->text, sizeof out_failure->text, "a wait for a point that was not marked");
        return UIR_STATUS_DEVICE_FAILED;
    }
    if (!event) return UIR_STATUS_OK;
    int32_t error = cl->clFlush(queue->queue);
    if (!error) UIR_TRY(sleep_until(queue, event, cancel, &error));
    if (!error && is_given_up(queue->device)) {
        *out_failure = (uir_driver_failure){.step = UINT32_MAX, .is_lost = true};
        snprintf(out_failure->text, sizeof out_failure->text, "OpenCL: %s", why_lost);
        return UIR_STATUS_DEVICE_FAILED;
    }
    if (!error) return UIR_STATUS_OK;
    fail(out_failure, error);
    return UIR_STATUS_DEVICE_FAILED;
}

bool uir_opencl_get_time(uir_driver_queue *queue, uint64_t point, double *out_ms) {
    const cl_library *cl = &queue->device->cl;
    uint64_t nanoseconds = 0;
    if (!point || point > queue->marked || point + queue->point_count <= queue->marked) return false;
    if (cl->clGetEventProfilingInfo(event_of(queue, point), CL_PROFILING_COMMAND_END, sizeof nanoseconds, &nanoseconds,
                                    NULL))
        return false;
    *out_ms = (double)nanoseconds * 1e-6;
    return true;
}
