/* What the file declares of values, held against what their nodes make. */
#include "decompose/decompose.h"

enum { MOST_TOLD = 8 }; /* contradictions of shapes that are told one by one */

typedef struct holding {
    const uir_module *source;
    uir_diagnostics *diagnostics;
    bool strict;
    uint32_t shapes; /* that contradict */
    uir_status status;
} holding;

static bool contradicts(const uir_module *m, const uir_type *declared, const uir_type *made) {
    if (declared->kind != UIR_VALUE_TENSOR || made->kind != UIR_VALUE_TENSOR || !declared->rank_known ||
        !made->rank_known)
        return false;
    if (declared->rank != made->rank) return true;
    for (uint32_t d = 0; d < made->rank; d++)
        if (declared->dims[d].id &&
            uir_dim_compare(m->dims, declared->dims[d], UIR_RELATION_EQ, made->dims[d]) == UIR_FALSE)
            return true;
    return false;
}

/* "f32[2, ?]", in letters that a message may hold. */
static uir_status print_type(const uir_module *m, const uir_type *type, uir_text *text) {
    uir_text_append_string(text, type->kind == UIR_VALUE_SEQUENCE   ? "a list of "
                                 : type->kind == UIR_VALUE_OPTIONAL ? "an optional "
                                                                    : "");
    uir_text_append_string(text, type->dtype == UIR_DTYPE_NONE ? "" : uir_dtype_name(type->dtype));
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return uir_text_status(text);
    for (uint32_t d = 0; d < type->rank; d++) {
        uir_text_append_string(text, d ? ", " : "[");
        if (type->dims[d].id)
            uir_dim_print(m->dims, type->dims[d], text);
        else
            uir_text_append_string(text, "?");
    }
    uir_text_append_string(text, type->rank ? "]" : "[]");
    return uir_text_status(text);
}

static uir_status tell(holding *h, const uir_declaration *declaration, bool is_error) {
    const uir_module *m = h->source;
    const uir_value_info *value = uir_value_info_get(m, declaration->value);
    const uir_node_info *node = uir_node_get(m, value->producer);
    const uir_location where = {.node = uir_string_text(&m->strings, node->name), .op = uir_op_get_row(node->op)->name};
    const char *name = uir_string_text(&m->strings, value->name);
    uir_text declared, made;
    uir_text_init(&declared, m->allocator);
    uir_text_init(&made, m->allocator);
    uir_status status = print_type(m, &declaration->type, &declared);
    if (status == UIR_STATUS_OK) status = print_type(m, &value->type, &made);
    static const char format[] = "'%s' is declared %s, but the node produces %s";
    if (status == UIR_STATUS_OK && is_error)
        h->status = uir_error(h->diagnostics, UIR_STATUS_BAD_FILE, &where, format, name, declared.data, made.data);
    else if (status == UIR_STATUS_OK)
        uir_warning(h->diagnostics, &where, format, name, declared.data, made.data);
    uir_text_deinit(&declared);
    uir_text_deinit(&made);
    return status;
}

static uir_status hold(holding *h, const uir_declaration *declaration) {
    const uir_type *declared = &declaration->type, *made = &uir_value_info_get(h->source, declaration->value)->type;
    /* A plain value stands for a full optional. */
    bool same_kind =
        declared->kind == made->kind || declared->kind == UIR_VALUE_OPTIONAL || made->kind == UIR_VALUE_OPTIONAL;
    bool typed = declared->dtype != UIR_DTYPE_NONE && made->dtype != UIR_DTYPE_NONE;
    if (typed && (!same_kind || declared->dtype != made->dtype)) return tell(h, declaration, true);
    if (declaration->varies || !contradicts(h->source, declared, made)) return UIR_STATUS_OK;
    return ++h->shapes > MOST_TOLD ? UIR_STATUS_OK : tell(h, declaration, h->strict);
}

uir_status uir_decompose_check_declared(const uir_module *source, bool strict, uir_diagnostics *diagnostics) {
    holding h = {.source = source, .diagnostics = diagnostics, .strict = strict};
    for (uint32_t i = 0; i < source->declared.count; i++) UIR_TRY(hold(&h, &source->declared.data[i]));
    if (h.shapes > MOST_TOLD)
        uir_warning(diagnostics, NULL, "%u more declared shapes contradict the results of their nodes",
                    h.shapes - MOST_TOLD);
    return h.status;
}
