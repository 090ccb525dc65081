/* TreeEnsemble (ai.onnx.ml 5): nodes and leaves apart, roots by number, membership in sets. */
#include "decompose/ml/rules_ml_tree.h"

#include <math.h>

enum { MODE_MEMBER = 6 };

typedef struct lists {
    uint32_t nodes, leaves, members;
    const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *missing, *target, *root; /* missing may be NULL */
    const double *split, *weight, *member;
    const uir_tensor *mode;
    uint32_t *first; /* the first state of each node: a membership takes one a member */
} lists;

static bool read_list(uir_rule_context *context, const char *name, uint32_t count, const int64_t **out_values) {
    int64_t found = uir_rule_ints(context, name, out_values);
    return uir_ml_same_length(context, name, found < 0 ? 0 : (uint32_t)found, "nodes_modes or leaf_weights", count);
}

static bool read_lists(uir_rule_context *context, lists *l, uint32_t *out_trees) {
    const uir_attribute *modes = uir_rule_attribute(context, "nodes_modes");
    uint32_t splits;
    int64_t trees = uir_rule_ints(context, "tree_roots", &l->root);
    if (!modes || modes->kind != UIR_ATTRIBUTE_TENSOR || modes->value.tensor->dtype != UIR_DTYPE_U8 || trees < 1 ||
        modes->value.tensor->element_count > INT32_MAX) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute nodes_modes (u8) or tree_roots is missing");
        return false;
    }
    l->mode = modes->value.tensor;
    l->nodes = (uint32_t)l->mode->element_count;
    *out_trees = (uint32_t)trees;
    l->split = uir_ml_reals(context, "nodes_splits", "nodes_splits", &splits);
    l->weight = uir_ml_reals(context, "leaf_weights", "leaf_weights", &l->leaves);
    l->member = uir_ml_reals(context, "membership_values", "membership_values", &l->members);
    bool good = uir_ml_same_length(context, "nodes_splits", splits, "nodes_modes", l->nodes) &&
                read_list(context, "nodes_featureids", l->nodes, &l->feature) &&
                read_list(context, "nodes_truenodeids", l->nodes, &l->yes) &&
                read_list(context, "nodes_falsenodeids", l->nodes, &l->no) &&
                read_list(context, "nodes_trueleafs", l->nodes, &l->yes_leaf) &&
                read_list(context, "nodes_falseleafs", l->nodes, &l->no_leaf) &&
                read_list(context, "leaf_targetids", l->leaves, &l->target);
    if (good && uir_rule_ints(context, "nodes_missing_value_tracks_true", &l->missing) <= 0)
        l->missing = NULL;
    else
        good = good && read_list(context, "nodes_missing_value_tracks_true", l->nodes, &l->missing);
    return good;
}

/* Gives each node its states; the sets come one after the other, NaN at the end of each. */
static bool number_states(uir_rule_context *context, lists *l, uir_ml_ensemble *e) {
    uint32_t at = 0;
    uint64_t states = 0;
    const uint8_t *modes = l->mode->data;
    l->first = uir_rule_allocate(context, l->nodes + 1u, sizeof *l->first);
    if (!l->first) return false;
    for (uint32_t i = 0; i < l->nodes; i++) {
        uint32_t size = 1, begin = at;
        if (modes[i] == MODE_MEMBER) {
            while (at < l->members && !isnan(l->member[at])) at++;
            size = at > begin ? at - begin : 1;
            if (at == l->members) {
                uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                 "the set of node %u is not in membership_values", i);
                return false;
            }
            at++;
        }
        l->first[i] = (uint32_t)states;
        states += size;
    }
    l->first[l->nodes] = (uint32_t)states;
    e->node_count = (uint32_t)states;
    e->leaf_count = l->leaves;
    return uir_ml_allocate_ensemble(context, e);
}

/* The state of a node or leaf by number; -1 for one that there is not. */
static int64_t state_of(const lists *l, const uir_ml_ensemble *e, int64_t number, bool leaf) {
    if (number < 0 || number >= (leaf ? l->leaves : l->nodes)) return -1;
    return leaf ? (int64_t)e->node_count + number : l->first[number];
}

static bool fill_node(uir_rule_context *context, const lists *l, uir_ml_ensemble *e, uint32_t i, uint32_t *member) {
    static const char *const modes[] = {"LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "EQ"};
    uint8_t mode = ((const uint8_t *)l->mode->data)[i];
    int64_t yes = state_of(l, e, l->yes[i], l->yes_leaf[i] != 0), no = state_of(l, e, l->no[i], l->no_leaf[i] != 0);
    bool missing = l->missing && l->missing[i];
    if (mode > MODE_MEMBER || yes < 0 || no < 0) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "node %u has an invalid mode %u or branch: %lld, %lld",
                         i, mode, (long long)l->yes[i], (long long)l->no[i]);
        return false;
    }
    for (uint32_t s = l->first[i]; s < l->first[i + 1]; s++) {
        e->feature[s] = l->feature[i];
        e->value[s] = l->split[i];
        if (mode == MODE_MEMBER) e->value[s] = l->member[(*member)++];
        e->yes[s] = yes;
        e->no[s] = s + 1 < l->first[i + 1] ? (int64_t)s + 1 : no;
        /* Of an empty set the NaN that ends it was taken: nothing is equal to it. */
        bool empty = mode == MODE_MEMBER && isnan(e->value[s]);
        e->mask[s] = uir_ml_mask(modes[mode], missing, &e->value[s]);
        if (empty) (*member)--;
    }
    if (mode == MODE_MEMBER) (*member)++;
    return true;
}

static bool read_ensemble(uir_rule_context *context, uir_ml_ensemble *e) {
    lists l = {0};
    uint32_t member = 0;
    if (!read_lists(context, &l, &e->tree_count) || !number_states(context, &l, e)) return false;
    for (uint32_t i = 0; i < l.nodes; i++)
        if (!fill_node(context, &l, e, i, &member)) return false;
    for (uint32_t i = 0; i < l.leaves; i++) {
        if (l.target[i] < 0 || l.target[i] >= e->target_count) {
            uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "leaf %u has target %lld of %lld", i,
                             (long long)l.target[i], (long long)e->target_count);
            return false;
        }
        e->weight[i * e->target_count + l.target[i]] = l.weight[i];
        e->scored[i * e->target_count + l.target[i]] = true;
    }
    for (uint32_t t = 0; t < e->tree_count; t++) {
        e->root[t] = state_of(&l, e, l.root[t], false);
        if (e->root[t] >= 0) continue;
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "tree_roots names node %lld of %u",
                         (long long)l.root[t], l.nodes);
        return false;
    }
    return uir_ml_measure_ensemble(context, e, false);
}

uir_status uir_rule_tree_ensemble(uir_rule_context *context) {
    static const uir_ml_aggregate aggregates[] = {UIR_ML_AVERAGE, UIR_ML_SUM, UIR_ML_MIN, UIR_ML_MAX};
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    uir_builder *b = &context->builder;
    int64_t aggregate = uir_rule_int(context, "aggregate_function", 1),
            transform = uir_rule_int(context, "post_transform", 0);
    uir_dtype dtype = uir_rule_dtype(context, uir_rule_input(context, 0));
    if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "aggregate_function is %lld and post_transform %lld",
                                (long long)aggregate, (long long)transform);
    uir_ml_ensemble e = {.target_count = uir_rule_int(context, "n_targets", 1),
                         .dtype = dtype == UIR_DTYPE_F64 ? dtype : UIR_DTYPE_F32};
    uir_value_id rows = uir_ml_rows(context), scored;
    if (b->status != UIR_STATUS_OK || !read_ensemble(context, &e)) return b->status;
    uir_value_id scores = uir_ml_walk(context, &e, rows, aggregates[aggregate], &scored);
    context->outputs[0] = uir_build_cast(b, uir_ml_transform(context, scores, transforms[transform]), dtype);
    return b->status;
}
