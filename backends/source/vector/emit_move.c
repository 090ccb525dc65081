/* Moves that a run would do badly: between layouts whose neighbouring elements lie along different dims (a blocked
 * exchange of rows and columns), and between slices of different shapes with the same elements in the same order. */
#include "backends/source/vector/emit.h"

#include <string.h>

static bool broadcasts(emitter *e, const uir_islice *from, const uir_islice *to) {
    for (uint32_t d = 0; d < from->rank; d++) {
        uint32_t from_end = from->rank - d;
        if (uir_c_dim_is(&e->c, from->counts[d], 1)) continue;
        if (from->block && from_end == 1) continue;
        if (from_end > to->rank || !uir_dim_equal(from->counts[d], to->counts[to->rank - from_end])) return false;
    }
    return true;
}

/* The digits of a flat index over a slice's dims. */
static void split_index(emitter *e, const uir_islice *slice, const char *flat, const char **out) {
    const char *rest = flat;
    for (uint32_t d = slice->rank; d-- > 0;) {
        const char *count = uir_c_dim(&e->c, slice->counts[d]);
        out[d] = d ? uir_c_format(&e->c, "((%s) %% (%s))", rest, count) : uir_c_format(&e->c, "(%s)", rest);
        rest = uir_c_format(&e->c, "(%s) / (%s)", rest, count);
    }
}

static const char *total_of(emitter *e, const uir_islice *slice) {
    const char *total = "1";
    for (uint32_t d = 0; d < slice->rank; d++)
        total = uir_c_product(&e->c, total, uir_c_format(&e->c, "uir_max(0, %s)", uir_c_dim(&e->c, slice->counts[d])));
    return total;
}

/* Same number of elements, or one: in row-major order; else the shapes broadcast at run time. */
static void emit_flat(emitter *e, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1];
    access target, source;
    const char *index[INDEX_MAX], *loops[INDEX_MAX], *zero = uir_c_literal(e, in->dtype, 0);
    uir_access_init(e, to, in->unguarded & 1, &target);
    uir_access_init(e, from, in->unguarded >> 1 & 1, &source);
    uir_c_open(&e->c, "%s", "");
    uir_c_line(&e->c, "const int64_t total = %s, given = %s;", total_of(e, to), total_of(e, from));
    uir_c_open(&e->c, "for (int64_t i = 0; i < total; i++)");
    uir_c_line(&e->c, "%s value;", source.type);
    uir_c_open(&e->c, "if (given == 1 || given == total)");
    uir_c_line(&e->c, "const int64_t at = given == 1 ? 0 : i;");
    uir_c_line(&e->c, "(void)at;");
    split_index(e, from, "at", index);
    uir_c_line(&e->c, "value = %s;", uir_access_read(e, &source, index, zero));
    uir_c_close(&e->c);
    uir_c_open(&e->c, "else");
    split_index(e, to, "i", loops);
    uir_access_align(e, from, to->counts, to->rank, loops, index);
    uir_c_line(&e->c, "value = %s;", uir_access_read(e, &source, index, zero));
    uir_c_close(&e->c);
    split_index(e, to, "i", index);
    uir_access_write(e, &target, index, "value");
    uir_c_close(&e->c);
    uir_c_close(&e->c);
}

/* A slice as a matrix over its dims p and q: one address step for each, when all its other dims are 1. */
typedef struct matrix {
    access access;
    uint32_t dims[2];     /* pointer dims */
    const char *steps[2]; /* address distance of neighbours */
    const char *avail[2]; /* how far the extents go, from the start */
    bool panel;           /* dims[0] is split: rows are in panels of `panel_size`, `panel_step` apart */
    const char *panel_size, *panel_step;
} matrix;

static bool matrix_of(emitter *e, const uir_islice *slice, bool unguarded, uint32_t p, uint32_t q, matrix *out) {
    *out = (matrix){.dims = {p, q}};
    uir_access_init(e, slice, unguarded, &out->access);
    if (out->access.missing) return false;
    const uir_ipointer *pointer = out->access.pointer;
    for (uint32_t d = 0; d < slice->rank; d++) {
        if (d != p && d != q && !uir_c_dim_is(&e->c, slice->counts[d], 1)) return false;
        if (d != p && d != q && (out->access.low[d] || out->access.high[d])) return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t d = out->dims[i];
        if (out->access.low[d]) return false;
        out->steps[i] = uir_c_dim(&e->c, pointer->layout.modes[d][0].stride);
        out->avail[i] =
            uir_c_format(&e->c, "%s - (%s)", uir_c_dim(&e->c, pointer->extents[d]), uir_c_dim(&e->c, slice->starts[d]));
        if (pointer->layout.mode_count[d] == 1) continue;
        if (i == 1 || pointer->layout.mode_count[d] != 2) return false;
        int64_t size;
        if (!uir_dim_is_const(e->c.igraph->dims, pointer->layout.modes[d][0].size, &size) || size < 1) return false;
        if (!uir_c_dim_multiple_of(&e->c, slice->starts[d], size)) return false;
        out->panel = true;
        out->panel_size = uir_c_dim(&e->c, pointer->layout.modes[d][0].size);
        out->panel_step = uir_c_dim(&e->c, pointer->layout.modes[d][1].stride);
    }
    return true;
}

/* A slice of two dims that are not 1, or a window that is one: the pointer's dims that they are. */
static const uir_islice *box_of(emitter *e, const uir_islice *slice, uint32_t *out_dims) {
    uint32_t found = 0, first = uir_access_leading_ones(e, slice, 2);
    if (slice->window) return slice->rank - first == 2 ? uir_emit_box_of_window(e, slice, first, out_dims) : NULL;
    for (uint32_t d = 0; d < slice->rank; d++) {
        if (uir_c_dim_is(&e->c, slice->counts[d], 1)) continue;
        if (found == 2) return NULL;
        out_dims[found++] = d;
    }
    return found == 2 && !slice->block ? slice : NULL;
}

static bool is_side_by_side(emitter *e, const uir_islice *slice, uint32_t d) {
    return uir_c_dim_is(&e->c, e->c.igraph->pointers.data[slice->pointer].layout.modes[d][0].stride, 1);
}

static bool emit_transposed(emitter *e, const uir_iinstruction *in) {
    uint32_t made[2], given[2];
    matrix target, source;
    const uir_islice *to = box_of(e, &in->slices[0], made), *from = box_of(e, &in->slices[1], given);
    if (!to || !from || uir_dtype_bits(in->dtype) != 32 || to->pointer == from->pointer) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!uir_dim_equal(to->counts[made[i]], from->counts[given[i]])) return false;
    /* Rows, along p, are neighbours in the target, perhaps in panels; columns, along q, are in the source. */
    uint32_t p = is_side_by_side(e, to, made[1]), q = !p;
    if (is_side_by_side(e, to, made[0]) == (p != 0) || !is_side_by_side(e, from, given[q])) return false;
    if (!matrix_of(e, to, in->unguarded & 1, made[p], made[q], &target) ||
        !matrix_of(e, from, in->unguarded >> 1 & 1, given[p], given[q], &source) || source.panel)
        return false;
    const char *index[INDEX_MAX], *at_target[INDEX_MAX], *at_source[INDEX_MAX];
    for (uint32_t d = 0; d < INDEX_MAX; d++) index[d] = "0";
    uir_access_coordinates(e, &target.access, index, at_target);
    uir_access_coordinates(e, &source.access, index, at_source);
    bool clipped = false;
    uir_c_open(&e->c, "%s", "");
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t d = made[i ? q : p];
        bool short_of = source.access.high[given[i ? q : p]];
        const char *size = uir_c_format(&e->c, "uir_max(0, %s)", uir_c_dim(&e->c, to->counts[d])),
                   *name = i ? "columns" : "rows";
        if (target.access.high[d]) size = uir_c_format(&e->c, "uir_min(%s, uir_max(0, %s))", size, target.avail[i]);
        uir_c_line(&e->c, "%sint64_t %s = %s;", from->has_fill && short_of ? "" : "const ", name, size);
        if (short_of && !from->has_fill) {
            uir_c_line(&e->c, "const int64_t %s_given = uir_min(%s, uir_max(0, %s));", name, name, source.avail[i]);
        } else {
            uir_c_line(&e->c, "const int64_t %s_given = %s;", name,
                       short_of ? uir_c_format(&e->c, "uir_min(%s, uir_max(0, %s))", name, source.avail[i]) : name);
        }
        clipped |= short_of && from->has_fill;
    }
    uir_c_line(&e->c, "%s%s *const to = %s + (%s);", e->dialect->memory, target.access.type, target.access.base,
               uir_access_offset(e, &target.access, at_target));
    uir_c_line(&e->c, "%sconst %s *const from = %s + (%s);", e->dialect->memory, source.access.type, source.access.base,
               uir_access_offset(e, &source.access, at_source));
    if (target.panel) {
        uir_c_open(&e->c, "for (int64_t i = 0; i < rows_given; i += %s)", target.panel_size);
        uir_c_line(&e->c,
                   "uir_transpose_32(to + i / %s * (%s), %s, from + i * (%s), %s, uir_min(%s, rows_given - i), "
                   "columns_given);",
                   target.panel_size, target.panel_step, target.steps[1], source.steps[0], source.steps[0],
                   target.panel_size);
        uir_c_close(&e->c);
    } else {
        uir_c_line(&e->c, "uir_transpose_32(to, %s, from, %s, rows_given, columns_given);", target.steps[1],
                   source.steps[0]);
    }
    if (clipped) {
        const char *fill = uir_c_literal(e, in->dtype, from->fill);
        const char *place = target.panel ? uir_c_format(&e->c, "i %% %s * (%s) + i / %s * (%s)", target.panel_size,
                                                        target.steps[0], target.panel_size, target.panel_step)
                                         : uir_c_product(&e->c, "i", target.steps[0]);
        uir_c_open(&e->c, "for (int64_t i = 0; i < rows; i++)");
        uir_c_line(&e->c, "for (int64_t j = i < rows_given ? columns_given : 0; j < columns; j++) to[%s] = %s;",
                   uir_c_sum(&e->c, place, uir_c_product(&e->c, "j", target.steps[1])), fill);
        uir_c_close(&e->c);
    } else {
        uir_c_line(&e->c, "(void)rows;");
        uir_c_line(&e->c, "(void)columns;");
    }
    uir_c_close(&e->c);
    return true;
}

enum { FEW = 4 };

/* Rows of so few elements that do not lie together: each by itself, which is less than a vector put together of them.
 */
static bool emit_few(emitter *e, const uir_iinstruction *in) {
    const uir_islice *slices[2] = {&in->slices[0], &in->slices[1]};
    uint32_t rank = slices[slices[0]->rank < slices[1]->rank]->rank, opened = 0;
    access of[2];
    const char *loops[INDEX_MAX], *index[2][INDEX_MAX], *zero = uir_c_literal(e, in->dtype, 0);
    int64_t few;
    if (!slices[0]->rank || !slices[1]->rank || slices[0]->block || slices[1]->block ||
        !uir_dim_is_const(e->c.igraph->dims, slices[0]->counts[slices[0]->rank - 1], &few) || few < 1 || few > FEW)
        return false;
    for (uint32_t end = 1; end <= rank; end++) { /* dims that only one has are of one element */
        uir_dim counts[2];
        for (uint32_t k = 0; k < 2; k++)
            counts[k] =
                end <= slices[k]->rank ? slices[k]->counts[slices[k]->rank - end] : uir_dim_const(e->c.igraph->dims, 1);
        if (!uir_dim_equal(counts[0], counts[1])) return false;
    }
    for (uint32_t k = 0; k < 2; k++) uir_access_init(e, slices[k], in->unguarded >> k & 1, &of[k]);
    uir_c_open(&e->c, "%s", "");
    const uir_islice *longer = slices[slices[0]->rank < slices[1]->rank];
    for (uint32_t d = 0; d + 1 < rank; d++) {
        loops[d] = "0";
        if (uir_c_dim_is(&e->c, longer->counts[d], 1)) continue;
        loops[d] = uir_c_format(&e->c, "i%u", d);
        uir_c_open(&e->c, "for (int64_t i%u = 0, end = %s; i%u < end; i%u++)", d, uir_c_dim(&e->c, longer->counts[d]),
                   d, d);
        opened++;
    }
    for (int64_t i = 0; i < few; i++) {
        loops[rank - 1] = uir_c_format(&e->c, "%lld", (long long)i);
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t d = 0; d < slices[k]->rank; d++) index[k][d] = loops[rank - slices[k]->rank + d];
        uir_access_write(e, &of[0], index[0], uir_access_read(e, &of[1], index[1], zero));
    }
    for (; opened; opened--) uir_c_close(&e->c);
    uir_c_close(&e->c);
    return true;
}

bool uir_emit_move(emitter *e, const uir_iinstruction *in) {
    if (uir_iop_get_row(in->code)->family != UIR_IOP_FAMILY_MOVE || in->immediate_mask) return false;
    if (emit_transposed(e, in) || emit_few(e, in)) return true;
    if (broadcasts(e, &in->slices[1], &in->slices[0])) return false;
    emit_flat(e, in);
    return true;
}
