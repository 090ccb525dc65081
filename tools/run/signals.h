/* Signals that end the program: which came, and the sessions and loads that it cancels. */
#ifndef UIR_TOOLS_RUN_SIGNALS_H
#define UIR_TOOLS_RUN_SIGNALS_H

#include "uir/uir.h"
#include <signal.h>

/* The signal that came; 0: none. */
extern volatile sig_atomic_t signals_caught;
/* Loads, checks and waits end once it is set. */
extern volatile bool signals_cancelled;

/* The handler: cancels all work; a second signal exits immediately. */
void signals_on_signal(int number);
/* Runs the session in a slot below STEADY_MAX_SESSIONS; CANCELLED if a signal came. */
uir_status signals_run_once(uir_session *session, size_t slot, double *out_ms);

#endif
