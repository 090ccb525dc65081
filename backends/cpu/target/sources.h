/* Serialises the source files of one object, so that a build in another process can resume from them. Private to this
 * folder.
 *
 * In: the common part of all files, and each file's own part. Out: bytes; from bytes, which may be damaged, the files
 * in a folder. Layout: a line "uir sources 1 FILES LENGTH", and LENGTH bytes of the common part. Then for each file a
 * line "HEAD OWN" of two lengths, the part before the common one, and the part behind it. */
#ifndef UIR_BACKENDS_CPU_TARGET_SOURCES_H
#define UIR_BACKENDS_CPU_TARGET_SOURCES_H

#include "backends/cpu/target/build.h"

typedef char uir_cpu_source_name[40];

void uir_cpu_sources_begin(uir_text *sources, uint32_t files, const uir_text *common);
void uir_cpu_sources_add(uir_text *sources, const uir_text *head, const uir_text *own);

/* Writes the files to the folder; `names` has UIR_TARGET_FILES_MAX entries. BAD_FILE for malformed bytes. */
uir_status uir_cpu_sources_write(const uir_allocator *allocator, const void *sources, size_t size, const char *folder,
                                 uir_diagnostics *diagnostics, uir_cpu_source_name *names, uint32_t *out_count);

#endif
