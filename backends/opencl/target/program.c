/* All kernels as one program: its text, and the folder that a person may edit it in. */
#include "backends/opencl/target/opencl.h"

#include "base/file.h"
#include "base/intern.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_NAME "kernels.cl"
#define MARK_NAME    "kernels.txt"
enum { PATH_SIZE = 600 };

typedef struct builder {
    const uir_allocator *allocator;
    const uir_target_build_input *input;
    uir_diagnostics *diagnostics;
    uir_text program, mark;
} builder;

/* ---- the text ---- */
static uir_status emit_first(builder *b, const uint32_t *first, const uir_igraph **distinct) {
    const uir_target_build_input *input = b->input;
    uint32_t count = 0;
    for (uint32_t i = 0; i < input->count; i++)
        if (first[i] == i) distinct[count++] = input->igraphs[i];
    UIR_TRY(uir_opencl_emit_prelude(distinct, count, &b->program));
    for (uint32_t i = 0; i < input->count; i++)
        if (first[i] == i) UIR_TRY(uir_opencl_emit_kernel(input->igraphs[i], i, &b->program, b->diagnostics));
    return uir_text_status(&b->program);
}

static uir_status emit_program(builder *b, const uint32_t *first) {
    const uir_igraph **distinct;
    size_t size = ((size_t)b->input->count + 1) * sizeof *distinct;
    UIR_TRY_ALLOCATE(distinct, uir_allocate_zeroed(b->allocator, size));
    uir_status status = emit_first(b, first, distinct);
    uir_release(b->allocator, distinct, size);
    return status;
}

/* ---- files ---- */
static uir_status find_place(const builder *b, const char *folder, const char *name, char path[PATH_SIZE]) {
    if ((size_t)snprintf(path, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE) return UIR_STATUS_OK;
    return uir_error(b->diagnostics, UIR_STATUS_IO_FAILED, NULL, "the folder's path is too long: %s", folder);
}

static uir_status write_file(const builder *b, const char *folder, const char *name, const uir_text *text) {
    char path[PATH_SIZE];
    uir_location place = {.file = path};
    UIR_TRY(find_place(b, folder, name, path));
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = descriptor >= 0 && uir_file_write_all(descriptor, text->data, text->length);
    if (descriptor >= 0) good = close(descriptor) == 0 && good;
    if (good) return UIR_STATUS_OK;
    return uir_error(b->diagnostics, UIR_STATUS_IO_FAILED, &place, "the file cannot be written: %s",
                     uir_file_explain(errno));
}

/* NOT_FOUND without a message if it is not there. */
static uir_status read_file(const builder *b, const char *folder, const char *name, uir_text *text) {
    char path[PATH_SIZE];
    uir_location place = {.file = path};
    uir_file file;
    const char *why = NULL;
    UIR_TRY(find_place(b, folder, name, path));
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0 && errno == ENOENT) return UIR_STATUS_NOT_FOUND;
    if (descriptor < 0)
        return uir_error(b->diagnostics, UIR_STATUS_IO_FAILED, &place, "cannot open the file: %s",
                         uir_file_explain(errno));
    uir_status status = uir_file_take(descriptor, true, b->allocator, &file, &why);
    close(descriptor);
    if (status != UIR_STATUS_OK)
        return uir_error(b->diagnostics, status, &place, "cannot read '%s': %s", path, why ? why : "");
    uir_text_append(text, file.data, (size_t)file.size);
    uir_file_release(&file, b->allocator);
    return uir_text_status(text);
}

/* ---- which kernels a folder is of ---- */
/* Their number, the chip and a hash of their texts: code for others has other symbols, or takes other sizes. */
static uir_status print_mark(builder *b) {
    uir_text texts;
    uir_text_init(&texts, b->allocator);
    for (uint32_t i = 0; i < b->input->count; i++) uir_igraph_print(b->input->igraphs[i], &texts);
    uir_status status = uir_text_status(&texts);
    uir_text_append_format(&b->mark, "chip %s\nkernels %u, hash %016llx\n", b->input->variant, b->input->count,
                           (unsigned long long)uir_hash(texts.data ? texts.data : "", texts.length, 0));
    uir_text_deinit(&texts);
    return status == UIR_STATUS_OK ? uir_text_status(&b->mark) : status;
}

static void print_file_line(const uir_text *program, uir_text *line) {
    uir_text_append_format(line, "file " PROGRAM_NAME " %016llx\n",
                           (unsigned long long)uir_hash(program->data ? program->data : "", program->length, 0));
}

/* Whether the folder's program is as it was written, or there is none. */
static uir_status check_unedited(const builder *b, const char *folder) {
    uir_text program, mark, line;
    uir_text_init(&program, b->allocator);
    uir_text_init(&mark, b->allocator);
    uir_text_init(&line, b->allocator);
    uir_status status = read_file(b, folder, PROGRAM_NAME, &program);
    bool is_there = status == UIR_STATUS_OK;
    if (is_there) status = read_file(b, folder, MARK_NAME, &mark);
    print_file_line(&program, &line);
    bool is_written = status == UIR_STATUS_OK && line.data && mark.data && strstr(mark.data, line.data);
    if (status == UIR_STATUS_NOT_FOUND) status = UIR_STATUS_OK;
    if (status == UIR_STATUS_OK && is_there && !is_written)
        status = uir_error_hint(b->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                "choose another folder to keep it, or overwrite it with --force",
                                "%s/" PROGRAM_NAME " was edited, or written by something else", folder);
    uir_text_deinit(&program);
    uir_text_deinit(&mark);
    uir_text_deinit(&line);
    return status;
}

static uir_status write_folder(builder *b, const uir_target_build_options *options) {
    const char *folder = options->source_folder;
    if (!options->overwrite) UIR_TRY(check_unedited(b, folder));
    print_file_line(&b->program, &b->mark);
    UIR_TRY(uir_text_status(&b->mark));
    UIR_TRY(write_file(b, folder, PROGRAM_NAME, &b->program));
    return write_file(b, folder, MARK_NAME, &b->mark);
}

static uir_status read_folder(builder *b, const char *folder) {
    static const char hint[] = "write the folder anew: uir-run MODEL --dump-source DIR, with the same device";
    uir_text found;
    uir_text_init(&found, b->allocator);
    uir_status status = read_file(b, folder, MARK_NAME, &found);
    if (status == UIR_STATUS_NOT_FOUND)
        status = uir_error_hint(b->diagnostics, status, NULL, hint,
                                "%s holds no " MARK_NAME ": it is not a folder of kernel sources", folder);
    else if (status == UIR_STATUS_OK &&
             (found.length < b->mark.length || memcmp(found.data, b->mark.data, b->mark.length) != 0))
        status = uir_error_hint(b->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, hint,
                                "%s holds the kernels of another model or chip, or of another version of this program",
                                folder);
    uir_text_deinit(&found);
    UIR_TRY(status);
    status = read_file(b, folder, PROGRAM_NAME, &b->program);
    if (status != UIR_STATUS_NOT_FOUND) return status;
    return uir_error_hint(b->diagnostics, status, NULL, hint, "%s holds no " PROGRAM_NAME, folder);
}

/* ---- the object ---- */
static uir_status take_program(const builder *b, uir_target_object *object) {
    size_t size = b->program.length;
    UIR_TRY_ALLOCATE(object->bytes, uir_allocate(b->allocator, size ? size : 1));
    if (size) memcpy(object->bytes, b->program.data, size);
    object->size = size;
    object->file_count = 1;
    return UIR_STATUS_OK;
}

static uir_status build(builder *b, const uir_target_build_options *options, uint32_t *first,
                        uir_target_object *object) {
    const uir_target_build_input *input = b->input;
    const char *folder = input->folder;
    UIR_TRY(uir_target_find_equals(b->allocator, input->igraphs, input->count, first));
    UIR_TRY(uir_target_name_first(b->allocator, input->igraphs, first, input->count, object));
    if (folder || options->source_folder) UIR_TRY(print_mark(b));
    UIR_TRY(folder ? read_folder(b, folder) : emit_program(b, first));
    if (options->source_folder) UIR_TRY(write_folder(b, options));
    return take_program(b, object);
}

uir_status uir_opencl_build(const uir_allocator *allocator, const uir_target_build_options *options,
                            const uir_target_build_input *input, uir_diagnostics *diagnostics,
                            uir_target_object *out_object) {
    builder b = {.allocator = allocator, .input = input, .diagnostics = diagnostics};
    size_t size = ((size_t)input->count + 1) * sizeof(uint32_t);
    uint32_t *first;
    *out_object = (uir_target_object){.allocator = *allocator};
    UIR_TRY_ALLOCATE(first, uir_allocate_zeroed(allocator, size));
    uir_text_init(&b.program, allocator);
    uir_text_init(&b.mark, allocator);
    uir_status status = build(&b, options, first, out_object);
    uir_text_deinit(&b.program);
    uir_text_deinit(&b.mark);
    uir_release(allocator, first, size);
    if (status != UIR_STATUS_OK) uir_target_object_deinit(out_object);
    return status;
}
