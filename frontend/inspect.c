/* What a file holds, before anything is made of it: counted over its graphs, their bodies and its local functions. */
#include "frontend/import.h"

#include <stdlib.h>
#include <string.h>

typedef struct inspection {
    uir_importer *importer;
    uir_arena *arena;
    uir_strings keys;                  /* domain, a zero, op */
    uir_vector(uir_onnx_op_count) ops; /* by key, [0] unused */
    uir_onnx_info *info;
} inspection;

static uir_status count_graph(inspection *in, const UirOnnx__GraphProto *graph);

static uint64_t add_saturated(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Sizes that are no sizes are told when the tensor is read. */
static void count_tensor(inspection *in, const UirOnnx__TensorProto *tensor) {
    uint64_t elements = 1;
    size_t bytes = 0;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] < 0 || __builtin_mul_overflow(elements, (uint64_t)tensor->dims[i], &elements)) return;
    }
    if (!uir_dtype_is_valid(tensor->data_type)) return;
    if (tensor->data_type != UIR_DTYPE_STRING)
        (void)uir_dtype_storage_size((uir_dtype)tensor->data_type, elements, &bytes);
    for (size_t i = 0; i < tensor->n_string_data; i++) bytes += tensor->string_data[i].len;
    bool external =
        tensor->has_data_location && tensor->data_location == UIR_ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    in->info->parameter_count = add_saturated(in->info->parameter_count, elements);
    in->info->weight_bytes = add_saturated(in->info->weight_bytes, bytes);
    if (external) in->info->external_bytes = add_saturated(in->info->external_bytes, bytes);
}

static uir_status count_op(inspection *in, const UirOnnx__NodeProto *node) {
    uir_importer *importer = in->importer;
    uir_bytes domain = UIR_PROTO_BYTES(node, domain), op = UIR_PROTO_BYTES(node, op_type);
    uir_string key;
    char *text;
    if (domain.length == 7 && !memcmp(domain.data, "ai.onnx", 7)) domain.length = 0;
    UIR_TRY_ALLOCATE(text, uir_arena_allocate(&importer->scratch, domain.length + op.length + 1));
    if (domain.length) memcpy(text, domain.data, domain.length);
    text[domain.length] = 0;
    if (op.length) memcpy(text + domain.length + 1, op.data, op.length);
    UIR_TRY(uir_strings_intern(&in->keys, text, domain.length + op.length + 1, &key));
    while (in->ops.count <= key.id) UIR_TRY(uir_vector_push(&importer->scratch, &in->ops, (uir_onnx_op_count){0}));
    uir_onnx_op_count *count = &in->ops.data[key.id];
    if (!count->count++) {
        UIR_TRY(uir_import_text(importer, domain, in->arena, &count->domain));
        UIR_TRY(uir_import_text(importer, op, in->arena, &count->name));
    }
    return UIR_STATUS_OK;
}

static uir_status count_nodes(inspection *in, UirOnnx__NodeProto *const *nodes, size_t count) {
    for (size_t n = 0; n < count; n++) {
        UIR_TRY(count_op(in, nodes[n]));
        for (size_t a = 0; a < nodes[n]->n_attribute; a++) {
            const UirOnnx__AttributeProto *attribute = nodes[n]->attribute[a];
            if (attribute->g) UIR_TRY(count_graph(in, attribute->g));
            for (size_t g = 0; g < attribute->n_graphs; g++) UIR_TRY(count_graph(in, attribute->graphs[g]));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status count_graph(inspection *in, const UirOnnx__GraphProto *graph) {
    for (size_t i = 0; i < graph->n_initializer; i++) count_tensor(in, graph->initializer[i]);
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        if (graph->sparse_initializer[i]->values) count_tensor(in, graph->sparse_initializer[i]->values);
    return count_nodes(in, graph->node, graph->n_node);
}

/* The most used first, then by name. */
static int compare_ops(const void *a, const void *b) {
    const uir_onnx_op_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    int order = strcmp(x->domain, y->domain);
    return order ? order : strcmp(x->name, y->name);
}

static uir_status list_ops(inspection *in) {
    uir_onnx_op_count *list;
    uint32_t count = 0;
    UIR_TRY_ALLOCATE(list, uir_arena_allocate_array(in->arena, (size_t)in->ops.count + 1, sizeof *list));
    for (uint32_t i = 0; i < in->ops.count; i++)
        if (in->ops.data[i].count) list[count++] = in->ops.data[i];
    if (count) qsort(list, count, sizeof *list, compare_ops);
    in->info->ops = list;
    in->info->op_count = count;
    return UIR_STATUS_OK;
}

static uir_status list_opsets(inspection *in, const UirOnnx__ModelProto *model) {
    uir_onnx_opset *list;
    UIR_TRY_ALLOCATE(list, uir_arena_allocate_array(in->arena, model->n_opset_import + 1, sizeof *list));
    for (size_t i = 0; i < model->n_opset_import && i < UIR_IMPORT_MAX_OPSETS; i++) {
        const UirOnnx__OperatorSetIdProto *opset = model->opset_import[i];
        UIR_TRY(uir_import_text(in->importer, UIR_PROTO_BYTES(opset, domain), in->arena, &list[i].domain));
        list[i].version = opset->version;
        in->info->opset_count++;
    }
    in->info->opsets = list;
    return UIR_STATUS_OK;
}

/* ---- declared ports ---- */

static uir_status describe_shape(inspection *in, const UirOnnx__TypeProto__Tensor *tensor, uir_port *port) {
    if (tensor->has_elem_type && uir_dtype_is_valid(tensor->elem_type)) port->dtype = (uir_dtype)tensor->elem_type;
    if (!tensor->shape || tensor->shape->n_dim > UINT32_MAX) return UIR_STATUS_OK;
    size_t rank = tensor->shape->n_dim;
    int64_t *dims;
    const char **names;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(in->arena, rank + 1, sizeof *dims));
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(in->arena, rank + 1, sizeof *names));
    for (size_t i = 0; i < rank; i++) {
        const UirOnnx__TensorShapeProto__Dimension *dim = tensor->shape->dim[i];
        names[i] = "";
        dims[i] = -1;
        if (dim->value_case == UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0)
            dims[i] = dim->dim_value;
        else if (dim->value_case == UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
            UIR_TRY(uir_import_text(in->importer, uir_proto_bytes(true, dim->dim_param), in->arena, &names[i]));
    }
    port->rank_known = true;
    port->rank = (uint32_t)rank;
    port->dims = dims;
    port->dim_names = names;
    return UIR_STATUS_OK;
}

static uir_status describe_port(inspection *in, const UirOnnx__ValueInfoProto *value, uir_port *port) {
    const UirOnnx__TypeProto *type = value->type;
    *port = (uir_port){.kind = UIR_VALUE_TENSOR};
    UIR_TRY(uir_import_text(in->importer, UIR_PROTO_BYTES(value, name), in->arena, &port->name));
    if (type && type->value_case == UIR_ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) port->kind = UIR_VALUE_SEQUENCE;
    if (type && type->value_case == UIR_ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) port->kind = UIR_VALUE_OPTIONAL;
    if (type && port->kind == UIR_VALUE_SEQUENCE) type = type->sequence_type->elem_type;
    if (type && port->kind == UIR_VALUE_OPTIONAL) type = type->optional_type->elem_type;
    return type && type->value_case == UIR_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
               ? describe_shape(in, type->tensor_type, port)
               : UIR_STATUS_OK;
}

/* Names of initializers. */
static uir_status list_initializers(inspection *in, const UirOnnx__GraphProto *graph, uir_strings *names) {
    uir_string name;
    UIR_TRY(uir_strings_init(names, &in->importer->scratch));
    for (size_t i = 0; i < graph->n_initializer; i++) {
        uir_bytes bytes = UIR_PROTO_BYTES(graph->initializer[i], name);
        UIR_TRY(uir_strings_intern(names, bytes.data, bytes.length, &name));
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        if (!graph->sparse_initializer[i]->values) continue;
        uir_bytes bytes = UIR_PROTO_BYTES(graph->sparse_initializer[i]->values, name);
        UIR_TRY(uir_strings_intern(names, bytes.data, bytes.length, &name));
    }
    return UIR_STATUS_OK;
}

static uir_status describe_ports(inspection *in, const UirOnnx__GraphProto *graph) {
    uir_port *inputs, *outputs;
    uir_strings initializers;
    uir_string found;
    uint32_t count = 0;
    UIR_TRY(list_initializers(in, graph, &initializers));
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(in->arena, graph->n_input + 1, sizeof *inputs));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(in->arena, graph->n_output + 1, sizeof *outputs));
    for (size_t i = 0; i < graph->n_input; i++) {
        uir_bytes name = UIR_PROTO_BYTES(graph->input[i], name);
        if (!uir_strings_find(&initializers, name.data, name.length, &found))
            UIR_TRY(describe_port(in, graph->input[i], &inputs[count++]));
    }
    in->info->declared_inputs = inputs;
    in->info->declared_input_count = count;
    for (size_t i = 0; i < graph->n_output; i++) UIR_TRY(describe_port(in, graph->output[i], &outputs[i]));
    in->info->declared_outputs = outputs;
    in->info->declared_output_count = (uint32_t)graph->n_output;
    in->info->described = true;
    return UIR_STATUS_OK;
}

uir_status uir_import_inspect(uir_importer *importer, const UirOnnx__ModelProto *model, uir_arena *arena,
                              uir_onnx_info *info) {
    inspection in = {.importer = importer, .arena = arena, .info = info};
    UIR_TRY(uir_strings_init(&in.keys, &importer->scratch));
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(model, producer_version), arena, &info->producer_version));
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(model, domain), arena, &info->domain));
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(model->graph, name), arena, &info->graph));
    info->model_version = model->model_version;
    info->function_count = (uint32_t)model->n_functions;
    UIR_TRY(list_opsets(&in, model));
    UIR_TRY(count_graph(&in, model->graph));
    for (size_t i = 0; i < model->n_functions; i++)
        UIR_TRY(count_nodes(&in, model->functions[i]->node, model->functions[i]->n_node));
    UIR_TRY(list_ops(&in));
    return describe_ports(&in, model->graph);
}
