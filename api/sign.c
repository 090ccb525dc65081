/* Signatures and keys as they are made; trust.c asks whose they are. */
#include "api/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(UIR_KEY_SIZE == crypto_sign_PUBLICKEYBYTES && UIR_KEY_SIZE == crypto_sign_SEEDBYTES, "keys");
_Static_assert(UIR_SIGNATURE_SIZE - UIR_SIGNATURE_AT == crypto_sign_BYTES, "signatures");

static uir_status begin(uir_diagnostics *diagnostics) {
    if (sodium_init() >= 0) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "libsodium cannot be used here");
}

/* ---- signing ---- */
static uir_status hash_file(int descriptor, uint64_t size, unsigned char out[UIR_SIGNED_DIGEST_SIZE]) {
    crypto_generichash_state state;
    unsigned char bytes[16384];
    uint64_t at = 0;
    crypto_generichash_init(&state, NULL, 0, UIR_SIGNED_DIGEST_SIZE);
    while (at < size) {
        ssize_t got =
            pread(descriptor, bytes, size - at < sizeof bytes ? (size_t)(size - at) : sizeof bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return UIR_STATUS_IO_FAILED;
        crypto_generichash_update(&state, bytes, (size_t)got);
        at += (uint64_t)got;
    }
    crypto_generichash_final(&state, out, UIR_SIGNED_DIGEST_SIZE);
    return UIR_STATUS_OK;
}

uir_status uir_sign_file(int descriptor, uint64_t size, const char *key_path, uir_diagnostics *diagnostics,
                         unsigned char out_signature[UIR_SIGNATURE_SIZE]) {
    unsigned char seed[UIR_KEY_SIZE], secret[crypto_sign_SECRETKEYBYTES];
    unsigned char message[UIR_SIGNED_TEXT_SIZE + UIR_SIGNED_DIGEST_SIZE];
    UIR_TRY(begin(diagnostics));
    UIR_TRY(uir_trust_read_key(key_path, UIR_SECRET_KEY_WORD, diagnostics, seed));
    uir_status status = hash_file(descriptor, size, message + UIR_SIGNED_TEXT_SIZE);
    memcpy(message, UIR_SIGNED_TEXT, UIR_SIGNED_TEXT_SIZE);
    memcpy(out_signature, UIR_SIGNATURE_MAGIC, UIR_SIGNATURE_KEY_AT);
    crypto_sign_seed_keypair(out_signature + UIR_SIGNATURE_KEY_AT, secret, seed);
    crypto_sign_detached(out_signature + UIR_SIGNATURE_AT, NULL, message, sizeof message, secret);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    return status;
}

/* ---- keys ---- */
/* A new file: what is there stays. */
static uir_status write_key(const char *path, const char *word, const unsigned char key[UIR_KEY_SIZE], mode_t mode,
                            uir_diagnostics *diagnostics) {
    char line[128], digits[2 * UIR_KEY_SIZE + 1];
    uir_location place = {.file = path};
    sodium_bin2hex(digits, sizeof digits, key, UIR_KEY_SIZE);
    int length = snprintf(line, sizeof line, "%s %s\n", word, digits);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (descriptor < 0 && errno == EEXIST)
        return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, &place, "name another file, or remove this one",
                              "the file already exists; overwriting a key would make its signatures unverifiable");
    bool good = descriptor >= 0 && write(descriptor, line, (size_t)length) == length && fsync(descriptor) == 0;
    if (descriptor >= 0) good = close(descriptor) == 0 && good;
    sodium_memzero(line, sizeof line);
    sodium_memzero(digits, sizeof digits);
    if (good) return UIR_STATUS_OK;
    if (descriptor >= 0) unlink(path);
    return uir_error(diagnostics, UIR_STATUS_IO_FAILED, &place, "the key cannot be written");
}

uir_status uir_package_make_key(uir_context *context, const char *path) {
    uir_call call;
    unsigned char seed[UIR_KEY_SIZE], public[UIR_KEY_SIZE], secret[crypto_sign_SECRETKEYBYTES];
    char public_path[4096];
    uir_call_begin(&call, context);
    uir_status status = begin(&call.diagnostics);
    if (status == UIR_STATUS_OK &&
        (size_t)snprintf(public_path, sizeof public_path, "%s.pub", path) >= sizeof public_path)
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the key's path is too long");
    if (status == UIR_STATUS_OK) {
        randombytes_buf(seed, sizeof seed);
        crypto_sign_seed_keypair(public, secret, seed);
        status = write_key(path, UIR_SECRET_KEY_WORD, seed, 0600, &call.diagnostics);
        if (status == UIR_STATUS_OK) {
            status = write_key(public_path, UIR_PUBLIC_KEY_WORD, public, 0644, &call.diagnostics);
            if (status != UIR_STATUS_OK) unlink(path);
        }
        sodium_memzero(seed, sizeof seed);
        sodium_memzero(secret, sizeof secret);
    }
    return uir_call_end(&call, status, "making a key");
}
