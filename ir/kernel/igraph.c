#include "ir/kernel/igraph.h"

#include <string.h>

uir_status uir_igraph_create(const uir_allocator *allocator, const char *name, const uir_machine *machine,
                             uir_igraph **out_igraph) {
    *out_igraph = NULL;
    uir_igraph *igraph;
    UIR_TRY_ALLOCATE(igraph, uir_allocate_zeroed(allocator, sizeof *igraph));
    igraph->allocator = *allocator;
    uir_arena_init(&igraph->arena, allocator);
    igraph->machine = machine;
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

bool uir_igraph_device_value(const uir_machine *machine, const char *name, size_t length, int64_t *out_value) {
    int space = uir_machine_find_space(machine, name, length);
    if (space >= 0 && machine->spaces[space].capacity > 0 && machine->spaces[space].capacity <= INT64_MAX) {
        *out_value = (int64_t)machine->spaces[space].capacity;
        return true;
    }
    if (length == 5 && memcmp(name, "cores", 5) == 0 && machine->group_count > 0) {
        *out_value = machine->group_count;
        return true;
    }
    return false;
}

int uir_igraph_find_legal(const uir_igraph *igraph, const uir_iinstruction *instruction, uint32_t unit_kind, int from) {
    const uir_machine *machine = igraph->machine;
    const uir_iop_row *iop = uir_iop_get_row(instruction->code);
    bool mixed = iop->family == UIR_IOP_FAMILY_CAST || iop->family == UIR_IOP_FAMILY_MMA;
    uint32_t operands = 0, result = igraph->pointers.data[instruction->slices[0].pointer].space;
    for (uint32_t k = 1; k < instruction->slice_count; k++)
        operands |= 1u << igraph->pointers.data[instruction->slices[k].pointer].space;
    int row = uir_machine_find_legal(machine, iop->name, instruction->dtype,
                                     mixed ? instruction->dtype_b : UIR_DTYPE_NONE, result, operands, unit_kind, from);
    if (row < 0 || iop->family != UIR_IOP_FAMILY_MMA) return row;
    return uir_legal_row_get_right(&machine->legal[row]) >> instruction->dtype_c & 1 ? row : -1;
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

static bool is_unit_dim(const uir_igraph *igraph, const uir_layout *layout, uint32_t rank, uint32_t dim) {
    int64_t stride;
    if (!layout->given) return dim + 1 == rank;
    return !layout->swizzle.bits && layout->mode_count[dim] == 1 &&
           uir_dim_is_const(igraph->dims, layout->modes[dim][0].stride, &stride) && stride == 1;
}

/* The axis along which elements lie side by side: it moves one dim, element by element. UINT32_MAX: there is none. */
static uint32_t find_unit_axis(const uir_igraph *igraph, const uir_islice *window, const uir_layout *layout,
                               uint32_t rank, uint32_t *out_dim) {
    for (uint32_t a = 0; a < window->axis_count; a++) {
        uir_symbol symbol = igraph->symbols.data[window->axes[a].symbol].symbol;
        uir_dim axis = uir_igraph_symbol_dim(igraph, window->axes[a].symbol);
        uint32_t dims = 0;
        for (uint32_t d = 0; d < rank; d++) {
            if (!uir_dim_mentions(igraph->dims, window->starts[d], symbol)) continue;
            dims++;
            *out_dim = d;
        }
        if (dims == 1 && is_unit_dim(igraph, layout, rank, *out_dim) &&
            !uir_dim_mentions(igraph->dims, uir_dim_sub(igraph->dims, window->starts[*out_dim], axis), symbol))
            return a;
    }
    return UINT32_MAX;
}

/* Do the lines along an axis begin at whole alignments? Strides that are not given are made so. */
static bool begin_aligned(const uir_igraph *igraph, const uir_islice *window, const uir_layout *layout, uint32_t rank,
                          uint32_t axis, uint32_t along, int64_t elements) {
    uir_dims *dims = igraph->dims;
    for (uint32_t d = 0; d < rank; d++) {
        uir_dim start = window->starts[d];
        if (d == along) start = uir_dim_sub(dims, start, uir_igraph_symbol_dim(igraph, window->axes[axis].symbol));
        if (layout->given && layout->mode_count[d] != 1) return false;
        if (layout->given) start = uir_dim_mul(dims, start, layout->modes[d][0].stride);
        if ((layout->given || d == along) && (!start.id || uir_dim_multiple(dims, start) % elements)) return false;
    }
    return true;
}

uir_iwindow_lie uir_igraph_window_lie(const uir_igraph *igraph, const uir_islice *window, const uir_layout *layout,
                                      uint32_t rank, const uir_space *space, uir_dtype dtype) {
    uint32_t count = window->axis_count, dim = 0, axis = find_unit_axis(igraph, window, layout, rank, &dim);
    uint32_t bits = uir_dtype_bits(dtype);
    bool in_memory = space->scope == UIR_SCOPE_DEVICE;
    int64_t elements = bits < 8 ? 0 : space->alignment * 8 / bits;
    if (axis == UINT32_MAX || window->rank != count || bits < 8) return UIR_IWINDOW_APART; /* an axis for each dim */
    if (axis + 1 == count) return in_memory ? UIR_IWINDOW_ROW : UIR_IWINDOW_APART;
    if (axis + 2 != count) return UIR_IWINDOW_APART;
    return in_memory || elements < 2 || begin_aligned(igraph, window, layout, rank, axis, dim, elements)
               ? UIR_IWINDOW_ACROSS
               : UIR_IWINDOW_APART;
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
    return instruction->legal_row != UINT32_MAX ? igraph->machine->legal[instruction->legal_row].pipe : -1;
}
