/* Running passes: each is followed by the verifier and, when asked, by print -> parse -> print. */
#include "ir/graph/graph.h"
#include <string.h>

static uir_status broke(uir_module *module, const uir_pass *pass, const char *what) {
    return uir_error(module->diagnostics, UIR_STATUS_INTERNAL, NULL, "pass %s (%s) %s", pass->name, pass->purpose,
                     what);
}

/* Text that is read back and printed again is the same text. */
static uir_status check_text(uir_module *module, const uir_pass *pass) {
    uir_text first, second;
    uir_text_init(&first, module->allocator);
    uir_text_init(&second, module->allocator);
    uir_module *again = NULL;
    uir_status status = uir_module_print(module, 16, &first);
    if (status == UIR_STATUS_OK)
        status = uir_module_parse(module->allocator, module->diagnostics, first.data, first.length, pass->name, module,
                                  &again);
    if (status == UIR_STATUS_OK) status = uir_module_print(again, 16, &second);
    if (status == UIR_STATUS_OK &&
        (first.length != second.length || memcmp(first.data, second.data, first.length) != 0))
        status = broke(module, pass, "leaves a module whose text reads back differently");
    else if (status == UIR_STATUS_BAD_FILE)
        status = broke(module, pass, "leaves a module whose text cannot be read back");
    uir_module_destroy(again);
    uir_text_deinit(&first);
    uir_text_deinit(&second);
    return status;
}

static uir_status dump(uir_module *module, const uir_pass *pass, const uir_pass_options *options) {
    uir_text text;
    uir_text_init(&text, module->allocator);
    uir_status status = uir_module_print(module, options->inline_limit ? options->inline_limit : 16, &text);
    if (status == UIR_STATUS_OK) options->dump_text(options->user, pass->name, text.data, text.length);
    uir_text_deinit(&text);
    return status;
}

static uir_status run_pass(uir_module *module, const uir_pass *pass, uir_pass_context *context,
                           const uir_pass_options *options) {
    UIR_TRY(pass->run(module, context));
    uir_status status = uir_module_verify(module, module->diagnostics);
    if (status == UIR_STATUS_BAD_FILE) return broke(module, pass, "leaves a module that does not verify");
    UIR_TRY(status);
    if (!options) return UIR_STATUS_OK;
    if (options->check_text) UIR_TRY(check_text(module, pass));
    bool wanted = options->dump && (!strcmp(options->dump, pass->name) || !strcmp(options->dump, "all"));
    if (wanted && options->dump_text) return dump(module, pass, options);
    return UIR_STATUS_OK;
}

uir_status uir_passes_run(uir_module *module, const uir_pass *passes, size_t count, const uir_pass_options *options) {
    uir_arena scratch;
    uir_arena_init(&scratch, module->allocator);
    uir_pass_context context = {.diagnostics = module->diagnostics,
                                .scratch = &scratch,
                                .machine = options ? options->machine : NULL,
                                .layouts_left_out = options ? options->layouts_left_out : 0,
                                .precision = options ? options->precision : 0,
                                .precision_counts = options ? options->precision_counts : NULL};
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
        if (options) status = uir_progress_tell(options->progress, options->stage, (double)i / (double)count);
        if (status != UIR_STATUS_OK) break;
        status = run_pass(module, &passes[i], &context, options);
        uir_arena_reset(&scratch);
    }
    uir_arena_deinit(&scratch);
    return status;
}
