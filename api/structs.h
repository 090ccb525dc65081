/* Structures that grow, by the rule that the public header states: their first member is struct_size, and whoever made
 * one may know fewer members, or more. In: a structure of the caller's. Out: one of this library's, or the other way.
 */
#ifndef UIR_API_STRUCTS_H
#define UIR_API_STRUCTS_H

#include "base/status.h"

/* What the caller gives, as this library knows it: what he left out is zero. `given` NULL: all is. INVALID_ARGUMENT
 * where struct_size is not set, or what he knows beyond is not zero. */
#define UIR_STRUCT_TAKE(diagnostics, type, given, out)                                                                 \
    uir_struct_take(diagnostics, #type, (1 ? (given) : (const type *)NULL), (1 ? (out) : (type *)NULL), sizeof(type))
uir_status uir_struct_take(uir_diagnostics *diagnostics, const char *type, const void *given, void *out, size_t size);

/* Into the caller's structure, as far as he knows it; its struct_size stays. INVALID_ARGUMENT where that is not set. */
#define UIR_STRUCT_GIVE(diagnostics, type, known, out)                                                                 \
    uir_struct_give(diagnostics, #type, (1 ? (known) : (const type *)NULL), sizeof(type), (1 ? (out) : (type *)NULL))
uir_status uir_struct_give(uir_diagnostics *diagnostics, const char *type, const void *known, size_t size, void *out);

#endif
