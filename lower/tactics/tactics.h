/* Inside the tactics: what they work on, the questions that they ask (tactics_look.c) and the steps that they share
 * (tactics_steps.c). */
#ifndef UIR_LOWER_TACTICS_H
#define UIR_LOWER_TACTICS_H

#include "lower/internal.h"
#include "lower/schedule/schedule.h"

#define UIR_TACTIC_MOST_BLOCKS 256

enum {
    UIR_TACTIC_LANES = 4096, /* elements of a slice, at most: as many as there is room for */
    UIR_TACTIC_FEWEST = 32,  /* and at least, where what is moved has two instances */
    UIR_TACTIC_LEAST = 4,    /* and where there is no room for them */
    UIR_TACTIC_TILE = 16384, /* elements of an index of the parallel axis, at least */
    UIR_TACTIC_COLUMN = 256, /* columns reduced at once */
    UIR_TACTIC_PARTED = 8,   /* reductions by parts, at most */
};

typedef struct uir_tactic {
    uir_loop_function *f;
    const uir_device *device;
    uir_schedule *s;
    uir_parameter_choice *choice; /* NULL: nothing is given, and nobody asks */
    uir_diagnostics *diagnostics;
    bool reduces;
    bool stream;           /* rows of any length: nothing of a row is kept */
    bool shares;           /* all rows read some operand alike */
    bool products;         /* some nests are complete products */
    bool plain;            /* products are sums like others */
    bool apart;            /* what follows finished sums is always a nest by itself */
    bool follows;          /* something is computed where finished sums lie */
    bool few;              /* products have few rows where only the run knows how many */
    bool unknown_rows;     /* some product has such rows, and might be tiled otherwise were they few */
    uint32_t segment;      /* of what stands between complete products this is scheduled; UIR_LOOP_NONE: all of it */
    int64_t lanes, column; /* elements of a slice, and columns reduced at once, at most */
    uint32_t names;
    uir_dim tile_of[8], tile[8]; /* rows of so many elements have this tile */
    uint32_t tile_count;
    uint32_t stores[UIR_TACTIC_PARTED], store_count; /* blocks that leave the states of parts in memory */
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
/* How a block touches a tensor: what its first statement stores, else the first load of it there; NULL. */
const uir_loop_access *uir_tactic_find_access(const uir_tactic *t, uint32_t block, uint32_t tensor);
/* The two factors of a block that sums products of them into a TEMP, as the product's call; NULL: it does not. */
const uir_loop_expression *uir_tactic_find_product(const uir_tactic *t, uint32_t block);
/* Of a block; NULL: it has several. */
const uir_loop_statement *uir_tactic_only_statement(const uir_tactic *t, uint32_t block);
bool uir_tactic_is_temp(const uir_tactic *t, uint32_t tensor);
bool uir_tactic_has_kind(const uir_tactic *t, uint32_t block, uir_loop_statement_kind kind);
bool uir_tactic_mentions(const uir_tactic *t, uir_dim dim, uir_symbol symbol);
/* The iteration variable of the block that a loop of its untouched nest drives; NONE: none alone. */
uint32_t uir_tactic_iter_of_loop(const uir_tactic *t, uint32_t block, uint32_t loop);
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

/* ---- steps ---- */
/* A refusal of a primitive is an answer; all else ends the tactic. */
uir_status uir_tactic_asked(uir_status status, bool *out_done);
/* Factors that are widened for a product which the machine multiplies as they are stored: the widening goes into the
 * product, so that tiles of them come as they lie. */
uir_status uir_tactic_inline_widenings(uir_tactic *t);
/* What is used once goes into its user; so does what is cheaper to compute again than to keep. */
uir_status uir_tactic_inline_all(uir_tactic *t);
bool uir_tactic_wants_inline(const uir_tactic *t, uint32_t block);
/* One state, and an update that is one instruction. */
bool uir_tactic_is_simple(const uir_loop_function *f, const uir_loop_monoid *m);
uir_dim uir_tactic_number(const uir_tactic *t, int64_t value);
uir_dim uir_tactic_product_of(const uir_tactic *t, const uint32_t *loops, uint32_t count); /* of their extents */
bool uir_tactic_is_short(const uir_tactic *t, uir_dim extent, int64_t most);
bool uir_tactic_is_in(const uint32_t *list, uint32_t count, uint32_t id);
/* Outer loops become the parallel axes, as many as there may be; the last of them by tiles of rows, each of so many
 * elements. Gives the loop that everything else is computed under. */
uir_status uir_tactic_bind_outer(uir_tactic *t, const uint32_t *loops, uint32_t count, uir_dim elements,
                                 uint32_t *out_at);
/* Does some operand lie in the same place for every round of the loop? t->shares. */
void uir_tactic_find_sharing(uir_tactic *t, uint32_t loop);
uir_status uir_tactic_vectorise(uir_tactic *t, uint32_t loop);
/* Vectorises what a block computes under the loop: its last loop. */
uir_status uir_tactic_vectorise_block(uir_tactic *t, uint32_t block, uint32_t loop);
uint32_t uir_tactic_top_of(const uir_tactic *t, uint32_t statement);
bool uir_tactic_is_under(const uir_tactic *t, uint32_t statement, uint32_t loop);
/* The loops of a block that are not around `loop`. */
uint32_t uir_tactic_own_loops(const uir_tactic *t, uint32_t block, uint32_t loop, uint32_t *out_loops);
/* All blocks but those under the loop, last first: what makes something for those comes under it as well. */
uir_status uir_tactic_compute_producers(uir_tactic *t, uint32_t loop);
/* Operands that are read more than once come on the chip: `of_rows`: rows that several passes read, for the row; what
 * every row reads alike, for the tile of rows. */
uir_status uir_tactic_cache_operands(uir_tactic *t, uint32_t loop, bool of_rows);
/* Units that each bring what they need to a memory of their own; 0: they share one, or a cache does it for them. */
int64_t uir_tactic_count_units_apart(const uir_device *device);
/* Nests that could not be brought under the anchor's: shared among the units by themselves. */
uir_status uir_tactic_bind_strays(uir_tactic *t);
/* What is on the chip, and where. */
uir_status uir_tactic_place_temps(uir_tactic *t);
/* Constants that slices read along another dim than their last lie with that one last, where the machine wants rows. */
uir_status uir_tactic_pack_constants(uir_tactic *t);

/* The nest of a block that reduces nothing, and with it what is made for it (tactics.c). */
uir_status uir_tactic_schedule_elementwise(uir_tactic *t, uint32_t block);

/* ---- groups that reduce (tactics_reduce.c) ---- */
uir_status uir_tactic_schedule_reduction(uir_tactic *t);
/* Does it run across the last index of what it reads, of those that change? Columns are reduced side by side then.
 * false: it reads nothing that changes. */
bool uir_tactic_has_columns(const uir_tactic *t, uint32_t block, bool *out_columns);

/* ---- products through several spaces (levels.c) ---- */
/* Products that the machine multiplies far from memory get nests of their own, which are complete then, as those of
 * parts are. */
uir_status uir_tactic_schedule_products(uir_tactic *t);
/* The block that stores finished sums in memory: one that does only that, or one that is made. UNSUPPORTED: nobody
 * reads them, or several blocks do. */
uir_status uir_tactic_find_sums(uir_tactic *t, uint32_t sums, uint32_t update, uint32_t *out_block);

/* ---- products by vectors (multiply_adds.c) ---- */
/* The nest of the block, and with it what is made for it, where that is one product and the machine has no multiplier
 * for it, but memories of its own for tiles. */
uir_status uir_tactic_schedule_multiply_adds(uir_tactic *t, uint32_t anchor, bool *out_done);
/* One of several products gets a nest of its own, which is complete then: its sums go to memory. */
uir_status uir_tactic_schedule_sums(uir_tactic *t, uint32_t update);

/* ---- reductions by parts (tactics_parts.c) ---- */
/* Is there a reduction so long, and with so little to do beside it, that parts of it are worth a second phase? */
bool uir_tactic_wants_parts(const uir_tactic *t);
/* Such reductions get parts, in nests of their own that are complete then. */
uir_status uir_tactic_reduce_by_parts(uir_tactic *t);
/* Does it stand in a nest that is left as it is: complete, of parts or of a product, or of another segment? */
bool uir_tactic_is_of_parts(const uir_tactic *t, uint32_t block);
/* The same where there are complete products: those of parts are shaped like others once they stand. */
static inline bool uir_tactic_is_left(const uir_tactic *t, uint32_t block) {
    return t->products && uir_tactic_is_of_parts(t, block);
}
/* Is the statement at the top of such a nest? */
bool uir_tactic_is_complete(const uir_tactic *t, uint32_t top);
/* Is the tensor what the nests at work give to others: an output, or what a nest that is left as it is reads? */
bool uir_tactic_leaves(const uir_tactic *t, uint32_t tensor);

#endif
