/* What the programs of this folder share: package files, the null device, made-up inputs. Failures end the program. */
#ifndef UIR_TESTS_DEVICES_SUPPORT_H
#define UIR_TESTS_DEVICES_SUPPORT_H

#include "base/allocator.h"
#include "runtime/driver.h"
#include "runtime/runtime.h"

enum { DEVICES_RANK = 16, DEVICES_PORTS = 64 };

void *devices_read_file(const char *path, size_t *out_size); /* 64-byte aligned; to be freed */
/* Options for a package on a null device of its own, which the caller closes. */
uir_package_options devices_open(const uir_allocator *allocator, uint32_t seed);
/* The same of a chip, as "f32:"; "": the first. */
uir_package_options devices_open_chip(const uir_allocator *allocator, const char *chip, uint32_t seed);
/* The shape of an input whose symbolic dims are `dim`; returns its bytes. */
size_t devices_get_shape(const uir_package_port *port, int64_t dim, int64_t *out_shape);
/* Other numbers in each run, so that what an earlier one left is wrong. Integers are 0 to 2. */
void devices_fill(uir_dtype dtype, unsigned char *data, size_t size, uint32_t turn);
/* Where inputs are from: files input_N.npy of a folder, or made up, with symbolic dims of `dim`. */
typedef struct devices_source {
    const char *folder; /* NULL: made up */
    int64_t dim;
} devices_source;
/* An input of a turn, to be freed: its elements, shape and bytes. */
unsigned char *devices_make_input(const devices_source *source, const uir_package *package, uint32_t index,
                                  uint32_t turn, int64_t *out_shape, size_t *out_size);
/* Runs on the inputs of that turn, in memory of the host, and adds all outputs to the hash. Numbers that are not whole
 * are others in each turn. */
uir_status devices_run(uir_runtime *runtime, const uir_package *package, const devices_source *source, uint32_t turn,
                       uint64_t *out_hash);

#endif
