/* Records of parameters, by the kernel that they are for: what a compile is given, what measuring has found.
 *
 * In: text, or whoever has records. Out: what lower/parameters.h takes. Text:
 *
 *   records 1
 *   # k5_matmul
 *   record "d1a8..." {
 *     depth 256
 *     tile 96 x 512 cost 31744
 *   }
 *
 * The digits are a digest of the version of records, the device's description and the kernel's naive loop AST: a record
 * is for this kernel on this device, whichever model it is in. Who gives one need not be believed: what does not fit is
 * left out with a warning, and what fits decides how long a kernel takes, never what it computes. */
#ifndef UIR_COMPILE_RECORDS_H
#define UIR_COMPILE_RECORDS_H

#include "base/arena.h"
#include "base/vector.h"
#include "cache/digest.h"
#include "ir/machine/device.h"
#include "lower/parameters.h"

enum { UIR_RECORDS_VERSION = 1, UIR_RECORDS_MAX = 1 << 16 };

typedef struct uir_record {
    uir_digest kernel;
    const char *name; /* the kernel's, for the reader; NULL: nobody knows it */
    uir_parameters parameters;
} uir_record;

typedef struct uir_records {
    uir_vector(uir_record) items;
} uir_records;

/* All is allocated from the arena. BAD_FILE, with a message, for what are no records, or such of another version. */
uir_status uir_records_parse(const char *text, size_t length, const char *file, uir_arena *arena,
                             uir_diagnostics *diagnostics, uir_records *out_records);
void uir_records_print(const uir_records *records, uir_text *text);
/* NULL: there is none for the kernel. */
const uir_parameters *uir_records_find(const uir_records *records, const uir_digest *kernel);

/* `text`: the kernel's naive loop AST without its name. */
uir_status uir_record_identify(const uir_device *device, const char *text, size_t length,
                               const uir_allocator *allocator, uir_digest *out_kernel);

/* Who has records. */
typedef struct uir_record_source {
    /* NOT_FOUND: none for this kernel; `name` and `diagnostics` are for what is to be said of one. */
    uir_status (*find)(void *user, const uir_digest *kernel, const char *name, uir_diagnostics *diagnostics,
                       uir_parameters *out_parameters);
    void *user;
} uir_record_source;

#endif
