#include "ir/kernel/igraph_build.h"

void uir_ibuilder_init(uir_ibuilder *builder, uir_igraph *igraph) {
    *builder = (uir_ibuilder){.igraph = igraph};
}

static uir_status open_block(uir_ibuilder *b, uint32_t item) {
    if (b->depth == UIR_IGRAPH_MAX_DEPTH) return UIR_STATUS_LIMIT;
    b->open[b->depth].item = item;
    b->open[b->depth].last = UINT32_MAX;
    b->depth++;
    return UIR_STATUS_OK;
}

uir_status uir_ibuilder_begin_phase(uir_ibuilder *builder, const uir_iparallel *parallel, uint32_t count,
                                    uint32_t unit_kind) {
    uir_iphase phase = {.body_count = 1, .has_kinds = unit_kind != 0};
    if (count > sizeof phase.parallel / sizeof *phase.parallel) return UIR_STATUS_LIMIT;
    for (uint32_t i = 0; i < count; i++) phase.parallel[phase.parallel_count++] = parallel[i];
    phase.bodies[0] =
        (uir_ibody){.unit_kind = unit_kind, .unit_symbol = UINT32_MAX, .unit_count = 1, .first_item = UINT32_MAX};
    UIR_TRY(uir_vector_push(&builder->igraph->arena, &builder->igraph->phases, phase));
    return open_block(builder, UINT32_MAX);
}

/* Where the block that is open says what is first in it. */
static uint32_t *first_of(uir_ibuilder *b) {
    uint32_t item = b->open[b->depth - 1].item;
    if (item != UINT32_MAX) return &b->igraph->items.data[item].first_child;
    return &b->igraph->phases.data[b->igraph->phases.count - 1].bodies[0].first_item;
}

uir_status uir_ibuilder_add(uir_ibuilder *builder, const uir_iitem *item) {
    uir_igraph *g = builder->igraph;
    uint32_t id = g->items.count, last = builder->open[builder->depth - 1].last;
    uir_iitem added = *item;
    added.first_child = added.next = UINT32_MAX;
    if (id >= UIR_IGRAPH_MAX_ITEMS || item->guard.count > UIR_IGRAPH_MAX_ATOMS) return UIR_STATUS_LIMIT;
    UIR_TRY(uir_vector_push(&g->arena, &g->items, added));
    *(last == UINT32_MAX ? first_of(builder) : &g->items.data[last].next) = id;
    builder->open[builder->depth - 1].last = id;
    return UIR_STATUS_OK;
}

uir_status uir_ibuilder_add_instruction(uir_ibuilder *builder, const uir_iinstruction *instruction,
                                        const uir_iguard *guard) {
    uir_igraph *g = builder->igraph;
    uir_iitem item = {.kind = UIR_IITEM_INSTRUCTION, .symbol = UINT32_MAX, .instruction = g->instructions.count};
    if (guard) item.guard = *guard;
    UIR_TRY(uir_vector_push(&g->arena, &g->instructions, *instruction));
    return uir_ibuilder_add(builder, &item);
}

uir_status uir_ibuilder_begin(uir_ibuilder *builder, const uir_iitem *item) {
    UIR_TRY(uir_ibuilder_add(builder, item));
    return open_block(builder, builder->igraph->items.count - 1);
}

void uir_ibuilder_end(uir_ibuilder *builder) {
    builder->depth--;
}
