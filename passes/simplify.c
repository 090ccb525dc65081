/* Local rewrites: movements, casts and arithmetic that change nothing go away, pairs of one kind become one.
 *
 * One small function per primitive, in a table by op. Each gives the value that stands for the node's result: one that
 * was there, or one built right before the node; or none when there is nothing to do. All are exact: bits do not
 * change. */
#include "passes/tools.h"
#include <string.h>

typedef struct simplifier {
    uir_builder *builder; /* places nodes before `node` */
    uir_module *module;
    const uir_node_info *node;
} simplifier;

static uir_value_id operand(const simplifier *s, uint32_t index) {
    return s->node->inputs[index];
}
static const uir_type *type_of(const simplifier *s, uir_value_id value) {
    return uir_value_type(s->module, value);
}
static const uir_type *result_type(const simplifier *s) {
    return type_of(s, s->node->outputs[0]);
}
static bool stands_for_result(const simplifier *s, uir_value_id value) {
    return uir_types_interchangeable(s->module, type_of(s, value), result_type(s));
}
static const uir_value_id none = {0};
static const int64_t extent_limit = INT64_MAX / 2;

/* ---- movement ---- */

/* Where the result has several dims instead of dim `dim`, and the rest as it is: how many; 0: it is something else. */
static uint32_t cut_into(const simplifier *s, const uir_type *from, uint32_t dim) {
    const uir_type *to = result_type(s);
    if (to->rank < from->rank) return 0;
    uint32_t count = to->rank - from->rank + 1;
    for (uint32_t d = 0; d < to->rank; d++) {
        if (d >= dim && d < dim + count) continue;
        uir_dim before = from->dims[d < dim ? d : d - count + 1];
        if (uir_dim_compare(s->module->dims, before, UIR_RELATION_EQ, to->dims[d]) != UIR_TRUE) return 0;
    }
    return count;
}

static bool has_dims(const simplifier *s, uir_value_id value, const uir_dim *dims, uint32_t rank) {
    const uir_type *type = type_of(s, value);
    bool same = type->rank == rank;
    for (uint32_t d = 0; same && d < rank; d++)
        same = uir_dim_compare(s->module->dims, type->dims[d], UIR_RELATION_EQ, dims[d]) == UIR_TRUE;
    return same;
}

/* Part of an axis cut into rows: rows of the whole axis cut so. What is cut off moves nothing then, and the rows have
 * an axis of their own. The axis, its part and the rows are of known sizes. */
static uir_value_id reshape_of_slice(simplifier *s, const uir_node_info *slice) {
    const uir_type *whole = uir_value_type(s->module, slice->inputs[0]), *to = result_type(s);
    uir_dims *context = s->module->dims;
    uint32_t rank, cut = UINT32_MAX;
    const uir_dim *starts = uir_node_dims(s->module, slice, "starts", &rank),
                  *sizes = uir_node_dims(s->module, slice, "sizes", &rank);
    const int64_t *steps = uir_node_ints(s->module, slice, "steps", &rank);
    uir_dim dims[UIR_MAX_RANK], first[UIR_MAX_RANK];
    int64_t ones[UIR_MAX_RANK], start, row = 1, extent, size;
    for (uint32_t d = 0; d < rank; d++) {
        bool all = uir_dim_is_const(context, starts[d], &start) && !start && steps[d] == 1 &&
                   uir_dim_compare(context, sizes[d], UIR_RELATION_EQ, whole->dims[d]) == UIR_TRUE;
        if (!all && cut != UINT32_MAX) return none;
        if (!all) cut = d;
    }
    uint32_t count =
        cut == UINT32_MAX || steps[cut] != 1 ? 0 : cut_into(s, uir_value_type(s->module, slice->outputs[0]), cut);
    if (count < 2 || to->rank > UIR_MAX_RANK) return none;
    for (uint32_t d = cut + 1; d < cut + count; d++) {
        if (!uir_dim_is_const(context, to->dims[d], &size) || size < 1 || size > extent_limit / row) return none;
        row *= size;
    }
    if (row == 1 || !uir_dim_is_const(context, whole->dims[cut], &extent) ||
        !uir_dim_is_const(context, starts[cut], &start) || extent % row || start % row)
        return none;
    for (uint32_t d = 0; d < to->rank; d++) {
        dims[d] = d == cut ? uir_dim_const(context, extent / row) : to->dims[d];
        first[d] = uir_dim_const(context, d == cut ? start / row : 0);
        ones[d] = 1;
    }
    /* What is built is as simple as this pass makes it, so that a second run finds nothing. */
    uir_value_id rows = slice->inputs[0];
    const uir_node_info *inner = uir_value_made_by(s->module, rows, UIR_OP_RESHAPE);
    if (inner) rows = inner->inputs[0];
    if (uir_value_made_by(s->module, rows, UIR_OP_SLICE) || uir_value_made_by(s->module, rows, UIR_OP_RESHAPE))
        return none;
    if (!has_dims(s, rows, dims, to->rank)) rows = uir_build_reshape(s->builder, rows, dims, to->rank);
    return uir_build_slice(s->builder, rows, first, to->dims, ones);
}

static uir_value_id reshape(simplifier *s) {
    if (stands_for_result(s, operand(s, 0))) return operand(s, 0);
    const uir_node_info *inner = uir_value_made_by(s->module, operand(s, 0), UIR_OP_RESHAPE);
    uir_value_id origin = inner ? inner->inputs[0] : operand(s, 0);
    if (stands_for_result(s, origin)) return origin;
    const uir_node_info *part = uir_value_made_by(s->module, origin, UIR_OP_SLICE);
    uir_value_id rows = part ? reshape_of_slice(s, part) : none;
    const uir_type *type = result_type(s);
    return rows.id || !inner ? rows : uir_build_reshape(s->builder, origin, type->dims, type->rank);
}

static uir_value_id broadcast(simplifier *s) {
    if (stands_for_result(s, operand(s, 0))) return operand(s, 0);
    const uir_node_info *inner = uir_value_made_by(s->module, operand(s, 0), UIR_OP_BROADCAST);
    if (!inner) return none;
    uir_value_id origin = inner->inputs[0];
    const uir_type *type = result_type(s);
    return uir_build_broadcast(s->builder, origin, type->dims, type->rank);
}

static uir_value_id transpose(simplifier *s) {
    uint32_t rank;
    const int64_t *perm = uir_node_ints(s->module, s->node, "perm", &rank), *first;
    bool same = true;
    for (uint32_t d = 0; d < rank; d++) same = same && perm[d] == d;
    if (same) return operand(s, 0);
    const uir_node_info *inner = uir_value_made_by(s->module, operand(s, 0), UIR_OP_TRANSPOSE);
    if (!inner || rank > UIR_MAX_RANK) return none;
    first = uir_node_ints(s->module, inner, "perm", &rank);
    int64_t joined[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) joined[d] = first[perm[d]];
    return uir_build_transpose(s->builder, inner->inputs[0], joined);
}

/* Element i of the outer slice is element a0 + (b0 + i*bs)*as of the inner one's operand. */
static uir_value_id slice(simplifier *s) {
    uint32_t rank;
    uir_dims *dims = s->module->dims;
    const uir_dim *starts = uir_node_dims(s->module, s->node, "starts", &rank);
    const int64_t *steps = uir_node_ints(s->module, s->node, "steps", &rank);
    bool whole = stands_for_result(s, operand(s, 0));
    for (uint32_t d = 0; d < rank && whole; d++) {
        int64_t start;
        whole = steps[d] == 1 && uir_dim_is_const(dims, starts[d], &start) && start == 0;
    }
    if (whole) return operand(s, 0);
    const uir_node_info *inner = uir_value_made_by(s->module, operand(s, 0), UIR_OP_SLICE);
    if (!inner || rank > UIR_MAX_RANK) return none;
    const uir_dim *inner_starts = uir_node_dims(s->module, inner, "starts", &rank);
    const int64_t *inner_steps = uir_node_ints(s->module, inner, "steps", &rank);
    const uir_dim *sizes = uir_node_dims(s->module, s->node, "sizes", &rank);
    uir_dim joined[UIR_MAX_RANK];
    int64_t strides[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        if (__builtin_mul_overflow(inner_steps[d], steps[d], &strides[d])) return none;
        joined[d] = uir_dim_mul(dims, starts[d], uir_dim_const(dims, inner_steps[d]));
        joined[d] = uir_dim_add(dims, joined[d], inner_starts[d]);
        if (!joined[d].id) return none;
    }
    return uir_build_slice(s->builder, inner->inputs[0], joined, sizes, strides);
}

/* One index that is known, and known to be inside, is a slice. */
static uir_value_id gather(simplifier *s) {
    const uir_tensor *index = uir_value_info_get(s->module, operand(s, 1))->constant;
    const uir_type *type = type_of(s, operand(s, 0)), *result = result_type(s);
    uint32_t axis = (uint32_t)uir_node_int(s->module, s->node, "axis", 0);
    uir_dims *dims = s->module->dims;
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK], at;
    if (!index || index->element_count != 1 || type->rank > UIR_MAX_RANK) return none;
    at = uir_dtype_load_integer(index->dtype, index->data, 0);
    if (at < 0 || uir_dim_compare(dims, uir_dim_const(dims, at), UIR_RELATION_LT, type->dims[axis]) != UIR_TRUE)
        return none;
    for (uint32_t d = 0; d < type->rank; d++) {
        starts[d] = uir_dim_const(dims, d == axis ? at : 0);
        sizes[d] = d == axis ? uir_dim_const(dims, 1) : type->dims[d];
        steps[d] = 1;
    }
    return uir_build_reshape(s->builder, uir_build_slice(s->builder, operand(s, 0), starts, sizes, steps), result->dims,
                             result->rank);
}

static uir_value_id concat(simplifier *s) {
    return s->node->input_count == 1 ? operand(s, 0) : none;
}

static uir_value_id reduce(simplifier *s) {
    uint32_t count;
    uir_node_ints(s->module, s->node, "axes", &count);
    return count ? none : operand(s, 0);
}

/* A pad by what only the run tells, as a zero point, is a choice: what kernels fill with is a number. */
static uir_value_id pad_by_choice(simplifier *s) {
    uir_builder *b = s->builder;
    uir_value_id x = operand(s, 0), value = operand(s, 1);
    uir_type type = *type_of(s, x);
    uint32_t rank;
    const uir_dim *low = uir_node_dims(s->module, s->node, "low", &rank);
    const uir_dim *high = uir_node_dims(s->module, s->node, "high", &rank);
    const int64_t *interior = uir_node_ints(s->module, s->node, "interior", &rank);
    if (uir_value_info_get(s->module, value)->constant || uir_dtype_bits(type.dtype) < 8 ||
        !(uir_dtype_is_float(type.dtype) || uir_dtype_is_integer(type.dtype) || type.dtype == UIR_DTYPE_BOOL))
        return none;
    uir_value_id is_inside = uir_build_broadcast(b, uir_build_scalar(b, UIR_DTYPE_BOOL, 1), type.dims, type.rank);
    is_inside = uir_build_pad(b, is_inside, uir_build_scalar(b, UIR_DTYPE_BOOL, 0), low, high, interior);
    x = uir_build_pad(b, x, uir_build_scalar(b, type.dtype, 0), low, high, interior);
    return uir_build_select(b, is_inside, x, value);
}

static uir_value_id pad(simplifier *s) {
    uint32_t rank;
    const uir_dim *low = uir_node_dims(s->module, s->node, "low", &rank);
    const uir_dim *high = uir_node_dims(s->module, s->node, "high", &rank);
    const int64_t *interior = uir_node_ints(s->module, s->node, "interior", &rank);
    for (uint32_t d = 0; d < rank; d++) {
        int64_t before, after;
        bool fixed =
            uir_dim_is_const(s->module->dims, low[d], &before) && uir_dim_is_const(s->module->dims, high[d], &after);
        if (!fixed || before || after || interior[d]) return pad_by_choice(s);
    }
    return operand(s, 0);
}

/* ---- casts ---- */

/* Bits of an integer that a float type holds exactly; 0 for types that are not followed. */
static uint32_t exact_bits(uir_dtype dtype) {
    switch (dtype) {
    case UIR_DTYPE_BF16:
        return 8;
    case UIR_DTYPE_F16:
        return 11;
    case UIR_DTYPE_F32:
        return 24;
    case UIR_DTYPE_F64:
        return 53;
    default:
        return 0;
    }
}

/* Whether every value of `from` is one of `to`. */
static bool holds(uir_dtype to, uir_dtype from) {
    uir_dtype_class a = uir_dtype_get_class(from), b = uir_dtype_get_class(to);
    uint32_t a_bits = uir_dtype_bits(from), b_bits = uir_dtype_bits(to);
    if (to == from || (a == UIR_DTYPE_CLASS_BOOL && (uir_dtype_is_integer(to) || exact_bits(to)))) return true;
    if (uir_dtype_is_integer(from)) {
        if (exact_bits(to)) return a_bits - (a == UIR_DTYPE_CLASS_SIGNED) <= exact_bits(to);
        if (a == b) return b_bits >= a_bits;
        return a == UIR_DTYPE_CLASS_UNSIGNED && b == UIR_DTYPE_CLASS_SIGNED && b_bits > a_bits;
    }
    return exact_bits(from) && ((to == UIR_DTYPE_F64) || (to == UIR_DTYPE_F32 && from != UIR_DTYPE_F64));
}

/* Integers that share bytes have bytes of their own where a constant is cast to be computed with: taken apart here, not
 * by every run. */
static uir_value_id cast_of_bytes(simplifier *s, const uir_tensor *constant) {
    bool is_signed = uir_dtype_get_class(constant->dtype) == UIR_DTYPE_CLASS_SIGNED;
    uir_dtype wide = is_signed ? UIR_DTYPE_I8 : UIR_DTYPE_U8;
    uir_tensor *bytes = NULL;
    uir_status status = uir_tensor_create(s->module->allocator, wide, constant->rank, constant->shape, &bytes);
    if (status == UIR_STATUS_OK)
        status = uir_dtype_convert(constant->dtype, constant->data, wide, bytes->data, constant->element_count,
                                   UIR_ROUND_NEAREST_EVEN);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(bytes);
        if (s->builder->status == UIR_STATUS_OK) s->builder->status = status;
        return none;
    }
    uir_put_aside(bytes);
    return uir_build_cast(s->builder, uir_build_constant(s->builder, bytes), result_type(s)->dtype);
}

static uir_value_id cast(simplifier *s) {
    if (stands_for_result(s, operand(s, 0))) return operand(s, 0);
    const uir_tensor *constant = uir_value_info_get(s->module, operand(s, 0))->constant;
    if (constant && s->node->attribute_count == 1 && uir_dtype_is_integer(constant->dtype) &&
        uir_dtype_bits(constant->dtype) < 8)
        return cast_of_bytes(s, constant);
    /* Few elements are cast before they are many. */
    const uir_node_info *few = uir_value_made_by(s->module, operand(s, 0), UIR_OP_BROADCAST);
    if (few && s->node->attribute_count == 1) {
        const uir_type to = *result_type(s);
        return uir_build_broadcast(s->builder, uir_build_cast(s->builder, few->inputs[0], to.dtype), to.dims, to.rank);
    }
    const uir_node_info *inner = uir_value_made_by(s->module, operand(s, 0), UIR_OP_CAST);
    if (!inner || s->node->attribute_count != 1 || inner->attribute_count != 1) return none;
    uir_value_id origin = inner->inputs[0];
    if (!holds(type_of(s, operand(s, 0))->dtype, type_of(s, origin)->dtype)) return none;
    return uir_build_cast(s->builder, origin, result_type(s)->dtype);
}

/* ---- arithmetic ---- */

/* The one number that all elements of a constant are: a constant of one element, broadcast or not. */
static bool uniform_number(const simplifier *s, uir_value_id value, double *out_number) {
    for (;;) {
        const uir_node_info *maker = uir_value_made_by(s->module, value, UIR_OP_BROADCAST);
        if (!maker) maker = uir_value_made_by(s->module, value, UIR_OP_RESHAPE);
        if (!maker) break;
        value = maker->inputs[0];
    }
    const uir_tensor *tensor = uir_value_info_get(s->module, value)->constant;
    if (!tensor || tensor->element_count != 1) return false;
    bool whole = uir_dtype_is_integer(tensor->dtype);
    if (!whole && !uir_dtype_is_float(tensor->dtype)) return false;
    *out_number = whole ? (double)uir_dtype_load_integer(tensor->dtype, tensor->data, 0)
                        : uir_dtype_load_double(tensor->dtype, tensor->data, 0);
    return true;
}

static uir_value_id multiply(simplifier *s) {
    double number;
    if (uniform_number(s, operand(s, 1), &number) && number == 1) return operand(s, 0);
    if (uniform_number(s, operand(s, 0), &number) && number == 1) return operand(s, 1);
    return none;
}

static uir_value_id divide(simplifier *s) {
    double number;
    return uniform_number(s, operand(s, 1), &number) && number == 1 ? operand(s, 0) : none;
}

/* x + 0 turns -0 into 0, so that floats are left alone. */
static uir_value_id add(simplifier *s) {
    double number;
    if (!uir_dtype_is_integer(result_type(s)->dtype)) return none;
    if (uniform_number(s, operand(s, 1), &number) && number == 0) return operand(s, 0);
    if (uniform_number(s, operand(s, 0), &number) && number == 0) return operand(s, 1);
    return none;
}

static uir_value_id subtract(simplifier *s) {
    double number;
    bool zero = uniform_number(s, operand(s, 1), &number) && number == 0;
    return zero && uir_dtype_is_integer(result_type(s)->dtype) ? operand(s, 0) : none;
}

static uir_value_id power(simplifier *s) {
    double number;
    if (!uniform_number(s, operand(s, 1), &number)) return none;
    if (number == 1) return operand(s, 0);
    if (number != 2) return none;
    return uir_build_binary(s->builder, UIR_OP_MUL, operand(s, 0), operand(s, 0));
}

/* Ops that undo themselves. */
static uir_value_id involution(simplifier *s) {
    const uir_node_info *inner = uir_value_made_by(s->module, operand(s, 0), s->node->op);
    return inner ? inner->inputs[0] : none;
}

static uir_value_id choose_same(simplifier *s) {
    return operand(s, 1).id == operand(s, 2).id ? operand(s, 1) : none;
}

typedef uir_value_id (*rewrite)(simplifier *s);
static const rewrite rewrites[UIR_OP_COUNT] = {
    [UIR_OP_RESHAPE] = reshape,
    [UIR_OP_BROADCAST] = broadcast,
    [UIR_OP_TRANSPOSE] = transpose,
    [UIR_OP_SLICE] = slice,
    [UIR_OP_CONCAT] = concat,
    [UIR_OP_PAD] = pad,
    [UIR_OP_GATHER] = gather,
    [UIR_OP_CAST] = cast,
    [UIR_OP_MUL] = multiply,
    [UIR_OP_DIV] = divide,
    [UIR_OP_ADD] = add,
    [UIR_OP_SUB] = subtract,
    [UIR_OP_POW] = power,
    [UIR_OP_NEG] = involution,
    [UIR_OP_NOT] = involution,
    [UIR_OP_BIT_NOT] = involution,
    [UIR_OP_SELECT] = choose_same,
    [UIR_OP_REDUCE_SUM] = reduce,
    [UIR_OP_REDUCE_PROD] = reduce,
    [UIR_OP_REDUCE_MAX] = reduce,
    [UIR_OP_REDUCE_MIN] = reduce,
};

/* Of a result that has no elements nothing is to be computed. */
static uir_value_id nothing(simplifier *s) {
    static const uir_op ops[] = {UIR_OP_CONV, UIR_OP_MATMUL, UIR_OP_WINDOW_SUM, UIR_OP_WINDOW_MAX};
    bool pure = rewrites[s->node->op] || uir_op_get_row(s->node->op)->traits & UIR_TRAIT_ELEMENTWISE;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) pure |= s->node->op == ops[i];
    if (!pure || s->node->op == UIR_OP_BROADCAST || s->node->output_count != 1) return none;
    const uir_type type = *result_type(s);
    uir_dtype_class class = uir_dtype_get_class(type.dtype);
    if (type.kind != UIR_VALUE_TENSOR || class == UIR_DTYPE_CLASS_STRING || class == UIR_DTYPE_CLASS_COMPLEX)
        return none;
    for (uint32_t d = 0; d < type.rank; d++) {
        int64_t extent;
        if (uir_dim_is_const(s->module->dims, type.dims[d], &extent) && extent == 0)
            return uir_build_broadcast(s->builder, uir_build_scalar(s->builder, type.dtype, 0), type.dims, type.rank);
    }
    return none;
}

static uir_value_id simplify_node(void *user, uir_builder *builder, const uir_node_info *node) {
    (void)user;
    simplifier s = {builder, builder->module, node};
    uir_value_id empty = nothing(&s);
    if (empty.id) return empty;
    return rewrites[node->op] ? rewrites[node->op](&s) : none;
}

uir_status uir_cleanup_simplify(uir_module *module, uir_pass_context *context) {
    return uir_rewrite_nodes(module, context, &(uir_rewriter){.rewrite = simplify_node});
}
