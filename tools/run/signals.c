/* Signals that end the program: the sessions and loads that they cancel. */
#define _POSIX_C_SOURCE 200809L
#include "signals.h"
#include "clock.h"
#include "steady.h"

#include <unistd.h>

/* What a signal needs: the sessions to stop, and which signal came. */
static uir_session *volatile running_sessions[STEADY_MAX_SESSIONS];
volatile sig_atomic_t signals_caught;

volatile bool signals_cancelled;

void signals_on_signal(int number) {
    if (signals_caught) _exit(128 + number); /* again: at once */
    signals_caught = number;
    signals_cancelled = true;
    for (size_t i = 0; i < STEADY_MAX_SESSIONS; i++) {
        uir_session *session = running_sessions[i];
        if (session) uir_session_cancel(session);
    }
}

uir_status signals_run_once(uir_session *session, size_t slot, double *out_ms) {
    double start = now_ms();
    running_sessions[slot] = session;
    uir_status status = uir_session_run(session);
    running_sessions[slot] = NULL;
    *out_ms = now_ms() - start;
    /* A signal that came just before the run began was not seen by it. */
    return status == UIR_STATUS_OK && signals_caught ? UIR_STATUS_CANCELLED : status;
}
