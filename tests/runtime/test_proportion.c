/* What opening a package costs is in proportion to its bytes: plans whose records share lists, code and expressions
 * without end are refused, or looked at once. Work is counted, not timed. Also where the many places of a large plan
 * go. */
#include "tests/runtime/support.h"

#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const kernels = "igraph @twice on cpu {\n"
                                   "  dim N in 0..1000\n" TILES VECTORS PHASE_TWICE /**/
                                   "}\n"
                                   "igraph @other on cpu {\n"
                                   "  dim N in 0..1000\n" VECTORS /**/
                                   "  phase {\n"
                                   "    binary.mul.f32 %y[0:N], %x[0:N], %x[0:N]\n"
                                   "  }\n"
                                   "}\n";

static const char *const module_text = /**/
    "module opset 17\nsize N\nsize K\n"
    "graph \"main\" (%x: f32[N], %m: i64[]) {\n"
    "    bind_dims(%m) {dims = [K]}\n" /**/
    GROUP_TWICE("d", "x", "1")         /**/
    "    %e: f32[N] = group(%d) {body = graph \"h\" (%p: f32[N]) {\n"
    "        %q: f32[N] = mul(%p, %p)\n        return %q\n"
    "    }, sizes = [N], kernel = \"other\"}\n"
    "    %s: i64[1] = dim_values() {dims = [K], scalar = 0, dtype = i64}\n"
    "    return %e, %s\n"
    "}\n";

enum { MANY = 3000 };

/* ---- plans that claim more than they hold ---- */
static uint32_t number(uir_plan *p) {
    uint32_t first = add_operations(p, (uir_plan_operation){UIR_DIM_CONST, 1}, 1);
    return add_expressions(p, (uir_plan_expression){first, 1}, 1);
}
/* A sum of `terms` terms, each symbol `symbol`. */
static uir_plan_expression sum(uir_plan *p, uint32_t terms, int64_t symbol) {
    uint32_t first = add_operations(p, (uir_plan_operation){UIR_DIM_SYMBOL, symbol}, 1);
    for (uint32_t i = 1; i < terms; i++) {
        add_operations(p, (uir_plan_operation){UIR_DIM_SYMBOL, symbol}, 1);
        add_operations(p, (uir_plan_operation){UIR_DIM_ADD, 0}, 1);
    }
    return (uir_plan_expression){first, 2 * terms - 1};
}

static void share_operations(uir_plan *p) {
    add_expressions(p, sum(p, MANY, 0), MANY);
}
static void share_characters(uir_plan *p) {
    static char characters[MANY + 1];
    memset(characters, 'a', MANY);
    p->characters = characters;
    p->characters_count = MANY + 1;
    for (uint32_t i = 0; i < p->texts_count; i++) p->texts[i] = (uir_plan_text){MANY, 0};
    add_texts(p, (uir_plan_text){0, MANY}, MANY);
}
static void share_words(uir_plan *p) {
    uint32_t e = number(p), first = add_words(p, (uir_plan_word){e}, MANY);
    add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_SIZES, first, MANY}, MANY);
}
static void share_integers(uir_plan *p) {
    uint32_t first = add_integers(p, (uir_plan_integer){1}, MANY);
    add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_INTEGERS, first, MANY}, MANY);
}
static void share_attributes(uir_plan *p) {
    uint32_t first = add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_INTEGERS, 0, 0}, MANY);
    uir_plan_step *s = step_of(p, UIR_PLAN_STEP_DIMS);
    s->first_attribute = first;
    s->attribute_count = MANY;
    for (uint32_t i = 0; i + 1 < MANY; i++) p->blocks[p->blocks_count - 1].step_count += add_steps(p, *s, 1) > 0;
}
/* Candidates of one kernel share conditions. */
static void share_conditions(uir_plan *p) {
    uint32_t e = number(p), first = add_conditions(p, (uir_plan_condition){UIR_RELATION_EQ, e, e}, MANY);
    uir_plan_variant *v = &p->variants[p->kernels[0].first_variant];
    uir_plan_candidate c = p->candidates[v->first_candidate];
    c.first_condition = first;
    c.condition_count = MANY;
    v->first_candidate = add_candidates(p, c, MANY);
    v->candidate_count = MANY;
}
static uir_plan_variant first_variant(const uir_plan *p) {
    return p->variants[p->kernels[0].first_variant];
}
/* The first kernel has this variant again and again. */
static void repeat_variant(uir_plan *p, uir_plan_variant v) {
    p->kernels[0].first_variant = add_variants(p, v, MANY);
    p->kernels[0].variant_count = MANY;
}
/* Variants share candidates, which share conditions. */
static void share_candidates(uir_plan *p) {
    uir_plan_variant v = first_variant(p);
    v.first_candidate = add_candidates(p, p->candidates[v.first_candidate], MANY);
    v.candidate_count = MANY;
    repeat_variant(p, v);
}
static void share_kernel_symbols(uir_plan *p) {
    uir_plan_variant v = first_variant(p);
    uint32_t e = number(p),
             first = add_kernel_symbols(p, (uir_plan_kernel_symbol){UIR_PLAN_VALUE, 0, 1, 1, e}, MANY - 2);
    for (uint32_t i = 0; i < 2; i++) add_kernel_symbols(p, p->kernel_symbols[v.first_symbol + i], 1);
    v.first_symbol = first;
    v.symbol_count = MANY;
    repeat_variant(p, v);
}
static void share_phases(uir_plan *p) {
    uir_plan_variant v = first_variant(p);
    v.first_phase = add_phases(p, p->phases[v.first_phase], MANY);
    v.phase_count = MANY;
    repeat_variant(p, v);
}
/* Kernels share variants. */
static void share_variants(uir_plan *p) {
    uir_plan_kernel k = p->kernels[0];
    k.first_variant = add_variants(p, p->variants[k.first_variant], MANY);
    k.variant_count = MANY;
    add_kernels(p, k, MANY);
}
/* Launches of one kernel that has many phases, of which each launch keeps an entry. */
static void many_launches(uir_plan *p) {
    uir_plan_step *s = step_of(p, UIR_PLAN_STEP_LAUNCH);
    uir_plan_variant *v = &p->variants[p->kernels[s->target].first_variant];
    v->first_phase = add_phases(p, (uir_plan_phase){{0, 0}, {0, 0}, 0, 0}, 4000);
    v->phase_count = 4000;
    for (uint32_t i = 0; i < MANY; i++) p->blocks[p->blocks_count - 1].step_count += add_steps(p, *s, 1) > 0;
}
/* Tensors share a long sum as their extent. */
static void share_sums(uir_plan *p) {
    uint32_t e = add_expressions(p, sum(p, MANY, 0), 1);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t w = add_words(p, (uir_plan_word){e}, 1);
        add_tensors(p, (uir_plan_tensor){UIR_DTYPE_F32, UIR_PLAN_STORAGE_ARENA, 0, {w, 1}}, 1);
    }
}
/* A launch in each of many epochs reads the one tensor whose extent is a long sum. */
static void many_epochs(uir_plan *p) {
    uir_plan_step bind = *step_of(p, UIR_PLAN_STEP_BIND), launch = *step_of(p, UIR_PLAN_STEP_LAUNCH);
    uint32_t e = add_expressions(p, sum(p, 2 * MANY, 0), 1), w = add_words(p, (uir_plan_word){e}, 1),
             kept = p->steps_count;
    uint32_t t = add_tensors(p, (uir_plan_tensor){UIR_DTYPE_F32, UIR_PLAN_STORAGE_ARENA, 0, {w, 1}}, 1);
    launch.inputs = (uir_plan_list){add_words(p, (uir_plan_word){t}, 1), 1};
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t s = add_symbols(p, p->symbols[0], 1),
                 o = add_operations(p, (uir_plan_operation){UIR_DIM_SYMBOL, s}, 1);
        bind.symbols = (uir_plan_list){add_words(p, (uir_plan_word){s}, 1), 1};
        uint32_t own = add_expressions(p, (uir_plan_expression){o, 1}, 1);
        launch.values = (uir_plan_list){add_words(p, (uir_plan_word){own}, 1), 1};
        add_steps(p, bind, 1);
        add_steps(p, launch, 1);
    }
    p->blocks[0].step_count += p->steps_count - kept;
}
/* The code of one is a part of another's, or is another's whose operands are others. */
static void overlap_code(uir_plan *p) {
    p->variants[1].code_offset = p->variants[0].code_offset + 8;
    p->variants[1].code_size = p->variants[0].code_size - 8;
}
static void take_others_code(uir_plan *p) {
    p->variants[1].code_offset = p->variants[0].code_offset;
    p->variants[1].code_size = p->variants[0].code_size;
}
static void share_code(uir_plan *p) {
    repeat_variant(p, first_variant(p));
}

/* ---- a format that counts what it decodes ---- */
static uint32_t decoded;
static uir_status count_find(uir_loaded_module *module, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                             const uir_loaded_kernel **out_kernel) {
    decoded++;
    return uir_vm_format.find(module, entry, diagnostics, out_kernel);
}

static void edit(void *user, uir_plan *p) {
    (*(void (**)(uir_plan *))user)(p);
}

static uir_status open_edited(fixture *f, void (*change)(uir_plan *p)) {
    uir_kernel_format counting = uir_vm_format;
    const uir_kernel_format *formats[] = {&counting};
    uir_package_options options = {.formats = formats, .format_count = 1};
    uir_package *package;
    counting.find = count_find;
    decoded = 0;
    uir_status status = fixture_open_forged(f, &options, edit, &change, &package);
    uir_package_close(package);
    return status;
}

#define OVERLAP "the lists overlap and hold more than the plan's"

static void test_claims(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*change)(uir_plan *p);
        const char *message;
    } cases[] = {
        {"operations", share_operations, OVERLAP},
        {"characters", share_characters, OVERLAP},
        {"words", share_words, OVERLAP},
        {"integers", share_integers, OVERLAP},
        {"sums", share_sums, OVERLAP},
        {"attributes", share_attributes, OVERLAP},
        {"conditions", share_conditions, OVERLAP},
        {"candidates", share_candidates, OVERLAP},
        {"symbols", share_kernel_symbols, OVERLAP},
        {"phases", share_phases, OVERLAP},
        {"variants", share_variants, OVERLAP},
        {"launches", many_launches, "its launches have more pointers and sizes than its bytes can hold"},
        {"epochs", many_epochs, "its epochs depend on more sizes than its bytes can hold"},
        {"code in code", overlap_code, "the code of two kernels overlaps"},
        {"code of another", take_others_code, "two kernels use the same code in different ways"},
    };
    fixture f;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (open_edited(&f, cases[i].change) != UIR_STATUS_BAD_FILE) fail_msg("%s: opened", cases[i].name);
        check_message(&f, cases[i].message);
        uir_diagnostics_clear(&f.diagnostics);
    }
    fixture_deinit(&f);
}

static void test_decoded_once(void **state) {
    (void)state;
    fixture f;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, open_edited(&f, share_code));
    assert_int_equal(decoded, 2);
    fixture_deinit(&f);
}

/* ---- places ---- */
static uint64_t seed = 88172645463325252u;
static uint32_t below(uint32_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % n);
}

static int by_offset(const void *a, const void *b) {
    const uir_rt_place *x = *(const uir_rt_place *const *)a, *y = *(const uir_rt_place *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* At every moment, what is alive lies apart; in all not twice what must be there at one moment, but for the end of a
 * few large ones. */
static void check_places(uint32_t count, uint32_t moments, uint32_t length) {
    uir_rt_place *places = calloc(count, sizeof *places);
    const uir_rt_place **alive = calloc(count, sizeof *alive);
    uint32_t *work = calloc((size_t)3 * count, sizeof *work);
    uint64_t most = 0;
    assert_true(places && alive && work);
    for (uint32_t i = 0; i < count; i++) {
        places[i].first = below(moments);
        places[i].last = places[i].first + below(length);
        places[i].begin = places[i].first;
        places[i].end = places[i].last;
        places[i].queues = 1;
        places[i].size = 64 * (uint64_t)below(1u << below(12));
    }
    uint64_t total = uir_rt_assign_offsets(places, count, UIR_PLAN_ON_HOST, work);
    for (uint32_t t = 0; t < moments; t++) {
        uint32_t living = 0;
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < count; i++)
            if (places[i].size && places[i].first <= t && t <= places[i].last) alive[living++] = &places[i];
        qsort(alive, living, sizeof(void *), by_offset);
        for (uint32_t i = 0; i < living; i++) {
            bytes += alive[i]->size;
            assert_true(alive[i]->offset % 64 == 0 && alive[i]->offset + alive[i]->size <= total);
            if (i) assert_true(alive[i - 1]->offset + alive[i - 1]->size <= alive[i]->offset);
        }
        if (most < bytes) most = bytes;
    }
    assert_in_range(total, most, 3 * most);
    free(work);
    free(alive);
    free(places);
}

/* Whether one of two places may be in memory of the other: in the order of the plan if one queue accesses both, else
 * only if the host knows that all is done. */
static bool are_apart(const uir_rt_place *a, const uir_rt_place *b) {
    if (a->queues == b->queues && (a->queues == 2 || a->queues == 4 || a->queues == 8))
        return a->last < b->first || b->last < a->first;
    return a->end < b->begin || b->end < a->begin;
}

/* Places that several queues access, in two domains. */
static void check_queues(uint32_t count, uint32_t moments, uint32_t length) {
    uir_rt_place *places = calloc(count, sizeof *places);
    uint32_t *work = calloc((size_t)3 * count, sizeof *work);
    assert_true(places && work);
    for (uint32_t i = 0; i < count; i++) {
        uir_rt_place *p = &places[i];
        p->domain = below(2);
        p->queues = p->domain ? 2u + 2 * below(7) : 1;
        p->first = 1 + below(moments);
        p->last = p->first + below(length);
        p->begin = p->first - below(4) % p->first;
        p->end = below(5) ? p->last + below(8) : UINT32_MAX;
        p->size = 64 * (1 + (uint64_t)below(40));
        p->offset = 12345;
    }
    uint64_t total = uir_rt_assign_offsets(places, count, UIR_PLAN_ON_DEVICE, work);
    for (uint32_t i = 0; i < count; i++) {
        const uir_rt_place *a = &places[i];
        if (!a->domain) assert_int_equal(a->offset, 12345);
        if (a->domain) assert_true(a->offset + a->size <= total);
        for (uint32_t k = 0; k < i && a->domain; k++) {
            const uir_rt_place *b = &places[k];
            if (!b->domain || are_apart(a, b)) continue;
            assert_true(a->offset + a->size <= b->offset || b->offset + b->size <= a->offset);
        }
    }
    free(work);
    free(places);
}

static void test_places_of_queues(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 20; i++) check_queues(100 + 20 * i, 60, 10);
    check_queues(12000, 3000, 20);
}

static void test_places(void **state) {
    (void)state;
    check_places(1, 1, 1);
    check_places(500, 100, 20);
    check_places(30000, 300, 20);
    check_places(30000, 300, 1);
    check_places(6000, 1, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims), cmocka_unit_test(test_decoded_once),
                                       cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_places_of_queues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
