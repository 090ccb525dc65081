/* Elementwise instructions, casts, broadcasts and moves. Where all slices have strides they are walked together by the
 * longest rows that they have in common; else row by row through buffers. */
#include "backends/vm/machine.h"

#include <string.h>

double uir_vm_real(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void uir_vm_store_immediate(uir_dtype dtype, char *to, double value) {
    if (uir_dtype_is_float(dtype))
        uir_dtype_store_double(dtype, to, 0, dtype == UIR_DTYPE_F64 ? value : (double)(float)value,
                               UIR_ROUND_NEAREST_EVEN);
    else
        uir_dtype_store_integer(dtype, to, 0, value >= -9e18 && value <= 9e18 ? (int64_t)value : 0, false,
                                UIR_ROUND_NEAREST_EVEN);
}

/* Equal addresses element for element, so that computing in place is sound. */
bool uir_vm_same_place(const vm_view *a, const vm_view *b) {
    if (a->rank != b->rank || a->data != b->data || a->offsets || b->offsets) return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        const vm_dim *x = &a->dims[d], *y = &b->dims[d];
        if (x->count != y->count || x->low != y->low || x->high != y->high || x->base != y->base ||
            x->stride != y->stride || x->along || y->along)
            return false;
    }
    return true;
}

/* Whether a write to one can be seen in the other, but for computing in place. */
bool uir_vm_overlap(const vm_view *a, const vm_view *b) {
    if (a->pointer != b->pointer || !a->total || !b->total || uir_vm_same_place(a, b)) return false;
    if (!a->origin || !b->origin) return true;
    return a->first <= b->last && b->first <= a->last;
}

/* ---- operands of elementwise instructions ---- */
typedef struct operand {
    bool is_immediate;
    char immediate[8];
    uint32_t size;
    const vm_view *view;
    char *copy;                   /* of the whole slice, when it overlaps the result elsewhere */
    int64_t strides[VM_MAX_RANK]; /* in rows, per dim of the result but the last: 0 where it broadcasts */
    bool repeats, single;         /* last dim: block, or one element for all */
} operand;

/* How an operand's rows go with the result's: trailing dims align, an extent of 1 broadcasts. */
static uir_status align_operand(vm_machine *machine, const vm_view *result, operand *o) {
    const vm_view *v = o->view;
    int64_t stride = 1;
    for (uint32_t from_end = 1; from_end <= v->rank; from_end++) {
        int64_t count = v->dims[v->rank - from_end].count;
        int64_t wanted = from_end <= result->rank ? result->dims[result->rank - from_end].count : 1;
        bool block = v->block && from_end == 1 && count > 0;
        if (count != 1 && count != wanted && !block)
            return uir_vm_fail(machine, "an operand of extent %lld does not match a dim of %lld", (long long)count,
                               (long long)wanted);
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
    if (!o->copy) return uir_vm_view_read(o->view, row, start, count, buffer);
    return o->copy + (size_t)(row * vm_view_columns(o->view) + start) * o->size;
}

/* `count` elements that go with columns start.. of the result's row. */
static const char *read_operand(const vm_machine *machine, const operand *o, const vm_view *result, int64_t row,
                                int64_t start, int64_t count, char *buffer) {
    if (o->is_immediate) return buffer; /* filled beforehand */
    int64_t at = operand_row(o, result, row);
    if (o->single) {
        char element[8];
        memcpy(element, read_row(o, at, 0, 1, element), o->size);
        machine->routines->splat[o->size](buffer, element, count);
        return buffer;
    }
    if (!o->repeats) return read_row(o, at, start, count, buffer);
    int64_t period = vm_view_columns(o->view);
    for (int64_t i = 0; i < count; i++) {
        char element[8];
        memcpy(buffer + (size_t)i * o->size, read_row(o, at, (start + i) % period, 1, element), o->size);
    }
    return buffer;
}

static uir_status bind_operands(vm_machine *machine, const vm_instruction *in, const uir_iop_row *row,
                                const vm_view *result, operand *operands) {
    uint32_t slice = 1;
    for (uint32_t i = 0; i < row->operands; i++) {
        operand *o = &operands[i];
        memset(o, 0, sizeof *o);
        if (in->immediate_mask >> i & 1) {
            uir_dtype dtype = uir_iop_operand_dtype((uir_iop_code)in->code, (uir_dtype)in->dtype, i);
            o->is_immediate = true;
            o->size = uir_dtype_bits(dtype) / 8;
            uir_vm_store_immediate(dtype, o->immediate, uir_vm_real(in->immediates[i]));
            machine->routines->splat[o->size](machine->chunks[i + 1], o->immediate,
                                              result->total < VM_CHUNK ? result->total : VM_CHUNK);
            continue;
        }
        UIR_TRY(uir_vm_view_bind(machine, in->slices[slice++], &o->view));
        o->size = o->view->size;
        UIR_TRY(align_operand(machine, result, o));
        if (uir_vm_overlap(o->view, result)) UIR_TRY(uir_vm_view_copy(machine, o->view, &o->copy));
    }
    return UIR_STATUS_OK;
}

/* ---- casts ---- */
/* `saturate` clamps to an integer target's range before converting. */
static uir_status vm_cast_row(const vm_instruction *in, const char *from, char *to, int64_t count) {
    uir_dtype source = (uir_dtype)in->dtype, target = (uir_dtype)in->dtype_b;
    bool saturate = in->flags & VM_FLAG_SATURATE;
    if (in->code == UIR_IOP_BITS) {
        memmove(to, from, (size_t)count * (uir_dtype_bits(source) / 8));
        return UIR_STATUS_OK;
    }
    if (!saturate || uir_dtype_is_float(target) || target == UIR_DTYPE_BOOL) {
        return uir_dtype_convert(source, from, target, to, (uint64_t)count,
                                 saturate ? UIR_ROUND_SATURATE : UIR_ROUND_NEAREST_EVEN);
    }
    int64_t least = uir_dtype_integer_min(target);
    uint64_t greatest = uir_dtype_integer_max(target);
    bool is_unsigned = uir_dtype_get_class(source) != UIR_DTYPE_CLASS_SIGNED;
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

/* ---- walking together ---- */
/* The dims that all slices have in common, merged where they lie evenly in each: steps in bytes, the result's first. */
typedef struct walk {
    uint32_t rank, slices;
    int64_t counts[VM_MAX_RANK]; /* innermost first */
    ptrdiff_t steps[VM_MAX_RANK][4];
    char *at[4];
} walk;

static bool plan_walk(const vm_view *result, const operand *operands, uint32_t count, walk *w) {
    if (!result->origin) return false;
    bool flat = result->flat != NULL;
    w->rank = 0;
    w->slices = count + 1;
    w->at[0] = result->origin;
    for (uint32_t i = 0; i < count; i++) {
        const operand *o = &operands[i];
        if (!o->is_immediate && (o->copy || o->repeats || !o->view->origin)) return false;
        w->at[i + 1] = o->is_immediate ? NULL : o->view->origin;
        flat &= o->is_immediate || o->view->total == 1 || (o->view->flat && o->view->total == result->total);
    }
    if (flat) {
        w->rank = 1;
        w->counts[0] = result->total;
        w->steps[0][0] = (ptrdiff_t)result->size;
        for (uint32_t i = 0; i < count; i++)
            w->steps[0][i + 1] =
                operands[i].is_immediate || operands[i].view->total == 1 ? 0 : (ptrdiff_t)operands[i].size;
        return true;
    }
    for (uint32_t from_end = 1; from_end <= result->rank; from_end++) {
        const vm_dim *dim = &result->dims[result->rank - from_end];
        ptrdiff_t steps[4] = {(ptrdiff_t)(dim->stride * (int64_t)result->size), 0, 0, 0};
        if (dim->count == 1) continue;
        for (uint32_t i = 0; i < count; i++) {
            const vm_view *v = operands[i].view;
            if (operands[i].is_immediate || from_end > v->rank || v->dims[v->rank - from_end].count == 1) continue;
            steps[i + 1] = (ptrdiff_t)(v->dims[v->rank - from_end].stride * (int64_t)v->size);
        }
        bool merges = w->rank > 0;
        for (uint32_t i = 0; i <= count && merges; i++)
            merges = steps[i] == w->steps[w->rank - 1][i] * w->counts[w->rank - 1];
        if (merges) {
            w->counts[w->rank - 1] *= dim->count;
            continue;
        }
        w->counts[w->rank] = dim->count;
        memcpy(w->steps[w->rank++], steps, sizeof steps);
    }
    if (w->rank == 0) {
        w->counts[0] = 1;
        memset(w->steps[0], 0, sizeof w->steps[0]);
        w->steps[0][0] = (ptrdiff_t)result->size;
        w->rank = 1;
    }
    return true;
}

/* What is done to the elements of a row. */
typedef struct action {
    const vm_instruction *in;
    vm_elementwise *routine; /* NULL: a move or a cast */
    bool casts;
} action;

static uir_status act(vm_machine *machine, const action *what, const char *const *x, char *to, int64_t count,
                      size_t size) {
    if (what->routine)
        what->routine(to, x[0], x[1], x[2], count);
    else if (what->casts)
        return vm_cast_row(what->in, x[0], to, count);
    else if (to != x[0])
        memmove(to, x[0], (size_t)count * size);
    (void)machine;
    return UIR_STATUS_OK;
}

/* One row, by chunks. An operand with a step of 0 is read once: the result may lie over it. */
static uir_status walk_row(vm_machine *machine, const action *what, const walk *w, const operand *operands,
                           char *const *at, size_t size) {
    const ptrdiff_t *steps = w->steps[0];
    int64_t all = w->counts[0];
    bool direct = steps[0] == (ptrdiff_t)size || all == 1, moves = !what->routine && !what->casts;
    for (uint32_t i = 1; i < w->slices; i++) {
        if (!operands[i - 1].is_immediate && steps[i] == 0)
            machine->routines->splat[operands[i - 1].size](machine->chunks[i], at[i], all < VM_CHUNK ? all : VM_CHUNK);
    }
    for (int64_t start = 0; start < all; start += VM_CHUNK) {
        int64_t count = all - start < VM_CHUNK ? all - start : VM_CHUNK;
        if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
        char *to = at[0] + start * steps[0], *target = direct ? to : machine->chunks[0];
        const char *x[3] = {NULL, NULL, NULL};
        for (uint32_t i = 1; i < w->slices; i++) {
            const operand *o = &operands[i - 1];
            x[i - 1] = machine->chunks[i];
            if (o->is_immediate || steps[i] == 0) continue;
            const char *from = at[i] + start * steps[i];
            if (steps[i] == (ptrdiff_t)o->size) {
                x[i - 1] = from;
            } else if (moves && direct) {
                uir_vm_gather(to, from, steps[i], count, o->size);
                x[i - 1] = to;
            } else {
                uir_vm_gather(machine->chunks[i], from, steps[i], count, o->size);
            }
        }
        if (moves && !direct) {
            uir_vm_scatter(to, x[0], steps[0], count, (uint32_t)size);
            continue;
        }
        UIR_TRY(act(machine, what, x, target, count, size));
        if (!direct) uir_vm_scatter(to, target, steps[0], count, (uint32_t)size);
    }
    return UIR_STATUS_OK;
}

static uir_status walk_rows(vm_machine *machine, const action *what, const walk *w, const operand *operands,
                            size_t size) {
    int64_t index[VM_MAX_RANK] = {0};
    char *at[4];
    memcpy(at, w->at, sizeof at);
    for (;;) {
        UIR_TRY(walk_row(machine, what, w, operands, at, size));
        uint32_t d = 1;
        for (; d < w->rank; d++) {
            bool wraps = ++index[d] == w->counts[d];
            for (uint32_t i = 0; i < w->slices; i++)
                if (w->at[i]) at[i] += wraps ? -w->steps[d][i] * (w->counts[d] - 1) : w->steps[d][i];
            if (!wraps) break;
            index[d] = 0;
        }
        if (d >= w->rank) return UIR_STATUS_OK;
    }
}

/* ---- elementwise, moves, broadcasts, casts ---- */
uir_status uir_vm_elementwise(vm_machine *machine, const vm_instruction *in, const uir_iop_row *row) {
    const vm_view *result;
    operand operands[3] = {0};
    walk w;
    bool moves = row->family == UIR_IOP_FAMILY_MOVE || row->family == UIR_IOP_FAMILY_BROADCAST,
         casts = row->family == UIR_IOP_FAMILY_CAST;
    action what = {in, moves || casts ? NULL : machine->routines->elementwise[in->code][in->dtype], casts};
    if (!moves && !casts && !what.routine)
        return uir_vm_fail(machine, "%s is not defined for %s", row->name, uir_dtype_name((uir_dtype)in->dtype));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &result));
    if (result->total == 0) return UIR_STATUS_OK;
    UIR_TRY(bind_operands(machine, in, row, result, operands));
    int64_t rows = uir_vm_view_rows(result), columns = vm_view_columns(result);
    UIR_TRY(uir_vm_count(machine, (uint64_t)result->total / 16 + (uint64_t)rows));
    if (plan_walk(result, operands, row->operands, &w)) return walk_rows(machine, &what, &w, operands, result->size);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t start = 0; start < columns; start += VM_CHUNK) {
            int64_t count = columns - start < VM_CHUNK ? columns - start : VM_CHUNK;
            if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
            const char *x[3] = {NULL, NULL, NULL};
            for (uint32_t i = 0; i < row->operands; i++)
                x[i] = read_operand(machine, &operands[i], result, r, start, count, machine->chunks[i + 1]);
            if (moves) {
                uir_vm_view_commit(result, r, start, count, x[0]);
                continue;
            }
            char *target = uir_vm_view_target(result, r, start, count, machine->chunks[0]);
            UIR_TRY(act(machine, &what, x, target, count, result->size));
            uir_vm_view_commit(result, r, start, count, target);
        }
    }
    return UIR_STATUS_OK;
}

/* A move between slices of other shapes but as many elements goes in row-major order. */
uir_status uir_vm_move(vm_machine *machine, const vm_instruction *in, const uir_iop_row *row) {
    const vm_view *to, *from;
    if (in->immediate_mask) return uir_vm_elementwise(machine, in, row);
    UIR_TRY(uir_vm_view_bind(machine, in->slices[0], &to));
    UIR_TRY(uir_vm_view_bind(machine, in->slices[1], &from));
    int64_t columns = vm_view_columns(to);
    if (to->flat && from->flat && to->total == from->total) {
        UIR_TRY(uir_vm_count(machine, (uint64_t)to->total / 16));
        memmove(to->flat, from->flat, (size_t)to->total * to->size);
        return UIR_STATUS_OK;
    }
    bool alike = vm_view_columns(from) == columns && to->total == from->total;
    if (to->total != from->total || alike || to->total == 0) return uir_vm_elementwise(machine, in, row);
    char *copy;
    UIR_TRY(uir_vm_view_copy(machine, from, &copy));
    for (int64_t r = 0, rows = uir_vm_view_rows(to); r < rows; r++) {
        if (r % VM_CHUNK == 0 && vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
        uir_vm_view_commit(to, r, 0, columns, copy + (size_t)(r * columns) * to->size);
    }
    return UIR_STATUS_OK;
}
