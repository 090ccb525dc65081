/* The solver of tiles: of all tiles of a product that lie on the chip, those that promise most.
 *
 * In: a product and what its tiles take on the chip, in numbers; the device. Out: tiles, and the cycles that a unit of
 * work is estimated to take. A unit makes the sums of one tile over the whole depth, a chunk of it after the other: for
 * each panel of columns, for each of mma's blocks of rows, the chunk's steps. Its cycles are those of the blocks'
 * multiply-adds (bound by these, by loads, or by the latency), of every block's beginning, and of the bytes that go
 * over the edges between the device's memory, what is on the chip, and mma.
 *
 * A class of sizes is rows, columns and a number of threads: what is known of the product, else some numbers of blocks.
 * A tile is kept when it is a class's best one. Nothing but the description and the product decides, so that the same
 * device has the same tiles wherever they are solved for. */
#ifndef UIR_LOWER_TILES_H
#define UIR_LOWER_TILES_H

#include "ir/machine/device.h"
#include "lower/parameters.h"

enum { UIR_TILES_LEAST_CHUNK = 64 };

typedef struct uir_tile_problem {
    const uir_device *device;
    int64_t rows, columns, depth;       /* of the product; 0: any number */
    int64_t others;                     /* products with tiles of their own, as of a batch; at least 1 */
    bool cut;                           /* columns are cut by tiles; else each tile has all of them */
    bool copied[2];                     /* is the factor copied to the chip? */
    int64_t factor_bytes[2], sum_bytes; /* of an element */
    void *user;
    int64_t (*bytes)(void *user, int64_t rows, int64_t columns, int64_t chunk); /* that a tile takes on the chip */
} uir_tile_problem;

/* Of a unit of work. */
int64_t uir_tile_cycles(const uir_tile_problem *problem, const uir_parameter_tile *tile, int64_t chunk);
/* The best of each class among tiles of at most `room` bytes, the best of most classes first; `every`: then all others,
 * as far as a record holds them. `*out_score` is what the classes take together, the less the better: for comparing
 * chunks. Tiles' costs are their cycles. */
uint32_t uir_tiles_solve(const uir_tile_problem *problem, int64_t chunk, int64_t room, bool every,
                         uir_parameter_tile out_tiles[UIR_PARAMETERS_MAX_TILES], int64_t *out_score);
/* Of the tile that takes the least on the chip. */
int64_t uir_tiles_least_bytes(const uir_tile_problem *problem, int64_t chunk);
/* How much of the depth lies on the chip at once: the chunk whose tiles' score is the least; 0: no tile fits. */
int64_t uir_tiles_choose_chunk(const uir_tile_problem *problem, int64_t room);

#endif
