/* A model's kernels as one object: equal kernels, the same bytes anywhere, warnings, and every way in which a compiler
 * can fail.
 *
 *   test_cpu_build [all]    (all: what a compiler does is seen on every kernel of the zoo, not on a share of them) */
#include "tests/backends/cpu/here.h"
#include "tests/backends/cpu/native.h"
#include "tests/ir/kernel/support.h"

#include "backends/cpu/target/build.h"
#include "backends/cpu/target/compile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KERNELS_MAX 256

typedef struct model {
    zoo zoo;
    uir_igraph_list lists[KERNELS_MAX];
    uint32_t list_count;
    const uir_igraph *kernels[KERNELS_MAX];
    uint32_t count;
} model;

static model *loading;
enum { STRIDE = 4 };
static uint32_t stride = UIR_TEST_SHARE > 1 ? 4 * STRIDE : 2 * STRIDE;

static void load_file(zoo *z, const char *path) {
    size_t length;
    char *text = read_whole(path, &length);
    model *m = loading;
    uir_igraph_list *list = &m->lists[m->list_count];
    if (strstr(path, "/ascend_") || strstr(path, "/cuda_") || strstr(path, "/warps_")) {
        free(text);
        return;
    }
    assert_int_equal(uir_igraph_parse_list(&z->allocator, &z->list, text, length, path, &z->diagnostics, list), 0);
    m->list_count++;
    for (uint32_t i = 0; i < list->count; i++) {
        assert_int_equal(uir_igraph_verify(list->igraphs[i], &z->diagnostics), UIR_STATUS_OK);
        assert_int_equal(uir_igraph_form_runs(list->igraphs[i], &z->diagnostics), UIR_STATUS_OK);
        m->kernels[m->count++] = list->igraphs[i];
    }
    free(text);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const uir_igraph *const *)a)->name, (*(const uir_igraph *const *)b)->name);
}

/* Every `step`-th of the zoo's kernels for CPUs, in the order of their names, `times` over. */
static void open_model(model *m, uint32_t step, uint32_t times) {
    memset(m, 0, sizeof *m);
    zoo_open(&m->zoo);
    loading = m;
    for_each_kernel_file("tests/ir/kernel", load_file, &m->zoo);
    qsort(m->kernels, m->count, sizeof *m->kernels, by_name);
    assert_true(m->count >= 15);
    uint32_t once = (m->count + step - 1) / step;
    for (uint32_t i = 0; i < once; i++) m->kernels[i] = m->kernels[i * step];
    m->count = once;
    for (uint32_t t = 1; t < times; t++) {
        for (uint32_t i = 0; i < once; i++) m->kernels[m->count++] = m->kernels[i];
    }
}

/* Every `step`-th kernel from number `from` on: other ones for another `from`. */
static uint32_t choose_by(uint32_t step, const model *m, uint32_t from, const uir_igraph *chosen[KERNELS_MAX]) {
    uint32_t count = 0;
    for (uint32_t i = from % step; i < m->count; i += step) chosen[count++] = m->kernels[i];
    return count;
}

static uint32_t choose(const model *m, uint32_t from, const uir_igraph *chosen[KERNELS_MAX]) {
    return choose_by(stride, m, from, chosen);
}

static void close_model(model *m) {
    for (uint32_t i = 0; i < m->list_count; i++) uir_igraph_list_deinit(&m->lists[i]);
    zoo_close(&m->zoo);
}

static void make_folder(char folder[256], const char *name) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, 256, "%s/uir test %s XXXXXX", base && *base ? base : "/tmp", name);
    assert_non_null(mkdtemp(folder));
}

static int entries(const char *folder) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void remove_files(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    assert_int_equal(rmdir(folder), 0);
}

static bool found(const char *program) {
    char command[128];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

/* ---- what comes out ---- */
static void *load(const uir_target_object *object) {
    char folder[256], path[300];
    make_folder(folder, "load");
    snprintf(path, sizeof path, "%s/o.so", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(object->bytes, 1, object->size, file), object->size);
    fclose(file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail_msg("%s", dlerror());
    remove_files(folder);
    return handle;
}

static void test_every_kernel_is_there_once(void **state) {
    (void)state;
    model m;
    uir_target_object object;
    open_model(&m, UIR_TEST_SHARE > 1 ? STRIDE : 1, 3);
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC, .extra_flags = "-O0"},
                                     .build.warnings = true};
    uir_status status = uir_cpu_build(&m.zoo.allocator, &options, m.kernels, m.count, &m.zoo.diagnostics, &object);
    zoo_print_messages(&m.zoo);
    assert_int_equal(status, UIR_STATUS_OK);
    assert_null(m.zoo.diagnostics.first); /* nor a warning */
    assert_int_equal(object.symbol_count, m.count);
    assert_int_equal(object.function_count, m.count / 3);
    assert_true(object.file_count > 1);
    void *handle = load(&object);
    for (uint32_t i = 0; i < m.count; i++) {
        assert_string_equal(object.symbols[i], object.symbols[i % (m.count / 3)]);
        for (uint32_t p = 0; p < m.kernels[i]->phases.count; p++) {
            char name[100];
            snprintf(name, sizeof name, "%s_phase%u", object.symbols[i], p);
            assert_non_null(dlsym(handle, name));
        }
    }
    assert_null(dlsym(handle, "uir_mma_f32_f32_f32")); /* what kernels share is not seen from outside */
    dlclose(handle);
    uir_target_object_deinit(&object);
    close_model(&m);
}

/* A product with rows and columns left over, in an object whose shared part lies in another file than the kernel. */
static void run_product(uir_loaded_module *module, const uir_igraph *kernel, float *y) {
    enum { M = 31, K = 37, N = 81 };
    static float x[M * K], w[K * 96], b[N], sums[M * N];
    int64_t dims[] = {M, K, N}, tiles[] = {12, 16};
    void *pointers[] = {x, w, b, y, sums};
    const size_t sizes[] = {sizeof x, sizeof w, sizeof b, sizeof sums, sizeof sums};
    uir_kernel_arguments arguments = {dims, tiles, pointers};
    for (int i = 0; i < M * K; i++) x[i] = (float)(i % 97) / 31 - 1.5f;
    for (int i = 0; i < K * 96; i++) w[i] = (float)(i % 89) / 29 - 1.5f;
    for (int i = 0; i < N; i++) b[i] = (float)i / 7;
    assert_int_equal(native_run(module, kernel, 0, &arguments, sizes, 2, NULL), UIR_STATUS_OK);
}

static void test_same_results_as_one_file(void **state) {
    (void)state;
    static float one[31 * 81], many[31 * 81];
    model m;
    uir_target_object object;
    uir_loaded_module *module, *loaded;
    uir_cpu_device device;
    uir_text source;
    const uir_igraph *kernels[KERNELS_MAX];
    uint32_t count = 1;
    open_model(&m, 1, 1);
    assert_int_equal(uir_cpu_describe(NULL, &m.zoo.diagnostics, &device), UIR_STATUS_OK);
    kernels[0] = NULL;
    for (uint32_t i = 0; i < m.count; i++) {
        if (strcmp(m.kernels[i]->name, "linear_gelu") == 0)
            kernels[0] = m.kernels[i];
        else if (i % stride == 0)
            kernels[count++] = m.kernels[i];
    }
    assert_non_null(kernels[0]);
    uir_cpu_build_options options = {.compile = {.variant = device.variant}};
    assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &object), 0);
    assert_true(object.file_count > 1);
    const uir_kernel_image image = {uir_cpu_variant_name(device.variant), object.bytes, object.size};
    assert_int_equal(uir_cpu_format.load(&m.zoo.allocator, &image, &m.zoo.diagnostics, &loaded), UIR_STATUS_OK);
    run_product(loaded, kernels[0], many);
    uir_text_init(&source, &m.zoo.allocator);
    assert_int_equal(uir_cpu_emit(kernels, 1, &source, &m.zoo.diagnostics), UIR_STATUS_OK);
    assert_int_equal(native_compile(&m.zoo.allocator, &options.compile, &source, &m.zoo.diagnostics, &module),
                     UIR_STATUS_OK);
    run_product(module, kernels[0], one);
    assert_memory_equal(one, many, sizeof one);
    assert_true(one[0] != one[1]);
    native_unload(module);
    uir_text_deinit(&source);
    native_unload(loaded);
    uir_target_object_deinit(&object);
    close_model(&m);
}

static void check_compiler(model *m, const char *compiler, uir_cpu_variant variant, const char *flags) {
    const uir_igraph *kernels[KERNELS_MAX];
    uint32_t count = choose(m, (uint32_t)variant, kernels);
    char folder[256], *before = getenv("TMPDIR");
    char kept[256] = "";
    uir_target_object first, second;
    uir_cpu_build_options options = {.compile = {.variant = variant, .compiler = compiler, .extra_flags = flags},
                                     .build.warnings = true,
                                     .build.jobs = 1};
    if (before) snprintf(kept, sizeof kept, "%s", before);
    assert_int_equal(uir_cpu_build(&m->zoo.allocator, &options, kernels, count, &m->zoo.diagnostics, &first), 0);
    make_folder(folder, "elsewhere");
    setenv("TMPDIR", folder, 1);
    options.build.jobs = 3;
    assert_int_equal(uir_cpu_build(&m->zoo.allocator, &options, kernels, count, &m->zoo.diagnostics, &second), 0);
    assert_int_equal(entries(folder), 0);
    if (kept[0])
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    rmdir(folder);
    zoo_print_messages(&m->zoo);
    assert_null(m->zoo.diagnostics.first);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    uir_target_object_deinit(&first);
    uir_target_object_deinit(&second);
}

/* Without a warning, and the same bytes in another folder with another number of compilers at once. */
static void test_same_bytes_and_no_warnings(void **state) {
    (void)state;
    static const char *const compilers[] = {"gcc", "clang"};
    model m;
    open_model(&m, 1, 1);
    for (size_t c = 0; c < 2; c++) {
        if (!found(compilers[c])) {
            print_message("skip: no %s here\n", compilers[c]);
            continue;
        }
        for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
            /* As it is built for one; the others need no optimiser to be read. */
            if (uir_cpu_variant_runs_here((uir_cpu_variant)v))
                check_compiler(&m, compilers[c], (uir_cpu_variant)v, v == UIR_CPU_AVX2 ? NULL : "-O0");
        }
    }
    if (found("aarch64-linux-gnu-gcc")) check_compiler(&m, "aarch64-linux-gnu-gcc", UIR_CPU_AARCH64, "-O0");
    close_model(&m);
}

static bool count_steps(void *user, uint32_t done, uint32_t total) {
    uint32_t *steps = user;
    assert_int_equal(done, ++steps[0]);
    steps[1] = total;
    return false;
}

static void test_folder_of_source(void **state) {
    (void)state;
    model m;
    char folder[256], path[300];
    uint32_t steps[2] = {0, 0};
    uir_target_object first, second;
    const uir_igraph *kernels[KERNELS_MAX];
    open_model(&m, 1, 1);
    uint32_t count = choose(&m, 1, kernels);
    make_folder(folder, "source");
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC, .extra_flags = "-O0"},
                                     .build.source_folder = folder,
                                     .build.progress = count_steps,
                                     .build.progress_user = steps};
    assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &first), 0);
    assert_int_equal(steps[0], first.file_count + 1);
    assert_int_equal(steps[1], first.file_count + 1);
    assert_int_equal(entries(folder), first.file_count + 2); /* and build.sh and kernels.txt */
    options.build.source_folder = NULL;
    options.build.progress = NULL;
    assert_int_equal(
        uir_cpu_build_folder(&m.zoo.allocator, &options, folder, kernels, count, &m.zoo.diagnostics, &second), 0);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    uir_target_object_deinit(&second);
    assert_int_equal(
        uir_cpu_build_folder(&m.zoo.allocator, &options, folder, kernels, count - 1, &m.zoo.diagnostics, &second),
        UIR_STATUS_INVALID_ARGUMENT);
    snprintf(path, sizeof path, "'%s/build.sh'", folder);
    char command[400];
    snprintf(command, sizeof command, "sh %s", path);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/kernels.so", folder);
    assert_int_equal(access(path, R_OK), 0);
    uir_target_object_deinit(&first);
    remove_files(folder);
    close_model(&m);
}

/* ---- files that are kept ---- */
typedef struct kept_file {
    void *material, *bytes;
    size_t material_size, size;
} kept_file;
typedef struct shelf {
    kept_file files[UIR_TARGET_FILES_MAX];
    uint32_t found, kept, forgotten;
    void *sources;
    size_t sources_size;
} shelf;

static bool find_file(void *user, uint32_t file, const void *material, size_t size, const void **out_bytes,
                      size_t *out_size) {
    shelf *s = user;
    kept_file *f = &s->files[file];
    bool same = f->bytes && f->material_size == size && !memcmp(f->material, material, size);
    if (same) {
        *out_bytes = f->bytes, *out_size = f->size;
        s->found++;
        return true;
    }
    free(f->material), free(f->bytes);
    *f = (kept_file){.material = malloc(size), .material_size = size};
    assert_non_null(f->material);
    memcpy(f->material, material, size);
    return false;
}

static void keep_file(void *user, uint32_t file, const void *bytes, size_t size) {
    shelf *s = user;
    kept_file *f = &s->files[file];
    assert_true(f->material && !f->bytes); /* asked for first, and not there */
    f->bytes = malloc(size);
    assert_non_null(f->bytes);
    memcpy(f->bytes, bytes, f->size = size);
    s->kept++;
}

static void forget_files(void *user) {
    ((shelf *)user)->forgotten++;
}

static void keep_sources(void *user, const void *sources, size_t size) {
    shelf *s = user;
    assert_int_equal(s->kept, 0); /* before the first file is compiled */
    free(s->sources);
    s->sources = malloc(size);
    assert_non_null(s->sources);
    memcpy(s->sources, sources, s->sources_size = size);
}

/* Another build goes on from the sources alone, with what was compiled already; damaged ones are told. */
static void check_sources(model *m, shelf *s, uir_cpu_build_options options, const uir_target_object *plain) {
    uir_target_object object;
    char *sources = s->sources;
    options.build.progress = NULL;
    s->found = s->kept = 0;
    assert_int_equal(
        uir_cpu_build_sources(&m->zoo.allocator, &options, sources, s->sources_size, &m->zoo.diagnostics, &object),
        UIR_STATUS_OK);
    assert_int_equal(object.file_count, plain->file_count);
    assert_int_equal(object.size, plain->size);
    assert_memory_equal(object.bytes, plain->bytes, plain->size);
    assert_int_equal(s->found, plain->file_count);
    uir_target_object_deinit(&object);
    size_t line = (size_t)((char *)memchr(sources, '\n', s->sources_size) - sources);
    const size_t sizes[] = {0, 1, line, line + 1, s->sources_size / 2, s->sources_size - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(
            uir_cpu_build_sources(&m->zoo.allocator, &options, sources, sizes[i], &m->zoo.diagnostics, &object),
            UIR_STATUS_BAD_FILE);
    sources[line - 1]++; /* the common part's length */
    assert_int_equal(
        uir_cpu_build_sources(&m->zoo.allocator, &options, sources, s->sources_size, &m->zoo.diagnostics, &object),
        UIR_STATUS_BAD_FILE);
    sources[line - 1]--;
}

/* The same bytes as without; one that is not there, or not of these words, is compiled. */
static void test_kept_files(void **state) {
    (void)state;
    model m;
    shelf s = {.found = 0};
    uir_target_object plain, object;
    const uir_igraph *kernels[KERNELS_MAX];
    open_model(&m, 1, 1);
    uint32_t count = choose(&m, 1, kernels);
    const uir_target_keeper keeper = {find_file, keep_file, forget_files, keep_sources, &s};
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC, .extra_flags = "-O0"}};
    assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &plain), 0);
    uint32_t files = plain.file_count;
    assert_true(files > 1);
    options.build.keeper = &keeper;
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t steps[2] = {round == 1 ? files : round == 2 ? files - 1 : 0, 0}; /* kept ones count as done */
        if (round == 2) free(s.files[1].bytes), s.files[1].bytes = NULL;
        if (round == 3) { /* other words: another object, by its mark at least */
            options.compile.extra_flags = "-O0 -DOTHER";
            options.build.keeper = NULL;
            options.build.progress = NULL;
            object = plain;
            assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &plain), 0);
            assert_memory_not_equal(object.bytes, plain.bytes, plain.size);
            uir_target_object_deinit(&object);
            options.build.keeper = &keeper;
        }
        s.found = s.kept = 0;
        options.build.progress = count_steps;
        options.build.progress_user = steps;
        assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &object), 0);
        assert_int_equal(steps[0], files + 1);
        assert_int_equal(s.found, round == 1 ? files : round == 2 ? files - 1 : 0);
        assert_int_equal(s.kept, files - s.found);
        assert_int_equal(object.kept_count, s.found);
        assert_int_equal(object.size, plain.size);
        assert_memory_equal(object.bytes, plain.bytes, plain.size);
        uir_target_object_deinit(&object);
    }
    assert_int_equal(s.forgotten, 0);
    check_sources(&m, &s, options, &plain);
    memset(s.files[0].bytes, 'x', s.files[0].size);
    assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &object),
                     UIR_STATUS_DEVICE_FAILED);
    assert_int_equal(s.forgotten, 1);
    for (uint32_t i = 0; i < UIR_TARGET_FILES_MAX; i++) free(s.files[i].material), free(s.files[i].bytes);
    free(s.sources);
    uir_target_object_deinit(&plain);
    close_model(&m);
}

/* ---- compilers that fail ---- */
/* Some tenths of a second of the processor, in words of the shell. */
#define COUNT_FAR "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"

typedef struct failure {
    const char *script; /* of the compiler; NULL: there is none */
    uint32_t timeout_ms, idle_ms;
    bool cancels;
    uir_status status;
    const char *says;
} failure;

static bool cancel_flag;

static void cancel_soon(int signal_number) {
    (void)signal_number;
    *(volatile bool *)&cancel_flag = true;
}

/* In a folder without blanks, at which words are split. `script` NULL: there is none. */
static void make_compiler(char folder[256], char path[400], const char *script) {
    snprintf(folder, 256, "/tmp/uir-cc-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, 400, "%s/cc", folder);
    if (!script) return;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
}

static void check_failure(model *m, const failure *f, const char *folder) {
    char compiler[400], scripts[256];
    uir_target_object object;
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC,
                                                 .compiler = compiler,
                                                 .timeout_ms = f->timeout_ms,
                                                 .idle_ms = f->idle_ms},
                                     .build = {.jobs = 2, .cancel = &cancel_flag}};
    make_compiler(scripts, compiler, f->script);
    cancel_flag = false;
    if (f->cancels) {
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        struct itimerspec when = {.it_value = {0, 200000000}};
        signal(SIGUSR1, cancel_soon);
        assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
        assert_int_equal(timer_settime(timer, 0, &when, NULL), 0);
    }
    time_t begin = time(NULL);
    uir_diagnostics_clear(&m->zoo.diagnostics);
    uir_status status = uir_cpu_build(&m->zoo.allocator, &options, m->kernels, m->count, &m->zoo.diagnostics, &object);
    bool said = f->says ? zoo_said(&m->zoo, f->says) : !m->zoo.diagnostics.first;
    if (status != f->status || !said) {
        zoo_print_messages(&m->zoo);
        fail_msg("'%s': status %d", f->script ? f->script : "", (int)status);
    }
    assert_true(time(NULL) - begin < 60); /* what is counted is the processor's time */
    assert_null(object.bytes);
    assert_int_equal(entries(folder), 0);
    if (f->script) unlink(compiler);
    remove_files(scripts);
}

static void test_compilers_that_fail(void **state) {
    (void)state;
    static const failure failures[] = {
        {NULL, 0, 0, false, UIR_STATUS_DEVICE_FAILED, "cannot be started"},
        {"echo 'no such luck' >&2; exit 1", 0, 0, false, UIR_STATUS_DEVICE_FAILED, "no such luck"},
        {"exit 7", 0, 0, false, UIR_STATUS_DEVICE_FAILED, "it printed nothing"},
        {"exit 0", 0, 0, false, UIR_STATUS_DEVICE_FAILED, "wrote nothing"},
        {"kill -9 $$", 0, 0, false, UIR_STATUS_DEVICE_FAILED, "killed by signal 9"},
        {"trap '' TERM INT; sleep 300 & sleep 300", 0, 300, false, UIR_STATUS_DEVICE_FAILED, "hangs"},
        {"exec >/dev/null 2>&1; sleep 300", 0, 300, false, UIR_STATUS_DEVICE_FAILED, "hangs"},
        {"while :; do echo words; done", 300, 0, false, UIR_STATUS_DEVICE_FAILED, "exceeded its limit of 300 ms"},
        {"sleep 300", 0, 300, false, UIR_STATUS_DEVICE_FAILED, "hangs"},
        {"sleep 300 & sleep 300", 0, 300, false, UIR_STATUS_DEVICE_FAILED, "hangs"},
        {"while :; do :; done", 1000, 900, false, UIR_STATUS_DEVICE_FAILED, "exceeded its limit"},
        {"(while :; do :; done) & sleep 300", 1000, 900, false, UIR_STATUS_DEVICE_FAILED, "exceeded its limit"},
        {"while :; do (" COUNT_FAR "); done", 1000, 900, false, UIR_STATUS_DEVICE_FAILED, "exceeded its limit"},
        {"sleep 1; echo 'no such luck' >&2; exit 1", 300, 0, false, UIR_STATUS_DEVICE_FAILED, "no such luck"},
        {"sleep 300", 0, 0, true, UIR_STATUS_CANCELLED, NULL},
        {"touch \"$TMPDIR/left\" left-too; exit 1", 0, 0, false, UIR_STATUS_DEVICE_FAILED, "printed nothing"},
    };
    model m;
    char folder[256], kept[256] = "";
    open_model(&m, 1, 1);
    if (getenv("TMPDIR")) snprintf(kept, sizeof kept, "%s", getenv("TMPDIR"));
    make_folder(folder, "fail");
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        char inner[300];
        snprintf(inner, sizeof inner, "%s/t", folder);
        assert_int_equal(mkdir(inner, 0700), 0);
        setenv("TMPDIR", inner, 1);
        check_failure(&m, &failures[i], inner);
        assert_int_equal(rmdir(inner), 0);
    }
    setenv("TMPDIR", "/proc/no/such/folder", 1);
    uir_target_object object;
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC}};
    assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, m.kernels, 1, &m.zoo.diagnostics, &object),
                     UIR_STATUS_IO_FAILED);
    assert_true(zoo_said(&m.zoo, "no temporary folder"));
    if (kept[0])
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    remove_files(folder);
    close_model(&m);
}

static uint64_t used_by_children_ms(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (uint64_t)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
}

/* How long a compiler may take is asked of each, and of what it uses: not of all together, nor of the clock. */
static void test_compilers_have_a_time_each(void **state) {
    (void)state;
    model m;
    uir_target_object object;
    const uir_igraph *kernels[KERNELS_MAX];
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC, .extra_flags = "-O0"}, .build.jobs = 1};
    open_model(&m, 1, 1);
    uint32_t count = choose_by(STRIDE, &m, 1, kernels);
    for (int limited = 0; limited < 2; limited++) {
        uint64_t before = used_by_children_ms();
        uir_status status = uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &object);
        if (status != UIR_STATUS_OK) zoo_print_messages(&m.zoo);
        assert_int_equal(status, UIR_STATUS_OK);
        assert_true(object.file_count >= 3); /* of about equal cost */
        options.compile.timeout_ms = (used_by_children_ms() - before) * 2 / 3;
        uir_target_object_deinit(&object);
    }
    options.compile.timeout_ms = 50; /* less than any of them takes */
    assert_int_equal(uir_cpu_build(&m.zoo.allocator, &options, kernels, count, &m.zoo.diagnostics, &object),
                     UIR_STATUS_DEVICE_FAILED);
    assert_true(zoo_said(&m.zoo, "exceeded its limit of 50 ms"));
    close_model(&m);
}

/* The number of kilobytes that a compiler says it may have; UINT64_MAX: as many as there are. */
static uint64_t what_is_left(model *m, const uir_limits *limits) {
    char folder[256], compiler[400];
    uir_budget budget;
    uir_target_object object;
    uir_cpu_build_options options = {.compile = {.variant = UIR_CPU_GENERIC, .compiler = compiler}, .build.jobs = 8};
    make_compiler(folder, compiler, "sleep 0.3\necho \"left $(ulimit -v)\"\nexit 1");
    uir_diagnostics_clear(&m->zoo.diagnostics);
    uir_budget_init(&budget, &m->zoo.allocator, limits);
    uir_allocator allocator = uir_budget_allocator(&budget);
    assert_int_equal(uir_cpu_build(&allocator, &options, m->kernels, m->count, &m->zoo.diagnostics, &object),
                     UIR_STATUS_DEVICE_FAILED);
    const uir_diagnostic *said = m->zoo.diagnostics.first;
    assert_non_null(said);
    const char *left = said->location.quote ? strstr(said->location.quote, "left ") : NULL;
    if (!left) zoo_print_messages(&m->zoo);
    assert_non_null(left);
    assert_int_equal(said->hint != NULL, limits != NULL);
    uir_budget_deinit(&budget);
    unlink(compiler);
    remove_files(folder);
    return strstr(left, "unlimited") ? UINT64_MAX : strtoull(left + 5, NULL, 10);
}

/* Compilers together have what is left of the caller's limit on memory, and as many run as have enough. */
static void test_compilers_keep_the_limit(void **state) {
    (void)state;
    model m;
    open_model(&m, 1, 1);
    const uir_limits two = {.struct_size = sizeof two, .memory = 600ull << 20},
                     one = {.struct_size = sizeof one, .memory = 100ull << 20};
    assert_int_equal(what_is_left(&m, NULL), UINT64_MAX);
    uint64_t of_two = what_is_left(&m, &two), of_one = what_is_left(&m, &one);
    assert_true(of_two > 256 << 10 && of_two <= 300 << 10);
    assert_true(of_one > 50 << 10 && of_one <= 100 << 10);
    close_model(&m);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "all") == 0) stride = 1;
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel_is_there_once),
        cmocka_unit_test(test_same_results_as_one_file),
        cmocka_unit_test(test_same_bytes_and_no_warnings),
        cmocka_unit_test(test_folder_of_source),
        cmocka_unit_test(test_kept_files),
        cmocka_unit_test(test_compilers_that_fail),
        cmocka_unit_test(test_compilers_have_a_time_each),
        cmocka_unit_test(test_compilers_keep_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
