/* An iGraph to C: a function for each phase, loops, conditions, indices. Instructions are in
 * emit_run.c, emit_move.c, emit_reduce.c and emit_mma.c. */
#include "backends/source/vector/emit.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX

uir_dim uir_vector_local_bytes(const uir_igraph *igraph) {
    uir_dims *dims = igraph->dims;
    uir_dim line = uir_dim_const(dims, 64), total = uir_dim_const(dims, 0);
    for (uint32_t i = 0; i < igraph->pointers.count; i++) {
        const uir_ipointer *p = &igraph->pointers.data[i];
        if (p->role != UIR_IPOINTER_LOCAL || p->over != NONE) continue;
        total = uir_dim_add(dims, total, uir_dim_align(dims, uir_igraph_pointer_bytes(igraph, i), line));
    }
    return total;
}

void uir_emit_array(emitter *e, const char *type, const char *name, int64_t count, uint32_t place) {
    const char *memory = e->dialect->memory;
    if (e->dialect->has_one_memory)
        uir_c_line(&e->c, "%s %s[%lld];", type, name, (long long)count);
    else
        uir_c_line(&e->c, "%s%s *const %s = (%s%s *)(arrays + %u);", memory, type, name, memory, type, place);
}

/* ---- items ---- */
static void emit_items(emitter *e, uint32_t first);
static void emit_item(emitter *e, uint32_t index);
static void emit_poll(emitter *e);
static bool is_number(emitter *e, uint32_t pointer);

/* All operands are read before the result is written: here an element at a time or a block of them, as an operand is
 * the result's own slice or lies apart from it, which the verifier proves. */
static void emit_instruction(emitter *e, const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    if (family == UIR_IOP_FAMILY_SYNC) return;             /* program order is enough here */
    if (e->forwarded[in->slices[0].pointer] == in) return; /* its readers read what it would copy */
    if (family == UIR_IOP_FAMILY_MMA)
        uir_emit_mma(e, in);
    else if (family == UIR_IOP_FAMILY_SCAN)
        uir_emit_scan(e, in);
    else if (family == UIR_IOP_FAMILY_REDUCE && !uir_iinstruction_ends_run(e->c.igraph, in))
        uir_emit_reduce(e, in);
    else if (!uir_emit_move(e, in))
        uir_emit_run(e, &in, 1, NULL, 0, NULL);
}

/* The instructions of a run, NULL where it is none after all. */
static const uir_iinstruction **find_members(emitter *e, const uir_iitem *run, uint32_t *out_count) {
    const uir_iinstruction **members;
    uint32_t capacity = 0;
    *out_count = 0;
    for (uint32_t i = run->first_child; i != NONE; i = e->c.igraph->items.data[i].next) capacity++;
    members = uir_arena_allocate_array(&e->c.arena, capacity + 1, sizeof *members);
    if (!members) e->c.failed = true;
    for (uint32_t i = run->first_child; i != NONE && members; i = e->c.igraph->items.data[i].next) {
        const uir_iitem *item = &e->c.igraph->items.data[i];
        if (item->kind != UIR_IITEM_INSTRUCTION || item->guard.count > 0) return NULL;
        const uir_iinstruction *in = &e->c.igraph->instructions.data[item->instruction];
        if (!uir_igraph_run_accepts(e->c.igraph, members, *out_count, in)) return NULL;
        members[(*out_count)++] = in;
    }
    return members;
}

static void emit_members(emitter *e, const uir_iitem *run) {
    uint32_t count;
    const uir_iinstruction **members = find_members(e, run, &count);
    if (e->c.failed) return;
    /* One move may be better done whole; what is not a run after all goes one by one. */
    if (members && count == 1 && run->dead_count == 0)
        emit_instruction(e, members[0]);
    else if (members && count > 0)
        uir_emit_run(e, members, count, run->dead, run->dead_count, NULL);
    else
        emit_items(e, run->first_child);
}

/* Whether a turn over these items may take long: an inner loop, or a product. All else is bounded by the data that it
 * reads and writes once. */
static bool may_take_long(const emitter *e, uint32_t first) {
    for (uint32_t i = first; i != NONE; i = e->c.igraph->items.data[i].next) {
        const uir_iitem *item = &e->c.igraph->items.data[i];
        if (item->kind == UIR_IITEM_LOOP) return true;
        if (item->kind == UIR_IITEM_INSTRUCTION) {
            const uir_iinstruction *in = &e->c.igraph->instructions.data[item->instruction];
            if (uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_MMA) return true;
        } else if (item->kind != UIR_IITEM_LET && item->kind != UIR_IITEM_INDEX &&
                   may_take_long(e, item->first_child)) {
            return true;
        }
    }
    return false;
}

/* ---- turns that overlap ---- */
/* A turn that reads a row, works on it and writes it at its end leaves the memory idle while it works. What it writes
 * last is written while the next turn reads its first row: one run of both. */
static uint32_t find_last(const emitter *e, const uir_iitem *loop) {
    uint32_t last = NONE;
    for (uint32_t i = loop->first_child; i != NONE; i = e->c.igraph->items.data[i].next) {
        uir_iitem_kind kind = e->c.igraph->items.data[i].kind;
        if (kind == UIR_IITEM_LET || kind == UIR_IITEM_INDEX) return NONE;
        last = i;
    }
    return last;
}

/* The pointer that a slice is read from. */
static uint32_t find_source(const emitter *e, uint32_t pointer) {
    const uir_iinstruction *move = e->forwarded[pointer];
    return move ? move->slices[1].pointer : pointer;
}

static bool writes(const emitter *e, const uir_iinstruction *in, uint32_t k) {
    return k == 0 && e->forwarded[in->slices[0].pointer] != in;
}

/* Neither touches what the other writes, but for a number: one turn reads it before the row that the next one's
 * reduction replaces it behind. */
static bool are_apart(emitter *e, const uir_iinstruction *late, const uir_iinstruction *early) {
    for (uint32_t i = 0; i < late->slice_count; i++) {
        for (uint32_t k = 0; k < early->slice_count; k++) {
            uint32_t p = find_source(e, late->slices[i].pointer), q = find_source(e, early->slices[k].pointer);
            if (!writes(e, late, i) && !writes(e, early, k)) continue;
            if (p != q && !uir_igraph_share_place(e->c.igraph, p, q)) continue;
            bool replaced = i > 0 && k == 0 && uir_iop_get_row(early->code)->family == UIR_IOP_FAMILY_REDUCE;
            if (!replaced || early->accumulate || p != q || !is_number(e, p)) return false;
        }
    }
    return true;
}

/* Slices of one box for each turn, of as many elements in each. */
static bool has_plain_turns(const emitter *e, const uir_iinstruction *in, uir_symbol turn) {
    for (uint32_t k = 0; k < in->slice_count; k++) {
        const uir_islice *slice = &in->slices[k];
        if (slice->window || e->c.igraph->pointers.data[slice->pointer].instances != 1) return false;
        for (uint32_t d = 0; d < slice->rank; d++)
            if (uir_dim_mentions(e->c.igraph->dims, slice->counts[d], turn)) return false;
    }
    return !in->has_scratch;
}

/* One move may be better done whole. */
static bool is_lone_move(const uir_iinstruction *const *members, uint32_t count) {
    return count == 1 && uir_iop_get_row(members[0]->code)->family == UIR_IOP_FAMILY_MOVE;
}

static bool overlap_turns(emitter *e, const uir_iitem *item, uint32_t last, const char *extent) {
    const uir_iitem *items = e->c.igraph->items.data, *first = &items[item->first_child], *final = &items[last];
    uint32_t late, early;
    bool streams = false;
    if (item->guard.count > 0 || first == final || uir_c_dim_is(&e->c, item->extent, 1) ||
        first->kind != UIR_IITEM_RUN || final->kind != UIR_IITEM_RUN || first->guard.count > 0 ||
        final->guard.count > 0)
        return false;
    const uir_iinstruction **reads = find_members(e, first, &early), **stores = find_members(e, final, &late);
    if (!reads || !stores || is_lone_move(reads, early) || is_lone_move(stores, late)) return false;
    const uir_iinstruction **both = uir_arena_allocate_array(&e->c.arena, late + early + 1, sizeof *both);
    uint32_t *dead = uir_arena_allocate_array(&e->c.arena, first->dead_count + final->dead_count + 1, sizeof *dead);
    if (!both || !dead) {
        e->c.failed = true;
        return false;
    }
    for (uint32_t i = 0; i < late + early; i++) {
        const uir_iinstruction *in = i < late ? stores[i] : reads[i - late];
        if (!has_plain_turns(e, in, e->c.igraph->symbols.data[item->symbol].symbol) ||
            !uir_igraph_run_accepts(e->c.igraph, both, i, in))
            return false;
        for (uint32_t k = 0; i >= late && k < late; k++)
            if (!are_apart(e, stores[k], in)) return false;
        streams |= i < late && in->stream;
        both[i] = in;
    }
    if (!streams) return false;
    for (uint32_t i = 0; i < final->dead_count; i++) dead[i] = final->dead[i];
    for (uint32_t i = 0; i < first->dead_count; i++) dead[final->dead_count + i] = first->dead[i];
    const char *i = e->c.symbols[item->symbol], *before = uir_c_format(&e->c, "%s_before", i);
    uir_c_open(&e->c, "for (int64_t %s = 0, %s_trips = %s; %s_trips > 0 && %s <= %s_trips; %s++)", i, i, extent, i, i,
               i, i);
    if (may_take_long(e, item->first_child)) emit_poll(e);
    uir_c_line(&e->c, "UIR_LET %s = %s - 1;", before, i);
    uir_c_open(&e->c, "if (%s == 0)", i);
    emit_members(e, first);
    uir_c_close(&e->c);
    uir_c_open(&e->c, "else if (%s == %s_trips)", i, i);
    e->c.symbols[item->symbol] = before;
    emit_members(e, final);
    e->c.symbols[item->symbol] = i;
    uir_c_line(&e->c, "break;");
    uir_c_close(&e->c);
    uir_c_open(&e->c, "else");
    uir_emit_run(e, both, late + early, dead, first->dead_count + final->dead_count,
                 &(overlap){.late = late, .symbol = item->symbol, .before = before});
    uir_c_close(&e->c);
    for (uint32_t k = first->next; k != last; k = items[k].next) emit_item(e, k);
    uir_c_close(&e->c);
    return true;
}

static void emit_poll(emitter *e) {
    if (e->dialect->has_cancel) uir_c_line(&e->c, "if (*cancel) goto stopped;");
}

static void emit_loop(emitter *e, const uir_iitem *item) {
    const char *i = e->c.symbols[item->symbol], *extent = uir_c_dim(&e->c, item->extent), *when;
    if (item->named_ends) extent = uir_c_format(&e->c, "uir_max(1, %s)", extent);
    uint32_t last = find_last(e, item);
    if (last != NONE && overlap_turns(e, item, last, extent)) return;
    uir_c_open(&e->c, "for (int64_t %s = 0, %s_trips = %s; %s < %s_trips; %s++)", i, i, extent, i, i, i);
    if (may_take_long(e, item->first_child)) emit_poll(e);
    when = uir_c_condition(&e->c, &item->guard);
    if (when) uir_c_line(&e->c, "if (!(%s)) continue;", when);
    emit_items(e, item->first_child);
    uir_c_close(&e->c);
}

static void emit_index(emitter *e, const uir_iitem *item) {
    const char *zero[INDEX_MAX];
    access a;
    uir_access_init(e, &item->index.slice, false, &a);
    for (uint32_t d = 0; d < INDEX_MAX; d++) zero[d] = "0";
    uir_c_index(&e->c, item, uir_access_read(e, &a, zero, uir_c_literal(e, a.pointer->dtype, 0)));
}

static void emit_item(emitter *e, uint32_t index) {
    const uir_iitem *item = &e->c.igraph->items.data[index];
    if (item->kind == UIR_IITEM_LOOP) {
        emit_loop(e, item);
        return;
    }
    if (item->kind == UIR_IITEM_LET) {
        uir_c_line(&e->c, "UIR_LET %s = %s;", e->c.symbols[item->symbol],
                   uir_c_dim(&e->c, e->c.igraph->symbols.data[item->symbol].definition));
        return;
    }
    if (item->kind == UIR_IITEM_INDEX) {
        emit_index(e, item);
        return;
    }
    const char *when = uir_c_condition(&e->c, &item->guard);
    if (when) uir_c_open(&e->c, "if (%s)", when);
    if (item->kind == UIR_IITEM_INSTRUCTION)
        emit_instruction(e, &e->c.igraph->instructions.data[item->instruction]);
    else if (item->kind == UIR_IITEM_RUN)
        emit_members(e, item);
    else
        emit_items(e, item->first_child);
    if (when) uir_c_close(&e->c);
}

/* The instruction that an item is, by itself or as a run; NULL: it is none, or more. */
static const uir_iinstruction *only_instruction(const emitter *e, uint32_t index) {
    const uir_iitem *item = &e->c.igraph->items.data[index];
    if (item->guard.count) return NULL;
    if (item->kind == UIR_IITEM_RUN && item->first_child != NONE) {
        item = &e->c.igraph->items.data[item->first_child];
        if (item->next != NONE || item->guard.count) return NULL;
    }
    return item->kind == UIR_IITEM_INSTRUCTION ? &e->c.igraph->instructions.data[item->instruction] : NULL;
}

/* The same elements: of a box, or of a window that goes along the dims of one. */
static bool covers_same(emitter *e, const uir_islice *box, const uir_islice *slice) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[box->pointer];
    if (box->pointer != slice->pointer || box->window || box->block || slice->block || box->rank != p->rank)
        return false;
    if (!slice->window) {
        for (uint32_t d = 0; d < box->rank; d++)
            if (!uir_dim_equal(box->starts[d], slice->starts[d]) || !uir_dim_equal(box->counts[d], slice->counts[d]))
                return false;
        return slice->rank == box->rank;
    }
    if (slice->axis_count != p->rank) return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        uir_dim axis = uir_dim_symbol(e->c.igraph->dims, (uir_symbol){slice->axes[d].symbol});
        if (!uir_c_dim_is(&e->c, box->starts[d], 0) || !uir_dim_equal(slice->starts[d], axis) ||
            !uir_dim_equal(slice->axes[d].extent, box->counts[d]))
            return false;
    }
    return true;
}

/* A fill with zeros of the sums that an mma right after it adds to is not made: the mma begins with zeros. What stands
 * between them works on other pointers. */
static bool begins_sums(emitter *e, uint32_t index) {
    const uir_iinstruction *fill = only_instruction(e, index);
    if (!fill || fill->code != UIR_IOP_FILL || fill->immediate != 0) return false;
    for (uint32_t i = e->c.igraph->items.data[index].next; i != NONE; i = e->c.igraph->items.data[i].next) {
        const uir_iinstruction *in = only_instruction(e, i);
        if (in && in->code == UIR_IOP_MMA && in->slices[0].pointer == fill->slices[0].pointer) {
            if (!covers_same(e, &fill->slices[0], &in->slices[0]) || !uir_emit_can_begin(e, in)) return false;
            return e->begins[in - e->c.igraph->instructions.data] = true;
        }
        if (e->c.igraph->items.data[i].kind != UIR_IITEM_RUN && !in) return false;
        uint32_t member = e->c.igraph->items.data[i].kind == UIR_IITEM_RUN ? e->c.igraph->items.data[i].first_child : i;
        for (; member != NONE; member = member == i ? NONE : e->c.igraph->items.data[member].next) {
            const uir_iitem *item = &e->c.igraph->items.data[member];
            if (item->kind != UIR_IITEM_INSTRUCTION) return false;
            const uir_iinstruction *other = &e->c.igraph->instructions.data[item->instruction];
            for (uint32_t k = 0; k < other->slice_count; k++)
                if (other->slices[k].pointer == fill->slices[0].pointer) return false;
        }
    }
    return false;
}

static void emit_items(emitter *e, uint32_t first) {
    for (uint32_t i = first; i != NONE; i = e->c.igraph->items.data[i].next)
        if (!begins_sums(e, i)) emit_item(e, i);
}

/* ---- a phase ---- */
/* A number by itself has no address: the compiler keeps it in a register from one run to the next. */
static bool is_number(emitter *e, uint32_t pointer) {
    const uir_igraph *g = e->c.igraph;
    const uir_ipointer *p = &g->pointers.data[pointer];
    bool alone = p->over == NONE && p->instances == 1;
    for (uint32_t i = 0; i < g->pointers.count && alone; i++) alone = g->pointers.data[i].over != pointer;
    return alone && uir_c_dim_is(&e->c, p->element_span, 1);
}

static void emit_pointer(emitter *e, uint32_t i, const char *from) {
    const char *type = uir_c_type(e->c.igraph->pointers.data[i].dtype), *memory = e->dialect->memory;
    uir_c_line(&e->c, "%s%s *const %s __attribute__((unused)) = %s;", memory, type, e->pointers[i], from);
}

static const char *cast_address(emitter *e, uint32_t i, const char *address) {
    const char *memory = e->dialect->memory;
    return uir_c_format(&e->c, "(%s%s *)(%svoid *)%s", memory, uir_c_type(e->c.igraph->pointers.data[i].dtype), memory,
                        address);
}

static void emit_pointers(emitter *e) {
    const uir_igraph *g = e->c.igraph;
    uint32_t argument = 0;
    const char *at = "0";
    e->dialect->declare_local(e);
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        const char *type = uir_c_type(p->dtype), *name = e->pointers[i];
        uir_c_line(&e->c, "UIR_LET %s_span = uir_max(0, %s);", name, uir_c_dim(&e->c, p->element_span));
        if (p->role != UIR_IPOINTER_LOCAL) {
            emit_pointer(e, i, e->dialect->argument(e, argument++));
            continue;
        }
        if (p->over != NONE) continue;
        if (e->dialect->has_one_memory && is_number(e, i)) {
            uir_c_line(&e->c, "%s %s_number[1] = {0}, *const %s __attribute__((unused)) = %s_number;", type, name, name,
                       name);
            continue;
        }
        emit_pointer(e, i, cast_address(e, i, uir_c_format(&e->c, "(on_chip + %s)", at)));
        uir_c_line(&e->c, "UIR_LET %s_end = %s + (%s_span * %u + 63) / 64 * 64;", name, at, name,
                   (unsigned)(uir_dtype_bits(p->dtype) / 8 * p->instances));
        at = uir_c_format(&e->c, "%s_end", name);
    }
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        if (p->over != NONE) emit_pointer(e, i, cast_address(e, i, e->pointers[p->over]));
    }
}

static void emit_phase(emitter *e, const char *symbol, uint32_t index) {
    const uir_iphase *phase = &e->c.igraph->phases.data[index];
    bool polls = false;
    e->streams = false;
    for (uint32_t b = 0; b < phase->body_count; b++)
        polls |= e->dialect->has_cancel && may_take_long(e, phase->bodies[b].first_item);
    e->dialect->open_phase(e, symbol, index);
    uir_c_sizes(&e->c, "symbols");
    emit_pointers(e);
    uir_c_open(&e->c, "for (int64_t flat = begin; flat < end; flat++)");
    if (polls) emit_poll(e);
    if (phase->parallel_count > 1) uir_c_line(&e->c, "int64_t rest = flat;");
    for (uint32_t a = phase->parallel_count; a-- > 0;) {
        const char *name = e->c.symbols[phase->parallel[a].symbol],
                   *extent = uir_c_dim(&e->c, phase->parallel[a].extent);
        if (phase->parallel_count == 1)
            uir_c_line(&e->c, "UIR_LET %s = flat;", name);
        else if (a == 0)
            uir_c_line(&e->c, "UIR_LET %s = rest;", name);
        else {
            uir_c_line(&e->c, "UIR_LET %s = rest %% (%s);", name, extent);
            uir_c_line(&e->c, "rest /= (%s);", extent);
        }
    }
    for (uint32_t b = 0; b < phase->body_count; b++) {
        const uir_ibody *body = &phase->bodies[b];
        bool counted = body->unit_symbol != NONE;
        if (counted)
            uir_c_open(&e->c, "for (int64_t %s = 0; %s < %u; %s++)", e->c.symbols[body->unit_symbol],
                       e->c.symbols[body->unit_symbol], body->unit_count, e->c.symbols[body->unit_symbol]);
        else
            uir_c_open(&e->c, "%s", "");
        emit_items(e, body->first_item);
        uir_c_close(&e->c);
    }
    uir_c_close(&e->c);
    if (polls) uir_c_line(&e->c, "stopped:;");
    if (e->streams) uir_c_line(&e->c, "uir_fence();");
    uir_c_close(&e->c);
    uir_c_line(&e->c, "%s", "");
}

static uir_status emit_kernel(emitter *e, uint32_t index) {
    const uir_igraph *g = e->c.igraph;
    char symbol[UIR_C_SYMBOL_SIZE];
    UIR_TRY(uir_c_begin(&e->c));
    UIR_TRY_ALLOCATE(e->pointers, uir_arena_allocate_array(&e->c.arena, g->pointers.count + 1, sizeof *e->pointers));
    UIR_TRY_ALLOCATE(e->forwarded, uir_arena_allocate_array(&e->c.arena, g->pointers.count + 1, sizeof *e->forwarded));
    UIR_TRY_ALLOCATE(e->begins, uir_arena_allocate_array(&e->c.arena, g->instructions.count + 1, sizeof *e->begins));
    UIR_TRY(uir_igraph_find_forwarded(g, e->forwarded));
    for (uint32_t i = 0; i < g->pointers.count; i++)
        e->pointers[i] = uir_c_name(&e->c, "p", g->pointers.data[i].name, i);
    uir_c_symbol(g, index, symbol);
    uir_c_line(&e->c, "/* ---- %s ---- */", symbol);
    for (uint32_t p = 0; p < g->phases.count; p++) emit_phase(e, symbol, p);
    return e->c.failed ? UIR_STATUS_OUT_OF_MEMORY : uir_text_status(e->c.text);
}

uir_status uir_vector_emit(const uir_igraph *igraph, const uir_vector_dialect *dialect, uint32_t index, uir_text *text,
                           uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < igraph->pointers.count; i++)
        if (igraph->pointers.data[i].layout.swizzle.bits)
            return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                             "kernel @%s: %%%s is swizzled; the memory of a unit of one thread has no banks",
                             igraph->name, igraph->pointers.data[i].name);
    emitter e = {.c = {.igraph = igraph, .text = text}, .dialect = dialect, .diagnostics = diagnostics};
    uir_arena_init(&e.c.arena, &igraph->allocator);
    uir_status status = emit_kernel(&e, index);
    uir_arena_deinit(&e.c.arena);
    return status;
}
