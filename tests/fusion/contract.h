/* What a fused module promises lowering, checked apart from the code that keeps the promise.
 *
 * In: a fused module. Out: what is wrong with it in words, or NULL. */
#ifndef UIR_TESTS_FUSION_CONTRACT_H
#define UIR_TESTS_FUSION_CONTRACT_H

#include "fusion/fusion.h"

typedef struct contract {
    const uir_module *module;
    uint32_t most_operands;
    uint64_t row_bytes; /* a row used twice may have; 0: any */
} contract;

const char *contract_broken(const contract *c);
/* Bytes that the kernels of all graphs read and write when every open size is 64; each node of a module that is not
 * fused counts as one. */
double contract_bytes(const uir_module *module);

#endif
