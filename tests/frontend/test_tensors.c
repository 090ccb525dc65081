/* Tensors in files: every element type in every form it may be stored in, and sizes that do not match. */
#include "tests/frontend/make.h"

/* A value file holding the tensor; the tensor's bytes are freed. */
static uir_status read_tensor(blob tensor, uir_datum **out_datum, char *message, size_t capacity) {
    static uir_allocator system;
    system = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    const char *name;
    uir_diagnostics_init(&diagnostics, &system);
    uir_arena_init(&arena, &system);
    *out_datum = NULL;
    uir_status status = uir_onnx_read_datum(&system, &diagnostics, "t.pb", tensor.data, tensor.length, UIR_VALUE_TENSOR,
                                            &arena, &name, out_datum);
    message[0] = 0;
    if (diagnostics.first) uir_diagnostic_format(diagnostics.first, message, capacity);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    blob_free(&tensor);
    return status;
}

static void expect_tensor(blob tensor, uir_dtype dtype, const void *bytes, size_t size) {
    uir_datum *datum;
    char message[500];
    if (read_tensor(tensor, &datum, message, sizeof message) != UIR_STATUS_OK) fail_msg("%s", message);
    assert_int_equal(datum->tensor->dtype, dtype);
    assert_int_equal(datum->tensor->byte_size, size);
    if (size) assert_memory_equal(datum->tensor->data, bytes, size);
    uir_datum_release(datum);
}

static void expect_refusal(blob tensor, uir_status status, const char *text) {
    uir_datum *datum;
    char message[500];
    uir_status got = read_tensor(tensor, &datum, message, sizeof message);
    if (got != status || !strstr(message, text)) fail_msg("%s: %s", uir_status_text(got), message);
}

/* Packed repeated varints. */
static void put_varints(blob *b, uint32_t field, const int64_t *values, size_t count) {
    blob packed = blob_new();
    for (size_t i = 0; i < count; i++) uir_wire_write_varint(&packed, (uint64_t)values[i]);
    put_message(b, field, packed);
}

static const int64_t three[] = {3};

static void raw_data_of_every_type(void **state) {
    (void)state;
    uint8_t bytes[64];
    for (int dtype = 1; dtype < UIR_DTYPE_COUNT; dtype++) {
        if (dtype == UIR_DTYPE_STRING) continue;
        size_t size;
        assert_true(uir_dtype_storage_size((uir_dtype)dtype, 3, &size));
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = dtype == UIR_DTYPE_BOOL ? i & 1 : (uint8_t)(i + 1);
        if (uir_dtype_bits((uir_dtype)dtype) < 8)
            bytes[size - 1] &= (uint8_t)((1u << 3 * uir_dtype_bits((uir_dtype)dtype) % 8) - 1);
        for (int extra = -1; extra <= 1; extra++) {
            blob tensor = make_tensor("t", dtype, 1, three);
            put_bytes(&tensor, TENSOR_RAW, bytes, (size_t)((int)size + extra));
            if (extra == 0) {
                expect_tensor(tensor, (uir_dtype)dtype, bytes, size);
            } else {
                expect_refusal(tensor, UIR_STATUS_BAD_FILE, size == 1 && extra < 0 ? "need" : "bytes of raw data");
            }
        }
    }
}

static void booleans_and_padding_are_made_clean(void **state) {
    (void)state;
    blob tensor = make_tensor("t", UIR_DTYPE_BOOL, 1, three);
    put_bytes(&tensor, TENSOR_RAW, "\0\2\xff", 3);
    expect_tensor(tensor, UIR_DTYPE_BOOL, "\0\1\1", 3);
    tensor = make_tensor("t", UIR_DTYPE_U4, 1, three);
    put_bytes(&tensor, TENSOR_RAW, "\x21\xf3", 2);
    expect_tensor(tensor, UIR_DTYPE_U4, "\x21\x03", 2);
}

static void int32_data_holds_narrow_types(void **state) {
    (void)state;
    static const struct {
        uir_dtype dtype;
        int64_t values[3];
        size_t count; /* of stored numbers */
        const char *bytes;
        size_t size;
    } cases[] = {
        {UIR_DTYPE_I32, {-1, 2, INT32_MIN}, 3, "\xff\xff\xff\xff\2\0\0\0\0\0\0\x80", 12},
        {UIR_DTYPE_I16, {-1, 2, 3}, 3, "\xff\xff\2\0\3\0", 6},
        {UIR_DTYPE_U8, {255, 2, 3}, 3, "\xff\2\3", 3},
        {UIR_DTYPE_I8, {-128, 2, 3}, 3, "\x80\2\3", 3},
        {UIR_DTYPE_BOOL, {1, 0, 7}, 3, "\1\0\1", 3},
        {UIR_DTYPE_F16, {0x3c00, 0xbc00, 0}, 3, "\0\x3c\0\xbc\0\0", 6},
        {UIR_DTYPE_BF16, {0x3f80, 0, 0xffff}, 3, "\x80\x3f\0\0\xff\xff", 6},
        {UIR_DTYPE_F8E4M3FN, {0x38, 0xb8, 0}, 3, "\x38\xb8\0", 3},
        {UIR_DTYPE_F8E8M0, {127, 255, 0}, 3, "\x7f\xff\0", 3},
        {UIR_DTYPE_U4, {0x21, 0xf3}, 2, "\x21\x03", 2},
        {UIR_DTYPE_I4, {0x2f, 0x0e}, 2, "\x2f\x0e", 2},
        {UIR_DTYPE_F4E2M1, {0x21, 0x03}, 2, "\x21\x03", 2},
        {UIR_DTYPE_U2, {0x39}, 1, "\x39", 1},
        {UIR_DTYPE_I2, {0xff}, 1, "\x3f", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob tensor = make_tensor("t", cases[i].dtype, 1, three);
        put_varints(&tensor, TENSOR_INT32S, cases[i].values, cases[i].count);
        expect_tensor(tensor, cases[i].dtype, cases[i].bytes, cases[i].size);
        tensor = make_tensor("t", cases[i].dtype, 1, three);
        put_varints(&tensor, TENSOR_INT32S, cases[i].values, cases[i].count - 1);
        expect_refusal(tensor, UIR_STATUS_BAD_FILE, "stored elements");
    }
    blob tensor = make_tensor("t", UIR_DTYPE_I8, 1, three);
    put_varints(&tensor, TENSOR_INT32S, (int64_t[]){1, 300, 2}, 3);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "300 does not fit i8");
}

static void other_typed_fields(void **state) {
    (void)state;
    float floats[] = {1.5f, -2, 0, 4, 5, 6};
    double doubles[] = {1.5, -2, 1e300, 4, 5, 6};
    int64_t integers[] = {INT64_MIN, -1, INT64_MAX};
    uint32_t narrow[] = {0, 7, UINT32_MAX};
    blob tensor = make_tensor("t", UIR_DTYPE_F32, 1, three);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 12);
    expect_tensor(tensor, UIR_DTYPE_F32, floats, 12);
    tensor = make_tensor("t", UIR_DTYPE_C64, 1, three);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 24);
    expect_tensor(tensor, UIR_DTYPE_C64, floats, 24);
    tensor = make_tensor("t", UIR_DTYPE_C64, 1, three);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 12);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "3 stored elements");
    tensor = make_tensor("t", UIR_DTYPE_F64, 1, three);
    put_bytes(&tensor, TENSOR_DOUBLES, doubles, 24);
    expect_tensor(tensor, UIR_DTYPE_F64, doubles, 24);
    tensor = make_tensor("t", UIR_DTYPE_C128, 1, three);
    put_bytes(&tensor, TENSOR_DOUBLES, doubles, 48);
    expect_tensor(tensor, UIR_DTYPE_C128, doubles, 48);
    tensor = make_tensor("t", UIR_DTYPE_I64, 1, three);
    put_varints(&tensor, TENSOR_INT64S, integers, 3);
    expect_tensor(tensor, UIR_DTYPE_I64, integers, 24);
    tensor = make_tensor("t", UIR_DTYPE_U64, 1, three);
    put_varints(&tensor, TENSOR_UINT64S, integers, 3);
    expect_tensor(tensor, UIR_DTYPE_U64, integers, 24);
    tensor = make_tensor("t", UIR_DTYPE_U32, 1, three);
    put_varints(&tensor, TENSOR_UINT64S, (int64_t[]){0, 7, UINT32_MAX}, 3);
    expect_tensor(tensor, UIR_DTYPE_U32, narrow, 12);
    tensor = make_tensor("t", UIR_DTYPE_U32, 1, three);
    put_varints(&tensor, TENSOR_UINT64S, (int64_t[]){0, 7, INT64_MAX}, 3);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "does not fit u32");
}

static void strings_keep_their_zeros(void **state) {
    (void)state;
    uir_datum *datum;
    char message[500];
    blob tensor = make_tensor("t", UIR_DTYPE_STRING, 1, three);
    put_bytes(&tensor, TENSOR_STRINGS, "a\0b", 3);
    put_bytes(&tensor, TENSOR_STRINGS, "", 0);
    put_bytes(&tensor, TENSOR_STRINGS, "\xc3\xa9", 2);
    assert_int_equal(read_tensor(tensor, &datum, message, sizeof message), UIR_STATUS_OK);
    const uir_string_view *strings = datum->tensor->data;
    assert_int_equal(strings[0].length, 3);
    assert_memory_equal(strings[0].text, "a\0b", 3);
    assert_int_equal(strings[1].length, 0);
    uir_datum_release(datum);
    tensor = make_tensor("t", UIR_DTYPE_STRING, 1, three);
    put_bytes(&tensor, TENSOR_STRINGS, "a", 1);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "1 stored elements");
    tensor = make_tensor("t", UIR_DTYPE_STRING, 1, three);
    put_bytes(&tensor, TENSOR_RAW, "abc", 3);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "strings cannot be stored as raw data");
}

static void headers_that_lie(void **state) {
    (void)state;
    static const int64_t negative[] = {3, -1}, huge[] = {INT64_MAX, INT64_MAX}, large[] = {(int64_t)1 << 40},
                         none[] = {0, INT64_MAX};
    int64_t many[UIR_MAX_RANK + 1];
    for (int i = 0; i <= UIR_MAX_RANK; i++) many[i] = 1;
    expect_refusal(make_tensor("t", UIR_DTYPE_F32, 2, negative), UIR_STATUS_BAD_FILE, "negative");
    expect_refusal(make_tensor("t", UIR_DTYPE_F32, 2, huge), UIR_STATUS_BAD_FILE, "too large");
    expect_refusal(make_tensor("t", UIR_DTYPE_F32, 1, large), UIR_STATUS_BAD_FILE, "stored elements");
    expect_refusal(make_tensor("t", UIR_DTYPE_STRING, 1, large), UIR_STATUS_BAD_FILE, "stored elements");
    expect_refusal(make_tensor("t", UIR_DTYPE_F32, UIR_MAX_RANK + 1, many), UIR_STATUS_UNSUPPORTED, "dims");
    blob most = make_tensor("t", UIR_DTYPE_U8, UIR_MAX_RANK, many);
    put_bytes(&most, TENSOR_RAW, "a", 1);
    expect_tensor(most, UIR_DTYPE_U8, "a", 1);
    expect_refusal(make_tensor("t", 0, 1, three), UIR_STATUS_BAD_FILE, "element type");
    expect_refusal(make_tensor("t", 99, 1, three), UIR_STATUS_UNSUPPORTED, "element type number 99");
    expect_refusal(make_tensor("t", -1, 1, three), UIR_STATUS_UNSUPPORTED, "element type number -1");
    expect_refusal(make_tensor("scalar", UIR_DTYPE_F32, 0, NULL), UIR_STATUS_BAD_FILE, "tensor 'scalar': 0 stored");
    expect_tensor(make_tensor("empty", UIR_DTYPE_F32, 2, none), UIR_DTYPE_F32, NULL, 0);
}

static void data_is_given_once_and_in_its_field(void **state) {
    (void)state;
    float floats[] = {1, 2, 3};
    blob tensor = make_tensor("t", UIR_DTYPE_F32, 1, three);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 12);
    put_bytes(&tensor, TENSOR_RAW, floats, 12);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "more than once");
    tensor = make_tensor("t", UIR_DTYPE_I32, 1, three);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 12);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "does not use");
    static const int64_t one[] = {1};
    tensor = make_tensor("t", UIR_DTYPE_I32, 1, one);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 4);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "does not use");
    tensor = make_tensor("t", UIR_DTYPE_F32, 1, one);
    put_bytes(&tensor, TENSOR_FLOATS, floats, 4);
    put_bytes(&tensor, TENSOR_RAW, floats, 4);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "more than once");
    tensor = make_tensor("t", UIR_DTYPE_F32, 1, three); /* an empty field says nothing */
    put_bytes(&tensor, TENSOR_FLOATS, floats, 12);
    put_bytes(&tensor, TENSOR_RAW, "", 0);
    expect_tensor(tensor, UIR_DTYPE_F32, floats, 12);
    tensor = make_tensor("t", UIR_DTYPE_F32, 1, three);
    put_bytes(&tensor, TENSOR_RAW, "", 0);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "0 bytes of raw data");
    tensor = make_tensor("t", UIR_DTYPE_F32, 1, three);
    put_int(&tensor, TENSOR_LOCATION, 7);
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "location 7");
    tensor = make_tensor("t", UIR_DTYPE_F32, 1, three);
    put_int(&tensor, TENSOR_LOCATION, 1);
    put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", "x"));
    expect_refusal(tensor, UIR_STATUS_BAD_FILE, "not allowed here");
}

static blob sparse_graph_of(blob value, const int64_t *dims, uint32_t rank, const int64_t *indices, uint32_t index_rank,
                            size_t nnz) {
    int64_t index_dims[] = {(int64_t)nnz, rank};
    blob sparse = blob_new(), index = make_tensor("", UIR_DTYPE_I64, index_rank, index_dims);
    put_bytes(&index, TENSOR_RAW, indices, nnz * (index_rank == 2 ? rank : 1) * sizeof *indices);
    put_message(&sparse, 1, value);
    put_message(&sparse, 2, index);
    for (uint32_t i = 0; i < rank; i++) put_int(&sparse, 3, dims[i]);
    blob graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
    put_message(&graph, GRAPH_SPARSE, sparse);
    return graph;
}

static blob sparse_graph(const int64_t *dims, uint32_t rank, const int64_t *indices, uint32_t index_rank, size_t nnz) {
    float values[] = {5, 6};
    int64_t value_dims[] = {2};
    blob value = make_tensor("w", UIR_DTYPE_F32, 1, value_dims);
    put_bytes(&value, TENSOR_RAW, values, sizeof values);
    return sparse_graph_of(value, dims, rank, indices, index_rank, nnz);
}

/* Two elements of a type at the places 0 and 5 of 2 x 3. */
static void expect_sparse(int32_t dtype, const void *stored, size_t stored_size, const void *dense, size_t size) {
    static const int64_t dims[] = {2, 3}, two[] = {2}, places[] = {0, 5};
    blob value = make_tensor("w", dtype, 1, two);
    put_bytes(&value, dtype == UIR_DTYPE_STRING ? TENSOR_STRINGS : TENSOR_RAW, stored, stored_size);
    blob model = make_model(sparse_graph_of(value, dims, 2, places, 1, 2));
    if (!dense) {
        expect_failure(model, UIR_STATUS_UNSUPPORTED, "sparse tensors of");
        return;
    }
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    const uir_tensor *w = uir_value_info_get(l.module, main_node(&l, 0)->inputs[1])->constant;
    assert_int_equal(w->byte_size, size);
    assert_memory_equal(w->data, dense, size);
    unload(&l);
}

static void sparse_tensors_of_every_width(void **state) {
    (void)state;
    expect_sparse(UIR_DTYPE_F8E4M3FN, "\x38\x40", 2, "\x38\0\0\0\0\x40", 6);
    expect_sparse(UIR_DTYPE_I16, "\1\2\3\4", 4, "\1\2\0\0\0\0\0\0\0\0\3\4", 12);
    expect_sparse(UIR_DTYPE_U4, "\x73", 1, "\3\0\x70", 3);
    expect_sparse(UIR_DTYPE_F4E2M1, "\x73", 1, NULL, 0);
    expect_sparse(UIR_DTYPE_STRING, "a", 1, NULL, 0);
}

static void sparse_initializers_become_dense(void **state) {
    (void)state;
    static const int64_t dims[] = {2, 3}, flat[] = {1, 5}, pairs[] = {0, 1, 1, 2}, outside[] = {1, 6},
                         below[] = {1, -1}, left[] = {0, 1, 1, -1}, under[] = {0, 1, 2, 0}, huge[] = {1 << 20, 1 << 20};
    static const float expected[] = {0, 5, 0, 0, 0, 6};
    for (uint32_t form = 1; form <= 2; form++) {
        loaded l;
        load_model(&l, make_model(sparse_graph(dims, 2, form == 1 ? flat : pairs, form, 2)), NULL);
        assert_int_equal(l.status, UIR_STATUS_OK);
        const uir_tensor *w = uir_value_info_get(l.module, main_node(&l, 0)->inputs[1])->constant;
        assert_int_equal(w->rank, 2);
        assert_memory_equal(w->data, expected, sizeof expected);
        unload(&l);
    }
    expect_failure(make_model(sparse_graph(dims, 2, outside, 1, 2)), UIR_STATUS_BAD_FILE, "outside its dims");
    expect_failure(make_model(sparse_graph(dims, 2, below, 1, 2)), UIR_STATUS_BAD_FILE, "outside its dims");
    expect_failure(make_model(sparse_graph(dims, 2, left, 2, 2)), UIR_STATUS_BAD_FILE, "outside its dims");
    expect_failure(make_model(sparse_graph(dims, 2, under, 2, 2)), UIR_STATUS_BAD_FILE, "outside its dims");
    expect_failure(make_model(sparse_graph(dims, 2, flat, 1, 1)), UIR_STATUS_BAD_FILE, "do not fit");
    expect_failure(make_model(sparse_graph(huge, 2, flat, 1, 2)), UIR_STATUS_LIMIT, "when dense");
}

static void files_of_another_kind_are_refused(void **state) {
    (void)state;
    uir_allocator system = uir_allocator_system();
    float floats[] = {1, 2, 3};
    blob tensor = make_tensor("t", UIR_DTYPE_F32, 1, three), sequence = blob_new();
    put_bytes(&tensor, TENSOR_RAW, floats, sizeof floats);
    put_text(&sequence, 1, "s");
    put_int(&sequence, 2, 1);
    put_bytes(&sequence, 3, tensor.data, tensor.length);
    uir_diagnostics diagnostics;
    uir_arena arena;
    const char *name;
    uir_datum *datum;
    uir_diagnostics_init(&diagnostics, &system);
    uir_arena_init(&arena, &system);
    for (int kind = UIR_VALUE_SEQUENCE; kind <= UIR_VALUE_OPTIONAL; kind++) {
        assert_int_equal(uir_onnx_read_datum(&system, &diagnostics, "t.pb", tensor.data, tensor.length,
                                             (uir_value_kind)kind, &arena, &name, &datum),
                         UIR_STATUS_BAD_FILE);
    }
    assert_int_not_equal(uir_onnx_read_datum(&system, &diagnostics, "s.pb", sequence.data, sequence.length,
                                             UIR_VALUE_TENSOR, &arena, &name, &datum),
                         UIR_STATUS_OK);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    blob_free(&tensor);
    blob_free(&sequence);
}

static void values_are_written_and_read_again(void **state) {
    (void)state;
    uir_allocator system = uir_allocator_system();
    static const int64_t shape[] = {2};
    uir_datum *optional, *sequence;
    assert_int_equal(uir_datum_create_list(&system, UIR_VALUE_OPTIONAL, UIR_DTYPE_NONE, &optional), UIR_STATUS_OK);
    assert_int_equal(uir_datum_create_list(&system, UIR_VALUE_SEQUENCE, UIR_DTYPE_STRING, &sequence), UIR_STATUS_OK);
    for (int i = 0; i < 2; i++) {
        uir_tensor *tensor;
        uir_datum *element;
        assert_int_equal(uir_tensor_create(&system, UIR_DTYPE_STRING, 1, shape, &tensor), UIR_STATUS_OK);
        assert_int_equal(uir_tensor_set_string(tensor, 1, "z\0", 2), UIR_STATUS_OK);
        assert_int_equal(uir_datum_create_tensor(&system, tensor, &element), UIR_STATUS_OK);
        assert_int_equal(uir_datum_append(sequence, element), UIR_STATUS_OK);
    }
    assert_int_equal(uir_datum_append(optional, sequence), UIR_STATUS_OK);
    blob bytes = blob_new();
    assert_int_equal(uir_onnx_write_datum(optional, "the name", &bytes), UIR_STATUS_OK);
    uir_datum_release(optional);

    uir_diagnostics diagnostics;
    uir_arena arena;
    const char *name;
    uir_diagnostics_init(&diagnostics, &system);
    uir_arena_init(&arena, &system);
    assert_int_equal(uir_onnx_read_datum(&system, &diagnostics, "o.pb", bytes.data, bytes.length, UIR_VALUE_OPTIONAL,
                                         &arena, &name, &optional),
                     UIR_STATUS_OK);
    assert_string_equal(name, "the name");
    assert_int_equal(optional->count, 1);
    assert_int_equal(optional->elements[0]->count, 2);
    const uir_string_view *strings = optional->elements[0]->elements[1]->tensor->data;
    assert_int_equal(strings[1].length, 2);
    uir_datum_release(optional);
    /* Every shorter file is refused or read, never more. */
    for (size_t length = 0; length < bytes.length; length++) {
        void *copy = uir_allocate(&system, length);
        memcpy(copy, bytes.data, length);
        if (uir_onnx_read_datum(&system, &diagnostics, "o.pb", copy, length, UIR_VALUE_OPTIONAL, &arena, &name,
                                &optional) == UIR_STATUS_OK) {
            uir_datum_release(optional);
        }
        uir_release(&system, copy, length);
    }
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    blob_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_data_of_every_type),
        cmocka_unit_test(booleans_and_padding_are_made_clean),
        cmocka_unit_test(int32_data_holds_narrow_types),
        cmocka_unit_test(other_typed_fields),
        cmocka_unit_test(strings_keep_their_zeros),
        cmocka_unit_test(headers_that_lie),
        cmocka_unit_test(data_is_given_once_and_in_its_field),
        cmocka_unit_test(sparse_initializers_become_dense),
        cmocka_unit_test(sparse_tensors_of_every_width),
        cmocka_unit_test(files_of_another_kind_are_refused),
        cmocka_unit_test(values_are_written_and_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
