/* The routines for x86-64 with AVX2 and FMA; compiled with those flags. */
#define UIR_VM_TABLE     uir_vm_routines_avx2
#define UIR_VM_ISA       "avx2"
#define UIR_VM_AVAILABLE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#include "backends/vm/routines.inc"
