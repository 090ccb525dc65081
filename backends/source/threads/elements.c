#include "backends/source/threads/elements.h"

#include "ir/kernel/igraph_threads.h"

#include <string.h>

#define NONE UINT32_MAX

/* ---- registers ---- */
bool uir_threads_is_register(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    return p->role == UIR_IPOINTER_LOCAL && g->machine->spaces[p->space].roles & UIR_SPACE_REGISTERS;
}

/* A number: each thread has it, and computes it for itself. */
bool uir_threads_is_number(const uir_igraph *g, uint32_t pointer) {
    return uir_threads_is_register(g, pointer) && uir_ithreads_is_copied(g, pointer);
}

/* Elements of a register buffer that one thread has: every T-th of its storage. */
int64_t uir_threads_count_places(const threads_emitter *t, uint32_t pointer) {
    const uir_igraph *g = t->e.c.igraph;
    int64_t span;
    if (uir_threads_is_number(g, pointer)) return 1;
    return uir_dim_is_const(g->dims, g->pointers.data[pointer].element_span, &span)
               ? (span + t->threads - 1) / t->threads
               : 0;
}

/* ---- elements ---- */
elements uir_threads_find_elements(threads_emitter *t, const uir_iinstruction *in) {
    const uir_igraph *g = t->e.c.igraph;
    const uir_islice *result = &in->slices[0];
    uint32_t frame = uir_ithreads_find_frame(g, in);
    elements x = {.sharing = IN_TURN, .shape = result->counts, .rank = result->rank};
    if (uir_threads_is_number(g, result->pointer)) {
        x.sharing = EACH;
    } else if (frame != UIR_ITHREADS_RESULT) {
        bool registers = uir_threads_is_register(g, in->slices[frame].pointer);
        x.frame = &in->slices[frame];
        x.sharing = in->unguarded >> frame & 1 ? registers ? BY_PLACE : BY_OWNER : BY_SEARCH;
    }
    return x;
}

/* The result's dim along which a dim of the frame's pointer goes; NONE: the slice has one index of it. */
static uint32_t find_result_dim(const elements *x, const uint32_t *dims, uint32_t d) {
    int64_t along = dims[d] == NONE ? -1 : (int64_t)dims[d] + x->rank - x->frame->rank;
    return along < 0 ? NONE : (uint32_t)along;
}

/* Where along a dim of the pointer the frame begins. */
static const char *find_start(threads_emitter *t, const uir_islice *frame, uint32_t dim) {
    for (uint32_t a = 0; a < frame->axis_count; a++) t->e.c.symbols[frame->axes[a].symbol] = "0";
    return uir_c_parenthesised(&t->e.c, uir_c_dim(&t->e.c, frame->starts[dim]));
}

static const char *also(threads_emitter *t, const char *condition, const char *more) {
    return condition ? uir_c_format(&t->e.c, "%s && %s", condition, more) : more;
}

/* One mode of a register buffer's layout: `weight` indices of its dim from one digit to the next. */
typedef struct digit {
    int64_t size, stride, weight;
    uint32_t dim;
} digit;

enum { MOST_DIGITS = UIR_LAYOUT_MAX_RANK * UIR_LAYOUT_MAX_MODES };

/* The modes of more than one index, by growing strides. */
static uint32_t list_digits(threads_emitter *t, const uir_ipointer *p, digit out[MOST_DIGITS]) {
    const uir_igraph *g = t->e.c.igraph;
    uint32_t count = 0;
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t left = 1, weight = 1;
        (void)uir_dim_is_const(g->dims, p->extents[d], &left);
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
            digit x = {left, 1, weight, d};
            if (m + 1u < p->layout.mode_count[d]) (void)uir_dim_is_const(g->dims, p->layout.modes[d][m].size, &x.size);
            (void)uir_dim_is_const(g->dims, p->layout.modes[d][m].stride, &x.stride);
            weight *= x.size;
            left = (left + x.size - 1) / x.size;
            if (x.size < 2) continue;
            uint32_t at = count++;
            for (; at && out[at - 1].stride > x.stride; at--) out[at] = out[at - 1];
            out[at] = x;
        }
    }
    return count;
}

/* A digit of the place and the thread. That of the greatest stride takes what is left. */
static const char *find_digit(threads_emitter *t, const digit *x, bool is_last) {
    uir_c_writer *c = &t->e.c;
    int64_t threads = t->threads, stride = x->stride;
    const char *number = "place";
    if (stride % threads == 0)
        stride /= threads;
    else if (threads % (stride * x->size) == 0)
        number = t->dialect->thread, is_last = threads == stride * x->size;
    else
        number = uir_c_format(c, "(place * %u + %s)", t->threads, t->dialect->thread);
    if (stride > 1) number = uir_c_format(c, "%s / %lld", number, (long long)stride);
    return is_last ? number : uir_c_format(c, "%s %% %lld", number, (long long)x->size);
}

/* Declares the index along each dim of a register buffer that the thread has at `place`, as i0, i1 ...; `most`: what
 * they are below. Returns the condition that the place has an element, NULL: all have. */
static const char *open_places(threads_emitter *t, const uir_ipointer *p, int64_t places, int64_t most[INDEX_MAX]) {
    uir_c_writer *c = &t->e.c;
    digit digits[MOST_DIGITS];
    uint32_t count = list_digits(t, p, digits);
    const char *sums[INDEX_MAX], *number = "0", *condition = NULL;
    int64_t next = 1;
    bool compact = true;
    for (uint32_t d = 0; d < p->rank; d++) sums[d] = "0", most[d] = 1;
    uir_c_open(c, "UIR_UNROLL for (int place = 0; place < %lld; place++)", (long long)places);
    for (uint32_t k = 0; k < count; k++) {
        const digit *x = &digits[k];
        bool is_last = k + 1 == count;
        const char *name = uir_c_format(c, "d%u", k);
        int64_t below = is_last ? (places * t->threads + x->stride - 1) / x->stride : x->size;
        compact = compact && x->stride == next;
        next = x->stride * x->size;
        uir_c_line(c, "const int %s = %s;", name, find_digit(t, x, is_last));
        sums[x->dim] =
            uir_c_sum(c, sums[x->dim], uir_c_product(c, name, uir_c_format(c, "%lld", (long long)x->weight)));
        most[x->dim] += (below - 1) * x->weight;
        number = uir_c_sum(c, number, uir_c_product(c, name, uir_c_format(c, "%lld", (long long)x->stride)));
    }
    for (uint32_t d = 0; d < p->rank; d++) uir_c_line(c, "const int i%u = %s;", d, sums[d]);
    /* Padding within the layout: other places have these indices. */
    if (!compact) condition = uir_c_format(c, "%s == place * %u + %s", number, t->threads, t->dialect->thread);
    if (!count) condition = uir_c_format(c, "place + %s == 0", t->dialect->thread);
    return condition;
}

/* The frame's elements at the thread's places of a register buffer, which are constant once the loop is unrolled. */
static void open_registers(threads_emitter *t, elements *x) {
    uir_c_writer *c = &t->e.c;
    const uir_igraph *g = c->igraph;
    const uir_ipointer *p = &g->pointers.data[x->frame->pointer];
    uint32_t dims[UIR_IGRAPH_MAX_RANK];
    int64_t most[INDEX_MAX], count;
    (void)uir_ithreads_find_dims(g, x->frame, dims);
    const char *inside = open_places(t, p, uir_threads_count_places(t, x->frame->pointer), most);
    x->opened++;
    for (uint32_t d = 0; d < p->rank; d++) {
        uint32_t r = find_result_dim(x, dims, d);
        const char *start = find_start(t, x->frame, d), *index = uir_c_format(c, "i%u", d);
        bool at_begin = strcmp(start, "0") == 0;
        if (r == NONE || uir_c_dim_is(c, x->shape[r], 1)) {
            if (!at_begin || most[d] > 1) inside = also(t, inside, uir_c_format(c, "%s == %s", index, start));
            continue;
        }
        if (!at_begin) {
            uir_c_line(c, "const int64_t k%u = %s - %s;", d, index, start);
            index = uir_c_format(c, "k%u", d);
            inside = also(t, inside, uir_c_format(c, "%s >= 0", index));
        }
        x->loops[r] = index;
        if (!at_begin || !uir_dim_is_const(g->dims, x->shape[r], &count) || count < most[d])
            inside =
                also(t, inside, uir_c_format(c, "%s < %s", index, uir_c_parenthesised(c, uir_c_dim(c, x->shape[r]))));
    }
    if (!inside) return;
    uir_c_open(c, "if (%s)", inside);
    x->opened++;
}

/* Opens a loop over a thread's numbers below a limit. All threads have as many turns, and a condition each: compilers
 * that execute threads as a loop vectorise this, and PoCL's (3.1) computes other loops wrongly. */
void uir_threads_open_loop(threads_emitter *t, const char *name, const char *limit) {
    uir_c_open(&t->e.c, "for (int64_t %s_first = 0; %s_first < %s; %s_first += %u)", name, name, limit, name,
               t->threads);
    uir_c_line(&t->e.c, "const int64_t %s = %s_first + %s;", name, name, t->dialect->thread);
    uir_c_open(&t->e.c, "if (%s < %s)", name, limit);
}

/* The digits of an element's number, `rest`, over a shape. */
static void open_digits(threads_emitter *t, elements *x, const char *rest) {
    uir_c_writer *c = &t->e.c;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (uir_c_dim_is(c, x->shape[d], 1)) continue;
        const char *extent = uir_c_dim(c, x->shape[d]);
        bool first = true;
        for (uint32_t i = 0; i < d; i++) first &= uir_c_dim_is(c, x->shape[i], 1);
        x->loops[d] = uir_c_format(c, "k%u", d);
        uir_c_line(c, "const int64_t k%u = %s;", d, first ? rest : uir_c_format(c, "%s %% (%s)", rest, extent));
        if (!first) rest = uir_c_format(c, "%s / (%s)", rest, extent);
    }
}

static const char *count_all(threads_emitter *t, const elements *x) {
    const char *total = "1";
    for (uint32_t d = 0; d < x->rank; d++)
        total = uir_c_product(&t->e.c, total, uir_c_format(&t->e.c, "uir_max(0, %s)", uir_c_dim(&t->e.c, x->shape[d])));
    return total;
}

static void open_turns(threads_emitter *t, elements *x) {
    uir_c_line(&t->e.c, "const int64_t total = %s;", count_all(t, x));
    uir_threads_open_loop(t, "e", "total");
    x->opened += 2;
    open_digits(t, x, "e");
}

/* Every T-th element of a row-major buffer, from the box's first to its last; those between that are not the box's are
 * left out. */
static void open_owned(threads_emitter *t, elements *x) {
    uir_c_writer *c = &t->e.c;
    const uir_igraph *g = c->igraph;
    const uir_ipointer *p = &g->pointers.data[x->frame->pointer];
    uir_dim step[INDEX_MAX], first = uir_dim_const(g->dims, 0), reach = first, before = UIR_DIM_NONE;
    const char *inside = NULL, *rest = "e";
    for (uint32_t d = p->rank; d-- > 0;)
        step[d] = d + 1 == p->rank ? uir_dim_const(g->dims, 1) : uir_dim_mul(g->dims, step[d + 1], p->extents[d + 1]);
    for (uint32_t d = 0; d < p->rank; d++) {
        uir_dim more = uir_dim_sub(g->dims, x->frame->counts[d], uir_dim_const(g->dims, 1));
        first = uir_dim_add(g->dims, first, uir_dim_mul(g->dims, x->frame->starts[d], step[d]));
        reach = uir_dim_add(g->dims, reach, uir_dim_mul(g->dims, more, step[d]));
    }
    bool in_turn = first.id && uir_dim_multiple(g->dims, first) % t->threads == 0;
    uir_c_line(c, "const int64_t reach = %s;", uir_c_dim(c, reach));
    const char *own = t->dialect->thread;
    if (!in_turn)
        own = uir_c_format(c, "(%s + %u - (%s) %% %u) %% %u", own, t->threads, uir_c_dim(c, first), t->threads,
                           t->threads);
    uir_c_open(c, "for (int64_t e_first = 0; e_first <= reach; e_first += %u)", t->threads);
    uir_c_line(c, "const int64_t e = e_first + %s;", own);
    uir_c_open(c, "if (e <= reach)");
    x->opened += 2;
    for (uint32_t d = 0; d < p->rank; d++) {
        const uir_dim count = x->frame->counts[d];
        int64_t along = (int64_t)d + x->rank - x->frame->rank;
        if (uir_c_dim_is(c, count, 1)) continue;
        const char *index = uir_c_format(c, "k%u", d), *by = uir_c_dim(c, step[d]);
        bool one = uir_c_dim_is(c, step[d], 1);
        uir_c_line(c, "const int64_t %s = %s;", index, one ? rest : uir_c_format(c, "%s / (%s)", rest, by));
        if (before.id && !uir_dim_equal(uir_dim_mul(g->dims, count, step[d]), before))
            inside = also(t, inside, uir_c_format(c, "%s < %s", index, uir_c_parenthesised(c, uir_c_dim(c, count))));
        rest = one ? "0" : uir_c_format(c, "%s %% (%s)", rest, by);
        before = step[d];
        if (along >= 0) x->loops[along] = index;
    }
    if (before.id && strcmp(rest, "0") != 0) inside = also(t, inside, uir_c_format(c, "%s == 0", rest));
    if (!inside) return;
    uir_c_open(c, "if (%s)", inside);
    x->opened++;
}

/* The number of the frame's element at the loops' index, by which it has its owner. */
static const char *find_number(threads_emitter *t, const elements *x) {
    emitter *e = &t->e;
    const uir_igraph *g = e->c.igraph;
    const uir_ipointer *p = &g->pointers.data[x->frame->pointer];
    const char *index[INDEX_MAX], *coordinates[INDEX_MAX], *number = "0";
    access a;
    uir_access_init(e, x->frame, true, &a);
    uir_access_align(e, x->frame, x->shape, x->rank, x->loops, index);
    uir_access_coordinates(e, &a, index, coordinates);
    if (uir_threads_is_register(g, x->frame->pointer)) return uir_access_offset(e, &a, coordinates);
    for (uint32_t d = 0; d < p->rank; d++)
        number =
            uir_c_sum(&e->c, uir_c_product(&e->c, number, uir_c_parenthesised(&e->c, uir_c_dim(&e->c, p->extents[d]))),
                      coordinates[d]);
    return number;
}

static void open_search(threads_emitter *t, elements *x) {
    uir_c_writer *c = &t->e.c;
    uir_c_line(c, "const int64_t total = %s;", count_all(t, x));
    uir_c_open(c, "for (int64_t e = 0; e < total; e++)");
    open_digits(t, x, "e");
    uir_c_line(c, "const int64_t number = (%s) %% %u;", find_number(t, x), t->threads);
    uir_c_open(c, "if ((number < 0 ? number + %u : number) == %s)", t->threads, t->dialect->thread);
    x->opened += 2;
}

/* Opens a loop over the thread's elements. */
void uir_threads_open_elements(threads_emitter *t, elements *x) {
    for (uint32_t d = 0; d < x->rank; d++) x->loops[d] = "0";
    uir_c_open(&t->e.c, "%s", "");
    x->opened = 1;
    switch (x->sharing) {
    case EACH:
        return;
    case IN_TURN:
        open_turns(t, x);
        return;
    case BY_PLACE:
        open_registers(t, x);
        return;
    case BY_OWNER:
        open_owned(t, x);
        return;
    case BY_SEARCH:
        open_search(t, x);
        return;
    }
}

void uir_threads_close_elements(threads_emitter *t, elements *x) {
    for (; x->opened; x->opened--) uir_c_close(&t->e.c);
}

/* Whether both slices have their elements at the same places of a thread's registers. */
static bool have_places_alike(const uir_igraph *g, const uir_islice *a, const uir_islice *b) {
    const uir_ipointer *p = &g->pointers.data[a->pointer], *q = &g->pointers.data[b->pointer];
    if (uir_islice_equal(a, b)) return true;
    if (a->window || b->window || p->rank != q->rank || !uir_layout_is_same(&p->layout, &q->layout, p->rank))
        return false;
    for (uint32_t d = 0; d < p->rank; d++)
        if (!uir_dim_equal(a->starts[d], b->starts[d])) return false;
    return true;
}

/* The element of a slice, in registers or memory, at an index per dim of the slice; `*out_inside`: NULL, or the
 * condition that there is one. */
static const char *find_element(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                                const elements *x, const char **out_inside) {
    emitter *e = &t->e;
    const uir_islice *slice = &in->slices[k];
    const char *coordinates[INDEX_MAX], *name = e->pointers[slice->pointer], *at;
    access a;
    *out_inside = NULL;
    if (uir_threads_is_number(e->c.igraph, slice->pointer)) return uir_c_format(&e->c, "%s[0]", name);
    bool registers = uir_threads_is_register(e->c.igraph, slice->pointer);
    uir_access_init(e, slice, in->unguarded >> k & 1, &a);
    uir_access_coordinates(e, &a, index, coordinates);
    *out_inside = uir_access_inside(e, &a, coordinates, UINT32_MAX);
    if (registers && x && x->sharing == BY_PLACE && have_places_alike(e->c.igraph, slice, x->frame))
        return uir_c_format(&e->c, "%s[place]", name);
    at = uir_access_offset(e, &a, coordinates);
    return registers ? uir_c_format(&e->c, "%s[(%s) / %u]", name, at, t->threads)
                     : uir_c_format(&e->c, "%s[%s]", a.base, at);
}

const char *uir_threads_read(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                             const elements *x) {
    emitter *e = &t->e;
    const uir_islice *slice = &in->slices[k];
    const char *inside, *element = find_element(t, in, k, index, x, &inside);
    uir_dtype dtype = e->c.igraph->pointers.data[slice->pointer].dtype;
    if (!inside) return element;
    return uir_c_format(&e->c, "(%s ? %s : %s)", inside, element,
                        uir_c_literal(e, dtype, slice->has_fill ? slice->fill : 0));
}

void uir_threads_write(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                       const elements *x, const char *value) {
    const char *inside, *element = find_element(t, in, k, index, x, &inside);
    if (inside)
        uir_c_line(&t->e.c, "if (%s) %s = %s;", inside, element, value);
    else
        uir_c_line(&t->e.c, "%s = %s;", element, value);
}

/* The element of a slice at the loops' index of the shape. */
const char *uir_threads_read_aligned(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const elements *x) {
    const char *index[INDEX_MAX];
    uir_access_align(&t->e, &in->slices[k], x->shape, x->rank, x->loops, index);
    return uir_threads_read(t, in, k, index, x);
}

void uir_threads_write_aligned(threads_emitter *t, const uir_iinstruction *in, const elements *x, const char *value) {
    const char *index[INDEX_MAX];
    uir_access_align(&t->e, &in->slices[0], x->shape, x->rank, x->loops, index);
    uir_threads_write(t, in, 0, index, x, value);
}
