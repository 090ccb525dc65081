/* Concatenations of many: what several of them begin with, or hold, is put together once, and none stays wide.
 *
 * In a block where each layer takes all outputs before it, n layers read n*n/2 operands one by one. Here operands are
 * numbered by where they first appear; those of one block of numbers that stand side by side in two concatenations or
 * more are a run, which becomes a concatenation of its own. Runs of runs are found in the same way, so that of n
 * operands about log n are left, and each element is copied once more for each level and no longer read piece by piece.
 * What is still wide is cut into parts: a kernel has code for every piece. */
#include "passes/tools.h"

#include <string.h>

enum {
    BLOCK = 8,     /* operands of a run, at most; concatenations of no more are left alone */
    LEAST_RUN = 4, /* shorter ones save less than their copy costs */
    WIDEST = 32,   /* operands that a concatenation keeps */
};

typedef struct run {
    uir_graph_id graph;
    const uir_value_id *operands; /* NULL: a free place of the table */
    uint32_t count, seen;
    int64_t axis;
    uir_value_id value; /* the concatenation of it, once it is made */
} run;

typedef struct sharing {
    uir_module *module;
    uir_arena *scratch;
    uint32_t *numbers; /* by value, from 1; 0: none */
    uint32_t value_count, number_count;
    uint32_t first, end; /* values that runs are made of */
    run *runs;
    uint32_t mask;
    bool found;
} sharing;

static uint32_t number_of(const sharing *s, uir_value_id value) {
    return value.id < s->value_count ? s->numbers[value.id] : 0;
}

/* How many operands from `at` on are of one block. */
static uint32_t measure_run(const sharing *s, const uir_value_id *operands, uint32_t count, uint32_t at) {
    uint32_t number = number_of(s, operands[at]), length = 1;
    while (number && at + length < count) {
        uint32_t next = number_of(s, operands[at + length]);
        if (!next || (next - 1) / BLOCK != (number - 1) / BLOCK || length == BLOCK) break;
        length++;
    }
    return length;
}

static run *find_run(const sharing *s, uir_graph_id graph, int64_t axis, const uir_value_id *operands, uint32_t count) {
    uint64_t hash = uir_hash(&axis, sizeof axis, uir_hash(&graph, sizeof graph, 1));
    uint32_t at = (uint32_t)uir_hash(operands, count * sizeof *operands, hash) & s->mask;
    for (; s->runs[at].operands; at = (at + 1) & s->mask) {
        const run *r = &s->runs[at];
        if (r->graph.id == graph.id && r->axis == axis && r->count == count &&
            !memcmp(r->operands, operands, count * sizeof *operands))
            break;
    }
    return &s->runs[at];
}

/* ---- looking ---- */
typedef void (*look)(sharing *s, const uir_node_info *node);

static void look_at_all(sharing *s, look at) {
    for (uint32_t g = 1; g < s->module->graphs.count; g++) {
        const uir_graph_info *graph = &s->module->graphs.data[g];
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(s->module, graph->nodes.data[n]);
            if (node->op == UIR_OP_CONCAT) at(s, node);
        }
    }
}

static void number_operands(sharing *s, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i].id;
        if (value >= s->first && value < s->end && !s->numbers[value]) s->numbers[value] = ++s->number_count;
    }
}

static void count_runs(sharing *s, const uir_node_info *node) {
    int64_t axis = uir_node_int(s->module, node, "axis", 0);
    for (uint32_t i = 0, length; i < node->input_count && node->input_count > BLOCK; i += length) {
        length = measure_run(s, node->inputs, node->input_count, i);
        if (length < LEAST_RUN) continue;
        run *r = find_run(s, node->graph, axis, node->inputs + i, length);
        *r = (run){node->graph, node->inputs + i, length, r->seen + 1, axis, {0}};
        s->found |= r->seen > 1;
    }
}

/* Most runs that there can be: the table is never more than half full. */
static uir_status make_table(sharing *s) {
    uint32_t most = 0, size = 16;
    for (uint32_t g = 1; g < s->module->graphs.count; g++) {
        const uir_graph_info *graph = &s->module->graphs.data[g];
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(s->module, graph->nodes.data[n]);
            if (node->op == UIR_OP_CONCAT) most += node->input_count / LEAST_RUN;
        }
    }
    while (size < 2 * most) size *= 2;
    s->mask = size - 1;
    s->value_count = s->module->values.count;
    UIR_TRY_ALLOCATE(s->runs, uir_arena_allocate_array(s->scratch, size, sizeof *s->runs));
    UIR_TRY_ALLOCATE(s->numbers, uir_arena_allocate_array(s->scratch, s->value_count + 1u, sizeof *s->numbers));
    return UIR_STATUS_OK;
}

/* ---- putting together ---- */
static uir_value_id share_runs(void *user, uir_builder *builder, const uir_node_info *node) {
    sharing *s = user;
    uint32_t count = 0;
    uir_value_id *operands, none = {0};
    if (node->op != UIR_OP_CONCAT) return none;
    int64_t axis = uir_node_int(s->module, node, "axis", 0);
    if (node->input_count <= BLOCK) { /* nothing but a run: what others make of it, or what they take */
        run *r = find_run(s, node->graph, axis, node->inputs, node->input_count);
        if (r->seen > 1 && !r->value.id) r->value = node->outputs[0];
        return r->value;
    }
    operands = uir_arena_allocate_array(s->scratch, node->input_count, sizeof *operands);
    if (!operands) builder->status = UIR_STATUS_OUT_OF_MEMORY;
    if (!operands) return none;
    for (uint32_t i = 0, length; i < node->input_count; i += length) {
        length = measure_run(s, node->inputs, node->input_count, i);
        run *r = length < LEAST_RUN ? NULL : find_run(s, node->graph, axis, node->inputs + i, length);
        if (r && r->operands && r->seen > 1) {
            if (!r->value.id) r->value = uir_build_concat(builder, r->operands, r->count, axis);
            operands[count++] = r->value;
        } else {
            for (uint32_t k = 0; k < length; k++) operands[count++] = node->inputs[i + k];
        }
    }
    return count < node->input_count ? uir_build_concat(builder, operands, count, axis) : none;
}

/* Parts of about equal width, then these, until few enough are left. */
static uir_value_id cut_wide(void *user, uir_builder *builder, const uir_node_info *node) {
    sharing *s = user;
    uint32_t count = node->input_count;
    uir_value_id *operands, none = {0};
    if (node->op != UIR_OP_CONCAT || count <= WIDEST) return none;
    int64_t axis = uir_node_int(s->module, node, "axis", 0);
    operands = uir_arena_copy(s->scratch, node->inputs, count * sizeof *operands);
    if (!operands) builder->status = UIR_STATUS_OUT_OF_MEMORY;
    while (operands && count > WIDEST) {
        uint32_t parts = (count + WIDEST - 1) / WIDEST;
        for (uint32_t p = 0; p < parts; p++) {
            uint32_t from = (uint32_t)((uint64_t)count * p / parts), to = (uint32_t)((uint64_t)count * (p + 1) / parts);
            operands[p] = uir_build_concat(builder, operands + from, to - from, axis);
        }
        count = parts;
    }
    return operands ? uir_build_concat(builder, operands, count, axis) : none;
}

uir_status uir_cleanup_share_concats(uir_module *module, uir_pass_context *context) {
    uint32_t first = 1, end = module->values.count;
    sharing s;
    do {
        s = (sharing){.module = module, .scratch = context->scratch, .first = first, .end = end};
        UIR_TRY(make_table(&s));
        look_at_all(&s, number_operands);
        look_at_all(&s, count_runs);
        first = module->values.count;
        if (s.found) UIR_TRY(uir_rewrite_nodes(module, context, &(uir_rewriter){.rewrite = share_runs, .user = &s}));
        end = module->values.count;
    } while (s.found);
    return uir_rewrite_nodes(module, context, &(uir_rewriter){.rewrite = cut_wide, .user = &s});
}
