/* What a kernel moves and how long its machine would take, by the costs of its device's description.
 *
 * In: a verified kernel and its sizes; no data: an index that is read from data is taken for 0. Out: bytes by space,
 * and cycles that are modelled, never measured. Each unit begins an instruction when its pipe is free and what its
 * waits name is done; a machine without pipes does one after the other. Parallel indices go to units in turn; a phase
 * takes as long as its busiest unit, a kernel as long as its phases together.
 *
 * A row of the description that says nothing of costs takes a cycle for each vector, or for each block of mma; a move
 * then goes at the rate of the slower of its spaces, or a vector a cycle. */
#ifndef UIR_IR_IGRAPH_ESTIMATE_H
#define UIR_IR_IGRAPH_ESTIMATE_H

#include "ir/kernel/igraph.h"

typedef struct uir_estimate {
    /* Bytes of all operands that lie in a space, results included; an operand that repeats counts once. Of boxes what
     * lies inside the tensor; of windows all that they name. */
    uint64_t read[UIR_DEVICE_MAX_SPACES], written[UIR_DEVICE_MAX_SPACES];
    uint64_t moved[UIR_DEVICE_MAX_SPACES][UIR_DEVICE_MAX_SPACES]; /* by moves alone: from, to */
    double pipe_cycles[UIR_DEVICE_MAX_PIPES]; /* that instructions of the pipe take, all units together */
    double cycles;                            /* of the kernel */
    double operations;                        /* on elements: of a result each is one, a multiply-add of mma two */
    uint64_t most_units;                      /* that have work at once, in the phase where most have */
} uir_estimate;

/* What it takes at the least, whatever its units do, in seconds: of bytes to and from the device's memory, and of
 * operations at the device's peak; 0 where the description does not say. */
typedef struct uir_estimate_floor {
    double moving, computing;
} uir_estimate_floor;
uir_estimate_floor uir_estimate_get_floor(const uir_device *device, const uir_estimate *estimate);

/* CANCELLED as soon as the flag is set; INVALID_ARGUMENT for sizes that the kernel is not for. */
uir_status uir_igraph_estimate(const uir_igraph *igraph, const int64_t *dim_values, const int64_t *tile_values,
                               const volatile bool *cancel, uir_diagnostics *diagnostics, uir_estimate *out_estimate);

#endif
