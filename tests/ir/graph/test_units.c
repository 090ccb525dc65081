/* The rest by function: the op table, builders that simplify, shape arithmetic, limits of a run, text by hash, failing
 * memory. */
#include "tests/ir/graph/support.h"

#include "ir/graph/interpret/sort.h"
#include <pthread.h>

/* ---- the table ---- */

static void test_table(void **state) {
    (void)state;
    for (int op = 1; op < UIR_OP_COUNT; op++) {
        const uir_op_row *row = uir_op_get_row((uir_op)op);
        assert_true(row->section == UIR_SECTION_ONNX || row->section == UIR_SECTION_PRIMITIVE);
        if (row->section == UIR_SECTION_PRIMITIVE)
            assert_int_equal(uir_op_find_primitive(row->name, strlen(row->name)), op);
        else
            assert_int_equal(uir_op_find_onnx(row->domain, row->name), op);
        uir_attribute_spec spec;
        for (uint32_t i = 0; uir_op_get_attribute_spec((uir_op)op, i, &spec); i++) {
            uir_attribute_spec found;
            assert_true(spec.length > 0);
            assert_true(uir_op_find_attribute_spec((uir_op)op, spec.name, spec.length, &found));
            assert_int_equal(found.kind, spec.kind);
        }
    }
    uir_op conv = uir_op_find_onnx("ai.onnx", "Conv");
    assert_int_not_equal(conv, UIR_OP_NONE);
    assert_int_equal(uir_op_find_onnx("", "Conv"), conv);
    assert_int_equal(uir_op_since_version(conv, 0), 0);
    assert_int_equal(uir_op_since_version(conv, 10), 1);
    assert_int_equal(uir_op_since_version(conv, 11), 11);
    assert_int_equal(uir_op_find_onnx("", "Nothing"), UIR_OP_NONE);
    assert_int_equal(uir_op_get_row((uir_op)-1)->section, UIR_SECTION_NONE);
    assert_int_equal(uir_op_get_row(UIR_OP_COUNT)->section, UIR_SECTION_NONE);
}

/* Every elementwise row computes every element type that inference lets through. */
static void test_elementwise_complete(void **state) {
    (void)state;
    for (int op = 1; op < UIR_OP_COUNT; op++) {
        const uir_op_row *row = uir_op_get_row((uir_op)op);
        if (row->section != UIR_SECTION_PRIMITIVE || !(row->traits & (UIR_TRAIT_UNARY | UIR_TRAIT_BINARY))) continue;
        if (op == UIR_OP_CAST || op == UIR_OP_BIT_CAST) continue;
        for (int dtype = 1; dtype < UIR_DTYPE_COUNT; dtype++) {
            if (!(row->dtypes >> uir_dtype_get_class((uir_dtype)dtype) & 1)) continue;
            fixture f;
            fixture_open(&f);
            uir_dim three = number(&f, 3);
            uir_value_id x = add_input(&f, "x", (uir_dtype)dtype, &three, 1), operands[2] = {x, x}, result;
            uir_attribute flags[2] = {uir_attribute_int(&f.builder, "positive", 1),
                                      uir_attribute_int(&f.builder, "negative", 1)};
            uir_build_node(&f.builder, (uir_op)op, operands, row->traits & UIR_TRAIT_UNARY ? 1 : 2, flags,
                           op == UIR_OP_IS_INF ? 2 : 0, &result, 1);
            add_output(&f, result);
            uir_tensor *input;
            uir_datum *output;
            assert_int_equal(uir_tensor_create(&f.allocator, (uir_dtype)dtype, 1, (int64_t[]){3}, &input),
                             UIR_STATUS_OK);
            if (run_module(&f, &input, 1, &output, 1) != UIR_STATUS_OK)
                fail_msg("%s of %s: %s", row->name, uir_dtype_name((uir_dtype)dtype), last_message(&f));
            uir_datum_release(output);
            fixture_close(&f);
        }
    }
}

/* ---- builders ---- */

static uint32_t node_count(const fixture *f) {
    return uir_graph_get(f->module, f->graph)->nodes.count;
}

static void test_builders_simplify(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_dim dims[2] = {make_size(&f, "N"), number(&f, 3)}, zeros[2] = {number(&f, 0), number(&f, 0)};
    uir_value_id x = add_input(&f, "x", UIR_DTYPE_F32, dims, 2);
    int64_t straight[2] = {0, 1}, ones[2] = {1, 1}, none[2] = {0, 0};
    uir_value_id pad = uir_build_scalar(&f.builder, UIR_DTYPE_F32, 0);
    assert_int_equal(uir_build_cast(&f.builder, x, UIR_DTYPE_F32).id, x.id);
    assert_int_equal(uir_build_reshape(&f.builder, x, dims, 2).id, x.id);
    assert_int_equal(uir_build_broadcast(&f.builder, x, dims, 2).id, x.id);
    assert_int_equal(uir_build_transpose(&f.builder, x, straight).id, x.id);
    assert_int_equal(uir_build_slice(&f.builder, x, zeros, dims, ones).id, x.id);
    assert_int_equal(uir_build_pad(&f.builder, x, pad, zeros, zeros, none).id, x.id);
    assert_int_equal(uir_build_concat(&f.builder, &x, 1, 0).id, x.id);
    assert_int_equal(node_count(&f), 0);
    /* Equal dims need no broadcast; a row does. */
    uir_value_id row = add_input(&f, "row", UIR_DTYPE_F32, &dims[1], 1);
    uir_build_binary(&f.builder, UIR_OP_ADD, x, x);
    assert_int_equal(node_count(&f), 1);
    uir_build_binary(&f.builder, UIR_OP_ADD, x, row);
    assert_int_equal(node_count(&f), 3);
    int64_t axes[1] = {1};
    uir_value_id wide = uir_build_unsqueeze(&f.builder, x, axes, 1);
    assert_int_equal(uir_value_type(f.module, wide)->rank, 3);
    assert_int_equal(uir_value_type(f.module, uir_build_squeeze(&f.builder, wide, axes, 1))->rank, 2);
    assert_int_equal(f.builder.status, UIR_STATUS_OK);
    fixture_close(&f);
}

static void test_builder_is_sticky(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_dim two = number(&f, 2), three = number(&f, 3);
    uir_value_id a = add_input(&f, "a", UIR_DTYPE_F32, &two, 1), b = add_input(&f, "b", UIR_DTYPE_F32, &three, 1);
    assert_int_equal(uir_build_binary(&f.builder, UIR_OP_ADD, a, b).id, 0);
    assert_int_equal(f.builder.status, UIR_STATUS_BAD_FILE);
    uint32_t count = f.diagnostics.count;
    assert_int_equal(uir_build_unary(&f.builder, UIR_OP_NEG, a).id, 0);
    assert_int_equal(f.diagnostics.count, count);
    fixture_close(&f);
}

/* Shape -> Gather -> Concat -> Reshape leaves nothing to compute. */
static void test_shape_arithmetic(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_builder *b = &f.builder;
    uir_dim dims[2] = {make_size(&f, "N"), number(&f, 6)};
    add_input(&f, "x", UIR_DTYPE_F32, dims, 2);
    uir_value_id shape = uir_build_dim_values(b, dims, 2, false, UIR_DTYPE_I64);
    uir_value_id first = uir_build_gather(b, shape, uir_build_integers(b, UIR_DTYPE_I64, (int64_t[]){0}, 1), 0);
    uir_value_id parts[2] = {
        uir_build_binary(b, UIR_OP_MUL, first, uir_build_integers(b, UIR_DTYPE_I64, (int64_t[]){3}, 1)),
        uir_build_binary(b, UIR_OP_DIV, uir_build_integers(b, UIR_DTYPE_I64, (int64_t[]){7}, 1),
                         uir_build_integers(b, UIR_DTYPE_I64, (int64_t[]){2}, 1))};
    uir_value_id whole = uir_build_concat(b, parts, 2, 0);
    uint32_t count;
    const uir_dim *known = uir_build_value_as_dims(b, whole, 0, &count);
    assert_int_equal(count, 2);
    assert_int_equal(known[0].id, uir_dim_mul(f.module->dims, dims[0], number(&f, 3)).id);
    assert_int_equal(known[1].id, number(&f, 3).id);
    const uir_graph_info *graph = uir_graph_get(f.module, f.graph);
    for (uint32_t n = 0; n < graph->nodes.count; n++)
        assert_int_not_equal(uir_node_get(f.module, graph->nodes.data[n])->op, UIR_OP_BIND_DIMS);
    /* A comparison that the facts decide; one that they do not. */
    uir_value_id equal = uir_build_binary(b, UIR_OP_EQ, shape, shape);
    assert_true(uir_value_info_get(f.module, equal)->elements_known);
    uir_value_id unknown =
        uir_build_binary(b, UIR_OP_EQ, first, uir_build_integers(b, UIR_DTYPE_I64, (int64_t[]){5}, 1));
    assert_false(uir_value_info_get(f.module, unknown)->elements_known);
    fixture_close(&f);
}

/* Values that only the run knows become sizes, once per graph; weaker facts are not handed out for stronger ones. */
static void test_values_as_sizes(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_builder *b = &f.builder;
    uir_dim two = number(&f, 2);
    uir_value_id sizes = add_input(&f, "sizes", UIR_DTYPE_I64, &two, 1);
    uint32_t count, again;
    const uir_dim *any = uir_build_value_as_dims(b, sizes, -1, &count);
    assert_int_equal(count, 2);
    assert_int_equal(uir_build_value_as_dims(b, sizes, -1, &again)[0].id, any[0].id);
    assert_int_equal(node_count(&f), 1);
    const uir_dim *positive = uir_build_value_as_dims(b, sizes, 0, &count);
    assert_int_not_equal(positive[0].id, any[0].id);
    assert_int_equal(node_count(&f), 2);
    add_output(&f, uir_build_iota(b, UIR_DTYPE_I32, positive, 2, 1));
    uir_tensor *good = make_tensor_of(&f.allocator, UIR_DTYPE_I64, SHAPE(2), VALUES(1, 3));
    expect_output(&f, &good, 1, UIR_DTYPE_I32, SHAPE(1, 3), VALUES(0, 1, 2));
    uir_tensor *bad = make_tensor_of(&f.allocator, UIR_DTYPE_I64, SHAPE(2), VALUES(-1, 3));
    uir_datum *output;
    assert_int_equal(run_module(&f, &bad, 1, &output, 1), UIR_STATUS_BAD_DATA);
    fixture_close(&f);
}

/* One matrix on the right: all rows of the left are one matrix, no copy of the right per batch. */
static void test_matmul_by_one_matrix(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_dim dims[3] = {make_size(&f, "N"), number(&f, 2), number(&f, 2)};
    uir_value_id x = add_input(&f, "x", UIR_DTYPE_F32, dims, 3);
    uir_value_id w = add_constant(&f, UIR_DTYPE_F32, SHAPE(2, 1), VALUES(1, 10));
    add_output(&f, uir_build_matmul(&f.builder, x, w, UIR_DTYPE_F32));
    const uir_graph_info *graph = uir_graph_get(f.module, f.graph);
    for (uint32_t n = 0; n < graph->nodes.count; n++)
        assert_int_not_equal(uir_node_get(f.module, graph->nodes.data[n])->op, UIR_OP_BROADCAST);
    uir_tensor *input = make_tensor_of(&f.allocator, UIR_DTYPE_F32, SHAPE(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    expect_output(&f, &input, 1, UIR_DTYPE_F32, SHAPE(2, 2, 1), VALUES(21, 43, 65, 87));
    fixture_close(&f);
}

/* ---- running ---- */

/* A chain of `length` negations of [1024]. */
static void build_chain(fixture *f, int length) {
    uir_dim dim = number(f, 1024);
    uir_value_id x = add_input(f, "x", UIR_DTYPE_F32, &dim, 1);
    for (int i = 0; i < length; i++) x = uir_build_unary(&f->builder, UIR_OP_NEG, x);
    add_output(f, x);
}

static void test_memory_is_freed_early(void **state) {
    (void)state;
    uint64_t peaks[2];
    for (int i = 0; i < 2; i++) {
        fixture f;
        fixture_open(&f);
        build_chain(&f, i ? 200 : 4);
        uir_tensor *tensor;
        assert_int_equal(uir_tensor_create(&f.allocator, UIR_DTYPE_F32, 1, (int64_t[]){1024}, &tensor), UIR_STATUS_OK);
        uir_datum *input = make_datum(&f.allocator, tensor), *output;
        assert_int_equal(
            uir_module_interpret(f.module, &f.allocator, &f.diagnostics, NULL, &input, 1, &output, 1, &peaks[i]),
            UIR_STATUS_OK);
        uir_datum_release(output);
        uir_datum_release(input);
        fixture_close(&f);
    }
    assert_int_equal(peaks[0], peaks[1]);
    assert_true(peaks[1] < 3 * 4096 + 4096);
}

static void test_byte_limit(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    build_chain(&f, 3);
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(&f.allocator, UIR_DTYPE_F32, 1, (int64_t[]){1024}, &tensor), UIR_STATUS_OK);
    uir_datum *input = make_datum(&f.allocator, tensor), *output;
    uir_interpreter_options options = {.byte_limit = 1000};
    assert_int_equal(
        uir_module_interpret(f.module, &f.allocator, &f.diagnostics, &options, &input, 1, &output, 1, NULL),
        UIR_STATUS_LIMIT);
    assert_null(output);
    assert_non_null(strstr(last_message(&f), "1000 bytes"));
    options.byte_limit = 1 << 20;
    assert_int_equal(
        uir_module_interpret(f.module, &f.allocator, &f.diagnostics, &options, &input, 1, &output, 1, NULL),
        UIR_STATUS_OK);
    uir_datum_release(output);
    uir_datum_release(input);
    fixture_close(&f);
}

static volatile bool cancel;
static int nodes_seen;

static void cancel_after_two(void *user, const uir_module *module, uir_node_id node, double ms) {
    (void)user, (void)module, (void)node;
    assert_true(ms >= 0);
    if (++nodes_seen == 2) cancel = true;
}

static void test_cancel(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    build_chain(&f, 5);
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(&f.allocator, UIR_DTYPE_F32, 1, (int64_t[]){1024}, &tensor), UIR_STATUS_OK);
    uir_datum *input = make_datum(&f.allocator, tensor), *output;
    cancel = false;
    nodes_seen = 0;
    uir_interpreter_options options = {.cancel = &cancel, .after_node = cancel_after_two};
    assert_int_equal(
        uir_module_interpret(f.module, &f.allocator, &f.diagnostics, &options, &input, 1, &output, 1, NULL),
        UIR_STATUS_CANCELLED);
    assert_int_equal(nodes_seen, 2);
    uir_datum_release(input);
    fixture_close(&f);
}

/* A result that is an input or a constant belongs to the caller all the same, also when the module is gone. */
static void test_outputs_outlive_the_module(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_dim two = number(&f, 2);
    uir_value_id x = add_input(&f, "x", UIR_DTYPE_F32, &two, 1);
    uir_value_id c = add_constant(&f, UIR_DTYPE_F32, SHAPE(4), VALUES(1, 2, 3, 4));
    uir_dim square[2] = {two, two};
    add_output(&f, x);
    add_output(&f, c);
    add_output(&f, uir_build_reshape(&f.builder, c, square, 2));
    add_output(&f, x);
    uir_tensor *input = make_tensor_of(&f.allocator, UIR_DTYPE_F32, SHAPE(2), VALUES(7, 8));
    uir_datum *outputs[4];
    assert_int_equal(run_module(&f, &input, 1, outputs, 4), UIR_STATUS_OK);
    fixture_close(&f);
    assert_true(((float *)outputs[0]->tensor->data)[1] == 8);
    assert_true(((float *)outputs[1]->tensor->data)[3] == 4);
    assert_true(((float *)outputs[2]->tensor->data)[3] == 4);
    for (int i = 0; i < 4; i++) uir_datum_release(outputs[i]);
}

/* Two runs of one module at once, on the same inputs: nothing that they share is written. */
typedef struct shared_run {
    const fixture *f;
    uir_datum *input;
} shared_run;

static void *run_repeatedly(void *argument) {
    const shared_run *run = argument;
    uint32_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        uir_datum *outputs[2];
        uir_status status =
            uir_module_interpret(run->f->module, &run->f->allocator, NULL, NULL, &run->input, 1, outputs, 2, NULL);
        if (status != UIR_STATUS_OK || ((float *)outputs[0]->tensor->data)[3] != 40) wrong++;
        uir_datum_release(outputs[0]);
        uir_datum_release(outputs[1]);
    }
    return wrong ? argument : NULL;
}

static void test_runs_at_once(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_dim four = number(&f, 4);
    uir_value_id x = add_input(&f, "x", UIR_DTYPE_F32, &four, 1);
    uir_value_id c = add_constant(&f, UIR_DTYPE_F32, SHAPE(4), VALUES(1, 2, 3, 4));
    add_output(&f, uir_build_binary(&f.builder, UIR_OP_MUL, x, c));
    add_output(&f, c);
    uir_tensor *input = make_tensor_of(&f.allocator, UIR_DTYPE_F32, SHAPE(4), VALUES(7, 8, 9, 10));
    shared_run run = {&f, make_datum(&f.allocator, input)};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_repeatedly, &run), 0);
    for (int i = 0; i < 2; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    uir_datum_release(run.input);
    fixture_close(&f);
}

static void test_one_node(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_value_id a = add_constant(&f, UIR_DTYPE_F32, SHAPE(2), VALUES(1, 2));
    uir_value_id sum = uir_build_binary(&f.builder, UIR_OP_ADD, a, a);
    uir_tensor *tensor = uir_build_constant_of(&f.builder, a);
    uir_tensor_retain(tensor);
    uir_datum *datum = make_datum(&f.allocator, tensor), *inputs[2] = {datum, datum}, *output;
    uir_node_id node = uir_value_info_get(f.module, sum)->producer;
    assert_int_equal(uir_node_interpret(f.module, &f.allocator, &f.diagnostics, node, inputs, &output), UIR_STATUS_OK);
    assert_true(((float *)output->tensor->data)[1] == 4);
    uir_datum_release(output);
    uir_datum_release(datum);
    fixture_close(&f);
}

/* ---- text ---- */

static void test_text_by_hash(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_value_id a = add_constant(&f, UIR_DTYPE_F32, SHAPE(6), VALUES(1, 2, 3, 4, 5, 6));
    uir_value_id b = add_constant(&f, UIR_DTYPE_F32, SHAPE(2), VALUES(1, 2));
    add_output(&f, uir_build_unary(&f.builder, UIR_OP_NEG, a));
    add_output(&f, b);
    uir_text text, again;
    uir_text_init(&text, &f.allocator);
    uir_text_init(&again, &f.allocator);
    assert_int_equal(uir_module_print(f.module, 4, &text), UIR_STATUS_OK);
    assert_non_null(strstr(text.data, "hash \""));
    assert_non_null(strstr(text.data, "[1, 2]"));
    uir_module *module;
    assert_int_equal(uir_module_parse(&f.allocator, &f.diagnostics, text.data, text.length, "text", f.module, &module),
                     UIR_STATUS_OK);
    assert_int_equal(uir_module_verify(module, &f.diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_module_print(module, 4, &again), UIR_STATUS_OK);
    assert_string_equal(text.data, again.data);
    uir_module_destroy(module);
    assert_int_equal(uir_module_parse(&f.allocator, &f.diagnostics, text.data, text.length, "text", NULL, &module),
                     UIR_STATUS_BAD_FILE);
    uir_text_deinit(&text);
    uir_text_deinit(&again);
    fixture_close(&f);
}

/* Two sizes of one name, values without names and with names that clash, come apart in the text. */
static void test_text_names_are_unique(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    uir_dim one = make_size(&f, "d"), two = make_size(&f, "d");
    uir_value_id x = add_input(&f, "a/b", UIR_DTYPE_F32, &one, 1), y = add_input(&f, "a_b", UIR_DTYPE_F32, &two, 1);
    add_output(&f, uir_build_unary(&f.builder, UIR_OP_NEG, x));
    add_output(&f, uir_build_unary(&f.builder, UIR_OP_NEG, y));
    uir_text text;
    uir_text_init(&text, &f.allocator);
    assert_int_equal(uir_module_print(f.module, 4, &text), UIR_STATUS_OK);
    assert_non_null(strstr(text.data, "%a_b \"a/b\": f32[d]"));
    assert_non_null(strstr(text.data, "%a_b_2 \"a_b\": f32[d_2]"));
    uir_text_deinit(&text);
    fixture_close(&f);
}

/* ---- passes ---- */

static uir_status pass_nothing(uir_module *module, uir_pass_context *context) {
    (void)module;
    context->changes++;
    return UIR_STATUS_OK;
}

static uir_status pass_breaking(uir_module *module, uir_pass_context *context) {
    (void)context;
    uir_value_info_get(module, uir_graph_get(module, module->main)->outputs.data[0])->type.dtype = UIR_DTYPE_I8;
    return UIR_STATUS_OK;
}

static void keep_text(void *user, const char *pass, const char *text, size_t length) {
    assert_string_equal(pass, "nothing");
    *(bool *)user = length > 0 && strstr(text, "neg(") != NULL;
}

static void test_passes(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    build_chain(&f, 1);
    bool dumped = false;
    const uir_pass passes[] = {{"nothing", pass_nothing, "changes nothing"},
                               {"breaking", pass_breaking, "breaks a type"}};
    uir_pass_options options = {.check_text = true, .dump = "nothing", .dump_text = keep_text, .user = &dumped};
    assert_int_equal(uir_passes_run(f.module, passes, 1, &options), UIR_STATUS_OK);
    assert_true(dumped);
    assert_int_equal(uir_passes_run(f.module, passes, 2, NULL), UIR_STATUS_INTERNAL);
    assert_non_null(strstr(last_message(&f), "pass breaking"));
    fixture_close(&f);
}

/* ---- sorting ---- */

static int compare_down(const void *user, int64_t a, int64_t b) {
    const int *keys = user;
    return keys[b] - keys[a];
}

static void test_sort(void **state) {
    (void)state;
    random_state r = {5};
    int keys[100];
    int64_t indices[100], scratch[100];
    for (int n = 0; n <= 100; n++) {
        for (int i = 0; i < n; i++) {
            keys[i] = (int)random_between(&r, 0, 9);
            indices[i] = i;
        }
        assert_int_equal(uir_sort(indices, scratch, n, compare_down, keys, NULL), UIR_STATUS_OK);
        for (int i = 1; i < n; i++) {
            assert_true(keys[indices[i - 1]] >= keys[indices[i]]);
            if (keys[indices[i - 1]] == keys[indices[i]]) assert_true(indices[i - 1] < indices[i]);
        }
    }
}

/* Among equals too nothing is compared any more once the budget is over. */
static int compare_and_cancel(const void *user, int64_t a, int64_t b) {
    (void)a, (void)b;
    *(bool *)(uintptr_t)user = true;
    return 0;
}

static void test_sort_stops(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    static int64_t indices[COUNT], scratch[COUNT];
    uir_allocator system = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_budget budget;
    bool cancel = false;
    uir_budget_init(&budget, &system, NULL);
    uir_diagnostics_init(&diagnostics, &system);
    assert_int_equal(uir_budget_begin(&budget, "the test", &cancel, NULL), UIR_STATUS_OK);
    assert_int_equal(uir_sort(indices, scratch, COUNT, compare_and_cancel, &cancel, &budget), UIR_STATUS_CANCELLED);
    assert_int_equal(uir_budget_end(&budget, UIR_STATUS_CANCELLED, &diagnostics), UIR_STATUS_CANCELLED);
    uir_diagnostics_deinit(&diagnostics);
    uir_budget_deinit(&budget);
}

/* ---- memory that fails ---- */

/* Parsed, verified, cloned, the clone printed, run: each allocation in turn fails, nothing leaks. */
static bool run_all(const uir_allocator *allocator) {
    static const char text[] = "module opset 1\n"
                               "size T\nsize n\n"
                               "constant %k: i64[] = [2]\n"
                               "constant %w: f32[3, 4] = splat 2\n"
                               "constant %s: string[2] = [\"a\", \"b\"]\n"
                               "constant %i: i64[1] = [1]\n"
                               "graph \"main\" () {\n"
                               "    %t: f32[4, 3] = transpose(%w) {perm = [1, 0]}\n"
                               "    %a: f32[3, 3] = matmul(%w, %t) {to = f32}\n"
                               "    %h: f16[3, 3] = cast(%a) {to = f16}\n"
                               "    %e: f16[3, 3] = exp(%h)\n"
                               "    %r: f16[3] = reduce_sum(%e) {axes = [0], keep = 0}\n"
                               "    %g: string[1] = gather(%s, %i) {axis = 0}\n"
                               "    %z: i64[2, n] = non_zero(%a)\n"
                               "    %l: f32[3, 3], %o: f32[T, 3, 3] = loop(%k, none, %a) {body = graph \"b\" (%j: "
                               "i64[], %c: bool[], %v: f32[3, 3]) {\n"
                               "        %u: f32[3, 3] = add(%v, %v)\n"
                               "        return %c, %u, %v\n"
                               "    }}\n"
                               "    %q: seq(f32[3, 3]) = sequence_construct(%a, %l)\n"
                               "    return %r, %g, %z, %l, %o, %q\n"
                               "}\n";
    uir_diagnostics diagnostics;
    uir_module *module = NULL, *clone = NULL;
    uir_datum *outputs[6] = {0};
    uir_diagnostics_init(&diagnostics, allocator);
    uir_status status = uir_module_parse(allocator, &diagnostics, text, sizeof text - 1, "text", NULL, &module);
    if (status == UIR_STATUS_OK) status = uir_module_verify(module, &diagnostics);
    uir_text printed;
    uir_text_init(&printed, allocator);
    if (status == UIR_STATUS_OK) status = uir_module_clone(module, allocator, &clone);
    if (status == UIR_STATUS_OK) status = uir_module_print(clone, SIZE_MAX, &printed);
    uir_module_destroy(clone);
    if (status == UIR_STATUS_OK)
        status = uir_module_interpret(module, allocator, &diagnostics, NULL, NULL, 0, outputs, 6, NULL);
    for (int i = 0; i < 6; i++) uir_datum_release(outputs[i]);
    uir_text_deinit(&printed);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
    if (status != UIR_STATUS_OK) assert_int_equal(status, UIR_STATUS_OUT_OF_MEMORY);
    return status == UIR_STATUS_OK;
}

static void test_failing_memory(void **state) {
    (void)state;
    run_with_failures(run_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_elementwise_complete),
        cmocka_unit_test(test_builders_simplify),
        cmocka_unit_test(test_builder_is_sticky),
        cmocka_unit_test(test_shape_arithmetic),
        cmocka_unit_test(test_values_as_sizes),
        cmocka_unit_test(test_matmul_by_one_matrix),
        cmocka_unit_test(test_memory_is_freed_early),
        cmocka_unit_test(test_byte_limit),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_outputs_outlive_the_module),
        cmocka_unit_test(test_runs_at_once),
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_text_by_hash),
        cmocka_unit_test(test_text_names_are_unique),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_sort_stops),
        cmocka_unit_test(test_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
