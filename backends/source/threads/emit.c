#include "backends/source/threads/emit.h"

#include "ir/kernel/igraph_threads.h"

#include <string.h>

#define NONE UINT32_MAX

typedef struct threads_emitter {
    emitter e; /* first: functions of accesses take it */
    const uir_threads_dialect *dialect;
    uint32_t threads;
    uir_status status; /* UNSUPPORTED once an instruction has no text */
} threads_emitter;

/* ---- registers ---- */
static bool is_register(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    return p->role == UIR_IPOINTER_LOCAL && g->machine->spaces[p->space].roles & UIR_SPACE_REGISTERS;
}

/* A number: each thread has it, and computes it for itself. */
static bool is_number(const uir_igraph *g, uint32_t pointer) {
    return is_register(g, pointer) && uir_ithreads_is_copied(g, pointer);
}

/* Elements of a register buffer that one thread has: every T-th of its storage. */
static int64_t count_places(const threads_emitter *t, uint32_t pointer) {
    const uir_igraph *g = t->e.c.igraph;
    int64_t span;
    if (is_number(g, pointer)) return 1;
    return uir_dim_is_const(g->dims, g->pointers.data[pointer].element_span, &span)
               ? (span + t->threads - 1) / t->threads
               : 0;
}

/* ---- elements ---- */
/* How the threads share the elements of a result (docs/igraph.md, "Threads"). */
typedef enum sharing {
    EACH,     /* every thread computes the one element */
    IN_TURN,  /* element e in row-major order is thread e mod T's */
    BY_PLACE, /* as the elements of a slice in registers: a thread looks at all its places of the buffer */
    BY_OWNER, /* as the elements of a box in shared memory: every T-th of the buffer */
    BY_SEARCH /* as the elements of a slice that is partly outside: a thread looks at all, and takes its own */
} sharing;

typedef struct elements {
    sharing sharing;
    const uir_islice *frame; /* BY_PLACE, BY_OWNER, BY_SEARCH: whose owners compute the elements */
    const uir_dim *shape;
    uint32_t rank;
    const char *loops[INDEX_MAX + 1]; /* the element's index per dim */
    uint32_t opened;
} elements;

static elements find_elements(threads_emitter *t, const uir_iinstruction *in) {
    const uir_igraph *g = t->e.c.igraph;
    const uir_islice *result = &in->slices[0];
    uint32_t frame = uir_ithreads_find_frame(g, in);
    elements x = {.sharing = IN_TURN, .shape = result->counts, .rank = result->rank};
    if (is_number(g, result->pointer)) {
        x.sharing = EACH;
    } else if (frame != UIR_ITHREADS_RESULT) {
        bool registers = is_register(g, in->slices[frame].pointer);
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
    const char *inside = open_places(t, p, count_places(t, x->frame->pointer), most);
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
static void open_shared_loop(threads_emitter *t, const char *name, const char *limit) {
    uir_c_open(&t->e.c, "for (int64_t %s_first = 0; %s_first < %s; %s_first += %u)", name, name, limit, name,
               t->threads);
    uir_c_line(&t->e.c, "const int64_t %s = %s_first + %s;", name, name, t->dialect->thread);
    uir_c_open(&t->e.c, "if (%s < %s)", name, limit);
}

/* A line a thread; of a number, which each has, all. */
static void open_lines(threads_emitter *t, bool each) {
    if (!each) {
        open_shared_loop(t, "line", "lines");
        return;
    }
    uir_c_open(&t->e.c, "for (int64_t line = 0; line < lines; line++)");
    uir_c_open(&t->e.c, "%s", "");
}

static void close_lines(threads_emitter *t) {
    uir_c_close(&t->e.c);
    uir_c_close(&t->e.c);
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
    open_shared_loop(t, "e", "total");
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
    if (is_register(g, x->frame->pointer)) return uir_access_offset(e, &a, coordinates);
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
static void open_elements(threads_emitter *t, elements *x) {
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

static void close_elements(threads_emitter *t, elements *x) {
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
    if (is_number(e->c.igraph, slice->pointer)) return uir_c_format(&e->c, "%s[0]", name);
    bool registers = is_register(e->c.igraph, slice->pointer);
    uir_access_init(e, slice, in->unguarded >> k & 1, &a);
    uir_access_coordinates(e, &a, index, coordinates);
    *out_inside = uir_access_inside(e, &a, coordinates, UINT32_MAX);
    if (registers && x && x->sharing == BY_PLACE && have_places_alike(e->c.igraph, slice, x->frame))
        return uir_c_format(&e->c, "%s[place]", name);
    at = uir_access_offset(e, &a, coordinates);
    return registers ? uir_c_format(&e->c, "%s[(%s) / %u]", name, at, t->threads)
                     : uir_c_format(&e->c, "%s[%s]", a.base, at);
}

static const char *read_element(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                                const elements *x) {
    emitter *e = &t->e;
    const uir_islice *slice = &in->slices[k];
    const char *inside, *element = find_element(t, in, k, index, x, &inside);
    uir_dtype dtype = e->c.igraph->pointers.data[slice->pointer].dtype;
    if (!inside) return element;
    return uir_c_format(&e->c, "(%s ? %s : %s)", inside, element,
                        uir_c_literal(e, dtype, slice->has_fill ? slice->fill : 0));
}

static void write_element(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                          const elements *x, const char *value) {
    const char *inside, *element = find_element(t, in, k, index, x, &inside);
    if (inside)
        uir_c_line(&t->e.c, "if (%s) %s = %s;", inside, element, value);
    else
        uir_c_line(&t->e.c, "%s = %s;", element, value);
}

/* The element of a slice at the loops' index of the shape. */
static const char *read_aligned(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const elements *x) {
    const char *index[INDEX_MAX];
    uir_access_align(&t->e, &in->slices[k], x->shape, x->rank, x->loops, index);
    return read_element(t, in, k, index, x);
}

static void write_aligned(threads_emitter *t, const uir_iinstruction *in, const elements *x, const char *value) {
    const char *index[INDEX_MAX];
    uir_access_align(&t->e, &in->slices[0], x->shape, x->rank, x->loops, index);
    write_element(t, in, 0, index, x, value);
}

/* ---- elementwise instructions and runs ---- */
typedef struct known {
    const uir_islice *slice;
    const char *name;
} known;

static const char *find_known(const known *values, uint32_t count, const uir_islice *slice) {
    for (uint32_t i = count; i-- > 0;)
        if (values[i].slice == slice || uir_islice_equal(values[i].slice, slice)) return values[i].name;
    return NULL;
}

static uir_dtype result_dtype(const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    return family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL : family == UIR_IOP_FAMILY_CAST ? in->dtype_b : in->dtype;
}

static const char *load(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const elements *x) {
    emitter *e = &t->e;
    uir_dtype dtype = e->c.igraph->pointers.data[in->slices[k].pointer].dtype;
    const char *read = read_aligned(t, in, k, x);
    return dtype == UIR_DTYPE_BOOL ? uir_c_format(&e->c, "v_set_boolean(%s)", read) : read;
}

static const char *compute(threads_emitter *t, const uir_iinstruction *in, const elements *x, known *values,
                           uint32_t *count) {
    emitter *e = &t->e;
    const char *operands[3] = {"", "", ""};
    uint32_t slice = 1;
    for (uint32_t k = 0; k < uir_iop_get_row(in->code)->operands && k < 3; k++) {
        if (in->immediate_mask >> k & 1) {
            uir_dtype dtype = uir_iop_operand_dtype(in->code, in->dtype, k);
            operands[k] =
                uir_c_format(&e->c, "v_set_%s(%s)", uir_c_type(dtype), uir_c_literal(e, dtype, in->immediates[k]));
            continue;
        }
        operands[k] = find_known(values, *count, &in->slices[slice]);
        if (!operands[k]) operands[k] = load(t, in, slice, x);
        slice++;
    }
    const char *name = uir_c_format(&e->c, "t%u", e->next++);
    uir_c_line(&e->c, "const v_%s %s = %s;", uir_c_type(result_dtype(in)), name,
               uir_emit_compute(e, in, operands, x->rank > 1 ? x->loops[x->rank - 2] : "0",
                                x->rank ? x->loops[x->rank - 1] : "0"));
    values[(*count)++] = (known){&in->slices[0], name};
    return name;
}

static void store(threads_emitter *t, const uir_iinstruction *in, const elements *x, const char *name) {
    uir_dtype dtype = result_dtype(in);
    const char *value = dtype == UIR_DTYPE_BOOL ? uir_c_format(&t->e.c, "(boolean)(%s != 0)", name) : name;
    write_aligned(t, in, x, value);
}

/* Instructions of one shape and sharing; what no one reads later stays in variables. */
static void emit_together(threads_emitter *t, const uir_iinstruction *const *members, uint32_t count,
                          const uint32_t *dead, uint32_t dead_count) {
    elements x = find_elements(t, members[0]);
    uint32_t known_count = 0;
    known *values = uir_arena_allocate_array(&t->e.c.arena, count + 1, sizeof *values);
    if (!values) {
        t->e.c.failed = true;
        return;
    }
    open_elements(t, &x);
    for (uint32_t i = 0; i < count; i++) {
        const uir_iinstruction *in = members[i];
        bool is_dead = false;
        for (uint32_t d = 0; d < dead_count; d++) is_dead |= dead[d] == in->slices[0].pointer;
        const char *name = compute(t, in, &x, values, &known_count);
        if (!is_dead) store(t, in, &x, name);
    }
    close_elements(t, &x);
}

/* ---- lines: reductions and scans ---- */
typedef struct lines {
    uint32_t rank, axis;
    const char *loops[INDEX_MAX + 1]; /* per dim of the operand */
    const char *line[INDEX_MAX];      /* per dim of the result */
    const char *count;                /* of lines */
    const char *length;
} lines;

static void begin_lines(threads_emitter *t, const uir_islice *operand, uir_iaxis axis, lines *out) {
    uir_c_writer *c = &t->e.c;
    *out = (lines){.rank = operand->rank, .count = "1"};
    out->axis = axis == UIR_IAXIS_COL ? operand->rank - 2 : operand->rank - 1;
    for (uint32_t d = 0; d < operand->rank; d++)
        if (d != out->axis)
            out->count =
                uir_c_product(c, out->count, uir_c_format(c, "uir_max(0, %s)", uir_c_dim(c, operand->counts[d])));
    out->length = uir_c_dim(c, operand->counts[out->axis]);
    uir_c_line(c, "const int64_t lines = %s, length = %s;", out->count, out->length);
}

/* The digits of a line's number over the operand's other dims, and over the result's. */
static void place_line(threads_emitter *t, const uir_islice *operand, const uir_islice *result, lines *l) {
    uir_c_writer *c = &t->e.c;
    const char *rest = "line";
    for (uint32_t d = operand->rank; d-- > 0;) {
        l->loops[d] = "i";
        if (d == l->axis) continue;
        const char *count = uir_c_dim(c, operand->counts[d]);
        l->loops[d] = uir_c_dim_is(c, operand->counts[d], 1) ? "0" : uir_c_format(c, "((%s) %% (%s))", rest, count);
        if (!uir_c_dim_is(c, operand->counts[d], 1)) rest = uir_c_format(c, "(%s) / (%s)", rest, count);
    }
    rest = "line";
    for (uint32_t d = result->rank; d-- > 0;) {
        const char *count = uir_c_dim(c, result->counts[d]);
        l->line[d] = uir_c_dim_is(c, result->counts[d], 1) ? "0" : uir_c_format(c, "((%s) %% (%s))", rest, count);
        if (!uir_c_dim_is(c, result->counts[d], 1)) rest = uir_c_format(c, "(%s) / (%s)", rest, count);
    }
}

/* The digits of the line that goes with an element of the result. */
static void place_element(threads_emitter *t, const uir_islice *operand, const elements *x, lines *l) {
    uir_c_writer *c = &t->e.c;
    const char *line = "0";
    if (x->rank == operand->rank && uir_c_dim_is(c, x->shape[l->axis], 1)) {
        for (uint32_t d = 0; d < operand->rank; d++) l->loops[d] = d == l->axis ? "i" : x->loops[d];
        return;
    }
    for (uint32_t d = 0; d < x->rank; d++)
        line = uir_c_sum(c, uir_c_product(c, line, uir_c_parenthesised(c, uir_c_dim(c, x->shape[d]))), x->loops[d]);
    uir_c_line(c, "const int64_t line = %s;", line);
    place_line(t, operand, operand, l);
}

/* An element of the result a thread: its line in order. */
static void emit_columns(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code);
    elements x = find_elements(t, in);
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    open_elements(t, &x);
    place_element(t, &in->slices[1], &x, &l);
    uir_c_line(c, "%s sum = %s;", type,
               in->accumulate ? read_aligned(t, in, 0, &x) : uir_c_identity(&t->e, in->code, in->dtype));
    uir_c_line(c, "for (int64_t i = 0; i < length; i++) sum = s_%s_%s(sum, %s);", operation, type,
               read_element(t, in, 1, l.loops, NULL));
    write_aligned(t, in, &x, "sum");
    close_elements(t, &x);
}

static void emit_scan(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *index[INDEX_MAX];
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    bool each = is_number(c->igraph, in->slices[2].pointer);
    open_lines(t, each);
    place_line(t, &in->slices[1], &in->slices[2], &l);
    uir_c_line(c, "%s sum = %s;", type, read_element(t, in, 2, l.line, NULL));
    uir_c_open(c, "for (int64_t i = 0; i < length; i++)");
    uir_c_line(c, "const %s next = s_%s_%s(sum, %s);", type, operation, type, read_element(t, in, 1, l.loops, NULL));
    uir_access_align(&t->e, &in->slices[0], in->slices[1].counts, in->slices[1].rank, l.loops, index);
    write_element(t, in, 0, index, NULL, in->exclusive ? "sum" : "next");
    uir_c_line(c, "sum = next;");
    uir_c_close(c);
    write_element(t, in, 2, l.line, NULL, "sum");
    close_lines(t);
}

/* 32 threads a row, by the lanes of iops.def; each has its partial result in shared memory for the tree. */
static void emit_rows(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *thread = t->dialect->thread;
    const char *shared = t->dialect->shared;
    bool each = is_number(c->igraph, in->slices[0].pointer);
    uint32_t rows = t->threads / 32;
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    uir_c_line(c, "%s%s *const lanes = (%s%s *)uir_lanes;", shared, type, shared, type);
    uir_c_open(c, "for (int64_t first = 0; first < lines; first += %u)", rows);
    uir_c_line(c, "const int64_t line = first + %s / 32, lane = %s %% 32;", thread, thread);
    place_line(t, &in->slices[1], &in->slices[0], &l);
    uir_c_line(c, "%s partial = %s;", type, uir_c_identity(&t->e, in->code, in->dtype));
    uir_c_open(c, "for (int64_t i_first = 0; i_first < length; i_first += 32)");
    uir_c_line(c, "const int64_t i = i_first + lane;");
    uir_c_line(c, "if (line < lines && i < length) partial = s_%s_%s(partial, %s);", operation, type,
               read_element(t, in, 1, l.loops, NULL));
    uir_c_close(c);
    uir_c_line(c, "lanes[%s] = partial;", thread);
    uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_open(c, "for (int s = 16; s > 0; s /= 2)");
    uir_c_line(c, "if (lane < s) lanes[%s] = s_%s_%s(lanes[%s], lanes[%s + s]);", thread, operation, type, thread,
               thread);
    uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_close(c);
    const char *total = each ? "lanes[0]" : uir_c_format(c, "lanes[%s]", thread);
    if (in->accumulate)
        total = uir_c_format(c, "s_%s_%s(%s, %s)", operation, type, read_element(t, in, 0, l.line, NULL), total);
    if (!each) uir_c_open(c, "if (lane == 0 && line < lines)");
    write_element(t, in, 0, l.line, NULL, total);
    if (!each) uir_c_close(c);
    if (each) uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_close(c);
}

/* ---- products ---- */
/* Elements of the sums, each by its thread, along k in order. Sums in registers are all added to at each k, so that a
 * thread reads a factor's element once. */
static void emit_product(threads_emitter *t, const uir_iinstruction *in) {
    emitter *e = &t->e;
    uir_c_writer *c = &e->c;
    const uir_islice *a = &in->slices[1];
    const char *type = uir_c_type(in->dtype), *index[3][INDEX_MAX];
    elements x = find_elements(t, in);
    bool in_registers = x.sharing == BY_PLACE;
    uir_c_open(c, "%s", "");
    uir_c_line(c, "const int64_t depth = %s;", uir_c_dim(c, a->counts[a->rank - 1]));
    if (in_registers) uir_c_open(c, "for (int64_t k = 0; k < depth; k++)");
    open_elements(t, &x);
    for (uint32_t s = 1; s < 3; s++) {
        const uir_islice *slice = &in->slices[s];
        for (uint32_t d = 0; d < slice->rank; d++) index[s][d] = "0";
        if (s == 1) index[s][slice->rank - 2] = x.rank > 1 ? x.loops[x.rank - 2] : "0";
        index[s][slice->rank - 1] = s == 1 ? "k" : x.loops[x.rank - 1];
        if (s == 2) index[s][slice->rank - 2] = "k";
    }
    const char *sum = in_registers ? read_aligned(t, in, 0, &x) : "sum";
    const char *left = read_element(t, in, 1, index[1], NULL), *right = read_element(t, in, 2, index[2], NULL);
    bool real = uir_dtype_is_float(in->dtype);
    const char *next =
        real ? uir_c_format(c, "v_fma_%s(%s, %s, %s)", type, left, right, sum)
             : uir_c_format(c, "(%s)((u32)%s + (u32)((%s)%s * (%s)%s))", type, sum, type, left, type, right);
    if (in_registers) {
        write_aligned(t, in, &x, next);
    } else {
        uir_c_line(c, "%s sum = %s;", type, read_aligned(t, in, 0, &x));
        uir_c_line(c, "for (int64_t k = 0; k < depth; k++) sum = %s;", next);
        write_aligned(t, in, &x, "sum");
    }
    close_elements(t, &x);
    if (in_registers) uir_c_close(c);
    uir_c_close(c);
}

/* ---- the tree ---- */
static void emit_instruction(void *user, const uir_iinstruction *in) {
    threads_emitter *t = user;
    uir_c_writer *c = &t->e.c;
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    if (family == UIR_IOP_FAMILY_SYNC) {
        /* Pipes are not apart here: a thread's instructions are in order. */
        if (in->sync_kind != UIR_SYNC_PIPES) uir_c_line(c, "%s", t->dialect->barrier);
        return;
    }
    if (family == UIR_IOP_FAMILY_MMA) {
        emit_product(t, in);
        return;
    }
    if (family != UIR_IOP_FAMILY_SCAN && family != UIR_IOP_FAMILY_REDUCE) {
        emit_together(t, &in, 1, NULL, 0);
        return;
    }
    uir_c_open(c, "%s", "");
    if (family == UIR_IOP_FAMILY_SCAN)
        emit_scan(t, in);
    else if (in->axis == UIR_IAXIS_COL)
        emit_columns(t, in);
    else
        emit_rows(t, in);
    uir_c_close(c);
}

/* Whether threads meet at the item, or in it. */
static bool has_barrier(const uir_igraph *g, const uir_iitem *item) {
    if (item->kind == UIR_IITEM_INSTRUCTION) {
        const uir_iinstruction *in = &g->instructions.data[item->instruction];
        uir_iop_family family = uir_iop_get_row(in->code)->family;
        return family == UIR_IOP_FAMILY_SYNC || (family == UIR_IOP_FAMILY_REDUCE && in->axis != UIR_IAXIS_COL);
    }
    for (uint32_t i = item->first_child; i != NONE; i = g->items.data[i].next)
        if (has_barrier(g, &g->items.data[i])) return true;
    return false;
}

/* Where threads meet under a condition they also meet at its end. They all have the same condition; but a compiler that
 * executes threads as a loop (PoCL 3.1) else executes some of them up to another barrier than the first. */
static void end_if(void *user, const uir_iitem *item) {
    threads_emitter *t = user;
    if (has_barrier(t->e.c.igraph, item)) uir_c_line(&t->e.c, "%s", t->dialect->barrier);
}

static void emit_index(void *user, const uir_iitem *item) {
    threads_emitter *t = user;
    const char *zero[INDEX_MAX];
    access a;
    for (uint32_t d = 0; d < INDEX_MAX; d++) zero[d] = "0";
    if (is_number(t->e.c.igraph, item->index.slice.pointer)) {
        uir_c_index(&t->e.c, item, uir_c_format(&t->e.c, "%s[0]", t->e.pointers[item->index.slice.pointer]));
        return;
    }
    if (is_register(t->e.c.igraph, item->index.slice.pointer) && t->status == UIR_STATUS_OK)
        t->status = uir_error(t->e.diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                              "kernel @%s: an index is in registers of one thread", t->e.c.igraph->name);
    uir_access_init(&t->e, &item->index.slice, false, &a);
    uir_c_index(&t->e.c, item, uir_access_read(&t->e, &a, zero, uir_c_literal(&t->e, a.pointer->dtype, 0)));
}

/* A run of which one pass over a thread's elements computes all; false: it is emitted one by one. */
static bool emit_run(void *user, const uir_iitem *run) {
    threads_emitter *t = user;
    const uir_igraph *g = t->e.c.igraph;
    uint32_t count = 0;
    for (uint32_t i = run->first_child; i != NONE; i = g->items.data[i].next) count++;
    const uir_iinstruction **members = uir_arena_allocate_array(&t->e.c.arena, count + 1, sizeof *members);
    if (!members) {
        t->e.c.failed = true;
        return true;
    }
    count = 0;
    for (uint32_t i = run->first_child; i != NONE; i = g->items.data[i].next) {
        const uir_iitem *item = &g->items.data[i];
        if (item->kind != UIR_IITEM_INSTRUCTION || item->guard.count) return false;
        const uir_iinstruction *in = &g->instructions.data[item->instruction];
        if (uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_REDUCE) return false;
        if (!uir_igraph_run_accepts(g, members, count, in)) return false;
        if (count && !uir_ithreads_go_alike(g, members[0], in)) return false;
        members[count++] = in;
    }
    if (count) emit_together(t, members, count, run->dead, run->dead_count);
    return true;
}

/* ---- a phase ---- */
static uint32_t count_frame_bytes(uint32_t threads) {
    return threads * UIR_THREADS_REDUCTION_BYTES + UIR_THREADS_FRAME_BYTES;
}

uir_dim uir_threads_shared_bytes(const uir_igraph *igraph) {
    uir_dims *dims = igraph->dims;
    uir_dim line = uir_dim_const(dims, 16),
            total = uir_dim_const(dims, count_frame_bytes(uir_machine_threads(igraph->machine)));
    for (uint32_t i = 0; i < igraph->pointers.count; i++) {
        const uir_ipointer *p = &igraph->pointers.data[i];
        if (p->role != UIR_IPOINTER_LOCAL || p->over != NONE || is_register(igraph, i)) continue;
        total = uir_dim_add(dims, total, uir_dim_align(dims, uir_igraph_pointer_bytes(igraph, i), line));
    }
    return total;
}

static void emit_local(threads_emitter *t, uint32_t i, const char **at) {
    uir_c_writer *c = &t->e.c;
    const uir_ipointer *p = &c->igraph->pointers.data[i];
    const char *type = uir_c_type(p->dtype), *name = t->e.pointers[i], *shared = t->dialect->shared;
    if (is_register(c->igraph, i)) {
        uir_c_line(c, "%s %s[%lld];", type, name, (long long)count_places(t, i));
        return;
    }
    if (p->over != NONE) return;
    uir_c_line(c, "%s%s *const %s = (%s%s *)(uir_lanes + %u + %s);", shared, type, name, shared, type,
               count_frame_bytes(t->threads), *at);
    uir_c_line(c, "UIR_LET %s_end = %s + (%s_span * %u + 15) / 16 * 16;", name, *at, name,
               (unsigned)(uir_dtype_bits(p->dtype) / 8 * p->instances));
    *at = uir_c_format(c, "%s_end", name);
}

static void emit_pointers(threads_emitter *t) {
    uir_c_writer *c = &t->e.c;
    const uir_igraph *g = c->igraph;
    const char *at = "0", *memory = t->e.dialect->memory;
    uint32_t argument = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        uir_c_line(c, "UIR_LET %s_span = uir_max(0, %s);", t->e.pointers[i], uir_c_dim(c, p->element_span));
        if (p->role == UIR_IPOINTER_LOCAL)
            emit_local(t, i, &at);
        else
            uir_c_line(c, "%s%s *const %s = %s;", memory, uir_c_type(p->dtype), t->e.pointers[i],
                       t->e.dialect->argument(&t->e, argument++));
    }
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        const char *type = uir_c_type(p->dtype), *shared = t->dialect->shared;
        if (p->role == UIR_IPOINTER_LOCAL && p->over != NONE && !is_register(g, i))
            uir_c_line(c, "%s%s *const %s = (%s%s *)%s;", shared, type, t->e.pointers[i], shared, type,
                       t->e.pointers[p->over]);
    }
}

static void emit_phase(threads_emitter *t, const char *symbol, uint32_t index) {
    uir_c_writer *c = &t->e.c;
    const uir_iphase *phase = &c->igraph->phases.data[index];
    const uir_c_leaves leaves = {t, emit_instruction, emit_index, emit_run, end_if};
    t->e.dialect->open_phase(&t->e, symbol, index);
    uir_c_sizes(c, "symbols");
    emit_pointers(t);
    uir_c_open(c, "for (int64_t flat = begin; flat < end; flat++)");
    uir_c_line(c, "int64_t rest = flat;");
    for (uint32_t a = phase->parallel_count; a-- > 0;) {
        const char *extent = uir_c_dim(c, phase->parallel[a].extent);
        uir_c_line(c, "UIR_LET %s = rest %% (%s);", c->symbols[phase->parallel[a].symbol], extent);
        uir_c_line(c, "rest /= (%s);", extent);
    }
    for (uint32_t b = 0; b < phase->body_count; b++) {
        uir_c_open(c, "%s", "");
        uir_c_items(c, phase->bodies[b].first_item, &leaves);
        uir_c_close(c);
    }
    uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_close(c);
    uir_c_close(c);
    uir_c_line(c, "%s", "");
}

static uir_status emit_kernel(threads_emitter *t, uint32_t index) {
    const uir_igraph *g = t->e.c.igraph;
    char symbol[UIR_C_SYMBOL_SIZE];
    UIR_TRY(uir_c_begin(&t->e.c));
    uir_arena *arena = &t->e.c.arena;
    UIR_TRY_ALLOCATE(t->e.pointers, uir_arena_allocate_array(arena, g->pointers.count + 1, sizeof *t->e.pointers));
    UIR_TRY_ALLOCATE(t->e.forwarded, uir_arena_allocate_array(arena, g->pointers.count + 1, sizeof *t->e.forwarded));
    for (uint32_t i = 0; i < g->pointers.count; i++)
        t->e.pointers[i] = uir_c_name(&t->e.c, "p", g->pointers.data[i].name, i);
    uir_c_symbol(g, index, symbol);
    uir_c_line(&t->e.c, "/* ---- %s ---- */", symbol);
    for (uint32_t p = 0; p < g->phases.count; p++) emit_phase(t, symbol, p);
    if (t->status != UIR_STATUS_OK) return t->status;
    return t->e.c.failed ? UIR_STATUS_OUT_OF_MEMORY : uir_text_status(t->e.c.text);
}

uir_status uir_threads_emit(const uir_igraph *igraph, const uir_threads_dialect *dialect, uint32_t index,
                            uir_text *text, uir_diagnostics *diagnostics) {
    threads_emitter t = {
        .e = {.c = {.igraph = igraph, .text = text}, .dialect = &dialect->vector, .diagnostics = diagnostics},
        .dialect = dialect,
        .threads = uir_machine_threads(igraph->machine)};
    if (!igraph->synchronised)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "kernel @%s is not synchronised: it does not say where threads meet", igraph->name);
    uir_arena_init(&t.e.c.arena, &igraph->allocator);
    uir_status status = emit_kernel(&t, index);
    uir_arena_deinit(&t.e.c.arena);
    return status;
}
