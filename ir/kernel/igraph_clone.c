/* Copies of kernels: every symbol declared anew, in the order in which a reader of the text meets it. */
#include "ir/kernel/igraph.h"

#include <string.h>

typedef struct cloner {
    const uir_igraph *from;
    uir_igraph *to;
    uir_arena *scratch;
    uir_dim *dims;     /* by symbol of `from`: what stands for it; NONE: it is not known where the walk is */
    uint32_t *symbols; /* likewise: its index in `to`; UINT32_MAX: not declared yet */
    uint32_t *known;   /* symbols of the blocks around the walk, innermost last */
    uint32_t known_count;
    uir_status status; /* the first failure; everything after it does nothing */
} cloner;

static void fail(cloner *c, uir_status status) {
    if (c->status == UIR_STATUS_OK) c->status = status;
}

static uir_dim copy_dim(cloner *c, uir_dim dim);

static void declare(cloner *c, uint32_t index) {
    const uir_isymbol *s = &c->from->symbols.data[index];
    bool sized = s->kind == UIR_ISYMBOL_DIM || s->kind == UIR_ISYMBOL_TILE || s->kind == UIR_ISYMBOL_LOOP;
    uir_symbol_facts facts = uir_dims_symbol_facts(c->from->dims, s->symbol);
    facts.bound = copy_dim(c, facts.bound);
    uir_dim definition = copy_dim(c, s->definition);
    /* A slice that several instructions have in common has axes of its own in each; all else is declared once. */
    if (c->symbols[index] != UINT32_MAX && s->kind != UIR_ISYMBOL_AXIS) fail(c, UIR_STATUS_INTERNAL);
    if (c->status != UIR_STATUS_OK) return;
    c->status = uir_igraph_add_symbol(c->to, s->name, strlen(s->name), s->kind, sized ? &facts : NULL, definition,
                                      &c->symbols[index]);
    if (c->status != UIR_STATUS_OK) return;
    c->dims[index] = uir_igraph_symbol_dim(c->to, c->symbols[index]);
    if (!c->dims[index].id) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    if (s->kind != UIR_ISYMBOL_DEVICE) c->known[c->known_count++] = index;
}

/* What was declared since then is not known any more. */
static void forget(cloner *c, uint32_t mark) {
    while (c->known_count > mark) c->dims[c->known[--c->known_count]] = UIR_DIM_NONE;
}

/* What the device says of itself is declared where it is used first. */
static void meet_symbol(void *user, uir_symbol symbol) {
    cloner *c = user;
    if (symbol.id >= c->from->symbols.count)
        fail(c, UIR_STATUS_INTERNAL);
    else if (!c->dims[symbol.id].id && c->from->symbols.data[symbol.id].kind == UIR_ISYMBOL_DEVICE)
        declare(c, symbol.id);
    else if (!c->dims[symbol.id].id)
        fail(c, UIR_STATUS_INTERNAL); /* used where it is not known */
}

static uir_dim copy_dim(cloner *c, uir_dim dim) {
    if (!dim.id || c->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    uir_dim_visit_symbols(c->from->dims, dim, meet_symbol, c);
    if (c->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    uir_dim copy = uir_dim_copy(c->from->dims, dim, c->to->dims, c->dims, c->from->symbols.count);
    if (!copy.id) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    return copy;
}

static uint32_t declare_symbol(cloner *c, uint32_t index) {
    if (index == UINT32_MAX || c->status != UIR_STATUS_OK) return UINT32_MAX;
    declare(c, index);
    return c->symbols[index];
}

static uint32_t copy_loop(cloner *c, uint32_t index, bool around) {
    if (index == UINT32_MAX || c->status != UIR_STATUS_OK) return UINT32_MAX;
    if (c->symbols[index] == UINT32_MAX || (around && !c->dims[index].id)) fail(c, UIR_STATUS_INTERNAL);
    return c->symbols[index];
}

static uir_condition copy_condition(cloner *c, uir_condition condition) {
    uir_dim left = copy_dim(c, condition.left);
    return (uir_condition){condition.relation, left, copy_dim(c, condition.right)};
}

static uir_iguard copy_guard(cloner *c, const uir_iguard *guard) {
    if (!guard->count || c->status != UIR_STATUS_OK) return (uir_iguard){0};
    uir_iatom *atoms = uir_arena_copy(&c->to->arena, guard->atoms, guard->count * sizeof *atoms);
    if (!atoms) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < guard->count && c->status == UIR_STATUS_OK; i++) {
        if (atoms[i].kind == UIR_IATOM_RELATION)
            atoms[i].condition = copy_condition(c, atoms[i].condition);
        else
            atoms[i].loop = copy_loop(c, atoms[i].loop, true);
    }
    return (uir_iguard){atoms, guard->count};
}

/* ---- the header ---- */
static void copy_candidate(cloner *c, const uir_icandidate *candidate) {
    uint32_t tiles = uir_igraph_count_symbols(c->from, UIR_ISYMBOL_TILE);
    uir_icandidate copy = {.line = candidate->line};
    copy.tiles = uir_arena_allocate_array(&c->to->arena, tiles + 1, sizeof *copy.tiles);
    if (!copy.tiles) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t t = 0; t < tiles && c->status == UIR_STATUS_OK; t++) copy.tiles[t] = copy_dim(c, candidate->tiles[t]);
    copy.guard = copy_guard(c, &candidate->guard);
    copy.cost = copy_dim(c, candidate->cost);
    copy.units = copy_dim(c, candidate->units);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->candidates, copy);
}

static uir_dim copy_layout_dim(void *user, uir_dim dim) {
    return copy_dim(user, dim);
}

static void copy_pointer(cloner *c, const uir_ipointer *pointer) {
    uir_ipointer copy = *pointer;
    copy.name = uir_arena_copy_string(&c->to->arena, pointer->name, strlen(pointer->name));
    if (!copy.name) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t d = 0; d < pointer->rank; d++) copy.extents[d] = copy_dim(c, pointer->extents[d]);
    uir_layout_copy(&pointer->layout, pointer->rank, copy_layout_dim, c, &copy.layout);
    /* What it is a copy of was finished, so that nothing overflows. */
    if (c->status == UIR_STATUS_OK && uir_igraph_finish_pointer(c->to, &copy) != UIR_STATUS_OK)
        fail(c, UIR_STATUS_OUT_OF_MEMORY);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->pointers, copy);
}

static void copy_header(cloner *c) {
    const uir_igraph *g = c->from;
    uint8_t *inside = uir_arena_allocate_array(c->scratch, (size_t)g->symbols.count + 1, 1);
    if (!inside) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < g->items.count && inside; i++)
        if (g->items.data[i].kind == UIR_IITEM_LET) inside[g->items.data[i].symbol] = 1;
    for (uint32_t i = 0; i < g->symbols.count && c->status == UIR_STATUS_OK; i++) {
        uir_isymbol_kind kind = g->symbols.data[i].kind;
        if (kind == UIR_ISYMBOL_DIM || kind == UIR_ISYMBOL_TILE || kind == UIR_ISYMBOL_CONSTANT ||
            (kind == UIR_ISYMBOL_LET && !inside[i]))
            declare(c, i);
    }
    for (uint32_t i = 0; i < g->requires_.count && c->status == UIR_STATUS_OK; i++) {
        uir_condition copy = copy_condition(c, g->requires_.data[i]);
        if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->requires_, copy);
    }
    for (uint32_t i = 0; i < g->candidates.count && c->status == UIR_STATUS_OK; i++)
        copy_candidate(c, &g->candidates.data[i]);
    for (uint32_t i = 0; i < g->pointers.count && c->status == UIR_STATUS_OK; i++)
        copy_pointer(c, &g->pointers.data[i]);
}

/* ---- the tree ---- */
static void copy_slice(cloner *c, const uir_islice *slice, uir_islice *copy) {
    uint32_t rank = c->from->pointers.data[slice->pointer].rank, mark = c->known_count;
    *copy = *slice;
    copy->axes =
        slice->axis_count ? uir_arena_allocate_array(&c->to->arena, slice->axis_count, sizeof *copy->axes) : NULL;
    if (slice->axis_count && !copy->axes) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t a = 0; a < slice->axis_count && copy->axes; a++) {
        copy->axes[a].dim = slice->axes[a].dim;
        copy->axes[a].extent = copy_dim(c, slice->axes[a].extent);
        copy->axes[a].symbol = declare_symbol(c, slice->axes[a].symbol);
    }
    for (uint32_t d = 0; d < slice->rank; d++) copy->counts[d] = copy_dim(c, slice->counts[d]);
    for (uint32_t d = 0; d < rank; d++) copy->starts[d] = copy_dim(c, slice->starts[d]);
    forget(c, mark);
}

static uint32_t copy_instruction(cloner *c, const uir_iinstruction *instruction) {
    uir_iinstruction copy = *instruction;
    for (uint32_t k = 0; k < instruction->slice_count; k++) copy_slice(c, &instruction->slices[k], &copy.slices[k]);
    copy.start = copy_dim(c, instruction->start);
    if (instruction->has_scratch) copy_slice(c, &instruction->scratch, &copy.scratch);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->instructions, copy);
    return c->to->instructions.count - 1;
}

static uint32_t copy_items(cloner *c, uint32_t first);

static void copy_item(cloner *c, const uir_iitem *item, uir_iitem *copy) {
    switch (item->kind) {
    case UIR_IITEM_LOOP:
        copy->extent = copy_dim(c, item->extent);
        copy->symbol = declare_symbol(c, item->symbol);
        break;
    case UIR_IITEM_LET:
        copy->symbol = declare_symbol(c, item->symbol);
        break;
    case UIR_IITEM_INDEX:
        copy_slice(c, &item->index.slice, &copy->index.slice);
        copy->index.limit = copy_dim(c, item->index.limit);
        copy->symbol = declare_symbol(c, item->symbol);
        break;
    case UIR_IITEM_INSTRUCTION:
        copy->instruction = copy_instruction(c, &c->from->instructions.data[item->instruction]);
        break;
    case UIR_IITEM_RUN:
        copy->dead = uir_arena_copy(&c->to->arena, item->dead, item->dead_count * sizeof *item->dead);
        if (item->dead_count && !copy->dead) fail(c, UIR_STATUS_OUT_OF_MEMORY);
        break;
    case UIR_IITEM_IF:
        break;
    }
    copy->guard = copy_guard(c, &item->guard);
    copy->first_child = copy_items(c, item->first_child);
}

static uint32_t copy_items(cloner *c, uint32_t first) {
    uint32_t result = UINT32_MAX, before = UINT32_MAX, mark = c->known_count;
    for (uint32_t at = first; at != UINT32_MAX && c->status == UIR_STATUS_OK; at = c->from->items.data[at].next) {
        uint32_t id = c->to->items.count, outside = c->known_count;
        uir_iitem copy = c->from->items.data[at];
        copy.next = UINT32_MAX;
        c->status = uir_vector_push(&c->to->arena, &c->to->items, copy);
        if (c->status != UIR_STATUS_OK) break;
        copy_item(c, &c->from->items.data[at], &copy);
        if (copy.kind == UIR_IITEM_LOOP) forget(c, outside); /* its index is known in it alone */
        c->to->items.data[id] = copy;
        if (before == UINT32_MAX)
            result = id;
        else
            c->to->items.data[before].next = id;
        before = id;
    }
    forget(c, mark);
    return result;
}

static void copy_phase(cloner *c, const uir_iphase *phase) {
    uir_iphase copy = *phase;
    uint32_t mark = c->known_count;
    for (uint32_t i = 0; i < phase->parallel_count; i++) {
        copy.parallel[i].extent = copy_dim(c, phase->parallel[i].extent);
        copy.parallel[i].symbol = declare_symbol(c, phase->parallel[i].symbol);
    }
    for (uint32_t b = 0; b < phase->body_count; b++) {
        uint32_t outside = c->known_count;
        copy.bodies[b].unit_symbol = declare_symbol(c, phase->bodies[b].unit_symbol);
        copy.bodies[b].first_item = copy_items(c, phase->bodies[b].first_item);
        forget(c, outside);
    }
    forget(c, mark);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->phases, copy);
}

/* Vectors of the size that they come to leave nothing behind as they grow. */
static uir_status reserve(cloner *c) {
    const uir_igraph *from = c->from;
    uir_arena *arena = &c->to->arena;
    UIR_TRY(uir_vector_reserve(arena, &c->to->symbols, from->symbols.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->requires_, from->requires_.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->candidates, from->candidates.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->pointers, from->pointers.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->phases, from->phases.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->items, from->items.count));
    return uir_vector_reserve(arena, &c->to->instructions, from->instructions.count);
}

static void copy_all(cloner *c) {
    uir_status status = reserve(c);
    if (status != UIR_STATUS_OK) fail(c, status);
    c->to->synchronised = c->from->synchronised;
    if (c->from->file) {
        c->to->file = uir_arena_copy_string(&c->to->arena, c->from->file, strlen(c->from->file));
        if (!c->to->file) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    }
    copy_header(c);
    for (uint32_t i = 0; i < c->from->phases.count && c->status == UIR_STATUS_OK; i++)
        copy_phase(c, &c->from->phases.data[i]);
    for (uint32_t i = 0; i < c->to->pointers.count && c->status == UIR_STATUS_OK; i++)
        c->to->pointers.data[i].by_loop = copy_loop(c, c->to->pointers.data[i].by_loop, false);
}

uir_status uir_igraph_clone(const uir_igraph *igraph, const uir_allocator *allocator, uir_igraph **out_igraph) {
    uir_arena scratch;
    cloner c = {.from = igraph, .scratch = &scratch};
    *out_igraph = NULL;
    UIR_TRY(uir_igraph_create(allocator, igraph->name, igraph->machine, &c.to));
    uir_arena_init(&scratch, allocator);
    c.dims = uir_arena_allocate_array(&scratch, (size_t)igraph->symbols.count + 1, sizeof *c.dims);
    c.symbols = uir_arena_allocate_array(&scratch, (size_t)igraph->symbols.count + 1, sizeof *c.symbols);
    c.known = uir_arena_allocate_array(&scratch, (size_t)igraph->symbols.count + 1, sizeof *c.known);
    if (!c.dims || !c.symbols || !c.known) fail(&c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < igraph->symbols.count && c.symbols; i++) c.symbols[i] = UINT32_MAX;
    if (c.status == UIR_STATUS_OK) copy_all(&c);
    uir_arena_deinit(&scratch);
    if (c.status == UIR_STATUS_OK)
        *out_igraph = c.to;
    else
        uir_igraph_destroy(c.to);
    return c.status;
}
