/* Text cases: cases/NAME.txt holds modules and what becomes of them.
 *
 *   # case: integer division
 *   constant %a: i32[2] = [7, -7]
 *   ...
 *   graph "main" () { ... }
 *   # expect            outputs as constants, in order
 *   i32[2] [3, -3]
 *
 * or, instead of `# expect`: `# refuse: part of a message` (the parser), `# reject: ...` (the verifier), `# fail: ...`
 * (the run).
 * `# bind: x f32[2] [1, 2]` gives an input. A line `module opset 1` is put before each. */
#include "tests/ir/graph/support.h"

static unsigned cases;

static char *read_file(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be read", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), (size_t)size);
    text[size] = 0;
    fclose(file);
    *out_size = (size_t)size;
    return text;
}

typedef struct test_case {
    char name[120], place[60];
    const char *body, *body_end;
    const char *expected, *expected_end; /* after the directive; for the others the text to look for */
    char directive[16];
} test_case;

/* "type elements" lines as a module whose outputs are those constants: both sides are compared as the printer's text.
 */
static void append_constants(const uir_allocator *allocator, uir_text *text, const char *begin, const char *end) {
    (void)allocator;
    int count = 0;
    uir_text_append_string(text, "module opset 1\n");
    for (const char *at = begin; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end, *bracket = memchr(at, ']', (size_t)(stop - at));
        if (bracket) {
            uir_text_append_format(text, "constant %%v%d: ", count++);
            uir_text_append(text, at, (size_t)(bracket + 1 - at));
            uir_text_append_string(text, " =");
            uir_text_append(text, bracket + 1, (size_t)(stop - bracket - 1));
            uir_text_append_string(text, "\n");
        }
        at = stop + 1;
    }
    uir_text_append_string(text, "graph \"main\" () {\n    return");
    for (int i = 0; i < count; i++) uir_text_append_format(text, i ? ", %%v%d" : " %%v%d", i);
    uir_text_append_string(text, "\n}\n");
}

static uir_module *parse_constants(const uir_allocator *allocator, uir_diagnostics *diagnostics, const test_case *c,
                                   const char *begin, const char *end) {
    uir_text text;
    uir_module *module;
    uir_text_init(&text, allocator);
    append_constants(allocator, &text, begin, end);
    if (uir_module_parse(allocator, diagnostics, text.data, text.length, c->place, NULL, &module) != UIR_STATUS_OK) {
        print_messages(diagnostics);
        fail_msg("%s: case \"%s\": the expected values do not parse", c->place, c->name);
    }
    uir_text_deinit(&text);
    return module;
}

/* Outputs against the expected constants, element by element. */
static void compare(const test_case *c, const uir_module *expected, uir_datum **outputs, uint32_t count) {
    const uir_graph_info *graph = uir_graph_get(expected, expected->main);
    if (graph->outputs.count != count)
        fail_msg("%s: case \"%s\": %u outputs, %u expected", c->place, c->name, count, graph->outputs.count);
    for (uint32_t i = 0; i < count; i++) {
        const uir_tensor *want = uir_value_info_get(expected, graph->outputs.data[i])->constant,
                         *got = outputs[i]->tensor;
        char left[100], right[100];
        uir_tensor_describe(got, left, sizeof left);
        uir_tensor_describe(want, right, sizeof right);
        if (strcmp(left, right) != 0)
            fail_msg("%s: case \"%s\": output %u is %s, not %s", c->place, c->name, i, left, right);
        bool real = uir_dtype_is_float(got->dtype), text = got->dtype == UIR_DTYPE_STRING;
        for (uint64_t e = 0; e < got->element_count; e++) {
            if (text) {
                const uir_string_view *x = (const uir_string_view *)got->data + e,
                                      *y = (const uir_string_view *)want->data + e;
                if (x->length != y->length || memcmp(x->text, y->text, x->length) != 0)
                    fail_msg("%s: case \"%s\": output %u, element %u: \"%.*s\"", c->place, c->name, i, (unsigned)e,
                             (int)x->length, x->text);
                continue;
            }
            double x = real ? uir_dtype_load_double(got->dtype, got->data, e)
                            : (double)uir_dtype_load_integer(got->dtype, got->data, e);
            double y = real ? uir_dtype_load_double(want->dtype, want->data, e)
                            : (double)uir_dtype_load_integer(want->dtype, want->data, e);
            bool same = x != x ? y != y : x == y ? signbit(x) == signbit(y) : real && fabs(x - y) <= 2e-7 * fabs(y);
            if (!same)
                fail_msg("%s: case \"%s\": output %u, element %u is %.9g, not %.9g", c->place, c->name, i, (unsigned)e,
                         x, y);
        }
    }
}

/* Lines "# bind: name type elements" of the body. */
static uint32_t bind_inputs(const uir_allocator *allocator, uir_diagnostics *diagnostics, const test_case *c,
                            const uir_module *module, uir_datum **out_inputs) {
    uint32_t count = 0;
    for (const char *at = c->body; at < c->body_end; at = strchr(at, '\n') + 1) {
        if (strncmp(at, "# bind: ", 8)) continue;
        const char *value = strchr(at + 8, ' ') + 1;
        uir_module *constants = parse_constants(allocator, diagnostics, c, value, strchr(value, '\n'));
        uir_tensor *tensor = uir_value_info_get(constants, uir_graph_get(constants, constants->main)->outputs.data[0])
                                 ->constant,
                   *copy;
        assert_int_equal(uir_tensor_create(allocator, tensor->dtype, tensor->rank, tensor->shape, &copy),
                         UIR_STATUS_OK);
        if (tensor->byte_size) memcpy(copy->data, tensor->data, tensor->byte_size);
        out_inputs[count++] = make_datum(allocator, copy);
        uir_module_destroy(constants);
    }
    assert_int_equal(count, uir_graph_get(module, module->main)->inputs.count);
    return count;
}

static bool was_said(const uir_diagnostics *diagnostics, const char *text, size_t length) {
    for (const uir_diagnostic *d = diagnostics->first; d; d = d->next)
        for (const char *at = d->message; strlen(at) >= length; at++)
            if (!strncmp(at, text, length)) return true;
    return false;
}

/* How far the case gets: "refuse", "reject", "fail" or "expect". */
static const char *run_case(const test_case *c, const uir_allocator *allocator, uir_diagnostics *diagnostics) {
    uir_text text;
    uir_module *module;
    uir_text_init(&text, allocator);
    uir_text_append_string(&text, "module opset 1\n");
    uir_text_append(&text, c->body, (size_t)(c->body_end - c->body));
    uir_status status = uir_module_parse(allocator, diagnostics, text.data, text.length, c->place, NULL, &module);
    uir_text_deinit(&text);
    if (status != UIR_STATUS_OK) return "refuse";
    const char *reached = "reject";
    if (uir_module_verify(module, diagnostics) == UIR_STATUS_OK) {
        uir_datum *inputs[8], *outputs[16];
        uint32_t count = bind_inputs(allocator, diagnostics, c, module, inputs);
        uint32_t output_count = uir_graph_get(module, module->main)->outputs.count;
        reached = "fail";
        status = uir_module_interpret(module, allocator, diagnostics, NULL, inputs, count, outputs, output_count, NULL);
        assert_int_not_equal(status, UIR_STATUS_INTERNAL);
        if (status == UIR_STATUS_OK) {
            reached = "expect";
            if (!strcmp(c->directive, "expect")) {
                uir_module *expected = parse_constants(allocator, diagnostics, c, c->expected, c->expected_end);
                compare(c, expected, outputs, output_count);
                uir_module_destroy(expected);
            }
            for (uint32_t i = 0; i < output_count; i++) uir_datum_release(outputs[i]);
        }
        for (uint32_t i = 0; i < count; i++) uir_datum_release(inputs[i]);
    }
    uir_module_destroy(module);
    return reached;
}

static void check_case(const test_case *c) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_diagnostics_init(&diagnostics, &allocator);
    const char *reached = run_case(c, &allocator, &diagnostics);
    if (strcmp(reached, c->directive) != 0) {
        print_messages(&diagnostics);
        fail_msg("%s: case \"%s\": %s, not %s", c->place, c->name, reached, c->directive);
    }
    size_t length = (size_t)(c->expected_end - c->expected);
    if (strcmp(reached, "expect") != 0 && !was_said(&diagnostics, c->expected, length)) {
        print_messages(&diagnostics);
        fail_msg("%s: case \"%s\": the message lacks \"%.*s\"", c->place, c->name, (int)length, c->expected);
    }
    uir_diagnostics_deinit(&diagnostics);
    cases++;
}

/* The next directive line of a case: where it begins, which, and what follows it. */
static const char *find_directive(const char *at, test_case *c) {
    static const char *const directives[] = {"expect", "refuse", "reject", "fail"};
    for (; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        for (int i = 0; i < 4; i++) {
            size_t length = strlen(directives[i]);
            if (strncmp(at, "# ", 2) || strncmp(at + 2, directives[i], length) ||
                (at[2 + length] != ':' && at[2 + length] != '\n'))
                continue;
            snprintf(c->directive, sizeof c->directive, "%s", directives[i]);
            c->expected = at + 2 + length;
            if (*c->expected == ':') c->expected += 2;
            return at;
        }
    return NULL;
}

static void check_file(const char *path) {
    size_t size;
    char *text = read_file(path, &size);
    for (char *at = strstr(text, "# case: "); at;) {
        test_case c = {0};
        char *line_end = strchr(at, '\n'), *next = strstr(at + 1, "# case: ");
        snprintf(c.name, sizeof c.name, "%.*s", (int)(line_end - at - 8), at + 8);
        unsigned line = 1;
        for (char *p = text; p < at; p++) line += *p == '\n';
        snprintf(c.place, sizeof c.place, "%s:%u", strrchr(path, '/') + 1, line);
        c.body = line_end + 1;
        c.body_end = find_directive(c.body, &c);
        if (!c.body_end || (next && c.body_end > next))
            fail_msg("%s: case \"%s\" ends without a directive", c.place, c.name);
        c.expected_end = strcmp(c.directive, "expect") ? strchr(c.expected, '\n') : next ? next : text + size;
        check_case(&c);
        at = next;
    }
    free(text);
}

#define AREA(name)                                                                                                     \
    static void test_##name(void **state) {                                                                            \
        (void)state;                                                                                                   \
        check_file("tests/ir/graph/cases/" #name ".txt");                                                              \
    }
AREA(elementwise)
AREA(movement)
AREA(reduction)
AREA(contraction)
AREA(control)
AREA(host)
AREA(verify)
AREA(text)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_movement), cmocka_unit_test(test_reduction),
        cmocka_unit_test(test_contraction), cmocka_unit_test(test_control),  cmocka_unit_test(test_host),
        cmocka_unit_test(test_verify),      cmocka_unit_test(test_text),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%u cases\n", cases);
    return failed;
}
