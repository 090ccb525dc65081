/* Reads little-endian numbers from bytes in order, with bounds checks. */
#ifndef UIR_BASE_READER_H
#define UIR_BASE_READER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct uir_reader {
    const unsigned char *at, *end;
    bool short_of; /* bytes ran out */
} uir_reader;

/* Reads a number of 1 to 8 bytes. With fewer bytes left: 0, and the rest is skipped. */
static inline uint64_t uir_reader_take(uir_reader *r, int size) {
    uint64_t value = 0;
    if (r->end - r->at < size) {
        r->short_of = true;
        r->at = r->end;
        return 0;
    }
    for (int i = 0; i < size; i++) value |= (uint64_t)r->at[i] << (8 * i);
    r->at += size;
    return value;
}

#endif
