/* ONNX files: reading, decomposition, clean-up, as `uir-run --can-run` does; from memory and from files, with and
 * without a folder of external data. */
#include "api/compiled.h"
#include "frontend/folders.h"
#include "frontend/frontend.h"
#include "tests/fuzz/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA_BYTES = 4096, FEW_BYTES = 4096, MOST_PATH = 300 };
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

/* Of nodes and values that models often have, and of none. */
static const char *const kept[] = {"y", "named", "h", "p", "nobody"};

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

/* The bytes as a path: what is opened without the kernel's help is just what is opened with it. */
static void require_same_file(const uint8_t *data, size_t size) {
    char path[MOST_PATH + 1] = {0};
    struct stat walked_file, kernel_file;
    if (size > MOST_PATH) return;
    if (size) memcpy(path, data, size);
    if (!has_folder) make_folder();
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int walked = uir_confined_open_walk(directory, path), kernel = uir_confined_open_kernel(directory, path);
    if (walked >= 0 && kernel != -ENOSYS && kernel != -EPERM) {
        fuzz_require(kernel >= 0 && fstat(walked, &walked_file) == 0 && fstat(kernel, &kernel_file) == 0 &&
                         walked_file.st_dev == kernel_file.st_dev && walked_file.st_ino == kernel_file.st_ino,
                     "a path is walked to what the kernel does not open");
    }
    if (walked >= 0) close(walked);
    if (kernel >= 0) close(kernel);
    close(directory);
}

/* The files that a model has read are there, and as they were. */
static void require_same_files(fuzz_case *c, const uir_module *module) {
    uir_onnx_file file;
    uint32_t count = 0;
    while (uir_onnx_get_file(module, count, &file)) {
        fuzz_require(file.name && (file.data || !file.size), "a file of the model has no name or no bytes");
        count++;
    }
    fuzz_require(uir_onnx_check_files(module, &c->diagnostics) == UIR_STATUS_OK, "files have changed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_case c;
    uir_context *context;
    uir_model *model = NULL;
    uir_limits few = {.struct_size = sizeof few, .memory = FEW_BYTES};
    fuzz_begin(&c);
    require_same_file(data, size);
    if (uir_context_create(&c.allocator, &context) == UIR_STATUS_OK) {
        uir_model_options options = {.struct_size = sizeof options,
                                     .device = UIR_INTERPRETER_NAME,
                                     .no_cache = true,
                                     .describe = size % 2, /* both ways */
                                     .keep_all = size % 4 > 1,
                                     .cancel = &c.cancel};
        if (size % 16 > 11) {
            options.keep = kept;
            options.keep_count = sizeof kept / sizeof *kept - size % 2;
        }
        if (size % 64 == 0) options.limits = &few;
        uir_status status = load(context, data, size, &options, &model);
        fuzz_require(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ||
                         uir_context_message_count(context) > 0,
                     "a failure without a message");
        fuzz_count(model != NULL);
        if (model && uir_model_get_source(model)->compile.primitives) /* one that is described alone has none */
            require_same_files(&c, uir_model_get_source(model)->compile.primitives);
        uir_model_destroy(model);
        uir_context_destroy(context);
    }
    fuzz_end(&c);
    return 0;
}
