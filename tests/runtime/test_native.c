/* Compiled kernels in a package, and attached to one that runs by the VM: the same bits. */
#include "tests/backends/cpu/here.h"
#include "tests/runtime/support.h"

#include "backends/cpu/driver/driver.h"
#include "backends/cpu/target/build.h"
#include "backends/cpu/target/mark.h"
#include "base/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const kernels = /**/
    "igraph @softmax on cpu {\n"
    "  dim M in 0..10000, N in 1..10000\n"
    "  ptr %x : dram f32 [M, N] in 0\n"
    "  ptr %e : sram f32 [1, N]\n"
    "  ptr %y : dram f32 [M, N] out 0\n"
    "  ptr %m, %s : reg f32 [1, 1]\n"
    "  require N*4 <= sram/2\n"
    "  phase {\n"
    "    parallel p : M group\n"
    "    reduce.max.row.unit.f32 %m, %x[p:1, 0:N]\n"
    "    binary.sub.f32 %e[0:1, 0:N], %x[p:1, 0:N], %m\n"
    "    unary.exp.f32 %e[0:1, 0:N], %e[0:1, 0:N]\n"
    "    reduce.add.row.unit.f32 %s, %e[0:1, 0:N]\n"
    "    binary.div.f32 %y[p:1, 0:N], %e[0:1, 0:N], %s\n"
    "  }\n"
    "}\n" /**/
    KERNEL_TWICE_IN_PARTS("0..1000000", "  candidate t = 256\n");

static const char *const module_text = /**/
    "module opset 17\n"
    "size M\n"
    "size N min 1\n"
    "graph \"main\" (%x: f32[M, N]) {\n"
    "    %s: f32[M, N] = group(%x) {body = graph \"g\" (%a: f32[M, N]) {\n"
    "        %m: f32[M, 1] = reduce_max(%a) {axes = [1], keep = 1}\n"
    "        %mb: f32[M, N] = broadcast(%m) {dims = [M, N]}\n"
    "        %d: f32[M, N] = sub(%a, %mb)\n"
    "        %e: f32[M, N] = exp(%d)\n"
    "        %t: f32[M, 1] = reduce_sum(%e) {axes = [1], keep = 1}\n"
    "        %tb: f32[M, N] = broadcast(%t) {dims = [M, N]}\n"
    "        %q: f32[M, N] = div(%e, %tb)\n"
    "        return %q\n"
    "    }, sizes = [M, N], kernel = \"softmax\"}\n"
    "    %f: f32[M*N] = reshape(%s) {dims = [M*N]}\n" /**/
    GROUP_TWICE_OF("M*N", "w", "f", "2")              /**/
    "    %y: f32[M, N] = reshape(%w) {dims = [M, N]}\n"
    "    return %y\n"
    "}\n";

typedef struct native {
    fixture f;
    uir_cpu_device device;
    uir_target_object object;
    const char *symbols[8];
    uir_dim scratch[8];
} native;

static void begin_with(native *n, const char *module, const char *kernel_text) {
    fixture_init(&n->f);
    check_ok(&n->f, fixture_build(&n->f, module, kernel_text));
    check_ok(&n->f, uir_cpu_describe(NULL, &n->f.diagnostics, &n->device));
    uir_cpu_build_options options = {.compile = {.variant = n->device.variant}, .build.jobs = 1};
    check_ok(&n->f, uir_cpu_build(&n->f.allocator, &options, (const uir_igraph *const *)n->f.kernels.igraphs,
                                  n->f.kernels.count, &n->f.diagnostics, &n->object));
    for (uint32_t i = 0; i < n->f.kernels.count; i++) {
        n->symbols[i] = n->object.symbols[i];
        n->scratch[i] = uir_cpu_scratch_bytes(n->f.kernels.igraphs[i]);
    }
}

static void begin(native *n) {
    begin_with(n, module_text, kernels);
}

static void end(native *n) {
    uir_target_object_deinit(&n->object);
    fixture_deinit(&n->f);
}

/* A package with the object in it, or only with its names, or with neither but told of its isa. */
static void build(native *n, bool with_bytes, bool with_names, uir_text *package) {
    uir_plan_object objects[] = {{uir_cpu_variant_name(n->device.variant), with_bytes ? n->object.bytes : NULL,
                                  n->object.size, with_names ? n->symbols : NULL},
                                 {"no such", NULL, 0, NULL}};
    uir_plan_options options = {.objects = objects, .object_count = 2, .scratch = n->scratch};
    uir_text_init(package, &n->f.allocator);
    check_ok(&n->f, fixture_plan(&n->f, &options, &n->f.allocator, package));
}

static uir_status open_package(native *n, const uir_text *bytes, bool trusted, uir_package **out) {
    const uir_kernel_format *formats[] = {&uir_cpu_format, &uir_vm_format};
    uir_package_options options = {.formats = formats, .format_count = 2, .trusted = trusted};
    return uir_package_open(bytes->data, bytes->length, &options, &n->f.allocator, &n->f.diagnostics, out);
}

static void run(native *n, uir_runtime *r, int64_t rows, int64_t columns, float *result) {
    float *x = malloc((size_t)(rows * columns) * sizeof *x);
    int64_t shape[2] = {rows, columns};
    for (int64_t i = 0; i < rows * columns; i++) x[i] = (float)((i * 31) % 57) * 0.1f - 2;
    check_ok(&n->f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 2, shape, x));
    check_ok(&n->f, uir_runtime_bind_output(r, 0, result, (size_t)(rows * columns) * sizeof *x));
    check_ok(&n->f, uir_runtime_run(r));
    free(x);
}

enum { ROWS = 301, COLUMNS = 217 };
static float by_vm[ROWS * COLUMNS], by_native[ROWS * COLUMNS];

static void make(native *n, uir_package *package, uint32_t threads, uir_runtime **out) {
    check_ok(&n->f, uir_runtime_create(package, &(uir_runtime_options){.threads = threads}, &n->f.allocator,
                                       &n->f.diagnostics, out));
}

static void test_package(void **state) {
    (void)state;
    native n;
    uir_text bytes, again;
    uir_package *package;
    uir_runtime *r;
    begin(&n);
    build(&n, true, true, &bytes);
    build(&n, true, true, &again);
    assert_int_equal(bytes.length, again.length);
    assert_memory_equal(bytes.data, again.data, bytes.length);
    check_ok(&n.f, open_package(&n, &bytes, false, &package));
    assert_false(uir_package_is_native(package));
    make(&n, package, 2, &r);
    run(&n, r, ROWS, COLUMNS, by_vm);
    assert_int_equal(uir_runtime_get_statistics(r).vm_calls, 2);
    uir_runtime_destroy(r);
    uir_package_close(package);
    check_ok(&n.f, open_package(&n, &bytes, true, &package));
    assert_true(uir_package_is_native(package));
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        make(&n, package, threads, &r);
        memset(by_native, 0, sizeof by_native);
        run(&n, r, ROWS, COLUMNS, by_native);
        assert_int_equal(uir_runtime_get_statistics(r).native_calls, 2);
        assert_memory_equal(by_vm, by_native, sizeof by_vm);
        uir_runtime_destroy(r);
    }
    uir_package_close(package);
    uir_text_deinit(&again);
    uir_text_deinit(&bytes);
    end(&n);
}

static void test_attach(void **state) {
    (void)state;
    native n;
    uir_text bytes;
    uir_package *package;
    uir_runtime *r;
    begin(&n);
    for (int named = 0; named < 2; named++) {
        build(&n, false, named, &bytes);
        check_ok(&n.f, open_package(&n, &bytes, true, &package));
        make(&n, package, 2, &r);
        run(&n, r, ROWS, COLUMNS, by_vm);
        assert_int_equal(uir_runtime_get_statistics(r).vm_calls, 2);
        const char *isa = uir_cpu_variant_name(n.device.variant);
        assert_int_equal(
            uir_package_attach_native(package, "no such", n.object.bytes, n.object.size, n.symbols, &n.f.diagnostics),
            UIR_STATUS_NOT_FOUND);
        assert_int_equal(
            uir_package_attach_native(package, "unlisted", n.object.bytes, n.object.size, n.symbols, &n.f.diagnostics),
            UIR_STATUS_NOT_FOUND);
        assert_int_equal(uir_package_attach_native(package, isa, "junk", 4, n.symbols, &n.f.diagnostics),
                         UIR_STATUS_DEVICE_FAILED);
        check_ok(&n.f, uir_package_attach_native(package, isa, n.object.bytes, n.object.size, named ? NULL : n.symbols,
                                                 &n.f.diagnostics));
        assert_true(uir_package_is_native(package));
        run(&n, r, ROWS, COLUMNS, by_native);
        assert_int_equal(uir_runtime_get_statistics(r).native_calls, 2);
        assert_int_equal(uir_runtime_get_statistics(r).vm_calls, 0);
        assert_memory_equal(by_vm, by_native, sizeof by_vm);
        uir_runtime_destroy(r);
        uir_package_close(package);
        uir_text_deinit(&bytes);
    }
    end(&n);
}

/* ---- a kernel of one index that takes hours ---- */
static void ring(void *user) {
    uir_runtime_cancel(user);
}

static void test_cancel(void **state) {
    (void)state;
    native n;
    uir_text bytes;
    uir_package *package;
    uir_runtime *r;
    uir_watch watch = {0};
    const float x[3] = {1, 2, 3};
    const int64_t shape = 3;
    begin_with(
        &n,
        "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
        "    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
        "        %b: f32[N] = add(%a, %a)\n        return %b\n"
        "    }, sizes = [N], kernel = \"long\"}\n    return %y\n}\n",
        "igraph @long on cpu {\n  dim N in 0..1000\n  ptr %x : dram f32 [N] in 0\n  ptr %y : dram f32 [N] out 0\n"
        "  phase {\n    fill.f32 %y[0:N], 0\n    loop a : 1000000 {\n      loop b : 1000000 {\n"
        "        binary.add.f32 %y[0:N], %y[0:N], %x[0:N]\n      }\n    }\n  }\n}\n");
    build(&n, true, true, &bytes);
    check_ok(&n.f, open_package(&n, &bytes, true, &package));
    assert_true(uir_package_is_native(package));
    make(&n, package, 2, &r);
    for (int turn = 0; turn < 2; turn++) {
        check_ok(&n.f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 1, &shape, x));
        assert_int_equal(uir_watch_start(&watch, 30, ring, r), UIR_STATUS_OK);
        assert_int_equal(uir_runtime_run(r), UIR_STATUS_CANCELLED);
        uir_watch_stop(&watch);
    }
    uir_watch_deinit(&watch);
    uir_runtime_destroy(r);
    uir_package_close(package);
    uir_text_deinit(&bytes);
    end(&n);
}

/* ---- names that are used again ---- */
/* Twice, or the square of, a vector: the same symbol in two objects. */
static const char *const twice_or_square[] = {
    "igraph @one on cpu {\n  dim N in 0..1000\n" VECTORS
    "  phase {\n    binary.add.f32 %y[0:N], %x[0:N], %x[0:N]\n  }\n}\n",
    "igraph @one on cpu {\n  dim N in 0..1000\n" VECTORS
    "  phase {\n    binary.mul.f32 %y[0:N], %x[0:N], %x[0:N]\n  }\n}\n",
};
static const char *const twice_or_square_modules[] = {
    "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
    "    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n        %b: f32[N] = add(%a, %a)\n"
    "        return %b\n    }, sizes = [N], kernel = \"one\"}\n    return %y\n}\n",
    "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
    "    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n        %b: f32[N] = mul(%a, %a)\n"
    "        return %b\n    }, sizes = [N], kernel = \"one\"}\n    return %y\n}\n",
};

/* How many descriptors are open; with `close_objects` those of native code's files are closed, by a program that closes
 * whatever it finds, except those below it. */
static int count_descriptors(bool close_objects) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char path[64], name[128];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, name, sizeof name - 1);
        if (length < 0) continue;
        name[length] = 0;
        count++;
        if (close_objects && strstr(name, "memfd:uir-kernels")) close(fd);
    }
    return count;
}

/* The number by which the linker knows an object is another's by the time that it is loaded: what runs is that other
 * one, under a new number, and the descriptors that others have by then stay theirs. */
static void test_names_used_again(void **state) {
    (void)state;
    enum { COUNT = 6 };
    native n[COUNT];
    uir_text bytes[COUNT];
    uir_package *packages[COUNT];
    int taken[COUNT], before = count_descriptors(false);
    const int64_t shape = 3;
    for (int i = 0; i < COUNT; i++) {
        begin_with(&n[i], twice_or_square_modules[i % 2], twice_or_square[i % 2]);
        build(&n[i], true, true, &bytes[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        check_ok(&n[i].f, open_package(&n[i], &bytes[i], true, &packages[i]));
        assert_true(uir_package_is_native(packages[i]));
        assert_null(n[i].f.diagnostics.first);
        if (i < COUNT / 2) count_descriptors(true);
    }
    for (int i = 0; i < COUNT; i++) {
        const float x[3] = {3, 4, 5};
        float y[3] = {0};
        uir_runtime *r;
        make(&n[i], packages[i], 1, &r);
        check_ok(&n[i].f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 1, &shape, x));
        check_ok(&n[i].f, uir_runtime_bind_output(r, 0, y, sizeof y));
        check_ok(&n[i].f, uir_runtime_run(r));
        assert_int_equal(uir_runtime_get_statistics(r).native_calls, 1);
        for (int k = 0; k < 3; k++) assert_true(y[k] == (i % 2 ? x[k] * x[k] : x[k] + x[k]));
        uir_runtime_destroy(r);
    }
    count_descriptors(true);
    for (int i = 0; i < COUNT; i++) taken[i] = open("/dev/null", O_RDONLY);
    for (int i = 0; i < COUNT; i++) uir_package_close(packages[i]);
    for (int i = 0; i < COUNT; i++) assert_int_equal(close(taken[i]), 0);
    assert_int_equal(count_descriptors(false), before);
    for (int i = 0; i < COUNT; i++) {
        uir_text_deinit(&bytes[i]);
        end(&n[i]);
    }
}

/* Each loaded object holds a descriptor; where there is none left the VM runs the kernels, and why is said. */
static void test_without_descriptors(void **state) {
    (void)state;
    native n;
    uir_text bytes;
    uir_package *package;
    int last, taken[1024], count = 0;
    struct rlimit limit, few;
    begin_with(&n, twice_or_square_modules[0], twice_or_square[0]);
    build(&n, true, true, &bytes);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = (struct rlimit){64, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while ((last = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) taken[count++] = last;
    for (int left = 0; left < 3; left++) { /* none; the object's, but none to load it by; both */
        check_ok(&n.f, open_package(&n, &bytes, true, &package));
        assert_int_equal(uir_package_is_native(package), left == 2);
        if (left < 2) check_message(&n.f, "the VM runs the kernels instead");
        if (!left) check_message(&n.f, "ulimit -n");
        uir_diagnostics_clear(&n.f.diagnostics);
        uir_package_close(package);
        close(taken[--count]);
    }
    while (count) close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uir_text_deinit(&bytes);
    end(&n);
}

/* Bytes that name no mark, or another's, are not loaded. */
static void test_marks(void **state) {
    (void)state;
    native n;
    uir_loaded_module *module;
    begin_with(&n, twice_or_square_modules[0], twice_or_square[0]);
    uir_kernel_image image = {uir_cpu_variant_name(n.device.variant), n.object.bytes, n.object.size};
    char *mark = memmem(n.object.bytes, n.object.size, UIR_CPU_MARK, sizeof UIR_CPU_MARK - 1);
    assert_non_null(mark);
    assert_int_equal(strlen(mark), UIR_CPU_MARK_SIZE - 1);
    check_ok(&n.f, uir_cpu_format.load(&n.f.allocator, &image, &n.f.diagnostics, &module));
    uir_cpu_format.unload(module);
    mark[0]++;
    assert_int_equal(uir_cpu_format.load(&n.f.allocator, &image, &n.f.diagnostics, &module), UIR_STATUS_DEVICE_FAILED);
    check_message(&n.f, "the digest of its sources is missing");
    image.size = 16;
    assert_int_equal(uir_cpu_format.load(&n.f.allocator, &image, &n.f.diagnostics, &module), UIR_STATUS_DEVICE_FAILED);
    end(&n);
}

/* Objects of another machine and of no known one are not for this; the best that this one runs is preferred. */
static void test_ranks(void **state) {
    (void)state;
    static const struct {
        const char *name, *architecture;
    } variants[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, flags, ...) {name, architecture},
#include "backends/cpu/target/variants.def"
    };
    fixture f;
    uir_cpu_device device;
    fixture_init(&f);
    /* It says what kernels are made for: what runs does not depend on it. */
    char *asked = getenv("UIR_CPU") ? strdup(getenv("UIR_CPU")) : NULL;
    unsetenv("UIR_CPU");
    check_ok(&f, uir_cpu_describe(NULL, &f.diagnostics, &device));
    const char *best = uir_cpu_variant_name(device.variant);
    const char *own = strstr(best, "avx") ? "x86_64" : strcmp(best, "aarch64") ? "" : "aarch64";
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        uint32_t rank = uir_cpu_format.rank(variants[i].name);
        bool custom = *own && *variants[i].architecture && strcmp(variants[i].architecture, own);
        if (custom) assert_int_equal(rank, 0);
        assert_true(rank <= uir_cpu_format.rank(best));
        assert_true(rank < uir_cpu_format.rank(best) || !strcmp(variants[i].name, best));
    }
    assert_true(uir_cpu_format.rank("generic") > 0);
    assert_int_equal(uir_cpu_format.rank("no such"), 0);
    assert_int_equal(uir_cpu_format.rank("avx"), 0);
    if (asked) setenv("UIR_CPU", asked, 1);
    free(asked);
    fixture_deinit(&f);
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_package),
                                       cmocka_unit_test(test_attach),
                                       cmocka_unit_test(test_cancel),
                                       cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_names_used_again),
                                       cmocka_unit_test(test_without_descriptors),
                                       cmocka_unit_test(test_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
