/* The source files of one object as bytes: what a build writes to its folder, and what may be kept for another build,
 * in another process, to go on from. Private to this folder.
 *
 * In: the part that every file begins with, and each file's own. Out: bytes; from bytes, which may be damaged, the
 * files in a folder. Layout: a line "uir sources 1 FILES LENGTH", the common part of so many bytes; then for each file
 * a line "HEAD OWN" of two lengths, what goes before the common part, and what goes behind it. */
#ifndef UIR_BACKENDS_CPU_TARGET_SOURCES_H
#define UIR_BACKENDS_CPU_TARGET_SOURCES_H

#include "backends/cpu/target/build.h"

typedef char uir_cpu_source_name[40];

void uir_cpu_sources_begin(uir_text *sources, uint32_t files, const uir_text *common);
void uir_cpu_sources_add(uir_text *sources, const uir_text *head, const uir_text *own);

/* Writes them to the folder; `names` has room for UIR_CPU_FILES_MAX. BAD_FILE for bytes that are none. */
uir_status uir_cpu_sources_write(const uir_allocator *allocator, const void *sources, size_t size, const char *folder,
                                 uir_diagnostics *diagnostics, uir_cpu_source_name *names, uint32_t *out_count);

#endif
