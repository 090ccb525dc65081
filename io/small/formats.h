/* Value formats of libuir_rt. */
#ifndef UIR_IO_SMALL_FORMATS_H
#define UIR_IO_SMALL_FORMATS_H

#include "io/io.h"

extern const uir_io_formats uir_io_small_formats;

#endif
