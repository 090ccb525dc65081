/* Rows of a run that are computed side by side: its instructions over and over, each time with slices one row further
 * on. What several rows read is then one slice, which is loaded once: weights, and the elements that windows of
 * neighbouring pixels share. */
#include "backends/cpu/target/emit.h"

#include <string.h>

/* Axes of windows of one rank, by whatever names they come: those of the first such window. */
typedef struct names {
    const uir_islice *of[INDEX_MAX + 1];
} names;

/* A window each of whose dims is one axis. */
static bool has_plain_axes(const uir_islice *slice) {
    if (slice->axis_count != slice->rank) return false;
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        if (slice->axes[a].dim != a) return false;
    }
    return true;
}

static bool has_axes_of(const uir_islice *a, const uir_islice *b) {
    for (uint32_t i = 0; i < a->axis_count; i++) {
        if (!uir_dim_equal(a->axes[i].extent, b->axes[i].extent)) return false;
    }
    return true;
}

/* `row`: the slice's dim along which it goes `by` further on. */
static bool shift_window(emitter *e, names *known, uir_islice *slice, uint32_t row, int64_t by) {
    uir_dims *dims = e->igraph->dims;
    const uir_islice **first = &known->of[slice->rank], *axes = *first;
    if (!has_plain_axes(slice)) return false;
    if (!axes) axes = *first = slice;
    if (!has_axes_of(slice, axes)) axes = slice;
    uint32_t count = e->igraph->symbols.count;
    uir_dim *replacements = uir_arena_allocate_array(&e->arena, count + 1, sizeof *replacements);
    if (!replacements) {
        e->failed = true;
        return false;
    }
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uir_dim axis = uir_dim_symbol(dims, (uir_symbol){axes->axes[a].symbol});
        replacements[slice->axes[a].symbol] = a == row ? uir_dim_add(dims, axis, uir_dim_const(dims, by)) : axis;
    }
    for (uint32_t d = 0; d < e->igraph->pointers.data[slice->pointer].rank; d++) {
        slice->starts[d] = uir_dim_substitute(dims, slice->starts[d], replacements, count);
        if (!slice->starts[d].id) return false;
    }
    slice->axes = axes->axes;
    return true;
}

bool uir_c_moves_with_row(emitter *e, const uir_islice *slice) {
    return slice->rank >= 2 && !uir_c_dim_is(e, slice->counts[slice->rank - 2], 1);
}

static bool shift(emitter *e, names *known, uir_islice *slice, uir_dim rows, int64_t by) {
    if (e->forwarded[slice->pointer] || slice->block) return false;
    bool moves = uir_c_moves_with_row(e, slice);
    if (moves && !uir_dim_equal(slice->counts[slice->rank - 2], rows)) return false;
    if (slice->window) return shift_window(e, known, slice, moves ? slice->rank - 2 : UINT32_MAX, by);
    if (!moves) return true;
    uir_dim *start = &slice->starts[slice->rank - 2];
    *start = uir_dim_add(e->igraph->dims, *start, uir_dim_const(e->igraph->dims, by));
    return start->id != 0;
}

const uir_iinstruction **uir_c_set_abreast(emitter *e, const uir_iinstruction *const *instructions, uint32_t count,
                                           uir_dim rows, uint32_t abreast) {
    const uir_iinstruction **out = uir_arena_allocate_array(&e->arena, (size_t)count * abreast, sizeof *out);
    uir_iinstruction *copies = uir_arena_allocate_array(&e->arena, (size_t)count * abreast, sizeof *copies);
    names known = {{NULL}};
    if (!out || !copies) {
        e->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < count * abreast; i++) {
        copies[i] = *instructions[i / abreast];
        out[i] = &copies[i];
        for (uint32_t k = 0; k < copies[i].slice_count; k++) {
            if (!shift(e, &known, &copies[i].slices[k], rows, i % abreast)) return NULL;
        }
    }
    return out;
}

bool uir_c_same_elements(const emitter *e, const uir_islice *a, const uir_islice *b) {
    if (a == b || uir_islice_equal(a, b)) return true;
    if (a->pointer != b->pointer || !a->window || !b->window || a->axes != b->axes || a->rank != b->rank ||
        a->has_fill != b->has_fill || (a->has_fill && memcmp(&a->fill, &b->fill, sizeof a->fill) != 0))
        return false;
    for (uint32_t d = 0; d < e->igraph->pointers.data[a->pointer].rank; d++) {
        if (!uir_dim_equal(a->starts[d], b->starts[d])) return false;
    }
    return true;
}
