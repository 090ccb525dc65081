/* Local functions: found by domain, name and overload; inlined where they are called. */
#include "frontend/import.h"

#include <stdio.h>
#include <string.h>

uir_status uir_import_read_opsets(uir_importer *importer, UirOnnx__OperatorSetIdProto *const *protos, size_t count,
                                  uir_import_opsets *out_opsets) {
    uir_location place = {.file = importer->file};
    if (count > UIR_IMPORT_MAX_OPSETS) {
        return uir_error(importer->diagnostics, UIR_STATUS_LIMIT, &place, "more than %d domains are imported",
                         UIR_IMPORT_MAX_OPSETS);
    }
    UIR_TRY_ALLOCATE(out_opsets->data,
                     uir_arena_allocate_array(&importer->scratch, count + 1, sizeof *out_opsets->data));
    for (size_t i = 0; i < count; i++) {
        uir_bytes domain = UIR_PROTO_BYTES(protos[i], domain);
        if (uir_bytes_equal(domain, (uir_bytes){"ai.onnx", 7})) domain.length = 0;
        uir_import_opset opset = {.version = protos[i]->version};
        UIR_TRY(uir_import_name(importer, domain, &opset.domain));
        if (opset.domain.id == 0 && (opset.version < 1 || opset.version > UIR_ONNX_MAX_OPSET)) {
            return uir_error_hint(importer->diagnostics, UIR_STATUS_UNSUPPORTED, &place,
                                  "change the model's opset with onnx.version_converter",
                                  "opset %lld of ai.onnx; up to %d are supported", (long long)opset.version,
                                  UIR_ONNX_MAX_OPSET);
        }
        uint32_t same = 0;
        while (same < out_opsets->count && out_opsets->data[same].domain.id != opset.domain.id) same++;
        if (same == out_opsets->count) {
            out_opsets->data[out_opsets->count++] = opset;
        } else if (out_opsets->data[same].version != opset.version) {
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, &place, NULL,
                                       "the domain '%.*s' is imported in two versions", UIR_BYTES_FORMAT(domain)));
        }
    }
    return UIR_STATUS_OK;
}

int64_t uir_import_opset_version(const uir_importer *importer, uir_name domain) {
    const uir_import_opsets *lists[] = {importer->frame ? &importer->frame->function->opsets : NULL, &importer->opsets};
    for (size_t list = 0; list < 2; list++) {
        for (uint32_t i = 0; lists[list] && i < lists[list]->count; i++) {
            if (lists[list]->data[i].domain.id == domain.id) return lists[list]->data[i].version;
        }
    }
    return 0;
}

/* One name for the three that identify a function: their lengths first, so that no two triples give the same. */
static uir_status function_key(uir_importer *importer, uir_bytes domain, uir_bytes name, uir_bytes overload,
                               uir_bytes *out_key) {
    char lengths[64];
    if (uir_bytes_equal(domain, (uir_bytes){"ai.onnx", 7})) domain.length = 0;
    int head = snprintf(lengths, sizeof lengths, "%zu:%zu:", domain.length, name.length);
    size_t total = (size_t)head + domain.length + name.length + overload.length;
    char *key, *at;
    UIR_TRY_ALLOCATE(key, uir_arena_allocate(&importer->scratch, total));
    at = key;
    uir_bytes parts[] = {{lengths, (size_t)head}, domain, name, overload};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].length) memcpy(at, parts[i].data, parts[i].length);
        at += parts[i].length;
    }
    *out_key = (uir_bytes){key, total};
    return UIR_STATUS_OK;
}

uir_status uir_import_read_functions(uir_importer *importer, const UirOnnx__ModelProto *model) {
    uir_location place = {.file = importer->file};
    for (size_t i = 0; i < model->n_functions; i++) {
        const UirOnnx__FunctionProto *proto = model->functions[i];
        uir_bytes key;
        uir_name name;
        uir_bytes function_name = UIR_PROTO_BYTES(proto, name);
        UIR_TRY(function_key(importer, UIR_PROTO_BYTES(proto, domain), function_name, UIR_PROTO_BYTES(proto, overload),
                             &key));
        UIR_TRY(uir_import_name(importer, key, &name));
        if (importer->calls.data[name.id]) {
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, &place, NULL, "two functions are called '%.*s'",
                                       UIR_BYTES_FORMAT(function_name)));
            continue;
        }
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->functions, (uir_import_function){.proto = proto}));
        importer->calls.data[name.id] = importer->functions.count;
    }
    return UIR_STATUS_OK;
}

uir_status uir_import_find_function(uir_importer *importer, const UirOnnx__NodeProto *node,
                                    uir_import_function **out_function) {
    *out_function = NULL;
    if (!importer->functions.count) return UIR_STATUS_OK;
    uir_bytes key;
    uir_name name;
    UIR_TRY(function_key(importer, UIR_PROTO_BYTES(node, domain), UIR_PROTO_BYTES(node, op_type),
                         UIR_PROTO_BYTES(node, overload), &key));
    if (!uir_strings_find(&importer->names, key.data, key.length, &name)) return UIR_STATUS_OK;
    uint32_t index = name.id < importer->calls.count ? importer->calls.data[name.id] : 0;
    if (index) *out_function = &importer->functions.data[index - 1];
    return UIR_STATUS_OK;
}

/* ---- calls ---- */

/* The attributes that the body sees: those of the call, then defaults of those not given. */
static uir_status call_attributes(uir_importer *importer, const UirOnnx__NodeProto *node, const uir_location *place,
                                  uir_import_frame *frame) {
    const UirOnnx__FunctionProto *proto = frame->function->proto;
    size_t default_count = proto->n_attribute_proto;
    if (node->n_attribute > UIR_IMPORT_MAX_ATTRIBUTES || default_count > UIR_IMPORT_MAX_ATTRIBUTES) {
        return uir_error(importer->diagnostics, UIR_STATUS_LIMIT, place, "a function has over %d attributes",
                         UIR_IMPORT_MAX_ATTRIBUTES);
    }
    size_t total = node->n_attribute + default_count;
    const UirOnnx__AttributeProto **attributes;
    uir_name *names;
    UIR_TRY_ALLOCATE(attributes, uir_arena_allocate_array(&importer->scratch, total + 1, sizeof *attributes));
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(&importer->scratch, total + 1, sizeof *names));
    for (size_t i = 0; i < total; i++) {
        bool given = i < node->n_attribute;
        const UirOnnx__AttributeProto *attribute =
            given ? node->attribute[i] : proto->attribute_proto[i - node->n_attribute];
        uir_name name;
        UIR_TRY(uir_import_name(importer, UIR_PROTO_BYTES(attribute, name), &name));
        if (given) UIR_TRY(uir_import_resolve_attribute(importer, attribute, place, &attribute));
        if (!attribute) continue;
        if (attribute->g || attribute->n_graphs) {
            UIR_TRY(uir_import_unsupported_found(importer, place, NULL,
                                                 "a graph as an attribute of a function is not supported"));
            continue;
        }
        uint32_t same = 0;
        while (same < frame->attribute_count && names[same].id != name.id) same++;
        if (same < frame->attribute_count) {
            if (given) {
                UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                           "the attribute '%.*s' is given twice",
                                           UIR_BYTES_FORMAT(uir_import_bytes(importer, name))));
            }
            continue;
        }
        names[frame->attribute_count] = name;
        attributes[frame->attribute_count++] = attribute;
    }
    frame->attributes = attributes;
    frame->attribute_names = names;
    return UIR_STATUS_OK;
}

/* Whether the call may go ahead: no cycle, not too deep, not too many operands. */
static uir_status check_call(uir_importer *importer, const UirOnnx__NodeProto *node,
                             const uir_import_function *function, const uir_location *place, bool *out_good) {
    const UirOnnx__FunctionProto *proto = function->proto;
    *out_good = false;
    for (const uir_import_frame *frame = importer->frame; frame; frame = frame->caller) {
        if (frame->function == function) {
            return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "the function calls itself");
        }
    }
    if (importer->frame && importer->frame->depth >= UIR_IMPORT_MAX_CALL_DEPTH) {
        return uir_error(importer->diagnostics, UIR_STATUS_LIMIT, place, "functions call each other more than %d deep",
                         UIR_IMPORT_MAX_CALL_DEPTH);
    }
    if (node->n_input > proto->n_input || node->n_output > proto->n_output) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "%zu inputs and %zu outputs for a function that has %zu and %zu", node->n_input,
                                  node->n_output, proto->n_input, proto->n_output);
    }
    *out_good = true;
    return UIR_STATUS_OK;
}

/* The function's inputs are bound to the call's; those not given are absent, as in an op. */
static uir_status bind_inputs(uir_importer *importer, const UirOnnx__FunctionProto *proto, const uir_value_id *inputs,
                              size_t input_count, const uir_location *place) {
    for (size_t i = 0; i < proto->n_input; i++) {
        uir_name name;
        UIR_TRY(uir_import_name(importer, uir_proto_bytes(true, proto->input[i]), &name));
        if (name.id) UIR_TRY(uir_import_bind(importer, name, i < input_count ? inputs[i] : (uir_value_id){0}, place));
    }
    return UIR_STATUS_OK;
}

/* In the body's scope: its outputs are shown under the names that the caller gives them. */
static uir_status alias_outputs(uir_importer *importer, const UirOnnx__NodeProto *node,
                                const UirOnnx__FunctionProto *proto, uint32_t caller_scope) {
    for (size_t i = 0; i < node->n_output; i++) {
        uir_name inner, outer;
        UIR_TRY(uir_import_name(importer, uir_proto_bytes(true, proto->output[i]), &inner));
        UIR_TRY(uir_import_name(importer, uir_proto_bytes(true, node->output[i]), &outer));
        if (!outer.id) continue;
        const uir_import_alias *alias = &importer->aliases.data[outer.id];
        if (alias->scope == caller_scope) outer = alias->shown;
        importer->aliases.data[inner.id] = (uir_import_alias){outer, importer->scope};
    }
    return UIR_STATUS_OK;
}

static uir_status inline_body(uir_importer *importer, uir_graph_id graph, const UirOnnx__NodeProto *node,
                              uir_import_frame *frame, const uir_location *place, uir_value_id *outputs) {
    const UirOnnx__FunctionProto *proto = frame->function->proto;
    uir_value_id *inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(&importer->scratch, node->n_input + 1, sizeof *inputs));
    for (size_t i = 0; i < node->n_input; i++) {
        UIR_TRY(uir_import_use(importer, uir_proto_bytes(true, node->input[i]), place, "the input", &inputs[i]));
    }
    UIR_TRY(call_attributes(importer, node, place, frame));
    uint32_t caller_scope = importer->scope;
    uir_import_scope saved = uir_import_enter(importer, true);
    importer->frame = frame;
    if (!frame->function->opsets_read) {
        frame->function->opsets_read = true;
        UIR_TRY(uir_import_read_opsets(importer, proto->opset_import, proto->n_opset_import, &frame->function->opsets));
    }
    UIR_TRY(uir_import_spend(importer, 1 + proto->n_input + proto->n_output));
    UIR_TRY(bind_inputs(importer, proto, inputs, node->n_input, place));
    UIR_TRY(alias_outputs(importer, node, proto, caller_scope));
    UIR_TRY(uir_import_nodes(importer, graph, proto->node, proto->n_node));
    for (size_t i = 0; i < node->n_output; i++) {
        if (!node->output[i].len) continue;
        UIR_TRY(uir_import_use(importer, uir_proto_bytes(true, proto->output[i]), place, "the function's output",
                               &outputs[i]));
    }
    importer->frame = frame->caller;
    uir_import_leave(importer, saved);
    return UIR_STATUS_OK;
}

uir_status uir_import_call(uir_importer *importer, uir_graph_id graph, const UirOnnx__NodeProto *node,
                           uir_import_function *function, const uir_location *place) {
    bool good;
    uir_value_id *outputs;
    UIR_TRY(check_call(importer, node, function, place, &good));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(&importer->scratch, node->n_output + 1, sizeof *outputs));
    if (good) {
        uir_import_frame frame = {
            .caller = importer->frame, .function = function, .depth = importer->frame ? importer->frame->depth + 1 : 1};
        UIR_TRY(inline_body(importer, graph, node, &frame, place, outputs));
    }
    for (size_t i = 0; i < node->n_output; i++) {
        uir_name name;
        UIR_TRY(uir_import_name(importer, uir_proto_bytes(true, node->output[i]), &name));
        if (name.id) UIR_TRY(uir_import_bind(importer, name, outputs[i], place));
    }
    return UIR_STATUS_OK;
}
