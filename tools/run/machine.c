/* --plan and --profile with --interpret: what kernels move in the spaces of the machine that they are for, and how long
 * it would take by its description. */
#include "printable.h"
#include "json.h"
#include "report.h"
#include "query.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SPACES = 16 };

/* Of a kernel, all its launches together: the spaces in the order of the description. */
typedef struct machine_work {
    uir_machine_estimate of;
    uir_space_estimate spaces[MOST_SPACES];
    size_t space_count;
} machine_work;

static bool read_work(const uir_session *session, size_t index, machine_work *out) {
    out->space_count = 0;
    if (!query_estimate(session, index, &out->of)) return false;
    while (out->space_count < MOST_SPACES &&
           query_space(session, index, out->space_count, &out->spaces[out->space_count]))
        out->space_count++;
    return true;
}

static int by_kernel(const void *a, const void *b) {
    return strcmp(((const machine_work *)a)->of.kernel, ((const machine_work *)b)->of.kernel);
}

static int slowest_first(const void *a, const void *b) {
    const machine_work *x = a, *y = b;
    if (x->of.cycles != y->of.cycles) return x->of.cycles < y->of.cycles ? 1 : -1;
    return by_kernel(a, b);
}

static void add(machine_work *sum, const machine_work *work) {
    sum->of.launches += work->of.launches;
    sum->of.cycles += work->of.cycles;
    sum->of.ms += work->of.ms;
    if (work->of.units > sum->of.units) sum->of.units = work->of.units;
    sum->space_count = work->space_count;
    for (size_t s = 0; s < sum->space_count; s++) {
        sum->spaces[s].space = work->spaces[s].space;
        sum->spaces[s].read += work->spaces[s].read;
        sum->spaces[s].written += work->spaces[s].written;
    }
}

/* By kernel, the slowest first; the nodes that share one together, by the name of the first. False when memory runs
 * out. The work is the caller's to free. */
static bool list_work(const uir_session *session, machine_work **out_work, size_t *out_count) {
    machine_work one, *work;
    size_t nodes = 0, count = 0;
    while (read_work(session, nodes, &one)) nodes++;
    *out_work = work = malloc((nodes + 1) * sizeof *work);
    if (!work) return false;
    for (size_t i = 0; i < nodes; i++) (void)read_work(session, i, &work[i]);
    if (nodes) qsort(work, nodes, sizeof *work, by_kernel);
    for (size_t i = 0; i < nodes; i++)
        if (count && !by_kernel(&work[count - 1], &work[i]))
            add(&work[count - 1], &work[i]);
        else
            work[count++] = work[i];
    if (count) qsort(work, count, sizeof *work, slowest_first);
    *out_count = count;
    return true;
}

static machine_work sum_work(const machine_work *work, size_t count) {
    machine_work sum = {.space_count = 0};
    for (size_t i = 0; i < count; i++) add(&sum, &work[i]);
    return sum;
}

static bool is_used(const machine_work *all, size_t space) {
    return all->spaces[space].read + all->spaces[space].written > 0;
}

static void print_row(const char *name, const machine_work *w, const machine_work *all) {
    char text[64];
    printf("  %-18s %8llu %11.0f", name, (unsigned long long)w->of.launches, w->of.cycles);
    if (w->of.ms > 0)
        printf(" %9.4f %5llu", w->of.ms, (unsigned long long)w->of.units);
    else
        printf(" %9s %5llu", "", (unsigned long long)w->of.units);
    for (size_t s = 0; s < all->space_count; s++) {
        if (!is_used(all, s)) continue;
        snprintf(text, sizeof text, "%.1f/%.1f", (double)w->spaces[s].read / 1e3, (double)w->spaces[s].written / 1e3);
        printf(" %15s", text);
    }
    putchar('\n');
}

static void print_heading(const machine_work *all) {
    char space[24];
    printf("  %-18s %8s %11s %9s %5s", "kernel", "launches", "cycles", all->of.ms > 0 ? "ms" : "", "units");
    for (size_t s = 0; s < all->space_count; s++)
        if (is_used(all, s)) printf(" %15s", printable(all->spaces[s].space, space, sizeof space));
    putchar('\n');
}

bool report_machine(const uir_session *session, const char *ran_on) {
    machine_work *work;
    size_t count;
    if (!list_work(session, &work, &count)) return false;
    machine_work sum = sum_work(work, count);
    print_heading(&sum);
    for (size_t i = 0; i < count; i++) {
        char kernel[80];
        print_row(printable(work[i].of.kernel, kernel, sizeof kernel), &work[i], &sum);
    }
    print_row("all", &sum, &sum);
    printf("  By space: kB read/kB written, of all units together. Cycles%s are modelled by the costs of\n"
           "  the description, not measured: %s\n",
           sum.of.ms > 0 ? " and ms" : "", ran_on);
    free(work);
    return true;
}

static void add_work(cJSON *object, const machine_work *w) {
    cJSON_AddNumberToObject(object, "launches", (double)w->of.launches);
    report_add_number(object, "modelled_cycles", w->of.cycles);
    report_add_number(object, "modelled_ms", w->of.ms);
    cJSON_AddNumberToObject(object, "units", (double)w->of.units);
    cJSON *spaces = cJSON_AddObjectToObject(object, "spaces");
    for (size_t s = 0; s < w->space_count; s++) {
        cJSON *space = cJSON_AddObjectToObject(spaces, w->spaces[s].space); /* a word of the description's grammar */
        cJSON_AddNumberToObject(space, "read_bytes", (double)w->spaces[s].read);
        cJSON_AddNumberToObject(space, "written_bytes", (double)w->spaces[s].written);
    }
}

bool report_add_machine(cJSON *root, const uir_session *session) {
    machine_work *work;
    size_t count;
    if (!list_work(session, &work, &count)) return false;
    machine_work sum = sum_work(work, count);
    cJSON *machine = count ? cJSON_AddObjectToObject(root, "machine") : cJSON_AddNullToObject(root, "machine");
    if (count) add_work(machine, &sum);
    cJSON *kernels = count ? cJSON_AddArrayToObject(machine, "kernels") : NULL;
    for (size_t i = 0; i < count; i++) {
        cJSON *kernel = cJSON_CreateObject();
        report_add_text(kernel, "kernel", work[i].of.kernel);
        report_add_text(kernel, "name", work[i].of.name);
        report_add_text(kernel, "op", work[i].of.op);
        add_work(kernel, &work[i]);
        cJSON_AddItemToArray(kernels, kernel);
    }
    free(work);
    return true;
}
