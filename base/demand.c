#include "base/demand.h"

#include <stdio.h>
#include <string.h>

/* " (height floordiv 16)", or nothing where that is the number. */
static const char *in_parentheses(uir_demand_side side, char *buffer, size_t capacity) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)side.value);
    *buffer = 0;
    if (*side.dims && strcmp(side.dims, number) != 0 && strcmp(side.dims, side.name) != 0)
        snprintf(buffer, capacity, " (%.160s)", side.dims);
    return buffer;
}

void uir_demand_describe(uir_demand_side left, uir_relation relation, const int64_t *also, uir_demand_side right,
                         char *buffer, size_t capacity) {
    static const char *const words[] = {
        [UIR_RELATION_EQ] = "",         [UIR_RELATION_NE] = "other than ", [UIR_RELATION_LT] = "less than ",
        [UIR_RELATION_LE] = "at most ", [UIR_RELATION_GT] = "more than ",  [UIR_RELATION_GE] = "at least "};
    char of_left[180], of_right[180], other[40] = "";
    if (also) snprintf(other, sizeof other, "%lld or ", (long long)*also);
    snprintf(buffer, capacity, "%s is %lld%s and must be %s%s%lld%s%s%s", left.name, (long long)left.value,
             in_parentheses(left, of_left, sizeof of_left), words[relation], other, (long long)right.value,
             *right.name ? ", as " : "", right.name,
             *right.name ? in_parentheses(right, of_right, sizeof of_right) : "");
}
