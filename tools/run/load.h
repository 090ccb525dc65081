/* The model or package of the command line, loaded as the options ask; the stages of its compile, compared. */
#ifndef UIR_TOOLS_RUN_LOAD_H
#define UIR_TOOLS_RUN_LOAD_H

#include "data.h"

/* Whether the file begins as a package does, whatever its name. */
bool load_is_package(const char *path);
/* Sets the outputs of --keep: "all", or names, in a list that the options own. */
uir_status load_take_keep(const run_options *options, uir_model_options *model_options);
/* Loads the model or opens the package; UNSUPPORTED with a message for options that a package cannot have. */
uir_status load_model(uir_context *context, const run_options *options, bool package, uir_model_options *model_options,
                      uir_model **out_model);
/* Loads the model in f32, if --accuracy compares results of a lower precision with it; else leaves *out_exact. */
uir_status load_exact(uir_context *context, const run_options *options, const uir_model *model,
                      const uir_model_options *model_options, uir_model **out_exact);
/* --check: compares each stage of the compile with the one before, on the inputs of the case. */
uir_status load_check_case(uir_context *context, const run_options *options, const run_case *c);
/* Releases the names of overridden inputs, after the model. */
void load_forget_overridden(void);

#endif
