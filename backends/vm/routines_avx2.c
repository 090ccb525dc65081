/* The routines for x86-64 with AVX2 and FMA; compiled with those flags. */
#define UIR_VM_TABLE     uir_vm_routines_avx2
#define UIR_VM_ISA       "avx2"
#define UIR_VM_AVAILABLE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#include <immintrin.h>

static const int mask_bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

static inline __m256i first_lanes(long long count) {
    long long n = count > 8 ? 8 : count < 0 ? 0 : count;
    return _mm256_loadu_si256((const __m256i *)(const void *)(mask_bits + 8 - n));
}

/* 6 x 2 accumulators, two vectors of b and a broadcast: 15 registers of 16. */
#define UIR_VM_VECTOR             __m256
#define UIR_VM_MASK               __m256i
#define UIR_VM_LANES              8
#define UIR_VM_ROWS               6
#define UIR_VM_FIRST(count)       first_lanes(count)
#define UIR_VM_LOAD(from, mask)   _mm256_maskload_ps(from, mask)
#define UIR_VM_STORE(to, mask, x) _mm256_maskstore_ps(to, mask, x)
#define UIR_VM_SET(x)             _mm256_set1_ps(x)
#define UIR_VM_FMA(a, b, c)       _mm256_fmadd_ps(a, b, c)
#define UIR_VM_EACH_ROWS(X)       X(1) X(2) X(3) X(4) X(5) X(6)
#include "backends/vm/routines.inc"
