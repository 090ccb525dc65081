#include "ir/igraph.h"

#include <string.h>

uir_status uir_igraph_create(const uir_allocator *allocator, const char *name, const uir_device *device,
                             uir_igraph **out_igraph) {
    *out_igraph = NULL;
    uir_igraph *igraph;
    UIR_TRY_ALLOCATE(igraph, uir_allocate_zeroed(allocator, sizeof *igraph));
    igraph->allocator = *allocator;
    uir_arena_init(&igraph->arena, allocator);
    igraph->device = device;
    uir_status status = uir_dims_create(allocator, &igraph->dims);
    if (status == UIR_STATUS_OK) {
        igraph->name = uir_arena_copy_string(&igraph->arena, name, strlen(name));
        if (!igraph->name) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    if (status != UIR_STATUS_OK) {
        uir_igraph_destroy(igraph);
        return status;
    }
    *out_igraph = igraph;
    return UIR_STATUS_OK;
}

void uir_igraph_destroy(uir_igraph *igraph) {
    if (!igraph) return;
    uir_allocator allocator = igraph->allocator;
    if (igraph->dims) uir_dims_destroy(igraph->dims);
    uir_arena_deinit(&igraph->arena);
    uir_release(&allocator, igraph, sizeof *igraph);
}

uir_status uir_igraph_list_add(uir_igraph_list *list, uir_igraph *igraph) {
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 4;
        uir_igraph **grown;
        grown =
            uir_reallocate(&list->allocator, list->igraphs, list->capacity * sizeof *grown, capacity * sizeof *grown);
        if (!grown) {
            uir_igraph_destroy(igraph);
            return UIR_STATUS_OUT_OF_MEMORY;
        }
        list->igraphs = grown;
        list->capacity = capacity;
    }
    list->igraphs[list->count++] = igraph;
    return UIR_STATUS_OK;
}

void uir_igraph_list_deinit(uir_igraph_list *list) {
    for (uint32_t i = 0; i < list->count; i++) uir_igraph_destroy(list->igraphs[i]);
    if (list->igraphs) uir_release(&list->allocator, list->igraphs, list->capacity * sizeof(uir_igraph *));
    list->igraphs = NULL;
    list->count = list->capacity = 0;
}

static uir_symbol_facts default_facts(uir_igraph *igraph, uir_isymbol_kind kind, uir_dim definition) {
    uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
    int64_t value;
    switch (kind) {
    case UIR_ISYMBOL_DIM:
        break;
    case UIR_ISYMBOL_TILE:
        facts.min = 1;
        break;
    case UIR_ISYMBOL_CONSTANT:
    case UIR_ISYMBOL_DEVICE:
    case UIR_ISYMBOL_LET: {
        /* A let's range is that of its expression; it may be below zero. */
        uir_dim_bounds(igraph->dims, definition, &facts.min, &facts.max);
        if (uir_dim_is_const(igraph->dims, definition, &value)) facts.min = facts.max = value;
        break;
    }
    case UIR_ISYMBOL_PARALLEL:
    case UIR_ISYMBOL_LOOP:
    case UIR_ISYMBOL_INDEX:
    case UIR_ISYMBOL_AXIS:
        facts.bound = definition;
        break;
    }
    return facts;
}

uir_status uir_igraph_add_symbol(uir_igraph *igraph, const char *name, size_t length, uir_isymbol_kind kind,
                                 const uir_symbol_facts *facts, uir_dim definition, uint32_t *out_index) {
    uir_symbol symbol;
    uir_symbol_facts given = facts ? *facts : default_facts(igraph, kind, definition);
    UIR_TRY(uir_dims_add_symbol(igraph->dims, name, length, given, &symbol));
    const char *copy;
    UIR_TRY_ALLOCATE(copy, uir_arena_copy_string(&igraph->arena, name, length));
    if (symbol.id != igraph->symbols.count) return UIR_STATUS_INTERNAL;
    UIR_TRY(uir_vector_push(&igraph->arena, &igraph->symbols, ((uir_isymbol){copy, kind, symbol, definition})));
    *out_index = igraph->symbols.count - 1;
    return UIR_STATUS_OK;
}

uir_dim uir_igraph_symbol_dim(const uir_igraph *igraph, uint32_t symbol) {
    return uir_dim_symbol(igraph->dims, igraph->symbols.data[symbol].symbol);
}

uint32_t uir_igraph_find_symbol(const uir_igraph *igraph, const char *name, size_t length) {
    for (uint32_t i = 0; i < igraph->symbols.count; i++) {
        const char *other = igraph->symbols.data[i].name;
        if (strlen(other) == length && memcmp(other, name, length) == 0) return i;
    }
    return UINT32_MAX;
}

uint32_t uir_igraph_symbol_index(const uir_igraph *igraph, uir_symbol symbol) {
    return symbol.id < igraph->symbols.count ? symbol.id : UINT32_MAX;
}

uint32_t uir_igraph_count_symbols(const uir_igraph *igraph, uir_isymbol_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < igraph->symbols.count; i++) count += igraph->symbols.data[i].kind == kind;
    return count;
}

bool uir_igraph_device_value(const uir_device *device, const char *name, size_t length, int64_t *out_value) {
    int space = uir_device_find_space(device, name, length);
    if (space >= 0 && device->spaces[space].capacity > 0 && device->spaces[space].capacity <= INT64_MAX) {
        *out_value = (int64_t)device->spaces[space].capacity;
        return true;
    }
    if (length == 5 && memcmp(name, "cores", 5) == 0 && device->group_count > 0) {
        *out_value = device->group_count;
        return true;
    }
    return false;
}

int uir_igraph_find_legal(const uir_igraph *igraph, const uir_iinstruction *instruction, uint32_t unit_kind, int from) {
    const uir_device *device = igraph->device;
    const uir_iop_row *iop = uir_iop_get_row(instruction->code);
    bool mixed = iop->family == UIR_IOP_FAMILY_CAST || iop->family == UIR_IOP_FAMILY_MMA;
    uint32_t operands = 0, result = igraph->pointers.data[instruction->slices[0].pointer].space;
    for (uint32_t k = 1; k < instruction->slice_count; k++)
        operands |= 1u << igraph->pointers.data[instruction->slices[k].pointer].space;
    int row = uir_device_find_legal(device, iop->name, instruction->dtype,
                                    mixed ? instruction->dtype_b : UIR_DTYPE_NONE, result, operands, unit_kind, from);
    if (row < 0 || iop->family != UIR_IOP_FAMILY_MMA) return row;
    return uir_legal_row_get_right(&device->legal[row]) >> instruction->dtype_c & 1 ? row : -1;
}

uir_status uir_igraph_finish_pointer(uir_igraph *igraph, uir_ipointer *pointer) {
    pointer->element_span = uir_layout_finish(&pointer->layout, pointer->extents, pointer->rank, igraph->dims);
    return pointer->element_span.id ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT;
}

uir_dim uir_igraph_instance_bytes(const uir_igraph *igraph, uint32_t pointer) {
    const uir_ipointer *p = &igraph->pointers.data[pointer];
    uir_dims *dims = igraph->dims;
    uir_dim span = uir_dim_max(dims, p->element_span, uir_dim_const(dims, 0));
    uint32_t bits = uir_dtype_bits(p->dtype);
    if (bits >= 8) return uir_dim_mul(dims, span, uir_dim_const(dims, bits / 8));
    return uir_dim_ceildiv(dims, uir_dim_mul(dims, span, uir_dim_const(dims, bits)), uir_dim_const(dims, 8));
}

uir_dim uir_igraph_pointer_bytes(const uir_igraph *igraph, uint32_t pointer) {
    uint32_t instances = igraph->pointers.data[pointer].instances;
    uir_dim bytes = uir_igraph_instance_bytes(igraph, pointer);
    return instances > 1 ? uir_dim_mul(igraph->dims, bytes, uir_dim_const(igraph->dims, instances)) : bytes;
}

void uir_igraph_whole_slice(const uir_igraph *igraph, uint32_t pointer, uir_islice *out_slice) {
    const uir_ipointer *p = &igraph->pointers.data[pointer];
    *out_slice = (uir_islice){.pointer = pointer, .whole = true, .rank = p->rank};
    for (uint32_t d = 0; d < p->rank; d++) {
        out_slice->starts[d] = uir_dim_const(igraph->dims, 0);
        out_slice->counts[d] = p->extents[d];
    }
}

int32_t uir_igraph_get_pipe(const uir_igraph *igraph, const uir_iinstruction *instruction) {
    return instruction->legal_row != UINT32_MAX ? igraph->device->legal[instruction->legal_row].pipe : -1;
}
