/* The CPU target from outside: descriptions, hostile names, what the compiler step refuses and leaves behind, launches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/backends/cpu/here.h"
#include "tests/backends/cpu/native.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_cpu_device device;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.allocator = uir_allocator_system();
    uir_diagnostics_init(&f.diagnostics, &f.allocator);
    assert_int_equal(uir_cpu_describe(NULL, &f.diagnostics, &f.device), UIR_STATUS_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    uir_diagnostics_deinit(&f->diagnostics);
    return 0;
}

static bool said(const fixture *f, const char *text) {
    char message[4096];
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) {
        uir_diagnostic_format(d, message, sizeof message);
        if (strstr(message, text)) return true;
    }
    return false;
}

static const char scale_text[] = "igraph @scale on cpu {\n"
                                 "  dim M, N\n  require N <= 128\n"
                                 "  ptr %x : dram f32 [M,N] in 0  ptr %y : dram f32 [M,N] out 0\n"
                                 "  phase { parallel m : M group\n"
                                 "    binary.mul.f32 %y[m:1, 0:N], %x[m:1, 0:N], 2\n"
                                 "  }\n"
                                 "}\n";

/* What the text says, each instruction by itself. */
static uir_igraph *parse_kernel(fixture *f, const char *text) {
    const uir_machine *devices[] = {&f->device.machine};
    uir_machine_list list = {devices, 1};
    uir_igraph *g = NULL;
    if (uir_igraph_parse(&f->allocator, &list, text, strlen(text), "test", &f->diagnostics, &g) != UIR_STATUS_OK ||
        uir_igraph_verify(g, &f->diagnostics) != UIR_STATUS_OK) {
        char message[4096];
        uir_diagnostic_format(f->diagnostics.first, message, sizeof message);
        fail_msg("%s", message);
    }
    return g;
}

static uir_igraph *read_kernel(fixture *f, const char *text) {
    uir_igraph *g = parse_kernel(f, text);
    assert_int_equal(uir_igraph_form_runs(g, &f->diagnostics), UIR_STATUS_OK);
    return g;
}

static void emit(fixture *f, const uir_igraph *g, uir_text *text) {
    const uir_igraph *kernels[] = {g};
    uir_text_init(text, &f->allocator);
    assert_int_equal(uir_cpu_emit(kernels, 1, text, &f->diagnostics), UIR_STATUS_OK);
}

static uir_loaded_module *compile(fixture *f, const uir_igraph *g) {
    uir_text text;
    uir_cpu_compile_options options = {.variant = f->device.variant};
    uir_loaded_module *module = NULL;
    emit(f, g, &text);
    assert_int_equal(native_compile(&f->allocator, &options, &text, &f->diagnostics, &module), UIR_STATUS_OK);
    uir_text_deinit(&text);
    return module;
}

/* ---- description ---- */
static void test_variants(void **state) {
    fixture *f = *state;
    uir_cpu_device device;
    for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
        const char *name = uir_cpu_variant_name((uir_cpu_variant)v);
        assert_int_equal(uir_cpu_describe(name, &f->diagnostics, &device), UIR_STATUS_OK);
        assert_int_equal(device.variant, v);
        assert_string_equal(device.machine.name, "cpu");
        assert_string_equal(device.machine.chip, name);
        assert_true(device.machine.vector_bytes >= 16 && device.machine.spaces[1].capacity >= 256 * 1024);
    }
    assert_true(f->device.runs_here && uir_cpu_variant_runs_here(UIR_CPU_GENERIC));
    assert_int_equal(uir_cpu_describe("avx3", &f->diagnostics, &device), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(said(f, "avx3") && said(f, "avx512"));
}

/* A machine that UIR_CPU makes up; what it may hold is not refused a kernel by it. */
static void test_made_up_machine(void **state) {
    fixture *f = *state;
    static const struct {
        const char *text, *variant;
        int64_t caches[3]; /* -1: the machine's own */
    } good[] = {{"avx2,l1=32K,l2=256K,l3=8M", "avx2", {32 << 10, 256 << 10, 8 << 20}},
                {"l2=0", NULL, {-1, 0, -1}},
                {"l3=1G,l2=131072", NULL, {-1, 131072, 1 << 30}},
                {"generic", "generic", {-1, -1, -1}},
                {"", NULL, {-1, -1, -1}}};
    static const char *const bad[] = {
        "avx3",      "l4=1M",       "l2=",   "l2=-1", "l2=1Q",       "l2=K",       "l2",
        "avx2,avx2", "l2=1K,l2=2K", "avx2,", ",",     "avx2,,l2=1K", "avx2 l2=1K", "l2=99999999999999999999",
        "l2=2000G"};
    uir_cpu_device device;
    char before[200] = "";
    bool given = getenv("UIR_CPU") != NULL;
    if (given) snprintf(before, sizeof before, "%s", getenv("UIR_CPU"));
    unsetenv("UIR_CPU");
    uir_cpu_device own;
    assert_int_equal(uir_cpu_describe(NULL, &f->diagnostics, &own), UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        setenv("UIR_CPU", good[i].text, 1);
        assert_int_equal(uir_cpu_describe(NULL, &f->diagnostics, &device), UIR_STATUS_OK);
        assert_string_equal(device.machine.chip, good[i].variant ? good[i].variant : own.machine.chip);
        for (int level = 0; level < 3; level++) {
            int64_t wanted = good[i].caches[level];
            assert_true(device.machine.cache_bytes[level] ==
                        (wanted < 0 ? own.machine.cache_bytes[level] : (uint64_t)wanted));
        }
        assert_true(device.machine.spaces[1].capacity == own.machine.spaces[1].capacity);
        assert_true(device.machine.spaces[1].working_set >= 128 << 10 &&
                    device.machine.spaces[1].working_set <= device.machine.spaces[1].capacity);
        assert_int_equal(uir_cpu_describe("aarch64", &f->diagnostics, &device), UIR_STATUS_OK);
        assert_string_equal(device.machine.chip, "aarch64"); /* what is asked for goes before */
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("UIR_CPU", bad[i], 1);
        uir_diagnostics_clear(&f->diagnostics);
        assert_int_equal(uir_cpu_describe(NULL, &f->diagnostics, &device), UIR_STATUS_INVALID_ARGUMENT);
        assert_true(said(f, "UIR_CPU") && said(f, bad[i]) && said(f, "l2=256K"));
    }
    unsetenv("UIR_CPU");
    if (given) setenv("UIR_CPU", before, 1);
}

/* For another machine than this one the description is the variant's own, whatever this one is. */
static void test_another_machine(void **state) {
    fixture *f = *state;
    static const uint64_t caches[3] = {64 << 10, 1 << 20, 32 << 20};
    const char *own = f->device.machine.chip, *foreign = strcmp(own, "aarch64") ? "aarch64" : "avx2";
    char before[200] = "";
    bool given = getenv("UIR_CPU") != NULL;
    uir_cpu_device device, again;
    if (given) snprintf(before, sizeof before, "%s", getenv("UIR_CPU"));
    unsetenv("UIR_CPU");
    assert_int_equal(uir_cpu_describe(foreign, &f->diagnostics, &device), UIR_STATUS_OK);
    assert_int_equal(device.machine.group_count, 4);
    for (int level = 0; level < 3 && strcmp(foreign, "avx2"); level++)
        assert_true(device.machine.cache_bytes[level] == caches[level]);
    setenv("UIR_CPU", "l2=192K", 1); /* but what is made up holds for every machine */
    assert_int_equal(uir_cpu_describe(foreign, &f->diagnostics, &again), UIR_STATUS_OK);
    assert_true(again.machine.cache_bytes[1] == 192 << 10 && again.machine.spaces[1].working_set == 192 << 10);
    assert_true(again.machine.cache_bytes[2] == device.machine.cache_bytes[2]);
    char text[64];
    snprintf(text, sizeof text, "%s,l3=1G", foreign); /* as if this were it: what is not said is this machine's */
    setenv("UIR_CPU", text, 1);
    assert_int_equal(uir_cpu_describe(foreign, &f->diagnostics, &again), UIR_STATUS_OK);
    assert_true(again.machine.cache_bytes[2] == 1 << 30);
    unsetenv("UIR_CPU");
    if (given) setenv("UIR_CPU", before, 1);
}

/* A variant that is named is its row on every machine, this machine's own too. */
static void test_named_variants(void **state) {
    fixture *f = *state;
    static const struct {
        const char *name;
        uint32_t lanes, registers, loads, multiply_adds, latency, cache_kib[3], cores;
    } rows[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, flags, lanes, registers, loads, fmas, latency, far, near, l1,    \
                        l2, l3, cores)                                                                                 \
    {name, lanes, registers, loads, fmas, latency, {l1, l2, l3}, cores},
#include "backends/cpu/target/variants.def"
    };
    char before[200] = "";
    bool given = getenv("UIR_CPU") != NULL;
    if (given) snprintf(before, sizeof before, "%s", getenv("UIR_CPU"));
    unsetenv("UIR_CPU");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_cpu_device device;
        const uir_machine *d = &device.machine;
        assert_int_equal(uir_cpu_describe(rows[i].name, &f->diagnostics, &device), UIR_STATUS_OK);
        assert_int_equal(d->vector_bytes, rows[i].lanes * 4);
        assert_int_equal(d->registers, rows[i].registers);
        assert_int_equal(d->loads_per_cycle, rows[i].loads);
        assert_int_equal(d->multiply_adds_per_cycle, rows[i].multiply_adds);
        assert_int_equal(d->multiply_add_latency, rows[i].latency);
        assert_int_equal(d->group_count, rows[i].cores);
        for (int level = 0; level < 3; level++)
            assert_int_equal(d->cache_bytes[level], (uint64_t)rows[i].cache_kib[level] << 10);
    }
    if (given) setenv("UIR_CPU", before, 1);
}

/* The block of sums that follows from registers is the one that the emitted source keeps in them. */
static void test_blocks(void **state) {
    fixture *f = *state;
    static const struct {
        const char *variant, *condition;
    } cases[] = {{"avx512", "#if defined(UIR_AVX512)\n"},
                 {"avx2", "#elif defined(UIR_AVX2)\n"},
                 {"aarch64", "#elif defined(__aarch64__)\n"}};
    uir_text text;
    uir_text_init(&text, &f->allocator);
    assert_int_equal(uir_cpu_emit_prelude(&text), UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_cpu_device device;
        char block[80];
        assert_int_equal(uir_cpu_describe(cases[i].variant, &f->diagnostics, &device), UIR_STATUS_OK);
        snprintf(block, sizeof block, "%s#define UIR_ROWS %u\n", cases[i].condition, device.machine.mma_m);
        assert_non_null(strstr(text.data, block));
    }
    uir_text_deinit(&text);
}

/* ---- source ---- */
static void test_names_are_cleaned(void **state) {
    fixture *f = *state;
    uir_text text;
    uir_igraph *g = read_kernel(f, scale_text);
    /* Names come through C strings only; whatever they hold must not reach the source. */
    static const char nasty[] = "x\"*/ ?\?/\n#include </etc/passwd>\\ $(touch /tmp/z) \xff`";
    const char *kept = g->name, *kept_symbol = g->symbols.data[0].name, *kept_pointer = g->pointers.data[0].name;
    g->name = g->symbols.data[0].name = g->pointers.data[0].name = nasty;
    emit(f, g, &text);
    const char *own = strstr(text.data, "/* ---- k0_");
    assert_non_null(own);
    assert_null(strstr(own, "passwd>"));
    assert_null(strstr(own, "touch /"));
    assert_null(strstr(own, "??"));
    assert_null(strchr(own, '\\'));
    assert_null(strchr(own, '`'));
    assert_null(strchr(own, '$'));
    assert_null(strchr(own, '\xff'));
    g->name = kept, g->symbols.data[0].name = kept_symbol, g->pointers.data[0].name = kept_pointer;
    uir_text_deinit(&text);
    uir_igraph_destroy(g);
}

/* Names that the C language, its macros or the prelude have. */
static void test_names_that_c_has(void **state) {
    fixture *f = *state;
    static const char kernel[] = "igraph @main on cpu {\n"
                                 "  dim int, linux\n"
                                 "  ptr %for : dram f32 [int,linux] in 0  ptr %v_f32 : dram f32 [int,linux] out 0\n"
                                 "  ptr %_ : sram f32 [1,1]\n"
                                 "  phase { parallel flat : int group\n"
                                 "    fill.f32 %_, 1\n"
                                 "    binary.add.f32 %v_f32[flat:1, 0:linux], %for[flat:1, 0:linux], %_\n"
                                 "  }\n"
                                 "}\n";
    uir_text text;
    uir_loaded_module *module;
    uir_igraph *g = read_kernel(f, kernel);
    uir_cpu_compile_options options = {.variant = UIR_CPU_GENERIC};
    emit(f, g, &text);
    assert_int_equal(native_compile(&f->allocator, &options, &text, &f->diagnostics, &module), UIR_STATUS_OK);
    assert_null(f->diagnostics.first); /* not even a warning */
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    int64_t dims[] = {2, 3}, tiles[1];
    void *pointers[] = {x, y};
    const size_t sizes[] = {sizeof x, sizeof y};
    uir_kernel_arguments arguments = {dims, tiles, pointers};
    assert_int_equal(native_run(module, g, 0, &arguments, sizes, 1, &f->diagnostics), UIR_STATUS_OK);
    for (int i = 0; i < 6; i++) assert_true(y[i] == x[i] + 1);
    native_unload(module);
    uir_text_deinit(&text);
    uir_igraph_destroy(g);
}

/* ---- kernels ---- */
/* What one instruction reads and writes of one pointer through different slices: a column and the one before it. */
static void test_running_sum(void **state) {
    fixture *f = *state;
    enum { ROWS = 3, LENGTH = 4 };
    uir_igraph *g = read_kernel(f, "igraph @sum on cpu {\n"
                                   "  ptr %x : dram f32 [3, 4] in 0  ptr %y : dram f32 [3, 4] out 0\n"
                                   "  phase {\n"
                                   "    loop l : 4 { binary.add.f32 %y[r, l ; o<1, r<3], %y[s, l-1 ; q<1, s<3] fill 0, "
                                   "%x[t, l ; u<1, t<3] }\n"
                                   "  }\n"
                                   "}\n");
    float x[ROWS * LENGTH], y[ROWS * LENGTH] = {0};
    void *pointers[] = {x, y};
    const size_t sizes[] = {sizeof x, sizeof y};
    uir_kernel_arguments arguments = {NULL, NULL, pointers};
    for (int i = 0; i < ROWS * LENGTH; i++) x[i] = (float)(i + 1);
    uir_loaded_module *module = compile(f, g);
    assert_int_equal(native_run(module, g, 0, &arguments, sizes, 1, &f->diagnostics), UIR_STATUS_OK);
    for (int r = 0; r < ROWS; r++) {
        float sum = 0;
        for (int i = 0; i < LENGTH; i++) {
            sum += x[r * LENGTH + i];
            assert_true(sum == y[r * LENGTH + i]);
        }
    }
    native_unload(module);
    uir_igraph_destroy(g);
}

/* ---- loops whose turns overlap ---- */
/* Rows that are reduced, worked on and stored; `turns` is the body of the loop over l. */
typedef struct turns {
    const char *body;
    bool overlap;
} turns;

#define ROW      "0:N"
#define GREATEST "reduce.max.row.unit.f32 %s[0, 0], %x[l, " ROW "]\n"
#define LESS_AND_SUM                                                                                                   \
    "binary.sub.f32 %t[0, " ROW "], %x[l, " ROW "], %s[0, 0]\n"                                                        \
    "reduce.add.row.unit.f32 %r[0, 0], %t[0, " ROW "]\n"
static const turns turns_rows[] = {
    {GREATEST LESS_AND_SUM "binary.mul.f32 %y[l, " ROW "], %t[0, " ROW "], %r[0, 0] stream\n", true},
    /* Each of two turns has a row of its own of one pointer. */
    {GREATEST LESS_AND_SUM "binary.sub.f32 %u[0, " ROW "], %x[l, " ROW "], %s[0, 0]\n"
                           "binary.mul.f32 %y[l, " ROW "], %u[0, " ROW "], %r[0, 0] stream\n",
     true},
    {GREATEST LESS_AND_SUM "binary.add.f32 %q[0, 0], %r[0, 0], %s[0, 0]\n"
                           "binary.sub.f32 %y[l, " ROW "], %x[l, " ROW "], %q[0, 0] stream\n",
     true},
    /* What stays in a cache is written at once. */
    {GREATEST LESS_AND_SUM "binary.mul.f32 %y[l, " ROW "], %t[0, " ROW "], %r[0, 0]\n", false},
    /* The first run writes what the last one reads. */
    {"binary.mul.f32 %t[0, " ROW "], %x[l, " ROW "], 2\n"
     "reduce.max.row.unit.f32 %s[0, 0], %t[0, " ROW "]\n"
     "binary.add.f32 %r[0, 0], %s[0, 0], 1\n"
     "binary.mul.f32 %y[l, " ROW "], %t[0, " ROW "], %r[0, 0] stream\n",
     false},
    {"reduce.max.row.unit.f32 %s[0, 0], %x[l, " ROW "]\n"
     "binary.mul.f32 %y[l, " ROW "], %x[l, " ROW "], %s[0, 0] stream\n",
     true},
    /* What the turn names is of one turn. */
    {"let a = l*2 - l\n" GREATEST LESS_AND_SUM "binary.mul.f32 %y[a, " ROW "], %t[0, " ROW "], %r[0, 0] stream\n",
     false}};

enum { MOST_ROWS = 5, MOST = 70, TURNS_BYTES = MOST_ROWS * MOST * sizeof(float) };

static void run_turns(fixture *f, uir_loaded_module *module, const uir_igraph *g, const int64_t *symbols, float *x,
                      float *y) {
    void *pointers[] = {x, y};
    const size_t sizes[] = {TURNS_BYTES, TURNS_BYTES};
    uir_kernel_arguments arguments = {symbols, NULL, pointers};
    assert_int_equal(native_run(module, g, 0, &arguments, sizes, 1, &f->diagnostics), UIR_STATUS_OK);
}

/* The last run of a turn goes with the first of the next where neither touches what the other writes, to the same bits
 * as one after the other. */
static void test_overlapping_turns(void **state) {
    fixture *f = *state;
    static const int64_t sizes[][2] = {{0, 64}, {1, 64}, {2, 33}, {5, 70}};
    float x[MOST_ROWS * MOST], y[2][MOST_ROWS * MOST];
    for (int i = 0; i < MOST_ROWS * MOST; i++) x[i] = (float)((i * 37) % 101) / 7;
    for (size_t i = 0; i < sizeof turns_rows / sizeof *turns_rows; i++) {
        uir_text kernel, source;
        uir_text_init(&kernel, &f->allocator);
        uir_text_append_format(&kernel,
                               "igraph @turns on cpu {\n  dim M, N\n  require N <= 128\n"
                               "  ptr %%x : dram f32 [M, N] in 0  ptr %%y : dram f32 [M, N] out 0\n"
                               "  ptr %%s : reg f32 [1, 1]  ptr %%r : reg f32 [1, 1]  ptr %%q : reg f32 [1, 1]\n"
                               "  ptr %%t : sram f32 [1, N]  ptr %%u : sram f32 [1, N]\n"
                               "  phase { loop l : M {\n%s} }\n}\n",
                               turns_rows[i].body);
        uir_igraph *runs = read_kernel(f, kernel.data), *apart = parse_kernel(f, kernel.data);
        emit(f, runs, &source);
        if (!strstr(source.data, "_before") == turns_rows[i].overlap) fail_msg("row %zu: %s", i, kernel.data);
        uir_text_deinit(&source);
        uir_loaded_module *modules[] = {compile(f, runs), compile(f, apart)};
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            memset(y, 0, sizeof y);
            run_turns(f, modules[0], runs, sizes[k], x, y[0]);
            run_turns(f, modules[1], apart, sizes[k], x, y[1]);
            assert_memory_equal(y[0], y[1], sizeof y[0]);
        }
        for (size_t m = 0; m < 2; m++) native_unload(modules[m]);
        uir_igraph_destroy(runs);
        uir_igraph_destroy(apart);
        uir_text_deinit(&kernel);
    }
}

/* ---- compiling ---- */
static int entries(const char *folder) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* A temporary folder whose name a shell would act on. */
static void make_folder(char *folder, size_t size) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, size, "%s/uir test $(exit 1);XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static void test_compiler_is_no_shell(void **state) {
    fixture *f = *state;
    char folder[256], before[256] = "";
    uir_text text;
    uir_loaded_module *module;
    if (getenv("TMPDIR")) snprintf(before, sizeof before, "%s", getenv("TMPDIR"));
    make_folder(folder, sizeof folder);
    setenv("TMPDIR", folder, 1);
    uir_igraph *g = read_kernel(f, scale_text);
    emit(f, g, &text);
    uir_cpu_compile_options options = {.variant = UIR_CPU_GENERIC};
    assert_int_equal(native_compile(&f->allocator, &options, &text, &f->diagnostics, &module), UIR_STATUS_OK);
    assert_int_equal(entries(folder), 0); /* nothing is left */
    float x[100], y[100];
    int64_t dims[] = {10, 10}, tiles[1];
    void *pointers[] = {x, y}, *bytes;
    size_t sizes[] = {sizeof x, sizeof y}, size;
    for (int i = 0; i < 100; i++) x[i] = (float)i, y[i] = NAN;
    uir_kernel_arguments arguments = {dims, tiles, pointers};
    for (uint32_t threads = 0; threads < 5; threads++) {
        memset(y, 0xff, sizeof y);
        assert_int_equal(native_run(module, g, 0, &arguments, sizes, threads, &f->diagnostics), UIR_STATUS_OK);
        for (int i = 0; i < 100; i++) assert_true(y[i] == 2 * x[i]);
    }
    dims[0] = 0; /* nothing to do */
    assert_int_equal(native_run(module, g, 0, &arguments, sizes, 3, &f->diagnostics), UIR_STATUS_OK);
    dims[0] = 10;
    sizes[1]--; /* a buffer that is too small is told before anything runs */
    memset(y, 0xff, sizeof y);
    assert_int_equal(native_run(module, g, 0, &arguments, sizes, 3, &f->diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(said(f, "%y has 399 bytes, 400 are needed"));
    for (int i = 0; i < 100; i++) assert_true(isnan(y[i]));
    sizes[1]++;
    dims[0] = -1; /* breaks the dim's facts */
    assert_int_equal(native_run(module, g, 0, &arguments, sizes, 1, &f->diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    native_unload(module);
    /* Bad source: the compiler's words, and nothing left either. */
    uir_diagnostics_clear(&f->diagnostics);
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "int x = ;\n", 10, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_DEVICE_FAILED);
    assert_true(said(f, "expected expression"));
    assert_int_equal(entries(folder), 0);
    if (before[0])
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    rmdir(folder);
    uir_text_deinit(&text);
    uir_igraph_destroy(g);
}

static void test_compilers_that_fail(void **state) {
    fixture *f = *state;
    void *bytes;
    size_t size;
    uir_cpu_compile_options options = {.variant = UIR_CPU_GENERIC, .compiler = "no-such-compiler-here"};
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "", 0, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_DEVICE_FAILED);
    assert_true(said(f, "no-such-compiler-here") && said(f, "CC"));
    options.compiler = "sleep 30 ;"; /* words of one program, not of a shell */
    options.idle_ms = 200;
    uir_diagnostics_clear(&f->diagnostics);
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "", 0, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_DEVICE_FAILED);
    options.compiler = "tail -f /dev/null --"; /* never ends: the flags after -- are files it cannot find */
    uir_diagnostics_clear(&f->diagnostics);
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "", 0, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_DEVICE_FAILED);
    assert_true(said(f, "hangs"));
    const volatile bool cancel = true;
    options.cancel = &cancel;
    options.idle_ms = 0;
    uir_diagnostics_clear(&f->diagnostics);
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "", 0, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_CANCELLED);
    assert_null(f->diagnostics.first);
    options.cancel = NULL;
    options.compiler = "true"; /* succeeds and writes nothing */
    uir_diagnostics_clear(&f->diagnostics);
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "", 0, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_DEVICE_FAILED);
    assert_true(said(f, "wrote nothing"));
    setenv("TMPDIR", "/proc/no/such/folder", 1);
    uir_diagnostics_clear(&f->diagnostics);
    assert_int_equal(uir_cpu_compile(&f->allocator, &options, "", 0, &f->diagnostics, &bytes, &size),
                     UIR_STATUS_IO_FAILED);
    assert_true(said(f, "TMPDIR"));
    unsetenv("TMPDIR");
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_variants, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_made_up_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_named_variants, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blocks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_are_cleaned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_that_c_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_running_sum, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_overlapping_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_compiler_is_no_shell, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_compilers_that_fail, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
