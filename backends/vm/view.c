/* Slices: from expressions to addresses that are known to be inside. A slice stays bound until a symbol changes that
 * says where it is. */
#include "backends/vm/machine.h"

#include <string.h>

struct vm_cached_view {
    uint64_t at; /* the clock when it was bound; 0: it has to be bound */
    vm_view view;
};

size_t uir_vm_views_size(const uir_vm_kernel *k) {
    return (size_t)k->slices_count * sizeof(vm_cached_view);
}

void uir_vm_forget_views(vm_machine *machine) {
    machine->clock = 1;
    memset(machine->changed, 0, sizeof machine->changed);
    for (uint32_t i = 0; i < machine->kernel->slices_count; i++) machine->views[i].at = 0;
}

uir_status uir_vm_bind_layout(vm_machine *machine, const vm_pointer *p, vm_layout *layouts) {
    for (uint32_t d = 0; d < p->rank; d++) {
        vm_layout *l = &layouts[d];
        UIR_TRY(uir_vm_evaluate(machine, p->extents[d], &l->extent));
        l->modes = p->mode_counts[d];
        for (uint32_t m = 0; m < l->modes; m++) {
            UIR_TRY(uir_vm_evaluate(machine, p->modes[d][m].size, &l->sizes[m]));
            UIR_TRY(uir_vm_evaluate(machine, p->modes[d][m].stride, &l->strides[m]));
            if (l->sizes[m] < 1) l->sizes[m] = 1; /* of an empty dim: never used */
        }
    }
    return UIR_STATUS_OK;
}

/* Wraps on overflow: every offset is checked before it is used. */
static int64_t layout_offset(const vm_layout *l, int64_t index) {
    uint64_t offset = 0;
    for (uint32_t m = 0; m + 1 < l->modes; m++) {
        offset += (uint64_t)(index % l->sizes[m]) * (uint64_t)l->strides[m];
        index /= l->sizes[m];
    }
    return (int64_t)(offset + (uint64_t)index * (uint64_t)l->strides[l->modes - 1]);
}

/* Within one block of the first mode, indices lie evenly apart. */
static bool is_even(const vm_layout *l, int64_t first, int64_t last) {
    return l->modes == 1 || first == last || first / l->sizes[0] == last / l->sizes[0];
}

/* Index start + i for 0 <= i < count. */
static uir_status bind_dim(vm_machine *machine, const vm_layout *l, int64_t start, bool outside, vm_dim *dim) {
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
    if (is_even(l, first, last)) {
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

int64_t uir_vm_dim_inside(const vm_dim *dim) {
    int64_t inside = 0;
    if (!dim->along) return dim->high - dim->low;
    for (int64_t i = dim->low; i < dim->high; i++) inside += dim->along[i] != VM_OUTSIDE;
    return inside;
}

/* Least and greatest offset of the dim's inside elements; `*empty` when there are none. */
static bool dim_range(const vm_dim *dim, int64_t *least, int64_t *greatest, bool *empty) {
    *empty = dim->low == dim->high;
    if (*empty) return true;
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
        if (dim->along[i] == VM_OUTSIDE) continue;
        if (dim->along[i] < *least) *least = dim->along[i];
        if (dim->along[i] > *greatest) *greatest = dim->along[i];
    }
    *empty = *least > *greatest;
    return true;
}

/* Nothing of the view is inside: the other dims' places were never asked for, and must not be. */
static void bind_nothing(vm_view *view) {
    for (uint32_t d = 0; d < view->rank; d++) view->dims[d] = (vm_dim){view->dims[d].count, 0, 0, 0, 0, NULL};
}

/* Every element is inside the memory. Says in the view what follows for reading it whole. */
static uir_status check_box(vm_machine *machine, vm_view *view, int64_t first, int64_t span) {
    int64_t least = first, greatest = first, start = first, next = 1;
    bool even = true, flat = true;
    for (uint32_t d = view->rank; d-- > 0;) {
        const vm_dim *dim = &view->dims[d];
        int64_t a = 0, b = 0;
        bool empty = false;
        bool fine = dim_range(dim, &a, &b, &empty);
        if (empty) return bind_nothing(view), UIR_STATUS_OK;
        if (!fine || __builtin_add_overflow(least, a, &least) || __builtin_add_overflow(greatest, b, &greatest))
            return uir_vm_fail(machine, "an address overflows");
        even &= !dim->along && dim->low == 0 && dim->high == dim->count;
        flat &= dim->count == 1 || dim->stride == next;
        next = (int64_t)((uint64_t)next * (uint64_t)dim->count); /* at most the total, which does not overflow */
        start = (int64_t)((uint64_t)start + (uint64_t)dim->base);
    }
    if (least < 0 || greatest >= span)
        return uir_vm_fail(machine, "a slice reaches outside the memory of pointer %u", view->pointer);
    if (even) {
        view->origin = view->data + (size_t)start * view->size;
        view->first = view->data + (size_t)least * view->size;
        view->last = view->data + (size_t)greatest * view->size;
        if (flat) view->flat = view->origin;
    }
    view->data += (size_t)first * view->size;
    return UIR_STATUS_OK;
}

/* ---- windows ---- */
/* A window whose coordinates are sums of axes: where axis `a` leads in pointer dim `d`. Axes of one element are left
 * out. */
typedef struct window {
    uint32_t axes, pointer_rank;
    int64_t extents[VM_MAX_RANK], base[VM_MAX_RANK]; /* per axis; per pointer dim */
    int64_t steps[VM_MAX_RANK][VM_MAX_RANK];         /* per axis and pointer dim */
    uint32_t groups[VM_MAX_RANK];                    /* per axis: the dim of the slice */
} window;

static uir_status open_window(vm_machine *machine, const vm_slice *slice, uint32_t pointer_rank, const vm_view *view,
                              window *w, uint32_t *symbols) {
    int64_t product = 1;
    uint32_t dim = 0;
    w->axes = 0;
    w->pointer_rank = pointer_rank;
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        int64_t extent;
        UIR_TRY(uir_vm_evaluate(machine, slice->axis_extents[a], &extent));
        if (extent < 0) extent = 0;
        if (__builtin_mul_overflow(product, extent, &product)) return uir_vm_fail(machine, "a window is too large");
        machine->values[slice->axis_symbols[a]] = 0;
        machine->bound[slice->axis_symbols[a]] = true;
        if (extent != 1) {
            symbols[w->axes] = slice->axis_symbols[a];
            w->extents[w->axes++] = extent;
        }
    }
    if (product != view->total) return uir_vm_fail(machine, "a window's axes and its dims do not agree");
    /* Consecutive axes make up a dim of the slice. */
    product = 1;
    for (uint32_t a = 0; a < w->axes; a++) {
        while (dim + 1 < view->rank && product == view->dims[dim].count) dim++, product = 1;
        product *= w->extents[a]; /* divides the total, or is refused below */
        w->groups[a] = dim;
        if (view->rank && product > view->dims[dim].count)
            return uir_vm_fail(machine, "a window's axes and its dims do not agree");
    }
    return UIR_STATUS_OK;
}

/* False where the coordinates are not sums, or too large for this. */
static uir_status measure_window(vm_machine *machine, const vm_slice *slice, const uint32_t *symbols, window *w,
                                 bool *out_measured) {
    *out_measured = false;
    for (uint32_t d = 0; d < w->pointer_rank; d++) {
        UIR_TRY(uir_vm_evaluate(machine, slice->starts[d], &w->base[d]));
        uint64_t depends = machine->kernel->traits[slice->starts[d]].depends;
        for (uint32_t a = 0; a < w->axes; a++) {
            w->steps[a][d] = 0;
            if (!(depends & vm_symbol_bit(symbols[a]))) continue;
            machine->values[symbols[a]] = 1;
            int64_t there;
            uir_status status = uir_vm_evaluate(machine, slice->starts[d], &there);
            machine->values[symbols[a]] = 0;
            UIR_TRY(status);
            if (__builtin_sub_overflow(there, w->base[d], &w->steps[a][d])) return UIR_STATUS_OK;
        }
    }
    *out_measured = true;
    return UIR_STATUS_OK;
}

/* Least and greatest coordinate in a pointer dim; false on overflow. */
static bool coordinate_range(const window *w, uint32_t d, int64_t *least, int64_t *greatest) {
    *least = *greatest = w->base[d];
    for (uint32_t a = 0; a < w->axes; a++) {
        int64_t reach, *end = w->steps[a][d] < 0 ? least : greatest;
        if (__builtin_mul_overflow(w->steps[a][d], w->extents[a] - 1, &reach) ||
            __builtin_add_overflow(*end, reach, end))
            return false;
    }
    return true;
}

/* The one dim of the slice that moves in pointer dim d; VM_NONE: none; VM_MAX_RANK: several. */
static uint32_t moving_dim(const window *w, uint32_t d) {
    uint32_t dim = VM_NONE;
    for (uint32_t a = 0; a < w->axes; a++) {
        if (!w->steps[a][d]) continue;
        dim = dim == VM_NONE || dim == w->groups[a] ? w->groups[a] : VM_MAX_RANK;
    }
    return dim;
}

/* The coordinate a step further along the axis, or back at its beginning: what it was measured to be, without a part on
 * the way that is too large. */
static int64_t move_along(const window *w, uint32_t axis, uint32_t d, int64_t place, bool wraps) {
    uint64_t step = (uint64_t)w->steps[axis][d];
    return (int64_t)((uint64_t)place + (wraps ? 0 - step * (uint64_t)(w->extents[axis] - 1) : step));
}

/* Offsets of a dim of the slice whose axes do not lie evenly, or are outside in part: `uneven` says in which pointer
 * dims it is not a sum of strides. */
static uir_status list_dim(vm_machine *machine, const window *w, uint32_t group, const vm_layout *layouts,
                           const bool *uneven, const int64_t *strides, vm_dim *dim) {
    int64_t at[VM_MAX_RANK] = {0}, place[VM_MAX_RANK], *along;
    UIR_TRY(uir_vm_count(machine, (uint64_t)dim->count));
    UIR_TRY_ALLOCATE(along, uir_vm_allocate(machine, (size_t)dim->count, sizeof *along));
    memcpy(place, w->base, sizeof place);
    for (int64_t i = 0; i < dim->count; i++) {
        uint64_t offset = 0;
        bool inside = true;
        if (i % VM_CHUNK == 0 && vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
        for (uint32_t a = 0; a < w->axes; a++)
            if (w->groups[a] == group) offset += (uint64_t)at[a] * (uint64_t)strides[a];
        for (uint32_t d = 0; d < w->pointer_rank; d++) {
            if (!uneven[d] || moving_dim(w, d) != group) continue;
            inside &= place[d] >= 0 && place[d] < layouts[d].extent;
            if (inside) offset += (uint64_t)layout_offset(&layouts[d], place[d]);
        }
        along[i] = inside && (int64_t)offset != VM_OUTSIDE ? (int64_t)offset : VM_OUTSIDE;
        for (uint32_t a = w->axes; a-- > 0;) {
            if (w->groups[a] != group) continue;
            bool wraps = ++at[a] == w->extents[a];
            for (uint32_t d = 0; d < w->pointer_rank; d++) place[d] = move_along(w, a, d, place[d], wraps);
            if (!wraps) break;
            at[a] = 0;
        }
    }
    dim->along = along;
    return UIR_STATUS_OK;
}

/* Dims of the slice that move apart from each other: each gets a stride or a list. `*out_done` false: they do not. */
static uir_status bind_apart(vm_machine *machine, const window *w, const vm_layout *layouts, int64_t span,
                             vm_view *view, bool *out_done) {
    int64_t strides[VM_MAX_RANK] = {0};
    bool uneven[VM_MAX_RANK] = {false}, listed[VM_MAX_RANK] = {false};
    uint64_t first = 0;
    *out_done = false;
    for (uint32_t d = 0; d < w->pointer_rank; d++) {
        int64_t least, greatest;
        uint32_t moving = moving_dim(w, d);
        if (!coordinate_range(w, d, &least, &greatest)) return UIR_STATUS_OK;
        if (least >= 0 && greatest < layouts[d].extent && is_even(&layouts[d], least, greatest)) {
            first += (uint64_t)layout_offset(&layouts[d], w->base[d]);
            for (uint32_t a = 0; a < w->axes; a++)
                strides[a] =
                    (int64_t)((uint64_t)strides[a] + (uint64_t)w->steps[a][d] * (uint64_t)layouts[d].strides[0]);
            continue;
        }
        if (moving >= VM_MAX_RANK) return UIR_STATUS_OK;
        uneven[d] = listed[moving] = true;
    }
    for (uint32_t g = 0; g < view->rank; g++) {
        vm_dim *dim = &view->dims[g];
        int64_t run = 0, stride = 0; /* of the axes behind: elements and stride, when they lie evenly */
        bool even = true;
        for (uint32_t a = w->axes; a-- > 0;) {
            if (w->groups[a] != g) continue;
            int64_t next;
            if (!run)
                stride = strides[a];
            else
                even &= !__builtin_mul_overflow(stride, run, &next) && next == strides[a];
            run = (run ? run : 1) * w->extents[a];
        }
        *dim = (vm_dim){dim->count, 0, dim->count, 0, stride, NULL};
        if (listed[g] || !even) UIR_TRY(list_dim(machine, w, g, layouts, uneven, strides, dim));
    }
    *out_done = true;
    return check_box(machine, view, (int64_t)first, span);
}

/* An offset for each element. */
static uir_status list_window(vm_machine *machine, const vm_slice *slice, const window *w, const uint32_t *symbols,
                              bool measured, bool outside, const vm_layout *layouts, int64_t span, vm_view *view) {
    int64_t *offsets, at[VM_MAX_RANK] = {0}, place[VM_MAX_RANK];
    UIR_TRY_ALLOCATE(offsets, uir_vm_allocate(machine, (size_t)view->total + 1, sizeof *offsets));
    memcpy(place, w->base, sizeof place);
    for (int64_t e = 0; e < view->total; e++) {
        uint64_t offset = 0;
        bool inside = !outside;
        if (e % VM_CHUNK == 0 && vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
        for (uint32_t d = 0; d < w->pointer_rank && inside; d++) {
            if (!measured) UIR_TRY(uir_vm_evaluate(machine, slice->starts[d], &place[d]));
            inside = place[d] >= 0 && place[d] < layouts[d].extent;
            if (inside) offset += (uint64_t)layout_offset(&layouts[d], place[d]);
        }
        offsets[e] = inside ? (int64_t)offset : -1;
        if (inside && ((int64_t)offset < 0 || (int64_t)offset >= span))
            return uir_vm_fail(machine, "a window reaches outside the memory of pointer %u", view->pointer);
        for (uint32_t a = w->axes; a-- > 0;) {
            bool wraps = ++at[a] == w->extents[a];
            if (wraps) at[a] = 0;
            machine->values[symbols[a]] = at[a];
            for (uint32_t d = 0; measured && d < w->pointer_rank; d++) place[d] = move_along(w, a, d, place[d], wraps);
            if (!wraps) break;
        }
    }
    view->offsets = offsets;
    return UIR_STATUS_OK;
}

static uir_status bind_window(vm_machine *machine, const vm_slice *slice, const vm_traits *traits,
                              const vm_layout *layouts, uint32_t pointer_rank, bool outside, int64_t span,
                              vm_view *view) {
    window w;
    uint32_t symbols[VM_MAX_RANK];
    bool measured = false, done = false;
    UIR_TRY(open_window(machine, slice, pointer_rank, view, &w, symbols));
    if (outside) { /* no element is inside */
        bind_nothing(view);
        done = view->rank > 0;
    } else if (traits->affine) {
        UIR_TRY(measure_window(machine, slice, symbols, &w, &measured));
        int64_t least, greatest;
        for (uint32_t d = 0; d < pointer_rank && measured; d++) measured = coordinate_range(&w, d, &least, &greatest);
        if (measured) UIR_TRY(bind_apart(machine, &w, layouts, span, view, &done));
    }
    if (!done) {
        UIR_TRY(uir_vm_count(machine, (uint64_t)view->total));
        UIR_TRY(list_window(machine, slice, &w, symbols, measured, outside, layouts, span, view));
    }
    for (uint32_t a = 0; a < slice->axis_count; a++) machine->bound[slice->axis_symbols[a]] = false;
    return UIR_STATUS_OK;
}

/* ---- slices ---- */
/* Whether a coordinate uses an index that put its slices outside. */
static bool is_outside(const vm_machine *machine, uint32_t expression) {
    const vm_expression *e = &machine->kernel->expressions[expression];
    if (!machine->kernel->traits[expression].uses_index) return false;
    for (uint32_t i = 0; i < e->count; i++) {
        const vm_step *s = &machine->kernel->steps[e->first + i];
        if (s->kind == UIR_DIM_SYMBOL && machine->outside[s->value]) return true;
    }
    return false;
}

static void bind_fill(const vm_slice *slice, vm_view *view) {
    memset(view->outside, 0, sizeof view->outside);
    if (!slice->has_fill) return;
    double fill;
    memcpy(&fill, &slice->fill, sizeof fill);
    if (uir_dtype_is_float(view->dtype))
        uir_dtype_store_double(view->dtype, view->outside, 0, fill, UIR_ROUND_NEAREST_EVEN);
    else
        uir_dtype_store_integer(view->dtype, view->outside, 0, fill >= -0x1p63 && fill < 0x1p63 ? (int64_t)fill : 0,
                                false, UIR_ROUND_NEAREST_EVEN);
}

static uir_status bind(vm_machine *machine, uint32_t index, vm_view *view) {
    const vm_slice *slice = &machine->kernel->slices[index];
    const vm_pointer *p = &machine->kernel->pointers[slice->pointer];
    const vm_memory *memory = &machine->memory[slice->pointer];
    const vm_traits *traits = &machine->kernel->placement[index];
    const vm_layout *layouts = machine->fixed->layouts + (size_t)slice->pointer * VM_MAX_RANK;
    vm_layout own[VM_MAX_RANK];
    int64_t instance = 0;
    bool outside = false;
    view->pointer = slice->pointer;
    view->dtype = (uir_dtype)p->dtype;
    view->size = uir_dtype_bits(view->dtype) / 8;
    view->rank = slice->rank;
    view->block = slice->block;
    view->offsets = NULL;
    view->total = 1;
    view->origin = view->flat = NULL;
    if (p->by_loop != VM_NONE) {
        if (!machine->bound[p->by_loop])
            return uir_vm_fail(machine, "pointer %u is used outside its loop", slice->pointer);
        instance = machine->values[p->by_loop] % p->instances;
    }
    view->data = memory->data + (size_t)instance * (size_t)memory->span * view->size;
    bind_fill(slice, view);
    for (uint32_t d = 0; d < slice->rank; d++) {
        UIR_TRY(uir_vm_evaluate(machine, slice->counts[d], &view->dims[d].count));
        if (view->dims[d].count < 0) view->dims[d].count = 0;
        if (__builtin_mul_overflow(view->total, view->dims[d].count, &view->total))
            return uir_vm_fail(machine, "a slice is too large");
    }
    if (!machine->fixed->laid_out[slice->pointer]) {
        UIR_TRY(uir_vm_bind_layout(machine, p, own));
        layouts = own;
    }
    for (uint32_t d = 0; traits->uses_index && d < p->rank; d++) outside |= is_outside(machine, slice->starts[d]);
    if (view->total == 0) return UIR_STATUS_OK;
    if (slice->window) return bind_window(machine, slice, traits, layouts, p->rank, outside, memory->span, view);
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t start;
        UIR_TRY(uir_vm_evaluate(machine, slice->starts[d], &start));
        UIR_TRY(bind_dim(machine, &layouts[d], start, outside, &view->dims[d]));
    }
    return check_box(machine, view, 0, memory->span);
}

/* What it allocated goes with the instruction. */
static bool can_stay(const vm_view *view) {
    bool stays = !view->offsets;
    for (uint32_t d = 0; d < view->rank && view->total; d++) stays &= !view->dims[d].along;
    return stays;
}

static bool is_current(const vm_machine *machine, const vm_cached_view *cached, uint64_t depends) {
    if (!cached->at) return false;
    for (; depends; depends &= depends - 1) {
        if (machine->changed[__builtin_ctzll(depends)] > cached->at) return false;
    }
    return true;
}

uir_status uir_vm_view_bind(vm_machine *machine, uint32_t index, const vm_view **out_view) {
    vm_cached_view *cached = &machine->views[index];
    *out_view = &cached->view;
    if (is_current(machine, cached, machine->kernel->placement[index].depends)) return UIR_STATUS_OK;
    cached->at = 0;
    UIR_TRY(bind(machine, index, &cached->view));
    if (can_stay(&cached->view)) cached->at = machine->clock;
    return UIR_STATUS_OK;
}

int64_t uir_vm_view_rows(const vm_view *view) {
    int64_t rows = 1;
    for (uint32_t d = 0; d + 1 < view->rank; d++) rows *= view->dims[d].count;
    return rows;
}

/* The sum over the dims is inside the memory; a part of it may be anything. */
static uint64_t dim_offset(const vm_dim *dim, int64_t i) {
    return dim->along ? (uint64_t)dim->along[i] : (uint64_t)dim->base + (uint64_t)i * (uint64_t)dim->stride;
}
static char *at_offset(const vm_view *view, uint64_t offset) {
    return view->data + (size_t)offset * view->size;
}
static ptrdiff_t dim_step(const vm_dim *dim, uint32_t size) {
    return (ptrdiff_t)((uint64_t)dim->stride * size);
}

/* Offset of a row's column 0 without the last dim's share; false outside. */
static bool row_offset(const vm_view *view, int64_t row, uint64_t *out) {
    uint64_t offset = 0;
    for (uint32_t d = view->rank - 1; d-- > 0;) {
        const vm_dim *dim = &view->dims[d];
        int64_t i = row % dim->count;
        row /= dim->count;
        if (i < dim->low || i >= dim->high) return false;
        if (dim->along && dim->along[i] == VM_OUTSIDE) return false;
        offset += dim_offset(dim, i);
    }
    *out = offset;
    return true;
}

/* Offset of the element at `column`, or VM_OUTSIDE. Where axes go backwards it may be negative: the view's data is
 * where all of them are 0. */
static int64_t element_offset(const vm_view *view, int64_t row, uint64_t offset, int64_t column) {
    if (view->offsets) {
        int64_t at = view->offsets[row * vm_view_columns(view) + column];
        return at < 0 ? VM_OUTSIDE : at;
    }
    const vm_dim *dim = &view->dims[view->rank ? view->rank - 1 : 0];
    if (column < dim->low || column >= dim->high || (dim->along && dim->along[column] == VM_OUTSIDE)) return VM_OUTSIDE;
    return (int64_t)(offset + dim_offset(dim, column));
}

/* The address of contiguous elements inside, or NULL. */
static char *contiguous(const vm_view *view, int64_t row, int64_t start, int64_t count) {
    uint64_t offset;
    if (view->offsets) {
        const int64_t *at = view->offsets + row * vm_view_columns(view) + start;
        if (at[0] < 0) return NULL;
        for (int64_t i = 1; i < count; i++) {
            if (at[i] != at[0] + i) return NULL;
        }
        return view->data + (size_t)at[0] * view->size;
    }
    if (view->rank == 0) return view->data;
    const vm_dim *dim = &view->dims[view->rank ? view->rank - 1 : 0];
    if (!row_offset(view, row, &offset) || start < dim->low || start + count > dim->high) return NULL;
    if (dim->along || (dim->stride != 1 && count > 1)) return NULL;
    return at_offset(view, offset + dim_offset(dim, start));
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

#define EACH(type, to_step, from_step)                                                                                 \
    for (int64_t i = 0; i < count; i++)                                                                                \
        *(type *)(void *)(to + i * (to_step)) = *(const type *)(const void *)(from + i * (from_step));
#define EACH_SIZE(to_step, from_step)                                                                                  \
    switch (size) {                                                                                                    \
    case 1:                                                                                                            \
        EACH(uint8_t, to_step, from_step)                                                                              \
        break;                                                                                                         \
    case 2:                                                                                                            \
        EACH(uint16_t, to_step, from_step)                                                                             \
        break;                                                                                                         \
    case 4:                                                                                                            \
        EACH(uint32_t, to_step, from_step)                                                                             \
        break;                                                                                                         \
    default:                                                                                                           \
        EACH(uint64_t, to_step, from_step)                                                                             \
        break;                                                                                                         \
    }

/* `count` elements whose places are `step` bytes apart, from or to contiguous ones. */
void uir_vm_gather(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size) {
    if (step == (ptrdiff_t)size) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    EACH_SIZE((ptrdiff_t)size, step)
}

void uir_vm_scatter(char *to, const char *from, ptrdiff_t step, int64_t count, uint32_t size) {
    if (step == (ptrdiff_t)size) {
        memmove(to, from, (size_t)count * size);
        return;
    }
    EACH_SIZE(step, (ptrdiff_t)size)
}

/* Which of the columns start.. lie inside, when the row does and its places are a line. */
static void inside_columns(const vm_dim *dim, int64_t start, int64_t count, int64_t *low, int64_t *high) {
    *low = start > dim->low ? start : dim->low;
    *high = start + count < dim->high ? start + count : dim->high;
    if (*high < *low) *high = *low = start;
}

const char *uir_vm_view_read(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer) {
    const char *direct = contiguous(view, row, start, count);
    int64_t low = start, high = start;
    uint64_t offset = 0;
    uint32_t size = view->size;
    if (direct) return direct;
    bool inside = view->offsets || row_offset(view, row, &offset);
    const vm_dim *dim = &view->dims[view->rank ? view->rank - 1 : 0];
    if (inside && (view->offsets || dim->along)) {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = element_offset(view, row, offset, start + i);
            copy_one(buffer + (size_t)i * size,
                     at == VM_OUTSIDE ? (const char *)view->outside : at_offset(view, (uint64_t)at), size);
        }
        return buffer;
    }
    if (inside) inside_columns(dim, start, count, &low, &high);
    for (int64_t i = start; i < low; i++)
        copy_one(buffer + (size_t)(i - start) * size, (const char *)view->outside, size);
    if (low < high)
        uir_vm_gather(buffer + (size_t)(low - start) * size, at_offset(view, offset + dim_offset(dim, low)),
                      dim_step(dim, size), high - low, size);
    for (int64_t i = high; i < start + count; i++)
        copy_one(buffer + (size_t)(i - start) * size, (const char *)view->outside, size);
    return buffer;
}

char *uir_vm_view_target(const vm_view *view, int64_t row, int64_t start, int64_t count, char *buffer) {
    char *direct = contiguous(view, row, start, count);
    return direct ? direct : buffer;
}

void uir_vm_view_commit(const vm_view *view, int64_t row, int64_t start, int64_t count, const char *from) {
    int64_t low, high;
    uint64_t offset = 0;
    char *direct = contiguous(view, row, start, count);
    uint32_t size = view->size;
    if (direct) {
        if (direct != from) memmove(direct, from, (size_t)count * size);
        return;
    }
    if (!view->offsets && !row_offset(view, row, &offset)) return;
    const vm_dim *dim = &view->dims[view->rank ? view->rank - 1 : 0];
    if (view->offsets || dim->along) {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = element_offset(view, row, offset, start + i);
            if (at != VM_OUTSIDE) copy_one(at_offset(view, (uint64_t)at), from + (size_t)i * size, size);
        }
        return;
    }
    inside_columns(dim, start, count, &low, &high);
    if (low < high)
        uir_vm_scatter(at_offset(view, offset + dim_offset(dim, low)), from + (size_t)(low - start) * size,
                       dim_step(dim, size), high - low, size);
}

uir_status uir_vm_view_copy(vm_machine *machine, const vm_view *view, char **out_copy) {
    int64_t columns = vm_view_columns(view), rows = columns ? view->total / columns : 0;
    char *copy;
    UIR_TRY(uir_vm_count(machine, (uint64_t)view->total / 16 + (uint64_t)rows));
    UIR_TRY_ALLOCATE(copy, uir_vm_allocate(machine, (size_t)view->total + 1, view->size));
    for (int64_t r = 0; r < rows; r++) {
        char *to = copy + (size_t)(r * columns) * view->size;
        if (r % VM_CHUNK == 0 && vm_is_cancelled(machine)) return UIR_STATUS_CANCELLED;
        const char *from = uir_vm_view_read(view, r, 0, columns, to);
        if (from != to) memcpy(to, from, (size_t)columns * view->size);
    }
    *out_copy = copy;
    return UIR_STATUS_OK;
}
