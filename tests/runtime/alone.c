/* Runs a package with the runtime alone: `uir_runtime_alone FILE`. Inputs are small numbers, free dims are 3; prints
 * the sum of every output's bytes. Links no compiler, which is what it shows. */
#include "backends/cpu/driver/driver.h"
#include "backends/vm/vm.h"
#include "runtime/runtime.h"

#include <stdio.h>

static char numbers[1 << 16];

static uir_status run(const char *path, uir_diagnostics *diagnostics, const uir_allocator *allocator) {
    const uir_kernel_format *formats[] = {&uir_cpu_format, &uir_vm_format};
    uir_package_options options = {.formats = formats, .format_count = 2};
    uir_package *package;
    uir_runtime *r = NULL;
    UIR_TRY(uir_package_open_file(path, &options, allocator, diagnostics, &package));
    uir_status status = uir_runtime_create(package, NULL, allocator, diagnostics, &r);
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < uir_package_input_count(package); i++) {
        uir_package_port port = uir_package_get_input(package, i);
        int64_t shape[16];
        for (uint32_t d = 0; d < port.rank; d++) shape[d] = port.dims[d] < 0 ? 3 : port.dims[d];
        status = uir_runtime_set_input(r, i, port.dtype, port.rank, shape, numbers);
    }
    if (status == UIR_STATUS_OK) status = uir_runtime_run(r);
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < uir_package_output_count(package); i++) {
        uir_runtime_output output;
        unsigned long sum = 0;
        status = uir_runtime_get_output(r, i, &output);
        for (size_t b = 0; status == UIR_STATUS_OK && b < output.size; b++)
            sum += ((const unsigned char *)output.data)[b];
        printf("%s %zu %lu\n", uir_package_get_output(package, i).name, output.size, sum);
    }
    uir_runtime_destroy(r);
    uir_package_close(package);
    return status;
}

int main(int count, char **arguments) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    if (count != 2) return 2;
    for (size_t i = 0; i < sizeof numbers; i++) numbers[i] = (char)(i % 4 == 3 ? 63 : 0); /* 0.5 as f32 */
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_status status = run(arguments[1], &diagnostics, &allocator);
    for (const uir_diagnostic *d = diagnostics.first; d; d = d->next) fprintf(stderr, "%s\n", d->message);
    uir_diagnostics_deinit(&diagnostics);
    return uir_status_exit_code(status);
}
