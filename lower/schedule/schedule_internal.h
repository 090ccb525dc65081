/* Inside the schedule primitives: reversible steps, the tree, accesses and their order. */
#ifndef UIR_LOWER_SCHEDULE_INTERNAL_H
#define UIR_LOWER_SCHEDULE_INTERNAL_H

#include "lower/schedule/schedule.h"

enum { UIR_SCHEDULE_MAX_DEPTH = 64 }; /* loops and ifs around a block */

/* The state before a step: statements and tensors are copied, expressions and monoids only grow. */
typedef struct uir_schedule_snapshot {
    uir_loop_statement *statements;
    uir_loop_tensor *tensors;
    bool *full;
    uint32_t statement_count, tensor_count, expression_count, monoid_count, full_count, first;
    size_t trace_length;
} uir_schedule_snapshot;

struct uir_schedule {
    uir_allocator allocator;
    uir_arena arena;   /* lives as long as the schedule */
    uir_arena scratch; /* of the current step */
    uir_loop_function *function;
    const uir_machine *machine;
    uir_diagnostics *diagnostics;
    uir_schedule_mode mode;
    uir_text trace;
    uint32_t said_tiles, said_requires, said_candidates; /* of the function, those in the trace or older than it */
    char why[512];
    uint32_t depth; /* steps within steps */
    uir_schedule_snapshot before;
    uir_vector(bool) full;        /* per statement: a block that runs over its whole iteration space */
    uir_vector(uir_symbol) twins; /* per symbol, id + 1 of its twin in another instance; 0: none yet */
    uir_vector(uint32_t) parents; /* per statement; valid if `indexed` */
    struct uir_answers *answers;  /* schedule_answers.c; NULL: none yet */
    uir_vector(uint32_t) places;  /* per statement: its number in the order of the text; 0: unreachable */
    bool indexed;
    bool moved;            /* the step changed data that iterations share: marked loops are checked again */
    uint32_t moved_tensor; /* only the layout of this tensor changed; NONE: any data may be shared now */
};

#define UIR_SCHEDULE_AT(s, id)     (&(s)->function->statements.data[id])
#define UIR_SCHEDULE_TENSOR(s, id) (&(s)->function->tensors.data[id])

/* ---- steps (schedule.c) ---- */
uir_status uir_step_begin(uir_schedule *s);
/* Keeps or undoes the changes since begin; returns the status, or a refusal's. */
uir_status uir_step_end(uir_schedule *s, uir_status status);
/* Sets why and returns UNSUPPORTED. */
uir_status uir_step_refuse(uir_schedule *s, const char *format, ...) UIR_PRINTF(2, 3);
/* Notes that data shared by iterations may have changed, of one tensor or (NONE) of any: see `moved`. */
void uir_step_moved(uir_schedule *s, uint32_t tensor);
/* Appends a whole line to the trace. */
void uir_step_say(uir_schedule *s, const char *format, ...) UIR_PRINTF(2, 3);
/* "i of Y"; kept in scratch. */
const char *uir_step_loop_text(uir_schedule *s, uint32_t loop);
const char *uir_step_dim_text(uir_schedule *s, uir_dim dim);
/* Sets a caller's output; UIR_LOOP_NONE in mode ASK. */
void uir_step_give(const uir_schedule *s, uint32_t *out, uint32_t value);

/* ---- the tree (schedule_tree.c). Ids must be reachable. ---- */
uir_status uir_tree_index(uir_schedule *s);                                          /* sets parents and places */
bool uir_tree_reachable(uir_schedule *s, uint32_t id, uir_loop_statement_kind kind); /* reachable, of that kind */
uint32_t uir_tree_path(uir_schedule *s, uint32_t id, uint32_t *out_path);            /* ancestors, outermost first */
bool uir_tree_holds(uir_schedule *s, uint32_t ancestor, uint32_t id);                /* id itself counts */
uint32_t uir_tree_root(const uir_schedule *s, uint32_t id); /* the outermost statement around it, or itself */
uint32_t uir_tree_first_block(const uir_schedule *s, uint32_t id);
void uir_tree_unlink(uir_schedule *s, uint32_t id); /* removes it, and loops and ifs that are then empty */
void uir_tree_insert_before(uir_schedule *s, uint32_t place, uint32_t id);
void uir_tree_insert_after(uir_schedule *s, uint32_t place, uint32_t id);
uint32_t *uir_tree_link(uir_schedule *s, uint32_t id); /* the field that holds this id */
uir_status uir_tree_add(uir_schedule *s, const uir_loop_statement *statement, uint32_t *out_id);
/* Adds a loop of a new variable from `min`, `extent` iterations, without children. */
uir_status uir_tree_add_loop(uir_schedule *s, const char *name, uir_dim min, uir_dim extent, uint32_t *out_id);
/* `base` or `base_2`, ...: not the name of a size, tensor, monoid, or of a loop around `place` or below it. */
uir_status uir_tree_loop_name(uir_schedule *s, const char *base, uint32_t place, const char **out_name);
uir_status uir_tree_tensor_name(uir_schedule *s, const char *base, const char **out_name);
uir_status uir_tree_block_name(uir_schedule *s, const char *base, const char **out_name);
uir_status uir_tree_add_condition(uir_schedule *s, uint32_t block, uir_relation relation, uir_dim left, uir_dim right);

typedef uir_vector(uir_dim_replacement) uir_substitution;
uir_status uir_substitution_set(uir_schedule *s, uir_substitution *substitution, uir_symbol symbol, uir_dim value);
uir_dim uir_substitute(uir_schedule *s, const uir_substitution *substitution, uir_dim dim);
/* Substitutes loop variables under a statement: in ranges, conditions and axis.bind values. */
uir_status uir_tree_substitute(uir_schedule *s, uint32_t id, const uir_substitution *substitution);
bool uir_dim_uses(uir_schedule *s, uir_dim dim, uir_symbol symbol);
/* The expression with iteration variables replaced; the same id if nothing changes. */
uir_status uir_expression_substitute(uir_schedule *s, uint32_t id, const uir_substitution *substitution,
                                     uint32_t *out_id);

/* ---- accesses and order (schedule_order.c) ---- */
typedef struct uir_site {
    uint32_t tensor, block, statement;
    uint32_t ordinal;              /* in the block, in the order of execution: a statement reads, then writes */
    bool write, reduction;         /* reduction: the target of an update or combine */
    bool filled;                   /* a read that may be outside */
    uint32_t next;                 /* of the same tensor (uir_sites_collect_all); NONE: the last */
    uir_dim at[UIR_LOOP_MAX_RANK]; /* over loop variables, sizes and symbols read from data */
} uir_site;
/* In the order of the text: the sites of a block, and of a loop, are contiguous. */
typedef struct uir_sites {
    uir_site *data;
    uint32_t count, capacity;
    uint32_t *of_tensor; /* per tensor its first site; NONE: none */
    uint32_t *of_block;  /* per block its first site; NONE for other statements */
} uir_sites;
uir_status uir_sites_collect(uir_schedule *s, uint32_t block, uir_sites *sites);         /* without the two indices */
uir_status uir_sites_collect_all(uir_schedule *s, uint32_t statement, uir_sites *sites); /* `statement` NONE: the
                                                                                          * function */
#define UIR_SITES_OF_TENSOR(sites, tensor_, k)                                                                         \
    for (uint32_t k = (sites)->of_tensor[tensor_]; k != UIR_LOOP_NONE; k = (sites)->data[k].next)

/* The relation of the common loops' iterations in instances of two sites that touch one element. */
typedef enum uir_direction {
    UIR_DIRECTION_EQUAL,
    UIR_DIRECTION_BEFORE,
    UIR_DIRECTION_BEFORE_OR_EQUAL,
    UIR_DIRECTION_AFTER,
    UIR_DIRECTION_AFTER_OR_EQUAL,
    UIR_DIRECTION_ANY
} uir_direction;
typedef struct uir_conflict {
    bool never; /* no such instances; false too if not asked for */
    uint32_t loop_count;
    uint32_t loops[UIR_SCHEDULE_MAX_DEPTH]; /* common, outermost first */
    uir_direction directions[UIR_SCHEDULE_MAX_DEPTH];
} uir_conflict;
/* Finds the directions of conflicts. `equal_until`: only this loop is examined, over instances that agree in the loops
 * around it. UIR_LOOP_NONE: all loops, and all instances. `never`: also whether no such instances exist, which takes
 * the longest. */
uir_status uir_conflict_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                             uir_conflict *out);
/* The same by a new proof; uir_conflict_find memoises answers about unchanged sites (schedule_answers.c). */
uir_status uir_conflict_prove(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                              uir_conflict *out);
typedef enum uir_order { UIR_ORDER_NEVER, UIR_ORDER_BEFORE, UIR_ORDER_AFTER, UIR_ORDER_UNKNOWN } uir_order;
/* NEVER: they touch no element in common; found only if `never` is set or both are one site. `within`: a loop around
 * both; instances of different iterations of it, or of loops around it, do not count (NONE: all do). */
uir_status uir_order_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t within, bool never,
                          uir_order *out);
/* Conditions that hold at a statement: ranges of loops, ifs, a block's where, and the function's requires. */
typedef uir_vector(uir_condition) uir_conditions;
uir_status uir_order_given(uir_schedule *s, uint32_t statement, uir_conditions *conditions);
bool uir_order_proved(uir_schedule *s, const uir_conditions *given, uir_dim a, uir_relation relation, uir_dim b);

/* Orders of blocks' conflicts with all others, recorded before a change and compared after it. */
typedef struct uir_order_record {
    uir_site x, y;
    uint32_t x_index, y_index; /* of the block's sites */
    uir_order order;
} uir_order_record;
typedef struct uir_orders {
    uir_order_record *data;
    uint32_t count, capacity;
    const bool *except; /* per tensor: excluded; NULL: none */
    uint32_t within;    /* the loop whose iterations are changed independently; NONE: none */
} uir_orders;
/* Records conflicts of the blocks under `moved` with blocks outside. */
uir_status uir_orders_take(uir_schedule *s, const uint32_t *moved, uint32_t moved_count, uir_orders *orders);
uir_status uir_orders_check(uir_schedule *s, const uir_orders *orders);

/* ---- marked loops (schedule_loops.c) ---- */
/* Checks that parallel, bound and vectorised loops still satisfy their kinds, for one tensor or (NONE) all; refuses
 * otherwise. */
uir_status uir_loops_check_marked(uir_schedule *s, uint32_t tensor);

/* ---- regions (schedule_region.c) ---- */
typedef struct uir_region {
    uint32_t rank;
    bool empty;                                              /* nothing joined yet */
    uir_dim low[UIR_LOOP_MAX_RANK], high[UIR_LOOP_MAX_RANK]; /* inclusive */
} uir_region;
/* Joins to *region the box that the site touches for one iteration of the loops around and including `loop` (NONE: for
 * all iterations). */
uir_status uir_region_join(uir_schedule *s, const uir_site *site, uint32_t loop, uir_region *region);
/* Whether `write` has written every element that `read` touches, in the same iteration of all loops around both. */
uir_status uir_region_covers(uir_schedule *s, const uir_site *write, const uir_site *read, bool *out_covers);
/* Proves that every axis.bind value under the statement is in its domain; refuses otherwise. */
uir_status uir_region_check_binds(uir_schedule *s, uint32_t statement);
/* Proves, by the domains of its variables, that every access of the block without a fill is inside; refuses
 * otherwise. */
uir_status uir_region_check_accesses(uir_schedule *s, uint32_t block);
/* Whether the dim has only sizes, tiles and constants. */
bool uir_dim_is_of_sizes(const uir_schedule *s, uir_dim dim);

/* ---- moving blocks (schedule_move.c) ---- */
/* Finds the iteration variable that is each index of an access; false if an index is not a plain variable, or two are
 * the same. */
bool uir_access_is_plain(const uir_schedule *s, const uir_loop_statement *block, const uir_loop_access *access,
                         uint32_t *out_iters);
/* Builds new loops for a block without any: iteration variable i runs from low[i], extent[i] steps. *out_top: the
 * nest's first statement. Guards are added by uir_move_guard_domain. */
uir_status uir_move_build_nest(uir_schedule *s, uint32_t block, uint32_t place, const uir_dim *low,
                               const uir_dim *extent, uint32_t *out_top);
/* Makes the block read `to` instead of `from` (schedule_tensors.c). */
uir_status uir_block_redirect(uir_schedule *s, uint32_t block, uint32_t from, uint32_t to);
/* Moves the block into new loops before or after a statement (the other one is NONE). */
uir_status uir_move_nest(uir_schedule *s, uint32_t block, uint32_t before, uint32_t after, const uir_dim *low,
                         const uir_dim *extent);
/* Adds a `where` for each variable that its new loops may carry out of its domain. The nest must be in its final
 * position. */
uir_status uir_move_guard_domain(uir_schedule *s, uint32_t block);
/* Adds to the block's `where` the conditions that all `others` have on sizes, `loop` and the loops around it (NONE: on
 * sizes). */
uir_status uir_move_carry_conditions(uir_schedule *s, uint32_t block, uint32_t loop, const uint32_t *others,
                                     uint32_t count);
uint32_t uir_block_only_statement(const uir_schedule *s, uint32_t block); /* NONE: several */

#endif
