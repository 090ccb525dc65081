/* A small file of text, whole. */
#ifndef UIR_TOOLS_RUN_TEXT_FILE_H
#define UIR_TOOLS_RUN_TEXT_FILE_H

#include "uir/uir.h"

enum { TEXT_FILE_MOST = 64 << 20 };

/* `*out_text` ends with a zero and is the caller's to free. IO_FAILED or BAD_FILE, said to standard error with the
 * option's name, for a file that cannot be read, is larger than that or holds a zero. */
uir_status text_file_read(const char *option, const char *path, char **out_text);

#endif
