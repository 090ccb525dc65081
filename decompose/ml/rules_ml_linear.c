/* Linear models of ai.onnx.ml. */
#include "decompose/ml/rules_ml.h"

#include <string.h>

/* The product of rows [N, C] and coefficients [targets, C], plus the intercepts. */
static uir_value_id linear(uir_rule_context *context, uir_value_id rows, int64_t targets) {
    uir_builder *b = &context->builder;
    uint32_t count, intercepts;
    const double *coefficients = uir_ml_reals(context, "coefficients", NULL, &count);
    const double *added = uir_ml_reals(context, "intercepts", NULL, &intercepts);
    int64_t features;
    if (b->status != UIR_STATUS_OK) return rows;
    if (targets < 1 || !count || count % targets) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%u coefficients for %lld targets", count, (long long)targets);
        return rows;
    }
    const int64_t shape[2] = {targets, count / targets}, perm[2] = {1, 0}, width = targets;
    if (uir_dim_is_const(b->module->dims, uir_build_extent(b, rows, 1), &features) && features != shape[1]) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "coefficients of %lld features for rows of %lld", (long long)shape[1],
                         (long long)features);
        return rows;
    }
    uir_dtype dtype = dtype_of(b, rows);
    uir_value_id matrix = uir_build_transpose(b, uir_ml_table(context, dtype, coefficients, shape, 2), perm);
    uir_value_id scores = uir_build_matmul(b, rows, matrix, dtype);
    if (!intercepts) return scores;
    if (!uir_ml_same_length(context, "intercepts", intercepts, "the targets", (uint32_t)targets)) return rows;
    return add(b, scores, uir_ml_table(context, dtype, added, &width, 1));
}

uir_status uir_rule_linear_regressor(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id scores = linear(context, uir_ml_rows(context), uir_rule_int(context, "targets", 1));
    /* One score has nothing to be compared with: it stays, but for PROBIT. */
    if (uir_rule_int(context, "targets", 1) > 1 || uir_ml_transform_is(context, "PROBIT"))
        scores = uir_ml_transform(context, scores, uir_rule_string(context, "post_transform", "NONE"));
    context->outputs[0] = uir_build_cast(b, scores, UIR_DTYPE_F32);
    return b->status;
}

uir_status uir_rule_linear_classifier(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id rows = uir_ml_rows(context);
    uir_ml_labels labels = uir_ml_read_labels(context, "classlabels_ints");
    uint32_t targets;
    const char *transform = uir_rule_string(context, "post_transform", "NONE");
    (void)uir_ml_reals(context, "intercepts", NULL, &targets);
    if (!targets) targets = labels.count == 2 ? 1 : (uint32_t)labels.count;
    uir_value_id scores = linear(context, rows, targets);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (targets > 1) {
        if (labels.count && labels.count != targets)
            return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%lld labels for %u scores", (long long)labels.count,
                                    targets);
        context->outputs[0] = uir_ml_pick_labels(context, &labels, uir_ml_greatest(context, scores));
        context->outputs[1] = uir_ml_transform(context, scores, transform);
    } else {
        const int64_t last = 1;
        uir_value_id score = uir_build_squeeze(b, scores, &last, 1);
        uir_value_id above = uir_build_cast(b, greater(b, score, scalar_like(b, score, 0)), UIR_DTYPE_I64);
        if (labels.count > 2)
            return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%lld labels for one score", (long long)labels.count);
        bool two = labels.count == 2;
        context->outputs[0] = two ? uir_ml_pick_labels(context, &labels, above) : above;
        if (!strcmp(transform, "PROBIT") || !two) {
            context->outputs[1] = two ? uir_ml_transform(context, scores, transform) : scores;
        } else if (!strcmp(transform, "LOGISTIC")) {
            context->outputs[1] = uir_ml_two_columns(context, sigmoid(b, negate(b, score)), sigmoid(b, score));
        } else {
            uir_value_id other = subtract(b, scalar_like(b, score, 1), score);
            context->outputs[1] = uir_ml_two_columns(context, other, score);
        }
    }
    context->outputs[1] = uir_build_cast(b, context->outputs[1], UIR_DTYPE_F32);
    return b->status;
}
