/* The plan: the steps of a run, as flat tables, and their file format.
 *
 * In: the bytes of a package's plan section. Out: valid records: every index, list, expression and block is checked, so
 * that the executor checks values only. Format: each table is a u32 count and its records, in little-endian integers.
 * Planner (plan_write.c) and reader (plan_read.c) use the same lists of fields, defined here.
 *
 * Sizes are expressions: postfix programs over symbols. A plan's symbols are the dims that inputs bind and steps learn;
 * a kernel variant's are its own (its `dim`s, `tile`s and named values), numbered from 0. */
#ifndef UIR_PACKAGE_PLAN_H
#define UIR_PACKAGE_PLAN_H

#include "base/dims/dim.h"
#include "base/dtype.h"
#include "base/fate.h"

#define UIR_PLAN_NONE UINT32_MAX
enum {
    UIR_PLAN_MAX_STACK = 64,
    UIR_PLAN_MAX_DEPTH = 32,
    UIR_PLAN_MAX_RECORDS = 1 << 24,
    UIR_PLAN_MAX_RANK = 16,
    UIR_PLAN_MAX_POINTERS = 256
};

/* Where a tensor's elements are. */
#define UIR_PLAN_STORAGES(UIR_PLAN_STORAGE)                                                                            \
    UIR_PLAN_STORAGE(ARENA, "arena")       /* arena memory during its lifetime */                                      \
    UIR_PLAN_STORAGE(INPUT, "input")       /* the caller's input `index` */                                            \
    UIR_PLAN_STORAGE(OUTPUT, "output")     /* buffer of output `index` */                                              \
    UIR_PLAN_STORAGE(CONSTANT, "constant") /* constant `index` of the weights */                                       \
    UIR_PLAN_STORAGE(ALIAS, "alias")       /* an alias of tensor `index`, an earlier one */                            \
    UIR_PLAN_STORAGE(OWN, "own")           /* a growing buffer: extents are known when it is written */                \
    UIR_PLAN_STORAGE(PORT, "port")         /* an input of a body, placed by the loop */                                \
    UIR_PLAN_STORAGE(LAID_OUT, "laid-out") /* arena memory, expression `index` elements; launches know layout */
typedef enum uir_plan_storage {
#define UIR_PLAN_STORAGE_ENUM(constant, name) UIR_PLAN_STORAGE_##constant,
    UIR_PLAN_STORAGES(UIR_PLAN_STORAGE_ENUM)
#undef UIR_PLAN_STORAGE_ENUM
        UIR_PLAN_STORAGE_COUNT
} uir_plan_storage;

/* The kinds of step, and their properties for reading, analysing and verifying a plan: UIR_PLAN_STEP(constant, name,
 * target, other, inputs, outputs, traits).
 * target, other  kinds of reference in these members: uir_plan_reference
 * inputs, outputs  how many, at least and at most
 * traits  UIR_PLAN_ bits below
 *
 * LAUNCH  kernel `target` on inputs, outputs; `values`: its dims
 * COPY    the bytes of the input to the output
 * HOST    the host operator named by text `target` (host_ops.def)
 * BIND    learns `symbols` from the elements of an integer tensor
 * DIMS    writes `values` into an integer tensor
 * CHECK   checks low <= element < high for an integer tensor, named by text `target` in messages. `values`: all lows,
 *         then all highs; one pair, or one per index along the last axis. `other` 1: `ends` (base/dims/demand.h)
 * LOOP    block `target`; inputs: trips or none, condition or none, carried
 * IF      block `target` when the input is true, else block `other` */
#define UIR_PLAN_STEPS(UIR_PLAN_STEP)                                                                                  \
    UIR_PLAN_STEP(LAUNCH, "launch", KERNEL, NOTHING, (0, MANY), (0, MANY),                                             \
                  UIR_PLAN_ABSENT_INPUTS | UIR_PLAN_FILLS | UIR_PLAN_STRIDES)                                          \
    UIR_PLAN_STEP(COPY, "copy", NOTHING, NOTHING, (1, 1), (1, 1), UIR_PLAN_FILLS | UIR_PLAN_MAKES)                     \
    UIR_PLAN_STEP(HOST, "host", TEXT, NOTHING, (0, MANY), (0, MANY),                                                   \
                  UIR_PLAN_ABSENT_INPUTS | UIR_PLAN_ABSENT_OUTPUTS | UIR_PLAN_FILLS | UIR_PLAN_MAKES)                  \
    UIR_PLAN_STEP(BIND, "bind", NOTHING, NOTHING, (1, 1), (0, 0), UIR_PLAN_BINDS)                                      \
    UIR_PLAN_STEP(DIMS, "dims", NOTHING, NOTHING, (0, 0), (1, 1), UIR_PLAN_FILLS)                                      \
    UIR_PLAN_STEP(CHECK, "check", TEXT, NOTHING, (1, 1), (0, 0), 0)                                                    \
    UIR_PLAN_STEP(LOOP, "loop", BLOCK, NOTHING, (2, MANY), (0, MANY),                                                  \
                  UIR_PLAN_ABSENT_INPUTS | UIR_PLAN_MAKES | UIR_PLAN_TURNS)                                            \
    UIR_PLAN_STEP(IF, "if", BLOCK, BLOCK, (1, 1), (0, MANY), UIR_PLAN_MAKES)
typedef enum uir_plan_step_kind {
#define UIR_PLAN_STEP_ENUM(constant, ...) UIR_PLAN_STEP_##constant,
    UIR_PLAN_STEPS(UIR_PLAN_STEP_ENUM)
#undef UIR_PLAN_STEP_ENUM
        UIR_PLAN_STEP_KIND_COUNT
} uir_plan_step_kind;

typedef enum uir_plan_reference {
    UIR_PLAN_OF_NOTHING, /* none; any number */
    UIR_PLAN_OF_KERNEL,
    UIR_PLAN_OF_TEXT,
    UIR_PLAN_OF_BLOCK, /* a body, run by no other step */
} uir_plan_reference;
enum {
    UIR_PLAN_ABSENT_INPUTS = 1,  /* may include NONE */
    UIR_PLAN_ABSENT_OUTPUTS = 2, /* the same */
    UIR_PLAN_FILLS = 4,          /* writes results into planned storage: ARENA, OUTPUT */
    UIR_PLAN_MAKES = 8,          /* allocates results, of extents known only then: storage OWN */
    UIR_PLAN_TURNS = 16,         /* its body runs any number of times, and has inputs */
    UIR_PLAN_BINDS = 32,         /* binds `symbols` */
    UIR_PLAN_STRIDES = 64        /* supports slack in its operands and results; for others tensors are packed */
};
typedef struct uir_plan_step_row {
    const char *name;
    uir_plan_reference target, other;
    struct {
        uint32_t least, most;
    } inputs, outputs;
    uint32_t traits;
} uir_plan_step_row;
/* `kind` must be valid. */
const uir_plan_step_row *uir_plan_get_step_row(uint32_t kind);

typedef enum uir_plan_symbol_kind { UIR_PLAN_DIM, UIR_PLAN_TILE, UIR_PLAN_VALUE } uir_plan_symbol_kind;
/* Roles of a kernel's pointers into device memory, in order. IN and OUT: `index` is the argument; CONST: `index` is the
 * packed input. */
typedef enum uir_plan_role {
    UIR_PLAN_IN,
    UIR_PLAN_OUT,
    UIR_PLAN_CONST,
    UIR_PLAN_WORK,
    UIR_PLAN_ROLE_COUNT
} uir_plan_role;
typedef enum uir_plan_attribute_kind {
    UIR_PLAN_INTEGERS, /* `count` of integers */
    UIR_PLAN_REALS,    /* bits of doubles */
    UIR_PLAN_TEXT,     /* one text */
    UIR_PLAN_SIZES,    /* expressions */
    UIR_PLAN_ATTRIBUTE_KIND_COUNT
} uir_plan_attribute_kind;

/* A list: `count` words from word `first`. */
typedef struct uir_plan_list {
    uint32_t first, count;
} uir_plan_list;

typedef struct uir_plan_word {
    uint32_t value;
} uir_plan_word;
typedef struct uir_plan_integer {
    int64_t value;
} uir_plan_integer;
typedef struct uir_plan_text {
    uint32_t first, count; /* of the characters; a zero follows, not counted */
} uir_plan_text;
/* A postfix operation: a uir_dim_kind; CONST pushes value, SYMBOL pushes symbol `value`, the others take two. */
typedef struct uir_plan_operation {
    uint32_t kind;
    int64_t value;
} uir_plan_operation;
typedef struct uir_plan_expression {
    uint32_t first, count; /* operations */
} uir_plan_expression;
typedef struct uir_plan_condition {
    uint32_t relation, left, right; /* uir_relation, expressions */
} uir_plan_condition;

typedef struct uir_plan_symbol {
    uint32_t name; /* text */
    int64_t min, max, multiple_of;
} uir_plan_symbol;
typedef struct uir_plan_tensor {
    uint32_t dtype, storage, index;
    uir_plan_list extents; /* expressions */
} uir_plan_tensor;
typedef struct uir_plan_constant {
    uint64_t offset, size, hash; /* in the weights section; a multiple of UIR_PACKAGE_CONSTANT_ALIGN */
} uir_plan_constant;
typedef struct uir_plan_port {
    uint32_t name, tensor;
    uir_plan_list dim_names; /* text per dim: "" for a fixed one */
    /* Symbol of the slack: elements of spare capacity behind each stretch of an axis in the caller's buffer, set when
     * the port is bound. NONE: the tensor is always packed. Axis NONE: the symbol is 0. */
    uint32_t slack, slack_axis;
} uir_plan_port;
typedef struct uir_plan_attribute {
    uint32_t name, kind, first, count; /* TEXT: first is the text; SIZES: words; else integers */
} uir_plan_attribute;

typedef struct uir_plan_step {
    uint32_t kind, target, other;
    uir_plan_list inputs, outputs; /* tensors; NONE if absent */
    uir_plan_list values;          /* expressions */
    uir_plan_list symbols;
    uir_plan_list constants; /* LAUNCH: for each variant the constants of its CONST pointers */
    uint32_t first_attribute, attribute_count;
    uint32_t node, op; /* texts: node and op that it was made from */
    uint32_t remark;   /* text for people: what was fused into it, or why no kernel computes it */
    /* Nodes of the model's file that it computes, the main one first: twice the node's number, plus 1 if an earlier
     * step computes the node too. */
    uir_plan_list nodes;
} uir_plan_step;
static inline bool uir_plan_has_bodies(const uir_plan_step *step) {
    return uir_plan_get_step_row(step->kind)->target == UIR_PLAN_OF_BLOCK;
}
/* Whether its body runs any number of times. */
static inline bool uir_plan_turns(const uir_plan_step *step) {
    return (uir_plan_get_step_row(step->kind)->traits & UIR_PLAN_TURNS) != 0;
}
/* Block 0 is the plan itself; the others are bodies. A loop's block has inputs iteration, condition, carried and
 * outputs condition, carried, scanned; a branch has outputs only. */
typedef struct uir_plan_block {
    uint32_t first_step, step_count;
    uir_plan_list inputs, outputs; /* tensors */
} uir_plan_block;

typedef struct uir_plan_kernel {
    uint32_t name, first_variant, variant_count, dim_count, input_count, output_count;
} uir_plan_kernel;
/* A launch runs the first variant of its kernel whose requirements hold for some candidate. */
typedef struct uir_plan_variant {
    uint64_t code_offset, code_size; /* bytecode in the code section */
    uint32_t first_symbol, symbol_count;
    uint32_t first_require, require_count; /* conditions */
    uint32_t first_candidate, candidate_count;
    uint32_t first_pointer, pointer_count;
    uint32_t first_phase, phase_count;
    uint32_t scratch;           /* expression: bytes of scratch per thread of a native kernel; NONE: no native code */
    uir_plan_list native_names; /* text per native object: its symbol; NONE: not in it */
} uir_plan_variant;
typedef struct uir_plan_kernel_symbol {
    uint32_t kind; /* uir_plan_symbol_kind; kinds may be mixed, each in its order */
    int64_t min, max, multiple_of;
    uint32_t definition; /* VALUE: an expression over earlier symbols */
} uir_plan_kernel_symbol;
typedef struct uir_plan_candidate {
    uint32_t first_condition, condition_count;
    uir_plan_list tiles; /* an expression per TILE */
    uint32_t cost;       /* of a unit of work: expression or NONE: 0 */
    uint32_t units;      /* units of work, shared by the threads: expression or NONE: 1 */
} uir_plan_candidate;
typedef struct uir_plan_pointer {
    uint32_t role, index, dtype, span; /* span: expression, elements of storage */
    uint32_t tied;                     /* OUT: the input that it continues in place; NONE */
} uir_plan_pointer;
typedef struct uir_plan_phase {
    uir_plan_list extents; /* of its parallel axes */
    /* Pairs of pointers, operand and result, that the first half of the parallel indices copies, doing nothing else.
     * Where `same` holds, and both begin at one address, each element is copied onto itself. Empty: no such half. */
    uir_plan_list copies;
    uint32_t first_same, same_count; /* conditions */
} uir_plan_phase;

/* A constraint on sizes (ir/graph/demands.h), checked when all of them are known and `block` runs: branches not taken
 * and loops without iterations may have invalid sizes. `or_one`: left may be 1 as well. Texts of the message: the node,
 * its ONNX op, its primitive (empty if redundant), name and dims of each side. */
typedef struct uir_plan_check {
    uint32_t relation, left, right, or_one; /* uir_relation, expressions */
    uint32_t block;
    uint32_t node, op, primitive, left_name, left_dims, right_name, right_dims;
} uir_plan_check;
typedef struct uir_plan_native {
    uint32_t isa;     /* text: "avx2" */
    uint32_t section; /* index of the native section, from 0; NONE: attached later */
} uir_plan_native;
typedef struct uir_plan_metadata {
    uint32_t key, value; /* texts */
} uir_plan_metadata;

/* A node of the model's file, also of bodies and of functions' calls. Its name is two texts, `place` then `name`, since
 * many names have a long common prefix. */
typedef struct uir_plan_node {
    uint32_t place, name, op; /* texts */
    /* A uir_fate (STANDS: steps compute it), plus UIR_PLAN_FATES times the number, from 1, of the node that it was
     * merged into; 0: none. */
    uint32_t became;
} uir_plan_node;
enum { UIR_PLAN_FATES = 8 };
_Static_assert((int)UIR_FATE_COUNT <= (int)UIR_PLAN_FATES, "each fate has a number");

/* ---- plans for a device with memory of its own ---- */
/* Where a tensor is: domain 0 is the host, domain 1 the plan's device. */
typedef enum uir_plan_domain { UIR_PLAN_ON_HOST, UIR_PLAN_ON_DEVICE, UIR_PLAN_DOMAIN_COUNT } uir_plan_domain;

/* The queues. The host's is the calling thread: its steps are done when the next step begins. The device executes the
 * requests of a queue in their order; those of two queues are ordered by the waits of the plan alone (order.h). */
#define UIR_PLAN_QUEUES(UIR_PLAN_QUEUE)                                                                                \
    UIR_PLAN_QUEUE(HOST, "host")                                                                                       \
    UIR_PLAN_QUEUE(COMPUTE, "compute")                                                                                 \
    UIR_PLAN_QUEUE(UPLOAD, "upload")     /* copies from the host to the device */                                      \
    UIR_PLAN_QUEUE(DOWNLOAD, "download") /* copies from the device to the host */
typedef enum uir_plan_queue {
#define UIR_PLAN_QUEUE_ENUM(constant, name) UIR_PLAN_QUEUE_##constant,
    UIR_PLAN_QUEUES(UIR_PLAN_QUEUE_ENUM)
#undef UIR_PLAN_QUEUE_ENUM
        UIR_PLAN_QUEUE_COUNT
} uir_plan_queue;

#define UIR_PLAN_BYTECODE "vm" /* the format of the code section, among a device's formats */

typedef struct uir_plan_device {
    uint32_t name, chip; /* texts: those of the device's machine; chip "": any */
} uir_plan_device;
/* Where a step executes, and after which steps. LAUNCH: on the host or the compute queue, as are its operands. COPY:
 * the only step with operands in two domains. LOOP, IF: the compute queue if anything in their bodies or operands is
 * the device's, since they copy between tensors of the device; their waits are the host's. All others: the host. */
typedef struct uir_plan_schedule {
    uint32_t queue; /* uir_plan_queue */
    uint32_t why;   /* text: why the device cannot execute the LAUNCH or HOST, so that the host does; NONE: it can */
    uir_plan_list waits; /* steps of other queues; those of the step's own bodies at the end of these */
} uir_plan_schedule;

/* The tables in file order: UIR_PLAN_TABLE(record type, field of the plan). */
#define UIR_PLAN_TABLES(UIR_PLAN_TABLE)                                                                                \
    UIR_PLAN_TABLE(uir_plan_text, texts)                                                                               \
    UIR_PLAN_TABLE(uir_plan_word, words)                                                                               \
    UIR_PLAN_TABLE(uir_plan_integer, integers)                                                                         \
    UIR_PLAN_TABLE(uir_plan_operation, operations)                                                                     \
    UIR_PLAN_TABLE(uir_plan_expression, expressions)                                                                   \
    UIR_PLAN_TABLE(uir_plan_condition, conditions)                                                                     \
    UIR_PLAN_TABLE(uir_plan_symbol, symbols)                                                                           \
    UIR_PLAN_TABLE(uir_plan_constant, constants)                                                                       \
    UIR_PLAN_TABLE(uir_plan_tensor, tensors)                                                                           \
    UIR_PLAN_TABLE(uir_plan_port, inputs)                                                                              \
    UIR_PLAN_TABLE(uir_plan_port, outputs)                                                                             \
    UIR_PLAN_TABLE(uir_plan_attribute, attributes)                                                                     \
    UIR_PLAN_TABLE(uir_plan_step, steps)                                                                               \
    UIR_PLAN_TABLE(uir_plan_block, blocks)                                                                             \
    UIR_PLAN_TABLE(uir_plan_kernel, kernels)                                                                           \
    UIR_PLAN_TABLE(uir_plan_variant, variants)                                                                         \
    UIR_PLAN_TABLE(uir_plan_kernel_symbol, kernel_symbols)                                                             \
    UIR_PLAN_TABLE(uir_plan_candidate, candidates)                                                                     \
    UIR_PLAN_TABLE(uir_plan_pointer, pointers)                                                                         \
    UIR_PLAN_TABLE(uir_plan_phase, phases)                                                                             \
    UIR_PLAN_TABLE(uir_plan_check, checks)                                                                             \
    UIR_PLAN_TABLE(uir_plan_native, natives)                                                                           \
    UIR_PLAN_TABLE(uir_plan_metadata, metadata)                                                                        \
    UIR_PLAN_TABLE(uir_plan_node, nodes)
/* The same of plans for a device, behind the others; without a device they are not there, and empty. */
#define UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)                                                                         \
    UIR_PLAN_TABLE(uir_plan_device, devices)     /* one */                                                             \
    UIR_PLAN_TABLE(uir_plan_word, domains)       /* by tensor: uir_plan_domain; of an alias: that of its root */       \
    UIR_PLAN_TABLE(uir_plan_schedule, schedules) /* by step */                                                         \
    UIR_PLAN_TABLE(uir_plan_word, homes)         /* by variant: bits, 1u << uir_plan_domain: where its code can run */ \
    UIR_PLAN_TABLE(uir_plan_word, port_tensors)  /* by input, then output: its tensor on the device; NONE */

/* The fields of each record in file order. W: a u32, Q: a 64-bit integer. */
#define UIR_PLAN_LIST(W, list)              W((list).first) W((list).count)
#define uir_plan_text_fields(W, Q, r)       W(r->first) W(r->count)
#define uir_plan_word_fields(W, Q, r)       W(r->value)
#define uir_plan_integer_fields(W, Q, r)    Q(r->value)
#define uir_plan_operation_fields(W, Q, r)  W(r->kind) Q(r->value)
#define uir_plan_expression_fields(W, Q, r) W(r->first) W(r->count)
#define uir_plan_condition_fields(W, Q, r)  W(r->relation) W(r->left) W(r->right)
#define uir_plan_symbol_fields(W, Q, r)     W(r->name) Q(r->min) Q(r->max) Q(r->multiple_of)
#define uir_plan_constant_fields(W, Q, r)   Q(r->offset) Q(r->size) Q(r->hash)
#define uir_plan_tensor_fields(W, Q, r)     W(r->dtype) W(r->storage) W(r->index) UIR_PLAN_LIST(W, r->extents)
#define uir_plan_port_fields(W, Q, r)                                                                                  \
    W(r->name) W(r->tensor) UIR_PLAN_LIST(W, r->dim_names) W(r->slack) W(r->slack_axis)
#define uir_plan_attribute_fields(W, Q, r) W(r->name) W(r->kind) W(r->first) W(r->count)
#define uir_plan_step_fields(W, Q, r)                                                                                  \
    W(r->kind)                                                                                                         \
    W(r->target)                                                                                                       \
    W(r->other)                                                                                                        \
    UIR_PLAN_LIST(W, r->inputs)                                                                                        \
    UIR_PLAN_LIST(W, r->outputs)                                                                                       \
    UIR_PLAN_LIST(W, r->values)                                                                                        \
    UIR_PLAN_LIST(W, r->symbols)                                                                                       \
    UIR_PLAN_LIST(W, r->constants)                                                                                     \
    W(r->first_attribute)                                                                                              \
    W(r->attribute_count)                                                                                              \
    W(r->node)                                                                                                         \
    W(r->op)                                                                                                           \
    W(r->remark)                                                                                                       \
    UIR_PLAN_LIST(W, r->nodes)
#define uir_plan_block_fields(W, Q, r)                                                                                 \
    W(r->first_step) W(r->step_count) UIR_PLAN_LIST(W, r->inputs) UIR_PLAN_LIST(W, r->outputs)
#define uir_plan_kernel_fields(W, Q, r)                                                                                \
    W(r->name) W(r->first_variant) W(r->variant_count) W(r->dim_count) W(r->input_count) W(r->output_count)
#define uir_plan_variant_fields(W, Q, r)                                                                               \
    Q(r->code_offset)                                                                                                  \
    Q(r->code_size)                                                                                                    \
    W(r->first_symbol)                                                                                                 \
    W(r->symbol_count)                                                                                                 \
    W(r->first_require)                                                                                                \
    W(r->require_count)                                                                                                \
    W(r->first_candidate)                                                                                              \
    W(r->candidate_count)                                                                                              \
    W(r->first_pointer)                                                                                                \
    W(r->pointer_count)                                                                                                \
    W(r->first_phase)                                                                                                  \
    W(r->phase_count)                                                                                                  \
    W(r->scratch)                                                                                                      \
    UIR_PLAN_LIST(W, r->native_names)
#define uir_plan_kernel_symbol_fields(W, Q, r) W(r->kind) Q(r->min) Q(r->max) Q(r->multiple_of) W(r->definition)
#define uir_plan_candidate_fields(W, Q, r)                                                                             \
    W(r->first_condition) W(r->condition_count) UIR_PLAN_LIST(W, r->tiles) W(r->cost) W(r->units)
#define uir_plan_pointer_fields(W, Q, r) W(r->role) W(r->index) W(r->dtype) W(r->span) W(r->tied)
#define uir_plan_phase_fields(W, Q, r)                                                                                 \
    UIR_PLAN_LIST(W, r->extents) UIR_PLAN_LIST(W, r->copies) W(r->first_same) W(r->same_count)
#define uir_plan_check_fields(W, Q, r)                                                                                 \
    W(r->relation)                                                                                                     \
    W(r->left)                                                                                                         \
    W(r->right)                                                                                                        \
    W(r->or_one)                                                                                                       \
    W(r->block) W(r->node) W(r->op) W(r->primitive) W(r->left_name) W(r->left_dims) W(r->right_name) W(r->right_dims)
#define uir_plan_native_fields(W, Q, r)   W(r->isa) W(r->section)
#define uir_plan_metadata_fields(W, Q, r) W(r->key) W(r->value)
#define uir_plan_node_fields(W, Q, r)     W(r->place) W(r->name) W(r->op) W(r->became)
#define uir_plan_device_fields(W, Q, r)   W(r->name) W(r->chip)
#define uir_plan_schedule_fields(W, Q, r) W(r->queue) W(r->why) UIR_PLAN_LIST(W, r->waits)

typedef struct uir_plan {
    size_t size;            /* of its file bytes: analysis is limited in proportion to it */
    const char *characters; /* of the texts; each text ends with a zero */
    uint32_t characters_count;
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    type *field;                                                                                                       \
    uint32_t field##_count;
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
} uir_plan;

/* Decodes and validates into the arena. `code_size`, `weights_size`, `native_count`: of the package's other sections.
 * BAD_FILE with a message that names the table if anything is invalid. */
uir_status uir_plan_read(uir_arena *arena, const void *bytes, size_t size, uint64_t code_size, uint64_t weights_size,
                         uint32_t native_count, uir_diagnostics *diagnostics, uir_plan *out_plan);

/* Appends the bytes; an allocation failure shows in the text's status. */
void uir_plan_write(const uir_plan *plan, uir_text *bytes);

static inline const char *uir_plan_get_text(const uir_plan *plan, uint32_t text) {
    return plan->characters + plan->texts[text].first;
}
/* The location of a record in the model, by its texts of a node and an operator; either may be empty. */
static inline uir_location uir_plan_get_location(const uir_plan *plan, uint32_t node, uint32_t op) {
    const char *name = uir_plan_get_text(plan, node), *kind = uir_plan_get_text(plan, op);
    return (uir_location){.node = *name ? name : NULL, .op = *kind ? kind : NULL};
}
static inline uint32_t uir_plan_get_word(const uir_plan *plan, uir_plan_list list, uint32_t i) {
    return plan->words[list.first + i].value;
}

/* The same for a plan with and without a device. */
static inline uir_plan_domain uir_plan_get_domain(const uir_plan *plan, uint32_t tensor) {
    return plan->domains_count ? (uir_plan_domain)plan->domains[tensor].value : UIR_PLAN_ON_HOST;
}
static inline uir_plan_queue uir_plan_get_queue(const uir_plan *plan, uint32_t step) {
    return plan->schedules_count ? (uir_plan_queue)plan->schedules[step].queue : UIR_PLAN_QUEUE_HOST;
}
/* Whether the step is on the host because the device cannot execute it. */
static inline bool uir_plan_is_fallback(const uir_plan *plan, uint32_t step) {
    return plan->schedules_count && plan->schedules[step].why != UIR_PLAN_NONE;
}
static inline uir_plan_list uir_plan_get_waits(const uir_plan *plan, uint32_t step) {
    return plan->schedules_count ? plan->schedules[step].waits : (uir_plan_list){0, 0};
}
/* Whether the variant's code can run in the domain. */
static inline bool uir_plan_variant_runs(const uir_plan *plan, uint32_t variant, uir_plan_domain domain) {
    return plan->homes_count ? plan->homes[variant].value >> domain & 1 : domain == UIR_PLAN_ON_HOST;
}
/* The same of a kernel: its first variants decide. Those for the sizes that these do not fit may be the host's. */
static inline bool uir_plan_kernel_runs(const uir_plan *plan, uint32_t kernel, uir_plan_domain domain) {
    return uir_plan_variant_runs(plan, plan->kernels[kernel].first_variant, domain);
}
/* The tensor of an input, or of an output, on the device; NONE: it has none. */
static inline uint32_t uir_plan_get_port_tensor(const uir_plan *plan, bool is_output, uint32_t index) {
    return plan->port_tensors_count ? plan->port_tensors[is_output ? plan->inputs_count + index : index].value
                                    : UIR_PLAN_NONE;
}
/* The tensor of an input, or of an output, that the device's steps access if it has one there, else the host's. */
static inline uint32_t uir_plan_get_home_tensor(const uir_plan *plan, bool is_output, uint32_t index) {
    uint32_t tensor = uir_plan_get_port_tensor(plan, is_output, index);
    if (tensor != UIR_PLAN_NONE) return tensor;
    return is_output ? plan->outputs[index].tensor : plan->inputs[index].tensor;
}
/* Whether a step copies an input to the device, or an output from it: between the two tensors of one port. */
static inline bool uir_plan_is_port_copy(const uir_plan *plan, const uir_plan_step *step) {
    if (step->kind != UIR_PLAN_STEP_COPY || !plan->devices_count) return false;
    uint32_t a = uir_plan_get_word(plan, step->inputs, 0), b = uir_plan_get_word(plan, step->outputs, 0);
    const uir_plan_tensor *from = &plan->tensors[a], *to = &plan->tensors[b];
    return from->storage == to->storage && from->index == to->index &&
           uir_plan_get_domain(plan, a) != uir_plan_get_domain(plan, b) &&
           (from->storage == UIR_PLAN_STORAGE_INPUT || from->storage == UIR_PLAN_STORAGE_OUTPUT);
}

/* Whether a step copies the whole storage of a tensor in a layout to another one in the same layout. */
static inline bool uir_plan_is_layout_copy(const uir_plan *plan, const uir_plan_step *step) {
    if (step->kind != UIR_PLAN_STEP_COPY) return false;
    const uir_plan_tensor *from = &plan->tensors[uir_plan_get_word(plan, step->inputs, 0)],
                          *to = &plan->tensors[uir_plan_get_word(plan, step->outputs, 0)];
    return from->storage == UIR_PLAN_STORAGE_LAID_OUT && to->storage == UIR_PLAN_STORAGE_LAID_OUT &&
           from->index == to->index && from->dtype == to->dtype;
}

/* Evaluates an expression accepted by the reader. `bound` NULL: all symbols are bound. False on an unbound symbol,
 * overflow, or division by a value below 1. */
bool uir_plan_evaluate(const uir_plan *plan, uint32_t expression, const int64_t *values, const bool *bound,
                       int64_t *out_value);
/* The symbol, if the expression is just one; else NONE. */
uint32_t uir_plan_plain_symbol(const uir_plan *plan, uint32_t expression);

/* Row of host_ops.def of the host operator; NONE if unknown. */
uint32_t uir_plan_find_host_op(const char *name);
/* Checks the step's operands and results against its operator, which must be known. Returns the problem, for a message,
 * and its operand or result `*out_at`; NULL: valid. */
const char *uir_plan_check_host_step(const uir_plan *plan, const uir_plan_step *step, bool *out_result,
                                     uint32_t *out_at);

#endif
