/* What follows from a plan: the order of its steps, which epoch each size belongs to, how long contents live. */
#include "runtime/internal.h"

typedef struct walk {
    const uir_plan *plan;
    uir_rt_analysis *a;
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    uint32_t position, depth, bodies; /* bodies around the place, which need not run */
    bool second;                      /* the second time: uses */
    uint32_t *defined;                /* per root: position */
    bool *known;                      /* per epoch, during the second walk */
    uint32_t *expression_epoch;       /* per expression: the last among its symbols'; NONE: one has no value ever */
    uint32_t *symbol_mark, *expression_mark; /* the last epoch that lists the symbol, or those of the expression, + 1 */
    uint64_t left;                           /* operations that may still be looked at for what epochs list */
    uint32_t loop_starts[UIR_PLAN_MAX_DEPTH], loop_ends[UIR_PLAN_MAX_DEPTH], loops;
} walk;

/* As many as these for a byte of the plan: epochs may depend on the same symbols and launches have the same kernel, but
 * not without end. */
enum { OPERATIONS_PER_BYTE = 16, LAUNCH_PARTS_PER_BYTE = 1 };

static uir_status refuse(const walk *w, const char *what) {
    return uir_error(w->diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package's plan: %s", what);
}

/* ---- epochs ---- */
static uir_status open_epoch(walk *w, uint32_t *out_epoch) {
    uir_rt_epoch_info epoch = {.tensors = {0}};
    *out_epoch = w->a->epochs.count;
    return uir_vector_push(w->arena, &w->a->epochs, epoch);
}

/* The symbol belongs to `*epoch`, which is opened by the first. */
static uir_status learn(walk *w, uint32_t symbol, uint32_t *epoch) {
    if (w->a->symbol_epoch[symbol] != UIR_PLAN_NONE) return UIR_STATUS_OK;
    if (*epoch == UIR_PLAN_NONE) UIR_TRY(open_epoch(w, epoch));
    w->a->symbol_epoch[symbol] = *epoch;
    return uir_vector_push(w->arena, &w->a->epochs.data[*epoch].learned, symbol);
}

static uir_status learn_extents(walk *w, uint32_t tensor, uint32_t *epoch) {
    const uir_plan_tensor *t = &w->plan->tensors[tensor];
    for (uint32_t d = 0; d < t->extents.count; d++) {
        uint32_t symbol = uir_plan_plain_symbol(w->plan, uir_plan_get_word(w->plan, t->extents, d));
        if (symbol != UIR_PLAN_NONE) UIR_TRY(learn(w, symbol, epoch));
    }
    return UIR_STATUS_OK;
}

/* ---- uses ---- */
/* A loop that a root was made before goes round with it. */
static void use(walk *w, uint32_t tensor, uint32_t position) {
    uint32_t root = w->a->tensors[tensor].root;
    for (uint32_t i = 0; i < w->loops; i++) {
        if (w->defined[root] <= w->loop_starts[i] && position < w->loop_ends[i]) position = w->loop_ends[i];
    }
    if (w->a->tensors[root].last < position) w->a->tensors[root].last = position;
}

static bool is_known(const walk *w, uint32_t tensor) {
    return w->known[w->a->tensors[tensor].epoch];
}

/* Turns of a loop read in place what the loop carries. */
static uir_status use_inputs(walk *w, const uir_plan_step *s, uint32_t position, uint32_t end) {
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, s->inputs, i);
        if (t == UIR_PLAN_NONE) continue;
        if (!is_known(w, t)) return refuse(w, "a step uses a tensor whose size is not known yet");
        use(w, t, uir_plan_turns(s) ? end : position);
    }
    return UIR_STATUS_OK;
}

static void define(walk *w, uint32_t tensor, uint32_t position) {
    uint32_t root = w->a->tensors[tensor].root;
    if (!w->defined[root] || w->defined[root] > position) w->defined[root] = position;
    if (w->a->tensors[root].first > position) w->a->tensors[root].first = position;
    if (w->a->tensors[root].last < position) w->a->tensors[root].last = position;
}

/* ---- the walk ---- */
static uir_status walk_block(walk *w, uint32_t block);

static uir_status walk_body(walk *w, uint32_t block, bool loops, uint32_t start, uint32_t end) {
    const uir_plan_block *b = &w->plan->blocks[block];
    if (w->depth >= UIR_PLAN_MAX_DEPTH) return refuse(w, "bodies nested too deep");
    if (loops) {
        w->loop_starts[w->loops] = start;
        w->loop_ends[w->loops++] = end;
    }
    UIR_TRY(walk_block(w, block));
    w->position++;
    for (uint32_t i = 0; i < b->outputs.count && w->second; i++) {
        uint32_t t = uir_plan_get_word(w->plan, b->outputs, i);
        if (!is_known(w, t)) return refuse(w, "a body returns a tensor whose size is not known");
        use(w, t, w->position);
    }
    for (uint32_t s = w->a->blocks[block].first_epoch; s < w->a->blocks[block].end_epoch && w->second; s++)
        w->known[s] = false;
    if (loops) w->loops--;
    return UIR_STATUS_OK;
}

/* Tensors that are touched in every run. */
static void need_all(walk *w, uir_plan_list list) {
    for (uint32_t i = 0; i < list.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, list, i);
        while (t != UIR_PLAN_NONE && w->a->tensors[t].conditional) {
            w->a->tensors[t].conditional = false;
            t = w->plan->tensors[t].storage == UIR_PLAN_STORAGE_ALIAS ? w->plan->tensors[t].index : UIR_PLAN_NONE;
        }
    }
}

static uir_status walk_bodies(walk *w, const uir_plan_step *s, uint32_t position, uint32_t end) {
    const uir_plan_step_row *row = uir_plan_get_step_row(s->kind);
    bool turns = row->traits & UIR_PLAN_TURNS;
    w->bodies++;
    if (row->target == UIR_PLAN_OF_BLOCK) UIR_TRY(walk_body(w, s->target, turns, position, end));
    if (row->other == UIR_PLAN_OF_BLOCK) UIR_TRY(walk_body(w, s->other, turns, position, end));
    w->bodies--;
    return UIR_STATUS_OK;
}

/* What the step learns; its results whose room it makes belong to its block. */
static uir_status learn_step(walk *w, uint32_t index, uint32_t block) {
    const uir_plan_step *s = &w->plan->steps[index];
    uint32_t epoch = UIR_PLAN_NONE;
    bool binds = uir_plan_get_step_row(s->kind)->traits & UIR_PLAN_BINDS;
    for (uint32_t i = 0; i < s->symbols.count && binds; i++)
        UIR_TRY(learn(w, uir_plan_get_word(w->plan, s->symbols, i), &epoch));
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, s->outputs, i);
        if (t == UIR_PLAN_NONE || w->plan->tensors[t].storage != UIR_PLAN_STORAGE_OWN) continue;
        UIR_TRY(learn_extents(w, t, &epoch));
        UIR_TRY(uir_vector_push(w->arena, &w->a->blocks[block].tensors, t));
    }
    w->a->steps[index].epoch = epoch;
    return UIR_STATUS_OK;
}

static uir_status know_sizes(const walk *w, const uir_plan_step *s) {
    for (uint32_t i = 0; i < s->values.count; i++) {
        uint32_t epoch = w->expression_epoch[uir_plan_get_word(w->plan, s->values, i)];
        if (epoch == UIR_PLAN_NONE) return refuse(w, "a size is never bound");
        if (!w->known[epoch]) return refuse(w, "a step uses a size that is not known yet");
    }
    return UIR_STATUS_OK;
}

static uir_status walk_step(walk *w, uint32_t index, uint32_t block) {
    const uir_plan_step *s = &w->plan->steps[index];
    uir_rt_step_info *info = &w->a->steps[index];
    uint32_t position = ++w->position;
    if (w->second) {
        UIR_TRY(use_inputs(w, s, position, info->end));
        UIR_TRY(know_sizes(w, s));
        for (uint32_t i = 0; i < s->outputs.count; i++) {
            uint32_t t = uir_plan_get_word(w->plan, s->outputs, i);
            if (t != UIR_PLAN_NONE) define(w, t, position);
        }
    }
    info->position = position;
    info->conditional = w->bodies > 0;
    info->block = block;
    if (!info->conditional) need_all(w, s->inputs), need_all(w, s->outputs);
    if (s->kind == UIR_PLAN_STEP_LOOP && !w->second) info->index = w->a->loop_count++;
    if (s->kind == UIR_PLAN_STEP_LAUNCH && !w->second) info->index = w->a->launch_count++;
    UIR_TRY(walk_bodies(w, s, position, info->end));
    info->end = w->position;
    if (!w->second) return learn_step(w, index, block);
    if (s->kind == UIR_PLAN_STEP_LAUNCH && !w->known[info->launch_epoch])
        return refuse(w, "a kernel is launched before its sizes are known");
    if (info->epoch != UIR_PLAN_NONE) w->known[info->epoch] = true;
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, s->outputs, i);
        if (t != UIR_PLAN_NONE && !is_known(w, t)) return refuse(w, "a step produces a tensor whose size is not known");
    }
    return UIR_STATUS_OK;
}

static uir_status walk_block(walk *w, uint32_t block) {
    const uir_plan_block *b = &w->plan->blocks[block];
    uir_rt_block_info *info = &w->a->blocks[block];
    w->depth++;
    if (!w->bodies) need_all(w, b->inputs), need_all(w, b->outputs);
    if (w->a->depth < w->depth) w->a->depth = w->depth;
    if (!w->second) {
        info->first_epoch = w->a->epochs.count;
        info->epoch = UIR_PLAN_NONE;
        for (uint32_t i = 0; i < b->inputs.count; i++) {
            UIR_TRY(learn_extents(w, uir_plan_get_word(w->plan, b->inputs, i), &info->epoch));
            UIR_TRY(uir_vector_push(w->arena, &info->tensors, uir_plan_get_word(w->plan, b->inputs, i)));
        }
    } else {
        if (info->epoch != UIR_PLAN_NONE) w->known[info->epoch] = true;
        for (uint32_t i = 0; i < b->inputs.count; i++) define(w, uir_plan_get_word(w->plan, b->inputs, i), w->position);
    }
    for (uint32_t i = 0; i < b->step_count; i++) UIR_TRY(walk_step(w, b->first_step + i, block));
    if (!w->second) info->end_epoch = w->a->epochs.count;
    w->depth--;
    return UIR_STATUS_OK;
}

/* ---- which epoch ---- */
/* Those of a kernel's own scope have no epoch, and nobody asks for it. */
static uir_status epoch_expressions(walk *w) {
    const uir_plan *p = w->plan;
    UIR_TRY_ALLOCATE(w->expression_epoch,
                     uir_arena_allocate_array(w->arena, (size_t)p->expressions_count + 1, sizeof *w->expression_epoch));
    for (uint32_t i = 0; i < p->expressions_count; i++) {
        for (uint32_t k = 0; k < p->expressions[i].count && w->expression_epoch[i] != UIR_PLAN_NONE; k++) {
            const uir_plan_operation *o = &p->operations[p->expressions[i].first + k];
            if (o->kind != UIR_DIM_SYMBOL) continue;
            uint32_t epoch = o->value < p->symbols_count ? w->a->symbol_epoch[o->value] : UIR_PLAN_NONE;
            if (w->expression_epoch[i] < epoch) w->expression_epoch[i] = epoch;
        }
    }
    return UIR_STATUS_OK;
}

/* Raises `*epoch` to that of the expression's symbols. */
static uir_status raise_epoch(const walk *w, uint32_t expression, uint32_t *epoch) {
    uint32_t own = w->expression_epoch[expression];
    if (own == UIR_PLAN_NONE) return refuse(w, "a size is never bound");
    if (own > *epoch) *epoch = own;
    return UIR_STATUS_OK;
}

static uir_status raise_epoch_list(const walk *w, uir_plan_list list, uint32_t *epoch) {
    for (uint32_t i = 0; i < list.count; i++) UIR_TRY(raise_epoch(w, uir_plan_get_word(w->plan, list, i), epoch));
    return UIR_STATUS_OK;
}

/* ---- what an epoch depends on ---- */
static uir_status add_symbol(walk *w, uint32_t symbol, uint32_t id) {
    if (symbol == UIR_PLAN_NONE || w->symbol_mark[symbol] == id + 1) return UIR_STATUS_OK;
    w->symbol_mark[symbol] = id + 1;
    return uir_vector_push(w->arena, &w->a->epochs.data[id].symbols, symbol);
}

static uir_status add_symbols_of(walk *w, uint32_t expression, uint32_t id) {
    const uir_plan_expression *e = &w->plan->expressions[expression];
    if (w->expression_mark[expression] == id + 1) return UIR_STATUS_OK;
    w->expression_mark[expression] = id + 1;
    if (e->count > w->left) return refuse(w, "its epochs depend on more sizes than its bytes can hold");
    w->left -= e->count;
    for (uint32_t k = 0; k < e->count; k++) {
        const uir_plan_operation *o = &w->plan->operations[e->first + k];
        if (o->kind == UIR_DIM_SYMBOL) UIR_TRY(add_symbol(w, (uint32_t)o->value, id));
    }
    return UIR_STATUS_OK;
}

static uir_status add_symbols(walk *w, uir_plan_list list, uint32_t id) {
    for (uint32_t i = 0; i < list.count; i++) UIR_TRY(add_symbols_of(w, uir_plan_get_word(w->plan, list, i), id));
    return UIR_STATUS_OK;
}

/* What its bytes depend on: its extents and those of what it stands for, whose slack is its own. */
static uir_status add_symbols_of_tensor(walk *w, uint32_t tensor, uint32_t id) {
    const uir_plan_tensor *t = &w->plan->tensors[tensor];
    const uir_rt_tensor_info *info = &w->a->tensors[tensor];
    UIR_TRY(add_symbols(w, t->extents, id));
    if (t->storage == UIR_PLAN_STORAGE_ALIAS) {
        UIR_TRY(add_symbols(w, w->plan->tensors[t->index].extents, id));
        UIR_TRY(add_symbols(w, w->plan->tensors[info->root].extents, id));
    }
    if (t->storage == UIR_PLAN_STORAGE_LAID_OUT) UIR_TRY(add_symbols_of(w, t->index, id));
    return add_symbol(w, info->slack, id);
}

/* The slack that a port's tensor and what stands for it have. */
static uir_status learn_slack(walk *w, const uir_plan_port *port, uint32_t on_device, uint32_t *epoch) {
    if (port->slack == UIR_PLAN_NONE) return UIR_STATUS_OK;
    if (w->a->symbol_epoch[port->slack] != UIR_PLAN_NONE) return refuse(w, "a slack is also used as another size");
    const uint32_t tensors[2] = {port->tensor, on_device == UIR_PLAN_NONE ? port->tensor : on_device};
    for (uint32_t i = 0; i < 2; i++) {
        w->a->tensors[tensors[i]].slack = port->slack;
        w->a->tensors[tensors[i]].slack_axis = port->slack_axis;
    }
    return learn(w, port->slack, epoch);
}

static uir_status epoch_tensors(walk *w) {
    const uir_plan *p = w->plan;
    for (uint32_t t = 0; t < p->tensors_count; t++) {
        uir_rt_tensor_info *info = &w->a->tensors[t];
        UIR_TRY(raise_epoch_list(w, p->tensors[t].extents, &info->epoch));
        if (p->tensors[t].storage == UIR_PLAN_STORAGE_ALIAS) {
            const uir_rt_tensor_info *of = &w->a->tensors[p->tensors[t].index];
            info->root = of->root;
            info->slack = of->slack;
            info->slack_axis = of->slack_axis;
            if (info->epoch < of->epoch) info->epoch = of->epoch;
        }
        UIR_TRY(uir_vector_push(w->arena, &w->a->epochs.data[info->epoch].tensors, t));
    }
    return UIR_STATUS_OK;
}

static uir_status epoch_launches(walk *w) {
    const uir_plan *p = w->plan;
    for (uint32_t i = 0; i < p->steps_count; i++) {
        const uir_plan_step *s = &p->steps[i];
        uint32_t epoch = 0;
        if (s->kind != UIR_PLAN_STEP_LAUNCH) continue;
        UIR_TRY(raise_epoch_list(w, s->values, &epoch));
        for (uint32_t k = 0; k < s->inputs.count + s->outputs.count; k++) {
            uint32_t t = k < s->inputs.count ? uir_plan_get_word(p, s->inputs, k)
                                             : uir_plan_get_word(p, s->outputs, k - s->inputs.count);
            if (t != UIR_PLAN_NONE && epoch < w->a->tensors[t].epoch) epoch = w->a->tensors[t].epoch;
        }
        w->a->steps[i].launch_epoch = epoch;
        UIR_TRY(uir_vector_push(w->arena, &w->a->epochs.data[epoch].launches, i));
    }
    return UIR_STATUS_OK;
}

/* A check of sizes that nothing here binds is of what the plan does not compute. */
static bool is_bound(const walk *w, uint32_t expression) {
    return w->expression_epoch[expression] != UIR_PLAN_NONE;
}

static uir_status epoch_checks(walk *w) {
    for (uint32_t i = 0; i < w->plan->checks_count; i++) {
        const uir_plan_check *k = &w->plan->checks[i];
        uint32_t epoch = 0;
        if (!is_bound(w, k->left) || !is_bound(w, k->right)) continue;
        UIR_TRY(raise_epoch(w, k->left, &epoch));
        UIR_TRY(raise_epoch(w, k->right, &epoch));
        uir_rt_block_info *block = &w->a->blocks[k->block];
        UIR_TRY(k->block && epoch < block->first_epoch
                    ? uir_vector_push(w->arena, &block->checks, i)
                    : uir_vector_push(w->arena, &w->a->epochs.data[epoch].checks, i));
    }
    return UIR_STATUS_OK;
}

static uir_status epoch_symbols(walk *w) {
    const uir_plan *p = w->plan;
    UIR_TRY_ALLOCATE(w->symbol_mark,
                     uir_arena_allocate_array(w->arena, (size_t)p->symbols_count + 1, sizeof *w->symbol_mark));
    UIR_TRY_ALLOCATE(w->expression_mark,
                     uir_arena_allocate_array(w->arena, (size_t)p->expressions_count + 1, sizeof *w->expression_mark));
    w->left = (uint64_t)p->size * OPERATIONS_PER_BYTE;
    for (uint32_t i = 0; i < w->a->epochs.count; i++) {
        const uir_rt_epoch_info *epoch = &w->a->epochs.data[i];
        for (uint32_t k = 0; k < epoch->tensors.count; k++)
            UIR_TRY(add_symbols_of_tensor(w, epoch->tensors.data[k], i));
        for (uint32_t k = 0; k < epoch->checks.count; k++) {
            UIR_TRY(add_symbols_of(w, p->checks[epoch->checks.data[k]].left, i));
            UIR_TRY(add_symbols_of(w, p->checks[epoch->checks.data[k]].right, i));
        }
        for (uint32_t k = 0; k < epoch->launches.count; k++) {
            const uir_plan_step *s = &p->steps[epoch->launches.data[k]];
            UIR_TRY(add_symbols(w, s->values, i));
            for (uint32_t n = 0; n < s->inputs.count + s->outputs.count; n++) {
                uint32_t t = n < s->inputs.count ? uir_plan_get_word(p, s->inputs, n)
                                                 : uir_plan_get_word(p, s->outputs, n - s->inputs.count);
                if (t != UIR_PLAN_NONE) UIR_TRY(add_symbols_of_tensor(w, t, i));
            }
        }
    }
    return UIR_STATUS_OK;
}

/* ---- kernels ---- */
static void raise(uint32_t *most, uint32_t count) {
    if (*most < count) *most = count;
}

/* The most that their variants have, and that launches keep nothing out of proportion. */
static uir_status measure_kernels(walk *w) {
    const uir_plan *p = w->plan;
    uint64_t parts = 0;
    UIR_TRY_ALLOCATE(w->a->kernels,
                     uir_arena_allocate_array(w->arena, (size_t)p->kernels_count + 1, sizeof *w->a->kernels));
    for (uint32_t k = 0; k < p->kernels_count; k++) {
        uir_rt_kernel_info *most = &w->a->kernels[k];
        for (uint32_t i = 0; i < p->kernels[k].variant_count; i++) {
            const uir_plan_variant *v = &p->variants[p->kernels[k].first_variant + i];
            uint32_t works = 0;
            for (uint32_t n = 0; n < v->pointer_count; n++)
                works += p->pointers[v->first_pointer + n].role == UIR_PLAN_WORK;
            raise(&most->symbols, v->symbol_count);
            raise(&most->pointers, v->pointer_count);
            raise(&most->phases, v->phase_count);
            raise(&most->works, works);
        }
    }
    for (uint32_t i = 0; i < p->steps_count; i++) {
        if (uir_plan_get_step_row(p->steps[i].kind)->target != UIR_PLAN_OF_KERNEL) continue;
        const uir_rt_kernel_info *most = &w->a->kernels[p->steps[i].target];
        parts += (uint64_t)most->symbols + most->pointers + most->phases;
        w->a->kernels[p->steps[i].target].on_host |= uir_plan_get_queue(p, i) == UIR_PLAN_QUEUE_HOST;
        w->a->kernels[p->steps[i].target].on_device |= uir_plan_get_queue(p, i) != UIR_PLAN_QUEUE_HOST;
    }
    for (uint32_t k = 0; k < p->kernels_count; k++) w->a->kernels[k].on_host |= !w->a->kernels[k].on_device;
    return parts / LAUNCH_PARTS_PER_BYTE <= p->size
               ? UIR_STATUS_OK
               : refuse(w, "its launches have more pointers and sizes than its bytes can hold");
}

/* ---- devices ---- */
/* The steps that others wait for, and the inputs that the host reads besides the copy to the device. */
static uir_status note_device(walk *w) {
    const uir_plan *p = w->plan;
    if (!p->devices_count) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(w->a->is_host_input,
                     uir_arena_allocate_array(w->arena, (size_t)p->inputs_count + 1, sizeof *w->a->is_host_input));
    for (uint32_t i = 0; i < p->steps_count; i++) {
        uir_plan_list waits = uir_plan_get_waits(p, i);
        if (w->a->steps[i].block == 0 && uir_plan_get_queue(p, i) != UIR_PLAN_QUEUE_HOST) w->a->last_request = i;
        for (uint32_t k = 0; k < waits.count; k++) {
            uir_rt_step_info *awaited = &w->a->steps[uir_plan_get_word(p, waits, k)];
            w->a->awaited_count += !awaited->is_awaited;
            awaited->is_awaited = true;
        }
        for (uint32_t k = 0; k < p->steps[i].inputs.count && !uir_plan_is_port_copy(p, &p->steps[i]); k++) {
            uint32_t t = uir_plan_get_word(p, p->steps[i].inputs, k);
            if (t == UIR_PLAN_NONE || uir_plan_get_domain(p, t) != UIR_PLAN_ON_HOST) continue;
            const uir_plan_tensor *root = &p->tensors[w->a->tensors[t].root];
            if (root->storage == UIR_PLAN_STORAGE_INPUT) w->a->is_host_input[root->index] = true;
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_rt_analyse(uir_arena *arena, const uir_plan *plan, uir_diagnostics *diagnostics, uir_rt_analysis *a) {
    walk w = {.plan = plan, .a = a, .arena = arena, .diagnostics = diagnostics};
    uint32_t epoch = 0;
    UIR_TRY_ALLOCATE(a->tensors, uir_arena_allocate_array(arena, (size_t)plan->tensors_count + 1, sizeof *a->tensors));
    UIR_TRY_ALLOCATE(a->steps, uir_arena_allocate_array(arena, (size_t)plan->steps_count + 1, sizeof *a->steps));
    UIR_TRY_ALLOCATE(a->blocks, uir_arena_allocate_array(arena, (size_t)plan->blocks_count + 1, sizeof *a->blocks));
    UIR_TRY_ALLOCATE(a->symbol_epoch,
                     uir_arena_allocate_array(arena, (size_t)plan->symbols_count + 1, sizeof *a->symbol_epoch));
    UIR_TRY_ALLOCATE(w.defined, uir_arena_allocate_array(arena, (size_t)plan->tensors_count + 1, sizeof *w.defined));
    for (uint32_t i = 0; i < plan->symbols_count; i++) a->symbol_epoch[i] = UIR_PLAN_NONE;
    for (uint32_t i = 0; i < plan->tensors_count; i++) {
        a->tensors[i] = (uir_rt_tensor_info){.root = i,
                                             .first = UINT32_MAX,
                                             .shape = a->shape_count,
                                             .writer = UIR_PLAN_NONE,
                                             .home = UIR_PLAN_NONE,
                                             .conditional = true,
                                             .slack = UIR_PLAN_NONE};
        a->shape_count += plan->tensors[i].extents.count;
    }
    UIR_TRY(open_epoch(&w, &epoch));
    for (uint32_t i = 0; i < plan->inputs_count; i++) UIR_TRY(learn_extents(&w, plan->inputs[i].tensor, &epoch));
    for (uint32_t i = 0; i < plan->inputs_count; i++)
        UIR_TRY(learn_slack(&w, &plan->inputs[i], uir_plan_get_port_tensor(plan, false, i), &epoch));
    for (uint32_t i = 0; i < plan->outputs_count; i++)
        UIR_TRY(learn_slack(&w, &plan->outputs[i], uir_plan_get_port_tensor(plan, true, i), &epoch));
    UIR_TRY(walk_block(&w, 0));
    for (uint32_t i = 0; i < plan->inputs_count; i++) a->tensors[plan->inputs[i].tensor].conditional = false;
    for (uint32_t i = 0; i < plan->outputs_count; i++) a->tensors[plan->outputs[i].tensor].conditional = false;
    UIR_TRY(epoch_expressions(&w));
    UIR_TRY(epoch_tensors(&w));
    UIR_TRY(epoch_launches(&w));
    UIR_TRY(epoch_checks(&w));
    UIR_TRY(epoch_symbols(&w));
    UIR_TRY(measure_kernels(&w));
    UIR_TRY(note_device(&w));
    UIR_TRY_ALLOCATE(w.known, uir_arena_allocate_array(arena, (size_t)a->epochs.count + 1, sizeof *w.known));
    w.known[0] = true;
    w.position = w.depth = 0;
    w.second = true;
    UIR_TRY(walk_block(&w, 0));
    for (uint32_t i = 0; i < plan->outputs_count; i++) {
        if (!is_known(&w, plan->outputs[i].tensor)) return refuse(&w, "an output whose size is not known");
        use(&w, plan->outputs[i].tensor, UINT32_MAX);
    }
    return UIR_STATUS_OK;
}
