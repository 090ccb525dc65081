/* A kernel bound to sizes, and the memory of a thread that runs it. */
#include "backends/vm/machine.h"

#include <string.h>

/* What `prepare` leaves for every thread to copy from. The arrays follow in one block. */
typedef struct vm_state {
    const uir_vm_kernel *kernel;
    const vm_routines *routines;
    uint64_t step_limit;
    size_t reserved;  /* bytes of scratch before what instructions allocate */
    int64_t *values;  /* per symbol */
    int64_t *spans;   /* per pointer: elements of an instance */
    int64_t *places;  /* per pointer: the argument, or for a local one the offset in the scratch */
    int64_t *extents; /* per phase: 4 */
    int64_t *indices; /* per phase */
    bool *bound;      /* per symbol */
    vm_fixed fixed;
} vm_state;

enum { VM_ALIGN = 64, VM_LEAST_DYNAMIC = 16384 };

static size_t align_up(size_t size) {
    return (size + VM_ALIGN - 1) / VM_ALIGN * VM_ALIGN;
}

size_t uir_vm_state_size(const uir_vm_kernel *k) {
    size_t words = (size_t)k->symbols_count + 2 * (size_t)k->pointers_count + 5 * (size_t)k->phases_count +
                   (size_t)k->expressions_count;
    return align_up(sizeof(vm_state)) + words * sizeof(int64_t) +
           (size_t)k->pointers_count * VM_MAX_RANK * sizeof(vm_layout) + k->symbols_count + k->expressions_count +
           k->pointers_count + 1;
}

static vm_state *lay_out_state(const uir_vm_kernel *k, void *block) {
    vm_state *s = block;
    int64_t *at = (int64_t *)(void *)((char *)block + align_up(sizeof *s));
    s->kernel = k;
    s->values = at;
    s->spans = s->values + k->symbols_count;
    s->places = s->spans + k->pointers_count;
    s->extents = s->places + k->pointers_count;
    s->indices = s->extents + 4 * (size_t)k->phases_count;
    s->fixed.values = s->indices + k->phases_count;
    s->fixed.layouts = (vm_layout *)(void *)(s->fixed.values + k->expressions_count);
    s->bound = (bool *)(void *)(s->fixed.layouts + (size_t)k->pointers_count * VM_MAX_RANK);
    s->fixed.known = s->bound + k->symbols_count;
    s->fixed.laid_out = s->fixed.known + k->expressions_count;
    return s;
}

/* ---- the memory of a thread: symbols, trips, pointers, flags, chunks, locals, then what instructions allocate ---- */
static size_t lay_out_scratch(const uir_vm_kernel *k, vm_machine *machine, char *data) {
    size_t n = k->symbols_count, at = 0;
    size_t values = at, trips, memory, bound, outside, views, chunks;
    at = trips = align_up(at + n * sizeof(int64_t));
    at = memory = align_up(at + n * sizeof(int64_t));
    at = bound = align_up(at + k->pointers_count * sizeof(vm_memory));
    at = outside = align_up(at + n);
    at = views = align_up(at + n);
    at = chunks = align_up(at + uir_vm_views_size(k));
    at += (size_t)UIR_IOP_MAX_SLICES * VM_CHUNK * 8;
    if (machine) {
        machine->values = (int64_t *)(void *)(data + values);
        machine->trips = (int64_t *)(void *)(data + trips);
        machine->memory = (vm_memory *)(void *)(data + memory);
        machine->bound = (bool *)(void *)(data + bound);
        machine->outside = (bool *)(void *)(data + outside);
        machine->views = (vm_cached_view *)(void *)(data + views);
        for (size_t i = 0; i < UIR_IOP_MAX_SLICES; i++) machine->chunks[i] = data + chunks + i * VM_CHUNK * 8;
    }
    return at;
}

struct vm_overflow {
    vm_overflow *next;
    size_t size;
    char padding[VM_ALIGN - sizeof(vm_overflow *) - sizeof(size_t)];
};

void *uir_vm_allocate(vm_machine *machine, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = align_up(bytes ? bytes : 1);
    size_t end = machine->used + bytes;
    machine->used = end;
    if (machine->scratch->wanted < machine->free_at + end) machine->scratch->wanted = machine->free_at + end;
    if (!machine->overflow && machine->free_at + end <= machine->scratch->size)
        return machine->scratch->data + machine->free_at + end - bytes;
    vm_overflow *block = uir_allocate(machine->scratch->allocator, sizeof *block + bytes);
    if (!block) return NULL;
    block->next = machine->overflow;
    block->size = sizeof *block + bytes;
    machine->overflow = block;
    return block + 1;
}

void uir_vm_forget(vm_machine *machine) {
    machine->used = 0;
    while (machine->overflow) {
        vm_overflow *next = machine->overflow->next;
        uir_release(machine->scratch->allocator, machine->overflow, machine->overflow->size);
        machine->overflow = next;
    }
}

/* ---- binding ---- */
static uir_status bind_symbols(vm_machine *machine, const uir_kernel_arguments *arguments) {
    uint32_t dim = 0, tile = 0;
    for (uint32_t i = 0; i < machine->kernel->symbols_count; i++) {
        const vm_symbol *s = &machine->kernel->symbols[i];
        if (s->kind == UIR_ISYMBOL_DIM || s->kind == UIR_ISYMBOL_TILE) {
            int64_t value = s->kind == UIR_ISYMBOL_DIM ? arguments->dim_values[dim++] : arguments->tile_values[tile++];
            if (value < s->min || value > s->max || value % s->multiple_of)
                return uir_vm_report(machine, UIR_STATUS_INVALID_ARGUMENT, "%s %u = %lld breaks its declaration",
                                     s->kind == UIR_ISYMBOL_DIM ? "dim" : "tile",
                                     s->kind == UIR_ISYMBOL_DIM ? dim - 1 : tile - 1, (long long)value);
            machine->values[i] = value;
            machine->bound[i] = true;
        } else if (s->kind == UIR_ISYMBOL_LET || s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE) {
            /* A let of a body uses what is not bound yet: it gets its value there. */
            const vm_expression *e = &machine->kernel->expressions[s->definition];
            bool ready = true;
            for (uint32_t k = 0; k < e->count; k++) {
                const vm_step *step = &machine->kernel->steps[e->first + k];
                ready &= step->kind != UIR_DIM_SYMBOL || machine->bound[step->value];
            }
            if (ready) UIR_TRY(uir_vm_evaluate(machine, s->definition, &machine->values[i]));
            machine->bound[i] = ready;
        }
    }
    for (uint32_t i = 0; i < machine->kernel->requires__count; i++) {
        const vm_condition *c = &machine->kernel->requires_[i];
        int64_t left, right;
        UIR_TRY(uir_vm_evaluate(machine, c->left, &left));
        UIR_TRY(uir_vm_evaluate(machine, c->right, &right));
        if (!uir_relation_holds((uir_relation)c->relation, left, right))
            return uir_vm_report(machine, UIR_STATUS_INVALID_ARGUMENT, "requirement %u does not hold for these sizes",
                                 i);
    }
    return UIR_STATUS_OK;
}

/* What no part of a run changes is found once. */
static void fix(vm_machine *machine, vm_state *s) {
    const uir_vm_kernel *k = s->kernel;
    uir_vm_fix(machine, &s->fixed);
    machine->fixed = &s->fixed;
    for (uint32_t i = 0; i < k->pointers_count; i++) {
        const vm_pointer *p = &k->pointers[i];
        bool known = true;
        for (uint32_t d = 0; d < p->rank; d++) {
            known &= s->fixed.known[p->extents[d]];
            for (uint32_t m = 0; m < p->mode_counts[d]; m++)
                known &= s->fixed.known[p->modes[d][m].size] && s->fixed.known[p->modes[d][m].stride];
        }
        s->fixed.laid_out[i] =
            known && uir_vm_bind_layout(machine, p, s->fixed.layouts + (size_t)i * VM_MAX_RANK) == UIR_STATUS_OK;
    }
}

/* Those in another's place, which is as large. */
static uir_status share_places(vm_machine *machine, vm_state *s) {
    const uir_vm_kernel *k = s->kernel;
    for (uint32_t i = 0; i < k->pointers_count; i++) {
        const vm_pointer *p = &k->pointers[i];
        if (p->over == VM_NONE) continue;
        const vm_pointer *owner = &k->pointers[p->over];
        uint64_t size = uir_dtype_bits((uir_dtype)p->dtype) / 8 * p->instances,
                 place = uir_dtype_bits((uir_dtype)owner->dtype) / 8 * owner->instances;
        if ((uint64_t)s->spans[i] * size > (uint64_t)s->spans[p->over] * place)
            return uir_vm_fail(machine, "pointer %u is larger than the storage it shares", i);
        s->places[i] = s->places[p->over];
    }
    return UIR_STATUS_OK;
}

/* Where every pointer is; `limit` bounds the on-chip storage. */
static uir_status bind_memory(vm_machine *machine, vm_state *s, const size_t *sizes, uint64_t limit) {
    uint32_t argument = 0;
    uint64_t used = 0;
    size_t first = lay_out_scratch(s->kernel, NULL, NULL);
    for (uint32_t i = 0; i < s->kernel->pointers_count; i++) {
        const vm_pointer *p = &s->kernel->pointers[i];
        uint64_t bytes;
        UIR_TRY(uir_vm_evaluate(machine, p->span, &s->spans[i]));
        if (s->spans[i] < 0) s->spans[i] = 0;
        if (__builtin_mul_overflow((uint64_t)s->spans[i],
                                   (uint64_t)p->instances * (uir_dtype_bits((uir_dtype)p->dtype) / 8), &bytes))
            return uir_vm_fail(machine, "pointer %u is too large", i);
        if (p->role != UIR_IPOINTER_LOCAL) {
            if (sizes[argument] < bytes)
                return uir_vm_report(machine, UIR_STATUS_INVALID_ARGUMENT, "buffer %u has %zu bytes, %llu are needed",
                                     argument, sizes[argument], (unsigned long long)bytes);
            s->places[i] = argument++;
            continue;
        }
        if (p->over != VM_NONE) continue;
        if (bytes > limit || used + bytes > limit)
            return uir_vm_report(machine, UIR_STATUS_LIMIT, "needs over %llu bytes of on-chip storage",
                                 (unsigned long long)limit);
        s->places[i] = (int64_t)(first + used);
        used = align_up((size_t)(used + bytes) + VM_ALIGN); /* routines may read a little beyond */
    }
    s->reserved = first + (size_t)used;
    return share_places(machine, s);
}

static uir_status bind_phases(vm_machine *machine, vm_state *s) {
    for (uint32_t i = 0; i < s->kernel->phases_count; i++) {
        const vm_phase *phase = &s->kernel->phases[i];
        int64_t *extents = s->extents + 4 * (size_t)i, total = 1;
        for (uint32_t a = 0; a < phase->axis_count; a++) {
            UIR_TRY(uir_vm_evaluate(machine, phase->extents[a], &extents[a]));
            if (extents[a] < 0) extents[a] = 0;
            if (__builtin_mul_overflow(total, extents[a], &total))
                return uir_vm_fail(machine, "too many parallel indices");
        }
        s->indices[i] = total;
    }
    return UIR_STATUS_OK;
}

uir_status uir_vm_prepare(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                          const uir_vm_options *options, uir_diagnostics *diagnostics, void *block,
                          size_t *out_scratch) {
    vm_state *s = lay_out_state(kernel, block);
    vm_machine machine = {.kernel = kernel, .diagnostics = diagnostics, .values = s->values, .bound = s->bound};
    memset(s->bound, 0, kernel->symbols_count);
    s->step_limit = options ? options->step_limit : 0;
    s->routines = uir_vm_routines_find(options ? options->isa : NULL);
    if (!s->routines)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "this machine cannot run the VM's '%s' routines",
                         options && options->isa ? options->isa : "");
    UIR_TRY(bind_symbols(&machine, arguments));
    fix(&machine, s);
    UIR_TRY(bind_memory(&machine, s, sizes,
                        options && options->scratch_limit ? options->scratch_limit : (uint64_t)256 << 20));
    UIR_TRY(bind_phases(&machine, s));
    *out_scratch = s->reserved + VM_LEAST_DYNAMIC;
    return UIR_STATUS_OK;
}

int64_t uir_vm_indices(const void *state, uint32_t phase) {
    return ((const vm_state *)state)->indices[phase];
}

/* ---- running ---- */
static uir_status start(vm_machine *machine, const vm_state *s, void *const *pointers) {
    const uir_vm_kernel *k = s->kernel;
    uir_kernel_scratch *scratch = machine->scratch;
    scratch->failure[0] = 0;
    if (scratch->size < s->reserved) return uir_vm_fail(machine, "a thread's memory is too small");
    lay_out_scratch(k, machine, scratch->data);
    memcpy(machine->values, s->values, k->symbols_count * sizeof *machine->values);
    memcpy(machine->bound, s->bound, k->symbols_count);
    memset(machine->outside, 0, k->symbols_count);
    machine->fixed = &s->fixed;
    uir_vm_forget_views(machine);
    for (uint32_t i = 0; i < k->pointers_count; i++) {
        bool local = k->pointers[i].role == UIR_IPOINTER_LOCAL;
        char *data = local ? scratch->data + s->places[i] : pointers ? pointers[s->places[i]] : scratch->data;
        machine->memory[i] = (vm_memory){data, s->spans[i]};
    }
    return UIR_STATUS_OK;
}

uir_status uir_vm_run_range(const void *state, void *const *pointers, uint32_t phase, int64_t begin, int64_t end,
                            const volatile bool *cancel, uir_kernel_scratch *scratch, uir_diagnostics *diagnostics) {
    const vm_state *s = state;
    vm_machine machine = {.kernel = s->kernel,
                          .routines = s->routines,
                          .diagnostics = diagnostics,
                          .scratch = scratch,
                          .free_at = s->reserved,
                          .step_limit = s->step_limit,
                          .cancel = cancel};
    UIR_TRY(start(&machine, s, pointers));
    if (phase >= s->kernel->phases_count || begin < 0 || end > s->indices[phase])
        return uir_vm_fail(&machine, "a range outside the phase");
    uir_status status =
        uir_vm_run_indices(&machine, &s->kernel->phases[phase], s->extents + 4 * (size_t)phase, begin, end);
    uir_vm_forget(&machine);
    return status;
}

uir_status uir_vm_count_traffic(const void *state, uir_kernel_scratch *scratch, const int64_t *begins,
                                const volatile bool *cancel, uir_diagnostics *diagnostics, uint64_t *out_bytes,
                                uint64_t *out_flops) {
    const vm_state *s = state;
    vm_machine machine = {.kernel = s->kernel,
                          .diagnostics = diagnostics,
                          .scratch = scratch,
                          .free_at = s->reserved,
                          .cancel = cancel,
                          .traffic = out_bytes,
                          .flops = out_flops};
    *out_bytes = 0;
    if (out_flops) *out_flops = 0;
    UIR_TRY(start(&machine, s, NULL));
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < s->kernel->phases_count && status == UIR_STATUS_OK; i++)
        status = uir_vm_run_indices(&machine, &s->kernel->phases[i], s->extents + 4 * (size_t)i, begins ? begins[i] : 0,
                                    s->indices[i]);
    uir_vm_forget(&machine);
    return status;
}

uir_status uir_vm_run(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                      const uir_vm_options *options, uir_diagnostics *diagnostics) {
    size_t state_size = uir_vm_state_size(kernel);
    uir_kernel_scratch scratch = {.allocator = &kernel->allocator};
    void *state;
    UIR_TRY_ALLOCATE(state, uir_allocate(&kernel->allocator, state_size));
    uir_status status = uir_vm_prepare(kernel, arguments, sizes, options, diagnostics, state, &scratch.size);
    if (status == UIR_STATUS_OK) {
        scratch.size += 4 * VM_LEAST_DYNAMIC;
        scratch.data = uir_allocate_zeroed(&kernel->allocator, scratch.size);
        if (!scratch.data) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < kernel->phases_count && status == UIR_STATUS_OK; i++)
        status = uir_vm_run_range(state, arguments->pointers, i, 0, uir_vm_indices(state, i),
                                  options ? options->cancel : NULL, &scratch, diagnostics);
    if (scratch.data) uir_release(&kernel->allocator, scratch.data, scratch.size);
    uir_release(&kernel->allocator, state, state_size);
    return status;
}

bool uir_vm_isa(size_t index, const char **out_name) {
    const vm_routines *routines = uir_vm_routines_get(index);
    if (routines) *out_name = routines->isa;
    return routines != NULL;
}
