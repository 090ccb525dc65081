/* mma: the operands where they lie, if the routine can read them there, else copied once. */
#include "backends/vm/machine.h"

#include <string.h>

/* A slice as a matrix. */
typedef struct matrix {
    const vm_view *view;
    const vm_dim *row, *column;
    char *data;            /* element 0, 0; NULL: it lies otherwise */
    int64_t leading, step; /* elements between rows, between columns */
    const int64_t *along;  /* columns lie at these offsets from `data` instead */
    bool copied;
} matrix;

/* A packed panel: rows evenly apart, columns in stretches. */
static void find_panel(const vm_view *v, matrix *out) {
    int64_t offset = 0;
    if (v->offsets || out->row->along || !out->column->along || out->row->low || out->row->high != out->row->count ||
        out->column->low || out->column->high != out->column->count)
        return;
    for (int64_t j = 0; j < out->column->count; j++)
        if (out->column->along[j] == VM_OUTSIDE) return;
    for (uint32_t d = 0; d + 1 < v->rank; d++) {
        const vm_dim *dim = &v->dims[d];
        if (dim->low == dim->high) return;
        offset += dim->along ? dim->along[0] : dim->base + dim->low * dim->stride;
    }
    out->data = v->data + offset * (int64_t)v->size;
    out->leading = out->row->stride;
    out->along = out->column->along;
}

static uir_status bind_matrix(vm_machine *machine, uint32_t slice, uir_dtype compute, matrix *out) {
    const vm_view *v;
    UIR_TRY(uir_vm_view_bind(machine, slice, &v));
    if (v->rank < 2) return uir_vm_fail(machine, "mma's operands must be matrices");
    for (uint32_t d = 0; d + 2 < v->rank; d++) {
        if (v->dims[d].count != 1) return uir_vm_fail(machine, "mma's operands must be matrices");
    }
    *out = (matrix){v, &v->dims[v->rank - 2], &v->dims[v->rank - 1], NULL, 0, 0, NULL, false};
    if (v->total == 0 || v->dtype != compute) return UIR_STATUS_OK;
    if (v->origin) {
        out->data = v->origin;
        out->leading = out->row->count == 1 ? 0 : out->row->stride;
        out->step = out->column->count == 1 ? 1 : out->column->stride;
    } else {
        find_panel(v, out);
    }
    return UIR_STATUS_OK;
}

/* Row-major, of the product's dtype. */
static uir_status copy_matrix(vm_machine *machine, uir_dtype compute, matrix *m) {
    const vm_view *v = m->view;
    UIR_TRY(uir_vm_view_copy(machine, v, &m->data));
    m->leading = m->column->count;
    m->step = 1;
    m->along = NULL;
    m->copied = true;
    if (v->dtype == compute) return UIR_STATUS_OK;
    const char *copy = m->data;
    UIR_TRY_ALLOCATE(m->data, uir_vm_allocate(machine, (size_t)v->total + 1, uir_dtype_bits(compute) / 8));
    return uir_dtype_convert(v->dtype, copy, compute, m->data, (uint64_t)v->total, UIR_ROUND_NEAREST_EVEN);
}

/* Between looks at whether the run was cancelled: steps of k, columns, and products of one element by another. */
enum { MAX_DEPTH = 1 << 12, MAX_COLUMNS = 1 << 14, MIN_ROWS = 8, MAX_PRODUCTS = 1 << 28 };

/* How many columns from `start` on follow each other. */
static int64_t stretch(const int64_t *along, int64_t start, int64_t count) {
    int64_t end = start + 1;
    while (end < count && along[end] == along[end - 1] + 1) end++;
    return end - start;
}

uir_status uir_vm_mma(vm_machine *machine, const vm_instruction *in) {
    matrix c, a, b;
    uir_dtype dtype = (uir_dtype)in->dtype;
    vm_product *routine = machine->routines->product[dtype];
    if (!routine) return uir_vm_fail(machine, "mma is not defined for %s", uir_dtype_name(dtype));
    UIR_TRY(bind_matrix(machine, in->slices[0], dtype, &c));
    UIR_TRY(bind_matrix(machine, in->slices[1], dtype, &a));
    UIR_TRY(bind_matrix(machine, in->slices[2], dtype, &b));
    int64_t m = c.row->count, n = c.column->count, k = a.column->count;
    if (a.row->count != m || b.column->count != n || b.row->count != k)
        return uir_vm_fail(machine, "the shapes of mma's operands do not match");
    if (c.view->total == 0 || k == 0) return UIR_STATUS_OK;
    UIR_TRY(uir_vm_count(machine, (uint64_t)(m * n / 32 + 1) * (uint64_t)k));
    if (!c.data || c.along || c.step != 1 || (m > 1 && c.leading == 0)) UIR_TRY(copy_matrix(machine, dtype, &c));
    if (!a.data || a.along || uir_vm_overlap(a.view, c.view)) UIR_TRY(copy_matrix(machine, dtype, &a));
    if (!b.data || (!b.along && b.step != 1) || uir_vm_overlap(b.view, c.view))
        UIR_TRY(copy_matrix(machine, dtype, &b));
    size_t size = uir_dtype_bits(dtype) / 8;
    for (int64_t start = 0; start < k; start += MAX_DEPTH) {
        int64_t depth = k - start < MAX_DEPTH ? k - start : MAX_DEPTH;
        for (int64_t j = 0; j < n;) {
            int64_t end = n - j < MAX_COLUMNS ? n : j + MAX_COLUMNS;
            int64_t columns = b.along ? stretch(b.along, j, end) : end - j;
            const char *from = b.data + (start * b.leading + (b.along ? b.along[j] : j)) * (int64_t)size;
            int64_t most = MAX_PRODUCTS / (columns * depth) > MIN_ROWS ? MAX_PRODUCTS / (columns * depth) : MIN_ROWS;
            for (int64_t i = 0; i < m; i += most) {
                if (vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
                routine(c.data + (size_t)(i * c.leading + j) * size, c.leading,
                        a.data + (i * a.leading + start * a.step) * (int64_t)size, a.leading, a.step, from, b.leading,
                        m - i < most ? m - i : most, columns, depth);
            }
            j += columns;
        }
    }
    for (int64_t r = 0; c.copied && r < m; r++)
        uir_vm_view_commit(c.view, r, 0, n, c.data + (size_t)(r * c.leading) * size);
    return UIR_STATUS_OK;
}
