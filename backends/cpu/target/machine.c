/* The machine at hand: its caches as /sys tells them, or what the environment variable UIR_CPU makes up, so that
 * kernels are made here as for another machine:
 *
 *   UIR_CPU=[VARIANT][,l1=SIZE][,l2=SIZE][,l3=SIZE]      SIZE: bytes, or with K, M or G; 0: not known */
#include "backends/cpu/target/machine.h"

#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE     "UIR_CPU"
#define LARGEST_SIZE (1ll << 40)

/* Bytes of a cache from /sys: "32K", "1M". 0 when it is not told. */
static uint64_t read_cache(unsigned index, unsigned level) {
    char path[96], text[32];
    unsigned found = 0;
    unsigned long long size = 0;
    char unit = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/level", index);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file) || sscanf(text, "%u", &found) != 1) found = 0;
    fclose(file);
    if (found != level) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/type", index);
    file = fopen(path, "r");
    if (!file) return 0;
    bool instructions = !fgets(text, sizeof text, file) || text[0] == 'I';
    fclose(file);
    if (instructions) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
    file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file) || sscanf(text, "%llu%c", &size, &unit) < 1) size = 0;
    fclose(file);
    if (size > (1ull << 30)) return 0;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

static uint64_t cache_bytes(unsigned level) {
    for (unsigned index = 0; index < 8; index++) {
        uint64_t size = read_cache(index, level);
        if (size) return size;
    }
    return 0;
}

static bool size_from_text(const char *text, size_t length, uint64_t *out) {
    static const char units[] = "KMG";
    int64_t number;
    const char *unit = length ? strchr(units, text[length - 1]) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!uir_integer_from_text(text, length - (unit != NULL), &number) || number < 0 || number > LARGEST_SIZE >> shift)
        return false;
    *out = (uint64_t)number << shift;
    return true;
}

/* One word; false when it is none of those that there are. */
static bool take_word(const char *word, size_t length, uir_cpu_machine *out) {
    for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
        const char *name = uir_cpu_variant_name((uir_cpu_variant)v);
        if (strlen(name) != length || memcmp(name, word, length) != 0) continue;
        bool first = !out->variant;
        out->variant = name;
        return first;
    }
    if (length < 4 || word[0] != 'l' || word[1] < '1' || word[1] > '3' || word[2] != '=') return false;
    int level = word[1] - '1';
    bool first = !out->given[level];
    out->given[level] = true;
    return size_from_text(word + 3, length - 3, &out->cache_bytes[level]) && first;
}

uir_status uir_cpu_read_machine(uir_diagnostics *diagnostics, uir_cpu_machine *out) {
    *out = (uir_cpu_machine){.variant = NULL};
    const char *text = getenv(VARIABLE);
    for (const char *word = text; word && *word;) {
        size_t length = strcspn(word, ",");
        bool last = !word[length];
        if (!take_word(word, length, out) || (!last && !word[length + 1])) {
            char known[128] = "";
            for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++)
                snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", v ? ", " : "",
                         uir_cpu_variant_name((uir_cpu_variant)v));
            return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "the environment variable " VARIABLE
                             " is '%.100s', and '%.*s' is invalid: it must be one of %s, and sizes of caches, each "
                             "once, as in 'avx2,l1=32K,l2=256K,l3=8M'",
                             text, length < 40 ? (int)length : 40, word, known);
        }
        word += length + !last;
    }
    for (int level = 0; level < 3; level++)
        if (!out->given[level]) out->cache_bytes[level] = cache_bytes((unsigned)level + 1);
    return UIR_STATUS_OK;
}
