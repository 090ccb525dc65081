/* The instructions of a block as the machine takes them: operands come to where the description wants them and results
 * go from there to where they are to lie, elements that repeat along a row are written out, temporaries get their
 * memory. Where every instruction finds its operands as they lie, nothing is changed. */
#include "lower/select/kernel.h"

#include <stdio.h>
#include <string.h>

/* ---- where values lie ---- */
/* What a value takes in memory. */
typedef struct shape {
    uint32_t rank;
    uir_dim extents[UIR_IGRAPH_MAX_RANK], counts[UIR_IGRAPH_MAX_RANK];
    bool single;  /* one element */
    bool whole;   /* along all lanes */
    bool scratch; /* never in registers */
} shape;

/* Along lanes; `last`: so many along the last one, NONE: as many as that has. */
static shape shape_of_lanes(const uir_kernel *k, uint32_t lanes, uir_dim last) {
    shape s = {.rank = k->lane_count, .single = true, .whole = k->lane_count && !last.id};
    uir_dim one = uir_dim_const(k->dims, 1);
    for (uint32_t l = 0; l < k->lane_count; l++) {
        bool varies = lanes >> l & 1;
        s.extents[l] = varies ? k->lanes[l].extent : one;
        s.counts[l] = varies ? k->lanes[l].count : one;
        s.whole = s.whole && (varies || uir_kernel_is_one(k, k->lanes[l].extent));
    }
    if (last.id && s.rank) s.extents[s.rank - 1] = s.counts[s.rank - 1] = last;
    for (uint32_t l = 0; l < s.rank; l++) s.single = s.single && uir_kernel_is_one(k, s.extents[l]);
    return s;
}

static shape shape_of_value(const uir_kernel *k, const uir_kernel_value *v) {
    if (!v->cover) return shape_of_lanes(k, v->lanes, v->block ? uir_dim_const(k->dims, v->block) : UIR_DIM_NONE);
    shape s = {.rank = v->cover->rank, .scratch = true};
    memcpy(s.extents, v->cover->extents, sizeof s.extents);
    memcpy(s.counts, v->cover->counts, sizeof s.counts);
    return s;
}

/* One element lies in registers, where there are any; what is computed of sums in registers, there too. */
static int space_of_shape(const uir_kernel *k, const shape *s) {
    if (s->whole && !s->single && k->tile_space >= 0) return k->tile_space;
    int space = s->single && !s->scratch ? uir_machine_find_role(k->machine, UIR_SPACE_REGISTERS) : -1;
    return space >= 0 ? space : uir_machine_find_role(k->machine, UIR_SPACE_SCRATCH);
}

/* What computes with sums in registers has their extents, so that a thread has the same elements of both. */
static shape as_tile(const uir_kernel *k, shape s) {
    for (uint32_t l = 0; s.whole && !s.single && k->tile_space >= 0 && l < s.rank; l++)
        s.extents[l] = k->tile_extents[l];
    return s;
}

static int space_of_slice(const uir_kernel *k, const uir_islice *slice) {
    uint32_t tensors = k->f->tensors.count;
    return slice->pointer < tensors ? k->pointers[slice->pointer].space
                                    : k->memories.data[slice->pointer - tensors].space;
}

static int space_of_value(const uir_kernel *k, const uir_kernel_value *v) {
    if (v->kind != UIR_KERNEL_RESULT) return space_of_slice(k, v->slice);
    shape s = shape_of_value(k, v);
    return space_of_shape(k, &s);
}

/* How rows of a slice lie: side by side from where the machine begins rows, in blocks of such pieces, as the columns of
 * a matrix, or otherwise. */
typedef enum lie { IN_ROWS, IN_PIECES, ACROSS, APART } lie;

static lie lie_of_window(const uir_kernel *k, const uir_islice *slice, const uir_space *space) {
    static const lie lies[] = {IN_ROWS, ACROSS, APART}; /* by uir_iwindow_lie */
    if (slice->pointer >= k->f->tensors.count) return APART;
    const uir_kernel_pointer *p = &k->pointers[slice->pointer];
    return lies[uir_igraph_window_lie(k->graph, slice, &p->layout, p->rank, space,
                                      k->f->tensors.data[slice->pointer].dtype)];
}

static lie lie_of(uir_kernel *k, const uir_islice *slice) {
    const uir_space *space = &k->machine->spaces[space_of_slice(k, slice)];
    uint32_t tensors = k->f->tensors.count;
    if (slice->window) return lie_of_window(k, slice, space);
    if (space->scope == UIR_SCOPE_DEVICE || !slice->rank || slice->pointer >= tensors) return IN_ROWS;
    const uir_loop_tensor *tensor = &k->f->tensors.data[slice->pointer];
    if (tensor->layout && tensor->rank && tensor->layout->mode_count[tensor->rank - 1] > 1) return IN_PIECES;
    uint32_t bytes = uir_dtype_bits(tensor->dtype) / 8;
    uint32_t unit = bytes && space->alignment > bytes ? space->alignment / bytes : 1;
    return uir_dim_multiple(k->dims, slice->starts[slice->rank - 1]) % unit == 0 ? IN_ROWS : APART;
}

static lie lie_of_value(uir_kernel *k, const uir_kernel_value *v) {
    return v->kind != UIR_KERNEL_SLICE ? IN_ROWS : lie_of(k, v->slice);
}

static lie worse(lie a, lie b) {
    return a > b ? a : b;
}

/* ---- what the description wants ---- */
static uir_dtype other_dtype(const uir_kernel_operation *o) {
    return uir_iop_get_row(o->code)->family == UIR_IOP_FAMILY_CAST ? o->dtype_b : UIR_DTYPE_NONE;
}

static bool takes(const uir_legal_row *row, lie lie) {
    if (row->constraints & UIR_LEGAL_LAST_CONTIGUOUS) return lie == IN_ROWS;
    if (row->constraints & UIR_LEGAL_TRANSPOSES) return lie == ACROSS;
    return lie <= IN_PIECES || !(row->constraints & UIR_LEGAL_IN_PIECES);
}

/* The first row for operands in these spaces, of which one lies no better than so. NULL: there is none. */
static const uir_legal_row *legal_row(const uir_kernel *k, const uir_kernel_operation *o, int result, uint32_t operands,
                                      lie lie) {
    for (int row = -1;;) {
        row = uir_machine_find_legal(k->machine, uir_iop_get_row(o->code)->name, o->dtype, other_dtype(o),
                                     (uint32_t)result, operands, k->unit_kind, row + 1);
        if (row < 0) return NULL;
        if (takes(&k->machine->legal[row], lie)) return &k->machine->legal[row];
    }
}

static int space_of_target(const uir_kernel *k, const uir_kernel_instruction *i) {
    return i->result != UIR_LOWER_NONE ? space_of_value(k, &k->values.data[i->result]) : space_of_slice(k, i->target);
}

static uint32_t lanes_of_target(const uir_kernel *k, const uir_kernel_instruction *i) {
    return i->result != UIR_LOWER_NONE ? k->values.data[i->result].lanes : i->target_lanes;
}

static uir_dtype dtype_of_result(const uir_kernel_operation *o) {
    uir_iop_family family = uir_iop_get_row(o->code)->family;
    return family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL : family == UIR_IOP_FAMILY_CAST ? o->dtype_b : o->dtype;
}

/* The row for operands that have been brought to where temporaries lie; NULL: there is none. */
static const uir_legal_row *row_of_temporaries(const uir_kernel *k, const uir_kernel_instruction *i) {
    int scratch = uir_machine_find_role(k->machine, UIR_SPACE_SCRATCH),
        memory = uir_machine_find_role(k->machine, UIR_SPACE_MEMORY), result = space_of_target(k, i);
    uint32_t from = 0;
    if (scratch < 0) return NULL;
    for (uint32_t o = 0; o < i->operand_count; o++) {
        const uir_kernel_value *v = &k->values.data[i->operands[o]];
        if (v->kind == UIR_KERNEL_NUMBER) continue;
        int space = space_of_value(k, v);
        from |= 1u << (space == memory ? scratch : space);
    }
    return legal_row(k, &i->operation, result == memory ? scratch : result, from, IN_ROWS);
}

/* Does the operand repeat along the last lane of what is computed? */
static bool repeats_along_row(const uir_kernel *k, const uir_kernel_instruction *i, const uir_kernel_value *operand) {
    if (!k->lane_count || uir_iop_get_row(i->operation.code)->family == UIR_IOP_FAMILY_REDUCE) return false;
    uint32_t last = 1u << (k->lane_count - 1);
    return (lanes_of_target(k, i) & last) && !(operand->lanes & last) && !operand->block &&
           !uir_kernel_is_one(k, k->lanes[k->lane_count - 1].extent);
}

/* ---- copies by way of the scratch space ---- */
typedef struct fitting {
    uir_kernel *k;
    uint32_t *brought;  /* per value: the value that is it in the scratch space, in rows, + 1 */
    uint32_t *repeated; /* and that repeated along the row */
} fitting;

static uint32_t make_value(fitting *f, const uir_kernel_operation *operation, uint32_t operand, uir_kernel_value result,
                           const uir_islice *seen) {
    uir_kernel_instruction i = {.operation = *operation, .operands = {operand}, .operand_count = 1, .seen = seen};
    i.result = uir_kernel_add_value(f->k, result);
    uir_kernel_add_instruction(f->k, &i);
    return i.result;
}

/* A window of a tensor in terms of lanes: per dim of the tensor where it begins and how far it goes a lane. */
typedef struct seen_lanes {
    uir_dim base[UIR_IGRAPH_MAX_RANK];
    int64_t step[UIR_IGRAPH_MAX_RANK][UIR_KERNEL_MAX_LANES];
    bool plain; /* each lane goes along one dim, one element at a time, and no dim has several */
} seen_lanes;

static bool find_lanes(uir_kernel *k, const uir_islice *slice, uint32_t rank, seen_lanes *out) {
    uir_dim_replacement back[UIR_IGRAPH_MAX_RANK];
    uint32_t count = 0, uses[UIR_KERNEL_MAX_LANES];
    memset(uses, 0, sizeof uses);
    out->plain = true;
    if (k->row_lanes) return false;
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        uint32_t behind =
            slice->axis_count - a; /* axes are those of the last lanes; one of a line has another before */
        if (behind <= k->lane_count)
            back[count++] = (uir_dim_replacement){{slice->axes[a].symbol},
                                                  uir_dim_symbol(k->dims, k->lanes[k->lane_count - behind].symbol)};
    }
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t along = 0;
        memset(out->step[d], 0, sizeof out->step[d]);
        uir_dim start = uir_dim_replace(k->dims, slice->starts[d], back, count);
        if (!start.id || !uir_kernel_split_lanes(k, start, &out->base[d], out->step[d])) return false;
        for (uint32_t l = 0; l < k->lane_count; l++) {
            if (!out->step[d][l]) continue;
            out->plain = out->plain && out->step[d][l] == 1;
            along++;
            uses[l]++;
        }
        out->plain = out->plain && along <= 1;
    }
    for (uint32_t l = 0; l < k->lane_count; l++) out->plain = out->plain && uses[l] <= 1;
    return k->status == UIR_STATUS_OK;
}

/* The least box that has the window's elements, and the window as one of that box. */
typedef struct covering {
    uir_kernel_cover *cover;
    uir_islice *box, *inside;
} covering;

/* Of no lanes there is no element either, where steps between them would say less than none. */
static uir_dim none_at_least(uir_dims *dims, uir_dim count) {
    int64_t least, most;
    if (!count.id) return count;
    uir_dim_bounds(dims, count, &least, &most);
    return least < 0 ? uir_dim_max(dims, count, uir_dim_const(dims, 0)) : count;
}

static bool cover_window(uir_kernel *k, const uir_islice *slice, bool written, covering *out) {
    seen_lanes lanes;
    uir_dims *dims = k->dims;
    uir_dim one = uir_dim_const(dims, 1);
    uint32_t rank = k->pointers[slice->pointer].rank;
    out->cover = uir_arena_allocate(k->arena, sizeof *out->cover);
    out->box = uir_arena_allocate(k->arena, 2 * sizeof *out->box);
    if (!out->cover || !out->box) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return false;
    }
    if (!find_lanes(k, slice, rank, &lanes) || (written && !lanes.plain)) return false;
    out->inside = out->box + 1;
    *out->cover = (uir_kernel_cover){.rank = rank};
    *out->box = (uir_islice){.pointer = slice->pointer, .rank = rank, .has_fill = slice->has_fill, .fill = slice->fill};
    *out->inside = *slice;
    out->inside->has_fill = false;
    out->inside->fill = 0;
    for (uint32_t d = 0; d < rank; d++) {
        uir_dim low = lanes.base[d], count = one, extent = one;
        for (uint32_t l = 0; l < k->lane_count; l++) {
            int64_t step = lanes.step[d][l];
            if (!step) continue;
            uir_dim far = uir_dim_sub(dims, k->lanes[l].count, one);
            uir_dim most = uir_dim_sub(dims, k->lanes[l].extent, one);
            if (step < 0) low = uir_dim_add(dims, low, uir_dim_mul(dims, uir_dim_const(dims, step), far));
            uir_dim steps = uir_dim_const(dims, step < 0 ? -step : step);
            count = uir_dim_add(dims, count, uir_dim_mul(dims, steps, far));
            extent = uir_dim_add(dims, extent, uir_dim_mul(dims, steps, most));
        }
        extent = none_at_least(dims, extent);
        count = none_at_least(dims, count);
        out->cover->extents[d] = extent;
        out->cover->counts[d] = count;
        out->box->starts[d] = low;
        out->box->counts[d] = count;
        out->inside->starts[d] = uir_dim_sub(dims, slice->starts[d], low);
        if (!extent.id || !count.id || !low.id || !out->inside->starts[d].id) {
            uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
            return false;
        }
    }
    return true;
}

/* A slice that no move takes as it lies: the box around it comes to the scratch space, and what is wanted of it is
 * picked there. */
static bool bring_window(fitting *f, uint32_t value, uint32_t *out_value) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[value];
    covering c;
    if (!v.slice->window || v.slice->pointer >= k->f->tensors.count || !cover_window(k, v.slice, false, &c))
        return false;
    uir_kernel_operation move = {.code = UIR_IOP_MOVE, .dtype = v.dtype};
    uint32_t box = uir_kernel_slice_value(k, v.dtype, v.lanes, c.box);
    uint32_t whole = make_value(
        f, &move, box,
        (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = v.lanes, .cover = c.cover}, NULL);
    *out_value = make_value(
        f, &move, whole, (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = v.lanes}, c.inside);
    return true;
}

/* The value in rows, where temporaries lie. */
static uint32_t bring(fitting *f, uint32_t value) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[value];
    int scratch = uir_machine_find_role(k->machine, UIR_SPACE_SCRATCH);
    if (k->status != UIR_STATUS_OK || v.kind != UIR_KERNEL_SLICE || scratch < 0) return value;
    if (f->brought[value]) return f->brought[value] - 1;
    uir_kernel_operation move = {.code = UIR_IOP_MOVE, .dtype = v.dtype};
    uir_kernel_value made = {.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = v.lanes};
    uint32_t found;
    bool direct =
        legal_row(k, &move, space_of_value(k, &made), 1u << space_of_value(k, &v), lie_of(k, v.slice)) != NULL;
    if (direct || !bring_window(f, value, &found)) found = make_value(f, &move, value, made, NULL);
    f->brought[value] = found + 1;
    return found;
}

/* Stores a value that lies in rows, by way of the box around a window where no move writes that. */
static void store(fitting *f, uint32_t value, uir_kernel_instruction to) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[value];
    covering c;
    to.operation = (uir_kernel_operation){.code = UIR_IOP_MOVE, .dtype = v.dtype};
    to.operands[0] = value;
    to.operand_count = 1;
    to.result = UIR_LOWER_NONE;
    to.scratch = UIR_DIM_NONE;
    if (k->status != UIR_STATUS_OK) return;
    bool direct = legal_row(k, &to.operation, space_of_slice(k, to.target), 1u << space_of_value(k, &v),
                            lie_of(k, to.target)) != NULL;
    if (!direct && to.target->window && to.target->pointer < k->f->tensors.count &&
        cover_window(k, to.target, true, &c)) {
        to.operands[0] = make_value(
            f, &to.operation, value,
            (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = to.target_lanes, .cover = c.cover},
            c.inside);
        to.target = c.box;
    }
    uir_kernel_add_instruction(k, &to);
}

/* The bytes of an operand that repeats along a row. */
enum { BLOCK_BYTES = 32 };

/* The operand as what repeats along the row: a block of it, where instructions repeat that, else a row. */
static uint32_t repeat(fitting *f, uint32_t value, uint32_t lanes, const uir_legal_row *row) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[value];
    uint32_t bytes = uir_dtype_bits(v.dtype) / 8;
    bool block = row->constraints & UIR_LEGAL_BLOCK_BROADCAST && bytes && BLOCK_BYTES % bytes == 0;
    if (!f->repeated[value]) {
        uir_kernel_operation broadcast = {.code = UIR_IOP_BROADCAST, .dtype = v.dtype, .axis = UIR_IAXIS_ROW};
        uir_kernel_value made = {.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = block ? v.lanes : lanes};
        if (block) made.block = BLOCK_BYTES / bytes;
        f->repeated[value] = make_value(f, &broadcast, value, made, NULL) + 1;
    }
    return f->repeated[value] - 1;
}

/* A copy between places that no instruction has both of goes by way of the scratch space. */
static void fit_copy(fitting *f, uir_kernel_instruction i) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[i.operands[0]];
    uint32_t lanes = lanes_of_target(k, &i), value = i.operands[0];
    lie lie = worse(lie_of_value(k, &v), i.target ? lie_of(k, i.target) : IN_ROWS);
    const uir_legal_row *row = legal_row(k, &i.operation, space_of_target(k, &i), 1u << space_of_value(k, &v), lie);
    bool spreads = v.lanes != lanes && (!row || row->constraints & UIR_LEGAL_NO_BROADCAST);
    if (row && !spreads) {
        uir_kernel_add_instruction(k, &i);
        return;
    }
    value = bring(f, value);
    if (spreads) {
        uir_kernel_operation broadcast = {.code = UIR_IOP_BROADCAST, .dtype = v.dtype, .axis = UIR_IAXIS_ROW};
        if (i.result != UIR_LOWER_NONE) { /* what it makes is in rows */
            i.operation = broadcast;
            i.operands[0] = value;
            uir_kernel_add_instruction(k, &i);
            return;
        }
        value = make_value(f, &broadcast, value,
                           (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = lanes}, NULL);
    }
    if (i.result != UIR_LOWER_NONE) {
        i.operands[0] = value;
        uir_kernel_add_instruction(k, &i);
        return;
    }
    store(f, value, i);
}

/* What the machine wants for itself while it reduces a row: what each of its steps over the row leaves. */
static uir_dim scratch_of_row(const uir_kernel *k, uir_dtype dtype) {
    uir_dims *dims = k->dims;
    uint32_t bytes = uir_dtype_bits(dtype) / 8 ? uir_dtype_bits(dtype) / 8 : 1;
    int space = uir_machine_find_role(k->machine, UIR_SPACE_SCRATCH);
    uint32_t step = k->machine->vector_bytes / bytes, unit = k->machine->spaces[space].alignment / bytes;
    uir_dim steps = uir_dim_ceildiv(dims, k->lanes[k->lane_count - 1].extent, uir_dim_const(dims, step ? step : 1));
    unit = unit ? unit : 1;
    return uir_dim_mul(dims, uir_dim_ceildiv(dims, steps, uir_dim_const(dims, unit)), uir_dim_const(dims, unit));
}

static const struct {
    uir_iop_code reduce, combine;
} combine_rows[] = {{UIR_IOP_REDUCE_ADD, UIR_IOP_ADD},
                    {UIR_IOP_REDUCE_MUL, UIR_IOP_MUL},
                    {UIR_IOP_REDUCE_MAX, UIR_IOP_MAX},
                    {UIR_IOP_REDUCE_MIN, UIR_IOP_MIN}};

/* A reduction that goes on from a state which lies where none can: the state is combined with what is reduced. */
static void reduce_apart(fitting *f, uir_kernel_instruction i) {
    uir_kernel *k = f->k;
    uir_dtype dtype = i.operation.dtype;
    uir_kernel_value made = {.kind = UIR_KERNEL_RESULT, .dtype = dtype, .lanes = i.target_lanes};
    uir_kernel_operation combine = {.dtype = dtype};
    for (size_t n = 0; n < sizeof combine_rows / sizeof *combine_rows; n++)
        if (combine_rows[n].reduce == i.operation.code) combine.code = combine_rows[n].combine;
    uint32_t old = bring(f, uir_kernel_slice_value(k, dtype, i.target_lanes, i.target));
    uir_kernel_instruction reduce = i, whole = {.operation = combine, .operand_count = 2};
    reduce.operation.accumulate = false;
    reduce.stream = false;
    reduce.target = NULL;
    reduce.result = uir_kernel_add_value(k, made);
    uir_kernel_add_instruction(k, &reduce);
    whole.operands[0] = old;
    whole.operands[1] = reduce.result;
    whole.result = uir_kernel_add_value(k, made);
    uir_kernel_add_instruction(k, &whole);
    store(f, whole.result, i);
}

static void fit_instruction(fitting *f, const uir_kernel_instruction *instruction) {
    uir_kernel *k = f->k;
    uir_kernel_instruction i = *instruction;
    if (uir_iop_get_row(i.operation.code)->family == UIR_IOP_FAMILY_MOVE) {
        fit_copy(f, i);
        return;
    }
    const uir_legal_row *row = row_of_temporaries(k, &i);
    if (!row) { /* said where the kernel is looked at as a whole */
        uir_kernel_add_instruction(k, &i);
        return;
    }
    for (uint32_t o = 0; o < i.operand_count; o++) {
        uir_kernel_value v = k->values.data[i.operands[o]];
        if (v.kind == UIR_KERNEL_NUMBER) continue;
        if (!(row->spaces_operand >> space_of_value(k, &v) & 1) || !takes(row, lie_of_value(k, &v)))
            i.operands[o] = bring(f, i.operands[o]);
        if (k->status != UIR_STATUS_OK) return;
        if (row->constraints & (UIR_LEGAL_BLOCK_BROADCAST | UIR_LEGAL_NO_BROADCAST) &&
            repeats_along_row(k, &i, &k->values.data[i.operands[o]]))
            i.operands[o] = repeat(f, i.operands[o], lanes_of_target(k, &i), row);
    }
    if (row->constraints & UIR_LEGAL_REDUCE_SCRATCH && i.operation.axis == UIR_IAXIS_ROW && k->lane_count)
        i.scratch = scratch_of_row(k, i.operation.dtype);
    if (i.result != UIR_LOWER_NONE ||
        ((row->spaces_result >> space_of_target(k, &i) & 1) && takes(row, lie_of(k, i.target)))) {
        uir_kernel_add_instruction(k, &i);
        return;
    }
    if (i.operation.accumulate) {
        reduce_apart(f, i);
        return;
    }
    uir_kernel_instruction plain = i;
    plain.target = NULL;
    plain.stream = false;
    plain.result = uir_kernel_add_value(
        k,
        (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = dtype_of_result(&i.operation), .lanes = i.target_lanes});
    uir_kernel_add_instruction(k, &plain);
    store(f, plain.result, i);
}

/* ---- finished sums in registers ---- */
/* Takes the extents of a tile of which a slice has the first elements, lane by lane. */
static bool take_extents(uir_kernel *k, const uir_islice *slice) {
    const uir_kernel_pointer *p = &k->pointers[slice->pointer];
    if (slice->rank != k->lane_count) return false;
    for (uint32_t l = 0; l < k->lane_count; l++) {
        int64_t start;
        if (!uir_dim_is_const(k->dims, slice->starts[l], &start) || start ||
            !uir_dim_equal(slice->counts[l], k->lanes[l].count))
            return false;
        k->tile_extents[l] = p->dims[l] < 0 ? uir_dim_const(k->dims, 1) : p->extents[p->dims[l]];
    }
    return true;
}

/* The space of the registers whose tile, along all lanes, the block reads; -1: none. */
static int find_tile_space(uir_kernel *k) {
    for (uint32_t i = 0; i < k->values.count; i++) {
        const uir_kernel_value *v = &k->values.data[i];
        if (v->kind != UIR_KERNEL_SLICE || v->slice->window || v->slice->pointer >= k->f->tensors.count) continue;
        int space = space_of_slice(k, v->slice);
        shape s = shape_of_value(k, v);
        if (space >= 0 && s.whole && !s.single && (k->machine->spaces[space].roles & UIR_SPACE_REGISTERS) &&
            (k->machine->spaces[space].roles & UIR_SPACE_ACCUMULATORS))
            return take_extents(k, v->slice) ? space : -1;
    }
    return -1;
}

static bool works_by_elements(const uir_kernel_instruction *i) {
    switch (uir_iop_get_row(i->operation.code)->family) {
    case UIR_IOP_FAMILY_MOVE:
    case UIR_IOP_FAMILY_FILL:
    case UIR_IOP_FAMILY_UNARY:
    case UIR_IOP_FAMILY_BINARY:
    case UIR_IOP_FAMILY_TERNARY:
    case UIR_IOP_FAMILY_COMPARE:
    case UIR_IOP_FAMILY_CAST:
        return true;
    default:
        return false;
    }
}

/* Temporaries along all lanes that are alive at once: results, and operands that come to the registers. */
static uint32_t count_alive(const uir_kernel *k, int space, uint32_t *bytes) {
    uint32_t most = 0, n = k->instructions.count;
    *bytes = 4;
    uint32_t *first = uir_arena_allocate_array(k->arena, (size_t)k->values.count * 2 + 1, sizeof *first);
    if (!first) return UINT32_MAX;
    uint32_t *last = first + k->values.count;
    memset(first, 0xff, k->values.count * sizeof *first);
    for (uint32_t at = 0; at < n; at++) {
        const uir_kernel_instruction *i = &k->instructions.data[at];
        for (uint32_t o = 0; o <= i->operand_count; o++) {
            uint32_t value = o < i->operand_count ? i->operands[o] : i->result;
            if (value == UIR_LOWER_NONE) continue;
            const uir_kernel_value *v = &k->values.data[value];
            if (v->kind == UIR_KERNEL_NUMBER || (v->kind == UIR_KERNEL_SLICE && space_of_slice(k, v->slice) == space) ||
                !shape_of_value(k, v).whole)
                continue;
            if (first[value] == UINT32_MAX) first[value] = at;
            last[value] = at;
            if (uir_dtype_bits(v->dtype) / 8 > *bytes) *bytes = uir_dtype_bits(v->dtype) / 8;
        }
    }
    for (uint32_t at = 0; at < n; at++) {
        uint32_t alive = k->instructions.data[at].result == UIR_LOWER_NONE; /* what is stored is made before */
        for (uint32_t v = 0; v < k->values.count; v++) alive += first[v] <= at && at <= last[v];
        most = alive > most ? alive : most;
    }
    return most;
}

/* Bytes of what the registers hold already; -1: their extents are unknown. */
static int64_t count_held(const uir_kernel *k, int space) {
    int64_t all = 0;
    for (uint32_t i = 0; i < k->f->tensors.count; i++) {
        const uir_kernel_pointer *p = &k->pointers[i];
        int64_t elements = 1, extent;
        if (!p->on_chip || p->space != space) continue;
        for (uint32_t d = 0; d < k->f->tensors.data[i].rank; d++) {
            if (!uir_dim_is_const(k->dims, p->extents[d], &extent)) return -1;
            elements *= extent;
        }
        all += elements * (uir_dtype_bits(k->f->tensors.data[i].dtype) / 8);
    }
    return all;
}

/* Bytes of numbers in registers, of which each has a whole alignment: those of the blocks before, and of this one. */
static int64_t count_numbers(const uir_kernel *k, int space) {
    int64_t count = 0;
    for (uint32_t i = 0; i < k->memories.count; i++) count += k->memories.data[i].space == space;
    for (uint32_t v = 0; v < k->values.count; v++)
        count += k->values.data[v].kind == UIR_KERNEL_RESULT && space_of_value(k, &k->values.data[v]) == space;
    for (uint32_t i = 0; i < k->f->tensors.count; i++) count += k->pointers[i].on_chip && k->pointers[i].space == space;
    return count * k->machine->spaces[space].alignment;
}

/* Where a block computes with finished sums that are in registers, its temporaries are registers too, if there is room.
 * Each thread of a unit then computes with elements of its own. */
static int choose_tile_space(uir_kernel *k) {
    int space = find_tile_space(k);
    int64_t elements = 1, extent, held = space >= 0 ? count_held(k, space) : -1;
    uint32_t bytes;
    if (held < 0) return -1;
    for (uint32_t n = 0; n < k->instructions.count; n++)
        if (!works_by_elements(&k->instructions.data[n]) || k->instructions.data[n].seen) return -1;
    for (uint32_t l = 0; l < k->lane_count; l++) {
        if (!uir_dim_is_const(k->dims, k->tile_extents[l], &extent)) return -1;
        elements *= extent;
    }
    uint32_t alive = count_alive(k, space, &bytes);
    int64_t wanted = held + elements * bytes * alive + count_numbers(k, space);
    return wanted <= (int64_t)k->machine->spaces[space].capacity ? space : -1;
}

/* Does each instruction find what it takes where it lies? */
static bool all_fit(uir_kernel *k) {
    for (uint32_t n = 0; n < k->instructions.count; n++) {
        const uir_kernel_instruction *i = &k->instructions.data[n];
        uint32_t operands = 0;
        bool repeats = false;
        lie lie = i->target ? lie_of(k, i->target) : IN_ROWS;
        for (uint32_t o = 0; o < i->operand_count; o++) {
            const uir_kernel_value *v = &k->values.data[i->operands[o]];
            if (v->kind == UIR_KERNEL_NUMBER) continue;
            operands |= 1u << space_of_value(k, v);
            repeats = repeats || v->lanes != lanes_of_target(k, i);
            lie = worse(lie, lie_of_value(k, v));
        }
        const uir_legal_row *row = legal_row(k, &i->operation, space_of_target(k, i), operands, IN_ROWS);
        if (!row || row->constraints & UIR_LEGAL_REDUCE_SCRATCH) return false;
        if (repeats && row->constraints & (UIR_LEGAL_BLOCK_BROADCAST | UIR_LEGAL_NO_BROADCAST)) return false;
        if (!takes(row, lie)) return false;
    }
    return true;
}

static void fit_block(uir_kernel *k) {
    uint32_t count = k->instructions.count, most = k->values.count + 12 * count + 1;
    k->tile_space = k->status == UIR_STATUS_OK ? choose_tile_space(k) : -1;
    if (k->status != UIR_STATUS_OK || !count || all_fit(k)) return;
    fitting f = {.k = k};
    const uir_kernel_instruction *as_made =
        uir_arena_copy(k->arena, k->instructions.data, count * sizeof *k->instructions.data);
    f.brought = uir_arena_allocate_array(k->arena, (size_t)most * 2, sizeof *f.brought);
    if (!as_made || !f.brought) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return;
    }
    f.repeated = f.brought + most;
    for (uint32_t i = 0; i < k->values.count; i++) k->values.data[i].uses = 0;
    k->instructions.count = 0;
    for (uint32_t n = 0; n < count && k->status == UIR_STATUS_OK; n++) fit_instruction(&f, &as_made[n]);
}

/* ---- memory ---- */
static bool has_shape(const uir_kernel_memory *m, const shape *s) {
    if (m->rank != s->rank) return false;
    for (uint32_t d = 0; d < s->rank; d++)
        if (!uir_dim_equal(s->extents[d], m->extents[d])) return false;
    return true;
}

/* Free memory of this dtype and shape, or new. */
static uint32_t take_memory(uir_kernel *k, uir_dtype dtype, const shape *s) {
    char name[24];
    int space = space_of_shape(k, s);
    for (uint32_t i = s->single ? 0 : k->first_memory; i < k->memories.count; i++) {
        uir_kernel_memory *m = &k->memories.data[i];
        if (m->taken || m->dtype != dtype || m->space != space || !has_shape(m, s)) continue;
        m->taken = true;
        return i;
    }
    snprintf(name, sizeof name, "%s%u", s->single ? "r" : "v", k->memories.count);
    uir_kernel_memory made = {.dtype = dtype, .rank = s->rank, .space = space, .taken = true};
    if (made.space < 0) uir_kernel_refuse(k, "device %s has no space for intermediate values", k->machine->name);
    made.name = uir_arena_copy_string(k->arena, name, strlen(name));
    if (!made.name) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    memcpy(made.extents, s->extents, sizeof made.extents);
    if (k->status == UIR_STATUS_OK) k->status = uir_vector_push(k->arena, &k->memories, made);
    return k->memories.count - 1;
}

/* Rank 2 at least: what reduces a row keeps its dims. */
static uir_islice *memory_slice(uir_kernel *k, uint32_t memory, const shape *s) {
    uir_islice *slice = uir_arena_allocate(k->arena, sizeof *slice);
    if (!slice) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return NULL;
    }
    uir_dim zero = uir_dim_const(k->dims, 0), one = uir_dim_const(k->dims, 1);
    uint32_t ones = s->rank < 2 ? 2 - s->rank : 0;
    *slice = (uir_islice){.pointer = k->f->tensors.count + memory, .rank = ones + s->rank};
    for (uint32_t d = 0; d < slice->rank; d++) {
        slice->starts[d] = zero;
        slice->counts[d] = d >= ones ? s->counts[d - ones] : one;
    }
    return slice;
}

/* A window of a cover, once that has its memory. */
static uir_islice see(const uir_kernel *k, const uir_islice *seen, const uir_kernel_value *cover) {
    uir_islice slice = *seen;
    uint32_t rank = k->memories.data[cover->pool].rank;
    slice.pointer = k->f->tensors.count + cover->pool;
    for (uint32_t d = rank; d < 2; d++) { /* it was given dims in front */
        for (uint32_t n = rank; n > 0; n--) slice.starts[n] = slice.starts[n - 1];
        slice.starts[0] = uir_dim_const(k->dims, 0);
        rank++;
    }
    return slice;
}

static void put_instruction(uir_kernel *k, const uir_kernel_instruction *i, const uir_islice *target) {
    const uir_kernel_operation *o = &i->operation;
    uir_iinstruction out = {.code = o->code, .dtype = o->dtype, .dtype_b = o->dtype_b, .dtype_c = o->dtype_c};
    out.axis = o->axis;
    out.accumulate = o->accumulate;
    out.saturate = o->saturate;
    out.start = o->start;
    out.stream = i->stream;
    out.sync_pointer = out.legal_row = UINT32_MAX;
    out.slices[out.slice_count++] = *target;
    if (i->seen && i->result != UIR_LOWER_NONE && k->values.data[i->result].cover)
        out.slices[0] = see(k, i->seen, &k->values.data[i->result]);
    for (uint32_t n = 0; n < i->operand_count; n++) {
        const uir_kernel_value *v = &k->values.data[i->operands[n]];
        if (v->kind != UIR_KERNEL_NUMBER) {
            out.slices[out.slice_count] = i->seen && v->cover ? see(k, i->seen, v) : *v->slice;
            out.slices[out.slice_count++].block = v->block != 0;
        } else if (o->code == UIR_IOP_FILL) {
            out.immediate = v->number;
        } else {
            out.immediates[n] = v->number;
            out.immediate_mask |= 1u << n;
        }
    }
    if (i->scratch.id) {
        shape s = shape_of_lanes(k, 0, i->scratch);
        uint32_t memory = take_memory(k, o->dtype, &s);
        if (k->status != UIR_STATUS_OK) return;
        const uir_islice *scratch = memory_slice(k, memory, &s);
        if (!scratch) return;
        out.has_scratch = true;
        out.scratch = *scratch;
        k->memories.data[memory].taken = false;
    }
    uir_kernel_put(k, &out);
}

void uir_kernel_end_block(uir_kernel *k) {
    fit_block(k);
    for (uint32_t n = 0; k->status == UIR_STATUS_OK && n < k->instructions.count; n++) {
        const uir_kernel_instruction *i = &k->instructions.data[n];
        /* An operand that is not used again gives its memory back before the result takes some: the result may lie in
         * its place, slice for slice. What the machine wants for itself lies apart from both, and so does what is seen
         * by a window or repeats. */
        bool apart = i->scratch.id || i->seen;
        for (uint32_t o = 0; o < i->operand_count; o++) apart = apart || k->values.data[i->operands[o]].block;
        for (uint32_t o = 0; o < i->operand_count; o++) {
            uir_kernel_value *v = &k->values.data[i->operands[o]];
            v->uses--;
            if (!v->uses && v->kind == UIR_KERNEL_RESULT && !apart) k->memories.data[v->pool].taken = false;
        }
        const uir_islice *target = i->target;
        uint32_t taken = UINT32_MAX;
        if (i->result != UIR_LOWER_NONE) {
            uir_kernel_value v = k->values.data[i->result];
            shape s = as_tile(k, shape_of_value(k, &v));
            taken = v.pool = take_memory(k, v.dtype, &s);
            if (k->status != UIR_STATUS_OK) return;
            target = v.slice = memory_slice(k, v.pool, &s);
            k->values.data[i->result] = v;
        }
        if (k->status == UIR_STATUS_OK) put_instruction(k, i, target);
        if (taken != UINT32_MAX && !k->values.data[i->result].uses) k->memories.data[taken].taken = false;
        for (uint32_t o = 0; o < i->operand_count && apart; o++) {
            const uir_kernel_value *v = &k->values.data[i->operands[o]];
            if (!v->uses && v->kind == UIR_KERNEL_RESULT) k->memories.data[v->pool].taken = false;
        }
    }
    k->tile_space = -1;
    /* Each block's own, so that loops have instances of them, and what is not alive together comes to lie in one place;
     * single elements have neither. */
    if (k->machine->pipe_count > 1 && k->doubling != UIR_DOUBLE_NONE) k->first_memory = k->memories.count;
}
