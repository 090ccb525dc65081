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

#define BODY(text) "graph \"g\" " text
static const fusion_case cases[] = {
    /* ---- rewrites ---- */
    {"sink: trivial nodes of one consumer join it",
     BODY("(%x: f32[N, 8], %y: f32[N, 8]) {\n %a: f32[N, 8] = exp(%x)\n %b: f32[N, 8] = add(%a, %y)\n return %b\n}"),
     "{exp add}", "sink: exp into add", 0, 0},
    {"grow: softmax is one group",
     BODY("(%x: f32[N, M]) {\n %m: f32[N, 1] = reduce_max(%x) {axes = [1], keep = 1}\n"
          " %b: f32[N, M] = broadcast(%m) {dims = [N, M]}\n %d: f32[N, M] = sub(%x, %b)\n %e: f32[N, M] = exp(%d)\n"
          " %s: f32[N, 1] = reduce_sum(%e) {axes = [1], keep = 1}\n %t: f32[N, M] = broadcast(%s) {dims = [N, M]}\n"
          " %y: f32[N, M] = div(%e, %t)\n return %y\n}"),
     "{reduce_max broadcast sub exp reduce_sum broadcast div}", "grow: sub after reduce_max", 0, 0},
    {"grow: moments from two reductions of one value",
     BODY("(%x: f32[N, M]) {\n %s: f32[N] = reduce_sum(%x) {axes = [1], keep = 0}\n %q: f32[N, M] = mul(%x, %x)\n"
          " %t: f32[N] = reduce_sum(%q) {axes = [1], keep = 0}\n %c: f32[N] = mul(%s, %s)\n %v: f32[N] = sub(%t, %c)\n"
          " return %v\n}"),
     "{reduce_sum mul reduce_sum mul sub}", "sink: mul into reduce_sum", 0, 0},
    {"epilogue: bias, residual and a transpose after a product",
     BODY("(%x: f32[N, 8], %w: f32[8, 8], %b: f32[8], %r: f32[N, 8]) {\n %y: f32[N, 8] = matmul(%x, %w) {to = f32}\n"
          " %c: f32[N, 8] = broadcast(%b) {dims = [N, 8]}\n %z: f32[N, 8] = add(%y, %c)\n %u: f32[N, 8] = add(%z, %r)\n"
          " %t: f32[8, N] = transpose(%u) {perm = [1, 0]}\n return %t\n}"),
     "{matmul broadcast add*2 transpose}", "epilogue: add after matmul", 0, 0},
    {"epilogue: what another could compute from a result that is written anyway is given back",
     BODY("(%x: f32[N, 8], %w: f32[8, 8]) {\n %y: f32[N, 8] = matmul(%x, %w) {to = f32}\n"
          " %a: f32[N, 8] = neg(%y)\n %s: f32[N, 4] = slice(%y) {starts = [0, 0], sizes = [N, 4], steps = [1, 1]}\n"
          " %c: f32[N, 8] = concat(%s, %s) {axis = 1}\n %z: f32[N, 8] = add(%a, %c)\n return %z\n}"),
     "{matmul} {neg slice concat add}", NULL, 0, 0},
    {"prologue: a repeat of heads is read as it lies",
     BODY("(%q: f32[N, 4, M, 8], %k: f32[N, 2, M, 8]) {\n %u: f32[N, 2, 1, M, 8] = reshape(%k) {dims = [N, 2, 1, M, "
          "8]}\n"
          " %b: f32[N, 2, 2, M, 8] = broadcast(%u) {dims = [N, 2, 2, M, 8]}\n"
          " %r: f32[N, 4, M, 8] = reshape(%b) {dims = [N, 4, M, 8]}\n"
          " %t: f32[N, 4, 8, M] = transpose(%r) {perm = [0, 1, 3, 2]}\n %y: f32[N, 4, M, M] = matmul(%q, %t) {to = "
          "f32}\n"
          " return %y\n}"),
     "reshape {broadcast reshape transpose matmul}", "prologue: transpose into matmul", 0, 0},
    {"lift: what follows a concat joins it",
     BODY("(%x: f32[N, 4], %y: f32[N, 8]) {\n %n: f32[N, 4] = neg(%x)\n %c: f32[N, 8] = concat(%n, %x) {axis = 1}\n"
          " %z: f32[N, 8] = mul(%c, %y)\n return %z\n}"),
     "{neg concat mul}", "lift: mul after concat", 0, 0},
    {"recompute: a broadcast is computed where it is read",
     BODY("(%b: f32[8], %x: f32[N, 8], %w: f32[8, 8]) {\n %c: f32[N, 8] = broadcast(%b) {dims = [N, 8]}\n"
          " %y: f32[N, 8] = matmul(%x, %w) {to = f32}\n %z: f32[N, 8] = add(%y, %c)\n"
          " %s: f32[N, 8] = scan_sum(%z) {axis = 0, exclusive = 0, reverse = 0}\n %u: f32[N, 8] = mul(%s, %c)\n return "
          "%u\n}"),
     "{broadcast matmul add} {scan_sum} {broadcast mul}", "recompute: broadcast in matmul", 0, 0},
    {"horizontal: two readers of one value",
     BODY("(%x: f32[N, 8]) {\n %a: f32[N, 8] = sin(%x)\n %b: f32[N, 8] = cos(%x)\n return %a, %b\n}"), "{sin cos}",
     "horizontal: cos into sin", 0, 0},
    {"reshapes at the edges stay outside",
     BODY("(%x: f32[N, 2, 4]) {\n %a: f32[N, 8] = reshape(%x) {dims = [N, 8]}\n %b: f32[N, 8] = exp(%a)\n"
          " %c: f32[N*8] = reshape(%b) {dims = [N*8]}\n return %c\n}"),
     "reshape {exp} reshape", NULL, 0, 0},
    /* ---- clauses ---- */
    {"cycle: not around a third node",
     BODY("(%x: f32[N, 8], %w: f32[8, 8]) {\n %a: f32[N, 8] = tanh(%x)\n"
          " %s: f32[N, 8] = scan_sum(%a) {axis = 1, exclusive = 0, reverse = 0}\n %b: f32[N, 8] = add(%a, %s)\n return "
          "%b\n}"),
     "{tanh} {scan_sum} {add}", NULL, 0, 0},
    {"effect: not before what binds a size",
     BODY("(%x: f32[2, 2]) {\n %c: f32[4, 2] = concat(%x, %x) {axis = 0}\n %m: f32[] = reduce_max(%c) {axes = [0, 1], "
          "keep = 0}\n"
          " %i: i64[] {r} = cast(%m) {to = i64}\n bind_dims(%i) {dims = [r]}\n"
          " %v: i64[] {r} = dim_values() {dims = [r], scalar = 1, dtype = i64}\n %f: f32[] = cast(%v) {to = f32}\n"
          " %b: f32[4, 2] = broadcast(%f) {dims = [4, 2]}\n %y: f32[4, 2] = mul(%c, %b)\n return %y\n}"),
     "{concat} {reduce_max cast} bind_dims dim_values {cast broadcast mul}", NULL, 0, 0},
    {"axes: not a value and its transpose",
     BODY("(%x: f32[8, 8]) {\n %e: f32[8, 8] = exp(%x)\n %t: f32[8, 8] = transpose(%e) {perm = [1, 0]}\n"
          " %y: f32[8, 8] = add(%e, %t)\n return %y\n}"),
     "{exp} {transpose add}", NULL, 0, 0},
    {"axes: not a reshape that does not factor",
     BODY("(%x: f32[6, 10]) {\n %e: f32[6, 10] = exp(%x)\n %t: f32[4, 15] = reshape(%e) {dims = [4, 15]}\n"
          " %y: f32[4, 15] = neg(%t)\n return %y\n}"),
     "{exp} reshape {neg}", NULL, 0, 0},
    {"reduce: not over different axes of equal extent",
     BODY("(%x: f32[8, 8]) {\n %r: f32[8, 1] = reduce_max(%x) {axes = [1], keep = 1}\n"
          " %b: f32[8, 8] = broadcast(%r) {dims = [8, 8]}\n %d: f32[8, 8] = sub(%x, %b)\n"
          " %c: f32[8] = reduce_sum(%d) {axes = [0], keep = 0}\n return %c\n}"),
     "{reduce_max} {broadcast sub reduce_sum}", NULL, 0, 0},
    {"kind: no concat of a concat",
     BODY("(%x: f32[N, 4], %y: f32[N, 8]) {\n %c: f32[N, 8] = concat(%x, %x) {axis = 1}\n %n: f32[N, 8] = exp(%c)\n"
          " %d: f32[2*N, 8] = concat(%y, %n) {axis = 0}\n return %d\n}"),
     "{concat exp} {concat}", NULL, 0, 0},
    {"kind: the data of a gather lies in memory",
     BODY("(%x: f32[6, 8], %i: i64[N]) {\n %e: f32[6, 8] = exp(%x)\n %y: f32[N, 8] = gather(%e, %i) {axis = 0}\n "
          "return %y\n}"),
     "{exp} {gather}", NULL, 0, 0},
    {"kind: dear work is no prologue",
     BODY("(%x: f32[N, 8], %w: f32[8, 8]) {\n %e: f32[N, 8] = exp(%x)\n %y: f32[N, 8] = matmul(%e, %w) {to = f32}\n "
          "return "
          "%y\n}"),
     "{exp} {matmul}", NULL, 0, 0},
    {"domain: no results over different axes",
     BODY("(%x: f32[N], %y: f32[N, 8]) {\n %e: f32[N] = exp(%x)\n %u: f32[N, 1] = reshape(%e) {dims = [N, 1]}\n"
          " %b: f32[N, 8] = broadcast(%u) {dims = [N, 8]}\n %z: f32[N, 8] = add(%b, %y)\n return %e, %z\n}"),
     "{exp} reshape {broadcast add}", NULL, 0, 0},
    {"width: no more operands than a kernel takes",
     BODY("(%a: f32[N], %b: f32[N], %c: f32[N], %d: f32[N]) {\n %e: f32[N] = add(%a, %b)\n %f: f32[N] = add(%e, %c)\n"
          " %g: f32[N] = add(%f, %d)\n return %g\n}"),
     "{add} {add*2}", NULL, 4, 0},
    {"traffic: nothing that reads more than it saves is computed twice",
     BODY("(%x: f32[N, 8], %y: f32[N, 8], %i: i64[M]) {\n %s: f32[N, 8] = add(%x, %y)\n"
          " %a: f32[N] = reduce_sum(%s) {axes = [1], keep = 0}\n %b: f32[8] = reduce_sum(%s) {axes = [0], keep = 0}\n"
          " return %a, %b\n}"),
     "{add} {reduce_sum} {reduce_sum}", NULL, 0, 0},
    {"capacity: rows that are used again fit the chip",
     BODY("(%x: f32[N, 64]) {\n %m: f32[N, 1] = reduce_max(%x) {axes = [1], keep = 1}\n"
          " %b: f32[N, 64] = broadcast(%m) {dims = [N, 64]}\n %d: f32[N, 64] = sub(%x, %b)\n return %d\n}"),
     "{reduce_max} {broadcast sub}", NULL, 0, 256},
    {"capacity: open sizes may have any length",
     BODY("(%x: f32[N, M]) {\n %m: f32[N, 1] = reduce_max(%x) {axes = [1], keep = 1}\n"
          " %b: f32[N, M] = broadcast(%m) {dims = [N, M]}\n %d: f32[N, M] = sub(%x, %b)\n return %d\n}"),
     "{reduce_max broadcast sub}", NULL, 0, 256},
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
    uir_device device = {.name = "test", .spaces = {{.name = "sram", .capacity = c->chip}}, .space_count = 1};
    uir_fusion_options options = {.device = c->chip ? &device : NULL, .most_operands = c->most_operands};
    snprintf(source, sizeof source, "module opset 20\nsize N\nsize M\nsize r\n%s\n", c->graph);
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

static bool fuse_with(const uir_allocator *allocator) {
    const fusion_case *c = &cases[1];
    char source[3000];
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    snprintf(source, sizeof source, "module opset 20\nsize N\nsize M\nsize r\n%s\n", c->graph);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_twice),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
