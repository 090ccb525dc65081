#include "tests/devices/support.h"

#include "base/tensor.h"
#include "io/io.h"
#include "package/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const uir_driver uir_null_driver;
extern const uir_kernel_format uir_vm_format;

enum { MOST_BYTES = 1 << 26 };

void *devices_read_file(const char *path, size_t *out_size) {
    FILE *f = fopen(path, "rb");
    void *bytes = aligned_alloc(64, MOST_BYTES);
    if (!f || !bytes) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    *out_size = fread(bytes, 1, MOST_BYTES, f);
    fclose(f);
    return bytes;
}

uir_package_options devices_open(const uir_allocator *allocator, uint32_t seed) {
    return devices_open_chip(allocator, "", seed);
}

uir_package_options devices_open_chip(const uir_allocator *allocator, const char *chip, uint32_t seed) {
    static const uir_kernel_format *const formats[] = {&uir_vm_format};
    uir_package_options options = {.formats = formats, .format_count = 1, .driver = &uir_null_driver};
    char parameter[32];
    snprintf(parameter, sizeof parameter, "%s%u", chip, seed);
    const uir_driver_options driver = {
        .allocator = allocator, .parameter = parameter, .formats = formats, .format_count = 1};
    if (uir_null_driver.open(&driver, NULL, &options.device) != UIR_STATUS_OK) exit(2);
    return options;
}

size_t devices_get_shape(const uir_package_port *port, int64_t dim, int64_t *out_shape) {
    size_t count = 1;
    for (uint32_t d = 0; d < port->rank; d++) {
        out_shape[d] = port->dims[d] < 0 ? dim : port->dims[d];
        count *= (size_t)out_shape[d];
    }
    return count * uir_dtype_bits(port->dtype) / 8;
}

void devices_fill(uir_dtype dtype, unsigned char *data, size_t size, uint32_t turn) {
    for (size_t i = 0; dtype == UIR_DTYPE_F32 && i < size / 4; i++)
        ((float *)(void *)data)[i] = (float)((double)(((i + 77 * turn) * 2654435761u >> 7) % 1000) / 500 - 1);
    for (size_t i = 0; dtype == UIR_DTYPE_I64 && i < size / 8; i++)
        ((int64_t *)(void *)data)[i] = (int64_t)((i + turn) % 3);
}

/* Input `index` of a turn: its shape and its elements, to be freed. */
static unsigned char *read_input(const devices_source *source, uint32_t index, uint32_t turn, int64_t *out_shape,
                                 size_t *out_size) {
    uir_allocator allocator = uir_allocator_system();
    uir_tensor *tensor;
    uir_file file = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/input_%u.npy", source->folder, (unsigned)index);
    if (uir_io_open_file(path, &allocator, NULL, &file) != UIR_STATUS_OK ||
        uir_npy_read(&allocator, NULL, path, file.data, file.size, &tensor) != UIR_STATUS_OK) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    unsigned char *data = malloc(tensor->byte_size + 1);
    if (!data) exit(2);
    memcpy(data, tensor->data, tensor->byte_size);
    memcpy(out_shape, tensor->shape, tensor->rank * sizeof *out_shape);
    *out_size = tensor->byte_size;
    for (size_t i = 0; tensor->dtype == UIR_DTYPE_F32 && i < tensor->byte_size / 4; i++)
        ((float *)(void *)data)[i] *= 1 + (float)turn / 8;
    uir_tensor_release(tensor);
    uir_file_release(&file, &allocator);
    return data;
}

unsigned char *devices_make_input(const devices_source *source, const uir_package *package, uint32_t index,
                                  uint32_t turn, int64_t *out_shape, size_t *out_size) {
    uir_package_port port = uir_package_get_input(package, index);
    if (source->folder) return read_input(source, index, turn, out_shape, out_size);
    *out_size = devices_get_shape(&port, source->dim, out_shape);
    unsigned char *data = calloc(1, *out_size + 1);
    if (!data) exit(2);
    devices_fill(port.dtype, data, *out_size, turn);
    return data;
}

uir_status devices_run(uir_runtime *r, const uir_package *package, const devices_source *source, uint32_t turn,
                       uint64_t *out_hash) {
    unsigned char *data[DEVICES_PORTS] = {0};
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < uir_package_input_count(package) && i < DEVICES_PORTS && status == UIR_STATUS_OK; i++) {
        uir_package_port port = uir_package_get_input(package, i);
        int64_t shape[DEVICES_RANK];
        size_t size;
        data[i] = devices_make_input(source, package, i, turn, shape, &size);
        status = uir_runtime_set_input(r, i, port.dtype, port.rank, shape, data[i]);
    }
    if (status == UIR_STATUS_OK) status = uir_runtime_run(r);
    for (uint32_t k = 0; k < uir_package_output_count(package) && status == UIR_STATUS_OK; k++) {
        uir_runtime_output out;
        status = uir_runtime_get_output(r, k, &out);
        if (status == UIR_STATUS_OK && out.size) *out_hash = *out_hash * 31 + uir_package_hash(out.data, out.size);
    }
    for (uint32_t i = 0; i < DEVICES_PORTS; i++) free(data[i]);
    return status;
}
