#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum {
    DIAGNOSTIC_LIMIT = 1000,
    QUOTE_LIMIT = 16384, /* bytes of another program's words */
    TEXT_LIMIT = 4096,   /* bytes of one message, name or hint */
    LINE_WINDOW = 160,   /* bytes of a source line shown around the column */
    EDIT_LIMIT = 64
};

typedef struct status_row {
    const char *text;
    int exit_code;
} status_row;

#define STATUS_ROW(constant, value, text, exit_code) [value] = {text, exit_code},
static const status_row status_rows[] = {UIR_STATUS_TABLE(STATUS_ROW)};
#undef STATUS_ROW

static const char *const severity_texts[] = {
    [UIR_SEVERITY_NOTE] = "note", [UIR_SEVERITY_WARNING] = "warning", [UIR_SEVERITY_ERROR] = "error"};

const char *uir_status_text(uir_status status) {
    return (unsigned)status < UIR_STATUS_COUNT ? status_rows[status].text : "unknown status";
}

int uir_status_exit_code(uir_status status) {
    return (unsigned)status < UIR_STATUS_COUNT ? status_rows[status].exit_code
                                               : status_rows[UIR_STATUS_INTERNAL].exit_code;
}

#define VERSION_TEXT(x)              #x
#define VERSION(major, minor, patch) VERSION_TEXT(major) "." VERSION_TEXT(minor) "." VERSION_TEXT(patch)

const char *uir_version(void) {
    return VERSION(UIR_VERSION_MAJOR, UIR_VERSION_MINOR, UIR_VERSION_PATCH);
}

uint32_t uir_version_number(void) {
    return UIR_VERSION_NUMBER;
}

void uir_diagnostics_init(uir_diagnostics *diagnostics, const uir_allocator *allocator) {
    *diagnostics = (uir_diagnostics){.limit = DIAGNOSTIC_LIMIT};
    uir_arena_init(&diagnostics->arena, allocator);
}

void uir_diagnostics_deinit(uir_diagnostics *diagnostics) {
    uir_arena_deinit(&diagnostics->arena);
    diagnostics->first = diagnostics->last = NULL;
    diagnostics->count = diagnostics->dropped = diagnostics->error_count = 0;
}

void uir_diagnostics_clear(uir_diagnostics *diagnostics) {
    uir_arena_reset(&diagnostics->arena);
    diagnostics->first = diagnostics->last = NULL;
    diagnostics->count = diagnostics->dropped = diagnostics->error_count = 0;
}

/* Length of the well-formed UTF-8 sequence at `text` (Unicode 15, table 3-7), 0 when there is none. C1 controls count
 * as malformed: terminals act on them. */
static size_t utf8_length(const unsigned char *text, size_t left) {
    unsigned char lead = text[0];
    size_t length = lead < 0x80                   ? 1
                    : lead >= 0xc2 && lead < 0xe0 ? 2
                    : (lead & 0xf0) == 0xe0       ? 3
                    : lead >= 0xf0 && lead < 0xf5 ? 4
                                                  : 0;
    if (length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (lead == 0xc2 && text[1] < 0xa0) return 0;
    if (lead == 0xe0 && text[1] < 0xa0) return 0;
    if (lead == 0xed && text[1] >= 0xa0) return 0;
    if (lead == 0xf0 && text[1] < 0x90) return 0;
    if (lead == 0xf4 && text[1] >= 0x90) return 0;
    return length;
}

/* Copies text into the arena with everything that a terminal could act on spelled \xNN; a tab becomes a space. When
 * `caret` is given it is a byte offset into the text and becomes the matching one of the copy, counted in characters.
 */
static const char *printable(uir_arena *arena, const char *text, size_t length, uint32_t *caret) {
    static const char digits[] = "0123456789abcdef";
    if (length > TEXT_LIMIT) length = TEXT_LIMIT;
    char *copy = uir_arena_allocate(arena, length * 4 + 1);
    if (!copy) return NULL;
    size_t out = 0, columns = 0;
    bool caret_open = caret != NULL;
    for (size_t i = 0; i < length;) {
        unsigned char byte = (unsigned char)text[i];
        if (caret_open && i >= *caret) {
            *caret = (uint32_t)columns;
            caret_open = false;
        }
        size_t sequence = utf8_length((const unsigned char *)text + i, length - i);
        if (byte == '\t') {
            copy[out++] = ' ';
            i++;
            columns++;
        } else if (sequence == 0 || byte < 0x20 || byte == 0x7f) {
            copy[out++] = '\\';
            copy[out++] = 'x';
            copy[out++] = digits[byte >> 4];
            copy[out++] = digits[byte & 15];
            i++;
            columns += 4;
        } else {
            memcpy(copy + out, text + i, sequence);
            out += sequence;
            i += sequence;
            columns++;
        }
    }
    if (caret_open) *caret = (uint32_t)columns;
    copy[out] = 0;
    return copy;
}

static const char *printable_string(uir_arena *arena, const char *text, bool *ok) {
    if (!text) return NULL;
    const char *copy = printable(arena, text, strlen(text), NULL);
    if (!copy) *ok = false;
    return copy;
}

/* The part of the line around the column. */
static const char *line_window(uir_arena *arena, const uir_location *location, uint32_t *caret, bool *ok) {
    if (!location->line_text) return NULL;
    size_t length = strcspn(location->line_text, "\n"), begin = 0;
    size_t column = location->column ? location->column - 1 : 0;
    column -= column > location->line_text_skipped ? location->line_text_skipped : column;
    if (column > length) column = length;
    if (length > LINE_WINDOW) {
        begin = column > LINE_WINDOW / 2 ? column - LINE_WINDOW / 2 : 0;
        if (length - begin > LINE_WINDOW) length = begin + LINE_WINDOW;
    }
    *caret = (uint32_t)(column - begin);
    const char *copy = printable(arena, location->line_text + begin, length - begin, caret);
    if (!copy) *ok = false;
    return copy;
}

/* Line by line, each printable; empty lines at the end are left out. */
static const char *printable_lines(uir_arena *arena, const char *text, bool *ok) {
    if (!text || !*ok) return NULL;
    size_t length = strlen(text), out = 0;
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) length--;
    if (length > QUOTE_LIMIT) length = QUOTE_LIMIT;
    char *copy = uir_arena_allocate(arena, length * 4 + 1);
    *ok = copy != NULL;
    for (size_t at = 0; copy && at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t size = end ? (size_t)(end - text) - at : length - at;
        const char *line = printable(arena, text + at, size, NULL);
        *ok &= line != NULL;
        if (!line) return NULL;
        size_t shown = strlen(line);
        memcpy(copy + out, line, shown);
        out += shown;
        at += size + 1;
        if (at < length) copy[out++] = '\n';
    }
    if (copy) copy[out] = 0;
    return copy;
}

static void add(uir_diagnostics *diagnostics, uir_severity severity, uir_status status, const uir_location *location,
                const char *hint, const char *format, va_list arguments) {
    if (!diagnostics) return;
    if (severity == UIR_SEVERITY_ERROR) diagnostics->error_count++;
    if (diagnostics->count >= diagnostics->limit) {
        diagnostics->dropped++;
        return;
    }
    char message[TEXT_LIMIT];
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length < 0) message[0] = 0;

    uir_arena *arena = &diagnostics->arena;
    uir_diagnostic *diagnostic = uir_arena_allocate(arena, sizeof *diagnostic);
    bool ok = diagnostic != NULL;
    if (ok) {
        diagnostic->severity = severity;
        diagnostic->status = status;
        diagnostic->message = printable_string(arena, message, &ok);
        diagnostic->hint = printable_string(arena, hint, &ok);
        if (location) {
            diagnostic->location = *location;
            diagnostic->location.file = printable_string(arena, location->file, &ok);
            diagnostic->location.node = printable_string(arena, location->node, &ok);
            diagnostic->location.op = printable_string(arena, location->op, &ok);
            diagnostic->location.quote = printable_lines(arena, location->quote, &ok);
            diagnostic->location.line_text = line_window(arena, location, &diagnostic->caret, &ok);
        }
    }
    if (!ok) {
        diagnostics->dropped++;
        return;
    }
    if (diagnostics->last)
        diagnostics->last->next = diagnostic;
    else
        diagnostics->first = diagnostic;
    diagnostics->last = diagnostic;
    diagnostics->count++;
}

uir_status uir_error(uir_diagnostics *diagnostics, uir_status status, const uir_location *location, const char *format,
                     ...) {
    va_list arguments;
    va_start(arguments, format);
    add(diagnostics, UIR_SEVERITY_ERROR, status, location, NULL, format, arguments);
    va_end(arguments);
    return status;
}

uir_status uir_error_hint(uir_diagnostics *diagnostics, uir_status status, const uir_location *location,
                          const char *hint, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(diagnostics, UIR_SEVERITY_ERROR, status, location, hint, format, arguments);
    va_end(arguments);
    return status;
}

void uir_warning(uir_diagnostics *diagnostics, const uir_location *location, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(diagnostics, UIR_SEVERITY_WARNING, UIR_STATUS_OK, location, NULL, format, arguments);
    va_end(arguments);
}

/* snprintf that goes on: `length` counts what is needed, the buffer takes what fits. */
typedef struct writer {
    char *buffer;
    size_t capacity, length;
} writer;

static void put(writer *w, const char *format, ...) UIR_PRINTF(2, 3);
static void put(writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool room = w->length < w->capacity;
    int length = vsnprintf(room ? w->buffer + w->length : NULL, room ? w->capacity - w->length : 0, format, arguments);
    va_end(arguments);
    if (length > 0) w->length += (size_t)length;
}

size_t uir_diagnostic_format(const uir_diagnostic *diagnostic, char *buffer, size_t capacity) {
    const uir_location *location = &diagnostic->location;
    writer w = {buffer, capacity, 0};
    if (location->file) {
        put(&w, "%s:", location->file);
        if (location->line) put(&w, "%u:", (unsigned)location->line);
        if (location->line && location->column) put(&w, "%u:", (unsigned)location->column);
        put(&w, " ");
    } else if (location->line) {
        put(&w, "line %u: ", (unsigned)location->line);
    }
    if (location->has_offset) put(&w, "at byte %llu: ", (unsigned long long)location->offset);
    put(&w, "%s: ", severity_texts[diagnostic->severity]);
    bool named = location->node && location->node[0], typed = location->op && location->op[0];
    if (named && typed)
        put(&w, "node '%s' (%s): ", location->node, location->op);
    else if (named)
        put(&w, "node '%s': ", location->node);
    else if (typed)
        put(&w, "%s: ", location->op);
    put(&w, "%s", diagnostic->message);
    if (location->line_text) {
        put(&w, "\n    %s", location->line_text);
        if (location->column) put(&w, "\n    %*s^", (int)diagnostic->caret, "");
    }
    for (const char *line = location->quote; line && *line;) {
        int length = (int)strcspn(line, "\n");
        put(&w, "\n    %.*s", length, line);
        line += length + (line[length] == '\n');
    }
    if (diagnostic->hint) put(&w, "\n  hint: %s", diagnostic->hint);
    return w.length;
}

/* Damerau-Levenshtein distance in its "optimal string alignment" form: three rolling rows. */
uint32_t uir_edit_distance(const char *a, const char *b) {
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > EDIT_LIMIT || b_length > EDIT_LIMIT) return UINT32_MAX / 2;
    uint32_t rows[3][EDIT_LIMIT + 1];
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= a_length; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3], *above_two = rows[(i + 1) % 3];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= b_length; j++) {
            uint32_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above_two[j - 2] + 1 < best)
                best = above_two[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *uir_find_nearest(const char *word, const char *(*candidate)(void *user, size_t index), void *user) {
    const char *best = NULL, *name;
    size_t best_distance = strlen(word) / 3 + 2;
    for (size_t i = 0; (name = candidate(user, i)) != NULL; i++) {
        size_t distance = uir_edit_distance(word, name);
        if (!*name || distance >= best_distance) continue;
        best = name;
        best_distance = distance;
    }
    return best;
}
