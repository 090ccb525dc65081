/* Groups by themselves on a described machine.
 *
 *   uir-lower-machines MACHINE.device [-few] GROUP.graph...
 *
 * In: a description, and texts of modules after fusion, each of one group (and what converts its operands). Out: on
 * standard output, a line for each thing that was found, the group's name behind its first word:
 *   kernels G N        it has N kernels, all verified
 *   unready G          the machine has pipes that run apart, and one of the kernels no waits
 *   refused G WHY      a node of it has none
 *   fault G WHY        making them failed otherwise
 *   wrong G WHERE WHY  a kernel's interpreter failed, or gave something else than the group's nodes one by one
 *   ran G N M          it was run at N choices of sizes: 0, 1, 2, primes, and one beside each tile of its kernels; M
 *                      others would take too long
 * -few: at fewer sizes. */
#define _POSIX_C_SOURCE 200809L
#include "compile/compile.h"
#include "compile/launch.h"
#include "ir/graph/interpret/interpret.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 64, MOST_ELEMENTS = 1 << 16, LONGEST = 600, SMALL = 64 };

typedef struct trial {
    const char *name; /* of the group */
    bool few;
    uir_allocator allocator;
    uir_diagnostics said;
    uir_compile compile;
    uir_launcher *launcher;
    uint32_t symbols;
    int64_t *values; /* by symbol */
    uint64_t seed;
    uint32_t ran, left_out;
} trial;

static const char *reason(const trial *t) {
    return t->said.first ? t->said.first->message : "no reason was given";
}

static char *read_file(const char *path, size_t *out_length) {
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(1 << 22) : NULL;
    *out_length = text ? fread(text, 1, 1 << 22, file) : 0;
    if (file) fclose(file);
    return text;
}

/* ---- data ---- */
static uint64_t next_random(trial *t) {
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    return t->seed >> 33;
}

/* Floats between -2 and 2, whole numbers from 0 to 3: what is looked up is there. */
static void fill(trial *t, uir_tensor *tensor) {
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        if (uir_dtype_is_float(tensor->dtype))
            uir_dtype_store_double(tensor->dtype, tensor->data, i, (double)(next_random(t) % 4000) / 1000 - 2,
                                   UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_double(tensor->dtype, tensor->data, i,
                                   (double)(next_random(t) % (tensor->dtype == UIR_DTYPE_BOOL ? 2 : 4)),
                                   UIR_ROUND_NEAREST_EVEN);
    }
}

static const uir_graph_info *main_graph(const trial *t) {
    return uir_graph_get(t->compile.primitives, t->compile.primitives->main);
}

/* Elements of all that is computed; -1: the sizes mean nothing to it. */
static int64_t count_elements(const trial *t) {
    const uir_module *module = t->compile.primitives;
    int64_t all = 0;
    for (uint32_t v = 1; v < module->values.count; v++) {
        const uir_type *type = &module->values.data[v].type;
        int64_t elements = 1, extent;
        for (uint32_t d = 0; d < type->rank; d++) {
            if (uir_dim_evaluate(module->dims, type->dims[d], t->values, NULL, t->symbols, &extent) !=
                UIR_DIM_EVALUATED)
                continue; /* of a value that is nobody's any more */
            if (extent < 0) return -1;
            elements = elements * extent < MOST_ELEMENTS * 2 ? elements * extent : MOST_ELEMENTS * 2;
        }
        all += elements;
    }
    return all;
}

/* False: the sizes mean nothing to it. */
static bool make_input(trial *t, uir_value_id value, uir_datum **out_datum) {
    const uir_module *module = t->compile.primitives;
    const uir_type *type = uir_value_type(module, value);
    int64_t shape[UIR_MAX_RANK];
    uir_tensor *tensor;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (uir_dim_evaluate(module->dims, type->dims[d], t->values, NULL, t->symbols, &shape[d]) !=
                UIR_DIM_EVALUATED ||
            shape[d] < 0)
            return false;
    }
    if (uir_tensor_create(&t->allocator, type->dtype, type->rank, shape, &tensor) != UIR_STATUS_OK) return false;
    fill(t, tensor);
    return uir_datum_create_tensor(&t->allocator, tensor, out_datum) == UIR_STATUS_OK;
}

/* ---- running ---- */
static uir_status run_group(void *user, const uir_node_values *values, bool *out_ran) {
    trial *t = user;
    uir_launch launch;
    void *outputs[UIR_LAUNCH_MAX_SIZES];
    *out_ran = uir_launch_find(t->launcher, values, &launch) && launch.node->output_count <= UIR_LAUNCH_MAX_SIZES;
    if (!*out_ran) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < launch.node->output_count; i++) outputs[i] = values->outputs[i]->tensor->data;
    return uir_launch_igraph(&launch, "interpreter", outputs, &t->said);
}

/* A float may differ by what other formulas round otherwise, a whole number where one was rounded; floats that are
 * whole numbers all of them likewise, and all together where it is their zero point that was halfway. */
static bool is_close(const uir_tensor *a, const uir_tensor *b) {
    double most = 1;
    uint64_t off = 0;
    bool whole = uir_dtype_is_float(a->dtype);
    if (a->element_count != b->element_count || a->dtype != b->dtype) return false;
    for (uint64_t i = 0; i < a->element_count; i++) {
        double x = uir_dtype_load_double(a->dtype, a->data, i);
        if (isfinite(x) && fabs(x) > most) most = fabs(x);
        whole = whole && x == trunc(x);
    }
    double allowed = 2e-4 * most;
    if (whole && most > 1 && allowed < 2) allowed = 2;
    for (uint64_t i = 0; i < a->element_count; i++) {
        double x = uir_dtype_load_double(a->dtype, a->data, i), y = uir_dtype_load_double(b->dtype, b->data, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (!uir_dtype_is_float(a->dtype)) {
            if (a->dtype == UIR_DTYPE_BOOL || fabs(x - y) > 1 || ++off > 1 + a->element_count / 100) return false;
        } else if (!(fabs(x - y) <= allowed + 1e-3 * fabs(x))) {
            return false;
        }
    }
    return true;
}

static void print_sizes(const trial *t) {
    const uir_dims *dims = t->compile.primitives->dims;
    for (uint32_t s = 0; s < t->symbols; s++)
        printf("%s%s=%lld", s ? "," : " ", uir_dims_symbol_name(dims, (uir_symbol){s}), (long long)t->values[s]);
    if (!t->symbols) fputs(" -", stdout);
}

static void run_values(trial *t) {
    const uir_graph_info *graph = main_graph(t);
    const uir_module *module = t->compile.primitives;
    uint32_t inputs = graph->inputs.count, outputs = graph->outputs.count;
    uir_datum *given[MOST_VALUES] = {0}, *right[MOST_VALUES] = {0}, *got[MOST_VALUES] = {0};
    uir_interpreter_options plain = {.threads = 1}, kernels = {.threads = 1, .user = t, .run_group = run_group};
    int64_t elements = count_elements(t);
    bool made = inputs <= MOST_VALUES && outputs <= MOST_VALUES && elements >= 0 && elements <= MOST_ELEMENTS;
    t->left_out += elements > MOST_ELEMENTS;
    for (uint32_t i = 0; i < inputs && made; i++) made = make_input(t, graph->inputs.data[i], &given[i]);
    /* Where the group itself means nothing at these sizes there is nothing to hold kernels to. */
    made = made && uir_module_interpret(module, &t->allocator, &t->said, &plain, given, inputs, right, outputs, NULL) ==
                       UIR_STATUS_OK;
    uir_diagnostics_clear(&t->said);
    if (made) {
        uir_status status =
            uir_module_interpret(module, &t->allocator, &t->said, &kernels, given, inputs, got, outputs, NULL);
        bool close = status == UIR_STATUS_OK;
        for (uint32_t i = 0; i < outputs && close; i++) close = is_close(right[i]->tensor, got[i]->tensor);
        t->ran++;
        if (!close) {
            printf("wrong %s", t->name);
            print_sizes(t);
            printf(" %s\n", status == UIR_STATUS_OK ? "another result" : reason(t));
        }
        uir_diagnostics_clear(&t->said);
    }
    for (uint32_t i = 0; i < MOST_VALUES; i++) {
        uir_datum_release(given[i]);
        uir_datum_release(right[i]);
        uir_datum_release(got[i]);
    }
}

/* ---- sizes ---- */
static void add_size(int64_t *sizes, uint32_t *count, int64_t size) {
    for (uint32_t i = 0; i < *count; i++)
        if (sizes[i] == size) return;
    if (size >= 0 && size <= LONGEST && *count < MOST_VALUES) sizes[(*count)++] = size;
}

/* The longest tile of its kernels that is not too long to be run, and the shortest of several elements. */
static void find_tiles(const trial *t, int64_t out_tiles[2]) {
    out_tiles[0] = out_tiles[1] = 0;
    for (uint32_t k = 0; k < t->compile.lowering.kernels.count; k++) {
        const uir_igraph_list *list = &t->compile.lowering.kernels.data[k].lowered.igraphs;
        for (uint32_t i = 0; i < list->count; i++)
            for (uint32_t p = 0; p < list->igraphs[i]->pointers.count; p++) {
                const uir_ipointer *pointer = &list->igraphs[i]->pointers.data[p];
                for (uint32_t d = 0; d < pointer->rank && pointer->role == UIR_IPOINTER_LOCAL; d++) {
                    int64_t tile;
                    if (!uir_dim_is_const(list->igraphs[i]->dims, pointer->extents[d], &tile) || tile < 3 ||
                        tile >= LONGEST)
                        continue;
                    if (tile > out_tiles[0]) out_tiles[0] = tile;
                    if (!out_tiles[1] || tile < out_tiles[1]) out_tiles[1] = tile;
                }
            }
    }
}

/* Each size in turn is each of the numbers, the others small and different. */
static void run_sizes(trial *t) {
    static const int64_t some[] = {1, 0, 3, 2, 5, 7, 13, 31}, others[] = {3, 2, 5, 1};
    const uir_dims *dims = t->compile.primitives->dims;
    int64_t sizes[MOST_VALUES], tiles[2];
    uint32_t count = 0;
    for (uint32_t i = 0; i < (t->few ? 3 : sizeof some / sizeof *some); i++) add_size(sizes, &count, some[i]);
    find_tiles(t, tiles);
    for (int i = 0; i < 2; i++)
        for (int64_t by = -1; by <= 1 && tiles[i]; by++)
            if (!t->few || (by && !i)) add_size(sizes, &count, tiles[i] + by);
    if (!t->symbols) count = 1;
    for (uint32_t s = 0; s < (t->symbols ? t->symbols : 1); s++)
        for (uint32_t i = 0; i < count; i++) {
            bool legal = true;
            for (uint32_t o = 0; o < t->symbols; o++) {
                uir_symbol_facts facts = uir_dims_symbol_facts(dims, (uir_symbol){o});
                t->values[o] = o == s ? sizes[i] : sizes[i] > SMALL ? 1 + (i + o) % 2 : others[(i + o + s) % 4];
                legal = legal && t->values[o] >= facts.min && t->values[o] <= facts.max;
            }
            if (legal) run_values(t);
        }
}

/* ---- a group ---- */
static bool waits(const trial *t) {
    for (uint32_t k = 0; k < t->compile.lowering.kernels.count; k++) {
        const uir_igraph_list *list = &t->compile.lowering.kernels.data[k].lowered.igraphs;
        for (uint32_t i = 0; i < list->count; i++)
            if (!list->igraphs[i]->synchronised) return false;
    }
    return true;
}

static void try_compiled(trial *t, const uir_machine *machine) {
    const uir_lowering *lowering = &t->compile.lowering;
    for (uint32_t i = 0; i < lowering->refusals.count; i++)
        printf("refused %s %s\n", t->name, lowering->refusals.data[i].why);
    printf("kernels %s %u\n", t->name, lowering->kernels.count);
    if (machine->pipe_count > 1 && !waits(t)) printf("unready %s\n", t->name);
    t->symbols = uir_dims_symbol_count(t->compile.primitives->dims);
    t->values = calloc((size_t)t->symbols + 1, sizeof *t->values);
    if (t->values && uir_launcher_create(lowering, NULL, 1, &t->allocator, &t->launcher) == UIR_STATUS_OK) run_sizes(t);
    printf("ran %s %u %u\n", t->name, t->ran, t->left_out);
    uir_launcher_destroy(t->launcher);
    free(t->values);
}

static void try_group(const char *path, const uir_machine *machine, bool few) {
    const char *slash = strrchr(path, '/'), *begin = slash ? slash + 1 : path;
    char name[128];
    trial t = {.name = name, .few = few, .allocator = uir_allocator_system(), .seed = 1};
    uir_compile_options options = {.description = machine};
    uir_arena arena;
    size_t length;
    char *text = read_file(path, &length);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(begin, "."), begin);
    uir_arena_init(&arena, &t.allocator);
    uir_diagnostics_init(&t.said, &t.allocator);
    uir_compile_init(&t.compile, NULL, &options, &t.allocator, &arena);
    const uir_compile_text read = {text, length, path, NULL};
    const uir_compile_call call = {.diagnostics = &t.said};
    uir_status status = text ? uir_compile_read(&t.compile, UIR_STAGE_FUSION, &read, &t.said) : UIR_STATUS_BAD_FILE;
    if (status == UIR_STATUS_OK) status = uir_compile_run(&t.compile, UIR_STAGE_IGRAPH, &call);
    if (status == UIR_STATUS_OK)
        try_compiled(&t, machine);
    else
        printf("fault %s %s\n", name, reason(&t));
    fflush(stdout);
    uir_compile_deinit(&t.compile);
    uir_diagnostics_deinit(&t.said);
    uir_arena_deinit(&arena);
    free(text);
}

int main(int argc, char **argv) {
    uir_allocator allocator = uir_allocator_system();
    uir_compile_machines *devices = NULL;
    uir_diagnostics said;
    const uir_machine *machine = NULL;
    size_t length = 0;
    bool few = argc > 2 && !strcmp(argv[2], "-few");
    char *text = argc > 2 ? read_file(argv[1], &length) : NULL;
    uir_diagnostics_init(&said, &allocator);
    uir_status status = uir_compile_machines_create(&allocator, NULL, &said, &devices);
    if (status == UIR_STATUS_OK)
        status = text ? uir_compile_machines_add(devices, text, length, argv[1], &said, &machine)
                      : UIR_STATUS_INVALID_ARGUMENT;
    if (status != UIR_STATUS_OK)
        fprintf(stderr, "uir-lower-machines: %s\n",
                said.first ? said.first->message : "MACHINE.device [-few] GROUP.graph...");
    for (int i = few ? 3 : 2; i < argc && status == UIR_STATUS_OK; i++) try_group(argv[i], machine, few);
    uir_compile_machines_destroy(devices);
    uir_diagnostics_deinit(&said);
    free(text);
    return status != UIR_STATUS_OK;
}
