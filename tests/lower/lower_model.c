/* Every group of a model through lowering.
 *
 *   uir-lower-model MODEL.onnx [-v] [-run] [-k KIND]
 *
 * A line per group that fails (its ops, the stage, why), then a table: how many groups of each kind there are and how
 * many got verified kernels. -run: also runs those that did, at small sizes. -v: prints the texts of failures. */
#include "backends/cpu/target/cpu.h"
#include "tests/lower/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const char *path, *only;
    bool verbose, run, all;
    uint32_t tried, fine, traced, untraced;
} settings;

static const char *kind_of(const uir_module *module, const uir_graph_info *body) {
    const char *kind = "trivial";
    for (uint32_t n = 0; n < body->nodes.count; n++) {
        const uir_op_row *row = uir_op_get_row(uir_node_get(module, body->nodes.data[n])->op);
        if (row->traits & UIR_TRAIT_CONTRACTION) return "contraction";
        if (row->traits & UIR_TRAIT_REDUCTION) kind = "reduce";
    }
    return kind;
}

static void print_ops(const uir_module *module, const uir_graph_info *body) {
    const char *last = "";
    for (uint32_t n = 0; n < body->nodes.count; n++) {
        const char *name = uir_op_name(uir_node_get(module, body->nodes.data[n])->op);
        if (strcmp(name, last)) printf(" %s", name);
        last = name;
    }
}

static void lower_graph(settings *s, uir_module *module, uir_graph_id id, const uir_machine *machine,
                        const uir_allocator *allocator) {
    uir_graph_info graph = *uir_graph_get(module, id);
    for (uint32_t n = 0; n < graph.nodes.count; n++) {
        uir_node_info node = *uir_node_get(module, graph.nodes.data[n]);
        if (node.op != UIR_OP_GROUP) continue;
        uir_graph_info body = *uir_graph_get(module, uir_node_find_attribute(module, &node, "body")->value.graph);
        const char *kind = kind_of(module, &body);
        if (s->only && strcmp(kind, s->only)) continue;
        lower_check c = {.machine = machine, .allocator = allocator, .show = s->verbose, .show_all = s->all};
        lower_prepare(&c, module, graph.nodes.data[n]);
        if (c.stage == LOWER_FINE && s->run) (void)lower_run_small(&c, module, graph.nodes.data[n]);
        s->tried++;
        s->fine += c.stage == LOWER_FINE;
        for (uint32_t i = 0; i < c.lowered.scheduled.count; i++)
            *(c.lowered.scheduled.variants[i].trace.length ? &s->traced : &s->untraced) += 1;
        bool failed = c.stage != LOWER_FINE;
        if (failed || s->all) {
            uir_location location = uir_node_location(module, &node);
            printf("%-11s %-16s %s:", kind, lower_stage_name(c.stage), location.node ? location.node : "");
            print_ops(module, &body);
            printf("\n      %s\n", c.message);
            if (failed && s->verbose && c.stage >= LOWER_RUN_NAIVE)
                for (uint32_t i = 0; i < c.lowered.igraphs.count; i++) {
                    uir_text text;
                    uir_text_init(&text, allocator);
                    uir_igraph_print(c.lowered.igraphs.igraphs[i], &text);
                    printf("%s\n", text.data);
                    uir_text_deinit(&text);
                }
        }
        lower_finish(&c);
    }
}

int main(int argc, char **argv) {
    settings s = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v"))
            s.verbose = true;
        else if (!strcmp(argv[i], "-a"))
            s.all = true;
        else if (!strcmp(argv[i], "-run"))
            s.run = true;
        else if (!strcmp(argv[i], "-k") && i + 1 < argc)
            s.only = argv[++i];
        else
            s.path = argv[i];
    }
    if (!s.path) return 2;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_module *onnx = NULL, *module = NULL;
    static uir_cpu_device cpu;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_arena_init(&arena, &allocator);
    uir_status status = uir_cpu_describe("generic", &diagnostics, &cpu);
    if (status == UIR_STATUS_OK) status = lower_load(s.path, &allocator, &diagnostics, &arena, &onnx, &module);
    char message[2048];
    for (const uir_diagnostic *d = diagnostics.first; d; d = d->next) {
        uir_diagnostic_format(d, message, sizeof message);
        fprintf(stderr, "%s\n", message);
    }
    if (status == UIR_STATUS_OK) {
        uint32_t graphs = module->graphs.count;
        for (uint32_t g = 1; g < graphs; g++) lower_graph(&s, module, (uir_graph_id){g}, &cpu.machine, &allocator);
        printf("%s: %u groups, %u lowered; traces of %u variants replay, %u have none\n", s.path, s.tried, s.fine,
               s.traced, s.untraced);
    }
    uir_module_destroy(module);
    uir_module_destroy(onnx);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    return status != UIR_STATUS_OK || s.fine != s.tried;
}
