/* Inside the schedule primitives: steps that can be taken back, the tree, accesses and their order. */
#ifndef UIR_LOWER_SCHEDULE_INTERNAL_H
#define UIR_LOWER_SCHEDULE_INTERNAL_H

#include "lower/schedule/schedule.h"

enum { UIR_SCHEDULE_MAX_DEPTH = 64 }; /* loops and ifs around a block */

/* What a step may change, as it was before: statements and tensors are copied, expressions and monoids only grow. */
typedef struct uir_schedule_snapshot {
    uir_loop_statement *statements;
    uir_loop_tensor *tensors;
    bool *full;
    uint32_t statement_count, tensor_count, expression_count, monoid_count, full_count, first;
    size_t trace_length;
} uir_schedule_snapshot;

struct uir_schedule {
    uir_allocator allocator;
    uir_arena arena;   /* as long as the schedule */
    uir_arena scratch; /* of the step being taken */
    uir_loop_function *function;
    const uir_device *device;
    uir_diagnostics *diagnostics;
    uir_schedule_mode mode;
    uir_text trace;
    uint32_t said_tiles, said_requires, said_candidates; /* of the function, in the trace or there before it */
    char why[512];
    uint32_t depth; /* steps within steps */
    uir_schedule_snapshot before;
    uir_vector(bool) full;        /* per statement */
    uir_vector(uir_symbol) twins; /* per symbol, id + 1 of its twin in another instance; 0: none yet */
    uir_vector(uint32_t) parents; /* per statement; valid when `indexed` */
    struct uir_answers *answers;  /* schedule_answers.c; NULL: none yet */
    uir_vector(uint32_t) places;  /* per statement: its number in the order of the text, 0: unreachable */
    bool indexed;
    bool moved;            /* the step changed what iterations share: marked loops are looked at again */
    uint32_t moved_tensor; /* it changed nothing but where this one's elements lie; NONE: any may be shared now */
};

#define UIR_SCHEDULE_AT(s, id)     (&(s)->function->statements.data[id])
#define UIR_SCHEDULE_TENSOR(s, id) (&(s)->function->tensors.data[id])

/* ---- steps (schedule.c) ---- */
uir_status uir_step_begin(uir_schedule *s);
/* Keeps or takes back what was done since begin; returns the status, or a refusal's. */
uir_status uir_step_end(uir_schedule *s, uir_status status);
/* Sets why and returns UNSUPPORTED. */
uir_status uir_step_refuse(uir_schedule *s, const char *format, ...) UIR_PRINTF(2, 3);
/* What iterations share may have changed, of one tensor or (NONE) of any: see `moved`. */
void uir_step_moved(uir_schedule *s, uint32_t tensor);
/* Appends to the trace; a whole line is said by one call. */
void uir_step_say(uir_schedule *s, const char *format, ...) UIR_PRINTF(2, 3);
/* "i of Y"; kept in scratch. */
const char *uir_step_loop_text(uir_schedule *s, uint32_t loop);
const char *uir_step_dim_text(uir_schedule *s, uir_dim dim);
/* For the caller's output: nothing when only asked. */
void uir_step_give(const uir_schedule *s, uint32_t *out, uint32_t value);

/* ---- the tree (schedule_tree.c). Ids must be reachable. ---- */
uir_status uir_tree_index(uir_schedule *s);                                          /* parents and places */
bool uir_tree_reachable(uir_schedule *s, uint32_t id, uir_loop_statement_kind kind); /* and of that kind */
uint32_t uir_tree_path(uir_schedule *s, uint32_t id, uint32_t *out_path);            /* ancestors, outermost first */
bool uir_tree_holds(uir_schedule *s, uint32_t ancestor, uint32_t id);                /* id itself counts */
uint32_t uir_tree_root(const uir_schedule *s, uint32_t id); /* the outermost statement around it; itself */
uint32_t uir_tree_first_block(const uir_schedule *s, uint32_t id);
void uir_tree_unlink(uir_schedule *s, uint32_t id); /* and the loops and ifs that it leaves empty */
void uir_tree_insert_before(uir_schedule *s, uint32_t place, uint32_t id);
void uir_tree_insert_after(uir_schedule *s, uint32_t place, uint32_t id);
uint32_t *uir_tree_link(uir_schedule *s, uint32_t id); /* the field that holds this id */
uir_status uir_tree_add(uir_schedule *s, const uir_loop_statement *statement, uint32_t *out_id);
/* A loop 0..extent-1 of a new variable, childless. */
uir_status uir_tree_add_loop(uir_schedule *s, const char *name, uir_dim min, uir_dim extent, uint32_t *out_id);
/* `base` or `base_2`, ... : no size, tensor, monoid, or loop that stands around `place` or below it. */
uir_status uir_tree_loop_name(uir_schedule *s, const char *base, uint32_t place, const char **out_name);
uir_status uir_tree_tensor_name(uir_schedule *s, const char *base, const char **out_name);
uir_status uir_tree_block_name(uir_schedule *s, const char *base, const char **out_name);
uir_status uir_tree_add_condition(uir_schedule *s, uint32_t block, uir_relation relation, uir_dim left, uir_dim right);

typedef uir_vector(uir_dim_replacement) uir_substitution;
uir_status uir_substitution_set(uir_schedule *s, uir_substitution *substitution, uir_symbol symbol, uir_dim value);
uir_dim uir_substitute(uir_schedule *s, const uir_substitution *substitution, uir_dim dim);
/* Loop variables under a statement: in ranges, conditions and axis.bind values. */
uir_status uir_tree_substitute(uir_schedule *s, uint32_t id, const uir_substitution *substitution);
bool uir_dim_uses(uir_schedule *s, uir_dim dim, uir_symbol symbol);
/* Expression with iteration variables replaced; the same id where nothing changes. */
uir_status uir_expression_substitute(uir_schedule *s, uint32_t id, const uir_substitution *substitution,
                                     uint32_t *out_id);

/* ---- accesses and order (schedule_order.c) ---- */
typedef struct uir_site {
    uint32_t tensor, block, statement;
    uint32_t ordinal;              /* in the block, in the order of execution: a statement reads, then writes */
    bool write, reduction;         /* reduction: the target of an update or combine */
    bool filled;                   /* a read that may be outside */
    uint32_t next;                 /* of the same tensor (uir_sites_collect_all); NONE after the last */
    uir_dim at[UIR_LOOP_MAX_RANK]; /* over loop variables, sizes and symbols read from data */
} uir_site;
/* In the order of the text: the sites of a block, and of a loop, stand side by side. */
typedef struct uir_sites {
    uir_site *data;
    uint32_t count, capacity;
    uint32_t *of_tensor; /* per tensor its first site; NONE where there is none */
    uint32_t *of_block;  /* per statement that is a block, where its sites begin; NONE of other statements */
} uir_sites;
uir_status uir_sites_collect(uir_schedule *s, uint32_t block, uir_sites *sites);         /* without the two indices */
uir_status uir_sites_collect_all(uir_schedule *s, uint32_t statement, uir_sites *sites); /* NONE: the function */
#define UIR_SITES_OF_TENSOR(sites, tensor_, k)                                                                         \
    for (uint32_t k = (sites)->of_tensor[tensor_]; k != UIR_LOOP_NONE; k = (sites)->data[k].next)

/* Of the instances of two sites that touch one element: how the loops around both stand to each other. */
typedef enum uir_direction {
    UIR_DIRECTION_EQUAL,
    UIR_DIRECTION_BEFORE,
    UIR_DIRECTION_BEFORE_OR_EQUAL,
    UIR_DIRECTION_AFTER,
    UIR_DIRECTION_AFTER_OR_EQUAL,
    UIR_DIRECTION_ANY
} uir_direction;
typedef struct uir_conflict {
    bool never; /* there are none; false too where that was not asked */
    uint32_t loop_count;
    uint32_t loops[UIR_SCHEDULE_MAX_DEPTH]; /* common, outermost first */
    uir_direction directions[UIR_SCHEDULE_MAX_DEPTH];
} uir_conflict;
/* `equal_until`: the one loop that is asked about; instances that differ in loops around it do not count.
 * UIR_LOOP_NONE: all loops are asked about, and all instances count. `never`: whether it is asked if there are no such
 * instances at all, which takes the longest. */
uir_status uir_conflict_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                             uir_conflict *out);
/* The same, asked anew; the other one remembers what it was told of sites that stand as they stood
 * (schedule_answers.c).
 */
uir_status uir_conflict_prove(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t equal_until, bool never,
                              uir_conflict *out);
typedef enum uir_order { UIR_ORDER_NEVER, UIR_ORDER_BEFORE, UIR_ORDER_AFTER, UIR_ORDER_UNKNOWN } uir_order;
/* NEVER: they touch no element twice; found out where `never` asks for it, or where both are one site. `within`: a loop
 * around both; instances of different iterations of it, or of loops around it, do not count (NONE: all do). */
uir_status uir_order_find(uir_schedule *s, const uir_site *x, const uir_site *y, uint32_t within, bool never,
                          uir_order *out);
/* Conditions that hold at a statement's place: ranges of loops, ifs, and a block's where. */
typedef uir_vector(uir_condition) uir_conditions;
uir_status uir_order_given(uir_schedule *s, uint32_t statement, uir_conditions *conditions);
bool uir_order_proved(uir_schedule *s, const uir_conditions *given, uir_dim a, uir_relation relation, uir_dim b);

/* Orders of blocks' conflicts with all others, taken before a change and compared after it. */
typedef struct uir_order_record {
    uir_site x, y;
    uint32_t x_index, y_index; /* of the block's sites */
    uir_order order;
} uir_order_record;
typedef struct uir_orders {
    uir_order_record *data;
    uint32_t count, capacity;
    const bool *except; /* per tensor: not looked at; NULL: all are */
    uint32_t within;    /* the loop of which each iteration is changed by itself; NONE: there is none */
} uir_orders;
/* Conflicts of the blocks under `moved` with blocks outside it. */
uir_status uir_orders_take(uir_schedule *s, const uint32_t *moved, uint32_t moved_count, uir_orders *orders);
uir_status uir_orders_check(uir_schedule *s, const uir_orders *orders);

/* ---- marked loops (schedule_loops.c) ---- */
/* Parallel, bound and vectorised loops still are what they are marked as, looking at one tensor or (NONE) at all;
 * refuses otherwise. */
uir_status uir_loops_check_marked(uir_schedule *s, uint32_t tensor);

/* ---- regions (schedule_region.c) ---- */
typedef struct uir_region {
    uint32_t rank;
    bool empty;                                              /* nothing joined yet */
    uir_dim low[UIR_LOOP_MAX_RANK], high[UIR_LOOP_MAX_RANK]; /* inclusive */
} uir_region;
/* Box around what the site touches while loops around and including `loop` stand still (NONE: all move), joined to
 * *region. */
uir_status uir_region_join(uir_schedule *s, const uir_site *site, uint32_t loop, uir_region *region);
/* What `read` touches has been written by `write` in the same iteration of all loops around both. */
uir_status uir_region_covers(uir_schedule *s, const uir_site *write, const uir_site *read, bool *out_covers);
/* Every axis.bind value under the statement is proved to stay in its domain; refuses otherwise. */
uir_status uir_region_check_binds(uir_schedule *s, uint32_t statement);
/* Every access of the block without a fill is proved to be inside by its variables' domains; refuses otherwise. */
uir_status uir_region_check_accesses(uir_schedule *s, uint32_t block);
/* Sizes, tiles and constants alone. */
bool uir_dim_is_of_sizes(const uir_schedule *s, uir_dim dim);

/* ---- moving blocks (schedule_move.c) ---- */
/* Per index of an access the iteration variable that it is; false when one is no plain variable, or two are the same.
 */
bool uir_access_is_plain(const uir_schedule *s, const uir_loop_statement *block, const uir_loop_access *access,
                         uint32_t *out_iters);
/* New loops for a block that has none around it: iteration variable i runs from low[i], extent[i] steps; a `where`
 * where its domain may end before. The nest's first statement. */
uir_status uir_move_build_nest(uir_schedule *s, uint32_t block, uint32_t place, const uir_dim *low,
                               const uir_dim *extent, uint32_t *out_top);
/* What the block reads of one tensor it reads of another (schedule_tensors.c). */
uir_status uir_block_redirect(uir_schedule *s, uint32_t block, uint32_t from, uint32_t to);
/* Takes the block from where it is into new loops before or after a statement (the other one NONE). */
uir_status uir_move_nest(uir_schedule *s, uint32_t block, uint32_t before, uint32_t after, const uir_dim *low,
                         const uir_dim *extent);
/* A `where` for each variable that its new loops may take out of its domain. The nest stands where it belongs. */
uir_status uir_move_guard_domain(uir_schedule *s, uint32_t block);
/* Adds to the block's `where` what each of the others asks of sizes, `loop` and the loops around it (NONE: of sizes).
 */
uir_status uir_move_carry_conditions(uir_schedule *s, uint32_t block, uint32_t loop, const uint32_t *others,
                                     uint32_t count);
uint32_t uir_block_only_statement(const uir_schedule *s, uint32_t block); /* NONE when there are several */

#endif
