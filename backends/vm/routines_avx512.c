/* The routines for x86-64 with AVX-512 (F, VL, BW, DQ); compiled with those flags. */
#define UIR_VM_TABLE uir_vm_routines_avx512
#define UIR_VM_ISA   "avx512"
#define UIR_VM_AVAILABLE                                                                                               \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&  \
     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"))
#include <immintrin.h>

/* 14 x 2 accumulators, two vectors of b and a broadcast: 31 registers of 32. */
#define UIR_VM_VECTOR __m512
#define UIR_VM_MASK   __mmask16
#define UIR_VM_LANES  16
#define UIR_VM_ROWS   14
#define UIR_VM_FIRST(count)                                                                                            \
    ((count) >= 16 ? (__mmask16)0xffff : (count) > 0 ? (__mmask16)((1u << (count)) - 1) : (__mmask16)0)
#define UIR_VM_LOAD(from, mask)   _mm512_maskz_loadu_ps(mask, from)
#define UIR_VM_STORE(to, mask, x) _mm512_mask_storeu_ps(to, mask, x)
#define UIR_VM_SET(x)             _mm512_set1_ps(x)
#define UIR_VM_FMA(a, b, c)       _mm512_fmadd_ps(a, b, c)
#define UIR_VM_EACH_ROWS(X)       X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "backends/vm/routines.inc"
