/* An ensemble of trees as one table of states, whatever attributes it came from.
 *
 * A state is a node or a leaf; nodes come first. Walking is: from each tree's root, as many steps as the deepest leaf
 * is down; a leaf leads to itself. */
#ifndef UIR_DECOMPOSE_RULES_ML_TREE_H
#define UIR_DECOMPOSE_RULES_ML_TREE_H

#include "decompose/ml/rules_ml.h"

/* How a feature compares with a node's value: the node takes its true branch when its mask has the bit. */
enum { UIR_ML_LESS = 1, UIR_ML_EQUAL = 2, UIR_ML_GREATER = 4, UIR_ML_UNORDERED = 8 };

typedef struct uir_ml_ensemble {
    uint32_t node_count, leaf_count, tree_count;
    int64_t *feature, *mask, *yes, *no; /* by node; yes and no are states */
    double *value;                      /* by node */
    int64_t *root;                      /* by tree: a state */
    int64_t target_count;
    double *weight;  /* [leaf][target] */
    bool *scored;    /* [leaf][target]: whether the leaf has a weight for it */
    uint32_t depth;  /* steps to the deepest leaf */
    uir_dtype dtype; /* values are compared and weights added in it */
} uir_ml_ensemble;

typedef enum uir_ml_aggregate { UIR_ML_SUM, UIR_ML_AVERAGE, UIR_ML_MIN, UIR_ML_MAX } uir_ml_aggregate;

/* Room for so many nodes, leaves and trees; false after a failure. */
bool uir_ml_allocate_ensemble(uir_rule_context *context, uir_ml_ensemble *e);
/* The mask of a mode, BRANCH_LEQ.. or LEQ..; -1 for one that there is not. A value that is NaN is made ordered. */
int64_t uir_ml_mask(const char *mode, bool missing_is_true, double *value);
/* Checks that every way from a root ends, and measures the longest. `all`: that every node is on one. */
bool uir_ml_measure_ensemble(uir_rule_context *context, uir_ml_ensemble *e, bool all);
/* Scores [N, targets] of rows [N, F]. `out_scored`: bool, whether a tree gave the target anything; none when all
 * targets always get something. */
uir_value_id uir_ml_walk(uir_rule_context *context, const uir_ml_ensemble *e, uir_value_id rows,
                         uir_ml_aggregate aggregate, uir_value_id *out_scored);

#endif
