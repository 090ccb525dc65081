/* A stable sort of indices with a caller's order.
 *
 * In: indices, scratch of the same length, a comparison with a user pointer (which C's qsort lacks). Out: the indices
 * in order; n log n comparisons at worst, whatever the comparison says. */
#ifndef UIR_IR_SORT_H
#define UIR_IR_SORT_H

#include <stdint.h>

/* `compare` is negative when index a comes before b. */
void uir_sort(int64_t *indices, int64_t *scratch, int64_t count, int (*compare)(const void *user, int64_t a, int64_t b),
              const void *user);

#endif
