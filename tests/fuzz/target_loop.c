/* Texts of loop functions: parsed, verified, printed, read again, copied, and interpreted at small sizes. */
#include "ir/loop/loop.h"
#include "tests/fuzz/target.h"

static uir_status reread(void *user, fuzz_case *c, const char *text, size_t length, uir_text *out) {
    uir_loop_function *function = NULL;
    (void)user;
    UIR_TRY(uir_loop_parse(&c->allocator, text, length, "printed", &c->diagnostics, &function));
    uir_loop_print(function, out);
    uir_loop_function_destroy(function);
    return uir_text_status(out);
}

static uir_status copy_text(void *user, fuzz_case *c, const char *text, size_t length, uir_text *out) {
    uir_loop_function *copy = NULL;
    (void)c;
    (void)text;
    (void)length;
    UIR_TRY(uir_loop_clone(user, &copy));
    uir_loop_print(copy, out);
    uir_loop_function_destroy(copy);
    return uir_text_status(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_case c;
    uir_loop_function *function = NULL;
    fuzz_begin(&c);
    uir_status status = uir_loop_parse(&c.allocator, (const char *)data, size, "fuzz", &c.diagnostics, &function);
    fuzz_require_told(&c, status);
    if (status == UIR_STATUS_OK) {
        uir_text printed;
        uir_text_init(&printed, &c.allocator);
        status = uir_loop_verify(function, &c.diagnostics);
        fuzz_require_told(&c, status);
        uir_loop_print(function, &printed);
        if (status == UIR_STATUS_OK) fuzz_require_same_text(&c, &printed, reread, NULL);
        fuzz_require_same_text(&c, &printed, copy_text, function);
        uir_text_deinit(&printed);
        uir_loop_function_destroy(function);
    }
    fuzz_count(status == UIR_STATUS_OK);
    fuzz_end(&c);
    return 0;
}
