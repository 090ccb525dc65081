/* The first stages: a model's file to a verified module of primitives, cleaned up. */
#include "compile/stages.h"
#include "decompose/decompose.h"

uir_status uir_compile_load(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    (void)stage;
    c->source.is_supported = uir_decompose_has_rule;
    return uir_onnx_load(&c->source, &c->allocator, call->diagnostics, c->arena, &c->info, &c->onnx);
}

/* What no kernel makes would leave the whole model to the interpreter. */
static uir_status drop_kept(uir_compile *c, uir_diagnostics *diagnostics) {
    uint32_t dropped;
    UIR_TRY(uir_onnx_drop_kept(c->primitives, &c->info, &dropped));
    if (dropped)
        uir_warning(diagnostics, NULL,
                    "%u strings, sequences and optionals are left out of the outputs; name one in --keep to keep it",
                    dropped);
    return UIR_STATUS_OK;
}

uir_status uir_compile_decompose(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    (void)stage;
    UIR_TRY(uir_decompose(c->onnx, &c->allocator, call->diagnostics, &c->primitives));
    UIR_TRY(uir_decompose_check_declared(c->onnx, c->options.strict, call->diagnostics));
    if (c->source.keep && c->source.keep->all) UIR_TRY(drop_kept(c, call->diagnostics));
    return uir_module_verify(c->primitives, call->diagnostics);
}

uir_status uir_compile_run_pass(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    (void)call;
    const uir_pass *pass = &uir_stage_get(stage)->pass;
    uir_pass_options options = {.check_text = c->options.check_text};
    return uir_passes_run(c->primitives, pass, 1, &options);
}
