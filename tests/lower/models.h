/* Models whose groups are lowered one by one. */
#ifndef UIR_TESTS_LOWER_MODELS_H
#define UIR_TESTS_LOWER_MODELS_H

#include "tests/lower/harness.h"

/* A model as it is after fusion; the caller destroys both modules, the arena holds what was said of the file. */
uir_status lower_load(const char *path, const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_arena *arena,
                      uir_module **onnx, uir_module **module);
/* Runs a prepared group at three choices of small sizes; how many made sense. */
uint32_t lower_run_small(lower_check *check, uir_module *module, uir_node_id group);

#endif
