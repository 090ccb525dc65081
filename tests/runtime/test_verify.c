/* Packages with one promise broken each: opening says which, before anything of them runs. Each row changes one thing
 * of an honest plan, which opens as it is. */
#include "tests/runtime/support.h"

#include "package/plan.h"

#include <string.h>

static const char *const kernels = KERNEL_TWICE("twice", "0..1000") /**/
    "igraph @both on cpu {\n"
    "  dim N in 0..1000\n"
    "  ptr %x : dram f32 [N] in 0\n"
    "  ptr %y : dram f32 [N] out 0\n"
    "  ptr %z : dram f32 [N] out 1\n"
    "  phase {\n"
    "    binary.add.f32 %y[0:N], %x[0:N], %x[0:N]\n"
    "    binary.add.f32 %z[0:N], %x[0:N], %x[0:N]\n"
    "  }\n"
    "}\n";

/* Every kind of step, a loop in a loop, branches; aliases; results whose extents only the run tells. */
static const char *const module_text =
    "module opset 17\nsize N\nsize T\nsize K\nsize F\nsize U\n"
    "constant %n: i64[] = [3]\n"
    "graph \"main\" (%x: f32[N], %q: bool[], %m: i64[], %e: f32[N], %boxes: f32[1, N, 4], %scores: f32[1, 1, N]) {\n"
    "    bind_dims(%m) {dims = [K]}\n"
    "    check_indices(%m) {low = [-1], high = [K + 1], of = \"m\"}\n" /**/
    GROUP_TWICE("d", "x", "1")                                         /**/
    GROUP_TWICE("d2", "d", "2")                                        /**/
    "    %r: f32[1, N] = reshape(%d2) {dims = [1, N]}\n"
    "    %z: i64[1, F] = non_zero(%d)\n"
    "    %flat: i64[F] = reshape(%z) {dims = [F]}\n"
    "    %h1: f32[N], %h2: f32[N] = group(%d) {body = graph \"g0\" (%a0: f32[N]) {\n"
    "        %b0: f32[N] = add(%a0, %a0)\n        %c0: f32[N] = add(%a0, %a0)\n        return %b0, %c0\n"
    "    }, sizes = [N], kernel = \"both\"}\n"
    "    %l: f32[N], %o: f32[N], %rows: f32[T, N] = loop(%n, none, %h1, %e) {body = graph \"b\" (%i: i64[], %go: "
    "bool[], %v: f32[N], %u: f32[N]) {\n"                                                                   /**/
    GROUP_TWICE("w", "v", "3")                                                                              /**/
    GROUP_TWICE("w2", "w", "4")                                                                             /**/
    "    %in: f32[N] = loop(%n, none, %w2) {body = graph \"c\" (%i2: i64[], %go2: bool[], %v2: f32[N]) {\n" /**/
    GROUP_TWICE("w3", "v2", "5")                                                                            /**/
    "        return %go2, %w3\n    }}\n"
    "        return %go, %in, %v, %w\n    }}\n"
    "    %y: f32[N] = if(%q) {then = graph \"t\" () {\n"   /**/
    GROUP_TWICE("p", "l", "6")                             /**/
    GROUP_TWICE("p2", "p", "7")                            /**/
    "        return %p2\n    }, else = graph \"f\" () {\n" /**/
    GROUP_TWICE("s", "h2", "8")                            /**/
    "        return %s\n    }}\n"
    "    %tv: f32[2], %j: i64[2] = top_k(%e) {axis = 0, k = [2], largest = 1, sorted = 1}\n"
    "    %nms: i64[U, 3] = non_max_suppression(%boxes, %scores, none, none, none) {center = 0}\n"
    "    %s2: i64[2] = dim_values() {dims = [K, N*T], scalar = 0, dtype = i64}\n"
    "    return %y, %rows, %tv, %s2, %x, %r, %flat, %o, %j, %nms\n"
    "}\n";

/* ---- where things are, blocks in their order: the plan, the loop's body, that of the loop in it, the branches ---- */
enum { D, D2, HOLD, W, W2, W3, P, P2, S }; /* the launches, by what they give */
#define LAUNCH(n)       nth_step(p, UIR_PLAN_STEP_LAUNCH, n)
#define COPY(n)         nth_step(p, UIR_PLAN_STEP_COPY, n)
#define NON_ZERO        nth_step(p, UIR_PLAN_STEP_HOST, 0)
#define TOP_K           nth_step(p, UIR_PLAN_STEP_HOST, 1)
#define NMS             nth_step(p, UIR_PLAN_STEP_HOST, 2)
#define BIND            nth_step(p, UIR_PLAN_STEP_BIND, 0)
#define CHECK           nth_step(p, UIR_PLAN_STEP_CHECK, 0)
#define DIMS            nth_step(p, UIR_PLAN_STEP_DIMS, 0)
#define LOOP            nth_step(p, UIR_PLAN_STEP_LOOP, 0)
#define INNER           nth_step(p, UIR_PLAN_STEP_LOOP, 1)
#define BRANCH          nth_step(p, UIR_PLAN_STEP_IF, 0)
#define BODY(of)        p->blocks[(of)->target]
#define ELSE            p->blocks[BRANCH->other]
#define IN(step, k)     *word_of(p, (step)->inputs, k)
#define OUT(step, k)    *word_of(p, (step)->outputs, k)
#define GIVES(block, k) *word_of(p, (block).outputs, k)
#define TAKES(block, k) *word_of(p, (block).inputs, k)
#define TENSOR(t)       p->tensors[t]
#define FLOATS          p->inputs[0].tensor

/* A tensor more, with the extents of another. */
static uint32_t like(uir_plan *p, uint32_t tensor, uir_plan_storage storage, uint32_t index) {
    uir_plan_tensor t = p->tensors[tensor];
    t.storage = (uint32_t)storage;
    t.index = index;
    return add_tensors(p, t, 1);
}
#define ARENA(of)   like(p, of, UIR_PLAN_STORAGE_ARENA, 0)
#define OWN(of)     like(p, of, UIR_PLAN_STORAGE_OWN, 0)
#define NAME_OF(of) like(p, of, UIR_PLAN_STORAGE_ALIAS, of)
static void swap(uir_plan_step *a, uir_plan_step *b) {
    uir_plan_step kept = *a;
    *a = *b;
    *b = kept;
}
/* A symbol that no step binds, as an expression. */
static uint32_t unbound(uir_plan *p) {
    uint32_t symbol = add_symbols(p, p->symbols[0], 1);
    uint32_t operation = add_operations(p, (uir_plan_operation){UIR_DIM_SYMBOL, symbol}, 1);
    return add_expressions(p, (uir_plan_expression){operation, 1}, 1);
}
/* The input's elements may have room between them. */
static void leave_room(uir_plan *p, uint32_t input) {
    uint32_t e = unbound(p);
    p->inputs[input].slack = (uint32_t)p->operations[p->expressions[e].first].value;
    p->inputs[input].slack_axis = 0;
}

/* What is done, and what is said of it. */
#define LATER  "which is written later"
#define NEVER  "which no step writes"
#define ENDED  "which was written in a body that has ended"
#define OF_ITS "which exists only in its own body"
#define BROKEN(EDIT)                                                                                                   \
    /* read before it is written */                                                                                    \
    EDIT("(launch) reads tensor", LATER, swap(LAUNCH(D), LAUNCH(D2)))                                                  \
    EDIT("(launch) reads tensor", NEVER, IN(LAUNCH(D2), 0) = ARENA(FLOATS))                                            \
    EDIT("(launch) reads tensor", NEVER, uint32_t t = ARENA(FLOATS); IN(LAUNCH(D2), 0) = NAME_OF(t))                   \
    EDIT("(launch) reads tensor", NEVER, IN(LAUNCH(D2), 0) = OWN(FLOATS))                                              \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(D), 0) = OUT(LOOP, 0))                                              \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(D), 0) = OUT(BRANCH, 0))                                            \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(D), 0) = p->outputs[2].tensor)                                      \
    EDIT("(host) reads tensor", NEVER, IN(NON_ZERO, 0) = ARENA(FLOATS))                                                \
    EDIT("(host) reads tensor", LATER, IN(TOP_K, 0) = IN(COPY(0), 0); swap(TOP_K, BRANCH))                             \
    EDIT("(copy) reads tensor", NEVER, IN(COPY(0), 0) = OWN(IN(COPY(0), 0)))                                           \
    EDIT("(copy) reads tensor", LATER, swap(COPY(0), BRANCH))                                                          \
    EDIT("(bind) reads tensor", NEVER, IN(BIND, 0) = ARENA(IN(BIND, 0)))                                               \
    EDIT("(check) reads tensor", NEVER, IN(CHECK, 0) = ARENA(IN(CHECK, 0)))                                            \
    EDIT("(check) reads tensor", LATER, IN(CHECK, 0) = OUT(DIMS, 0))                                                   \
    EDIT("(if) reads tensor", NEVER, IN(BRANCH, 0) = ARENA(IN(BRANCH, 0)))                                             \
    EDIT("(loop) reads tensor", NEVER, IN(LOOP, 0) = ARENA(IN(LOOP, 0)))                                               \
    EDIT("(loop) reads tensor", NEVER, IN(LOOP, 1) = ARENA(IN(BRANCH, 0)))                                             \
    EDIT("(loop) reads tensor", LATER, IN(LOOP, 2) = OUT(BRANCH, 0))                                                   \
    EDIT("(loop) overwrites tensor", "while it", IN(LOOP, 3) = OUT(LOOP, 0))                                           \
    EDIT("output 'y' is tensor", NEVER, OUT(COPY(0), 0) = ARENA(p->outputs[0].tensor))                                 \
    EDIT("output 'r' is tensor", NEVER, OUT(LAUNCH(D2), 0) = ARENA(FLOATS))                                            \
    /* in turns and branches */                                                                                        \
    EDIT("(launch) reads tensor", LATER, swap(LAUNCH(W), LAUNCH(W2)))                                                  \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(W), 0) = OUT(LAUNCH(W2), 0))                                        \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(W), 0) = OUT(INNER, 0))                                             \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(W3), 0) = OUT(INNER, 0))                                            \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(W3), 0) = OUT(LOOP, 1))                                             \
    EDIT("(launch) reads tensor", LATER, IN(LAUNCH(P), 0) = OUT(BRANCH, 0))                                            \
    EDIT("(launch) reads tensor", ENDED, IN(LAUNCH(P), 0) = OUT(LAUNCH(W), 0))                                         \
    EDIT("(launch) reads tensor", ENDED, IN(LAUNCH(P), 0) = OUT(LAUNCH(W3), 0))                                        \
    EDIT("(launch) reads tensor", ENDED, IN(LAUNCH(S), 0) = OUT(LAUNCH(P), 0))                                         \
    EDIT("(host) reads tensor", ENDED, IN(TOP_K, 0) = OUT(LAUNCH(P), 0))                                               \
    EDIT("(host) reads tensor", ENDED, IN(TOP_K, 0) = OUT(LAUNCH(S), 0))                                               \
    EDIT("(copy) reads tensor", ENDED, IN(COPY(0), 0) = OUT(LAUNCH(W), 0))                                             \
    EDIT("(launch) reads tensor", OF_ITS, IN(LAUNCH(D), 0) = TAKES(BODY(LOOP), 2))                                     \
    EDIT("(launch) reads tensor", OF_ITS, IN(LAUNCH(W), 0) = TAKES(BODY(INNER), 2))                                    \
    EDIT("(launch) reads tensor", ENDED, IN(LAUNCH(P), 0) = TAKES(BODY(LOOP), 2))                                      \
    EDIT("(copy) reads tensor", ENDED, IN(COPY(0), 0) = TAKES(BODY(LOOP), 3))                                          \
    EDIT("(loop) has a body that returns tensor", NEVER, GIVES(BODY(LOOP), 0) = ARENA(IN(BRANCH, 0)))                  \
    EDIT("(loop) has a body that returns tensor", LATER, GIVES(BODY(LOOP), 1) = OUT(LOOP, 0))                          \
    EDIT("(loop) has a body that returns tensor", ENDED, GIVES(BODY(LOOP), 3) = OUT(LAUNCH(W3), 0))                    \
    EDIT("(loop) has a body that returns tensor", ENDED, GIVES(BODY(LOOP), 2) = TAKES(BODY(INNER), 2))                 \
    EDIT("(loop) has a body that returns tensor", LATER, GIVES(BODY(INNER), 1) = OUT(LOOP, 1))                         \
    EDIT("(if) has a body that returns tensor", NEVER, GIVES(BODY(BRANCH), 0) = ARENA(FLOATS))                         \
    EDIT("(if) has a body that returns tensor", LATER, GIVES(BODY(BRANCH), 0) = OUT(BRANCH, 0))                        \
    EDIT("(if) has a body that returns tensor", LATER, GIVES(BODY(BRANCH), 0) = OUT(LAUNCH(S), 0))                     \
    EDIT("(if) has a body that returns tensor", ENDED, GIVES(ELSE, 0) = OUT(LAUNCH(P), 0))                             \
    /* written twice */                                                                                                \
    EDIT("(launch) writes tensor", "which step", OUT(LAUNCH(D2), 0) = OUT(LAUNCH(D), 0); IN(LAUNCH(D2), 0) = FLOATS)   \
    EDIT("(launch) writes tensor", "twice", OUT(LAUNCH(HOLD), 1) = OUT(LAUNCH(HOLD), 0))                               \
    EDIT("(launch) writes tensor", "twice", OUT(LAUNCH(HOLD), 1) = NAME_OF(OUT(LAUNCH(HOLD), 0)))                      \
    EDIT("(launch) writes tensor", "which step", OUT(LAUNCH(W), 0) = OUT(LAUNCH(D), 0))                                \
    EDIT("(launch) writes tensor", "which step", OUT(LAUNCH(S), 0) = OUT(LAUNCH(P), 0))                                \
    EDIT("(launch) writes tensor", "which step", OUT(LAUNCH(W), 0) = p->outputs[0].tensor)                             \
    EDIT("(loop) writes tensor", "twice", OUT(LOOP, 1) = OUT(LOOP, 0))                                                 \
    EDIT("(if) writes tensor", "which step", OUT(BRANCH, 0) = OUT(LOOP, 0))                                            \
    EDIT("(copy) writes tensor", "which step", OUT(COPY(2), 0) = p->outputs[0].tensor)                                 \
    EDIT("(dims) writes tensor", "which step", OUT(DIMS, 0) = p->outputs[8].tensor)                                    \
    /* written where it is read */                                                                                     \
    EDIT("(launch) overwrites tensor", "while it reads it", IN(LAUNCH(D2), 0) = OUT(LAUNCH(D2), 0))                    \
    EDIT("(launch) overwrites tensor", "while it reads it", IN(LAUNCH(W), 0) = NAME_OF(OUT(LAUNCH(W), 0)))             \
    EDIT("(copy) overwrites tensor", "while it reads it", IN(COPY(0), 0) = OUT(COPY(0), 0))                            \
    EDIT("(host) overwrites tensor", "while it reads it", IN(TOP_K, 0) = OUT(TOP_K, 0))                                \
    EDIT("(loop) overwrites tensor", "while it reads it", IN(LOOP, 2) = OUT(LOOP, 0))                                  \
    /* where there is no place, or another's */                                                                        \
    EDIT("(launch) writes tensor", "which only a step that allocates may write", OUT(LAUNCH(HOLD), 0) = OWN(FLOATS))   \
    EDIT("(dims) writes tensor", "which only a step that allocates may write", OUT(DIMS, 0) = OWN(OUT(DIMS, 0)))       \
    EDIT("(host) allocates tensor", "an alias of", uint32_t t = OWN(FLOATS); OUT(TOP_K, 0) = NAME_OF(t))               \
    EDIT("an input does not match tensor", "", IN(LAUNCH(D), 0) = like(p, FLOATS, UIR_PLAN_STORAGE_INPUT, 0))          \
    EDIT("an output does not match tensor", "", OUT(LAUNCH(HOLD), 1) = like(p, FLOATS, UIR_PLAN_STORAGE_OUTPUT, 0))    \
    EDIT("bodies share the port of tensor", "", TAKES(BODY(INNER), 2) = TAKES(BODY(LOOP), 2))                          \
    EDIT("bodies share the port of tensor", "", TAKES(BODY(LOOP), 3) = TAKES(BODY(LOOP), 2))                           \
    EDIT("(loop) uses tensor", "gaps between elements", leave_room(p, 3))                                              \
    EDIT("(loop) has a body", "", GIVES(BODY(LOOP), 1) = ARENA(FLOATS))                                                \
    /* sizes */                                                                                                        \
    EDIT("a step uses a size that is not known yet", "", swap(DIMS, LOOP))                                             \
    EDIT("a step uses a tensor whose size is not known yet", "", IN(LAUNCH(D), 0) = OUT(NON_ZERO, 0))                  \
    EDIT("a size is never bound", "", *word_of(p, DIMS->values, 0) = unbound(p))                                       \
    EDIT("a size is never bound", "", *word_of(p, TENSOR(OUT(LAUNCH(W), 0)).extents, 0) = unbound(p))                  \
    /* kinds of operands */                                                                                            \
    EDIT("'non_zero': result 0 has the wrong dtype or rank", "", TENSOR(OUT(NON_ZERO, 0)).dtype = UIR_DTYPE_I32)       \
    EDIT("'non_zero': operand 1 is one too many", "", NON_ZERO->inputs = longer(p, NON_ZERO->inputs, FLOATS))          \
    EDIT("'non_max_suppression': operand 0 has the wrong dtype or rank", "", IN(NMS, 0) = FLOATS)                      \
    EDIT("'non_max_suppression': operand 2 has the wrong dtype or rank", "", IN(NMS, 2) = FLOATS)                      \
    EDIT("'non_max_suppression': operand 5 is one too many", "", NMS->inputs = longer(p, NMS->inputs, FLOATS))         \
    EDIT("'non_max_suppression': operand 1 is absent", "", NMS->inputs.count = 1)                                      \
    EDIT("a launch is invalid", "", LAUNCH(D)->outputs = longer(p, LAUNCH(D)->outputs, ARENA(FLOATS)))                 \
    EDIT("a launch is invalid", "", LAUNCH(HOLD)->outputs.count = 1)                                                   \
    EDIT("a step is invalid", "", IN(COPY(0), 0) = p->outputs[5].tensor)                                               \
    EDIT("a step is invalid", "", IN(COPY(0), 0) = IN(COPY(1), 0))

typedef struct edit {
    uint32_t which; /* NONE: nothing is changed */
    const char *what, *message, *more;
} edit;

static void apply(void *user, uir_plan *p) {
    edit *e = user;
    uint32_t at = 0;
#define EDIT(text, then, ...)                                                                                          \
    if (at++ == e->which) {                                                                                            \
        __VA_ARGS__;                                                                                                   \
        e->what = #__VA_ARGS__;                                                                                        \
        e->message = text;                                                                                             \
        e->more = then;                                                                                                \
    }
    BROKEN(EDIT)
#undef EDIT
}

static uir_status open_edited(fixture *f, edit *e) {
    uir_package *package;
    uir_status status = fixture_open_forged(f, &open_by_vm, apply, e, &package);
    uir_package_close(package);
    return status;
}

static void test_broken(void **state) {
    (void)state;
    fixture f;
    uint32_t wrong = 0, count = 0;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, open_edited(&f, &(edit){.which = UIR_PLAN_NONE}));
    for (;; count++) {
        edit e = {.which = count};
        uir_status status = open_edited(&f, &e);
        if (!e.message) break;
        const char *said = f.diagnostics.first ? f.diagnostics.first->message : "nothing";
        if (status != UIR_STATUS_BAD_FILE || !strstr(said, e.message) || !strstr(said, e.more)) {
            print_error("%s: %s: %s\n", e.what, uir_status_text(status), said);
            wrong++;
        }
        uir_diagnostics_clear(&f.diagnostics);
    }
    assert_int_equal(wrong, 0);
    assert_true(count >= 60);
    fixture_deinit(&f);
}

/* ---- what only a run can tell ---- */
static const char *const wide_kernels = "igraph @wide on cpu {\n"
                                        "  dim K in 0..1000\n"
                                        "  ptr %x : dram f32 [28] in 0\n"
                                        "  ptr %y : dram f32 [28] out 0\n"
                                        "  phase {\n"
                                        "    binary.add.f32 %y[0:28], %x[0:28], %x[0:28]\n"
                                        "  }\n"
                                        "}\n";

/* The kernel reads all the room that the input has, whose sizes it is not told of. */
static void count_room(void *user, uir_plan *p) {
    (void)user;
    leave_room(p, 0);
    p->inputs[0].slack_axis = 1;
}

/* The launch belongs to a later epoch, whose own sizes stay the same when the caller leaves less room than before. */
static void test_less_room(void **state) {
    (void)state;
    static const float x[28] = {1};
    static const int64_t shape[2] = {2, 4}, strides[2] = {14, 1};
    const int64_t three = 3;
    session s;
    session_begin_forged(&s,
                         "module opset 17\nsize N\nsize K\ngraph \"main\" (%x: f32[2, N], %m: i64[]) {\n"
                         "    bind_dims(%m) {dims = [K]}\n"
                         "    %y: f32[28] = group(%x) {body = graph \"g\" (%a: f32[2, N]) {\n"
                         "        %b: f32[28] = iota() {axis = 0, dims = [28], dtype = f32}\n        return %b\n"
                         "    }, sizes = [K], kernel = \"wide\"}\n    return %y\n}\n",
                         wide_kernels, count_room, &(uir_runtime_options){.threads = 1}, NULL);
    check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_I64, 0, NULL, &three));
    for (int turn = 0; turn < 2; turn++) {
        check_ok(&s.f, uir_runtime_set_input_strided(s.r, 0, UIR_DTYPE_F32, 2, shape, strides, x, sizeof x));
        check_ok(&s.f, uir_runtime_run(s.r));
        check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, 2, shape, x));
        assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_FILE);
        check_message(&s.f, "pointer 0 of the step's kernel requires 112 bytes, but has 32");
        uir_diagnostics_clear(&s.f.diagnostics);
    }
    session_end(&s);
}

/* An input that a branch gives as it is is packed, though a kernel could do with room in it: the planner says so. */
static void find_room(void *user, uir_plan *p) {
    *(bool *)user = p->inputs[0].slack != UIR_PLAN_NONE && p->inputs[0].slack_axis != UIR_PLAN_NONE;
}

static void test_given_by_branch(void **state) {
    (void)state;
    fixture f;
    uir_package *package;
    bool room = true;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f,
                               "module opset 17\nsize N\ngraph \"main\" (%x: f32[2, N], %q: bool[]) {\n"
                               "    %d: f32[2, N] = group(%x) {body = graph \"g\" (%a: f32[2, N]) {\n"
                               "        %b: f32[2, N] = add(%a, %a)\n        return %b\n"
                               "    }, sizes = [N], slack = [0, 1], kernel = \"roomy\"}\n"
                               "    %y: f32[2, N] = if(%q) {then = graph \"t\" () {\n        return %d\n"
                               "    }, else = graph \"e\" () {\n        return %x\n    }}\n    return %y\n}\n",
                               "igraph @roomy on cpu {\n  dim N in 0..1000\n  dim S in 0..1000\n"
                               "  ptr %x : dram f32 [2*N + S] in 0\n  ptr %y : dram f32 [2*N] out 0\n  phase {\n"
                               "    binary.add.f32 %y[0:N], %x[0:N], %x[0:N]\n"
                               "    binary.add.f32 %y[N:N], %x[N + S:N], %x[N + S:N]\n  }\n}\n"));
    fixture_forge(&f, find_room, &room);
    assert_false(room);
    check_ok(&f, fixture_open(&f, &f.allocator, &package));
    uir_package_close(package);
    fixture_deinit(&f);
}

/* A kernel that writes nothing gives nothing of what the process had in memory: it finds zeros. */
static void *dirty_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    const uir_allocator *under = user;
    char *data = under->resize(under->user, pointer, old_size, new_size);
    if (data && new_size > old_size) memset(data + old_size, 0xa5, new_size - old_size);
    return data;
}

/* The kernel is told of no elements. */
static void run_nothing(void *user, uir_plan *p) {
    (void)user;
    uint32_t zero = add_operations(p, (uir_plan_operation){UIR_DIM_CONST, 0}, 1);
    *word_of(p, LAUNCH(0)->values, 0) = add_expressions(p, (uir_plan_expression){zero, 1}, 1);
}

static void test_nothing_written(void **state) {
    (void)state;
    static const float zeros[8] = {0};
    static const int64_t shape = 8;
    uir_allocator under = uir_allocator_system(), dirty = {dirty_resize, &under};
    session s;
    uir_runtime_output out;
    session_begin_forged(&s,
                         "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
                         "    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
                         "        %b: f32[N] = add(%a, %a)\n        return %b\n"
                         "    }, sizes = [N], kernel = \"each\"}\n    return %y\n}\n",
                         "igraph @each on cpu {\n  dim N in 0..1000\n  ptr %x : dram f32 [N] in 0\n"
                         "  ptr %y : dram f32 [N] out 0\n  phase {\n    parallel p : N group\n"
                         "    binary.add.f32 %y[p:1], %x[p:1], %x[p:1]\n  }\n}\n",
                         run_nothing, &(uir_runtime_options){.threads = 1}, &dirty);
    check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, 1, &shape, zeros));
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &out));
    assert_memory_equal(out.data, zeros, sizeof zeros);
    session_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken), cmocka_unit_test(test_less_room),
                                       cmocka_unit_test(test_given_by_branch), cmocka_unit_test(test_nothing_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
