#define _POSIX_C_SOURCE 200809L
#include "debug.h"
#include "clock.h"
#include "printable.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void dump_text(void *user, const char *stage, const char *text, size_t length) {
    (void)user;
    fprintf(stderr, "# after %s\n", stage);
    fwrite(text, 1, length, stderr);
}

uir_status debug_init(debug_state *state, uir_debug_options *options) {
    const char *level = getenv("UIR_DEBUG"), *dump = getenv("UIR_DUMP");
    if (level && *level && (strlen(level) != 1 || *level < '0' || *level > '3')) {
        complain("set it to 1 to name the stages, to 2 to add their times, to 3 to print and check the IR after each",
                 "UIR_DEBUG is a level from 0 to 3, not '%s'", level);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    *state = (debug_state){.level = level ? atoi(level) : 0, .start_ms = now_ms()};
    options->dump = dump && *dump ? dump : state->level >= 3 ? "all" : NULL;
    options->dump_text = dump_text;
    options->round_trip = state->level >= 3;
    return UIR_STATUS_OK;
}

void debug_stage(debug_state *state, const char *stage) {
    if (state->level < 1 || !strncmp(state->last, stage, sizeof state->last - 1)) return;
    snprintf(state->last, sizeof state->last, "%s", stage);
    if (state->level < 2)
        fprintf(stderr, PROGRAM ": %s\n", stage);
    else
        fprintf(stderr, PROGRAM ": %8.1f ms  %s\n", now_ms() - state->start_ms, stage);
}
