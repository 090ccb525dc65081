/* The pass `synchronise`: inserts barriers between threads of a unit, and waits between pipes, by the data dependences
 * of instructions.
 *
 * In: a verified kernel of a device with parallel pipes or units of several threads, in program order. Out: the same
 * kernel, marked synchronised. It has a `sync.unit` wherever different threads may touch one element, one of them
 * writing (ir/kernel/igraph_threads.h): in the innermost block around both uses, as late as possible. It has a
 * `sync.FROM.TO %ptr` wherever one pipe writes data that another uses after it, and a `sync.FROM.TO %ptr dist d` in a
 * loop whose iterations reuse a buffer. These are the waits that the verifier requires
 * (ir/kernel/verify/igraph_verify_sync.c), each as late as possible, without redundant ones. If that needs more flags
 * of a pair of pipes than the device has, waits of distance 1 become waits for everything before them. Then waits of
 * one loop and distance are merged, and at last iterations no longer overlap. */
#ifndef UIR_IR_IGRAPH_SYNCHRONISE_H
#define UIR_IR_IGRAPH_SYNCHRONISE_H

#include "ir/kernel/igraph.h"

/* Whether kernels of the device are to be synchronised: else the pass changes nothing. */
bool uir_igraph_needs_syncs(const uir_machine *machine);
/* The result is not verified. */
uir_status uir_igraph_synchronise(uir_igraph *igraph);

#endif
