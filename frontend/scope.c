/* Problems, names and what they are bound to. */
#include "frontend/import.h"

#include <stdio.h>
#include <string.h>

static void remember(uir_importer *importer, uir_status status) {
    /* Anything else that is wrong outweighs what is merely unsupported. */
    if (importer->worst == UIR_STATUS_OK || importer->worst == UIR_STATUS_UNSUPPORTED) importer->worst = status;
}

uir_status uir_import_problem(uir_importer *importer, uir_status status, const uir_location *place, const char *hint,
                              const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_error_hint(importer->diagnostics, status, place, hint, "%s", message);
    remember(importer, status);
    return UIR_STATUS_OK;
}

uir_status uir_import_absorb(uir_importer *importer, uir_status status) {
    if (status == UIR_STATUS_OK) return UIR_STATUS_OK;
    if (status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_LIMIT || status == UIR_STATUS_INTERNAL)
        return status;
    remember(importer, status);
    return UIR_STATUS_OK;
}

uir_status uir_import_unsupported_found(uir_importer *importer, const uir_location *place, const char *hint,
                                        const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    remember(importer, UIR_STATUS_UNSUPPORTED);
    importer->unsupported_count++;
    uir_name text, hint_name = {0};
    UIR_TRY(uir_strings_intern(&importer->texts, message, strlen(message), &text));
    if (hint) UIR_TRY(uir_strings_intern(&importer->texts, hint, strlen(hint), &hint_name));
    for (uint32_t i = 0; i < importer->unsupported.count; i++) {
        if (importer->unsupported.data[i].text.id == text.id) {
            importer->unsupported.data[i].count++;
            return UIR_STATUS_OK;
        }
    }
    if (importer->unsupported.count == UIR_IMPORT_MAX_UNSUPPORTED) return UIR_STATUS_OK;
    uir_import_unsupported feature = {text, hint_name, place->node, place->op, 1};
    return uir_vector_push(&importer->scratch, &importer->unsupported, feature);
}

void uir_import_report_unsupported(uir_importer *importer) {
    for (uint32_t i = 0; i < importer->unsupported.count; i++) {
        const uir_import_unsupported *feature = &importer->unsupported.data[i];
        uir_location place = {.file = importer->file, .node = feature->node, .op = feature->op};
        const char *hint = feature->hint.id ? uir_string_text(&importer->texts, feature->hint) : NULL;
        const char *text = uir_string_text(&importer->texts, feature->text);
        if (feature->count == 1) {
            uir_error_hint(importer->diagnostics, UIR_STATUS_UNSUPPORTED, &place, hint, "%s", text);
        } else {
            uir_error_hint(importer->diagnostics, UIR_STATUS_UNSUPPORTED, &place, hint,
                           "%s (%u nodes; this is the first)", text, (unsigned)feature->count);
        }
    }
}

uir_status uir_import_name(uir_importer *importer, uir_bytes bytes, uir_name *out_name) {
    UIR_TRY(uir_strings_intern(&importer->names, bytes.data, bytes.length, out_name));
    while (importer->bindings.count <= out_name->id) {
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->bindings, (uir_import_binding){{0}, false, 0, 0}));
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->symbols, UIR_DIM_NONE));
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->is_dim_name, false));
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->ops, UIR_OP_NONE));
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->makers, 0));
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->calls, 0));
        UIR_TRY(uir_vector_push(&importer->scratch, &importer->aliases, (uir_import_alias){{0}, 0}));
    }
    return UIR_STATUS_OK;
}

uir_bytes uir_import_bytes(const uir_importer *importer, uir_name name) {
    return (uir_bytes){uir_string_text(&importer->names, name), uir_string_length(&importer->names, name)};
}

uir_status uir_import_text(uir_importer *importer, uir_bytes bytes, uir_arena *arena, const char **out_text) {
    (void)importer;
    size_t zeros = 0;
    for (size_t i = 0; i < bytes.length; i++) zeros += bytes.data[i] == 0;
    if (zeros > (SIZE_MAX - bytes.length - 1) / 3) return UIR_STATUS_LIMIT;
    char *text;
    UIR_TRY_ALLOCATE(text, uir_arena_allocate(arena, bytes.length + 3 * zeros + 1));
    char *at = text;
    for (size_t i = 0; i < bytes.length; i++) {
        if (bytes.data[i]) {
            *at++ = bytes.data[i];
        } else {
            memcpy(at, "\\x00", 4);
            at += 4;
        }
    }
    *out_text = text;
    return UIR_STATUS_OK;
}

uir_import_scope uir_import_enter(uir_importer *importer, bool new_body) {
    uir_import_scope saved = {importer->undo.count, importer->scope, importer->body};
    importer->scope = ++importer->next_scope;
    if (new_body) importer->body = ++importer->next_body;
    return saved;
}

void uir_import_leave(uir_importer *importer, uir_import_scope saved) {
    while (importer->undo.count > saved.undo_count) {
        const uir_import_undo *undo = &importer->undo.data[--importer->undo.count];
        importer->bindings.data[undo->name.id] = undo->before;
    }
    importer->scope = saved.scope;
    importer->body = saved.body;
}

uir_status uir_import_bind(uir_importer *importer, uir_name name, uir_value_id value, const uir_location *place) {
    uir_import_binding *binding = &importer->bindings.data[name.id];
    if (binding->bound && binding->scope == importer->scope) {
        return uir_import_problem(importer, UIR_STATUS_BAD_FILE, place, NULL,
                                  "the name '%.*s' is given to two values of one graph",
                                  UIR_BYTES_FORMAT(uir_import_bytes(importer, name)));
    }
    UIR_TRY(uir_vector_push(&importer->scratch, &importer->undo, (uir_import_undo){name, *binding}));
    *binding = (uir_import_binding){value, true, importer->scope, importer->body};
    return UIR_STATUS_OK;
}

const uir_import_binding *uir_import_find(const uir_importer *importer, uir_name name) {
    const uir_import_binding *binding = &importer->bindings.data[name.id];
    return binding->bound && binding->body == importer->body ? binding : NULL;
}

/* A text that no value of the module has yet. */
static uir_status unique_text(uir_importer *importer, uir_name name, const char **out_text) {
    const char *base;
    UIR_TRY(uir_import_text(importer, uir_import_bytes(importer, name), &importer->scratch, &base));
    uir_string base_id, id;
    uint32_t known = importer->texts.entries.count;
    UIR_TRY(uir_strings_intern(&importer->texts, base, strlen(base), &base_id));
    bool is_new = importer->texts.entries.count > known;
    while (importer->suffixes.count <= base_id.id) UIR_TRY(uir_vector_push(&importer->scratch, &importer->suffixes, 0));
    id = base_id;
    while (!is_new) {
        known = importer->texts.entries.count;
        UIR_TRY(uir_strings_intern_format(&importer->texts, &id, "%s_%u", base,
                                          (unsigned)++importer->suffixes.data[base_id.id] + 1));
        is_new = importer->texts.entries.count > known;
    }
    *out_text = uir_string_text(&importer->texts, id);
    return UIR_STATUS_OK;
}

uir_status uir_import_new_value(uir_importer *importer, uir_name name, const uir_type *type, uir_tensor *constant,
                                uir_value_id *out_value) {
    const char *text = "";
    if (importer->aliases.data[name.id].scope == importer->scope) name = importer->aliases.data[name.id].shown;
    if (name.id) UIR_TRY(unique_text(importer, name, &text));
    return constant ? uir_module_add_constant(importer->module, text, constant, out_value)
                    : uir_module_add_value(importer->module, text, *type, out_value);
}
