/* Constant folding: nodes whose operands are all constant are run now. A broadcast of a constant stays as it is
 * (reading one number is cheaper than reading many copies) but counts as a constant for what reads it, and so does a
 * broadcast that is reshaped or transposed.
 *
 * A constant that is much larger than what it came from (a scalar broadcast to a feature map) is not made: it would
 * cost memory and reading it costs more than making it.
 *
 * Results without elements are constants whatever they are computed from: a loop that gives nothing has no work,
 * however often it turns. */
#include "passes/tools.h"
#include "ir/graph/constants.h"

#include <string.h>

#define SMALL_BYTES    (64u << 10)  /* results up to this size are always made */
#define MOST_GROWTH    4            /* larger ones may be this many times their operands: i8 weights made f32 */
#define MOST_BYTES     (256u << 20) /* and never more than this each */
#define MOST_MOVEMENTS 3            /* scales of blocks are broadcast, reshaped, and transposed with the weights */

static bool result_bytes(const uir_module *module, const uir_node_info *node, uint64_t *out_bytes) {
    *out_bytes = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = uir_value_type(module, node->outputs[i]);
        uint64_t count;
        size_t size;
        if (!uir_type_element_count(module, type, &count)) return false;
        if (!uir_dtype_storage_size(type->dtype, count, &size) || size > MOST_BYTES) return false;
        *out_bytes += size;
    }
    return *out_bytes <= MOST_BYTES;
}

static bool worth_folding(const uir_module *module, const uir_node_info *node, uint64_t bytes_in) {
    uint64_t bytes_out;
    return result_bytes(module, node, &bytes_out) && (bytes_out <= SMALL_BYTES || bytes_out / MOST_GROWTH <= bytes_in);
}

static bool known_elements(const uir_module *module, const uir_value_info *info) {
    if (!info->elements_known || info->element_count > 4096) return false;
    for (uint32_t i = 0; i < info->element_count; i++)
        if (!uir_dim_is_const(module->dims, info->elements[i], NULL)) return false;
    return true;
}

/* A value whose symbolic contents came out as numbers is one, whatever it was computed from. */
static uir_status tensor_of_elements(const uir_module *module, const uir_value_info *info, uir_tensor **out_tensor) {
    int64_t count = info->element_count, number;
    uir_tensor *tensor;
    UIR_TRY(uir_tensor_create(module->allocator, info->type.dtype, info->type.rank, &count, &tensor));
    for (uint32_t i = 0; i < info->element_count; i++) {
        if (!uir_dim_is_const(module->dims, info->elements[i], &number)) continue;
        uir_dtype_store_integer(tensor->dtype, tensor->data, i, number, false, UIR_ROUND_NEAREST_EVEN);
    }
    *out_tensor = tensor;
    return UIR_STATUS_OK;
}

/* Whether no result of the node has an element, for all sizes. */
static bool gives_nothing(const uir_module *module, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = uir_value_type(module, node->outputs[i]);
        uint64_t count;
        if (type->kind != UIR_VALUE_TENSOR || !uir_type_element_count(module, type, &count) || count) return false;
    }
    return node->output_count > 0;
}

static uir_status make_nothing(const uir_module *module, const uir_node_info *node, uir_tensor **outputs) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = uir_value_type(module, node->outputs[i]);
        int64_t shape[UIR_MAX_RANK];
        uint64_t count;
        if (!uir_type_find_shape(module, type, shape, &count)) return UIR_STATUS_INTERNAL; /* gives_nothing */
        UIR_TRY(uir_tensor_create(module->allocator, type->dtype, type->rank, shape, &outputs[i]));
    }
    return UIR_STATUS_OK;
}

static bool grows(const uir_module *module, const uir_node_info *node) {
    uint64_t from, to;
    return !uir_type_element_count(module, uir_value_type(module, node->inputs[0]), &from) ||
           !uir_type_element_count(module, uir_value_type(module, node->outputs[0]), &to) || to > from;
}

static bool only_moves(uir_op op) {
    return op == UIR_OP_BROADCAST || op == UIR_OP_RESHAPE || op == UIR_OP_TRANSPOSE;
}

/* The constant that a value is, or of which it repeats the elements in a few movements; NULL. */
static uir_tensor *origin_of(const uir_module *module, uir_value_id value) {
    for (uint32_t movements = 0; movements <= MOST_MOVEMENTS; movements++) {
        const uir_value_info *info = uir_value_info_get(module, value);
        uint64_t bytes;
        if (info->constant || !info->producer.id) return info->constant;
        const uir_node_info *node = uir_node_get(module, info->producer);
        if (!only_moves(node->op) || !uir_node_is_pure(module, node) || !result_bytes(module, node, &bytes)) break;
        value = node->inputs[0];
    }
    return NULL;
}

/* The elements of a value that has an origin, retained; NULL where the budget does not allow them. */
static uir_status make_elements(uir_module *module, uir_pass_context *context, uir_value_id value,
                                uir_tensor **out_tensor) {
    const uir_value_info *info = uir_value_info_get(module, value);
    uir_tensor *from = NULL;
    if (info->constant) {
        *out_tensor = info->constant;
        uir_tensor_retain(info->constant);
        return UIR_STATUS_OK;
    }
    UIR_TRY(make_elements(module, context, uir_node_get(module, info->producer)->inputs[0], &from));
    if (!from) return UIR_STATUS_OK;
    uir_status status =
        uir_node_run_on_constants(module, module->allocator, info->producer, &from, context->scratch, out_tensor);
    uir_tensor_release(from);
    return status;
}

/* How values are read, by handle: as the second factor of a product or convolution, or otherwise. */
enum { AS_WEIGHTS = 1, OTHERWISE = 2 };

static uir_status find_readers(const uir_module *module, uir_arena *scratch, uint8_t **out_readers) {
    uint8_t *readers;
    UIR_TRY_ALLOCATE(readers, uir_arena_allocate_array(scratch, module->values.count + 1u, sizeof *readers));
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = &module->graphs.data[g];
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            bool weighs = node->op == UIR_OP_CONV || node->op == UIR_OP_MATMUL;
            for (uint32_t i = 0; i < node->input_count; i++)
                readers[node->inputs[i].id] |= weighs && i == 1 ? AS_WEIGHTS : OTHERWISE;
        }
        for (uint32_t i = 0; i < graph->outputs.count; i++) readers[graph->outputs.data[i].id] |= OTHERWISE;
    }
    *out_readers = readers;
    return UIR_STATUS_OK;
}

/* What a node read that is folded: constants that nobody else reads are given back, lest all steps from stored weights
 * to those that products read are alive together. `were`: its operands before replacement, of which `uses` are left. */
static void give_back(uir_module *module, uir_node_id id, const uir_value_id *were, uint32_t *uses) {
    const uir_node_info *node = uir_node_get(module, id);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!were[i].id || --uses[were[i].id]) continue;
        uir_value_info *info = uir_value_info_get(module, node->inputs[i]);
        uir_tensor_release(info->constant);
        info->constant = NULL;
    }
}

/* Half weights stay as they are stored: they are widened as they are read, which costs less than the bytes. */
static bool widens_weights(const uir_module *module, const uir_node_info *node, const uint8_t *readers) {
    if (node->op != UIR_OP_CAST || readers[node->outputs[0].id] != AS_WEIGHTS) return false;
    const uir_tensor *from = uir_value_info_get(module, node->inputs[0])->constant;
    return from && (from->dtype == UIR_DTYPE_F16 || from->dtype == UIR_DTYPE_BF16) &&
           uir_value_type(module, node->outputs[0])->dtype == UIR_DTYPE_F32 && from->byte_size > SMALL_BYTES / 16;
}

/* A reshaped constant that nobody else reads is the same tensor. */
static uir_tensor *take_reshaped(const uir_module *module, const uir_node_info *node, bool last) {
    uir_tensor *tensor = uir_value_info_get(module, node->inputs[0])->constant;
    const uir_type *type = uir_value_type(module, node->outputs[0]);
    int64_t shape[UIR_MAX_RANK];
    uint64_t count;
    if (!last || tensor->references != 1 || tensor->dtype == UIR_DTYPE_STRING) return NULL;
    if (!uir_type_find_shape(module, type, shape, &count) || count != tensor->element_count) return NULL;
    tensor->rank = type->rank;
    memcpy(tensor->shape, shape, type->rank * sizeof *shape);
    uir_tensor_retain(tensor);
    return tensor;
}

/* `last`: nothing but the node reads its first operand. */
static uir_status run(uir_module *module, uir_pass_context *context, uir_node_id id, const uint8_t *readers, bool last,
                      uir_tensor **outputs) {
    const uir_node_info *node = uir_node_get(module, id);
    if (node->op == UIR_OP_BIND_DIMS) return UIR_STATUS_OK;
    if (node->output_count == 1 && known_elements(module, uir_value_info_get(module, node->outputs[0])))
        return tensor_of_elements(module, uir_value_info_get(module, node->outputs[0]), &outputs[0]);
    if (!node->output_count || !uir_node_is_pure(module, node)) return UIR_STATUS_OK;
    if (gives_nothing(module, node)) return make_nothing(module, node, outputs);
    if (node->op == UIR_OP_BROADCAST && grows(module, node)) return UIR_STATUS_OK;
    if (widens_weights(module, node, readers)) return UIR_STATUS_OK;
    uir_tensor **inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(context->scratch, node->input_count + 1u, sizeof *inputs));
    uint64_t bytes_in = 0;
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!node->inputs[i].id) continue;
        const uir_tensor *origin = origin_of(module, node->inputs[i]);
        if (!origin) return UIR_STATUS_OK;
        bytes_in += origin->byte_size;
    }
    if (!worth_folding(module, node, bytes_in)) return UIR_STATUS_OK;
    if (node->op == UIR_OP_RESHAPE && uir_value_info_get(module, node->inputs[0])->constant) {
        outputs[0] = take_reshaped(module, node, last);
        if (outputs[0]) return UIR_STATUS_OK;
    }
    UIR_TRY(uir_node_run_in_pieces(module, module->allocator, id, outputs));
    if (outputs[0]) return UIR_STATUS_OK;
    /* Factors per channel or block are many times smaller than the weights that they scale: what repeats them lives
     * while the weights are made. */
    bool all = true;
    for (uint32_t i = 0; i < node->input_count && all && status == UIR_STATUS_OK; i++) {
        if (!node->inputs[i].id) continue;
        status = make_elements(module, context, node->inputs[i], &inputs[i]);
        all = inputs[i];
    }
    if (status == UIR_STATUS_OK && all)
        status = uir_node_run_on_constants(module, module->allocator, id, inputs, context->scratch, outputs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        uir_tensor_rest(inputs[i]);
        uir_tensor_release(inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) uir_put_aside(outputs[i]);
    return status;
}

/* Makes constants of what a node gave; *out_folded when all of it is there. */
static uir_status replace_outputs(uir_module *module, uir_replacement *replacement, uir_node_id id,
                                  uir_tensor **outputs, bool *out_folded) {
    uint32_t count = uir_node_get(module, id)->output_count;
    uir_status status = UIR_STATUS_OK;
    *out_folded = count != 0;
    for (uint32_t i = 0; i < count; i++) *out_folded = *out_folded && outputs[i];
    for (uint32_t i = 0; i < count; i++) {
        uir_value_id made, old = uir_node_get(module, id)->outputs[i];
        if (status == UIR_STATUS_OK && *out_folded) {
            status = uir_module_add_constant(module, "", outputs[i], &made);
            if (status == UIR_STATUS_OK) {
                uir_replacement_set(replacement, old, made);
                continue;
            }
        }
        uir_tensor_release(outputs[i]);
    }
    return status;
}

uir_status uir_cleanup_fold_constants(uir_module *module, uir_pass_context *context) {
    uir_replacement replacement;
    bool *keep;
    uint8_t *readers;
    uint32_t *uses;
    UIR_TRY(find_readers(module, context->scratch, &readers));
    UIR_TRY(uir_count_uses(module, context->scratch, &uses));
    UIR_TRY(uir_replacement_init(&replacement, module, context->scratch));
    UIR_TRY_ALLOCATE(keep, uir_arena_allocate_array(context->scratch, module->nodes.count + 1u, sizeof *keep));
    for (uint32_t n = 0; n < module->nodes.count; n++) keep[n] = true;
    /* Bodies come after the graphs around them, so that what an outer graph made constant is known inside. */
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        for (uint32_t n = 0; n < module->graphs.data[g].nodes.count; n++) {
            uir_node_id id = module->graphs.data[g].nodes.data[n];
            uir_tensor **outputs;
            uir_value_id *were;
            bool folded;
            const uir_node_info *node = uir_node_get(module, id);
            UIR_TRY_ALLOCATE(were, uir_arena_allocate_array(context->scratch, node->input_count + 1u, sizeof *were));
            if (node->input_count) memcpy(were, node->inputs, node->input_count * sizeof *were);
            UIR_TRY(uir_replacement_apply_node(&replacement, module, id));
            UIR_TRY_ALLOCATE(outputs,
                             uir_arena_allocate_array(context->scratch, uir_node_get(module, id)->output_count + 1u,
                                                      sizeof *outputs));
            bool last = node->input_count && were[0].id && uses[were[0].id] == 1;
            UIR_TRY(run(module, context, id, readers, last, outputs));
            UIR_TRY(replace_outputs(module, &replacement, id, outputs, &folded));
            keep[id.id] = !folded;
            if (folded) give_back(module, id, were, uses);
            context->changes += folded;
        }
        uir_graph_keep_nodes(module, (uir_graph_id){g}, keep);
    }
    return uir_replacement_apply(&replacement, module);
}
