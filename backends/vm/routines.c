/* Which instruction sets this build has routines for. */
#include "backends/vm/routines.h"

#include <string.h>

extern const vm_routines uir_vm_routines_generic;
#if defined(__x86_64__)
extern const vm_routines uir_vm_routines_avx2, uir_vm_routines_avx512;
#endif

static const vm_routines *const tables[] = {
#if defined(__x86_64__)
    &uir_vm_routines_avx512,
    &uir_vm_routines_avx2,
#endif
    &uir_vm_routines_generic,
};

const vm_routines *uir_vm_routines_get(size_t index) {
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (tables[i]->is_available() && index-- == 0) return tables[i];
    }
    return NULL;
}

const vm_routines *uir_vm_routines_find(const char *isa) {
    if (!isa) return uir_vm_routines_get(0);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (!strcmp(tables[i]->isa, isa)) return tables[i]->is_available() ? tables[i] : NULL;
    }
    return NULL;
}
