/* Compares the stages of a compile with the interpreters, on given inputs: `uir-run --check`.
 *
 * In: a model and inputs. Out: the first stage, kernel and node whose results differ from those of the stage before.
 * The decomposed primitives are the reference. Three graphs are compared by tolerance, each with the one before:
 * cleaned, with operands rounded to half types, with Winograd convolutions. Groups are compared with the last graph by
 * bits. Then each launch of each kernel runs separately, on the reference's own operands. Naive loop AST, scheduled
 * loop AST and iGraph are compared by tolerance, since they add in other orders; the VM with the iGraph's interpreter,
 * and native code, or the device with memory of its own, with the VM, by bits; the last may be of edited sources. A
 * device's kernel that writes beside its memory differs too. Launches of more than `limit` operations
 * are too large for the interpreters of loops and iGraphs: there the VM is compared with the group's results by
 * tolerance, and native code with the VM by bits. */
#ifndef UIR_COMPILE_CHECK_H
#define UIR_COMPILE_CHECK_H

#include "compile/compile.h"

typedef struct uir_check_report {
    const char *stage;  /* "cleaned", "precision", "winograd", "fusion", "loop", "schedule", "igraph", "vm", "cpu", or a
                           device as "null:7" */
    const char *kernel; /* "" for a whole graph */
    const char *node;   /* ONNX node; "" if unknown */
    bool agrees;
    uint64_t checked; /* launches or outputs compared at this stage so far */
    uint64_t skipped; /* launches too large for this stage */
    const char *text; /* the difference; "" if it agrees */
} uir_check_report;

typedef struct uir_check_options {
    const char *device; /* as for packages; NULL: "cpu" */
    bool exact, strict; /* as in uir_compile_options, like `precision` */
    uir_precision precision;
    double f16_tolerance,
        bf16_tolerance;          /* for operands rounded to these types; relative, and of the greatest element */
    const char *source;          /* a folder of kernels' sources, whose code the last stage runs; NULL: the model's */
    uint64_t limit;              /* operations; 0: 4 million; UINT64_MAX: everything */
    double rtol, atol_relative;  /* 0: 1e-3, 1e-4 */
    const volatile bool *cancel; /* the operation's, for code without progress */
    void (*report)(void *user, const uir_check_report *report); /* at each difference, and at the end of each stage */
    uir_progress progress;                                      /* may cancel */
    void *user;
} uir_check_options;

/* DIFFERENT if a stage differs: the report names it. CANCELLED on request: an interrupted stage is not reported as a
 * difference. */
uir_status uir_check(const uir_onnx_source *source, uir_datum *const *inputs, uint32_t input_count,
                     const uir_check_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics);

#endif
