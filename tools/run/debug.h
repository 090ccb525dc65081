/* UIR_DEBUG and UIR_DUMP: print stages of a compile. In: the environment. Out: options for loading, texts on standard
 * error.
 *
 * UIR_DUMP=STAGE prints the IR after a stage or pass ("onnx", "primitives", a clean-up pass, "all").
 * UIR_DEBUG=1 names the stages as they begin, 2 adds the time since the start, 3 prints the IR after every stage and
 * checks that its text reads back to the same. */
#ifndef UIR_TOOLS_RUN_DEBUG_H
#define UIR_TOOLS_RUN_DEBUG_H

#include "uir/tools.h"

typedef struct debug_state {
    int level;
    double start_ms;
    char last[32]; /* the last stage named */
} debug_state;

/* Sets dump, dump_text and round_trip of the options from the environment; INVALID_ARGUMENT for a wrong UIR_DEBUG. The
 * load checks the stage. */
uir_status debug_init(debug_state *state, uir_debug_options *options);
/* To be called by the progress callback. */
void debug_stage(debug_state *state, const char *stage);

#endif
