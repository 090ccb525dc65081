/* Steps that the tactics share: inlining, tiles, what is computed where, what lies on the chip. Each is made of
 * schedule primitives. */
#include "lower/tactics/tactics.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS,
    MOST_LOOPS = UIR_LOOP_MAX_ITERS,
    ROWS = 64,         /* rows of an index of the parallel axis, at most */
    MOST_ROWS = 65536, /* where each unit has an index */
    SHARING = 32, /* and at least, where all rows read something alike: what it costs to read is little beside them */
    CHEAP = 3,    /* instructions that are computed again rather than kept */
};

/* A refusal of a primitive is an answer; all else ends the tactic. */
uir_status uir_tactic_asked(uir_status status, bool *out_done) {
    *out_done = status == UIR_STATUS_OK;
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

/* ---- inline ---- */
/* Is a nest that is complete among those that write or read the tensor? */
static bool is_of_complete(const uir_tactic *t, uint32_t tensor) {
    uint32_t blocks[2 * MOST_BLOCKS], count = uir_schedule_writers(t->s, tensor, blocks, MOST_BLOCKS);
    count = count < MOST_BLOCKS ? count : MOST_BLOCKS;
    uint32_t readers = uir_schedule_readers(t->s, tensor, blocks + count, MOST_BLOCKS);
    count += readers < MOST_BLOCKS ? readers : MOST_BLOCKS;
    for (uint32_t i = 0; i < count; i++)
        if (uir_tactic_is_of_parts(t, blocks[i])) return true;
    return false;
}

/* What is loaded to be widened, NULL: nothing is. */
static const uir_loop_expression *find_widened(const uir_tactic *t, const uir_loop_expression *value) {
    if (value->kind != UIR_LOOP_CALL || value->op != UIR_OP_CAST) return NULL;
    const uir_loop_expression *stored = &t->f->expressions.data[value->arguments[0]];
    return stored->kind == UIR_LOOP_LOAD ? stored : NULL;
}

/* The block that makes a factor by widening what lies in memory; NONE: none does, or the product itself. */
static uint32_t find_widening(const uir_tactic *t, const uir_loop_expression *factor, uir_dtype *out_stored) {
    uint32_t writers[2];
    const uir_loop_expression *stored = find_widened(t, factor);
    *out_stored = stored ? stored->dtype : factor->dtype;
    if (factor->kind != UIR_LOOP_LOAD || !uir_tactic_is_temp(t, factor->load.tensor) ||
        uir_schedule_writers(t->s, factor->load.tensor, writers, 2) != 1)
        return UIR_LOOP_NONE;
    const uir_loop_statement *s = uir_tactic_only_statement(t, writers[0]);
    if (!s || s->kind != UIR_LOOP_STATEMENT_STORE) return UIR_LOOP_NONE;
    stored = find_widened(t, &t->f->expressions.data[s->values[0]]);
    if (!stored) return UIR_LOOP_NONE;
    *out_stored = stored->dtype;
    return writers[0];
}

static uir_status inline_widenings_of(uir_tactic *t, uint32_t update) {
    const uir_loop_statement *s = uir_tactic_only_statement(t, update);
    uir_dtype stored[2];
    uint32_t blocks[2];
    bool done;
    if (!s || s->kind != UIR_LOOP_STATEMENT_UPDATE || s->value_count != 1 ||
        !(uir_tactic_at(t, update)->uses >> UIR_LOOP_USE_CONTRACTION & 1))
        return UIR_STATUS_OK;
    const uir_loop_expression product = t->f->expressions.data[s->values[0]];
    uir_dtype sums = t->f->tensors.data[s->targets[0].tensor].dtype;
    if (product.kind != UIR_LOOP_CALL || product.op != UIR_OP_MUL) return UIR_STATUS_OK;
    for (uint32_t k = 0; k < 2; k++)
        blocks[k] = find_widening(t, &t->f->expressions.data[product.arguments[k]], &stored[k]);
    if (!uir_machine_multiplies_pair(t->machine, sums, stored[0], stored[1])) return UIR_STATUS_OK;
    for (uint32_t k = 0; k < 2; k++)
        if (blocks[k] != UIR_LOOP_NONE && (k == 0 || blocks[1] != blocks[0]))
            UIR_TRY(uir_tactic_asked(uir_schedule_inline(t->s, blocks[k]), &done));
    return UIR_STATUS_OK;
}

uir_status uir_tactic_inline_widenings(uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) UIR_TRY(inline_widenings_of(t, blocks[i]));
    return UIR_STATUS_OK;
}

/* What is used once goes into its user; so does what is cheaper to compute again than to keep. */
bool uir_tactic_wants_inline(const uir_tactic *t, uint32_t block) {
    const uir_loop_statement *s = uir_tactic_only_statement(t, block);
    bool as_index;
    if (!s || s->target_count != 1 || !uir_tactic_is_temp(t, s->targets[0].tensor)) return false;
    if (t->store_count && is_of_complete(t, s->targets[0].tensor)) return false;
    if (s->kind != UIR_LOOP_STATEMENT_STORE && s->kind != UIR_LOOP_STATEMENT_FINISH) return false;
    uint32_t uses = uir_tactic_count_uses(t, s->targets[0].tensor, &as_index);
    if (as_index) return false;
    if (uses <= 1 || s->kind == UIR_LOOP_STATEMENT_FINISH) return true;
    uir_tactic_cost c = {0};
    for (uint32_t v = 0; v < s->value_count; v++) uir_tactic_add_cost(t->f, s->values[v], &c);
    if (t->stream) return c.instructions <= 40;
    return !c.heavy && c.instructions <= CHEAP && c.loads <= 2;
}

uir_status uir_tactic_inline_all(uir_tactic *t) {
    for (bool again = true; again;) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        again = false;
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS && !again; i++) {
            if (!uir_tactic_wants_inline(t, blocks[i])) continue;
            UIR_TRY(uir_tactic_asked(uir_schedule_inline(t->s, blocks[i]), &again));
        }
    }
    return UIR_STATUS_OK;
}

/* ---- two-step reduce ---- */
bool uir_tactic_is_simple(const uir_loop_function *f, const uir_loop_monoid *m) {
    const uir_loop_expression *u = &f->expressions.data[m->update[0]];
    return m->state_count == 1 && u->kind == UIR_LOOP_CALL && u->argument_count == 2;
}

/* ---- tiles ---- */
/* Dims, tiles and tensors share one space of names in the text. */
static bool is_taken(const uir_tactic *t, const char *name) {
    for (uint32_t i = 0; i < t->f->sizes.count; i++)
        if (!strcmp(t->f->sizes.data[i].name, name)) return true;
    for (uint32_t i = 0; i < t->f->tiles.count; i++)
        if (!strcmp(t->f->tiles.data[i].name, name)) return true;
    for (uint32_t i = 0; i < t->f->tensors.count; i++)
        if (!strcmp(t->f->tensors.data[i].name, name)) return true;
    return false;
}

/* A tile size of the function. */
static uir_status add_tile(uir_tactic *t, int64_t most, uir_dim *out_dim, uint32_t *out_index) {
    char name[16];
    uir_loop_size tile;
    uir_symbol_facts facts = {1, most, 1, {0}};
    do snprintf(name, sizeof name, "t%u", t->names++);
    while (is_taken(t, name));
    UIR_TRY_ALLOCATE(tile.name, uir_arena_copy_string(&t->f->arena, name, strlen(name)));
    UIR_TRY(uir_dims_add_symbol(t->f->dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    *out_index = t->f->tiles.count;
    UIR_TRY(uir_vector_push(&t->f->arena, &t->f->tiles, tile));
    *out_dim = uir_dim_symbol(t->f->dims, tile.symbol);
    return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* The tiling function's only row so far gives the tile this value. */
static uir_status add_candidate(uir_tactic *t, uint32_t tile, uir_dim value) {
    uir_icandidate *row;
    if (!value.id) return UIR_STATUS_OUT_OF_MEMORY;
    if (!t->f->candidates.count) {
        uir_icandidate empty = {0};
        UIR_TRY_ALLOCATE(empty.tiles, uir_arena_allocate_array(&t->f->arena, 8, sizeof *empty.tiles));
        UIR_TRY(uir_vector_push(&t->f->arena, &t->f->candidates, empty));
    }
    row = &t->f->candidates.data[0];
    row->tiles[tile] = value;
    return UIR_STATUS_OK;
}

uir_dim uir_tactic_number(const uir_tactic *t, int64_t value) {
    return uir_dim_const(t->f->dims, value);
}

uir_dim uir_tactic_product_of(const uir_tactic *t, const uint32_t *loops, uint32_t count) {
    uir_dim product = uir_tactic_number(t, 1);
    for (uint32_t i = 0; i < count; i++) product = uir_dim_mul(t->f->dims, product, uir_tactic_at(t, loops[i])->extent);
    return product;
}

/* The tile whose value is told by `of`, which only the run knows: the one that there is, or a new one. */
static uir_status take_tile(uir_tactic *t, uir_dim of, int64_t most, uir_dim value, uir_dim *out_factor) {
    uint32_t tile;
    for (uint32_t i = 0; i < t->tile_count; i++) {
        *out_factor = t->tile[i];
        if (uir_dim_equal(t->tile_of[i], of)) return UIR_STATUS_OK;
    }
    if (t->tile_count == 8) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY(add_tile(t, most, out_factor, &tile));
    t->tile_of[t->tile_count] = of;
    t->tile[t->tile_count++] = *out_factor;
    return add_candidate(t, tile, value);
}

/* Rows of an index of the parallel axis: so many that there is enough to do, and not so many that units are idle. */
static uir_status row_tile(uir_tactic *t, uir_dim row_elements, uir_dim *out_factor) {
    uir_dims *dims = t->f->dims;
    int64_t value;
    int64_t least_rows = t->shares ? SHARING : 1;
    if (uir_dim_is_const(dims, row_elements, &value)) {
        int64_t rows = value >= UIR_TACTIC_TILE ? 1 : UIR_TACTIC_TILE / (value < 1 ? 1 : value);
        rows = rows < least_rows ? least_rows : rows;
        *out_factor = uir_tactic_number(t, rows > ROWS ? ROWS : rows);
        return UIR_STATUS_OK;
    }
    uir_dim least = uir_dim_max(dims, row_elements, uir_tactic_number(t, UIR_TACTIC_TILE / ROWS));
    return take_tile(t, row_elements, ROWS,
                     uir_dim_max(dims, uir_tactic_number(t, least_rows),
                                 uir_dim_floordiv(dims, uir_tactic_number(t, UIR_TACTIC_TILE), least)),
                     out_factor);
}

int64_t uir_tactic_count_units_apart(const uir_machine *machine) {
    int scratch = uir_machine_find_scratch(machine);
    if (scratch < 0 || machine->spaces[scratch].scope != UIR_SCOPE_UNIT) return 0;
    return uir_machine_count_units(machine, 0); /* the kind that does all but products */
}

/* Is some output made by pieces? That they cover all of it is not proved of such tiles. */
static bool has_pieces(const uir_tactic *t) {
    uint32_t writers[2];
    for (uint32_t i = 0; i < t->f->tensors.count; i++)
        if (t->f->tensors.data[i].role == UIR_LOOP_ROLE_OUT && uir_schedule_writers(t->s, i, writers, 2) > 1)
            return true;
    return false;
}

/* Rows of an index where each such unit has one: what all rows read alike it brings once. */
static uir_status even_tile(uir_tactic *t, const uint32_t *loops, uint32_t count, int64_t units, uir_dim *out_factor) {
    uir_dims *dims = t->f->dims;
    int64_t value;
    uir_dim most = uir_tactic_number(t, MOST_ROWS), one = uir_tactic_number(t, 1),
            share = uir_dim_ceildiv(dims, uir_tactic_product_of(t, loops, count), uir_tactic_number(t, units));
    uir_dim rows = uir_dim_max(dims, one, uir_dim_min(dims, share, most));
    if (!rows.id) return UIR_STATUS_OUT_OF_MEMORY;
    *out_factor = rows;
    return uir_dim_is_const(dims, rows, &value) ? UIR_STATUS_OK : take_tile(t, rows, MOST_ROWS, rows, out_factor);
}

bool uir_tactic_is_short(const uir_tactic *t, uir_dim extent, int64_t most) {
    int64_t low, high;
    uir_dim_bounds(t->f->dims, extent, &low, &high);
    return high <= most;
}

/* Outer loops become the parallel axes, as many as there may be; the last of them by tiles of `rows`. Gives the loop
 * that everything else is computed under. */
uir_status uir_tactic_bind_outer(uir_tactic *t, const uint32_t *loops, uint32_t count, uir_dim elements,
                                 uint32_t *out_at) {
    uint32_t last = count - 1, inner = loops[last], parallel = count > 4 ? 4 : count;
    bool done;
    *out_at = loops[last];
    if (count <= 4) {
        uir_dim factor;
        int64_t value, rows = 0, units = uir_tactic_count_units_apart(t->machine);
        bool even = units && !has_pieces(t);
        UIR_TRY(even ? even_tile(t, loops, count, units, &factor) : row_tile(t, elements, &factor));
        bool whole = uir_dim_is_const(t->f->dims, uir_tactic_at(t, loops[last])->extent, &rows) && rows <= ROWS;
        bool known = uir_dim_is_const(t->f->dims, factor, &value);
        whole = whole && (known ? rows <= value : !even);
        if (whole && !(t->shares && count == 1)) {
            parallel--; /* all of them at once */
        } else if (!known || value > 1) {
            UIR_TRY(uir_schedule_split(t->s, loops[last], factor, NULL, &inner));
            *out_at = inner;
        }
    }
    for (uint32_t i = 0; i < parallel; i++) {
        UIR_TRY(uir_tactic_asked(uir_schedule_set_kind(t->s, loops[i], UIR_LOOP_PARALLEL, NULL), &done));
        if (!done) break;
    }
    return UIR_STATUS_OK;
}

/* Does some operand lie in the same place for every round of the loop? */
void uir_tactic_find_sharing(uir_tactic *t, uint32_t loop) {
    for (uint32_t i = 0; i < t->f->tensors.count; i++) {
        uir_tactic_reading r = uir_tactic_find_reading(t, i, loop);
        t->shares = t->shares || (t->f->tensors.data[i].role == UIR_LOOP_ROLE_IN && r.spans && !r.moves);
    }
}

/* ---- slices ---- */
uir_status uir_tactic_vectorise(uir_tactic *t, uint32_t loop) {
    return uir_schedule_set_kind(t->s, loop, UIR_LOOP_VECTORISED, NULL);
}

/* ---- places ---- */
uint32_t uir_tactic_top_of(const uir_tactic *t, uint32_t statement) {
    for (uint32_t p = uir_schedule_parent(t->s, statement); p != UIR_LOOP_NONE; p = uir_schedule_parent(t->s, p))
        statement = p;
    return statement;
}

bool uir_tactic_is_under(const uir_tactic *t, uint32_t statement, uint32_t loop) {
    for (uint32_t p = uir_schedule_parent(t->s, statement); p != UIR_LOOP_NONE; p = uir_schedule_parent(t->s, p))
        if (p == loop) return true;
    return false;
}

/* All blocks but those under the loop, last first: what makes something for those comes under it as well. */
uir_status uir_tactic_compute_producers(uir_tactic *t, uint32_t loop) {
    uir_tactic_touched there = {0}, own = {0};
    for (bool again = true; again;) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        again = false;
        UIR_TRY(uir_tactic_find_touched(t, loop, &there));
        for (uint32_t i = count < MOST_BLOCKS ? count : MOST_BLOCKS; i > 0 && !again; i--) {
            uint32_t b = blocks[i - 1];
            const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, b)->first_child);
            if (uir_tactic_is_under(t, b, loop) || s->kind == UIR_LOOP_STATEMENT_INIT) continue;
            if (uir_tactic_is_of_parts(t, b)) continue;
            bool made = !uir_tactic_leaves(t, s->targets[0].tensor);
            UIR_TRY(uir_tactic_find_touched(t, b, &own));
            if (made && uir_tactic_feeds(t, &own, &there))
                UIR_TRY(uir_tactic_asked(uir_schedule_compute_at(t->s, b, loop), &again));
            else if (!made && uir_tactic_feeds(t, &there, &own))
                UIR_TRY(uir_tactic_asked(uir_schedule_reverse_compute_at(t->s, b, loop), &again));
        }
    }
    return UIR_STATUS_OK;
}

/* The loops of a block that are not around `loop`. */
uint32_t uir_tactic_own_loops(const uir_tactic *t, uint32_t block, uint32_t loop, uint32_t *out_loops) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS), own = 0;
    uint32_t from = 0;
    for (uint32_t i = 0; i < count; i++)
        if (loops[i] == loop) from = i + 1;
    for (uint32_t i = from; i < count; i++) out_loops[own++] = loops[i];
    return own;
}

/* Has each turn of the loop a state of its own? */
static bool has_own_state(const uir_tactic *t, uint32_t block, uint32_t loop) {
    const uir_loop_statement *b = uir_tactic_at(t, block), *s = uir_tactic_at(t, b->first_child);
    const uir_loop_access *state = &s->targets[0];
    for (uint32_t k = 0; k < b->iter_count; k++) {
        if (b->iters[k].reduce || !uir_tactic_mentions(t, b->iters[k].value, uir_tactic_at(t, loop)->symbol)) continue;
        for (uint32_t d = 0; d < t->f->tensors.data[state->tensor].rank; d++)
            if (uir_tactic_mentions(t, state->indices[d], b->iters[k].symbol)) return true;
    }
    return false;
}

/* Vectorises what a block computes at the tile: its last loop, and the one before it as well where two are. */
uir_status uir_tactic_vectorise_block(uir_tactic *t, uint32_t block, uint32_t loop) {
    uint32_t own[MOST_LOOPS], count = uir_tactic_own_loops(t, block, loop, own);
    for (uint32_t i = 0; i < count; i++)
        if (uir_tactic_at(t, own[i])->loop_kind == UIR_LOOP_VECTORISED) return UIR_STATUS_OK;
    if (!count) return UIR_STATUS_OK;
    bool done;
    uint32_t last = own[count - 1], others[2];
    if (uir_schedule_blocks(t->s, last, others, 2) > 1 || uir_tactic_decides_position(t, block, last))
        return UIR_STATUS_OK;
    const uir_loop_statement *first = uir_tactic_at(t, uir_tactic_at(t, block)->first_child);
    if (uir_schedule_is_reduce(t->s, last) && !uir_tactic_is_simple(t->f, &t->f->monoids.data[first->monoid]) &&
        !has_own_state(t, block, last))
        return UIR_STATUS_OK; /* step by step: what is left of a two-step reduction */
    bool sliced = t->stream || !t->reduces || uir_tactic_is_of_parts(t, block);
    if (sliced && !uir_tactic_is_short(t, uir_tactic_at(t, last)->extent, t->lanes)) {
        uint32_t inner;
        UIR_TRY(uir_tactic_asked(uir_schedule_split(t->s, last, uir_tactic_number(t, t->lanes), NULL, &inner), &done));
        if (done) last = inner;
    }
    return uir_tactic_asked(uir_tactic_vectorise(t, last), &done);
}

/* Is it made in one nest and read in another, with one that units share out among them or between? Then it lies in the
 * device's memory: what is on the chip ends with the phase. */
static bool goes_between(const uir_tactic *t, uint32_t tensor) {
    uint32_t blocks[2 * MOST_BLOCKS], count = uir_schedule_writers(t->s, tensor, blocks, MOST_BLOCKS);
    if (count > MOST_BLOCKS) count = MOST_BLOCKS;
    uint32_t readers = uir_schedule_readers(t->s, tensor, blocks + count, MOST_BLOCKS);
    count += readers > MOST_BLOCKS ? MOST_BLOCKS : readers;
    bool parallel = false;
    uint32_t touched = 0, seen = 0;
    for (uint32_t top = t->f->first; top != UIR_LOOP_NONE && seen < count; top = uir_tactic_at(t, top)->next) {
        uint32_t before = seen;
        for (uint32_t i = 0; i < count; i++) seen += uir_tactic_top_of(t, blocks[i]) == top;
        touched += seen > before;
        parallel = parallel || (seen && uir_tactic_at(t, top)->kind == UIR_LOOP_STATEMENT_FOR &&
                                uir_tactic_at(t, top)->loop_kind == UIR_LOOP_PARALLEL);
    }
    return parallel && touched > 1;
}

/* ---- the rest ---- */
/* What is left of reductions by parts is little, as a rule: one unit does it before others have begun. */
static bool is_little(const uir_tactic *t, const uint32_t *blocks, uint32_t count) {
    bool little = t->store_count > 0;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS && little; i++) {
        uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, blocks[i], loops, MOST_LOOPS);
        little = depth <= MOST_LOOPS && uir_tactic_is_short(t, uir_tactic_product_of(t, loops, depth), UIR_TACTIC_TILE);
    }
    return little;
}

/* Nests that could not be brought under the anchor's: shared among the units by themselves. */
uir_status uir_tactic_bind_strays(uir_tactic *t) {
    bool done;
    for (uint32_t id = t->f->first; id != UIR_LOOP_NONE; id = uir_tactic_at(t, id)->next) {
        if (uir_tactic_at(t, id)->kind != UIR_LOOP_STATEMENT_FOR || uir_tactic_at(t, id)->loop_kind != UIR_LOOP_SERIAL)
            continue;
        if (t->products && uir_tactic_is_complete(t, id)) continue;
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, id, blocks, MOST_BLOCKS);
        if (!is_little(t, blocks, count))
            UIR_TRY(uir_tactic_asked(uir_schedule_set_kind(t->s, id, UIR_LOOP_PARALLEL, NULL), &done));
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
            if (uir_tactic_at(t, id)->first_child != blocks[i]) UIR_TRY(uir_tactic_vectorise_block(t, blocks[i], id));
    }
    return UIR_STATUS_OK;
}

/* What is on the chip, and where. */
uir_status uir_tactic_place_temps(uir_tactic *t) {
    const char *scratch = uir_lower_space(t->machine, UIR_SPACE_SCRATCH);
    const char *registers = uir_lower_space(t->machine, UIR_SPACE_REGISTERS);
    for (uint32_t i = 0; i < t->f->tensors.count; i++) {
        uint32_t blocks[MOST_BLOCKS];
        bool done;
        if (!uir_tactic_is_temp(t, i) || !uir_schedule_writers(t->s, i, blocks, MOST_BLOCKS) || goes_between(t, i))
            continue;
        if (t->products && uir_tactic_is_of_parts(t, blocks[0])) continue; /* it lies where its tactic wants it */
        if (scratch) UIR_TRY(uir_tactic_asked(uir_schedule_set_scope(t->s, i, scratch), &done));
        UIR_TRY(uir_tactic_asked(uir_schedule_shrink(t->s, i), &done));
        bool single = true;
        for (uint32_t d = 0; d < t->f->tensors.data[i].rank; d++) {
            int64_t value;
            single = single && uir_dim_is_const(t->f->dims, t->f->tensors.data[i].extents[d], &value) && value == 1;
        }
        if (single && registers) UIR_TRY(uir_tactic_asked(uir_schedule_set_scope(t->s, i, registers), &done));
    }
    return UIR_STATUS_OK;
}

/* ---- constants ---- */
/* Along which dim of a tensor slices read it. */
typedef struct slicing {
    const uir_tactic *t;
    uint32_t tensor;
    const uir_loop_statement *block, *lane; /* the loop that is a slice's last dim */
    uint32_t dim;                           /* UIR_LOOP_NONE: along none so far */
    bool differs;                           /* along several */
} slicing;

static void look_along(slicing *s, const uir_loop_access *access) {
    for (uint32_t d = 0; d < s->t->f->tensors.data[s->tensor].rank; d++)
        for (uint32_t i = 0; i < s->block->iter_count; i++) {
            const uir_loop_iter *iter = &s->block->iters[i];
            if (!uir_tactic_mentions(s->t, access->indices[d], iter->symbol)) continue;
            if (iter->data || !uir_tactic_mentions(s->t, iter->value, s->lane->symbol)) continue;
            s->differs = s->differs || (s->dim != UIR_LOOP_NONE && s->dim != d);
            s->dim = d;
        }
}

static void look_in(slicing *s, uint32_t expression) {
    const uir_loop_expression *e = &s->t->f->expressions.data[expression];
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) look_in(s, e->arguments[i]);
    if (e->kind == UIR_LOOP_LOAD && e->load.tensor == s->tensor) look_along(s, &e->load);
}

static void look_at_slices(slicing *s) {
    const uir_tactic *t = s->t;
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    s->differs = count > MOST_BLOCKS;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, blocks[i], loops, MOST_LOOPS);
        if (!depth || uir_tactic_at(t, loops[depth - 1])->loop_kind != UIR_LOOP_VECTORISED) continue;
        s->block = uir_tactic_at(t, blocks[i]);
        s->lane = uir_tactic_at(t, loops[depth - 1]);
        for (uint32_t c = s->block->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next)
            for (uint32_t v = 0; v < uir_tactic_at(t, c)->value_count; v++) look_in(s, uir_tactic_at(t, c)->values[v]);
    }
}

uir_status uir_tactic_pack_constants(uir_tactic *t) {
    int memory = uir_machine_find_role(t->machine, UIR_SPACE_MEMORY),
        scratch = uir_machine_find_role(t->machine, UIR_SPACE_SCRATCH);
    if (memory < 0 || scratch < 0 || !uir_machine_wants_rows(t->machine, scratch)) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < t->f->tensors.count; i++) {
        const uir_loop_tensor *tensor = &t->f->tensors.data[i];
        slicing s = {.t = t, .tensor = i, .dim = UIR_LOOP_NONE};
        if (!tensor->constant || tensor->layout || tensor->rank < 2 || tensor->rank > UIR_LAYOUT_MAX_RANK) continue;
        look_at_slices(&s);
        if (s.differs || s.dim == UIR_LOOP_NONE || s.dim + 1 == tensor->rank) continue;
        uint32_t order[UIR_LAYOUT_MAX_RANK], count = 0;
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (d != s.dim) order[count++] = d;
        order[count] = s.dim;
        uir_layout layout;
        bool done;
        uir_layout_set_order(&layout, tensor->extents, order, tensor->rank, t->f->dims);
        UIR_TRY(uir_tactic_asked(uir_schedule_set_layout(t->s, i, &layout), &done));
    }
    return UIR_STATUS_OK;
}

bool uir_tactic_is_in(const uint32_t *list, uint32_t count, uint32_t id) {
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id) return true;
    return false;
}

uir_status uir_tactic_cache_operands(uir_tactic *t, uint32_t loop, bool of_rows) {
    uint32_t count = t->f->tensors.count, tile = uir_schedule_parent(t->s, loop);
    bool tiled = uir_tactic_at(t, loop)->loop_kind == UIR_LOOP_SERIAL && tile != UIR_LOOP_NONE &&
                 uir_tactic_at(t, tile)->kind == UIR_LOOP_STATEMENT_FOR;
    const char *scratch = uir_lower_space(t->machine, UIR_SPACE_SCRATCH);
    for (uint32_t i = 0; i < count && scratch; i++) {
        uint32_t copy;
        bool done;
        if (t->f->tensors.data[i].role != UIR_LOOP_ROLE_IN) continue;
        uir_tactic_reading r = uir_tactic_find_reading(t, i, loop);
        bool for_tile = tiled && !r.moves;
        if (!r.spans || r.irregular || ((r.loads < 2 || !of_rows) && !for_tile)) continue;
        UIR_TRY(uir_tactic_asked(uir_schedule_cache_read(t->s, i, UIR_LOOP_NONE, scratch, NULL, &copy), &done));
        if (!done) continue;
        UIR_TRY(uir_tactic_asked(uir_schedule_compute_at(t->s, copy, for_tile ? tile : loop), &done));
        if (done)
            UIR_TRY(uir_tactic_vectorise_block(t, copy, for_tile ? tile : loop));
        else
            UIR_TRY(uir_schedule_inline(t->s, copy));
    }
    return UIR_STATUS_OK;
}
