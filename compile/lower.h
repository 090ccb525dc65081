/* The middle of the compile: fused groups to kernels, stage by stage, each stage with a text that can be read back.
 *
 * In: a module of primitives. Out: the module with its groups, and for each different kernel the naive loop AST, its
 * scheduled variants and their iGraphs. Groups that are computed alike share a kernel. A group that no kernel computes
 * keeps its body and has no attribute `kernel`; why is among the refusals.
 *
 * A stage's text is the module's, then what the stage made: `func @k3_softmax {...}` or `igraph @k3_softmax on cpu
 * {...}`, the variants of a kernel one after the other under one name. */
#ifndef UIR_COMPILE_LOWER_H
#define UIR_COMPILE_LOWER_H

#include "lower/lower.h"

typedef enum uir_middle_stage {
    UIR_MIDDLE_FUSION,   /* groups */
    UIR_MIDDLE_LOOP,     /* naive loop ASTs */
    UIR_MIDDLE_SCHEDULE, /* scheduled ones */
    UIR_MIDDLE_IGRAPH,   /* verified iGraphs */
    UIR_MIDDLE_RUNS,     /* the same with runs formed */
    UIR_MIDDLE_COUNT
} uir_middle_stage;
/* "fusion", "loop" ...; NULL past the end. */
const char *uir_middle_stage_name(uint32_t stage);
bool uir_middle_stage_find(const char *name, uir_middle_stage *out_stage);

/* Does the status say that something is not for the device: UNSUPPORTED, or more than a LIMIT allows? Anything else is in
 * the way of any device (no memory, cancelled) or a fault of the compiler (INTERNAL), which no fall-back hides. */
bool uir_middle_is_refusal(uir_status status);

typedef struct uir_middle_kernel {
    const char *name;
    uir_lowered lowered; /* as far as the stage went */
} uir_middle_kernel;

typedef struct uir_middle_refusal {
    uir_node_id group;
    const char *why;
} uir_middle_refusal;

typedef struct uir_middle {
    uir_allocator allocator;
    uir_arena arena;
    uir_module *module; /* borrowed */
    const uir_device *device;
    uir_middle_stage stage; /* the last that was done */
    uir_vector(uir_middle_kernel) kernels;
    uir_vector(uir_middle_refusal) refusals;
} uir_middle;

typedef struct uir_middle_options {
    const uir_device *device;
    uir_middle_stage last;
    bool each_alone;       /* every primitive a group of its own */
    bool within_nodes;     /* no fusion across nodes of the model */
    uir_progress progress; /* may cancel */
} uir_middle_options;

/* From a module of primitives, which is changed in place. `out_middle` is to be deinitialised, also after a failure. */
uir_status uir_middle_run(uir_module *module, const uir_middle_options *options, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics, uir_middle *out_middle);
void uir_middle_deinit(uir_middle *middle);

/* Appends the text of the stage that it is at. */
uir_status uir_middle_print(const uir_middle *middle, const uir_print_options *options, uir_text *text);
/* Of the kernel of that name alone, without the module; NOT_FOUND when there is none. */
uir_status uir_middle_print_kernel(const uir_middle *middle, const char *name, uir_text *text);
/* Reads a stage's text and goes on to options->last. `*out_module` is owned by the caller; `constants` as for
 * uir_module_parse. */
uir_status uir_middle_continue(const char *text, size_t length, const char *file, uir_middle_stage from,
                               const uir_module *constants, const uir_middle_options *options,
                               const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_module **out_module,
                               uir_middle *out_middle);

#endif
