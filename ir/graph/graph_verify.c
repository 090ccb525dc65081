/* The graph's verifier: reports everything that is wrong, and accepts nothing that the interpreter could trip over.
 *
 * It walks graphs in running order with two sets: the values that are visible and the symbols that have a value. */
#include "ir/graph/infer/infer.h"
#include <stdio.h>
#include <string.h>

enum { MAX_NESTING = 100 };

typedef struct verifier {
    const uir_module *module;
    uir_diagnostics *diagnostics;
    uir_arena arena;  /* reset after each node */
    bool *visible;    /* by value */
    bool *bound;      /* by symbol */
    bool *graph_used; /* by graph: it is the main one or a node's body already */
    uint32_t symbol_count;
    uint32_t problems;
    uir_symbol unbound; /* result of a visit */
    bool found_unbound;
    bool in_group;
} verifier;

static void problem(verifier *v, const uir_node_info *node, const char *format, ...) UIR_PRINTF(3, 4);
static void problem(verifier *v, const uir_node_info *node, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    v->problems++;
    if (!node) {
        uir_error(v->diagnostics, UIR_STATUS_BAD_FILE, NULL, "%s", message);
        return;
    }
    uir_location location = uir_node_location(v->module, node);
    uir_error(v->diagnostics, UIR_STATUS_BAD_FILE, &location, "%s: %s", uir_op_name(node->op), message);
}

static const char *value_text(const verifier *v, uir_value_id value, char *buffer, size_t capacity) {
    const char *name = uir_string_text(&v->module->strings, uir_value_info_get(v->module, value)->name);
    if (*name)
        snprintf(buffer, capacity, "'%s'", name);
    else
        snprintf(buffer, capacity, "number %u", value.id);
    return buffer;
}

/* ---- dims ---- */

static void visit_unbound(void *user, uir_symbol symbol) {
    verifier *v = user;
    if (symbol.id < v->symbol_count && v->bound[symbol.id]) return;
    v->found_unbound = true;
    v->unbound = symbol;
}

static bool has_values(verifier *v, uir_dim dim) {
    v->found_unbound = false;
    uir_dim_visit_symbols(v->module->dims, dim, visit_unbound, v);
    return !v->found_unbound;
}

/* Marks plain symbols of a type's dims as bound. */
static void bind_plain(verifier *v, const uir_type *type) {
    uir_symbol symbol;
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        if (uir_dim_is_symbol(v->module->dims, type->dims[d], &symbol) && symbol.id < v->symbol_count)
            v->bound[symbol.id] = true;
}

/* The dims of a tensor's type have a value; a list's dims are those of elements, which nobody evaluates. */
static void check_dims_bound(verifier *v, const uir_node_info *node, uir_value_id value, const char *what) {
    const uir_type *type = uir_value_type(v->module, value);
    char text[200];
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return;
    for (uint32_t d = 0; d < type->rank; d++)
        if (!has_values(v, type->dims[d]))
            problem(v, node, "dim %u of %s %s uses size %s, which has no value yet", d, what,
                    value_text(v, value, text, sizeof text), uir_dims_symbol_name(v->module->dims, v->unbound));
}

/* ---- values ---- */

static bool is_value(const verifier *v, uir_value_id value) {
    return value.id < v->module->values.count;
}

static bool check_type(verifier *v, const uir_node_info *node, uir_value_id value) {
    const uir_type *type = uir_value_type(v->module, value);
    char text[200];
    value_text(v, value, text, sizeof text);
    if (type->dtype != UIR_DTYPE_NONE && !uir_dtype_is_valid(type->dtype))
        return problem(v, node, "value %s has no valid element type", text), false;
    if (!type->rank_known) return true;
    if (type->rank > UIR_MAX_RANK)
        return problem(v, node, "value %s has rank %u, above the maximum", text, type->rank), false;
    for (uint32_t d = 0; d < type->rank; d++)
        if (!type->dims[d].id) return problem(v, node, "dim %u of value %s is missing", d, text), false;
    return true;
}

/* ---- layouts ---- */
static bool is_proved(void *user, uir_dim left, uir_relation relation, uir_dim right) {
    const verifier *v = user;
    return uir_dim_compare(v->module->dims, left, relation, right) == UIR_TRUE;
}

/* The value's layout is one, over sizes that are known where it is made. */
static void check_layout(verifier *v, const uir_node_info *node, uir_value_id value) {
    const uir_value_info *info = uir_value_info_get(v->module, value);
    const uir_layout *layout = info->layout;
    uint32_t rank = info->type.rank, dim;
    char text[200];
    value_text(v, value, text, sizeof text);
    if (info->type.kind != UIR_VALUE_TENSOR || !info->type.rank_known || rank > UIR_LAYOUT_MAX_RANK ||
        uir_dtype_bits(info->type.dtype) < 8) {
        problem(v, node, "value %s has a layout, but its elements have no addresses", text);
        return;
    }
    const char *fault = uir_layout_find_fault(layout, info->type.dims, rank, v->module->dims, is_proved, v, &dim);
    if (fault && dim < rank) problem(v, node, "layout of value %s, dim %u: %s", text, dim, fault);
    if (fault && dim == rank) problem(v, node, "layout of value %s: %s", text, fault);
    for (uint32_t d = 0; d < rank && !fault; d++)
        for (uint32_t m = 0; m < layout->mode_count[d]; m++)
            if (!has_values(v, layout->modes[d][m].size) || !has_values(v, layout->modes[d][m].stride))
                problem(v, node, "layout of value %s: dim %u uses size %s, which has no value yet", text, d,
                        uir_dims_symbol_name(v->module->dims, v->unbound));
}

/* Only primitives whose work kernels do know layouts: others read and write what is row-major, and so do callers. In a
 * group's body, where nothing lies in memory, a layout says in which order elements are computed. */
static bool knows_layouts(const uir_node_info *node) {
    const uir_op_row *row = uir_op_get_row(node->op);
    uint32_t others = UIR_TRAIT_CONTROL | UIR_TRAIT_HOST | UIR_TRAIT_EFFECT | UIR_TRAIT_CHECK;
    return node->op == UIR_OP_GROUP || (row->section == UIR_SECTION_PRIMITIVE && !(row->traits & others));
}

static void want_row_major(verifier *v, const uir_node_info *node, uir_value_id value, const char *who) {
    char text[200];
    if (!is_value(v, value) || !uir_value_info_get(v->module, value)->layout) return;
    problem(v, node, "value %s has a layout, but %s row-major", value_text(v, value, text, sizeof text), who);
}

static void check_layouts(verifier *v, const uir_node_info *node) {
    bool knows = knows_layouts(node);
    for (uint32_t i = 0; i < node->input_count && !knows; i++)
        want_row_major(v, node, node->inputs[i], "the operation's operands must be");
    for (uint32_t i = 0; i < node->output_count; i++) {
        uir_value_id value = node->outputs[i];
        if (!is_value(v, value) || !uir_value_info_get(v->module, value)->layout) continue;
        if (knows)
            check_layout(v, node, value);
        else
            want_row_major(v, node, value, "the operation's results must be");
    }
}

/* A value that becomes visible here. */
static bool define(verifier *v, const uir_node_info *node, uir_value_id value) {
    char text[200];
    if (!is_value(v, value) || !value.id) return problem(v, node, "a result is not a value"), false;
    const uir_value_info *info = uir_value_info_get(v->module, value);
    value_text(v, value, text, sizeof text);
    if (info->constant) return problem(v, node, "value %s is a constant and also a result", text), false;
    if (v->visible[value.id]) return problem(v, node, "value %s is defined twice", text), false;
    v->visible[value.id] = true;
    return check_type(v, node, value);
}

/* A constant agrees with its type. */
static bool check_constant(verifier *v, const uir_node_info *node, uir_value_id value) {
    const uir_value_info *info = uir_value_info_get(v->module, value);
    char text[200];
    bool agrees = info->type.kind == UIR_VALUE_TENSOR && info->type.dtype == info->constant->dtype &&
                  info->type.rank_known && info->type.rank == info->constant->rank;
    for (uint32_t d = 0; agrees && d < info->type.rank; d++) {
        int64_t extent;
        agrees = info->type.dims[d].id && uir_dim_is_const(v->module->dims, info->type.dims[d], &extent) &&
                 extent == info->constant->shape[d];
    }
    if (agrees && info->layout) check_layout(v, node, value);
    if (!agrees) problem(v, node, "constant %s does not agree with its type", value_text(v, value, text, sizeof text));
    return agrees;
}

static bool check_use(verifier *v, const uir_node_info *node, uir_value_id value) {
    char text[200];
    if (!is_value(v, value)) return problem(v, node, "an operand is not a value"), false;
    if (uir_value_info_get(v->module, value)->constant) return check_constant(v, node, value);
    if (v->visible[value.id]) return true;
    problem(v, node, "value %s is used where it is not visible", value_text(v, value, text, sizeof text));
    return false;
}

/* ---- nodes ---- */

static void describe(verifier *v, const uir_type *type, char *buffer, size_t capacity) {
    uir_text text;
    uir_text_init(&text, &v->arena.allocator);
    uir_type_print(v->module, type, &text);
    snprintf(buffer, capacity, "%s", text.data ? text.data : "?");
    uir_text_deinit(&text);
}

/* The declared type of a result against the inferred one; what inference leaves open may be anything. */
static void compare_types(verifier *v, const uir_node_info *node, uint32_t index, const uir_type *inferred) {
    const uir_type *declared = uir_value_type(v->module, node->outputs[index]);
    bool same = declared->kind == inferred->kind && (!inferred->dtype || declared->dtype == inferred->dtype) &&
                (!inferred->rank_known || (declared->rank_known && declared->rank == inferred->rank));
    for (uint32_t d = 0; same && inferred->rank_known && d < inferred->rank; d++) {
        uir_dim a = inferred->dims[d], b = declared->dims[d];
        same = !a.id || uir_dim_equal(a, b) || uir_dim_compare(v->module->dims, a, UIR_RELATION_EQ, b) == UIR_TRUE;
    }
    if (same) return;
    char is[160], must[160];
    uir_type shown = *inferred;
    for (uint32_t d = 0; shown.rank_known && d < shown.rank; d++)
        if (!shown.dims[d].id)
            ((uir_dim *)shown.dims)[d] =
                declared->rank_known && d < declared->rank ? declared->dims[d] : uir_dim_const(v->module->dims, 0);
    describe(v, declared, is, sizeof is);
    describe(v, &shown, must, sizeof must);
    problem(v, node, "result %u is declared %s but is %s", index, is, must);
}

static uir_status check_graph(verifier *v, uir_graph_id graph, uir_graph_id parent, const uir_node_info *user,
                              uint32_t depth);

/* Attributes: dims that have values, tensors that are there, bodies. */
static uir_status check_attributes(verifier *v, const uir_node_info *node, bool primitive, uint32_t depth) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *attribute = &node->attributes[i];
        const char *name = uir_string_text(&v->module->strings, attribute->name);
        if (attribute->kind >= UIR_ATTRIBUTE_KIND_COUNT) problem(v, node, "attribute %s has no valid kind", name);
        if (attribute->kind == UIR_ATTRIBUTE_TENSOR && !attribute->value.tensor)
            problem(v, node, "attribute %s has no tensor", name);
        if (attribute->kind == UIR_ATTRIBUTE_DTYPE && !uir_dtype_is_valid(attribute->value.dtype))
            problem(v, node, "attribute %s is not an element type", name);
        if (attribute->kind == UIR_ATTRIBUTE_GRAPH)
            UIR_TRY(check_graph(v, attribute->value.graph, node->graph, node, depth + 1));
        if (attribute->kind != UIR_ATTRIBUTE_DIMS || !primitive || node->op == UIR_OP_BIND_DIMS) continue;
        for (uint32_t d = 0; d < attribute->count; d++)
            if (attribute->value.dims[d].id && !has_values(v, attribute->value.dims[d]))
                problem(v, node, "%s uses size %s, which has no value yet", name,
                        uir_dims_symbol_name(v->module->dims, v->unbound));
    }
    return UIR_STATUS_OK;
}

static uir_status check_primitive(verifier *v, const uir_node_info *node) {
    uir_type *types;
    uir_location location = uir_node_location(v->module, node);
    UIR_TRY_ALLOCATE(types, uir_arena_allocate_array(&v->arena, node->output_count + 1, sizeof *types));
    uir_status status = uir_infer_node(v->module, &v->arena, v->diagnostics, &location, node, types);
    if (status == UIR_STATUS_OUT_OF_MEMORY) return status;
    if (status != UIR_STATUS_OK) {
        v->problems++;
        return UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i].id) compare_types(v, node, i, &types[i]);
    return UIR_STATUS_OK;
}

static void check_arity(verifier *v, const uir_node_info *node, const uir_op_row *row) {
    int inputs = (int)node->input_count, outputs = (int)node->output_count;
    if (inputs < row->min_inputs || (row->max_inputs >= 0 && inputs > row->max_inputs))
        problem(v, node, "%d inputs instead of %d to %d", inputs, row->min_inputs, row->max_inputs);
    if (outputs < row->min_outputs || (row->max_outputs >= 0 && outputs > row->max_outputs))
        problem(v, node, "%d outputs instead of %d to %d", outputs, row->min_outputs, row->max_outputs);
}

static uir_status check_node(verifier *v, uir_node_id node_id, uir_graph_id graph, uint32_t depth) {
    const uir_node_info *node = uir_node_get(v->module, node_id);
    const uir_op_row *row = uir_op_get_row(node->op);
    bool primitive = row->section == UIR_SECTION_PRIMITIVE, sound = true;
    uint32_t before = v->problems;
    if (row->section == UIR_SECTION_NONE) return problem(v, node, "unknown op"), UIR_STATUS_OK;
    if (node->graph.id != graph.id) problem(v, node, "the node is listed in a graph other than its own");
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_value(v, node->inputs[i]) || node->inputs[i].id) sound = check_use(v, node, node->inputs[i]) && sound;
    if (!primitive) check_arity(v, node, row);
    UIR_TRY(check_attributes(v, node, primitive, depth));
    uint32_t count;
    const uir_dim *dims = uir_node_dims(v->module, node, "dims", &count);
    uir_symbol symbol;
    for (uint32_t i = 0; node->op == UIR_OP_BIND_DIMS && i < count; i++)
        if (uir_dim_is_symbol(v->module->dims, dims[i], &symbol) && symbol.id < v->symbol_count)
            v->bound[symbol.id] = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (is_value(v, node->outputs[i]) && !node->outputs[i].id) continue;
        if (!define(v, node, node->outputs[i])) {
            sound = false;
            continue;
        }
        const uir_value_info *output = uir_value_info_get(v->module, node->outputs[i]);
        if (output->producer.id != node_id.id || output->output_index != i)
            problem(v, node, "result %u records another node as its producer", i);
        if (row->traits & UIR_TRAIT_EFFECT && output->type.kind == UIR_VALUE_TENSOR) bind_plain(v, &output->type);
        if (primitive) check_dims_bound(v, node, node->outputs[i], "result");
    }
    check_layouts(v, node);
    /* Inference looks at operands and bodies: only when they are what they say. */
    if (primitive && sound && before == v->problems) UIR_TRY(check_primitive(v, node));
    uir_arena_reset(&v->arena);
    return UIR_STATUS_OK;
}

/* ---- graphs ---- */

/* Bodies: what is defined and bound inside is forgotten again. */
static void forget(verifier *v, uir_graph_id graph, const bool *bound_before) {
    const uir_graph_info *info = uir_graph_get(v->module, graph);
    for (uint32_t i = 0; i < info->inputs.count; i++)
        if (is_value(v, info->inputs.data[i])) v->visible[info->inputs.data[i].id] = false;
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(v->module, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->output_count; i++)
            if (is_value(v, node->outputs[i])) v->visible[node->outputs[i].id] = false;
    }
    if (v->symbol_count) memcpy(v->bound, bound_before, v->symbol_count * sizeof *bound_before);
}

static uir_status check_contents(verifier *v, uir_graph_id graph, const uir_node_info *user, uint32_t depth) {
    const uir_graph_info *info = uir_graph_get(v->module, graph);
    bool primitives = true;
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        if (info->nodes.data[n].id == 0 || info->nodes.data[n].id >= v->module->nodes.count)
            return problem(v, user, "a graph lists a node that does not exist"), UIR_STATUS_OK;
        primitives =
            primitives && uir_op_get_row(uir_node_get(v->module, info->nodes.data[n])->op)->section != UIR_SECTION_ONNX;
    }
    for (uint32_t i = 0; i < info->inputs.count; i++)
        if (define(v, user, info->inputs.data[i]) &&
            uir_value_type(v->module, info->inputs.data[i])->kind == UIR_VALUE_TENSOR)
            bind_plain(v, uir_value_type(v->module, info->inputs.data[i]));
    for (uint32_t i = 0; primitives && i < info->inputs.count; i++)
        if (is_value(v, info->inputs.data[i])) check_dims_bound(v, user, info->inputs.data[i], "input");
    for (uint32_t i = 0; i < info->inputs.count; i++) {
        if (!v->in_group)
            want_row_major(v, user, info->inputs.data[i], "inputs of a graph must be");
        else if (is_value(v, info->inputs.data[i]) && uir_value_info_get(v->module, info->inputs.data[i])->layout)
            check_layout(v, user, info->inputs.data[i]);
    }
    for (uint32_t n = 0; n < info->nodes.count; n++) UIR_TRY(check_node(v, info->nodes.data[n], graph, depth));
    for (uint32_t i = 0; i < info->outputs.count; i++) {
        if (!v->in_group) want_row_major(v, user, info->outputs.data[i], "outputs of a graph must be");
        if (is_value(v, info->outputs.data[i]) && !info->outputs.data[i].id)
            problem(v, user, "output %u is missing", i);
        else
            check_use(v, user, info->outputs.data[i]);
    }
    return UIR_STATUS_OK;
}

static uir_status check_graph(verifier *v, uir_graph_id graph, uir_graph_id parent, const uir_node_info *user,
                              uint32_t depth) {
    if (!graph.id || graph.id >= v->module->graphs.count) return problem(v, user, "unknown graph"), UIR_STATUS_OK;
    if (v->graph_used[graph.id]) return problem(v, user, "a graph is used twice"), UIR_STATUS_OK;
    if (depth > MAX_NESTING) return problem(v, user, "control flow is nested too deeply"), UIR_STATUS_OK;
    v->graph_used[graph.id] = true;
    if (uir_graph_get(v->module, graph)->parent.id != parent.id)
        problem(v, user, "a body records another graph as its parent");
    bool *before = NULL;
    size_t size = v->symbol_count + 1;
    UIR_TRY_ALLOCATE(before, uir_allocate(&v->arena.allocator, size));
    if (v->symbol_count) memcpy(before, v->bound, v->symbol_count);
    bool in_group = v->in_group;
    v->in_group = user && user->op == UIR_OP_GROUP;
    uir_status status = check_contents(v, graph, user, depth);
    v->in_group = in_group;
    if (depth) forget(v, graph, before);
    uir_release(&v->arena.allocator, before, size);
    return status;
}

static uir_status run(verifier *v, uir_arena *sets) {
    const uir_module *module = v->module;
    UIR_TRY_ALLOCATE(v->visible, uir_arena_allocate_array(sets, module->values.count + 1, sizeof(bool)));
    UIR_TRY_ALLOCATE(v->bound, uir_arena_allocate_array(sets, v->symbol_count + 1, sizeof(bool)));
    UIR_TRY_ALLOCATE(v->graph_used, uir_arena_allocate_array(sets, module->graphs.count + 1, sizeof(bool)));
    return check_graph(v, module->main, (uir_graph_id){0}, NULL, 0);
}

uir_status uir_module_verify(const uir_module *module, uir_diagnostics *diagnostics) {
    verifier v = {.module = module, .diagnostics = diagnostics, .symbol_count = uir_dims_symbol_count(module->dims)};
    uir_arena sets;
    uir_arena_init(&sets, module->allocator);
    uir_arena_init(&v.arena, module->allocator);
    uir_status status = run(&v, &sets);
    uir_arena_deinit(&v.arena);
    uir_arena_deinit(&sets);
    if (status != UIR_STATUS_OK) return status;
    return v.problems ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK;
}
