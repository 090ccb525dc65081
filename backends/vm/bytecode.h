/* The VM's bytecode: its decoded form and file format.
 *
 * Format: "UIRVM" 0, a u16 version, then the tables below in order; each table is a u32 count and its records; integers
 * are little endian. Encoder (encode.c) and loader (load.c) use the same lists of a record's fields, the `vm_*_fields`
 * macros of this file. */
#ifndef UIR_BACKENDS_VM_BYTECODE_H
#define UIR_BACKENDS_VM_BYTECODE_H

#include "backends/vm/vm.h"
#include "base/dims/dim.h"
#include "base/dtype.h"

#define VM_MAGIC   "UIRVM"
#define VM_VERSION 5
#define VM_NONE    UINT32_MAX

enum {
    VM_MAX_RANK = UIR_IGRAPH_MAX_RANK,
    VM_MAX_MODES = UIR_IGRAPH_MAX_MODES,
    VM_MAX_STACK = 32,
    VM_MAX_DEPTH = 64,
    VM_MAX_RECORDS = 1 << 20
};

/* A postfix step: a uir_dim_kind; CONST pushes value, SYMBOL pushes symbol `value`, the others take two. */
typedef struct vm_step {
    uint32_t kind;
    int64_t value;
} vm_step;
typedef struct vm_expression {
    uint32_t first, count; /* steps */
} vm_expression;

typedef struct vm_symbol {
    uint32_t kind; /* uir_isymbol_kind */
    int64_t min, max, multiple_of;
    uint32_t definition; /* expression or VM_NONE */
} vm_symbol;

typedef struct vm_condition {
    uint32_t relation, left, right;
} vm_condition;

typedef struct vm_mode {
    uint32_t size, stride; /* expressions */
} vm_mode;

typedef struct vm_pointer {
    uint32_t role, dtype, rank, instances, by_loop, over, span; /* over: VM_NONE, or the pointer it shares with */
    uint32_t extents[VM_MAX_RANK];
    uint32_t mode_counts[VM_MAX_RANK];
    vm_mode modes[VM_MAX_RANK][VM_MAX_MODES];
} vm_pointer;

typedef struct vm_slice {
    uint32_t pointer, window, rank, axis_count, has_fill, block;
    uint64_t fill;                /* bits of a double */
    uint32_t starts[VM_MAX_RANK]; /* per pointer dim */
    uint32_t counts[VM_MAX_RANK];
    uint32_t axis_symbols[VM_MAX_RANK], axis_extents[VM_MAX_RANK];
} vm_slice;

typedef struct vm_atom {
    uint32_t kind, negated, loop, relation, left, right;
} vm_atom;

typedef struct vm_instruction {
    uint32_t code, dtype, dtype_b, dtype_c, axis, flags, slice_count, start, immediate_mask;
    uint32_t slices[UIR_IOP_MAX_SLICES];
    uint64_t immediate, immediates[3]; /* bits of doubles */
} vm_instruction;
enum { VM_FLAG_ACCUMULATE = 1, VM_FLAG_EXCLUSIVE = 2, VM_FLAG_SATURATE = 4 };

typedef struct vm_item {
    uint32_t kind, first_atom, atom_count, symbol, extent, named_ends, instruction, slice, mode, limit;
    uint32_t first_child, next; /* after this item */
} vm_item;

typedef struct vm_phase {
    uint32_t axis_count, first_item;
    uint32_t symbols[4], extents[4];
} vm_phase;

/* The tables in file order: VM_TABLE(record type, field of the kernel). */
#define VM_TABLES(VM_TABLE)                                                                                            \
    VM_TABLE(vm_step, steps)                                                                                           \
    VM_TABLE(vm_expression, expressions)                                                                               \
    VM_TABLE(vm_symbol, symbols)                                                                                       \
    VM_TABLE(vm_condition, requires_)                                                                                  \
    VM_TABLE(vm_pointer, pointers)                                                                                     \
    VM_TABLE(vm_slice, slices)                                                                                         \
    VM_TABLE(vm_atom, atoms)                                                                                           \
    VM_TABLE(vm_instruction, instructions)                                                                             \
    VM_TABLE(vm_item, items)                                                                                           \
    VM_TABLE(vm_phase, phases)

/* The fields of each record in file order. W: a u32, Q: a 64-bit integer; an earlier field is the count of an array.
 * The same list writes and reads. */
#define vm_step_fields(W, Q, r)                                                                                        \
    W(r->kind)                                                                                                         \
    Q(r->value)
#define vm_expression_fields(W, Q, r)                                                                                  \
    W(r->first)                                                                                                        \
    W(r->count)
#define vm_symbol_fields(W, Q, r)                                                                                      \
    W(r->kind)                                                                                                         \
    Q(r->min)                                                                                                          \
    Q(r->max)                                                                                                          \
    Q(r->multiple_of)                                                                                                  \
    W(r->definition)
#define vm_condition_fields(W, Q, r)                                                                                   \
    W(r->relation)                                                                                                     \
    W(r->left)                                                                                                         \
    W(r->right)
#define vm_pointer_fields(W, Q, r)                                                                                     \
    W(r->role)                                                                                                         \
    W(r->dtype)                                                                                                        \
    W(r->rank)                                                                                                         \
    W(r->instances)                                                                                                    \
    W(r->by_loop)                                                                                                      \
    W(r->over)                                                                                                         \
    W(r->span)                                                                                                         \
    for (uint32_t d = 0; d < r->rank && d < VM_MAX_RANK; d++) {                                                        \
        W(r->extents[d])                                                                                               \
        W(r->mode_counts[d])                                                                                           \
        for (uint32_t m = 0; m < r->mode_counts[d] && m < VM_MAX_MODES; m++) {                                         \
            W(r->modes[d][m].size)                                                                                     \
            W(r->modes[d][m].stride)                                                                                   \
        }                                                                                                              \
    }
#define vm_slice_fields(W, Q, r)                                                                                       \
    W(r->pointer)                                                                                                      \
    W(r->window)                                                                                                       \
    W(r->rank)                                                                                                         \
    W(r->axis_count)                                                                                                   \
    W(r->has_fill)                                                                                                     \
    W(r->block)                                                                                                        \
    Q(r->fill)                                                                                                         \
    for (uint32_t d = 0; d < VM_MAX_RANK; d++) W(r->starts[d])                                                         \
    for (uint32_t d = 0; d < r->rank && d < VM_MAX_RANK; d++) W(r->counts[d])                                          \
    for (uint32_t a = 0; a < r->axis_count && a < VM_MAX_RANK; a++) {                                                  \
        W(r->axis_symbols[a])                                                                                          \
        W(r->axis_extents[a])                                                                                          \
    }
#define vm_atom_fields(W, Q, r)                                                                                        \
    W(r->kind)                                                                                                         \
    W(r->negated)                                                                                                      \
    W(r->loop)                                                                                                         \
    W(r->relation)                                                                                                     \
    W(r->left)                                                                                                         \
    W(r->right)
#define vm_instruction_fields(W, Q, r)                                                                                 \
    W(r->code)                                                                                                         \
    W(r->dtype)                                                                                                        \
    W(r->dtype_b)                                                                                                      \
    W(r->dtype_c)                                                                                                      \
    W(r->axis)                                                                                                         \
    W(r->flags)                                                                                                        \
    W(r->slice_count)                                                                                                  \
    W(r->start)                                                                                                        \
    W(r->immediate_mask)                                                                                               \
    Q(r->immediate)                                                                                                    \
    for (uint32_t i = 0; i < 3; i++) Q(r->immediates[i])                                                               \
    for (uint32_t i = 0; i < r->slice_count && i < UIR_IOP_MAX_SLICES; i++) W(r->slices[i])
#define vm_item_fields(W, Q, r)                                                                                        \
    W(r->kind)                                                                                                         \
    W(r->first_atom)                                                                                                   \
    W(r->atom_count)                                                                                                   \
    W(r->symbol)                                                                                                       \
    W(r->extent)                                                                                                       \
    W(r->named_ends)                                                                                                   \
    W(r->instruction)                                                                                                  \
    W(r->slice)                                                                                                        \
    W(r->mode)                                                                                                         \
    W(r->limit)                                                                                                        \
    W(r->first_child)                                                                                                  \
    W(r->next)
#define vm_phase_fields(W, Q, r)                                                                                       \
    W(r->axis_count)                                                                                                   \
    W(r->first_item)                                                                                                   \
    for (uint32_t a = 0; a < r->axis_count && a < 4; a++) {                                                            \
        W(r->symbols[a])                                                                                               \
        W(r->extents[a])                                                                                               \
    }

/* Properties of an expression, computed at load. */
typedef struct vm_traits {
    uint64_t depends; /* symbols in it that change in a run: a bit for each, see vm_symbol_bit */
    bool affine;      /* in those symbols together */
    bool uses_index;  /* uses a symbol read from data */
} vm_traits;

/* Symbols share 64 bits; a collision only causes a view to be bound again without need. */
static inline uint64_t vm_symbol_bit(uint32_t symbol) {
    return (uint64_t)1 << (symbol & 63);
}

struct uir_vm_kernel {
    uir_arena arena;
    uir_allocator allocator;
    const char *name;
    const char *isa;      /* of the routines that the format runs it by; NULL: the best */
    bool valid;           /* validated by load */
    vm_traits *traits;    /* per expression */
    vm_traits *placement; /* per slice: for all expressions of its address; affine: those of a window */
#define VM_TABLE(type, field)                                                                                          \
    type *field;                                                                                                       \
    uint32_t field##_count;
    VM_TABLES(VM_TABLE)
#undef VM_TABLE
};

#endif
