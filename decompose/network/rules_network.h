/* Shared parts of the network rules (rules_network_*.c): short forms of the builder, and building blocks of several
 * ops.
 *
 * In: a builder or a rule's context. Out: values of the new module. All functions are sticky like the builder: after a
 * failure each call does nothing and returns NONE. A rule returns `context->builder.status` at its end. */
#ifndef UIR_DECOMPOSE_RULES_NETWORK_H
#define UIR_DECOMPOSE_RULES_NETWORK_H

#include "decompose/rules.h"

/* Most axes of a tensor, plus those that rules insert temporarily. */
#define UIR_NETWORK_AXES (UIR_MAX_RANK + 8)

typedef struct uir_shape {
    uint32_t rank;
    uir_dim dims[UIR_NETWORK_AXES];
} uir_shape;

/* ---- short forms ---- */
#define UIR_SHORT_UNARY(name, op)                                                                                      \
    static inline uir_value_id name(uir_builder *b, uir_value_id x) {                                                  \
        return uir_build_unary(b, UIR_OP_##op, x);                                                                     \
    }
#define UIR_SHORT_BINARY(name, op)                                                                                     \
    static inline uir_value_id name(uir_builder *b, uir_value_id x, uir_value_id y) {                                  \
        return uir_build_binary(b, UIR_OP_##op, x, y);                                                                 \
    }
UIR_SHORT_UNARY(negate, NEG)
UIR_SHORT_UNARY(absolute, ABS)
UIR_SHORT_UNARY(floor_of, FLOOR)
UIR_SHORT_UNARY(ceil_of, CEIL)
UIR_SHORT_UNARY(round_even, ROUND)
UIR_SHORT_UNARY(square_root, SQRT)
UIR_SHORT_UNARY(exponential, EXP)
UIR_SHORT_UNARY(logarithm, LOG)
UIR_SHORT_UNARY(sigmoid, SIGMOID)
UIR_SHORT_UNARY(tangent_hyperbolic, TANH)
UIR_SHORT_UNARY(sine, SIN)
UIR_SHORT_UNARY(cosine, COS)
UIR_SHORT_UNARY(negation, NOT)
UIR_SHORT_BINARY(add, ADD)
UIR_SHORT_BINARY(subtract, SUB)
UIR_SHORT_BINARY(multiply, MUL)
UIR_SHORT_BINARY(divide, DIV)
UIR_SHORT_BINARY(modulo, MOD)
UIR_SHORT_BINARY(power, POW)
UIR_SHORT_BINARY(minimum, MIN)
UIR_SHORT_BINARY(maximum, MAX)
UIR_SHORT_BINARY(both, AND)
UIR_SHORT_BINARY(either, OR)
UIR_SHORT_BINARY(equal, EQ)
UIR_SHORT_BINARY(different, NE)
UIR_SHORT_BINARY(less, LT)
UIR_SHORT_BINARY(less_equal, LE)
UIR_SHORT_BINARY(greater, GT)
UIR_SHORT_BINARY(greater_equal, GE)
#undef UIR_SHORT_UNARY
#undef UIR_SHORT_BINARY

static inline bool is_none(uir_value_id v) {
    return v.id == 0;
}
/* NONE for the value NONE. */
static inline uir_dtype dtype_of(const uir_builder *b, uir_value_id v) {
    return is_none(v) ? UIR_DTYPE_NONE : uir_value_type(b->module, v)->dtype;
}
/* Casts x to a dtype; NONE for the value NONE. */
static inline uir_value_id cast_present(uir_builder *b, uir_value_id x, uir_dtype to) {
    return is_none(x) ? x : uir_build_cast(b, x, to);
}
static inline uint32_t rank_of(const uir_builder *b, uir_value_id v) {
    return is_none(v) ? 0 : uir_value_type(b->module, v)->rank;
}
/* A rank-0 constant of x's dtype. */
static inline uir_value_id scalar_like(uir_builder *b, uir_value_id x, double value) {
    return uir_build_scalar(b, dtype_of(b, x), value);
}
static inline uir_value_id add_scalar(uir_builder *b, uir_value_id x, double value) {
    return add(b, x, scalar_like(b, x, value));
}
static inline uir_value_id multiply_scalar(uir_builder *b, uir_value_id x, double value) {
    return multiply(b, x, scalar_like(b, x, value));
}
static inline uir_value_id divide_scalar(uir_builder *b, uir_value_id x, double value) {
    return divide(b, x, scalar_like(b, x, value));
}
static inline uir_value_id square(uir_builder *b, uir_value_id x) {
    return multiply(b, x, x);
}
static inline uir_value_id reduce_sum(uir_builder *b, uir_value_id x, const int64_t *axes, uint32_t count) {
    return uir_build_reduce(b, UIR_OP_REDUCE_SUM, x, axes, count, true);
}
static inline uir_value_id reduce_max(uir_builder *b, uir_value_id x, const int64_t *axes, uint32_t count) {
    return uir_build_reduce(b, UIR_OP_REDUCE_MAX, x, axes, count, true);
}
static inline uir_dim dim_int(const uir_builder *b, int64_t value) {
    return uir_dim_const(b->module->dims, value);
}
static inline uir_dim dim_add(const uir_builder *b, uir_dim x, uir_dim y) {
    return uir_dim_add(b->module->dims, x, y);
}
static inline uir_dim dim_sub(const uir_builder *b, uir_dim x, uir_dim y) {
    return uir_dim_sub(b->module->dims, x, y);
}
static inline uir_dim dim_mul(const uir_builder *b, uir_dim x, uir_dim y) {
    return uir_dim_mul(b->module->dims, x, y);
}
static inline uir_dim dim_plus(const uir_builder *b, uir_dim x, int64_t y) {
    return dim_add(b, x, dim_int(b, y));
}
static inline uir_dim dim_times(const uir_builder *b, uir_dim x, int64_t y) {
    return dim_mul(b, x, dim_int(b, y));
}
static inline uir_dim dim_over(const uir_builder *b, uir_dim x, int64_t y) {
    return uir_dim_floordiv(b->module->dims, x, dim_int(b, y));
}

/* ---- types and shapes ---- */
/* The dtype of composite arithmetic: f32 for floats narrower than that, else the dtype itself. */
uir_dtype uir_network_working_dtype(uir_dtype dtype);
/* The value cast to its working dtype. */
uir_value_id uir_network_widen(uir_builder *b, uir_value_id x);
/* The shape of a value of known rank; else fails the builder (and returns rank 0). */
uir_shape uir_network_shape(uir_rule_context *context, uir_value_id value);
/* The same; also fails, with a message that names the input, unless minimum <= rank <= maximum. */
uir_shape uir_network_shape_between(uir_rule_context *context, uir_value_id value, const char *name, uint32_t minimum,
                                    uint32_t maximum);
/* Fails if two extents that must be equal are known to differ; the texts name them: "A's columns". */
bool uir_network_same_extent(uir_rule_context *context, uir_dim a, const char *a_text, uir_dim b, const char *b_text);
uir_value_id uir_network_reshape(uir_builder *b, uir_value_id x, const uir_shape *shape);
uir_value_id uir_network_broadcast(uir_builder *b, uir_value_id x, const uir_shape *shape);
/* `value` broadcast to a shape. */
uir_value_id uir_network_full(uir_builder *b, uir_dtype dtype, double value, const uir_shape *shape);
/* Product of dims [first, last). */
uir_dim uir_network_dim_product(const uir_builder *b, const uir_shape *shape, uint32_t first, uint32_t last);
/* A rank-0 value of any numeric dtype that holds a dim. */
uir_value_id uir_network_dim_value(uir_builder *b, uir_dim dim, uir_dtype dtype);

/* ---- movement ---- */
/* A vector reshaped to extend along `axis` of a rank-`rank` tensor: extent-1 axes follow. A rank-0 value is returned
 * unchanged. */
uir_value_id uir_network_along(uir_builder *b, uir_value_id vector, uint32_t axis, uint32_t rank);
/* Slices one axis to start .. start + size*step. */
uir_value_id uir_network_slice(uir_builder *b, uir_value_id x, uint32_t axis, uir_dim start, uir_dim size,
                               int64_t step);
uir_value_id uir_network_flip(uir_builder *b, uir_value_id x, uint32_t axis);
uir_value_id uir_network_swap(uir_builder *b, uir_value_id x, uint32_t axis, uint32_t other);
/* Moves axis `from` to position `to`; the others keep their order. */
uir_value_id uir_network_move_axis(uir_builder *b, uir_value_id x, uint32_t from, uint32_t to);
/* Repeats each element `times` times along an axis (numpy.repeat). */
uir_value_id uir_network_repeat(uir_rule_context *context, uir_value_id x, uint32_t axis, uir_dim times);
/* Reshapes a value of one element to rank 0; fails with a message that names the input if its rank is above 1. */
uir_value_id uir_network_as_scalar(uir_rule_context *context, uir_value_id value, const char *name);
/* 0, 1, .. extent-1. */
uir_value_id uir_network_range(uir_builder *b, uir_dtype dtype, uir_dim extent);

/* ---- arithmetic ---- */
/* Mean over axes, kept with extent 1; NaN over no elements. */
uir_value_id uir_network_mean(uir_rule_context *context, uir_value_id x, const int64_t *axes, uint32_t count);
/* The mean, the differences from the mean, and the variance: their mean square, by the two-pass method, never below
 * 0. */
void uir_network_moments(uir_rule_context *context, uir_value_id x, const int64_t *axes, uint32_t count,
                         uir_value_id *out_difference, uir_value_id *out_mean, uir_value_id *out_variance);
uir_value_id uir_network_softmax(uir_builder *b, uir_value_id x, const int64_t *axes, uint32_t count);
uir_value_id uir_network_log_softmax(uir_builder *b, uir_value_id x, const int64_t *axes, uint32_t count);
/* 1 / x. */
uir_value_id uir_network_reciprocal(uir_builder *b, uir_value_id x);
uir_value_id uir_network_clamp(uir_builder *b, uir_value_id x, double low, double high);

/* ---- constants and attributes ---- */
/* Whether the value is a constant of zeros. */
bool uir_network_is_zero(uir_rule_context *context, uir_value_id value);
/* Element `index` of a constant; false if the value is not constant. */
bool uir_network_constant_number(uir_rule_context *context, uir_value_id value, uint64_t index, double *out_value);
/* The attribute as a dtype; `fallback` if absent; fails if unknown to ONNX. */
uir_dtype uir_network_dtype_attribute(uir_rule_context *context, const char *name, uir_dtype fallback);
/* Element `index` of a string or float list; NULL / false if the list is shorter. */
const char *uir_network_string_at(const uir_rule_context *context, const char *name, uint32_t index);
bool uir_network_float_at(const uir_rule_context *context, const char *name, uint32_t index, double *out_value);
/* Fails unless the string is one of the NULL-terminated choices; returns its index, 0 after a failure. */
uint32_t uir_network_choice(uir_rule_context *context, const char *name, const char *fallback,
                            const char *const *choices);
/* A rank 0 or 1 integer input of `count` elements as dims; NULL after a failure. */
const uir_dim *uir_network_input_dims(uir_rule_context *context, uir_value_id value, const char *name, uint32_t count);

/* ---- windows of convolutions and pools ---- */
typedef struct uir_window {
    uint32_t rank;                /* spatial axes */
    uir_dim kernel[UIR_MAX_RANK]; /* extents of the window */
    uir_dim span[UIR_MAX_RANK];   /* with dilation: (kernel - 1) * dilation + 1 */
    int64_t strides[UIR_MAX_RANK];
    int64_t dilations[UIR_MAX_RANK];
    uir_dim low[UIR_MAX_RANK]; /* padding by pads or auto_pad */
    uir_dim high[UIR_MAX_RANK];
    uir_dim ceil_high[UIR_MAX_RANK]; /* high, plus the elements that ceil_mode reads beyond it; determines `out` */
    uir_dim out[UIR_MAX_RANK];       /* positions */
} uir_window;

/* Reads kernel_shape (absent: `kernel`), strides, dilations, pads, auto_pad and ceil_mode for an input [N, C,
 * spatial..], and checks lengths and signs. `kernel` may be NULL (then kernel_shape is required). False after a
 * failure. */
bool uir_network_window(uir_rule_context *context, const uir_shape *input, const uir_dim *kernel,
                        uir_window *out_window);
/* Reads strides, dilations or another list of `count` integers >= minimum; all are `fallback` if the attribute is
 * absent. False after a failure. */
bool uir_network_int_list(uir_rule_context *context, const char *name, uint32_t count, int64_t minimum,
                          int64_t fallback, int64_t *out_values);
uir_value_id uir_network_conv_node(uir_builder *b, uir_value_id x, uir_value_id w, int64_t groups,
                                   const uir_window *window, const uir_dim *low, const uir_dim *high, uir_dtype to);
/* Coordinates that windows read on one axis: i64 [out, kernel], o*stride + k*dilation - low. */
uir_value_id uir_network_window_coordinates(uir_builder *b, const uir_window *window, uint32_t axis);
/* A window reduction; `high` is ceil_high for ceil_mode. */
uir_value_id uir_network_window_node(uir_builder *b, uir_op op, uir_value_id x, const uir_window *window,
                                     const uir_dim *low, const uir_dim *high);

/* ---- products and quantisation ---- */
/* numpy's matmul of any ranks >= 1, result dtype `to`. */
uir_value_id uir_network_matmul(uir_rule_context *context, uir_value_id a, uir_value_id b, uir_dtype to);
/* Quantises a real value already divided by its scale: rounds to even, adds the zero point (NONE: 0), saturates. */
uir_value_id uir_network_quantize(uir_builder *b, uir_value_id scaled, uir_value_id zero_point, uir_dtype to,
                                  bool saturate);
/* Quantises to u8. The scale covers the least range that contains all values and 0; it is 1 if all values are 0. Scale
 * and zero point have rank 0. */
uir_value_id uir_network_quantize_dynamically(uir_builder *b, uir_value_id x, uir_value_id *out_scale,
                                              uir_value_id *out_zero);
/* Weights [K, N] of 8 bits, quantised per tensor or per column, prepared for a product. */
typedef struct uir_integer_weights {
    uir_value_id weights;
    uir_value_id scale; /* f32, rank 0 or [N] */
    uir_value_id zero;  /* i32, rank 0 or [N]; NONE: 0 */
    uir_value_id sums;  /* i32 [1, N]: sum of each column */
} uir_integer_weights;
uir_integer_weights uir_network_integer_weights(uir_rule_context *context, uir_value_id weights, uir_value_id scale,
                                                uir_value_id zero);
/* Product, in integers, of the weights and x [.., K] of floats, which is quantised dynamically: f32 [.., N]. Built by
 * `b`. */
uir_value_id uir_network_dynamic_product(uir_builder *b, uir_value_id x, const uir_integer_weights *weights);

/* ---- sampling ---- */

/* Samples images at computed coordinates: x [N, C, spatial..] as rows of channels. */
typedef struct uir_sampler {
    uir_rule_context *context;
    uir_value_id rows;  /* [N * pixels, C] */
    uir_value_id batch; /* i64 [M]: image of each line of coordinates; M = N and 0, 1, .. unless replaced */
    uir_shape shape;    /* of x */
    uint32_t axes;      /* number of spatial axes */
} uir_sampler;
/* The i64 index of a real coordinate without a fraction, clamped to 0 .. extent-1. */
uir_value_id uir_network_inside_index(uir_builder *b, uir_value_id whole, uir_dim extent);
uir_sampler uir_network_sampler(uir_rule_context *context, uir_value_id x);
/* Gathers pixels [M, P, C] at i64 indices [M, P] per spatial axis, all in range. */
uir_value_id uir_network_sampler_take(uir_sampler *sampler, const uir_value_id *indices);
/* Linear interpolation [M, P, C] at real coordinates [M, P] per spatial axis; pixels outside are 0. */
uir_value_id uir_network_sampler_linear(uir_sampler *sampler, const uir_value_id *coordinates);

/* ---- loop bodies ---- */
/* Adds a graph inside the builder's graph, and initialises a builder for it; false after a failure. */
bool uir_network_body(uir_builder *b, const char *name, uir_builder *out_body);
void uir_network_body_output(uir_builder *body, uir_value_id value);
/* A loop of `trips` iterations without an exit condition. The body has the inputs iteration (i64), condition (bool) and
 * carried... The caller adds no output: uir_network_loop_begin passes the condition through, uir_network_loop_end adds
 * carried... and scanned... */
typedef struct uir_loop {
    uir_builder body;
    uir_value_id iteration;
    uir_value_id carried[8];
    uint32_t carried_count;
} uir_loop;
/* Begins a body. `initial` are values of the outer graph; they determine the types of the carried values. False after a
 * failure. */
bool uir_network_loop_begin(uir_builder *b, const uir_value_id *initial, uint32_t count, uir_loop *out_loop);
/* Ends the body. `next` has carried_count values; `scanned` are stacked along a new axis 0. Outputs of the loop:
 * carried..., scanned... */
void uir_network_loop_end(uir_builder *b, uir_loop *loop, uir_dim trips, const uir_value_id *initial,
                          const uir_value_id *next, const uir_value_id *scanned, uint32_t scanned_count,
                          uir_value_id *out_outputs);

#endif
