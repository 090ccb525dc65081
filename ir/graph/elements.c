/* Shape arithmetic: the symbolic contents of small integer values, carried through the primitives that models compute
 * shapes with (Shape -> Gather -> Concat -> Reshape chains vanish this way).
 *
 * In: a node whose operands' elements are known. Out: its results' elements where they are exact for every binding of
 * the symbols; otherwise nothing. */
#include "ir/graph/infer/infer.h"
#include <string.h>

enum { MAX_ELEMENTS = 1024 };

typedef struct folding {
    uir_module *module;
    uir_dims *dims;
    const uir_node_info *node;
    const uir_value_info *a, *b, *c; /* operands 0 to 2, NULL when absent */
    uir_dim *out;
    uint32_t count;
} folding;

typedef bool (*fold_function)(folding *f); /* fills out; false: not known */

static uir_dim constant(folding *f, int64_t value) {
    return uir_dim_const(f->dims, value);
}

static bool at_least(folding *f, uir_dim dim, int64_t least) {
    int64_t min, max;
    uir_dim_bounds(f->dims, dim, &min, &max);
    return min >= least;
}

/* ---- elementwise: operands have the result's number of elements ---- */

static bool each_binary(folding *f, uir_dim (*apply)(folding *f, uir_dim a, uir_dim b)) {
    for (uint32_t i = 0; i < f->count; i++) f->out[i] = apply(f, f->a->elements[i], f->b->elements[i]);
    return true;
}

static uir_dim apply_add(folding *f, uir_dim a, uir_dim b) {
    return uir_dim_add(f->dims, a, b);
}
static uir_dim apply_sub(folding *f, uir_dim a, uir_dim b) {
    return uir_dim_sub(f->dims, a, b);
}
static uir_dim apply_mul(folding *f, uir_dim a, uir_dim b) {
    return uir_dim_mul(f->dims, a, b);
}
static uir_dim apply_min(folding *f, uir_dim a, uir_dim b) {
    return uir_dim_min(f->dims, a, b);
}
static uir_dim apply_max(folding *f, uir_dim a, uir_dim b) {
    return uir_dim_max(f->dims, a, b);
}
/* Division toward zero is floordiv when nothing is negative. */
static uir_dim apply_div(folding *f, uir_dim a, uir_dim b) {
    int64_t x, y;
    if (uir_dim_is_const(f->dims, a, &x) && uir_dim_is_const(f->dims, b, &y) && y && (x != INT64_MIN || y != -1))
        return constant(f, x / y);
    return at_least(f, a, 0) && at_least(f, b, 1) ? uir_dim_floordiv(f->dims, a, b) : UIR_DIM_NONE;
}
static uir_dim apply_mod(folding *f, uir_dim a, uir_dim b) {
    return at_least(f, b, 1) ? uir_dim_mod(f->dims, a, b) : UIR_DIM_NONE;
}
static uir_dim apply_relation(folding *f, uir_dim a, uir_relation relation, uir_dim b) {
    uir_truth truth = uir_dim_compare(f->dims, a, relation, b);
    return truth == UIR_UNKNOWN ? UIR_DIM_NONE : constant(f, truth == UIR_TRUE);
}
static uir_dim apply_eq(folding *f, uir_dim a, uir_dim b) {
    return apply_relation(f, a, UIR_RELATION_EQ, b);
}
static uir_dim apply_ne(folding *f, uir_dim a, uir_dim b) {
    return apply_relation(f, a, UIR_RELATION_NE, b);
}
static uir_dim apply_lt(folding *f, uir_dim a, uir_dim b) {
    return apply_relation(f, a, UIR_RELATION_LT, b);
}
static uir_dim apply_le(folding *f, uir_dim a, uir_dim b) {
    return apply_relation(f, a, UIR_RELATION_LE, b);
}
static uir_dim apply_gt(folding *f, uir_dim a, uir_dim b) {
    return apply_relation(f, a, UIR_RELATION_GT, b);
}
static uir_dim apply_ge(folding *f, uir_dim a, uir_dim b) {
    return apply_relation(f, a, UIR_RELATION_GE, b);
}

static bool fold_add(folding *f) {
    return each_binary(f, apply_add);
}
static bool fold_sub(folding *f) {
    return each_binary(f, apply_sub);
}
static bool fold_mul(folding *f) {
    return each_binary(f, apply_mul);
}
static bool fold_div(folding *f) {
    return each_binary(f, apply_div);
}
static bool fold_mod(folding *f) {
    return each_binary(f, apply_mod);
}
static bool fold_min(folding *f) {
    return each_binary(f, apply_min);
}
static bool fold_max(folding *f) {
    return each_binary(f, apply_max);
}
static bool fold_eq(folding *f) {
    return each_binary(f, apply_eq);
}
static bool fold_ne(folding *f) {
    return each_binary(f, apply_ne);
}
static bool fold_lt(folding *f) {
    return each_binary(f, apply_lt);
}
static bool fold_le(folding *f) {
    return each_binary(f, apply_le);
}
static bool fold_gt(folding *f) {
    return each_binary(f, apply_gt);
}
static bool fold_ge(folding *f) {
    return each_binary(f, apply_ge);
}

static bool fold_neg(folding *f) {
    for (uint32_t i = 0; i < f->count; i++) f->out[i] = uir_dim_sub(f->dims, constant(f, 0), f->a->elements[i]);
    return true;
}

static bool fold_not(folding *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        int64_t value;
        if (uir_dim_is_const(f->dims, f->a->elements[i], &value)) f->out[i] = constant(f, !value);
    }
    return true;
}

static bool fold_select(folding *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        int64_t condition;
        if (uir_dim_equal(f->b->elements[i], f->c->elements[i]))
            f->out[i] = f->b->elements[i];
        else if (uir_dim_is_const(f->dims, f->a->elements[i], &condition))
            f->out[i] = condition ? f->b->elements[i] : f->c->elements[i];
    }
    return true;
}

/* ---- movement ---- */

/* Same elements in the same order: reshapes, and casts between integers (checked by the caller to fit). */
static bool fold_same(folding *f) {
    if (f->a->element_count != f->count) return false;
    if (f->count) memcpy(f->out, f->a->elements, f->count * sizeof *f->out);
    return true;
}

static bool fold_broadcast(folding *f) {
    for (uint32_t i = 0; i < f->count; i++) f->out[i] = f->a->elements[f->a->element_count == 1 ? 0 : i];
    return f->a->element_count == 1 || f->a->element_count == f->count;
}

static bool fold_concat(folding *f) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->node->input_count; i++) {
        const uir_value_info *part = uir_value_info_get(f->module, f->node->inputs[i]);
        if (at + part->element_count > f->count) return false;
        if (part->element_count) memcpy(f->out + at, part->elements, part->element_count * sizeof *f->out);
        at += part->element_count;
    }
    return at == f->count;
}

static bool fold_slice(folding *f) {
    uint32_t n;
    const uir_dim *starts = uir_node_dims(f->module, f->node, "starts", &n);
    if (!n) return fold_same(f); /* rank 0 */
    int64_t start, step = uir_node_ints(f->module, f->node, "steps", &n)[0];
    if (!uir_dim_is_const(f->dims, starts[0], &start) || !uir_slice_fits(start, f->count, step, f->a->element_count))
        return false;
    for (uint32_t i = 0; i < f->count; i++) f->out[i] = f->a->elements[start + (int64_t)i * step];
    return true;
}

static bool fold_gather(folding *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        int64_t index;
        if (i >= f->b->element_count || !uir_dim_is_const(f->dims, f->b->elements[i], &index) || index < 0 ||
            index >= f->a->element_count)
            return false;
        f->out[i] = f->a->elements[index];
    }
    return true;
}

static bool fold_iota(folding *f) {
    for (uint32_t i = 0; i < f->count; i++) f->out[i] = constant(f, i);
    return true;
}

static bool fold_dim_values(folding *f) {
    uint32_t n;
    const uir_dim *dims = uir_node_dims(f->module, f->node, "dims", &n);
    if (n != f->count) return false;
    if (n) memcpy(f->out, dims, n * sizeof *dims);
    return true;
}

/* ---- reductions of everything ---- */

static bool fold_reduce(folding *f, int64_t start, uir_dim (*apply)(folding *f, uir_dim a, uir_dim b)) {
    uint32_t axes;
    uir_node_ints(f->module, f->node, "axes", &axes);
    if (!axes) return fold_same(f);
    if (f->count != 1) return false;
    f->out[0] = f->a->element_count ? f->a->elements[0] : constant(f, start);
    for (uint32_t i = 1; i < f->a->element_count; i++) f->out[0] = apply(f, f->out[0], f->a->elements[i]);
    return true;
}

static bool fold_reduce_sum(folding *f) {
    return fold_reduce(f, 0, apply_add);
}
static bool fold_reduce_prod(folding *f) {
    return fold_reduce(f, 1, apply_mul);
}
static bool fold_reduce_min(folding *f) {
    return f->a->element_count && fold_reduce(f, 0, apply_min);
}
static bool fold_reduce_max(folding *f) {
    return f->a->element_count && fold_reduce(f, 0, apply_max);
}

static const fold_function functions[UIR_OP_COUNT] = {
    [UIR_OP_ADD] = fold_add,
    [UIR_OP_SUB] = fold_sub,
    [UIR_OP_MUL] = fold_mul,
    [UIR_OP_DIV] = fold_div,
    [UIR_OP_MOD] = fold_mod,
    [UIR_OP_MIN] = fold_min,
    [UIR_OP_MAX] = fold_max,
    [UIR_OP_EQ] = fold_eq,
    [UIR_OP_NE] = fold_ne,
    [UIR_OP_LT] = fold_lt,
    [UIR_OP_LE] = fold_le,
    [UIR_OP_GT] = fold_gt,
    [UIR_OP_GE] = fold_ge,
    [UIR_OP_NEG] = fold_neg,
    [UIR_OP_NOT] = fold_not,
    [UIR_OP_SELECT] = fold_select,
    [UIR_OP_CAST] = fold_same,
    [UIR_OP_RESHAPE] = fold_same,
    [UIR_OP_BROADCAST] = fold_broadcast,
    [UIR_OP_CONCAT] = fold_concat,
    [UIR_OP_SLICE] = fold_slice,
    [UIR_OP_GATHER] = fold_gather,
    [UIR_OP_IOTA] = fold_iota,
    [UIR_OP_DIM_VALUES] = fold_dim_values,
    [UIR_OP_REDUCE_SUM] = fold_reduce_sum,
    [UIR_OP_REDUCE_PROD] = fold_reduce_prod,
    [UIR_OP_REDUCE_MIN] = fold_reduce_min,
    [UIR_OP_REDUCE_MAX] = fold_reduce_max,
};

/* Whether the dtype holds every value that the dim may have, so that no wrapping is lost. */
static bool fits(folding *f, uir_dim dim, uir_dtype dtype) {
    int64_t min, max;
    if (dtype == UIR_DTYPE_I64) return true; /* dims are 64-bit themselves */
    uir_dim_bounds(f->dims, dim, &min, &max);
    if (dtype == UIR_DTYPE_BOOL) return min >= 0 && max <= 1;
    if (min < uir_dtype_integer_min(dtype)) return false;
    if (max == INT64_MAX) /* a size of which nothing is known: no tensor has 2^31 of them along an axis that is i32 */
        return uir_dtype_bits(dtype) >= 32 && min >= 0;
    return max < 0 || (uint64_t)max <= uir_dtype_integer_max(dtype);
}

uir_status uir_infer_elements(uir_module *module, uir_node_id node_id) {
    const uir_node_info *node = uir_node_get(module, node_id);
    fold_function fold = functions[node->op];
    if (!fold || node->output_count != 1 || node->input_count > MAX_ELEMENTS) return UIR_STATUS_OK;
    const uir_type *type = uir_value_type(module, node->outputs[0]);
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known || type->rank > 1 ||
        (!uir_dtype_is_integer(type->dtype) && type->dtype != UIR_DTYPE_BOOL))
        return UIR_STATUS_OK;
    int64_t count = 1;
    if (type->rank && (!uir_dim_is_const(module->dims, type->dims[0], &count) || count < 0 || count > MAX_ELEMENTS))
        return UIR_STATUS_OK;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!uir_value_info_get(module, node->inputs[i])->elements_known) return UIR_STATUS_OK;
    folding f = {.module = module, .dims = module->dims, .node = node, .count = (uint32_t)count};
    if (node->input_count > 0) f.a = uir_value_info_get(module, node->inputs[0]);
    if (node->input_count > 1) f.b = uir_value_info_get(module, node->inputs[1]);
    if (node->input_count > 2) f.c = uir_value_info_get(module, node->inputs[2]);
    if (uir_op_get_row(node->op)->traits & UIR_TRAIT_ELEMENTWISE)
        for (uint32_t i = 0; i < node->input_count; i++)
            if (uir_value_info_get(module, node->inputs[i])->element_count != f.count) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(f.out, uir_arena_allocate_array(&module->arena, (size_t)count + 1, sizeof *f.out));
    if (!fold(&f)) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < f.count; i++)
        if (!f.out[i].id || !fits(&f, f.out[i], type->dtype)) return UIR_STATUS_OK;
    uir_value_info *output = uir_value_info_get(module, node->outputs[0]);
    output->elements = f.out;
    output->element_count = f.count;
    output->elements_known = true;
    return UIR_STATUS_OK;
}
