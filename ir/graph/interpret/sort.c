/* Bottom-up merge sort. */
#include "ir/graph/interpret/sort.h"
#include <string.h>

enum { OFTEN = 4096 /* indices between looks at the budget */ };

uir_status uir_sort(int64_t *indices, int64_t *scratch, int64_t count,
                    int (*compare)(const void *user, int64_t a, int64_t b), const void *user, uir_budget *budget) {
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t start = 0; start < count; start += 2 * width) {
            int64_t middle = start + width < count ? start + width : count;
            int64_t end = middle + width < count ? middle + width : count;
            int64_t a = start, b = middle, to = start;
            while (a < middle && b < end) {
                if (to % OFTEN == 0 && uir_budget_is_over(budget)) return UIR_STATUS_CANCELLED;
                scratch[to++] = compare(user, indices[b], indices[a]) < 0 ? indices[b++] : indices[a++];
            }
            while (a < middle) scratch[to++] = indices[a++];
            while (b < end) scratch[to++] = indices[b++];
        }
        memcpy(indices, scratch, (size_t)count * sizeof *indices);
    }
    return UIR_STATUS_OK;
}
