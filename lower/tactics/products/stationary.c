/* Choosing what stays of a product, and its tiles. */
#include "lower/tactics/products/stationary.h"

const uint32_t uir_tile_sides[UIR_TILES][2] = {
    {UIR_SIDE_ROWS, UIR_SIDE_DEPTH}, {UIR_SIDE_DEPTH, UIR_SIDE_COLUMNS}, {UIR_SIDE_ROWS, UIR_SIDE_COLUMNS}};

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
    for (uint32_t i = 0; i < UIR_MACHINE_MAX_SPACES; i++) used[i] = 0;
    for (uint32_t t = 0; t < UIR_TILES; t++)
        for (int i = 0; i < p->ways[t].count; i++) {
            bool held = is_held(c, t, i);
            int space = p->ways[t].spaces[i];
            int64_t bytes = round_up(tile_bytes(p, c, t, held), p->machine->spaces[space].alignment);
            used[space] += t == UIR_TILE_SUMS || held ? bytes : bytes * p->instances;
        }
}

bool uir_product_fits(const uir_product_problem *p, const uir_product_choice *c) {
    int64_t used[UIR_MACHINE_MAX_SPACES];
    find_used(p, c, used);
    for (uint32_t i = 0; i < p->machine->space_count; i++)
        if (p->room[i] && used[i] > p->room[i]) return false;
    return true;
}

/* Whether each step has the whole tile. Threads that share the elements of a tile then do so by numbers known ahead. */
static bool is_even(const uir_product_problem *p, const uir_product_choice *c) {
    return p->extents[UIR_SIDE_DEPTH] % c->tiles[UIR_SIDE_DEPTH] == 0;
}

/* How full the spaces are, all together. */
static double fullness(const uir_product_problem *p, const uir_product_choice *c) {
    int64_t used[UIR_MACHINE_MAX_SPACES];
    double full = 0;
    find_used(p, c, used);
    for (uint32_t i = 0; i < p->machine->space_count; i++)
        if (p->room[i]) full += (double)used[i] / (double)p->room[i];
    return full;
}

/* ---- cycles ---- */
/* Cycles of each pipe; of a machine without pipes all are the first one's. */
typedef struct pipe_cycles {
    double of[UIR_MACHINE_MAX_PIPES];
} pipe_cycles;

static void add_cycles(pipe_cycles *to, int pipe, double cycles) {
    to->of[pipe > 0 ? pipe : 0] += cycles;
}

static double busiest(const uir_product_problem *p, const pipe_cycles *cycles) {
    double most = 0, sum = 0;
    for (uint32_t i = 0; i < UIR_MACHINE_MAX_PIPES; i++) {
        sum += cycles->of[i];
        if (cycles->of[i] > most) most = cycles->of[i];
    }
    return p->instances > 1 ? most : sum;
}

/* The work of one unit: what its tiles are on average, since those at an end are cut, and how many it makes. */
typedef struct unit_work {
    double sides[UIR_SIDES];
    double sums, steps, turns; /* tiles of sums, steps along the depth of all of them; such units of work one by one */
} unit_work;

static unit_work find_work(const uir_product_problem *p, const uir_product_choice *c) {
    int64_t tiles[UIR_SIDES];
    unit_work w = {.sums = 1};
    int stays = stationary_factor(c);
    uint32_t passing = c->stationary == UIR_STATIONARY_LEFT ? UIR_SIDE_COLUMNS : UIR_SIDE_ROWS;
    for (uint32_t i = 0; i < UIR_SIDES; i++) tiles[i] = count_tiles(p->extents[i], c->tiles[i]);
    if (stays >= 0) w.sums = (double)tiles[passing];
    w.steps = w.sums * (double)tiles[UIR_SIDE_DEPTH];
    double work = (double)tiles[UIR_SIDE_ROWS] * (double)tiles[UIR_SIDE_COLUMNS] / w.sums * (double)p->others;
    w.turns = (work + (double)(p->units - 1)) / (double)p->units;
    w.turns = w.turns < 1 ? 1 : (double)(int64_t)w.turns;
    for (uint32_t i = 0; i < UIR_SIDES; i++) {
        /* Of what units share the busiest one has whole tiles, when each has one. */
        bool is_whole = w.turns < 2 && i != UIR_SIDE_DEPTH && !(stays >= 0 && i == passing);
        w.sides[i] = is_whole ? (double)c->tiles[i] : (double)round_up(p->extents[i], p->blocks[i]) / (double)tiles[i];
    }
    return w;
}

/* A tile over one edge, so many times. */
static void add_moves(const uir_product_problem *p, uint32_t tile, int from, int to, double elements, double times,
                      pipe_cycles *cycles) {
    uir_dtype dtype = p->dtypes[tile];
    const uir_legal_row *row = uir_machine_find_move(p->machine, dtype, from, to);
    double bytes = elements * (double)(uir_dtype_bits(dtype) / 8);
    add_cycles(cycles, row ? row->pipe : 0,
               times * uir_machine_move_cycles(p->machine, row, from, to, elements, bytes));
}

/* A factor: what stays goes the first part of its way once, all else the whole way in each step. */
static void add_factor(const uir_product_problem *p, const uir_product_choice *c, uint32_t tile, const unit_work *w,
                       pipe_cycles *cycles) {
    const uir_tile_way *way = &p->ways[tile];
    uint32_t own = tile == UIR_TILE_LEFT ? UIR_SIDE_ROWS : UIR_SIDE_COLUMNS;
    int from = uir_machine_find_role(p->machine, UIR_SPACE_MEMORY);
    for (int i = 0; i < way->count; from = way->spaces[i++]) {
        bool held = is_held(c, tile, i);
        double depth = held ? (double)whole_depth(p) : w->sides[UIR_SIDE_DEPTH];
        add_moves(p, tile, from, way->spaces[i], w->sides[own] * depth, held ? 1 : w->steps, cycles);
    }
}

static void add_finished(const uir_product_problem *p, const unit_work *w, pipe_cycles *cycles) {
    int memory = uir_machine_find_role(p->machine, UIR_SPACE_MEMORY);
    const uir_tile_way *way = &p->ways[UIR_TILE_SUMS];
    for (int i = 0; i < way->count; i++)
        add_moves(p, UIR_TILE_SUMS, way->spaces[i], i + 1 < way->count ? way->spaces[i + 1] : memory,
                  w->sides[UIR_SIDE_ROWS] * w->sides[UIR_SIDE_COLUMNS], w->sums, cycles);
}

static void add_products(const uir_product_problem *p, const unit_work *w, pipe_cycles *cycles) {
    const uir_machine *d = p->machine;
    const uir_legal_row *row = uir_machine_find_mma(d, p->dtypes[UIR_TILE_SUMS], p->dtypes[UIR_TILE_LEFT]);
    double blocks = w->sides[UIR_SIDE_ROWS] / d->mma_m * w->sides[UIR_SIDE_COLUMNS] / d->mma_n *
                    w->sides[UIR_SIDE_DEPTH] / d->mma_k;
    add_cycles(cycles, row ? row->pipe : 0, w->steps * (row ? uir_legal_row_cycles(row, blocks) : blocks));
}

double uir_product_cycles(const uir_product_problem *p, const uir_product_choice *c) {
    pipe_cycles cycles = {{0}};
    unit_work w = find_work(p, c);
    for (uint32_t k = 0; k < 2; k++) add_factor(p, c, k, &w, &cycles);
    add_products(p, &w, &cycles);
    add_finished(p, &w, &cycles);
    return w.turns * busiest(p, &cycles);
}

/* Bytes that all units together load from memory, of both factors. */
static double count_loads(const uir_product_problem *p, const uir_product_choice *c) {
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

/* Cycles are modelled, and of one unit with memory to itself; bytes are what they are, and what units wait for one
 * after the other. Of choices within so much of the fewest cycles the one that loads least is taken, of these the
 * fastest, and of equals the one that leaves least room unused; where threads share a tile, an even one first. */
static const double SLACK = 0.15;

typedef struct search {
    const uir_product_problem *p;
    int64_t sizes[UIR_SIDES][MOST_PARTS];
    uint32_t counts[UIR_SIDES];
    double fewest_cycles; /* of all choices: found the first time around */
    uir_product_choice best;
    double cycles, loads, full;
    bool even;
    bool found, is_second;
} search;

static bool is_better(const search *s, double cycles, double loads, double full, bool even) {
    if (!s->found) return true;
    if (loads != s->loads) return loads < s->loads;
    if (cycles < s->cycles * (1 - 1e-9)) return true;
    if (cycles > s->cycles * (1 + 1e-9)) return false;
    if (even != s->even && uir_machine_threads(s->p->machine) > 1) return even;
    return full > s->full;
}

static void consider(search *s, const uir_product_choice *c) {
    double cycles = uir_product_cycles(s->p, c);
    if (!s->is_second) {
        if (!s->found || cycles < s->fewest_cycles) s->fewest_cycles = cycles;
        s->found = true;
        return;
    }
    if (cycles > s->fewest_cycles * (1 + SLACK)) return;
    double loads = count_loads(s->p, c), full = fullness(s->p, c);
    bool even = is_even(s->p, c);
    if (!is_better(s, cycles, loads, full, even)) return;
    s->best = *c;
    s->cycles = cycles, s->loads = loads, s->full = full, s->even = even;
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

static void consider_all(search *s) {
    for (uint32_t m = 0; m < s->counts[UIR_SIDE_ROWS]; m++)
        for (uint32_t n = 0; n < s->counts[UIR_SIDE_COLUMNS]; n++)
            for (uint32_t kind = UIR_STATIONARY_SUMS; kind <= UIR_STATIONARY_RIGHT; kind++) {
                uir_product_choice c = {.stationary = (uir_stationary)kind};
                c.tiles[UIR_SIDE_ROWS] = s->sizes[UIR_SIDE_ROWS][m];
                c.tiles[UIR_SIDE_COLUMNS] = s->sizes[UIR_SIDE_COLUMNS][n];
                consider_stationary(s, c);
            }
}

bool uir_product_solve(const uir_product_problem *p, uir_product_choice *out) {
    search s = {.p = p};
    for (uint32_t i = 0; i < UIR_SIDES; i++) s.counts[i] = list_parts(p, i, s.sizes[i]);
    consider_all(&s);
    if (!s.found) return false;
    s.found = false, s.is_second = true;
    consider_all(&s);
    *out = s.best;
    return s.found;
}
