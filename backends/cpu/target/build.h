/* All kernels of a model as one shared object's bytes.
 *
 * In: verified iGraphs `on cpu`, up to all variants of all kernels of a model. Out: the bytes of one shared object for
 * one variant, and for each iGraph the symbol that its phases are named after. The source is cut into files of about
 * equal cost, which the system's C compiler compiles side by side. How it is cut depends on the kernels alone: the same
 * kernels give the same bytes in any folder, on any number of cores, with one compiler. */
#ifndef UIR_BACKENDS_CPU_TARGET_BUILD_H
#define UIR_BACKENDS_CPU_TARGET_BUILD_H

#include "backends/cpu/target/cpu.h"
#include "backends/source/source.h"

#define UIR_CPU_FILES_MAX 96 /* source files of one object */

/* Keeps compiled files until their object is linked, so that a build that was broken off goes on where it was. All are
 * called on the build's thread; what they do has no part in the object's bytes. */
typedef struct uir_cpu_keeper {
    /* Whether the compiled file is there that `material` decides: the compiler, its words and the source. Asked once
     * for each file. The bytes are read before the next call. */
    bool (*find)(void *user, uint32_t file, const void *material, size_t size, const void **out_bytes,
                 size_t *out_size);
    void (*keep)(void *user, uint32_t file, const void *bytes, size_t size); /* as soon as it is compiled */
    void (*forget)(void *user);                                              /* the files: they do not link */
    /* All source files, before the first of them is compiled, for uir_cpu_build_sources; may be NULL. */
    void (*keep_sources)(void *user, const void *sources, size_t size);
    void *user;
} uir_cpu_keeper;

typedef struct uir_cpu_build_options {
    uir_cpu_compile_options compile; /* the times and `cancel`: of the whole build; keep_source is not read */
    uint32_t jobs;                   /* compilers at once; 0: the cores that this process may use */
    bool warnings;                   /* what the compiler warns of becomes a warning of ours; else it is silenced */
    /* An existing folder to write the source files to as well, with build.sh and kernels.txt, which says of which
     * kernels they are; or NULL. */
    const char *source_folder;
    bool overwrite; /* files there that were edited since, or that nothing wrote for kernels; else INVALID_ARGUMENT */
    const uir_cpu_keeper *keeper; /* NULL: none */
    /* After each of `total` steps that this build took itself, on the caller's thread; may be NULL. `done` counts what
     * was kept, too. True ends the build with CANCELLED. */
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
    uint32_t function_count; /* different kernels among them */
    uint32_t file_count;     /* source files it was compiled from */
    uint32_t kept_count;     /* of them, compiled by an earlier build */
} uir_cpu_object;

/* Whether there is a compiler to start; DEVICE_FAILED with a message that names it. Nothing is started. */
uir_status uir_cpu_check_compiler(const uir_cpu_compile_options *options, uir_diagnostics *diagnostics);
/* iGraphs that differ in nothing but their names become one function. Nothing is left on disk, whatever happens.
 * DEVICE_FAILED with the compiler's first lines; CANCELLED; IO_FAILED for the temporary folder. */
uir_status uir_cpu_build(const uir_allocator *allocator, const uir_cpu_build_options *options,
                         const uir_igraph *const *igraphs, uint32_t count, uir_diagnostics *diagnostics,
                         uir_cpu_object *out_object);
/* The same from a folder that `source_folder` filled with these kernels, its .c files edited or not; the symbols are
 * the same. INVALID_ARGUMENT for a folder of other kernels or another variant. */
uir_status uir_cpu_build_folder(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                const char *folder, const uir_igraph *const *igraphs, uint32_t count,
                                uir_diagnostics *diagnostics, uir_cpu_object *out_object);
/* The same from the sources that a build of these kernels gave its keeper, in whatever process: the same bytes, with no
 * list of symbols. The options' source_folder has no part in it. BAD_FILE for damaged ones. */
uir_status uir_cpu_build_sources(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                 const void *sources, size_t size, uir_diagnostics *diagnostics,
                                 uir_cpu_object *out_object);
/* The symbols that such an object will have, without building it: `bytes` stays NULL. */
uir_status uir_cpu_build_symbols(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                                 uir_cpu_object *out_object);
void uir_cpu_object_deinit(uir_cpu_object *object);

#endif
