/* What the file declares of values that nodes make, for decompose to hold against what they do make. Nothing is added
 * for it: a dim that is no number and no name of an input's is not known. */
#include "frontend/import.h"

static uir_dim known_dim(const uir_importer *importer, const UirOnnx__TensorShapeProto__Dimension *proto) {
    uir_string name;
    if (proto->value_case == UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return proto->dim_value < 0 ? UIR_DIM_NONE : uir_dim_const(importer->module->dims, proto->dim_value);
    if (proto->value_case != UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM) return UIR_DIM_NONE;
    uir_bytes text = uir_proto_bytes(true, proto->dim_param);
    if (!text.length || !uir_strings_find(&importer->names, text.data, text.length, &name)) return UIR_DIM_NONE;
    return importer->symbols.data[name.id];
}

static uir_status read_shape(uir_importer *importer, const UirOnnx__TensorShapeProto *shape, uir_type *type) {
    uir_dim *dims;
    if (!shape || shape->n_dim > UIR_MAX_RANK) return UIR_STATUS_OK;
    type->rank_known = true;
    type->rank = (uint32_t)shape->n_dim;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(&importer->module->arena, type->rank + 1u, sizeof *dims));
    for (uint32_t i = 0; i < type->rank; i++) dims[i] = known_dim(importer, shape->dim[i]);
    type->dims = dims;
    return UIR_STATUS_OK;
}

/* Of a list or an optional: of its elements, which need not have one shape. */
static uir_status read_type(uir_importer *importer, const UirOnnx__TypeProto *proto, uir_type *type) {
    *type = (uir_type){.kind = UIR_VALUE_TENSOR};
    if (proto && proto->value_case == UIR_ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        type->kind = UIR_VALUE_SEQUENCE;
        proto = proto->sequence_type->elem_type;
    } else if (proto && proto->value_case == UIR_ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        type->kind = UIR_VALUE_OPTIONAL;
        proto = proto->optional_type->elem_type;
    }
    if (!proto || proto->value_case != UIR_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return UIR_STATUS_OK;
    const UirOnnx__TypeProto__Tensor *tensor = proto->tensor_type;
    if (tensor->has_elem_type && uir_dtype_is_valid(tensor->elem_type)) type->dtype = (uir_dtype)tensor->elem_type;
    return type->kind == UIR_VALUE_TENSOR ? read_shape(importer, tensor->shape, type) : UIR_STATUS_OK;
}

static uir_status declare(uir_importer *importer, UirOnnx__ValueInfoProto *const *infos, size_t count) {
    uir_module *module = importer->module;
    UIR_TRY(uir_import_spend(importer, count));
    for (size_t i = 0; i < count; i++) {
        uir_bytes bytes = UIR_PROTO_BYTES(infos[i], name);
        uir_string name;
        uir_declaration declared = {0};
        if (!bytes.length || !uir_strings_find(&importer->names, bytes.data, bytes.length, &name)) continue;
        const uir_import_binding *binding = &importer->bindings.data[name.id];
        if (!binding->bound || binding->scope != importer->scope || !binding->value.id) continue;
        declared.value = binding->value;
        if (!uir_value_info_get(module, declared.value)->producer.id) continue;
        UIR_TRY(read_type(importer, infos[i]->type, &declared.type));
        if (declared.type.dtype == UIR_DTYPE_NONE && !declared.type.rank_known) continue;
        UIR_TRY(uir_vector_push(&module->arena, &module->declared, declared));
    }
    return UIR_STATUS_OK;
}

uir_status uir_import_declared(uir_importer *importer, const UirOnnx__GraphProto *graph) {
    UIR_TRY(declare(importer, graph->value_info, graph->n_value_info));
    return declare(importer, graph->output, graph->n_output);
}
