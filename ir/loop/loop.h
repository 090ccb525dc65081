/* The loop AST: the computation of a group as loops over blocks (after the AST IR of CINN, PaddlePaddle's compiler).
 *
 * In: parsed from text or built by lowering. Out: shaped by schedules, verified, interpreted, turned into iGraphs.
 *
 *   func @row_sum {
 *     dim M, N in 1..4096
 *     tensor X : f32 [M, N] in 0
 *     tensor Y : f32 [M] out 0
 *     monoid sum (a : f32) {
 *       identity f32(0)
 *       update (x : f32) add(a, x)
 *       combine (b : f32) add(a, b)
 *       finish a
 *     }
 *     parallel for (i, 0, M) {
 *       ScheduleBlock(Y_init) { vi = axis.bind(i) : M   init sum (Y[vi]) }
 *       serial for (k, 0, N) {
 *         ScheduleBlock(Y) { vi, vk = axis.bind(i, k) : M, reduce N   update sum (Y[vi]) with (X[vi, vk]) }
 *       }
 *     }
 *   }
 *
 * Expressions and indices use iteration variables (vi, vk) and sizes only. Loop variables occur only in axis.bind
 * values and in `where` guards, so that split and fuse change nothing else. A reduction has a monoid: a tuple of state
 * values with an identity, an update by one element, a combination of two states and a finish. Two-step and streaming
 * forms follow from it. `commutative` after its state declares that the order of elements does not matter; it is not
 * checked.
 *
 * Tile sizes and the tiling function have the syntax of an iGraph (docs/igraph.md), and are copied to it:
 *
 *     tile tm in 1..64 mult 4
 *     candidate tm = 32 when M >= 32 cost 40 units ceildiv(M, 32)
 *     require tm*N*4 <= 65536
 *
 * Iteration variables of several blocks may share an axis: its number is behind their domains:
 *
 *     vi, vk = axis.bind(i, k) : M along 1, reduce N along 2
 *
 * The axes of a contraction have a class, their role in mma:
 *
 *     vi, vj, vk = axis.bind(i, j, k) : M along 1 is m, N along 2 is n, reduce K along 3 is k
 *     as contraction
 *
 * A tensor may have a layout, as a pointer of an iGraph, and may be the same in every run:
 *
 *     tensor W : f32 [K, N]:(K, (32, ceildiv(N, 32))):(32, (1, K*32)) in 1 constant
 *
 * A block may read an iteration variable from data, declare its role for later stages, have a mark, and set the
 * fill of reads outside:
 *
 *     ScheduleBlock(Y) {
 *       vb, vs = axis.bind(b, s) : B, S
 *       vt = axis.read(Ids[vb, vs]) : V clamp
 *       as contraction
 *       annotate "mine"
 *       Y[vb, vs] = add(W[vt], X[vb, vs - 1] fill 0)
 *     }
 *
 * (or wrap, or skip: every access with vt is outside if Ids is outside 0..V-1.) A read outside without `fill` is an
 * error; a store at a skipped index is dropped. */
#ifndef UIR_IR_LOOP_H
#define UIR_IR_LOOP_H

#include "ir/graph/graph.h"
#include "ir/machine/tiling.h"

#define UIR_LOOP_MAX_RANK  8
#define UIR_LOOP_MAX_ITERS 16
#define UIR_LOOP_MAX_STATE 4
#define UIR_LOOP_NONE      UINT32_MAX

typedef enum uir_loop_kind {
#define UIR_LOOP_KIND(constant, word) UIR_LOOP_##constant,
#include "ir/loop/loop.def"
    UIR_LOOP_KIND_COUNT
} uir_loop_kind;
typedef enum uir_loop_statement_kind {
#define UIR_LOOP_STATEMENT(constant, word, children, place) UIR_LOOP_STATEMENT_##constant,
#include "ir/loop/loop.def"
    UIR_LOOP_STATEMENT_COUNT
} uir_loop_statement_kind;

/* Roles of a block for later stages: bits of its `uses`. */
typedef enum uir_loop_use {
#define UIR_LOOP_USE(constant, word) UIR_LOOP_USE_##constant,
#include "ir/loop/loop.def"
    UIR_LOOP_USE_COUNT
} uir_loop_use;

/* The role of an axis in a contraction: batch, row, column or reduction axis, or none. */
typedef enum uir_loop_class {
    UIR_LOOP_CLASS_NONE,
#define UIR_LOOP_CLASS(constant, word) UIR_LOOP_CLASS_##constant,
#include "ir/loop/loop.def"
    UIR_LOOP_CLASS_COUNT
} uir_loop_class;

typedef struct uir_loop_statement_row {
    const char *word;
    bool children;
    char place;
} uir_loop_statement_row;
const char *uir_loop_kind_word(uir_loop_kind kind);
const char *uir_loop_use_word(uir_loop_use use);
const char *uir_loop_class_word(uir_loop_class of);
const uir_loop_statement_row *uir_loop_statement_get_row(uir_loop_statement_kind kind);

typedef enum uir_loop_role { UIR_LOOP_ROLE_IN, UIR_LOOP_ROLE_OUT, UIR_LOOP_ROLE_TEMP } uir_loop_role;

typedef struct uir_loop_tensor {
    const char *name;
    uir_dtype dtype;
    uint32_t rank;
    uir_dim extents[UIR_LOOP_MAX_RANK];
    const uir_layout *layout; /* the kernel's, over sizes and tiles; no effect on the semantics; NULL: row-major */
    uir_loop_role role;
    uint32_t index;    /* IN, OUT: argument number */
    bool constant;     /* IN: the same in every run, so that it may be packed ahead */
    const char *space; /* TEMP: name of a space of the device's description; NULL: its memory, as for IN and OUT */
} uir_loop_tensor;

typedef enum uir_loop_expression_kind {
    UIR_LOOP_CONSTANT, /* f32(1.5) */
    UIR_LOOP_INDEX,    /* index(vi*4 + 1): an i64 */
    UIR_LOOP_LOAD,     /* X[vi, vj] */
    UIR_LOOP_CALL,     /* an elementwise primitive: add(a, b), cast.f16(x) */
    UIR_LOOP_PARAMETER /* of a monoid */
} uir_loop_expression_kind;

typedef struct uir_loop_access {
    uint32_t tensor;
    uir_dim indices[UIR_LOOP_MAX_RANK];
} uir_loop_access;

typedef struct uir_loop_expression {
    uir_loop_expression_kind kind;
    uir_dtype dtype;      /* of its value */
    double real;          /* CONSTANT of a float */
    int64_t integer;      /* CONSTANT of an integer or bool; PARAMETER: number (state first, then the others) */
    uir_dim index;        /* INDEX */
    uir_loop_access load; /* LOAD */
    bool has_fill;        /* LOAD: reads outside the extents are `fill` */
    double fill;
    uir_op op;             /* CALL */
    uint32_t arguments[3]; /* CALL: expressions */
    uint32_t argument_count;
    bool overflows; /* CALL of cast, cast.f8e5m2.overflow(x): too large is infinity or NaN, not the greatest */
} uir_loop_expression;

/* Parameters 0..state-1 are the state; update's elements and combine's other state follow. */
typedef struct uir_loop_monoid {
    const char *name;
    bool commutative;
    uint32_t state_count, element_count, finish_count;
    uir_dtype state_dtypes[UIR_LOOP_MAX_STATE], element_dtypes[UIR_LOOP_MAX_STATE];
    const char *state_names[UIR_LOOP_MAX_STATE], *element_names[UIR_LOOP_MAX_STATE], *other_names[UIR_LOOP_MAX_STATE];
    uint32_t identity[UIR_LOOP_MAX_STATE], update[UIR_LOOP_MAX_STATE], combine[UIR_LOOP_MAX_STATE],
        finish[UIR_LOOP_MAX_STATE];
} uir_loop_monoid;

typedef struct uir_loop_iter {
    uir_symbol symbol;
    uint32_t axis;       /* number from 1 on of the axis that it shares with other variables; 0: none */
    uir_loop_class part; /* of a block used as a contraction */
    const char *name;
    bool reduce;
    bool data;      /* axis.read, after all bound ones: `from`'s element, brought into the domain by `mode` */
    uir_dim extent; /* domain 0..extent-1 */
    uir_dim value;  /* axis.bind: over loop variables and sizes */
    uir_index_mode mode;
    const uir_loop_access *from; /* data: over earlier iteration variables; copies of the variable share it */
} uir_loop_iter;

typedef struct uir_loop_statement {
    uir_loop_statement_kind kind;
    uint32_t first_child, next; /* UIR_LOOP_NONE: none */
    const char *name;           /* FOR: loop variable; BLOCK: its name; FOR BOUND: see bound_to */
    /* FOR */
    uir_loop_kind loop_kind;
    uir_symbol symbol;
    uir_dim min, extent;
    const char *bound_to;
    /* BLOCK */
    uir_loop_iter iters[UIR_LOOP_MAX_ITERS];
    uint32_t iter_count;
    const char *const *annotations;
    uint32_t annotation_count;
    uint32_t uses; /* bit per uir_loop_use */
    /* BLOCK: `where`, over loop variables; IF: over loop variables outside a block */
    const uir_condition *conditions;
    uint32_t condition_count;
    /* STORE and the monoid's statements */
    uint32_t monoid;
    uir_loop_access targets[UIR_LOOP_MAX_STATE];
    uint32_t target_count;
    uint32_t values[UIR_LOOP_MAX_STATE]; /* expressions */
    uint32_t value_count;
    uint32_t line;
} uir_loop_statement;

typedef struct uir_loop_size {
    const char *name;
    uir_symbol symbol;
} uir_loop_size;

typedef struct uir_loop_function {
    uir_arena arena;
    uir_allocator allocator;
    uir_dims *dims; /* owned */
    const char *name;
    const char *file;
    uir_vector(uir_loop_size) sizes;
    uir_vector(uir_loop_size) tiles;
    uir_vector(uir_icandidate) candidates; /* guards are relations only */
    uir_vector(uir_condition) requires_;
    uir_vector(uir_loop_tensor) tensors;
    uir_vector(uir_loop_monoid) monoids;
    uir_vector(uir_loop_expression) expressions;
    uir_vector(uir_loop_statement) statements;
    uint32_t first; /* top statement list; statements that it does not reach are removed ones */
} uir_loop_function;

/* The operation op of a monoid of one state whose update is op(state, element). UIR_OP_NONE: it has another form. */
uir_op uir_loop_monoid_get_op(const uir_loop_function *function, const uir_loop_monoid *monoid);

uir_status uir_loop_function_create(const uir_allocator *allocator, const char *name, uir_loop_function **out_function);
void uir_loop_function_destroy(uir_loop_function *function);

uir_status uir_loop_parse(const uir_allocator *allocator, const char *text, size_t length, const char *file,
                          uir_diagnostics *diagnostics, uir_loop_function **out_function);
/* The same for a part of a file that begins at line `line`. */
uir_status uir_loop_parse_part(const uir_allocator *allocator, const char *text, size_t length, uint32_t line,
                               const char *file, uir_diagnostics *diagnostics, uir_loop_function **out_function);
void uir_loop_print(const uir_loop_function *function, uir_text *text);
/* Print one declaration, by its number, on a line. */
void uir_loop_print_tile(const uir_loop_function *function, uint32_t tile, uir_text *text);
void uir_loop_print_require(const uir_loop_function *function, uint32_t require, uir_text *text);
void uir_loop_print_candidate(const uir_loop_function *function, uint32_t candidate, uir_text *text);
/* Copies the function: the statements that its top list reaches, with symbols in the order of first use in its text.
 * INTERNAL if a symbol is used outside its scope. */
uir_status uir_loop_clone(const uir_loop_function *function, uir_loop_function **out_function);

/* The words of uir_index_mode: "clamp". */
const char *uir_loop_mode_word(uir_index_mode mode);

/* Reports all errors: dtypes, arity, scopes of variables, reduce iteration variables in stores, bind values outside
 * their domain, accesses not proved inside, reads before a write, outputs without a store. */
uir_status uir_loop_verify(const uir_loop_function *function, uir_diagnostics *diagnostics);

/* Whether the expression, or a statement of the list (axis.read included), loads from the tensor. Only reachable
 * statements count: schedules leave removed statements and expressions in the arrays. */
bool uir_loop_expression_reads(const uir_loop_function *function, uint32_t expression, uint32_t tensor);
bool uir_loop_list_reads(const uir_loop_function *function, uint32_t first, uint32_t tensor);
/* Whether a statement of the block loads from the tensor. */
bool uir_loop_block_reads(const uir_loop_function *function, uint32_t block, uint32_t tensor);

/* Whether the block has the use; the number of such blocks in the list and below. */
bool uir_loop_is_used_as(const uir_loop_function *function, uint32_t block, uir_loop_use use);
uint32_t uir_loop_count_used_as(const uir_loop_function *function, uint32_t first, uir_loop_use use);

/* The expression with symbols replaced (`replacements[symbol.id]`, NONE: kept). */
uir_status uir_loop_substitute(uir_loop_function *function, uint32_t expression, const uir_dim *replacements,
                               uint32_t count, uint32_t *out_expression);
/* The expression with each load of the tensor replaced by `value`, which is stored there at `indices`, all of them
 * symbols. UNSUPPORTED if an index is not a symbol or a load has a fill. */
uir_status uir_loop_inline(uir_loop_function *function, uint32_t expression, uint32_t tensor, uint32_t value,
                           const uir_dim *indices, uint32_t *out_expression);

/* Whether both run along one axis in the same role: both as reduction axes, or neither. */
static inline bool uir_loop_iter_is_same(const uir_loop_iter *a, const uir_loop_iter *b) {
    return a->axis && a->axis == b->axis && a->reduce == b->reduce;
}

/* The word, instead of a space's name, for memory that every unit reaches. */
#define UIR_LOOP_MEMORY "memory"

/* Evaluates the tiling function: sizes in declaration order -> tiles in declaration order, by the cheapest candidate
 * whose guard and the requires hold, the first of equals. NOT_FOUND if none does. A function without tiles only needs
 * its requires. */
uir_status uir_loop_choose_tiles(const uir_loop_function *function, const int64_t *sizes, int64_t *out_tiles,
                                 uir_diagnostics *diagnostics);

/* The interpreter, which defines the semantics. `sizes` are in declaration order; `tensors` are row-major data of every
 * IN and OUT tensor in declaration order. An access outside the extents, or a read of an element never written, is an
 * error that names block and element. `cancel` (or NULL) is polled for every instance of a block: CANCELLED. */
uir_status uir_loop_interpret(const uir_loop_function *function, const int64_t *sizes, void *const *tensors,
                              const volatile bool *cancel, uir_diagnostics *diagnostics);
/* The same with the caller's tiles, in declaration order, which must satisfy their declaration. */
uir_status uir_loop_interpret_tiled(const uir_loop_function *function, const int64_t *sizes, const int64_t *tiles,
                                    void *const *tensors, const volatile bool *cancel, uir_diagnostics *diagnostics);

#endif
