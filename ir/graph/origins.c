/* Origins: see origins.h. */
#include "ir/graph/origins.h"

#include <math.h>
#include <string.h>

uir_status uir_origins_add(uir_module *module, const char *name, const char *op, uir_fate fate, uint32_t *out_origin) {
    uir_origin origin = {.fate = fate};
    if (!module->origins.count) UIR_TRY(uir_vector_push(&module->arena, &module->origins, (uir_origin){0}));
    UIR_TRY(uir_strings_intern(&module->strings, name, strlen(name), &origin.name));
    UIR_TRY(uir_strings_intern(&module->strings, op, strlen(op), &origin.op));
    *out_origin = module->origins.count;
    return uir_vector_push(&module->arena, &module->origins, origin);
}

static uint32_t source_of(const uir_module *module, uir_value_id value) {
    uir_node_id producer = value.id ? uir_value_info_get(module, value)->producer : (uir_node_id){0};
    return producer.id ? uir_node_get(module, producer)->source : 0;
}

static uir_status add_read(uir_module *target, uint32_t by, uint32_t of) {
    if (!of) return UIR_STATUS_OK;
    return uir_vector_push(&target->arena, &target->origin_reads, ((uir_origin_read){by, of}));
}

/* What the node reads, and what its bodies give it. */
static uir_status add_reads(const uir_module *source, uir_module *target, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        UIR_TRY(add_read(target, node->source, source_of(source, node->inputs[i])));
    for (uint32_t a = 0; a < node->attribute_count; a++) {
        if (node->attributes[a].kind != UIR_ATTRIBUTE_GRAPH) continue;
        const uir_graph_info *body = uir_graph_get(source, node->attributes[a].value.graph);
        for (uint32_t i = 0; i < body->outputs.count; i++)
            UIR_TRY(add_read(target, node->source, source_of(source, body->outputs.data[i])));
    }
    return UIR_STATUS_OK;
}

uir_status uir_origins_begin(uir_module *source, uir_module *target) {
    const uir_graph_info *main = uir_graph_get(source, source->main);
    uint32_t made;
    for (uint32_t i = 1; i < source->origins.count; i++) {
        const uir_origin *o = &source->origins.data[i];
        UIR_TRY(uir_origins_add(target, uir_string_text(&source->strings, o->name),
                                uir_string_text(&source->strings, o->op), o->fate, &made));
    }
    /* Nodes of bodies come before the node that has them, and makers before readers. */
    for (uint32_t n = 1; n < source->nodes.count; n++) {
        uir_node_info *node = &source->nodes.data[n];
        UIR_TRY(uir_origins_add(target, uir_string_text(&source->strings, node->name), uir_op_name(node->op),
                                UIR_FATE_STANDS, &node->source));
        UIR_TRY(add_reads(source, target, node));
    }
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        uint32_t origin = source_of(source, main->outputs.data[i]);
        if (origin) target->origins.data[origin].is_output = true;
    }
    return UIR_STATUS_OK;
}

void uir_origins_note(uir_module *module, uint32_t origin, uir_fate fate, uint32_t into) {
    if (!origin || origin >= module->origins.count) return;
    module->origins.data[origin].fate = fate;
    module->origins.data[origin].into = into;
}

void uir_origins_meet(uir_module *module, uint32_t origin) {
    if (origin && origin < module->origins.count) module->origins.data[origin].is_met = true;
}

void uir_origins_note_result(uir_module *module, uint32_t origin, uir_value_id result) {
    const uir_value_info *info = uir_value_info_get(module, result);
    uint32_t maker = source_of(module, result);
    if (info->constant || info->elements_known)
        uir_origins_note(module, origin, UIR_FATE_FOLDED, 0);
    else if (maker != origin)
        uir_origins_note(module, origin, UIR_FATE_ALIAS, maker);
    else
        uir_origins_note(module, origin, UIR_FATE_STANDS, 0);
}

void uir_origins_note_replaced(uir_module *module, uir_value_id from, uir_value_id to) {
    uint32_t origin = source_of(module, from), into = source_of(module, to);
    if (!origin || origin == into) return;
    const uir_node_info *maker = uir_node_get(module, uir_value_info_get(module, from)->producer);
    bool moves = (uir_op_get_row(maker->op)->traits & UIR_TRAIT_MOVEMENT) != 0;
    if (uir_value_info_get(module, to)->constant)
        uir_origins_note(module, origin, UIR_FATE_FOLDED, 0);
    else
        uir_origins_note(module, origin, moves || !into ? UIR_FATE_ALIAS : UIR_FATE_MERGED, into);
}

bool uir_origins_count(const uir_module *module, const uir_node_info *node) {
    if (!node->source) return false;
    if (!(uir_op_get_row(node->op)->traits & UIR_TRAIT_MOVEMENT)) return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i].id && !uir_value_info_get(module, node->inputs[i])->constant) return true;
    return !node->input_count;
}

/* ---- in the end ---- */
typedef struct settling {
    const uir_module *module;
    const bool *stands;
    uint32_t *reader; /* one that stands and does what the origin did, as readers' readers go; 0: none */
    bool *is_needed;
} settling;

/* Readers have higher numbers than what they read. */
static void find_readers(settling *s) {
    const uir_module *m = s->module;
    for (uint32_t i = m->origins.count; i-- > 1;)
        s->is_needed[i] = s->stands[i] || (m->origins.data[i].is_output && m->origins.data[i].is_met);
    for (uint32_t r = m->origin_reads.count; r-- > 0;) {
        uir_origin_read read = m->origin_reads.data[r];
        if (!s->is_needed[read.by] || !m->origins.data[read.of].is_met) continue;
        s->is_needed[read.of] = true;
        uint32_t reader = s->stands[read.by] ? read.by : s->reader[read.by];
        if (reader) s->reader[read.of] = reader;
    }
}

/* The origin that stands at the end of what was noted of it and of those that took it over. */
static uint32_t follow(const settling *s, uint32_t origin) {
    uint32_t at = s->module->origins.data[origin].into;
    for (uint32_t steps = 0; at && !s->stands[at] && steps < s->module->origins.count; steps++)
        at = s->module->origins.data[at].into;
    return at && s->stands[at] ? at : s->reader[origin];
}

static uir_settled_origin settle_one(const settling *s, uint32_t i) {
    const uir_origin *o = &s->module->origins.data[i];
    if (s->stands[i]) return (uir_settled_origin){UIR_FATE_STANDS, 0};
    if (o->fate == UIR_FATE_INLINED) return (uir_settled_origin){UIR_FATE_INLINED, 0};
    if (!o->is_met || !s->is_needed[i]) return (uir_settled_origin){UIR_FATE_DEAD, 0};
    if (o->fate != UIR_FATE_STANDS) return (uir_settled_origin){o->fate, follow(s, i)};
    return (uir_settled_origin){s->reader[i] ? UIR_FATE_MERGED : UIR_FATE_FOLDED, s->reader[i]};
}

/* Reshapes that no group holds move nothing: what they give is an alias. */
static void note_aliases(const uir_module *module, const bool *stands, uir_settled_origin *settled) {
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = &module->graphs.data[g];
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            if (node->op != UIR_OP_RESHAPE || !node->source || stands[node->source]) continue;
            settled[node->source].fate = UIR_FATE_ALIAS;
        }
    }
}

uir_status uir_origins_settle(const uir_module *module, const bool *stands, uir_arena *arena,
                              uir_settled_origin **out_settled) {
    settling s = {.module = module, .stands = stands};
    size_t count = (size_t)module->origins.count + 1;
    uir_settled_origin *settled;
    UIR_TRY_ALLOCATE(s.reader, uir_arena_allocate_array(arena, count, sizeof *s.reader));
    UIR_TRY_ALLOCATE(s.is_needed, uir_arena_allocate_array(arena, count, sizeof *s.is_needed));
    UIR_TRY_ALLOCATE(settled, uir_arena_allocate_array(arena, count, sizeof *settled));
    find_readers(&s);
    for (uint32_t i = 1; i < module->origins.count; i++) settled[i] = settle_one(&s, i);
    note_aliases(module, stands, settled);
    *out_settled = settled;
    return UIR_STATUS_OK;
}

/* ---- cost ---- */
enum { NOMINAL_SIZE = 64 };

uir_status uir_nominal_sizes(const uir_dims *dims, uir_arena *arena, int64_t **out_sizes, uint32_t *out_count) {
    uint32_t count = uir_dims_symbol_count(dims);
    int64_t *sizes;
    UIR_TRY_ALLOCATE(sizes, uir_arena_allocate_array(arena, count + 1u, sizeof *sizes));
    for (uint32_t s = 0; s < count; s++) {
        uir_symbol_facts facts = uir_dims_symbol_facts(dims, (uir_symbol){s});
        int64_t value = NOMINAL_SIZE / facts.multiple_of * facts.multiple_of;
        if (value < facts.min) value = facts.min;
        if (value > facts.max) value = facts.max;
        sizes[s] = value;
    }
    *out_sizes = sizes;
    *out_count = count;
    return UIR_STATUS_OK;
}

static double extent_of(const uir_dims *dims, const int64_t *sizes, uint32_t count, uir_dim dim) {
    int64_t extent;
    if (uir_dim_evaluate(dims, dim, sizes, NULL, count, &extent) != UIR_DIM_EVALUATED) extent = NOMINAL_SIZE;
    return fmax((double)extent, 1);
}

double uir_nominal_elements(const uir_dims *dims, const int64_t *sizes, uint32_t count, const uir_type *type) {
    double elements = 1;
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        elements *= extent_of(dims, sizes, count, type->dims[d]);
    return elements;
}

double uir_nominal_work(const uir_module *module, const int64_t *sizes, uint32_t count, const uir_node_info *node) {
    uint32_t traits = uir_op_get_row(node->op)->traits;
    double given = 0, taken = 0;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i].id)
            given =
                fmax(given, uir_nominal_elements(module->dims, sizes, count, uir_value_type(module, node->outputs[i])));
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i].id)
            taken =
                fmax(taken, uir_nominal_elements(module->dims, sizes, count, uir_value_type(module, node->inputs[i])));
    if (traits & UIR_TRAIT_CONTRACTION) { /* what a result sums over: a row of the left factor, or one filter */
        const uir_type *factor = uir_value_type(module, node->inputs[node->op == UIR_OP_CONV]);
        uint32_t kept = node->op == UIR_OP_CONV ? 0 : factor->rank - 1;
        double extent = extent_of(module->dims, sizes, count, factor->dims[kept]);
        double all = uir_nominal_elements(module->dims, sizes, count, factor);
        return 2 * given * (node->op == UIR_OP_CONV ? all / extent : extent);
    }
    if (traits & UIR_TRAIT_REDUCTION) return fmax(given, taken);
    return traits & UIR_TRAIT_MOVEMENT ? given / 2 : given;
}
