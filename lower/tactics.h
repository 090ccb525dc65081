/* Inside the tactics: what they work on, and the questions that they ask (tactics_look.c). */
#ifndef UIR_LOWER_TACTICS_H
#define UIR_LOWER_TACTICS_H

#include "lower/internal.h"
#include "lower/schedule.h"

#define UIR_TACTIC_MOST_BLOCKS 256

typedef struct uir_tactic {
    uir_loop_function *f;
    const uir_device *device;
    uir_schedule *s;
    bool reduces;
    bool stream; /* rows of any length: nothing of a row is kept */
    bool shares; /* all rows read some operand alike */
    uint32_t names;
    uir_dim tile_of[8], tile[8]; /* rows of so many elements have this tile */
    uint32_t tile_count;
} uir_tactic;

typedef struct uir_tactic_cost {
    uint32_t instructions, loads;
    bool heavy; /* a transcendental, a root or a division */
} uir_tactic_cost;

static inline const uir_loop_statement *uir_tactic_at(const uir_tactic *t, uint32_t id) {
    return &t->f->statements.data[id];
}
/* Adds what an expression costs; stops counting where it is a lot anyway. */
void uir_tactic_add_cost(const uir_loop_function *f, uint32_t expression, uir_tactic_cost *out);
/* How often the blocks read a tensor. */
uint32_t uir_tactic_count_uses(const uir_tactic *t, uint32_t tensor, bool *out_read_as_index);
/* Which tensors a statement, or the blocks under it, write and read: a flag per tensor. What a reduction goes on from
 * it reads too, but nothing is computed for that. Begins as {0}; used again it takes no memory. */
typedef struct uir_tactic_touched {
    bool *written, *read;
} uir_tactic_touched;
uir_status uir_tactic_find_touched(uir_tactic *t, uint32_t statement, uir_tactic_touched *out);
/* Does one write what the other reads? Only then can it be computed where that is. */
bool uir_tactic_feeds(const uir_tactic *t, const uir_tactic_touched *from, const uir_tactic_touched *to);
/* Of a block; NULL: it has several. */
const uir_loop_statement *uir_tactic_only_statement(const uir_tactic *t, uint32_t block);
bool uir_tactic_is_temp(const uir_tactic *t, uint32_t tensor);
bool uir_tactic_has_kind(const uir_tactic *t, uint32_t block, uir_loop_statement_kind kind);
bool uir_tactic_mentions(const uir_tactic *t, uir_dim dim, uir_symbol symbol);
/* The iteration variable of the block that a loop of its untouched nest drives; NONE: none alone. */
uint32_t uir_tactic_iter_of_loop(const uir_tactic *t, uint32_t block, uint32_t loop);
/* Does a position that is read from data depend on the loop? */
bool uir_tactic_reads_position(const uir_tactic *t, uint32_t block, uint32_t loop);
/* Or an index that is not linear in it, or is an element read that another of its iterations stores? It cannot be
 * vectorised then. */
bool uir_tactic_decides_position(const uir_tactic *t, uint32_t block, uint32_t loop);
/* How the blocks under a loop read a tensor. */
typedef struct uir_tactic_reading {
    uint32_t loads;
    bool moves;     /* a place depends on the loop */
    bool spans;     /* on a loop inside it */
    bool irregular; /* on data, or lies outside the extents; or a block that is not under the loop reads it too */
} uir_tactic_reading;
uir_tactic_reading uir_tactic_find_reading(const uir_tactic *t, uint32_t tensor, uint32_t loop);
/* Of a block's loops, the index of one that a load has last where the block has the last loop: it is read across. */
uint32_t uir_tactic_crossed_loop(const uir_tactic *t, uint32_t block, const uint32_t *loops, uint32_t count);

#endif
