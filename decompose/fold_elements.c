/* Contents of values as they are built: symbolic ones of integer values, carried through the primitives that shape
 * arithmetic is made of; the rest is computed when all operands are constant (evaluate.c).
 *
 * One transfer function per primitive, in a table; each is applied once to every node as it is added. What a function
 * cannot show to be exact (a division of a possibly negative value, an index that is not constant) it leaves unknown,
 * which costs speed and never a result. */
#include "decompose/decomposer.h"

/* Contents longer than this are data, not shapes. */
#define ELEMENT_LIMIT 1024

typedef struct fold_context {
    uir_module *module;
    const uir_node_info *node;
    const uir_dim *operands[4]; /* of the first operands; NULL when unknown */
    uint32_t counts[4];
} fold_context;

/* Gives the `count` elements of the node's result, or returns false. */
typedef bool (*transfer)(fold_context *context, uir_dim *out_elements, uint32_t count);

bool uir_value_elements(uir_module *module, uir_value_id value, uint32_t limit, const uir_dim **out_elements,
                        uint32_t *out_count) {
    const uir_value_info *info = uir_value_info_get(module, value);
    if (info->elements_known) {
        *out_elements = info->elements;
        *out_count = info->element_count;
        return info->element_count <= limit;
    }
    const uir_tensor *tensor = info->constant;
    bool whole = tensor && (uir_dtype_is_integer(tensor->dtype) || tensor->dtype == UIR_DTYPE_BOOL);
    if (!whole || tensor->rank > 1 || tensor->element_count > limit) return false;
    uir_dim *elements = uir_arena_allocate_array(&module->arena, tensor->element_count + 1, sizeof *elements);
    if (!elements) return false;
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        int64_t value = uir_dtype_load_integer(tensor->dtype, tensor->data, i);
        elements[i] = uir_dim_const(module->dims, value);
        if (!elements[i].id || (value < 0 && tensor->dtype == UIR_DTYPE_U64)) return false;
    }
    uir_value_info *mutable_info = uir_value_info_get(module, value);
    mutable_info->elements = *out_elements = elements;
    mutable_info->element_count = *out_count = (uint32_t)tensor->element_count;
    mutable_info->elements_known = true;
    return true;
}

static const uir_type *operand_type(const fold_context *context, uint32_t index) {
    return uir_value_type(context->module, context->node->inputs[index]);
}

static uir_dtype result_dtype(const fold_context *context) {
    return uir_value_type(context->module, context->node->outputs[0])->dtype;
}

/* Contents are exact integers; a dtype that could wrap them is not followed. */
static bool fits(fold_context *context, uir_dim element) {
    uir_dtype dtype = result_dtype(context);
    if (dtype == UIR_DTYPE_I64) return element.id != 0;
    if (!element.id || !(uir_dtype_is_integer(dtype) || dtype == UIR_DTYPE_BOOL)) return false;
    int64_t min, max;
    uir_dim_bounds(context->module->dims, element, &min, &max);
    if (dtype == UIR_DTYPE_BOOL) return min >= 0 && max <= 1;
    uint64_t top = uir_dtype_integer_max(dtype);
    /* A run-time size is taken to fit what the model's author stored it in: shapes beyond 2^31 in i32 overflow there
     * too. */
    if (min >= 0 && max == INT64_MAX) return uir_dtype_bits(dtype) >= 32;
    return min >= uir_dtype_integer_min(dtype) && (max < 0 || (uint64_t)max <= top);
}

/* ---- movement ---- */

static bool copy_all(fold_context *context, uir_dim *out_elements, uint32_t count) {
    if (!context->operands[0] || context->counts[0] != count) return false;
    for (uint32_t i = 0; i < count; i++) out_elements[i] = context->operands[0][i];
    return true;
}

static bool repeat(fold_context *context, uir_dim *out_elements, uint32_t count) {
    if (!context->operands[0]) return false;
    if (context->counts[0] == count) return copy_all(context, out_elements, count);
    if (context->counts[0] != 1) return false;
    for (uint32_t i = 0; i < count; i++) out_elements[i] = context->operands[0][0];
    return true;
}

static bool concat(fold_context *context, uir_dim *out_elements, uint32_t count) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < context->node->input_count; i++) {
        const uir_dim *elements;
        uint32_t part;
        if (!uir_value_elements(context->module, context->node->inputs[i], ELEMENT_LIMIT, &elements, &part))
            return false;
        if (part > count - at) return false;
        for (uint32_t k = 0; k < part; k++) out_elements[at++] = elements[k];
    }
    return at == count;
}

static bool slice(fold_context *context, uir_dim *out_elements, uint32_t count) {
    const uir_attribute *starts = uir_node_find_attribute(context->module, context->node, "starts");
    const uir_attribute *steps = uir_node_find_attribute(context->module, context->node, "steps");
    if (!context->operands[0] || !starts || !steps) return false;
    if (!starts->count) return copy_all(context, out_elements, count);
    int64_t start;
    if (!uir_dim_is_const(context->module->dims, starts->value.dims[0], &start)) return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t index = start + (int64_t)i * steps->value.integers[0];
        if (index < 0 || index >= (int64_t)context->counts[0]) return false;
        out_elements[i] = context->operands[0][index];
    }
    return true;
}

static bool gather(fold_context *context, uir_dim *out_elements, uint32_t count) {
    if (!context->operands[0] || !context->operands[1] || context->counts[1] != count) return false;
    if (operand_type(context, 0)->rank != 1) return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t index;
        if (!uir_dim_is_const(context->module->dims, context->operands[1][i], &index)) return false;
        if (index < 0 || index >= (int64_t)context->counts[0]) return false;
        out_elements[i] = context->operands[0][index];
    }
    return true;
}

static bool iota(fold_context *context, uir_dim *out_elements, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) out_elements[i] = uir_dim_const(context->module->dims, i);
    return true;
}

static bool dim_values(fold_context *context, uir_dim *out_elements, uint32_t count) {
    const uir_attribute *dims = uir_node_find_attribute(context->module, context->node, "dims");
    if (!dims || dims->count != count) return false;
    for (uint32_t i = 0; i < count; i++) out_elements[i] = dims->value.dims[i];
    return true;
}

/* ---- arithmetic ---- */

typedef uir_dim (*dim_function)(uir_dims *dims, uir_dim a, uir_dim b);

static bool pair_known(const fold_context *context, uint32_t count) {
    return context->operands[0] && context->operands[1] && context->counts[0] == count && context->counts[1] == count;
}

static bool each_pair(fold_context *context, uir_dim *out_elements, uint32_t count, dim_function function) {
    if (!pair_known(context, count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        out_elements[i] = function(context->module->dims, context->operands[0][i], context->operands[1][i]);
        if (!out_elements[i].id) return false;
    }
    return true;
}

static bool add(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, uir_dim_add);
}
static bool subtract(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, uir_dim_sub);
}
static bool multiply(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, uir_dim_mul);
}
static bool least(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, uir_dim_min);
}
static bool greatest(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, uir_dim_max);
}

static bool at_least(uir_dims *dims, uir_dim dim, int64_t bound) {
    int64_t min, max;
    uir_dim_bounds(dims, dim, &min, &max);
    return min >= bound;
}

/* Toward zero and toward minus infinity agree for a dividend >= 0 and a divisor >= 1; constants are computed. */
static uir_dim divide_exactly(uir_dims *dims, uir_dim a, uir_dim b) {
    int64_t x, y;
    if (uir_dim_is_const(dims, a, &x) && uir_dim_is_const(dims, b, &y) && y != 0 && x != INT64_MIN)
        return uir_dim_const(dims, x / y);
    return at_least(dims, a, 0) && at_least(dims, b, 1) ? uir_dim_floordiv(dims, a, b) : UIR_DIM_NONE;
}

static uir_dim modulo_exactly(uir_dims *dims, uir_dim a, uir_dim b) {
    return at_least(dims, b, 1) ? uir_dim_mod(dims, a, b) : UIR_DIM_NONE;
}

static uir_dim remainder_exactly(uir_dims *dims, uir_dim a, uir_dim b) {
    return at_least(dims, a, 0) ? modulo_exactly(dims, a, b) : UIR_DIM_NONE;
}

static bool divide(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, divide_exactly);
}
static bool modulo(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, modulo_exactly);
}
static bool remain(fold_context *c, uir_dim *out, uint32_t count) {
    return each_pair(c, out, count, remainder_exactly);
}

static bool negate(fold_context *context, uir_dim *out_elements, uint32_t count) {
    if (!context->operands[0] || context->counts[0] != count) return false;
    uir_dims *dims = context->module->dims;
    uir_dim zero = uir_dim_const(dims, 0);
    for (uint32_t i = 0; i < count; i++) out_elements[i] = uir_dim_sub(dims, zero, context->operands[0][i]);
    return true;
}

static bool absolute(fold_context *context, uir_dim *out_elements, uint32_t count) {
    if (!negate(context, out_elements, count)) return false;
    for (uint32_t i = 0; i < count; i++)
        out_elements[i] = uir_dim_max(context->module->dims, out_elements[i], context->operands[0][i]);
    return true;
}

static bool compare(fold_context *context, uir_dim *out_elements, uint32_t count, uir_relation relation) {
    if (!pair_known(context, count)) return false;
    uir_dims *dims = context->module->dims;
    for (uint32_t i = 0; i < count; i++) {
        uir_truth truth = uir_dim_compare(dims, context->operands[0][i], relation, context->operands[1][i]);
        if (truth == UIR_UNKNOWN) return false;
        out_elements[i] = uir_dim_const(dims, truth == UIR_TRUE);
    }
    return true;
}

static bool equal(fold_context *c, uir_dim *out, uint32_t count) {
    return compare(c, out, count, UIR_RELATION_EQ);
}
static bool unequal(fold_context *c, uir_dim *out, uint32_t count) {
    return compare(c, out, count, UIR_RELATION_NE);
}
static bool less(fold_context *c, uir_dim *out, uint32_t count) {
    return compare(c, out, count, UIR_RELATION_LT);
}
static bool at_most(fold_context *c, uir_dim *out, uint32_t count) {
    return compare(c, out, count, UIR_RELATION_LE);
}
static bool greater(fold_context *c, uir_dim *out, uint32_t count) {
    return compare(c, out, count, UIR_RELATION_GT);
}
static bool no_less(fold_context *c, uir_dim *out, uint32_t count) {
    return compare(c, out, count, UIR_RELATION_GE);
}

static bool choose(fold_context *context, uir_dim *out_elements, uint32_t count) {
    if (!pair_known(context, count) || !context->operands[2] || context->counts[2] != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t condition;
        if (!uir_dim_is_const(context->module->dims, context->operands[0][i], &condition)) return false;
        out_elements[i] = context->operands[condition ? 1 : 2][i];
    }
    return true;
}

/* ---- reductions of a whole row ---- */

static bool reduce(fold_context *context, uir_dim *out_elements, uint32_t count, int64_t start, bool empty_known,
                   dim_function function) {
    const uir_attribute *axes = uir_node_find_attribute(context->module, context->node, "axes");
    if (!context->operands[0] || !axes) return false;
    if (!axes->count) return copy_all(context, out_elements, count);
    if (count != 1 || (!context->counts[0] && !empty_known)) return false;
    uir_dim result = empty_known ? uir_dim_const(context->module->dims, start) : context->operands[0][0];
    for (uint32_t i = empty_known ? 0 : 1; i < context->counts[0]; i++)
        result = function(context->module->dims, result, context->operands[0][i]);
    out_elements[0] = result;
    return true;
}

static bool sum(fold_context *c, uir_dim *out, uint32_t count) {
    return reduce(c, out, count, 0, true, uir_dim_add);
}
static bool product(fold_context *c, uir_dim *out, uint32_t count) {
    return reduce(c, out, count, 1, true, uir_dim_mul);
}
static bool row_max(fold_context *c, uir_dim *out, uint32_t count) {
    return reduce(c, out, count, 0, false, uir_dim_max);
}
static bool row_min(fold_context *c, uir_dim *out, uint32_t count) {
    return reduce(c, out, count, 0, false, uir_dim_min);
}

static const transfer transfers[UIR_OP_COUNT] = {
    [UIR_OP_CAST] = copy_all,
    [UIR_OP_RESHAPE] = copy_all,
    [UIR_OP_TRANSPOSE] = copy_all,
    [UIR_OP_BROADCAST] = repeat,
    [UIR_OP_CONCAT] = concat,
    [UIR_OP_SLICE] = slice,
    [UIR_OP_GATHER] = gather,
    [UIR_OP_IOTA] = iota,
    [UIR_OP_DIM_VALUES] = dim_values,
    [UIR_OP_ADD] = add,
    [UIR_OP_SUB] = subtract,
    [UIR_OP_MUL] = multiply,
    [UIR_OP_DIV] = divide,
    [UIR_OP_MOD] = modulo,
    [UIR_OP_REMAINDER] = remain,
    [UIR_OP_MIN] = least,
    [UIR_OP_MAX] = greatest,
    [UIR_OP_NEG] = negate,
    [UIR_OP_ABS] = absolute,
    [UIR_OP_EQ] = equal,
    [UIR_OP_NE] = unequal,
    [UIR_OP_LT] = less,
    [UIR_OP_LE] = at_most,
    [UIR_OP_GT] = greater,
    [UIR_OP_GE] = no_less,
    [UIR_OP_SELECT] = choose,
    [UIR_OP_REDUCE_SUM] = sum,
    [UIR_OP_REDUCE_PROD] = product,
    [UIR_OP_REDUCE_MAX] = row_max,
    [UIR_OP_REDUCE_MIN] = row_min,
};

static uir_status fold_node(uir_module *module, uir_node_id id) {
    const uir_node_info *node = uir_node_get(module, id);
    if (node->output_count != 1 || !node->outputs[0].id || !transfers[node->op]) return UIR_STATUS_OK;
    const uir_value_info *info = uir_value_info_get(module, node->outputs[0]);
    const uir_type *type = &info->type;
    int64_t count = 1;
    if (info->elements_known || !type->rank_known || type->rank > 1) return UIR_STATUS_OK;
    if (!uir_dtype_is_integer(type->dtype) && type->dtype != UIR_DTYPE_BOOL) return UIR_STATUS_OK;
    if (type->rank == 1 && !uir_dim_is_const(module->dims, type->dims[0], &count)) return UIR_STATUS_OK;
    if (count > ELEMENT_LIMIT) return UIR_STATUS_OK;
    fold_context context = {.module = module, .node = node};
    for (uint32_t i = 0; i < node->input_count && i < 4; i++) {
        const uir_dim *elements;
        uint32_t elements_count;
        if (node->inputs[i].id &&
            uir_value_elements(module, node->inputs[i], ELEMENT_LIMIT, &elements, &elements_count)) {
            context.operands[i] = elements;
            context.counts[i] = elements_count;
        }
    }
    uir_dim *result;
    UIR_TRY_ALLOCATE(result, uir_arena_allocate_array(&module->arena, (size_t)count + 1, sizeof *result));
    if (!transfers[node->op](&context, result, (uint32_t)count)) return UIR_STATUS_OK;
    for (int64_t i = 0; i < count; i++)
        if (!fits(&context, result[i])) return UIR_STATUS_OK;
    uir_value_info *output = uir_value_info_get(module, node->outputs[0]);
    output->elements = result;
    output->element_count = (uint32_t)count;
    output->elements_known = true;
    return UIR_STATUS_OK;
}

uir_status uir_fold_elements(uir_decomposer *decomposer) {
    uir_module *module = decomposer->target;
    if (!decomposer->folded_nodes) decomposer->folded_nodes = 1; /* [0] is none */
    for (; decomposer->folded_nodes < module->nodes.count; decomposer->folded_nodes++) {
        uir_node_id node = {decomposer->folded_nodes};
        UIR_TRY(fold_node(module, node));
        UIR_TRY(uir_evaluate_node(decomposer, node));
    }
    return UIR_STATUS_OK;
}
