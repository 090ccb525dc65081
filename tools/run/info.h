/* --info: reports the contents of a model's file or a package. In: a model that can be queried. Out: text, or one JSON
 * object. */
#ifndef UIR_TOOLS_RUN_INFO_H
#define UIR_TOOLS_RUN_INFO_H

#include "uir/uir.h"

/* The problems of an unsupported model are the errors among the context's messages; those of others are cleared. False
 * out of memory. */
bool info_report(uir_context *context, uir_model *model, const char *path, bool json);

#endif
