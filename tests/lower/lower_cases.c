/* Groups in text through lowering at many sizes.
 *
 *   test_lower_cases [-v] [-a] [-n ROUNDS] [-w WORK] [-e EVERY] [NAME]...
 *
 * -n ROUNDS  of drawn sizes, of each group (14)
 * -e EVERY   every EVERY-th case (1)
 * -w WORK    most executions of blocks in one round: sizes beyond are replaced by smaller ones of the list (any)
 */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct group_case {
    const char *name, *sizes, *body;
} group_case;

static const group_case cases[] = {
#define CASE(name, sizes, body) {name, sizes, body},
#include "tests/lower/cases.def"
};
static const group_case long_cases[] = {
#include "tests/lower/long_cases.def"
#undef CASE
};

static const int64_t tried[] = {1, 2, 3, 7, 0, 31, 32, 33, 64, 65, 129, 17, 257};
enum { TRIED = sizeof tried / sizeof *tried };

/* Replaces the largest size by the next smaller one that is tried. False: no size is left to be replaced. */
static bool shrink(const uir_dims *dims, int64_t *values, uint32_t symbols) {
    uint32_t largest = 0;
    for (uint32_t s = 1; s < symbols; s++)
        if (values[s] > values[largest]) largest = s;
    int64_t next = symbols ? uir_dims_symbol_facts(dims, (uir_symbol){largest}).min : 0;
    for (uint32_t i = 0; symbols && i < TRIED; i++)
        if (tried[i] < values[largest] && tried[i] > next) next = tried[i];
    if (!symbols || next >= values[largest]) return false;
    values[largest] = next;
    return true;
}

static int check_case(const group_case *of, const uir_machine *machine, bool verbose, bool all, int rounds,
                      double work) {
    static char source[8000];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_module *module = NULL;
    int failures = 0;
    snprintf(source, sizeof source, "module opset 20\n%s\ngraph \"g\" %s\n", of->sizes, of->body);
    uir_diagnostics_init(&d, &allocator);
    uir_status status = uir_module_parse(&allocator, &d, source, strlen(source), of->name, NULL, &module);
    if (status == UIR_STATUS_OK) status = uir_fuse(module, NULL, &d);
    if (status != UIR_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", of->name, d.first ? d.first->message : "?");
        return 1;
    }
    uir_graph_info graph = *uir_graph_get(module, module->main);
    for (uint32_t n = 0; n < graph.nodes.count; n++) {
        uir_node_id node = graph.nodes.data[n];
        if (uir_node_get(module, node)->op != UIR_OP_GROUP) continue;
        lower_check c = {
            .machine = machine, .allocator = &allocator, .show = verbose, .show_all = all, .most_work = work};
        lower_prepare(&c, module, node);
        uint32_t symbols = uir_dims_symbol_count(module->dims), runs = 0;
        for (int round = 0; c.stage == LOWER_FINE && round < rounds; round++) {
            int64_t *values = calloc(symbols + 1, sizeof *values);
            uint64_t state = (uint64_t)round * 7919 + 13;
            for (uint32_t s = 0; s < symbols; s++) {
                uir_symbol_facts facts = uir_dims_symbol_facts(module->dims, (uir_symbol){s});
                state = state * 6364136223846793005u + 1442695040888963407u;
                values[s] = round < TRIED && s == 0 ? tried[round] : tried[(state >> 33) % TRIED];
                if (values[s] < facts.min) values[s] = facts.min;
                if (values[s] > facts.max) values[s] = facts.max;
            }
            bool ran = lower_run(&c, module, node, values, (uint64_t)round + 1);
            while (work > 0 && !ran && c.stage == LOWER_FINE) {
                bool smaller = shrink(module->dims, values, symbols);
                if (!smaller) c.most_work = 0; /* its least sizes run whatever they take */
                ran = lower_run(&c, module, node, values, (uint64_t)round + 1);
                c.most_work = work;
                if (!smaller) break;
            }
            runs += ran;
            if (c.stage != LOWER_FINE) {
                fprintf(stderr, "%s at", of->name);
                for (uint32_t s = 0; s < symbols; s++)
                    fprintf(stderr, " %s=%lld", uir_dims_symbol_name(module->dims, (uir_symbol){s}),
                            (long long)values[s]);
                fprintf(stderr, "\n");
                if (verbose)
                    for (uint32_t i = 0; i < c.lowered.igraphs.count; i++) {
                        uir_text text;
                        uir_text_init(&text, &allocator);
                        uir_loop_print(c.lowered.scheduled.variants[i].function, &text);
                        uir_igraph_print(c.lowered.igraphs.igraphs[i], &text);
                        fprintf(stderr, "%s\n", text.data);
                        uir_text_deinit(&text);
                    }
            }
            free(values);
        }
        printf("%-28s %-16s %u variants, %u runs of %u  %s\n", of->name, lower_stage_name(c.stage),
               c.lowered.igraphs.count, c.ran, runs, c.message);
        if (c.stage != LOWER_FINE || !runs) failures++;
        lower_finish(&c);
    }
    uir_module_destroy(module);
    uir_diagnostics_deinit(&d);
    return failures;
}

int main(int argc, char **argv) {
    uir_diagnostics d;
    uir_allocator allocator = uir_allocator_system();
    static uir_cpu_device cpu;
    bool verbose = false, all = false, named = false;
    int failures = 0, rounds = 14, every = 1, groups = 0;
    double work = 0;
    uir_diagnostics_init(&d, &allocator);
    if (uir_cpu_describe(getenv("UIR_CPU") ? NULL : "generic", &d, &cpu) != UIR_STATUS_OK) {
        fprintf(stderr, "%s\n", d.first->message);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v"))
            verbose = true;
        else if (!strcmp(argv[i], "-a"))
            all = verbose = true;
        else if (!strcmp(argv[i], "-n") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-w") && i + 1 < argc)
            work = atof(argv[++i]);
        else if (!strcmp(argv[i], "-e") && i + 1 < argc)
            every = atoi(argv[++i]);
        else
            named = true;
    }
    const size_t count = sizeof cases / sizeof *cases, all_count = count + sizeof long_cases / sizeof *long_cases;
    for (size_t k = 0; k < all_count && every > 0; k += (size_t)every) {
        const group_case *of = k < count ? &cases[k] : &long_cases[k - count];
        bool wanted = !named;
        for (int i = 1; i < argc; i++) wanted = wanted || !strcmp(argv[i], of->name);
        if (!wanted) continue;
        failures += check_case(of, &cpu.machine, verbose, all, k < count ? rounds : 1, k < count ? work : 0);
        groups++;
    }
    if (!groups) fprintf(stderr, "there is no such case\n");
    printf("%d passed, %d failed, 0 skipped\n", failures < groups ? groups - failures : 0, failures + !groups);
    return failures != 0 || !groups;
}
