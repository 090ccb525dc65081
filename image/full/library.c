#include "image/full/library.h"

#include <dlfcn.h>
#include <string.h>

/* RTLD_NODELETE keeps the library, and so its functions, when its handle is closed; opened again it is a look-up. */
bool uir_image_open_library(const char *file, const uir_image_symbol *symbols, size_t count) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    size_t found = 0;
    for (; found < count; found++) {
        void *address = dlsym(library, symbols[found].name);
        if (!address) break;
        memcpy(symbols[found].out_function, &address, sizeof address); /* C has no other way between these pointers */
    }
    dlclose(library);
    return found == count;
}
