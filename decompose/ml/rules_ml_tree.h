/* A tree ensemble as one table of states, for all forms of attributes.
 *
 * A state is a node or a leaf; nodes come first. The walk starts at each tree's root and takes as many steps as the
 * depth of the deepest leaf; a leaf leads to itself. */
#ifndef UIR_DECOMPOSE_RULES_ML_TREE_H
#define UIR_DECOMPOSE_RULES_ML_TREE_H

#include "decompose/ml/rules_ml.h"

/* Comparison of a feature with a node's value: the node takes its true branch if its mask has the bit. */
enum { UIR_ML_LESS = 1, UIR_ML_EQUAL = 2, UIR_ML_GREATER = 4, UIR_ML_UNORDERED = 8 };

typedef struct uir_ml_ensemble {
    uint32_t node_count, leaf_count, tree_count;
    int64_t *feature, *mask, *yes, *no; /* by node; yes and no are states */
    double *value;                      /* by node */
    int64_t *root;                      /* by tree: a state */
    int64_t target_count;
    double *weight;  /* [leaf][target] */
    bool *scored;    /* [leaf][target]: the leaf has a weight for it */
    uint32_t depth;  /* steps to the deepest leaf */
    uir_dtype dtype; /* dtype of comparisons and sums */
} uir_ml_ensemble;

typedef enum uir_ml_aggregate { UIR_ML_SUM, UIR_ML_AVERAGE, UIR_ML_MIN, UIR_ML_MAX } uir_ml_aggregate;

/* Allocates nodes, leaves and trees by their counts; false after a failure. */
bool uir_ml_allocate_ensemble(uir_rule_context *context, uir_ml_ensemble *e);
/* The mask of a mode, BRANCH_LEQ.. or LEQ..; -1 if unknown. A NaN in `value` is replaced, with its mask adapted. */
int64_t uir_ml_mask(const char *mode, bool missing_is_true, double *value);
/* Checks that all paths from roots end, and measures the longest. `all`: that every node is on a path. */
bool uir_ml_measure_ensemble(uir_rule_context *context, uir_ml_ensemble *e, bool all);
/* Scores [N, targets] of rows [N, F]. `out_scored`: bool, whether any tree has a weight for the target; NONE if all
 * targets always get one. */
uir_value_id uir_ml_walk(uir_rule_context *context, const uir_ml_ensemble *e, uir_value_id rows,
                         uir_ml_aggregate aggregate, uir_value_id *out_scored);

#endif
