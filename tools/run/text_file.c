#include "text_file.h"
#include "printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uir_status text_file_read(const char *option, const char *path, char **out_text) {
    size_t size = 0, room = 1 << 16, got;
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(room) : NULL;
    while (text && (got = fread(text + size, 1, room - size, file)) > 0) {
        size += got;
        if (size < room) continue;
        char *grown = room < TEXT_FILE_MOST ? realloc(text, 2 * room) : NULL;
        if (!grown) break;
        text = grown;
        room *= 2;
    }
    bool good = text && !ferror(file) && size < room;
    if (!good)
        complain(NULL, "%s '%s': cannot read it: %s", option, path,
                 text && size == room ? "the file is too large" : strerror(errno));
    else if (memchr(text, 0, size))
        complain(NULL, "%s '%s': the file is not a text", option, path);
    bool is_text = good && !memchr(text, 0, size);
    if (file) fclose(file);
    if (is_text) {
        text[size] = 0;
        *out_text = text;
        return UIR_STATUS_OK;
    }
    free(text);
    return good ? UIR_STATUS_BAD_FILE : UIR_STATUS_IO_FAILED;
}
