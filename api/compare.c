/* How far two values agree. */
#include "api/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is nobody's to state: see the header. The epsilon is the distance from 1 to the next number. */
typedef struct tolerance_row {
    double rtol, relative;
} tolerance_row;
static const tolerance_row tolerance_rows[UIR_DTYPE_COUNT] = {
    [UIR_DTYPE_F32] = {1e-3, 1e-4},
    [UIR_DTYPE_C64] = {1e-3, 1e-4},
    [UIR_DTYPE_F64] = {0x1p-26, 0x1p-26},
    [UIR_DTYPE_C128] = {0x1p-26, 0x1p-26},
    [UIR_DTYPE_F16] = {4 * 0x1p-10, 4 * 0x1p-10},
    [UIR_DTYPE_BF16] = {4 * 0x1p-7, 4 * 0x1p-7},
    [UIR_DTYPE_F8E4M3FN] = {0x1p-3, 0},
    [UIR_DTYPE_F8E4M3FNUZ] = {0x1p-3, 0},
    [UIR_DTYPE_F8E5M2] = {0x1p-2, 0},
    [UIR_DTYPE_F8E5M2FNUZ] = {0x1p-2, 0},
    [UIR_DTYPE_F4E2M1] = {0x1p-1, 0},
    [UIR_DTYPE_F8E8M0] = {1, 0},
};

static uir_tolerance tolerance_of(uir_dtype dtype) {
    static const tolerance_row none;
    const tolerance_row *row = (unsigned)dtype < UIR_DTYPE_COUNT ? &tolerance_rows[dtype] : &none;
    return (uir_tolerance){.rtol = row->rtol, .atol_relative_to_max = row->relative};
}

uir_status uir_dtype_get_tolerance(uir_dtype dtype, uir_tolerance *out_tolerance) {
    uir_tolerance tolerance = tolerance_of(dtype);
    return UIR_STRUCT_GIVE(NULL, uir_tolerance, &tolerance, out_tolerance);
}

/* A comparison as it goes on; products in more range than any element's. */
typedef struct comparing {
    uir_comparison *result;
    uir_tolerance tolerance;
    bool measured; /* any pair was */
    long double product, actual_square, expected_square;
} comparing;

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

static void measure(comparing *c, double actual, double expected) {
    uir_comparison *result = c->result;
    if (!isfinite(actual) || !isfinite(expected)) return;
    double distance = fabs(actual - expected);
    c->measured = true;
    c->product += (long double)actual * expected;
    c->actual_square += (long double)actual * actual;
    c->expected_square += (long double)expected * expected;
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

static double greatest_magnitude(const floats *view) {
    double largest = 0;
    for (uint64_t i = 0; i < view->count; i++) {
        double magnitude = fabs(uir_dtype_load_double(view->dtype, view->data, i));
        if (isfinite(magnitude) && magnitude > largest) largest = magnitude;
    }
    return largest;
}

static void compare_floats(comparing *c, const uir_tensor *actual, const uir_tensor *expected) {
    uir_comparison *result = c->result;
    floats a = floats_of(actual), e = floats_of(expected);
    uir_tolerance own = tolerance_of(expected->dtype);
    double relative =
        c->tolerance.atol_relative_to_max < 0 ? own.atol_relative_to_max : c->tolerance.atol_relative_to_max;
    result->rtol = c->tolerance.rtol < 0 ? own.rtol : c->tolerance.rtol;
    result->atol = c->tolerance.atol + (relative > 0 ? relative * greatest_magnitude(&e) : 0);
    result->count += e.count;
    for (uint64_t i = 0; i < e.count; i++) {
        double got = uir_dtype_load_double(a.dtype, a.data, i), want = uir_dtype_load_double(e.dtype, e.data, i);
        measure(c, got, want);
        if (got == want || (isnan(got) && isnan(want))) continue;
        /* Not >: a NaN on one side differs. An infinite bound must not hide one. */
        bool close = isfinite(got) && isfinite(want) && fabs(got - want) <= result->atol + result->rtol * fabs(want);
        if (!close) count_difference(result, i, got, want);
    }
}

/* How far apart, without the rounding that doubles have beyond 53 bits. */
static double distance_of(uir_dtype dtype, int64_t a, int64_t b) {
    bool above = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_UNSIGNED ? (uint64_t)a > (uint64_t)b : a > b;
    return (double)(above ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
}

static void compare_integers(comparing *c, const uir_tensor *actual, const uir_tensor *expected) {
    c->result->count += expected->element_count;
    for (uint64_t i = 0; i < expected->element_count; i++) {
        int64_t got = uir_dtype_load_integer(actual->dtype, actual->data, i);
        int64_t want = uir_dtype_load_integer(expected->dtype, expected->data, i);
        double got_real = uir_dtype_load_double(actual->dtype, actual->data, i);
        double want_real = uir_dtype_load_double(expected->dtype, expected->data, i);
        measure(c, got_real, want_real);
        if (got == want) continue;
        if (expected->dtype != UIR_DTYPE_BOOL && distance_of(expected->dtype, got, want) <= c->tolerance.integers)
            continue;
        count_difference(c->result, i, got_real, want_real);
    }
}

static void compare_strings(uir_comparison *result, const uir_tensor *actual, const uir_tensor *expected) {
    const uir_string_view *a = actual->data, *e = expected->data;
    result->count += expected->element_count;
    for (uint64_t i = 0; i < expected->element_count; i++) {
        if (a[i].length == e[i].length && (a[i].length == 0 || memcmp(a[i].text, e[i].text, a[i].length) == 0))
            continue;
        if (result->differing++ == 0) result->first_index = i;
        differ(result, "string %llu differs", (unsigned long long)i);
    }
}

static void compare_tensors(comparing *c, const uir_tensor *actual, const uir_tensor *expected) {
    bool same = actual->dtype == expected->dtype && actual->rank == expected->rank;
    for (uint32_t i = 0; same && i < actual->rank; i++) same = actual->shape[i] == expected->shape[i];
    if (!same) {
        char a[120], e[120];
        uir_tensor_describe(actual, a, sizeof a);
        uir_tensor_describe(expected, e, sizeof e);
        differ(c->result, "%s, expected %s", a, e);
        return;
    }
    switch (uir_dtype_get_class(expected->dtype)) {
    case UIR_DTYPE_CLASS_FLOAT:
    case UIR_DTYPE_CLASS_COMPLEX:
        compare_floats(c, actual, expected);
        break;
    case UIR_DTYPE_CLASS_STRING:
        compare_strings(c->result, actual, expected);
        break;
    default:
        compare_integers(c, actual, expected);
        break;
    }
}

static const char *const kind_names[] = {
    [UIR_VALUE_TENSOR] = "a tensor", [UIR_VALUE_SEQUENCE] = "a sequence", [UIR_VALUE_OPTIONAL] = "an optional"};

static void compare(comparing *c, const uir_datum *actual, const uir_datum *expected) {
    uir_comparison *result = c->result;
    if (actual->kind != expected->kind) {
        differ(result, "%s, expected %s", kind_names[actual->kind], kind_names[expected->kind]);
    } else if (actual->kind == UIR_VALUE_TENSOR) {
        compare_tensors(c, actual->tensor, expected->tensor);
    } else if (actual->count != expected->count) {
        differ(result, "%u elements, expected %u", (unsigned)actual->count, (unsigned)expected->count);
    } else {
        for (uint32_t i = 0; i < actual->count; i++) {
            compare(c, actual->elements[i], expected->elements[i]);
        }
    }
}

/* Two that are all zeros point the same way; one that is does not point where the other does. */
static double cosine_of(const comparing *c) {
    if (!c->measured) return NAN;
    if (c->actual_square == 0 || c->expected_square == 0) return c->actual_square == c->expected_square;
    long double cosine = c->product / sqrtl(c->actual_square) / sqrtl(c->expected_square);
    return (double)(cosine > 1 ? 1 : cosine < -1 ? -1 : cosine);
}

uir_status uir_value_compare(const uir_value *actual, const uir_value *expected, const uir_tolerance *tolerance,
                             uir_comparison *out_comparison) {
    uir_call call;
    uir_tolerance taken;
    uir_comparison result = {.agree = true, .cosine = NAN};
    uir_call_begin(&call, actual->context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_tolerance, tolerance, &taken);
    if (status == UIR_STATUS_OK) status = uir_value_check_on_host(&call, actual, "the value to compare");
    if (status == UIR_STATUS_OK) status = uir_value_check_on_host(&call, expected, "the expected value");
    if (status == UIR_STATUS_OK) {
        if (!tolerance) taken.rtol = taken.atol_relative_to_max = -1;
        comparing c = {.result = &result, .tolerance = taken};
        compare(&c, actual->datum, expected->datum);
        result.cosine = cosine_of(&c);
        status = UIR_STRUCT_GIVE(&call.diagnostics, uir_comparison, &result, out_comparison);
    }
    return uir_call_end(&call, status, "comparing values");
}
