/* Splits the name of a device or an engine, "name" or "name:variant", into its two parts. */
#ifndef UIR_BASE_TARGET_NAME_H
#define UIR_BASE_TARGET_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct uir_target_name {
    const char *name; /* `length` bytes, up to the first colon */
    size_t length;
    const char *variant; /* after the colon, zero terminated; NULL without a colon */
} uir_target_name;

/* The result points into `text`. */
static inline uir_target_name uir_target_name_split(const char *text) {
    size_t length = strcspn(text, ":");
    return (uir_target_name){text, length, text[length] ? text + length + 1 : NULL};
}

/* Whether the part before the colon is `name`. */
static inline bool uir_target_name_is(uir_target_name given, const char *name) {
    return strlen(name) == given.length && !memcmp(name, given.name, given.length);
}

#endif
