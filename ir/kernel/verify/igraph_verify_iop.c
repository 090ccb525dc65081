/* One instruction by itself: dtypes, shapes, the device's table of what is legal, operands that overlap the result. */
#include "ir/kernel/igraph_threads.h"
#include "ir/kernel/verify/igraph_verify.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct check {
    uir_iverifier *v;
    uir_iinstruction *i;
    const uir_iop_row *row;
    uint32_t line;
    bool *wrong; /* is only asked whether constraints hold; NULL: what does not is reported */
} check;

/* A constraint of the device's that does not hold. */
static void UIR_PRINTF(2, 3) complain(const check *c, const char *format, ...) {
    char message[400];
    va_list arguments;
    if (c->wrong) {
        *c->wrong = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_iverify_report(c->v, c->line, "%s", message);
}

static uir_term count_of(const check *c, const uir_islice *slice, uint32_t d) {
    return uir_term_of_dim(&c->v->terms, slice->counts[d]);
}

static bool is_one(const check *c, const uir_islice *slice, uint32_t d) {
    int64_t value;
    return uir_term_is_const(&c->v->terms, count_of(c, slice, d), &value) && value == 1;
}

static const char *text(const check *c, const uir_islice *slice) {
    return uir_iverify_slice_text(c->v, slice);
}

/* ---- dtypes ---- */
static bool fits_dtype(uir_dtype dtype, double value) {
    if (uir_dtype_is_float(dtype)) return true;
    if (uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_BOOL) return value == 0 || value == 1;
    if (value != trunc(value)) return false; /* NaN and infinities too */
    return value >= (double)uir_dtype_integer_min(dtype) && value <= (double)uir_dtype_integer_max(dtype) &&
           fabs(value) < 18446744073709551616.0;
}

static void want_dtype(const check *c, const uir_islice *slice, uir_dtype dtype) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    if (p->dtype != dtype)
        uir_iverify_report(c->v, c->line, "dtype: %s expects %s here, but %%%s holds %s", c->row->name,
                           uir_dtype_name(dtype), p->name, uir_dtype_name(p->dtype));
    if (slice->has_fill && !fits_dtype(p->dtype, slice->fill))
        uir_iverify_report(c->v, c->line, "fill %g is not a value of %s", slice->fill, uir_dtype_name(p->dtype));
}

/* The dtype that operand k, counted without the results, must have. */
static uir_dtype operand_dtype(const check *c, uint32_t k) {
    if (c->row->family == UIR_IOP_FAMILY_MMA) return k == 0 ? c->i->dtype_b : c->i->dtype_c;
    return uir_iop_operand_dtype(c->i->code, c->i->dtype, k);
}

static void check_dtypes(const check *c) {
    uir_iinstruction *i = c->i;
    uir_dtype result = c->row->family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL
                       : c->row->family == UIR_IOP_FAMILY_CAST  ? i->dtype_b
                                                                : i->dtype;
    if (!uir_iop_is_defined_for(i->code, i->dtype) ||
        (c->row->family == UIR_IOP_FAMILY_CAST && !uir_iop_is_defined_for(i->code, i->dtype_b)))
        uir_iverify_report(c->v, c->line, "dtype: %s is not defined for %s", c->row->name, uir_dtype_name(i->dtype));
    if (i->code == UIR_IOP_BITS && uir_dtype_bits(i->dtype) != uir_dtype_bits(i->dtype_b))
        uir_iverify_report(c->v, c->line, "dtype: %s and %s are not equally wide", uir_dtype_name(i->dtype),
                           uir_dtype_name(i->dtype_b));
    if (c->row->family == UIR_IOP_FAMILY_MMA) {
        bool integers = uir_dtype_is_integer(i->dtype);
        if (integers != uir_dtype_is_integer(i->dtype_b) || integers != uir_dtype_is_integer(i->dtype_c))
            uir_iverify_report(c->v, c->line, "dtype: mma multiplies floats into floats or integers into integers");
    }
    want_dtype(c, &i->slices[0], result);
    uint32_t slice = c->row->results;
    for (uint32_t k = 0; k < c->row->operands; k++) {
        uir_dtype dtype = operand_dtype(c, k);
        if (!(i->immediate_mask >> k & 1))
            want_dtype(c, &i->slices[slice++], dtype);
        else if (!fits_dtype(dtype, i->immediates[k]))
            uir_iverify_report(c->v, c->line, "%g is not a value of %s", i->immediates[k], uir_dtype_name(dtype));
    }
    if (c->row->family == UIR_IOP_FAMILY_FILL && !fits_dtype(i->dtype, i->immediate))
        uir_iverify_report(c->v, c->line, "%g is not a value of %s", i->immediate, uir_dtype_name(i->dtype));
    if (i->has_scratch) want_dtype(c, &i->scratch, i->dtype);
}

/* ---- shapes ---- */
static void want_equal(const check *c, const uir_islice *a, uint32_t da, const uir_islice *b, uint32_t db) {
    if (uir_term_prove_eq(&c->v->terms, count_of(c, a, da), count_of(c, b, db))) return;
    uir_iverify_report(c->v, c->line, "shape: dim %u of %s and dim %u of %s cannot be proved equal", da, text(c, a), db,
                       text(c, b));
}

static void check_elementwise(const check *c, const uir_islice *operand) {
    const uir_islice *result = &c->i->slices[0];
    for (uint32_t k = 1; k <= operand->rank; k++) {
        uint32_t d = operand->rank - k;
        if (operand->block && k == 1) {
            if (!uir_term_prove_le(&c->v->terms, uir_term_const(&c->v->terms, 1), count_of(c, operand, d)))
                uir_iverify_report(c->v, c->line, "shape: the block %s may be empty", text(c, operand));
        } else if (!is_one(c, operand, d)) {
            if (k > result->rank)
                uir_iverify_report(c->v, c->line, "shape: %s has more dims than the result", text(c, operand));
            else
                want_equal(c, result, result->rank - k, operand, d);
        }
    }
}

/* Dims in front of the matrix must be 1. */
static bool check_matrix(const check *c, const uir_islice *slice) {
    bool good = slice->rank >= 2;
    for (uint32_t d = 0; d + 2 < slice->rank; d++) good = good && is_one(c, slice, d);
    if (!good)
        uir_iverify_report(c->v, c->line, "shape: %s is not a matrix: dims before the last two must be 1",
                           text(c, slice));
    return good;
}

static void check_mma(const check *c) {
    const uir_islice *s = c->i->slices;
    for (int k = 0; k < 3; k++)
        if (!check_matrix(c, &s[k])) return;
    want_equal(c, &s[0], s[0].rank - 2, &s[1], s[1].rank - 2);
    want_equal(c, &s[0], s[0].rank - 1, &s[2], s[2].rank - 1);
    want_equal(c, &s[1], s[1].rank - 1, &s[2], s[2].rank - 2);
}

/* A reduction's result has 1 where the operand's dim was; a scan's carry too. */
static void check_reduced(const check *c, const uir_islice *small, const uir_islice *large, uint32_t from_end) {
    if (large->rank < from_end || small->rank < from_end || small->rank > large->rank) {
        uir_iverify_report(c->v, c->line, "shape: %s does not reduce %s along its %s", text(c, small), text(c, large),
                           from_end == 1 ? "rows" : "columns");
        return;
    }
    for (uint32_t k = 1; k <= large->rank; k++) {
        if (k == from_end) {
            if (!is_one(c, small, small->rank - k))
                uir_iverify_report(c->v, c->line, "shape: dim %u of %s must be 1", small->rank - k, text(c, small));
        } else if (k <= small->rank) {
            want_equal(c, small, small->rank - k, large, large->rank - k);
        } else if (!is_one(c, large, large->rank - k)) {
            uir_iverify_report(c->v, c->line, "shape: %s has more dims than the result", text(c, large));
        }
    }
}

static void check_shapes(const check *c) {
    const uir_islice *s = c->i->slices;
    switch (c->row->family) {
    case UIR_IOP_FAMILY_MMA:
        check_mma(c);
        break;
    case UIR_IOP_FAMILY_REDUCE:
        check_reduced(c, &s[0], &s[1], c->i->axis == UIR_IAXIS_COL ? 2 : 1);
        break;
    case UIR_IOP_FAMILY_SCAN:
        if (c->i->axis == UIR_IAXIS_COL) uir_iverify_report(c->v, c->line, "a scan must be along rows");
        if (s[0].rank != s[1].rank)
            uir_iverify_report(c->v, c->line, "shape: a scan's result must have its operand's shape");
        for (uint32_t d = 0; d < s[0].rank && d < s[1].rank; d++) want_equal(c, &s[0], d, &s[1], d);
        check_reduced(c, &s[2], &s[1], 1);
        break;
    case UIR_IOP_FAMILY_IOTA:
        if (s[0].rank < (c->i->axis == UIR_IAXIS_COL ? 2u : 1u))
            uir_iverify_report(c->v, c->line, "shape: %s has too few dims", text(c, &s[0]));
        break;
    default:
        for (uint32_t k = 1; k < c->i->slice_count; k++) check_elementwise(c, &s[k]);
    }
    if (s[0].block || s[0].has_fill)
        uir_iverify_report(c->v, c->line, "a result cannot have a block or fill: %s", text(c, &s[0]));
    if ((c->row->family == UIR_IOP_FAMILY_MMA || c->row->family == UIR_IOP_FAMILY_REDUCE ||
         c->row->family == UIR_IOP_FAMILY_SCAN))
        for (uint32_t k = 1; k < c->i->slice_count; k++)
            if (s[k].block) uir_iverify_report(c->v, c->line, "%s cannot read a block operand", c->row->name);
}

/* ---- operands against the result ---- */
static bool same_slice(const check *c, const uir_islice *a, const uir_islice *b) {
    uint32_t rank = uir_iverify_pointer(c->v, a->pointer)->rank;
    if (a->window || b->window || a->rank != b->rank) return false;
    for (uint32_t d = 0; d < rank; d++)
        if (uir_term_of_dim(&c->v->terms, a->starts[d]) != uir_term_of_dim(&c->v->terms, b->starts[d]) ||
            count_of(c, a, d) != count_of(c, b, d))
            return false;
    return true;
}

static bool are_apart(const check *c, const uir_islice *a, const uir_islice *b) {
    uir_terms *t = &c->v->terms;
    uint32_t rank = uir_iverify_pointer(c->v, a->pointer)->rank;
    uir_term one = uir_term_const(t, 1);
    for (uint32_t d = 0; d < rank; d++) {
        uir_term a_low = uir_term_of_dim(t, a->starts[d]), b_low = uir_term_of_dim(t, b->starts[d]);
        uir_term a_high = uir_term_add(t, a_low, a->window ? one : count_of(c, a, d)),
                 b_high = uir_term_add(t, b_low, b->window ? one : count_of(c, b, d));
        if (uir_term_prove_le(t, a_high, b_low) || uir_term_prove_le(t, b_high, a_low)) return true;
    }
    return false;
}

static void want_apart(const check *c, const uir_islice *result, const uir_islice *other, bool same_allowed) {
    if (result->pointer != other->pointer || (same_allowed && !other->block && same_slice(c, result, other)) ||
        are_apart(c, result, other))
        return;
    uir_iverify_report(c->v, c->line, "%s overlaps the result %s and is not the same slice", text(c, other),
                       text(c, result));
}

static void check_overlap(const check *c) {
    const uir_islice *s = c->i->slices;
    bool elementwise = c->row->family != UIR_IOP_FAMILY_MMA && c->row->family != UIR_IOP_FAMILY_REDUCE &&
                       c->row->family != UIR_IOP_FAMILY_SCAN;
    for (uint32_t k = 1; k < c->i->slice_count; k++)
        want_apart(c, &s[0], &s[k], elementwise || (c->row->family == UIR_IOP_FAMILY_SCAN && k == 1));
    if (c->row->family == UIR_IOP_FAMILY_SCAN) want_apart(c, &s[2], &s[1], false);
    for (uint32_t k = 0; c->i->has_scratch && k < c->i->slice_count; k++) want_apart(c, &s[k], &c->i->scratch, false);
    uint32_t written = c->row->family == UIR_IOP_FAMILY_SCAN ? 5u : 1u;
    for (uint32_t k = 0; k < c->i->slice_count; k++)
        if ((written >> k & 1) && s[k].window && !uir_iverify_window_injective(c->v, &s[k]))
            uir_iverify_report(c->v, c->line, "two elements of %s may be written to one address", text(c, &s[k]));
}

/* ---- the device ---- */
static bool same_mode(const check *c, uir_mode a, uir_mode b) {
    uir_terms *t = &c->v->terms;
    return uir_term_prove_eq(t, uir_term_of_dim(t, a.size), uir_term_of_dim(t, b.size)) &&
           uir_term_prove_eq(t, uir_term_of_dim(t, a.stride), uir_term_of_dim(t, b.stride));
}

/* Does the operand lie in the blocks of its space, in their order? Of more dims than two the last two do. */
static bool lies_in_blocks(const check *c, const uir_islice *slice) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    uir_layout wanted;
    uir_dim extents[2];
    if (p->rank < 2 || p->layout.swizzle.bits) return false;
    for (uint32_t d = 0; d < 2; d++) extents[d] = p->extents[p->rank - 2 + d];
    uir_space_make_layout(uir_iverify_space(c->v, slice->pointer), p->dtype, extents, c->v->g->dims, &wanted);
    for (uint32_t d = 0; d < 2; d++) {
        uint32_t own = p->rank - 2 + d;
        if (p->layout.mode_count[own] != wanted.mode_count[d]) return false;
        for (uint32_t m = 0; m < wanted.mode_count[d]; m++) {
            if (!same_mode(c, p->layout.modes[own][m], wanted.modes[d][m])) return false;
        }
    }
    return true;
}

static void check_blocks(const check *c, const uir_islice *slice) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    const uir_space *space = uir_iverify_space(c->v, slice->pointer);
    int64_t rows, columns;
    if (!uir_space_get_block(space, p->dtype, &rows, &columns) || lies_in_blocks(c, slice)) return;
    complain(c, "layout: %%%s must be in the blocks of %s on %s for %s: %s, of %lld x %lld elements of %s", p->name,
             space->name, c->v->g->machine->name, c->row->name, uir_space_blocks_name(space->blocks), (long long)rows,
             (long long)columns, uir_dtype_name(p->dtype));
}

static bool divides(const check *c, uir_term term, uint32_t bytes) {
    int64_t value;
    if (uir_term_is_const(&c->v->terms, term, &value)) return value % bytes == 0;
    return term && uir_term_divisor(&c->v->terms, term) % bytes == 0;
}

/* Rows begin where the machine can begin one. */
static void check_alignment(const check *c, const uir_islice *slice) {
    uir_terms *t = &c->v->terms;
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    const uir_space *space = uir_iverify_space(c->v, slice->pointer);
    if (space->scope == UIR_SCOPE_DEVICE || space->alignment <= 1 || slice->window) return;
    uir_term bytes = uir_term_const(t, uir_dtype_bits(p->dtype) / 8), start = uir_term_const(t, 0);
    for (uint32_t d = 0; d < p->rank; d++) {
        if (p->layout.mode_count[d] != 1 || p->layout.swizzle.bits) return;
        uir_term stride = uir_term_mul(t, uir_term_of_dim(t, p->layout.modes[d][0].stride), bytes);
        start = uir_term_add(t, start, uir_term_mul(t, uir_term_of_dim(t, slice->starts[d]), stride));
        bool packed = is_one(c, slice, slice->rank - 1); /* a column of scalars may lie densely */
        if (d + 1 < p->rank && !is_one(c, slice, d) && !packed && !divides(c, stride, space->alignment))
            complain(c, "alignment: rows of %s do not begin at multiples of %u bytes", text(c, slice),
                     space->alignment);
    }
    if (!divides(c, start, space->alignment))
        complain(c, "alignment: %s does not begin at a multiple of %u bytes", text(c, slice), space->alignment);
}

static uir_iwindow_lie lie_of_window(const check *c, const uir_islice *slice) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    if (!slice->window) return UIR_IWINDOW_APART;
    return uir_igraph_window_lie(c->v->g, slice, &p->layout, p->rank, uir_iverify_space(c->v, slice->pointer),
                                 p->dtype);
}

static void check_contiguous(const check *c, const uir_islice *slice) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    int64_t stride;
    if (p->rank == 0 || lie_of_window(c, slice) == UIR_IWINDOW_ROW) return;
    bool single = !slice->window && is_one(c, slice, slice->rank - 1);
    bool unit = !p->layout.swizzle.bits && p->layout.mode_count[p->rank - 1] == 1 &&
                uir_term_is_const(&c->v->terms, uir_term_of_dim(&c->v->terms, p->layout.modes[p->rank - 1][0].stride),
                                  &stride) &&
                stride == 1;
    if (slice->window || (!single && !unit))
        complain(c, "layout: the last dim of %s must be contiguous for %s on %s", text(c, slice), c->row->name,
                 c->v->g->machine->name);
    check_alignment(c, slice);
}

/* Elements along the last dim that lie side by side, on the chip; 0: not known. */
static int64_t piece_of(const check *c, const uir_ipointer *p) {
    uint32_t last = p->rank - 1;
    int64_t size, stride;
    for (uint32_t m = 0; m < p->layout.mode_count[last]; m++) {
        uir_mode mode = p->layout.modes[last][m];
        if (uir_term_is_const(&c->v->terms, uir_term_of_dim(&c->v->terms, mode.stride), &stride) && stride == 1 &&
            uir_term_is_const(&c->v->terms, uir_term_of_dim(&c->v->terms, mode.size), &size))
            return size;
    }
    return 0;
}

/* Of what lies in memory rows lie side by side. */
static void check_pieces(const check *c, const uir_islice *slice) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, slice->pointer);
    const uir_space *space = uir_iverify_space(c->v, slice->pointer);
    if (p->rank == 0) return;
    if (space->scope == UIR_SCOPE_DEVICE || p->layout.mode_count[p->rank - 1] == 1) {
        check_contiguous(c, slice);
        return;
    }
    int64_t piece = p->layout.swizzle.bits || slice->window ? 0 : piece_of(c, p);
    uint32_t bytes = uir_dtype_bits(p->dtype) / 8;
    uir_term start = uir_term_of_dim(&c->v->terms, slice->starts[p->rank - 1]);
    if (!piece || piece * bytes % space->alignment || !divides(c, start, (uint32_t)piece))
        complain(c, "layout: rows of %s must be in pieces of a multiple of %u bytes for %s on %s", text(c, slice),
                 space->alignment, c->row->name, c->v->g->machine->name);
}

/* Is the order of elements the same, and the place in it? */
static bool has_format_of(const check *c, const uir_islice *a, const uir_islice *b) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, a->pointer), *q = uir_iverify_pointer(c->v, b->pointer);
    uir_terms *t = &c->v->terms;
    if (a->window || b->window || p->rank != q->rank || p->layout.swizzle.bits || q->layout.swizzle.bits) return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (p->layout.mode_count[d] != q->layout.mode_count[d] ||
            !uir_term_prove_eq(t, uir_term_of_dim(t, a->starts[d]), uir_term_of_dim(t, b->starts[d])))
            return false;
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++)
            if (!same_mode(c, p->layout.modes[d][m], q->layout.modes[d][m])) return false;
    }
    return true;
}

static void check_same_format(const check *c) {
    const uir_islice *s = c->i->slices;
    for (uint32_t k = 1; k < c->i->slice_count; k++)
        if (!has_format_of(c, &s[0], &s[k]))
            complain(c, "layout: %s must have the layout of %s for %s on %s, which keeps the order", text(c, &s[k]),
                     text(c, &s[0]), c->row->name, c->v->g->machine->name);
}

static void check_transposes(const check *c) {
    for (uint32_t k = 1; k < c->i->slice_count; k++)
        if (lie_of_window(c, &c->i->slices[k]) != UIR_IWINDOW_ACROSS)
            complain(c, "layout: %s must be a matrix read by columns for %s on %s, which transposes",
                     text(c, &c->i->slices[k]), c->row->name, c->v->g->machine->name);
    check_contiguous(c, &c->i->slices[0]);
}

static void check_broadcasts(const check *c, uint32_t constraints) {
    const uir_islice *result = &c->i->slices[0];
    for (uint32_t k = 1; k < c->i->slice_count; k++) {
        const uir_islice *operand = &c->i->slices[k];
        uint32_t bytes = uir_dtype_bits(uir_iverify_pointer(c->v, operand->pointer)->dtype) / 8;
        int64_t count;
        if (operand->block && (constraints & UIR_LEGAL_BLOCK_BROADCAST) &&
            (!uir_term_is_const(&c->v->terms, count_of(c, operand, operand->rank - 1), &count) || count * bytes != 32))
            complain(c, "a block operand on %s must be 32 bytes wide: %s", c->v->g->machine->name, text(c, operand));
        for (uint32_t n = 1; n <= operand->rank && n <= result->rank; n++) {
            bool repeats = is_one(c, operand, operand->rank - n) && !is_one(c, result, result->rank - n) &&
                           !(operand->block && n == 1);
            if (repeats &&
                ((constraints & UIR_LEGAL_NO_BROADCAST) || (n == 1 && (constraints & UIR_LEGAL_BLOCK_BROADCAST))))
                complain(c, "%s on %s does not broadcast %s", c->row->name, c->v->g->machine->name, text(c, operand));
        }
    }
}

static void check_constraints(const check *c, uint32_t constraints) {
    uir_iinstruction *i = c->i;
    const uir_machine *machine = c->v->g->machine;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        const uir_ipointer *p = uir_iverify_pointer(c->v, i->slices[k].pointer);
        if (constraints & UIR_LEGAL_LAST_CONTIGUOUS) check_contiguous(c, &i->slices[k]);
        if ((constraints & UIR_LEGAL_SAME_SPACE) && p->space != uir_iverify_pointer(c->v, i->slices[0].pointer)->space)
            complain(c, "%s on %s requires all its operands in one space", c->row->name, machine->name);
        if (constraints & UIR_LEGAL_FRACTAL) check_blocks(c, &i->slices[k]);
        if (constraints & UIR_LEGAL_IN_PIECES) check_pieces(c, &i->slices[k]);
    }
    if (constraints & UIR_LEGAL_SAME_FORMAT) check_same_format(c);
    if (constraints & UIR_LEGAL_TRANSPOSES) check_transposes(c);
    if (constraints & (UIR_LEGAL_BLOCK_BROADCAST | UIR_LEGAL_NO_BROADCAST)) check_broadcasts(c, constraints);
    if ((constraints & UIR_LEGAL_REDUCE_SCRATCH) && i->axis == UIR_IAXIS_ROW && !i->has_scratch)
        complain(c, "%s.row on %s needs a scratch slice", c->row->name, machine->name);
    if ((constraints & UIR_LEGAL_EQUAL_OPERANDS) && i->dtype_b != i->dtype_c)
        complain(c, "dtype: both operands of %s on %s must have one dtype", c->row->name, machine->name);
}

static void check_legal(const check *c, uint32_t unit_kind) {
    uir_iinstruction *i = c->i;
    const uir_machine *machine = c->v->g->machine;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        const uir_space *space = uir_iverify_space(c->v, i->slices[k].pointer);
        if (!(space->unit_kinds >> unit_kind & 1))
            uir_iverify_report(c->v, c->line, "a %s unit of %s does not reach %s", machine->unit_kinds[unit_kind],
                               machine->name, space->name);
    }
    uint32_t result = uir_iverify_pointer(c->v, i->slices[0].pointer)->space;
    int row = uir_igraph_find_legal(c->v->g, i, unit_kind, 0);
    if (row < 0) {
        uir_iverify_report(
            c->v, c->line,
            "illegal on %s: no %s unit supports %s.%s with its result in %s and operands in these spaces",
            machine->name, machine->unit_kinds[unit_kind], c->row->name, uir_dtype_name(i->dtype),
            machine->spaces[result].name);
        return;
    }
    /* Of the rows that fit, the first whose constraints hold; where none's do, those of the first are wanted. */
    for (int other = row; other >= 0; other = uir_igraph_find_legal(c->v->g, i, unit_kind, other + 1)) {
        bool wrong = false;
        check ask = *c;
        ask.wrong = &wrong;
        check_constraints(&ask, machine->legal[other].constraints);
        i->legal_row = (uint32_t)other;
        if (!wrong) return;
    }
    i->legal_row = (uint32_t)row;
    check_constraints(c, machine->legal[row].constraints);
}

static void check_roles(const check *c) {
    for (uint32_t k = 0; k < c->i->slice_count; k++) {
        const uir_ipointer *p = uir_iverify_pointer(c->v, c->i->slices[k].pointer);
        bool written = k < c->row->results || (c->row->family == UIR_IOP_FAMILY_SCAN && k == 2);
        if (written && (p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_CONST))
            uir_iverify_report(c->v, c->line, "%%%s is an input and is written", p->name);
        for (uint32_t o = 0; o < c->v->g->pointers.count; o++)
            if (uir_iverify_pointer(c->v, o)->tied == c->i->slices[k].pointer)
                uir_iverify_report(c->v, c->line, "%%%s is tied: use %%%s, which begins with its contents", p->name,
                                   uir_iverify_pointer(c->v, o)->name);
    }
}

/* Of two buffers in one place an instruction touches one: what it writes would go while it is read. */
static void check_one_place(const check *c) {
    const uir_iinstruction *i = c->i;
    uint32_t count = i->slice_count + i->has_scratch;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t n = 0; n < k; n++) {
            uint32_t a = k < i->slice_count ? i->slices[k].pointer : i->scratch.pointer, b = i->slices[n].pointer;
            if (uir_igraph_share_place(c->v->g, a, b))
                uir_iverify_report(c->v, c->line,
                                   "%%%s and %%%s share storage: an instruction may use only one of them",
                                   uir_iverify_pointer(c->v, b)->name, uir_iverify_pointer(c->v, a)->name);
        }
}

/* Threads do not reach each other's registers. */
static void check_registers(const check *c) {
    const uir_igraph *g = c->v->g;
    if (uir_ithreads_count(g) < 2 || c->i->scope != UIR_SCOPE_UNIT) return;
    for (uint32_t k = 0; k < c->i->slice_count; k++) {
        const uir_ipointer *p = uir_iverify_pointer(c->v, c->i->slices[k].pointer);
        if (!(g->machine->spaces[p->space].roles & UIR_SPACE_REGISTERS) || uir_ithreads_is_own(g, c->i, k)) continue;
        uir_iverify_report(c->v, c->line, "registers: a thread of %s would reach elements of %s that are another one's",
                           g->machine->name, uir_iverify_slice_text(c->v, &c->i->slices[k]));
    }
}

void uir_iverify_instruction(uir_iverifier *v, uir_iinstruction *instruction, uint32_t unit_kind, uint32_t line) {
    check c = {v, instruction, uir_iop_get_row(instruction->code), line, NULL};
    instruction->unguarded = (1u << instruction->slice_count) - 1;
    instruction->legal_row = UINT32_MAX;
    if (c.row->family == UIR_IOP_FAMILY_SYNC) {
        if (instruction->sync_distance && instruction->sync_kind != UIR_SYNC_PIPES)
            uir_iverify_report(v, line, "dist is only valid in a sync of two pipes");
        if (instruction->sync_kind == UIR_SYNC_DEVICE)
            uir_iverify_report(v, line,
                               "sync.device: the device synchronises at the end of a phase; begin another phase");
        if (instruction->sync_kind == UIR_SYNC_UNIT && uir_ithreads_count(v->g) < 2)
            uir_iverify_report(v, line, "sync.unit: a unit of %s has one thread", v->g->machine->name);
        return;
    }
    check_dtypes(&c);
    check_shapes(&c);
    check_overlap(&c);
    check_one_place(&c);
    check_roles(&c);
    check_registers(&c);
    check_legal(&c, unit_kind);
}

void uir_iverify_index(uir_iverifier *v, const uir_iitem *item) {
    uir_igraph *g = v->g;
    uir_terms *t = &v->terms;
    const uir_islice *slice = &item->index.slice;
    const uir_ipointer *p = uir_iverify_pointer(v, slice->pointer);
    int64_t count;
    if (!uir_dtype_is_integer(p->dtype))
        uir_iverify_report(v, item->line, "dtype: index %s reads %%%s, which holds %s",
                           g->symbols.data[item->symbol].name, p->name, uir_dtype_name(p->dtype));
    for (uint32_t d = 0; d < slice->rank; d++)
        if (!uir_term_is_const(t, uir_term_of_dim(t, slice->counts[d]), &count) || count != 1)
            uir_iverify_report(v, item->line, "shape: an index is read from one element, not from %s",
                               uir_iverify_slice_text(v, slice));
    if (slice->has_fill && !fits_dtype(p->dtype, slice->fill))
        uir_iverify_report(v, item->line, "fill %g is not a value of %s", slice->fill, uir_dtype_name(p->dtype));
    /* Where something is always read, the index names an element. */
    uir_term limit = uir_term_of_dim(t, item->index.limit), one = uir_term_const(t, 1);
    uint32_t variable = uir_term_of_symbol(t, item->symbol);
    v->index_safe[item->symbol] = item->index.mode != UIR_INDEX_SKIP && uir_term_prove_le(t, one, limit);
    if (v->index_safe[item->symbol])
        uir_term_add_axiom(t, variable, uir_term_sub(t, uir_term_sub(t, limit, one), uir_term_variable(t, variable)));
}
