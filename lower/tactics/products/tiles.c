/* The solver of tiles: a model of what a unit of work takes, and the best tiles of each class of sizes. */
#include "lower/tactics/products/tiles.h"

#include "base/dims/dim.h"

#include <string.h>

enum {
    FRACTION = 64,      /* of a cycle, in which they are counted */
    USUAL_DEPTH = 1024, /* where it is not known */
    GRID = 13,          /* numbers of blocks that a tile may have, and parts that a known size may have */
    SIZES = 8,          /* of a class whose rows or columns are not known: 1, 2, 4 ... blocks */
    WORKERS = 7,        /* 1, 2, 4 ... threads */
    CHUNKS = 5,
    LIST = GRID * GRID
};
static const int64_t grid[GRID] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96};

static int64_t at_least_one(int64_t value) {
    return value > 0 ? value : 1;
}

static int64_t parts_of(int64_t extent, int64_t size) {
    return (extent + size - 1) / size;
}

static int64_t align_to(int64_t value, int64_t multiple) {
    return parts_of(value, multiple) * multiple;
}

/* ---- the model ---- */
static int64_t depth_of(const uir_tile_problem *p) {
    return p->depth ? p->depth : USUAL_DEPTH;
}

/* Fractions of a cycle that so many bytes take over an edge of the space. */
static int64_t transfer(const uir_machine *d, uint32_t role, int64_t bytes) {
    int space = uir_machine_find_role(d, role);
    uint32_t rate = space < 0 ? 0 : d->spaces[space].bytes_per_cycle;
    return bytes * FRACTION / at_least_one(rate ? rate : d->vector_bytes);
}

/* Of one step of depth of a block: rows by vectors of sums. */
static int64_t step_of(const uir_machine *d, int64_t rows, int64_t vectors) {
    int64_t adding = rows * vectors * FRACTION / at_least_one(d->multiply_adds_per_cycle),
            loading = (rows + vectors) * FRACTION / at_least_one(d->loads_per_cycle),
            waiting = (int64_t)d->multiply_add_latency * FRACTION;
    int64_t most = adding > loading ? adding : loading;
    return most > waiting ? most : waiting;
}

/* A tile in blocks of sums: how many rows of blocks, of how many rows each; how many of how many vectors, and the
 * vectors of a last one. */
typedef struct blocks {
    int64_t rows, down, vectors, across, rest;
} blocks;

static blocks cut_into_blocks(const uir_tile_problem *p, int64_t rows, int64_t columns) {
    const uir_machine *d = p->machine;
    blocks b = {.down = parts_of(rows, at_least_one(d->mma_m))};
    int64_t vectors = parts_of(columns * p->sum_bytes, at_least_one(d->vector_bytes)),
            most = ((int64_t)d->registers - 1) / ((int64_t)d->mma_m + 1);
    b.rows = parts_of(rows, b.down);
    for (b.vectors = 1; 2 * b.vectors <= most;) b.vectors *= 2;
    b.across = vectors / b.vectors;
    b.rest = vectors % b.vectors;
    return b;
}

/* The multiply-adds of all blocks. The second factor's bytes come from the chip while a panel's other blocks are
 * summed, and cost something only where they take longer. */
static int64_t multiply(const uir_tile_problem *p, int64_t rows, int64_t columns, int64_t depth) {
    const uir_machine *d = p->machine;
    blocks b = cut_into_blocks(p, rows, columns);
    int64_t steps = 0;
    for (uint32_t last = 0; last < 2; last++) {
        int64_t vectors = last ? b.rest : b.vectors, count = last ? b.rest > 0 : b.across;
        int64_t step = step_of(d, b.rows, vectors), bytes = vectors * d->vector_bytes,
                near = transfer(d, UIR_SPACE_SCRATCH, bytes);
        steps += count * (step + (b.down - 1) * (step > near ? step : near));
    }
    return depth * steps;
}

/* Each block begins with its sums and ends with them: a chunk finds them where all other blocks of the last one left
 * them. */
static int64_t begin_blocks(const uir_tile_problem *p, int64_t rows, int64_t columns) {
    blocks b = cut_into_blocks(p, rows, columns);
    return b.down * (b.across + (b.rest > 0)) * (int64_t)p->machine->multiply_add_latency * FRACTION +
           transfer(p->machine, UIR_SPACE_MEMORY, 2 * rows * columns * p->sum_bytes);
}

/* Is it still near when it is read again? What passes by meanwhile takes as much. */
static bool stays(const uir_machine *d, int64_t bytes) {
    int scratch = uir_machine_find_role(d, UIR_SPACE_SCRATCH);
    return scratch >= 0 && bytes <= (int64_t)uir_machine_working_set(d, scratch) / 2;
}

int64_t uir_tile_cycles(const uir_tile_problem *p, const uir_parameter_tile *tile, int64_t chunk) {
    const uir_machine *d = p->machine;
    int64_t panel = at_least_one(d->mma_n), depth = depth_of(p),
            rows = p->rows && p->rows < tile->rows ? p->rows : tile->rows,
            columns = !p->cut || (p->columns && p->columns < tile->columns) ? p->columns : tile->columns;
    if (!chunk || chunk > depth) chunk = depth;
    int64_t left = rows * depth * p->factor_bytes[0], right = columns * depth * p->factor_bytes[1], far = left,
            near = 0, slice = chunk * (rows * p->factor_bytes[0] + panel * p->factor_bytes[1]);
    /* Rows are read for each panel; a unit's columns are the next one's, which has other rows. */
    *(p->copied[0] || stays(d, slice) ? &near : &far) += (parts_of(columns, panel) - 1) * left;
    *(!p->copied[1] && stays(d, right) ? &near : &far) += right;
    if (p->copied[0]) near += left;
    if (p->copied[1]) near += 2 * right;
    int64_t all = multiply(p, rows, columns, depth) + parts_of(depth, chunk) * begin_blocks(p, rows, columns) +
                  transfer(d, UIR_SPACE_MEMORY, far) + transfer(d, UIR_SPACE_SCRATCH, near);
    return at_least_one(d->unit_cycles + all / FRACTION);
}

/* ---- the tiles there are ---- */
/* Of what is known, even parts; of the rest some numbers of blocks. The greatest first. */
static uint32_t list_sizes(int64_t extent, int64_t block, int64_t multiple, int64_t out[GRID]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < GRID; i++) {
        int64_t size = extent ? align_to(parts_of(extent, grid[i]), multiple) : grid[GRID - 1 - i] * block;
        if (extent && size < block && count) break;
        if (size > UIR_PARAMETERS_MAX_SIZE || (count && size == out[count - 1])) continue;
        out[count++] = size;
    }
    return count;
}

/* Those that fit, and the bytes of the least one whether it fits or not. */
static uint32_t list_tiles(const uir_tile_problem *p, int64_t chunk, int64_t room, uir_parameter_tile out[LIST],
                           int64_t *out_least) {
    int64_t rows[GRID], columns[GRID] = {0}, panel = at_least_one(p->machine->mma_n);
    uint32_t count = 0, row_count = list_sizes(p->rows, at_least_one(p->machine->mma_m), 1, rows), column_count = 1;
    if (p->cut) column_count = list_sizes(p->columns, panel, panel, columns);
    *out_least = INT64_MAX;
    for (uint32_t i = 0; i < row_count; i++)
        for (uint32_t j = 0; j < column_count; j++) {
            uir_parameter_tile tile = {rows[i], columns[j], 0};
            int64_t bytes = p->bytes(p->user, tile.rows, tile.columns, chunk);
            if (bytes < *out_least) *out_least = bytes;
            if (bytes > room) continue;
            tile.cost = uir_tile_cycles(p, &tile, chunk);
            out[count++] = tile;
        }
    return count;
}

int64_t uir_tiles_least_bytes(const uir_tile_problem *p, int64_t chunk) {
    uir_parameter_tile none[LIST];
    int64_t least;
    (void)list_tiles(p, chunk, -1, none, &least);
    return least;
}

/* ---- the best of them ---- */
static uint32_t list_class_sizes(int64_t extent, int64_t block, int64_t out[SIZES]) {
    out[0] = extent ? extent : block;
    for (uint32_t i = 1; i < SIZES && !extent; i++) out[i] = 2 * out[i - 1];
    return extent ? 1 : SIZES;
}

typedef struct ranking {
    uint32_t won[LIST];   /* classes */
    int64_t behind[LIST]; /* the best tile of a class, in fractions of its cost, where that is least */
    int64_t score;
} ranking;

static int64_t fractions_of(int64_t cost, int64_t of) {
    return cost <= INT64_MAX / FRACTION ? cost * FRACTION / at_least_one(of) : INT64_MAX / FRACTION;
}

/* One class: its best tile, and how far it is from multiply-adds alone (`least`) that all threads share; `every`: how
 * far the others are behind it. */
static void rank(const uir_parameter_tile *tiles, const int64_t *units, uint32_t count, int64_t workers, int64_t least,
                 bool every, ranking *out) {
    int64_t best = INT64_MAX, costs[LIST];
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        costs[i] = uir_shared_cost(tiles[i].cost, units[i], workers);
        if (costs[i] >= best) continue;
        best = costs[i];
        at = i;
    }
    out->won[at]++;
    out->score += fractions_of(best, least / workers);
    for (uint32_t i = 0; every && i < count; i++) {
        int64_t behind = fractions_of(costs[i], best);
        if (behind < out->behind[i]) out->behind[i] = behind;
    }
}

static void rank_all(const uir_tile_problem *p, const uir_parameter_tile *tiles, uint32_t count, bool every,
                     ranking *out) {
    int64_t rows[SIZES], columns[SIZES], units[LIST];
    uint32_t row_count = list_class_sizes(p->rows, at_least_one(p->machine->mma_m), rows);
    uint32_t column_count = list_class_sizes(p->columns, at_least_one(p->machine->mma_n), columns);
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < count; i++) out->behind[i] = INT64_MAX;
    for (uint32_t i = 0; i < row_count; i++)
        for (uint32_t j = 0; j < column_count; j++) {
            int64_t least = p->others * multiply(p, rows[i], columns[j], depth_of(p)) / FRACTION;
            for (uint32_t t = 0; t < count; t++)
                units[t] = p->others * parts_of(rows[i], tiles[t].rows) *
                           (p->cut ? parts_of(columns[j], tiles[t].columns) : 1);
            for (uint32_t w = 0; w < WORKERS; w++) rank(tiles, units, count, INT64_C(1) << w, least, every, out);
        }
}

static bool is_ahead(const ranking *ranks, uint32_t a, uint32_t b) {
    if (ranks->won[a] != ranks->won[b]) return ranks->won[a] > ranks->won[b];
    return ranks->behind[a] < ranks->behind[b];
}

uint32_t uir_tiles_solve(const uir_tile_problem *p, int64_t chunk, int64_t room, bool every,
                         uir_parameter_tile out[UIR_PARAMETERS_MAX_TILES], int64_t *out_score) {
    uir_parameter_tile tiles[LIST];
    ranking ranks;
    int64_t bytes;
    uint32_t count = list_tiles(p, chunk, room, tiles, &bytes), kept = 0;
    *out_score = INT64_MAX;
    if (!count) return 0;
    rank_all(p, tiles, count, every, &ranks);
    *out_score = ranks.score;
    while (kept < count && kept < UIR_PARAMETERS_MAX_TILES) {
        uint32_t best = LIST;
        for (uint32_t i = 0; i < count; i++)
            if (tiles[i].rows && (best == LIST || is_ahead(&ranks, i, best))) best = i;
        if (!ranks.won[best] && !every) break;
        out[kept++] = tiles[best];
        tiles[best].rows = 0;
    }
    return kept;
}

int64_t uir_tiles_choose_chunk(const uir_tile_problem *p, int64_t room) {
    int64_t best = 0, least = INT64_MAX, score;
    uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
    for (uint32_t i = 0; i < CHUNKS; i++) {
        int64_t chunk = (int64_t)UIR_TILES_LEAST_CHUNK << i;
        if (!uir_tiles_solve(p, chunk, room, false, tiles, &score) || score >= least) continue;
        least = score;
        best = chunk;
        if (p->depth && chunk >= p->depth) break;
    }
    return best;
}
