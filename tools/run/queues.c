/* --profile of a device with queues: what each of them executed in the last run, and how much of the bus's traffic
 * kernels hide. */
#include "json.h"
#include "printable.h"
#include "query.h"
#include "report.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

/* The slices of a queue that belong together: a kernel's launches for a node, or the copies for it. */
typedef struct row {
    uir_trace_slice of;
    uint64_t calls, bytes;
    double ms;
    size_t index;
} row;

typedef struct interval {
    double begin, end;
} interval;

static int by_queue(const void *a, const void *b) {
    const row *x = a, *y = b;
    int order = strcmp(x->of.queue, y->of.queue);
    if (!order) order = strcmp(x->of.kernel, y->of.kernel);
    if (!order) order = strcmp(x->of.name, y->of.name);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static int longest_first(const void *a, const void *b) {
    const row *x = a, *y = b;
    int order = strcmp(x->of.queue, y->of.queue);
    if (order) return order;
    if (x->ms != y->ms) return x->ms < y->ms ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_begin(const void *a, const void *b) {
    const interval *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* By queue, the longest first; the caller frees them. False out of memory. */
static bool list_rows(const uir_session *session, row **out_rows, size_t *out_count) {
    uir_trace_slice slice;
    size_t slices = 0, count = 0;
    while (query_slice(session, slices, &slice)) slices++;
    row *rows = *out_rows = malloc((slices + 1) * sizeof *rows);
    if (!rows) return false;
    for (size_t i = 0; query_slice(session, i, &slice); i++)
        if (*slice.queue) rows[count] = (row){slice, 1, slice.bytes, slice.ms, count}, count++;
    if (count) qsort(rows, count, sizeof *rows, by_queue);
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        row *last = *out_count ? &rows[*out_count - 1] : NULL;
        if (last && !strcmp(last->of.queue, rows[i].of.queue) && !strcmp(last->of.kernel, rows[i].of.kernel) &&
            !strcmp(last->of.name, rows[i].of.name)) {
            last->calls++;
            last->bytes += rows[i].bytes;
            last->ms += rows[i].ms;
        } else {
            rows[(*out_count)++] = rows[i];
        }
    }
    if (*out_count) qsort(rows, *out_count, sizeof *rows, longest_first);
    return true;
}

/* How long an interval is covered by sorted intervals that do not overlap: those of one queue. */
static double measure_cover(const interval *of, const interval *kernels, size_t count) {
    double covered = 0;
    for (size_t i = 0; i < count && kernels[i].begin < of->end; i++) {
        double begin = kernels[i].begin > of->begin ? kernels[i].begin : of->begin,
               end = kernels[i].end < of->end ? kernels[i].end : of->end;
        if (end > begin) covered += end - begin;
    }
    return covered;
}

/* Bytes that move between the memories while kernels are executed. False out of memory. */
static bool count_hidden(const uir_session *session, uint64_t *out_hidden, uint64_t *out_all) {
    uir_trace_slice slice;
    size_t slices = 0, count = 0;
    double hidden = 0;
    while (query_slice(session, slices, &slice)) slices++;
    interval *kernels = malloc((slices + 1) * sizeof *kernels);
    if (!kernels) return false;
    *out_all = 0;
    for (size_t i = 0; query_slice(session, i, &slice); i++)
        if (*slice.queue && *slice.kernel) kernels[count++] = (interval){slice.begin_ms, slice.begin_ms + slice.ms};
    if (count) qsort(kernels, count, sizeof *kernels, by_begin);
    for (size_t i = 0; query_slice(session, i, &slice); i++) {
        const interval of = {slice.begin_ms, slice.begin_ms + slice.ms};
        if (!strcmp(slice.queue, "compute") || !slice.bytes) continue;
        *out_all += slice.bytes;
        if (slice.ms > 0) hidden += (double)slice.bytes * measure_cover(&of, kernels, count) / slice.ms;
    }
    *out_hidden = (uint64_t)hidden;
    free(kernels);
    return true;
}

void report_queues(const uir_session *session) {
    uint64_t hidden, all;
    row *rows;
    size_t count;
    if (!list_rows(session, &rows, &count)) return;
    if (count)
        printf("  queues of the device, in the last run; times are %s\n"
               "  %-10s %8s %12s %10s  %s\n",
               rows[0].of.is_modelled ? "modelled, not measured" : "by its clock", "queue", "calls", "time", "bytes",
               "kernel or copy, of node");
    for (size_t i = 0; i < count; i++) {
        char time[UNITS_ROOM], bytes[UNITS_ROOM] = "", kernel[80], name[80];
        const uir_trace_slice *of = &rows[i].of;
        if (rows[i].bytes) units_scaled((double)rows[i].bytes, bytes, sizeof bytes);
        printf("  %-10s %8llu %12s %10s  %s, %s %s\n", of->queue, (unsigned long long)rows[i].calls,
               units_time(rows[i].ms, time, sizeof time), bytes,
               printable(*of->kernel ? of->kernel : of->by, kernel, sizeof kernel), of->op,
               printable(of->name, name, sizeof name));
    }
    if (count && count_hidden(session, &hidden, &all) && all)
        printf("  %.0f%% of the bytes over the bus move while kernels run\n", 100.0 * (double)hidden / (double)all);
    free(rows);
}

bool report_add_queues(cJSON *profile, const uir_session *session) {
    uint64_t hidden = 0, all = 0;
    cJSON *queues = cJSON_AddArrayToObject(profile, "queues");
    row *rows;
    size_t count;
    if (!list_rows(session, &rows, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        const uir_trace_slice *of = &rows[i].of;
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "queue", of->queue);
        report_add_text(object, "kernel", of->kernel);
        report_add_text(object, "name", of->name);
        report_add_text(object, "op", of->op);
        cJSON_AddNumberToObject(object, "calls", (double)rows[i].calls);
        cJSON_AddNumberToObject(object, "bytes", (double)rows[i].bytes);
        report_add_number(object, "ms", rows[i].ms);
        cJSON_AddBoolToObject(object, "modelled", of->is_modelled);
        cJSON_AddItemToArray(queues, object);
    }
    free(rows);
    bool good = count_hidden(session, &hidden, &all);
    cJSON_AddNumberToObject(profile, "bus_bytes", (double)all);
    cJSON_AddNumberToObject(profile, "hidden_bytes", (double)hidden);
    return good;
}
