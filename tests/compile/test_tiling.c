/* The three evaluators of tiling functions: the iGraph's own, the plan's in a package, and the C that emitters print.
 * Models in text, on several variants of the CPU, at drawn sizes and numbers of threads: all three choose the same
 * variant of a kernel and the same tiles, or none. */
#include "backends/source/source.h"
#include "compile/compile.h"
#include "runtime/runtime.h"
#include "tests/base/support.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RANK = 4, DRAWS = 10000 / UIR_TEST_SHARE, MAX_TILES = 64, MAX_DIMS = 64 };

#define HEAD "module opset 20\nsize b\nsize m\nsize k\nsize n\n"
static const char *const models[] = {
    HEAD "graph \"g\" (%x: f32[m, k], %y: f32[k, n]) {\n    %z: f32[m, n] = matmul(%x, %y) {to = f32}\n"
         "    %e: f32[m, n] = exp(%z)\n    return %e\n}\n",
    HEAD "graph \"g\" (%x: f32[b, m, k], %y: f32[b, k, n]) {\n    %z: f32[b, m, n] = matmul(%x, %y) {to = f32}\n"
         "    return %z\n}\n",
    HEAD "constant %w: f32[96, 80] = splat 2\ngraph \"g\" (%x: f32[m, 96]) {\n"
         "    %z: f32[m, 80] = matmul(%x, %w) {to = f32}\n    return %z\n}\n",
    HEAD "graph \"g\" (%x: f32[m, n]) {\n    %s: f32[m, 1] = reduce_sum(%x) {axes = [1], keep = 1}\n"
         "    %w: f32[m, n] = broadcast(%s) {dims = [m, n]}\n    %d: f32[m, n] = div(%x, %w)\n    %c: f32[1, n] = "
         "reduce_max(%x) {axes = [0], keep = 1}\n"
         "    return %d, %c\n}\n",
    HEAD "graph \"g\" (%x: f32[b, m, n], %y: f32[b, k, n]) {\n"
         "    %t: f32[m, b, n] = transpose(%x) {perm = [1, 0, 2]}\n"
         "    %z: f32[b, m + k, n] = concat(%x, %y) {axis = 1}\n    return %t, %z\n}\n",
    HEAD "graph \"g\" (%x: f16[m, k], %y: f16[k, n]) {\n    %z: f32[m, n] = matmul(%x, %y) {to = f32}\n"
         "    return %z\n}\n",
};
static const char *const devices[] = {"vm:generic", "vm:avx2", "vm:avx512vnni", "vm"};

typedef int choose_function(const int64_t *sizes, int64_t workers, int64_t *tiles);

typedef struct tests {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_compile compile;
    uir_text package;
    uir_package *opened;
    void *library;
    char folder[64], object[96];
    random_state random;
    uint64_t compared, chosen;
} tests;

static void run_nothing(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context) {
    (void)user, (void)count, (void)task, (void)context;
}

static void check_ok(const tests *t, uir_status status, const char *what) {
    if (status == UIR_STATUS_OK) return;
    fail_msg("%s: %s", what, t->diagnostics.first ? t->diagnostics.first->message : uir_status_text(status));
}

/* ---- the emitted functions ---- */
static void print_function(const uir_igraph *igraph, uint32_t index, uir_text *text) {
    uir_c_writer w = {.igraph = igraph, .text = text};
    uir_arena_init(&w.arena, &igraph->allocator);
    assert_int_equal(uir_c_begin(&w), UIR_STATUS_OK);
    uir_c_choose(&w, uir_c_format(&w, "choose%u", index));
    assert_false(w.failed);
    uir_arena_deinit(&w.arena);
}

static void compile_functions(tests *t) {
    char source[96];
    extern char **environ;
    pid_t child;
    int ended = 1;
    uir_text text;
    uir_text_init(&text, &t->allocator);
    uir_text_append_string(&text, "#include \"machine.h\"\n");
    for (uint32_t i = 0; i < t->compile.igraph_count; i++) print_function(t->compile.igraphs[i], i, &text);
    snprintf(source, sizeof source, "%s/choose.c", t->folder);
    snprintf(t->object, sizeof t->object, "%s/choose%llu.so", t->folder, (unsigned long long)t->compared);
    FILE *file = fopen(source, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.length, file), text.length);
    assert_int_equal(fclose(file), 0);
    uir_text_deinit(&text);
    const char *words[] = {"cc", "-std=gnu11", "-O0",  "-shared", "-fPIC",     "-I.", "-Itests/backends/skeleton/machine",
                           "-o", t->object,    source, "-lm",     "-lpthread", NULL};
    if (posix_spawnp(&child, words[0], NULL, NULL, (char *const *)(uintptr_t)words, environ) ||
        waitpid(child, &ended, 0) < 0 || ended)
        fail_msg("%s does not compile", source);
    t->library = dlopen(t->object, RTLD_NOW | RTLD_LOCAL);
    if (!t->library) fail_msg("%s", dlerror());
    unlink(t->object);
    unlink(source);
}

/* ---- a model ---- */
static void open_model(tests *t, const char *text, const char *device) {
    const uir_compile_options options = {.device = device};
    const uir_compile_text read = {text, strlen(text), "model", NULL};
    const uir_compile_call call = {.diagnostics = &t->diagnostics};
    uir_compile_init(&t->compile, NULL, &options, &t->allocator, NULL);
    check_ok(t, uir_compile_read(&t->compile, UIR_STAGE_CLEANED, &read, &t->diagnostics), text);
    check_ok(t, uir_compile_run(&t->compile, UIR_STAGE_RUNS, &call), text);
    uir_text_init(&t->package, &t->allocator);
    const uir_package_sink sink = uir_package_sink_to_text(&t->package);
    const uir_compile_contents contents = {.sink = &sink};
    const uir_compile_call write = {.diagnostics = &t->diagnostics, .contents = &contents};
    check_ok(t, uir_compile_run(&t->compile, UIR_STAGE_PACKAGE, &write), text);
    const uir_package_options open = {.formats = t->compile.row->formats,
                                      .format_count = uir_device_count_formats(t->compile.row),
                                      .trusted = true,
                                      .checked = true};
    check_ok(t, uir_package_open(t->package.data, t->package.length, &open, &t->allocator, &t->diagnostics, &t->opened),
             text);
    compile_functions(t);
}

static void close_model(tests *t) {
    uir_package_close(t->opened);
    uir_text_deinit(&t->package);
    uir_compile_deinit(&t->compile);
    dlclose(t->library);
    uir_diagnostics_clear(&t->diagnostics);
}

static const uir_node_info *find_group(const uir_module *module, const char *kernel, uint32_t *at) {
    while (++*at < module->nodes.count) {
        const uir_node_info *node = uir_node_get(module, (uir_node_id){*at});
        if (node->kernel && !strcmp(uir_node_string(module, node, "kernel", ""), kernel)) return node;
    }
    return NULL;
}

/* ---- sizes ---- */
/* Small ones, and others up to some thousands, near and far from multiples of tiles. */
static int64_t draw_size(tests *t) {
    static const uint32_t below[] = {4, 20, 70, 300, 3000};
    int64_t size = (int64_t)random_between(&t->random, 0, below[random_between(&t->random, 0, 4)]);
    return random_between(&t->random, 0, 3) ? size : size / 16 * 16;
}

/* A plan has memory for results: no more elements in one of them than this. */
enum { MOST_ELEMENTS = 1 << 24 };
static bool are_small(const tests *t, const int64_t *values, uint32_t count) {
    const uir_module *module = t->compile.primitives;
    const uir_graph_info *main = uir_graph_get(module, module->main);
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        const uir_type *type = uir_value_type(module, main->outputs.data[i]);
        int64_t elements = 1, extent;
        for (uint32_t d = 0; d < type->rank; d++) {
            if (uir_dim_evaluate(module->dims, type->dims[d], values, NULL, count, &extent) != UIR_DIM_EVALUATED)
                return false;
            elements *= extent; /* of three dims below 6,000 */
        }
        if (elements > MOST_ELEMENTS) return false;
    }
    return true;
}

static void set_inputs(tests *t, uir_runtime *runtime, const int64_t *values, uint32_t count) {
    const uir_module *module = t->compile.primitives;
    const uir_graph_info *main = uir_graph_get(module, module->main);
    for (uint32_t i = 0; i < main->inputs.count; i++) {
        const uir_type *type = uir_value_type(module, main->inputs.data[i]);
        int64_t shape[MAX_RANK];
        for (uint32_t d = 0; d < type->rank; d++)
            assert_int_equal(uir_dim_evaluate(module->dims, type->dims[d], values, NULL, count, &shape[d]),
                             UIR_DIM_EVALUATED);
        check_ok(t, uir_runtime_set_input(runtime, i, type->dtype, type->rank, shape, NULL), "an input");
    }
}

/* The first variant whose tiling function allows the sizes, by the iGraph; its tiles. */
static uint32_t choose_by_igraph(const uir_igraph_list *list, const int64_t *dims, int64_t workers, int64_t *tiles) {
    for (uint32_t v = 0; v < list->count; v++)
        if (uir_igraph_choose_tiles(list->igraphs[v], dims, workers, tiles, NULL) == UIR_STATUS_OK) return v;
    return UINT32_MAX;
}

static uint32_t choose_by_text(const tests *t, const uir_igraph_list *list, const int64_t *dims, int64_t workers,
                               int64_t *tiles) {
    for (uint32_t v = 0; v < list->count; v++) {
        char name[32];
        choose_function *choose;
        uint32_t index = 0;
        while (t->compile.igraphs[index] != list->igraphs[v]) index++;
        snprintf(name, sizeof name, "choose%u", index);
        *(void **)&choose = dlsym(t->library, name);
        assert_non_null(choose);
        if (choose(dims, workers, tiles)) return v;
    }
    return UINT32_MAX;
}

static void compare_launch(tests *t, const uir_runtime *runtime, uint32_t step, const uir_node_info *group,
                           const int64_t *values, uint32_t value_count, uint32_t workers) {
    const uir_module *module = t->compile.primitives;
    const uir_igraph_list *list = &uir_lowering_get_kernel(&t->compile.lowering, group)->lowered.igraphs;
    int64_t dims[MAX_DIMS] = {0}, own[MAX_TILES] = {0}, printed[MAX_TILES] = {0};
    uint32_t count;
    uir_runtime_choice choice;
    const uir_dim *sizes = uir_node_dims(module, group, "sizes", &count);
    for (uint32_t i = 0; i < count; i++) /* what follows is slack, of which a packed tensor has none */
        assert_int_equal(uir_dim_evaluate(module->dims, sizes[i], values, NULL, value_count, &dims[i]),
                         UIR_DIM_EVALUATED);
    uint32_t variant = choose_by_igraph(list, dims, workers, own);
    if (choose_by_text(t, list, dims, workers, printed) != variant || memcmp(own, printed, sizeof own))
        fail_msg("@%s: the C function chooses other tiles", list->igraphs[0]->name);
    t->compared++;
    if (!uir_runtime_get_choice(runtime, step, &choice)) return; /* nothing to do at these sizes */
    t->chosen++;
    uint32_t tiles = uir_igraph_count_symbols(list->igraphs[variant], UIR_ISYMBOL_TILE);
    if (choice.variant != variant || (choice.tile_count && choice.tile_count != tiles) ||
        memcmp(own, choice.tiles ? choice.tiles : own, choice.tile_count * sizeof *own))
        fail_msg("@%s: the plan chooses other tiles", list->igraphs[0]->name);
}

static void compare_sizes(tests *t) {
    const uir_module *module = t->compile.primitives;
    uint32_t workers = 1 + (uint32_t)random_between(&t->random, 0, 19), count = uir_dims_symbol_count(module->dims);
    const uir_runtime_options options = {.threads = workers, .parallel = run_nothing};
    uir_runtime *runtime;
    int64_t values[MAX_DIMS];
    uint64_t bytes;
    check_ok(t, uir_runtime_create(t->opened, &options, &t->allocator, &t->diagnostics, &runtime), "a runtime");
    for (uint32_t draw = 0; draw < 50; draw++) {
        uint32_t at = 0;
        uir_runtime_step step;
        do {
            for (uint32_t i = 0; i < count; i++) values[i] = draw_size(t);
        } while (!are_small(t, values, count));
        set_inputs(t, runtime, values, count);
        check_ok(t, uir_runtime_plan(runtime, &bytes), "the plan");
        for (uint32_t i = 0; uir_runtime_get_step(runtime, i, &step); i++) {
            if (strcmp(step.kind, "launch") != 0) continue;
            const uir_node_info *group = find_group(module, step.kernel, &at);
            assert_non_null(group);
            compare_launch(t, runtime, i, group, values, count, workers);
        }
    }
    uir_runtime_destroy(runtime);
}

static void evaluators_agree(void **state) {
    tests t = {.allocator = uir_allocator_system(), .random = {fuzz_seed()}};
    const uint32_t model_count = sizeof models / sizeof *models, device_count = sizeof devices / sizeof *devices;
    const uint64_t each = DRAWS / (model_count * device_count) + 1;
    (void)state;
    uir_diagnostics_init(&t.diagnostics, &t.allocator);
    snprintf(t.folder, sizeof t.folder, "%.40s/uir-tiling-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(t.folder));
    for (uint32_t m = 0; m < model_count; m++)
        for (uint32_t d = 0; d < device_count; d++) {
            uint64_t end = t.compared + each;
            open_model(&t, models[m], devices[d]);
            while (t.compared < end) compare_sizes(&t);
            close_model(&t);
        }
    print_message("%llu comparisons, of which the plan has %llu\n", (unsigned long long)t.compared,
                  (unsigned long long)t.chosen);
    assert_true(t.compared >= DRAWS && t.chosen > t.compared / 2);
    rmdir(t.folder);
    uir_diagnostics_deinit(&t.diagnostics);
}

int main(void) {
    const struct CMUnitTest list[] = {cmocka_unit_test(evaluators_agree)};
    return cmocka_run_group_tests(list, NULL, NULL);
}
