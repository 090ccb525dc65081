/* The routines for the architecture's baseline. */
#define UIR_VM_TABLE     uir_vm_routines_generic
#define UIR_VM_ISA       "generic"
#define UIR_VM_AVAILABLE true
#include "backends/vm/routines.inc"
