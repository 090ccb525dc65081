/* The pass `synchronise`: waits between pipes, from what instructions touch.
 *
 * In: a verified kernel of a device whose pipes run apart, whose units do everything in the order of the text. Out: the
 * same kernel, marked synchronised, with a `sync.FROM.TO %ptr` wherever one pipe writes what another reads or writes
 * after it, and a `sync.FROM.TO %ptr dist d` in a loop whose iterations use a buffer again: what the verifier demands
 * (ir/kernel/verify/igraph_verify_sync.c), each as late as that allows, and none that follows from others. Where that takes more
 * flags of a pair of pipes than the device has, waits of distance 1 become waits for all that is done so far, waits of
 * one loop and distance are merged into one, and at last iterations no longer overlap. */
#ifndef UIR_IR_IGRAPH_SYNCHRONISE_H
#define UIR_IR_IGRAPH_SYNCHRONISE_H

#include "ir/kernel/igraph.h"

/* A device of one pipe, or none, needs no waits: the kernel is left as it is. The kernel is not verified afterwards. */
uir_status uir_igraph_synchronise(uir_igraph *igraph);

#endif
