/* Drivers: devices with memory, code and queues of their own.
 *
 * In: kernel images of a package, requests in the order of a plan. Out: results in a device's memory. A driver is a
 * table of functions; the runtime knows devices only through it. A queue executes its requests in their order, at any
 * time after they are submitted. Points alone order the requests of two queues. The host follows no address of device
 * memory but uir_region.host. Any thread may call a driver; the functions of one queue are called by one thread at a
 * time. A status other than OK
 * and OUT_OF_MEMORY comes with a message, except from `wait`. */
#ifndef UIR_RUNTIME_DRIVER_H
#define UIR_RUNTIME_DRIVER_H

#include "base/text.h"
#include "runtime/format.h"

typedef struct uir_driver_device uir_driver_device; /* an opened device; private to the driver */
typedef struct uir_driver_code uir_driver_code;     /* a loaded image; private to the driver */
typedef struct uir_driver_queue uir_driver_queue;   /* private to the driver */

/* ---- devices ---- */
typedef struct uir_driver_options {
    const uir_allocator *allocator;          /* of the driver's own structures on the host */
    uint32_t ordinal;                        /* which of the driver's devices, from 0 */
    const char *parameter;                   /* the text behind the colon of the device's name; NULL: none */
    const char *library;                     /* path of the vendor's library; NULL: its usual name */
    void *native;                            /* the caller's context of the vendor's library; NULL: the driver's own */
    const uir_kernel_format *const *formats; /* for devices that execute on the host; they outlive the device */
    uint32_t format_count;
} uir_driver_options;

typedef struct uir_driver_facts {
    const char *name;     /* in reports: "PoCL 3.1, cpu"; lives as long as the device */
    const char *chip;     /* the chip of the machine description that its kernels are made for */
    uint64_t memory;      /* bytes; 0: unknown */
    uint32_t alignment;   /* of the offset of a kernel's region, in bytes; a power of 2 */
    uint32_t read_behind; /* bytes behind a region that its kernels may read: allocations have so many more */
    uint32_t queue_count; /* queues that execute at the same time; at least 1 */
    bool joins_phases;    /* one launch may execute several phases, with a barrier between */
    bool shares_memory;   /* device memory is the host's: its regions have `host` */
    bool copies_from_any; /* copies of the host's memory are as fast where it is not page-locked */
    bool is_harmful;      /* its code can reach memory that is not its own: for trusted packages only */
    bool is_simulated;    /* its times are modelled */
    /* The format that `save` names, by the device, its driver and how it compiles; NULL: it saves nothing. */
    const char *saved_format;
} uir_driver_facts;

/* ---- memory ---- */
typedef enum uir_memory_kind {
    UIR_MEMORY_DEVICE,  /* of the device; the host has no address, unless the device shares memory */
    UIR_MEMORY_STAGING, /* of the host, page-locked, for copies; a driver knows it by its address too: regions of it
                         * may have no buffer */
    UIR_MEMORY_SHARED   /* both access it */
} uir_memory_kind;

/* An allocation. A driver's own buffer begins with this. */
typedef struct uir_driver_buffer {
    uir_driver_device *device;
    uint64_t size; /* bytes */
} uir_driver_buffer;

/* A range of bytes in a buffer, or in the host's memory. Regions of one buffer with one offset are the same memory. */
typedef struct uir_region {
    uir_driver_buffer *buffer; /* NULL: the host's memory at `host` */
    uint64_t offset, size;     /* bytes */
    char *host;                /* the address of the first byte, where the host may follow it; else NULL */
} uir_region;

/* ---- code ---- */
typedef struct uir_driver_image {
    const char *format; /* "vm", "opencl-c", "cubin sm_90" */
    const void *bytes;  /* borrowed until the code is unloaded */
    size_t size;
} uir_driver_image;

/* A kernel variant of loaded code; lives as long as the code. A driver's own kernel begins with this. */
typedef struct uir_driver_kernel {
    uir_driver_device *device;
    uint32_t dim_count, tile_count, pointer_count, phase_count;
} uir_driver_kernel;

/* A kernel bound to sizes. The caller sets all members except those of `prepare`. Arrays belong to the caller. */
typedef struct uir_driver_launch {
    const uir_driver_kernel *kernel;
    const int64_t *symbols; /* values of the dims, then of the tiles; read by `prepare` */
    uint32_t dim_count, tile_count, pointer_count, phase_count;
    const uint64_t *needed;      /* per pointer: bytes that the kernel accesses; read by `prepare` */
    const int64_t *indices;      /* per phase: number of flat parallel indices; read by `prepare` */
    uint64_t scratch_size;       /* bytes of scratch that a unit needs, where the plan has them; read by `prepare` */
    const uir_region *pointers;  /* in order, at least `needed` bytes each; each `launch` reads them */
    const int64_t *begins;       /* per phase: the first index to execute; each `launch` reads them */
    uint32_t step;               /* named by failures */
    const volatile bool *cancel; /* polled by a device whose kernels can be interrupted; NULL: none */
    void *state;                 /* state_size(kernel) bytes, 64-byte aligned, zeroed once; private to the driver */
    uint64_t workspace_size;     /* set by `prepare`: bytes of device memory that an execution needs; 0: none */
    bool workspace_zeroed;       /* set by `prepare`: the workspace is zero before an execution, and again after it */
    bool is_prepared;            /* set by `prepare` and `retire` */
    uir_region workspace;        /* at least workspace_size bytes, from the first byte of a buffer; shared by the
                                  * launches of one queue */
} uir_driver_launch;

/* ---- requests ---- */
/* `rows` stretches of `row_bytes`, `from_pitch` and `to_pitch` bytes apart; the regions hold all of them. */
typedef struct uir_driver_copy {
    uir_region from, to;
    uint64_t rows, row_bytes, from_pitch, to_pitch;
    uint32_t step; /* named by failures */
} uir_driver_copy;

typedef struct uir_driver_failure {
    uint32_t step; /* of the request that failed; UINT32_MAX: unknown */
    bool is_lost;  /* the device executes nothing any more */
    char text[240];
} uir_driver_failure;

/* ---- the driver ---- */
enum { UIR_DRIVER_VERSION = 1 };

typedef struct uir_driver {
    uint32_t version; /* UIR_DRIVER_VERSION; a driver of another version is refused */
    const char *name; /* "opencl" */

    /* Number of devices. DEVICE_FAILED, with the library and the symbol that are missing, if the driver cannot work. */
    uir_status (*count)(const uir_driver_options *options, uir_diagnostics *diagnostics, uint32_t *out_count);
    /* INVALID_ARGUMENT for an unknown ordinal or parameter; DEVICE_FAILED. */
    uir_status (*open)(const uir_driver_options *options, uir_diagnostics *diagnostics, uir_driver_device **out_device);
    void (*close)(uir_driver_device *device); /* its queues, code and buffers are gone */
    const uir_driver_facts *(*get_facts)(const uir_driver_device *device);
    /* Whether the device runs kernels that are made for a chip: DEVICE_FAILED with what it has less of. NULL: it runs
     * those for facts->chip. */
    uir_status (*check_chip)(const uir_driver_device *device, const char *chip, uir_diagnostics *diagnostics);

    /* The contents are undefined. `*out_host`: the host's address, 64-byte aligned, or NULL. OUT_OF_MEMORY;
     * UNSUPPORTED for a kind that the device lacks, of which DEVICE is none. */
    uir_status (*allocate)(uir_driver_device *device, uir_memory_kind kind, uint64_t size, uir_diagnostics *diagnostics,
                           uir_driver_buffer **out_buffer, char **out_host);
    /* The caller has waited for the requests that use it. */
    void (*release)(uir_driver_device *device, uir_driver_buffer *buffer);
    /* A buffer in memory that the caller allocated by the vendor's library: its handle, which outlives the buffer. */
    uir_status (*import)(uir_driver_device *device, void *native, uint64_t size, uir_diagnostics *diagnostics,
                         uir_driver_buffer **out_buffer);
    void *(*get_native)(const uir_driver_buffer *buffer); /* the vendor's handle */

    /* Rank of an image's format on this device: 0 cannot run, larger is better. */
    uint32_t (*rank)(const uir_driver_device *device, const char *format);
    uir_status (*load)(uir_driver_device *device, const uir_driver_image *image, uir_diagnostics *diagnostics,
                       uir_driver_code **out_code);
    void (*unload)(uir_driver_device *device, uir_driver_code *code); /* no launch of it is prepared */
    /* NOT_FOUND if the image lacks the kernel, BAD_FILE if it is not as described. */
    uir_status (*find)(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                       const uir_driver_kernel **out_kernel);
    /* Appends the loaded code in a form that loads faster, and names its format. NULL: there is none. */
    uir_status (*save)(const uir_driver_code *code, uir_diagnostics *diagnostics, uir_text *bytes, uir_text *format);

    /* Called after symbols, indices or `needed` have changed, and when no request of the launch is pending. May
     * allocate, until `retire`. INVALID_ARGUMENT if the sizes do not fit the kernel. */
    size_t (*state_size)(const uir_driver_kernel *kernel);
    uir_status (*prepare)(uir_driver_device *device, uir_driver_launch *launch, uir_diagnostics *diagnostics);
    void (*retire)(uir_driver_device *device, uir_driver_launch *launch); /* of a prepared launch */

    /* `points`: the most points that are marked and may still be waited for. `native`: the caller's queue, or NULL. */
    uir_status (*create_queue)(uir_driver_device *device, uint32_t points, void *native, uir_diagnostics *diagnostics,
                               uir_driver_queue **out_queue);
    void (*destroy_queue)(uir_driver_queue *queue); /* waits for its requests, unless the device was given up */
    /* Requests. INVALID_ARGUMENT for a region outside its buffer or of another device, before anything is submitted.
     * A failed queue takes no more requests: DEVICE_FAILED. None allocates once a queue has had as many pending. */
    uir_status (*launch)(uir_driver_queue *queue, const uir_driver_launch *launch, uint32_t phase, uint32_t phase_count,
                         uir_diagnostics *diagnostics);
    uir_status (*copy)(uir_driver_queue *queue, const uir_driver_copy *copy, uir_diagnostics *diagnostics);
    uir_status (*fill)(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                       uir_diagnostics *diagnostics);
    /* A point is reached when all requests before it are executed. Points of a queue count up. */
    uir_status (*mark)(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point);
    /* Later requests of the queue execute after the other queue has reached the point. */
    uir_status (*follow)(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                         uir_diagnostics *diagnostics);
    /* Waits on the host. CANCELLED once `*cancel` is set (NULL: never): requests may be pending still. DEVICE_FAILED
     * with `*out_failure`: a request failed, here or in a queue that this one follows; those after it are not
     * executed. */
    uir_status (*wait)(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                       uir_driver_failure *out_failure);
    /* Gives the device up, which a caller has waited for too long; any thread, also while others wait. All queues take
     * no requests any more, and the device is lost. destroy_queue does not wait for what is executed still, which may
     * access its memory until the vendor's library has ended it. */
    void (*give_up)(uir_driver_device *device);
    /* When a point was reached, on the device's clock. False: unknown. NULL: the driver has no clock. */
    bool (*get_time)(uir_driver_queue *queue, uint64_t point, double *out_ms);
} uir_driver;

/* ---- checks that every driver makes before it accepts a request: driver.c ---- */
/* INVALID_ARGUMENT, with a message that begins with `what`: a region that is not inside a buffer of the device, or in
 * the host's memory. */
uir_status uir_driver_check_region(const uir_driver_device *device, const uir_region *region, const char *what,
                                   uir_diagnostics *diagnostics);
/* The same for both sides of a copy, and that its rows are inside. */
uir_status uir_driver_check_copy(const uir_driver_device *device, const uir_driver_copy *copy,
                                 uir_diagnostics *diagnostics);
/* Whether a queue of the device may follow a point of a queue of `other_device` that has marked `marked` points. */
uir_status uir_driver_check_follow(const uir_driver_device *device, const uir_driver_device *other_device,
                                   uint64_t point, uint64_t marked, uir_diagnostics *diagnostics);
/* Whether the launch has as many dims, tiles, pointers and phases as its kernel. */
uir_status uir_driver_check_preparation(const uir_driver_device *device, const uir_driver_launch *launch,
                                        uir_diagnostics *diagnostics);
/* Whether these phases of a prepared launch can be one request: pointers and workspace in device memory, aligned, as
 * large as needed. */
uir_status uir_driver_check_launch(const uir_driver_device *device, const uir_driver_facts *facts,
                                   const uir_driver_launch *launch, uint32_t phase, uint32_t phase_count,
                                   uir_diagnostics *diagnostics);

#endif
