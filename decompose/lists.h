/* Lists: the forms of sequences during decomposition.
 *
 * A sequence built by rules is in one of three forms, all of which the rules of sequences, If and Loop accept:
 * - known: the result of a sequence_construct, whose operands are the elements. Selecting one returns the operand.
 * - stacked: a tensor whose first axis is the list's, if all elements are proved to have one type. Kernels work on it
 *   as on any tensor: insertion is a concatenation, selection a gather.
 * - a sequence, a value of its own kind, whose elements may differ. Only the interpreter computes those.
 * A list changes to a later form when it has to, never back. Inputs and outputs of the model are sequences. */
#ifndef UIR_DECOMPOSE_LISTS_H
#define UIR_DECOMPOSE_LISTS_H

#include "decompose/decomposer.h"

/* Whether the value represents a list, in any form. */
bool uir_list_is(const uir_rule_context *context, uir_value_id value);
bool uir_list_is_stacked(const uir_rule_context *context, uir_value_id value);
/* Whether it is proved to be empty. */
bool uir_list_is_hollow(const uir_rule_context *context, uir_value_id value);
/* The elements of a known list; NULL for others. Borrowed. */
const uir_value_id *uir_list_elements(const uir_rule_context *context, uir_value_id value, uint32_t *out_count);
/* The type of all elements; false if they have no common type, or if the list is empty. */
bool uir_list_find_type(const uir_rule_context *context, uir_value_id value, uir_type *out_element);
/* Whether all elements are proved to have the type; true for an empty list. */
bool uir_list_has_type(const uir_rule_context *context, uir_value_id value, const uir_type *element);

void uir_list_mark(uir_rule_context *context, uir_value_id value, uir_list_form form);
/* A tensor as the list of its rows along the first axis, and back. Both make a new value, since a value has one
 * form. */
uir_value_id uir_list_of_rows(uir_rule_context *context, uir_value_id tensor);
uir_value_id uir_list_rows(uir_rule_context *context, uir_value_id stacked);
/* The list as a stacked one, for an element type that uir_list_has_type accepts. */
uir_value_id uir_list_stack(uir_rule_context *context, uir_value_id value, const uir_type *element);
/* The list as a sequence. `rank` is that of the elements if it is empty; negative: unknown. */
uir_value_id uir_list_to_sequence(uir_rule_context *context, uir_value_id value, int64_t rank);
/* Both for uir_math_change_output: `user` is the element's type, or the rank as int64_t. */
uir_value_id uir_list_stack_output(uir_rule_context *context, uir_value_id value, const void *element);
uir_value_id uir_list_sequence_output(uir_rule_context *context, uir_value_id value, const void *rank);
/* An empty known list. */
uir_value_id uir_list_make_empty(uir_rule_context *context, uir_dtype dtype, int64_t rank);

/* As the ops of ONNX: `position` may be NONE. */
uir_value_id uir_list_at(uir_rule_context *context, uir_value_id list, uir_value_id position);
uir_value_id uir_list_insert(uir_rule_context *context, uir_value_id list, uir_value_id element, uir_value_id position);
uir_value_id uir_list_erase(uir_rule_context *context, uir_value_id list, uir_value_id position);
uir_value_id uir_list_length(uir_rule_context *context, uir_value_id list);

/* ---- lists carried by control flow ---- */
/* The form of a carried value in a body. A hollow one has no type yet: the body is tried with an empty list to find
 * it. */
typedef struct uir_list_carried {
    uir_list_form form; /* UIR_LIST_NONE: not a list */
    uir_type element;   /* of a stacked one */
} uir_list_carried;

/* The common form of two lists, and its element type: stacked if all elements have one type whose symbols are all
 * before `first_own`. */
uir_list_carried uir_list_join(const uir_rule_context *context, uir_value_id a, uir_value_id b, uint32_t first_own);
/* Whether all symbols in the type's dims are before `first_own`. */
bool uir_list_type_is_older(const uir_rule_context *context, const uir_type *type, uint32_t first_own);

#endif
