/* Kernels whose pipes run apart, or whose units have several threads, in other orders than the program's.
 *
 *   uir-interleave [--first SEED] [--graphs COUNT] [--kernels MOST] [--interleavings COUNT] [-v] [--device NAME]
 *                  FILE... [--refused FILE...] [--wrong FILE...]
 *
 * FILE: a description (*.device), for whose chips kernels are made of random graphs, a chip a graph in turn; or kernels
 * (*.igraph) for the descriptions of the build and of the files before, whose waits the pass writes where they have
 * none (with the words that stand after `has:` in their first line). Each kernel is run in the order of its program and
 * in interleavings that its syncs alone restrict, drawn at random and with each pipe delayed: the bits are to be the
 * same, and no element touched out of order. Then it is run without each of its syncs in turn. Where the verifier
 * refuses it, an interleaving is looked for that shows it in the outputs: a wrong element, or an undefined one; where
 * the verifier does not, nothing may change.
 *
 * --device: a description of the build. --refused: kernels that the verifier refuses, with the words that stand after
 * `fail:` in their first line. --wrong: such that an interleaving shows to be wrong, too.
 *
 * The last line but one has the counts, by name; a sync whose want no interleaving shows is a line `unseen`. */
#define _DEFAULT_SOURCE /* sigaction, setitimer */
#include "backends/descriptions/descriptions.h"
#include "fusion/fusion.h"
#include "ir/machine/device_text.h"
#include "ir/kernel/igraph_synchronise.h"
#include "lower/lower.h"
#include "tests/fusion/random_fusion.h"
#include "tests/ir/graph/random_graph.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum {
    MOST_TRIALS = 9 /* one of each kind, of wide ones some */,
    WIDE_TRIALS = 6,
    MOST_SYNCS = 48,
    MOST_DIMS = 64,
    MOST_ARGUMENTS = 256,
    INTERLEAVINGS = 50
};
/* Of a run in program order; where threads share elements, few of them have work at small sizes. */
static const double most_seconds = 0.01, most_seconds_of_threads = 0.05;
static volatile bool cancelled;

/* A kernel's arguments at some sizes, and what program order makes of them. */
typedef struct trial {
    int64_t dims[MOST_DIMS], tiles[MOST_DIMS];
    uint32_t count; /* of arguments */
    uint32_t pointers[MOST_ARGUMENTS];
    void *given[MOST_ARGUMENTS], *room[MOST_ARGUMENTS], *wanted[MOST_ARGUMENTS];
    void *passed[MOST_ARGUMENTS];
    size_t bytes[MOST_ARGUMENTS];
} trial;

typedef struct tally {
    uint64_t barriers, barriers_refused, barriers_seen;
    uint64_t kernels, runs, syncs, refused, wrong_elements, out_of_order, unseen, needless, failed, without;
} tally;

typedef struct campaign {
    uir_allocator allocator;
    uir_arena arena;
    uir_diagnostics diagnostics;
    uir_machine_vector devices;
    tally tally;
    uint64_t first, graphs, most_kernels;
    uint64_t interleavings;
    uint64_t random;
    bool verbose;
    bool refused, wrong; /* the kernels of files are to be */
} campaign;

static uint64_t draw(campaign *c) {
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return c->random * 0x2545f4914f6cdd1du >> 20;
}

static void show(const uir_igraph *g) {
    uir_text text;
    uir_text_init(&text, &g->allocator);
    uir_igraph_print(g, &text);
    printf("%s\n", text.data ? text.data : "");
    uir_text_deinit(&text);
}

static void tell_failure(campaign *c, const uir_igraph *g, const char *what) {
    const uir_diagnostic *said = c->diagnostics.first;
    printf("FAILED %s on %s: %s: %s\n", g->name, g->machine->name, what, said ? said->message : "other bits");
    if (c->verbose) show(g);
    c->tally.failed++;
}

/* ---- trials ---- */
/* What sizes are like: small ones with the least tiles there are; small ones, one that is long, both with the tiles
 * that the kernel chooses. Loops over slices that are as long as there is room turn at long sizes alone. Wide ones are
 * for units of several threads, which have more than one row of lanes, or tile, each. */
typedef enum trial_kind { LEAST_TILES, CHOSEN_TILES, LONG, WIDE, TRIAL_KINDS } trial_kind;

static int64_t round_to(uir_symbol_facts facts, int64_t value) {
    int64_t step = facts.multiple_of;
    value = (value + step - 1) / step * step;
    if (value < facts.min) value = (facts.min + step - 1) / step * step;
    return value > facts.max ? facts.max / step * step : value;
}

static bool choose_sizes_of(campaign *c, const uir_igraph *g, trial_kind kind, uint32_t attempt, int64_t *dims,
                            int64_t *tiles) {
    static const int64_t sizes[] = {5, 17, 3, 9, 33, 2, 64, 12, 40, 1};
    static const int64_t wide_sizes[] = {33, 17, 70, 24, 130, 20, 64, 300, 12, 48};
    static const int64_t long_sizes[] = {12500, 2500, 700, 150};
    uint32_t d = 0, t = 0;
    int64_t least[MOST_DIMS], *longest = NULL, length = 0;
    for (uint32_t s = 0; s < g->symbols.count; s++) {
        uir_symbol_facts facts = uir_dims_symbol_facts(g->dims, g->symbols.data[s].symbol);
        if (d == MOST_DIMS || t == MOST_DIMS) return false;
        if (g->symbols.data[s].kind == UIR_ISYMBOL_TILE) least[t++] = round_to(facts, 1);
        if (g->symbols.data[s].kind != UIR_ISYMBOL_DIM) continue;
        dims[d++] = round_to(facts, kind == LONG ? 1 + (int64_t)(draw(c) % 3)
                                                 : (kind == WIDE ? wide_sizes : sizes)[draw(c) % 10]);
        if (kind != LONG || draw(c) % d != 0) continue; /* each is as likely as another */
        longest = &dims[d - 1];
        length = round_to(facts, long_sizes[attempt / 2 % 4]);
    }
    if (longest) *longest = length;
    uir_diagnostics_clear(&c->diagnostics);
    if (uir_igraph_choose_tiles(g, dims, 1, tiles, &c->diagnostics) != UIR_STATUS_OK) return false;
    for (uint32_t i = 0; kind == LEAST_TILES && i < t; i++) tiles[i] = least[i];
    return true;
}

static void fill_input(campaign *c, uir_dtype dtype, uint64_t span, void *data) {
    for (uint64_t i = 0; i < span; i++) {
        uint64_t bits = draw(c);
        if (uir_dtype_is_float(dtype))
            uir_dtype_store_double(dtype, data, i, (double)(bits % 4001) / 1000 - 2, UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_integer(dtype, data, i, dtype == UIR_DTYPE_BOOL ? (int64_t)(bits & 1) : (int64_t)(bits % 7),
                                    false, UIR_ROUND_NEAREST_EVEN);
    }
}

static bool make_arguments(campaign *c, const uir_igraph *g, trial *t) {
    uint32_t symbols = uir_dims_symbol_count(g->dims);
    int64_t *values = calloc(symbols + 1, sizeof *values), span;
    bool *bound = calloc(symbols + 1, sizeof *bound);
    bool good = uir_igraph_bind(g, t->dims, t->tiles, values, bound, &c->diagnostics) == UIR_STATUS_OK;
    for (uint32_t i = 0; good && i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        uint32_t k = t->count;
        good = k < MOST_ARGUMENTS &&
               uir_dim_evaluate(g->dims, p->element_span, values, NULL, symbols, &span) == UIR_DIM_EVALUATED &&
               span < 200000 && uir_dtype_storage_size(p->dtype, span < 0 ? 0 : (uint64_t)span, &t->bytes[k]);
        if (!good) break;
        t->count++;
        t->pointers[k] = i;
        t->given[k] = calloc(1, t->bytes[k] + 64);
        t->room[k] = calloc(1, t->bytes[k] + 64);
        t->wanted[k] = calloc(1, t->bytes[k] + 64);
        memset(t->given[k], 0x5a, t->bytes[k]);
        if (p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_CONST)
            fill_input(c, p->dtype, span < 0 ? 0 : (uint64_t)span, t->given[k]);
        t->passed[k] = t->room[k];
        for (uint32_t before = 0; before < k; before++)
            if (p->tied == t->pointers[before]) t->passed[k] = t->room[before];
    }
    free(values);
    free(bound);
    return good;
}

static void free_trial(trial *t) {
    for (uint32_t k = 0; k < t->count; k++) {
        free(t->given[k]);
        free(t->room[k]);
        free(t->wanted[k]);
    }
    memset(t, 0, sizeof *t);
}

static void give_up(int signal) {
    (void)signal;
    cancelled = true;
}

static void give_time(double seconds) {
    struct itimerval time = {.it_value = {(time_t)seconds, (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))}};
    setitimer(ITIMER_VIRTUAL, &time, NULL);
    cancelled = false; /* whatever the time before has come to */
}

/* NULL: program order, whose results the others are held to. */
static uir_status execute(campaign *c, const uir_igraph *g, trial *t, const uir_interleaving *interleaving,
                          bool *out_same) {
    uir_kernel_arguments arguments = {t->dims, t->tiles, t->passed};
    uir_diagnostics_clear(&c->diagnostics);
    for (uint32_t k = 0; k < t->count; k++) memcpy(t->room[k], t->given[k], t->bytes[k]);
    c->tally.runs++;
    UIR_TRY(uir_igraph_interpret_interleaved(g, &arguments, interleaving, &cancelled, &c->diagnostics));
    *out_same = true;
    for (uint32_t k = 0; k < t->count; k++) {
        if (!interleaving) memcpy(t->wanted[k], t->passed[k], t->bytes[k]);
        if (g->pointers.data[t->pointers[k]].role == UIR_IPOINTER_OUT)
            *out_same = *out_same && !memcmp(t->wanted[k], t->passed[k], t->bytes[k]);
    }
    return UIR_STATUS_OK;
}

static bool run(campaign *c, const uir_igraph *g, trial *t, const uir_interleaving *interleaving) {
    bool same;
    return execute(c, g, t, interleaving, &same) == UIR_STATUS_OK && same;
}

static bool has_results(const uir_igraph *g, const trial *t) {
    for (uint32_t k = 0; k < t->count; k++)
        if (g->pointers.data[t->pointers[k]].role == UIR_IPOINTER_OUT && t->bytes[k]) return true;
    return false;
}

/* False: it takes too long, or there is nothing to compute. A fault is told. */
static bool try_trial(campaign *c, const uir_igraph *g, trial *t) {
    bool same;
    if (!make_arguments(c, g, t) || !has_results(g, t)) return false;
    give_time(uir_machine_threads(g->machine) > 1 ? most_seconds_of_threads : most_seconds);
    uir_status status = execute(c, g, t, NULL, &same);
    give_time(0);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_CANCELLED) tell_failure(c, g, "in program order");
    return status == UIR_STATUS_OK;
}

static uint32_t make_trials(campaign *c, const uir_igraph *g, trial *trials) {
    uint32_t count = 0;
    bool has_threads = uir_machine_threads(g->machine) > 1;
    for (int kind = 0; kind < (has_threads ? TRIAL_KINDS : WIDE); kind++) {
        uint32_t wanted = count + (kind == WIDE ? WIDE_TRIALS : 1);
        for (uint32_t attempt = 0; attempt < (kind == WIDE ? 24u : 8u) && count < wanted; attempt++) {
            trial *t = &trials[count];
            memset(t, 0, sizeof *t);
            if (choose_sizes_of(c, g, (trial_kind)kind, attempt, t->dims, t->tiles) && try_trial(c, g, t))
                count++;
            else
                free_trial(t);
        }
    }
    return count;
}

/* ---- one kernel ---- */
/* No interleaving of these changes a bit, nor the order in which an element is touched. */
static bool holds(campaign *c, const uir_igraph *g, trial *trials, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        uint64_t seeds = k == 0 ? c->interleavings : 5;
        for (uint64_t seed = 0; seed < seeds; seed++)
            if (!run(c, g, &trials[k], &(uir_interleaving){.seed = draw(c), .delayed_pipe = -1})) return false;
        for (uint32_t p = 0; p < g->machine->pipe_count; p++)
            if (!run(c, g, &trials[k], &(uir_interleaving){.seed = draw(c), .delayed_pipe = (int32_t)p})) return false;
    }
    return true;
}

/* Is there one that shows that a wait is missing? Most likely where the pipe that was waited for is late. */
static bool shows(campaign *c, const uir_igraph *g, trial *trials, uint32_t count, uint32_t from, bool elements_alone) {
    for (int round = 0; round < 6; round++)
        for (uint32_t k = 0; k < count; k++) {
            int32_t delayed = round < 4 ? (int32_t)from : -1;
            uir_interleaving order = {.seed = draw(c), .delayed_pipe = delayed, .elements_alone = elements_alone};
            if (!run(c, g, &trials[k], &order)) return true;
        }
    return false;
}

typedef struct place {
    uint32_t before, item; /* before: the item in front; UINT32_MAX: it is the first of `list` */
    uint32_t *list;
} place;

/* The waits between pipes and the barriers of threads below a list of items. */
static uint32_t find_syncs(uir_igraph *g, uint32_t *list, place *out, uint32_t count) {
    uint32_t before = UINT32_MAX;
    for (uint32_t at = *list; at != UINT32_MAX; at = g->items.data[at].next) {
        uir_iitem *item = &g->items.data[at];
        const uir_iinstruction *i =
            item->kind == UIR_IITEM_INSTRUCTION ? &g->instructions.data[item->instruction] : NULL;
        bool is_wait =
            i && i->code == UIR_IOP_SYNC && (i->sync_kind == UIR_SYNC_PIPES || i->sync_kind == UIR_SYNC_UNIT);
        if (is_wait && count < MOST_SYNCS) out[count++] = (place){before, at, list};
        count = find_syncs(g, &item->first_child, out, count);
        before = at;
    }
    return count;
}

static void link_to(uir_igraph *g, const place *p, uint32_t item) {
    if (p->before == UINT32_MAX)
        *p->list = item;
    else
        g->items.data[p->before].next = item;
}

static void describe(const uir_igraph *g, const uir_iinstruction *i, char *out, size_t size) {
    if (i->sync_kind == UIR_SYNC_UNIT) {
        snprintf(out, size, "sync.unit");
        return;
    }
    const char *pointer = i->sync_pointer == UINT32_MAX ? "" : g->pointers.data[i->sync_pointer].name;
    snprintf(out, size, "sync.%s.%s %%%s dist %u", g->machine->pipes[i->sync_from], g->machine->pipes[i->sync_to],
             pointer, i->sync_distance);
}

/* The kernel without this sync. */
static void check_without(campaign *c, uir_igraph *g, const place *p, trial *trials, uint32_t count) {
    const uir_iinstruction i = g->instructions.data[g->items.data[p->item].instruction];
    char text[160];
    uint32_t from = i.sync_kind == UIR_SYNC_UNIT ? UINT32_MAX : i.sync_from; /* no pipe is late */
    describe(g, &i, text, sizeof text);
    bool of_unit = i.sync_kind == UIR_SYNC_UNIT;
    c->tally.syncs++;
    c->tally.barriers += of_unit;
    link_to(g, p, g->items.data[p->item].next);
    uir_diagnostics_clear(&c->diagnostics);
    if (uir_igraph_verify(g, &c->diagnostics) == UIR_STATUS_OK) {
        c->tally.needless++;
        if (!holds(c, g, trials, count)) tell_failure(c, g, text);
        if (c->verbose) printf("needless %s on %s: %s\n", g->name, g->machine->name, text);
    } else {
        c->tally.refused++;
        bool wrong = shows(c, g, trials, count, from, true);
        bool ordered = !wrong && shows(c, g, trials, count, from, false);
        c->tally.wrong_elements += wrong;
        c->tally.out_of_order += ordered;
        c->tally.unseen += !wrong && !ordered;
        c->tally.barriers_seen += of_unit && (wrong || ordered);
        c->tally.barriers_refused += of_unit;
        link_to(g, p, p->item);
        if (!wrong) printf("%s %s on %s: %s\n", ordered ? "order" : "unseen", g->name, g->machine->name, text);
        if (!wrong && c->verbose) show(g);
    }
    link_to(g, p, p->item);
}

static void check_kernel(campaign *c, uir_igraph *g) {
    static trial trials[MOST_TRIALS];
    place places[MOST_SYNCS];
    uint32_t syncs = 0;
    for (uint32_t p = 0; p < g->phases.count; p++)
        for (uint32_t b = 0; b < g->phases.data[p].body_count; b++)
            syncs = find_syncs(g, &g->phases.data[p].bodies[b].first_item, places, syncs);
    uint32_t count = syncs ? make_trials(c, g, trials) : 0;
    if (!count) {
        c->tally.without++;
        return;
    }
    c->tally.kernels++;
    if (!holds(c, g, trials, count)) tell_failure(c, g, "by interleaving");
    for (uint32_t s = 0; s < syncs; s++) check_without(c, g, &places[s], trials, count);
    for (uint32_t k = 0; k < count; k++) free_trial(&trials[k]);
}

/* ---- kernels of graphs ---- */
static bool make_kernels(campaign *c, uir_module *module, uir_node_id node, const uir_machine *machine,
                         uir_lowered *l) {
    *l = (uir_lowered){.scheduled = {.allocator = c->allocator}, .igraphs = {.allocator = c->allocator}};
    uir_text_init(&l->steps, &c->allocator);
    uir_diagnostics_clear(&c->diagnostics);
    bool good =
        uir_lower_build(module, node, "k", &c->allocator, &c->diagnostics, &l->naive) == UIR_STATUS_OK &&
        uir_lower_schedule(l->naive, machine, &l->choice, &l->steps, &c->diagnostics, &l->scheduled) == UIR_STATUS_OK;
    for (uint32_t v = 0; good && v < l->scheduled.count; v++)
        good = uir_lower_kernel(l->scheduled.variants[v].function, machine, &c->allocator, &c->diagnostics,
                                &l->igraphs) == UIR_STATUS_OK;
    return good;
}

/* Few flags are no reason to have no kernel. */
static void check_group(campaign *c, uir_module *module, uir_node_id node, const uir_machine *machine) {
    uir_lowered l, other;
    uir_machine with_all = *machine;
    with_all.flag_count = 0;
    bool good = make_kernels(c, module, node, machine, &l);
    for (uint32_t v = 0; v < l.igraphs.count && c->tally.kernels < c->most_kernels; v++)
        check_kernel(c, l.igraphs.igraphs[v]);
    if (!good && machine->flag_count) {
        if (make_kernels(c, module, node, &with_all, &other)) {
            printf("FAILED %s with %u flags has no kernel where one without a limit has\n", machine->name,
                   machine->flag_count);
            c->tally.failed++;
        }
        uir_lowered_deinit(&other);
    }
    uir_lowered_deinit(&l);
}

static void check_graph(campaign *c, uint64_t seed, const uir_machine *machine) {
    static fusion_generator misleading;
    static generator general;
    fixture f;
    fixture_open(&f);
    if (seed % 3 == 0)
        generate_module(&general, &f, seed, 4 + (uint32_t)(seed % 13));
    else
        fusion_generate(&misleading, &f, seed);
    if (uir_fuse(f.module, NULL, &f.diagnostics) == UIR_STATUS_OK) {
        uint32_t graphs = f.module->graphs.count;
        for (uint32_t g = 1; g < graphs; g++) {
            uir_graph_info graph = *uir_graph_get(f.module, (uir_graph_id){g});
            for (uint32_t n = 0; n < graph.nodes.count; n++)
                if (uir_node_get(f.module, graph.nodes.data[n])->op == UIR_OP_GROUP)
                    check_group(c, f.module, graph.nodes.data[n], machine);
        }
    }
    fixture_close(&f);
}

/* ---- files ---- */
static char *read_whole(const char *path, size_t *out_length) {
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(1 << 20) : NULL;
    *out_length = text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (text) text[*out_length] = 0;
    if (file) fclose(file);
    return text;
}

static bool is_told(const campaign *c, const char *words, size_t length) {
    for (const uir_diagnostic *d = c->diagnostics.first; d; d = d->next) {
        const char *at = d->message;
        while (at && *at && strncmp(at, words, length)) at++;
        if (at && *at) return true;
    }
    return false;
}

/* A kernel with a fault in its syncs. */
static void check_refused(campaign *c, uir_igraph *g, const char *words, size_t length) {
    static trial trials[MOST_TRIALS];
    uir_diagnostics_clear(&c->diagnostics);
    c->tally.kernels++;
    bool refused = uir_igraph_verify(g, &c->diagnostics) != UIR_STATUS_OK && is_told(c, words, length);
    if (!refused) tell_failure(c, g, "is not refused in the words of its first line");
    c->tally.refused += refused;
    uint32_t count = c->wrong ? make_trials(c, g, trials) : 0;
    bool shown = false;
    for (uint32_t pipe = 0; count && !shown && pipe < g->machine->pipe_count; pipe++)
        shown = shows(c, g, trials, count, pipe, true);
    c->tally.wrong_elements += shown;
    uir_diagnostics_clear(&c->diagnostics);
    if (c->wrong && !shown) tell_failure(c, g, "no interleaving shows that it is wrong");
    for (uint32_t k = 0; k < count; k++) free_trial(&trials[k]);
}

/* A kernel whose waits the pass is still to write: they are to have these words. */
static void write_waits(campaign *c, uir_igraph *g, const char *words, size_t length) {
    uir_text text;
    uir_text_init(&text, &g->allocator);
    uir_diagnostics_clear(&c->diagnostics);
    bool good = uir_igraph_verify(g, &c->diagnostics) == UIR_STATUS_OK && uir_igraph_synchronise(g) == UIR_STATUS_OK;
    if (good) uir_igraph_print(g, &text);
    const char *at = good && text.data ? text.data : "";
    while (*at && strncmp(at, words, length)) at++;
    if (!*at) tell_failure(c, g, "has not the waits that its first line tells");
    uir_text_deinit(&text);
}

static void check_igraphs(campaign *c, const char *path, const char *text, size_t length) {
    uir_machine_list devices = {c->devices.data, c->devices.count};
    uir_igraph_list list = {.allocator = c->allocator};
    uir_diagnostics_clear(&c->diagnostics);
    if (uir_igraph_parse_list(&c->allocator, &devices, text, length, path, &c->diagnostics, &list) != UIR_STATUS_OK) {
        printf("FAILED %s: %s\n", path, c->diagnostics.first->message);
        c->tally.failed++;
    }
    const char *words = strstr(text, c->refused ? "fail: " : "has: ");
    words = words ? strchr(words, ' ') + 1 : "";
    for (uint32_t i = 0; i < list.count; i++) {
        if (c->refused) {
            check_refused(c, list.igraphs[i], words, strcspn(words, "\n"));
            continue;
        }
        if (!list.igraphs[i]->synchronised) write_waits(c, list.igraphs[i], words, strcspn(words, "\n"));
        uir_diagnostics_clear(&c->diagnostics);
        if (uir_igraph_verify(list.igraphs[i], &c->diagnostics) == UIR_STATUS_OK)
            check_kernel(c, list.igraphs[i]);
        else
            tell_failure(c, list.igraphs[i], "refused");
    }
    uir_igraph_list_deinit(&list);
}

/* The chips of a name that have pipes, or units of several threads. */
static void check_chips(campaign *c, const char *name) {
    uint32_t chips = 0;
    const uir_machine *apart[UIR_MACHINE_MAX_CHIPS];
    for (uint32_t d = 0; d < c->devices.count && chips < UIR_MACHINE_MAX_CHIPS; d++)
        if (uir_igraph_needs_syncs(c->devices.data[d]) && !strcmp(c->devices.data[d]->name, name))
            apart[chips++] = c->devices.data[d];
    for (uint64_t g = 0; chips && g < c->graphs && c->tally.kernels < c->most_kernels; g++)
        check_graph(c, c->first + g, apart[g % chips]);
}

static void check_description(campaign *c, const char *path, const char *text, size_t length) {
    uint32_t before = c->devices.count;
    uir_diagnostics_clear(&c->diagnostics);
    if (uir_machine_parse(text, length, path, &c->arena, &c->diagnostics, &c->devices) != UIR_STATUS_OK) {
        printf("FAILED %s: %s\n", path, c->diagnostics.first->message);
        c->tally.failed++;
        return;
    }
    check_chips(c, c->devices.data[before]->name);
}

static void check_file(campaign *c, const char *path) {
    size_t length;
    char *text = read_whole(path, &length);
    const char *dot = strrchr(path, '.');
    if (!text) {
        printf("FAILED %s cannot be read\n", path);
        c->tally.failed++;
        return;
    }
    if (dot && !strcmp(dot, ".device"))
        check_description(c, path, text, length);
    else
        check_igraphs(c, path, text, length);
    free(text);
}

int main(int argc, char **argv) {
    campaign c = {.allocator = uir_allocator_system(),
                  .first = 1,
                  .graphs = 20,
                  .most_kernels = UINT64_MAX,
                  .interleavings = INTERLEAVINGS,
                  .random = 88172645463325252u};
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGVTALRM, &(struct sigaction){.sa_handler = give_up, .sa_flags = SA_RESTART}, NULL);
    uir_diagnostics_init(&c.diagnostics, &c.allocator);
    uir_arena_init(&c.arena, &c.allocator);
    if (uir_descriptions_read(&c.arena, &c.diagnostics, &c.devices) != UIR_STATUS_OK) return 2;
    for (int i = 1; i < argc; i++) {
        uint64_t *number = !strcmp(argv[i], "--first")           ? &c.first
                           : !strcmp(argv[i], "--graphs")        ? &c.graphs
                           : !strcmp(argv[i], "--kernels")       ? &c.most_kernels
                           : !strcmp(argv[i], "--interleavings") ? &c.interleavings
                                                                 : NULL;
        if (number && i + 1 < argc)
            *number = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "-v"))
            c.verbose = true;
        else if (!strcmp(argv[i], "--refused") || !strcmp(argv[i], "--wrong"))
            c.refused = true, c.wrong = !strcmp(argv[i], "--wrong");
        else if (!strcmp(argv[i], "--device") && i + 1 < argc)
            check_chips(&c, argv[++i]);
        else
            check_file(&c, argv[i]);
    }
    const tally *t = &c.tally;
    printf("kernels %llu runs %llu syncs %llu refused %llu wrong %llu order %llu unseen %llu needless %llu "
           "barriers %llu barriers_refused %llu barriers_seen %llu\n",
           (unsigned long long)t->kernels, (unsigned long long)t->runs, (unsigned long long)t->syncs,
           (unsigned long long)t->refused, (unsigned long long)t->wrong_elements, (unsigned long long)t->out_of_order,
           (unsigned long long)t->unseen, (unsigned long long)t->needless, (unsigned long long)t->barriers,
           (unsigned long long)t->barriers_refused, (unsigned long long)t->barriers_seen);
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)t->kernels, (unsigned long long)t->failed);
    uir_diagnostics_deinit(&c.diagnostics);
    uir_arena_deinit(&c.arena);
    return t->failed != 0;
}
