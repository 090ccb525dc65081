/* Layouts: the address of each element of a tensor, as a value that graph, loop AST and iGraph share.
 *
 * Each dim has modes, innermost first: index i is i0 + size0*(i1 + size1*(...)), and the address gets the sum of ik *
 * stride_k, in elements. A dim of one mode is strided; a dim of several modes is split into blocks. A stride larger
 * than the extent of the modes inside it is padding. Any order of strides is a permutation. A tensor without a layout
 * is row-major.
 *
 * Text, behind the extents: `[M, N]:(strides)`, or `[M, N]:(sizes):(strides)` where some dim is split; a split dim's
 * modes stand in parentheses: `[K, N]:(K, (32, ceildiv(N, 32))):(32, (1, K*32))`. An address may be swizzled, so that
 * rows that begin in one bank of memory do not: behind it all, `xor (bits, base, shift)`. Then `bits` of the address
 * from bit `base` on are xored with those that lie `shift` higher, and storage is whole blocks of 2^(base + bits)
 * elements: `[64, 64]:(64, 1) xor (3, 3, 3)`. */
#ifndef UIR_IR_LAYOUT_H
#define UIR_IR_LAYOUT_H

#include "base/dims/dim.h"
#include "base/dtype.h"

#define UIR_LAYOUT_MAX_RANK  8
#define UIR_LAYOUT_MAX_MODES 4
enum { UIR_LAYOUT_MAX_SWIZZLE = 24 }; /* bits of an address that a swizzle knows */

typedef struct uir_mode {
    uir_dim size, stride;
} uir_mode;

typedef struct uir_swizzle {
    uint8_t bits, base, shift; /* 0 bits: none */
} uir_swizzle;

typedef struct uir_layout {
    bool given; /* else row-major, and the rest is what uir_layout_finish makes of it */
    bool split; /* some dim has several modes, and the text says their sizes */
    uir_mode modes[UIR_LAYOUT_MAX_RANK][UIR_LAYOUT_MAX_MODES];
    uint8_t mode_count[UIR_LAYOUT_MAX_RANK]; /* at least 1 */
    uir_swizzle swizzle;
} uir_layout;

/* Fills in the modes of one that is row-major; elements of storage: 1 + sum (size-1)*stride, of a swizzled one rounded
 * up to its blocks. NONE when an expression overflows or memory is exhausted. */
uir_dim uir_layout_finish(uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims);
/* One stride for each dim. */
void uir_layout_set_strides(uir_layout *layout, const uir_dim *extents, const uir_dim *strides, uint32_t rank);
/* The layout with each dim replaced by what `of` makes of it. */
typedef uir_dim (*uir_layout_dim_of)(void *user, uir_dim dim);
void uir_layout_copy(const uir_layout *layout, uint32_t rank, uir_layout_dim_of of, void *user, uir_layout *out_copy);
/* The dims of a tensor whose elements lie one after the other, slowest first; false: it is padded, split or swizzled.
 * NULL is row-major. Where a dim of one element stands makes no difference. */
bool uir_layout_find_order(const uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims,
                           uint32_t *out_order);
/* The layout of that order. */
void uir_layout_set_order(uir_layout *layout, const uir_dim *extents, const uint32_t *order, uint32_t rank,
                          uir_dims *dims);
bool uir_layout_is_same(const uir_layout *a, const uir_layout *b, uint32_t rank);

/* What a layout must be: sizes hold the extents, each element has a place of its own. NULL when
 * all of it is proved; else what is not, and of which dim (rank: of the whole). */
typedef bool uir_layout_prove(void *user, uir_dim left, uir_relation relation, uir_dim right);
const char *uir_layout_find_fault(const uir_layout *layout, const uir_dim *extents, uint32_t rank, uir_dims *dims,
                                  uir_layout_prove *prove, void *user, uint32_t *out_dim);
bool uir_layout_is_injective(const uir_layout *layout, uint32_t rank, uir_dims *dims, uir_layout_prove *prove,
                             void *user);

/* ---- at known sizes ---- */
typedef struct uir_bound_layout {
    uint32_t rank;
    int64_t extents[UIR_LAYOUT_MAX_RANK];
    int64_t sizes[UIR_LAYOUT_MAX_RANK][UIR_LAYOUT_MAX_MODES], strides[UIR_LAYOUT_MAX_RANK][UIR_LAYOUT_MAX_MODES];
    uint8_t mode_count[UIR_LAYOUT_MAX_RANK];
    uir_swizzle swizzle;
    int64_t elements, span; /* of the row-major tensor; of storage */
} uir_bound_layout;

/* As uir_dim_evaluate: INVALID_ARGUMENT when something has no value or overflows, or a mode has no size. */
uir_status uir_layout_bind(const uir_layout *layout, const uir_dim *extents, uint32_t rank, const uir_dims *dims,
                           const int64_t *values, const bool *bound, uint32_t count, uir_bound_layout *out_bound);
/* Where elements lie, the one rule: the sum of this over all dims, swizzled. */
static inline int64_t uir_layout_offset_along(const uir_bound_layout *l, uint32_t d, int64_t index) {
    int64_t offset = 0;
    for (uint32_t m = 0; m + 1 < l->mode_count[d]; m++) {
        offset += index % l->sizes[d][m] * l->strides[d][m];
        index /= l->sizes[d][m];
    }
    return offset + index * l->strides[d][l->mode_count[d] - 1]; /* the last mode takes what is left */
}
static inline int64_t uir_layout_swizzle(uir_swizzle s, int64_t offset) {
    int64_t mask = (((int64_t)1 << s.bits) - 1) << s.base;
    return offset ^ (offset >> s.shift & mask);
}
/* Copies a row-major tensor into the layout and back. What no element lies in is zeroed by pack. */
uir_status uir_layout_pack(const uir_bound_layout *layout, uir_dtype dtype, const uir_allocator *allocator,
                           const void *row_major, void *packed);
uir_status uir_layout_unpack(const uir_bound_layout *layout, uir_dtype dtype, const uir_allocator *allocator,
                             const void *packed, void *row_major);

/* ---- text ---- */
/* From the colon on; nothing of what is row-major. */
void uir_layout_print(const uir_layout *layout, uint32_t rank, const uir_dims *dims, uir_text *text);
/* At the place behind the extents; `dim` reads one expression. */
typedef uir_status (*uir_layout_read_dim)(void *user, uir_dim *out_dim);
uir_status uir_layout_parse(uir_tokenizer *tokens, uir_layout_read_dim dim, void *user, const uir_dim *extents,
                            uint32_t rank, uir_layout *out_layout);

#endif
