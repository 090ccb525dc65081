/* Lowering: turns a group node into a loop AST, schedules that for a device, and makes iGraphs of it.
 *
 * In: a module of primitives whose graphs contain `group` nodes, and a device's description. Out: for each group the
 * naive loop AST, its scheduled variants with a trace of their steps, and the verified iGraph variants. The first
 * variant whose `require` holds is used; the last one holds for all sizes that the facts allow.
 *
 * Arguments. `in k` is operand k of the group, `out k` its result k; `const k` is operand k, constant, in a packed
 * layout (uir_igraph_pack). The k-th `dim` of the function and of each of its iGraphs has the value of the k-th of the
 * group's `sizes`, which uir_lower_build sets.
 *
 * UNSUPPORTED: the group has no kernel (the message has the reason); its nodes are left to the interpreter. */
#ifndef UIR_LOWER_LOWER_H
#define UIR_LOWER_LOWER_H

#include "ir/graph/graph.h"
#include "ir/kernel/igraph.h"
#include "ir/loop/loop.h"
#include "lower/parameters.h"

/* A scheduled function, and the trace of its steps from the naive one (uir_schedule_replay); the trace is empty if
 * steps other than schedule primitives were used. */
typedef struct uir_loop_variant {
    uir_loop_function *function;
    uir_text trace;
} uir_loop_variant;

typedef struct uir_loop_list {
    uir_loop_variant *variants;
    uint32_t count, capacity;
    uir_allocator allocator;
} uir_loop_list;
/* Destroys the variants after the first `count`. */
void uir_loop_list_truncate(uir_loop_list *list, uint32_t count);
void uir_loop_list_deinit(uir_loop_list *list); /* destroys the functions */
/* Takes over the function, also on failure; copies the trace (NULL: none). */
uir_status uir_loop_list_add(uir_loop_list *list, uir_loop_function *function, const uir_text *trace);

/* Builds the naive loop AST called `name` of a group: one nest per value that the group's body computes, a reduction
 * with its monoid, a concatenation by pieces. Tensors are declared over axes (ir/graph/axes.h); an operand that is read
 * in two ways is two tensors of one argument. Sets the node's `sizes` and `kernel`. */
uir_status uir_lower_build(uir_module *module, uir_node_id group, const char *name, const uir_allocator *allocator,
                           uir_diagnostics *diagnostics, uir_loop_function **out_function);

/* Applies the tactics that fit, and appends the variants, each a changed copy of the function. Contractions have their
 * own (lower/tactics/products/contraction.h); other tactics align, tile, inline, reduce in two steps, compute at and
 * bind. `choice` (may be NULL): the given tuning record and the chosen one; INVALID_ARGUMENT, with a message, if the
 * given one does not fit the function and the device. `steps` (may be NULL) gets the traces of variants, or the
 * messages of their tactic if they have none. */
uir_status uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                              uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                              uir_loop_list *out);

/* A kernel's schedule as text: its steps as uir_lower_schedule prints them; of several variants, each behind a line
 * `variant K:`, K from 1. A line may begin with `# `, as in steps printed as comments; `#` before other text begins a
 * comment. */
typedef struct uir_schedule_text {
    const char *data;
    size_t length;
    const char *file; /* its name, for messages */
} uir_schedule_text;
/* Replays a schedule instead of the tactics: a variant from each part of the text. BAD_FILE, with the place and the
 * primitive's reason, for an unknown or refused step. The text need not have a variant for all sizes: sizes without one
 * are refused when the kernel is to run. `steps` (may be NULL) gets the traces. */
uir_status uir_lower_replay(const uir_loop_function *function, const uir_machine *machine,
                            const uir_schedule_text *text, uir_text *steps, uir_diagnostics *diagnostics,
                            uir_loop_list *out);

/* Appends the verified iGraph of one scheduled function. */
uir_status uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                            const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out);

/* The results of lowering one group. */
typedef struct uir_lowered {
    const uir_machine *machine; /* that the kernel is made for; NULL: that of the other kernels */
    uir_loop_function *naive;
    uir_loop_list scheduled;
    uir_igraph_list igraphs;
    uint32_t own_variants; /* the first iGraphs; the others are of the host beside the device. 0: all are its own */
    uir_text steps;        /* one step a line */
    uir_parameter_choice choice;
    const uir_schedule_text *given; /* borrowed: makes the variants instead of a tactic; NULL: none */
} uir_lowered;
void uir_lowered_deinit(uir_lowered *lowered);

#endif
