/* Random modules: verified, printed, read back, printed again; interpreted before and after, on one thread and on two;
 * cloned, cleaned up and interpreted again, of which neither original nor clone of the other notices.
 * UIR_FUZZ_ITERATIONS modules (or the first argument), from UIR_FUZZ_SEED on. */
#include "tests/ir/graph/random_graph.h"

#include "decompose/decompose.h"
#include "passes/passes.h"
#include <time.h>

enum { MAX_VALUES = 16, BINDINGS = 3 };

static uint64_t iterations = 2000;
static uint64_t ran, refused; /* interpretations that gave results; that ended with a run-time fault */

static void report(const fixture *f, uint64_t seed, const char *what) {
    uir_text text;
    uir_text_init(&text, &f->allocator);
    (void)!uir_module_print(f->module, 1000, &text);
    print_messages(&f->diagnostics);
    if (f->module->diagnostics != &f->diagnostics) print_messages(f->module->diagnostics);
    fprintf(stderr, "%s\n", text.data ? text.data : "");
    uir_text_deinit(&text);
    fail_msg("seed %llu: %s", (unsigned long long)seed, what);
}

static bool is_nan_bits(const uir_tensor *t, uint64_t i) {
    return uir_dtype_is_float(t->dtype) && isnan(uir_dtype_load_double(t->dtype, t->data, i));
}

/* Equal bytes; `any_nan`: every NaN equals every other. */
static bool equal_tensors(const uir_tensor *a, const uir_tensor *b, bool any_nan) {
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
        return false;
    if (a->dtype == UIR_DTYPE_STRING) {
        const uir_string_view *x = a->data, *y = b->data;
        for (uint64_t i = 0; i < a->element_count; i++)
            if (x[i].length != y[i].length || memcmp(x[i].text, y[i].text, x[i].length) != 0) return false;
        return true;
    }
    if (!a->byte_size || !memcmp(a->data, b->data, a->byte_size)) return true;
    if (!any_nan || !uir_dtype_is_float(a->dtype)) return false;
    for (uint64_t i = 0; i < a->element_count; i++) {
        double x = uir_dtype_load_double(a->dtype, a->data, i), y = uir_dtype_load_double(b->dtype, b->data, i);
        if (is_nan_bits(a, i) ? !is_nan_bits(b, i) : x != y || signbit(x) != signbit(y)) return false;
    }
    return true;
}

static bool equal_shapes(const uir_tensor *a, const uir_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

typedef struct result {
    uir_status status;
    uir_datum *outputs[MAX_VALUES];
    uint32_t count;
} result;

static result run(const fixture *f, uir_module *module, uir_diagnostics *diagnostics, uir_datum **inputs,
                  uint32_t threads) {
    result r = {.count = uir_graph_get(module, module->main)->outputs.count};
    uir_interpreter_options options = {.threads = threads, .byte_limit = 1 << 26};
    r.status = uir_module_interpret(module, &f->allocator, diagnostics, &options, inputs,
                                    uir_graph_get(module, module->main)->inputs.count, r.outputs, r.count, NULL);
    return r;
}

static void release(result *r) {
    for (uint32_t i = 0; i < r->count; i++) uir_datum_release(r->outputs[i]);
}

typedef enum closeness { EXACT, EXACT_BUT_NAN, SHAPES } closeness;

static bool equal_results(const result *a, const result *b, closeness how) {
    if (a->status != b->status || a->count != b->count) return false;
    for (uint32_t i = 0; a->status == UIR_STATUS_OK && i < a->count; i++) {
        const uir_tensor *x = a->outputs[i]->tensor, *y = b->outputs[i]->tensor;
        if (how == SHAPES ? !equal_shapes(x, y) : !equal_tensors(x, y, how == EXACT_BUT_NAN)) return false;
    }
    return true;
}

static uir_module *parse(fixture *f, const uir_text *text, uint64_t seed) {
    uir_module *again;
    if (uir_module_parse(&f->allocator, &f->diagnostics, text->data, text->length, "random", NULL, &again) !=
        UIR_STATUS_OK)
        report(f, seed, "the text does not read back");
    return again;
}

static uir_module *clone(fixture *f, const uir_module *module, uint64_t seed) {
    uir_module *again;
    if (uir_module_clone(module, &f->allocator, &again) != UIR_STATUS_OK) report(f, seed, "no clone");
    return again;
}

static void check_text(fixture *f, const uir_module *module, const uir_text *wanted, uint64_t seed, const char *what) {
    uir_text text;
    uir_text_init(&text, &f->allocator);
    assert_int_equal(uir_module_print(module, SIZE_MAX, &text), UIR_STATUS_OK);
    if (text.length != wanted->length || memcmp(text.data, wanted->data, text.length)) {
        fprintf(stderr, "%s\n---- and ----\n%s\n", wanted->data, text.data);
        report(f, seed, what);
    }
    uir_text_deinit(&text);
}

/* The clean-up passes; those that are allowed to change how results are rounded only when `all`. */
static void clean_up(fixture *f, uir_module *module, uint64_t seed, bool all) {
    uir_pass_options options = {.check_text = true};
    for (size_t i = 0; i < uir_cleanup_pass_count; i++) {
        const char *name = uir_cleanup_passes[i].name;
        if (!all && (!strcmp(name, "widen-half") || !strcmp(name, "fold-scales"))) continue;
        if (uir_passes_run(module, &uir_cleanup_passes[i], 1, &options) != UIR_STATUS_OK) report(f, seed, name);
    }
}

static void check_seed(uint64_t seed) {
    fixture f;
    generator g;
    fixture_open(&f);
    generate_module(&g, &f, seed, 4 + (uint32_t)(seed % 17));
    if (f.builder.status != UIR_STATUS_OK) report(&f, seed, "the builder failed");
    if (uir_module_verify(f.module, &f.diagnostics) != UIR_STATUS_OK) report(&f, seed, "it does not verify");

    uir_text first, second;
    uir_text_init(&first, &f.allocator);
    uir_text_init(&second, &f.allocator);
    assert_int_equal(uir_module_print(f.module, SIZE_MAX, &first), UIR_STATUS_OK);
    uir_module *again = parse(&f, &first, seed), *cleaned = clone(&f, f.module, seed),
               *changed = parse(&f, &first, seed);
    uir_module *kept = clone(&f, changed, seed);
    assert_int_equal(uir_module_print(again, SIZE_MAX, &second), UIR_STATUS_OK);
    if (first.length != second.length || memcmp(first.data, second.data, first.length) != 0) {
        fprintf(stderr, "%s\n---- again ----\n%s\n", first.data, second.data);
        report(&f, seed, "the text reads back as another module");
    }
    if (uir_module_verify(again, &f.diagnostics) != UIR_STATUS_OK)
        report(&f, seed, "what was read back does not verify");
    clean_up(&f, cleaned, seed, false);
    clean_up(&f, changed, seed, true);
    check_text(&f, f.module, &first, seed, "the original is another once its clone is cleaned up");
    check_text(&f, kept, &first, seed, "the clone is another once its original is cleaned up");
    if (uir_module_verify(kept, &f.diagnostics) != UIR_STATUS_OK) report(&f, seed, "the clone does not verify");

    for (uint32_t binding = 0; binding < BINDINGS; binding++) {
        int64_t sizes[SIZE_COUNT];
        uir_datum *inputs[MAX_VALUES];
        choose_sizes(seed, binding, sizes);
        random_inputs(&f, &g, seed + binding, sizes, inputs);
        uir_diagnostics quiet;
        uir_diagnostics_init(&quiet, &f.allocator);
        result one = run(&f, f.module, &quiet, inputs, 1);
        if (one.status == UIR_STATUS_INTERNAL) {
            print_messages(&quiet);
            report(&f, seed, "an internal error");
        }
        result two = run(&f, again, NULL, inputs, 2), three = run(&f, cleaned, &quiet, inputs, 1);
        result four = run(&f, changed, &quiet, inputs, 2);
        if (!equal_results(&one, &two, EXACT)) report(&f, seed, "read back it gives something else");
        /* A fault in something that no output needs is not met once that is dropped. */
        if (one.status == UIR_STATUS_OK && !equal_results(&one, &three, EXACT_BUT_NAN)) {
            print_messages(&quiet);
            report(&f, seed, "cleaned up it gives something else");
        }
        bool settled = !g.has_half && !g.has_product;
        if (one.status == UIR_STATUS_OK && settled && !equal_results(&one, &four, EXACT_BUT_NAN))
            report(&f, seed, "with all passes it gives something else");
        *(one.status == UIR_STATUS_OK ? &ran : &refused) += 1;
        release(&one);
        release(&two);
        release(&three);
        release(&four);
        uir_diagnostics_deinit(&quiet);
        for (uint32_t i = 0; i < uir_graph_get(f.module, f.module->main)->inputs.count; i++)
            uir_datum_release(inputs[i]);
    }
    uir_module_destroy(again);
    uir_module_destroy(cleaned);
    uir_module_destroy(changed);
    check_text(&f, kept, &first, seed, "the clone is another once its original is gone");
    uir_module_destroy(kept);
    uir_text_deinit(&first);
    uir_text_deinit(&second);
    fixture_close(&f);
}

static void test_random(void **state) {
    (void)state;
    uint64_t seed = fuzz_seed();
    time_t start = time(NULL);
    for (uint64_t i = 0; i < iterations; i++) check_seed(seed + i);
    print_message("%llu modules from seed %llu in %d s: %llu runs gave results, %llu ended with a run-time fault\n",
                  (unsigned long long)iterations, (unsigned long long)seed, (int)(time(NULL) - start),
                  (unsigned long long)ran, (unsigned long long)refused);
    assert_true(refused < ran / 4);
}

int main(int argc, char **argv) {
    iterations = argc > 1 ? strtoull(argv[1], NULL, 10) : fuzz_iterations(iterations);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
