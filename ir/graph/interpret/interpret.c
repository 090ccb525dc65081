/* The walk over nodes: values, run-time dims, memory, control. */
#include "base/dims/demand.h"
#include "ir/graph/interpret/interpret.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef uir_status (*run_function)(uir_call *call);
static const run_function functions[UIR_OP_COUNT] = {
#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    [UIR_OP_##constant] = uir_interpret_##run,
#include "ir/graph/ops.def"
};

static void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    uir_interpreter_counter *c = user;
    if (new_size > old_size && c->limit && c->alive + (new_size - old_size) > c->limit) {
        c->limit_hit = true;
        return NULL;
    }
    void *result = c->inner->resize(c->inner->user, pointer, old_size, new_size);
    if (!result && new_size) return NULL;
    c->alive = c->alive + new_size - old_size;
    if (c->alive > c->peak) c->peak = c->alive;
    return result;
}

/* ---- messages ---- */

/* A failure that no message explained yet: why memory could not be had. */
static uir_status explain(uir_call *call, uir_status status) {
    uir_interpreter *interpreter = call->interpreter;
    if (status != UIR_STATUS_OUT_OF_MEMORY) return status;
    if (!interpreter->counter.limit_hit) return uir_call_fail(call, status, "memory is exhausted");
    return uir_call_fail(call, UIR_STATUS_LIMIT, "tensors exceed their limit of %llu bytes",
                         (unsigned long long)interpreter->options.byte_limit);
}

static const char *value_name(const uir_module *module, uir_value_id value) {
    const char *name = uir_string_text(&module->strings, uir_value_info_get(module, value)->name);
    return *name ? name : "(unnamed)";
}

/* ---- run-time dims ---- */

typedef enum bind_result { BIND_OK, BIND_DIFFERS, BIND_UNBOUND, BIND_FACTS } bind_result;

static bind_result bind_symbol(uir_interpreter *interpreter, uir_symbol symbol, int64_t value) {
    if (symbol.id >= interpreter->symbol_count) return BIND_UNBOUND;
    if (interpreter->symbol_bound[symbol.id])
        return interpreter->symbol_values[symbol.id] == value ? BIND_OK : BIND_DIFFERS;
    uir_symbol_facts facts = uir_dims_symbol_facts(interpreter->module->dims, symbol);
    if (!uir_facts_hold(facts, value)) return BIND_FACTS;
    interpreter->symbol_bound[symbol.id] = true;
    interpreter->symbol_values[symbol.id] = value;
    interpreter->bound_log[interpreter->bound_count++] = symbol.id;
    return BIND_OK;
}

static void unbind_to(uir_interpreter *interpreter, uint32_t mark) {
    while (interpreter->bound_count > mark)
        interpreter->symbol_bound[interpreter->bound_log[--interpreter->bound_count]] = false;
}

/* An extent against a dim: binds a plain symbol that is not bound, else compares. */
static bind_result match_dim(uir_interpreter *interpreter, uir_dim dim, int64_t actual) {
    uir_symbol symbol;
    int64_t expected;
    if (uir_dim_is_symbol(interpreter->module->dims, dim, &symbol)) return bind_symbol(interpreter, symbol, actual);
    if (!uir_interpreter_evaluate(interpreter, dim, &expected)) return BIND_UNBOUND;
    return expected == actual ? BIND_OK : BIND_DIFFERS;
}

uir_status uir_interpreter_bind(uir_call *call, uir_symbol symbol, int64_t value) {
    uir_interpreter *interpreter = call->interpreter;
    const char *name = uir_dims_symbol_name(call->module->dims, symbol);
    char message[320];
    switch (bind_symbol(interpreter, symbol, value)) {
    case BIND_OK:
        return UIR_STATUS_OK;
    case BIND_FACTS:
        uir_facts_describe(name, uir_dims_symbol_facts(call->module->dims, symbol), value, message, sizeof message);
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%s", message);
    case BIND_DIFFERS:
        uir_conflict_describe(name, interpreter->symbol_values[symbol.id], value, message, sizeof message);
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%s", message);
    default:
        return uir_call_fail(call, UIR_STATUS_INTERNAL, "size %s cannot be bound", name);
    }
}

/* ---- running ---- */

/* A tensor of someone else's as a value of this run. Its own count of references is left alone: other runs may use the
 * same constants and inputs at the same time, on other threads. */
static uir_status borrow_tensor(uir_interpreter *interpreter, const uir_tensor *tensor, uir_datum **out_datum) {
    const uir_allocator *allocator = &interpreter->allocator;
    uir_tensor *view;
    UIR_TRY(uir_tensor_create_borrowed(allocator, tensor->dtype, tensor->rank, tensor->shape, tensor->data, &view));
    uir_status status = uir_datum_create_tensor(allocator, view, out_datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(view);
    return status;
}

static uir_status borrow_datum(uir_interpreter *interpreter, const uir_datum *datum, uir_datum **out_datum) {
    if (datum->kind == UIR_VALUE_TENSOR) return borrow_tensor(interpreter, datum->tensor, out_datum);
    UIR_TRY(uir_datum_create_list(&interpreter->allocator, datum->kind, datum->dtype, out_datum));
    for (uint32_t i = 0; i < datum->count; i++) {
        uir_datum *element;
        uir_status status = borrow_datum(interpreter, datum->elements[i], &element);
        if (status == UIR_STATUS_OK) {
            status = uir_datum_append(*out_datum, element);
            if (status != UIR_STATUS_OK) uir_datum_release(element);
        }
        if (status == UIR_STATUS_OK) continue;
        uir_datum_release(*out_datum);
        return status;
    }
    return UIR_STATUS_OK;
}

/* What a value holds now; NULL for none. A constant is borrowed when it is first asked for. */
static uir_status get_value(uir_interpreter *interpreter, uir_value_id value, uir_datum **out_datum) {
    *out_datum = NULL;
    if (!value.id) return UIR_STATUS_OK;
    uir_datum **slot = &interpreter->slots[value.id];
    const uir_tensor *constant = uir_value_info_get(interpreter->module, value)->constant;
    if (!*slot && constant) UIR_TRY(borrow_tensor(interpreter, constant, slot));
    *out_datum = *slot;
    if (*slot) return UIR_STATUS_OK;
    return uir_error(interpreter->diagnostics, UIR_STATUS_INTERNAL, NULL, "value %u is used before it is computed",
                     value.id);
}

/* Compares a result with the type that inference gave it, and binds the dims that are learned here. */
static uir_status check_result(uir_call *call, uint32_t index) {
    uir_interpreter *interpreter = call->interpreter;
    const uir_datum *datum = call->outputs[index];
    const uir_type *type = uir_value_type(call->module, call->node->outputs[index]);
    if (!datum) return uir_call_fail(call, UIR_STATUS_INTERNAL, "result %u was not computed", index);
    if (datum->kind != type->kind)
        return uir_call_fail(call, UIR_STATUS_INTERNAL, "result %u has the wrong kind of value", index);
    if (datum->kind != UIR_VALUE_TENSOR) return UIR_STATUS_OK;
    const uir_tensor *tensor = datum->tensor;
    if (type->dtype && tensor->dtype != type->dtype)
        return uir_call_fail(call, UIR_STATUS_INTERNAL, "result %u is %s instead of %s", index,
                             uir_dtype_name(tensor->dtype), uir_dtype_name(type->dtype));
    if (!type->rank_known) return UIR_STATUS_OK;
    /* Control flow and lists give what the data says; other ops what was inferred. */
    uir_status status =
        uir_op_get_row(call->node->op)->traits & UIR_TRAIT_EFFECT ? UIR_STATUS_BAD_DATA : UIR_STATUS_INTERNAL;
    if (tensor->rank != type->rank)
        return uir_call_fail(call, status, "result %u has rank %u instead of %u", index, tensor->rank, type->rank);
    for (uint32_t d = 0; d < type->rank; d++) {
        if (match_dim(interpreter, type->dims[d], tensor->shape[d]) == BIND_OK) continue;
        int64_t expected = -1;
        char text[128];
        uir_interpreter_dim_text(interpreter, type->dims[d], text, sizeof text);
        if (!uir_interpreter_evaluate(interpreter, type->dims[d], &expected))
            return uir_call_fail(call, status, "dim %u of result %u is %lld, which %s forbids", d, index,
                                 (long long)tensor->shape[d], text);
        return uir_call_fail(call, status, "dim %u of result %u is %lld instead of %lld (%s)", d, index,
                             (long long)tensor->shape[d], (long long)expected, text);
    }
    return UIR_STATUS_OK;
}

static double now_ms(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static uir_node_values values_of(const uir_call *call) {
    const uir_interpreter *interpreter = call->interpreter;
    return (uir_node_values){call->module,
                             call->node_id,
                             call->inputs,
                             call->outputs,
                             interpreter->symbol_values,
                             interpreter->symbol_bound,
                             interpreter->symbol_count};
}

/* The shape of a result that is a tensor, where it is known before the node has run. */
static bool find_result(const uir_call *call, uint32_t index, int64_t *out_shape) {
    const uir_type *type = uir_value_type(call->module, call->node->outputs[index]);
    bool known = type->kind == UIR_VALUE_TENSOR && type->rank_known && type->dtype;
    for (uint32_t d = 0; known && d < type->rank; d++)
        known = uir_interpreter_evaluate(call->interpreter, type->dims[d], &out_shape[d]) && out_shape[d] >= 0;
    return known;
}

static bool is_wanted(const uir_call *call, uint32_t index) {
    return call->node->outputs[index].id != 0;
}

static uir_status make_results(uir_call *call) {
    int64_t shape[UIR_MAX_RANK];
    uir_tensor *tensor;
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        if (!is_wanted(call, i)) continue;
        const uir_type *type = uir_value_type(call->module, call->node->outputs[i]);
        (void)find_result(call, i, shape);
        UIR_TRY(uir_call_create(call, i, type->dtype, type->rank, shape, &tensor));
    }
    return UIR_STATUS_OK;
}

/* A group by the hook, into results made for it; what is made stays with the call. */
static uir_status run_hooked(uir_call *call, bool *out_ran) {
    int64_t shape[UIR_MAX_RANK];
    *out_ran = false;
    for (uint32_t i = 0; i < call->node->output_count; i++)
        if (!find_result(call, i, shape)) return UIR_STATUS_OK;
    UIR_TRY(make_results(call));
    uir_node_values values = values_of(call);
    return call->interpreter->options.run_group(call->interpreter->options.user, &values, out_ran);
}

/* No elements, no work: results without elements are made, whatever the extents of operands are, and nothing is
 * computed; loops do not turn. Not where what runs is more than its results: branches, checks, dims that data tell, a
 * group's nodes with the sizes that each demands. */
static uir_status give_nothing(uir_call *call, bool *out_ran) {
    int64_t shape[UIR_MAX_RANK];
    uint64_t elements;
    *out_ran = false;
    uir_op op = call->node->op;
    bool more = op == UIR_OP_GROUP || (uir_op_get_row(op)->traits & UIR_TRAIT_EFFECT && op != UIR_OP_LOOP);
    if (!call->node->output_count || more) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        if (!is_wanted(call, i)) continue;
        if (!find_result(call, i, shape)) return UIR_STATUS_OK;
        uint32_t rank = uir_value_type(call->module, call->node->outputs[i])->rank;
        if (!uir_shape_element_count(shape, rank, &elements) || elements) return UIR_STATUS_OK;
    }
    *out_ran = true;
    return make_results(call);
}

/* Runs one node on operands; on success all its outputs are made and checked. */
static uir_status run_call(uir_call *call) {
    run_function run = functions[call->node->op];
    if (!run) return uir_call_fail(call, UIR_STATUS_INTERNAL, "not a primitive");
    UIR_TRY(uir_call_check_demands(call));
    bool ran = false;
    uir_status status = give_nothing(call, &ran);
    if (status == UIR_STATUS_OK && !ran && call->node->op == UIR_OP_GROUP && call->interpreter->options.run_group) {
        status = run_hooked(call, &ran);
        for (uint32_t i = 0; status == UIR_STATUS_OK && !ran && i < call->node->output_count; i++) {
            uir_datum_release(call->outputs[i]);
            call->outputs[i] = NULL;
        }
    }
    if (status == UIR_STATUS_OK && !ran) status = run(call);
    if (status == UIR_STATUS_OK && uir_call_cancelled(call)) status = UIR_STATUS_CANCELLED;
    return explain(call, status);
}

enum { INLINE_OPERANDS = 16 };

static uir_status run_node(uir_interpreter *interpreter, uir_node_id node_id) {
    const uir_module *module = interpreter->module;
    const uir_node_info *node = uir_node_get(module, node_id);
    uir_datum *inline_inputs[INLINE_OPERANDS], *inline_outputs[INLINE_OPERANDS] = {0};
    bool inline_last[INLINE_OPERANDS];
    uir_datum **inputs = inline_inputs, **outputs = inline_outputs;
    bool *last_use = inline_last;
    if (interpreter->arena.budget)
        uir_budget_at(interpreter->arena.budget, uir_string_text(&module->strings, node->name),
                      uir_op_said_name(node->op));
    if (uir_call_cancelled(&(uir_call){.interpreter = interpreter})) return UIR_STATUS_CANCELLED;
    const uir_allocator *allocator = &interpreter->allocator;
    size_t bytes = (node->input_count + 1) * (sizeof *inputs + 1) + (node->output_count + 1) * sizeof *outputs;
    void *block = NULL;
    if (node->input_count > INLINE_OPERANDS || node->output_count > INLINE_OPERANDS) {
        UIR_TRY_ALLOCATE(block, uir_allocate_zeroed(allocator, bytes));
        inputs = block;
        outputs = inputs + node->input_count;
        last_use = (bool *)(outputs + node->output_count);
    }
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < node->input_count && status == UIR_STATUS_OK; i++) {
        status = get_value(interpreter, node->inputs[i], &inputs[i]);
        last_use[i] = false;
    }
    if (status == UIR_STATUS_OK) {
        for (uint32_t v = interpreter->freed[node_id.id]; v; v = interpreter->next[v])
            for (uint32_t i = 0; i < node->input_count; i++)
                if (node->inputs[i].id == v) last_use[i] = true;
        uir_call call = {interpreter, module, node_id, node, allocator, inputs, last_use, outputs};
        double start = interpreter->options.after_node ? now_ms() : 0;
        status = run_call(&call);
        for (uint32_t i = 0; i < node->output_count && status == UIR_STATUS_OK; i++)
            if (node->outputs[i].id) status = check_result(&call, i);
        if (status == UIR_STATUS_OK && interpreter->options.after_node)
            interpreter->options.after_node(interpreter->options.user, module, node_id, now_ms() - start);
        if (status == UIR_STATUS_OK && interpreter->options.after_values) {
            uir_node_values values = values_of(&call);
            status = interpreter->options.after_values(interpreter->options.user, &values);
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (status == UIR_STATUS_OK && node->outputs[i].id)
            interpreter->slots[node->outputs[i].id] = outputs[i];
        else
            uir_datum_release(outputs[i]);
    }
    if (block) uir_release(allocator, block, bytes);
    for (uint32_t v = interpreter->freed[node_id.id]; v; v = interpreter->next[v]) {
        uir_datum_release(interpreter->slots[v]);
        interpreter->slots[v] = NULL;
    }
    return status;
}

static uir_status run_nodes(uir_interpreter *interpreter, uir_graph_id graph) {
    const uir_graph_info *info = uir_graph_get(interpreter->module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) UIR_TRY(run_node(interpreter, info->nodes.data[n]));
    return UIR_STATUS_OK;
}

/* Releases whatever a graph's own values still hold. */
static void clear_graph(uir_interpreter *interpreter, uir_graph_id graph) {
    const uir_module *module = interpreter->module;
    const uir_graph_info *info = uir_graph_get(module, graph);
    for (uint32_t i = 0; i < info->inputs.count; i++) {
        uint32_t value = info->inputs.data[i].id;
        uir_datum_release(interpreter->slots[value]);
        interpreter->slots[value] = NULL;
    }
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->output_count; i++) {
            uir_datum_release(interpreter->slots[node->outputs[i].id]);
            interpreter->slots[node->outputs[i].id] = NULL;
        }
    }
}

static uir_status collect_outputs(uir_interpreter *interpreter, uir_graph_id graph, uir_datum **out_outputs) {
    const uir_graph_info *info = uir_graph_get(interpreter->module, graph);
    for (uint32_t i = 0; i < info->outputs.count; i++) {
        uir_status status = get_value(interpreter, info->outputs.data[i], &out_outputs[i]);
        if (status == UIR_STATUS_OK) {
            uir_datum_retain(out_outputs[i]);
            continue;
        }
        while (i > 0) uir_datum_release(out_outputs[--i]);
        return status;
    }
    return UIR_STATUS_OK;
}

/* ---- bodies ---- */

static uir_status match_body_input(uir_call *call, uir_value_id value, uint32_t index) {
    const uir_datum *datum = call->interpreter->slots[value.id];
    const uir_type *type = uir_value_type(call->module, value);
    if (datum->kind != type->kind && type->kind != UIR_VALUE_OPTIONAL)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "body input %u has the wrong kind of value", index);
    if (datum->kind != type->kind) return UIR_STATUS_OK;
    if (datum->kind != UIR_VALUE_TENSOR || !type->rank_known) return UIR_STATUS_OK;
    if (datum->tensor->rank != type->rank)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "body input %u has rank %u instead of %u", index,
                             datum->tensor->rank, type->rank);
    for (uint32_t d = 0; d < type->rank; d++) {
        char text[128];
        if (match_dim(call->interpreter, type->dims[d], datum->tensor->shape[d]) != BIND_OK)
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "dim %u of body input %u is %lld, which is not %s", d,
                                 index, (long long)datum->tensor->shape[d],
                                 uir_interpreter_dim_text(call->interpreter, type->dims[d], text, sizeof text));
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpreter_run_body(uir_call *call, uir_graph_id graph, uir_datum **inputs, uir_datum **out_outputs) {
    uir_interpreter *interpreter = call->interpreter;
    const uir_graph_info *info = uir_graph_get(call->module, graph);
    uint32_t mark = interpreter->bound_count;
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < info->inputs.count; i++) interpreter->slots[info->inputs.data[i].id] = inputs[i];
    for (uint32_t i = 0; i < info->inputs.count && status == UIR_STATUS_OK; i++)
        status = match_body_input(call, info->inputs.data[i], i);
    if (status == UIR_STATUS_OK) status = run_nodes(interpreter, graph);
    if (status == UIR_STATUS_OK) status = collect_outputs(interpreter, graph, out_outputs);
    clear_graph(interpreter, graph);
    unbind_to(interpreter, mark);
    return status;
}

void uir_interpreter_guess_shape(uir_call *call, const uir_type *type, int64_t *out_shape) {
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        if (!uir_interpreter_evaluate(call->interpreter, type->dims[d], &out_shape[d]) || out_shape[d] < 0)
            out_shape[d] = 0;
}

/* ---- inputs and outputs ---- */

static uir_status input_error(uir_interpreter *interpreter, uir_value_id value, const char *format, ...)
    UIR_PRINTF(3, 4);
static uir_status input_error(uir_interpreter *interpreter, uir_value_id value, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(interpreter->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%s': %s",
                     value_name(interpreter->module, value), message);
}

static uir_status check_input(uir_interpreter *interpreter, uir_value_id value, const uir_datum *datum) {
    const uir_type *type = uir_value_type(interpreter->module, value);
    if (!datum) return input_error(interpreter, value, "no value is given");
    if (datum->kind != type->kind) return input_error(interpreter, value, "the given value has the wrong kind");
    if (type->dtype && datum->dtype && datum->dtype != type->dtype)
        return input_error(interpreter, value, "%s is given, %s is expected", uir_dtype_name(datum->dtype),
                           uir_dtype_name(type->dtype));
    if (type->kind == UIR_VALUE_TENSOR && type->rank_known && datum->tensor->rank != type->rank)
        return input_error(interpreter, value, "rank %u is given, %u is expected", datum->tensor->rank, type->rank);
    return UIR_STATUS_OK;
}

/* Matches the dims that are plain symbols (first) or all others (then: expressions need the symbols). */
static uir_status match_input(uir_interpreter *interpreter, uir_value_id value, const uir_datum *datum, bool plain) {
    const uir_type *type = uir_value_type(interpreter->module, value);
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return UIR_STATUS_OK;
    for (uint32_t d = 0; d < type->rank; d++) {
        uir_symbol symbol;
        int64_t actual = datum->tensor->shape[d], expected = 0;
        if (uir_dim_is_symbol(interpreter->module->dims, type->dims[d], &symbol) != plain) continue;
        char text[128], message[320];
        uir_interpreter_dim_text(interpreter, type->dims[d], text, sizeof text);
        switch (match_dim(interpreter, type->dims[d], actual)) {
        case BIND_OK:
            break;
        case BIND_DIFFERS:
            uir_interpreter_evaluate(interpreter, type->dims[d], &expected);
            uir_extent_describe(d, uir_dim_is_const(interpreter->module->dims, type->dims[d], NULL) ? "" : text, actual,
                                expected, message, sizeof message);
            return input_error(interpreter, value, "%s", message);
        case BIND_FACTS:
            return input_error(interpreter, value, "dim %u is %lld, which %s forbids", d, (long long)actual, text);
        case BIND_UNBOUND:
            return input_error(interpreter, value, "dim %u is %s, which no input determines", d, text);
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpreter_bind_inputs(uir_interpreter *interpreter, uir_datum *const *inputs, uint32_t count) {
    const uir_module *module = interpreter->module;
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    if (count != graph->inputs.count)
        return uir_error(interpreter->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "%u inputs are given, the model has %u", count, graph->inputs.count);
    for (uint32_t i = 0; i < count; i++) UIR_TRY(check_input(interpreter, graph->inputs.data[i], inputs[i]));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(match_input(interpreter, graph->inputs.data[i], inputs[i], true));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(match_input(interpreter, graph->inputs.data[i], inputs[i], false));
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(borrow_datum(interpreter, inputs[i], &interpreter->slots[graph->inputs.data[i].id]));
    }
    return UIR_STATUS_OK;
}

static bool is_counted(const uir_interpreter *interpreter, const uir_tensor *tensor) {
    return tensor->allocator.resize == interpreter->allocator.resize &&
           tensor->allocator.user == interpreter->allocator.user;
}

/* From the counted allocator to the caller's own, which it forwards to. */
static void hand_over(const uir_interpreter *interpreter, uir_datum *datum, const uir_allocator *allocator) {
    if (datum->allocator == &interpreter->allocator) datum->allocator = allocator;
    if (datum->tensor && is_counted(interpreter, datum->tensor)) datum->tensor->allocator = *allocator;
    for (uint32_t i = 0; i < datum->count; i++) hand_over(interpreter, datum->elements[i], allocator);
}

/* A result must not depend on what the module or the caller owns (constants may lie in the model's file): such tensors
 * get bytes of their own. Changes shared datums in place, which means the same to everyone. */
static uir_status own_output(uir_interpreter *interpreter, uir_datum *datum) {
    if (datum->allocator != &interpreter->allocator) return UIR_STATUS_OK; /* an operand of uir_node_interpret */
    for (uint32_t i = 0; i < datum->count; i++) UIR_TRY(own_output(interpreter, datum->elements[i]));
    uir_tensor *tensor = datum->tensor, *copy;
    if (!tensor || (tensor->owned && is_counted(interpreter, tensor))) return UIR_STATUS_OK;
    UIR_TRY(uir_tensor_create(&interpreter->allocator, tensor->dtype, tensor->rank, tensor->shape, &copy));
    uir_status status = UIR_STATUS_OK;
    const uir_string_view *views = tensor->data;
    bool strings = tensor->dtype == UIR_DTYPE_STRING;
    if (!strings && tensor->byte_size) memcpy(copy->data, tensor->data, tensor->byte_size);
    for (uint64_t i = 0; strings && i < tensor->element_count && status == UIR_STATUS_OK; i++)
        status = uir_tensor_set_string(copy, i, views[i].text, views[i].length);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(copy);
        return status;
    }
    uir_tensor_release(tensor);
    datum->tensor = copy;
    return UIR_STATUS_OK;
}

uir_status uir_interpreter_init(uir_interpreter *interpreter, const uir_module *module, const uir_allocator *allocator,
                                uir_diagnostics *diagnostics, const uir_interpreter_options *options) {
    *interpreter = (uir_interpreter){.module = module, .diagnostics = diagnostics};
    if (options) interpreter->options = *options;
    interpreter->counter = (uir_interpreter_counter){.inner = allocator, .limit = interpreter->options.byte_limit};
    interpreter->allocator = (uir_allocator){count_resize, &interpreter->counter};
    uir_arena_init(&interpreter->arena, allocator);
    uir_arena *arena = &interpreter->arena;
    uint32_t symbols = interpreter->symbol_count = uir_dims_symbol_count(module->dims);
    UIR_TRY_ALLOCATE(interpreter->symbol_values, uir_arena_allocate_array(arena, symbols + 1, sizeof(int64_t)));
    UIR_TRY_ALLOCATE(interpreter->symbol_bound, uir_arena_allocate_array(arena, symbols + 1, sizeof(bool)));
    UIR_TRY_ALLOCATE(interpreter->bound_log, uir_arena_allocate_array(arena, symbols + 1, sizeof(uint32_t)));
    return UIR_STATUS_OK;
}

static uir_status run_main(uir_interpreter *interpreter, uir_datum *const *inputs, uint32_t input_count,
                           uir_datum **out_outputs, uint32_t output_count) {
    const uir_module *module = interpreter->module;
    UIR_TRY_ALLOCATE(interpreter->slots,
                     uir_arena_allocate_array(&interpreter->arena, module->values.count, sizeof(uir_datum *)));
    UIR_TRY(uir_interpreter_find_last_uses(interpreter));
    UIR_TRY(uir_interpreter_bind_inputs(interpreter, inputs, input_count));
    if (output_count != uir_graph_get(module, module->main)->outputs.count)
        return uir_error(interpreter->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "%u outputs are requested, the model has %u", output_count,
                         uir_graph_get(module, module->main)->outputs.count);
    UIR_TRY(run_nodes(interpreter, module->main));
    return collect_outputs(interpreter, module->main, out_outputs);
}

uir_status uir_module_interpret(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                const uir_interpreter_options *options, uir_datum *const *inputs, uint32_t input_count,
                                uir_datum **out_outputs, uint32_t output_count, uint64_t *out_peak_bytes) {
    uir_interpreter interpreter;
    for (uint32_t i = 0; i < output_count; i++) out_outputs[i] = NULL;
    uir_status status = uir_interpreter_init(&interpreter, module, allocator, diagnostics, options);
    if (status == UIR_STATUS_OK) status = run_main(&interpreter, inputs, input_count, out_outputs, output_count);
    for (uint32_t i = 0; i < output_count && status == UIR_STATUS_OK; i++)
        status = own_output(&interpreter, out_outputs[i]);
    for (uint32_t i = 0; interpreter.slots && i < module->values.count; i++) uir_datum_release(interpreter.slots[i]);
    for (uint32_t i = 0; i < output_count; i++) {
        if (status != UIR_STATUS_OK) {
            uir_datum_release(out_outputs[i]);
            out_outputs[i] = NULL;
        } else {
            hand_over(&interpreter, out_outputs[i], allocator);
        }
    }
    if (status == UIR_STATUS_OUT_OF_MEMORY && interpreter.counter.limit_hit) status = UIR_STATUS_LIMIT;
    if (out_peak_bytes) *out_peak_bytes = interpreter.counter.peak;
    uir_arena_deinit(&interpreter.arena);
    return status;
}

/* Runs the node with what `interpreter` has bound; the outputs are the caller's. */
static uir_status run_alone(uir_interpreter *interpreter, uir_node_id node_id, uir_datum *const *inputs,
                            const uir_allocator *allocator, uir_datum **out_outputs) {
    const uir_node_info *node = uir_node_get(interpreter->module, node_id);
    uir_call call = {interpreter, interpreter->module, node_id, node, &interpreter->allocator, inputs,
                     NULL,        out_outputs};
    uir_status status = run_call(&call);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (status == UIR_STATUS_OK && !out_outputs[i]) status = UIR_STATUS_INTERNAL;
        if (status == UIR_STATUS_OK) status = own_output(interpreter, out_outputs[i]);
        if (status == UIR_STATUS_OK) hand_over(interpreter, out_outputs[i], allocator);
    }
    for (uint32_t i = 0; i < node->output_count && status != UIR_STATUS_OK; i++) {
        uir_datum_release(out_outputs[i]);
        out_outputs[i] = NULL;
    }
    return status;
}

uir_status uir_node_interpret(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                              uir_node_id node_id, uir_datum *const *inputs, uir_datum **out_outputs) {
    uir_interpreter interpreter;
    const uir_node_info *node = uir_node_get(module, node_id);
    for (uint32_t i = 0; i < node->output_count; i++) out_outputs[i] = NULL;
    if (uir_op_get_row(node->op)->section != UIR_SECTION_PRIMITIVE ||
        uir_op_get_row(node->op)->traits & (UIR_TRAIT_CONTROL | UIR_TRAIT_EFFECT | UIR_TRAIT_RANDOM))
        return UIR_STATUS_INVALID_ARGUMENT;
    uir_status status = uir_interpreter_init(&interpreter, module, allocator, diagnostics, NULL);
    if (status == UIR_STATUS_OK) status = run_alone(&interpreter, node_id, inputs, allocator, out_outputs);
    uir_arena_deinit(&interpreter.arena);
    return status;
}

uir_status uir_node_interpret_bound(const uir_module *module, const uir_allocator *allocator,
                                    uir_diagnostics *diagnostics, const uir_interpreter_options *options,
                                    uir_node_id node_id, const uir_bound_symbol *symbols, uint32_t symbol_count,
                                    uir_datum *const *inputs, uir_datum **out_outputs) {
    uir_interpreter interpreter;
    const uir_node_info *node = uir_node_get(module, node_id);
    for (uint32_t i = 0; i < node->output_count; i++) out_outputs[i] = NULL;
    if ((uir_op_get_row(node->op)->traits & UIR_TRAIT_CONTROL) && node->op != UIR_OP_GROUP)
        return UIR_STATUS_INVALID_ARGUMENT;
    uir_status status = uir_interpreter_init(&interpreter, module, allocator, diagnostics, options);
    if (status == UIR_STATUS_OK) {
        interpreter.slots = uir_arena_allocate_array(&interpreter.arena, module->values.count, sizeof(uir_datum *));
        status = interpreter.slots ? uir_interpreter_find_last_uses(&interpreter) : UIR_STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < symbol_count && status == UIR_STATUS_OK; i++)
        (void)bind_symbol(&interpreter, symbols[i].symbol, symbols[i].value);
    if (status == UIR_STATUS_OK) status = run_alone(&interpreter, node_id, inputs, allocator, out_outputs);
    for (uint32_t i = 0; interpreter.slots && i < module->values.count; i++) uir_datum_release(interpreter.slots[i]);
    uir_arena_deinit(&interpreter.arena);
    return status;
}
