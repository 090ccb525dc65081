/* --plan and --profile: what kernels move and compute, beside what the machine can do. Where time is modelled it says
 * so. */
#include "printable.h"
#include "json.h"
#include "nodes.h"
#include "progress.h"
#include "report.h"
#include "query.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a node or launch, or of all of one kernel. */
typedef struct work {
    const char *kernel, *name, *op, *by;
    uint64_t calls, bytes, dram_bytes, flops; /* `bytes`: that it must move at least */
    double ms;                                /* measured, or 0 */
    double modelled_ms;
    size_t index;
} work;

typedef struct work_list {
    work *items;
    size_t count;
} work_list;

/* Each tensor once a launch, or what its slices take of them where that is less: a gather reads some rows of a table.
 */
static uint64_t least_bytes(uint64_t tensor_bytes, uint64_t dram_bytes) {
    return dram_bytes && dram_bytes < tensor_bytes ? dram_bytes : tensor_bytes;
}

static bool add(work_list *list, work item) {
    work *grown =
        list->count & (list->count - 1) ? list->items : realloc(list->items, (2 * list->count + 1) * sizeof *grown);
    if (!grown) return false;
    list->items = grown;
    item.index = list->count;
    grown[list->count++] = item;
    return true;
}

/* ---- by kernel, the longest first ---- */

static int by_kernel(const void *a, const void *b) {
    const work *x = a, *y = b;
    int order = strcmp(x->kernel, y->kernel);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static double time_of(const work *w) {
    return w->ms > 0 ? w->ms : w->modelled_ms;
}

static int longest_first(const void *a, const void *b) {
    const work *x = a, *y = b;
    if (time_of(x) != time_of(y)) return time_of(x) < time_of(y) ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sum_kernels(work_list *list) {
    size_t kernels = 0;
    if (!list->count) return;
    qsort(list->items, list->count, sizeof *list->items, by_kernel);
    for (size_t i = 0; i < list->count; i++) {
        work *w = &list->items[i], *sum = kernels ? &list->items[kernels - 1] : NULL;
        if (!sum || strcmp(sum->kernel, w->kernel) != 0) {
            list->items[kernels++] = *w;
            continue;
        }
        sum->calls += w->calls;
        sum->bytes += w->bytes;
        sum->dram_bytes += w->dram_bytes;
        sum->flops += w->flops;
        sum->ms += w->ms;
        sum->modelled_ms += w->modelled_ms;
    }
    list->count = kernels;
    qsort(list->items, list->count, sizeof *list->items, longest_first);
}

static double sum_ms(const work_list *list, bool modelled) {
    double total = 0;
    for (size_t i = 0; i < list->count; i++) total += modelled ? list->items[i].modelled_ms : list->items[i].ms;
    return total;
}

static void print_roofline(const uir_roofline *limits) {
    printf("  limits, measured on this machine with %llu threads: %.1f GB/s read from memory, %.1f Gflop/s of f32\n",
           (unsigned long long)limits->threads, limits->bytes_per_second / 1e9, limits->flops_per_second / 1e9);
}

/* ---- --profile ---- */

static bool list_nodes(const uir_session *session, const case_result *result, work_list *list) {
    const uir_roofline *limits = &result->limits;
    uir_node_statistics n;
    for (size_t i = 0; query_node(session, i, &n); i++) {
        uint64_t bytes = least_bytes(n.tensor_bytes, n.dram_bytes);
        double modelled = uir_roofline_get_ms(limits, bytes, n.flops);
        if (i < result->node_count) n.ms = result->node_ms[i];
        if (!add(list, (work){n.kernel, n.name, n.op, n.by, n.calls, bytes, n.dram_bytes, n.flops, n.ms, modelled, 0}))
            return false;
    }
    return true;
}

/* "87%" of a limit that would take so long; "" where nothing is known. */
static const char *percent(double part, double limit, double ms, char *buffer, size_t capacity) {
    double seconds = ms * 1e-3;
    *buffer = 0;
    if (part > 0 && limit > 0 && seconds > 0) snprintf(buffer, capacity, "%.0f%%", 100 * part / seconds / limit);
    return buffer;
}

static void print_kernels(const work_list *list, const uir_roofline *limits, double total) {
    printf("  %-20s %8s %10s %6s %10s %9s %10s %9s %10s\n", "kernel", "calls", "time", "%", "bytes", "% of peak",
           "flop", "% of peak", "modelled");
    for (size_t i = 0; i < list->count; i++) {
        const work *w = &list->items[i];
        char kernel[80], memory[24], compute[24], time[UNITS_ROOM], bytes[UNITS_ROOM], flops[UNITS_ROOM],
            modelled[UNITS_ROOM] = "";
        if (w->modelled_ms > 0) units_time(w->modelled_ms, modelled, sizeof modelled);
        printf("  %-20s %8llu %10s %6.1f %10s %9s %10s %9s %10s\n", printable(w->kernel, kernel, sizeof kernel),
               (unsigned long long)w->calls, units_time(w->ms, time, sizeof time), total > 0 ? 100 * w->ms / total : 0,
               units_scaled((double)w->bytes, bytes, sizeof bytes),
               percent((double)w->bytes, limits->bytes_per_second, w->ms, memory, sizeof memory),
               units_scaled((double)w->flops, flops, sizeof flops),
               percent((double)w->flops, limits->flops_per_second, w->ms, compute, sizeof compute), modelled);
    }
}

static void print_row(const uir_session *session, const work *w, int width) {
    char kernel[80], time[UNITS_ROOM];
    char *nodes = nodes_of_row(session, w->index);
    int used = printf("  %10s  %s by %s:", units_time(w->ms, time, sizeof time),
                      printable(w->kernel, kernel, sizeof kernel), w->by);
    print_wrapped(stdout, nodes ? nodes : "", used, 14, width);
    free(nodes);
}

void report_profile(const uir_model *model, uir_session *session, const case_result *result) {
    int width = terminal_width(STDOUT_FILENO);
    const uir_roofline *limits = &result->limits;
    work_list list = {NULL, 0};
    if (list_nodes(session, result, &list)) {
        double total = sum_ms(&list, false);
        printf("  times: medians of %zu steady runs\n", result->profiled_runs);
        if (list.count) qsort(list.items, list.count, sizeof *list.items, longest_first);
        for (size_t i = 0; i < list.count; i++) print_row(session, &list.items[i], width);
        (void)nodes_report_elsewhere(model, session, width);
        print_roofline(limits);
        sum_kernels(&list);
        print_kernels(&list, limits, total);
        if (sum_ms(&list, true) > 0)
            puts("  bytes: least traffic, each tensor once a launch; above 100% of peak: caches held some of it.\n"
                 "  Modelled: the least time that the limits allow, not measured.");
    }
    free(list.items);
    report_queues(session);
}

static void add_limits(cJSON *root, const uir_roofline *limits) {
    cJSON *machine = cJSON_AddObjectToObject(root, "limits");
    cJSON_AddNumberToObject(machine, "threads", (double)limits->threads);
    report_add_number(machine, "bytes_per_second", limits->bytes_per_second);
    report_add_number(machine, "flops_per_second", limits->flops_per_second);
}

/* What a row of kernels has in --plan and --profile alike. */
static cJSON *add_kernel(cJSON *kernels, const work *w) {
    cJSON *kernel = cJSON_CreateObject();
    report_add_text(kernel, "kernel", w->kernel);
    report_add_text(kernel, "name", w->name);
    report_add_text(kernel, "op", w->op);
    cJSON_AddNumberToObject(kernel, "launches", (double)w->calls);
    cJSON_AddNumberToObject(kernel, "least_bytes", (double)w->bytes);
    cJSON_AddNumberToObject(kernel, "dram_bytes", (double)w->dram_bytes);
    cJSON_AddNumberToObject(kernel, "flops", (double)w->flops);
    report_add_number(kernel, "modelled_ms", w->modelled_ms);
    cJSON_AddItemToArray(kernels, kernel);
    return kernel;
}

bool report_add_profile(cJSON *root, uir_session *session, const case_result *result) {
    work_list list = {NULL, 0};
    if (!result->profiled_runs) {
        cJSON_AddNullToObject(root, "profile");
        return true;
    }
    bool good = list_nodes(session, result, &list);
    cJSON *profile = cJSON_AddObjectToObject(root, "profile");
    cJSON_AddNumberToObject(profile, "runs", (double)result->profiled_runs);
    report_add_number(profile, "ms", sum_ms(&list, false));
    add_limits(profile, &result->limits);
    cJSON *kernels = cJSON_AddArrayToObject(profile, "kernels");
    sum_kernels(&list);
    for (size_t i = 0; i < list.count; i++) {
        cJSON *kernel = add_kernel(kernels, &list.items[i]);
        report_add_text(kernel, "by", list.items[i].by);
        report_add_number(kernel, "ms", list.items[i].ms);
    }
    free(list.items);
    return report_add_queues(profile, session) && good;
}

/* ---- --plan ---- */

static bool list_launches(const uir_session *session, const uir_roofline *limits, work_list *list) {
    uir_launch_cost c;
    for (size_t i = 0; query_launch(session, i, &c); i++) {
        uint64_t bytes = least_bytes(c.tensor_bytes, c.dram_bytes);
        double modelled = uir_roofline_get_ms(limits, bytes, c.flops);
        if (!add(list, (work){c.kernel, c.name, c.op, "", 1, bytes, c.dram_bytes, c.flops, 0, modelled, 0}))
            return false;
    }
    return true;
}

typedef struct cost_row {
    const char *name, *text;
    uint64_t number;
} cost_row;

typedef struct plan_facts {
    const uir_session *session;
    const cost_row *rows;
    size_t count;
    const uir_bus_cost *bus;
    const uir_roofline *limits;
} plan_facts;

static void print_plan(const plan_facts *facts, const work_list *list, double modelled) {
    for (size_t i = 0; i < facts->count; i++)
        printf("%-24s %16llu\n", facts->rows[i].text, (unsigned long long)facts->rows[i].number);
    report_bus_cost(facts->session, facts->bus);
    char time[UNITS_ROOM];
    printf("%-24s %16s\n", "modelled", units_time(modelled, time, sizeof time));
    print_roofline(facts->limits);
    if (list->count) printf("  %-20s %8s %10s %10s %12s\n", "kernel", "launches", "bytes", "flop", "modelled");
    for (size_t i = 0; i < list->count; i++) {
        char kernel[80], bytes[UNITS_ROOM], flops[UNITS_ROOM];
        const work *w = &list->items[i];
        printf("  %-20s %8llu %10s %10s %12s\n", printable(w->kernel, kernel, sizeof kernel),
               (unsigned long long)w->calls, units_scaled((double)w->bytes, bytes, sizeof bytes),
               units_scaled((double)w->flops, flops, sizeof flops), units_time(w->modelled_ms, time, sizeof time));
    }
}

static bool write_plan(FILE *stream, const plan_facts *facts, const work_list *list, double modelled) {
    cJSON *root = cJSON_CreateObject(), *kernels = cJSON_CreateArray();
    cJSON_AddNumberToObject(root, "version", 1);
    for (size_t i = 0; i < facts->count; i++)
        cJSON_AddNumberToObject(root, facts->rows[i].name, (double)facts->rows[i].number);
    report_add_bus_cost(root, facts->session, facts->bus);
    report_add_number(root, "modelled_ms", modelled);
    add_limits(root, facts->limits);
    for (size_t i = 0; i < list->count; i++) add_kernel(kernels, &list->items[i]);
    cJSON_AddItemToObject(root, "kernels", kernels);
    return report_write_json(stream, root);
}

bool report_cost(FILE *stream, const uir_session *session, const uir_cost *cost, const uir_bus_cost *bus,
                 const uir_roofline *limits, bool json) {
    const cost_row rows[] = {{"tensor_bytes", "tensors, bytes", cost->tensor_bytes},
                             {"scratch_bytes", "scratch, bytes", cost->scratch_bytes},
                             {"weight_bytes", "weights, bytes", cost->weight_bytes},
                             {"dram_bytes", "read and written, bytes", cost->dram_bytes},
                             {"flops", "operations", cost->flops},
                             {"launches", "launches", cost->launches}};
    const plan_facts facts = {session, rows, sizeof rows / sizeof *rows, bus, limits};
    work_list list = {NULL, 0};
    bool good = list_launches(session, limits, &list);
    double modelled = sum_ms(&list, true);
    if (good) sum_kernels(&list);
    if (good && json)
        good = write_plan(stream, &facts, &list, modelled);
    else if (good)
        print_plan(&facts, &list, modelled);
    free(list.items);
    return good;
}
