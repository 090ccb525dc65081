#include "backends/opencl/driver/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char usual_name[] = "libOpenCL.so.1";

static const struct {
    int32_t error;
    uir_status status;
    const char *name;
} errors[] = {
    {-1, UIR_STATUS_DEVICE_FAILED, "CL_DEVICE_NOT_FOUND"},
    {-2, UIR_STATUS_DEVICE_FAILED, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, UIR_STATUS_DEVICE_FAILED, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, UIR_STATUS_OUT_OF_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, UIR_STATUS_OUT_OF_MEMORY, "CL_OUT_OF_RESOURCES"},
    {-6, UIR_STATUS_OUT_OF_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {-11, UIR_STATUS_BAD_FILE, "CL_BUILD_PROGRAM_FAILURE"},
    {-14, UIR_STATUS_DEVICE_FAILED, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, UIR_STATUS_DEVICE_FAILED, "CL_INVALID_VALUE"},
    {-38, UIR_STATUS_INVALID_ARGUMENT, "CL_INVALID_MEM_OBJECT"},
    {-42, UIR_STATUS_BAD_FILE, "CL_INVALID_BINARY"},
    {-46, UIR_STATUS_NOT_FOUND, "CL_INVALID_KERNEL_NAME"},
    {-48, UIR_STATUS_DEVICE_FAILED, "CL_INVALID_KERNEL"},
    {-52, UIR_STATUS_DEVICE_FAILED, "CL_INVALID_KERNEL_ARGS"},
    {-54, UIR_STATUS_DEVICE_FAILED, "CL_INVALID_WORK_GROUP_SIZE"},
    {-61, UIR_STATUS_OUT_OF_MEMORY, "CL_INVALID_BUFFER_SIZE"},
    {-1001, UIR_STATUS_DEVICE_FAILED, "CL_PLATFORM_NOT_FOUND_KHR"},
};

uir_status uir_opencl_open_library(const char *path, uir_diagnostics *diagnostics, cl_library *out_library) {
    const char *name = path ? path : usual_name;
    /* It stays in memory: what it has opened, the drivers of devices, do too, and it would forget them. */
    *out_library = (cl_library){.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!out_library->handle)
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                              "install an OpenCL library and the driver of the device",
                              "the OpenCL library %s cannot be opened", name);
#define CL_FUNCTION_FIND(result, function, parameters, arguments)                                                      \
    if (!(*(void **)&out_library->function = dlsym(out_library->handle, #function))) {                                 \
        uir_opencl_close_library(out_library);                                                                         \
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "install a library of OpenCL 1.2 or later", \
                              "the OpenCL library %s lacks the function %s", name, #function);                         \
    }
    CL_FUNCTIONS(CL_FUNCTION_FIND)
#undef CL_FUNCTION_FIND
    return UIR_STATUS_OK;
}

void uir_opencl_close_library(cl_library *library) {
    if (library->handle) dlclose(library->handle);
    *library = (cl_library){.handle = NULL};
}

const char *uir_opencl_error_name(int32_t error, char *buffer, size_t capacity) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error) return errors[i].name;
    snprintf(buffer, capacity, "error %d", (int)error);
    return buffer;
}

uir_status uir_opencl_fail(int32_t error, const char *function, uir_diagnostics *diagnostics) {
    uir_status status = UIR_STATUS_DEVICE_FAILED;
    char text[32];
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error) status = errors[i].status;
    return uir_error(diagnostics, status, NULL, "OpenCL: %s failed: %s", function,
                     uir_opencl_error_name(error, text, sizeof text));
}
