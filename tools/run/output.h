/* Standard output, with errors of writing reported. */
#ifndef UIR_TOOLS_RUN_OUTPUT_H
#define UIR_TOOLS_RUN_OUTPUT_H

#include "uir/uir.h"

/* False if output was lost, unless the reader closed the pipe. */
bool output_flush(void);
/* Whether the folder of a future file or folder exists and is writable; IO_FAILED with a message if not. To be called
 * before long work. `path` NULL: OK. */
uir_status output_check_place(const char *option, const char *path);
/* Exit code of a program; IO_FAILED if output was lost and nothing else failed. `caught_signal`: 0: none. */
int output_end(uir_status status, int caught_signal);

#endif
