/* mma: the register-blocked routines of the prelude where addresses allow it, element by element into their operands'
 * blocks where they do not.
 *
 * Direct: rows of c and b are contiguous along n, a's rows and columns lie at one distance. Window: a is read through
 * affine coordinates with an outside rule. Otherwise a, b and c are gathered in blocks. */
#include "backends/source/vector/emit.h"

#include <inttypes.h>
#include <string.h>

typedef struct plane {
    access access;
    uint32_t first;             /* slice dims before this one are 1 */
    uir_dim row, column;        /* address steps of the two dims */
    const char *rows, *columns; /* how many of them memory has, or NULL: all */
    const char *at;             /* offset of the first element */
    uir_dim panel;              /* address step of 32 columns */
    const char *panel_text;
    uint32_t group;     /* rows that lie together, for each column in turn: `row` is their share of a step */
    bool nothing;       /* condition `inside` decides whether anything is there */
    const char *inside; /* NULL: all of it is there */
} plane;

/* 32 columns, each `column` from the next. */
static void set_panel(emitter *e, plane *p) {
    p->panel = uir_dim_mul(e->c.igraph->dims, p->column, uir_dim_const(e->c.igraph->dims, 32));
    p->panel_text = uir_c_product(&e->c, uir_c_dim(&e->c, p->column), "32");
}

/* Panels of 32 columns, `step` apart. */
static void set_panel_step(emitter *e, plane *p, uir_dim step) {
    p->panel = step;
    p->panel_text = uir_c_dim(&e->c, step);
}

typedef struct term {
    uir_dim base;                       /* the coordinate at all axes 0 */
    uir_dim moves[UIR_IGRAPH_MAX_RANK]; /* per axis */
} term;

/* coordinate = base + sum of moves * axis, with moves free of axes. */
static bool linear(emitter *e, const uir_islice *slice, uir_dim coordinate, term *out) {
    uir_dims *dims = e->c.igraph->dims;
    uint32_t count = 0;
    for (uint32_t a = 0; a < slice->axis_count; a++)
        if (slice->axes[a].symbol >= count) count = slice->axes[a].symbol + 1;
    uir_dim *values = uir_arena_allocate_array(&e->c.arena, count + 1, sizeof *values);
    if (!values) return false;
    for (uint32_t a = 0; a < slice->axis_count; a++) values[slice->axes[a].symbol] = uir_dim_const(dims, 0);
    out->base = uir_dim_substitute(dims, coordinate, values, count);
    uir_dim sum = out->base;
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uint32_t symbol = slice->axes[a].symbol;
        values[symbol] = uir_dim_const(dims, 1);
        out->moves[a] = uir_dim_sub(dims, uir_dim_substitute(dims, coordinate, values, count), out->base);
        values[symbol] = uir_dim_const(dims, 0);
        sum = uir_dim_add(dims, sum, uir_dim_mul(dims, out->moves[a], uir_dim_symbol(dims, (uir_symbol){symbol})));
    }
    return sum.id && uir_dim_equal(sum, coordinate);
}

const uir_islice *uir_emit_box_of_window(emitter *e, const uir_islice *window, uint32_t first, uint32_t *out_dims) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[window->pointer];
    uir_islice *box = uir_arena_allocate(&e->c.arena, sizeof *box);
    uint32_t sides[2] = {UINT32_MAX, UINT32_MAX};
    if (!box || window->block || window->has_fill) return NULL;
    for (uint32_t a = 0; a < window->axis_count; a++) {
        if (window->axes[a].dim < first) continue;
        if (sides[window->axes[a].dim - first] != UINT32_MAX) return NULL;
        sides[window->axes[a].dim - first] = a;
    }
    if (sides[0] == UINT32_MAX || sides[1] == UINT32_MAX) return NULL;
    *box = *window;
    box->window = false;
    box->rank = p->rank;
    box->axis_count = 0;
    out_dims[0] = out_dims[1] = UINT32_MAX;
    for (uint32_t d = 0; d < p->rank; d++) {
        term t;
        if (!linear(e, window, window->starts[d], &t)) return NULL;
        box->starts[d] = t.base;
        box->counts[d] = uir_dim_const(e->c.igraph->dims, 1);
        for (uint32_t i = 0; i < 2; i++) {
            if (uir_c_dim_is(&e->c, t.moves[sides[i]], 0)) continue;
            if (!uir_c_dim_is(&e->c, t.moves[sides[i]], 1) || out_dims[i] != UINT32_MAX || out_dims[!i] == d)
                return NULL;
            out_dims[i] = d;
            box->counts[d] = window->axes[sides[i]].extent;
        }
    }
    return out_dims[0] == UINT32_MAX || out_dims[1] == UINT32_MAX ? NULL : box;
}

/* Neighbours along a dim lie together in groups, so many of each column in turn; 1: they do not. */
static uint32_t group_of(emitter *e, const uir_ipointer *p, uint32_t d) {
    const uir_mode *modes = p->layout.modes[d];
    if (p->layout.mode_count[d] != 2 || !uir_c_dim_is(&e->c, modes[0].stride, 1)) return 1;
    uint32_t group = e->c.igraph->machine->byte_group;
    return group && uir_c_dim_is(&e->c, modes[0].size, group) ? group : 1;
}

/* The step from one row to the next, as if a group's were all as far apart. */
static uir_dim step_in_groups(emitter *e, const uir_ipointer *p, uint32_t d) {
    const uir_mode *modes = p->layout.modes[d];
    uint32_t group = group_of(e, p, d);
    if (group == 1) return modes[0].stride;
    return uir_dim_floordiv(e->c.igraph->dims, modes[1].stride, uir_dim_const(e->c.igraph->dims, group));
}

/* A dim that lies in panels of 32 of which a window's columns take whole ones, along an axis of their own. */
static bool is_panelled(emitter *e, const uir_islice *window, uint32_t first, uint32_t d, const term *t,
                        uint32_t group) {
    const uir_layout *layout = &e->c.igraph->pointers.data[window->pointer].layout;
    int64_t low, high;
    uint32_t columns = UINT32_MAX;
    if (layout->mode_count[d] != 2 || !uir_c_dim_is(&e->c, layout->modes[d][0].stride, group)) return false;
    for (uint32_t a = 0; a < window->axis_count; a++) {
        bool moves = !uir_c_dim_is(&e->c, t->moves[a], 0);
        if (moves && (window->axes[a].dim != first + 1 || !uir_c_dim_is(&e->c, t->moves[a], 1))) return false;
        if (window->axes[a].dim != first + 1) continue;
        if (columns != UINT32_MAX) return false;
        columns = a;
    }
    if (columns == UINT32_MAX || uir_c_dim_is(&e->c, t->moves[columns], 0)) return false;
    if (uir_c_dim_is(&e->c, layout->modes[d][0].size, 32)) return uir_c_dim_multiple_of(&e->c, t->base, 32);
    uir_dim_bounds(e->c.igraph->dims, window->axes[columns].extent, &low, &high);
    int64_t width;
    return uir_dim_is_const(e->c.igraph->dims, layout->modes[d][0].size, &width) && high <= width &&
           uir_c_dim_multiple_of(&e->c, t->base, width);
}

/* Is the dim all there, by one axis of the rows, and in groups? */
static bool is_grouped(emitter *e, const uir_islice *window, uint32_t first, uint32_t d, const term *t) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[window->pointer];
    uint32_t group = group_of(e, p, d), along = UINT32_MAX;
    for (uint32_t a = 0; a < window->axis_count; a++) {
        if (uir_c_dim_is(&e->c, t->moves[a], 0)) continue;
        if (along != UINT32_MAX || window->axes[a].dim != first || !uir_c_dim_is(&e->c, t->moves[a], 1)) return false;
        along = a;
    }
    return group > 1 && along != UINT32_MAX && uir_c_dim_is(&e->c, t->base, 0) &&
           uir_c_dim_multiple_of(&e->c, window->axes[along].extent, group);
}

/* In how many the rows of a window lie together; one dim at most has groups. */
static uint32_t group_of_rows(emitter *e, const uir_islice *window, uint32_t first) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[window->pointer];
    uint32_t group = 1;
    for (uint32_t d = 0; d < p->rank; d++) {
        term t;
        if (linear(e, window, window->starts[d], &t) && is_grouped(e, window, first, d, &t)) group = group_of(e, p, d);
    }
    return group;
}

/* The distance of neighbours along a side whose axes lie in memory as one: each a whole number of the next. */
static bool step_of_side(emitter *e, const uir_islice *window, uint32_t first, uint32_t side, uint32_t group,
                         uir_dim *out) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[window->pointer];
    uir_dims *dims = e->c.igraph->dims;
    uir_dim wanted = UIR_DIM_NONE;
    *out = uir_dim_const(dims, 0);
    for (uint32_t a = window->axis_count; a-- > 0;) {
        if (window->axes[a].dim != side || uir_c_dim_is(&e->c, window->axes[a].extent, 1)) continue;
        uir_dim step = uir_dim_const(dims, 0);
        for (uint32_t d = 0; d < p->rank; d++) {
            term t;
            if (!linear(e, window, window->starts[d], &t)) return false;
            bool panelled = is_panelled(e, window, first, d, &t, group), grouped = is_grouped(e, window, first, d, &t);
            if (!uir_c_dim_is(&e->c, t.moves[a], 0) && p->layout.mode_count[d] != 1 && !panelled && !grouped)
                return false;
            uir_dim stride = grouped ? step_in_groups(e, p, d) : p->layout.modes[d][0].stride;
            step = uir_dim_add(dims, step, uir_dim_mul(dims, t.moves[a], stride));
        }
        if (!step.id || (wanted.id && !uir_dim_equal(step, wanted))) return false;
        if (!wanted.id) *out = step;
        wanted = uir_dim_mul(dims, step, window->axes[a].extent);
    }
    return true;
}

/* A window that is nowhere outside, its sides of several axes each, as a matrix. */
static bool plane_of_window(emitter *e, const uir_iinstruction *in, uint32_t k, plane *out) {
    const uir_islice *slice = &in->slices[k];
    const char *at = "0";
    uir_dim panel = UIR_DIM_NONE;
    if (!slice->window || slice->has_fill) return false;
    uir_access_init(e, slice, in->unguarded >> k & 1, &out->access);
    const uir_ipointer *p = out->access.pointer;
    if (out->access.missing) return false;
    out->group = group_of_rows(e, slice, out->first);
    for (uint32_t d = 0; d < p->rank; d++) {
        term t;
        if (out->access.low[d] || out->access.high[d] || !linear(e, slice, slice->starts[d], &t)) return false;
        if (is_panelled(e, slice, out->first, d, &t, out->group)) {
            panel = p->layout.modes[d][1].stride;
            at = uir_c_sum(&e->c, at,
                           uir_c_product(&e->c,
                                         uir_c_format(&e->c, "(%s) / (%s)", uir_c_dim(&e->c, t.base),
                                                      uir_c_dim(&e->c, p->layout.modes[d][0].size)),
                                         uir_c_format(&e->c, "(%s)", uir_c_dim(&e->c, panel))));
            continue;
        }
        if (p->layout.mode_count[d] != 1 && !uir_c_dim_is(&e->c, t.base, 0)) return false;
        at = uir_c_sum(&e->c, at,
                       uir_c_product(&e->c, uir_c_format(&e->c, "(%s)", uir_c_dim(&e->c, t.base)),
                                     uir_c_format(&e->c, "(%s)", uir_c_dim(&e->c, p->layout.modes[d][0].stride))));
    }
    if (!step_of_side(e, slice, out->first, out->first, out->group, &out->row) ||
        !step_of_side(e, slice, out->first, out->first + 1, out->group, &out->column))
        return false;
    /* A side of one element has no distance; any serves. */
    if (uir_c_dim_is(&e->c, slice->counts[out->first + 1], 1)) out->column = uir_dim_const(e->c.igraph->dims, 1);
    out->at = at;
    if (panel.id)
        set_panel_step(e, out, panel);
    else
        set_panel(e, out);
    return true;
}

/* A box as a matrix with constant distances; false when it is not one. */
static bool plane_of(emitter *e, const uir_iinstruction *in, uint32_t k, plane *out) {
    const uir_islice *slice = &in->slices[k];
    *out = (plane){.first = uir_access_leading_ones(e, slice, 2), .group = 1};
    uint32_t dims[2] = {out->first, out->first + 1};
    if (slice->block || slice->rank - out->first != 2) return false;
    if (slice->window && !(slice = uir_emit_box_of_window(e, slice, out->first, dims)))
        return plane_of_window(e, in, k, out);
    uir_access_init(e, slice, in->unguarded >> k & 1, &out->access);
    const uir_ipointer *p = out->access.pointer;
    const char *index[INDEX_MAX], *coordinates[INDEX_MAX];
    for (uint32_t d = 0; d < slice->rank; d++) index[d] = "0";
    uir_access_coordinates(e, &out->access, index, coordinates);
    out->at = uir_access_offset(e, &out->access, coordinates);
    /* Dims of 1 and an index that may miss: all or nothing. */
    access whole = out->access;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t d = dims[i];
        if (whole.low[d]) return false;
        whole.high[d] = false;
        bool guarded = out->access.high[d];
        if (guarded && slice->has_fill) return false;
        if (guarded) {
            const char *left = uir_c_format(&e->c, "uir_max(0, %s - (%s))", uir_c_dim(&e->c, p->extents[d]),
                                            uir_c_dim(&e->c, slice->starts[d]));
            *(i ? &out->columns : &out->rows) = left;
        }
        const uir_dim step = p->layout.modes[d][0].stride;
        *(i ? &out->column : &out->row) = step;
        if (p->layout.mode_count[d] == 1) {
            if (i) set_panel(e, out);
            continue;
        }
        int64_t size, count;
        if (!uir_dim_is_const(e->c.igraph->dims, p->layout.modes[d][0].size, &size) || size < 1) return false;
        if (!uir_c_dim_multiple_of(&e->c, slice->starts[d], size)) return false;
        if (!i && group_of(e, p, d) > 1 && uir_c_dim_multiple_of(&e->c, slice->counts[d], size)) {
            out->group = group_of(e, p, d);
            out->row = step_in_groups(e, p, d);
            continue;
        }
        bool fits = uir_dim_is_const(e->c.igraph->dims, slice->counts[d], &count) && count <= size;
        if (!fits) {
            int64_t low, high;
            uir_dim_bounds(e->c.igraph->dims, slice->counts[d], &low, &high);
            fits = high <= size;
        }
        if (i && (fits || (size == 32 && p->layout.mode_count[d] == 2))) {
            if (fits)
                set_panel(e, out);
            else
                set_panel_step(e, out, p->layout.modes[d][1].stride);
        } else if (!fits) {
            return false;
        }
    }
    out->inside = uir_access_inside(e, &whole, coordinates, UINT32_MAX);
    return !out->inside || !slice->has_fill;
}

static const char *smaller(emitter *e, const char *a, const char *b) {
    return b ? uir_c_format(&e->c, "uir_min(%s, %s)", a, b) : a;
}

/* What of m, n, k is there: rows and columns that memory lacks are undefined where read and dropped where written. */
static void emit_extents(emitter *e, const uir_iinstruction *in, const plane *c, const plane *a, const plane *b) {
    const uir_islice *slice = &in->slices[0], *left = &in->slices[1];
    const char *m = uir_c_dim(&e->c, slice->counts[slice->rank - 2]),
               *n = uir_c_dim(&e->c, slice->counts[slice->rank - 1]),
               *k = uir_c_dim(&e->c, left->counts[left->rank - 1]);
    m = smaller(e, m, c->rows);
    n = smaller(e, smaller(e, n, c->columns), b->columns);
    k = smaller(e, k, b->rows);
    if (a) {
        m = smaller(e, m, a->rows);
        k = smaller(e, k, a->columns);
    }
    const char *inside[3] = {c->inside, a ? a->inside : NULL, b->inside};
    if (inside[0] || inside[1] || inside[2])
        m = uir_c_format(&e->c, "%s && %s && %s ? %s : 0", inside[0] ? inside[0] : "1", inside[1] ? inside[1] : "1",
                         inside[2] ? inside[2] : "1", m);
    uir_c_line(&e->c, "const int64_t m = %s, n = %s;", m, n);
    if (a) uir_c_line(&e->c, "const int64_t k = %s;", k);
}

/* Does the routine begin with sums of 0 when it is told? */
static bool can_be_told_to_begin(const uir_iinstruction *in) {
    return in->dtype != UIR_DTYPE_F64;
}

/* Products of integers are by one routine, which is told what they are. */
static bool is_dot(const uir_iinstruction *in) {
    return in->dtype == UIR_DTYPE_I32;
}

static const char *signedness(emitter *e, const uir_iinstruction *in, uir_dtype dtype) {
    return is_dot(in) ? uir_c_format(&e->c, ", %d", uir_dtype_integer_min(dtype) < 0) : "";
}

/* And in how many its rows lie together. */
static const char *second_factor(emitter *e, const uir_iinstruction *in, uint32_t group) {
    return is_dot(in) ? uir_c_format(&e->c, "%s, %u", signedness(e, in, in->dtype_c), group) : "";
}

static const char *routine_of(emitter *e, const uir_iinstruction *in) {
    if (is_dot(in)) return "uir_mma_dot";
    return uir_c_format(&e->c, "uir_mma_%s_%s_%s", uir_dtype_name(in->dtype), uir_dtype_name(in->dtype_b),
                        uir_dtype_name(in->dtype_c));
}

static const char *begins(emitter *e, const uir_iinstruction *in) {
    if (!can_be_told_to_begin(in)) return "";
    return e->begins[in - e->c.igraph->instructions.data] ? ", 1" : ", 0";
}

/* Does the routine take the sums and the second factor where they lie? c's columns lie together. */
static bool suit(emitter *e, const uir_iinstruction *in, const plane *c, const plane *b) {
    if (!uir_c_dim_is(&e->c, c->column, 1) || !uir_c_dim_is(&e->c, c->panel, 32) || c->group != 1) return false;
    return uir_c_dim_is(&e->c, b->column, b->group) && (b->group == 1 || is_dot(in));
}

static bool find_direct(emitter *e, const uir_iinstruction *in, plane *c, plane *a, plane *b) {
    return plane_of(e, in, 0, c) && plane_of(e, in, 1, a) && plane_of(e, in, 2, b) && a->group == 1 &&
           suit(e, in, c, b);
}

static bool emit_direct(emitter *e, const uir_iinstruction *in) {
    plane c, a, b;
    if (!find_direct(e, in, &c, &a, &b)) return false;
    uir_c_open(&e->c, "%s", "");
    emit_extents(e, in, &c, &a, &b);
    uir_c_line(&e->c, "%s(%s + (%s), %s, %s + (%s), %s, %s%s, %s + (%s), %s, %s%s, m, n, k%s);", routine_of(e, in),
               c.access.base, c.at, uir_c_dim(&e->c, c.row), a.access.base, a.at, uir_c_dim(&e->c, a.row),
               uir_c_dim(&e->c, a.column), signedness(e, in, in->dtype_b), b.access.base, b.at, uir_c_dim(&e->c, b.row),
               b.panel_text, second_factor(e, in, b.group), begins(e, in));
    uir_c_close(&e->c);
    return true;
}

/* ---- windows ---- */
typedef struct window {
    access access;
    term terms[UIR_IGRAPH_MAX_RANK];
    uint32_t axes[2][4], axis_count[2];   /* of rows and of columns */
    uir_dim extents[UIR_IGRAPH_MAX_RANK]; /* per axis */
    uint32_t axis_total;
    bool steps_single;               /* the last column axis moves a guard: one step at a time is inside or not */
    uint32_t guards[4], guard_count; /* pointer dims */
    const char *steps[UIR_IGRAPH_MAX_RANK]; /* address per axis */
    const char *at;
} window;

/* The axes of a window's two sides; a box has one along each of its last dims. */
static bool find_sides(const uir_islice *slice, uint32_t first, window *out) {
    out->axis_total = slice->window ? slice->axis_count : 2;
    for (uint32_t a = 0; a < out->axis_total; a++) {
        uint32_t side = slice->window ? slice->axes[a].dim - first : a;
        out->extents[a] = slice->window ? slice->axes[a].extent : slice->counts[first + a];
        if (slice->window && slice->axes[a].dim < first) continue;
        if (side > 1 || out->axis_count[side] == 4) return false;
        out->axes[side][out->axis_count[side]++] = a;
        out->steps[a] = "0";
    }
    return out->axis_count[0] && out->axis_count[1];
}

static bool term_of(emitter *e, const uir_islice *slice, uint32_t first, uint32_t d, term *out) {
    if (slice->window) return linear(e, slice, slice->starts[d], out);
    out->base = slice->starts[d];
    for (uint32_t a = 0; a < 2; a++) out->moves[a] = uir_dim_const(e->c.igraph->dims, d == first + a);
    return true;
}

static bool window_of(emitter *e, const uir_iinstruction *in, window *out) {
    const uir_islice *slice = &in->slices[1];
    *out = (window){.at = "0"};
    if (slice->block || in->dtype == UIR_DTYPE_F64 || (slice->window && slice->axis_count == 0)) return false;
    uint32_t first = uir_access_leading_ones(e, slice, 2);
    if (slice->rank - first != 2) return false;
    uir_access_init(e, slice, in->unguarded >> 1 & 1, &out->access);
    const uir_ipointer *p = out->access.pointer;
    if (out->access.missing || !find_sides(slice, first, out)) return false;
    uint32_t last = out->axes[1][out->axis_count[1] - 1];
    for (uint32_t d = 0; d < p->rank; d++) {
        term *t = &out->terms[d];
        if (p->layout.mode_count[d] != 1 || !term_of(e, slice, first, d, t)) return false;
        const char *stride = uir_c_dim(&e->c, p->layout.modes[d][0].stride);
        out->at = uir_c_sum(&e->c, out->at,
                            uir_c_product(&e->c, uir_c_format(&e->c, "(%s)", uir_c_dim(&e->c, t->base)), stride));
        for (uint32_t a = 0; a < out->axis_total; a++) {
            if ((slice->window && slice->axes[a].dim < first) || uir_c_dim_is(&e->c, t->moves[a], 0)) continue;
            const char *move = uir_c_dim(&e->c, t->moves[a]);
            out->steps[a] =
                uir_c_sum(&e->c, out->steps[a],
                          uir_c_product(&e->c, strpbrk(move, " ") ? uir_c_format(&e->c, "(%s)", move) : move, stride));
        }
        if (!out->access.low[d] && !out->access.high[d]) continue;
        if (out->guard_count == 4) return false;
        out->guards[out->guard_count++] = d;
        out->steps_single |= !uir_c_dim_is(&e->c, t->moves[last], 0);
    }
    return !out->steps_single || out->axis_count[1] < 4;
}

static bool find_window(emitter *e, const uir_iinstruction *in, plane *c, window *a, plane *b) {
    if (!window_of(e, in, a) || !plane_of(e, in, 0, c) || !plane_of(e, in, 2, b)) return false;
    return suit(e, in, c, b) && !b->rows;
}

bool uir_emit_can_begin(emitter *e, const uir_iinstruction *in) {
    plane c, a, b;
    window w;
    /* What is not there of a factor is not added, and the sums of what is there are all begun. */
    if (!can_be_told_to_begin(in) || !plane_of(e, in, 0, &c) || c.rows || c.columns || c.inside) return false;
    if (find_direct(e, in, &c, &a, &b)) return !a.rows && !b.columns && !a.inside && !b.inside;
    return find_window(e, in, &c, &w, &b) && !b.columns && !b.inside;
}

/* What is outside, as 32 bits: those of a byte, four times. */
static uint32_t fill_bits(uir_dtype dtype, double fill) {
    unsigned char element[16] = {0};
    uint32_t bits;
    uir_dtype_store_double(dtype, element, 0, fill, UIR_ROUND_NEAREST_EVEN);
    for (uint32_t i = (uint32_t)uir_dtype_bits(dtype) / 8; i < sizeof bits; i++) element[i] = element[0];
    memcpy(&bits, element, sizeof bits);
    return bits;
}

static bool emit_window(emitter *e, const uir_iinstruction *in) {
    plane c, b;
    window a;
    const uir_islice *slice = &in->slices[1];
    if (!find_window(e, in, &c, &a, &b)) return false;
    uir_c_open(&e->c, "%s", "");
    emit_extents(e, in, &c, NULL, &b);
    uir_c_line(&e->c, "uir_window w;");
    uir_c_line(&e->c, "w.data = %s + (%s);", a.access.base, a.at);
    uir_c_line(&e->c, "w.fill = 0x%xu;", fill_bits(in->dtype_b, slice->has_fill ? slice->fill : 0));
    uint64_t bytes = uir_dtype_bits(in->dtype_b) / 8;
    uir_c_line(&e->c, "w.row_axes = %u, w.column_axes = %u, w.guards = %u;", a.axis_count[0],
               a.axis_count[1] + a.steps_single, a.guard_count);
    if (a.steps_single) { /* an axis of one step, which moves nothing */
        uint32_t last = a.axes[1][a.axis_count[1] - 1];
        uir_c_line(&e->c, "w.column_extent[%u] = 1, w.column_step[%u] = %" PRIu64 " * (%s);", a.axis_count[1],
                   a.axis_count[1], bytes, a.steps[last]);
    }
    for (uint32_t side = 0; side < 2; side++) {
        const char *name = side ? "column" : "row";
        for (uint32_t x = 0; x < a.axis_count[side]; x++) {
            uint32_t axis = a.axes[side][x];
            uir_c_line(&e->c, "w.%s_extent[%u] = uir_max(0, %s), w.%s_step[%u] = %" PRIu64 " * (%s);", name, x,
                       uir_c_dim(&e->c, a.extents[axis]), name, x, bytes, a.steps[axis]);
        }
    }
    for (uint32_t g = 0; g < a.guard_count; g++) {
        const term *t = &a.terms[a.guards[g]];
        uir_c_line(&e->c, "w.start[%u] = %s, w.extent[%u] = %s;", g, uir_c_dim(&e->c, t->base), g,
                   uir_c_dim(&e->c, a.access.pointer->extents[a.guards[g]]));
        for (uint32_t side = 0; side < 2; side++) {
            for (uint32_t x = 0; x < a.axis_count[side]; x++)
                uir_c_line(&e->c, "w.%s_move[%u][%u] = %s;", side ? "column" : "row", g, x,
                           uir_c_dim(&e->c, t->moves[a.axes[side][x]]));
        }
        if (a.steps_single) uir_c_line(&e->c, "w.column_move[%u][%u] = 0;", g, a.axis_count[1]);
    }
    const char *routine =
        is_dot(in) ? "uir_mma_dot_window" : uir_c_format(&e->c, "uir_mma_window_%s", uir_dtype_name(in->dtype_c));
    uir_c_line(&e->c, "%s(%s + (%s), %s, &w%s, %s + (%s), %s, %s%s, m, n%s);", routine, c.access.base, c.at,
               uir_c_dim(&e->c, c.row), signedness(e, in, in->dtype_b), b.access.base, b.at, uir_c_dim(&e->c, b.row),
               b.panel_text, second_factor(e, in, b.group), begins(e, in));
    uir_c_close(&e->c);
    return true;
}

/* ---- anything else: blocks of 16 x 32 x 64 through local copies ---- */
static const char **plane_index(emitter *e, const uir_islice *slice, const char *row, const char *column,
                                const char **out) {
    (void)e;
    for (uint32_t d = 0; d < slice->rank; d++) out[d] = "0";
    out[slice->rank - 2] = row;
    out[slice->rank - 1] = column;
    return out;
}

static void emit_gathered(emitter *e, const uir_iinstruction *in) {
    const char *index[INDEX_MAX];
    access access_of[3];
    const char *types[3], *zero[3];
    for (uint32_t k = 0; k < 3; k++) {
        uir_access_init(e, &in->slices[k], in->unguarded >> k & 1, &access_of[k]);
        types[k] = access_of[k].type;
        zero[k] = uir_c_literal(e, access_of[k].pointer->dtype, 0);
    }
    const uir_islice *c = &in->slices[0], *a = &in->slices[1], *b = &in->slices[2];
    uir_c_open(&e->c, "%s", "");
    uir_c_line(&e->c, "const int64_t m = %s, n = %s, k = %s;", uir_c_dim(&e->c, c->counts[c->rank - 2]),
               uir_c_dim(&e->c, c->counts[c->rank - 1]), uir_c_dim(&e->c, a->counts[a->rank - 1]));
    uir_c_open(&e->c, "for (int64_t i0 = 0; i0 < m; i0 += 16)");
    uir_c_open(&e->c, "for (int64_t j0 = 0; j0 < n; j0 += 32)");
    uir_c_line(&e->c, "const int64_t mi = uir_min(16, m - i0), nj = uir_min(32, n - j0);");
    uir_emit_array(e, types[0], "cb", 16 * 32, 0);
    uir_c_open(&e->c, "for (int64_t i = 0; i < mi; i++)");
    uir_c_line(&e->c, "for (int64_t j = 0; j < nj; j++) cb[i * 32 + j] = %s;",
               uir_access_read(e, &access_of[0], plane_index(e, c, "(i0 + i)", "(j0 + j)", index), zero[0]));
    uir_c_close(&e->c);
    uir_c_open(&e->c, "for (int64_t p0 = 0; p0 < k; p0 += 64)");
    uir_c_line(&e->c, "const int64_t kp = uir_min(64, k - p0);");
    uir_emit_array(e, types[1], "ab", 16 * 64, 4096);
    uir_emit_array(e, types[2], "bb", 64 * 32, 12288);
    uir_c_open(&e->c, "for (int64_t i = 0; i < mi; i++)");
    uir_c_line(&e->c, "for (int64_t p = 0; p < kp; p++) ab[i * 64 + p] = %s;",
               uir_access_read(e, &access_of[1], plane_index(e, a, "(i0 + i)", "(p0 + p)", index), zero[1]));
    uir_c_close(&e->c);
    uir_c_open(&e->c, "for (int64_t p = 0; p < kp; p++)");
    uir_c_line(&e->c, "for (int64_t j = 0; j < nj; j++) bb[p * 32 + j] = %s;",
               uir_access_read(e, &access_of[2], plane_index(e, b, "(p0 + p)", "(j0 + j)", index), zero[2]));
    uir_c_close(&e->c);
    uir_c_line(&e->c, "%s(cb, 32, ab, 64, 1%s, bb, 32, 0%s, mi, nj, kp%s);", routine_of(e, in),
               signedness(e, in, in->dtype_b), second_factor(e, in, 1), can_be_told_to_begin(in) ? ", 0" : "");
    uir_c_close(&e->c);
    uir_c_open(&e->c, "for (int64_t i = 0; i < mi; i++)");
    uir_c_open(&e->c, "for (int64_t j = 0; j < nj; j++)");
    uir_access_write(e, &access_of[0], plane_index(e, c, "(i0 + i)", "(j0 + j)", index), "cb[i * 32 + j]");
    uir_c_close(&e->c);
    uir_c_close(&e->c);
    uir_c_close(&e->c);
    uir_c_close(&e->c);
    uir_c_close(&e->c);
}

void uir_emit_mma(emitter *e, const uir_iinstruction *in) {
    if (emit_direct(e, in) || emit_window(e, in)) return;
    emit_gathered(e, in);
}
