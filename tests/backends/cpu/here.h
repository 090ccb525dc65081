/* For tests of what is around kernels (caches, limits, lifetimes): native code that this machine runs, whatever UIR_CPU
 * names. */
#ifndef UIR_TESTS_CPU_HERE_H
#define UIR_TESTS_CPU_HERE_H

#include "backends/cpu/target/cpu.h"

#include <stdlib.h>
#include <string.h>

/* Takes the variant out of UIR_CPU where this machine does not run it; sizes of caches stay. False where it did. Of the
 * environment of the whole process: to be called before threads are. */
static inline bool here_keep_what_runs(void) {
    static uir_cpu_device device; /* large */
    const char *text = getenv("UIR_CPU");
    char kept[256] = "";
    if (!text || strlen(text) >= sizeof kept || uir_cpu_describe(NULL, NULL, &device) != UIR_STATUS_OK ||
        device.runs_here)
        return true;
    const char *name = uir_cpu_variant_name(device.variant);
    for (const char *word = text; *word;) {
        size_t length = strcspn(word, ",");
        if (length != strlen(name) || memcmp(word, name, length) != 0) {
            if (*kept) strcat(kept, ",");
            strncat(kept, word, length);
        }
        word += length + (word[length] == ',');
    }
    setenv("UIR_CPU", kept, 1);
    return false;
}
#endif
