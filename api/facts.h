/* Facts about a model's file and its compile, the same whether it was compiled here or opened as a package.
 *
 * In: the frontend's info, or the metadata of a package. In a package's metadata the first pair counts the facts that
 * follow. The model's own metadata come after them, so that none of its keys is taken for a fact. */
#ifndef UIR_API_FACTS_H
#define UIR_API_FACTS_H

#include "base/arena.h"
#include "runtime/runtime.h"
#include "uir/uir.h"

typedef struct uir_facts_opset {
    const char *domain;
    int64_t version;
} uir_facts_opset;
typedef struct uir_facts_op {
    const char *domain, *name;
    int64_t count;
} uir_facts_op;
typedef struct uir_facts_output {
    const char *node, *op;
    int64_t place, is_kept;
} uir_facts_output;
typedef struct uir_facts_default {
    const char *name;
    int64_t place, is_overridden;
} uir_facts_default;
typedef struct uir_facts_key {
    int64_t output;
    const char *key;
} uir_facts_key;
typedef struct uir_facts_pair {
    const char *key, *value;
} uir_facts_pair;

typedef struct uir_facts {
    const char *producer, *producer_version, *domain, *graph;
    int64_t ir_version, model_version, opset, node_count, function_count, primitive_count;
    const char *precision; /* as in uir_model_info, like the next members */
    int64_t laid_out_count, conversion_count, winograd_count, product_count, f16_count, bf16_count, out_of_range_count;
    int64_t fault_count; /* kernels that the compiler made and then refused itself */
    const char *fault;   /* the first of them: kernel, stage and reason */
    int64_t parameter_count, weight_bytes, external_bytes;
    int64_t has_tolerance;
    uir_tolerance tolerance;
    struct {
        uir_facts_opset *data;
        uint32_t count;
    } opsets;
    struct {
        uir_facts_op *data;
        uint32_t count;
    } ops; /* most used first */
    struct {
        uir_facts_output *data;
        uint32_t count;
    } outputs;
    struct {
        uir_facts_default *data;
        uint32_t count;
    } defaults; /* inputs with a default, in the file's order */
    struct {
        uir_facts_key *data;
        uint32_t count;
    } keys; /* of outputs that are lists of maps, column by column */
    struct {
        uir_facts_pair *data;
        uint32_t count;
    } metadata; /* the model's own */
} uir_facts;

/* Texts are "", never NULL. */
void uir_facts_init(uir_facts *facts);
/* Prints facts as metadata of a package: key, value, key, value ..., `*out_count` pairs. The texts live in the arena or
 * belong to the facts. */
uir_status uir_facts_print(const uir_facts *facts, uir_arena *arena, const char *const **out_list, uint32_t *out_count);
/* Reads facts from a package; texts are the package's. Missing or unreadable facts are as after init. */
uir_status uir_facts_read(const uir_package *package, uir_arena *arena, uir_facts *out_facts);
/* Copies the facts about kernels into the model's info. */
void uir_facts_tell_kernels(const uir_facts *facts, uir_model_info *info);
/* One warning about all faults, if there are any. */
void uir_facts_warn_faults(const uir_facts *facts, uir_diagnostics *diagnostics);

#endif
