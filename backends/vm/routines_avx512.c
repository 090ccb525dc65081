/* The routines for x86-64 with AVX-512 (F, VL, BW, DQ); compiled with those flags. */
#define UIR_VM_TABLE uir_vm_routines_avx512
#define UIR_VM_ISA   "avx512"
#define UIR_VM_AVAILABLE                                                                                               \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&  \
     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"))
#include "backends/vm/routines.inc"
