#include "accuracy.h"
#include "query.h"

#include <math.h>
#include <string.h>

bool accuracy_is_lowered(const uir_model_info *info) {
    return info->f16_count || info->bf16_count;
}

uir_dtype accuracy_of(const uir_model_info *info) {
    return info->bf16_count ? UIR_DTYPE_BF16 : info->f16_count ? UIR_DTYPE_F16 : UIR_DTYPE_F32;
}

/* ---- measuring ---- */
/* What is infinite or no number on one side alone is no finite difference: such results are of no use. */
static void take(run_accuracy *accuracy, const uir_comparison *d) {
    accuracy->max_abs = fmax(accuracy->max_abs, d->max_abs);
    accuracy->max_rel = fmax(accuracy->max_rel, d->max_rel);
}

static uir_status compare_with_exact(uir_session *exact, run_function *run, uir_session *session, const run_case *c,
                                     case_result *result) {
    double ms;
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < c->input_count && status == UIR_STATUS_OK; i++)
        status = uir_session_set_input(exact, i, c->inputs[i]);
    if (status == UIR_STATUS_OK) status = run(exact, 0, &ms);
    for (size_t i = 0; i < c->output_count && status == UIR_STATUS_OK; i++) {
        uir_value *value = NULL, *wanted = NULL;
        status = uir_session_get_output(session, i, &value);
        if (status == UIR_STATUS_OK) status = uir_session_get_output(exact, i, &wanted);
        if (status != UIR_STATUS_OK) break;
        uir_comparison d = query_comparison(value, wanted, c->tolerance);
        take(&result->accuracy, &d);
        result->accuracy.agrees &= d.agree;
    }
    return status;
}

uir_status accuracy_measure(uir_model *exact, const uir_session_options *options, run_function *run,
                            uir_session *session, const run_case *c, case_result *result) {
    run_accuracy *accuracy = &result->accuracy;
    accuracy->agrees = true;
    if (exact) {
        uir_session *other = NULL;
        accuracy->against = "a run in f32";
        uir_status status = uir_session_create(exact, options, &other);
        if (status == UIR_STATUS_OK) status = compare_with_exact(other, run, session, c, result);
        uir_session_destroy(other);
        return status;
    }
    for (size_t i = 0; i < c->output_count; i++) {
        if (!result->compared[i]) continue;
        accuracy->against = "what was expected";
        take(accuracy, &result->comparisons[i]);
        accuracy->agrees &= result->comparisons[i].agree;
    }
    return UIR_STATUS_OK;
}

/* ---- telling ---- */
void accuracy_report(const uir_model *model, const case_result *result) {
    uir_model_info info = query_info(model);
    const run_accuracy *a = &result->accuracy;
    if (!accuracy_is_lowered(&info)) {
        if (strcmp(info.precision, "f32") != 0)
            printf("  precision: f32 instead of %s: no product has f16 or bf16 operands\n", info.precision);
        return;
    }
    printf("  precision: ");
    if (info.f16_count) printf("f16 in %u of %u products", info.f16_count, info.product_count);
    if (info.bf16_count)
        printf("%sbf16 in %u of %u products", info.f16_count ? ", " : "", info.bf16_count, info.product_count);
    if (info.out_of_range_count) printf(", %u stay f32: their weights are out of range", info.out_of_range_count);
    putchar('\n');
    if (a->against)
        printf("  accuracy: greatest difference %.3g, relative %.3g, to %s%s\n", a->max_abs, a->max_rel, a->against,
               a->agrees ? "" : ", beyond the tolerance");
    else
        printf("  accuracy: unknown; give --accuracy to compare with a run in f32, or --data with expected outputs\n");
}
