/* The OpenCL driver: programs from source or a saved binary, their kernels, launches. */
#include "backends/opencl/driver/internal.h"

#include <stdio.h>
#include <string.h>

static const char source_format[] = "opencl-c";
/* Rounding as written: no contraction to multiply-adds, denormals kept. */
static const char build_options[] = "-cl-std=CL1.2";

/* ---- programs ---- */
uint32_t uir_opencl_rank(const uir_driver_device *d, const char *format) {
    return !strcmp(format, d->binary_format) ? 2 : !strcmp(format, source_format) ? 1 : 0;
}

/* The compiler's first lines. */
static uir_status explain_build(const uir_driver_device *d, cl_handle program, int32_t error,
                                uir_diagnostics *diagnostics) {
    static const char none[] = "";
    size_t size = 0;
    char *log = NULL, text[32];
    if (!d->cl.clGetProgramBuildInfo(program, d->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) && size &&
        size < SIZE_MAX / 2)
        log = uir_allocate_zeroed(&d->allocator, size + 1);
    if (log && d->cl.clGetProgramBuildInfo(program, d->device, CL_PROGRAM_BUILD_LOG, size, log, NULL)) *log = 0;
    uir_location where = {.quote = log ? log : none};
    uir_status status =
        uir_error(diagnostics, error == CL_BUILD_PROGRAM_FAILURE ? UIR_STATUS_BAD_FILE : UIR_STATUS_DEVICE_FAILED,
                  &where, "the OpenCL program does not compile: %s", uir_opencl_error_name(error, text, sizeof text));
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
    error = d->cl.clBuildProgram(*out_program, 1, &d->device, build_options, NULL, NULL);
    return error ? explain_build(d, *out_program, error, diagnostics) : UIR_STATUS_OK;
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

static void release_kernel(uir_driver_device *d, cl_kernel *kernel) {
    uint32_t phases = kernel->base.phase_count;
    for (uint32_t i = 0; kernel->phases && i < phases; i++)
        if (kernel->phases[i]) d->cl.clReleaseKernel(kernel->phases[i]);
    if (kernel->phases) uir_release(&d->allocator, kernel->phases, (phases + 1) * sizeof *kernel->phases);
    if (kernel->group_sizes)
        uir_release(&d->allocator, kernel->group_sizes, (phases + 1) * sizeof *kernel->group_sizes);
    uir_release(&d->allocator, kernel, sizeof *kernel);
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
static uir_status find_phase(uir_driver_code *code, const uir_kernel_entry *entry, uint32_t phase, cl_kernel *kernel,
                             uir_diagnostics *diagnostics) {
    uir_driver_device *d = code->device;
    uint32_t arguments = 0, expected = 2 * entry->pointer_count + 2;
    size_t required[3] = {0};
    int32_t error = 0;
    char name[300];
    snprintf(name, sizeof name, "%s_phase%u", entry->symbol, phase);
    kernel->phases[phase] = d->cl.clCreateKernel(code->program, name, &error);
    if (error) {
        kernel->phases[phase] = NULL;
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the OpenCL program lacks the kernel '%s'", name);
    }
    error = d->cl.clGetKernelInfo(kernel->phases[phase], CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
    if (error) return uir_opencl_fail(error, "clGetKernelInfo", diagnostics);
    if (arguments != expected)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the OpenCL kernel '%s' has %u arguments, not %u",
                         name, arguments, expected);
    error = d->cl.clGetKernelWorkGroupInfo(kernel->phases[phase], d->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                           sizeof required, required, NULL);
    if (error) return uir_opencl_fail(error, "clGetKernelWorkGroupInfo", diagnostics);
    kernel->group_sizes[phase] = required[0] ? required[0] : 1;
    return UIR_STATUS_OK;
}

static uir_status fill_kernel(uir_driver_code *code, const uir_kernel_entry *entry, cl_kernel *kernel,
                              uir_diagnostics *diagnostics) {
    const uir_allocator *allocator = &code->device->allocator;
    size_t count = (size_t)entry->phase_count + 1;
    UIR_TRY_ALLOCATE(kernel->phases, uir_allocate_zeroed(allocator, count * sizeof *kernel->phases));
    UIR_TRY_ALLOCATE(kernel->group_sizes, uir_allocate_zeroed(allocator, count * sizeof *kernel->group_sizes));
    for (uint32_t i = 0; i < entry->phase_count; i++) UIR_TRY(find_phase(code, entry, i, kernel, diagnostics));
    return UIR_STATUS_OK;
}

uir_status uir_opencl_find(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                           const uir_driver_kernel **out_kernel) {
    cl_kernel *kernel;
    *out_kernel = NULL;
    UIR_TRY_ALLOCATE(kernel, uir_allocate_zeroed(&code->device->allocator, sizeof *kernel));
    kernel->base = (uir_driver_kernel){code->device, entry->dim_count, entry->tile_count, entry->pointer_count,
                                       entry->phase_count};
    uir_status status = fill_kernel(code, entry, kernel, diagnostics);
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
    if (p->symbols) d->cl.clReleaseMemObject(p->symbols);
    p->symbols = NULL;
    launch->is_prepared = false;
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
    void *symbols = size ? (void *)(uintptr_t)launch->symbols : &none;
    p->symbols = d->cl.clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, size ? size : sizeof none,
                                      symbols, &error);
    if (error) {
        p->symbols = NULL;
        return uir_opencl_fail(error, "clCreateBuffer", diagnostics);
    }
    launch->workspace_size = 0;
    launch->workspace_zeroed = false;
    launch->is_prepared = true;
    return UIR_STATUS_OK;
}
