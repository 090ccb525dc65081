/* Support vector machines of ai.onnx.ml: one score for each pair of classes, votes, and probabilities of the classes
 * from those of the pairs. */
#include "decompose/ml/rules_ml.h"

#include <string.h>

#define TABLE_LIMIT (INT64_C(1) << 28) /* elements of a table made here */

/* ---- kernels ---- */

typedef enum kernel_type { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID } kernel_type;

/* What the kernel gives for rows [N, F] and each support vector [vectors, F]: [N, vectors]. */
static uir_value_id apply_kernel(uir_rule_context *context, uir_value_id rows, int64_t vectors) {
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID", NULL};
    uir_builder *b = &context->builder;
    uint32_t count, given;
    const double *values = uir_ml_reals(context, "support_vectors", NULL, &count);
    const double *parameters = uir_ml_reals(context, "kernel_params", NULL, &given);
    kernel_type kernel = (kernel_type)uir_network_choice(context, "kernel_type", "LINEAR", names);
    int64_t features;
    if (b->status != UIR_STATUS_OK) return rows;
    if (given && given != 3) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute kernel_params has %u elements, not gamma, coef0 and degree",
                         given);
        return rows;
    }
    if (!count || count % vectors) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute support_vectors has %u elements for %lld vectors", count,
                         (long long)vectors);
        return rows;
    }
    const int64_t shape[2] = {vectors, count / vectors}, perm[2] = {1, 0}, first = 0, second = 1, last = 2;
    if (uir_dim_is_const(b->module->dims, uir_build_extent(b, rows, 1), &features) && features != shape[1]) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "support vectors of %lld features for rows of %lld",
                         (long long)shape[1], (long long)features);
        return rows;
    }
    double gamma = given ? parameters[0] : 0, coef0 = given ? parameters[1] : 0, degree = given ? parameters[2] : 0;
    uir_dtype dtype = dtype_of(b, rows);
    uir_value_id table = uir_ml_table(context, dtype, values, shape, 2);
    if (kernel == KERNEL_RBF) {
        uir_value_id difference =
            subtract(b, uir_build_unsqueeze(b, rows, &second, 1), uir_build_unsqueeze(b, table, &first, 1));
        uir_value_id distance = uir_build_reduce(b, UIR_OP_REDUCE_SUM, square(b, difference), &last, 1, false);
        return exponential(b, multiply_scalar(b, distance, -gamma));
    }
    uir_value_id product = uir_build_matmul(b, rows, uir_build_transpose(b, table, perm), dtype);
    if (kernel == KERNEL_LINEAR) return product;
    uir_value_id affine = add_scalar(b, multiply_scalar(b, product, gamma), coef0);
    if (kernel == KERNEL_SIGMOID) return tangent_hyperbolic(b, affine);
    return power(b, affine, scalar_like(b, affine, degree));
}

/* rho[index], which must be there. */
static bool read_rho(uir_rule_context *context, uint32_t least, const double **out_rho) {
    uint32_t count;
    *out_rho = uir_ml_reals(context, "rho", NULL, &count);
    if (context->builder.status != UIR_STATUS_OK) return false;
    if (count >= least) return true;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute rho has %u elements; %u are required", count,
                     least);
    return false;
}

/* Rows times coefficients [targets, features], plus rho's first. */
static uir_value_id linear_scores(uir_rule_context *context, uir_value_id rows, int64_t targets) {
    uir_builder *b = &context->builder;
    uint32_t count;
    const double *coefficients = uir_ml_reals(context, "coefficients", NULL, &count), *rho;
    int64_t features;
    if (!read_rho(context, 1, &rho)) return rows;
    bool known = uir_dim_is_const(b->module->dims, uir_build_extent(b, rows, 1), &features);
    if (!count || count % targets || (known && features != count / targets)) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                         "attribute coefficients has %u elements for %lld scores of %lld features", count,
                         (long long)targets, known ? (long long)features : -1);
        return rows;
    }
    const int64_t shape[2] = {targets, count / targets}, perm[2] = {1, 0};
    uir_value_id table = uir_ml_table(context, dtype_of(b, rows), coefficients, shape, 2);
    return add_scalar(b, uir_build_matmul(b, rows, uir_build_transpose(b, table, perm), dtype_of(b, rows)), rho[0]);
}

/* ---- regressor ---- */

uir_status uir_rule_svm_regressor(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id rows = uir_ml_rows(context), scores;
    int64_t vectors = uir_rule_int(context, "n_supports", 0);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (vectors > 0) {
        uint32_t count;
        const double *coefficients = uir_ml_reals(context, "coefficients", NULL, &count), *rho;
        if (!read_rho(context, 1, &rho)) return b->status;
        if (count != vectors)
            return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute coefficients has %u elements for %lld vectors",
                                    count, (long long)vectors);
        const int64_t shape[2] = {vectors, 1};
        uir_value_id kernels = apply_kernel(context, rows, vectors);
        uir_value_id table = uir_ml_table(context, dtype_of(b, rows), coefficients, shape, 2);
        scores = add_scalar(b, uir_build_matmul(b, kernels, table, dtype_of(b, rows)), rho[0]);
    } else {
        scores = linear_scores(context, rows, 1);
    }
    if (uir_rule_int(context, "one_class", 0)) {
        uir_value_id inside = greater(b, scores, scalar_like(b, scores, 0));
        scores = uir_build_select(b, inside, scalar_like(b, scores, 1), scalar_like(b, scores, -1));
    } else if (uir_ml_transform_is(context, "PROBIT")) {
        /* Any other transform of one score has nothing to compare it with: it stays. */
        scores = uir_ml_transform(context, scores, "PROBIT");
    }
    context->outputs[0] = uir_build_cast(b, scores, UIR_DTYPE_F32);
    return b->status;
}

/* ---- classifier ---- */

typedef struct machine {
    int64_t classes, vectors, pairs;
    const int64_t *per_class; /* vectors of each class, one class after the other */
} machine;

/* Integers that a function of the index gives, as a constant. */
static uir_value_id integers_of(uir_rule_context *context, const int64_t *values, const int64_t *shape, uint32_t rank) {
    uir_builder *b = &context->builder;
    uir_dim dims[UIR_MAX_RANK];
    int64_t count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = dim_int(b, shape[d]);
        count *= shape[d];
    }
    return uir_build_reshape(b, uir_build_integers(b, UIR_DTYPE_I64, values, (uint32_t)count), dims, rank);
}

/* Row r of the coefficients over the vectors of class c: [N, classes * (classes - 1)], element c * (classes - 1) + r.
 * Each class's vectors are padded to as many as the largest has, with its own first one at a coefficient of 0. */
static uir_value_id class_sums(uir_rule_context *context, const machine *m, uir_value_id kernels) {
    uir_builder *b = &context->builder;
    uint32_t count;
    const double *coefficients = uir_ml_reals(context, "coefficients", NULL, &count);
    int64_t most = 1, rows = m->classes - 1;
    if (b->status != UIR_STATUS_OK) return kernels;
    if (count != rows * m->vectors) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                         "attribute coefficients has %u elements for %lld vectors of %lld classes", count,
                         (long long)m->vectors, (long long)m->classes);
        return kernels;
    }
    for (int64_t c = 0; c < m->classes; c++)
        if (m->per_class[c] > most) most = m->per_class[c];
    if (most > TABLE_LIMIT / (m->classes * rows)) {
        uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "%lld classes of up to %lld support vectors: too many",
                         (long long)m->classes, (long long)most);
        return kernels;
    }
    int64_t *index = uir_rule_allocate(context, (size_t)(m->classes * most), sizeof *index);
    double *weight = uir_rule_allocate(context, (size_t)(m->classes * most * rows), sizeof *weight);
    if (!index || !weight) return kernels;
    for (int64_t c = 0, start = 0; c < m->classes; start += m->per_class[c++]) {
        for (int64_t k = 0; k < most; k++) {
            bool own = k < m->per_class[c];
            index[c * most + k] = own ? start + k : start < m->vectors ? start : 0;
            for (int64_t r = 0; own && r < rows; r++)
                weight[(c * most + k) * rows + r] = coefficients[r * m->vectors + start + k];
        }
    }
    const int64_t index_shape[2] = {m->classes, most}, weight_shape[3] = {m->classes, most, rows}, perm[3] = {1, 0, 2};
    uir_value_id padded = uir_build_gather(b, kernels, integers_of(context, index, index_shape, 2), 1);
    uir_value_id table = uir_ml_table(context, dtype_of(b, kernels), weight, weight_shape, 3);
    uir_value_id sums = uir_build_matmul(b, uir_build_transpose(b, padded, perm), table, dtype_of(b, kernels));
    uir_dim dims[2] = {uir_build_extent(b, kernels, 0), dim_int(b, m->classes * rows)};
    return uir_build_reshape(b, uir_build_transpose(b, sums, perm), dims, 2);
}

/* The score of each pair of classes i < j in order: [N, pairs]. Above 0 it speaks for i. */
static uir_value_id pair_scores(uir_rule_context *context, const machine *m, uir_value_id rows) {
    uir_builder *b = &context->builder;
    const double *rho;
    if (!read_rho(context, (uint32_t)m->pairs, &rho)) return rows;
    uir_value_id sums = class_sums(context, m, apply_kernel(context, rows, m->vectors));
    int64_t *of_first = uir_rule_allocate(context, (size_t)m->pairs, sizeof *of_first);
    int64_t *of_second = uir_rule_allocate(context, (size_t)m->pairs, sizeof *of_second);
    if (!of_first || !of_second) return rows;
    for (int64_t i = 0, pair = 0; i < m->classes; i++) {
        for (int64_t j = i + 1; j < m->classes; j++, pair++) {
            of_first[pair] = i * (m->classes - 1) + j - 1;
            of_second[pair] = j * (m->classes - 1) + i;
        }
    }
    uir_value_id first = uir_build_gather(b, sums, integers_of(context, of_first, &m->pairs, 1), 1);
    uir_value_id second = uir_build_gather(b, sums, integers_of(context, of_second, &m->pairs, 1), 1);
    return add(b, add(b, first, second), uir_ml_table(context, dtype_of(b, rows), rho, &m->pairs, 1));
}

/* [N, classes, classes] of what is there for pairs: element (i, j) is `forward` [N, pairs] of the pair for i < j,
 * `backward` for i > j, 0 for i = j. `transposed`: (j, i). */
static uir_value_id pairs_as_square(uir_rule_context *context, const machine *m, uir_value_id forward,
                                    uir_value_id backward, bool transposed) {
    uir_builder *b = &context->builder;
    int64_t *index = uir_rule_allocate(context, (size_t)(m->classes * m->classes), sizeof *index);
    if (!index) return forward;
    for (int64_t i = 0, pair = 0; i < m->classes; i++) {
        index[i * m->classes + i] = 2 * m->pairs;
        for (int64_t j = i + 1; j < m->classes; j++, pair++) {
            index[i * m->classes + j] = transposed ? m->pairs + pair : pair;
            index[j * m->classes + i] = transposed ? pair : m->pairs + pair;
        }
    }
    const int64_t shape[2] = {m->classes, m->classes};
    uir_dim dims[2] = {uir_build_extent(b, forward, 0), dim_int(b, 1)};
    uir_value_id zero = uir_build_broadcast(b, scalar_like(b, forward, 0), dims, 2);
    uir_value_id all = uir_build_concat(b, (uir_value_id[]){forward, backward, zero}, 3, 1);
    return uir_build_gather(b, all, integers_of(context, index, shape, 2), 1);
}

/* The class that most pairs speak for, of equal ones the first: [N]. */
static uir_value_id most_votes(uir_rule_context *context, const machine *m, uir_value_id scores) {
    uir_builder *b = &context->builder;
    const int64_t last = 2;
    uir_value_id for_first = uir_build_cast(b, greater(b, scores, scalar_like(b, scores, 0)), UIR_DTYPE_F32);
    uir_value_id for_second = subtract(b, scalar_like(b, for_first, 1), for_first);
    uir_value_id votes = pairs_as_square(context, m, for_first, for_second, false);
    return uir_ml_greatest(context, uir_build_reduce(b, UIR_OP_REDUCE_SUM, votes, &last, 1, false));
}

/* ---- probabilities ----
 * T.-F. Wu, C.-J. Lin, R. C. Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling (2004),
 * algorithm 2: with r[i][j] the probability of class i among i and j, p minimises p'Qp where Q[t][t] is the sum of
 * r[j][t] squared and Q[t][j] = -r[j][t] r[t][j]. One class after the other, until Qp is the same for all. */

typedef struct coupling {
    const machine *machine;
    uir_value_id q;        /* [N, classes, classes] */
    uir_value_id diagonal; /* [N, classes] */
} coupling;

/* Column `index` (rank 0) of [N, classes]: [N, 1]. */
static uir_value_id column(uir_builder *b, uir_value_id matrix, uir_value_id index) {
    const int64_t last = 1;
    return uir_build_unsqueeze(b, uir_build_gather(b, matrix, index, 1), &last, 1);
}

/* One round over the classes: p [N, classes], Qp [N, classes], p'Qp [N, 1] become the next. */
static void couple_round(uir_builder *b, const coupling *c, uir_value_id values[3]) {
    uir_loop loop;
    uir_dim classes = dim_int(b, c->machine->classes);
    if (b->status != UIR_STATUS_OK || !uir_network_loop_begin(b, values, 3, &loop)) return;
    uir_builder *in = &loop.body;
    uir_value_id p = loop.carried[0], qp = loop.carried[1], pqp = loop.carried[2], t = loop.iteration;
    uir_value_id own = column(in, c->diagonal, t), own_qp = column(in, qp, t);
    uir_value_id change = divide(in, subtract(in, pqp, own_qp), own), scale = add_scalar(in, change, 1);
    uir_value_id here = equal(in, uir_build_iota(in, UIR_DTYPE_I64, &classes, 1, 0), t);
    p = divide(in, add(in, p, uir_build_select(in, here, change, scalar_like(in, change, 0))), scale);
    uir_value_id more = multiply(in, change, add(in, multiply(in, change, own), multiply_scalar(in, own_qp, 2)));
    pqp = divide(in, divide(in, add(in, pqp, more), scale), scale);
    qp = divide(in, add(in, qp, multiply(in, change, uir_build_gather(in, c->q, t, 1))), scale);
    uir_network_loop_end(b, &loop, classes, values, (uir_value_id[]){p, qp, pqp}, NULL, 0, values);
}

/* Goes on while a row is not there yet; rows that are keep what they have. */
static uir_status make_couple_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                   uir_graph_id *out_graph) {
    const coupling *c = user;
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    uir_value_id p = uir_graph_get(b->module, *out_graph)->inputs.data[2];
    const int64_t second = 1, last = 2, axes[2] = {0, 1};
    uir_value_id products = multiply(b, c->q, uir_build_unsqueeze(b, p, &second, 1));
    uir_value_id qp = uir_build_reduce(b, UIR_OP_REDUCE_SUM, products, &last, 1, false);
    uir_value_id pqp = reduce_sum(b, multiply(b, p, qp), &second, 1);
    uir_value_id error = reduce_max(b, absolute(b, subtract(b, qp, pqp)), &second, 1);
    uir_value_id active = greater_equal(b, error, scalar_like(b, error, 0.005 / (double)c->machine->classes));
    uir_value_id values[3] = {p, qp, pqp};
    couple_round(b, c, values);
    uir_value_id outputs[2] = {uir_build_reduce(b, UIR_OP_REDUCE_MAX, active, axes, 2, false),
                               uir_build_select(b, active, values[0], p)};
    return uir_math_end_body(context, saved, outputs, 2);
}

/* Probabilities of the classes by the scores of pairs. */
static uir_value_id couple(uir_rule_context *context, const machine *m, uir_value_id scores, const double *a,
                           const double *added) {
    uir_builder *b = &context->builder;
    uir_dtype dtype = dtype_of(b, scores);
    uir_value_id slope = uir_ml_table(context, dtype, a, &m->pairs, 1);
    uir_value_id base = uir_ml_table(context, dtype, added, &m->pairs, 1);
    uir_value_id first = sigmoid(b, negate(b, add(b, multiply(b, scores, slope), base)));
    first = uir_network_clamp(b, first, 1e-7, 1 - 1e-7);
    uir_value_id other = subtract(b, scalar_like(b, first, 1), first);
    uir_value_id r = pairs_as_square(context, m, first, other, false);
    uir_value_id turned = pairs_as_square(context, m, first, other, true);
    const int64_t last = 2, second = 1;
    uir_dim classes = dim_int(b, m->classes), dims[2] = {uir_build_extent(b, scores, 0), classes};
    uir_value_id diagonal = uir_build_reduce(b, UIR_OP_REDUCE_SUM, square(b, turned), &last, 1, false);
    uir_value_id range = uir_build_iota(b, UIR_DTYPE_I64, &classes, 1, 0);
    uir_value_id is_diagonal = equal(b, uir_build_unsqueeze(b, range, &second, 1), range);
    uir_value_id q =
        uir_build_select(b, is_diagonal, uir_build_unsqueeze(b, diagonal, &last, 1), negate(b, multiply(b, r, turned)));
    uir_value_id p = uir_build_broadcast(b, scalar_like(b, scores, 1 / (double)m->classes), dims, 2), result = p;
    if (b->status != UIR_STATUS_OK) return scores;
    coupling c = {m, q, diagonal};
    uir_value_id turns = uir_build_integer_scalar(b, UIR_DTYPE_I64, m->classes > 100 ? m->classes : 100);
    uir_status status = uir_math_loop(context, turns, (uir_value_id){0}, &p, 1, make_couple_body, &c, &result, 1);
    return status == UIR_STATUS_OK ? result : scores;
}

/* vectors_per_class against the labels; no vectors at all: *m has none. */
static bool read_machine(uir_rule_context *context, int64_t labels, machine *m) {
    int64_t count = uir_rule_ints(context, "vectors_per_class", &m->per_class);
    *m = (machine){.classes = labels, .pairs = labels * (labels - 1) / 2, .per_class = m->per_class};
    for (int64_t c = 0; c < count; c++) {
        if (m->per_class[c] < 0 || m->per_class[c] > INT32_MAX - m->vectors) {
            uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "class %lld has %lld support vectors",
                             (long long)c, (long long)m->per_class[c]);
            return false;
        }
        m->vectors += m->per_class[c];
    }
    if (!m->vectors || (count == labels && labels >= 2)) return true;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                     "attribute vectors_per_class has %lld elements for %lld labels; two or more are required",
                     (long long)count, (long long)labels);
    return false;
}

uir_status uir_rule_svm_classifier(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id rows = uir_ml_rows(context), scores;
    uir_ml_labels labels = uir_ml_read_labels(context, "classlabels_ints");
    const char *transform = uir_rule_string(context, "post_transform", "NONE");
    machine m = {0};
    uint32_t a_count, b_count;
    const double *prob_a = uir_ml_reals(context, "prob_a", NULL, &a_count);
    const double *prob_b = uir_ml_reals(context, "prob_b", NULL, &b_count);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!labels.count) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the class labels are missing");
    if (labels.count > 10000)
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "%lld classes: more than 10000", (long long)labels.count);
    if (!read_machine(context, labels.count, &m)) return b->status;
    if (!m.vectors) {
        scores = linear_scores(context, rows, labels.count);
        context->outputs[0] = uir_ml_pick_labels(context, &labels, uir_ml_greatest(context, scores));
    } else {
        scores = pair_scores(context, &m, rows);
        context->outputs[0] = uir_ml_pick_labels(context, &labels, most_votes(context, &m, scores));
        if (!uir_ml_same_length(context, "prob_a", a_count, "prob_b", b_count)) return b->status;
        if (a_count && !uir_ml_same_length(context, "prob_a", a_count, "the pairs of classes", (uint32_t)m.pairs))
            return b->status;
        if (a_count) {
            scores = couple(context, &m, scores, prob_a, prob_b);
        } else if (m.pairs == 1 && strcmp(transform, "PROBIT") != 0) {
            const int64_t last = 1;
            uir_value_id score = uir_build_squeeze(b, scores, &last, 1);
            scores = uir_ml_two_columns(context, negate(b, score), score);
        }
    }
    context->outputs[1] = uir_build_cast(b, uir_ml_transform(context, scores, transform), UIR_DTYPE_F32);
    return b->status;
}
