/* What can be said of a kernel before any place in it: expressions, pointers, layouts, capacity. */
#include "ir/kernel/verify/igraph_verify.h"

#include <string.h>

/* ---- expressions ---- */
typedef struct dim_check {
    uir_iverifier *v;
    bool *seen; /* by dim id */
    uint32_t seen_count;
} dim_check;

static void check_divisors(dim_check *c, uir_dim dim, uint32_t line) {
    uir_iverifier *v = c->v;
    if (!dim.id || (dim.id < c->seen_count && c->seen[dim.id])) return;
    if (dim.id < c->seen_count) c->seen[dim.id] = true;
    const uir_dim_node *node = uir_dim_get(v->g->dims, dim);
    uir_dim operands[64];
    uint32_t count = node->count < 64 ? node->count : 64;
    uir_dim_kind kind = node->kind;
    if (count) memcpy(operands, node->operands, count * sizeof *operands);
    if (count == 2 && (kind == UIR_DIM_FLOORDIV || kind == UIR_DIM_CEILDIV || kind == UIR_DIM_MOD) &&
        !uir_term_prove_le(&v->terms, uir_term_const(&v->terms, 1), uir_term_of_dim(&v->terms, operands[1])))
        uir_iverify_report(v, line, "a divisor cannot be proved to be at least 1");
    for (uint32_t i = 0; i < count; i++) check_divisors(c, operands[i], line);
}

static bool mentions_index(uir_iverifier *v, uir_dim dim) {
    uir_term term = uir_term_of_dim(&v->terms, dim);
    for (uint32_t s = 0; s < v->g->symbols.count; s++)
        if (v->g->symbols.data[s].kind == UIR_ISYMBOL_INDEX &&
            uir_term_mentions(&v->terms, term, uir_term_of_symbol(&v->terms, s)))
            return true;
    return false;
}

/* A value read from data places slices and decides nothing else. */
static void check_size(dim_check *c, uir_dim dim, uint32_t line, const char *what) {
    check_divisors(c, dim, line);
    if (dim.id && !uir_term_of_dim(&c->v->terms, dim))
        uir_iverify_report(c->v, line, "%s is too large an expression to reason about", what);
    if (dim.id && mentions_index(c->v, dim))
        uir_iverify_report(c->v, line, "%s depends on an index read from data; only the starts of slices may", what);
}

static void check_guard_dims(dim_check *c, const uir_iguard *guard, uint32_t line) {
    for (uint32_t i = 0; i < guard->count; i++) {
        if (guard->atoms[i].kind != UIR_IATOM_RELATION) continue;
        check_size(c, guard->atoms[i].condition.left, line, "a condition");
        check_size(c, guard->atoms[i].condition.right, line, "a condition");
    }
}

static void check_slice_dims(dim_check *c, const uir_islice *slice, uint32_t line) {
    uint32_t rank = c->v->g->pointers.data[slice->pointer].rank;
    for (uint32_t d = 0; d < rank; d++) check_divisors(c, slice->starts[d], line);
    for (uint32_t d = 0; d < slice->rank; d++) check_size(c, slice->counts[d], line, "the count of a slice");
    for (uint32_t a = 0; a < slice->axis_count; a++)
        check_size(c, slice->axes[a].extent, line, "the extent of an axis");
}

static void check_tree_dims(dim_check *c) {
    const uir_igraph *g = c->v->g;
    for (uint32_t i = 0; i < g->items.count; i++) {
        const uir_iitem *item = &g->items.data[i];
        check_guard_dims(c, &item->guard, item->line);
        if (item->kind == UIR_IITEM_LOOP) {
            check_size(c, item->extent, item->line, "the extent of a loop");
            if (item->named_ends && item->guard.count)
                uir_iverify_report(c->v, item->line,
                                   "loop %s has its first or last iteration named, so it may not have a condition",
                                   g->symbols.data[item->symbol].name);
        } else if (item->kind == UIR_IITEM_LET) {
            check_divisors(c, g->symbols.data[item->symbol].definition, item->line);
        } else if (item->kind == UIR_IITEM_INDEX) {
            check_size(c, item->index.limit, item->line, "the range of an index");
            check_slice_dims(c, &item->index.slice, item->line);
        } else if (item->kind == UIR_IITEM_INSTRUCTION) {
            const uir_iinstruction *n = &g->instructions.data[item->instruction];
            for (uint32_t k = 0; k < n->slice_count; k++) check_slice_dims(c, &n->slices[k], item->line);
            if (n->has_scratch) check_slice_dims(c, &n->scratch, item->line);
            if (n->start.id) check_divisors(c, n->start, item->line);
        }
    }
}

/* ---- pointers ---- */
typedef struct mode {
    uir_term size, stride;
} mode;

/* Orders the modes so that each stride passes over all that the ones before it span; false when that cannot be shown.
 * Strides that may be equal leave several orders: each is tried. */
static bool order_modes(uir_iverifier *v, mode *modes, uint32_t done, uint32_t count, uir_term span) {
    uir_terms *t = &v->terms;
    if (done == count) return true;
    for (uint32_t next = done; next < count; next++) {
        mode m = modes[next];
        if (!uir_term_prove_le(t, span, m.stride)) continue;
        modes[next] = modes[done];
        modes[done] = m;
        uir_term more = uir_term_mul(t, uir_term_sub(t, m.size, uir_term_const(t, 1)), m.stride);
        if (order_modes(v, modes, done + 1, count, uir_term_add(t, span, more))) return true;
        modes[done] = modes[next];
        modes[next] = m;
    }
    return false;
}

/* Elements of storage, at most, of one instance; UNKNOWN after a report. */
static uir_term check_layout(uir_iverifier *v, const uir_ipointer *p) {
    uir_terms *t = &v->terms;
    uir_term one = uir_term_const(t, 1), storage = one;
    mode modes[UIR_IGRAPH_MAX_RANK * UIR_IGRAPH_MAX_MODES];
    uint32_t count = 0, mark = t->assumptions.count;
    if (!p->layout.given) {
        for (uint32_t d = 0; d < p->rank; d++) storage = uir_term_mul(t, storage, uir_term_of_dim(t, p->extents[d]));
        return storage;
    }
    for (uint32_t d = 0; d < p->rank; d++) {
        uir_term product = one;
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
            uir_term size = uir_term_of_dim(t, p->layout.modes[d][m].size),
                     stride = uir_term_of_dim(t, p->layout.modes[d][m].stride);
            product = uir_term_mul(t, product, size);
            if (m + 1 < p->layout.mode_count[d] && !uir_term_prove_le(t, one, size))
                uir_iverify_report(v, p->line, "layout of %%%s: size %u of dim %u cannot be proved to be at least 1",
                                   p->name, m, d);
            if (!uir_term_prove(t, stride))
                uir_iverify_report(v, p->line, "layout of %%%s: a stride of dim %u cannot be proved to be 0 or more",
                                   p->name, d);
            int64_t value;
            if (!uir_term_is_const(t, size, &value) || value != 1) modes[count++] = (mode){size, stride};
        }
        if (!uir_term_prove_le(t, uir_term_of_dim(t, p->extents[d]), product))
            uir_iverify_report(v, p->line, "layout of %%%s: its sizes cannot be proved to hold dim %u", p->name, d);
    }
    /* Without elements nothing collides. */
    for (uint32_t i = 0; i < count; i++) uir_term_assume(t, uir_term_sub(t, modes[i].size, one));
    bool ordered = order_modes(v, modes, 0, count, one);
    t->assumptions.count = mark;
    if (ordered) {
        int64_t block = p->layout.swizzle.bits ? (int64_t)1 << (p->layout.swizzle.base + p->layout.swizzle.bits) : 1;
        storage = count ? uir_term_mul(t, modes[count - 1].size, modes[count - 1].stride) : one;
        if (block == 1) return storage;
        uir_term blocks =
            uir_term_floordiv(t, uir_term_add(t, storage, uir_term_const(t, block - 1)), uir_term_const(t, block));
        return uir_term_mul(t, blocks, uir_term_const(t, block));
    }
    if (p->role != UIR_IPOINTER_IN && p->role != UIR_IPOINTER_CONST) {
        uir_iverify_report(v, p->line, "layout of %%%s: two elements may have the same address", p->name);
        return UIR_TERM_UNKNOWN;
    }
    return uir_term_of_dim(t, p->element_span);
}

static void check_tie(uir_iverifier *v, const uir_ipointer *p) {
    const uir_ipointer *other = uir_iverify_pointer(v, p->tied);
    bool same = other->role == UIR_IPOINTER_IN && other->dtype == p->dtype && other->rank == p->rank;
    for (uint32_t d = 0; d < p->rank && same; d++) same = uir_dim_equal(other->extents[d], p->extents[d]);
    same = same && uir_layout_is_same(&other->layout, &p->layout, p->rank);
    if (!same)
        uir_iverify_report(
            v, p->line, "%%%s and %%%s are tied: they need one dtype, shape and layout, and the other must be an input",
            p->name, other->name);
}

static uir_term buffer_bytes(uir_iverifier *v, uint32_t index);

/* With all its instances, each of which begins where the space's alignment lets it. */
static bool has_room_in(uir_iverifier *v, uint32_t index, uint32_t place) {
    uir_terms *t = &v->terms;
    const uir_igraph *g = v->g;
    return (uir_iverify_pointer(v, index)->instances <= uir_iverify_pointer(v, place)->instances &&
            uir_term_prove_le(t, uir_term_of_dim(t, uir_igraph_instance_bytes(g, index)),
                              uir_term_of_dim(t, uir_igraph_instance_bytes(g, place)))) ||
           (uir_term_prove_le(t, uir_term_of_dim(t, uir_igraph_pointer_bytes(g, index)),
                              uir_term_of_dim(t, uir_igraph_pointer_bytes(g, place))) &&
            uir_term_prove_le(t, buffer_bytes(v, index), buffer_bytes(v, place)));
}

/* A place is one buffer's, and holds all that lie there. */
static void check_place(uir_iverifier *v, uint32_t index) {
    const uir_ipointer *p = uir_iverify_pointer(v, index), *owner = uir_iverify_pointer(v, p->over);
    if (p->over == index || owner->over != UINT32_MAX || p->role != UIR_IPOINTER_LOCAL || owner->role != p->role ||
        p->space != owner->space) {
        uir_iverify_report(
            v, p->line,
            "%%%s cannot be over %%%s: both must be local buffers of one space, and the other must own its storage",
            p->name, owner->name);
        return;
    }
    if (!has_room_in(v, index, p->over))
        uir_iverify_report(v, p->line, "%%%s is over %%%s, which cannot be proved to be as large", p->name,
                           owner->name);
}

static void check_pointer(uir_iverifier *v, dim_check *c, uint32_t index) {
    const uir_ipointer *p = uir_iverify_pointer(v, index);
    const uir_space *space = uir_iverify_space(v, index);
    uir_dtype_class dtype_class = uir_dtype_get_class(p->dtype);
    if (dtype_class == UIR_DTYPE_CLASS_STRING || dtype_class == UIR_DTYPE_CLASS_COMPLEX)
        uir_iverify_report(v, p->line, "%%%s: no device computes with %s", p->name, uir_dtype_name(p->dtype));
    if ((p->role == UIR_IPOINTER_LOCAL) == (space->scope == UIR_SCOPE_DEVICE))
        uir_iverify_report(v, p->line, "%%%s: a pointer in %s %s", p->name, space->name,
                           p->role == UIR_IPOINTER_LOCAL ? "must be in, out, const or work"
                                                         : "cannot be an argument or work");
    if (p->by_loop != UINT32_MAX && p->role != UIR_IPOINTER_LOCAL)
        uir_iverify_report(v, p->line, "%%%s: only a local buffer has instances", p->name);
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t value;
        check_size(c, p->extents[d], p->line, "an extent");
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
            check_size(c, p->layout.modes[d][m].size, p->line, "a layout");
            check_size(c, p->layout.modes[d][m].stride, p->line, "a layout");
        }
        uir_term extent = uir_term_of_dim(&v->terms, p->extents[d]);
        if (!uir_term_prove(&v->terms, extent))
            uir_iverify_report(v, p->line, "dim %u of %%%s may be less than 0", d, p->name);
        if ((space->roles & UIR_SPACE_REGISTERS) && !uir_term_is_const(&v->terms, extent, &value))
            uir_iverify_report(v, p->line, "dim %u of %%%s must be a number: %s is held in registers", d, p->name,
                               space->name);
    }
    if (p->tied != UINT32_MAX) check_tie(v, p);
    if (p->over != UINT32_MAX) check_place(v, index);
    for (uint32_t k = 0; k < index; k++) {
        const uir_ipointer *other = uir_iverify_pointer(v, k);
        /* Two views of one input are fine; two of one output would be written without knowing of each other. */
        if (p->role == UIR_IPOINTER_OUT && other->role == p->role && other->role_index == p->role_index)
            uir_iverify_report(v, p->line, "%%%s and %%%s are the same output", other->name, p->name);
        if (p->tied != UINT32_MAX && other->tied == p->tied)
            uir_iverify_report(v, p->line, "%%%s and %%%s are tied to one input", other->name, p->name);
    }
}

/* ---- capacity ---- */
static uir_term buffer_bytes(uir_iverifier *v, uint32_t index) {
    uir_terms *t = &v->terms;
    const uir_ipointer *p = uir_iverify_pointer(v, index);
    const uir_space *space = uir_iverify_space(v, index);
    uint32_t bits = uir_dtype_bits(p->dtype), alignment = space->alignment ? space->alignment : 1;
    uir_term bytes = uir_term_mul(t, check_layout(v, p), uir_term_const(t, bits >= 8 ? bits / 8 : bits));
    if (bits < 8) bytes = uir_term_floordiv(t, uir_term_add(t, bytes, uir_term_const(t, 7)), uir_term_const(t, 8));
    uir_term unit = uir_term_const(t, alignment);
    uir_term blocks = uir_term_floordiv(t, uir_term_add(t, bytes, uir_term_const(t, alignment - 1)), unit);
    return uir_term_mul(t, uir_term_mul(t, blocks, unit), uir_term_const(t, p->instances));
}

static void check_capacity(uir_iverifier *v, uint32_t space_index) {
    uir_terms *t = &v->terms;
    const uir_space *space = &v->g->machine->spaces[space_index];
    uir_term total = uir_term_const(t, 0);
    uint32_t line = 0;
    bool is_used = false;
    for (uint32_t i = 0; i < v->g->pointers.count; i++) {
        const uir_ipointer *p = uir_iverify_pointer(v, i);
        if (p->space != space_index) continue;
        if (p->role != UIR_IPOINTER_LOCAL) {
            check_layout(v, p);
            continue;
        }
        if (p->over != UINT32_MAX) {
            check_layout(v, p);
            continue;
        }
        total = uir_term_add(t, total, buffer_bytes(v, i));
        line = p->line; /* 0 in a kernel that is no text */
        is_used = true;
    }
    if (space->capacity == 0 || !is_used || space->capacity > INT64_MAX) return;
    if (uir_term_prove_le(t, total, uir_term_const(t, (int64_t)space->capacity))) return;
    int64_t least, most;
    uir_term_bounds(t, total, &least, &most);
    if (least == most)
        uir_iverify_report(v, line, "capacity: the buffers in %s take %lld bytes of %llu", space->name,
                           (long long)least, (unsigned long long)space->capacity);
    else
        uir_iverify_report(v, line, "capacity: the buffers in %s cannot be proved to fit its %llu bytes; add a require",
                           space->name, (unsigned long long)space->capacity);
}

/* ---- the tiling function ---- */
/* What a candidate sets a tile to is a tile wherever the candidate's condition holds. */
static void check_candidate(uir_iverifier *v, dim_check *c, const uir_icandidate *candidate) {
    uir_terms *t = &v->terms;
    uir_igraph *g = v->g;
    uir_term terms[2 * 16];
    uint32_t count = 0, mark = t->assumptions.count, tile = 0;
    check_guard_dims(c, &candidate->guard, candidate->line);
    check_size(c, candidate->cost, candidate->line, "a cost");
    check_size(c, candidate->units, candidate->line, "a number of units");
    for (uint32_t i = 0; i < candidate->guard.count; i++)
        if (candidate->guard.atoms[i].kind != UIR_IATOM_RELATION) {
            uir_iverify_report(v, candidate->line, "a candidate is chosen before any loop runs: no first() or last()");
            return;
        }
    uir_iverify_guard_terms(v, &candidate->guard, terms, &count);
    for (uint32_t i = 0; i < count; i++) uir_term_assume(t, terms[i]);
    bool reached = !uir_term_prove_unreachable(t);
    for (uint32_t s = 0; s < g->symbols.count; s++) {
        if (g->symbols.data[s].kind != UIR_ISYMBOL_TILE) continue;
        uir_symbol_facts facts = uir_dims_symbol_facts(g->dims, g->symbols.data[s].symbol);
        uir_term value = uir_term_of_dim(t, candidate->tiles[tile]);
        check_size(c, candidate->tiles[tile++], candidate->line, "a tile");
        if (!reached) continue;
        int64_t number;
        bool inside = uir_term_prove_le(t, uir_term_const(t, facts.min), value) &&
                      (facts.max == UIR_DIM_UNBOUNDED || uir_term_prove_le(t, value, uir_term_const(t, facts.max)));
        if (!inside && uir_term_is_const(t, value, &number))
            uir_iverify_report(v, candidate->line, "candidate: %s = %lld is outside its range %lld..%lld",
                               g->symbols.data[s].name, (long long)number, (long long)facts.min, (long long)facts.max);
        else if (!inside)
            uir_iverify_report(v, candidate->line,
                               "candidate: %s cannot be proved to be in its range %lld..%lld; add a 'when'",
                               g->symbols.data[s].name, (long long)facts.min, (long long)facts.max);
        else if (facts.multiple_of > 1 &&
                 uir_dim_multiple(g->dims, candidate->tiles[tile - 1]) % facts.multiple_of != 0)
            uir_iverify_report(v, candidate->line, "candidate: %s cannot be proved to be a multiple of %lld",
                               g->symbols.data[s].name, (long long)facts.multiple_of);
    }
    t->assumptions.count = mark;
}

void uir_iverify_header(uir_iverifier *v) {
    uir_igraph *g = v->g;
    dim_check c = {.v = v, .seen_count = 1u << 16};
    c.seen = uir_arena_allocate_array(v->arena, c.seen_count, sizeof *c.seen);
    if (!c.seen) {
        v->failed = true;
        return;
    }
    for (uint32_t i = 0; i < g->symbols.count; i++)
        if (g->symbols.data[i].kind == UIR_ISYMBOL_LET) check_divisors(&c, g->symbols.data[i].definition, 0);
    for (uint32_t i = 0; i < g->pointers.count; i++) check_pointer(v, &c, i);
    for (uint32_t i = 0; i < g->phases.count; i++) {
        const uir_iphase *phase = &g->phases.data[i];
        uir_term units = uir_term_const(&v->terms, 1);
        for (uint32_t k = 0; k < phase->parallel_count; k++) {
            check_size(&c, phase->parallel[k].extent, 0, "the extent of a parallel axis");
            if (uir_iverify_is_unit_axis(phase, k))
                units = uir_term_mul(&v->terms, units, uir_term_of_dim(&v->terms, phase->parallel[k].extent));
        }
        for (uint32_t b = 0; b < phase->body_count; b++) {
            uir_term of_body = uir_term_mul(&v->terms, units, uir_term_const(&v->terms, phase->bodies[b].unit_count));
            if (!uir_term_prove_le(&v->terms, of_body, uir_term_const(&v->terms, g->machine->units_per_group)))
                uir_iverify_report(v, 0, "a group of %s has %u units at most", g->machine->name,
                                   g->machine->units_per_group);
        }
    }
    for (uint32_t i = 0; i < g->candidates.count; i++) check_candidate(v, &c, &g->candidates.data[i]);
    check_tree_dims(&c);
    for (uint32_t s = 0; s < g->machine->space_count; s++) check_capacity(v, s);
}
