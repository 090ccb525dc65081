/* Parsing of the command line, driven by options.def: `--name value`, `--name=value`, one model. */
#include "options.h"
#include "printable.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind {
    KIND_FLAG,
    KIND_ACTION,
    KIND_TEXT,
    KIND_WORD,
    KIND_LIST,
    KIND_REAL,
    KIND_COUNT,
    KIND_SIZE,
    KIND_LIMIT
} option_kind;

typedef struct option_row {
    const char *name, *argument;
    option_kind kind;
    size_t offset;     /* of the field */
    size_t has_offset; /* of has_FIELD; the field itself for kinds without one */
    const char *help;
    const char *lacks; /* why this program cannot do it; NULL: it can */
    uint64_t scale;    /* of a limit: units of the field in one of the option */
} option_row;

#define HAS_FLAG(field)   offsetof(run_options, field)
#define HAS_ACTION(field) offsetof(run_options, field)
#define HAS_TEXT(field)   offsetof(run_options, field)
#define HAS_WORD(field)   offsetof(run_options, field)
#define HAS_LIST(field)   offsetof(run_options, field)
#define HAS_REAL(field)   offsetof(run_options, has_##field)
#define HAS_COUNT(field)  offsetof(run_options, has_##field)
#define HAS_SIZE(field)   offsetof(run_options, has_##field)
static const option_row rows[] = {
#define ROW(long_name, argument, kind, field, help, lacks)                                                             \
    {long_name, argument, KIND_##kind, offsetof(run_options, field), HAS_##kind(field), help, lacks, 0},
#define OPTION(long_name, argument, kind, field, help) ROW(long_name, argument, kind, field, help, NULL)
#define COMPILER_OPTION(long_name, argument, kind, field, help)                                                        \
    ROW(long_name, argument, kind, field, help, PROGRAM_LACKS_COMPILER)
#define JSON_OPTION(long_name, argument, kind, field, help)                                                            \
    ROW(long_name, argument, kind, field, help, PROGRAM_LACKS_JSON)
#define LIMIT_ROW(constant, field, option, scale, base, per_byte, what, help)                                          \
    {"limit-" option, "N|none", KIND_LIMIT, offsetof(run_options, limits.field), 0, help, NULL, scale},
#include PROGRAM_OPTIONS
    UIR_LIMIT_TABLE(LIMIT_ROW)
#undef LIMIT_ROW
#undef OPTION
#undef COMPILER_OPTION
#undef JSON_OPTION
#undef ROW
};
static const char *const short_names[][2] = {{"-h", "--help"}, {"-o", "--output"}};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

bool parse_count(const char *text, int64_t *out_value) {
    if (*text < '0' || *text > '9') return false;
    int64_t value = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > (INT64_MAX - (*text - '0')) / 10) return false;
        value = value * 10 + (*text - '0');
    }
    *out_value = value;
    return true;
}

/* "1536", "500M", "8G": powers of 1024. */
static bool parse_size(const char *text, int64_t *out_value) {
    static const char units[] = "KMGT";
    char digits[24];
    size_t length = strspn(text, "0123456789");
    if (length >= sizeof digits) return false;
    memcpy(digits, text, length);
    digits[length] = 0;
    if (!parse_count(digits, out_value)) return false;
    text += length;
    if (!*text) return true;
    const char *unit = strchr(units, *text >= 'a' ? *text - 'a' + 'A' : *text);
    if (!unit || text[1]) return false;
    int shift = 10 * (int)(unit - units + 1);
    if (*out_value > INT64_MAX >> shift) return false;
    *out_value <<= shift;
    return true;
}

bool parse_real(const char *text, double *out_value) {
    char *end;
    errno = 0;
    double value = strtod(text, &end); /* main never calls setlocale: the C locale holds */
    if (end == text || *end || value != value) return false;
    *out_value = value;
    return true;
}

/* A size, or a number times `scale`; "none". */
static bool parse_limit(const char *text, uint64_t scale, uint64_t *out_value) {
    int64_t size;
    double number;
    if (!strcmp(text, "none")) {
        *out_value = UIR_NO_LIMIT;
        return true;
    }
    if (scale == 1) {
        if (!parse_size(text, &size)) return false;
        *out_value = (uint64_t)size;
    } else {
        if (!parse_real(text, &number) || !(number > 0) || number > 1e9) return false;
        number *= (double)scale;
        *out_value = number < 1 ? 1 : (uint64_t)number;
    }
    return *out_value > 0;
}

/* Levenshtein distance; long words never match. */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 63 };
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *nearest(const char *text, const char *(*candidate)(void *user, size_t index), void *user) {
    const char *best = NULL;
    size_t best_distance = 1 + strlen(text) / 3;
    for (size_t i = 0;; i++) {
        const char *name = candidate(user, i);
        if (!name) return best;
        size_t d = distance(text, name);
        if (d <= best_distance) {
            best = name;
            best_distance = d ? d - 1 : 0;
        }
    }
}

static const char *option_name(void *user, size_t index) {
    (void)user;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (!rows[i].lacks && index-- == 0) return rows[i].name;
    return NULL;
}

const char *options_split(const char *option, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        complain(NULL, "--%s needs NAME=VALUE, not '%s'", option, text);
        return NULL;
    }
    return equals;
}

static uir_status usage_error(const char *what, const char *text) {
    complain("try: " PROGRAM " --help", "%s '%s'", what, text);
    return UIR_STATUS_INVALID_ARGUMENT;
}

static uir_status set_field(run_options *options, const option_row *row, const char *value) {
    char *field = (char *)options + row->offset;
    bool *has = (bool *)(void *)((char *)options + row->has_offset);
    switch (row->kind) {
    case KIND_FLAG:
    case KIND_ACTION:
        *(bool *)(void *)field = true;
        return UIR_STATUS_OK;
    case KIND_TEXT:
    case KIND_WORD:
        *(const char **)(void *)field = value;
        return UIR_STATUS_OK;
    case KIND_LIST: {
        option_list *list = (option_list *)(void *)field;
        const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
        if (!items) return UIR_STATUS_OUT_OF_MEMORY;
        items[list->count++] = value;
        list->items = items;
        return UIR_STATUS_OK;
    }
    case KIND_REAL:
        if (!parse_real(value, (double *)(void *)field) || *(double *)(void *)field < 0) break;
        *has = true;
        return UIR_STATUS_OK;
    case KIND_COUNT:
        if (!parse_count(value, (int64_t *)(void *)field)) break;
        *has = true;
        return UIR_STATUS_OK;
    case KIND_SIZE:
        *has = parse_size(value, (int64_t *)(void *)field);
        if (*has) return UIR_STATUS_OK;
        complain("try " PROGRAM " --help", "--%s needs a number of bytes such as 500M or 8G, not '%s'", row->name,
                 value);
        return UIR_STATUS_INVALID_ARGUMENT;
    case KIND_LIMIT:
        if (parse_limit(value, row->scale, (uint64_t *)(void *)field)) return UIR_STATUS_OK;
        complain("try " PROGRAM " --help", "--%s needs a number above 0, or none, not '%s'", row->name, value);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    complain(NULL, "--%s needs a number of at least 0, not '%s'", row->name, value);
    return UIR_STATUS_INVALID_ARGUMENT;
}

static const option_row *find_row(const char *name, size_t length) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length)) return &rows[i];
    }
    return NULL;
}

uir_status options_parse(int argc, char **argv, run_options *out_options) {
    memset(out_options, 0, sizeof *out_options);
    UIR_INIT(&out_options->limits);
    bool only_names = false;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (only_names || argument[0] != '-' || !argument[1]) {
            if (out_options->model) return usage_error("one model at a time; unexpected", argument);
            out_options->model = argument;
            continue;
        }
        if (!strcmp(argument, "--")) {
            only_names = true;
            continue;
        }
        for (size_t k = 0; k < sizeof short_names / sizeof *short_names; k++)
            if (!strcmp(argument, short_names[k][0])) argument = short_names[k][1];
        const char *name = argument + 2;
        const char *equals = argument[1] == '-' ? strchr(name, '=') : NULL;
        size_t length = equals ? (size_t)(equals - name) : strlen(argument) - 1 - (argument[1] == '-');
        const option_row *row = argument[1] == '-' ? find_row(name, length) : NULL;
        if (!row) {
            char word[64];
            snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63),
                     argument[1] == '-' ? name : argument + 1);
            const char *meant = nearest(word, option_name, NULL);
            complain("try: " PROGRAM " --help", "unknown option '%s'%s%s%s", argument, meant ? "; did you mean --" : "",
                     meant ? meant : "", meant ? "?" : "");
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        if (row->lacks) {
            complain("give the model of the package to uir-run, which has this option",
                     "--%s is not available in this " PROGRAM ": %s", row->name, row->lacks);
            return UIR_STATUS_UNSUPPORTED;
        }
        const char *value = equals ? equals + 1 : NULL;
        if (!row->argument && value) return usage_error("this option takes no value:", argument);
        if (row->kind == KIND_WORD && !value) value = "";
        if (row->argument && !value) {
            if (i + 1 >= argc) {
                complain(NULL, "--%s needs a value: --%s %s", row->name, row->name, row->argument);
                return UIR_STATUS_INVALID_ARGUMENT;
            }
            value = argv[++i];
        }
        uir_status status = set_field(out_options, row, value);
        if (status != UIR_STATUS_OK) return status;
    }
    return UIR_STATUS_OK;
}

void options_free(run_options *options) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].kind == KIND_LIST) free(((option_list *)(void *)((char *)options + rows[i].offset))->items);
    }
}

/* Words of `text` from `column` on, wrapped before `width`; later lines start at `indent`. */
void print_wrapped(FILE *stream, const char *text, int column, int indent, int width) {
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + length + 1 > width) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', stream);
            column++;
        }
        fwrite(text, 1, (size_t)length, stream);
        column += length;
        text += length;
        text += *text == ' ';
    }
    fputc('\n', stream);
}

void options_print_help(FILE *stream, int width) {
    enum { LEFT = 25, NARROW = 60 };
    if (width < 20) width = 20;
    int left = width < NARROW ? 6 : LEFT;
    print_wrapped(stream, PROGRAM_USAGE, 0, 0, width);
    print_wrapped(stream, PROGRAM_PURPOSE, 0, 0, width);
    fputc('\n', stream);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        bool has_argument = rows[i].argument != NULL;
        if (rows[i].lacks) continue;
        int used = fprintf(stream, "  --%s%s%s", rows[i].name,
                           rows[i].kind == KIND_WORD ? "[="
                           : has_argument            ? " "
                                                     : "",
                           has_argument ? rows[i].argument : "");
        if (used >= left)
            fprintf(stream, "\n%*s", left, "");
        else
            fprintf(stream, "%*s", left - used, "");
        print_wrapped(stream, rows[i].help, left, left, width);
    }
    fputc('\n', stream);
    print_wrapped(stream, PROGRAM_EXITS, 0, 0, width);
}
