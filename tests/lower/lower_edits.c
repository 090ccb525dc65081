/* Edits of traces: other tiles, orders and places of the kernels of models.
 *
 *   uir-lower-edits [--edits N] [--seed S] [--at-least PERCENT] [-v] MODEL.onnx...
 *
 * A step of a variant's trace is changed, dropped or moved, and the trace taken on the naive loops. What is refused
 * must say why; what is not must verify, and computes the same through every stage. --at-least: so many must be legal.
 */
#include "backends/cpu/target/cpu.h"
#include "tests/lower/models.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 400, MOST_GROUPS = 4096, MOST_ELEMENTS = 300000, MOST_WORK = 2000000, MOST_TRIES = 8 };

typedef struct lines {
    char *of[MOST_LINES];
    uint32_t count;
} lines;

typedef struct draws {
    uint64_t state;
} draws;

static uint32_t below(draws *d, uint32_t limit) {
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return limit ? (uint32_t)((d->state >> 33) % limit) : 0;
}

static bool begins(const char *line, const char *word) {
    return !strncmp(line, word, strlen(word));
}

/* A line that begins with the word; NULL. */
static char **any_line(lines *l, draws *d, const char *const *words, uint32_t count) {
    uint32_t found = 0;
    char **line = NULL;
    for (uint32_t i = 0; i < l->count; i++)
        for (uint32_t k = 0; k < count; k++)
            if (begins(l->of[i], words[k]) && below(d, ++found) == 0) line = &l->of[i];
    return line;
}

/* ---- edits; false: there is nothing of the kind ---- */
static char *copy_of(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

/* The text with `length` bytes at `at` replaced. */
static void replace(char **line, size_t at, size_t length, const char *with) {
    char *text = malloc(strlen(*line) + strlen(with) + 1);
    memcpy(text, *line, at);
    strcpy(text + at, with);
    strcat(text, *line + at + length);
    free(*line);
    *line = text;
}

static bool edit_number(lines *l, draws *d) {
    static const char *const words[] = {"split", "split", "split", "extend", "pad", "candidate", "set layout"};
    static const int64_t others[] = {1, 2, 3, 4, 5, 8, 16, 24, 32, 64, 100, 256};
    char **line = any_line(l, d, words, sizeof words / sizeof *words), number[32];
    size_t at = 0, length = 0;
    uint32_t seen = 0;
    if (!line) return false;
    for (size_t i = 1, n; (*line)[i]; i += n) {
        n = strspn(*line + i, "0123456789");
        bool whole = n && !isalnum((unsigned char)(*line)[i - 1]) && (*line)[i - 1] != '_' && (*line)[i - 1] != '-';
        if (whole && below(d, ++seen) == 0) at = i, length = n;
        n += !n;
    }
    if (!length) return false;
    int64_t was = strtoll(*line + at, NULL, 10), is = others[below(d, sizeof others / sizeof *others)];
    if (below(d, 2)) is = below(d, 2) ? was * 2 : was / 2;
    snprintf(number, sizeof number, "%lld", (long long)is);
    replace(line, at, length, number);
    return is != was;
}

static size_t name_length(const char *at) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    return length;
}

static bool is_name(const char *at, const char *name) {
    return name_length(at) == strlen(name) && begins(at, name);
}

/* Each name becomes the other wherever it stands in the line. */
static void exchange_names(char **line, const char *a, const char *b) {
    for (size_t i = 0, length; (*line)[i]; i += length + !length) {
        length = name_length(*line + i);
        const char *other = is_name(*line + i, a) ? b : is_name(*line + i, b) ? a : NULL;
        if (!length || !other) continue;
        replace(line, i, length, other);
        length = strlen(other);
    }
}

/* Two loops that are shared out one after the other change places at the end. */
static bool edit_shared(lines *l, draws *d) {
    char text[300];
    uint32_t found = l->count, seen = 0;
    for (uint32_t i = 1; i < l->count; i++)
        if (strstr(l->of[i], " as parallel") && strstr(l->of[i - 1], " as parallel") && below(d, ++seen) == 0)
            found = i;
    if (found == l->count || l->count == MOST_LINES) return false;
    const char *a = l->of[found] + strlen("mark "), *b = l->of[found - 1] + strlen("mark ");
    snprintf(text, sizeof text, "reorder %.*s, %.*s", (int)(strstr(a, " as ") - a), a, (int)(strstr(b, " as ") - b), b);
    l->of[l->count++] = copy_of(text, strlen(text));
    return true;
}

/* Two neighbours of a reorder change places; what is placed at one of them later is placed at the other. */
static bool edit_order(lines *l, draws *d) {
    char **line = any_line(l, d, (const char *const[]){"reorder"}, 1), names[2][128];
    uint32_t count = 1, which[2];
    for (const char *at = line ? *line : ""; *at; at++) count += *at == ',';
    if (!line || count < 2) return false;
    which[0] = below(d, count - 1), which[1] = which[0] + 1;
    for (int k = 0; k < 2; k++) {
        const char *at = *line + strlen("reorder ");
        for (uint32_t i = 0; i < which[k]; i++) at = strchr(at, ',') + 2;
        if (name_length(at) >= sizeof names[k]) return false;
        snprintf(names[k], sizeof names[k], "%.*s", (int)name_length(at), at);
    }
    exchange_names(line, names[0], names[1]);
    for (char **later = line + 1; later < l->of + l->count; later++)
        if (strstr(*later, " at ")) exchange_names(later, names[0], names[1]);
    return true;
}

/* The loop of a line `... LOOP of BLOCK`, anywhere in the trace; of that block, or ("") any. */
static bool any_loop(lines *l, draws *d, const char *block, char *out, size_t size) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        const char *line = l->of[i];
        for (const char *of = strstr(line, " of "); of; of = strstr(of + 1, " of ")) {
            const char *from = of, *to = of + 4;
            while (from > line && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) from--;
            to += name_length(to);
            if (*block && !is_name(of + 4, block)) continue;
            if (from == of || (size_t)(to - from) >= size || isdigit((unsigned char)*from) || below(d, ++seen))
                continue;
            snprintf(out, size, "%.*s", (int)(to - from), from);
        }
    }
    return seen > 0;
}

static bool edit_place(lines *l, draws *d) {
    static const char *const words[] = {"compute", "reverse compute", "cache operand"};
    char **line = any_line(l, d, words, 3), loop[256], block[128];
    char *at = line ? strstr(*line, " at ") : NULL;
    const char *of = at ? strstr(at, " of ") : NULL;
    if (!of || name_length(of + 4) >= sizeof block) return false;
    snprintf(block, sizeof block, "%.*s", below(d, 2) ? (int)name_length(of + 4) : 0, of + 4);
    if (!any_loop(l, d, block, loop, sizeof loop)) return false;
    size_t from = (size_t)(at - *line) + 4, length = strcspn(*line + from, " ");
    length += begins(*line + from + length, " of ") ? 4 : 0;
    length += strcspn(*line + from + length, " ");
    replace(line, from, length, loop);
    return true;
}

static bool edit_kind(lines *l, draws *d) {
    static const char *const kinds[] = {"serial", "parallel", "vectorised", "unrolled"};
    char **line = any_line(l, d, (const char *const[]){"mark"}, 1);
    char *at = line ? strstr(*line, " as ") : NULL;
    if (!at) return false;
    replace(line, (size_t)(at - *line) + 4, strlen(at + 4), kinds[below(d, 4)]);
    return true;
}

static bool edit_swap(lines *l, draws *d) {
    if (l->count < 2) return false;
    uint32_t i = below(d, l->count - 1);
    char *line = l->of[i];
    l->of[i] = l->of[i + 1];
    l->of[i + 1] = line;
    return true;
}

static bool edit_drop(lines *l, draws *d) {
    uint32_t i = below(d, l->count);
    free(l->of[i]);
    l->count--;
    memmove(&l->of[i], &l->of[i + 1], (l->count - i) * sizeof *l->of);
    return true;
}

typedef enum outcome { LEGAL, REFUSED, NO_KERNEL, WRONG, OUTCOMES } outcome;

typedef struct edit {
    const char *name;
    bool (*make)(lines *l, draws *d);
    uint32_t weight;
} edit;
static const edit edits[] = {
    {"another number", edit_number, 9},
    {"another order of loops", edit_order, 3},
    {"another order of shared loops", edit_shared, 2},
    {"another place", edit_place, 3},
    {"another kind of loop", edit_kind, 1},
    {"two steps change places", edit_swap, 1},
    {"a step less", edit_drop, 1},
};
enum { EDITS = sizeof edits / sizeof *edits };

static uint32_t any_edit(draws *d) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < EDITS; i++) total += edits[i].weight;
    uint32_t at = below(d, total), i = 0;
    while (at >= edits[i].weight) at -= edits[i++].weight;
    return i;
}

/* ---- a trace as lines ---- */
static bool take_lines(const char *text, lines *out) {
    out->count = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (out->count == MOST_LINES) return false;
        out->of[out->count++] = copy_of(text, length);
        text += length + (text[length] == '\n');
    }
    return out->count > 0;
}

static char *join(const lines *l) {
    size_t length = 1;
    for (uint32_t i = 0; i < l->count; i++) length += strlen(l->of[i]) + 1;
    char *text = malloc(length), *at = text;
    *at = 0;
    for (uint32_t i = 0; i < l->count; i++) at += sprintf(at, "%s\n", l->of[i]);
    return text;
}

/* ---- the campaign ---- */
typedef struct campaign {
    const uir_machine *machine;
    uir_allocator allocator;
    draws draws;
    uint32_t counts[EDITS][OUTCOMES];
    uint32_t wanted, done, unread, missing;
    bool verbose;
} campaign;

static void say(const campaign *c, const char *what, const lower_check *check, const char *trace) {
    printf("%s: %s\n", what, check->message);
    if (c->verbose) printf("%s\n", trace);
}

/* The kernels with the variant's in place of the one that it has. */
static bool put_in(campaign *c, lower_check *check, uint32_t at, uir_loop_function *function, uir_diagnostics *d) {
    uir_igraph_list made = {.allocator = c->allocator}, *all = &check->lowered.igraphs;
    uir_status status = uir_lower_kernel(function, c->machine, &c->allocator, d, &made);
    if (status == UIR_STATUS_OK && made.count == 1) {
        uir_igraph_destroy(all->igraphs[at]);
        all->igraphs[at] = made.igraphs[0];
        made.count = 0;
    }
    uir_igraph_list_deinit(&made);
    uir_loop_function_destroy(check->lowered.scheduled.variants[at].function);
    check->lowered.scheduled.variants[at].function = function;
    return status == UIR_STATUS_OK;
}

static bool is_same(const uir_loop_function *a, const uir_loop_function *b) {
    uir_text x, y;
    uir_text_init(&x, &a->allocator);
    uir_text_init(&y, &a->allocator);
    uir_loop_print(a, &x);
    uir_loop_print(b, &y);
    bool same = x.data && y.data && !strcmp(x.data, y.data);
    uir_text_deinit(&x);
    uir_text_deinit(&y);
    return same;
}

/* May it run at small sizes at all? */
static bool is_small(const campaign *c, uir_module *module, uir_node_id node) {
    uir_loop_function *naive = NULL;
    uir_diagnostics d;
    int64_t least[64];
    uir_diagnostics_init(&d, &c->allocator);
    for (uint32_t i = 0; i < 64; i++) least[i] = 1;
    bool small = uir_lower_build(module, node, "k", &c->allocator, &d, &naive) == UIR_STATUS_OK &&
                 naive->sizes.count <= 64 && lower_work(naive, least) <= MOST_WORK;
    uir_loop_function_destroy(naive);
    uir_diagnostics_deinit(&d);
    return small;
}

/* OUTCOMES: the edit changes nothing, or the group does not run at small sizes. */
static outcome try_trace(campaign *c, lower_check *check, uir_module *module, uir_node_id node, uint32_t at,
                         const char *trace) {
    uir_loop_function *function = NULL;
    uir_diagnostics d;
    outcome found = OUTCOMES;
    uir_diagnostics_init(&d, &c->allocator);
    uir_status status = lower_replay(check->lowered.naive, c->machine, trace, &d, &function);
    if (status != UIR_STATUS_OK) {
        bool said =
            d.first && d.first->message[0] && (status == UIR_STATUS_UNSUPPORTED || status == UIR_STATUS_BAD_FILE);
        found = said ? REFUSED : WRONG;
        snprintf(check->message, sizeof check->message, "%s", d.first ? d.first->message : "refused without a reason");
    } else if (is_same(function, check->lowered.scheduled.variants[at].function)) {
        uir_loop_function_destroy(function);
    } else if (uir_loop_verify(function, &d) != UIR_STATUS_OK) {
        found = WRONG;
        snprintf(check->message, sizeof check->message, "does not verify: %s", d.first ? d.first->message : "?");
        uir_loop_function_destroy(function);
    } else if (!put_in(c, check, at, function, &d)) {
        found = NO_KERNEL;
        snprintf(check->message, sizeof check->message, "%s", d.first ? d.first->message : "?");
    } else if (lower_run_small(check, module, node) || check->stage != LOWER_FINE) {
        found = check->stage == LOWER_FINE ? LEGAL : WRONG;
    }
    uir_diagnostics_deinit(&d);
    return found;
}

static bool edit_group(campaign *c, uir_module *module, uir_node_id node, uint32_t kind) {
    lower_check check = {
        .machine = c->machine, .allocator = &c->allocator, .most = MOST_ELEMENTS, .most_work = MOST_WORK};
    lines l = {0};
    lower_prepare(&check, module, node);
    uint32_t count = check.lowered.scheduled.count, at = below(&c->draws, count), before = c->done;
    bool has = check.stage == LOWER_FINE && count == check.lowered.igraphs.count && count &&
               check.lowered.scheduled.variants[at].trace.length &&
               take_lines(check.lowered.scheduled.variants[at].trace.data, &l);
    if (has && edits[kind].make(&l, &c->draws)) {
        char *trace = join(&l);
        outcome found = try_trace(c, &check, module, node, at, trace);
        if (found != OUTCOMES) {
            c->counts[kind][found]++;
            c->done++;
            if (found == WRONG) say(c, "WRONG", &check, trace);
            if (found == REFUSED && c->verbose) say(c, "refused", &check, "");
            if (found == NO_KERNEL && c->verbose) say(c, "no kernel", &check, "");
            if (found == WRONG && !c->verbose) printf("after %s of\n%s", edits[kind].name, trace);
        }
        free(trace);
    }
    for (uint32_t i = 0; i < l.count; i++) free(l.of[i]);
    lower_finish(&check);
    return c->done > before;
}

static void edit_model(campaign *c, const char *path, uint32_t share) {
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_module *onnx = NULL, *module = NULL;
    static uir_node_id groups[MOST_GROUPS];
    uint32_t count = 0, until = c->done + share;
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("skip: there is no %s\n", path);
        c->missing++;
        return;
    }
    fclose(file);
    uir_diagnostics_init(&diagnostics, &c->allocator);
    uir_arena_init(&arena, &c->allocator);
    bool read = lower_load(path, &c->allocator, &diagnostics, &arena, &onnx, &module) == UIR_STATUS_OK;
    if (!read) printf("%s: %s\n", path, diagnostics.first ? diagnostics.first->message : "cannot be read");
    c->unread += !read;
    if (read)
        for (uint32_t n = 1; n < module->nodes.count && count < MOST_GROUPS; n++)
            if (uir_node_get(module, (uir_node_id){n})->op == UIR_OP_GROUP && is_small(c, module, (uir_node_id){n}))
                groups[count++] = (uir_node_id){n};
    for (uint32_t turns = 0; count && c->done < until && turns < 10 * share; turns++) {
        uint32_t kind = any_edit(&c->draws);
        for (uint32_t tries = 0; tries < MOST_TRIES; tries++)
            if (edit_group(c, module, groups[below(&c->draws, count)], kind)) break;
    }
    uir_module_destroy(module);
    uir_module_destroy(onnx);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
}

static int report(const campaign *c, uint32_t at_least) {
    uint32_t all[OUTCOMES] = {0};
    printf("%-30s %8s %8s %10s %8s\n", "", "legal", "refused", "no kernel", "wrong");
    for (uint32_t i = 0; i <= EDITS; i++) {
        const uint32_t *row = i < EDITS ? c->counts[i] : all;
        printf("%-30s %8u %8u %10u %8u\n", i < EDITS ? edits[i].name : "all", row[LEGAL], row[REFUSED], row[NO_KERNEL],
               row[WRONG]);
        for (uint32_t k = 0; k < OUTCOMES && i < EDITS; k++) all[k] += row[k];
    }
    bool few = all[LEGAL] * 100 < at_least * c->done;
    if (few) printf("less than %u %% are legal\n", at_least);
    uint32_t failed = all[WRONG] + few + c->unread + (!c->done && !c->missing);
    printf("%u passed, %u failed, %u skipped\n", c->done - all[WRONG], failed, c->missing);
    return failed ? 1 : 0;
}

int main(int argc, char **argv) {
    static uir_cpu_device cpu;
    campaign c = {.allocator = uir_allocator_system(), .wanted = 60};
    uint32_t at_least = 0, models = 0;
    uir_diagnostics diagnostics;
    setvbuf(stdout, NULL, _IOLBF, 0);
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (value && !strcmp(argv[i], "--edits"))
            c.wanted = (uint32_t)atoi(argv[++i]);
        else if (value && !strcmp(argv[i], "--seed"))
            seed = (uint64_t)atoll(argv[++i]);
        else if (value && !strcmp(argv[i], "--at-least"))
            at_least = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "-v"))
            c.verbose = true;
        else
            argv[1 + models++] = argv[i];
    }
    c.draws.state = seed * 2654435761u;
    uir_diagnostics_init(&diagnostics, &c.allocator);
    uir_status status = uir_cpu_describe("generic", &diagnostics, &cpu);
    uir_diagnostics_deinit(&diagnostics);
    c.machine = &cpu.machine;
    if (status != UIR_STATUS_OK || !models) {
        fprintf(stderr, "usage: uir-lower-edits [--edits N] [--seed S] [--at-least PERCENT] [-v] MODEL.onnx...\n");
        return 2;
    }
    for (uint32_t m = 0; m < models; m++)
        edit_model(&c, argv[1 + m], (c.wanted - c.done + models - m - 1) / (models - m));
    return report(&c, at_least);
}
