/* What is bound wrongly, refused, cancelled; buffers of the caller; an allocator that fails at every point in turn. */
#include "tests/runtime/support.h"

#include <pthread.h>
#include <string.h>

static const char *const kernels = KERNEL_TWICE("twice", "0..1000") /**/
    "igraph @put on cpu {\n"
    "  dim R in 1..1000, C in 0..1000\n"
    "  ptr %old : dram f32 [R, C] in 0\n"
    "  ptr %row : dram f32 [1, C] in 1\n"
    "  ptr %new : dram f32 [R, C] out 0 tied %old\n"
    "  phase {\n"
    "    move.dram.dram.f32 %new[R-1:1, 0:C], %row[0:1, 0:C]\n"
    "  }\n"
    "}\n";

static const char *const module_text = /**/
    "module opset 17\n"
    "size N min 1\n"
    "constant %n: i64[] = [3]\n"
    "graph \"main\" (%x: f32[N], %y: f32[N]) {\n"                                                     /**/
    GROUP_TWICE("d", "x", "1")                                                                        /**/
    "    %l: f32[N] = loop(%n, none, %d) {body = graph \"b\" (%i: i64[], %c: bool[], %v: f32[N]) {\n" /**/
    GROUP_TWICE("w", "v", "2")                                                                        /**/
    "        return %c, %w\n"
    "    }}\n"
    "    return %d, %l, %y\n"
    "}\n";

/* The last row of a cache is replaced. */
static const char *const cache_module =
    "module opset 17\n"
    "size R min 1\n"
    "size C\n"
    "constant %rows: i64[1] = [0]\n"
    "graph \"main\" (%old: f32[R, C], %row: f32[1, C]) {\n"
    "    %new: f32[R, C] = group(%old, %row) {body = graph \"g\" (%a: f32[R, C], %b: f32[1, C]) {\n"
    "        %head: f32[R - 1, C] = slice(%a) {starts = [0, 0], sizes = [R - 1, C], steps = [1, 1]}\n"
    "        %all: f32[R, C] = concat(%head, %b) {axis = 0}\n"
    "        return %all\n"
    "    }, sizes = [R, C], kernel = \"put\"}\n"
    "    return %new\n"
    "}\n";

static void begin(session *s, const char *text) {
    session_begin(s, text, kernels, &(uir_runtime_options){.threads = 2});
}

static void test_ports(void **state) {
    (void)state;
    session s;
    float x[4] = {1, 2, 3, 4};
    int64_t shape[2] = {4, 1}, five = 5;
    uir_runtime_output output;
    begin(&s, module_text);
    assert_int_equal(uir_package_input_count(s.package), 2);
    assert_int_equal(uir_package_output_count(s.package), 3);
    uir_package_port port = uir_package_get_input(s.package, 1);
    assert_string_equal(port.name, "y");
    assert_string_equal(port.dim_names[0], "N");
    assert_int_equal(port.dims[0], -1);
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_INVALID_ARGUMENT);
    check_message(&s.f, "input 'x' is not set");
    assert_int_equal(uir_runtime_get_output(s.r, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_runtime_set_input(s.r, 0, UIR_DTYPE_I64, 1, shape, x), UIR_STATUS_BAD_DATA);
    assert_int_equal(uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, 2, shape, x), UIR_STATUS_BAD_DATA);
    assert_int_equal(uir_runtime_set_input(s.r, 9, UIR_DTYPE_F32, 1, shape, x), UIR_STATUS_INVALID_ARGUMENT);
    session_set(&s, 0, 4, x);
    check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_F32, 1, &five, x));
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_DATA);
    check_message(&s.f, "input 'y': dim 0 is 5 (N) and must be 4");
    session_set(&s, 0, 0, x);
    session_set(&s, 1, 0, x);
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_DATA);
    check_message(&s.f, "dim N is 0 and must be at least 1");
    session_set(&s, 0, 2000, x);
    session_set(&s, 1, 2000, x);
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_DATA);
    check_message(&s.f, "no variant of kernel @twice fits the sizes (2000)");
    session_set(&s, 0, 4, x);
    session_set(&s, 1, 4, x);
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &output));
    uint64_t bytes;
    check_ok(&s.f, uir_runtime_plan(s.r, &bytes));
    assert_int_equal(uir_runtime_get_output(s.r, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
    check_message(&s.f, "outputs exist only after a successful run");
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &output));
    session_set(&s, 1, 3, x);
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_DATA);
    assert_int_equal(uir_runtime_get_output(s.r, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
    session_end(&s);
}

/* Two elements share a byte, so that no stride says where one is. */
static void test_halves_of_bytes(void **state) {
    (void)state;
    session s;
    unsigned char x[2] = {0x21, 0x43};
    int64_t four = 4, one = 1;
    begin(&s, "module opset 17\nsize N\ngraph \"main\" (%x: u4[N]) {\n    return %x\n}\n");
    assert_int_equal(uir_runtime_set_input_strided(s.r, 0, UIR_DTYPE_U4, 1, &four, &one, x, sizeof x),
                     UIR_STATUS_INVALID_ARGUMENT);
    check_message(&s.f, "input 'x': elements of less than a byte have no strides");
    assert_int_equal(uir_runtime_bind_output_strided(s.r, 0, &one, x, sizeof x), UIR_STATUS_INVALID_ARGUMENT);
    session_end(&s);
}

static void test_buffers(void **state) {
    (void)state;
    session s;
    float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, result[4] = {0};
    uir_runtime_output output;
    begin(&s, module_text);
    session_set(&s, 0, 4, x);
    session_set(&s, 1, 4, y);
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, result, sizeof result));
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &output));
    assert_ptr_equal(output.data, result);
    for (int i = 0; i < 4; i++) assert_true(result[i] == 2 * x[i]);
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, result, sizeof result - 1));
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_INVALID_ARGUMENT);
    check_message(&s.f, "output 'd': the buffer holds 15 bytes, 16 are needed");
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, NULL, 0));
    /* A result in the buffer of an input that is read until the end. */
    check_ok(&s.f, uir_runtime_bind_output(s.r, 1, x, sizeof x));
    check_ok(&s.f, uir_runtime_run(s.r));
    for (int i = 0; i < 4; i++) assert_true(x[i] == 16 * (float)(i + 1));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &output));
    for (int i = 0; i < 4; i++) assert_true(((const float *)output.data)[i] == 2 * (float)(i + 1));
    session_end(&s);
}

static void test_in_place(void **state) {
    (void)state;
    session s;
    float old[3][2] = {{1, 2}, {3, 4}, {5, 6}}, row[2] = {7, 8};
    int64_t shape[2] = {3, 2}, one[2] = {1, 2};
    uir_runtime_output output;
    begin(&s, cache_module);
    check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, 2, shape, old));
    check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_F32, 2, one, row));
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &output));
    assert_true(old[2][0] == 5);
    static const float wanted[6] = {1, 2, 3, 4, 7, 8};
    assert_memory_equal(output.data, wanted, sizeof wanted);
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, old, sizeof old));
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &output));
    assert_ptr_equal(output.data, old);
    assert_memory_equal(old, wanted, sizeof wanted);
    session_end(&s);
}

static void test_cancel(void **state) {
    (void)state;
    session s;
    float x[4] = {1, 2, 3, 4};
    begin(&s, module_text);
    session_set(&s, 0, 4, x);
    session_set(&s, 1, 4, x);
    uir_runtime_cancel(s.r);
    uint64_t bytes;
    assert_int_equal(uir_runtime_plan(s.r, &bytes), UIR_STATUS_CANCELLED);
    check_message(&s.f, "planning the run was cancelled");
    check_ok(&s.f, uir_runtime_plan(s.r, &bytes));
    uir_runtime_cancel(s.r);
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_CANCELLED);
    check_ok(&s.f, uir_runtime_run(s.r));
    session_end(&s);
}

static void test_unplannable(void **state) {
    (void)state;
    fixture f;
    fixture_init(&f);
    assert_int_equal(fixture_build(&f,
                                   "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
                                   "    %a: f32[N] = neg(%x) name \"first\"\n"
                                   "    %b: f32[N] = exp(%a) name \"second\"\n    return %b\n}\n",
                                   kernels),
                     UIR_STATUS_UNSUPPORTED);
    check_message(&f, "first");
    check_message(&f, "second");
    fixture_deinit(&f);
}

/* ---- failing allocators ---- */
static uir_status whole_run(fixture *f, counting *c) {
    uir_package *package = NULL;
    uir_runtime *r = NULL;
    float x[4] = {1, 2, 3, 4};
    int64_t four = 4;
    uir_text bytes;
    uir_text_init(&bytes, &c->allocator);
    uir_status status = fixture_plan(f, NULL, &c->allocator, &bytes);
    if (status == UIR_STATUS_OK)
        status = uir_package_open(bytes.data, bytes.length, &open_by_vm, &c->allocator, &f->diagnostics, &package);
    if (status == UIR_STATUS_OK)
        status = uir_runtime_create(package, &(uir_runtime_options){.threads = 2}, &c->allocator, &f->diagnostics, &r);
    for (uint32_t i = 0; i < 2 && status == UIR_STATUS_OK; i++)
        status = uir_runtime_set_input(r, i, UIR_DTYPE_F32, 1, &four, x);
    if (status == UIR_STATUS_OK) status = uir_runtime_run(r);
    uir_runtime_destroy(r);
    uir_package_close(package);
    uir_text_deinit(&bytes);
    return status;
}

static void test_failing_allocator(void **state) {
    (void)state;
    fixture f;
    counting c;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    counting_init(&c);
    check_ok(&f, whole_run(&f, &c));
    uint64_t calls = c.calls;
    assert_true(calls > 20);
    for (uint64_t i = 1; i <= calls; i++) {
        counting_init(&c);
        c.fail_at = i;
        assert_int_equal(whole_run(&f, &c), UIR_STATUS_OUT_OF_MEMORY);
        assert_int_equal(c.bytes, 0);
    }
    fixture_deinit(&f);
}

/* ---- several runtimes at once ---- */
typedef struct racer {
    uir_package *package;
    float base;
    bool failed;
} racer;

static void *race(void *argument) {
    racer *w = argument;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_runtime *r = NULL;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_runtime_options options = {.threads = 2};
    w->failed = uir_runtime_create(w->package, &options, &allocator, &diagnostics, &r) != UIR_STATUS_OK;
    for (int i = 0; i < 50 && !w->failed; i++) {
        float x[300];
        int64_t count = 1 + (i * 37) % 300;
        uir_runtime_output output;
        for (int64_t k = 0; k < count; k++) x[k] = w->base + (float)k;
        w->failed |= uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 1, &count, x) != UIR_STATUS_OK;
        w->failed |= uir_runtime_set_input(r, 1, UIR_DTYPE_F32, 1, &count, x) != UIR_STATUS_OK;
        w->failed |= uir_runtime_run(r) != UIR_STATUS_OK;
        w->failed |= w->failed || uir_runtime_get_output(r, 1, &output) != UIR_STATUS_OK;
        for (int64_t k = 0; k < count && !w->failed; k++) w->failed = ((const float *)output.data)[k] != 16 * x[k];
    }
    uir_runtime_destroy(r);
    uir_diagnostics_deinit(&diagnostics);
    return NULL;
}

static void test_sessions(void **state) {
    (void)state;
    session s;
    pthread_t threads[3];
    racer racers[3];
    begin(&s, module_text);
    for (int i = 0; i < 3; i++) {
        racers[i] = (racer){s.package, (float)i * 1000, false};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_false(racers[i].failed);
    }
    session_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports),       cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_in_place),    cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_unplannable), cmocka_unit_test(test_failing_allocator),
        cmocka_unit_test(test_sessions),    cmocka_unit_test(test_halves_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
