/* Convolutions of 3 x 3 by Winograd's F(2 x 2, 3 x 3) (S. Winograd, Arithmetic complexity of computations, 1980; A.
 * Lavin and S. Gray, Fast algorithms for convolutional neural networks, 2016): of each 4 x 4 of the image, 2 apart,
 * sixteen sums and differences; of each of these the product over channels with what the filters' 3 x 3 became; and of
 * the sixteen products sums that are 2 x 2 of the result: 16 multiplications where there were 36.
 *
 * Along one axis, of elements d0..d3 and filters g0..g2, with rows a = 2*a1 + a0:
 *
 *   v[a] = d[a] + s[a]*d[2 - a1]      s = -1, 1, -1, -1
 *   u    = g0, (g0 + g1 + g2)/2, (g0 - g1 + g2)/2, g2
 *   m[a] = v[a]*u[a], summed over channels
 *   y[i] = m[3*i] + (m[1] + z[i]*m[2])      z = 1, -1
 *
 * (of the last row both v and its part in y have the other sign than in the papers, so that all rows are one formula).
 * Signs are exact factors. An infinity or NaN among the sixteen elements makes all of the 2 x 2 NaN or infinite, also
 * those that it is not beside. */
#include "passes/layouts.h"
#include "passes/precision.h"
#include "passes/tools.h"

#include "ir/machine/device.h"

enum {
    TAPS = 3,
    TILE = 2,             /* elements of the result along an axis */
    REACH = 4,            /* and of the image */
    LEAST_CHANNELS = 8,   /* those of fewer are read as they lie */
    LEAST_PIXELS = 4,     /* along an axis, where it is known: of fewer a direct form has little but what is outside */
    OPERATIONS = 6,       /* for each sum or difference of the image, loads among them */
    BYTES_PER_CYCLE = 16, /* where the description does not say */
};

typedef struct winograd {
    uir_module *module;
    const uir_machine *machine;
    uir_precision precision;
    uir_builder *b;
    const uir_node_info *node;
    uir_dim batch, channels, filters, height, width; /* of the result */
    uir_dim lines, columns;                          /* tiles */
} winograd;

static uir_dim number(const winograd *w, int64_t value) {
    return uir_dim_const(w->module->dims, value);
}

static bool is(const winograd *w, uir_dim dim, int64_t wanted) {
    int64_t value;
    return uir_dim_is_const(w->module->dims, dim, &value) && value == wanted;
}

static bool has_least(const winograd *w, uir_dim pixels) {
    int64_t value;
    return !uir_dim_is_const(w->module->dims, pixels, &value) || value >= LEAST_PIXELS;
}

static bool are_all(const winograd *w, const char *attribute, int64_t wanted) {
    uint32_t count;
    const int64_t *values = uir_node_ints(w->module, w->node, attribute, &count);
    for (uint32_t i = 0; i < count; i++)
        if (values[i] != wanted) return false;
    return true;
}

/* The constant that filters are, widened or not; NULL. */
static const uir_tensor *filters_of(const winograd *w, const uir_node_info *node) {
    const uir_node_info *cast = uir_value_made_by(w->module, node->inputs[1], UIR_OP_CAST);
    return uir_value_info_get(w->module, cast ? cast->inputs[0] : node->inputs[1])->constant;
}

/* Is a tile of the result computed in fewer cycles, by a tenth? Products by whole vectors of columns; what is made of
 * the image; products that are written and read again. */
static bool gains(const winograd *w) {
    const uir_machine *d = w->machine;
    int64_t channels, filters, lanes = uir_machine_lanes(d);
    int64_t each = uir_machine_multiply_adds(d);
    int scratch = uir_machine_find_role(d, UIR_SPACE_SCRATCH);
    int64_t bytes = scratch >= 0 ? d->spaces[scratch].bytes_per_cycle : 0;
    if (!uir_dim_is_const(w->module->dims, w->channels, &channels) || channels < LEAST_CHANNELS ||
        !uir_dim_is_const(w->module->dims, w->filters, &filters) || filters < LEAST_CHANNELS)
        return false;
    double product = (double)channels * (double)((filters + lanes - 1) / lanes) / (double)each;
    double direct = TILE * TILE * TAPS * TAPS * product;
    double made = REACH * REACH * OPERATIONS * (double)((channels + lanes - 1) / lanes) / (double)each;
    double moved = 2.0 * REACH * REACH * 4 * (double)filters / (double)(bytes ? bytes : BYTES_PER_CYCLE);
    return 1.1 * (REACH * REACH * product + made + moved) < direct;
}

static bool is_for(winograd *w, const uir_node_info *node) {
    uir_module *module = w->module;
    w->node = node;
    if (node->op != UIR_OP_CONV || uir_precision_keeps(module, node, w->precision, w->machine)) return false;
    const uir_value_info *image = uir_value_info_get(module, node->inputs[0]),
                         *filters = uir_value_info_get(module, node->inputs[1]),
                         *result = uir_value_info_get(module, node->outputs[0]);
    const uir_tensor *constant = filters_of(w, node);
    if (!constant || !uir_dtype_is_float(constant->dtype) || !image->layout || !result->layout ||
        filters->type.rank != 4)
        return false;
    if (image->type.dtype != UIR_DTYPE_F32 || filters->type.dtype != UIR_DTYPE_F32 ||
        result->type.dtype != UIR_DTYPE_F32 || uir_node_int(module, node, "groups", 1) != 1)
        return false;
    w->batch = result->type.dims[0];
    w->channels = image->type.dims[1];
    w->filters = result->type.dims[1];
    w->height = result->type.dims[2];
    w->width = result->type.dims[3];
    return is(w, filters->type.dims[2], TAPS) && is(w, filters->type.dims[3], TAPS) && are_all(w, "strides", 1) &&
           are_all(w, "dilations", 1) && has_least(w, w->height) && has_least(w, w->width) && gains(w);
}

/* Row a of the filters' transform, of three elements `step` apart. */
static double transform(const double *g, uint32_t a, uint32_t step) {
    if (a == 0) return g[0];
    if (a == REACH - 1) return g[2 * step];
    return (g[0] + (a == 1 ? g[step] : -g[step]) + g[2 * step]) / 2;
}

/* What the filters [OC, C, 3, 3] become: [16, C, OC], in f64, rounded once. */
static uir_value_id transform_filters(const winograd *w) {
    const uir_tensor *from = filters_of(w, w->node);
    int64_t filters = from->shape[0], channels = from->shape[1], shape[3] = {REACH * REACH, channels, filters};
    uint64_t taps = 0;
    uir_tensor *to;
    w->b->status = uir_tensor_create(w->module->allocator, UIR_DTYPE_F32, 3, shape, &to);
    if (w->b->status != UIR_STATUS_OK) return (uir_value_id){0};
    float *out = to->data;
    for (int64_t k = 0; k < filters; k++)
        for (int64_t c = 0; c < channels; c++, taps += TAPS * TAPS) {
            double g[TAPS * TAPS], rows[TAPS];
            for (uint32_t i = 0; i < TAPS * TAPS; i++) g[i] = uir_dtype_load_double(from->dtype, from->data, taps + i);
            for (uint32_t a = 0; a < REACH; a++) {
                for (uint32_t j = 0; j < TAPS; j++) rows[j] = transform(g + j, a, TAPS);
                for (uint32_t e = 0; e < REACH; e++)
                    out[((a * REACH + e) * channels + c) * filters + k] = (float)transform(rows, e, 1);
            }
        }
    return uir_build_constant(w->b, to);
}

/* Signs as [.., 1, .., 1], `after` ones behind `rank` axes of two. */
static uir_value_id signs(const winograd *w, const float *values, uint32_t rank, uint32_t after) {
    int64_t shape[UIR_MAX_RANK];
    uir_tensor *tensor;
    for (uint32_t d = 0; d < rank + after; d++) shape[d] = d < rank ? 2 : 1;
    if (w->b->status != UIR_STATUS_OK) return (uir_value_id){0};
    w->b->status = uir_tensor_create(w->module->allocator, UIR_DTYPE_F32, rank + after, shape, &tensor);
    if (w->b->status != UIR_STATUS_OK) return (uir_value_id){0};
    for (uint64_t i = 0; i < tensor->element_count; i++) ((float *)tensor->data)[i] = values[i];
    return uir_build_constant(w->b, tensor);
}

/* x + s*y */
static uir_value_id add_signed(const winograd *w, uir_value_id x, uir_value_id s, uir_value_id y) {
    return uir_build_binary(w->b, UIR_OP_ADD, x, uir_build_binary(w->b, UIR_OP_MUL, y, s));
}

/* The image's elements at rows a and columns e of each tile, or at those that are added to them:
 * [N, C, lines, columns, a1, a0, e1, e0]. */
static uir_value_id tiles_of(const winograd *w, bool other_rows, bool other_columns) {
    uint32_t count;
    const uir_dim *low = uir_node_dims(w->module, w->node, "low", &count);
    uir_dims *dims = w->module->dims;
    uir_dim starts[] = {number(w, 0), number(w, 0), uir_dim_sub(dims, number(w, other_rows ? 2 : 0), low[0]),
                        uir_dim_sub(dims, number(w, other_columns ? 2 : 0), low[1])};
    const uir_dim sizes[] = {w->batch, w->channels, w->lines, w->columns};
    const int64_t steps[] = {1, 1, TILE, TILE}, axes[] = {2, 2, 3, 3}, window[] = {2, 2, 2, 2};
    const int64_t dilations[] = {other_rows ? -1 : 2, other_rows ? 0 : 1, other_columns ? -1 : 2,
                                 other_columns ? 0 : 1};
    return uir_build_windows(w->b, w->node->inputs[0], starts, sizes, steps, axes, window, dilations, 4);
}

/* [16, tiles, C] */
static uir_value_id transform_image(const winograd *w) {
    static const float values[] = {-1, 1, -1, -1};
    const int64_t order[] = {4, 5, 6, 7, 0, 2, 3, 1};
    uir_value_id row_signs = signs(w, values, 2, 2), column_signs = signs(w, values, 2, 0);
    uir_value_id rows = add_signed(w, tiles_of(w, false, false), row_signs, tiles_of(w, true, false)),
                 others = add_signed(w, tiles_of(w, false, true), row_signs, tiles_of(w, true, true));
    uir_value_id v = uir_build_transpose(w->b, add_signed(w, rows, column_signs, others), order);
    uir_dims *dims = w->module->dims;
    uir_dim tiles = uir_dim_mul(dims, w->batch, uir_dim_mul(dims, w->lines, w->columns));
    const uir_dim shape[] = {number(w, REACH * REACH), tiles, w->channels};
    return uir_build_reshape(w->b, v, shape, 3);
}

/* Of products [4, 4, N, lines, columns, OC] those of rows 0 and 3, 1, or 2, and of such columns. */
static uir_value_id products_of(const winograd *w, uir_value_id m, uint32_t row, uint32_t column) {
    const uint32_t at[] = {row, column};
    uir_dim starts[6], sizes[6];
    int64_t steps[6];
    for (uint32_t d = 0; d < 6; d++) {
        starts[d] = number(w, d < 2 ? at[d] : 0);
        sizes[d] = d < 2 ? number(w, at[d] ? 1 : 2) : uir_value_type(w->module, m)->dims[d];
        steps[d] = d < 2 && !at[d] ? REACH - 1 : 1;
    }
    return uir_build_slice(w->b, m, starts, sizes, steps);
}

static uir_value_id transform_products(const winograd *w, uir_value_id m) {
    static const float values[] = {1, -1};
    const int64_t order[] = {2, 5, 3, 0, 4, 1};
    const uir_dim cut[] = {number(w, REACH), number(w, REACH), w->batch, w->lines, w->columns, w->filters};
    uir_dims *dims = w->module->dims;
    uir_value_id row_signs = signs(w, values, 1, 5), column_signs = signs(w, values, 1, 4), parts[TAPS];
    m = uir_build_reshape(w->b, m, cut, 6);
    if (w->b->status != UIR_STATUS_OK) return m;
    for (uint32_t e = 0; e < TAPS; e++) {
        uir_value_id pair = add_signed(w, products_of(w, m, 1, e), row_signs, products_of(w, m, 2, e));
        parts[e] = uir_build_binary(w->b, UIR_OP_ADD, products_of(w, m, 0, e), pair);
    }
    uir_value_id y = uir_build_binary(w->b, UIR_OP_ADD, parts[0], add_signed(w, parts[1], column_signs, parts[2]));
    uir_dim two = number(w, TILE);
    const uir_dim shape[] = {w->batch, w->filters, uir_dim_mul(dims, w->lines, two),
                             uir_dim_mul(dims, w->columns, two)};
    y = uir_build_transpose(w->b, y, order);
    if (w->b->status == UIR_STATUS_OK) w->b->status = uir_lay_out_image(w->module, y);
    return uir_build_reshape(w->b, y, shape, 4);
}

static uir_dim tiles_along(const winograd *w, uir_dim extent) {
    return uir_dim_ceildiv(w->module->dims, extent, number(w, TILE));
}

static uir_value_id rewrite(void *user, uir_builder *b, const uir_node_info *node) {
    const uir_pass_context *context = user;
    winograd w = {
        .module = b->module, .b = b, .machine = context->machine, .precision = (uir_precision)context->precision};
    if (!is_for(&w, node)) return (uir_value_id){0};
    w.lines = tiles_along(&w, w.height);
    w.columns = tiles_along(&w, w.width);
    uir_value_id m = uir_build_matmul(b, transform_image(&w), transform_filters(&w), UIR_DTYPE_F32);
    uir_value_id y = transform_products(&w, m);
    if (b->status == UIR_STATUS_OK) b->status = uir_lay_out_image(w.module, y);
    const uir_dim starts[] = {number(&w, 0), number(&w, 0), number(&w, 0), number(&w, 0)};
    const uir_dim sizes[] = {w.batch, w.filters, w.height, w.width};
    const int64_t steps[] = {1, 1, 1, 1};
    uir_value_id result = uir_build_slice(b, y, starts, sizes, steps);
    if (b->status == UIR_STATUS_OK) b->status = uir_lay_out_image(w.module, result);
    return result;
}

uir_status uir_choose_winograd(uir_module *module, uir_pass_context *context) {
    uir_rewriter rewriter = {.rewrite = rewrite, .user = context};
    if (!context->machine || context->machine->mma_n < 2) return UIR_STATUS_OK;
    return uir_rewrite_nodes(module, context, &rewriter);
}
