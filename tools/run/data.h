/* Inputs and expected outputs of uir-run: test folders, single files, pictures, seeded random values.
 *
 * In: the options and the model's ports. Out: a value for every input and, where a test folder holds them, expected
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
    char **made; /* of an input that is a picture: what was made of it, printable; else NULL */
    uir_value **expected; /* NULL where there is none */
    bool has_expected;
    uir_tolerance tolerance; /* negative: the dtype's own */
    char tolerance_source[64]; /* who stated it: "command line", a file's name, "the package"; "default": nobody */
} run_case;

/* `folder` may be NULL: what --input does not give is made up; else only with --random. Messages go to the context, usage errors to standard error. */
uir_status case_load(uir_context *context, uir_model *model, const run_options *options, const char *folder,
                     run_case *out_case);
void case_free(run_case *c);
/* What a run with the dims of --dim would take. */
uir_status case_cost(uir_context *context, uir_model *model, uir_session *session, const run_options *options,
                     uir_cost *out_cost);
/* The inputs with a default that --input names, or of which the first folder of --data has a file, since it has more than
 * the model has inputs: then the files are numbered by all inputs that the model's file lists. Names are the model's, at
 * most `capacity`. */
size_t case_find_overrides(const uir_model *model, const run_options *options, const char **out_names, size_t capacity);
/* The folders that --data names: each itself when it holds input_N or output_N as .pb or .npy, else its test_data_set_*
 * in order; NOT_FOUND when it holds neither, unless the model has no inputs and no other values are there.
 * *out_folders and its strings are the caller's to free. */
uir_status case_folders(const run_options *options, const uir_model *model, char ***out_folders, size_t *out_count);

#endif
