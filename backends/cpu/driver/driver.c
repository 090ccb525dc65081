/* Shared objects from memory: a file without a name is written and loaded through /proc, where its name is the number
 * of its descriptor. The linker gives back what it has loaded by that name before, so the descriptor stays open as long
 * as the module, and the module has to have the mark that the object's bytes name. */
#include "backends/cpu/driver/driver.h"

#include "backends/cpu/driver/limits.h"
#include "backends/cpu/target/mark.h"
#include "backends/cpu/target/variants.h"
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef void phase_function(const int64_t *symbols, void *const *pointers, void *scratch, int64_t begin, int64_t end,
                            const volatile bool *cancel);

typedef struct native_kernel {
    uint32_t phase_count;
    phase_function *phases[];
} native_kernel;

struct uir_loaded_module {
    uir_arena arena;
    uir_allocator allocator;
    void *object;
    int descriptor; /* of the object's file; -1: none */
    dev_t device;   /* the file's, as is the inode: the program may have closed what it did not open */
    ino_t inode;
};

/* ---- which objects run here ---- */
typedef struct variant_row {
    const char *name, *architecture, *flags;
} variant_row;

static const variant_row variants[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, flags, ...) {name, architecture, flags},
#include "backends/cpu/target/variants.def"
};

/* Later rows are better. */
static uint32_t rank(const char *isa) {
    for (uint32_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        if (!strcmp(variants[i].name, isa))
            return uir_cpu_variant_can_run(variants[i].architecture, variants[i].flags) ? i + 1 : 0;
    }
    return 0;
}

static const char *get_isa(size_t index) {
    for (uint32_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if (rank(variants[i].name) && index-- == 0) return variants[i].name;
    return NULL;
}

static const char *find_isa(const char *isa) {
    const char *best = NULL;
    for (uint32_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if ((!isa || !strcmp(variants[i].name, isa)) && rank(variants[i].name)) best = variants[i].name;
    return best;
}

/* ---- loading ---- */
/* Not another file that has the number by now. */
static void close_own(const uir_loaded_module *module) {
    struct stat about;
    if (module->descriptor >= 0 && fstat(module->descriptor, &about) == 0 && about.st_dev == module->device &&
        about.st_ino == module->inode)
        close(module->descriptor);
}

static void unload(uir_loaded_module *module) {
    if (!module) return;
    uir_allocator allocator = module->allocator;
    if (module->object) dlclose(module->object);
    close_own(module); /* afterwards: until then the linker knows the object by the number */
    uir_arena_deinit(&module->arena);
    uir_release(&allocator, module, sizeof *module);
}

/* Where the system shows a process its open files; dlopen takes a path. */
static const char open_files[] = "/proc/self/fd";

static uir_status explain_no_file(uir_diagnostics *diagnostics) {
    int error = errno;
    const char *hint = error == EMFILE || error == ENFILE
                           ? "each model with native code keeps a file open: raise the limit (ulimit -n)"
                           : "check whether the system forbids files in memory that hold code (vm.memfd_noexec)";
    return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, hint,
                          "no file in memory can be made for native code: %s", strerror(error));
}

/* `problem`: of the dynamic linker. */
static uir_status explain_not_loaded(const char *problem, uir_diagnostics *diagnostics) {
    if (access(open_files, X_OK) != 0)
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "mount /proc",
                              "native code cannot be loaded: it is reached through %s, which is missing", open_files);
    return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                          "link the program dynamically, and check whether the system forbids code outside files",
                          "native code cannot be loaded: %s",
                          problem ? problem : "for a reason that the dynamic linker withholds");
}

/* The mark that the object's bytes name; false: they name none. */
static bool find_mark(const uir_kernel_image *image, char out_mark[UIR_CPU_MARK_SIZE]) {
    const char *at = image->bytes, *end = at + image->size;
    while ((at = memmem(at, (size_t)(end - at), UIR_CPU_MARK, sizeof UIR_CPU_MARK - 1)) != NULL) {
        size_t left = (size_t)(end - at);
        if (left >= UIR_CPU_MARK_SIZE && !at[UIR_CPU_MARK_SIZE - 1] && strlen(at) == UIR_CPU_MARK_SIZE - 1) {
            memcpy(out_mark, at, UIR_CPU_MARK_SIZE);
            return true;
        }
        at++;
    }
    return false;
}

/* Moves the file to a number that is greater than any that was tried. */
static uir_status take_other_number(uir_loaded_module *module, uir_diagnostics *diagnostics) {
    int next = fcntl(module->descriptor, F_DUPFD_CLOEXEC, module->descriptor + 1);
    if (next < 0) return explain_no_file(diagnostics);
    close(module->descriptor);
    module->descriptor = next;
    return UIR_STATUS_OK;
}

/* Under a name by which the linker knows no other object. */
static uir_status load_file(uir_loaded_module *module, const char *mark, uir_diagnostics *diagnostics) {
    enum { NAMES_MAX = 1024 };
    char path[sizeof open_files + 16];
    for (unsigned n = 0; n < NAMES_MAX; n++) {
        snprintf(path, sizeof path, "%s/%d", open_files, module->descriptor);
        module->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!module->object) return explain_not_loaded(dlerror(), diagnostics);
        if (dlsym(module->object, mark)) return UIR_STATUS_OK;
        dlclose(module->object);
        module->object = NULL;
        UIR_TRY(take_other_number(module, diagnostics));
    }
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                     "native code cannot be loaded: the dynamic linker returns other objects for it");
}

static uir_status open_object(uir_loaded_module *module, const uir_kernel_image *image, uir_diagnostics *diagnostics) {
    struct stat about;
    char mark[UIR_CPU_MARK_SIZE];
    if (!find_mark(image, mark))
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "pack the model again",
                              "native code cannot be loaded: the digest of its sources is missing");
    module->descriptor = memfd_create("uir-kernels", MFD_CLOEXEC);
    if (module->descriptor < 0 || fstat(module->descriptor, &about) != 0) return explain_no_file(diagnostics);
    module->device = about.st_dev;
    module->inode = about.st_ino;
    if (!uir_file_write_all(module->descriptor, image->bytes, image->size))
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                         "native code cannot be loaded: its %zu bytes cannot be stored in memory: %s", image->size,
                         strerror(errno));
    return load_file(module, mark, diagnostics);
}

static uir_status load(const uir_allocator *allocator, const uir_kernel_image *image, uir_diagnostics *diagnostics,
                       uir_loaded_module **out_module) {
    uir_loaded_module *module;
    UIR_TRY_ALLOCATE(module, uir_allocate_zeroed(allocator, sizeof *module));
    module->allocator = *allocator;
    module->descriptor = -1;
    uir_arena_init(&module->arena, allocator);
    uir_status status = open_object(module, image, diagnostics);
    if (status != UIR_STATUS_OK) {
        unload(module);
        return status;
    }
    *out_module = module;
    return UIR_STATUS_OK;
}

static uir_status find(uir_loaded_module *module, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                       const uir_loaded_kernel **out_kernel) {
    native_kernel *kernel;
    char name[300];
    UIR_TRY_ALLOCATE(kernel, uir_arena_allocate(&module->arena, sizeof *kernel + (size_t)entry->phase_count *
                                                                                     sizeof(phase_function *)));
    kernel->phase_count = entry->phase_count;
    for (uint32_t i = 0; i < entry->phase_count; i++) {
        int length = snprintf(name, sizeof name, "%s_phase%u", entry->symbol, i);
        void *symbol = length > 0 && (size_t)length < sizeof name ? dlsym(module->object, name) : NULL;
        if (!symbol) return uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL, "the kernels' object has no %s", name);
        memcpy(&kernel->phases[i], &symbol, sizeof symbol); /* an object pointer is a function's here */
    }
    *out_kernel = (const uir_loaded_kernel *)(const void *)kernel;
    return UIR_STATUS_OK;
}

/* ---- running ---- */
static size_t state_size(const uir_loaded_kernel *kernel) {
    (void)kernel;
    return 0;
}

static uir_status prepare(uir_kernel_launch *launch, uir_diagnostics *diagnostics) {
    (void)launch, (void)diagnostics;
    return UIR_STATUS_OK;
}

static uir_status run(const uir_kernel_launch *launch, uint32_t phase, uir_kernel_scratch *scratch, int64_t begin,
                      int64_t end) {
    const native_kernel *kernel = (const native_kernel *)(const void *)launch->kernel;
    kernel->phases[phase](launch->symbols, launch->pointers, scratch->data, begin, end, launch->cancel);
    return __atomic_load_n(launch->cancel, __ATOMIC_RELAXED) ? UIR_STATUS_CANCELLED : UIR_STATUS_OK;
}

const uir_kernel_format uir_cpu_format = {
    .name = "native",
    .native = true,
    .rank = rank,
    .get_isa = get_isa,
    .find_isa = find_isa,
    .load = load,
    .unload = unload,
    .find = find,
    .state_size = state_size,
    .prepare = prepare,
    .run = run,
    .measure_limits = uir_cpu_measure_limits,
};
