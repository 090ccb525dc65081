/* The public C API of uir for opened devices.
 *
 * In: a device's name. Out: values in its memory, which sessions read and write there. Models that are loaded for one
 * opened device (`opened` of uir_model_options), and their sessions, exchange values without copies through the host's
 * memory. Devices that are the host ("cpu", "vm") open too, so that a program has one path for all: the memory of their
 * values is the host's. Several threads may use one device. The rules of uir.h hold here too.
 *
 *   uir_device *device;
 *   uir_value *cache;
 *   uir_device_open(context, "null", NULL, &device);
 *   uir_value_create_on_device(device, UIR_DTYPE_F32, 4, capacity, &cache);
 *   uir_session_bind_input_value(session, 1, 4, past_shape, strides, cache);
 *   uir_session_bind_output_value(session, 1, 4, strides, cache);
 *   uir_session_run(session); */
#ifndef UIR_DEVICE_H
#define UIR_DEVICE_H

#include "uir/uir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ------------------------------------------------------------------------------------------------- */
/* Options to open a device; only `index` matters to one that is the host. */
typedef struct uir_device_options {
    size_t struct_size;
    uint32_t index;      /* which of the devices of that name, from 0 */
    const char *library; /* path of the vendor's library; NULL: its usual name */
    void *native;        /* the caller's context of the vendor's library, which outlives the device; NULL: none */
} uir_device_options;
/* Number of devices of a name, as "null"; 1 of a device that is the host. `options` may be NULL; its `index` does not
 * matter. INVALID_ARGUMENT for an unknown name; DEVICE_FAILED, with a message that names the missing library or symbol,
 * if the driver cannot work. */
UIR_API UIR_WARN_UNUSED uir_status uir_device_count(uir_context *context, const char *name,
                                                    const uir_device_options *options, uint32_t *out_count);
/* Opens a device by its name, as "null", "null:7" (a seed), "cpu" or "cpu:avx2" (an instruction set of this machine).
 * `options` may be NULL. Statuses as above, and INVALID_ARGUMENT for an unknown index or text behind the colon. */
UIR_API UIR_WARN_UNUSED uir_status uir_device_open(uir_context *context, const char *name,
                                                   const uir_device_options *options, uir_device **out_device);
/* Closes a device; NULL is fine. Models that were loaded for it, and values in its memory, may be used until they are
 * destroyed: the device closes with the last of them. */
UIR_API void uir_device_close(uir_device *device);
/* Facts of an opened device. Texts live as long as the device. */
typedef struct uir_device_info {
    size_t struct_size;
    const char *name;        /* as it was opened: "null:7" */
    const char *description; /* "null, seed 7" */
    const char *chip;        /* the chip that kernels are made for; "": any; of the host its instruction set, "avx2" */
    uint64_t memory;         /* bytes; 0: unknown */
    uint32_t alignment;   /* of offsets in its memory, in bytes; a power of 2; of the host, of its values' addresses */
    uint32_t queue_count; /* queues that execute at the same time */
    bool shares_memory;   /* its memory is the host's */
    bool is_simulated;    /* its times are modelled */
    bool is_harmful;      /* its code can reach memory that is not its own: only that of trusted packages runs */
} uir_device_info;
UIR_API UIR_WARN_UNUSED uir_status uir_device_get_info(const uir_device *device, uir_device_info *out_info);
/* The device that runs the model: `opened`, or the model's own if that has memory of its own. NULL: the host runs it,
 * and was not opened for it. It lives as long as the model. */
UIR_API uir_device *uir_model_get_device(const uir_model *model);

/* ---- values in a device's memory ----------------------------------------------------------------------------- */
/* Creates a tensor of zeros in a device's memory. It belongs to the device's context. `shape` as in
 * uir_value_create_tensor. uir_value_get_data of it is NULL, and uir_value_get_double is 0, unless the device is the
 * host: its values serve wherever those of the host do. INVALID_ARGUMENT for an invalid type or shape; UNSUPPORTED for
 * strings; OUT_OF_MEMORY, with the device and the bytes. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_create_on_device(uir_device *device, uir_dtype dtype, uint32_t rank,
                                                              const int64_t *shape, uir_value **out_value);
/* Creates a tensor in `size` bytes that the caller has allocated by the vendor's library (or that another value has:
 * uir_value_get_native). `native` is their handle, on the host their address; the memory must outlive the value and
 * each binding of it. The contents do not change. INVALID_ARGUMENT for NULL, for an unknown handle, and for a size
 * below that of the tensor. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_import(uir_device *device, uir_dtype dtype, uint32_t rank,
                                                    const int64_t *shape, void *native, uint64_t size,
                                                    uir_value **out_value);
/* The device that the elements were created on, or imported to; NULL: none, the host's memory has them. It lives as
 * long as the value. */
UIR_API uir_device *uir_value_get_device(const uir_value *value);
/* The vendor's handle of that memory; its address if the device is the host; NULL for a value of no device. It lives
 * as long as the value. */
UIR_API void *uir_value_get_native(const uir_value *value);
/* Copies `size` bytes between the caller's memory and the tensor's, from byte `offset` of it on; returns when they are
 * copied. For values of a device and of the host. Runs in flight that use the value must have been waited for.
 * INVALID_ARGUMENT for bytes outside of the tensor, for values other than tensors of fixed-size elements, and to write
 * to a value of no device that borrows its data. */
UIR_API UIR_WARN_UNUSED uir_status uir_value_write(uir_value *value, uint64_t offset, const void *data, uint64_t size);
UIR_API UIR_WARN_UNUSED uir_status uir_value_read(const uir_value *value, uint64_t offset, void *data, uint64_t size);

/* ---- sessions ------------------------------------------------------------------------------------------------ */
/* As uir_session_bind_input, with the memory of a value in place of `data`: of the model's device, or of the host,
 * opened or not, whatever runs the model. Its dtype is the port's, its own shape does not matter. The memory of a
 * device's value stays until another is bound; a value of no device must live as long as `data` must. So a cache stays
 * on the device: bind `past` and `present` to one value with the strides of its capacity. An input in memory that is
 * not the host's with other strides than those of a cache is UNSUPPORTED in the run. INVALID_ARGUMENT for a value in
 * the memory of another device, of another dtype, or too small for the input. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_input_value(uir_session *session, size_t index, uint32_t rank,
                                                                const int64_t *shape, const int64_t *strides,
                                                                uir_value *value);
/* `strides` NULL: packed, and `rank` does not matter. `value` NULL: memory of the session again. The value of an output
 * that is bound to a device's value is in that value's memory; with strides it is a packed copy on the host. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_bind_output_value(uir_session *session, size_t index, uint32_t rank,
                                                                 const int64_t *strides, uir_value *value);

#ifdef __cplusplus
}
#endif

#endif
