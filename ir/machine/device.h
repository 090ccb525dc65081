/* The device description: all that a kernel may assume of its machine.
 *
 * In: filled by a backend's target folder (a CPU's from the machine it runs on, others as data). Out: read by the
 * iGraph's parser (names of spaces, unit kinds and pipes; capacities), verifier (legality), tactics and emitters. The
 * IR knows a machine only through this struct. */
#ifndef UIR_IR_DEVICE_H
#define UIR_IR_DEVICE_H

#include "base/dtype.h"
#include "ir/machine/iops.h"
#include "ir/machine/layout.h"

#define UIR_MACHINE_MAX_SPACES     8
#define UIR_MACHINE_MAX_UNIT_KINDS 4
#define UIR_MACHINE_MAX_PIPES      8

/* The units that share one instance of a space. */
typedef enum uir_scope { UIR_SCOPE_UNIT, UIR_SCOPE_GROUP, UIR_SCOPE_DEVICE } uir_scope;

/* Roles of a space, which may have several. A tactic looks for a role, never for a name. */
enum {
    UIR_SPACE_MEMORY = 1u << 0,      /* the device's own: operands and results of kernels */
    UIR_SPACE_SCRATCH = 1u << 1,     /* on the chip, for a unit's buffers */
    UIR_SPACE_REGISTERS = 1u << 2,   /* of single elements: extents of pointers must be compile-time constants */
    UIR_SPACE_LEFT = 1u << 3,        /* mma reads operand A there */
    UIR_SPACE_RIGHT = 1u << 4,       /* mma reads operand B there */
    UIR_SPACE_ACCUMULATORS = 1u << 5 /* mma keeps accumulators there */
};

/* Blocked layout of a space's matrices: blocks in row or column order, the elements of each in row or column order. A
 * block's contiguous side (of rows: its width, of columns: its height) has `block_bytes`, else `block_elements`; its
 * other side has `block_lines`. */
typedef enum uir_space_blocks {
    UIR_BLOCKS_NONE,
    UIR_BLOCKS_ROWS_OF_ROWS,
    UIR_BLOCKS_ROWS_OF_COLUMNS,
    UIR_BLOCKS_COLUMNS_OF_ROWS,
    UIR_BLOCKS_COLUMNS_OF_COLUMNS
} uir_space_blocks;

typedef struct uir_space {
    const char *name; /* "dram", "sram", "reg", "ub", "l1", "l0a" ... */
    uint32_t roles;   /* UIR_SPACE_* */
    uir_scope scope;
    uint64_t capacity;    /* bytes available to one kernel per instance; 0: not bounded here (dram) */
    uint32_t alignment;   /* bytes; every buffer is rounded up to it. Of memory: rows are moved in multiples of it */
    bool is_cache;        /* a hardware cache backs it: a move into it with an unchanged layout may be an alias */
    uint32_t unit_kinds;  /* bit per unit kind that can reach it */
    uint64_t working_set; /* a size that a kernel should keep to, beyond which it is slower: a cache's, or one that
                           * leaves room for a core's other residents; 0: scratch by residents, or the capacity */
    uint32_t bytes_per_cycle; /* moved by a unit into or out of it; 0: unknown */
    uir_space_blocks blocks;
    uint32_t block_lines, block_bytes, block_elements;
} uir_space;

/* A legal form of an iOp. The verifier uses the first row with fitting name, dtypes, spaces and unit kinds whose
 * constraints hold. */
typedef struct uir_legal_row {
    const char *iop;         /* "binary.add", "unary.*", "mma", "move", "*": names of iops.def, '*' matches the rest */
    uint32_t dtypes;         /* bit per uir_dtype of the op's (first) dtype */
    uint32_t spaces_result;  /* bit per space */
    uint32_t spaces_operand; /* bit per space, each operand */
    uint32_t unit_kinds;     /* bit per unit kind */
    int32_t pipe;            /* index into pipes, or -1 */
    uint32_t constraints;    /* UIR_LEGAL_* */
    uint32_t dtypes_other;   /* cast: bit per dtype cast to; mma: bit per dtype of a and b; 0: those in `dtypes` */
    uint32_t dtypes_right;   /* mma: bit per dtype of b; 0: as of a */
    /* Cost in cycles of its pipe; 0: unknown. `cycles` per vector of the longest operand, for mma per block; a move may
     * have `bytes_per_cycle` instead, and an iOp that handles single elements `cycles_per_element`. `latency` is added
     * per machine instruction: an iOp of more than `repeats` vectors or blocks is several of these (0: always one). */
    uint32_t cycles, cycles_per_element, repeats, latency, bytes_per_cycle;
} uir_legal_row;

enum {
    UIR_LEGAL_LAST_CONTIGUOUS = 1u << 0, /* last dim of every operand has stride 1 */
    UIR_LEGAL_BLOCK_BROADCAST = 1u << 1, /* a broadcast operand must be a 32-byte block (`block`) or one whole row */
    UIR_LEGAL_REDUCE_SCRATCH = 1u << 2,  /* row reductions name a scratch slice */
    UIR_LEGAL_FRACTAL = 1u << 3,         /* operands on the chip are in the blocks of their spaces */
    UIR_LEGAL_SAME_SPACE = 1u << 4,      /* all operands in one space */
    UIR_LEGAL_NO_BROADCAST = 1u << 5,
    UIR_LEGAL_EQUAL_OPERANDS = 1u << 6, /* mma: a and b have one dtype */
    UIR_LEGAL_SAME_FORMAT = 1u << 7,    /* two operands on the chip have the same slice of the same layout, which keeps
                                         * the order */
    UIR_LEGAL_IN_PIECES = 1u << 8,      /* rows on the chip consist of contiguous pieces, each of whole alignments */
    UIR_LEGAL_TRANSPOSES = 1u << 9,     /* a move: rows of the operand are columns of the result; both begin aligned */
    UIR_LEGAL_FEW_ROWS = 1u << 10,      /* mma: a block may have fewer rows, and costs less then; forbids nothing */
};

typedef struct uir_machine {
    const char *name;   /* after `on`: "cpu" */
    const char *chip;   /* "generic", "avx512", "910B1", "sm_90" */
    bool is_first_chip; /* of its name: the default of a text that names no chip */
    uir_space spaces[UIR_MACHINE_MAX_SPACES];
    uint32_t space_count;
    const char *unit_kinds[UIR_MACHINE_MAX_UNIT_KINDS]; /* "core"; "cube", "vector"; "warp" */
    uint32_t unit_kind_count;
    const char *pipes[UIR_MACHINE_MAX_PIPES]; /* for sync.<pipe>.<pipe>; none: program order suffices */
    uint32_t pipe_count;
    uint32_t flag_count;   /* of each pair of pipes, for waits; 0: unlimited */
    uint32_t signal_count; /* of a group, for waits of one unit kind for another; 0: unlimited */
    uint32_t unit_counts[UIR_MACHINE_MAX_UNIT_KINDS]; /* of a group; 0: units_per_group of any kind */
    uint32_t units_per_group;                         /* maximum; 1: a group is one unit */
    uint32_t group_count;                             /* of the machine (cores); 0: unknown */
    uint32_t thread_count;   /* that execute one unit together: a work-group's, a thread block's; 0: one */
    uint32_t resident_count; /* groups that a core executes by turns, each with memory of its own; 0: one */
    bool has_device_barrier; /* phases of one kernel are possible */
    const uir_legal_row *legal;
    uint32_t legal_count;
    uint32_t mma_m, mma_n, mma_k; /* preferred register tile or hardware block */
    uint32_t byte_group; /* 8-bit operands of a product: neighbours along K that one instruction sums; 0: none */
    uint32_t vector_bytes;
    uint32_t registers, loads_per_cycle, multiply_adds_per_cycle; /* of a unit, in vectors; 0: unknown */
    uint32_t multiply_add_latency;                                /* cycles until the result can be added to */
    uint32_t unit_cycles;                                         /* to begin a unit of work; 0: unknown */
    uint32_t conflict_bytes;  /* rows at multiples of this distance conflict in a cache; 0: none do */
    uint64_t cache_bytes[3];  /* L1 data, L2, last level; per core, per core, shared; 0: none. Set by a processor's
                               * backend, not by a text */
    double cycles_per_second; /* of its units; 0: unknown */
    double peak_flops, peak_bytes_per_second; /* 0: unknown; f32, whole device: for models of time */
} uir_machine;

/* Index of a space / unit kind / pipe by name; -1 if absent. */
int uir_machine_find_space(const uir_machine *machine, const char *name, size_t length);
int uir_machine_find_unit_kind(const uir_machine *machine, const char *name, size_t length);
int uir_machine_find_pipe(const uir_machine *machine, const char *name, size_t length);
/* The first space with the role (UIR_SPACE_*): descriptions name spaces near the units first, so the nearest; -1 if
 * none has it. */
int uir_machine_find_role(const uir_machine *machine, uint32_t role);
/* The first scratch space, unless a cache backs it: instructions need their operands moved there. -1 if none. */
int uir_machine_find_scratch(const uir_machine *machine);
/* Threads that execute one unit, at least 1. */
uint32_t uir_machine_threads(const uir_machine *machine);
/* Bytes of a space that a kernel should keep to: its working set; else its capacity, of scratch divided by the
 * residents of a core. */
uint64_t uir_machine_working_set(const uir_machine *machine, int space);
/* Whether a row's name ("unary.*", "*") matches an instruction's. */
bool uir_legal_name_matches(const char *pattern, const char *iop);
/* The first fitting row from `from` on; -1 if none. `spaces_operand`: bit per space of an operand; `other`: the dtype
 * cast to, or of mma's A or B; NONE for other iOps. */
int uir_machine_find_legal(const uir_machine *machine, const char *iop, uir_dtype dtype, uir_dtype other,
                           uint32_t space_result, uint32_t spaces_operand, uint32_t unit_kind, int from);
/* Whether some unit moves elements of the dtype: without that, no kernel of the machine has them. */
bool uir_machine_has_dtype(const uir_machine *machine, uir_dtype dtype);
/* Whether mma multiplies operands of this dtype, A or (`is_right`) B, into accumulators of dtype `sums`, each in its
 * space. */
bool uir_machine_multiplies(const uir_machine *machine, uir_dtype sums, uir_dtype factor, bool is_right);
/* The row that multiplies A of dtype `left` by B of dtype `right`; NULL: none. */
const uir_legal_row *uir_machine_find_pair(const uir_machine *machine, uir_dtype sums, uir_dtype left, uir_dtype right);
static inline bool uir_machine_multiplies_pair(const uir_machine *machine, uir_dtype sums, uir_dtype left,
                                               uir_dtype right) {
    return uir_machine_find_pair(machine, sums, left, right) != NULL;
}
/* Whether instructions on this space require rows that begin at multiples of its alignment. */
bool uir_machine_wants_rows(const uir_machine *machine, int space);
/* Rows and columns of a block of the space's format; false: it has no format for the dtype. */
bool uir_space_get_block(const uir_space *space, uir_dtype dtype, int64_t *out_rows, int64_t *out_columns);
/* The layout of a matrix of these extents in the blocks of a space that has some; its last blocks may be partial. */
void uir_space_make_layout(const uir_space *space, uir_dtype dtype, const uir_dim extents[2], uir_dims *dims,
                           uir_layout *out_layout);
const char *uir_space_blocks_name(uir_space_blocks blocks); /* "rows_of_columns" */
/* Units of cost models, at least 1: f32 elements of a vector, and vectors multiplied and added per cycle. */
int64_t uir_machine_lanes(const uir_machine *machine);
int64_t uir_machine_multiply_adds(const uir_machine *machine);
/* The dtypes of mma's operand B, a bit each. */
uint32_t uir_legal_row_get_right(const uir_legal_row *row);
/* The row by which any unit kind moves elements between two spaces, or multiplies; NULL: none. */
const uir_legal_row *uir_machine_find_move(const uir_machine *machine, uir_dtype dtype, int from, int to);
const uir_legal_row *uir_machine_find_mma(const uir_machine *machine, uir_dtype sums, uir_dtype factor);
/* Cycles of `steps` vectors, or blocks, by the row. */
double uir_legal_row_cycles(const uir_legal_row *row, double steps);
/* Cycles of a move of `elements` and `bytes`: by its row (NULL: no row), else by the slower of its spaces, else a
 * vector per cycle. */
double uir_machine_move_cycles(const uir_machine *machine, const uir_legal_row *row, int from, int to, double elements,
                               double bytes);
/* The row by which any unit kind executes an instruction of one dtype within a space; NULL: none. */
const uir_legal_row *uir_machine_find_within(const uir_machine *machine, const char *iop, uir_dtype dtype, int space);
/* Units of a kind that the whole device executes at once, all residents of its cores; 0: unknown. */
int64_t uir_machine_count_units(const uir_machine *machine, uint32_t kind);
/* The shortest path of moves from one space to another: its length, and the space that each move ends in, the last one
 * `to`. 0 within one space; -1 if no path exists. */
int uir_machine_find_path(const uir_machine *machine, uir_dtype dtype, int from, int to,
                          int out_spaces[UIR_MACHINE_MAX_SPACES]);

/* The devices that a parser knows. */
typedef struct uir_machine_list {
    const uir_machine *const *devices;
    uint32_t count;
} uir_machine_list;

#endif
