/* Layouts: where a tensor's elements lie, as a value that graph, loop AST and iGraph have in common.
 *
 * Each dim has modes, innermost first: index i is i0 + size0*(i1 + size1*(...)), and the address gets the sum of ik *
 * stride_k, in elements. A dim of one mode is strided; one of several is split into blocks; a stride that is larger
 * than what lies inside leaves room (padding); any order of strides is a permutation. Row-major is the layout of what
 * says none.
 *
 * Text, behind the extents: `[M, N]:(strides)`, or `[M, N]:(sizes):(strides)` where some dim is split; a split dim's
 * modes stand in parentheses: `[K, N]:(K, (32, ceildiv(N, 32))):(32, (1, K*32))`. */
#ifndef UIR_IR_LAYOUT_H
#define UIR_IR_LAYOUT_H

#include "base/dim.h"

#define UIR_LAYOUT_MAX_RANK  8
#define UIR_LAYOUT_MAX_MODES 4

typedef struct uir_mode {
    uir_dim size, stride;
} uir_mode;

typedef struct uir_layout {
    bool given; /* else row-major, and the rest is what uir_layout_finish makes of it */
    bool split; /* some dim has several modes, and the text says their sizes */
    uir_mode modes[UIR_LAYOUT_MAX_RANK][UIR_LAYOUT_MAX_MODES];
    uint8_t mode_count[UIR_LAYOUT_MAX_RANK]; /* at least 1 */
} uir_layout;

/* Fills in the modes of one that is row-major; elements of storage: 1 + sum (size-1)*stride. NONE when an expression
 * overflows or memory is exhausted. */
uir_dim uir_layout_finish(uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims);
/* One stride for each dim. */
void uir_layout_set_strides(uir_layout *layout, const uir_dim *extents, const uir_dim *strides, uint32_t rank);
/* The layout with each dim replaced by what `of` makes of it. */
typedef uir_dim (*uir_layout_dim_of)(void *user, uir_dim dim);
void uir_layout_copy(const uir_layout *layout, uint32_t rank, uir_layout_dim_of of, void *user, uir_layout *out_copy);

/* From the colon on; nothing of what is row-major. */
void uir_layout_print(const uir_layout *layout, uint32_t rank, const uir_dims *dims, uir_text *text);
/* At the place behind the extents; `dim` reads one expression. */
typedef uir_status (*uir_layout_read_dim)(void *user, uir_dim *out_dim);
uir_status uir_layout_parse(uir_tokenizer *tokens, uir_layout_read_dim dim, void *user, const uir_dim *extents,
                            uint32_t rank, uir_layout *out_layout);

#endif
