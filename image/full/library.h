/* A decoder's library, opened when a picture asks for it and loaded while the process lives: what decodes no such
 * picture neither loads it nor needs it, and starts without the time that its dependencies take.
 *
 * In: the file of the version that the headers are of, as the dynamic linker knows it, and the functions that are taken
 * of it: UIR_IMAGE_LIBRARY(library, file, FUNCTIONS), where FUNCTIONS(FUNCTION) is FUNCTION(name) for each by its name
 * in the header. Out: the type `library`, whose members are the functions, and open_library(&library), false where the
 * file cannot be opened or lacks one of them. */
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
