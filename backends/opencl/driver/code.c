/* The OpenCL driver: programs from source or a saved binary, their kernels, launches. */
#include "backends/opencl/driver/internal.h"

#include <stdio.h>
#include <string.h>

static const char source_format[] = "opencl-c";
enum {
    GROUPS_PER_UNIT = 4,   /* of one work-item, for each compute unit */
    SCRATCH_ALIGNMENT = 64 /* bytes */
};

/* ---- programs ---- */
uint32_t uir_opencl_rank(const uir_driver_device *d, const char *format) {
    return !strcmp(format, d->binary_format) ? 2 : !strcmp(format, source_format) ? 1 : 0;
}

/* The kernel at a line of the program, "" if there is none: the last name before it that ends in _phase and digits. */
static void find_kernel_at(const uir_driver_image *image, uint64_t line, char *name, size_t capacity) {
    static const char word[] = "_phase";
    const char *text = image->bytes, *end = text + image->size, *found = NULL;
    *name = 0;
    for (const char *at = text; at < end && line; at++) {
        if (*at == '\n') line--;
        if ((size_t)(end - at) > sizeof word && !memcmp(at, word, sizeof word - 1) && at[sizeof word - 1] >= '0' &&
            at[sizeof word - 1] <= '9')
            found = at;
    }
    const char *begin = found;
    while (begin && begin > text &&
           (begin[-1] == '_' || (begin[-1] >= '0' && begin[-1] <= '9') || (begin[-1] >= 'a' && begin[-1] <= 'z') ||
            (begin[-1] >= 'A' && begin[-1] <= 'Z')))
        begin--;
    if (begin && !line) snprintf(name, capacity, ", in kernel %.*s", (int)(found - begin), begin);
}

/* The line of the program that the first error of a log names, as "FILE:12:7: error" and "error: FILE:12:7"; 0: none.
 */
static uint64_t find_line(const char *log) {
    const char *error = strstr(log, "error"), *at = error;
    while (at && at > log && at[-1] != '\n') at--;
    for (; at && *at && *at != '\n'; at++) {
        uint64_t line = 0;
        size_t digits = *at == ':' ? strspn(at + 1, "0123456789") : 0;
        if (!digits || digits > 8 || at[digits + 1] != ':') continue;
        for (size_t i = 1; i <= digits; i++) line = line * 10 + (uint64_t)(at[i] - '0');
        return line;
    }
    return 0;
}

/* The compiler's first lines, and the kernel that they are of. */
static uir_status explain_build(const uir_driver_device *d, cl_handle program, const uir_driver_image *image,
                                int32_t error, uir_diagnostics *diagnostics) {
    static const char none[] = "";
    size_t size = 0;
    char *log = NULL, text[32], kernel[128] = "";
    bool is_source = uir_opencl_rank(d, image->format) == 1;
    if (!d->cl.clGetProgramBuildInfo(program, d->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) && size &&
        size < SIZE_MAX / 2)
        log = uir_allocate_zeroed(&d->allocator, size + 1);
    if (log && d->cl.clGetProgramBuildInfo(program, d->device, CL_PROGRAM_BUILD_LOG, size, log, NULL)) *log = 0;
    if (log && is_source) find_kernel_at(image, find_line(log), kernel, sizeof kernel);
    uir_location where = {.quote = log ? log : none};
    uir_status status = uir_error(
        diagnostics, UIR_STATUS_DEVICE_FAILED, &where, "device %s cannot build the OpenCL program%s%s: %s", d->name,
        is_source ? "" : " from its binary", kernel, uir_opencl_error_name(error, text, sizeof text));
    if (log) uir_release(&d->allocator, log, size + 1);
    return status;
}

static uir_status make_program(uir_driver_device *d, const uir_driver_image *image, uir_diagnostics *diagnostics,
                               cl_handle *out_program) {
    int32_t error = 0, status = 0;
    size_t size = image->size;
    const char *source = image->bytes;
    const unsigned char *binary = image->bytes;
    switch (uir_opencl_rank(d, image->format)) {
    case 1:
        *out_program = d->cl.clCreateProgramWithSource(d->context, 1, &source, &size, &error);
        if (error) return uir_opencl_fail(error, "clCreateProgramWithSource", diagnostics);
        break;
    case 2:
        *out_program = d->cl.clCreateProgramWithBinary(d->context, 1, &d->device, &size, &binary, &status, &error);
        if (error || status) return uir_opencl_fail(error ? error : status, "clCreateProgramWithBinary", diagnostics);
        break;
    default:
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "device %s cannot load code of format '%s'",
                         d->name, image->format);
    }
    error = d->cl.clBuildProgram(*out_program, 1, &d->device, d->build_options, NULL, NULL);
    return error ? explain_build(d, *out_program, image, error, diagnostics) : UIR_STATUS_OK;
}

uir_status uir_opencl_load(uir_driver_device *d, const uir_driver_image *image, uir_diagnostics *diagnostics,
                           uir_driver_code **out_code) {
    uir_driver_code *code;
    *out_code = NULL;
    UIR_TRY_ALLOCATE(code, uir_allocate_zeroed(&d->allocator, sizeof *code));
    code->device = d;
    uir_status status = make_program(d, image, diagnostics, &code->program);
    if (status == UIR_STATUS_OK)
        *out_code = code;
    else
        uir_opencl_unload(d, code);
    return status;
}

static size_t size_of_kernel(const char *symbol) {
    return sizeof(cl_kernel) + strlen(symbol) + 1;
}

static void release_kernel(uir_driver_device *d, cl_kernel *kernel) {
    size_t count = kernel->base.phase_count;
    for (size_t i = 0; kernel->phases && i < count; i++) {
        cl_phase *phase = &kernel->phases[i];
        if (phase->kernel) d->cl.clReleaseKernel(phase->kernel);
        if (phase->arguments)
            uir_release(&d->allocator, phase->arguments, kernel->argument_count * sizeof *phase->arguments);
    }
    if (kernel->phases) uir_release(&d->allocator, kernel->phases, (count + 1) * sizeof *kernel->phases);
    uir_release(&d->allocator, kernel, size_of_kernel(kernel->name));
}

void uir_opencl_unload(uir_driver_device *d, uir_driver_code *code) {
    if (!code) return;
    while (code->kernels) {
        cl_kernel *kernel = code->kernels;
        code->kernels = kernel->next;
        release_kernel(d, kernel);
    }
    if (code->program) d->cl.clReleaseProgram(code->program);
    uir_release(&d->allocator, code, sizeof *code);
}

/* ---- kernels ---- */
/* The size that the function requires of a work-group, which the device can have. */
static uir_status find_group_size(const uir_driver_device *d, const char *name, cl_phase *phase,
                                  uir_diagnostics *diagnostics) {
    size_t required[3] = {0}, most = 0;
    int32_t error = d->cl.clGetKernelWorkGroupInfo(phase->kernel, d->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                                   sizeof required, required, NULL);
    if (!error)
        error = d->cl.clGetKernelWorkGroupInfo(phase->kernel, d->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                               NULL);
    if (error) return uir_opencl_fail(error, "clGetKernelWorkGroupInfo", diagnostics);
    phase->group_size = required[0] ? required[0] : 1;
    if (phase->group_size <= most) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                     "the OpenCL kernel '%s' needs work-groups of %zu work-items; device %s has at most %zu", name,
                     phase->group_size, d->name, most);
}

static uir_status find_phase(uir_driver_code *code, cl_kernel *kernel, uint32_t index, uir_diagnostics *diagnostics) {
    uir_driver_device *d = code->device;
    cl_phase *phase = &kernel->phases[index];
    uint32_t arguments = 0;
    int32_t error = 0;
    char name[300];
    snprintf(name, sizeof name, "%s_phase%u", kernel->name, index);
    UIR_TRY_ALLOCATE(phase->arguments,
                     uir_allocate_zeroed(&d->allocator, kernel->argument_count * sizeof *phase->arguments));
    phase->kernel = d->cl.clCreateKernel(code->program, name, &error);
    if (error) phase->kernel = NULL;
    if (error && error != CL_INVALID_KERNEL_NAME) return uir_opencl_fail(error, "clCreateKernel", diagnostics);
    if (error)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the OpenCL program lacks the kernel '%s'", name);
    error = d->cl.clGetKernelInfo(phase->kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
    if (error) return uir_opencl_fail(error, "clGetKernelInfo", diagnostics);
    if (arguments != kernel->argument_count)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the OpenCL kernel '%s' has %u arguments, not %u",
                         name, arguments, kernel->argument_count);
    UIR_TRY(find_group_size(d, name, phase, diagnostics));
    /* The library of a CPU compiles, or loads, a function when it is launched first: here, so that a run need not wait,
     * and a saved program has all of them. */
    return d->is_cpu && phase->group_size == 1 ? uir_opencl_launch_nothing(d, kernel, phase, diagnostics)
                                               : UIR_STATUS_OK;
}

static uir_status fill_kernel(uir_driver_code *code, cl_kernel *kernel, uir_diagnostics *diagnostics) {
    enum { SYMBOLS_TO_SHARED = 6 };
    uint32_t count = kernel->base.phase_count;
    kernel->argument_count = 2 * kernel->base.pointer_count + SYMBOLS_TO_SHARED;
    UIR_TRY_ALLOCATE(kernel->phases,
                     uir_allocate_zeroed(&code->device->allocator, ((size_t)count + 1) * sizeof *kernel->phases));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(find_phase(code, kernel, i, diagnostics));
    return UIR_STATUS_OK;
}

/* Kernels that differ only in their names are one function. */
static const cl_kernel *find_same(const uir_driver_code *code, const uir_driver_kernel *base, const char *symbol) {
    for (const cl_kernel *k = code->kernels; k; k = k->next)
        if (!strcmp(k->name, symbol) && k->base.dim_count == base->dim_count &&
            k->base.tile_count == base->tile_count && k->base.pointer_count == base->pointer_count &&
            k->base.phase_count == base->phase_count)
            return k;
    return NULL;
}

uir_status uir_opencl_find(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                           const uir_driver_kernel **out_kernel) {
    const uir_driver_kernel base = {code->device, entry->dim_count, entry->tile_count, entry->pointer_count,
                                    entry->phase_count};
    const cl_kernel *same = find_same(code, &base, entry->symbol);
    cl_kernel *kernel;
    *out_kernel = same ? &same->base : NULL;
    if (same) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(kernel, uir_allocate_zeroed(&code->device->allocator, size_of_kernel(entry->symbol)));
    kernel->base = base;
    memcpy(kernel->name, entry->symbol, strlen(entry->symbol) + 1);
    uir_status status = fill_kernel(code, kernel, diagnostics);
    if (status != UIR_STATUS_OK) {
        release_kernel(code->device, kernel);
        return status;
    }
    kernel->next = code->kernels;
    code->kernels = kernel;
    *out_kernel = &kernel->base;
    return UIR_STATUS_OK;
}

uir_status uir_opencl_save(const uir_driver_code *code, uir_diagnostics *diagnostics, uir_text *bytes,
                           uir_text *format) {
    const uir_driver_device *d = code->device;
    size_t size = 0;
    int32_t error = d->cl.clGetProgramInfo(code->program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
    if (error) return uir_opencl_fail(error, "clGetProgramInfo", diagnostics);
    unsigned char *binary;
    UIR_TRY_ALLOCATE(binary, uir_allocate(&d->allocator, size));
    error = d->cl.clGetProgramInfo(code->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL);
    if (!error) {
        uir_text_append(bytes, (const char *)binary, size);
        uir_text_append_string(format, d->binary_format);
    }
    uir_release(&d->allocator, binary, size);
    if (error) return uir_opencl_fail(error, "clGetProgramInfo", diagnostics);
    UIR_TRY(uir_text_status(bytes));
    return uir_text_status(format);
}

/* ---- launches ---- */
size_t uir_opencl_state_size(const uir_driver_kernel *kernel) {
    (void)kernel;
    return sizeof(cl_prepared);
}

void uir_opencl_retire(uir_driver_device *d, uir_driver_launch *launch) {
    cl_prepared *p = launch->state;
    if (p->symbols) cl_release_memory(d, p->symbols);
    p->symbols = NULL;
    launch->is_prepared = false;
}

/* One work-item takes its part of the indices; of several each group takes one, up to what a launch can have. */
uint64_t uir_opencl_count_groups(const uir_driver_device *d, const cl_phase *phase, int64_t count) {
    uint64_t most =
        phase->group_size > 1 ? INT32_MAX / phase->group_size : (uint64_t)GROUPS_PER_UNIT * d->compute_units;
    return (uint64_t)count < most ? (uint64_t)count : most;
}

/* The scratch of all units: local memory of a work-group, or a part of the workspace for each. */
static uir_status find_scratch(const uir_driver_device *d, uir_driver_launch *launch, uir_diagnostics *diagnostics) {
    const cl_kernel *kernel = cl_kernel_of(launch->kernel);
    cl_prepared *p = launch->state;
    uint64_t size;
    launch->workspace_size = 0;
    launch->workspace_zeroed = false;
    if (launch->scratch_size > INT64_MAX)
        return uir_error(diagnostics, UIR_STATUS_LIMIT, NULL, "the scratch of kernel %s is too large", kernel->name);
    p->scratch_size = (launch->scratch_size + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    for (uint32_t i = 0; i < launch->phase_count; i++) {
        const cl_phase *phase = &kernel->phases[i];
        if (launch->indices[i] <= 0) continue;
        if (phase->group_size > 1) {
            if (p->scratch_size <= d->local_memory) continue;
            return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                             "kernel %s needs %llu bytes of local memory; device %s has %llu", kernel->name,
                             (unsigned long long)p->scratch_size, d->name, (unsigned long long)d->local_memory);
        }
        if (__builtin_mul_overflow(uir_opencl_count_groups(d, phase, launch->indices[i]), p->scratch_size, &size))
            return uir_error(diagnostics, UIR_STATUS_LIMIT, NULL, "the scratch of kernel %s is too large",
                             kernel->name);
        if (launch->workspace_size < size) launch->workspace_size = size;
    }
    return UIR_STATUS_OK;
}

/* The dims and tiles are a buffer, made anew for other values. */
uir_status uir_opencl_prepare(uir_driver_device *d, uir_driver_launch *launch, uir_diagnostics *diagnostics) {
    cl_prepared *p = launch->state;
    size_t size = ((size_t)launch->dim_count + launch->tile_count) * sizeof *launch->symbols;
    int64_t none = 0;
    int32_t error = 0;
    launch->is_prepared = false;
    UIR_TRY(uir_driver_check_preparation(d, launch, diagnostics));
    uir_opencl_retire(d, launch);
    UIR_TRY(find_scratch(d, launch, diagnostics));
    void *symbols = size ? (void *)(uintptr_t)launch->symbols : &none;
    p->symbols = d->cl.clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, size ? size : sizeof none,
                                      symbols, &error);
    if (error) {
        p->symbols = NULL;
        return uir_opencl_fail(error, "clCreateBuffer", diagnostics);
    }
    launch->is_prepared = true;
    return UIR_STATUS_OK;
}
