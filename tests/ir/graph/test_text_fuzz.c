/* Damaged text: random edits of random modules' text. The parser may refuse it, the verifier may refuse what is read;
 * what both accept runs, to an end or to a run-time fault, without an internal error. Meant for the sanitizers' build.
 */
#include "tests/ir/graph/random_graph.h"

static uint64_t iterations = 3000;
static uint64_t parsed, verified, ran;

/* Words that make edits meet more than the tokenizer. */
static const char *const words[] = {"0",       "1",
                                    "-1",      "2",
                                    "7",       "9223372036854775807",
                                    "none",    "[]",
                                    "{",       "}",
                                    "(",       ")",
                                    ",",       "N",
                                    "M",       "K",
                                    "f32",     "i64",
                                    "bool",    "%v1",
                                    "%v2",     "%v3",
                                    "%x1",     "add",
                                    "axis",    "keep",
                                    "[*]",     "seq(",
                                    "1000000", "string",
                                    "u4",      "min",
                                    "max",     "floordiv(N, 2)",
                                    "nan",     "inf",
                                    "\"a\"",   "splat",
                                    "return",  "=",
                                    "c64",     "reshape",
                                    "slice",   "gather",
                                    "if",      "loop",
                                    "graph",   "i32",
                                    "matmul",  "conv",
                                    "dims",    "1e30",
                                    "d3"};

/* A word of the kind that stands there: a number, a value, an element type, an op. */
static void similar_word(random_state *r, const char *old, size_t length, char *word, size_t capacity) {
    static const char *const numbers[] = {"0", "1", "2", "3", "4", "7", "N", "M", "K", "N + 1", "100000"};
    uir_dtype dtype;
    *word = 0;
    if (length && *old == '%') {
        snprintf(word, capacity, "%%v%d", (int)random_between(r, 0, 30));
    } else if (length && (*old == '-' || (*old >= '0' && *old <= '9'))) {
        snprintf(word, capacity, "%s", numbers[random_between(r, 0, 10)]);
    } else if (uir_dtype_from_name(old, length < 4 ? length : 3, &dtype) || uir_dtype_from_name(old, length, &dtype)) {
        snprintf(word, capacity, "%s", uir_dtype_name((uir_dtype)random_between(r, 1, UIR_DTYPE_COUNT - 1)));
    } else if (uir_op_find_primitive(old, length) != UIR_OP_NONE) {
        uir_op op = (uir_op)random_between(r, 1, UIR_OP_COUNT - 1);
        if (uir_op_get_row(op)->section == UIR_SECTION_PRIMITIVE) snprintf(word, capacity, "%s", uir_op_name(op));
    }
}

/* One edit; the text stays within its capacity. */
static size_t edit(random_state *r, char *text, size_t length, size_t capacity) {
    size_t at = (size_t)random_between(r, 0, (int64_t)length - 1);
    int64_t kind = random_between(r, 0, 29);
    if (kind < 2) { /* a byte */
        text[at] = (char)random_between(r, 1, 126);
    } else if (kind < 3) { /* a stretch goes */
        size_t count = (size_t)random_between(r, 1, 20);
        if (at + count > length) count = length - at;
        memmove(text + at, text + at + count, length - at - count);
        length -= count;
    } else if (kind < 4) { /* a line is there twice */
        size_t begin = at, end = at;
        while (begin > 0 && text[begin - 1] != '\n') begin--;
        while (end < length && text[end] != '\n') end++;
        if (end < length) end++;
        if (length + end - begin < capacity) {
            memmove(text + end + (end - begin), text + end, length - end);
            memcpy(text + end, text + begin, end - begin);
            length += end - begin;
        }
    } else { /* a word for a word */
        size_t begin = at, end = at;
        while (begin > 0 && strchr(" ,()[]{}=:\n", text[begin - 1]) == NULL) begin--;
        while (end < length && strchr(" ,()[]{}=:\n", text[end]) == NULL) end++;
        char word[40];
        similar_word(r, text + begin, end - begin, word, sizeof word);
        if (kind < 6)
            snprintf(word, sizeof word, "%s", words[random_between(r, 0, (int64_t)(sizeof words / sizeof *words) - 1)]);
        size_t size = strlen(word);
        if (size && length - (end - begin) + size < capacity) {
            memmove(text + begin + size, text + end, length - end);
            memcpy(text + begin, word, size);
            length = length - (end - begin) + size;
        }
    }
    return length;
}

/* A value for an input of any type; NULL when it would be large. */
static uir_datum *input_for(const fixture *f, const uir_module *module, const uir_type *type, random_state *r) {
    int64_t shape[UIR_MAX_RANK] = {0}, values[64];
    uint64_t count;
    for (int i = 0; i < 64; i++) values[i] = 2;
    if (type->kind != UIR_VALUE_TENSOR || !type->dtype || type->dtype == UIR_DTYPE_C128) return NULL;
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        if (uir_dim_evaluate(module->dims, type->dims[d], values, NULL, 64, &shape[d]) != UIR_DIM_EVALUATED)
            return NULL;
    uint32_t rank = type->rank_known ? type->rank : 0;
    if (!uir_shape_element_count(shape, rank, &count) || count > 4096) return NULL;
    return make_datum(&f->allocator, random_tensor(r, &f->allocator, type->dtype, rank, shape));
}

static void run_module_of(const fixture *f, uir_module *module, uir_diagnostics *diagnostics, random_state *r,
                          uint64_t seed) {
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    uir_datum *inputs[32] = {0}, *outputs[32];
    if (graph->inputs.count > 32 || graph->outputs.count > 32) return;
    bool whole = true;
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        inputs[i] = input_for(f, module, uir_value_type(module, graph->inputs.data[i]), r);
        whole = whole && inputs[i];
    }
    if (whole) {
        uir_interpreter_options options = {.byte_limit = 1 << 22};
        uir_status status = uir_module_interpret(module, &f->allocator, diagnostics, &options, inputs,
                                                 graph->inputs.count, outputs, graph->outputs.count, NULL);
        if (status == UIR_STATUS_INTERNAL) {
            print_messages(diagnostics);
            fail_msg("seed %llu: an internal error", (unsigned long long)seed);
        }
        for (uint32_t i = 0; i < graph->outputs.count; i++) uir_datum_release(outputs[i]);
        ran += status == UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < graph->inputs.count; i++) uir_datum_release(inputs[i]);
}

static void check_text(const fixture *f, const char *text, size_t length, random_state *r, uint64_t seed) {
    uir_diagnostics diagnostics;
    uir_module *module;
    uir_diagnostics_init(&diagnostics, &f->allocator);
    uir_status status = uir_module_parse(&f->allocator, &diagnostics, text, length, "damaged", NULL, &module);
    if (status == UIR_STATUS_OK) {
        parsed++;
        status = uir_module_verify(module, &diagnostics);
        if (status == UIR_STATUS_OK) {
            verified++;
            run_module_of(f, module, &diagnostics, r, seed);
        } else {
            assert_true(diagnostics.error_count > 0);
        }
        uir_module_destroy(module);
    } else {
        assert_true(diagnostics.error_count > 0);
    }
    uir_diagnostics_deinit(&diagnostics);
}

static void test_damaged(void **state) {
    (void)state;
    enum { EDITIONS = 10 };
    uint64_t seed = fuzz_seed();
    for (uint64_t i = 0; i < iterations; i += EDITIONS, seed++) {
        fixture f;
        generator g;
        fixture_open(&f);
        generate_module(&g, &f, seed, 3 + (uint32_t)(seed % 8));
        uir_text text;
        uir_text_init(&text, &f.allocator);
        assert_int_equal(uir_module_print(f.module, SIZE_MAX, &text), UIR_STATUS_OK);
        size_t capacity = text.length + 4096;
        char *copy = malloc(capacity);
        assert_non_null(copy);
        random_state r = {seed * 7919 + 3};
        for (int e = 0; e < EDITIONS; e++) {
            size_t length = text.length;
            memcpy(copy, text.data, length);
            for (int64_t n = random_between(&r, 1, 3); n > 0 && length > 1; n--)
                length = edit(&r, copy, length, capacity);
            /* In a block of its own size, so that reading past the end is seen. */
            char *exact = malloc(length);
            assert_non_null(exact);
            memcpy(exact, copy, length);
            check_text(&f, exact, length, &r, seed);
            free(exact);
        }
        free(copy);
        uir_text_deinit(&text);
        fixture_close(&f);
    }
    print_message("%llu texts: %llu parsed, %llu verified, %llu ran\n", (unsigned long long)iterations,
                  (unsigned long long)parsed, (unsigned long long)verified, (unsigned long long)ran);
    assert_true(verified > iterations / 20);
}

int main(int argc, char **argv) {
    iterations = argc > 1 ? strtoull(argv[1], NULL, 10) : fuzz_iterations(iterations);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
