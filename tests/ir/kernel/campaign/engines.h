/* What runs a kernel in the campaigns: the VM per instruction set, compiled code per compiler and variant, and code for
 * aarch64 under an emulator.
 *
 * In: verified kernels, a batch at a time. Out: the contents of their buffers after a run. */
#ifndef UIR_TESTS_IGRAPH_ENGINES_H
#define UIR_TESTS_IGRAPH_ENGINES_H

#include "harness.h"

#include <sys/types.h>

typedef struct engine {
    char name[64];
    const char *isa; /* the VM's; NULL: compiled */
    const char *compiler;
    uir_cpu_variant variant;
    uir_loaded_module *module; /* of the batch */
    bool emulated;             /* a program in a process of its own, under e->emulator unless that is NULL */
    char program[64];          /* emulated: the batch's program; "" when there is none */
    pid_t child;               /* 0: not running */
    int to_child, from_child;
} engine;

typedef struct engines {
    engine list[24];
    uint32_t count;
    char compilers[256];  /* the names, cut into words */
    char folder[40];      /* of the programs; "" without an emulator */
    const char *emulator; /* its program, or NULL */
} engines;

/* Finds the engines of this machine. UIR_CAMPAIGN_COMPILERS names compilers other than gcc and clang. Compilers that
 * are not installed and an emulator that is missing are left out; with `say`, one line each on standard output tells
 * why. */
void engines_open(engines *e, bool say);
/* One engine alone: programs of gcc for this machine, in a process of their own, for flags like those of sanitizers.
 * False when there can be none. */
bool engines_open_program(engines *e);
void engines_close(engines *e);
/* With UIR_CAMPAIGN_TURNS in the environment: leaves, of the engines that compile, the turn-th modulo their number. So
 * a batch is compiled once, and batches together by all. */
void engines_take_turns(engines *e, uint64_t turn);
/* How many engines are missing. */
uint32_t engines_missing(const engines *e);

/* Compiles the kernels for every engine that compiles; false, with messages in the harness, when one cannot, or warns.
 * `flags`: more flags for the compilers, whose warnings then do not count, or NULL. `failed`: those engines. */
bool engines_compile(engines *e, harness *h, const uir_igraph *const *kernels, uint32_t count, const char *flags,
                     char *failed, size_t size);
void engines_drop(engines *e);
bool engine_is_ready(const engine *e);

/* Restores the case's buffers and runs kernel `index` of the batch on them. */
uir_status engine_run(engines *e, engine *x, harness *h, uint32_t index, harness_case *c, const uir_vm_kernel *vm);

#endif
