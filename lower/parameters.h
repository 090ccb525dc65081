/* A kernel's tuning record: what its tactic may decide in more than one way without the results changing by a
 * bit. What changes the order of sums (a chunk of keys, a split of the summed axis) is none of them: it follows from
 * sizes and the description.
 *
 * In: what is given; all that is 0 is left to the tactic. Out: what was chosen, with what a unit of work costs: given
 * again, printed and read or not, it makes the same kernel. Text:
 *
 *   {
 *     every
 *     depth 256
 *     tile 96 x 512 cost 31744
 *     tile 48 x 256 cost 9999
 *   }
 *
 * `every`: all tiles that are legal, not only those that promise most; no tile is named then. Of a product that goes
 * through several spaces (lower/tactics/products/stationary.h) a record says what is stationary and has one tile, and `depth` is the
 * tile's: `stationary left 2` keeps rows whole in depth in the first two spaces on the way. A tile is rows by
 * columns; rows alone where columns are not cut by sizes. When sizes and threads are known, that tile is taken whose
 * units take the least time. */
#ifndef UIR_LOWER_PARAMETERS_H
#define UIR_LOWER_PARAMETERS_H

#include "base/text.h"

/* What of a product stays on the chip while the rest goes by (lower/tactics/products/stationary.h). */
typedef enum uir_stationary { UIR_STATIONARY_SUMS, UIR_STATIONARY_LEFT, UIR_STATIONARY_RIGHT } uir_stationary;
const char *uir_stationary_name(uir_stationary stationary); /* "sums", "left", "right" */

enum { UIR_PARAMETERS_MAX_TILES = 64, UIR_PARAMETERS_MAX_SIZE = 1 << 16 };

typedef struct uir_parameter_tile {
    int64_t rows, columns; /* columns 0: not cut */
    int64_t cost; /* of a unit of work, in any measure that the record's tiles share; 0: as the tactic thinks */
} uir_parameter_tile;

typedef struct uir_parameters {
    int64_t depth; /* how much of the summed axis is copied to the chip at once; 0 in what was chosen: nothing is */
    bool every;    /* of what is given alone: all tiles that are legal */
    bool has_stationary; /* the next two are said */
    uir_stationary stationary;
    int64_t held; /* of uir_product_choice */
    uint32_t tile_count;
    uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
} uir_parameters;

typedef struct uir_parameter_choice {
    uir_parameters given, chosen; /* no tiles are chosen: there is nothing to choose */
} uir_parameter_choice;

/* From the opening brace to the closing one. BAD_FILE, with a message, for what is no record. */
uir_status uir_parameters_parse(uir_tokenizer *tokens, uir_parameters *out_parameters);
void uir_parameters_print(const uir_parameters *parameters, uir_text *text);

#endif
