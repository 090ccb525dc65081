/* An iGraph to C on a machine that does not exist: a snippet for each instruction, operands, and the frame of a kernel.
 * From an instruction to its text is local: nothing looks around in the kernel. */
#include "backends/skeleton/target/skeleton.h"

#include <string.h>

typedef struct emitter {
    uir_c_writer c;
    const char **pointers; /* C name of each pointer */
    uint32_t lists, freed; /* of addresses: made so far, and freed */
} emitter;

/* ---- instructions ---- */
/* What each family is in the machine's language; {WORD} is one of those that `replace` lists. Of a family the second is
 * among the units of a group; of sync they are by kind (UIR_SYNC_*): pipes, a group, none, kinds of units, threads.
 * NULL: the machine has no such instruction. */
static const char *const snippets[][5] = {
    [UIR_IOP_FAMILY_MOVE] = {"/* {source} to {target} */ move(t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_FILL] = {"fill(t_{dtype}, {operands}, {number})"},
    [UIR_IOP_FAMILY_IOTA] = {"iota(t_{dtype}, {operands}, {axis}, {start})"},
    [UIR_IOP_FAMILY_UNARY] = {"{name}(t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_BINARY] = {"{name}(t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_COMPARE] = {"{name}(t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_TERNARY] = {"{name}(t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_CAST] = {"{name}(t_{dtype}, t_{to}, {operands}, {saturate})"},
    [UIR_IOP_FAMILY_BROADCAST] = {"move(t_{dtype}, {operands})", "broadcast_group(u, t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_REDUCE] =
        {"reduce({operation}_of, {identity}, t_{dtype}, {axis}, {operands}, {accumulate})",
         "reduce_group(u, {operation}_of, {identity}, t_{dtype}, {axis}, {operands}, {accumulate})"},
    [UIR_IOP_FAMILY_SCAN] = {"scan({operation}_of, t_{dtype}, {axis}, {operands}, {exclusive})"},
    [UIR_IOP_FAMILY_MMA] = {"mma(t_{dtype}, {operands})"},
    [UIR_IOP_FAMILY_SYNC] = {"wait_pipe(u, {from}, {until}, {distance})", "wait_group(u)", NULL,
                             "wait_kind(u, {from}, {until})", "wait_threads(u)"},
};

static const char *find_snippet(const uir_iinstruction *in) {
    uint32_t kind = in->code == UIR_IOP_SYNC ? in->sync_kind : (uint32_t)in->scope;
    return snippets[uir_iop_get_row(in->code)->family][kind];
}

static const char *print_operands(emitter *e, const uir_iinstruction *in);

static const char *with_underscores(emitter *e, const char *name) {
    const char *dot = strchr(name, '.');
    return dot ? uir_c_format(&e->c, "%.*s_%s", (int)(dot - name), name, dot + 1) : name;
}

/* The space of one of the instruction's slices. */
static const char *space_of(emitter *e, const uir_iinstruction *in, uint32_t slice) {
    const uir_igraph *g = e->c.igraph;
    if (slice >= in->slice_count) return "none";
    return g->machine->spaces[g->pointers.data[in->slices[slice].pointer].space].name;
}

/* The snippet with its words replaced. */
static const char *replace(emitter *e, const char *snippet, const uir_iinstruction *in) {
    static const char *const identities[] = {"ZERO", "ONE", "LEAST", "GREATEST"}; /* by uir_iop_identity */
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    bool repeats = family == UIR_IOP_FAMILY_REDUCE || family == UIR_IOP_FAMILY_SCAN;
    uir_iop_monoid monoid = repeats ? uir_iop_get_monoid(in->code) : (uir_iop_monoid){UIR_IOP_ADD, 0};
    const char *text = "";
    const char *const words[][2] = {
        {"name", with_underscores(e, uir_iop_get_row(in->code)->name)},
        {"dtype", uir_dtype_name(in->dtype)},
        {"to", uir_dtype_name(in->dtype_b)},
        {"operands", print_operands(e, in)},
        {"target", space_of(e, in, 0)},
        {"source", space_of(e, in, 1)},
        {"number", uir_c_real(&e->c, in->immediate)},
        {"axis", in->axis == UIR_IAXIS_COL ? "COL" : "ROW"},
        {"start", in->start.id ? uir_c_dim(&e->c, in->start) : "0"},
        {"operation", strchr(uir_iop_get_row(monoid.operation)->name, '.') + 1},
        {"identity", identities[monoid.identity]},
        {"accumulate", in->accumulate ? "1" : "0"},
        {"exclusive", in->exclusive ? "1" : "0"},
        {"saturate", in->saturate ? "1" : "0"},
        /* numbers of pipes, or of kinds of units, in the description's order */
        {"from", uir_c_format(&e->c, "%u", in->sync_from)},
        {"until", uir_c_format(&e->c, "%u", in->sync_to)},
        {"distance", uir_c_format(&e->c, "%u", in->sync_distance)},
    };
    for (const char *open; (open = strchr(snippet, '{')) != NULL; snippet = strchr(open, '}') + 1) {
        text = uir_c_format(&e->c, "%s%.*s", text, (int)(open - snippet), snippet);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (strlen(words[w][0]) == strcspn(open + 1, "}") && !strncmp(words[w][0], open + 1, strlen(words[w][0])))
                text = uir_c_format(&e->c, "%s%s", text, words[w][1]);
    }
    return uir_c_format(&e->c, "%s%s", text, snippet);
}

/* ---- operands ---- */
static const char *print_dims(emitter *e, const uir_c_view *view) {
    const char *text = view->rank ? "" : ", DIM(1, ALL, {1, 0})";
    for (uint32_t d = 0; d < view->rank; d++) {
        const uir_c_view_dim *dim = &view->dims[d];
        text = uir_c_format(&e->c, "%s, DIM(%s, ", text, uir_c_dim(&e->c, dim->count));
        text = dim->from.id ? uir_c_format(&e->c, "%sPART(%s, %s)", text, uir_c_dim(&e->c, dim->from),
                                           uir_c_dim(&e->c, dim->until))
                            : uir_c_format(&e->c, "%sALL", text);
        for (uint32_t m = 0; m < dim->mode_count; m++)
            text = uir_c_format(&e->c, "%s, {%s, %s}", text, uir_c_dim(&e->c, dim->modes[m].size),
                                uir_c_dim(&e->c, dim->modes[m].stride));
        text = uir_c_format(&e->c, "%s)", text);
    }
    return text;
}

/* Where a slice's elements lie. Where no strides reach them, lines before the instruction list their addresses. */
static const char *print_slice(emitter *e, const uir_islice *slice, bool inside) {
    const uir_ipointer *p = &e->c.igraph->pointers.data[slice->pointer];
    const char *name = e->pointers[slice->pointer], *first = "0", *list = "NULL", *missing;
    uir_c_view view;
    if (uir_c_view_find(&e->c, slice, inside, &view)) {
        first = uir_c_dim(&e->c, view.first);
    } else {
        view = (uir_c_view){.rank = slice->rank};
        for (uint32_t d = 0; d < slice->rank; d++) view.dims[d].count = slice->counts[d];
        list = uir_c_format(&e->c, "a%u", e->lists++);
        uir_c_list(&e->c, slice, inside, list);
    }
    if (p->by_loop != UINT32_MAX) /* of several instances this turn's */
        first = uir_c_sum(
            &e->c, uir_c_format(&e->c, "%s %% %u * %s_span", e->c.symbols[p->by_loop], p->instances, name), first);
    const char *text = uir_c_format(&e->c, "VIEW(%s, %s, %s%s)", name, first, list, print_dims(e, &view));
    if ((missing = uir_c_missing(&e->c, slice)) != NULL) text = uir_c_format(&e->c, "ONLY_IF(%s, %s)", missing, text);
    if (slice->block) text = uir_c_format(&e->c, "REPEATED(%s)", text);
    return slice->has_fill ? uir_c_format(&e->c, "FILLED(%s, %s)", uir_c_real(&e->c, slice->fill), text) : text;
}

static const char *print_operands(emitter *e, const uir_iinstruction *in) {
    const uir_iop_row *row = uir_iop_get_row(in->code);
    const char *text = "", *separator = uir_c_format(&e->c, ",\n%*s", 4 * e->c.indent + 8, "");
    uint32_t slice = 0;
    for (uint32_t k = 0; k < row->results + row->operands; k++) {
        uint32_t operand = k - row->results; /* of a result none: no bit of the mask */
        const char *one;
        if (k >= row->results && (in->immediate_mask >> operand & 1)) {
            uir_dtype dtype = uir_iop_operand_dtype(in->code, in->dtype, operand);
            one = uir_c_format(&e->c, "NUMBER(t_%s, %s)", uir_dtype_name(dtype),
                               uir_c_real(&e->c, in->immediates[operand]));
        } else {
            one = print_slice(e, &in->slices[slice], in->unguarded >> slice & 1);
            slice++;
        }
        text = uir_c_format(&e->c, "%s%s%s", text, k ? separator : "", one);
    }
    return text;
}

/* ---- the leaves of a body's tree ---- */
static void free_lists(emitter *e) {
    for (; e->freed < e->lists; e->freed++) uir_c_line(&e->c, "free(a%u);", e->freed);
}

static void emit_instruction(void *user, const uir_iinstruction *in) {
    emitter *e = user;
    uir_c_line(&e->c, "%s;", replace(e, find_snippet(in), in));
    free_lists(e);
}

static void emit_index(void *user, const uir_iitem *item) {
    emitter *e = user;
    uir_c_index(&e->c, item, uir_c_format(&e->c, "read_index(%s)", print_slice(e, &item->index.slice, false)));
    free_lists(e);
}

/* ---- memory ---- */
/* The places of what is on the chip, one after the other in each space; `ends`: bytes of each space that a unit needs.
 */
static void emit_places(emitter *e, const char *ends[UIR_MACHINE_MAX_SPACES]) {
    const uir_igraph *g = e->c.igraph;
    for (uint32_t s = 0; s < UIR_MACHINE_MAX_SPACES; s++) ends[s] = "0";
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        const uir_space *space = &g->machine->spaces[p->space];
        const char *name = e->pointers[i];
        if (p->role != UIR_IPOINTER_LOCAL) continue;
        uir_c_line(&e->c, "UIR_LET %s_span = uir_max(0, %s);", name, uir_c_dim(&e->c, p->element_span));
        if (p->over != UINT32_MAX) continue; /* it lies where another does */
        uir_c_line(&e->c, "UIR_LET %s_at = %s, %s_end = PLACED(%s_at, %s_span, %u, %u); /* in %s */", name,
                   ends[p->space], name, name, name, uir_dtype_bits(p->dtype) * p->instances, space->alignment,
                   uir_c_name(&e->c, "space", space->name, p->space));
        ends[p->space] = uir_c_format(&e->c, "%s_end", name);
    }
}

static void emit_pointers(emitter *e) {
    const uir_igraph *g = e->c.igraph;
    uint32_t argument = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        const char *dtype = uir_dtype_name(p->dtype), *name = e->pointers[i];
        if (p->role != UIR_IPOINTER_LOCAL)
            uir_c_line(&e->c, "ARRAY %s = {t_%s, u->arguments[%u]};", name, dtype, argument++);
        else
            uir_c_line(&e->c, "ARRAY %s = {t_%s, u->memory[%u] + %s_at};", name, dtype, p->space,
                       e->pointers[uir_igraph_place(g, i)]);
    }
}

/* ---- phases ---- */
static void emit_body(emitter *e, const char *symbol, uint32_t index, const uir_iphase *phase, uint32_t b) {
    const uir_ibody *body = &phase->bodies[b];
    const char *ends[UIR_MACHINE_MAX_SPACES];
    uir_c_open(&e->c, "static void %s_phase%u_%u(unit *u)", symbol, index, b);
    uir_c_sizes(&e->c, "u->sizes");
    emit_places(e, ends);
    emit_pointers(e);
    uir_c_parallel(&e->c, phase, "u->of_groups", "u->in_group");
    if (body->unit_symbol != UINT32_MAX) uir_c_line(&e->c, "UIR_LET %s = u->copy;", e->c.symbols[body->unit_symbol]);
    uir_c_items(&e->c, body->first_item, &(uir_c_leaves){e, emit_instruction, emit_index, NULL, NULL});
    uir_c_close(&e->c);
}

/* The host's part: how many groups and units, who shares which spaces, and what they run. */
static void emit_launch(emitter *e, const char *symbol, uint32_t index,
                        const char *const ends[UIR_MACHINE_MAX_SPACES]) {
    const uir_machine *machine = e->c.igraph->machine;
    const uir_iphase *phase = &e->c.igraph->phases.data[index];
    const char *bodies = "", *spaces = "";
    for (uint32_t s = 0; s < machine->space_count; s++)
        spaces = uir_c_format(&e->c, "%s{%s, %d}, ", spaces, ends[s], machine->spaces[s].scope != UIR_SCOPE_UNIT);
    for (uint32_t b = 0; b < phase->body_count; b++)
        bodies =
            uir_c_format(&e->c, "%s{%s_phase%u_%u, %u, %u}, ", bodies, symbol, index, b, phase->bodies[b].unit_kind,
                         phase->bodies[b].unit_symbol == UINT32_MAX ? 1 : phase->bodies[b].unit_count);
    uir_c_line(&e->c, "launch(sizes, arguments, %s, %s, (room[SPACES]){%s}, (body[]){%s}, %u);",
               uir_c_count(&e->c, phase, true), uir_c_count(&e->c, phase, false), spaces, bodies, phase->body_count);
}

/* ---- the kernel ---- */
static uir_status check(const uir_igraph *g, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < g->instructions.count; i++)
        if (!find_snippet(&g->instructions.data[i]))
            return uir_error(
                diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                "kernel @%s: the machine has no instruction for %s; add a row to snippets[] in the emitter's emit.c",
                g->name, uir_iop_get_row(g->instructions.data[i].code)->name);
    return UIR_STATUS_OK;
}

static uir_status emit_kernel(emitter *e, uint32_t index) {
    const uir_igraph *g = e->c.igraph;
    const char *ends[UIR_MACHINE_MAX_SPACES];
    char symbol[UIR_C_SYMBOL_SIZE];
    UIR_TRY(uir_c_begin(&e->c));
    UIR_TRY_ALLOCATE(e->pointers, uir_arena_allocate_array(&e->c.arena, g->pointers.count + 1, sizeof *e->pointers));
    for (uint32_t i = 0; i < g->pointers.count; i++)
        e->pointers[i] = uir_c_name(&e->c, "p", g->pointers.data[i].name, i);
    uir_c_symbol(g, index, symbol);
    uir_c_line(&e->c, "#include \"machine.h\"");
    for (uint32_t p = 0; p < g->phases.count; p++)
        for (uint32_t b = 0; b < g->phases.data[p].body_count; b++) emit_body(e, symbol, p, &g->phases.data[p], b);
    uir_c_open(&e->c, "void %s(const int64_t *sizes, void *const *arguments)", symbol);
    uir_c_sizes(&e->c, "sizes");
    emit_places(e, ends);
    for (uint32_t p = 0; p < g->phases.count; p++) emit_launch(e, symbol, p, ends);
    uir_c_close(&e->c);
    uir_c_choose(&e->c, uir_c_format(&e->c, "%s_choose", symbol));
    return e->c.failed ? UIR_STATUS_OUT_OF_MEMORY : uir_text_status(e->c.text);
}

uir_status uir_skeleton_emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics) {
    emitter e = {.c = {.igraph = igraph, .text = text}};
    UIR_TRY(check(igraph, diagnostics));
    uir_arena_init(&e.c.arena, &igraph->allocator);
    uir_status status = emit_kernel(&e, index);
    uir_arena_deinit(&e.c.arena);
    return status;
}

const uir_target uir_skeleton_target = {.name = "skeleton", .emit = uir_skeleton_emit};
