/* The prelude of a program: those of its parts that the kernels use, since a device's compiler reads them all. */
#include "backends/opencl/target/opencl.h"
#include "backends/opencl/target/prelude.h"

/* What a kernel uses, a bit each. */
enum {
    USES_ITEMS = 1 << 0,  /* a unit is a work-item, which has vectors */
    USES_GROUPS = 1 << 1, /* a unit is a work-group */
    USES_INTEGERS = 1 << 2,
    USES_F64 = 1 << 3,
    USES_CASTS = 1 << 4,
    USES_MATH = 1 << 5,
    USES_MATH_F64 = 1 << 6,
    USES_PRODUCTS = 1 << 7,
    USES_HALVES = 1 << 8, /* products whose second factor is of halves */
    USES_PRODUCTS_F64 = 1 << 9,
    USES_BYTES = 1 << 10 /* products of bytes */
};

/* In the order of a program: a part is in it if all of these are used. */
static const uint32_t parts[] = {
    USES_ITEMS,                         /* prelude_vector.inc */
    USES_GROUPS,                        /* prelude_types.inc */
    USES_GROUPS,                        /* prelude_scalar.inc */
    USES_ITEMS | USES_INTEGERS,         /* prelude_integers.inc */
    USES_ITEMS | USES_F64,              /* prelude_f64.inc */
    USES_ITEMS | USES_CASTS,            /* prelude_cast.inc */
    USES_ITEMS | USES_CASTS | USES_F64, /* prelude_cast_f64.inc */
    USES_GROUPS | USES_CASTS,           /* prelude_scalar_cast.inc */
    USES_MATH,                          /* prelude_math.inc */
    USES_MATH,                          /* kernel_math_reduce.inc */
    USES_ITEMS | USES_MATH,             /* prelude_single.inc */
    USES_GROUPS | USES_MATH,            /* prelude_scalar_math.inc */
    USES_MATH,                          /* kernel_math.inc */
    USES_ITEMS | USES_MATH_F64,         /* prelude_math_f64.inc */
    USES_GROUPS | USES_MATH_F64,        /* prelude_scalar_math_f64.inc */
    USES_MATH_F64,                      /* kernel_math_f64.inc */
    USES_ITEMS | USES_PRODUCTS,         /* prelude_mma.inc */
    USES_ITEMS | USES_HALVES,           /* prelude_mma_halves.inc */
    USES_ITEMS | USES_PRODUCTS_F64,     /* prelude_mma_f64.inc */
    USES_ITEMS | USES_BYTES,            /* prelude_dot.inc */
};

/* Parts that others need. */
static const struct {
    uint32_t of, need;
} needs[] = {
    {USES_BYTES, USES_PRODUCTS | USES_INTEGERS},
    {USES_HALVES, USES_PRODUCTS | USES_CASTS},
    {USES_MATH_F64, USES_MATH | USES_F64},
    {USES_PRODUCTS_F64, USES_F64},
    {USES_CASTS, USES_INTEGERS},
    {USES_F64, USES_INTEGERS},
    {USES_MATH, USES_INTEGERS},
};

static uint32_t find_dtype_uses(uir_dtype dtype) {
    if (dtype == UIR_DTYPE_F64) return USES_F64;
    return dtype == UIR_DTYPE_F32 || dtype == UIR_DTYPE_I32 || dtype == UIR_DTYPE_BOOL ? 0 : USES_INTEGERS;
}

static uint32_t find_product_uses(const uir_iinstruction *in) {
    if (in->dtype == UIR_DTYPE_F64) return USES_PRODUCTS_F64;
    if (in->dtype == UIR_DTYPE_I32) return USES_BYTES;
    return in->dtype_c == UIR_DTYPE_F32 ? USES_PRODUCTS : USES_HALVES;
}

static bool is_function(uir_iop_code code) {
    switch (code) {
#define UIR_KERNEL_MATH(constant, name, ulp)        case UIR_IOP_##constant:
#define UIR_KERNEL_MATH_BINARY(constant, name, ulp) case UIR_IOP_##constant:
#include "ir/kernel/interpret/kernel_math.def"
        return true;
    default:
        return false;
    }
}

static uint32_t find_instruction_uses(const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    if (family == UIR_IOP_FAMILY_MMA) return find_product_uses(in);
    if (family == UIR_IOP_FAMILY_CAST && in->code != UIR_IOP_BITS) return USES_CASTS;
    if (!is_function(in->code)) return 0;
    return in->dtype == UIR_DTYPE_F64 ? USES_MATH_F64 : USES_MATH;
}

static uint32_t find_uses(const uir_igraph *g) {
    uint32_t uses = uir_machine_threads(g->machine) > 1 ? USES_GROUPS : USES_ITEMS;
    for (uint32_t i = 0; i < g->pointers.count; i++) uses |= find_dtype_uses(g->pointers.data[i].dtype);
    for (uint32_t i = 0; i < g->instructions.count; i++) uses |= find_instruction_uses(&g->instructions.data[i]);
    return uses;
}

uir_status uir_opencl_emit_prelude(const uir_igraph *const *igraphs, uint32_t count, uir_text *text) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < count; i++) uses |= find_uses(igraphs[i]);
    for (uint32_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (uses & needs[i].of) uses |= needs[i].need;
    for (uint32_t i = 0; i < uir_opencl_prelude_count && i < sizeof parts / sizeof *parts; i++)
        if ((uses & parts[i]) == parts[i])
            uir_text_append(text, uir_opencl_prelude_parts[i], uir_opencl_prelude_sizes[i]);
    return uir_text_status(text);
}
