#include "ir/kernel/igraph_threads.h"

#include "ir/kernel/igraph_runs.h"

#define NONE UINT32_MAX

static bool is_one(const uir_igraph *g, uir_dim dim) {
    int64_t value;
    return uir_dim_is_const(g->dims, dim, &value) && value == 1;
}

static bool is_zero(const uir_igraph *g, uir_dim dim) {
    int64_t value;
    return uir_dim_is_const(g->dims, dim, &value) && value == 0;
}

/* ---- owners ---- */
bool uir_ithreads_has_owners(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    return p->role == UIR_IPOINTER_LOCAL && g->machine->spaces[p->space].scope == UIR_SCOPE_UNIT;
}

static bool is_in_registers(const uir_igraph *g, uint32_t pointer) {
    return g->machine->spaces[g->pointers.data[pointer].space].roles & UIR_SPACE_REGISTERS;
}

bool uir_ithreads_is_copied(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    if (!uir_ithreads_has_owners(g, pointer) || !is_in_registers(g, pointer)) return false;
    for (uint32_t d = 0; d < p->rank; d++)
        if (!is_one(g, p->extents[d])) return false;
    return true;
}

/* Equal dims, aligned at the last; leading ones do not count. */
static bool has_shape(const uir_igraph *g, const uir_islice *a, const uir_islice *b) {
    for (uint32_t k = 1; k <= a->rank || k <= b->rank; k++) {
        if (k > a->rank || k > b->rank) {
            const uir_islice *longer = a->rank > b->rank ? a : b;
            if (!is_one(g, longer->counts[longer->rank - k])) return false;
        } else if (!uir_dim_equal(a->counts[a->rank - k], b->counts[b->rank - k])) {
            return false;
        }
    }
    return true;
}

/* ---- dims of slices ---- */
/* How far a dim goes when the symbol goes one further; NONE: not always as far. */
static uir_dim pace_of(const uir_igraph *g, uir_dim dim, uint32_t symbol) {
    uir_symbol s = g->symbols.data[symbol].symbol;
    uir_dim next = uir_dim_add(g->dims, uir_dim_symbol(g->dims, s), uir_dim_const(g->dims, 1));
    uir_dim there = uir_dim_replace(g->dims, dim, &(uir_dim_replacement){s, next}, 1);
    if (!there.id) return UIR_DIM_NONE;
    uir_dim pace = uir_dim_sub(g->dims, there, dim);
    return pace.id && !uir_dim_mentions(g->dims, pace, s) ? pace : UIR_DIM_NONE;
}

static bool is_at_least(const uir_igraph *g, uir_dim a, uir_dim b) {
    return a.id && b.id && uir_dim_compare(g->dims, a, UIR_RELATION_GE, b) == UIR_TRUE;
}

static bool is_const_one(const uir_igraph *g, uir_dim dim) {
    return dim.id && is_one(g, dim);
}

/* The dim of the pointer along which an axis goes, one by one; NONE: several, or otherwise. */
static uint32_t dim_of_axis(const uir_igraph *g, const uir_islice *window, uint32_t axis) {
    uint32_t found = NONE, symbol = window->axes[axis].symbol;
    for (uint32_t d = 0; d < g->pointers.data[window->pointer].rank; d++) {
        if (!uir_dim_mentions(g->dims, window->starts[d], g->symbols.data[symbol].symbol)) continue;
        if (found != NONE || !is_const_one(g, pace_of(g, window->starts[d], symbol))) return NONE;
        found = d;
    }
    return found;
}

bool uir_ithreads_find_dims(const uir_igraph *g, const uir_islice *slice, uint32_t *out_dims) {
    uint32_t rank = g->pointers.data[slice->pointer].rank, along[UIR_IGRAPH_MAX_RANK];
    if (slice->block || slice->has_fill) return false;
    for (uint32_t d = 0; d < rank; d++) out_dims[d] = slice->window ? NONE : d;
    for (uint32_t d = 0; d < slice->rank; d++) along[d] = NONE;
    for (uint32_t a = 0; slice->window && a < slice->axis_count; a++) {
        if (is_one(g, slice->axes[a].extent)) continue;
        uint32_t d = dim_of_axis(g, slice, a);
        if (d == NONE || out_dims[d] != NONE || along[slice->axes[a].dim] != NONE) return false;
        out_dims[d] = slice->axes[a].dim;
        along[slice->axes[a].dim] = d;
    }
    return true;
}

/* A slice of elements that have owners, each with its own element of the result: a box; of registers a window too, of
 * which each axis goes along one dim. */
static bool may_lead(const uir_igraph *g, const uir_iinstruction *in, uint32_t k) {
    const uir_islice *slice = &in->slices[k];
    uint32_t dims[UIR_IGRAPH_MAX_RANK];
    return (!slice->window || is_in_registers(g, slice->pointer)) && uir_ithreads_has_owners(g, slice->pointer) &&
           !uir_ithreads_is_copied(g, slice->pointer) && has_shape(g, slice, &in->slices[0]) &&
           uir_ithreads_find_dims(g, slice, dims);
}

static bool goes_by_lines(const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    return family == UIR_IOP_FAMILY_SCAN || (family == UIR_IOP_FAMILY_REDUCE && in->axis != UIR_IAXIS_COL);
}

uint32_t uir_ithreads_find_frame(const uir_igraph *g, const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    bool alone = family == UIR_IOP_FAMILY_REDUCE || family == UIR_IOP_FAMILY_MMA;
    uint32_t frame = UIR_ITHREADS_RESULT;
    if (!in->slice_count || goes_by_lines(in) || uir_ithreads_is_copied(g, in->slices[0].pointer)) return frame;
    for (uint32_t k = 0; k < (alone ? 1 : in->slice_count); k++) {
        if (!may_lead(g, in, k)) continue;
        if (is_in_registers(g, in->slices[k].pointer)) return k;
        if (frame == UIR_ITHREADS_RESULT) frame = k;
    }
    return frame;
}

/* Elements from one index of a dim of the pointer to the next: in registers by its layout, elsewhere row-major over its
 * extents. NONE: a split dim has no one step. */
static uir_dim step_of(const uir_igraph *g, const uir_ipointer *p, uint32_t dim) {
    uir_dim step = uir_dim_const(g->dims, 1);
    if (g->machine->spaces[p->space].roles & UIR_SPACE_REGISTERS)
        return p->layout.mode_count[dim] == 1 ? p->layout.modes[dim][0].stride : UIR_DIM_NONE;
    for (uint32_t d = p->rank; d-- > dim + 1 && step.id;) step = uir_dim_mul(g->dims, step, p->extents[d]);
    return step;
}

/* Where along a dim of the pointer the slice begins; NONE: unknown. */
static uir_dim start_of(const uir_igraph *g, const uir_islice *slice, uint32_t dim) {
    uir_dim start = slice->starts[dim];
    for (uint32_t a = 0; slice->window && a < slice->axis_count && start.id; a++) {
        uir_symbol axis = g->symbols.data[slice->axes[a].symbol].symbol;
        start = uir_dim_replace(g->dims, start, &(uir_dim_replacement){axis, uir_dim_const(g->dims, 0)}, 1);
    }
    return start;
}

/* The number of the slice's first element, by which it has its owner; NONE: unknown. */
static uir_dim first_of(const uir_igraph *g, const uir_islice *slice) {
    const uir_ipointer *p = &g->pointers.data[slice->pointer];
    uir_dim first = uir_dim_const(g->dims, 0);
    for (uint32_t d = 0; d < p->rank && first.id; d++) {
        uir_dim start = start_of(g, slice, d), step = step_of(g, p, d);
        if (!start.id) return UIR_DIM_NONE;
        if (is_zero(g, start)) continue;
        first = step.id ? uir_dim_add(g->dims, first, uir_dim_mul(g->dims, start, step)) : UIR_DIM_NONE;
    }
    return first;
}

/* Elements from one index of the slice's dim to the next. */
static uir_dim step_along(const uir_igraph *g, const uir_islice *slice, uint32_t dim) {
    const uir_ipointer *p = &g->pointers.data[slice->pointer];
    uint32_t dims[UIR_IGRAPH_MAX_RANK];
    if (!uir_ithreads_find_dims(g, slice, dims)) return UIR_DIM_NONE;
    for (uint32_t d = 0; d < p->rank; d++)
        if (dims[d] == dim) return step_of(g, p, d);
    return UIR_DIM_NONE;
}

static bool differ_by_turns(const uir_igraph *g, uir_dim a, uir_dim b) {
    if (!a.id || !b.id) return false;
    uir_dim difference = uir_dim_sub(g->dims, a, b);
    return difference.id && uir_dim_multiple(g->dims, difference) % uir_ithreads_count(g) == 0;
}

static bool is_split(const uir_igraph *g, const uir_islice *slice) {
    const uir_ipointer *p = &g->pointers.data[slice->pointer];
    for (uint32_t d = 0; d < p->rank; d++)
        if (is_in_registers(g, slice->pointer) && p->layout.mode_count[d] > 1) return true;
    return false;
}

/* Indices of a split dim after which its owners repeat; 0: they do not. */
static int64_t period_of(const uir_igraph *g, const uir_ipointer *p, uint32_t dim) {
    int64_t period = 1, after = 1, size, stride;
    uint32_t last = p->layout.mode_count[dim] - 1u;
    for (uint32_t m = 0; m <= last; m++) {
        const uir_mode *mode = &p->layout.modes[dim][m];
        if (!uir_dim_is_const(g->dims, mode->stride, &stride) ||
            (m < last && (!uir_dim_is_const(g->dims, mode->size, &size) || size < 1 || after > INT32_MAX / size)))
            return 0;
        bool turns = stride % uir_ithreads_count(g) == 0;
        if (m == last) return turns ? period : 0;
        after *= size;
        if (!turns) period = after;
    }
    return 0;
}

/* Whether dims of equal layouts are entered where the owners are the same. */
static bool is_entered_alike(const uir_igraph *g, const uir_islice *a, const uir_islice *b, uint32_t dim) {
    uir_dim first = start_of(g, a, dim), second = start_of(g, b, dim);
    if (!first.id || !second.id) return false;
    if (uir_dim_equal(first, second)) return true;
    uir_dim difference = uir_dim_sub(g->dims, first, second);
    int64_t period = period_of(g, &g->pointers.data[a->pointer], dim);
    return difference.id && period && uir_dim_multiple(g->dims, difference) % period == 0;
}

/* The same for registers that are split over the threads: layouts of equal modes, along the same dims. */
static bool have_parts_alike(const uir_igraph *g, const uir_islice *a, const uir_islice *b) {
    const uir_ipointer *p = &g->pointers.data[a->pointer], *q = &g->pointers.data[b->pointer];
    uint32_t of_a[UIR_IGRAPH_MAX_RANK], of_b[UIR_IGRAPH_MAX_RANK];
    if (!is_in_registers(g, a->pointer) || !is_in_registers(g, b->pointer) || p->rank != q->rank ||
        p->layout.swizzle.bits || q->layout.swizzle.bits || !uir_ithreads_find_dims(g, a, of_a) ||
        !uir_ithreads_find_dims(g, b, of_b))
        return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        uint32_t last = p->layout.mode_count[d] - 1u;
        if (q->layout.mode_count[d] != last + 1u) return false;
        for (uint32_t m = 0; m <= last; m++) {
            const uir_mode *x = &p->layout.modes[d][m], *y = &q->layout.modes[d][m];
            if (!uir_dim_equal(x->stride, y->stride) || (m < last && !uir_dim_equal(x->size, y->size))) return false;
        }
        bool goes = of_a[d] != NONE && !is_one(g, a->counts[of_a[d]]),
             other = of_b[d] != NONE && !is_one(g, b->counts[of_b[d]]);
        if (goes != other || (goes && a->rank - of_a[d] != b->rank - of_b[d]) || !is_entered_alike(g, a, b, d))
            return false;
    }
    return true;
}

/* Whether the elements of two slices that go together have one owner. */
static bool have_owners_alike(const uir_igraph *g, const uir_islice *a, const uir_islice *b) {
    if (!has_shape(g, a, b)) return false;
    if (is_split(g, a) || is_split(g, b)) return have_parts_alike(g, a, b);
    if (!differ_by_turns(g, first_of(g, a), first_of(g, b))) return false;
    for (uint32_t k = 1; k <= a->rank && k <= b->rank; k++)
        if (!is_one(g, a->counts[a->rank - k]) &&
            !differ_by_turns(g, step_along(g, a, a->rank - k), step_along(g, b, b->rank - k)))
            return false;
    return true;
}

/* Whether the threads of a row reduction's lanes are the owners of what they read, or of the row's result: rows begin
 * 32 threads apart, and none comes to its second 32 elements with another thread. */
static bool has_own_lanes(const uir_igraph *g, const uir_iinstruction *in, uint32_t slice) {
    const uir_islice *s = &in->slices[slice];
    uir_dim zero = uir_dim_const(g->dims, 0), lanes = uir_dim_const(g->dims, UIR_REDUCE_LANES);
    uint32_t leading = s->rank - 1, rows = NONE;
    if (s->window || s->block || s->has_fill || !s->rank || slice > 1 || !uir_ithreads_has_owners(g, s->pointer) ||
        !differ_by_turns(g, first_of(g, s), zero))
        return false;
    if (!is_one(g, s->counts[leading]) && slice == 0) return false; /* its dims are not those of the rows */
    for (uint32_t d = 0; d < leading; d++) {
        if (is_one(g, s->counts[d])) continue;
        if (rows != NONE) return false;
        rows = d;
    }
    if (rows != NONE && !differ_by_turns(g, step_along(g, s, rows), lanes)) return false;
    return slice == 0 || UIR_REDUCE_LANES % uir_ithreads_count(g) == 0 || is_at_least(g, lanes, s->counts[leading]);
}

bool uir_ithreads_is_own(const uir_igraph *g, const uir_iinstruction *in, uint32_t slice) {
    uint32_t frame = uir_ithreads_find_frame(g, in);
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    if (uir_ithreads_is_copied(g, in->slices[slice].pointer) || slice == frame) return true;
    if (family == UIR_IOP_FAMILY_REDUCE && goes_by_lines(in)) return has_own_lanes(g, in, slice);
    if (frame == UIR_ITHREADS_RESULT || family == UIR_IOP_FAMILY_REDUCE || family == UIR_IOP_FAMILY_MMA) return false;
    return may_lead(g, in, slice) && have_owners_alike(g, &in->slices[slice], &in->slices[frame]);
}

bool uir_ithreads_go_alike(const uir_igraph *g, const uir_iinstruction *a, const uir_iinstruction *b) {
    uint32_t f = uir_ithreads_find_frame(g, a), h = uir_ithreads_find_frame(g, b);
    bool copied = uir_ithreads_is_copied(g, a->slices[0].pointer);
    if (goes_by_lines(a) || goes_by_lines(b)) return goes_by_lines(a) == goes_by_lines(b) && a->code == b->code;
    if (f != UIR_ITHREADS_RESULT && h != UIR_ITHREADS_RESULT) return have_owners_alike(g, &a->slices[f], &b->slices[h]);
    return f == h && copied == uir_ithreads_is_copied(g, b->slices[0].pointer);
}

bool uir_ithreads_meet(const uir_igraph *g, const uir_iinstruction *in) {
    return uir_ithreads_count(g) > 1 && in->scope == UIR_SCOPE_UNIT && in->axis != UIR_IAXIS_COL &&
           uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_REDUCE &&
           uir_ithreads_is_copied(g, in->slices[0].pointer);
}

/* ---- elements that only one iteration touches ---- */
static const uir_iinstruction *instruction_of(const uir_iorder *o, const uir_iorder_use *use) {
    uint32_t instruction = o->steps.data[use->step].instruction;
    return instruction == NONE ? NULL : &o->igraph->instructions.data[instruction];
}

static const uir_islice *slice_of(const uir_iorder *o, const uir_iorder_use *use) {
    const uir_iinstruction *in = instruction_of(o, use);
    if (!in) return &o->igraph->items.data[o->steps.data[use->step].item].index.slice;
    return use->slice == NONE ? &in->scratch : &in->slices[use->slice];
}

static uint32_t symbol_of(const uir_iorder *o, uint32_t loop) {
    return o->igraph->items.data[o->blocks.data[loop].item].symbol;
}

static void find_named(void *user, uir_symbol symbol) {
    struct {
        const uir_igraph *g;
        bool found;
    } *search = user;
    uir_isymbol_kind kind = search->g->symbols.data[uir_igraph_symbol_index(search->g, symbol)].kind;
    search->found = search->found || kind == UIR_ISYMBOL_LET || kind == UIR_ISYMBOL_INDEX;
}

/* Whether a dim has names whose values follow from those of loops, or of data. */
static bool is_named(const uir_igraph *g, uir_dim dim) {
    struct {
        const uir_igraph *g;
        bool found;
    } search = {g, false};
    uir_dim_visit_symbols(g->dims, dim, find_named, &search);
    return search.found;
}

static uint32_t rank_of(const uir_igraph *g, const uir_islice *slice) {
    return slice->window ? g->pointers.data[slice->pointer].rank : slice->rank;
}

static bool slice_is_named(const uir_igraph *g, const uir_islice *slice) {
    for (uint32_t d = 0; d < rank_of(g, slice); d++)
        if (is_named(g, slice->starts[d])) return true;
    for (uint32_t d = 0; d < slice->rank; d++)
        if (is_named(g, slice->counts[d])) return true;
    for (uint32_t a = 0; a < slice->axis_count; a++)
        if (is_named(g, slice->axes[a].extent)) return true;
    return false;
}

static bool slice_mentions(const uir_igraph *g, const uir_islice *slice, uint32_t symbol) {
    uir_symbol s = g->symbols.data[symbol].symbol;
    bool found = false;
    for (uint32_t d = 0; d < rank_of(g, slice); d++) found = found || uir_dim_mentions(g->dims, slice->starts[d], s);
    for (uint32_t d = 0; d < slice->rank; d++) found = found || uir_dim_mentions(g->dims, slice->counts[d], s);
    for (uint32_t a = 0; a < slice->axis_count; a++)
        found = found || uir_dim_mentions(g->dims, slice->axes[a].extent, s);
    return found;
}

/* `span` with `extent` steps of `pace` each. */
static uir_dim stretch(const uir_igraph *g, uir_dim span, uir_dim pace, uir_dim extent) {
    uir_dim more = uir_dim_sub(g->dims, extent, uir_dim_const(g->dims, 1));
    return uir_dim_add(g->dims, span, uir_dim_mul(g->dims, pace, more));
}

/* Indices of a dim that one execution touches; NONE: unknown. */
static uir_dim span_of(const uir_igraph *g, const uir_islice *slice, uint32_t dim) {
    if (!slice->window) return slice->counts[dim];
    uir_dim zero = uir_dim_const(g->dims, 0), span = uir_dim_const(g->dims, 1);
    for (uint32_t a = 0; a < slice->axis_count && span.id; a++) {
        uir_dim pace = pace_of(g, slice->starts[dim], slice->axes[a].symbol);
        if (!is_at_least(g, pace, zero)) return UIR_DIM_NONE;
        span = stretch(g, span, pace, slice->axes[a].extent);
    }
    return span;
}

/* The dim along which the loop goes on, if that is one; `*out_pace`: how far. NONE: several, or none. */
static uint32_t dim_of_loop(const uir_igraph *g, const uir_islice *slice, uint32_t symbol, uir_dim *out_pace) {
    uint32_t found = NONE;
    for (uint32_t d = 0; d < rank_of(g, slice); d++) {
        if (!uir_dim_mentions(g->dims, slice->starts[d], g->symbols.data[symbol].symbol)) continue;
        if (found != NONE) return NONE;
        found = d;
        *out_pace = pace_of(g, slice->starts[d], symbol);
    }
    return found;
}

/* Whether what the loops from `block` up to `around` go on by is never less than what those inside them touch: two
 * iterations then touch different elements. Loops that neither the slice nor its frame knows of touch the same ones, by
 * the same threads. */
static bool go_on(const uir_iorder *o, const uir_islice *slice, const uir_islice *frame, uint32_t block, uint32_t other,
                  uint32_t around) {
    const uir_igraph *g = o->igraph;
    uir_dim spans[UIR_IGRAPH_MAX_RANK], pace = UIR_DIM_NONE;
    if (slice_is_named(g, slice) || (frame && slice_is_named(g, frame))) return false;
    for (uint32_t d = 0; d < rank_of(g, slice); d++) spans[d] = span_of(g, slice, d);
    for (;; block = o->blocks.data[block].parent) {
        if (o->blocks.data[block].is_loop && uir_iorder_holds(o, block, other)) {
            uint32_t symbol = symbol_of(o, block);
            bool known = slice_mentions(g, slice, symbol) || (frame && slice_mentions(g, frame, symbol));
            uint32_t d = known ? dim_of_loop(g, slice, symbol, &pace) : NONE;
            if (known && (d == NONE || !is_at_least(g, pace, spans[d]))) return false;
            if (known) spans[d] = stretch(g, spans[d], pace, g->items.data[o->blocks.data[block].item].extent);
        }
        if (block == around) return true;
    }
}

/* ---- conflicts ---- */
/* Instances begin whole turns of the threads after each other. */
static bool turns_whole(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    int64_t bytes = uir_dtype_bits(p->dtype) / 8, span = uir_dim_multiple(g->dims, p->element_span);
    return p->instances < 2 ||
           (span % uir_ithreads_count(g) == 0 && span * bytes % g->machine->spaces[p->space].alignment == 0);
}

/* Row-major, or in registers, where the place alone decides. */
static bool is_plain(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    if (!turns_whole(g, pointer) || p->layout.swizzle.bits) return false;
    for (uint32_t d = 0; d < p->rank && !is_in_registers(g, pointer); d++)
        if (p->layout.mode_count[d] != 1 || !uir_dim_equal(p->layout.modes[d][0].stride, step_of(g, p, d)))
            return false;
    return true;
}

/* Whether buffers that share storage have one owner for each of its places. */
static bool have_places_alike(const uir_igraph *g, uint32_t a, uint32_t b) {
    return a == b || (uir_dtype_bits(g->pointers.data[a].dtype) == uir_dtype_bits(g->pointers.data[b].dtype) &&
                      is_plain(g, a) && is_plain(g, b));
}

static const uir_islice *frame_of(const uir_igraph *g, const uir_iinstruction *in) {
    uint32_t frame = in ? uir_ithreads_find_frame(g, in) : UIR_ITHREADS_RESULT;
    return frame == UIR_ITHREADS_RESULT ? NULL : &in->slices[frame];
}

/* Whether each thread touches those elements of the slice that go with its elements of the result. */
static bool goes_by_elements(const uir_iinstruction *in, uint32_t slice) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    bool sums = family == UIR_IOP_FAMILY_MMA || family == UIR_IOP_FAMILY_REDUCE;
    return slice != NONE && !goes_by_lines(in) && (slice == 0 || !sums);
}

/* Whether the uses, through one slice, are of one thread for each element: in one iteration. */
static bool go_together(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b) {
    const uir_igraph *g = o->igraph;
    const uir_iinstruction *x = instruction_of(o, a), *y = instruction_of(o, b);
    if (!x || !y || !goes_by_elements(x, a->slice) || !goes_by_elements(y, b->slice)) return false;
    if (x == y) return a->slice == b->slice && (a->slice == 0 || has_shape(g, &x->slices[a->slice], &x->slices[0]));
    const uir_islice *s = &x->slices[a->slice], *t = &y->slices[b->slice], *f = frame_of(g, x), *h = frame_of(g, y);
    if (!uir_islice_equal(s, t) || uir_ithreads_is_copied(g, x->slices[0].pointer) ||
        uir_ithreads_is_copied(g, y->slices[0].pointer))
        return false;
    if (!f || !h) return !f && !h && has_shape(g, s, &x->slices[0]) && has_shape(g, t, &y->slices[0]);
    return has_shape(g, s, f) && has_shape(g, t, h) && have_owners_alike(g, f, h);
}

/* Whether each thread touches those elements of a row whose place in it, modulo the threads, is its number. Two such
 * uses of rows, whichever they are, are of one thread for each element. */
static bool goes_by_columns(const uir_iorder *o, const uir_iorder_use *use) {
    const uir_igraph *g = o->igraph;
    const uir_iinstruction *in = instruction_of(o, use);
    if (!in || !goes_by_elements(in, use->slice) || uir_ithreads_is_copied(g, in->slices[0].pointer)) return false;
    const uir_islice *s = &in->slices[use->slice], *frame = frame_of(g, in), *along = frame ? frame : &in->slices[0];
    if (s->window || s->block || !s->rank || !has_shape(g, s, along)) return false;
    for (uint32_t d = 0; d + 1 < s->rank; d++)
        if (!is_one(g, s->counts[d])) return false;
    uir_dim start = s->starts[s->rank - 1], one = uir_dim_const(g->dims, 1);
    if (!frame) return differ_by_turns(g, start, uir_dim_const(g->dims, 0));
    return differ_by_turns(g, first_of(g, frame), start) &&
           (is_one(g, s->counts[s->rank - 1]) || differ_by_turns(g, step_along(g, frame, frame->rank - 1), one));
}

enum { MOST_GIVEN = 32 };

typedef struct indices {
    const uir_igraph *g;
    uint32_t symbols[MOST_GIVEN], count;
} indices;

static void find_indices(void *user, uir_symbol symbol) {
    indices *found = user;
    uint32_t index = uir_igraph_symbol_index(found->g, symbol);
    if (found->g->symbols.data[index].kind == UIR_ISYMBOL_PARALLEL && found->count < MOST_GIVEN / 2)
        found->symbols[found->count++] = index;
}

/* What holds where a step runs: there are indices of the axes that its slice mentions, and loops around it turn, by
 * their conditions. */
static uint32_t find_given(const uir_iorder *o, uint32_t step, const uir_islice *slice, uir_condition *out) {
    const uir_igraph *g = o->igraph;
    indices found = {.g = g};
    uint32_t count = 0;
    for (uint32_t d = 0; d < rank_of(g, slice); d++)
        uir_dim_visit_symbols(g->dims, slice->starts[d], find_indices, &found);
    for (; count < found.count; count++)
        out[count] = (uir_condition){UIR_RELATION_GE, g->symbols.data[found.symbols[count]].definition,
                                     uir_dim_const(g->dims, 1)};
    for (uint32_t block = o->steps.data[step].block; block != NONE; block = o->blocks.data[block].parent) {
        if (o->blocks.data[block].item == NONE) continue;
        const uir_iitem *item = &g->items.data[o->blocks.data[block].item];
        if (o->blocks.data[block].is_loop && !item->named_ends && count < MOST_GIVEN)
            out[count++] = (uir_condition){UIR_RELATION_GE, item->extent, uir_dim_const(g->dims, 1)};
        for (uint32_t i = 0; i < item->guard.count && count < MOST_GIVEN; i++)
            if (item->guard.atoms[i].kind == UIR_IATOM_RELATION) out[count++] = item->guard.atoms[i].condition;
    }
    return count;
}

/* A dim of a window where its axes begin, or end; NONE: unknown. */
static uir_dim at_corner(const uir_igraph *g, const uir_islice *slice, uir_dim start, bool last) {
    uir_dim zero = uir_dim_const(g->dims, 0);
    for (uint32_t a = 0; slice->window && a < slice->axis_count && start.id; a++) {
        uir_symbol axis = g->symbols.data[slice->axes[a].symbol].symbol;
        uir_dim end = uir_dim_sub(g->dims, slice->axes[a].extent, uir_dim_const(g->dims, 1));
        if (!uir_dim_mentions(g->dims, start, axis)) continue;
        if (!is_at_least(g, pace_of(g, start, slice->axes[a].symbol), zero)) return UIR_DIM_NONE;
        start = uir_dim_replace(g->dims, start, &(uir_dim_replacement){axis, last ? end : zero}, 1);
    }
    return start;
}

static uir_dim end_of(const uir_igraph *g, const uir_islice *slice, uint32_t dim) {
    if (!slice->window) return uir_dim_add(g->dims, slice->starts[dim], slice->counts[dim]);
    uir_dim last = at_corner(g, slice, slice->starts[dim], true);
    return last.id ? uir_dim_add(g->dims, last, uir_dim_const(g->dims, 1)) : last;
}

/* The least value of a start in all iterations of the loops from `block` to `around`; NONE: unknown. */
static uir_dim least_of(const uir_iorder *o, uir_dim start, uint32_t block, uint32_t around) {
    const uir_igraph *g = o->igraph;
    uir_dim zero = uir_dim_const(g->dims, 0);
    for (; around != NONE && start.id; block = o->blocks.data[block].parent) {
        uint32_t symbol = o->blocks.data[block].is_loop ? symbol_of(o, block) : NONE;
        if (symbol != NONE && uir_dim_mentions(g->dims, start, g->symbols.data[symbol].symbol)) {
            if (!is_at_least(g, pace_of(g, start, symbol), zero)) return UIR_DIM_NONE;
            start = uir_dim_replace(g->dims, start, &(uir_dim_replacement){g->symbols.data[symbol].symbol, zero}, 1);
        }
        if (block == around) break;
    }
    return start;
}

/* Whether along some dim all that `a` touches, wherever it runs, ends before what `b` touches in any of the
 * iterations. */
static bool ends_before(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b, uint32_t around) {
    const uir_igraph *g = o->igraph;
    const uir_islice *s = slice_of(o, a), *t = slice_of(o, b);
    uir_condition given[MOST_GIVEN];
    uint32_t count = find_given(o, a->step, s, given);
    for (uint32_t d = 0; d < rank_of(g, s); d++) {
        uir_dim least = least_of(o, at_corner(g, t, t->starts[d], false), o->steps.data[b->step].block, around),
                end = end_of(g, s, d);
        if (least.id && end.id && uir_dim_compare_given(g->dims, given, count, least, UIR_RELATION_GE, end) == UIR_TRUE)
            return true;
    }
    return false;
}

/* Whether two slices are apart along some dim. */
static bool are_slices_apart(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b, uint32_t around) {
    const uir_islice *s = slice_of(o, a), *t = slice_of(o, b);
    if (slice_is_named(o->igraph, s) || slice_is_named(o->igraph, t)) return false;
    return ends_before(o, a, b, around) || ends_before(o, b, a, around);
}

bool uir_ithreads_conflict(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b, uint32_t around) {
    const uir_igraph *g = o->igraph;
    if (a->pointer == b->pointer ? !a->write && !b->write
                                 : !b->write || !uir_igraph_share_place(g, a->pointer, b->pointer))
        return false;
    if (around == NONE && a->step == b->step) return false;
    if (a->own && b->own && have_places_alike(g, a->pointer, b->pointer)) return false;
    if (a->pointer != b->pointer) return true;
    if (goes_by_columns(o, a) && goes_by_columns(o, b)) return false;
    if (are_slices_apart(o, a, b, around)) return false;
    if (!go_together(o, a, b)) return true;
    const uir_islice *frame = frame_of(g, instruction_of(o, a));
    return around != NONE && !go_on(o, slice_of(o, a), frame, o->steps.data[a->step].block, b->step, around);
}

bool uir_ithreads_are_apart(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b, uint32_t around) {
    const uir_ipointer *p = &o->igraph->pointers.data[a->pointer];
    bool turns = around != NONE && a->pointer == b->pointer && p->instances > 1 && p->by_loop == symbol_of(o, around);
    for (uint32_t i = 0; i < o->syncs.count; i++) {
        const uir_iorder_sync *s = &o->syncs.data[i];
        if (!(s->is_barrier || s->is_unit) || s->is_off) continue;
        bool behind = s->at > 2 * a->step + 1 && uir_iorder_holds(o, s->block, a->step),
             before = s->at < 2 * b->step + 1 && uir_iorder_holds(o, s->block, b->step);
        if (around == NONE) {
            if ((behind && s->at < 2 * b->step + 1) || (before && s->at > 2 * a->step + 1)) return true;
        } else if (uir_iorder_is_inside(o, s->block, around) && (behind || before || (turns && s->block == around))) {
            return true;
        }
    }
    return false;
}
