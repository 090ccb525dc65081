/* The walk: ONNX nodes in order, each handed to its rule, problems gathered. */
#include "decompose/lists.h"
#include "ir/graph/origins.h"

typedef uir_status (*rule_function)(uir_rule_context *context);

static const rule_function rule_table[UIR_OP_COUNT] = {
#define UIR_RULE(op, function) [UIR_OP_ONNX_##op] = function,
#include "decompose/rules.def"
};

/* The host primitive that a rule rests on. */
static const uir_op host_primitives[UIR_OP_COUNT] = {
#define UIR_RULE_BY(op, function, primitive) [UIR_OP_ONNX_##op] = UIR_OP_##primitive,
#include "decompose/rules.def"
};
/* The one that it falls back to. */
static const uir_op other_primitives[UIR_OP_COUNT] = {
#define UIR_RULE_ELSE(op, function, primitive) [UIR_OP_ONNX_##op] = UIR_OP_##primitive,
#include "decompose/rules.def"
};

uir_op uir_decompose_host_primitive(uir_op op) {
    return op > UIR_OP_NONE && op < UIR_OP_COUNT ? host_primitives[op] : UIR_OP_NONE;
}

uir_op uir_decompose_other_primitive(uir_op op) {
    return op > UIR_OP_NONE && op < UIR_OP_COUNT ? other_primitives[op] : UIR_OP_NONE;
}

bool uir_decompose_has_rule(uir_op op) {
    return op > UIR_OP_NONE && op < UIR_OP_COUNT && rule_table[op];
}

/* Expressions nested deeper than this become a fresh symbol of their own when types are written back to the source. */
#define DIM_DEPTH_LIMIT 256

static uir_status translate_symbol(uir_dim_translation *t, uir_symbol symbol, uir_dim *out_dim) {
    if (symbol.id < t->symbols.count && t->symbols.data[symbol.id].id) {
        *out_dim = t->symbols.data[symbol.id];
        return UIR_STATUS_OK;
    }
    const char *name = uir_dims_symbol_name(t->from, symbol);
    uir_symbol_facts facts = uir_dims_symbol_facts(t->from, symbol);
    facts.bound = UIR_DIM_NONE;
    size_t length = 0;
    while (name[length]) length++;
    uir_symbol made;
    UIR_TRY(uir_dims_add_symbol(t->to, name, length, facts, &made));
    uir_dim dim = uir_dim_symbol(t->to, made);
    if (!dim.id) return UIR_STATUS_OUT_OF_MEMORY;
    *out_dim = dim;
    return UIR_STATUS_OK;
}

static uir_status remember(uir_arena *arena, uir_dim_vector *dims, uint32_t index, uir_dim dim) {
    while (dims->count <= index) UIR_TRY(uir_vector_push(arena, dims, UIR_DIM_NONE));
    dims->data[index] = dim;
    return UIR_STATUS_OK;
}

static uir_status translate_dim(uir_decomposer *d, uir_dim_translation *t, uir_dim dim, int depth, uir_dim *out_dim);

static uir_status translate_nary(uir_decomposer *d, uir_dim_translation *t, const uir_dim_node *node, int depth,
                                 uir_dim *out_dim) {
    static uir_dim (*const makers[])(uir_dims *, uir_dim, uir_dim) = {
        [UIR_DIM_ADD] = uir_dim_add,         [UIR_DIM_MUL] = uir_dim_mul, [UIR_DIM_FLOORDIV] = uir_dim_floordiv,
        [UIR_DIM_CEILDIV] = uir_dim_ceildiv, [UIR_DIM_MOD] = uir_dim_mod, [UIR_DIM_MIN] = uir_dim_min,
        [UIR_DIM_MAX] = uir_dim_max,
    };
    uir_dim result = UIR_DIM_NONE;
    for (uint32_t i = 0; i < node->count; i++) {
        uir_dim operand;
        UIR_TRY(translate_dim(d, t, node->operands[i], depth + 1, &operand));
        result = i ? makers[node->kind](t->to, result, operand) : operand;
        if (!result.id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    *out_dim = result;
    return UIR_STATUS_OK;
}

static uir_status translate_dim(uir_decomposer *d, uir_dim_translation *t, uir_dim dim, int depth, uir_dim *out_dim) {
    if (dim.id < t->memo.count && t->memo.data[dim.id].id) {
        *out_dim = t->memo.data[dim.id];
        return UIR_STATUS_OK;
    }
    const uir_dim_node *node = uir_dim_get(t->from, dim);
    uir_dim result = UIR_DIM_NONE;
    if (node->kind == UIR_DIM_CONST) {
        result = uir_dim_const(t->to, node->value);
    } else if (node->kind == UIR_DIM_SYMBOL) {
        uint32_t symbol = (uint32_t)node->value;
        UIR_TRY(translate_symbol(t, (uir_symbol){symbol}, &result));
        UIR_TRY(remember(d->scratch, &t->symbols, symbol, result));
    } else if (depth >= DIM_DEPTH_LIMIT) {
        uir_symbol made;
        UIR_TRY(uir_dims_add_symbol(t->to, "size", 4, UIR_SYMBOL_FACTS_SIZE, &made));
        result = uir_dim_symbol(t->to, made);
    } else {
        UIR_TRY(translate_nary(d, t, node, depth, &result));
    }
    if (!result.id) return UIR_STATUS_OUT_OF_MEMORY;
    UIR_TRY(remember(d->scratch, &t->memo, dim.id, result));
    *out_dim = result;
    return UIR_STATUS_OK;
}

static uir_status decomposer_translate_type(uir_decomposer *decomposer, uir_dim_translation *translation,
                                            uir_arena *arena, const uir_type *type, uir_type *out_type) {
    uir_type result = *type;
    if (type->rank_known && type->rank) {
        uir_dim *dims;
        UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(arena, type->rank, sizeof *dims));
        for (uint32_t i = 0; i < type->rank; i++)
            UIR_TRY(translate_dim(decomposer, translation, type->dims[i], 0, &dims[i]));
        result.dims = dims;
    }
    *out_type = result;
    return UIR_STATUS_OK;
}

/* ---- values ---- */

static uir_status carry_name(uir_decomposer *d, uir_value_id source, uir_value_id target) {
    uir_string name = uir_value_info_get(d->source, source)->name;
    if (!name.id || uir_value_info_get(d->target, target)->name.id) return UIR_STATUS_OK;
    uir_string copy;
    UIR_TRY(uir_strings_intern(&d->target->strings, uir_string_text(&d->source->strings, name),
                               uir_string_length(&d->source->strings, name), &copy));
    uir_value_info_get(d->target, target)->name = copy;
    return UIR_STATUS_OK;
}

uir_status uir_decomposer_map(uir_decomposer *decomposer, uir_value_id source, uir_value_id *out_target,
                              bool *out_poisoned) {
    uir_decomposer *d = decomposer;
    *out_target = (uir_value_id){0};
    if (!source.id) return UIR_STATUS_OK;
    if (d->poisoned[source.id]) {
        *out_poisoned = true;
        return UIR_STATUS_OK;
    }
    uir_value_info *info = uir_value_info_get(d->source, source);
    if (!d->map[source.id].id && info->constant) {
        uir_value_id made;
        uir_tensor_retain(info->constant);
        uir_status status = uir_module_add_constant(d->target, "", info->constant, &made);
        if (status != UIR_STATUS_OK) {
            uir_tensor_release(info->constant);
            return status;
        }
        d->map[source.id] = made;
        UIR_TRY(carry_name(d, source, made));
    }
    if (!d->map[source.id].id)
        return uir_error(d->diagnostics, UIR_STATUS_BAD_FILE, NULL,
                         "value '%s' is undefined: used before anything set it",
                         uir_string_text(&d->source->strings, info->name));
    *out_target = d->map[source.id];
    return UIR_STATUS_OK;
}

uir_status uir_decomposer_mark_input(uir_decomposer *decomposer, uir_value_id input, uint32_t index) {
    uir_decomposer *d = decomposer;
    if (!d->input_forms || d->input_forms[index] == UIR_LIST_NONE) return UIR_STATUS_OK;
    while (d->forms.count <= input.id) UIR_TRY(uir_vector_push(d->scratch, &d->forms, UIR_LIST_NONE));
    d->forms.data[input.id] = d->input_forms[index];
    return UIR_STATUS_OK;
}

static bool has_shape_of(const uir_module *m, uir_value_id a, uir_value_id b) {
    const uir_type *x = uir_value_type(m, a), *y = uir_value_type(m, b);
    bool same = x->rank_known == y->rank_known && x->rank == y->rank;
    for (uint32_t d = 0; same && x->rank_known && d < x->rank; d++) same = uir_dim_equal(x->dims[d], y->dims[d]);
    return same;
}

uir_status uir_decomposer_bind(uir_decomposer *decomposer, uir_value_id source, uir_value_id target) {
    uir_decomposer *d = decomposer;
    if (!d->first[source.id].id) d->first[source.id] = target;
    d->varies[source.id] |= !has_shape_of(d->target, d->first[source.id], target);
    d->map[source.id] = target;
    UIR_TRY(carry_name(d, source, target));
    uir_type type;
    UIR_TRY(decomposer_translate_type(d, &d->back, &d->source->arena, uir_value_type(d->target, target), &type));
    if (target.id < d->forms.count && d->forms.data[target.id] == UIR_LIST_STACKED && type.rank_known) {
        type.kind = UIR_VALUE_SEQUENCE;
        type.rank--;
        type.dims++;
    }
    uir_value_info_get(d->source, source)->type = type;
    return UIR_STATUS_OK;
}

static bool is_inside(const uir_module *m, uint32_t graph, uir_graph_id outer) {
    for (uint32_t g = graph; g; g = m->graphs.data[g].parent.id)
        if (g == outer.id) return true;
    return false;
}

void uir_decomposer_forget_names(uir_decomposer *decomposer, uir_graph_id graph) {
    uir_module *m = decomposer->target;
    for (uint32_t g = graph.id; g < m->graphs.count; g++) { /* graphs made inside it have higher handles */
        const uir_graph_info *info = &m->graphs.data[g];
        if (!is_inside(m, g, graph)) continue;
        for (uint32_t n = 0; n < info->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(m, info->nodes.data[n]);
            for (uint32_t i = 0; i < node->output_count; i++)
                if (node->outputs[i].id) m->values.data[node->outputs[i].id].name = (uir_string){0};
        }
        for (uint32_t i = 0; i < info->inputs.count; i++)
            m->values.data[info->inputs.data[i].id].name = (uir_string){0};
    }
}

void uir_decomposer_discard(uir_decomposer *decomposer, uir_graph_id graph) {
    uir_module *m = decomposer->target;
    uir_decomposer_forget_names(decomposer, graph);
    for (uint32_t g = graph.id; g < m->graphs.count; g++) {
        uir_graph_info *info = &m->graphs.data[g];
        if (is_inside(m, g, graph)) info->nodes.count = info->inputs.count = info->outputs.count = 0;
    }
}

/* ---- nodes ---- */

static bool ends_everything(uir_status status) {
    return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_LIMIT || status == UIR_STATUS_CANCELLED;
}

void uir_decomposer_record_failure(uir_decomposer *decomposer, uir_status status) {
    uir_decomposer *d = decomposer;
    if (!d->failures || (d->status == UIR_STATUS_UNSUPPORTED && status != UIR_STATUS_UNSUPPORTED)) d->status = status;
    d->failures++;
}

static uir_status poison_outputs(uir_decomposer *d, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->output_count; i++) d->poisoned[node->outputs[i].id] = true;
    d->poisoned[0] = false;
    return UIR_STATUS_OK;
}

static uir_location node_location(uir_decomposer *d, const uir_node_info *node) {
    return (uir_location){.node = uir_string_text(&d->source->strings, node->name),
                          .op = uir_op_get_row(node->op)->name};
}

static uir_status bind_outputs(uir_decomposer *d, const uir_node_info *node, const uir_value_id *outputs) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!node->outputs[i].id) continue;
        if (!outputs[i].id && d->is_trial) {
            d->poisoned[node->outputs[i].id] = true;
            continue;
        }
        if (!outputs[i].id) {
            uir_location location = node_location(d, node);
            return uir_error(d->diagnostics, UIR_STATUS_UNSUPPORTED, &location, "output %u is not supported", i);
        }
        UIR_TRY(uir_decomposer_bind(d, node->outputs[i], outputs[i]));
        uir_origins_note_result(d->target, node->source, outputs[i]);
    }
    return UIR_STATUS_OK;
}

uir_status uir_decomposer_begin_node(uir_decomposer *d, const uir_node_info *node, uir_graph_id target_graph,
                                     uir_builder *out_builder) {
    uir_builder_init(out_builder, d->target, target_graph);
    out_builder->origin = node->op;
    out_builder->source = node->source;
    uir_origins_meet(d->target, node->source);
    return uir_strings_intern(&d->target->strings, uir_string_text(&d->source->strings, node->name),
                              uir_string_length(&d->source->strings, node->name), &out_builder->node_name);
}

static uir_status apply_rule(uir_decomposer *d, const uir_node_info *node, uir_graph_id target_graph,
                             uir_value_id *inputs) {
    uir_rule_context context = {.source = d->source,
                                .node = node,
                                .op = node->op,
                                .since_version = node->since_version,
                                .inputs = inputs,
                                .input_count = node->input_count,
                                .output_count = node->output_count,
                                .decomposer = d};
    UIR_TRY_ALLOCATE(context.outputs,
                     uir_arena_allocate_array(d->scratch, node->output_count + 1u, sizeof *context.outputs));
    UIR_TRY(uir_decomposer_begin_node(d, node, target_graph, &context.builder));
    uir_status status = uir_rule_expect_lengths(&context, inputs);
    if (status == UIR_STATUS_OK) status = rule_table[node->op](&context);
    if (status == UIR_STATUS_OK) status = context.builder.status;
    UIR_TRY(status);
    UIR_TRY(uir_evaluate_pending(d));
    if (d->split || d->enter.id) return UIR_STATUS_OK;
    return bind_outputs(d, node, context.outputs);
}

static uir_status decompose_node(uir_decomposer *d, const uir_node_info *node, uir_graph_id target_graph) {
    uir_location location = node_location(d, node);
    uir_budget_at(d->scratch->budget, location.node, location.op);
    if (++d->work > d->work_limit)
        return uir_error(d->diagnostics, UIR_STATUS_LIMIT, &location,
                         "nested subgraphs are decomposed too many times (over %llu nodes)",
                         (unsigned long long)d->work_limit);
    if (!uir_decompose_has_rule(node->op)) {
        uir_error(d->diagnostics, UIR_STATUS_UNSUPPORTED, &location, "the op (version %d) is not supported",
                  node->since_version);
        uir_decomposer_record_failure(d, UIR_STATUS_UNSUPPORTED);
        return poison_outputs(d, node);
    }
    uir_value_id *inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(d->scratch, node->input_count + 1u, sizeof *inputs));
    bool poisoned = false;
    for (uint32_t i = 0; i < node->input_count; i++)
        UIR_TRY(uir_decomposer_map(d, node->inputs[i], &inputs[i], &poisoned));
    if (poisoned) return poison_outputs(d, node);
    uint32_t errors = d->diagnostics ? d->diagnostics->error_count : 0;
    d->quiet = false;
    uir_status status = apply_rule(d, node, target_graph, inputs);
    if (status == UIR_STATUS_OK || ends_everything(status)) return status;
    if (!d->quiet) {
        if (d->diagnostics && d->diagnostics->error_count == errors)
            uir_error(d->diagnostics, status, &location, "the node could not be decomposed: %s",
                      uir_status_text(status));
        uir_decomposer_record_failure(d, status);
    }
    d->quiet = false;
    return poison_outputs(d, node);
}

static uir_status enter_branch(uir_decomposer *d, uir_graph_id graph, uint32_t position, const uir_node_info *node,
                               const uir_walk_frame **frame) {
    uir_walk_frame *inner;
    UIR_TRY_ALLOCATE(inner, uir_arena_allocate(d->scratch, sizeof *inner));
    *inner = (uir_walk_frame){*frame, graph, position + 1, *node};
    *frame = inner;
    uir_origins_note(d->target, node->source, UIR_FATE_FOLDED, 0);
    return UIR_STATUS_OK;
}

/* The results of the branch `graph` are those of its If. */
static uir_status leave_branch(uir_decomposer *d, uir_graph_id graph, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        uir_value_id result;
        bool poisoned = false;
        if (!node->outputs[i].id) continue;
        UIR_TRY(uir_decomposer_map(d, uir_graph_get(d->source, graph)->outputs.data[i], &result, &poisoned));
        if (poisoned)
            d->poisoned[node->outputs[i].id] = true;
        else
            UIR_TRY(uir_decomposer_bind(d, node->outputs[i], result));
    }
    return UIR_STATUS_OK;
}

uir_status uir_decomposer_walk_from(uir_decomposer *decomposer, uir_graph_id source_graph, uint32_t first,
                                    const uir_walk_frame *frame, uir_graph_id target_graph) {
    uir_decomposer *d = decomposer;
    uir_graph_id graph = source_graph;
    uint32_t i = first;
    for (;;) {
        uint32_t count = uir_graph_get(d->source, graph)->nodes.count;
        if (i == count && !frame) return UIR_STATUS_OK;
        if (i == count) {
            UIR_TRY(leave_branch(d, graph, &frame->node));
            graph = frame->graph;
            i = frame->next;
            frame = frame->outer;
            continue;
        }
        /* A copy: rules of control flow come back here, and the source's arrays may move. */
        uir_node_info node = *uir_node_get(d->source, uir_graph_get(d->source, graph)->nodes.data[i]);
        d->may_split = i + 1 < count || frame;
        d->split = false;
        d->enter = (uir_graph_id){0};
        UIR_TRY(decompose_node(d, &node, target_graph));
        uir_graph_id branch = d->enter;
        bool split = d->split;
        d->split = false;
        d->enter = (uir_graph_id){0};
        if (split) return uir_decomposer_split(d, graph, i, frame, target_graph);
        if (branch.id) {
            UIR_TRY(enter_branch(d, graph, i, &node, &frame));
            graph = branch;
            i = 0;
        } else {
            i++;
        }
    }
}

uir_status uir_decomposer_walk(uir_decomposer *decomposer, uir_graph_id source_graph, uir_graph_id target_graph) {
    return uir_decomposer_walk_from(decomposer, source_graph, 0, NULL, target_graph);
}

/* ---- the whole ---- */

static uir_status check_input(uir_decomposer *d, uir_value_id input) {
    const uir_value_info *info = uir_value_info_get(d->source, input);
    int64_t extent;
    for (uint32_t i = 0; info->type.rank_known && i < info->type.rank; i++)
        if (uir_dim_is_const(d->source->dims, info->type.dims[i], &extent) && extent < 0)
            return uir_error(d->diagnostics, UIR_STATUS_BAD_FILE, NULL, "dim %u of input '%s' is %lld", i,
                             uir_string_text(&d->source->strings, info->name), (long long)extent);
    return UIR_STATUS_OK;
}

uir_status uir_decomposer_give_sequence(uir_decomposer *decomposer, uir_graph_id graph, uir_value_id *value) {
    uir_rule_context context = {.source = decomposer->source, .decomposer = decomposer};
    uir_builder_init(&context.builder, decomposer->target, graph);
    if (uir_list_is_stacked(&context, *value)) *value = uir_list_to_sequence(&context, *value, -1);
    return context.builder.status;
}

/* An input without a shape that some node takes as a list is one. */
static uir_status type_lists(uir_decomposer *d) {
    const uir_graph_info *graph = uir_graph_get(d->source, d->source->main);
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(d->source, graph->nodes.data[n]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!node->inputs[i].id || !uir_decomposer_is_list(node, i)) continue;
            uir_value_info *info = uir_value_info_get(d->source, node->inputs[i]);
            if (info->producer.id || info->constant || info->type.kind != UIR_VALUE_TENSOR || info->type.rank_known)
                continue;
            uir_symbol symbol;
            uir_dim *extent;
            UIR_TRY(uir_dims_add_symbol(d->source->dims, "", 0, UIR_SYMBOL_FACTS_SIZE, &symbol));
            UIR_TRY_ALLOCATE(extent, uir_arena_allocate(&d->source->arena, sizeof *extent));
            *extent = uir_dim_symbol(d->source->dims, symbol);
            if (!extent->id) return UIR_STATUS_OUT_OF_MEMORY;
            info->type.rank_known = true;
            info->type.rank = 1;
            info->type.dims = extent;
        }
    }
    return UIR_STATUS_OK;
}

static uir_status decompose_main(uir_decomposer *d) {
    const uir_graph_info *source_main = uir_graph_get(d->source, d->source->main);
    UIR_TRY(uir_module_add_graph(d->target, (uir_graph_id){0}, uir_string_text(&d->source->strings, source_main->name),
                                 &d->target->main));
    UIR_TRY(type_lists(d));
    for (uint32_t i = 0; i < source_main->inputs.count; i++) {
        uir_value_id input = source_main->inputs.data[i], made;
        uir_type type;
        UIR_TRY(check_input(d, input));
        UIR_TRY(decomposer_translate_type(d, &d->forth, &d->target->arena, uir_value_type(d->source, input), &type));
        UIR_TRY(uir_module_add_value(d->target, "", type, &made));
        d->map[input.id] = made;
        UIR_TRY(carry_name(d, input, made));
        UIR_TRY(uir_graph_add_input(d->target, d->target->main, made));
    }
    UIR_TRY(uir_decomposer_walk(d, d->source->main, d->target->main));
    for (uint32_t i = 0; i < source_main->outputs.count; i++) {
        uir_value_id output;
        bool poisoned = false;
        UIR_TRY(uir_decomposer_map(d, source_main->outputs.data[i], &output, &poisoned));
        if (poisoned) continue;
        UIR_TRY(uir_decomposer_give_sequence(d, d->target->main, &output));
        UIR_TRY(uir_graph_add_output(d->target, d->target->main, output));
    }
    return d->failures ? d->status : UIR_STATUS_OK;
}

static uir_status run(uir_decomposer *d) {
    uint32_t values = d->source->values.count + 1u;
    UIR_TRY_ALLOCATE(d->map, uir_arena_allocate_array(d->scratch, values, sizeof *d->map));
    UIR_TRY_ALLOCATE(d->poisoned, uir_arena_allocate_array(d->scratch, values, sizeof *d->poisoned));
    UIR_TRY_ALLOCATE(d->first, uir_arena_allocate_array(d->scratch, values, sizeof *d->first));
    UIR_TRY_ALLOCATE(d->varies, uir_arena_allocate_array(d->scratch, values, sizeof *d->varies));
    d->forth = (uir_dim_translation){.from = d->source->dims, .to = d->target->dims};
    d->back = (uir_dim_translation){.from = d->target->dims, .to = d->source->dims};
    d->work_limit = 64ull * d->source->nodes.count + 10000;
    d->target->opset = d->source->opset;
    UIR_TRY(uir_origins_begin(d->source, d->target));
    return decompose_main(d);
}

/* What was made for a branch alone, or for one that was given up, has no one shape either. */
static bool varies(const uir_decomposer *d, uir_value_id source) {
    return d->varies[source.id] || !d->map[source.id].id;
}

uir_status uir_decompose(uir_module *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_module **out_module) {
    *out_module = NULL;
    uir_module *target;
    UIR_TRY(uir_module_create(allocator, diagnostics, &target));
    uir_arena scratch;
    uir_arena_init(&scratch, allocator);
    uir_decomposer d = {.source = source, .target = target, .diagnostics = diagnostics, .scratch = &scratch};
    uir_status status = run(&d);
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < source->declared.count; i++)
        source->declared.data[i].varies = varies(&d, source->declared.data[i].value);
    for (uint32_t i = 0; i < d.evaluated.count; i++) uir_tensor_release(d.evaluated.data[i]);
    uir_arena_deinit(&scratch);
    if (status != UIR_STATUS_OK) {
        uir_module_destroy(target);
        return status;
    }
    target->release_storage = source->release_storage;
    target->storage = source->storage;
    source->release_storage = NULL;
    source->storage = NULL;
    *out_module = target;
    return UIR_STATUS_OK;
}
