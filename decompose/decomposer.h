/* The state of a decomposition, shared by the walk, the rule helpers and control flow.
 *
 * In: a source module of ONNX ops. Out: a target module of primitives, grown node by node. Values of the source map to
 * values of the target. A source value whose target value could not be made is poisoned. Nodes that read a
 * poisoned value are skipped without a message, so that each problem is reported once. */
#ifndef UIR_DECOMPOSE_DECOMPOSER_H
#define UIR_DECOMPOSE_DECOMPOSER_H

#include "decompose/rules.h"

typedef uir_vector(uir_dim) uir_dim_vector;

/* Copies dims to another context: symbols map to symbols, added at first use with name and facts. */
typedef struct uir_dim_translation {
    uir_dims *from, *to;
    uir_dim_vector symbols; /* by symbol of `from` */
    uir_dim_vector memo;    /* by handle of `from` */
} uir_dim_translation;

/* The form of a target value that represents a list: see lists.h. */
typedef enum uir_list_form {
    UIR_LIST_NONE,
    UIR_LIST_HOLLOW,  /* an empty list, while a body is tried */
    UIR_LIST_STACKED, /* a tensor, whose first axis is the list's */
    UIR_LIST_SEQUENCE /* a value of kind SEQUENCE, needs no mark */
} uir_list_form;

typedef struct uir_decomposer {
    uir_module *source, *target;
    uir_diagnostics *diagnostics;
    uir_arena *scratch;
    uir_value_id *map;   /* by source value; NONE: not made yet */
    bool *poisoned;      /* by source value */
    uir_value_id *first; /* by source value: the first value it was mapped to */
    bool *varies;        /* by source value: it was mapped several times, with several shapes */
    uir_dim_translation forth, back;
    uint32_t evaluated_nodes;           /* nodes of the target below this were evaluated by uir_evaluate_pending */
    uir_vector(uir_tensor *) evaluated; /* by target value: its constant (owned), or NULL */
    uint64_t work, work_limit;          /* nodes decomposed, subgraphs again included; bounds hostile nesting */
    uint32_t failures;
    uir_status status;  /* of the whole decomposition; UNSUPPORTED only if no worse failure was found */
    bool quiet;         /* the current failure follows from one already reported */
    bool split;         /* the current node is an If whose branches return tensors of different ranks: see split.c */
    uir_graph_id enter; /* branch taken by the current node, an If of known condition, in the source */
    bool may_split;     /* more nodes follow the current one in its graph */
    uir_vector(uir_list_form) forms;  /* by target value; NONE beyond its end */
    const uir_list_form *input_forms; /* of the next body's inputs; NULL: none are lists */
    bool is_trial;                    /* the current body is made only to find types: a missing value is no failure */
    bool keeps_sequences;             /* the current loop carries sequences unchanged */
} uir_decomposer;

/* The branches of known condition that a walk has entered, innermost first. After the end of a branch, the walk
 * continues at position `next` of the graph that contains its If. So the frames give all nodes after the innermost
 * branch, up to the end of the graph where the walk began. */
typedef struct uir_walk_frame {
    const struct uir_walk_frame *outer;
    uir_graph_id graph; /* contains the If */
    uint32_t next;      /* the position after it */
    uir_node_info node; /* the If */
} uir_walk_frame;

/* Decomposes the nodes of `source_graph` in order into `target_graph`. Fails only if the whole decomposition ends
 * (OUT_OF_MEMORY, LIMIT, CANCELLED). The problems of single nodes are recorded in the decomposer. */
uir_status uir_decomposer_walk(uir_decomposer *decomposer, uir_graph_id source_graph, uir_graph_id target_graph);
/* The same for the nodes from position `first` on, and then for the nodes after each frame. `frame` may be NULL. */
uir_status uir_decomposer_walk_from(uir_decomposer *decomposer, uir_graph_id source_graph, uint32_t first,
                                    const uir_walk_frame *frame, uir_graph_id target_graph);
/* Decomposes the nodes after the If at position `position` once per branch, inside the branch. The outputs of the
 * source graph become results of the If. A branch is left out if these nodes cannot be decomposed in it; a run that
 * takes the branch fails. */
uir_status uir_decomposer_split(uir_decomposer *decomposer, uir_graph_id source_graph, uint32_t position,
                                const uir_walk_frame *frame, uir_graph_id target_graph);
void uir_decomposer_record_failure(uir_decomposer *decomposer, uir_status status);
/* The target's value of a source value. A constant is added to the target at first use and shares its tensor.
 * *out_poisoned is set if the value is poisoned. */
uir_status uir_decomposer_map(uir_decomposer *decomposer, uir_value_id source, uir_value_id *out_target,
                              bool *out_poisoned);
/* Marks input `index` of a body with its form in input_forms. */
uir_status uir_decomposer_mark_input(uir_decomposer *decomposer, uir_value_id input, uint32_t index);
/* Binds a source value to the target's, copies its name and writes the type back to the source. */
uir_status uir_decomposer_bind(uir_decomposer *decomposer, uir_value_id source, uir_value_id target);
/* Converts an output of the model that is a list to a sequence. */
uir_status uir_decomposer_give_sequence(uir_decomposer *decomposer, uir_graph_id graph, uir_value_id *value);
/* Empties an unneeded graph (and the graphs inside it). */
void uir_decomposer_discard(uir_decomposer *decomposer, uir_graph_id graph);
/* Removes the names of the values of a graph and of the graphs inside it, so that values made elsewhere can have
 * them. */
void uir_decomposer_forget_names(uir_decomposer *decomposer, uir_graph_id graph);

/* Sets the required length of list operands (`inputs`, those of the context) where the model does not declare it:
 * lengths.def. */
uir_status uir_rule_expect_lengths(uir_rule_context *context, uir_value_id *inputs);
/* Whether the operand of a node of the source is in lengths.def. */
bool uir_decomposer_is_list(const uir_node_info *node, uint32_t input);

/* A builder for primitives of the ONNX node, with its name, op and identity. */
uir_status uir_decomposer_begin_node(uir_decomposer *decomposer, const uir_node_info *node, uir_graph_id target_graph,
                                     uir_builder *out_builder);
/* Constant folding: computes the small nodes added since the last call whose operands are all constant. */
uir_status uir_evaluate_pending(uir_decomposer *decomposer);
/* The constant value of a target value; NULL if it depends on inputs or is large. Borrowed. */
uir_status uir_evaluate_constant(uir_decomposer *decomposer, uir_value_id value, uir_tensor **out_tensor);

#endif
