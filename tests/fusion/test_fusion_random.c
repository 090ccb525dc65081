/* The campaign: modules made to mislead fusion, fused, verified, held against the contract with lowering, printed and
 * read back, and interpreted beside the module as it was: results must be the same to the bit.
 *
 *   test_fusion_random [COUNT] [SEED]            the campaign; a table of how often each rewrite fired
 *   test_fusion_random --without [COUNT] [SEED]  each clause of the legality function switched off in turn: each time
 * the campaign must find something wrong
 *
 * Every fourth module comes from tests/ir/graph's generator, which knows every op. */
#include "tests/fusion/contract.h"
#include "tests/fusion/random_fusion.h"
#include "tests/ir/graph/random_graph.h"

#include <stdlib.h>

#define ROUNDING (1 + 1e-9)
enum { MOST_VALUES = 64, BINDINGS = 3, MOST_OPERANDS = 6, CHIP = 96 };

static const uir_machine chip = {
    .name = "test", .spaces = {{.name = "dram"}, {.name = "sram", .capacity = CHIP}}, .space_count = 2};

typedef struct campaign {
    uint32_t clauses_off;
    uint64_t fired[UIR_FUSION_REWRITE_COUNT];
    uint64_t modules, ran;
    double bytes, bytes_without; /* without recomputing */
} campaign;

typedef struct made {
    fixture f;
    fusion_generator own;
    generator general;
    bool is_general;
} made;

static void make(made *m, uint64_t seed) {
    m->is_general = seed % 4 == 3;
    fixture_open(&m->f);
    if (m->is_general)
        generate_module(&m->general, &m->f, seed, 4 + (uint32_t)(seed % 13));
    else
        fusion_generate(&m->own, &m->f, seed);
}

static void make_inputs(made *m, uint64_t seed, uint32_t binding, uir_datum **inputs) {
    int64_t sizes[SIZE_COUNT];
    if (!m->is_general) {
        fusion_inputs(&m->own, seed, binding + (uint32_t)(seed % 3), inputs);
        return;
    }
    choose_sizes(seed, binding, sizes);
    random_inputs(&m->f, &m->general, seed + binding, sizes, inputs);
}

static bool equal_tensors(const uir_tensor *a, const uir_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape))
        return false;
    if (a->dtype != UIR_DTYPE_STRING) return !a->byte_size || !memcmp(a->data, b->data, a->byte_size);
    const uir_string_view *x = a->data, *y = b->data;
    for (uint64_t i = 0; i < a->element_count; i++)
        if (x[i].length != y[i].length || memcmp(x[i].text, y[i].text, x[i].length)) return false;
    return true;
}

static const char *compare_runs(campaign *c, made *plain, made *fused, uint64_t seed) {
    const char *wrong = NULL;
    uint32_t inputs_count = uir_graph_get(plain->f.module, plain->f.module->main)->inputs.count,
             count = uir_graph_get(plain->f.module, plain->f.module->main)->outputs.count;
    if (count > MOST_VALUES) return NULL;
    for (uint32_t binding = 0; binding < BINDINGS && !wrong; binding++) {
        uir_datum *inputs[MOST_VALUES], *first[MOST_VALUES] = {0}, *second[MOST_VALUES] = {0};
        uir_interpreter_options options = {.byte_limit = 1 << 27};
        make_inputs(plain, seed, binding, inputs);
        uir_status a = uir_module_interpret(plain->f.module, &plain->f.allocator, NULL, &options, inputs, inputs_count,
                                            first, count, NULL);
        uir_status b = uir_module_interpret(fused->f.module, &fused->f.allocator, &fused->f.diagnostics, &options,
                                            inputs, inputs_count, second, count, NULL);
        if (a == UIR_STATUS_OK && b != UIR_STATUS_OK) wrong = "fused it fails";
        if (a == UIR_STATUS_OK) c->ran++;
        for (uint32_t i = 0; i < count && a == UIR_STATUS_OK && b == UIR_STATUS_OK && !wrong; i++)
            if (first[i]->tensor && !equal_tensors(first[i]->tensor, second[i]->tensor))
                wrong = "fused it gives something else";
        for (uint32_t i = 0; i < count; i++) uir_datum_release(first[i]), uir_datum_release(second[i]);
        for (uint32_t i = 0; i < inputs_count; i++) uir_datum_release(inputs[i]);
    }
    return wrong;
}

static const char *check_text(const made *m) {
    uir_text first, second;
    uir_module *again = NULL;
    const char *wrong = NULL;
    uir_text_init(&first, &m->f.allocator);
    uir_text_init(&second, &m->f.allocator);
    if (uir_module_print(m->f.module, SIZE_MAX, &first) != UIR_STATUS_OK ||
        uir_module_parse(&m->f.allocator, m->f.module->diagnostics, first.data, first.length, "fused", NULL, &again) !=
            UIR_STATUS_OK)
        wrong = "the text does not read back";
    else if (uir_module_print(again, SIZE_MAX, &second) != UIR_STATUS_OK || first.length != second.length ||
             memcmp(first.data, second.data, first.length))
        wrong = "the text reads back as another module";
    uir_module_destroy(again);
    uir_text_deinit(&first);
    uir_text_deinit(&second);
    return wrong;
}

/* Bytes that are moved with all clauses, without some rewrites. */
static double bytes_of_other(const uir_fusion_options *like, uint32_t rewrites_off, uint64_t seed) {
    static made m;
    uir_fusion_options options = *like;
    options.rewrites_off = rewrites_off;
    options.clauses_off = 0;
    options.fired = NULL;
    make(&m, seed);
    double bytes = uir_fuse(m.f.module, &options, &m.f.diagnostics) == UIR_STATUS_OK ? contract_bytes(m.f.module) : 0;
    fixture_close(&m.f);
    return bytes;
}

static const char *check_fused(campaign *c, made *plain, made *fused, uint64_t seed) {
    uir_fusion_options options = {.clauses_off = c->clauses_off, .most_operands = MOST_OPERANDS, .fired = c->fired};
    contract held = {fused->f.module, MOST_OPERANDS, 0};
    if (seed % 3 == 0) /* room for attention and for products side by side */
        options.most_operands = held.most_operands = 2 * MOST_OPERANDS;
    if (seed % 2) {
        options.machine = &chip;
        held.row_bytes = CHIP / 2;
    }
    if (uir_module_verify(plain->f.module, &plain->f.diagnostics) != UIR_STATUS_OK) return "it does not verify";
    if (uir_fuse(fused->f.module, &options, &fused->f.diagnostics) != UIR_STATUS_OK) return "it cannot be fused";
    if (uir_module_verify(fused->f.module, &fused->f.diagnostics) != UIR_STATUS_OK) return "fused it does not verify";
    const char *wrong = contract_broken(&held);
    if (wrong) return wrong;
    if (!plain->is_general) {
        double bytes = contract_bytes(fused->f.module);
        if (bytes > contract_bytes(plain->f.module) * ROUNDING) return "more bytes are moved than before";
        c->bytes += bytes;
        c->bytes_without += bytes_of_other(&options, 1u << UIR_FUSION_RECOMPUTE, seed);
        bool unchecked = c->clauses_off >> UIR_FUSION_CLAUSE_TRAFFIC & 1;
        if (unchecked && bytes > bytes_of_other(&options, 0, seed) * ROUNDING)
            return "more bytes are moved than need be";
    }
    wrong = check_text(fused);
    return wrong ? wrong : compare_runs(c, plain, fused, seed);
}

static const char *check_seed(campaign *c, uint64_t seed, bool loud) {
    static made plain, fused;
    make(&plain, seed);
    make(&fused, seed);
    const char *wrong = check_fused(c, &plain, &fused, seed);
    c->modules++;
    if (wrong && loud) {
        uir_text text;
        uir_text_init(&text, &plain.f.allocator);
        if (uir_module_print(plain.f.module, 64, &text) == UIR_STATUS_OK)
            fprintf(stderr, "%s\n---- fused ----\n", text.data);
        uir_text_deinit(&text);
        uir_text_init(&text, &plain.f.allocator);
        if (uir_module_print(fused.f.module, 64, &text) == UIR_STATUS_OK) fprintf(stderr, "%s\n", text.data);
        uir_text_deinit(&text);
        print_messages(&plain.f.diagnostics);
        print_messages(&fused.f.diagnostics);
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, wrong);
    }
    fixture_close(&plain.f);
    fixture_close(&fused.f);
    return wrong;
}

static int run_campaign(uint64_t count, uint64_t seed) {
    campaign c = {0};
    uint64_t failed = 0;
    for (uint64_t i = 0; i < count && failed < 5; i++) failed += check_seed(&c, seed + i, true) != NULL;
    /* Each rewrite must have had its chance: 50 times in the whole campaign. */
    uint64_t least = count * 50 / 5000;
    for (int r = 0; r < UIR_FUSION_REWRITE_COUNT; r++) {
        bool enough = c.fired[r] >= least;
        printf("%-12s %8llu%s\n", uir_fusion_rewrite_name(r), (unsigned long long)c.fired[r], enough ? "" : " too few");
        failed += !enough;
    }
    printf("%llu interpretations gave results; recomputing saves %.1f%% of the bytes\n", (unsigned long long)c.ran,
           100 * (1 - c.bytes / c.bytes_without));
    failed += c.bytes > c.bytes_without * ROUNDING;
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(c.modules - (failed < c.modules ? failed : 0)),
           (unsigned long long)failed);
    return failed != 0;
}

static int run_without(uint64_t count, uint64_t seed) {
    uint64_t missed = 0;
    for (int clause = 0; clause < UIR_FUSION_CLAUSE_COUNT; clause++) {
        campaign c = {.clauses_off = 1u << clause};
        const char *wrong = NULL;
        uint64_t i = 0;
        for (; i < count && !wrong; i++) wrong = check_seed(&c, seed + i, false);
        printf("without %-9s %s", uir_fusion_clause_name(clause), wrong ? wrong : "nothing is found wrong");
        if (wrong) printf(" (seed %llu)", (unsigned long long)(seed + i - 1));
        printf("\n");
        fflush(stdout);
        missed += !wrong;
    }
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(UIR_FUSION_CLAUSE_COUNT - missed),
           (unsigned long long)missed);
    return missed != 0;
}

int main(int argc, char **argv) {
    bool without = argc > 1 && !strcmp(argv[1], "--without");
    char **numbers = argv + 1 + without;
    int given = argc - 1 - without;
    uint64_t count = given > 0 ? strtoull(numbers[0], NULL, 10) : 1000;
    uint64_t seed = given > 1 ? strtoull(numbers[1], NULL, 10) : 1;
    return without ? run_without(count, seed) : run_campaign(count, seed);
}
