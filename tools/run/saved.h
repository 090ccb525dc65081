/* Values of a run in files: --save, and --compare-with, which finds the first node whose values differ from a saved
 * run's.
 *
 * A folder holds a file per output, with a safe name whatever the value's name, and index.json. Its entries are the
 * value's name, its file, its node, and the node's position in the model. */
#ifndef UIR_TOOLS_RUN_SAVED_H
#define UIR_TOOLS_RUN_SAVED_H

#include "data.h"

/* An existing folder is fine; `option` is named in messages. */
uir_status saved_make_folder(const char *option, const char *path);
/* The folder below `base` of data set `at` of `count`: `base` itself for a single one, else a subfolder, named after
 * the data set's folder, or numbered if names are not unique. */
uir_status saved_folder(const char *option, const char *base, char *const *folders, size_t count, size_t at,
                        char *buffer, size_t capacity);

/* Writes all outputs of the last run, and the index. `npy`: tensors as NAME.npy if the name is safe. */
uir_status saved_write(uir_context *context, uir_model *model, uir_session *session, bool npy, const char *folder);

typedef struct saved_comparison {
    bool done;
    char folder[4096];
    size_t compared, differing, missing; /* values; missing: not in the folder */
    uir_tolerance tolerance;
    /* The first difference, in the model's order. */
    size_t output;
    uir_comparison first;
    uir_comparison widest; /* of the values that agree, that with the greatest difference */
} saved_comparison;
/* Compares each output that the folder has under the same name. OK also if some differ; BAD_FILE with a message if
 * --save did not write the folder, or if it has none of the outputs. */
uir_status saved_compare(uir_context *context, uir_model *model, uir_session *session, const uir_tolerance *tolerance,
                         const char *folder, saved_comparison *out_comparison);
/* Prints agreement on standard output unless quiet; complains about the first node that differs. */
void saved_report(const uir_model *model, const saved_comparison *comparison, bool quiet);
struct cJSON;
void saved_add_json(struct cJSON *root, const uir_model *model, const saved_comparison *comparison);

#endif
