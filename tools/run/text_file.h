/* Reads a small text file. */
#ifndef UIR_TOOLS_RUN_TEXT_FILE_H
#define UIR_TOOLS_RUN_TEXT_FILE_H

#include "uir/uir.h"

enum { TEXT_FILE_MOST = 64 << 20 };

/* `*out_text` ends with a zero; the caller frees it. With a message that names the option: IO_FAILED if the file cannot
 * be read, BAD_FILE if it is larger than TEXT_FILE_MOST or holds a zero. */
uir_status text_file_read(const char *option, const char *path, char **out_text);

#endif
