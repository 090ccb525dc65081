/* Where a slice's elements lie: a first address and, for each dim, a count and strides; else a list of addresses. */
#include "backends/null/target/emit.h"

static const char one[] = ", ALONG(1, 0)"; /* the dims of what has none */
enum { MOST_AXES = 8 };                    /* of a window that has strides */

/* A dim of the operand, or an axis of a window. */
typedef struct extent {
    uir_dim count, stride;
    uir_dim start, end; /* where it is bounded: of the coordinate that it moves, and of the pointer's dim; else NONE */
} extent;

static bool is_within(emitter *e, uir_dim first, uir_dim end, uir_dim limit) {
    return uir_c_dim_at_least(&e->c, first, 0) &&
           uir_dim_compare(e->c.igraph->dims, end, UIR_RELATION_LE, limit) == UIR_TRUE;
}

static const char *print_extent(emitter *e, const extent *x) {
    uir_dims *dims = e->c.igraph->dims;
    const char *count = uir_c_dim(&e->c, x->count), *stride = uir_c_dim(&e->c, x->stride);
    if (!x->end.id) return uir_c_format(&e->c, "ALONG(%s, %s)", count, stride);
    uir_dim from = uir_dim_sub(dims, uir_dim_const(dims, 0), x->start), until = uir_dim_sub(dims, x->end, x->start);
    return uir_c_format(&e->c, "PART(%s, %s, %s, %s)", count, stride, uir_c_dim(&e->c, from), uir_c_dim(&e->c, until));
}

/* ---- boxes ---- */
/* A dim in blocks, which begins with an outermost one: its modes, and the address where it begins. NULL: it does not.
 */
static const char *split_dim(emitter *e, const uir_ipointer *p, uint32_t d, const uir_islice *slice, uir_dim *first) {
    uir_dims *dims = e->c.igraph->dims;
    const uir_mode *modes = p->layout.modes[d];
    uint32_t last = p->layout.mode_count[d] - 1u;
    uir_dim block = uir_dim_const(dims, 1);
    const char *text = uir_c_format(&e->c, "SPLIT(%s", uir_c_dim(&e->c, slice->counts[d]));
    for (uint32_t m = 0; m < last; m++) {
        block = uir_dim_mul(dims, block, modes[m].size);
        text = uir_c_format(&e->c, "%s, {%s, %s}", text, uir_c_dim(&e->c, modes[m].size),
                            uir_c_dim(&e->c, modes[m].stride));
    }
    uir_dim within = uir_dim_mod(dims, slice->starts[d], block), at = uir_dim_floordiv(dims, slice->starts[d], block);
    if (!within.id || !uir_c_dim_is(&e->c, within, 0)) return NULL;
    *first = uir_dim_add(dims, *first, uir_dim_mul(dims, at, modes[last].stride));
    return uir_c_format(&e->c, "%s, {1, %s})", text, uir_c_dim(&e->c, modes[last].stride));
}

static const char *box(emitter *e, const uir_islice *slice, const uir_ipointer *p, bool inside, uir_dim *first) {
    uir_dims *dims = e->c.igraph->dims;
    const char *text = "";
    for (uint32_t d = 0; d < p->rank; d++) {
        uir_dim start = slice->starts[d], end = uir_dim_add(dims, start, slice->counts[d]);
        bool within = inside || (end.id && is_within(e, start, end, p->extents[d])),
             split = p->layout.mode_count[d] > 1;
        extent x = {slice->counts[d], p->layout.modes[d][0].stride, start, within ? UIR_DIM_NONE : p->extents[d]};
        const char *dim = !split ? print_extent(e, &x) : within ? split_dim(e, p, d, slice, first) : NULL;
        if (!dim) return NULL;
        if (!split) *first = uir_dim_add(dims, *first, uir_dim_mul(dims, start, x.stride));
        text = uir_c_format(&e->c, "%s, %s", text, dim);
    }
    return text;
}

/* ---- windows ---- */
/* A coordinate with one axis at 1 (UINT32_MAX: none) and the others at 0. */
static uir_dim coordinate_at(emitter *e, const uir_islice *slice, uir_dim coordinate, uint32_t axis) {
    uir_dims *dims = e->c.igraph->dims;
    uir_dim_replacement by[MOST_AXES];
    for (uint32_t a = 0; a < slice->axis_count; a++)
        by[a] = (uir_dim_replacement){{slice->axes[a].symbol}, uir_dim_const(dims, a == axis)};
    return uir_dim_replace(dims, coordinate, by, slice->axis_count);
}

/* How far each axis moves a coordinate; false: it is no sum of a start and steps. */
static bool find_steps(emitter *e, const uir_islice *slice, uir_dim coordinate, uir_dim *out_start,
                       uir_dim *out_steps) {
    uir_dims *dims = e->c.igraph->dims;
    uir_dim sum = *out_start = coordinate_at(e, slice, coordinate, UINT32_MAX);
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uir_dim axis = uir_dim_symbol(dims, (uir_symbol){slice->axes[a].symbol});
        out_steps[a] = uir_dim_sub(dims, coordinate_at(e, slice, coordinate, a), *out_start);
        sum = uir_dim_add(dims, sum, uir_dim_mul(dims, out_steps[a], axis));
    }
    return sum.id && uir_dim_equal(sum, coordinate);
}

/* Adds what one of the pointer's dims makes of the axes; false: where it may be outside is no axis's bounds. */
static bool add_coordinate(emitter *e, const uir_islice *slice, const uir_ipointer *p, uint32_t d, bool inside,
                           uir_dim *first, extent *axes) {
    uir_dims *dims = e->c.igraph->dims;
    uir_dim start, steps[MOST_AXES], stride = p->layout.modes[d][0].stride, at = slice->starts[d];
    uint32_t moving = 0, mover = 0;
    if (p->layout.mode_count[d] > 1 || !find_steps(e, slice, at, &start, steps)) return false;
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        axes[a].stride = uir_dim_add(dims, axes[a].stride, uir_dim_mul(dims, steps[a], stride));
        if (!uir_c_dim_is(&e->c, steps[a], 0)) moving++, mover = a;
    }
    *first = uir_dim_add(dims, *first, uir_dim_mul(dims, start, stride));
    uir_dim end = uir_dim_add(dims, at, uir_dim_const(dims, 1));
    if (inside || (end.id && is_within(e, at, end, p->extents[d]))) return true;
    if (moving != 1 || !uir_c_dim_is(&e->c, steps[mover], 1) || axes[mover].end.id) return false;
    axes[mover].start = start;
    axes[mover].end = p->extents[d];
    return true;
}

static const char *window(emitter *e, const uir_islice *slice, const uir_ipointer *p, bool inside, uir_dim *first) {
    extent axes[MOST_AXES];
    const char *text = "";
    if (slice->axis_count > MOST_AXES) return NULL;
    for (uint32_t a = 0; a < slice->axis_count; a++)
        axes[a] = (extent){slice->axes[a].extent, uir_dim_const(e->c.igraph->dims, 0), UIR_DIM_NONE, UIR_DIM_NONE};
    for (uint32_t d = 0; d < p->rank; d++)
        if (!add_coordinate(e, slice, p, d, inside, first, axes)) return NULL;
    for (uint32_t begin = 0, end; begin < slice->axis_count; begin = end) {
        for (end = begin; end < slice->axis_count && slice->axes[end].dim == slice->axes[begin].dim; end++) {
        }
        for (uint32_t a = begin; a < end; a++)
            if (!axes[a].stride.id || (axes[a].end.id && end - begin > 1)) return NULL;
        if (end - begin == 1) {
            text = uir_c_format(&e->c, "%s, %s", text, print_extent(e, &axes[begin]));
            continue;
        }
        text = uir_c_format(&e->c, "%s, SPLIT(%s", text, uir_c_dim(&e->c, slice->counts[slice->axes[begin].dim]));
        for (uint32_t a = end; a-- > begin;)
            text = uir_c_format(&e->c, "%s, {%s, %s}", text, uir_c_dim(&e->c, axes[a].count),
                                uir_c_dim(&e->c, axes[a].stride));
        text = uir_c_format(&e->c, "%s)", text);
    }
    return text;
}

/* ---- lists ---- */
/* The address of the element that the loops stand at; OUTSIDE where it is none. */
static const char *address(emitter *e, const uir_islice *slice, const uir_ipointer *p, bool inside) {
    const char *sum = "0", *fits = NULL;
    uir_swizzle s = p->layout.swizzle;
    for (uint32_t d = 0; d < p->rank; d++) {
        const uir_mode *modes = p->layout.modes[d];
        const char *rest = uir_c_dim(&e->c, slice->starts[d]), *extent = uir_c_dim(&e->c, p->extents[d]);
        if (!slice->window) rest = uir_c_sum(&e->c, rest, uir_c_format(&e->c, "x%u", d));
        if (!inside)
            fits =
                uir_c_format(&e->c, "%s%s%s >= 0 && %s < %s", fits ? fits : "", fits ? " && " : "", rest, rest, extent);
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
            bool last = m + 1 == p->layout.mode_count[d];
            const char *size = last ? NULL : uir_c_dim(&e->c, modes[m].size);
            const char *digit = last ? rest : uir_c_format(&e->c, "uir_mod(%s, %s)", rest, size);
            sum = uir_c_sum(&e->c, sum, uir_c_product(&e->c, digit, uir_c_dim(&e->c, modes[m].stride)));
            if (!last) rest = uir_c_format(&e->c, "uir_floordiv(%s, %s)", rest, size);
        }
    }
    if (s.bits) sum = uir_c_format(&e->c, "SWIZZLE(%s, %u, %u, %u)", sum, s.bits, s.base, s.shift);
    return fits ? uir_c_format(&e->c, "%s ? %s : OUTSIDE", fits, sum) : sum;
}

static const char *list(emitter *e, const uir_islice *slice, const uir_ipointer *p, bool inside, const char *instance) {
    uint32_t number = e->lists++, loops = slice->window ? slice->axis_count : slice->rank;
    const char *dims = "", *total = "1";
    for (uint32_t d = 0; d < slice->rank; d++) {
        const char *count = uir_c_dim(&e->c, slice->counts[d]);
        dims = uir_c_format(&e->c, "%s, ALONG(%s, 0)", dims, count);
        total = uir_c_format(&e->c, "%s * uir_max(0, %s)", total, count);
    }
    uir_c_line(&e->c, "int64_t *const a%u = make_list(%s), a%u_count = 0;", number, total, number);
    for (uint32_t i = 0; i < loops; i++) {
        const char *name = uir_c_format(&e->c, "x%u", i);
        uir_dim count = slice->window ? slice->axes[i].extent : slice->counts[i];
        if (slice->window) e->c.symbols[slice->axes[i].symbol] = name;
        uir_c_line(&e->c, "for (int64_t %s = 0; %s < %s; %s++)", name, name, uir_c_dim(&e->c, count), name);
    }
    uir_c_line(&e->c, "    a%u[a%u_count++] = %s;", number, number, address(e, slice, p, inside));
    return uir_c_format(&e->c, "LISTED(%s, %s, a%u%s)", e->pointers[slice->pointer], instance, number,
                        *dims ? dims : one);
}

const char *uir_null_operand(emitter *e, const uir_islice *slice, bool inside) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[slice->pointer];
    uir_dim first = uir_dim_const(e->c.igraph->dims, 0);
    const char *dims = p->layout.swizzle.bits ? NULL
                       : slice->window        ? window(e, slice, p, inside, &first)
                                              : box(e, slice, p, inside, &first);
    const char *text = dims && first.id ? uir_c_dim(&e->c, first) : NULL;
    const char *name = e->pointers[slice->pointer], *instance = "0";
    if (p->by_loop != UINT32_MAX)
        instance = uir_c_format(&e->c, "%s %% %u * %s_span", e->c.symbols[p->by_loop], p->instances, name);
    if (text)
        text = uir_c_format(&e->c, "AT(%s, %s%s)", name, uir_c_sum(&e->c, instance, text), *dims ? dims : one);
    else
        text = list(e, slice, p, inside, instance);
    const char *missing = uir_c_missing(&e->c, slice);
    if (missing) text = uir_c_format(&e->c, "ONLY_IF(%s, %s)", missing, text);
    if (slice->block) text = uir_c_format(&e->c, "REPEATED(%s)", text);
    return slice->has_fill ? uir_c_format(&e->c, "FILLED(%s, %s)", uir_null_number(e, slice->fill), text) : text;
}
