/* A kernel's tiling function as a function of C, for the host. */
#include "backends/source/source.h"

typedef struct choice {
    uir_c_writer *w;
    bool *tiled; /* per symbol: a let that uses a tile */
    bool found;
} choice;

static void find_tile(void *user, uir_symbol symbol) {
    choice *c = user;
    c->found |= c->w->igraph->symbols.data[symbol.id].kind == UIR_ISYMBOL_TILE || c->tiled[symbol.id];
}

static void declare(choice *c, uint32_t symbol, uir_dim value) {
    uir_c_line(c->w, "UIR_LET %s = %s;", c->w->symbols[symbol], uir_c_dim(c->w, value));
}

/* The names of the header whose values need no tile, or those that do; dims are there already. */
static void declare_lets(choice *c, bool tiled) {
    const uir_igraph *g = c->w->igraph;
    for (uint32_t i = 0; i < g->symbols.count; i++) {
        const uir_isymbol *s = &g->symbols.data[i];
        bool named = s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE || uir_c_is_header_let(g, i);
        if (!named) continue;
        c->found = false;
        uir_dim_visit_symbols(g->dims, s->definition, find_tile, c);
        c->tiled[i] = c->found;
        if (c->found == tiled) declare(c, i, s->definition);
    }
}

/* The condition that a symbol's value is one that its declaration allows. */
static const char *allows(choice *c, uint32_t symbol) {
    const uir_igraph *g = c->w->igraph;
    uir_symbol_facts facts = uir_dims_symbol_facts(g->dims, g->symbols.data[symbol].symbol);
    const char *name = c->w->symbols[symbol];
    return uir_c_format(c->w, "%s >= %lld && %s <= %s && %s %% %lld == 0", name, (long long)facts.min, name,
                        facts.max == INT64_MAX ? "INT64_MAX" : uir_c_integer(c->w, facts.max), name,
                        (long long)facts.multiple_of);
}

static const char *requires_of(choice *c) {
    const uir_igraph *g = c->w->igraph;
    const char *text = "!uir_undefined";
    for (uint32_t i = 0; i < g->requires_.count; i++) {
        uir_iatom atom = {.kind = UIR_IATOM_RELATION, .condition = g->requires_.data[i]};
        text = uir_c_format(c->w, "%s && %s", uir_c_condition(c->w, &(uir_iguard){&atom, 1}), text);
    }
    return text;
}

/* Takes a row of the table where it is valid and cheaper than what was found; `candidate` NULL: there is nothing to
 * choose. */
static void try_candidate(choice *c, const uir_icandidate *candidate) {
    uir_c_writer *w = c->w;
    const uir_igraph *g = w->igraph;
    const char *when = candidate ? uir_c_condition(w, &candidate->guard) : NULL, *fits = "1", *take = "";
    uint32_t tile = 0;
    uir_c_open(w, "%s", "");
    uir_c_line(w, "uir_undefined = 0;");
    declare_lets(c, false);
    uir_c_open(w, "if (%s)", when ? when : "1");
    for (uint32_t i = 0; i < g->symbols.count && candidate; i++) {
        if (g->symbols.data[i].kind != UIR_ISYMBOL_TILE) continue;
        declare(c, i, candidate->tiles[tile]);
        take = uir_c_format(w, "%s, tiles[%u] = %s", take, tile++, w->symbols[i]);
        fits = uir_c_format(w, "%s && %s", fits, allows(c, i));
    }
    declare_lets(c, true);
    uir_c_line(w, "UIR_LET cost = uir_shared_cost(%s, %s, workers);",
               candidate && candidate->cost.id ? uir_c_dim(w, candidate->cost) : "0",
               candidate && candidate->units.id ? uir_c_dim(w, candidate->units) : "1");
    uir_c_line(w, "if (%s && %s && (!found || cost < best)) found = 1, best = cost%s;", fits, requires_of(c), take);
    uir_c_close(w);
    uir_c_close(w);
}

void uir_c_choose(uir_c_writer *w, const char *name) {
    const uir_igraph *g = w->igraph;
    choice c = {.w = w, .tiled = uir_arena_allocate_array(&w->arena, g->symbols.count + 1, sizeof *c.tiled)};
    uint32_t dims = 0;
    if (!c.tiled) {
        w->failed = true;
        return;
    }
    uir_c_open(w, "int %s(const int64_t *sizes, int64_t workers, int64_t *tiles)", name);
    uir_c_line(w, "int found = 0;");
    uir_c_line(w, "int64_t best = 0;");
    for (uint32_t i = 0; i < g->symbols.count; i++) {
        if (g->symbols.data[i].kind != UIR_ISYMBOL_DIM) continue;
        uir_c_line(w, "UIR_LET %s = sizes[%u];", w->symbols[i], dims++);
        uir_c_line(w, "if (!(%s)) return 0;", allows(&c, i));
    }
    if (!uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE)) try_candidate(&c, NULL);
    for (uint32_t i = 0; i < g->candidates.count && uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE); i++)
        try_candidate(&c, &g->candidates.data[i]);
    uir_c_line(w, "(void)sizes, (void)workers, (void)tiles, (void)best;");
    uir_c_line(w, "return found;");
    uir_c_close(w);
}
