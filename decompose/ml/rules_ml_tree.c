/* TreeEnsembleClassifier, TreeEnsembleRegressor (ai.onnx.ml 1 and 3): lists of nodes keyed by tree and node, read into
 * an ensemble; scores and labels. */
#include "decompose/ml/rules_ml_tree.h"
#include "ir/graph/interpret/sort.h"

#include <string.h>

/* The lists of attributes, all as long as `count`. */
typedef struct node_lists {
    uint32_t count;
    const int64_t *tree, *node, *feature, *yes, *no, *missing; /* missing may be NULL */
    const double *value;
    const uir_string *mode;
    int64_t *order; /* the entries by tree and node */
    int64_t *state; /* of each entry */
} node_lists;

static bool read_ints(uir_rule_context *context, const char *name, uint32_t count, const int64_t **out_values) {
    int64_t found = uir_rule_ints(context, name, out_values);
    return uir_ml_same_length(context, name, found < 0 ? 0 : (uint32_t)found, "nodes_modes", count);
}

static bool read_lists(uir_rule_context *context, node_lists *l) {
    const uir_attribute *modes = uir_rule_attribute(context, "nodes_modes");
    uint32_t values;
    if (!modes || modes->kind != UIR_ATTRIBUTE_STRINGS || !modes->count) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute nodes_modes is missing");
        return false;
    }
    l->count = modes->count;
    l->mode = modes->value.strings;
    l->value = uir_ml_reals(context, "nodes_values", "nodes_values_as_tensor", &values);
    bool good = read_ints(context, "nodes_treeids", l->count, &l->tree) &&
                read_ints(context, "nodes_nodeids", l->count, &l->node) &&
                read_ints(context, "nodes_featureids", l->count, &l->feature) &&
                read_ints(context, "nodes_truenodeids", l->count, &l->yes) &&
                read_ints(context, "nodes_falsenodeids", l->count, &l->no) &&
                uir_ml_same_length(context, "nodes_values", values, "nodes_modes", l->count);
    if (good && uir_rule_ints(context, "nodes_missing_value_tracks_true", &l->missing) <= 0)
        l->missing = NULL;
    else
        good = good && read_ints(context, "nodes_missing_value_tracks_true", l->count, &l->missing);
    l->order = uir_rule_allocate(context, 2 * (size_t)l->count + 1, sizeof *l->order);
    l->state = uir_rule_allocate(context, l->count + 1u, sizeof *l->state);
    return good && context->builder.status == UIR_STATUS_OK;
}

static const char *mode_of(const uir_rule_context *context, const node_lists *l, uint32_t i) {
    return uir_string_text(&context->source->strings, l->mode[i]);
}

static bool is_leaf(const uir_rule_context *context, const node_lists *l, uint32_t i) {
    return !strcmp(mode_of(context, l, i), "LEAF");
}

static int compare_keys(const node_lists *l, int64_t entry, int64_t tree, int64_t node) {
    if (l->tree[entry] != tree) return l->tree[entry] < tree ? -1 : 1;
    return (l->node[entry] > node) - (l->node[entry] < node);
}

static int compare_entries(const void *user, int64_t a, int64_t b) {
    const node_lists *l = user;
    return compare_keys(l, a, l->tree[b], l->node[b]);
}

/* The entry of a tree's node; -1 when there is none. */
static int64_t find_entry(const node_lists *l, int64_t tree, int64_t node) {
    int64_t low = 0, high = l->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare_keys(l, l->order[middle], tree, node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->count && !compare_keys(l, l->order[low], tree, node) ? l->order[low] : -1;
}

static bool sort_entries(uir_rule_context *context, node_lists *l) {
    for (uint32_t i = 0; i < l->count; i++) l->order[i] = i;
    (void)!uir_sort(l->order, l->order + l->count, l->count, compare_entries, l, NULL); /* no more than the file has */
    for (uint32_t i = 1; i < l->count; i++) {
        int64_t a = l->order[i];
        if (compare_entries(l, l->order[i - 1], a)) continue;
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "tree %lld has node %lld twice", (long long)l->tree[a],
                         (long long)l->node[a]);
        return false;
    }
    return true;
}

/* States: nodes as they come, then leaves as they come. Roots: what no branch leads to, one a tree. */
static bool number_states(uir_rule_context *context, node_lists *l, uir_ml_ensemble *e) {
    bool *reached = uir_rule_allocate(context, l->count + 1u, sizeof *reached);
    if (!reached) return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const int64_t ends[2] = {l->yes[i], l->no[i]};
        if (is_leaf(context, l, i)) {
            e->leaf_count++;
            continue;
        }
        e->node_count++;
        for (int k = 0; k < 2; k++) {
            int64_t entry = find_entry(l, l->tree[i], ends[k]);
            if (entry >= 0) reached[entry] = true;
            if (entry >= 0) continue;
            uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                             "node %lld of tree %lld branches to node %lld, which does not exist",
                             (long long)l->node[i], (long long)l->tree[i], (long long)ends[k]);
            return false;
        }
    }
    int64_t node = 0, leaf = e->node_count;
    for (uint32_t i = 0; i < l->count; i++) l->state[i] = is_leaf(context, l, i) ? leaf++ : node++;
    for (uint32_t i = 0; i < l->count; i++) e->tree_count += !reached[i];
    if (!uir_ml_allocate_ensemble(context, e)) return false;
    uint32_t tree = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        int64_t i = l->order[k];
        if (!reached[i]) e->root[tree++] = l->state[i];
    }
    /* In order of trees: each tree has one root, or a way round leads nowhere. */
    int64_t roots = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        int64_t i = l->order[k];
        roots = (k && l->tree[l->order[k - 1]] == l->tree[i] ? roots : 0) + !reached[i];
        bool last = k + 1 == l->count || l->tree[l->order[k + 1]] != l->tree[i];
        if (!last || roots == 1) continue;
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "tree %lld has %lld nodes that no branch leads to",
                         (long long)l->tree[i], (long long)roots);
        return false;
    }
    return true;
}

static bool fill_nodes(uir_rule_context *context, const node_lists *l, uir_ml_ensemble *e) {
    for (uint32_t i = 0; i < l->count; i++) {
        int64_t s = l->state[i];
        if (s >= e->node_count) continue;
        e->value[s] = l->value[i];
        e->feature[s] = l->feature[i];
        e->mask[s] = uir_ml_mask(mode_of(context, l, i), l->missing && l->missing[i], &e->value[s]);
        e->yes[s] = l->state[find_entry(l, l->tree[i], l->yes[i])];
        e->no[s] = l->state[find_entry(l, l->tree[i], l->no[i])];
        if (e->mask[s] >= 0) continue;
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "nodes_modes has the unknown mode '%s'",
                         mode_of(context, l, i));
        return false;
    }
    return true;
}

/* The weights of leaves: lists named `names`: trees, nodes, targets, weights, weights as a tensor. */
static bool fill_weights(uir_rule_context *context, const node_lists *l, const char *const names[5],
                         uir_ml_ensemble *e) {
    const int64_t *lists[3];
    uint32_t count;
    const double *weights = uir_ml_reals(context, names[3], names[4], &count);
    for (int k = 0; k < 3; k++) {
        int64_t found = uir_rule_ints(context, names[k], &lists[k]);
        if (!uir_ml_same_length(context, names[k], found < 0 ? 0 : (uint32_t)found, names[3], count)) return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t entry = find_entry(l, lists[0][i], lists[1][i]), target = lists[2][i];
        if (entry < 0 || target < 0 || target >= e->target_count) {
            uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                             "weight %u names node %lld of tree %lld and target %lld of %lld", i,
                             (long long)lists[1][i], (long long)lists[0][i], (long long)target,
                             (long long)e->target_count);
            return false;
        }
        int64_t leaf = l->state[entry] - e->node_count; /* a node's weight is never used */
        if (leaf < 0) continue;
        e->weight[leaf * e->target_count + target] += weights[i];
        e->scored[leaf * e->target_count + target] = true;
    }
    return true;
}

static bool read_ensemble(uir_rule_context *context, const char *const names[5], int64_t targets, uir_value_id rows,
                          uir_ml_ensemble *e) {
    node_lists l = {0};
    bool wide = uir_rule_dtype(context, rows) == UIR_DTYPE_F64 || uir_ml_is_double(context, "nodes_values_as_tensor");
    *e = (uir_ml_ensemble){.target_count = targets, .dtype = wide ? UIR_DTYPE_F64 : UIR_DTYPE_F32};
    return read_lists(context, &l) && sort_entries(context, &l) && number_states(context, &l, e) &&
           fill_nodes(context, &l, e) && fill_weights(context, &l, names, e) &&
           uir_ml_measure_ensemble(context, e, true);
}

/* ---- regressor ---- */

static bool read_aggregate(uir_rule_context *context, uir_ml_aggregate *out_aggregate) {
    static const char *const names[] = {"SUM", "AVERAGE", "MIN", "MAX", NULL};
    *out_aggregate = (uir_ml_aggregate)uir_network_choice(context, "aggregate_function", "SUM", names);
    return context->builder.status == UIR_STATUS_OK;
}

/* Adds base_values; one for all targets or one for each. */
static uir_value_id add_base(uir_rule_context *context, uir_value_id scores, int64_t targets) {
    uint32_t count;
    const double *base = uir_ml_reals(context, "base_values", "base_values_as_tensor", &count);
    if (!count || context->builder.status != UIR_STATUS_OK) return scores;
    if (count != 1 && count != targets) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "%u base values for %lld targets", count,
                         (long long)targets);
        return scores;
    }
    const int64_t shape = count;
    uir_builder *b = &context->builder;
    return add(b, scores, uir_ml_table(context, dtype_of(b, scores), base, &shape, 1));
}

uir_status uir_rule_tree_ensemble_regressor(uir_rule_context *context) {
    static const char *const names[5] = {"target_treeids", "target_nodeids", "target_ids", "target_weights",
                                         "target_weights_as_tensor"};
    uir_builder *b = &context->builder;
    uir_value_id rows = uir_ml_rows(context), scored;
    uir_ml_ensemble e;
    uir_ml_aggregate aggregate;
    int64_t targets = uir_rule_int(context, "n_targets", 1);
    if (b->status != UIR_STATUS_OK || !read_aggregate(context, &aggregate)) return b->status;
    if (!read_ensemble(context, names, targets, rows, &e)) return b->status;
    uir_value_id scores = add_base(context, uir_ml_walk(context, &e, rows, aggregate, &scored), targets);
    /* One score has nothing to be compared with, and stays, but for PROBIT. */
    if (targets > 1 || uir_ml_transform_is(context, "PROBIT"))
        scores = uir_ml_transform(context, scores, uir_rule_string(context, "post_transform", "NONE"));
    context->outputs[0] = uir_build_cast(b, scores, UIR_DTYPE_F32);
    return b->status;
}

/* ---- classifier ---- */

/* Weights of the first class alone, of two, are a score of the second, and the first one's follows from it. `positive`:
 * all weights are at least 0, a probability. */
static uir_value_id complete_scores(uir_rule_context *context, uir_value_id score, bool positive) {
    uir_builder *b = &context->builder;
    if (uir_ml_transform_is(context, "LOGISTIC"))
        return uir_ml_two_columns(context, sigmoid(b, negate(b, score)), sigmoid(b, score));
    uir_value_id other = positive ? subtract(b, scalar_like(b, score, 1), score) : negate(b, score);
    return uir_ml_two_columns(context, other, score);
}

/* The single class that has weights, where there are two; -1 otherwise. */
static int64_t only_class(const uir_ml_ensemble *e, bool *out_positive) {
    bool has[2] = {false, false};
    *out_positive = true;
    for (uint64_t i = 0; i < (uint64_t)e->leaf_count * (uint64_t)e->target_count; i++) {
        if (!e->scored[i]) continue;
        has[i % (uint64_t)e->target_count % 2] = true;
        *out_positive = *out_positive && e->weight[i] >= 0;
    }
    return e->target_count != 2 || (has[0] && has[1]) ? -1 : has[1];
}

uir_status uir_rule_tree_ensemble_classifier(uir_rule_context *context) {
    static const char *const names[5] = {"class_treeids", "class_nodeids", "class_ids", "class_weights",
                                         "class_weights_as_tensor"};
    uir_builder *b = &context->builder;
    uir_value_id rows = uir_ml_rows(context), scored;
    uir_ml_labels labels = uir_ml_read_labels(context, "classlabels_int64s");
    uir_ml_ensemble e;
    bool positive;
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!labels.count) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the class labels are missing");
    if (!read_ensemble(context, names, labels.count, rows, &e)) return b->status;
    int64_t only = only_class(&e, &positive);
    uir_value_id scores = uir_ml_walk(context, &e, rows, UIR_ML_SUM, &scored);
    const char *transform = uir_rule_string(context, "post_transform", "NONE");
    if (only >= 0) {
        const int64_t last = 1;
        uint32_t count;
        const double *base = uir_ml_reals(context, "base_values", "base_values_as_tensor", &count);
        if (count == 2) scores = add_base(context, scores, 2);
        uir_value_id score = uir_network_slice(b, scores, 1, dim_int(b, only), dim_int(b, 1), 1);
        score = uir_build_squeeze(b, score, &last, 1);
        if (count == 1 && only == 0) score = add_scalar(b, score, base[0]);
        uir_value_id above = greater(b, score, scalar_like(b, score, positive ? 0.5 : 0));
        context->outputs[0] = uir_ml_pick_labels(context, &labels, uir_build_cast(b, above, UIR_DTYPE_I64));
        context->outputs[1] =
            only ? uir_ml_transform(context, scores, transform) : complete_scores(context, score, positive);
    } else {
        scores = add_base(context, scores, labels.count);
        uir_value_id ranked = scores;
        if (scored.id) ranked = uir_build_select(b, scored, scores, scalar_like(b, scores, -1e300));
        context->outputs[0] = uir_ml_pick_labels(context, &labels, uir_ml_greatest(context, ranked));
        context->outputs[1] = uir_ml_transform(context, scores, transform);
    }
    context->outputs[1] = uir_build_cast(b, context->outputs[1], UIR_DTYPE_F32);
    return b->status;
}
