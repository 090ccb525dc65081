/* Graphs and nodes. */
#include "frontend/import.h"
#include "ir/graph/origins.h"

#include <stdio.h>
#include <string.h>

uir_status uir_import_spend(uir_importer *importer, uint64_t amount) {
    if (!importer->frame) return UIR_STATUS_OK;
    importer->inlined_work += amount;
    if (importer->inlined_work <= UIR_IMPORT_MAX_INLINED_WORK) return UIR_STATUS_OK;
    return uir_error(importer->diagnostics, UIR_STATUS_LIMIT, &(uir_location){.file = importer->file},
                     "the graph is too large with the model's functions inlined");
}

uir_status uir_import_place(uir_importer *importer, const UirOnnx__NodeProto *node, uir_location *out_place) {
    *out_place = (uir_location){.file = importer->file};
    uir_bytes name = UIR_PROTO_BYTES(node, name);
    for (size_t i = 0; i < node->n_output && !name.length; i++) name = uir_proto_bytes(true, node->output[i]);
    UIR_TRY(uir_import_text(importer, name, &importer->scratch, &out_place->node));
    const char *op, *domain;
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(node, op_type), &importer->scratch, &op));
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(node, domain), &importer->scratch, &domain));
    out_place->op = op;
    if (*domain && strcmp(domain, "ai.onnx") != 0) {
        size_t domain_length = strlen(domain), op_length = strlen(op);
        char *full;
        UIR_TRY_ALLOCATE(full, uir_arena_allocate(&importer->scratch, domain_length + op_length + 3));
        memcpy(full, domain, domain_length);
        memcpy(full + domain_length, "::", 2);
        memcpy(full + domain_length + 2, op, op_length + 1);
        out_place->op = full;
    }
    return UIR_STATUS_OK;
}

uir_status uir_import_use(uir_importer *importer, uir_bytes bytes, const uir_location *place, const char *what,
                          uir_value_id *out_value) {
    uir_name name;
    *out_value = (uir_value_id){0};
    UIR_TRY(uir_import_name(importer, bytes, &name));
    if (!name.id) return UIR_STATUS_OK;
    const uir_import_binding *binding = uir_import_find(importer, name);
    if (!binding) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "%s '%.*s' is undefined", what,
                                  UIR_BYTES_FORMAT(bytes));
    }
    *out_value = binding->value;
    return UIR_STATUS_OK;
}

/* ---- one node ---- */

static bool is_supported(const uir_importer *importer, uir_op op) {
    return !importer->source->is_supported || importer->source->is_supported(op);
}

/* The supported op whose name is the nearest, of those that differ in a third of it at most; of equally near ones that
 * of the domain. NONE where there is none. */
static uir_op find_nearest_op(const uir_importer *importer, const char *domain, const char *name) {
    uir_op best = UIR_OP_NONE;
    size_t best_distance = 2 * (strlen(name) / 3 + 1) + 2;
    for (int op = 0; op < UIR_OP_COUNT; op++) {
        const uir_op_row *row = uir_op_get_row((uir_op)op);
        if (row->section != UIR_SECTION_ONNX || !is_supported(importer, (uir_op)op)) continue;
        size_t distance = 2 * (size_t)uir_edit_distance(name, row->name) + (strcmp(domain, row->domain) != 0);
        if (distance >= best_distance) continue;
        best = (uir_op)op;
        best_distance = distance;
    }
    return best;
}

enum { HINT_SIZE = 400 };

/* What to do about an op that cannot be had: the nearest one, a function of the model's own, the list. */
static const char *write_op_hint(const uir_importer *importer, const uir_location *place, const char *domain,
                                 const char *name, char *out_hint) {
    const uir_op_row *near = uir_op_get_row(find_nearest_op(importer, domain, name));
    bool found = near->section == UIR_SECTION_ONNX;
    snprintf(out_hint, HINT_SIZE, "%s%s%s%s%sdefine a function %.100s in the model, or list all ops with --list-ops",
             found ? "the nearest supported op is " : "", found && *near->domain ? near->domain : "",
             found && *near->domain ? "::" : "", found ? near->name : "", found ? "; " : "", place->op);
    return out_hint;
}

/* The op that the node names, or NONE with the reason reported. */
static uir_status find_op(uir_importer *importer, const UirOnnx__NodeProto *node, const uir_location *place,
                          uir_op *out_op, int *out_since) {
    uir_bytes domain = UIR_PROTO_BYTES(node, domain), type = UIR_PROTO_BYTES(node, op_type);
    if (uir_bytes_equal(domain, (uir_bytes){"ai.onnx", 7})) domain.length = 0;
    uir_name domain_name, type_name;
    UIR_TRY(uir_import_name(importer, domain, &domain_name));
    UIR_TRY(uir_import_name(importer, type, &type_name));
    *out_op = UIR_OP_NONE;
    int64_t opset = uir_import_opset_version(importer, domain_name);
    uir_op op = domain_name.id ? UIR_OP_NONE : importer->ops.data[type_name.id];
    if (op == UIR_OP_NONE && !memchr(type.data, 0, type.length) && !memchr(domain.data, 0, domain.length)) {
        op = uir_op_find_onnx(uir_string_text(&importer->names, domain_name),
                              uir_string_text(&importer->names, type_name));
        if (!domain_name.id) importer->ops.data[type_name.id] = op;
    }
    char hint[HINT_SIZE];
    const char *domain_text = uir_string_text(&importer->names, domain_name);
    const char *type_text = uir_string_text(&importer->names, type_name);
    if (op == UIR_OP_NONE && domain.length && opset == 0) {
        return uir_import_unsupported_found(importer, place,
                                            write_op_hint(importer, place, domain_text, type_text, hint),
                                            "unknown op '%.*s' of domain '%.*s', and opset_import lacks the domain",
                                            UIR_BYTES_FORMAT(type), UIR_BYTES_FORMAT(domain));
    }
    if (op == UIR_OP_NONE) {
        if (!domain.length) domain = (uir_bytes){"ai.onnx", 7};
        return uir_import_unsupported_found(importer, place,
                                            write_op_hint(importer, place, domain_text, type_text, hint),
                                            "unknown op '%.*s' of domain '%.*s', version %lld", UIR_BYTES_FORMAT(type),
                                            UIR_BYTES_FORMAT(domain), (long long)opset);
    }
    const uir_op_row *row = uir_op_get_row(op);
    if (opset == 0) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "the domain '%s' is used but not in opset_import",
                                  domain.length ? row->domain : "ai.onnx");
    }
    *out_since = uir_op_since_version(op, opset > INT32_MAX ? INT32_MAX : (int)opset);
    if (*out_since == 0) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "the op did not exist in opset %lld, which the model imports (its versions are %s)",
                                  (long long)opset, row->versions);
    }
    if (!is_supported(importer, op)) {
        return uir_import_unsupported_found(importer, place,
                                            write_op_hint(importer, place, row->domain, row->name, hint),
                                            "the op '%s', version %d, is not supported", row->name, *out_since);
    }
    *out_op = op;
    return UIR_STATUS_OK;
}

/* Given and needed: `given` counts the last non-empty name, `listed` all. */
static uir_status check_arity(uir_importer *importer, const uir_location *place, const char *what, size_t given,
                              size_t listed, int min, int max, bool *good) {
    if (max >= 0 && given > (size_t)max) {
        *good = false;
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "%zu %ss; the op has at most %d", given,
                                  what, max);
    }
    if (listed < (size_t)min) {
        *good = false;
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "%zu %ss; the op needs at least %d",
                                  listed, what, min);
    }
    return UIR_STATUS_OK;
}

static uint32_t given_count(const ProtobufCBinaryData *names, size_t count) {
    while (count && names[count - 1].len == 0) count--;
    return (uint32_t)count;
}

static uint64_t attribute_work(const UirOnnx__NodeProto *node) {
    uint64_t work = node->n_attribute;
    for (size_t i = 0; i < node->n_attribute; i++) {
        const UirOnnx__AttributeProto *a = node->attribute[i];
        work += a->n_ints + a->n_floats + a->n_strings;
        if (a->t) work += 1 + (a->t->has_raw_data ? uir_proto_raw_span(a->t).length / 64 : 0) + a->t->n_dims;
    }
    return work;
}

static void release_tensors(const uir_attribute *attributes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (attributes[i].kind == UIR_ATTRIBUTE_TENSOR) uir_tensor_release(attributes[i].value.tensor);
    }
}

static uir_status bind_outputs(uir_importer *importer, const UirOnnx__NodeProto *node, const uir_location *place,
                               uir_value_id *outputs, uint32_t count) {
    uir_type unknown = {.kind = UIR_VALUE_TENSOR};
    for (uint32_t i = 0; i < count; i++) {
        uir_name name;
        UIR_TRY(uir_import_name(importer, uir_proto_bytes(true, node->output[i]), &name));
        if (!name.id) continue;
        UIR_TRY(uir_import_new_value(importer, name, &unknown, NULL, &outputs[i]));
        UIR_TRY(uir_import_bind(importer, name, outputs[i], place));
    }
    return UIR_STATUS_OK;
}

static uir_status count_node(uir_importer *importer, const uir_location *place) {
    uir_budget *budget = importer->scratch.budget;
    uint64_t count = importer->module->nodes.count; /* [0] is none */
    uir_budget_at(budget, place->node, place->op);
    if (count <= uir_budget_get_limit(budget, UIR_LIMIT_NODES)) return UIR_STATUS_OK;
    return uir_budget_refuse(budget, UIR_LIMIT_NODES, 0, importer->diagnostics, place);
}

static uir_status import_node(uir_importer *importer, uir_graph_id graph, const UirOnnx__NodeProto *node) {
    uir_location place;
    uir_import_function *function;
    uir_node_info info = {0};
    bool good = true;
    UIR_TRY(uir_import_spend(importer, 1 + node->n_input + node->n_output + attribute_work(node)));
    UIR_TRY(uir_import_place(importer, node, &place));
    UIR_TRY(count_node(importer, &place));
    UIR_TRY(uir_import_find_function(importer, node, &function));
    if (function) {
        uint32_t origin;
        UIR_TRY(uir_origins_add(importer->module, place.node, place.op, UIR_FATE_INLINED, &origin));
        return uir_import_call(importer, graph, node, function, &place);
    }
    if (node->n_input > UINT32_MAX || node->n_output > UINT32_MAX) return UIR_STATUS_LIMIT;

    UIR_TRY(find_op(importer, node, &place, &info.op, &info.since_version));
    info.input_count = given_count(node->input, node->n_input);
    info.output_count = given_count(node->output, node->n_output);
    uir_value_id *inputs, *outputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(&importer->scratch, info.input_count + 1, sizeof *inputs));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(&importer->scratch, info.output_count + 1, sizeof *outputs));
    for (uint32_t i = 0; i < info.input_count; i++) {
        UIR_TRY(uir_import_use(importer, uir_proto_bytes(true, node->input[i]), &place, "the input", &inputs[i]));
    }
    uir_attribute *attributes = NULL;
    uir_status status = UIR_STATUS_OK;
    if (info.op != UIR_OP_NONE) {
        const uir_op_row *row = uir_op_get_row(info.op);
        UIR_TRY(check_arity(importer, &place, "input", info.input_count, node->n_input, row->min_inputs,
                            row->max_inputs, &good));
        UIR_TRY(check_arity(importer, &place, "output", info.output_count, node->n_output, row->min_outputs,
                            row->max_outputs, &good));
        bool attributes_good;
        status = uir_import_attributes(importer, graph, info.op, info.since_version, node, &place, &attributes,
                                       &info.attribute_count, &attributes_good);
        good = good && attributes_good;
    }
    if (status == UIR_STATUS_OK) status = bind_outputs(importer, node, &place, outputs, info.output_count);
    if (status == UIR_STATUS_OK && good && info.op != UIR_OP_NONE) {
        uir_node_id id;
        info.inputs = inputs;
        info.outputs = outputs;
        info.attributes = attributes;
        status = uir_strings_intern(&importer->module->strings, place.node, strlen(place.node), &info.name);
        if (status == UIR_STATUS_OK) status = uir_graph_add_node(importer->module, graph, &info, &id);
        if (status == UIR_STATUS_OK) importer->node_count++;
    } else {
        good = false;
    }
    if (status != UIR_STATUS_OK || !good) release_tensors(attributes, info.attribute_count);
    return status;
}

uir_status uir_import_nodes(uir_importer *importer, uir_graph_id graph, UirOnnx__NodeProto *const *nodes,
                            size_t count) {
    const uint32_t *order;
    UIR_TRY(uir_import_order(importer, nodes, count, &order));
    for (size_t i = 0; i < count; i++) UIR_TRY(import_node(importer, graph, nodes[order ? order[i] : i]));
    return UIR_STATUS_OK;
}

/* ---- graphs ---- */

/* `read`: what came of reading its tensor. */
static uir_status add_initializer(uir_importer *importer, uir_bytes bytes, uir_status read, uir_tensor *tensor,
                                  const uir_location *place) {
    uir_name name;
    uir_value_id value = {0};
    UIR_TRY(uir_import_absorb(importer, read));
    uir_status status = uir_import_name(importer, bytes, &name);
    if (read != UIR_STATUS_OK) {
        /* Its users are not to be told that it does not exist. */
        return status == UIR_STATUS_OK && name.id ? uir_import_bind(importer, name, value, place) : status;
    }
    if (status == UIR_STATUS_OK && !name.id) {
        uir_tensor_release(tensor);
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "an initializer has no name");
    }
    if (status == UIR_STATUS_OK) status = uir_import_new_value(importer, name, NULL, tensor, &value);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    return uir_import_bind(importer, name, value, place);
}

/* Whether the caller replaces what is called so. */
static bool is_overridden(const uir_importer *importer, uir_bytes name) {
    const uir_onnx_overrides *overrides = importer->source->overrides;
    for (size_t i = 0; overrides && i < overrides->count; i++)
        if (uir_bytes_equal(name, (uir_bytes){overrides->names[i], strlen(overrides->names[i])})) return true;
    return false;
}

static bool is_input(const UirOnnx__GraphProto *proto, uir_bytes name) {
    for (size_t i = 0; i < proto->n_input; i++)
        if (uir_bytes_equal(name, UIR_PROTO_BYTES(proto->input[i], name))) return true;
    return false;
}

/* Of the main graph: not imported, since it stays an input. */
static bool is_replaced(const uir_importer *importer, const UirOnnx__GraphProto *proto, bool is_main, uir_bytes name) {
    return is_main && is_overridden(importer, name) && is_input(proto, name);
}

static uir_status import_initializers(uir_importer *importer, const UirOnnx__GraphProto *proto, bool is_main,
                                      const uir_location *place) {
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const UirOnnx__TensorProto *t = proto->initializer[i];
        if (is_replaced(importer, proto, is_main, UIR_PROTO_BYTES(t, name))) continue;
        uir_tensor *tensor = NULL;
        UIR_TRY(uir_import_spend(importer, 1 + (t->has_raw_data ? uir_proto_raw_span(t).length / 64 : 0)));
        uir_status read = uir_tensor_from_proto(&importer->tensors, place, t, &tensor);
        UIR_TRY(add_initializer(importer, UIR_PROTO_BYTES(t, name), read, tensor, place));
    }
    for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
        const UirOnnx__SparseTensorProto *t = proto->sparse_initializer[i];
        uir_tensor *tensor = NULL;
        uir_bytes name = t->values ? UIR_PROTO_BYTES(t->values, name) : (uir_bytes){0};
        if (is_replaced(importer, proto, is_main, name)) continue;
        UIR_TRY(uir_import_spend(importer, 1 + UIR_IMPORT_MAX_INLINED_WORK / 100));
        uir_status read = uir_tensor_from_sparse_proto(&importer->tensors, place, t, &tensor);
        UIR_TRY(add_initializer(importer, name, read, tensor, place));
    }
    return UIR_STATUS_OK;
}

/* An input whose name an initializer has: that is its default, and it is used as the constant that it nearly always is.
 */
static uir_status check_default(uir_importer *importer, uir_value_id value, const uir_type *type, uir_name name,
                                bool is_main, const uir_location *place) {
    const uir_tensor *constant = uir_value_info_get(importer->module, value)->constant;
    uir_bytes bytes = uir_import_bytes(importer, name);
    if (!is_main) {
        return uir_import_problem(importer, UIR_STATUS_UNSUPPORTED, place, NULL,
                                  "the input '%.*s' of a subgraph is also an initializer", UIR_BYTES_FORMAT(bytes));
    }
    if (constant && type->dtype != UIR_DTYPE_NONE && type->dtype != constant->dtype) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "the input '%.*s' is declared %s, but its initializer is %s", UIR_BYTES_FORMAT(bytes),
                                  uir_dtype_name(type->dtype), uir_dtype_name(constant->dtype));
    }
    return UIR_STATUS_OK;
}

/* The type of an input whose default the caller replaces: as declared, else as the default's. */
static uir_status complete_type(uir_importer *importer, const UirOnnx__GraphProto *proto, uir_bytes name,
                                uir_type *type) {
    const UirOnnx__TensorProto *t = NULL;
    for (size_t i = 0; i < proto->n_initializer && !t; i++)
        if (uir_bytes_equal(name, UIR_PROTO_BYTES(proto->initializer[i], name))) t = proto->initializer[i];
    if (!t || type->kind != UIR_VALUE_TENSOR) return UIR_STATUS_OK;
    if (type->dtype == UIR_DTYPE_NONE && uir_dtype_is_valid(t->data_type)) type->dtype = (uir_dtype)t->data_type;
    if (type->rank_known || t->n_dims > UIR_MAX_RANK) return UIR_STATUS_OK;
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(&importer->module->arena, t->n_dims + 1, sizeof *dims));
    for (size_t d = 0; d < t->n_dims; d++) {
        dims[d] = uir_dim_const(importer->module->dims, t->dims[d]);
        if (!dims[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    type->rank_known = true;
    type->rank = (uint32_t)t->n_dims;
    type->dims = dims;
    return UIR_STATUS_OK;
}

static bool is_initializer(const UirOnnx__GraphProto *proto, uir_bytes name) {
    for (size_t i = 0; i < proto->n_initializer; i++)
        if (uir_bytes_equal(name, UIR_PROTO_BYTES(proto->initializer[i], name))) return true;
    for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
        const UirOnnx__TensorProto *values = proto->sparse_initializer[i]->values;
        if (values && uir_bytes_equal(name, UIR_PROTO_BYTES(values, name))) return true;
    }
    return false;
}

static uir_status add_default(uir_importer *importer, uir_name name, uint32_t place, bool overridden, uir_arena *arena,
                              uir_onnx_default *out_default) {
    out_default->place = place;
    out_default->is_overridden = overridden;
    return uir_import_text(importer, uir_import_bytes(importer, name), arena, &out_default->name);
}

/* What is to be overridden is an input with a default, or an input anyway. */
static uir_status check_overrides(uir_importer *importer, const UirOnnx__GraphProto *proto, const uir_location *place) {
    const uir_onnx_overrides *overrides = importer->source->overrides;
    for (size_t i = 0; overrides && i < overrides->count; i++) {
        uir_name name;
        uir_bytes bytes = {overrides->names[i], strlen(overrides->names[i])};
        if (is_input(proto, bytes)) continue;
        UIR_TRY(uir_import_name(importer, bytes, &name));
        const uir_import_binding *binding = name.id ? &importer->bindings.data[name.id] : NULL;
        bool known = binding && binding->bound && binding->scope == importer->scope;
        return uir_error_hint(
            importer->diagnostics, UIR_STATUS_INVALID_ARGUMENT, place, "list the inputs and their defaults with --info",
            known ? "'%.*s' cannot be overridden: it is a constant, and the file does not list it as an input"
                  : "'%.*s' cannot be overridden: the model has no such input",
            UIR_BYTES_FORMAT(bytes));
    }
    return UIR_STATUS_OK;
}

static uir_status import_inputs(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                                const uir_location *place, uir_arena *arena, uir_onnx_info *info) {
    const char **names = NULL;
    uir_onnx_default *defaults = NULL;
    uint32_t count = 0, default_count = 0;
    if (info) {
        UIR_TRY(check_overrides(importer, proto, place));
        UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(arena, proto->n_input + 1, sizeof *names));
        UIR_TRY_ALLOCATE(defaults, uir_arena_allocate_array(arena, proto->n_input + 1, sizeof *defaults));
    }
    for (size_t i = 0; i < proto->n_input; i++) {
        uir_type type;
        uir_name name;
        uir_value_id value;
        uint32_t gaps = importer->unsupported_count;
        UIR_TRY(uir_import_type(importer, place, UIR_PROTO_BYTES(proto->input[i], name), proto->input[i]->type, &type));
        bool supported = importer->unsupported_count == gaps;
        UIR_TRY(uir_import_name(importer, UIR_PROTO_BYTES(proto->input[i], name), &name));
        if (!name.id) {
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "a graph input has no name"));
            continue;
        }
        const uir_import_binding *binding = &importer->bindings.data[name.id];
        if (binding->bound && binding->scope == importer->scope && !binding->value.id) continue; /* reported */
        if (binding->bound && binding->scope == importer->scope &&
            uir_value_info_get(importer->module, binding->value)->constant) {
            UIR_TRY(check_default(importer, binding->value, &type, name, info != NULL, place));
            if (info) UIR_TRY(add_default(importer, name, (uint32_t)i, false, arena, &defaults[default_count++]));
            continue;
        }
        if (info && is_overridden(importer, uir_import_bytes(importer, name)) &&
            is_initializer(proto, uir_import_bytes(importer, name))) {
            UIR_TRY(complete_type(importer, proto, uir_import_bytes(importer, name), &type));
            UIR_TRY(add_default(importer, name, (uint32_t)i, true, arena, &defaults[default_count++]));
        }
        if (info && supported && type.dtype == UIR_DTYPE_NONE) {
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                       "the graph input '%.*s' has no element type",
                                       UIR_BYTES_FORMAT(uir_import_bytes(importer, name))));
        }
        UIR_TRY(uir_import_new_value(importer, name, &type, NULL, &value));
        UIR_TRY(uir_import_bind(importer, name, value, place));
        UIR_TRY(uir_graph_add_input(importer->module, graph, value));
        if (info) UIR_TRY(uir_import_text(importer, uir_import_bytes(importer, name), arena, &names[count++]));
    }
    if (info) {
        info->input_names = names;
        info->defaults = defaults;
        info->default_count = default_count;
    }
    return UIR_STATUS_OK;
}

/* What ZipMap gives, as an output is declared: it is the tensor of the maps' values (decompose/ml/rules_ml_features.c). */
static bool is_list_of_maps(const UirOnnx__TypeProto *type) {
    if (!type || type->value_case != UIR_ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) return false;
    const UirOnnx__TypeProto *element = type->sequence_type->elem_type;
    return element && element->value_case == UIR_ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
}

static uir_status import_outputs(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                                 const uir_location *place, uir_arena *arena, uir_onnx_info *info) {
    const char **names = NULL;
    if (info) UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(arena, proto->n_output + 1, sizeof *names));
    for (size_t i = 0; i < proto->n_output; i++) {
        uir_bytes name = UIR_PROTO_BYTES(proto->output[i], name);
        uir_value_id value;
        uir_type type;
        const UirOnnx__TypeProto *declared = proto->output[i]->type;
        UIR_TRY(uir_import_type(importer, place, name, is_list_of_maps(declared) ? NULL : declared, &type));
        if (info) UIR_TRY(uir_import_text(importer, name, arena, &names[i]));
        if (!name.length) {
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "a graph output has no name"));
            continue;
        }
        UIR_TRY(uir_import_use(importer, name, place, "the graph output", &value));
        if (!value.id) continue;
        UIR_TRY(uir_graph_add_output(importer->module, graph, value));
        uir_value_info *made = uir_value_info_get(importer->module, value);
        if (made->type.dtype == UIR_DTYPE_NONE && !made->type.rank_known) {
            const uir_dim *dims = NULL;
            if (type.rank) {
                UIR_TRY_ALLOCATE(dims, uir_arena_copy(&importer->module->arena, type.dims, type.rank * sizeof *dims));
            }
            type.dims = dims;
            made->type = type;
        }
    }
    if (info) info->output_names = names;
    return UIR_STATUS_OK;
}

uir_status uir_import_graph(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                            uir_arena *arena, uir_onnx_info *info) {
    uir_location place = {.file = importer->file};
    UIR_TRY(uir_import_spend(importer, 1 + proto->n_input + proto->n_output));
    uir_import_scope saved = uir_import_enter(importer, false);
    UIR_TRY(import_initializers(importer, proto, info != NULL, &place));
    UIR_TRY(import_inputs(importer, graph, proto, &place, arena, info));
    UIR_TRY(uir_import_nodes(importer, graph, proto->node, proto->n_node));
    UIR_TRY(import_outputs(importer, graph, proto, &place, arena, info));
    UIR_TRY(uir_import_declared(importer, proto));
    if (info) UIR_TRY(uir_import_keep(importer, graph, proto, arena, info));
    uir_import_leave(importer, saved);
    return UIR_STATUS_OK;
}
