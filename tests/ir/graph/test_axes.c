/* Axis identities, as text: each value's axes by number, and the axes' extents. */
#include "ir/graph/axes.h"
#include "tests/base/support.h"

#include <stdio.h>
#include <string.h>

typedef struct axes_case {
    const char *name, *body;
    const char *expected; /* per node "operands -> result"; then the extents; "none" when there are no common axes */
} axes_case;

static const axes_case cases[] = {
    {"all that stands together is one axis",
     "graph \"g\" (%x: f32[B, S, 8]) {\n %y: f32[B, S, 8] = exp(%x)\n return %y\n}", "0 -> 0; B*S*8"},
    {"a reduction leaves its axis out",
     "graph \"g\" (%x: f32[B, S, 8]) {\n %m: f32[B, S, 1] = reduce_max(%x) {axes = [2], keep = 1}\n"
     " %b: f32[B, S, 8] = broadcast(%m) {dims = [B, S, 8]}\n %y: f32[B, S, 8] = sub(%x, %b)\n return %y\n}",
     "0 1 -> 0; 0 -> 0 1; 0 1, 0 1 -> 0 1; B*S 8"},
    {"equal extents are not one axis",
     "graph \"g\" (%x: f32[8, 8]) {\n %m: f32[8] = reduce_sum(%x) {axes = [0], keep = 0}\n return %m\n}",
     "0 1 -> 1; 8 8"},
    {"a mask's broadcast keeps batch apart from heads",
     "graph \"g\" (%x: f32[B, 12, S, T], %m: f32[B, 1, 1, T]) {\n"
     " %b: f32[B, 12, S, T] = broadcast(%m) {dims = [B, 12, S, T]}\n %y: f32[B, 12, S, T] = add(%x, %b)\n return %y\n}",
     "0 1 -> 0 2 1; 0 2 1, 0 2 1 -> 0 2 1; B T S*12"},
    {"a reshape splits, a transpose permutes",
     "graph \"g\" (%x: f32[B, S, 768]) {\n %h: f32[B, S, 12, 64] = reshape(%x) {dims = [B, S, 12, 64]}\n"
     " %y: f32[B, 12, S, 64] = transpose(%h) {perm = [0, 2, 1, 3]}\n return %y\n}",
     "0 1 2 3 -> 0 1 2 3; 0 1 2 3 -> 0 2 1 3; B S 12 64"},
    {"a reshape joins what stands apart elsewhere",
     "graph \"g\" (%x: f32[B, S, 768], %b: f32[S, 768]) {\n %s: f32[B, S, 768] = broadcast(%b) {dims = [B, S, 768]}\n"
     " %y: f32[B, S, 768] = add(%x, %s)\n %z: f32[B*S, 768] = reshape(%y) {dims = [B*S, 768]}\n return %z\n}",
     "0 -> 1 0; 1 0, 1 0 -> 1 0; 1 0 -> 1 0; S*768 B"},
    {"a reshape that does not factor",
     "graph \"g\" (%x: f32[6, 10]) {\n %y: f32[4, 15] = reshape(%x) {dims = [4, 15]}\n return %y\n}", "none"},
    {"a value made inside and its transpose",
     "graph \"g\" (%x: f32[8, 8]) {\n %e: f32[8, 8] = exp(%x)\n %t: f32[8, 8] = transpose(%e) {perm = [1, 0]}\n"
     " %y: f32[8, 8] = add(%e, %t)\n return %y\n}",
     "none"},
    {"a value read from outside twice has axes of its own each time",
     "graph \"g\" (%x: f32[8, 8]) {\n %t: f32[8, 8] = transpose(%x) {perm = [1, 0]}\n %y: f32[8, 8] = add(%x, %t)\n "
     "return "
     "%y\n}",
     "0 1 -> 1 0; 1 0, 1 0 -> 1 0; 8 8"},
    {"axes of a slice are not those of what it is cut from",
     "graph \"g\" (%x: f32[S, 64]) {\n %y: f32[S, 32] = slice(%x) {starts = [0, 32], sizes = [S, 32], steps = [1, "
     "1]}\n "
     "return %y\n}",
     "0 1 -> 0 2; S 64 32"},
    {"a slice keeps its axis whole",
     "graph \"g\" (%x: f32[S, 64]) {\n %y: f32[S, 32] = slice(%x) {starts = [0, 32], sizes = [S, 32], steps = [1, 1]}\n"
     " %z: f32[S, 4, 8] = reshape(%y) {dims = [S, 4, 8]}\n %t: f32[4, S, 8] = transpose(%z) {perm = [1, 0, 2]}\n "
     "return %t\n}",
     "none"},
    {"a slice's axis is a part of a longer one, and stays one by itself",
     "graph \"g\" (%x: f32[S, 64]) {\n %y: f32[S, 32] = slice(%x) {starts = [0, 32], sizes = [S, 32], steps = [1, 1]}\n"
     " %z: f32[S*32] = reshape(%y) {dims = [S*32]}\n return %z\n}",
     "0 1 -> 0 2; 0 2 -> 0 2; S 64 32"},
    {"windows",
     "graph \"g\" (%x: f32[S, 64]) {\n %y: f32[S, 31, 2, 3] = windows(%x) {starts = [0, -1], sizes = [S, 31], steps = "
     "[1, 2], window = [2, 3], axes = [1, 1], dilations = [1, -1]}\n"
     " %z: f32[S*31, 2, 3] = reshape(%y) {dims = [S*31, 2, 3]}\n return %z\n}",
     "0 1 -> 0 2 3 4; 0 2 3 4 -> 0 2 3 4; S 64 31 2 3"},
    {"windows' own axes are not split",
     "graph \"g\" (%x: f32[64]) {\n %y: f32[31, 4] = windows(%x) {starts = [0], sizes = [31], steps = [2], window = "
     "[4], "
     "axes = [0], dilations = [1]}\n %z: f32[31, 2, 2] = reshape(%y) {dims = [31, 2, 2]}\n return %z\n}",
     "none"},
    {"a broadcast to a multiple that only the run decides",
     "graph \"g\" (%x: f32[S]) {\n %y: f32[S*T] = broadcast(%x) {dims = [S*T]}\n return %y\n}", "none"},
    {"a product",
     "graph \"g\" (%a: f32[B, S, 64], %b: f32[B, 64, T]) {\n %y: f32[B, S, T] = matmul(%a, %b) {to = f32}\n return "
     "%y\n}",
     "0 1 2, 0 2 3 -> 0 1 3; B S 64 T"},
    {"a product with its own transpose",
     "graph \"g\" (%x: f32[S, 64]) {\n %t: f32[64, S] = transpose(%x) {perm = [1, 0]}\n"
     " %y: f32[S, S] = matmul(%x, %t) {to = f32}\n return %y\n}",
     "0 1 -> 1 0; 2 1, 1 0 -> 2 0; S 64 S"},
    {"unit axes have no axis",
     "graph \"g\" (%x: f32[1, S, 1]) {\n %y: f32[S] = reshape(%x) {dims = [S]}\n %b: f32[4, S] = broadcast(%y) {dims = "
     "[4, "
     "S]}\n return %b\n}",
     "0 -> 0; 0 -> 1 0; S 4"},
    {"the position of a greatest element is along one axis",
     "graph \"g\" (%x: f32[B, 6]) {\n %y: i64[B] = arg_max(%x) {axis = 1, keep = 0, last = 0}\n return %y\n}",
     "0 1 -> 0; B 6"},
    {"rows by index",
     "graph \"g\" (%w: f32[100, 8], %i: i64[B, S]) {\n %y: f32[B, S, 8] = gather(%w, %i) {axis = 0}\n return %y\n}",
     "0 1, 2 -> 2 1; 100 8 B*S"},
    {"a broadcast that only the run decides",
     "graph \"g\" (%x: f32[B]) {\n %y: f32[S] = broadcast(%x) {dims = [S]}\n return %y\n}", "none"},
};

static void print_list(uir_text *text, uir_axis_list list) {
    for (uint32_t i = 0; i < list.count; i++) uir_text_append_format(text, "%s%u", i ? " " : "", list.axes[i]);
}

static void print_axes(const uir_module *module, const uir_graph_info *graph, const uir_axes *axes, uir_text *text) {
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (i) uir_text_append_format(text, ", ");
            print_list(text, uir_axes_of_operand(axes, n, i));
        }
        uir_text_append_format(text, " -> ");
        print_list(text, uir_axes_of_value(axes, node->outputs[0]));
        uir_text_append_format(text, "; ");
    }
    for (uint32_t a = 0; a < axes->count; a++) {
        uir_text_append_format(text, "%s", a ? " " : "");
        uir_dim_print(module->dims, axes->axes[a].extent, text);
    }
}

static void check_case(const axes_case *c) {
    char source[2000];
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_arena arena;
    uir_axes axes;
    uir_text text;
    uir_allocator allocator = uir_allocator_system();
    snprintf(source, sizeof source, "module opset 20\nsize B\nsize S\nsize T\n%s\n", c->body);
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_arena_init(&arena, &allocator);
    uir_text_init(&text, &allocator);
    uir_status status = uir_module_parse(&allocator, &diagnostics, source, strlen(source), c->name, NULL, &module);
    if (diagnostics.first) print_error("%s: %s\n", c->name, diagnostics.first->message);
    assert_int_equal(status, UIR_STATUS_OK);
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    status = uir_axes_analyse(module, graph->nodes.data, graph->nodes.count, &arena, &axes, NULL);
    if (status == UIR_STATUS_OK)
        print_axes(module, graph, &axes, &text);
    else
        uir_text_append_format(&text, "none");
    if (strcmp(text.data, c->expected)) print_error("%s:\n  %s\n", c->name, text.data);
    assert_string_equal(text.data, c->expected);
    uir_text_deinit(&text);
    uir_arena_deinit(&arena);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
}

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
