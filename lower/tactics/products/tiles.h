/* Finds the tile sizes of a matrix product: the tiles that fit on the chip and cost the least by a cost model.
 *
 * In: the extents of a product, a function for the bytes of its tiles on the chip, the device. Out: tiles, and the
 * estimated cycles of a unit of work.
 *
 * A unit computes the accumulator of one tile along the whole of K, one chunk after another. In a chunk, the unit runs
 * its steps for each panel of columns and each of mma's blocks of rows. The cycles of a unit have three parts. The
 * multiply-adds of the blocks are bound by arithmetic, by loads or by latency. The beginning of each block has a cost.
 * Bytes are moved between the device's memory, the chip, and mma.
 *
 * A class of sizes is rows, columns and a number of threads. Known sizes are those of the product; an unknown size is
 * some numbers of blocks. A tile is kept if it is the best one of a class. The result depends on the description and
 * the product only. So one device has the same tiles on every machine that solves for it. */
#ifndef UIR_LOWER_TILES_H
#define UIR_LOWER_TILES_H

#include "ir/machine/device.h"
#include "lower/parameters.h"

enum { UIR_TILES_LEAST_CHUNK = 64 };

typedef struct uir_tile_problem {
    const uir_machine *machine;
    int64_t rows, columns, depth;       /* of the product; 0: any number */
    int64_t others;                     /* number of products with tiles of their own, as of a batch; at least 1 */
    bool cut;                           /* columns are cut by tiles; else each tile has all of them */
    bool copied[2];                     /* whether the operand is copied to the chip */
    int64_t factor_bytes[2], sum_bytes; /* of an element */
    void *user;
    int64_t (*bytes)(void *user, int64_t rows, int64_t columns, int64_t chunk); /* of a tile on the chip */
} uir_tile_problem;

/* Cycles of a unit of work. */
int64_t uir_tile_cycles(const uir_tile_problem *problem, const uir_parameter_tile *tile, int64_t chunk);
/* Finds the best tile of each class among tiles of at most `room` bytes, and returns their number (0: no tile fits).
 * They are sorted by the number of classes won. `every`: all other tiles follow, up to the capacity of a record.
 * `*out_score` is the total cost of the classes, the less the better, to compare chunks. A tile's cost is its
 * cycles. */
uint32_t uir_tiles_solve(const uir_tile_problem *problem, int64_t chunk, int64_t room, bool every,
                         uir_parameter_tile out_tiles[UIR_PARAMETERS_MAX_TILES], int64_t *out_score);
/* Bytes of the smallest tile on the chip. */
int64_t uir_tiles_least_bytes(const uir_tile_problem *problem, int64_t chunk);
/* Finds the chunk, the length along K that is on the chip at once, with the least score; 0: no tile fits. */
int64_t uir_tiles_choose_chunk(const uir_tile_problem *problem, int64_t room);

#endif
