/* Compiles a model stage by stage: from a file, or from a text of some stage, up to any stage.
 *
 * In: a model file, a module or a text; the device. Out: the results of the stages of stages.def so far. Only this
 * folder sees every stage. */
#ifndef UIR_COMPILE_COMPILE_H
#define UIR_COMPILE_COMPILE_H

#include "compile/lower.h"
#include "compile/records.h"
#include "compile/targets.h"
#include "frontend/frontend.h"
#include "package/package.h"
#include "passes/layouts.h"
#include "passes/precision.h"

/* The clean-up passes are between PRIMITIVES and PRECISION; CLEANED is the last of them. */
typedef enum uir_stage {
#define UIR_STAGE(symbol, ...)              UIR_STAGE_##symbol,
#define UIR_STAGE_PASS_ON(line)             UIR_STAGE_PASS_##line,
#define UIR_STAGE_PASS_AT(line)             UIR_STAGE_PASS_ON(line)
#define UIR_STAGE_PASS(name, function, ...) UIR_STAGE_PASS_AT(__LINE__)
#include "compile/stages.def"
#undef UIR_STAGE_PASS
#undef UIR_STAGE_PASS_AT
#undef UIR_STAGE_PASS_ON
#undef UIR_STAGE
    UIR_STAGE_COUNT,
    UIR_STAGE_CLEANED = UIR_STAGE_PRECISION - 1
} uir_stage;

/* ---- options and arguments ---- */
typedef struct uir_compile_options {
    const char *device;             /* "cpu", "cpu:avx2", "vm", "vm:avx2"; NULL: "cpu" */
    const uir_machine *description; /* device that kernels are made for; NULL: that of `device` */
    const char *emitter;            /* emitter whose sources EMIT prints; NULL: the device's own */
    bool unfused;                   /* each primitive is a group */
    bool within_nodes;              /* no fusion across nodes of the model */
    bool exact;                     /* no other formula for any operator: WINOGRAD changes nothing */
    bool strict;                    /* contradictory declared shapes and faults of the compiler are errors */
    uir_precision precision;        /* operand type of products, for PRECISION */
    uint32_t layouts_left_out;      /* one bit per rule of passes/layouts.h to skip, for its tests */
    bool isolates_faults; /* a fault in LOOP to RUNS only costs its group its kernel; else it ends the compile */
    bool check_text;      /* print, parse and compare after each pass */
    /* Called with the text of the stage `dump` ("all": of each), up to CLEANED. */
    const char *dump;
    void (*dump_text)(void *user, const char *stage, const char *text, size_t length);
    void *dump_user;
} uir_compile_options;

/* Argument of PACKAGE. */
typedef struct uir_compile_native {
    const char *isa;                 /* a variant of the device */
    const uir_target_object *object; /* NULL: the code is attached later; the package is prepared for it */
} uir_compile_native;
typedef struct uir_compile_contents {
    const uir_compile_native *natives; /* one per variant of the device */
    uint32_t native_count;
    bool custom;      /* nodes without a kernel are left to the opener of the package; else each is an error */
    bool no_fallback; /* nodes that the device cannot compute are errors; else the host computes them */
    const char *const *metadata;  /* key, value, key, value ... */
    uint32_t metadata_count;      /* pairs */
    const uir_package_sink *sink; /* NULL: writes none, reports the nodes that need the opener */
} uir_compile_contents;

/* Argument of NATIVE, which may run on another thread, and of PACKAGE for a device whose driver compiles a program:
 * `object` is then ignored. */
typedef struct uir_compile_build {
    const uir_target_build_options *options;
    const char *isa; /* a variant of the device, perhaps not the one that kernels were scheduled for; NULL: that one */
    const char *folder;        /* sources that options->source_folder wrote, perhaps edited since; NULL: none */
    uir_target_object *object; /* the result; the caller's to deinitialise */
} uir_compile_build;

/* A schedule for one kernel, instead of its tactic's. */
typedef struct uir_compile_schedule_text {
    const char *kernel; /* an unknown name changes nothing */
    uir_schedule_text text;
} uir_compile_schedule_text;

/* One call. */
typedef struct uir_compile_call {
    uir_diagnostics *diagnostics;
    uir_progress progress; /* of all stages of the call; may cancel */
    const uir_compile_contents *contents;
    const uir_compile_build *build;
    const uir_record_source *records;          /* tuning records for LOOP to IGRAPH; NULL: the tactics choose */
    const uir_compile_schedule_text *schedule; /* for SCHEDULE; must outlive the kernels; NULL: none */
} uir_compile_call;

/* The text of a stage. */
typedef struct uir_compile_text {
    const char *data;
    size_t length;
    const char *file;            /* its name, for messages */
    const uir_module *constants; /* as for uir_module_parse */
} uir_compile_text;

/* ---- a compile ---- */
typedef struct uir_compile {
    uir_allocator allocator;
    uir_arena *arena; /* of the info's texts; borrowed */
    uir_compile_options options;
    uir_onnx_source source; /* its pointers are borrowed until PRIMITIVES is done */
    uir_stage next;         /* first stage not done yet */
    bool is_text;           /* begun from a text, not a file */
    uir_module *onnx;       /* made by the frontend, with types added by PRIMITIVES */
    uir_module *primitives; /* owns what both modules borrow (mapped files); has groups from FUSION on */
    uir_module *kept;       /* a clone of the primitives for uir_compile_restore; NULL: none */
    uir_onnx_info info;
    double load_ms, compile_ms;     /* ONNX; PRIMITIVES to CLEANED */
    uir_layout_counts layouts;      /* from FUSION on */
    uir_precision_counts precision; /* from PRECISION on */
    const uir_device_row *row;      /* set by the first stage after CLEANED, as are the next three */
    const uir_target *target;
    uir_target_machine machine;
    const uir_target *host_target; /* of the host beside a device with memory of its own; NULL: none */
    uir_target_machine host;
    uir_lowering lowering;
    const uir_igraph **igraphs; /* after RUNS: all variants of all kernels */
    uint32_t igraph_count;
    uir_target_object names; /* their symbols in native code */
    /* The program of the device's kernels, which PACKAGE makes, if the driver compiles it; with its symbols in the
     * order of the device's iGraphs. */
    uir_target_object program;
} uir_compile;

/* Starts from a model's file. `arena` holds the texts of the info. `options` may be NULL. */
void uir_compile_init(uir_compile *compile, const uir_onnx_source *source, const uir_compile_options *options,
                      const uir_allocator *allocator, uir_arena *arena);
/* Starts from the text of a stage instead; INVALID_ARGUMENT for a stage whose texts cannot be read. */
uir_status uir_compile_read(uir_compile *compile, uir_stage stage, const uir_compile_text *text,
                            uir_diagnostics *diagnostics);
void uir_compile_deinit(uir_compile *compile);
/* Drops the ONNX module and the source; the primitives own what both modules borrow. */
void uir_compile_drop_onnx(uir_compile *compile);
/* Keeps a clone of the primitives as they are after CLEANED. */
uir_status uir_compile_keep(uir_compile *compile);
/* Goes back to it: all that later stages made is gone, and so are the options. */
void uir_compile_restore(uir_compile *compile);
void uir_compile_drop_kept(uir_compile *compile);

/* Runs the stages not done yet, up to `last`. PACKAGE and NATIVE need RUNS and may be repeated; EMIT runs nothing.
 * After a failure the info has what was read of the file. UNSUPPORTED or LIMIT (uir_lowering_is_refusal) from FUSION
 * on: the device cannot run the model. */
uir_status uir_compile_run(uir_compile *compile, uir_stage last, const uir_compile_call *call);
/* Appends the text of a stage: the last one done, ONNX, or, after RUNS, EMIT. */
uir_status uir_compile_print(const uir_compile *compile, uir_stage stage, const uir_print_options *options,
                             uir_text *text, uir_diagnostics *diagnostics);
/* The same for one kernel, without the module; NOT_FOUND for an unknown name. */
uir_status uir_compile_print_kernel(const uir_compile *compile, uir_stage stage, const char *name, uir_text *text,
                                    uir_diagnostics *diagnostics);
/* After RUNS: builds the kernels of a folder that source_folder has written, as native code or a program. `*out_object`
 * is the caller's to deinitialise; its symbols are those of `*out_igraphs`, in the arena. */
uir_status uir_compile_build_folder(const uir_compile *compile, const char *folder, const volatile bool *cancel,
                                    uir_arena *arena, uir_diagnostics *diagnostics, uir_target_object *out_object,
                                    const uir_igraph ***out_igraphs, uint32_t *out_count);
/* The instruction set of native code for the device; NULL: none. */
const char *uir_compile_get_isa(const uir_compile *compile);
/* Whether PACKAGE makes a program of the kernels, which the driver of the device compiles. */
bool uir_compile_has_program(const uir_compile *compile);

/* ---- the table ---- */
typedef enum uir_stage_held { UIR_UNHELD, UIR_BY_TOLERANCE, UIR_BY_BITS, UIR_BY_BITS_AT_ANY_SIZE } uir_stage_held;

struct uir_launch;
typedef struct uir_stage_row {
    const char *name, *purpose, *doing;
    double share;
    uir_pass pass; /* of the clean-up; empty: none */
    uir_status (*run)(uir_compile *compile, uir_stage stage, const uir_compile_call *call);
    uir_status (*each)(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics);
    uir_status (*print)(const uir_compile *compile, uir_stage stage, const uir_print_options *options, uir_text *text,
                        uir_diagnostics *diagnostics);
    uir_status (*read)(uir_compile *compile, uir_stage stage, const uir_compile_text *text,
                       uir_diagnostics *diagnostics);
    const char *checked;
    uir_stage_held held;
    uir_status (*launch)(const struct uir_launch *launch, void *const *outputs, uir_diagnostics *diagnostics);
    const char *runner;
    uir_status (*key)(const uir_compile *compile, uir_text *text);
} uir_stage_row;
const uir_stage_row *uir_stage_get(uir_stage stage);
bool uir_stage_find(const char *name, uir_stage *out_stage);

#endif
