#include "tests/lower/models.h"

#include "decompose/decompose.h"
#include "frontend/frontend.h"
#include "fusion/fusion.h"
#include "passes/passes.h"

#include <stdlib.h>

uir_status lower_load(const char *path, const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_arena *arena,
                      uir_module **onnx, uir_module **module) {
    uir_onnx_info info;
    uir_onnx_source source = {.path = path, .is_supported = uir_decompose_has_rule};
    UIR_TRY(uir_onnx_load(&source, allocator, diagnostics, arena, &info, onnx));
    UIR_TRY(uir_decompose(*onnx, allocator, diagnostics, module));
    UIR_TRY(uir_passes_run(*module, uir_cleanup_passes, uir_cleanup_pass_count, NULL));
    UIR_TRY(uir_fuse(*module, NULL, diagnostics));
    return uir_module_verify(*module, diagnostics);
}

uint32_t lower_run_small(lower_check *c, uir_module *module, uir_node_id node) {
    static const int64_t tried[] = {1, 2, 3, 5, 8, 9, 17};
    uint32_t symbols = uir_dims_symbol_count(module->dims);
    uint32_t runs = 0;
    int64_t *values = calloc(symbols + 1, sizeof *values);
    for (int round = 0; c->stage == LOWER_FINE && round < 3; round++) {
        uint64_t state = (uint64_t)round * 7919 + node.id;
        for (uint32_t s = 0; s < symbols; s++) {
            uir_symbol_facts facts = uir_dims_symbol_facts(module->dims, (uir_symbol){s});
            state = state * 6364136223846793005u + 1442695040888963407u;
            values[s] = tried[(state >> 33) % (sizeof tried / sizeof *tried)];
            if (values[s] < facts.min) values[s] = facts.min;
            if (values[s] > facts.max) values[s] = facts.max;
        }
        runs += lower_run(c, module, node, values, (uint64_t)round + 1);
    }
    free(values);
    return runs;
}
