/* The verifier against modules that no parser or builder makes: a sound one with one thing changed. And inference where
 * a text's declared types tell what it found. */
#include "tests/ir/graph/support.h"

#define PREAMBLE "module opset 1\nsize N\nsize K\n"

/* A constant, an op with dims, two bodies. */
static const char sound[] = PREAMBLE "constant %w: f32[2, 3] = [1, 2, 3, 4, 5, 6]\n"
                                     "graph \"main\" (%x: f32[N, 3], %c: bool[]) {\n"
                                     "    %a: f32[N, 1] = slice(%x) {starts = [0, 1], sizes = [N, 1], steps = [1, 1]}\n"
                                     "    %m: f32[2, 3] = neg(%w)\n"
                                     "    %y: f32[N, 3] = if(%c) {then = graph \"t\" () {\n        return %x\n    }, "
                                     "else = graph \"e\" () {\n        %n: f32[N, 3] = neg(%x)\n        return %n\n    "
                                     "}}\n"
                                     "    return %a, %m, %y\n}\n";

typedef struct parsed {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_module *module;
} parsed;

static void open_text(parsed *p, const char *text) {
    p->allocator = uir_allocator_system();
    uir_diagnostics_init(&p->diagnostics, &p->allocator);
    uir_status status = uir_module_parse(&p->allocator, &p->diagnostics, text, strlen(text), "text", NULL, &p->module);
    if (status != UIR_STATUS_OK) print_messages(&p->diagnostics);
    assert_int_equal(status, UIR_STATUS_OK);
}

static void close_text(parsed *p) {
    uir_module_destroy(p->module);
    uir_diagnostics_deinit(&p->diagnostics);
}

static void expect_sound(parsed *p) {
    uir_status status = uir_module_verify(p->module, &p->diagnostics);
    if (status != UIR_STATUS_OK) print_messages(&p->diagnostics);
    assert_int_equal(status, UIR_STATUS_OK);
}

static void expect_rejected(parsed *p, const char *message) {
    bool said = false;
    assert_int_equal(uir_module_verify(p->module, &p->diagnostics), UIR_STATUS_BAD_FILE);
    for (const uir_diagnostic *d = p->diagnostics.first; d; d = d->next) said |= strstr(d->message, message) != NULL;
    if (!said) print_messages(&p->diagnostics);
    if (!said) fail_msg("nothing says '%s'", message);
}

static uir_node_id find_node(const parsed *p, uir_op op) {
    for (uint32_t i = 1; i < p->module->nodes.count; i++)
        if (p->module->nodes.data[i].op == op) return (uir_node_id){i};
    fail_msg("there is no such node");
    return (uir_node_id){0};
}

static uir_value_id first_output(const parsed *p, uir_op op) {
    return uir_node_get(p->module, find_node(p, op))->outputs[0];
}

static void a_sound_module_is_accepted(void **state) {
    (void)state;
    parsed p;
    open_text(&p, sound);
    expect_sound(&p);
    close_text(&p);
}

static void constants_are_what_their_type_says(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{3, 2}, {2, 4}, {1, 3}, {6, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        parsed p;
        open_text(&p, sound);
        for (uint32_t v = 1; v < p.module->values.count; v++) {
            uir_value_info *info = &p.module->values.data[v];
            if (!info->constant) continue;
            for (int d = 0; d < 2; d++) ((uir_dim *)info->type.dims)[d] = uir_dim_const(p.module->dims, shapes[i][d]);
        }
        expect_rejected(&p, "does not agree with its type");
        close_text(&p);
    }
}

static void a_body_belongs_to_one_node(void **state) {
    (void)state;
    parsed p;
    open_text(&p, sound);
    uir_node_info *node = uir_node_get(p.module, find_node(&p, UIR_OP_IF));
    uir_attribute *attributes = (uir_attribute *)node->attributes;
    uir_graph_id kept = attributes[1].value.graph;
    attributes[1].value.graph = attributes[0].value.graph;
    expect_rejected(&p, "a graph is used twice");
    attributes[1].value.graph = kept;
    expect_sound(&p);
    attributes[1].value.graph = p.module->main;
    expect_rejected(&p, "a graph is used twice");
    attributes[1].value.graph = kept;
    uir_graph_get(p.module, kept)->parent = attributes[0].value.graph;
    expect_rejected(&p, "another graph as its parent");
    close_text(&p);
}

static void values_know_their_maker(void **state) {
    (void)state;
    parsed p;
    open_text(&p, sound);
    uir_value_info *value = uir_value_info_get(p.module, first_output(&p, UIR_OP_SLICE));
    value->output_index = 1;
    expect_rejected(&p, "records another node as its producer");
    value->output_index = 0;
    expect_sound(&p);
    uir_node_id kept = value->producer;
    value->producer = find_node(&p, UIR_OP_NEG);
    expect_rejected(&p, "records another node as its producer");
    value->producer = kept;
    expect_sound(&p);
    close_text(&p);
}

static void a_value_is_made_once(void **state) {
    (void)state;
    parsed p;
    open_text(&p, sound);
    uir_graph_info *graph = uir_graph_get(p.module, p.module->main);
    uir_value_id kept = graph->inputs.data[1];
    graph->inputs.data[1] = graph->inputs.data[0];
    expect_rejected(&p, "is defined twice");
    graph->inputs.data[1] = kept;
    uir_node_id node = graph->nodes.data[1];
    graph->nodes.data[1] = graph->nodes.data[0];
    expect_rejected(&p, "is defined twice");
    graph->nodes.data[1] = node;
    expect_sound(&p);
    close_text(&p);
}

/* Each attribute's dims need a value where the node stands, also those that are no extent of the result. */
static void dims_of_attributes_have_values(void **state) {
    (void)state;
    parsed p;
    open_text(&p, PREAMBLE "graph \"main\" (%x: f32[N]) {\n"
                           "    %a: f32[1] = slice(%x) {starts = [K], sizes = [1], steps = [1]}\n    return %a\n}\n");
    expect_rejected(&p, "starts uses size K, which has no value yet");
    close_text(&p);
}

/* ---- inference, by what a text may declare ---- */

static void check_text(const char *body, const char *message) {
    parsed p;
    char text[1000];
    snprintf(text, sizeof text, PREAMBLE "%s", body);
    open_text(&p, text);
    if (message)
        expect_rejected(&p, message);
    else
        expect_sound(&p);
    close_text(&p);
}

/* Where one part's extent is a number and another's a name, the result has the number. */
static void joined_extents_are_the_sharper_ones(void **state) {
    (void)state;
    check_text("graph \"main\" (%a: f32[2, N], %b: f32[2, 3]) {\n    %c: f32[4, 3] = concat(%a, %b) {axis = 0}\n    "
               "return %c\n}\n",
               NULL);
    check_text("graph \"main\" (%a: f32[2, 3], %b: f32[2, N]) {\n    %c: f32[4, 3] = concat(%a, %b) {axis = 0}\n    "
               "return %c\n}\n",
               NULL);
}

static void scalars_have_no_axes(void **state) {
    (void)state;
    check_text("graph \"main\" (%x: f32[N], %v: f32[]) {\n    %y: f32[N + 2] = pad(%x, %v) {low = [1], high = [1], "
               "interior = [0]}\n    return %y\n}\n",
               NULL);
    check_text("graph \"main\" (%x: f32[N], %v: f32[1]) {\n    %y: f32[N + 2] = pad(%x, %v) {low = [1], high = [1], "
               "interior = [0]}\n    return %y\n}\n",
               "operand 1 must be f32 of rank 0, not f32 of rank 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_module_is_accepted),
        cmocka_unit_test(constants_are_what_their_type_says),
        cmocka_unit_test(a_body_belongs_to_one_node),
        cmocka_unit_test(values_know_their_maker),
        cmocka_unit_test(a_value_is_made_once),
        cmocka_unit_test(dims_of_attributes_have_values),
        cmocka_unit_test(joined_extents_are_the_sharper_ones),
        cmocka_unit_test(scalars_have_no_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
