#include "compile/single.h"

#include "runtime/phase.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

/* GUARD: bytes before and behind each region of a device, which no kernel writes. What is in each: WRITTEN, of a region
 * that kernels write, is no likely result; UNREAD, of other regions and in scratch memory, is NaN, so that a result
 * which it enters shows it. */
enum { POINTS = 1, GUARD = 4096, WRITTEN = 0x5a, UNREAD = 0xff };

/* On a device with memory of its own. */
typedef struct on_device {
    const uir_driver *driver;
    const uir_driver_facts *facts;
    uir_driver_device *device;
    uir_driver_code *code;
    uir_driver_queue *queue; /* NULL: the last run failed */
    uir_driver_launch launch;
    uir_region *pointers;
    char *guards; /* while it is bound: after a run, what is before and behind each pointer and behind the workspace */
} on_device;

struct uir_single {
    uir_allocator allocator;
    uir_arena arena;
    uir_single_kernel kernel;
    const uir_kernel_format *format; /* NULL: the device runs it */
    uir_kernel_launch launch;
    bool never; /* set: what runs here is not stopped */
    on_device remote;
    size_t state_size;
    /* by symbol, pointer and phase of the kernel */
    int64_t *values, *symbols, *indices, *begins;
    bool *bound, *is_written;
    void **pointers;
    size_t *sizes;
    uint64_t *needed, bytes;
    /* by thread, while it is bound */
    uint32_t threads;
    uir_kernel_scratch *scratch;
    uir_rt_share *shares;
};

/* ---- making ---- */
static uir_status make_arrays(uir_single *s) {
    const uir_igraph *g = s->kernel.igraph;
    uir_kernel_launch *l = &s->launch;
    size_t count = uir_dims_symbol_count(g->dims);
    for (uint32_t i = 0; i < g->pointers.count; i++) l->pointer_count += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    l->dim_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM);
    l->tile_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE);
    l->phase_count = g->phases.count;
#define MAKE(field, count)                                                                                             \
    UIR_TRY_ALLOCATE(field, uir_arena_allocate_array(&s->arena, (size_t)(count) + 1, sizeof *(field)))
    MAKE(s->values, count);
    MAKE(s->bound, count);
    MAKE(s->symbols, l->dim_count + l->tile_count);
    MAKE(s->indices, l->phase_count);
    MAKE(s->begins, l->phase_count);
    MAKE(s->pointers, l->pointer_count);
    MAKE(s->is_written, l->pointer_count);
    MAKE(s->sizes, l->pointer_count);
    MAKE(s->needed, l->pointer_count);
    MAKE(s->remote.pointers, l->pointer_count);
#undef MAKE
    for (uint32_t i = 0, at = 0; i < g->pointers.count; i++) {
        uint32_t role = g->pointers.data[i].role;
        if (role != UIR_IPOINTER_LOCAL) s->is_written[at++] = role == UIR_IPOINTER_OUT || role == UIR_IPOINTER_WORK;
    }
    memset(s->begins, 0, l->phase_count * sizeof *s->begins);
    memset(s->remote.pointers, 0, l->pointer_count * sizeof *s->remote.pointers);
    return UIR_STATUS_OK;
}

static uir_kernel_entry describe(const uir_single *s) {
    return (uir_kernel_entry){.symbol = s->kernel.symbol ? s->kernel.symbol : s->kernel.igraph->name,
                              .size = s->kernel.size,
                              .dim_count = s->launch.dim_count,
                              .tile_count = s->launch.tile_count,
                              .pointer_count = s->launch.pointer_count,
                              .phase_count = s->launch.phase_count,
                              .writable = s->is_written};
}

static uir_status create(const uir_allocator *allocator, const uir_single_kernel *kernel, uir_single **out_single) {
    uir_single *s;
    *out_single = NULL;
    UIR_TRY_ALLOCATE(s, uir_allocate_zeroed(allocator, sizeof *s));
    *s = (uir_single){.allocator = *allocator, .kernel = *kernel};
    uir_arena_init(&s->arena, allocator);
    uir_status status = make_arrays(s);
    if (status == UIR_STATUS_OK)
        *out_single = s;
    else
        uir_single_destroy(s);
    return status;
}

static uir_status find(uir_single *s, uir_loaded_module *module, uir_diagnostics *diagnostics) {
    const uir_kernel_entry entry = describe(s);
    uir_kernel_launch *l = &s->launch;
    UIR_TRY(s->format->find(module, &entry, diagnostics, &l->kernel));
    l->symbols = s->symbols;
    l->pointers = s->pointers;
    l->sizes = s->sizes;
    l->indices = s->indices;
    l->begins = s->begins;
    l->cancel = s->kernel.cancel ? s->kernel.cancel : &s->never;
    s->state_size = s->format->state_size(l->kernel);
    if (s->state_size) UIR_TRY_ALLOCATE(l->state, uir_allocate_zeroed(&s->allocator, s->state_size));
    return UIR_STATUS_OK;
}

uir_status uir_single_find(const uir_allocator *allocator, const uir_single_kernel *kernel,
                           const uir_kernel_format *format, uir_loaded_module *module, uir_diagnostics *diagnostics,
                           uir_single **out_single) {
    UIR_TRY(create(allocator, kernel, out_single));
    (*out_single)->format = format;
    uir_status status = find(*out_single, module, diagnostics);
    if (status == UIR_STATUS_OK) return status;
    uir_single_destroy(*out_single);
    *out_single = NULL;
    return status;
}

/* A program is for one chip; bytecode for any. */
static uir_status check_chip(const uir_single *s, uir_diagnostics *diagnostics) {
    const on_device *r = &s->remote;
    const char *chip = s->kernel.igraph->machine->chip;
    if (!s->kernel.symbol || !strcmp(chip, r->facts->chip)) return UIR_STATUS_OK;
    if (r->driver->check_chip) return r->driver->check_chip(r->device, chip, diagnostics);
    return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                     "kernel @%s is for chip %s, and the device runs kernels for %s", s->kernel.igraph->name, chip,
                     r->facts->chip);
}

static uir_status open_device(uir_single *s, const uir_device_row *row, const char *parameter,
                              const uir_driver_image *image, uir_diagnostics *diagnostics) {
    on_device *r = &s->remote;
    uir_driver_launch *l = &r->launch;
    const uir_driver_options options = {.allocator = &s->allocator,
                                        .parameter = parameter,
                                        .formats = row->formats,
                                        .format_count = uir_device_count_formats(row)};
    const uir_kernel_entry entry = describe(s);
    r->driver = row->driver;
    UIR_TRY(r->driver->open(&options, diagnostics, &r->device));
    r->facts = r->driver->get_facts(r->device);
    if (!r->driver->rank(r->device, image->format))
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "device %s runs no code of format '%s'", row->name,
                         image->format);
    UIR_TRY(check_chip(s, diagnostics));
    UIR_TRY(r->driver->load(r->device, image, diagnostics, &r->code));
    UIR_TRY(r->driver->find(r->code, &entry, diagnostics, &l->kernel));
    *l = (uir_driver_launch){.kernel = l->kernel,
                             .symbols = s->symbols,
                             .dim_count = s->launch.dim_count,
                             .tile_count = s->launch.tile_count,
                             .pointer_count = s->launch.pointer_count,
                             .phase_count = s->launch.phase_count,
                             .needed = s->needed,
                             .indices = s->indices,
                             .pointers = r->pointers,
                             .begins = s->begins,
                             .cancel = s->kernel.cancel};
    s->state_size = r->driver->state_size(l->kernel);
    if (s->state_size) UIR_TRY_ALLOCATE(l->state, uir_allocate_zeroed(&s->allocator, s->state_size));
    return UIR_STATUS_OK;
}

uir_status uir_single_open(const uir_allocator *allocator, const uir_single_kernel *kernel, const uir_device_row *row,
                           const char *parameter, const uir_driver_image *image, uir_diagnostics *diagnostics,
                           uir_single **out_single) {
    UIR_TRY(create(allocator, kernel, out_single));
    uir_status status = open_device(*out_single, row, parameter, image, diagnostics);
    if (status == UIR_STATUS_OK) return status;
    uir_single_destroy(*out_single);
    *out_single = NULL;
    return status;
}

/* ---- sizes ---- */
static bool evaluate(const uir_single *s, uir_dim dim, int64_t *out) {
    const uir_dims *dims = s->kernel.igraph->dims;
    return uir_dim_evaluate(dims, dim, s->values, s->bound, uir_dims_symbol_count(dims), out) == UIR_DIM_EVALUATED;
}

static uir_status bind_symbols(uir_single *s, const uir_kernel_arguments *arguments, uir_diagnostics *diagnostics) {
    const uir_kernel_launch *l = &s->launch;
    UIR_TRY(uir_igraph_bind(s->kernel.igraph, arguments->dim_values, arguments->tile_values, s->values, s->bound,
                            diagnostics));
    for (uint32_t i = 0; i < l->dim_count; i++) s->symbols[i] = arguments->dim_values[i];
    for (uint32_t i = 0; i < l->tile_count; i++) s->symbols[l->dim_count + i] = arguments->tile_values[i];
    return UIR_STATUS_OK;
}

static uir_status bind_pointers(uir_single *s, const uir_kernel_arguments *arguments, const size_t *sizes,
                                uir_diagnostics *diagnostics) {
    const uir_igraph *g = s->kernel.igraph;
    uint32_t at = 0;
    s->bytes = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        int64_t span;
        size_t needed;
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        if (!evaluate(s, p->element_span, &span) ||
            !uir_dtype_storage_size(p->dtype, span < 0 ? 0 : (uint64_t)span, &needed))
            return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "kernel @%s: %%%s has no size for these sizes", g->name, p->name);
        if (sizes[at] < needed)
            return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "kernel @%s: the buffer of %%%s has %zu bytes, %zu are needed", g->name, p->name,
                             sizes[at], needed);
        s->pointers[at] = arguments->pointers[at];
        s->sizes[at] = sizes[at];
        s->needed[at++] = needed;
        s->bytes += needed;
    }
    return UIR_STATUS_OK;
}

static uir_status bind_phases(uir_single *s, uir_diagnostics *diagnostics) {
    const uir_igraph *g = s->kernel.igraph;
    for (uint32_t p = 0; p < g->phases.count; p++) {
        const uir_iphase *phase = &g->phases.data[p];
        int64_t extent;
        s->indices[p] = 1;
        for (uint32_t a = 0; a < phase->parallel_count; a++)
            if (!evaluate(s, phase->parallel[a].extent, &extent) ||
                __builtin_mul_overflow(s->indices[p], extent < 0 ? 0 : extent, &s->indices[p]))
                return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                 "kernel @%s: the parallel extents of phase %u cannot be evaluated for these sizes",
                                 g->name, p);
    }
    return UIR_STATUS_OK;
}

/* ---- on the host ---- */
static uir_status make_scratch(uir_single *s, uint32_t threads) {
    threads = threads ? threads : 1;
    UIR_TRY_ALLOCATE(s->scratch, uir_allocate_zeroed(&s->allocator, threads * sizeof *s->scratch));
    s->threads = threads;
    UIR_TRY_ALLOCATE(s->shares, uir_allocate(&s->allocator, threads * sizeof *s->shares));
    for (uint32_t t = 0; t < threads; t++) {
        uir_kernel_scratch *scratch = &s->scratch[t];
        scratch->allocator = &s->allocator;
        UIR_TRY_ALLOCATE(scratch->data, uir_allocate(&s->allocator, s->launch.scratch_size));
        scratch->size = s->launch.scratch_size;
    }
    return UIR_STATUS_OK;
}

static void release_scratch(uir_single *s) {
    for (uint32_t t = 0; t < s->threads; t++)
        if (s->scratch[t].data) uir_release(&s->allocator, s->scratch[t].data, s->launch.scratch_size);
    if (s->scratch) uir_release(&s->allocator, s->scratch, s->threads * sizeof *s->scratch);
    if (s->shares) uir_release(&s->allocator, s->shares, s->threads * sizeof *s->shares);
    s->scratch = NULL;
    s->shares = NULL;
    s->threads = 0;
}

static uir_status prepare_here(uir_single *s, uint32_t threads, uir_diagnostics *diagnostics) {
    int64_t scratch = 0;
    if (s->format->native && (!evaluate(s, s->kernel.scratch, &scratch) || scratch < 0))
        return uir_error(diagnostics, UIR_STATUS_LIMIT, NULL,
                         "kernel @%s: its on-chip pointers have no size for these sizes", s->kernel.igraph->name);
    s->launch.scratch_size = (size_t)scratch;
    UIR_TRY(s->format->prepare(&s->launch, diagnostics));
    return make_scratch(s, threads);
}

/* A thread with a share of its own. */
typedef struct worker {
    pthread_t thread;
    bool is_there;
    uint32_t index;
    void (*task)(void *context, uint32_t thread);
    void *context;
    atomic_uint *begun;
} worker;

static void *work(void *argument) {
    const worker *w = argument;
    atomic_fetch_add(w->begun, 1);
    w->task(w->context, w->index);
    return NULL;
}

/* The caller's thread is the last to begin: it would be done with a small kernel before another is there. */
static void run_in_parallel(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context) {
    const uir_single *s = user;
    atomic_uint begun = 0;
    uint32_t made = 0;
    worker *workers = uir_allocate_zeroed(&s->allocator, count * sizeof *workers);
    for (uint32_t t = 1; workers && t < count; t++) {
        worker *w = &workers[t];
        *w = (worker){.index = t, .task = task, .context = context, .begun = &begun};
        w->is_there = pthread_create(&w->thread, NULL, work, w) == 0;
        made += w->is_there;
    }
    while (atomic_load(&begun) < made) sched_yield();
    task(context, 0); /* takes the shares of threads that could not be made */
    for (uint32_t t = 1; workers && t < count; t++)
        if (workers[t].is_there) pthread_join(workers[t].thread, NULL);
    if (workers) uir_release(&s->allocator, workers, count * sizeof *workers);
}

static uir_status run_here(uir_single *s, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < s->launch.phase_count; i++) {
        uir_rt_phase phase = {.format = s->format,
                              .launch = &s->launch,
                              .phase = i,
                              .threads = s->threads,
                              .bytes = s->bytes,
                              .scratch = s->scratch,
                              .shares = s->shares,
                              .parallel = run_in_parallel,
                              .user = s};
        uir_status status = uir_rt_phase_run(&phase);
        if (status == UIR_STATUS_CANCELLED) return status;
        if (status == UIR_STATUS_OK) continue;
        const char *failure = uir_rt_phase_get_failure(&phase);
        return failure ? uir_error(diagnostics, status, NULL, "%s", failure)
                       : uir_error(diagnostics, status, NULL, "kernel @%s failed", s->kernel.igraph->name);
    }
    return UIR_STATUS_OK;
}

/* ---- on a device ---- */
/* A region with room for guards. */
static uir_status allocate(on_device *r, uint64_t before, uint64_t size, uint64_t behind, uir_diagnostics *diagnostics,
                           uir_region *out_region) {
    uir_driver_buffer *buffer;
    char *host;
    behind = behind > r->facts->read_behind ? behind : r->facts->read_behind + 1;
    UIR_TRY(r->driver->allocate(r->device, UIR_MEMORY_DEVICE, before + size + behind, diagnostics, &buffer, &host));
    *out_region = (uir_region){.buffer = buffer, .offset = before, .size = size, .host = host ? host + before : NULL};
    return UIR_STATUS_OK;
}

/* Guards by number: before and behind each pointer, then behind the workspace, where it is for a unit too many. */
static uint32_t count_guards(const on_device *r) {
    return 2 * r->launch.pointer_count + (r->launch.workspace_size != 0);
}

static bool is_of_workspace(const on_device *r, uint32_t guard) {
    return guard == 2 * r->launch.pointer_count;
}

static uint64_t size_of_guard(const on_device *r, uint32_t guard) {
    return is_of_workspace(r, guard) ? r->launch.scratch_size + GUARD : GUARD;
}

static uir_region get_guard(const on_device *r, uint32_t guard) {
    const uir_region *of = is_of_workspace(r, guard) ? &r->launch.workspace : &r->pointers[guard / 2];
    int64_t at = is_of_workspace(r, guard) || guard % 2 ? (int64_t)of->size : -GUARD;
    return (uir_region){.buffer = of->buffer,
                        .offset = (uint64_t)((int64_t)of->offset + at),
                        .size = size_of_guard(r, guard),
                        .host = of->host ? of->host + at : NULL};
}

static size_t size_of_guards(const on_device *r) {
    return (size_t)2 * r->launch.pointer_count * GUARD + (size_t)r->launch.scratch_size + GUARD;
}

static uir_status prepare_there(uir_single *s, uir_diagnostics *diagnostics) {
    on_device *r = &s->remote;
    int64_t scratch = 0;
    if (s->kernel.symbol && !evaluate(s, s->kernel.scratch, &scratch))
        return uir_error(diagnostics, UIR_STATUS_LIMIT, NULL,
                         "kernel @%s: its on-chip pointers have no size for these sizes", s->kernel.igraph->name);
    r->launch.scratch_size = scratch > 0 ? (uint64_t)scratch : 0;
    UIR_TRY(r->driver->prepare(r->device, &r->launch, diagnostics));
    UIR_TRY_ALLOCATE(r->guards, uir_allocate(&s->allocator, size_of_guards(r)));
    if (r->launch.workspace_size)
        UIR_TRY(allocate(r, 0, r->launch.workspace_size, r->launch.scratch_size + GUARD, diagnostics,
                         &r->launch.workspace));
    for (uint32_t i = 0; i < r->launch.pointer_count; i++)
        UIR_TRY(allocate(r, GUARD, s->needed[i], GUARD, diagnostics, &r->pointers[i]));
    return UIR_STATUS_OK;
}

static unsigned char get_filling(const uir_single *s, uint32_t guard) {
    return is_of_workspace(&s->remote, guard) || s->is_written[guard / 2] ? WRITTEN : UNREAD;
}

/* Fills the guards, or copies them to the host. */
static uir_status visit_guards(uir_single *s, bool is_filled, uir_diagnostics *diagnostics) {
    on_device *r = &s->remote;
    for (uint32_t i = 0; i < count_guards(r); i++) {
        const uir_region guard = get_guard(r, i);
        const uir_region host = {.size = guard.size, .host = r->guards + (size_t)i * GUARD};
        const uir_driver_copy copy = {guard, host, 1, guard.size, guard.size, guard.size, UINT32_MAX};
        UIR_TRY(is_filled ? r->driver->fill(r->queue, &guard, get_filling(s, i), diagnostics)
                          : r->driver->copy(r->queue, &copy, diagnostics));
    }
    return UIR_STATUS_OK;
}

static const char *name_pointer(const uir_igraph *g, uint32_t number) {
    for (uint32_t i = 0; i < g->pointers.count; i++)
        if (g->pointers.data[i].role != UIR_IPOINTER_LOCAL && !number--) return g->pointers.data[i].name;
    return "";
}

/* Whether the kernel has written beside its memory. */
static uir_status check_guards(const uir_single *s, uir_diagnostics *diagnostics) {
    const on_device *r = &s->remote;
    const uir_igraph *g = s->kernel.igraph;
    for (uint32_t i = 0; i < count_guards(r); i++) {
        const char *guard = r->guards + (size_t)i * GUARD;
        if ((unsigned char)*guard == get_filling(s, i) && !memcmp(guard, guard + 1, (size_t)size_of_guard(r, i) - 1))
            continue;
        if (is_of_workspace(r, i))
            return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                             "kernel @%s on device %s has written behind its scratch memory", g->name, r->facts->name);
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                         "kernel @%s on device %s has written %s the memory of %%%s", g->name, r->facts->name,
                         i % 2 ? "behind" : "before", name_pointer(g, i / 2));
    }
    return UIR_STATUS_OK;
}

static uir_status move(uir_single *s, uint32_t pointer, bool to_device, uir_diagnostics *diagnostics) {
    on_device *r = &s->remote;
    uint64_t size = s->needed[pointer];
    const uir_region host = {.size = size, .host = s->pointers[pointer]}, device = r->pointers[pointer];
    const uir_driver_copy copy = {
        to_device ? host : device, to_device ? device : host, 1, size, size, size, UINT32_MAX};
    return size ? r->driver->copy(r->queue, &copy, diagnostics) : UIR_STATUS_OK;
}

static uir_status launch_phases(on_device *r, uir_diagnostics *diagnostics) {
    const uir_driver_launch *l = &r->launch;
    uint32_t joined = r->facts->joins_phases ? l->phase_count : 1;
    if (l->workspace_size)
        UIR_TRY(r->driver->fill(r->queue, &l->workspace, l->workspace_zeroed ? 0 : UNREAD, diagnostics));
    for (uint32_t phase = 0; phase < l->phase_count; phase += joined)
        UIR_TRY(r->driver->launch(r->queue, l, phase, joined, diagnostics));
    return UIR_STATUS_OK;
}

static uir_status wait_for_all(const uir_single *s, uir_diagnostics *diagnostics) {
    const on_device *r = &s->remote;
    uir_driver_failure failure;
    uint64_t point;
    UIR_TRY(r->driver->mark(r->queue, diagnostics, &point));
    uir_status status = r->driver->wait(r->queue, point, s->kernel.cancel, &failure);
    return status == UIR_STATUS_DEVICE_FAILED
               ? uir_error(diagnostics, status, NULL, "device %s: %s", r->facts->name, failure.text)
               : status;
}

static uir_status run_there(uir_single *s, uir_diagnostics *diagnostics) {
    on_device *r = &s->remote;
    if (!r->queue) UIR_TRY(r->driver->create_queue(r->device, POINTS, NULL, diagnostics, &r->queue));
    UIR_TRY(visit_guards(s, true, diagnostics));
    for (uint32_t i = 0; i < r->launch.pointer_count; i++) UIR_TRY(move(s, i, true, diagnostics));
    UIR_TRY(launch_phases(r, diagnostics));
    UIR_TRY(visit_guards(s, false, diagnostics));
    for (uint32_t i = 0; i < r->launch.pointer_count; i++)
        if (s->is_written[i]) UIR_TRY(move(s, i, false, diagnostics));
    UIR_TRY(wait_for_all(s, diagnostics));
    return check_guards(s, diagnostics);
}

static void release(on_device *r, uir_region *region) {
    if (region->buffer) r->driver->release(r->device, region->buffer);
    *region = (uir_region){.buffer = NULL};
}

static void retire(const uir_allocator *allocator, on_device *r) {
    if (r->guards) uir_release(allocator, r->guards, size_of_guards(r));
    r->guards = NULL;
    if (r->launch.is_prepared) r->driver->retire(r->device, &r->launch);
    for (uint32_t i = 0; i < r->launch.pointer_count; i++) release(r, &r->pointers[i]);
    release(r, &r->launch.workspace);
}

/* ---- runs ---- */
/* Gives back what bind has allocated. */
static void unbind(uir_single *s) {
    if (s->format)
        release_scratch(s);
    else
        retire(&s->allocator, &s->remote);
}

static void destroy_queue(on_device *r) {
    if (r->queue) r->driver->destroy_queue(r->queue);
    r->queue = NULL;
}

void uir_single_destroy(uir_single *s) {
    if (!s) return;
    const uir_allocator allocator = s->allocator;
    on_device *r = &s->remote;
    void *state = s->format ? s->launch.state : r->launch.state;
    unbind(s);
    destroy_queue(r);
    if (state) uir_release(&allocator, state, s->state_size);
    if (r->code) r->driver->unload(r->device, r->code);
    if (r->device) r->driver->close(r->device);
    uir_arena_deinit(&s->arena);
    uir_release(&allocator, s, sizeof *s);
}

uir_status uir_single_bind(uir_single *s, const uir_kernel_arguments *arguments, const size_t *sizes, uint32_t threads,
                           uir_diagnostics *diagnostics) {
    unbind(s);
    UIR_TRY(bind_symbols(s, arguments, diagnostics));
    UIR_TRY(bind_pointers(s, arguments, sizes, diagnostics));
    UIR_TRY(bind_phases(s, diagnostics));
    return s->format ? prepare_here(s, threads, diagnostics) : prepare_there(s, diagnostics);
}

uir_status uir_single_run(uir_single *s, uir_diagnostics *diagnostics) {
    if (s->format) return run_here(s, diagnostics);
    uir_status status = run_there(s, diagnostics);
    if (status != UIR_STATUS_OK) destroy_queue(&s->remote); /* with its requests, before the memory that they use */
    return status;
}

uir_status uir_single_run_once(uir_single *s, const uir_kernel_arguments *arguments, const size_t *sizes,
                               uint32_t threads, uir_diagnostics *diagnostics) {
    uir_status status = uir_single_bind(s, arguments, sizes, threads, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_single_run(s, diagnostics);
    unbind(s);
    return status;
}
