/* The interface of decomposition rules.
 *
 * In: one ONNX node whose operands are already mapped to the new module. Out: outputs mapped to values that the rule
 * built with ir/graph/build.h. A rule is `uir_status rule(uir_rule_context *context)`; rules.def binds it to its op. */
#ifndef UIR_DECOMPOSE_RULES_H
#define UIR_DECOMPOSE_RULES_H

#include "decompose/decompose.h"
#include "ir/graph/build.h"

typedef struct uir_rule_context {
    uir_builder builder;       /* of the new module and graph; sticky status */
    const uir_module *source;  /* the module the node is in */
    const uir_node_info *node; /* op, since_version, attributes; not its inputs, which are handles of the source */
    uir_op op;
    int since_version;
    const uir_value_id *inputs; /* in the new module; trailing absent ones are NONE */
    uint32_t input_count;       /* of the node; the helpers below return NONE beyond */
    uir_value_id *outputs;      /* set by the rule: all outputs of the node */
    uint32_t output_count;
    struct uir_decomposer *decomposer; /* for control flow */
} uir_rule_context;

/* Input `index`; NONE if absent or out of range. */
uir_value_id uir_rule_input(const uir_rule_context *context, uint32_t index);
bool uir_rule_has_input(const uir_rule_context *context, uint32_t index);
/* Whether output `index` is used (present and named). */
bool uir_rule_has_output(const uir_rule_context *context, uint32_t index);
const uir_type *uir_rule_type(const uir_rule_context *context, uir_value_id value);
uir_dtype uir_rule_dtype(const uir_rule_context *context, uir_value_id value);
/* The rank; if unknown, reports UNSUPPORTED and fails the builder. */
uint32_t uir_rule_rank(uir_rule_context *context, uir_value_id value);
/* The extents of a value (of known rank), or NULL after a failure. Copied: valid while the module lives. */
const uir_dim *uir_rule_extents(uir_rule_context *context, uir_value_id value);

/* Attributes of the ONNX node. */
const uir_attribute *uir_rule_attribute(const uir_rule_context *context, const char *name);
int64_t uir_rule_int(const uir_rule_context *context, const char *name, int64_t fallback);
double uir_rule_float(const uir_rule_context *context, const char *name, double fallback);
const char *uir_rule_string(const uir_rule_context *context, const char *name, const char *fallback);
/* Number of integers, or -1 if absent; *out_values borrowed. */
int64_t uir_rule_ints(const uir_rule_context *context, const char *name, const int64_t **out_values);
/* Normalises an axis of -rank..rank-1; otherwise fails the builder with a message. */
int64_t uir_rule_axis(uir_rule_context *context, int64_t axis, uint32_t rank);

/* ---- operands that determine the structure ---- */
/* The value's constant tensor, given or folded. NULL if it depends on run-time data. Borrowed. */
uir_tensor *uir_rule_constant(uir_rule_context *context, uir_value_id value);
/* The integers of a constant of rank 0 or 1 (any integer dtype or bool); false if not constant. Arena memory. */
bool uir_rule_constant_integers(uir_rule_context *context, uir_value_id value, const int64_t **out_values,
                                uint32_t *out_count);
/* A single constant number of any numeric dtype; false if not constant. */
bool uir_rule_constant_number(uir_rule_context *context, uir_value_id value, double *out_value);
/* The elements of an integer value of rank 0 or 1 as dims. They are folded if they follow from shapes and constants,
 * else bound at run time to symbols of at least `min`. NULL after a failure. */
const uir_dim *uir_rule_dims(uir_rule_context *context, uir_value_id value, int64_t min, uint32_t *out_count);
/* Axes from input `input` if present, else from the attribute: normalised, sorted, distinct. False if both are absent
 * (or after a failure). An input that is not constant is UNSUPPORTED. */
bool uir_rule_axes(uir_rule_context *context, const char *attribute, uint32_t input, uint32_t rank,
                   const int64_t **out_axes, uint32_t *out_count);
/* The integers of input `input` if present (it must be constant), else of the attribute; false if both are absent. */
bool uir_rule_integers(uir_rule_context *context, const char *attribute, uint32_t input, const int64_t **out_values,
                       uint32_t *out_count);

/* ---- small pieces of arithmetic ---- */
/* Arena memory of the new module; fails the builder without memory. */
void *uir_rule_allocate(uir_rule_context *context, size_t count, size_t element_size);
uir_dim uir_rule_dim(uir_rule_context *context, int64_t value);
/* Product of `count` extents. */
uir_dim uir_rule_product(uir_rule_context *context, const uir_dim *dims, uint32_t count);
/* A scalar constant of the dtype of `like`. */
uir_value_id uir_rule_number(uir_rule_context *context, uir_value_id like, double value);
/* Casts floats narrower than f32 to f32, so that several steps round once. Others stay. */
uir_value_id uir_rule_widen(uir_rule_context *context, uir_value_id value);
/* The binary primitive with a scalar constant as its right operand. */
uir_value_id uir_rule_binary_number(uir_rule_context *context, uir_op op, uir_value_id a, double value);
/* Index values of -extent..extent-1 become 0..extent-1, as i64, unless proved to be so already. */
uir_value_id uir_rule_indices(uir_rule_context *context, uir_value_id indices, uir_dim extent);
/* The same; the run fails on an index out of range. */
uir_value_id uir_rule_checked_indices(uir_rule_context *context, uir_value_id indices, uir_dim extent);
/* Fails the run unless all indices are in low..high-1, with one bound, or one per index along the last axis. Nothing is
 * built if that is proved. The message names the nearest value in the model, or that of `from` if the rule computed the
 * indices. */
void uir_rule_check_indices(uir_rule_context *context, uir_value_id indices, uir_value_id from, const uir_dim *low,
                            const uir_dim *high, uint32_t count);
/* The same for the range from 0 to below `high`. */
void uir_rule_check_below(uir_rule_context *context, uir_value_id indices, uir_value_id from, uir_dim high);

/* Whether the string attribute (`fallback` if absent) is `text`. */
bool uir_rule_string_is(const uir_rule_context *context, const char *name, const char *fallback, const char *text);
/* A value of one element as rank 0. */
uir_value_id uir_rule_scalar(uir_rule_context *context, uir_value_id value);

/* ---- control flow ---- */
/* Decomposes a subgraph of the source into a new graph of the new module whose inputs are `input_types`. */
uir_status uir_rule_subgraph(uir_rule_context *context, const char *attribute, const uir_type *input_types,
                             uint32_t input_count, uir_graph_id *out_graph);
/* Replaces the node by a subgraph without inputs: the walk continues in it, then after the node. */
uir_status uir_rule_enter(uir_rule_context *context, const char *attribute);
/* Inlines a subgraph: decomposes its nodes into the builder's graph; its inputs are `inputs`. */
uir_status uir_rule_inline(uir_rule_context *context, const char *attribute, const uir_value_id *inputs,
                           uint32_t input_count, uir_value_id *out_outputs, uint32_t output_count);

/* Declares every rule in the table. */
#define UIR_RULE(op, function) uir_status function(uir_rule_context *context);
#include "decompose/rules.def"

#endif
