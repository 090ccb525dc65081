/* A CPU as a device: one unit per core, memory behind caches. What is legal is data; what a variant needs of the
 * machine is asked of the compiler's own feature test. */
#include "backends/cpu/target/cpu.h"

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

/* Bytes of a cache from /sys: "32K", "1M". 0 when it is not told. */
static uint64_t read_cache(unsigned index, unsigned level) {
    char path[96], text[32];
    unsigned found = 0;
    unsigned long long size = 0;
    char unit = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/level", index);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file) || sscanf(text, "%u", &found) != 1) found = 0;
    fclose(file);
    if (found != level) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/type", index);
    file = fopen(path, "r");
    if (!file) return 0;
    bool instructions = !fgets(text, sizeof text, file) || text[0] == 'I';
    fclose(file);
    if (instructions) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
    file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file) || sscanf(text, "%llu%c", &size, &unit) < 1) size = 0;
    fclose(file);
    if (size > (1ull << 30)) return 0;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

static uint64_t cache_bytes(unsigned level) {
    for (unsigned index = 0; index < 8; index++) {
        uint64_t size = read_cache(index, level);
        if (size) return size;
    }
    return 0;
}

uir_status uir_cpu_describe(const char *name, uir_diagnostics *diagnostics, uir_cpu_device *out) {
    int chosen = -1;
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
    uint64_t l1 = cache_bytes(1), l2 = cache_bytes(2), last = cache_bytes(3);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    /* A kernel's working set: the core's own second cache, within what any machine of today has. */
    uint64_t working = l2 < (256u << 10) ? 256u << 10 : l2 > (4u << 20) ? 4u << 20 : l2;
    d->name = "cpu";
    d->chip = variants[chosen].name;
    d->spaces[DRAM] = (uir_space){"dram", UIR_SCOPE_DEVICE, 0, 64, false, false, 1};
    d->spaces[SRAM] = (uir_space){"sram", UIR_SCOPE_UNIT, working, 64, true, false, 1};
    d->spaces[REG] = (uir_space){"reg", UIR_SCOPE_UNIT, 64u << 10, 64, false, true, 1};
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
    d->cache_bytes[0] = l1;
    d->cache_bytes[1] = l2;
    d->cache_bytes[2] = last;
    return UIR_STATUS_OK;
}
