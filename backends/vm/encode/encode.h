/* iGraph to VM bytecode.
 *
 * In: a verified iGraph. Out: bytes that backends/vm/vm.h loads. Kernels whose groups have more than one unit belong to
 * other machines and are refused. */
#ifndef UIR_BACKENDS_VM_ENCODE_ENCODE_H
#define UIR_BACKENDS_VM_ENCODE_ENCODE_H

#include "ir/kernel/igraph.h"

/* Appends the bytecode to `bytes`. UNSUPPORTED when the kernel needs what the VM has not. */
uir_status uir_vm_encode(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes);

#endif
