/* Values of a run in files: --save, and --compare-with, which finds the first node whose values are others than a saved
 * run's.
 *
 * A folder holds a file per output, whose name is harmless whatever the model calls the value, and index.json: for each
 * the value's name, its file, the node that makes it and that node's place in the model's order. */
#ifndef UIR_TOOLS_RUN_SAVED_H
#define UIR_TOOLS_RUN_SAVED_H

#include "data.h"

/* A folder that is there already is fine; `option` is named in what is complained of. */
uir_status saved_make_folder(const char *option, const char *path);
/* Where data set `at` of `count` goes below `base`: there itself when it is the only one, else a folder of its own, named
 * after its folder, or numbered where names would not do. */
uir_status saved_folder(const char *option, const char *base, char *const *folders, size_t count, size_t at,
                        char *buffer, size_t capacity);

/* All outputs of the last run, and the index. `npy`: tensors as NAME.npy where the name is harmless. */
uir_status saved_write(uir_context *context, uir_model *model, uir_session *session, bool npy, const char *folder);

typedef struct saved_comparison {
    bool done;
    char folder[4096];
    size_t compared, differing, missing; /* values; missing: not in the folder */
    uir_tolerance tolerance;
    /* The first that differs, in the model's order. */
    size_t output;
    uir_comparison first;
    uir_comparison widest; /* of the values that agree, the one with the greatest difference */
} saved_comparison;
/* Each output that the folder has under the same name. OK also when some differ; BAD_FILE with a complaint when the
 * folder is not one that --save made, or has none of the outputs. */
uir_status saved_compare(uir_context *context, uir_model *model, uir_session *session, const uir_tolerance *tolerance,
                         const char *folder, saved_comparison *out_comparison);
/* What came of it: agreement on standard output unless quiet, the first node that differs as a complaint. */
void saved_report(const uir_model *model, const saved_comparison *comparison, bool quiet);
struct cJSON;
void saved_add_json(struct cJSON *root, const uir_model *model, const saved_comparison *comparison);

#endif
