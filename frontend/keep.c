/* Values that the caller wants to see: they become outputs of the main graph, after its own.
 *
 * A value is looked for by the name that the file gives it, then nodes by theirs, calls of local functions among them;
 * then what functions hold, whose values have the names that the module gave them when they were inlined. What a body
 * of a loop or branch makes has no one value. */
#include "frontend/import.h"

#include <string.h>

typedef struct keeping {
    uir_importer *importer;
    const UirOnnx__GraphProto *proto;
    uir_arena *arena; /* of the names */
    uir_graph_id graph;
    uir_name *names; /* by value: what the file calls it; none: it has no name there */
    bool *is_output; /* by value */
    uir_vector(const char *) output_names;
} keeping;

/* The file's names of the main graph's values; of several names of one value the first. */
static uir_status list_names(keeping *k) {
    uir_importer *importer = k->importer;
    size_t count = importer->module->values.count;
    UIR_TRY_ALLOCATE(k->names, uir_arena_allocate_array(&importer->scratch, count, sizeof *k->names));
    UIR_TRY_ALLOCATE(k->is_output, uir_arena_allocate_array(&importer->scratch, count, sizeof *k->is_output));
    for (uint32_t i = 1; i < importer->bindings.count; i++) {
        const uir_import_binding *binding = &importer->bindings.data[i];
        if (binding->bound && binding->scope == importer->scope && !k->names[binding->value.id].id)
            k->names[binding->value.id] = (uir_name){i};
    }
    return UIR_STATUS_OK;
}

static const char *module_name(const keeping *k, uir_value_id value) {
    const uir_module *module = k->importer->module;
    return uir_string_text(&module->strings, uir_value_info_get(module, value)->name);
}

static uir_status keep_value(keeping *k, uir_value_id value) {
    uir_importer *importer = k->importer;
    const char *name;
    if (!value.id || k->is_output[value.id]) return UIR_STATUS_OK;
    k->is_output[value.id] = true;
    UIR_TRY(uir_graph_add_output(importer->module, k->graph, value));
    if (k->names[value.id].id) {
        UIR_TRY(uir_import_text(importer, uir_import_bytes(importer, k->names[value.id]), k->arena, &name));
    } else {
        const char *text = module_name(k, value);
        UIR_TRY_ALLOCATE(name, uir_arena_copy_string(k->arena, text, strlen(text)));
    }
    return uir_vector_push(k->arena, &k->output_names, name);
}

static uir_status keep_results(keeping *k, uir_node_id node) {
    /* A copy: outputs that are added move nothing of it, but the module's vectors may. */
    uir_node_info info = *uir_node_get(k->importer->module, node);
    for (uint32_t i = 0; i < info.output_count; i++) UIR_TRY(keep_value(k, info.outputs[i]));
    return UIR_STATUS_OK;
}

/* ---- by name ---- */

static uir_value_id find_value(const keeping *k, uir_bytes bytes) {
    uir_name name;
    if (!uir_strings_find(&k->importer->names, bytes.data, bytes.length, &name) || !name.id) return (uir_value_id){0};
    const uir_import_binding *binding =
        name.id < k->importer->bindings.count ? uir_import_find(k->importer, name) : NULL;
    return binding ? binding->value : (uir_value_id){0};
}

static bool has_name(uir_bytes bytes, const char *name) {
    return bytes.length == strlen(name) && (!bytes.length || !memcmp(bytes.data, name, bytes.length));
}

/* Nodes of the file, which a call of a function is too. */
static uir_status keep_file_nodes(keeping *k, const char *name, bool *found) {
    for (size_t n = 0; n < k->proto->n_node; n++) {
        const UirOnnx__NodeProto *node = k->proto->node[n];
        if (!has_name(UIR_PROTO_BYTES(node, name), name)) continue;
        for (size_t i = 0; i < node->n_output; i++) {
            uir_value_id value = find_value(k, uir_proto_bytes(true, node->output[i]));
            *found |= value.id != 0;
            UIR_TRY(keep_value(k, value));
        }
    }
    return UIR_STATUS_OK;
}

/* What was inlined, by the names it was given then. */
static uir_status keep_inlined(keeping *k, const char *name, bool *found) {
    uir_module *module = k->importer->module;
    uint32_t count = uir_graph_get(module, k->graph)->nodes.count;
    for (uint32_t n = 0; n < count; n++) {
        uir_node_id id = uir_graph_get(module, k->graph)->nodes.data[n];
        uir_node_info node = *uir_node_get(module, id);
        if (!strcmp(uir_string_text(&module->strings, node.name), name)) {
            *found |= node.output_count > 0;
            UIR_TRY(keep_results(k, id));
            continue;
        }
        for (uint32_t i = 0; i < node.output_count; i++) {
            if (!node.outputs[i].id || strcmp(module_name(k, node.outputs[i]), name) != 0) continue;
            *found = true;
            UIR_TRY(keep_value(k, node.outputs[i]));
        }
    }
    return UIR_STATUS_OK;
}

/* Whether a body has such a node or value. */
static bool is_in_body(const uir_module *module, const char *name) {
    for (uint32_t n = 1; n < module->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        if (node->graph.id == module->main.id) continue;
        if (!strcmp(uir_string_text(&module->strings, node->name), name)) return true;
        for (uint32_t i = 0; i < node->output_count; i++) {
            uir_string text = uir_value_info_get(module, node->outputs[i])->name;
            if (node->outputs[i].id && !strcmp(uir_string_text(&module->strings, text), name)) return true;
        }
    }
    return false;
}

/* The name of a node or value that is nearest, when it is near enough to be meant; "" none. */
static const char *find_nearest(const keeping *k, const char *name) {
    const uir_module *module = k->importer->module;
    const uir_graph_info *graph = uir_graph_get(module, k->graph);
    const char *best = "";
    size_t best_distance = strlen(name) / 3 + 1;
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
        for (uint32_t i = 0; i <= node->output_count; i++) {
            const char *text = i < node->output_count && node->outputs[i].id
                                   ? module_name(k, node->outputs[i])
                                   : uir_string_text(&module->strings, node->name);
            size_t distance = uir_edit_distance(name, text);
            if (!*text || distance > best_distance || (*best && distance == best_distance)) continue;
            best = text;
            best_distance = distance;
        }
    }
    return best;
}

static uir_status refuse(keeping *k, const char *name) {
    uir_diagnostics *diagnostics = k->importer->diagnostics;
    const uir_location place = {.file = k->importer->file};
    if (is_in_body(k->importer->module, name))
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place,
                              "keep the node that has the body, or a value that the body returns",
                              "'%s' cannot be kept: in the body of a loop or branch it has no single value", name);
    const char *meant = find_nearest(k, name);
    return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place,
                          "use names of the model's file; a node without a name has that of its first output",
                          "no node or value is called '%s'%s%s%s", name, *meant ? "; did you mean '" : "", meant,
                          *meant ? "'?" : "");
}

static uir_status keep_named(keeping *k, const char *name) {
    bool found = false;
    uir_value_id value = find_value(k, (uir_bytes){name, strlen(name)});
    if (value.id) return keep_value(k, value);
    UIR_TRY(keep_file_nodes(k, name, &found));
    if (!found) UIR_TRY(keep_inlined(k, name, &found));
    return found ? UIR_STATUS_OK : refuse(k, name);
}

/* ---- the whole ---- */

static uir_status keep_all(keeping *k) {
    uint32_t count = uir_graph_get(k->importer->module, k->graph)->nodes.count;
    for (uint32_t n = 0; n < count; n++)
        UIR_TRY(keep_results(k, uir_graph_get(k->importer->module, k->graph)->nodes.data[n]));
    return UIR_STATUS_OK;
}

/* Which node gave each output, and where it stands among the others. */
static uir_status describe_outputs(const keeping *k, uint32_t own, uir_onnx_info *info) {
    uir_module *module = k->importer->module;
    const uir_graph_info *graph = uir_graph_get(module, k->graph);
    uint32_t *places;
    uir_onnx_output *outputs;
    UIR_TRY_ALLOCATE(places, uir_arena_allocate_array(&k->importer->scratch, module->nodes.count, sizeof *places));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(k->arena, (size_t)graph->outputs.count + 1, sizeof *outputs));
    for (uint32_t n = 0; n < graph->nodes.count; n++) places[graph->nodes.data[n].id] = n + 1;
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        uir_node_id id = uir_value_info_get(module, graph->outputs.data[i])->producer;
        outputs[i] = (uir_onnx_output){.node = "", .op = "", .is_kept = i >= own};
        if (!id.id) continue;
        const uir_node_info *node = uir_node_get(module, id);
        const char *name = uir_string_text(&module->strings, node->name);
        UIR_TRY_ALLOCATE(outputs[i].node, uir_arena_copy_string(k->arena, name, strlen(name)));
        outputs[i].op = uir_op_get_row(node->op)->name;
        outputs[i].place = places[id.id];
    }
    info->outputs = outputs;
    info->output_count = graph->outputs.count;
    return UIR_STATUS_OK;
}

uir_status uir_import_keep(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                           uir_arena *arena, uir_onnx_info *info) {
    const uir_onnx_keep *wanted = importer->source->keep;
    keeping k = {.importer = importer, .proto = proto, .arena = arena, .graph = graph};
    uint32_t own = uir_graph_get(importer->module, graph)->outputs.count;
    if (importer->worst != UIR_STATUS_OK) return UIR_STATUS_OK; /* the model is refused; what is missing may be why */
    UIR_TRY(list_names(&k));
    for (uint32_t i = 0; i < own; i++) {
        k.is_output[uir_graph_get(importer->module, graph)->outputs.data[i].id] = true;
        UIR_TRY(uir_vector_push(arena, &k.output_names, info->output_names[i]));
    }
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; wanted && i < wanted->count; i++) {
        uir_status one = keep_named(&k, wanted->names[i]);
        if (one != UIR_STATUS_OK && one != UIR_STATUS_INVALID_ARGUMENT) return one;
        if (one != UIR_STATUS_OK) status = one; /* the other names may be wrong as well */
    }
    UIR_TRY(status);
    if (wanted && wanted->all) UIR_TRY(keep_all(&k));
    info->output_names = k.output_names.data;
    return describe_outputs(&k, own, info);
}

/* ---- what no device can hold ---- */

uir_status uir_onnx_drop_kept(uir_module *module, uir_onnx_info *info, uint32_t *out_dropped) {
    uir_graph_info *main = uir_graph_get(module, module->main);
    uint32_t kept = 0;
    *out_dropped = 0;
    if (main->outputs.count != info->output_count) return UIR_STATUS_INTERNAL;
    for (uint32_t i = 0; i < info->output_count; i++) {
        const uir_type *type = uir_value_type(module, main->outputs.data[i]);
        if (info->outputs[i].is_kept && (type->kind != UIR_VALUE_TENSOR || type->dtype == UIR_DTYPE_STRING)) continue;
        info->outputs[kept] = info->outputs[i];
        info->output_names[kept] = info->output_names[i];
        main->outputs.data[kept++] = main->outputs.data[i];
    }
    *out_dropped = info->output_count - kept;
    info->output_count = main->outputs.count = kept;
    return UIR_STATUS_OK;
}
