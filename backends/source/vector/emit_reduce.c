/* Reductions down the columns, row reductions into results of another shape, and scans. */
#include "backends/source/vector/emit.h"

#include <string.h>

typedef struct lines {
    uint32_t rank, axis; /* of the operand; the dim reduced */
    const char *loops[INDEX_MAX + 1];
    const char *line[INDEX_MAX]; /* per dim of the result */
} lines;

/* Loops over all dims but the reduced one; the result's index is the line's number, split over the result's dims. */
static void open_lines(emitter *e, const uir_islice *operand, const uir_islice *result, uir_iaxis axis, lines *out) {
    out->rank = operand->rank;
    out->axis = axis == UIR_IAXIS_COL ? operand->rank - 2 : operand->rank - 1;
    const char *number = NULL;
    for (uint32_t d = 0; d < operand->rank; d++) {
        out->loops[d] = uir_c_format(&e->c, "k%u", d);
        if (d == out->axis) continue;
        const char *count = uir_c_dim(&e->c, operand->counts[d]);
        uir_c_open(&e->c, "for (int64_t %s = 0; %s < %s; %s++)", out->loops[d], out->loops[d], count, out->loops[d]);
        number = number ? uir_c_format(&e->c, "(%s) * (%s) + %s", number, count, out->loops[d]) : out->loops[d];
    }
    /* An axis that the result lacks or has as 1; the others in order, when the result says so, else by number. */
    bool same = result->rank == operand->rank && uir_c_dim_is(&e->c, result->counts[out->axis], 1),
         less = result->rank + 1 == operand->rank;
    for (uint32_t d = 0; same && d < result->rank; d++)
        same = d == out->axis || uir_dim_equal(result->counts[d], operand->counts[d]);
    for (uint32_t d = 0; less && d < result->rank; d++)
        less = uir_dim_equal(result->counts[d], operand->counts[d < out->axis ? d : d + 1]);
    const char *rest = number ? number : "0";
    for (uint32_t d = result->rank; d-- > 0;) {
        if (same) {
            out->line[d] = d == out->axis ? "0" : out->loops[d];
        } else if (less) {
            out->line[d] = out->loops[d < out->axis ? d : d + 1];
        } else {
            const char *count = uir_c_dim(&e->c, result->counts[d]);
            out->line[d] = d ? uir_c_format(&e->c, "((%s) %% (%s))", rest, count) : uir_c_format(&e->c, "(%s)", rest);
            rest = uir_c_format(&e->c, "(%s) / (%s)", rest, count);
        }
    }
}

static void close_lines(emitter *e, const lines *l) {
    for (uint32_t d = 0; d < l->rank; d++) {
        if (d != l->axis) uir_c_close(&e->c);
    }
}

/* Columns as vectors: the last dim in blocks, the rows in order. */
static bool emit_columns(emitter *e, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1];
    access target, source;
    uint32_t moving, rank = from->rank;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *index[INDEX_MAX],
               *coordinates[INDEX_MAX], *loops[INDEX_MAX];
    if (to->rank != rank || to->window || !uir_c_dim_is(&e->c, to->counts[rank - 2], 1)) return false;
    for (uint32_t d = 0; d < rank; d++) {
        if (d != rank - 2 && !uir_dim_equal(to->counts[d], from->counts[d])) return false;
    }
    uir_access_init(e, to, in->unguarded & 1, &target);
    uir_access_init(e, from, in->unguarded >> 1 & 1, &source);
    if (uir_access_along_last(e, &target, &moving) != ALONG_UNIT || uir_access_guarded(&target)) return false;
    if (uir_access_along_last(e, &source, &moving) != ALONG_UNIT || source.missing) return false;
    for (uint32_t d = 0; d + 2 < rank; d++) {
        loops[d] = uir_c_format(&e->c, "k%u", d);
        uir_c_open(&e->c, "for (int64_t %s = 0; %s < %s; %s++)", loops[d], loops[d], uir_c_dim(&e->c, from->counts[d]),
                   loops[d]);
    }
    for (uint32_t d = 0; d < rank; d++) index[d] = d + 2 < rank ? loops[d] : "0";
    uir_access_coordinates(e, &target, index, coordinates);
    uir_c_line(&e->c, "%s%s *const to = %s + (%s);", e->dialect->memory, type, target.base,
               uir_access_offset(e, &target, coordinates));
    uir_c_line(&e->c, "const int64_t n = %s, rows = %s;", uir_c_dim(&e->c, from->counts[rank - 1]),
               uir_c_dim(&e->c, from->counts[rank - 2]));
    uir_c_open(&e->c, "for (int64_t j = 0; j < n; j += UIR_LANES)");
    if (in->accumulate)
        uir_c_line(&e->c, "v_%s sum = v_load_range_%s(to + j, 0, n - j, 0);", type, type);
    else
        uir_c_line(&e->c, "v_%s sum = v_set_%s(%s);", type, type, uir_c_identity(e, in->code, in->dtype));
    uir_c_open(&e->c, "for (int64_t i = 0; i < rows; i++)");
    index[rank - 2] = "i";
    uir_access_coordinates(e, &source, index, coordinates);
    uir_c_line(&e->c, "%sconst %s *const from = %s + (%s);", e->dialect->memory, type, source.base,
               uir_access_offset(e, &source, coordinates));
    const char *low = source.low[moving] ? uir_c_format(&e->c, "uir_max(0, -(%s)) - j", coordinates[moving]) : "0";
    const char *high = source.high[moving]
                           ? uir_c_format(&e->c, "uir_min(n, %s - (%s)) - j",
                                          uir_c_dim(&e->c, source.pointer->extents[moving]), coordinates[moving])
                           : "n - j";
    const char *inside = uir_access_inside(e, &source, coordinates, moving);
    if (inside) high = uir_c_format(&e->c, "%s ? %s : 0", inside, high);
    const char *fill = uir_c_literal(e, in->dtype, from->has_fill ? from->fill : 0);
    uir_c_line(&e->c, "const int64_t first = %s, last = %s;", low, high);
    uir_c_line(&e->c,
               "sum = v_%s_%s(sum, first <= 0 && last >= UIR_LANES ? v_load_%s(from + j) : v_load_range_%s(from + j, "
               "first, last, %s));",
               operation, type, type, type, fill);
    uir_c_close(&e->c);
    uir_c_line(&e->c, "v_store_range_%s(to + j, 0, n - j, sum);", type);
    uir_c_close(&e->c);
    for (uint32_t d = 0; d + 2 < rank; d++) uir_c_close(&e->c);
    return true;
}

void uir_emit_reduce(emitter *e, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1];
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code),
               *zero = uir_c_literal(e, in->dtype, 0);
    bool column = in->axis == UIR_IAXIS_COL;
    access target, source;
    lines l;
    uir_c_open(&e->c, "%s", "");
    if (column && from->rank >= 2 && emit_columns(e, in)) {
        uir_c_close(&e->c);
        return;
    }
    uir_access_init(e, to, in->unguarded & 1, &target);
    uir_access_init(e, from, in->unguarded >> 1 & 1, &source);
    open_lines(e, from, to, in->axis, &l);
    const char *identity = uir_c_identity(e, in->code, in->dtype), *count = uir_c_dim(&e->c, from->counts[l.axis]);
    if (column) {
        uir_c_line(&e->c, "%s total = %s;", type,
                   in->accumulate ? uir_access_read(e, &target, l.line, zero) : identity);
        uir_c_open(&e->c, "for (int64_t %s = 0; %s < %s; %s++)", l.loops[l.axis], l.loops[l.axis], count,
                   l.loops[l.axis]);
        uir_c_line(&e->c, "total = s_%s_%s(total, %s);", operation, type, uir_access_read(e, &source, l.loops, zero));
        uir_c_close(&e->c);
    } else {
        uir_c_line(&e->c, "%s lane[32];", type);
        uir_c_line(&e->c, "for (int i = 0; i < 32; i++) lane[i] = %s;", identity);
        uir_c_open(&e->c, "for (int64_t %s = 0; %s < %s; %s++)", l.loops[l.axis], l.loops[l.axis], count,
                   l.loops[l.axis]);
        uir_c_line(&e->c, "lane[%s %% 32] = s_%s_%s(lane[%s %% 32], %s);", l.loops[l.axis], operation, type,
                   l.loops[l.axis], uir_access_read(e, &source, l.loops, zero));
        uir_c_close(&e->c);
        uir_c_open(&e->c, "for (int s = 16; s > 0; s /= 2)");
        uir_c_line(&e->c, "for (int i = 0; i < s; i++) lane[i] = s_%s_%s(lane[i], lane[i + s]);", operation, type);
        uir_c_close(&e->c);
        uir_c_line(&e->c, "%s total = lane[0];", type);
        if (in->accumulate)
            uir_c_line(&e->c, "total = s_%s_%s(%s, total);", operation, type,
                       uir_access_read(e, &target, l.line, zero));
    }
    uir_access_write(e, &target, l.line, "total");
    close_lines(e, &l);
    uir_c_close(&e->c);
}

void uir_emit_scan(emitter *e, const uir_iinstruction *in) {
    const uir_islice *to = &in->slices[0], *from = &in->slices[1], *carried = &in->slices[2];
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code),
               *zero = uir_c_literal(e, in->dtype, 0);
    access target, source, carry;
    lines l;
    uir_access_init(e, to, in->unguarded & 1, &target);
    uir_access_init(e, from, in->unguarded >> 1 & 1, &source);
    uir_access_init(e, carried, in->unguarded >> 2 & 1, &carry);
    uir_c_open(&e->c, "%s", "");
    open_lines(e, from, carried, in->axis, &l);
    uir_c_line(&e->c, "%s sum = %s;", type, uir_access_read(e, &carry, l.line, zero));
    uir_c_open(&e->c, "for (int64_t %s = 0; %s < %s; %s++)", l.loops[l.axis], l.loops[l.axis],
               uir_c_dim(&e->c, from->counts[l.axis]), l.loops[l.axis]);
    uir_c_line(&e->c, "const %s next = s_%s_%s(sum, %s);", type, operation, type,
               uir_access_read(e, &source, l.loops, zero));
    /* The result has the operand's elements in its own shape, which align at the end. */
    const char *index[INDEX_MAX];
    uir_access_align(e, to, from->counts, from->rank, l.loops, index);
    uir_access_write(e, &target, index, in->exclusive ? "sum" : "next");
    uir_c_line(&e->c, "sum = next;");
    uir_c_close(&e->c);
    uir_access_write(e, &carry, l.line, "sum");
    close_lines(e, &l);
    uir_c_close(&e->c);
}
