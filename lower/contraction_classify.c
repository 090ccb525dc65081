/* Sums of products that are contractions, by what the loops compute: whatever operators they were written with. */
#include "lower/contraction_internal.h"

#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])

/* Which iteration variables of the update an expression depends on, as bits; `through`: what stands for the variables
 * of the block that the expression is of (NULL: it is the update's own). */
typedef struct search {
    const uir_loop_function *f;
    const uir_loop_statement *update;
    const uir_loop_statement *block; /* whose expression it is */
    const uir_loop_access *read;     /* of what the block stores, by the update; NULL: the block is the update */
    const uir_loop_access *stored;
    uint32_t iters;
} search;

static void note_own(void *user, uir_symbol symbol) {
    search *s = user;
    for (uint32_t i = 0; i < s->update->iter_count; i++)
        if (s->update->iters[i].symbol.id == symbol.id) s->iters |= 1u << i;
}

/* A variable of the producer's block is the update's index of the dim that it stores along. */
static void note_inner(void *user, uir_symbol symbol) {
    search *s = user;
    for (uint32_t d = 0; d < s->f->tensors.data[s->stored->tensor].rank; d++)
        if (uir_dim_mentions(s->f->dims, s->stored->indices[d], symbol))
            uir_dim_visit_symbols(s->f->dims, s->read->indices[d], note_own, s);
}

static void visit(search *s, uir_dim dim) {
    uir_dim_visit_symbols(s->f->dims, dim, s->read ? note_inner : note_own, s);
}

static void find_iters(search *s, uint32_t id) {
    const uir_loop_expression *e = EXPRESSION(s->f, id);
    if (e->kind == UIR_LOOP_INDEX) visit(s, e->index);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < s->f->tensors.data[e->load.tensor].rank; d++)
        visit(s, e->load.indices[d]);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) find_iters(s, e->arguments[i]);
}

/* The only block that stores to the tensor, if all that it does is that; NONE. */
static uint32_t find_producer(const uir_loop_function *f, uint32_t list, uint32_t tensor) {
    for (uint32_t id = list; id != UIR_LOOP_NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK) {
            uint32_t inner = find_producer(f, s->first_child, tensor);
            if (inner != UIR_LOOP_NONE) return inner;
            continue;
        }
        const uir_loop_statement *only = STATEMENT(f, s->first_child);
        if (only->kind == UIR_LOOP_STATEMENT_STORE && only->next == UIR_LOOP_NONE && only->targets[0].tensor == tensor)
            return id;
    }
    return UIR_LOOP_NONE;
}

static bool is_sum(const uir_loop_function *f, const uir_loop_statement *update) {
    if (update->kind != UIR_LOOP_STATEMENT_UPDATE || update->next != UIR_LOOP_NONE || update->target_count != 1)
        return false;
    const uir_loop_monoid *m = &f->monoids.data[update->monoid];
    const uir_loop_expression *step = EXPRESSION(f, m->update[0]);
    return m->state_count == 1 && m->element_count == 1 && step->kind == UIR_LOOP_CALL && step->op == UIR_OP_ADD &&
           m->state_dtypes[0] == UIR_DTYPE_F32 && f->tensors.data[update->targets[0].tensor].role == UIR_LOOP_ROLE_TEMP;
}

/* Rows, columns and depth: some axis that the first factor alone has, one of the second alone, one that is summed. */
static bool is_contraction(const uir_loop_function *f, uint32_t id) {
    const uir_loop_statement *block = STATEMENT(f, id), *update = STATEMENT(f, block->first_child);
    if (!is_sum(f, update) || block->condition_count) return false;
    search s = {.f = f, .update = block, .block = block};
    uint32_t value = update->values[0], reduced = 0;
    const uir_loop_expression *e = EXPRESSION(f, value);
    if (e->kind == UIR_LOOP_LOAD && !e->has_fill && f->tensors.data[e->load.tensor].role == UIR_LOOP_ROLE_TEMP) {
        uint32_t producer = find_producer(f, f->first, e->load.tensor);
        if (producer == UIR_LOOP_NONE) return false;
        const uir_loop_statement *store = STATEMENT(f, STATEMENT(f, producer)->first_child);
        s.block = STATEMENT(f, producer);
        s.read = &e->load;
        s.stored = &store->targets[0];
        value = store->values[0];
        e = EXPRESSION(f, value);
    }
    if (e->kind != UIR_LOOP_CALL || e->op != UIR_OP_MUL) return false;
    uint32_t factors[2];
    for (uint32_t k = 0; k < 2; k++) {
        s.iters = 0;
        find_iters(&s, e->arguments[k]);
        factors[k] = s.iters;
    }
    for (uint32_t i = 0; i < block->iter_count; i++) {
        if (block->iters[i].data) return false;
        reduced |= (uint32_t)block->iters[i].reduce << i;
    }
    return (factors[0] & ~factors[1] & ~reduced) && (factors[1] & ~factors[0] & ~reduced) &&
           (factors[0] & factors[1] & reduced);
}

static uint32_t classify(uir_loop_function *f, uint32_t list) {
    uint32_t count = 0;
    for (uint32_t id = list; id != UIR_LOOP_NONE; id = STATEMENT(f, id)->next) {
        if (STATEMENT(f, id)->kind != UIR_LOOP_STATEMENT_BLOCK) {
            count += classify(f, STATEMENT(f, id)->first_child);
        } else if (!STATEMENT(f, id)->uses && is_contraction(f, id)) {
            STATEMENT(f, id)->uses |= 1u << UIR_LOOP_USE_CONTRACTION;
            count++;
        }
    }
    return count;
}

uint32_t uir_contraction_classify(uir_loop_function *f) {
    return classify(f, f->first);
}
