/* What the prover was asked before, and what it said.
 *
 * Steps ask of all pairs of sites whether loops still are what they are marked as, and of all blocks whether they stay
 * in their domains; each step changes few of them. A question is all that the answer depends on, word by word: the
 * indices, the loops and conditions around, the version of the facts. The answer to an equal one is taken again. */
#include "lower/schedule/schedule_internal.h"

#include <string.h>

/* Questions, each a row of words, and a number that stands for the answer. */
typedef struct question {
    uint64_t hash;
    const uint32_t *words;
    uint32_t word_count, value;
} question;

typedef struct questions {
    uir_vector(question) entries;
    uint32_t *table; /* open addressing: 0 = free, else entry + 1 */
    uint32_t size;
    uir_vector(uint32_t) words; /* of the question that is asked */
} questions;

typedef struct answer {
    uint32_t loop_count;
    const uint32_t *loops;
    const uir_direction *directions;
    bool never;
} answer;

struct uir_answers {
    questions conflicts, proofs; /* of these the value is an index of `answers`, of those a truth */
    uir_vector(answer) answers;
};

enum { FIRST_SIZE = 64 };

/* ---- questions ---- */
/* The entry's place in the table, or the free one where it belongs. */
static uint32_t *find(questions *known, uint64_t hash, const uint32_t *words, uint32_t count) {
    for (uint32_t at = (uint32_t)hash & (known->size - 1);; at = (at + 1) & (known->size - 1)) {
        if (!known->table[at]) return &known->table[at];
        const question *q = &known->entries.data[known->table[at] - 1];
        if (q->hash == hash && q->word_count == count && !memcmp(q->words, words, count * sizeof *words))
            return &known->table[at];
    }
}

static uir_status make_room(uir_schedule *s, questions *known) {
    if (known->size && 2 * (known->entries.count + 1) <= known->size) return UIR_STATUS_OK;
    uint32_t *table, size = known->size ? 2 * known->size : FIRST_SIZE;
    UIR_TRY_ALLOCATE(table, uir_arena_allocate_array(&s->arena, size, sizeof *table));
    known->table = table; /* only now: without it, what was known is still found */
    known->size = size;
    for (uint32_t i = 0; i < known->entries.count; i++) {
        const question *q = &known->entries.data[i];
        *find(known, q->hash, q->words, q->word_count) = i + 1;
    }
    return UIR_STATUS_OK;
}

/* Was the question asked before? */
static uir_status look_up(uir_schedule *s, questions *known, uint64_t *out_hash, const question **out_known) {
    UIR_TRY(make_room(s, known));
    *out_hash = uir_hash(known->words.data, known->words.count * sizeof *known->words.data, 0);
    uint32_t entry = *find(known, *out_hash, known->words.data, known->words.count);
    *out_known = entry ? &known->entries.data[entry - 1] : NULL;
    return UIR_STATUS_OK;
}

static uir_status keep(uir_schedule *s, questions *known, uint64_t hash, uint32_t value) {
    question q = {hash, NULL, known->words.count, value};
    UIR_TRY_ALLOCATE(q.words, uir_arena_copy(&s->arena, known->words.data, q.word_count * sizeof *q.words));
    UIR_TRY(uir_vector_push(&s->arena, &known->entries, q));
    *find(known, hash, q.words, q.word_count) = known->entries.count;
    return UIR_STATUS_OK;
}

static uir_status add_words(uir_schedule *s, questions *to, const uint32_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_vector_push(&s->arena, &to->words, words[i]));
    return UIR_STATUS_OK;
}

static uir_status add_conditions(uir_schedule *s, questions *to, const uir_condition *conditions, uint32_t count) {
    UIR_TRY(add_words(s, to, &count, 1));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t words[] = {conditions[i].relation, conditions[i].left.id, conditions[i].right.id};
        UIR_TRY(add_words(s, to, words, 3));
    }
    return UIR_STATUS_OK;
}

static uir_status get_answers(uir_schedule *s, struct uir_answers **out_answers) {
    if (!s->answers) UIR_TRY_ALLOCATE(s->answers, uir_arena_allocate(&s->arena, sizeof *s->answers));
    *out_answers = s->answers;
    return UIR_STATUS_OK;
}

/* ---- conflicts ---- */
static uir_status add_site(uir_schedule *s, questions *to, const uir_site *site, uint32_t rank) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, site->block, path);
    for (uint32_t d = 0; d < rank; d++) UIR_TRY(add_words(s, to, &site->at[d].id, 1));
    UIR_TRY(add_words(s, to, &count, 1));
    for (uint32_t k = 0; k < count; k++) {
        const uir_loop_statement *at = UIR_SCHEDULE_AT(s, path[k]);
        const uint32_t words[] = {path[k], at->kind, at->symbol.id, at->min.id, at->extent.id};
        UIR_TRY(add_words(s, to, words, sizeof words / sizeof *words));
        UIR_TRY(add_conditions(s, to, at->conditions, at->condition_count));
    }
    const uir_loop_statement *block = UIR_SCHEDULE_AT(s, site->block);
    UIR_TRY(add_conditions(s, to, block->conditions, block->condition_count));
    for (uint32_t i = 0; i < block->iter_count; i++) {
        uint32_t read = block->iters[i].data ? block->iters[i].symbol.id : UINT32_MAX;
        UIR_TRY(add_words(s, to, &read, 1));
    }
    return UIR_STATUS_OK;
}

static uir_status ask(uir_schedule *s, questions *to, const uir_site *x, const uir_site *y, uint32_t equal_until,
                      bool never) {
    uint32_t rank = UIR_SCHEDULE_TENSOR(s, x->tensor)->rank;
    const uint32_t words[] = {uir_dims_facts_version(s->function->dims), equal_until, never, rank};
    to->words.count = 0;
    UIR_TRY(add_words(s, to, words, sizeof words / sizeof *words));
    UIR_TRY(add_site(s, to, x, rank));
    UIR_TRY(add_site(s, to, y, rank));
    return add_conditions(s, to, s->function->requires_.data, s->function->requires_.count);
}

static uir_status keep_conflict(uir_schedule *s, uint64_t hash, const uir_conflict *conflict) {
    struct uir_answers *known = s->answers;
    answer a = {.loop_count = conflict->loop_count, .never = conflict->never};
    UIR_TRY_ALLOCATE(a.loops, uir_arena_copy(&s->arena, conflict->loops, a.loop_count * sizeof *a.loops));
    UIR_TRY_ALLOCATE(a.directions,
                     uir_arena_copy(&s->arena, conflict->directions, a.loop_count * sizeof *a.directions));
    UIR_TRY(uir_vector_push(&s->arena, &known->answers, a));
    return keep(s, &known->conflicts, hash, known->answers.count - 1);
}

uir_status uir_conflict_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                             uir_conflict *out) {
    struct uir_answers *known;
    const question *before;
    uint64_t hash;
    UIR_TRY(get_answers(s, &known));
    UIR_TRY(ask(s, &known->conflicts, x, y, equal_until, never));
    UIR_TRY(look_up(s, &known->conflicts, &hash, &before));
    if (!before) {
        UIR_TRY(uir_conflict_prove(s, x, y, equal_until, never, out));
        return keep_conflict(s, hash, out);
    }
    const answer *a = &known->answers.data[before->value];
    out->never = a->never;
    out->loop_count = a->loop_count;
    memcpy(out->loops, a->loops, a->loop_count * sizeof *a->loops);
    memcpy(out->directions, a->directions, a->loop_count * sizeof *a->directions);
    return UIR_STATUS_OK;
}

/* ---- proofs ---- */
bool uir_order_proved(uir_schedule *s, const uir_conditions *given, uir_dim a, uir_relation relation, uir_dim b) {
    uir_dims *dims = s->function->dims;
    const uint32_t words[] = {uir_dims_facts_version(dims), relation, a.id, b.id};
    struct uir_answers *known;
    const question *before = NULL;
    uint64_t hash;
    if (!a.id || !b.id) return false;
    bool asked = get_answers(s, &known) == UIR_STATUS_OK;
    if (asked) known->proofs.words.count = 0;
    asked = asked && add_words(s, &known->proofs, words, sizeof words / sizeof *words) == UIR_STATUS_OK &&
            add_conditions(s, &known->proofs, given->data, given->count) == UIR_STATUS_OK &&
            look_up(s, &known->proofs, &hash, &before) == UIR_STATUS_OK;
    if (before) return before->value;
    bool proved = uir_dim_compare_given(dims, given->data, given->count, a, relation, b) == UIR_TRUE;
    if (asked) (void)keep(s, &known->proofs, hash, proved); /* without memory it is proved again */
    return proved;
}
