/* Gives slack (ir/kernel/igraph_slack.h) to inputs and outputs of a model that are caches which grow in place.
 *
 * An output that is an input with elements appended along one axis (a decoder's `present` and its `past`) may alias
 * that input, if both have spare capacity behind each stretch of the axis. The pass finds these pairs, and makes each
 * kernel that touches one of the two count the slack.
 *
 * In: a lowering at stage IGRAPH. Out: groups that touch such a tensor have the attribute `slack`. It holds two numbers
 * for each `dim` of the kernel beyond the group's `sizes`, in order: the operand (results follow the operands), or -1
 * for 0, and the axis of the model's input or output. A pair with a kernel that cannot count slack gets none. */
#ifndef UIR_COMPILE_SLACK_H
#define UIR_COMPILE_SLACK_H

#include "compile/lower.h"

uir_status uir_lowering_add_slack(uir_lowering *lowering, uir_diagnostics *diagnostics);

#endif
