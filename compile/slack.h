/* Gives spare capacity (slack: ir/kernel/igraph_slack.h) to inputs and outputs of a model that are caches, which grow
 * in place.
 *
 * An output may be an input with elements appended along one axis (a decoder's `present` and its `past`). Such an
 * output may alias the input if both have spare capacity behind each block of the axis. The pass finds these pairs.
 * Each kernel that reads or writes one of the two gets the slack as a `dim`.
 *
 * In: a lowering at stage IGRAPH. Out: groups that read or write such a tensor have the attribute `slack`. The
 * attribute holds two numbers for each `dim` of the kernel beyond the group's `sizes`, in order. The first is the
 * operand (results follow the operands), or -1 if the slack is 0. The second is the axis of the model's input or
 * output. A pair gets no slack if one of its kernels cannot count slack. */
#ifndef UIR_COMPILE_SLACK_H
#define UIR_COMPILE_SLACK_H

#include "compile/lower.h"

uir_status uir_lowering_add_slack(uir_lowering *lowering, uir_diagnostics *diagnostics);

#endif
