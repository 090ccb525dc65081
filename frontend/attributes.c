/* AttributeProto to attributes, checked against the table of what each op has. */
#include "frontend/import.h"

#include <string.h>

/* AttributeProto.AttributeType: KIND(constant, number, whether the field that it names is set). */
#define KINDS(KIND)                                                                                                    \
    KIND(FLOAT, 1, a->has_f)                                                                                           \
    KIND(INT, 2, a->has_i)                                                                                             \
    KIND(STRING, 3, a->has_s)                                                                                          \
    KIND(TENSOR, 4, a->t != NULL)                                                                                      \
    KIND(GRAPH, 5, a->g != NULL)                                                                                       \
    KIND(FLOATS, 6, a->n_floats > 0)                                                                                   \
    KIND(INTS, 7, a->n_ints > 0)                                                                                       \
    KIND(STRINGS, 8, a->n_strings > 0)                                                                                 \
    KIND(TENSORS, 9, a->n_tensors > 0)                                                                                 \
    KIND(GRAPHS, 10, a->n_graphs > 0)                                                                                  \
    KIND(SPARSE_TENSOR, 11, a->sparse_tensor != NULL)                                                                  \
    KIND(SPARSE_TENSORS, 12, a->n_sparse_tensors > 0)                                                                  \
    KIND(TYPE_PROTO, 13, a->tp != NULL)                                                                                \
    KIND(TYPE_PROTOS, 14, a->n_type_protos > 0)

typedef enum kind {
    KIND_UNDEFINED = 0,
#define KIND_ENUM(constant, number, is_set) KIND_##constant = number,
    KINDS(KIND_ENUM) KIND_COUNT
} kind;

static const char *const kind_names[KIND_COUNT] = {"UNDEFINED",
#define KIND_NAME(constant, number, is_set) [number] = #constant,
                                                   KINDS(KIND_NAME)};

typedef struct schema {
    uir_op op;
    const char *name;
    kind kind;
    bool required;
    int first, last;
} schema;

static const schema schemas[] = {
#define UIR_ONNX_ATTRIBUTE(constant, name, kind, required, first, last)                                                \
    {UIR_OP_ONNX_##constant, name, KIND_##kind, required, first, last},
#include "frontend/attributes.def"
#undef UIR_ONNX_ATTRIBUTE
};

static bool in_force(const schema *schema, uir_op op, int since_version) {
    return schema->op == op && since_version >= schema->first && (!schema->last || since_version <= schema->last);
}

static bool is_called(const schema *schema, uir_bytes name) {
    return strlen(schema->name) == name.length && memcmp(schema->name, name.data, name.length) == 0;
}

static const schema *find_schema(uir_op op, int since_version, uir_bytes name) {
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        if (in_force(&schemas[i], op, since_version) && is_called(&schemas[i], name)) return &schemas[i];
    }
    return NULL;
}

/* The fields that are set, as bits by kind number. */
static uint32_t set_kinds(const UirOnnx__AttributeProto *a) {
    uint32_t set = 0;
#define KIND_SET(constant, number, is_set) set |= (is_set) ? 1u << (number) : 0;
    KINDS(KIND_SET)
    return set;
}

/* The kind of an attribute: its type, or, where old files leave that out, the one field that is set. UNDEFINED after a
 * problem. */
static uir_status kind_of(uir_importer *importer, const UirOnnx__AttributeProto *attribute, const schema *schema,
                          const uir_location *place, kind *out_kind) {
    uir_bytes name = UIR_PROTO_BYTES(attribute, name);
    uint32_t set = set_kinds(attribute);
    int type = attribute->has_type ? (int)attribute->type : KIND_UNDEFINED;
    *out_kind = KIND_UNDEFINED;
    if (type == KIND_UNDEFINED) {
        if (set == 0 || (set & (set - 1))) {
            return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                      "the type of attribute '%.*s' is missing", UIR_BYTES_FORMAT(name));
        }
        while (!(set >> type & 1)) type++;
    }
    if (type < 0 || type >= KIND_COUNT) {
        return uir_import_problem(importer, UIR_STATUS_UNSUPPORTED, place, NULL,
                                  "attribute '%.*s' has the unknown kind %d", UIR_BYTES_FORMAT(name), type);
    }
    if (set & ~(1u << type)) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "attribute '%.*s' is declared %s but holds something else", UIR_BYTES_FORMAT(name),
                                  kind_names[type]);
    }
    if (schema && schema->kind != (kind)type) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "attribute '%s' must be %s, not %s",
                                  schema->name, kind_names[schema->kind], kind_names[type]);
    }
    *out_kind = (kind)type;
    return UIR_STATUS_OK;
}

uir_status uir_import_resolve_attribute(uir_importer *importer, const UirOnnx__AttributeProto *attribute,
                                        const uir_location *place, const UirOnnx__AttributeProto **out_attribute) {
    *out_attribute = attribute;
    uir_bytes reference = UIR_PROTO_BYTES(attribute, ref_attr_name);
    if (!reference.length) return UIR_STATUS_OK;
    *out_attribute = NULL;
    const uir_import_frame *frame = importer->frame;
    if (!frame) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "attribute '%.*s' refers to a function's attribute outside any function",
                                  UIR_BYTES_FORMAT(UIR_PROTO_BYTES(attribute, name)));
    }
    uir_name name;
    UIR_TRY(uir_import_name(importer, reference, &name));
    for (uint32_t i = 0; i < frame->attribute_count; i++) {
        if (frame->attribute_names[i].id == name.id) *out_attribute = frame->attributes[i];
    }
    return UIR_STATUS_OK;
}

static uir_status intern(uir_importer *importer, uir_bytes bytes, uir_string *out_string) {
    return uir_strings_intern(&importer->module->strings, bytes.data, bytes.length, out_string);
}

static uir_status read_strings(uir_importer *importer, const UirOnnx__AttributeProto *proto, uir_attribute *out) {
    uir_string *strings;
    UIR_TRY_ALLOCATE(strings, uir_arena_allocate_array(&importer->scratch, proto->n_strings + 1, sizeof *strings));
    for (size_t i = 0; i < proto->n_strings; i++) {
        UIR_TRY(intern(importer, uir_proto_bytes(true, proto->strings[i]), &strings[i]));
    }
    out->count = (uint32_t)proto->n_strings;
    out->value.strings = strings;
    return UIR_STATUS_OK;
}

static uir_status read_floats(uir_importer *importer, const UirOnnx__AttributeProto *proto, uir_attribute *out) {
    double *reals;
    UIR_TRY_ALLOCATE(reals, uir_arena_allocate_array(&importer->scratch, proto->n_floats + 1, sizeof *reals));
    for (size_t i = 0; i < proto->n_floats; i++) reals[i] = (double)proto->floats[i];
    out->count = (uint32_t)proto->n_floats;
    out->value.reals = reals;
    return UIR_STATUS_OK;
}

static uir_status read_graph(uir_importer *importer, uir_graph_id parent, const UirOnnx__GraphProto *proto,
                             uir_attribute *out) {
    const char *name;
    uir_budget *budget = importer->scratch.budget;
    uint64_t depth = 0;
    for (uir_graph_id outer = parent; outer.id; outer = uir_graph_get(importer->module, outer)->parent) depth++;
    if (depth > uir_budget_get_limit(budget, UIR_LIMIT_DEPTH))
        return uir_budget_refuse(budget, UIR_LIMIT_DEPTH, 0, importer->diagnostics, NULL);
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(proto, name), &importer->scratch, &name));
    UIR_TRY(uir_module_add_graph(importer->module, parent, name, &out->value.graph));
    return uir_import_graph(importer, out->value.graph, proto, NULL, NULL);
}

static uir_status read_type(uir_importer *importer, const UirOnnx__TypeProto *proto, uir_attribute *out) {
    uir_text text;
    uir_text_init(&text, importer->allocator);
    uir_status status = uir_import_type_text(importer, proto, &text);
    if (status == UIR_STATUS_OK) {
        status = intern(importer, (uir_bytes){text.data, text.length}, &out->value.string);
    }
    uir_text_deinit(&text);
    return status;
}

/* One attribute. A tensor that cannot be read leaves *out_good false, its message given. */
static uir_status read_attribute(uir_importer *importer, uir_graph_id graph, const UirOnnx__AttributeProto *proto,
                                 kind kind, const uir_location *place, uir_attribute *out, bool *out_good) {
    uir_status status = UIR_STATUS_OK;
    if (proto->n_ints > UINT32_MAX || proto->n_floats > UINT32_MAX || proto->n_strings > UINT32_MAX)
        return UIR_STATUS_LIMIT;
    switch (kind) {
    case KIND_INT:
        out->kind = UIR_ATTRIBUTE_INT;
        out->value.integer = proto->i;
        return UIR_STATUS_OK;
    case KIND_FLOAT:
        out->kind = UIR_ATTRIBUTE_FLOAT;
        out->value.real = (double)proto->f;
        return UIR_STATUS_OK;
    case KIND_STRING:
        out->kind = UIR_ATTRIBUTE_STRING;
        return intern(importer, UIR_PROTO_BYTES(proto, s), &out->value.string);
    case KIND_INTS:
        out->kind = UIR_ATTRIBUTE_INTS;
        out->count = (uint32_t)proto->n_ints;
        out->value.integers = proto->ints;
        return UIR_STATUS_OK;
    case KIND_FLOATS:
        out->kind = UIR_ATTRIBUTE_FLOATS;
        return read_floats(importer, proto, out);
    case KIND_STRINGS:
        out->kind = UIR_ATTRIBUTE_STRINGS;
        return read_strings(importer, proto, out);
    case KIND_GRAPH:
        if (!proto->g) break;
        out->kind = UIR_ATTRIBUTE_GRAPH;
        return read_graph(importer, graph, proto->g, out);
    case KIND_TYPE_PROTO:
        out->kind = UIR_ATTRIBUTE_STRING;
        return read_type(importer, proto->tp, out);
    case KIND_TENSOR:
        if (!proto->t) break;
        out->kind = UIR_ATTRIBUTE_TENSOR;
        status = uir_tensor_from_proto(&importer->tensors, place, proto->t, &out->value.tensor);
        *out_good = status == UIR_STATUS_OK;
        return uir_import_absorb(importer, status);
    case KIND_SPARSE_TENSOR:
        if (!proto->sparse_tensor) break;
        out->kind = UIR_ATTRIBUTE_TENSOR;
        status = uir_tensor_from_sparse_proto(&importer->tensors, place, proto->sparse_tensor, &out->value.tensor);
        *out_good = status == UIR_STATUS_OK;
        return uir_import_absorb(importer, status);
    default:
        *out_good = false;
        return uir_import_unsupported_found(importer, place, NULL, "attributes of kind %s are not supported",
                                            kind_names[kind]);
    }
    *out_good = false;
    return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "attribute '%.*s' has no value",
                              UIR_BYTES_FORMAT(UIR_PROTO_BYTES(proto, name)));
}

/* What the schema calls a sparse value is the dense one's attribute here. */
static uir_bytes target_name(uir_bytes name, kind kind) {
    static const char prefix[] = "sparse_";
    if (kind == KIND_SPARSE_TENSOR && name.length > sizeof prefix - 1 &&
        !memcmp(name.data, prefix, sizeof prefix - 1)) {
        return (uir_bytes){name.data + sizeof prefix - 1, name.length - (sizeof prefix - 1)};
    }
    return name;
}

static uir_status check_required(uir_importer *importer, uir_op op, int since_version, const UirOnnx__NodeProto *node,
                                 const uir_location *place, bool *out_good) {
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        if (!schemas[i].required || !in_force(&schemas[i], op, since_version)) continue;
        bool given = false;
        for (size_t a = 0; a < node->n_attribute && !given; a++) {
            given = is_called(&schemas[i], UIR_PROTO_BYTES(node->attribute[a], name));
        }
        if (given) continue;
        *out_good = false;
        UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL, "the attribute '%s' is missing",
                                   schemas[i].name));
    }
    return UIR_STATUS_OK;
}

uir_status uir_import_attributes(uir_importer *importer, uir_graph_id graph, uir_op op, int since_version,
                                 const UirOnnx__NodeProto *node, const uir_location *place,
                                 uir_attribute **out_attributes, uint32_t *out_count, bool *out_good) {
    uir_attribute *attributes;
    *out_count = 0;
    *out_good = true;
    UIR_TRY_ALLOCATE(attributes,
                     uir_arena_allocate_array(&importer->scratch, node->n_attribute + 1, sizeof *attributes));
    *out_attributes = attributes;
    UIR_TRY(check_required(importer, op, since_version, node, place, out_good));
    for (size_t i = 0; i < node->n_attribute; i++) {
        uir_bytes name = UIR_PROTO_BYTES(node->attribute[i], name);
        const schema *schema = find_schema(op, since_version, name);
        if (!schema) {
            *out_good = false;
            UIR_TRY(uir_import_unsupported_found(importer, place,
                                                 "remove the attribute if the result does not depend on it",
                                                 "version %d of %s has no attribute '%.*s'", since_version,
                                                 uir_op_get_row(op)->name, UIR_BYTES_FORMAT(name)));
            continue;
        }
        const UirOnnx__AttributeProto *meant;
        UIR_TRY(uir_import_resolve_attribute(importer, node->attribute[i], place, &meant));
        if (!meant) {
            if (!schema->required) continue;
            *out_good = false;
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                       "the attribute '%s' is missing in a call of the function", schema->name));
            continue;
        }
        kind kind;
        UIR_TRY(kind_of(importer, meant, schema, place, &kind));
        uir_attribute *out = &attributes[*out_count];
        *out = (uir_attribute){0};
        UIR_TRY(intern(importer, target_name(name, kind), &out->name));
        bool good = kind != KIND_UNDEFINED;
        for (uint32_t a = 0; a < *out_count && good; a++) {
            if (attributes[a].name.id != out->name.id) continue;
            good = false;
            UIR_TRY(uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                       "the attribute '%.*s' is given twice", UIR_BYTES_FORMAT(name)));
        }
        if (good) UIR_TRY(read_attribute(importer, graph, meant, kind, place, out, &good));
        if (good) {
            (*out_count)++;
        } else {
            *out_good = false;
        }
    }
    return UIR_STATUS_OK;
}
