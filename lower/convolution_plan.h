/* Inside the tactic of convolutions: what is decided for one variant, and the steps that carry it out. */
#ifndef UIR_LOWER_CONVOLUTION_PLAN_H
#define UIR_LOWER_CONVOLUTION_PLAN_H

#include "lower/contraction_plan.h"

enum { UIR_CONVOLUTION_MAX_DEPTHS = 4 };

/* An axis that is tiled. */
typedef struct uir_convolution_span {
    uint32_t axis; /* NONE: there is none */
    uir_dim extent, tile;
    bool split, guarded;
    uir_dim outer, inner; /* loop variables of now */
    const char *loop, *local;
} uir_convolution_span;

/* How the image is read along a dim of the result: at place * stride + tap * dilation and a start. */
typedef struct uir_convolution_taps {
    uint32_t dim;  /* of the image's tensor; NONE: there is none */
    uint32_t axis; /* of the kernel's taps; NONE: one tap */
    int64_t count, stride, dilation;
} uir_convolution_taps;

typedef struct uir_convolution {
    uir_contraction_plan p;
    uir_loop_function *f;
    bool whole;                                              /* whole lines */
    bool by_taps;                                            /* a channel by itself: no product, tap after tap */
    uir_convolution_taps down, across;                       /* by taps: along the lines, along the pixels */
    uir_convolution_span channels, lines, pixels;            /* of the result */
    uir_convolution_span depths[UIR_CONVOLUTION_MAX_DEPTHS]; /* summed over, in the update's order; at most the first is
                                                                split */
    uint32_t depth_count;
    int64_t depth; /* elements of the kernel in a tile of channels of the image */
    bool copies_weights, lays_apart;
    uint32_t sums, columns, weights; /* tensors on chip; by taps `columns` are lines of the image */
} uir_convolution;

uir_dim uir_convolution_number(const uir_convolution *v, int64_t value);
uir_convolution_span *uir_convolution_span_of(uir_convolution *v, uint32_t axis);
/* The load in an expression of one operand after the other; NULL. */
const uir_loop_expression *uir_convolution_load_in(const uir_convolution *v, uint32_t expression);
/* Elements from the first to the last tap. */
int64_t uir_convolution_reach(const uir_convolution_taps *taps);

/* Tensors on chip, loops, blocks in their places (convolution_place.c). */
uir_status uir_convolution_place(uir_convolution *v);

#endif
