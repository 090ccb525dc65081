/* The generator: a table of makers, each of which adds one op on operands from the pool or gives up. */
#include "tests/ir/graph/random_graph_pool.h"

static uir_dim constant(generator *g, int64_t value) {
    return uir_dim_const(module_of(g)->dims, value);
}

static bool equal(generator *g, uir_dim a, uir_dim b) {
    return uir_dim_equal(a, b) || uir_dim_compare(module_of(g)->dims, a, UIR_RELATION_EQ, b) == UIR_TRUE;
}

static bool is_number(generator *g, uir_dim dim, int64_t *out_value) {
    return uir_dim_is_const(module_of(g)->dims, dim, out_value);
}

/* Whether the extents broadcast in every binding: the first and the last size do. */
static bool broadcasts(generator *g, uir_dim a, uir_dim b) {
    int64_t n;
    if (equal(g, a, b) || (is_number(g, a, &n) && n == 1) || (is_number(g, b, &n) && n == 1)) return true;
    uir_dim first = g->sizes[0], last = g->sizes[SIZE_COUNT - 1];
    return (uir_dim_equal(a, first) && uir_dim_equal(b, last)) || (uir_dim_equal(a, last) && uir_dim_equal(b, first));
}

static bool shapes_broadcast(generator *g, uir_value_id a, uir_value_id b) {
    const uir_type *s = type_of(g, a), *t = type_of(g, b);
    for (uint32_t d = 0; d < s->rank && d < t->rank; d++)
        if (!broadcasts(g, s->dims[s->rank - 1 - d], t->dims[t->rank - 1 - d])) return false;
    return true;
}

static uir_dtype random_dtype(generator *g) {
    static const uir_dtype common[] = {UIR_DTYPE_F32, UIR_DTYPE_F32, UIR_DTYPE_I64, UIR_DTYPE_BOOL, UIR_DTYPE_I32};
    static const uir_dtype all[] = {
        UIR_DTYPE_F64,    UIR_DTYPE_F16,        UIR_DTYPE_BF16,   UIR_DTYPE_U8,         UIR_DTYPE_I8, UIR_DTYPE_U16,
        UIR_DTYPE_I16,    UIR_DTYPE_U32,        UIR_DTYPE_U64,    UIR_DTYPE_STRING,     UIR_DTYPE_U4, UIR_DTYPE_I4,
        UIR_DTYPE_F8E5M2, UIR_DTYPE_F8E4M3FN,   UIR_DTYPE_F4E2M1, UIR_DTYPE_F8E4M3FNUZ, UIR_DTYPE_U2, UIR_DTYPE_I2,
        UIR_DTYPE_F8E8M0, UIR_DTYPE_F8E5M2FNUZ, UIR_DTYPE_C64,
    };
    if (chance(g, 60)) return common[pick(g, 0, 4)];
    return all[pick(g, 0, (int64_t)(sizeof all / sizeof *all) - 1)];
}

static uir_dim random_extent(generator *g) {
    static const int64_t numbers[] = {0, 1, 1, 2, 3, 4, 5, 7};
    if (g->short_axes && chance(g, 70)) return constant(g, pick(g, 1, 5));
    return chance(g, 50) ? g->sizes[pick(g, 0, SIZE_COUNT - 1)] : constant(g, numbers[pick(g, 0, 7)]);
}

static uint32_t random_dims(generator *g, uir_dim *dims) {
    uint32_t rank = (uint32_t)pick(g, 0, 4);
    for (uint32_t d = 0; d < rank; d++) dims[d] = random_extent(g);
    return rank;
}

/* ---- tensors ---- */

static void make_constant(generator *g) {
    int64_t shape[3];
    uint32_t rank = (uint32_t)pick(g, 0, 3);
    for (uint32_t d = 0; d < rank; d++) shape[d] = chance(g, 12) ? 0 : pick(g, 1, 5);
    add(g, uir_build_constant(&g->f->builder,
                              random_tensor(&g->random, module_of(g)->allocator, random_dtype(g), rank, shape)));
}

static void make_iota(generator *g) {
    uir_dim dims[4];
    uint32_t rank = random_dims(g, dims);
    static const uir_dtype dtypes[] = {UIR_DTYPE_F32, UIR_DTYPE_I64, UIR_DTYPE_I32, UIR_DTYPE_U8, UIR_DTYPE_F64};
    if (rank) add(g, uir_build_iota(&g->f->builder, dtypes[pick(g, 0, 4)], dims, rank, pick(g, 0, rank - 1)));
}

static void make_dim_values(generator *g) {
    uir_dim dims[4];
    uint32_t rank = random_dims(g, dims);
    bool scalar = rank == 1 && chance(g, 50);
    add(g, uir_build_dim_values(&g->f->builder, dims, rank, scalar, chance(g, 70) ? UIR_DTYPE_I64 : UIR_DTYPE_I32));
}

/* ---- elementwise: any row of the table ---- */

static uir_op random_op(generator *g, uint32_t trait) {
    for (;;) {
        uir_op op = (uir_op)pick(g, 1, UIR_OP_COUNT - 1);
        const uir_op_row *row = uir_op_get_row(op);
        if (row->section == UIR_SECTION_PRIMITIVE && row->traits & trait && op != UIR_OP_CAST &&
            op != UIR_OP_BIT_CAST && op != UIR_OP_IS_INF)
            return op;
    }
}

static void make_unary(generator *g) {
    uir_op op = random_op(g, UIR_TRAIT_UNARY);
    uir_value_id a = any_of(g, uir_op_get_row(op)->dtypes);
    if (a.id) add(g, uir_build_unary(&g->f->builder, op, a));
}

static void make_is_inf(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_FLOAT), result;
    if (!a.id) return;
    uir_attribute attributes[] = {uir_attribute_int(&g->f->builder, "positive", pick(g, 0, 1)),
                                  uir_attribute_int(&g->f->builder, "negative", pick(g, 0, 1))};
    uir_build_node(&g->f->builder, UIR_OP_IS_INF, &a, 1, attributes, 2, &result, 1);
    add(g, result);
}

/* A second operand of the same element type that broadcasts, or the operand itself. */
static uir_value_id partner(generator *g, uir_value_id a) {
    for (int i = 0; i < 20; i++) {
        uir_value_id b = any(g);
        if (type_of(g, b)->dtype == type_of(g, a)->dtype && shapes_broadcast(g, a, b)) return b;
    }
    return a;
}

static void make_binary(generator *g) {
    uir_op op = random_op(g, UIR_TRAIT_BINARY);
    uir_value_id a = any_of(g, uir_op_get_row(op)->dtypes);
    if (!a.id) return;
    uir_value_id b = partner(g, a);
    add(g, chance(g, 50) ? uir_build_binary(&g->f->builder, op, a, b) : uir_build_binary(&g->f->builder, op, b, a));
}

static void make_select(generator *g) {
    uir_value_id c = any_of(g, UIR_DTYPES_BOOL), a = any(g), b = partner(g, a);
    if (c.id && shapes_broadcast(g, c, a) && shapes_broadcast(g, c, b))
        add(g, uir_build_select(&g->f->builder, c, a, b));
}

static void make_cast(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_REAL);
    uir_dtype to = random_dtype(g);
    if (a.id && UIR_DTYPES_REAL >> uir_dtype_get_class(to) & 1) add(g, uir_build_cast(&g->f->builder, a, to));
}

static void make_bit_cast(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_NUMBER), result;
    uir_dtype to = random_dtype(g);
    if (!a.id || !(UIR_DTYPES_NUMBER >> uir_dtype_get_class(to) & 1) ||
        uir_dtype_bits(to) != uir_dtype_bits(type_of(g, a)->dtype))
        return;
    uir_attribute attribute = uir_attribute_dtype(&g->f->builder, "to", to);
    uir_build_node(&g->f->builder, UIR_OP_BIT_CAST, &a, 1, &attribute, 1, &result, 1);
    add(g, result);
}

/* ---- reductions ---- */

static void make_reduce(generator *g) {
    static const uir_op ops[] = {UIR_OP_REDUCE_SUM, UIR_OP_REDUCE_PROD, UIR_OP_REDUCE_MAX, UIR_OP_REDUCE_MIN};
    uir_op op = ops[pick(g, 0, 3)];
    uir_value_id a = any_of(g, uir_op_get_row(op)->dtypes);
    if (!a.id) return;
    int64_t axes[UIR_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < type_of(g, a)->rank; d++)
        if (chance(g, 50)) axes[count++] = d;
    add(g, uir_build_reduce(&g->f->builder, op, a, axes, count, chance(g, 50)));
}

/* An axis that has elements in every binding; -1 when there is none. */
static int64_t full_axis(generator *g, uir_value_id a) {
    const uir_type *type = type_of(g, a);
    for (int i = 0; i < 6 && type->rank; i++) {
        int64_t axis = pick(g, 0, type->rank - 1), extent;
        if (is_number(g, type->dims[axis], &extent) && extent > 0) return axis;
    }
    return -1;
}

static void make_arg(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_REAL), result;
    int64_t axis = a.id ? full_axis(g, a) : -1;
    if (axis < 0) return;
    uir_attribute attributes[] = {uir_attribute_int(&g->f->builder, "axis", axis),
                                  uir_attribute_int(&g->f->builder, "keep", pick(g, 0, 1)),
                                  uir_attribute_int(&g->f->builder, "last", pick(g, 0, 1))};
    uir_build_node(&g->f->builder, chance(g, 50) ? UIR_OP_ARG_MAX : UIR_OP_ARG_MIN, &a, 1, attributes, 3, &result, 1);
    add(g, result);
}

static void make_scan(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_NUMBER), result;
    if (!a.id || !type_of(g, a)->rank) return;
    uir_attribute attributes[] = {uir_attribute_int(&g->f->builder, "axis", pick(g, 0, type_of(g, a)->rank - 1)),
                                  uir_attribute_int(&g->f->builder, "exclusive", pick(g, 0, 1)),
                                  uir_attribute_int(&g->f->builder, "reverse", pick(g, 0, 1))};
    uir_build_node(&g->f->builder, chance(g, 50) ? UIR_OP_SCAN_SUM : UIR_OP_SCAN_PROD, &a, 1, attributes, 3, &result,
                   1);
    add(g, result);
}

/* ---- movement ---- */

static void make_broadcast(generator *g) {
    uir_value_id a = any(g);
    uir_dim dims[6];
    const uir_type *type = type_of(g, a);
    uint32_t extra = (uint32_t)pick(g, 0, 2);
    int64_t extent;
    if (type->rank + extra > 5) return;
    for (uint32_t d = 0; d < extra; d++) dims[d] = random_extent(g);
    for (uint32_t d = 0; d < type->rank; d++)
        dims[d + extra] =
            is_number(g, type->dims[d], &extent) && extent == 1 && chance(g, 70) ? random_extent(g) : type->dims[d];
    add(g, uir_build_broadcast(&g->f->builder, a, dims, type->rank + extra));
}

static void make_reshape(generator *g) {
    uir_value_id a = any(g);
    const uir_type *type = type_of(g, a);
    uir_dims *context = module_of(g)->dims;
    uir_dim dims[UIR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < type->rank; d++) {
        int64_t extent;
        if (chance(g, 20)) dims[rank++] = constant(g, 1);
        if (rank && chance(g, 30)) {
            dims[rank - 1] = uir_dim_mul(context, dims[rank - 1], type->dims[d]);
        } else if (is_number(g, type->dims[d], &extent) && extent > 2 && extent % 2 == 0 && chance(g, 50)) {
            dims[rank++] = constant(g, 2);
            dims[rank++] = constant(g, extent / 2);
        } else {
            dims[rank++] = type->dims[d];
        }
        if (rank > 6) return;
    }
    if (chance(g, 20)) dims[rank++] = constant(g, 1);
    add(g, uir_build_reshape(&g->f->builder, a, dims, rank));
}

static void make_transpose(generator *g) {
    uir_value_id a = any(g);
    uint32_t rank = type_of(g, a)->rank;
    int64_t perm[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    for (uint32_t d = rank; d > 1; d--) {
        int64_t other = pick(g, 0, d - 1), kept = perm[d - 1];
        perm[d - 1] = perm[other];
        perm[other] = kept;
    }
    add(g, uir_build_transpose(&g->f->builder, a, perm));
}

static void make_slice(generator *g) {
    uir_value_id a = any(g);
    const uir_type *type = type_of(g, a);
    uir_dims *context = module_of(g)->dims;
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK], extent;
    for (uint32_t d = 0; d < type->rank; d++) {
        starts[d] = constant(g, 0);
        sizes[d] = type->dims[d];
        steps[d] = 1;
        if (chance(g, 40)) continue;
        if (is_number(g, type->dims[d], &extent)) {
            int64_t start = extent ? pick(g, 0, extent - 1) : 0;
            bool back = chance(g, 40);
            int64_t step = pick(g, 1, 3), room = !extent ? 0
                                                 : back  ? start / step + 1
                                                         : (extent - 1 - start) / step + 1;
            starts[d] = constant(g, start);
            sizes[d] = constant(g, pick(g, 0, room));
            steps[d] = back ? -step : step;
        } else if (chance(g, 50)) { /* the second half */
            sizes[d] = uir_dim_floordiv(context, type->dims[d], constant(g, 2));
            starts[d] = uir_dim_sub(context, type->dims[d], sizes[d]);
        } else { /* backwards; of an empty axis nothing is taken */
            starts[d] = uir_dim_sub(context, type->dims[d], constant(g, 1));
            steps[d] = -1;
        }
    }
    add(g, uir_build_slice(&g->f->builder, a, starts, sizes, steps));
}

static void make_pad(generator *g) {
    uir_value_id a = any(g);
    const uir_type *type = type_of(g, a);
    uir_dim low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    int64_t interior[UIR_MAX_RANK], extent;
    for (uint32_t d = 0; d < type->rank; d++) {
        bool cut = is_number(g, type->dims[d], &extent) && extent > 1;
        low[d] = constant(g, pick(g, cut ? -1 : 0, 2));
        high[d] = chance(g, 20) ? g->sizes[1] : constant(g, pick(g, 0, 2));
        interior[d] = chance(g, 20) ? pick(g, 1, 2) : 0;
    }
    int64_t none = 0;
    uir_tensor *value = random_tensor(&g->random, module_of(g)->allocator, type->dtype, 0, &none);
    add(g, uir_build_pad(&g->f->builder, a, uir_build_constant(&g->f->builder, value), low, high, interior));
}

static void make_windows(generator *g) {
    uir_value_id a = any(g);
    const uir_type *type = type_of(g, a);
    uint32_t rank = type->rank, count = (uint32_t)pick(g, 0, 2);
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK], axes[2], window[2], dilations[2];
    if (!rank || rank > 3 || !(UIR_DTYPES_NUMBER >> uir_dtype_get_class(type->dtype) & 1)) return;
    for (uint32_t d = 0; d < rank; d++) {
        bool kept = chance(g, 40);
        starts[d] = constant(g, kept ? 0 : pick(g, -3, 3));
        sizes[d] = kept || chance(g, 30) ? type->dims[d] : constant(g, pick(g, 0, 5));
        steps[d] = kept ? 1 : pick(g, 1, 3);
    }
    for (uint32_t j = 0; j < count; j++) {
        axes[j] = pick(g, 0, rank - 1);
        window[j] = pick(g, chance(g, 10) ? 0 : 1, 3);
        dilations[j] = pick(g, -2, 2);
    }
    add(g, uir_build_windows(&g->f->builder, a, starts, sizes, steps, axes, window, dilations, count));
}

static void make_concat(generator *g) {
    uir_value_id a = any(g), parts[3] = {a, a, a};
    const uir_type *type = type_of(g, a);
    if (!type->rank) return;
    int64_t axis = pick(g, 0, type->rank - 1);
    for (int k = 1; k < 3; k++) {
        for (int i = 0; i < 10; i++) {
            uir_value_id b = any(g);
            const uir_type *other = type_of(g, b);
            bool fits = other->dtype == type->dtype && other->rank == type->rank;
            for (uint32_t d = 0; fits && d < type->rank; d++)
                fits = d == axis || uir_dim_equal(type->dims[d], other->dims[d]);
            if (fits) parts[k] = b;
        }
    }
    add(g, uir_build_concat(&g->f->builder, parts, (uint32_t)pick(g, 2, 3), axis));
}

/* Indices below an extent, of a shape: an iota of the extent when the shape is [extent], else constants below a known
 * one. */
static uir_value_id make_indices(generator *g, uir_dim extent, const uir_dim *dims, uint32_t rank) {
    int64_t limit, shape[UIR_MAX_RANK], none = 0;
    bool known = is_number(g, extent, &limit);
    bool fixed = known;
    for (uint32_t d = 0; d < rank; d++) fixed = fixed && is_number(g, dims[d], &shape[d]);
    uir_dtype dtype = chance(g, 70) ? UIR_DTYPE_I64 : UIR_DTYPE_I32;
    if (fixed && limit > 0) {
        uir_tensor *tensor;
        assert_int_equal(uir_tensor_create(module_of(g)->allocator, dtype, rank, rank ? shape : &none, &tensor), 0);
        for (uint64_t i = 0; i < tensor->element_count; i++)
            uir_dtype_store_integer(dtype, tensor->data, i, pick(g, 0, limit - 1), false, UIR_ROUND_NEAREST_EVEN);
        return uir_build_constant(&g->f->builder, tensor);
    }
    for (uint32_t d = 0; d < rank; d++)
        if (equal(g, dims[d], extent)) return uir_build_iota(&g->f->builder, dtype, dims, rank, d);
    return (uir_value_id){0};
}

static void make_gather(generator *g) {
    uir_value_id data = any(g);
    const uir_type *type = type_of(g, data);
    if (!type->rank) return;
    int64_t axis = pick(g, 0, type->rank - 1);
    uir_dim dims[2];
    uint32_t rank = (uint32_t)pick(g, 0, 2);
    if (type->rank - 1 + rank > 6) return;
    for (uint32_t d = 0; d < rank; d++) dims[d] = chance(g, 50) ? type->dims[axis] : constant(g, pick(g, 0, 3));
    uir_value_id indices = make_indices(g, type->dims[axis], dims, rank);
    if (indices.id) add(g, uir_build_gather(&g->f->builder, data, indices, axis));
}

static uir_value_id build_two(generator *g, uir_op op, const uir_value_id *inputs, uint32_t count,
                              const uir_attribute *attributes, uint32_t attribute_count) {
    uir_value_id result;
    uir_build_node(&g->f->builder, op, inputs, count, attributes, attribute_count, &result, 1);
    return result;
}

static void make_elements(generator *g) {
    uir_value_id data = any(g);
    uir_type type = *type_of(g, data);
    if (!type.rank) return;
    int64_t axis = pick(g, 0, type.rank - 1);
    uir_value_id indices = make_indices(g, type.dims[axis], type.dims, type.rank);
    if (!indices.id) return;
    uir_attribute at = uir_attribute_int(&g->f->builder, "axis", axis);
    if (chance(g, 50)) {
        add(g, build_two(g, UIR_OP_GATHER_ELEMENTS, (uir_value_id[]){data, indices}, 2, &at, 1));
        return;
    }
    static const char *const reductions[] = {"none", "add", "mul", "min", "max"};
    const char *reduction = has_class(g, data, UIR_DTYPES_REAL) ? reductions[pick(g, 0, 4)] : "none";
    uir_attribute attributes[] = {at, uir_attribute_string(&g->f->builder, "reduction", reduction)};
    add(g, build_two(g, UIR_OP_SCATTER_ELEMENTS, (uir_value_id[]){data, indices, data}, 3, attributes, 2));
}

static void make_nd(generator *g) {
    uir_value_id data = any(g);
    uir_type type = *type_of(g, data);
    int64_t extent;
    if (!type.rank || !is_number(g, type.dims[0], &extent) || extent < 1) return;
    uir_dim dims[2] = {constant(g, pick(g, 0, 3)), constant(g, 1)};
    uir_value_id indices = make_indices(g, type.dims[0], dims, 2);
    uir_attribute batch = uir_attribute_int(&g->f->builder, "batch", 0);
    uir_value_id rows = build_two(g, UIR_OP_GATHER_ND, (uir_value_id[]){data, indices}, 2, &batch, 1);
    if (g->f->builder.status != UIR_STATUS_OK) return;
    add(g, rows);
    uir_attribute reduction = uir_attribute_string(
        &g->f->builder, "reduction", has_class(g, data, UIR_DTYPES_REAL) && chance(g, 50) ? "add" : "none");
    add(g, build_two(g, UIR_OP_SCATTER_ND, (uir_value_id[]){data, indices, rows}, 3, &reduction, 1));
}

/* ---- contractions and windows ---- */

static uir_dtype accumulator(generator *g, uir_value_id a) {
    uir_dtype dtype = type_of(g, a)->dtype;
    if (uir_dtype_is_float(dtype)) return chance(g, 70) ? dtype : chance(g, 50) ? UIR_DTYPE_F32 : UIR_DTYPE_F64;
    return chance(g, 70) ? UIR_DTYPE_I32 : UIR_DTYPE_I64;
}

static void make_matmul(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_NUMBER);
    if (!a.id || type_of(g, a)->rank < 2) return;
    uint32_t rank = type_of(g, a)->rank;
    int64_t perm[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    g->has_product = true;
    add(g, uir_build_matmul(&g->f->builder, a, uir_build_transpose(&g->f->builder, a, perm), accumulator(g, a)));
}

static void make_window(generator *g) {
    uir_value_id x = any_of(g, UIR_DTYPES_NUMBER);
    if (!x.id) return;
    uir_type type = *type_of(g, x);
    if (type.rank < 3 || type.rank > 5) return;
    uint32_t spatial = type.rank - 2;
    int64_t strides[3], dilations[3], kernel[5], channels;
    uir_dim low[3], high[3], window[3];
    for (uint32_t d = 0; d < spatial; d++) {
        strides[d] = pick(g, 1, 2);
        dilations[d] = pick(g, 1, 2);
        kernel[d + 2] = pick(g, 1, 3);
        window[d] = constant(g, kernel[d + 2]);
        int64_t reach = (kernel[d + 2] - 1) * dilations[d]; /* so much padding that a window always fits */
        low[d] = constant(g, pick(g, 0, reach));
        high[d] = constant(g, reach + 1);
    }
    uir_builder *b = &g->f->builder;
    uir_attribute shared[6] = {uir_attribute_ints(b, "strides", strides, spatial),
                               uir_attribute_ints(b, "dilations", dilations, spatial),
                               uir_attribute_dims(b, "low", low, spatial), uir_attribute_dims(b, "high", high, spatial),
                               uir_attribute_dims(b, "window", window, spatial)};
    if (chance(g, 50)) {
        add(g, build_two(g, chance(g, 50) ? UIR_OP_WINDOW_SUM : UIR_OP_WINDOW_MAX, &x, 1, shared, 5));
        return;
    }
    if (!is_number(g, type.dims[1], &channels) || !channels) return;
    int64_t groups = chance(g, 50) ? 1 : channels;
    kernel[0] = groups * pick(g, 1, chance(g, 20) ? 9 : 2);
    kernel[1] = channels / groups;
    uir_tensor *filters = random_tensor(&g->random, module_of(g)->allocator, type.dtype, type.rank, kernel);
    uir_value_id inputs[2] = {x, uir_build_constant(b, filters)};
    shared[4] = uir_attribute_int(b, "groups", groups);
    shared[5] = uir_attribute_dtype(b, "to", accumulator(g, x));
    g->has_product = true;
    add(g, build_two(g, UIR_OP_CONV, inputs, 2, shared, 6));
}

/* ---- host ops and run-time sizes ---- */

static void make_top_k(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_NUMBER), results[2];
    if (!a.id || !type_of(g, a)->rank) return;
    uir_type type = *type_of(g, a);
    int64_t axis = pick(g, 0, type.rank - 1), extent;
    uir_dim k = type.dims[axis];
    if (is_number(g, k, &extent))
        k = constant(g, pick(g, 0, extent));
    else if (chance(g, 50))
        k = uir_dim_ceildiv(module_of(g)->dims, k, constant(g, 2));
    uir_builder *b = &g->f->builder;
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", axis), uir_attribute_dims(b, "k", &k, 1),
                                  uir_attribute_int(b, "largest", pick(g, 0, 1)),
                                  uir_attribute_int(b, "sorted", pick(g, 0, 1))};
    uir_build_node(b, UIR_OP_TOP_K, &a, 1, attributes, 4, results, 2);
    add(g, results[0]);
    add(g, results[1]);
}

static void make_non_zero(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_REAL);
    if (a.id) add(g, build_two(g, UIR_OP_NON_ZERO, &a, 1, NULL, 0));
}

static void make_unique(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_REAL | 1u << UIR_DTYPE_CLASS_STRING), results[4];
    if (!a.id) return;
    uint32_t rank = type_of(g, a)->rank;
    uir_builder *b = &g->f->builder;
    uir_attribute attributes[] = {uir_attribute_int(b, "sorted", pick(g, 0, 1)),
                                  uir_attribute_int(b, "axis", rank ? pick(g, 0, rank - 1) : 0)};
    uir_build_node(b, UIR_OP_UNIQUE, &a, 1, attributes, rank && chance(g, 50) ? 2 : 1, results, 4);
    for (int i = 0; i < 4; i++) add(g, results[i]);
}

/* Sizes read from data: an iota or a reshape of a run-time extent. */
static void make_bound(generator *g) {
    uir_value_id shape = any_of(g, UIR_DTYPES_SIGNED);
    int64_t extent, one = 1;
    if (!shape.id) return;
    const uir_type *type = type_of(g, shape);
    if (type->rank != 1 || !is_number(g, type->dims[0], &extent) || extent < 1 || extent > 3) return;
    uir_builder *b = &g->f->builder;
    uir_value_id least = uir_build_integers(b, type->dtype, &(int64_t){0}, 1);
    uir_value_id most = uir_build_integers(b, type->dtype, &(int64_t){4}, one);
    uir_value_id sizes = uir_build_binary(b, UIR_OP_MIN, uir_build_binary(b, UIR_OP_MAX, shape, least), most);
    uint32_t count;
    const uir_dim *dims = uir_build_value_as_dims(b, sizes, 0, &count);
    if (dims && count) add(g, uir_build_iota(b, UIR_DTYPE_F32, dims, count, 0));
}

/* ---- sequences ---- */

static void make_sequence(generator *g) {
    uir_value_id a = any(g), list, again, length, result;
    uir_builder *b = &g->f->builder;
    uir_build_node(b, UIR_OP_SEQUENCE_CONSTRUCT, (uir_value_id[]){a, a}, 2, NULL, 0, &list, 1);
    uir_build_node(b, UIR_OP_SEQUENCE_INSERT, (uir_value_id[]){list, partner(g, a)}, 2, NULL, 0, &again, 1);
    uir_build_node(b, UIR_OP_SEQUENCE_LENGTH, &again, 1, NULL, 0, &length, 1);
    uir_value_id at = uir_build_integer_scalar(b, UIR_DTYPE_I64, pick(g, -3, 2));
    uir_build_node(b, UIR_OP_SEQUENCE_AT, (uir_value_id[]){again, at}, 2, NULL, 0, &result, 1);
    add(g, length);
    add(g, result);
}

/* ---- the whole ---- */

typedef struct maker {
    void (*make)(generator *g);
    int weight;
    bool simple; /* leaves sizes known and control straight */
    int along;   /* weight beside that where axes are short */
} maker;

static const maker makers[] = {
    {make_constant, 6, true, 0},  {make_iota, 4, true, 0},      {make_dim_values, 4, true, 0},
    {make_unary, 12, true, 0},    {make_is_inf, 1, true, 0},    {make_binary, 20, true, 0},
    {make_select, 6, true, 0},    {make_cast, 8, true, 0},      {make_bit_cast, 2, true, 0},
    {make_reduce, 8, true, 8},    {make_arg, 4, true, 6},       {make_scan, 4, true, 24},
    {make_broadcast, 8, true, 0}, {make_reshape, 8, true, 0},   {make_transpose, 6, true, 6},
    {make_slice, 8, true, 8},     {make_pad, 6, true, 6},       {make_concat, 6, true, 6},
    {make_windows, 5, true, 6},   {make_gather, 6, true, 4},    {make_elements, 5, true, 6},
    {make_nd, 4, true, 0},        {make_matmul, 5, true, 0},    {make_window, 6, true, 10},
    {make_top_k, 3, true, 0},     {make_non_zero, 2, false, 0}, {make_unique, 2, false, 0},
    {make_bound, 4, false, 0},    {make_if, 3, false, 0},       {make_loop, 3, false, 0},
    {make_sequence, 2, false, 0},
};

void make_one(generator *g) {
    int total = 0, count = (int)(sizeof makers / sizeof *makers);
    for (int i = 0; i < count; i++) total += makers[i].weight + (g->short_axes ? makers[i].along : 0);
    int64_t draw = pick(g, 0, total - 1);
    for (int i = 0; i < count; i++) {
        draw -= makers[i].weight + (g->short_axes ? makers[i].along : 0);
        if (draw >= 0) continue;
        if (!g->simple_only || makers[i].simple) makers[i].make(g);
        return;
    }
}

static void generate(generator *g, fixture *f, uint64_t seed, uint32_t nodes, bool short_axes) {
    static const char *const names[SIZE_COUNT] = {"N", "M", "K"};
    *g = (generator){
        .f = f, .random = {seed * 0x9e3779b97f4a7c15u + 1}, .simple_only = short_axes, .short_axes = short_axes};
    for (int i = 0; i < 8; i++) random_next(&g->random);
    for (int i = 0; i < SIZE_COUNT; i++) g->sizes[i] = make_size(f, names[i]);
    /* One input fixes all sizes; the others are of any shape. */
    add(g, add_input(f, "sizes", UIR_DTYPE_F32, g->sizes, SIZE_COUNT));
    for (int64_t i = pick(g, 1, 3); i > 0; i--) {
        uir_dim dims[4];
        char name[16];
        snprintf(name, sizeof name, "x%d", (int)i);
        uint32_t rank = random_dims(g, dims);
        add(g, add_input(f, name, random_dtype(g), dims, rank));
    }
    for (uint32_t n = 0; n < nodes && f->builder.status == UIR_STATUS_OK; n++) make_one(g);
    for (int64_t i = pick(g, 1, 4); i > 0; i--) add_output(f, any(g));
}

void generate_module(generator *g, fixture *f, uint64_t seed, uint32_t nodes) {
    generate(g, f, seed, nodes, false);
}

void generate_short_module(generator *g, fixture *f, uint64_t seed, uint32_t nodes) {
    generate(g, f, seed, nodes, true);
}
