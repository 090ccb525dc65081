/* The whole compile: an ONNX file to a checked module of primitives.
 *
 * In: where the model is. Out: two modules, the ONNX ops with the types that were inferred and the primitives that run,
 * with the facts of the file. The only code that sees every stage. */
#ifndef UIR_COMPILE_PRIMITIVES_H
#define UIR_COMPILE_PRIMITIVES_H

#include "frontend/frontend.h"

typedef struct uir_compile_options {
    uir_progress progress; /* may cancel */
    /* After the stage or clean-up pass called `dump` ("onnx", "primitives", or a pass's name) the text is handed over.
     */
    const char *dump;
    void (*dump_text)(void *user, const char *stage, const char *text, size_t length);
    void *dump_user;
    size_t inline_limit; /* constants of up to so many elements are written out, larger ones as hashes; 0: 16 */
    bool check_text;     /* print, parse and compare after each pass */
    const char *stop;    /* ends after this stage or pass; NULL: after the last */
} uir_compile_options;

typedef struct uir_compiled {
    uir_module *onnx;       /* as the frontend made it, types filled in by decompose */
    uir_module *primitives; /* cleaned; owns what both borrow (mapped files) */
    uir_onnx_info info;
    double load_ms, compile_ms;
} uir_compiled;

/* `arena` holds the texts of the info. `options` may be NULL. On failure nothing is owed,
 * and the info has what was read of the file until then. */
uir_status uir_compile_compile(const uir_onnx_source *source, const uir_allocator *allocator,
                                uir_diagnostics *diagnostics, uir_arena *arena, const uir_compile_options *options,
                                uir_compiled *out_compiled);
void uir_compiled_deinit(uir_compiled *compiled);

/* The clean-up passes in their order; NULL past the end. */
const uir_pass *uir_compile_pass(size_t index);
/* Goes on from a module of primitives as it was after the stage or pass `from` (NULL: "primitives") to the end of the
 * pass `after` (NULL: the last). INVALID_ARGUMENT with a message for a name that is none, or an order that is not
 * theirs. */
uir_status uir_compile_continue(uir_module *module, const char *from, const char *after, uir_diagnostics *diagnostics);

#endif
