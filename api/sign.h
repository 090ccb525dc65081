/* Signs packages; only libuir has it. */
#ifndef UIR_API_SIGN_H
#define UIR_API_SIGN_H

#include "api/internal.h"
#include "api/trust.h"
#include "package/package.h"

/* Computes the signature of the file's first `size` bytes, with the secret key in the file `key_path`. */
uir_status uir_sign_file(int descriptor, uint64_t size, const char *key_path, uir_diagnostics *diagnostics,
                         unsigned char out_signature[UIR_SIGNATURE_SIZE]);

#endif
