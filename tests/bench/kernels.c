/* uir-bench-kernels [--device cpu:VARIANT] [--compiler CC] [--rounds N] [--best] [--only NAME] [--json] [--folder DIR]
 *
 * Times kernels from their text, one thread, beside the machine's limits measured in the same rounds, in turn; prints
 * medians (--best: the fastest rounds of both, for a machine that others use). Every timed kernel's output is then
 * checked against a plain double reference. Exit code 1: a result is wrong. Missing a target is shown, not an error: a
 * busy machine misses them too. */
#include "backends/cpu/driver/limits.h"
#include "tests/backends/cpu/native.h"
#include "references.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 200

static const bench_case cases[] = {
    {"product 1024x1024x1024",
     "timed_product.igraph",
     "product",
     {1024, 1024, 1024},
     3,
     2.0 * 1024 * 1024 * 1024,
     0,
     0,
     0.88,
     1e-6,
     check_product},
    {"product 1000x1003x999",
     "timed_product.igraph",
     "product",
     {1000, 1003, 999},
     3,
     2.0 * 1000 * 1003 * 999,
     0,
     0,
     0.75,
     1e-6,
     check_product},
    {"product 17x768x768",
     "timed_product.igraph",
     "product",
     {17, 768, 768},
     3,
     2.0 * 17 * 768 * 768,
     0,
     0,
     0.60,
     1e-6,
     check_product},
    {"product 1x4096x4096",
     "timed_product.igraph",
     "product_of_few_rows",
     {1, 4096, 4096},
     3,
     0,
     4.0 * 4096 * 4096,
     0,
     0.85,
     1e-6,
     check_product},
    {"3x3 convolution 64, 56x56",
     "timed_convolution.igraph",
     "convolution_3x3",
     {1, 56, 56, 64, 64},
     5,
     2.0 * 56 * 56 * 64 * 64 * 9,
     0,
     0,
     0.85,
     1e-6,
     check_convolution},
    {"softmax 4096x1024",
     "timed_rows.igraph",
     "softmax_rows",
     {4096, 1024},
     2,
     0,
     0,
     4.0 * 4096 * 1024,
     0.85,
     1e-5,
     check_softmax},
    {"layer norm 4096x1024",
     "timed_rows.igraph",
     "layer_norm_rows",
     {4096, 1024},
     2,
     0,
     0,
     4.0 * 4096 * 1024,
     0.85,
     1e-5,
     check_layer_norm},
    {"chain of eight, 16M",
     "timed_chain.igraph",
     "chain_of_eight",
     {16 << 20},
     1,
     0,
     0,
     4.0 * (16 << 20),
     0.85,
     1e-6,
     check_chain},
};

typedef struct options {
    const char *variant, *compiler, *only, *folder;
    int rounds;
    bool json, best;
} options;

typedef struct outcome {
    double seconds, limit; /* medians */
    double error;
} outcome;

static void say(uir_diagnostics *diagnostics) {
    char text[4096];
    for (uir_diagnostic *d = diagnostics->first; d; d = d->next) {
        uir_diagnostic_format(d, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    uir_diagnostics_clear(diagnostics);
}

static char *read_file(const char *path, size_t *out_length) {
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(1 << 20) : NULL;
    *out_length = text ? fread(text, 1, 1 << 20, file) : 0;
    if (file) fclose(file);
    return text;
}

/* The text of one kernel of a file: from its `igraph @name` to the next. */
static bool find_kernel(const char *text, size_t length, const char *name, const char **out_begin, size_t *out_length) {
    char head[80];
    snprintf(head, sizeof head, "igraph @%s ", name);
    size_t size = strlen(head);
    for (size_t i = 0; i + size <= length; i++) {
        if ((i && text[i - 1] != '\n') || memcmp(text + i, head, size) != 0) continue;
        size_t end = i + size;
        while (end < length && !(text[end - 1] == '\n' && length - end > 8 && memcmp(text + end, "igraph @", 8) == 0))
            end++;
        *out_begin = text + i;
        *out_length = end - i;
        return true;
    }
    return false;
}

static uir_status load(const options *o, const bench_case *c, const uir_machine *machine,
                       const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph **out) {
    char path[512];
    size_t length, size;
    const char *begin;
    const uir_machine *devices[] = {machine};
    uir_machine_list list = {devices, 1};
    snprintf(path, sizeof path, "%s/%s", o->folder, c->file);
    char *text = read_file(path, &length);
    if (!text) return uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL, "%s cannot be read", path);
    uir_status status =
        find_kernel(text, length, c->kernel, &begin, &size)
            ? uir_igraph_parse(allocator, &list, begin, size, path, diagnostics, out)
            : uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL, "%s has no kernel @%s", path, c->kernel);
    free(text);
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(*out, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_igraph_form_runs(*out, diagnostics);
    return status;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const options *o, double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    if (o->best) return values[0];
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

typedef struct memory {
    void *pointers[16]; /* in the kernel's layouts */
    float *plain[16];   /* inputs, row-major */
    size_t bytes[16];
    uint32_t count, output;
} memory;

static void release(memory *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        free(m->pointers[i]);
        free(m->plain[i]);
    }
}

static float value_of(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / (1 << 24) * 2 - 1);
}

/* Inputs of values in [-1, 1), a pointer of one element 1 / its row length; every page touched. */
static uir_status fill_memory(const uir_igraph *g, const bench_case *c, const int64_t *values, memory *m) {
    uint64_t state = 42;
    m->count = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        int64_t span, elements = 1, extent;
        uint32_t symbols = uir_dims_symbol_count(g->dims);
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        if (uir_dim_evaluate(g->dims, p->element_span, values, NULL, symbols, &span) != UIR_DIM_EVALUATED)
            return UIR_STATUS_INTERNAL;
        for (uint32_t d = 0; d < p->rank; d++) {
            if (uir_dim_evaluate(g->dims, p->extents[d], values, NULL, symbols, &extent) != UIR_DIM_EVALUATED)
                return UIR_STATUS_INTERNAL;
            elements *= extent;
        }
        uint32_t at = m->count++;
        m->bytes[at] = (size_t)span * 4;
        m->pointers[at] = aligned_alloc(4096, (m->bytes[at] + 8191) / 4096 * 4096);
        m->plain[at] = malloc((size_t)elements * 4 + 4);
        if (!m->pointers[at] || !m->plain[at]) return UIR_STATUS_OUT_OF_MEMORY;
        memset(m->pointers[at], 0, m->bytes[at]);
        if (p->role == UIR_IPOINTER_OUT) {
            m->output = at;
            continue;
        }
        for (int64_t e = 0; e < elements; e++)
            m->plain[at][e] = elements == 1 ? 1 / (float)c->dims[1] : value_of(&state);
        UIR_TRY(uir_igraph_pack(g, i, values, m->plain[at], m->pointers[at]));
    }
    return UIR_STATUS_OK;
}

/* One go of the limit, in the way that was fastest so far. */
static double limit_once(const bench_case *c, memory *m, const void *from, void *to, size_t way) {
    (void)m;
    if (c->flops > 0) return uir_cpu_limit_multiply_add(way, c->flops);
    if (c->read_bytes > 0) return uir_cpu_limit_read(way, from, (size_t)c->read_bytes);
    return uir_cpu_limit_copy(way, to, from, (size_t)c->copy_bytes);
}

static void measure(const options *o, const bench_case *c, uir_single *single, memory *m, outcome *out) {
    static double kernel[MAX_ROUNDS], limits[8][MAX_ROUNDS];
    size_t ways = c->flops > 0        ? uir_cpu_limit_multiply_add_ways()
                  : c->read_bytes > 0 ? uir_cpu_limit_read_ways()
                                      : uir_cpu_limit_copy_ways();
    /* Reading: the kernel's own greatest input. Copying: its input to a buffer like its output. */
    uint32_t largest = 0;
    for (uint32_t i = 1; i < m->count; i++)
        if (i != m->output && m->bytes[i] > m->bytes[largest]) largest = i;
    void *to = c->copy_bytes > 0 ? aligned_alloc(4096, (size_t)c->copy_bytes) : NULL;
    if (to) memset(to, 0, (size_t)c->copy_bytes);
    /* Short kernels run several times between two looks at the clock. */
    (void)uir_single_run(single, NULL);
    double start = uir_cpu_limit_now();
    (void)uir_single_run(single, NULL);
    double once = uir_cpu_limit_now() - start;
    int repeats = once < 2e-3 ? (int)(2e-3 / (once + 1e-9)) + 1 : 1;
    for (int r = 0; r < o->rounds; r++) {
        start = uir_cpu_limit_now();
        for (int i = 0; i < repeats; i++) (void)uir_single_run(single, NULL);
        kernel[r] = (uir_cpu_limit_now() - start) / repeats;
        for (size_t w = 0; w < ways; w++) {
            double total = 0;
            for (int i = 0; i < repeats; i++) total += limit_once(c, m, m->pointers[largest], to, w);
            limits[w][r] = total / repeats;
        }
    }
    out->seconds = middle(o, kernel, o->rounds);
    out->limit = middle(o, limits[0], o->rounds);
    for (size_t w = 1; w < ways; w++) {
        double other = middle(o, limits[w], o->rounds);
        if (other < out->limit) out->limit = other;
    }
    free(to);
}

static uir_status run_case(const options *o, const bench_case *c, const uir_cpu_device *device,
                           uir_diagnostics *diagnostics, outcome *out) {
    uir_allocator allocator = uir_allocator_system();
    uir_igraph *g = NULL;
    uir_text source;
    uir_loaded_module *module = NULL;
    uir_single *single = NULL;
    memory m = {.count = 0};
    int64_t tiles[16], *values = NULL;
    bool *bound = NULL;
    uir_text_init(&source, &allocator);
    uir_status status = load(o, c, &device->machine, &allocator, diagnostics, &g);
    if (status != UIR_STATUS_OK) goto done;
    values = calloc(uir_dims_symbol_count(g->dims) + 1, sizeof *values);
    bound = calloc(uir_dims_symbol_count(g->dims) + 1, sizeof *bound);
    uir_cpu_compile_options compile = {.variant = device->variant, .compiler = o->compiler};
    const uir_igraph *kernels[] = {g};
    status = !values || !bound ? UIR_STATUS_OUT_OF_MEMORY : uir_igraph_choose_tiles(g, c->dims, 1, tiles, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_igraph_bind(g, c->dims, tiles, values, bound, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_cpu_emit(kernels, 1, &source, diagnostics);
    if (status == UIR_STATUS_OK) status = native_compile(&allocator, &compile, &source, diagnostics, &module);
    if (status == UIR_STATUS_OK) status = fill_memory(g, c, values, &m);
    uir_kernel_arguments arguments = {c->dims, tiles, m.pointers};
    if (status == UIR_STATUS_OK) status = native_find(module, g, 0, diagnostics, &single);
    if (status == UIR_STATUS_OK) status = uir_single_bind(single, &arguments, m.bytes, 1, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_single_run(single, diagnostics);
    if (status != UIR_STATUS_OK) goto done;
    measure(o, c, single, &m, out);
    out->error = c->check(c, (const float *const *)m.plain, m.pointers[m.output]);
done:
    uir_single_destroy(single);
    native_unload(module);
    if (g) uir_igraph_destroy(g);
    uir_text_deinit(&source);
    release(&m);
    free(values);
    free(bound);
    return status;
}

static const char *argument(int argc, char **argv, int *i) {
    return *i + 1 < argc ? argv[++*i] : "";
}

static bool read_options(int argc, char **argv, options *o) {
    *o = (options){.folder = "tests/ir/kernel", .rounds = 21};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--device") == 0) {
            o->variant = argument(argc, argv, &i);
            if (strncmp(o->variant, "cpu:", 4) == 0) o->variant += 4;
        } else if (strcmp(argv[i], "--compiler") == 0) {
            o->compiler = argument(argc, argv, &i);
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = argument(argc, argv, &i);
        } else if (strcmp(argv[i], "--folder") == 0) {
            o->folder = argument(argc, argv, &i);
        } else if (strcmp(argv[i], "--rounds") == 0) {
            o->rounds = atoi(argument(argc, argv, &i));
        } else if (strcmp(argv[i], "--best") == 0) {
            o->best = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else {
            return false;
        }
    }
    if (o->rounds < 1) o->rounds = 1;
    if (o->rounds > MAX_ROUNDS) o->rounds = MAX_ROUNDS;
    return true;
}

static void print(const options *o, const bench_case *c, const outcome *r, bool wrong, bool first) {
    double work = c->flops > 0 ? c->flops : c->read_bytes > 0 ? c->read_bytes : 2 * c->copy_bytes;
    const char *unit = c->flops > 0 ? "GFLOP/s" : "GB/s";
    double fraction = r->limit / r->seconds;
    if (o->json) {
        printf("%s\n  {\"name\": \"%s\", \"ms\": %.4f, \"rate\": %.3f, \"limit\": %.3f, \"unit\": \"%s\", "
               "\"fraction\": %.4f, "
               "\"target\": %.2f, \"error\": %.3g, \"correct\": %s}",
               first ? "" : ",", c->name, r->seconds * 1e3, work / r->seconds * 1e-9, work / r->limit * 1e-9, unit,
               fraction, c->target, r->error, wrong ? "false" : "true");
    } else {
        printf("%-26s %9.3f ms %8.1f of %7.1f %-7s %5.1f%%  target %2.0f%% %s  error %.1e%s\n", c->name,
               r->seconds * 1e3, work / r->seconds * 1e-9, work / r->limit * 1e-9, unit, fraction * 100,
               c->target * 100, fraction >= c->target ? "met   " : "missed", r->error, wrong ? "  WRONG" : "");
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    options o;
    uir_diagnostics diagnostics;
    uir_allocator allocator = uir_allocator_system();
    uir_cpu_device device;
    int failures = 0, shown = 0;
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr,
                "usage: %s [--device cpu:VARIANT] [--compiler CC] [--rounds N] [--best] [--only NAME] [--folder DIR] "
                "[--json]\n",
                argv[0]);
        return 2;
    }
    uir_diagnostics_init(&diagnostics, &allocator);
    if (uir_cpu_describe(o.variant, &diagnostics, &device) != UIR_STATUS_OK) {
        say(&diagnostics);
        uir_diagnostics_deinit(&diagnostics);
        return 2;
    }
    if (o.json)
        printf("{\"device\": \"cpu:%s\", \"rounds\": %d, \"kernels\": [", device.machine.chip, o.rounds);
    else
        printf("cpu:%s, one thread, %s of %d rounds; limits measured in the same rounds\n", device.machine.chip,
               o.best ? "best" : "medians", o.rounds);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome r = {0};
        if (o.only && !strstr(cases[i].name, o.only)) continue;
        if (run_case(&o, &cases[i], &device, &diagnostics, &r) != UIR_STATUS_OK) {
            say(&diagnostics);
            failures++;
            continue;
        }
        bool wrong = !(r.error <= cases[i].tolerance);
        failures += wrong;
        print(&o, &cases[i], &r, wrong, shown++ == 0);
    }
    if (o.json) printf("\n]}\n");
    uir_diagnostics_deinit(&diagnostics);
    return failures ? 1 : 0;
}
