/* Signed packages: their native code may run where the caller trusts the signer's key.
 *
 * A signature follows the package's bytes in its file: UIR_SIGNATURE_MAGIC, the public key, and an Ed25519 signature of
 * UIR_SIGNED_TEXT with the BLAKE2b of all bytes before it behind. In: files of keys, the bytes of a package's file,
 * which are the very ones that are used then. Out: whether one of the keys has signed them.
 *
 * libsodium does the work. It is opened when somebody is asked to be trusted, so that libuir_rt links nothing for it.
 */
#ifndef UIR_API_TRUST_H
#define UIR_API_TRUST_H

#include "base/status.h"

#define UIR_SIGNED_TEXT      "uir package 1\n"
#define UIR_SIGNED_TEXT_SIZE (sizeof UIR_SIGNED_TEXT - 1)

/* A file of a key is a line of one of these words, a space and hexadecimal digits. */
#define UIR_PUBLIC_KEY_WORD "uir-public-key"
#define UIR_SECRET_KEY_WORD "uir-secret-key"
enum { UIR_KEY_SIZE = 32, UIR_SIGNED_DIGEST_SIZE = 32 }; /* of either key, a secret one's being its seed */

/* What is taken of libsodium, by its own names. */
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
/* UNSUPPORTED with a message where it is not on this machine. */
uir_status uir_sodium_open(uir_diagnostics *diagnostics, uir_sodium *out_sodium);
void uir_sodium_close(uir_sodium *sodium);

typedef struct uir_trust {
    const char *const *paths; /* of public keys */
    size_t count;
    const char *package;         /* its path, for messages */
    const volatile bool *cancel; /* NULL: nobody asks */
} uir_trust;

/* OK when one of the keys (a uir_trust) has signed the bytes: all of them but the signature. BAD_FILE with a message
 * when they are not signed, by no key that is trusted, or not these bytes; CANCELLED. */
uir_status uir_trust_vouch(void *trust, const void *bytes, size_t size, uir_diagnostics *diagnostics);

/* NOT_FOUND or BAD_FILE with a message for what is no file of such a key. */
uir_status uir_trust_read_key(const char *path, const char *word, uir_diagnostics *diagnostics,
                              unsigned char out_key[UIR_KEY_SIZE]);

#endif
