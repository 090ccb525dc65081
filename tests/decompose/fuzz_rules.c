/* Fuzzes rules and clean-up passes over the texts of real models.
 *
 *   fuzz_decompose [--seeds N] [--first N] [--verbose] [PATTERN]
 *
 * Each seed takes a model of the onnx package's test data (PATTERN names files by glob), prints it as text, and for
 * every second seed changes some numbers, element types or op names in it. The text is parsed and decomposed. What is
 * rejected must be so with a message; what is accepted must verify, run (or fail with a message) on random inputs, and
 * give the same before and after the clean-up passes. Ends with `N passed, M failed, S skipped`. */
#include "decompose/decompose.h"
#include "passes/passes.h"
#include "frontend/frontend.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA "build/venv/lib/python3*/site-packages/onnx/backend/test/data/"
enum { TEXT_LIMIT = 60000, MOST_VALUES = 32, ELEMENT_LIMIT = 1 << 20 };

typedef struct tally {
    int rejected, accepted, ran, failed, skipped;
} tally;

static uint64_t random_state;
static unsigned random_number(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33);
}
static unsigned below(unsigned bound) {
    return random_number() % bound;
}

static const char *current_path;
static long current_seed;

static void complain(const char *what, const uir_diagnostics *diagnostics) {
    char buffer[1024] = "";
    if (diagnostics && diagnostics->first) uir_diagnostic_format(diagnostics->first, buffer, sizeof buffer);
    printf("FAILED seed %ld (%s): %s %s\n", current_seed, current_path, what, buffer);
}

static void on_alarm(int signal_number) {
    (void)signal_number;
    static const char text[] = "FAILED: a seed hangs\n";
    if (write(2, text, sizeof text - 1) > 0) abort();
    abort();
}

/* ---- changing text ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Replaces [at, at + length) of a text with room for it. */
static void replace(char *text, size_t at, size_t length, const char *with) {
    size_t size = strlen(text), add = strlen(with);
    if (size - length + add >= 2 * TEXT_LIMIT) return;
    memmove(text + at + add, text + at + length, size - at - length + 1);
    memcpy(text + at, with, add);
}

static void change_number(char *text) {
    static const char *const values[] = {"-1",
                                         "0",
                                         "1",
                                         "2",
                                         "3",
                                         "-2",
                                         "5",
                                         "17",
                                         "-3",
                                         "100",
                                         "4294967296",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "1000000"};
    size_t size = strlen(text), at = below((unsigned)size);
    for (size_t i = 0; i < size; i++, at = (at + 1) % size) {
        bool number = text[at] >= '0' && text[at] <= '9' && at > 0 && !is_word(text[at - 1]) && text[at - 1] != '.' &&
                      text[at - 1] != '%';
        if (!number) continue;
        size_t begin = text[at - 1] == '-' ? at - 1 : at, end = at;
        while (text[end] >= '0' && text[end] <= '9') end++;
        if (text[end] == '.' || text[end] == 'e') continue;
        replace(text, begin, end - begin, values[below(sizeof values / sizeof *values)]);
        return;
    }
}

static void change_word(char *text, const char *const *words, unsigned count) {
    size_t size = strlen(text), at = below((unsigned)size);
    for (size_t i = 0; i < size; i++, at = (at + 1) % size)
        for (unsigned w = 0; w < count; w++) {
            size_t length = strlen(words[w]);
            if (strncmp(text + at, words[w], length) != 0 || is_word(text[at + length])) continue;
            if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '%')) continue;
            replace(text, at, length, words[below(count)]);
            return;
        }
}

static void mutate(char *text) {
    static const char *const dtypes[] = {"f32", "f16", "i64", "i32", "bool", "u8", "i8", "f64", "string", "bf16"};
    static const char *const ops[] = {"Add",
                                      "Concat",
                                      "Gather",
                                      "Reshape",
                                      "Slice",
                                      "Transpose",
                                      "ReduceSum",
                                      "Squeeze",
                                      "Unsqueeze",
                                      "Expand",
                                      "Tile",
                                      "Conv",
                                      "MatMul",
                                      "Softmax",
                                      "Pad",
                                      "Split",
                                      "Cast",
                                      "Where",
                                      "LayerNormalization",
                                      "Resize",
                                      "Range",
                                      "ScatterND",
                                      "TopK",
                                      "OneHot",
                                      "Loop",
                                      "If",
                                      "CumSum"};
    for (unsigned n = 1 + below(3); n; n--) {
        unsigned kind = below(8);
        if (kind < 5)
            change_number(text);
        else if (kind < 7)
            change_word(text, dtypes, sizeof dtypes / sizeof *dtypes);
        else
            change_word(text, ops, sizeof ops / sizeof *ops);
    }
}

/* ---- running ---- */

static uir_datum *make_input(const uir_module *module, const uir_type *type) {
    uir_allocator *allocator = (uir_allocator *)module->allocator;
    int64_t shape[UIR_MAX_RANK];
    uint64_t count = 1;
    uir_tensor *tensor;
    uir_datum *datum;
    uir_dtype_class class = uir_dtype_get_class(type->dtype);
    bool numbers = class == UIR_DTYPE_CLASS_FLOAT || uir_dtype_is_integer(type->dtype) || type->dtype == UIR_DTYPE_BOOL;
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known || type->rank > UIR_MAX_RANK || !numbers) return NULL;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (!uir_dim_is_const(module->dims, type->dims[d], &shape[d])) shape[d] = 2;
        if (shape[d] < 0 || (shape[d] && count > ELEMENT_LIMIT / (uint64_t)shape[d])) return NULL;
        count *= (uint64_t)shape[d];
    }
    if (uir_tensor_create(allocator, type->dtype, type->rank, shape, &tensor) != UIR_STATUS_OK) return NULL;
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        if (class == UIR_DTYPE_CLASS_FLOAT)
            uir_dtype_store_double(type->dtype, tensor->data, i, (double)below(2001) / 500 - 2, UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_integer(type->dtype, tensor->data, i, (int64_t)below(5) - 1, false, UIR_ROUND_NEAREST_EVEN);
    }
    if (uir_datum_create_tensor(allocator, tensor, &datum) == UIR_STATUS_OK) return datum;
    uir_tensor_release(tensor);
    return NULL;
}

typedef struct result {
    uir_status status;
    uir_datum *outputs[MOST_VALUES];
    uint32_t count;
} result;

static void release(result *r) {
    for (uint32_t i = 0; i < r->count; i++) uir_datum_release(r->outputs[i]);
}

static result interpret(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                        uir_datum **inputs) {
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    uir_interpreter_options options = {.byte_limit = 64u << 20};
    result r = {.count = graph->outputs.count};
    r.status = uir_module_interpret(module, allocator, diagnostics, &options, inputs, graph->inputs.count, r.outputs,
                                    r.count, NULL);
    if (r.status != UIR_STATUS_OK) memset(r.outputs, 0, sizeof r.outputs);
    return r;
}

static bool same_tensor(const uir_tensor *a, const uir_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d]) return false;
    if (!uir_dtype_is_float(a->dtype))
        return uir_dtype_get_class(a->dtype) == UIR_DTYPE_CLASS_STRING || !a->byte_size ||
               memcmp(a->data, b->data, a->byte_size) == 0;
    double greatest = 0;
    for (uint64_t i = 0; i < a->element_count; i++) {
        double x = fabs(uir_dtype_load_double(a->dtype, a->data, i));
        if (isfinite(x) && x > greatest) greatest = x;
    }
    double unit = uir_dtype_bits(a->dtype) >= 32 ? 1e-4 : 0.06;
    for (uint64_t i = 0; i < a->element_count; i++) {
        double x = uir_dtype_load_double(a->dtype, a->data, i), y = uir_dtype_load_double(b->dtype, b->data, i);
        if (isnan(x) != isnan(y)) return false;
        if (isnan(x) || x == y) continue;
        if (!(fabs(x - y) <= unit * (greatest + 1))) return false;
    }
    return true;
}

static bool same_datum(const uir_datum *a, const uir_datum *b) {
    if (a->kind != b->kind || a->count != b->count) return false;
    if (a->kind == UIR_VALUE_TENSOR) return same_tensor(a->tensor, b->tensor);
    for (uint32_t i = 0; i < a->count; i++)
        if (!same_datum(a->elements[i], b->elements[i])) return false;
    return true;
}

static bool draws_numbers(const uir_module *module) {
    for (uint32_t n = 1; n < module->nodes.count; n++)
        if (uir_op_get_row(uir_node_get(module, (uir_node_id){n})->op)->traits & UIR_TRAIT_RANDOM) return true;
    return false;
}

/* Whether narrow results or comparisons of rounded numbers may rightly differ. */
static bool computes_in_halves(const uir_module *module) {
    for (uint32_t v = 1; v < module->values.count; v++) {
        uir_dtype dtype = module->values.data[v].type.dtype;
        if (uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) < 32) return true;
    }
    return false;
}

static bool clean_and_compare(uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                              tally *t) {
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    uint32_t inputs = graph->inputs.count;
    uir_datum *values[MOST_VALUES] = {0};
    bool runs = inputs <= MOST_VALUES && graph->outputs.count <= MOST_VALUES, good = true;
    for (uint32_t i = 0; i < inputs && runs; i++)
        runs = (values[i] = make_input(module, uir_value_type(module, graph->inputs.data[i]))) != NULL;
    result before = {0}, after = {0};
    if (runs) before = interpret(module, allocator, diagnostics, values);
    if (runs && before.status != UIR_STATUS_OK && !diagnostics->error_count &&
        before.status != UIR_STATUS_OUT_OF_MEMORY) {
        complain("the run fails without a message", diagnostics);
        good = false;
    }
    uir_diagnostics_clear(diagnostics);
    uir_pass_options options = {.check_text = true};
    uir_status status = uir_passes_run(module, uir_cleanup_passes, uir_cleanup_pass_count, &options);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_OUT_OF_MEMORY && status != UIR_STATUS_LIMIT) {
        complain("the passes fail", diagnostics);
        good = false;
    } else if (runs && before.status == UIR_STATUS_OK && status == UIR_STATUS_OK && !draws_numbers(module)) {
        after = interpret(module, allocator, diagnostics, values);
        if (after.status != UIR_STATUS_OK) {
            complain("it runs before the passes but not after", diagnostics);
            good = false;
        }
        for (uint32_t i = 0; i < before.count && good && !computes_in_halves(module); i++)
            if (!same_datum(before.outputs[i], after.outputs[i])) {
                complain("the passes change a result", diagnostics);
                good = false;
            }
        t->ran++;
    }
    release(&before);
    release(&after);
    for (uint32_t i = 0; i < inputs && i < MOST_VALUES; i++) uir_datum_release(values[i]);
    return good;
}

static bool try_text(const char *text, bool changed, tally *t) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_module *source = NULL, *module = NULL;
    uir_diagnostics_init(&diagnostics, &allocator);
    bool good = true;
    uir_status status = uir_module_parse(&allocator, &diagnostics, text, strlen(text), "<text>", NULL, &source);
    if (status == UIR_STATUS_OK) status = uir_decompose(source, &allocator, &diagnostics, &module);
    if (status != UIR_STATUS_OK) {
        t->rejected++;
        good = diagnostics.error_count != 0 && status != UIR_STATUS_INTERNAL;
        if (!good) complain("rejected without a message, or as our own fault", &diagnostics);
        if (!changed && status != UIR_STATUS_UNSUPPORTED) {
            complain("a sound model is rejected", &diagnostics);
            good = false;
        }
    } else {
        t->accepted++;
        if (uir_module_verify(module, &diagnostics) != UIR_STATUS_OK) {
            complain("does not verify after decompose", &diagnostics);
            good = false;
        } else {
            good = clean_and_compare(module, &allocator, &diagnostics, t);
        }
    }
    uir_module_destroy(module);
    uir_module_destroy(source);
    uir_diagnostics_deinit(&diagnostics);
    return good;
}

/* The model's text in `out`, empty when it cannot be had or is too long. */
static void print_model(const char *path, char *out) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *module = NULL;
    uir_text text;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_arena_init(&arena, &allocator);
    uir_text_init(&text, &allocator);
    uir_onnx_source source = {.path = path, .is_supported = uir_decompose_has_rule};
    out[0] = 0;
    if (uir_onnx_load(&source, &allocator, &diagnostics, &arena, &info, &module) == UIR_STATUS_OK &&
        uir_module_print(module, SIZE_MAX, &text) == UIR_STATUS_OK && text.length && text.length < TEXT_LIMIT)
        memcpy(out, text.data, text.length + 1);
    uir_text_deinit(&text);
    uir_module_destroy(module);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
}

int main(int argc, char **argv) {
    long seeds = 2000, first = 0;
    bool verbose = false;
    const char *pattern = DATA "[nsp]*/*/model.onnx";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0)
            seeds = atol(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
            first = atol(argv[++i]);
        else
            pattern = argv[i];
    }
    static char text[2 * TEXT_LIMIT];
    glob_t models;
    tally t = {0};
    if (glob(pattern, 0, NULL, &models) != 0) {
        printf("skip: needs onnx: no model at %s (script/setup installs the onnx package)\n0 passed, 0 failed, 1 skipped\n",
               pattern);
        return 0;
    }
    signal(SIGALRM, on_alarm);
    for (current_seed = first; current_seed < first + seeds; current_seed++) {
        random_state = (uint64_t)current_seed * 0x9e3779b97f4a7c15u + 1;
        random_number();
        current_path = models.gl_pathv[random_number() % models.gl_pathc];
        print_model(current_path, text);
        if (!text[0]) {
            t.skipped++;
            continue;
        }
        bool changed = current_seed % 2 != 0;
        if (changed) mutate(text);
        if (verbose) printf("# seed %ld: %s\n%s", current_seed, current_path, text);
        fflush(stdout);
        alarm(60);
        t.failed += !try_text(text, changed, &t);
        alarm(0);
    }
    globfree(&models);
    printf("%d rejected, %d accepted, %d run before and after the passes\n", t.rejected, t.accepted, t.ran);
    printf("%ld passed, %d failed, %d skipped\n", seeds - t.failed - t.skipped, t.failed, t.skipped);
    return t.failed != 0;
}
