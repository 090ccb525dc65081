/* Sliding windows over an image of any rank: the input elements of an output row at one position of the window.
 *
 * Rows are along the last axis. In: extents, strides, dilations, padding. Out: runs of input elements, cut to those
 * inside the image. */
#ifndef UIR_IR_WINDOWS_H
#define UIR_IR_WINDOWS_H

#include "ir/graph/interpret/interpret.h"

typedef struct window_map {
    uint32_t rank; /* spatial axes, at least 1 */
    int64_t in[UIR_MAX_RANK], out[UIR_MAX_RANK], window[UIR_MAX_RANK];
    int64_t strides[UIR_MAX_RANK], dilations[UIR_MAX_RANK], low[UIR_MAX_RANK], in_strides[UIR_MAX_RANK];
    int64_t channels;         /* that a window spans */
    int64_t image_size;       /* elements of one channel */
    int64_t window_size;      /* positions in a window */
    int64_t row_length, rows; /* of output positions */
    int64_t row_stride;       /* strides[rank - 1] */
} window_map;

/* Positions first..first+count-1 of an output row read elements source, source + row_stride, ... of a channel. */
typedef struct row_view {
    int64_t first, count, source;
} row_view;

/* Reads the attributes of CONV or WINDOW_* and determines the result's spatial extents. */
uir_status uir_window_map_init(uir_call *call, const uir_tensor *x, const int64_t *window, window_map *out_map);

/* The view of window position `w` for output positions from..to-1 of row `row`; false if all of it is outside. */
static inline bool view_row(const window_map *map, int64_t row, int64_t w, int64_t from, int64_t to,
                            row_view *out_view) {
    uint32_t last = map->rank - 1;
    int64_t tap = w % map->window[last] * map->dilations[last] - map->low[last], source = 0;
    w /= map->window[last];
    for (uint32_t d = last; d-- > 0;) {
        int64_t at = row % map->out[d] * map->strides[d] + w % map->window[d] * map->dilations[d] - map->low[d];
        if (at < 0 || at >= map->in[d]) return false;
        source += at * map->in_strides[d];
        row /= map->out[d];
        w /= map->window[d];
    }
    /* position * stride + tap in 0..in-1 */
    int64_t stride = map->row_stride, first = tap >= 0 ? 0 : (-tap + stride - 1) / stride;
    int64_t end = map->in[last] <= tap ? 0 : (map->in[last] - tap + stride - 1) / stride;
    if (first < from) first = from;
    if (end > to) end = to;
    if (end <= first) return false;
    *out_view = (row_view){first, end - first, source + first * stride + tap};
    return true;
}

#endif
