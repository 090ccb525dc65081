/* Runs parallel indices one after the other: expressions, conditions, the tree of items. */
#include "backends/vm/machine.h"

#include <stdio.h>
#include <string.h>

uir_status uir_vm_report(vm_machine *machine, uir_status status, const char *format, ...) {
    char message[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (machine->scratch && !machine->scratch->failure[0])
        snprintf(machine->scratch->failure, sizeof machine->scratch->failure, "@%.40s: %s", machine->kernel->name,
                 message);
    return uir_error(machine->diagnostics, status, NULL, "@%s: %s", machine->kernel->name, message);
}

uir_status uir_vm_count(vm_machine *machine, uint64_t steps) {
    machine->steps += steps;
    if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
    if (machine->step_limit && machine->steps > machine->step_limit)
        return uir_vm_report(machine, UIR_STATUS_LIMIT, "more than %llu steps",
                             (unsigned long long)machine->step_limit);
    return UIR_STATUS_OK;
}

/* ---- expressions ---- */
/* What keeps an expression from having a value; NULL: nothing. */
static const char *compute(const vm_machine *machine, const vm_expression *e, int64_t *out) {
    const vm_step *steps = machine->kernel->steps + e->first;
    int64_t stack[VM_MAX_STACK];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (steps[i].kind == UIR_DIM_CONST) {
            stack[depth++] = steps[i].value;
        } else if (steps[i].kind == UIR_DIM_SYMBOL) {
            if (!machine->bound[steps[i].value]) return "an expression uses a symbol that has no value here";
            stack[depth++] = machine->values[steps[i].value];
        } else {
            depth--;
            if (!uir_dim_operate((uir_dim_kind)steps[i].kind, stack[depth - 1], stack[depth], &stack[depth - 1]))
                return "an expression overflows, or divides by a value that is not positive";
        }
    }
    *out = stack[0];
    return NULL;
}

uir_status uir_vm_evaluate(vm_machine *machine, uint32_t expression, int64_t *out) {
    if (machine->fixed && machine->fixed->known[expression]) {
        *out = machine->fixed->values[expression];
        return UIR_STATUS_OK;
    }
    const char *fault = compute(machine, &machine->kernel->expressions[expression], out);
    return fault ? uir_vm_fail(machine, "%s", fault) : UIR_STATUS_OK;
}

void uir_vm_fix(vm_machine *machine, vm_fixed *fixed) {
    for (uint32_t i = 0; i < machine->kernel->expressions_count; i++)
        fixed->known[i] = !compute(machine, &machine->kernel->expressions[i], &fixed->values[i]);
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
        vm_touch(machine, item->symbol);
        UIR_TRY(uir_vm_count(machine, 1));
        UIR_TRY(holds(machine, item, &runs));
        if (runs) UIR_TRY(run_list(machine, item->first_child));
    }
    machine->bound[item->symbol] = false;
    vm_touch(machine, item->symbol);
    return UIR_STATUS_OK;
}

static uir_status read_index(vm_machine *machine, const vm_item *item) {
    const vm_view *view;
    int64_t limit, value;
    char element[8] = {0};
    uir_vm_forget(machine);
    UIR_TRY(uir_vm_view_bind(machine, item->slice, &view));
    UIR_TRY(uir_vm_evaluate(machine, item->limit, &limit));
    vm_touch(machine, item->symbol);
    if (view->total != 1) return uir_vm_fail(machine, "an index must be one element");
    if (machine->traffic) { /* there is no data: the index is somewhere inside */
        uir_vm_count_view(machine, item->slice, view);
        machine->outside[item->symbol] = limit <= 0;
        machine->values[item->symbol] = 0;
        machine->bound[item->symbol] = true;
        return UIR_STATUS_OK;
    }
    value = uir_dtype_load_integer(view->dtype, uir_vm_view_read(view, 0, 0, 1, element), 0);
    bool outside = limit <= 0;
    if (!outside && (value < 0 || value >= limit)) {
        if (item->mode == UIR_INDEX_CLAMP)
            value = value < 0 ? 0 : limit - 1;
        else if (item->mode == UIR_INDEX_WRAP)
            (void)uir_dim_operate(UIR_DIM_MOD, value, limit, &value);
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
        vm_touch(machine, item->symbol);
        return UIR_STATUS_OK;
    case UIR_IITEM_INDEX:
        return read_index(machine, item);
    case UIR_IITEM_INSTRUCTION:
        if (machine->traffic)
            return uir_vm_count_instruction(machine, &machine->kernel->instructions[item->instruction]);
        return uir_vm_execute(machine, &machine->kernel->instructions[item->instruction]);
    default:
        return run_list(machine, item->first_child); /* IF, RUN */
    }
}

static uir_status run_list(vm_machine *machine, uint32_t id) {
    for (; id != VM_NONE; id = machine->kernel->items[id].next) UIR_TRY(run_item(machine, &machine->kernel->items[id]));
    return UIR_STATUS_OK;
}

uir_status uir_vm_run_indices(vm_machine *machine, const vm_phase *phase, const int64_t *extents, int64_t begin,
                              int64_t end) {
    for (int64_t flat = begin; flat < end; flat++) {
        int64_t rest = flat;
        for (uint32_t a = phase->axis_count; a-- > 0;) {
            int64_t value = rest % extents[a];
            if (!machine->bound[phase->symbols[a]] || machine->values[phase->symbols[a]] != value)
                vm_touch(machine, phase->symbols[a]);
            machine->values[phase->symbols[a]] = value;
            machine->bound[phase->symbols[a]] = true;
            rest /= extents[a];
        }
        UIR_TRY(uir_vm_count(machine, 1));
        UIR_TRY(run_list(machine, phase->first_item));
    }
    return UIR_STATUS_OK;
}
