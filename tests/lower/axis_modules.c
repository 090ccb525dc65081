/* See axis_modules.h. A table of makers; what is elementwise comes from the table of primitives. */
#include "tests/lower/axis_modules.h"

enum { MAX_RANK = 4, EXTENTS = 5, OTHER = 3 };

typedef struct site {
    fixture *f;
    uir_value_id x, y; /* f32 or i32, of the dims */
    uir_dim dims[MAX_RANK];
    uint32_t rank, axis;
    int64_t extent; /* of the axis */
    uint32_t way;   /* which of several */
} site;

static uir_builder *b(site *s) {
    return &s->f->builder;
}
static uir_dim dim(site *s, int64_t value) {
    return number(s->f, value);
}

static uir_value_id build(site *s, uir_op op, const uir_value_id *inputs, uint32_t count,
                          const uir_attribute *attributes, uint32_t attribute_count) {
    uir_value_id results[2] = {{0}};
    uir_build_node(b(s), op, inputs, count, attributes, attribute_count, results,
                   (uint32_t)uir_op_get_row(op)->min_outputs);
    return results[0];
}

/* One operand, whose other is the same but for the axis. */
static uir_value_id along_one(site *s, uir_value_id a) {
    uir_dim starts[MAX_RANK], sizes[MAX_RANK];
    int64_t steps[MAX_RANK];
    for (uint32_t d = 0; d < s->rank; d++) {
        starts[d] = dim(s, 0);
        sizes[d] = d == s->axis ? dim(s, 1) : s->dims[d];
        steps[d] = 1;
    }
    return uir_build_slice(b(s), a, starts, sizes, steps);
}

static uir_value_id indices(site *s) {
    return uir_build_iota(b(s), UIR_DTYPE_I64, s->dims, s->rank, s->axis);
}

/* ---- makers ---- */
static uir_value_id make_reduce(site *s) {
    static const uir_op ops[] = {UIR_OP_REDUCE_SUM, UIR_OP_REDUCE_PROD, UIR_OP_REDUCE_MAX, UIR_OP_REDUCE_MIN};
    int64_t axis = s->axis;
    return uir_build_reduce(b(s), ops[s->way % 4], s->x, &axis, 1, s->way / 4 % 2);
}

static uir_value_id make_arg(site *s) {
    uir_attribute attributes[] = {uir_attribute_int(b(s), "axis", s->axis),
                                  uir_attribute_int(b(s), "keep", s->way / 2 % 2),
                                  uir_attribute_int(b(s), "last", s->way / 4 % 2)};
    return build(s, s->way % 2 ? UIR_OP_ARG_MAX : UIR_OP_ARG_MIN, &s->x, 1, attributes, 3);
}

static uir_value_id make_scan(site *s) {
    uir_attribute attributes[] = {uir_attribute_int(b(s), "axis", s->axis),
                                  uir_attribute_int(b(s), "exclusive", s->way / 2 % 2),
                                  uir_attribute_int(b(s), "reverse", s->way / 4 % 2)};
    return build(s, s->way % 2 ? UIR_OP_SCAN_PROD : UIR_OP_SCAN_SUM, &s->x, 1, attributes, 3);
}

static uir_value_id make_broadcast(site *s) {
    return uir_build_broadcast(b(s), along_one(s, s->x), s->dims, s->rank);
}

static uir_value_id make_reshape(site *s) {
    uir_dim dims[MAX_RANK + 1];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        if (d == s->axis && d && s->way % 2)
            dims[rank - 1] = uir_dim_mul(s->f->module->dims, dims[rank - 1], s->dims[d]);
        else
            dims[rank++] = s->dims[d];
        if (d == s->axis && !(s->way % 2)) dims[rank++] = dim(s, 1);
    }
    return uir_build_reshape(b(s), s->x, dims, rank);
}

static uir_value_id make_transpose(site *s) {
    int64_t perm[MAX_RANK];
    uint32_t n = 0;
    if (s->way % 2) perm[n++] = s->axis;
    for (uint32_t d = 0; d < s->rank; d++)
        if (d != s->axis) perm[n++] = d;
    if (!(s->way % 2)) perm[n++] = s->axis;
    return uir_build_transpose(b(s), s->x, perm);
}

static uir_value_id make_slice(site *s) {
    uir_dim starts[MAX_RANK], sizes[MAX_RANK];
    int64_t steps[MAX_RANK];
    uir_dims *dims = s->f->module->dims;
    for (uint32_t d = 0; d < s->rank; d++) starts[d] = dim(s, 0), sizes[d] = s->dims[d], steps[d] = 1;
    uir_dim whole = s->dims[s->axis];
    if (s->way % 4 == 0) { /* backwards */
        starts[s->axis] = uir_dim_sub(dims, whole, dim(s, 1));
        steps[s->axis] = -1;
    } else if (s->way % 4 == 1) { /* every second */
        sizes[s->axis] = uir_dim_ceildiv(dims, whole, dim(s, 2));
        steps[s->axis] = 2;
    } else { /* the first or the second half */
        sizes[s->axis] = uir_dim_ceildiv(dims, whole, dim(s, 2));
        if (s->way % 4 == 2) starts[s->axis] = uir_dim_sub(dims, whole, sizes[s->axis]);
    }
    return uir_build_slice(b(s), s->x, starts, sizes, steps);
}

static uir_value_id make_windows(site *s) {
    uir_dim starts[MAX_RANK], sizes[MAX_RANK];
    int64_t steps[MAX_RANK], axes[] = {s->axis, s->axis}, window[] = {2, 3};
    const int64_t dilations[] = {s->way % 3 - 1, 2};
    for (uint32_t d = 0; d < s->rank; d++) starts[d] = dim(s, 0), sizes[d] = s->dims[d], steps[d] = 1;
    starts[s->axis] = dim(s, s->way % 2 ? -1 : 2);
    steps[s->axis] = s->way % 2 + 1;
    return uir_build_windows(b(s), s->x, starts, sizes, steps, axes, window, dilations, s->way % 3 == 2 ? 1 : 2);
}

static uir_value_id make_pad(site *s) {
    uir_dim low[MAX_RANK], high[MAX_RANK];
    int64_t interior[MAX_RANK] = {0};
    for (uint32_t d = 0; d < s->rank; d++) low[d] = high[d] = dim(s, 0);
    low[s->axis] = dim(s, s->way % 3);
    high[s->axis] = dim(s, s->way / 3 % 2);
    interior[s->axis] = s->way / 4 % 2;
    uir_value_id zero = uir_build_integer_scalar(b(s), uir_value_type(s->f->module, s->x)->dtype, 2);
    return uir_build_pad(b(s), s->x, zero, low, high, interior);
}

static uir_value_id make_concat(site *s) {
    const uir_value_id parts[] = {s->x, s->way % 2 ? along_one(s, s->y) : s->y, s->x};
    return uir_build_concat(b(s), parts, 2 + s->way / 2 % 2, s->axis);
}

static uir_value_id make_gather(site *s) {
    uir_dim n[2] = {s->dims[s->axis], dim(s, 2)};
    bool square = s->way % 2;
    return uir_build_gather(b(s), s->x, uir_build_iota(b(s), UIR_DTYPE_I64, n, square ? 2 : 1, 0), s->axis);
}

static uir_value_id make_elements(site *s) {
    static const char *const reductions[] = {"none", "add", "mul", "min", "max"};
    uir_attribute axis = uir_attribute_int(b(s), "axis", s->axis);
    uir_value_id at = indices(s);
    if (s->way % 3 == 0) return build(s, UIR_OP_GATHER_ELEMENTS, (uir_value_id[]){s->x, at}, 2, &axis, 1);
    uir_attribute attributes[] = {axis, uir_attribute_string(b(s), "reduction", reductions[s->way % 5])};
    return build(s, UIR_OP_SCATTER_ELEMENTS, (uir_value_id[]){s->x, at, s->y}, 3, attributes, 2);
}

static uir_value_id make_iota(site *s) {
    uir_value_id at = uir_build_iota(b(s), uir_value_type(s->f->module, s->x)->dtype, s->dims, s->rank, s->axis);
    return uir_build_binary(b(s), UIR_OP_MUL, s->x, at);
}

static uir_value_id make_matmul(site *s) {
    int64_t perm[MAX_RANK];
    if (s->rank < 2 || s->axis + 2 < s->rank) return (uir_value_id){0};
    for (uint32_t d = 0; d < s->rank; d++) perm[d] = d;
    perm[s->rank - 1] = s->rank - 2;
    perm[s->rank - 2] = s->rank - 1;
    uir_value_id turned = uir_build_transpose(b(s), s->y, perm);
    uir_dtype to = uir_value_type(s->f->module, s->x)->dtype;
    return s->way % 2 ? uir_build_matmul(b(s), s->x, turned, to) : uir_build_matmul(b(s), turned, s->x, to);
}

static uir_value_id make_window(site *s) {
    int64_t strides[2] = {1, 1}, dilations[2] = {1, 1};
    uir_dim low[2], high[2], window[2];
    if (s->rank < 3 || s->axis < 2) return (uir_value_id){0};
    uint32_t spatial = s->rank - 2;
    for (uint32_t d = 0; d < spatial; d++) {
        bool here = d + 2 == s->axis;
        window[d] = dim(s, here ? 2 : 1);
        low[d] = dim(s, here ? s->way % 2 : 0);
        high[d] = dim(s, here ? 1 : 0);
        if (here) strides[d] = 1 + s->way / 2 % 2;
    }
    uir_attribute attributes[] = {
        uir_attribute_ints(b(s), "strides", strides, spatial),
        uir_attribute_ints(b(s), "dilations", dilations, spatial), uir_attribute_dims(b(s), "low", low, spatial),
        uir_attribute_dims(b(s), "high", high, spatial), uir_attribute_dims(b(s), "window", window, spatial)};
    return build(s, s->way / 4 % 2 ? UIR_OP_WINDOW_MAX : UIR_OP_WINDOW_SUM, &s->x, 1, attributes, 5);
}

static uir_value_id make_conv(site *s) {
    int64_t strides[2] = {1, 1}, dilations[2] = {1, 1}, kernel[MAX_RANK] = {2, OTHER, 1, 1};
    uir_dim low[2], high[2];
    if (s->rank < 3 || s->axis < 2) return (uir_value_id){0};
    uint32_t spatial = s->rank - 2;
    kernel[s->axis] = 2;
    for (uint32_t d = 0; d < spatial; d++) {
        low[d] = dim(s, d + 2 == s->axis ? s->way % 2 : 0);
        high[d] = dim(s, d + 2 == s->axis ? 1 : 0);
    }
    uir_dtype dtype = uir_value_type(s->f->module, s->x)->dtype;
    uir_dim dims[MAX_RANK];
    for (uint32_t d = 0; d < s->rank; d++) dims[d] = dim(s, kernel[d]);
    uir_value_id weights = add_input(s->f, "w", dtype, dims, s->rank);
    uir_attribute attributes[] = {uir_attribute_ints(b(s), "strides", strides, spatial),
                                  uir_attribute_ints(b(s), "dilations", dilations, spatial),
                                  uir_attribute_dims(b(s), "low", low, spatial),
                                  uir_attribute_dims(b(s), "high", high, spatial),
                                  uir_attribute_int(b(s), "groups", 1),
                                  uir_attribute_dtype(b(s), "to", dtype)};
    return build(s, UIR_OP_CONV, (uir_value_id[]){s->x, weights}, 2, attributes, 6);
}

static uir_value_id make_top_k(site *s) {
    uir_dim k = s->dims[s->axis];
    uir_attribute attributes[] = {uir_attribute_int(b(s), "axis", s->axis), uir_attribute_dims(b(s), "k", &k, 1),
                                  uir_attribute_int(b(s), "largest", s->way % 2), uir_attribute_int(b(s), "sorted", 1)};
    return build(s, UIR_OP_TOP_K, &s->x, 1, attributes, 4);
}

static uir_value_id make_select(site *s) {
    uir_value_id less = uir_build_binary(b(s), UIR_OP_LT, along_one(s, s->x), s->y);
    return uir_build_select(b(s), less, s->x, s->way % 2 ? along_one(s, s->y) : s->y);
}

static uir_value_id make_cast(site *s) {
    static const uir_dtype to[] = {UIR_DTYPE_I64,  UIR_DTYPE_U8,  UIR_DTYPE_F16,
                                   UIR_DTYPE_BOOL, UIR_DTYPE_F64, UIR_DTYPE_I8};
    return uir_build_cast(b(s), along_one(s, s->x), to[s->way % 6]);
}

/* Every operation on one or two tensors element by element, the second with one element along the axis. */
static uir_value_id make_elementwise(site *s, uir_op op) {
    const uir_op_row *row = uir_op_get_row(op);
    uir_dtype dtype = row->dtypes & UIR_DTYPES_FLOAT     ? UIR_DTYPE_F32
                      : row->dtypes & UIR_DTYPES_INTEGER ? UIR_DTYPE_I32
                                                         : UIR_DTYPE_BOOL;
    uir_value_id x = uir_build_cast(b(s), s->x, dtype), y = uir_build_cast(b(s), along_one(s, s->y), dtype);
    if (op == UIR_OP_IS_INF) {
        uir_attribute attributes[] = {uir_attribute_int(b(s), "positive", 1), uir_attribute_int(b(s), "negative", 0)};
        return build(s, op, &x, 1, attributes, 2);
    }
    return row->traits & UIR_TRAIT_UNARY ? uir_build_unary(b(s), op, x) : uir_build_binary(b(s), op, x, y);
}

typedef struct maker {
    const char *name;
    uir_value_id (*make)(site *s);
    uint32_t ways;
} maker;

static const maker makers[] = {
    {"reduce", make_reduce, 8},       {"arg", make_arg, 8},           {"scan", make_scan, 8},
    {"broadcast", make_broadcast, 1}, {"reshape", make_reshape, 2},   {"transpose", make_transpose, 2},
    {"slice", make_slice, 4},         {"pad", make_pad, 6},           {"concat", make_concat, 4},
    {"gather", make_gather, 2},       {"elements", make_elements, 6}, {"iota", make_iota, 1},
    {"matmul", make_matmul, 2},       {"window", make_window, 8},     {"conv", make_conv, 2},
    {"windows", make_windows, 6},     {"top_k", make_top_k, 2},       {"select", make_select, 2},
    {"cast", make_cast, 6},
};
enum { MAKERS = sizeof makers / sizeof *makers };

static bool is_elementwise(uint32_t op) {
    const uir_op_row *row = uir_op_get_row((uir_op)op);
    return row->section == UIR_SECTION_PRIMITIVE && (row->traits & (UIR_TRAIT_UNARY | UIR_TRAIT_BINARY)) &&
           op != UIR_OP_CAST && op != UIR_OP_BIT_CAST;
}

/* What there is, one after the other: makers in each of their ways, then operations. */
static uint32_t subject_count(void) {
    uint32_t count = 0;
    for (uint32_t m = 0; m < MAKERS; m++) count += makers[m].ways;
    for (uint32_t op = 1; op < UIR_OP_COUNT; op++) count += is_elementwise(op);
    return count;
}

enum { PLACES = 1 + 2 + 3 + 4 }; /* an axis of ranks 1 to 4 */

uint32_t axis_module_count(void) {
    return subject_count() * PLACES * EXTENTS;
}

static uir_value_id make_subject(site *s, uint32_t subject, char *out_name, size_t size) {
    for (uint32_t m = 0; m < MAKERS; m++) {
        if (subject >= makers[m].ways) {
            subject -= makers[m].ways;
            continue;
        }
        snprintf(out_name, size, "%s %u", makers[m].name, subject);
        s->way = subject;
        return makers[m].make(s);
    }
    for (uint32_t op = 1; op < UIR_OP_COUNT; op++) {
        if (!is_elementwise(op) || subject-- > 0) continue;
        snprintf(out_name, size, "%s", uir_op_name((uir_op)op));
        return make_elementwise(s, (uir_op)op);
    }
    return (uir_value_id){0};
}

bool axis_module_build(fixture *f, uint32_t number_of, int64_t *out_extent, char *out_name, size_t size) {
    char name[40] = "";
    site s = {.f = f, .extent = 1 + number_of % EXTENTS};
    uint32_t place = number_of / EXTENTS % PLACES, subject = number_of / EXTENTS / PLACES;
    for (s.rank = 1; place >= s.rank; s.rank++) place -= s.rank;
    s.axis = place;
    bool named = (subject + place + s.rank) % 2;
    uir_dtype dtype = (subject + s.rank) % 3 ? UIR_DTYPE_F32 : UIR_DTYPE_I32;
    for (uint32_t d = 0; d < s.rank; d++) s.dims[d] = dim(&s, d == s.axis ? s.extent : OTHER);
    if (named) s.dims[s.axis] = make_size(f, "N");
    s.x = add_input(f, "x", dtype, s.dims, s.rank);
    s.y = add_input(f, "y", dtype, s.dims, s.rank);
    uir_value_id result = make_subject(&s, subject, name, sizeof name);
    snprintf(out_name, size, "%s of rank %u along axis %u of %d%s", name, s.rank, s.axis, (int)s.extent,
             named ? ", a size" : "");
    *out_extent = s.extent;
    if (!result.id || f->builder.status != UIR_STATUS_OK) return false;
    add_output(f, result);
    return true;
}
