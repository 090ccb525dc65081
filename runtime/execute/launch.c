/* Kernel launches: which variant, which tiles, the phases over the threads. */
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

/* A launch whose tensors are smaller than this runs on the caller: waking threads would take longer. Bytecode is slower
 * and is worth it sooner. */
enum { SMALL_NATIVE_BYTES = 64 << 10, SMALL_BYTES = 4 << 10 };

static const uir_plan_kernel *kernel_of(const uir_runtime *r, uint32_t step) {
    return &r->plan->kernels[r->plan->steps[step].target];
}

static uir_rt_launch *launch_of(const uir_runtime *r, uint32_t step) {
    return &r->launches[r->analysis->steps[step].index];
}

/* ---- making ---- */
uir_status uir_rt_launch_create(uir_runtime *r, uint32_t step) {
    const uir_rt_kernel_info *most = &r->analysis->kernels[r->plan->steps[step].target];
    uir_rt_launch *l = launch_of(r, step);
    uint32_t symbols = most->symbols, pointers = most->pointers, phases = most->phases;
    UIR_TRY_ALLOCATE(l->symbols, uir_arena_allocate_array(&r->arena, (size_t)symbols + 1, sizeof *l->symbols));
    UIR_TRY_ALLOCATE(l->pointers, uir_arena_allocate_array(&r->arena, (size_t)pointers + 1, sizeof *l->pointers));
    UIR_TRY_ALLOCATE(l->sizes, uir_arena_allocate_array(&r->arena, (size_t)pointers + 1, sizeof *l->sizes));
    UIR_TRY_ALLOCATE(l->indices, uir_arena_allocate_array(&r->arena, (size_t)phases + 1, sizeof *l->indices));
    UIR_TRY_ALLOCATE(l->begins, uir_arena_allocate_array(&r->arena, (size_t)phases + 1, sizeof *l->begins));
    UIR_TRY_ALLOCATE(l->halves, uir_arena_allocate_array(&r->arena, (size_t)phases + 1, sizeof *l->halves));
    l->base = (uir_kernel_launch){.symbols = l->symbols,
                                  .pointers = l->pointers,
                                  .sizes = l->sizes,
                                  .indices = l->indices,
                                  .begins = l->begins,
                                  .cancel = &r->cancel};
    return uir_rt_is_on_device(r, step) ? uir_rt_device_launch_create(r, l, most) : UIR_STATUS_OK;
}

/* ---- choosing ---- */
static bool evaluate(const uir_runtime *r, uint32_t expression, int64_t *out) {
    return uir_plan_evaluate(r->plan, expression, r->environment, r->environment_bound, out);
}

/* Gives every symbol of the variant its value: dims, tiles when given, and the values that follow. False when a fact is
 * broken. */
static bool bind_environment(uir_runtime *r, const uir_plan_variant *v, const int64_t *dims, const int64_t *tiles) {
    uint32_t dim = 0, tile = 0;
    for (uint32_t i = 0; i < v->symbol_count; i++) {
        const uir_plan_kernel_symbol *s = &r->plan->kernel_symbols[v->first_symbol + i];
        int64_t value = 0;
        bool bound = true;
        if (uir_rt_cancelled(r)) return false;
        if (s->kind == UIR_PLAN_DIM)
            value = dims[dim++];
        else if (s->kind == UIR_PLAN_TILE && tiles)
            value = tiles[tile++];
        else
            bound = s->kind == UIR_PLAN_VALUE && evaluate(r, s->definition, &value);
        if (s->kind != UIR_PLAN_VALUE && bound && (value < s->min || value > s->max || value % s->multiple_of))
            return false;
        r->environment[i] = value;
        r->environment_bound[i] = bound;
    }
    return true;
}

static bool conditions_hold(const uir_runtime *r, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const uir_plan_condition *c = &r->plan->conditions[first + i];
        int64_t left, right;
        if (!evaluate(r, c->left, &left) || !evaluate(r, c->right, &right) ||
            !uir_relation_holds((uir_relation)c->relation, left, right))
            return false;
    }
    return true;
}

/* A candidate whose expressions fail for these sizes is not valid for them. */
static bool try_candidate(uir_runtime *r, const uir_plan_variant *v, const uir_plan_candidate *c, const int64_t *dims,
                          int64_t *tiles, int64_t *out_cost, int64_t *out_units) {
    if (!bind_environment(r, v, dims, NULL) || !conditions_hold(r, c->first_condition, c->condition_count))
        return false;
    for (uint32_t t = 0; t < c->tiles.count; t++) {
        if (!evaluate(r, uir_plan_get_word(r->plan, c->tiles, t), &tiles[t])) return false;
    }
    if (!bind_environment(r, v, dims, tiles) || !conditions_hold(r, v->first_require, v->require_count)) return false;
    *out_cost = 0;
    *out_units = 1;
    return (c->cost == UIR_PLAN_NONE || evaluate(r, c->cost, out_cost)) &&
           (c->units == UIR_PLAN_NONE || evaluate(r, c->units, out_units));
}

/* The dims are in l->symbols; the tiles follow them. `wanted`: the candidate to take where it is valid. Leaves the
 * environment bound for the choice. */
static bool choose_tiles(uir_runtime *r, uir_rt_launch *l, const uir_plan_variant *v, uint32_t dim_count,
                         uint32_t wanted) {
    int64_t best = 0, cost, units, *tiles = l->symbols + dim_count;
    uint32_t chosen = UIR_PLAN_NONE;
    l->candidate = UIR_PLAN_NONE;
    if (v->candidate_count == 0 || r->plan->candidates[v->first_candidate].tiles.count == 0)
        return bind_environment(r, v, l->symbols, tiles) && conditions_hold(r, v->first_require, v->require_count);
    for (uint32_t i = 0; i < v->candidate_count; i++) {
        const uir_plan_candidate *c = &r->plan->candidates[v->first_candidate + i];
        if (!try_candidate(r, v, c, l->symbols, tiles, &cost, &units)) continue;
        cost = i == wanted ? INT64_MIN : uir_shared_cost(cost, units, r->threads);
        if (chosen != UIR_PLAN_NONE && cost >= best) continue;
        chosen = i;
        best = cost;
    }
    if (chosen == UIR_PLAN_NONE) return false;
    l->candidate = chosen;
    return try_candidate(r, v, &r->plan->candidates[v->first_candidate + chosen], l->symbols, tiles, &l->cost,
                         &l->units);
}

static const uir_loaded_kernel *find_kernel(const uir_runtime *r, uint32_t variant,
                                            const uir_kernel_format **out_format) {
    for (uint32_t i = 0; i < r->package->format_count; i++) {
        const uir_rt_kernels *kernels = r->kernels[i];
        if (!kernels || !kernels->variants[variant]) continue;
        *out_format = kernels->format;
        return kernels->variants[variant];
    }
    return NULL;
}

/* ---- sizes ---- */
static uir_status bind_pointers(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t constant = l->first_constant;
    l->bytes = 0;
    for (uint32_t i = 0; i < l->variant->pointer_count; i++) {
        const uir_plan_pointer *p = &r->plan->pointers[l->variant->first_pointer + i];
        int64_t span;
        size_t bytes, given, moved;
        if (!evaluate(r, p->span, &span) ||
            !uir_dtype_storage_size((uir_dtype)p->dtype, span > 0 ? (uint64_t)span : 0, &bytes))
            return uir_rt_fail_step(r, step, UIR_STATUS_LIMIT, "a pointer of the step's kernel is too large");
        moved = bytes;
        if (p->role == UIR_PLAN_IN || p->role == UIR_PLAN_OUT) {
            const uir_rt_tensor *t =
                &r->tensors[uir_plan_get_word(r->plan, p->role == UIR_PLAN_IN ? s->inputs : s->outputs, p->index)];
            given = t->span;
            if (moved > t->bytes) moved = t->bytes; /* slack is not touched */
        } else if (p->role == UIR_PLAN_CONST)
            given = (size_t)r->plan->constants[uir_plan_get_word(r->plan, s->constants, constant++)].size;
        else
            given = bytes;
        if (given < bytes)
            return uir_rt_fail_step(r, step, UIR_STATUS_BAD_FILE,
                                    "pointer %u of the step's kernel requires %zu bytes, but has %zu", i, bytes, given);
        l->sizes[i] = given;
        if (l->on_device) l->on_device->needed[i] = bytes;
        l->bytes += p->role == UIR_PLAN_WORK ? 2 * (uint64_t)bytes : moved;
    }
    return UIR_STATUS_OK;
}

/* How many of a phase's indices do nothing once what they copy from and to begins at one address. */
static void find_half(const uir_runtime *r, uir_rt_launch *l, uint32_t phase) {
    const uir_plan_phase *p = &r->plan->phases[l->variant->first_phase + phase];
    int64_t first = 0;
    bool apart = p->copies.count && p->extents.count &&
                 evaluate(r, uir_plan_get_word(r->plan, p->extents, 0), &first) && first == 2 &&
                 conditions_hold(r, p->first_same, p->same_count);
    l->halves[phase] = apart ? l->indices[phase] / 2 : 0;
}

static uir_status bind_phases(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    for (uint32_t i = 0; i < l->variant->phase_count; i++) {
        uir_plan_list extents = r->plan->phases[l->variant->first_phase + i].extents;
        int64_t total = 1, extent;
        for (uint32_t a = 0; a < extents.count; a++) {
            if (!evaluate(r, uir_plan_get_word(r->plan, extents, a), &extent) ||
                __builtin_mul_overflow(total, extent < 0 ? 0 : extent, &total))
                return uir_rt_fail_step(r, step, UIR_STATUS_LIMIT,
                                        "a parallel axis of the step's kernel has no extent");
        }
        l->indices[i] = total;
        l->begins[i] = 0;
        find_half(r, l, i);
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_grow_state(uir_runtime *r, void **state, size_t *capacity, size_t size) {
    void *grown;
    if (size <= *capacity) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(grown, uir_allocate_zeroed(&r->allocator, size));
    if (*state) uir_release(&r->allocator, *state, *capacity);
    *state = grown;
    *capacity = size;
    return UIR_STATUS_OK;
}

/* Bytes of scratch that the plan has for a unit of the variant. */
static uir_status find_scratch(uir_runtime *r, uint32_t step, const uir_plan_variant *v, uint64_t *out_bytes) {
    int64_t scratch = 0;
    if (!evaluate(r, v->scratch, &scratch) || scratch < 0 || scratch > INT64_MAX / 2)
        return uir_rt_fail_step(r, step, UIR_STATUS_LIMIT, "the scratch of the step's kernel has no size");
    *out_bytes = (uint64_t)scratch;
    return UIR_STATUS_OK;
}

static uir_status refuse_sizes(uir_runtime *r, uint32_t step, const uir_rt_launch *l, uint32_t dim_count) {
    char text[160] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < dim_count && at + 24 < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, i ? ", %lld" : "%lld", (long long)l->symbols[i]);
    return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "no variant of kernel @%s fits the sizes (%s)",
                            uir_plan_get_text(r->plan, kernel_of(r, step)->name), text);
}

/* What has no shape has none because its sizes make no sense, which is to be told. */
static bool gives_elements(const uir_runtime *r, const uir_plan_step *s) {
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        const uir_rt_tensor *t = &r->tensors[uir_plan_get_word(r->plan, s->outputs, i)];
        if (t->bytes || t->invalid) return true;
    }
    return false;
}

uir_status uir_runtime_want_candidate(uir_runtime *r, const char *kernel, uint32_t candidate) {
    uint32_t count = r->plan->kernels_count, at = 0;
    while (at < count && strcmp(uir_plan_get_text(r->plan, r->plan->kernels[at].name), kernel) != 0) at++;
    if (at == count) return UIR_STATUS_NOT_FOUND;
    if (!r->wanted) {
        UIR_TRY_ALLOCATE(r->wanted, uir_arena_allocate_array(&r->arena, count, sizeof *r->wanted));
        for (uint32_t i = 0; i < count; i++) r->wanted[i] = UIR_PLAN_NONE;
    }
    r->wanted[at] = candidate;
    for (uint32_t i = 0; i < r->analysis->epochs.count; i++) r->epochs[i].valid = false;
    return UIR_STATUS_OK;
}

bool uir_runtime_get_choice(const uir_runtime *r, uint32_t step, uir_runtime_choice *out) {
    if (step >= r->plan->steps_count || r->plan->steps[step].kind != UIR_PLAN_STEP_LAUNCH) return false;
    const uir_rt_launch *l = launch_of(r, step);
    if (!l->variant) return false;
    *out = (uir_runtime_choice){.variant = l->variant_index, .variant_count = kernel_of(r, step)->variant_count};
    if (l->candidate == UIR_PLAN_NONE) return true;
    const uir_plan_candidate *c = &r->plan->candidates[l->variant->first_candidate + l->candidate];
    out->candidate = l->candidate;
    out->candidate_count = l->variant->candidate_count;
    out->tiles = l->symbols + kernel_of(r, step)->dim_count;
    out->tile_count = c->tiles.count;
    out->units = l->units;
    out->cost = l->cost;
    return true;
}

uir_status uir_rt_launch_prepare(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    const uir_plan_kernel *k = kernel_of(r, step);
    uir_rt_launch *l = launch_of(r, step);
    l->idle = !gives_elements(r, s);
    if (l->idle) {
        l->variant = NULL;
        l->variant_index = 0;
        l->bytes = 0;
        return UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < s->values.count; i++) {
        if (!uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, s->values, i), r->values, r->bound, &l->symbols[i]))
            return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "a size of the step's kernel has no value");
    }
    const uir_plan_variant *chosen = NULL;
    uint32_t wanted = r->wanted ? r->wanted[s->target] : UIR_PLAN_NONE;
    l->first_constant = 0;
    for (uint32_t i = 0; i < k->variant_count && !chosen; i++) {
        const uir_plan_variant *v = &r->plan->variants[k->first_variant + i];
        if (choose_tiles(r, l, v, k->dim_count, wanted)) {
            chosen = v;
            l->variant_index = i;
            break;
        }
        for (uint32_t p = 0; p < v->pointer_count; p++)
            l->first_constant += r->plan->pointers[v->first_pointer + p].role == UIR_PLAN_CONST;
    }
    if (!chosen && uir_rt_cancelled(r)) return UIR_STATUS_CANCELLED;
    if (!chosen) return refuse_sizes(r, step, l, k->dim_count);
    l->variant = chosen;
    UIR_TRY(bind_pointers(r, step, l));
    UIR_TRY(bind_phases(r, step, l));
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < chosen->symbol_count; i++)
        tiles += r->plan->kernel_symbols[chosen->first_symbol + i].kind == UIR_PLAN_TILE;
    l->base.dim_count = k->dim_count;
    l->base.tile_count = tiles;
    l->base.pointer_count = chosen->pointer_count;
    l->base.phase_count = chosen->phase_count;
    l->by_host =
        l->on_device && !uir_plan_variant_runs(r->plan, k->first_variant + l->variant_index, UIR_PLAN_ON_DEVICE);
    if (l->by_host) UIR_TRY(uir_rt_judge_by_host(r, step));
    if (l->on_device && !l->by_host) {
        l->on_device->base.scratch_size = 0;
        if (chosen->scratch != UIR_PLAN_NONE) UIR_TRY(find_scratch(r, step, chosen, &l->on_device->base.scratch_size));
        return uir_rt_device_prepare(r, step, l);
    }
    const uir_kernel_format *format = NULL;
    const uir_loaded_kernel *kernel = find_kernel(r, k->first_variant + l->variant_index, &format);
    if (!kernel)
        return uir_rt_fail_step(r, step, UIR_STATUS_DEVICE_FAILED, "no kernel format can run the step's kernel");
    UIR_TRY(uir_rt_grow_state(r, &l->base.state, &l->state_capacity, format->state_size(kernel)));
    l->format = format;
    l->base.kernel = kernel;
    uint64_t scratch = 0;
    if (format->native) UIR_TRY(find_scratch(r, step, chosen, &scratch));
    l->base.scratch_size = (size_t)scratch;
    uir_status status = format->prepare(&l->base, r->diagnostics);
    if (status != UIR_STATUS_OK)
        return uir_rt_fail_step(r, step, status, "the step's kernel cannot run with these sizes");
    if (r->scratch_needed < l->base.scratch_size) r->scratch_needed = l->base.scratch_size;
    return UIR_STATUS_OK;
}

/* ---- running ---- */
uir_status uir_rt_ensure_scratch(uir_runtime *r) {
    for (uint32_t t = 0; t < r->threads; t++) {
        if (r->scratch[t].wanted > r->scratch_needed) r->scratch_needed = r->scratch[t].wanted;
    }
    for (uint32_t t = 0; t < r->threads; t++) {
        uir_kernel_scratch *s = &r->scratch[t];
        if (s->size >= r->scratch_needed) continue;
        uir_rt_buffer buffer = {.data = s->data, .capacity = s->size};
        uir_status status = uir_rt_buffer_grow_scratch(r, &buffer, r->scratch_needed);
        s->data = buffer.data;
        s->size = buffer.capacity;
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}

typedef struct phase_run {
    uir_runtime *r;
    uint32_t step, phase;
} phase_run;

static void run_in_parallel(void *user, uint32_t count, uir_rt_task *task, void *context) {
    const uir_runtime *r = ((const phase_run *)user)->r;
    if (r->options.parallel)
        r->options.parallel(r->options.parallel_user, count, task, context);
    else
        uir_rt_pool_run(r->pool, count, task, context);
}

static void trace_part(void *user, uint32_t thread, uint64_t begin, uint64_t indices) {
    const phase_run *run = user;
    uir_rt_trace(run->r, thread, (uir_rt_slice){begin, uir_rt_now(), run->step, run->phase, indices});
}

static uir_status run_phase(uir_runtime *r, uint32_t step, const uir_rt_launch *l, uint32_t phase) {
    uint64_t small = l->format->native ? SMALL_NATIVE_BYTES : SMALL_BYTES;
    phase_run run = {r, step, phase};
    uir_rt_phase p = {.format = l->format,
                      .launch = &l->base,
                      .phase = phase,
                      .threads = l->bytes < small ? 1 : r->threads,
                      .bytes = l->bytes,
                      .scratch = r->scratch,
                      .shares = r->shares,
                      .parallel = run_in_parallel,
                      .done = r->options.trace ? trace_part : NULL,
                      .user = &run};
    uir_status status = uir_rt_phase_run(&p);
    if (status == UIR_STATUS_OK || status == UIR_STATUS_CANCELLED) return status;
    const char *failure = uir_rt_phase_get_failure(&p);
    return failure ? uir_rt_fail_step(r, step, status, "%s", failure)
                   : uir_rt_fail_step(r, step, status, "the step's kernel failed");
}

/* Where a tensor is, with what the launch was prepared for behind it; NULL: nowhere, or it is empty. */
static inline const uir_region *find_argument(const uir_runtime *r, uint32_t tensor, size_t size) {
    const uir_region *at = &r->tensors[r->analysis->tensors[tensor].root].at;
    size_t span = r->tensors[tensor].span;
    return span && size <= span && span <= at->size && uir_rt_is_placed(at) ? at : NULL;
}

/* The same for a tensor that find_argument does not find. */
static uir_status locate_argument(uir_runtime *r, uint32_t step, uint32_t tensor, size_t size, uir_region *out_region) {
    UIR_TRY(uir_rt_locate(r, tensor, out_region));
    if (size <= r->tensors[tensor].span) return UIR_STATUS_OK;
    return uir_rt_fail_step(r, step, UIR_STATUS_BAD_FILE, "it was prepared for %zu bytes of a tensor of %zu", size,
                            r->tensors[tensor].span);
}

/* A result that goes on from what an input holds. */
static uir_status continue_input(uir_runtime *r, uint32_t step, uint32_t input, size_t size, const uir_region *to) {
    uir_region from;
    UIR_TRY(uir_rt_locate(r, input, &from));
    if (size > r->tensors[input].bytes) size = r->tensors[input].bytes;
    if (uir_rt_is_same_place(&from, to)) return UIR_STATUS_OK;
    r->statistics.copies++;
    return uir_rt_copy(r, step, uir_plan_get_queue(r->plan, step), to, &from, size);
}

static uir_status set_pointers(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    const uir_plan_step *s = &r->plan->steps[step];
    const uir_rt_epoch *epoch = &r->epochs[r->analysis->steps[step].launch_epoch];
    uint32_t constant = l->first_constant, work = l->first_work;
    uir_plan_domain domain = l->on_device ? UIR_PLAN_ON_DEVICE : UIR_PLAN_ON_HOST;
    for (uint32_t i = 0; i < l->variant->pointer_count; i++) {
        const uir_plan_pointer *p = &r->plan->pointers[l->variant->first_pointer + i];
        const uir_region *at;
        uir_region made;
        if (p->role == UIR_PLAN_IN || p->role == UIR_PLAN_OUT) {
            uint32_t t = uir_plan_get_word(r->plan, p->role == UIR_PLAN_IN ? s->inputs : s->outputs, p->index);
            at = find_argument(r, t, l->sizes[i]);
            if (!at) UIR_TRY(locate_argument(r, step, t, l->sizes[i], &made));
            if (!at) at = &made;
            if (p->tied != UIR_PLAN_NONE)
                UIR_TRY(continue_input(r, step, uir_plan_get_word(r->plan, s->inputs, p->tied), l->sizes[i], at));
        } else if (p->role == UIR_PLAN_CONST) {
            made = uir_rt_constant_region(r->package, uir_plan_get_word(r->plan, s->constants, constant++), domain);
            at = &made;
        } else {
            const uir_rt_place *place = &epoch->places[work++];
            made = uir_rt_in_buffer(&epoch->blocks[domain], place->offset, place->size);
            at = &made;
        }
        l->pointers[i] = at->host;
        if (l->on_device) l->on_device->pointers[i] = *at;
    }
    return UIR_STATUS_OK;
}

static bool is_same_pointer(const uir_rt_launch *l, uint32_t a, uint32_t b) {
    return l->on_device ? uir_rt_is_same_place(&l->on_device->pointers[a], &l->on_device->pointers[b])
                        : l->pointers[a] == l->pointers[b];
}

/* Copies onto themselves are left out. Returns the bytes that are not moved. */
static uint64_t skip_copies(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint64_t saved = 0;
    for (uint32_t i = 0; i < l->variant->phase_count; i++) {
        uir_plan_list copies = r->plan->phases[l->variant->first_phase + i].copies;
        bool skip = l->halves[i] > 0;
        uint64_t bytes = 0;
        for (uint32_t c = 0; c < copies.count && skip; c += 2) {
            uint32_t from = uir_plan_get_word(r->plan, copies, c), to = uir_plan_get_word(r->plan, copies, c + 1);
            const uir_plan_pointer *p = &r->plan->pointers[l->variant->first_pointer + from];
            skip = is_same_pointer(l, from, to);
            bytes += 2 * (uint64_t)r->tensors[uir_plan_get_word(r->plan, s->inputs, p->index)].bytes;
        }
        l->begins[i] = skip ? l->halves[i] : 0;
        if (skip) saved += bytes;
    }
    return saved < l->bytes ? saved : l->bytes;
}

uir_status uir_rt_run_phases(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    for (uint32_t i = 0; i < l->variant->phase_count; i++) UIR_TRY(run_phase(r, step, l, i));
    return UIR_STATUS_OK;
}

uir_status uir_rt_launch_run(uir_runtime *r, uint32_t step) {
    uir_rt_launch *l = launch_of(r, step);
    if (l->invalid) {
        uir_status status = uir_rt_launch_prepare(r, step); /* says what is wrong */
        return status == UIR_STATUS_OK ? uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "it has no sizes") : status;
    }
    if (l->idle) return UIR_STATUS_OK;
    UIR_TRY(set_pointers(r, step, l));
    uint64_t bytes = l->bytes - skip_copies(r, step, l);
    UIR_TRY(l->by_host     ? uir_rt_launch_by_host(r, step, l)
            : l->on_device ? uir_rt_device_launch_run(r, step, l)
                           : uir_rt_run_phases(r, step, l));
    if (l->on_device && !l->by_host)
        r->statistics.device_calls++;
    else if (l->format->native)
        r->statistics.native_calls++;
    else
        r->statistics.vm_calls++;
    r->statistics.kernels++;
    r->statistics.phases += l->variant->phase_count;
    r->statistics.dram_bytes += bytes;
    return UIR_STATUS_OK;
}

/* ---- traffic ---- */
/* A format that can tell is given the launch as it was prepared, whichever format ran it. */
uir_status uir_rt_launch_count_traffic(uir_runtime *r, uint32_t step, uint64_t *out_bytes, uint64_t *out_flops) {
    const uir_rt_launch *l = launch_of(r, step);
    uint32_t variant = kernel_of(r, step)->first_variant + l->variant_index;
    *out_bytes = l->bytes;
    if (out_flops) *out_flops = 0;
    if (l->idle) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < r->package->format_count; i++) {
        const uir_rt_kernels *kernels = r->kernels[i];
        if (!kernels || !kernels->format->count_traffic || !kernels->variants[variant]) continue;
        uir_kernel_launch launch = l->base;
        uir_kernel_scratch scratch = {.allocator = &r->allocator};
        size_t size = kernels->format->state_size(kernels->variants[variant]);
        launch.kernel = kernels->variants[variant];
        UIR_TRY_ALLOCATE(launch.state, uir_allocate_zeroed(&r->allocator, size));
        uir_status status = kernels->format->prepare(&launch, r->diagnostics);
        if (status == UIR_STATUS_OK) {
            scratch.size = launch.scratch_size;
            scratch.data = uir_allocate(&r->allocator, scratch.size);
            status = scratch.data ? kernels->format->count_traffic(&launch, &scratch, out_bytes, out_flops)
                                  : UIR_STATUS_OUT_OF_MEMORY;
        }
        if (scratch.data) uir_release(&r->allocator, scratch.data, scratch.size);
        uir_release(&r->allocator, launch.state, size);
        return status;
    }
    return UIR_STATUS_OK;
}
