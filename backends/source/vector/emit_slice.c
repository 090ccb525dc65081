/* Where a slice's elements lie: coordinates, addresses, and what is not proved to be inside. */
#include "backends/source/vector/emit.h"

#include <string.h>

void uir_access_init(emitter *e, const uir_islice *slice, bool unguarded, access *out) {
    const uir_iinstruction *copied = e->forwarded[slice->pointer];
    if (copied) slice = &copied->slices[1], unguarded = true;
    const uir_ipointer *p = &e->c.igraph->pointers.data[slice->pointer];
    uir_dims *dims = e->c.igraph->dims;
    *out = (access){.slice = slice, .pointer = p, .type = uir_c_type(p->dtype), .base = e->pointers[slice->pointer]};
    if (p->by_loop != UINT32_MAX)
        out->base = uir_c_format(&e->c, "(%s + %s %% %u * %s_span)", out->base, e->c.symbols[p->by_loop], p->instances,
                                 out->base);
    for (uint32_t d = 0; d < p->rank; d++) {
        if (unguarded) continue;
        out->low[d] = !uir_c_dim_at_least(&e->c, slice->starts[d], 0);
        if (slice->window) {
            out->high[d] = uir_dim_compare(dims, slice->starts[d], UIR_RELATION_LT, p->extents[d]) != UIR_TRUE;
        } else {
            uir_dim end = uir_dim_add(dims, slice->starts[d], slice->counts[d]);
            out->high[d] = !end.id || uir_dim_compare(dims, end, UIR_RELATION_LE, p->extents[d]) != UIR_TRUE;
        }
    }
    out->missing = uir_c_missing(&e->c, slice);
}

bool uir_access_guarded(const access *a) {
    for (uint32_t d = 0; d < a->pointer->rank; d++) {
        if (a->low[d] || a->high[d]) return true;
    }
    return a->missing != NULL;
}

/* Axes of a window take their names' places in the coordinates' expressions. */
static void bind_axes(emitter *e, const uir_islice *slice, const char *const *index) {
    for (uint32_t first = 0; first < slice->axis_count;) {
        uint32_t dim = slice->axes[first].dim, end = first;
        while (end < slice->axis_count && slice->axes[end].dim == dim) end++;
        const char *rest = index[dim];
        for (uint32_t a = end; a-- > first;) {
            const char *extent = uir_c_dim(&e->c, slice->axes[a].extent);
            const char *digit = a == first ? rest : uir_c_remainder(&e->c, rest, extent);
            e->c.symbols[slice->axes[a].symbol] = uir_c_parenthesised(&e->c, digit);
            if (a > first) rest = uir_c_quotient(&e->c, rest, extent);
        }
        first = end;
    }
}

void uir_access_coordinates(emitter *e, const access *a, const char *const *index, const char **out) {
    const uir_islice *slice = a->slice;
    if (slice->window) bind_axes(e, slice, index);
    for (uint32_t d = 0; d < a->pointer->rank; d++)
        out[d] = slice->window ? uir_c_dim(&e->c, slice->starts[d])
                               : uir_c_sum(&e->c, uir_c_dim(&e->c, slice->starts[d]), index[d]);
}

const char *uir_access_offset(emitter *e, const access *a, const char *const *coordinates) {
    const char *sum = "0";
    for (uint32_t d = 0; d < a->pointer->rank; d++) {
        const uir_mode *modes = a->pointer->layout.modes[d];
        uint32_t count = a->pointer->layout.mode_count[d];
        const char *rest = coordinates[d];
        for (uint32_t m = 0; m < count; m++) {
            const char *digit = rest;
            if (m + 1 < count) {
                const char *size = uir_c_dim(&e->c, modes[m].size);
                digit = uir_c_remainder(&e->c, rest, size);
                rest = uir_c_quotient(&e->c, rest, size);
            }
            sum = uir_c_sum(&e->c, sum, uir_c_product(&e->c, digit, uir_c_dim(&e->c, modes[m].stride)));
        }
    }
    return sum;
}

const char *uir_access_inside(emitter *e, const access *a, const char *const *coordinates, uint32_t skip) {
    const char *text = a->missing;
    for (uint32_t d = 0; d < a->pointer->rank; d++) {
        if (d == skip) continue;
        const char *c = coordinates[d];
        if (a->low[d]) text = uir_c_format(&e->c, "%s%s%s >= 0", text ? text : "", text ? " && " : "", c);
        if (a->high[d])
            text = uir_c_format(&e->c, "%s%s%s < %s", text ? text : "", text ? " && " : "", c,
                                uir_c_dim(&e->c, a->pointer->extents[d]));
    }
    return text;
}

void uir_access_split_inside(emitter *e, const access *a, const char *const *coordinates, const char *variable,
                             const char **out_fixed, const char **out_moving) {
    const char *fixed = a->missing, *moving = NULL;
    for (uint32_t d = 0; d < a->pointer->rank; d++) {
        const char *c = coordinates[d], **text = strstr(c, variable) ? &moving : &fixed;
        if (a->low[d]) *text = uir_c_format(&e->c, "%s%s%s >= 0", *text ? *text : "", *text ? " && " : "", c);
        if (a->high[d])
            *text = uir_c_format(&e->c, "%s%s%s < %s", *text ? *text : "", *text ? " && " : "", c,
                                 uir_c_dim(&e->c, a->pointer->extents[d]));
    }
    *out_fixed = fixed ? fixed : "1";
    *out_moving = moving;
}

const char *uir_access_read(emitter *e, const access *a, const char *const *index, const char *otherwise) {
    const char *coordinates[INDEX_MAX];
    uir_access_coordinates(e, a, index, coordinates);
    const char *inside = uir_access_inside(e, a, coordinates, UINT32_MAX);
    const char *element = uir_c_format(&e->c, "%s[%s]", a->base, uir_access_offset(e, a, coordinates));
    if (!inside) return element;
    return uir_c_format(&e->c, "(%s ? %s : %s)", inside, element,
                        a->slice->has_fill ? uir_c_literal(e, a->pointer->dtype, a->slice->fill) : otherwise);
}

void uir_access_write(emitter *e, const access *a, const char *const *index, const char *value) {
    const char *coordinates[INDEX_MAX];
    uir_access_coordinates(e, a, index, coordinates);
    const char *inside = uir_access_inside(e, a, coordinates, UINT32_MAX);
    const char *offset = uir_access_offset(e, a, coordinates);
    if (!inside)
        uir_c_line(&e->c, "%s[%s] = %s;", a->base, offset, value);
    else
        uir_c_line(&e->c, "if (%s) %s[%s] = %s;", inside, a->base, offset, value);
}

typedef struct symbol_search {
    uint32_t symbol;
    bool found;
} symbol_search;

static void find_symbol(void *user, uir_symbol symbol) {
    symbol_search *s = user;
    s->found |= symbol.id == s->symbol;
}

/* The coordinate is another expression plus so many times the axis. */
static bool moves_by(emitter *e, uir_dim coordinate, uint32_t axis, int64_t step) {
    uir_dims *dims = e->c.igraph->dims;
    uint32_t count = axis + 1;
    uir_dim *zero = uir_arena_allocate_array(&e->c.arena, count, sizeof *zero);
    if (!zero) {
        e->c.failed = true;
        return false;
    }
    zero[axis] = uir_dim_const(dims, 0);
    uir_dim base = uir_dim_substitute(dims, coordinate, zero, count);
    uir_dim moved = uir_dim_mul(dims, uir_dim_const(dims, step), uir_dim_symbol(dims, (uir_symbol){axis}));
    uir_dim again = uir_dim_add(dims, base, moved);
    return again.id && uir_dim_equal(again, coordinate);
}

along uir_access_along_last(emitter *e, const access *a, uint32_t *out_dim) {
    const uir_islice *slice = a->slice;
    const uir_ipointer *p = a->pointer;
    *out_dim = UINT32_MAX;
    if (slice->block) return ALONG_ANY;
    uint32_t d;
    bool second = false;
    if (slice->window) {
        uint32_t last = slice->axis_count - 1, moving = 0;
        if (slice->axis_count == 0) return ALONG_SPLAT;
        if (slice->axis_count > 1 && slice->axes[last - 1].dim == slice->axes[last].dim) return ALONG_ANY;
        d = p->rank;
        for (uint32_t i = 0; i < p->rank; i++) {
            symbol_search search = {slice->axes[last].symbol, false};
            uir_dim_visit_symbols(e->c.igraph->dims, slice->starts[i], find_symbol, &search);
            if (search.found) d = i, moving++;
        }
        if (moving == 0) return ALONG_SPLAT;
        if (moving > 1 || p->layout.mode_count[d] > 1) return ALONG_ANY;
        second = (p->dtype == UIR_DTYPE_F32 || p->dtype == UIR_DTYPE_I32) &&
                 moves_by(e, slice->starts[d], slice->axes[last].symbol, 2);
        if (!second && !moves_by(e, slice->starts[d], slice->axes[last].symbol, 1)) return ALONG_ANY;
    } else {
        if (p->rank == 0) return ALONG_SPLAT;
        d = p->rank - 1;
    }
    *out_dim = d;
    const uir_mode *modes = p->layout.modes[d];
    if (!uir_c_dim_is(&e->c, modes[0].stride, 1)) return ALONG_ANY;
    if (second) return ALONG_SECOND;
    if (p->layout.mode_count[d] == 1) return ALONG_UNIT;
    int64_t size, count;
    bool constant = uir_dim_is_const(e->c.igraph->dims, modes[0].size, &size) && size > 0;
    if (constant && uir_c_dim_multiple_of(&e->c, slice->starts[d], size) &&
        uir_dim_is_const(e->c.igraph->dims, slice->counts[d], &count) && count <= size)
        return ALONG_UNIT;
    if (uir_c_dim_multiple_of(&e->c, modes[0].size, 32) && uir_c_dim_multiple_of(&e->c, slice->starts[d], 32))
        return ALONG_PANEL;
    return ALONG_ANY;
}

void uir_access_align(emitter *e, const uir_islice *slice, const uir_dim *shape, uint32_t shape_rank,
                      const char *const *loops, const char **out) {
    for (uint32_t d = 0; d < slice->rank; d++) {
        uint32_t from_end = slice->rank - d;
        if (from_end > shape_rank || uir_c_dim_is(&e->c, slice->counts[d], 1)) {
            out[d] = "0";
            continue;
        }
        const char *loop = loops[shape_rank - from_end];
        if (uir_dim_equal(slice->counts[d], shape[shape_rank - from_end]))
            out[d] = loop;
        else if (slice->block && from_end == 1)
            out[d] = uir_c_format(&e->c, "(%s) %% (%s)", loop, uir_c_dim(&e->c, slice->counts[d]));
        else
            out[d] = uir_c_format(&e->c, "(%s == 1 ? 0 : %s)", uir_c_dim(&e->c, slice->counts[d]), loop);
    }
}

place uir_access_last(emitter *e, const uir_islice *slice, const uir_dim *shape, uint32_t shape_rank) {
    if (!slice->rank || !shape_rank || uir_c_dim_is(&e->c, slice->counts[slice->rank - 1], 1)) return PLACE_ONE;
    return uir_dim_equal(slice->counts[slice->rank - 1], shape[shape_rank - 1]) ? PLACE_LOOP : PLACE_OTHER;
}

uint32_t uir_access_leading_ones(emitter *e, const uir_islice *slice, uint32_t keep) {
    uint32_t n = 0;
    while (slice->rank - n > keep && uir_c_dim_is(&e->c, slice->counts[n], 1)) n++;
    return n;
}
