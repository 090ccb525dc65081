/* Lists: what becomes of a sequence.
 *
 * A sequence that rules build is kept in one of three forms, each of which the rules of sequences, If and Loop take:
 * - known: a sequence_construct at hand, whose operands are the elements. What asks for one of them gets the operand.
 * - stacked: a tensor whose first axis is the list's, where all elements are of one type for certain. Kernels work on
 * it as on any tensor: an insertion joins, an element is gathered.
 * - a sequence, a value of its own kind, whose elements may differ. Only the interpreter works on those.
 * A list goes from one form to the next when it has to, and never back. What the model takes and gives are sequences.
 */
#ifndef UIR_DECOMPOSE_LISTS_H
#define UIR_DECOMPOSE_LISTS_H

#include "decompose/decomposer.h"

/* Whether the value stands for a list, in whichever form. */
bool uir_list_is(const uir_rule_context *context, uir_value_id value);
bool uir_list_is_stacked(const uir_rule_context *context, uir_value_id value);
/* Whether nothing is in it for certain. */
bool uir_list_is_hollow(const uir_rule_context *context, uir_value_id value);
/* The elements, where the list is a known one; NULL when it is not. They stay where they are. */
const uir_value_id *uir_list_elements(const uir_rule_context *context, uir_value_id value, uint32_t *out_count);
/* The one type of all elements; false when there is none for certain, or no element. */
bool uir_list_find_type(const uir_rule_context *context, uir_value_id value, uir_type *out_element);
/* Whether every element is of the type for certain: also where there is none. */
bool uir_list_has_type(const uir_rule_context *context, uir_value_id value, const uir_type *element);

void uir_list_mark(uir_rule_context *context, uir_value_id value, uir_list_form form);
/* A tensor as the list of what lies along its first axis, and back: values of their own, for a value is either. */
uir_value_id uir_list_of_rows(uir_rule_context *context, uir_value_id tensor);
uir_value_id uir_list_rows(uir_rule_context *context, uir_value_id stacked);
/* The list as a stacked one, of elements that uir_list_has_type said yes to. */
uir_value_id uir_list_stack(uir_rule_context *context, uir_value_id value, const uir_type *element);
/* The list as a sequence. `rank` is that of the elements of one that is empty; negative: unknown. */
uir_value_id uir_list_to_sequence(uir_rule_context *context, uir_value_id value, int64_t rank);
/* Both for uir_math_change_output: `user` is the element's type; the rank, an int64_t. */
uir_value_id uir_list_stack_output(uir_rule_context *context, uir_value_id value, const void *element);
uir_value_id uir_list_sequence_output(uir_rule_context *context, uir_value_id value, const void *rank);
/* An empty one, known. */
uir_value_id uir_list_make_empty(uir_rule_context *context, uir_dtype dtype, int64_t rank);

/* As the ops of ONNX: `position` may be none. */
uir_value_id uir_list_at(uir_rule_context *context, uir_value_id list, uir_value_id position);
uir_value_id uir_list_insert(uir_rule_context *context, uir_value_id list, uir_value_id element, uir_value_id position);
uir_value_id uir_list_erase(uir_rule_context *context, uir_value_id list, uir_value_id position);
uir_value_id uir_list_length(uir_rule_context *context, uir_value_id list);

/* ---- lists that control flow carries ---- */
/* What a carried value is in a body. A hollow one has no type yet: the body is tried with an empty list to find it. */
typedef struct uir_list_carried {
    uir_list_form form; /* UIR_LIST_NONE: no list */
    uir_type element;   /* of a stacked one */
} uir_list_carried;

/* The form that two lists which meet share, and their type in it: stacked where all elements are of one type, whose
 * dims are older than the symbol `first_own`. */
uir_list_carried uir_list_join(const uir_rule_context *context, uir_value_id a, uir_value_id b, uint32_t first_own);
/* Whether no dim of the type has a symbol from `first_own` on. */
bool uir_list_type_is_older(const uir_rule_context *context, const uir_type *type, uint32_t first_own);

#endif
