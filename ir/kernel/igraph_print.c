/* The iGraph as text. What it prints, igraph_parse.c reads back to the same text. */
#include "ir/kernel/igraph.h"

#include <string.h>

typedef struct printer {
    const uir_igraph *igraph;
    uir_text *text;
    uint32_t depth;
} printer;

static void put(printer *p, const char *string) {
    uir_text_append_string(p->text, string);
}
static void put_dim(printer *p, uir_dim dim) {
    uir_dim_print(p->igraph->dims, dim, p->text);
}
static const char *symbol_name(const printer *p, uint32_t symbol) {
    return p->igraph->symbols.data[symbol].name;
}

static void indent(printer *p) {
    for (uint32_t i = 0; i < p->depth; i++) put(p, "  ");
}

/* Values of fills and immediates: integers without a point. */
static void put_number(printer *p, double value) {
    if (value == (double)(int64_t)(value > -9e15 && value < 9e15 ? value : 0.5) && !(value == 0 && 1 / value < 0))
        uir_text_append_format(p->text, "%lld", (long long)value);
    else
        uir_text_append_double(p->text, value);
}

static void put_dims(printer *p, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) put(p, ", ");
        put_dim(p, dims[i]);
    }
}

static void put_pointer(printer *p, const uir_ipointer *pointer) {
    static const char *const roles[] = {"in", "out", "const", "work", ""};
    uir_text_append_format(p->text, "  ptr   %%%s : %s %s [", pointer->name,
                           p->igraph->machine->spaces[pointer->space].name, uir_dtype_name(pointer->dtype));
    put_dims(p, pointer->extents, pointer->rank);
    put(p, "]");
    uir_layout_print(&pointer->layout, pointer->rank, p->igraph->dims, p->text);
    if (pointer->by_loop != UINT32_MAX)
        uir_text_append_format(p->text, " x%u by %s", pointer->instances, symbol_name(p, pointer->by_loop));
    if (pointer->role != UIR_IPOINTER_LOCAL) uir_text_append_format(p->text, " %s", roles[pointer->role]);
    if (pointer->role < UIR_IPOINTER_WORK) uir_text_append_format(p->text, " %u", pointer->role_index);
    if (pointer->tied != UINT32_MAX)
        uir_text_append_format(p->text, " tied %%%s", p->igraph->pointers.data[pointer->tied].name);
    if (pointer->over != UINT32_MAX)
        uir_text_append_format(p->text, " over %%%s", p->igraph->pointers.data[pointer->over].name);
    put(p, "\n");
}

static void put_relation(printer *p, const uir_condition *condition) {
    put_dim(p, condition->left);
    uir_text_append_format(p->text, " %s ", uir_relation_text(condition->relation));
    put_dim(p, condition->right);
}

static void put_guard(printer *p, const uir_iguard *guard) {
    for (uint32_t i = 0; i < guard->count; i++) {
        const uir_iatom *atom = &guard->atoms[i];
        if (i) put(p, " and ");
        if (atom->kind == UIR_IATOM_RELATION) {
            put_relation(p, &atom->condition);
        } else {
            uir_text_append_format(p->text, "%s%s(%s)", atom->negated ? "not " : "",
                                   atom->kind == UIR_IATOM_FIRST ? "first" : "last", symbol_name(p, atom->loop));
        }
    }
}

static void put_when(printer *p, const uir_iguard *guard) {
    if (guard->count == 0) return;
    put(p, " when ");
    put_guard(p, guard);
}

static void put_window(printer *p, const uir_islice *slice, uint32_t rank) {
    put_dims(p, slice->starts, rank);
    put(p, " ; ");
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uint32_t dim = slice->axes[a].dim;
        bool opens = a == 0 || slice->axes[a - 1].dim != dim;
        bool closes = a + 1 == slice->axis_count || slice->axes[a + 1].dim != dim;
        if (a) put(p, ", ");
        if (opens && !closes) put(p, "(");
        uir_text_append_format(p->text, "%s<", symbol_name(p, slice->axes[a].symbol));
        put_dim(p, slice->axes[a].extent);
        if (closes && !opens) put(p, ")");
    }
}

static void put_slice(printer *p, const uir_islice *slice) {
    const uir_ipointer *pointer = &p->igraph->pointers.data[slice->pointer];
    int64_t one;
    uir_text_append_format(p->text, "%%%s", pointer->name);
    if (!slice->whole) {
        put(p, "[");
        if (slice->window) {
            put_window(p, slice, pointer->rank);
        } else {
            for (uint32_t d = 0; d < slice->rank; d++) {
                if (d) put(p, ", ");
                put_dim(p, slice->starts[d]);
                if (uir_dim_is_const(p->igraph->dims, slice->counts[d], &one) && one == 1) continue;
                put(p, ":");
                put_dim(p, slice->counts[d]);
            }
        }
        put(p, "]");
    }
    if (slice->block) put(p, " block");
    if (slice->has_fill) {
        put(p, " fill ");
        put_number(p, slice->fill);
    }
}

static void put_sync(printer *p, const uir_iinstruction *i) {
    const uir_machine *machine = p->igraph->machine;
    switch (i->sync_kind) {
    case UIR_SYNC_PIPES:
        uir_text_append_format(p->text, "sync.%s.%s", machine->pipes[i->sync_from], machine->pipes[i->sync_to]);
        break;
    case UIR_SYNC_KINDS:
        uir_text_append_format(p->text, "sync.%s.%s", machine->unit_kinds[i->sync_from],
                               machine->unit_kinds[i->sync_to]);
        break;
    default:
        put(p, i->sync_kind == UIR_SYNC_GROUP  ? "sync.group"
               : i->sync_kind == UIR_SYNC_UNIT ? "sync.unit"
                                               : "sync.device");
        break;
    }
    if (i->sync_pointer != UINT32_MAX)
        uir_text_append_format(p->text, " %%%s", p->igraph->pointers.data[i->sync_pointer].name);
    if (i->sync_distance) uir_text_append_format(p->text, " dist %u", i->sync_distance);
}

static void put_mnemonic(printer *p, const uir_iinstruction *i, const uir_iop_row *row) {
    const uir_igraph *g = p->igraph;
    put(p, row->name);
    switch (row->family) {
    case UIR_IOP_FAMILY_MOVE:
        uir_text_append_format(p->text, ".%s.%s", g->machine->spaces[g->pointers.data[i->slices[1].pointer].space].name,
                               g->machine->spaces[g->pointers.data[i->slices[0].pointer].space].name);
        break;
    case UIR_IOP_FAMILY_IOTA:
    case UIR_IOP_FAMILY_BROADCAST:
    case UIR_IOP_FAMILY_REDUCE:
    case UIR_IOP_FAMILY_SCAN:
        put(p, i->axis == UIR_IAXIS_COL ? ".col" : ".row");
        if (row->family != UIR_IOP_FAMILY_IOTA) put(p, i->scope == UIR_SCOPE_GROUP ? ".group" : ".unit");
        break;
    default:
        break;
    }
    uir_text_append_format(p->text, ".%s", uir_dtype_name(i->dtype));
    if (row->family == UIR_IOP_FAMILY_CAST || row->family == UIR_IOP_FAMILY_MMA)
        uir_text_append_format(p->text, ".%s", uir_dtype_name(i->dtype_b));
    if (row->family == UIR_IOP_FAMILY_MMA) uir_text_append_format(p->text, ".%s", uir_dtype_name(i->dtype_c));
}

static void put_instruction(printer *p, const uir_iinstruction *i) {
    const uir_iop_row *row = uir_iop_get_row(i->code);
    if (row->family == UIR_IOP_FAMILY_SYNC) {
        put_sync(p, i);
        return;
    }
    put_mnemonic(p, i, row);
    uint32_t slice = 0;
    for (uint32_t k = 0; k < row->results + row->operands; k++) {
        put(p, k ? ", " : "  ");
        if (k >= row->results && (i->immediate_mask >> (k - row->results) & 1))
            put_number(p, i->immediates[k - row->results]);
        else
            put_slice(p, &i->slices[slice++]);
    }
    if (row->family == UIR_IOP_FAMILY_FILL) {
        put(p, ", ");
        put_number(p, i->immediate);
    }
    if (row->family == UIR_IOP_FAMILY_IOTA) {
        put(p, ", ");
        put_dim(p, i->start);
    }
    if (i->accumulate) put(p, " acc");
    if (i->exclusive) put(p, " exclusive");
    if (i->saturate) put(p, " saturate");
    if (i->has_scratch) {
        put(p, " scratch ");
        put_slice(p, &i->scratch);
    }
    if (i->stream) put(p, " stream");
}

static void put_items(printer *p, uint32_t item);

static void put_block(printer *p, uint32_t first) {
    put(p, " {\n");
    p->depth++;
    put_items(p, first);
    p->depth--;
    indent(p);
    put(p, "}\n");
}

static void put_index(printer *p, const uir_iitem *item) {
    static const char *const modes[] = {"clamp", "wrap", "skip"};
    uir_dims *dims = p->igraph->dims;
    uir_text_append_format(p->text, "index %s = ", symbol_name(p, item->symbol));
    put_slice(p, &item->index.slice);
    put(p, " in 0..");
    put_dim(p, uir_dim_sub(dims, item->index.limit, uir_dim_const(dims, 1)));
    uir_text_append_format(p->text, " %s\n", modes[item->index.mode]);
}

static void put_items(printer *p, uint32_t first) {
    for (uint32_t at = first; at != UINT32_MAX; at = p->igraph->items.data[at].next) {
        const uir_iitem *item = &p->igraph->items.data[at];
        indent(p);
        switch (item->kind) {
        case UIR_IITEM_LOOP:
            uir_text_append_format(p->text, "loop %s : ", symbol_name(p, item->symbol));
            put_dim(p, item->extent);
            put_when(p, &item->guard);
            put_block(p, item->first_child);
            break;
        case UIR_IITEM_IF:
            put(p, "if ");
            put_guard(p, &item->guard);
            put_block(p, item->first_child);
            break;
        case UIR_IITEM_LET:
            uir_text_append_format(p->text, "let %s = ", symbol_name(p, item->symbol));
            put_dim(p, p->igraph->symbols.data[item->symbol].definition);
            put(p, "\n");
            break;
        case UIR_IITEM_INDEX:
            put_index(p, item);
            break;
        case UIR_IITEM_INSTRUCTION:
            put_instruction(p, &p->igraph->instructions.data[item->instruction]);
            put_when(p, &item->guard);
            put(p, "\n");
            break;
        case UIR_IITEM_RUN:
            put(p, "run");
            for (uint32_t i = 0; i < item->dead_count; i++)
                uir_text_append_format(p->text, "%s%%%s", i ? ", " : " dead ",
                                       p->igraph->pointers.data[item->dead[i]].name);
            put_block(p, item->first_child);
            break;
        }
    }
}

/* in 1..64 mult 8, without what every size has anyway. */
static void put_facts(printer *p, uir_symbol_facts facts, int64_t least) {
    if (facts.min != least || facts.max != UIR_DIM_UNBOUNDED) {
        uir_text_append_format(p->text, " in %lld..", (long long)facts.min);
        if (facts.max != UIR_DIM_UNBOUNDED) uir_text_append_format(p->text, "%lld", (long long)facts.max);
    }
    if (facts.multiple_of > 1) uir_text_append_format(p->text, " mult %lld", (long long)facts.multiple_of);
}

/* Lets of the body are items of the tree. */
static bool is_body_let(const uir_igraph *igraph, uint32_t symbol) {
    for (uint32_t i = 0; i < igraph->items.count; i++)
        if (igraph->items.data[i].kind == UIR_IITEM_LET && igraph->items.data[i].symbol == symbol) return true;
    return false;
}

static void put_symbol(printer *p, uint32_t index) {
    const uir_isymbol *symbol = &p->igraph->symbols.data[index];
    uir_symbol_facts facts = uir_dims_symbol_facts(p->igraph->dims, symbol->symbol);
    switch (symbol->kind) {
    case UIR_ISYMBOL_DIM:
        uir_text_append_format(p->text, "  dim   %s", symbol->name);
        put_facts(p, facts, 0);
        break;
    case UIR_ISYMBOL_TILE:
        uir_text_append_format(p->text, "  tile  %s", symbol->name);
        put_facts(p, facts, 1);
        break;
    case UIR_ISYMBOL_CONSTANT:
        uir_text_append_format(p->text, "  dim   %s = ", symbol->name);
        put_dim(p, symbol->definition);
        break;
    case UIR_ISYMBOL_LET:
        if (is_body_let(p->igraph, index)) return;
        uir_text_append_format(p->text, "  let   %s = ", symbol->name);
        put_dim(p, symbol->definition);
        break;
    default:
        return;
    }
    put(p, "\n");
}

static void put_candidate(printer *p, const uir_icandidate *candidate) {
    put(p, "  candidate ");
    uint32_t tile = 0;
    for (uint32_t i = 0; i < p->igraph->symbols.count; i++) {
        if (p->igraph->symbols.data[i].kind != UIR_ISYMBOL_TILE) continue;
        uir_text_append_format(p->text, "%s%s = ", tile ? ", " : "", symbol_name(p, i));
        put_dim(p, candidate->tiles[tile++]);
    }
    put_when(p, &candidate->guard);
    if (candidate->cost.id) {
        put(p, " cost ");
        put_dim(p, candidate->cost);
    }
    if (candidate->units.id) {
        put(p, " units ");
        put_dim(p, candidate->units);
    }
    put(p, "\n");
}

static void put_phase(printer *p, const uir_iphase *phase) {
    put(p, "  phase {\n");
    p->depth = 2;
    for (uint32_t i = 0; i < phase->parallel_count; i++) {
        const uir_iparallel *parallel = &phase->parallel[i];
        uir_text_append_format(p->text, "%s%s : ", i ? ", " : "    parallel ", symbol_name(p, parallel->symbol));
        put_dim(p, parallel->extent);
        if (i + 1 == phase->parallel_count || phase->parallel[i + 1].scope != parallel->scope)
            put(p, parallel->scope == UIR_SCOPE_GROUP ? " group" : " unit");
    }
    if (phase->parallel_count) put(p, "\n");
    for (uint32_t b = 0; b < phase->body_count; b++) {
        const uir_ibody *body = &phase->bodies[b];
        if (!phase->has_kinds) {
            put_items(p, body->first_item);
            continue;
        }
        uir_text_append_format(p->text, "    on %s", p->igraph->machine->unit_kinds[body->unit_kind]);
        if (body->unit_symbol != UINT32_MAX)
            uir_text_append_format(p->text, " %s:%u", symbol_name(p, body->unit_symbol), body->unit_count);
        put_block(p, body->first_item);
    }
    put(p, "  }\n");
}

void uir_igraph_print(const uir_igraph *igraph, uir_text *text) {
    printer p = {igraph, text, 0};
    uir_text_append_format(text, "igraph @%s on %s", igraph->name, igraph->machine->name);
    if (!igraph->machine->is_first_chip) {
        put(&p, " ");
        uir_text_append_quoted(text, igraph->machine->chip, strlen(igraph->machine->chip));
    }
    put(&p, igraph->synchronised ? " synchronised {\n" : " {\n");
    for (uint32_t i = 0; i < igraph->symbols.count; i++) put_symbol(&p, i);
    for (uint32_t i = 0; i < igraph->requires_.count; i++) {
        put(&p, "  require ");
        put_relation(&p, &igraph->requires_.data[i]);
        put(&p, "\n");
    }
    for (uint32_t i = 0; i < igraph->candidates.count; i++) put_candidate(&p, &igraph->candidates.data[i]);
    for (uint32_t i = 0; i < igraph->pointers.count; i++) put_pointer(&p, &igraph->pointers.data[i]);
    for (uint32_t i = 0; i < igraph->phases.count; i++) put_phase(&p, &igraph->phases.data[i]);
    put(&p, "}\n");
}
