/* Lowers a module's groups to kernels: the middle of a compile.
 *
 * In: a module of primitives. Out: the module with its groups, and for each distinct kernel the naive loop AST, its
 * scheduled variants and their iGraphs. Groups with equal loop ASTs share a kernel. A group without a kernel keeps its
 * body and lacks the attribute `kernel`; a refusal gives the reason. A fault of the compiler ends the compile. With
 * isolates_faults, the fault's group remains without a kernel instead, as after a refusal. Each such fault is listed in
 * `faults`.
 *
 * A device beside a host gives the host the groups that it cannot compute: those of a dtype that it lacks, and refused
 * ones that cannot be split. They get kernels for the host's machine. */
#ifndef UIR_COMPILE_LOWER_H
#define UIR_COMPILE_LOWER_H

#include "cache/digest.h"
#include "lower/lower.h"

/* Whether a status is a refusal: UNSUPPORTED, or LIMIT. */
bool uir_lowering_is_refusal(uir_status status);
/* Whether a status is a fault of the compiler, which rejected its own output: neither a refusal nor OUT_OF_MEMORY nor
 * CANCELLED. */
bool uir_lowering_is_fault(uir_status status);

typedef struct uir_lowering_kernel {
    const char *name;
    uir_digest identity; /* key of its tuning records; set if the call of stage LOOP has a source of records */
    uir_lowered lowered; /* as far as the stages went */
} uir_lowering_kernel;

typedef struct uir_lowering_refusal {
    uir_node_id group;
    const char *why;
    bool is_whole;   /* cannot be split: slack of its operands is counted already */
    bool is_of_host; /* refused for the host's machine too */
} uir_lowering_refusal;

typedef struct uir_lowering {
    uir_allocator allocator;
    uir_arena arena;
    uir_module *module; /* borrowed */
    const uir_machine *machine;
    const uir_machine *host; /* of the host beside a device; NULL: none */
    uir_vector(uir_lowering_kernel) kernels;
    uir_vector(uir_lowering_refusal) refusals;
    uir_vector(uir_lowering_refusal) placed; /* groups that the device refused, which have kernels of the host */
    bool isolates_faults;
    uir_vector(const char *) faults; /* "kernel NAME, STAGE: WHY", in the order found */
} uir_lowering;

void uir_lowering_init(uir_lowering *lowering, uir_module *module, const uir_machine *machine,
                       const uir_allocator *allocator);
void uir_lowering_deinit(uir_lowering *lowering); /* also if zeroed */
/* The kernel of a node of the module; NULL: none computes it. */
uir_lowering_kernel *uir_lowering_get_kernel(const uir_lowering *lowering, const uir_node_info *node);
/* Whether the kernel is the host's, beside those of a device. */
static inline bool uir_lowering_is_host_kernel(const uir_lowering *lowering, const uir_lowering_kernel *kernel) {
    return lowering->host && kernel->lowered.machine == lowering->host;
}
/* NULL for an unknown name. */
uir_lowering_kernel *uir_lowering_find_kernel(const uir_lowering *lowering, const char *name);
/* Adds a kernel that has only a name. */
uir_status uir_lowering_add_kernel(uir_lowering *lowering, const char *name, uir_lowering_kernel **out_kernel);

/* One kernel's part of a stage. */
uir_status uir_kernel_schedule(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);
uir_status uir_kernel_make_igraphs(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);
uir_status uir_kernel_form_runs(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);

#endif
