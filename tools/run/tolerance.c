#include "tolerance.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 22 };

static cJSON *read_json(const char *path) {
    FILE *file = fopen(path, "rb");
    char *buffer = file ? malloc(MOST_BYTES) : NULL;
    size_t n = buffer ? fread(buffer, 1, MOST_BYTES, file) : 0;
    cJSON *root = n && n < MOST_BYTES ? cJSON_ParseWithLength(buffer, n) : NULL;
    if (file) fclose(file);
    free(buffer);
    return root;
}

static bool read_number(const cJSON *object, const char *key, double *out_number) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0)) return false;
    *out_number = item->valuedouble;
    return true;
}

/* The absolute part is stated one way or the other, or both. */
static bool read_tolerance(const char *path, uir_tolerance *out) {
    cJSON *root = read_json(path);
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(root, "tolerance");
    uir_tolerance found = {.struct_size = sizeof found, .rtol = -1};
    if (!at) at = root;
    bool relative = read_number(at, "rtol", &found.rtol), absolute = read_number(at, "atol", &found.atol);
    if (read_number(at, "atol_relative_to_max", &found.atol_relative_to_max))
        absolute = true;
    else if (!absolute)
        found.atol_relative_to_max = -1;
    cJSON_Delete(root);
    if (!relative && !absolute) return false;
    *out = found;
    return true;
}

const char *tolerance_find_beside(const char *model_path, uir_tolerance *out_tolerance) {
    static const char *const names[] = {"info.json", "data.json"};
    const char *slash = strrchr(model_path, '/');
    int length = slash ? (int)(slash - model_path + 1) : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4352];
        int n = snprintf(path, sizeof path, "%.*s%s", length, model_path, names[i]);
        if (n > 0 && (size_t)n < sizeof path && read_tolerance(path, out_tolerance)) return names[i];
    }
    return NULL;
}
