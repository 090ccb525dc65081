/* What each rewrite makes and what each clause forbids: the fused graph as a line, "{ops of a group} op ...", and lines
 * that its traces must have. */
#include "fusion/fusion.h"
#include "tests/base/support.h"

#include <stdio.h>
#include <string.h>

typedef struct fusion_case {
    const char *name, *graph, *expected, *trace; /* trace: NULL, or a line of some group's */
    uint32_t most_operands;
    uint64_t chip; /* bytes; 0: no device */
} fusion_case;

static const fusion_case cases[] = {
#include "tests/fusion/cases.def"
};

static void print_body(const uir_module *module, const uir_node_info *group, uir_text *text) {
    const uir_graph_info *body = uir_graph_get(module, uir_node_find_attribute(module, group, "body")->value.graph);
    uint32_t times = 0;
    for (uint32_t i = 0; i < body->nodes.count; i++) {
        uir_op op = uir_node_get(module, body->nodes.data[i])->op;
        bool again = i + 1 < body->nodes.count && uir_node_get(module, body->nodes.data[i + 1])->op == op;
        times++;
        if (again) continue;
        uir_text_append_format(text, "%s%s", text->data[text->length - 1] == '{' ? "" : " ", uir_op_name(op));
        if (times > 1) uir_text_append_format(text, "*%u", times);
        times = 0;
    }
}

static void print_line(const uir_module *module, uir_text *text) {
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
        uir_text_append_format(text, "%s%s", n ? " " : "", node->op == UIR_OP_GROUP ? "{" : uir_op_name(node->op));
        if (node->op != UIR_OP_GROUP) continue;
        print_body(module, node, text);
        uir_text_append_format(text, "}");
    }
}

static bool has_trace(const uir_module *module, const char *line) {
    for (uint32_t n = 1; n < module->nodes.count; n++) {
        const uir_attribute *trace = uir_node_find_attribute(module, &module->nodes.data[n], "trace");
        for (uint32_t i = 0; trace && i < trace->count; i++)
            if (!strcmp(uir_string_text(&module->strings, trace->value.strings[i]), line)) return true;
    }
    return false;
}

static void check_case(const fusion_case *c) {
    char source[3000];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_text text;
    uir_machine machine = {.name = "test", .spaces = {{.name = "sram", .capacity = c->chip}}, .space_count = 1};
    uir_fusion_options options = {.machine = c->chip ? &machine : NULL, .most_operands = c->most_operands};
    snprintf(source, sizeof source, "module opset 20\nsize N\nsize M\nsize P min 1000\nsize r\n%s\n", c->graph);
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&text, &allocator);
    uir_status status = uir_module_parse(&allocator, &diagnostics, source, strlen(source), c->name, NULL, &module);
    if (status == UIR_STATUS_OK) status = uir_module_verify(module, &diagnostics);
    if (status == UIR_STATUS_OK) status = uir_fuse(module, &options, &diagnostics);
    if (status == UIR_STATUS_OK) status = uir_module_verify(module, &diagnostics);
    if (diagnostics.first) print_error("%s: %s\n", c->name, diagnostics.first->message);
    assert_int_equal(status, UIR_STATUS_OK);
    print_line(module, &text);
    if (strcmp(text.data, c->expected)) print_error("%s:\n  %s\n", c->name, text.data);
    assert_string_equal(text.data, c->expected);
    if (c->trace && !has_trace(module, c->trace)) fail_msg("%s: no trace says '%s'", c->name, c->trace);
    uir_text_deinit(&text);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
}

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

/* Fused once, a module stays as it is. */
static void test_twice(void **state) {
    (void)state;
    const char *source = "module opset 20\ngraph \"g\" (%x: f32[4]) {\n %y: f32[4] = exp(%x)\n return %y\n}\n";
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_diagnostics_init(&diagnostics, &allocator);
    assert_int_equal(uir_module_parse(&allocator, &diagnostics, source, strlen(source), "twice", NULL, &module), 0);
    assert_int_equal(uir_fuse(module, NULL, &diagnostics), UIR_STATUS_OK);
    uint32_t nodes = module->nodes.count;
    assert_int_equal(uir_fuse(module, NULL, &diagnostics), UIR_STATUS_OK);
    assert_int_equal(module->nodes.count, nodes);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
}

/* Nodes become one group wherever in a large graph they stand. */
static void test_large_graph(void **state) {
    (void)state;
    enum { FIRST = 4090, LAST = FIRST + 12, LENGTH = LAST + 6 };
    const char *const scan = "scan_sum", *const how = " {axis = 0, exclusive = 0, reverse = 0}";
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_text source;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&source, &allocator);
    uir_text_append_string(&source, "module opset 20\ngraph \"g\" (%v0: f32[4]) {\n");
    for (int i = 0; i < LENGTH; i++) {
        bool joins = i >= FIRST && i < LAST;
        uir_text_append_format(&source, " %%v%d: f32[4] = %s(%%v%d)%s\n", i + 1, joins ? "neg" : scan, i,
                               joins ? "" : how);
    }
    uir_text_append_format(&source, " return %%v%d\n}\n", LENGTH);
    assert_int_equal(uir_module_parse(&allocator, &diagnostics, source.data, source.length, "chain", NULL, &module), 0);
    assert_int_equal(uir_fuse(module, NULL, &diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_graph_get(module, module->main)->nodes.count, FIRST + 1 + LENGTH - LAST);
    uir_text_deinit(&source);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
}

/* However many nodes could be one group, a kernel is made of so many at most: the time that it takes to make one must
 * not grow with the model. Of a chain, and of the parts of one value side by side. */
static void check_bounded(const char *source) {
    enum { MOST_NODES = 128 };
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_diagnostics_init(&diagnostics, &allocator);
    assert_int_equal(uir_module_parse(&allocator, &diagnostics, source, strlen(source), "long", NULL, &module), 0);
    assert_int_equal(uir_module_verify(module, &diagnostics), UIR_STATUS_OK);
    uint32_t before = uir_graph_get(module, module->main)->nodes.count, after = 0;
    assert_int_equal(uir_fuse(module, NULL, &diagnostics), UIR_STATUS_OK);
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    assert_true(graph->nodes.count <= (before + MOST_NODES / 2 - 1) / (MOST_NODES / 2)); /* and half full at least */
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        const uir_node_info *group = uir_node_get(module, graph->nodes.data[i]);
        assert_int_equal(group->op, UIR_OP_GROUP);
        uint32_t count =
            uir_graph_get(module, uir_node_find_attribute(module, group, "body")->value.graph)->nodes.count;
        assert_true(count <= MOST_NODES);
        after += count;
    }
    assert_int_equal(after, before);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
}

static void test_bounded(void **state) {
    (void)state;
    enum { LENGTH = 320 };
    uir_allocator allocator = uir_allocator_system();
    uir_text source;
    uir_text_init(&source, &allocator);
    uir_text_append_string(&source, "module opset 20\ngraph \"g\" (%v0: f32[4]) {\n");
    for (int i = 0; i < LENGTH; i++) uir_text_append_format(&source, " %%v%d: f32[4] = tanh(%%v%d)\n", i + 1, i);
    uir_text_append_format(&source, " return %%v%d\n}\n", LENGTH);
    check_bounded(source.data);
    uir_text_deinit(&source);
    uir_text_init(&source, &allocator);
    uir_text_append_format(&source, "module opset 20\ngraph \"g\" (%%x: f32[%d]) {\n", LENGTH);
    uir_text_append_string(&source, " %s0: f32[1] = slice(%x) {starts = [0], sizes = [1], steps = [1]}\n");
    for (int i = 1; i < LENGTH; i++) {
        uir_text_append_format(&source, " %%p%d: f32[1] = slice(%%x) {starts = [%d], sizes = [1], steps = [1]}\n", i,
                               i);
        uir_text_append_format(&source, " %%s%d: f32[1] = add(%%s%d, %%p%d)\n", i, i - 1, i);
    }
    uir_text_append_format(&source, " return %%s%d\n}\n", LENGTH - 1);
    check_bounded(source.data);
    uir_text_deinit(&source);
}

/* ---- proportion ---- */
typedef struct counted {
    uir_allocator inner;
    size_t calls;
} counted;

static void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    counted *c = user;
    c->calls += new_size != 0;
    return c->inner.resize(c->inner.user, pointer, old_size, new_size);
}

/* Blocks of memory that fusion takes, some for each candidate that it looks at, of a graph of so many nodes. */
static size_t count_work(const char *each, int count) {
    counted c = {.inner = uir_allocator_system()};
    uir_allocator allocator = {count_resize, &c};
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_text source;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&source, &allocator);
    uir_text_append_format(&source, "module opset 20\ngraph \"g\" (%%x: f32[%d], %%y: f32[4, 4]) {\n", 4 * count);
    for (int i = 0; i < count; i++) uir_text_append_format(&source, each, i, 4 * i);
    uir_text_append_string(&source, " return %v0");
    for (int i = 1; i < count; i++) uir_text_append_format(&source, ", %%v%d", i);
    uir_text_append_string(&source, "\n}\n");
    assert_int_equal(uir_module_parse(&allocator, &diagnostics, source.data, source.length, "wide", NULL, &module), 0);
    assert_int_equal(uir_module_verify(module, &diagnostics), UIR_STATUS_OK);
    size_t before = c.calls;
    assert_int_equal(uir_fuse(module, NULL, &diagnostics), UIR_STATUS_OK);
    before = c.calls - before;
    uir_text_deinit(&source);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
    return before;
}

/* Many readers of one value that do not become one: twice as many are twice the work. */
static void test_proportion(void **state) {
    (void)state;
    static const char *const forms[] = {
        /* of a node's number, and where it reads of %x */
        " %%v%d: f32[4] = slice(%%x) {starts = [%d], sizes = [4], steps = [1]}\n",
        " %%v%d: f32[4, 4] = matmul(%%y, %%y) {to = f32}\n",
    };
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        size_t half = count_work(forms[f], 200), whole = count_work(forms[f], 400);
        print_message("form %zu: %zu and %zu blocks\n", f, half, whole);
        assert_true(whole * 10 <= half * 22);
    }
}

static bool fuse_with(const uir_allocator *allocator) {
    const fusion_case *c = &cases[1];
    char source[3000];
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    snprintf(source, sizeof source, "module opset 20\nsize N\nsize M\nsize P min 1000\nsize r\n%s\n", c->graph);
    uir_diagnostics_init(&diagnostics, allocator);
    uir_status status = uir_module_parse(allocator, &diagnostics, source, strlen(source), c->name, NULL, &module);
    if (status == UIR_STATUS_OK) status = uir_fuse(module, NULL, &diagnostics);
    assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
    return status == UIR_STATUS_OK;
}

static void test_memory(void **state) {
    (void)state;
    run_with_failures(fuse_with);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),       cmocka_unit_test(test_twice),
                                       cmocka_unit_test(test_large_graph), cmocka_unit_test(test_bounded),
                                       cmocka_unit_test(test_proportion),  cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
