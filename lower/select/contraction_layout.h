/* Layouts of the tiles of a contraction and of its packed constants. */
#ifndef UIR_LOWER_CONTRACTION_LAYOUT_H
#define UIR_LOWER_CONTRACTION_LAYOUT_H

#include "ir/loop/loop.h"

enum { UIR_CONTRACTION_PAD = 16 };
/* Panels of `width` columns, or of half as many if all fit in that. In a panel the columns are contiguous, then come
 * the reduction axes of `block` (by how `access` reads the tensor); all other dims are outside. If the extent of the
 * innermost reduction axis is a multiple of `group`, each column has that many of its neighbours contiguous. */
void uir_contraction_make_panels(const uir_loop_function *f, uint32_t tensor, uint32_t width, uint32_t group,
                                 const uir_loop_access *access, uint32_t column, const uir_loop_statement *block,
                                 uir_layout *out_layout);
/* Row-major, with the last `inner` dims contiguous and a pad behind them, so that they do not conflict in a cache. */
void uir_contraction_make_apart(const uir_loop_function *f, uint32_t tensor, uint32_t inner, uir_layout *out_layout);

#endif
