#include "base/dims/demand.h"

#include "base/tensor.h"

#include <stdio.h>
#include <string.h>

/* " (height floordiv 16)", or nothing where that is the number, or how several operands make one size. */
static const char *in_parentheses(uir_demand_side side, char *buffer, size_t capacity) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)side.value);
    *buffer = 0;
    bool joined = strstr(side.dims, "max(") || strstr(side.dims, "min(");
    if (*side.dims && !joined && strcmp(side.dims, number) != 0 && strcmp(side.dims, side.name) != 0)
        snprintf(buffer, capacity, " (%.160s)", side.dims);
    return buffer;
}

void uir_demand_describe(uir_demand_side left, uir_relation relation, const int64_t *also, uir_demand_side right,
                         char *buffer, size_t capacity) {
    static const char *const words[] = {
        [UIR_RELATION_EQ] = "",         [UIR_RELATION_NE] = "other than ", [UIR_RELATION_LT] = "less than ",
        [UIR_RELATION_LE] = "at most ", [UIR_RELATION_GT] = "more than ",  [UIR_RELATION_GE] = "at least "};
    char of_left[180], of_right[180];
    if (also)
        snprintf(buffer, capacity, "%lld by %lld at %s: %s%s must be %lld or %lld", (long long)left.value,
                 (long long)right.value, right.name, left.name, in_parentheses(left, of_left, sizeof of_left),
                 (long long)*also, (long long)right.value);
    else
        snprintf(buffer, capacity, "%s is %lld%s and must be %s%lld%s%s%s", left.name, (long long)left.value,
                 in_parentheses(left, of_left, sizeof of_left), words[relation], (long long)right.value,
                 *right.name ? ", as " : "", right.name,
                 *right.name ? in_parentheses(right, of_right, sizeof of_right) : "");
}

void uir_extent_describe(uint32_t d, const char *dim, int64_t extent, int64_t expected, char *buffer, size_t capacity) {
    char name[32];
    snprintf(name, sizeof name, "dim %u", d);
    uir_demand_describe((uir_demand_side){name, dim, extent}, UIR_RELATION_EQ, NULL,
                        (uir_demand_side){"", "", expected}, buffer, capacity);
}

/* ---- sizes ---- */
bool uir_facts_hold(uir_symbol_facts facts, int64_t value) {
    return value >= facts.min && value <= facts.max && (facts.multiple_of <= 1 || value % facts.multiple_of == 0);
}

void uir_facts_describe(const char *dim, uir_symbol_facts facts, int64_t value, char *buffer, size_t capacity) {
    char must[64];
    if (facts.min == facts.max)
        snprintf(must, sizeof must, "%lld", (long long)facts.min);
    else if (value >= facts.min && value <= facts.max)
        snprintf(must, sizeof must, "a multiple of %lld", (long long)facts.multiple_of);
    else if (facts.max == UIR_DIM_UNBOUNDED)
        snprintf(must, sizeof must, "at least %lld", (long long)facts.min);
    else
        snprintf(must, sizeof must, "in %lld..%lld", (long long)facts.min, (long long)facts.max);
    snprintf(buffer, capacity, "dim %s is %lld and must be %s", dim, (long long)value, must);
}

void uir_conflict_describe(const char *dim, int64_t one, int64_t other, char *buffer, size_t capacity) {
    snprintf(buffer, capacity, "dim %s is %lld in one place and %lld in another", dim, (long long)one,
             (long long)other);
}

/* ---- indices ---- */
/* Element k of every `step`. Without a branch for each, so that many are looked at in one instruction: as a rule all
 * are inside. */
static bool all_inside_i64(const int64_t *data, uint64_t count, uint64_t step, int64_t low, int64_t high) {
    int64_t outside = 0;
    if (step == 1)
        for (uint64_t i = 0; i < count; i++) outside |= (int64_t)(data[i] < low) | (int64_t)(data[i] >= high);
    else
        for (uint64_t i = 0; i < count; i += step) outside |= (int64_t)(data[i] < low) | (int64_t)(data[i] >= high);
    return !outside;
}

static bool all_inside_i32(const int32_t *data, uint64_t count, uint64_t step, int64_t low, int64_t high) {
    int32_t least = low < INT32_MIN ? INT32_MIN : (int32_t)low, outside = 0;
    int32_t greatest = high > INT32_MAX ? INT32_MAX : (int32_t)(high - 1);
    if (step == 1)
        for (uint64_t i = 0; i < count; i++) outside |= (int32_t)(data[i] < least) | (int32_t)(data[i] > greatest);
    else
        for (uint64_t i = 0; i < count; i += step)
            outside |= (int32_t)(data[i] < least) | (int32_t)(data[i] > greatest);
    return !outside;
}

/* False where they are not, or where that is not easily told. */
static bool are_plainly_inside(const uir_index_demand *d, uint64_t count) {
    for (uint32_t k = 0; k < d->bounds && k < count; k++) {
        int64_t low = d->low[k], high = d->high[k];
        if (low >= high || low > INT32_MAX || high <= INT32_MIN) return false;
        bool inside =
            d->dtype == UIR_DTYPE_I64   ? all_inside_i64((const int64_t *)d->data + k, count - k, d->bounds, low, high)
            : d->dtype == UIR_DTYPE_I32 ? all_inside_i32((const int32_t *)d->data + k, count - k, d->bounds, low, high)
                                        : false;
        if (!inside) return false;
    }
    return true;
}

bool uir_indices_hold(const uir_index_demand *d, uint64_t *out_at) {
    uint64_t count;
    *out_at = 0;
    if (!uir_shape_element_count(d->shape, d->rank, &count) || are_plainly_inside(d, count)) return true;
    for (uint64_t i = 0; i < count; i++) {
        int64_t index = uir_dtype_load_integer(d->dtype, d->data, i);
        if (index >= d->low[i % d->bounds] && index < d->high[i % d->bounds]) continue;
        *out_at = i;
        return false;
    }
    return true;
}

/* " at [0, 3]"; nothing for a scalar. */
static void describe_place(const uir_index_demand *d, uint64_t at, char *buffer, size_t capacity) {
    uint64_t inner = 1;
    size_t length = 0;
    *buffer = 0;
    for (uint32_t k = 0; k < d->rank; k++) inner *= (uint64_t)d->shape[k];
    for (uint32_t k = 0; k < d->rank && length < capacity; k++) {
        inner /= (uint64_t)d->shape[k];
        length +=
            (size_t)snprintf(buffer + length, capacity - length, "%s%llu%s", k ? ", " : " at [",
                             (unsigned long long)(at / inner % (uint64_t)d->shape[k]), k + 1 == d->rank ? "]" : "");
    }
}

void uir_index_describe(const uir_index_demand *d, uint64_t at, char *buffer, size_t capacity) {
    char place[400], name[200] = "an index", range[80] = "the axis has no elements";
    int64_t index = uir_dtype_load_integer(d->dtype, d->data, at), low = d->low[at % d->bounds],
            high = d->high[at % d->bounds];
    describe_place(d, at, place, sizeof place);
    if (*d->name) snprintf(name, sizeof name, "'%.160s'", d->name);
    if (low < high) snprintf(range, sizeof range, "must be in %lld..%lld", (long long)low, (long long)high - 1);
    snprintf(buffer, capacity, "%s %s %lld%s and %s", name, d->ends ? "reaches" : "is", (long long)index,
             d->ends ? "" : place, range);
}
