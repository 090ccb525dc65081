/* What a run relies on and no table says by itself, proved before anything runs: each tensor is written by one step,
 * where that step may write, and read only after it; what a body writes is gone when the body ends.
 *
 * A root (a tensor that is no other's alias) is written as a whole: an alias takes all bytes of what it stands for,
 * which is asked when sizes are known. As one step writes it, a read is proved on every path when that step stands
 * before it in its own block or in one around it: of the two bodies of a branch and of the turns of a loop none knows
 * another's. Lifetimes (analyse.c) follow from the same order, so that what is alive together never shares bytes. The
 * work is proportional to the lists of the plan. */
#include "runtime/internal.h"

#include <stdio.h>

typedef enum contents { UNWRITTEN, WRITTEN, GONE } contents;

typedef struct verifier {
    const uir_plan *plan;
    uir_rt_analysis *a;
    uir_diagnostics *diagnostics;
    unsigned char *state; /* per root: contents */
    bool *is_port;        /* per tensor: some body takes it */
    uint32_t *log;        /* roots in the order of writing, of the blocks that are open */
    uint32_t logged;
} verifier;

static uir_status refuse(const verifier *v, uint32_t step, const char *format, ...) UIR_PRINTF(3, 4);
static uir_status refuse(const verifier *v, uint32_t step, const char *format, ...) {
    const uir_plan_step *s = &v->plan->steps[step];
    uir_location where = uir_plan_get_location(v->plan, s->node, s->op);
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(v->diagnostics, UIR_STATUS_BAD_FILE, &where, "the package's plan: step %u (%s) %s", step,
                     uir_plan_get_step_row(s->kind)->name, message);
}

static uir_status refuse_plan(const verifier *v, const char *what, uint32_t number) {
    return uir_error(v->diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package's plan: %s %u", what, number);
}

static uint32_t root_of(const verifier *v, uint32_t tensor) {
    return v->a->tensors[tensor].root;
}

/* ---- each step by itself ---- */
static uir_status verify_output(verifier *v, uint32_t step, uint32_t tensor) {
    const uir_plan_step_row *row = uir_plan_get_step_row(v->plan->steps[step].kind);
    uint32_t root = root_of(v, tensor), *writer = &v->a->tensors[root].writer;
    bool own = v->plan->tensors[root].storage == UIR_PLAN_STORAGE_OWN;
    if (!(row->traits & (own ? UIR_PLAN_MAKES : UIR_PLAN_FILLS)))
        return refuse(v, step,
                      own ? "writes tensor %u, which only a step that allocates may write"
                          : "allocates tensor %u, which already has storage",
                      tensor);
    if (own && root != tensor) return refuse(v, step, "allocates tensor %u, which is an alias of %u", tensor, root);
    if (*writer == step) return refuse(v, step, "writes tensor %u twice", root);
    if (*writer != UIR_PLAN_NONE) return refuse(v, step, "writes tensor %u, which step %u also writes", root, *writer);
    *writer = step;
    return UIR_STATUS_OK;
}

/* Where the caller may leave room between elements, and where they lie by a layout, only a step that knows of it reads
 * and writes. */
static uir_status verify_packed(const verifier *v, uint32_t step, uint32_t tensor) {
    const uir_rt_tensor_info *info = &v->a->tensors[tensor];
    bool room = info->slack != UIR_PLAN_NONE && info->slack_axis != UIR_PLAN_NONE,
         laid_out = v->plan->tensors[info->root].storage == UIR_PLAN_STORAGE_LAID_OUT;
    if ((!room && !laid_out) || uir_plan_get_step_row(v->plan->steps[step].kind)->traits & UIR_PLAN_STRIDES ||
        uir_plan_is_port_copy(v->plan, &v->plan->steps[step]) ||
        uir_plan_is_layout_copy(v->plan, &v->plan->steps[step]))
        return UIR_STATUS_OK;
    return refuse(v, step,
                  laid_out ? "uses tensor %u as row-major, but it has a layout"
                           : "uses tensor %u as contiguous, but it may have gaps between elements",
                  tensor);
}

static uir_status verify_host(const verifier *v, uint32_t step) {
    const uir_plan_step *s = &v->plan->steps[step];
    bool result;
    uint32_t at;
    const char *what = uir_plan_check_host_step(v->plan, s, &result, &at);
    if (!what) return UIR_STATUS_OK;
    return refuse(v, step, "'%s': %s %u %s", uir_plan_get_text(v->plan, s->target), result ? "result" : "operand", at,
                  what);
}

static uir_status verify_step(verifier *v, uint32_t step) {
    const uir_plan *p = v->plan;
    const uir_plan_step *s = &p->steps[step];
    if (s->kind == UIR_PLAN_STEP_HOST) UIR_TRY(verify_host(v, step));
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(p, s->outputs, i);
        if (t == UIR_PLAN_NONE) continue;
        UIR_TRY(verify_output(v, step, t));
        UIR_TRY(verify_packed(v, step, t));
    }
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        uint32_t t = uir_plan_get_word(p, s->inputs, i);
        if (t == UIR_PLAN_NONE) continue;
        if (v->a->tensors[root_of(v, t)].writer == step)
            return refuse(v, step, "overwrites tensor %u while it reads it", root_of(v, t));
        UIR_TRY(verify_packed(v, step, t));
    }
    return UIR_STATUS_OK;
}

/* ---- what a tensor stands for ---- */
static uir_status verify_tensors(verifier *v) {
    const uir_plan *p = v->plan;
    for (uint32_t t = 0; t < p->tensors_count; t++) {
        const uir_plan_tensor *tensor = &p->tensors[t];
        bool is_input = tensor->storage == UIR_PLAN_STORAGE_INPUT,
             is_output = tensor->storage == UIR_PLAN_STORAGE_OUTPUT;
        bool is_on_device = (is_input || is_output) && uir_plan_get_port_tensor(p, is_output, tensor->index) == t;
        bool given = (is_input && !is_on_device) || tensor->storage == UIR_PLAN_STORAGE_CONSTANT;
        if (is_input && !is_on_device && p->inputs[tensor->index].tensor != t)
            return refuse_plan(v, "an input does not match tensor", t);
        if (is_output && !is_on_device && p->outputs[tensor->index].tensor != t)
            return refuse_plan(v, "an output does not match tensor", t);
        v->state[t] = given ? WRITTEN : UNWRITTEN;
    }
    for (uint32_t b = 0; b < p->blocks_count; b++) {
        for (uint32_t i = 0; i < p->blocks[b].inputs.count; i++) {
            uint32_t t = uir_plan_get_word(p, p->blocks[b].inputs, i);
            if (v->is_port[t]) return refuse_plan(v, "bodies share the port of tensor", t);
            v->is_port[t] = true;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- the order of writing and reading ---- */
static const char *explain(const verifier *v, uint32_t root) {
    if (v->state[root] == GONE) return "which was written in a body that has ended";
    if (v->plan->tensors[root].storage == UIR_PLAN_STORAGE_PORT) return "which exists only in its own body";
    return v->a->tensors[root].writer == UIR_PLAN_NONE ? "which no step writes" : "which is written later";
}

static void write(verifier *v, uint32_t tensor) {
    uint32_t root = root_of(v, tensor);
    v->state[root] = WRITTEN;
    v->log[v->logged++] = root;
}

static uir_status verify_block(verifier *v, uint32_t block, uint32_t of);

static uir_status verify_order(verifier *v, uint32_t step) {
    const uir_plan_step *s = &v->plan->steps[step];
    const uir_plan_step_row *row = uir_plan_get_step_row(s->kind);
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        uint32_t t = uir_plan_get_word(v->plan, s->inputs, i);
        if (t != UIR_PLAN_NONE && v->state[root_of(v, t)] != WRITTEN)
            return refuse(v, step, "reads tensor %u, %s", t, explain(v, root_of(v, t)));
    }
    if (row->target == UIR_PLAN_OF_BLOCK) UIR_TRY(verify_block(v, s->target, step));
    if (row->other == UIR_PLAN_OF_BLOCK) UIR_TRY(verify_block(v, s->other, step));
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(v->plan, s->outputs, i);
        if (t != UIR_PLAN_NONE) write(v, t);
    }
    return UIR_STATUS_OK;
}

/* A body of step `of`; the depth of bodies has been checked. */
static uir_status verify_block(verifier *v, uint32_t block, uint32_t of) {
    const uir_plan_block *b = &v->plan->blocks[block];
    uint32_t begin = v->logged;
    for (uint32_t i = 0; i < b->inputs.count; i++) write(v, uir_plan_get_word(v->plan, b->inputs, i));
    for (uint32_t i = 0; i < b->step_count; i++) UIR_TRY(verify_order(v, b->first_step + i));
    for (uint32_t i = 0; i < b->outputs.count && block; i++) {
        uint32_t t = uir_plan_get_word(v->plan, b->outputs, i);
        if (v->state[root_of(v, t)] != WRITTEN)
            return refuse(v, of, "has a body that returns tensor %u, %s", t, explain(v, root_of(v, t)));
        UIR_TRY(verify_packed(v, of, t));
    }
    while (block && v->logged > begin) v->state[v->log[--v->logged]] = GONE;
    return UIR_STATUS_OK;
}

/* ---- the order of requests ---- */
/* That each access of a device's queue is behind those that it depends on, whenever the queues execute. */
static uir_status verify_requests(verifier *v, uir_arena *arena) {
    const uir_plan *p = v->plan;
    uir_plan_positions *positions;
    UIR_TRY_ALLOCATE(positions, uir_arena_allocate_array(arena, (size_t)p->steps_count + 1, sizeof *positions));
    for (uint32_t i = 0; i < p->steps_count; i++)
        positions[i] = (uir_plan_positions){v->a->steps[i].position, v->a->steps[i].end};
    uir_plan_order order = {.positions = positions};
    uir_status status = uir_plan_walk_order(arena, p, &order);
    v->a->releases = order.releases;
    if (status == UIR_STATUS_LIMIT)
        return uir_error(v->diagnostics, UIR_STATUS_BAD_FILE, NULL,
                         "the package's plan: its loops are nested too deep");
    if (order.fault) return refuse(v, order.fault_step, "%s", order.fault);
    if (order.has_race)
        return refuse(v, order.race.step, "%s tensor %u without waiting for step %u, which %s it",
                      order.race.writes ? "writes" : "reads", order.race.tensor, order.race.before,
                      order.race.writes ? "reads" : "writes");
    return status;
}

uir_status uir_rt_verify(uir_arena *arena, const uir_plan *plan, uir_diagnostics *diagnostics, uir_rt_analysis *a) {
    verifier v = {.plan = plan, .a = a, .diagnostics = diagnostics};
    size_t count = (size_t)plan->tensors_count + 1;
    UIR_TRY_ALLOCATE(v.state, uir_arena_allocate_array(arena, count, sizeof *v.state));
    UIR_TRY_ALLOCATE(v.is_port, uir_arena_allocate_array(arena, count, sizeof *v.is_port));
    UIR_TRY_ALLOCATE(v.log, uir_arena_allocate_array(arena, count, sizeof *v.log));
    UIR_TRY(verify_tensors(&v));
    for (uint32_t i = 0; i < plan->steps_count; i++) UIR_TRY(verify_step(&v, i));
    UIR_TRY(verify_block(&v, 0, 0));
    for (uint32_t i = 0; i < plan->outputs_count; i++) {
        uint32_t t = plan->outputs[i].tensor;
        if (v.state[root_of(&v, t)] != WRITTEN)
            return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package's plan: output '%s' is tensor %u, %s",
                             uir_plan_get_text(plan, plan->outputs[i].name), t, explain(&v, root_of(&v, t)));
    }
    return plan->devices_count ? verify_requests(&v, arena) : UIR_STATUS_OK;
}
