/* The structures of the null device: memory (device.c), code and launches (code.c), queues (queue.c). */
#ifndef UIR_BACKENDS_NULL_DRIVER_INTERNAL_H
#define UIR_BACKENDS_NULL_DRIVER_INTERNAL_H

#include "backends/null/driver/null.h"

#include <pthread.h>

enum {
    NULL_FORMATS = 8,
    NULL_CHANGES = 8,     /* steps from one change of a queue's priority to the next */
    NULL_ALIGNMENT = 256, /* larger than the runtime's own, as that of GPUs is */
    NULL_READ_BEHIND = 64,
    NULL_WORKSPACE_BYTES = 96 /* of a launch of several phases: an arrival counter for each */
};

/* Modelled rates and latencies. */
#define NULL_BYTES_PER_MS_MEMORY 1e8
#define NULL_BYTES_PER_MS_BUS    1e7
#define NULL_LAUNCH_MS           0.005
#define NULL_COPY_MS             0.010

/* Memory behind one handle, shared by the buffers that name it. */
typedef struct null_storage {
    struct null_storage *next;
    uint32_t buffers;
    uir_memory_kind kind;
    char *data;
    void *handle; /* addresses without access */
    uint64_t size, allocated;
    uint32_t pending; /* copies that name its address on the host */
} null_storage;

typedef struct null_buffer {
    uir_driver_buffer base;
    null_storage *storage;
    uint32_t pending; /* requests that use it */
} null_buffer;

struct uir_driver_code {
    uir_driver_device *device;
    const uir_kernel_format *format;
    uir_loaded_module *module;
    struct null_kernel *kernels;
};

typedef struct null_kernel {
    uir_driver_kernel base;
    struct null_kernel *next;
    const uir_kernel_format *format;
    const uir_loaded_kernel *kernel;
} null_kernel;

/* A launch's state: a launch of the kernel's format, its arrays, the format's own state. */
typedef struct null_prepared {
    uir_kernel_launch base;
    void **pointers;
    size_t *sizes;
} null_prepared;

typedef enum null_request_kind { NULL_LAUNCH, NULL_COPY, NULL_FILL, NULL_MARK, NULL_FOLLOW } null_request_kind;

typedef struct null_request {
    null_request_kind kind;
    double submitted; /* on the host's clock */
    /* NULL_LAUNCH: copies of what the caller may change. */
    const uir_driver_launch *launch;
    uint32_t phase, phase_count;
    uir_region *pointers;
    int64_t *begins;
    uint32_t pointer_capacity, begin_capacity;
    uir_region workspace;
    uir_driver_copy copy; /* NULL_COPY; NULL_FILL: `to` */
    null_storage *locked; /* NULL_COPY: the page-locked memory that it names by its address; NULL: none */
    unsigned char value;
    uir_driver_queue *other; /* NULL_FOLLOW */
    uint64_t point;          /* NULL_FOLLOW, NULL_MARK */
} null_request;

struct uir_driver_queue {
    uir_driver_queue *next; /* of the device */
    uir_driver_device *device;
    null_request *requests; /* a ring */
    uint32_t capacity, first, count;
    uint64_t marked, reached; /* points */
    double *times;            /* of the last points */
    uint32_t point_count;
    uint32_t followers; /* pending requests of other queues that name it */
    double clock;       /* milliseconds */
    uint64_t priority;  /* drawn */
    bool has_failed;
    uir_driver_failure failure;
};

struct uir_driver_device {
    uir_allocator allocator;
    uir_driver_facts facts;
    char name[48];
    const uir_kernel_format *formats[NULL_FORMATS];
    uint32_t format_count;
    pthread_mutex_t lock;
    uint64_t random;
    bool is_lazy;       /* a wait executes what it needs alone */
    uint32_t eagerness; /* of 4: how often a request executes when another is submitted */
    unsigned char pattern;
    uint32_t most_pointers, most_phases; /* of the launches prepared so far */
    null_storage *storages;
    uir_null_copies copies;
    uir_driver_queue *queues;
    double clock; /* of the host */
    uir_kernel_scratch scratch;
    bool is_lost;
    char why_lost[200];
};

static inline null_buffer *null_buffer_of(const uir_region *region) {
    return (null_buffer *)(void *)region->buffer;
}

static inline uint64_t null_draw(uir_driver_device *device) {
    device->random ^= device->random >> 12;
    device->random ^= device->random << 25;
    device->random ^= device->random >> 27;
    return device->random * 0x2545f4914f6cdd1du >> 16;
}

/* ---- device.c ---- */
/* The address of the first byte, on the host or in the simulation. */
char *uir_null_address(const uir_region *region);
/* The page-locked memory that a region without a buffer is in; NULL: none. */
null_storage *uir_null_find_locked(const uir_driver_device *device, const uir_region *region);

/* ---- code.c ---- */
uint32_t uir_null_rank(const uir_driver_device *device, const char *format);
uir_status uir_null_load(uir_driver_device *device, const uir_driver_image *image, uir_diagnostics *diagnostics,
                         uir_driver_code **out_code);
void uir_null_unload(uir_driver_device *device, uir_driver_code *code);
uir_status uir_null_find(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                         const uir_driver_kernel **out_kernel);
size_t uir_null_state_size(const uir_driver_kernel *kernel);
uir_status uir_null_prepare(uir_driver_device *device, uir_driver_launch *launch, uir_diagnostics *diagnostics);
void uir_null_retire(uir_driver_device *device, uir_driver_launch *launch);
/* Executes phases of a prepared launch. `failure` has the reason of a status that is not OK. */
uir_status uir_null_execute(uir_driver_device *device, const null_request *request, char *failure, size_t capacity);
uint64_t uir_null_launch_bytes(const null_request *request);

/* ---- queue.c ---- */
uir_status uir_null_create_queue(uir_driver_device *device, uint32_t points, void *native, uir_diagnostics *diagnostics,
                                 uir_driver_queue **out_queue);
void uir_null_destroy_queue(uir_driver_queue *queue);
uir_status uir_null_launch(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase,
                           uint32_t phase_count, uir_diagnostics *diagnostics);
/* Pending copies name the page-locked memory no more: the device is lost, and executes none of them. */
void uir_null_forget_locked(uir_driver_device *device, const null_storage *storage);
uir_status uir_null_copy(uir_driver_queue *queue, const uir_driver_copy *copy, uir_diagnostics *diagnostics);
uir_status uir_null_fill(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                         uir_diagnostics *diagnostics);
uir_status uir_null_mark(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point);
uir_status uir_null_follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                           uir_diagnostics *diagnostics);
uir_status uir_null_wait(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                         uir_driver_failure *out_failure);
bool uir_null_get_time(uir_driver_queue *queue, uint64_t point, double *out_ms);

#endif
