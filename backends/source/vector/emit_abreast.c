/* Rows of a run that are computed side by side: its instructions over and over, each time with slices one row further
 * on. What several rows read is then one slice, which is loaded once: weights, and the elements that windows of
 * neighbouring pixels share. */
#include "backends/source/vector/emit_run.h"

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
    uir_dims *dims = e->c.igraph->dims;
    const uir_islice **first = &known->of[slice->rank], *axes = *first;
    if (!has_plain_axes(slice)) return false;
    if (!axes) axes = *first = slice;
    if (!has_axes_of(slice, axes)) axes = slice;
    uint32_t count = e->c.igraph->symbols.count;
    uir_dim *replacements = uir_arena_allocate_array(&e->c.arena, count + 1, sizeof *replacements);
    if (!replacements) {
        e->c.failed = true;
        return false;
    }
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uir_dim axis = uir_dim_symbol(dims, (uir_symbol){axes->axes[a].symbol});
        replacements[slice->axes[a].symbol] = a == row ? uir_dim_add(dims, axis, uir_dim_const(dims, by)) : axis;
    }
    for (uint32_t d = 0; d < e->c.igraph->pointers.data[slice->pointer].rank; d++) {
        slice->starts[d] = uir_dim_substitute(dims, slice->starts[d], replacements, count);
        if (!slice->starts[d].id) return false;
    }
    slice->axes = axes->axes;
    return true;
}

bool uir_run_moves_with_row(emitter *e, const uir_islice *slice) {
    return slice->rank >= 2 && !uir_c_dim_is(&e->c, slice->counts[slice->rank - 2], 1);
}

static bool shift(emitter *e, names *known, uir_islice *slice, uir_dim rows, int64_t by) {
    if (e->forwarded[slice->pointer] || slice->block) return false;
    bool moves = uir_run_moves_with_row(e, slice);
    if (moves && !uir_dim_equal(slice->counts[slice->rank - 2], rows)) return false;
    if (slice->window) return shift_window(e, known, slice, moves ? slice->rank - 2 : UINT32_MAX, by);
    if (!moves) return true;
    uir_dim *start = &slice->starts[slice->rank - 2];
    *start = uir_dim_add(e->c.igraph->dims, *start, uir_dim_const(e->c.igraph->dims, by));
    return start->id != 0;
}

/* `abreast` rows at once: copies of the instructions, of instruction i and row r at i * abreast + r, whose slices lie r
 * further along the second last dim. NULL: a slice of it cannot be told so. */
static const uir_iinstruction **copy_abreast(emitter *e, const uir_iinstruction *const *instructions, uint32_t count,
                                             uir_dim rows, uint32_t abreast) {
    const uir_iinstruction **out = uir_arena_allocate_array(&e->c.arena, (size_t)count * abreast, sizeof *out);
    uir_iinstruction *copies = uir_arena_allocate_array(&e->c.arena, (size_t)count * abreast, sizeof *copies);
    names known = {{NULL}};
    if (!out || !copies) {
        e->c.failed = true;
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

bool uir_run_same_elements(const emitter *e, const uir_islice *a, const uir_islice *b) {
    if (a == b || uir_islice_equal(a, b)) return true;
    if (a->pointer != b->pointer || !a->window || !b->window || a->axes != b->axes || a->rank != b->rank ||
        a->has_fill != b->has_fill || (a->has_fill && memcmp(&a->fill, &b->fill, sizeof a->fill) != 0))
        return false;
    for (uint32_t d = 0; d < e->c.igraph->pointers.data[a->pointer].rank; d++) {
        if (!uir_dim_equal(a->starts[d], b->starts[d])) return false;
    }
    return true;
}

/* ---- rows abreast: addresses ---- */
/* What has to hold of a step for all its rows to be inside: a coordinate of some is at least 0, or below the extent. */
typedef struct bound {
    const uir_ipointer *pointer;
    uint32_t dim;
    bool high;
    uir_dim start;
    const char *text;
} bound;

/* One that says less than another of the same coordinate is left out. */
static void add_bound(emitter *e, bound *bounds, uint32_t *count, bound made) {
    uir_relation stricter = made.high ? UIR_RELATION_GE : UIR_RELATION_LE;
    for (uint32_t i = 0; i < *count; i++) {
        bound *b = &bounds[i];
        if (b->pointer != made.pointer || b->dim != made.dim || b->high != made.high) continue;
        if (uir_dim_compare(e->c.igraph->dims, b->start, stricter, made.start) == UIR_TRUE) return;
        if (uir_dim_compare(e->c.igraph->dims, made.start, stricter, b->start) == UIR_TRUE) {
            *b = made;
            return;
        }
    }
    bounds[(*count)++] = made;
}

static const char *name_all_inside(run *r) {
    emitter *e = r->e;
    uint32_t count = 0, slices = r->count * UIR_IOP_MAX_SLICES;
    const char *row = r->loops[r->rank - 2], *index[INDEX_MAX], *coordinates[INDEX_MAX], *missing = NULL;
    const char *text =
        uir_c_format(&e->c, "%s + %u <= %s", row, (unsigned)r->abreast, uir_c_dim(&e->c, r->shape[r->rank - 2]));
    bound *bounds = uir_arena_allocate_array(&e->c.arena, (size_t)slices * 2 * INDEX_MAX, sizeof *bounds);
    if (!bounds) {
        e->c.failed = true;
        return "0";
    }
    for (uint32_t i = 0; i < slices; i++) {
        const operand *o = &r->operands[i];
        if (!o->used || !o->moves) continue;
        uir_access_coordinates(e, &o->access, uir_run_index_last(r, o, "0", index), coordinates);
        for (uint32_t d = 0; d < o->access.pointer->rank; d++) {
            bound b = {o->access.pointer, d, false, o->access.slice->starts[d],
                       uir_c_format(&e->c, "%s >= 0", coordinates[d])};
            if (o->access.low[d]) add_bound(e, bounds, &count, b);
            b.high = true;
            b.text = uir_c_format(&e->c, "%s < %s", coordinates[d], uir_c_dim(&e->c, o->access.pointer->extents[d]));
            if (o->access.high[d]) add_bound(e, bounds, &count, b);
        }
        const char *misses = o->access.missing;
        if (misses && (!missing || strcmp(missing, misses) != 0))
            missing = misses, text = uir_c_format(&e->c, "%s && %s", text, misses);
    }
    for (uint32_t i = 0; i < count; i++) text = uir_c_format(&e->c, "%s && %s", text, bounds[i].text);
    return text;
}

static void emit_addresses(run *r, bool all_inside) {
    emitter *e = r->e;
    const char *row = r->loops[r->rank - 2], *rows = uir_c_dim(&e->c, r->shape[r->rank - 2]);
    for (uint32_t i = 0; i < r->count * UIR_IOP_MAX_SLICES; i++) {
        const operand *o = &r->operands[i];
        const char *index[INDEX_MAX], *coordinates[INDEX_MAX], *inside;
        if (!o->used || !o->moves) continue;
        uir_access_coordinates(e, &o->access, uir_run_index_last(r, o, "0", index), coordinates);
        const char *address =
            uir_c_format(&e->c, "%s + (%s)", o->access.base, uir_access_offset(e, &o->access, coordinates));
        inside = all_inside ? NULL : uir_access_inside(e, &o->access, coordinates, UINT32_MAX);
        if (!all_inside && o->row > 0)
            inside = uir_c_format(&e->c, "%s + %u < %s && %s", row, o->row, rows, inside ? inside : "1");
        if (!inside)
            uir_c_line(&e->c, "%s = %s;", o->name, address);
        else
            uir_c_line(&e->c, "%s = %s ? %s : %s;", o->name, inside, address, o->blank);
    }
}

void uir_run_emit_addresses(run *r) {
    emitter *e = r->e;
    for (uint32_t i = 0; i < r->count * UIR_IOP_MAX_SLICES; i++) {
        const operand *o = &r->operands[i];
        if (!o->used || !o->moves) continue;
        uir_c_line(&e->c, "%s%s%s *%s;", e->dialect->memory, i % UIR_IOP_MAX_SLICES ? "const " : "", o->access.type,
                   o->name);
    }
    uir_c_open(&e->c, "if (%s)", name_all_inside(r));
    emit_addresses(r, true);
    uir_c_close(&e->c);
    uir_c_open(&e->c, "else");
    emit_addresses(r, false);
    uir_c_close(&e->c);
}

/* ---- which runs ---- */
static uint32_t count_loads(const run *r) {
    uint32_t loads = 0;
    for (uint32_t i = 0; i < r->count * UIR_IOP_MAX_SLICES; i++)
        loads += r->operands[i].used && i % UIR_IOP_MAX_SLICES && r->operands[i].along == ALONG_UNIT;
    return loads;
}

/* All that moves with the rows is whole rows, which an address tells; the rest is the same for all. */
static bool is_told_by_addresses(const run *r) {
    for (uint32_t i = 0; i < r->count * UIR_IOP_MAX_SLICES; i++) {
        const operand *o = &r->operands[i];
        if (o->used && (o->moves ? !o->blank : o->along == ALONG_ANY || i % UIR_IOP_MAX_SLICES == 0)) return false;
    }
    return !r->guarded;
}

/* That the first row is there proves of the elements what it proves of that row's slice. */
static void find_first_rows(run *r) {
    for (uint32_t i = 0; i < r->count * UIR_IOP_MAX_SLICES; i++) {
        operand *o = &r->operands[i];
        if (!o->used || !o->moves) continue;
        o->row = i / UIR_IOP_MAX_SLICES % r->abreast;
        for (uint32_t at = 0; at < r->count; at++) {
            const uir_iinstruction *in = r->instructions[at];
            for (uint32_t k = 0; k < in->slice_count && at % r->abreast < o->row; k++) {
                if (!uir_run_same_elements(r->e, &in->slices[k], o->access.slice)) continue;
                o->row = at % r->abreast;
                uir_run_begin_access(r, at, k, &o->access);
            }
        }
    }
}

/* The run with rows abreast, where that loads a quarter less. An element of a run has nothing to do with any other, so
 * that rows may be computed in any order. */
bool uir_run_set_abreast(const run *plain, run *out) {
    emitter *e = plain->e;
    enum { FEW = 4 };
    uint32_t loads = count_loads(plain);
    if (plain->overlap || plain->reductions > 0 || plain->single || plain->rank < 2 || loads < FEW ||
        uir_run_longest_row(plain) <= 0 || uir_run_longest_row(plain) > MOST_BLANK)
        return false;
    uir_dim rows = plain->shape[plain->rank - 2];
    int64_t few;
    uint32_t abreast = uir_dim_is_const(e->c.igraph->dims, rows, &few) && few < ABREAST ? (uint32_t)few : ABREAST;
    if (abreast < 2) return false;
    const uir_iinstruction **copies = copy_abreast(e, plain->instructions, plain->count, rows, abreast);
    if (!copies) return false;
    *out = *plain;
    out->instructions = copies;
    out->originals = plain->instructions;
    out->count = plain->count * abreast;
    out->abreast = abreast;
    out->blank_count = 0;
    out->guarded = false;
    if (!uir_run_begin(out) || !is_told_by_addresses(out) || count_loads(out) * 4 > loads * abreast * 3) return false;
    find_first_rows(out);
    return true;
}
