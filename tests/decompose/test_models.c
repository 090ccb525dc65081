/* What must hold after decompose and after each clean-up pass, for every model at hand: only primitives are left, the
 * module verifies, its text reads back as itself, and running the pass again changes nothing.
 *
 *   test_decompose_models [-m MIB] [MODEL.onnx...]     without names: the onnx package's test data and build/models,
 *                                                      every one, but with -m those of more weights than that left out
 */
#include "decompose/decompose.h"
#include "passes/passes.h"
#include "frontend/frontend.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char *const patterns[] = {
    "build/venv/lib/python3*/site-packages/onnx/backend/test/data/node/*/model.onnx",
    "build/venv/lib/python3*/site-packages/onnx/backend/test/data/simple/*/model.onnx",
    "build/venv/lib/python3*/site-packages/onnx/backend/test/data/pytorch-*/*/model.onnx",
    "build/models/*/model.onnx",
};

enum { STEP = UIR_TEST_SHARE > 1 ? 4 : 1 }; /* under the sanitizers every fourth model */

static char **given;
static int given_count;
static long long most_bytes = INT64_MAX;

static void show(const char *path, const uir_diagnostics *diagnostics) {
    char buffer[2048];
    for (const uir_diagnostic *d = diagnostics->first; d; d = d->next) {
        uir_diagnostic_format(d, buffer, sizeof buffer);
        print_error("%s: %s\n", path, buffer);
    }
}

static void check_primitives(const char *path, const uir_module *module) {
    for (uint32_t g = 1; g < module->graphs.count; g++)
        for (uint32_t n = 0; n < module->graphs.data[g].nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, module->graphs.data[g].nodes.data[n]);
            if (uir_op_get_row(node->op)->section != UIR_SECTION_PRIMITIVE)
                fail_msg("%s: %s is no primitive", path, uir_op_get_row(node->op)->name);
        }
}

/* The pass by the runner (which verifies and reads the text back), then once more by hand. */
static void check_pass(const char *path, uir_module *module, const uir_pass *pass) {
    uir_pass_options options = {.check_text = true};
    if (uir_passes_run(module, pass, 1, &options) != UIR_STATUS_OK) {
        show(path, module->diagnostics);
        fail_msg("%s: after pass %s", path, pass->name);
    }
    uir_arena scratch;
    uir_arena_init(&scratch, module->allocator);
    uir_pass_context context = {.diagnostics = module->diagnostics, .scratch = &scratch};
    assert_int_equal(pass->run(module, &context), UIR_STATUS_OK);
    uir_arena_deinit(&scratch);
    if (context.changes) fail_msg("%s: pass %s changes its own result (%u)", path, pass->name, context.changes);
}

/* Of the model and of the weights beside it. */
static long long bytes_of(const char *path) {
    char weights[1024];
    struct stat model, beside;
    snprintf(weights, sizeof weights, "%s.data", path);
    return (stat(path, &model) == 0 ? (long long)model.st_size : 0) +
           (stat(weights, &beside) == 0 ? (long long)beside.st_size : 0);
}

static bool check_model(const char *path) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *onnx = NULL, *module = NULL;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_arena_init(&arena, &allocator);
    uir_onnx_source source = {.path = path, .is_supported = uir_decompose_has_rule};
    uir_status status = uir_onnx_load(&source, &allocator, &diagnostics, &arena, &info, &onnx);
    if (status == UIR_STATUS_OK) status = uir_decompose(onnx, &allocator, &diagnostics, &module);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_UNSUPPORTED) {
        show(path, &diagnostics);
        fail_msg("%s: %s", path, uir_status_text(status));
    }
    if (status == UIR_STATUS_OK) {
        check_primitives(path, module);
        if (uir_module_verify(module, &diagnostics) != UIR_STATUS_OK) {
            show(path, &diagnostics);
            fail_msg("%s: does not verify after decompose", path);
        }
        for (size_t i = 0; i < uir_cleanup_pass_count; i++) check_pass(path, module, &uir_cleanup_passes[i]);
        check_primitives(path, module);
    }
    uir_module_destroy(onnx);
    uir_module_destroy(module);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    return status == UIR_STATUS_OK;
}

static void test_all(void **state) {
    (void)state;
    size_t checked = 0;
    for (int i = 0; i < given_count; i++) checked += check_model(given[i]);
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns && !given_count; p++) {
        glob_t found;
        if (glob(patterns[p], 0, NULL, &found) != 0) continue;
        for (size_t i = 0; i < found.gl_pathc; i += STEP)
            if (bytes_of(found.gl_pathv[i]) <= most_bytes) checked += check_model(found.gl_pathv[i]);
        globfree(&found);
    }
    print_message("%zu models\n", checked);
    if (!checked) skip();
}

int main(int argc, char **argv) {
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-m") == 0) {
        most_bytes = strtoll(argv[2], NULL, 10) << 20;
        first = 3;
    }
    given = argv + first;
    given_count = argc - first;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
