/* Choosing what stays of a product, and its tiles. */
#include "lower/stationary.h"

const uint32_t uir_tile_sides[UIR_TILES][2] = {
    {UIR_SIDE_ROWS, UIR_SIDE_DEPTH}, {UIR_SIDE_DEPTH, UIR_SIDE_COLUMNS}, {UIR_SIDE_ROWS, UIR_SIDE_COLUMNS}};

const char *uir_stationary_name(uir_stationary stationary) {
    static const char *const names[] = {"sums", "left", "right"};
    return names[stationary];
}

enum { MOST_PARTS = 128, LONGEST = 2048 }; /* sizes of a tile's side that are looked at; elements */

static int64_t count_tiles(int64_t extent, int64_t tile) {
    return (extent + tile - 1) / tile;
}

static int64_t round_up(int64_t value, int64_t multiple) {
    return multiple > 1 ? count_tiles(value, multiple) * multiple : value;
}

static int64_t whole_depth(const uir_product_problem *p) {
    return round_up(p->extents[UIR_SIDE_DEPTH], p->blocks[UIR_SIDE_DEPTH]);
}

/* The factor that stays; -1: the sums do. */
static int stationary_factor(const uir_product_choice *c) {
    return c->stationary == UIR_STATIONARY_LEFT ? 0 : c->stationary == UIR_STATIONARY_RIGHT ? 1 : -1;
}

/* ---- room ---- */
static int64_t tile_bytes(const uir_product_problem *p, const uir_product_choice *c, uint32_t tile, bool is_whole) {
    const uint32_t *sides = uir_tile_sides[tile];
    int64_t elements = 1;
    for (uint32_t i = 0; i < 2; i++)
        elements *= is_whole && sides[i] == UIR_SIDE_DEPTH ? whole_depth(p) : c->tiles[sides[i]];
    return elements * (int64_t)(uir_dtype_bits(p->dtypes[tile]) / 8);
}

static bool is_held(const uir_product_choice *c, uint32_t tile, int space) {
    return (int)tile == stationary_factor(c) && space < c->held;
}

static void find_used(const uir_product_problem *p, const uir_product_choice *c, int64_t *used) {
    for (uint32_t i = 0; i < UIR_DEVICE_MAX_SPACES; i++) used[i] = 0;
    for (uint32_t t = 0; t < UIR_TILES; t++)
        for (int i = 0; i < p->ways[t].count; i++) {
            bool held = is_held(c, t, i);
            int space = p->ways[t].spaces[i];
            int64_t bytes = round_up(tile_bytes(p, c, t, held), p->device->spaces[space].alignment);
            used[space] += t == UIR_TILE_SUMS || held ? bytes : bytes * p->instances;
        }
}

bool uir_product_fits(const uir_product_problem *p, const uir_product_choice *c) {
    int64_t used[UIR_DEVICE_MAX_SPACES];
    find_used(p, c, used);
    for (uint32_t i = 0; i < p->device->space_count; i++)
        if (p->room[i] && used[i] > p->room[i]) return false;
    return true;
}

/* How full the spaces are, all together. */
static double fullness(const uir_product_problem *p, const uir_product_choice *c) {
    int64_t used[UIR_DEVICE_MAX_SPACES];
    double full = 0;
    find_used(p, c, used);
    for (uint32_t i = 0; i < p->device->space_count; i++)
        if (p->room[i]) full += (double)used[i] / (double)p->room[i];
    return full;
}

/* ---- cycles ---- */
/* Cycles of each pipe; of a machine without pipes all are the first one's. */
typedef struct pipe_cycles {
    double of[UIR_DEVICE_MAX_PIPES];
} pipe_cycles;

static void add_cycles(pipe_cycles *to, int pipe, double cycles) {
    to->of[pipe > 0 ? pipe : 0] += cycles;
}

static double busiest(const uir_product_problem *p, const pipe_cycles *cycles) {
    double most = 0, sum = 0;
    for (uint32_t i = 0; i < UIR_DEVICE_MAX_PIPES; i++) {
        sum += cycles->of[i];
        if (cycles->of[i] > most) most = cycles->of[i];
    }
    return p->instances > 1 ? most : sum;
}

/* So many moves of a tile over one edge. */
static void add_moves(const uir_product_problem *p, uir_dtype dtype, int from, int to, int64_t bytes, double times,
                      pipe_cycles *cycles) {
    const uir_legal_row *row = uir_device_find_move(p->device, dtype, from, to);
    add_cycles(cycles, row ? row->pipe : 0, times * uir_device_move_cycles(p->device, row, from, to, (uint64_t)bytes));
}

/* A factor's tile on all its way but the first `skipped` edges. */
static void add_factor(const uir_product_problem *p, const uir_product_choice *c, uint32_t tile, int from_edge,
                       int to_edge, bool is_whole, double times, pipe_cycles *cycles) {
    int memory = uir_device_find_role(p->device, UIR_SPACE_MEMORY);
    const uir_tile_way *way = &p->ways[tile];
    int64_t bytes = tile_bytes(p, c, tile, is_whole);
    for (int i = from_edge; i < to_edge; i++)
        add_moves(p, p->dtypes[tile], i ? way->spaces[i - 1] : memory, way->spaces[i], bytes, times, cycles);
}

static void add_finished(const uir_product_problem *p, const uir_product_choice *c, double times, pipe_cycles *cycles) {
    int memory = uir_device_find_role(p->device, UIR_SPACE_MEMORY);
    const uir_tile_way *way = &p->ways[UIR_TILE_SUMS];
    int64_t bytes = tile_bytes(p, c, UIR_TILE_SUMS, false);
    for (int i = 0; i < way->count; i++)
        add_moves(p, p->dtypes[UIR_TILE_SUMS], way->spaces[i], i + 1 < way->count ? way->spaces[i + 1] : memory, bytes,
                  times, cycles);
}

static void add_products(const uir_product_problem *p, const uir_product_choice *c, double times, pipe_cycles *cycles) {
    const uir_device *d = p->device;
    const uir_legal_row *row = uir_device_find_mma(d, p->dtypes[UIR_TILE_SUMS], p->dtypes[UIR_TILE_LEFT]);
    double blocks = (double)count_tiles(c->tiles[UIR_SIDE_ROWS], d->mma_m) *
                    (double)count_tiles(c->tiles[UIR_SIDE_COLUMNS], d->mma_n) *
                    (double)count_tiles(c->tiles[UIR_SIDE_DEPTH], d->mma_k);
    double each = row && row->cycles ? row->cycles : 1, latency = row ? row->latency : 0;
    add_cycles(cycles, row ? row->pipe : 0, times * (blocks * each + latency));
}

double uir_product_cycles(const uir_product_problem *p, const uir_product_choice *c) {
    pipe_cycles cycles = {{0}};
    int64_t tiles[UIR_SIDES];
    int stays = stationary_factor(c);
    for (uint32_t i = 0; i < UIR_SIDES; i++) tiles[i] = count_tiles(p->extents[i], c->tiles[i]);
    /* A unit of work makes so many tiles of sums. */
    uint32_t passing = c->stationary == UIR_STATIONARY_LEFT ? UIR_SIDE_COLUMNS : UIR_SIDE_ROWS;
    int64_t sums = stays < 0 ? 1 : tiles[passing], work = tiles[UIR_SIDE_ROWS] * tiles[UIR_SIDE_COLUMNS] / sums;
    double steps = (double)sums * (double)tiles[UIR_SIDE_DEPTH];
    for (uint32_t k = 0; k < 2; k++) {
        int held = (int)k == stays ? c->held : 0;
        add_factor(p, c, k, 0, held, true, 1, &cycles);
        add_factor(p, c, k, held, p->ways[k].count, false, steps, &cycles);
    }
    add_products(p, c, steps, &cycles);
    add_finished(p, c, (double)sums, &cycles);
    double turns = ((double)work * (double)p->others + (double)(p->units - 1)) / (double)p->units;
    return (turns < 1 ? 1 : (double)(int64_t)turns) * busiest(p, &cycles);
}

double uir_product_loads(const uir_product_problem *p, const uir_product_choice *c) {
    double total = 0;
    int stays = stationary_factor(c);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t other = k ? UIR_SIDE_ROWS : UIR_SIDE_COLUMNS, own = k ? UIR_SIDE_COLUMNS : UIR_SIDE_ROWS;
        double times = (int)k == stays ? 1 : (double)count_tiles(p->extents[other], c->tiles[other]);
        total += times * (double)p->extents[own] * (double)p->extents[UIR_SIDE_DEPTH] *
                 (double)(uir_dtype_bits(p->dtypes[k]) / 8);
    }
    return total * (double)p->others;
}

/* ---- the search ---- */
/* Sizes of a tile's side: the extent in even parts of whole blocks, the least parts last; no two alike. */
static uint32_t list_parts(const uir_product_problem *p, uint32_t side, int64_t *out) {
    int64_t blocks = count_tiles(p->extents[side], p->blocks[side]), last = 0;
    int64_t most = p->blocks[side] < LONGEST ? LONGEST / p->blocks[side] : 1;
    uint32_t count = 0;
    for (int64_t parts = count_tiles(blocks, most); parts <= blocks && count < MOST_PARTS; parts++) {
        int64_t size = count_tiles(blocks, parts);
        if (size == last) { /* so many parts more make no difference: go on with the next smaller size */
            if (size == 1) break;
            parts = count_tiles(blocks, size - 1);
            size = count_tiles(blocks, parts);
        }
        out[count++] = size * p->blocks[side];
        last = size;
    }
    return count;
}

typedef struct search {
    const uir_product_problem *p;
    int64_t sizes[UIR_SIDES][MOST_PARTS];
    uint32_t counts[UIR_SIDES];
    uir_product_choice best;
    double cycles, loads, full;
    bool found;
} search;

static bool is_better(const search *s, double cycles, double loads, double full) {
    if (!s->found) return true;
    if (cycles < s->cycles * (1 - 1e-9)) return true;
    if (cycles > s->cycles * (1 + 1e-9)) return false;
    if (loads != s->loads) return loads < s->loads;
    return full > s->full;
}

static void consider(search *s, const uir_product_choice *c) {
    double cycles = uir_product_cycles(s->p, c), loads = uir_product_loads(s->p, c), full = fullness(s->p, c);
    if (!is_better(s, cycles, loads, full)) return;
    s->best = *c;
    s->cycles = cycles, s->loads = loads, s->full = full;
    s->found = true;
}

/* Of these rows and columns each depth that fits; less of it than a step can have is never faster, but for the first
 * step, for which the rest waits: the longest three are looked at. */
static void consider_depths(search *s, uir_product_choice c) {
    uint32_t considered = 0;
    for (uint32_t i = 0; i < s->counts[UIR_SIDE_DEPTH] && considered < 3; i++) {
        c.tiles[UIR_SIDE_DEPTH] = s->sizes[UIR_SIDE_DEPTH][i];
        if (!uir_product_fits(s->p, &c)) continue;
        consider(s, &c);
        considered++;
    }
}

static void consider_stationary(search *s, uir_product_choice c) {
    int factor = stationary_factor(&c);
    if (factor < 0) {
        c.held = 0;
        consider_depths(s, c);
        return;
    }
    uint32_t passing = factor ? UIR_SIDE_ROWS : UIR_SIDE_COLUMNS;
    if (!s->p->may_stay[factor] || c.tiles[passing] >= s->p->extents[passing]) return;
    for (c.held = 1; c.held < s->p->ways[factor].count; c.held++) consider_depths(s, c);
    c.tiles[UIR_SIDE_DEPTH] = whole_depth(s->p); /* whole where it is multiplied, too */
    if (uir_product_fits(s->p, &c)) consider(s, &c);
}

bool uir_product_solve(const uir_product_problem *p, uir_product_choice *out) {
    search s = {.p = p};
    for (uint32_t i = 0; i < UIR_SIDES; i++) s.counts[i] = list_parts(p, i, s.sizes[i]);
    for (uint32_t m = 0; m < s.counts[UIR_SIDE_ROWS]; m++)
        for (uint32_t n = 0; n < s.counts[UIR_SIDE_COLUMNS]; n++)
            for (uint32_t kind = UIR_STATIONARY_SUMS; kind <= UIR_STATIONARY_RIGHT; kind++) {
                uir_product_choice c = {.stationary = (uir_stationary)kind};
                c.tiles[UIR_SIDE_ROWS] = s.sizes[UIR_SIDE_ROWS][m];
                c.tiles[UIR_SIDE_COLUMNS] = s.sizes[UIR_SIDE_COLUMNS][n];
                consider_stationary(&s, c);
            }
    *out = s.best;
    return s.found;
}
