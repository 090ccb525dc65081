/* A cost model: bytes that a kernel moves and cycles that it needs, by the costs of its device's description.
 *
 * In: a verified kernel and its sizes; no data: an index read from data counts as 0. Out: bytes by space, and modelled
 * cycles. A unit begins an instruction when its pipe is free and its waits are over; a machine without pipes executes
 * one at a time. Parallel indices are dealt to units in rotation. A phase lasts as long as its busiest unit, a kernel
 * as long as the sum of its phases.
 *
 * A legal row without costs has one cycle per vector, or per block of mma; a move then has the rate of the slower of
 * its spaces, else a vector per cycle. */
#ifndef UIR_IR_IGRAPH_ESTIMATE_H
#define UIR_IR_IGRAPH_ESTIMATE_H

#include "ir/kernel/igraph.h"

typedef struct uir_estimate {
    /* Bytes of all operands and results in a space; a repeated operand counts once. A box counts within the tensor's
     * extents, a window in full. */
    uint64_t read[UIR_MACHINE_MAX_SPACES], written[UIR_MACHINE_MAX_SPACES];
    uint64_t moved[UIR_MACHINE_MAX_SPACES][UIR_MACHINE_MAX_SPACES]; /* by moves only: from, to */
    double pipe_cycles[UIR_MACHINE_MAX_PIPES]; /* of the pipe's instructions, summed over all units */
    double cycles;                             /* of the kernel */
    double operations;                         /* on elements: one per element of a result, two per multiply-add of
                                                * mma */
    uint64_t most_units;                       /* that work in parallel, in the phase with the most */
} uir_estimate;

/* Lower bounds in seconds for any parallelism: bytes to and from the device's memory, and operations, at the device's
 * peak rates; 0 if the description lacks the rate. */
typedef struct uir_estimate_floor {
    double moving, computing;
} uir_estimate_floor;
uir_estimate_floor uir_estimate_get_floor(const uir_machine *machine, const uir_estimate *estimate);

/* CANCELLED once the flag is set; INVALID_ARGUMENT for sizes that the kernel excludes. */
uir_status uir_igraph_estimate(const uir_igraph *igraph, const int64_t *dim_values, const int64_t *tile_values,
                               const volatile bool *cancel, uir_diagnostics *diagnostics, uir_estimate *out_estimate);

#endif
