/* Random contractions through lowering, each stage against the one before it.
 *
 *   test_contraction [COUNT [SEED]] [-v]
 *
 * A matmul or a convolution whose factors come transposed, sliced, cast or scaled, as operands or constants, and whose
 * result is scaled, biased, added to, activated, split into heads and transposed. */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/lower/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE = 400000 };

typedef struct writer {
    char *sizes, *parameters, *body, *constants;
    uint64_t state;
    uint32_t values, operands;
} writer;

static uint32_t draw(writer *w, uint32_t below) {
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->state >> 33) % below);
}

static void put(char *to, const char *format, ...) UIR_PRINTF(2, 3);
static void put(char *to, const char *format, ...) {
    size_t used = strlen(to);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to + used, SOURCE - used, format, arguments);
    va_end(arguments);
}

/* A dim: a number, or a symbol of its own. */
typedef struct extent {
    char text[24];
    int64_t number; /* 0: a symbol */
} extent;

static extent pick_extent(writer *w, const char *name, bool number) {
    static const int64_t numbers[] = {1, 2, 3, 7, 14, 15, 16, 31, 32, 33, 48, 64, 65, 96, 130};
    extent e = {{0}, 0};
    if (number || draw(w, 3) == 0) {
        bool batch = name[0] == 'B' || name[0] == 'C';
        e.number = numbers[draw(w, batch ? 3 : sizeof numbers / sizeof *numbers)];
        snprintf(e.text, sizeof e.text, "%lld", (long long)e.number);
    } else {
        snprintf(e.text, sizeof e.text, "%s", name);
        put(w->sizes, "size %s\n", name);
    }
    return e;
}

/* An operand, or a constant of small numbers when its extents are known; the name of the value. */
static void operand(writer *w, const char *dtype, const extent *dims, uint32_t rank, bool constant, char *out) {
    int64_t count = 1;
    snprintf(out, 16, "%%x%u", w->operands++);
    for (uint32_t d = 0; d < rank; d++) count = dims[d].number ? count * dims[d].number : 1 << 30;
    constant = constant && count <= 8192;
    char *to = constant ? w->constants : w->parameters;
    if (constant)
        put(to, "constant %s: %s[", out, dtype);
    else
        put(to, "%s%s: %s[", to[0] ? ", " : "", out, dtype);
    for (uint32_t d = 0; d < rank; d++) put(to, "%s%s", d ? ", " : "", dims[d].text);
    put(to, "]");
    if (!constant) return;
    put(to, " = [");
    for (int64_t i = 0; i < count; i++) put(to, "%s%d", i ? ", " : "", (int)draw(w, 7) - (dtype[0] == 'u' ? 0 : 3));
    put(to, "]\n");
}

static void shape(char *to, const extent *dims, uint32_t rank) {
    put(to, "[");
    for (uint32_t d = 0; d < rank; d++) put(to, "%s%s", d ? ", " : "", dims[d].text);
    put(to, "]");
}

/* %vN: dtype[dims] = op(...) {...}; gives the name. */
static void value(writer *w, const char *dtype, const extent *dims, uint32_t rank, char *name, const char *format, ...)
    UIR_PRINTF(6, 7);
static void value(writer *w, const char *dtype, const extent *dims, uint32_t rank, char *name, const char *format,
                  ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(name, 16, "%%v%u", w->values++);
    put(w->body, " %s: %s", name, dtype);
    shape(w->body, dims, rank);
    put(w->body, " = %s\n", text);
}

/* A matrix [batch.., rows, columns], stored and made in one of several ways. */
static void factor(writer *w, const char *dtype, const extent *batch, uint32_t batch_rank, extent rows, extent columns,
                   char *name) {
    extent dims[5], stored[5];
    uint32_t rank = batch_rank + 2;
    bool floats = dtype[0] == 'f', constant = draw(w, 2);
    for (uint32_t d = 0; d < batch_rank; d++) dims[d] = stored[d] = batch[d];
    dims[rank - 2] = stored[rank - 2] = rows;
    dims[rank - 1] = stored[rank - 1] = columns;
    switch (draw(w, 6)) {
    case 0: { /* transposed */
        char from[16];
        stored[rank - 2] = columns, stored[rank - 1] = rows;
        operand(w, dtype, stored, rank, constant, from);
        char perm[80] = "";
        for (uint32_t d = 0; d < batch_rank; d++) snprintf(perm + strlen(perm), 16, "%u, ", d);
        value(w, dtype, dims, rank, name, "transpose(%s) {perm = [%s%u, %u]}", from, perm, rank - 1, rank - 2);
        return;
    }
    case 1: /* one matrix for all of the batch */
        if (batch_rank) {
            char from[16], to[200] = "";
            operand(w, dtype, stored + batch_rank, 2, constant, from);
            shape(to, dims, rank);
            value(w, dtype, dims, rank, name, "broadcast(%s) {dims = %s}", from, to);
            return;
        }
        break;
    case 2:
        if (floats && !strcmp(dtype, "f32")) { /* cast and scaled */
            char from[16];
            operand(w, "f16", dims, rank, false, from);
            value(w, dtype, dims, rank, name, "cast(%s) {to = f32}", from);
            if (draw(w, 2)) {
                char cast[16];
                strcpy(cast, name);
                value(w, dtype, dims, rank, name, "mul(%s, %s)", cast, cast);
            }
            return;
        }
        break;
    case 3:
        if (columns.number) { /* a slice */
            char from[16], starts[60] = "", steps[60] = "", to[200] = "";
            snprintf(stored[rank - 1].text, sizeof stored[0].text, "%lld", (long long)columns.number + 5);
            stored[rank - 1].number = columns.number + 5;
            operand(w, dtype, stored, rank, constant, from);
            for (uint32_t d = 0; d < rank; d++) {
                snprintf(starts + strlen(starts), 8, "%s%s", d ? ", " : "", d + 1 == rank ? "3" : "0");
                snprintf(steps + strlen(steps), 8, "%s1", d ? ", " : "");
            }
            shape(to, dims, rank);
            value(w, dtype, dims, rank, name, "slice(%s) {starts = [%s], sizes = %s, steps = [%s]}", from, starts, to,
                  steps);
            return;
        }
        break;
    default:
        break;
    }
    operand(w, dtype, dims, rank, constant, name);
}

/* Elementwise work on a value, in place. */
static void epilogue(writer *w, const char *dtype, const extent *dims, uint32_t rank, char *name) {
    char text[200] = "", other[16], before[16];
    bool floats = dtype[0] == 'f';
    shape(text, dims, rank);
    for (uint32_t steps = draw(w, 4); steps > 0; steps--) {
        strcpy(before, name);
        switch (draw(w, floats ? 5 : 3)) {
        case 0: { /* a bias along the last dim */
            char bias[16];
            operand(w, dtype, dims + rank - 1, 1, draw(w, 2), bias);
            value(w, dtype, dims, rank, other, "broadcast(%s) {dims = %s}", bias, text);
            value(w, dtype, dims, rank, name, "add(%s, %s)", before, other);
            break;
        }
        case 1: /* a residual */
            operand(w, dtype, dims, rank, false, other);
            value(w, dtype, dims, rank, name, "add(%s, %s)", other, before);
            break;
        case 2:
            value(w, dtype, dims, rank, name, "mul(%s, %s)", before, before);
            break;
        case 3: /* as gelu does it: one value read twice */
            value(w, dtype, dims, rank, other, "abs(%s)", before);
            value(w, dtype, dims, rank, name, "mul(%s, %s)", other, before);
            break;
        default: {
            char rows[16];
            if (rank < 2) break;
            extent column[2] = {dims[rank - 2], {"1", 1}};
            operand(w, dtype, column, 2, false, rows);
            value(w, dtype, dims, rank, other, "broadcast(%s) {dims = %s}", rows, text);
            value(w, dtype, dims, rank, name, "sub(%s, %s)", before, other);
            break;
        }
        }
    }
}

static void matmul(writer *w) {
    static const char *const dtypes[][3] = {{"f32", "f32", "f32"}, {"f32", "f32", "f32"}, {"f32", "f32", "f32"},
                                            {"f64", "f64", "f64"}, {"u8", "i8", "i32"},   {"i8", "i8", "i32"}};
    const char *const *dtype = dtypes[draw(w, 6)];
    extent batch[2], m, n, k;
    uint32_t batch_rank = draw(w, 3), rank = batch_rank + 2;
    char a[16], b[16], name[16];
    for (uint32_t d = 0; d < batch_rank; d++) batch[d] = pick_extent(w, d ? "C" : "B", draw(w, 2));
    m = pick_extent(w, "M", false);
    k = pick_extent(w, "K", draw(w, 2));
    n = pick_extent(w, "N", draw(w, 2));
    factor(w, dtype[0], batch, batch_rank, m, k, a);
    factor(w, dtype[1], batch, batch_rank, k, n, b);
    extent dims[6];
    for (uint32_t d = 0; d < batch_rank; d++) dims[d] = batch[d];
    dims[rank - 2] = m, dims[rank - 1] = n;
    value(w, dtype[2], dims, rank, name, "matmul(%s, %s) {to = %s}", a, b, dtype[2]);
    epilogue(w, dtype[2], dims, rank, name);
    char before[16], text[200] = "";
    strcpy(before, name);
    uint32_t way = draw(w, 4);
    if (way == 0) { /* rows and columns exchanged */
        extent last = dims[rank - 1];
        char perm[80] = "";
        dims[rank - 1] = dims[rank - 2], dims[rank - 2] = last;
        for (uint32_t d = 0; d < batch_rank; d++) snprintf(perm + strlen(perm), 16, "%u, ", d);
        value(w, dtype[2], dims, rank, name, "transpose(%s) {perm = [%s%u, %u]}", before, perm, rank - 1, rank - 2);
        epilogue(w, dtype[2], dims, rank, name);
    } else if (way == 1 && n.number && n.number % 2 == 0) { /* heads */
        char perm[80] = "", heads[16];
        snprintf(dims[rank - 1].text, sizeof dims[0].text, "2");
        dims[rank - 1].number = 2;
        snprintf(dims[rank].text, sizeof dims[0].text, "%lld", (long long)n.number / 2);
        dims[rank].number = n.number / 2;
        shape(text, dims, rank + 1);
        value(w, dtype[2], dims, rank + 1, heads, "reshape(%s) {dims = %s}", before, text);
        extent rows = dims[rank - 2];
        dims[rank - 2] = dims[rank - 1], dims[rank - 1] = rows;
        for (uint32_t d = 0; d < batch_rank; d++) snprintf(perm + strlen(perm), 16, "%u, ", d);
        value(w, dtype[2], dims, rank + 1, name, "transpose(%s) {perm = [%s%u, %u, %u]}", heads, perm, rank - 1,
              rank - 2, rank);
        epilogue(w, dtype[2], dims, rank + 1, name);
    }
    put(w->body, " return %s\n", name);
}

static void convolution(writer *w) {
    int64_t groups = draw(w, 3) == 0 ? 2 : 1, channels = groups * (1 + draw(w, 4)), made = groups * (1 + draw(w, 20));
    int64_t spatial = 1 + draw(w, 2), strides[2], dilations[2], low[2], high[2], kernel[2], size[2];
    extent x[4], weights[4], y[4];
    char image[16], filter[16], name[16], text[5][60] = {"", "", "", "", ""};
    if (draw(w, 5) == 0) groups = channels = made = 1 + draw(w, 6); /* depthwise */
    x[0] = y[0] = pick_extent(w, "B", false);
    snprintf(x[1].text, 24, "%lld", (long long)channels), x[1].number = channels;
    snprintf(y[1].text, 24, "%lld", (long long)made), y[1].number = made;
    snprintf(weights[0].text, 24, "%lld", (long long)made), weights[0].number = made;
    snprintf(weights[1].text, 24, "%lld", (long long)(channels / groups)), weights[1].number = channels / groups;
    for (int s = 0; s < spatial; s++) {
        kernel[s] = 1 + draw(w, 4), strides[s] = 1 + draw(w, 3), dilations[s] = 1 + draw(w, 2);
        low[s] = draw(w, 3), high[s] = draw(w, 3);
        size[s] = dilations[s] * (kernel[s] - 1) + 2 + draw(w, 30);
        snprintf(x[2 + s].text, 24, "%lld", (long long)size[s]), x[2 + s].number = size[s];
        snprintf(weights[2 + s].text, 24, "%lld", (long long)kernel[s]), weights[2 + s].number = kernel[s];
        int64_t out = (size[s] + low[s] + high[s] - dilations[s] * (kernel[s] - 1) - 1) / strides[s] + 1;
        snprintf(y[2 + s].text, 24, "%lld", (long long)out), y[2 + s].number = out;
        const int64_t numbers[] = {strides[s], dilations[s], low[s], high[s]};
        for (int i = 0; i < 4; i++)
            snprintf(text[i] + strlen(text[i]), 24, "%s%lld", s ? ", " : "", (long long)numbers[i]);
    }
    uint32_t rank = 2 + (uint32_t)spatial;
    operand(w, "f32", x, rank, false, image);
    operand(w, "f32", weights, rank, draw(w, 2), filter);
    value(w, "f32", y, rank, name,
          "conv(%s, %s) {groups = %lld, strides = [%s], dilations = [%s], low = [%s], high = [%s], to = f32}", image,
          filter, (long long)groups, text[0], text[1], text[2], text[3]);
    epilogue(w, "f32", y, rank, name);
    put(w->body, " return %s\n", name);
}

static void write_source(writer *w, uint64_t seed, char *source) {
    w->state = seed * 977 + 5;
    w->values = w->operands = 0;
    w->sizes[0] = w->parameters[0] = w->body[0] = w->constants[0] = 0;
    (void)draw(w, 2);
    if (draw(w, 4) == 0)
        convolution(w);
    else
        matmul(w);
    snprintf(source, SOURCE, "module opset 20\n%s%sgraph \"g\" (%s) {\n%s}\n", w->sizes, w->constants, w->parameters,
             w->body);
}

/* Every group of the module at several sizes. */
static bool check_module(uir_module *module, const uir_machine *machine, const uir_allocator *allocator, uint64_t seed,
                         bool verbose, uint32_t *runs, uint32_t *groups) {
    static const int64_t tried[] = {1, 2, 3, 7}, large[] = {0, 14, 15, 31, 33, 50, 97};
    bool good = true;
    uir_graph_info graph = *uir_graph_get(module, module->main);
    for (uint32_t n = 0; n < graph.nodes.count && good; n++) {
        uir_node_id node = graph.nodes.data[n];
        if (uir_node_get(module, node)->op != UIR_OP_GROUP) continue;
        lower_check c = {.machine = machine, .allocator = allocator, .show = verbose};
        uint32_t symbols = uir_dims_symbol_count(module->dims);
        ++*groups;
        lower_prepare(&c, module, node);
        for (uint64_t round = 0; c.stage == LOWER_FINE && round < 3; round++) {
            int64_t *values = calloc(symbols + 1, sizeof *values);
            writer w = {.state = seed * 31 + round * 7919};
            for (uint32_t s = 0; s < symbols; s++) values[s] = tried[draw(&w, sizeof tried / sizeof *tried)];
            if (symbols)
                values[draw(&w, symbols)] = large[draw(&w, sizeof large / sizeof *large)]; /* interpreters are slow */
            *runs += lower_run(&c, module, node, values, round + 1);
            for (uint32_t s = 0; s < symbols && c.stage != LOWER_FINE; s++)
                fprintf(stderr, "%s = %lld\n", uir_dims_symbol_name(module->dims, (uir_symbol){s}),
                        (long long)values[s]);
            free(values);
        }
        good = c.stage == LOWER_FINE;
        if (!good) fprintf(stderr, "%s: %s\n", lower_stage_name(c.stage), c.message);
        lower_finish(&c);
    }
    return good;
}

int main(int argc, char **argv) {
    static uir_cpu_device cpu[3];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    bool verbose = argc > 1 && !strcmp(argv[argc - 1], "-v");
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 100, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    writer w = {malloc(SOURCE), malloc(SOURCE), malloc(SOURCE), malloc(SOURCE), 0, 0, 0};
    char *source = malloc(SOURCE);
    uint32_t runs = 0, groups = 0, failures = 0;
    uir_diagnostics_init(&d, &allocator);
    if (!w.sizes || !w.parameters || !w.body || !w.constants || !source) return 2;
    if (uir_cpu_describe("generic", &d, &cpu[0]) != UIR_STATUS_OK ||
        uir_cpu_describe("avx512", &d, &cpu[1]) != UIR_STATUS_OK)
        return 2;
    cpu[2] = cpu[0]; /* a core of a small cache */
    for (uint32_t i = 0; i < cpu[2].machine.space_count; i++)
        if (cpu[2].machine.spaces[i].working_set > 128u << 10) cpu[2].machine.spaces[i].working_set = 128u << 10;
    for (uint64_t seed = first; seed < first + count; seed++) {
        uir_module *module = NULL;
        write_source(&w, seed, source);
        uir_status status = uir_module_parse(&allocator, &d, source, strlen(source), "random", NULL, &module);
        if (status == UIR_STATUS_OK) status = uir_fuse(module, NULL, &d);
        bool good = status == UIR_STATUS_OK;
        if (!good) fprintf(stderr, "%s\n", d.first ? d.first->message : "?");
        good = good && check_module(module, &cpu[seed % 3].machine, &allocator, seed, verbose, &runs, &groups);
        if (!good) {
            failures++;
            fprintf(stderr, "seed %llu\n%.3000s\n", (unsigned long long)seed, verbose ? source : "");
        }
        uir_module_destroy(module);
        uir_diagnostics_clear(&d);
    }
    bool few = runs < count;
    printf("%u groups, %u runs%s\n", groups, runs, few ? ": fewer than modules" : "");
    printf("%llu passed, %u failed, 0 skipped\n", (unsigned long long)count - failures, failures + few);
    uir_diagnostics_deinit(&d);
    free(w.sizes), free(w.parameters), free(w.body), free(w.constants), free(source);
    return failures != 0 || few;
}
