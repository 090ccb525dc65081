/* What the runtime's tests share: a module and its kernels as text become a package; runs with plain arrays. */
#ifndef UIR_TESTS_RUNTIME_SUPPORT_H
#define UIR_TESTS_RUNTIME_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/vm/vm.h"
#include "pipeline_kernel.h"
#include "planner/planner.h"
#include "runtime/plan.h"
#include "runtime/runtime.h"

/* An allocator that counts, and fails at a given call. */
typedef struct counting {
    uir_allocator allocator, under;
    uint64_t calls, fail_at; /* 0: never */
    int64_t bytes;
} counting;
void counting_init(counting *c);

typedef struct fixture {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_pipeline_devices *devices;
    uir_igraph_list kernels; /* of the text */
    uir_module *module;
    uir_text package;
} fixture;
void fixture_init(fixture *f);
void fixture_deinit(fixture *f);
/* Parses both; every iGraph is verified; kernels of one name are its variants. Then builds the package. */
uir_status fixture_build(fixture *f, const char *module_text, const char *kernel_text);
/* The same with the allocator of the planner alone replaced. */
uir_status fixture_plan(fixture *f, const uir_plan_options *options, const uir_allocator *allocator, uir_text *package);
uir_status fixture_open(fixture *f, const uir_allocator *allocator, uir_package **out_package);
/* The fixture's package with its plan edited, all hashes right. */
void fixture_forge(fixture *f, void (*edit)(void *user, uir_plan *plan), void *user, uir_text *out);
/* The first step of a kind, which there must be; a word of a list. */
uir_plan_step *step_of(uir_plan *plan, uint32_t kind);
uint32_t *word_of(uir_plan *plan, uir_plan_list list, uint32_t i);
/* An array that a test gives or expects. */
typedef struct array {
    uir_dtype dtype;
    uint32_t rank;
    int64_t shape[4];
    const void *data;
} array;
/* Sets the inputs, runs, and holds every output to the interpreter's bits. */
void compare_with_interpreter(fixture *f, uir_runtime *r, const array *inputs, uint32_t count);
/* Fails the test with the diagnostics when `status` is not OK. */
void check_ok(fixture *f, uir_status status);
/* A module's package, open, and a runtime of it. What fails on the way fails the test. */
typedef struct session {
    fixture f;
    uir_package *package;
    uir_runtime *r;
} session;
void session_begin(session *s, const char *module_text, const char *kernel_text, const uir_runtime_options *options);
void session_end(session *s);
void session_set(session *s, uint32_t index, int64_t count, const float *data); /* a vector */
/* Some message holds the text. */
void check_message(fixture *f, const char *text);

#endif
