/* The state of one decomposition, shared by the walk, the rule helpers and control flow.
 *
 * In: a source module of ONNX ops. Out: a target module of primitives, grown node by node. Values of the source map to
 * values of the target; a value that could not be made is poisoned, and whatever needs it is passed over in silence, so
 * that each problem is reported once. */
#ifndef UIR_DECOMPOSE_DECOMPOSER_H
#define UIR_DECOMPOSE_DECOMPOSER_H

#include "decompose/rules.h"

typedef uir_vector(uir_dim) uir_dim_vector;

/* Carries dims of one context over to another: symbols map to symbols, made on first sight with name and facts. */
typedef struct uir_dim_translation {
    uir_dims *from, *to;
    uir_dim_vector symbols; /* by symbol of `from` */
    uir_dim_vector memo;    /* by handle of `from` */
} uir_dim_translation;

/* What a value of the target that stands for a list is: see lists.h. */
typedef enum uir_list_form {
    UIR_LIST_NONE,
    UIR_LIST_HOLLOW,  /* an empty one, while a body is tried */
    UIR_LIST_STACKED, /* a tensor, its first axis the list's */
    UIR_LIST_SEQUENCE /* of its own kind, which says so itself */
} uir_list_form;

typedef struct uir_decomposer {
    uir_module *source, *target;
    uir_diagnostics *diagnostics;
    uir_arena *scratch;
    uir_value_id *map; /* by source value; none: not made yet */
    bool *poisoned;    /* by source value */
    uir_value_id *first; /* by source value: what it was made of first */
    bool *varies;        /* by source value: it was made several times, with several shapes */
    uir_dim_translation forth, back;
    uint32_t evaluated_nodes;           /* nodes of the target below this have been looked at by uir_evaluate_pending */
    uir_vector(uir_tensor *) evaluated; /* by target value: what constant evaluation gave (owned), or NULL */
    uint64_t work, work_limit;          /* nodes decomposed, subgraphs again included: hostile nesting is bounded */
    uint32_t failures;
    uir_status status; /* what the whole ends with: UNSUPPORTED only when nothing worse was met */
    bool quiet;        /* the failure at hand follows from one already reported */
    bool split;        /* the node at hand is an If whose branches give tensors of different ranks: see split.c */
    uir_graph_id
        enter;      /* the node at hand is an If whose condition is known: the branch that it takes, of the source */
    bool may_split; /* more nodes follow the one at hand in its graph */
    uir_vector(uir_list_form) forms;  /* by target value; those beyond have none */
    const uir_list_form *input_forms; /* of the inputs of the body that is made next; NULL: none are lists */
    bool is_trial;                    /* the body at hand is made to find types: what cannot be made is left out */
    bool keeps_sequences;             /* the loop at hand carries sequences as they are */
} uir_decomposer;

/* The branches that a walk is in, because their conditions are known: where it goes on after each. What follows the
 * innermost node is so all that follows in the graph that the walk began in. */
typedef struct uir_walk_frame {
    const struct uir_walk_frame *outer;
    uir_graph_id graph; /* that holds the If */
    uint32_t next;      /* the position after it */
    uir_node_info node; /* the If */
} uir_walk_frame;

/* Decomposes the nodes of `source_graph` in order into `target_graph`. Fails only for what ends the whole (memory, a
 * limit); problems of single nodes are recorded in the decomposer. */
uir_status uir_decomposer_walk(uir_decomposer *decomposer, uir_graph_id source_graph, uir_graph_id target_graph);
/* The same for the nodes from position `first` on, and what follows the frames, which may be NULL. */
uir_status uir_decomposer_walk_from(uir_decomposer *decomposer, uir_graph_id source_graph, uint32_t first,
                                    const uir_walk_frame *frame, uir_graph_id target_graph);
/* What follows the If at position `position` is decomposed once for each branch, inside it; the outputs of the source
 * graph become results of the If. A branch for which the rest makes no sense is left out and must not be taken at run
 * time. */
uir_status uir_decomposer_split(uir_decomposer *decomposer, uir_graph_id source_graph, uint32_t position,
                                const uir_walk_frame *frame, uir_graph_id target_graph);
void uir_decomposer_record_failure(uir_decomposer *decomposer, uir_status status);
/* The target's value; a constant is carried over on first use. *out_poisoned when it could not be made. */
uir_status uir_decomposer_map(uir_decomposer *decomposer, uir_value_id source, uir_value_id *out_target,
                              bool *out_poisoned);
/* Gives input `index` of a body the form that input_forms says. */
uir_status uir_decomposer_mark_input(uir_decomposer *decomposer, uir_value_id input, uint32_t index);
/* Binds a source value to the target's, hands over its name and writes the type back to the source. */
uir_status uir_decomposer_bind(uir_decomposer *decomposer, uir_value_id source, uir_value_id target);
/* What leaves the model as a sequence is one. */
uir_status uir_decomposer_give_sequence(uir_decomposer *decomposer, uir_graph_id graph, uir_value_id *value);
/* Empties a graph that turned out not to be wanted (and the graphs inside it). */
void uir_decomposer_discard(uir_decomposer *decomposer, uir_graph_id graph);
/* Takes the names away from a graph's values (and those of the graphs inside it), which are made elsewhere under them
 * too. */
void uir_decomposer_forget_names(uir_decomposer *decomposer, uir_graph_id graph);

/* Operands (of which `inputs` are those of the context) that are lists get the length that they must have, where the
 * model does not declare it: lengths.def. */
uir_status uir_rule_expect_lengths(uir_rule_context *context, uir_value_id *inputs);
/* Whether the operand of a node of the source is such a list. */
bool uir_decomposer_is_list(const uir_node_info *node, uint32_t input);

/* A builder whose primitives come from the ONNX node: its name, op and identity. */
uir_status uir_decomposer_begin_node(uir_decomposer *decomposer, const uir_node_info *node, uir_graph_id target_graph,
                                     uir_builder *out_builder);
/* Looks at the nodes added since the last call and computes the small ones whose operands are all constant. */
uir_status uir_evaluate_pending(uir_decomposer *decomposer);
/* The constant a target value is or comes to; NULL when it depends on inputs or is large. Borrowed. */
uir_status uir_evaluate_constant(uir_decomposer *decomposer, uir_value_id value, uir_tensor **out_tensor);

#endif
