/* The value files and the pictures that libuir knows. */
#include "api/internal.h"
#include "image/full/all.h"
#include "io/full/formats.h"

const uir_image_extras *uir_api_pictures(void) {
    return &uir_image_all;
}

#define FORMATS uir_io_full_formats
#include "api/value_files.inc"
