/* What the tactics ask about the loops, blocks and expressions before them. */
#include "lower/tactics/tactics.h"

#include <string.h>

enum { MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS, MOST_LOOPS = UIR_LOOP_MAX_ITERS };

static bool is_heavy(uir_op op) {
    static const uir_op light[] = {UIR_OP_ADD, UIR_OP_SUB, UIR_OP_MUL,    UIR_OP_MIN, UIR_OP_MAX,
                                   UIR_OP_NEG, UIR_OP_ABS, UIR_OP_EQ,     UIR_OP_NE,  UIR_OP_LT,
                                   UIR_OP_LE,  UIR_OP_GT,  UIR_OP_GE,     UIR_OP_AND, UIR_OP_OR,
                                   UIR_OP_XOR, UIR_OP_NOT, UIR_OP_SELECT, UIR_OP_CAST};
    for (size_t i = 0; i < sizeof light / sizeof *light; i++)
        if (light[i] == op) return false;
    return true;
}

void uir_tactic_add_cost(const uir_loop_function *f, uint32_t expression, uir_tactic_cost *out) {
    const uir_loop_expression *e = &f->expressions.data[expression];
    if (out->instructions + out->loads > 200) return;
    if (e->kind == UIR_LOOP_LOAD || e->kind == UIR_LOOP_INDEX) out->loads++;
    if (e->kind != UIR_LOOP_CALL) return;
    out->instructions++;
    out->heavy = out->heavy || is_heavy(e->op);
    for (uint32_t i = 0; i < e->argument_count; i++) uir_tactic_add_cost(f, e->arguments[i], out);
}

static uint32_t count_loads(const uir_loop_function *f, uint32_t expression, uint32_t tensor) {
    const uir_loop_expression *e = &f->expressions.data[expression];
    if (e->kind == UIR_LOOP_LOAD) return e->load.tensor == tensor;
    uint32_t count = 0;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        count += count_loads(f, e->arguments[i], tensor);
    return count;
}

/* How often the blocks read a tensor. */
uint32_t uir_tactic_count_uses(const uir_tactic *t, uint32_t tensor, bool *out_read_as_index) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS), uses = 0;
    *out_read_as_index = false;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        const uir_loop_statement *b = uir_tactic_at(t, blocks[i]);
        for (uint32_t k = 0; k < b->iter_count; k++)
            if (b->iters[k].data && b->iters[k].from->tensor == tensor) *out_read_as_index = true;
        for (uint32_t c = b->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next)
            for (uint32_t v = 0; v < uir_tactic_at(t, c)->value_count; v++)
                uses += count_loads(t->f, uir_tactic_at(t, c)->values[v], tensor);
    }
    return uses;
}

static void mark_loads(const uir_loop_function *f, uint32_t expression, bool *read) {
    const uir_loop_expression *e = &f->expressions.data[expression];
    if (e->kind == UIR_LOOP_LOAD) read[e->load.tensor] = true;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) mark_loads(f, e->arguments[i], read);
}

static void mark_touched(const uir_tactic *t, uint32_t statement, const uir_tactic_touched *out) {
    const uir_loop_statement *s = uir_tactic_at(t, statement);
    for (uint32_t i = 0; i < s->target_count; i++) out->written[s->targets[i].tensor] = true;
    for (uint32_t i = 0; i < s->value_count; i++) mark_loads(t->f, s->values[i], out->read);
    for (uint32_t i = 0; s->kind == UIR_LOOP_STATEMENT_BLOCK && i < s->iter_count; i++)
        if (s->iters[i].data) out->read[s->iters[i].from->tensor] = true;
    for (uint32_t c = s->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next) mark_touched(t, c, out);
}

uir_status uir_tactic_find_touched(uir_tactic *t, uint32_t statement, uir_tactic_touched *out) {
    size_t count = t->f->tensors.count;
    if (!out->written) UIR_TRY_ALLOCATE(out->written, uir_arena_allocate_array(&t->f->arena, 2 * count, sizeof(bool)));
    out->read = out->written + count;
    memset(out->written, 0, 2 * count * sizeof(bool));
    mark_touched(t, statement, out);
    return UIR_STATUS_OK;
}

bool uir_tactic_feeds(const uir_tactic *t, const uir_tactic_touched *from, const uir_tactic_touched *to) {
    for (uint32_t i = 0; i < t->f->tensors.count; i++)
        if (from->written[i] && to->read[i]) return true;
    return false;
}

const uir_loop_expression *uir_tactic_find_product(const uir_tactic *t, uint32_t block) {
    const uir_loop_statement *s = uir_tactic_only_statement(t, block);
    if (!s || s->kind != UIR_LOOP_STATEMENT_UPDATE || s->target_count != 1 ||
        !(uir_tactic_at(t, block)->uses >> UIR_LOOP_USE_CONTRACTION & 1) ||
        uir_loop_monoid_get_op(t->f, &t->f->monoids.data[s->monoid]) != UIR_OP_ADD ||
        !uir_tactic_is_temp(t, s->targets[0].tensor))
        return NULL;
    const uir_loop_expression *product = &t->f->expressions.data[s->values[0]];
    return product->kind == UIR_LOOP_CALL && product->op == UIR_OP_MUL ? product : NULL;
}

static const uir_loop_access *find_load(const uir_tactic *t, uint32_t id, uint32_t tensor) {
    const uir_loop_expression *e = &t->f->expressions.data[id];
    const uir_loop_access *found = e->kind == UIR_LOOP_LOAD && e->load.tensor == tensor ? &e->load : NULL;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count && !found; i++)
        found = find_load(t, e->arguments[i], tensor);
    return found;
}

const uir_loop_access *uir_tactic_find_access(const uir_tactic *t, uint32_t block, uint32_t tensor) {
    const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, block)->first_child);
    const uir_loop_access *found = NULL;
    for (uint32_t i = 0; i < s->target_count; i++)
        if (s->targets[i].tensor == tensor) return &s->targets[i];
    for (uint32_t i = 0; i < s->value_count && !found; i++) found = find_load(t, s->values[i], tensor);
    return found;
}

const uir_loop_statement *uir_tactic_only_statement(const uir_tactic *t, uint32_t block) {
    const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, block)->first_child);
    return s->next == UIR_LOOP_NONE ? s : NULL;
}

bool uir_tactic_is_temp(const uir_tactic *t, uint32_t tensor) {
    return t->f->tensors.data[tensor].role == UIR_LOOP_ROLE_TEMP;
}

bool uir_tactic_has_kind(const uir_tactic *t, uint32_t block, uir_loop_statement_kind kind) {
    for (uint32_t c = uir_tactic_at(t, block)->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next)
        if (uir_tactic_at(t, c)->kind == kind) return true;
    return false;
}

bool uir_tactic_mentions(const uir_tactic *t, uir_dim dim, uir_symbol symbol) {
    return uir_dim_mentions(t->f->dims, dim, symbol);
}

/* The iteration variable of the block that a loop of its untouched nest drives; NONE: none alone. */
uint32_t uir_tactic_iter_of_loop(const uir_tactic *t, uint32_t block, uint32_t loop) {
    const uir_loop_statement *b = uir_tactic_at(t, block);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (!b->iters[i].data && uir_tactic_mentions(t, b->iters[i].value, uir_tactic_at(t, loop)->symbol)) return i;
    return UIR_LOOP_NONE;
}

/* Does every load advance by a fixed step with the iteration variable? */
static bool is_linear(const uir_tactic *t, uint32_t expression, uir_symbol symbol) {
    const uir_loop_expression *e = &t->f->expressions.data[expression];
    uir_dims *dims = t->f->dims;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (!is_linear(t, e->arguments[i], symbol)) return false;
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < t->f->tensors.data[e->load.tensor].rank; d++) {
        uir_dim index = e->load.indices[d], variable = uir_dim_symbol(dims, symbol);
        if (!uir_tactic_mentions(t, index, symbol)) continue;
        uir_dim step = uir_dim_sub(dims, index, variable);
        if (step.id && !uir_tactic_mentions(t, step, symbol)) continue;
        if (uir_dim_get(dims, index)->kind != UIR_DIM_MUL && uir_dim_get(dims, index)->kind != UIR_DIM_ADD)
            return false;
        for (int64_t k = -64; k <= 64; k++) {
            step = uir_dim_sub(dims, index, uir_dim_mul(dims, variable, uir_dim_const(dims, k)));
            if (step.id && !uir_tactic_mentions(t, step, symbol)) break;
            if (k == 64) return false;
        }
    }
    return true;
}

/* Does a position that is read from data depend on the loop? */
static bool tactic_reads_position(const uir_tactic *t, uint32_t block, uint32_t loop) {
    const uir_loop_statement *b = uir_tactic_at(t, block);
    for (uint32_t k = 0; k < b->iter_count; k++) {
        if (b->iters[k].data || !uir_tactic_mentions(t, b->iters[k].value, uir_tactic_at(t, loop)->symbol)) continue;
        for (uint32_t i = 0; i < b->iter_count; i++)
            for (uint32_t d = 0; b->iters[i].data && d < t->f->tensors.data[b->iters[i].from->tensor].rank; d++)
                if (uir_tactic_mentions(t, b->iters[i].from->indices[d], b->iters[k].symbol)) return true;
    }
    return false;
}

/* Does the expression load what the statement stores in another iteration of the variable: a scan's element before? */
static bool reads_back(const uir_tactic *t, const uir_loop_access *stored, uint32_t expression, uir_symbol symbol) {
    const uir_loop_expression *e = &t->f->expressions.data[expression];
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (reads_back(t, stored, e->arguments[i], symbol)) return true;
    if (e->kind != UIR_LOOP_LOAD || e->load.tensor != stored->tensor) return false;
    for (uint32_t d = 0; d < t->f->tensors.data[stored->tensor].rank; d++)
        if (uir_tactic_mentions(t, stored->indices[d], symbol) &&
            !uir_dim_equal(stored->indices[d], e->load.indices[d]))
            return true;
    return false;
}

bool uir_tactic_decides_position(const uir_tactic *t, uint32_t block, uint32_t loop) {
    const uir_loop_statement *b = uir_tactic_at(t, block);
    uint32_t iter = uir_tactic_iter_of_loop(t, block, loop);
    if (iter == UIR_LOOP_NONE) return true;
    uir_symbol symbol = b->iters[iter].symbol;
    for (uint32_t c = b->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next) {
        const uir_loop_statement *s = uir_tactic_at(t, c);
        for (uint32_t v = 0; v < s->value_count; v++)
            if (!is_linear(t, s->values[v], symbol) ||
                (s->kind == UIR_LOOP_STATEMENT_STORE && reads_back(t, &s->targets[0], s->values[v], symbol)))
                return true;
    }
    return tactic_reads_position(t, block, loop);
}

/* The iteration variable in the last index of a load that does not follow `last` there: it is read across. */
static void find_crossed(const uir_tactic *t, uint32_t expression, uir_symbol last, uir_symbol *out, bool *out_found) {
    const uir_loop_expression *e = &t->f->expressions.data[expression];
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        find_crossed(t, e->arguments[i], last, out, out_found);
    if (e->kind != UIR_LOOP_LOAD) return;
    uint32_t rank = t->f->tensors.data[e->load.tensor].rank;
    bool has_last = false;
    for (uint32_t d = 0; d < rank; d++) has_last = has_last || uir_tactic_mentions(t, e->load.indices[d], last);
    if (!has_last || uir_tactic_mentions(t, e->load.indices[rank - 1], last)) return;
    uir_symbol found;
    if (!uir_dim_is_symbol(t->f->dims, e->load.indices[rank - 1], &found)) return;
    *out = found;
    *out_found = true;
}

uint32_t uir_tactic_crossed_loop(const uir_tactic *t, uint32_t block, const uint32_t *loops, uint32_t count) {
    uir_symbol symbol = {0};
    bool found = false;
    uint32_t last = uir_tactic_iter_of_loop(t, block, loops[count - 1]);
    if (last == UIR_LOOP_NONE) return UIR_LOOP_NONE;
    for (uint32_t c = uir_tactic_at(t, block)->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next)
        for (uint32_t v = 0; v < uir_tactic_at(t, c)->value_count; v++)
            find_crossed(t, uir_tactic_at(t, c)->values[v], uir_tactic_at(t, block)->iters[last].symbol, &symbol,
                         &found);
    for (uint32_t i = 0; found && i + 1 < count; i++) {
        uint32_t iter = uir_tactic_iter_of_loop(t, block, loops[i]);
        if (iter != UIR_LOOP_NONE && uir_tactic_at(t, block)->iters[iter].symbol.id == symbol.id &&
            !uir_tactic_decides_position(t, block, loops[i]))
            return i;
    }
    return UIR_LOOP_NONE;
}

/* ---- operands ---- */
typedef struct reader {
    const uir_tactic *t;
    uint32_t tensor, block;
    uint32_t loops[MOST_LOOPS], loop_count, depth; /* around the block; depth: of `loop` among them */
    uir_tactic_reading *out;
} reader;

static void look_at_index(reader *r, uir_dim index) {
    const uir_loop_statement *b = uir_tactic_at(r->t, r->block);
    for (uint32_t k = 0; k < b->iter_count; k++) {
        if (!uir_tactic_mentions(r->t, index, b->iters[k].symbol)) continue;
        uir_dim rest = uir_dim_sub(r->t->f->dims, index, uir_dim_symbol(r->t->f->dims, b->iters[k].symbol));
        bool forward =
            rest.id && !uir_tactic_mentions(r->t, rest, b->iters[k].symbol); /* neither strided nor reversed */
        if (b->iters[k].data || !forward) {
            r->out->irregular = true;
            continue;
        }
        for (uint32_t l = r->depth; l < r->loop_count; l++)
            if (uir_tactic_mentions(r->t, b->iters[k].value, uir_tactic_at(r->t, r->loops[l])->symbol))
                *(l == r->depth ? &r->out->moves : &r->out->spans) = true;
    }
}

static void look_at_loads(reader *r, uint32_t expression) {
    const uir_loop_expression *e = &r->t->f->expressions.data[expression];
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) look_at_loads(r, e->arguments[i]);
    if (e->kind != UIR_LOOP_LOAD || e->load.tensor != r->tensor) return;
    r->out->loads++;
    r->out->irregular = r->out->irregular || e->has_fill || r->depth == r->loop_count;
    for (uint32_t d = 0; d < r->t->f->tensors.data[r->tensor].rank; d++) look_at_index(r, e->load.indices[d]);
}

static bool block_reads(const uir_tactic *t, const uir_loop_statement *block, uint32_t tensor) {
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].data && block->iters[i].from->tensor == tensor) return true;
    for (uint32_t c = block->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next)
        for (uint32_t v = 0; v < uir_tactic_at(t, c)->value_count; v++)
            if (uir_loop_expression_reads(t->f, uir_tactic_at(t, c)->values[v], tensor)) return true;
    return false;
}

uir_tactic_reading uir_tactic_find_reading(const uir_tactic *t, uint32_t tensor, uint32_t loop) {
    uir_tactic_reading out = {0};
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        const uir_loop_statement *b = uir_tactic_at(t, blocks[i]);
        reader r = {.t = t, .tensor = tensor, .block = blocks[i], .out = &out};
        if (!block_reads(t, b, tensor)) continue;
        r.loop_count = uir_schedule_loops(t->s, blocks[i], r.loops, MOST_LOOPS);
        while (r.depth < r.loop_count && r.loops[r.depth] != loop) r.depth++;
        for (uint32_t k = 0; k < b->iter_count; k++)
            if (b->iters[k].data && b->iters[k].from->tensor == tensor) out.irregular = true;
        for (uint32_t c = b->first_child; c != UIR_LOOP_NONE; c = uir_tactic_at(t, c)->next)
            for (uint32_t v = 0; v < uir_tactic_at(t, c)->value_count; v++)
                look_at_loads(&r, uir_tactic_at(t, c)->values[v]);
    }
    return out;
}
