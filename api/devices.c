/* The device of a model: opened for its package, closed after it. */
#include "api/internal.h"

uir_status uir_api_open_device(uir_model *model, const uir_device_row *row, const char *parameter,
                               uir_diagnostics *diagnostics, uir_package_options *package) {
    const uir_driver_options options = {.allocator = &model->allocator,
                                        .parameter = parameter,
                                        .formats = row->formats,
                                        .format_count = uir_device_count_formats(row)};
    package->formats = row->formats;
    package->format_count = uir_device_count_formats(row);
    if (!uir_device_has_driver(row)) return UIR_STATUS_OK;
    if (!model->device) UIR_TRY(row->driver->open(&options, diagnostics, &model->device));
    model->driver = row->driver;
    package->driver = model->driver;
    package->device = model->device;
    return UIR_STATUS_OK;
}

void uir_api_close_device(uir_model *model) {
    if (model->device) model->driver->close(model->device);
    model->device = NULL;
}
