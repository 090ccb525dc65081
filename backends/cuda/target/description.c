/* A group is a thread block, a unit a warp. Shared memory belongs to the group; a register slice is spread over a
 * warp's lanes. Sizes: NVIDIA's CUDA C programming guide, compute capability 9.0. */
#include "backends/cuda/target/description.h"

enum { DRAM, SMEM, REG };

#define BIT(x)   (1u << (x))
#define D(name)  BIT(UIR_DTYPE_##name)
#define HALVES   (D(F16) | D(BF16))
#define FLOATS   (HALVES | D(F32) | D(F64))
#define NARROW   (D(I8) | D(U8) | D(I16) | D(U16))
#define INTEGERS (NARROW | D(I32) | D(U32) | D(I64) | D(U64))
#define ANY      (FLOATS | INTEGERS | D(BOOL))
#define ON_CHIP  (BIT(SMEM) | BIT(REG))
#define ANYWHERE (BIT(DRAM) | ON_CHIP)
#define WARP     1u

static const uir_legal_row legal[] = {
    {"move", ANY, ANYWHERE, ANYWHERE, WARP, -1, 0, 0, 0},
    {"fill", ANY, ANYWHERE, 0, WARP, -1, 0, 0, 0},
    {"iota", ANY & ~D(BOOL), ON_CHIP, 0, WARP, -1, 0, 0, 0},
    {"unary.sin", D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.cos", D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.exp", HALVES | D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.exp2", HALVES | D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.log", HALVES | D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.tanh", HALVES | D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.erf", HALVES | D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.sigmoid", HALVES | D(F32), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.not", INTEGERS | D(BOOL), ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"unary.*", FLOATS | INTEGERS, ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"binary.*", ANY, ON_CHIP, ANYWHERE, WARP, -1, 0, 0, 0},
    {"compare.*", ANY, ON_CHIP, ANYWHERE, WARP, -1, 0, 0, 0},
    {"ternary.*", ANY, ON_CHIP, ANYWHERE, WARP, -1, 0, 0, 0},
    {"cast", ANY, ON_CHIP, ON_CHIP, WARP, -1, 0, ANY, 0},
    {"broadcast", ANY, ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"reduce.*", FLOATS | INTEGERS, ON_CHIP, ANYWHERE, WARP, -1, 0, 0, 0},
    {"scan.*", FLOATS | INTEGERS, ON_CHIP, ON_CHIP, WARP, -1, 0, 0, 0},
    {"mma", D(F32), BIT(REG), ON_CHIP, WARP, -1, UIR_LEGAL_EQUAL_OPERANDS, HALVES | D(F32), 0},
    {"mma", D(I32), BIT(REG), ON_CHIP, WARP, -1, 0, D(I8) | D(U8), 0},
};

static const uir_device device = {
    .name = "cuda",
    .chip = "sm_90",
    .spaces =
        {
            [DRAM] = {"dram", UIR_SPACE_MEMORY, UIR_SCOPE_DEVICE, 0, 16, false, WARP, 0, 0},
            [SMEM] = {"smem", UIR_SPACE_SCRATCH | UIR_SPACE_LEFT | UIR_SPACE_RIGHT, UIR_SCOPE_GROUP, 227 * 1024, 16,
                      false, WARP, 0, 0},
            /* 255 registers of 32 lanes, less a quarter for addresses. */
            [REG] = {"reg", UIR_SPACE_REGISTERS | UIR_SPACE_LEFT | UIR_SPACE_RIGHT | UIR_SPACE_ACCUMULATORS,
                     UIR_SCOPE_UNIT, 192 * 32 * 4, 128, false, WARP, 0, 0},
        },
    .space_count = 3,
    .unit_kinds = {"warp"},
    .unit_kind_count = 1,
    .units_per_group = 32,
    .group_count = 132,
    .has_device_barrier = true,
    .legal = legal,
    .legal_count = sizeof legal / sizeof *legal,
    .mma_m = 16,
    .mma_n = 8,
    .mma_k = 16,
    .vector_bytes = 16,
    .cache_bytes = {256 * 1024, 0, 50u * 1024 * 1024},
    .peak_flops = 66.9e12,
    .peak_bytes_per_second = 3.35e12,
};

const uir_device *uir_cuda_sm90_device(void) {
    return &device;
}
