/* TypeProto to types; dim_params to dims. */
#include "frontend/import.h"

#include <string.h>

/* Longer texts are names, not expressions. */
enum { MAX_EXPRESSION = 200 };

/* Which value's type is read, and where. */
typedef struct place_of_type {
    const uir_location *place;
    uir_bytes owner;
} place_of_type;

/* A name, of one dim wherever it stands; exporters use dots and colons in theirs. */
static bool is_plain(uir_bytes text) {
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && ((c >= '0' && c <= '9') || c == '.' || c == ':'))) return false;
    }
    return text.length > 0;
}

static uir_status add_symbol(uir_importer *importer, uir_bytes text, uir_dim *out_dim) {
    const char *shown;
    uir_symbol symbol;
    UIR_TRY(uir_import_text(importer, text, &importer->scratch, &shown));
    UIR_TRY(uir_dims_add_symbol(importer->module->dims, shown, strlen(shown), UIR_SYMBOL_FACTS_SIZE, &symbol));
    *out_dim = uir_dim_symbol(importer->module->dims, symbol);
    return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* The symbol called `text`, made at its first use. */
static uir_status named_symbol(uir_importer *importer, uir_name name, uir_dim *out_dim) {
    *out_dim = importer->symbols.data[name.id];
    if (out_dim->id) return UIR_STATUS_OK;
    UIR_TRY(add_symbol(importer, uir_import_bytes(importer, name), out_dim));
    importer->symbols.data[name.id] = *out_dim;
    return UIR_STATUS_OK;
}

typedef struct expression {
    const uir_importer *importer;
    uint32_t names; /* met in it */
} expression;

static uir_dim resolve_known(void *user, const char *name, size_t length) {
    expression *e = user;
    uir_string found;
    if (!uir_strings_find(&e->importer->names, name, length, &found)) return UIR_DIM_NONE;
    e->names++;
    return e->importer->symbols.data[found.id];
}

/* The dim of an expression over known symbols; none when the text is no such thing. Numbers alone ("04079647/335") are
 * a name that an exporter gave, as is a name in quotes. */
static uir_dim parse_expression(uir_importer *importer, uir_bytes text) {
    uir_tokenizer tokenizer;
    uir_dim dim = UIR_DIM_NONE;
    expression e = {importer, 0};
    static const char no_expression[] = {0, '#', '"'};
    if (text.length > MAX_EXPRESSION) return dim;
    for (size_t i = 0; i < sizeof no_expression; i++)
        if (memchr(text.data, no_expression[i], text.length)) return dim;
    uir_tokenizer_init(&tokenizer, text.data, text.length, importer->file, &importer->scratch, NULL);
    uir_status status = uir_dim_parse(importer->module->dims, &tokenizer, resolve_known, &e, &dim);
    return status == UIR_STATUS_OK && tokenizer.current.kind == UIR_TOKEN_END && e.names ? dim : UIR_DIM_NONE;
}

/* Whether the text could name anything: "?" and "*", which exporters write for dims that differ, could not. */
static bool is_name(uir_bytes text) {
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80) return true;
    }
    return false;
}

/* A name means one dim wherever it stands. Any other text means what it says where it is an expression of known names;
 * else it is an odd name, or names nothing: then each time a dim of its own. */
static uir_status dim_from_text(uir_importer *importer, uir_bytes text, uir_dim *out_dim) {
    uir_name name;
    UIR_TRY(uir_import_name(importer, text, &name));
    if (is_plain(text)) return named_symbol(importer, name, out_dim);
    *out_dim = importer->symbols.data[name.id];
    if (!out_dim->id) *out_dim = parse_expression(importer, text);
    importer->symbols.data[name.id] = *out_dim;
    if (out_dim->id) return UIR_STATUS_OK;
    return is_name(text) ? named_symbol(importer, name, out_dim) : add_symbol(importer, text, out_dim);
}

uir_status uir_import_declare_dims(uir_importer *importer, const UirOnnx__GraphProto *graph) {
    for (size_t i = 0; i < graph->n_input; i++) {
        const UirOnnx__TypeProto *type = graph->input[i]->type;
        if (!type || type->value_case != UIR_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape) continue;
        const UirOnnx__TensorShapeProto *shape = type->tensor_type->shape;
        for (size_t d = 0; d < shape->n_dim; d++) {
            if (shape->dim[d]->value_case != UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM) continue;
            uir_bytes text = uir_proto_bytes(true, shape->dim[d]->dim_param);
            uir_name name;
            uir_dim dim;
            UIR_TRY(uir_import_name(importer, text, &name));
            importer->is_dim_name.data[name.id] = true;
            if (is_plain(text)) UIR_TRY(named_symbol(importer, name, &dim));
        }
    }
    return UIR_STATUS_OK;
}

/* A dim of which nothing is known is called after its value and axis: a caller can then bind it. Where the file has a
 * dim of that name, a number follows. */
static uir_status unnamed_dim(uir_importer *importer, const place_of_type *of, uint32_t axis, uir_dim *out_dim) {
    uir_text text;
    uir_string found;
    uir_text_init(&text, importer->allocator);
    uir_text_append(&text, of->owner.data, of->owner.length);
    uir_text_append_format(&text, "_%u", (unsigned)axis);
    size_t length = text.length;
    for (uint32_t k = 2; !text.failed && uir_strings_find(&importer->names, text.data, text.length, &found) &&
                         importer->is_dim_name.data[found.id];
         k++) {
        text.length = length;
        uir_text_append_format(&text, "_%u", (unsigned)k);
    }
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) status = add_symbol(importer, (uir_bytes){text.data, text.length}, out_dim);
    uir_text_deinit(&text);
    return status;
}

static uir_status read_dim(uir_importer *importer, const place_of_type *of, uint32_t axis,
                           const UirOnnx__TensorShapeProto__Dimension *proto, uir_dim *out_dim) {
    switch (proto->value_case) {
    case UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE:
        if (proto->dim_value >= 0) {
            *out_dim = uir_dim_const(importer->module->dims, proto->dim_value);
            return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
        }
        if (proto->dim_value != -1) { /* exporters write -1 for "any" */
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, of->place, NULL,
                                       "a declared dim is negative: %lld", (long long)proto->dim_value));
        }
        break;
    case UIR_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM:
        if (proto->dim_param.len == 0) break;
        return dim_from_text(importer, uir_proto_bytes(true, proto->dim_param), out_dim);
    default: /* unset */
        break;
    }
    return unnamed_dim(importer, of, axis, out_dim);
}

static uir_status read_tensor_type(uir_importer *importer, const place_of_type *of,
                                   const UirOnnx__TypeProto__Tensor *proto, uir_type *type) {
    if (proto->has_elem_type && proto->elem_type != 0) {
        if (!uir_dtype_is_valid(proto->elem_type)) {
            return uir_import_unsupported_found(
                importer, of->place, NULL, "the declared element type number %d is unknown", (int)proto->elem_type);
        }
        type->dtype = (uir_dtype)proto->elem_type;
    }
    if (!proto->shape) return UIR_STATUS_OK;
    if (proto->shape->n_dim > UIR_MAX_RANK) {
        return uir_import_unsupported_found(importer, of->place, NULL,
                                            "a declared rank of %zu; at most %d is supported", proto->shape->n_dim,
                                            UIR_MAX_RANK);
    }
    uir_dim *dims;
    uint32_t rank = (uint32_t)proto->shape->n_dim;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(&importer->scratch, rank + 1, sizeof *dims));
    for (uint32_t i = 0; i < rank; i++) UIR_TRY(read_dim(importer, of, i, proto->shape->dim[i], &dims[i]));
    type->rank_known = true;
    type->rank = rank;
    type->dims = dims;
    return UIR_STATUS_OK;
}

uir_status uir_import_type(uir_importer *importer, const uir_location *place, uir_bytes owner,
                           const UirOnnx__TypeProto *proto, uir_type *out_type) {
    place_of_type of = {place, owner};
    *out_type = (uir_type){.kind = UIR_VALUE_TENSOR};
    bool outermost = true;
    while (proto) {
        switch (proto->value_case) {
        case UIR_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
            return read_tensor_type(importer, &of, proto->tensor_type, out_type);
        case UIR_ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
            if (outermost) out_type->kind = UIR_VALUE_SEQUENCE;
            proto = proto->sequence_type->elem_type;
            break;
        case UIR_ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
            if (outermost) out_type->kind = UIR_VALUE_OPTIONAL;
            proto = proto->optional_type->elem_type;
            break;
        case UIR_ONNX__TYPE_PROTO__VALUE__NOT_SET:
            return UIR_STATUS_OK;
        default:
            return uir_import_unsupported_found(importer, place, "use tensors, sequences or optionals",
                                                "'%.*s' is a map, sparse or opaque, which is not supported",
                                                UIR_BYTES_FORMAT(owner));
        }
        outermost = false;
    }
    return UIR_STATUS_OK;
}

uir_status uir_import_type_text(uir_importer *importer, const UirOnnx__TypeProto *proto, uir_text *text) {
    uint32_t open = 0;
    while (proto && (proto->value_case == UIR_ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE ||
                     proto->value_case == UIR_ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE)) {
        bool sequence = proto->value_case == UIR_ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        uir_text_append_string(text, sequence ? "seq(" : "optional(");
        proto = sequence ? proto->sequence_type->elem_type : proto->optional_type->elem_type;
        open++;
    }
    uir_type type;
    UIR_TRY(uir_import_type(importer, &(uir_location){.file = importer->file}, (uir_bytes){"", 0}, proto, &type));
    uir_text_append_format(text, "tensor(%s)", type.dtype == UIR_DTYPE_NONE ? "?" : uir_dtype_name(type.dtype));
    while (open--) uir_text_append_string(text, ")");
    return uir_text_status(text);
}
