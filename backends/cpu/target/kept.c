/* What decides a compiled file: the compiler by its file, the words it is started with, the source. */
#include "backends/cpu/target/kept.h"

#include "backends/cpu/target/compile.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void uir_cpu_object_name(const char *source, char out[UIR_CPU_OBJECT_NAME]) {
    snprintf(out, UIR_CPU_OBJECT_NAME, "%.*s.o", (int)strlen(source) - 2, source);
}

static bool place_file(const uir_cpu_kept *kept, const char *name, char path[600]) {
    return (size_t)snprintf(path, 600, "%s/%s", kept->folder, name) < 600;
}

/* One that was replaced since is another. */
static void print_compiler(const char *program, uir_text *text) {
    char place[1024];
    struct stat s;
    if (!uir_cpu_find_program(program, place, sizeof place) || stat(place, &s) != 0) return;
    uir_text_append_format(text, "%s %llu %llu %llu %lld.%09ld\n", place, (unsigned long long)s.st_dev,
                           (unsigned long long)s.st_ino, (unsigned long long)s.st_size, (long long)s.st_mtim.tv_sec,
                           (long)s.st_mtim.tv_nsec);
}

static uir_status print_material(const uir_cpu_kept *kept, const uir_cpu_job *job, uir_diagnostics *diagnostics,
                                 uir_text *text) {
    char path[600];
    void *source;
    size_t size;
    if (!place_file(kept, job->about, path)) return UIR_STATUS_IO_FAILED;
    UIR_TRY(uir_cpu_read_file(kept->allocator, path, diagnostics, &source, &size));
    print_compiler(job->argv[0], text);
    for (char *const *word = job->argv; *word; word++) uir_text_append(text, *word, strlen(*word) + 1);
    uir_text_append(text, "", 1); /* no word is empty: here they end */
    uir_text_append(text, source, size);
    uir_release(kept->allocator, source, size);
    return uir_text_status(text);
}

uir_status uir_cpu_kept_take(const uir_cpu_kept *kept, const uir_cpu_job *job, uir_diagnostics *diagnostics,
                             bool *out_taken) {
    char name[UIR_CPU_OBJECT_NAME], path[600];
    const void *bytes;
    size_t size;
    uir_text material;
    *out_taken = false;
    uir_text_init(&material, kept->allocator);
    uir_status status = print_material(kept, job, diagnostics, &material);
    uir_cpu_object_name(job->about, name);
    if (status == UIR_STATUS_OK && place_file(kept, name, path) &&
        kept->keeper->find(kept->keeper->user, job->file, material.data, material.length, &bytes, &size)) {
        status = uir_cpu_write_file(path, bytes, size, diagnostics);
        *out_taken = status == UIR_STATUS_OK;
    }
    uir_text_deinit(&material);
    return status;
}

void uir_cpu_kept_add(void *user, const uir_cpu_job *job) {
    const uir_cpu_kept *kept = user;
    char name[UIR_CPU_OBJECT_NAME], path[600];
    void *bytes;
    size_t size;
    uir_cpu_object_name(job->about, name);
    if (!place_file(kept, name, path)) return;
    if (uir_cpu_read_file(kept->allocator, path, NULL, &bytes, &size) != UIR_STATUS_OK) return;
    kept->keeper->keep(kept->keeper->user, job->file, bytes, size);
    uir_release(kept->allocator, bytes, size);
}
