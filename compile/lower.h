/* The middle of a compile: a module's groups to kernels.
 *
 * In: a module of primitives. Out: the module with its groups, and for each different kernel the naive loop AST, its
 * scheduled variants and their iGraphs. Groups that are computed alike share a kernel. A group that no kernel computes
 * keeps its body and has no attribute `kernel`; why is among the refusals. A fault of the compiler ends the compile, or
 * costs its group alone, as a refusal does (isolates_faults); each is counted. */
#ifndef UIR_COMPILE_LOWER_H
#define UIR_COMPILE_LOWER_H

#include "cache/digest.h"
#include "lower/lower.h"

/* Does the status say that something is not for the device: UNSUPPORTED, or more than a LIMIT allows? */
bool uir_lowering_is_refusal(uir_status status);
/* Is it a fault of the compiler, which made what it does not accept itself? No refusal, and nothing that would be in the
 * way of any device (no memory, cancelled). */
bool uir_lowering_is_fault(uir_status status);

typedef struct uir_lowering_kernel {
    const char *name;
    uir_digest identity; /* of its records of parameters; where the call of LOOP has a source of them */
    uir_lowered lowered; /* as far as the stages went */
} uir_lowering_kernel;

typedef struct uir_lowering_refusal {
    uir_node_id group;
    const char *why;
    bool is_whole; /* cannot become smaller groups: its operands' slack is counted already */
} uir_lowering_refusal;

typedef struct uir_lowering {
    uir_allocator allocator;
    uir_arena arena;
    uir_module *module; /* borrowed */
    const uir_device *device;
    uir_vector(uir_lowering_kernel) kernels;
    uir_vector(uir_lowering_refusal) refusals;
    bool isolates_faults;
    uir_vector(const char *) faults; /* "kernel NAME, STAGE: WHY", the first that was met first */
} uir_lowering;

void uir_lowering_init(uir_lowering *lowering, uir_module *module, const uir_device *device,
                       const uir_allocator *allocator);
void uir_lowering_deinit(uir_lowering *lowering); /* also of zeros */
/* The kernel of that name; NULL when there is none. */
uir_lowering_kernel *uir_lowering_find_kernel(const uir_lowering *lowering, const char *name);
/* A kernel that has nothing but its name. */
uir_status uir_lowering_add_kernel(uir_lowering *lowering, const char *name, uir_lowering_kernel **out_kernel);

/* One kernel's part of a stage. */
uir_status uir_kernel_schedule(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);
uir_status uir_kernel_make_igraphs(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);
uir_status uir_kernel_form_runs(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);

#endif
