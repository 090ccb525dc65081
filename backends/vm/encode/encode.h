/* Encodes an iGraph as VM bytecode.
 *
 * In: a verified iGraph. Out: bytes for backends/vm/vm.h. Kernels whose groups have more than one unit are for other
 * machines and are refused. */
#ifndef UIR_BACKENDS_VM_ENCODE_ENCODE_H
#define UIR_BACKENDS_VM_ENCODE_ENCODE_H

#include "ir/kernel/igraph.h"

/* Appends the bytecode to `bytes`. UNSUPPORTED if the VM lacks a feature of the kernel. */
uir_status uir_vm_encode(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes);

#endif
