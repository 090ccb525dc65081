/* The solver of tile sizes: among all tiles of a product that fit on the chip, the best ones by a cost model.
 *
 * In: a product and its tiles' bytes on the chip, in numbers; the device. Out: tiles, and the estimated cycles of a
 * unit of work. A unit computes the sums of one tile along the whole of K, one chunk after another: for each panel of
 * columns and each of mma's blocks of rows, the chunk's steps. Its cycles are those of the blocks' multiply-adds (bound
 * by these, by loads, or by latency), of beginning each block, and of bytes moved between the device's memory, the
 * chip, and mma.
 *
 * A class of sizes is rows, columns and a number of threads: known sizes of the product, else some numbers of blocks. A
 * tile is kept if it is the best one of a class. The result depends on the description and the product only, so that
 * the same device has the same tiles wherever it is solved. */
#ifndef UIR_LOWER_TILES_H
#define UIR_LOWER_TILES_H

#include "ir/machine/device.h"
#include "lower/parameters.h"

enum { UIR_TILES_LEAST_CHUNK = 64 };

typedef struct uir_tile_problem {
    const uir_machine *device;
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
/* The best tile of each class among those of at most `room` bytes, sorted by the number of classes won; `every`: all
 * others follow, up to the capacity of a record. `*out_score`: total cost of the classes, the less the better, to
 * compare chunks. Tiles' costs are their cycles. */
uint32_t uir_tiles_solve(const uir_tile_problem *problem, int64_t chunk, int64_t room, bool every,
                         uir_parameter_tile out_tiles[UIR_PARAMETERS_MAX_TILES], int64_t *out_score);
/* Bytes of the smallest tile on the chip. */
int64_t uir_tiles_least_bytes(const uir_tile_problem *problem, int64_t chunk);
/* The chunk, the length along K that is on the chip at once, with the least score; 0: no tile fits. */
int64_t uir_tiles_choose_chunk(const uir_tile_problem *problem, int64_t room);

#endif
