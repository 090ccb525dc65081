/* The compiler's interface of a backend: describes machines, emits, builds and encodes kernels.
 *
 * In: verified iGraphs for the backend's machine. Out: their source, a shared object, bytecode.
 * A target is a table of functions that backends.def names; every member but `name` and one of `emit` and `narrow` may
 * be NULL. */
#ifndef UIR_BACKENDS_SOURCE_TARGET_H
#define UIR_BACKENDS_SOURCE_TARGET_H

#include "backends/source/source.h"

/* A machine that kernels are made for. */
typedef struct uir_target_machine {
    uir_machine description; /* points into static tables, or into the arena of `describe` */
    const char *variant;     /* its name behind the colon of a device's name: "avx2" */
    bool runs_here;          /* this machine can execute the variant */
} uir_target_machine;

/* ---- builds ---- */
#define UIR_TARGET_FILES_MAX 96 /* source files of one object */

/* Keeps compiled files until their object is linked, so that an interrupted build can resume. All functions are called
 * on the build's thread; they do not affect the object's bytes. */
typedef struct uir_target_keeper {
    /* Finds the compiled file for `material`: the compiler, its arguments and the source. Called once for each file.
     * The bytes are read before the next call. */
    bool (*find)(void *user, uint32_t file, const void *material, size_t size, const void **out_bytes,
                 size_t *out_size);
    void (*keep)(void *user, uint32_t file, const void *bytes, size_t size); /* once it is compiled */
    void (*forget)(void *user);                                              /* drops the files: they do not link */
    /* Receives all source files before the first is compiled, for a build from `sources`; may be NULL. */
    void (*keep_sources)(void *user, const void *sources, size_t size);
    void *user;
} uir_target_keeper;

typedef struct uir_target_build_options {
    uint32_t jobs; /* compilers in parallel; 0: the cores that this process may use */
    bool warnings; /* report the compiler's warnings; else they are silenced */
    /* An existing folder that also receives the source files, build.sh, and kernels.txt, which lists their kernels; or
     * NULL. */
    const char *source_folder;
    bool overwrite; /* overwrite files that were edited, or not written for kernels; else INVALID_ARGUMENT */
    const uir_target_keeper *keeper; /* NULL: none */
    /* Called on the caller's thread after each of `total` steps done by this build; may be NULL. `done` includes kept
     * files. True ends the build with CANCELLED. */
    bool (*progress)(void *user, uint32_t done, uint32_t total);
    void *progress_user;
    const volatile bool *cancel; /* once true, also from a signal handler, the compilers are killed; may be NULL */
} uir_target_build_options;

/* What an object is built from: the kernels; their sources in `folder`, which source_folder has written and a person
 * may have edited since; or the bytes that an earlier build of these kernels passed to its keeper, which need no
 * kernels. */
typedef struct uir_target_build_input {
    const char *variant;
    const uir_igraph *const *igraphs;
    uint32_t count;
    const char *folder;  /* NULL: none */
    const void *sources; /* NULL: none */
    size_t sources_size;
} uir_target_build_input;

typedef char uir_target_symbol[UIR_C_SYMBOL_SIZE];

typedef struct uir_target_object {
    uir_allocator allocator;
    void *bytes;
    size_t size;
    uir_target_symbol *symbols; /* per iGraph: phase k is <symbol>_phase<k>; equal kernels have one symbol */
    uint32_t symbol_count;
    uint32_t function_count; /* distinct kernels among them */
    uint32_t file_count;     /* source files it was compiled from */
    uint32_t kept_count;     /* those compiled by an earlier build */
} uir_target_object;

void uir_target_object_deinit(uir_target_object *object);

/* `first[i]`: the first iGraph that differs from iGraph i in nothing but its name. */
uir_status uir_target_find_equals(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                                  uint32_t *first);
/* Gives the object its symbols, by uir_c_symbol of the first equal iGraph. */
uir_status uir_target_name_first(const uir_allocator *allocator, const uir_igraph *const *igraphs,
                                 const uint32_t *first, uint32_t count, uir_target_object *object);
/* Both, without an object's bytes: `name_symbols` of targets whose equal kernels are one function. */
uir_status uir_target_name_symbols(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                                   uir_target_object *out_object);

/* ---- the target ---- */
typedef struct uir_target {
    const char *name; /* of the machine that its kernels are `on`: "cpu" */
    /* Describes a machine that no file describes. `variant`: a name; NULL: this machine. INVALID_ARGUMENT with a
     * message that lists the variants. */
    uir_status (*describe)(const char *variant, uir_arena *arena, uir_diagnostics *diagnostics,
                           uir_target_machine *out_machine);
    /* For a device that runs the host's code: removes from the host's machine what the device lacks, and names the
     * chip. The other members are NULL, the host's target makes the kernels. */
    void (*narrow)(const char *variant, uir_machine *machine);
    const char *(*get_chip)(size_t index); /* that `narrow` knows, by name; NULL past the end */
    /* The chip that a variant begins with, as "gpu" of "gpu:1"; NULL: it names none, and the chip is that of the device
     * which the driver opens. `describe` then takes the description's first. */
    const char *(*find_chip)(const char *variant);
    /* Appends the facts of a machine that its kernels and plans depend on, for the keys of the cache. */
    void (*describe_key)(const uir_target_machine *machine, uir_text *text);
    /* Appends the source of one kernel; `index` distinguishes the kernels of one text. UNSUPPORTED for an operation
     * that the machine lacks. */
    uir_status (*emit)(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics);
    /* Bytes of scratch that a thread needs, an expression over the kernel's symbols; NONE if it cannot be made. */
    uir_dim (*scratch_bytes)(const uir_igraph *igraph);
    /* Whether the variant's compiler can be found; DEVICE_FAILED with a message that names it. Starts nothing. */
    uir_status (*check_compiler)(const char *variant, uir_diagnostics *diagnostics);
    /* The symbols of an object, without building it: `bytes` stays NULL. */
    uir_status (*name_symbols)(const uir_allocator *allocator, const uir_igraph *const *igraphs, uint32_t count,
                               uir_target_object *out_object);
    /* Builds a shared object, or a program. DEVICE_FAILED with the compiler's first lines; CANCELLED; IO_FAILED for the
     * temporary folder; INVALID_ARGUMENT for a folder of other kernels; BAD_FILE for damaged `sources`. */
    uir_status (*build)(const uir_allocator *allocator, const uir_target_build_options *options,
                        const uir_target_build_input *input, uir_diagnostics *diagnostics,
                        uir_target_object *out_object);
    /* Format of the program that `build` makes of all kernels, without a compiler: the driver of the device compiles
     * it, so that packages for the device contain it. NULL: `build` makes shared objects for the host. */
    const char *program;
    /* Appends a kernel's bytecode. UNSUPPORTED if the bytecode lacks a feature of the kernel. */
    uir_status (*encode)(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes);
} uir_target;

#endif
