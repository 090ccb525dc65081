/* Schedule primitives: what a tactic may do to a loop AST without changing what it computes.
 *
 * In: a verified function and ids of its statements and tensors. Out: the same function, changed in place, with a trace
 * that says each step in words (`split i of Y by 16: i_o, i_i`) and can be replayed.
 *
 * Every primitive checks first and then changes, or changes and puts back. A refusal returns UIR_STATUS_UNSUPPORTED,
 * with a reason (uir_schedule_why, and a diagnostic unless the mode is quiet). The function is then as before. Refusing
 * is normal: tactics ask. Ids of statements and tensors stay what they were. A removed statement cannot be reached from
 * the function's first one.
 *
 * Legality is decided on conflicts: two instances that touch one element of a tensor, one of them writing it. A
 * primitive keeps the order of every pair of conflicting instances. Exceptions: an element computed again before each
 * use, and a commutative monoid. A change that cannot be proved legal is refused. */
#ifndef UIR_LOWER_SCHEDULE_H
#define UIR_LOWER_SCHEDULE_H

#include "base/text.h"
#include "ir/machine/device.h"
#include "ir/loop/loop.h"

typedef struct uir_schedule uir_schedule;

typedef enum uir_schedule_mode {
    UIR_SCHEDULE_REPORT, /* a refusal is an error among the diagnostics */
    UIR_SCHEDULE_QUIET,  /* a refusal is said by the status and uir_schedule_why only */
    UIR_SCHEDULE_ASK     /* as QUIET, and nothing is changed when the answer is yes: outputs are UIR_LOOP_NONE */
} uir_schedule_mode;

/* `function` is borrowed and must outlive the schedule. `machine` says which spaces all units share (NULL: memory
 * alone). */
uir_status uir_schedule_create(uir_loop_function *function, const uir_machine *machine, uir_diagnostics *diagnostics,
                               uir_schedule **out_schedule);
void uir_schedule_destroy(uir_schedule *schedule); /* NULL is fine; the function stays */
uir_schedule_mode uir_schedule_set_mode(uir_schedule *schedule, uir_schedule_mode mode); /* returns the mode before */
const char *uir_schedule_why(const uir_schedule *schedule); /* of the latest refusal; "" when there was none */
/* The steps so far, one a line; borrowed, grows. Tiles, requires and candidates that the function got since the
 * schedule was created are lines of it, as in the function's text: tiles and requires before the step that follows
 * them, candidates at the end. */
const uir_text *uir_schedule_trace(uir_schedule *schedule);
/* Takes the steps of a trace again, on a function equal to the one that it began with. */
uir_status uir_schedule_replay(uir_schedule *schedule, const char *trace, size_t length);
/* The same of a file's text, up to its end or the word `stop`: every message has its place, and a step that is refused
 * is BAD_FILE like what is no step. The schedule's mode is QUIET afterwards. */
uir_status uir_schedule_replay_text(uir_schedule *schedule, uir_tokenizer *tokens, const char *stop);

uir_loop_function *uir_schedule_function(const uir_schedule *schedule); /* that it was created for */

/* ---- looking: UIR_LOOP_NONE where there is none ---- */
uint32_t uir_schedule_find_block(const uir_schedule *schedule, const char *name);
uint32_t uir_schedule_find_tensor(const uir_schedule *schedule, const char *name);
/* Loops around a statement, outermost first; at most `capacity` are written, the number of all is returned. */
uint32_t uir_schedule_loops(const uir_schedule *schedule, uint32_t statement, uint32_t *out_loops, uint32_t capacity);
/* Blocks under a statement (UIR_LOOP_NONE: in the function) in the order of the text. */
uint32_t uir_schedule_blocks(const uir_schedule *schedule, uint32_t statement, uint32_t *out_blocks, uint32_t capacity);
uint32_t uir_schedule_parent(const uir_schedule *schedule, uint32_t statement); /* FOR or IF around it */
/* Blocks that store to a tensor / read it (an update reads its targets), in the order of the text. */
uint32_t uir_schedule_writers(const uir_schedule *schedule, uint32_t tensor, uint32_t *out_blocks, uint32_t capacity);
uint32_t uir_schedule_readers(const uir_schedule *schedule, uint32_t tensor, uint32_t *out_blocks, uint32_t capacity);
/* The loop's variable decides a reduce iteration variable of a block under it. */
bool uir_schedule_is_reduce(const uir_schedule *schedule, uint32_t loop);
/* ---- loops. `out_` may be NULL ---- */
/* loop -> outer of ceildiv(extent, factor), inner of factor; the outer one keeps the id. The factor is a constant, a
 * size or a tile, at least 1; blocks get a `where` unless it is proved to divide. */
uir_status uir_schedule_split(uir_schedule *schedule, uint32_t loop, uir_dim factor, uint32_t *out_outer,
                              uint32_t *out_inner);
/* More iterations, in which nothing happens: the loop runs to an extent of sizes alone that is proved to be at least
 * its own, and blocks get a `where` unless it is proved to be the same. */
uir_status uir_schedule_extend(uir_schedule *schedule, uint32_t loop, uir_dim extent);
/* A loop of one iteration around another loop; extend makes it longer. */
uir_status uir_schedule_add_unit_loop(uir_schedule *schedule, uint32_t loop, uint32_t *out_loop);
/* Two loops, inner the only statement in outer, of serial kind and equal nature -> one, which keeps outer's id. */
uir_status uir_schedule_fuse(uir_schedule *schedule, uint32_t outer, uint32_t inner, uint32_t *out_fused);
/* Loops of one perfect nest take the places that they hold among them in the order given. The first one's statement
 * stays on top: ids go with the loops (kind, variable, extent), so a loop keeps its id. */
uir_status uir_schedule_reorder(uir_schedule *schedule, const uint32_t *loops, uint32_t count);
/* Two loops of one list and equal range -> `a`, whose body goes on with b's; b is gone. What stands between them must
 * not depend on b's. */
uir_status uir_schedule_merge_loops(uir_schedule *schedule, uint32_t a, uint32_t b);
/* The same at b's place: b, which does a's body first; a is gone. What stands between them must not need a's. */
uir_status uir_schedule_merge_into(uir_schedule *schedule, uint32_t a, uint32_t b);
/* `bound_to` only with UIR_LOOP_BOUND. PARALLEL, BOUND: no element passes from one iteration to another, but for what
 * each iteration computes for itself in a TEMP of a space that units do not share. VECTORISED: the same, or a
 * reduction. */
uir_status uir_schedule_set_kind(uir_schedule *schedule, uint32_t loop, uir_loop_kind kind, const char *bound_to);

/* ---- blocks ---- */
/* A block that stores (or finishes) one TEMP goes into all that read it. */
uir_status uir_schedule_inline(uir_schedule *schedule, uint32_t block);
/* A block that stores one tensor from one TEMP goes into that TEMP's only writer: an epilogue. The writer keeps its id.
 */
uir_status uir_schedule_reverse_inline(uir_schedule *schedule, uint32_t block);
/* The producer is computed under the loop, before what reads it there, for just the region that is read there, and only
 * where all its readers' conditions on the loops around hold. A reduction takes its init along. Its loops are new:
 * uir_schedule_loops. */
uir_status uir_schedule_compute_at(uir_schedule *schedule, uint32_t block, uint32_t loop);
/* The consumer is computed under the loop, after what it reads is complete, for the region that is complete there, and
 * only where the writer's conditions on the loops around hold. */
uir_status uir_schedule_reverse_compute_at(uir_schedule *schedule, uint32_t block, uint32_t loop);
/* Of the innermost list that holds both blocks: the statement around `block` stands right before the one around
 * `before`. */
uir_status uir_schedule_move_before(uir_schedule *schedule, uint32_t block, uint32_t before);
/* A TEMP keeps only the region that is alive under the innermost loop around all that touch it; its indices become
 * relative to that region. The last step for those blocks: they are no longer full. */
uir_status uir_schedule_shrink(uir_schedule *schedule, uint32_t tensor);
/* update of Y over `loop` -> partial states with one more axis (the last), an init and an update for these in place of
 * the old update, and a combine of them into Y. The update keeps its id. A loop other than the outermost of the
 * reduction takes a commutative monoid. */
uir_status uir_schedule_rfactor(uir_schedule *schedule, uint32_t block, uint32_t loop, uint32_t *out_init,
                                uint32_t *out_combine, uint32_t *out_tensor);
/* split by `factor`, then rfactor over the inner loop: the two-step form. */
uir_status uir_schedule_factorise_reduction(uir_schedule *schedule, uint32_t block, uint32_t loop, uir_dim factor,
                                            uint32_t *out_init, uint32_t *out_combine, uint32_t *out_tensor);
/* What divides one factor of a sum of products and does not depend on what is summed over divides the sum: all that
 * read the sums read the quotients. The factor is stored for this sum alone, as a quotient; or as one of exponentials
 * by their sum, of which what is NaN is 0. Sums of nothing are not divided. */
uir_status uir_schedule_factor_out(uir_schedule *schedule, uint32_t block, uint32_t *out_tensor, uint32_t *out_block);
/* A reduction over all that `loop` runs over (an update, or a combine of rfactor's, before the loop) becomes a running
 * one in it. What depends on it there is exp of a difference with it; the sums of that are rescaled as it grows, and
 * the state begins at the least finite number (greatest, of a minimum). The tensors: the state before, the factor. */
uir_status uir_schedule_roll(uir_schedule *schedule, uint32_t block, uint32_t loop, uint32_t *out_old,
                             uint32_t *out_scale);
/* An operand of the call that a block's only statement takes. */
typedef struct uir_schedule_operand {
    uint32_t which;
    bool under_cast;  /* what the operand casts, not the operand */
    bool guarded;     /* it is computed only where the block's conditions on the loops around hold */
    const char *name; /* of the tensor that is to hold it; NULL where that is there */
} uir_schedule_operand;
/* The operand is computed ahead of the block, over the block's iteration variables `iters` in that order, into a TEMP
 * in `space` that the block then loads it from. In the loop: for what is needed there; other variables that the operand
 * depends on stand still there. `loop` NONE: before all of the block's loops; compute_at brings it nearer. */
uir_status uir_schedule_cache_operand(uir_schedule *schedule, uint32_t block, const uir_schedule_operand *operand,
                                      const uint32_t *iters, uint32_t count, uint32_t loop, const char *space,
                                      uint32_t *out_tensor, uint32_t *out_copy);
/* The operand is loaded from a TEMP in which another block keeps it already: what that stores, at the block's iteration
 * variables `iters`, one per dim, is the same expression, and is proved to be written in the same iteration. */
uir_status uir_schedule_take_operand(uir_schedule *schedule, uint32_t block, const uir_schedule_operand *operand,
                                     const uint32_t *iters, uint32_t count, uint32_t tensor);
/* The two operands of a product or sum change places. */
uir_status uir_schedule_exchange(uir_schedule *schedule, uint32_t block);
/* Of a sum of products, those with what a factor reads outside along a dim of its tensor, where that is 0, are left
 * out: the block gets a `where`, and is no longer full. (Where the other factor is infinite or NaN that was NaN, and a
 * sum of -0 stays one.)
 */
uir_status uir_schedule_leave_out(uir_schedule *schedule, uint32_t block, uint32_t which, uint32_t dim);
/* Sums of products become contractions by what the loops compute, as uir_contraction_classify: the first step of all.
 */
uir_status uir_schedule_classify(uir_schedule *schedule);
/* What each of a contraction's iteration variables is to its two factors; none may be UIR_LOOP_CLASS_NONE. */
uir_status uir_schedule_set_classes(uir_schedule *schedule, uint32_t block, const uir_loop_class *classes);
/* What the block is to later stages. */
uir_status uir_schedule_set_use(uir_schedule *schedule, uint32_t block, uir_loop_use use);
/* A mark of the author's, which means nothing to any stage, kept as `annotate "mark"`. */
uir_status uir_schedule_annotate(uir_schedule *schedule, uint32_t block, const char *mark);

/* ---- tensors ---- */
/* The block (UIR_LOOP_NONE: each that reads it) reads a copy of the tensor in `space`; the copy is made before the
 * first of them, compute_at brings it nearer. */
uir_status uir_schedule_cache_read(uir_schedule *schedule, uint32_t tensor, uint32_t block, const char *space,
                                   uint32_t *out_tensor, uint32_t *out_copy);
/* All that touch the tensor use a TEMP in `space`; a copy into the tensor follows, reverse_compute_at brings it nearer.
 */
uir_status uir_schedule_cache_write(uir_schedule *schedule, uint32_t tensor, const char *space, uint32_t *out_tensor,
                                    uint32_t *out_copy);
uir_status uir_schedule_set_scope(uir_schedule *schedule, uint32_t tensor, const char *space);
/* The dims of a TEMP in another order; those that are left out have one element, and so has UIR_LOOP_NONE, a new one.
 */
uir_status uir_schedule_arrange(uir_schedule *schedule, uint32_t tensor, const uint32_t *dims, uint32_t count);
/* A TEMP's dim gets elements at its end that nothing touches: an extent of sizes alone, proved to be at least its own.
 */
uir_status uir_schedule_pad(uir_schedule *schedule, uint32_t tensor, uint32_t dim, uir_dim extent);
/* Where the elements of a TEMP, or of a constant that may be packed ahead, lie. */
uir_status uir_schedule_set_layout(uir_schedule *schedule, uint32_t tensor, const uir_layout *layout);

#endif
