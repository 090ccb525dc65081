/* The value files that libuir knows. */
#include "api/internal.h"
#include "io/full/formats.h"

#define FORMATS uir_io_full_formats
#include "api/value_files.inc"
