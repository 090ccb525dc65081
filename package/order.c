/* The walk of order.h. */
#include "package/order.h"

#include <string.h>

enum { QUEUES = UIR_PLAN_QUEUE_COUNT, STEPS_PER_BYTE = 16, MAX_ROUNDS = 8 };

/* For each queue: the last of its requests that is done. Requests of a queue count from 1. */
typedef struct clock_vector {
    uint64_t at[QUEUES];
} clock_vector;

typedef struct order_walk {
    const uir_plan *plan;
    uir_plan_order *order;
    uir_arena *arena;
    uint32_t *root;              /* by tensor */
    uint32_t *writer;            /* by root: the step that writes it, or takes it as a port; NONE */
    uir_plan_step_list *readers; /* by root */
    uint32_t *block_of;          /* by step */
    uint32_t *owner;             /* by block: the step whose body it is; NONE: the first */
    uint64_t *executed;          /* by step: the number of its last request; 0: none yet */
    clock_vector *done;          /* by step: what is done when that request is */
    bool *is_settled;      /* by step of a body: the host waited for its last request when the body ended, if ever */
    clock_vector *touched; /* by root: the last requests that access it */
    uir_plan_step_list pending; /* roots whose accesses the host does not know to be done */
    bool *is_pending;           /* by root */
    clock_vector known[QUEUES]; /* by queue: what is done before its next request */
    clock_vector count;         /* requests so far */
    uint64_t left;              /* steps and readers that may still be looked at */
    bool again;                 /* a wait was added to a step that was walked already */
} order_walk;

static uir_status walk_block(order_walk *w, uint32_t block);

/* ---- clocks ---- */
static void learn(clock_vector *into, const clock_vector *from) {
    for (uint32_t q = 0; q < QUEUES; q++)
        if (into->at[q] < from->at[q]) into->at[q] = from->at[q];
}

static uir_status spend(order_walk *w, uint64_t work) {
    if (work > w->left) return UIR_STATUS_LIMIT;
    w->left -= work;
    return UIR_STATUS_OK;
}

/* The queue on which a step accesses a tensor. */
static uint32_t access_queue(const order_walk *w, uint32_t step, uint32_t tensor) {
    if (!uir_plan_has_bodies(&w->plan->steps[step])) return uir_plan_get_queue(w->plan, step);
    return uir_plan_get_domain(w->plan, tensor) == UIR_PLAN_ON_DEVICE ? UIR_PLAN_QUEUE_COMPUTE : UIR_PLAN_QUEUE_HOST;
}

/* ---- waits ---- */
static bool is_body_of(const order_walk *w, uint32_t block, uint32_t step) {
    return w->owner[block] == step;
}

/* The step of the block, or of a block around it, that `step` stands in or is. NONE: it stands in neither. */
static uint32_t find_in_block(const order_walk *w, uint32_t step, uint32_t block) {
    while (step != UIR_PLAN_NONE && w->block_of[step] != block) step = w->owner[w->block_of[step]];
    return step;
}

/* Whether the step stands before another in the block of either or around it. */
static bool is_before(const order_walk *w, uint32_t before, uint32_t step) {
    uint32_t at = find_in_block(w, step, w->block_of[before]);
    return at != UIR_PLAN_NONE && before < at;
}

static void wait_for(order_walk *w, uint32_t queue, uint32_t before) {
    if (w->executed[before]) learn(&w->known[queue], &w->done[before]);
}

static uir_status fail_wait(order_walk *w, uint32_t step, const char *fault) {
    w->order->fault = fault;
    w->order->fault_step = step;
    return UIR_STATUS_BAD_FILE;
}

/* A queue executes its requests in order: what it took before the step in the same body is done as well. */
static uir_status settle(order_walk *w, uint32_t step) {
    uint32_t first = w->plan->blocks[w->block_of[step]].first_step;
    UIR_TRY(spend(w, step - first));
    for (uint32_t i = first; i <= step; i++)
        if (uir_plan_get_queue(w->plan, i) == uir_plan_get_queue(w->plan, step)) w->is_settled[i] = true;
    return UIR_STATUS_OK;
}

/* The waits of a step: those of steps before it, or those of a body's steps at the end of the body. */
static uir_status apply_waits(order_walk *w, uint32_t step, uint32_t queue, uint32_t body) {
    const uir_plan_step_list *waits = &w->order->waits[step];
    for (uint32_t i = 0; i < waits->count; i++) {
        uint32_t before = waits->data[i], block = w->block_of[before];
        bool is_of_body = is_body_of(w, block, step);
        if (uir_plan_get_queue(w->plan, before) == UIR_PLAN_QUEUE_HOST)
            return fail_wait(w, step, "waits for a step of the host, which is done when it ends");
        if (!is_of_body && !is_before(w, before, step))
            return fail_wait(w, step, "waits for a step that does not stand before it");
        if (is_of_body ? block == body : body == UIR_PLAN_NONE) wait_for(w, queue, before);
        if (is_of_body && block == body) UIR_TRY(settle(w, before));
    }
    return UIR_STATUS_OK;
}

static uir_status add_wait(order_walk *w, uint32_t step, uint32_t before) {
    uir_plan_step_list *waits = &w->order->waits[step];
    for (uint32_t i = 0; i < waits->count; i++)
        if (waits->data[i] == before) return UIR_STATUS_OK;
    return uir_vector_push(w->arena, waits, before);
}

/* ---- accesses ---- */
/* That the access of `before` to the root is done before `step`, which accesses the tensor on `queue`. */
static uir_status require(order_walk *w, uint32_t step, uint32_t queue, uint32_t tensor, uint32_t before, bool writes) {
    if (before == UIR_PLAN_NONE || !w->executed[before]) return UIR_STATUS_OK;
    uint32_t its = access_queue(w, before, tensor);
    if (its == UIR_PLAN_QUEUE_HOST || w->known[queue].at[its] >= w->executed[before]) return UIR_STATUS_OK;
    if (queue == UIR_PLAN_QUEUE_HOST && w->is_settled[before]) return UIR_STATUS_OK;
    if (!w->order->adds) {
        w->order->has_race = true;
        w->order->race = (uir_plan_race){step, before, tensor, writes};
        return UIR_STATUS_BAD_FILE;
    }
    if (is_before(w, before, step)) {
        UIR_TRY(add_wait(w, step, before));
    } else { /* at the end of its body, in a turn that has been walked */
        UIR_TRY(add_wait(w, w->owner[w->block_of[before]], before));
        w->again = true;
    }
    wait_for(w, queue, before);
    return UIR_STATUS_OK;
}

static uir_status read_tensor(order_walk *w, uint32_t step, uint32_t tensor) {
    uint32_t queue = access_queue(w, step, tensor);
    return require(w, step, queue, tensor, w->writer[w->root[tensor]], false);
}

static uir_status write_tensor(order_walk *w, uint32_t step, uint32_t tensor) {
    uint32_t root = w->root[tensor], queue = access_queue(w, step, tensor);
    UIR_TRY(spend(w, w->readers[root].count));
    for (uint32_t i = 0; i < w->readers[root].count; i++)
        if (w->readers[root].data[i] != step) UIR_TRY(require(w, step, queue, tensor, w->readers[root].data[i], true));
    return UIR_STATUS_OK;
}

/* ---- releases ---- */
static uir_status touch(order_walk *w, uint32_t step, uint32_t tensor) {
    uint32_t root, queue;
    if (!w->order->releases || tensor == UIR_PLAN_NONE) return UIR_STATUS_OK;
    root = w->root[tensor];
    queue = access_queue(w, step, tensor);
    w->order->releases[root].queues |= 1u << queue;
    w->order->releases[root].end = UINT32_MAX;
    w->touched[root].at[queue] = w->count.at[queue];
    if (w->is_pending[root]) return UIR_STATUS_OK;
    w->is_pending[root] = true;
    return uir_vector_push(w->arena, &w->pending, root);
}

static bool is_done(const order_walk *w, const clock_vector *touched) {
    for (uint32_t q = UIR_PLAN_QUEUE_HOST + 1; q < QUEUES; q++)
        if (w->known[UIR_PLAN_QUEUE_HOST].at[q] < touched->at[q]) return false;
    return true;
}

/* What the host knows to be done is free from the position on; at a join, all of the device's memory is, too. */
static uir_status release(order_walk *w, uint32_t position, bool joins) {
    uint32_t kept = 0;
    if (!w->order->releases) return UIR_STATUS_OK;
    UIR_TRY(spend(w, w->pending.count));
    for (uint32_t i = 0; i < w->pending.count; i++) {
        uint32_t root = w->pending.data[i];
        if ((joins && uir_plan_get_domain(w->plan, root) == UIR_PLAN_ON_DEVICE) || is_done(w, &w->touched[root])) {
            w->order->releases[root].end = position;
            w->is_pending[root] = false;
        } else
            w->pending.data[kept++] = root;
    }
    w->pending.count = kept;
    return UIR_STATUS_OK;
}

/* What a turn leaves pending is accessed by the next one: it keeps its memory from the loop's beginning on. */
static void keep_through(order_walk *w, uint32_t step) {
    for (uint32_t i = 0; w->order->releases && i < w->pending.count; i++) {
        uir_plan_release *r = &w->order->releases[w->pending.data[i]];
        if (r->begin > w->order->positions[step].begin) r->begin = w->order->positions[step].begin;
    }
}

/* ---- bodies ---- */
/* The compute queue is behind all requests; then `step` submits its own; then all queues are behind that. */
static void join(order_walk *w, uint32_t step) {
    w->count.at[UIR_PLAN_QUEUE_COMPUTE]++;
    for (uint32_t q = UIR_PLAN_QUEUE_HOST + 1; q < QUEUES; q++) learn(&w->known[q], &w->count);
    w->executed[step] = w->count.at[UIR_PLAN_QUEUE_COMPUTE];
    w->done[step] = w->count;
}

/* The end of a body: the step takes what the body returns. */
static uir_status end_body(order_walk *w, uint32_t step, uint32_t body) {
    const uir_plan_block *b = &w->plan->blocks[body];
    bool joins = uir_plan_get_queue(w->plan, step) != UIR_PLAN_QUEUE_HOST;
    UIR_TRY(apply_waits(w, step, UIR_PLAN_QUEUE_HOST, body));
    if (joins) learn(&w->known[UIR_PLAN_QUEUE_COMPUTE], &w->count);
    for (uint32_t i = 0; i < b->outputs.count; i++)
        UIR_TRY(read_tensor(w, step, uir_plan_get_word(w->plan, b->outputs, i)));
    if (joins) join(w, step);
    for (uint32_t i = 0; i < b->outputs.count; i++) UIR_TRY(touch(w, step, uir_plan_get_word(w->plan, b->outputs, i)));
    return release(w, w->order->positions ? w->order->positions[step].end : 0, joins);
}

/* What the host knows after one of two ways: `other` on the one that ended with `end` requests, else `this`. A way that
 * knew all of its own requests knows all that were made on it. */
static void meet(clock_vector *this, const clock_vector *other, const clock_vector *end, const clock_vector *count) {
    for (uint32_t q = 0; q < QUEUES; q++) {
        uint64_t value = other->at[q] == end->at[q] ? count->at[q] : other->at[q];
        if (this->at[q] > value) this->at[q] = value;
    }
}

/* What a body returns and one of its own steps writes. */
static uir_status write_returned(order_walk *w, uint32_t step, uint32_t body) {
    const uir_plan_block *b = &w->plan->blocks[body];
    for (uint32_t i = 0; i < b->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, b->outputs, i), writer = w->writer[w->root[t]];
        if (writer != UIR_PLAN_NONE && w->block_of[writer] == body) UIR_TRY(write_tensor(w, step, t));
    }
    return UIR_STATUS_OK;
}

/* The results of a step with bodies are written while these run: a body writes the memory of the results and of all
 * that it returns. */
static uir_status write_results(order_walk *w, uint32_t step) {
    const uir_plan_step *s = &w->plan->steps[step];
    for (uint32_t i = 0; i < s->outputs.count; i++)
        UIR_TRY(write_tensor(w, step, uir_plan_get_word(w->plan, s->outputs, i)));
    UIR_TRY(write_returned(w, step, s->target));
    return uir_plan_turns(s) ? UIR_STATUS_OK : write_returned(w, step, s->other);
}

static uir_status walk_loop(order_walk *w, uint32_t step) {
    const uir_plan_step *s = &w->plan->steps[step];
    clock_vector *host = &w->known[UIR_PLAN_QUEUE_HOST], before = *host, count = w->count;
    const uir_plan_block *body = &w->plan->blocks[s->target];
    UIR_TRY(write_results(w, step));
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 2; i < body->inputs.count; i++) /* the first two are new in each turn */
            UIR_TRY(write_tensor(w, step, uir_plan_get_word(w->plan, body->inputs, i)));
        UIR_TRY(walk_block(w, s->target));
        UIR_TRY(end_body(w, step, s->target));
        keep_through(w, step);
    }
    meet(host, &before, &count, &w->count);
    return UIR_STATUS_OK;
}

static uir_status walk_branches(order_walk *w, uint32_t step) {
    const uir_plan_step *s = &w->plan->steps[step];
    clock_vector *host = &w->known[UIR_PLAN_QUEUE_HOST], before = *host, after, count;
    UIR_TRY(write_results(w, step));
    UIR_TRY(walk_block(w, s->target));
    UIR_TRY(end_body(w, step, s->target));
    after = *host;
    count = w->count;
    *host = before;
    UIR_TRY(walk_block(w, s->other));
    UIR_TRY(end_body(w, step, s->other));
    meet(host, &after, &count, &w->count);
    return UIR_STATUS_OK;
}

static uir_status walk_bodies(order_walk *w, uint32_t step) {
    if (uir_plan_get_queue(w->plan, step) != UIR_PLAN_QUEUE_HOST) {
        join(w, step);
        UIR_TRY(release(w, w->order->positions ? w->order->positions[step].begin - 1 : 0, true));
    }
    return uir_plan_turns(&w->plan->steps[step]) ? walk_loop(w, step) : walk_branches(w, step);
}

/* ---- steps ---- */
static uir_status walk_step(order_walk *w, uint32_t step) {
    const uir_plan_step *s = &w->plan->steps[step];
    uint32_t queue =
        uir_plan_has_bodies(&w->plan->steps[step]) ? UIR_PLAN_QUEUE_HOST : (uint32_t)uir_plan_get_queue(w->plan, step);
    UIR_TRY(spend(w, 1 + (uint64_t)s->inputs.count + s->outputs.count));
    clock_vector before = w->known[UIR_PLAN_QUEUE_HOST];
    learn(&w->known[queue], &w->known[UIR_PLAN_QUEUE_HOST]);
    UIR_TRY(apply_waits(w, step, queue, UIR_PLAN_NONE));
    /* A loop's own copies are behind all requests. */
    if (uir_plan_has_bodies(&w->plan->steps[step]) && uir_plan_get_queue(w->plan, step) != UIR_PLAN_QUEUE_HOST)
        learn(&w->known[UIR_PLAN_QUEUE_COMPUTE], &w->count);
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, s->inputs, i);
        if (t != UIR_PLAN_NONE) UIR_TRY(read_tensor(w, step, t));
    }
    if (memcmp(&before, &w->known[UIR_PLAN_QUEUE_HOST], sizeof before) && w->order->positions)
        UIR_TRY(release(w, w->order->positions[step].begin - 1, false));
    if (uir_plan_has_bodies(&w->plan->steps[step])) UIR_TRY(walk_bodies(w, step));
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t t = uir_plan_get_word(w->plan, s->outputs, i);
        if (t != UIR_PLAN_NONE) UIR_TRY(write_tensor(w, step, t));
    }
    if (queue != UIR_PLAN_QUEUE_HOST) {
        w->executed[step] = w->known[queue].at[queue] = ++w->count.at[queue];
        w->done[step] = w->known[queue];
        w->is_settled[step] = false;
    }
    for (uint32_t i = 0; i < s->inputs.count; i++) UIR_TRY(touch(w, step, uir_plan_get_word(w->plan, s->inputs, i)));
    for (uint32_t i = 0; i < s->outputs.count; i++) UIR_TRY(touch(w, step, uir_plan_get_word(w->plan, s->outputs, i)));
    return UIR_STATUS_OK;
}

static uir_status walk_block(order_walk *w, uint32_t block) {
    const uir_plan_block *b = &w->plan->blocks[block];
    for (uint32_t i = 0; i < b->step_count; i++) UIR_TRY(walk_step(w, b->first_step + i));
    return UIR_STATUS_OK;
}

/* ---- the tables ---- */
static uir_status note_reader(order_walk *w, uint32_t tensor, uint32_t step) {
    if (tensor == UIR_PLAN_NONE) return UIR_STATUS_OK;
    uir_plan_step_list *readers = &w->readers[w->root[tensor]];
    if (readers->count && readers->data[readers->count - 1] == step) return UIR_STATUS_OK;
    return uir_vector_push(w->arena, readers, step);
}

static uir_status note_block(order_walk *w, uint32_t block, uint32_t owner) {
    const uir_plan_block *b = &w->plan->blocks[block];
    w->owner[block] = owner;
    for (uint32_t i = 0; i < b->inputs.count; i++) w->writer[w->root[uir_plan_get_word(w->plan, b->inputs, i)]] = owner;
    for (uint32_t i = 0; i < b->outputs.count; i++)
        UIR_TRY(note_reader(w, uir_plan_get_word(w->plan, b->outputs, i), owner));
    return UIR_STATUS_OK;
}

static uir_status note_steps(order_walk *w) {
    const uir_plan *p = w->plan;
    for (uint32_t t = 0; t < p->tensors_count; t++) {
        w->root[t] = p->tensors[t].storage == UIR_PLAN_STORAGE_ALIAS ? w->root[p->tensors[t].index] : t;
        w->writer[t] = UIR_PLAN_NONE;
    }
    w->owner[0] = UIR_PLAN_NONE;
    for (uint32_t b = 0; b < p->blocks_count; b++) {
        for (uint32_t i = 0; i < p->blocks[b].step_count; i++) {
            uint32_t step = p->blocks[b].first_step + i;
            const uir_plan_step *s = &p->steps[step];
            const uir_plan_step_row *row = uir_plan_get_step_row(s->kind);
            uir_plan_step_list *waits = &w->order->waits[step];
            uir_plan_list given = uir_plan_get_waits(p, step);
            w->block_of[step] = b;
            for (uint32_t k = 0; k < given.count; k++)
                UIR_TRY(uir_vector_push(w->arena, waits, uir_plan_get_word(p, given, k)));
            for (uint32_t k = 0; k < s->inputs.count; k++)
                UIR_TRY(note_reader(w, uir_plan_get_word(p, s->inputs, k), step));
            for (uint32_t k = 0; k < s->outputs.count; k++) {
                uint32_t t = uir_plan_get_word(p, s->outputs, k);
                if (t != UIR_PLAN_NONE) w->writer[w->root[t]] = step;
            }
            if (row->target == UIR_PLAN_OF_BLOCK) UIR_TRY(note_block(w, s->target, step));
            if (row->other == UIR_PLAN_OF_BLOCK) UIR_TRY(note_block(w, s->other, step));
        }
    }
    return UIR_STATUS_OK;
}

static void begin_round(order_walk *w) {
    const uir_plan *p = w->plan;
    memset(w->executed, 0, p->steps_count * sizeof *w->executed);
    memset(w->is_settled, 0, p->steps_count * sizeof *w->is_settled);
    memset(w->touched, 0, p->tensors_count * sizeof *w->touched);
    memset(w->is_pending, 0, p->tensors_count * sizeof *w->is_pending);
    memset(w->known, 0, sizeof w->known);
    w->count = (clock_vector){{0}};
    w->pending.count = 0;
    w->left = (uint64_t)STEPS_PER_BYTE * p->size + ((uint64_t)p->steps_count + p->words_count) * STEPS_PER_BYTE;
    w->again = false;
    for (uint32_t t = 0; w->order->releases && t < p->tensors_count; t++)
        w->order->releases[t] = (uir_plan_release){0, UINT32_MAX, UINT32_MAX};
}

uir_status uir_plan_walk_order(uir_arena *arena, const uir_plan *plan, uir_plan_order *order) {
    order_walk w = {.plan = plan, .order = order, .arena = arena};
    size_t tensors = (size_t)plan->tensors_count + 1, steps = (size_t)plan->steps_count + 1;
    order->has_race = false;
    order->fault = NULL;
#define MAKE(field, count) UIR_TRY_ALLOCATE(field, uir_arena_allocate_array(arena, count, sizeof *(field)))
    MAKE(order->waits, steps);
    MAKE(w.root, tensors);
    MAKE(w.writer, tensors);
    MAKE(w.readers, tensors);
    MAKE(w.block_of, steps);
    MAKE(w.owner, (size_t)plan->blocks_count + 1);
    MAKE(w.executed, steps);
    MAKE(w.done, steps);
    MAKE(w.is_settled, steps);
    MAKE(w.touched, tensors);
    MAKE(w.is_pending, tensors);
    if (order->positions) MAKE(order->releases, tensors);
#undef MAKE
    UIR_TRY(note_steps(&w));
    for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
        begin_round(&w);
        UIR_TRY(walk_block(&w, 0));
        if (!w.again) return UIR_STATUS_OK;
    }
    return UIR_STATUS_LIMIT;
}
