/* Loads a decoder library at the first picture that needs it, for the rest of the process. Other processes neither need
 * the library nor spend time on its dependencies.
 *
 * In: UIR_IMAGE_LIBRARY(library, file, FUNCTIONS). `file` is the name, for the dynamic linker, of the version that
 * matches the headers. FUNCTIONS(FUNCTION) is FUNCTION(name) for each function, by its name in the header. Out: the
 * type `library`, whose members are the functions, and open_library(&library), false if the file cannot be opened or
 * lacks one of them. */
#ifndef UIR_IMAGE_FULL_LIBRARY_H
#define UIR_IMAGE_FULL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct uir_image_symbol {
    const char *name;
    void *out_function; /* a pointer to a pointer to the function */
} uir_image_symbol;

bool uir_image_open_library(const char *file, const uir_image_symbol *symbols, size_t count);

#define UIR_IMAGE_MEMBER(function) __typeof__(&(function)) function;
#define UIR_IMAGE_SYMBOL(function) {#function, (void *)&functions->function},
#define UIR_IMAGE_LIBRARY(library, file, FUNCTIONS)                                                                    \
    typedef struct library {                                                                                           \
        FUNCTIONS(UIR_IMAGE_MEMBER)                                                                                    \
    } library;                                                                                                         \
    static bool open_##library(library *functions) {                                                                   \
        const uir_image_symbol symbols[] = {FUNCTIONS(UIR_IMAGE_SYMBOL)};                                              \
        return uir_image_open_library(file, symbols, sizeof symbols / sizeof *symbols);                                \
    }

#endif
