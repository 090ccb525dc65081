/* One instruction: rows of its slices through the routine of its family. */
#include "backends/vm/machine.h"

#include <math.h>
#include <string.h>

static double real_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store_immediate(uir_dtype dtype, char *to, double value) {
    if (uir_dtype_is_float(dtype))
        uir_dtype_store_double(dtype, to, 0, dtype == UIR_DTYPE_F64 ? value : (double)(float)value,
                               UIR_ROUND_NEAREST_EVEN);
    else
        uir_dtype_store_integer(dtype, to, 0, value >= -9e18 && value <= 9e18 ? (int64_t)value : 0, false,
                                UIR_ROUND_NEAREST_EVEN);
}

static void splat(char *to, const char *element, uint32_t size, int64_t count) {
    switch (size) {
    case 1:
        memset(to, *element, (size_t)count);
        break;
    case 2:
        for (int64_t i = 0; i < count; i++) memcpy(to + 2 * i, element, 2);
        break;
    case 4:
        for (int64_t i = 0; i < count; i++) memcpy(to + 4 * i, element, 4);
        break;
    default:
        for (int64_t i = 0; i < count; i++) memcpy(to + 8 * i, element, 8);
        break;
    }
}

/* ---- operands of elementwise instructions ---- */
typedef struct operand {
    bool is_immediate;
    char immediate[8];
    uint32_t size;
    vm_view view;
    const char *copy;             /* of the whole slice, when it overlaps the result elsewhere */
    int64_t strides[VM_MAX_RANK]; /* in rows, per dim of the result but the last: 0 where it broadcasts */
    bool repeats, single;         /* last dim: block, or one element for all */
} operand;

/* How an operand's rows go with the result's: trailing dims align, an extent of 1 broadcasts. */
static uir_status align_operand(vm_machine *machine, const vm_view *result, operand *o) {
    const vm_view *v = &o->view;
    int64_t stride = 1;
    for (uint32_t from_end = 1; from_end <= v->rank; from_end++) {
        int64_t count = v->dims[v->rank - from_end].count;
        int64_t wanted = from_end <= result->rank ? result->dims[result->rank - from_end].count : 1;
        bool block = v->block && from_end == 1 && count > 0;
        if (count != 1 && count != wanted && !block)
            return uir_vm_fail(machine, "an operand of %lld along a dim of %lld", (long long)count, (long long)wanted);
        if (from_end == 1) {
            o->single = count == 1;
            o->repeats = block && count != wanted && count != 1;
            continue;
        }
        if (from_end <= result->rank) o->strides[result->rank - from_end] = count == 1 ? 0 : stride;
        stride *= count;
    }
    if (v->rank == 0) o->single = true;
    return UIR_STATUS_OK;
}

static int64_t operand_row(const operand *o, const vm_view *result, int64_t row) {
    int64_t at = 0;
    for (uint32_t d = result->rank; d-- > 1;) {
        at += row % result->dims[d - 1].count * o->strides[d - 1];
        row /= result->dims[d - 1].count;
    }
    return at;
}

static const char *read_row(const operand *o, int64_t row, int64_t start, int64_t count, char *buffer) {
    if (!o->copy) return uir_vm_view_read(&o->view, row, start, count, buffer);
    return o->copy + (size_t)(row * vm_view_columns(&o->view) + start) * o->size;
}

/* `count` elements that go with columns start.. of the result's row. */
static const char *read_operand(const operand *o, const vm_view *result, int64_t row, int64_t start, int64_t count,
                                char *buffer) {
    if (o->is_immediate) return buffer; /* filled beforehand */
    int64_t at = operand_row(o, result, row);
    if (o->single) {
        char element[8];
        memcpy(element, read_row(o, at, 0, 1, element), o->size);
        splat(buffer, element, o->size, count);
        return buffer;
    }
    if (!o->repeats) return read_row(o, at, start, count, buffer);
    int64_t period = vm_view_columns(&o->view);
    for (int64_t i = 0; i < count; i++) {
        char element[8];
        memcpy(buffer + (size_t)i * o->size, read_row(o, at, (start + i) % period, 1, element), o->size);
    }
    return buffer;
}

/* Equal addresses element for element, so that computing in place is sound. */
static bool same_place(const vm_view *a, const vm_view *b) {
    if (a->rank != b->rank || a->offsets || b->offsets) return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        const vm_dim *x = &a->dims[d], *y = &b->dims[d];
        if (x->count != y->count || x->low != y->low || x->high != y->high || x->base != y->base ||
            x->stride != y->stride || x->along || y->along)
            return false;
    }
    return true;
}

static uir_status bind_operands(vm_machine *machine, const vm_instruction *in, const uir_iop_row *row,
                                const vm_view *result, operand *operands) {
    uint32_t slice = 1;
    for (uint32_t i = 0; i < row->operands; i++) {
        operand *o = &operands[i];
        memset(o, 0, sizeof *o);
        if (in->immediate_mask >> i & 1) {
            uir_dtype dtype = in->code == UIR_IOP_SELECT && i == 0 ? UIR_DTYPE_BOOL : (uir_dtype)in->dtype;
            o->is_immediate = true;
            o->size = uir_dtype_bits(dtype) / 8;
            store_immediate(dtype, o->immediate, real_of(in->immediates[i]));
            splat(machine->chunks[i + 1], o->immediate, o->size, VM_CHUNK);
            continue;
        }
        UIR_TRY(uir_vm_view_bind(machine, in->slices[slice++], &o->view));
        o->size = o->view.size;
        UIR_TRY(align_operand(machine, result, o));
        if (o->view.pointer == result->pointer && !same_place(&o->view, result) && o->view.total)
            UIR_TRY_ALLOCATE(o->copy, uir_vm_view_copy(machine, &o->view));
    }
    return UIR_STATUS_OK;
}

/* ---- casts ---- */
/* `saturate` clamps to an integer target's range before converting. */
static uir_status cast_row(vm_machine *machine, const vm_instruction *in, const char *from, char *to, int64_t count) {
    uir_dtype source = (uir_dtype)in->dtype, target = (uir_dtype)in->dtype_b;
    bool saturate = in->flags & VM_FLAG_SATURATE;
    if (!saturate || uir_dtype_is_float(target) || target == UIR_DTYPE_BOOL) {
        return uir_dtype_convert(source, from, target, to, (uint64_t)count,
                                 saturate ? UIR_ROUND_SATURATE : UIR_ROUND_NEAREST_EVEN);
    }
    int64_t least = uir_dtype_integer_min(target);
    uint64_t greatest = uir_dtype_integer_max(target);
    bool is_unsigned = uir_dtype_get_class(source) != UIR_DTYPE_CLASS_SIGNED;
    (void)machine;
    for (int64_t i = 0; i < count; i++) {
        if (uir_dtype_is_float(source)) {
            double x = uir_dtype_load_double(source, from, (uint64_t)i);
            if (x < (double)least)
                uir_dtype_store_integer(target, to, (uint64_t)i, least, false, UIR_ROUND_SATURATE);
            else if (x >= (double)greatest)
                uir_dtype_store_integer(target, to, (uint64_t)i, (int64_t)greatest, false, UIR_ROUND_SATURATE);
            else
                uir_dtype_store_double(target, to, (uint64_t)i, x, UIR_ROUND_SATURATE);
            continue;
        }
        int64_t x = uir_dtype_load_integer(source, from, (uint64_t)i);
        bool negative = !is_unsigned && x < 0;
        if (negative && x < least) x = least;
        if (!negative && (uint64_t)x > greatest) x = (int64_t)greatest;
        uir_dtype_store_integer(target, to, (uint64_t)i, x, is_unsigned, UIR_ROUND_SATURATE);
    }
    return UIR_STATUS_OK;
}

/* ---- elementwise, moves, broadcasts, casts ---- */
static uir_status elementwise(vm_machine *machine, const vm_instruction *in, const uir_iop_row *row) {
    vm_view result;
    operand operands[3];
    bool moves = row->family == UIR_IOP_FAMILY_MOVE || row->family == UIR_IOP_FAMILY_BROADCAST,
         casts = row->family == UIR_IOP_FAMILY_CAST;
    vm_elementwise *routine = moves || casts ? NULL : machine->routines->elementwise[in->code][in->dtype];
    if (!moves && !casts && !routine)
        return uir_vm_fail(machine, "%s has no meaning for %s", row->name, uir_dtype_name((uir_dtype)in->dtype));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &result));
    if (result.total == 0) return UIR_STATUS_OK;
    UIR_TRY(bind_operands(machine, in, row, &result, operands));
    int64_t rows = uir_vm_view_rows(&result), columns = vm_view_columns(&result);
    UIR_TRY(uir_vm_count(machine, (uint64_t)result.total / 16 + (uint64_t)rows));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            const char *x[3] = {NULL, NULL, NULL};
            for (uint32_t i = 0; i < row->operands; i++)
                x[i] = read_operand(&operands[i], &result, r, start, count, machine->chunks[i + 1]);
            if (moves) {
                uir_vm_view_commit(&result, r, start, count, x[0]);
                continue;
            }
            char *target = uir_vm_view_target(&result, r, start, count, machine->chunks[0]);
            if (casts)
                UIR_TRY(cast_row(machine, in, x[0], target, count));
            else
                routine(target, x[0], x[1], x[2], count);
            uir_vm_view_commit(&result, r, start, count, target);
        }
    }
    return UIR_STATUS_OK;
}

/* A move between slices of other shapes but as many elements goes in row-major order. */
static uir_status move(vm_machine *machine, const vm_instruction *in, const uir_iop_row *row) {
    vm_view to, from;
    if (in->immediate_mask) return elementwise(machine, in, row);
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &from));
    int64_t columns = vm_view_columns(&to);
    bool alike = vm_view_columns(&from) == columns && to.total == from.total;
    if (to.total != from.total || alike || to.total == 0) return elementwise(machine, in, row);
    const char *copy = uir_vm_view_copy(machine, &from);
    if (!copy) return UIR_STATUS_OUT_OF_MEMORY;
    for (int64_t r = 0; r < uir_vm_view_rows(&to); r++)
        uir_vm_view_commit(&to, r, 0, columns, copy + (size_t)(r * columns) * to.size);
    return UIR_STATUS_OK;
}

static uir_status fill(vm_machine *machine, const vm_instruction *in) {
    vm_view to;
    char element[8] = {0};
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    if (to.total == 0) return UIR_STATUS_OK;
    store_immediate((uir_dtype)in->dtype, element, real_of(in->immediate));
    splat(machine->chunks[0], element, to.size, VM_CHUNK);
    int64_t rows = uir_vm_view_rows(&to), columns = vm_view_columns(&to);
    UIR_TRY(uir_vm_count(machine, (uint64_t)to.total / 16 + (uint64_t)rows));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK)
            uir_vm_view_commit(&to, r, start, columns - start < VM_CHUNK ? columns - start : VM_CHUNK,
                               machine->chunks[0]);
    }
    return UIR_STATUS_OK;
}

static uir_status iota(vm_machine *machine, const vm_instruction *in) {
    vm_view to;
    int64_t begin;
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_evaluate(machine, in->start, &begin));
    if (to.total == 0) return UIR_STATUS_OK;
    int64_t rows = uir_vm_view_rows(&to), columns = vm_view_columns(&to),
            lines = to.rank > 1 ? to.dims[to.rank - 2].count : 1;
    uir_dtype dtype = (uir_dtype)in->dtype;
    bool real = uir_dtype_is_float(dtype);
    UIR_TRY(uir_vm_count(machine, (uint64_t)to.total / 4 + (uint64_t)rows));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            for (int64_t j = 0; j < count; j++) {
                int64_t value =
                    (int64_t)((uint64_t)begin + (uint64_t)(in->axis == UIR_IAXIS_COL ? r % lines : start + j));
                if (real)
                    uir_dtype_store_double(dtype, machine->chunks[0], (uint64_t)j,
                                           dtype == UIR_DTYPE_F64 ? (double)value : (double)(float)value,
                                           UIR_ROUND_NEAREST_EVEN);
                else
                    uir_dtype_store_integer(dtype, machine->chunks[0], (uint64_t)j, value, false,
                                            UIR_ROUND_NEAREST_EVEN);
            }
            uir_vm_view_commit(&to, r, start, count, machine->chunks[0]);
        }
    }
    return UIR_STATUS_OK;
}

/* ---- reductions and scans ---- */
/* The elementwise instruction that a reduction or scan repeats, and its identity. */
static uir_iop_code combining(uint32_t code) {
    switch (code) {
    case UIR_IOP_REDUCE_MUL:
    case UIR_IOP_SCAN_MUL:
        return UIR_IOP_MUL;
    case UIR_IOP_REDUCE_MAX:
        return UIR_IOP_MAX;
    case UIR_IOP_REDUCE_MIN:
        return UIR_IOP_MIN;
    default:
        return UIR_IOP_ADD;
    }
}

static void store_identity(uint32_t code, uir_dtype dtype, char *to) {
    uir_iop_code op = combining(code);
    if (uir_dtype_is_float(dtype)) {
        uir_dtype_store_double(dtype, to, 0,
                               op == UIR_IOP_MUL   ? 1
                               : op == UIR_IOP_MAX ? -(double)INFINITY
                               : op == UIR_IOP_MIN ? (double)INFINITY
                                                   : 0,
                               UIR_ROUND_NEAREST_EVEN);
    } else {
        int64_t least = uir_dtype_integer_min(dtype), greatest = (int64_t)uir_dtype_integer_max(dtype);
        uir_dtype_store_integer(dtype, to, 0,
                                op == UIR_IOP_MUL   ? 1
                                : op == UIR_IOP_MAX ? least
                                : op == UIR_IOP_MIN ? greatest
                                                    : 0,
                                false, UIR_ROUND_NEAREST_EVEN);
    }
}

/* Element `index` (row-major) of a view of few elements. */
static void read_element(const vm_view *v, int64_t index, char *out) {
    int64_t columns = vm_view_columns(v);
    memcpy(out, uir_vm_view_read(v, index / columns, index % columns, 1, out), v->size);
}

static void write_element(const vm_view *v, int64_t index, const char *element) {
    int64_t columns = vm_view_columns(v);
    uir_vm_view_commit(v, index / columns, index % columns, 1, element);
}

static uir_status reduce_rows(vm_machine *machine, const vm_instruction *in, const vm_view *to, const vm_view *from,
                              const char *copy) {
    uir_dtype dtype = (uir_dtype)in->dtype;
    vm_reduce *routine = machine->routines->reduce[in->code][dtype];
    vm_elementwise *combine = machine->routines->elementwise[combining(in->code)][dtype];
    int64_t columns = vm_view_columns(from), rows = to->total;
    _Alignas(64) char lanes[UIR_REDUCE_LANES * 8];
    char identity[8] = {0}, old[8], *buffer = machine->chunks[1];
    if (!routine || !combine)
        return uir_vm_fail(machine, "this reduction has no meaning for %s", uir_dtype_name(dtype));
    store_identity(in->code, dtype, identity);
    for (int64_t r = 0; r < rows; r++) {
        splat(lanes, identity, to->size, UIR_REDUCE_LANES);
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            routine(lanes,
                    copy ? copy + (size_t)(r * columns + start) * from->size
                         : uir_vm_view_read(from, r, start, count, buffer),
                    count);
        }
        for (int s = UIR_REDUCE_LANES / 2; s > 0; s /= 2) combine(lanes, lanes, lanes + (size_t)s * to->size, NULL, s);
        if (in->flags & VM_FLAG_ACCUMULATE) {
            read_element(to, r, old);
            combine(lanes, old, lanes, NULL, 1);
        }
        write_element(to, r, lanes);
    }
    return UIR_STATUS_OK;
}

/* Rows in order into one row, for every group of rows. */
static uir_status reduce_columns(vm_machine *machine, const vm_instruction *in, const vm_view *to, const vm_view *from,
                                 const char *copy) {
    uir_dtype dtype = (uir_dtype)in->dtype;
    vm_elementwise *combine = machine->routines->elementwise[combining(in->code)][dtype];
    int64_t columns = vm_view_columns(from), lines = from->dims[from->rank - 2].count,
            groups = columns ? to->total / columns : 0;
    char identity[8] = {0}, *sum = machine->chunks[0], *buffer = machine->chunks[1];
    if (!combine) return uir_vm_fail(machine, "this reduction has no meaning for %s", uir_dtype_name(dtype));
    store_identity(in->code, dtype, identity);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            splat(sum, identity, to->size, count);
            for (int64_t j = 0; in->flags & VM_FLAG_ACCUMULATE && j < count; j++)
                read_element(to, g * columns + start + j, sum + (size_t)j * to->size);
            for (int64_t i = 0; i < lines; i++) {
                int64_t r = g * lines + i;
                combine(sum, sum,
                        copy ? copy + (size_t)(r * columns + start) * from->size
                             : uir_vm_view_read(from, r, start, count, buffer),
                        NULL, count);
            }
            for (int64_t j = 0; j < count; j++) write_element(to, g * columns + start + j, sum + (size_t)j * to->size);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status check_lines(vm_machine *machine, const vm_view *lines, const vm_view *from, uint32_t axis) {
    uint32_t dim = axis == UIR_IAXIS_COL ? 2 : 1;
    if (from->rank < dim) return uir_vm_fail(machine, "a reduction along a dim that its slice has not");
    int64_t count = from->dims[from->rank - dim].count;
    if (count && lines->total != from->total / count)
        return uir_vm_fail(machine, "a reduction of %lld lines into %lld", (long long)(from->total / count),
                           (long long)lines->total);
    return UIR_STATUS_OK;
}

static uir_status reduce(vm_machine *machine, const vm_instruction *in) {
    vm_view to, from;
    const char *copy = NULL;
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &from));
    UIR_TRY(check_lines(machine, &to, &from, in->axis));
    UIR_TRY(uir_vm_count(machine, (uint64_t)from.total / 16 + (uint64_t)to.total));
    if (to.pointer == from.pointer && from.total) UIR_TRY_ALLOCATE(copy, uir_vm_view_copy(machine, &from));
    if (in->axis != UIR_IAXIS_COL) return reduce_rows(machine, in, &to, &from, copy);
    if (vm_view_columns(&from) != vm_view_columns(&to) && to.total)
        return uir_vm_fail(machine, "a column reduction keeps its columns");
    return reduce_columns(machine, in, &to, &from, copy);
}

static uir_status scan(vm_machine *machine, const vm_instruction *in) {
    vm_view to, from, carry;
    vm_scan *routine = machine->routines->scan[in->code][in->dtype];
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &from));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[2], &carry));
    UIR_TRY(check_lines(machine, &carry, &from, in->axis));
    if (!routine) return uir_vm_fail(machine, "this scan has no meaning for %s", uir_dtype_name((uir_dtype)in->dtype));
    if (to.total != from.total || in->axis == UIR_IAXIS_COL)
        return uir_vm_fail(machine, "a scan runs along rows into as many elements");
    UIR_TRY(uir_vm_count(machine, (uint64_t)from.total));
    int64_t columns = vm_view_columns(&from), rows = columns ? from.total / columns : 0;
    const char *copy = NULL;
    if (to.pointer == from.pointer && !same_place(&to, &from) && from.total)
        UIR_TRY_ALLOCATE(copy, uir_vm_view_copy(machine, &from));
    for (int64_t r = 0; r < rows; r++) {
        char sum[8];
        read_element(&carry, r, sum);
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            const char *x = copy ? copy + (size_t)(r * columns + start) * from.size
                                 : uir_vm_view_read(&from, r, start, count, machine->chunks[1]);
            char *target = uir_vm_view_target(&to, r, start, count, machine->chunks[0]);
            routine(target, x, sum, count, in->flags & VM_FLAG_EXCLUSIVE);
            uir_vm_view_commit(&to, r, start, count, target);
        }
        write_element(&carry, r, sum);
    }
    return UIR_STATUS_OK;
}

/* ---- mma ---- */
typedef struct matrix {
    int64_t rows, columns, leading;
    char *data;
    bool copied;
} matrix;

/* The slice as a matrix of the product's dtype: in place where rows lie evenly apart, else a copy. */
static uir_status bind_matrix(vm_machine *machine, const vm_view *v, uir_dtype compute, matrix *out) {
    if (v->rank < 2) return uir_vm_fail(machine, "mma's operands are matrices");
    for (uint32_t d = 0; d + 2 < v->rank; d++) {
        if (v->dims[d].count != 1) return uir_vm_fail(machine, "mma's operands are matrices");
    }
    const vm_dim *row = &v->dims[v->rank - 2], *column = &v->dims[v->rank - 1];
    *out = (matrix){row->count, column->count, column->count, NULL, false};
    if (v->total == 0) return UIR_STATUS_OK;
    bool even = !v->offsets && v->dtype == compute && !row->along && !column->along && column->stride == 1 &&
                row->low == 0 && row->high == row->count && column->low == 0 && column->high == column->count &&
                row->stride > 0;
    if (even) {
        char buffer[8];
        out->data = uir_vm_view_target(v, 0, 0, 1, buffer);
        out->leading = row->stride;
        if (out->data != buffer) return UIR_STATUS_OK;
    }
    char *copy = uir_vm_view_copy(machine, v);
    out->copied = true;
    out->leading = column->count;
    if (!copy) return UIR_STATUS_OUT_OF_MEMORY;
    out->data = copy;
    if (v->dtype == compute) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(out->data, uir_vm_allocate(machine, (size_t)v->total + 1, uir_dtype_bits(compute) / 8));
    return uir_dtype_convert(v->dtype, copy, compute, out->data, (uint64_t)v->total, UIR_ROUND_NEAREST_EVEN);
}

static uir_status mma(vm_machine *machine, const vm_instruction *in) {
    vm_view cv, av, bv;
    matrix c, a, b;
    uir_dtype dtype = (uir_dtype)in->dtype;
    vm_product *routine = machine->routines->product[dtype];
    if (!routine) return uir_vm_fail(machine, "mma has no meaning for %s", uir_dtype_name(dtype));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &cv));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &av));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[2], &bv));
    UIR_TRY(bind_matrix(machine, &cv, dtype, &c));
    UIR_TRY(bind_matrix(machine, &av, dtype, &a));
    UIR_TRY(bind_matrix(machine, &bv, dtype, &b));
    if (a.rows != c.rows || b.columns != c.columns || b.rows != a.columns)
        return uir_vm_fail(machine, "mma of shapes that do not fit");
    if (cv.total == 0 || a.columns == 0) return UIR_STATUS_OK;
    UIR_TRY(uir_vm_count(machine, (uint64_t)(c.rows * c.columns / 32 + 1) * (uint64_t)a.columns));
    routine(c.data, c.leading, a.data, a.leading, b.data, b.leading, c.rows, c.columns, a.columns);
    for (int64_t r = 0; c.copied && r < c.rows; r++)
        uir_vm_view_commit(&cv, r, 0, c.columns, c.data + (size_t)(r * c.leading) * cv.size);
    return UIR_STATUS_OK;
}

uir_status uir_vm_execute(vm_machine *machine, const vm_instruction *in) {
    const uir_iop_row *row = uir_iop_get_row((uir_iop_code)in->code);
    uir_vm_forget(machine);
    UIR_TRY(uir_vm_count(machine, 1));
    switch (row->family) {
    case UIR_IOP_FAMILY_MOVE:
        return move(machine, in, row);
    case UIR_IOP_FAMILY_FILL:
        return fill(machine, in);
    case UIR_IOP_FAMILY_IOTA:
        return iota(machine, in);
    case UIR_IOP_FAMILY_REDUCE:
        return reduce(machine, in);
    case UIR_IOP_FAMILY_SCAN:
        return scan(machine, in);
    case UIR_IOP_FAMILY_MMA:
        return mma(machine, in);
    case UIR_IOP_FAMILY_SYNC:
        return UIR_STATUS_OK;
    default:
        return elementwise(machine, in, row);
    }
}
