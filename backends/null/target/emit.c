/* An iGraph to C on machine.h: the frame of a kernel, its phases, loops and conditions, and a snippet for each
 * instruction. From an instruction to its text is local: nothing looks around in the kernel. */
#include "backends/null/target/emit.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- instructions ---- */
/* What each family is in the machine's language; {words} are those of the table below. Of a family the second is among
 * the units of a group; of sync they are by kind (UIR_SYNC_*): pipes, a group, none, kinds of units. */
static const char *const snippets[][4] = {
    [UIR_IOP_FAMILY_MOVE] = {"move({dtype}, {operands})"},
    [UIR_IOP_FAMILY_FILL] = {"fill({dtype}, {operands}, {number})"},
    [UIR_IOP_FAMILY_IOTA] = {"iota({dtype}, {operands}, {axis}, {start})"},
    [UIR_IOP_FAMILY_UNARY] = {"{name}({dtype}, {operands})"},
    [UIR_IOP_FAMILY_BINARY] = {"{name}({dtype}, {operands})"},
    [UIR_IOP_FAMILY_COMPARE] = {"{name}({dtype}, {operands})"},
    [UIR_IOP_FAMILY_TERNARY] = {"{name}({dtype}, {operands})"},
    [UIR_IOP_FAMILY_CAST] = {"{name}({dtype}, {to}, {operands}, {saturate})"},
    [UIR_IOP_FAMILY_BROADCAST] = {"move({dtype}, {operands})", "broadcast_group(u, {dtype}, {operands})"},
    [UIR_IOP_FAMILY_REDUCE] = {"reduce({operation}, {identity}, {dtype}, {axis}, {operands}, {accumulate})",
                               "reduce_group(u, {operation}, {identity}, {dtype}, {axis}, {operands}, {accumulate})"},
    [UIR_IOP_FAMILY_SCAN] = {"scan({operation}, {dtype}, {axis}, {operands}, {exclusive})"},
    [UIR_IOP_FAMILY_MMA] = {"mma({dtype}, {operands})"},
    [UIR_IOP_FAMILY_SYNC] = {"wait_pipe(u, {from}, {until}, {distance})", "wait_group(u)", NULL,
                             "wait_kind(u, {from}, {until})"},
};

static const char *name_of(emitter *e, const uir_iinstruction *in) {
    char name[64];
    size_t length = 0;
    for (const char *c = uir_iop_get_row(in->code)->name; *c && length + 1 < sizeof name; c++)
        name[length++] = *c == '.' ? '_' : *c;
    name[length] = 0;
    return uir_c_format(&e->c, "%s", name);
}

static const char *dtype_of(emitter *e, const uir_iinstruction *in) {
    return uir_c_format(&e->c, "t_%s", uir_dtype_name(in->dtype));
}

static const char *to_of(emitter *e, const uir_iinstruction *in) {
    return uir_c_format(&e->c, "t_%s", uir_dtype_name(in->dtype_b));
}

const char *uir_null_number(emitter *e, double value) {
    char text[UIR_NUMBER_TEXT_SIZE];
    if (value != value) return "NAN";
    if (value - value != 0) return value < 0 ? "-INFINITY" : "INFINITY";
    uir_double_to_text(value, text);
    return uir_c_format(&e->c, "%s", text);
}

static const char *operands_of(emitter *e, const uir_iinstruction *in) {
    const uir_iop_row *row = uir_iop_get_row(in->code);
    const char *text = "", *separator = uir_c_format(&e->c, ",\n%*s", 4 * e->c.indent + 8, "");
    uint32_t slice = 0;
    for (uint32_t k = 0; k < row->results + row->operands; k++) {
        uint32_t operand = k - row->results; /* where it is none, no bit of the mask */
        const char *one;
        if (k >= row->results && (in->immediate_mask >> operand & 1)) {
            uir_dtype dtype = uir_iop_operand_dtype(in->code, in->dtype, operand);
            one = uir_c_format(&e->c, "NUMBER(t_%s, %s)", uir_dtype_name(dtype),
                               uir_null_number(e, in->immediates[operand]));
        } else {
            one = uir_null_operand(e, &in->slices[slice], in->unguarded >> slice & 1);
            slice++;
        }
        text = uir_c_format(&e->c, "%s%s%s", text, k ? separator : "", one);
    }
    return text;
}

static const char *number_of(emitter *e, const uir_iinstruction *in) {
    return uir_null_number(e, in->immediate);
}

static const char *axis_of(emitter *e, const uir_iinstruction *in) {
    (void)e;
    return in->axis == UIR_IAXIS_COL ? "COL" : "ROW";
}

static const char *start_of(emitter *e, const uir_iinstruction *in) {
    return uir_c_dim(&e->c, in->start);
}

/* What a reduction or scan repeats: "add_of". */
static const char *operation_of(emitter *e, const uir_iinstruction *in) {
    const char *name = uir_iop_get_row(uir_iop_get_monoid(in->code).operation)->name;
    return uir_c_format(&e->c, "%s_of", strchr(name, '.') + 1);
}

static const char *identity_of(emitter *e, const uir_iinstruction *in) {
    static const char *const names[] = {"ZERO", "ONE", "LEAST", "GREATEST"}; /* by uir_iop_identity */
    (void)e;
    return names[uir_iop_get_monoid(in->code).identity];
}

static const char *accumulate_of(emitter *e, const uir_iinstruction *in) {
    (void)e;
    return in->accumulate ? "1" : "0";
}

static const char *exclusive_of(emitter *e, const uir_iinstruction *in) {
    (void)e;
    return in->exclusive ? "1" : "0";
}

static const char *saturate_of(emitter *e, const uir_iinstruction *in) {
    (void)e;
    return in->saturate ? "1" : "0";
}

static const char *from_of(emitter *e, const uir_iinstruction *in) {
    return uir_c_format(&e->c, "%u", in->sync_from);
}

static const char *until_of(emitter *e, const uir_iinstruction *in) {
    return uir_c_format(&e->c, "%u", in->sync_to);
}

static const char *distance_of(emitter *e, const uir_iinstruction *in) {
    return uir_c_format(&e->c, "%u", in->sync_distance);
}

static const struct word {
    const char *name;
    const char *(*text)(emitter *e, const uir_iinstruction *in);
} words[] = {
    {"name", name_of},
    {"dtype", dtype_of},
    {"to", to_of},
    {"operands", operands_of},
    {"number", number_of},
    {"axis", axis_of},
    {"start", start_of},
    {"operation", operation_of},
    {"identity", identity_of},
    {"accumulate", accumulate_of},
    {"exclusive", exclusive_of},
    {"saturate", saturate_of},
    {"from", from_of},
    {"until", until_of},
    {"distance", distance_of},
};

/* The snippet with its words replaced. */
static const char *fill_in(emitter *e, const char *snippet, const uir_iinstruction *in) {
    const char *text = "";
    for (const char *open; (open = strchr(snippet, '{')) != NULL; snippet = strchr(open, '}') + 1) {
        text = uir_c_format(&e->c, "%s%.*s", text, (int)(open - snippet), snippet);
        size_t length = strcspn(open + 1, "}");
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (strlen(words[w].name) == length && !memcmp(words[w].name, open + 1, length))
                text = uir_c_format(&e->c, "%s%s", text, words[w].text(e, in));
    }
    return uir_c_format(&e->c, "%s%s", text, snippet);
}

static const char *find_snippet(const uir_iinstruction *in) {
    uint32_t kind = in->code == UIR_IOP_SYNC ? in->sync_kind : (uint32_t)in->scope;
    return snippets[uir_iop_get_row(in->code)->family][kind];
}

static void free_lists(emitter *e) {
    for (; e->freed < e->lists; e->freed++) uir_c_line(&e->c, "free(a%u);", e->freed);
}

/* ---- the tree ---- */
static void emit_items(emitter *e, uint32_t first);

static void emit_loop(emitter *e, const uir_iitem *item) {
    const char *i = e->c.symbols[item->symbol], *when = uir_c_condition(&e->c, &item->guard);
    const char *extent = uir_c_dim(&e->c, item->extent);
    if (item->named_ends) extent = uir_c_format(&e->c, "uir_max(1, %s)", extent);
    uir_c_open(&e->c, "for (int64_t %s = 0, %s_trips = %s; %s < %s_trips; %s++)", i, i, extent, i, i, i);
    if (when) uir_c_line(&e->c, "if (!(%s)) continue;", when);
    emit_items(e, item->first_child);
    uir_c_close(&e->c);
}

static void emit_item(emitter *e, const uir_iitem *item) {
    const uir_igraph *g = e->c.igraph;
    const char *when = item->kind == UIR_IITEM_LOOP ? NULL : uir_c_condition(&e->c, &item->guard);
    if (when) uir_c_open(&e->c, "if (%s)", when);
    switch (item->kind) {
    case UIR_IITEM_LOOP:
        emit_loop(e, item);
        break;
    case UIR_IITEM_LET:
        uir_c_line(&e->c, "UIR_LET %s = %s;", e->c.symbols[item->symbol],
                   uir_c_dim(&e->c, g->symbols.data[item->symbol].definition));
        break;
    case UIR_IITEM_INDEX:
        uir_c_index(&e->c, item, uir_c_format(&e->c, "read_index(%s)", uir_null_operand(e, &item->index.slice, false)));
        break;
    case UIR_IITEM_INSTRUCTION: {
        const uir_iinstruction *in = &g->instructions.data[item->instruction];
        uir_c_line(&e->c, "%s;", fill_in(e, find_snippet(in), in));
        break;
    }
    case UIR_IITEM_IF:
    case UIR_IITEM_RUN: /* what a run computes may stay in registers: this machine has none */
        emit_items(e, item->first_child);
    }
    free_lists(e);
    if (when) uir_c_close(&e->c);
}

static void emit_items(emitter *e, uint32_t first) {
    for (uint32_t i = first; i != NONE; i = e->c.igraph->items.data[i].next) emit_item(e, &e->c.igraph->items.data[i]);
}

/* ---- memory ---- */
/* The places of what is on the chip, one after the other in each space; `ends`: of what a unit has and of what a group
 * shares, bytes of each space. */
static void emit_places(emitter *e, const char *ends[2][UIR_DEVICE_MAX_SPACES]) {
    const uir_igraph *g = e->c.igraph;
    for (uint32_t s = 0; s < 2 * UIR_DEVICE_MAX_SPACES; s++)
        ends[s / UIR_DEVICE_MAX_SPACES][s % UIR_DEVICE_MAX_SPACES] = "0";
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        const uir_space *space = &g->device->spaces[p->space];
        const char **end = &ends[space->scope != UIR_SCOPE_UNIT][p->space], *name = e->pointers[i];
        if (p->role != UIR_IPOINTER_LOCAL) continue;
        uir_c_line(&e->c, "UIR_LET %s_span = uir_max(0, %s);", name, uir_c_dim(&e->c, p->element_span));
        if (p->over != NONE) continue;
        uir_c_line(&e->c, "UIR_LET %s_at = %s, %s_end = %s_at + (%s_span * %u + %u) / %u * %u; /* %s */", name, *end,
                   name, name, name, uir_dtype_bits(p->dtype) * p->instances, 8 * space->alignment - 1,
                   8 * space->alignment, space->alignment, uir_c_name(&e->c, "in", space->name, p->space));
        *end = uir_c_format(&e->c, "%s_end", name);
    }
}

static void emit_pointers(emitter *e) {
    const uir_igraph *g = e->c.igraph;
    uint32_t argument = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        const char *dtype = uir_dtype_name(p->dtype), *place = e->pointers[uir_igraph_place(g, i)];
        if (p->role != UIR_IPOINTER_LOCAL)
            uir_c_line(&e->c, "ARRAY %s = {t_%s, u->arguments[%u]};", e->pointers[i], dtype, argument++);
        else
            uir_c_line(&e->c, "ARRAY %s = {t_%s, u->%smemory[%u] + %s_at};", e->pointers[i], dtype,
                       g->device->spaces[p->space].scope == UIR_SCOPE_UNIT ? "" : "group->", p->space, place);
    }
}

/* ---- phases ---- */
/* Whether an axis counts groups: those that say so, or all where none does. */
static bool counts_groups(const uir_iphase *phase, uint32_t axis) {
    bool any = false;
    for (uint32_t a = 0; a < phase->parallel_count; a++) any |= phase->parallel[a].scope == UIR_SCOPE_GROUP;
    return !any || phase->parallel[axis].scope == UIR_SCOPE_GROUP;
}

static void emit_body(emitter *e, const char *symbol, uint32_t index, const uir_iphase *phase, uint32_t b) {
    const uir_ibody *body = &phase->bodies[b];
    const char *ends[2][UIR_DEVICE_MAX_SPACES];
    uir_c_open(&e->c, "static void %s_phase%u_%u(unit *u)", symbol, index, b);
    uir_c_sizes(&e->c, "u->sizes");
    emit_places(e, ends);
    emit_pointers(e);
    uir_c_line(&e->c, "int64_t of_groups = u->of_groups, in_group = u->in_group;");
    for (uint32_t a = phase->parallel_count; a-- > 0;) {
        const char *rest = counts_groups(phase, a) ? "of_groups" : "in_group";
        const char *extent = uir_c_dim(&e->c, phase->parallel[a].extent);
        uir_c_line(&e->c, "UIR_LET %s = %s %% (%s);", e->c.symbols[phase->parallel[a].symbol], rest, extent);
        uir_c_line(&e->c, "%s /= %s;", rest, extent[0] == '(' ? extent : uir_c_format(&e->c, "(%s)", extent));
    }
    if (body->unit_symbol != NONE) uir_c_line(&e->c, "UIR_LET %s = u->copy;", e->c.symbols[body->unit_symbol]);
    uir_c_line(&e->c, "(void)of_groups, (void)in_group;");
    emit_items(e, body->first_item);
    uir_c_close(&e->c);
}

/* The host's part: how many groups and units, and the memory of each. */
static void emit_launch(emitter *e, const char *symbol, uint32_t index, const char *ends[2][UIR_DEVICE_MAX_SPACES]) {
    const uir_iphase *phase = &e->c.igraph->phases.data[index];
    const char *counts[2] = {"1", "1"}, *bodies = "", *bytes[2] = {"", ""};
    for (uint32_t a = 0; a < phase->parallel_count; a++) {
        const char **count = &counts[!counts_groups(phase, a)];
        *count = uir_c_format(&e->c, "%s * uir_max(0, %s)", *count, uir_c_dim(&e->c, phase->parallel[a].extent));
    }
    for (uint32_t s = 0; s < 2 * UIR_DEVICE_MAX_SPACES; s++) {
        const char **text = &bytes[s / UIR_DEVICE_MAX_SPACES];
        *text = uir_c_format(&e->c, "%s%s%s", *text, **text ? ", " : "",
                             ends[s / UIR_DEVICE_MAX_SPACES][s % UIR_DEVICE_MAX_SPACES]);
    }
    for (uint32_t b = 0; b < phase->body_count; b++)
        bodies =
            uir_c_format(&e->c, "%s{%s_phase%u_%u, %u, %u}, ", bodies, symbol, index, b, phase->bodies[b].unit_kind,
                         phase->bodies[b].unit_symbol == NONE ? 1 : phase->bodies[b].unit_count);
    uir_c_line(&e->c, "launch(sizes, arguments, %s, %s, (int64_t[]){%s}, (int64_t[]){%s}, (body[]){%s}, %u);",
               counts[0], counts[1], bytes[0], bytes[1], bodies, phase->body_count);
}

/* ---- the kernel ---- */
void uir_null_symbol(const uir_igraph *igraph, uint32_t index, char out[UIR_NULL_SYMBOL_SIZE]) {
    int used = snprintf(out, UIR_NULL_SYMBOL_SIZE, "k%u_", index);
    for (const char *c = igraph->name; *c && used < UIR_NULL_SYMBOL_SIZE - 16; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        out[used++] = plain ? *c : '_';
    }
    out[used] = 0;
}

static uir_status check(const uir_igraph *g, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < g->instructions.count; i++)
        if (!find_snippet(&g->instructions.data[i]))
            return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                             "kernel @%s: the machine has no instruction for %s among units; its table is snippets[] "
                             "in its emit.c",
                             g->name, uir_iop_get_row(g->instructions.data[i].code)->name);
    return UIR_STATUS_OK;
}

static uir_status emit_kernel(emitter *e, uint32_t index) {
    const uir_igraph *g = e->c.igraph;
    const char *ends[2][UIR_DEVICE_MAX_SPACES];
    UIR_TRY(uir_c_begin(&e->c));
    UIR_TRY_ALLOCATE(e->pointers, uir_arena_allocate_array(&e->c.arena, g->pointers.count + 1, sizeof *e->pointers));
    for (uint32_t i = 0; i < g->pointers.count; i++)
        e->pointers[i] = uir_c_name(&e->c, "p", g->pointers.data[i].name, i);
    char symbol[UIR_NULL_SYMBOL_SIZE];
    uir_null_symbol(g, index, symbol);
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

uir_status uir_null_emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics) {
    emitter e = {.c = {.igraph = igraph, .text = text}};
    UIR_TRY(check(igraph, diagnostics));
    uir_arena_init(&e.c.arena, &igraph->allocator);
    uir_status status = emit_kernel(&e, index);
    uir_arena_deinit(&e.c.arena);
    return status;
}
