/* The op table and what is looked up in it. */
#include "ir/graph/graph.h"
#include <string.h>

static const uir_op_row rows[UIR_OP_COUNT] = {
    [UIR_OP_NONE] = {UIR_SECTION_NONE, "NONE", NULL, "none", NULL, 0, 0, 0, 0, 0, 0, ""},
#define UIR_ONNX_OP(constant, domain, name, versions, min_inputs, max_inputs, min_outputs, max_outputs, traits)        \
    [UIR_OP_ONNX_##constant] = {UIR_SECTION_ONNX, #constant,   domain,      name,   versions, min_inputs,              \
                                max_inputs,       min_outputs, max_outputs, traits, 0,        ""},
#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    [UIR_OP_##constant] = {UIR_SECTION_PRIMITIVE,       #constant, NULL,   name,   NULL,      min_inputs, max_inputs,  \
                           (outputs) < 0 ? 0 : outputs, outputs,   traits, dtypes, attributes},
#include "ir/graph/ops.def"
};

const uir_op_row *uir_op_get_row(uir_op op) {
    return (int)op >= 0 && op < UIR_OP_COUNT ? &rows[op] : &rows[UIR_OP_NONE];
}

uir_op uir_op_find_primitive(const char *name, size_t length) {
    for (int op = 0; op < UIR_OP_COUNT; op++) {
        const uir_op_row *row = &rows[op];
        if (row->section == UIR_SECTION_PRIMITIVE && strlen(row->name) == length && !memcmp(row->name, name, length))
            return (uir_op)op;
    }
    return UIR_OP_NONE;
}

uir_op uir_op_find_onnx(const char *domain, const char *name) {
    if (!strcmp(domain, "ai.onnx")) domain = "";
    for (int op = 0; op < UIR_OP_COUNT; op++) {
        const uir_op_row *row = &rows[op];
        if (row->section == UIR_SECTION_ONNX && !strcmp(row->domain, domain) && !strcmp(row->name, name))
            return (uir_op)op;
    }
    return UIR_OP_NONE;
}

int uir_op_since_version(uir_op op, int opset) {
    const char *at = uir_op_get_row(op)->versions;
    int best = 0;
    while (at && *at) {
        int version = 0;
        while (*at >= '0' && *at <= '9') version = version * 10 + (*at++ - '0');
        if (version <= opset && version > best) best = version;
        while (*at && !(*at >= '0' && *at <= '9')) at++;
    }
    return best;
}

const char *uir_op_name(uir_op op) {
    return uir_op_get_row(op)->name;
}

const char *uir_op_said_name(uir_op op) {
    return uir_op_get_row(op)->traits & UIR_TRAIT_CHECK ? "" : uir_op_name(op);
}

static const char *const kind_names[UIR_ATTRIBUTE_KIND_COUNT] = {
#define UIR_ATTRIBUTE_KIND_NAME(constant, name) [UIR_ATTRIBUTE_##constant] = name,
    UIR_ATTRIBUTE_KINDS(UIR_ATTRIBUTE_KIND_NAME)
#undef UIR_ATTRIBUTE_KIND_NAME
};

const char *uir_attribute_kind_name(uir_attribute_kind kind) {
    return (int)kind >= 0 && kind < UIR_ATTRIBUTE_KIND_COUNT ? kind_names[kind] : "?";
}

bool uir_attribute_kind_from_name(const char *name, size_t length, uir_attribute_kind *out_kind) {
    for (int kind = 0; kind < UIR_ATTRIBUTE_KIND_COUNT; kind++) {
        if (strlen(kind_names[kind]) == length && !memcmp(kind_names[kind], name, length)) {
            *out_kind = (uir_attribute_kind)kind;
            return true;
        }
    }
    return false;
}

/* Reads "name:kind?" at `at`, which is not empty; returns where the next one begins. */
static const char *read_spec(const char *at, uir_attribute_spec *out_spec) {
    const char *colon = strchr(at, ':');
    size_t kind_length = strcspn(colon + 1, "? ");
    out_spec->name = at;
    out_spec->length = (size_t)(colon - at);
    out_spec->kind = UIR_ATTRIBUTE_INT;
    uir_attribute_kind_from_name(colon + 1, kind_length, &out_spec->kind);
    at = colon + 1 + kind_length;
    out_spec->optional = *at == '?';
    return at + strspn(at, "? ");
}

bool uir_op_get_attribute_spec(uir_op op, uint32_t index, uir_attribute_spec *out_spec) {
    const char *at = uir_op_get_row(op)->attributes;
    for (uint32_t i = 0; *at; i++) {
        at = read_spec(at, out_spec);
        if (i == index) return true;
    }
    return false;
}

bool uir_op_find_attribute_spec(uir_op op, const char *name, size_t length, uir_attribute_spec *out_spec) {
    for (uint32_t i = 0; uir_op_get_attribute_spec(op, i, out_spec); i++)
        if (out_spec->length == length && !memcmp(out_spec->name, name, length)) return true;
    return false;
}
