/* The instructions of a block as the machine takes them: operands come to where the description wants them and results
 * go from there to where they are to lie, elements that repeat along a row are written out, temporaries get their
 * memory. Where every instruction finds its operands as they lie, nothing is changed. */
#include "lower/kernel.h"

#include <stdio.h>
#include <string.h>

/* ---- where values lie ---- */
/* What a value takes in memory: along which lanes, and how many elements along the last one where they are not the
 * lane's own. */
typedef struct shape {
    uint32_t lanes;
    uir_dim last;
} shape;

static uir_dim extent_along(const uir_kernel *k, shape s, uint32_t lane) {
    if (s.last.id && lane + 1 == k->lane_count) return s.last;
    return s.lanes >> lane & 1 ? k->lanes[lane].extent : uir_dim_const(k->dims, 1);
}

/* One element lies in registers, where there are any. */
static int space_of_shape(const uir_kernel *k, shape s) {
    bool single = true;
    for (uint32_t l = 0; l < k->lane_count; l++) single = single && uir_kernel_is_one(k, extent_along(k, s, l));
    int space = single ? uir_device_find_role(k->device, UIR_SPACE_REGISTERS) : -1;
    return space >= 0 ? space : uir_device_find_role(k->device, UIR_SPACE_SCRATCH);
}

static shape shape_of_value(const uir_kernel *k, const uir_kernel_value *v) {
    return (shape){v->lanes, v->block ? uir_dim_const(k->dims, v->block) : UIR_DIM_NONE};
}

static int space_of_value(const uir_kernel *k, const uir_kernel_value *v) {
    if (v->kind == UIR_KERNEL_RESULT) return space_of_shape(k, shape_of_value(k, v));
    uint32_t pointer = v->slice->pointer, tensors = k->f->tensors.count;
    return pointer < tensors ? k->pointers[pointer].space : k->memories.data[pointer - tensors].space;
}

/* ---- what the description wants ---- */
static uir_dtype other_dtype(const uir_kernel_operation *o) {
    return uir_iop_get_row(o->code)->family == UIR_IOP_FAMILY_CAST ? o->dtype_b : UIR_DTYPE_NONE;
}

static const uir_legal_row *legal_row(const uir_kernel *k, const uir_kernel_operation *o, int result,
                                      uint32_t operands) {
    int row = uir_device_find_legal(k->device, uir_iop_get_row(o->code)->name, o->dtype, other_dtype(o),
                                    (uint32_t)result, operands, 0);
    return row < 0 ? NULL : &k->device->legal[row];
}

/* The row for operands and results that lie where temporaries do; NULL: there is none. */
static const uir_legal_row *row_of_temporaries(const uir_kernel *k, const uir_kernel_operation *o, int result,
                                               const int *operands, uint32_t count) {
    int scratch = uir_device_find_role(k->device, UIR_SPACE_SCRATCH);
    int memory = uir_device_find_role(k->device, UIR_SPACE_MEMORY);
    uint32_t from = 0;
    if (scratch < 0) return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (operands[i] >= 0) from |= 1u << (operands[i] == memory ? scratch : operands[i]);
    return legal_row(k, o, result == memory ? scratch : result, from);
}

static int space_of_target(const uir_kernel *k, const uir_kernel_instruction *i) {
    if (i->result != UIR_LOWER_NONE) return space_of_value(k, &k->values.data[i->result]);
    return space_of_value(k, &(uir_kernel_value){.kind = UIR_KERNEL_SLICE, .slice = i->target});
}

static uint32_t lanes_of_target(const uir_kernel *k, const uir_kernel_instruction *i) {
    return i->result != UIR_LOWER_NONE ? k->values.data[i->result].lanes : i->target_lanes;
}

static uir_dtype dtype_of_result(const uir_kernel_operation *o) {
    uir_iop_family family = uir_iop_get_row(o->code)->family;
    return family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL : family == UIR_IOP_FAMILY_CAST ? o->dtype_b : o->dtype;
}

/* Does the operand repeat along the last lane of what is computed? */
static bool repeats_along_row(const uir_kernel *k, const uir_kernel_instruction *i, const uir_kernel_value *operand) {
    if (!k->lane_count || uir_iop_get_row(i->operation.code)->family == UIR_IOP_FAMILY_REDUCE) return false;
    uint32_t last = 1u << (k->lane_count - 1);
    return (lanes_of_target(k, i) & last) && !(operand->lanes & last) && !operand->block &&
           !uir_kernel_is_one(k, k->lanes[k->lane_count - 1].extent);
}

/* ---- bringing operands ---- */
typedef struct fitting {
    uir_kernel *k;
    uint32_t *brought; /* per value: the value that is it in the scratch space, and that repeated along the row, + 1 */
    uint32_t *repeated;
} fitting;

static uint32_t make_value(fitting *f, const uir_kernel_operation *operation, uint32_t operand,
                           uir_kernel_value result) {
    uir_kernel_instruction i = {.operation = *operation, .operands = {operand}, .operand_count = 1};
    i.result = uir_kernel_add_value(f->k, result);
    uir_kernel_add_instruction(f->k, &i);
    return i.result;
}

/* The operand where an instruction of this row takes it. */
static uint32_t bring(fitting *f, uint32_t value, const uir_legal_row *row) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[value];
    if (v.kind == UIR_KERNEL_NUMBER || row->spaces_operand >> space_of_value(k, &v) & 1) return value;
    if (!f->brought[value]) {
        uir_kernel_operation move = {.code = UIR_IOP_MOVE, .dtype = v.dtype};
        f->brought[value] =
            make_value(f, &move, value,
                       (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = v.lanes}) +
            1;
    }
    return f->brought[value] - 1;
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
        f->repeated[value] = make_value(f, &broadcast, value, made) + 1;
    }
    return f->repeated[value] - 1;
}

/* A copy between places that no instruction has both of goes by way of the scratch space. */
static void fit_copy(fitting *f, uir_kernel_instruction *i) {
    uir_kernel *k = f->k;
    uir_kernel_value v = k->values.data[i->operands[0]];
    int from = space_of_value(k, &v), scratch = uir_device_find_role(k->device, UIR_SPACE_SCRATCH);
    uint32_t lanes = lanes_of_target(k, i);
    const uir_legal_row *row = legal_row(k, &i->operation, space_of_target(k, i), 1u << from);
    bool spreads = v.lanes != lanes && !v.block && (!row || row->constraints & UIR_LEGAL_NO_BROADCAST);
    if (!row && !spreads && scratch >= 0 && from != scratch) {
        const uir_legal_row to_scratch = {.spaces_operand = 1u << scratch};
        i->operands[0] = bring(f, i->operands[0], &to_scratch);
    }
    if (!spreads) return;
    /* What is less than it goes to is spread over it. */
    uir_kernel_operation broadcast = {.code = UIR_IOP_BROADCAST, .dtype = v.dtype, .axis = UIR_IAXIS_ROW};
    const uir_legal_row *spread = row_of_temporaries(k, &broadcast, scratch, &from, 1);
    if (!spread) return;
    uint32_t value = bring(f, i->operands[0], spread);
    if (space_of_target(k, i) == scratch) {
        i->operation = broadcast;
        i->operands[0] = value;
        return;
    }
    i->operands[0] =
        make_value(f, &broadcast, value,
                   (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = v.dtype, .lanes = lanes});
}

/* What the machine wants for itself while it reduces a row: what each of its steps over the row leaves. */
static uir_dim scratch_of_row(const uir_kernel *k, uir_dtype dtype) {
    uir_dims *dims = k->dims;
    uint32_t bytes = uir_dtype_bits(dtype) / 8 ? uir_dtype_bits(dtype) / 8 : 1;
    int space = uir_device_find_role(k->device, UIR_SPACE_SCRATCH);
    uint32_t step = k->device->vector_bytes / bytes, unit = k->device->spaces[space].alignment / bytes;
    uir_dim steps =
        uir_dim_ceildiv(dims, k->lanes[k->lane_count - 1].extent, uir_dim_const(dims, step ? step : 1));
    unit = unit ? unit : 1;
    return uir_dim_mul(dims, uir_dim_ceildiv(dims, steps, uir_dim_const(dims, unit)), uir_dim_const(dims, unit));
}

static void fit_instruction(fitting *f, const uir_kernel_instruction *instruction) {
    uir_kernel *k = f->k;
    uir_kernel_instruction i = *instruction;
    const uir_iop_row *iop = uir_iop_get_row(i.operation.code);
    int spaces[4], result = space_of_target(k, &i);
    if (iop->family == UIR_IOP_FAMILY_MOVE) {
        fit_copy(f, &i);
        uir_kernel_add_instruction(k, &i);
        return;
    }
    for (uint32_t o = 0; o < i.operand_count; o++) {
        const uir_kernel_value *v = &k->values.data[i.operands[o]];
        spaces[o] = v->kind == UIR_KERNEL_NUMBER ? -1 : space_of_value(k, v);
    }
    const uir_legal_row *row = row_of_temporaries(k, &i.operation, result, spaces, i.operand_count);
    if (!row) { /* said where the kernel is looked at as a whole */
        uir_kernel_add_instruction(k, &i);
        return;
    }
    for (uint32_t o = 0; o < i.operand_count; o++) {
        if (k->values.data[i.operands[o]].kind == UIR_KERNEL_NUMBER) continue;
        i.operands[o] = bring(f, i.operands[o], row);
        if (k->status == UIR_STATUS_OK &&
            row->constraints & (UIR_LEGAL_BLOCK_BROADCAST | UIR_LEGAL_NO_BROADCAST) &&
            repeats_along_row(k, &i, &k->values.data[i.operands[o]]))
            i.operands[o] = repeat(f, i.operands[o], lanes_of_target(k, &i), row);
    }
    if (row->constraints & UIR_LEGAL_REDUCE_SCRATCH && i.operation.axis == UIR_IAXIS_ROW && k->lane_count)
        i.scratch = scratch_of_row(k, i.operation.dtype);
    if (row->spaces_result >> result & 1 || i.result != UIR_LOWER_NONE || i.operation.accumulate) {
        uir_kernel_add_instruction(k, &i);
        return;
    }
    uir_kernel_instruction store = {.operation = {.code = UIR_IOP_MOVE, .dtype = dtype_of_result(&i.operation)},
                                    .result = UIR_LOWER_NONE,
                                    .target = i.target,
                                    .target_lanes = i.target_lanes,
                                    .operand_count = 1,
                                    .stream = i.stream};
    i.result = store.operands[0] = uir_kernel_add_value(
        k, (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = store.operation.dtype, .lanes = i.target_lanes});
    i.target = NULL;
    i.stream = false;
    uir_kernel_add_instruction(k, &i);
    uir_kernel_add_instruction(k, &store);
}

/* Does each instruction find what it takes where it lies? */
static bool all_fit(const uir_kernel *k) {
    for (uint32_t n = 0; n < k->instructions.count; n++) {
        const uir_kernel_instruction *i = &k->instructions.data[n];
        uint32_t operands = 0;
        bool repeats = false;
        for (uint32_t o = 0; o < i->operand_count; o++) {
            const uir_kernel_value *v = &k->values.data[i->operands[o]];
            if (v->kind == UIR_KERNEL_NUMBER) continue;
            operands |= 1u << space_of_value(k, v);
            repeats = repeats || v->lanes != lanes_of_target(k, i);
        }
        const uir_legal_row *row = legal_row(k, &i->operation, space_of_target(k, i), operands);
        if (!row || row->constraints & UIR_LEGAL_REDUCE_SCRATCH) return false;
        if (repeats && row->constraints & (UIR_LEGAL_BLOCK_BROADCAST | UIR_LEGAL_NO_BROADCAST)) return false;
    }
    return true;
}

static void fit_block(uir_kernel *k) {
    uint32_t count = k->instructions.count, most = k->values.count + 4 * count + 1;
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
static bool has_shape(const uir_kernel *k, const uir_kernel_memory *m, shape s) {
    if (m->rank != k->lane_count) return false;
    for (uint32_t l = 0; l < k->lane_count; l++)
        if (!uir_dim_equal(extent_along(k, s, l), m->extents[l])) return false;
    return true;
}

/* Free memory of this dtype and shape, or new. */
static uint32_t take_memory(uir_kernel *k, uir_dtype dtype, shape s) {
    char name[24];
    for (uint32_t i = 0; i < k->memories.count; i++) {
        uir_kernel_memory *m = &k->memories.data[i];
        if (m->taken || m->dtype != dtype || !has_shape(k, m, s)) continue;
        m->taken = true;
        return i;
    }
    snprintf(name, sizeof name, "%s%u", s.lanes ? "v" : "r", k->memories.count);
    uir_kernel_memory made = {
        .dtype = dtype, .rank = k->lane_count, .space = space_of_shape(k, s), .taken = true};
    if (made.space < 0) uir_kernel_refuse(k, "%s has no space for what is computed on the way", k->device->name);
    made.name = uir_arena_copy_string(k->arena, name, strlen(name));
    if (!made.name) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t l = 0; l < k->lane_count; l++) made.extents[l] = extent_along(k, s, l);
    if (k->status == UIR_STATUS_OK) k->status = uir_vector_push(k->arena, &k->memories, made);
    return k->memories.count - 1;
}

/* Rank 2 at least: what reduces a row keeps its dims. */
static uir_islice *memory_slice(uir_kernel *k, uint32_t memory, shape s) {
    uir_islice *slice = uir_arena_allocate(k->arena, sizeof *slice);
    if (!slice) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return NULL;
    }
    uir_dim zero = uir_dim_const(k->dims, 0), one = uir_dim_const(k->dims, 1);
    uint32_t ones = k->lane_count < 2 ? 2 - k->lane_count : 0;
    *slice = (uir_islice){.pointer = k->f->tensors.count + memory, .rank = ones + k->lane_count};
    for (uint32_t d = 0; d < slice->rank; d++) {
        bool varies = d >= ones && (s.lanes >> (d - ones) & 1);
        slice->starts[d] = zero;
        slice->counts[d] = varies ? k->lanes[d - ones].count : one;
    }
    if (s.last.id && slice->rank) slice->counts[slice->rank - 1] = s.last;
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
    for (uint32_t n = 0; n < i->operand_count; n++) {
        const uir_kernel_value *v = &k->values.data[i->operands[n]];
        if (v->kind != UIR_KERNEL_NUMBER) {
            out.slices[out.slice_count] = *v->slice;
            out.slices[out.slice_count++].block = v->block != 0;
        } else if (o->code == UIR_IOP_FILL) {
            out.immediate = v->number;
        } else {
            out.immediates[n] = v->number;
            out.immediate_mask |= 1u << n;
        }
    }
    if (i->scratch.id) {
        shape s = {0, i->scratch};
        uint32_t memory = take_memory(k, o->dtype, s);
        if (k->status != UIR_STATUS_OK) return;
        const uir_islice *scratch = memory_slice(k, memory, s);
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
         * its place, slice for slice. What the machine wants for itself lies apart from both. */
        for (uint32_t o = 0; o < i->operand_count; o++) {
            uir_kernel_value *v = &k->values.data[i->operands[o]];
            v->uses--;
            if (!v->uses && v->kind == UIR_KERNEL_RESULT && !i->scratch.id) k->memories.data[v->pool].taken = false;
        }
        const uir_islice *target = i->target;
        uint32_t taken = UINT32_MAX;
        if (i->result != UIR_LOWER_NONE) {
            uir_kernel_value v = k->values.data[i->result];
            shape s = shape_of_value(k, &v);
            taken = v.pool = take_memory(k, v.dtype, s);
            if (k->status != UIR_STATUS_OK) return;
            target = v.slice = memory_slice(k, v.pool, s);
            k->values.data[i->result] = v;
        }
        if (k->status == UIR_STATUS_OK) put_instruction(k, i, target);
        if (taken != UINT32_MAX && !k->values.data[i->result].uses) k->memories.data[taken].taken = false;
        for (uint32_t o = 0; o < i->operand_count && i->scratch.id; o++) {
            const uir_kernel_value *v = &k->values.data[i->operands[o]];
            if (!v->uses && v->kind == UIR_KERNEL_RESULT) k->memories.data[v->pool].taken = false;
        }
    }
}
