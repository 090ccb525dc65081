/* Reports of uir-run. Names come from models: control characters and bad UTF-8 never reach a terminal. */
#include "report.h"
#include "json.h"
#include "nodes.h"
#include "printable.h"
#include "progress.h"
#include "query.h"
#include "units.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void report_messages(uir_context *context, bool quiet) {
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (quiet && m.severity != UIR_SEVERITY_ERROR) continue;
        if (m.severity == UIR_SEVERITY_ERROR) keep_error(m.text);
        fprintf(stderr, PROGRAM ": %s\n", m.text);
    }
    uir_context_clear_messages(context);
}

static void print_shape(const int64_t *shape, uint32_t rank) {
    putchar('[');
    for (uint32_t i = 0; i < rank; i++) printf("%s%lld", i ? "," : "", (long long)shape[i]);
    putchar(']');
}

void report_inputs(uir_model *model, const run_case *c) {
    bool said = false;
    for (size_t i = 0; i < c->input_count; i++)
        if (c->made[i]) puts(c->made[i]);
    for (size_t i = 0; i < c->input_count; i++) {
        if (c->sources[i] != SOURCE_RANDOM) continue;
        uir_port port = query_input(model, i);
        char name[80];
        printf("%s %s ", said ? "  " : "seeded random input:", printable(port.name, name, sizeof name));
        said = true;
        printf("%s", uir_dtype_get_name(port.dtype));
        print_shape(uir_value_get_shape(c->inputs[i]), uir_value_get_rank(c->inputs[i]));
        putchar('\n');
    }
}

typedef struct summary {
    double min, max, mean;
    uint64_t nans;
} summary;

static summary summarise(const uir_value *value) {
    summary s = {INFINITY, -INFINITY, 0, 0};
    uint64_t n = uir_value_get_element_count(value), counted = 0;
    for (uint64_t i = 0; i < n; i++) {
        double v = uir_value_get_double(value, i);
        if (isnan(v)) {
            s.nans++;
            continue;
        }
        if (v < s.min) s.min = v;
        if (v > s.max) s.max = v;
        s.mean += (v - s.mean) / (double)++counted;
    }
    return s;
}

static void print_tensor(const uir_value *value) {
    printf("%s", uir_dtype_get_name(uir_value_get_dtype(value)));
    print_shape(uir_value_get_shape(value), uir_value_get_rank(value));
    uint64_t n = uir_value_get_element_count(value);
    if (n == 0) {
        fputs("  empty", stdout);
        return;
    }
    if (uir_value_get_dtype(value) == UIR_DTYPE_STRING) {
        const uir_string_view *strings = uir_value_get_data((uir_value *)value);
        for (uint64_t i = 0; i < n && i < 4; i++) {
            char word[64], shown[80];
            snprintf(word, sizeof word, "%.*s", (int)(strings[i].length < 60 ? strings[i].length : 60),
                     strings[i].text);
            printf("  \"%s\"", printable(word, shown, sizeof shown));
        }
        return;
    }
    summary s = summarise(value);
    if (s.nans < n)
        printf("  min %.6g  max %.6g  mean %.6g", s.min, s.max, s.mean);
    else
        fputs("  min nan  max nan  mean nan", stdout);
    if (s.nans) printf("  NaN %llu of %llu", (unsigned long long)s.nans, (unsigned long long)n);
    fputs("  [", stdout);
    for (uint64_t i = 0; i < n && i < 4; i++) printf("%s%.6g", i ? " " : "", uir_value_get_double(value, i));
    fputs(n > 4 ? " ...]" : "]", stdout);
}

/* Where text is too long for the buffer it is cut. */
static size_t append(char *buffer, size_t capacity, size_t used, const char *format, ...) PRINTF_LIKE(4, 5);

static size_t append(char *buffer, size_t capacity, size_t used, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = used < capacity ? vsnprintf(buffer + used, capacity - used, format, arguments) : 0;
    va_end(arguments);
    return n > 0 ? used + (size_t)n : used;
}

void report_describe(const uir_comparison *d, char *buffer, size_t capacity) {
    size_t used = 0;
    *buffer = 0;
    if (d->differing)
        used = append(buffer, capacity, used, "%llu of %llu elements out of tolerance, ",
                      (unsigned long long)d->differing, (unsigned long long)d->count);
    if (d->agree || d->differing) {
        used = append(buffer, capacity, used, "greatest difference %.3g, relative %.3g", d->max_abs, d->max_rel);
        if (!isnan(d->cosine)) used = append(buffer, capacity, used, ", cosine %.9g", d->cosine);
        if (d->rtol > 0 || d->atol > 0)
            used = append(buffer, capacity, used, " (tolerance %.3g + %.3g of each)", d->atol, d->rtol);
    }
    if (!d->agree) append(buffer, capacity, used, "%s%s", used ? "; " : "", d->text);
}

static void print_bounds(const char *label, const uir_tolerance *t) {
    printf("%srtol %g", label, t->rtol);
    if (t->atol > 0) printf(", atol %g", t->atol);
    if (t->atol_relative_to_max > 0) printf(", %g of the greatest expected magnitude", t->atol_relative_to_max);
}

/* By dtype where that is what applies: once each. */
static void print_tolerance(const run_case *c, uir_session *session) {
    const uir_tolerance *t = &c->tolerance;
    bool seen[UIR_DTYPE_COUNT] = {0}, any = false;
    fputs("  tolerance", stdout);
    if (t->rtol >= 0 && t->atol_relative_to_max >= 0) print_bounds(": ", t);
    for (size_t i = 0; i < c->output_count && (t->rtol < 0 || t->atol_relative_to_max < 0); i++) {
        uir_value *value = NULL;
        uir_tolerance own = {.struct_size = sizeof own}, applied = *t;
        if (!c->expected[i] || uir_session_get_output(session, i, &value) != UIR_STATUS_OK) continue;
        uir_dtype dtype = uir_value_get_dtype(value);
        if ((unsigned)dtype >= UIR_DTYPE_COUNT || seen[dtype]) continue;
        seen[dtype] = true;
        (void)!uir_dtype_get_tolerance(dtype, &own);
        if (applied.rtol < 0) applied.rtol = own.rtol;
        if (applied.atol_relative_to_max < 0) applied.atol_relative_to_max = own.atol_relative_to_max;
        printf("%s %s", any ? ";" : ":", uir_dtype_get_name(dtype));
        any = true;
        if (own.rtol > 0)
            print_bounds(" ", &applied);
        else
            fputs(" exactly", stdout);
    }
    if (t->integers > 0) printf(", %g for integers", t->integers);
    if (!strcmp(c->tolerance_source, "default"))
        puts(" (default of the dtype; none is stated)");
    else
        printf(" (%s)\n", c->tolerance_source);
}

/* What the columns of a list of maps are. */
static void print_keys(const uir_port *port) {
    enum { SHOWN = 10 };
    char key[80];
    if (!port->key_count) return;
    fputs("    columns: ", stdout);
    for (size_t k = 0; k < port->key_count && k < SHOWN; k++)
        printf("%s%s", k ? ", " : "", printable(port->keys[k], key, sizeof key));
    puts(port->key_count > SHOWN ? ", ..." : "");
}

void report_outputs(uir_model *model, uir_session *session, const run_case *c, const case_result *result) {
    if (c->folder) {
        char folder[200];
        printf("%s\n", printable(c->folder, folder, sizeof folder));
    }
    for (size_t i = 0; i < c->output_count; i++) {
        uir_value *value = NULL;
        char name[80], shown[600];
        if (uir_session_get_output(session, i, &value) != UIR_STATUS_OK || !value) continue;
        printf("  %s ", printable(uir_model_get_output_name(model, i), name, sizeof name));
        if (uir_value_get_kind(value) == UIR_VALUE_TENSOR) {
            print_tensor(value);
        } else {
            printf("%s of %zu", uir_value_get_kind(value) == UIR_VALUE_SEQUENCE ? "sequence" : "optional",
                   uir_value_get_count(value));
        }
        putchar('\n');
        uir_port port = query_output(model, i);
        print_keys(&port);
        if (!result->compared[i]) continue;
        const uir_comparison *d = &result->comparisons[i];
        char text[480];
        report_describe(d, text, sizeof text);
        printf("    %s: %s\n", d->agree ? "agrees" : "DIFFERS", printable(text, shown, sizeof shown));
    }
    if (c->has_expected) print_tolerance(c, session);
}

void report_times(uir_model *model, const case_result *result, double wait_ms) {
    uir_model_info info = query_info(model);
    const run_times *t = &result->times;
    char text[UNITS_ROOM], other[UNITS_ROOM], third[UNITS_ROOM];
    printf("  load %s, compile %s", units_time(info.load_ms, text, sizeof text),
           units_time(info.compile_ms, other, sizeof other));
    if (wait_ms > 0) printf(", waited %s for the kernels", units_time(wait_ms, text, sizeof text));
    printf(", first run %s", units_time(t->first_ms, text, sizeof text));
    if (t->count) {
        printf(", steady P50 %s P90 %s P99 %s over %zu runs", units_time(t->p50_ms, text, sizeof text),
               units_time(t->p90_ms, other, sizeof other), units_time(t->p99_ms, third, sizeof third), t->count);
        if (t->sessions) printf(" in %zu sessions of %u threads at once", t->sessions, t->session_threads);
        printf(", %s/s", units_scaled(t->runs_per_second, text, sizeof text));
    }
    printf(", peak %sB of tensors, by %s", units_scaled((double)result->statistics.peak_bytes, text, sizeof text),
           result->statistics.ran_on);
    const uir_run_statistics *s = &result->statistics;
    if (s->device_calls)
        printf(", %llu wait%s, %sB over the bus", (unsigned long long)s->waits, units_ending(s->waits),
               units_scaled((double)(s->bytes_to_device + s->bytes_from_device), text, sizeof text));
    putchar('\n');
}

/* Why another ran it than the fastest, and what was joined in its kernel. */
const char *report_why(const uir_node_statistics *node, char *buffer, size_t capacity) {
    char why[600], joined[600];
    bool both = *node->why && *node->joined;
    snprintf(buffer, capacity, "%s%s%s", printable(node->why, why, sizeof why), both ? "; " : "",
             printable(node->joined, joined, sizeof joined));
    return buffer;
}

/* What was chosen for the kernel, of how much, and what it is estimated to take. */
static void explain_choice(const uir_node_statistics *node, int width) {
    char text[400];
    size_t at = (size_t)snprintf(text, sizeof text, "variant %u of %u", node->variant, node->variant_count);
    if (!node->candidate) {
        if (node->variant_count < 2) return;
    } else {
        at += (size_t)snprintf(text + at, sizeof text - at, ", tiles ");
        for (size_t i = 0; i < node->tile_count && at + 60 < sizeof text; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? " x " : "", (long long)node->tiles[i]);
        snprintf(text + at, sizeof text - at, " (row %u of %u): %llu units of work, each estimated at %llu",
                 node->candidate, node->candidate_count, (unsigned long long)node->units,
                 (unsigned long long)node->unit_cost);
    }
    fputs("      ", stdout);
    print_wrapped(stdout, text, 6, 6, width);
}

/* The kernel and its nodes, then the choice and the reason. */
static void explain_row(const uir_session *session, size_t row, const uir_node_statistics *node, int width) {
    char kernel[80], why[1300];
    char *nodes = nodes_of_row(session, row);
    int used = printf("  %s by %s:", printable(node->kernel, kernel, sizeof kernel), node->by);
    print_wrapped(stdout, nodes ? nodes : "", used, 4, width);
    free(nodes);
    explain_choice(node, width);
    if (node->is_fallback && node->bus_bytes) {
        char text[80];
        printf("      on the host, for which %sB cross the bus\n",
               units_scaled((double)node->bus_bytes, text, sizeof text));
    }
    if (!*report_why(node, why, sizeof why)) return;
    fputs("      ", stdout);
    print_wrapped(stdout, why, 6, 6, width);
}

void report_nodes(const uir_model *model, const uir_session *session) {
    int width = terminal_width(STDOUT_FILENO);
    uir_node_statistics node;
    for (size_t i = 0; query_node(session, i, &node); i++) explain_row(session, i, &node, width);
    (void)nodes_report_elsewhere(model, session, width);
    uir_model_info info = query_info(model);
    if (*info.device_code) printf("  the device's code was made of %s\n", info.device_code);
}

void report_layouts(const uir_model *model) {
    uir_model_info info = query_info(model);
    char text[400];
    if (!info.laid_out_count && !info.conversion_count && !info.winograd_count) return;
    snprintf(text, sizeof text,
             "layouts: %u values channels-last, %u layout conversions; %u convolutions by Winograd's formula",
             info.laid_out_count, info.conversion_count, info.winograd_count);
    fputs("  ", stdout);
    print_wrapped(stdout, text, 2, 4, terminal_width(STDOUT_FILENO));
}
