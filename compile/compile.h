/* The way of a model, stage by stage: from a file, or from a text of some stage, to whichever stage one wants.
 *
 * In: where the model is, or a module or a text; the device. Out: what the stages of stages.def have made so far. The
 * only code that sees every stage: each of the folders below knows its own. */
#ifndef UIR_COMPILE_COMPILE_H
#define UIR_COMPILE_COMPILE_H

#include "backends/cpu/target/build.h"
#include "backends/devices/devices.h"
#include "compile/lower.h"
#include "compile/records.h"
#include "frontend/frontend.h"
#include "package/package.h"
#include "passes/layouts.h"
#include "passes/precision.h"

/* The clean-up passes stand between PRIMITIVES and FUSION; CLEANED is the last of them. */
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

/* ---- what is asked ---- */
typedef struct uir_compile_options {
    const char *device;            /* "cpu", "cpu:avx2", "vm", "vm:avx2"; NULL: "cpu" */
    const uir_device *description; /* of what kernels are made for; NULL: the device's own */
    const char *emitter;           /* whose sources EMIT prints; NULL: the device's own */
    bool unfused;                  /* every primitive a group of its own */
    bool within_nodes;             /* no fusion across nodes of the model */
    bool exact;                    /* no operator is computed by another formula: WINOGRAD leaves all as it is */
    bool strict;                   /* contradictions of declared shapes and faults of the compiler are errors */
    uir_precision precision;       /* of what products multiply, for PRECISION */
    uint32_t layouts_left_out;     /* bit per rule of passes/layouts.h, for tests of it */
    bool isolates_faults;          /* a fault of LOOP to RUNS costs its group alone; else it ends the compile */
    bool check_text;               /* print, parse and compare after each pass */
    /* After the stage called `dump` ("all": each), up to CLEANED, its text is handed over. */
    const char *dump;
    void (*dump_text)(void *user, const char *stage, const char *text, size_t length);
    void *dump_user;
} uir_compile_options;

/* What PACKAGE is given. */
typedef struct uir_compile_native {
    const char *isa;              /* a variant of the CPU */
    const uir_cpu_object *object; /* NULL: its code comes later, what it needs is in the package */
} uir_compile_native;
typedef struct uir_compile_contents {
    const uir_compile_native *natives; /* one per variant of the CPU */
    uint32_t native_count;
    bool custom;                  /* nodes without a kernel are left to the opener; else each of them is an error */
    const char *const *metadata;  /* key, value, key, value ... */
    uint32_t metadata_count;      /* pairs */
    const uir_package_sink *sink; /* NULL: only looks whether there is a package, and says why not */
} uir_compile_contents;

/* What NATIVE is given. May be on another thread than the rest. */
typedef struct uir_compile_build {
    const uir_cpu_build_options *options;
    const char *isa;        /* a variant of the CPU, which may be another than the kernels were cut for; NULL: theirs */
    const char *folder;     /* of sources that options->source_folder has filled, edited or not; NULL: none */
    uir_cpu_object *object; /* the result; the caller's to deinitialise */
} uir_compile_build;

/* A schedule for one kernel, in place of its tactic's. */
typedef struct uir_compile_schedule_text {
    const char *kernel; /* its name; where there is none of it, nothing is changed */
    uir_schedule_text text;
} uir_compile_schedule_text;

/* One call. */
typedef struct uir_compile_call {
    uir_diagnostics *diagnostics;
    uir_progress progress; /* of all stages that the call runs; may cancel */
    const uir_compile_contents *contents;
    const uir_compile_build *build;
    const uir_record_source
        *records; /* of parameters, by which LOOP to IGRAPH make kernels; NULL: the tactics choose */
    const uir_compile_schedule_text *schedule; /* for SCHEDULE; borrowed as long as the kernels; NULL: none */
} uir_compile_call;

/* The text of a stage. */
typedef struct uir_compile_text {
    const char *data;
    size_t length;
    const char *file;            /* its name, for messages */
    const uir_module *constants; /* as for uir_module_parse */
} uir_compile_text;

/* ---- a model on its way ---- */
typedef struct uir_compile {
    uir_allocator allocator;
    uir_arena *arena; /* of the info's texts; borrowed */
    uir_compile_options options;
    uir_onnx_source source; /* what it points to is borrowed until PRIMITIVES is done */
    uir_stage next;         /* the first that is not done */
    bool is_text;           /* begun from one; else from a file */
    uir_module *onnx;       /* as the frontend made it, types filled in by PRIMITIVES */
    uir_module *primitives; /* owns what both borrow (mapped files); from FUSION on with groups */
    uir_onnx_info info;
    double load_ms, compile_ms;     /* ONNX; PRIMITIVES to CLEANED */
    uir_layout_counts layouts;      /* from FUSION on */
    uir_precision_counts precision; /* from LAYOUTS on */
    const uir_device_row *row;      /* from FUSION on, as are these */
    uir_cpu_device cpu;
    uir_lowering lowering;
    const uir_igraph **igraphs; /* after RUNS: all variants of all kernels */
    uint32_t igraph_count;
    uir_cpu_object names; /* their symbols in native code */
} uir_compile;

/* A model's file. `arena` holds the texts of the info. `options` may be NULL. */
void uir_compile_init(uir_compile *compile, const uir_onnx_source *source, const uir_compile_options *options,
                      const uir_allocator *allocator, uir_arena *arena);
/* Puts the text of a stage in the file's place; INVALID_ARGUMENT for a stage whose texts nobody reads. */
uir_status uir_compile_read(uir_compile *compile, uir_stage stage, const uir_compile_text *text,
                            uir_diagnostics *diagnostics);
void uir_compile_deinit(uir_compile *compile);
/* Of a file: the source is not needed any more; what both modules borrow belongs to the primitives. */
void uir_compile_drop_onnx(uir_compile *compile);

/* Runs what is not done yet up to `last`. PACKAGE and NATIVE each follow RUNS, as often as they are asked for, and EMIT
 * runs nothing. After a failure the info has what was read of the file until then; UNSUPPORTED or LIMIT
 * (uir_lowering_is_refusal) from FUSION on: no kernels for the device can be made of the model. */
uir_status uir_compile_run(uir_compile *compile, uir_stage last, const uir_compile_call *call);
/* Appends the text of a stage: of the last that is done, of ONNX, or, after RUNS, EMIT's. */
uir_status uir_compile_print(const uir_compile *compile, uir_stage stage, const uir_print_options *options,
                             uir_text *text, uir_diagnostics *diagnostics);
/* Of one kernel alone, without the module; NOT_FOUND when there is none of that name. */
uir_status uir_compile_print_kernel(const uir_compile *compile, uir_stage stage, const char *name, uir_text *text,
                                    uir_diagnostics *diagnostics);
/* The instruction set of its native code; NULL: it has none. */
const char *uir_compile_get_isa(const uir_compile *compile);

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
    uir_status (*key)(const uir_compile *compile, uir_text *text);
} uir_stage_row;
const uir_stage_row *uir_stage_get(uir_stage stage);
bool uir_stage_find(const char *name, uir_stage *out_stage);

#endif
