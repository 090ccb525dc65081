/* What of a product stays on the chip while the rest goes by, and in what tiles: for machines whose multiplier takes
 * its operands from spaces of their own (levels.c).
 *
 * Sums stationary: a unit of work is a tile of sums; for each step along the depth a tile of both factors comes. Left
 * stationary: a unit of work is a row of tiles of sums; the left factor's rows stay, whole in depth, while all columns
 * go by. Right stationary: the same of columns. In all three sums stay until they are finished. Seed 004, 6.4.1, counts
 * what each loads: for rows M, depth N and columns K in tiles m, n, k, MN + MNK/m with the left factor stationary,
 * KN + MNK/k with the right one, MNK (m + k) / (mk) with the sums.
 *
 * In: the product in numbers, the ways that its tiles go, the description with its costs. Out: of all that fits
 * and takes the busiest unit little more than the fewest cycles, what loads the fewest bytes; of equals the fastest,
 * then what fills the spaces most. */
#ifndef UIR_LOWER_STATIONARY_H
#define UIR_LOWER_STATIONARY_H

#include "ir/machine/device.h"
#include "lower/parameters.h"

enum { UIR_SIDE_ROWS, UIR_SIDE_COLUMNS, UIR_SIDE_DEPTH, UIR_SIDES };
enum { UIR_TILE_LEFT, UIR_TILE_RIGHT, UIR_TILE_SUMS, UIR_TILES };
/* Which two sides a tile has: its rows and its columns. */
extern const uint32_t uir_tile_sides[UIR_TILES][2];

/* The spaces that a tile lies in, in the order in which it goes through them: a factor's end where it is multiplied,
 * the sums' begin where they are added up. Of the sums the device's memory, where they end, is not among them. */
typedef struct uir_tile_way {
    int spaces[UIR_DEVICE_MAX_SPACES], count;
} uir_tile_way;

typedef struct uir_product_problem {
    const uir_device *device;
    int64_t extents[UIR_SIDES]; /* as they are taken to be; at least 1 */
    int64_t blocks[UIR_SIDES];  /* of which a tile is a multiple */
    uir_dtype dtypes[UIR_TILES];
    uir_tile_way ways[UIR_TILES];
    bool may_stay[2];  /* may the factor be stationary? */
    int64_t others;    /* products that are alike, as of a batch or of the taps of a convolution; at least 1 */
    int64_t units;     /* that work at once; at least 1 */
    int64_t instances; /* of what is moved in a loop: 2 where copies and computing overlap */
    int64_t room[UIR_DEVICE_MAX_SPACES]; /* bytes of each space; 0: not bounded */
} uir_product_problem;

typedef struct uir_product_choice {
    uir_stationary stationary;
    int64_t tiles[UIR_SIDES];
    int held; /* spaces of the stationary factor's way in which it lies whole in depth, from the first; 0: of sums */
} uir_product_choice;

/* Does all that lies on the chip at once fit, each space by itself? */
bool uir_product_fits(const uir_product_problem *problem, const uir_product_choice *choice);
/* Of the busiest unit. */
double uir_product_cycles(const uir_product_problem *problem, const uir_product_choice *choice);
/* false: nothing fits. */
bool uir_product_solve(const uir_product_problem *problem, uir_product_choice *out_choice);

#endif
