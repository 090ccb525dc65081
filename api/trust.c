#include "api/trust.h"

#include "base/file.h"
#include "package/package.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define HASHED_AT_ONCE ((size_t)1 << 22)

/* ---- keys ---- */
static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_key(const char *line, const char *word, unsigned char key[UIR_KEY_SIZE]) {
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || line[length] != ' ') return false;
    const char *digits = line + length + 1;
    for (size_t i = 0; i < (size_t)2 * UIR_KEY_SIZE; i++) {
        int digit = digit_of(digits[i]);
        if (digit < 0) return false;
        key[i / 2] = (unsigned char)(key[i / 2] << 4 | digit);
    }
    return strcmp(digits + (size_t)2 * UIR_KEY_SIZE, "\n") == 0 || digits[(size_t)2 * UIR_KEY_SIZE] == 0;
}

uir_status uir_trust_read_key(const char *path, const char *word, uir_diagnostics *diagnostics,
                              unsigned char out_key[UIR_KEY_SIZE]) {
    char line[128];
    uir_location place = {.file = path};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return uir_error(diagnostics, UIR_STATUS_NOT_FOUND, &place, "the key cannot be opened: %s",
                         uir_file_explain(errno));
    ssize_t size = read(descriptor, line, sizeof line - 1);
    close(descriptor);
    line[size < 0 ? 0 : size] = 0;
    if (parse_key(line, word, out_key)) return UIR_STATUS_OK;
    return uir_error_hint(
        diagnostics, UIR_STATUS_BAD_FILE, &place,
        "run uir-pack --make-key KEY: it makes KEY, which is secret and signs, and KEY.pub, which is the key to trust",
        "the file is not a uir key: it does not begin with %s", word);
}

/* ---- signatures ---- */
static uir_status refuse(uir_diagnostics *diagnostics, const uir_trust *trust, const char *hint, const char *what) {
    return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = trust->package}, hint, "%s", what);
}

/* Whether the key is one of the caller's; all of them are read, so that a file that is none is told. */
static uir_status find_key(const uir_trust *trust, const unsigned char *key, uir_diagnostics *diagnostics,
                           bool *out_found) {
    unsigned char trusted[UIR_KEY_SIZE];
    *out_found = false;
    for (size_t i = 0; i < trust->count; i++) {
        UIR_TRY(uir_trust_read_key(trust->paths[i], UIR_PUBLIC_KEY_WORD, diagnostics, trusted));
        *out_found |= memcmp(trusted, key, sizeof trusted) == 0;
    }
    return UIR_STATUS_OK;
}

static uir_status hash(const uir_sodium *sodium, const uir_trust *trust, const unsigned char *bytes, size_t size,
                       unsigned char out[UIR_SIGNED_DIGEST_SIZE]) {
    _Alignas(64) unsigned char state[512];
    if (sodium->generichash_statebytes() > sizeof state) return UIR_STATUS_UNSUPPORTED;
    bool good = sodium->generichash_init(state, NULL, 0, UIR_SIGNED_DIGEST_SIZE) == 0;
    for (size_t done = 0, part; done < size && good; done += part) {
        if (trust->cancel && __atomic_load_n(trust->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
        part = size - done < HASHED_AT_ONCE ? size - done : HASHED_AT_ONCE;
        good = sodium->generichash_update(state, bytes + done, part) == 0;
    }
    return good && sodium->generichash_final(state, out, UIR_SIGNED_DIGEST_SIZE) == 0 ? UIR_STATUS_OK
                                                                                      : UIR_STATUS_UNSUPPORTED;
}

static uir_status check_signature(const uir_sodium *sodium, const uir_trust *trust, const unsigned char *bytes,
                                  size_t size, uir_diagnostics *diagnostics) {
    const unsigned char *signature = bytes + size;
    unsigned char message[UIR_SIGNED_TEXT_SIZE + UIR_SIGNED_DIGEST_SIZE];
    memcpy(message, UIR_SIGNED_TEXT, UIR_SIGNED_TEXT_SIZE);
    UIR_TRY(hash(sodium, trust, bytes, size, message + UIR_SIGNED_TEXT_SIZE));
    if (sodium->sign_verify_detached(signature + UIR_SIGNATURE_AT, message, sizeof message,
                                     signature + UIR_SIGNATURE_KEY_AT) == 0)
        return UIR_STATUS_OK;
    return refuse(diagnostics, trust, "get the package again from its maker",
                  "the package does not match its signature: it is damaged or was changed");
}

uir_status uir_trust_vouch(void *user, const void *bytes, size_t size, uir_diagnostics *diagnostics) {
    const uir_trust *trust = user;
    uir_sodium sodium;
    bool known = false;
    UIR_TRY(uir_sodium_open(diagnostics, &sodium));
    size_t package = uir_package_skip_signature(bytes, size);
    const unsigned char *key = (const unsigned char *)bytes + package + UIR_SIGNATURE_KEY_AT;
    uir_status status = UIR_STATUS_OK;
    if (package == size)
        status =
            refuse(diagnostics, trust,
                   "sign it with uir-pack --sign KEY, or open it without keys to trust: then the VM runs it",
                   "the package is not signed, or its end is missing; only packages signed by a trusted key are run");
    if (status == UIR_STATUS_OK) status = find_key(trust, key, diagnostics, &known);
    if (status == UIR_STATUS_OK && !known)
        status = refuse(diagnostics, trust, "get the public key from the package's maker, and check that it is theirs",
                        "the package is signed by a key that is not trusted");
    if (status == UIR_STATUS_OK) status = check_signature(&sodium, trust, bytes, package, diagnostics);
    uir_sodium_close(&sodium);
    return status;
}
