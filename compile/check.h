/* The compile checked against the interpreters, stage by stage, on given inputs: `uir-run --check`.
 *
 * In: a model and inputs. Out: the first stage, kernel and node whose results differ from the stage before. Primitives
 * as decomposed are the reference. The cleaned graph is held to them by tolerance, so is the graph with factors that
 * are halves to the cleaned one, and the graph with other formulas to that; groups are held to that by bits; then every
 * launch of every kernel is taken by itself, on the reference's own operands: naive loop AST, scheduled loop AST and
 * iGraph by tolerance (their sums go in other orders), the VM and native code to the iGraph's interpreter bit by bit.
 * Launches of more than `limit` operations are too large for the interpreters of loops and iGraphs: there the VM is
 * held to the group's results by tolerance, and native code to the VM by bits. */
#ifndef UIR_COMPILE_CHECK_H
#define UIR_COMPILE_CHECK_H

#include "compile/compile.h"

typedef struct uir_check_report {
    const char *stage;  /* "cleaned", "precision", "winograd", "fusion", "loop", "schedule", "igraph", "vm", "cpu" */
    const char *kernel; /* "" above the kernels */
    const char *node;   /* ONNX node, "" unknown */
    bool agrees;
    uint64_t checked; /* launches or outputs that were compared at this stage so far */
    uint64_t skipped; /* launches that were too large for it */
    const char *text; /* what differs, "" when it agrees */
} uir_check_report;

typedef struct uir_check_options {
    const char *device; /* as for packages; NULL: "cpu" */
    bool exact, strict; /* as in uir_compile_options, and so is this */
    uir_precision precision;
    double f16_tolerance, bf16_tolerance; /* relative, and of the greatest: of the graph with factors of these */
    uint64_t limit;                       /* operations; 0: 4 million; UINT64_MAX: everything */
    double rtol, atol_relative;           /* 0: 1e-3, 1e-4 */
    const volatile bool *cancel;          /* the operation's, for what tells nothing of how far it is */
    void (*report)(void *user, const uir_check_report *report); /* at each difference, and at the end of each stage */
    uir_progress progress;                                      /* may cancel */
    void *user;
} uir_check_options;

/* DIFFERENT when a stage differs: the report said which. CANCELLED as soon as that is asked for: what was broken off is
 * no difference, and is not reported. */
uir_status uir_check(const uir_onnx_source *source, uir_datum *const *inputs, uint32_t input_count,
                     const uir_check_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics);

#endif
