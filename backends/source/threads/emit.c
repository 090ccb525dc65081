#include "backends/source/threads/emit.h"

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

/* The elements of a register, which are constant. */
static int64_t count_elements(const uir_igraph *g, uint32_t pointer) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    int64_t total = 1, extent;
    for (uint32_t d = 0; d < p->rank; d++) total *= uir_dim_is_const(g->dims, p->extents[d], &extent) ? extent : 0;
    return total;
}

/* A number: each thread has it, and computes it for itself. */
static bool is_number(const uir_igraph *g, uint32_t pointer) {
    return is_register(g, pointer) && count_elements(g, pointer) == 1;
}

static bool is_shared_out(const uir_igraph *g, uint32_t pointer) {
    return is_register(g, pointer) && !is_number(g, pointer);
}

static void refuse(threads_emitter *t, const uir_iinstruction *in, const char *why) {
    if (t->status == UIR_STATUS_OK)
        t->status = uir_error(t->e.diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "kernel @%s: %s %s", t->e.c.igraph->name,
                              uir_iop_get_row(in->code)->name, why);
}

/* ---- elements ---- */
/* How the threads share the elements of a shape. */
typedef enum sharing {
    EACH,      /* every thread computes the one element */
    FLAT,      /* element e in row-major order is thread e mod T's */
    REGISTERS, /* as the elements of a register that the instruction accesses, which begin with its first */
    OWNED      /* likewise, wherever in the register they are: each thread looks at all and takes its own */
} sharing;

typedef struct elements {
    sharing sharing;
    const uir_islice *slice; /* REGISTERS, OWNED: one of the register's; else the result's */
    const uir_dim *shape;
    uint32_t rank;
    const char *loops[INDEX_MAX + 1]; /* the element's index per dim */
    uint32_t opened;
} elements;

/* The slice of a register that the threads share; NULL: the instruction has none. */
static const uir_islice *find_register(const uir_igraph *g, const uir_iinstruction *in) {
    for (uint32_t k = 0; k < in->slice_count; k++)
        if (is_shared_out(g, in->slices[k].pointer)) return &in->slices[k];
    return NULL;
}

/* Rows and columns of the unit's threads: element (i, j) of a register is that of thread i mod rows, j mod columns. */
static uint32_t count_thread_columns(const threads_emitter *t) {
    uint32_t columns = 1;
    while (columns * columns < t->threads) columns *= 2;
    return columns;
}

static uint32_t count_thread_rows(const threads_emitter *t) {
    return t->threads / count_thread_columns(t);
}

static int64_t get_extent(const uir_igraph *g, uint32_t pointer, uint32_t from_end) {
    const uir_ipointer *p = &g->pointers.data[pointer];
    int64_t extent = 1;
    return p->rank < from_end || uir_dim_is_const(g->dims, p->extents[p->rank - from_end], &extent) ? extent : 0;
}

/* Elements of a register that one thread has along its last dim, or the one before it. */
static int64_t count_places(const threads_emitter *t, uint32_t pointer, uint32_t from_end) {
    uint32_t threads = from_end == 1 ? count_thread_columns(t) : count_thread_rows(t);
    return (get_extent(t->e.c.igraph, pointer, from_end) + threads - 1) / threads;
}

/* Whether the slice is a matrix that begins with the register's first element. */
static bool is_register_box(threads_emitter *t, const uir_islice *slice) {
    const uir_ipointer *p = &t->e.c.igraph->pointers.data[slice->pointer];
    if (slice->window || slice->block) return false;
    for (uint32_t d = 0; d < slice->rank; d++)
        if (!uir_c_dim_is(&t->e.c, slice->starts[d], 0) ||
            (d + 2 < slice->rank && !uir_c_dim_is(&t->e.c, p->extents[d], 1)))
            return false;
    return true;
}

/* Registers of one instruction have equal boxes. */
static bool agree(threads_emitter *t, const uir_islice *a, const uir_islice *b) {
    if (!is_register_box(t, a) || !is_register_box(t, b)) return false;
    for (uint32_t end = 1; end <= 2; end++) {
        if (a->rank < end || b->rank < end) return a->rank == b->rank;
        if (!uir_dim_equal(a->counts[a->rank - end], b->counts[b->rank - end])) return false;
    }
    return true;
}

/* Whether the registers' elements are those of the result's shape, beginning with the first. */
static bool is_plain(threads_emitter *t, const uir_iinstruction *in, const uir_islice *slice) {
    const uir_islice *result = &in->slices[0];
    for (uint32_t k = 0; k < in->slice_count; k++)
        if (is_shared_out(t->e.c.igraph, in->slices[k].pointer) && !agree(t, slice, &in->slices[k])) return false;
    for (uint32_t end = 1; end <= result->rank; end++) {
        bool fits = end > 2 || end > slice->rank
                        ? uir_c_dim_is(&t->e.c, result->counts[result->rank - end], 1)
                        : uir_dim_equal(slice->counts[slice->rank - end], result->counts[result->rank - end]);
        if (!fits) return false;
    }
    return true;
}

/* Whether the registers of the instruction are one slice, with an element for each of the result. */
static bool is_one_slice(const threads_emitter *t, const uir_iinstruction *in, const uir_islice *slice) {
    const uir_igraph *g = t->e.c.igraph;
    for (uint32_t k = 0; k < in->slice_count; k++) {
        const uir_islice *other = &in->slices[k];
        if (is_shared_out(g, other->pointer) && other != slice && !uir_islice_equal(slice, other)) return false;
    }
    if (slice->rank != in->slices[0].rank || slice->block) return false;
    for (uint32_t d = 0; d < slice->rank; d++)
        if (!uir_dim_equal(slice->counts[d], in->slices[0].counts[d])) return false;
    return g->pointers.data[slice->pointer].rank == 2;
}

static bool find_elements(threads_emitter *t, const uir_iinstruction *in, elements *out) {
    const uir_igraph *g = t->e.c.igraph;
    const uir_islice *result = &in->slices[0], *slice = find_register(g, in);
    *out = (elements){.sharing = is_number(g, result->pointer) ? EACH : FLAT,
                      .slice = slice ? slice : result,
                      .shape = result->counts,
                      .rank = result->rank};
    if (!slice) return true;
    if (out->sharing != EACH) out->sharing = is_plain(t, in, slice) ? REGISTERS : OWNED;
    bool fits = out->sharing == REGISTERS || (out->sharing == OWNED && is_one_slice(t, in, slice));
    if (!fits) refuse(t, in, "accesses registers that other threads hold");
    return fits;
}

/* The thread's elements of a register, at constant places once the loops are unrolled. */
static void open_registers(threads_emitter *t, elements *x) {
    uir_c_writer *c = &t->e.c;
    const uir_igraph *g = c->igraph;
    const char *inside = NULL, *thread = t->dialect->thread;
    uint32_t pointer = x->slice->pointer, columns = count_thread_columns(t), rows = count_thread_rows(t);
    for (uint32_t end = 2; end >= 1; end--) {
        const char *q = end == 1 ? "column" : "row", *at = end == 1 ? "j" : "i";
        if (end > x->rank) continue;
        uir_c_open(c, "UIR_UNROLL for (int %s = 0; %s < %lld; %s++)", q, q, (long long)count_places(t, pointer, end),
                   q);
        uir_c_line(c, "const int64_t %s = %s * %u + %s %s %u;", at, q, end == 1 ? columns : rows, thread,
                   end == 1 ? "%" : "/", columns);
        x->loops[x->rank - end] = at;
        x->opened++;
        bool whole = get_extent(g, pointer, end) % (end == 1 ? columns : rows) == 0 &&
                     uir_c_dim_is(c, x->shape[x->rank - end], get_extent(g, pointer, end));
        if (!whole)
            inside = uir_c_format(c, "%s%s%s < %s", inside ? inside : "", inside ? " && " : "", at,
                                  uir_c_dim(c, x->shape[x->rank - end]));
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

/* The condition that the element at the loops' index is the thread's. */
static const char *is_own(threads_emitter *t, elements *x) {
    uir_c_writer *c = &t->e.c;
    uint32_t columns = count_thread_columns(t);
    const char *at[INDEX_MAX];
    access a;
    uir_access_init(&t->e, x->slice, true, &a);
    uir_access_coordinates(&t->e, &a, x->loops, at);
    uir_c_line(c, "const int64_t i = %s, j = %s;", at[0], at[1]);
    return uir_c_format(c, "i %% %u * %u + j %% %u == %s", count_thread_rows(t), columns, columns, t->dialect->thread);
}

/* Opens a loop over the thread's elements. */
static void open_elements(threads_emitter *t, elements *x) {
    uir_c_writer *c = &t->e.c;
    const char *total = "1", *rest = "e";
    for (uint32_t d = 0; d < x->rank; d++) x->loops[d] = "0";
    uir_c_open(c, "%s", "");
    x->opened = 1;
    if (x->sharing == REGISTERS) open_registers(t, x);
    if (x->sharing != FLAT && x->sharing != OWNED) return;
    for (uint32_t d = 0; d < x->rank; d++)
        total = uir_c_product(c, total, uir_c_format(c, "uir_max(0, %s)", uir_c_dim(c, x->shape[d])));
    uir_c_line(c, "const int64_t total = %s;", total);
    if (x->sharing == FLAT)
        open_shared_loop(t, "e", "total");
    else
        uir_c_open(c, "for (int64_t e = 0; e < total; e++)");
    x->opened += x->sharing == FLAT ? 2 : 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (uir_c_dim_is(c, x->shape[d], 1)) continue;
        const char *extent = uir_c_dim(c, x->shape[d]);
        bool first = true;
        for (uint32_t i = 0; i < d; i++) first &= uir_c_dim_is(c, x->shape[i], 1);
        x->loops[d] = uir_c_format(c, "k%u", d);
        uir_c_line(c, "const int64_t k%u = %s;", d, first ? rest : uir_c_format(c, "%s %% (%s)", rest, extent));
        if (!first) rest = uir_c_format(c, "%s / (%s)", rest, extent);
    }
    if (x->sharing == FLAT) return;
    uir_c_open(c, "if (%s)", is_own(t, x));
    x->opened++;
}

static void close_elements(threads_emitter *t, elements *x) {
    for (; x->opened; x->opened--) uir_c_close(&t->e.c);
}

/* Where the thread has the loops' element of a register. */
static const char *find_place(threads_emitter *t, const uir_islice *slice, const elements *x) {
    uir_c_writer *c = &t->e.c;
    if (is_number(c->igraph, slice->pointer)) return "0";
    long long columns = count_places(t, slice->pointer, 1);
    if (x->sharing == OWNED)
        return uir_c_format(c, "i / %u * %lld + j / %u", count_thread_rows(t), columns, count_thread_columns(t));
    if (c->igraph->pointers.data[slice->pointer].rank < 2) return "column";
    return uir_c_format(c, "row * %lld + column", columns);
}

/* The element of a slice at an index of the shape: read, or NULL with `value`, which is stored. */
static const char *touch(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const elements *x,
                         const char *value) {
    emitter *e = &t->e;
    const uir_islice *slice = &in->slices[k];
    const char *index[INDEX_MAX];
    access a;
    if (is_register(e->c.igraph, slice->pointer)) {
        const char *place = uir_c_format(&e->c, "%s[%s]", e->pointers[slice->pointer], find_place(t, slice, x));
        if (value) uir_c_line(&e->c, "%s = %s;", place, value);
        return place;
    }
    uir_access_init(e, slice, in->unguarded >> k & 1, &a);
    uir_access_align(e, slice, x->shape, x->rank, x->loops, index);
    if (!value) return uir_access_read(e, &a, index, uir_c_literal(e, a.pointer->dtype, 0));
    uir_access_write(e, &a, index, value);
    return NULL;
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
    const char *read = touch(t, in, k, x, NULL);
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
    (void)touch(t, in, 0, x, value);
}

/* Instructions of one shape and sharing; what no one reads later stays in variables. */
static void emit_together(threads_emitter *t, const uir_iinstruction *const *members, uint32_t count,
                          const uint32_t *dead, uint32_t dead_count) {
    elements x;
    uint32_t known_count = 0;
    known *values = uir_arena_allocate_array(&t->e.c.arena, count + 1, sizeof *values);
    if (!values) {
        t->e.c.failed = true;
        return;
    }
    if (!find_elements(t, members[0], &x)) return;
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

/* Whether threads share the elements of both alike. */
static bool shares_alike(threads_emitter *t, const uir_iinstruction *a, const uir_iinstruction *b) {
    elements x, y;
    if (!find_elements(t, a, &x) || !find_elements(t, b, &y) || x.sharing != y.sharing || x.rank != y.rank)
        return false;
    for (uint32_t d = 0; d < x.rank; d++)
        if (!uir_dim_equal(x.shape[d], y.shape[d])) return false;
    return x.sharing == FLAT || x.sharing == EACH || (x.sharing == REGISTERS && agree(t, x.slice, y.slice));
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

static const char *read_at(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index) {
    emitter *e = &t->e;
    access a;
    if (is_number(e->c.igraph, in->slices[k].pointer))
        return uir_c_format(&e->c, "%s[0]", e->pointers[in->slices[k].pointer]);
    uir_access_init(e, &in->slices[k], in->unguarded >> k & 1, &a);
    return uir_access_read(e, &a, index, uir_c_literal(e, a.pointer->dtype, 0));
}

static void write_at(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                     const char *value) {
    emitter *e = &t->e;
    access a;
    if (is_number(e->c.igraph, in->slices[k].pointer)) {
        uir_c_line(&e->c, "%s[0] = %s;", e->pointers[in->slices[k].pointer], value);
        return;
    }
    uir_access_init(e, &in->slices[k], in->unguarded >> k & 1, &a);
    uir_access_write(e, &a, index, value);
}

/* A line a thread, in order. */
static void emit_columns(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code);
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    bool each = is_number(c->igraph, in->slices[0].pointer);
    open_lines(t, each);
    place_line(t, &in->slices[1], &in->slices[0], &l);
    uir_c_line(c, "%s total = %s;", type,
               in->accumulate ? read_at(t, in, 0, l.line) : uir_c_identity(&t->e, in->code, in->dtype));
    uir_c_line(c, "for (int64_t i = 0; i < length; i++) total = s_%s_%s(total, %s);", operation, type,
               read_at(t, in, 1, l.loops));
    write_at(t, in, 0, l.line, "total");
    close_lines(t);
}

static void emit_scan(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *index[INDEX_MAX];
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    bool each = is_number(c->igraph, in->slices[2].pointer);
    open_lines(t, each);
    place_line(t, &in->slices[1], &in->slices[2], &l);
    uir_c_line(c, "%s sum = %s;", type, read_at(t, in, 2, l.line));
    uir_c_open(c, "for (int64_t i = 0; i < length; i++)");
    uir_c_line(c, "const %s next = s_%s_%s(sum, %s);", type, operation, type, read_at(t, in, 1, l.loops));
    uir_access_align(&t->e, &in->slices[0], in->slices[1].counts, in->slices[1].rank, l.loops, index);
    write_at(t, in, 0, index, in->exclusive ? "sum" : "next");
    uir_c_line(c, "sum = next;");
    uir_c_close(c);
    write_at(t, in, 2, l.line, "sum");
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
               read_at(t, in, 1, l.loops));
    uir_c_close(c);
    uir_c_line(c, "lanes[%s] = partial;", thread);
    uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_open(c, "for (int s = 16; s > 0; s /= 2)");
    uir_c_line(c, "if (lane < s) lanes[%s] = s_%s_%s(lanes[%s], lanes[%s + s]);", thread, operation, type, thread,
               thread);
    uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_close(c);
    const char *total = each ? "lanes[0]" : uir_c_format(c, "lanes[%s]", thread);
    if (in->accumulate) total = uir_c_format(c, "s_%s_%s(%s, %s)", operation, type, read_at(t, in, 0, l.line), total);
    if (!each) uir_c_open(c, "if (lane == 0 && line < lines)");
    write_at(t, in, 0, l.line, total);
    if (!each) uir_c_close(c);
    uir_c_line(c, "%s", t->dialect->barrier);
    uir_c_close(c);
}

/* ---- products ---- */
/* Elements of the sums, each by its thread, along k in order. */
static void emit_product(threads_emitter *t, const uir_iinstruction *in) {
    emitter *e = &t->e;
    uir_c_writer *c = &e->c;
    const uir_islice *a = &in->slices[1], *b = &in->slices[2];
    const char *type = uir_c_type(in->dtype), *index[3][INDEX_MAX];
    elements x;
    if (is_shared_out(c->igraph, a->pointer) || is_shared_out(c->igraph, b->pointer)) {
        refuse(t, in, "reads factors from registers that other threads hold");
        return;
    }
    if (!find_elements(t, in, &x)) return;
    bool in_registers = x.sharing == REGISTERS || x.sharing == OWNED;
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
    const char *sum = in_registers ? touch(t, in, 0, &x, NULL) : "sum";
    const char *left = read_at(t, in, 1, index[1]), *right = read_at(t, in, 2, index[2]);
    bool real = uir_dtype_is_float(in->dtype);
    const char *next =
        real ? uir_c_format(c, "v_fma_%s(%s, %s, %s)", type, left, right, sum)
             : uir_c_format(c, "(%s)((u32)%s + (u32)((%s)%s * (%s)%s))", type, sum, type, left, type, right);
    if (in_registers) {
        uir_c_line(c, "%s = %s;", sum, next);
    } else {
        uir_c_line(c, "%s sum = %s;", type, touch(t, in, 0, &x, NULL));
        uir_c_line(c, "for (int64_t k = 0; k < depth; k++) sum = %s;", next);
        (void)touch(t, in, 0, &x, "sum");
    }
    close_elements(t, &x);
    if (in_registers) uir_c_close(c);
    uir_c_close(c);
}

/* ---- the tree ---- */
static void emit_one(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const uir_igraph *g = c->igraph;
    switch (uir_iop_get_row(in->code)->family) {
    case UIR_IOP_FAMILY_SYNC:
        uir_c_line(c, "%s", t->dialect->barrier);
        return;
    case UIR_IOP_FAMILY_MMA:
        emit_product(t, in);
        return;
    case UIR_IOP_FAMILY_SCAN:
    case UIR_IOP_FAMILY_REDUCE:
        if (is_shared_out(g, in->slices[0].pointer) || is_shared_out(g, in->slices[1].pointer)) {
            refuse(t, in, "accesses registers that other threads hold");
            return;
        }
        uir_c_open(c, "%s", "");
        if (in->code == UIR_IOP_SCAN_ADD || in->code == UIR_IOP_SCAN_MUL)
            emit_scan(t, in);
        else if (in->axis == UIR_IAXIS_COL)
            emit_columns(t, in);
        else
            emit_rows(t, in);
        uir_c_close(c);
        return;
    default:
        emit_together(t, &in, 1, NULL, 0);
    }
}

static void meet(threads_emitter *t) {
    uir_c_line(&t->e.c, "%s", t->dialect->barrier);
}

static void emit_instruction(void *user, const uir_iinstruction *in) {
    emit_one(user, in);
    meet(user);
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
    uir_access_init(&t->e, &item->index.slice, false, &a);
    uir_c_index(&t->e.c, item, uir_access_read(&t->e, &a, zero, uir_c_literal(&t->e, a.pointer->dtype, 0)));
}

/* A run whose instructions the threads share alike; false: it is emitted one by one. */
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
        if (count && !shares_alike(t, members[0], in)) return false;
        members[count++] = in;
    }
    if (count) emit_together(t, members, count, run->dead, run->dead_count);
    meet(t);
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
        int64_t places = is_number(c->igraph, i) ? 1 : count_places(t, i, 1) * count_places(t, i, 2);
        uir_c_line(c, "%s %s[%lld];", type, name, (long long)places);
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
    const uir_c_leaves leaves = {t, emit_instruction, emit_index, emit_run};
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
    uir_arena_init(&t.e.c.arena, &igraph->allocator);
    uir_status status = emit_kernel(&t, index);
    uir_arena_deinit(&t.e.c.arena);
    return status;
}
