/* What the runtime's tests share: a module and its kernels as text become a package; packages whose plan is edited;
 * runs with plain arrays. */
#ifndef UIR_TESTS_RUNTIME_SUPPORT_H
#define UIR_TESTS_RUNTIME_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/vm/vm.h"
#include "compile/kernel.h"
#include "planner/planner.h"
#include "package/package.h"
#include "package/plan.h"
#include "runtime/runtime.h"

/* ---- parts of kernels' texts ---- */
#define VECTORS     "  ptr %x : dram f32 [N] in 0\n  ptr %y : dram f32 [N] out 0\n"
#define PHASE_TWICE "  phase {\n    binary.add.f32 %y[0:N], %x[0:N], %x[0:N]\n  }\n"
/* A candidate with a condition and a cost, and one with neither. */
#define TILES "  tile t in 1..64\n  require t <= N + 100\n  candidate t = 5 when N >= 100 cost 3*N\n  candidate t = 6\n"
/* The result is the tile that was chosen. */
#define TELL_TILE                                                                                                      \
    "  ptr %x : dram f32 [N] in 0\n  ptr %y : dram i32 [1, 1] out 0\n  phase {\n    iota.row.i32 %y, t\n  }\n"
/* Twice a vector whose size is in the range. */
#define KERNEL_TWICE(name, range) "igraph @" name " on cpu {\n  dim N in " range "\n" VECTORS PHASE_TWICE "}\n"
/* The same in parts of t elements. */
#define KERNEL_TWICE_IN_PARTS(range, candidates)                                                                       \
    "igraph @twice on cpu {\n  dim N in " range "\n  tile t in 1..4096\n" candidates VECTORS                           \
    "  phase {\n    parallel p : ceildiv(N, t) group\n    binary.add.f32 %y[p*t:t], %x[p*t:t], %x[p*t:t]\n  }\n}\n"
/* A vector times a constant. */
#define KERNEL_SCALE                                                                                                   \
    "igraph @scale on cpu {\n  dim N in 0..1000\n  ptr %x : dram f32 [N] in 0\n  ptr %c : dram f32 [1] const 1\n"      \
    "  ptr %y : dram f32 [N] out 0\n  phase {\n    binary.mul.f32 %y[0:N], %x[0:N], %c\n  }\n}\n"

/* ---- parts of modules' texts ---- */
/* %value = twice %of, a vector of so many elements, by kernel @twice; `n` is a number that no other has. */
#define GROUP_TWICE_OF(count, value, of, n)                                                                            \
    "    %" value ": f32[" count "] = group(%" of ") {body = graph \"g" n "\" (%a" n ": f32[" count "]) {\n"           \
    "        %b" n ": f32[" count "] = add(%a" n ", %a" n ")\n        return %b" n "\n"                                \
    "    }, sizes = [" count "], kernel = \"twice\"}\n"
#define GROUP_TWICE(value, of, n) GROUP_TWICE_OF("N", value, of, n)

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
    uir_compile_machines *devices;
    uir_igraph_list kernels; /* of the text */
    uir_module *module;
    uir_text package, forged; /* forged: the same, with its plan edited */
} fixture;
void fixture_init(fixture *f);
void fixture_deinit(fixture *f);
/* Parses both; every iGraph is verified; kernels of one name are its variants. Then builds the package. */
uir_status fixture_build(fixture *f, const char *module_text, const char *kernel_text);
/* The same with the allocator of the planner alone replaced. */
uir_status fixture_plan(fixture *f, const uir_plan_options *options, const uir_allocator *allocator, uir_text *package);
uir_status fixture_open(fixture *f, const uir_allocator *allocator, uir_package **out_package);
extern const uir_package_options open_by_vm; /* the format of the VM alone */

/* ---- packages whose plan is edited ---- */
/* What is done to a plan, which has room for records more. */
typedef void plan_edit(void *user, uir_plan *plan);
/* The fixture's package with its plan edited, all hashes right. */
void fixture_forge(fixture *f, plan_edit *edit, void *user);
uir_status fixture_open_forged(fixture *f, const uir_package_options *options, plan_edit *edit, void *user,
                               uir_package **out_package);
/* The sections of a sound package. */
typedef struct sections {
    uir_package_section list[UIR_PACKAGE_MAX_SECTIONS], *plan;
    uint32_t count, natives;
    uint64_t code, weights; /* bytes */
} sections;
void find_sections(const uir_text *package, sections *out);
/* Reads bytes as the plan among these sections. */
uir_status read_plan(const sections *s, const void *bytes, size_t size, uir_arena *arena, uir_plan *out_plan);

/* ---- plans with records more ---- */
enum { MOST_RECORDS = 20000 };
/* Each table gets room for so many. Records stay where they then are, until another plan gets the room. */
void make_room(uir_plan *plan);
/* add_words, add_texts and so on, of a plan that has room: `count` of the record more, all alike; the first of them. */
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    static inline uint32_t add_##field(uir_plan *plan, type record, uint32_t count) {                                  \
        uint32_t first = plan->field##_count;                                                                          \
        assert_true(count <= MOST_RECORDS && first <= MOST_RECORDS - count);                                           \
        for (uint32_t i = 0; i < count; i++) plan->field[plan->field##_count++] = record;                              \
        return first;                                                                                                  \
    }
UIR_PLAN_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
/* The list and a word more. */
uir_plan_list longer(uir_plan *plan, uir_plan_list list, uint32_t value);

/* ---- where things are in a plan ---- */
/* Step `n` of a kind, which there must be; the first; a word of a list. */
uir_plan_step *nth_step(uir_plan *plan, uint32_t kind, uint32_t n);
uir_plan_step *step_of(uir_plan *plan, uint32_t kind);
uint32_t *word_of(uir_plan *plan, uir_plan_list list, uint32_t i);

/* ---- runs ---- */
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
/* The same with the plan edited (NULL: as it is) and the runtime's memory the allocator's (NULL: the fixture's). */
void session_begin_forged(session *s, const char *module_text, const char *kernel_text, plan_edit *edit,
                          const uir_runtime_options *options, const uir_allocator *allocator);
void session_end(session *s);
void session_set(session *s, uint32_t index, int64_t count, const float *data); /* a vector */
/* Some message holds the text. */
void check_message(fixture *f, const char *text);

#endif
