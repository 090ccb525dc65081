/* How far two values agree. */
#include "api/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void differ(uir_comparison *result, const char *format, ...) UIR_PRINTF(2, 3);

static void differ(uir_comparison *result, const char *format, ...) {
    result->agree = false;
    if (result->text[0]) return; /* the first difference is told */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->text, sizeof result->text, format, arguments);
    va_end(arguments);
}

/* A number for a message, without the locale's decimal point. */
static void print_number(double number, char *buffer, size_t capacity) {
    snprintf(buffer, capacity, "%.9g", number);
    for (char *at = buffer; *at; at++) {
        if (*at == ',') *at = '.';
    }
}

static void count_difference(uir_comparison *result, uint64_t index, double actual, double expected) {
    if (result->differing++ == 0) {
        char a[40], e[40];
        result->first_index = index;
        print_number(actual, a, sizeof a);
        print_number(expected, e, sizeof e);
        differ(result, "element %llu is %s, expected %s", (unsigned long long)index, a, e);
    }
    result->agree = false;
}

static void measure(uir_comparison *result, double actual, double expected) {
    double distance = fabs(actual - expected);
    if (!isfinite(distance)) return;
    if (distance > result->max_abs) result->max_abs = distance;
    if (expected != 0 && distance / fabs(expected) > result->max_rel) result->max_rel = distance / fabs(expected);
}

/* The floats of a tensor: its elements, or of complex ones the two parts each. */
typedef struct floats {
    uir_dtype dtype;
    const void *data;
    uint64_t count;
} floats;

static floats floats_of(const uir_tensor *tensor) {
    floats view = {tensor->dtype, tensor->data, tensor->element_count};
    if (uir_dtype_get_class(tensor->dtype) == UIR_DTYPE_CLASS_COMPLEX) {
        view.dtype = uir_dtype_bits(tensor->dtype) == 64 ? UIR_DTYPE_F32 : UIR_DTYPE_F64;
        view.count *= 2;
    }
    return view;
}

static void compare_floats(uir_comparison *result, const uir_tensor *actual, const uir_tensor *expected,
                           uir_tolerance tolerance) {
    floats a = floats_of(actual), e = floats_of(expected);
    double largest = 0;
    for (uint64_t i = 0; tolerance.atol_relative_to_max > 0 && i < e.count; i++) {
        double magnitude = fabs(uir_dtype_load_double(e.dtype, e.data, i));
        if (isfinite(magnitude) && magnitude > largest) largest = magnitude;
    }
    double absolute = tolerance.atol + tolerance.atol_relative_to_max * largest;
    for (uint64_t i = 0; i < e.count; i++) {
        double got = uir_dtype_load_double(a.dtype, a.data, i), want = uir_dtype_load_double(e.dtype, e.data, i);
        if (got == want || (isnan(got) && isnan(want))) continue;
        measure(result, got, want);
        /* Not >: a NaN on one side differs. An infinite bound must not hide one. */
        bool close = isfinite(got) && isfinite(want) && fabs(got - want) <= absolute + tolerance.rtol * fabs(want);
        if (!close) count_difference(result, i, got, want);
    }
}

/* How far apart, without the rounding that doubles have beyond 53 bits. */
static double distance_of(uir_dtype dtype, int64_t a, int64_t b) {
    bool above = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_UNSIGNED ? (uint64_t)a > (uint64_t)b : a > b;
    return (double)(above ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
}

static void compare_integers(uir_comparison *result, const uir_tensor *actual, const uir_tensor *expected,
                             double tolerance) {
    for (uint64_t i = 0; i < expected->element_count; i++) {
        int64_t got = uir_dtype_load_integer(actual->dtype, actual->data, i);
        int64_t want = uir_dtype_load_integer(expected->dtype, expected->data, i);
        if (got == want) continue;
        double got_real = uir_dtype_load_double(actual->dtype, actual->data, i);
        double want_real = uir_dtype_load_double(expected->dtype, expected->data, i);
        measure(result, got_real, want_real);
        if (expected->dtype != UIR_DTYPE_BOOL && distance_of(expected->dtype, got, want) <= tolerance) continue;
        count_difference(result, i, got_real, want_real);
    }
}

static void compare_strings(uir_comparison *result, const uir_tensor *actual, const uir_tensor *expected) {
    const uir_string_view *a = actual->data, *e = expected->data;
    for (uint64_t i = 0; i < expected->element_count; i++) {
        if (a[i].length == e[i].length && (a[i].length == 0 || memcmp(a[i].text, e[i].text, a[i].length) == 0))
            continue;
        if (result->differing++ == 0) result->first_index = i;
        differ(result, "string %llu differs", (unsigned long long)i);
    }
}

static void compare_tensors(uir_comparison *result, const uir_tensor *actual, const uir_tensor *expected,
                            uir_tolerance tolerance) {
    bool same = actual->dtype == expected->dtype && actual->rank == expected->rank;
    for (uint32_t i = 0; same && i < actual->rank; i++) same = actual->shape[i] == expected->shape[i];
    if (!same) {
        char a[120], e[120];
        uir_tensor_describe(actual, a, sizeof a);
        uir_tensor_describe(expected, e, sizeof e);
        differ(result, "%s, expected %s", a, e);
        return;
    }
    switch (uir_dtype_get_class(expected->dtype)) {
    case UIR_DTYPE_CLASS_FLOAT:
    case UIR_DTYPE_CLASS_COMPLEX:
        compare_floats(result, actual, expected, tolerance);
        break;
    case UIR_DTYPE_CLASS_STRING:
        compare_strings(result, actual, expected);
        break;
    default:
        compare_integers(result, actual, expected, tolerance.integers);
        break;
    }
}

static const char *const kind_names[] = {
    [UIR_VALUE_TENSOR] = "a tensor", [UIR_VALUE_SEQUENCE] = "a sequence", [UIR_VALUE_OPTIONAL] = "an optional"};

static void compare(uir_comparison *result, const uir_datum *actual, const uir_datum *expected,
                    uir_tolerance tolerance) {
    if (actual->kind != expected->kind) {
        differ(result, "%s, expected %s", kind_names[actual->kind], kind_names[expected->kind]);
    } else if (actual->kind == UIR_VALUE_TENSOR) {
        compare_tensors(result, actual->tensor, expected->tensor, tolerance);
    } else if (actual->count != expected->count) {
        differ(result, "%u elements, expected %u", (unsigned)actual->count, (unsigned)expected->count);
    } else {
        for (uint32_t i = 0; i < actual->count; i++) {
            compare(result, actual->elements[i], expected->elements[i], tolerance);
        }
    }
}

uir_comparison uir_value_compare(const uir_value *actual, const uir_value *expected, uir_tolerance tolerance) {
    uir_comparison result = {.agree = true};
    compare(&result, actual->datum, expected->datum, tolerance);
    return result;
}
