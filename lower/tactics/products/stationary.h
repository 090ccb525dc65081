/* The choice of which tile of a product stays on the chip, and of tile sizes, for machines whose multiplier reads its
 * operands from spaces of its own (levels.c).
 *
 * Output-stationary: a unit of work is a tile of sums; each step along K loads a tile of both operands. A-stationary: a
 * unit of work is a row of tiles of sums; operand A's rows stay, whole along K, while all columns are loaded.
 * B-stationary: the same for columns. In all three the sums stay until they are finished. Elements loaded of a product
 * of M rows, N columns and reduction axis K in tiles of m, n and k: MK + MNK/m A-stationary, KN + MNK/n B-stationary,
 * MNK (m + n) / (mn) output-stationary (a thesis on a DaVinci compiler, MIPT and ISP RAS, section 6.4.1).
 *
 * In: the product in numbers, the paths of its tiles through spaces, the description with its costs. Out: the choice
 * that loads the fewest bytes among those that fit and have nearly the fewest cycles of the busiest unit; of equals the
 * fastest, then the one that fills the spaces most. */
#ifndef UIR_LOWER_STATIONARY_H
#define UIR_LOWER_STATIONARY_H

#include "ir/machine/device.h"
#include "lower/parameters.h"

enum { UIR_SIDE_ROWS, UIR_SIDE_COLUMNS, UIR_SIDE_DEPTH, UIR_SIDES };
enum { UIR_TILE_LEFT, UIR_TILE_RIGHT, UIR_TILE_SUMS, UIR_TILES };
/* The two sides of a tile: its rows and its columns. */
extern const uint32_t uir_tile_sides[UIR_TILES][2];

/* The spaces of a tile, in the order of its path: an operand's path ends where it is multiplied, that of sums begins
 * where they are accumulated. The path of sums lacks the device's memory, its end. */
typedef struct uir_tile_way {
    int spaces[UIR_MACHINE_MAX_SPACES], count;
} uir_tile_way;

typedef struct uir_product_problem {
    const uir_machine *machine;
    int64_t extents[UIR_SIDES]; /* as assumed; at least 1 */
    int64_t blocks[UIR_SIDES];  /* a tile is a multiple of these */
    uir_dtype dtypes[UIR_TILES];
    uir_tile_way ways[UIR_TILES];
    bool may_stay[2];  /* whether the operand may be stationary */
    int64_t others;    /* number of like products, as of a batch or of a convolution's taps; at least 1 */
    int64_t units;     /* that work in parallel; at least 1 */
    int64_t instances; /* buffers of a tile moved in a loop: 2 if copies and computation overlap */
    int64_t room[UIR_MACHINE_MAX_SPACES]; /* bytes of each space; 0: not bounded */
} uir_product_problem;

typedef struct uir_product_choice {
    uir_stationary stationary;
    int64_t tiles[UIR_SIDES];
    int held; /* spaces, from the path's first, with the stationary operand whole along K; else 0 */
} uir_product_choice;

/* Whether all tiles on the chip fit, in each space. */
bool uir_product_fits(const uir_product_problem *problem, const uir_product_choice *choice);
/* Cycles of the busiest unit. */
double uir_product_cycles(const uir_product_problem *problem, const uir_product_choice *choice);
/* Chooses; false: nothing fits. */
bool uir_product_solve(const uir_product_problem *problem, uir_product_choice *out_choice);

#endif
