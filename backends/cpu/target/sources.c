/* Sources to bytes and back. */
#include "backends/cpu/target/sources.h"

#include "backends/cpu/target/compile.h"

#include <stdio.h>
#include <string.h>

#define WORD "uir sources 1 "
enum { LINE_MAX_BYTES = 80 };

void uir_cpu_sources_begin(uir_text *sources, uint32_t files, const uir_text *common) {
    uir_text_append_format(sources, WORD "%u %zu\n", files, common->length);
    uir_text_append(sources, common->data, common->length);
}

void uir_cpu_sources_add(uir_text *sources, const uir_text *head, const uir_text *own) {
    uir_text_append_format(sources, "%zu %zu\n", head->length, own->length);
    uir_text_append(sources, head->data, head->length);
    if (own->length) uir_text_append(sources, own->data, own->length);
}

typedef struct reading {
    const char *at, *end;
} reading;

/* A line of two numbers behind a word. */
static bool read_line(reading *r, const char *word, size_t *out_first, size_t *out_second) {
    char line[LINE_MAX_BYTES], rest;
    size_t left = (size_t)(r->end - r->at), skip = strlen(word);
    const char *stop = memchr(r->at, '\n', left < sizeof line ? left : sizeof line - 1);
    if (!stop || (size_t)(stop - r->at) < skip || memcmp(r->at, word, skip) != 0) return false;
    memcpy(line, r->at, (size_t)(stop - r->at));
    line[stop - r->at] = 0;
    if (line[skip] < '0' || line[skip] > '9') return false;
    r->at = stop + 1;
    return sscanf(line + skip, "%zu %zu%c", out_first, out_second, &rest) == 2;
}

static bool read_part(reading *r, size_t size, const char **out_part) {
    if (size > (size_t)(r->end - r->at)) return false;
    *out_part = r->at;
    r->at += size;
    return true;
}

/* `file` is scratch. */
static uir_status write_files(reading *r, const char *folder, uir_diagnostics *diagnostics, uir_text *file,
                              uir_cpu_source_name *names, uint32_t *out_count) {
    size_t count, common_size;
    const char *common;
    if (!read_line(r, WORD, &count, &common_size) || !count || count > UIR_TARGET_FILES_MAX ||
        !read_part(r, common_size, &common))
        return UIR_STATUS_BAD_FILE;
    for (uint32_t f = 0; f < count; f++) {
        char path[600];
        size_t head_size, own_size;
        const char *head, *own;
        if (!read_line(r, "", &head_size, &own_size) || !read_part(r, head_size, &head) ||
            !read_part(r, own_size, &own))
            return UIR_STATUS_BAD_FILE;
        file->length = 0;
        uir_text_append(file, head, head_size);
        uir_text_append(file, common, common_size);
        uir_text_append(file, own, own_size);
        UIR_TRY(uir_text_status(file));
        snprintf(names[f], sizeof names[f], "kernels%02u.c", f);
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, names[f]) >= sizeof path)
            return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "the folder's path is too long: %s", folder);
        UIR_TRY(uir_cpu_write_file(path, file->data, file->length, diagnostics));
    }
    *out_count = (uint32_t)count;
    return r->at == r->end ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE;
}

uir_status uir_cpu_sources_write(const uir_allocator *allocator, const void *sources, size_t size, const char *folder,
                                 uir_diagnostics *diagnostics, uir_cpu_source_name *names, uint32_t *out_count) {
    uir_text file;
    reading r = {sources, (const char *)sources + size};
    uir_text_init(&file, allocator);
    uir_status status = write_files(&r, folder, diagnostics, &file, names, out_count);
    uir_text_deinit(&file);
    return status == UIR_STATUS_BAD_FILE ? uir_error(diagnostics, status, NULL, "the sources of kernels are damaged")
                                         : status;
}
