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
/* The shape of an input whose symbolic dims are `dim`; returns its bytes. */
size_t devices_get_shape(const uir_package_port *port, int64_t dim, int64_t *out_shape);
/* Other numbers in each run, so that what an earlier one left is wrong. Integers are 0 to 2. */
void devices_fill(uir_dtype dtype, unsigned char *data, size_t size, uint32_t turn);
/* Runs on made-up inputs of that turn, in memory of the host, and adds all outputs to the hash. */
uir_status devices_run(uir_runtime *runtime, const uir_package *package, int64_t dim, uint32_t turn,
                       uint64_t *out_hash);

#endif
