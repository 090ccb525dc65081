#include "ir/layout.h"

uir_dim uir_layout_finish(uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims) {
    uir_dim one = uir_dim_const(dims, 1), stride = one, span = one;
    for (uint32_t d = rank; d-- > 0 && !layout->given;) {
        layout->mode_count[d] = 1;
        layout->modes[d][0] = (uir_mode){extents[d], stride};
        stride = uir_dim_mul(dims, stride, extents[d]);
    }
    for (uint32_t d = 0; d < rank; d++) {
        for (uint32_t m = 0; m < layout->mode_count[d]; m++) {
            uir_dim most = uir_dim_sub(dims, layout->modes[d][m].size, one);
            span = uir_dim_add(dims, span, uir_dim_mul(dims, most, layout->modes[d][m].stride));
        }
    }
    return span;
}

void uir_layout_set_strides(uir_layout *layout, const uir_dim *extents, const uir_dim *strides, uint32_t rank) {
    *layout = (uir_layout){.given = true};
    for (uint32_t d = 0; d < rank; d++) {
        layout->modes[d][0] = (uir_mode){extents[d], strides[d]};
        layout->mode_count[d] = 1;
    }
}

void uir_layout_copy(const uir_layout *layout, uint32_t rank, uir_layout_dim_of of, void *user, uir_layout *out_copy) {
    *out_copy = *layout;
    for (uint32_t d = 0; d < rank && layout->given; d++) {
        for (uint32_t m = 0; m < layout->mode_count[d]; m++) {
            out_copy->modes[d][m].size = of(user, layout->modes[d][m].size);
            out_copy->modes[d][m].stride = of(user, layout->modes[d][m].stride);
        }
    }
}

/* ---- text ---- */
static void print_half(const uir_layout *layout, uint32_t rank, bool strides, const uir_dims *dims, uir_text *text) {
    uir_text_append_string(text, ":(");
    for (uint32_t d = 0; d < rank; d++) {
        bool several = layout->mode_count[d] > 1;
        uir_text_append_string(text, d ? several ? ", (" : ", " : several ? "(" : "");
        for (uint32_t m = 0; m < layout->mode_count[d]; m++) {
            if (m) uir_text_append_string(text, ", ");
            uir_dim_print(dims, strides ? layout->modes[d][m].stride : layout->modes[d][m].size, text);
        }
        if (several) uir_text_append_string(text, ")");
    }
    uir_text_append_string(text, ")");
}

void uir_layout_print(const uir_layout *layout, uint32_t rank, const uir_dims *dims, uir_text *text) {
    if (!layout->given) return;
    if (layout->split) print_half(layout, rank, false, dims, text);
    print_half(layout, rank, true, dims, text);
}

/* For each dim an expression, or several in parentheses where the dim is split. "(a+b)*c" is an expression too, so a
 * parenthesis opens a split dim only when a comma follows at its own level. */
static bool at_split_dim(const uir_tokenizer *tokens) {
    if (!uir_tokenizer_is(tokens, "(")) return false;
    uint32_t depth = 1;
    for (const char *at = tokens->at; at < tokens->end && depth > 0 && *at != '\n'; at++) {
        if (*at == '(') depth++;
        if (*at == ')') depth--;
        if (*at == ',' && depth == 1) return true;
    }
    return false;
}

typedef uir_dim half[UIR_LAYOUT_MAX_RANK][UIR_LAYOUT_MAX_MODES];

static uir_status parse_half(uir_tokenizer *tokens, uir_layout_read_dim dim, void *user, uint32_t rank, half out,
                             uint8_t *counts) {
    UIR_TRY(uir_tokenizer_expect(tokens, "("));
    for (uint32_t d = 0; d < rank; d++) {
        if (d) UIR_TRY(uir_tokenizer_expect(tokens, ","));
        counts[d] = 0;
        bool split = at_split_dim(tokens);
        if (split) UIR_TRY(uir_tokenizer_expect(tokens, "("));
        do {
            if (counts[d] == UIR_LAYOUT_MAX_MODES)
                return uir_tokenizer_error(tokens, "a dim splits into at most %d", UIR_LAYOUT_MAX_MODES);
            UIR_TRY(dim(user, &out[d][counts[d]++]));
        } while (split && uir_tokenizer_accept(tokens, ","));
        if (split) UIR_TRY(uir_tokenizer_expect(tokens, ")"));
    }
    return uir_tokenizer_expect(tokens, ")");
}

uir_status uir_layout_parse(uir_tokenizer *tokens, uir_layout_read_dim dim, void *user, const uir_dim *extents,
                            uint32_t rank, uir_layout *out_layout) {
    half first, second;
    uint8_t first_counts[UIR_LAYOUT_MAX_RANK], second_counts[UIR_LAYOUT_MAX_RANK];
    *out_layout = (uir_layout){.given = uir_tokenizer_accept(tokens, ":")};
    if (!out_layout->given) return UIR_STATUS_OK;
    UIR_TRY(parse_half(tokens, dim, user, rank, first, first_counts));
    out_layout->split = uir_tokenizer_accept(tokens, ":");
    if (out_layout->split) UIR_TRY(parse_half(tokens, dim, user, rank, second, second_counts));
    for (uint32_t d = 0; d < rank; d++) {
        if (out_layout->split ? first_counts[d] != second_counts[d] : first_counts[d] != 1)
            return uir_tokenizer_error(tokens,
                                       "dim %u of the layout before this: its sizes and strides differ in number", d);
        out_layout->mode_count[d] = first_counts[d];
        for (uint32_t m = 0; m < first_counts[d]; m++)
            out_layout->modes[d][m] =
                out_layout->split ? (uir_mode){first[d][m], second[d][m]} : (uir_mode){extents[d], first[d][m]};
    }
    return UIR_STATUS_OK;
}
