/* Sizes become known: shapes of tensors, their places in a block of memory, launches. */
#include "base/dims/demand.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- buffers ---- */
static bool holds(const uir_runtime *r, uir_plan_list list, uint32_t tensor) {
    for (uint32_t i = 0; i < list.count; i++)
        if (uir_plan_get_word(r->plan, list, i) == tensor) return true;
    return false;
}

/* For a message: an input or output by its name, what lies between by the node that makes it. */
static void describe_tensor(const uir_runtime *r, uint32_t tensor, char *buffer, size_t capacity) {
    const uir_plan *p = r->plan;
    size_t bytes = r->tensors[tensor].bytes;
    for (uint32_t i = 0; i < p->inputs_count + p->outputs_count; i++) {
        bool input = i < p->inputs_count;
        const uir_plan_port *port = input ? &p->inputs[i] : &p->outputs[i - p->inputs_count];
        if (port->tensor != tensor) continue;
        snprintf(buffer, capacity, "%s '%.120s' of %zu bytes", input ? "input" : "output",
                 uir_plan_get_text(p, port->name), bytes);
        return;
    }
    for (uint32_t i = 0; i < p->steps_count; i++) {
        if (!holds(r, p->steps[i].outputs, tensor)) continue;
        snprintf(buffer, capacity, "a tensor of %zu bytes that node '%.120s' produces", bytes,
                 uir_plan_get_text(p, p->steps[i].node));
        return;
    }
    snprintf(buffer, capacity, "a tensor of %zu bytes", bytes);
}

static bool is_there(const uir_rt_buffer *buffer) {
    return buffer->data || buffer->device;
}

/* Where a buffer gets its memory. */
typedef enum memory_kind { ORDINARY, COPIED, ON_DEVICE } memory_kind;

static bool allocate(uir_runtime *r, uir_rt_buffer *buffer, memory_kind kind) {
    if (kind == ON_DEVICE) {
        bool is_allocated = uir_rt_device_allocate(r->package, buffer);
        if (!is_allocated) uir_rt_device_give(r, buffer->capacity);
        return is_allocated;
    }
    /* Whose kernels nobody vouches for sees nothing of what the process had there. */
    if (kind == COPIED && uir_rt_device_lock(r, buffer)) {
        if (!r->package->trusted) memset(buffer->data, 0, buffer->capacity);
        return true;
    }
    buffer->data = r->package->trusted ? uir_allocate(&r->allocator, buffer->capacity)
                                       : uir_allocate_zeroed(&r->allocator, buffer->capacity);
    return buffer->data != NULL;
}

/* What grows again is given a quarter more than it asks for: sizes that rise from run to run settle soon. */
static uir_status grow(uir_runtime *r, uir_rt_buffer *buffer, memory_kind kind, uint64_t size, uint32_t tensor) {
    char what[200] = "scratch memory";
    uint64_t asked = size;
    if (size <= buffer->capacity && is_there(buffer)) return UIR_STATUS_OK;
    if (buffer->capacity && size < SIZE_MAX / 4) size += size / 4;
    UIR_TRY(uir_rt_drain(r));
    uir_rt_buffer_release(r, buffer);
    if (tensor != UIR_PLAN_NONE) describe_tensor(r, tensor, what, sizeof what);
    if (size <= SIZE_MAX / 2) {
        uint64_t capacity = uir_rt_align(size ? size : 1);
        if (kind == ON_DEVICE) UIR_TRY(uir_rt_device_take(r, capacity, what));
        buffer->capacity = (size_t)capacity;
        if (allocate(r, buffer, kind)) return UIR_STATUS_OK;
        buffer->capacity = 0;
    }
    return uir_error(r->diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL, "%llu bytes%s cannot be allocated: %s",
                     (unsigned long long)asked, kind == ON_DEVICE ? " of the device" : "", what);
}

uir_status uir_rt_buffer_grow(uir_runtime *r, uir_rt_buffer *buffer, uir_plan_domain domain, uint64_t size,
                              uint32_t tensor) {
    return grow(r, buffer, domain == UIR_PLAN_ON_DEVICE ? ON_DEVICE : COPIED, size, tensor);
}

uir_status uir_rt_buffer_grow_scratch(uir_runtime *r, uir_rt_buffer *buffer, uint64_t size) {
    return grow(r, buffer, ORDINARY, size, UIR_PLAN_NONE);
}

void uir_rt_buffer_release(uir_runtime *r, uir_rt_buffer *buffer) {
    if (buffer->device) {
        uir_rt_device_release(r->package, buffer);
        uir_rt_device_give(r, buffer->capacity);
    } else if (buffer->locked) {
        uir_rt_device_unlock(r, buffer);
    } else if (buffer->data) {
        uir_release(&r->allocator, buffer->data, buffer->capacity);
    }
    *buffer = (uir_rt_buffer){0};
}

/* ---- tensors ---- */
void uir_rt_place_tensor(uir_runtime *r, uint32_t tensor, uir_region at) {
    r->tensors[tensor].at = at;
}

static uir_status shape_tensor(uir_runtime *r, uint32_t tensor);

static uir_status fail_size(uir_runtime *r, const char *what) {
    return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, NULL, "%s", what);
}

uir_status uir_rt_locate(uir_runtime *r, uint32_t tensor, uir_region *out_region) {
    static const char nothing[RT_ALIGN] = {0}; /* what tensors without elements point at */
    const uir_rt_tensor *root = &r->tensors[r->analysis->tensors[tensor].root];
    if (r->tensors[tensor].invalid) {
        UIR_TRY(shape_tensor(r, tensor)); /* says what is wrong */
        return fail_size(r, "a tensor has no size for these dims");
    }
    size_t bytes = r->tensors[tensor].span;
    *out_region = bytes ? root->at : uir_rt_on_host(nothing, 0);
    if (bytes == 0 || (uir_rt_is_placed(&root->at) && bytes <= root->at.size)) return UIR_STATUS_OK;
    return uir_error(r->diagnostics, UIR_STATUS_BAD_FILE, NULL,
                     "the plan uses a tensor of %zu bytes before it is written", bytes);
}

uir_status uir_rt_locate_host(uir_runtime *r, uint32_t tensor, char **out_address) {
    uir_region at;
    UIR_TRY(uir_rt_locate(r, tensor, &at));
    *out_address = at.host;
    return UIR_STATUS_OK;
}

uir_status uir_rt_bind_symbol(uir_runtime *r, uint32_t symbol, int64_t value) {
    const uir_plan_symbol *s = &r->plan->symbols[symbol];
    uir_symbol_facts facts = {.min = s->min, .max = s->max, .multiple_of = s->multiple_of};
    const char *name = uir_plan_get_text(r->plan, s->name);
    char message[320] = "";
    if (r->bound[symbol] && r->values[symbol] != value)
        uir_conflict_describe(name, r->values[symbol], value, message, sizeof message);
    else if (!uir_facts_hold(facts, value))
        uir_facts_describe(name, facts, value, message, sizeof message);
    if (*message) return fail_size(r, message);
    r->values[symbol] = value;
    r->bound[symbol] = true;
    return UIR_STATUS_OK;
}

uir_status uir_rt_learn_shape(uir_runtime *r, uint32_t tensor, const int64_t *shape) {
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    for (uint32_t d = 0; d < t->extents.count; d++) {
        uint32_t symbol = uir_plan_plain_symbol(r->plan, uir_plan_get_word(r->plan, t->extents, d));
        if (symbol != UIR_PLAN_NONE && !r->bound[symbol]) UIR_TRY(uir_rt_bind_symbol(r, symbol, shape[d]));
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_check_shape(uir_runtime *r, uint32_t tensor, const int64_t *shape, const char *what,
                              const uir_plan_port *port) {
    char message[320];
    const int64_t *wanted = uir_rt_shape(r, tensor);
    for (uint32_t d = 0; d < uir_rt_rank(r, tensor); d++) {
        if (wanted[d] == shape[d]) continue;
        const char *name = port ? uir_plan_get_text(r->plan, uir_plan_get_word(r->plan, port->dim_names, d)) : "";
        uir_extent_describe(d, name, shape[d], wanted[d], message, sizeof message);
        return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, NULL, "%s: %s", what, message);
    }
    return UIR_STATUS_OK;
}

/* The elements of its layout; never fewer than it has. */
static uir_status span_laid_out(uir_runtime *r, uint32_t tensor) {
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    uir_rt_tensor *of = &r->tensors[tensor];
    int64_t span;
    size_t bytes;
    if (!uir_plan_evaluate(r->plan, t->index, r->values, r->bound, &span) ||
        !uir_dtype_storage_size((uir_dtype)t->dtype, span > 0 ? (uint64_t)span : 0, &bytes))
        return fail_size(r, "a tensor is too large in its layout");
    if (of->span < bytes) of->span = bytes;
    return uir_budget_check_elements(uir_budget_of(&r->allocator), span > 0 ? (uint64_t)span : 0, r->diagnostics);
}

/* With the slack of its port; an alias takes what it stands for takes. */
static uir_status span_tensor(uir_runtime *r, uint32_t tensor) {
    const uir_rt_tensor_info *info = &r->analysis->tensors[tensor];
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    const int64_t *shape = uir_rt_shape(r, tensor);
    uint64_t count = 1;
    r->tensors[tensor].span = r->tensors[tensor].bytes;
    if (t->storage == UIR_PLAN_STORAGE_LAID_OUT) return span_laid_out(r, tensor);
    if (info->slack == UIR_PLAN_NONE || r->values[info->slack] == 0 || info->slack_axis == UIR_PLAN_NONE)
        return UIR_STATUS_OK;
    if (info->root != tensor) {
        r->tensors[tensor].span = r->tensors[info->root].span;
        return UIR_STATUS_OK;
    }
    for (uint32_t d = 0; d < t->extents.count; d++) {
        int64_t extent = shape[d];
        if ((d == info->slack_axis && __builtin_add_overflow(extent, r->values[info->slack], &extent)) ||
            __builtin_mul_overflow(count, (uint64_t)extent, &count))
            return fail_size(r, "a tensor and its slack are too large");
    }
    return uir_dtype_storage_size((uir_dtype)t->dtype, count, &r->tensors[tensor].span)
               ? UIR_STATUS_OK
               : fail_size(r, "a tensor and its slack are too large");
}

/* Names the step that takes the tensor, or gives it. */
static uir_status fail_tensor(uir_runtime *r, uint32_t tensor, const char *what) {
    if (!r->diagnostics) return UIR_STATUS_BAD_DATA; /* nobody asks which */
    for (uint32_t i = 0; i < r->plan->steps_count; i++) {
        const uir_plan_step *s = &r->plan->steps[i];
        for (uint32_t k = 0; k < s->inputs.count + s->outputs.count; k++) {
            uint32_t t = k < s->inputs.count ? uir_plan_get_word(r->plan, s->inputs, k)
                                             : uir_plan_get_word(r->plan, s->outputs, k - s->inputs.count);
            if (t == tensor) return uir_rt_fail_step(r, i, UIR_STATUS_BAD_DATA, "%s", what);
        }
    }
    return fail_size(r, what);
}

static uir_status fail_alias(uir_runtime *r, uint32_t tensor, uint64_t from, uint64_t count) {
    char what[120];
    snprintf(what, sizeof what, "a reshape changes the number of elements for these dims: from %llu to %llu",
             (unsigned long long)from, (unsigned long long)count);
    return fail_tensor(r, tensor, what);
}

/* Its shape by the symbols' values. */
static uir_status evaluate_tensor(uir_runtime *r, uint32_t tensor, int64_t *shape, uint64_t *out_count,
                                  size_t *out_bytes) {
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    for (uint32_t d = 0; d < t->extents.count; d++) {
        if (!uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, t->extents, d), r->values, r->bound, &shape[d]))
            return fail_tensor(r, tensor, "an extent has no value for these dims");
        if (shape[d] < 0) return fail_tensor(r, tensor, "an extent is negative for these dims");
    }
    if (!uir_shape_element_count(shape, t->extents.count, out_count) ||
        !uir_dtype_storage_size((uir_dtype)t->dtype, *out_count, out_bytes))
        return fail_tensor(r, tensor, "a tensor is too large for these dims");
    UIR_TRY(uir_budget_check_elements(uir_budget_of(&r->allocator), *out_count, r->diagnostics));
    return UIR_STATUS_OK;
}

static uir_status shape_tensor(uir_runtime *r, uint32_t tensor) {
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    uint64_t count = 1, from = 0;
    UIR_TRY(
        evaluate_tensor(r, tensor, r->shapes + r->analysis->tensors[tensor].shape, &count, &r->tensors[tensor].bytes));
    UIR_TRY(span_tensor(r, tensor));
    if (t->storage == UIR_PLAN_STORAGE_ALIAS && r->tensors[tensor].bytes != r->tensors[t->index].bytes) {
        (void)uir_shape_element_count(uir_rt_shape(r, t->index), uir_rt_rank(r, t->index), &from);
        return fail_alias(r, tensor, from, count);
    }
    if (t->storage == UIR_PLAN_STORAGE_CONSTANT) {
        uir_rt_place_tensor(r, tensor,
                            uir_rt_constant_region(r->package, t->index, uir_plan_get_domain(r->plan, tensor)));
    }
    return UIR_STATUS_OK;
}

/* ---- places ---- */
/* How long the place is taken, for those that the same queue accesses and for all others. */
static uir_rt_place make_place(const uir_runtime *r, uint64_t size, uint32_t first, uint32_t last, uint32_t tensor) {
    uir_rt_place place = {.size = size, .first = first, .last = last, .tensor = tensor};
    place.begin = first;
    place.end = last;
    place.queues = 1u << UIR_PLAN_QUEUE_HOST;
    if (tensor == UIR_PLAN_NONE || !r->analysis->releases) return place;
    const uir_plan_release *release = &r->analysis->releases[tensor];
    place.domain = uir_plan_get_domain(r->plan, tensor);
    place.queues = release->queues;
    if (place.begin > release->begin) place.begin = release->begin;
    if (place.end < release->end) place.end = release->end;
    return place;
}

/* Memory that a launch alone accesses: of its queue, and free when its results are. */
static uir_rt_place make_work(const uir_runtime *r, uint32_t step, uint64_t size) {
    uint32_t position = r->analysis->steps[step].position;
    uir_rt_place place = make_place(r, size, position, position, UIR_PLAN_NONE);
    const uir_plan_step *s = &r->plan->steps[step];
    if (uir_plan_get_queue(r->plan, step) == UIR_PLAN_QUEUE_HOST) return place;
    place.domain = UIR_PLAN_ON_DEVICE;
    place.queues = 1u << uir_plan_get_queue(r->plan, step);
    place.end = UINT32_MAX;
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(r->plan, s->outputs, i);
        if (t == UIR_PLAN_NONE) continue;
        const uir_plan_release *release = &r->analysis->releases[r->analysis->tensors[t].root];
        if (place.end > release->end) place.end = release->end;
        if (place.begin > release->begin) place.begin = release->begin;
    }
    return place;
}

static void add_place(uir_runtime *r, uir_rt_epoch *epoch, uir_rt_place place) {
    bool is_there = place.domain == UIR_PLAN_ON_DEVICE;
    place.size = uir_rt_align_to(place.size, is_there ? r->package->device.alignment : RT_ALIGN);
    epoch->places[epoch->place_count++] = place;
}

static void collect_places(uir_runtime *r, uint32_t id) {
    const uir_rt_epoch_info *info = &r->analysis->epochs.data[id];
    uir_rt_epoch *epoch = &r->epochs[id];
    epoch->place_count = 0;
    for (uint32_t i = 0; i < info->tensors.count; i++) {
        uint32_t t = info->tensors.data[i];
        const uir_rt_tensor_info *facts = &r->analysis->tensors[t];
        uint32_t storage = r->plan->tensors[t].storage;
        if (storage != UIR_PLAN_STORAGE_ARENA && storage != UIR_PLAN_STORAGE_LAID_OUT) continue;
        if (facts->home != UIR_PLAN_NONE) continue;
        add_place(r, epoch, make_place(r, r->tensors[t].span, facts->first, facts->last, t));
    }
    for (uint32_t i = 0; i < info->launches.count; i++) {
        uint32_t step = info->launches.data[i];
        uir_rt_launch *l = &r->launches[r->analysis->steps[step].index];
        l->first_work = epoch->place_count;
        if (l->invalid || l->idle) continue;
        for (uint32_t p = 0; p < l->variant->pointer_count; p++) {
            if (r->plan->pointers[l->variant->first_pointer + p].role != UIR_PLAN_WORK) continue;
            add_place(r, epoch, make_work(r, step, l->sizes[p]));
        }
    }
}

/* ---- outputs ---- */
static bool overlaps(const uir_region *a, size_t a_size, const uir_region *b, size_t b_size) {
    if (a->buffer != b->buffer || !a_size || !b_size) return false;
    uint64_t x = a->buffer ? a->offset : (uintptr_t)a->host, y = b->buffer ? b->offset : (uintptr_t)b->host;
    return x < y + b_size && y < x + a_size;
}

/* The launch that makes the output, whose variant is chosen; NULL: none. `*out_step`: its step. */
static const uir_rt_launch *maker_of(const uir_runtime *r, uint32_t output, uint32_t *out_step) {
    uint32_t step = r->analysis->tensors[uir_plan_get_home_tensor(r->plan, true, output)].writer;
    if (step == UIR_PLAN_NONE || r->plan->steps[step].kind != UIR_PLAN_STEP_LAUNCH) return NULL;
    const uir_rt_launch *l = &r->launches[r->analysis->steps[step].index];
    *out_step = step;
    return l->variant ? l : NULL;
}

/* Whether the launch that makes the output goes on in place from input `input` of the plan, which nothing reads later.
 */
static bool continues_input(const uir_runtime *r, uint32_t output, uint32_t input) {
    uint32_t tensor = uir_plan_get_home_tensor(r->plan, true, output),
             source = uir_plan_get_home_tensor(r->plan, false, input), step;
    const uir_rt_launch *l = maker_of(r, output, &step);
    for (uint32_t p = 0; l && p < l->variant->pointer_count; p++) {
        const uir_plan_step *s = &r->plan->steps[step];
        const uir_plan_pointer *pointer = &r->plan->pointers[l->variant->first_pointer + p];
        if (pointer->role != UIR_PLAN_OUT || uir_plan_get_word(r->plan, s->outputs, pointer->index) != tensor) continue;
        if (pointer->tied == UIR_PLAN_NONE) return false;
        uint32_t tied = uir_plan_get_word(r->plan, s->inputs, pointer->tied);
        return r->analysis->tensors[tied].root == source &&
               r->analysis->tensors[source].last <= r->analysis->steps[step].position;
    }
    return false;
}

/* Whether the launch that makes the output only appends to what the input of the plan holds, which lies where the
 * output has it: what others read of the input, they read unchanged. */
static bool appends_to_input(const uir_runtime *r, uint32_t output, uint32_t input) {
    uint32_t tensor = uir_plan_get_home_tensor(r->plan, true, output),
             source = uir_plan_get_home_tensor(r->plan, false, input), step;
    const uir_rt_launch *l = maker_of(r, output, &step);
    for (uint32_t f = 0; l && f < l->variant->phase_count; f++) {
        const uir_plan_step *s = &r->plan->steps[step];
        uir_plan_list copies = r->plan->phases[l->variant->first_phase + f].copies;
        for (uint32_t c = 0; c < copies.count && l->halves[f]; c += 2) {
            const uir_plan_pointer *pointers = &r->plan->pointers[l->variant->first_pointer],
                                   *from = &pointers[uir_plan_get_word(r->plan, copies, c)],
                                   *to = &pointers[uir_plan_get_word(r->plan, copies, c + 1)];
            if (uir_plan_get_word(r->plan, s->outputs, to->index) == tensor &&
                uir_plan_get_word(r->plan, s->inputs, from->index) == source)
                return true;
        }
    }
    return false;
}

/* Whether what a run writes for the output would change an input that it still reads. */
static bool disturbs_input(const uir_runtime *r, uint32_t k, size_t bytes, bool in_place) {
    const uir_region *at = &r->bound_outputs[k].at;
    for (uint32_t i = 0; i < r->plan->inputs_count; i++) {
        const uir_region *input = &r->inputs[i];
        if (!overlaps(at, bytes, input, r->tensors[r->plan->inputs[i].tensor].span)) continue;
        if (!in_place || !uir_rt_is_same_place(input, at) || (!appends_to_input(r, k, i) && !continues_input(r, k, i)))
            return true;
    }
    return false;
}

/* The bytes that the caller's buffer must have. */
static uir_status measure_output(uir_runtime *r, uint32_t k, size_t *out_bytes) {
    uint32_t tensor = r->plan->outputs[k].tensor;
    const uir_rt_binding *given = &r->bound_outputs[k];
    *out_bytes = r->tensors[tensor].bytes;
    if (given->strided && !uir_rt_footprint(given, (uir_dtype)r->plan->tensors[tensor].dtype, uir_rt_rank(r, tensor),
                                            uir_rt_shape(r, tensor), out_bytes))
        return fail_size(r, "an output is too large for its strides");
    if (given->at.size < *out_bytes)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "output '%s': the buffer holds %zu bytes, %zu are needed",
                         uir_plan_get_text(r->plan, r->plan->outputs[k].name), (size_t)given->at.size, *out_bytes);
    return UIR_STATUS_OK;
}

/* The output's tensor in a domain: in the caller's buffer if that is there, else in the runtime's. */
static uir_status place_output(uir_runtime *r, uint32_t k, uint32_t tensor) {
    const uir_rt_binding *given = &r->bound_outputs[k];
    uir_plan_domain domain = uir_plan_get_domain(r->plan, tensor);
    size_t bytes, span = r->tensors[tensor].span;
    bool is_there = uir_rt_is_placed(&given->at) && (given->at.buffer != NULL) == (domain == UIR_PLAN_ON_DEVICE);
    uir_rt_buffer *own = domain == UIR_PLAN_ON_DEVICE ? &r->device_results[k] : &r->results[k];
    if (uir_rt_is_placed(&given->at)) UIR_TRY(measure_output(r, k, &bytes));
    if (is_there) {
        bool is_written = tensor == uir_plan_get_home_tensor(r->plan, true, k);
        r->copied_out[k] = disturbs_input(r, k, span > bytes ? span : bytes, is_written) ||
                           (given->strided && (!given->in_place || given->at.size < span));
        if (!r->copied_out[k]) {
            uir_rt_place_tensor(r, tensor, given->at);
            return UIR_STATUS_OK;
        }
    }
    UIR_TRY(uir_rt_buffer_grow(r, own, domain, span, tensor));
    uir_rt_place_tensor(r, tensor, uir_rt_in_buffer(own, 0, own->capacity));
    return UIR_STATUS_OK;
}

static uir_status place_outputs(uir_runtime *r, uint32_t id) {
    for (uint32_t k = 0; k < r->plan->outputs_count; k++) {
        uint32_t tensor = r->plan->outputs[k].tensor, on_device = uir_plan_get_port_tensor(r->plan, true, k);
        if (r->analysis->tensors[tensor].epoch != id) continue;
        r->copied_out[k] = false;
        if (on_device != UIR_PLAN_NONE) UIR_TRY(place_output(r, k, on_device));
        /* Results that the caller has on the device do not come to the host. */
        if (on_device == UIR_PLAN_NONE || !r->bound_outputs[k].at.buffer) UIR_TRY(place_output(r, k, tensor));
    }
    for (uint32_t i = 0; i < r->plan->inputs_count && r->plan->devices_count; i++) {
        uint32_t on_device = uir_plan_get_port_tensor(r->plan, false, i);
        if (on_device != UIR_PLAN_NONE && r->analysis->tensors[on_device].epoch == id)
            UIR_TRY(uir_rt_device_place_input(r, i, on_device));
    }
    return UIR_STATUS_OK;
}

/* ---- an epoch ---- */
static uint32_t largest_tensor(const uir_rt_epoch *epoch, uint32_t domain) {
    uint32_t tensor = UIR_PLAN_NONE;
    uint64_t size = 0;
    for (uint32_t i = 0; i < epoch->place_count; i++) {
        if (epoch->places[i].tensor == UIR_PLAN_NONE || epoch->places[i].domain != domain ||
            epoch->places[i].size < size)
            continue;
        size = epoch->places[i].size;
        tensor = epoch->places[i].tensor;
    }
    return tensor;
}

static bool is_unchanged(const uir_runtime *r, uint32_t id) {
    const uir_rt_epoch_info *info = &r->analysis->epochs.data[id];
    const uir_rt_epoch *epoch = &r->epochs[id];
    for (uint32_t i = 0; epoch->valid && i < info->symbols.count; i++) {
        if (!r->bound[info->symbols.data[i]] || r->values[info->symbols.data[i]] != epoch->snapshot[i]) return false;
    }
    return epoch->valid;
}

/* The same words as the interpreter's (ir/graph/interpret/interpret.c). */
static uir_status refuse(uir_runtime *r, const uir_plan_check *k, int64_t left, int64_t right) {
    static const int64_t one = 1;
    const uir_plan *p = r->plan;
    char message[512];
    uir_location where = uir_plan_get_location(p, k->node, k->op);
    uir_demand_describe(
        (uir_demand_side){uir_plan_get_text(p, k->left_name), uir_plan_get_text(p, k->left_dims), left},
        (uir_relation)k->relation, k->or_one ? &one : NULL,
        (uir_demand_side){uir_plan_get_text(p, k->right_name), uir_plan_get_text(p, k->right_dims), right}, message,
        sizeof message);
    const char *primitive = uir_plan_get_text(p, k->primitive);
    return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, &where, "%s%s%s", primitive, *primitive ? ": " : "", message);
}

static uir_status check_sizes(uir_runtime *r, const uint32_t *checks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const uir_plan_check *k = &r->plan->checks[checks[i]];
        int64_t left, right;
        if (!uir_plan_evaluate(r->plan, k->left, r->values, r->bound, &left) ||
            !uir_plan_evaluate(r->plan, k->right, r->values, r->bound, &right))
            continue;
        if ((k->or_one && left == 1) || uir_relation_holds((uir_relation)k->relation, left, right)) continue;
        return refuse(r, k, left, right);
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_check_block(uir_runtime *r, uint32_t block) {
    const uir_rt_block_info *info = &r->analysis->blocks[block];
    return check_sizes(r, info->checks.data, info->checks.count);
}

/* What only a body touches need not make sense unless the body runs: it is asked again then. */
static uir_status try_tensor(uir_runtime *r, uint32_t tensor) {
    uir_diagnostics *diagnostics = r->diagnostics;
    bool conditional = r->analysis->tensors[tensor].conditional;
    if (conditional) r->diagnostics = NULL;
    uir_status status = shape_tensor(r, tensor);
    r->diagnostics = diagnostics;
    r->tensors[tensor].invalid = status != UIR_STATUS_OK;
    if (!conditional || status == UIR_STATUS_OK) return status;
    r->tensors[tensor].bytes = r->tensors[tensor].span = 0;
    return UIR_STATUS_OK;
}

static uir_status try_launch(uir_runtime *r, uint32_t step) {
    uir_diagnostics *diagnostics = r->diagnostics, said;
    bool conditional = r->analysis->steps[step].conditional;
    uir_diagnostics_init(&said, &r->allocator);
    if (conditional) r->diagnostics = &said;
    uir_status status = uir_rt_launch_prepare(r, step);
    r->diagnostics = diagnostics;
    r->launches[r->analysis->steps[step].index].invalid = status != UIR_STATUS_OK;
    if (conditional && status != UIR_STATUS_OUT_OF_MEMORY && status != UIR_STATUS_DEVICE_FAILED) status = UIR_STATUS_OK;
    if (conditional && status != UIR_STATUS_OK && said.first)
        (void)uir_rt_fail_step(r, step, status, "%s", said.first->message);
    uir_diagnostics_deinit(&said);
    return status;
}

static uir_status place_blocks(uir_runtime *r, uir_rt_epoch *epoch) {
    for (uint32_t i = 0; i < epoch->place_count; i++)
        if (epoch->places[i].tensor != UIR_PLAN_NONE)
            uir_rt_place_tensor(r, epoch->places[i].tensor, uir_rt_on_host(NULL, 0));
    for (uint32_t d = 0; d < (r->plan->devices_count ? UIR_PLAN_DOMAIN_COUNT : 1u); d++) {
        epoch->block_sizes[d] =
            uir_rt_assign_offsets(epoch->places, epoch->place_count, (uir_plan_domain)d, epoch->order);
        UIR_TRY(uir_rt_buffer_grow(r, &epoch->blocks[d], (uir_plan_domain)d, epoch->block_sizes[d],
                                   largest_tensor(epoch, d)));
    }
    for (uint32_t i = 0; i < epoch->place_count; i++) {
        const uir_rt_place *p = &epoch->places[i];
        if (p->tensor != UIR_PLAN_NONE)
            uir_rt_place_tensor(r, p->tensor, uir_rt_in_buffer(&epoch->blocks[p->domain], p->offset, p->size));
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_enter_epoch(uir_runtime *r, uint32_t id) {
    const uir_rt_epoch_info *info = &r->analysis->epochs.data[id];
    uir_rt_epoch *epoch = &r->epochs[id];
    if (is_unchanged(r, id)) {
        UIR_TRY(uir_rt_place_homed(r, info->homed.data, info->homed.count));
        return place_outputs(r, id);
    }
    epoch->valid = false;
    UIR_TRY(uir_rt_drain(r));
    UIR_TRY(check_sizes(r, info->checks.data, info->checks.count));
    for (uint32_t i = 0; i < info->tensors.count; i++) {
        UIR_TRY(try_tensor(r, info->tensors.data[i]));
        if (uir_rt_cancelled(r)) return UIR_STATUS_CANCELLED;
    }
    for (uint32_t i = 0; i < info->launches.count; i++) {
        UIR_TRY(try_launch(r, info->launches.data[i]));
        if (uir_rt_cancelled(r)) return UIR_STATUS_CANCELLED;
    }
    collect_places(r, id);
    UIR_TRY(place_blocks(r, epoch));
    UIR_TRY(uir_rt_place_homed(r, info->homed.data, info->homed.count));
    UIR_TRY(place_outputs(r, id));
    UIR_TRY(uir_rt_ensure_scratch(r));
    for (uint32_t i = 0; i < info->symbols.count; i++) epoch->snapshot[i] = r->values[info->symbols.data[i]];
    epoch->valid = true;
    return UIR_STATUS_OK;
}

/* As shape_tensor, and the tensor stays what it is. */
static uir_status check_tensor(uir_runtime *r, uint32_t tensor) {
    const uir_plan_tensor *t = &r->plan->tensors[tensor];
    int64_t shape[UIR_PLAN_MAX_RANK];
    uint64_t count = 1, from = 1;
    size_t bytes = 0, from_bytes = 0;
    UIR_TRY(evaluate_tensor(r, tensor, shape, &count, &bytes));
    if (t->storage != UIR_PLAN_STORAGE_ALIAS) return UIR_STATUS_OK;
    UIR_TRY(evaluate_tensor(r, t->index, shape, &from, &from_bytes));
    return bytes == from_bytes ? UIR_STATUS_OK : fail_alias(r, tensor, from, count);
}

uir_status uir_rt_check_epoch(uir_runtime *r, uint32_t id) {
    const uir_rt_epoch_info *info = &r->analysis->epochs.data[id];
    UIR_TRY(check_sizes(r, info->checks.data, info->checks.count));
    for (uint32_t i = 0; i < info->tensors.count; i++)
        if (!r->analysis->tensors[info->tensors.data[i]].conditional) UIR_TRY(check_tensor(r, info->tensors.data[i]));
    return UIR_STATUS_OK;
}

void uir_rt_forget_block(uir_runtime *r, uint32_t block) {
    const uir_rt_block_info *info = &r->analysis->blocks[block];
    for (uint32_t i = 0; i < info->tensors.count; i++)
        uir_rt_place_tensor(r, info->tensors.data[i], uir_rt_on_host(NULL, 0));
    for (uint32_t s = info->first_epoch; s < info->end_epoch; s++) {
        const uir_rt_epoch_info *epoch = &r->analysis->epochs.data[s];
        for (uint32_t i = 0; i < epoch->learned.count; i++) r->bound[epoch->learned.data[i]] = false;
    }
}
