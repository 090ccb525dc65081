#include "api/facts_onnx.h"

#include <stdio.h>
#include <string.h>

/* More than is ever read is not told apart. */
static int64_t clamp(uint64_t number) {
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static uir_status list_ops(const uir_onnx_info *info, uir_arena *arena, uir_facts *facts) {
    UIR_TRY_ALLOCATE(facts->ops.data,
                     uir_arena_allocate_array(arena, (size_t)info->op_count + 1, sizeof *facts->ops.data));
    for (uint32_t i = 0; i < info->op_count; i++)
        facts->ops.data[facts->ops.count++] =
            (uir_facts_op){info->ops[i].domain, info->ops[i].name, clamp(info->ops[i].count)};
    UIR_TRY_ALLOCATE(facts->opsets.data,
                     uir_arena_allocate_array(arena, (size_t)info->opset_count + 1, sizeof *facts->opsets.data));
    for (uint32_t i = 0; i < info->opset_count; i++)
        facts->opsets.data[facts->opsets.count++] = (uir_facts_opset){info->opsets[i].domain, info->opsets[i].version};
    return UIR_STATUS_OK;
}

/* Of ai.onnx. */
static int64_t opset_of(const uir_onnx_info *info) {
    for (uint32_t i = 0; i < info->opset_count; i++)
        if (!*info->opsets[i].domain || !strcmp(info->opsets[i].domain, "ai.onnx")) return info->opsets[i].version;
    return 0;
}

static uint32_t count_nodes(const uir_module *module) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < module->graphs.count; i++) count += module->graphs.data[i].nodes.count;
    return count;
}

/* The ZipMap that makes a main output, itself or through Identity; NULL when none does. */
static const uir_node_info *find_zip_map(const uir_module *module, uir_value_id value) {
    const uir_node_info *node;
    do {
        uir_node_id producer = uir_value_info_get(module, value)->producer;
        node = producer.id ? uir_node_get(module, producer) : NULL;
        if (node && node->input_count) value = node->inputs[0];
    } while (node && node->op == UIR_OP_ONNX_IDENTITY);
    return node && node->op == UIR_OP_ONNX_ZIP_MAP ? node : NULL;
}

static uir_status print_key(const uir_module *module, const uir_attribute *keys, uint32_t index, uir_arena *arena,
                            const char **out_key) {
    char digits[32];
    bool text = keys->kind == UIR_ATTRIBUTE_STRINGS;
    if (!text) snprintf(digits, sizeof digits, "%lld", (long long)keys->value.integers[index]);
    const char *key = text ? uir_string_text(&module->strings, keys->value.strings[index]) : digits;
    UIR_TRY_ALLOCATE(*out_key, uir_arena_copy_string(arena, key, strlen(key)));
    return UIR_STATUS_OK;
}

/* The keys of outputs that are lists of maps. */
static uir_status list_keys(const uir_module *module, uir_arena *arena, uir_facts *facts) {
    static const char *const names[] = {"classlabels_strings", "classlabels_int64s"};
    const uir_graph_info *main = uir_graph_get(module, module->main);
    uir_vector(uir_facts_key) keys = {0};
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        const uir_node_info *node = find_zip_map(module, main->outputs.data[i]);
        const uir_attribute *a = NULL;
        for (size_t n = 0; node && n < 2 && !(a && a->count); n++) a = uir_node_find_attribute(module, node, names[n]);
        for (uint32_t k = 0; a && k < a->count; k++) {
            uir_facts_key key = {i, NULL};
            UIR_TRY(print_key(module, a, k, arena, &key.key));
            UIR_TRY(uir_vector_push(arena, &keys, key));
        }
    }
    facts->keys.data = keys.data;
    facts->keys.count = keys.count;
    return UIR_STATUS_OK;
}

void uir_facts_take_kernels(const uir_compile *compile, uir_facts *facts) {
    facts->laid_out_count = compile->layouts.values;
    facts->conversion_count = compile->layouts.conversions;
    facts->winograd_count = compile->layouts.winograd;
    facts->precision = uir_precision_name(compile->options.precision);
    facts->product_count = compile->precision.products;
    facts->f16_count = compile->precision.f16;
    facts->bf16_count = compile->precision.bf16;
    facts->out_of_range_count = compile->precision.out_of_range;
    facts->fault_count = compile->lowering.faults.count;
    if (facts->fault_count) facts->fault = compile->lowering.faults.data[0];
}

uir_status uir_facts_from_onnx(const uir_compile *compile, uir_arena *arena, uir_facts *out_facts) {
    const uir_onnx_info *info = &compile->info;
    uir_facts_init(out_facts);
    out_facts->producer = info->producer;
    out_facts->producer_version = info->producer_version;
    out_facts->domain = info->domain;
    out_facts->graph = info->graph;
    out_facts->ir_version = info->ir_version;
    out_facts->model_version = info->model_version;
    out_facts->opset = compile->onnx ? compile->onnx->opset : opset_of(info);
    out_facts->node_count = info->node_count;
    out_facts->function_count = info->function_count;
    out_facts->primitive_count = compile->primitives ? count_nodes(compile->primitives) : 0;
    out_facts->parameter_count = clamp(info->parameter_count);
    out_facts->weight_bytes = clamp(info->weight_bytes);
    out_facts->external_bytes = clamp(info->external_bytes);
    UIR_TRY(list_ops(info, arena, out_facts));
    if (compile->onnx) UIR_TRY(list_keys(compile->onnx, arena, out_facts));
    UIR_TRY_ALLOCATE(out_facts->outputs.data,
                     uir_arena_allocate_array(arena, (size_t)info->output_count + 1, sizeof *out_facts->outputs.data));
    for (uint32_t i = 0; i < info->output_count; i++) {
        const uir_onnx_output *o = &info->outputs[i];
        out_facts->outputs.data[out_facts->outputs.count++] = (uir_facts_output){o->node, o->op, o->place, o->is_kept};
    }
    UIR_TRY_ALLOCATE(out_facts->defaults.data, uir_arena_allocate_array(arena, (size_t)info->default_count + 1,
                                                                        sizeof *out_facts->defaults.data));
    for (uint32_t i = 0; i < info->default_count; i++)
        out_facts->defaults.data[out_facts->defaults.count++] =
            (uir_facts_default){info->defaults[i].name, info->defaults[i].place, info->defaults[i].is_overridden};
    UIR_TRY_ALLOCATE(out_facts->metadata.data, uir_arena_allocate_array(arena, (size_t)info->metadata_count + 1,
                                                                        sizeof *out_facts->metadata.data));
    for (uint32_t i = 0; i < info->metadata_count; i++)
        out_facts->metadata.data[out_facts->metadata.count++] =
            (uir_facts_pair){info->metadata[i].key, info->metadata[i].value};
    return UIR_STATUS_OK;
}
