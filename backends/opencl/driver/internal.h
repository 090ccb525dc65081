/* The structures of the OpenCL driver: devices and memory (device.c), code and launches (code.c), queues (queue.c). */
#ifndef UIR_BACKENDS_OPENCL_DRIVER_INTERNAL_H
#define UIR_BACKENDS_OPENCL_DRIVER_INTERNAL_H

#include "backends/opencl/driver/library.h"
#include "backends/opencl/driver/opencl.h"

#include <pthread.h>

enum {
    CL_ALIGNMENT = 64,  /* of a region: kernels get (buffer, offset), and buffers have at least that */
    CL_READ_BEHIND = 64 /* bytes that a kernel may read behind a region */
};

struct uir_driver_device {
    uir_allocator allocator;
    cl_library cl;
    cl_handle device, context;
    cl_handle nothing; /* a buffer for pointers without elements */
    uir_driver_facts facts;
    char name[160], binary_format[512], build_options[160];
    uint64_t largest;      /* bytes of an allocation */
    uint64_t local_memory; /* bytes of a work-group */
    uint64_t work_group;   /* the most work-items of one */
    bool has_f64, is_cpu;
    const struct uir_opencl_chip *named; /* by the parameter; NULL: any chip that the device has enough for */
    uint32_t compute_units;              /* at least 1 */
    uint64_t memory_age;                 /* atomic: counts memory that was released, whose handle another may get */
    bool is_given_up;                    /* atomic */
    pthread_mutex_t lock;                /* held while a kernel's arguments are set and it is submitted */
};

typedef struct cl_buffer {
    uir_driver_buffer base;
    cl_handle memory; /* NULL: the host's, at `host` */
    char *host;
} cl_buffer;

struct uir_driver_code {
    uir_driver_device *device;
    cl_handle program;
    struct cl_kernel *kernels;
};

typedef struct cl_argument {
    uint64_t bits;
    size_t size; /* bytes; 0: not set */
} cl_argument;

typedef struct cl_phase {
    cl_handle kernel;
    size_t group_size;      /* work-items of a work-group */
    uint64_t memory_age;    /* of the device when the arguments were set */
    cl_argument *arguments; /* as they were set last */
} cl_phase;

typedef struct cl_kernel {
    uir_driver_kernel base;
    struct cl_kernel *next;
    cl_phase *phases;
    uint32_t argument_count; /* of each phase */
    char name[];
} cl_kernel;

typedef struct cl_prepared {
    cl_handle symbols;     /* a buffer */
    uint64_t scratch_size; /* of a unit, rounded up */
} cl_prepared;

typedef struct cl_bell cl_bell;

struct uir_driver_queue {
    uir_driver_device *device;
    cl_handle queue;
    cl_handle *events; /* of the last points */
    uint32_t point_count;
    uint64_t marked;
    cl_bell *bell;      /* rung by the event of a point that somebody waits for */
    const char *called; /* the last function of the library that a request called */
};

static inline cl_buffer *cl_buffer_of(const uir_region *region) {
    return (cl_buffer *)(void *)region->buffer;
}
static inline const cl_kernel *cl_kernel_of(const uir_driver_kernel *kernel) {
    return (const cl_kernel *)(const void *)kernel;
}
/* Memory that no request uses: from here on an argument that was set to its handle is set again. */
static inline void cl_release_memory(uir_driver_device *device, cl_handle memory) {
    __atomic_add_fetch(&device->memory_age, 1, __ATOMIC_SEQ_CST);
    device->cl.clReleaseMemObject(memory);
}
/* Where the host may follow the region; NULL: device memory. */
static inline char *cl_host_of(const uir_region *region) {
    return !region->buffer              ? region->host
           : cl_buffer_of(region)->host ? cl_buffer_of(region)->host + region->offset
                                        : NULL;
}

/* ---- code.c ---- */
/* Work-groups of a phase that share `count` indices. */
uint64_t uir_opencl_count_groups(const uir_driver_device *device, const cl_phase *phase, int64_t count);
uint32_t uir_opencl_rank(const uir_driver_device *device, const char *format);
uir_status uir_opencl_load(uir_driver_device *device, const uir_driver_image *image, uir_diagnostics *diagnostics,
                           uir_driver_code **out_code);
void uir_opencl_unload(uir_driver_device *device, uir_driver_code *code);
uir_status uir_opencl_find(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                           const uir_driver_kernel **out_kernel);
uir_status uir_opencl_save(const uir_driver_code *code, uir_diagnostics *diagnostics, uir_text *bytes,
                           uir_text *format);
size_t uir_opencl_state_size(const uir_driver_kernel *kernel);
uir_status uir_opencl_prepare(uir_driver_device *device, uir_driver_launch *launch, uir_diagnostics *diagnostics);
void uir_opencl_retire(uir_driver_device *device, uir_driver_launch *launch);

/* ---- queue.c ---- */
uir_status uir_opencl_create_queue(uir_driver_device *device, uint32_t points, void *native,
                                   uir_diagnostics *diagnostics, uir_driver_queue **out_queue);
void uir_opencl_destroy_queue(uir_driver_queue *queue);
uir_status uir_opencl_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                             uint32_t phase_count, uir_diagnostics *diagnostics);
/* Launches a function of one work-item for no index, which computes nothing, and waits. */
uir_status uir_opencl_launch_nothing(uir_driver_device *device, const cl_kernel *kernel, cl_phase *phase,
                                     uir_diagnostics *diagnostics);
uir_status uir_opencl_copy(uir_driver_queue *queue, const uir_driver_copy *copy, uir_diagnostics *diagnostics);
uir_status uir_opencl_fill(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                           uir_diagnostics *diagnostics);
uir_status uir_opencl_mark(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point);
uir_status uir_opencl_follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                             uir_diagnostics *diagnostics);
uir_status uir_opencl_wait(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                           uir_driver_failure *out_failure);
void uir_opencl_give_up(uir_driver_device *device);
bool uir_opencl_get_time(uir_driver_queue *queue, uint64_t point, double *out_ms);

#endif
