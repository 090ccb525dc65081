#include "backends/source/threads/elements.h"

#include "ir/kernel/igraph_threads.h"

#define NONE UINT32_MAX

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
    const char *read = uir_threads_read_aligned(t, in, k, x);
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
    uir_threads_write_aligned(t, in, x, value);
}

/* Instructions of one shape and sharing; what no one reads later stays in variables. */
static void emit_together(threads_emitter *t, const uir_iinstruction *const *members, uint32_t count,
                          const uint32_t *dead, uint32_t dead_count) {
    elements x = uir_threads_find_elements(t, members[0]);
    uint32_t known_count = 0;
    known *values = uir_arena_allocate_array(&t->e.c.arena, count + 1, sizeof *values);
    if (!values) {
        t->e.c.failed = true;
        return;
    }
    uir_threads_open_elements(t, &x);
    for (uint32_t i = 0; i < count; i++) {
        const uir_iinstruction *in = members[i];
        bool is_dead = false;
        for (uint32_t d = 0; d < dead_count; d++) is_dead |= dead[d] == in->slices[0].pointer;
        const char *name = compute(t, in, &x, values, &known_count);
        if (!is_dead) store(t, in, &x, name);
    }
    uir_threads_close_elements(t, &x);
}

/* ---- lines: reductions and scans ---- */
/* A line a thread; of a number, which each has, all. */
static void open_lines(threads_emitter *t, bool each) {
    if (!each) {
        uir_threads_open_loop(t, "line", "lines");
        return;
    }
    uir_c_open(&t->e.c, "for (int64_t line = 0; line < lines; line++)");
    uir_c_open(&t->e.c, "%s", "");
}

static void close_lines(threads_emitter *t) {
    uir_c_close(&t->e.c);
    uir_c_close(&t->e.c);
}

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
    elements x = uir_threads_find_elements(t, in);
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    uir_threads_open_elements(t, &x);
    place_element(t, &in->slices[1], &x, &l);
    uir_c_line(c, "%s sum = %s;", type,
               in->accumulate ? uir_threads_read_aligned(t, in, 0, &x) : uir_c_identity(&t->e, in->code, in->dtype));
    uir_c_line(c, "for (int64_t i = 0; i < length; i++) sum = s_%s_%s(sum, %s);", operation, type,
               uir_threads_read(t, in, 1, l.loops, NULL));
    uir_threads_write_aligned(t, in, &x, "sum");
    uir_threads_close_elements(t, &x);
}

static void emit_scan(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *index[INDEX_MAX];
    lines l;
    begin_lines(t, &in->slices[1], in->axis, &l);
    bool each = uir_threads_is_number(c->igraph, in->slices[2].pointer);
    open_lines(t, each);
    place_line(t, &in->slices[1], &in->slices[2], &l);
    uir_c_line(c, "%s sum = %s;", type, uir_threads_read(t, in, 2, l.line, NULL));
    uir_c_open(c, "for (int64_t i = 0; i < length; i++)");
    uir_c_line(c, "const %s next = s_%s_%s(sum, %s);", type, operation, type,
               uir_threads_read(t, in, 1, l.loops, NULL));
    uir_access_align(&t->e, &in->slices[0], in->slices[1].counts, in->slices[1].rank, l.loops, index);
    uir_threads_write(t, in, 0, index, NULL, in->exclusive ? "sum" : "next");
    uir_c_line(c, "sum = next;");
    uir_c_close(c);
    uir_threads_write(t, in, 2, l.line, NULL, "sum");
    close_lines(t);
}

/* 32 threads a row, by the lanes of iops.def; each has its partial result in shared memory for the tree. */
static void emit_rows(threads_emitter *t, const uir_iinstruction *in) {
    uir_c_writer *c = &t->e.c;
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *thread = t->dialect->thread;
    const char *shared = t->dialect->shared;
    bool each = uir_threads_is_number(c->igraph, in->slices[0].pointer);
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
               uir_threads_read(t, in, 1, l.loops, NULL));
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
        total = uir_c_format(c, "s_%s_%s(%s, %s)", operation, type, uir_threads_read(t, in, 0, l.line, NULL), total);
    if (!each) uir_c_open(c, "if (lane == 0 && line < lines)");
    uir_threads_write(t, in, 0, l.line, NULL, total);
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
    elements x = uir_threads_find_elements(t, in);
    bool in_registers = x.sharing == BY_PLACE;
    uir_c_open(c, "%s", "");
    uir_c_line(c, "const int64_t depth = %s;", uir_c_dim(c, a->counts[a->rank - 1]));
    if (in_registers) uir_c_open(c, "for (int64_t k = 0; k < depth; k++)");
    uir_threads_open_elements(t, &x);
    for (uint32_t s = 1; s < 3; s++) {
        const uir_islice *slice = &in->slices[s];
        for (uint32_t d = 0; d < slice->rank; d++) index[s][d] = "0";
        if (s == 1) index[s][slice->rank - 2] = x.rank > 1 ? x.loops[x.rank - 2] : "0";
        index[s][slice->rank - 1] = s == 1 ? "k" : x.loops[x.rank - 1];
        if (s == 2) index[s][slice->rank - 2] = "k";
    }
    const char *sum = in_registers ? uir_threads_read_aligned(t, in, 0, &x) : "sum";
    const char *left = uir_threads_read(t, in, 1, index[1], NULL), *right = uir_threads_read(t, in, 2, index[2], NULL);
    bool real = uir_dtype_is_float(in->dtype);
    const char *next =
        real ? uir_c_format(c, "v_fma_%s(%s, %s, %s)", type, left, right, sum)
             : uir_c_format(c, "(%s)((u32)%s + (u32)((%s)%s * (%s)%s))", type, sum, type, left, type, right);
    if (in_registers) {
        uir_threads_write_aligned(t, in, &x, next);
    } else {
        uir_c_line(c, "%s sum = %s;", type, uir_threads_read_aligned(t, in, 0, &x));
        uir_c_line(c, "for (int64_t k = 0; k < depth; k++) sum = %s;", next);
        uir_threads_write_aligned(t, in, &x, "sum");
    }
    uir_threads_close_elements(t, &x);
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
    if (uir_threads_is_number(t->e.c.igraph, item->index.slice.pointer)) {
        uir_c_index(&t->e.c, item, uir_c_format(&t->e.c, "%s[0]", t->e.pointers[item->index.slice.pointer]));
        return;
    }
    if (uir_threads_is_register(t->e.c.igraph, item->index.slice.pointer) && t->status == UIR_STATUS_OK)
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
        if (p->role != UIR_IPOINTER_LOCAL || p->over != NONE || uir_threads_is_register(igraph, i)) continue;
        total = uir_dim_add(dims, total, uir_dim_align(dims, uir_igraph_pointer_bytes(igraph, i), line));
    }
    return total;
}

static void emit_local(threads_emitter *t, uint32_t i, const char **at) {
    uir_c_writer *c = &t->e.c;
    const uir_ipointer *p = &c->igraph->pointers.data[i];
    const char *type = uir_c_type(p->dtype), *name = t->e.pointers[i], *shared = t->dialect->shared;
    if (uir_threads_is_register(c->igraph, i)) {
        uir_c_line(c, "%s %s[%lld];", type, name, (long long)uir_threads_count_places(t, i));
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
        if (p->role == UIR_IPOINTER_LOCAL && p->over != NONE && !uir_threads_is_register(g, i))
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
