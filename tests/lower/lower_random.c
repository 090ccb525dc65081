/* The campaign of lowering: random modules made to mislead fusion, fused, and every group through all the stages of
 * lowering, each held against the one before it.
 *
 *   test_lower_random [COUNT] [SEED] [-v] [-p]
 *
 * -p: prints the modules, fused, and does nothing else.
 *
 * The graph's interpreter takes a group's nodes one by one, each rounded and stored: the group unfused. Beside the
 * tactics' schedules, steps are taken at random on each group's naive loops. A group may have no kernel (build says
 * UNSUPPORTED); what has one must be right. Tables tell how many groups came how far, and how often each rewrite and
 * each schedule primitive fired: 50 times in the whole campaign of 5000, in proportion in a shorter one. */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/fusion/random_fusion.h"
#include "tests/ir/graph/random_graph.h"
#include "tests/lower/harness.h"
#include "tests/lower/schedule/random_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps of a trace: the words that a line begins with; of `mark`, the kind that follows `as`. */
typedef struct step_row {
    const char *words, *kind;
    bool tactical; /* some tactic of nests or contractions takes it */
} step_row;

static const step_row step_rows[] = {
    {"split ", NULL, true},
    {"fuse ", NULL, false},
    {"reorder ", NULL, true},
    {"merge ", NULL, true},
    {"mark ", "parallel", true},
    {"mark ", "vectorised", true},
    {"mark ", "unrolled", false},
    {"mark ", "bound group", false},
    {"inline ", NULL, true},
    {"reverse inline ", NULL, false},
    {"compute ", NULL, true},
    {"reverse compute ", NULL, false},
    {"rfactor ", NULL, true},
    {"shrink ", NULL, true},
    {"annotate ", NULL, false},
    {"set scope of ", NULL, true},
    {"cache read of ", NULL, false},
    {"cache write of ", NULL, false},
    {"extend ", NULL, false},
    {"move ", NULL, false},
    {"pad dim ", NULL, true},
    {"arrange ", NULL, true},
    {"set layout of ", NULL, true},
    {"cache operand ", NULL, true},
    {"exchange ", NULL, false},
    {"leave out ", NULL, false},
    {"classify", NULL, true},
    {"map ", NULL, true},
    {"use ", NULL, true},
};
enum { STEP_ROWS = sizeof step_rows / sizeof *step_rows };

typedef struct campaign {
    uint64_t fired[UIR_FUSION_REWRITE_COUNT];
    uint64_t by_tactics[STEP_ROWS], at_random[STEP_ROWS];
    uint64_t stages[LOWER_FINE + 1];
    uint64_t groups, ran, wrong;
    bool verbose, prints;
    const uir_machine *machine;
} campaign;

static void count_steps(const uir_text *trace, uint64_t *counts) {
    for (const char *line = trace->data; line && *line;) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        for (int r = 0; r < STEP_ROWS; r++) {
            const step_row *row = &step_rows[r];
            size_t words = strlen(row->words), kind = row->kind ? strlen(row->kind) : 0;
            if (length < words + kind || strncmp(line, row->words, words) != 0) continue;
            counts[r] += !row->kind || !strncmp(line + length - kind, row->kind, kind);
        }
        line = end ? end + 1 : NULL;
    }
}

/* Too few of something: 50 in 5000 modules. */
static int print_fired(const campaign *c, uint64_t modules) {
    uint64_t least = modules * 50 / 5000;
    int few = 0;
    for (int r = 0; r < UIR_FUSION_REWRITE_COUNT; r++) {
        bool enough = c->fired[r] >= least;
        printf("rewrite %-18s %8llu%s\n", uir_fusion_rewrite_name(r), (unsigned long long)c->fired[r],
               enough ? "" : "  too few");
        few += !enough;
    }
    printf("step                       by tactics  at random\n");
    for (int r = 0; r < STEP_ROWS; r++) {
        const step_row *row = &step_rows[r];
        bool enough = c->by_tactics[r] + c->at_random[r] >= least && (!row->tactical || c->by_tactics[r] >= least);
        printf("  %s%-*s %10llu %10llu%s\n", row->words, 24 - (int)strlen(row->words), row->kind ? row->kind : "",
               (unsigned long long)c->by_tactics[r], (unsigned long long)c->at_random[r], enough ? "" : "  too few");
        few += !enough;
    }
    return few;
}

static void show_module(const uir_module *module) {
    uir_text text;
    uir_text_init(&text, module->allocator);
    (void)uir_module_print(module, 64, &text);
    printf("%s\n", text.data ? text.data : "");
    uir_text_deinit(&text);
}

static void show(const uir_loop_function *f) {
    uir_text text;
    uir_text_init(&text, &f->allocator);
    uir_loop_print(f, &text);
    printf("%s\n", text.data ? text.data : "");
    uir_text_deinit(&text);
}

/* Modules that know every op and dtype hold some that the machine has no instruction for; two contractions in one group
 * want a shape of attention that has a kernel. All else is computed. */
static bool may_be_refused(lower_stage stage, uint64_t seed) {
    bool odd = seed % 4 == 3 || seed % 8 == 0;
    return stage == LOWER_BUILD || ((stage == LOWER_SCHEDULE || stage == LOWER_KERNEL) && odd);
}

static void check_group(campaign *c, uir_module *module, uir_node_id node, uint64_t seed) {
    uir_allocator allocator = uir_allocator_system();
    static const int64_t tried[] = {1, 2, 3, 0, 4, 5, 7, 8, 17};
    lower_check check = {.machine = c->machine, .allocator = &allocator, .show = c->verbose, .most = 1000};
    uir_diagnostics said;
    uir_text trace;
    lower_prepare(&check, module, node);
    uir_diagnostics_init(&said, &allocator);
    uir_text_init(&trace, &allocator);
    count_steps(&check.lowered.steps, c->by_tactics);
    if (check.stage == LOWER_FINE) {
        check.steps = random_steps(check.lowered.naive, c->machine, seed * 97 + node.id, &said, &trace);
        if (!check.steps) {
            check.stage = LOWER_VERIFY_SCHEDULED;
            snprintf(check.message, sizeof check.message, "after steps at random: %s",
                     said.first ? said.first->message : "?");
        }
    }
    count_steps(&trace, c->at_random);
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
        const uir_node_info *info = uir_node_get(module, node);
        const uir_graph_info *body = uir_graph_get(module, uir_node_find_attribute(module, info, "body")->value.graph);
        bool wrong = !may_be_refused(check.stage, seed);
        c->wrong += wrong;
        if (wrong || c->verbose) {
            printf("seed %llu, %s:", (unsigned long long)seed, lower_stage_name(check.stage));
            for (uint32_t n = 0; n < body->nodes.count; n++)
                printf(" %s", uir_op_name(uir_node_get(module, body->nodes.data[n])->op));
            printf("\n    %s\n", check.message);
            if (wrong) show_module(module);
            if (wrong && trace.data) printf("steps at random:\n%s", trace.data);
            if (wrong && check.steps) show(check.lowered.naive), show(check.steps);
        }
    }
    uir_loop_function_destroy(check.steps);
    uir_text_deinit(&trace);
    uir_diagnostics_deinit(&said);
    lower_finish(&check);
}

static void check_module(campaign *c, uint64_t seed) {
    static fusion_generator misleading;
    static generator general; /* knows every op */
    fixture f;
    fixture_open(&f);
    if (seed % 4 == 3)
        generate_module(&general, &f, seed, 4 + (uint32_t)(seed % 13));
    else
        fusion_generate(&misleading, &f, seed);
    uir_fusion_options options = {.fired = c->fired};
    if (seed % 8 == 0) options.rewrites_on = ~0u; /* those too that do not run unless asked for */
    bool fused = uir_fuse(f.module, &options, &f.diagnostics) == UIR_STATUS_OK;
    if (fused && c->prints) {
        show_module(f.module);
    } else if (fused) {
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
    campaign c = {.machine = &cpu.machine};
    uint64_t count = 100, seed = 1;
    int numbers = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    uir_diagnostics_init(&d, &allocator);
    if (uir_cpu_describe("generic", &d, &cpu) != UIR_STATUS_OK) return 2;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v"))
            c.verbose = true;
        else if (!strcmp(argv[i], "-p"))
            c.prints = true;
        else if (numbers++ == 0)
            count = strtoull(argv[i], NULL, 10);
        else
            seed = strtoull(argv[i], NULL, 10);
    }
    for (uint64_t i = 0; i < count; i++) check_module(&c, seed + i);
    if (c.prints) return 0;
    printf("%llu groups, %llu runs\n", (unsigned long long)c.groups, (unsigned long long)c.ran);
    for (int s = 0; s <= LOWER_FINE; s++)
        if (c.stages[s]) printf("  %-18s %llu\n", lower_stage_name((lower_stage)s), (unsigned long long)c.stages[s]);
    bool rare = print_fired(&c, count) != 0;
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(c.groups - c.wrong),
           (unsigned long long)(c.wrong + rare));
    return rare || c.wrong != 0;
}
