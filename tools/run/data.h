/* Inputs and expected outputs of uir-run: test folders, single files, pictures, seeded random values.
 *
 * In: the options and the model's ports. Out: a value for every input and, if a test folder has them, expected
 * outputs. */
#ifndef UIR_TOOLS_RUN_DATA_H
#define UIR_TOOLS_RUN_DATA_H

#include "options.h"

typedef enum input_source { SOURCE_NONE, SOURCE_DATA, SOURCE_FILE, SOURCE_RANDOM } input_source;

typedef struct run_case {
    const char *folder; /* of --data, or NULL */
    size_t input_count, output_count;
    uir_value **inputs;
    input_source *sources;
    char **made;          /* of a picture input: its description, printable; else NULL */
    uir_value **expected; /* NULL if missing */
    bool has_expected;
    uir_tolerance tolerance;   /* negative: that of the dtype */
    char tolerance_source[64]; /* source: "command line", a file's name, "the package", "default" */
} run_case;

/* Loads a case. `folder` NULL: inputs without --input are random; else they are only with --random. Messages are added
 * to the context; usage errors are printed to standard error. */
uir_status case_load(uir_context *context, uir_model *model, const run_options *options, const char *folder,
                     run_case *out_case);
void case_free(run_case *c);
/* The cost of a run with the dims of --dim. */
uir_status case_cost(uir_context *context, uir_model *model, uir_session *session, const run_options *options,
                     uir_cost *out_cost);
/* Inputs with a default that are overridden: those that --input names, and those with a file in the first folder of
 * --data, if it has more files than the model has inputs. Its files are then numbered by all inputs in the model's
 * file. The names belong to the model, at most `capacity`. */
size_t case_find_overrides(const uir_model *model, const run_options *options, const char **out_names, size_t capacity);
/* The folders of --data: each itself if it has input_N or output_N as .pb or .npy, else its test_data_set_* in order.
 * NOT_FOUND if it has neither, unless the model has no inputs and no other values are given. The caller frees
 * *out_folders and its strings. */
uir_status case_folders(const run_options *options, const uir_model *model, char ***out_folders, size_t *out_count);

#endif
