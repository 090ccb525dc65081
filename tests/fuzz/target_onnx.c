/* ONNX files: reading, decomposition, clean-up, as `uir-run --can-run` does; from memory and from files, with and
 * without a folder of external data. */
#include "api/internal.h"
#include "tests/fuzz/target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA_BYTES = 4096 };
static char folder[] = "/tmp/uir-fuzz-XXXXXX";
static bool has_folder;

/* What there is for locations to name, in the order in which it can be removed. */
static const char *const names[] = {"data.bin", "below/data.bin", "link",       "out",
                                    "circle",   "pipe",           "model.onnx", "below"};

static const char *path_of(const char *name, char path[64]) {
    snprintf(path, 64, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const uint8_t *data, size_t size) {
    char path[64];
    FILE *file = fopen(path_of(name, path), "wb");
    fuzz_require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "a file is not written");
}

static void remove_folder(void) {
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)!remove(path_of(names[i], path));
    rmdir(folder);
}

static void make_folder(void) {
    static uint8_t data[DATA_BYTES];
    char path[64];
    for (size_t i = 0; i < DATA_BYTES; i++) data[i] = (uint8_t)(i * 7);
    fuzz_require(mkdtemp(folder) && mkdir(path_of("below", path), 0700) == 0, "there is no folder");
    has_folder = true;
    atexit(remove_folder);
    write_file("data.bin", data, DATA_BYTES);
    write_file("below/data.bin", data, DATA_BYTES / 2);
    fuzz_require(symlink("below/data.bin", path_of("link", path)) == 0 &&
                     symlink("/dev/zero", path_of("out", path)) == 0 &&
                     symlink("circle", path_of("circle", path)) == 0 && mkfifo(path_of("pipe", path), 0600) == 0,
                 "there are no links");
}

/* The three ways, by the size: without a folder, with one, from a file in it. */
static uir_status load(uir_context *context, const uint8_t *data, size_t size, uir_model_options *options,
                       uir_model **out_model) {
    char path[64];
    if (!has_folder) make_folder();
    if (size % 8 < 4) return uir_model_load_memory(context, data, size, NULL, options, out_model);
    options->no_map = size % 8 > 5;
    if (size % 32 < 24) return uir_model_load_memory(context, data, size, folder, options, out_model);
    write_file("model.onnx", data, size);
    return uir_model_load_file(context, path_of("model.onnx", path), options, out_model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_case c;
    uir_context *context;
    uir_model *model = NULL;
    fuzz_begin(&c);
    if (uir_context_create(&c.allocator, &context) == UIR_STATUS_OK) {
        uir_model_options options = {.struct_size = sizeof options,
                                     .device = UIR_INTERPRETER_NAME,
                                     .no_cache = true,
                                     .describe = size % 2, /* both ways */
                                     .keep_all = size % 4 > 1,
                                     .cancel = &c.cancel};
        uir_status status = load(context, data, size, &options, &model);
        fuzz_require(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ||
                         uir_context_message_count(context) > 0,
                     "a failure without a message");
        uir_model_destroy(model);
        uir_context_destroy(context);
    }
    fuzz_end(&c);
    return 0;
}
