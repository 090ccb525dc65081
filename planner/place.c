/* Which launches the host computes although the device could: those of a few numbers that steps of the host wait for,
 * as sizes and conditions are. A copy of what they read, and a wait for it, would take longer. */
#include "planner/internal.h"

enum { MOST_ELEMENTS = 1024, MOST_DEPTH = 256 };

typedef enum verdict { UNKNOWN, OPEN, YES, NO } verdict;

/* Who writes a root: a step, or a loop that gives its body a port. */
typedef struct source {
    uint32_t block, step; /* NONE: no step */
    uint32_t port;        /* of the loop's body; NONE: the step writes it itself */
} source;

typedef struct chooser {
    planner *p;
    source *sources;   /* by root */
    verdict *verdicts; /* by root: whether the host may have it without a wait */
    uint32_t depth;    /* of launches that read each other's results; beyond MOST_DEPTH they are the device's */
} chooser;

static const uir_plan_step *step_of(const chooser *c, const source *s) {
    return &c->p->bodies.data[s->block].steps.data[s->step];
}

/* ---- sources ---- */
static void note_sources(chooser *c) {
    for (uint32_t t = 0; t < c->p->tensors.count; t++)
        c->sources[t] = (source){UIR_PLAN_NONE, UIR_PLAN_NONE, UIR_PLAN_NONE};
    for (uint32_t b = 0; b < c->p->bodies.count; b++) {
        for (uint32_t i = 0; i < c->p->bodies.data[b].steps.count; i++) {
            const uir_plan_step *s = &c->p->bodies.data[b].steps.data[i];
            for (uint32_t k = 0; k < s->outputs.count; k++) {
                uint32_t t = uir_pl_get_word(c->p, s->outputs, k);
                if (t != UIR_PLAN_NONE) c->sources[uir_pl_find_root(c->p, t)] = (source){b, i, UIR_PLAN_NONE};
            }
            if (!uir_plan_turns(s)) continue;
            const uir_pl_block *body = &c->p->bodies.data[s->target];
            for (uint32_t k = 0; k < body->inputs.count; k++) c->sources[body->inputs.data[k]] = (source){b, i, k};
        }
    }
}

/* ---- verdicts ---- */
/* Known to have few elements. */
static bool is_small(const chooser *c, uint32_t tensor) {
    uir_plan_list extents = c->p->tensors.data[tensor].extents;
    int64_t count = 1;
    for (uint32_t d = 0; d < extents.count; d++) {
        const uir_plan_expression *e = &c->p->expressions.data[uir_pl_get_word(c->p, extents, d)];
        const uir_plan_operation *o = &c->p->operations.data[e->first];
        if (e->count != 1 || o->kind != UIR_DIM_CONST || __builtin_mul_overflow(count, o->value, &count)) return false;
    }
    return count <= MOST_ELEMENTS;
}

static bool is_available(chooser *c, uint32_t root);

/* Whether all that a launch reads and writes is small, and what it reads is there. */
static bool is_cheap(chooser *c, const uir_plan_step *s) {
    for (uint32_t k = 0; k < s->outputs.count; k++)
        if (!is_small(c, uir_pl_get_word(c->p, s->outputs, k))) return false;
    for (uint32_t k = 0; k < s->inputs.count; k++) {
        uint32_t t = uir_pl_get_word(c->p, s->inputs, k);
        if (t != UIR_PLAN_NONE && (!is_small(c, t) || !is_available(c, uir_pl_find_root(c->p, t)))) return false;
    }
    return s->constants.count == 0 && uir_pl_kernel_runs(c->p, s->target, UIR_PLAN_ON_HOST);
}

/* What a loop carries: from before the loop, and from each turn. Until the turn's result is known it is taken to be. */
static bool is_carried_available(chooser *c, const uir_plan_step *s, uint32_t k) {
    if (k < 2) return true;
    return is_available(c, uir_pl_find_root(c->p, uir_pl_get_word(c->p, s->inputs, k))) &&
           is_available(c, uir_pl_find_root(c->p, c->p->bodies.data[s->target].outputs.data[k - 1]));
}

static bool find_verdict(chooser *c, uint32_t root) {
    const source *from = &c->sources[root];
    if (from->step == UIR_PLAN_NONE) return true; /* an input or a constant */
    const uir_plan_step *s = step_of(c, from);
    if (from->port != UIR_PLAN_NONE) return is_carried_available(c, s, from->port);
    if (s->kind == UIR_PLAN_STEP_LAUNCH)
        return c->p->bodies.data[from->block].queues.data[from->step] == UIR_PLAN_QUEUE_HOST || is_cheap(c, s);
    return !uir_plan_has_bodies(s); /* a step of the host */
}

static bool is_available(chooser *c, uint32_t root) {
    if (c->verdicts[root] == UNKNOWN) {
        c->verdicts[root] = OPEN;
        c->depth++;
        c->verdicts[root] = c->depth <= MOST_DEPTH && find_verdict(c, root) ? YES : NO;
        c->depth--;
    }
    return c->verdicts[root] != NO;
}

/* ---- needs ---- */
static void need(chooser *c, uint32_t tensor);

static void need_all(chooser *c, const uir_plan_step *s) {
    for (uint32_t k = 0; k < s->inputs.count; k++)
        if (uir_pl_get_word(c->p, s->inputs, k) != UIR_PLAN_NONE) need(c, uir_pl_get_word(c->p, s->inputs, k));
}

static void need_source(chooser *c, uint32_t root, const uir_plan_step *s);

/* The host reads the tensor: what the host can compute of it, it computes. */
static void need(chooser *c, uint32_t tensor) {
    uint32_t root = uir_pl_find_root(c->p, tensor);
    const source *from = &c->sources[root];
    if (from->step == UIR_PLAN_NONE || !is_available(c, root) || c->depth > MOST_DEPTH) return;
    const uir_plan_step *s = step_of(c, from);
    c->depth++;
    need_source(c, root, s);
    c->depth--;
}

static void need_source(chooser *c, uint32_t root, const uir_plan_step *s) {
    const source *from = &c->sources[root];
    if (from->port != UIR_PLAN_NONE) {
        if (from->port < 2 || c->verdicts[root] == OPEN) return;
        c->verdicts[root] = OPEN; /* once */
        need(c, uir_pl_get_word(c->p, s->inputs, from->port));
        need(c, c->p->bodies.data[s->target].outputs.data[from->port - 1]);
        return;
    }
    uint32_t *queue = &c->p->bodies.data[from->block].queues.data[from->step];
    if (s->kind != UIR_PLAN_STEP_LAUNCH || *queue == UIR_PLAN_QUEUE_HOST) return;
    *queue = UIR_PLAN_QUEUE_HOST;
    need_all(c, s);
}

static void need_of_step(chooser *c, const uir_plan_step *s) {
    if (uir_plan_turns(s)) need(c, c->p->bodies.data[s->target].outputs.data[0]);
    if (uir_plan_has_bodies(s)) {
        for (uint32_t k = 0; k < (uir_plan_turns(s) ? 2u : 1u); k++)
            if (uir_pl_get_word(c->p, s->inputs, k) != UIR_PLAN_NONE) need(c, uir_pl_get_word(c->p, s->inputs, k));
    } else if (s->kind == UIR_PLAN_STEP_HOST || s->kind == UIR_PLAN_STEP_BIND) {
        need_all(c, s);
    }
}

uir_status uir_pl_choose_host_launches(planner *p) {
    chooser c = {.p = p};
    size_t count = (size_t)p->tensors.count + 1;
    UIR_TRY_ALLOCATE(c.sources, uir_arena_allocate_array(&p->arena, count, sizeof *c.sources));
    UIR_TRY_ALLOCATE(c.verdicts, uir_arena_allocate_array(&p->arena, count, sizeof *c.verdicts));
    note_sources(&c);
    for (uint32_t b = 0; b < p->bodies.count; b++)
        for (uint32_t i = 0; i < p->bodies.data[b].steps.count; i++) need_of_step(&c, &p->bodies.data[b].steps.data[i]);
    return UIR_STATUS_OK;
}
