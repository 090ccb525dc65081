/* Interned strings: equal bytes, equal 32-bit handle.
 *
 * In: length-delimited bytes (embedded zeros allowed). Out: a handle that compares by value; 0 is the empty string. */
#ifndef UIR_BASE_INTERN_H
#define UIR_BASE_INTERN_H

#include "base/vector.h"

typedef struct uir_string {
    uint32_t id;
} uir_string;

typedef struct uir_strings {
    uir_arena *arena;
    uir_vector(struct uir_string_entry {
        const char *text;
        uint32_t length;
        uint64_t hash;
    }) entries;
    uint32_t *table; /* open addressing, 0 = free, else id + 1 */
    uint32_t table_size;
} uir_strings;

/* The arena must outlive the table. */
uir_status uir_strings_init(uir_strings *strings, uir_arena *arena);
/* A table of the same handles in another arena. */
uir_status uir_strings_clone(const uir_strings *strings, uir_arena *arena, uir_strings *out_clone);
uir_status uir_strings_intern(uir_strings *strings, const char *text, size_t length, uir_string *out_string);
uir_status uir_strings_intern_format(uir_strings *strings, uir_string *out_string, const char *format, ...)
    UIR_PRINTF(3, 4);
/* Looks up without adding; false if missing. */
bool uir_strings_find(const uir_strings *strings, const char *text, size_t length, uir_string *out_string);
/* Zero terminated. */
const char *uir_string_text(const uir_strings *strings, uir_string string);
uint32_t uir_string_length(const uir_strings *strings, uir_string string);
/* A map from names to numbers, with lookup in constant time; empty when zeroed. */
typedef struct uir_names {
    uir_strings strings;
    uir_vector(uint32_t) numbers; /* by string */
} uir_names;
#define UIR_NAMES_NONE UINT32_MAX
/* Sets a name's number. Allocates only for a new name. */
uir_status uir_names_put(uir_names *names, uir_arena *arena, const char *text, size_t length, uint32_t number);
/* UIR_NAMES_NONE for an unknown name. */
uint32_t uir_names_get(const uir_names *names, const char *text, size_t length);
/* 64-bit hash (xxh3) for the project's tables. */
uint64_t uir_hash(const void *data, size_t size, uint64_t seed);

#endif
