/* Caches that grow in place: which inputs and outputs of a model may be given slack (ir/kernel/igraph_slack.h).
 *
 * An output that is an input with something appended along one axis (a decoder's `present` and its `past`) may lie
 * where that input lies, if both leave room behind each stretch of the axis. The pass finds these pairs, and lets every
 * kernel that touches one of the two count the slack.
 *
 * In: a lowering at stage IGRAPH. Out: groups that touch such a tensor have the attribute `slack`: for each `dim` of
 * the kernel beyond the group's `sizes`, in order, two numbers: the operand (results follow the operands) or -1 for 0,
 * and the axis, of the input or output that it stands for. Where a kernel cannot count slack, the pair gets none. */
#ifndef UIR_COMPILE_SLACK_H
#define UIR_COMPILE_SLACK_H

#include "compile/lower.h"

uir_status uir_lowering_add_slack(uir_lowering *lowering, uir_diagnostics *diagnostics);

#endif
