/* Tuning records by kernel: read for a compile, written by uir-tune.
 *
 * In: text, or a source of records. Out: parameters for lower/parameters.h. Text:
 *
 *   records 1
 *   # k5_matmul
 *   record "d1a8..." {
 *     depth 256
 *     tile 96 x 512 cost 31744
 *   }
 *
 * The digits are a digest of the version of records, the device's description without measured rates, and the kernel's
 * naive loop AST: a record is for this kernel on this device, in any model. A source of records need not be trusted: a
 * record that does not fit is ignored with a warning, and one that fits changes only a kernel's time, never its
 * results. */
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
    const char *name; /* of the kernel, as a comment; NULL: unknown */
    uir_parameters parameters;
} uir_record;

typedef struct uir_records {
    uir_vector(uir_record) items;
} uir_records;

/* All is allocated from the arena. BAD_FILE, with a message, for malformed text or another version. */
uir_status uir_records_parse(const char *text, size_t length, const char *file, uir_arena *arena,
                             uir_diagnostics *diagnostics, uir_records *out_records);
void uir_records_print(const uir_records *records, uir_text *text);
/* NULL: none for the kernel. */
const uir_parameters *uir_records_find(const uir_records *records, const uir_digest *kernel);

/* `text`: the kernel's naive loop AST without its name. */
uir_status uir_record_identify(const uir_machine *machine, const char *text, size_t length,
                               const uir_allocator *allocator, uir_digest *out_kernel);

/* A source of records. */
typedef struct uir_record_source {
    /* NOT_FOUND: none for this kernel; `name` and `diagnostics` are for messages about one. */
    uir_status (*find)(void *user, const uir_digest *kernel, const char *name, uir_diagnostics *diagnostics,
                       uir_parameters *out_parameters);
    void *user;
} uir_record_source;

#endif
