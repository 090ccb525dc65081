/* Lowering: a group node becomes a loop AST, the loop AST is scheduled for a device, and iGraphs come out.
 *
 * In: a module of primitives whose graphs hold `group` nodes, and a device's description. Out: for each group the naive
 * loop AST, its scheduled variants with their steps in words, and the verified iGraph variants. The first variant whose
 * `require` holds is used; the last one holds for all sizes that the facts allow.
 *
 * Arguments. `in k` is operand k of the group, `out k` its result k; `const k` is operand k, constant, in a packed
 * layout (uir_igraph_pack). The k-th `dim` of the function and of each of its iGraphs has the value of the k-th of the
 * group's `sizes`, which uir_lower_build sets.
 *
 * UNSUPPORTED means: the group has no kernel (the message says why); its nodes are for the interpreter. */
#ifndef UIR_LOWER_LOWER_H
#define UIR_LOWER_LOWER_H

#include "ir/graph/graph.h"
#include "ir/kernel/igraph.h"
#include "ir/loop/loop.h"
#include "lower/parameters.h"

/* A scheduled function, and the steps that make it of the naive one (uir_schedule_replay); no text where they were
 * taken by other ways than the schedule primitives. */
typedef struct uir_loop_variant {
    uir_loop_function *function;
    uir_text trace;
} uir_loop_variant;

typedef struct uir_loop_list {
    uir_loop_variant *variants;
    uint32_t count, capacity;
    uir_allocator allocator;
} uir_loop_list;
/* Destroys what was added after the first `count`. */
void uir_loop_list_truncate(uir_loop_list *list, uint32_t count);
void uir_loop_list_deinit(uir_loop_list *list); /* destroys the functions */
/* Takes the function over, also on failure; copies the trace (NULL: there is none). */
uir_status uir_loop_list_add(uir_loop_list *list, uir_loop_function *function, const uir_text *trace);

/* The naive loop AST called `name` of a group: one nest per value that the group's body makes, a reduction with its
 * monoid, a concatenation by pieces. Tensors are declared over axes (ir/graph/axes.h), an operand that is read in two ways is
 * two tensors of one argument. Sets the node's `sizes` and `kernel`. */
uir_status uir_lower_build(uir_module *module, uir_node_id group, const char *name, const uir_allocator *allocator,
                           uir_diagnostics *diagnostics, uir_loop_function **out_function);

/* The tactics that fit: contractions have their own (lower/tactics/products/contraction.h), all else aligns, tiles, inlines, reduces in
 * two steps, computes at and binds. Appends the variants, each a changed copy of the function. `choice` (may be NULL):
 * the tuning record that is given and the one that is chosen. INVALID_ARGUMENT, with a message, when that which
 * is given does not fit the function and the device. `steps` (may be NULL) gets what was done, in words: the traces of
 * the variants that have one, else what their tactic says. */
uir_status uir_lower_schedule(const uir_loop_function *function, const uir_device *device, uir_parameter_choice *choice,
                              uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out);

/* A kernel's schedule as a text: its steps as uir_lower_schedule says them, of several variants each below a line
 * `variant K:`, K from 1. A line may begin with `# `, as where the steps are printed as comments; `#` before anything
 * else begins one. */
typedef struct uir_schedule_text {
    const char *data;
    size_t length;
    const char *file; /* its name, for messages */
} uir_schedule_text;
/* In place of the tactics: a variant from each part of the text. BAD_FILE, with the place and the primitive's
 * reason, for a step that is none or is refused. That the last variant is for all sizes is the text's own concern:
 * sizes that no variant is for are refused when the kernel is to run. `steps` (may be NULL) gets the traces. */
uir_status uir_lower_replay(const uir_loop_function *function, const uir_device *device, const uir_schedule_text *text,
                            uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out);

/* The iGraph of one scheduled function, verified; appended. */
uir_status uir_lower_kernel(const uir_loop_function *function, const uir_device *device, const uir_allocator *allocator,
                            uir_diagnostics *diagnostics, uir_igraph_list *out);

/* What became of one group. */
typedef struct uir_lowered {
    uir_loop_function *naive;
    uir_loop_list scheduled;
    uir_igraph_list igraphs;
    uir_text steps; /* one step a line */
    uir_parameter_choice choice;
    const uir_schedule_text *given; /* borrowed: makes the variants in place of a tactic; NULL: none is given */
} uir_lowered;
void uir_lowered_deinit(uir_lowered *lowered);

#endif
