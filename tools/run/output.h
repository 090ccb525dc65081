/* Standard output, written whole or said not to be. */
#ifndef UIR_TOOLS_RUN_OUTPUT_H
#define UIR_TOOLS_RUN_OUTPUT_H

#include "uir/uir.h"

/* False when something written is lost, and whoever reads did not just go away. */
bool output_flush(void);
/* The end of a program: what it exits with, which a full disk decides where nothing worse did. `caught_signal`: 0 none.
 */
int output_end(uir_status status, int caught_signal);

#endif
