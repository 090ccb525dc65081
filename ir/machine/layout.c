/* Layouts as values: made, compared, checked; their text. */
#include "ir/machine/layout.h"

static int64_t swizzled_block(uir_swizzle swizzle) {
    return (int64_t)1 << (swizzle.base + swizzle.bits);
}

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
    if (!layout->swizzle.bits) return span;
    return uir_dim_align(dims, span, uir_dim_const(dims, swizzled_block(layout->swizzle)));
}

void uir_layout_set_strides(uir_layout *layout, const uir_dim *extents, const uir_dim *strides, uint32_t rank) {
    *layout = (uir_layout){.given = true};
    for (uint32_t d = 0; d < rank; d++) {
        layout->modes[d][0] = (uir_mode){extents[d], strides[d]};
        layout->mode_count[d] = 1;
    }
}

void uir_layout_set_order(uir_layout *layout, const uir_dim *extents, const uint32_t *order, uint32_t rank,
                          uir_dims *dims) {
    uir_dim strides[UIR_LAYOUT_MAX_RANK], stride = uir_dim_const(dims, 1);
    for (uint32_t i = rank; i-- > 0;) {
        strides[order[i]] = stride;
        stride = uir_dim_mul(dims, stride, extents[order[i]]);
    }
    uir_layout_set_strides(layout, extents, strides, rank);
}

/* Of the dims that are left, the one of more than one element whose elements are `stride` apart; else one of one. */
static uint32_t find_dim_of_stride(const uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims,
                                   uint32_t left, uir_dim stride) {
    uint32_t single = rank;
    for (uint32_t d = rank; d-- > 0;) {
        int64_t extent;
        if (!(left >> d & 1)) continue;
        if (uir_dim_is_const(dims, extents[d], &extent) && extent == 1)
            single = single == rank ? d : single;
        else if (uir_dim_equal(layout->modes[d][0].stride, stride))
            return d;
    }
    return single;
}

bool uir_layout_find_order(const uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims,
                           uint32_t *out_order) {
    uir_dim stride = uir_dim_const(dims, 1);
    uint32_t left = (1u << rank) - 1;
    for (uint32_t d = 0; d < rank; d++) out_order[d] = d;
    if (!layout || !layout->given) return true;
    for (uint32_t d = 0; d < rank; d++)
        if (layout->mode_count[d] != 1 || !uir_dim_equal(layout->modes[d][0].size, extents[d])) return false;
    for (uint32_t i = rank; i-- > 0 && !layout->swizzle.bits;) {
        uint32_t d = find_dim_of_stride(layout, extents, rank, dims, left, stride);
        if (d == rank) return false;
        out_order[i] = d;
        left &= ~(1u << d);
        stride = uir_dim_mul(dims, stride, extents[d]);
    }
    return !layout->swizzle.bits;
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

bool uir_layout_is_same(const uir_layout *a, const uir_layout *b, uint32_t rank) {
    bool same = a->swizzle.bits == b->swizzle.bits &&
                (!a->swizzle.bits || (a->swizzle.base == b->swizzle.base && a->swizzle.shift == b->swizzle.shift));
    for (uint32_t d = 0; d < rank && same; d++) {
        same = a->mode_count[d] == b->mode_count[d];
        for (uint32_t m = 0; same && m < a->mode_count[d]; m++)
            same = uir_dim_equal(a->modes[d][m].size, b->modes[d][m].size) &&
                   uir_dim_equal(a->modes[d][m].stride, b->modes[d][m].stride);
    }
    return same;
}

/* ---- what a layout must be ---- */
/* The mode that goes on where the others reach; else of those beyond that the one of the least stride. */
static uint32_t find_next(const uir_mode *modes, uint32_t count, uir_dim reach, uir_layout_prove *prove, void *user) {
    uint32_t next = count;
    for (uint32_t i = 0; i < count; i++)
        if (uir_dim_equal(modes[i].stride, reach)) return i;
    for (uint32_t i = 0; i < count; i++)
        if (prove(user, modes[i].stride, UIR_RELATION_GE, reach) &&
            (next == count || prove(user, modes[i].stride, UIR_RELATION_LT, modes[next].stride)))
            next = i;
    return next;
}

/* Modes in some order in which each is at least as far apart as all before it reach. */
bool uir_layout_is_injective(const uir_layout *layout, uint32_t rank, uir_dims *dims, uir_layout_prove *prove,
                             void *user) {
    uir_mode modes[UIR_LAYOUT_MAX_RANK * UIR_LAYOUT_MAX_MODES];
    uint32_t count = 0;
    for (uint32_t d = 0; d < rank; d++) {
        for (uint32_t m = 0; m < layout->mode_count[d]; m++) {
            int64_t size;
            if (uir_dim_is_const(dims, layout->modes[d][m].size, &size) && size == 1) continue;
            modes[count++] = layout->modes[d][m];
        }
    }
    for (uir_dim reach = uir_dim_const(dims, 1); count; count--) {
        uint32_t next = find_next(modes, count, reach, prove, user);
        if (next == count) return false;
        reach = uir_dim_mul(dims, modes[next].stride, modes[next].size);
        if (!reach.id) return false;
        modes[next] = modes[count - 1];
    }
    return true;
}

static bool is_swizzle(uir_swizzle s) {
    return !s.bits || (s.shift >= s.bits && s.base + s.shift + s.bits <= UIR_LAYOUT_MAX_SWIZZLE);
}

const char *uir_layout_find_fault(const uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims,
                                  uir_layout_prove *prove, void *user, uint32_t *out_dim) {
    uir_dim one = uir_dim_const(dims, 1);
    for (uint32_t d = *out_dim = 0; d < rank; d = ++*out_dim) {
        uir_dim product = one;
        for (uint32_t m = 0; m < layout->mode_count[d]; m++) {
            const uir_mode *mode = &layout->modes[d][m];
            if (!mode->size.id || !mode->stride.id) return "an expression is missing";
            if (m + 1 < layout->mode_count[d] && !prove(user, mode->size, UIR_RELATION_GE, one))
                return "a size is not proved to be at least 1";
            product = uir_dim_mul(dims, product, mode->size);
        }
        if (!product.id || (!uir_dim_equal(product, extents[d]) && !prove(user, product, UIR_RELATION_GE, extents[d])))
            return "its sizes are not proved to hold the extent";
    }
    if (!is_swizzle(layout->swizzle))
        return "its swizzle is invalid: the shift must be at least its bits, and all must be within 24 bits";
    return uir_layout_is_injective(layout, rank, dims, prove, user)
               ? NULL
               : "two elements cannot be proved to have different addresses";
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
    const uir_swizzle *s = &layout->swizzle;
    if (s->bits) uir_text_append_format(text, " xor (%u, %u, %u)", s->bits, s->base, s->shift);
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
                return uir_tokenizer_error(tokens, "a dim splits into at most %d parts", UIR_LAYOUT_MAX_MODES);
            UIR_TRY(dim(user, &out[d][counts[d]++]));
        } while (split && uir_tokenizer_accept(tokens, ","));
        if (split) UIR_TRY(uir_tokenizer_expect(tokens, ")"));
    }
    return uir_tokenizer_expect(tokens, ")");
}

static uir_status parse_swizzle(uir_tokenizer *tokens, uir_swizzle *out_swizzle) {
    int64_t numbers[3];
    if (!uir_tokenizer_accept(tokens, "xor")) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < 3; i++) {
        UIR_TRY(uir_tokenizer_expect(tokens, i ? "," : "("));
        UIR_TRY(uir_tokenizer_expect_integer(tokens, &numbers[i]));
        if (numbers[i] < (i == 1 ? 0 : 1) || numbers[i] > UIR_LAYOUT_MAX_SWIZZLE)
            return uir_tokenizer_error(tokens, "a swizzle is bits, base, shift: 1 to %d, 0 to %d, 1 to %d",
                                       UIR_LAYOUT_MAX_SWIZZLE, UIR_LAYOUT_MAX_SWIZZLE, UIR_LAYOUT_MAX_SWIZZLE);
    }
    *out_swizzle = (uir_swizzle){(uint8_t)numbers[0], (uint8_t)numbers[1], (uint8_t)numbers[2]};
    if (!is_swizzle(*out_swizzle))
        return uir_tokenizer_error(tokens,
                                   "a swizzle's shift is at least its bits, and its three numbers are at most "
                                   "%d together",
                                   UIR_LAYOUT_MAX_SWIZZLE);
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
    return parse_swizzle(tokens, &out_layout->swizzle);
}
