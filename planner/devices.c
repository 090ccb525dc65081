/* Plans for a device with memory of its own: which tensors are where, the copies between, the queues and the waits.
 *
 * What a launch of the device writes is the device's, all else is the host's. A tensor that the other side reads has a
 * twin there, and a copy before its first reader; a loop's body finds the twins of what it reads made before the loop.
 */
#include "planner/internal.h"

#include "package/order.h"

#include <string.h>

enum { MOVED = UIR_PLAN_QUEUE_COUNT }; /* the queue of a step that is in another block now */

typedef struct placer {
    planner *p;
    uir_vector(uint32_t) twins;  /* by tensor: the same in the other domain, where the open blocks have it; NONE */
    uir_vector(bool) is_written; /* by root: by a step that was rewritten, or as a port */
    uir_vector(uint32_t) made;   /* tensors whose twins the open blocks made, in order */
    bool *is_bound_inside;       /* by symbol of the plan: a body gives it its value */
} placer;

/* A block as it is rewritten. */
typedef struct site {
    placer *l;
    struct site *around; /* NULL: block 0 */
    uir_pl_block out;
    uir_vector(uir_plan_step) checks; /* of tensors of the device: at the end, so that nothing waits for them before */
} site;

static uint32_t domain_of(const placer *l, uint32_t tensor) {
    return l->p->domains.data[uir_pl_find_root(l->p, tensor)].value;
}

static void set_domain(placer *l, uint32_t tensor, uint32_t domain) {
    l->p->domains.data[uir_pl_find_root(l->p, tensor)].value = domain;
}

static uint32_t domain_of_queue(uint32_t queue) {
    return queue == UIR_PLAN_QUEUE_HOST ? UIR_PLAN_ON_HOST : UIR_PLAN_ON_DEVICE;
}

/* ---- domains ---- */
/* Whether a launch of the device in the block, or in a body there, reads the root. */
static bool is_read_by_device(const placer *l, uint32_t block, uint32_t root) {
    const uir_pl_block *b = &l->p->bodies.data[block];
    for (uint32_t i = 0; i < b->steps.count; i++) {
        const uir_plan_step *s = &b->steps.data[i];
        if (uir_plan_has_bodies(s) &&
            (is_read_by_device(l, s->target, root) || (!uir_plan_turns(s) && is_read_by_device(l, s->other, root))))
            return true;
        for (uint32_t k = 0; k < s->inputs.count && b->queues.data[i] != UIR_PLAN_QUEUE_HOST; k++) {
            uint32_t t = uir_pl_get_word(l->p, s->inputs, k);
            if (t != UIR_PLAN_NONE && uir_pl_find_root(l->p, t) == root) return true;
        }
    }
    return false;
}

/* A carried value is where the body computes it; one that the body only passes on is where it is read. */
static void place_loop(placer *l, const uir_plan_step *s) {
    const uir_pl_block *body = &l->p->bodies.data[s->target];
    uint32_t carried = s->inputs.count - 2;
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t result = body->outputs.data[i + 1], domain = domain_of(l, result);
        if (i < carried) {
            uint32_t port = body->inputs.data[i + 2];
            if (l->p->tensors.data[uir_pl_find_root(l->p, result)].storage == UIR_PLAN_STORAGE_PORT)
                domain = is_read_by_device(l, s->target, port) ? UIR_PLAN_ON_DEVICE : UIR_PLAN_ON_HOST;
            set_domain(l, port, domain);
        }
        set_domain(l, uir_pl_get_word(l->p, s->outputs, i), domain);
    }
}

static void place_branches(placer *l, const uir_plan_step *s) {
    const uir_pl_block *then = &l->p->bodies.data[s->target], *other = &l->p->bodies.data[s->other];
    for (uint32_t i = 0; i < s->outputs.count; i++)
        set_domain(l, uir_pl_get_word(l->p, s->outputs, i),
                   domain_of(l, then->outputs.data[i]) | domain_of(l, other->outputs.data[i]));
}

static void place_block(placer *l, uint32_t block) {
    const uir_pl_block *b = &l->p->bodies.data[block];
    for (uint32_t i = 0; i < b->steps.count; i++) {
        const uir_plan_step *s = &b->steps.data[i];
        for (uint32_t k = 0; k < s->outputs.count && b->queues.data[i] != UIR_PLAN_QUEUE_HOST; k++) {
            uint32_t t = uir_pl_get_word(l->p, s->outputs, k);
            if (l->p->tensors.data[uir_pl_find_root(l->p, t)].storage != UIR_PLAN_STORAGE_OUTPUT)
                set_domain(l, t, UIR_PLAN_ON_DEVICE);
        }
        if (!uir_plan_has_bodies(s)) continue;
        place_block(l, s->target);
        if (!uir_plan_turns(s)) place_block(l, s->other);
        if (uir_plan_turns(s))
            place_loop(l, s);
        else
            place_branches(l, s);
    }
}

/* ---- twins ---- */
static uir_status add_tensor(placer *l, uir_plan_tensor tensor, uint32_t domain, uint32_t *out_tensor) {
    planner *p = l->p;
    *out_tensor = p->tensors.count;
    UIR_TRY(uir_vector_push(&p->arena, &p->tensors, tensor));
    UIR_TRY(uir_vector_push(&p->arena, &l->twins, UIR_PLAN_NONE));
    return uir_vector_push(&p->arena, &p->domains, ((uir_plan_word){domain}));
}

static uir_status push(site *at, const uir_plan_step *step, uint32_t queue) {
    UIR_TRY(uir_vector_push(&at->l->p->arena, &at->out.steps, *step));
    return uir_vector_push(&at->l->p->arena, &at->out.queues, queue);
}

static uint32_t queue_of_copy(uint32_t from, uint32_t to) {
    static const uir_plan_queue queues[UIR_PLAN_DOMAIN_COUNT][UIR_PLAN_DOMAIN_COUNT] = {
        [UIR_PLAN_ON_HOST] = {[UIR_PLAN_ON_HOST] = UIR_PLAN_QUEUE_HOST, [UIR_PLAN_ON_DEVICE] = UIR_PLAN_QUEUE_UPLOAD},
        [UIR_PLAN_ON_DEVICE] =
            {[UIR_PLAN_ON_HOST] = UIR_PLAN_QUEUE_DOWNLOAD, [UIR_PLAN_ON_DEVICE] = UIR_PLAN_QUEUE_COMPUTE},
    };
    return queues[from][to];
}

/* For the sake of the step `by`, whose node a failure names. */
static uir_status push_copy(site *at, uint32_t from, uint32_t to, const uir_plan_step *by) {
    planner *p = at->l->p;
    uir_plan_step step = {
        .kind = UIR_PLAN_STEP_COPY, .target = UIR_PLAN_NONE, .other = UIR_PLAN_NONE, .node = by->node, .op = by->op};
    UIR_TRY(uir_pl_add_list(p, &from, 1, &step.inputs));
    UIR_TRY(uir_pl_add_list(p, &to, 1, &step.outputs));
    UIR_TRY(uir_pl_add_text(p, "", 0, &step.remark));
    return push(at, &step, queue_of_copy(domain_of(at->l, from), domain_of(at->l, to)));
}

/* What is made of inputs and constants holds in all blocks. */
static uir_status keep_twin(site *at, uint32_t tensor, uint32_t twin, bool is_everywhere) {
    placer *l = at->l;
    l->twins.data[tensor] = twin;
    l->twins.data[twin] = tensor;
    return is_everywhere ? UIR_STATUS_OK : uir_vector_push(&l->p->arena, &l->made, tensor);
}

static uir_status find(site *at, uint32_t tensor, uint32_t domain, const uir_plan_step *by, uint32_t *out_tensor);

/* The same in the other domain: constants and inputs have it once, in block 0; others where it is first needed. */
static uir_status make_twin(site *at, uint32_t tensor, uint32_t domain, const uir_plan_step *by, uint32_t *out_twin) {
    placer *l = at->l;
    planner *p = l->p;
    uir_plan_tensor twin = p->tensors.data[tensor];
    site *main = at;
    while (main->around) main = main->around;
    if (twin.storage == UIR_PLAN_STORAGE_ALIAS) {
        uint32_t root = p->tensors.data[uir_pl_find_root(l->p, tensor)].storage;
        UIR_TRY(find(at, twin.index, domain, by, &twin.index));
        UIR_TRY(add_tensor(l, twin, domain, out_twin));
        return keep_twin(at, tensor, *out_twin, root == UIR_PLAN_STORAGE_CONSTANT || root == UIR_PLAN_STORAGE_INPUT);
    }
    if (twin.storage == UIR_PLAN_STORAGE_CONSTANT) {
        UIR_TRY(add_tensor(l, twin, domain, out_twin));
        return keep_twin(at, tensor, *out_twin, true);
    }
    if (twin.storage == UIR_PLAN_STORAGE_INPUT) {
        UIR_TRY(add_tensor(l, twin, domain, out_twin));
        p->port_tensors.data[twin.index].value = *out_twin;
        UIR_TRY(keep_twin(at, tensor, *out_twin, true));
        return push_copy(main, tensor, *out_twin, by);
    }
    if (twin.storage != UIR_PLAN_STORAGE_LAID_OUT) {
        twin.storage = UIR_PLAN_STORAGE_ARENA;
        twin.index = 0;
    }
    UIR_TRY(add_tensor(l, twin, domain, out_twin));
    UIR_TRY(keep_twin(at, tensor, *out_twin, false));
    return push_copy(at, tensor, *out_twin, by);
}

static uir_status find(site *at, uint32_t tensor, uint32_t domain, const uir_plan_step *by, uint32_t *out_tensor) {
    *out_tensor = tensor;
    if (tensor == UIR_PLAN_NONE || domain_of(at->l, tensor) == domain) return UIR_STATUS_OK;
    *out_tensor = at->l->twins.data[tensor];
    return *out_tensor != UIR_PLAN_NONE ? UIR_STATUS_OK : make_twin(at, tensor, domain, by, out_tensor);
}

/* ---- results that are outputs ---- */
/* What a launch of the device writes for an output of the plan is written on the device first. */
static uir_status find_result(site *at, uint32_t tensor, uint32_t *out_tensor) {
    placer *l = at->l;
    uir_plan_tensor twin = l->p->tensors.data[tensor];
    *out_tensor = l->twins.data[tensor];
    if (*out_tensor != UIR_PLAN_NONE) return UIR_STATUS_OK;
    if (twin.storage == UIR_PLAN_STORAGE_ALIAS) UIR_TRY(find_result(at, twin.index, &twin.index));
    UIR_TRY(add_tensor(l, twin, UIR_PLAN_ON_DEVICE, out_tensor));
    if (twin.storage == UIR_PLAN_STORAGE_OUTPUT)
        l->p->port_tensors.data[l->p->inputs.count + twin.index].value = *out_tensor;
    return keep_twin(at, tensor, *out_tensor, true);
}

/* ---- blocks ---- */
static uir_status rewrite_block(placer *l, uint32_t block, site *around, const uir_plan_step *by,
                                const uint32_t *domains);

static bool is_defined(const placer *l, uint32_t root) {
    uint32_t storage = l->p->tensors.data[root].storage;
    return storage == UIR_PLAN_STORAGE_CONSTANT || storage == UIR_PLAN_STORAGE_INPUT || l->is_written.data[root];
}

/* Where the step reads its operand `k`. */
static uint32_t needed_domain(const placer *l, const uir_plan_step *s, uint32_t queue, uint32_t k) {
    if (uir_plan_turns(s) && k >= 2) return domain_of(l, l->p->bodies.data[s->target].inputs.data[k]);
    return domain_of_queue(queue);
}

/* ---- what does not change from turn to turn ---- */
static void note_bound(placer *l, uint32_t tensor) {
    const planner *p = l->p;
    uir_plan_list extents = p->tensors.data[tensor].extents;
    for (uint32_t d = 0; d < extents.count; d++) {
        const uir_plan_expression *e = &p->expressions.data[uir_pl_get_word(l->p, extents, d)];
        const uir_plan_operation *o = &p->operations.data[e->first];
        if (e->count == 1 && o->kind == UIR_DIM_SYMBOL) l->is_bound_inside[o->value] = true;
    }
}

/* The symbols that bodies bind: by steps, and by the shapes of ports and of results that steps allocate. */
static uir_status note_bound_symbols(placer *l) {
    const planner *p = l->p;
    UIR_TRY_ALLOCATE(l->is_bound_inside,
                     uir_arena_allocate_array(&l->p->arena, (size_t)p->symbols.count + 1, sizeof *l->is_bound_inside));
    for (uint32_t b = 1; b < p->bodies.count; b++) {
        const uir_pl_block *body = &p->bodies.data[b];
        for (uint32_t i = 0; i < body->inputs.count; i++) note_bound(l, body->inputs.data[i]);
        for (uint32_t i = 0; i < body->steps.count; i++) {
            const uir_plan_step *s = &body->steps.data[i];
            for (uint32_t k = 0; k < s->symbols.count; k++)
                l->is_bound_inside[uir_pl_get_word(l->p, s->symbols, k)] = true;
            for (uint32_t k = 0; k < s->outputs.count; k++) {
                uint32_t t = uir_pl_get_word(l->p, s->outputs, k);
                if (t != UIR_PLAN_NONE && p->tensors.data[t].storage == UIR_PLAN_STORAGE_OWN) note_bound(l, t);
            }
        }
    }
    return UIR_STATUS_OK;
}

/* Whether a step writes the same sizes in each turn of a loop. */
static bool is_invariant(const placer *l, const uir_plan_step *s) {
    const planner *p = l->p;
    if (s->kind != UIR_PLAN_STEP_DIMS) return false;
    for (uint32_t i = 0; i < s->values.count; i++) {
        const uir_plan_expression *e = &p->expressions.data[uir_pl_get_word(l->p, s->values, i)];
        for (uint32_t k = 0; k < e->count; k++) {
            const uir_plan_operation *o = &p->operations.data[e->first + k];
            if (o->kind == UIR_DIM_SYMBOL && l->is_bound_inside[o->value]) return false;
        }
    }
    return true;
}

/* Moves what does not change out of a loop's body, and makes the twins of what the body reads of the blocks around it:
 * they would be copied in each turn. */
static uir_status hoist(site *at, uint32_t block, const uir_plan_step *by) {
    placer *l = at->l;
    uint32_t twin;
    for (uint32_t i = 0; i < l->p->bodies.data[block].steps.count; i++) {
        const uir_plan_step s = l->p->bodies.data[block].steps.data[i];
        uint32_t queue = l->p->bodies.data[block].queues.data[i];
        if (queue == MOVED) continue;
        if (is_invariant(l, &s)) {
            l->p->bodies.data[block].queues.data[i] = MOVED;
            l->is_written.data[uir_pl_find_root(l->p, uir_pl_get_word(l->p, s.outputs, 0))] = true;
            UIR_TRY(push(at, &s, UIR_PLAN_QUEUE_HOST));
            continue;
        }
        for (uint32_t k = 0; k < s.inputs.count && s.kind != UIR_PLAN_STEP_COPY; k++) {
            uint32_t t = uir_pl_get_word(l->p, s.inputs, k);
            if (t != UIR_PLAN_NONE && is_defined(l, uir_pl_find_root(l->p, t)))
                UIR_TRY(find(at, t, needed_domain(l, &s, queue, k), by, &twin));
        }
        if (!uir_plan_has_bodies(&s)) continue;
        UIR_TRY(hoist(at, s.target, by));
        if (!uir_plan_turns(&s)) UIR_TRY(hoist(at, s.other, by));
    }
    return UIR_STATUS_OK;
}

static uir_status rewrite_bodies(site *at, uir_plan_step *s) {
    placer *l = at->l;
    uint32_t *domains, first = uir_plan_turns(s), count = s->outputs.count;
    UIR_TRY_ALLOCATE(domains, uir_arena_allocate_array(&l->p->arena, (size_t)count + 2, sizeof *domains));
    for (uint32_t i = 0; i < count; i++) domains[i + first] = domain_of(l, uir_pl_get_word(l->p, s->outputs, i));
    UIR_TRY(rewrite_block(l, s->target, at, s, domains));
    return uir_plan_turns(s) ? UIR_STATUS_OK : rewrite_block(l, s->other, at, s, domains);
}

static bool has_device_part(const placer *l, const uir_plan_step *s) {
    for (uint32_t i = 0; i < s->outputs.count; i++)
        if (domain_of(l, uir_pl_get_word(l->p, s->outputs, i)) == UIR_PLAN_ON_DEVICE) return true;
    for (uint32_t k = 0; k < 2; k++) {
        const uir_pl_block *b = &l->p->bodies.data[k && !uir_plan_turns(s) ? s->other : s->target];
        for (uint32_t i = 0; i < b->queues.count; i++)
            if (b->queues.data[i] != UIR_PLAN_QUEUE_HOST) return true;
    }
    return false;
}

/* A check of indices that the device computes. Kernels clamp them, so that what comes before it harms nothing. */
static uir_status defer_check(site *at, uir_plan_step s) {
    placer *l = at->l;
    uint32_t tensor;
    UIR_TRY(find(at, uir_pl_get_word(l->p, s.inputs, 0), UIR_PLAN_ON_HOST, &s, &tensor));
    UIR_TRY(uir_pl_add_list(l->p, &tensor, 1, &s.inputs));
    return uir_vector_push(&l->p->arena, &at->checks, s);
}

/* The first of them waits for all of their copies. */
static uir_status push_checks(site *at) {
    at->out.first_check = at->out.last_download = UIR_PLAN_NONE;
    for (uint32_t i = at->out.steps.count; i-- > 0 && at->out.last_download == UIR_PLAN_NONE;)
        if (at->out.queues.data[i] == UIR_PLAN_QUEUE_DOWNLOAD) at->out.last_download = i;
    for (uint32_t i = 0; i < at->checks.count; i++) {
        if (at->out.last_download != UIR_PLAN_NONE && !i) at->out.first_check = at->out.steps.count;
        UIR_TRY(push(at, &at->checks.data[i], UIR_PLAN_QUEUE_HOST));
    }
    return UIR_STATUS_OK;
}

static uir_status rewrite_step(site *at, uir_plan_step s, uint32_t queue) {
    placer *l = at->l;
    if (s.kind == UIR_PLAN_STEP_CHECK && domain_of(l, uir_pl_get_word(l->p, s.inputs, 0)) == UIR_PLAN_ON_DEVICE)
        return defer_check(at, s);
    uint32_t *list, count = s.inputs.count > s.outputs.count ? s.inputs.count : s.outputs.count;
    bool is_copy = s.kind == UIR_PLAN_STEP_COPY;
    UIR_TRY_ALLOCATE(list, uir_arena_allocate_array(&l->p->arena, (size_t)count + 1, sizeof *list));
    if (uir_plan_turns(&s)) UIR_TRY(hoist(at, s.target, &s));
    for (uint32_t k = 0; k < s.inputs.count; k++) {
        list[k] = uir_pl_get_word(l->p, s.inputs, k);
        if (!is_copy) UIR_TRY(find(at, list[k], needed_domain(l, &s, queue, k), &s, &list[k]));
    }
    UIR_TRY(uir_pl_add_list(l->p, list, s.inputs.count, &s.inputs));
    if (uir_plan_has_bodies(&s)) {
        UIR_TRY(rewrite_bodies(at, &s));
        if (has_device_part(l, &s)) queue = UIR_PLAN_QUEUE_COMPUTE;
    }
    bool is_twin = false;
    for (uint32_t k = 0; k < s.outputs.count; k++) {
        list[k] = uir_pl_get_word(l->p, s.outputs, k);
        if (list[k] == UIR_PLAN_NONE) continue;
        l->is_written.data[uir_pl_find_root(l->p, list[k])] = true;
        bool is_device = is_copy ? domain_of(l, uir_pl_get_word(l->p, s.inputs, 0)) == UIR_PLAN_ON_DEVICE
                                 : queue == UIR_PLAN_QUEUE_COMPUTE && !uir_plan_has_bodies(&s);
        if (!is_device || domain_of(l, list[k]) == UIR_PLAN_ON_DEVICE) continue;
        is_twin = true;
        UIR_TRY(find_result(at, list[k], &list[k]));
    }
    uir_plan_list given = s.outputs;
    UIR_TRY(uir_pl_add_list(l->p, list, s.outputs.count, &s.outputs));
    if (is_copy) queue = queue_of_copy(domain_of(l, uir_pl_get_word(l->p, s.inputs, 0)), domain_of(l, list[0]));
    UIR_TRY(push(at, &s, queue));
    for (uint32_t k = 0; k < given.count && is_twin; k++) {
        uint32_t root = uir_pl_get_word(l->p, given, k) == UIR_PLAN_NONE
                            ? UIR_PLAN_NONE
                            : uir_pl_find_root(l->p, uir_pl_get_word(l->p, given, k));
        if (root == UIR_PLAN_NONE || l->p->tensors.data[root].storage != UIR_PLAN_STORAGE_OUTPUT) continue;
        UIR_TRY(push_copy(at, l->twins.data[root], root, &s));
    }
    return UIR_STATUS_OK;
}

static bool is_upload(const site *at, uint32_t i) {
    const uir_plan_step *s = &at->out.steps.data[i];
    return at->out.queues.data[i] == UIR_PLAN_QUEUE_UPLOAD &&
           at->l->p->tensors.data[uir_pl_get_word(at->l->p, s->inputs, 0)].storage == UIR_PLAN_STORAGE_INPUT;
}

/* Uploads of inputs depend on nothing: they come first, in the order of their readers, so that no wait of the host
 * delays one. */
static uir_status raise_uploads(site *at) {
    site raised = {.l = at->l};
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < at->out.steps.count; i++)
            if (is_upload(at, i) == (pass == 0)) UIR_TRY(push(&raised, &at->out.steps.data[i], at->out.queues.data[i]));
    at->out.steps = raised.out.steps;
    at->out.queues = raised.out.queues;
    return UIR_STATUS_OK;
}

/* `domains`: where what a body returns is needed; NULL: block 0. */
static uir_status rewrite_block(placer *l, uint32_t block, site *around, const uir_plan_step *by,
                                const uint32_t *domains) {
    uir_pl_block *body = &l->p->bodies.data[block];
    site at = {.l = l, .around = around};
    uint32_t made = l->made.count;
    for (uint32_t i = 0; i < body->inputs.count; i++) l->is_written.data[body->inputs.data[i]] = true;
    for (uint32_t i = 0; i < body->steps.count; i++)
        if (body->queues.data[i] != MOVED) UIR_TRY(rewrite_step(&at, body->steps.data[i], body->queues.data[i]));
    for (uint32_t i = 0; i < body->outputs.count; i++)
        UIR_TRY(find(&at, body->outputs.data[i], domains[i], by, &body->outputs.data[i]));
    while (around && l->made.count > made) l->twins.data[l->made.data[--l->made.count]] = UIR_PLAN_NONE;
    if (!around) UIR_TRY(raise_uploads(&at));
    UIR_TRY(push_checks(&at));
    at.out.inputs = body->inputs;
    at.out.outputs = body->outputs;
    *body = at.out;
    return UIR_STATUS_OK;
}

/* Where the code of each variant can run. */
static uir_status note_homes(planner *p) {
    for (uint32_t k = 0; k < p->source_count; k++) {
        const uir_plan_source *s = &p->sources[k];
        for (uint32_t v = 0; v < s->variants->count; v++) {
            bool is_own = !s->own || v < s->own;
            UIR_TRY(
                uir_vector_push(&p->arena, &p->homes, ((uir_plan_word){is_own ? s->domains : 1u << UIR_PLAN_ON_HOST})));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_pl_place(planner *p) {
    placer l = {.p = p};
    uir_plan_device device;
    if (!p->options->device) return UIR_STATUS_OK;
    UIR_TRY(uir_pl_add_text(p, p->options->device, strlen(p->options->device), &device.name));
    const char *chip = p->options->chip ? p->options->chip : "";
    UIR_TRY(uir_pl_add_text(p, chip, strlen(chip), &device.chip));
    UIR_TRY(uir_vector_push(&p->arena, &p->devices, device));
    for (uint32_t t = 0; t < p->tensors.count; t++) {
        UIR_TRY(uir_vector_push(&p->arena, &p->domains, ((uir_plan_word){UIR_PLAN_ON_HOST})));
        UIR_TRY(uir_vector_push(&p->arena, &l.twins, UIR_PLAN_NONE));
        UIR_TRY(uir_vector_push(&p->arena, &l.is_written, false));
    }
    for (uint32_t i = 0; i < p->inputs.count + p->outputs.count; i++)
        UIR_TRY(uir_vector_push(&p->arena, &p->port_tensors, ((uir_plan_word){UIR_PLAN_NONE})));
    for (uint32_t b = 0; b < p->bodies.count; b++)
        while (p->bodies.data[b].queues.count < p->bodies.data[b].steps.count)
            UIR_TRY(uir_vector_push(&p->arena, &p->bodies.data[b].queues, UIR_PLAN_QUEUE_HOST));
    UIR_TRY(uir_pl_choose_host_launches(p));
    UIR_TRY(note_bound_symbols(&l));
    place_block(&l, 0);
    UIR_TRY(rewrite_block(&l, 0, NULL, NULL, NULL));
    for (uint32_t t = 0; t < p->tensors.count; t++) p->domains.data[t].value = domain_of(&l, t);
    UIR_TRY(note_homes(p));
    return uir_pl_find_fallbacks(p);
}

/* A wait that another of the step implies: for an earlier step of the same queue and block. */
static bool is_implied(const planner *p, const uint32_t *block_of, const uir_plan_step_list *waits, uint32_t i) {
    for (uint32_t k = 0; k < waits->count; k++) {
        uint32_t a = waits->data[i], b = waits->data[k];
        if (a < b && block_of[a] == block_of[b] && p->schedules.data[a].queue == p->schedules.data[b].queue)
            return true;
    }
    return false;
}

uir_status uir_pl_add_waits(planner *p) {
    if (!p->devices.count) return UIR_STATUS_OK;
    uir_plan plan = uir_pl_view(p);
    uir_plan_order order = {.adds = true};
    UIR_TRY(uir_plan_walk_order(&p->arena, &plan, &order));
    uint32_t *block_of, *kept;
    UIR_TRY_ALLOCATE(block_of, uir_arena_allocate_array(&p->arena, (size_t)p->steps.count + 1, sizeof *block_of));
    UIR_TRY_ALLOCATE(kept, uir_arena_allocate_array(&p->arena, (size_t)p->steps.count + 1, sizeof *kept));
    for (uint32_t b = 0; b < p->blocks.count; b++)
        for (uint32_t i = 0; i < p->blocks.data[b].step_count; i++) block_of[p->blocks.data[b].first_step + i] = b;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < order.waits[i].count; k++)
            if (!is_implied(p, block_of, &order.waits[i], k)) kept[count++] = order.waits[i].data[k];
        UIR_TRY(uir_pl_add_list(p, kept, count, &p->schedules.data[i].waits));
    }
    return UIR_STATUS_OK;
}
