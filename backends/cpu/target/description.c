/* A CPU as a device: one unit per core, memory behind caches. What is legal is data; what a variant needs of the
 * machine is asked of the compiler's own feature test. */
#include "backends/cpu/target/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DRAM, SRAM, REG };
#define SPACES   7u
#define D(name)  (1u << UIR_DTYPE_##name)
#define INTEGERS (D(I8) | D(U8) | D(I16) | D(U16) | D(I32) | D(U32) | D(I64) | D(U64))
#define FLOATS   (D(F32) | D(F64))
#define NUMBERS  (FLOATS | INTEGERS)
#define STORED   (NUMBERS | D(BOOL) | D(F16) | D(BF16))
#define EIGHTHS  (D(F8E4M3FN) | D(F8E4M3FNUZ) | D(F8E5M2) | D(F8E5M2FNUZ))
#define ROW(iop, dtypes)                                                                                               \
    { iop, dtypes, SPACES, SPACES, 1, -1, 0, 0 }
#define ROW_OTHER(iop, dtypes, others)                                                                                 \
    { iop, dtypes, SPACES, SPACES, 1, -1, 0, others }

static const uir_legal_row legal[] = {
    ROW("move", STORED | EIGHTHS),
    ROW("fill", STORED | EIGHTHS),
    ROW_OTHER("cast", STORED, STORED),
    ROW_OTHER("cast", D(F32), EIGHTHS),
    ROW_OTHER("cast", EIGHTHS, D(F32)),
    ROW_OTHER("bits", NUMBERS | D(F16) | D(BF16), NUMBERS | D(F16) | D(BF16)),
    ROW("broadcast", STORED | EIGHTHS),
    ROW("iota", NUMBERS),
    ROW("unary.*", D(F32) | INTEGERS | D(BOOL)), /* iops.def says which of these each has */
    ROW("unary.neg", D(F64)),
    ROW("unary.abs", D(F64)),
    ROW("unary.sign", D(F64)),
    ROW("unary.sqrt", D(F64)),
    ROW("unary.reciprocal", D(F64)),
    ROW("unary.rsqrt", D(F64)),
    ROW("unary.floor", D(F64)),
    ROW("unary.ceil", D(F64)),
    ROW("unary.round", D(F64)),
    ROW("unary.trunc", D(F64)),
    ROW("binary.*", NUMBERS | D(BOOL)),
    ROW("compare.*", NUMBERS | D(BOOL)),
    ROW("ternary.fma", FLOATS),
    ROW("ternary.select", NUMBERS | D(BOOL)),
    ROW("reduce.*", NUMBERS),
    ROW("scan.*", NUMBERS),
    ROW_OTHER("mma", D(F32), D(F32)),
    ROW_OTHER("mma", D(F64), D(F64)),
    ROW_OTHER("mma", D(I32), D(I8) | D(U8)),
};

typedef struct variant_row {
    const char *name, *architecture;
    uint32_t lanes;
} variant_row;

static const variant_row variants[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, lanes, flags) {name, architecture, lanes},
#include "backends/cpu/target/variants.def"
};

const char *uir_cpu_variant_name(uir_cpu_variant variant) {
    return (unsigned)variant < UIR_CPU_VARIANT_COUNT ? variants[variant].name : "?";
}

bool uir_cpu_variant_runs_here(uir_cpu_variant variant) {
    switch (variant) {
    case UIR_CPU_GENERIC:
        return true;
#if defined(__x86_64__)
    case UIR_CPU_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case UIR_CPU_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("fma");
#elif defined(__aarch64__)
    case UIR_CPU_AARCH64:
        return true;
#endif
    default:
        return false;
    }
}

/* What one unit may keep on its chip's memory: caches hold as much as they hold, the rest costs more. No machine is
 * refused a kernel, and what is accepted depends on none. */
#define UNIT_BYTES        (4ull << 20)
#define LEAST_WORKING_SET (128ull << 10)
#define USUAL_WORKING_SET (256ull << 10) /* of a machine that does not tell */

uir_status uir_cpu_describe(const char *name, uir_diagnostics *diagnostics, uir_cpu_device *out) {
    int chosen = -1;
    uir_cpu_machine machine;
    UIR_TRY(uir_cpu_read_machine(diagnostics, &machine));
    if (!name) name = machine.variant;
    for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
        if (name ? strcmp(variants[v].name, name) == 0 : uir_cpu_variant_runs_here((uir_cpu_variant)v)) chosen = v;
    }
    if (chosen < 0) {
        char known[128] = "";
        for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", v ? ", " : "", variants[v].name);
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no CPU variant is called '%s'; there are %s",
                         name ? name : "", known);
    }
    *out = (uir_cpu_device){.variant = (uir_cpu_variant)chosen,
                            .runs_here = uir_cpu_variant_runs_here((uir_cpu_variant)chosen)};
    uir_device *d = &out->device;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    /* The core's own second cache. */
    uint64_t working = machine.cache_bytes[1] ? machine.cache_bytes[1] : USUAL_WORKING_SET;
    if (working < LEAST_WORKING_SET) working = LEAST_WORKING_SET;
    if (working > UNIT_BYTES) working = UNIT_BYTES;
    d->name = "cpu";
    d->chip = variants[chosen].name;
    d->spaces[DRAM] = (uir_space){"dram", UIR_SPACE_MEMORY, UIR_SCOPE_DEVICE, 0, 64, false, 1, 0};
    d->spaces[SRAM] = (uir_space){"sram",
                                  UIR_SPACE_SCRATCH | UIR_SPACE_LEFT | UIR_SPACE_RIGHT | UIR_SPACE_ACCUMULATORS,
                                  UIR_SCOPE_UNIT,
                                  UNIT_BYTES,
                                  64,
                                  true,
                                  1,
                                  working};
    d->spaces[REG] = (uir_space){"reg", UIR_SPACE_REGISTERS, UIR_SCOPE_UNIT, 64u << 10, 64, false, 1, 0};
    d->space_count = 3;
    d->unit_kinds[0] = "core";
    d->unit_kind_count = 1;
    d->units_per_group = 1;
    d->group_count = cores > 0 ? (uint32_t)cores : 0;
    d->has_device_barrier = true;
    d->legal = legal;
    d->legal_count = sizeof legal / sizeof legal[0];
    d->mma_m = variants[chosen].lanes == 16 ? 14 : 6;
    d->mma_n = 32;
    d->mma_k = 1;
    d->vector_bytes = variants[chosen].lanes * 4;
    memcpy(d->cache_bytes, machine.cache_bytes, sizeof d->cache_bytes);
    return UIR_STATUS_OK;
}
