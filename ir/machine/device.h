/* The device description: what a kernel may assume of the machine it is written for.
 *
 * In: filled by a backend's target folder (a CPU's from the machine it runs on, others as data). Out: read by the
 * iGraph's parser (names of spaces, unit kinds and pipes; capacities), verifier (legality), tactics and emitters.
 * Nothing of one machine appears in the IR except through this struct. */
#ifndef UIR_IR_DEVICE_H
#define UIR_IR_DEVICE_H

#include "base/dtype.h"
#include "ir/machine/iops.h"
#include "ir/machine/layout.h"

#define UIR_DEVICE_MAX_SPACES     8
#define UIR_DEVICE_MAX_UNIT_KINDS 4
#define UIR_DEVICE_MAX_PIPES      8

/* Who shares one instance of a space. */
typedef enum uir_scope { UIR_SCOPE_UNIT, UIR_SCOPE_GROUP, UIR_SCOPE_DEVICE } uir_scope;

/* What a space is for; one may be for several things. A tactic asks for a role, never for a name. */
enum {
    UIR_SPACE_MEMORY = 1u << 0,      /* the device's own: what a kernel takes and gives lies there */
    UIR_SPACE_SCRATCH = 1u << 1,     /* on the chip, for what a unit keeps at hand */
    UIR_SPACE_REGISTERS = 1u << 2,   /* of single elements: extents of pointers must be compile-time constants */
    UIR_SPACE_LEFT = 1u << 3,        /* mma reads its first operand there */
    UIR_SPACE_RIGHT = 1u << 4,       /* and its second one */
    UIR_SPACE_ACCUMULATORS = 1u << 5 /* and sums there */
};

/* In what order matrices of a space lie in blocks: blocks one after the other along rows or columns, the elements of
 * each along rows or columns. Of the width of a row, or of the height of a column, a block has `block_bytes`, else
 * `block_elements`; the other way `block_lines`. */
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
    uint32_t alignment;   /* bytes; every buffer is rounded up to it. Of memory: a row is moved in multiples of it */
    bool is_cache;        /* a hardware cache backs it: a move into it with an unchanged layout may be an alias */
    uint32_t unit_kinds;  /* bit per unit kind that can reach it */
    uint64_t working_set; /* of a cache: what a kernel had better keep to, as more is slower; 0: the capacity */
    uint32_t bytes_per_cycle; /* that a unit moves out of it or into it; 0: not known */
    uir_space_blocks blocks;
    uint32_t block_lines, block_bytes, block_elements;
} uir_space;

/* What one iOp may do here. The verifier takes the first row whose name, dtypes, spaces and unit kinds fit and whose
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
    /* What it costs, in cycles of its pipe; 0: not known. `cycles` for each vector of its longest operand, of mma for
     * each block; of a move by its bytes instead; where elements are taken one at a time, for each of them. `latency`
     * more for each that is begun: what takes more than `repeats` of these is several (0: however many are one). */
    uint32_t cycles, cycles_per_element, repeats, latency, bytes_per_cycle;
} uir_legal_row;

enum {
    UIR_LEGAL_LAST_CONTIGUOUS = 1u << 0, /* last dim of every operand has stride 1 */
    UIR_LEGAL_BLOCK_BROADCAST = 1u << 1, /* a broadcast operand must be a 32-byte block (`block`) or one whole row */
    UIR_LEGAL_REDUCE_SCRATCH = 1u << 2,  /* row reductions name a scratch slice */
    UIR_LEGAL_FRACTAL = 1u << 3,         /* operands on the chip lie in the blocks of their spaces */
    UIR_LEGAL_SAME_SPACE = 1u << 4,      /* all operands in one space */
    UIR_LEGAL_NO_BROADCAST = 1u << 5,
    UIR_LEGAL_EQUAL_OPERANDS = 1u << 6, /* mma: a and b have one dtype */
    UIR_LEGAL_SAME_FORMAT = 1u << 7,    /* of two on the chip: the same slice of the same layout: no order is changed */
    UIR_LEGAL_IN_PIECES = 1u << 8,      /* rows on the chip lie in pieces of whole alignments, each side by side */
    UIR_LEGAL_TRANSPOSES = 1u << 9, /* a move whose operand's rows become the result's columns; both begin aligned */
};

typedef struct uir_device {
    const char *name;   /* after `on`: "cpu" */
    const char *chip;   /* "generic", "avx512", "910B1", "sm_90" */
    bool is_first_chip; /* of its name: what a text means that names no chip */
    uir_space spaces[UIR_DEVICE_MAX_SPACES];
    uint32_t space_count;
    const char *unit_kinds[UIR_DEVICE_MAX_UNIT_KINDS]; /* "core"; "cube", "vector"; "warp" */
    uint32_t unit_kind_count;
    const char *pipes[UIR_DEVICE_MAX_PIPES]; /* for sync.<pipe>.<pipe>; none where program order is enough */
    uint32_t pipe_count;
    uint32_t flag_count;   /* by which a pipe waits for another one: of each pair; 0: as many as are wanted */
    uint32_t signal_count; /* by which units of one kind wait for another kind: of a group; 0: likewise */
    uint32_t unit_counts[UIR_DEVICE_MAX_UNIT_KINDS]; /* of a group; 0: units_per_group, whatever their kind */
    uint32_t units_per_group;                        /* at most; 1: no groups beyond a unit */
    uint32_t group_count;                            /* of the machine (cores); 0 unknown */
    bool has_device_barrier;                         /* phases of one kernel are possible */
    const uir_legal_row *legal;
    uint32_t legal_count;
    uint32_t mma_m, mma_n, mma_k; /* preferred register tile or hardware block */
    uint32_t byte_group; /* factors of 8 bits: neighbours along k that an instruction sums at once; 0: none are */
    uint32_t vector_bytes;
    uint32_t registers, loads_per_cycle, multiply_adds_per_cycle; /* of a unit, in vectors; 0: not known */
    uint32_t multiply_add_latency;                                /* cycles until the result can be added to */
    uint32_t unit_cycles;     /* that it takes to begin with a unit of work; 0: not known */
    uint32_t conflict_bytes;  /* rows a multiple of it apart meet in a few places of a cache; 0: they do not */
    uint64_t cache_bytes[3];  /* L1 data, L2, last level; per core, per core, shared; 0 where absent: no description
                               * says it, a processor tells it of itself */
    double cycles_per_second; /* of its units; 0 unknown */
    double peak_flops, peak_bytes_per_second; /* 0 unknown; f32, whole device: for models of time */
} uir_device;

/* Index of a space / unit kind / pipe by name; -1 when absent. */
int uir_device_find_space(const uir_device *device, const char *name, size_t length);
int uir_device_find_unit_kind(const uir_device *device, const char *name, size_t length);
int uir_device_find_pipe(const uir_device *device, const char *name, size_t length);
/* The first space that is for this (UIR_SPACE_*): of several the one nearest to the units, which a description names
 * first; -1 when none is. */
int uir_device_find_role(const uir_device *device, uint32_t role);
/* The first scratch space, if no cache backs it: what instructions work on is brought there; -1. */
int uir_device_find_scratch(const uir_device *device);
/* Bytes of a space that a kernel had better keep to: its working set, else its capacity. */
uint64_t uir_device_working_set(const uir_device *device, int space);
/* Does a row's name ("unary.*", "*") match an instruction's? */
bool uir_legal_name_matches(const char *pattern, const char *iop);
/* The first row from `from` on that fits; -1 when none does. `spaces_operand`: bit per space that an operand lies in;
 * `other`: the dtype cast to, or mma's a or b; NONE elsewhere. */
int uir_device_find_legal(const uir_device *device, const char *iop, uir_dtype dtype, uir_dtype other,
                          uint32_t space_result, uint32_t spaces_operand, uint32_t unit_kind, int from);
/* Does a unit multiply matrices of these dtypes into sums of that one, each where mma wants it? */
bool uir_device_multiplies(const uir_device *device, uir_dtype sums, uir_dtype factor, bool is_right);
/* The row by which it multiplies a first factor of one by a second one of another; NULL: it does not. */
const uir_legal_row *uir_device_find_pair(const uir_device *device, uir_dtype sums, uir_dtype left, uir_dtype right);
static inline bool uir_device_multiplies_pair(const uir_device *device, uir_dtype sums, uir_dtype left,
                                              uir_dtype right) {
    return uir_device_find_pair(device, sums, left, right) != NULL;
}
/* Do instructions that work in this space want rows that begin at multiples of its alignment? */
bool uir_device_wants_rows(const uir_device *device, int space);
/* Elements of a block of the space's format, in rows and in columns; false: it has no format for them. */
bool uir_space_get_block(const uir_space *space, uir_dtype dtype, int64_t *out_rows, int64_t *out_columns);
/* The layout of a matrix of these extents in the blocks of a space that has some; its last blocks may be in part. */
void uir_space_make_layout(const uir_space *space, uir_dtype dtype, const uir_dim extents[2], uir_dims *dims,
                           uir_layout *out_layout);
const char *uir_space_blocks_name(uir_space_blocks blocks); /* "rows_of_columns" */
/* What a cost is counted in, at least 1, also where the description does not say: elements of f32 in a vector, and
 * vectors multiplied and added in a cycle. */
int64_t uir_device_lanes(const uir_device *device);
int64_t uir_device_multiply_adds(const uir_device *device);
/* The dtypes that mma's second factor may have, a bit each. */
uint32_t uir_legal_row_get_right(const uir_legal_row *row);
/* The row by which some kind of unit moves elements between two spaces, or multiplies; NULL: none does. */
const uir_legal_row *uir_device_find_move(const uir_device *device, uir_dtype dtype, int from, int to);
const uir_legal_row *uir_device_find_mma(const uir_device *device, uir_dtype sums, uir_dtype factor);
/* Until so many vectors, or blocks, are done by the row. */
double uir_legal_row_cycles(const uir_legal_row *row, double steps);
/* Of a move of so many elements, and bytes: by its row (NULL: nothing is known of it), else by the slower of its
 * spaces, else a vector a cycle. */
double uir_device_move_cycles(const uir_device *device, const uir_legal_row *row, int from, int to, double elements,
                              double bytes);
/* The row by which some kind of unit does an instruction of one dtype within a space; NULL: none does. */
const uir_legal_row *uir_device_find_within(const uir_device *device, const char *iop, uir_dtype dtype, int space);
/* Units of a kind that the device has in all; 0: the description does not say. */
int64_t uir_device_count_units(const uir_device *device, uint32_t kind);
/* The fewest moves that bring elements from one space to another: how many there are, and the spaces that they end in,
 * the last one `to`. 0 within one space; -1 where no moves lead there. */
int uir_device_find_path(const uir_device *device, uir_dtype dtype, int from, int to,
                         int out_spaces[UIR_DEVICE_MAX_SPACES]);

/* The devices that a parser may meet. */
typedef struct uir_device_list {
    const uir_device *const *devices;
    uint32_t count;
} uir_device_list;

#endif
