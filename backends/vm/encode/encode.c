/* iGraph to bytecode: expressions become postfix programs, everything else keeps its shape. */
#include "backends/vm/encode/encode.h"
#include "backends/vm/bytecode.h"

#include <string.h>

typedef struct encoder {
    const uir_igraph *igraph;
    uir_diagnostics *diagnostics;
    uir_arena arena;
    uint32_t *expression_of; /* per dim handle, + 1; grows with the handles seen */
    uint32_t expression_capacity;
#define VM_TABLE(type, field) uir_vector(type) field;
    VM_TABLES(VM_TABLE)
#undef VM_TABLE
} encoder;

static uir_status refuse(encoder *e, const char *what) {
    return uir_error(e->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "kernel @%s: the VM does not support %s",
                     e->igraph->name, what);
}

/* ---- expressions ---- */
static uir_status push_steps(encoder *e, uir_dim dim, uint32_t depth) {
    const uir_dim_node *node = uir_dim_get(e->igraph->dims, dim);
    if (depth > VM_MAX_STACK) return refuse(e, "expressions nested deeper than its stack");
    if (node->kind == UIR_DIM_CONST || node->kind == UIR_DIM_SYMBOL) {
        return uir_vector_push(&e->arena, &e->steps, ((vm_step){(uint32_t)node->kind, node->value}));
    }
    for (uint32_t i = 0; i < node->count; i++) {
        UIR_TRY(push_steps(e, node->operands[i], depth + 1));
        if (i) UIR_TRY(uir_vector_push(&e->arena, &e->steps, ((vm_step){(uint32_t)node->kind, 0})));
    }
    return UIR_STATUS_OK;
}

static uir_status expression(encoder *e, uir_dim dim, uint32_t *out) {
    *out = VM_NONE;
    if (!dim.id) return UIR_STATUS_OK;
    if (dim.id >= e->expression_capacity) {
        uint32_t grown = dim.id * 2 + 64, *table;
        UIR_TRY_ALLOCATE(table, uir_arena_allocate_array(&e->arena, grown, sizeof *table));
        if (e->expression_capacity) memcpy(table, e->expression_of, e->expression_capacity * sizeof *table);
        e->expression_of = table;
        e->expression_capacity = grown;
    }
    if (!e->expression_of[dim.id]) {
        vm_expression x = {e->steps.count, 0};
        UIR_TRY(push_steps(e, dim, 1));
        x.count = e->steps.count - x.first;
        UIR_TRY(uir_vector_push(&e->arena, &e->expressions, x));
        e->expression_of[dim.id] = e->expressions.count;
    }
    *out = e->expression_of[dim.id] - 1;
    return UIR_STATUS_OK;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- records ---- */
static uir_status add_symbol(encoder *e, const uir_isymbol *s) {
    uir_symbol_facts facts = uir_dims_symbol_facts(e->igraph->dims, s->symbol);
    vm_symbol out = {(uint32_t)s->kind, facts.min, facts.max, facts.multiple_of, VM_NONE};
    if (s->kind == UIR_ISYMBOL_LET || s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE)
        UIR_TRY(expression(e, s->definition, &out.definition));
    return uir_vector_push(&e->arena, &e->symbols, out);
}

static uir_status add_pointer(encoder *e, const uir_ipointer *p) {
    vm_pointer out = {(uint32_t)p->role,
                      (uint32_t)p->dtype,
                      p->rank,
                      p->instances ? p->instances : 1,
                      p->by_loop,
                      p->over,
                      0,
                      {0},
                      {0},
                      {{{0, 0}}}};
    if (uir_dtype_bits(p->dtype) < 8) return refuse(e, "elements of less than a byte");
    if (p->layout.swizzle.bits) return refuse(e, "swizzled layouts");
    UIR_TRY(expression(e, p->element_span, &out.span));
    for (uint32_t d = 0; d < p->rank; d++) {
        UIR_TRY(expression(e, p->extents[d], &out.extents[d]));
        out.mode_counts[d] = p->layout.mode_count[d];
        for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
            UIR_TRY(expression(e, p->layout.modes[d][m].size, &out.modes[d][m].size));
            UIR_TRY(expression(e, p->layout.modes[d][m].stride, &out.modes[d][m].stride));
        }
    }
    return uir_vector_push(&e->arena, &e->pointers, out);
}

static uir_status add_slice(encoder *e, const uir_islice *s, uint32_t *out_index) {
    const uir_ipointer *p = &e->igraph->pointers.data[s->pointer];
    vm_slice out = {
        s->pointer, s->window, s->rank, s->window ? s->axis_count : 0, s->has_fill, s->block, bits_of(s->fill), {0},
        {0},        {0},       {0}};
    for (uint32_t d = 0; d < VM_MAX_RANK; d++) out.starts[d] = VM_NONE;
    for (uint32_t d = 0; d < p->rank; d++) UIR_TRY(expression(e, s->starts[d], &out.starts[d]));
    for (uint32_t d = 0; d < s->rank; d++) UIR_TRY(expression(e, s->counts[d], &out.counts[d]));
    for (uint32_t a = 0; a < out.axis_count; a++) {
        out.axis_symbols[a] = s->axes[a].symbol;
        UIR_TRY(expression(e, s->axes[a].extent, &out.axis_extents[a]));
    }
    *out_index = e->slices.count;
    return uir_vector_push(&e->arena, &e->slices, out);
}

static uir_status add_guard(encoder *e, const uir_iguard *guard, vm_item *item) {
    item->first_atom = e->atoms.count;
    item->atom_count = guard->count;
    for (uint32_t i = 0; i < guard->count; i++) {
        const uir_iatom *a = &guard->atoms[i];
        vm_atom out = {(uint32_t)a->kind, a->negated, a->kind == UIR_IATOM_RELATION ? VM_NONE : a->loop, 0,
                       VM_NONE,           VM_NONE};
        if (a->kind == UIR_IATOM_RELATION) {
            out.relation = (uint32_t)a->condition.relation;
            UIR_TRY(expression(e, a->condition.left, &out.left));
            UIR_TRY(expression(e, a->condition.right, &out.right));
        }
        UIR_TRY(uir_vector_push(&e->arena, &e->atoms, out));
    }
    return UIR_STATUS_OK;
}

static uir_status add_instruction(encoder *e, const uir_iinstruction *in) {
    vm_instruction out = {(uint32_t)in->code,     (uint32_t)in->dtype,
                          (uint32_t)in->dtype_b,  (uint32_t)in->dtype_c,
                          (uint32_t)in->axis,     0,
                          in->slice_count,        VM_NONE,
                          in->immediate_mask,     {0},
                          bits_of(in->immediate), {0}};
    out.flags = (in->accumulate ? VM_FLAG_ACCUMULATE : 0) | (in->exclusive ? VM_FLAG_EXCLUSIVE : 0) |
                (in->saturate ? VM_FLAG_SATURATE : 0);
    if (in->code == UIR_IOP_IOTA) UIR_TRY(expression(e, in->start, &out.start));
    for (uint32_t i = 0; i < 3; i++) out.immediates[i] = bits_of(in->immediates[i]);
    for (uint32_t i = 0; i < in->slice_count; i++) UIR_TRY(add_slice(e, &in->slices[i], &out.slices[i]));
    return uir_vector_push(&e->arena, &e->instructions, out);
}

static uir_status add_item(encoder *e, const uir_iitem *item) {
    vm_item out = {.kind = (uint32_t)item->kind,
                   .symbol = VM_NONE,
                   .extent = VM_NONE,
                   .instruction = VM_NONE,
                   .slice = VM_NONE,
                   .limit = VM_NONE,
                   .named_ends = item->named_ends,
                   .first_child = item->first_child,
                   .next = item->next};
    UIR_TRY(add_guard(e, &item->guard, &out));
    switch (item->kind) {
    case UIR_IITEM_LOOP:
        out.symbol = item->symbol;
        UIR_TRY(expression(e, item->extent, &out.extent));
        break;
    case UIR_IITEM_LET:
        out.symbol = item->symbol;
        break;
    case UIR_IITEM_INDEX:
        out.symbol = item->symbol;
        out.mode = (uint32_t)item->index.mode;
        UIR_TRY(expression(e, item->index.limit, &out.limit));
        UIR_TRY(add_slice(e, &item->index.slice, &out.slice));
        break;
    case UIR_IITEM_INSTRUCTION:
        out.instruction = item->instruction;
        break;
    case UIR_IITEM_IF:
    case UIR_IITEM_RUN:
        break;
    }
    if (item->kind != UIR_IITEM_LOOP && item->kind != UIR_IITEM_IF && item->kind != UIR_IITEM_RUN)
        out.first_child = VM_NONE;
    return uir_vector_push(&e->arena, &e->items, out);
}

static uir_status add_phase(encoder *e, const uir_iphase *phase) {
    bool any_group = false, any_unit = false;
    for (uint32_t a = 0; a < phase->parallel_count; a++) {
        any_group |= phase->parallel[a].scope == UIR_SCOPE_GROUP;
        any_unit |= phase->parallel[a].scope == UIR_SCOPE_UNIT;
    }
    if (phase->body_count != 1 || phase->bodies[0].unit_symbol != UINT32_MAX || (any_group && any_unit))
        return refuse(e, "kernels whose groups have several units");
    vm_phase out = {phase->parallel_count, phase->bodies[0].first_item, {0}, {0}};
    for (uint32_t a = 0; a < phase->parallel_count; a++) {
        out.symbols[a] = phase->parallel[a].symbol;
        UIR_TRY(expression(e, phase->parallel[a].extent, &out.extents[a]));
    }
    return uir_vector_push(&e->arena, &e->phases, out);
}

static uir_status fill_tables(encoder *e) {
    const uir_igraph *g = e->igraph;
    for (uint32_t i = 0; i < g->symbols.count; i++) UIR_TRY(add_symbol(e, &g->symbols.data[i]));
    for (uint32_t i = 0; i < g->requires_.count; i++) {
        vm_condition c = {(uint32_t)g->requires_.data[i].relation, 0, 0};
        UIR_TRY(expression(e, g->requires_.data[i].left, &c.left));
        UIR_TRY(expression(e, g->requires_.data[i].right, &c.right));
        UIR_TRY(uir_vector_push(&e->arena, &e->requires_, c));
    }
    for (uint32_t i = 0; i < g->pointers.count; i++) UIR_TRY(add_pointer(e, &g->pointers.data[i]));
    for (uint32_t i = 0; i < g->instructions.count; i++) UIR_TRY(add_instruction(e, &g->instructions.data[i]));
    for (uint32_t i = 0; i < g->items.count; i++) UIR_TRY(add_item(e, &g->items.data[i]));
    for (uint32_t i = 0; i < g->phases.count; i++) UIR_TRY(add_phase(e, &g->phases.data[i]));
    return UIR_STATUS_OK;
}

/* ---- bytes ---- */
static void put(uir_text *bytes, uint64_t value, int size) {
    char buffer[8];
    for (int i = 0; i < size; i++) buffer[i] = (char)(value >> (8 * i));
    uir_text_append(bytes, buffer, (size_t)size);
}

#define W(field) put(bytes, (uint64_t)(field), 4);
#define Q(field) put(bytes, (uint64_t)(field), 8);

static void write_tables(const encoder *e, uir_text *bytes) {
#define VM_TABLE(type, field)                                                                                          \
    put(bytes, e->field.count, 4);                                                                                     \
    for (uint32_t i = 0; i < e->field.count; i++) {                                                                    \
        const type *r = &e->field.data[i];                                                                             \
        type##_fields(W, Q, r)                                                                                         \
    }
    VM_TABLES(VM_TABLE)
#undef VM_TABLE
}

uir_status uir_vm_encode(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes) {
    encoder e = {.igraph = igraph, .diagnostics = diagnostics};
    uir_arena_init(&e.arena, &igraph->allocator);
    uir_status status = fill_tables(&e);
    if (status == UIR_STATUS_OK) {
        size_t length = strlen(igraph->name);
        if (length > 200) length = 200;
        uir_text_append(bytes, VM_MAGIC, sizeof VM_MAGIC);
        put(bytes, VM_VERSION, 2);
        put(bytes, length, 4);
        uir_text_append(bytes, igraph->name, length);
        write_tables(&e, bytes);
        status = uir_text_status(bytes);
    }
    uir_arena_deinit(&e.arena);
    return status;
}
