/* The campaign of lowering: random modules made to mislead fusion, fused, and every group through all the stages of
 * lowering, each held against the one before it.
 *
 *   test_lower_random [COUNT] [SEED] [-v]
 *
 * A group may have no kernel (build or schedule say UNSUPPORTED); what has one must be right. A table tells how many
 * groups came how far. */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/fusion/random_fusion.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct campaign {
    uint64_t stages[LOWER_FINE + 1];
    uint64_t groups, ran, wrong;
    bool verbose;
    const uir_device *device;
} campaign;

static bool may_be_refused(lower_stage stage) {
    return stage == LOWER_BUILD;
}

static void check_group(campaign *c, uir_module *module, uir_node_id node, uint64_t seed) {
    uir_allocator allocator = uir_allocator_system();
    static const int64_t tried[] = {1, 2, 3, 0, 4, 5, 7, 8, 17};
    lower_check check = {.device = c->device, .allocator = &allocator, .show = c->verbose, .most = 1000};
    lower_prepare(&check, module, node);
    uint32_t symbols = uir_dims_symbol_count(module->dims);
    int64_t *values = calloc(symbols + 1, sizeof *values);
    for (int round = 0; check.stage == LOWER_FINE && round < 2; round++) {
        for (uint32_t s = 0; s < symbols; s++) {
            uir_symbol_facts facts = uir_dims_symbol_facts(module->dims, (uir_symbol){s});
            values[s] = tried[(seed * 7 + s * 3 + (uint64_t)round) % (sizeof tried / sizeof *tried)];
            if (values[s] < facts.min) values[s] = facts.min;
            if (values[s] > facts.max) values[s] = facts.max;
        }
        c->ran += lower_run(&check, module, node, values, seed + (uint64_t)round);
    }
    free(values);
    c->groups++;
    c->stages[check.stage]++;
    if (check.stage != LOWER_FINE) {
        bool wrong = !may_be_refused(check.stage);
        c->wrong += wrong;
        if (wrong || c->verbose) {
            const uir_node_info *info = uir_node_get(module, node);
            const uir_graph_info *body =
                uir_graph_get(module, uir_node_find_attribute(module, info, "body")->value.graph);
            printf("seed %llu, %s:", (unsigned long long)seed, lower_stage_name(check.stage));
            for (uint32_t n = 0; n < body->nodes.count; n++)
                printf(" %s", uir_op_name(uir_node_get(module, body->nodes.data[n])->op));
            printf("\n    %s\n", check.message);
        }
    }
    lower_finish(&check);
}

static void check_module(campaign *c, uint64_t seed) {
    static fusion_generator generator;
    fixture f;
    fixture_open(&f);
    fusion_generate(&generator, &f, seed);
    if (uir_fuse(f.module, NULL, &f.diagnostics) == UIR_STATUS_OK) {
        uint32_t graphs = f.module->graphs.count;
        for (uint32_t g = 1; g < graphs; g++) {
            uir_graph_info graph = *uir_graph_get(f.module, (uir_graph_id){g});
            for (uint32_t n = 0; n < graph.nodes.count; n++)
                if (uir_node_get(f.module, graph.nodes.data[n])->op == UIR_OP_GROUP)
                    check_group(c, f.module, graph.nodes.data[n], seed);
        }
    }
    fixture_close(&f);
}

int main(int argc, char **argv) {
    static uir_cpu_device cpu;
    uir_diagnostics d;
    uir_allocator allocator = uir_allocator_system();
    campaign c = {.device = &cpu.device};
    uint64_t count = 100, seed = 1;
    int numbers = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    uir_diagnostics_init(&d, &allocator);
    if (uir_cpu_describe("generic", &d, &cpu) != UIR_STATUS_OK) return 2;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v"))
            c.verbose = true;
        else if (numbers++ == 0)
            count = strtoull(argv[i], NULL, 10);
        else
            seed = strtoull(argv[i], NULL, 10);
    }
    for (uint64_t i = 0; i < count; i++) check_module(&c, seed + i);
    printf("%llu groups, %llu runs\n", (unsigned long long)c.groups, (unsigned long long)c.ran);
    for (int s = 0; s <= LOWER_FINE; s++)
        if (c.stages[s]) printf("  %-18s %llu\n", lower_stage_name((lower_stage)s), (unsigned long long)c.stages[s]);
    return c.wrong != 0;
}
