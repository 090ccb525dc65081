/* Einsum: operands are joined from left to right, each pair by one batched matrix product.
 *
 * A letter of an operand is, for the pair at hand: batch (both have it and it is still needed), contracted (both have
 * it and nobody needs it any more), or free. Letters that only one operand has and nobody needs are summed before; a
 * letter that an operand has twice takes its diagonal. Axes behind an ellipsis are letters of their own, counted from
 * the right, and broadcast. Meaning: the operator document of ONNX, numpy.einsum. */
#include "decompose/math/rules_math.h"
#include <string.h>

#define ELLIPSIS_FIRST                                                                                                 \
    256 /* letters at or above it: axis (letter - ELLIPSIS_FIRST) from the right behind the ellipsis */

typedef struct term {
    uir_value_id value;
    uint16_t letters[UIR_MAX_RANK];
    uint32_t count;
} term;

typedef struct notation {
    term operands[UIR_MAX_RANK * 2];
    uint32_t operand_count;
    term result; /* letters only */
} notation;

static bool has(const term *t, uint16_t letter, uint32_t *out_at) {
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->letters[i] != letter) continue;
        if (out_at) *out_at = i;
        return true;
    }
    return false;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads one operand's letters up to ',' or "->" or the end. `hidden`: axes behind its ellipsis; UINT32_MAX: from the
 * rank. */
static const char *read_term(uir_rule_context *context, const char *text, term *t, uint32_t rank, uint32_t hidden) {
    uint32_t named = 0;
    for (const char *p = text; *p && *p != ',' && *p != '-'; p++) named += is_letter(*p);
    if (hidden == UINT32_MAX) hidden = rank >= named ? rank - named : 0;
    for (; *text && *text != ',' && *text != '-'; text++) {
        bool dots = strncmp(text, "...", 3) == 0;
        if (*text == ' ') continue;
        if ((!dots && !is_letter(*text)) || t->count + (dots ? hidden : 1) > UIR_MAX_RANK) {
            uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "the equation cannot be read at '%.16s'", text);
            return text + strlen(text);
        }
        for (uint32_t i = 0; dots && i < hidden; i++)
            t->letters[t->count++] = (uint16_t)(ELLIPSIS_FIRST + hidden - 1 - i);
        if (!dots) t->letters[t->count++] = (unsigned char)*text;
        if (dots) text += 2;
    }
    return text;
}

/* Without "->": the ellipsis, then the letters that occur once, in alphabetical order. */
static void implicit_result(notation *n) {
    uint32_t hidden = 0;
    uint32_t seen[ELLIPSIS_FIRST] = {0};
    for (uint32_t i = 0; i < n->operand_count; i++)
        for (uint32_t k = 0; k < n->operands[i].count; k++) {
            uint16_t letter = n->operands[i].letters[k];
            if (letter < ELLIPSIS_FIRST)
                seen[letter]++;
            else if (letter - ELLIPSIS_FIRST + 1u > hidden)
                hidden = letter - ELLIPSIS_FIRST + 1u;
        }
    while (hidden) n->result.letters[n->result.count++] = (uint16_t)(ELLIPSIS_FIRST + --hidden);
    for (uint16_t letter = 0; letter < ELLIPSIS_FIRST && n->result.count < UIR_MAX_RANK; letter++)
        if (seen[letter] == 1) n->result.letters[n->result.count++] = letter;
}

static bool parse(uir_rule_context *context, notation *n) {
    uir_builder *b = &context->builder;
    const char *text = uir_rule_string(context, "equation", "");
    uint32_t widest = 0;
    if (context->input_count > sizeof n->operands / sizeof *n->operands)
        uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "%u operands", context->input_count);
    for (; n->operand_count < context->input_count && b->status == UIR_STATUS_OK; n->operand_count++) {
        term *t = &n->operands[n->operand_count];
        t->value = uir_rule_input(context, n->operand_count);
        uint32_t rank = uir_rule_rank(context, t->value);
        if (n->operand_count && *text != ',') {
            uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the equation names fewer operands than the %u given",
                             context->input_count);
            return false;
        }
        text = read_term(context, text + (n->operand_count != 0), t, rank, UINT32_MAX);
        if (t->count != rank)
            uir_builder_fail(b, UIR_STATUS_BAD_FILE, "operand %u has rank %u, but the equation names %u axes",
                             n->operand_count, rank, t->count);
        for (uint32_t k = 0; k < t->count; k++)
            if (t->letters[k] >= ELLIPSIS_FIRST && t->letters[k] - ELLIPSIS_FIRST + 1u > widest)
                widest = t->letters[k] - ELLIPSIS_FIRST + 1u;
    }
    if (b->status != UIR_STATUS_OK) return false;
    if (strncmp(text, "->", 2) == 0)
        text = read_term(context, text + 2, &n->result, 0, widest);
    else
        implicit_result(n);
    if (*text && b->status == UIR_STATUS_OK)
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the equation cannot be read at '%.16s'", text);
    for (uint32_t i = 0; i < n->result.count && b->status == UIR_STATUS_OK; i++) {
        bool found = false;
        for (uint32_t k = 0; k < n->operand_count; k++)
            found = found || has(&n->operands[k], n->result.letters[i], NULL);
        if (!found) uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the result names an axis that no operand has");
    }
    return b->status == UIR_STATUS_OK;
}

/* ---- steps on one operand ---- */

static void drop_letter(term *t, uint32_t at) {
    memmove(&t->letters[at], &t->letters[at + 1], (t->count - at - 1) * sizeof *t->letters);
    t->count--;
}

static void sum_letter(uir_rule_context *context, term *t, uint32_t at) {
    int64_t axis = at;
    t->value = uir_build_reduce(&context->builder, UIR_OP_REDUCE_SUM, t->value, &axis, 1, false);
    drop_letter(t, at);
}

/* The diagonal over two axes: everything off it set to 0 and one of the two summed. */
static void take_diagonals(uir_rule_context *context, term *t) {
    uir_builder *b = &context->builder;
    for (uint32_t i = 0; i < t->count; i++)
        for (uint32_t k = i + 1; k < t->count && b->status == UIR_STATUS_OK;) {
            if (t->letters[i] != t->letters[k]) {
                k++;
                continue;
            }
            const uir_dim *extents = uir_rule_extents(context, t->value);
            uir_value_id first = uir_math_along(context, uir_math_iota(context, extents[i]), i, t->count);
            uir_value_id second = uir_math_along(context, uir_math_iota(context, extents[k]), k, t->count);
            uir_value_id on = uir_build_binary(b, UIR_OP_EQ, first, second);
            t->value = uir_build_select(b, on, t->value, uir_rule_number(context, t->value, 0));
            sum_letter(context, t, k);
        }
}

static void arrange(uir_rule_context *context, term *t, const uint16_t *letters, uint32_t count) {
    int64_t perm[UIR_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0;
        has(t, letters[i], &at);
        perm[i] = at;
    }
    t->value = uir_build_transpose(&context->builder, t->value, perm);
    memcpy(t->letters, letters, count * sizeof *letters);
}

/* ---- one pair ---- */

typedef struct letter_list {
    uint16_t letters[UIR_MAX_RANK];
    uint32_t count;
} letter_list;

static void add_letter(letter_list *list, uint16_t letter) {
    if (list->count < UIR_MAX_RANK) list->letters[list->count++] = letter;
}

static void concatenate(const letter_list *const lists[3], letter_list *out) {
    out->count = 0;
    for (int i = 0; i < 3; i++)
        for (uint32_t k = 0; k < lists[i]->count; k++) add_letter(out, lists[i]->letters[k]);
}

/* Letters that both have are brought to one extent, so that an extent of 1 meets what it broadcasts to, whichever of
 * the two it is and whenever that is known. */
static void equalise(uir_rule_context *context, term *a, term *b) {
    uir_builder *builder = &context->builder;
    const uir_dim *a_extents = uir_rule_extents(context, a->value), *b_extents = uir_rule_extents(context, b->value);
    uir_dim a_dims[UIR_MAX_RANK], b_dims[UIR_MAX_RANK];
    if (builder->status != UIR_STATUS_OK) return;
    for (uint32_t i = 0; i < a->count; i++) a_dims[i] = a_extents[i];
    for (uint32_t k = 0; k < b->count; k++) {
        uint32_t i;
        b_dims[k] = b_extents[k];
        if (has(a, b->letters[k], &i))
            a_dims[i] = b_dims[k] = uir_build_broadcast_extent(builder, a_dims[i], b_dims[k]);
    }
    a->value = uir_build_broadcast(builder, a->value, a_dims, a->count);
    b->value = uir_build_broadcast(builder, b->value, b_dims, b->count);
}

static uir_value_id as_matrices(uir_rule_context *context, uir_value_id value, uint32_t first, uint32_t second,
                                uint32_t third) {
    const uir_dim *extents = uir_rule_extents(context, value);
    if (!extents) return value;
    uir_dim dims[3] = {uir_rule_product(context, extents, first), uir_rule_product(context, extents + first, second),
                       uir_rule_product(context, extents + first + second, third)};
    return uir_build_reshape(&context->builder, value, dims, 3);
}

static void multiply(uir_rule_context *context, term *a, term *b, const notation *n, uint32_t next) {
    uir_builder *builder = &context->builder;
    letter_list batch = {.count = 0}, shared = {.count = 0}, left = {.count = 0}, right = {.count = 0}, order;
    equalise(context, a, b);
    for (uint32_t i = 0; i < a->count; i++) {
        bool needed = has(&n->result, a->letters[i], NULL);
        for (uint32_t k = next; k < n->operand_count; k++) needed = needed || has(&n->operands[k], a->letters[i], NULL);
        bool in_both = has(b, a->letters[i], NULL);
        add_letter(in_both ? needed ? &batch : &shared : &left, a->letters[i]);
    }
    for (uint32_t k = 0; k < b->count; k++)
        if (!has(a, b->letters[k], NULL)) add_letter(&right, b->letters[k]);
    if (batch.count + left.count + right.count > UIR_MAX_RANK) {
        uir_builder_fail(builder, UIR_STATUS_UNSUPPORTED, "an intermediate result has more than %d axes", UIR_MAX_RANK);
        return;
    }
    concatenate((const letter_list *[3]){&batch, &left, &shared}, &order);
    arrange(context, a, order.letters, order.count);
    concatenate((const letter_list *[3]){&batch, &shared, &right}, &order);
    arrange(context, b, order.letters, order.count);
    const uir_dim *a_extents = uir_rule_extents(context, a->value), *b_extents = uir_rule_extents(context, b->value);
    if (builder->status != UIR_STATUS_OK) return;
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t i = 0; i < batch.count + left.count; i++) dims[i] = a_extents[i];
    for (uint32_t i = 0; i < right.count; i++)
        dims[batch.count + left.count + i] = b_extents[batch.count + shared.count + i];
    uir_value_id x = as_matrices(context, a->value, batch.count, left.count, shared.count);
    uir_value_id y = as_matrices(context, b->value, batch.count, shared.count, right.count);
    uir_dtype dtype = uir_rule_dtype(context, x);
    uir_value_id product;
    if (uir_dtype_is_float(dtype)) {
        product = uir_build_matmul(builder, x, y, dtype);
    } else { /* integers wrap in their own type */
        int64_t axis = 2;
        product = uir_build_binary(builder, UIR_OP_MUL, uir_math_insert_axis(context, x, 3),
                                   uir_math_insert_axis(context, y, 1));
        product = uir_build_reduce(builder, UIR_OP_REDUCE_SUM, product, &axis, 1, false);
    }
    concatenate((const letter_list *[3]){&batch, &left, &right}, &order);
    a->value = uir_build_reshape(builder, product, dims, order.count);
    memcpy(a->letters, order.letters, sizeof a->letters);
    a->count = order.count;
}

/* Sums letters that only this term has and nobody needs. */
static void sum_unneeded(uir_rule_context *context, term *t, const term *other, const notation *n, uint32_t next) {
    for (uint32_t i = 0; i < t->count && context->builder.status == UIR_STATUS_OK;) {
        bool needed = has(&n->result, t->letters[i], NULL) || (other && has(other, t->letters[i], NULL));
        for (uint32_t k = next; k < n->operand_count; k++) needed = needed || has(&n->operands[k], t->letters[i], NULL);
        if (needed)
            i++;
        else
            sum_letter(context, t, i);
    }
}

uir_status uir_rule_einsum(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    notation *n = uir_rule_allocate(context, 1, sizeof *n);
    if (!n || !parse(context, n)) return b->status;
    uir_dtype dtype = uir_rule_dtype(context, uir_rule_input(context, 0));
    for (uint32_t i = 0; i < n->operand_count; i++) {
        n->operands[i].value = uir_rule_widen(context, n->operands[i].value);
        take_diagonals(context, &n->operands[i]);
    }
    term *joined = &n->operands[0];
    sum_unneeded(context, joined, NULL, n, 1);
    for (uint32_t i = 1; i < n->operand_count && b->status == UIR_STATUS_OK; i++) {
        sum_unneeded(context, &n->operands[i], joined, n, i + 1);
        multiply(context, joined, &n->operands[i], n, i + 1);
        sum_unneeded(context, joined, NULL, n, i + 1);
    }
    if (b->status == UIR_STATUS_OK) arrange(context, joined, n->result.letters, n->result.count);
    context->outputs[0] = uir_build_cast(b, joined->value, dtype);
    return b->status;
}
