/* The groups of a model: the fused module's text, or a table.
 *
 *   uir-print-groups MODEL.onnx [--text] [--on REWRITE] [--off REWRITE]...
 *
 * Without --text: a line per group (the ONNX node it is called after, its ops, bytes are not known here), then how many
 * groups and other nodes there are and how often each rewrite fired. */
#include "decompose/decompose.h"
#include "passes/passes.h"
#include "frontend/frontend.h"
#include "fusion/fusion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const char *path;
    bool text;
    uir_fusion_options fusion;
    uint64_t fired[UIR_FUSION_REWRITE_COUNT];
} settings;

static uint32_t rewrite_bit(const char *name) {
    for (int r = 0; r < UIR_FUSION_REWRITE_COUNT; r++)
        if (!strcmp(uir_fusion_rewrite_name(r), name)) return 1u << r;
    return 0;
}

static bool read_arguments(int argc, char **argv, settings *s) {
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--text"))
            s->text = true;
        else if (!strcmp(argv[i], "--on") && i + 1 < argc)
            s->fusion.rewrites_on |= rewrite_bit(argv[++i]);
        else if (!strcmp(argv[i], "--off") && i + 1 < argc)
            s->fusion.rewrites_off |= rewrite_bit(argv[++i]);
        else
            s->path = argv[i];
    }
    return s->path;
}

static void print_group(const uir_module *module, const uir_node_info *node) {
    const uir_attribute *body = uir_node_find_attribute(module, node, "body");
    const uir_graph_info *graph = uir_graph_get(module, body->value.graph);
    uir_location location = uir_node_location(module, node);
    printf("  group %u -> %u  %s:", node->input_count, node->output_count, location.node ? location.node : "");
    const char *last = "";
    uint32_t times = 0;
    for (uint32_t i = 0; i <= graph->nodes.count; i++) {
        const char *name = i < graph->nodes.count ? uir_op_name(uir_node_get(module, graph->nodes.data[i])->op) : NULL;
        if (name && !strcmp(name, last)) {
            times++;
            continue;
        }
        if (times > 1) printf("*%u", times);
        if (name) printf(" %s", name);
        last = name;
        times = 1;
    }
    printf("\n");
}

static void print_table(const uir_module *module, const settings *s) {
    uint32_t groups = 0, nodes = 0, others = 0;
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = &module->graphs.data[g];
        const char *name = uir_string_text(&module->strings, graph->name);
        if (!strncmp(name, "group_", 6)) {
            nodes += graph->nodes.count;
            continue;
        }
        printf("graph %s\n", name);
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            if (node->op == UIR_OP_GROUP) {
                groups++;
                print_group(module, node);
            } else {
                others++;
                printf("  %s %s\n", uir_op_name(node->op), uir_string_text(&module->strings, node->name));
            }
        }
    }
    printf("%s: %u groups of %u nodes, %u others\n", s->path, groups, nodes, others);
    for (int r = 0; r < UIR_FUSION_REWRITE_COUNT; r++)
        printf("%s%s %llu", r ? ", " : "", uir_fusion_rewrite_name(r), (unsigned long long)s->fired[r]);
    printf("\n");
}

static uir_status run(settings *s, const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_arena *arena,
                      uir_module **onnx, uir_module **module) {
    uir_onnx_info info;
    uir_onnx_source source = {.path = s->path, .is_supported = uir_decompose_has_rule};
    UIR_TRY(uir_onnx_load(&source, allocator, diagnostics, arena, &info, onnx));
    UIR_TRY(uir_decompose(*onnx, allocator, diagnostics, module));
    UIR_TRY(uir_passes_run(*module, uir_cleanup_passes, uir_cleanup_pass_count, NULL));
    s->fusion.fired = s->fired;
    UIR_TRY(uir_fuse(*module, &s->fusion, diagnostics));
    UIR_TRY(uir_module_verify(*module, diagnostics));
    if (!s->text) {
        print_table(*module, s);
        return UIR_STATUS_OK;
    }
    uir_text text;
    uir_text_init(&text, allocator);
    uir_status status = uir_module_print(*module, 16, &text);
    if (status == UIR_STATUS_OK) fwrite(text.data, 1, text.length, stdout);
    uir_text_deinit(&text);
    return status;
}

int main(int argc, char **argv) {
    static settings s;
    if (!read_arguments(argc, argv, &s)) {
        fprintf(stderr, "uir-print-groups MODEL.onnx [--text] [--on REWRITE] [--off REWRITE]...\n");
        return 2;
    }
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_module *onnx = NULL, *module = NULL;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_arena_init(&arena, &allocator);
    uir_status status = run(&s, &allocator, &diagnostics, &arena, &onnx, &module);
    char message[2048];
    for (const uir_diagnostic *d = diagnostics.first; d; d = d->next) {
        uir_diagnostic_format(d, message, sizeof message);
        fprintf(stderr, "%s\n", message);
    }
    uir_module_destroy(onnx);
    uir_module_destroy(module);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    return status != UIR_STATUS_OK;
}
