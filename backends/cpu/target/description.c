/* A CPU as a device: one unit per core, memory behind caches. What is legal is data; what a variant needs of the
 * machine is asked of the compiler's own feature test. */
#include "backends/cpu/target/machine.h"
#include "backends/cpu/target/variants.h"
#include "backends/source/legal_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DRAM, SRAM, REG };
#define FLOATS  (D(F32) | D(F64))
#define NUMBERS (FLOATS | INTEGERS)
#define STORED  (NUMBERS | D(BOOL) | D(F16) | D(BF16))
#define EIGHTHS (D(F8E4M3FN) | D(F8E4M3FNUZ) | D(F8E5M2) | D(F8E5M2FNUZ))

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
    ROW("unary.sin", D(F64)),
    ROW("unary.cos", D(F64)),
    ROW("unary.tan", D(F64)),
    ROW("binary.*", NUMBERS | D(BOOL)),
    ROW("compare.*", NUMBERS | D(BOOL)),
    ROW("ternary.fma", FLOATS),
    ROW("ternary.select", NUMBERS | D(BOOL)),
    ROW("reduce.*", NUMBERS),
    ROW("scan.*", NUMBERS),
    ROW_RIGHT("mma", D(F32), D(F32), D(F32) | D(F16) | D(BF16)), /* halves are widened as they come */
    ROW_OTHER("mma", D(F64), D(F64)),
    ROW_OTHER("mma", D(I32), D(I8) | D(U8)),
};

typedef struct variant_row {
    const char *name, *architecture, *flags;
    uint32_t lanes, registers, loads, multiply_adds, latency, far_bytes, near_bytes;
    uint32_t cache_kib[3], cores;
} variant_row;

static const variant_row variants[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, flags, lanes, registers, loads, fmas, latency, far, near, l1,    \
                        l2, l3, cores)                                                                                 \
    {name, architecture, flags, lanes, registers, loads, fmas, latency, far, near, {l1, l2, l3}, cores},
#include "backends/cpu/target/variants.def"
};

const char *uir_cpu_variant_name(uir_cpu_variant variant) {
    return (unsigned)variant < UIR_CPU_VARIANT_COUNT ? variants[variant].name : "?";
}

bool uir_cpu_variant_runs_here(uir_cpu_variant variant) {
    return (unsigned)variant < UIR_CPU_VARIANT_COUNT &&
           uir_cpu_variant_can_run(variants[variant].architecture, variants[variant].flags);
}

/* What one unit may keep on its chip's memory: caches hold as much as they hold, the rest costs more. No machine is
 * refused a kernel, and what is accepted depends on none. */
#define UNIT_BYTES        (4ull << 20)
#define LEAST_WORKING_SET (128ull << 10)
#define USUAL_WORKING_SET (256ull << 10) /* of a machine that does not tell */
#define LINE_BYTES        64
#define UNIT_CYCLES       1000 /* a share of the work is taken, its indices are divided up, its sums are set to 0 */
#define PANEL             32   /* columns of packed constants, alike for all that a package may run on */
#define HALF_WAY          2048 /* of the first cache: rows a multiple of it apart meet in two of its places */

/* A block of sums of a product: rows by vectors of columns. */
typedef struct sum_block {
    uint32_t rows, columns;
} sum_block;

/* Does a step of depth take fewer cycles for a multiply-add, or as many and fewer loads? */
static bool is_better_block(const uir_machine *d, sum_block a, sum_block b) {
    uint32_t sums[2] = {a.rows * a.columns, b.rows * b.columns}, loads[2] = {a.rows + a.columns, b.rows + b.columns};
    uint32_t cycles[2];
    for (int i = 0; i < 2; i++) {
        uint32_t loading = loads[i] * d->multiply_adds_per_cycle, adding = sums[i] * d->loads_per_cycle;
        cycles[i] = loading > adding ? loading : adding;
    }
    if (cycles[0] * sums[1] != cycles[1] * sums[0]) return cycles[0] * sums[1] < cycles[1] * sums[0];
    return loads[0] * sums[1] < loads[1] * sums[0];
}

/* The best block that registers hold beside a row of the second factor and an element of the first, its columns an even
 * part of a panel, with as many sums as are under way until the first one's result is there. */
static sum_block choose_block(const uir_machine *d) {
    sum_block best = {1, 1};
    for (uint32_t columns = 1; columns * d->vector_bytes <= d->mma_n * 4; columns *= 2) {
        sum_block block = {(d->registers - 1 - columns) / columns, columns};
        if (block.rows * columns < d->multiply_adds_per_cycle * d->multiply_add_latency) continue;
        if (is_better_block(d, block, best)) best = block;
    }
    return best;
}

/* The row's machine. */
static uir_machine from_template(const variant_row *v) {
    uir_machine d = {.name = "cpu", .chip = v->name, .is_first_chip = true};
    d.spaces[DRAM] = (uir_space){.name = "dram",
                                 .roles = UIR_SPACE_MEMORY,
                                 .scope = UIR_SCOPE_DEVICE,
                                 .alignment = LINE_BYTES,
                                 .unit_kinds = 1,
                                 .bytes_per_cycle = v->far_bytes};
    d.spaces[SRAM] = (uir_space){.name = "sram",
                                 .roles = UIR_SPACE_SCRATCH | UIR_SPACE_LEFT | UIR_SPACE_RIGHT | UIR_SPACE_ACCUMULATORS,
                                 .capacity = UNIT_BYTES,
                                 .alignment = LINE_BYTES,
                                 .is_cache = true,
                                 .unit_kinds = 1,
                                 .bytes_per_cycle = v->near_bytes};
    d.spaces[REG] = (uir_space){
        .name = "reg", .roles = UIR_SPACE_REGISTERS, .capacity = 64u << 10, .alignment = LINE_BYTES, .unit_kinds = 1};
    d.space_count = 3;
    d.unit_kinds[0] = "core";
    d.unit_kind_count = 1;
    d.units_per_group = 1;
    d.thread_count = d.resident_count = 1;
    d.group_count = v->cores;
    d.has_device_barrier = true;
    d.legal = legal;
    d.legal_count = sizeof legal / sizeof legal[0];
    d.vector_bytes = v->lanes * 4;
    d.registers = v->registers;
    d.loads_per_cycle = v->loads;
    d.multiply_adds_per_cycle = v->multiply_adds;
    d.multiply_add_latency = v->latency;
    d.unit_cycles = UNIT_CYCLES;
    d.conflict_bytes = HALF_WAY;
    d.mma_n = PANEL;
    d.mma_k = 1;
    d.byte_group = UIR_CPU_BYTE_GROUP;
    d.mma_m = choose_block(&d).rows;
    for (int level = 0; level < 3; level++) d.cache_bytes[level] = (uint64_t)v->cache_kib[level] << 10;
    return d;
}

/* The core's own second cache. */
static void set_working_set(uir_machine *d) {
    uint64_t working = d->cache_bytes[1] ? d->cache_bytes[1] : USUAL_WORKING_SET;
    if (working < LEAST_WORKING_SET) working = LEAST_WORKING_SET;
    d->spaces[SRAM].working_set = working > UNIT_BYTES ? UNIT_BYTES : working;
}

static const char *get_name(void *user, size_t index) {
    (void)user;
    return index < UIR_CPU_VARIANT_COUNT ? variants[index].name : NULL;
}

uir_status uir_cpu_describe(const char *name, uir_diagnostics *diagnostics, uir_cpu_device *out) {
    int chosen = -1, own = -1;
    uir_cpu_machine machine;
    UIR_TRY(uir_cpu_read_machine(diagnostics, &machine));
    for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
        if (machine.variant ? strcmp(variants[v].name, machine.variant) == 0
                            : uir_cpu_variant_runs_here((uir_cpu_variant)v))
            own = v;
        if (name && strcmp(variants[v].name, name) == 0) chosen = v;
    }
    if (!name) chosen = own;
    if (chosen < 0) {
        char known[128] = "";
        for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", v ? ", " : "", variants[v].name);
        const char *meant = uir_find_nearest(name ? name : "", get_name, NULL);
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "unknown CPU variant '%s'; use one of %s%s%s%s", name ? name : "", known,
                         meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
    *out = (uir_cpu_device){.machine = from_template(&variants[chosen]),
                            .variant = (uir_cpu_variant)chosen,
                            .runs_here = uir_cpu_variant_runs_here((uir_cpu_variant)chosen)};
    uir_machine *d = &out->machine;
    for (int level = 0; level < 3; level++)
        if (!name || machine.given[level]) d->cache_bytes[level] = machine.cache_bytes[level];
    long cores = !name ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    if (cores > 0) d->group_count = (uint32_t)cores;
    set_working_set(d);
    return UIR_STATUS_OK;
}
