/* What the prover was asked about two sites before, and what it said.
 *
 * Steps ask of all pairs of sites whether loops still are what they are marked as; each step changes few of them. A
 * question is all that the answer depends on, word by word: the indices, the loops and conditions around, the version
 * of the facts. The answer to an equal one is taken again. */
#include "lower/schedule_internal.h"

#include <string.h>

typedef struct answer {
    uint64_t hash;
    const uint32_t *question;
    uint32_t word_count, loop_count;
    const uint32_t *loops;
    const uir_direction *directions;
    bool never;
} answer;

struct uir_answers {
    uir_vector(answer) entries;
    uint32_t *table; /* open addressing: 0 = free, else entry + 1 */
    uint32_t size;
    uir_vector(uint32_t) words; /* of the question that is asked */
};
typedef struct uir_answers answers;

enum { FIRST_SIZE = 64 };

/* ---- questions ---- */
static uir_status add_word(uir_schedule *s, uint32_t word) {
    return uir_vector_push(&s->arena, &s->answers->words, word);
}

static uir_status add_words(uir_schedule *s, const uir_condition *conditions, uint32_t count) {
    UIR_TRY(add_word(s, count));
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(add_word(s, conditions[i].relation));
        UIR_TRY(add_word(s, conditions[i].left.id));
        UIR_TRY(add_word(s, conditions[i].right.id));
    }
    return UIR_STATUS_OK;
}

static uir_status add_site(uir_schedule *s, const uir_site *site, uint32_t rank) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, site->block, path);
    for (uint32_t d = 0; d < rank; d++) UIR_TRY(add_word(s, site->at[d].id));
    UIR_TRY(add_word(s, count));
    for (uint32_t k = 0; k < count; k++) {
        const uir_loop_statement *at = UIR_SCHEDULE_AT(s, path[k]);
        const uint32_t words[] = {path[k], at->kind, at->symbol.id, at->min.id, at->extent.id};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) UIR_TRY(add_word(s, words[i]));
        UIR_TRY(add_words(s, at->conditions, at->condition_count));
    }
    const uir_loop_statement *block = UIR_SCHEDULE_AT(s, site->block);
    UIR_TRY(add_words(s, block->conditions, block->condition_count));
    for (uint32_t i = 0; i < block->iter_count; i++)
        UIR_TRY(add_word(s, block->iters[i].data ? block->iters[i].symbol.id : UINT32_MAX));
    return UIR_STATUS_OK;
}

static uir_status ask(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never) {
    uint32_t rank = UIR_SCHEDULE_TENSOR(s, x->tensor)->rank;
    s->answers->words.count = 0;
    UIR_TRY(add_word(s, uir_dims_facts_version(s->function->dims)));
    UIR_TRY(add_word(s, equal_until));
    UIR_TRY(add_word(s, never));
    UIR_TRY(add_word(s, rank));
    UIR_TRY(add_site(s, x, rank));
    UIR_TRY(add_site(s, y, rank));
    return add_words(s, s->function->requires_.data, s->function->requires_.count);
}

/* ---- answers ---- */
/* The entry's place in the table, or the free one where it belongs. */
static uint32_t *find(answers *known, uint64_t hash, const uint32_t *question, uint32_t count) {
    for (uint32_t at = (uint32_t)hash & (known->size - 1);; at = (at + 1) & (known->size - 1)) {
        if (!known->table[at]) return &known->table[at];
        const answer *a = &known->entries.data[known->table[at] - 1];
        if (a->hash == hash && a->word_count == count && !memcmp(a->question, question, count * sizeof *question))
            return &known->table[at];
    }
}

static uir_status make_room(uir_schedule *s) {
    answers *known = s->answers;
    if (known->size && 2 * (known->entries.count + 1) <= known->size) return UIR_STATUS_OK;
    known->size = known->size ? 2 * known->size : FIRST_SIZE;
    UIR_TRY_ALLOCATE(known->table, uir_arena_allocate_array(&s->arena, known->size, sizeof *known->table));
    for (uint32_t i = 0; i < known->entries.count; i++) {
        const answer *a = &known->entries.data[i];
        *find(known, a->hash, a->question, a->word_count) = i + 1;
    }
    return UIR_STATUS_OK;
}

static uir_status keep(uir_schedule *s, uint64_t hash, const uir_conflict *conflict) {
    answers *known = s->answers;
    answer a = {hash, .word_count = known->words.count, .loop_count = conflict->loop_count, .never = conflict->never};
    size_t words = a.word_count * sizeof *a.question, loops = a.loop_count * sizeof *a.loops;
    UIR_TRY_ALLOCATE(a.question, uir_arena_copy(&s->arena, known->words.data, words));
    UIR_TRY_ALLOCATE(a.loops, uir_arena_copy(&s->arena, conflict->loops, loops));
    UIR_TRY_ALLOCATE(a.directions,
                     uir_arena_copy(&s->arena, conflict->directions, a.loop_count * sizeof *a.directions));
    UIR_TRY(uir_vector_push(&s->arena, &known->entries, a));
    *find(known, hash, a.question, a.word_count) = known->entries.count;
    return UIR_STATUS_OK;
}

uir_status uir_conflict_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                             uir_conflict *out) {
    if (!s->answers) UIR_TRY_ALLOCATE(s->answers, uir_arena_allocate(&s->arena, sizeof *s->answers));
    answers *known = s->answers;
    UIR_TRY(ask(s, x, y, equal_until, never));
    UIR_TRY(make_room(s));
    uint64_t hash = uir_hash(known->words.data, known->words.count * sizeof *known->words.data, 0);
    uint32_t entry = *find(known, hash, known->words.data, known->words.count);
    if (!entry) {
        UIR_TRY(uir_conflict_prove(s, x, y, equal_until, never, out));
        return keep(s, hash, out);
    }
    const answer *a = &known->entries.data[entry - 1];
    out->never = a->never;
    out->loop_count = a->loop_count;
    memcpy(out->loops, a->loops, a->loop_count * sizeof *a->loops);
    memcpy(out->directions, a->directions, a->loop_count * sizeof *a->directions);
    return UIR_STATUS_OK;
}
