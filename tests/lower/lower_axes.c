/* Short axes on every engine: interpreters of primitives, loops and iGraphs, the VM, and compiled code.
 *
 *   test_lower_axes [EVERY]                every EVERYth module of the product: each primitive along each axis in turn
 * at extents 1 to 5 test_lower_axes random COUNT [SEED]    random modules whose axes are short
 *
 * Hundreds of kernels are one object. The first three agree as closely as rounding lets them, the others to the bit. */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/ir/graph/random_graph.h"
#include "tests/backends/cpu/native.h"
#include "tests/lower/axis_modules.h"
#include "tests/lower/harness.h"

#include <stdlib.h>

enum { MODULES = 150, GROUPS = 900, MOST_NODES = 12 };

typedef struct group {
    lower_check check;
    uint32_t module; /* of the batch */
    uir_node_id node;
} group;

typedef struct campaign {
    uir_allocator allocator;
    uir_cpu_device cpu;
    fixture fixtures[MODULES];
    char names[MODULES][80];
    int64_t extents[MODULES]; /* of sizes; 0: drawn */
    group groups[GROUPS];
    uint32_t module_count, group_count;
    uint64_t modules, kernels, objects, runs, without, failed;
} campaign;

static void report_failure(campaign *c, const group *g) {
    if (c->failed++ > 20) return;
    fprintf(stderr, "FAILED: %s: %s: %s\n", c->names[g->module], lower_stage_name(g->check.stage), g->check.message);
    uir_text text;
    uir_text_init(&text, &c->allocator);
    (void)uir_module_print(c->fixtures[g->module].module, 64, &text);
    if (text.data && c->failed < 4) fprintf(stderr, "%s\n", text.data);
    uir_text_deinit(&text);
}

/* What only some dtypes and operations have no kernels for; what has one must be right. */
static bool may_lack_kernel(lower_stage stage) {
    return stage == LOWER_BUILD || stage == LOWER_SCHEDULE || stage == LOWER_KERNEL;
}

static void prepare(campaign *c, uint32_t module) {
    fixture *f = &c->fixtures[module];
    if (uir_fuse(f->module, NULL, &f->diagnostics) != UIR_STATUS_OK) return;
    uint32_t graphs = f->module->graphs.count;
    for (uint32_t i = 1; i < graphs; i++) {
        uir_graph_info graph = *uir_graph_get(f->module, (uir_graph_id){i});
        for (uint32_t n = 0; n < graph.nodes.count && c->group_count < GROUPS; n++) {
            if (uir_node_get(f->module, graph.nodes.data[n])->op != UIR_OP_GROUP) continue;
            group *g = &c->groups[c->group_count];
            *g = (group){.module = module, .node = graph.nodes.data[n]};
            g->check = (lower_check){.machine = &c->cpu.machine, .allocator = &c->allocator, .most = 2000};
            lower_prepare(&g->check, f->module, g->node);
            for (uint32_t k = 0; k < g->check.lowered.igraphs.count && g->check.stage == LOWER_FINE; k++)
                if (uir_igraph_form_runs(g->check.lowered.igraphs.igraphs[k], NULL) != UIR_STATUS_OK)
                    g->check.stage = LOWER_KERNEL;
            if (g->check.stage == LOWER_FINE) {
                c->group_count++;
                continue;
            }
            if (may_lack_kernel(g->check.stage))
                c->without++;
            else
                report_failure(c, g);
            lower_finish(&g->check);
        }
    }
}

static uir_loaded_module *compile(campaign *c) {
    const uir_igraph **kernels = calloc(GROUPS * 8, sizeof *kernels);
    uint32_t count = 0;
    uir_text source;
    uir_diagnostics d;
    uir_loaded_module *module = NULL;
    uir_cpu_compile_options options = {.variant = c->cpu.variant, .extra_flags = "-O1", .timeout_ms = 600000};
    uir_text_init(&source, &c->allocator);
    uir_diagnostics_init(&d, &c->allocator);
    for (uint32_t i = 0; kernels && i < c->group_count; i++) {
        lower_check *check = &c->groups[i].check;
        check->native_first = count;
        for (uint32_t k = 0; k < check->lowered.igraphs.count && count < GROUPS * 8; k++)
            kernels[count++] = check->lowered.igraphs.igraphs[k];
    }
    if (count && (uir_cpu_emit(kernels, count, &source, &d) != UIR_STATUS_OK ||
                  native_compile(&c->allocator, &options, &source, &d, &module) != UIR_STATUS_OK)) {
        fprintf(stderr, "FAILED: %u kernels do not compile: %s\n", count, d.first ? d.first->message : "?");
        c->failed++;
    }
    c->kernels += count;
    c->objects += module != NULL;
    free(kernels);
    uir_text_deinit(&source);
    uir_diagnostics_deinit(&d);
    return module;
}

static void run_group(campaign *c, group *g, uir_loaded_module *native, uint64_t seed) {
    const fixture *f = &c->fixtures[g->module];
    uint32_t symbols = uir_dims_symbol_count(f->module->dims), rounds = c->extents[g->module] ? 1 : 2;
    int64_t *values = calloc(symbols + 1, sizeof *values);
    g->check.native = native;
    for (uint32_t round = 0; values && round < rounds && g->check.stage == LOWER_FINE; round++) {
        for (uint32_t s = 0; s < symbols; s++) {
            uir_symbol_facts facts = uir_dims_symbol_facts(f->module->dims, (uir_symbol){s});
            values[s] = c->extents[g->module] ? c->extents[g->module] : 1 + (int64_t)((seed + s * 3 + round * 2) % 5);
            if (values[s] < facts.min) values[s] = facts.min;
            if (values[s] > facts.max) values[s] = facts.max;
        }
        c->runs += lower_run(&g->check, f->module, g->node, values, seed + round);
    }
    free(values);
    if (g->check.stage != LOWER_FINE) report_failure(c, g);
}

static void finish_batch(campaign *c) {
    uir_loaded_module *native = compile(c);
    for (uint32_t i = 0; i < c->group_count; i++) {
        if (native) run_group(c, &c->groups[i], native, c->modules * 1000 + i);
        lower_finish(&c->groups[i].check);
    }
    native_unload(native);
    for (uint32_t i = 0; i < c->module_count; i++) fixture_close(&c->fixtures[i]);
    c->modules += c->module_count;
    c->module_count = c->group_count = 0;
}

static void add_module(campaign *c) {
    prepare(c, c->module_count++);
    if (c->module_count == MODULES || c->group_count + 4 * MOST_NODES > GROUPS) finish_batch(c);
}

int main(int argc, char **argv) {
    static campaign c;
    static generator random;
    uir_diagnostics d;
    bool draws = argc > 1 && !strcmp(argv[1], "random");
    c.allocator = uir_allocator_system();
    uir_diagnostics_init(&d, &c.allocator);
    if (uir_cpu_describe(NULL, &d, &c.cpu) != UIR_STATUS_OK) {
        fprintf(stderr, "%s\n", d.first->message);
        return 2;
    }
    if (!c.cpu.runs_here) {
        printf("skip: this machine does not run %s\n0 passed, 0 failed, 1 skipped\n", c.cpu.machine.chip);
        return 0;
    }
    if (draws) {
        uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100,
                 seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
        for (uint64_t i = 0; i < count; i++) {
            fixture *f = &c.fixtures[c.module_count];
            snprintf(c.names[c.module_count], sizeof c.names[0], "seed %llu", (unsigned long long)(seed + i));
            c.extents[c.module_count] = 0;
            fixture_open(f);
            generate_short_module(&random, f, seed + i, 3 + (uint32_t)((seed + i) % (MOST_NODES - 3)));
            add_module(&c);
        }
    } else {
        uint32_t every = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1, total = axis_module_count();
        for (uint32_t i = 0; every && i < total; i += every) {
            fixture *f = &c.fixtures[c.module_count];
            fixture_open(f);
            if (axis_module_build(f, i, &c.extents[c.module_count], c.names[c.module_count], sizeof c.names[0]))
                add_module(&c);
            else
                fixture_close(f);
        }
    }
    if (c.module_count) finish_batch(&c);
    printf("%llu modules, %llu kernels in %llu objects, %llu runs; %llu groups without a kernel\n",
           (unsigned long long)c.modules, (unsigned long long)c.kernels, (unsigned long long)c.objects,
           (unsigned long long)c.runs, (unsigned long long)c.without);
    bool few = c.kernels * 2 < c.modules;
    if (few) fprintf(stderr, "FAILED: fewer than a kernel for two modules\n");
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)c.runs, (unsigned long long)(c.failed + few));
    uir_diagnostics_deinit(&d);
    return c.failed || few;
}
