/* What decides a package, and native code, besides the model's own files: texts, of which the cache makes keys. Each
 * holds this build of the library, for another may make something else of the same. */
#include "compile/identity.h"
#include "compile/stages.h"

#include <string.h>

static void describe_keep(const uir_onnx_keep *keep, uir_text *text) {
    if (keep->all) uir_text_append_string(text, "keep all\n");
    for (size_t i = 0; i < keep->count; i++) {
        size_t length = strlen(keep->names[i]);
        uir_text_append_format(text, "keep %zu ", length);
        uir_text_append(text, keep->names[i], length);
        uir_text_append_string(text, "\n");
    }
}

static void describe_overrides(const uir_onnx_overrides *overrides, uir_text *text) {
    for (size_t i = 0; i < overrides->count; i++)
        uir_text_append_format(text, "override %zu %s\n", strlen(overrides->names[i]), overrides->names[i]);
}

uir_status uir_key_of_package(const uir_compile *c, uir_text *text) {
    const char *variant;
    const uir_device_row *row = uir_device_find(c->options.device, &variant);
    uir_target_machine machine;
    if (!row) return UIR_STATUS_NOT_FOUND;
    UIR_TRY(uir_target_describe(row, variant, c->arena, NULL, &machine)); /* the model's own loading says it */
    uir_text_append_format(text, "package %d, %s ",
                           uir_device_has_driver(row) ? UIR_PACKAGE_VERSION : UIR_PACKAGE_VERSION_HOST, row->name);
    uir_target_describe_key(row, &machine, text);
    uir_text_append_string(text, c->options.within_nodes ? "\nno fusion\n" : "\n");
    if (c->options.exact) uir_text_append_string(text, "exact\n");
    if (c->options.strict) uir_text_append_string(text, "strict\n");
    if (c->options.precision) uir_text_append_format(text, "precision %s\n", uir_precision_name(c->options.precision));
    if (c->options.layouts_left_out) uir_text_append_format(text, "without layouts %x\n", c->options.layouts_left_out);
    if (c->source.keep) describe_keep(c->source.keep, text);
    if (c->source.overrides) describe_overrides(c->source.overrides, text);
    UIR_TRY(uir_identity_build(text));
    return uir_text_status(text);
}

/* Its instruction set and the kernels' texts: compilers agree on every bit, so none is named. */
uir_status uir_key_of_native(const uir_compile *c, uir_text *text) {
    UIR_TRY(uir_identity_build(text));
    uir_text_append_format(text, "%s\n", c->machine.variant);
    for (uint32_t i = 0; i < c->igraph_count; i++) uir_igraph_print(c->igraphs[i], text);
    return uir_text_status(text);
}
