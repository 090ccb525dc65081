/* Builds one shared object of all kernels of a model.
 *
 * In: verified iGraphs `on cpu`, up to all variants of all kernels of a model. Out: the bytes of a shared object for
 * one variant, and for each iGraph the symbol prefix of its phases. The source is split into files of about equal cost,
 * which the system's C compiler compiles in parallel. The split depends on the kernels only: with one compiler, the
 * same kernels result in the same bytes in any folder, on any number of cores. */
#ifndef UIR_BACKENDS_CPU_TARGET_BUILD_H
#define UIR_BACKENDS_CPU_TARGET_BUILD_H

#include "backends/cpu/target/cpu.h"
#include "backends/source/source.h"

#define UIR_CPU_FILES_MAX 96 /* source files of one object */

/* Keeps compiled files until their object is linked, so that an interrupted build can resume. All functions are called
 * on the build's thread; they do not affect the object's bytes. */
typedef struct uir_cpu_keeper {
    /* Finds the compiled file for `material`: the compiler, its arguments and the source. Called once for each file.
     * The bytes are read before the next call. */
    bool (*find)(void *user, uint32_t file, const void *material, size_t size, const void **out_bytes,
                 size_t *out_size);
    void (*keep)(void *user, uint32_t file, const void *bytes, size_t size); /* once it is compiled */
    void (*forget)(void *user);                                              /* drops the files: they do not link */
    /* Receives all source files before the first is compiled, for uir_cpu_build_sources; may be NULL. */
    void (*keep_sources)(void *user, const void *sources, size_t size);
    void *user;
} uir_cpu_keeper;

typedef struct uir_cpu_build_options {
    uir_cpu_compile_options compile; /* times and `cancel` apply to the whole build; keep_source is not read */
    uint32_t jobs;                   /* compilers in parallel; 0: the cores that this process may use */
    bool warnings;                   /* report the compiler's warnings; else they are silenced */
    /* An existing folder that also receives the source files, build.sh, and kernels.txt, which lists their kernels; or
     * NULL. */
    const char *source_folder;
    bool overwrite; /* overwrite files that were edited, or not written for kernels; else INVALID_ARGUMENT */
    const uir_cpu_keeper *keeper; /* NULL: none */
    /* Called on the caller's thread after each of `total` steps done by this build; may be NULL. `done` includes kept
     * files. True ends the build with CANCELLED. */
    bool (*progress)(void *user, uint32_t done, uint32_t total);
    void *progress_user;
} uir_cpu_build_options;

typedef char uir_cpu_symbol_name[UIR_C_SYMBOL_SIZE];

typedef struct uir_cpu_object {
    uir_allocator allocator;
    void *bytes;
    size_t size;
    uir_cpu_symbol_name *symbols; /* per iGraph: phase k is <symbol>_phase<k>; equal kernels have one symbol */
    uint32_t symbol_count;
    uint32_t function_count; /* distinct kernels among them */
    uint32_t file_count;     /* source files it was compiled from */
    uint32_t kept_count;     /* those compiled by an earlier build */
} uir_cpu_object;

/* Whether the compiler can be found; DEVICE_FAILED with a message that names it. Starts nothing. */
uir_status uir_cpu_check_compiler(const uir_cpu_compile_options *options, uir_diagnostics *diagnostics);
/* iGraphs that differ only in their names become one function. Temporary files are removed in any case. DEVICE_FAILED
 * with the compiler's first lines; CANCELLED; IO_FAILED for the temporary folder. */
uir_status uir_cpu_build(const uir_allocator *allocator, const uir_cpu_build_options *options,
                         const uir_igraph *const *igraphs, uint32_t count, uir_diagnostics *diagnostics,
                         uir_cpu_object *out_object);
/* The same from a folder written by `source_folder` for these kernels, its .c files edited or not; the symbols are the
 * same. INVALID_ARGUMENT for a folder of other kernels or another variant. */
uir_status uir_cpu_build_folder(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                const char *folder, const uir_igraph *const *igraphs, uint32_t count,
                                uir_diagnostics *diagnostics, uir_cpu_object *out_object);
/* The same from the sources that a build of these kernels, in any process, passed to its keeper: the same bytes,
 * without a list of symbols. source_folder is ignored. BAD_FILE if they are damaged. */
uir_status uir_cpu_build_sources(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                 const void *sources, size_t size, uir_diagnostics *diagnostics,
                                 uir_cpu_object *out_object);
/* The symbols of such an object, without building it: `bytes` stays NULL. */
uir_status uir_cpu_build_symbols(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                                 uir_cpu_object *out_object);
void uir_cpu_object_deinit(uir_cpu_object *object);

#endif
