/* Where a slice's elements lie: a first address and, for each dim, a count and strides; else a list of addresses. */
#include "backends/source/source.h"

static bool is_within(const uir_c_writer *w, uir_dim first, uir_dim end, uir_dim limit) {
    int64_t low, high;
    if (!first.id || !end.id) return false;
    uir_dim_bounds(w->igraph->dims, first, &low, &high);
    return low >= 0 && uir_dim_compare(w->igraph->dims, end, UIR_RELATION_LE, limit) == UIR_TRUE;
}

/* Moves the view's beginning. */
static void advance(const uir_c_writer *w, uir_c_view *view, uir_dim steps, uir_dim stride) {
    uir_dims *dims = w->igraph->dims;
    view->first = uir_dim_add(dims, view->first, uir_dim_mul(dims, steps, stride));
}

/* Of the dim's indices those are there that bring the coordinate `start` + index to 0..extent-1. */
static void bound(const uir_c_writer *w, uir_c_view_dim *dim, uir_dim start, uir_dim extent) {
    uir_dims *dims = w->igraph->dims;
    dim->from = uir_dim_sub(dims, uir_dim_const(dims, 0), start);
    dim->until = uir_dim_sub(dims, extent, start);
}

/* ---- boxes ---- */
/* A dim whose elements lie in blocks; false where it does not begin with a block. */
static bool split_dim(uir_c_writer *w, const uir_ipointer *p, uint32_t d, uir_dim start, uir_c_view *view) {
    uir_dims *dims = w->igraph->dims;
    uir_c_view_dim *dim = &view->dims[d];
    uir_dim block = uir_dim_const(dims, 1);
    for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
        dim->modes[dim->mode_count++] = p->layout.modes[d][m];
        if (m + 1u < p->layout.mode_count[d]) block = uir_dim_mul(dims, block, p->layout.modes[d][m].size);
    }
    uir_dim within = uir_dim_mod(dims, start, block);
    if (!within.id || !uir_c_dim_is(w, within, 0)) return false;
    advance(w, view, uir_dim_floordiv(dims, start, block), dim->modes[dim->mode_count - 1].stride);
    return true;
}

static bool view_box(uir_c_writer *w, const uir_islice *slice, bool inside, uir_c_view *view) {
    const uir_ipointer *p = &w->igraph->pointers.data[slice->pointer];
    view->rank = p->rank;
    for (uint32_t d = 0; d < p->rank; d++) {
        uir_dim start = slice->starts[d], end = uir_dim_add(w->igraph->dims, start, slice->counts[d]);
        bool within = inside || is_within(w, start, end, p->extents[d]);
        view->dims[d].count = slice->counts[d];
        if (p->layout.mode_count[d] > 1) {
            if (!within || !split_dim(w, p, d, start, view)) return false;
            continue;
        }
        view->dims[d].mode_count = 1;
        view->dims[d].modes[0] = p->layout.modes[d][0];
        if (!within) bound(w, &view->dims[d], start, p->extents[d]);
        advance(w, view, start, p->layout.modes[d][0].stride);
    }
    return true;
}

/* ---- windows ---- */
typedef struct window {
    const uir_islice *slice;
    uir_c_view_dim axes[UIR_IGRAPH_MAX_RANK]; /* each with one mode */
} window;

/* A coordinate with one axis at 1 (UINT32_MAX: none) and the others at 0. */
static uir_dim coordinate_at(const uir_c_writer *w, const uir_islice *slice, uir_dim coordinate, uint32_t axis) {
    uir_dims *dims = w->igraph->dims;
    uir_dim_replacement by[UIR_IGRAPH_MAX_RANK];
    for (uint32_t a = 0; a < slice->axis_count; a++)
        by[a] = (uir_dim_replacement){{slice->axes[a].symbol}, uir_dim_const(dims, a == axis)};
    return uir_dim_replace(dims, coordinate, by, slice->axis_count);
}

/* How far each axis moves a coordinate; false: it is no sum of a start and steps. */
static bool find_steps(const uir_c_writer *w, const uir_islice *slice, uir_dim coordinate, uir_dim *out_start,
                       uir_dim *out_steps) {
    uir_dims *dims = w->igraph->dims;
    uir_dim sum = *out_start = coordinate_at(w, slice, coordinate, UINT32_MAX);
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uir_dim axis = uir_dim_symbol(dims, (uir_symbol){slice->axes[a].symbol});
        out_steps[a] = uir_dim_sub(dims, coordinate_at(w, slice, coordinate, a), *out_start);
        sum = uir_dim_add(dims, sum, uir_dim_mul(dims, out_steps[a], axis));
    }
    return sum.id && uir_dim_equal(sum, coordinate);
}

/* Adds what one of the pointer's dims makes of the axes; false: where it may be outside is no axis's bounds. */
static bool add_coordinate(uir_c_writer *w, window *x, uint32_t d, bool inside, uir_c_view *view) {
    uir_dims *dims = w->igraph->dims;
    const uir_ipointer *p = &w->igraph->pointers.data[x->slice->pointer];
    uir_dim start, steps[UIR_IGRAPH_MAX_RANK], at = x->slice->starts[d];
    uint32_t moving = 0, mover = 0;
    if (p->layout.mode_count[d] > 1 || !find_steps(w, x->slice, at, &start, steps)) return false;
    uir_dim stride = p->layout.modes[d][0].stride;
    for (uint32_t a = 0; a < x->slice->axis_count; a++) {
        uir_mode *mode = &x->axes[a].modes[0];
        mode->stride = uir_dim_add(dims, mode->stride, uir_dim_mul(dims, steps[a], stride));
        if (!uir_c_dim_is(w, steps[a], 0)) moving++, mover = a;
    }
    advance(w, view, start, stride);
    if (inside || is_within(w, at, uir_dim_add(dims, at, uir_dim_const(dims, 1)), p->extents[d])) return true;
    if (moving != 1 || !uir_c_dim_is(w, steps[mover], 1) || x->axes[mover].from.id) return false;
    bound(w, &x->axes[mover], start, p->extents[d]);
    return true;
}

/* The axes of each of the slice's dims, of which the last moves fastest, are its modes. */
static bool join_axes(const window *x, uir_c_view *view) {
    for (uint32_t a = x->slice->axis_count; a-- > 0;) {
        uir_c_view_dim *dim = &view->dims[x->slice->axes[a].dim];
        bool alone = !dim->mode_count && (a == 0 || x->slice->axes[a - 1].dim != x->slice->axes[a].dim);
        if (!x->axes[a].modes[0].stride.id || (x->axes[a].from.id && !alone)) return false;
        if (alone) dim->from = x->axes[a].from, dim->until = x->axes[a].until;
        dim->modes[dim->mode_count++] = x->axes[a].modes[0];
    }
    return true;
}

static bool view_window(uir_c_writer *w, const uir_islice *slice, bool inside, uir_c_view *view) {
    window x = {.slice = slice};
    if (slice->axis_count > UIR_IGRAPH_MAX_RANK) return false;
    view->rank = slice->rank;
    for (uint32_t d = 0; d < slice->rank; d++) view->dims[d].count = slice->counts[d];
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        x.axes[a].modes[0] = (uir_mode){slice->axes[a].extent, uir_dim_const(w->igraph->dims, 0)};
        x.axes[a].mode_count = 1;
    }
    for (uint32_t d = 0; d < w->igraph->pointers.data[slice->pointer].rank; d++)
        if (!add_coordinate(w, &x, d, inside, view)) return false;
    return join_axes(&x, view);
}

bool uir_c_view_find(uir_c_writer *w, const uir_islice *slice, bool inside, uir_c_view *out) {
    *out = (uir_c_view){.first = uir_dim_const(w->igraph->dims, 0)};
    if (w->igraph->pointers.data[slice->pointer].layout.swizzle.bits) return false;
    return (slice->window ? view_window : view_box)(w, slice, inside, out) && out->first.id;
}

/* ---- lists ---- */
/* The address of the element that the loops stand at; OUTSIDE where it is none. */
static const char *address(uir_c_writer *w, const uir_islice *slice, bool inside) {
    const uir_ipointer *p = &w->igraph->pointers.data[slice->pointer];
    const char *sum = "0", *fits = NULL;
    uir_swizzle s = p->layout.swizzle;
    for (uint32_t d = 0; d < p->rank; d++) {
        const uir_mode *modes = p->layout.modes[d];
        const char *rest = uir_c_dim(w, slice->starts[d]), *extent = uir_c_dim(w, p->extents[d]);
        if (!slice->window) rest = uir_c_sum(w, rest, uir_c_format(w, "x%u", d));
        if (!inside)
            fits = uir_c_format(w, "%s%s%s >= 0 && %s < %s", fits ? fits : "", fits ? " && " : "", rest, rest, extent);
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
            bool last = m + 1 == p->layout.mode_count[d];
            const char *size = last ? NULL : uir_c_dim(w, modes[m].size);
            const char *digit = last ? rest : uir_c_format(w, "uir_mod(%s, %s)", rest, size);
            sum = uir_c_sum(w, sum, uir_c_product(w, digit, uir_c_dim(w, modes[m].stride)));
            if (!last) rest = uir_c_format(w, "uir_floordiv(%s, %s)", rest, size);
        }
    }
    if (s.bits) sum = uir_c_format(w, "SWIZZLE(%s, %u, %u, %u)", sum, s.bits, s.base, s.shift);
    return fits ? uir_c_format(w, "%s ? %s : OUTSIDE", fits, sum) : sum;
}

void uir_c_list(uir_c_writer *w, const uir_islice *slice, bool inside, const char *name) {
    const char *total = "1";
    for (uint32_t d = 0; d < slice->rank; d++)
        total = uir_c_format(w, "%s * uir_max(0, %s)", total, uir_c_dim(w, slice->counts[d]));
    uir_c_line(w, "int64_t *const %s = make_list(%s), %s_count = 0;", name, total, name);
    for (uint32_t i = 0; i < (slice->window ? slice->axis_count : slice->rank); i++) {
        const char *x = uir_c_format(w, "x%u", i);
        if (slice->window) w->symbols[slice->axes[i].symbol] = x;
        uir_c_line(w, "for (int64_t %s = 0; %s < %s; %s++)", x, x,
                   uir_c_dim(w, slice->window ? slice->axes[i].extent : slice->counts[i]), x);
    }
    uir_c_line(w, "    %s[%s_count++] = %s;", name, name, address(w, slice, inside));
}
