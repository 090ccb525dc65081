/* What an iGraph says before its phases: sizes, tiles, the tiling function, requires, pointers. */
#include "lower/select/kernel.h"

#include "ir/kernel/igraph_places.h"
#include "ir/kernel/igraph_threads.h"

#include <string.h>

enum { MOST_OF_A_SIZE_BITS = 40 }; /* what is not bounded otherwise: beyond it no machine has memory */

/* ---- sizes ---- */
static void declare_size(uir_kernel *k, const uir_loop_size *size, uir_isymbol_kind kind) {
    uir_symbol_facts facts = uir_dims_symbol_facts(k->f->dims, size->symbol);
    uint32_t index;
    facts.bound = UIR_DIM_NONE;
    if (facts.max == UIR_DIM_UNBOUNDED && (facts.min > 0 || kind == UIR_ISYMBOL_TILE))
        facts.max = (int64_t)1 << MOST_OF_A_SIZE_BITS;
    if (k->status != UIR_STATUS_OK) return;
    k->status = uir_igraph_add_symbol(k->graph, size->name, strlen(size->name), kind, &facts, UIR_DIM_NONE, &index);
    if (k->status == UIR_STATUS_OK) uir_kernel_replace(k, size->symbol, uir_igraph_symbol_dim(k->graph, index));
}

static uir_condition substitute(uir_kernel *k, uir_condition c) {
    uir_dim left = uir_kernel_substitute(k, c.left);
    return (uir_condition){c.relation, left, uir_kernel_substitute(k, c.right)};
}

static void declare_candidate(uir_kernel *k, const uir_icandidate *from) {
    uir_icandidate candidate = {0};
    uir_arena *arena = &k->graph->arena;
    uir_iatom *atoms = uir_arena_allocate_array(arena, (size_t)from->guard.count + 1, sizeof *atoms);
    candidate.tiles = uir_arena_allocate_array(arena, (size_t)k->f->tiles.count + 1, sizeof *candidate.tiles);
    if (!candidate.tiles || !atoms) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    if (from->guard.count > UIR_IGRAPH_MAX_ATOMS)
        uir_kernel_refuse(k, "a candidate has more than %d conditions", UIR_IGRAPH_MAX_ATOMS);
    for (uint32_t t = 0; t < k->f->tiles.count && k->status == UIR_STATUS_OK; t++)
        candidate.tiles[t] = uir_kernel_substitute(k, from->tiles[t]);
    for (uint32_t a = 0; a < from->guard.count && k->status == UIR_STATUS_OK; a++)
        atoms[a] = (uir_iatom){.kind = UIR_IATOM_RELATION, .condition = substitute(k, from->guard.atoms[a].condition)};
    candidate.guard = (uir_iguard){atoms, from->guard.count};
    if (from->cost.id) candidate.cost = uir_kernel_substitute(k, from->cost);
    if (from->units.id) candidate.units = uir_kernel_substitute(k, from->units);
    if (k->status == UIR_STATUS_OK) k->status = uir_vector_push(arena, &k->graph->candidates, candidate);
}

void uir_kernel_declare_sizes(uir_kernel *k) {
    const uir_loop_function *f = k->f;
    for (uint32_t i = 0; i < f->sizes.count; i++) declare_size(k, &f->sizes.data[i], UIR_ISYMBOL_DIM);
    for (uint32_t i = 0; i < f->tiles.count; i++) declare_size(k, &f->tiles.data[i], UIR_ISYMBOL_TILE);
    for (uint32_t i = 0; i < f->candidates.count; i++) declare_candidate(k, &f->candidates.data[i]);
    for (uint32_t i = 0; i < f->requires_.count && k->status == UIR_STATUS_OK; i++) {
        uir_condition condition = substitute(k, f->requires_.data[i]);
        if (k->status == UIR_STATUS_OK) k->status = uir_vector_push(&k->graph->arena, &k->graph->requires_, condition);
    }
}

/* ---- pointers ---- */
void uir_kernel_take_layout(uir_kernel *k, uint32_t tensor) {
    const uir_loop_tensor *t = &k->f->tensors.data[tensor];
    uir_kernel_pointer *p = &k->pointers[tensor];
    uir_dim one = uir_dim_const(k->dims, 1);
    p->layout = (uir_layout){.given = true, .split = t->layout->split, .swizzle = t->layout->swizzle};
    for (uint32_t d = 0; d < p->rank; d++) {
        p->layout.mode_count[d] = p->dims[d] < 0 ? 1 : t->layout->mode_count[p->dims[d]];
        p->layout.modes[d][0] = (uir_mode){one, one};
        for (uint32_t m = 0; p->dims[d] >= 0 && m < p->layout.mode_count[d]; m++) {
            uir_mode mode = t->layout->modes[p->dims[d]][m];
            p->layout.modes[d][m] =
                (uir_mode){uir_kernel_substitute(k, mode.size), uir_kernel_substitute(k, mode.stride)};
        }
    }
}

void uir_kernel_describe_pointer(uir_kernel *k, uint32_t tensor) {
    const uir_loop_tensor *t = &k->f->tensors.data[tensor];
    uir_kernel_pointer *p = &k->pointers[tensor];
    p->name = t->name;
    p->space = t->space ? uir_machine_find_space(k->machine, t->space, strlen(t->space))
                        : uir_machine_find_role(k->machine, UIR_SPACE_MEMORY);
    if (p->space < 0)
        uir_kernel_refuse(k, "device %s has no space '%s'", k->machine->name, t->space ? t->space : "memory");
    p->on_chip = p->space >= 0 && k->machine->spaces[p->space].scope != UIR_SCOPE_DEVICE;
    for (uint32_t d = 0; d < t->rank; d++) p->extents[d] = uir_kernel_substitute(k, t->extents[d]);
    if (k->status != UIR_STATUS_OK) return;
    for (uint32_t d = 0; d < t->rank; d++)
        if (!p->on_chip || !uir_kernel_is_one(k, p->extents[d])) p->dims[p->rank++] = (int32_t)d;
    while (p->rank < 2) { /* rows of one line: what reduces a row keeps its dims */
        for (uint32_t d = p->rank; d > 0; d--) p->dims[d] = p->dims[d - 1];
        p->dims[0] = -1;
        p->rank++;
    }
    p->constant = t->constant && t->layout;
    if (t->layout && !p->on_chip) uir_kernel_take_layout(k, tensor);
}

static void add_pointer(uir_kernel *k, uir_ipointer *pointer, const char *name, int space) {
    if (k->status != UIR_STATUS_OK) return;
    pointer->space = (uint32_t)space;
    pointer->instances = 1;
    pointer->by_loop = pointer->tied = pointer->over = UINT32_MAX;
    pointer->name = uir_arena_copy_string(&k->graph->arena, name, strlen(name));
    if (!pointer->name) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    if (k->status == UIR_STATUS_OK && uir_igraph_finish_pointer(k->graph, pointer) != UIR_STATUS_OK)
        uir_kernel_refuse(k, "the size of %s overflows 64 bits", name);
    if (k->status == UIR_STATUS_OK) k->status = uir_vector_push(&k->graph->arena, &k->graph->pointers, *pointer);
}

/* Rows of what lies in this space begin at multiples of its alignment, where instructions want them so. */
static void align_rows(uir_kernel *k, uir_ipointer *p, int space) {
    const uir_space *s = &k->machine->spaces[space < 0 ? 0 : space];
    uint32_t bytes = uir_dtype_bits(p->dtype) / 8;
    uir_dim strides[UIR_LAYOUT_MAX_RANK], stride = uir_dim_const(k->dims, 1), unit;
    bool lines = false;
    for (uint32_t d = 0; d + 1 < p->rank; d++) lines = lines || !uir_kernel_is_one(k, p->extents[d]);
    if (!lines || p->layout.given || space < 0 || !bytes || s->alignment <= bytes) return;
    if (!uir_machine_wants_rows(k->machine, space)) return;
    unit = uir_dim_const(k->dims, s->alignment / bytes);
    for (uint32_t d = p->rank; d-- > 0;) {
        strides[d] = stride;
        stride = uir_dim_mul(k->dims, stride, p->extents[d]);
        if (d + 1 == p->rank) stride = uir_dim_mul(k->dims, uir_dim_ceildiv(k->dims, stride, unit), unit);
        if (!stride.id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    }
    uir_layout_set_strides(&p->layout, p->extents, strides, p->rank);
}

/* Columns of the unit's threads, a power of two, by which a matrix of so many rows and columns has the fewest places in
 * a thread; of equally many those of the fewest rows and columns, which a product reads. */
static int64_t find_thread_columns(int64_t threads, int64_t rows, int64_t columns) {
    int64_t best = threads, least = INT64_MAX;
    for (int64_t across = threads; across >= 1 && threads % across == 0; across /= 2) {
        int64_t down = threads / across, of_rows = (rows + down - 1) / down,
                of_columns = (columns + across - 1) / across;
        int64_t cost = of_rows * of_columns * threads + of_rows + of_columns;
        if (cost < least) best = across, least = cost;
        if (across % 2) break;
    }
    return best;
}

/* Matrices in registers lie over rows and columns of threads: element (i, j) is in thread i mod R, j mod C. */
static void lay_over_threads(uir_kernel *k, uir_ipointer *p, int space) {
    int64_t threads = uir_ithreads_count(k->graph), rows, columns;
    if (space < 0 || threads < 2 || p->rank < 2 || p->layout.given ||
        !(k->machine->spaces[space].roles & UIR_SPACE_REGISTERS) ||
        !uir_dim_is_const(k->dims, p->extents[p->rank - 2], &rows) ||
        !uir_dim_is_const(k->dims, p->extents[p->rank - 1], &columns) || rows < 2 || columns < 2)
        return;
    for (uint32_t d = 0; d + 2 < p->rank; d++)
        if (!uir_kernel_is_one(k, p->extents[d])) return;
    int64_t across = find_thread_columns(threads, rows, columns), down = threads / across,
            of_columns = (columns + across - 1) / across, of_rows = (rows + down - 1) / down;
    const int64_t sizes[2][2] = {{down, of_rows}, {across, of_columns}},
                  strides[2][2] = {{across, threads * of_columns}, {1, threads}};
    p->layout = (uir_layout){.given = true, .split = true};
    for (uint32_t d = 0; d < p->rank; d++) {
        uint32_t split = d + 2 < p->rank ? 0 : 2;
        p->layout.mode_count[d] = split ? 2 : 1;
        p->layout.modes[d][0] =
            (uir_mode){uir_dim_const(k->dims, 1), uir_dim_const(k->dims, threads * of_columns * of_rows)};
        for (uint32_t m = 0; m < split; m++)
            p->layout.modes[d][m] = (uir_mode){uir_dim_const(k->dims, sizes[d + 2 - p->rank][m]),
                                               uir_dim_const(k->dims, strides[d + 2 - p->rank][m])};
    }
}

static void declare_tensor(uir_kernel *k, uint32_t tensor) {
    const uir_loop_tensor *t = &k->f->tensors.data[tensor];
    const uir_kernel_pointer *p = &k->pointers[tensor];
    uir_ipointer pointer = {.dtype = t->dtype, .rank = p->rank, .role = UIR_IPOINTER_LOCAL};
    for (uint32_t d = 0; d < p->rank; d++)
        pointer.extents[d] = p->dims[d] < 0 ? uir_dim_const(k->dims, 1) : p->extents[p->dims[d]];
    pointer.layout = p->layout;
    if (t->role != UIR_LOOP_ROLE_TEMP) {
        pointer.role = p->constant                   ? UIR_IPOINTER_CONST
                       : t->role == UIR_LOOP_ROLE_IN ? UIR_IPOINTER_IN
                                                     : UIR_IPOINTER_OUT;
        pointer.role_index = t->index;
    } else if (!p->on_chip) {
        pointer.role = UIR_IPOINTER_WORK;
    }
    if (p->on_chip) align_rows(k, &pointer, p->space);
    if (p->on_chip) lay_over_threads(k, &pointer, p->space);
    add_pointer(k, &pointer, p->name, p->space);
}

static void declare_memory(uir_kernel *k, const uir_kernel_memory *m) {
    uir_ipointer pointer = {.dtype = m->dtype, .role = UIR_IPOINTER_LOCAL};
    for (uint32_t d = m->rank; d < 2; d++) pointer.extents[pointer.rank++] = uir_dim_const(k->dims, 1);
    for (uint32_t d = 0; d < m->rank; d++) pointer.extents[pointer.rank++] = m->extents[d];
    align_rows(k, &pointer, m->space);
    lay_over_threads(k, &pointer, m->space);
    add_pointer(k, &pointer, m->name, m->space);
}

/* Bytes of a space: a sum over the places in it, each rounded up. */
static uir_dim count_bytes(uir_kernel *k, uint32_t space) {
    uir_dim bytes = uir_dim_const(k->dims, 0);
    uint32_t rounding = k->machine->spaces[space].alignment;
    for (uint32_t i = 0; i < k->graph->pointers.count; i++) {
        const uir_ipointer *p = &k->graph->pointers.data[i];
        if (p->role != UIR_IPOINTER_LOCAL || p->space != space || p->over != UINT32_MAX) continue;
        uir_dim place = uir_dim_const(k->dims, uir_dtype_bits(p->dtype) / 8 ? uir_dtype_bits(p->dtype) / 8 : 1);
        if (p->layout.given) place = uir_dim_mul(k->dims, place, p->element_span);
        for (uint32_t d = 0; d < p->rank && !p->layout.given; d++) place = uir_dim_mul(k->dims, place, p->extents[d]);
        int64_t known;
        place = uir_dim_is_const(k->dims, place, &known)
                    ? uir_dim_const(k->dims, (known + rounding - 1) / rounding * rounding)
                    : uir_dim_add(k->dims, place, uir_dim_const(k->dims, rounding));
        if (p->instances > 1) place = uir_dim_mul(k->dims, place, uir_dim_const(k->dims, p->instances));
        bytes = uir_dim_add(k->dims, bytes, place);
    }
    if (!bytes.id) uir_kernel_refuse(k, "the size of the tensors on the chip overflows 64 bits");
    return bytes;
}

static void share_places(uir_kernel *k) {
    uir_status status = uir_igraph_share_places(k->graph);
    if (status == UIR_STATUS_INVALID_ARGUMENT)
        uir_kernel_refuse(k, "the size of the tensors on the chip overflows 64 bits");
    else
        uir_kernel_fail(k, status);
}

/* The least bytes at sizes that leave something to do: what has room for none but empty tensors has none. */
static int64_t least_bytes(uir_kernel *k, uir_dim bytes) {
    uir_dim_replacement *sizes;
    uint32_t count = 0;
    int64_t least, most;
    sizes = uir_arena_allocate_array(k->arena, k->graph->symbols.count + 1u, sizeof *sizes);
    if (!sizes) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; sizes && i < k->graph->symbols.count; i++) {
        const uir_isymbol *s = &k->graph->symbols.data[i];
        uir_symbol_facts facts = uir_dims_symbol_facts(k->dims, s->symbol);
        if (s->kind == UIR_ISYMBOL_DIM && facts.min < 1 && facts.max >= 1)
            sizes[count++] = (uir_dim_replacement){s->symbol, uir_dim_const(k->dims, 1)};
    }
    if (sizes) bytes = uir_dim_replace(k->dims, bytes, sizes, count);
    uir_dim_bounds(k->dims, bytes, &least, &most);
    return least;
}

/* What is kept in a space fits there. Registers hold single elements, and the compiler's own choice of them. */
static void require_capacity(uir_kernel *k, uint32_t index_of_space) {
    const uir_space *space = &k->machine->spaces[index_of_space];
    int64_t least, most;
    if (!space->capacity || (space->roles & UIR_SPACE_REGISTERS)) return;
    uir_dim bytes = count_bytes(k, index_of_space);
    if (k->status != UIR_STATUS_OK) return;
    uir_dim_bounds(k->dims, bytes, &least, &most);
    least = least_bytes(k, bytes);
    if (least > 0 && (uint64_t)least > space->capacity)
        uir_kernel_refuse(k, "the tensors on the chip need at least %lld bytes; %llu are available", (long long)least,
                          (unsigned long long)space->capacity);
    if ((uint64_t)most <= space->capacity || k->status != UIR_STATUS_OK) return;
    uint32_t index;
    uir_dim capacity = uir_dim_const(k->dims, (int64_t)space->capacity);
    k->status =
        uir_igraph_add_symbol(k->graph, space->name, strlen(space->name), UIR_ISYMBOL_DEVICE, NULL, capacity, &index);
    if (k->status != UIR_STATUS_OK) return;
    uir_condition fits = {UIR_RELATION_LE, bytes, uir_igraph_symbol_dim(k->graph, index)};
    k->status = uir_vector_push(&k->graph->arena, &k->graph->requires_, fits);
}

/* Slices name tensors and memories while the body is made, and declared pointers from now on. */
static void number_pointers(uir_kernel *k, const uint32_t *numbers) {
    uir_igraph *g = k->graph;
    for (uint32_t i = 0; i < g->instructions.count; i++) {
        uir_iinstruction *instruction = &g->instructions.data[i];
        for (uint32_t s = 0; s < instruction->slice_count; s++)
            instruction->slices[s].pointer = numbers[instruction->slices[s].pointer];
        if (instruction->has_scratch) instruction->scratch.pointer = numbers[instruction->scratch.pointer];
    }
    for (uint32_t i = 0; i < g->items.count; i++)
        if (g->items.data[i].kind == UIR_IITEM_INDEX)
            g->items.data[i].index.slice.pointer = numbers[g->items.data[i].index.slice.pointer];
}

/* Does a slice on the chip begin where the machine begins rows? */
static bool begins_row(const uir_kernel *k, const uir_islice *slice) {
    const uir_ipointer *p = &k->graph->pointers.data[slice->pointer];
    const uir_space *space = &k->machine->spaces[p->space];
    uint32_t bytes = uir_dtype_bits(p->dtype) / 8;
    uint32_t unit = bytes && space->alignment > bytes ? space->alignment / bytes : 1;
    if (space->scope == UIR_SCOPE_DEVICE || !p->rank || p->layout.mode_count[p->rank - 1] != 1 ||
        !uir_kernel_is_one(k, p->layout.modes[p->rank - 1][0].stride))
        return true;
    return uir_dim_multiple(k->dims, slice->starts[p->rank - 1]) % unit == 0;
}

static uir_iwindow_lie lie_of_window(const uir_kernel *k, const uir_islice *slice) {
    const uir_ipointer *p = &k->graph->pointers.data[slice->pointer];
    return uir_igraph_window_lie(k->graph, slice, &p->layout, p->rank, &k->machine->spaces[p->space], p->dtype);
}

/* The table of the device is asked before the verifier does: what it does not do is no fault of lowering. */
static void check_legal(uir_kernel *k, const uir_iinstruction *instruction, uint32_t unit_kind) {
    const uir_ipointer *pointers = k->graph->pointers.data;
    /* Elements that do not lie side by side, or in one space; operands of which columns are read. */
    bool apart = false, mixed = false, across = instruction->slice_count > 1, allowed = false;
    for (uint32_t s = 0; s < instruction->slice_count; s++) {
        const uir_islice *slice = &instruction->slices[s];
        uir_iwindow_lie lie = slice->window ? lie_of_window(k, slice) : UIR_IWINDOW_ROW;
        apart = apart || lie != UIR_IWINDOW_ROW || !begins_row(k, slice);
        across = across && (s ? slice->window && lie == UIR_IWINDOW_ACROSS : !slice->window && begins_row(k, slice));
        mixed = mixed || pointers[slice->pointer].space != pointers[instruction->slices[0].pointer].space;
    }
    for (int row = -1; !allowed && (row = uir_igraph_find_legal(k->graph, instruction, unit_kind, row + 1)) >= 0;) {
        uint32_t wanted = k->machine->legal[row].constraints;
        allowed = (!apart || !(wanted & (UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_IN_PIECES))) &&
                  (across || !(wanted & UIR_LEGAL_TRANSPOSES)) && (!mixed || !(wanted & UIR_LEGAL_SAME_SPACE));
    }
    if (!allowed)
        uir_kernel_refuse(k, "no %s unit of %s executes %s.%s on operands of these layouts",
                          k->machine->unit_kinds[unit_kind], k->machine->name, uir_iop_get_row(instruction->code)->name,
                          uir_dtype_name(instruction->dtype));
    for (uint32_t s = 0; s < instruction->slice_count && uir_ithreads_count(k->graph) > 1; s++)
        if ((k->machine->spaces[pointers[instruction->slices[s].pointer].space].roles & UIR_SPACE_REGISTERS) &&
            !uir_ithreads_is_own(k->graph, instruction, s))
            uir_kernel_refuse(k, "%s on %s would need registers of other threads",
                              uir_iop_get_row(instruction->code)->name, k->machine->name);
}

static void check_items(uir_kernel *k, uint32_t item, uint32_t unit_kind) {
    const uir_igraph *g = k->graph;
    for (; item != UINT32_MAX && k->status == UIR_STATUS_OK; item = g->items.data[item].next) {
        const uir_iitem *i = &g->items.data[item];
        if (i->kind == UIR_IITEM_INSTRUCTION) check_legal(k, &g->instructions.data[i->instruction], unit_kind);
        check_items(k, i->first_child, unit_kind);
    }
}

void uir_kernel_declare_pointers(uir_kernel *k) {
    uint32_t tensors = k->f->tensors.count;
    uint32_t *numbers = uir_arena_allocate_array(k->arena, (size_t)tensors + k->memories.count + 1, sizeof *numbers);
    if (!numbers) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < tensors && k->status == UIR_STATUS_OK; i++) {
        if (!k->pointers[i].used && k->f->tensors.data[i].role == UIR_LOOP_ROLE_TEMP) continue;
        numbers[i] = k->graph->pointers.count;
        declare_tensor(k, i);
    }
    for (uint32_t i = 0; i < k->memories.count && k->status == UIR_STATUS_OK; i++) {
        numbers[tensors + i] = k->graph->pointers.count;
        declare_memory(k, &k->memories.data[i]);
    }
    if (k->status == UIR_STATUS_OK) number_pointers(k, numbers);
    if (k->status == UIR_STATUS_OK) k->status = uir_igraph_give_instances(k->graph, k->doubling);
    if (k->status == UIR_STATUS_OK) share_places(k);
    for (uint32_t s = 0; s < k->machine->space_count && k->status == UIR_STATUS_OK; s++) require_capacity(k, s);
    for (uint32_t p = 0; p < k->graph->phases.count; p++)
        for (uint32_t b = 0; b < k->graph->phases.data[p].body_count; b++)
            check_items(k, k->graph->phases.data[p].bodies[b].first_item, k->graph->phases.data[p].bodies[b].unit_kind);
}

/* Tensors and memories with a dtype of less than a byte have no address. */
void uir_kernel_check_dtypes(uir_kernel *k) {
    for (uint32_t i = 0; i < k->f->tensors.count; i++)
        if (uir_dtype_bits(k->f->tensors.data[i].dtype) < 8)
            uir_kernel_refuse(k, "%s has no kernels", uir_dtype_name(k->f->tensors.data[i].dtype));
}
