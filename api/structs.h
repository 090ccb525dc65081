/* Converts versioned structures, which have a struct_size, between the caller's version and this library's, by the
 * rules of uir.h. */
#ifndef UIR_API_STRUCTS_H
#define UIR_API_STRUCTS_H

#include "base/status.h"

/* Reads the caller's structure as this library's: missing members are zero; `given` NULL: all members are zero.
 * INVALID_ARGUMENT if struct_size is not set, or if bytes beyond the known members are not zero. */
#define UIR_STRUCT_TAKE(diagnostics, type, given, out)                                                                 \
    uir_struct_take(diagnostics, #type, (1 ? (given) : (const type *)NULL), (1 ? (out) : (type *)NULL), sizeof(type))
uir_status uir_struct_take(uir_diagnostics *diagnostics, const char *type, const void *given, void *out, size_t size);

/* Fills the caller's structure up to its struct_size, which is unchanged. INVALID_ARGUMENT if struct_size is not
 * set. */
#define UIR_STRUCT_GIVE(diagnostics, type, known, out)                                                                 \
    uir_struct_give(diagnostics, #type, (1 ? (known) : (const type *)NULL), sizeof(type), (1 ? (out) : (type *)NULL))
uir_status uir_struct_give(uir_diagnostics *diagnostics, const char *type, const void *known, size_t size, void *out);

#endif
