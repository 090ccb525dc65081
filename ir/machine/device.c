#include "ir/machine/device.h"

#include <string.h>

static bool name_is(const char *name, const char *text, size_t length) {
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

int uir_machine_find_space(const uir_machine *machine, const char *name, size_t length) {
    for (uint32_t i = 0; i < machine->space_count; i++)
        if (name_is(machine->spaces[i].name, name, length)) return (int)i;
    return -1;
}

int uir_machine_find_unit_kind(const uir_machine *machine, const char *name, size_t length) {
    for (uint32_t i = 0; i < machine->unit_kind_count; i++)
        if (name_is(machine->unit_kinds[i], name, length)) return (int)i;
    return -1;
}

int uir_machine_find_pipe(const uir_machine *machine, const char *name, size_t length) {
    for (uint32_t i = 0; i < machine->pipe_count; i++)
        if (name_is(machine->pipes[i], name, length)) return (int)i;
    return -1;
}

int uir_machine_find_role(const uir_machine *machine, uint32_t role) {
    for (uint32_t i = 0; i < machine->space_count; i++)
        if (machine->spaces[i].roles & role) return (int)i;
    return -1;
}

uint32_t uir_machine_threads(const uir_machine *machine) {
    return machine->thread_count ? machine->thread_count : 1;
}

static uint32_t count_residents(const uir_machine *machine) {
    return machine->resident_count ? machine->resident_count : 1;
}

uint64_t uir_machine_working_set(const uir_machine *machine, int space) {
    const uir_space *s = &machine->spaces[space];
    if (s->working_set) return s->working_set;
    return s->roles & UIR_SPACE_SCRATCH ? s->capacity / count_residents(machine) : s->capacity;
}

bool uir_legal_name_matches(const char *pattern, const char *iop) {
    const char *star = strchr(pattern, '*');
    if (!star) return strcmp(pattern, iop) == 0;
    return strncmp(pattern, iop, (size_t)(star - pattern)) == 0;
}

int uir_machine_find_legal(const uir_machine *machine, const char *iop, uir_dtype dtype, uir_dtype other,
                           uint32_t space_result, uint32_t spaces_operand, uint32_t unit_kind, int from) {
    for (uint32_t i = (uint32_t)from; i < machine->legal_count; i++) {
        const uir_legal_row *row = &machine->legal[i];
        uint32_t others = row->dtypes_other ? row->dtypes_other : row->dtypes;
        if (uir_legal_name_matches(row->iop, iop) && (row->dtypes >> dtype & 1) &&
            (other == UIR_DTYPE_NONE || (others >> other & 1)) && (row->spaces_result >> space_result & 1) &&
            (spaces_operand & ~row->spaces_operand) == 0 && (row->unit_kinds >> unit_kind & 1))
            return (int)i;
    }
    return -1;
}

bool uir_machine_has_dtype(const uir_machine *machine, uir_dtype dtype) {
    for (uint32_t i = 0; i < machine->legal_count; i++)
        if (uir_legal_name_matches(machine->legal[i].iop, uir_iop_get_row(UIR_IOP_MOVE)->name) &&
            (machine->legal[i].dtypes >> dtype & 1))
            return true;
    return false;
}

bool uir_machine_wants_rows(const uir_machine *machine, int space) {
    for (uint32_t i = 0; i < machine->legal_count; i++)
        if ((machine->legal[i].constraints & UIR_LEGAL_LAST_CONTIGUOUS) &&
            (machine->legal[i].spaces_result >> space & 1))
            return true;
    return false;
}

uint32_t uir_legal_row_get_right(const uir_legal_row *row) {
    return row->dtypes_right ? row->dtypes_right : row->dtypes_other ? row->dtypes_other : row->dtypes;
}

/* The row that fits sums and the first factor decides of the second: of the rows for these sums, one whose second
 * factor may be that. */
static bool multiplies_right(const uir_machine *machine, uir_dtype sums, uir_dtype factor) {
    for (uint32_t i = 0; i < machine->legal_count; i++) {
        const uir_legal_row *row = &machine->legal[i];
        if (uir_legal_name_matches(row->iop, "mma") && (row->dtypes >> sums & 1) &&
            (uir_legal_row_get_right(row) >> factor & 1))
            return true;
    }
    return false;
}

/* ---- formats ---- */
const char *uir_space_blocks_name(uir_space_blocks blocks) {
    static const char *const names[] = {
        [UIR_BLOCKS_NONE] = "none",
#define UIR_SPACE_BLOCKS(word, constant) [constant] = #word,
#include "ir/machine/device.def"
    };
    return names[blocks];
}

static bool has_columns_inside(const uir_space *space) {
    return space->blocks == UIR_BLOCKS_ROWS_OF_COLUMNS || space->blocks == UIR_BLOCKS_COLUMNS_OF_COLUMNS;
}

bool uir_space_get_block(const uir_space *space, uir_dtype dtype, int64_t *out_rows, int64_t *out_columns) {
    int64_t bytes = uir_dtype_bits(dtype) / 8, width = space->block_elements;
    if (space->block_bytes && bytes) width = space->block_bytes / bytes;
    *out_rows = has_columns_inside(space) ? width : space->block_lines;
    *out_columns = has_columns_inside(space) ? space->block_lines : width;
    return space->blocks != UIR_BLOCKS_NONE && *out_rows > 0 && *out_columns > 0;
}

void uir_space_make_layout(const uir_space *space, uir_dtype dtype, const uir_dim extents[2], uir_dims *dims,
                           uir_layout *out_layout) {
    int64_t block[2];
    uir_dim one = uir_dim_const(dims, 1), count[2];
    (void)uir_space_get_block(space, dtype, &block[0], &block[1]);
    uint32_t inner = has_columns_inside(space) ? 0 : 1; /* the dim along which neighbours of a block lie together */
    bool by_columns = space->blocks == UIR_BLOCKS_COLUMNS_OF_ROWS || space->blocks == UIR_BLOCKS_COLUMNS_OF_COLUMNS;
    uint32_t next = by_columns ? 0 : 1; /* and along which the next block is */
    *out_layout = (uir_layout){.given = true, .split = true};
    for (uint32_t d = 0; d < 2; d++) count[d] = uir_dim_ceildiv(dims, extents[d], uir_dim_const(dims, block[d]));
    uir_dim size = uir_dim_const(dims, block[0] * block[1]);
    for (uint32_t d = 0; d < 2; d++) {
        out_layout->mode_count[d] = 2;
        out_layout->modes[d][0] =
            (uir_mode){uir_dim_const(dims, block[d]), d == inner ? one : uir_dim_const(dims, block[inner])};
        out_layout->modes[d][1] = (uir_mode){count[d], d == next ? size : uir_dim_mul(dims, size, count[next])};
    }
}

int uir_machine_find_scratch(const uir_machine *machine) {
    int scratch = uir_machine_find_role(machine, UIR_SPACE_SCRATCH);
    return scratch < 0 || machine->spaces[scratch].is_cache ? -1 : scratch;
}

/* ---- models of cost ---- */
int64_t uir_machine_lanes(const uir_machine *machine) {
    return machine->vector_bytes >= 4 ? machine->vector_bytes / 4 : 1;
}

int64_t uir_machine_multiply_adds(const uir_machine *machine) {
    return machine->multiply_adds_per_cycle ? machine->multiply_adds_per_cycle : 1;
}

double uir_legal_row_cycles(const uir_legal_row *row, double steps) {
    double begun = row->repeats && steps > row->repeats ? (double)(uint64_t)((steps - 1) / row->repeats) + 1 : 1;
    return steps * (row->cycles ? row->cycles : 1) + begun * row->latency;
}

double uir_machine_move_cycles(const uir_machine *machine, const uir_legal_row *row, int from, int to, double elements,
                               double bytes) {
    static const uir_legal_row unknown = {0};
    uint32_t a = machine->spaces[from].bytes_per_cycle, b = machine->spaces[to].bytes_per_cycle;
    if (!row) row = &unknown;
    if (row->cycles_per_element) return elements * row->cycles_per_element + row->latency;
    double vector = machine->vector_bytes ? machine->vector_bytes : 1;
    double rate = row->bytes_per_cycle ? row->bytes_per_cycle
                  : row->cycles        ? vector / row->cycles
                  : a && b && b < a    ? b
                  : a                  ? a
                  : b                  ? b
                                       : vector;
    return bytes / rate + row->latency;
}

int64_t uir_machine_count_units(const uir_machine *machine, uint32_t kind) {
    int64_t of_group = machine->unit_counts[kind] ? machine->unit_counts[kind] : machine->units_per_group;
    return of_group * machine->group_count * count_residents(machine);
}

/* ---- what some kind of unit does ---- */
static const uir_legal_row *find_row(const uir_machine *machine, const char *iop, uir_dtype dtype, uir_dtype other,
                                     int to, uint32_t from) {
    for (uint32_t kind = 0; kind < machine->unit_kind_count; kind++) {
        int row = uir_machine_find_legal(machine, iop, dtype, other, (uint32_t)to, from, kind, 0);
        if (row >= 0) return &machine->legal[row];
    }
    return NULL;
}

const uir_legal_row *uir_machine_find_move(const uir_machine *machine, uir_dtype dtype, int from, int to) {
    return find_row(machine, "move", dtype, UIR_DTYPE_NONE, to, 1u << from);
}

const uir_legal_row *uir_machine_find_within(const uir_machine *machine, const char *iop, uir_dtype dtype, int space) {
    return find_row(machine, iop, dtype, UIR_DTYPE_NONE, space, 1u << space);
}

const uir_legal_row *uir_machine_find_mma(const uir_machine *machine, uir_dtype sums, uir_dtype factor) {
    int result = uir_machine_find_role(machine, UIR_SPACE_ACCUMULATORS),
        left = uir_machine_find_role(machine, UIR_SPACE_LEFT), right = uir_machine_find_role(machine, UIR_SPACE_RIGHT);
    if (result < 0 || left < 0 || right < 0) return NULL;
    return find_row(machine, "mma", sums, factor, result, 1u << left | 1u << right);
}

bool uir_machine_multiplies(const uir_machine *machine, uir_dtype sums, uir_dtype factor, bool is_right) {
    bool has_places = uir_machine_find_role(machine, UIR_SPACE_ACCUMULATORS) >= 0 &&
                      uir_machine_find_role(machine, UIR_SPACE_LEFT) >= 0 &&
                      uir_machine_find_role(machine, UIR_SPACE_RIGHT) >= 0;
    return is_right ? has_places && multiplies_right(machine, sums, factor)
                    : uir_machine_find_mma(machine, sums, factor) != NULL;
}

const uir_legal_row *uir_machine_find_pair(const uir_machine *machine, uir_dtype sums, uir_dtype left,
                                           uir_dtype right) {
    const uir_legal_row *row = uir_machine_find_mma(machine, sums, left);
    bool takes = row && (uir_legal_row_get_right(row) >> right & 1) &&
                 (left == right || !(row->constraints & UIR_LEGAL_EQUAL_OPERANDS));
    return takes ? row : NULL;
}

int uir_machine_find_path(const uir_machine *machine, uir_dtype dtype, int from, int to,
                          int out_spaces[UIR_MACHINE_MAX_SPACES]) {
    int before[UIR_MACHINE_MAX_SPACES], queue[UIR_MACHINE_MAX_SPACES], count = 0, length = 0;
    if (from < 0 || to < 0) return -1;
    for (int i = 0; i < UIR_MACHINE_MAX_SPACES; i++) before[i] = -1;
    queue[count++] = from;
    before[from] = from;
    for (int i = 0; i < count && before[to] < 0; i++)
        for (int next = 0; next < (int)machine->space_count; next++) {
            if (before[next] >= 0 || !uir_machine_find_move(machine, dtype, queue[i], next)) continue;
            before[next] = queue[i];
            queue[count++] = next;
        }
    if (before[to] < 0) return -1;
    for (int at = to; at != from; at = before[at]) length++;
    for (int at = to, i = length; at != from; at = before[at]) out_spaces[--i] = at;
    return length;
}
