/* Shared parts of the rules of ai.onnx.ml: attribute lists as constants, post-transforms of scores, labels.
 *
 * Sticky like the builder: after a failure each call does nothing. */
#ifndef UIR_DECOMPOSE_RULES_ML_H
#define UIR_DECOMPOSE_RULES_ML_H

#include "decompose/math/rules_math.h"
#include "decompose/network/rules_network.h"

/* Numbers of an attribute of floats, or of the f32 or f64 tensor attribute that replaces it; *out_count 0 if both are
 * absent. Borrowed or arena memory. `tensor` may be NULL. */
const double *uir_ml_reals(uir_rule_context *context, const char *name, const char *tensor, uint32_t *out_count);
/* Whether that tensor attribute is f64. */
bool uir_ml_is_double(const uir_rule_context *context, const char *tensor);
/* Fails unless two lists are equally long. */
bool uir_ml_same_length(uir_rule_context *context, const char *a, uint32_t a_count, const char *b, uint32_t b_count);
/* A constant of floats. */
uir_value_id uir_ml_table(uir_rule_context *context, uir_dtype dtype, const double *values, const int64_t *shape,
                          uint32_t rank);
/* Input 0 as rows [N, C]; [C] is one row. f64 stays, all other types become f32. */
uir_value_id uir_ml_rows(uir_rule_context *context);
/* `x` [.., C] after the post_transform of that name: NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT. */
uir_value_id uir_ml_transform(uir_rule_context *context, uir_value_id x, const char *name);
bool uir_ml_transform_is(uir_rule_context *context, const char *name);

/* The labels of a classifier, strings or integers, and their number. */
typedef struct uir_ml_labels {
    uir_value_id values; /* [count]; NONE without labels */
    int64_t count;
} uir_ml_labels;
uir_ml_labels uir_ml_read_labels(uir_rule_context *context, const char *integers);
/* The labels at `indices`; without labels, the indices. */
uir_value_id uir_ml_pick_labels(uir_rule_context *context, const uir_ml_labels *labels, uir_value_id indices);
/* Argmax over the last axis of [N, C]: [N]; the first of equal ones. */
uir_value_id uir_ml_greatest(uir_rule_context *context, uir_value_id scores);
/* [N] as two columns [N, 2]. */
uir_value_id uir_ml_two_columns(uir_rule_context *context, uir_value_id first, uir_value_id second);

#endif
