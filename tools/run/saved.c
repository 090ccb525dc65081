#define _POSIX_C_SOURCE 200809L
#include "saved.h"
#include "json.h"
#include "query.h"
#include "printable.h"
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_INDEX_BYTES = 256 << 20, MAX_PATH_LENGTH = 4300, NAME_LENGTH = 1024 };
static const char index_name[] = "index.json";

static uir_output_maker maker_of(const uir_model *model, size_t output) {
    uir_output_maker maker = {.struct_size = sizeof maker, .node = "", .op = ""};
    (void)!uir_model_get_output_maker(model, output, &maker);
    return maker;
}

/* ---- folders ---- */

uir_status saved_make_folder(const char *option, const char *path) {
    struct stat s;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &s) == 0 && S_ISDIR(s.st_mode))) return UIR_STATUS_OK;
    complain(NULL, "%s '%s': cannot make the folder: %s", option, path, strerror(errno));
    return UIR_STATUS_IO_FAILED;
}

/* The last part of a path; a slash at the end does not count. */
static const char *last_part(const char *path, size_t *out_length) {
    size_t end = strlen(path);
    while (end && path[end - 1] == '/') end--;
    size_t start = end;
    while (start && path[start - 1] != '/') start--;
    *out_length = end - start;
    return path + start;
}

uir_status saved_folder(const char *option, const char *base, char *const *folders, size_t count, size_t at,
                        char *buffer, size_t capacity) {
    int n = snprintf(buffer, capacity, "%s", base);
    if (count > 1) {
        size_t length, other_length, same = 0;
        const char *name = last_part(folders[at], &length);
        for (size_t i = 0; i < count; i++) {
            const char *other = last_part(folders[i], &other_length);
            same += other_length == length && !memcmp(other, name, length);
        }
        if (length && name[0] != '.' && same == 1)
            n = snprintf(buffer, capacity, "%s/%.*s", base, (int)length, name);
        else
            n = snprintf(buffer, capacity, "%s/data_%zu", base, at);
    }
    if (n >= 0 && (size_t)n < capacity) return UIR_STATUS_OK;
    complain(NULL, "%s '%s': the path is too long", option, base);
    return UIR_STATUS_INVALID_ARGUMENT;
}

/* ---- writing ---- */

/* A file name for an output: its own name where that is harmless, else a number. */
static void make_file_name(const char *name, size_t index, bool npy, char *buffer, size_t capacity) {
    char numbered[40];
    snprintf(numbered, sizeof numbered, "output_%zu", index);
    /* Names of the form of a numbered file are left to the output of that number. */
    bool harmless = npy && *name && *name != '.' && *name != '-' && strlen(name) < 100 &&
                    (strncmp(name, "output_", 7) != 0 || !strcmp(name, numbered));
    for (const char *s = name; *s; s++) {
        harmless &=
            (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || strchr("._-", *s);
    }
    if (harmless) {
        snprintf(buffer, capacity, "%s.npy", name);
    } else {
        snprintf(buffer, capacity, "%s.%s", numbered, npy ? "npy" : "pb");
    }
}

static cJSON *describe(const uir_model *model, size_t output, const uir_value *value, const char *file) {
    uir_output_maker maker = maker_of(model, output);
    cJSON *entry = cJSON_CreateObject(), *shape;
    report_add_text(entry, "name", uir_model_get_output_name(model, output));
    cJSON_AddStringToObject(entry, "file", file);
    report_add_text(entry, "node", maker.node);
    report_add_text(entry, "op", maker.op);
    cJSON_AddNumberToObject(entry, "place", maker.place);
    cJSON_AddBoolToObject(entry, "kept", maker.is_kept);
    report_add_text(entry, "dtype", uir_dtype_get_name(uir_value_get_dtype(value)));
    shape = cJSON_AddArrayToObject(entry, "shape");
    for (uint32_t d = 0; d < uir_value_get_rank(value); d++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)uir_value_get_shape(value)[d]));
    return entry;
}

/* Takes over `root`. */
static uir_status write_index(const char *folder, cJSON *root) {
    char path[MAX_PATH_LENGTH];
    snprintf(path, sizeof path, "%s/%s", folder, index_name);
    FILE *file = fopen(path, "w");
    bool written = file && report_write_json(file, root) && !ferror(file);
    int error = errno;
    if (!file) cJSON_Delete(root);
    if (file && fclose(file) != 0) written = false, error = errno;
    if (written) return UIR_STATUS_OK;
    complain(NULL, "cannot write %s: %s", path, strerror(error));
    return UIR_STATUS_IO_FAILED;
}

uir_status saved_write(uir_context *context, uir_model *model, uir_session *session, bool npy, const char *folder) {
    cJSON *root = cJSON_CreateObject(), *values = cJSON_CreateArray();
    uir_status status = !JSON_IS_THERE || (root && values) ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    cJSON_AddNumberToObject(root, "version", 1);
    cJSON_AddItemToObject(root, "values", values);
    for (size_t i = 0; i < uir_model_output_count(model) && status == UIR_STATUS_OK; i++) {
        uir_value *value = NULL;
        const char *name = uir_model_get_output_name(model, i);
        char file[128], path[MAX_PATH_LENGTH];
        status = uir_session_get_output(session, i, &value);
        if (status != UIR_STATUS_OK) break;
        make_file_name(name, i, npy && uir_value_get_kind(value) == UIR_VALUE_TENSOR, file, sizeof file);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        status = uir_value_save_file(context, value, path, name);
        if (status == UIR_STATUS_OK) cJSON_AddItemToArray(values, describe(model, i, value, file));
    }
    if (status == UIR_STATUS_OK && JSON_IS_THERE) return write_index(folder, root);
    cJSON_Delete(root);
    return status;
}

/* ---- reading ---- */

static uir_status not_saved(const char *folder, const char *what) {
    complain("give a folder that --save has written", "--compare-with '%s': %s", folder, what);
    return UIR_STATUS_BAD_FILE;
}

static uir_status read_index(const char *folder, cJSON **out_root) {
    char path[MAX_PATH_LENGTH];
    struct stat s;
    *out_root = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, index_name);
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    if (!file) return not_saved(folder, "index.json cannot be read");
    size_t size = s.st_size > 0 && s.st_size < MAX_INDEX_BYTES ? (size_t)s.st_size : 0;
    char *text = malloc(size + 1);
    if (text && size && fread(text, 1, size, file) == size) *out_root = cJSON_ParseWithLength(text, size);
    fclose(file);
    free(text);
    return cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(*out_root, "values"))
               ? UIR_STATUS_OK
               : not_saved(folder, "index.json is not that of a saved run");
}

static const char *text_of(const cJSON *entry, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, key));
    return text ? text : "";
}

/* Of several saved values of that name the one at the same turn; NULL: none. */
static const cJSON *find_entry(const cJSON *values, const char *name, size_t turn) {
    const cJSON *entry;
    char spelled[NAME_LENGTH]; /* as in the index */
    printable(name, spelled, sizeof spelled);
    cJSON_ArrayForEach(entry, values) {
        if (!strcmp(text_of(entry, "name"), spelled) && turn-- == 0) return entry;
    }
    return NULL;
}

/* ---- comparing ---- */

typedef struct ordered_output {
    size_t output;
    uint32_t place;
} ordered_output;

static int in_model_order(const void *a, const void *b) {
    const ordered_output *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return x->output < y->output ? -1 : x->output > y->output;
}

static size_t turn_of(const uir_model *model, size_t output) {
    size_t turn = 0;
    for (size_t i = 0; i < output; i++)
        turn += !strcmp(uir_model_get_output_name(model, i), uir_model_get_output_name(model, output));
    return turn;
}

static uir_status compare_one(uir_context *context, uir_session *session, const cJSON *entry, size_t output,
                              saved_comparison *c) {
    const char *file = text_of(entry, "file");
    char path[MAX_PATH_LENGTH];
    uir_value *value, *saved = NULL;
    if (!*file || *file == '.' || strchr(file, '/') || strlen(file) > 128)
        return not_saved(c->folder, "index.json names a file that --save does not write");
    snprintf(path, sizeof path, "%s/%s", c->folder, file);
    uir_status status = uir_session_get_output(session, output, &value);
    if (status == UIR_STATUS_OK) status = uir_value_load_file(context, path, NULL, uir_value_get_kind(value), &saved);
    if (status != UIR_STATUS_OK) return status;
    uir_comparison result = query_comparison(value, saved, c->tolerance);
    if (!c->compared++ || result.max_abs > c->widest.max_abs) c->widest = result;
    if (!result.agree && c->differing++ == 0) {
        c->output = output;
        c->first = result;
    }
    uir_value_destroy(saved);
    return UIR_STATUS_OK;
}

static uir_status compare_all(uir_context *context, const uir_model *model, uir_session *session, const cJSON *values,
                              saved_comparison *c) {
    size_t count = uir_model_output_count(model);
    uir_status status = UIR_STATUS_OK;
    ordered_output *order = calloc(count + 1, sizeof *order);
    if (!order) return UIR_STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) order[i] = (ordered_output){i, maker_of(model, i).place};
    qsort(order, count, sizeof *order, in_model_order);
    for (size_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
        size_t output = order[i].output;
        const cJSON *entry = find_entry(values, uir_model_get_output_name(model, output), turn_of(model, output));
        if (entry)
            status = compare_one(context, session, entry, output, c);
        else
            c->missing++;
    }
    free(order);
    return status;
}

uir_status saved_compare(uir_context *context, uir_model *model, uir_session *session, const uir_tolerance *tolerance,
                         const char *folder, saved_comparison *out_comparison) {
    cJSON *root;
    *out_comparison = (saved_comparison){.done = true, .tolerance = *tolerance};
    snprintf(out_comparison->folder, sizeof out_comparison->folder, "%s", folder);
    uir_status status = read_index(folder, &root);
    if (status == UIR_STATUS_OK)
        status = compare_all(context, model, session, cJSON_GetObjectItemCaseSensitive(root, "values"), out_comparison);
    cJSON_Delete(root);
    if (status == UIR_STATUS_OK && !out_comparison->compared)
        status = not_saved(folder, "the folder has no output of this run");
    return status;
}

/* ---- telling ---- */

void saved_report(const uir_model *model, const saved_comparison *c, bool quiet) {
    char text[480];
    if (!c->done) return;
    report_describe(c->differing ? &c->first : &c->widest, text, sizeof text);
    if (!c->differing) {
        char folder[200];
        if (quiet) return;
        printf("  compared with %s: %zu values agree", printable(c->folder, folder, sizeof folder), c->compared);
        if (c->missing) printf(", %zu are missing (--keep adds values)", c->missing);
        printf("; %s\n", text);
        return;
    }
    uir_output_maker maker = maker_of(model, c->output);
    char hint[120];
    snprintf(hint, sizeof hint, "%zu of %zu values differ%s", c->differing, c->compared,
             c->compared > 1 || c->missing ? "" : "; give --keep all in both runs to narrow it down");
    complain(hint, "first difference from '%s': node '%s' (%s), value '%s': %s", c->folder, maker.node, maker.op,
             uir_model_get_output_name(model, c->output), text);
}

void saved_add_json(cJSON *root, const uir_model *model, const saved_comparison *c) {
    if (!c->done) return;
    cJSON *object = cJSON_AddObjectToObject(root, "compared_with"), *first;
    report_add_text(object, "folder", c->folder);
    cJSON_AddNumberToObject(object, "compared", (double)c->compared);
    cJSON_AddNumberToObject(object, "differing", (double)c->differing);
    cJSON_AddNumberToObject(object, "missing", (double)c->missing);
    if (!c->differing) {
        cJSON_AddNullToObject(object, "first");
        return;
    }
    uir_output_maker maker = maker_of(model, c->output);
    first = cJSON_AddObjectToObject(object, "first");
    report_add_text(first, "node", maker.node);
    report_add_text(first, "op", maker.op);
    report_add_text(first, "value", uir_model_get_output_name(model, c->output));
    cJSON_AddNumberToObject(first, "elements", (double)c->first.count);
    cJSON_AddNumberToObject(first, "differing", (double)c->first.differing);
    report_add_number(first, "cosine", c->first.cosine);
    report_add_number(first, "rtol", c->first.rtol);
    report_add_number(first, "atol", c->first.atol);
    report_add_number(first, "max_abs", c->first.max_abs);
    report_add_number(first, "max_rel", c->first.max_rel);
    report_add_text(first, "text", c->first.text);
}
