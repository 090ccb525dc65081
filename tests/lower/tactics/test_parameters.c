/* Records of parameters: their text; that what was chosen makes the same kernel when it is given; that what is given is
 * kept to and computes what the graph says, or is refused. */
#include "tests/base/support.h"

#include "backends/cpu/target/cpu.h"
#include "base/arena.h"
#include "fusion/fusion.h"
#include "tests/lower/tactics/choices.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *sizes, *body;
} own_cases[] = {
#define CASE(name, sizes, body) {name, sizes, body},
#include "tests/lower/cases.def"
};
enum { OWN_CASES = sizeof own_cases / sizeof *own_cases, STEP = 19 };
static golden_file choices; /* which are many: every so many of them */

static size_t case_count(void) {
    return OWN_CASES + (size_t)choices.count;
}

static size_t next_case(size_t k) {
    do k += k + 1 < OWN_CASES ? 1 : STEP;
    while (k < case_count() && k >= OWN_CASES && choice_is_function(choices.cases[k - OWN_CASES].input));
    return k;
}

static const char *case_name(size_t k) {
    return k < OWN_CASES ? own_cases[k].name : choices.cases[k - OWN_CASES].title;
}

static void write_case(size_t k, char *out, size_t capacity) {
    if (k < OWN_CASES)
        snprintf(out, capacity, "module opset 20\n%s\ngraph \"g\" %s\n", own_cases[k].sizes, own_cases[k].body);
    else
        choice_write_module(choices.cases[k - OWN_CASES].input, out, capacity);
}

/* ---- text ---- */
static uir_status parse(const char *text, uir_parameters *out, char *message, size_t capacity) {
    uir_allocator allocator = uir_allocator_system();
    uir_arena arena;
    uir_diagnostics d;
    uir_tokenizer tokens;
    uir_arena_init(&arena, &allocator);
    uir_diagnostics_init(&d, &allocator);
    uir_tokenizer_init(&tokens, text, strlen(text), "record", &arena, &d);
    uir_status status = uir_parameters_parse(&tokens, out);
    snprintf(message, capacity, "%s", d.first ? d.first->message : "");
    uir_diagnostics_deinit(&d);
    uir_arena_deinit(&arena);
    return status;
}

static void texts_are_read_back(void **state) {
    static const char *const texts[] = {
        "{\n}\n",
        "{\n  depth 64\n}\n",
        "{\n  tile 1\n}\n",
        "{\n  every\n  depth 7\n}\n",
        "{\n  depth 48\n  stationary left 2\n  tile 64 x 32\n}\n",
        "{\n  stationary sums\n  tile 7 x 32\n}\n",
        "{\n  depth 65536\n  tile 96 x 512 cost 9223372036854775807\n  tile 7 x 32\n  tile 12 cost 5\n}\n"};
    uir_allocator allocator = uir_allocator_system();
    char message[200];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uir_parameters p;
        uir_text text;
        uir_text_init(&text, &allocator);
        assert_int_equal(parse(texts[i], &p, message, sizeof message), UIR_STATUS_OK);
        uir_parameters_print(&p, &text);
        assert_string_equal(text.data, texts[i]);
        uir_text_deinit(&text);
    }
}

static void what_is_no_record_is_refused(void **state) {
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "expected '{'"},
               {"{", "expected 'depth' or 'stationary' or 'tile' or '}'"},
               {"{ width 3 }", "expected 'depth' or 'stationary' or 'tile' or '}'"},
               {"{ every tile 6 }", "expected 'depth' or 'stationary' or '}'"},
               {"{ depth 8 every }", "expected 'stationary' or 'tile' or '}'"},
               {"{ depth 0 }", "the depth must be 1 to 65536"},
               {"{ depth 65537 }", "the depth must be 1 to 65536"},
               {"{ depth 8 depth 8 }", "expected 'stationary' or 'tile' or '}'"},
               {"{ stationary rows }", "expected sums, left or right"},
               {"{ stationary left }", "expected an integer"},
               {"{ stationary left 9 }", "the number of spaces of a stationary operand must be 1 to 8"},
               {"{ stationary sums stationary sums }", "expected 'depth' or 'tile' or '}'"},
               {"{ tile -4 x 32 }", "the number of rows of a tile must be 1 to 65536"},
               {"{ tile 4 x 0 }", "the number of columns of a tile must be 1 to 65536"},
               {"{ tile 4 cost 0 }", "the cost of a tile must be 1 to 9223372036854775807"},
               {"{ tile x 32 }", "expected an integer"}};
    char message[200], many[1024] = "{";
    uir_parameters p;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i].text, &p, message, sizeof message), UIR_STATUS_BAD_FILE);
        if (!strstr(message, bad[i].why)) fail_msg("%s: %s", bad[i].text, message);
    }
    for (uint32_t i = 0; i <= UIR_PARAMETERS_MAX_TILES; i++) strcat(many, " tile 6");
    strcat(many, "}");
    assert_int_equal(parse(many, &p, message, sizeof message), UIR_STATUS_BAD_FILE);
    assert_string_equal(message, "a record has at most 64 tiles");
}

/* ---- kernels ---- */
typedef struct world {
    uir_allocator allocator;
    uir_cpu_device cpu;
    uir_module *module;
    uir_diagnostics d;
    uint32_t node, node_count; /* of the main graph */
} world;

static void begin(world *w, size_t k) {
    static char source[8000];
    w->allocator = uir_allocator_system();
    uir_diagnostics_init(&w->d, &w->allocator);
    assert_int_equal(uir_cpu_describe("avx2", &w->d, &w->cpu), UIR_STATUS_OK);
    write_case(k, source, sizeof source);
    assert_int_equal(uir_module_parse(&w->allocator, &w->d, source, strlen(source), case_name(k), NULL, &w->module),
                     UIR_STATUS_OK);
    if (!strstr(source, "= group(")) assert_int_equal(uir_fuse(w->module, NULL, &w->d), UIR_STATUS_OK);
    w->node = 0;
    w->node_count = uir_graph_get(w->module, w->module->main)->nodes.count;
}

static void end(world *w) {
    uir_module_destroy(w->module);
    uir_diagnostics_deinit(&w->d);
}

/* The next group, lowered without a record; false: there is none. */
static bool next_group(world *w, lower_check *c, uir_node_id *out_node) {
    while (w->node < w->node_count) {
        *out_node = uir_graph_get(w->module, w->module->main)->nodes.data[w->node];
        if (uir_node_get(w->module, *out_node)->op != UIR_OP_GROUP) {
            w->node++;
            continue;
        }
        *c = (lower_check){.machine = &w->cpu.machine, .allocator = &w->allocator};
        lower_prepare(c, w->module, *out_node);
        w->node++;
        if (c->stage == LOWER_FINE) return true;
        lower_finish(c); /* no kernel computes it */
    }
    return false;
}

static void print(const lower_check *c, uir_text *out) {
    for (uint32_t i = 0; i < c->lowered.igraphs.count; i++) uir_igraph_print(c->lowered.igraphs.igraphs[i], out);
}

static void what_was_chosen_makes_the_same_kernel(void **state) {
    uint32_t records = 0;
    (void)state;
    for (size_t k = 0; k < case_count(); k = next_case(k)) {
        world w;
        lower_check c;
        uir_node_id node;
        for (begin(&w, k); next_group(&w, &c, &node); lower_finish(&c)) {
            lower_check again = {.machine = c.machine, .allocator = c.allocator, .given = c.lowered.choice.chosen};
            uir_text before, after;
            if (!again.given.tile_count) continue;
            uir_text_init(&before, &w.allocator);
            uir_text_init(&after, &w.allocator);
            lower_prepare(&again, w.module, node);
            if (again.stage != LOWER_FINE) fail_msg("%s: %s", case_name(k), again.message);
            assert_memory_equal(&again.given, &again.lowered.choice.chosen, sizeof again.given);
            print(&c, &before);
            print(&again, &after);
            assert_string_equal(after.data, before.data);
            uir_text_deinit(&before);
            uir_text_deinit(&after);
            lower_finish(&again);
            records++;
        }
        end(&w);
    }
    assert_true(records > 10);
}

static void run(const char *name, lower_check *c, world *w, uir_node_id node, uint32_t seed) {
    int64_t symbols[64];
    for (uint32_t i = 0; i < 64; i++) symbols[i] = 1 + (int64_t)((seed * 2654435761u >> (i % 24)) % 70);
    if (!lower_run(c, w->module, node, symbols, seed)) return; /* sizes that make no sense */
    if (c->stage != LOWER_FINE) fail_msg("%s: %s: %s", name, lower_stage_name(c->stage), c->message);
}

/* Tiles and depths of all kinds, also such that fit nothing around them; of every other case. */
static void what_is_given_computes_the_same(void **state) {
    static const int64_t rows[] = {1, 5, 6, 17, 96, 200}, columns[] = {32, 96, 256}, depths[] = {1, 7, 64, 300};
    uint32_t seed = 1, runs = 0;
    (void)state;
    for (size_t k = 0; k < case_count(); k = next_case(next_case(k))) {
        world w;
        lower_check c;
        uir_node_id node;
        for (begin(&w, k); next_group(&w, &c, &node); lower_finish(&c)) {
            uir_parameters chosen = c.lowered.choice.chosen;
            if (!chosen.tile_count) continue;
            lower_check other = {.machine = c.machine, .allocator = c.allocator, .given = {.tile_count = 2}};
            seed = seed * 1664525u + 1013904223u;
            for (uint32_t i = 0; i < 2; i++)
                other.given.tiles[i] =
                    (uir_parameter_tile){rows[(seed >> (8 + i)) % 6],
                                         chosen.tiles[0].columns ? columns[(seed >> (12 + i)) % 3] : 0, 1 + seed % 5};
            other.given.depth = chosen.depth ? depths[(seed >> 16) % 4] : 0;
            lower_prepare(&other, w.module, node);
            if (other.stage == LOWER_SCHEDULE && strstr(other.message, "bytes on the chip")) {
                lower_finish(&other);
                continue;
            }
            if (other.stage != LOWER_FINE) fail_msg("%s: %s", case_name(k), other.message);
            run(case_name(k), &other, &w, node, seed);
            lower_finish(&other);
            runs++;
        }
        end(&w);
    }
    assert_true(runs > 10);
}

/* A record for another kernel is refused with the reason, whatever the kernel. */
static void what_does_not_fit_is_refused(void **state) {
    static const struct {
        uir_parameters given;
        bool choice, cut, copied; /* kernels that it is tried on: with a choice, columns cut by sizes, a depth */
        const char *why;
    } bad[] = {
        {{.tile_count = 1, .tiles = {{6, 32, 0}}}, false, false, false, "its tactic has no choices"},
        {{.depth = 64}, false, false, false, "its tactic has no choices"},
        {{.tile_count = 1, .tiles = {{6, 32, 0}}}, true, false, false, "a tile has rows only"},
        {{.tile_count = 1, .tiles = {{6, 0, 0}}}, true, true, true, "a tile must be rows x columns"},
        {{.tile_count = 1, .tiles = {{6, 33, 0}}}, true, true, true, "the columns of a tile must be a multiple of 32"},
        {{.tile_count = 1, .tiles = {{60000, 4096, 0}}}, true, true, true, "bytes on the chip; "},
    };
    uint32_t seen[sizeof bad / sizeof *bad] = {0};
    (void)state;
    for (size_t k = 0; k < case_count(); k = next_case(k)) {
        world w;
        lower_check c;
        uir_node_id node;
        for (begin(&w, k); next_group(&w, &c, &node); lower_finish(&c)) {
            const uir_parameters *chosen = &c.lowered.choice.chosen;
            for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                bool fits = bad[i].choice == (chosen->tile_count > 0) &&
                            (!bad[i].choice || (bad[i].cut == (chosen->tile_count && chosen->tiles[0].columns) &&
                                                (!bad[i].copied || chosen->depth)));
                if (!fits) continue;
                lower_check other = {.machine = c.machine, .allocator = c.allocator, .given = bad[i].given};
                lower_prepare(&other, w.module, node);
                if (other.stage != LOWER_SCHEDULE || !strstr(other.message, bad[i].why))
                    fail_msg("%s: %s, not: %s", case_name(k), other.message, bad[i].why);
                lower_finish(&other);
                seen[i]++;
            }
        }
        end(&w);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!seen[i]) fail_msg("no kernel for '%s'", bad[i].why);
}

int main(void) {
    choices = golden_read(CHOICES, "choice");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_back),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(what_was_chosen_makes_the_same_kernel),
        cmocka_unit_test(what_is_given_computes_the_same),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
