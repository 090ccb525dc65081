/* What only a whole process shows: no call of the C library's allocator in a steady run, and a package run by a program
 * that links nothing but the runtime. */
#include "tests/runtime/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the C library's allocator, counted: these stand before it in the process ---- */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define KEEPS_ITS_ALLOCATOR 1
#endif
#endif
#if defined(KEEPS_ITS_ALLOCATOR) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define COUNTED 0
static uint64_t allocations;
#else
#define COUNTED 1
static uint64_t allocations;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *malloc(size_t size) {
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, size);
}
void *realloc(void *pointer, size_t size) {
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(pointer, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_memalign(alignment, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
#endif

static const char *const kernels = KERNEL_TWICE_IN_PARTS("0..1000000", "  candidate t = 256\n");
static const char *const module_text = /**/
    "module opset 17\n"
    "size N\n"
    "graph \"main\" (%x: f32[N]) {\n" /**/
    GROUP_TWICE("a", "x", "1")        /**/
    GROUP_TWICE("b", "a", "2")        /**/
    "    return %b\n"
    "}\n";

static void test_steady(void **state) {
    (void)state;
    fixture f;
    uir_package *package;
    uir_runtime *r;
    static float x[100000];
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, fixture_open(&f, &f.allocator, &package));
    check_ok(&f, uir_runtime_create(package, &(uir_runtime_options){.threads = 4, .measure = true}, &f.allocator,
                                    &f.diagnostics, &r));
    assert_true(!COUNTED || allocations > 0);
    uint64_t before = 0;
    for (int i = 0; i < 13; i++) {
        int64_t count = 100000;
        if (i == 3) before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
        check_ok(&f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 1, &count, x));
        check_ok(&f, uir_runtime_run(r));
    }
    assert_int_equal(__atomic_load_n(&allocations, __ATOMIC_RELAXED), before);
    uir_runtime_step step;
    assert_true(uir_runtime_get_step(r, 1, &step));
    assert_string_equal(step.kernel, "twice");
    assert_string_equal(step.by, "vm");
    assert_true(step.ms > 0 && step.calls == 1);
    uir_runtime_destroy(r);
    uir_package_close(package);
    fixture_deinit(&f);
}

static void test_alone(void **state) {
    (void)state;
    fixture f;
    char path[] = "/tmp/uir-package-XXXXXX";
    int status = 0;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, f.package.data, f.package.length), f.package.length);
    close(descriptor);
    pid_t child = fork();
    if (child == 0) {
        char *const none[] = {"PATH=/nonexistent", NULL};
        execle(UIR_RUNTIME_ALONE, UIR_RUNTIME_ALONE, path, (char *)NULL, none);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fixture_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steady), cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
