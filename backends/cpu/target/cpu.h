/* The CPU target: describes the device, emits C source and compiles it.
 *
 * In: verified iGraphs `on cpu`. Out: a device description, readable C source with GNU vector extensions, a shared
 * object made by the system's C compiler. The source is the same for every ISA; the compiler's
 * -m flags choose the ISA.
 *
 * A kernel's phase k is `void <symbol>_phase<k>(const int64_t *symbols, void *const *pointers, void *scratch, int64_t
 * begin, int64_t end, const volatile _Bool *cancel)`:
 *   symbols      the DIM values, then the TILE values, in declaration order
 *   pointers     the dram pointers in declaration order
 *   scratch      a unit's own memory, 64-byte aligned, uir_cpu_scratch_size bytes
 *   begin..end   the flat indices of the phase's parallel axes, row-major
 *   cancel       once *cancel is set, the phase returns early, after at most one innermost loop
 * A phase begins after all indices of the preceding phase are done. */
#ifndef UIR_BACKENDS_CPU_TARGET_CPU_H
#define UIR_BACKENDS_CPU_TARGET_CPU_H

#include "base/text.h"
#include "ir/kernel/igraph.h"

/* ---- description ---- */
/* The variants that kernels are compiled for: one row each in variants.def. */
typedef enum uir_cpu_variant {
#define UIR_CPU_VARIANT(constant, name, architecture, flags, ...) UIR_CPU_##constant,
#include "backends/cpu/target/variants.def"
    UIR_CPU_VARIANT_COUNT
} uir_cpu_variant;

/* Number of 8-bit elements of one column that are contiguous in packed operands of products; the same for all machines
 * that a package may run on. */
enum { UIR_CPU_BYTE_GROUP = 4 };

typedef struct uir_cpu_device {
    uir_machine machine;
    uir_cpu_variant variant;
    bool runs_here; /* this machine can execute the variant */
} uir_cpu_device;

const char *uir_cpu_variant_name(uir_cpu_variant variant); /* "avx2" */
bool uir_cpu_variant_runs_here(uir_cpu_variant variant);
/* Describes the CPU. `variant`: a name, or NULL for the best variant of this machine, with its cache sizes and number
 * of cores. A named variant is described by its row of variants.def, the same on every machine. The environment
 * variable UIR_CPU (machine.c) overrides this machine's variant, and the cache sizes of all variants. INVALID_ARGUMENT
 * with a message for an unknown name or an invalid value of the variable. The device points into static tables and
 * stays valid. */
uir_status uir_cpu_describe(const char *variant, uir_diagnostics *diagnostics, uir_cpu_device *out_device);

/* ---- source ---- */
/* Appends one C file with all kernels. Kernel i's phases are named after uir_c_symbol. */
uir_status uir_cpu_emit(const uir_igraph *const *igraphs, uint32_t count, uir_text *text, uir_diagnostics *diagnostics);
/* The parts of uir_cpu_emit: the prelude of every file, and one kernel. */
uir_status uir_cpu_emit_prelude(uir_text *text);
uir_status uir_cpu_emit_kernel(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics);
/* The embedded text of prelude_*.inc and ir/kernel/interpret/kernel_math.inc. */
extern const char *const uir_cpu_prelude_parts[];
extern const size_t uir_cpu_prelude_sizes[];
extern const uint32_t uir_cpu_prelude_count;
/* Bytes of scratch that one unit needs, an expression over the kernel's symbols; NONE if the expression cannot be
 * made. */
uir_dim uir_cpu_scratch_bytes(const uir_igraph *igraph);
/* Evaluates this expression; `values` are those of uir_igraph_bind. */
uir_status uir_cpu_scratch_size(const uir_igraph *igraph, const int64_t *values, size_t *out_size);

/* ---- compile ---- */
typedef struct uir_cpu_compile_options {
    uir_cpu_variant variant;
    const char *compiler;        /* NULL: $CC, else the first found of cc, gcc, clang */
    const char *extra_flags;     /* more flags, separated by blanks, or NULL ("-fsanitize=address") */
    uint64_t timeout_ms;         /* processor time of each compiler; 0: UIR_LIMIT_COMPILER of the budget */
    uint32_t idle_ms;            /* a build whose compilers use no processor time for this long has hung; 0: 20 s */
    bool debug;                  /* -O1 -g instead of -O3 */
    const char *keep_source;     /* a path that also receives the source, or NULL */
    const volatile bool *cancel; /* once true, also from a signal handler, the compiler is killed; may be NULL */
} uir_cpu_compile_options;

/* Compiles in a private temporary folder, removed afterwards. Out: the bytes of a shared object, the allocator's block.
 * DEVICE_FAILED with the compiler's first lines. CANCELLED without a message: the compiler and its children are
 * killed. */
uir_status uir_cpu_compile(const uir_allocator *allocator, const uir_cpu_compile_options *options, const char *source,
                           size_t length, uir_diagnostics *diagnostics, void **out_bytes, size_t *out_size);

/* Compiles one C program (its main included) into the file `path`; aarch64 by Debian's cross compiler, linked
 * statically. */
uir_status uir_cpu_compile_program(const uir_allocator *allocator, const uir_cpu_compile_options *options,
                                   const char *source, size_t length, const char *path, uir_diagnostics *diagnostics);
/* Appends a `main` to an emitted source of `count` kernels. The program reads records from standard input and answers
 * on standard output: see uir_cpu_write_call. So kernels of a foreign architecture can run under an emulator. */
uir_status uir_cpu_emit_main(const uir_igraph *const *igraphs, uint32_t count, uir_text *text);
/* Appends the record that makes such a program run kernel `index`. The answer has `*out_answer_size` bytes: the
 * contents of all dram pointers in order. */
uir_status uir_cpu_write_call(const uir_igraph *igraph, uint32_t index, const uir_kernel_arguments *arguments,
                              uir_diagnostics *diagnostics, uir_text *call, size_t *out_answer_size);

#endif
