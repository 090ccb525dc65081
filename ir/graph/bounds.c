#include "ir/graph/bounds.h"

enum { MAX_VALUES = 256, MAX_ELEMENTS = 64 };

typedef struct asking {
    uir_module *module;
    const uir_node_info *node; /* that makes the value */
    uint32_t output;           /* which of its results */
    uint32_t *left;            /* values that may still be looked at */
} asking;

static const uir_bounds unknown = {{0}, {0}, false};

static uir_bounds of_value(uir_module *module, uir_value_id value, uint32_t *left);

static uir_bounds of_operand(const asking *a, uint32_t index) {
    return of_value(a->module, a->node->inputs[index], a->left);
}

static uir_bounds between(const asking *a, int64_t low, int64_t high, bool attained) {
    return (uir_bounds){uir_dim_const(a->module->dims, low), uir_dim_const(a->module->dims, high), attained};
}

static bool is_one(uir_bounds b) {
    return b.attained && b.low.id && uir_dim_equal(b.low, b.high);
}

/* The positions of an axis. */
static uir_bounds positions(const asking *a, uir_dim extent, bool attained) {
    uir_dims *dims = a->module->dims;
    return (uir_bounds){uir_dim_const(dims, 0), uir_dim_sub(dims, extent, uir_dim_const(dims, 1)), attained};
}

static uir_bounds join(const asking *a, uir_bounds x, uir_bounds y) {
    uir_dims *dims = a->module->dims;
    uir_bounds both = unknown;
    if (x.low.id && y.low.id) both.low = uir_dim_min(dims, x.low, y.low);
    if (x.high.id && y.high.id) both.high = uir_dim_max(dims, x.high, y.high);
    return both;
}

/* ---- what kinds of primitive do ---- */
static uir_bounds same(const asking *a) {
    return of_operand(a, 0);
}

static uir_bounds some(const asking *a) {
    uir_bounds b = of_operand(a, 0);
    b.attained = is_one(b);
    return b;
}

static uir_bounds any_operand(const asking *a) {
    uir_bounds all = some(a);
    for (uint32_t i = 1; i < a->node->input_count; i++) all = join(a, all, of_operand(a, i));
    return all;
}

static uir_bounds of_select(const asking *a) {
    return join(a, of_operand(a, 1), of_operand(a, 2));
}

static uir_bounds of_iota(const asking *a) {
    uint32_t count, axis = (uint32_t)uir_node_int(a->module, a->node, "axis", 0);
    const uir_dim *dims = uir_node_dims(a->module, a->node, "dims", &count);
    return axis < count ? positions(a, dims[axis], true) : unknown;
}

static uir_bounds of_axis(const asking *a) {
    const uir_type *type = uir_value_type(a->module, a->node->inputs[0]);
    uint32_t axis = (uint32_t)uir_node_int(a->module, a->node, "axis", 0);
    if (a->node->op == UIR_OP_TOP_K && a->output == 0) return some(a);
    return axis < type->rank ? positions(a, type->dims[axis], false) : unknown;
}

static uir_bounds of_non_zero(const asking *a) {
    const uir_type *type = uir_value_type(a->module, a->node->inputs[0]);
    return type->rank_known && type->rank == 1 ? positions(a, type->dims[0], false) : unknown;
}

/* Whether both ends are numbers that the dtype holds: sums beyond it wrap. */
static bool fits(const asking *a, uir_bounds b, uir_dtype dtype) {
    uint32_t bits = uir_dtype_bits(dtype);
    bool is_unsigned = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_UNSIGNED;
    int64_t low, high, ignored;
    if (bits >= 64) return !is_unsigned;
    if (!b.low.id || !b.high.id) return false;
    uir_dim_bounds(a->module->dims, b.low, &low, &ignored);
    uir_dim_bounds(a->module->dims, b.high, &ignored, &high);
    return is_unsigned ? low >= 0 && high < (int64_t)1 << bits
                       : low >= -((int64_t)1 << (bits - 1)) && high < (int64_t)1 << (bits - 1);
}

static uir_bounds of_sum(const asking *a) {
    uir_dims *dims = a->module->dims;
    uir_bounds x = of_operand(a, 0), y = of_operand(a, 1), sum = unknown;
    bool minus = a->node->op == UIR_OP_SUB;
    uir_dim least = minus ? y.high : y.low, most = minus ? y.low : y.high;
    if (x.low.id && least.id) sum.low = (minus ? uir_dim_sub : uir_dim_add)(dims, x.low, least);
    if (x.high.id && most.id) sum.high = (minus ? uir_dim_sub : uir_dim_add)(dims, x.high, most);
    sum.attained = x.attained && y.attained && (is_one(x) || is_one(y));
    return sum;
}

/* By a number that is not negative. */
static uir_bounds of_product(const asking *a) {
    uir_dims *dims = a->module->dims;
    uir_bounds x = of_operand(a, 0), y = of_operand(a, 1), product = unknown;
    if (is_one(x)) {
        uir_bounds swap = x;
        x = y;
        y = swap;
    }
    if (!is_one(y) || uir_dim_compare(dims, y.low, UIR_RELATION_GE, uir_dim_const(dims, 0)) != UIR_TRUE) return unknown;
    if (x.low.id) product.low = uir_dim_mul(dims, x.low, y.low);
    if (x.high.id) product.high = uir_dim_mul(dims, x.high, y.low);
    product.attained = x.attained;
    return product;
}

/* The sign is the divisor's. */
static uir_bounds of_mod(const asking *a) {
    uir_dims *dims = a->module->dims;
    uir_bounds y = of_operand(a, 1);
    if (!is_one(y) || uir_dim_compare(dims, y.low, UIR_RELATION_GE, uir_dim_const(dims, 1)) != UIR_TRUE) return unknown;
    return positions(a, y.low, false);
}

static uir_bounds of_choice(const asking *a) {
    uir_dims *dims = a->module->dims;
    uir_bounds x = of_operand(a, 0), y = of_operand(a, 1), b = unknown;
    bool least = a->node->op == UIR_OP_MIN;
    uir_dim (*choose)(uir_dims *, uir_dim, uir_dim) = least ? uir_dim_min : uir_dim_max;
    b.low = x.low.id && y.low.id ? choose(dims, x.low, y.low) : least ? UIR_DIM_NONE : x.low.id ? x.low : y.low;
    b.high = x.high.id && y.high.id ? choose(dims, x.high, y.high)
             : !least               ? UIR_DIM_NONE
             : x.high.id            ? x.high
                                    : y.high;
    b.attained = x.attained && y.attained && (is_one(x) || is_one(y));
    return b;
}

static uir_bounds of_cast(const asking *a) {
    uir_dtype from = uir_value_type(a->module, a->node->inputs[0])->dtype,
              to = uir_value_type(a->module, a->node->outputs[0])->dtype;
    if (from == UIR_DTYPE_BOOL) return between(a, 0, 1, false);
    if (!uir_dtype_is_integer(from)) return unknown;
    uir_bounds b = of_operand(a, 0);
    return fits(a, b, to) ? b : unknown;
}

static const struct {
    uir_op op;
    uir_bounds (*of)(const asking *a);
} rows[] = {
    {UIR_OP_RESHAPE, same},    {UIR_OP_TRANSPOSE, same},     {UIR_OP_BROADCAST, same},   {UIR_OP_SLICE, some},
    {UIR_OP_GATHER, some},     {UIR_OP_GATHER_ND, some},     {UIR_OP_REDUCE_MAX, some},  {UIR_OP_REDUCE_MIN, some},
    {UIR_OP_PAD, any_operand}, {UIR_OP_CONCAT, any_operand}, {UIR_OP_SELECT, of_select}, {UIR_OP_IOTA, of_iota},
    {UIR_OP_ARG_MAX, of_axis}, {UIR_OP_ARG_MIN, of_axis},    {UIR_OP_TOP_K, of_axis},    {UIR_OP_NON_ZERO, of_non_zero},
    {UIR_OP_ADD, of_sum},      {UIR_OP_SUB, of_sum},         {UIR_OP_MUL, of_product},   {UIR_OP_MOD, of_mod},
    {UIR_OP_MIN, of_choice},   {UIR_OP_MAX, of_choice},      {UIR_OP_CAST, of_cast},     {UIR_OP_GATHER_ELEMENTS, some},
};

/* An empty maximum is the dtype's least, an empty minimum its greatest. */
static bool may_be_of_nothing(const asking *a) {
    if (a->node->op != UIR_OP_REDUCE_MAX && a->node->op != UIR_OP_REDUCE_MIN) return false;
    const uir_type *type = uir_value_type(a->module, a->node->inputs[0]);
    for (uint32_t d = 0; d < type->rank; d++) {
        int64_t low, high;
        uir_dim_bounds(a->module->dims, type->dims[d], &low, &high);
        if (low < 1) return true;
    }
    return false;
}

static uir_bounds of_constant(const asking *a, const uir_tensor *t) {
    if (!t->element_count) return between(a, 0, 0, false);
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (uint64_t i = 0; i < t->element_count; i++) {
        int64_t element = uir_dtype_load_integer(t->dtype, t->data, i);
        if (element < low) low = element;
        if (element > high) high = element;
    }
    return between(a, low, high, true);
}

static uir_bounds of_elements(const asking *a, const uir_value_info *info) {
    uir_bounds all = unknown;
    for (uint32_t i = 0; i < info->element_count; i++) {
        if (!info->elements[i].id) return unknown;
        uir_bounds one = {info->elements[i], info->elements[i], true};
        all = i ? join(a, all, one) : one;
    }
    return all;
}

/* What any value of the dtype is. */
static uir_bounds of_dtype(const asking *a, uir_dtype dtype) {
    uint32_t bits = uir_dtype_bits(dtype);
    bool is_unsigned = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_UNSIGNED;
    if (bits >= 32) return unknown;
    return between(a, is_unsigned ? 0 : -((int64_t)1 << (bits - 1)),
                   ((int64_t)1 << (is_unsigned ? bits : bits - 1)) - 1, false);
}

static uir_bounds of_value(uir_module *module, uir_value_id value, uint32_t *left) {
    const uir_value_info *info = uir_value_info_get(module, value);
    asking a = {.module = module, .left = left};
    uir_bounds b = unknown;
    if (info->type.kind != UIR_VALUE_TENSOR || !info->type.rank_known || !uir_dtype_is_integer(info->type.dtype))
        return unknown;
    if (!*left) return unknown;
    --*left;
    uir_dtype dtype = info->type.dtype;
    if (info->constant) return dtype == UIR_DTYPE_U64 ? unknown : of_constant(&a, info->constant);
    if (info->elements_known && info->element_count <= MAX_ELEMENTS) b = of_elements(&a, info);
    if (!b.low.id && !b.high.id && info->producer.id) {
        a.node = uir_node_get(module, info->producer);
        while (a.output + 1 < a.node->output_count && a.node->outputs[a.output].id != value.id) a.output++;
        for (size_t i = 0; i < sizeof rows / sizeof *rows && !may_be_of_nothing(&a); i++)
            if (rows[i].op == a.node->op) b = rows[i].of(&a);
        if (!fits(&a, b, dtype)) b = unknown;
    }
    return b.low.id || b.high.id ? b : of_dtype(&a, dtype);
}

static uir_bounds bounds_of(uir_module *module, uir_value_id value) {
    uint32_t left = MAX_VALUES;
    return of_value(module, value, &left);
}

bool uir_bounds_are_inside(uir_module *module, uir_bounds b, uir_dim low, uir_dim high) {
    return b.low.id && b.high.id && uir_dim_compare(module->dims, b.low, UIR_RELATION_GE, low) == UIR_TRUE &&
           uir_dim_compare(module->dims, b.high, UIR_RELATION_LT, high) == UIR_TRUE;
}

/* Each element of a constant against the bounds of its own place. */
static bool constants_are_inside(uir_module *module, const uir_tensor *t, const uir_dim *low, const uir_dim *high,
                                 uint32_t count) {
    for (uint64_t i = 0; i < t->element_count; i++) {
        uir_dim index = uir_dim_const(module->dims, uir_dtype_load_integer(t->dtype, t->data, i));
        if (!uir_bounds_are_inside(module, (uir_bounds){index, index, true}, low[i % count], high[i % count]))
            return false;
    }
    return true;
}

/* Coordinates that are put side by side: each has bounds of its own. */
static bool find_piece_bounds(uir_module *module, uir_value_id indices, uint32_t count, uir_bounds *out_bounds) {
    const uir_value_info *info = uir_value_info_get(module, indices);
    const uir_node_info *node = info->producer.id ? uir_node_get(module, info->producer) : NULL;
    uint32_t k = 0;
    if (!node || node->op != UIR_OP_CONCAT || uir_node_int(module, node, "axis", 0) + 1 != (int64_t)info->type.rank)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t extent;
        const uir_type *type = uir_value_type(module, node->inputs[i]);
        uir_bounds b = bounds_of(module, node->inputs[i]);
        if (!uir_dim_is_const(module->dims, type->dims[type->rank - 1], &extent)) return false;
        for (; extent-- > 0; k++) {
            if (k >= count) return false;
            out_bounds[k] = b;
        }
    }
    return k == count;
}

void uir_index_bounds(uir_module *module, uir_value_id indices, uint32_t count, uir_bounds *out_bounds) {
    if (count > 1 && find_piece_bounds(module, indices, count, out_bounds)) return;
    uir_bounds all = bounds_of(module, indices);
    for (uint32_t k = 0; k < count; k++) out_bounds[k] = all;
}

bool uir_indices_are_inside(uir_module *module, uir_value_id indices, const uir_dim *low, const uir_dim *high,
                            uint32_t count) {
    const uir_value_info *info = uir_value_info_get(module, indices);
    uir_bounds bounds[UIR_MAX_RANK];
    if (info->constant && count > 1) return constants_are_inside(module, info->constant, low, high, count);
    if (count > UIR_MAX_RANK) return false;
    uir_index_bounds(module, indices, count, bounds);
    for (uint32_t k = 0; k < count; k++)
        if (!uir_bounds_are_inside(module, bounds[k], low[k], high[k])) return false;
    return true;
}
