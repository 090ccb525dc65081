/* A stable merge sort of indices by a caller's order.
 *
 * In: indices, scratch of the same length, a comparison with a user pointer (which C's qsort lacks). Out: the sorted
 * indices; at most n log n comparisons, even if the comparison is inconsistent. CANCELLED, with the indices in any
 * order, once the budget (which may be NULL) is over. */
#ifndef UIR_IR_SORT_H
#define UIR_IR_SORT_H

#include "base/budget.h"

/* `compare` is negative if index a is before b. */
uir_status uir_sort(int64_t *indices, int64_t *scratch, int64_t count,
                    int (*compare)(const void *user, int64_t a, int64_t b), const void *user, uir_budget *budget);

#endif
