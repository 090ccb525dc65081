/* Text: joined, split, cleaned, matched, counted; and pictures. Lists that are attributes become constant operands. */
#include "base/regex.h"
#include "decompose/math/rules_math.h"
#include "image/decode.h"

#include <string.h>

/* The attribute as a constant; the none value when it is absent. */
static uir_value_id constant_attribute(uir_rule_context *context, const char *name) {
    const uir_attribute *attribute = uir_rule_attribute(context, name);
    return attribute ? uir_math_constant_of(context, attribute) : (uir_value_id){0};
}

uir_status uir_rule_string_concat(uir_rule_context *context) {
    context->outputs[0] = uir_build_binary(&context->builder, UIR_OP_STRING_CONCAT, uir_rule_input(context, 0),
                                           uir_rule_input(context, 1));
    return context->builder.status;
}

uir_status uir_rule_string_split(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id inputs[2] = {uir_rule_input(context, 0), constant_attribute(context, "delimiter")};
    int64_t most = uir_rule_int(context, "maxsplit", -1);
    uir_attribute attribute = uir_attribute_int(b, "most", most < 0 ? -1 : most);
    (void)uir_rule_rank(context, inputs[0]);
    uir_build_node(b, UIR_OP_STRING_SPLIT, inputs, inputs[1].id ? 2 : 1, &attribute, 1, context->outputs, 2);
    return b->status;
}

uir_status uir_rule_string_normalizer(uir_rule_context *context) {
    static const char *const cases[] = {"NONE", "LOWER", "UPPER"};
    uir_builder *b = &context->builder;
    const char *wanted = uir_rule_string(context, "case_change_action", "NONE");
    uir_value_id inputs[2] = {uir_rule_input(context, 0), constant_attribute(context, "stopwords")};
    bool known = false;
    for (int i = 0; i < 3; i++) known = known || !strcmp(wanted, cases[i]);
    if (!known)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "attribute case_change_action is '%s'; it must be NONE, LOWER or UPPER", wanted);
    uir_attribute attributes[] = {
        uir_attribute_string(b, "case", wanted),
        uir_attribute_int(b, "sensitive", uir_rule_int(context, "is_case_sensitive", 0) != 0)};
    (void)uir_rule_rank(context, inputs[0]);
    uir_build_node(b, UIR_OP_STRING_NORMALIZE, inputs, inputs[1].id ? 2 : 1, attributes, 2, context->outputs, 1);
    return b->status;
}

/* A pattern that is none is told when the model is read. */
static uir_status check_pattern(uir_rule_context *context, const uir_attribute *attribute) {
    uir_arena arena;
    uir_regex *regex;
    const char *problem = NULL;
    size_t place = 0;
    uir_string text = attribute->value.string;
    uir_arena_init(&arena, context->builder.module->allocator);
    uir_status status = uir_regex_compile(&arena, uir_string_text(&context->source->strings, text),
                                          uir_string_length(&context->source->strings, text), &regex, &problem, &place);
    uir_arena_deinit(&arena);
    if (status == UIR_STATUS_OK || !problem) return status;
    return uir_builder_fail(&context->builder, status, "attribute pattern: %s, at byte %zu", problem, place);
}

uir_status uir_rule_regex_full_match(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    const uir_attribute *pattern = uir_rule_attribute(context, "pattern");
    if (!pattern || pattern->kind != UIR_ATTRIBUTE_STRING)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute pattern is missing");
    UIR_TRY(check_pattern(context, pattern));
    uir_value_id inputs[2] = {uir_rule_input(context, 0), uir_math_constant_of(context, pattern)};
    (void)uir_rule_rank(context, inputs[0]);
    uir_build_node(b, UIR_OP_REGEX_MATCH, inputs, 2, NULL, 0, context->outputs, 1);
    return b->status;
}

/* One more than the greatest column; -1 after a failure. */
static int64_t count_columns(uir_rule_context *context) {
    const int64_t *columns;
    int64_t count = uir_rule_ints(context, "ngram_indexes", &columns), most = -1;
    for (int64_t i = 0; i < count; i++) {
        if (columns[i] < 0 || columns[i] >= INT32_MAX) {
            uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute ngram_indexes holds %lld",
                             (long long)columns[i]);
            return -1;
        }
        most = columns[i] > most ? columns[i] : most;
    }
    if (most < 0) uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute ngram_indexes is empty");
    return most + 1;
}

static bool is_mode(const char *mode) {
    return !strcmp(mode, "TF") || !strcmp(mode, "IDF") || !strcmp(mode, "TFIDF");
}

uir_status uir_rule_tf_idf_vectorizer(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    bool text = uir_rule_dtype(context, x) == UIR_DTYPE_STRING;
    const char *mode = uir_rule_string(context, "mode", "");
    int64_t min = uir_rule_int(context, "min_gram_length", 0), max = uir_rule_int(context, "max_gram_length", 0);
    int64_t skip = uir_rule_int(context, "max_skip_count", 0), columns = count_columns(context);
    if (columns < 0 || b->status != UIR_STATUS_OK) return b->status;
    if (!is_mode(mode))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute mode is '%s'; it must be TF, IDF or TFIDF", mode);
    if (min < 1 || max < min || skip < 0 || skip > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "n-grams of %lld to %lld words with a skip of %lld",
                                (long long)min, (long long)max, (long long)skip);
    uir_value_id inputs[5] = {text ? x : uir_build_cast(b, x, UIR_DTYPE_I64),
                              constant_attribute(context, text ? "pool_strings" : "pool_int64s"),
                              constant_attribute(context, "ngram_counts"), constant_attribute(context, "ngram_indexes"),
                              constant_attribute(context, "weights")};
    if (b->status == UIR_STATUS_OK && (!inputs[1].id || !inputs[2].id))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the pool of %s or ngram_counts is missing",
                                text ? "strings" : "integers");
    uir_attribute attributes[] = {uir_attribute_int(b, "min", min), uir_attribute_int(b, "max", max),
                                  uir_attribute_int(b, "skip", skip), uir_attribute_string(b, "mode", mode),
                                  uir_attribute_int(b, "columns", columns)};
    (void)uir_rule_rank(context, x);
    uir_build_node(b, UIR_OP_TF_IDF, inputs, inputs[4].id ? 5 : 4, attributes, 5, context->outputs, 1);
    return b->status;
}

uir_status uir_rule_image_decoder(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    const char *format = uir_rule_string(context, "pixel_format", "RGB");
    if (!uir_image_has_format(format))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "attribute pixel_format is '%s'; it must be RGB, BGR or Grayscale", format);
    (void)uir_rule_rank(context, x);
    uir_attribute attribute = uir_attribute_string(b, "format", format);
    uir_build_node(b, UIR_OP_IMAGE_DECODE, &x, 1, &attribute, 1, context->outputs, 1);
    return b->status;
}
