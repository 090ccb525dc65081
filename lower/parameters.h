/* A kernel's tuning record: the choices of its tactic that change no bit of the results. A record lacks choices that
 * change the order of sums (a chunk of keys, a split of the reduction axis): sizes and the description determine these.
 *
 * In: the given record; the tactic chooses members that are 0. Out: the chosen record, with costs of a unit of work. A
 * chosen record that is given again makes the same kernel, also if it was printed and read in between. Text:
 *
 *   {
 *     every
 *     depth 256
 *     tile 96 x 512 cost 31744
 *     tile 48 x 256 cost 9999
 *   }
 *
 * `every` selects all legal tiles instead of the most promising ones; the record then names no tile. A product may pass
 * through several spaces (lower/tactics/products/stationary.h). Its record has the stationary tile's name and one tile,
 * with `depth` as its length along K. `stationary left 2` keeps rows of operand A whole along K in the first two spaces
 * on the path. A tile is rows by columns, or only rows if columns are not cut. Once sizes and threads are known, a
 * launch uses the tile whose units need the least time. */
#ifndef UIR_LOWER_PARAMETERS_H
#define UIR_LOWER_PARAMETERS_H

#include "base/text.h"

/* Which tile of a product stays on the chip (lower/tactics/products/stationary.h): output-, A- or B-stationary. */
typedef enum uir_stationary { UIR_STATIONARY_SUMS, UIR_STATIONARY_LEFT, UIR_STATIONARY_RIGHT } uir_stationary;
const char *uir_stationary_name(uir_stationary stationary); /* "sums", "left", "right" */

enum { UIR_PARAMETERS_MAX_TILES = 64, UIR_PARAMETERS_MAX_SIZE = 1 << 16 };

typedef struct uir_parameter_tile {
    int64_t rows, columns; /* columns 0: not cut */
    int64_t cost; /* of a unit of work, in any measure common to the record's tiles; 0: by the tactic's model */
} uir_parameter_tile;

typedef struct uir_parameters {
    int64_t depth;       /* length along K copied to the chip at once; 0 in the chosen record: nothing is copied */
    bool every;          /* given record only: all legal tiles */
    bool has_stationary; /* the next two are set */
    uir_stationary stationary;
    int64_t held; /* spaces with the stationary operand whole along K: uir_product_choice */
    uint32_t tile_count;
    uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
} uir_parameters;

typedef struct uir_parameter_choice {
    uir_parameters given, chosen; /* a chosen record without tiles: the tactic has no choice */
} uir_parameter_choice;

/* Parses a record from its opening brace to its closing brace. BAD_FILE, with a message, for an invalid record. */
uir_status uir_parameters_parse(uir_tokenizer *tokens, uir_parameters *out_parameters);
void uir_parameters_print(const uir_parameters *parameters, uir_text *text);

#endif
