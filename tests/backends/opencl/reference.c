/* What the OpenCL prelude's functions give: the CPU's prelude, on the same cases. */
#include "tests/backends/opencl/reference.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#endif
#include "backends/cpu/target/prelude_vector.inc"
#include "ir/kernel/interpret/kernel_math_reduce.inc"
#include "backends/cpu/target/prelude_math.inc"
#include "ir/kernel/interpret/kernel_math_f64.inc"
#include "backends/cpu/target/prelude_single.inc"
#include "ir/kernel/interpret/kernel_math.inc"
#include "backends/cpu/target/prelude_interleaved.inc"
#include "ir/kernel/interpret/kernel_math.inc"
#include "backends/cpu/target/prelude_cast.inc"
#include "backends/cpu/target/prelude_mma.inc"
#include "backends/cpu/target/prelude_dot.inc"

#define MEMORY
#define UIR_NOT_MET ((uir_met){0})
#define RESULT(T) *kinds++ = TYPE_##T;
#define UIR_BITS(F, T)                                                                                                 \
    UIR_INLINE v_##T v_bits_##F##_##T(v_##F x) { return (v_##T)x; }                                                    \
    UIR_INLINE v_##F v_bits_##T##_##F(v_##T x) { return (v_##F)x; }
UIR_BITS(i8, u8)
UIR_BITS(i16, u16)
UIR_BITS(i16, f16)
UIR_BITS(i16, bf16)
UIR_BITS(u16, f16)
UIR_BITS(u16, bf16)
UIR_BITS(f16, bf16)
UIR_BITS(i32, u32)
UIR_BITS(i32, f32)
UIR_BITS(u32, f32)
UIR_BITS(i64, u64)
UIR_BITS(i64, f64)
UIR_BITS(u64, f64)
#define v_select_f16 v_select_u16
#define v_select_bf16 v_select_u16

static int *section_0(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 0
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_1(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 1
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_2(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 2
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_3(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 3
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_4(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 4
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_5(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 5
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_6(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 6
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_7(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 7
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_8(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 8
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_9(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 9
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_10(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 10
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_11(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 11
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_12(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 12
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_13(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 13
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_14(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 14
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_15(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 15
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

static int *section_16(const unsigned char *in, unsigned char *out, int *kinds) {
#define SECTION 16
#include "tests/backends/opencl/cases.inc"
#undef SECTION
    return kinds;
}

int reference_compute(int section, const unsigned char *in, unsigned char *out, int *kinds) {
    static int *(*const sections[])(const unsigned char *, unsigned char *, int *) = {
        section_0, section_1, section_2, section_3, section_4, section_5, section_6, section_7, section_8, section_9, section_10, section_11, section_12, section_13, section_14, section_15, section_16};
    return (int)(sections[section](in, out, kinds) - kinds);
}
