/* Tells whether this machine can execute a variant of variants.def, for the compiler and the runtime.
 *
 * In: a row's architecture and compiler flags. Out: whether this CPU has the features that the flags enable. */
#ifndef UIR_BACKENDS_CPU_TARGET_VARIANTS_H
#define UIR_BACKENDS_CPU_TARGET_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#define UIR_CPU_ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define UIR_CPU_ARCHITECTURE "aarch64"
#else
#define UIR_CPU_ARCHITECTURE "?"
#endif

/* Whether this CPU has the feature that the compiler flag "-m<feature>" enables. */
static inline bool uir_cpu_has_feature(const char *name, size_t length) {
#if defined(__x86_64__)
#define FEATURE(text)                                                                                                  \
    if (length == sizeof text - 1 && !memcmp(name, text, length)) return __builtin_cpu_supports(text) != 0;
    FEATURE("avx2")
    FEATURE("fma")
    FEATURE("avx512f")
    FEATURE("avx512bw")
    FEATURE("avx512vl")
    FEATURE("avx512dq")
    FEATURE("avx512cd")
    FEATURE("avx512vnni")
#undef FEATURE
    /* Every CPU with avx2 has f16c; some compilers do not know the name. */
    if (length == 4 && !memcmp(name, "f16c", 4)) return __builtin_cpu_supports("avx2") != 0;
#endif
    (void)name, (void)length;
    return false;
}

/* Whether this machine can execute code of the architecture ("": any) that was compiled with the flags. */
static inline bool uir_cpu_variant_can_run(const char *architecture, const char *flags) {
    if (architecture[0] && strcmp(architecture, UIR_CPU_ARCHITECTURE)) return false;
    for (const char *at = flags; (at = strstr(at, "-m"));) {
        at += 2;
        size_t length = strcspn(at, " ");
        if (!memchr(at, '=', length) && !uir_cpu_has_feature(at, length)) return false;
    }
    return true;
}

#endif
