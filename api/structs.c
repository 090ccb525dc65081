#include "api/structs.h"

#include <string.h>

static uir_status check_size(uir_diagnostics *diagnostics, const char *type, const void *structure, size_t *out_size) {
    *out_size = 0;
    if (!structure) return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "%s: the structure is NULL", type);
    memcpy(out_size, structure, sizeof *out_size);
    if (*out_size >= sizeof *out_size) return UIR_STATUS_OK;
    return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "set it with UIR_INIT",
                          "%s.struct_size is not set: it is %zu", type, *out_size);
}

uir_status uir_struct_take(uir_diagnostics *diagnostics, const char *type, const void *given, void *out, size_t size) {
    size_t given_size;
    memset(out, 0, size);
    memcpy(out, &size, sizeof size);
    if (!given) return UIR_STATUS_OK;
    UIR_TRY(check_size(diagnostics, type, given, &given_size));
    const char *bytes = given;
    for (size_t i = size; i < given_size; i++) {
        if (bytes[i])
            return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                  "use a library as new as the header, or leave the unknown members zero",
                                  "%s.struct_size is %zu, this library knows %zu bytes, and byte %zu is not zero: a "
                                  "member newer than the library is set",
                                  type, given_size, size, i);
    }
    if (given_size > size) given_size = size;
    if (given_size > sizeof size) memcpy((char *)out + sizeof size, bytes + sizeof size, given_size - sizeof size);
    return UIR_STATUS_OK;
}

uir_status uir_struct_give(uir_diagnostics *diagnostics, const char *type, const void *known, size_t size, void *out) {
    size_t out_size;
    UIR_TRY(check_size(diagnostics, type, out, &out_size));
    size_t shared = out_size < size ? out_size : size;
    memcpy((char *)out + sizeof size, (const char *)known + sizeof size, shared - sizeof size);
    memset((char *)out + shared, 0, out_size - shared);
    return UIR_STATUS_OK;
}
