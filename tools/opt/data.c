/* Data of runs: files by name or by a folder's numbers, results shown, saved and compared with what is expected. */
#define _POSIX_C_SOURCE 200809L
#include "opt.h"
#include "tools/run/printable.h"
#include "tools/run/query.h"
#include "tools/run/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uir_status opt_create_context(const opt_options *options, uir_context **out_context) {
    UIR_TRY(uir_context_create(NULL, out_context));
    return uir_context_set_value_limits(*out_context, &options->limits);
}

void opt_report_context(uir_context *context) {
    for (size_t i = 0; i < uir_context_message_count(context); i++)
        opt_report_text(uir_context_get_message_text(context, i));
    uir_context_clear_messages(context);
}

bool opt_find_file(const char *folder, const char *word, uint32_t index, char *out_path, size_t capacity) {
    static const char *const endings[] = {"pb", "npy"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(out_path, capacity, "%s/%s_%u.%s", folder, word, index, endings[i]);
        if (access(out_path, F_OK) == 0) return true;
    }
    return false;
}

const char *opt_given_file(const opt_options *options, const char *name) {
    for (size_t i = 0; i < options->inputs.count; i++) {
        const char *text = options->inputs.items[i];
        size_t length = strlen(name);
        if (!strncmp(text, name, length) && text[length] == '=') return text + length + 1;
    }
    return NULL;
}

/* Of a tensor; what it holds is borrowed. */
static uir_status to_value(uir_context *context, const uir_tensor *t, uir_value **out_value) {
    if (t->dtype != UIR_DTYPE_STRING)
        return uir_value_create_tensor_borrowed(context, t->dtype, t->rank, t->shape, t->data, t->byte_size, out_value);
    UIR_TRY(uir_value_create_tensor(context, t->dtype, t->rank, t->shape, out_value));
    const uir_string_view *views = t->data;
    for (uint64_t i = 0; i < t->element_count; i++)
        UIR_TRY(uir_value_set_string(*out_value, i, views[i].text, views[i].length));
    return UIR_STATUS_OK;
}

void opt_show_tensor(const char *name, const uir_tensor *t) {
    double least = INFINITY, greatest = -INFINITY, mean = 0;
    uint64_t counted = 0, first = t->element_count < 4 ? t->element_count : 4;
    bool numbers = t->dtype != UIR_DTYPE_STRING && uir_dtype_get_class(t->dtype) != UIR_DTYPE_CLASS_COMPLEX;
    bool real = uir_dtype_is_float(t->dtype);
    print_safely(stdout, "  %s %s[", name, uir_dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++) print_safely(stdout, "%s%lld", d ? "," : "", (long long)t->shape[d]);
    print_safely(stdout, "]");
    for (uint64_t i = 0; numbers && i < t->element_count; i++) {
        double x =
            real ? uir_dtype_load_double(t->dtype, t->data, i) : (double)uir_dtype_load_integer(t->dtype, t->data, i);
        if (x != x) continue;
        least = x < least ? x : least;
        greatest = x > greatest ? x : greatest;
        mean += (x - mean) / (double)++counted;
    }
    if (counted) print_safely(stdout, "  min %.6g  max %.6g  mean %.6g", least, greatest, mean);
    if (numbers && counted < t->element_count)
        print_safely(stdout, "  NaN %llu", (unsigned long long)(t->element_count - counted));
    print_safely(stdout, "  [");
    for (uint64_t i = 0; numbers && i < first; i++)
        print_safely(stdout, "%s%.6g", i ? " " : "",
                     real ? uir_dtype_load_double(t->dtype, t->data, i)
                          : (double)uir_dtype_load_integer(t->dtype, t->data, i));
    puts(t->element_count > first ? " ...]" : "]");
}

/* A file's name of a value's: what no file is called is replaced. */
static void plain_name(const char *name, uint32_t index, char *out, size_t capacity) {
    size_t used = 0;
    for (; name[used] && used + 1 < capacity; used++) {
        char c = name[used];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                    c == '-' || (c == '.' && used);
        out[used] = fine ? c : '_';
    }
    out[used] = 0;
    if (!used) snprintf(out, capacity, "output_%u", index);
}

/* What is stated beside the model that it came from, else what its dtype has. */
static const char *find_tolerance(const opt_results *r, const uir_value *expected, uir_tolerance *out) {
    uir_tolerance own = {.struct_size = sizeof own};
    const char *source = *r->home ? tolerance_find_beside(r->home, out) : NULL;
    if (!source) *out = (uir_tolerance){.struct_size = sizeof *out, .rtol = -1, .atol_relative_to_max = -1};
    (void)!uir_dtype_get_tolerance(uir_value_get_dtype(expected), &own);
    if (out->rtol < 0) out->rtol = own.rtol;
    if (out->atol_relative_to_max < 0) out->atol_relative_to_max = own.atol_relative_to_max;
    return source ? source : "default of the dtype";
}

static uir_status compare(const opt_results *r, uint32_t index, const char *name, const char *path,
                          const uir_value *actual, bool *differs) {
    uir_value *expected = NULL;
    uir_tolerance tolerance;
    UIR_TRY(uir_value_load_file(r->context, path, NULL, UIR_VALUE_TENSOR, &expected));
    const char *source = find_tolerance(r, expected, &tolerance);
    uir_comparison c = query_comparison(actual, expected, tolerance);
    print_safely(stdout, "    %s output_%u: rtol %g, atol %g, and %g of the greatest (%s)%s%s\n",
                 c.agree ? "agrees with" : "DIFFERS from", index, tolerance.rtol, tolerance.atol,
                 tolerance.atol_relative_to_max, source, c.agree ? "" : ": ", c.text);
    if (!c.agree) complain(NULL, "output '%s' differs from %s: %s", name, path, c.text);
    *differs |= !c.agree;
    uir_value_destroy(expected);
    return UIR_STATUS_OK;
}

bool opt_has_expected(const opt_results *r, uint32_t index) {
    char path[4096];
    return r->options->data && opt_find_file(r->options->data, "output", index, path, sizeof path);
}

uir_status opt_take_result(const opt_results *r, uint32_t index, const char *name, const uir_tensor *tensor,
                           bool *differs) {
    char path[4096], plain[256];
    uir_value *actual = NULL;
    uir_status status = to_value(r->context, tensor, &actual);
    if (status == UIR_STATUS_OK && r->options->save) {
        plain_name(name, index, plain, sizeof plain);
        snprintf(path, sizeof path, "%s/%s.npy", r->options->save, plain);
        status = uir_value_save_file(r->context, actual, path, name);
    }
    if (status == UIR_STATUS_OK && r->options->data &&
        opt_find_file(r->options->data, "output", index, path, sizeof path))
        status = compare(r, index, name, path, actual, differs);
    uir_value_destroy(actual);
    opt_report_context(r->context);
    return status;
}
