/* Reading a graph: classes, makers, users, and the order that run-time dims impose. */
#include "fusion/clusters.h"

#include "ir/graph/axes.h"

#include <string.h>

static const struct {
    uir_op op;
    uir_fusion_class class;
} classes[] = {
#define UIR_FUSION_CLASS(primitive, class) {UIR_OP_##primitive, UIR_FUSION_CLASS_##class},
#include "fusion/fusion.def"
};

static const uir_op heavy[] = {
#define UIR_FUSION_HEAVY(primitive) UIR_OP_##primitive,
#include "fusion/fusion.def"
};

static bool is_heavy(uir_op op) {
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++)
        if (heavy[i] == op) return true;
    return false;
}

/* Kernels compute tensors of numbers and bools of known rank. */
static bool is_for_kernels(const uir_module *module, uir_value_id value) {
    if (!value.id) return false;
    const uir_type *type = uir_value_type(module, value);
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return false;
    return UIR_DTYPES_REAL >> uir_dtype_get_class(type->dtype) & 1;
}

/* A reshape between values that lie alike is another name for one; any other moves elements as a view does. */
static bool is_laid_out(const uir_clusters *c, const uir_node_info *node) {
    return uir_value_info_get(c->module, node->inputs[0])->layout ||
           uir_value_info_get(c->module, node->outputs[0])->layout;
}

static uir_fusion_class class_of(const uir_clusters *c, const uir_node_info *node) {
    const uir_op_row *row = uir_op_get_row(node->op);
    uir_fusion_class class = row->traits & UIR_TRAIT_ELEMENTWISE ? UIR_FUSION_CLASS_ELEMENTWISE : UIR_FUSION_CLASS_PLAN;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].op == node->op) class = classes[i].class;
    if (class == UIR_FUSION_CLASS_RESHAPE && is_laid_out(c, node)) class = UIR_FUSION_CLASS_VIEW;
    if (node->op == UIR_OP_CAST && uir_axes_shares_bytes(c->module, node)) class = UIR_FUSION_CLASS_OPAQUE;
    if (node->op == UIR_OP_WINDOWS && uir_axes_windows_repeat(c->module, node)) class = UIR_FUSION_CLASS_OPAQUE;
    if (class == UIR_FUSION_CLASS_PAD && uir_axes_pads_apart(c->module, node)) class = UIR_FUSION_CLASS_OPAQUE;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_for_kernels(c->module, node->inputs[i])) return UIR_FUSION_CLASS_PLAN;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!is_for_kernels(c->module, node->outputs[i])) return UIR_FUSION_CLASS_PLAN;
    return class;
}

uint32_t uir_node_set_find(const uir_node_set *places, uint32_t place) {
    uint32_t low = 0, high = places->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (places->data[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool uir_node_set_has(const uir_node_set *places, uint32_t place) {
    uint32_t at = uir_node_set_find(places, place);
    return at < places->count && places->data[at] == place;
}

bool uir_fusion_is_scalar_constant(const uir_module *module, uir_value_id value) {
    const uir_value_info *info = uir_value_info_get(module, value);
    return info->constant && info->type.rank == 0;
}

/* ---- who uses what ---- */
typedef struct reading {
    uir_clusters *c;
    uint32_t place;
    uint32_t *binder; /* by symbol: the first place that binds it here, or NONE */
    uint32_t symbol_count;
    uint32_t last_effect;
    uir_status status;
} reading;

/* Places are read in order, so a user's list of uses is made while it is the last user of each. */
static uir_status add_use(reading *r, uint32_t place) {
    if (place == UIR_FUSION_NONE || place == r->place) return UIR_STATUS_OK;
    uir_node_set *users = &r->c->items[place].users, *uses = &r->c->items[r->place].uses;
    if (users->count && users->data[users->count - 1] == r->place) return UIR_STATUS_OK;
    UIR_TRY(uir_vector_push(r->c->arena, users, r->place));
    UIR_TRY(uir_vector_push(r->c->arena, uses, place));
    for (uint32_t i = uses->count - 1; i && uses->data[i - 1] > place; i--) {
        uses->data[i] = uses->data[i - 1];
        uses->data[i - 1] = place;
    }
    return UIR_STATUS_OK;
}

static void read_symbol(void *user, uir_symbol symbol) {
    reading *r = user;
    if (symbol.id >= r->symbol_count || r->status != UIR_STATUS_OK) return;
    r->status = add_use(r, r->binder[symbol.id]);
}

static uir_status read_dims(reading *r, const uir_dim *dims, uint32_t count) {
    if (r->c->options->clauses_off >> UIR_FUSION_CLAUSE_EFFECT & 1) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < count && r->status == UIR_STATUS_OK; i++)
        if (dims[i].id) uir_dim_visit_symbols(r->c->module->dims, dims[i], read_symbol, r);
    return r->status;
}

static uir_status read_value(reading *r, uir_value_id value) {
    if (!value.id) return UIR_STATUS_OK;
    const uir_type *type = uir_value_type(r->c->module, value);
    UIR_TRY(add_use(r, uir_clusters_maker(r->c, value)));
    return type->rank_known ? read_dims(r, type->dims, type->rank) : UIR_STATUS_OK;
}

static uir_status read_node(reading *r, const uir_node_info *node);

static uir_status read_body(reading *r, uir_graph_id graph) {
    const uir_graph_info *info = uir_graph_get(r->c->module, graph);
    for (uint32_t i = 0; i < info->inputs.count; i++) UIR_TRY(read_value(r, info->inputs.data[i]));
    for (uint32_t n = 0; n < info->nodes.count; n++)
        UIR_TRY(read_node(r, uir_node_get(r->c->module, info->nodes.data[n])));
    for (uint32_t i = 0; i < info->outputs.count; i++) UIR_TRY(read_value(r, info->outputs.data[i]));
    return UIR_STATUS_OK;
}

static uir_status read_node(reading *r, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++) UIR_TRY(read_value(r, node->inputs[i]));
    for (uint32_t i = 0; i < node->output_count; i++) UIR_TRY(read_value(r, node->outputs[i]));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *a = &node->attributes[i];
        if (a->kind == UIR_ATTRIBUTE_DIMS) UIR_TRY(read_dims(r, a->value.dims, a->count));
        if (a->kind == UIR_ATTRIBUTE_GRAPH) UIR_TRY(read_body(r, a->value.graph));
    }
    return UIR_STATUS_OK;
}

/* A plain symbol among the dims that a node with effects gives or names is bound by it, unless it was before. */
static void note_bound(reading *r, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uir_symbol symbol;
        if (dims[i].id && uir_dim_is_symbol(r->c->module->dims, dims[i], &symbol) && symbol.id < r->symbol_count &&
            r->binder[symbol.id] == UIR_FUSION_NONE)
            r->binder[symbol.id] = r->place;
    }
}

/* Effects happen in their order; a symbol that came in with an operand counts as bound by the first that names it,
 * which orders more than it must and never less. */
static uir_status read_effect(reading *r, const uir_node_info *node) {
    if (!(uir_op_get_row(node->op)->traits & UIR_TRAIT_EFFECT)) return UIR_STATUS_OK;
    UIR_TRY(add_use(r, r->last_effect));
    r->last_effect = r->place;
    uint32_t count;
    const uir_dim *dims = uir_node_dims(r->c->module, node, "dims", &count);
    note_bound(r, dims, count);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = node->outputs[i].id ? uir_value_type(r->c->module, node->outputs[i]) : NULL;
        if (type && type->rank_known) note_bound(r, type->dims, type->rank);
    }
    return UIR_STATUS_OK;
}

static uir_status read_places(uir_clusters *c) {
    reading r = {.c = c, .symbol_count = uir_dims_symbol_count(c->module->dims), .last_effect = UIR_FUSION_NONE};
    UIR_TRY_ALLOCATE(r.binder, uir_arena_allocate_array(c->arena, r.symbol_count + 1u, sizeof *r.binder));
    memset(r.binder, 0xff, r.symbol_count * sizeof *r.binder);
    for (r.place = 0; r.place < c->count; r.place++) {
        const uir_node_info *node = uir_clusters_node(c, r.place);
        UIR_TRY(read_node(&r, node));
        UIR_TRY(read_effect(&r, node));
    }
    return UIR_STATUS_OK;
}

/* What nothing reads is not computed. */
static void drop_dead(uir_clusters *c) {
    for (uint32_t p = c->count; p-- > 0;) {
        uir_fusion_item *item = &c->items[p];
        const uir_node_info *node = uir_clusters_node(c, p);
        bool read = item->class == UIR_FUSION_CLASS_PLAN;
        for (uint32_t i = 0; i < node->output_count; i++) read |= c->is_result[node->outputs[i].id];
        for (uint32_t i = 0; i < item->users.count; i++) read |= c->items[item->users.data[i]].where.count != 0;
        if (read) continue;
        item->home = UIR_FUSION_NONE;
        item->where.count = c->clusters.data[p].places.count = 0;
    }
}

bool uir_clusters_widens_factor(const uir_clusters *c, uint32_t place) {
    const uir_node_info *node = uir_clusters_node(c, place);
    if (node->op != UIR_OP_CAST) return false;
    uir_dtype from = uir_value_type(c->module, node->inputs[0])->dtype,
              to = uir_value_type(c->module, node->outputs[0])->dtype;
    return c->options->machine && from != to && uir_machine_multiplies_pair(c->options->machine, to, from, from);
}

bool uir_clusters_widens_stored(const uir_clusters *c, uint32_t place) {
    const uir_node_info *node = uir_clusters_node(c, place);
    return (node->op == UIR_OP_CAST && uir_value_info_get(c->module, node->inputs[0])->constant) ||
           uir_clusters_widens_factor(c, place);
}

/* Half of what a kernel has on chip beside its registers, without costing more. */
static uint64_t row_capacity_of(const uir_machine *machine) {
    uint64_t most = 0;
    for (uint32_t i = 0; machine && i < machine->space_count; i++) {
        uint64_t bytes = uir_machine_working_set(machine, (int)i);
        if (!(machine->spaces[i].roles & UIR_SPACE_REGISTERS) && bytes > most) most = bytes;
    }
    return most / 2;
}

uir_status uir_clusters_init(uir_clusters *c, uir_module *module, uir_graph_id graph, const uir_fusion_options *options,
                             uir_arena *arena) {
    const uir_graph_info *info = uir_graph_get(module, graph);
    *c = (uir_clusters){.module = module, .graph = graph, .options = options, .arena = arena};
    c->rewrites = (uir_fusion_standard_rewrites() | options->rewrites_on) & ~options->rewrites_off;
    c->row_capacity = row_capacity_of(options->machine);
    c->count = info->nodes.count;
    c->value_count = module->values.count;
    UIR_TRY_ALLOCATE(c->items, uir_arena_allocate_array(arena, c->count + 1u, sizeof *c->items));
    UIR_TRY_ALLOCATE(c->maker, uir_arena_allocate_array(arena, c->value_count + 1u, sizeof *c->maker));
    UIR_TRY_ALLOCATE(c->is_result, uir_arena_allocate_array(arena, c->value_count + 1u, sizeof *c->is_result));
    memset(c->maker, 0xff, c->value_count * sizeof *c->maker);
    for (uint32_t i = 0; i < info->outputs.count; i++) c->is_result[info->outputs.data[i].id] = true;
    for (uint32_t p = 0; p < c->count; p++) {
        const uir_node_info *node = uir_node_get(module, info->nodes.data[p]);
        c->items[p].node = info->nodes.data[p];
        c->items[p].class = class_of(c, node);
        c->items[p].is_heavy = is_heavy(node->op);
        c->items[p].home = p;
        UIR_TRY(uir_vector_push(arena, &c->items[p].where, p));
        for (uint32_t i = 0; i < node->output_count; i++)
            if (node->outputs[i].id) c->maker[node->outputs[i].id] = p;
        uir_cluster cluster = {.is_plain = c->items[p].class == UIR_FUSION_CLASS_PLAN};
        UIR_TRY(uir_vector_push(arena, &cluster.places, p));
        UIR_TRY(uir_vector_push(arena, &c->clusters, cluster));
    }
    UIR_TRY(uir_clusters_init_cost(c));
    UIR_TRY(read_places(c));
    drop_dead(c);
    return uir_clusters_init_order(c);
}
