/* Digests: BLAKE2b, 256 bits, for keys of the cache. Nobody can make a collision, so an entry of one model never serves
 * another. xxHash is several times as fast, but collisions can be forged: it detects damage and indexes hash tables
 * only.
 *
 * In: bytes, or a file. Out: the digest; for large input, of a tree of two levels. Each piece of UIR_DIGEST_PIECE bytes
 * is hashed with the personalization "uir piece". The size as 64 bits, least significant first, followed by the pieces'
 * digests in order, is hashed with "uir pieces". Several threads hash pieces; their number does not matter. */
#ifndef UIR_CACHE_DIGEST_H
#define UIR_CACHE_DIGEST_H

#include "base/status.h"

#define UIR_DIGEST_SIZE      32
#define UIR_DIGEST_TEXT_SIZE (2 * UIR_DIGEST_SIZE + 1)
#define UIR_DIGEST_PIECE     ((uint64_t)1 << 22)

typedef struct uir_digest {
    uint8_t bytes[UIR_DIGEST_SIZE];
} uir_digest;

/* Digest of a few bytes: no tree. */
uir_digest uir_digest_make(const void *data, size_t size);

typedef struct uir_digest_options {
    uint32_t threads;            /* at most; 0: one */
    const volatile bool *cancel; /* polled before each piece; NULL: none */
} uir_digest_options;

/* Digest of a tree. CANCELLED when the flag is set; OUT_OF_MEMORY. */
uir_status uir_digest_of_memory(const void *data, uint64_t size, const uir_digest_options *options,
                                const uir_allocator *allocator, uir_digest *out_digest);
/* The same for the first `size` bytes of the file, read and never mapped: IO_FAILED if the file is truncated
 * meanwhile. */
uir_status uir_digest_of_file(int descriptor, uint64_t size, const uir_digest_options *options,
                              const uir_allocator *allocator, uir_digest *out_digest);

/* Print and parse hexadecimal digits. */
void uir_digest_print(const uir_digest *digest, char out_text[UIR_DIGEST_TEXT_SIZE]);
bool uir_digest_parse(const char *text, size_t length, uir_digest *out_digest);

#endif
