/* The walk down an ensemble of trees: all rows and all trees abreast, a step is one turn of a loop. */
#include "decompose/ml/rules_ml_tree.h"
#include "decompose/math/rules_math.h"

#include <math.h>
#include <string.h>

enum { MOST_WEIGHTS = 1 << 28, MOST_STATES = 1 << 28 };

bool uir_ml_allocate_ensemble(uir_rule_context *context, uir_ml_ensemble *e) {
    uint64_t weights = (uint64_t)e->leaf_count * (uint64_t)e->target_count;
    if (context->builder.status != UIR_STATUS_OK) return false;
    if (e->target_count < 1 || e->target_count > MOST_WEIGHTS || weights > MOST_WEIGHTS ||
        e->node_count > MOST_STATES) {
        uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED, "%u leaves of %lld targets are not supported",
                         e->leaf_count, (long long)e->target_count);
        return false;
    }
    e->feature = uir_rule_allocate(context, e->node_count + 1u, sizeof *e->feature);
    e->mask = uir_rule_allocate(context, e->node_count + 1u, sizeof *e->mask);
    e->yes = uir_rule_allocate(context, e->node_count + 1u, sizeof *e->yes);
    e->no = uir_rule_allocate(context, e->node_count + 1u, sizeof *e->no);
    e->value = uir_rule_allocate(context, e->node_count + 1u, sizeof *e->value);
    e->root = uir_rule_allocate(context, e->tree_count + 1u, sizeof *e->root);
    e->weight = uir_rule_allocate(context, weights + 1, sizeof *e->weight);
    e->scored = uir_rule_allocate(context, weights + 1, sizeof *e->scored);
    return context->builder.status == UIR_STATUS_OK;
}

int64_t uir_ml_mask(const char *mode, bool missing_is_true, double *value) {
    static const struct {
        const char *name;
        int64_t mask;
    } rows[] = {{"LEQ", UIR_ML_LESS | UIR_ML_EQUAL},
                {"LT", UIR_ML_LESS},
                {"GTE", UIR_ML_GREATER | UIR_ML_EQUAL},
                {"GT", UIR_ML_GREATER},
                {"EQ", UIR_ML_EQUAL},
                {"NEQ", UIR_ML_LESS | UIR_ML_GREATER | UIR_ML_UNORDERED}};
    if (!strncmp(mode, "BRANCH_", 7)) mode += 7;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, mode)) continue;
        int64_t mask = rows[i].mask;
        if (isnan(*value)) { /* which nothing is equal to, and everything different from */
            mask = mask & UIR_ML_UNORDERED ? UIR_ML_LESS | UIR_ML_EQUAL | UIR_ML_GREATER | UIR_ML_UNORDERED : 0;
            *value = 0;
        }
        return missing_is_true ? mask | UIR_ML_UNORDERED : mask;
    }
    return -1;
}

/* ---- the longest way ---- */

enum { NEW, OPEN, DONE };

bool uir_ml_measure_ensemble(uir_rule_context *context, uir_ml_ensemble *e, bool all) {
    uint8_t *seen = uir_rule_allocate(context, e->node_count + 1u, sizeof *seen);
    uint32_t *height = uir_rule_allocate(context, e->node_count + 1u, sizeof *height);
    int64_t *stack = uir_rule_allocate(context, e->node_count + 1u, sizeof *stack);
    if (context->builder.status != UIR_STATUS_OK) return false;
    for (uint32_t t = 0; t < e->tree_count; t++) {
        int64_t depth = 0;
        if (e->root[t] < e->node_count && seen[e->root[t]] == NEW) stack[depth++] = e->root[t];
        while (depth) {
            int64_t node = stack[depth - 1], next[2] = {e->yes[node], e->no[node]}, deeper = -1;
            seen[node] = OPEN;
            for (int i = 0; i < 2 && deeper < 0; i++) {
                if (next[i] >= e->node_count || seen[next[i]] == DONE) continue;
                deeper = next[i];
            }
            if (deeper >= 0 && seen[deeper] == OPEN) {
                uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "the branches of tree %u form a cycle", t);
                return false;
            }
            if (deeper >= 0) {
                stack[depth++] = deeper;
                continue;
            }
            for (int i = 0; i < 2; i++) {
                uint32_t below = next[i] < e->node_count ? height[next[i]] : 0;
                if (below + 1 > height[node]) height[node] = below + 1;
            }
            seen[node] = DONE;
            depth--;
        }
        if (e->root[t] < e->node_count && height[e->root[t]] > e->depth) e->depth = height[e->root[t]];
    }
    for (uint32_t i = 0; all && i < e->node_count; i++) {
        if (seen[i] == DONE) continue;
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "the branches of a tree form a cycle");
        return false;
    }
    return true;
}

/* ---- the walk ---- */

typedef struct walk {
    const uir_ml_ensemble *ensemble;
    uir_value_id rows, feature, mask, value, yes, no; /* the tables, by state */
    int64_t common_mask;                              /* of all nodes; -1: they differ */
} walk;

static uir_value_id integers(uir_rule_context *context, const int64_t *by_node, const uir_ml_ensemble *e, bool itself) {
    uint32_t states = e->node_count + e->leaf_count;
    int64_t *values = uir_rule_allocate(context, states + 1u, sizeof *values);
    if (!values) return (uir_value_id){0};
    for (uint32_t i = 0; i < states; i++) values[i] = i < e->node_count ? by_node[i] : itself ? i : 0;
    return uir_build_integers(&context->builder, UIR_DTYPE_I64, values, states);
}

static uir_value_id reals(uir_rule_context *context, const double *by_node, const uir_ml_ensemble *e, uir_dtype dtype) {
    const int64_t states = (int64_t)e->node_count + e->leaf_count;
    double *values = uir_rule_allocate(context, (size_t)states + 1, sizeof *values);
    if (!values) return (uir_value_id){0};
    memcpy(values, by_node, e->node_count * sizeof *values);
    return uir_ml_table(context, dtype, values, &states, 1);
}

static int64_t common_mask(const uir_ml_ensemble *e) {
    for (uint32_t i = 1; i < e->node_count; i++)
        if (e->mask[i] != e->mask[0]) return -1;
    return e->node_count ? e->mask[0] : UIR_ML_LESS | UIR_ML_EQUAL;
}

/* Whether each row takes the true branch of its node. */
static uir_value_id compare(uir_builder *b, const walk *w, uir_value_id state, uir_value_id x) {
    uir_value_id value = uir_build_gather(b, w->value, state, 0);
    if (w->common_mask == (UIR_ML_LESS | UIR_ML_EQUAL)) return less_equal(b, x, value);
    if (w->common_mask == UIR_ML_LESS) return less(b, x, value);
    if (w->common_mask == (UIR_ML_GREATER | UIR_ML_EQUAL)) return greater_equal(b, x, value);
    if (w->common_mask == UIR_ML_GREATER) return greater(b, x, value);
    if (w->common_mask == UIR_ML_EQUAL) return equal(b, x, value);
    uir_value_id bit = uir_build_integer_scalar(b, UIR_DTYPE_I64, UIR_ML_UNORDERED);
    bit = uir_build_select(b, greater(b, x, value), uir_build_integer_scalar(b, UIR_DTYPE_I64, UIR_ML_GREATER), bit);
    bit = uir_build_select(b, equal(b, x, value), uir_build_integer_scalar(b, UIR_DTYPE_I64, UIR_ML_EQUAL), bit);
    bit = uir_build_select(b, less(b, x, value), uir_build_integer_scalar(b, UIR_DTYPE_I64, UIR_ML_LESS), bit);
    uir_value_id mask = uir_build_gather(b, w->mask, state, 0);
    return different(b, uir_build_binary(b, UIR_OP_BIT_AND, mask, bit), uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
}

static uir_value_id step(uir_builder *b, const walk *w, uir_value_id state) {
    uir_value_id feature = uir_build_gather(b, w->feature, state, 0), x;
    const uir_attribute axis = uir_attribute_int(b, "axis", 1);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, (uir_value_id[]){w->rows, feature}, 2, &axis, 1, &x, 1);
    uir_value_id taken = compare(b, w, state, x);
    return uir_build_select(b, taken, uir_build_gather(b, w->yes, state, 0), uir_build_gather(b, w->no, state, 0));
}

static uir_status make_step_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                 uir_graph_id *out_graph) {
    uir_builder saved;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    const uir_value_id *inputs = uir_graph_get(context->builder.module, *out_graph)->inputs.data;
    uir_value_id outputs[2] = {inputs[1], inputs[2]};
    outputs[1] = step(&context->builder, user, outputs[1]);
    return uir_math_end_body(context, saved, outputs, 2);
}

/* Whether each target gets something from each way through the trees. */
static bool always_scored(const uir_ml_ensemble *e) {
    uint64_t count = (uint64_t)e->leaf_count * (uint64_t)e->target_count;
    for (uint64_t i = 0; i < count; i++)
        if (!e->scored[i]) return false;
    return true;
}

/* Adds up, over the trees, what the leaves have: [N, trees] of leaves to [N, targets]. */
static uir_value_id gather_weights(uir_rule_context *context, const uir_ml_ensemble *e, uir_value_id leaves,
                                   uir_ml_aggregate aggregate, uir_value_id *out_scored) {
    static const uir_op ops[] = {UIR_OP_REDUCE_SUM, UIR_OP_REDUCE_SUM, UIR_OP_REDUCE_MIN, UIR_OP_REDUCE_MAX};
    uir_builder *b = &context->builder;
    const int64_t trees = 1, shape[2] = {e->leaf_count, e->target_count};
    bool extreme = aggregate == UIR_ML_MIN || aggregate == UIR_ML_MAX, all = always_scored(e);
    uint64_t count = (uint64_t)e->leaf_count * (uint64_t)e->target_count;
    double *weight = uir_rule_allocate(context, count + 1, sizeof *weight);
    double *scored = uir_rule_allocate(context, count + 1, sizeof *scored);
    if (b->status != UIR_STATUS_OK) return leaves;
    for (uint64_t i = 0; i < count; i++) {
        scored[i] = e->scored[i];
        weight[i] = e->scored[i] || !extreme ? e->weight[i] : aggregate == UIR_ML_MIN ? INFINITY : -INFINITY;
    }
    uir_value_id table = uir_ml_table(context, e->dtype, weight, shape, 2);
    uir_value_id sum = uir_build_reduce(b, ops[aggregate], uir_build_gather(b, table, leaves, 0), &trees, 1, false);
    if (aggregate == UIR_ML_AVERAGE) sum = divide(b, sum, scalar_like(b, sum, e->tree_count));
    *out_scored = (uir_value_id){0};
    if (all) return sum;
    uir_value_id marks = uir_build_gather(b, uir_ml_table(context, UIR_DTYPE_F32, scored, shape, 2), leaves, 0);
    marks = uir_build_reduce(b, UIR_OP_REDUCE_MAX, marks, &trees, 1, false);
    *out_scored = greater(b, marks, scalar_like(b, marks, 0));
    return extreme ? uir_build_select(b, *out_scored, sum, scalar_like(b, sum, 0)) : sum;
}

uir_value_id uir_ml_walk(uir_rule_context *context, const uir_ml_ensemble *e, uir_value_id rows,
                         uir_ml_aggregate aggregate, uir_value_id *out_scored) {
    uir_builder *b = &context->builder;
    uir_shape shape = uir_network_shape_between(context, rows, "X", 2, 2);
    int64_t features;
    if (b->status != UIR_STATUS_OK) return rows;
    bool known = uir_dim_is_const(b->module->dims, shape.dims[1], &features);
    for (uint32_t i = 0; i < e->node_count; i++) {
        if (e->feature[i] >= 0 && (!known || e->feature[i] < features)) continue;
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "a node reads feature %lld of %lld", (long long)e->feature[i],
                         known ? (long long)features : -1);
        return rows;
    }
    walk w = {.ensemble = e, .rows = uir_build_cast(b, rows, e->dtype), .common_mask = common_mask(e)};
    w.feature = integers(context, e->feature, e, false);
    w.value = reals(context, e->value, e, e->dtype);
    w.yes = integers(context, e->yes, e, true);
    w.no = integers(context, e->no, e, true);
    if (w.common_mask < 0 || w.common_mask == (UIR_ML_LESS | UIR_ML_GREATER | UIR_ML_UNORDERED) ||
        w.common_mask & UIR_ML_UNORDERED || !w.common_mask)
        w.mask = integers(context, e->mask, e, false);
    uir_value_id roots = uir_build_integers(b, UIR_DTYPE_I64, e->root, e->tree_count);
    uir_dim dims[2] = {shape.dims[0], uir_rule_dim(context, e->tree_count)};
    uir_value_id state = uir_build_broadcast(b, roots, dims, 2);
    if (e->depth && b->status == UIR_STATUS_OK) {
        uir_value_id turns = uir_build_integer_scalar(b, UIR_DTYPE_I64, e->depth), last = {0};
        uir_status status = uir_math_loop(context, turns, last, &state, 1, make_step_body, &w, &last, 1);
        if (status != UIR_STATUS_OK) return rows;
        state = last;
    }
    uir_value_id leaves = subtract(b, state, uir_build_integer_scalar(b, UIR_DTYPE_I64, e->node_count));
    return gather_weights(context, e, leaves, aggregate, out_scored);
}
