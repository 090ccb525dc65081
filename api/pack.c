/* Packages written to files: the whole compile, native code for several variants of the CPU, one file. */
#include "api/compiled.h"
#include "backends/devices/devices.h"
#include "api/facts_onnx.h"
#include "api/records.h"
#include "api/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEVICES = 16, MAX_FILE_NAME = 4096 };

typedef struct packing {
    uir_call *call;
    uir_budget budget;
    uir_allocator allocator; /* the budget's */
    const uir_package_write_options *options;
    uir_operation operation;
    const char *path; /* of the package */
    const char *devices[MAX_DEVICES];
    uint32_t device_count;
    uir_compile compile;
    uir_compile_native natives[MAX_DEVICES];
    uir_target_object objects[MAX_DEVICES];
    uint32_t native_count;
    uint64_t size; /* of the package */
} packing;

/* What each step takes of the whole, by where it ends. */
typedef enum pack_step { READ, LOWER, COMPILE, WRITE, STEP_COUNT } pack_step;
static uir_progress part_of(packing *k, pack_step step) {
    static const double compiled[STEP_COUNT] = {0.03, 0.2, 0.95, 1}, bare[STEP_COUNT] = {0.1, 0.8, 0.8, 1};
    const double *ends = k->options->no_native ? bare : compiled;
    return uir_progress_part(uir_operation_whole(&k->operation), step ? ends[step - 1] : 0, ends[step]);
}

/* ---- which devices ---- */

static uir_status take_devices(packing *k) {
    const uir_package_write_options *o = k->options;
    uir_diagnostics *diagnostics = &k->call->diagnostics;
    if (o->device_count > MAX_DEVICES)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "%zu devices; a package supports at most %d",
                         o->device_count, MAX_DEVICES);
    k->devices[0] = uir_device_get(0)->name;
    k->device_count = o->device_count ? (uint32_t)o->device_count : 1;
    for (uint32_t i = 0; i < o->device_count; i++) k->devices[i] = o->devices[i];
    for (uint32_t i = 0; i < k->device_count; i++) {
        const uir_device_row *row = uir_device_find(k->devices[i], NULL);
        if (!row)
            return uir_error_hint(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "choose another device",
                                  "packages cannot be made for the device '%s'", k->devices[i]);
        if (k->device_count > 1 && uir_target_of(row)->program)
            return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "make a package for each device",
                                  "a package for device %s is for no other device", row->name);
    }
    return UIR_STATUS_OK;
}

/* The variants among the devices, each once. */
static uir_status list_natives(packing *k, const char **out_isas, uint32_t *out_count) {
    *out_count = 0;
    for (uint32_t i = 0; i < k->device_count && !k->options->no_native; i++) {
        const char *variant;
        uir_target_machine machine;
        bool known = false;
        const uir_device_row *row = uir_device_find(k->devices[i], &variant);
        if (!uir_device_is_native(row)) continue;
        UIR_TRY(uir_target_of(row)->describe(variant, k->compile.arena, &k->call->diagnostics, &machine));
        const char *isa = machine.variant;
        for (uint32_t n = 0; n < *out_count; n++) known |= !strcmp(out_isas[n], isa);
        if (!known) out_isas[(*out_count)++] = isa;
    }
    return UIR_STATUS_OK;
}

/* ---- the file ---- */

static bool write_at(int descriptor, const char *data, size_t size, uint64_t at) {
    while (size) {
        ssize_t written = pwrite(descriptor, data, size, (off_t)at);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data += written;
        size -= (size_t)written;
        at += (uint64_t)written;
    }
    return true;
}

/* A name beside the file's that nobody has; the descriptor or -1. */
static int open_temporary(const char *path, char *out_name) {
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        int length = snprintf(out_name, MAX_FILE_NAME, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        if (length < 0 || length >= MAX_FILE_NAME) return -1;
        int descriptor = open(out_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

/* The package goes to the file as it is made. */
typedef struct target {
    int descriptor;
    uint64_t size;
    uir_progress progress;
} target;

static uir_status append_to_file(void *user, const void *data, size_t size) {
    target *t = user;
    UIR_TRY(uir_progress_tell(t->progress, "writing", 0));
    if (!write_at(t->descriptor, data, size, t->size)) return UIR_STATUS_IO_FAILED;
    t->size += size;
    return UIR_STATUS_OK;
}

static uir_status patch_file(void *user, const void *data, size_t size) {
    target *t = user;
    return write_at(t->descriptor, data, size, 0) ? UIR_STATUS_OK : UIR_STATUS_IO_FAILED;
}

static bool file_equals(void *user, uint64_t offset, const void *data, size_t size) {
    target *t = user;
    const char *bytes = data;
    char part[16384];
    while (size) {
        ssize_t got = pread(t->descriptor, part, size < sizeof part ? size : sizeof part, (off_t)offset);
        if (got <= 0 || memcmp(part, bytes, (size_t)got)) return false;
        bytes += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

/* Behind what was written, where a key is given. */
static uir_status sign(const packing *k, target *t) {
    unsigned char signature[UIR_SIGNATURE_SIZE];
    if (!k->options->sign_key) return UIR_STATUS_OK;
    UIR_TRY(uir_sign_file(t->descriptor, t->size, k->options->sign_key, &k->call->diagnostics, signature));
    return append_to_file(t, signature, sizeof signature);
}

static uir_status write_file(packing *k, const uir_compile_contents *contents) {
    uir_diagnostics *diagnostics = &k->call->diagnostics;
    char temporary[MAX_FILE_NAME];
    uir_location place = {.file = k->path};
    struct stat facts;
    target t = {-1, 0, part_of(k, WRITE)};
    if (stat(k->path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, &place, "name a file",
                              "the path is not a regular file, and is left unchanged");
    t.descriptor = open_temporary(k->path, temporary);
    if (t.descriptor < 0)
        return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, &place, "check that the folder exists and is writable",
                              "the file cannot be written");
    uir_package_sink sink = {append_to_file, patch_file, file_equals, &t};
    uir_compile_contents whole = *contents;
    whole.sink = &sink;
    const uir_compile_call write = {.diagnostics = diagnostics, .contents = &whole};
    uir_status status = uir_compile_run(&k->compile, UIR_STAGE_PACKAGE, &write);
    if (status == UIR_STATUS_OK) status = sign(k, &t);
    bool good = status == UIR_STATUS_OK && fsync(t.descriptor) == 0;
    good = close(t.descriptor) == 0 && good;
    good = good && rename(temporary, k->path) == 0;
    k->size = t.size;
    if (good) return UIR_STATUS_OK;
    unlink(temporary);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_IO_FAILED) return status;
    return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, &place, "check that the disk is not full",
                          "the file could not be written completely");
}

/* ---- the package ---- */

typedef struct compile_step {
    packing *packing;
    uint32_t index, count;
} compile_step;

static bool show_compile(void *user, uint32_t done, uint32_t total) {
    const compile_step *step = user;
    double part = total ? (double)done / total : 0;
    return uir_progress_tell(part_of(step->packing, COMPILE), "compiling kernels",
                             ((double)step->index + part) / step->count) != UIR_STATUS_OK;
}

static uir_status compile_natives(packing *k) {
    const char *isas[MAX_DEVICES];
    compile_step step = {.packing = k};
    UIR_TRY(list_natives(k, isas, &step.count));
    for (uint32_t i = 0; i < step.count; i++) {
        const uir_target_build_options options = {
            .jobs = uir_core_count(), .progress = show_compile, .progress_user = &step, .cancel = k->options->cancel};
        step.index = i;
        if (show_compile(&step, 0, 1)) return UIR_STATUS_CANCELLED;
        const uir_compile_build build = {.options = &options, .isa = isas[i], .object = &k->objects[i]};
        const uir_compile_call compile = {.diagnostics = &k->call->diagnostics, .build = &build};
        UIR_TRY(uir_compile_run(&k->compile, UIR_STAGE_NATIVE, &compile));
        k->natives[k->native_count++] = (uir_compile_native){isas[i], &k->objects[i]};
    }
    return UIR_STATUS_OK;
}

/* By what was found best here, where that is asked for. */
static uir_status make_kernels(packing *k) {
    uir_diagnostics *diagnostics = &k->call->diagnostics;
    uir_compile_call lower = {.diagnostics = diagnostics, .progress = part_of(k, LOWER)};
    const uir_cache_options options = {.folder = k->options->cache};
    uir_api_records records;
    uir_cache *cache = NULL;
    if (!k->options->tuned) return uir_compile_run(&k->compile, UIR_STAGE_RUNS, &lower);
    uir_status status = uir_cache_open(&k->allocator, &options, diagnostics, &cache);
    if (status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED) return status;
    status = uir_api_records_init(&records, NULL, cache, &k->allocator, diagnostics);
    lower.records = &records.source;
    if (status == UIR_STATUS_OK) status = uir_compile_run(&k->compile, UIR_STAGE_RUNS, &lower);
    if (status == UIR_STATUS_OK && !records.found)
        uir_warning(diagnostics, NULL,
                    "the cache has no tuning record of the model's kernels for %s on this machine: run uir-tune",
                    k->devices[0]);
    uir_api_records_deinit(&records);
    uir_cache_close(cache);
    return status;
}

static uir_status make_package(packing *k, uir_arena *arena, const char *model_path) {
    uir_diagnostics *diagnostics = &k->call->diagnostics;
    const uir_onnx_overrides overrides = {k->options->overrides, k->options->override_count};
    uir_onnx_source source = {.path = model_path,
                              .external_data = k->options->external_data,
                              .no_map = k->options->no_map,
                              .overrides = &overrides};
    uir_compile_options options = {.device = k->devices[0], .exact = k->options->exact, .strict = k->options->strict};
    const uir_compile_call read = {.diagnostics = diagnostics, .progress = part_of(k, READ)};
    UIR_TRY(uir_precision_find(k->options->precision, diagnostics, &options.precision));
    uir_compile_init(&k->compile, &source, &options, &k->allocator, arena);
    UIR_TRY(uir_compile_run(&k->compile, UIR_STAGE_CLEANED, &read));
    k->compile.primitives->diagnostics = diagnostics;
    uir_facts facts;
    UIR_TRY(uir_facts_from_onnx(&k->compile, arena, &facts));
    facts.has_tolerance = k->options->tolerance != NULL;
    UIR_TRY(UIR_STRUCT_TAKE(diagnostics, uir_tolerance, k->options->tolerance, &facts.tolerance));
    UIR_TRY(make_kernels(k));
    uir_facts_take_kernels(&k->compile, &facts);
    uir_compile_contents contents = {.natives = k->natives, .no_fallback = k->options->no_fallback};
    UIR_TRY(uir_facts_print(&facts, arena, &contents.metadata, &contents.metadata_count));
    if (!k->options->no_native) {
        /* What has no kernel is said before the compilers are started. */
        const uir_compile_call look = {.diagnostics = diagnostics, .contents = &contents};
        UIR_TRY(uir_compile_run(&k->compile, UIR_STAGE_PACKAGE, &look));
        UIR_TRY(compile_natives(k));
    }
    contents.native_count = k->native_count;
    return write_file(k, &contents);
}

static uir_status pack(packing *k, const char *model_path, const char *package_path, uir_package_info *out_info) {
    uir_arena arena;
    double start = uir_api_now_ms();
    UIR_TRY(take_devices(k));
    const char *refusal = uir_file_refuse_place(package_path);
    if (refusal)
        return uir_error(&k->call->diagnostics, UIR_STATUS_IO_FAILED, &(uir_location){.file = package_path},
                         "the file cannot be written: %s", refusal);
    if (k->options->sign_key) { /* before anything is compiled */
        unsigned char key[UIR_KEY_SIZE];
        UIR_TRY(uir_trust_read_key(k->options->sign_key, UIR_SECRET_KEY_WORD, &k->call->diagnostics, key));
        memset(key, 0, sizeof key);
    }
    uir_arena_init(&arena, &k->allocator);
    k->path = package_path;
    uir_status status = make_package(k, &arena, model_path);
    uir_package_info info = {.size = k->size,
                             .kernel_count = k->compile.lowering.kernels.count,
                             .native_count = k->native_count,
                             .compile_ms = uir_api_now_ms() - start,
                             .has_program = uir_compile_has_program(&k->compile)};
    uir_arena_deinit(&arena);
    if (status == UIR_STATUS_OK) (void)uir_operation_finish(&k->operation); /* the file is there */
    if (status != UIR_STATUS_OK || !out_info) return status;
    return UIR_STRUCT_GIVE(&k->call->diagnostics, uir_package_info, &info, out_info);
}

/* A package is not written whose facts could not be told. */
static uir_status check_info(uir_call *call, uir_package_info *out_info) {
    static const uir_package_info none = {.struct_size = sizeof none};
    return out_info ? UIR_STRUCT_GIVE(&call->diagnostics, uir_package_info, &none, out_info) : UIR_STATUS_OK;
}

uir_status uir_package_write_file(uir_context *context, const char *model_path, const char *package_path,
                                  const uir_package_write_options *options, uir_package_info *out_info) {
    uir_call call;
    uir_package_write_options taken;
    uir_limits limits;
    packing k = {.call = &call, .options = &taken};
    uir_call_begin(&call, context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_package_write_options, options, &taken);
    if (status == UIR_STATUS_OK) status = check_info(&call, out_info);
    if (status == UIR_STATUS_OK) status = uir_api_take_limits(&call.diagnostics, taken.limits, &limits);
    uir_budget_init(&k.budget, &context->allocator, status == UIR_STATUS_OK ? &limits : NULL);
    k.allocator = uir_budget_allocator(&k.budget);
    k.operation = (uir_operation){
        .tell = taken.progress, .user = taken.progress_user, .cancel = taken.cancel, .budget = &k.budget};
    if (status == UIR_STATUS_OK) status = uir_budget_begin(&k.budget, "writing the package", taken.cancel, NULL);
    if (status == UIR_STATUS_OK) status = pack(&k, model_path, package_path, out_info);
    status = uir_budget_end(&k.budget, status, &call.diagnostics);
    for (uint32_t i = 0; i < k.native_count; i++) uir_target_object_deinit(&k.objects[i]);
    if (k.compile.primitives) k.compile.primitives->diagnostics = NULL;
    uir_compile_deinit(&k.compile);
    uir_budget_deinit(&k.budget);
    return uir_call_end(&call, status, "writing a package");
}
