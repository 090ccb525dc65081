/* --info: what a model's file or a package holds. In: a model that may be asked about. Out: text, or one JSON object. */
#ifndef UIR_TOOLS_RUN_INFO_H
#define UIR_TOOLS_RUN_INFO_H

#include "uir/uir.h"

/* The problems of a model that is not supported are the errors among the context's messages; those of others are cleared.
 * False when memory runs
 * out. */
bool info_report(uir_context *context, uir_model *model, const char *path, bool json);

#endif
