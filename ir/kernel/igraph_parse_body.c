/* Reads the body of a kernel: the header (sizes, tiling function, pointers), then the phases and their trees. */
#include "ir/kernel/igraph_parse.h"

#include <stdio.h>

/* ---- conditions ---- */
static bool at_call(const uir_iparser *p, const char *name) {
    return uir_tokenizer_is(p->tokens, name) && p->tokens->at < p->tokens->end && *p->tokens->at == '(';
}

static uir_status parse_end_atom(uir_iparser *p, uir_iatom *atom) {
    atom->kind = uir_tokenizer_is(p->tokens, "first") ? UIR_IATOM_FIRST : UIR_IATOM_LAST;
    uir_tokenizer_advance(p->tokens);
    UIR_TRY(uir_tokenizer_expect(p->tokens, "("));
    const uir_token *name = &p->tokens->current;
    uint32_t symbol = name->kind == UIR_TOKEN_NAME ? uir_iparse_find(p, name->text, name->length) : UINT32_MAX;
    if (symbol == UINT32_MAX || p->igraph->symbols.data[symbol].kind != UIR_ISYMBOL_LOOP)
        return uir_tokenizer_error(p->tokens, "first() and last() expect the name of an enclosing loop");
    atom->loop = symbol;
    uir_tokenizer_advance(p->tokens);
    return uir_tokenizer_expect(p->tokens, ")");
}

static uir_status parse_relation(uir_iparser *p, uir_condition *out) {
    UIR_TRY(uir_iparse_dim(p, &out->left));
    for (int r = UIR_RELATION_EQ; r <= UIR_RELATION_GE; r++) {
        if (!uir_tokenizer_accept(p->tokens, uir_relation_text((uir_relation)r))) continue;
        out->relation = (uir_relation)r;
        return uir_iparse_dim(p, &out->right);
    }
    return uir_tokenizer_error(p->tokens, "expected a relation: == != < <= > >=");
}

static uir_status iparse_guard(uir_iparser *p, uir_iguard *out_guard) {
    uir_iatom atoms[UIR_IGRAPH_MAX_ATOMS] = {{0}};
    uint32_t count = 0;
    do {
        if (count == UIR_IGRAPH_MAX_ATOMS)
            return uir_tokenizer_error(p->tokens, "a condition has at most %d parts", UIR_IGRAPH_MAX_ATOMS);
        uir_iatom *atom = &atoms[count++];
        atom->negated = uir_tokenizer_accept(p->tokens, "not");
        if (at_call(p, "first") || at_call(p, "last"))
            UIR_TRY(parse_end_atom(p, atom));
        else if (atom->negated)
            return uir_tokenizer_error(p->tokens,
                                       "'not' is only allowed before first() or last(); invert the relation instead");
        else
            UIR_TRY(parse_relation(p, &atom->condition));
    } while (uir_tokenizer_accept(p->tokens, "and"));
    out_guard->count = count;
    UIR_TRY_ALLOCATE(out_guard->atoms, uir_arena_copy(&p->igraph->arena, atoms, count * sizeof *atoms));
    return UIR_STATUS_OK;
}

/* `when guard` if it is there; else no atoms. */
static uir_status iparse_when(uir_iparser *p, uir_iguard *out_guard) {
    *out_guard = (uir_iguard){0};
    return uir_tokenizer_accept(p->tokens, "when") ? iparse_guard(p, out_guard) : UIR_STATUS_OK;
}

/* ---- header ---- */
/* `in LEAST..GREATEST`, `mult N`, both or neither. */
static uir_status parse_facts(uir_iparser *p, uir_symbol_facts *facts, bool *out_given) {
    bool range = uir_tokenizer_accept(p->tokens, "in");
    if (range) {
        UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &facts->min));
        UIR_TRY(uir_tokenizer_expect(p->tokens, ".."));
        if (p->tokens->current.kind == UIR_TOKEN_INTEGER) UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &facts->max));
    }
    bool multiple = uir_tokenizer_accept(p->tokens, "mult");
    if (multiple) UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &facts->multiple_of));
    *out_given = range || multiple;
    if (facts->min < 0 || facts->max < facts->min || facts->multiple_of < 1)
        return uir_tokenizer_error(
            p->tokens,
            "the facts before this allow no size: a range is LEAST..GREATEST, 0 or more; mult is at least 1");
    return UIR_STATUS_OK;
}

/* Facts are those of every name before them in the row that has none of its own: `dim M, N in 0..9, K`. */
static uir_status parse_sizes(uir_iparser *p, uir_isymbol_kind kind) {
    uir_igraph *g = p->igraph;
    uint32_t first = g->symbols.count; /* of the names that wait for facts */
    do {
        uir_token name;
        uint32_t symbol;
        UIR_TRY(uir_iparse_expect_new_name(p, kind == UIR_ISYMBOL_DIM ? "a dim" : "a tile", &name));
        if (kind == UIR_ISYMBOL_DIM && uir_tokenizer_accept(p->tokens, "=")) {
            uir_dim value;
            UIR_TRY(uir_iparse_dim(p, &value));
            UIR_TRY(uir_iparse_add_symbol(p, &name, UIR_ISYMBOL_CONSTANT, NULL, value, &symbol));
            first = g->symbols.count;
            continue;
        }
        uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
        bool given;
        if (kind == UIR_ISYMBOL_TILE) facts.min = 1;
        UIR_TRY(parse_facts(p, &facts, &given));
        if (kind == UIR_ISYMBOL_TILE && facts.min < 1) return uir_tokenizer_error(p->tokens, "a tile is at least 1");
        UIR_TRY(uir_iparse_add_symbol(p, &name, kind, &facts, UIR_DIM_NONE, &symbol));
        for (; given && first < g->symbols.count; first++)
            uir_dims_set_symbol_facts(g->dims, g->symbols.data[first].symbol, facts);
    } while (uir_tokenizer_accept(p->tokens, ","));
    return UIR_STATUS_OK;
}

static uir_status parse_let(uir_iparser *p, uint32_t *out_symbol) {
    uir_token name;
    uir_dim value;
    UIR_TRY(uir_iparse_expect_new_name(p, "an expression", &name));
    UIR_TRY(uir_tokenizer_expect(p->tokens, "="));
    UIR_TRY(uir_iparse_dim(p, &value));
    return uir_iparse_add_symbol(p, &name, UIR_ISYMBOL_LET, NULL, value, out_symbol);
}

static uir_status parse_candidate(uir_iparser *p) {
    uir_igraph *g = p->igraph;
    uir_icandidate candidate = {.line = p->tokens->previous.line};
    uint32_t tile_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE), given = 0;
    UIR_TRY_ALLOCATE(candidate.tiles, uir_arena_allocate_array(&g->arena, tile_count + 1, sizeof(uir_dim)));
    do {
        const uir_token *name = &p->tokens->current;
        uint32_t symbol = name->kind == UIR_TOKEN_NAME ? uir_iparse_find(p, name->text, name->length) : UINT32_MAX;
        if (symbol == UINT32_MAX || g->symbols.data[symbol].kind != UIR_ISYMBOL_TILE)
            return uir_tokenizer_error(p->tokens, "expected the name of a tile");
        uint32_t tile = 0;
        for (uint32_t i = 0; i < symbol; i++) tile += g->symbols.data[i].kind == UIR_ISYMBOL_TILE;
        if (candidate.tiles[tile].id) return uir_tokenizer_error(p->tokens, "this tile is set twice");
        uir_tokenizer_advance(p->tokens);
        UIR_TRY(uir_tokenizer_expect(p->tokens, "="));
        UIR_TRY(uir_iparse_dim(p, &candidate.tiles[tile]));
        given++;
    } while (uir_tokenizer_accept(p->tokens, ","));
    if (given != tile_count)
        return uir_tokenizer_error(p->tokens, "a candidate sets every tile; declare tiles before it");
    UIR_TRY(iparse_when(p, &candidate.guard));
    if (uir_tokenizer_accept(p->tokens, "cost")) {
        UIR_TRY(uir_iparse_dim(p, &candidate.cost));
        if (uir_tokenizer_accept(p->tokens, "units")) UIR_TRY(uir_iparse_dim(p, &candidate.units));
    }
    return uir_vector_push(&g->arena, &g->candidates, candidate);
}

static uir_status parse_layout_dim(void *user, uir_dim *out_dim) {
    return uir_iparse_dim(user, out_dim);
}

static const char *space_name(const void *user, uint32_t index) {
    return ((const uir_machine *)user)->spaces[index].name;
}

/* x2 by l */
static bool parse_instances(const uir_token *token, uint32_t *out) {
    if (token->kind != UIR_TOKEN_NAME || token->length < 2 || token->length > 3 || token->text[0] != 'x') return false;
    *out = 0;
    for (size_t i = 1; i < token->length; i++) {
        if (token->text[i] < '0' || token->text[i] > '9') return false;
        *out = *out * 10 + (uint32_t)(token->text[i] - '0');
    }
    return true;
}

/* What is said of pointers before it is declared: `by` a loop, `over` a pointer. */
typedef struct pointer_options {
    bool by, over;
    uir_token loop, place;
} pointer_options;

static uir_status parse_pointer_options(uir_iparser *p, uir_ipointer *pointer, pointer_options *o) {
    static const struct {
        const char *text;
        uir_ipointer_role role;
    } roles[] = {
        {"in", UIR_IPOINTER_IN}, {"out", UIR_IPOINTER_OUT}, {"const", UIR_IPOINTER_CONST}, {"work", UIR_IPOINTER_WORK}};
    *o = (pointer_options){.by = false};
    for (bool again = true; again;) {
        again = false;
        if (!o->by && parse_instances(&p->tokens->current, &pointer->instances)) {
            if (pointer->instances < 1) return uir_tokenizer_error(p->tokens, "a buffer has at least one instance");
            uir_tokenizer_advance(p->tokens);
            UIR_TRY(uir_tokenizer_expect(p->tokens, "by"));
            if (p->tokens->current.kind != UIR_TOKEN_NAME)
                return uir_tokenizer_error(p->tokens, "expected the name of a loop");
            o->loop = p->tokens->current;
            o->by = again = true;
            uir_tokenizer_advance(p->tokens);
        }
        if (!o->over && uir_tokenizer_accept(p->tokens, "over")) {
            if (p->tokens->current.kind != UIR_TOKEN_PERCENT) return uir_tokenizer_error(p->tokens, "expected %%name");
            o->place = p->tokens->current;
            o->over = again = true;
            uir_tokenizer_advance(p->tokens);
        }
        for (size_t i = 0; pointer->role == UIR_IPOINTER_LOCAL && i < sizeof roles / sizeof *roles; i++) {
            if (!uir_tokenizer_accept(p->tokens, roles[i].text)) continue;
            pointer->role = roles[i].role;
            again = true;
            if (pointer->role == UIR_IPOINTER_WORK) continue;
            int64_t index;
            UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &index));
            if (index < 0 || index > 1023) return uir_tokenizer_error(p->tokens, "an argument's number is 0..1023");
            pointer->role_index = (uint32_t)index;
        }
        if (pointer->role == UIR_IPOINTER_OUT && pointer->tied == UINT32_MAX &&
            uir_tokenizer_accept(p->tokens, "tied")) {
            UIR_TRY(uir_iparse_pointer(p, &pointer->tied));
            again = true;
        }
    }
    return UIR_STATUS_OK;
}

static uir_status parse_pointers(uir_iparser *p) {
    uir_token names[16];
    uint32_t count = 0;
    uir_igraph *g = p->igraph;
    do {
        if (p->tokens->current.kind != UIR_TOKEN_PERCENT) return uir_tokenizer_error(p->tokens, "expected %%name");
        if (count == 16) return uir_tokenizer_error(p->tokens, "a row declares at most 16 pointers");
        names[count++] = p->tokens->current;
        uir_tokenizer_advance(p->tokens);
    } while (uir_tokenizer_accept(p->tokens, ","));
    UIR_TRY(uir_tokenizer_expect(p->tokens, ":"));
    uir_ipointer pointer = {.role = UIR_IPOINTER_LOCAL, .instances = 1};
    pointer.by_loop = pointer.tied = pointer.over = UINT32_MAX;
    pointer.line = names[0].line;

    const uir_token *token = &p->tokens->current;
    if (token->kind != UIR_TOKEN_NAME)
        return uir_tokenizer_error(p->tokens, "expected a memory space of %s", g->machine->name);
    int space = uir_machine_find_space(g->machine, token->text, token->length);
    if (space < 0) {
        char what[96];
        snprintf(what, sizeof what, "memory space of %s", g->machine->name);
        return uir_iparse_no_name(p, token, what, space_name, g->machine, g->machine->space_count);
    }
    pointer.space = (uint32_t)space;
    uir_tokenizer_advance(p->tokens);
    if (token->kind != UIR_TOKEN_NAME || !uir_dtype_from_name(token->text, token->length, &pointer.dtype))
        return uir_tokenizer_error(p->tokens, "expected a dtype such as f32");
    uir_tokenizer_advance(p->tokens);
    UIR_TRY(uir_tokenizer_expect(p->tokens, "["));
    while (!uir_tokenizer_accept(p->tokens, "]")) {
        if (pointer.rank) UIR_TRY(uir_tokenizer_expect(p->tokens, ","));
        if (pointer.rank == UIR_IGRAPH_MAX_RANK)
            return uir_tokenizer_error(p->tokens, "a pointer has at most %d dims", UIR_IGRAPH_MAX_RANK);
        UIR_TRY(uir_iparse_dim(p, &pointer.extents[pointer.rank++]));
    }
    UIR_TRY(uir_layout_parse(p->tokens, parse_layout_dim, p, pointer.extents, pointer.rank, &pointer.layout));
    pointer_options options;
    UIR_TRY(parse_pointer_options(p, &pointer, &options));
    if (uir_igraph_finish_pointer(g, &pointer) != UIR_STATUS_OK)
        return uir_tokenizer_error_at(p->tokens, &names[0], "the size of %%%.*s overflows 64 bits",
                                      (int)names[0].length, names[0].text);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = uir_names_get(&p->pointers, names[i].text, names[i].length), index = g->pointers.count;
        if (other != UIR_NAMES_NONE)
            return uir_tokenizer_error_at(p->tokens, &names[i], "%%%s is declared twice", g->pointers.data[other].name);
        UIR_TRY_ALLOCATE(pointer.name, uir_arena_copy_string(&g->arena, names[i].text, names[i].length));
        UIR_TRY(uir_names_put(&p->pointers, p->scratch, names[i].text, names[i].length, index));
        if (options.by) UIR_TRY(uir_vector_push(p->scratch, &p->by, ((struct uir_iparse_by){index, options.loop})));
        if (options.over)
            UIR_TRY(uir_vector_push(p->scratch, &p->over, ((struct uir_iparse_by){index, options.place})));
        UIR_TRY(uir_vector_push(&g->arena, &g->pointers, pointer));
    }
    return UIR_STATUS_OK;
}

static uir_status parse_header(uir_iparser *p) {
    for (;;) {
        if (uir_tokenizer_accept(p->tokens, "dim")) {
            UIR_TRY(parse_sizes(p, UIR_ISYMBOL_DIM));
        } else if (uir_tokenizer_accept(p->tokens, "tile")) {
            UIR_TRY(parse_sizes(p, UIR_ISYMBOL_TILE));
        } else if (uir_tokenizer_accept(p->tokens, "let")) {
            uint32_t symbol;
            UIR_TRY(parse_let(p, &symbol));
        } else if (uir_tokenizer_accept(p->tokens, "require")) {
            do {
                uir_condition condition;
                UIR_TRY(parse_relation(p, &condition));
                UIR_TRY(uir_vector_push(&p->igraph->arena, &p->igraph->requires_, condition));
            } while (uir_tokenizer_accept(p->tokens, "and"));
        } else if (uir_tokenizer_accept(p->tokens, "candidate")) {
            UIR_TRY(parse_candidate(p));
        } else if (uir_tokenizer_accept(p->tokens, "ptr")) {
            UIR_TRY(parse_pointers(p));
        } else {
            return UIR_STATUS_OK;
        }
    }
}

/* ---- the tree ---- */
static uir_status parse_block(uir_iparser *p, uint32_t *out_first);

static bool has_named_ends(const uir_iparser *p, const uir_token *name) {
    return uir_names_get(&p->ends, name->text, name->length) != UIR_NAMES_NONE;
}

static uir_status parse_loop(uir_iparser *p, uir_iitem *item) {
    uir_token name;
    uir_igraph *g = p->igraph;
    UIR_TRY(uir_iparse_expect_new_name(p, "a loop", &name));
    uint32_t other = uir_names_get(&p->loops, name.text, name.length);
    if (other != UIR_NAMES_NONE)
        return uir_tokenizer_error_at(p->tokens, &name,
                                      "another loop is called '%s'; names of loops are unique in a kernel",
                                      g->symbols.data[other].name);
    UIR_TRY(uir_tokenizer_expect(p->tokens, ":"));
    UIR_TRY(uir_iparse_dim(p, &item->extent));
    item->named_ends = has_named_ends(p, &name);
    uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
    facts.bound = item->named_ends ? uir_dim_max(g->dims, uir_dim_const(g->dims, 1), item->extent) : item->extent;
    UIR_TRY(uir_iparse_add_symbol(p, &name, UIR_ISYMBOL_LOOP, &facts, item->extent, &item->symbol));
    UIR_TRY(uir_names_put(&p->loops, p->scratch, name.text, name.length, item->symbol));
    UIR_TRY(iparse_when(p, &item->guard));
    return parse_block(p, &item->first_child);
}

static uir_status parse_index(uir_iparser *p, uir_iitem *item) {
    static const char *const modes[] = {"clamp", "wrap", "skip"};
    uir_token name;
    uir_dim last;
    uir_dims *dims = p->igraph->dims;
    UIR_TRY(uir_iparse_expect_new_name(p, "an index", &name));
    UIR_TRY(uir_tokenizer_expect(p->tokens, "="));
    UIR_TRY(uir_iparse_slice(p, &item->index.slice));
    UIR_TRY(uir_tokenizer_expect(p->tokens, "in"));
    int64_t zero;
    UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &zero));
    if (zero != 0) return uir_tokenizer_error(p->tokens, "an index is in 0..LAST");
    UIR_TRY(uir_tokenizer_expect(p->tokens, ".."));
    UIR_TRY(uir_iparse_dim(p, &last));
    item->index.limit = uir_dim_add(dims, last, uir_dim_const(dims, 1));
    if (!item->index.limit.id) return uir_tokenizer_error(p->tokens, "the range before this overflows 64 bits");
    for (int mode = UIR_INDEX_CLAMP; mode <= UIR_INDEX_SKIP; mode++) {
        if (!uir_tokenizer_accept(p->tokens, modes[mode])) continue;
        item->index.mode = (uir_index_mode)mode;
        return uir_iparse_add_symbol(p, &name, UIR_ISYMBOL_INDEX, NULL, item->index.limit, &item->symbol);
    }
    return uir_tokenizer_error(p->tokens, "expected clamp, wrap or skip");
}

static uir_status parse_run(uir_iparser *p, uir_iitem *item) {
    uir_vector(uint32_t) dead = {0};
    if (uir_tokenizer_accept(p->tokens, "dead")) {
        do {
            uint32_t pointer;
            UIR_TRY(uir_iparse_pointer(p, &pointer));
            UIR_TRY(uir_vector_push(&p->igraph->arena, &dead, pointer));
        } while (uir_tokenizer_accept(p->tokens, ","));
    }
    item->dead = dead.data;
    item->dead_count = dead.count;
    return parse_block(p, &item->first_child);
}

static uir_status parse_item(uir_iparser *p, uir_iitem *item) {
    item->line = p->tokens->current.line;
    if (uir_tokenizer_accept(p->tokens, "loop")) {
        item->kind = UIR_IITEM_LOOP;
        return parse_loop(p, item);
    }
    if (uir_tokenizer_accept(p->tokens, "if")) {
        item->kind = UIR_IITEM_IF;
        UIR_TRY(iparse_guard(p, &item->guard));
        return parse_block(p, &item->first_child);
    }
    if (uir_tokenizer_accept(p->tokens, "let")) {
        item->kind = UIR_IITEM_LET;
        return parse_let(p, &item->symbol);
    }
    if (uir_tokenizer_accept(p->tokens, "index")) {
        item->kind = UIR_IITEM_INDEX;
        return parse_index(p, item);
    }
    if (uir_tokenizer_accept(p->tokens, "run")) {
        item->kind = UIR_IITEM_RUN;
        return parse_run(p, item);
    }
    item->kind = UIR_IITEM_INSTRUCTION;
    uir_iinstruction instruction;
    UIR_TRY(uir_iparse_instruction(p, &instruction));
    UIR_TRY(iparse_when(p, &item->guard));
    item->instruction = p->igraph->instructions.count;
    return uir_vector_push(&p->igraph->arena, &p->igraph->instructions, instruction);
}

/* Items up to `end` ("}", or "on" for the bodies of a phase); names end with their block. */
static uir_status parse_items(uir_iparser *p, uint32_t *out_first) {
    uir_igraph *g = p->igraph;
    uint32_t previous = UINT32_MAX, visible = p->visible.count;
    *out_first = UINT32_MAX;
    if (++p->depth > UIR_IGRAPH_MAX_DEPTH)
        return uir_tokenizer_error(p->tokens, "blocks nest at most %d deep", UIR_IGRAPH_MAX_DEPTH);
    while (!uir_tokenizer_is(p->tokens, "}")) {
        if (g->items.count >= UIR_IGRAPH_MAX_ITEMS)
            return uir_tokenizer_error(p->tokens, "a kernel has at most %d items", UIR_IGRAPH_MAX_ITEMS);
        uint32_t at = g->items.count;
        uir_iitem item = {.first_child = UINT32_MAX, .next = UINT32_MAX, .symbol = UINT32_MAX};
        UIR_TRY(uir_vector_push(&g->arena, &g->items, item));
        uint32_t known = p->visible.count;
        UIR_TRY(parse_item(p, &item));
        if (item.kind == UIR_IITEM_LOOP) uir_iparse_hide(p, known); /* its index is known in its body alone */
        g->items.data[at] = item;
        if (previous == UINT32_MAX)
            *out_first = at;
        else
            g->items.data[previous].next = at;
        previous = at;
    }
    uir_iparse_hide(p, visible);
    p->depth--;
    return UIR_STATUS_OK;
}

static uir_status parse_block(uir_iparser *p, uint32_t *out_first) {
    UIR_TRY(uir_tokenizer_expect(p->tokens, "{"));
    UIR_TRY(parse_items(p, out_first));
    return uir_tokenizer_expect(p->tokens, "}");
}

static uir_status parse_parallel(uir_iparser *p, uir_iphase *phase) {
    uint32_t without_scope = 0;
    do {
        uir_token name;
        if (phase->parallel_count == 4) return uir_tokenizer_error(p->tokens, "a phase has at most 4 parallel axes");
        uir_iparallel *parallel = &phase->parallel[phase->parallel_count++];
        UIR_TRY(uir_iparse_expect_new_name(p, "a parallel axis", &name));
        UIR_TRY(uir_tokenizer_expect(p->tokens, ":"));
        UIR_TRY(uir_iparse_dim(p, &parallel->extent));
        UIR_TRY(uir_iparse_add_symbol(p, &name, UIR_ISYMBOL_PARALLEL, NULL, parallel->extent, &parallel->symbol));
        bool unit = uir_tokenizer_is(p->tokens, "unit"), group = uir_tokenizer_is(p->tokens, "group");
        if (!unit && !group) continue;
        uir_tokenizer_advance(p->tokens);
        while (without_scope < phase->parallel_count)
            phase->parallel[without_scope++].scope = group ? UIR_SCOPE_GROUP : UIR_SCOPE_UNIT;
    } while (uir_tokenizer_accept(p->tokens, ","));
    if (without_scope < phase->parallel_count)
        return uir_tokenizer_error(p->tokens, "expected 'group' or 'unit' after the parallel axes");
    return UIR_STATUS_OK;
}

static const char *unit_kind_name(const void *user, uint32_t index) {
    return ((const uir_machine *)user)->unit_kinds[index];
}

static uir_status parse_body(uir_iparser *p, uir_iphase *phase) {
    const uir_machine *machine = p->igraph->machine;
    if (phase->body_count == UIR_MACHINE_MAX_UNIT_KINDS)
        return uir_tokenizer_error(p->tokens, "too many bodies in a phase");
    uir_ibody *body = &phase->bodies[phase->body_count++];
    *body = (uir_ibody){.unit_symbol = UINT32_MAX, .unit_count = 1, .first_item = UINT32_MAX};
    const uir_token *token = &p->tokens->current;
    if (token->kind != UIR_TOKEN_NAME)
        return uir_tokenizer_error(p->tokens, "expected a kind of unit of %s", machine->name);
    int kind = uir_machine_find_unit_kind(machine, token->text, token->length);
    if (kind < 0) {
        char what[96];
        snprintf(what, sizeof what, "kind of unit of %s", machine->name);
        return uir_iparse_no_name(p, token, what, unit_kind_name, machine, machine->unit_kind_count);
    }
    body->unit_kind = (uint32_t)kind;
    uir_tokenizer_advance(p->tokens);
    uint32_t visible = p->visible.count;
    if (!uir_tokenizer_is(p->tokens, "{")) {
        uir_token name;
        int64_t count;
        UIR_TRY(uir_iparse_expect_new_name(p, "a unit's index", &name));
        UIR_TRY(uir_tokenizer_expect(p->tokens, ":"));
        UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &count));
        if (count < 1 || count > 1024) return uir_tokenizer_error(p->tokens, "a group has 1..1024 units");
        body->unit_count = (uint32_t)count;
        UIR_TRY(uir_iparse_add_symbol(p, &name, UIR_ISYMBOL_PARALLEL, NULL, uir_dim_const(p->igraph->dims, count),
                                      &body->unit_symbol));
    }
    UIR_TRY(parse_block(p, &body->first_item));
    uir_iparse_hide(p, visible);
    return UIR_STATUS_OK;
}

static uir_status parse_phase(uir_iparser *p) {
    uir_iphase phase = {0};
    uint32_t visible = p->visible.count;
    UIR_TRY(uir_tokenizer_expect(p->tokens, "{"));
    if (uir_tokenizer_accept(p->tokens, "parallel")) UIR_TRY(parse_parallel(p, &phase));
    phase.has_kinds = uir_tokenizer_is(p->tokens, "on");
    if (phase.has_kinds) {
        while (uir_tokenizer_accept(p->tokens, "on")) UIR_TRY(parse_body(p, &phase));
    } else {
        phase.body_count = 1;
        phase.bodies[0] = (uir_ibody){.unit_symbol = UINT32_MAX, .unit_count = 1};
        UIR_TRY(parse_items(p, &phase.bodies[0].first_item));
    }
    UIR_TRY(uir_tokenizer_expect(p->tokens, "}"));
    uir_iparse_hide(p, visible);
    return uir_vector_push(&p->igraph->arena, &p->igraph->phases, phase);
}

/* ---- the kernel ---- */
/* Loops whose ends are named run at least once, which their index's range must know before their bodies are read. */
static uir_status find_named_ends(uir_iparser *p) {
    uir_tokenizer ahead = *p->tokens;
    ahead.diagnostics = NULL;
    while (ahead.current.kind != UIR_TOKEN_END && ahead.current.kind != UIR_TOKEN_ERROR &&
           !uir_tokenizer_is(&ahead, "igraph")) {
        bool end = uir_tokenizer_accept(&ahead, "first") || uir_tokenizer_accept(&ahead, "last");
        if (!end) {
            uir_tokenizer_advance(&ahead);
            continue;
        }
        if (!uir_tokenizer_accept(&ahead, "(") || ahead.current.kind != UIR_TOKEN_NAME) continue;
        UIR_TRY(uir_names_put(&p->ends, p->scratch, ahead.current.text, ahead.current.length, 0));
    }
    return UIR_STATUS_OK;
}

static uir_status resolve_buffers(uir_iparser *p) {
    uir_igraph *g = p->igraph;
    for (uint32_t i = 0; i < p->by.count; i++) {
        uir_ipointer *pointer = &g->pointers.data[p->by.data[i].pointer];
        const uir_token *name = &p->by.data[i].name;
        pointer->by_loop = uir_names_get(&p->loops, name->text, name->length);
        if (pointer->by_loop == UINT32_MAX)
            return uir_tokenizer_error_at(p->tokens, name, "unknown loop '%.*s'", (int)name->length, name->text);
    }
    return UIR_STATUS_OK;
}

static uir_status resolve_places(uir_iparser *p) {
    uir_igraph *g = p->igraph;
    for (uint32_t i = 0; i < p->over.count; i++) {
        const uir_token *name = &p->over.data[i].name;
        uint32_t *over = &g->pointers.data[p->over.data[i].pointer].over;
        *over = uir_names_get(&p->pointers, name->text, name->length);
        if (*over == UINT32_MAX)
            return uir_tokenizer_error_at(p->tokens, name, "unknown pointer '%%%.*s'", (int)name->length, name->text);
    }
    return UIR_STATUS_OK;
}

uir_status uir_iparse_kernel_body(uir_iparser *p) {
    UIR_TRY(find_named_ends(p));
    UIR_TRY(uir_tokenizer_expect(p->tokens, "{"));
    UIR_TRY(parse_header(p));
    if (!uir_tokenizer_is(p->tokens, "phase") && !uir_tokenizer_is(p->tokens, "}"))
        return uir_tokenizer_error(p->tokens, "expected dim, tile, let, require, candidate, ptr, phase or '}'");
    UIR_TRY(resolve_places(p));
    while (uir_tokenizer_accept(p->tokens, "phase")) UIR_TRY(parse_phase(p));
    if (!uir_tokenizer_is(p->tokens, "}")) return uir_tokenizer_error(p->tokens, "expected phase or '}'");
    uir_tokenizer_advance(p->tokens);
    return resolve_buffers(p);
}
