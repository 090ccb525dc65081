#include "api/facts_onnx.h"

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

uir_status uir_facts_from_onnx(const uir_compiled *compiled, uir_arena *arena, uir_facts *out_facts) {
    const uir_onnx_info *info = &compiled->info;
    uir_facts_init(out_facts);
    out_facts->producer = info->producer;
    out_facts->producer_version = info->producer_version;
    out_facts->domain = info->domain;
    out_facts->graph = info->graph;
    out_facts->ir_version = info->ir_version;
    out_facts->model_version = info->model_version;
    out_facts->opset = compiled->onnx ? compiled->onnx->opset : opset_of(info);
    out_facts->node_count = info->node_count;
    out_facts->function_count = info->function_count;
    out_facts->primitive_count = compiled->primitives ? count_nodes(compiled->primitives) : 0;
    out_facts->parameter_count = clamp(info->parameter_count);
    out_facts->weight_bytes = clamp(info->weight_bytes);
    out_facts->external_bytes = clamp(info->external_bytes);
    UIR_TRY(list_ops(info, arena, out_facts));
    UIR_TRY_ALLOCATE(out_facts->outputs.data,
                     uir_arena_allocate_array(arena, (size_t)info->output_count + 1, sizeof *out_facts->outputs.data));
    for (uint32_t i = 0; i < info->output_count; i++) {
        const uir_onnx_output *o = &info->outputs[i];
        out_facts->outputs.data[out_facts->outputs.count++] = (uir_facts_output){o->node, o->op, o->place, o->is_kept};
    }
    UIR_TRY_ALLOCATE(out_facts->metadata.data, uir_arena_allocate_array(arena, (size_t)info->metadata_count + 1,
                                                                        sizeof *out_facts->metadata.data));
    for (uint32_t i = 0; i < info->metadata_count; i++)
        out_facts->metadata.data[out_facts->metadata.count++] =
            (uir_facts_pair){info->metadata[i].key, info->metadata[i].value};
    return UIR_STATUS_OK;
}
