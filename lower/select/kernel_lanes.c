/* The lanes of a block: dims as multiples of them, and conditions that bound them. */
#include "lower/select/kernel.h"

bool uir_kernel_split_lanes(uir_kernel *k, uir_dim dim, uir_dim *out_base, int64_t *out_coefficients) {
    uir_dim_replacement at[UIR_KERNEL_MAX_LANES];
    uir_dim zero = uir_dim_const(k->dims, 0), one = uir_dim_const(k->dims, 1);
    if (k->status != UIR_STATUS_OK) return true;
    for (uint32_t l = 0; l < k->lane_count; l++) at[l] = (uir_dim_replacement){k->lanes[l].symbol, zero};
    *out_base = uir_dim_replace(k->dims, dim, at, k->lane_count);
    uir_dim sum = *out_base;
    for (uint32_t l = 0; l < k->lane_count; l++) {
        at[l].by = one;
        uir_dim step = uir_dim_sub(k->dims, uir_dim_replace(k->dims, dim, at, k->lane_count), *out_base);
        at[l].by = zero;
        if (!step.id || !uir_dim_is_const(k->dims, step, &out_coefficients[l])) return false;
        sum = uir_dim_add(k->dims, sum, uir_dim_mul(k->dims, step, uir_dim_symbol(k->dims, k->lanes[l].symbol)));
    }
    return uir_dim_equal(sum, dim);
}

typedef struct lane_check {
    const uir_kernel *k;
    bool found;
} lane_check;

static void check_lane(void *user, uir_symbol symbol) {
    lane_check *c = user;
    for (uint32_t l = 0; l < c->k->lane_count; l++)
        if (c->k->lanes[l].symbol.id == symbol.id) c->found = true;
}

bool uir_kernel_mentions_lane(const uir_kernel *k, uir_dim dim) {
    lane_check c = {k, false};
    uir_dim_visit_symbols(k->dims, dim, check_lane, &c);
    return c.found;
}

/* base + s*lane < bound, or base + s*lane > bound: where the lane ends or begins. */
void uir_kernel_clip(uir_kernel *k, uir_condition c) {
    uir_dims *dims = k->dims;
    uir_dim difference = uir_dim_sub(dims, c.right, c.left), base, zero = uir_dim_const(dims, 0);
    int64_t coefficients[UIR_KERNEL_MAX_LANES];
    uint32_t lane = UIR_LOWER_NONE, lanes = 0;
    bool good = c.relation == UIR_RELATION_LT || c.relation == UIR_RELATION_LE;
    good = good && difference.id && uir_kernel_split_lanes(k, difference, &base, coefficients);
    for (uint32_t l = 0; good && l < k->lane_count; l++) {
        if (!coefficients[l]) continue;
        lanes++;
        lane = l;
    }
    if (!good || lanes != 1) {
        uir_kernel_refuse(k, "a condition on a vectorised loop is not a bound");
        return;
    }
    uir_kernel_lane *at = &k->lanes[lane];
    int64_t step = coefficients[lane];
    if (step > 0) {
        /* base + s*lane >= 0 (or > 0): lane >= ceildiv(-base, s), or ceildiv(1 - base, s). */
        base = uir_dim_sub(dims, uir_dim_const(dims, c.relation == UIR_RELATION_LT), base);
        base = uir_dim_ceildiv(dims, base, uir_dim_const(dims, step));
        at->first = uir_dim_max(dims, at->first.id ? at->first : zero, base);
        if (!at->first.id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return;
    }
    /* base - s*lane > 0 (or >= 0): lane < ceildiv(base, s), or ceildiv(base + 1, s). */
    if (c.relation == UIR_RELATION_LE) base = uir_dim_add(dims, base, uir_dim_const(dims, 1));
    base = uir_dim_ceildiv(dims, base, uir_dim_const(dims, -step));
    at->count = uir_dim_min(dims, at->count, base);
    if (!at->count.id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
}

/* Lanes that begin later: what they count from is added wherever they stand. */
void uir_kernel_shift_lanes(uir_kernel *k) {
    uir_dims *dims = k->dims;
    for (uint32_t l = 0; l < k->lane_count && k->status == UIR_STATUS_OK; l++) {
        uir_kernel_lane *at = &k->lanes[l];
        if (!at->first.id) continue;
        at->first = uir_dim_min(dims, at->extent, at->first);
        at->count = uir_dim_sub(dims, uir_dim_max(dims, at->first, at->count), at->first);
        uir_dim_replacement later = {at->symbol, uir_dim_add(dims, uir_dim_symbol(dims, at->symbol), at->first)};
        if (!at->count.id || !later.by.id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        for (uint32_t i = 0; i < k->replaced_count && k->status == UIR_STATUS_OK; i++)
            if (k->replaced[i].id && uir_dim_mentions(dims, k->replaced[i], at->symbol))
                k->replaced[i] = uir_dim_replace(dims, k->replaced[i], &later, 1);
    }
}
