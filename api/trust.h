/* Signature checks: native code of a package runs only if a key that the caller trusts has signed the package.
 *
 * A signature follows the package's bytes in its file: UIR_SIGNATURE_MAGIC, the public key, and an Ed25519 signature.
 * The signed message is UIR_SIGNED_TEXT, followed by the BLAKE2b of all bytes of the package. In: key files, and the
 * bytes of a package file; the caller must then use these same bytes. Out: whether one of the keys has signed them.
 *
 * libsodium is loaded for a check only, so that libuir_rt does not link it. */
#ifndef UIR_API_TRUST_H
#define UIR_API_TRUST_H

#include "base/status.h"

#define UIR_SIGNED_TEXT      "uir package 1\n"
#define UIR_SIGNED_TEXT_SIZE (sizeof UIR_SIGNED_TEXT - 1)

/* A key file is a line: one of these words, a space, hexadecimal digits. */
#define UIR_PUBLIC_KEY_WORD "uir-public-key"
#define UIR_SECRET_KEY_WORD "uir-secret-key"
enum { UIR_KEY_SIZE = 32, UIR_SIGNED_DIGEST_SIZE = 32 }; /* of both keys; that of a secret key is its seed */

/* Functions of libsodium, by its own names. */
typedef struct uir_sodium {
    void *library;
    int (*init)(void);
    size_t (*generichash_statebytes)(void);
    int (*generichash_init)(void *state, const unsigned char *key, size_t key_size, size_t out_size);
    int (*generichash_update)(void *state, const unsigned char *in, unsigned long long size);
    int (*generichash_final)(void *state, unsigned char *out, size_t out_size);
    int (*sign_verify_detached)(const unsigned char *signature, const unsigned char *message, unsigned long long size,
                                const unsigned char *public_key);
} uir_sodium;
/* Loads libsodium. UNSUPPORTED with a message if libsodium is missing on this machine. */
uir_status uir_sodium_open(uir_diagnostics *diagnostics, uir_sodium *out_sodium);
void uir_sodium_close(uir_sodium *sodium);

typedef struct uir_trust {
    const char *const *paths; /* of public keys */
    size_t count;
    const char *package;         /* its path, for messages */
    const volatile bool *cancel; /* NULL: none */
} uir_trust;

/* OK if one of the keys of `trust`, a uir_trust, has signed the bytes; their end is the signature. With a message:
 * BAD_FILE if the bytes are unsigned, signed by another key, or changed since; UNSUPPORTED without libsodium; statuses
 * of uir_trust_read_key. CANCELLED. */
uir_status uir_trust_vouch(void *trust, const void *bytes, size_t size, uir_diagnostics *diagnostics);

/* Reads a key file that begins with `word`. With a message: NOT_FOUND if the file cannot be opened, BAD_FILE if it
 * lacks the word or the key. */
uir_status uir_trust_read_key(const char *path, const char *word, uir_diagnostics *diagnostics,
                              unsigned char out_key[UIR_KEY_SIZE]);

#endif
