/* Sizes and rates are those that Huawei publishes for the Atlas A2 (dav-2201) chips; 910B1. One AI core is a cube core
 * and two vector cores, which reach each other through device memory alone. */
#include "backends/ascend/target/description.h"

enum { DRAM, UB, L1, L0A, L0B, L0C };
enum { VECTOR, CUBE };
enum { S, V, M, MTE1, MTE2, MTE3, FIX };

#define BIT(x)       (1u << (x))
#define D(name)      BIT(UIR_DTYPE_##name)
#define FLOATS       (D(F16) | D(F32))
#define INTEGERS     (D(I16) | D(I32))
#define WORDS        (D(I16) | D(U16))
#define ANY          (FLOATS | INTEGERS | D(BF16) | D(I8) | D(U8) | D(U16) | D(U32) | D(I64) | D(U64) | D(BOOL))
#define CUBE_FORMATS (D(F16) | D(BF16) | D(F32) | D(I8))

/* A vector instruction works from UB to UB, on rows of whole 32-byte blocks. */
#define ELEMENTWISE (UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_BLOCK_BROADCAST | UIR_LEGAL_SAME_SPACE)
#define ON_VECTOR(iop, dtypes, constraints)                                                                            \
    { iop, dtypes, BIT(UB), BIT(UB), BIT(VECTOR), V, constraints, 0, 0 }
#define CAST(from, to)                                                                                                 \
    { "cast", from, BIT(UB), BIT(UB), BIT(VECTOR), V, ELEMENTWISE, to, 0 }

static const uir_legal_row legal[] = {
    {"move", ANY, BIT(UB), BIT(DRAM), BIT(VECTOR), MTE2, UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_NO_BROADCAST, 0, 0},
    {"move", ANY, BIT(DRAM), BIT(UB), BIT(VECTOR), MTE3, UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_NO_BROADCAST, 0, 0},
    ON_VECTOR("move", ANY, UIR_LEGAL_LAST_CONTIGUOUS),
    {"move", CUBE_FORMATS, BIT(L1), BIT(DRAM), BIT(CUBE), MTE2, UIR_LEGAL_FRACTAL | UIR_LEGAL_NO_BROADCAST, 0, 0},
    {"move", CUBE_FORMATS, BIT(L0A) | BIT(L0B), BIT(L1), BIT(CUBE), MTE1, UIR_LEGAL_FRACTAL | UIR_LEGAL_NO_BROADCAST, 0,
     0},
    {"move", D(F32) | D(I32), BIT(DRAM), BIT(L0C), BIT(CUBE), FIX, UIR_LEGAL_FRACTAL | UIR_LEGAL_NO_BROADCAST, 0, 0},
    {"fill", D(F32) | D(I32), BIT(L0C), 0, BIT(CUBE), M, UIR_LEGAL_FRACTAL, 0, 0},
    {"mma", D(F32), BIT(L0C), BIT(L0A) | BIT(L0B), BIT(CUBE), M, UIR_LEGAL_FRACTAL | UIR_LEGAL_EQUAL_OPERANDS,
     D(F16) | D(BF16) | D(F32), 0},
    {"mma", D(I32), BIT(L0C), BIT(L0A) | BIT(L0B), BIT(CUBE), M, UIR_LEGAL_FRACTAL | UIR_LEGAL_EQUAL_OPERANDS, D(I8),
     0},
    ON_VECTOR("fill", ANY & ~(D(I64) | D(U64)), UIR_LEGAL_LAST_CONTIGUOUS),
    ON_VECTOR("iota", D(F32) | D(I32), UIR_LEGAL_LAST_CONTIGUOUS),
    ON_VECTOR("unary.abs", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.neg", FLOATS | INTEGERS, ELEMENTWISE),
    ON_VECTOR("unary.sqrt", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.rsqrt", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.reciprocal", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.exp", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.log", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.tanh", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.erf", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.sigmoid", FLOATS, ELEMENTWISE),
    ON_VECTOR("unary.not", WORDS, ELEMENTWISE),
    ON_VECTOR("binary.add", FLOATS | INTEGERS, ELEMENTWISE),
    ON_VECTOR("binary.sub", FLOATS | INTEGERS, ELEMENTWISE),
    ON_VECTOR("binary.mul", FLOATS | INTEGERS, ELEMENTWISE),
    ON_VECTOR("binary.div", FLOATS, ELEMENTWISE),
    ON_VECTOR("binary.min", FLOATS | INTEGERS, ELEMENTWISE),
    ON_VECTOR("binary.max", FLOATS | INTEGERS, ELEMENTWISE),
    ON_VECTOR("binary.and", WORDS, ELEMENTWISE),
    ON_VECTOR("binary.or", WORDS, ELEMENTWISE),
    ON_VECTOR("compare.*", FLOATS, ELEMENTWISE),
    ON_VECTOR("ternary.fma", FLOATS, ELEMENTWISE),
    ON_VECTOR("ternary.select", FLOATS, ELEMENTWISE),
    CAST(D(F32), FLOATS | D(BF16) | D(I16) | D(I32) | D(I64)),
    CAST(D(F16), D(F32) | D(I8) | D(U8) | D(I16) | D(I32)),
    CAST(D(BF16), D(F32) | D(I32)),
    CAST(D(I32), D(F32) | D(I16) | D(I64)),
    CAST(D(I8) | D(U8), D(F16)),
    CAST(D(I16), FLOATS),
    ON_VECTOR("broadcast", FLOATS | INTEGERS | D(U16) | D(U32), UIR_LEGAL_LAST_CONTIGUOUS),
    ON_VECTOR("reduce.add", FLOATS, UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_REDUCE_SCRATCH),
    ON_VECTOR("reduce.max", FLOATS, UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_REDUCE_SCRATCH),
    ON_VECTOR("reduce.min", FLOATS, UIR_LEGAL_LAST_CONTIGUOUS | UIR_LEGAL_REDUCE_SCRATCH),
};

static const uir_device device = {
    .name = "ascend",
    .chip = "910B1",
    .spaces =
        {
            [DRAM] = {"dram", UIR_SPACE_MEMORY, UIR_SCOPE_DEVICE, 0, 32, false, BIT(VECTOR) | BIT(CUBE), 0, 0},
            /* 192 KB less 256 bytes, and less the 8 KB that the programming model reserves. */
            [UB] = {"ub", UIR_SPACE_SCRATCH, UIR_SCOPE_UNIT, 192 * 1024 - 256 - 8 * 1024, 32, false, BIT(VECTOR), 0, 0},
            [L1] = {"l1", UIR_SPACE_SCRATCH, UIR_SCOPE_UNIT, 512 * 1024 - 256, 32, false, BIT(CUBE), 0, 0},
            [L0A] = {"l0a", UIR_SPACE_LEFT, UIR_SCOPE_UNIT, 64 * 1024, 512, false, BIT(CUBE), 0, 0},
            [L0B] = {"l0b", UIR_SPACE_RIGHT, UIR_SCOPE_UNIT, 64 * 1024, 512, false, BIT(CUBE), 0, 0},
            [L0C] = {"l0c", UIR_SPACE_ACCUMULATORS, UIR_SCOPE_UNIT, 128 * 1024, 64, false, BIT(CUBE), 0, 0},
        },
    .space_count = 6,
    .unit_kinds = {[VECTOR] = "vector", [CUBE] = "cube"},
    .unit_kind_count = 2,
    .pipes = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"},
    .pipe_count = 7,
    .units_per_group = 3,
    .group_count = 24,
    .has_device_barrier = true,
    .legal = legal,
    .legal_count = sizeof legal / sizeof *legal,
    .mma_m = 16,
    .mma_n = 16,
    .mma_k = 16,
    .vector_bytes = 256,
    .cache_bytes = {0, 0, 192u * 1024 * 1024},
    /* f32: 48 vector cores, 64 lanes of multiply-add at 1.85 GHz. */
    .peak_flops = 48.0 * 64 * 2 * 1.85e9,
    .peak_bytes_per_second = 1.6e12,
};

const uir_device *uir_ascend_910b1_device(void) {
    return &device;
}
