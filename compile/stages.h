/* Declares the functions named in stages.def, and their shared parts. */
#ifndef UIR_COMPILE_STAGES_H
#define UIR_COMPILE_STAGES_H

#include "compile/compile.h"

/* The types of the columns of uir_stage_row, with their parameters. */
typedef uir_status uir_stage_run(uir_compile *compile, uir_stage stage, const uir_compile_call *call);
typedef uir_status uir_stage_print(const uir_compile *compile, uir_stage stage, const uir_print_options *options,
                                   uir_text *text, uir_diagnostics *diagnostics);
typedef uir_status uir_stage_read(uir_compile *compile, uir_stage stage, const uir_compile_text *text,
                                  uir_diagnostics *diagnostics);
typedef uir_status uir_stage_key(const uir_compile *compile, uir_text *text);

/* primitives.c; run_pass runs the pass `stage` */
uir_stage_run uir_compile_load, uir_compile_decompose, uir_compile_run_pass;
/* lower.c */
uir_stage_run uir_compile_choose_precision, uir_compile_legalise, uir_compile_lay_out, uir_compile_choose_winograd,
    uir_compile_fuse, uir_compile_build_loops, uir_compile_schedule, uir_compile_make_igraphs, uir_compile_form_runs;
/* package.c */
uir_stage_run uir_compile_write_package, uir_compile_build_native;
/* text.c */
uir_stage_print uir_compile_print_onnx, uir_compile_print_primitives, uir_compile_print_kernels,
    uir_compile_print_sources;
uir_stage_read uir_compile_read_onnx, uir_compile_read_primitives, uir_compile_read_kernels;
/* keys.c */
uir_stage_key uir_key_of_package, uir_key_of_native;

/* Finds the device and starts a lowering without kernels; called by the first stage after CLEANED. */
uir_status uir_compile_begin_lowering(uir_compile *compile, uir_diagnostics *diagnostics);
/* Lists all iGraphs; the end of RUNS. */
uir_status uir_compile_list_igraphs(uir_compile *compile);

#endif
