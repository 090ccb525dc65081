/* Where the tiles of a contraction and its packed constants lie. */
#ifndef UIR_LOWER_CONTRACTION_LAYOUT_H
#define UIR_LOWER_CONTRACTION_LAYOUT_H

#include "ir/loop/loop.h"

enum { UIR_CONTRACTION_PAD = 16 };
/* Panels of `width` columns, or of half as many where there are no more: in each, the dims that `block` sums over (by
 * how `access` reads the tensor), then its columns, one beside the other; all other dims outside. `group` neighbours
 * along the innermost of what is summed over, where its extent is a multiple, lie together in each column. */
void uir_contraction_make_panels(const uir_loop_function *f, uint32_t tensor, uint32_t width, uint32_t group,
                                 const uir_loop_access *access, uint32_t column, const uir_loop_statement *block,
                                 uir_layout *out_layout);
/* The last `inner` dims lie together, and what holds them a little further apart than it takes, so that they do not
 * meet in the same places of a cache. */
void uir_contraction_make_apart(const uir_loop_function *f, uint32_t tensor, uint32_t inner, uir_layout *out_layout);

#endif
