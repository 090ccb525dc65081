/* Large nodes over constants, run piece by piece: what is in memory at one time is a piece of each operand and of the
 * result, which lies in a file. Weights that are dequantized take four or eight times their bytes on the way. */
#include "ir/graph/constants.h"
#include "ir/graph/interpret/interpret.h"

#include <string.h>

enum { PIECE = 1 << 20, MOST_RESHAPES = 3, MOST_OPERANDS = 3 }; /* elements; in a row */

/* The elements of a constant in the order of a value: those of all constants reshaped, or a broadcast or transpose. */
typedef struct view {
    uir_tensor *tensor;
    bool moved;
    uint32_t rank;
    int64_t shape[UIR_MAX_RANK], strides[UIR_MAX_RANK];
} view;

static uir_value_id before_reshapes(const uir_module *module, uir_value_id value) {
    for (uint32_t i = 0; i < MOST_RESHAPES; i++) {
        const uir_value_info *info = uir_value_info_get(module, value);
        if (info->constant || !info->producer.id) break;
        const uir_node_info *node = uir_node_get(module, info->producer);
        if (node->op != UIR_OP_RESHAPE) break;
        value = node->inputs[0];
    }
    return value;
}

/* The view that a broadcast or transpose has of a constant. */
static bool find_moved(const uir_module *module, const uir_node_info *node, view *out_view) {
    const uir_type *from = uir_value_type(module, node->inputs[0]), *to = uir_value_type(module, node->outputs[0]);
    int64_t shape[UIR_MAX_RANK];
    uint64_t count, moved_count;
    out_view->tensor = uir_value_info_get(module, before_reshapes(module, node->inputs[0]))->constant;
    out_view->moved = true;
    out_view->rank = to->rank;
    return out_view->tensor && uir_node_is_pure(module, node) && uir_type_find_shape(module, from, shape, &count) &&
           count == out_view->tensor->element_count && uir_type_find_shape(module, to, out_view->shape, &moved_count) &&
           uir_movement_strides(module, node, shape, from->rank, out_view->shape, to->rank, out_view->strides);
}

static bool find_view(const uir_module *module, uir_value_id value, view *out_view) {
    value = before_reshapes(module, value);
    const uir_value_info *info = uir_value_info_get(module, value);
    *out_view = (view){.tensor = info->constant, .rank = 1, .strides = {1}};
    if (info->constant) {
        out_view->shape[0] = (int64_t)info->constant->element_count;
        return true;
    }
    if (!info->producer.id) return false;
    const uir_node_info *node = uir_node_get(module, info->producer);
    return (node->op == UIR_OP_BROADCAST || node->op == UIR_OP_TRANSPOSE) && find_moved(module, node, out_view);
}

/* A node that runs in pieces. */
typedef struct run {
    const uir_module *module;
    const uir_allocator *allocator;
    uir_node_id node;
    uint32_t operand_count;
    view operands[MOST_OPERANDS];
    const view *order; /* of the pieces: of the operand that is moved, if one is */
    uir_tensor *result;
} run;

static bool in_bytes(uir_dtype dtype) {
    return dtype != UIR_DTYPE_STRING && uir_dtype_bits(dtype) >= 8;
}

static size_t element_size(const uir_tensor *tensor) {
    return uir_dtype_bits(tensor->dtype) / 8;
}

/* A piece is `rows` steps along `axis` from the element `start` on, which a moved operand has at `from`. */
typedef struct piece {
    uint32_t axis;
    int64_t rows, start, from, count;
} piece;

static void copy_moved(const view *v, const piece *p, uint8_t *target) {
    int64_t shape[UIR_MAX_RANK], strides[UIR_MAX_RANK];
    uint32_t rank = v->rank - p->axis;
    size_t size = element_size(v->tensor);
    memcpy(shape, v->shape + p->axis, rank * sizeof *shape);
    shape[0] = p->rows;
    uir_shape_strides(shape, rank, strides);
    uir_copy_strided(NULL, target, strides, (const uint8_t *)v->tensor->data + (size_t)p->from * size,
                     v->strides + p->axis, shape, rank, size);
}

static uir_status open_operand(const run *r, const view *v, const piece *p, uir_datum **out_datum) {
    uir_tensor *tensor;
    if (v->moved) {
        UIR_TRY(uir_tensor_create(r->allocator, v->tensor->dtype, 1, &p->count, &tensor));
        copy_moved(v, p, tensor->data);
    } else {
        const uint8_t *data = (const uint8_t *)v->tensor->data + (size_t)p->start * element_size(v->tensor);
        UIR_TRY(uir_tensor_create_borrowed(r->allocator, v->tensor->dtype, 1, &p->count, data, &tensor));
    }
    uir_status status = uir_datum_create_tensor(r->allocator, tensor, out_datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

static uir_status run_piece(const run *r, const piece *p) {
    uint8_t *target = (uint8_t *)r->result->data + (size_t)p->start * element_size(r->result);
    if (!r->operand_count) {
        copy_moved(r->order, p, target);
        return UIR_STATUS_OK;
    }
    uir_datum *operands[MOST_OPERANDS] = {NULL}, *result = NULL;
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < r->operand_count && status == UIR_STATUS_OK; i++)
        status = open_operand(r, &r->operands[i], p, &operands[i]);
    if (status == UIR_STATUS_OK) status = uir_node_interpret(r->module, r->allocator, NULL, r->node, operands, &result);
    if (status == UIR_STATUS_OK && result->tensor->element_count != (uint64_t)p->count) status = UIR_STATUS_INTERNAL;
    if (status == UIR_STATUS_OK) memcpy(target, result->tensor->data, result->tensor->byte_size);
    uir_datum_release(result);
    for (uint32_t i = 0; i < r->operand_count; i++) uir_datum_release(operands[i]);
    return status;
}

/* Pieces of at most PIECE elements in the result's order. */
static uir_status run_pieces(const run *r) {
    const view *v = r->order;
    int64_t position[UIR_MAX_RANK] = {0}, inner = 1, steps;
    piece p = {.axis = v->rank - 1};
    for (; p.axis > 0 && inner * v->shape[p.axis] <= PIECE; p.axis--) inner *= v->shape[p.axis];
    steps = PIECE / inner;
    while (p.start < (int64_t)r->result->element_count) {
        int64_t left = v->shape[p.axis] - position[p.axis];
        p.rows = left < steps ? left : steps;
        p.count = p.rows * inner;
        p.from = 0;
        for (uint32_t d = 0; d <= p.axis; d++) p.from += position[d] * v->strides[d];
        UIR_TRY(run_piece(r, &p));
        for (uint32_t i = 0; i < MOST_OPERANDS; i++) uir_tensor_rest(r->operands[i].tensor);
        uir_tensor_rest(r->result);
        p.start += p.count;
        position[p.axis] += p.rows;
        for (uint32_t d = p.axis; d > 0 && position[d] == v->shape[d]; d--) {
            position[d] = 0;
            position[d - 1]++;
        }
    }
    return UIR_STATUS_OK;
}

/* Whether the node can run so: all elements are of whole bytes, and one operand at most is moved. */
static bool prepare(run *r) {
    const uir_node_info *node = uir_node_get(r->module, r->node);
    uint64_t count;
    if (node->output_count != 1 || !uir_node_is_pure(r->module, node)) return false;
    const uir_type *type = uir_value_type(r->module, node->outputs[0]);
    if (!uir_type_element_count(r->module, type, &count) || count <= PIECE || !in_bytes(type->dtype)) return false;
    if (node->op == UIR_OP_TRANSPOSE) {
        r->order = &r->operands[0];
        return find_moved(r->module, node, &r->operands[0]) && in_bytes(r->operands[0].tensor->dtype);
    }
    if (!(uir_op_get_row(node->op)->traits & UIR_TRAIT_ELEMENTWISE)) return false;
    r->operand_count = node->input_count;
    for (uint32_t i = 0; i < node->input_count; i++) {
        view *v = &r->operands[i];
        uint64_t own;
        if (!find_view(r->module, node->inputs[i], v) || !in_bytes(v->tensor->dtype)) return false;
        if (!uir_shape_element_count(v->shape, v->rank, &own) || own != count || (v->moved && r->order)) return false;
        if (v->moved) r->order = v;
    }
    if (!r->order) r->order = &r->operands[0];
    return true;
}

uir_status uir_node_run_in_pieces(const uir_module *module, const uir_allocator *allocator, uir_node_id node,
                                  uir_tensor **out_output) {
    run r = {.module = module, .allocator = allocator, .node = node};
    int64_t shape[UIR_MAX_RANK];
    uint64_t count;
    *out_output = NULL;
    if (!prepare(&r)) return UIR_STATUS_OK;
    const uir_node_info *info = uir_node_get(module, node);
    const uir_type *type = uir_value_type(module, info->outputs[0]);
    if (!uir_type_find_shape(module, type, shape, &count)) return UIR_STATUS_OK;
    uir_status status = uir_tensor_create_in_file(allocator, type->dtype, type->rank, shape, &r.result);
    if (status != UIR_STATUS_OK || !r.result) return status;
    uir_tensor *tensors[MOST_OPERANDS] = {r.operands[0].tensor, r.operands[1].tensor, r.operands[2].tensor};
    bool allowed = uir_node_take_fold(module, allocator, node, tensors);
    status = allowed ? run_pieces(&r) : UIR_STATUS_OK;
    if (status == UIR_STATUS_OK && allowed) {
        *out_output = r.result;
        return UIR_STATUS_OK;
    }
    uir_tensor_release(r.result);
    return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ? status : UIR_STATUS_OK;
}
