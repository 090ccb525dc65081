/* Graphs to steps: a row per kind of node. */
#include "planner/internal.h"

#include <stdio.h>
#include <string.h>

uir_status uir_pl_fail(planner *p, const uir_node_info *node, uir_status status, const char *format, ...) {
    uir_location where = uir_node_location(p->module, node);
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    p->errors++;
    return uir_error(p->diagnostics, status, &where, "%s", message);
}

/* ---- tensors ---- */
/* Of values that only the interpreter works on; NULL: the type is no such. */
static const char *what_is_unheld(const uir_type *type) {
    if (type->kind != UIR_VALUE_TENSOR) return "sequences and optionals";
    return type->dtype == UIR_DTYPE_STRING ? "text" : NULL;
}

static uir_status fail_value(planner *p, uir_value_id value, const char *what) {
    const char *name = uir_string_text(&p->module->strings, uir_value_info_get(p->module, value)->name);
    p->errors++;
    return uir_error(p->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "value '%s': a package holds no %s", name, what);
}

static uir_status check_type(planner *p, uir_value_id value) {
    const uir_type *type = uir_value_type(p->module, value);
    const char *what = what_is_unheld(type);
    if (what) return fail_value(p, value, what);
    if (type->dtype == UIR_DTYPE_NONE || !type->rank_known) return fail_value(p, value, "tensors of unknown type");
    return UIR_STATUS_OK;
}

static uir_status add_tensor(planner *p, uir_value_id value, uir_plan_storage storage, uint32_t index,
                             uint32_t *out_tensor) {
    UIR_TRY(check_type(p, value));
    const uir_type *type = uir_value_type(p->module, value);
    uir_plan_tensor t = {(uint32_t)type->dtype, (uint32_t)storage, index, {0, 0}};
    UIR_TRY(uir_pl_add_expressions(p, &p->scope, type->dims, type->rank, &t.extents));
    *out_tensor = p->tensors.count;
    return uir_vector_push(&p->arena, &p->tensors, t);
}

/* Kernels alone know layouts. */
static uir_status check_row_major(planner *p, uir_value_id value) {
    const uir_value_info *info = uir_value_info_get(p->module, value);
    if (!info->layout || info->constant) return UIR_STATUS_OK;
    uir_location where = {0};
    if (info->producer.id) where = uir_node_location(p->module, uir_node_get(p->module, info->producer));
    p->errors++;
    return uir_error_hint(p->diagnostics, UIR_STATUS_UNSUPPORTED, info->producer.id ? &where : NULL,
                          "remove the layout of this value from the stage's text",
                          "value '%s' has a layout, but not all of its writers and readers are kernels",
                          uir_string_text(&p->module->strings, info->name));
}

static uir_status add_value(planner *p, uir_value_id value, uir_plan_storage storage, uint32_t index) {
    uint32_t tensor;
    if (storage != UIR_PLAN_STORAGE_LAID_OUT) UIR_TRY(check_row_major(p, value));
    if (p->tensor_of[value.id]) return UIR_STATUS_OK;
    UIR_TRY(add_tensor(p, value, storage, index, &tensor));
    p->tensor_of[value.id] = tensor + 1;
    return UIR_STATUS_OK;
}

/* The tensor of a value that is there: constants are added when something reads them. */
static uir_status find_tensor(planner *p, uir_value_id value, uint32_t *out_tensor) {
    *out_tensor = UIR_PLAN_NONE;
    if (!value.id) return UIR_STATUS_OK;
    const uir_tensor *constant = uir_value_info_get(p->module, value)->constant;
    if (!p->tensor_of[value.id] && constant) {
        uint32_t index;
        UIR_TRY(check_type(p, value));
        UIR_TRY(uir_pl_add_constant(p, constant->data, constant->byte_size, &index));
        uir_tensor_rest(constant);
        UIR_TRY(add_value(p, value, UIR_PLAN_STORAGE_CONSTANT, index));
    }
    if (!p->tensor_of[value.id]) return fail_value(p, value, "value without a step that computes it");
    *out_tensor = p->tensor_of[value.id] - 1;
    return UIR_STATUS_OK;
}

static uir_status list_tensors(planner *p, const uir_value_id *values, uint32_t count, uir_plan_list *out_list) {
    uint32_t *tensors;
    UIR_TRY_ALLOCATE(tensors, uir_arena_allocate_array(&p->arena, (size_t)count + 1, sizeof *tensors));
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].id) UIR_TRY(check_row_major(p, values[i]));
        UIR_TRY(find_tensor(p, values[i], &tensors[i]));
    }
    return uir_pl_add_list(p, tensors, count, out_list);
}

/* A kernel's result, in its layout. */
static uir_status add_result(planner *p, uir_value_id value, uint32_t *out_tensor) {
    const uir_value_info *info = uir_value_info_get(p->module, value);
    uint32_t span = 0;
    if (info->layout) {
        uir_layout layout = *info->layout;
        uir_dim elements = uir_layout_finish(&layout, info->type.dims, info->type.rank, p->module->dims);
        if (!elements.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(uir_pl_add_expression(p, &p->scope, elements, &span));
    }
    UIR_TRY(add_value(p, value, info->layout ? UIR_PLAN_STORAGE_LAID_OUT : UIR_PLAN_STORAGE_ARENA, span));
    return find_tensor(p, value, out_tensor);
}

/* ---- steps ---- */
static uir_status describe(planner *p, const uir_node_info *node, uir_plan_step *step) {
    const char *name = uir_string_text(&p->module->strings, node->name),
               *op = uir_op_name(node->origin ? node->origin : node->op);
    UIR_TRY(uir_pl_add_text(p, name, strlen(name), &step->node));
    UIR_TRY(uir_pl_add_text(p, op, strlen(op), &step->op));
    UIR_TRY(uir_pl_list_nodes(p, node, &step->nodes));
    return uir_pl_add_remark(p, node, &step->remark);
}

static uir_status push_step(planner *p, uint32_t block, const uir_plan_step *step) {
    return uir_vector_push(&p->arena, &p->bodies.data[block].steps, *step);
}

/* A launch is the device's where its kernel can run there. */
static uir_status push_launch(planner *p, uint32_t block, const uir_plan_step *step) {
    uir_pl_block *b = &p->bodies.data[block];
    bool is_device = p->options->device && uir_pl_kernel_runs(p, step->target, UIR_PLAN_ON_DEVICE);
    while (is_device && b->queues.count < b->steps.count)
        UIR_TRY(uir_vector_push(&p->arena, &b->queues, UIR_PLAN_QUEUE_HOST));
    if (is_device) UIR_TRY(uir_vector_push(&p->arena, &b->queues, UIR_PLAN_QUEUE_COMPUTE));
    return push_step(p, block, step);
}

static uir_status plan_block(planner *p, uir_graph_id graph, uint32_t block);

typedef uir_status plan_node(planner *p, const uir_node_info *node, uint32_t block);

static uir_status find_kernel(planner *p, const uir_node_info *node, uint32_t *out_kernel) {
    *out_kernel = node->kernel - 1;
    if (node->kernel <= p->source_count) return UIR_STATUS_OK;
    return uir_pl_fail(p, node, UIR_STATUS_INTERNAL, "kernel '%s' is missing",
                       uir_node_string(p->module, node, "kernel", ""));
}

/* The group's sizes, and the slack that its kernel counts. */
static uir_status add_sizes(planner *p, const uir_node_info *node, const uir_plan_kernel *kernel, const uir_dim *sizes,
                            uint32_t size_count, uir_plan_list *out_values) {
    uint32_t slack_count, *values;
    const int64_t *slack = uir_node_ints(p->module, node, "slack", &slack_count);
    uir_plan_list plain;
    if ((uint64_t)size_count + slack_count / 2 != kernel->dim_count || slack_count % 2)
        return uir_pl_fail(p, node, UIR_STATUS_INTERNAL, "%u sizes for the %u dims of its kernel",
                           size_count + slack_count / 2, kernel->dim_count);
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(&p->arena, (size_t)kernel->dim_count + 1, sizeof *values));
    UIR_TRY(uir_pl_add_expressions(p, &p->scope, sizes, size_count, &plain));
    for (uint32_t i = 0; i < size_count; i++) values[i] = p->words.data[plain.first + i].value;
    for (uint32_t i = 0; i < slack_count / 2; i++) {
        uint32_t *value = &values[size_count + i];
        UIR_TRY(slack[2 * i] < 0 ? uir_pl_add_number(p, 0, value)
                                 : uir_pl_add_port_slack(p, node, slack[2 * i], slack[2 * i + 1], value));
    }
    return uir_pl_add_list(p, values, kernel->dim_count, out_values);
}

static uir_status plan_group(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_LAUNCH, .other = UIR_PLAN_NONE};
    uint32_t size_count, *inputs, *outputs;
    bool *used;
    UIR_TRY(find_kernel(p, node, &step.target));
    const uir_dim *sizes = uir_node_dims(p->module, node, "sizes", &size_count);
    UIR_TRY_ALLOCATE(used, uir_arena_allocate_array(&p->arena, (size_t)node->input_count + 1, sizeof *used));
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(&p->arena, (size_t)node->input_count + 1, sizeof *inputs));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(&p->arena, (size_t)node->output_count + 1, sizeof *outputs));
    UIR_TRY(add_sizes(p, node, &p->kernels.data[step.target], sizes, size_count, &step.values));
    UIR_TRY(uir_pl_pack_constants(p, node, step.target, sizes, size_count, &step.constants, used));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = UIR_PLAN_NONE;
        if (used[i]) UIR_TRY(find_tensor(p, node->inputs[i], &inputs[i]));
    }
    UIR_TRY(uir_pl_add_list(p, inputs, node->input_count, &step.inputs));
    for (uint32_t i = 0; i < node->output_count; i++) UIR_TRY(add_result(p, node->outputs[i], &outputs[i]));
    UIR_TRY(uir_pl_add_list(p, outputs, node->output_count, &step.outputs));
    UIR_TRY(describe(p, node, &step));
    return push_launch(p, block, &step);
}

static uir_status plan_reshape(planner *p, const uir_node_info *node, uint32_t block) {
    uint32_t of;
    (void)block;
    if (p->tensor_of[node->outputs[0].id])
        return UIR_STATUS_OK; /* an output of the plan, which its source stands for */
    UIR_TRY(check_row_major(p, node->inputs[0]));
    UIR_TRY(find_tensor(p, node->inputs[0], &of));
    return add_value(p, node->outputs[0], UIR_PLAN_STORAGE_ALIAS, of);
}

static uir_status plan_dim_values(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_DIMS, .target = UIR_PLAN_NONE, .other = UIR_PLAN_NONE};
    uint32_t count;
    const uir_dim *dims = uir_node_dims(p->module, node, "dims", &count);
    UIR_TRY(uir_pl_add_expressions(p, &p->scope, dims, count, &step.values));
    UIR_TRY(add_value(p, node->outputs[0], UIR_PLAN_STORAGE_ARENA, 0));
    UIR_TRY(list_tensors(p, node->outputs, 1, &step.outputs));
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

static uir_status plan_bind_dims(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_BIND, .target = UIR_PLAN_NONE, .other = UIR_PLAN_NONE};
    uint32_t count, *symbols;
    const uir_dim *dims = uir_node_dims(p->module, node, "dims", &count);
    if (!count) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(symbols, uir_arena_allocate_array(&p->arena, count, sizeof *symbols));
    for (uint32_t i = 0; i < count; i++) {
        uir_symbol symbol;
        if (!uir_dim_is_symbol(p->module->dims, dims[i], &symbol))
            return uir_pl_fail(p, node, UIR_STATUS_INTERNAL, "the node binds a dim that is not a symbol");
        UIR_TRY(uir_pl_add_symbol(p, symbol, &symbols[i]));
    }
    UIR_TRY(uir_pl_add_list(p, symbols, count, &step.symbols));
    UIR_TRY(list_tensors(p, node->inputs, 1, &step.inputs));
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

/* What a check of sizes demands is one of the plan's. */
static uir_status plan_nothing(planner *p, const uir_node_info *node, uint32_t block) {
    (void)p, (void)node, (void)block;
    return UIR_STATUS_OK;
}

static uir_status plan_check_indices(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_CHECK};
    const char *of = uir_node_string(p->module, node, "of", "");
    uint32_t count;
    const uir_dim *low = uir_node_dims(p->module, node, "low", &count),
                  *high = uir_node_dims(p->module, node, "high", &count);
    uir_dim bounds[2 * UIR_PLAN_MAX_RANK];
    if (count > UIR_PLAN_MAX_RANK)
        return uir_pl_fail(p, node, UIR_STATUS_UNSUPPORTED, "the node has too many bounds of indices: %u", count);
    for (uint32_t k = 0; k < count; k++) {
        bounds[k] = low[k];
        bounds[count + k] = high[k];
    }
    step.other = uir_node_int(p->module, node, "ends", 0) != 0;
    UIR_TRY(uir_pl_add_text(p, of, strlen(of), &step.target));
    UIR_TRY(uir_pl_add_expressions(p, &p->scope, bounds, 2 * count, &step.values));
    UIR_TRY(list_tensors(p, node->inputs, 1, &step.inputs));
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

/* ---- bodies ---- */
static uir_status add_body(planner *p, const uir_node_info *node, const char *name, uint32_t *out_block) {
    uir_graph_id graph = uir_node_find_attribute(p->module, node, name)->value.graph;
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    *out_block = p->bodies.count;
    UIR_TRY(uir_vector_push(&p->arena, &p->bodies, ((uir_pl_block){.steps = {0}})));
    for (uint32_t i = 0; i < info->inputs.count; i++) {
        uint32_t tensor;
        UIR_TRY(add_value(p, info->inputs.data[i], UIR_PLAN_STORAGE_PORT, 0));
        UIR_TRY(find_tensor(p, info->inputs.data[i], &tensor));
        UIR_TRY(uir_vector_push(&p->arena, &p->bodies.data[*out_block].inputs, tensor));
    }
    UIR_TRY(plan_block(p, graph, *out_block));
    for (uint32_t i = 0; i < info->outputs.count; i++) {
        uint32_t tensor;
        UIR_TRY(find_tensor(p, info->outputs.data[i], &tensor));
        UIR_TRY(uir_vector_push(&p->arena, &p->bodies.data[*out_block].outputs, tensor));
    }
    return UIR_STATUS_OK;
}

/* Results with buffers of their own; one that nobody wants still has a shape. */
static uir_status own_outputs(planner *p, const uir_node_info *node, uint32_t block, uint32_t skip, uint32_t carried,
                              uir_plan_list *out_list) {
    uint32_t *tensors;
    UIR_TRY_ALLOCATE(tensors, uir_arena_allocate_array(&p->arena, (size_t)node->output_count + 1, sizeof *tensors));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i].id) {
            UIR_TRY(add_value(p, node->outputs[i], UIR_PLAN_STORAGE_OWN, 0));
            UIR_TRY(find_tensor(p, node->outputs[i], &tensors[i]));
            continue;
        }
        uir_plan_tensor inner = p->tensors.data[p->bodies.data[block].outputs.data[i + skip]];
        uir_plan_tensor t = {inner.dtype, UIR_PLAN_STORAGE_OWN, 0, {0, 0}};
        uint32_t extents[UIR_PLAN_MAX_RANK + 1], rank = inner.extents.count + (i < carried ? 0 : 1);
        for (uint32_t d = 0; d < rank; d++) UIR_TRY(uir_pl_add_fresh_dim(p, &extents[d]));
        UIR_TRY(uir_pl_add_list(p, extents, rank, &t.extents));
        tensors[i] = p->tensors.count;
        UIR_TRY(uir_vector_push(&p->arena, &p->tensors, t));
    }
    return uir_pl_add_list(p, tensors, node->output_count, out_list);
}

static uir_status plan_if(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_IF};
    UIR_TRY(list_tensors(p, node->inputs, 1, &step.inputs));
    UIR_TRY(add_body(p, node, "then", &step.target));
    UIR_TRY(add_body(p, node, "else", &step.other));
    UIR_TRY(own_outputs(p, node, step.target, 0, node->output_count, &step.outputs));
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

static uir_status plan_loop(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_LOOP, .other = UIR_PLAN_NONE};
    UIR_TRY(list_tensors(p, node->inputs, node->input_count, &step.inputs));
    UIR_TRY(add_body(p, node, "body", &step.target));
    UIR_TRY(own_outputs(p, node, step.target, 1, node->input_count - 2, &step.outputs));
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

/* ---- host ops ---- */
static uir_status add_attribute(planner *p, const uir_node_info *node, const uir_attribute *a) {
    const char *name = uir_string_text(&p->module->strings, a->name);
    uir_plan_attribute out = {0, UIR_PLAN_INTEGERS, p->integers.count, 1};
    UIR_TRY(uir_pl_add_text(p, name, strlen(name), &out.name));
    switch (a->kind) {
    case UIR_ATTRIBUTE_INT:
        UIR_TRY(uir_vector_push(&p->arena, &p->integers, ((uir_plan_integer){a->value.integer})));
        break;
    case UIR_ATTRIBUTE_DTYPE:
        UIR_TRY(uir_vector_push(&p->arena, &p->integers, ((uir_plan_integer){(int64_t)a->value.dtype})));
        break;
    case UIR_ATTRIBUTE_INTS:
        out.count = a->count;
        for (uint32_t i = 0; i < a->count; i++)
            UIR_TRY(uir_vector_push(&p->arena, &p->integers, ((uir_plan_integer){a->value.integers[i]})));
        break;
    case UIR_ATTRIBUTE_FLOAT:
    case UIR_ATTRIBUTE_FLOATS: {
        const double *reals = a->kind == UIR_ATTRIBUTE_FLOAT ? &a->value.real : a->value.reals;
        out.kind = UIR_PLAN_REALS;
        out.count = a->kind == UIR_ATTRIBUTE_FLOAT ? 1 : a->count;
        for (uint32_t i = 0; i < out.count; i++) {
            uir_plan_integer bits;
            memcpy(&bits.value, &reals[i], sizeof bits.value);
            UIR_TRY(uir_vector_push(&p->arena, &p->integers, bits));
        }
        break;
    }
    case UIR_ATTRIBUTE_STRING: {
        const char *text = uir_string_text(&p->module->strings, a->value.string);
        out.kind = UIR_PLAN_TEXT;
        UIR_TRY(uir_pl_add_text(p, text, strlen(text), &out.first));
        break;
    }
    case UIR_ATTRIBUTE_DIMS: {
        uir_plan_list list;
        UIR_TRY(uir_pl_add_expressions(p, &p->scope, a->value.dims, a->count, &list));
        out.kind = UIR_PLAN_SIZES;
        out.first = list.first;
        out.count = list.count;
        break;
    }
    default:
        return uir_pl_fail(p, node, UIR_STATUS_UNSUPPORTED, "a plan cannot hold its attribute %s", name);
    }
    return uir_vector_push(&p->arena, &p->attributes, out);
}

static uir_status plan_host(planner *p, const uir_node_info *node, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_HOST, .other = UIR_PLAN_NONE};
    const uir_op_row *row = uir_op_get_row(node->op);
    UIR_TRY(uir_pl_add_text(p, row->name, strlen(row->name), &step.target));
    UIR_TRY(list_tensors(p, node->inputs, node->input_count, &step.inputs));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i].id)
            UIR_TRY(add_value(p, node->outputs[i],
                              row->traits & UIR_TRAIT_EFFECT ? UIR_PLAN_STORAGE_OWN : UIR_PLAN_STORAGE_ARENA, 0));
    }
    UIR_TRY(list_tensors(p, node->outputs, node->output_count, &step.outputs));
    step.first_attribute = p->attributes.count;
    for (uint32_t i = 0; i < node->attribute_count; i++) UIR_TRY(add_attribute(p, node, &node->attributes[i]));
    step.attribute_count = p->attributes.count - step.first_attribute;
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

static plan_node *find_rule(uir_op op);

/* ---- what the package's opener computes ---- */
static uir_status plan_custom(planner *p, const uir_node_info *node, uir_node_id id, uint32_t block) {
    uir_plan_step step = {.kind = UIR_PLAN_STEP_HOST, .other = UIR_PLAN_NONE};
    bool effect = (uir_op_get_row(node->op)->traits & UIR_TRAIT_EFFECT) != 0;
    UIR_TRY(uir_pl_add_text(p, "custom", strlen("custom"), &step.target));
    UIR_TRY(list_tensors(p, node->inputs, node->input_count, &step.inputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i].id)
            UIR_TRY(add_value(p, node->outputs[i], effect ? UIR_PLAN_STORAGE_OWN : UIR_PLAN_STORAGE_ARENA, 0));
    UIR_TRY(list_tensors(p, node->outputs, node->output_count, &step.outputs));
    step.first_attribute = p->attributes.count;
    uir_plan_attribute number = {0, UIR_PLAN_INTEGERS, p->integers.count, 1};
    UIR_TRY(uir_vector_push(&p->arena, &p->integers, ((uir_plan_integer){id.id})));
    UIR_TRY(uir_pl_add_text(p, "node", strlen("node"), &number.name));
    UIR_TRY(uir_vector_push(&p->arena, &p->attributes, number));
    UIR_TRY(uir_pl_add_symbols(p, node));
    step.attribute_count = p->attributes.count - step.first_attribute;
    UIR_TRY(describe(p, node, &step));
    return push_step(p, block, &step);
}

/* Whether neither a kernel nor the runtime computes the node. */
static bool is_custom(const uir_node_info *node) {
    return uir_plan_find_maker(node) == UIR_PLAN_BY_OPENER;
}

/* ---- graphs ---- */
static plan_node *find_rule(uir_op op) {
    static const struct {
        uir_op op;
        plan_node *rule;
    } rules[] = {
        {UIR_OP_GROUP, plan_group},
        {UIR_OP_RESHAPE, plan_reshape},
        {UIR_OP_DIM_VALUES, plan_dim_values},
        {UIR_OP_BIND_DIMS, plan_bind_dims},
        {UIR_OP_IF, plan_if},
        {UIR_OP_LOOP, plan_loop},
        {UIR_OP_CHECK_INDICES, plan_check_indices},
        {UIR_OP_CHECK_SIZES, plan_nothing},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].op == op) return rules[i].rule;
    }
    const uir_op_row *row = uir_op_get_row(op);
    return (row->traits & UIR_TRAIT_HOST) && uir_plan_find_host_op(row->name) != UIR_PLAN_NONE ? plan_host : NULL;
}

uir_plan_maker uir_plan_find_maker(const uir_node_info *node) {
    plan_node *rule = find_rule(node->op);
    if (node->op == UIR_OP_GROUP) return node->kernel ? UIR_PLAN_BY_KERNEL : UIR_PLAN_BY_OPENER;
    return !rule ? UIR_PLAN_BY_OPENER : rule == plan_host ? UIR_PLAN_BY_HOST : UIR_PLAN_BY_STEPS;
}

/* A value of the node that no package holds, and what it is; none where there is no such value. */
static uir_value_id find_unheld(const planner *p, const uir_node_info *node, const char **out_what) {
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        uir_value_id value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (value.id && (*out_what = what_is_unheld(uir_value_type(p->module, value)))) return value;
    }
    return (uir_value_id){0};
}

static uir_status refuse_node(planner *p, const uir_node_info *node) {
    const char *what = NULL;
    uir_value_id value = find_unheld(p, node, &what);
    if (!value.id)
        return uir_pl_fail(p, node, UIR_STATUS_UNSUPPORTED, "the node has neither a kernel nor a host operator");
    uir_location where = uir_node_location(p->module, node);
    const char *name = uir_string_text(&p->module->strings, uir_value_info_get(p->module, value)->name);
    p->errors++;
    return uir_error_hint(p->diagnostics, UIR_STATUS_UNSUPPORTED, &where,
                          "pack a model of numeric tensors only; run this model with uir-run",
                          "%s%s%sa package holds no %s, which only the interpreter computes", *name ? "value '" : "",
                          name, *name ? "': " : "", what);
}

uir_status uir_pl_refuse_custom(planner *p, uir_graph_id graph) {
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    uir_status first = UIR_STATUS_OK;
    for (uint32_t i = 0; i < info->nodes.count; i++) {
        const uir_node_info *node = uir_node_get(p->module, info->nodes.data[i]);
        uir_status status = UIR_STATUS_OK;
        if (is_custom(node)) status = refuse_node(p, node);
        for (uint32_t k = 0; k < node->attribute_count && status == UIR_STATUS_OK && node->op != UIR_OP_GROUP; k++)
            if (node->attributes[k].kind == UIR_ATTRIBUTE_GRAPH)
                status = uir_pl_refuse_custom(p, node->attributes[k].value.graph);
        if (first == UIR_STATUS_OK) first = status;
    }
    return first;
}

static uir_status plan_block(planner *p, uir_graph_id graph, uint32_t block) {
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    for (uint32_t i = 0; i < info->nodes.count; i++) {
        const uir_node_info *node = uir_node_get(p->module, info->nodes.data[i]);
        UIR_TRY(uir_pl_add_checks(p, node, block));
        UIR_TRY(is_custom(node) ? plan_custom(p, node, info->nodes.data[i], block)
                                : find_rule(node->op)(p, node, block));
    }
    return UIR_STATUS_OK;
}

/* Whether a step writes the value where it is told to. */
static bool is_placeable(const uir_module *m, uir_value_id value) {
    uir_node_id producer = uir_value_info_get(m, value)->producer;
    if (!producer.id) return false;
    const uir_node_info *node = uir_node_get(m, producer);
    if (node->graph.id != m->main.id) return false;
    const uir_op_row *row = uir_op_get_row(node->op);
    return node->op == UIR_OP_GROUP || node->op == UIR_OP_DIM_VALUES ||
           ((row->traits & UIR_TRAIT_HOST) && !(row->traits & UIR_TRAIT_EFFECT));
}

static uir_status add_port(planner *p, const char *name, uir_value_id value, uint32_t tensor, uir_plan_port *out) {
    const uir_type *type = uir_value_type(p->module, value);
    uint32_t names[UIR_PLAN_MAX_RANK];
    if (type->rank > UIR_PLAN_MAX_RANK) return fail_value(p, value, "tensors of that rank");
    out->tensor = tensor;
    out->slack = UIR_PLAN_NONE;
    out->slack_axis = 0;
    UIR_TRY(uir_pl_add_text(p, name, strlen(name), &out->name));
    for (uint32_t d = 0; d < type->rank; d++) {
        uir_text text;
        uir_text_init(&text, &p->allocator);
        if (!uir_dim_is_const(p->module->dims, type->dims[d], NULL))
            uir_dim_print(p->module->dims, type->dims[d], &text);
        uir_status status = uir_text_status(&text);
        if (status == UIR_STATUS_OK) status = uir_pl_add_text(p, text.data ? text.data : "", text.length, &names[d]);
        uir_text_deinit(&text);
        UIR_TRY(status);
    }
    return uir_pl_add_list(p, names, type->rank, &out->dim_names);
}

static const char *name_of(const planner *p, const char *const *names, uint32_t index, uir_value_id value) {
    return names ? names[index] : uir_string_text(&p->module->strings, uir_value_info_get(p->module, value)->name);
}

uir_status uir_pl_add_graphs(planner *p) {
    const uir_graph_info *main = uir_graph_get(p->module, p->module->main);
    const char *const *input_names = p->options->input_names;
    const char *const *output_names = p->options->output_names;
    UIR_TRY(uir_vector_push(&p->arena, &p->bodies, ((uir_pl_block){.steps = {0}})));
    for (uint32_t i = 0; i < main->inputs.count; i++) {
        uir_value_id value = main->inputs.data[i];
        uir_plan_port port;
        UIR_TRY(add_value(p, value, UIR_PLAN_STORAGE_INPUT, i));
        UIR_TRY(add_port(p, name_of(p, input_names, i, value), value, p->tensor_of[value.id] - 1, &port));
        UIR_TRY(uir_vector_push(&p->arena, &p->inputs, port));
    }
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        uir_value_id value = main->outputs.data[i], source = uir_pl_find_source(p->module, value);
        uir_plan_port port;
        uint32_t tensor;
        UIR_TRY(add_tensor(p, value, UIR_PLAN_STORAGE_OUTPUT, i, &tensor));
        UIR_TRY(add_port(p, name_of(p, output_names, i, value), value, tensor, &port));
        UIR_TRY(uir_vector_push(&p->arena, &p->outputs, port));
        bool sized;
        UIR_TRY(uir_pl_is_sized(p, value, source, &sized));
        if (!sized || !is_placeable(p->module, source) || p->tensor_of[source.id]) continue;
        p->tensor_of[value.id] = tensor + 1;
        UIR_TRY(add_value(p, source, UIR_PLAN_STORAGE_ALIAS, tensor));
    }
    UIR_TRY(plan_block(p, p->module->main, 0));
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        uir_plan_step step = {.kind = UIR_PLAN_STEP_COPY, .target = UIR_PLAN_NONE, .other = UIR_PLAN_NONE};
        uint32_t from, to = p->outputs.data[i].tensor;
        UIR_TRY(find_tensor(p, main->outputs.data[i], &from));
        if (from == to) continue;
        UIR_TRY(uir_pl_add_list(p, &from, 1, &step.inputs));
        UIR_TRY(uir_pl_add_list(p, &to, 1, &step.outputs));
        UIR_TRY(uir_pl_add_text(p, "", 0, &step.node));
        step.op = step.node;
        UIR_TRY(push_step(p, 0, &step));
    }
    UIR_TRY(uir_pl_finish_slack(p));
    return uir_pl_place(p);
}
