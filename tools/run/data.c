/* Where inputs come from, in order: --input, --data, seeded random values. */
#define _POSIX_C_SOURCE 200809L
#include "accuracy.h"
#include "data.h"
#include "picture.h"
#include "printable.h"
#include "query.h"
#include "tolerance.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uir_status out_of_memory(void) {
    complain(NULL, "out of memory");
    return UIR_STATUS_OUT_OF_MEMORY;
}

static bool file_exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

static char *join(const char *folder, const char *name) {
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    if (path) snprintf(path, n, "%s/%s", folder, name);
    return path;
}

/* Of the files of a data set. */
static const char *const endings[] = {".pb", ".npy"};

static int compare_names(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t n = strlen(x), m = strlen(y);
    return n != m ? (n < m ? -1 : 1) : strcmp(x, y); /* test_data_set_10 after test_data_set_9 */
}

static bool push(char ***list, size_t *count, char *item) {
    char **grown = item ? realloc(*list, (*count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(item);
        return false;
    }
    grown[(*count)++] = item;
    *list = grown;
    return true;
}

/* "input_3.npy": the kind, the number and the ending of a file of a data set, as load_numbered looks for it. */
static bool read_numbered(const char *name, const char *kind, size_t *out_index) {
    size_t length = strlen(kind), index = 0;
    if (strncmp(name, kind, length) != 0 || name[length] != '_') return false;
    const char *at = name + length + 1;
    bool leading_zero = at[0] == '0' && at[1] >= '0' && at[1] <= '9';
    if (*at < '0' || *at > '9' || leading_zero) return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (index > SIZE_MAX / 20) return false;
        index = index * 10 + (size_t)(*at - '0');
    }
    *out_index = index;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (!strcmp(at, endings[i])) return true;
    return false;
}

/* What else lies there, which somebody may have meant: at most a few names. */
static void list_others(const char *path, char *buffer, size_t capacity) {
    size_t used = 0, listed = 0;
    DIR *directory = opendir(path);
    *buffer = 0;
    for (struct dirent *e; directory && listed < 4 && (e = readdir(directory));) {
        if (e->d_name[0] == '.') continue;
        int n = snprintf(buffer + used, capacity - used, "%s'%s'", listed++ ? ", " : "; it has ", e->d_name);
        if (n < 0 || (used += (size_t)n) >= capacity) break;
    }
    if (directory) closedir(directory);
}

/* Whether a file of values lies there, whatever its name. */
static bool has_values(const char *path) {
    bool found = false;
    DIR *directory = opendir(path);
    for (struct dirent *e; directory && !found && (e = readdir(directory));)
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            size_t length = strlen(e->d_name), ending = strlen(endings[i]);
            found |= length >= ending && !strcmp(e->d_name + length - ending, endings[i]);
        }
    if (directory) closedir(directory);
    return found;
}

/* A folder without data is data of a model without inputs. */
static uir_status add_folder(const uir_model *model, const char *path, char ***list, size_t *count) {
    DIR *directory = opendir(path);
    if (!directory) {
        complain(NULL, "--data '%s': the folder cannot be opened: %s", path, strerror(errno));
        return UIR_STATUS_NOT_FOUND;
    }
    size_t before = *count, index;
    bool direct = false, failed = false;
    for (struct dirent *e; !failed && (e = readdir(directory));) {
        direct |= read_numbered(e->d_name, "input", &index) || read_numbered(e->d_name, "output", &index);
        if (!strncmp(e->d_name, "test_data_set_", 14)) failed = !push(list, count, join(path, e->d_name));
    }
    closedir(directory);
    if (failed) return out_of_memory();
    bool all_there = *count == before && !uir_model_input_count(model) && !has_values(path);
    if (direct || all_there) {
        while (*count > before) free((*list)[--*count]);
        return push(list, count, strdup(path)) ? UIR_STATUS_OK : out_of_memory();
    }
    if (*count == before) {
        char others[400];
        list_others(path, others, sizeof others);
        complain("name inputs input_0.pb, input_1.npy ... in the model's order, and expected outputs output_0.pb ..., "
                 "in this folder or in folders test_data_set_N of it; or give --input NAME=FILE",
                 "--data '%s': the folder has no data of a model%s", path, others);
        return UIR_STATUS_NOT_FOUND;
    }
    qsort(*list + before, *count - before, sizeof **list, compare_names);
    return UIR_STATUS_OK;
}

uir_status case_folders(const run_options *options, const uir_model *model, char ***out_folders, size_t *out_count) {
    *out_folders = NULL;
    *out_count = 0;
    for (size_t i = 0; i < options->data.count; i++) {
        uir_status status = add_folder(model, options->data.items[i], out_folders, out_count);
        if (status != UIR_STATUS_OK) return status;
    }
    return UIR_STATUS_OK;
}

/* ---- inputs with a default ---- */

/* How many numbers of a kind a folder's files have: one more than the greatest. */
static size_t count_numbered(const char *folder, const char *kind) {
    size_t count = 0, index;
    DIR *directory = opendir(folder);
    for (struct dirent *e; directory && (e = readdir(directory));)
        if (read_numbered(e->d_name, kind, &index) && index >= count) count = index + 1;
    if (directory) closedir(directory);
    return count;
}

static size_t count_defaults(const uir_model *model) {
    size_t count = 0;
    uir_default d;
    while (query_default(model, count, &d)) count++;
    return count;
}

/* The default at that place among all inputs that the model's file lists. */
static bool find_default(const uir_model *model, size_t place, uir_default *out_default) {
    for (size_t i = 0; query_default(model, i, out_default); i++)
        if (out_default->place == place) return true;
    return false;
}

/* All inputs that the file lists: those of the model, and defaults that are constants of it. */
static size_t count_listed(const uir_model *model) {
    size_t count = uir_model_input_count(model);
    uir_default d;
    for (size_t i = 0; query_default(model, i, &d); i++) count += !d.is_overridden;
    return count;
}

/* A folder with files beyond the model's inputs has them by the places of all inputs that the file lists. */
static bool is_by_place(const uir_model *model, const char *folder) {
    return count_defaults(model) && count_numbered(folder, "input") > uir_model_input_count(model);
}

/* The place of input `index` among all that the file lists. */
static size_t place_of(const uir_model *model, size_t index) {
    uir_default d;
    size_t place = 0;
    for (;; place++) {
        if (find_default(model, place, &d) && !d.is_overridden) continue;
        if (!index--) return place;
    }
}

static bool has_numbered(const char *folder, const char *kind, size_t wanted) {
    size_t index;
    bool found = false;
    DIR *directory = opendir(folder);
    for (struct dirent *e; directory && !found && (e = readdir(directory));)
        found = read_numbered(e->d_name, kind, &index) && index == wanted;
    if (directory) closedir(directory);
    return found;
}

static bool is_named(const run_options *options, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < options->inputs.count; i++)
        if (!strncmp(options->inputs.items[i], name, length) && options->inputs.items[i][length] == '=') return true;
    return false;
}

size_t case_find_overrides(const uir_model *model, const run_options *options, const char **out_names,
                           size_t capacity) {
    char **folders = NULL;
    size_t count = 0, folder_count = 0;
    uir_default d;
    if (!count_defaults(model)) return 0;
    bool asked = case_folders(options, model, &folders, &folder_count) == UIR_STATUS_OK && folder_count;
    bool by_place =
        asked && is_by_place(model, folders[0]) && count_numbered(folders[0], "input") <= count_listed(model);
    for (size_t i = 0; query_default(model, i, &d) && count < capacity; i++)
        if (!d.is_overridden && (is_named(options, d.name) || (by_place && has_numbered(folders[0], "input", d.place))))
            out_names[count++] = d.name;
    for (size_t i = 0; i < folder_count; i++) free(folders[i]);
    free(folders);
    return count;
}

/* ---- tolerance ---- */
#ifdef PROGRAM_COMPARES
/* What was rounded to a half type may differ by as much as its numbers do, whatever is stated for f32. */
static void loosen(const uir_model *model, uir_tolerance *tolerance, const char **stated) {
    uir_model_info info = query_info(model);
    uir_dtype dtype = accuracy_of(&info);
    uir_tolerance half = {.struct_size = sizeof half};
    if (dtype == UIR_DTYPE_F32 || uir_dtype_get_tolerance(dtype, &half) != UIR_STATUS_OK) return;
    if (tolerance->rtol >= half.rtol && tolerance->atol_relative_to_max >= half.atol_relative_to_max) return;
    tolerance->rtol = fmax(tolerance->rtol, half.rtol);
    tolerance->atol_relative_to_max = fmax(tolerance->atol_relative_to_max, half.atol_relative_to_max);
    *stated = dtype == UIR_DTYPE_F16 ? "precision f16" : "precision bf16";
}

/* What the command line says of the relative or of the absolute part takes that part's place. */
static void find_tolerance(const run_options *options, const uir_model *model, run_case *c) {
    const char *stated = NULL;
    c->tolerance = (uir_tolerance){.struct_size = sizeof c->tolerance, .rtol = -1, .atol_relative_to_max = -1};
    if (uir_model_get_tolerance(model, &c->tolerance) == UIR_STATUS_OK)
        stated = "the package";
    else
        stated = tolerance_find_beside(options->model, &c->tolerance);
    loosen(model, &c->tolerance, &stated);
    bool absolute = options->has_atol || options->has_atol_relative;
    if (options->has_rtol) c->tolerance.rtol = options->rtol;
    if (absolute) {
        c->tolerance.atol = options->atol;
        c->tolerance.atol_relative_to_max = options->atol_relative;
    }
    if (options->has_integer_atol) c->tolerance.integers = options->integer_atol;
    if (options->has_rtol && absolute) stated = NULL;
    bool said = options->has_rtol || absolute;
    snprintf(c->tolerance_source, sizeof c->tolerance_source, "%s%s%s", said ? "command line" : "",
             said && stated ? ", " : "",
             stated ? stated
             : said ? ""
                    : "default");
}
#endif

/* ---- ports ---- */
static const char *input_name(void *user, size_t index) {
    uir_model *model = user;
    return index < uir_model_input_count(model) ? uir_model_get_input_name(model, index) : NULL;
}

static const char *input_dim_name(void *user, size_t index) {
    uir_model *model = user;
    for (size_t i = 0; i < uir_model_input_count(model); i++) {
        uir_port port = query_input(model, i);
        for (uint32_t d = 0; d < port.rank; d++) {
            if (port.dims[d] < 0 && index-- == 0) return port.dim_names[d];
        }
    }
    return NULL;
}

/* What `candidate` lists, at most 32 of it, as the hint "label a b c". */
static void list_names(const char *label, const char *(*candidate)(void *user, size_t index), void *user, char *buffer,
                       size_t capacity) {
    size_t used = (size_t)snprintf(buffer, capacity, "%s", label);
    const char *name;
    for (size_t i = 0; i < 32 && used + 1 < capacity && (name = candidate(user, i)) != NULL; i++)
        used += (size_t)snprintf(buffer + used, capacity - used, " %s", name);
}

/* The input that "NAME=VALUE" means, and VALUE; SIZE_MAX with a message. A name may itself hold a '='. */
static size_t find_input(uir_model *model, const char *option, const char *text, const char **out_value) {
    const char *equals = options_split(option, text);
    if (!equals) return SIZE_MAX;
    for (size_t i = 0; i < uir_model_input_count(model); i++) {
        const char *have = uir_model_get_input_name(model, i);
        size_t length = strlen(have);
        if (strncmp(text, have, length) != 0 || text[length] != '=') continue;
        *out_value = text + length + 1;
        return i;
    }
    char word[128], names[1024];
    size_t length = (size_t)(equals - text);
    snprintf(word, sizeof word, "%.*s", (int)(length < 127 ? length : 127), text);
    const char *meant = nearest(word, input_name, model);
    list_names("inputs of the model:", input_name, model, names, sizeof names);
    complain(names, "--%s: the model has no input '%s'%s%s%s", option, word, meant ? "; did you mean '" : "",
             meant ? meant : "", meant ? "'?" : "");
    return SIZE_MAX;
}

/* "1x3x224x224" into at most `capacity` extents; the rank, or -1. */
static int parse_shape(const char *text, int64_t *out_dims, int capacity) {
    int rank = 0;
    if (!*text) return 0;
    while (rank < capacity) {
        const char *end = text + strcspn(text, "x,");
        char number[24];
        if (end == text || (size_t)(end - text) >= sizeof number) return -1;
        memcpy(number, text, (size_t)(end - text));
        number[end - text] = 0;
        if (!parse_count(number, &out_dims[rank++])) return -1;
        if (!*end) return rank;
        text = end + 1;
    }
    return -1;
}

enum { MAX_RANK = 16 };

typedef struct bindings {
    uir_dim_binding *items;
    char *names; /* storage of the names */
    size_t count;
} bindings;

static uir_status parse_bindings(const run_options *options, bindings *out_bindings) {
    size_t n = options->dims.count, bytes = 1;
    for (size_t i = 0; i < n; i++) bytes += strlen(options->dims.items[i]) + 1;
    out_bindings->items = calloc(n + 1, sizeof *out_bindings->items);
    out_bindings->names = calloc(1, bytes);
    if (!out_bindings->items || !out_bindings->names) return out_of_memory();
    char *at = out_bindings->names;
    for (size_t i = 0; i < n; i++) {
        const char *text = options->dims.items[i];
        if (!options_split("dim", text)) return UIR_STATUS_INVALID_ARGUMENT;
        const char *equals = strrchr(text, '='); /* a name may hold one, a number does not */
        uir_dim_binding *b = &out_bindings->items[out_bindings->count++];
        memcpy(at, text, (size_t)(equals - text));
        b->name = at;
        at += (equals - text) + 1;
        if (!parse_count(equals + 1, &b->value)) {
            complain(NULL, "--dim %s: a dim is a whole number of at least 0", text);
            return UIR_STATUS_INVALID_ARGUMENT;
        }
    }
    return UIR_STATUS_OK;
}

/* The shape of an input that no file gives: --shape, else its declared dims under --dim. */
static uir_status random_shape(uir_model *model, const run_options *options, const bindings *b, size_t index,
                               const uir_port *port, int64_t *out_dims, uint32_t *out_rank) {
    for (size_t i = 0; i < options->shapes.count; i++) {
        const char *text = options->shapes.items[i], *shape = "";
        if (find_input(model, "shape", text, &shape) != index) continue;
        int rank = parse_shape(shape, out_dims, MAX_RANK);
        if (rank < 0) {
            complain(NULL, "--shape %s is invalid: write %s=1x3x224x224, with at most %d dims", text, port->name,
                     MAX_RANK);
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        *out_rank = (uint32_t)rank;
        return UIR_STATUS_OK;
    }
    if (!port->rank_known) {
        complain(NULL, "input '%s' has no declared rank: give --shape %s=...", port->name, port->name);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    *out_rank = port->rank;
    return uir_model_get_input_shape(model, index, b->items, b->count, out_dims);
}

/* Integers are indices more often than not: small ones stay inside most tables. */
static uir_status make_random(uir_context *context, uir_model *model, const run_options *options, const bindings *b,
                              size_t index, uir_value **out_value) {
    uir_port port = query_input(model, index);
    if (port.kind != UIR_VALUE_TENSOR || port.dtype == UIR_DTYPE_STRING || port.dtype == UIR_DTYPE_NONE) {
        complain("give its data by --input NAME=FILE", "input '%s' cannot be filled with random values", port.name);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    int64_t dims[MAX_RANK];
    uint32_t rank = 0;
    uir_status status = random_shape(model, options, b, index, &port, dims, &rank);
    if (status == UIR_STATUS_OK) status = uir_value_create_tensor(context, port.dtype, rank, dims, out_value);
    if (status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_INVALID_ARGUMENT)
        complain("set its size by --dim or --shape", "input '%s' cannot be made up at this size", port.name);
    if (status != UIR_STATUS_OK) return status;
    const char *name = uir_dtype_get_name(port.dtype);
    bool is_float = name[0] == 'f' || name[0] == 'b';
    return uir_value_fill_random(*out_value, (uint64_t)options->random * 1000003u + index, is_float ? -1 : 0, 1);
}

static bool has_ending(const char *text, const char *ending) {
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && !strcmp(text + n - m, ending);
}

/* --input NAME=FILE[:MEMBER]; .raw takes its shape from --shape or the declared dims. */
static uir_status load_input(uir_context *context, uir_model *model, const run_options *options, const bindings *b,
                             size_t index, const char *file, uir_value **out_value, char **out_made) {
    uir_port port = query_input(model, index);
    if (has_ending(file, ".raw") || has_ending(file, ".bin")) {
        int64_t dims[MAX_RANK];
        uint32_t rank = 0;
        uir_status status = random_shape(model, options, b, index, &port, dims, &rank);
        return status != UIR_STATUS_OK ? status : uir_value_load_raw(context, file, port.dtype, rank, dims, out_value);
    }
    char *path = strdup(file);
    if (!path) return out_of_memory();
    char *member = strstr(path, ".npz:");
    if (member) {
        member[4] = 0;
        member += 5;
    }
    bool unnamed = !member && has_ending(path, ".npz");
    if (unnamed) member = (char *)(uintptr_t)port.name; /* of several arrays; else its only one, whatever its name */
    uir_status status = uir_value_load_file(context, path, member, port.kind, out_value);
    if (unnamed && status == UIR_STATUS_NOT_FOUND) {
        uir_context_clear_messages(context);
        status = uir_value_load_file(context, path, NULL, port.kind, out_value);
    }
    if (status == UIR_STATUS_OK && picture_is_path(path)) {
        int64_t dims[MAX_RANK];
        uint32_t rank = 0;
        char picture[MADE_ROOM], made[PICTURE_TEXT];
        status = random_shape(model, options, b, index, &port, dims, &rank);
        if (status == UIR_STATUS_OK)
            status = picture_prepare(context, out_value, &port, dims, rank, options->preprocess, picture);
        if (status == UIR_STATUS_OK)
            *out_made =
                strdup(picture_describe(port.name, path, picture, *out_value, options->preprocess, made, sizeof made));
        if (status == UIR_STATUS_OK && !*out_made) status = out_of_memory();
    }
    free(path);
    return status;
}

static uir_status load_numbered(uir_context *context, const char *folder, const char *kind, size_t index,
                                const uir_port *port, uir_value **out_value) {
    char *found = NULL;
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && status == UIR_STATUS_OK; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s_%zu%s", kind, index, endings[i]);
        char *path = join(folder, name);
        if (!path) {
            status = out_of_memory();
        } else if (file_exists(path) && found) {
            complain("remove one of them", "'%s' and '%s' are for the same %s '%s'", found, path, kind, port->name);
            status = UIR_STATUS_BAD_DATA;
        } else if (file_exists(path)) {
            found = path;
            path = NULL;
        }
        free(path);
    }
    if (status == UIR_STATUS_OK && found) status = uir_value_load_file(context, found, NULL, port->kind, out_value);
    free(found);
    return status;
}

/* Every numbered file of the folder is for something. */
static uir_status check_numbered(const char *folder, const char *kind, size_t count) {
    uir_status status = UIR_STATUS_OK;
    DIR *directory = opendir(folder);
    if (!directory) {
        complain(NULL, "--data '%s': the folder cannot be opened: %s", folder, strerror(errno));
        return UIR_STATUS_NOT_FOUND;
    }
    for (struct dirent *e; status == UIR_STATUS_OK && (e = readdir(directory));) {
        size_t index;
        if (!read_numbered(e->d_name, kind, &index) || index < count) continue;
        complain("check that the data is for this model", "'%s/%s' matches no %s: the model has %zu, numbered from 0",
                 folder, e->d_name, kind, count);
        status = UIR_STATUS_BAD_DATA;
    }
    closedir(directory);
    return status;
}

/* Names on the command line that the model lacks are wrong usage, whether they would matter or not. */
static uir_status check_names(uir_context *context, uir_model *model, const run_options *options, const bindings *b) {
    const char *value;
    for (size_t i = 0; i < options->shapes.count; i++) {
        if (find_input(model, "shape", options->shapes.items[i], &value) == SIZE_MAX)
            return UIR_STATUS_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < b->count; i++) {
        int64_t dims[MAX_RANK];
        char names[1024];
        bool found = uir_model_input_count(model) > 0;
        if (found) found = uir_model_get_input_shape(model, 0, &b->items[i], 1, dims) != UIR_STATUS_NOT_FOUND;
        uir_context_clear_messages(context); /* what else is wrong is told where the shape is needed */
        if (found) continue;
        const char *meant = nearest(b->items[i].name, input_dim_name, model);
        list_names("dims of the inputs:", input_dim_name, model, names, sizeof names);
        complain(names, "--dim: no input has a dim '%s'%s%s%s", b->items[i].name, meant ? "; did you mean '" : "",
                 meant ? meant : "", meant ? "'?" : "");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    return UIR_STATUS_OK;
}

static uir_status missing(const run_case *c, size_t index, const char *name) {
    complain("give --input NAME=FILE, or --random SEED to make up the inputs without a file",
             "--data '%s': input_%zu.pb or input_%zu.npy is missing, for input '%s'", c->folder, index, index, name);
    return UIR_STATUS_BAD_DATA;
}

/* What --dim and --shape say is so of every input, wherever it came from. */
static uir_status check_extents(uir_model *model, const run_options *options, const bindings *b, const run_case *c) {
    static const char hint[] = "leave out the option: files have their own shapes";
    for (size_t i = 0; i < c->input_count; i++) {
        uir_port port = query_input(model, i);
        const int64_t *shape = uir_value_get_shape(c->inputs[i]);
        uint32_t rank = uir_value_get_rank(c->inputs[i]);
        int64_t dims[MAX_RANK];
        if (uir_value_get_kind(c->inputs[i]) != UIR_VALUE_TENSOR) continue;
        for (size_t k = 0; k < options->shapes.count; k++) {
            const char *text = options->shapes.items[k], *written = "";
            if (find_input(model, "shape", text, &written) != i) continue;
            int count = parse_shape(written, dims, MAX_RANK);
            if (count == (int)rank && (!rank || !memcmp(shape, dims, rank * sizeof *shape))) continue;
            complain(hint, "--shape %s: the data of input '%s' have another shape", text, port.name);
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        for (uint32_t d = 0; port.rank_known && port.rank == rank && d < rank; d++) {
            for (size_t k = 0; k < b->count && port.dims[d] < 0; k++) {
                if (strcmp(b->items[k].name, port.dim_names[d]) != 0 || b->items[k].value == shape[d]) continue;
                complain(hint, "--dim %s=%lld: axis %u of the data of input '%s' is %lld", b->items[k].name,
                         (long long)b->items[k].value, d, port.name, (long long)shape[d]);
                return UIR_STATUS_INVALID_ARGUMENT;
            }
        }
    }
    return UIR_STATUS_OK;
}

static uir_status load_case(uir_context *context, uir_model *model, const run_options *options, const bindings *b,
                            run_case *c) {
    uir_status status = check_names(context, model, options, b);
    if (status != UIR_STATUS_OK) return status;
    for (size_t i = 0; i < options->inputs.count; i++) {
        const char *file = "";
        size_t index = find_input(model, "input", options->inputs.items[i], &file);
        if (index == SIZE_MAX) return UIR_STATUS_INVALID_ARGUMENT;
        uir_value_destroy(c->inputs[index]);
        c->inputs[index] = NULL;
        free(c->made[index]);
        c->made[index] = NULL;
        status = load_input(context, model, options, b, index, file, &c->inputs[index], &c->made[index]);
        if (status != UIR_STATUS_OK) return status;
        c->sources[index] = SOURCE_FILE;
    }
    for (size_t i = 0; options->archive && i < c->input_count; i++) {
        uir_port port = query_input(model, i);
        if (c->inputs[i]) continue;
        status = uir_value_load_file(context, options->archive, port.name, port.kind, &c->inputs[i]);
        if (status != UIR_STATUS_OK) return status;
        c->sources[i] = SOURCE_FILE;
    }
    bool by_place = c->folder && is_by_place(model, c->folder);
    if (c->folder) status = check_numbered(c->folder, "input", by_place ? count_listed(model) : c->input_count);
    uir_default constant;
    for (size_t i = 0; by_place && status == UIR_STATUS_OK && query_default(model, i, &constant); i++) {
        if (constant.is_overridden || !has_numbered(c->folder, "input", constant.place)) continue;
        complain("give --override NAME to make it an input of the run; for a package, give it to uir-pack",
                 "'%s' has an input_%u for '%s', which is a constant of this model", c->folder, constant.place,
                 constant.name);
        status = UIR_STATUS_BAD_DATA;
    }
    if (status == UIR_STATUS_OK && c->folder) status = check_numbered(c->folder, "output", c->output_count);
    if (status != UIR_STATUS_OK) return status;
    for (size_t i = 0; i < c->input_count; i++) {
        if (c->inputs[i]) continue;
        uir_port port = query_input(model, i);
        c->sources[i] = SOURCE_DATA;
        size_t number = by_place ? place_of(model, i) : i;
        status = c->folder ? load_numbered(context, c->folder, "input", number, &port, &c->inputs[i]) : UIR_STATUS_OK;
        if (status == UIR_STATUS_OK && !c->inputs[i]) {
            bool lacks = c->folder && !options->has_random;
            c->sources[i] = lacks ? SOURCE_NONE : SOURCE_RANDOM;
            status = lacks ? missing(c, number, port.name) : make_random(context, model, options, b, i, &c->inputs[i]);
        }
        if (status != UIR_STATUS_OK) return status;
    }
    status = check_extents(model, options, b, c);
    if (status != UIR_STATUS_OK) return status;
    for (size_t i = 0; c->folder && i < c->output_count; i++) {
        uir_port port = query_output(model, i);
        status = load_numbered(context, c->folder, "output", i, &port, &c->expected[i]);
        if (status != UIR_STATUS_OK) return status;
        c->has_expected |= c->expected[i] != NULL;
    }
    return UIR_STATUS_OK;
}

uir_status case_load(uir_context *context, uir_model *model, const run_options *options, const char *folder,
                     run_case *out_case) {
    memset(out_case, 0, sizeof *out_case);
    out_case->folder = folder;
    out_case->input_count = uir_model_input_count(model);
    out_case->output_count = uir_model_output_count(model);
    out_case->inputs = calloc(out_case->input_count + 1, sizeof *out_case->inputs);
    out_case->made = calloc(out_case->input_count + 1, sizeof *out_case->made);
    out_case->sources = calloc(out_case->input_count + 1, sizeof *out_case->sources);
    out_case->expected = calloc(out_case->output_count + 1, sizeof *out_case->expected);
    if (!out_case->inputs || !out_case->made || !out_case->sources || !out_case->expected) return out_of_memory();
#ifdef PROGRAM_COMPARES
    find_tolerance(options, model, out_case);
#endif
    bindings b = {0};
    uir_status status = parse_bindings(options, &b);
    if (status == UIR_STATUS_OK) status = load_case(context, model, options, &b, out_case);
    free(b.items);
    free(b.names);
    return status;
}

void case_free(run_case *c) {
    for (size_t i = 0; c->inputs && i < c->input_count; i++) uir_value_destroy(c->inputs[i]);
    for (size_t i = 0; c->expected && i < c->output_count; i++) uir_value_destroy(c->expected[i]);
    for (size_t i = 0; c->made && i < c->input_count; i++) free(c->made[i]);
    free(c->inputs);
    free(c->made);
    free(c->sources);
    free(c->expected);
    memset(c, 0, sizeof *c);
}

uir_status case_cost(uir_context *context, uir_model *model, uir_session *session, const run_options *options,
                     uir_cost *out_cost) {
    bindings b = {0};
    uir_status status = parse_bindings(options, &b);
    if (status == UIR_STATUS_OK) status = check_names(context, model, options, &b);
    if (status == UIR_STATUS_OK) status = uir_session_get_cost(session, b.items, b.count, out_cost);
    free(b.items);
    free(b.names);
    return status;
}
