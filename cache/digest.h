/* Which bytes these are: BLAKE2b, of 256 bits. Nobody can make two of one digest, whatever he may write, so that what
 * is kept for one model never answers for another's. That is what keys are made of; xxHash, which is several times as
 * fast and which anybody can make collide, finds damage and fills tables, and decides nothing.
 *
 * In: bytes, or a file. Out: the digest; of what may be large, of a tree of two levels: each piece of UIR_DIGEST_PIECE
 * bytes is hashed with the personalization "uir piece", and the size as 64 bits, the least first, and the pieces'
 * digests in order, with "uir pieces". The pieces are hashed on several threads; how many decides nothing. */
#ifndef UIR_CACHE_DIGEST_H
#define UIR_CACHE_DIGEST_H

#include "base/status.h"

#define UIR_DIGEST_SIZE      32
#define UIR_DIGEST_TEXT_SIZE (2 * UIR_DIGEST_SIZE + 1)
#define UIR_DIGEST_PIECE     ((uint64_t)1 << 22)

typedef struct uir_digest {
    uint8_t bytes[UIR_DIGEST_SIZE];
} uir_digest;

/* Of few bytes, at once: no tree. */
uir_digest uir_digest_make(const void *data, size_t size);

typedef struct uir_digest_options {
    uint32_t threads;            /* at most; 0: one */
    const volatile bool *cancel; /* asked before each piece; NULL: nobody asks */
} uir_digest_options;

/* Of many, as a tree. CANCELLED when the flag was set; OUT_OF_MEMORY. */
uir_status uir_digest_of_memory(const void *data, uint64_t size, const uir_digest_options *options,
                                const uir_allocator *allocator, uir_digest *out_digest);
/* The same of the first `size` bytes of the file, which are read and never mapped: a file that is cut short meanwhile
 * is IO_FAILED. */
uir_status uir_digest_of_file(int descriptor, uint64_t size, const uir_digest_options *options,
                              const uir_allocator *allocator, uir_digest *out_digest);

/* As hexadecimal digits, and what was written so. */
void uir_digest_print(const uir_digest *digest, char out_text[UIR_DIGEST_TEXT_SIZE]);
bool uir_digest_parse(const char *text, size_t length, uir_digest *out_digest);

#endif
