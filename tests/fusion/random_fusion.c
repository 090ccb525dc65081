/* The generator: a table of makers, each of which adds a pattern on values of the pool or gives up. */
#include "tests/fusion/random_fusion.h"

static int64_t pick(fusion_generator *g, int64_t low, int64_t high) {
    return random_between(&g->random, low, high);
}
static bool chance(fusion_generator *g, int percent) {
    return pick(g, 1, 100) <= percent;
}
static uir_builder *b(fusion_generator *g) {
    return &g->f->builder;
}
static const uir_type *type_of(fusion_generator *g, uir_value_id v) {
    return uir_value_type(g->f->module, v);
}
static uir_dim fixed(fusion_generator *g, int64_t value) {
    return uir_dim_const(g->f->module->dims, value);
}

static uir_value_id add(fusion_generator *g, uir_value_id v) {
    if (b(g)->status == UIR_STATUS_OK && v.id && g->count < FUSION_POOL) g->pool[g->count++] = v;
    return v;
}

static uir_value_id any(fusion_generator *g) {
    uint32_t back = (uint32_t)pick(g, 0, pick(g, 0, g->count - 1));
    return g->pool[g->count - 1 - back];
}

static uir_value_id any_float(fusion_generator *g, uint32_t least_rank) {
    for (int i = 0; i < 30; i++) {
        uir_value_id v = any(g);
        if (type_of(g, v)->dtype == UIR_DTYPE_F32 && type_of(g, v)->rank >= least_rank) return v;
    }
    return (uir_value_id){0};
}

static uir_dim extent(fusion_generator *g) {
    static const int64_t numbers[] = {1, 1, 2, 4, 4, 4, 6};
    return chance(g, 45) ? g->sizes[pick(g, 0, 1)] : fixed(g, numbers[pick(g, 0, 6)]);
}

static bool is_number(fusion_generator *g, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(g->f->module->dims, dim, out);
}
static bool equal(fusion_generator *g, uir_dim x, uir_dim y) {
    return uir_dim_compare(g->f->module->dims, x, UIR_RELATION_EQ, y) == UIR_TRUE;
}
static bool one_of(fusion_generator *g, uir_dim dim) {
    int64_t value;
    return is_number(g, dim, &value) && value == 1;
}

/* A float value that broadcasts with `a`, made if need be. */
static uir_value_id partner(fusion_generator *g, uir_value_id a) {
    for (int i = 0; i < 12; i++) {
        uir_value_id v = any_float(g, 0);
        bool fits = v.id;
        for (uint32_t d = 0; fits && d < type_of(g, v)->rank && d < type_of(g, a)->rank; d++) {
            uir_dim x = type_of(g, v)->dims[type_of(g, v)->rank - 1 - d],
                    y = type_of(g, a)->dims[type_of(g, a)->rank - 1 - d];
            fits = equal(g, x, y) || one_of(g, x) || one_of(g, y);
        }
        if (fits && type_of(g, v)->rank <= 5) return v;
    }
    return uir_build_scalar(b(g), UIR_DTYPE_F32, (double)pick(g, -8, 8) / 4);
}

static uir_value_id binary(fusion_generator *g, uir_op op, uir_value_id x, uir_value_id y) {
    return uir_build_binary(b(g), op, x, y);
}
static uir_value_id scalar(fusion_generator *g, double value) {
    return uir_build_scalar(b(g), UIR_DTYPE_F32, value);
}

/* ---- single ops ---- */
static void make_unary(fusion_generator *g) {
    static const uir_op ops[] = {UIR_OP_NEG, UIR_OP_ABS, UIR_OP_TANH, UIR_OP_SIGMOID, UIR_OP_EXP, UIR_OP_FLOOR};
    uir_value_id a = any_float(g, 0);
    if (a.id) add(g, uir_build_unary(b(g), ops[pick(g, 0, 5)], a));
}

static void make_binary(fusion_generator *g) {
    static const uir_op ops[] = {UIR_OP_ADD, UIR_OP_SUB, UIR_OP_MUL, UIR_OP_MAX, UIR_OP_DIV};
    uir_value_id a = any_float(g, 0);
    if (!a.id) return;
    uir_value_id other = partner(g, a);
    add(g, chance(g, 50) ? binary(g, ops[pick(g, 0, 4)], a, other) : binary(g, ops[pick(g, 0, 4)], other, a));
}

/* x + f(x): a way around through f. */
static void make_diamond(fusion_generator *g) {
    uir_value_id a = any_float(g, 0);
    if (!a.id) return;
    uir_value_id t = uir_build_unary(b(g), UIR_OP_TANH, a), s = uir_build_unary(b(g), UIR_OP_ABS, a);
    add(g, t);
    add(g, binary(g, UIR_OP_ADD, binary(g, UIR_OP_MUL, a, t), s));
}

static void permute(fusion_generator *g, int64_t *perm, uint32_t rank) {
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    for (uint32_t d = rank; d > 1; d--) {
        int64_t other = pick(g, 0, d - 1), kept = perm[d - 1];
        perm[d - 1] = perm[other];
        perm[other] = kept;
    }
}

static void make_transpose(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    int64_t perm[UIR_MAX_RANK];
    if (!a.id) return;
    permute(g, perm, type_of(g, a)->rank);
    add(g, uir_build_transpose(b(g), a, perm));
}

/* x + transpose(x), where the extents agree. */
static void make_mirror(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    if (!a.id) return;
    uint32_t rank = type_of(g, a)->rank;
    if (!equal(g, type_of(g, a)->dims[rank - 1], type_of(g, a)->dims[rank - 2])) return;
    int64_t perm[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    perm[rank - 1] = rank - 2, perm[rank - 2] = rank - 1;
    add(g, binary(g, UIR_OP_ADD, a, uir_build_transpose(b(g), a, perm)));
}

static uir_value_id random_reshape(fusion_generator *g, uir_value_id a) {
    const uir_type *type = type_of(g, a);
    uir_dim dims[UIR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < type->rank; d++) {
        int64_t number;
        if (chance(g, 20)) dims[rank++] = fixed(g, 1);
        if (one_of(g, type->dims[d]) && chance(g, 50)) continue;
        if (rank && chance(g, 35)) {
            dims[rank - 1] = uir_dim_mul(g->f->module->dims, dims[rank - 1], type->dims[d]);
        } else if (is_number(g, type->dims[d], &number) && number > 2 && number % 2 == 0 && chance(g, 50)) {
            dims[rank++] = fixed(g, chance(g, 50) ? 2 : number / 2);
            dims[rank] = fixed(g, 0);
            is_number(g, dims[rank - 1], &number);
            int64_t whole;
            is_number(g, type->dims[d], &whole);
            dims[rank++] = fixed(g, whole / number);
        } else {
            dims[rank++] = type->dims[d];
        }
        if (rank > 5) return (uir_value_id){0};
    }
    return uir_build_reshape(b(g), a, dims, rank);
}

static void make_reshape(fusion_generator *g) {
    add(g, random_reshape(g, any(g)));
}

static void make_slice(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    const uir_type *type = type_of(g, a);
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK], number;
    for (uint32_t d = 0; d < type->rank; d++) {
        starts[d] = fixed(g, 0), sizes[d] = type->dims[d], steps[d] = 1;
        if (!is_number(g, type->dims[d], &number) || number < 2 || chance(g, 50)) continue;
        starts[d] = fixed(g, chance(g, 50) ? number / 2 : 0);
        sizes[d] = fixed(g, number / 2);
    }
    add(g, uir_build_slice(b(g), a, starts, sizes, steps));
}

static void make_windows(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    const uir_type *type = type_of(g, a);
    uint32_t count = (uint32_t)pick(g, 1, 2);
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK], axes[2], window[2], dilations[2];
    if (type->rank + count > 5) return;
    for (uint32_t d = 0; d < type->rank; d++) starts[d] = fixed(g, 0), sizes[d] = type->dims[d], steps[d] = 1;
    for (uint32_t j = 0; j < count; j++) {
        axes[j] = pick(g, 0, type->rank - 1);
        starts[axes[j]] = fixed(g, pick(g, -2, 1));
        steps[axes[j]] = pick(g, 1, 2);
        window[j] = pick(g, 1, 3);
        dilations[j] = pick(g, -1, 2);
    }
    add(g, uir_build_windows(b(g), a, starts, sizes, steps, axes, window, dilations, count));
}

static void make_concat(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    uint32_t axis = (uint32_t)pick(g, 0, type_of(g, a)->rank - 1);
    uir_value_id other = chance(g, 50) ? uir_build_unary(b(g), UIR_OP_NEG, a) : a, parts[2] = {other, a};
    add(g, uir_build_concat(b(g), parts, 2, axis));
}

static void make_pad(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    uir_dim low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    int64_t interior[UIR_MAX_RANK] = {0};
    for (uint32_t d = 0; d < type_of(g, a)->rank; d++)
        low[d] = fixed(g, pick(g, 0, 1)), high[d] = fixed(g, pick(g, 0, 2));
    add(g, uir_build_pad(b(g), a, scalar(g, 0.5), low, high, interior));
}

/* Rows by computed indices: an iota turned around, below the extent. */
static void make_gather(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    uint32_t axis = (uint32_t)pick(g, 0, type_of(g, a)->rank - 1);
    uir_dim along = type_of(g, a)->dims[axis];
    uir_value_id up = uir_build_iota(b(g), UIR_DTYPE_I64, &along, 1, 0);
    uir_value_id last = uir_build_dim_values(b(g), (uir_dim[]){uir_dim_sub(g->f->module->dims, along, fixed(g, 1))}, 1,
                                             true, UIR_DTYPE_I64);
    uir_value_id down = uir_build_binary(b(g), UIR_OP_SUB, last, up);
    uir_value_id rows = add(g, uir_build_gather(b(g), a, chance(g, 70) ? down : up, axis));
    if (chance(g, 60)) add(g, binary(g, UIR_OP_ADD, rows, uir_build_unary(b(g), UIR_OP_ABS, rows)));
}

static void make_iota(fusion_generator *g) {
    uir_dim dims[3];
    uint32_t rank = (uint32_t)pick(g, 1, 3);
    for (uint32_t d = 0; d < rank; d++) dims[d] = extent(g);
    add(g, uir_build_iota(b(g), UIR_DTYPE_F32, dims, rank, pick(g, 0, rank - 1)));
}

static void make_scan(fusion_generator *g) {
    uir_value_id a = any_float(g, 1), result;
    if (!a.id) return;
    uir_attribute attributes[] = {uir_attribute_int(b(g), "axis", pick(g, 0, type_of(g, a)->rank - 1)),
                                  uir_attribute_int(b(g), "exclusive", 0), uir_attribute_int(b(g), "reverse", 0)};
    uir_build_node(b(g), UIR_OP_SCAN_SUM, &a, 1, attributes, 3, &result, 1);
    add(g, result);
}

/* ---- reductions ---- */
static uint32_t random_axes(fusion_generator *g, uint32_t rank, int64_t *axes) {
    uint32_t count = 0;
    if (chance(g, 60)) return axes[0] = rank - 1, 1;
    for (uint32_t d = 0; d < rank; d++)
        if (chance(g, 45)) axes[count++] = d;
    return count;
}

static void make_reduce(fusion_generator *g) {
    static const uir_op ops[] = {UIR_OP_REDUCE_SUM, UIR_OP_REDUCE_MAX, UIR_OP_REDUCE_MIN};
    uir_value_id a = any_float(g, chance(g, 90));
    int64_t axes[UIR_MAX_RANK];
    if (!a.id) return;
    if (chance(g, 25)) a = random_reshape(g, a);
    if (!a.id) return;
    uint32_t count = random_axes(g, type_of(g, a)->rank, axes);
    if (!type_of(g, a)->rank) count = 0;
    uir_value_id r = uir_build_reduce(b(g), ops[pick(g, 0, 2)], a, axes, count, chance(g, 60));
    if (r.id && chance(g, 25)) r = random_reshape(g, r);
    add(g, r);
}

/* Where the greatest or least is, along an axis that surely has elements; of what is computed, and read by what
 * follows. */
static void make_position(fusion_generator *g) {
    static const uir_op ops[] = {UIR_OP_ARG_MAX, UIR_OP_ARG_MIN};
    uir_value_id a = any_float(g, 1), result;
    int64_t number;
    if (!a.id) return;
    uint32_t axis = (uint32_t)pick(g, 0, type_of(g, a)->rank - 1);
    if (!is_number(g, type_of(g, a)->dims[axis], &number) || number < 1) return;
    if (chance(g, 50)) a = uir_build_unary(b(g), UIR_OP_ABS, a);
    uir_attribute attributes[] = {uir_attribute_int(b(g), "axis", axis), uir_attribute_int(b(g), "keep", chance(g, 60)),
                                  uir_attribute_int(b(g), "last", chance(g, 30))};
    uir_build_node(b(g), ops[pick(g, 0, 1)], &a, 1, attributes, 3, &result, 1);
    uir_value_id real = uir_build_cast(b(g), result, UIR_DTYPE_F32);
    add(g, chance(g, 50) ? uir_build_unary(b(g), UIR_OP_TANH, real) : real);
}

/* Two reductions of one value over different axes, whose extents may be equal. */
static void make_crossed(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    if (!a.id) return;
    uint32_t rank = type_of(g, a)->rank;
    int64_t last = rank - 1, other = rank - 2;
    uir_value_id rows = uir_build_reduce(b(g), UIR_OP_REDUCE_MAX, a, &last, 1, true);
    uir_value_id columns = uir_build_reduce(b(g), UIR_OP_REDUCE_SUM, a, &other, 1, true);
    add(g, binary(g, UIR_OP_SUB, binary(g, UIR_OP_SUB, a, rows), columns));
}

static void make_softmax(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    int64_t axes[UIR_MAX_RANK];
    if (!a.id) return;
    uint32_t count = random_axes(g, type_of(g, a)->rank, axes);
    uir_value_id greatest = uir_build_reduce(b(g), UIR_OP_REDUCE_MAX, a, axes, count, true);
    uir_value_id e = uir_build_unary(b(g), UIR_OP_EXP, binary(g, UIR_OP_SUB, a, greatest));
    add(g, binary(g, UIR_OP_DIV, e, uir_build_reduce(b(g), UIR_OP_REDUCE_SUM, e, axes, count, true)));
}

static void make_norm(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    int64_t axis = type_of(g, a)->rank - 1;
    bool centre = chance(g, 60), moments = chance(g, 30);
    /* Of squares of great numbers, as a mask has, nothing but rounding would be left. */
    if (moments && centre) a = uir_build_unary(b(g), UIR_OP_TANH, a);
    uir_value_id x = a, mean = {0};
    if (centre) {
        mean = binary(g, UIR_OP_MUL, uir_build_reduce(b(g), UIR_OP_REDUCE_SUM, a, &axis, 1, true), scalar(g, 0.25));
        x = binary(g, UIR_OP_SUB, a, mean);
    }
    uir_value_id squares = moments ? binary(g, UIR_OP_MUL, a, a) : binary(g, UIR_OP_MUL, x, x);
    uir_value_id variance = uir_build_reduce(b(g), UIR_OP_REDUCE_SUM, squares, &axis, 1, true);
    if (moments && centre) variance = binary(g, UIR_OP_SUB, variance, binary(g, UIR_OP_MUL, mean, mean));
    uir_value_id scale = uir_build_unary(b(g), UIR_OP_SQRT, binary(g, UIR_OP_ADD, variance, scalar(g, 1)));
    add(g, binary(g, UIR_OP_MUL, binary(g, UIR_OP_DIV, x, scale), partner(g, a)));
}

/* ---- products ---- */
static uir_value_id swapped(fusion_generator *g, uir_value_id a) {
    uint32_t rank = type_of(g, a)->rank;
    int64_t perm[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    perm[rank - 1] = rank - 2, perm[rank - 2] = rank - 1;
    return uir_build_transpose(b(g), a, perm);
}

static void make_matmul(fusion_generator *g) {
    uir_value_id a = any_float(g, 2), right;
    if (!a.id) return;
    if (chance(g, 60)) { /* weights */
        const uir_type *type = type_of(g, a);
        uir_value_id w = any_float(g, 2);
        if (w.id && type_of(g, w)->rank == 2 && equal(g, type_of(g, w)->dims[0], type->dims[type->rank - 1])) {
            uir_dim dims[UIR_MAX_RANK];
            for (uint32_t d = 0; d + 2 < type->rank; d++) dims[d] = type->dims[d];
            dims[type->rank - 2] = type_of(g, w)->dims[0], dims[type->rank - 1] = type_of(g, w)->dims[1];
            right = uir_build_broadcast(b(g), w, dims, type->rank);
        } else {
            right = swapped(g, a);
        }
    } else {
        right = swapped(g, chance(g, 50) ? a : binary(g, UIR_OP_MUL, a, scalar(g, 0.5)));
    }
    uir_value_id left = chance(g, 40) ? binary(g, UIR_OP_MUL, a, scalar(g, 0.125)) : a;
    uir_value_id y = uir_build_matmul(b(g), left, right, UIR_DTYPE_F32);
    if (chance(g, 40)) y = binary(g, UIR_OP_ADD, y, partner(g, y));
    if (chance(g, 30)) y = uir_build_unary(b(g), UIR_OP_TANH, y);
    if (chance(g, 30)) add(g, random_reshape(g, y));
    if (chance(g, 30)) add(g, swapped(g, y));
    add(g, y);
}

/* Scores, softmax and values; the mask may have the extents of either side. */
static void make_attention(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    if (!a.id) return;
    uir_value_id keys = chance(g, 50) ? uir_build_unary(b(g), UIR_OP_TANH, a) : a;
    uir_value_id scores = uir_build_matmul(b(g), a, swapped(g, keys), UIR_DTYPE_F32);
    if (!scores.id) return;
    if (chance(g, 50))
        scores = binary(g, UIR_OP_ADD, binary(g, UIR_OP_MUL, scores, scalar(g, 0.25)), partner(g, scores));
    int64_t last = type_of(g, scores)->rank - (chance(g, 85) ? 1 : 2);
    uir_value_id greatest = uir_build_reduce(b(g), UIR_OP_REDUCE_MAX, scores, &last, 1, true);
    uir_value_id e = uir_build_unary(b(g), UIR_OP_EXP, binary(g, UIR_OP_SUB, scores, greatest));
    uir_value_id p = binary(g, UIR_OP_DIV, e, uir_build_reduce(b(g), UIR_OP_REDUCE_SUM, e, &last, 1, true));
    if (!p.id || !equal(g, type_of(g, p)->dims[type_of(g, p)->rank - 1], type_of(g, a)->dims[type_of(g, a)->rank - 2]))
        return;
    uir_value_id y = type_of(g, p)->rank == type_of(g, a)->rank ? uir_build_matmul(b(g), p, a, UIR_DTYPE_F32) : p;
    add(g, chance(g, 40) ? swapped(g, y) : y);
    if (chance(g, 10)) add(g, p);
}

/* Something of that many columns that `a` may be multiplied with. */
static uir_value_id weights(fusion_generator *g, uir_value_id a, int64_t columns) {
    uint32_t rank = type_of(g, a)->rank;
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t d = 0; d + 2 < rank; d++) dims[d] = type_of(g, a)->dims[d];
    dims[rank - 2] = type_of(g, a)->dims[rank - 1], dims[rank - 1] = fixed(g, columns);
    uir_value_id w = uir_build_iota(b(g), UIR_DTYPE_F32, &dims[rank - 2], 2, pick(g, 0, 1));
    return uir_build_broadcast(b(g), uir_build_unary(b(g), UIR_OP_TANH, w), dims, rank);
}

/* Products of one left operand, one of which may follow another or meet it again. */
static void make_siblings(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    if (!a.id) return;
    uir_value_id right = chance(g, 20) ? swapped(g, a) : weights(g, a, 4),
                 two = chance(g, 60) ? uir_build_unary(b(g), UIR_OP_TANH, right) : weights(g, a, 6);
    uir_value_id x = uir_build_matmul(b(g), a, right, UIR_DTYPE_F32), y = uir_build_matmul(b(g), a, two, UIR_DTYPE_F32);
    if (!x.id || !y.id) return;
    if (chance(g, 50)) x = binary(g, UIR_OP_MUL, x, uir_build_unary(b(g), UIR_OP_SIGMOID, x));
    bool alike = equal(g, type_of(g, x)->dims[type_of(g, x)->rank - 1], type_of(g, y)->dims[type_of(g, y)->rank - 1]);
    if (alike && chance(g, 50)) {
        add(g, binary(g, UIR_OP_MUL, x, y));
    } else {
        add(g, x);
        add(g, chance(g, 50) ? swapped(g, y) : y);
    }
}

/* ---- patterns of several consumers ---- */
/* A cheap value of three operands, two of them dear, that three others read over different axes. */
static void make_shared(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    if (!a.id) return;
    uir_value_id one = uir_build_unary(b(g), UIR_OP_TANH, a), two = uir_build_unary(b(g), UIR_OP_EXP, a);
    uir_value_id mask = binary(g, UIR_OP_GT, a, scalar(g, 0));
    uir_value_id s = chance(g, 70) ? uir_build_select(b(g), mask, one, two) : binary(g, UIR_OP_MAX, a, one);
    int64_t last = type_of(g, s)->rank - 1, first = 0;
    add(g, one), add(g, two), add(g, mask);
    add(g, uir_build_reduce(b(g), UIR_OP_REDUCE_SUM, s, &last, 1, false));
    add(g, uir_build_reduce(b(g), UIR_OP_REDUCE_MAX, s, &first, 1, true));
    add(g, binary(g, UIR_OP_MUL, s, s));
}

/* Two readers of one value over the same axes. */
static void make_pair(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    if (!a.id) return;
    uir_value_id t = uir_build_unary(b(g), UIR_OP_SIGMOID, a);
    add(g, uir_build_unary(b(g), UIR_OP_COS, t));
    add(g, uir_build_unary(b(g), UIR_OP_SIN, t));
}

/* Halves turned around, as rotary position embeddings do. */
static void make_rotation(fusion_generator *g) {
    uir_value_id a = any_float(g, 1);
    int64_t number;
    if (!a.id) return;
    uint32_t last = type_of(g, a)->rank - 1;
    if (!is_number(g, type_of(g, a)->dims[last], &number) || number < 2 || number % 2) return;
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK];
    for (uint32_t d = 0; d <= last; d++) starts[d] = fixed(g, 0), sizes[d] = type_of(g, a)->dims[d], steps[d] = 1;
    sizes[last] = fixed(g, number / 2);
    uir_value_id low = uir_build_slice(b(g), a, starts, sizes, steps);
    starts[last] = fixed(g, number / 2);
    uir_value_id high = uir_build_slice(b(g), a, starts, sizes, steps);
    uir_value_id parts[2] = {uir_build_unary(b(g), UIR_OP_NEG, high), low};
    uir_value_id turned = uir_build_concat(b(g), parts, 2, last);
    add(g,
        binary(g, UIR_OP_ADD, binary(g, UIR_OP_MUL, a, scalar(g, 0.5)), binary(g, UIR_OP_MUL, turned, scalar(g, 2))));
}

/* A mask of positions, for one value. */
static void make_mask(fusion_generator *g) {
    uir_value_id a = any_float(g, 2);
    if (!a.id) return;
    uint32_t rank = type_of(g, a)->rank;
    uir_dim rows = type_of(g, a)->dims[rank - 2], columns = type_of(g, a)->dims[rank - 1], dims[2] = {rows, columns};
    uir_value_id i = uir_build_iota(b(g), UIR_DTYPE_I64, dims, 2, 0),
                 k = uir_build_iota(b(g), UIR_DTYPE_I64, dims, 2, 1);
    uir_value_id seen = uir_build_binary(b(g), UIR_OP_LE, k, i);
    add(g, uir_build_select(b(g), seen, a, scalar(g, -1000)));
}

/* A size that data decides: what is made of it must wait for it. */
static void make_bound(fusion_generator *g) {
    if (!g->sizes[2].id || g->in_body) return;
    uir_dim dims[2] = {g->sizes[2], extent(g)};
    uir_value_id up = uir_build_iota(b(g), UIR_DTYPE_F32, dims, 2, pick(g, 0, 1));
    add(g, uir_build_unary(b(g), UIR_OP_TANH, up));
}

/* A size that comes out of a value, and a use of both. */
static void make_bound_late(fusion_generator *g) {
    uir_value_id a = any_float(g, 2), greatest;
    int64_t axes[UIR_MAX_RANK];
    if (!a.id || g->in_body) return;
    uir_value_id y = chance(g, 50) ? uir_build_matmul(b(g), a, swapped(g, a), UIR_DTYPE_F32)
                                   : uir_build_concat(b(g), (uir_value_id[]){a, a}, 2, 0);
    for (uint32_t d = 0; y.id && d < type_of(g, y)->rank; d++) axes[d] = d;
    if (!y.id) return;
    greatest = uir_build_reduce(b(g), UIR_OP_REDUCE_MAX, y, axes, type_of(g, y)->rank, false);
    greatest = binary(g, UIR_OP_MAX, binary(g, UIR_OP_MIN, greatest, scalar(g, 3)), scalar(g, 0));
    uint32_t elements;
    const uir_dim *bound = uir_build_value_as_dims(b(g), uir_build_cast(b(g), greatest, UIR_DTYPE_I64), 0, &elements);
    if (!bound) return;
    uir_value_id size = uir_build_dim_values(b(g), bound, 1, true, UIR_DTYPE_I64);
    add(g, binary(g, UIR_OP_MUL, y, uir_build_cast(b(g), size, UIR_DTYPE_F32)));
}

/* A branch whose bodies read values from around them. */
static void make_if(fusion_generator *g) {
    uir_value_id a = any_float(g, 0);
    if (!a.id || g->in_body) return;
    uir_value_id condition = binary(g, UIR_OP_GT, scalar(g, chance(g, 50) ? 1 : -1), scalar(g, 0)), result;
    uir_attribute attributes[2];
    uir_builder outer = *b(g);
    static const char *const names[] = {"then", "else"};
    for (int i = 0; i < 2; i++) {
        uir_graph_id body;
        assert_int_equal(uir_module_add_graph(g->f->module, g->f->graph, names[i], &body), UIR_STATUS_OK);
        uir_builder_init(b(g), g->f->module, body);
        uir_value_id v = uir_build_unary(b(g), i ? UIR_OP_TANH : UIR_OP_ABS, a);
        v = binary(g, UIR_OP_ADD, v, binary(g, UIR_OP_MUL, a, v));
        assert_int_equal(uir_graph_add_output(g->f->module, body, v), UIR_STATUS_OK);
        if (b(g)->status != UIR_STATUS_OK) outer.status = b(g)->status;
        *b(g) = outer;
        attributes[i] = uir_attribute_graph(b(g), names[i], body);
    }
    uir_build_node(b(g), UIR_OP_IF, &condition, 1, attributes, 2, &result, 1);
    if (type_of(g, result)->rank_known) add(g, result);
}

static void (*const makers[])(fusion_generator *g) = {
    make_unary,  make_binary,   make_binary,  make_diamond,    make_transpose, make_mirror,    make_reshape,
    make_slice,  make_concat,   make_pad,     make_gather,     make_iota,      make_scan,      make_reduce,
    make_reduce, make_crossed,  make_softmax, make_norm,       make_matmul,    make_matmul,    make_shared,
    make_pair,   make_mask,     make_bound,   make_bound_late, make_rotation,  make_attention, make_siblings,
    make_if,     make_position, make_windows,
};

/* ---- modules ---- */
static void make_inputs(fusion_generator *g) {
    static const char *const names[FUSION_INPUTS] = {"a", "b", "c", "d", "e", "count"};
    for (uint32_t i = 0; i + 1 < FUSION_INPUTS; i++) {
        uir_dim dims[4];
        uint32_t rank = i ? (uint32_t)pick(g, 0, 4) : 3;
        for (uint32_t d = 0; d < rank; d++) dims[d] = i || d > 1 ? extent(g) : g->sizes[d]; /* N and M have values */
        add(g, add_input(g->f, names[i], UIR_DTYPE_F32, dims, rank));
    }
    uir_value_id count = add_input(g->f, names[FUSION_INPUTS - 1], UIR_DTYPE_I64, NULL, 0);
    g->sizes[2] = UIR_DIM_NONE;
    if (!chance(g, 40)) return;
    uint32_t elements;
    uir_value_id doubled = uir_build_binary(b(g), UIR_OP_ADD, count, uir_build_integer_scalar(b(g), UIR_DTYPE_I64, 1));
    const uir_dim *bound = uir_build_value_as_dims(b(g), doubled, 0, &elements);
    if (bound && elements == 1) g->sizes[2] = bound[0];
}

void fusion_generate(fusion_generator *g, fixture *f, uint64_t seed) {
    *g = (fusion_generator){.f = f, .random = {seed * 0x9e3779b97f4a7c15u + 77}};
    g->sizes[0] = make_size(f, "N");
    g->sizes[1] = make_size(f, "M");
    make_inputs(g);
    uint32_t steps = (uint32_t)pick(g, 2, 12);
    for (uint32_t i = 0; i < steps; i++) makers[pick(g, 0, (int64_t)(sizeof makers / sizeof *makers) - 1)](g);
    /* What nothing reads is a result, so that nothing is dead; and some that are read. */
    for (uint32_t i = 0; i < g->count; i++) {
        bool used = false;
        for (uint32_t n = 1; n < f->module->nodes.count && !used; n++)
            for (uint32_t k = 0; k < f->module->nodes.data[n].input_count; k++)
                used |= f->module->nodes.data[n].inputs[k].id == g->pool[i].id;
        if (!used || chance(g, 8)) assert_int_equal(uir_graph_add_output(f->module, f->graph, g->pool[i]), 0);
    }
}

void fusion_inputs(const fusion_generator *g, uint64_t seed, uint32_t binding, uir_datum **out_inputs) {
    static const int64_t sizes[][2] = {{4, 4}, {1, 3}, {2, 1}, {4, 2}, {0, 4}};
    random_state random = {seed + binding * 1000003u};
    const uir_module *module = g->f->module;
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    int64_t values[64] = {0};
    for (int i = 0; i < 2; i++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(module->dims, g->sizes[i], &symbol)) values[symbol.id] = sizes[binding % 5][i];
    }
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const uir_type *type = uir_value_type(module, graph->inputs.data[i]);
        int64_t shape[UIR_MAX_RANK + 1] = {0};
        for (uint32_t d = 0; d < type->rank; d++)
            assert_int_equal(uir_dim_evaluate(module->dims, type->dims[d], values, NULL, 64, &shape[d]),
                             UIR_DIM_EVALUATED);
        uir_tensor *tensor;
        assert_int_equal(uir_tensor_create(&g->f->allocator, type->dtype, type->rank, shape, &tensor), UIR_STATUS_OK);
        for (uint64_t e = 0; e < tensor->element_count; e++) {
            if (type->dtype == UIR_DTYPE_I64)
                uir_dtype_store_integer(type->dtype, tensor->data, e, random_between(&random, 0, 4), false,
                                        UIR_ROUND_NEAREST_EVEN);
            else
                uir_dtype_store_double(type->dtype, tensor->data, e, (double)random_between(&random, -999, 999) / 256,
                                       UIR_ROUND_NEAREST_EVEN);
        }
        out_inputs[i] = make_datum(&g->f->allocator, tensor);
    }
}
