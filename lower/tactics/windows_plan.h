/* Inside the tactic of convolutions: the plan of one, which windows_plan.c makes and the steps of windows.c apply. */
#ifndef UIR_LOWER_WINDOWS_PLAN_H
#define UIR_LOWER_WINDOWS_PLAN_H

#include "lower/tactics/products/contraction_steps.h"

enum { UIR_WINDOWS_MOST_TAPS = 64 }; /* that are unrolled */

/* An axis of the result that is tiled. */
typedef struct uir_windows_span {
    uint32_t axis; /* of the contraction; NONE: there is none */
    uir_dim extent, tile;
    bool split;
    uint32_t outer, inner; /* loops; NONE: there is none */
} uir_windows_span;

typedef struct uir_windows {
    uir_contraction_plan p;
    uir_contraction_steps t;
    uir_windows_span lines, pixels, columns;
    bool joined; /* lines are short: those of a tile are rows of one product */
    bool apart;  /* tap after tap, by vectors: every channel has its own channel of the image, and columns are channels;
                    or */
    bool across; /* pixels lie together in the result, and columns are these: few channels */
    bool made; /* no convolution: rows are made on the chip, of windows, and columns are multiplied with them in turn */
    uint32_t made_at; /* the loop that they are made in */
} uir_windows;

/* Whether the contraction is a convolution of a form that the tactic has; chooses its spans and the form. */
bool uir_windows_recognise(uir_windows *w);
/* Chooses the tiles of the spans, and their candidates where sizes are unknown. */
uir_status uir_windows_choose_tiles(uir_windows *w);
/* The same if rows are made. */
uir_status uir_windows_choose_made_tiles(uir_windows *w);
/* Requires short lines if rows are made and only a run knows their length, which `out_unknown` says. */
uir_status uir_windows_require_short(uir_windows *w, bool *out_unknown);
bool uir_windows_known(const uir_windows *w, uir_dim dim, int64_t *out);
/* The load of a factor, casts and other calls of one operand looked through; NULL: it is not one. */
const uir_loop_expression *uir_windows_read_by(const uir_windows *w, uint32_t which);
/* The same of the image. */
const uir_loop_expression *uir_windows_image_of(const uir_windows *w);

#endif
