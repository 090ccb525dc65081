/* The OpenCL driver: devices of all platforms in order, and their memory. */
#include "backends/opencl/chips.h"
#include "backends/opencl/driver/internal.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

/* ---- devices ---- */
typedef struct found_device {
    cl_handle platform, device;
} found_device;

/* All devices of all platforms; a system without a platform has none. */
static uir_status find_devices(const cl_library *cl, uir_diagnostics *diagnostics, found_device *found,
                               uint32_t *out_count) {
    cl_handle platforms[MOST_PLATFORMS], devices[MOST_DEVICES];
    uint32_t platform_count = 0, device_count;
    *out_count = 0;
    int32_t error = cl->clGetPlatformIDs(MOST_PLATFORMS, platforms, &platform_count);
    if (error == CL_PLATFORM_NOT_FOUND) return UIR_STATUS_OK;
    if (error) return uir_opencl_fail(error, "clGetPlatformIDs", diagnostics);
    if (platform_count > MOST_PLATFORMS) platform_count = MOST_PLATFORMS;
    for (uint32_t p = 0; p < platform_count; p++) {
        device_count = 0;
        if (cl->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &device_count)) continue;
        for (uint32_t d = 0; d < device_count && d < MOST_DEVICES && *out_count < MOST_DEVICES; d++)
            found[(*out_count)++] = (found_device){platforms[p], devices[d]};
    }
    return UIR_STATUS_OK;
}

static uir_status count(const uir_driver_options *options, uir_diagnostics *diagnostics, uint32_t *out_count) {
    found_device found[MOST_DEVICES];
    cl_library cl;
    *out_count = 0;
    UIR_TRY(uir_opencl_open_library(options->library, diagnostics, &cl));
    uir_status status = find_devices(&cl, diagnostics, found, out_count);
    uir_opencl_close_library(&cl);
    return status;
}

static void get_text(const cl_library *cl, cl_handle device, uint32_t what, char *text, size_t capacity) {
    if (cl->clGetDeviceInfo(device, what, capacity, text, NULL)) *text = 0;
    text[capacity - 1] = 0;
}

static uint64_t get_number(const cl_library *cl, cl_handle device, uint32_t what) {
    uint64_t value = 0;
    return cl->clGetDeviceInfo(device, what, sizeof value, &value, NULL) ? 0 : value;
}

/* Whether a list of words, each behind a blank or the first, has one. */
static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}

static bool has_extension(const cl_library *cl, cl_handle device, const char *name) {
    char words[8192];
    get_text(cl, device, CL_DEVICE_EXTENSIONS, words, sizeof words);
    return has_word(words, name);
}

/* What the texts of kernels may use, and how the compiler rounds. Nothing is contracted, denormals are kept; PoCL would
 * print the number of warnings on stderr. */
static void choose_build_options(uir_driver_device *d) {
    uint64_t lanes = get_number(&d->cl, d->device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    bool rounds = get_number(&d->cl, d->device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    if (lanes != 4 && lanes != 16) lanes = 8;
    snprintf(d->build_options, sizeof d->build_options, "-cl-std=CL1.2 -w%s -DUIR_LANES=%u%s",
             rounds ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", (unsigned)lanes,
             d->has_f64 ? " -DUIR_HAS_F64" : "");
}

/* A CPU executes copies on the cores of its kernels: more queues would only wait for each other. */
static void describe(uir_driver_device *d, cl_handle platform) {
    char platform_name[64] = "", name[64], driver[64];
    if (d->cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, NULL))
        *platform_name = 0;
    platform_name[sizeof platform_name - 1] = 0;
    get_text(&d->cl, d->device, CL_DEVICE_NAME, name, sizeof name);
    get_text(&d->cl, d->device, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(d->name, sizeof d->name, "%s, %s", platform_name, name);
    d->largest = get_number(&d->cl, d->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    d->local_memory = get_number(&d->cl, d->device, CL_DEVICE_LOCAL_MEM_SIZE);
    d->work_group = get_number(&d->cl, d->device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    d->has_f64 = has_extension(&d->cl, d->device, "cl_khr_fp64");
    d->compute_units = (uint32_t)get_number(&d->cl, d->device, CL_DEVICE_MAX_COMPUTE_UNITS);
    if (!d->compute_units) d->compute_units = 1;
    d->is_cpu = get_number(&d->cl, d->device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
    choose_build_options(d);
    snprintf(d->binary_format, sizeof d->binary_format, "opencl-binary %s, %s, %s", d->name, driver, d->build_options);
    d->facts = (uir_driver_facts){.name = d->name,
                                  .memory = get_number(&d->cl, d->device, CL_DEVICE_GLOBAL_MEM_SIZE),
                                  .alignment = CL_ALIGNMENT,
                                  .read_behind = CL_READ_BEHIND,
                                  .queue_count = d->is_cpu ? 1 : 3,
                                  .copies_from_any = d->is_cpu,
                                  .is_harmful = true,
                                  .saved_format = d->binary_format};
}

/* ---- chips ---- */
/* What the device has less of than the kernels of a chip need, for a message; NULL: nothing. */
static const char *find_lack(const uir_driver_device *d, const uir_opencl_chip *chip, char *buffer, size_t capacity) {
    const struct {
        const char *what;
        uint64_t needed, has;
    } facts[] = {
        {"work-items of a work-group", chip->work_group, d->work_group},
        {"bytes of local memory", chip->local_memory, d->local_memory},
        {"f64 arithmetic (cl_khr_fp64)", chip->needs_f64, d->has_f64},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (facts[i].has >= facts[i].needed) continue;
        if (facts[i].needed > 1)
            snprintf(buffer, capacity, "they need %llu %s, and it has %llu", (unsigned long long)facts[i].needed,
                     facts[i].what, (unsigned long long)facts[i].has);
        else
            snprintf(buffer, capacity, "it has no %s", facts[i].what);
        return buffer;
    }
    return NULL;
}

static uir_status check_facts(const uir_driver_device *d, const uir_opencl_chip *chip, uir_diagnostics *diagnostics) {
    char lack[160];
    if (!find_lack(d, chip, lack, sizeof lack)) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "device %s cannot run kernels of chip opencl:%s: %s",
                     d->name, chip->name, lack);
}

static uir_status check_chip(const uir_driver_device *d, const char *name, uir_diagnostics *diagnostics) {
    const uir_opencl_chip *chip;
    for (size_t i = 0; (chip = uir_opencl_get_chip(i)) != NULL; i++)
        if (!strcmp(chip->name, name) && (!d->named || d->named == chip)) return check_facts(d, chip, diagnostics);
    return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "name the package's chip, or none",
                          "the code is for chip %s of OpenCL devices, and the device was opened as chip %s", name,
                          d->facts.chip);
}

/* The named chip, or that of the device's type. */
static uir_status choose_chip(uir_driver_device *d, const uir_opencl_chip *named, uir_diagnostics *diagnostics) {
    char lack[160];
    const uir_opencl_chip *chip = named;
    if (!chip && d->is_cpu) chip = uir_opencl_get_chip(UIR_OPENCL_CPU);
    if (!chip || (!named && find_lack(d, chip, lack, sizeof lack))) chip = uir_opencl_get_chip(UIR_OPENCL_GPU);
    d->facts.chip = chip->name;
    d->named = named;
    return check_facts(d, chip, diagnostics);
}

static uir_status start_device(uir_driver_device *d, const uir_driver_options *options, uir_diagnostics *diagnostics) {
    found_device found[MOST_DEVICES];
    uir_opencl_parameter wanted;
    uint32_t device_count;
    int32_t error = 0;
    if (!uir_opencl_read_parameter(options->parameter, &wanted))
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "use " UIR_OPENCL_PARAMETERS,
                              "'%s' names no chip and no device of OpenCL", options->parameter);
    uint32_t number = wanted.has_device ? wanted.device : options->ordinal;
    UIR_TRY(uir_opencl_open_library(options->library, diagnostics, &d->cl));
    UIR_TRY(find_devices(&d->cl, diagnostics, found, &device_count));
    if (!device_count)
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "install the OpenCL driver of a device",
                              "the OpenCL library finds no device");
    if (number >= device_count)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "OpenCL device %u is unknown: the system has %u, counted from 0", number, device_count);
    const found_device *chosen = &found[number];
    const intptr_t properties[] = {CL_CONTEXT_PLATFORM, (intptr_t)chosen->platform, 0};
    d->device = chosen->device;
    describe(d, chosen->platform);
    UIR_TRY(choose_chip(d, wanted.chip, diagnostics));
    if (options->native) {
        d->context = options->native;
        error = d->cl.clRetainContext(d->context);
        if (error) d->context = NULL;
    } else {
        d->context = d->cl.clCreateContext(properties, 1, &d->device, NULL, NULL, &error);
    }
    if (error) return uir_opencl_fail(error, "clCreateContext", diagnostics);
    d->nothing = d->cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE, CL_ALIGNMENT + CL_READ_BEHIND, NULL, &error);
    return error ? uir_opencl_fail(error, "clCreateBuffer", diagnostics) : UIR_STATUS_OK;
}

static void close_device(uir_driver_device *d) {
    if (!d) return;
    uir_allocator allocator = d->allocator;
    if (d->nothing) d->cl.clReleaseMemObject(d->nothing);
    if (d->context) d->cl.clReleaseContext(d->context);
    uir_opencl_close_library(&d->cl);
    pthread_mutex_destroy(&d->lock);
    uir_release(&allocator, d, sizeof *d);
}

static uir_status open_device(const uir_driver_options *options, uir_diagnostics *diagnostics,
                              uir_driver_device **out_device) {
    uir_driver_device *d;
    *out_device = NULL;
    UIR_TRY_ALLOCATE(d, uir_allocate_zeroed(options->allocator, sizeof *d));
    d->allocator = *options->allocator;
    pthread_mutex_init(&d->lock, NULL);
    uir_status status = start_device(d, options, diagnostics);
    if (status != UIR_STATUS_OK) {
        close_device(d);
        return status;
    }
    *out_device = d;
    return UIR_STATUS_OK;
}

static const uir_driver_facts *get_facts(const uir_driver_device *d) {
    return &d->facts;
}

/* ---- memory ---- */
/* Takes over the memory. */
static uir_status make_buffer(uir_driver_device *d, uint64_t size, cl_handle memory, char *host,
                              uir_driver_buffer **out_buffer) {
    cl_buffer *buffer = uir_allocate_zeroed(&d->allocator, sizeof *buffer);
    if (!buffer) {
        if (memory) cl_release_memory(d, memory);
        if (host) uir_release(&d->allocator, host, (size_t)size);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    *buffer = (cl_buffer){{d, size}, memory, host};
    *out_buffer = &buffer->base;
    return UIR_STATUS_OK;
}

static uir_status refuse_size(const uir_driver_device *d, uint64_t size, uir_diagnostics *diagnostics) {
    return uir_error(diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL, "device %s cannot allocate %llu bytes", d->name,
                     (unsigned long long)size);
}

static uir_status allocate(uir_driver_device *d, uir_memory_kind kind, uint64_t size, uir_diagnostics *diagnostics,
                           uir_driver_buffer **out_buffer, char **out_host) {
    int32_t error = 0;
    uir_status status;
    *out_buffer = NULL;
    *out_host = NULL;
    if (kind == UIR_MEMORY_SHARED)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "device %s has no memory shared with the host",
                         d->name);
    if (size > SIZE_MAX / 2 || (kind == UIR_MEMORY_DEVICE && d->largest && size > d->largest - CL_READ_BEHIND))
        return refuse_size(d, size, diagnostics);
    if (kind == UIR_MEMORY_STAGING) {
        char *host = uir_allocate(&d->allocator, (size_t)size);
        status = host ? make_buffer(d, size, NULL, host, out_buffer) : UIR_STATUS_OUT_OF_MEMORY;
        if (status == UIR_STATUS_OK) *out_host = host;
        return status == UIR_STATUS_OK ? status : refuse_size(d, size, diagnostics);
    }
    cl_handle memory = d->cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)size + CL_READ_BEHIND, NULL, &error);
    if (error) return uir_opencl_fail(error, "clCreateBuffer", diagnostics);
    status = make_buffer(d, size, memory, NULL, out_buffer);
    return status == UIR_STATUS_OK ? status : refuse_size(d, size, diagnostics);
}

static void release(uir_driver_device *d, uir_driver_buffer *base) {
    cl_buffer *buffer = (cl_buffer *)(void *)base;
    if (!buffer) return;
    if (buffer->memory) cl_release_memory(d, buffer->memory);
    if (buffer->host) uir_release(&d->allocator, buffer->host, (size_t)base->size);
    uir_release(&d->allocator, buffer, sizeof *buffer);
}

static uir_status import(uir_driver_device *d, void *native, uint64_t size, uir_diagnostics *diagnostics,
                         uir_driver_buffer **out_buffer) {
    size_t has = 0;
    *out_buffer = NULL;
    int32_t error = native ? d->cl.clGetMemObjectInfo(native, CL_MEM_SIZE, sizeof has, &has, NULL) : 0;
    if (error) return uir_opencl_fail(error, "clGetMemObjectInfo", diagnostics);
    if (size > has)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the memory has %zu bytes, not %llu", has,
                         (unsigned long long)size);
    error = d->cl.clRetainMemObject(native);
    if (error) return uir_opencl_fail(error, "clRetainMemObject", diagnostics);
    uir_status status = make_buffer(d, size, native, NULL, out_buffer);
    return status == UIR_STATUS_OK ? status : refuse_size(d, size, diagnostics);
}

static void *get_native(const uir_driver_buffer *buffer) {
    return ((const cl_buffer *)(const void *)buffer)->memory;
}

const uir_driver uir_opencl_driver = {
    .version = UIR_DRIVER_VERSION,
    .name = "opencl",
    .count = count,
    .open = open_device,
    .close = close_device,
    .get_facts = get_facts,
    .check_chip = check_chip,
    .allocate = allocate,
    .release = release,
    .import = import,
    .get_native = get_native,
    .rank = uir_opencl_rank,
    .load = uir_opencl_load,
    .unload = uir_opencl_unload,
    .find = uir_opencl_find,
    .save = uir_opencl_save,
    .state_size = uir_opencl_state_size,
    .prepare = uir_opencl_prepare,
    .retire = uir_opencl_retire,
    .create_queue = uir_opencl_create_queue,
    .destroy_queue = uir_opencl_destroy_queue,
    .launch = uir_opencl_launch,
    .copy = uir_opencl_copy,
    .fill = uir_opencl_fill,
    .mark = uir_opencl_mark,
    .follow = uir_opencl_follow,
    .wait = uir_opencl_wait,
    .give_up = uir_opencl_give_up,
    .get_time = uir_opencl_get_time,
};
