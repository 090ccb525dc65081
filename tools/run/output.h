/* Standard output, written whole or said not to be. */
#ifndef UIR_TOOLS_RUN_OUTPUT_H
#define UIR_TOOLS_RUN_OUTPUT_H

#include "uir/uir.h"

/* False when something written is lost, and whoever reads did not just go away. */
bool output_flush(void);
/* Whether a file or folder of that path could be made, asked before the work whose result is to lie there: IO_FAILED,
 * complained of, where the folder that it would lie in is not there or not to be written to. `path` NULL: fine. */
uir_status output_check_place(const char *option, const char *path);
/* The end of a program: what it exits with, which a full disk decides where nothing worse did. `caught_signal`: 0 none.
 */
int output_end(uir_status status, int caught_signal);

#endif
