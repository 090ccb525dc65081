/* Layouts of a contraction's tiles and of constants that are packed for it. */
#include "lower/select/contraction_layout.h"

void uir_contraction_make_panels(const uir_loop_function *f, uint32_t tensor, uint32_t columns, uint32_t group,
                                 const uir_loop_access *access, uint32_t column, const uir_loop_statement *block,
                                 uir_layout *layout) {
    const uir_loop_tensor *t = &f->tensors.data[tensor];
    int64_t extent;
    if (uir_dim_is_const(f->dims, t->extents[column], &extent) && extent <= columns / 2)
        columns /= 2; /* what pads a panel is read as well */
    uir_dim width = uir_dim_const(f->dims, columns), stride = width, strides[UIR_LOOP_MAX_RANK] = {{0}};
    bool deep[UIR_LOOP_MAX_RANK] = {false};
    uint32_t inner = UIR_LOOP_NONE;                  /* of those that are summed over */
    for (uint32_t i = block->iter_count; i-- > 0;) { /* in the order of the sums */
        for (uint32_t d = t->rank; d-- > 0 && block->iters[i].reduce;) {
            if (deep[d] || !uir_dim_mentions(f->dims, access->indices[d], block->iters[i].symbol)) continue;
            deep[d] = true;
            if (inner == UIR_LOOP_NONE) inner = d;
            strides[d] = stride;
            stride = uir_dim_mul(f->dims, stride, t->extents[d]);
        }
    }
    uir_dim panel = stride, panels = uir_dim_ceildiv(f->dims, t->extents[column], width);
    stride = uir_dim_mul(f->dims, stride, panels);
    for (uint32_t d = t->rank; d > 0; d--) {
        if (deep[d - 1] || d - 1 == column) continue;
        strides[d - 1] = stride;
        stride = uir_dim_mul(f->dims, stride, t->extents[d - 1]);
    }
    *layout = (uir_layout){0};
    uir_layout_set_strides(layout, t->extents, strides, t->rank);
    layout->split = true;
    bool grouped = inner != UIR_LOOP_NONE && group > 1 && uir_dim_is_const(f->dims, t->extents[inner], &extent) &&
                   extent % group == 0 && extent > 0;
    if (!grouped) group = 1;
    layout->modes[column][0] = (uir_mode){width, uir_dim_const(f->dims, group)};
    if (grouped) {
        layout->modes[inner][0] = (uir_mode){uir_dim_const(f->dims, group), uir_dim_const(f->dims, 1)};
        layout->modes[inner][1] =
            (uir_mode){uir_dim_const(f->dims, extent / group), uir_dim_const(f->dims, (int64_t)columns * group)};
        layout->mode_count[inner] = 2;
    }
    layout->modes[column][1] = (uir_mode){panels, panel};
    layout->mode_count[column] = 2;
}

void uir_contraction_make_apart(const uir_loop_function *f, uint32_t tensor, uint32_t inner, uir_layout *layout) {
    const uir_loop_tensor *t = &f->tensors.data[tensor];
    uir_dim strides[UIR_LOOP_MAX_RANK], stride = uir_dim_const(f->dims, 1);
    for (uint32_t d = t->rank; d > 0; d--) {
        if (t->rank - d == inner) stride = uir_dim_add(f->dims, stride, uir_dim_const(f->dims, UIR_CONTRACTION_PAD));
        strides[d - 1] = stride;
        stride = uir_dim_mul(f->dims, stride, t->extents[d - 1]);
    }
    *layout = (uir_layout){0};
    uir_layout_set_strides(layout, t->extents, strides, t->rank);
}
