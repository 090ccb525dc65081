#include "tests/base/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s\n", path, line, what);
    exit(1);
}

static void *take(const char *path, void *memory) {
    if (!memory) fail(path, 0, "no memory");
    return memory;
}

static char *copy(const char *path, const char *text) {
    return strcpy(take(path, malloc(strlen(text) + 1)), text);
}

/* A line more; `*text` NULL: the first. */
static void append_line(const char *path, char **text, const char *line) {
    size_t before = *text ? strlen(*text) : 0, length = strlen(line);
    *text = take(path, realloc(*text, before + length + 2));
    memcpy(*text + before, line, length);
    memcpy(*text + before + length, "\n", 2);
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail(path, 0, "cannot be read");
    long size = ftell(file);
    rewind(file);
    char *text = take(path, calloc((size_t)size + 1, 1));
    if (fread(text, 1, (size_t)size, file) != (size_t)size) fail(path, 0, "cannot be read");
    fclose(file);
    return text;
}

/* ---- reading ---- */
/* The value of a line "# word: value"; NULL: it is another. */
static const char *find_value(const char *line, const char *word) {
    size_t length = strlen(word);
    bool is = !strncmp(line, "# ", 2) && !strncmp(line + 2, word, length) && !strncmp(line + 2 + length, ": ", 2);
    return is ? line + length + 4 : NULL;
}

static bool take_heading(golden_file *file, golden_case *c, char *line, int number) {
    char *colon = strstr(line, ": ");
    if (c->input || strncmp(line, "# ", 2) != 0 || !colon) return false;
    if (c->heading_count == GOLDEN_HEADINGS) fail(file->path, number, "too many headings");
    *colon = 0;
    c->words[c->heading_count] = line + 2;
    c->values[c->heading_count++] = colon + 2;
    return true;
}

static void take_line(golden_file *file, char *line, int number) {
    golden_case *c = file->count ? &file->cases[file->count - 1] : NULL;
    const char *title = find_value(line, file->word), *failure = find_value(line, "fail");
    if (title) {
        file->cases = take(file->path, realloc(file->cases, ((size_t)file->count + 1) * sizeof *file->cases));
        file->cases[file->count++] = (golden_case){.title = title, .line = number};
    } else if (!c) {
        append_line(file->path, &file->comment, line);
    } else if (failure) {
        if (c->fail_count == GOLDEN_FAILS) fail(file->path, number, "too many messages");
        c->fails[c->fail_count++] = failure;
    } else if (!strcmp(line, "# expect")) {
        c->expect = copy(file->path, "");
    } else if (!take_heading(file, c, line, number)) {
        append_line(file->path, c->expect ? &c->expect : &c->input, line);
    }
}

golden_file golden_read(const char *path, const char *word) {
    golden_file file = {.path = copy(path, path), .word = copy(path, word), .text = read_text(path)};
    int number = 1;
    for (char *line = file.text, *next; *line; line = next, number++) {
        next = strchr(line, '\n');
        if (!next) fail(path, number, "the last line has no end");
        *next++ = 0;
        take_line(&file, line, number);
    }
    for (int i = 0; i < file.count; i++)
        if (!file.cases[i].input) fail(path, file.cases[i].line, "the case has no text");
    return file;
}

void golden_free(golden_file *file) {
    for (int i = 0; i < file->count; i++) {
        free(file->cases[i].input);
        free(file->cases[i].expect);
        free(file->cases[i].made);
    }
    free(file->cases);
    free(file->comment);
    free(file->text);
    free(file->word);
    free(file->path);
}

const char *golden_get(const golden_case *c, const char *word) {
    for (int i = 0; i < c->heading_count; i++)
        if (!strcmp(c->words[i], word)) return c->values[i];
    return "";
}

/* ---- writing ---- */
void golden_keep(golden_case *c, const char *text) {
    free(c->made);
    c->made = copy(c->title, text);
}

void golden_write(const golden_file *file) {
    FILE *out = fopen(file->path, "wb");
    if (!out) fail(file->path, 0, "cannot be written");
    if (file->comment) fputs(file->comment, out);
    for (int i = 0; i < file->count; i++) {
        const golden_case *c = &file->cases[i];
        fprintf(out, "# %s: %s\n", file->word, c->title);
        for (int k = 0; k < c->heading_count; k++) fprintf(out, "# %s: %s\n", c->words[k], c->values[k]);
        fputs(c->input, out);
        for (int k = 0; k < c->fail_count; k++) fprintf(out, "# fail: %s\n", c->fails[k]);
        if (!c->fail_count) fprintf(out, "# expect\n%s", c->made ? c->made : c->expect ? c->expect : "");
    }
    if (fclose(out)) fail(file->path, 0, "cannot be written whole");
}
