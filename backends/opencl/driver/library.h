/* The OpenCL library: its functions, opened at run time.
 *
 * Types and numbers are those of the public interface (OpenCL 1.2, cl.h): handles are pointers, numbers have the sizes
 * of the specification. */
#ifndef UIR_BACKENDS_OPENCL_DRIVER_LIBRARY_H
#define UIR_BACKENDS_OPENCL_DRIVER_LIBRARY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cl_object *cl_handle; /* a platform, device, context, queue, memory, program, kernel or event */

enum {
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_NAME = 0x102b,
    CL_DRIVER_VERSION = 0x102d,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103a,
    CL_CONTEXT_PLATFORM = 0x1084,
    CL_MEM_SIZE = 0x1102,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11b0,
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11b1,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3,
    CL_PROFILING_COMMAND_END = 0x1283,
    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_READ_ONLY = 1 << 2,
    CL_MEM_COPY_HOST_PTR = 1 << 5,
    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
    CL_COMPLETE = 0,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_INVALID_KERNEL_NAME = -46,
    CL_PLATFORM_NOT_FOUND = -1001
};
#define CL_DEVICE_TYPE_ALL 0xffffffffu

/* CL_FUNCTION(result, name, parameters, arguments): all functions that the driver calls. */
#define CL_FUNCTIONS(CL_FUNCTION)                                                                                      \
    CL_FUNCTION(int32_t, clGetPlatformIDs, (uint32_t a, cl_handle * b, uint32_t * c), (a, b, c))                       \
    CL_FUNCTION(int32_t, clGetPlatformInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e), (a, b, c, d, e))  \
    CL_FUNCTION(int32_t, clGetDeviceIDs, (cl_handle a, uint64_t b, uint32_t c, cl_handle * d, uint32_t * e),           \
                (a, b, c, d, e))                                                                                       \
    CL_FUNCTION(int32_t, clGetDeviceInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e), (a, b, c, d, e))    \
    CL_FUNCTION(cl_handle, clCreateContext,                                                                            \
                (const intptr_t *a, uint32_t b, const cl_handle *c,                                                    \
                 void (*d)(const char *, const void *, size_t, void *), void *e, int32_t *f),                          \
                (a, b, c, d, e, f))                                                                                    \
    CL_FUNCTION(int32_t, clRetainContext, (cl_handle a), (a))                                                          \
    CL_FUNCTION(int32_t, clReleaseContext, (cl_handle a), (a))                                                         \
    CL_FUNCTION(cl_handle, clCreateBuffer, (cl_handle a, uint64_t b, size_t c, void *d, int32_t *e), (a, b, c, d, e))  \
    CL_FUNCTION(int32_t, clRetainMemObject, (cl_handle a), (a))                                                        \
    CL_FUNCTION(int32_t, clReleaseMemObject, (cl_handle a), (a))                                                       \
    CL_FUNCTION(int32_t, clGetMemObjectInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e), (a, b, c, d, e)) \
    CL_FUNCTION(cl_handle, clCreateProgramWithSource,                                                                  \
                (cl_handle a, uint32_t b, const char **c, const size_t *d, int32_t *e), (a, b, c, d, e))               \
    CL_FUNCTION(cl_handle, clCreateProgramWithBinary,                                                                  \
                (cl_handle a, uint32_t b, const cl_handle *c, const size_t *d, const unsigned char **e, int32_t *f,    \
                 int32_t *g),                                                                                          \
                (a, b, c, d, e, f, g))                                                                                 \
    CL_FUNCTION(int32_t, clBuildProgram,                                                                               \
                (cl_handle a, uint32_t b, const cl_handle *c, const char *d, void (*e)(cl_handle, void *), void *f),   \
                (a, b, c, d, e, f))                                                                                    \
    CL_FUNCTION(int32_t, clGetProgramBuildInfo, (cl_handle a, cl_handle b, uint32_t c, size_t d, void *e, size_t *f),  \
                (a, b, c, d, e, f))                                                                                    \
    CL_FUNCTION(int32_t, clGetProgramInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e), (a, b, c, d, e))   \
    CL_FUNCTION(int32_t, clReleaseProgram, (cl_handle a), (a))                                                         \
    CL_FUNCTION(cl_handle, clCreateKernel, (cl_handle a, const char *b, int32_t *c), (a, b, c))                        \
    CL_FUNCTION(int32_t, clReleaseKernel, (cl_handle a), (a))                                                          \
    CL_FUNCTION(int32_t, clGetKernelInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e), (a, b, c, d, e))    \
    CL_FUNCTION(int32_t, clGetKernelWorkGroupInfo,                                                                     \
                (cl_handle a, cl_handle b, uint32_t c, size_t d, void *e, size_t *f), (a, b, c, d, e, f))              \
    CL_FUNCTION(int32_t, clSetKernelArg, (cl_handle a, uint32_t b, size_t c, const void *d), (a, b, c, d))             \
    CL_FUNCTION(cl_handle, clCreateCommandQueue, (cl_handle a, cl_handle b, uint64_t c, int32_t * d), (a, b, c, d))    \
    CL_FUNCTION(int32_t, clRetainCommandQueue, (cl_handle a), (a))                                                     \
    CL_FUNCTION(int32_t, clReleaseCommandQueue, (cl_handle a), (a))                                                    \
    CL_FUNCTION(int32_t, clEnqueueNDRangeKernel,                                                                       \
                (cl_handle a, cl_handle b, uint32_t c, const size_t *d, const size_t *e, const size_t *f, uint32_t g,  \
                 const cl_handle *h, cl_handle *i),                                                                    \
                (a, b, c, d, e, f, g, h, i))                                                                           \
    CL_FUNCTION(int32_t, clEnqueueReadBufferRect,                                                                      \
                (cl_handle a, cl_handle b, uint32_t c, const size_t *d, const size_t *e, const size_t *f, size_t g,    \
                 size_t h, size_t i, size_t j, void *k, uint32_t l, const cl_handle *m, cl_handle *n),                 \
                (a, b, c, d, e, f, g, h, i, j, k, l, m, n))                                                            \
    CL_FUNCTION(int32_t, clEnqueueWriteBufferRect,                                                                     \
                (cl_handle a, cl_handle b, uint32_t c, const size_t *d, const size_t *e, const size_t *f, size_t g,    \
                 size_t h, size_t i, size_t j, const void *k, uint32_t l, const cl_handle *m, cl_handle *n),           \
                (a, b, c, d, e, f, g, h, i, j, k, l, m, n))                                                            \
    CL_FUNCTION(int32_t, clEnqueueReadBuffer,                                                                          \
                (cl_handle a, cl_handle b, uint32_t c, size_t d, size_t e, void *f, uint32_t g, const cl_handle *h,    \
                 cl_handle *i),                                                                                        \
                (a, b, c, d, e, f, g, h, i))                                                                           \
    CL_FUNCTION(int32_t, clEnqueueWriteBuffer,                                                                         \
                (cl_handle a, cl_handle b, uint32_t c, size_t d, size_t e, const void *f, uint32_t g,                  \
                 const cl_handle *h, cl_handle *i),                                                                    \
                (a, b, c, d, e, f, g, h, i))                                                                           \
    CL_FUNCTION(int32_t, clEnqueueCopyBuffer,                                                                          \
                (cl_handle a, cl_handle b, cl_handle c, size_t d, size_t e, size_t f, uint32_t g, const cl_handle *h,  \
                 cl_handle *i),                                                                                        \
                (a, b, c, d, e, f, g, h, i))                                                                           \
    CL_FUNCTION(int32_t, clEnqueueCopyBufferRect,                                                                      \
                (cl_handle a, cl_handle b, cl_handle c, const size_t *d, const size_t *e, const size_t *f, size_t g,   \
                 size_t h, size_t i, size_t j, uint32_t k, const cl_handle *l, cl_handle *m),                          \
                (a, b, c, d, e, f, g, h, i, j, k, l, m))                                                               \
    CL_FUNCTION(int32_t, clEnqueueFillBuffer,                                                                          \
                (cl_handle a, cl_handle b, const void *c, size_t d, size_t e, size_t f, uint32_t g,                    \
                 const cl_handle *h, cl_handle *i),                                                                    \
                (a, b, c, d, e, f, g, h, i))                                                                           \
    CL_FUNCTION(int32_t, clEnqueueMarkerWithWaitList, (cl_handle a, uint32_t b, const cl_handle *c, cl_handle *d),     \
                (a, b, c, d))                                                                                          \
    CL_FUNCTION(int32_t, clEnqueueBarrierWithWaitList, (cl_handle a, uint32_t b, const cl_handle *c, cl_handle *d),    \
                (a, b, c, d))                                                                                          \
    CL_FUNCTION(int32_t, clFlush, (cl_handle a), (a))                                                                  \
    CL_FUNCTION(int32_t, clFinish, (cl_handle a), (a))                                                                 \
    CL_FUNCTION(int32_t, clGetEventInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e), (a, b, c, d, e))     \
    CL_FUNCTION(int32_t, clGetEventProfilingInfo, (cl_handle a, uint32_t b, size_t c, void *d, size_t *e),             \
                (a, b, c, d, e))                                                                                       \
    CL_FUNCTION(int32_t, clSetEventCallback, (cl_handle a, int32_t b, void (*c)(cl_handle, int32_t, void *), void *d), \
                (a, b, c, d))                                                                                          \
    CL_FUNCTION(int32_t, clReleaseEvent, (cl_handle a), (a))

typedef struct cl_library {
    void *handle;
#define CL_FUNCTION_MEMBER(result, name, parameters, arguments) result(*name) parameters;
    CL_FUNCTIONS(CL_FUNCTION_MEMBER)
#undef CL_FUNCTION_MEMBER
} cl_library;

/* `path` NULL: its usual name. DEVICE_FAILED, with the name of the library, or of the function that it lacks. */
uir_status uir_opencl_open_library(const char *path, uir_diagnostics *diagnostics, cl_library *out_library);
void uir_opencl_close_library(cl_library *library);
/* Reports an error of the library: OUT_OF_MEMORY where it means that, else DEVICE_FAILED. */
uir_status uir_opencl_fail(int32_t error, const char *function, uir_diagnostics *diagnostics);
/* "CL_OUT_OF_RESOURCES"; "error -9999" */
const char *uir_opencl_error_name(int32_t error, char *buffer, size_t capacity);

#endif
