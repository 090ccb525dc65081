/* Boxes in a picture and their overlap, as NonMaxSuppression defines them (ONNX operators). All implementations share
 * this code and agree to the bit. */
#ifndef UIR_BASE_BOX_H
#define UIR_BASE_BOX_H

#include <math.h>
#include <stdbool.h>

/* Corners, least first. */
typedef struct uir_box {
    float x0, y0, x1, y1;
} uir_box;

/* Two opposite corners as y, x, y, x; with `center`, the middle x, y, the width and the height. */
static inline uir_box uir_box_load(const float *b, bool center) {
    if (center) return (uir_box){b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
    return (uir_box){fminf(b[1], b[3]), fminf(b[0], b[2]), fmaxf(b[1], b[3]), fmaxf(b[0], b[2])};
}

/* Whether the boxes' intersection over union exceeds the threshold. */
static inline bool uir_box_overlap(uir_box a, uir_box b, float threshold) {
    float width = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0), height = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0);
    if (!(width > 0) || !(height > 0)) return false;
    float area = width * height;
    float both = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - area;
    return both > 0 && area / both > threshold;
}

#endif
