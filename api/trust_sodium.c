/* libsodium, opened by the names that its versions have. */
#include "api/trust.h"

#include <dlfcn.h>
#include <string.h>

static const char *const names[] = {"libsodium.so.26", "libsodium.so.23", "libsodium.so"};

static bool find(const uir_sodium *sodium, const char *name, void *out_function) {
    void *address = dlsym(sodium->library, name);
    memcpy(out_function, &address, sizeof address); /* C has no other way from one pointer to the other */
    return address != NULL;
}

uir_status uir_sodium_open(uir_diagnostics *diagnostics, uir_sodium *out_sodium) {
    uir_sodium s = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names && !s.library; i++)
        s.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (s.library && find(&s, "sodium_init", &s.init) &&
        find(&s, "crypto_generichash_statebytes", &s.generichash_statebytes) &&
        find(&s, "crypto_generichash_init", &s.generichash_init) &&
        find(&s, "crypto_generichash_update", &s.generichash_update) &&
        find(&s, "crypto_generichash_final", &s.generichash_final) &&
        find(&s, "crypto_sign_verify_detached", &s.sign_verify_detached) && s.init() >= 0) {
        *out_sodium = s;
        return UIR_STATUS_OK;
    }
    uir_sodium_close(&s);
    return uir_error_hint(
        diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
        "install libsodium (Debian: libsodium23), or open the package without keys to trust",
        "libsodium, which checks signatures, is missing on this machine, or this program cannot open it");
}

void uir_sodium_close(uir_sodium *sodium) {
    if (sodium->library) dlclose(sodium->library);
    sodium->library = NULL;
}
