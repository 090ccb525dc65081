/* Loads a decoder library at the first picture that needs it, for the rest of the process. Other processes neither need
 * the library nor spend time on its dependencies.
 *
 * In: UIR_IMAGE_LIBRARY(library, file, package, format, FUNCTIONS). `file` is the name, for the dynamic linker, of the
 * version that matches the headers; `package` is Debian's. FUNCTIONS(FUNCTION) is FUNCTION(name) for each function, by
 * its name in the header. Out: the type `library`, whose members are the functions, and open_library(source, &library):
 * UNSUPPORTED, with a problem, if the file cannot be opened or lacks one of them. */
#ifndef UIR_IMAGE_FULL_LIBRARY_H
#define UIR_IMAGE_FULL_LIBRARY_H

#include "image/internal.h"

typedef struct uir_image_symbol {
    const char *name;
    void *out_function; /* a pointer to a pointer to the function */
} uir_image_symbol;

bool uir_image_open_library(const char *file, const uir_image_symbol *symbols, size_t count);

#define UIR_IMAGE_MEMBER(function) __typeof__(&(function)) function;
#define UIR_IMAGE_SYMBOL(function) {#function, (void *)&functions->function},
#define UIR_IMAGE_LIBRARY(library, file, package, format, FUNCTIONS)                                                   \
    typedef struct library {                                                                                           \
        FUNCTIONS(UIR_IMAGE_MEMBER)                                                                                    \
    } library;                                                                                                         \
    static uir_status open_##library(uir_image_source *source, library *functions) {                                   \
        const uir_image_symbol symbols[] = {FUNCTIONS(UIR_IMAGE_SYMBOL)};                                              \
        if (uir_image_open_library(file, symbols, sizeof symbols / sizeof *symbols)) return UIR_STATUS_OK;             \
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED,                                                          \
                              format " pictures are decoded by " file " (Debian: " package                             \
                                     "), which is not on this machine or cannot be opened by this program");           \
    }

#endif
