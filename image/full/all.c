#include "image/full/all.h"

const uir_image_extras uir_image_all = {{[UIR_IMAGE_TIFF] = uir_image_read_tiff,
                                         [UIR_IMAGE_WEBP] = uir_image_read_webp,
                                         [UIR_IMAGE_JPEG2000] = uir_image_read_jpeg2000}};
