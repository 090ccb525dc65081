/* Runs a kernel: symbols, memory, parallel indices one after the other, the tree of items. */
#include "backends/vm/machine.h"

#include <stdio.h>
#include <string.h>

uir_status uir_vm_fail(vm_machine *machine, const char *format, ...) {
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(machine->diagnostics, UIR_STATUS_BAD_DATA, NULL, "@%s: %s", machine->kernel->name, message);
}

uir_status uir_vm_count(vm_machine *machine, uint64_t steps) {
    machine->steps += steps;
    if (machine->cancel && *machine->cancel) return UIR_STATUS_CANCELLED;
    if (machine->step_limit && machine->steps > machine->step_limit) {
        return uir_error(machine->diagnostics, UIR_STATUS_LIMIT, NULL, "@%s: more than %llu steps",
                         machine->kernel->name, (unsigned long long)machine->step_limit);
    }
    return UIR_STATUS_OK;
}

/* ---- expressions ---- */
static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
} /* b > 0 */

static bool apply(uint32_t kind, int64_t a, int64_t b, int64_t *out) {
    switch ((uir_dim_kind)kind) {
    case UIR_DIM_ADD:
        return !__builtin_add_overflow(a, b, out);
    case UIR_DIM_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case UIR_DIM_MIN:
        return *out = a < b ? a : b, true;
    case UIR_DIM_MAX:
        return *out = a > b ? a : b, true;
    case UIR_DIM_FLOORDIV:
        return b > 0 && (*out = floor_divide(a, b), true);
    case UIR_DIM_CEILDIV:
        return b > 0 && (*out = floor_divide(a, b) + (a % b != 0), true);
    case UIR_DIM_MOD:
        return b > 0 && (*out = a - floor_divide(a, b) * b, true);
    case UIR_DIM_CONST:
    case UIR_DIM_SYMBOL:
        break;
    }
    return false;
}

uir_status uir_vm_evaluate(vm_machine *machine, uint32_t expression, int64_t *out) {
    const vm_expression *e = &machine->kernel->expressions[expression];
    const vm_step *steps = machine->kernel->steps + e->first;
    int64_t stack[VM_MAX_STACK];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (steps[i].kind == UIR_DIM_CONST) {
            stack[depth++] = steps[i].value;
        } else if (steps[i].kind == UIR_DIM_SYMBOL) {
            if (!machine->bound[steps[i].value])
                return uir_vm_fail(machine, "an expression uses symbol %lld, which has no value here",
                                   (long long)steps[i].value);
            stack[depth++] = machine->values[steps[i].value];
        } else {
            depth--;
            if (!apply(steps[i].kind, stack[depth - 1], stack[depth], &stack[depth - 1]))
                return uir_vm_fail(machine, "an expression overflows, or divides by a value that is not positive");
        }
    }
    *out = stack[0];
    return UIR_STATUS_OK;
}

static uir_status holds(vm_machine *machine, const vm_item *item, bool *out) {
    *out = true;
    for (uint32_t i = 0; i < item->atom_count && *out; i++) {
        const vm_atom *a = &machine->kernel->atoms[item->first_atom + i];
        if (a->kind == UIR_IATOM_RELATION) {
            int64_t left, right;
            UIR_TRY(uir_vm_evaluate(machine, a->left, &left));
            UIR_TRY(uir_vm_evaluate(machine, a->right, &right));
            *out = uir_relation_holds((uir_relation)a->relation, left, right);
            continue;
        }
        if (!machine->bound[a->loop]) return uir_vm_fail(machine, "first or last of a loop that is not running");
        int64_t end = a->kind == UIR_IATOM_FIRST ? 0 : machine->trips[a->loop] - 1;
        *out = (machine->values[a->loop] == end) != (a->negated != 0);
    }
    return UIR_STATUS_OK;
}

/* ---- the tree ---- */
static uir_status run_list(vm_machine *machine, uint32_t id);

static uir_status run_loop(vm_machine *machine, const vm_item *item) {
    int64_t trips;
    bool runs, was_bound = machine->bound[item->symbol];
    if (was_bound) return uir_vm_fail(machine, "a loop inside itself");
    UIR_TRY(uir_vm_evaluate(machine, item->extent, &trips));
    if (item->named_ends && trips < 1) trips = 1;
    machine->trips[item->symbol] = trips;
    machine->bound[item->symbol] = true;
    for (int64_t i = 0; i < trips; i++) {
        machine->values[item->symbol] = i;
        UIR_TRY(uir_vm_count(machine, 1));
        UIR_TRY(holds(machine, item, &runs));
        if (runs) UIR_TRY(run_list(machine, item->first_child));
    }
    machine->bound[item->symbol] = false;
    return UIR_STATUS_OK;
}

static uir_status read_index(vm_machine *machine, const vm_item *item) {
    vm_view view;
    int64_t limit, value;
    char element[8] = {0};
    uir_arena_reset(&machine->scratch);
    UIR_TRY(uir_vm_view_bind(machine, item->slice, &view));
    UIR_TRY(uir_vm_evaluate(machine, item->limit, &limit));
    if (view.total != 1) return uir_vm_fail(machine, "an index is one element");
    value = uir_dtype_load_integer(view.dtype, uir_vm_view_read(&view, 0, 0, 1, element), 0);
    bool outside = limit <= 0;
    if (!outside && (value < 0 || value >= limit)) {
        if (item->mode == UIR_INDEX_CLAMP)
            value = value < 0 ? 0 : limit - 1;
        else if (item->mode == UIR_INDEX_WRAP)
            value = value - floor_divide(value, limit) * limit;
        else
            outside = true;
    }
    machine->outside[item->symbol] = outside;
    machine->values[item->symbol] = outside ? 0 : value;
    machine->bound[item->symbol] = true;
    return UIR_STATUS_OK;
}

static uir_status run_item(vm_machine *machine, const vm_item *item) {
    bool runs;
    if (item->kind == UIR_IITEM_LOOP) return run_loop(machine, item);
    UIR_TRY(holds(machine, item, &runs));
    if (!runs) return UIR_STATUS_OK;
    switch ((uir_iitem_kind)item->kind) {
    case UIR_IITEM_LET:
        machine->bound[item->symbol] = false; /* it does not see itself */
        UIR_TRY(uir_vm_evaluate(machine, machine->kernel->symbols[item->symbol].definition,
                                &machine->values[item->symbol]));
        machine->bound[item->symbol] = true;
        return UIR_STATUS_OK;
    case UIR_IITEM_INDEX:
        return read_index(machine, item);
    case UIR_IITEM_INSTRUCTION:
        return uir_vm_execute(machine, &machine->kernel->instructions[item->instruction]);
    default:
        return run_list(machine, item->first_child); /* IF, RUN */
    }
}

static uir_status run_list(vm_machine *machine, uint32_t id) {
    for (; id != VM_NONE; id = machine->kernel->items[id].next) UIR_TRY(run_item(machine, &machine->kernel->items[id]));
    return UIR_STATUS_OK;
}

static uir_status run_phase(vm_machine *machine, const vm_phase *phase) {
    int64_t extents[4], total = 1;
    for (uint32_t a = 0; a < phase->axis_count; a++) {
        UIR_TRY(uir_vm_evaluate(machine, phase->extents[a], &extents[a]));
        if (extents[a] < 0) extents[a] = 0;
        if (__builtin_mul_overflow(total, extents[a], &total)) return uir_vm_fail(machine, "too many parallel indices");
    }
    for (int64_t flat = 0; flat < total; flat++) {
        int64_t rest = flat;
        for (uint32_t a = phase->axis_count; a-- > 0;) {
            machine->values[phase->symbols[a]] = rest % extents[a];
            machine->bound[phase->symbols[a]] = true;
            rest /= extents[a];
        }
        UIR_TRY(uir_vm_count(machine, 1));
        UIR_TRY(run_list(machine, phase->first_item));
    }
    return UIR_STATUS_OK;
}

/* ---- start ---- */
static uir_status bind_symbols(vm_machine *machine, const uir_kernel_arguments *arguments) {
    uint32_t dim = 0, tile = 0;
    for (uint32_t i = 0; i < machine->kernel->symbols_count; i++) {
        const vm_symbol *s = &machine->kernel->symbols[i];
        if (s->kind == UIR_ISYMBOL_DIM || s->kind == UIR_ISYMBOL_TILE) {
            int64_t value = s->kind == UIR_ISYMBOL_DIM ? arguments->dim_values[dim++] : arguments->tile_values[tile++];
            if (value < s->min || value > s->max || value % s->multiple_of) {
                return uir_error(machine->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                 "@%s: %s %u = %lld breaks its declaration", machine->kernel->name,
                                 s->kind == UIR_ISYMBOL_DIM ? "dim" : "tile",
                                 s->kind == UIR_ISYMBOL_DIM ? dim - 1 : tile - 1, (long long)value);
            }
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
        if (!uir_relation_holds((uir_relation)c->relation, left, right)) {
            return uir_error(machine->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "@%s: requirement %u does not hold for these sizes", machine->kernel->name, i);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status bind_memory(vm_machine *machine, const uir_kernel_arguments *arguments, const size_t *sizes,
                              uint64_t limit) {
    uint32_t argument = 0;
    uint64_t used = 0;
    for (uint32_t i = 0; i < machine->kernel->pointers_count; i++) {
        const vm_pointer *p = &machine->kernel->pointers[i];
        vm_memory *m = &machine->memory[i];
        uint64_t bytes;
        UIR_TRY(uir_vm_evaluate(machine, p->span, &m->span));
        if (m->span < 0) m->span = 0;
        if (__builtin_mul_overflow((uint64_t)m->span,
                                   (uint64_t)p->instances * (uir_dtype_bits((uir_dtype)p->dtype) / 8), &bytes))
            return uir_vm_fail(machine, "pointer %u is too large", i);
        if (p->role != UIR_IPOINTER_LOCAL) {
            if (sizes[argument] < bytes) {
                return uir_error(machine->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                 "@%s: buffer %u has %zu bytes, %llu are needed", machine->kernel->name, argument,
                                 sizes[argument], (unsigned long long)bytes);
            }
            m->data = arguments->pointers[argument++];
            continue;
        }
        used += bytes;
        if (bytes > limit || used > limit)
            return uir_error(machine->diagnostics, UIR_STATUS_LIMIT, NULL,
                             "@%s: needs over %llu bytes of on-chip storage", machine->kernel->name,
                             (unsigned long long)limit);
        UIR_TRY_ALLOCATE(m->data, uir_arena_allocate(&machine->arena, (size_t)bytes + 64));
    }
    return UIR_STATUS_OK;
}

static uir_status run(vm_machine *machine, const uir_kernel_arguments *arguments, const size_t *sizes,
                      const uir_vm_options *options) {
    size_t n = (size_t)machine->kernel->symbols_count + 1;
    UIR_TRY_ALLOCATE(machine->values, uir_arena_allocate_array(&machine->arena, n, sizeof *machine->values));
    UIR_TRY_ALLOCATE(machine->bound, uir_arena_allocate_array(&machine->arena, n, sizeof *machine->bound));
    UIR_TRY_ALLOCATE(machine->outside, uir_arena_allocate_array(&machine->arena, n, sizeof *machine->outside));
    UIR_TRY_ALLOCATE(machine->trips, uir_arena_allocate_array(&machine->arena, n, sizeof *machine->trips));
    UIR_TRY_ALLOCATE(machine->memory,
                     uir_arena_allocate_array(&machine->arena, (size_t)machine->kernel->pointers_count + 1,
                                              sizeof *machine->memory));
    for (int i = 0; i < UIR_IOP_MAX_SLICES; i++)
        UIR_TRY_ALLOCATE(machine->chunks[i], uir_arena_allocate(&machine->arena, VM_CHUNK * 8));
    UIR_TRY(bind_symbols(machine, arguments));
    UIR_TRY(bind_memory(machine, arguments, sizes,
                        options && options->scratch_limit ? options->scratch_limit : (uint64_t)256 << 20));
    for (uint32_t i = 0; i < machine->kernel->phases_count; i++)
        UIR_TRY(run_phase(machine, &machine->kernel->phases[i]));
    return UIR_STATUS_OK;
}

uir_status uir_vm_run(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                      const uir_vm_options *options, uir_diagnostics *diagnostics) {
    vm_machine machine = {.kernel = kernel, .diagnostics = diagnostics};
    machine.routines = uir_vm_routines_find(options ? options->isa : NULL);
    if (!machine.routines)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "this machine cannot run the VM's '%s' routines",
                         options && options->isa ? options->isa : "");
    machine.step_limit = options ? options->step_limit : 0;
    machine.cancel = options ? options->cancel : NULL;
    uir_arena_init(&machine.arena, &kernel->allocator);
    uir_arena_init(&machine.scratch, &kernel->allocator);
    uir_status status = run(&machine, arguments, sizes, options);
    uir_arena_deinit(&machine.scratch);
    uir_arena_deinit(&machine.arena);
    return status;
}

bool uir_vm_isa(size_t index, const char **out_name) {
    const vm_routines *routines = uir_vm_routines_get(index);
    if (routines) *out_name = routines->isa;
    return routines != NULL;
}
