/* Damaged and malicious files: truncated, nested, overlong, wrongly typed; and memory that runs out. */
#include "tests/frontend/make.h"

/* A small model with most things in it: an initializer, attributes, a subgraph, a function, metadata. */
static blob rich_model(void) {
    float weights[] = {1, 2, 3};
    int64_t dims[] = {3};
    blob graph = make_graph_of(make_node("Add", "add", "x,w", "s"));
    blob tensor = make_tensor("w", UIR_DTYPE_F32, 1, dims);
    put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    blob call = make_node("F", "call", "s", "t");
    put_text(&call, NODE_DOMAIN, "local");
    put_message(&call, NODE_ATTRIBUTE, make_int_attribute("axis", 1));
    put_message(&graph, GRAPH_NODE, call);
    blob choice = make_node("If", "choice", "c", "y");
    static const char *const branches[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        blob body = blob_new();
        put_message(&body, GRAPH_NODE, make_node(i ? "Abs" : "Relu", "inner", "t", "r"));
        put_message(&body, GRAPH_OUTPUT, make_value("r", UIR_DTYPE_F32, "n"));
        put_message(&choice, NODE_ATTRIBUTE, make_graph_attribute(branches[i], body));
    }
    put_message(&graph, GRAPH_NODE, choice);
    blob model = make_model(graph), function = blob_new(), softmax = make_node("Softmax", "soft", "a", "b");
    put_message(&softmax, NODE_ATTRIBUTE, make_reference("axis", KIND_INT, "axis"));
    put_text(&function, FUNCTION_NAME, "F");
    put_text(&function, FUNCTION_DOMAIN, "local");
    put_text(&function, FUNCTION_INPUT, "a");
    put_text(&function, FUNCTION_OUTPUT, "b");
    put_message(&function, FUNCTION_OPSET, make_opset("", 20));
    put_message(&function, FUNCTION_NODE, softmax);
    put_message(&model, MODEL_FUNCTION, function);
    put_message(&model, MODEL_METADATA, make_pair("key", "value"));
    return model;
}

static void the_rich_model_is_sound(void **state) {
    (void)state;
    loaded l;
    load_model(&l, rich_model(), NULL);
    for (const uir_diagnostic *d = l.diagnostics.first; d; d = d->next) print_message("%s\n", d->message);
    assert_int_equal(l.status, UIR_STATUS_OK);
    unload(&l);
}

/* Each shorter file lies in a block of its own size, so that a sanitizer sees a read past its end. */
static void truncated_at_every_length(void **state) {
    (void)state;
    blob model = rich_model();
    for (size_t length = 0; length < model.length; length++) {
        uint8_t *copy = malloc(length ? length : 1);
        memcpy(copy, model.data, length);
        loaded l;
        load_bytes(&l, copy, length, NULL);
        if (l.status != UIR_STATUS_OK) assert_true(l.diagnostics.error_count > 0);
        unload(&l);
        free(copy);
    }
    blob_free(&model);
}

/* Every byte replaced by a few others. */
static void every_byte_changed(void **state) {
    (void)state;
    static const uint8_t changes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    blob model = rich_model();
    for (size_t at = 0; at < model.length; at++) {
        for (size_t i = 0; i < sizeof changes; i++) {
            char before = model.data[at];
            model.data[at] = (char)changes[i];
            loaded l;
            load_bytes(&l, model.data, model.length, NULL);
            if (l.status != UIR_STATUS_OK) assert_true(l.diagnostics.error_count > 0);
            unload(&l);
            model.data[at] = before;
        }
    }
    blob_free(&model);
}

/* `levels` messages in each other, the way down alternating between the fields. Built from the inside out in one
 * buffer. */
static blob nest(size_t levels, const uint32_t *fields, size_t field_count) {
    blob inner = blob_new();
    for (size_t level = levels; level-- > 0;) {
        blob outer = blob_new();
        put_message(&outer, fields[level % field_count], inner);
        inner = outer;
    }
    return inner;
}

static void deep_nesting_is_refused(void **state) {
    (void)state;
    static const uint32_t graphs[] = {GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_G};
    static const uint32_t types[] = {4, 1}; /* TypeProto.sequence_type, Sequence.elem_type */
    static const size_t levels[] = {200, 5000, 15000};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        blob model = blob_new();
        put_int(&model, MODEL_IR_VERSION, 10);
        put_message(&model, MODEL_GRAPH, nest(levels[i], graphs, 3));
        expect_failure(model, UIR_STATUS_LIMIT, "nested too deep");
        blob graph = blob_new(), value = blob_new();
        put_message(&value, VALUE_TYPE, nest(levels[i], types, 2));
        put_message(&graph, GRAPH_INPUT, value);
        expect_failure(make_model(graph), UIR_STATUS_LIMIT, "nested too deep");
    }
    /* What is allowed works: a stack that overflows would show under a sanitizer. */
    blob graph = blob_new(), value = make_value("v", UIR_DTYPE_F32, "1");
    put_message(&value, VALUE_TYPE, nest(90, types, 2));
    put_message(&graph, GRAPH_INPUT, value);
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_false(said(&l, "nested too deep"));
    unload(&l);
}

static void lengths_that_lie_are_refused(void **state) {
    (void)state;
    static const uint64_t lengths[] = {5,         0x7fffffff, 0x80000000u, UINT32_MAX, (uint64_t)1 << 40,
                                       INT64_MAX, UINT64_MAX};
    static const uint32_t fields[] = {2, MODEL_GRAPH, MODEL_OPSET, 6, 900};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            blob model = blob_new();
            put_int(&model, MODEL_IR_VERSION, 10);
            uir_wire_write_key(&model, fields[f], UIR_WIRE_BYTES);
            uir_wire_write_varint(&model, lengths[i]);
            uir_text_append(&model, "\x08\x01\x10\x02", 4);
            expect_failure(model, UIR_STATUS_BAD_FILE, "the length is past the end");
        }
    }
    blob model = blob_new(); /* a varint that never ends */
    put_int(&model, MODEL_IR_VERSION, 10);
    for (int i = 0; i < 30; i++) uir_text_append(&model, "\xff", 1);
    expect_failure(model, UIR_STATUS_BAD_FILE, "too long");
}

static void wrong_kinds_are_refused(void **state) {
    (void)state;
    static const struct {
        uint32_t field;
        uir_wire_type type;
    } cases[] = {{MODEL_GRAPH, UIR_WIRE_VARINT},
                 {MODEL_IR_VERSION, UIR_WIRE_32},
                 {MODEL_OPSET, UIR_WIRE_64},
                 {MODEL_IR_VERSION, UIR_WIRE_BYTES}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob model = blob_new();
        uir_wire_write_key(&model, cases[i].field, cases[i].type);
        uir_text_append(&model, "\x01\x01\x01\x01\x01\x01\x01\x01", 8);
        expect_failure(model, UIR_STATUS_BAD_FILE, "the wrong type");
    }
    for (int type = 3; type < 8; type++) { /* groups, and types that do not exist */
        if (type == UIR_WIRE_32) continue;
        blob model = blob_new();
        uir_wire_write_varint(&model, 2 << 3 | (uint64_t)type);
        expect_failure(model, UIR_STATUS_BAD_FILE, "wire type");
    }
    static const char *const texts[] = {"",           "not a model at all", "\x89PNG\r\n\x1a\n",
                                        "PK\x03\x04", "{\"a\": 1}",         "\x80\x02}q"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        blob model = blob_new();
        uir_text_append_string(&model, texts[i]);
        expect_failure(model, UIR_STATUS_BAD_FILE, NULL);
    }
}

static void packed_fields_are_checked(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y")), tensor = make_tensor("w", UIR_DTYPE_F32, 0, NULL);
    put_bytes(&tensor, TENSOR_FLOATS, "abcde", 5); /* not a number of floats */
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, NULL);
}

/* Two bytes of file for each attribute: what is unpacked must stay in proportion. */
static void many_small_messages_are_bounded(void **state) {
    (void)state;
    blob node = make_node("Relu", "n", "x", "y");
    for (int i = 0; i < 4000000; i++) uir_text_append(&node, "\x2a\x00", 2);
    loaded l;
    load_model(&l, make_model(make_graph_of(node)), NULL);
    assert_int_equal(l.status, UIR_STATUS_LIMIT);
    assert_true(l.arena.used < (1 << 20));
    unload(&l);
}

static void many_problems_do_not_fill_memory(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    for (int i = 0; i < 20000; i++) {
        char op[20] = {'O', (char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676 % 26), 0};
        put_message(&graph, GRAPH_NODE, make_node(op, "n", "nowhere", "-"));
    }
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_BAD_FILE);
    uint32_t kept = 0;
    for (const uir_diagnostic *d = l.diagnostics.first; d; d = d->next) kept++;
    assert_true(kept <= 1000);
    unload(&l);
}

static bool load_once(const uir_allocator *allocator) {
    blob model = rich_model();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *module = NULL;
    uir_diagnostics_init(&diagnostics, allocator);
    uir_arena_init(&arena, allocator);
    uir_onnx_source source = {.data = model.data, .size = model.length};
    uir_status status = uir_onnx_load(&source, allocator, &diagnostics, &arena, &info, &module);
    if (status != UIR_STATUS_OK) assert_int_equal(status, UIR_STATUS_OUT_OF_MEMORY);
    if (status == UIR_STATUS_OK) uir_module_destroy(module);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    blob_free(&model);
    return status == UIR_STATUS_OK;
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    run_with_failures(load_once);
}

/* One field of bytes that end with it: what it is, or what is wrong with it. */
static void fields_are_read_within_their_bytes(void **state) {
    (void)state;
#define MOST "\xff\xff\xff\xff\xff\xff\xff\xff\xff"
    static const struct {
        const char *bytes;
        size_t size;
        const char *wrong; /* NULL: nothing */
        uint32_t number;
        uint64_t value, length;
    } cases[] = {
        {"\x08\x05", 2, NULL, 1, 5, 1},
        {"\x08\x80\x00", 3, NULL, 1, 0, 2}, /* longer than need be */
        {"\x08" MOST "\x01", 11, NULL, 1, UINT64_MAX, 10},
        {"\x08" MOST "\x02", 11, "the number is cut off or too long", 1, 0, 0},
        {"\x08" MOST "\x81\x00", 12, "the number is cut off or too long", 1, 0, 0},
        {"\x08\x80", 2, "the number is cut off or too long", 1, 0, 0},
        {"\x80", 1, "the field's key is cut off or too long", 0, 0, 0},
        {"\x00\x05", 2, "the field's number is out of range", 0, 0, 0},
        {"\xf8\xff\xff\xff\x0f\x05", 6, NULL, 536870911, 5, 1},
        {"\x80\x80\x80\x80\x10\x05", 6, "the field's number is out of range", 0, 0, 0},
        {"\x09"
         "12345678",
         9, NULL, 1, 0, 8},
        {"\x09"
         "1234567",
         8, "the number is cut off", 1, 0, 0},
        {"\x0d"
         "1234",
         5, NULL, 1, 0, 4},
        {"\x0d"
         "123",
         4, "the number is cut off", 1, 0, 0},
        {"\x0a\x02"
         "ab",
         4, NULL, 1, 0, 2},
        {"\x0a\x00", 2, NULL, 1, 0, 0},
        {"\x0a\x03"
         "ab",
         4, "the length is past the end", 1, 0, 0},
        {"\x0a" MOST "\x01"
         "ab",
         13, "the length is past the end", 1, 0, 0},
        {"\x0a\x82", 2, "the length is cut off or too long", 1, 0, 0},
        {"\x0b", 1, "the field has a wire type that ONNX does not use", 1, 0, 0},
    };
#undef MOST
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *copy = malloc(cases[i].size); /* so that a sanitizer sees a read past its end */
        memcpy(copy, cases[i].bytes, cases[i].size);
        uir_wire_reader reader = {copy, copy + cases[i].size};
        uir_wire_field field;
        const char *wrong = uir_wire_next(&reader, &field);
        if (!wrong != !cases[i].wrong) fail_msg("case %zu: %s", i, wrong ? wrong : "nothing is wrong");
        if (wrong) {
            assert_string_equal(wrong, cases[i].wrong);
        } else {
            assert_int_equal(field.number, cases[i].number);
            assert_true(field.type != UIR_WIRE_VARINT || field.value == cases[i].value);
            assert_int_equal(field.length, cases[i].length);
            assert_ptr_equal(reader.at, reader.end);
        }
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read_within_their_bytes),
        cmocka_unit_test(the_rich_model_is_sound),
        cmocka_unit_test(truncated_at_every_length),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(lengths_that_lie_are_refused),
        cmocka_unit_test(wrong_kinds_are_refused),
        cmocka_unit_test(packed_fields_are_checked),
        cmocka_unit_test(many_small_messages_are_bounded),
        cmocka_unit_test(many_problems_do_not_fill_memory),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
