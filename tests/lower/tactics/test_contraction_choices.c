/* What is chosen for a contraction or a convolution: for graphs in text and machines, the plan of each variant in a few
 * lines; and that it computes what the graph says. Loops in place of a graph are what no graph comes to.
 *
 *   test_contraction_choices [NAME]            with a name, shows what comes of that case
 *   test_contraction_choices --bless [FILE]    writes what comes of each into the file of cases
 *
 * A case says the machine and its KiB on chip; values of the sizes, in their order, that are chosen for and that it is
 * run with: "3 4; 5 6".
 *
 * A variant's lines: what it requires, its tiles and when they may be which; what lies on chip or in a layout of its
 * own; its loops and instructions, those of mma and of copies to the chip with their slices. After the variants, per
 * sizes: which of them runs, its tiles, and what they cost. */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "lower/tactics/products/contraction.h"
#include "tests/lower/tactics/choices.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 64, WORKERS = 4 };

/* ---- the plan of a variant, out of its text ---- */
static bool starts(const char *line, size_t length, const char *word) {
    return length >= strlen(word) && !memcmp(line, word, strlen(word));
}

/* An instruction with its slices, where these show tiles and what is copied; else its name. */
static void add_instruction(const char *line, size_t length, uir_text *out) {
    bool whole = starts(line, length, "mma.") || starts(line, length, "move.dram.sram");
    const char *end = memchr(line, ' ', length);
    uir_text_append(out, line, whole || !end ? length : (size_t)(end - line));
    uir_text_append_string(out, "; ");
}

/* What a line of an iGraph adds to the header (requires, tiles), the memory or the work of the plan. */
static void add_line(const char *line, size_t length, bool *in_phase, uir_text parts[3]) {
    static const char *const openers[] = {"phase", "loop", "if"};
    if (*in_phase || starts(line, length, "phase")) {
        bool opens = false;
        *in_phase = true;
        for (uint32_t i = 0; i < 3; i++) opens |= starts(line, length, openers[i]);
        if (opens || starts(line, length, "parallel") || starts(line, length, "}")) {
            uir_text_append(&parts[2], line, length);
            uir_text_append_string(&parts[2], starts(line, length, "parallel") ? "; " : " ");
        } else {
            add_instruction(line, length, &parts[2]);
        }
    } else if (starts(line, length, "candidate")) {
        const char *when = strstr(line, " when "), *cost = strstr(line, " cost ");
        if (!when || !cost || when > cost || cost > line + length) return;
        uir_text_append(&parts[0], line + strlen("candidate "), (size_t)(cost - line) - strlen("candidate "));
        uir_text_append_string(&parts[0], "; ");
    } else if (starts(line, length, "require") || starts(line, length, "tile")) {
        uir_text_append(&parts[0], line, length);
        uir_text_append_string(&parts[0], "; ");
    } else if (starts(line, length, "ptr")) {
        bool own = false;
        for (size_t i = 0; i + 1 < length; i++) own |= line[i] == ']' && line[i + 1] == ':';
        const char *name = memchr(line, '%', length);
        if (!name || (!own && starts(strchr(name, ':'), 6, ": dram"))) return;
        uir_text_append(&parts[1], name, length - (size_t)(name - line));
        uir_text_append_string(&parts[1], "; ");
    }
}

static void add_plan(const uir_igraph *igraph, const uir_allocator *allocator, uir_text *out) {
    uir_text text, parts[3];
    bool in_phase = false;
    uir_text_init(&text, allocator);
    for (uint32_t i = 0; i < 3; i++) uir_text_init(&parts[i], allocator);
    uir_igraph_print(igraph, &text);
    for (const char *line = text.data; line && *line;) {
        size_t length = strcspn(line, "\n"), indent = strspn(line, " ");
        if (length > indent && indent) add_line(line + indent, length - indent, &in_phase, parts);
        line += length + (line[length] == '\n');
    }
    for (uint32_t i = 0; i < 3; i++) {
        while (parts[i].length && strchr(" ;", parts[i].data[parts[i].length - 1]))
            parts[i].data[--parts[i].length] = 0;
        uir_text_append_format(out, "%s%s\n", i ? "  " : "variant: ", parts[i].data ? parts[i].data : "");
        uir_text_deinit(&parts[i]);
    }
    uir_text_deinit(&text);
}

/* ---- sizes ---- */
/* The next row of "3 4; 5 6": how many numbers it has. */
static uint32_t next_row(const char **at, int64_t *out) {
    uint32_t count = 0;
    while (**at && **at != ';' && count < SYMBOLS) {
        char *end;
        out[count++] = strtoll(*at, &end, 10);
        *at = end + strspn(end, " ");
    }
    *at += strspn(*at, "; ");
    return count;
}

static bool cost_of(const uir_igraph *g, const int64_t *sizes, const int64_t *tiles, int64_t *out) {
    uint32_t symbols = uir_dims_symbol_count(g->dims);
    int64_t *values = calloc(symbols + 1, sizeof *values);
    bool *bound = calloc(symbols + 1, sizeof *bound), found = false;
    if (values && bound && uir_igraph_bind(g, sizes, tiles, values, bound, NULL) == UIR_STATUS_OK) {
        for (uint32_t i = 0; i < g->candidates.count && !found; i++) {
            const uir_icandidate *c = &g->candidates.data[i];
            int64_t tile;
            found = true;
            for (uint32_t t = 0; t < uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE); t++)
                found = found &&
                        uir_dim_evaluate(g->dims, c->tiles[t], values, bound, symbols, &tile) == UIR_DIM_EVALUATED &&
                        tile == tiles[t];
            int64_t cost = 0, units = 0;
            found = found && uir_dim_evaluate(g->dims, c->cost, values, bound, symbols, &cost) == UIR_DIM_EVALUATED &&
                    uir_dim_evaluate(g->dims, c->units, values, bound, symbols, &units) == UIR_DIM_EVALUATED;
            *out = uir_shared_cost(cost, units, WORKERS);
        }
    }
    free(values), free(bound);
    return found;
}

/* Values of the kernel's sizes for values of the module's symbols. */
static bool kernel_sizes(const uir_module *module, uir_node_id group, const int64_t *symbols, int64_t *out) {
    uint32_t count;
    const uir_dim *dims = uir_node_dims(module, uir_node_get(module, group), "sizes", &count);
    for (uint32_t i = 0; i < count; i++)
        if (i >= SYMBOLS || uir_dim_evaluate(module->dims, dims[i], symbols, NULL, uir_dims_symbol_count(module->dims),
                                             &out[i]) != UIR_DIM_EVALUATED)
            return false;
    return true;
}

static void add_choice(const lower_check *c, const uir_module *module, uir_node_id group, const int64_t *symbols,
                       uint32_t count, uir_text *out) {
    int64_t sizes[SYMBOLS] = {0}, tiles[SYMBOLS] = {0}, cost;
    uir_text_append_string(out, "at");
    for (uint32_t i = 0; i < count; i++) uir_text_append_format(out, " %lld", (long long)symbols[i]);
    bool good = kernel_sizes(module, group, symbols, sizes);
    for (uint32_t v = 0; good && v < c->lowered.igraphs.count; v++) {
        const uir_igraph *g = c->lowered.igraphs.igraphs[v];
        if (uir_igraph_choose_tiles(g, sizes, WORKERS, tiles, NULL) != UIR_STATUS_OK) continue;
        uir_text_append_format(out, ": variant %u", v + 1);
        for (uint32_t t = 0; t < uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE); t++)
            uir_text_append_format(out, "%s %lld", t ? "," : ", tiles", (long long)tiles[t]);
        if (cost_of(g, sizes, tiles, &cost)) uir_text_append_format(out, ", cost %lld", (long long)cost);
        uir_text_append_string(out, "\n");
        return;
    }
    uir_text_append_string(out, ": none\n");
}

/* ---- a case ---- */
static bool is_expected(golden_case *of, const uir_text *text, bool show) {
    golden_keep(of, text->data ? text->data : "");
    bool good = of->expect && !strcmp(of->made, of->expect);
    if (!good || show) printf("%s%s:\n%s\n", of->title, good ? "" : " (another plan)", of->made);
    return good;
}

static bool check_group(golden_case *of, const uir_machine *machine, const uir_allocator *allocator, uir_module *module,
                        uir_node_id node, bool show) {
    lower_check c = {.machine = machine, .allocator = allocator};
    uir_text text;
    int64_t values[SYMBOLS] = {0};
    uir_text_init(&text, allocator);
    lower_prepare(&c, module, node);
    if (c.stage != LOWER_FINE) uir_text_append_format(&text, "%s: %s\n", lower_stage_name(c.stage), c.message);
    for (uint32_t v = 0; v < c.lowered.igraphs.count; v++) add_plan(c.lowered.igraphs.igraphs[v], allocator, &text);
    for (const char *at = golden_get(of, "chosen for"); *at;) {
        uint32_t count = next_row(&at, values);
        add_choice(&c, module, node, values, count, &text);
    }
    bool good = is_expected(of, &text, show);
    for (const char *at = golden_get(of, "run with"); *at && c.stage == LOWER_FINE;) {
        (void)next_row(&at, values);
        if (lower_run(&c, module, node, values, 1) && c.stage == LOWER_FINE) continue;
        printf("%s: %s: %s\n", of->title, lower_stage_name(c.stage), c.message);
        good = false;
    }
    lower_finish(&c);
    uir_text_deinit(&text);
    return good;
}

/* A function of loops in place of a graph: a naive one is scheduled; a scheduled one goes to its kernel as it is. */
static bool check_function(golden_case *of, const uir_machine *machine, const uir_allocator *allocator, bool show) {
    uir_loop_function *function = NULL;
    uir_loop_list list = {.allocator = *allocator};
    uir_igraph_list igraphs = {.allocator = *allocator};
    uir_diagnostics d;
    uir_text text;
    uir_diagnostics_init(&d, allocator);
    uir_text_init(&text, allocator);
    uir_status status = uir_loop_parse(allocator, of->input, strlen(of->input), of->title, &d, &function);
    if (status == UIR_STATUS_OK) status = uir_loop_verify(function, &d);
    if (status == UIR_STATUS_OK && uir_loop_count_used_as(function, function->first, UIR_LOOP_USE_MMA)) {
        status = uir_lower_kernel(function, machine, allocator, &d, &igraphs);
    } else {
        if (status == UIR_STATUS_OK) status = uir_lower_schedule(function, machine, NULL, NULL, &d, &list);
        for (uint32_t i = 0; status == UIR_STATUS_OK && i < list.count; i++)
            status = uir_lower_kernel(list.variants[i].function, machine, allocator, &d, &igraphs);
    }
    if (d.first) uir_text_append_format(&text, "%s\n", d.first->message);
    for (uint32_t v = 0; v < igraphs.count; v++) add_plan(igraphs.igraphs[v], allocator, &text);
    bool good = is_expected(of, &text, show);
    uir_text_deinit(&text);
    uir_igraph_list_deinit(&igraphs);
    uir_loop_list_deinit(&list);
    if (function) uir_loop_function_destroy(function);
    uir_diagnostics_deinit(&d);
    return good;
}

/* The first group of the module; made by fusion where the text has none. */
static bool check_graph(golden_case *of, const uir_machine *machine, const uir_allocator *allocator, bool show) {
    static char source[8000];
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_graph_info graph = {0};
    bool good = false;
    uir_diagnostics_init(&diagnostics, allocator);
    choice_write_module(of->input, source, sizeof source);
    uir_status status = uir_module_parse(allocator, &diagnostics, source, strlen(source), of->title, NULL, &module);
    if (status == UIR_STATUS_OK && !strstr(of->input, "= group(")) status = uir_fuse(module, NULL, &diagnostics);
    if (status == UIR_STATUS_OK)
        graph = *uir_graph_get(module, module->main);
    else
        printf("%s: %s\n", of->title, diagnostics.first ? diagnostics.first->message : "?");
    for (uint32_t n = 0; n < graph.nodes.count; n++) {
        if (uir_node_get(module, graph.nodes.data[n])->op != UIR_OP_GROUP) continue;
        good = check_group(of, machine, allocator, module, graph.nodes.data[n], show);
        break;
    }
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
    return good;
}

static bool check(golden_case *of, bool show) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_cpu_device cpu;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_status status = uir_cpu_describe(golden_get(of, "machine"), &diagnostics, &cpu);
    uir_diagnostics_deinit(&diagnostics);
    if (status != UIR_STATUS_OK) return false;
    for (uint32_t i = 0; i < cpu.machine.space_count; i++)
        if (!strcmp(cpu.machine.spaces[i].name, "sram"))
            cpu.machine.spaces[i].capacity = cpu.machine.spaces[i].working_set =
                strtoull(golden_get(of, "KiB"), NULL, 10) << 10;
    return (choice_is_function(of->input) ? check_function : check_graph)(of, &cpu.machine, &allocator, show);
}

int main(int argc, char **argv) {
    bool bless = argc > 1 && !strcmp(argv[1], "--bless");
    const char *only = argc > 1 && !bless ? argv[1] : NULL;
    golden_file file = golden_read(bless && argc > 2 ? argv[2] : CHOICES, "choice");
    uint32_t passed = 0, failed = 0;
    for (int i = 0; i < file.count; i++) {
        if (only && strcmp(only, file.cases[i].title) != 0) continue;
        if (check(&file.cases[i], only != NULL))
            passed++;
        else
            failed++;
    }
    if (bless) golden_write(&file);
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    golden_free(&file);
    return failed != 0 && !bless;
}
