/* Slices: from expressions to addresses that are known to be inside. */
#include "backends/vm/machine.h"

#include <string.h>

typedef struct layout {
    int64_t extent;
    uint32_t modes;
    int64_t sizes[VM_MAX_MODES], strides[VM_MAX_MODES];
} layout;

static uir_status bind_layout(vm_machine *machine, const vm_pointer *p, uint32_t d, layout *out) {
    UIR_TRY(uir_vm_evaluate(machine, p->extents[d], &out->extent));
    out->modes = p->mode_counts[d];
    for (uint32_t m = 0; m < out->modes; m++) {
        UIR_TRY(uir_vm_evaluate(machine, p->modes[d][m].size, &out->sizes[m]));
        UIR_TRY(uir_vm_evaluate(machine, p->modes[d][m].stride, &out->strides[m]));
        if (out->sizes[m] < 1) out->sizes[m] = 1; /* of an empty dim: never used */
    }
    return UIR_STATUS_OK;
}

/* Wraps on overflow: every offset is checked before it is used. */
static int64_t layout_offset(const layout *l, int64_t index) {
    uint64_t offset = 0;
    for (uint32_t m = 0; m + 1 < l->modes; m++) {
        offset += (uint64_t)(index % l->sizes[m]) * (uint64_t)l->strides[m];
        index /= l->sizes[m];
    }
    return (int64_t)(offset + (uint64_t)index * (uint64_t)l->strides[l->modes - 1]);
}

/* Index start + i for 0 <= i < count. */
static uir_status bind_dim(vm_machine *machine, const layout *l, int64_t start, bool outside, vm_dim *dim) {
    dim->along = NULL;
    dim->stride = 0;
    dim->base = 0;
    int64_t end; /* one past the last index, at most INT64_MAX */
    if (__builtin_add_overflow(start, dim->count, &end)) end = INT64_MAX;
    if (end > l->extent) end = l->extent;
    dim->low = start >= 0 ? 0 : start <= -dim->count ? dim->count : -start;
    dim->high = end <= start ? 0 : end - (start > 0 ? start : 0) + (start < 0 ? dim->low : 0);
    if (end <= 0) dim->high = dim->low;
    if (outside || dim->high < dim->low) dim->low = dim->high = 0;
    if (dim->low == dim->high) return UIR_STATUS_OK;
    int64_t first = start + dim->low, last = start + dim->high - 1;
    if (l->modes == 1 || first / l->sizes[0] == last / l->sizes[0]) { /* within one block of the first mode */
        dim->stride = l->strides[0];
        dim->base = (int64_t)((uint64_t)layout_offset(l, first) - (uint64_t)dim->low * (uint64_t)dim->stride);
        return UIR_STATUS_OK;
    }
    int64_t *along;
    UIR_TRY_ALLOCATE(along, uir_vm_allocate(machine, (size_t)dim->high, sizeof *along));
    for (int64_t i = dim->low; i < dim->high; i++) along[i] = layout_offset(l, start + i);
    dim->along = along;
    return UIR_STATUS_OK;
}

/* Least and greatest offset of the dim's inside elements. */
static bool dim_range(const vm_dim *dim, int64_t *least, int64_t *greatest) {
    if (!dim->along) {
        int64_t a, b;
        if (__builtin_mul_overflow(dim->stride, dim->high - 1, &a) || __builtin_add_overflow(a, dim->base, &a))
            return false;
        if (__builtin_mul_overflow(dim->stride, dim->low, &b) || __builtin_add_overflow(b, dim->base, &b)) return false;
        *least = a < b ? a : b;
        *greatest = a < b ? b : a;
        return true;
    }
    *least = INT64_MAX;
    *greatest = INT64_MIN;
    for (int64_t i = dim->low; i < dim->high; i++) {
        if (dim->along[i] < *least) *least = dim->along[i];
        if (dim->along[i] > *greatest) *greatest = dim->along[i];
    }
    return true;
}

static uir_status check_box(vm_machine *machine, const vm_view *view, int64_t span) {
    int64_t least = 0, greatest = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        int64_t a = 0, b = 0;
        if (view->dims[d].low == view->dims[d].high) return UIR_STATUS_OK; /* nothing is inside */
        if (!dim_range(&view->dims[d], &a, &b) || __builtin_add_overflow(least, a, &least) ||
            __builtin_add_overflow(greatest, b, &greatest)) {
            return uir_vm_fail(machine, "an address overflows");
        }
    }
    if (least < 0 || greatest >= span)
        return uir_vm_fail(machine, "a slice reaches outside the memory of pointer %u", view->pointer);
    return UIR_STATUS_OK;
}

static uir_status bind_window(vm_machine *machine, const vm_slice *slice, const layout *layouts, uint32_t pointer_rank,
                              bool outside, int64_t span, vm_view *view) {
    int64_t extents[VM_MAX_RANK], *offsets, product = 1;
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        UIR_TRY(uir_vm_evaluate(machine, slice->axis_extents[a], &extents[a]));
        if (extents[a] < 0) extents[a] = 0;
        if (__builtin_mul_overflow(product, extents[a], &product)) return uir_vm_fail(machine, "a window is too large");
        machine->values[slice->axis_symbols[a]] = 0;
        machine->bound[slice->axis_symbols[a]] = true;
    }
    if (product != view->total) return uir_vm_fail(machine, "a window's axes and its dims do not agree");
    UIR_TRY(uir_vm_count(machine, (uint64_t)view->total));
    UIR_TRY_ALLOCATE(offsets, uir_vm_allocate(machine, (size_t)view->total + 1, sizeof *offsets));
    for (int64_t e = 0; e < view->total; e++) {
        uint64_t offset = 0;
        bool inside = !outside;
        for (uint32_t d = 0; d < pointer_rank && inside; d++) {
            int64_t at;
            UIR_TRY(uir_vm_evaluate(machine, slice->starts[d], &at));
            inside = at >= 0 && at < layouts[d].extent;
            if (inside) offset += (uint64_t)layout_offset(&layouts[d], at);
        }
        offsets[e] = inside ? (int64_t)offset : -1;
        if (inside && ((int64_t)offset < 0 || (int64_t)offset >= span))
            return uir_vm_fail(machine, "a window reaches outside the memory of pointer %u", view->pointer);
        for (uint32_t a = slice->axis_count; a-- > 0;) {
            int64_t *value = &machine->values[slice->axis_symbols[a]];
            if (++*value < extents[a]) break;
            *value = 0;
        }
    }
    for (uint32_t a = 0; a < slice->axis_count; a++) machine->bound[slice->axis_symbols[a]] = false;
    view->offsets = offsets;
    return UIR_STATUS_OK;
}

/* Whether a coordinate uses an index that put its slices outside. */
static bool is_outside(const vm_machine *machine, uint32_t expression) {
    const vm_expression *e = &machine->kernel->expressions[expression];
    for (uint32_t i = 0; i < e->count; i++) {
        const vm_step *s = &machine->kernel->steps[e->first + i];
        if (s->kind == UIR_DIM_SYMBOL && machine->outside[s->value]) return true;
    }
    return false;
}

uir_status uir_vm_view_bind(vm_machine *machine, uint32_t index, vm_view *view) {
    const vm_slice *slice = &machine->kernel->slices[index];
    const vm_pointer *p = &machine->kernel->pointers[slice->pointer];
    const vm_memory *memory = &machine->memory[slice->pointer];
    int64_t instance = 0;
    memset(view, 0, sizeof *view);
    view->pointer = slice->pointer;
    view->dtype = (uir_dtype)p->dtype;
    view->size = uir_dtype_bits(view->dtype) / 8;
    view->rank = slice->rank;
    view->block = slice->block;
    view->total = 1;
    if (p->by_loop != VM_NONE) {
        if (!machine->bound[p->by_loop])
            return uir_vm_fail(machine, "pointer %u is used outside its loop", slice->pointer);
        instance = machine->values[p->by_loop] % p->instances;
    }
    view->data = memory->data + (size_t)instance * (size_t)memory->span * view->size;
    if (slice->has_fill) {
        double fill;
        memcpy(&fill, &slice->fill, sizeof fill);
        if (uir_dtype_is_float(view->dtype))
            uir_dtype_store_double(view->dtype, view->outside, 0, fill, UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_integer(view->dtype, view->outside, 0, fill >= -9e18 && fill <= 9e18 ? (int64_t)fill : 0,
                                    false, UIR_ROUND_NEAREST_EVEN);
    }
    for (uint32_t d = 0; d < slice->rank; d++) {
        UIR_TRY(uir_vm_evaluate(machine, slice->counts[d], &view->dims[d].count));
        if (view->dims[d].count < 0) view->dims[d].count = 0;
        if (__builtin_mul_overflow(view->total, view->dims[d].count, &view->total))
            return uir_vm_fail(machine, "a slice is too large");
    }
    layout layouts[VM_MAX_RANK];
    bool outside = false;
    for (uint32_t d = 0; d < p->rank; d++) {
        UIR_TRY(bind_layout(machine, p, d, &layouts[d]));
        outside |= is_outside(machine, slice->starts[d]);
    }
    if (view->total == 0) return UIR_STATUS_OK;
    if (slice->window) return bind_window(machine, slice, layouts, p->rank, outside, memory->span, view);
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t start;
        UIR_TRY(uir_vm_evaluate(machine, slice->starts[d], &start));
        UIR_TRY(bind_dim(machine, &layouts[d], start, outside, &view->dims[d]));
    }
    return check_box(machine, view, memory->span);
}

int64_t uir_vm_view_rows(const vm_view *view) {
    int64_t rows = 1;
    for (uint32_t d = 0; d + 1 < view->rank; d++) rows *= view->dims[d].count;
    return rows;
}

/* Offset of a row's column 0 without the last dim's share; false outside. */
static bool row_offset(const vm_view *view, int64_t row, int64_t *out) {
    int64_t offset = 0;
    for (uint32_t d = view->rank - 1; d-- > 0;) {
        const vm_dim *dim = &view->dims[d];
        int64_t i = row % dim->count;
        row /= dim->count;
        if (i < dim->low || i >= dim->high) return false;
        offset += dim->along ? dim->along[i] : dim->base + i * dim->stride;
    }
    *out = offset;
    return true;
}

/* Offset of the element at `column`, or -1. */
static int64_t element_offset(const vm_view *view, int64_t row, int64_t offset, int64_t column) {
    if (view->offsets) return view->offsets[row * vm_view_columns(view) + column];
    const vm_dim *dim = &view->dims[view->rank - 1];
    if (column < dim->low || column >= dim->high) return -1;
    return offset + (dim->along ? dim->along[column] : dim->base + column * dim->stride);
}

/* The address of contiguous elements inside, or NULL. */
static char *contiguous(const vm_view *view, int64_t row, int64_t start, int64_t count) {
    int64_t offset;
    if (view->rank == 0) return view->data;
    if (view->offsets) {
        const int64_t *at = view->offsets + row * vm_view_columns(view) + start;
        if (at[0] < 0) return NULL;
        for (int64_t i = 1; i < count; i++) {
            if (at[i] != at[0] + i) return NULL;
        }
        return view->data + (size_t)at[0] * view->size;
    }
    const vm_dim *dim = &view->dims[view->rank - 1];
    if (!row_offset(view, row, &offset) || start < dim->low || start + count > dim->high) return NULL;
    if (dim->along || (dim->stride != 1 && count > 1)) return NULL;
    return view->data + (size_t)(offset + dim->base + start * dim->stride) * view->size;
}

static void copy_one(char *to, const char *from, uint32_t size) {
    switch (size) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        memcpy(to, from, 8);
        break;
    }
}

/* `count` elements whose places are `step` bytes apart, from or to contiguous ones. */
static void gather(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size) {
    if (step == (ptrdiff_t)size) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++) copy_one(to + (size_t)i * size, from + i * step, size);
}

static void scatter(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size) {
    if (step == (ptrdiff_t)size) {
        memmove(to, from, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++) copy_one(to + i * step, from + (size_t)i * size, size);
}

/* Which of the columns start.. lie inside, when the row does and its places are a line. */
static void inside_columns(const vm_dim *dim, int64_t start, int64_t count, int64_t *low, int64_t *high) {
    *low = start > dim->low ? start : dim->low;
    *high = start + count < dim->high ? start + count : dim->high;
    if (*high < *low) *high = *low = start;
}

const char *uir_vm_view_read(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer) {
    const char *direct = contiguous(view, row, start, count);
    int64_t offset = 0, low = start, high = start;
    uint32_t size = view->size;
    if (direct) return direct;
    bool inside = view->offsets || row_offset(view, row, &offset);
    const vm_dim *dim = &view->dims[view->rank - 1];
    if (inside && (view->offsets || dim->along)) {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = element_offset(view, row, offset, start + i);
            copy_one(buffer + (size_t)i * size, at < 0 ? (const char *)view->outside : view->data + (size_t)at * size,
                     size);
        }
        return buffer;
    }
    if (inside) inside_columns(dim, start, count, &low, &high);
    for (int64_t i = start; i < low; i++)
        copy_one(buffer + (size_t)(i - start) * size, (const char *)view->outside, size);
    if (low < high)
        gather(buffer + (size_t)(low - start) * size,
               view->data + (offset + dim->base + low * dim->stride) * (int64_t)size,
               (ptrdiff_t)(dim->stride * (int64_t)size), high - low, size);
    for (int64_t i = high; i < start + count; i++)
        copy_one(buffer + (size_t)(i - start) * size, (const char *)view->outside, size);
    return buffer;
}

char *uir_vm_view_target(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer) {
    char *direct = contiguous(view, row, start, count);
    return direct ? direct : buffer;
}

void uir_vm_view_commit(const vm_view *view, int64_t row, int64_t start, int64_t count, const char *from) {
    int64_t offset = 0, low, high;
    char *direct = contiguous(view, row, start, count);
    uint32_t size = view->size;
    if (direct) {
        if (direct != from) memmove(direct, from, (size_t)count * size);
        return;
    }
    if (!view->offsets && !row_offset(view, row, &offset)) return;
    const vm_dim *dim = &view->dims[view->rank - 1];
    if (view->offsets || dim->along) {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = element_offset(view, row, offset, start + i);
            if (at >= 0) copy_one(view->data + (size_t)at * size, from + (size_t)i * size, size);
        }
        return;
    }
    inside_columns(dim, start, count, &low, &high);
    if (low < high)
        scatter(view->data + (offset + dim->base + low * dim->stride) * (int64_t)size,
                from + (size_t)(low - start) * size, (ptrdiff_t)(dim->stride * (int64_t)size), high - low, size);
}

char *uir_vm_view_copy(vm_machine *machine, const vm_view *view) {
    int64_t columns = vm_view_columns(view), rows = columns ? view->total / columns : 0;
    char *copy = uir_vm_allocate(machine, (size_t)view->total + 1, view->size);
    for (int64_t r = 0; copy && r < rows; r++) {
        char *to = copy + (size_t)(r * columns) * view->size;
        const char *from = uir_vm_view_read(view, r, 0, columns, to);
        if (from != to) memcpy(to, from, (size_t)columns * view->size);
    }
    return copy;
}
