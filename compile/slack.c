#include "compile/slack.h"

#include "ir/kernel/igraph_slack.h"

#include <string.h>

/* An output that appends to an input. */
typedef struct pair {
    uir_value_id past, present;
    uint32_t axis;
    int64_t inner;     /* elements behind the axis */
    uir_node_id maker; /* the group */
    uint32_t in, out;  /* its operand and its result */
    bool refused;
} pair;

/* A group's operand or result that is such a tensor, perhaps reshaped. */
typedef struct need {
    uint32_t pair, kernel;
    uir_node_id node;
    uir_ipointer_role role;
    uint32_t index;
    bool present; /* the output rather than the input */
} need;

/* A kernel's argument with slack: the same for all its needs. */
typedef struct slot {
    uir_ipointer_role role;
    uint32_t index;
    uint32_t first_need;
} slot;

typedef struct pass {
    uir_lowering *lowering;
    uir_module *m;
    uir_arena arena;
    uir_vector(pair) pairs;
    uir_vector(need) needs;
    uir_igraph_list *lists; /* per kernel: the new variants; count 0: unchanged */
} pass;

/* ---- finding pairs ---- */
static uir_value_id root_of(const uir_module *m, uir_value_id value) {
    while (value.id) {
        uir_node_id producer = uir_value_info_get(m, value)->producer;
        if (!producer.id || uir_node_get(m, producer)->op != UIR_OP_RESHAPE) break;
        value = uir_node_get(m, producer)->inputs[0];
    }
    return value;
}

static uint32_t find_value(const uir_value_id *values, uint32_t count, uir_value_id value) {
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].id == value.id) return i;
    }
    return UINT32_MAX;
}

static const uir_graph_info *body_of(const uir_module *m, const uir_node_info *group) {
    return uir_graph_get(m, uir_node_find_attribute(m, group, "body")->value.graph);
}

/* Whether what lies behind the axis is a known number of elements: a concatenation has all else in common with its
 * operands. */
static bool is_grown(const uir_module *m, const uir_type *past, uint32_t axis, int64_t *out_inner) {
    int64_t inner = 1, extent;
    for (uint32_t d = axis + 1; d < past->rank; d++) {
        if (!uir_dim_is_const(m->dims, past->dims[d], &extent) || __builtin_mul_overflow(inner, extent, &inner))
            return false;
    }
    *out_inner = inner;
    return true;
}

static uir_status find_pair(pass *p, uir_value_id present) {
    uir_module *m = p->m;
    const uir_graph_info *main = uir_graph_get(m, m->main);
    pair found = {.present = present, .maker = uir_value_info_get(m, present)->producer};
    const uir_node_info *group = found.maker.id ? uir_node_get(m, found.maker) : NULL;
    if (!group || group->op != UIR_OP_GROUP) return UIR_STATUS_OK;
    const uir_graph_info *body = body_of(m, group);
    found.out = uir_value_info_get(m, present)->output_index;
    uir_node_id last = uir_value_info_get(m, body->outputs.data[found.out])->producer;
    const uir_node_info *concat = last.id ? uir_node_get(m, last) : NULL;
    if (!concat || concat->op != UIR_OP_CONCAT || concat->input_count < 2) return UIR_STATUS_OK;
    found.in = find_value(body->inputs.data, body->inputs.count, concat->inputs[0]);
    if (found.in == UINT32_MAX) return UIR_STATUS_OK;
    found.past = group->inputs[found.in];
    found.axis = (uint32_t)uir_node_int(m, concat, "axis", 0);
    if (find_value(main->inputs.data, main->inputs.count, found.past) == UINT32_MAX) return UIR_STATUS_OK;
    if (!is_grown(m, uir_value_type(m, found.past), found.axis, &found.inner)) return UIR_STATUS_OK;
    return uir_vector_push(&p->arena, &p->pairs, found);
}

/* ---- finding what touches them ---- */
static uir_status note_use(pass *p, uir_node_id id, uir_value_id value, uir_ipointer_role role, uint32_t index) {
    const uir_node_info *node = uir_node_get(p->m, id);
    uir_value_id root = root_of(p->m, value);
    for (uint32_t i = 0; i < p->pairs.count && root.id; i++) {
        pair *c = &p->pairs.data[i];
        if (root.id != c->past.id && root.id != c->present.id) continue;
        need n = {i, UINT32_MAX, id, role, index, root.id == c->present.id};
        if (node->op == UIR_OP_RESHAPE) continue; /* what uses its result is asked */
        if (node->graph.id == p->m->main.id) n.kernel = node->kernel - 1;
        if (n.kernel == UINT32_MAX)
            c->refused = true;
        else
            UIR_TRY(uir_vector_push(&p->arena, &p->needs, n));
    }
    return UIR_STATUS_OK;
}

static uir_status walk_graph(pass *p, uir_graph_id id) {
    uint32_t count = uir_graph_get(p->m, id)->nodes.count;
    for (uint32_t n = 0; n < count; n++) {
        uir_node_id node_id = uir_graph_get(p->m, id)->nodes.data[n];
        const uir_node_info *node = uir_node_get(p->m, node_id);
        for (uint32_t i = 0; i < node->input_count; i++)
            UIR_TRY(note_use(p, node_id, node->inputs[i], UIR_IPOINTER_IN, i));
        for (uint32_t i = 0; i < node->output_count && node->op == UIR_OP_GROUP; i++)
            UIR_TRY(note_use(p, node_id, node->outputs[i], UIR_IPOINTER_OUT, i));
        for (uint32_t i = 0; i < node->attribute_count && node->op != UIR_OP_GROUP; i++)
            if (node->attributes[i].kind == UIR_ATTRIBUTE_GRAPH)
                UIR_TRY(walk_graph(p, node->attributes[i].value.graph));
    }
    /* What a body gives is copied by whoever runs it. */
    const uir_graph_info *graph = uir_graph_get(p->m, id);
    for (uint32_t k = 0; k < graph->outputs.count && id.id != p->m->main.id; k++) {
        uir_value_id root = root_of(p->m, graph->outputs.data[k]);
        for (uint32_t i = 0; i < p->pairs.count; i++) {
            pair *c = &p->pairs.data[i];
            if (root.id == c->past.id || root.id == c->present.id) c->refused = true;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- one kernel ---- */
static bool add_term(const pass *p, const uir_node_info *group, uir_igraph *g, uir_dim term, uir_dim *sum,
                     uint32_t *out_symbol) {
    uint32_t count, ordinal = 0;
    const uir_dim *sizes = uir_node_dims(p->m, group, "sizes", &count);
    int64_t value;
    if (uir_dim_is_const(p->m->dims, term, &value)) {
        *sum = uir_dim_add(g->dims, *sum, uir_dim_const(g->dims, value));
        return sum->id != 0;
    }
    while (ordinal < count && !uir_dim_equal(sizes[ordinal], term)) ordinal++;
    for (uint32_t s = 0; s < g->symbols.count && ordinal < count; s++) {
        if (g->symbols.data[s].kind != UIR_ISYMBOL_DIM || ordinal-- > 0) continue;
        *sum = uir_dim_add(g->dims, *sum, uir_igraph_symbol_dim(g, s));
        *out_symbol = s;
        return sum->id != 0;
    }
    return false;
}

/* The axis' extent over the kernel's dims. */
static bool express_time(const pass *p, const need *n, uir_igraph *g, uir_islack *slack) {
    const pair *c = &p->pairs.data[n->pair];
    const uir_node_info *group = uir_node_get(p->m, n->node);
    uir_dim time = uir_value_type(p->m, n->present ? c->present : c->past)->dims[c->axis];
    *slack = (uir_islack){n->role, n->index, uir_dim_const(g->dims, 0), UINT32_MAX, c->inner};
    if (add_term(p, group, g, time, &slack->time, &slack->growing)) return slack->growing != UINT32_MAX;
    uir_dim_node node = *uir_dim_get(p->m->dims, time);
    if (node.kind != UIR_DIM_ADD) return false;
    for (uint32_t i = 0; i < node.count; i++) {
        if (!add_term(p, group, g, node.operands[i], &slack->time, &slack->growing)) return false;
    }
    return slack->growing != UINT32_MAX;
}

static int compare_slots(const slot *a, const slot *b) {
    if (a->role != b->role) return a->role < b->role ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* What slots kernel `k` has, operands first. */
static uir_status list_slots(pass *p, uint32_t k, slot **out_slots, uint32_t *out_count) {
    slot *slots;
    uint32_t count = 0;
    UIR_TRY_ALLOCATE(slots, uir_arena_allocate_array(&p->arena, (size_t)p->needs.count + 1, sizeof *slots));
    for (uint32_t i = 0; i < p->needs.count; i++) {
        const need *n = &p->needs.data[i];
        if (n->kernel != k || p->pairs.data[n->pair].refused) continue;
        slot s = {n->role, n->index, i};
        uint32_t at = 0;
        while (at < count && compare_slots(&slots[at], &s) < 0) at++;
        if (at < count && compare_slots(&slots[at], &s) == 0) continue;
        memmove(slots + at + 1, slots + at, (count - at) * sizeof *slots);
        slots[at] = s;
        count++;
    }
    *out_slots = slots;
    *out_count = count;
    return UIR_STATUS_OK;
}

/* All needs of a slot say the same of the axis. */
static bool agree(const pass *p, const slot *s, uint32_t kernel, uir_igraph *g, const uir_islack *slack) {
    for (uint32_t i = s->first_need + 1; i < p->needs.count; i++) {
        const need *n = &p->needs.data[i];
        uir_islack other;
        if (n->kernel != kernel || n->role != s->role || n->index != s->index || p->pairs.data[n->pair].refused)
            continue;
        if (!express_time(p, n, g, &other) || !uir_dim_equal(other.time, slack->time) || other.inner != slack->inner)
            return false;
    }
    return true;
}

/* A copy whose symbols are in the order in which a reader declares them, verified. */
static uir_status copy_igraph(pass *p, const uir_igraph *from, uir_igraph **out) {
    uir_diagnostics said;
    uir_diagnostics_init(&said, &p->lowering->allocator);
    uir_status status = uir_igraph_clone(from, &p->lowering->allocator, out);
    if (status == UIR_STATUS_OK) {
        status = uir_igraph_verify(*out, &said);
        if (status != UIR_STATUS_OK) uir_igraph_destroy(*out);
    }
    uir_diagnostics_deinit(&said);
    return status;
}

/* `*out` is NULL when the kernel cannot. */
static uir_status change_igraph(pass *p, uint32_t k, const uir_igraph *from, const slot *slots, uint32_t count,
                                uir_igraph **out) {
    uir_igraph *g, *read = NULL;
    uir_status status = copy_igraph(p, from, &g);
    *out = NULL;
    UIR_TRY(status);
    bool fine = true;
    uir_islack *slacks = uir_arena_allocate_array(&p->arena, count, sizeof *slacks);
    if (!slacks) status = UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count && fine && status == UIR_STATUS_OK; i++)
        fine = express_time(p, &p->needs.data[slots[i].first_need], g, &slacks[i]) &&
               agree(p, &slots[i], k, g, &slacks[i]);
    for (uint32_t i = 0; i < count && fine && status == UIR_STATUS_OK; i++)
        fine = uir_igraph_add_slack(g, &slacks[i], &status);
    for (uint32_t i = 0; i < p->pairs.count && fine && status == UIR_STATUS_OK; i++) {
        const pair *c = &p->pairs.data[i];
        if (uir_node_get(p->m, c->maker)->kernel == k + 1) status = uir_igraph_split_copies(g, c->in, c->out);
    }
    if (fine && status == UIR_STATUS_OK) {
        status = copy_igraph(p, g, &read);
        if (status == UIR_STATUS_OK) *out = read;
        if (status == UIR_STATUS_BAD_FILE || status == UIR_STATUS_LIMIT)
            status = UIR_STATUS_OK; /* the verifier refuses it: it stays as it was */
    }
    uir_igraph_destroy(g);
    return status;
}

static uir_status change_kernel(pass *p, uint32_t k, bool *out_fine) {
    const uir_igraph_list *from = &p->lowering->kernels.data[k].lowered.igraphs;
    slot *slots;
    uint32_t count;
    *out_fine = true;
    uir_igraph_list_deinit(&p->lists[k]);
    UIR_TRY(list_slots(p, k, &slots, &count));
    for (uint32_t v = 0; v < from->count && count; v++) {
        uir_igraph *g;
        UIR_TRY(change_igraph(p, k, from->igraphs[v], slots, count, &g));
        if (!g) {
            *out_fine = false;
            return UIR_STATUS_OK;
        }
        UIR_TRY(uir_igraph_list_add(&p->lists[k], g));
    }
    return UIR_STATUS_OK;
}

/* A kernel that cannot takes its pairs from all others. */
static uir_status change_kernels(pass *p) {
    for (uint32_t k = 0; k < p->lowering->kernels.count;) {
        bool fine, lost = false;
        UIR_TRY(change_kernel(p, k, &fine));
        for (uint32_t i = 0; i < p->needs.count && !fine; i++) {
            pair *c = &p->pairs.data[p->needs.data[i].pair];
            if (p->needs.data[i].kernel != k || c->refused) continue;
            c->refused = lost = true;
        }
        k = lost ? 0 : k + 1;
    }
    return UIR_STATUS_OK;
}

/* ---- what the groups say ---- */
static uir_status mark_group(pass *p, uir_node_id id, const slot *slots, uint32_t count) {
    uint32_t inputs = uir_node_get(p->m, id)->input_count;
    int64_t *numbers;
    UIR_TRY_ALLOCATE(numbers, uir_arena_allocate_array(&p->arena, (size_t)count * 2, sizeof *numbers));
    for (uint32_t s = 0; s < count; s++) {
        numbers[2 * s] = -1;
        for (uint32_t i = 0; i < p->needs.count; i++) {
            const need *n = &p->needs.data[i];
            if (n->node.id != id.id || n->role != slots[s].role || n->index != slots[s].index ||
                p->pairs.data[n->pair].refused)
                continue;
            numbers[2 * s] = n->role == UIR_IPOINTER_IN ? n->index : inputs + n->index;
            numbers[2 * s + 1] = p->pairs.data[n->pair].axis;
        }
    }
    uir_attribute attribute = {.kind = UIR_ATTRIBUTE_INTS, .count = 2 * count, .value.integers = numbers};
    return uir_node_set_attribute(p->m, id, "slack", &attribute);
}

static uir_status take_over(pass *p) {
    for (uint32_t k = 0; k < p->lowering->kernels.count; k++) {
        slot *slots;
        uint32_t count;
        if (!p->lists[k].count) continue;
        UIR_TRY(list_slots(p, k, &slots, &count));
        for (uint32_t n = 1; n < p->m->nodes.count; n++) {
            if (uir_node_get(p->m, (uir_node_id){n})->kernel == k + 1)
                UIR_TRY(mark_group(p, (uir_node_id){n}, slots, count));
        }
        uir_igraph_list *old = &p->lowering->kernels.data[k].lowered.igraphs, swap = *old;
        *old = p->lists[k];
        p->lists[k] = swap;
    }
    return UIR_STATUS_OK;
}

static uir_status run(pass *p) {
    uint32_t outputs = uir_graph_get(p->m, p->m->main)->outputs.count;
    UIR_TRY_ALLOCATE(p->lists,
                     uir_arena_allocate_array(&p->arena, (size_t)p->lowering->kernels.count + 1, sizeof *p->lists));
    for (uint32_t k = 0; k < p->lowering->kernels.count; k++) p->lists[k].allocator = p->lowering->allocator;
    for (uint32_t i = 0; i < outputs; i++) UIR_TRY(find_pair(p, uir_graph_get(p->m, p->m->main)->outputs.data[i]));
    if (!p->pairs.count) return UIR_STATUS_OK;
    UIR_TRY(walk_graph(p, p->m->main));
    UIR_TRY(change_kernels(p));
    return take_over(p);
}

uir_status uir_lowering_add_slack(uir_lowering *lowering, uir_diagnostics *diagnostics) {
    pass p = {.lowering = lowering, .m = lowering->module};
    uir_arena_init(&p.arena, &lowering->allocator);
    uir_status status = run(&p);
    for (uint32_t k = 0; p.lists && k < lowering->kernels.count; k++) uir_igraph_list_deinit(&p.lists[k]);
    uir_arena_deinit(&p.arena);
    if (status == UIR_STATUS_OK) return status;
    return uir_error(diagnostics, status, NULL, "caches that grow in place: %s", uir_status_text(status));
}
